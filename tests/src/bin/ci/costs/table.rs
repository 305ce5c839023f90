//! The text of the generated table.

use crate::ways::fit::Prices;
use std::fmt::Write as _;
use tamis::price::ways::Straight;
use tamis::price::{Around, Kernel, PER_INSTRUCTION, Work};

/// Everything of one part; kernels in the order of [`Kernel::all`], floats before integers.
#[derive(Debug, Clone)]
pub(crate) struct Measured {
    pub(crate) core: &'static str,
    pub(crate) startup: u64,
    /// Of the plain loop over floats.
    pub(crate) plain: u64,
    pub(crate) ways: Prices,
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
         //! - a prediction: {}\n//! - a layer: {}\n//! - code without tables: {}\n\nuse super::ways::Ways;\nuse super::{{Frame, Price, Prices}};\n\n\
         pub(super) static TABLE: [Prices; {}] = [\n",
        Around::NAMES.join(", "),
        Work::NAMES.join(", "),
        Straight::NAMES.join(", "),
        parts.len()
    );
    parts.iter().for_each(|part| text += &entry(part));
    text + "];\n"
}

fn entry(part: &Measured) -> String {
    let mut text = format!("// {}\nPrices {{ startup: {}, plain: {},\n", part.core, part.startup, part.plain);
    text += &ways(&part.ways);
    for (at, name) in ["floats", "integers"].into_iter().enumerate() {
        let prices = list(&part.around[at]);
        let _ = writeln!(text, "{name}: Frame {{ instructions: {prices} }},");
    }
    text += "kernels: [\n";
    for (kernel, work) in Kernel::all().zip(&part.work) {
        let at = kernel.place();
        let [stack, alone] = [part.stack[at], part.alone[at]];
        let _ = writeln!(
            text,
            "// {}\nPrice {{ instructions: {}, stack: {stack}, alone: {alone} }},",
            kernel.name(),
            list(work)
        );
    }
    text + "] },\n"
}

/// Bytes of the ways; pairs are code and stack.
fn ways(ways: &Prices) -> String {
    let Prices { floats, float_file, integers, besides, integer_file, straight, .. } = ways;
    let Prices { rust, zeros, c_floats, c_integers, c_besides, .. } = ways;
    let pairs =
        |pairs: &[[i64; 2]]| pairs.iter().map(|pair| format!("{pair:?}")).collect::<Vec<_>>().join(", ");
    let both = |prices: &[Vec<f64>; 2]| format!("[{}, {}]", list(&prices[0]), list(&prices[1]));
    format!(
        "ways: Ways {{ floats: [{}], float_file: [{}], integers: [{}], besides: [{}], integer_file: {integer_file:?},\n\
         straight: {}, rust: {rust:?}, zeros: {zeros:?}, c_floats: [{}], c_integers: [{}], c_besides: [{}] }},\n",
        pairs(floats),
        pairs(float_file),
        pairs(integers),
        pairs(besides),
        both(straight),
        pairs(c_floats),
        pairs(c_integers),
        pairs(c_besides),
    )
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
            plain: 7,
            ways: Prices { floats: vec![[11, 12]], ..Prices::default() },
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
