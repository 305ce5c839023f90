//! What a prediction takes on each kind of part: instructions, code and stack, from a table that was measured.
//!
//! A layer is described by what its kernel counts ([`Work`]): outputs, weights, full groups of an unrolled loop, windows. Its
//! instructions are `sum_k price_k count_k`, with one price for each count, [`Kernel`] and [`Core`]. What a model needs besides
//! its kernels, from the checks of the lengths to the fixed-point factors, is counted the same way ([`Around`]).
//!
//! The table is made by `cargo ci costs`, which counts instructions in an emulator and fits the prices; `cargo ci qemu` holds it
//! to models that were not in the fit. Prices are whole thousandths of an instruction, so nothing here needs a float.
//!
//! The first weight of a row is counted with the row, since a row without weights is passed by, and routines for floats add to
//! 0 quickly. A full group of k weights of a sparse layer is counted as k - 1 weights and one group. Thus no weight is counted
//! twice, and a further weight never takes less. Of a dense layer all weights are there: fours are counted, and what is left of
//! each row, the first weight of it apart.

mod table;
pub mod ways;

use crate::model::{Activation, Blocks, Csr, Layer, WINDOW, windows};
use crate::quantised::{self, Encoding, Weights};

/// Parts of an instruction that prices are given in.
pub const PER_INSTRUCTION: u64 = 1000;

/// A kind of processor with the instruction set that firmware for it is compiled to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Core {
    /// `thumbv6m`, as of a Cortex-M0 or M0+.
    CortexM0,
    /// `thumbv7m`.
    CortexM3,
    /// `thumbv7em` with a float unit.
    CortexM4F,
    /// The code of a Cortex-M4F.
    CortexM7,
    /// `thumbv8m.main` with a float unit.
    CortexM33,
    /// `riscv32imac`, as of cores without atomics too.
    Rv32imac,
}

impl Core {
    /// Every one of them, the smallest first.
    pub const ALL: [Self; 6] =
        [Self::CortexM0, Self::CortexM3, Self::CortexM4F, Self::CortexM7, Self::CortexM33, Self::Rv32imac];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CortexM0 => "Cortex-M0",
            Self::CortexM3 => "Cortex-M3",
            Self::CortexM4F => "Cortex-M4F",
            Self::CortexM7 => "Cortex-M7",
            Self::CortexM33 => "Cortex-M33",
            Self::Rv32imac => "RV32IMAC",
        }
    }

    /// Whether floats are computed by the processor, and not by routines of about a hundred instructions.
    #[must_use]
    pub const fn has_floats(self) -> bool {
        matches!(self, Self::CortexM4F | Self::CortexM7 | Self::CortexM33)
    }

    const fn prices(self) -> &'static Prices {
        let [m0, m3, m4f, m7, m33, rv32imac] = &table::TABLE;
        match self {
            Self::CortexM0 => m0,
            Self::CortexM3 => m3,
            Self::CortexM4F => m4f,
            Self::CortexM7 => m7,
            Self::CortexM33 => m33,
            Self::Rv32imac => rv32imac,
        }
    }
}

/// What a model computes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// 32-bit floats.
    Floats,
    /// 8-bit integers.
    Integers,
}

/// How a program has a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Way {
    /// It reads the file in place when it starts: [`include_model!`](crate::include_model).
    File,
    /// The compiler has read the file: [`embed_model!`](crate::embed_model), [`embed_quantised!`](crate::embed_quantised).
    Embedded,
    /// A module of tables, of `tamis export --format rust`.
    Rust,
    /// A module without tables, of `tamis export --format rust --straight-line`; of models of integers.
    Straight,
    /// Tables of C, of `tamis export --format c`, compiled by GCC with `-O2`.
    C,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::File, Self::Embedded, Self::Rust, Self::Straight, Self::C];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Embedded => "embedded",
            Self::Rust => "rust",
            Self::Straight => "straight",
            Self::C => "c",
        }
    }

    /// Flash and RAM are upper bounds, not estimates: how a compiler orders code without tables depends on all of its numbers.
    #[must_use]
    pub const fn is_bound(self) -> bool {
        matches!(self, Self::Straight)
    }
}

/// What runs a layer: one kernel for floats, and one for each encoding of integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kernel {
    /// A sparse layer of floats on rows of floats.
    Floats,
    /// The same right under a sum, which adds what rows give without a scratch.
    SummedFloats,
    /// Rows behind a hidden layer: about half of what they read is 0, which routines for floats multiply faster by.
    HiddenFloats,
    /// A sparse layer of floats in windows of columns on rows of at least one window.
    Windows,
    /// The same code behind a hidden layer.
    HiddenWindows,
    /// A layer in windows on rows shorter than one, which are read number by number.
    ShortWindows,
    /// The same code behind a hidden layer.
    HiddenShortWindows,
    /// A plain loop over all weights as floats, to compare with; no model file holds one.
    DenseFloats,
    /// A layer of integers.
    Integers(Encoding),
}

impl Kernel {
    /// How many there are.
    pub const COUNT: usize = Self::OF_FLOATS.len() + Encoding::ALL.len();

    /// Those of floats.
    const OF_FLOATS: [Self; 8] = [
        Self::Floats,
        Self::SummedFloats,
        Self::HiddenFloats,
        Self::Windows,
        Self::HiddenWindows,
        Self::ShortWindows,
        Self::HiddenShortWindows,
        Self::DenseFloats,
    ];

    /// Every one of them.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::OF_FLOATS.into_iter().chain(Encoding::ALL.map(Self::Integers))
    }

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Floats => "f32 rows",
            Self::SummedFloats => "f32 rows under a sum",
            Self::HiddenFloats => "f32 rows behind a hidden layer",
            Self::Windows => "f32 windows",
            Self::HiddenWindows => "f32 windows behind a hidden layer",
            Self::ShortWindows => "f32 short window",
            Self::HiddenShortWindows => "f32 short window behind a hidden layer",
            Self::DenseFloats => "f32 dense",
            Self::Integers(encoding) => encoding.name(),
        }
    }

    /// What it computes with.
    #[must_use]
    pub const fn numbers(self) -> Numbers {
        match self {
            Self::Integers(_) => Numbers::Integers,
            _ => Numbers::Floats,
        }
    }

    /// Whether it is the code of another behind a hidden layer, and never runs alone.
    #[must_use]
    pub const fn is_hidden(self) -> bool {
        matches!(self, Self::HiddenFloats | Self::HiddenWindows | Self::HiddenShortWindows)
    }

    /// The kernel whose code it has: rows have one, and windows.
    #[must_use]
    pub const fn code(self) -> Self {
        match self {
            Self::SummedFloats | Self::HiddenFloats => Self::Floats,
            Self::HiddenWindows | Self::ShortWindows | Self::HiddenShortWindows => Self::Windows,
            other => other,
        }
    }

    /// What runs the layer of floats at a place of a model; `None` of a sum and past the last.
    #[must_use]
    pub fn of_floats(layers: &[Layer<'_>], at: usize) -> Option<Self> {
        Some(match (layers.get(at)?, at) {
            (Layer::Sum(_), _) => return None,
            (Layer::Csr(_), 0) if matches!(layers, [_, Layer::Sum(_)]) => Self::SummedFloats,
            (Layer::Csr(_), 0) => Self::Floats,
            (Layer::Csr(_), _) => Self::HiddenFloats,
            (Layer::Blocks(blocks), 0) if blocks.inputs() < WINDOW => Self::ShortWindows,
            (Layer::Blocks(blocks), _) if blocks.inputs() < WINDOW => Self::HiddenShortWindows,
            (Layer::Blocks(_), 0) => Self::Windows,
            (Layer::Blocks(_), _) => Self::HiddenWindows,
        })
    }

    /// Its place among [`all`](Self::all) and in the table.
    #[must_use]
    pub fn place(self) -> usize {
        Self::all().position(|other| other == self).unwrap_or(0)
    }
}

/// What the counts of all kernels follow from, in one pass over the weights of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shape {
    /// Numbers that the layer takes.
    pub inputs: usize,
    /// Numbers that it gives.
    pub outputs: usize,
    /// Columns that have weights; where the columns are not looked at, all.
    pub used: usize,
    /// Weights.
    pub nonzeros: usize,
    /// Distances that only skip columns.
    pub skips: usize,
    /// Rows that have weights.
    pub filled: usize,
    /// Full fours of weights of a row.
    pub fours: usize,
    /// Full fours of weights of a row in a window of 256 columns.
    pub window_fours: usize,
    /// Full eights of them.
    pub eights: usize,
    /// The row that is being read, its weights, the column behind the last of them, and those of them in the same window.
    row: usize,
    count: usize,
    next: usize,
    run: usize,
}

impl Shape {
    /// A layer of which no weight is known yet.
    #[must_use]
    pub const fn new(inputs: usize, outputs: usize) -> Self {
        let (nonzeros, skips, filled, fours, window_fours, eights) = (0, 0, 0, 0, 0, 0);
        let (row, count, next, run) = (0, 0, 0, 0);
        let used = inputs;
        Self {
            inputs,
            outputs,
            used,
            nonzeros,
            skips,
            filled,
            fours,
            window_fours,
            eights,
            row,
            count,
            next,
            run,
        }
    }

    /// A layer that has all its weights.
    #[must_use]
    pub const fn dense(inputs: usize, outputs: usize) -> Self {
        let last = inputs % WINDOW;
        let window_fours = (inputs / WINDOW).saturating_mul(WINDOW / 4).saturating_add(last / 4);
        let eights = (inputs / WINDOW).saturating_mul(WINDOW / 8).saturating_add(last / 8);
        Self {
            nonzeros: outputs.saturating_mul(inputs),
            filled: if inputs > 0 { outputs } else { 0 },
            fours: outputs.saturating_mul(inputs / 4),
            window_fours: outputs.saturating_mul(window_fours),
            eights: outputs.saturating_mul(eights),
            ..Self::new(inputs, outputs)
        }
    }

    /// The shape of a layer of floats; a sum has no weights.
    #[must_use]
    pub fn of_floats(layer: &Layer<'_>) -> Self {
        match layer {
            Layer::Csr(csr) => Self::of_rows(csr),
            Layer::Blocks(blocks) => Self::of_windows(blocks),
            Layer::Sum(sum) => Self::new(sum.inputs(), 1),
        }
    }

    fn of_rows(csr: &Csr<'_>) -> Self {
        let mut shape = Self::new(csr.inputs(), csr.outputs());
        shape.nonzeros = csr.nonzeros();
        shape.filled = csr.counts().iter().filter(|&&count| count > 0).count();
        shape.fours = csr.counts().iter().map(|&count| usize::from(count) / 4).sum();
        shape
    }

    fn of_windows(blocks: &Blocks<'_>) -> Self {
        let (counts, rows) = (blocks.counts(), blocks.outputs());
        let filled = |row: &usize| counts.iter().skip(*row).step_by(rows).any(|&count| count > 0);
        let mut shape = Self::new(blocks.inputs(), rows);
        shape.nonzeros = blocks.nonzeros();
        shape.filled = (0..rows).filter(filled).count();
        shape.window_fours = counts.iter().map(|&count| usize::from(count) / 4).sum();
        shape
    }

    /// The shape of a layer of integers.
    #[must_use]
    pub fn of_integers(weights: &Weights<'_>) -> Self {
        let mut shape = Self::new(weights.inputs(), weights.outputs());
        weights.entries(&mut |row, column, _| {
            shape.add(row, column);
        });
        if !weights.used().is_empty() {
            shape.used = weights.used().len();
        }
        shape
    }

    /// Counts a weight; rows come in order and columns rise. What is known now of the row: its weights, and those in the same
    /// window of 256 columns.
    pub fn add(&mut self, row: usize, column: u16) -> (usize, usize) {
        if row != self.row {
            (self.row, self.count, self.next, self.run) = (row, 0, 0, 0);
        }
        let column = usize::from(column);
        let same = self.next > 0 && (self.next - 1) / WINDOW == column / WINDOW;
        self.run = if same { self.run + 1 } else { 1 };
        self.skips =
            self.skips.saturating_add(column.saturating_sub(self.next) / usize::from(quantised::SKIP));
        (self.count, self.next) = (self.count + 1, column + 1);
        self.nonzeros = self.nonzeros.saturating_add(1);
        self.filled += usize::from(self.count == 1);
        self.fours += usize::from(self.count.is_multiple_of(4));
        self.window_fours += usize::from(self.run.is_multiple_of(4));
        self.eights += usize::from(self.run.is_multiple_of(8));
        (self.count, self.run)
    }

    /// What a kernel counts in the layer.
    #[must_use]
    pub fn work(&self, kernel: Kernel) -> Work {
        let [inputs, rows, used, n] = [self.inputs, self.outputs, self.used, self.nonzeros].map(|n| n as u64);
        let [skips, filled, fours, window_fours, eights] =
            [self.skips, self.filled, self.fours, self.window_fours, self.eights].map(|n| n as u64);
        let windows = windows(self.inputs) as u64;
        let runs = rows.saturating_mul(windows);
        let further = n.saturating_sub(filled);
        let dense = |width: u64| {
            let (fours, left) = (rows.saturating_mul(width / 4), width % 4);
            let first = if left > 0 { rows } else { 0 };
            [1, rows, first, rows.saturating_mul(left.saturating_sub(1)), fours, 0, 0, 0, 0]
        };
        let sparse = |weights: u64, groups: u64| [1, rows, filled, weights, groups, 0, 0, 0, 0];
        Work(match kernel {
            Kernel::Floats | Kernel::SummedFloats | Kernel::HiddenFloats => {
                sparse(further.saturating_sub(fours), fours)
            }
            Kernel::Windows | Kernel::HiddenWindows => {
                let weights = further.saturating_sub(window_fours);
                [1, runs, filled, weights, window_fours, windows, rows, 0, 0]
            }
            Kernel::ShortWindows | Kernel::HiddenShortWindows => sparse(further, 0),
            Kernel::DenseFloats | Kernel::Integers(Encoding::Dense) => dense(inputs),
            Kernel::Integers(encoding) => match encoding {
                Encoding::Dense => dense(inputs),
                Encoding::DenseUsed => [1, rows, 0, rows.saturating_mul(used), 0, 0, 0, 0, 0],
                Encoding::Mask => sparse(further, rows.saturating_mul(inputs.div_ceil(32))),
                Encoding::MaskUsed => sparse(further, rows.saturating_mul(used.div_ceil(32))),
                Encoding::Csr => sparse(further, 0),
                // Columns are bytes or halves of a word.
                Encoding::Fan if self.inputs <= WINDOW => sparse(0, further),
                Encoding::Fan => sparse(further, 0),
                Encoding::Delta => sparse(further, skips),
                Encoding::Blocks => {
                    let short = u64::from(self.inputs < WINDOW);
                    [1, runs, 0, n.saturating_sub(eights), eights, windows, rows, short, short * inputs]
                }
            },
        })
    }
}

/// What a kernel counts in a layer, one number for each of [`NAMES`](Self::NAMES).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work(pub [u64; Work::COUNT]);

impl Work {
    /// How many counts there are.
    pub const COUNT: usize = 9;

    /// What is counted: the layer itself, rows (of blocks those in each window), rows with weights and with them their first weight,
    /// further weights, groups (fours or eights of weights; words of a bitmask; distances that only skip; of constant
    /// fan-in further weights with columns of a byte), and of blocks windows,
    /// outputs, and, of integers, whether an input row is shorter than a window and so copied, and its bytes.
    pub const NAMES: [&str; Self::COUNT] =
        ["layer", "row", "first weight", "weight", "group", "window", "output", "short row", "copied byte"];

    /// Thousandths of an instruction of the layer.
    #[must_use]
    pub fn price(&self, core: Core, kernel: Kernel) -> u64 {
        let kernel = core.prices().kernels.get(kernel.place());
        kernel.map_or(0, |kernel| cost(&self.0, &kernel.instructions))
    }
}

/// What a prediction takes besides its kernels, one number for each of [`NAMES`](Self::NAMES).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Around(pub [u64; Around::COUNT]);

impl Around {
    /// How many counts there are.
    pub const COUNT: usize = 11;

    /// What is counted: the prediction itself, outputs that become bytes, those of the last layer that are scaled, both once more
    /// where each has a factor of its own, biases, outputs with `ReLU` (of integers those of a last layer), a sum with signs,
    /// and what it adds, and of floats in windows, whose sums lie in memory, `ReLU`,
    /// the sum and what it adds apart.
    pub const NAMES: [&str; Self::COUNT] = [
        "prediction",
        "byte",
        "number",
        "own factor",
        "bias",
        "relu",
        "sum",
        "sign",
        "sum of the scratch",
        "its sign",
        "relu of the scratch",
    ];

    /// The prediction itself, without any layer.
    pub const PREDICTION: Self = Self([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);

    /// Around the layer of floats at a place of a model, or the sum that it is; nothing past the last.
    #[must_use]
    pub fn of_floats(layers: &[Layer<'_>], at: usize) -> Self {
        let before = at.checked_sub(1).and_then(|before| layers.get(before));
        let activation = match layers.get(at) {
            Some(Layer::Csr(csr)) => csr.activation(),
            Some(Layer::Blocks(blocks)) => {
                let relu = if blocks.activation() == Activation::Relu { blocks.outputs() as u64 } else { 0 };
                return Self([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, relu]);
            }
            Some(Layer::Sum(sum)) if matches!(before, Some(Layer::Csr(_))) => {
                return Self::of_sum(sum.inputs());
            }
            Some(Layer::Sum(sum)) => return Self([0, 0, 0, 0, 0, 0, 0, 0, 1, sum.inputs() as u64, 0]),
            None => return Self::default(),
        };
        let outputs = layers.get(at).map_or(0, Layer::outputs);
        Self::of_dense_floats(outputs, activation == Activation::Relu)
    }

    /// Around a plain loop over floats.
    #[must_use]
    pub const fn of_dense_floats(outputs: usize, relu: bool) -> Self {
        Self([0, 0, 0, 0, 0, if relu { outputs as u64 } else { 0 }, 0, 0, 0, 0, 0])
    }

    /// Around a dense layer of integers with one factor if it is hidden.
    #[must_use]
    pub const fn of_dense_integers(outputs: usize, hidden: bool) -> Self {
        Self([0, if hidden { outputs as u64 } else { 0 }, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    }

    /// Around a layer of integers; the `last` one gives sums.
    #[must_use]
    pub fn of_integers(layer: &quantised::Layer<'_>, last: bool) -> Self {
        let outputs = layer.outputs() as u64;
        let numbers = if last && !layer.rescale().is_empty() { outputs } else { 0 };
        let relu = if last && layer.activation() == Activation::Relu { outputs } else { 0 };
        let own = if layer.rescale().len() > 1 { outputs } else { 0 };
        let bytes = if last { 0 } else { outputs };
        Self([0, bytes, numbers, own, layer.bias().len() as u64, relu, 0, 0, 0, 0, 0])
    }

    /// A sum with signs of so many inputs.
    #[must_use]
    pub const fn of_sum(inputs: usize) -> Self {
        Self([0, 0, 0, 0, 0, 0, 1, inputs as u64, 0, 0, 0])
    }

    /// Thousandths of an instruction.
    #[must_use]
    pub fn price(&self, core: Core, numbers: Numbers) -> u64 {
        cost(&self.0, &core.prices().of(numbers).instructions)
    }
}

fn cost(counts: &[u64], prices: &[u32]) -> u64 {
    let products = counts.iter().zip(prices).map(|(&count, &price)| count.saturating_mul(price.into()));
    products.fold(0, u64::saturating_add)
}

/// Bytes of code and stack that a model takes on a part, by what runs it.
impl Core {
    /// Bytes of flash of a program that does nothing: start-up code and vectors.
    #[must_use]
    pub const fn startup_bytes(self) -> u32 {
        self.prices().startup
    }

    /// Bytes of code of a plain loop over dense floats.
    #[must_use]
    pub(crate) const fn plain_code_bytes(self) -> u32 {
        self.prices().plain
    }

    /// Bytes of stack, from the caller's frame on, of reading a model file with a layer for this kernel and predicting; buffers of
    /// the caller are not in it.
    #[must_use]
    pub fn stack_bytes(self, kernel: Kernel) -> u32 {
        self.prices().kernels.get(kernel.place()).map_or(0, |kernel| kernel.stack)
    }

    /// The same of predicting alone, with a model that the compiler has read.
    #[must_use]
    pub fn module_stack_bytes(self, kernel: Kernel) -> u32 {
        self.prices().kernels.get(kernel.place()).map_or(0, |kernel| kernel.alone)
    }
}

/// Everything measured of one kind of part.
#[derive(Debug)]
struct Prices {
    startup: u32,
    /// Code of a plain loop over dense floats.
    plain: u32,
    ways: ways::Ways,
    floats: Frame,
    integers: Frame,
    kernels: [Price; Kernel::COUNT],
}

impl Prices {
    const fn of(&self, numbers: Numbers) -> &Frame {
        match numbers {
            Numbers::Floats => &self.floats,
            Numbers::Integers => &self.integers,
        }
    }
}

/// What every model of its numbers has: prices of [`Around`].
#[derive(Debug)]
struct Frame {
    instructions: [u32; Around::COUNT],
}

/// Prices of [`Work`], and bytes of stack with everything that reading and predicting takes, and of predicting alone.
#[derive(Debug)]
struct Price {
    instructions: [u32; Work::COUNT],
    stack: u32,
    alone: u32,
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn kernels_have_places_of_their_own() {
        let places: Vec<usize> = Kernel::all().map(Kernel::place).collect();
        assert_eq!(places, (0..Kernel::COUNT).collect::<Vec<_>>());
    }

    #[test]
    fn every_kernel_has_a_price_on_every_part() {
        for core in Core::ALL {
            for kernel in Kernel::all() {
                let work = Shape::dense(100, 10).work(kernel);
                assert!(work.price(core, kernel) > 1000 * PER_INSTRUCTION, "{core:?} {kernel:?}");
                assert!(core.stack_bytes(kernel) > 0, "{core:?} {kernel:?}");
            }
            for numbers in [Numbers::Floats, Numbers::Integers] {
                assert!(core.file_code_bytes(numbers) > 1000, "{core:?}");
            }
        }
    }

    #[test]
    fn counts_are_those_of_the_loops() {
        // Rows of 9 weights in columns 0 to 8, and of one in column 700.
        let mut shape = Shape::new(784, 2);
        (0..9).for_each(|column| {
            shape.add(0, column);
        });
        assert_eq!(shape.add(1, 700), (1, 1));
        assert_eq!((shape.nonzeros, shape.fours, shape.eights, shape.skips), (10, 2, 1, 2));
        assert_eq!(shape.window_fours, 2);
        let work = |kernel| shape.work(kernel).0;
        assert_eq!(work(Kernel::Floats), [1, 2, 2, 6, 2, 0, 0, 0, 0]);
        assert_eq!(work(Kernel::Windows), [1, 8, 2, 6, 2, 4, 2, 0, 0]);
        assert_eq!(work(Kernel::HiddenShortWindows), [1, 2, 2, 8, 0, 0, 0, 0, 0]);
        assert_eq!(work(Kernel::DenseFloats), [1, 2, 0, 0, 392, 0, 0, 0, 0]);
        assert_eq!(work(Kernel::Integers(Encoding::Mask)), [1, 2, 2, 8, 50, 0, 0, 0, 0]);
        assert_eq!(work(Kernel::Integers(Encoding::Delta)), [1, 2, 2, 8, 2, 0, 0, 0, 0]);
        assert_eq!(work(Kernel::Integers(Encoding::Blocks)), [1, 8, 0, 9, 1, 4, 2, 0, 0]);
        let short = Shape::dense(30, 2).work(Kernel::Integers(Encoding::Blocks)).0;
        assert_eq!(short.get(5..), Some(&[1, 2, 1, 30][..]));
    }

    #[test]
    fn the_largest_counts_do_not_overflow() {
        let most = Shape::dense(usize::MAX, usize::MAX);
        for kernel in Kernel::all() {
            let _ = most.work(kernel).price(Core::CortexM0, kernel);
        }
        assert_eq!(Work([u64::MAX; Work::COUNT]).price(Core::CortexM0, Kernel::Floats), u64::MAX);
    }
}
