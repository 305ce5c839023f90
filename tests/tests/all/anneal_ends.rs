//! Runs of annealed supports that an operator ends.

use crate::anneal::{Case, gated, words};
use tamis::Error;
use tamis::base::dims::Dims;
use tamis::base::record::Record;
use tamis::learn::anneal::{self, Checkpoint, Info, Params, Progress};
use tamis::learn::start::{Start, continue_if};
use tamis::network::weights::Weights;
use tamis::operator::sensing::Sensing;
use tamis::operator::wrapper::{Body, Operation, Wrapper};

/// Fails once with [`Error::Stopped`] in the call after `left` others, and works on.
struct Stopping<'a, S> {
    inner: &'a mut S,
    left: Option<usize>,
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
        if matches!(operation, Operation::Select | Operation::Apply | Operation::Adjoint) {
            if self.left == Some(0) {
                self.left = None;
                return Err(Error::Stopped);
            }
            self.left = self.left.map(|left| left - 1);
        }
        Ok(Body::Provided)
    }
}

/// Both sides by their bits, and the loss.
#[derive(Debug, Clone, PartialEq)]
struct Found {
    w: Vec<(u32, u32)>,
    wt: Vec<(u32, u32)>,
    loss: u32,
}

/// A run: what it found, what was done, and the last checkpoint, of so many steps.
#[derive(Debug)]
struct Run {
    found: Found,
    info: Info,
    kept: Vec<u32>,
    kept_steps: u32,
}

/// What is run, and how many weights it leaves.
struct Problem<'a> {
    case: Case,
    params: Params<'a>,
    s: usize,
}

/// Where a run begins and ends.
#[derive(Default)]
struct Span<'a> {
    /// The checkpoint that it resumes from; empty for a start from zero.
    from: &'a [u32],
    /// Calls after which the operator stops.
    calls: Option<usize>,
    /// The step after which the observer ends it.
    last: Option<u32>,
}

/// A run; none where it was stopped before the first step.
fn run(problem: &Problem<'_>, span: &Span<'_>) -> Option<Run> {
    let Problem { case, params, s } = problem;
    gated(case, |inner| {
        let mut sensing = Stopping { inner, left: span.calls };
        let mut memory = vec![0; words(&sensing, case, *s, params)];
        let form =
            Checkpoint::form(&params.budget(Dims::new(case.n, case.d, case.m, *s), case.c, 1, 0));
        let from = match span.from {
            [] => None,
            words => Some(Checkpoint::read(&form, words).unwrap()),
        };
        let start = from.as_ref().map_or(Start::Zero, Start::Checkpoint);
        let (mut kept, mut kept_steps) = (Vec::new(), 0);
        let observe = |progress: &Progress<'_>| {
            kept.clear();
            let keep = &mut |words: &[u32]| {
                kept.extend_from_slice(words);
                Ok::<(), ()>(())
            };
            progress.checkpoint.write(keep).unwrap();
            kept_steps = progress.checkpoint.state.steps();
            continue_if(span.last.is_none_or(|last| progress.step < last))
        };
        match anneal::run(&mut sensing, case.classes(), *s, start, params, &mut memory, observe) {
            Err(error) => {
                assert_eq!(error, Error::Stopped);
                None
            }
            Ok(trained) => {
                let side = |side: Weights<'_>| {
                    let value = side.value().iter().map(|v| v.to_bits());
                    side.index().iter().copied().zip(value).collect()
                };
                let (net, info) = (trained.network, trained.info);
                let loss = info.training.loss.to_bits();
                let found = Found { w: side(net.w()), wt: side(net.wt()), loss };
                Some(Run { found, info, kept, kept_steps })
            }
        }
    })
}

/// The support changes before nearly every step, below s too, and shrinks; each call of the
/// operator may be the last. The checkpoint is of the last step, and leads to what the whole run
/// finds.
#[test]
fn operator_stop_leaves_the_last_complete_step() {
    let cases = [(1.0, 0, 0, 14), (2.0, 6, 0, 10), (2.0, 10, 0, 10), (2.0, 10, 1, 10)];
    for (factor, validation, patience, s) in cases {
        let params = Params {
            epochs: 12,
            batch: 8,
            start_factor: factor,
            validation,
            patience,
            growth_rows: 16,
            drop: 0.5,
            // Steps that are too long, for a loss that rises.
            rate: if patience > 0 { 1.0 } else { Params::DEFAULT.rate },
            ..Params::DEFAULT
        };
        let problem = Problem { case: Case::new((24, 5, 6, 3), (0, 0), 3), params, s };
        let whole = run(&problem, &Span::default()).unwrap();
        let steps = whole.info.steps;
        assert!(!whole.info.stopped && whole.info.early == (patience > 0), "{:?}", whole.info);
        assert!(whole.info.early || steps == 12 * (24 - validation as u32).div_ceil(8), "{steps}");
        let by_step: Vec<_> = (0..=steps)
            .map(|last| {
                run(&problem, &Span { last: Some(last.max(1)), ..Span::default() }).unwrap()
            })
            .collect();
        let (mut calls, mut before, mut seen) = (0, 0, vec![0; steps as usize + 1]);
        loop {
            match run(&problem, &Span { calls: Some(calls), ..Span::default() }) {
                None => before += 1,
                Some(Run { info, .. }) if !info.stopped => break,
                Some(Run { found, info, kept, kept_steps }) => {
                    seen[info.steps as usize] += 1;
                    let at = format!("call {calls}, step {}", info.steps);
                    let expected = &by_step[info.steps as usize].found;
                    // Stopped while the finished result is scored, it is the result.
                    let is_whole = found == whole.found && info.rows_read == whole.info.rows_read;
                    assert!(found == *expected || is_whole && info.steps == steps, "{at}");
                    assert_eq!(kept_steps, info.steps, "{at}");
                    let rest = run(&problem, &Span { from: &kept, ..Span::default() }).unwrap();
                    assert_eq!((&rest.found, rest.info), (&whole.found, whole.info), "{at}");
                }
            }
            calls += 1;
        }
        assert!(before > 0 && seen[0] == 0 && seen[1..].iter().all(|&n| n > 0), "{seen:?}");
    }
}
