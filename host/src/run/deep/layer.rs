//! One of several hidden layers: its share of time and memory, and what it is trained on.

use rayon::prelude::*;
use tamis::deep::Stack;
use tamis::dims::Dims;

use super::DeepProgress;
use super::attempt::Run;
use crate::data::{Matrix, Values};
use crate::operator::{Stop, Through};
use crate::run::before::Before;
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
        observe: &mut (dyn FnMut(&DeepProgress) -> bool + Send),
    ) -> Result<(Found, Problem)> {
        let (hidden, size) = (self.options.hidden[layer], Size::Nonzeros(share));
        let threads = self.options.threads;
        let parts = self.options.hidden.len() - layer + usize::from(self.options.tune.epochs > 0);
        let limits = self.share(parts);
        let asked = Asked { hidden, size, limits, threads, from: None };
        let mut tell = |step, steps, loss| {
            observe(&DeepProgress { attempt: self.attempts.saturating_sub(1), layer, step, steps, loss })
        };
        let trained = match &self.options.recipe {
            LayerRecipe::Paper(one, several) => {
                self.by_paper((one, several), asked, problem, stack, stop, &mut tell)
            }
            recipe => self.on_copies(recipe, asked, problem, stack, stop, &mut tell),
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
        tell: &mut (dyn FnMut(u32, u32, f32) -> bool + Send),
    ) -> Result<(Found, Problem)> {
        let copies = Problem {
            data: if stack.nnz() == 0 { problem.data.clone() } else { self.map(&problem.data, stack)? },
            labels: problem.labels.clone(),
            task: problem.task,
        };
        let mapped = copies.bytes() as u64;
        let beside = mapped.saturating_add(self.sizes.layers_bytes() as u64);
        if let LayerRecipe::Lm(RecoverOptions { memory: Memory::Ram(ram), .. })
        | LayerRecipe::Anneal(AnnealOptions { memory: Memory::Ram(ram), .. }) = *recipe
            && ram <= beside
        {
            return Err(Error::new("the memory budget has no room for what a layer is trained on")
                .expected(format_args!(
                    "more than {beside} bytes, which the copies of the rows and the layers take"
                ))
                .got(format_args!("{ram} bytes"))
                .help("raise --ram, or take --recipe paper, which needs no copies"));
        }
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
        tell: &mut (dyn FnMut(u32, u32, f32) -> bool + Send),
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

    /// Whether what the layers make of the rows is stored: unless the budget has no room for it, or as little memory as can
    /// be is to be taken and that is less. `inputs` are those of the layer.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Limits, Task};
    use tamis::gates::Signs;
    use tamis::iht::{Params, Step};
    use tamis::train::Schedule;
    use tamis::weights::Weights;

    /// Rows of floats or bytes, and values, several of them or classes that depend on them.
    fn problem((n, d): (usize, usize), bytes: bool, outputs: usize, task: Task) -> Problem {
        let noise = |k: usize, j: usize| (k * 7919 + j * 104_729 + k * k % 251) % 256;
        let values = match bytes {
            true => Values::U8((0..n * d).map(|e| noise(e / d, e % d) as u8).collect()),
            false => Values::F32((0..n * d).map(|e| noise(e / d, e % d) as f32 / 64.0 - 2.0).collect()),
        };
        let label = |e: usize| {
            let sum = noise(e / outputs, e % outputs) + noise(e / outputs, 3);
            if task == Task::Multiclass { (sum / 171).min(2) as f32 } else { sum as f32 / 100.0 }
        };
        let labels = (0..n * outputs).map(label).collect();
        Problem { data: Matrix::new(n, d, values).unwrap(), labels, task }
    }

    #[test]
    fn a_layer_behind_others_is_the_same_whether_what_they_make_is_stored_and_rows_come_back_in_order() {
        let (n, d, m) = (700, 11, 9);
        let (mut index, mut value) = ([0; 99], [0.0; 99]);
        let mut stack = Stack::new(d, &mut index, &mut value);
        let flat: Vec<u32> = (0..(d * m) as u32).filter(|e| e % 3 != 1).collect();
        let values: Vec<f32> = flat.iter().map(|e| ((e * 37 % 19) as f32 - 8.0) / 16.0).collect();
        stack.push(Weights::new(d, m, &flat, &values).unwrap(), Signs::Positive).unwrap();
        let usual = Options::new(1, Size::Nonzeros(1));
        let with = |schedule| Options { schedule, ..usual };
        let step = Params { step: Step::Theory { beta: 0.0 }, ..Params::PAPER };
        let ones = [
            usual,
            with(Schedule { epochs: 4, ..Schedule::PAPER }),
            with(Schedule { epochs: 3, batch: 150, ..Schedule::PAPER }),
            with(Schedule { epochs: 3, params: step, ..Schedule::PAPER }),
        ];
        let safe = OutputsOptions { safe: true, ..OutputsOptions::new(1, Size::Nonzeros(1)) };
        let severals = [safe, OutputsOptions { batch: 150, epochs: 5, ..safe }];
        let cases = (0..ones.len() + 2 * severals.len()).map(|at| match at {
            0..4 => (ones[at], safe, 1, Task::Regression),
            4 | 5 => (usual, severals[at - 4], 3, Task::Regression),
            _ => (usual, severals[at - 6], 1, Task::Multiclass),
        });
        let asked =
            Asked { hidden: 5, size: Size::Nonzeros(14), limits: Limits::NONE, threads: 2, from: None };
        for (one, several, outputs, task) in cases {
            for (bytes, memory) in [(false, Memory::Auto), (true, Memory::Least), (false, Memory::Least)] {
                let problem = problem((n, d), bytes, outputs, task);
                let mut out = vec![0.0; n * m];
                for (k, out) in out.chunks_mut(m).enumerate() {
                    let mut row = vec![0.0; d];
                    copy_row(&problem.data, k, &mut row);
                    stack.predict(&row, &mut vec![0.0; stack.activations()], out).unwrap();
                }
                let data = Matrix::new(n, m, Values::F32(out)).unwrap();
                let part = Problem { data, labels: problem.labels.clone(), task };
                let settings = (&Options { memory, ..one }, &OutputsOptions { memory, ..several });
                let train = |problem: &Problem, before: Before| {
                    let given = (problem.clone(), before);
                    let (single, rest) =
                        published(settings, asked, given, &Stop::new(), &mut |_, _, _| true).unwrap();
                    (single, rest.given())
                };
                let (stored, back) = train(&part, Before::default());
                assert_eq!(back, part);
                let made = Before { through: Some(Through::new(&stack).unwrap()), beside: 0 };
                let more = made.through.clone();
                let (behind, back) = train(&problem, made);
                assert_eq!(back, problem);
                let what = format!("{task:?}, {outputs} outputs, {memory:?}, bytes {bytes}");
                assert_eq!(behind.plan.layout(), stored.plan.layout(), "{what}");
                assert_eq!((&behind.model, behind.loss), (&stored.model, stored.loss), "{what}");
                let more = more.unwrap().bytes(n, behind.plan.layout()) as u64;
                assert_eq!(behind.plan.total_bytes(), stored.plan.total_bytes() + more, "{what}");
            }
        }
    }
}
