//! Models of 8-bit integers, and their prediction without a float.
//!
//! A row is bytes, a weight an `i8`, a sum an `i32`. A hidden layer gives bytes again: its sums are multiplied by a
//! fixed-point number and cut to 0 to 255, which is `ReLU` at the same time. Bytes without a sign hold an activation, that is
//! never negative, one bit finer than `i8` would, and a product of `u8` and `i8` costs what one of two `i8` does. The last
//! layer gives its sums, numbers of `i32`: a class is the place of the largest. What a 1 stands for is kept beside as
//! floats ([`Scales`]) for those who want numbers; no prediction reads them.
//!
//! Weights are held in one of six [`Weights`], each with a kernel without `unsafe`. Everything is checked once, when a layer
//! is made. No sum can overflow: a layer has at most 65536 inputs, 65536 · 255 · 128 is below 2³¹, and what a bias adds is
//! held to the room that is left.
//!
//! Sums of integers are the same in any order, so a prediction has the same bits everywhere, whatever the encoding.

mod blocks;
mod csr;
mod delta;
mod dense;
mod fan;
mod mask;
mod rescale;

pub(crate) use blocks::{start, windows};
pub(crate) use delta::SKIP;

pub use blocks::{Blocks, WINDOW};
pub use csr::Csr;
pub use delta::Delta;
pub use dense::Dense;
pub use fan::{Columns, Fan};
pub use mask::Mask;
pub use rescale::Rescale;

use crate::error::{length, range};
use crate::model::{Activation, MAX_INPUTS, MAX_LAYERS, Sum};
use crate::{Error, Result};

/// The most outputs of a layer.
pub const MAX_OUTPUTS: usize = 1 << 16;

/// The weights of a layer, in one of the encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Weights<'a> {
    /// Every weight of every input that is used.
    Dense(Dense<'a>),
    /// A bit per weight, then those that are there.
    Mask(Mask<'a>),
    /// Compressed rows with columns of `u16`.
    Csr(Csr<'a>),
    /// Compressed rows with the distance to the column before, of `u8`.
    Delta(Delta<'a>),
    /// Windows of 256 columns, pairs of `u8` index and weight: the fastest.
    Blocks(Blocks<'a>),
    /// As many weights in every row.
    Fan(Fan<'a>),
}

/// How weights are held; see [`Weights`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoding {
    /// [`Dense`] of all inputs.
    Dense,
    /// [`Dense`] of the inputs that are used.
    DenseUsed,
    /// [`Mask`] of all inputs.
    Mask,
    /// [`Mask`] of the inputs that are used.
    MaskUsed,
    /// [`Csr`].
    Csr,
    /// [`Delta`].
    Delta,
    /// [`Blocks`].
    Blocks,
    /// [`Fan`].
    Fan,
}

impl Encoding {
    /// Every one of them.
    pub const ALL: [Self; 8] = [
        Self::Dense,
        Self::DenseUsed,
        Self::Mask,
        Self::MaskUsed,
        Self::Csr,
        Self::Delta,
        Self::Blocks,
        Self::Fan,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::DenseUsed => "dense, used inputs",
            Self::Mask => "bitmask",
            Self::MaskUsed => "bitmask, used inputs",
            Self::Csr => "rows",
            Self::Delta => "distances",
            Self::Blocks => "blocks",
            Self::Fan => "constant fan-in",
        }
    }
}

/// Calls the same of every encoding.
macro_rules! each {
    ($weights:expr, $inner:ident => $call:expr) => {
        match $weights {
            Weights::Dense($inner) => $call,
            Weights::Mask($inner) => $call,
            Weights::Csr($inner) => $call,
            Weights::Delta($inner) => $call,
            Weights::Blocks($inner) => $call,
            Weights::Fan($inner) => $call,
        }
    };
}

impl Weights<'_> {
    /// Numbers that the layer takes.
    #[must_use]
    pub fn inputs(&self) -> usize {
        each!(self, inner => inner.inputs())
    }

    /// Numbers that the layer gives.
    #[must_use]
    pub fn outputs(&self) -> usize {
        each!(self, inner => inner.outputs())
    }

    /// Weights that are there; of a dense layer those that are not 0.
    #[must_use]
    pub fn nonzeros(&self) -> usize {
        each!(self, inner => inner.nonzeros())
    }

    /// Calls `entry` with the row, the column and the value of each weight, row after row and columns rising.
    pub fn entries(&self, entry: &mut dyn FnMut(usize, u16, i8)) {
        each!(self, inner => inner.entries(entry));
    }

    /// Which encoding it is.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        match self {
            Weights::Dense(dense) if dense.used().is_empty() => Encoding::Dense,
            Weights::Dense(_) => Encoding::DenseUsed,
            Weights::Mask(mask) if mask.used().is_empty() => Encoding::Mask,
            Weights::Mask(_) => Encoding::MaskUsed,
            Weights::Csr(_) => Encoding::Csr,
            Weights::Delta(_) => Encoding::Delta,
            Weights::Blocks(_) => Encoding::Blocks,
            Weights::Fan(_) => Encoding::Fan,
        }
    }

    /// The columns that are listed because the others have no weights; empty where none are.
    #[must_use]
    pub fn used(&self) -> &[u16] {
        match self {
            Weights::Dense(dense) => dense.used(),
            Weights::Mask(mask) => mask.used(),
            _ => &[],
        }
    }

    /// `sums[outputs] += W x`; `None` only if `x` is shorter than the inputs.
    #[inline(never)]
    fn accumulate(&self, x: &[u8], sums: &mut [i32]) -> Option<()> {
        each!(self, inner => inner.accumulate(x, sums))
    }
}

/// Keeps the compiler from unrolling the loop that it stands in, at no instruction: bodies are as long as they should be, and
/// unrolled again they would take more flash than the weights, and time before every short run.
#[inline(always)]
fn rolled() {
    core::hint::black_box(());
}

/// One product; neither it nor a sum of 65536 of them overflows.
#[inline(always)]
fn product(x: u8, weight: i8) -> i32 {
    i32::from(x) * i32::from(weight)
}

/// A layer `y_j = a(r_j(b_j + sum_k w_jk x_k))`: weights, biases that may be missing, fixed-point factors `r`, and an
/// activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layer<'a> {
    inputs: usize,
    outputs: usize,
    weights: Weights<'a>,
    rescale: &'a [u32],
    bias: &'a [i32],
    activation: Activation,
    requested: usize,
}

impl<'a> Layer<'a> {
    /// A layer of these weights. `rescale` has no word of a [`Rescale`] (sums stay as they are: for a last layer), one for
    /// all outputs, or one for each; `bias` has none or one for each.
    ///
    /// # Errors
    /// [`Error::Length`] for other lengths, [`Error::Range`] for a word that is no factor, a bias that could make a sum overflow and for more than
    /// [`MAX_OUTPUTS`] outputs.
    pub fn new(
        weights: Weights<'a>,
        rescale: &'a [u32],
        bias: &'a [i32],
        activation: Activation,
    ) -> Result<Self> {
        let outputs = weights.outputs();
        range("outputs of a layer", outputs, 0, MAX_OUTPUTS)?;
        rescale.iter().try_for_each(|&factor| Rescale::of(factor).map(|_| ()))?;
        if rescale.len() > 1 {
            length("factors of a layer", rescale.len(), outputs)?;
        }
        if !bias.is_empty() {
            length("biases of a layer", bias.len(), outputs)?;
        }
        let room = Self::most_bias(weights.inputs());
        let most = bias.iter().map(|bias| bias.unsigned_abs()).max().unwrap_or(0);
        range("bias of a layer", most as usize, 0, room as usize)?;
        let inputs = weights.inputs();
        Ok(Self { inputs, outputs, weights, rescale, bias, activation, requested: outputs })
    }

    /// The largest bias, of either sign, of a layer of so many inputs.
    #[must_use]
    pub const fn most_bias(inputs: usize) -> u32 {
        // At most 65536 inputs, so the product is below 2^31.
        (i32::MAX as u32)
            .saturating_sub(255 * 128 * (if inputs < MAX_INPUTS { inputs } else { MAX_INPUTS }) as u32)
    }

    /// Notes how many outputs were asked for before those without use were left out; it changes no prediction.
    ///
    /// # Errors
    /// [`Error::Range`] if that is below [`outputs`](Self::outputs) or above `u32::MAX`.
    pub fn with_requested(mut self, requested: usize) -> Result<Self> {
        range("outputs asked for", requested, self.outputs, u32::MAX as usize)?;
        self.requested = requested;
        Ok(self)
    }

    /// Numbers that the layer takes.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Numbers that the layer gives.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// The weights.
    #[must_use]
    pub fn weights(&self) -> &Weights<'a> {
        &self.weights
    }

    /// The factors of the sums: none, one, or one for each output.
    #[must_use]
    pub fn rescale(&self) -> &'a [u32] {
        self.rescale
    }

    /// The biases: none, or one for each output.
    #[must_use]
    pub fn bias(&self) -> &'a [i32] {
        self.bias
    }

    /// What is done to each output.
    #[must_use]
    pub fn activation(&self) -> Activation {
        self.activation
    }

    /// Outputs asked for in training.
    #[must_use]
    pub fn requested(&self) -> usize {
        self.requested
    }

    /// `sums[outputs] = b + W x`.
    #[inline(always)]
    fn sums(&self, x: &[u8], sums: &mut [i32]) -> Option<()> {
        sums.fill(0);
        for (sum, &bias) in sums.iter_mut().zip(self.bias) {
            *sum = bias;
            rolled();
        }
        self.weights.accumulate(x, sums)
    }

    /// Calls `each` with every item and its factor; not at all where sums stay as they are.
    #[inline(always)]
    fn with_factors<T>(&self, items: impl Iterator<Item = T>, mut each: impl FnMut(T, Rescale)) {
        match self.rescale {
            [one] => items.for_each(|item| {
                each(item, Rescale::known(*one));
                rolled();
            }),
            many => items.zip(many).for_each(|(item, factor)| {
                each(item, Rescale::known(*factor));
                rolled();
            }),
        }
    }
}

/// What the integers of a model stand for. Predictions need none of it but for the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scales {
    input: u32,
    output: u32,
    /// The byte of an input that stands for 0.
    pub zero: u8,
    /// The least output of a model of one output that is class 1.
    pub threshold: i32,
}

impl Scales {
    /// An input byte `q` stands for `input * (q - zero)`, an output `y` for `output * y`; class 1 starts at `threshold`.
    ///
    /// # Errors
    /// [`Error::NotFinite`] for a scale that is NaN, infinite, zero or negative.
    pub fn new(input: f32, output: f32, zero: u8, threshold: i32) -> Result<Self> {
        Self::of(input.to_bits(), output.to_bits(), zero, threshold)
    }

    /// The same of the bits of the scales; no float is computed with.
    pub(crate) fn of(input: u32, output: u32, zero: u8, threshold: i32) -> Result<Self> {
        // Positive floats are in the order of their bits, from the least to below infinity.
        for (at, bits) in [input, output].into_iter().enumerate() {
            if !(1..f32::INFINITY.to_bits()).contains(&bits) {
                return Err(Error::NotFinite { what: "scales above 0", at });
            }
        }
        Ok(Self { input, output, zero, threshold })
    }

    /// What one step of an input byte stands for.
    #[must_use]
    pub fn input(&self) -> f32 {
        f32::from_bits(self.input)
    }

    /// What one step of an output stands for.
    #[must_use]
    pub fn output(&self) -> f32 {
        f32::from_bits(self.output)
    }

    /// The byte next to a number: rounded, halves away from zero, and cut to 0 to 255; `zero` for NaN.
    #[must_use]
    pub fn byte(&self, number: f32) -> u8 {
        let steps = libm::roundf(number / self.input());
        let steps = if steps.is_nan() { 0.0 } else { steps };
        (steps + f32::from(self.zero)).clamp(0.0, 255.0) as u8
    }
}

/// A chain of one to [`MAX_LAYERS`] layers of integers, the scalar [`Sum`] as its possible end counted.
///
/// ```
/// use tamis::model::Activation;
/// use tamis::quantised::{Csr, Layer, Model, Rescale, Scales, Weights};
///
/// // h = relu(100 x_0 - 50 x_2) / 128, y = (127 h, -64 h)
/// let eighth = [Rescale::near(1.0 / 128.0)?.bits()];
/// let hidden = Weights::Csr(Csr::new(3, &[2], &[0, 2], &[100, -50])?);
/// let hidden = Layer::new(hidden, &eighth, &[], Activation::Relu)?;
/// let last = Weights::Csr(Csr::new(1, &[1, 1], &[0, 0], &[127, -64])?);
/// let last = Layer::new(last, &[], &[], Activation::Identity)?;
/// let model = Model::new(&[hidden, last], None, Scales::new(1.0 / 255.0, 0.01, 0, 0)?)?;
///
/// let (mut scratch, mut y) = ([0; 2], [0; 2]);
/// model.predict(&[200, 7, 100], &mut scratch, &mut y)?; // 15000 / 128 = 117.2
/// assert_eq!(y, [127 * 117, -64 * 117]);
/// assert_eq!(model.classify(&[200, 7, 100], &mut scratch, &mut y)?, 0);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Model<'a> {
    layers: heapless::Vec<Layer<'a>, MAX_LAYERS>,
    sum: Option<Sum<'a>>,
    scales: Scales,
    /// Outputs of the widest hidden layer.
    widest: usize,
}

impl<'a> Model<'a> {
    /// Chains `layers`, given in the order in which they run, and a sum behind them.
    ///
    /// # Errors
    /// [`Error::Range`] for no layer or more than [`MAX_LAYERS`], [`Error::Length`] where a layer does not take what the one
    /// before it gives, or where a layer whose outputs are bytes has no factor or no `ReLU`.
    pub fn new(layers: &[Layer<'a>], sum: Option<Sum<'a>>, scales: Scales) -> Result<Self> {
        let most = MAX_LAYERS - usize::from(sum.is_some());
        range("layers of the model", layers.len(), 1, most)?;
        let wrong = Error::Range { what: "layers of the model", min: 1, max: most, got: layers.len() };
        let layers = heapless::Vec::<Layer<'a>, MAX_LAYERS>::from_slice(layers).map_err(|_| wrong)?;
        for (before, after) in layers.iter().zip(layers.iter().skip(1)) {
            length("inputs of a layer", after.inputs, before.outputs)?;
        }
        let mut model = Self { layers, sum, scales, widest: 0 };
        if let (Some(sum), Some(last)) = (sum, model.layers.last()) {
            length("inputs of a layer", sum.inputs(), last.outputs)?;
        }
        for layer in model.hidden() {
            let given = usize::from(layer.activation == Activation::Relu && !layer.rescale.is_empty());
            length("hidden layers with ReLU and a factor", given, 1)?;
        }
        model.widest = model.hidden().iter().map(Layer::outputs).max().unwrap_or(0);
        Ok(model)
    }

    /// The layers in the order in which they run, without the sum.
    #[must_use]
    pub fn layers(&self) -> &[Layer<'a>] {
        &self.layers
    }

    /// The sum behind the layers.
    #[must_use]
    pub fn sum(&self) -> Option<&Sum<'a>> {
        self.sum.as_ref()
    }

    /// What the integers stand for.
    #[must_use]
    pub fn scales(&self) -> Scales {
        self.scales
    }

    /// Bytes in one input row.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.layers.first().map_or(0, Layer::inputs)
    }

    /// Numbers in one prediction.
    #[must_use]
    pub fn outputs(&self) -> usize {
        if self.sum.is_some() { 1 } else { self.layers.last().map_or(0, Layer::outputs) }
    }

    /// Numbers of `i32` that [`predict`](Self::predict) needs between layers: the sums of the widest hidden layer and its
    /// bytes.
    #[must_use]
    pub fn scratch_len(&self) -> usize {
        self.widest + self.widest.div_ceil(size_of::<i32>())
    }

    /// Predicts one row: `x[inputs]`, `scratch[scratch_len]` or longer, `out[outputs]`.
    ///
    /// # Errors
    /// [`Error::Length`] if `x` or `out` has another length, [`Error::Budget`] if `scratch` is too short.
    pub fn predict(&self, x: &[u8], scratch: &mut [i32], out: &mut [i32]) -> Result<()> {
        length("input row", x.len(), self.inputs())?;
        length("prediction", out.len(), self.outputs())?;
        let needed = self.scratch_len().saturating_mul(size_of::<i32>());
        let short = Error::Budget { needed, got: size_of_val(scratch) };
        self.forward(x, scratch, out).ok_or(short)
    }

    /// `None` only if the scratch is too short.
    #[inline(never)]
    fn forward(&self, x: &[u8], scratch: &mut [i32], out: &mut [i32]) -> Option<()> {
        let (sums, bytes) = scratch.split_at_mut_checked(self.widest)?;
        let bytes: &mut [u8] = bytemuck::try_cast_slice_mut(bytes).ok()?;
        for (k, layer) in self.layers.iter().enumerate() {
            let last = self.sum.is_none() && k + 1 == self.layers.len();
            let x = if k == 0 { x } else { bytes.get(..layer.inputs)? };
            let sums = if last { &mut *out } else { sums.get_mut(..layer.outputs)? };
            layer.sums(x, sums)?;
            if !last {
                // The inputs of this layer are done with, so its outputs may take their place.
                let bytes = bytes.get_mut(..layer.outputs)?.iter_mut();
                layer.with_factors(bytes.zip(&*sums), |(byte, &sum), factor| *byte = factor.byte(sum));
                continue;
            }
            layer.with_factors(sums.iter_mut(), |sum, factor| *sum = factor.number(*sum));
            if layer.activation == Activation::Relu {
                for sum in sums {
                    *sum = (*sum).max(0);
                    rolled();
                }
            }
        }
        match &self.sum {
            Some(sum) => {
                *out.first_mut()? = signed_sum(sum, bytes);
                Some(())
            }
            None => Some(()),
        }
    }

    /// Predicts, and gives the class: of several outputs the place of the largest, of equal ones the lowest; of one, 1 from
    /// the threshold on.
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    pub fn classify(&self, x: &[u8], scratch: &mut [i32], out: &mut [i32]) -> Result<usize> {
        self.predict(x, scratch, out)?;
        if let [one] = out {
            return Ok(usize::from(*one >= self.scales.threshold));
        }
        let mut best = (0, i32::MIN);
        for (class, &score) in out.iter().enumerate() {
            if score > best.1 {
                best = (class, score);
            }
        }
        Ok(best.0)
    }

    /// The layers whose outputs are bytes.
    fn hidden(&self) -> &[Layer<'a>] {
        let last = usize::from(self.sum.is_none());
        self.layers.get(..self.layers.len().saturating_sub(last)).unwrap_or_default()
    }
}

/// `sum_j ±x_j`; at most 65536 bytes, so it does not overflow.
#[inline(never)]
fn signed_sum(sum: &Sum<'_>, x: &[u8]) -> i32 {
    let mut total = 0_i32;
    for (&word, x) in sum.signs().iter().zip(x.get(..sum.inputs()).unwrap_or_default().chunks(32)) {
        let mut word = word;
        for &x in x {
            let x = i32::from(x);
            total = total.wrapping_add(if word & 1 == 0 { x } else { -x });
            word >>= 1;
            rolled();
        }
    }
    total
}

/// Checks that columns rise strictly and stay below `inputs`; `at` is the place of the first of them.
fn check_columns(inputs: usize, at: usize, columns: impl Iterator<Item = usize>) -> Result<()> {
    let mut least = 0;
    for (k, column) in columns.enumerate() {
        if column < least {
            return Err(Error::Unsorted { at: at + k });
        }
        least = column + 1;
    }
    range("columns used", least, 0, inputs)
}

/// Checks that the counts of rows add up to `entries`.
fn check_counts(counts: &[u16], entries: usize) -> Result<()> {
    let total = counts.iter().fold(0_usize, |sum, &count| sum.saturating_add(usize::from(count)));
    length("columns", entries, total)
}
