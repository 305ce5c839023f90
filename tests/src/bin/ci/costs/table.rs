//! The text of the generated table.

use std::fmt::Write as _;
use tamis::price::{Around, Kernel, PER_INSTRUCTION, Work};

/// Everything of one part; kernels in the order of [`Kernel::all`], floats before integers.
#[derive(Debug, Clone)]
pub(crate) struct Measured {
    pub(crate) core: &'static str,
    pub(crate) startup: u64,
    pub(crate) file: [u64; 2],
    pub(crate) module: [u64; 2],
    pub(crate) code: Vec<u64>,
    pub(crate) stack: Vec<u64>,
    pub(crate) alone: Vec<u64>,
    pub(crate) around: [Vec<f64>; 2],
    pub(crate) work: Vec<Vec<f64>>,
}

/// A Rust source file.
pub(crate) fn text(command: &str, parts: &[Measured]) -> String {
    let mut text = format!(
        "//! Generated: prices in thousandths of an instruction, code and stack in bytes, one entry for each of `Core::ALL`.\n\
         //!\n//! Made by `{command}`.\n//! Do not edit: run that again.\n//!\n\
         //! - a prediction: {}\n//! - a layer: {}\n\nuse super::{{Frame, Price, Prices}};\n\n\
         pub(super) static TABLE: [Prices; {}] = [\n",
        Around::NAMES.join(", "),
        Work::NAMES.join(", "),
        parts.len()
    );
    parts.iter().for_each(|part| text += &entry(part));
    text + "];\n"
}

fn entry(part: &Measured) -> String {
    let mut text = format!("// {}\nPrices {{ startup: {},\n", part.core, part.startup);
    for (at, name) in ["floats", "integers"].into_iter().enumerate() {
        let prices = list(&part.around[at]);
        let _ = writeln!(
            text,
            "{name}: Frame {{ instructions: {prices}, file: {}, module: {} }},",
            part.file[at], part.module[at]
        );
    }
    text += "kernels: [\n";
    for (kernel, work) in Kernel::all().zip(&part.work) {
        let at = kernel.place();
        let [code, stack, alone] = [part.code[at], part.stack[at], part.alone[at]];
        let _ = writeln!(
            text,
            "// {}\nPrice {{ instructions: {}, code: {code}, stack: {stack}, alone: {alone} }},",
            kernel.name(),
            list(work)
        );
    }
    text + "] },\n"
}

fn list(prices: &[f64]) -> String {
    let whole = |price: &f64| grouped((price * PER_INSTRUCTION as f64).round() as u64);
    format!("[{}]", prices.iter().map(whole).collect::<Vec<_>>().join(", "))
}

/// Thousands apart, as in Rust.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_a_line_for_each_kernel() {
        let part = Measured {
            core: "Cortex-M0",
            startup: 200,
            file: [1, 2],
            module: [3, 4],
            code: vec![5; Kernel::COUNT],
            stack: vec![6; Kernel::COUNT],
            alone: vec![7; Kernel::COUNT],
            around: [vec![1.5; Around::COUNT], vec![0.0; Around::COUNT]],
            work: vec![vec![1234.5678; Work::COUNT]; Kernel::COUNT],
        };
        let text = text("command", &[part]);
        assert_eq!(text.matches("Price {").count(), Kernel::COUNT);
        assert!(
            text.contains("1_234_568") && text.contains("[1_500, ") && text.contains("Made by `command`")
        );
    }
}
