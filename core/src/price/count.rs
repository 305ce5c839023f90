//! What kernels count in a layer, and what a prediction takes besides them.

use super::{Core, Kernel, Numbers};
use crate::model::{Activation, Blocks, Csr, Layer, WINDOW, windows};
use crate::quantised::{self, Encoding, Weights};

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

pub(super) fn cost(counts: &[u64], prices: &[u32]) -> u64 {
    let products = counts.iter().zip(prices).map(|(&count, &price)| count.saturating_mul(price.into()));
    products.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

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
