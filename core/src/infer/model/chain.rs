//! Layers one behind the other, and their prediction.

use super::input::Input;
use super::kernels::{ALL_KERNELS, ALONE, DIRECT, FUSED, KEPT, MAX_LAYERS};
use super::layer::Layer;
use super::observe::{Blind, Observer, Seeing};
use crate::base::budget::enough;
use crate::base::error::{length, range, tri};
use crate::{Error, Result};

/// A chain of one to [`MAX_LAYERS`] sparse layers that lie elsewhere.
///
/// A model in a `static`, as `tamis export --format rust` writes it, is checked when the program is
/// built and is linked without a check and with only those kernels that have a bit in `KERNELS`.
///
/// ```
/// use tamis::infer::model::{Activation, Chain, Csr, Layer, Sum};
///
/// /// What was checked; an error ends the compilation.
/// const fn checked<T: Copy>(result: tamis::Result<T>) -> T {
///     match result {
///         Ok(value) => value,
///         Err(error) => panic!("{}", error.what()),
///     }
/// }
///
/// // f(x) = relu(x_0 - 0.5 x_2) - relu(2 x_1)
/// const LAYERS: [Layer<'static>; 2] = [
///     Layer::Csr(checked(Csr::new(3, &[2, 1], &[0, 2, 1], &[1.0, -0.5, 2.0], Activation::Relu))),
///     Layer::Sum(checked(Sum::new(2, &[0b10]))),
/// ];
/// static MODEL: Chain<'static, { Chain::kernels(&LAYERS) }> = checked(Chain::new(&LAYERS));
///
/// let mut f = [0.0];
/// MODEL.predict(&[3.0, 0.25, 1.0], &mut [], &mut f)?;
/// assert_eq!(f, [2.0]);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chain<'a, const KERNELS: u16 = ALL_KERNELS> {
    layers: &'a [Layer<'a>],
}

impl Chain<'_> {
    /// The set of the kernels that these layers need, for the type of a chain in a `static`.
    #[must_use]
    pub const fn kernels(layers: &[Layer<'_>]) -> u16 {
        let (mut set, mut left) = (0, layers);
        while let [layer, behind @ ..] = left {
            (set, left) = (set | layer.kernels(), behind);
        }
        let (body, tail) = split(layers);
        set |= if body.is_empty() { DIRECT } else { KEPT };
        set | if tail.len() > 1 { FUSED } else { ALONE }
    }
}

impl<'a, const KERNELS: u16> Chain<'a, KERNELS> {
    /// Chains `layers`, given in the order in which they run.
    ///
    /// # Errors
    /// [`Error::Range`] for no layer or more than [`MAX_LAYERS`], [`Error::Length`] where a layer
    /// does not take what the one before it gives, where a [`Sum`](super::Sum) is not the last, or
    /// where a layer needs a kernel that is not in `KERNELS`.
    pub const fn new(layers: &'a [Layer<'a>]) -> Result<Self> {
        tri!(check(layers));
        let lacking = (Chain::kernels(layers) & !KERNELS).count_ones() as usize;
        tri!(length("kernels that layers need and the chain lacks", lacking, 0));
        Ok(Self { layers })
    }

    /// The layers in the order in which they run.
    pub const fn layers(&self) -> &'a [Layer<'a>] {
        self.layers
    }

    /// Numbers in one input row.
    pub const fn inputs(&self) -> usize {
        if let [first, ..] = self.layers { first.inputs() } else { 0 }
    }

    /// Numbers in one prediction.
    pub const fn outputs(&self) -> usize {
        if let [.., last] = self.layers { last.outputs() } else { 0 }
    }

    /// Numbers of `f32` that [`predict`](Self::predict) needs for activations between layers: the
    /// largest sum of two neighbours; 0 for one hidden layer of rows under a sum.
    pub const fn scratch_len(&self) -> usize {
        let (mut most, mut before, mut left) = (0, 0, split(self.layers).0);
        while let [layer, behind @ ..] = left {
            let pair = layer.outputs().saturating_add(before);
            most = if pair > most { pair } else { most };
            (before, left) = (layer.outputs(), behind);
        }
        most
    }

    /// Layers, from the first, whose outputs go to the scratch.
    pub const fn kept_activations(&self) -> usize {
        split(self.layers).0.len()
    }

    /// Predicts one row: `x[inputs]`, `scratch[scratch_len]` or longer, `out[outputs]`.
    ///
    /// # Errors
    /// [`Error::Length`] if `x` or `out` has another length, [`Error::Budget`] if `scratch` is too
    /// short.
    pub fn predict(&self, x: &[f32], scratch: &mut [f32], out: &mut [f32]) -> Result<()> {
        self.predict_from(x, scratch, out)
    }

    /// Predicts one row read from any [`Input`]; lengths as for [`predict`](Self::predict).
    ///
    /// # Errors
    /// As [`predict`](Self::predict), and [`Error::Length`] if a number of the row is missing.
    pub fn predict_from<X>(&self, x: &X, scratch: &mut [f32], out: &mut [f32]) -> Result<()>
    where
        X: Input + ?Sized,
    {
        self.predict_for(x, scratch, out, Blind)
    }

    /// Predicts one row read from any [`Input`], and shows every number that a layer gives:
    /// `see(layer, neuron, value)`, layer by layer and neuron by neuron, both counted from 0.
    /// The prediction has the same bits. See [`Trace`](crate::infer::trace::Trace) for an example.
    ///
    /// # Errors
    /// As [`predict_from`](Self::predict_from).
    pub fn predict_observed<X, S>(
        &self,
        x: &X,
        scratch: &mut [f32],
        out: &mut [f32],
        see: S,
    ) -> Result<()>
    where
        X: Input + ?Sized,
        S: FnMut(usize, usize, f32),
    {
        self.predict_for(x, scratch, out, Seeing::new(see))
    }

    #[inline(always)]
    fn predict_for<X, O>(&self, x: &X, scratch: &mut [f32], out: &mut [f32], see: O) -> Result<()>
    where
        X: Input + ?Sized,
        O: Observer<f32>,
    {
        length("input row", x.len(), self.inputs())?;
        length("prediction", out.len(), self.outputs())?;
        let needed = self.scratch_len();
        enough(needed, scratch.len())?;
        let scratch = scratch.get_mut(..needed).unwrap_or_default();
        let missing =
            Error::Length { what: "numbers of the row that is read", expected: x.len(), got: 0 };
        self.forward(x, scratch, out, see).ok_or(missing)
    }

    fn forward<X, O>(&self, x: &X, scratch: &mut [f32], out: &mut [f32], mut see: O) -> Option<()>
    where
        X: Input + ?Sized,
        O: Observer<f32>,
    {
        let (body, tail) = split(self.layers);
        let Some((first, rest)) = body.split_first().filter(|_| KERNELS & KEPT != 0) else {
            let is_linked = KERNELS & DIRECT != 0;
            return is_linked.then(|| run_tail::<X, O, KERNELS>(tail, x, out, see))?;
        };
        let mut ends = Ends::new(scratch);
        let (_, next) = ends.step(first.outputs())?;
        first.apply::<X, KERNELS>(x, next)?;
        see.layer(next.iter().copied());
        for layer in rest {
            let (now, next) = ends.step(layer.outputs())?;
            layer.apply::<[f32], KERNELS>(now, next)?;
            see.layer(next.iter().copied());
        }
        run_tail::<[f32], O, KERNELS>(tail, ends.step(0)?.0, out, see)
    }
}

/// The layers whose activations go to the scratch, and those that give the prediction from them.
const fn split<'l, 'a>(layers: &'l [Layer<'a>]) -> (&'l [Layer<'a>], &'l [Layer<'a>]) {
    let fused = matches!(layers, [.., Layer::Csr(_), Layer::Sum(_)]);
    let tail = if fused { 2 } else { 1 };
    match layers.split_at_checked(layers.len().saturating_sub(tail)) {
        Some(parts) => parts,
        None => (&[], &[]),
    }
}

/// A [`Chain`] that holds its layers, made or read when the program runs.
///
/// ```
/// use tamis::infer::model::{Activation, Csr, Layer, Model, Sum};
///
/// // f(x) = relu(x_0 - 0.5 x_2) - relu(2 x_1)
/// let hidden = Csr::new(3, &[2, 1], &[0, 2, 1], &[1.0, -0.5, 2.0], Activation::Relu)?;
/// let sum = Sum::new(2, &[0b10])?;
/// let model = Model::new(&[Layer::Csr(hidden), Layer::Sum(sum)])?;
/// assert_eq!((model.inputs(), model.outputs(), model.scratch_len()), (3, 1, 0));
///
/// let mut f = [0.0];
/// model.predict(&[3.0, 0.25, 1.0], &mut [], &mut f)?;
/// assert_eq!(f, [2.0]);
/// model.predict_u8(&[3, 0, 2], &mut [], &mut f)?;
/// assert_eq!(f, [2.0]);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Model<'a> {
    layers: heapless::Vec<Layer<'a>, MAX_LAYERS>,
}

impl<'a> Model<'a> {
    /// Chains `layers`, given in the order in which they run.
    ///
    /// # Errors
    /// Those of [`Chain::new`].
    pub fn new(layers: &[Layer<'a>]) -> Result<Self> {
        check(layers)?;
        Ok(Self { layers: heapless::Vec::from_slice(layers).unwrap_or_default() })
    }

    /// No model yet: layers are pushed to where they stay, since a move of all of them would take
    /// as much stack again.
    pub(crate) fn empty() -> Self {
        Self { layers: heapless::Vec::new() }
    }

    /// One more layer.
    pub(crate) fn push(&mut self, layer: Layer<'a>) -> Result<()> {
        push(&mut self.layers, layer)
    }

    /// Ends the layers: from here on it is what [`new`](Self::new) makes.
    pub(crate) fn finish(&self) -> Result<()> {
        check(&self.layers)
    }

    /// The chain of its layers.
    pub fn chain(&self) -> Chain<'_> {
        Chain { layers: &self.layers }
    }

    /// The layers in the order in which they run.
    pub fn layers(&self) -> &[Layer<'a>] {
        &self.layers
    }

    /// Numbers in one input row.
    pub fn inputs(&self) -> usize {
        self.chain().inputs()
    }

    /// Numbers in one prediction.
    pub fn outputs(&self) -> usize {
        self.chain().outputs()
    }

    /// Numbers of `f32` that [`predict`](Self::predict) needs between layers; see
    /// [`Chain::scratch_len`].
    pub fn scratch_len(&self) -> usize {
        self.chain().scratch_len()
    }

    /// Predicts one row: `x[inputs]`, `scratch[scratch_len]` or longer, `out[outputs]`.
    ///
    /// # Errors
    /// As [`Chain::predict`].
    pub fn predict(&self, x: &[f32], scratch: &mut [f32], out: &mut [f32]) -> Result<()> {
        self.chain().predict_from(x, scratch, out)
    }

    /// Predicts one row of bytes that stand for the numbers 0 to 255.
    ///
    /// # Errors
    /// As [`Chain::predict`].
    pub fn predict_u8(&self, x: &[u8], scratch: &mut [f32], out: &mut [f32]) -> Result<()> {
        self.chain().predict_from(x, scratch, out)
    }

    /// Predicts one row read from any [`Input`]; lengths as for [`predict`](Self::predict).
    ///
    /// # Errors
    /// As [`Chain::predict_from`].
    pub fn predict_from<X>(&self, x: &X, scratch: &mut [f32], out: &mut [f32]) -> Result<()>
    where
        X: Input + ?Sized,
    {
        self.chain().predict_from(x, scratch, out)
    }
}

/// One more layer.
pub(crate) fn push<T>(layers: &mut heapless::Vec<T, MAX_LAYERS>, layer: T) -> Result<()> {
    let (what, got) = ("layers of the model", MAX_LAYERS + 1);
    layers.push(layer).map_err(|_| Error::Range { what, min: 1, max: MAX_LAYERS, got })
}

/// Checks that layers follow each other.
const fn check(layers: &[Layer<'_>]) -> Result<()> {
    let count = layers.len();
    tri!(range("layers of the model", count, 1, MAX_LAYERS));
    let mut left = layers;
    while let [layer, behind @ ..] = left {
        if matches!(layer, Layer::Sum(_)) {
            tri!(length("layers up to the sum", count - behind.len(), count));
        }
        left = behind;
    }
    let mut left = layers;
    while let [before, behind @ ..] = left
        && let [after, ..] = behind
    {
        tri!(length("inputs of a layer", after.inputs(), before.outputs()));
        left = behind;
    }
    Ok(())
}

/// The last layer, or the last two where no activation has to be kept.
fn run_tail<X, O, const KERNELS: u16>(
    tail: &[Layer<'_>],
    x: &X,
    out: &mut [f32],
    mut see: O,
) -> Option<()>
where
    X: Input + ?Sized,
    O: Observer<f32>,
{
    match tail {
        [Layer::Csr(csr), Layer::Sum(sum)] if KERNELS & FUSED != 0 => {
            let y = out.first_mut()?;
            if O::SEES {
                let hidden = csr.rows::<X, KERNELS>(x).enumerate();
                *y =
                    sum.add(0.0, hidden.map(|(neuron, h)| h.inspect(|&h| see.number(neuron, h))))?;
                see.next();
                see.layer(core::iter::once(*y));
            } else {
                *y = sum.add(0.0, csr.rows::<X, KERNELS>(x))?;
            }
            Some(())
        }
        [layer] if KERNELS & ALONE != 0 => {
            layer.apply::<X, KERNELS>(x, out)?;
            see.layer(out.iter().copied());
            Some(())
        }
        _ => None,
    }
}

/// The scratch, used from both ends in turn: what a layer reads at one end, the next one writes at
/// the other.
pub(crate) struct Ends<'s> {
    scratch: &'s mut [f32],
    /// Length of the activations that were written last.
    now: usize,
    /// They lie at the start, not at the end.
    at_start: bool,
}

impl<'s> Ends<'s> {
    /// Nothing was written yet.
    pub(crate) const fn new(scratch: &'s mut [f32]) -> Self {
        Self { scratch, now: 0, at_start: false }
    }

    /// What was written last, and room for `len` numbers at the other end.
    pub(crate) fn step(&mut self, len: usize) -> Option<(&[f32], &mut [f32])> {
        let free = self.scratch.len().checked_sub(self.now)?.checked_sub(len)?;
        let cut = if self.at_start { self.now } else { len };
        let (start, end) = self.scratch.split_at_mut_checked(cut)?;
        let end = end.get_mut(free..)?;
        let (old, new) = if self.at_start { (start, end) } else { (end, start) };
        (self.now, self.at_start) = (len, !self.at_start);
        Some((old, new))
    }
}
