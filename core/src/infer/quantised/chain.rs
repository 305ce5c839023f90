//! Layers one behind the other, and their prediction.

use super::kernels::{ALL_KERNELS, BIASES, LAST_FACTORS, LAST_RELU, ONE_FACTOR, OWN_FACTORS};
use super::{Columns, Layer, Readings, Rescale, Scales};
use crate::base::error::{length, range, tri};
use crate::infer::model::{Activation, Blind, MAX_LAYERS, Observer, Seeing, Sum, push, rolled};
use crate::{Error, Result};

/// A chain of one to [`MAX_LAYERS`] layers of integers that lie elsewhere, the scalar [`Sum`] as
/// its possible end counted.
///
/// A model in a `static`, as `tamis export --format rust` writes it, is checked when the program is
/// built and is linked without a check and with only those kernels that have a bit in `KERNELS`.
///
/// ```
/// use tamis::infer::model::Activation;
/// use tamis::infer::quantised::{Chain, Dense, Layer, Rescale, Scales, Weights};
///
/// /// What was checked; an error ends the compilation.
/// const fn checked<T: Copy>(result: tamis::Result<T>) -> T {
///     match result {
///         Ok(value) => value,
///         Err(error) => panic!("{}", error.what()),
///     }
/// }
///
/// // h = relu(100 x_0 - 50 x_2) / 128, y = (127 h, -64 h)
/// const EIGHTH: u32 = checked(Rescale::near(1.0 / 128.0)).bits();
/// const LAYERS: [Layer<'static>; 2] = {
///     let hidden = Weights::Dense(checked(Dense::new(3, 1, &[100, 0, -50])));
///     let last = Weights::Dense(checked(Dense::new(1, 2, &[127, -64])));
///     [
///         checked(Layer::new(hidden, &[EIGHTH], &[], Activation::Relu)),
///         checked(Layer::new(last, &[], &[], Activation::Identity)),
///     ]
/// };
/// const SCALES: Scales = checked(Scales::new(1.0 / 255.0, 0.01, 0, 0));
/// static MODEL: Chain<'static, { Chain::kernels(&LAYERS) }> = checked(Chain::new(&LAYERS, None, SCALES));
///
/// let mut y = [0; 2];
/// MODEL.predict(&[200, 7, 100], &mut [0; 2], &mut y)?; // 15000 / 128 = 117.2
/// assert_eq!((y, MODEL.class(&y)), ([127 * 117, -64 * 117], 0));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chain<'a, const KERNELS: u16 = ALL_KERNELS> {
    layers: &'a [Layer<'a>],
    sum: Option<Sum<'a>>,
    scales: Scales,
    /// Outputs of the widest hidden layer.
    widest: usize,
}

impl Chain<'_> {
    /// The set of the kernels, and of what may follow them, that these layers need, for the type of
    /// a chain in a `static`.
    #[must_use]
    pub const fn kernels(layers: &[Layer<'_>]) -> u16 {
        let (mut set, mut left) = (0, layers);
        while let [layer, behind @ ..] = left {
            set |= layer.weights.kernel() | if layer.bias.is_empty() { 0 } else { BIASES };
            // A last layer of this kind may give bytes to a sum.
            if matches!(layer.activation, Activation::Relu) {
                set |= match layer.rescale {
                    [] => 0,
                    [_] => ONE_FACTOR,
                    _ => OWN_FACTORS,
                };
            }
            if behind.is_empty() {
                set |= if layer.rescale.is_empty() { 0 } else { LAST_FACTORS };
                set |= if matches!(layer.activation, Activation::Relu) { LAST_RELU } else { 0 };
            }
            left = behind;
        }
        set
    }
}

impl<'a, const KERNELS: u16> Chain<'a, KERNELS> {
    /// Chains `layers`, given in the order in which they run, and a sum behind them.
    ///
    /// # Errors
    /// [`Error::Range`] for no layer or more than [`MAX_LAYERS`], [`Error::Length`] where a layer
    /// does not take what the one before it gives, where a layer whose outputs are bytes has no
    /// factor or no `ReLU`, or where a layer needs a kernel that is not in `KERNELS`.
    pub const fn new(
        layers: &'a [Layer<'a>],
        sum: Option<Sum<'a>>,
        scales: Scales,
    ) -> Result<Self> {
        let widest = tri!(check(layers, sum));
        let lacking = (Chain::kernels(layers) & !KERNELS).count_ones() as usize;
        tri!(length("kernels that layers need and the chain lacks", lacking, 0));
        Ok(Self { layers, sum, scales, widest })
    }

    /// The layers in the order in which they run, without the sum.
    pub const fn layers(&self) -> &'a [Layer<'a>] {
        self.layers
    }

    /// The sum behind the layers.
    pub const fn sum(&self) -> Option<&Sum<'a>> {
        self.sum.as_ref()
    }

    /// What the integers stand for.
    pub const fn scales(&self) -> Scales {
        self.scales
    }

    /// Bytes in one input row.
    pub const fn inputs(&self) -> usize {
        if let [first, ..] = self.layers { first.inputs } else { 0 }
    }

    /// Numbers in one prediction.
    pub const fn outputs(&self) -> usize {
        match (self.sum, self.layers) {
            (Some(_), _) => 1,
            (None, [.., last]) => last.outputs,
            _ => 0,
        }
    }

    /// Numbers of `i32` that [`predict`](Self::predict) needs between layers: the sums of the
    /// widest hidden layer and its bytes.
    pub const fn scratch_len(&self) -> usize {
        self.widest + self.widest.div_ceil(size_of::<i32>())
    }

    /// Predicts one row: `x[inputs]`, `scratch[scratch_len]` or longer, `out[outputs]`.
    ///
    /// # Errors
    /// [`Error::Length`] if `x` or `out` has another length, [`Error::Budget`] if `scratch` is too
    /// short.
    pub fn predict(&self, x: &[u8], scratch: &mut [i32], out: &mut [i32]) -> Result<()> {
        self.predict_for(x, scratch, out, Blind)
    }

    /// Predicts one row, and shows every number that a layer gives: `see(layer, neuron, value)`,
    /// layer by layer and neuron by neuron, both counted from 0; the sum counts as a layer. Of all
    /// layers but the last they are the bytes that the next one reads. The prediction has the same
    /// bits.
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    pub fn predict_observed<S>(
        &self,
        x: &[u8],
        scratch: &mut [i32],
        out: &mut [i32],
        see: S,
    ) -> Result<()>
    where
        S: FnMut(usize, usize, i32),
    {
        self.predict_for(x, scratch, out, Seeing::new(see))
    }

    #[inline(always)]
    fn predict_for<O>(&self, x: &[u8], scratch: &mut [i32], out: &mut [i32], see: O) -> Result<()>
    where
        O: Observer<i32>,
    {
        length("input row", x.len(), self.inputs())?;
        length("prediction", out.len(), self.outputs())?;
        let needed = self.scratch_len().saturating_mul(size_of::<i32>());
        let short = Error::Budget { needed, got: size_of_val(scratch) };
        self.forward(x, scratch, out, see).ok_or(short)
    }

    /// `None` only if the scratch is too short.
    #[inline(never)]
    fn forward<O>(&self, x: &[u8], scratch: &mut [i32], out: &mut [i32], mut see: O) -> Option<()>
    where
        O: Observer<i32>,
    {
        let (sums, bytes) = scratch.split_at_mut_checked(self.widest)?;
        let bytes: &mut [u8] = bytemuck::try_cast_slice_mut(bytes).ok()?;
        for (k, layer) in self.layers.iter().enumerate() {
            rolled();
            let last = self.sum.is_none() && k + 1 == self.layers.len();
            let x = if k == 0 { x } else { bytes.get(..layer.inputs)? };
            let sums = if last { &mut *out } else { &mut *sums };
            let sums = sums.get_mut(..layer.outputs)?;
            layer.sums::<KERNELS>(x, sums)?;
            if !last {
                // The inputs of this layer are done with, so its outputs may take their place.
                cut::<KERNELS>(layer.rescale, sums, bytes);
                if O::SEES {
                    see.layer(bytes.get(..layer.outputs)?.iter().map(|&byte| byte.into()));
                }
                continue;
            }
            if KERNELS & LAST_FACTORS != 0 {
                scale(layer.rescale, sums);
            }
            if KERNELS & LAST_RELU != 0 && layer.activation == Activation::Relu {
                for sum in sums {
                    *sum = (*sum).max(0);
                    rolled();
                }
            }
        }
        if let Some(sum) = &self.sum {
            *out.first_mut()? = signed_sum(sum, bytes.get(..sum.inputs())?);
        }
        see.layer(out.iter().copied());
        Some(())
    }

    /// Predicts, and gives the class: of several outputs the place of the largest, of equal ones
    /// the lowest; of one, 1 from the threshold on.
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    pub fn classify(&self, x: &[u8], scratch: &mut [i32], out: &mut [i32]) -> Result<usize> {
        self.predict(x, scratch, out)?;
        Ok(self.class(out))
    }

    /// The class that a prediction stands for, as [`classify`](Self::classify) gives it.
    pub fn class(&self, out: &[i32]) -> usize {
        class(out, self.scales.threshold)
    }
}

/// A [`Chain`] that holds its layers, made or read when the program runs; see
/// [`QuantisedView`](crate::store::wire::QuantisedView) for an example.
#[derive(Debug, Clone, PartialEq)]
pub struct Model<'a> {
    layers: heapless::Vec<Layer<'a>, MAX_LAYERS>,
    sum: Option<Sum<'a>>,
    scales: Scales,
    columns: Option<Columns<'a>>,
    /// Outputs of the widest hidden layer.
    widest: usize,
}

impl<'a> Model<'a> {
    /// Chains `layers`, given in the order in which they run, and a sum behind them.
    ///
    /// # Errors
    /// Those of [`Chain::new`].
    pub fn new(layers: &[Layer<'a>], sum: Option<Sum<'a>>, scales: Scales) -> Result<Self> {
        let widest = check(layers, sum)?;
        let layers = heapless::Vec::from_slice(layers).unwrap_or_default();
        Ok(Self { layers, sum, scales, columns: None, widest })
    }

    /// The same with a scale and a zero for each input in place of those of all.
    ///
    /// # Errors
    /// [`crate::Error::Length`] for another number of them than inputs.
    pub fn with_columns(mut self, columns: Option<Columns<'a>>) -> Result<Self> {
        if let Some(columns) = columns {
            length("scales of the inputs", columns.zeros().len(), self.inputs())?;
        }
        self.columns = columns;
        Ok(self)
    }

    /// No model yet: layers are pushed to where they stay, since a move of all of them would take
    /// as much stack again.
    pub(crate) fn empty() -> Self {
        let scales = Scales::default();
        Self { layers: heapless::Vec::new(), sum: None, scales, columns: None, widest: 0 }
    }

    /// One more layer.
    pub(crate) fn push(&mut self, layer: Layer<'a>) -> Result<()> {
        push(&mut self.layers, layer)
    }

    /// Ends the layers: from here on it is what [`new`](Self::new) makes.
    pub(crate) fn finish(&mut self, sum: Option<Sum<'a>>, of: Readings<'a>) -> Result<()> {
        self.widest = check(&self.layers, sum)?;
        (self.sum, self.scales, self.columns) = (sum, of.all(), of.columns());
        match self.columns {
            Some(own) => length("scales of the inputs", own.zeros().len(), self.inputs()),
            None => Ok(()),
        }
    }

    /// The chain of its layers.
    pub fn chain(&self) -> Chain<'_> {
        Chain { layers: &self.layers, sum: self.sum, scales: self.scales, widest: self.widest }
    }

    /// The layers in the order in which they run, without the sum.
    pub fn layers(&self) -> &[Layer<'a>] {
        &self.layers
    }

    /// The sum behind the layers.
    pub fn sum(&self) -> Option<&Sum<'a>> {
        self.sum.as_ref()
    }

    /// What the integers stand for; of inputs only where they have no scales of their own.
    pub fn scales(&self) -> Scales {
        self.scales
    }

    /// How numbers become input bytes.
    pub fn readings(&self) -> Readings<'a> {
        Readings::new(self.scales, self.columns)
    }

    /// Bytes in one input row.
    pub fn inputs(&self) -> usize {
        self.chain().inputs()
    }

    /// Numbers in one prediction.
    pub fn outputs(&self) -> usize {
        self.chain().outputs()
    }

    /// Numbers of `i32` that [`predict`](Self::predict) needs between layers; see
    /// [`Chain::scratch_len`].
    pub fn scratch_len(&self) -> usize {
        self.chain().scratch_len()
    }

    /// Predicts one row: `x[inputs]`, `scratch[scratch_len]` or longer, `out[outputs]`.
    ///
    /// # Errors
    /// As [`Chain::predict`].
    pub fn predict(&self, x: &[u8], scratch: &mut [i32], out: &mut [i32]) -> Result<()> {
        self.chain().predict(x, scratch, out)
    }

    /// Predicts, and gives the class; see [`Chain::classify`].
    ///
    /// # Errors
    /// As [`Chain::predict`].
    pub fn classify(&self, x: &[u8], scratch: &mut [i32], out: &mut [i32]) -> Result<usize> {
        self.chain().classify(x, scratch, out)
    }
}

/// Checks that layers and a sum follow each other; outputs of the widest layer that gives bytes.
const fn check(layers: &[Layer<'_>], sum: Option<Sum<'_>>) -> Result<usize> {
    let most = if sum.is_some() { MAX_LAYERS - 1 } else { MAX_LAYERS };
    tri!(range("layers of the model", layers.len(), 1, most));
    let (mut widest, mut left) = (0, layers);
    while let [layer, behind @ ..] = left {
        let inputs = match (behind, sum) {
            ([next, ..], _) => Some(next.inputs),
            ([], Some(sum)) => Some(sum.inputs()),
            ([], None) => None,
        };
        if let Some(inputs) = inputs {
            tri!(length("inputs of a layer", inputs, layer.outputs));
            let given = matches!(layer.activation, Activation::Relu) && !layer.rescale.is_empty();
            tri!(length("hidden layers with ReLU and a factor", given as usize, 1));
            widest = if layer.outputs > widest { layer.outputs } else { widest };
        }
        left = behind;
    }
    Ok(widest)
}

/// Sums to bytes, by one factor for all or one for each.
#[inline(always)]
fn cut<const KERNELS: u16>(factors: &[u32], sums: &[i32], bytes: &mut [u8]) {
    match factors {
        [factor] if KERNELS & ONE_FACTOR != 0 => cut_by(*factor, sums, bytes),
        _ if KERNELS & OWN_FACTORS != 0 => cut_by_each(factors, sums, bytes),
        _ => {}
    }
}

#[inline(never)]
fn cut_by(factor: u32, sums: &[i32], bytes: &mut [u8]) {
    let factor = Rescale::known(factor).fixed();
    for (byte, &sum) in bytes.iter_mut().zip(sums) {
        *byte = factor.byte(sum);
        rolled();
    }
}

#[inline(never)]
fn cut_by_each(factors: &[u32], sums: &[i32], bytes: &mut [u8]) {
    for ((byte, &sum), &factor) in bytes.iter_mut().zip(sums).zip(factors) {
        *byte = Rescale::known(factor).byte(sum);
        rolled();
    }
}

/// Multiplies sums by one factor for all or one for each; they stay as they are where there is
/// none.
#[inline(always)]
fn scale(factors: &[u32], sums: &mut [i32]) {
    let mut factors = factors;
    for sum in sums {
        let [factor, behind @ ..] = factors else { return };
        *sum = Rescale::known(*factor).number(*sum);
        // The last one stays: it may be that of all outputs.
        if !behind.is_empty() {
            factors = behind;
        }
        rolled();
    }
}

/// The class of a prediction.
pub(crate) fn class(out: &[i32], threshold: i32) -> usize {
    if let [one] = out {
        return usize::from(*one >= threshold);
    }
    let mut best = (0, i32::MIN);
    for (class, &score) in out.iter().enumerate() {
        best = if score > best.1 { (class, score) } else { best };
    }
    best.0
}

/// `sum_j ±x_j`; at most 65536 bytes, so it does not overflow.
#[inline(never)]
pub(crate) fn signed_sum(sum: &Sum<'_>, x: &[u8]) -> i32 {
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
