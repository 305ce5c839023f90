//! Backpropagation through a network of sparse layers at the speed of the machine: what
//! [`tamis::learn::masked`] trains with on a host.
//!
//! A batch goes through all layers in strips of 64 samples, so that the activations of a strip stay
//! in the cache; sparse products run along the samples. Strips of a batch go in waves of as many as
//! there are threads, or fewer; then each thread takes the gradient of some weights over all of them, strip by
//! strip: neither the number of threads nor the width of the vectors changes a bit. Memory is that of
//! the activations of the strips of a wave, and of 2 bytes for each weight behind the first hidden
//! layer, which is looked up by both of its ends.

mod kernel;
mod links;
mod residual;
mod strip;
mod waves;

use std::convert::Infallible;
use std::ops::Range;

use pulp::Arch;
use rayon::prelude::*;
use serde::Serialize;
#[cfg(doc)]
use tamis::base::error::Error;
use tamis::base::error::{self, Result};
use tamis::learn::deep::backprop::{
    self, Backprop, Batch, Derivatives, Panel, PanelMemory, Panels,
};
use tamis::learn::deep::{Head, Stack};
use tamis::learn::loss::Labels;

use super::Stop;
use super::gather::used_blocks;
use super::lanes::LANES;
use crate::data::Matrix;
use crate::data::augment::Augment;
pub(crate) use links::MOST_NEURONS;
pub(crate) use strip::strip_bytes;
use strip::{Changed, Layer, Strip, Work, across};
use waves::{Pass, Reads, Wave, add_gradient, each};

/// How good a network is on all rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Score {
    /// Mean squared error over rows and outputs, or mean cross-entropy over rows.
    pub loss: f64,
    /// Fraction of the rows whose class is right; none for numbers.
    pub accuracy: Option<f64>,
}

/// Labelled rows, and memory for networks on one support; runs on the current rayon pool.
///
/// ```
/// use tamis::learn::{deep::{Stack, backprop::{Backprop, Batch}}, loss::Labels};
/// use tamis::network::{gates::Signs, weights::Weights};
/// use tamis_host::data::{Matrix, Values};
/// use tamis_host::operator::{Stop, backprop::Engine};
/// let data = Matrix::new(2, 2, Values::U8(vec![3, 0, 0, 2]))?;
/// let (mut index, mut value) = ([0; 2], [0.0; 2]);
/// let mut stack = Stack::new(2, &mut index, &mut value);
/// stack.push(Weights::new(2, 2, &[0, 3], &[1.0, 0.5])?, Signs::Positive)?;
/// stack.end_sum(&[])?;
/// let mut engine = Engine::new(&data, 1.0, Labels::values(&[3.0, 2.0]), &stack, &Stop::new())?;
/// let mut gradient = [0.0; 2];
/// let batch = Batch { positions: 0..2, order: None };
/// assert_eq!(engine.gradient(&stack, &batch, &mut gradient)?, 1.0);
/// assert_eq!(gradient, [0.0, 2.0]);
/// # Ok::<(), tamis_host::Error>(())
/// ```
#[derive(Debug)]
pub struct Engine<'a> {
    data: &'a Matrix,
    scale: f32,
    labels: Labels<'a>,
    layers: Vec<Layer>,
    used: Vec<bool>,
    /// Those of a wave: one for each thread, or fewer.
    strips: Vec<Strip>,
    /// Numbers of each thread for panels.
    across: Vec<Vec<f32>>,
    arch: Arch,
    stop: Stop,
    augment: Option<&'a Augment>,
    /// Rows that training has read.
    drawn: u64,
}

impl<'a> Engine<'a> {
    /// For the rows of `data` times `scale`, and networks with the support of `stack`, which may have
    /// one more input, 1 in every row; `stop` ends a pass between two strips.
    ///
    /// # Errors
    /// [`Error::Range`] for a layer of more than 65536 inputs or neurons, or a network without an
    /// end; [`Error::Length`] for rows or labels that do not fit, [`Error::NotFinite`] for labels
    /// or a scale that are no numbers.
    pub fn new(
        data: &'a Matrix,
        scale: f32,
        labels: Labels<'a>,
        stack: &Stack<'_>,
        stop: &Stop,
    ) -> Result<Self> {
        Self::with_strips(rayon::current_num_threads(), data, scale, labels, stack, stop)
    }

    /// The same with at most so many strips at once, whatever the threads.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn with_strips(
        most: usize,
        data: &'a Matrix,
        scale: f32,
        labels: Labels<'a>,
        stack: &Stack<'_>,
        stop: &Stop,
    ) -> Result<Self> {
        error::finite("scale of the samples", &[scale])?;
        // One more input than there are columns is 1 in every row.
        let inputs = data.cols + usize::from(stack.inputs() == data.cols + 1);
        error::length("inputs of the rows", inputs, stack.inputs())?;
        backprop::check(data.rows, labels, stack)?;
        let layers = Layer::all(stack)?;
        let mut widths = vec![inputs];
        widths.extend(
            stack.layers().zip(&layers).map(
                |(w, layer)| {
                    if layer.is_end { w.inputs() } else { w.hidden() }
                },
            ),
        );
        if matches!(stack.head(), Head::Sum(_)) {
            widths.push(1);
        }
        let used = used(stack, &layers);
        let strips =
            (0..most.min(rayon::current_num_threads())).map(|_| Strip::new(&widths)).collect();
        Ok(Self {
            data,
            scale,
            labels,
            layers,
            used,
            strips,
            across: Vec::new(),
            arch: Arch::new(),
            stop: stop.clone(),
            augment: None,
            drawn: 0,
        })
    }

    /// The same with rows that are changed whenever training reads them; scores are of the rows as
    /// they are.
    #[must_use]
    pub fn augmented(mut self, augment: &'a Augment) -> Self {
        let changed = || Changed::new(augment, self.data.cols);
        self.strips.iter_mut().for_each(|strip| strip.changed = changed());
        self.augment = Some(augment);
        self
    }

    /// The same with memory for panels.
    #[must_use]
    pub fn growing(mut self) -> Self {
        self.grow();
        self
    }

    fn grow(&mut self) {
        let numbers = across(self.strips[0].widest());
        self.across.resize_with(self.strips.len(), || vec![0.0; numbers]);
    }

    /// Bytes of memory, without data and labels.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let strips = self.strips.iter().map(Strip::bytes);
        let augment = self.augment.map_or(0, Augment::bytes);
        let across: usize = self.across.iter().map(|own| size_of_val(&own[..])).sum();
        self.link_bytes() + strips.sum::<usize>() + self.used.len() + augment + across
    }

    /// Bytes that grow with the weights.
    pub(crate) fn link_bytes(&self) -> usize {
        self.layers.iter().map(Layer::bytes).sum()
    }

    /// Loss and accuracy on all rows.
    ///
    /// # Errors
    /// [`Error::Stopped`] if it was asked to end.
    pub fn score(&mut self, stack: &Stack<'_>) -> Result<Score> {
        self.score_batch(stack, &Batch::all(self.data.rows))
    }

    fn score_batch(&mut self, stack: &Stack<'_>, batch: &Batch) -> Result<Score> {
        let (labels, rows) = (self.labels, batch.positions.len());
        let (mut sum, mut right) = (0.0, 0);
        self.waves(stack, batch, Reads::Plain, |wave, strips| {
            each(strips, |t, strip| {
                strip.forward(wave.work, wave.draw(t), wave.rows(t));
                strip.residual(wave.work, labels);
            });
            for strip in strips {
                sum += strip.loss.sum;
                right += strip.loss.right;
            }
        })?;
        let (terms, accuracy) = match labels {
            Labels::Values(_) => (rows * stack.outputs(), None),
            Labels::Classes(_) => (rows, Some(right as f64 / rows as f64)),
        };
        Ok(Score { loss: sum / terms as f64, accuracy })
    }

    /// Writes the outputs of all rows to `out`, row by row.
    ///
    /// # Errors
    /// [`Error::Length`] for `out` of another length, [`Error::Stopped`] if it was asked to end.
    pub fn predict(&mut self, stack: &Stack<'_>, out: &mut [f32]) -> Result<()> {
        let (n, c) = (self.data.rows, stack.outputs());
        error::length("outputs", out.len(), n * c)?;
        let all = Batch::all(n);
        let mut left = out;
        self.waves(stack, &all, Reads::Plain, |wave, strips| {
            wave.forward(strips);
            for strip in &*strips {
                let (own, rest) = std::mem::take(&mut left).split_at_mut(strip.len() * c);
                strip.outputs(own);
                left = rest;
            }
        })
    }

    /// Runs `work` over the strips of a batch with all inputs, also those that have no weights.
    fn with_all_inputs<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let all = vec![true; self.used.len()];
        let used = std::mem::replace(&mut self.used, all);
        let done = work(self);
        self.used = used;
        done
    }

    fn pass<'e>(&'e mut self, stack: &'e Stack<'e>, reads: Reads) -> Pass<'e> {
        let Self { data, scale, layers, used, strips, across, arch, stop, augment, drawn, .. } =
            self;
        let augment = augment.filter(|_| reads == Reads::Changed);
        let work = Work { layers, stack, data, scale: *scale, used, arch: *arch, augment };
        Pass { work, strips, across, drawn: *drawn, stop }
    }

    /// Runs over the strips of a batch, wave by wave.
    fn waves(
        &mut self,
        stack: &Stack<'_>,
        batch: &Batch,
        reads: Reads,
        mut run: impl FnMut(Wave<'_>, &mut [Strip]),
    ) -> Result<()> {
        self.pass(stack, reads).waves(batch, |wave, _, strips| run(wave, strips))
    }
}

impl Backprop for Engine<'_> {
    type Source = Infallible;

    fn samples(&self) -> usize {
        self.data.rows
    }

    fn labels(&self) -> Labels<'_> {
        self.labels
    }

    fn check(&self, stack: &Stack<'_>) -> Result<()> {
        backprop::check(self.data.rows, self.labels, stack)?;
        error::length("layers of the network", stack.layers().count(), self.layers.len())?;
        for (w, layer) in stack.layers().zip(&self.layers) {
            error::length("nonzeros of a layer", w.nnz(), layer.len())?;
            let is_same = layer.is_of(w)?;
            error::range("support of the network as before", is_same.into(), 1, 1)?;
        }
        let is_same = self.used == used(stack, &self.layers);
        error::range("inputs of the network as before", is_same.into(), 1, 1)
    }

    fn gradient(&mut self, stack: &Stack<'_>, batch: &Batch, gradient: &mut [f32]) -> Result<f32> {
        error::length("gradient", gradient.len(), stack.nnz())?;
        debug_assert_eq!(self.check(stack), Ok(()));
        gradient.fill(0.0);
        let labels = self.labels;
        let mut sum = 0.0;
        self.waves(stack, batch, Reads::Changed, |wave, strips| {
            wave.forward_to_residuals(labels, strips);
            let Work { layers, .. } = wave.work;
            for (l, layer) in layers.iter().enumerate().rev() {
                let gradient = &mut gradient[layer.range.clone()];
                match &mut *strips {
                    [one] => one.layer_back(wave.work, l, gradient),
                    all => {
                        let blocks = 0..layer.starts.blocks();
                        add_gradient(wave.work, all, l, blocks, gradient, all.len());
                        if l > 0 {
                            each(all, |_, strip| strip.layer_back(wave.work, l, &mut []));
                        }
                    }
                }
            }
            // One after the other, however many there are in a wave.
            strips.iter().for_each(|strip| sum += strip.loss.sum);
        })?;
        self.drawn += batch.positions.len() as u64;
        Ok(sum as f32)
    }

    fn skip(&mut self, rows: u64) {
        self.drawn = rows;
    }

    fn loss(&mut self, stack: &Stack<'_>, batch: &Batch) -> Result<f32> {
        self.score_batch(stack, batch).map(|score| score.loss as f32)
    }
}

impl Panels for Engine<'_> {
    /// Rows of one wave go through the network once: a layer's panels are taken before
    /// its inputs have their residuals. Others do so once for each panel.
    fn panels(
        &mut self,
        stack: &Stack<'_>,
        batch: &Batch,
        layers: Range<usize>,
        memory: &mut PanelMemory<'_>,
        mut see: impl FnMut(Derivatives<'_>),
    ) -> Result<()> {
        memory.check(stack)?;
        let PanelMemory { sizes, panel: room } = memory;
        let (labels, threads) = (self.labels, self.strips.len());
        self.grow();
        self.with_all_inputs(|engine| {
            let mut pass = engine.pass(stack, Reads::Changed);
            sizes.fill(0.0);
            pass.waves(batch, |wave, _, strips| {
                wave.forward(strips);
                strips.iter().for_each(|strip| strip.add_squares(sizes));
                wave.to_residuals(labels, strips);
            })?;
            let rows = batch.positions.len();
            sizes.iter_mut().for_each(|size| *size = (*size / rows.max(1) as f32).sqrt());
            let last = stack.layers().count().saturating_sub(1);
            let (is_one, mut top) = (rows <= LANES * threads, last);
            for panel in Panel::all(stack, layers, room.len()) {
                let Panel { layer, blocks } = &panel;
                let values = &mut room[..panel.len(stack)];
                let (part, width) = (blocks.len().div_ceil(threads), values.len() / blocks.len());
                values.fill(0.0);
                pass.waves(batch, |wave, across, strips| {
                    if !is_one {
                        wave.forward_to_residuals(labels, strips);
                        top = last;
                    }
                    for l in (layer + 1..=top).rev() {
                        each(strips, |_, strip| strip.layer_back(wave.work, l, &mut []));
                    }
                    let parts = values.par_chunks_mut(part * width).zip(across);
                    parts.enumerate().for_each(|(at, (out, across))| {
                        let low = blocks.start + at * part;
                        for strip in &*strips {
                            strip.add_panel(wave.work, *layer, low, across, out);
                        }
                    });
                })?;
                top = *layer;
                see(Derivatives { panel, values, sizes });
            }
            Ok(())
        })
    }

    fn adopt(&mut self, stack: &Stack<'_>) -> Result<()> {
        self.layers = Vec::new();
        self.layers = Layer::all(stack)?;
        self.used = used(stack, &self.layers);
        Ok(())
    }
}

/// Bytes that each thread has for rows of so many columns that are changed.
pub(crate) fn changed_bytes(augment: &Augment, cols: usize) -> usize {
    Changed::new(augment, cols).bytes()
}

/// Bytes that each thread has for panels of networks whose widest layer is this.
pub(crate) const fn across_bytes(widest: usize) -> usize {
    4 * across(widest)
}

/// The blocks of input columns that the first layer has weights of.
fn used(stack: &Stack<'_>, layers: &[Layer]) -> Vec<bool> {
    let columns = stack.inputs();
    match (stack.layers().next(), layers.first()) {
        (Some(w), Some(layer)) if !layer.is_end => {
            let used = w.blocks().flat_map(|block| block.entries().map(|(j, _)| j));
            used_blocks(columns, used)
        }
        _ => used_blocks(columns, 0..columns),
    }
}

#[cfg(test)]
mod tests;
