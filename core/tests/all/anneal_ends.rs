//! Recipe `anneal` where an operator ends the run within a step: nothing of what was done is lost.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

use crate::shared::ending::Ending;
use core::ops::ControlFlow::Continue;
use tamis::base::budget::gated_words;
use tamis::base::dims::Dims;
use tamis::base::error::{Error, Result};
use tamis::base::record::Record;
use tamis::base::rng::Rng;
use tamis::data::samples::Rows;
use tamis::learn::anneal::{self, Checkpoint, Info, Params};
use tamis::learn::loss::Classes;
use tamis::learn::start::Start;
use tamis::operator::factored::Factored;
use tamis::operator::gated::Gated;
use tamis::operator::sensing::Sensing;

const N: usize = 60;
const D: usize = 5;
const M: usize = 3;
const C: usize = 3;
const S: usize = 8;

/// Rows and their classes.
struct Data {
    x: Vec<f32>,
    classes: Vec<u16>,
}

/// A run: what was done, the weights of both sides by their bits, the last checkpoint that was
/// shown and the steps it is of, and the calls of the operator.
#[derive(Debug)]
struct Run {
    info: Info,
    weights: Vec<(u32, u32)>,
    kept: Vec<u32>,
    kept_steps: u32,
    calls: usize,
}

impl Data {
    fn new() -> Self {
        let mut rng = Rng::new(5, 0);
        let mut x = vec![0.0; N * D];
        rng.fill_normal(&mut x);
        let class = |x: &[f32]| match x {
            [a, b, ..] if a > b => 2,
            [_, _, c, ..] => u16::from(*c > 0.2),
            _ => 0,
        };
        let classes = x.chunks(D).map(class).collect();
        Self { x, classes }
    }

    /// A run from the checkpoint in `from`, or from zero, that the operator ends at call `at`.
    fn run(&self, params: &Params<'_>, from: &[u32], at: usize) -> Result<Run> {
        let mut row = vec![0.0; gated_words(D, M)];
        let mut sensing = Ending::new(Gated::new(Rows::new(&self.x, D)?, M, 2, &mut row)?, at);
        let mut budget = params.budget(Dims::new(N, D, M, S), C, sensing.panel(), 0);
        budget.scratch = sensing.net_scratch(budget.batch);
        let form = Checkpoint::form(&budget);
        let from = if from.is_empty() { None } else { Some(Checkpoint::read(&form, from)?) };
        let start = from.as_ref().map_or(Start::Zero, Start::Checkpoint);
        let mut memory = vec![0; budget.words()];
        let (mut kept, mut kept_steps) = (Vec::new(), 0);
        let labels = Classes::new(&self.classes, C);
        let done = anneal::run(&mut sensing, labels, S, start, params, &mut memory, |progress| {
            kept.clear();
            let keep = &mut |words: &[u32]| Ok::<(), ()>(kept.extend_from_slice(words));
            progress.checkpoint.write(keep).unwrap();
            kept_steps = progress.checkpoint.state.steps();
            Continue(())
        })?;
        let (w, wt) = (done.network.w(), done.network.wt());
        let bits = |(&j, v): (&u32, &f32)| (j, v.to_bits());
        let weights = [w, wt].into_iter().flat_map(|w| w.index().iter().zip(w.value())).map(bits);
        let (info, weights, calls) = (done.info, weights.collect(), sensing.calls);
        Ok(Run { info, weights, kept, kept_steps, calls })
    }
}

#[test]
fn operator_stop_within_step_loses_no_step() {
    let data = Data::new();
    for (validation, start_factor) in [(0, 1.0), (12, 1.0), (12, 2.0)] {
        let params = Params {
            epochs: 5,
            batch: 16,
            growth_rows: 30,
            validation,
            start_factor,
            ..Params::DEFAULT
        };
        let whole = data.run(&params, &[], usize::MAX).unwrap();
        let mut given = 0;
        for at in 1..=whole.calls {
            let ended = match data.run(&params, &[], at) {
                Err(Error::Stopped) => {
                    assert!(given == 0, "{at}: nothing, where an earlier end gave a result");
                    continue;
                }
                ended => ended.unwrap(),
            };
            given += 1;
            assert!(ended.info.stopped, "{at}: {:?}", ended.info);
            assert_eq!(ended.kept_steps, ended.info.steps, "{at}");
            let rest = data.run(&params, &ended.kept, usize::MAX).unwrap();
            assert_eq!((rest.info, rest.weights), (whole.info, whole.weights.clone()), "{at}");
        }
        assert!(given > whole.calls / 2, "{given} of {}", whole.calls);
    }
}
