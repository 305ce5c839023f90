//! A Rust module without tables: one multiply-add a weight, with its column and value in the code.
//!
//! On a Cortex-M a weight is three instructions. Each row is a function of its own, so that no input
//! stays in a register from row to row.

use tamis::base::bits::is_set;
use tamis::infer::model::Activation;
use tamis::infer::quantised::{Layer, Model};

use super::head::{Classes, Files, Head, Network};
use super::rust::{quantize, scaled};

/// Weights of a row between two barriers to reordering, which are no instructions: the compiler
/// would load all inputs of a row, onto the stack, before it adds.
const TOGETHER: usize = 64;

/// One factor as the code has it: 31 bits, and what is shifted behind the high word.
fn factor(bits: u32) -> (u32, u32) {
    ((bits & 0xFF_FFFF) << 7, (bits >> 24) - 25)
}

const NUMBER: &str = "
/// A sum times a factor, rounded.
#[inline(always)]
fn number<const FACTOR: i64, const SHIFT: u32>(sum: i32) -> i32 {
    let high = (i64::from(sum).wrapping_mul(FACTOR) >> 32) as i32;
    high.wrapping_add(1 << (SHIFT - 1)) >> SHIFT
}
";

const BYTE: &str = "
/// A sum times a factor, rounded and cut to a byte.
#[inline(always)]
fn byte<const FACTOR: i64, const SHIFT: u32>(sum: i32) -> u8 {
    number::<FACTOR, SHIFT>(sum).clamp(0, 255) as u8
}
";

const ADD: &str = "
/// One weight.
#[inline(always)]
fn add(sum: i32, x: u8, weight: i32) -> i32 {
    sum.wrapping_add(i32::from(x).wrapping_mul(weight))
}
";

pub(super) fn module(network: Network<'_>, head: &Head) -> Files {
    let Network::Integers(model) = network else { return Vec::new() };
    let mut out = format!("//! {}\n", head.title(network));
    out += "//!\n//! Exported by tamis as code: export it again rather than edit it. It needs no \
        crate.\n\n";
    out += "#![allow(dead_code, missing_docs, unreachable_pub, unused_variables, clippy::all)]\n\n";
    out += &scaled(head, model);
    out += &quantize(model);
    out += &predict(model);
    out += match head.classes {
        Classes::None => "",
        Classes::From(_) => {
            "\n/// The class of one row.\n#[must_use]\n\
             pub fn classify(x: &[u8; INPUTS]) -> usize {\n\
             \x20   usize::from(predict(x)[0] >= THRESHOLD)\n}\n"
        }
        Classes::Largest => {
            "\n/// The class of one row.\n#[must_use]\n\
             pub fn classify(x: &[u8; INPUTS]) -> usize {\n    let mut best = (0, i32::MIN);\n\
             \x20   for (class, score) in predict(x).into_iter().enumerate() {\n\
             \x20       if score > best.1 {\n\
             \x20           best = (class, score);\n        }\n    }\n    best.0\n}\n"
        }
    };
    let hidden = model.layers().len() - usize::from(model.sum().is_none());
    let mut numbers = false;
    for (at, layer) in model.layers().iter().enumerate() {
        numbers |= !layer.rescale().is_empty();
        out += &whole(at + 1, layer, at < hidden);
    }
    out += ADD;
    if numbers {
        out += NUMBER;
    }
    if hidden > 0 {
        out += BYTE;
    }
    vec![("rs", out.into_bytes())]
}

/// Bytes between layers: those of two neighbours.
pub(super) fn scratch_bytes(model: &Model<'_>) -> usize {
    let hidden = model.layers().len() - usize::from(model.sum().is_none());
    let widths: Vec<usize> = model.layers()[..hidden].iter().map(Layer::outputs).collect();
    let alone = widths.iter().copied().max().unwrap_or(0);
    widths.windows(2).map(|pair| pair[0] + pair[1]).fold(alone, usize::max)
}

fn predict(model: &Model<'_>) -> String {
    let mut out = String::from(
        "\n/// The outputs on one row.\n#[must_use]\n\
         pub fn predict(x: &[u8; INPUTS]) -> [i32; OUTPUTS] {\n",
    );
    let layers = model.layers().len();
    for number in 1..=layers {
        let from = if number == 1 { "x".into() } else { format!("&h_{}", number - 1) };
        if number == layers && model.sum().is_none() {
            out += &format!("    layer_{number}({from})\n");
        } else {
            out += &format!("    let h_{number} = layer_{number}({from});\n");
        }
    }
    if let Some(sum) = model.sum() {
        out += "    let mut sum = 0_i32;\n";
        for j in 0..sum.inputs() {
            let sign = if is_set(sum.signs(), j) { "sub" } else { "add" };
            out += &format!("    sum = sum.wrapping_{sign}(h_{layers}[{j}] as i32);\n");
        }
        out += "    [sum]\n";
    }
    out + "}\n"
}

fn whole(number: usize, layer: &Layer<'_>, hidden: bool) -> String {
    let mut rows = vec![Vec::new(); layer.outputs()];
    layer.weights().entries(&mut |row, column, weight| rows[row].push((column, weight)));
    let kind = if hidden { "u8" } else { "i32" };
    let (inputs, outputs) = (layer.inputs(), layer.outputs());
    let mut out =
        format!("\nfn layer_{number}(x: &[u8; {inputs}]) -> [{kind}; {outputs}] {{\n    [\n");
    for (j, row) in rows.iter().enumerate() {
        let bias = layer.bias().get(j).copied().unwrap_or(0);
        let mut value =
            if row.is_empty() { bias.to_string() } else { format!("row_{number}_{j}(x)") };
        let word = if layer.rescale().len() == 1 {
            layer.rescale().first()
        } else {
            layer.rescale().get(j)
        };
        if let Some((factor, shift)) = word.map(|&word| factor(word)) {
            let call = if hidden { "byte" } else { "number" };
            value = format!("{call}::<{factor}, {shift}>({value})");
        }
        // A hidden layer's is done by the cut.
        if !hidden && layer.activation() == Activation::Relu {
            value = format!("i32::max({value}, 0)");
        }
        out += &format!("        {value},\n");
    }
    out += "    ]\n}\n";
    for (j, row) in rows.iter().enumerate().filter(|(_, row)| !row.is_empty()) {
        let bias = layer.bias().get(j).copied().unwrap_or(0);
        out += &format!(
            "\n#[inline(never)]\nfn row_{number}_{j}(x: &[u8; {inputs}]) -> i32 {{\n\
             \x20   let sum = {bias};\n"
        );
        for (at, (column, weight)) in row.iter().enumerate() {
            if at > 0 && at % TOGETHER == 0 {
                out += "    core::hint::black_box(());\n";
            }
            out += &format!("    let sum = add(sum, x[{column}], {weight});\n");
        }
        out += "    sum\n}\n";
    }
    out
}
