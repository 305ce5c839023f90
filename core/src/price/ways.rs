//! Bytes of code and stack of a model in each way of deploying it, as linkers and painted stacks have them.
//!
//! A model that the compiler has read links what its set of kernels needs, whatever its numbers are. So code is measured of
//! every set of floats, and of integers of every kernel and every two of them together; more of them add up.

use super::{Core, Numbers, Way};
use crate::model::Activation;
use crate::model::{self, WINDOW};
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
/// What a chain of integers may have besides: biases, a last layer with factors, one with `ReLU`, a sum of several layers and of one,
/// no hidden layer, hidden layers with a factor for each output, and more than two layers.
pub const BESIDES: usize = 8;
/// What is counted for code without tables, see [`Straight`].
pub const STRAIGHT: usize = 14;
/// Bytes of stack that a long row of code without tables may take beyond what was measured of others.
const STRAIGHT_STACK: u32 = 160;
/// Everything measured of one kind of part.
#[derive(Debug)]
pub(super) struct Ways {
    /// Chains of floats, code and stack.
    pub(super) floats: [[u16; 2]; FLOAT_SETS],
    /// Files of floats: rows under a sum, windows on short rows only, others with rows, windows.
    pub(super) float_file: [[u16; 2]; 4],
    /// Chains of integers with a hidden layer.
    pub(super) integers: [[u16; 2]; INTEGER_SETS],
    /// What they have besides.
    pub(super) besides: [[i16; 2]; BESIDES],
    /// Files of integers.
    pub(super) integer_file: [u16; 2],
    /// Thousandths of a byte of code and of all RAM for each count of code without tables: bounds of both.
    pub(super) straight: [[u32; STRAIGHT]; 2],
    /// What a module of Rust takes beyond an embedded model: of floats and of integers, with at most eight outputs and with more.
    pub(super) rust: [[[i16; 2]; 2]; 2],
    /// See [`zeros`].
    pub(super) zeros: [u16; 2],
    /// Of C what `floats`, `integers` and `besides` are of chains.
    pub(super) c_floats: [[u16; 2]; FLOAT_SETS],
    pub(super) c_integers: [[u16; 2]; INTEGER_SETS],
    pub(super) c_besides: [[i16; 2]; BESIDES],
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

/// The place of the file's program among four.
fn float_file(layers: &[model::Layer<'_>]) -> usize {
    match float_set(layers) {
        15 => 0,
        2 | 6 | 14 => 1,
        1 | 5 | 13 => 3,
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
    let (last, hidden) = (layers.last(), layers.len().saturating_sub(usize::from(!sum)));
    [
        layers.iter().any(|layer| !layer.bias().is_empty()),
        last.is_some_and(|last| !sum && !last.rescale().is_empty()),
        last.is_some_and(|last| !sum && last.activation() == Activation::Relu),
        sum && layers.len() > 1,
        sum && layers.len() < 2,
        !sum && hidden == 0,
        layers.iter().take(hidden).any(|layer| layer.rescale().len() > 1),
        layers.len() > 2,
    ]
}

/// Bytes of code that make buffers of so many words by [`zeros`](crate::model::zeros): `few` for 64 of them, and where one is longer a
/// `routine`.
#[must_use]
pub fn zeros([few, routine]: [u16; 2], words: [usize; 2]) -> u32 {
    const MOST: usize = crate::model::ROUTINE / 4;
    let stores = words
        .iter()
        .filter(|&&words| words <= MOST)
        .fold(0_u32, |sum, &words| sum.saturating_add(words as u32));
    let call = if words.iter().any(|&words| words > MOST) { routine } else { 0 };
    stores.saturating_mul(few.into()).div_ceil(64).saturating_add(call.into())
}

/// What is counted of code without tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Straight(pub [u64; STRAIGHT]);

impl Straight {
    /// What is counted: the prediction itself, rows with weights, weights, once more those of columns from 32 on and from 256 on,
    /// those that are negative, beyond 31 in size and no power of two, outputs that become bytes, those of the last layer that are scaled, biases, outputs with `ReLU`,
    /// what a sum adds, and outputs.
    pub const NAMES: [&str; STRAIGHT] = [
        "prediction",
        "row",
        "weight",
        "column from 32",
        "column from 256",
        "negative",
        "large",
        "product",
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
                    before = row;
                    add(1, 1);
                }
                add(2, 1);
                add(3, usize::from(column >= 32));
                add(4, usize::from(column >= 256));
                add(5, usize::from(weight < 0));
                add(6, usize::from(weight.unsigned_abs() > 31));
                add(7, usize::from(!weight.unsigned_abs().is_power_of_two()));
            });
            add(if hidden { 8 } else { 13 }, layer.outputs());
            if !hidden && !layer.rescale().is_empty() {
                add(9, layer.outputs());
            }
            add(10, layer.bias().iter().filter(|&&bias| bias != 0).count());
            if !hidden && layer.activation() == Activation::Relu {
                add(11, layer.outputs());
            }
        }
        add(12, model.sum().map_or(0, model::Sum::inputs));
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

fn bytes([code, stack]: [u16; 2]) -> Bytes {
    Bytes { code: code.into(), stack: stack.into() }
}

/// Whole bytes of a sum of products.
fn whole(counts: &[u64], prices: &[u32]) -> u32 {
    let sum = super::cost(counts, prices).div_ceil(super::PER_INSTRUCTION);
    u32::try_from(sum).unwrap_or(u32::MAX)
}

impl Bytes {
    fn and(self, [code, stack]: [i16; 2]) -> Self {
        let more = |bytes: u32, more: i16| bytes.saturating_add_signed(more.into());
        Self { code: more(self.code, code), stack: more(self.stack, stack) }
    }
}

impl Core {
    const fn ways(self) -> &'static Ways {
        &self.prices().ways
    }

    /// Code and stack of a model of floats; none for code without tables.
    #[must_use]
    pub fn floats(self, model: &model::Model<'_>, way: Way) -> Option<Bytes> {
        let (ways, layers) = (self.ways(), model.layers());
        let chain = bytes(*ways.floats.get(float_set(layers))?);
        Some(match way {
            Way::File => bytes(*ways.float_file.get(float_file(layers))?),
            Way::Embedded => chain,
            Way::Rust => chain.and(ways.module(Numbers::Floats, model.outputs())),
            Way::Straight => return None,
            Way::C => bytes(*ways.c_floats.get(float_set(layers))?),
        })
    }

    /// Code and stack of a model of integers.
    #[must_use]
    pub fn integers(self, model: &quantised::Model<'_>, way: Way) -> Bytes {
        let ways = self.ways();
        let (layers, sum) = (model.layers(), model.sum().is_some());
        let mut there = [false; INTEGER_KINDS];
        for layer in layers {
            if let Some(there) = there.get_mut(integer_kind(layer.weights())) {
                *there = true;
            }
        }
        let besides = besides(layers, sum);
        let mut chain = kinds(&ways.integers, &ways.besides, there, besides);
        chain.code = chain.code.saturating_add(zeros(ways.zeros, [model.scratch_len(), model.outputs()]));
        match way {
            Way::File => bytes(ways.integer_file),
            Way::Embedded => chain,
            Way::Rust => chain.and(ways.module(Numbers::Integers, model.outputs())),
            Way::Straight => {
                let (counts, [code, ram]) = (Straight::of(model).0, &ways.straight);
                let buffers = straight_scratch(model).saturating_add(model.outputs().saturating_mul(4));
                let buffers = u32::try_from(buffers).unwrap_or(u32::MAX);
                let code = whole(&counts, code);
                // No fit to some models bounds all others; a margin of 1/32 does those that it was held to.
                Bytes {
                    code: code.saturating_add(code / 32),
                    stack: whole(&counts, ram).saturating_sub(buffers).saturating_add(STRAIGHT_STACK),
                }
            }
            Way::C => kinds(&ways.c_integers, &ways.c_besides, there, besides),
        }
    }

    /// Of dense layers of integers with these many hidden ones, and buffers of so many words.
    pub(crate) fn dense_chain(self, hidden: usize, words: [usize; 2]) -> Bytes {
        let mut there = [false; INTEGER_KINDS];
        there[0] = true;
        let besides = [false, false, false, false, false, hidden == 0, false, hidden > 1];
        let mut chain = kinds(&self.ways().integers, &self.ways().besides, there, besides);
        chain.code = chain.code.saturating_add(zeros(self.ways().zeros, words));
        chain
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

impl Core {
    /// Stack of reading a file of integers and predicting.
    pub(crate) const fn integer_file_stack(self) -> u32 {
        self.ways().integer_file[1] as u32
    }
}

impl Ways {
    /// What a module has beyond an embedded model with so many outputs: more of them some parts return by a routine.
    const fn module(&self, numbers: Numbers, outputs: usize) -> [i16; 2] {
        let [floats, integers] = self.rust;
        let [few, many] = match numbers {
            Numbers::Floats => floats,
            Numbers::Integers => integers,
        };
        if outputs > 8 { many } else { few }
    }
}

/// One kernel or two as measured. Where more are there, what all programs share and what each kernel adds follow from the sums over
/// ones and over twos.
fn kinds(
    sets: &[[u16; 2]; INTEGER_SETS],
    extras: &[[i16; 2]; BESIDES],
    there: [bool; INTEGER_KINDS],
    besides: [bool; BESIDES],
) -> Bytes {
    let of = |a: usize, b: usize| sets.get(integer_set(a, b)).copied().unwrap_or_default();
    let has = |kind: usize| there.get(kind).copied().unwrap_or(false);
    let (mut n, mut ones, mut twos) = (0_u32, 0_u32, 0_u32);
    let mut stack = 0;
    for a in (0..INTEGER_KINDS).filter(|&a| has(a)) {
        let [code, deep] = of(a, a);
        (n, ones, stack) = (n + 1, ones + u32::from(code), stack.max(deep));
        for b in (0..a).filter(|&b| has(b)) {
            let [code, deep] = of(a, b);
            (twos, stack) = (twos + u32::from(code), stack.max(deep));
        }
    }
    let code = match n {
        0 | 1 => ones,
        2 => twos,
        _ => {
            let own = (2 * twos / (n - 1)).saturating_sub(ones);
            own + ones.saturating_sub(own) / n
        }
    };
    let measured = Bytes { code, stack: stack.into() };
    let there = besides.iter().zip(extras).filter(|(there, _)| **there);
    there.fold(measured, |bytes, (_, &more)| bytes.and(more))
}
