//! C99: a header, and one file with the tables and the kernels that they need.

use tamis::infer::model::{self, Activation};
use tamis::infer::quantised::{self, Weights};

use super::rust::unknown_layer;
use super::table::{self, Table, c_float, c_integer};
use super::{Classes, Files, Head, Network, kernels};
use crate::{Error, Result};

/// With products and sums fused the last bits of floats would differ; GCC asks for a pragma of its
/// own.
const UNFUSED: &str = "
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize(\"fp-contract=off\")
#endif
";

/// The file being written.
#[derive(Default)]
struct Source {
    kernels: Vec<&'static str>,
    tables: String,
    bytes: usize,
    /// Statements of the prediction.
    body: String,
}

/// The texts of `.c` and `.h`, and the bytes of the tables.
pub(super) fn files(
    network: Network<'_>,
    head: &Head,
    name: &str,
    header: &str,
) -> Result<(Files, usize)> {
    let header_is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.+".contains(c);
    if !header.chars().all(header_is_plain) {
        return Err(Error::new("the header would have a name that C cannot include everywhere")
            .expected("letters, digits and _ - . +")
            .got(format_args!("{header:?}"))
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
    let mut text = format!(
        "/*\n * {title}\n *\n * Exported by tamis: export it again rather than edit it. C99, without libraries and without a heap.\n */\n\
         #include \"{header}.h\"\n"
    );
    if let Network::Floats(_) = network {
        text += UNFUSED;
    }
    let wanted = |kernel: &&str| source.kernels.contains(kernel);
    // The type of pairs stands before the tables, functions behind them.
    for kernel in
        kernels::ALL.iter().copied().filter(wanted).filter(|kernel| *kernel == kernels::PAIR)
    {
        text += kernel;
    }
    text.push('\n');
    text += &source.tables;
    text += kernels::ALONE;
    for kernel in
        kernels::ALL.iter().copied().filter(wanted).filter(|kernel| *kernel != kernels::PAIR)
    {
        text += kernel;
    }
    text += &format!(
        "\nvoid {name}_predict(const {of} x[{upper}_INPUTS], {number} y[{upper}_OUTPUTS])\n{{\n{}}}\n",
        source.body
    );
    text += &classify(head, name, &upper, number, of);
    let header = header_text(network, head, name, &upper, &title, number, of);
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

fn header_text(
    network: Network<'_>,
    head: &Head,
    name: &str,
    upper: &str,
    title: &str,
    number: &str,
    of: &str,
) -> String {
    let mut out = format!(
        "/*\n * {title}\n *\n * Exported by tamis: export it again rather than edit it.\n */\n\
         #ifndef {upper}_H\n#define {upper}_H\n\n#include <stdint.h>\n\n\
         /* Numbers in one input row. */\n#define {upper}_INPUTS {}\n\
         /* Numbers in one prediction. */\n#define {upper}_OUTPUTS {}\n",
        head.inputs, head.outputs
    );
    if let Network::Integers(model) = network {
        let scales = model.scales();
        out += &format!(
            "/* A byte q of an input stands for INPUT_SCALE * (q - INPUT_ZERO), an output y for OUTPUT_SCALE * y. */\n\
             #define {upper}_INPUT_SCALE {}\n#define {upper}_INPUT_ZERO {}\n#define {upper}_OUTPUT_SCALE {}\n",
            c_float(scales.input()),
            scales.zero,
            c_float(scales.output())
        );
    }
    if let Classes::From(threshold) = head.classes {
        let threshold = match network {
            Network::Integers(model) => c_integer(model.scales().threshold),
            Network::Floats(_) => format!("({})", c_float(threshold)),
        };
        out += &format!(
            "/* The least output that is class 1. */\n#define {upper}_THRESHOLD {threshold}\n"
        );
    }
    out += &format!(
        "\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n\
         /* The outputs on one row. */\n\
         void {name}_predict(const {of} x[{upper}_INPUTS], {number} y[{upper}_OUTPUTS]);\n"
    );
    if head.classes != Classes::None {
        out += &format!(
            "\n/* The class of one row. */\nuint32_t {name}_classify(const {of} x[{upper}_INPUTS]);\n"
        );
    }
    out + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n"
}

fn classify(head: &Head, name: &str, upper: &str, number: &str, of: &str) -> String {
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
        "\nuint32_t {name}_classify(const {of} x[{upper}_INPUTS])\n{{\n    {number} y[{upper}_OUTPUTS];\n\
         \x20   {name}_predict(x, y);\n{class}}}\n"
    )
}

impl Source {
    fn need(&mut self, kernel: &'static str) {
        self.kernels.push(kernel);
    }

    /// Adds a table; its name.
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
                self.need(kernels::ZEROS);
                self.body += &format!("    zeros({to}, {n});\n");
            } else {
                self.need(kernels::START);
                let biases = self.table("biases", at + 1, Table::I32(layer.bias()));
                self.body += &format!("    start({to}, {biases}, {n});\n");
            }
            self.weights(at + 1, layer, from, to);
            let step = usize::from(layer.rescale().len() > 1);
            if !layer.rescale().is_empty() {
                self.need(kernels::SCALED);
                let factors = self.table("factors", at + 1, Table::U32(layer.rescale()));
                let call = if at < hidden {
                    self.need(kernels::CUT);
                    format!("    cut(sums, {factors}, {step}, bytes, {n});\n")
                } else {
                    self.need(kernels::SCALE);
                    format!("    scale(y, {factors}, {step}, {n});\n")
                };
                self.body += &call;
            }
            if at >= hidden && layer.activation() == Activation::Relu {
                self.need(kernels::RELU);
                self.body += &format!("    relu(y, {n});\n");
            }
        }
        if let Some(sum) = model.sum() {
            self.need(kernels::SUM);
            let signs = self.table("signs", model.layers().len() + 1, Table::U32(sum.signs()));
            self.body += &format!("    y[0] = signed_sum({signs}, bytes, {});\n", sum.inputs());
        }
    }

    /// The tables of a layer, and the call of its kernel.
    fn weights(&mut self, number: usize, layer: &quantised::Layer<'_>, from: &str, to: &str) {
        let weights = layer.weights();
        let tables: Vec<_> = table::weights(weights)
            .into_iter()
            .map(|(name, table)| self.table(name, number, table))
            .collect();
        let (inputs, tables) = (layer.inputs(), tables.join(", "));
        let (kernel, call) = match weights {
            Weights::Dense(_) => (kernels::DENSE, format!("dense({from}, {inputs}, {tables}")),
            Weights::Mask(_) => {
                self.need(kernels::LOWEST);
                (kernels::MASK, format!("mask({from}, {inputs}, {tables}"))
            }
            _ => {
                self.need(kernels::PAIR);
                (kernels::BLOCKS, format!("blocks({from}, {inputs}, {tables}"))
            }
        };
        self.need(kernels::PRODUCT);
        self.need(kernel);
        self.body += &format!("    {call}, {to}, {});\n", layer.outputs());
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
                    self.need(kernels::FLOAT_ROWS);
                    let tables =
                        table::rows(csr).map(|(name, table)| self.table(name, at + 1, table));
                    let n = csr.outputs();
                    self.body += &format!("    rows({from}, {}, {to}, {n});\n", tables.join(", "));
                    if csr.activation() == Activation::Relu {
                        self.need(kernels::FLOAT_RELU);
                        self.body += &format!("    relu({to}, {n});\n");
                    }
                }
                model::Layer::Sum(sum) => {
                    self.need(kernels::FLOAT_SUM);
                    let signs = self.table("signs", at + 1, Table::U32(sum.signs()));
                    self.body +=
                        &format!("    y[0] = signed_sum({signs}, {from}, {});\n", sum.inputs());
                }
                _ => return Err(unknown_layer()),
            }
        }
        Ok(())
    }
}
