//! Bytes of code and stack of a model in each way of deploying it, as linkers and painted stacks have them.
//!
//! A model that the compiler has read links what its set of kernels needs, whatever its numbers are. So code is measured of
//! every set of floats, and of integers of every kernel and every two of them together; more of them add up.

use super::{Core, Numbers, Way};
use crate::model::{self, WINDOW};
use crate::model::Activation;
use crate::quantised::{self, Encoding, Weights};

/// Bytes of code, and of stack besides the scratch and the prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bytes {
    /// Code.
    pub code: u32,
    /// Stack, from the caller's frame on.
    pub stack: u32,
}

/// Sets of kernels of floats that have code of their own.
pub const FLOAT_SETS: usize = 16;
/// Kernels of integers: an encoding with or without listed inputs, and blocks on rows of at least a window or on shorter ones.
pub const INTEGER_KINDS: usize = 8;
/// Sets of one of them or two.
pub const INTEGER_SETS: usize = INTEGER_KINDS * (INTEGER_KINDS + 1) / 2;
/// What a chain of integers may have besides: biases, a last layer with factors, one with `ReLU`, a sum, and no hidden layer.
pub const BESIDES: usize = 5;
/// What is counted for code without tables, see [`Straight`].
pub const STRAIGHT: usize = 15;
/// What is counted for code of C, see [`c_integers`] and [`c_floats`].
pub const C: usize = 18;

/// Everything measured of one kind of part.
#[derive(Debug)]
pub(super) struct Ways {
    /// Chains of floats, code and stack.
    pub(super) floats: [[u16; 2]; FLOAT_SETS],
    /// Files of floats: rows under a sum, windows on short rows only, all others.
    pub(super) float_file: [[u16; 2]; 3],
    /// Chains of integers with a hidden layer.
    pub(super) integers: [[u16; 2]; INTEGER_SETS],
    /// What they have besides.
    pub(super) besides: [[i16; 2]; BESIDES],
    /// Files of integers.
    pub(super) integer_file: [u16; 2],
    /// Thousandths of a byte of code and of all RAM for each count of code without tables.
    pub(super) straight: [[u32; STRAIGHT]; 2],
    /// Thousandths of a byte of code of C, of integers and floats, and the deepest stack with each count.
    pub(super) c: [[u32; C]; 2],
    pub(super) c_stack: [[u16; C]; 2],
}

/// The place of the set of kernels of these layers of floats, below [`FLOAT_SETS`].
#[must_use]
pub fn float_set(layers: &[model::Layer<'_>]) -> usize {
    let has = |is: fn(&model::Layer<'_>) -> bool| layers.iter().any(is);
    let rows = has(|layer| matches!(layer, model::Layer::Csr(_)));
    let wide = has(|layer| matches!(layer, model::Layer::Blocks(blocks) if blocks.inputs() >= WINDOW));
    let narrow = has(|layer| matches!(layer, model::Layer::Blocks(blocks) if blocks.inputs() < WINDOW));
    let kind = match (rows, wide, narrow) {
        (true, true, _) => 3,
        (true, false, true) => 4,
        (false, true, _) => 1,
        (false, false, true) => 2,
        _ => 0,
    };
    let fused = matches!(layers, [.., model::Layer::Csr(_), model::Layer::Sum(_)]);
    let sum = matches!(layers, [.., model::Layer::Sum(_)]);
    match (layers.len(), fused, sum) {
        (2, true, _) => 15,
        (0 | 1, ..) => 12 + if kind < 3 { kind } else { 0 },
        (_, true, _) => [9, 9, 9, 10, 11].get(kind).copied().unwrap_or(9),
        (_, _, true) => [7, 5, 6, 7, 8].get(kind).copied().unwrap_or(7),
        _ => kind,
    }
}

/// The place of the file's program among three.
fn float_file(layers: &[model::Layer<'_>]) -> usize {
    match float_set(layers) {
        15 => 0,
        2 | 6 | 14 => 1,
        _ => 2,
    }
}

/// The place of a kernel of integers, below [`INTEGER_KINDS`].
#[must_use]
pub fn integer_kind(weights: &Weights<'_>) -> usize {
    match weights.encoding() {
        Encoding::Dense => 0,
        Encoding::DenseUsed => 1,
        Encoding::Mask | Encoding::MaskUsed => 2,
        Encoding::Csr => 3,
        Encoding::Delta => 4,
        Encoding::Blocks if weights.inputs() >= WINDOW => 5,
        Encoding::Blocks => 6,
        Encoding::Fan => 7,
    }
}

/// The place of a set of one kernel or two among [`INTEGER_SETS`].
#[must_use]
pub const fn integer_set(a: usize, b: usize) -> usize {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    high * (high + 1) / 2 + low
}

/// What a chain of integers has besides its kernels: a bit of each of [`BESIDES`].
#[must_use]
pub fn besides(layers: &[quantised::Layer<'_>], sum: bool) -> [bool; BESIDES] {
    let last = layers.last();
    [
        layers.iter().any(|layer| !layer.bias().is_empty()),
        last.is_some_and(|last| !sum && !last.rescale().is_empty()),
        last.is_some_and(|last| !sum && last.activation() == Activation::Relu),
        sum,
        layers.len() < 2 && !sum,
    ]
}

/// What is counted of code without tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Straight(pub [u64; STRAIGHT]);

impl Straight {
    /// What is counted: the prediction itself, layers, rows with weights, weights of columns below 32, below 256 and from there on,
    /// and besides of them those that are positive, negative and powers of two, outputs that become bytes, those of the last layer that
    /// are scaled, biases, outputs with `ReLU`, what a sum adds, and outputs.
    pub const NAMES: [&str; STRAIGHT] = [
        "prediction",
        "layer",
        "row",
        "near column",
        "column",
        "far column",
        "positive weight",
        "negative weight",
        "power of two",
        "byte",
        "number",
        "bias",
        "relu",
        "sign",
        "output",
    ];

    /// Of a model.
    #[must_use]
    pub fn of(model: &quantised::Model<'_>) -> Self {
        let mut counts = [0_u64; STRAIGHT];
        let mut add = |at: usize, n: usize| {
            if let Some(count) = counts.get_mut(at) {
                *count = count.saturating_add(n as u64);
            }
        };
        add(0, 1);
        let layers = model.layers();
        for (at, layer) in layers.iter().enumerate() {
            let hidden = at + 1 < layers.len() || model.sum().is_some();
            let mut before = usize::MAX;
            layer.weights().entries(&mut |row, column, weight| {
                if row != before {
                    (before, _) = (row, add(2, 1));
                }
                add(if column < 32 { 3 } else if column < 256 { 4 } else { 5 }, 1);
                let power = weight.unsigned_abs().is_power_of_two();
                add(if power { 8 } else if weight < 0 { 7 } else { 6 }, 1);
            });
            add(1, 1);
            add(if hidden { 9 } else { 14 }, layer.outputs());
            if !hidden && !layer.rescale().is_empty() {
                add(10, layer.outputs());
            }
            add(11, layer.bias().iter().filter(|&&bias| bias != 0).count());
            if !hidden && layer.activation() == Activation::Relu {
                add(12, layer.outputs());
            }
        }
        add(13, model.sum().map_or(0, model::Sum::inputs));
        Self(counts)
    }
}

/// Bytes between the layers of code without tables: those of two neighbours.
#[must_use]
pub fn straight_scratch(model: &quantised::Model<'_>) -> usize {
    let hidden = model.layers().len().saturating_sub(usize::from(model.sum().is_none()));
    let (mut most, mut before) = (0, 0_usize);
    for layer in model.layers().iter().take(hidden) {
        most = most.max(before.saturating_add(layer.outputs()));
        before = layer.outputs();
    }
    most
}

/// What is linked of the exported C of a model of integers: the prediction, layers, and each kernel once.
#[must_use]
pub fn c_integers(model: &quantised::Model<'_>) -> [u64; C] {
    let mut counts = [0; C];
    let mut set = |at: usize, n: usize| {
        if let Some(count) = counts.get_mut(at) {
            *count = n as u64;
        }
    };
    let (layers, sum) = (model.layers(), model.sum().is_some());
    set(0, 1);
    set(1, layers.len().saturating_sub(1));
    for layer in layers {
        set(
            match layer.weights().encoding() {
                Encoding::Dense => 2,
                Encoding::DenseUsed => 3,
                Encoding::Mask => 4,
                Encoding::MaskUsed => 5,
                Encoding::Csr => 6,
                Encoding::Delta => 7,
                Encoding::Blocks => 8,
                Encoding::Fan if layer.inputs() <= WINDOW => 9,
                Encoding::Fan => 10,
            },
            1,
        );
        set(if layer.bias().is_empty() { 11 } else { 12 }, 1);
    }
    let [_, scaled, relu, ..] = besides(layers, sum);
    set(13, usize::from(layers.len() > 1 || sum));
    set(14, usize::from(scaled));
    set(15, usize::from(relu));
    set(16, usize::from(sum));
    counts
}

/// The same of a model of floats: the prediction, layers, rows, `ReLU`, a sum.
#[must_use]
pub fn c_floats(model: &model::Model<'_>) -> [u64; C] {
    let layers = model.layers();
    let relu = |layer: &model::Layer<'_>| match layer {
        model::Layer::Csr(csr) => csr.activation() == Activation::Relu,
        model::Layer::Blocks(blocks) => blocks.activation() == Activation::Relu,
        model::Layer::Sum(_) => false,
    };
    let sum = matches!(layers, [.., model::Layer::Sum(_)]);
    let weighted = layers.len().saturating_sub(usize::from(sum));
    let mut counts = [0; C];
    let found = [1, weighted.saturating_sub(1), 1, usize::from(layers.iter().any(relu)), usize::from(sum)];
    counts.iter_mut().zip(found).for_each(|(count, n)| *count = n as u64);
    counts
}

fn bytes([code, stack]: [u16; 2]) -> Bytes {
    Bytes { code: code.into(), stack: stack.into() }
}

/// Whole bytes of a sum of products.
fn whole(counts: &[u64], prices: &[u32]) -> u32 {
    let sum = super::cost(counts, prices).div_ceil(super::PER_INSTRUCTION);
    u32::try_from(sum).unwrap_or(u32::MAX)
}

/// The deepest of what is there.
fn deepest(counts: &[u64], stacks: &[u16]) -> u32 {
    let there = counts.iter().zip(stacks).filter(|(count, _)| **count > 0);
    there.map(|(_, &stack)| stack).max().unwrap_or(0).into()
}

impl Core {
    const fn ways(self) -> &'static Ways {
        &self.prices().ways
    }

    /// Code and stack of a model of floats; none for code without tables.
    #[must_use]
    pub fn floats(self, model: &model::Model<'_>, way: Way) -> Option<Bytes> {
        let (ways, layers) = (self.ways(), model.layers());
        Some(match way {
            Way::File => bytes(*ways.float_file.get(float_file(layers))?),
            Way::Embedded | Way::Rust => bytes(*ways.floats.get(float_set(layers))?),
            Way::Straight => return None,
            Way::C => {
                let (counts, [_, prices], [_, stacks]) = (c_floats(model), &ways.c, &ways.c_stack);
                Bytes { code: whole(&counts, prices), stack: deepest(&counts, stacks) }
            }
        })
    }

    /// Code and stack of a model of integers.
    #[must_use]
    pub fn integers(self, model: &quantised::Model<'_>, way: Way) -> Bytes {
        let ways = self.ways();
        match way {
            Way::File => bytes(ways.integer_file),
            Way::Embedded | Way::Rust => self.chain(model.layers(), model.sum().is_some()),
            Way::Straight => {
                let (counts, [code, ram]) = (Straight::of(model).0, &ways.straight);
                let buffers = straight_scratch(model).saturating_add(model.outputs().saturating_mul(4));
                let buffers = u32::try_from(buffers).unwrap_or(u32::MAX);
                Bytes { code: whole(&counts, code), stack: whole(&counts, ram).saturating_sub(buffers) }
            }
            Way::C => {
                let (counts, [prices, _], [stacks, _]) = (c_integers(model), &ways.c, &ways.c_stack);
                Bytes { code: whole(&counts, prices), stack: deepest(&counts, stacks) }
            }
        }
    }

    /// Of a chain of integers.
    fn chain(self, layers: &[quantised::Layer<'_>], sum: bool) -> Bytes {
        let mut there = [false; INTEGER_KINDS];
        for layer in layers {
            if let Some(there) = there.get_mut(integer_kind(layer.weights())) {
                *there = true;
            }
        }
        self.kinds(&there, besides(layers, sum))
    }

    /// Of dense layers of integers with these many hidden ones.
    pub(crate) fn dense_chain(self, hidden: usize) -> Bytes {
        let mut there = [false; INTEGER_KINDS];
        there[0] = true;
        self.kinds(&there, [false, false, false, false, hidden == 0])
    }

    /// One kernel or two as measured. Where more are there, what all programs share and what each kernel adds follow from the sums over
    /// ones and over twos.
    fn kinds(self, there: &[bool; INTEGER_KINDS], besides: [bool; BESIDES]) -> Bytes {
        let ways = self.ways();
        let of = |a: usize, b: usize| ways.integers.get(integer_set(a, b)).copied().unwrap_or_default();
        let has = |kind: usize| there.get(kind).copied().unwrap_or(false);
        let (mut n, mut ones, mut twos) = (0_i64, 0_i64, 0_i64);
        let mut stack = 0_i64;
        for a in (0..INTEGER_KINDS).filter(|&a| has(a)) {
            n += 1;
            ones += i64::from(of(a, a)[0]);
            stack = stack.max(of(a, a)[1].into());
            for b in (0..a).filter(|&b| has(b)) {
                twos += i64::from(of(a, b)[0]);
                stack = stack.max(of(a, b)[1].into());
            }
        }
        let mut code = match n {
            0 | 1 => ones,
            2 => twos,
            _ => {
                let own = 2 * twos / (n - 1) - ones;
                own + (ones - own) / n
            }
        };
        for (_, [more, deeper]) in besides.iter().zip(ways.besides).filter(|(there, _)| **there) {
            (code, stack) = (code + i64::from(more), stack + i64::from(deeper));
        }
        let unsigned = |bytes: i64| u32::try_from(bytes.max(0)).unwrap_or(u32::MAX);
        Bytes { code: unsigned(code), stack: unsigned(stack) }
    }

    /// Code that reads a file of these numbers in place, checks it, and predicts; of floats the most.
    #[must_use]
    pub const fn file_code_bytes(self, numbers: Numbers) -> u32 {
        match numbers {
            Numbers::Floats => self.ways().float_file[2][0] as u32,
            Numbers::Integers => self.ways().integer_file[0] as u32,
        }
    }
}
