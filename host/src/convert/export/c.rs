//! C99: a header, and one file with the tables and the kernels that they need.

use tamis::infer::model::{self, Activation};
use tamis::infer::quantised;

use super::head::{Classes, Files, Head, Network, unknown_layer};
use super::table::{self, Table, c_float, c_integer};
use crate::{Error, Result};

/// Without it floats would not be bit-identical; GCC asks for a pragma of its own.
const UNFUSED: &str = "
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize(\"fp-contract=off\")
#endif
";

/// Every kernel as its name and its text, in the order in which they are written.
fn kernels() -> impl Iterator<Item = (&'static str, &'static str)> {
    include_str!("kernels.c").split("\n//// ").skip(1).filter_map(|section| {
        let (name, about) = section.split_once('\n')?;
        about.split_once("////").map(|(_, text)| (name, text))
    })
}

#[derive(Default)]
struct Source {
    /// Names of the kernels that the body calls.
    kernels: Vec<&'static str>,
    tables: String,
    bytes: usize,
    body: String,
}

/// What functions and macros are called, and the types of outputs and inputs.
struct Names<'a> {
    name: &'a str,
    upper: String,
    number: &'static str,
    of: &'static str,
}

pub(super) fn files(
    network: Network<'_>,
    head: &Head,
    name: &str,
    header: &str,
) -> Result<(Files, usize)> {
    if !header.chars().all(|c: char| c.is_ascii_alphanumeric() || "_-.+".contains(c)) {
        return Err(Error::new("the header would have a name that C cannot include everywhere")
            .mismatch("letters, digits and _ - . +", format_args!("{header:?}"))
            .help("choose another name for the output"));
    }
    let mut source = Source::default();
    let (number, of) = match network {
        Network::Integers(model) => {
            source.integers(model);
            ("int32_t", "uint8_t")
        }
        Network::Floats(model) => {
            source.floats(model)?;
            ("float", "float")
        }
    };
    let upper = name.to_uppercase();
    let title = head.title(network);
    let unfused = if number == "float" { UNFUSED } else { "" };
    let mut text = format!(
        "/*\n * {title}\n *\n * Exported by tamis: export it again rather than edit it. C99, \
         without libraries and without a heap.\n */\n#include \"{header}.h\"\n{unfused}"
    );
    // The type of pairs stands before the tables, functions behind them.
    for (name, kernel) in kernels() {
        if name == "zeros" {
            text += &format!("\n{}", source.tables);
            text += kernels().find(|(name, _)| *name == "alone").map_or("", |(_, text)| text);
        }
        if source.kernels.contains(&name) {
            text += kernel;
        }
    }
    let names = Names { name, upper, number, of };
    let Names { upper, .. } = &names;
    text += &format!(
        "\nvoid {name}_predict(const {of} x[{upper}_INPUTS], {number} y[{upper}_OUTPUTS])\n\
         {{\n{}}}\n",
        source.body
    );
    text += &classify(head, &names);
    let header = header_text(network, head, &names, &title);
    let files = vec![("c", text.into_bytes()), ("h", header.into_bytes())];
    Ok((files, source.bytes))
}

/// Bytes of activations on the stack of a model of floats.
pub(super) fn scratch_bytes(model: &model::Model<'_>) -> usize {
    4 * hidden(model).iter().map(model::Layer::outputs).sum::<usize>()
}

/// The layers whose outputs are none of the model.
fn hidden<'m, 'a>(model: &'m model::Model<'a>) -> &'m [model::Layer<'a>] {
    model.layers().split_last().map_or(&[], |(_, hidden)| hidden)
}

fn header_text(network: Network<'_>, head: &Head, names: &Names<'_>, title: &str) -> String {
    let Names { name, upper, number, of } = names;
    let mut out = format!(
        "/*\n * {title}\n *\n * Exported by tamis: export it again rather than edit it.\n */\n\
         #ifndef {upper}_H\n#define {upper}_H\n\n#include <stdint.h>\n\n\
         /* Numbers in one input row. */\n#define {upper}_INPUTS {}\n\
         /* Numbers in one prediction. */\n#define {upper}_OUTPUTS {}\n",
        head.cost.inputs, head.cost.outputs
    );
    if let Network::Integers(model) = network {
        let (scales, output) = (model.scales(), c_float(model.scales().output()));
        if model.readings().columns().is_none() {
            out += &format!(
                "/* A byte q of an input stands for INPUT_SCALE * (q - INPUT_ZERO), an output y for \
                 OUTPUT_SCALE * y. */\n#define {upper}_INPUT_SCALE {}\n\
                 #define {upper}_INPUT_ZERO {}\n",
                c_float(scales.input()),
                scales.zero,
            );
        } else {
            out += "/* An output y stands for OUTPUT_SCALE * y. */\n";
        }
        out += &format!("#define {upper}_OUTPUT_SCALE {output}\n");
    }
    if let Classes::From(threshold) = head.classes {
        let threshold = match network {
            Network::Integers(model) => c_integer(model.scales().threshold),
            Network::Floats(_) => format!("({})", c_float(threshold)),
        };
        out += "/* The least output that is class 1. */\n";
        out += &format!("#define {upper}_THRESHOLD {threshold}\n");
    }
    out += &format!(
        "\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n\
         /* The outputs on one row. */\n\
         void {name}_predict(const {of} x[{upper}_INPUTS], {number} y[{upper}_OUTPUTS]);\n"
    );
    if head.classes != Classes::None {
        out += "\n/* The class of one row. */\n";
        out += &format!("uint32_t {name}_classify(const {of} x[{upper}_INPUTS]);\n");
    }
    if let Network::Integers(model) = network {
        out += &quantize(model, names);
    }
    out + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n"
}

/// The functions that make bytes of readings, with the rounding of the crate.
fn quantize(model: &quantised::Model<'_>, Names { name, upper, .. }: &Names<'_>) -> String {
    let (tables, scale, zero) = match model.readings().columns() {
        None => {
            let own = |what| format!("{upper}_INPUT_{what}");
            ("    (void)column;\n".to_owned(), own("SCALE"), own("ZERO"))
        }
        Some(columns) => {
            let tables =
                Table::F32(columns.scales()).c("scales") + &Table::I32(columns.zeros()).c("zeros");
            let tables = tables.replace("static const", "    static const");
            (tables, "scales[column]".into(), "zeros[column]".into())
        }
    };
    format!(
        "\n/* The byte of a reading of one input: rounded, halves away from 0, and cut to 0 to 255.\n\
         \x20* A byte q stands for scale * (q - zero). Readings of up to 24 bits are floats without rounding. */\n\
         static inline uint8_t {name}_quantize(uint32_t column, float reading)\n{{\n{tables}\
         \x20   float steps = reading / {scale};\n\
         \x20   if (steps > -8388608.0f && steps < 8388608.0f) {{\n\
         \x20       const float whole = (float)(int32_t)steps;\n\
         \x20       const float rest = steps - whole;\n\
         \x20       steps = whole + (rest >= 0.5f ? 1.0f : rest <= -0.5f ? -1.0f : 0.0f);\n\
         \x20   }} else if (steps != steps) {{\n        steps = 0.0f;\n    }}\n\
         \x20   steps += (float){zero};\n\
         \x20   return (uint8_t)(steps < 0.0f ? 0.0f : steps > 255.0f ? 255.0f : steps);\n}}\n\
         \n/* The bytes of one row of readings. */\n\
         static inline void {name}_quantize_input(const float x[{upper}_INPUTS], uint8_t q[{upper}_INPUTS])\n{{\n\
         \x20   for (uint32_t k = 0; k < {upper}_INPUTS; k++) {{\n\
         \x20       q[k] = {name}_quantize(k, x[k]);\n    }}\n}}\n"
    )
}

fn classify(head: &Head, Names { name, upper, number, of }: &Names<'_>) -> String {
    let class = match head.classes {
        Classes::None => return String::new(),
        Classes::From(_) => format!("    return y[0] >= {upper}_THRESHOLD ? 1u : 0u;\n"),
        Classes::Largest => format!(
            "    uint32_t best = 0;\n\
             \x20   for (uint32_t k = 1; k < {upper}_OUTPUTS; k++) {{\n\
             \x20       best = y[k] > y[best] ? k : best;\n    }}\n    return best;\n"
        ),
    };
    format!(
        "\nuint32_t {name}_classify(const {of} x[{upper}_INPUTS])\n\
         {{\n    {number} y[{upper}_OUTPUTS];\n    {name}_predict(x, y);\n{class}}}\n"
    )
}

impl Source {
    fn call(&mut self, kernel: &'static str, statement: &str) {
        debug_assert!(kernels().any(|(name, _)| name == kernel), "no kernel {kernel}");
        self.kernels.push(kernel);
        self.body += &format!("    {statement};\n");
    }

    fn table(&mut self, name: &str, layer: usize, table: Table<'_>) -> String {
        let name = format!("{name}_{layer}");
        self.tables += &table.c(&name);
        self.bytes += table.bytes();
        name
    }

    /// Declares an array between layers; C has none without elements.
    fn array(&mut self, kind: &str, name: &str, len: usize) {
        self.body += &format!("    {kind} {name}[{}];\n", len.max(1));
    }

    fn integers(&mut self, model: &quantised::Model<'_>) {
        let hidden = model.layers().len() - usize::from(model.sum().is_none());
        let widest = model.layers()[..hidden].iter().map(quantised::Layer::outputs).max();
        if let Some(widest) = widest {
            self.array("int32_t", "sums", widest);
            self.array("uint8_t", "bytes", widest);
        }
        for (at, layer) in model.layers().iter().enumerate() {
            let from = if at == 0 { "x" } else { "bytes" };
            let to = if at < hidden { "sums" } else { "y" };
            let n = layer.outputs();
            if layer.bias().is_empty() {
                self.call("zeros", &format!("zeros({to}, {n})"));
            } else {
                let biases = self.table("biases", at + 1, Table::I32(layer.bias()));
                self.call("start", &format!("start({to}, {biases}, {n})"));
            }
            let (kind, tables) = table::weights(layer.weights());
            let tables = tables.into_iter().map(|(name, own)| self.table(name, at + 1, own));
            let tables: Vec<_> = tables.collect();
            let (inputs, tables) = (layer.inputs(), tables.join(", "));
            let (kernel, beside) = match kind {
                "Dense" => ("dense", None),
                "Mask" => ("mask", Some("lowest")),
                _ => ("blocks", Some("pair")),
            };
            self.kernels.extend(beside);
            self.kernels.push("product");
            self.call(kernel, &format!("{kernel}({from}, {inputs}, {tables}, {to}, {n})"));
            let step = usize::from(layer.rescale().len() > 1);
            if !layer.rescale().is_empty() {
                self.kernels.push("scaled");
                let factors = self.table("factors", at + 1, Table::U32(layer.rescale()));
                if at < hidden {
                    self.call("cut", &format!("cut(sums, {factors}, {step}, bytes, {n})"));
                } else {
                    self.call("scale", &format!("scale(y, {factors}, {step}, {n})"));
                }
            }
            if at >= hidden && layer.activation() == Activation::Relu {
                self.call("relu", &format!("relu(y, {n})"));
            }
        }
        if let Some(sum) = model.sum() {
            let signs = self.table("signs", model.layers().len() + 1, Table::U32(sum.signs()));
            self.call("sum", &format!("y[0] = signed_sum({signs}, bytes, {})", sum.inputs()));
        }
    }

    fn floats(&mut self, model: &model::Model<'_>) -> Result<()> {
        for (at, layer) in hidden(model).iter().enumerate() {
            self.array("float", &format!("h_{}", at + 1), layer.outputs());
        }
        let last = model.layers().len();
        for (at, layer) in model.layers().iter().enumerate() {
            let from = if at == 0 { "x".into() } else { format!("h_{at}") };
            let to = if at + 1 == last { "y".into() } else { format!("h_{}", at + 1) };
            match layer {
                model::Layer::Csr(csr) => {
                    let tables = table::rows(csr).map(|(name, own)| self.table(name, at + 1, own));
                    let (n, tables) = (csr.outputs(), tables.join(", "));
                    if csr.biases().is_empty() {
                        self.call("float_rows", &format!("rows({from}, {tables}, {to}, {n})"));
                    } else {
                        let biases = self.table("biases", at + 1, Table::F32(csr.biases()));
                        let call = format!("biased_rows({from}, {tables}, {biases}, {to}, {n})");
                        self.call("float_biased_rows", &call);
                    }
                    if csr.activation() == Activation::Relu {
                        self.call("float_relu", &format!("relu({to}, {n})"));
                    }
                }
                model::Layer::Sum(sum) => {
                    let signs = self.table("signs", at + 1, Table::U32(sum.signs()));
                    let n = sum.inputs();
                    self.call("float_sum", &format!("y[0] = signed_sum({signs}, {from}, {n})"));
                }
                _ => return Err(unknown_layer()),
            }
        }
        Ok(())
    }
}
