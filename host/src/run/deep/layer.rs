//! One of several hidden layers: its share of time and memory, and what it is trained on.

use rayon::prelude::*;
use tamis::deep::Stack;
use tamis::dims::Dims;

use super::{DeepProgress, Run};
use crate::data::{Matrix, Values};
use crate::operator::{Stop, Through};
use crate::run::before::Before;
use crate::run::limits::Limits;
use crate::run::problem::check_columns;
use crate::run::single::{Asked, LayerRecipe, Single, published, single};
use crate::run::{AnnealOptions, Memory, Options, OutputsOptions, Plan, Problem, RecoverOptions, Size};
use crate::run::{outputs, plan, train};
use crate::{Error, Result};

/// Rows that go through the layers at a time.
const CHUNK: usize = 256;

/// A layer that was trained.
pub(super) struct Found {
    pub(super) single: Single,
    /// As [`super::DeepLayer::mapped_bytes`].
    pub(super) mapped: u64,
}

impl Run<'_> {
    /// Trains a layer with its share of s behind those of `stack`, and gives the problem back as it was.
    pub(super) fn layer(
        &self,
        problem: Problem,
        stack: &Stack<'_>,
        (layer, share): (usize, usize),
        stop: &Stop,
        observe: &mut (impl FnMut(&DeepProgress) -> bool + Send),
    ) -> Result<(Found, Problem)> {
        let (hidden, size) = (self.options.hidden[layer], Size::Nonzeros(share));
        let threads = self.options.threads;
        let behind = (self.options.hidden.len() - layer) as u32 + u32::from(self.options.tune.epochs > 0);
        let passes = self.options.limits.passes.map(|passes| passes / self.options.hidden.len() as f64);
        let limits = Limits { time: self.left().map(|left| left / behind), passes };
        let asked = Asked { hidden, size, limits, threads, from: None };
        let tell = |step, steps, loss| observe(&DeepProgress { layer, step, steps, loss });
        let trained = match &self.options.recipe {
            LayerRecipe::Paper(one, several) => {
                self.by_paper((one, several), asked, problem, stack, stop, tell)
            }
            recipe => self.on_copies(recipe, asked, problem, stack, stop, tell),
        };
        trained.map_err(|error| {
            if error.is_interrupted() { error } else { error.of(format_args!("hidden layer {}", layer + 1)) }
        })
    }

    /// By a recipe that changes the rows that it is given.
    fn on_copies(
        &self,
        recipe: &LayerRecipe<'_>,
        asked: Asked<'_>,
        problem: Problem,
        stack: &Stack<'_>,
        stop: &Stop,
        tell: impl FnMut(u32, u32, f32) -> bool + Send,
    ) -> Result<(Found, Problem)> {
        let copies = Problem {
            data: if stack.nnz() == 0 { problem.data.clone() } else { self.map(&problem.data, stack)? },
            labels: problem.labels.clone(),
            task: problem.task,
        };
        let mapped = copies.bytes() as u64;
        let beside = mapped.saturating_add(self.sizes.layers_bytes() as u64);
        let left = |memory| match memory {
            Memory::Ram(ram) => Memory::Ram(ram.saturating_sub(beside)),
            memory => memory,
        };
        let recipe = match *recipe {
            LayerRecipe::Lm(inner) => LayerRecipe::Lm(RecoverOptions { memory: left(inner.memory), ..inner }),
            LayerRecipe::Anneal(inner) => {
                LayerRecipe::Anneal(AnnealOptions { memory: left(inner.memory), ..inner })
            }
            LayerRecipe::Paper(..) => *recipe,
        };
        Ok((Found { single: single(&recipe, asked, copies, stop, tell)?, mapped }, problem))
    }

    /// By the published method, on rows that are lent to it.
    fn by_paper(
        &self,
        settings: (&Options<'_>, &OutputsOptions<'_>),
        asked: Asked<'_>,
        problem: Problem,
        stack: &Stack<'_>,
        stop: &Stop,
        tell: impl FnMut(u32, u32, f32) -> bool + Send,
    ) -> Result<(Found, Problem)> {
        let beside = self.sizes.layers_bytes();
        if stack.nnz() == 0 {
            let given = (problem, Before::beside(beside));
            let (single, rest) = published(settings, asked, given, stop, tell)?;
            return Ok((Found { single, mapped: 0 }, rest.given()));
        }
        let mapped = problem.data.rows.saturating_mul(stack.width()).saturating_mul(4);
        let stored = Before::beside(beside.saturating_add(mapped));
        let made = Before { through: Some(Through::new(stack)?), beside };
        if self.stores(settings, asked, &problem, [&stored, &made], stack.width())? {
            let Problem { data, labels, task } = problem;
            let part = Problem { data: self.map(&data, stack)?, labels, task };
            let (single, rest) = published(settings, asked, (part, stored), stop, tell)?;
            let labels = rest.given_labels(data.rows);
            return Ok((Found { single, mapped: mapped as u64 }, Problem { data, labels, task }));
        }
        check_columns("what the layers before make of the rows", stack.width(), |see| {
            let mut scratch = vec![0.0; stack.activations()];
            let (mut row, mut out) = (vec![0.0; problem.data.cols], vec![0.0; stack.width()]);
            (0..problem.data.rows).try_for_each(|k| {
                copy_row(&problem.data, k, &mut row);
                stack.predict(&row, &mut scratch, &mut out)?;
                see(&out);
                Ok(())
            })
        })?;
        let (single, rest) = published(settings, asked, (problem, made), stop, tell)?;
        Ok((Found { single, mapped: 0 }, rest.given()))
    }

    /// Whether what the layers make of the rows is stored: unless the budget has no room for it, or as little memory as can be is to be
    /// taken and that is less. `inputs` are those of the layer.
    fn stores(
        &self,
        (one, several): (&Options<'_>, &OutputsOptions<'_>),
        asked: Asked<'_>,
        problem: &Problem,
        [stored, made]: [&Before; 2],
        inputs: usize,
    ) -> Result<bool> {
        let Asked { hidden, size, .. } = asked;
        let outputs = self.sizes.outputs;
        let nnz = size.count(usize::MAX, 1)?;
        let dims = Dims::new(problem.data.rows, inputs, hidden, nnz);
        let plan = |before: &Before| -> Result<Plan> {
            if problem.has_several_outputs() {
                let schedule = several.schedule(&outputs::goal_of(problem.task, outputs), nnz);
                let options = OutputsOptions { hidden, size, ..*several };
                outputs::plan_behind((dims, outputs), false, (&options, &schedule), before)
            } else {
                train::plan_behind(dims, false, &Options { hidden, size, ..*one }, before)
            }
        };
        let memory = if problem.has_several_outputs() { several.memory } else { one.memory };
        Ok(match memory {
            Memory::Auto | Memory::Panel(_) => true,
            Memory::Ram(_) => plan(stored).is_ok(),
            Memory::Least => {
                let bytes =
                    |before: &Before| plan(before).map(|plan| plan.total_bytes() + before.beside as u64);
                bytes(stored)? <= bytes(made)?
            }
        })
    }

    /// What the layers so far make of all rows.
    fn map(&self, data: &Matrix, stack: &Stack<'_>) -> Result<Matrix> {
        let m = stack.width();
        let mut out = vec![0.0; data.rows * m];
        plan::pool(self.options.threads)?.install(|| {
            out.par_chunks_mut(CHUNK * m).enumerate().try_for_each(|(chunk, out)| {
                let mut scratch = vec![0.0; stack.activations()];
                let mut row = vec![0.0; data.cols];
                for (k, out) in out.chunks_mut(m).enumerate() {
                    copy_row(data, chunk * CHUNK + k, &mut row);
                    stack.predict(&row, &mut scratch, out)?;
                }
                Ok::<(), Error>(())
            })
        })?;
        Matrix::new(data.rows, m, Values::F32(out))
    }
}

/// Row `k` as floats.
fn copy_row(data: &Matrix, k: usize, row: &mut [f32]) {
    let from = k * data.cols..(k + 1) * data.cols;
    match &data.values {
        Values::F32(values) => row.copy_from_slice(&values[from]),
        Values::U8(values) => row.iter_mut().zip(&values[from]).for_each(|(x, &b)| *x = f32::from(b)),
    }
}
