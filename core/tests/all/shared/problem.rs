//! A problem, its runs, and what their results must be.

use core::ops::Range;
use std::collections::BTreeSet;
use tamis::base::budget::{Recovery, gated_words};
use tamis::base::dims::Dims;
use tamis::base::error::Error;
use tamis::base::rng::Rng;
use tamis::data::samples::Rows;
use tamis::learn::lm::{self, Checkpoint, Goal, Info, Params, Progress, State};
use tamis::learn::start::{Start, continue_if};
use tamis::network::gates::Signs;
use tamis::network::net::{self, Head};
use tamis::network::weights::Weights;
use tamis::operator::factored::Factored;
use tamis::operator::gated::Gated;
use tamis::store::wire;

/// Flat indices and values of either side; the second is empty where output weights are signs.
pub(crate) type Network = [(Vec<u32>, Vec<f32>); 2];

fn owned(net: net::Network<'_>) -> Network {
    [net.w(), net.wt()].map(|w| (w.index().to_vec(), w.value().to_vec()))
}

/// Rows, labels and sizes.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) x: Vec<f32>,
    pub(crate) y: Vec<f32>,
    pub(crate) dims: Dims,
    /// Outputs that weights lead to; 0 for one label a row, where output weights are signs.
    pub(crate) outputs: usize,
    /// Neurons of the second layer, where there is one and one label a row; else 0.
    pub(crate) second: usize,
    pub(crate) blocks: usize,
}

impl Problem {
    /// With noise, so that no fit is exact: a run goes through every stage.
    pub(crate) fn noisy(mut self) -> Self {
        let mut rng = Rng::new(8, 0);
        self.y.iter_mut().for_each(|y| *y += 0.05 * rng.normal());
        self
    }

    /// Runs, or goes on from a checkpoint, with `words` more memory than the budget.
    pub(crate) fn go(
        &self,
        params: &Params,
        from: Option<&Checkpoint<'_>>,
        words: isize,
        mut observe: impl FnMut(&Progress<'_>) -> bool,
    ) -> tamis::Result<(Network, Info)> {
        let (d, dims, y) = (self.dims.inputs, self.dims, &self.y[..]);
        let mut row = vec![0.0; gated_words(d, self.blocks)];
        let mut sensing = Gated::new(Rows::new(&self.x, d)?, self.blocks, 2, &mut row)?;
        let budget = self.budget(&sensing, params);
        // What memory held before must not matter.
        let mut memory = vec![0x7fc0_1234; budget.words().saturating_add_signed(words)];
        let memory = &mut memory[..];
        let observe = |progress: &Progress<'_>| continue_if(observe(progress));
        let start = from.map_or(Start::Zero, Start::Checkpoint);
        let found = match self.outputs {
            _ if self.second > 0 => {
                let goal = Goal::two_layers(dims, self.second);
                lm::run(&mut sensing, y, goal, start, params, memory, observe)?
            }
            0 => lm::run(&mut sensing, y, Goal::one_output(dims), start, params, memory, observe)?,
            _ => lm::run(
                &mut sensing,
                y,
                Goal::several_outputs(dims),
                start,
                params,
                memory,
                observe,
            )?,
        };
        Ok((owned(found.network), found.info))
    }

    fn budget<S: Factored>(&self, sensing: &S, params: &Params) -> Recovery {
        let (n, panel) = (self.dims.samples, sensing.panel());
        let scratch = sensing.scratch(n);
        match self.outputs {
            _ if self.second > 0 => {
                let (c, scratch) =
                    (lm::second_slots(self.second), sensing.net_scratch(n).max(scratch));
                Recovery::deep(self.dims, self.blocks, c, panel, scratch)
            }
            0 => Recovery::new(self.dims, panel, scratch, params.signs.linear(0)),
            outputs => {
                Recovery::factored(self.dims, outputs, panel, sensing.net_scratch(n).max(scratch))
            }
        }
    }

    pub(crate) fn run(&self, params: &Params) -> tamis::Result<(Network, Info)> {
        self.go(params, None, 0, |_| true)
    }

    /// A run of the problem after a change, which must fail.
    pub(crate) fn failed(&self, change: impl FnOnce(&mut Self, &mut Params)) -> Error {
        let (mut problem, mut params) = (self.clone(), Params::DEFAULT);
        change(&mut problem, &mut params);
        problem.run(&params).unwrap_err()
    }

    pub(crate) fn net<'w>(&self, network: &'w Network) -> net::Network<'w> {
        self.net_to(network, self.outputs.max(self.second), Signs::Positive)
    }

    /// Of so many outputs, those that a search for two layers has besides included.
    fn net_to<'w>(&self, [w, wt]: &'w Network, outputs: usize, signs: Signs) -> net::Network<'w> {
        let w = Weights::new(self.dims.inputs, self.blocks, &w.0, &w.1).unwrap();
        if outputs == 0 {
            return net::Network::signed(w, signs);
        }
        net::Network::new(w, Weights::new(outputs, self.blocks, &wt.0, &wt.1).unwrap()).unwrap()
    }

    /// Mean squared error of some rows, and mean square of the sum of all terms' magnitudes, in
    /// parts of the mean square of the labels, in double precision. Where output weights are signs,
    /// they are `signs`.
    pub(crate) fn relative(&self, net: &Network, signs: Signs, rows: Range<usize>) -> (f64, f64) {
        let (net, width) = (self.net(net), self.outputs.max(1));
        let (mut loss, mut added, mut power) = (0.0, 0.0, 0.0);
        let all = self.x.chunks(self.dims.inputs).zip(self.y.chunks(width));
        for (row, y) in all.take(rows.end).skip(rows.start) {
            let mut left: Vec<f64> = y.iter().map(|&y| f64::from(y)).collect();
            let mut sums = vec![0.0; width];
            let mut second = vec![0.0; self.second];
            for block in net.w().blocks() {
                let terms = block.entries().map(|(j, w)| f64::from(w) * f64::from(row[j]));
                let (z, size) = terms.fold((0.0_f64, 0.0), |(z, size), t| (z + t, size + t.abs()));
                let mut add = |k: usize, a: f64, v: f64| {
                    left[k] -= a * v;
                    sums[k] += size * v.abs();
                };
                match self.outputs.max(self.second) {
                    // The weights from the inputs carry the sign too.
                    0 => {
                        let v = f64::from(signs.sign(block.neuron()));
                        add(0, (v * z).max(0.0), v);
                    }
                    _ if self.second > 0 => {
                        for (k, v) in net.wt().block(block.neuron()).entries() {
                            second[k] += z.max(0.0) * f64::from(v);
                            sums[0] += size * f64::from(v).abs();
                        }
                    }
                    _ => {
                        let to = net.wt().block(block.neuron());
                        to.entries().for_each(|(k, v)| add(k, z.max(0.0), f64::from(v)));
                    }
                }
            }
            left[0] -= second.iter().map(|z| z.max(0.0)).sum::<f64>();
            loss += left.iter().map(|x| x * x).sum::<f64>();
            added += sums.iter().map(|x| x * x).sum::<f64>();
            power += y.iter().map(|&y| f64::from(y) * f64::from(y)).sum::<f64>();
        }
        let part = |x: f64| if x == 0.0 { 0.0 } else { x / power };
        (part(loss), part(added))
    }

    /// What every result must be.
    pub(crate) fn check(&self, (net, info): &(Network, Info), params: &Params) {
        let view = self.net(net);
        assert!(view.nnz() <= self.dims.nnz, "{} of {} weights", view.nnz(), self.dims.nnz);
        let neurons = |w: Weights<'_>| w.blocks().map(|block| block.neuron()).collect::<Vec<_>>();
        let live = neurons(view.w()).len();
        assert!(live <= self.dims.hidden, "{live} of {} neurons", self.dims.hidden);
        for side in net {
            assert!(side.1.iter().all(|w| w.is_finite() && *w != 0.0), "{net:?}");
        }
        assert!(!info.loss.is_nan() && !info.relative.is_nan(), "{info:?}");
        let is_precise = net.iter().all(|side| side.1.iter().all(|w| w.is_normal()));
        assert_eq!(info.exact, is_precise && info.relative <= params.exact, "{info:?}");
        // f is computed in single precision: what is left of y is known to a fraction of what was
        // added.
        let (relative, added) =
            self.relative(net, params.signs, 0..self.dims.samples - params.validation);
        let known = (relative.sqrt() - f64::from(info.relative).sqrt()).abs();
        assert!(known < 1e-5 * (1.0 + added.sqrt()), "{relative:e}, {added:e} added, {info:?}");
        assert_eq!(info.held.is_some(), params.validation > 0, "{info:?}");
        assert!(info.held.is_none_or(|held| held >= 0.0), "{info:?}");
        let view = match view.head() {
            Head::Signs(_) => {
                let w = view.w();
                assert!(
                    !params.signs.linear(0) || w.block(0).is_empty(),
                    "a linear term is left: {w:?}"
                );
                net::Network::signed(w, params.signs)
            }
            Head::Weights(wt) => {
                assert_eq!(neurons(view.w()), neurons(wt), "a neuron has one side of two");
                view
            }
        };
        let mut bytes = vec![0; wire::trained_len(view, None).unwrap()];
        let len = wire::encode(view, self.blocks, None, &mut bytes).unwrap();
        assert!(len > 0);
    }

    /// A run resumes from each of its checkpoints with the bits of the next one, and from the last
    /// one with those of the result; how many there were, and in how many stages.
    pub(crate) fn check_checkpoints(&self, params: &Params) -> (usize, usize) {
        let copy = |Checkpoint { state, net, best, result, .. }: Checkpoint<'_>| {
            (state.to_words(), [net, best, result].map(owned))
        };
        let mut kept = Vec::new();
        let whole = self
            .go(params, None, 0, |p| {
                kept.extend(p.checkpoint.map(copy));
                true
            })
            .unwrap();
        self.check(&whole, params);
        for (number, (state, nets)) in kept.iter().enumerate() {
            let outputs =
                if self.second > 0 { lm::second_slots(self.second) } else { self.outputs };
            let [net, best, result] =
                nets.each_ref().map(|net| self.net_to(net, outputs, params.signs));
            let from = Checkpoint { state: State::from_words(state).unwrap(), net, best, result };
            let mut next = None;
            let observe = |p: &Progress<'_>| {
                // A run that was ended shows what it still does.
                next = next.take().or(p.checkpoint.map(copy)).filter(|next| next.0 != *state);
                next.is_none()
            };
            let rest = self.go(params, Some(&from), 0, observe).unwrap();
            let what = format!("checkpoint {number} of {}", kept.len());
            assert_eq!(next.as_ref(), kept.get(number + 1), "{what}");
            assert!(next.is_some() || rest == whole, "{what}: {rest:?}");
        }
        (kept.len(), kept.iter().map(|(state, _)| state[0]).collect::<BTreeSet<u32>>().len())
    }

    /// A run takes `budget`, gives the same with more, and nothing with a word less.
    pub(crate) fn check_budget(&self, params: &Params, budget: Recovery) {
        let exactly = self.run(params).unwrap();
        assert_eq!(self.go(params, None, 1000, |_| true).unwrap(), exactly);
        let short = self.go(params, None, -1, |_| true);
        let bytes = 4 * budget.words();
        assert_eq!(short.unwrap_err(), Error::Budget { needed: bytes, got: bytes - 4 });
    }

    /// A run gives a result within its bounds.
    pub(crate) fn check_run(&self, params: &Params) {
        match self.run(params) {
            Ok(result) => self.check(&result, params),
            // Labels of 1e30 over inputs of 1e-6 may ask for more than floats hold.
            Err(Error::NotFinite { what, .. }) if self.y.iter().any(|y| y.abs() > 1e20) => {
                assert!(what.starts_with("weights"), "{what}");
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// An observer ends a run after so many calls; of what follows it is told, whatever it says,
    /// but no checkpoint.
    pub(crate) fn check_ended(&self, params: &Params, calls: u32) {
        let mut told = 0;
        let result = self.go(params, None, 0, |progress| {
            told += 1;
            assert!(
                told <= calls + 1 || progress.checkpoint.is_none(),
                "a checkpoint after the end"
            );
            told != calls + 1
        });
        if let Ok(result) = result {
            assert_eq!(result.1.stopped, told > calls);
            self.check(&result, params);
        }
    }
}
