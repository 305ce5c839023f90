//! The text of the generated table.

use super::Instructions;
use crate::cost::{Kernel, Work};
use crate::ways::fit::Bytes;
use std::fmt::Write as _;
use tamis::infer::price::PER_INSTRUCTION;

/// Everything of one core.
#[derive(Debug, Clone)]
pub(crate) struct Measured {
    pub(crate) core: &'static str,
    pub(crate) startup: u64,
    pub(crate) prices: Instructions,
    pub(crate) bytes: Bytes,
}

/// A Rust source file.
pub(crate) fn text(command: &str, cores: &[Measured]) -> String {
    let mut text = format!(
        "//! Generated: what was measured of each core but the Cortex-M7, which runs the code of the Cortex-M4F.\n//!\n\
         //! Made by `{command}`.\n//! Do not edit: run that again.\n//!\n\
         //! Prices are in the order of `Around`, `COUNTS`, `extras` and `Straight`.\n\n\
         use super::rows::{{Prices, Row}};\n\n#[rustfmt::skip]\npub(super) static TABLE: [Prices; {}] = [\n",
        cores.len()
    );
    cores.iter().for_each(|core| text += &entry(core));
    text + "];\n"
}

/// The rows of the encodings as the core holds them.
pub(crate) fn encodings(prices: &Instructions) -> [[u32; Work::COUNT]; 3] {
    [Kernel::Dense, Kernel::Mask, Kernel::Blocks].map(|kernel| {
        let row = &prices.kernels[kernel as usize];
        std::array::from_fn(|k| thousandths(row[k]) as u32)
    })
}

fn entry(core: &Measured) -> String {
    let (bytes, prices) = (&core.bytes, &core.prices);
    let mut text = format!(
        "    // {}\n    Prices {{\n        startup: {},\n        kernels: [\n",
        core.core, core.startup
    );
    for (at, kernel) in Kernel::ALL.iter().enumerate() {
        let _ = writeln!(
            text,
            "            Row {{ instructions: {},\n                bytes: {:?} }}, // {kernel:?}",
            list(&prices.kernels[at]),
            bytes.kernels[at]
        );
    }
    let [floats, integers] = prices.around.each_ref().map(|prices| list(prices));
    let [code, ram] = bytes.straight.each_ref().map(|prices| list(prices));
    let _ = writeln!(
        text,
        "        ],\n        around: [{floats},\n            {integers}],\n        extras: [{:?},\n            {:?}],\n\
         \x20       shared: {:?},\n        file: {:?},\n        module: {:?},\n        zeros: {:?},\n\
         \x20       straight: [{code},\n            {ram}],\n    }},",
        bytes.extras[0], bytes.extras[1], bytes.shared, bytes.file, bytes.module, bytes.zeros
    );
    text
}

fn thousandths(price: f64) -> u64 {
    (price * PER_INSTRUCTION as f64).round() as u64
}

fn list(prices: &[f64]) -> String {
    let whole = |price: &f64| grouped(thousandths(*price));
    format!("[{}]", prices.iter().map(whole).collect::<Vec<_>>().join(", "))
}

/// Thousands apart, as in Rust.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if digits.len() > 4 && at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{Around, Core};
    use tamis::infer::price::CORTEX_M4F;

    #[test]
    fn an_entry_has_a_row_for_each_kernel() {
        let prices = Instructions {
            around: [vec![1.5; Around::COUNT], vec![0.0; Around::COUNT]],
            kernels: vec![vec![1234.5678; Work::COUNT]; Kernel::ALL.len()],
        };
        let core = Measured { core: "Cortex-M0", startup: 200, prices, bytes: Bytes::default() };
        let text = text("command", &[core]);
        assert_eq!(text.matches("Row {").count(), Kernel::ALL.len());
        assert!(
            text.contains("1_234_568")
                && text.contains("[1500, ")
                && text.contains("Made by `command`")
        );
    }

    /// The core chooses encodings by the rows of the table.
    #[test]
    fn encoding_prices_match_the_table() {
        let kernels = [Kernel::Dense, Kernel::Mask, Kernel::Blocks];
        let rows = kernels.map(|kernel| Core::CortexM4F.prices().row(kernel).instructions);
        assert_eq!(rows, CORTEX_M4F);
    }
}
