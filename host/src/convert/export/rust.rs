//! A Rust module of tables, for the kernels of the crate `tamis`.

use std::collections::BTreeSet;

use tamis::infer::model::{self, Activation};
use tamis::infer::quantised::{self, Scales, Weights};

use super::table::{self, Table, float};
use super::{Classes, Files, Head, Network};
use crate::{Error, Result};

/// The module being written.
#[derive(Default)]
struct Module {
    /// Names that it takes from `tamis::infer::model` and `tamis::infer::quantised`.
    model: BTreeSet<&'static str>,
    quantised: BTreeSet<&'static str>,
    tables: String,
    bytes: usize,
    /// The layers, each as an expression.
    layers: Vec<String>,
}

/// The text, and the bytes of its tables.
pub(super) fn module(network: Network<'_>, head: &Head) -> Result<(Files, usize)> {
    let mut module = Module::default();
    let text = match network {
        Network::Integers(model) => module.integers(model, head, network),
        Network::Floats(model) => module.floats(model, head, network)?,
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

    /// Imports and tables.
    fn front(&self, title: &str) -> String {
        let mut out = format!("//! {title}\n");
        out += "//!\n//! Exported by tamis: export it again rather than edit it. It needs the crate `tamis`, no heap and no file.\n";
        out += "//! The compiler checks the tables, and links the kernels that they need and no check.\n\n";
        out += "#![allow(dead_code, long_running_const_eval, missing_docs, unreachable_pub, clippy::all)]\n\n";
        for (from, names) in [("infer::model", &self.model), ("infer::quantised", &self.quantised)]
        {
            match names.iter().copied().collect::<Vec<_>>().as_slice() {
                [] => {}
                [one] => out += &format!("use tamis::{from}::{one};\n"),
                many => out += &format!("use tamis::{from}::{{{}}};\n", many.join(", ")),
            }
        }
        out.push('\n');
        out
    }

    fn integers(
        &mut self,
        model: &quantised::Model<'_>,
        head: &Head,
        network: Network<'_>,
    ) -> String {
        self.model.insert("zeros");
        self.quantised.extend(["Chain", "Layer", "Scales", "Weights"]);
        for (at, layer) in model.layers().iter().enumerate() {
            self.integer_layer(at + 1, layer);
        }
        let sum = match model.sum() {
            Some(sum) => format!("Some({})", self.sum(sum, model.layers().len() + 1)),
            None => "None".into(),
        };
        let scales = model.scales();
        let mut out = self.front(&head.title(network));
        out += &scaled(head, scales);
        let threshold = if let Classes::From(_) = head.classes { "THRESHOLD" } else { "0" };
        out += &format!(
            "/// Numbers between layers.\nconst SCRATCH: usize = {};\n\n",
            model.scratch_len()
        );
        out += &self.tables;
        out += &self.chain(&format!(
            "&LAYERS, {sum}, checked(Scales::new(INPUT_SCALE, OUTPUT_SCALE, INPUT_ZERO, {threshold}))"
        ));
        out += &predict("u8", "i32", ["zeros()", "zeros::<_, SCRATCH>()"]);
        if head.classes != Classes::None {
            out += &classify("MODEL.class(&predict(x))", "u8");
        }
        out
    }

    /// The layers and the model, made by the compiler.
    fn chain(&self, arguments: &str) -> String {
        let mut out = format!("\nconst LAYERS: [Layer<'static>; {}] = [\n", self.layers.len());
        for layer in &self.layers {
            out += &format!("    {layer},\n");
        }
        out += &format!(
            "];\n\n/// The model, with the kernels that its layers need.\n\
             pub static MODEL: Chain<'static, {{ Chain::kernels(&LAYERS) }}> =\n    checked(Chain::new({arguments}));\n"
        );
        out + CHECKED
    }

    fn integer_layer(&mut self, number: usize, layer: &quantised::Layer<'_>) {
        let weights = layer.weights();
        let (inputs, outputs) = (layer.inputs(), layer.outputs());
        let tables: Vec<_> = table::weights(weights)
            .into_iter()
            .map(|(name, table)| self.table(name, number, table))
            .collect();
        let tables = tables.join(", ");
        let (kind, arguments) = match weights {
            Weights::Dense(_) => ("Dense", format!("{inputs}, {outputs}, {tables}")),
            Weights::Mask(_) => ("Mask", format!("{inputs}, {outputs}, {tables}")),
            _ => ("Blocks", format!("{inputs}, {outputs}, {tables}")),
        };
        self.quantised.insert(kind);
        let factors = self.table("factors", number, Table::U32(layer.rescale()));
        let biases = self.table("biases", number, Table::I32(layer.bias()));
        let activation = self.activation(layer.activation());
        self.layers.push(format!(
            "checked(Layer::new(\n        Weights::{kind}(checked({kind}::new({arguments}))),\n        \
             {factors},\n        {biases},\n        {activation},\n    ))"
        ));
    }

    fn floats(
        &mut self,
        model: &model::Model<'_>,
        head: &Head,
        network: Network<'_>,
    ) -> Result<String> {
        self.model.extend(["Chain", "Layer"]);
        for (at, layer) in model.layers().iter().enumerate() {
            let number = at + 1;
            let made = match layer {
                model::Layer::Csr(csr) => {
                    self.model.insert("Csr");
                    let tables =
                        table::rows(csr).map(|(name, table)| self.table(name, number, table));
                    let activation = self.activation(csr.activation());
                    let (inputs, tables) = (csr.inputs(), tables.join(", "));
                    format!("Layer::Csr(checked(Csr::new({inputs}, {tables}, {activation})))")
                }
                model::Layer::Blocks(blocks) => {
                    self.model.insert("Blocks");
                    let tables =
                        table::windows(blocks).map(|(name, table)| self.table(name, number, table));
                    let activation = self.activation(blocks.activation());
                    let (inputs, outputs, tables) =
                        (blocks.inputs(), blocks.outputs(), tables.join(", "));
                    format!(
                        "Layer::Blocks(checked(Blocks::new({inputs}, {outputs}, {tables}, {activation})))"
                    )
                }
                model::Layer::Sum(sum) => format!("Layer::Sum({})", self.sum(sum, number)),
                _ => return Err(unknown_layer()),
            };
            self.layers.push(made);
        }
        let mut out = self.front(&head.title(network));
        out += &constants(head);
        if let Classes::From(threshold) = head.classes {
            out += "/// The least output that is class 1.\n";
            out += &format!("pub const THRESHOLD: f32 = {};\n", float(threshold));
        }
        out += &format!(
            "/// Numbers between layers.\nconst SCRATCH: usize = {};\n\n",
            model.scratch_len()
        );
        out += &self.tables;
        out += &self.chain("&LAYERS");
        out += &predict("f32", "f32", ["[0.0; OUTPUTS]", "[0.0; SCRATCH]"]);
        out += &match head.classes {
            Classes::None => String::new(),
            Classes::From(_) => classify("usize::from(predict(x)[0] >= THRESHOLD)", "f32"),
            Classes::Largest => classify("tamis::learn::loss::best(&predict(x))", "f32"),
        };
        Ok(out)
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

/// The function that gives the class.
fn classify(class: &str, of: &str) -> String {
    format!(
        "\n/// The class of one row.\n#[must_use]\npub fn classify(x: &[{of}; INPUTS]) -> usize {{\n    {class}\n}}\n"
    )
}

/// A layer of a later version.
pub(super) fn unknown_layer() -> Error {
    Error::new("the model has a layer that this program cannot export").help("update tamis")
}

/// Inputs and outputs, as every module has them.
fn constants(head: &Head) -> String {
    format!(
        "/// Numbers in one input row.\npub const INPUTS: usize = {};\n\
         /// Numbers in one prediction.\npub const OUTPUTS: usize = {};\n",
        head.inputs, head.outputs
    )
}

/// The same, and what the integers stand for.
pub(super) fn scaled(head: &Head, scales: Scales) -> String {
    let mut out = constants(head);
    out += &format!(
        "/// A byte `q` of an input stands for `INPUT_SCALE * (q - INPUT_ZERO)`.\n\
         pub const INPUT_SCALE: f32 = {};\n\
         /// The byte that stands for 0.\n\
         pub const INPUT_ZERO: u8 = {};\n\
         /// An output `y` stands for `OUTPUT_SCALE * y`.\n\
         pub const OUTPUT_SCALE: f32 = {};\n",
        float(scales.input()),
        scales.zero,
        float(scales.output())
    );
    if let Classes::From(_) = head.classes {
        out += "/// The least output that is class 1.\n";
        out += &format!("pub const THRESHOLD: i32 = {};\n", scales.threshold);
    }
    out
}
