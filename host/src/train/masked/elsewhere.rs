//! Training under a mask where dense networks are trained: the products are those of all weights, of which those
//! beyond the mask are 0 and stay so.

use std::borrow::Cow;

use tamis::learn::deep::Stack;
use tamis::learn::masked::Params;
use tamis::learn::optimiser::Optimiser;

use super::job::Ran;
use crate::Result;
use crate::base::memory::room_for;
use crate::data::{Problem, Task};
use crate::train::dense::device::Setup;
use crate::train::dense::shape::Shape;
use crate::train::dense::training::Training;
use crate::train::dense::{DensePlace, Epoch, Rates};
use crate::train::progress::Observer;

/// What is trained, and how.
pub(crate) struct Elsewhere<'a> {
    pub(crate) problem: &'a Problem,
    /// Factor of the inputs.
    pub(crate) unit: f32,
    pub(crate) params: &'a Params<'a>,
    pub(crate) rates: &'a Rates,
    pub(crate) place: &'a DensePlace,
}

impl Elsewhere<'_> {
    /// Trains the weights of a stack, but those that are fixed; rows come in other orders than on the CPU.
    pub(crate) fn run(&self, stack: &mut Stack<'_>, observer: &mut Observer<'_>) -> Result<Ran> {
        let Self { problem, unit, params, rates, place } = *self;
        let (set, scale) = rows(problem, stack, unit)?;
        let Dense { shape, places } = Dense::of(stack)?;
        let state_bytes = state_bytes(shape.weights(), params.optimiser);
        room_for(
            "the dense network",
            state_bytes,
            "leave --device out: the CPU holds kept weights",
        )?;
        let mut weights = vec![0.0; shape.weights()];
        let mut mask = vec![false; shape.weights()];
        for (&at, &value) in places.iter().zip(stack.values()) {
            (weights[at], mask[at]) = (value, true);
        }
        params.fixed.iter().for_each(|&at| mask[places[at as usize]] = false);
        let batch = params.batch.min(set.data.rows);
        let (optimiser, stop) = (params.optimiser, observer.stop);
        let setup = Setup { shape: &shape, task: set.task, optimiser, batch, stop };
        let mut training = Training::on(&**place, weights, &setup)?;
        training.mask = mask;
        let mut ran = Ran { state_bytes: state_bytes + 8 * stack.nnz() as u64, ..Ran::default() };
        while ran.epochs < params.epochs && !ran.stopped {
            let loss = training.epoch(&Epoch {
                set: &set,
                rows: 0..set.data.rows,
                scale,
                batch,
                seed: params.seed,
                number: ran.epochs.into(),
                rate: rates.at(ran.epochs),
                warmup: params.warmup.into(),
                decay: rates.decay,
                penalty: None,
            });
            match loss {
                Ok(loss) => {
                    ran.epochs += 1;
                    ran.stopped = !observer.epoch(ran.epochs, params.epochs, loss as f32);
                }
                // What the steps until then have reached is the result.
                Err(error) if error.is_interrupted() && training.steps > 0 => ran.stopped = true,
                Err(error) => return Err(error),
            }
        }
        ran.steps = training.steps;
        let values = stack.values_mut().iter_mut().zip(&places);
        values.for_each(|(value, &at)| *value = training.weights[at]);
        Ok(ran)
    }
}

/// Weights, whether they are trained, their gradient, and what the optimiser remembers.
fn state_bytes(weights: usize, optimiser: Optimiser) -> u64 {
    (weights as u64).saturating_mul(4 * (3 + optimiser.moments() as u64))
}

/// The rows as a stack takes them, and the factor of their inputs.
fn rows<'a>(problem: &'a Problem, stack: &Stack<'_>, unit: f32) -> Result<(Cow<'a, Problem>, f32)> {
    let mut set = Cow::Borrowed(problem);
    if problem.task == Task::Binary {
        // One output of classes is the log-odds of class 1.
        set.to_mut().task = Task::Multiclass;
    }
    if stack.inputs() == problem.data.cols {
        return Ok((set, unit));
    }
    set.to_mut().data = problem.data.with_ones(unit)?;
    Ok((set, 1.0))
}

/// A stack as a dense network.
struct Dense {
    shape: Shape,
    /// Of each weight of the stack its place among all.
    places: Vec<usize>,
}

impl Dense {
    fn of(stack: &Stack<'_>) -> Result<Self> {
        let last = stack.layers().count().saturating_sub(1);
        let mut widths = vec![stack.inputs()];
        let mut places = Vec::with_capacity(stack.nnz());
        let mut first = 0_usize;
        for (l, w) in stack.layers().enumerate() {
            let [inputs, outputs] =
                if l == last { [w.hidden(), w.inputs()] } else { [w.inputs(), w.hidden()] };
            widths.push(outputs);
            places.extend(w.index().iter().map(|&at| {
                let [block, entry] = [at as usize / w.inputs(), at as usize % w.inputs()];
                // The last layer lies by its inputs.
                let [output, input] = if l == last { [entry, block] } else { [block, entry] };
                first.saturating_add(output * inputs + input)
            }));
            first = first.saturating_add(inputs.saturating_mul(outputs));
        }
        Ok(Self { shape: Shape::of(&widths)?, places })
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow::Continue;

    use super::super::job::{MaskedSettings, MaskedStart};
    use super::*;
    use crate::data::{Matrix, Values};
    use crate::model::{LayerName, Mask, ModelFile};
    use crate::operator::Stop;
    use crate::train::dense::{
        DenseDevice, DenseTraining, Goal, NetOnRows, Passed, Setup, Threads,
    };
    use crate::train::{Budget, Options, Recipe, Start, Trained, train_with};

    /// The CPU under another name.
    #[derive(Debug)]
    struct Other;

    impl DenseDevice for Other {
        fn name(&self) -> &str {
            "other"
        }

        fn training(&self, setup: &Setup<'_>) -> Result<Box<dyn DenseTraining>> {
            Threads.training(setup)
        }

        fn pass(&self, on: &NetOnRows<'_>, goal: Goal<'_>, temperature: f32) -> Result<Passed> {
            Threads.pass(on, goal, temperature)
        }
    }

    fn number(e: usize) -> f32 {
        ((e * 7919 + e / 7 + 3) % 997) as f32 / 997.0 - 0.4
    }

    /// With one batch there is no order of rows to differ by.
    #[test]
    fn dense_networks_are_trained_as_sparse_ones() {
        for (task, outputs) in [(Task::Regression, 2), (Task::Binary, 1), (Task::Multiclass, 3)] {
            for biased in [0, 1, 6, 7] {
                let widths = [4, 6, 5, outputs];
                let weights: usize = widths.windows(2).map(|pair| pair[0] * pair[1]).sum();
                let index: Vec<u32> = (0..weights as u32).filter(|k| k % 4 != 1).collect();
                let biases = |l: usize| match biased >> l & 1 {
                    0 => Vec::new(),
                    _ => (0..widths[l + 1]).map(|e| 0.3 * number(e + 50 * l)).collect(),
                };
                let start = MaskedStart {
                    mask: Mask::new(LayerName::numbered(3), widths.to_vec(), index.clone())
                        .unwrap(),
                    values: (0..index.len()).map(|e| number(e + 7)).collect(),
                    biases: (0..3).map(biases).collect(),
                };
                let labels = (0..80).map(|k| match task {
                    Task::Regression => vec![number(11 * k), number(13 * k)],
                    _ => vec![(k * k % 7 % outputs.max(2)) as f32],
                });
                let labels = labels.flatten().collect();
                let values = (0..320).map(|k| (k * 7919 % 251) as u8).collect();
                let data = Matrix::new(80, 4, Values::U8(values)).unwrap();
                let problem = Problem { data, labels, task };
                let run = |place: DensePlace| -> Trained {
                    let rates = Rates { falls: vec![20], decay: 0.01, ..Rates::constant(0.05) };
                    let settings = MaskedSettings {
                        epochs: 30,
                        batch: 0,
                        warmup: Some(5),
                        rates: Some(rates),
                        place,
                        ..MaskedSettings::new(start.clone())
                    };
                    let nnz = Budget::nnz(index.len());
                    let options = Options { recipe: Recipe::Masked(settings), ..Options::new(nnz) };
                    train_with(problem.clone(), &options, Start::Zero, &Stop::new(), |_| {
                        Continue(())
                    })
                    .unwrap()
                };
                let [own, other] = [DensePlace::default(), DensePlace::new(Other)].map(run);
                assert_eq!(other.report.device, "other");
                assert_eq!(
                    (own.report.nnz, own.report.steps),
                    (other.report.nnz, other.report.steps)
                );
                let outputs = [own, other].map(|trained| {
                    let model: ModelFile = trained.model;
                    model.predict(&problem.data).unwrap()
                });
                for (own, other) in outputs[0].iter().zip(&outputs[1]) {
                    let apart = (own - other).abs();
                    assert!(apart < 1e-3 * (1.0 + own.abs()), "{task:?} {biased}: {own} {other}");
                }
            }
        }
    }
}
