//! A Rust module of tables, for the kernels of the crate `tamis`.

use std::collections::BTreeSet;

use tamis::infer::model::{self, Activation};
use tamis::infer::quantised;

use super::head::{Classes, Files, Head, Network, unknown_layer};
use super::table::{self, Table, float};
use crate::Result;

#[derive(Default)]
struct Module {
    /// Names that it takes from `tamis::infer::model` and `tamis::infer::quantised`.
    model: BTreeSet<&'static str>,
    quantised: BTreeSet<&'static str>,
    tables: String,
    bytes: usize,
    layers: Vec<String>,
}

pub(super) fn module(network: Network<'_>, head: &Head) -> Result<(Files, usize)> {
    let mut module = Module::default();
    let title = head.title(network);
    let text = match network {
        Network::Integers(model) => module.integers(model, head, &title),
        Network::Floats(model) => module.floats(model, head, &title)?,
    };
    Ok((vec![("rs", text.into_bytes())], module.bytes))
}

impl Module {
    /// Adds a table; what refers to it.
    fn table(&mut self, name: &str, layer: usize, table: Table<'_>) -> String {
        if table.is_empty() {
            return "&[]".into();
        }
        let name = format!("{}_{layer}", name.to_uppercase());
        self.tables += &table.rust(&name);
        self.bytes += table.bytes();
        format!("&{name}")
    }

    fn activation(&mut self, activation: Activation) -> &'static str {
        self.model.insert("Activation");
        if activation == Activation::Relu { "Activation::Relu" } else { "Activation::Identity" }
    }

    fn sum(&mut self, sum: &model::Sum<'_>, layer: usize) -> String {
        self.model.insert("Sum");
        let signs = self.table("signs", layer, Table::U32(sum.signs()));
        format!("checked(Sum::new({}, {signs}))", sum.inputs())
    }

    /// The module; the compiler makes the layers and the model of the tables.
    fn text(&self, head: &str, constants: &str, scratch: usize, chain: &str, end: &str) -> String {
        let mut out = format!("//! {head}\n");
        out += "//!\n//! Exported by tamis: export it again rather than edit it. It needs the \
            crate \
                `tamis`, no heap and no file.\n//! The compiler checks the tables, and links the \
                kernels that they need and no check.\n\n#![allow(dead_code, \
                long_running_const_eval, missing_docs, unreachable_pub, clippy::all)]\n\n";
        for (from, names) in [("infer::model", &self.model), ("infer::quantised", &self.quantised)]
        {
            match names.iter().copied().collect::<Vec<_>>().as_slice() {
                [] => {}
                [one] => out += &format!("use tamis::{from}::{one};\n"),
                many => out += &format!("use tamis::{from}::{{{}}};\n", many.join(", ")),
            }
        }
        out += &format!(
            "\n{constants}/// Numbers between layers.\nconst SCRATCH: usize = {scratch};\n\n{}\n\
             const LAYERS: [Layer<'static>; {}] = [\n",
            self.tables,
            self.layers.len()
        );
        for layer in &self.layers {
            out += &format!("    {layer},\n");
        }
        out += &format!(
            "];\n\n/// The model, with the kernels that its layers need.\n\
             pub static MODEL: Chain<'static, {{ Chain::kernels(&LAYERS) }}> =\n    \
             checked(Chain::new({chain}));\n{CHECKED}{end}"
        );
        out
    }

    fn integers(&mut self, model: &quantised::Model<'_>, head: &Head, title: &str) -> String {
        self.model.insert("zeros");
        self.quantised.extend(["Chain", "Layer", "Scales", "Weights"]);
        for (at, layer) in model.layers().iter().enumerate() {
            self.integer_layer(at + 1, layer);
        }
        let sum = match model.sum() {
            Some(sum) => format!("Some({})", self.sum(sum, model.layers().len() + 1)),
            None => "None".into(),
        };
        let threshold = if let Classes::From(_) = head.classes { "THRESHOLD" } else { "0" };
        let input = match model.readings().columns() {
            None => ["INPUT_SCALE", "INPUT_ZERO"],
            Some(_) => ["1.0", "0"],
        };
        let [scale, zero] = input;
        let chain = format!(
            "&LAYERS, {sum}, checked(Scales::new({scale}, OUTPUT_SCALE, {zero}, {threshold}))"
        );
        let mut end = predict("u8", "i32", ["zeros()", "zeros::<_, SCRATCH>()"]);
        if head.classes != Classes::None {
            end += &classify("MODEL.class(&predict(x))", "u8");
        }
        end += &quantize(model);
        self.text(title, &scaled(head, model), model.scratch_len(), &chain, &end)
    }

    fn integer_layer(&mut self, number: usize, layer: &quantised::Layer<'_>) {
        let (inputs, outputs) = (layer.inputs(), layer.outputs());
        let (kind, tables) = table::weights(layer.weights());
        let tables: Vec<_> =
            tables.into_iter().map(|(name, own)| self.table(name, number, own)).collect();
        let arguments = format!("{inputs}, {outputs}, {}", tables.join(", "));
        self.quantised.insert(kind);
        let factors = self.table("factors", number, Table::U32(layer.rescale()));
        let biases = self.table("biases", number, Table::I32(layer.bias()));
        let activation = self.activation(layer.activation());
        self.layers.push(format!(
            "checked(Layer::new(\n        Weights::{kind}(checked({kind}::new({arguments}))),\n        \
             {factors},\n        {biases},\n        {activation},\n    ))"
        ));
    }

    fn floats(&mut self, model: &model::Model<'_>, head: &Head, title: &str) -> Result<String> {
        self.model.extend(["Chain", "Layer"]);
        for (at, layer) in model.layers().iter().enumerate() {
            let number = at + 1;
            let (kind, sizes, tables, activation) = match layer {
                model::Layer::Csr(csr) => {
                    ("Csr", csr.inputs().to_string(), table::rows(csr), csr.activation())
                }
                model::Layer::Blocks(blocks) => {
                    let sizes = format!("{}, {}", blocks.inputs(), blocks.outputs());
                    ("Blocks", sizes, table::windows(blocks), blocks.activation())
                }
                model::Layer::Sum(sum) => {
                    let sum = self.sum(sum, number);
                    self.layers.push(format!("Layer::Sum({sum})"));
                    continue;
                }
                _ => return Err(unknown_layer()),
            };
            self.model.insert(kind);
            let tables = tables.map(|(name, own)| self.table(name, number, own)).join(", ");
            let activation = self.activation(activation);
            let mut own = format!("checked({kind}::new({sizes}, {tables}, {activation}))");
            if !layer.biases().is_empty() {
                let biases = self.table("biases", number, Table::F32(layer.biases()));
                own = format!("checked({own}.with_biases({biases}))");
            }
            self.layers.push(format!("Layer::{kind}({own})"));
        }
        let mut constants = constants(head);
        if let Classes::From(threshold) = head.classes {
            constants += "/// The least output that is class 1.\n";
            constants += &format!("pub const THRESHOLD: f32 = {};\n", float(threshold));
        }
        let end = predict("f32", "f32", ["[0.0; OUTPUTS]", "[0.0; SCRATCH]"])
            + &match head.classes {
                Classes::None => String::new(),
                Classes::From(_) => classify("usize::from(predict(x)[0] >= THRESHOLD)", "f32"),
                Classes::Largest => classify("tamis::learn::loss::best(&predict(x))", "f32"),
            };
        Ok(self.text(title, &constants, model.scratch_len(), "&LAYERS", &end))
    }
}

/// What makes an error one of the compilation, and the lengths that the functions rely on.
const CHECKED: &str = "
/// What was checked; an error ends the compilation.
const fn checked<T: Copy>(result: tamis::Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!(\"{}\", error.what()),
    }
}

const _: () = assert!(
    MODEL.inputs() == INPUTS && MODEL.outputs() == OUTPUTS && MODEL.scratch_len() == SCRATCH,
    \"the sizes are not those of the layers\"
);
";

/// The function that gives the outputs, with the zeros of these and of the scratch. Among kernels
/// of floats `zeros()` takes more flash than cleared arrays in a small network and less in a larger
/// one, 52 bytes either way, so those are arrays.
fn predict(of: &str, to: &str, [outputs, scratch]: [&str; 2]) -> String {
    format!(
        "\n/// The outputs on one row.\n#[must_use]\n\
         pub fn predict(x: &[{of}; INPUTS]) -> [{to}; OUTPUTS] {{\n\
         \x20   let mut y = {outputs};\n\
         \x20   let done = MODEL.predict(x, &mut {scratch}, &mut y);\n\
         \x20   debug_assert!(done.is_ok(), \"the compiler has compared the lengths\");\n\
         \x20   y\n}}\n"
    )
}

fn classify(class: &str, of: &str) -> String {
    format!(
        "\n/// The class of one row.\n#[must_use]\npub fn classify(x: &[{of}; INPUTS]) -> usize \
            {{\n    {class}\n}}\n"
    )
}

/// Inputs and outputs, as every module has them.
fn constants(head: &Head) -> String {
    format!(
        "/// Numbers in one input row.\npub const INPUTS: usize = {};\n\
         /// Numbers in one prediction.\npub const OUTPUTS: usize = {};\n",
        head.cost.inputs, head.cost.outputs
    )
}

/// The same, and what the integers stand for.
pub(super) fn scaled(head: &Head, model: &quantised::Model<'_>) -> String {
    let mut out = constants(head);
    let scales = model.scales();
    match model.readings().columns() {
        None => {
            out += &format!(
                "/// A byte `q` of an input stands for `INPUT_SCALE * (q - INPUT_ZERO)`.\n\
                 pub const INPUT_SCALE: f32 = {};\n\
                 /// The byte that stands for 0.\n\
                 pub const INPUT_ZERO: u8 = {};\n",
                float(scales.input()),
                scales.zero
            );
        }
        Some(columns) => {
            out += "/// A byte `q` of input `j` stands for `INPUT_SCALES[j] * (q - INPUT_ZEROS[j])`.\n";
            out += &format!("pub {}", Table::F32(columns.scales()).rust("INPUT_SCALES"));
            out += "/// What stands for 0 in each input.\n";
            out += &format!("pub {}", Table::I32(columns.zeros()).rust("INPUT_ZEROS"));
        }
    }
    out += &format!(
        "/// An output `y` stands for `OUTPUT_SCALE * y`.\n\
         pub const OUTPUT_SCALE: f32 = {};\n",
        float(scales.output())
    );
    if let Classes::From(_) = head.classes {
        out += "/// The least output that is class 1.\n";
        out += &format!("pub const THRESHOLD: i32 = {};\n", scales.threshold);
    }
    out
}

/// The functions that make bytes of readings, with the rounding of the crate.
pub(super) fn quantize(model: &quantised::Model<'_>) -> String {
    let reading = match model.readings().columns() {
        None => "let (_, scale, zero) = (column, INPUT_SCALE, f32::from(INPUT_ZERO));",
        Some(_) => "let (scale, zero) = (INPUT_SCALES[column], INPUT_ZEROS[column] as f32);",
    };
    format!(
        "\n/// The byte of a reading of one input: rounded, halves away from 0, and cut to 0 to 255.\n\
         /// Readings of up to 24 bits are floats without rounding.\n#[must_use]\n\
         pub fn quantize(column: usize, reading: f32) -> u8 {{\n    {reading}\n\
         \x20   let steps = reading / scale;\n\
         \x20   // Beyond these there are whole numbers only.\n\
         \x20   let steps = if steps > -8_388_608.0 && steps < 8_388_608.0 {{\n\
         \x20       let whole = steps as i32 as f32;\n\
         \x20       let rest = steps - whole;\n\
         \x20       whole + if rest >= 0.5 {{ 1.0 }} else if rest <= -0.5 {{ -1.0 }} else {{ 0.0 }}\n\
         \x20   }} else if steps.is_nan() {{\n        0.0\n    }} else {{\n        steps\n    }};\n\
         \x20   (steps + zero).clamp(0.0, 255.0) as u8\n}}\n\
         \n/// The bytes of one row of readings.\n#[must_use]\n\
         pub fn quantize_input(x: &[f32; INPUTS]) -> [u8; INPUTS] {{\n\
         \x20   core::array::from_fn(|column| quantize(column, x[column]))\n}}\n"
    )
}
