//! Runs of hard thresholding that end early.

use crate::training::{floats, needed};
use std::cell::Cell;

use std::ops::ControlFlow::Continue;
use tamis::Error;
use tamis::base::budget::gated_words;
use tamis::base::dims::Dims;
use tamis::data::samples::Rows;
use tamis::learn::loss::Labels;
use tamis::learn::start::Start;
use tamis::learn::train::{self, Info, OneOutput, Progress, Schedule, Trials};
use tamis::network::gates::Signs;
use tamis::operator::gated::Gated;
use tamis::operator::sensing::Sensing;
use tamis::operator::wrapper::{Body, Operation, Wrapper};
use tamis_host::data::planted::{self, Planted};

/// Fails once with [`Error::Stopped`] in the next gradient after it was asked, and works on.
struct Stopping<'a, S> {
    inner: &'a mut S,
    asked: &'a Cell<bool>,
}

impl<S: Sensing> Wrapper for Stopping<'_, S> {
    type Inner = S;

    fn inner(&self) -> &S {
        self.inner
    }

    fn inner_mut(&mut self) -> &mut S {
        self.inner
    }

    fn before(&mut self, operation: Operation, _: usize) -> Result<Body, Error<S::Source>> {
        match operation {
            Operation::Gradient if self.asked.take() => Err(Error::Stopped),
            _ => Ok(Body::Inner),
        }
    }
}

const STARTS: Schedule<'_, OneOutput> =
    Schedule { epochs: 6, trials: Trials { count: 6, rows: 150 }, seed: 11, ..Schedule::PAPER };

/// A run of `count` starts that the operator ends in the step after the one that `last` accepts:
/// its weights.
fn ended(
    made: &Planted,
    count: u32,
    mut last: impl FnMut(&Progress<'_>) -> bool,
) -> (Vec<(u32, f32)>, Info) {
    let x = floats(made);
    let mut memory = vec![0.0; gated_words(20, 4)];
    let mut inner = Gated::new(Rows::new(&x, 20).unwrap(), 4, 4, &mut memory).unwrap();
    let asked = Cell::new(false);
    let mut sensing = Stopping { inner: &mut inner, asked: &asked };
    let schedule = Schedule { trials: Trials { count, ..STARTS.trials }, ..STARTS };
    let mut words = vec![0; needed(&sensing, 10, &schedule)];
    let observe = |progress: &Progress<'_>| {
        asked.set(last(progress));
        Continue(())
    };
    let trained = train::run(
        &mut sensing,
        Labels::values(&made.labels),
        10,
        Start::Zero,
        &schedule,
        &mut words,
        observe,
    )
    .unwrap();
    let weights = trained.network.w();
    (weights.index().iter().copied().zip(weights.value().iter().copied()).collect(), trained.info)
}

#[test]
fn run_stopped_during_trials_gives_best_start() {
    let made = planted::network(Dims::new(600, 20, 4, 10), Signs::Positive, 3).unwrap();
    let per_trial = STARTS.epochs;
    let mut again = 0;
    for tried in 2..STARTS.trials.count {
        // The best of so many starts is what the run on all rows begins with.
        let mut before = 0;
        let (_, whole) = ended(&made, tried, |p| {
            before += u32::from(p.trial > 0);
            false
        });
        assert_eq!((whole.trials, whole.stopped), (tried, false), "the best one counts once");
        assert_eq!(whole.steps, per_trial);
        let (best, info) = ended(&made, tried, |p| p.step == before);
        assert_eq!((info.trials, info.stopped, info.steps), (tried, true, 0));
        again += u32::from(before > tried * per_trial);
        // Ended in the first step of the next start, the run gives the same.
        let (found, info) = ended(&made, STARTS.trials.count, |p| p.step == tried * per_trial);
        assert_eq!((info.trials, info.stopped, info.steps), (tried + 1, true, 0));
        assert_eq!(found, best, "after {tried} starts");
        assert!(!found.is_empty());
    }
    assert!(again > 0, "the best start was always the last: the test shows nothing");
}

#[test]
fn operator_stop_leaves_the_last_complete_step() {
    let made = planted::network(Dims::new(600, 20, 4, 10), Signs::Positive, 3).unwrap();
    for steps in 1..STARTS.epochs {
        let (found, info) = ended(&made, 1, |p| p.step == steps);
        assert_eq!((info.steps, info.stopped), (steps, true));
        let x = floats(&made);
        let mut memory = vec![0.0; gated_words(20, 4)];
        let mut sensing = Gated::new(Rows::new(&x, 20).unwrap(), 4, 4, &mut memory).unwrap();
        let schedule = Schedule { epochs: steps, trials: Trials::NONE, ..STARTS };
        let mut words = vec![0; needed(&sensing, 10, &schedule)];
        let labels = Labels::values(&made.labels);
        let short =
            train::run(&mut sensing, labels, 10, Start::Zero, &schedule, &mut words, |_| {
                Continue(())
            })
            .unwrap();
        let w = short.network.w();
        let expected = w.index().iter().copied().zip(w.value().iter().copied());
        assert_eq!(found, expected.collect::<Vec<_>>());
        assert_eq!(info.loss.to_bits(), short.info.loss.to_bits());
    }
}
