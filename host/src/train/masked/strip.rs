//! One strip of samples through the whole network, forwards and back.

use pulp::{Arch, Simd, WithSimd};
use tamis::base::bits::is_set;
use tamis::base::error::Result;
use tamis::learn::deep::{Head, Stack};
use tamis::learn::loss::Labels;
use tamis::network::weights::Weights;

use super::gather::{Element, gather};
use super::kernel::{Backward, Forward, LANES, Lanes, Outer};
use super::links::Links;
use super::residual::{Loss, residual};
use crate::data::augment::{Augment, Scratch};
use crate::data::{Matrix, Values};

/// Rows of a strip that lie one behind the other.
const ALL_LANES: [usize; LANES] = {
    let (mut all, mut lane) = ([0; LANES], 0);
    while lane < LANES {
        all[lane] = lane;
        lane += 1;
    }
    all
};

/// A layer's weights, by both of their ends.
#[derive(Debug)]
pub(super) struct Layer {
    /// Grouped as the weights lie in a [`Stack`]: by output of a hidden layer, by input of the
    /// weights to the outputs.
    pub(super) own: Links,
    /// Empty for a first layer that is hidden: its inputs need no residuals.
    pub(super) turned: Links,
    /// Place of the first weight.
    pub(super) start: usize,
    pub(super) is_end: bool,
}

impl Layer {
    /// The layers of a network.
    ///
    /// # Errors
    /// A layer of more than 65536 inputs or neurons.
    pub(super) fn all(stack: &Stack<'_>) -> Result<Vec<Self>> {
        let hidden = stack.layers().count() - usize::from(matches!(stack.head(), Head::Weights(_)));
        let mut start = 0;
        let layer = |(l, w): (usize, Weights<'_>)| {
            let (own, is_end) = (Links::of(w)?, l >= hidden);
            let turned = if l > 0 || is_end { own.turned(w.inputs()) } else { Links::default() };
            start += w.nnz();
            Ok(Self { own, turned, start: start - w.nnz(), is_end })
        };
        stack.layers().enumerate().map(layer).collect()
    }

    fn by_output(&self) -> &Links {
        if self.is_end { &self.turned } else { &self.own }
    }

    fn by_input(&self) -> &Links {
        if self.is_end { &self.own } else { &self.turned }
    }

    fn weights<'a>(&self, values: &'a [f32]) -> &'a [f32] {
        &values[self.start..][..self.own.len()]
    }
}

/// What is the same for all strips of a pass.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    pub(super) layers: &'a [Layer],
    pub(super) stack: &'a Stack<'a>,
    pub(super) data: &'a Matrix,
    pub(super) scale: f32,
    /// Blocks of input columns that have weights.
    pub(super) used: &'a [bool],
    pub(super) arch: Arch,
    pub(super) augment: Option<&'a Augment>,
}

/// Memory for changed rows; none where none is changed.
#[derive(Debug, Default)]
struct Changed {
    rows: Vec<f32>,
    scratch: Option<Scratch>,
}

/// Memory for the activations of a strip, and a gradient where it is not the first of its wave.
#[derive(Debug)]
pub(super) struct Strip {
    /// Of the input, of each hidden layer, and of the outputs.
    acts: Vec<Vec<Lanes>>,
    pub(super) gradient: Vec<f32>,
    /// Rows of the data in the lanes.
    rows: Vec<usize>,
    /// Rows as they were changed, one behind the other.
    changed: Changed,
    pub(super) loss: Loss,
}

impl Strip {
    pub(super) fn new(widths: &[usize], gradient: usize) -> Self {
        let acts = widths.iter().map(|&width| vec![Lanes::ZERO; width]).collect();
        let rows = Vec::with_capacity(LANES);
        let (gradient, changed) = (vec![0.0; gradient], Changed::default());
        Self { acts, gradient, rows, changed, loss: Loss::default() }
    }

    /// Samples in the lanes.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn bytes(&self) -> usize {
        let acts = self.acts.iter().map(|acts| size_of_val(&acts[..]));
        acts.sum::<usize>() + size_of_val(&self.gradient[..]) + LANES * size_of::<usize>()
    }

    /// The outputs, row by row.
    pub(super) fn outputs(&self, out: &mut [f32]) {
        let acts = &self.acts[self.acts.len() - 1];
        for (l, row) in out.chunks_exact_mut(acts.len()).enumerate() {
            row.iter_mut().zip(acts).for_each(|(out, acts)| *out = acts.0[l]);
        }
    }

    /// Takes `rows` through the network, as draws from number `draw` on where they are changed.
    pub(super) fn forward(
        &mut self,
        work: &Work<'_>,
        draw: u64,
        rows: impl Iterator<Item = usize>,
    ) {
        self.rows.clear();
        self.rows.extend(rows);
        let Work { data, scale, used, arch, .. } = *work;
        let rows = &self.rows[..];
        let (out, ones) = self.acts[0].split_at_mut(data.cols);
        ones.fill(Lanes::ONE);
        if let Some(augment) = work.augment {
            let Changed { rows: changed, scratch } = &mut self.changed;
            let scratch = scratch.get_or_insert_with(|| augment.scratch());
            changed.resize(LANES * data.cols, 0.0);
            let each = (draw..).zip(rows).zip(changed.chunks_exact_mut(data.cols.max(1)));
            for ((draw, &row), out) in each {
                let own = row * data.cols..(row + 1) * data.cols;
                match &data.values {
                    Values::F32(data) => augment.row(draw, &data[own], scale, scratch, out),
                    Values::U8(data) => augment.row(draw, &data[own], scale, scratch, out),
                }
            }
            let (order, data) = (&ALL_LANES[..rows.len()], &changed[..]);
            arch.dispatch(Gather { data, rows: order, scale: 1.0, used, out });
        } else {
            match &data.values {
                Values::F32(data) => arch.dispatch(Gather { data, rows, scale, used, out }),
                Values::U8(data) => arch.dispatch(Gather { data, rows, scale, used, out }),
            }
        }
        let values = work.stack.values();
        for (l, layer) in work.layers.iter().enumerate() {
            let (below, above) = self.acts.split_at_mut(l + 1);
            arch.dispatch(Forward {
                links: layer.by_output(),
                weights: layer.weights(values),
                below: &below[l],
                out: &mut above[0],
                relu: !layer.is_end,
            });
        }
        let outputs = self.acts.len() - 1;
        if let Head::Sum(signs) = work.stack.head() {
            let (hidden, out) = self.acts.split_at_mut(outputs);
            sum(signs, &hidden[outputs - 1], &mut out[0][0]);
        }
    }

    /// Losses, and residuals in place of the outputs, of the rows of the last [`Self::forward`].
    pub(super) fn residual(&mut self, work: &Work<'_>, labels: Labels<'_>) {
        let (rows, outputs) = (&self.rows[..], self.acts.len() - 1);
        let out = &mut self.acts[outputs][..];
        self.loss = work.arch.dispatch(Residual { labels, rows, out });
    }

    /// Adds the sum over the rows to `gradient`; activations become residuals.
    pub(super) fn backward(&mut self, work: &Work<'_>, gradient: &mut [f32]) {
        self.backward_to(work, 0, gradient);
        self.layer_back(work, 0, gradient);
    }

    /// Residuals in place of the activations above layer `to`; those below stay. Without a gradient
    /// none is added to.
    pub(super) fn backward_to(&mut self, work: &Work<'_>, to: usize, gradient: &mut [f32]) {
        if let Head::Sum(signs) = work.stack.head() {
            let outputs = self.acts.len() - 1;
            let (hidden, out) = self.acts.split_at_mut(outputs);
            spread(signs, &out[0][0], &mut hidden[outputs - 1]);
        }
        for l in (to + 1..work.layers.len()).rev() {
            self.layer_back(work, l, gradient);
        }
    }

    /// Layer `l`, whose outputs have their residuals.
    fn layer_back(&mut self, work: &Work<'_>, l: usize, gradient: &mut [f32]) {
        let values = work.stack.values();
        let layer = &work.layers[l];
        let (below, above) = self.acts.split_at_mut(l + 1);
        let (below, above) = (&mut below[l][..], &above[0][..]);
        let gradient = match gradient {
            [] => gradient,
            all => &mut all[layer.start..][..layer.own.len()],
        };
        if l > 0 {
            let (links, weights) = (layer.by_input(), layer.weights(values));
            work.arch.dispatch(Backward { links, weights, gradient, above, below });
        } else {
            let (own, others) = if layer.is_end { (&*below, above) } else { (above, &*below) };
            work.arch.dispatch(Outer { links: &layer.own, gradient, own, others });
        }
    }

    /// Activations below layer `l` and residuals above it, one row of lanes a neuron.
    pub(super) fn sides(&self, l: usize) -> [&[f32]; 2] {
        [&self.acts[l], &self.acts[l + 1]].map(|acts| bytemuck::cast_slice(acts))
    }

    /// Adds the sums of squares of all activations, inputs first, to `out`.
    pub(super) fn add_squares(&self, out: &mut [f32]) {
        for (out, acts) in out.iter_mut().zip(self.acts.iter().flatten()) {
            *out += acts.0[..self.len()].iter().map(|a| a * a).sum::<f32>();
        }
    }
}

/// The sum of the neurons, those whose bit is set taken away.
fn sum(signs: &[u32], hidden: &[Lanes], out: &mut Lanes) {
    *out = Lanes::ZERO;
    for (i, a) in hidden.iter().enumerate() {
        let sign = if is_set(signs, i) { -1.0 } else { 1.0 };
        out.0.iter_mut().zip(&a.0).for_each(|(out, a)| *out += sign * a);
    }
}

/// Residuals of the neurons of a sum, in place of their activations.
fn spread(signs: &[u32], residual: &Lanes, hidden: &mut [Lanes]) {
    for (i, a) in hidden.iter_mut().enumerate() {
        let sign = if is_set(signs, i) { -1.0 } else { 1.0 };
        for (a, r) in a.0.iter_mut().zip(&residual.0) {
            *a = if *a > 0.0 { sign * r } else { 0.0 };
        }
    }
}

struct Gather<'a, T> {
    data: &'a [T],
    rows: &'a [usize],
    scale: f32,
    used: &'a [bool],
    out: &'a mut [Lanes],
}

impl<T: Element> WithSimd for Gather<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        gather(self.data, self.rows, self.scale, self.used, self.out);
    }
}

struct Residual<'a> {
    labels: Labels<'a>,
    pub(super) rows: &'a [usize],
    pub(super) out: &'a mut [Lanes],
}

impl WithSimd for Residual<'_> {
    type Output = Loss;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Loss {
        residual(self.labels, self.rows, self.out)
    }
}
