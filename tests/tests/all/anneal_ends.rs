//! Runs of annealed supports that an operator ends.

use crate::anneal::{Case, gated, words};
use tamis::Error;
use tamis::learn::anneal::{self, Params};
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
        if matches!(operation, Operation::Apply | Operation::Adjoint) {
            if self.left == Some(0) {
                self.left = None;
                return Err(Error::Stopped);
            }
            self.left = self.left.map(|left| left - 1);
        }
        Ok(Body::Provided)
    }
}

type Ended = (Vec<(u32, u32)>, Vec<(u32, u32)>, u32, u32);

/// Both sides, the loss and the steps of a run that the operator stops after so many calls, or the
/// observer after so many steps; and whether it was ended. None where it was stopped before the
/// first step.
fn ended(
    case: &Case,
    s: usize,
    params: &Params<'_>,
    calls: Option<usize>,
    last: u32,
) -> Option<(Ended, bool)> {
    gated(case, |inner| {
        let mut sensing = Stopping { inner, left: calls };
        let mut memory = vec![0; words(&sensing, case, s, params)];
        let observe = |p: &anneal::Progress<'_>| continue_if(p.step < last);
        match anneal::run(
            &mut sensing,
            case.classes(),
            s,
            Start::Zero,
            params,
            &mut memory,
            observe,
        ) {
            Err(error) => {
                assert_eq!(error, Error::Stopped);
                None
            }
            Ok(trained) => {
                let side = |side: Weights<'_>| -> Vec<(u32, u32)> {
                    side.index()
                        .iter()
                        .copied()
                        .zip(side.value().iter().map(|v| v.to_bits()))
                        .collect()
                };
                let (net, info) = (trained.network, trained.info);
                let loss = info.training.loss.to_bits();
                Some(((side(net.w()), side(net.wt()), loss, info.steps), info.stopped))
            }
        }
    })
}

/// The support changes before nearly every step, below s too, and shrinks; each call of the
/// operator may be the last.
#[test]
fn operator_stop_leaves_the_last_complete_step() {
    let case = Case::new((24, 5, 6, 3), (0, 0), 3);
    for (factor, validation, s) in [(1.0, 0, 14), (2.0, 6, 10)] {
        let params = Params {
            epochs: 12,
            batch: 8,
            start_factor: factor,
            validation,
            growth_rows: 16,
            drop: 0.5,
            ..Params::DEFAULT
        };
        let steps = 12 * (24 - validation as u32).div_ceil(8);
        let by_step: Vec<_> = (0..=steps)
            .map(|last| ended(&case, s, &params, None, last.max(1)).unwrap().0)
            .collect();
        let whole = ended(&case, s, &params, None, u32::MAX).unwrap();
        assert!(!whole.1);
        let (mut calls, mut before, mut seen) = (0, 0, vec![0; steps as usize + 1]);
        loop {
            match ended(&case, s, &params, Some(calls), u32::MAX) {
                None => before += 1,
                Some((_, false)) => break,
                Some((found, true)) => {
                    seen[found.3 as usize] += 1;
                    let expected = &by_step[found.3 as usize];
                    // Stopped while the finished result is scored, it is the result.
                    assert!(
                        found == *expected || found == whole.0,
                        "call {calls}, step {}",
                        found.3
                    );
                    assert!(found == *expected || found.3 == steps, "call {calls}");
                }
            }
            calls += 1;
        }
        assert!(before > 0 && seen[0] == 0 && seen[1..].iter().all(|&n| n > 0), "{seen:?}");
    }
}
