//! One of several hidden layers: its share of time and memory, and what it is trained on.

use rayon::prelude::*;
use tamis::base::dims::Dims;
use tamis::learn::deep::Stack;

use super::job::DeepJob;
use crate::base::limits::Limits;
use crate::data::problem::check_columns;
use crate::data::{Matrix, Problem, Values};
use crate::operator::HiddenLayers;
use crate::train::budget::Memory;
use crate::train::check::Sizes;
use crate::train::layer::LayerSetup;
use crate::train::options::Recipe;
use crate::train::paper::{self, FrozenLayers, PaperSetup};
use crate::train::paper_options::PaperOptions;
use crate::train::plan::pool;
use crate::train::progress::Observer;
use crate::train::trained::{Job, Start, Trained};
use crate::{Error, Result};

/// Rows that go through the layers at a time.
const CHUNK: usize = 256;

pub(super) struct TrainedLayer {
    pub(super) trained: Trained,
    /// As [`crate::train::DeepLayer::mapped_bytes`].
    pub(super) mapped: u64,
    /// The problem as it was.
    pub(super) problem: Problem,
}

/// The training of one layer.
pub(super) struct DeepRun<'a> {
    pub(super) job: &'a DeepJob<'a>,
    /// Which layer, from 0.
    pub(super) layer: usize,
    /// Its share of s.
    pub(super) share: usize,
    pub(super) limits: Limits,
}

impl DeepRun<'_> {
    /// Trains behind the layers of `stack`.
    pub(super) fn train(
        &self,
        problem: Problem,
        stack: &Stack<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<TrainedLayer> {
        let options = self.job.options;
        let job = Job {
            seed: options.seed,
            memory: options.memory,
            threads: options.threads,
            limits: self.limits,
            ..Job::plain(self.job.hidden[self.layer], self.share)
        };
        let trained = match &self.job.recipe {
            Recipe::Paper(published) => self.on_loan(published, &job, problem, stack, observer),
            recipe => self.on_copies(recipe, &job, problem, stack, observer),
        };
        trained.map_err(|error| {
            let layer = self.layer + 1;
            if error.is_interrupted() {
                error
            } else {
                error.of(format_args!("hidden layer {layer}"))
            }
        })
    }

    /// By a recipe that changes the rows that it is given.
    fn on_copies(
        &self,
        recipe: &Recipe,
        job: &Job<'_>,
        problem: Problem,
        stack: &Stack<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<TrainedLayer> {
        let copies = Problem {
            data: if stack.nnz() == 0 {
                problem.data.clone()
            } else {
                self.map(&problem.data, stack)?
            },
            labels: problem.labels.clone(),
            task: problem.task,
        };
        let mapped = copies.bytes() as u64;
        let beside = mapped.saturating_add(self.job.layers_bytes() as u64);
        let memory = match job.memory {
            Memory::Ram(ram) if ram <= beside => {
                return Err(Error::new(
                    "the memory budget has no room for what a layer is trained on",
                )
                .expected(format_args!(
                    "more than {beside} bytes, which the copies of the rows and the layers take"
                ))
                .got(format_args!("{ram} bytes"))
                .help("raise --ram, or take --recipe paper, which needs no copies"));
            }
            Memory::Ram(ram) => Memory::Ram(ram - beside),
            memory => memory,
        };
        let setup = LayerSetup::new(recipe, &copies, &Job { memory, ..*job })?;
        let trained = setup.train(copies, job.threads, Start::Zero, observer)?;
        Ok(TrainedLayer { trained, mapped, problem })
    }

    /// By the published method, on rows that are lent to it.
    fn on_loan(
        &self,
        options: &PaperOptions,
        job: &Job<'_>,
        problem: Problem,
        stack: &Stack<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<TrainedLayer> {
        let mut train = |problem: Problem, frozen: FrozenLayers| {
            let setup = PaperSetup::new(&problem, &frozen, options, job)?;
            setup.plan.check_room()?;
            pool(job.threads)?.install(|| setup.train(problem, frozen, Start::Zero, observer))
        };
        let beside = self.job.layers_bytes();
        if stack.nnz() == 0 {
            let (trained, returned) = train(problem, FrozenLayers { layers: None, beside })?;
            return Ok(TrainedLayer { trained, mapped: 0, problem: returned.restored() });
        }
        let mapped = problem.data.rows.saturating_mul(stack.width()).saturating_mul(4);
        let stored = FrozenLayers { layers: None, beside: beside.saturating_add(mapped) };
        let made = FrozenLayers { layers: Some(HiddenLayers::new(stack)?), beside };
        if self.stores(options, job, &problem, [&stored, &made], stack.width())? {
            let Problem { data, labels, task } = problem;
            let on = Problem { data: self.map(&data, stack)?, labels, task };
            let (trained, returned) = train(on, stored)?;
            let labels = returned.restored_labels();
            let problem = Problem { data, labels, task };
            return Ok(TrainedLayer { trained, mapped: mapped as u64, problem });
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
        let (trained, returned) = train(problem, made)?;
        Ok(TrainedLayer { trained, mapped: 0, problem: returned.restored() })
    }

    /// Whether what the layers make of the rows is stored: unless the budget has no room for it, or
    /// as little memory as can be is to be taken and that is less. `inputs` are those of the layer.
    fn stores(
        &self,
        options: &PaperOptions,
        job: &Job<'_>,
        problem: &Problem,
        [stored, made]: [&FrozenLayers; 2],
        inputs: usize,
    ) -> Result<bool> {
        let dims = Dims::new(problem.data.rows, inputs, job.hidden, self.share);
        let sizes = Sizes { dims, outputs: self.job.outputs };
        let schedule = paper::schedule(problem.task, sizes, options, job);
        let bytes = |frozen: &FrozenLayers| {
            let plan = paper::plan_for(sizes, false, &schedule, job, frozen)?;
            Ok::<_, Error>(plan.total_bytes() + frozen.beside as u64)
        };
        Ok(match job.memory {
            Memory::Auto | Memory::Panel(_) => true,
            Memory::Ram(_) => bytes(stored).is_ok(),
            Memory::Least => bytes(stored)? <= bytes(made)?,
        })
    }

    /// What the layers so far make of all rows.
    fn map(&self, data: &Matrix, stack: &Stack<'_>) -> Result<Matrix> {
        let m = stack.width();
        let mut out = vec![0.0; data.rows * m];
        pool(self.job.options.threads)?.install(|| {
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
        Values::U8(values) => {
            row.iter_mut().zip(&values[from]).for_each(|(x, &b)| *x = f32::from(b));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::ControlFlow;

    use crate::data::Task;
    use crate::operator::Stop;
    use crate::train::paper_options::OutputsOptions;
    use tamis::learn::iht::Step;
    use tamis::learn::train::{OneOutput, Schedule};
    use tamis::network::gates::Signs;
    use tamis::network::weights::Weights;

    /// Rows of floats or bytes, and values, several of them or classes that depend on them.
    fn problem((n, d): (usize, usize), bytes: bool, outputs: usize, task: Task) -> Problem {
        let noise = |k: usize, j: usize| (k * 7919 + j * 104_729 + k * k % 251) % 256;
        let values = match bytes {
            true => Values::U8((0..n * d).map(|e| noise(e / d, e % d) as u8).collect()),
            false => {
                Values::F32((0..n * d).map(|e| noise(e / d, e % d) as f32 / 64.0 - 2.0).collect())
            }
        };
        let label = |e: usize| {
            let sum = noise(e / outputs, e % outputs) + noise(e / outputs, 3);
            if task == Task::Multiclass { (sum / 171).min(2) as f32 } else { sum as f32 / 100.0 }
        };
        let labels = (0..n * outputs).map(label).collect();
        Problem { data: Matrix::new(n, d, values).unwrap(), labels, task }
    }

    #[test]
    fn a_layer_is_the_same_on_stored_activations() {
        let (n, d, m) = (700, 11, 9);
        let (mut index, mut value) = ([0; 99], [0.0; 99]);
        let mut stack = Stack::new(d, &mut index, &mut value);
        let flat: Vec<u32> = (0..(d * m) as u32).filter(|e| e % 3 != 1).collect();
        let values: Vec<f32> = flat.iter().map(|e| ((e * 37 % 19) as f32 - 8.0) / 16.0).collect();
        stack.push(Weights::new(d, m, &flat, &values).unwrap(), Signs::Positive).unwrap();
        let usual = PaperOptions::default().schedule;
        let head = OneOutput { step: Step::Theory { beta: 0.0 }, ..OneOutput::PAPER };
        let ones = [
            usual,
            Schedule { epochs: 4, ..Schedule::PAPER },
            Schedule { epochs: 3, batch: 150, ..Schedule::PAPER },
            Schedule { epochs: 3, head, ..Schedule::PAPER },
        ];
        let safe = OutputsOptions { safe: true, ..OutputsOptions::PUBLISHED };
        let severals = [safe, OutputsOptions { batch: 150, epochs: 5, ..safe }];
        let cases = (0..ones.len() + 2 * severals.len()).map(|at| match at {
            0..4 => (ones[at], OutputsOptions::PUBLISHED, 1, Task::Regression),
            4 | 5 => (usual, severals[at - 4], 3, Task::Regression),
            _ => (usual, severals[at - 6], 1, Task::Multiclass),
        });
        let job = Job { threads: 2, ..Job::plain(5, 14) };
        for (one, several, outputs, task) in cases {
            for (bytes, memory) in
                [(false, Memory::Auto), (true, Memory::Least), (false, Memory::Least)]
            {
                let problem = problem((n, d), bytes, outputs, task);
                let mut out = vec![0.0; n * m];
                for (k, out) in out.chunks_mut(m).enumerate() {
                    let mut row = vec![0.0; d];
                    copy_row(&problem.data, k, &mut row);
                    stack.predict(&row, &mut vec![0.0; stack.activations()], out).unwrap();
                }
                let data = Matrix::new(n, m, Values::F32(out)).unwrap();
                let part = Problem { data, labels: problem.labels.clone(), task };
                let options = PaperOptions { schedule: one, outputs: several };
                let job = Job { memory, ..job };
                let train = |problem: &Problem, frozen: FrozenLayers| {
                    let setup = PaperSetup::new(problem, &frozen, &options, &job).unwrap();
                    let mut tell = |_: &_| ControlFlow::Continue(());
                    let stop = Stop::new();
                    let mut observer = Observer::new(&stop, &mut tell);
                    let train = || setup.train(problem.clone(), frozen, Start::Zero, &mut observer);
                    let (trained, returned) = pool(2).unwrap().install(train).unwrap();
                    (trained, returned.restored())
                };
                let (stored, back) = train(&part, FrozenLayers::default());
                assert_eq!(back, part);
                let made =
                    FrozenLayers { layers: Some(HiddenLayers::new(&stack).unwrap()), beside: 0 };
                let more = made.layers.clone();
                let (behind, back) = train(&problem, made);
                assert_eq!(back, problem);
                let what = format!("{task:?}, {outputs} outputs, {memory:?}, bytes {bytes}");
                let [behind_plan, stored_plan] =
                    [&behind, &stored].map(|trained| trained.report.plan.unwrap());
                assert_eq!(behind_plan.layout, stored_plan.layout, "{what}");
                assert_eq!(behind.model.bytes(), stored.model.bytes(), "{what}");
                assert_eq!(behind.report.loss, stored.report.loss, "{what}");
                let more = more.unwrap().bytes(n, behind_plan.layout) as u64;
                assert_eq!(behind_plan.total_bytes(), stored_plan.total_bytes() + more, "{what}");
            }
        }
    }
}
