//! Making an exact fit lighter: fewer weights that give the same function, and those that it lacks.

use super::Progress;
use super::fit::Readout;
use super::model::{Model, Moves, Small, Support};
use super::moves::AS_GOOD;
use super::search::Search;
use super::trial::expected;
use crate::base::error::Result;
use crate::base::math::sqrt;
use crate::operator::sensing::Sensing;

/// Before the way down to s weights neurons with a cosine above this are merged.
pub(super) const ALIKE: f32 = 0.99;
/// Rounds in which an exact fit loses weights, at the most: small ones all at once, then one by one, then those of
/// neurons that merge, and of those that turn.
const THINNINGS: u32 = 4;
/// So many roots of its loss are the most that weights are told from 0 by, and one at first, rising by this factor.
const USELESS: f32 = 1000.0;
const USELESS_RISES: f32 = 3.0;
/// Weights of a round that are tried one by one, smallest first.
const SINGLY: u32 = 16;
/// A weight v that is dropped turns its neuron w, which costs at least v³/|w|, about, whatever others make up for: so
/// many times the loss is the most.
const TURNED: f32 = 10.0;
/// Steps on other weights before they are judged.
const STEPS: u32 = 6;
/// The largest of many gradients of noise, squared, to their mean: so much of a row's share of the loss a weight takes
/// that only fits noise.
const CHANCE: f32 = 20.0;

impl<'a, S: Sensing, H: Readout<S>, F: FnMut(&Progress<'_>) -> bool> Search<'a, S, H, F>
where
    Model<'a, S, H>: Moves<S>,
{
    /// Makes an exact fit one of fewer weights, and of those that it lacks then; which is the result.
    pub(super) fn thin_exact(&mut self, loss: f32) -> Result<f32, S::Source> {
        let loss = self.lighten(loss)?;
        (self.state.result_loss, self.state.held) = (f32::INFINITY, f32::INFINITY);
        self.store_result(loss)?;
        let loss = self.complete(loss)?;
        self.store_result(loss)?;
        Ok(loss)
    }

    /// An exact fit with the weights that are missing from s, where they make it more exact: few of the planted ones
    /// may have gone on the way down.
    fn complete(&mut self, loss: f32) -> Result<f32, S::Source> {
        let missing = self.model.task.nnz.saturating_sub(self.model.view().nnz());
        let by_chance = CHANCE * missing as f32 / self.model.fit.all_terms();
        if missing == 0 || !(by_chance < 1.0) || self.is_done() {
            return Ok(loss);
        }
        // As many steps without them say what they are worth.
        let loss = self.model.improve(loss, STEPS, 0.0)?;
        self.base.store(self.model.view())?;
        self.model.grow(missing)?;
        let more = self.model.loss()?;
        let more = self.model.improve(more, STEPS, 0.0)?;
        match self.keep(more, (1.0 - by_chance) * loss / AS_GOOD)? {
            better if better < loss => self.lighten(better),
            same => Ok(same),
        }
    }

    /// The same without those weights that rounding has made, or that only make up for each other.
    pub(super) fn lighten(&mut self, mut loss: f32) -> Result<f32, S::Source> {
        self.base.store(self.model.view())?;
        for _ in 0..THINNINGS {
            loss = self.drop_useless(loss)?;
            loss = self.drop_singly(loss)?;
            loss = self.merge_pairs(ALIKE, loss)?;
            let before = self.base.nnz();
            // Fewer weights may show what is to be turned, and that may be there already.
            if self.is_done() || self.model.first() > 0 || !self.model.turn_back()? {
                break;
            }
            loss = self.as_good(loss)?;
            if self.base.nnz() == before {
                break;
            }
        }
        Ok(loss)
    }

    /// The same for weights, the smallest first; the network is the base before and then.
    fn drop_useless(&mut self, mut loss: f32) -> Result<f32, S::Source> {
        let mut roots = 1.0;
        while roots <= USELESS && !self.is_done() {
            let before = self.base.nnz();
            self.model.drop_below(roots * sqrt(loss));
            if self.model.view().nnz() < before {
                loss = self.as_good(loss)?;
                // Those above are worth no more.
                if self.base.nnz() == before {
                    break;
                }
            }
            roots *= USELESS_RISES;
        }
        self.model.loss()
    }

    /// The same for one weight after the other, since a small one may be of use among those that are not.
    fn drop_singly(&mut self, mut loss: f32) -> Result<f32, S::Source> {
        let mut above = 0.0;
        for _ in 0..SINGLY {
            let before = self.base.nnz();
            let small = Small { above, below: USELESS * sqrt(loss), turned: TURNED * loss };
            let dropped = if self.is_done() { None } else { self.model.drop_next(small) };
            let Some(size) = dropped else { break };
            // One that others make up for shows it within a step.
            let fewer = self.model.loss()?;
            loss = self.accept(fewer, self.most(loss))?;
            if self.base.nnz() == before {
                above = size;
            }
        }
        self.model.loss()
    }

    /// The largest loss that is as good as this one: what is exact stays so.
    fn most(&self, loss: f32) -> f32 {
        let goal = self.model.task.goal;
        if loss <= goal { (AS_GOOD * loss).min(goal) } else { AS_GOOD * loss }
    }

    /// Fits, and goes back to the base where that was better.
    fn as_good(&mut self, loss: f32) -> Result<f32, S::Source> {
        let (mut fewer, most) = (self.model.loss()?, self.most(loss));
        // What nearly parallel neurons share moves between them in some steps.
        for left in (0..STEPS).rev() {
            let before = fewer;
            fewer = self.model.improve(fewer, 1, most)?;
            if fewer <= most || expected(before, fewer, left) > most {
                break;
            }
        }
        self.keep(fewer, most)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::learn::lm::Params;
    use crate::learn::lm::search::tests::{FIRST, SECOND, searching};
    use crate::learn::lm::signed::tests::{D, N};

    const PLANTED: [(f32, [f32; D]); 2] = [(1.0, FIRST), (1.0, SECOND)];

    #[test]
    fn exact_fit_gets_back_the_weight_that_it_lacks_and_no_other() {
        let net = [(4, 1.0), (5, -2.0), (6, 0.5), (13, 1.0), (15, 1.0)];
        for (small, found) in [(5e-6, &[4, 5, 6, 7, 13, 15][..]), (0.0, &[4, 5, 6, 13, 15])] {
            let first = [1.0, -2.0, 0.5, small];
            let mut search = searching(&Params::DEFAULT, &[(1.0, first), PLANTED[1]], &net);
            let loss = search.model.loss().unwrap();
            assert!(search.is_exact(loss));
            search.thin_exact(loss).unwrap();
            assert_eq!(search.result.view().w().index(), found);
            assert!(search.state.result_loss < 1e-14 * search.model.fit.power);
        }
    }

    #[test]
    fn so_many_weights_that_they_may_fit_noise_are_not_looked_for() {
        let net = [(4, 1.0), (5, -2.0), (6, 0.5), (13, 1.0), (15, 1.0)];
        for (more, looked) in [(N / 20 - 1, true), (N / 20 + 1, false)] {
            let mut search = searching(&Params::DEFAULT, &PLANTED, &net);
            let loss = search.model.loss().unwrap();
            search.model.task.nnz = net.len() + more;
            let before = search.model.fit.rows_read;
            search.complete(loss).unwrap();
            assert_eq!(search.model.fit.rows_read > before, looked);
            assert_eq!(search.model.view().nnz(), net.len());
        }
    }

    #[test]
    fn small_weights_are_dropped_one_by_one_but_those_of_use() {
        // Of use is one of 2e-5, between those of 1e-5 and 3e-5 of a neuron that another one makes up for.
        let first = [1.0, -3.0, 2e-5, 0.0];
        let net =
            [(4, 0.99999), (5, -2.99997), (6, 2e-5), (8, 1e-5), (9, -3e-5), (13, 1.0), (15, 1.0)];
        let mut search = searching(&Params::DEFAULT, &[(1.0, first), PLANTED[1]], &net);
        let size = |of: Option<f32>| of.unwrap_or(0.0);
        let small = Small { above: 0.0, below: 0.1, turned: 0.1 };
        let least = size(search.model.drop_next(small));
        let next = size(search.model.drop_next(Small { above: least, ..small }));
        assert!(0.0 < least && least < next);
        assert_eq!(search.model.drop_next(Small { below: next, ..small }), None);
        assert_eq!(search.model.view().w().index(), [4, 5, 9, 13, 15]);
        // Of 4e-6 where the largest neuron has 0.4.
        assert_eq!(search.model.drop_next(Small { turned: 1e-16, ..small }), None);
        assert!(search.model.drop_next(Small { turned: 1e-15, ..small }).is_some());
        let mut search = searching(&Params::DEFAULT, &[(1.0, first), PLANTED[1]], &net);
        let loss = search.model.loss().unwrap();
        assert!(search.is_exact(loss));
        search.base.store::<()>(search.model.view()).unwrap();
        let loss = search.drop_singly(loss).unwrap();
        assert!(search.is_exact(loss));
        assert_eq!(search.model.view().w().index(), [4, 5, 6, 13, 15]);
    }

    #[test]
    fn weight_that_nothing_makes_up_for_ends_the_steps() {
        let net = [(4, 1.0), (5, -2.0), (6, 0.5), (13, 1.0), (15, 1.0)];
        let cost = |hopeless: bool| {
            let mut search = searching(&Params::DEFAULT, &PLANTED, &net);
            let loss = search.model.loss().unwrap().max(1e-12);
            search.base.store::<()>(search.model.view()).unwrap();
            search.model.net.edit_w(|w| w.retain(|j, _| j != 6));
            let before = search.model.fit.rows_read;
            if hopeless {
                search.as_good(loss).unwrap();
                assert_eq!(search.model.view().w().index(), net.map(|(j, _)| j));
            } else {
                let fewer = search.model.loss().unwrap();
                search.model.improve(fewer, STEPS, 0.0).unwrap();
            }
            search.model.fit.rows_read - before
        };
        assert!(2 * cost(true) < cost(false), "{} {}", cost(true), cost(false));
    }
}
