//! The mask that the last flow gives.

use super::flow::{CHUNK, Chunk, Flow, score};
use super::params::{Info, Params};
use crate::base::error::Result;
use crate::base::rng::{CounterRng, stream};
use crate::network::mask::Mlp;
use crate::network::mask::select::{self, Choice, Cut, Histogram, Next, Scores};

/// What the mask comes from when all rounds are done.
pub(super) struct Last<'r, 'm> {
    pub(super) net: Mlp<'r>,
    pub(super) params: &'r Params<'r>,
    pub(super) now: Flow<'m>,
    /// The entries of a widest path, one a layer, as flat indices.
    pub(super) path: &'m mut [u32],
    /// Of the scores of all layers.
    pub(super) cut: Cut,
    /// Cuts of the sampled scores of each layer: keys, and ties.
    pub(super) keys: &'m mut [u32],
    pub(super) ties: &'m mut [u32],
    pub(super) info: Info,
}

impl Last<'_, '_> {
    /// The key of the last wanted score, from the histogram of the first digit on; 1 where there are
    /// fewer scores.
    pub(super) fn threshold(&mut self, mut histogram: Histogram<'_>) -> u32 {
        loop {
            match histogram.next() {
                Ok(Next::Digit(next)) => histogram = next,
                Ok(Next::Done(cut)) => return cut.key,
                Err(_) => return 1,
            }
            Others { last: &mut *self, of: None }.scores(|_, score| histogram.add(score));
        }
    }

    /// The cuts that sample as many weights in each layer as have the largest scores.
    pub(super) fn cut_layers(&mut self, bins: &mut [u32]) -> Result<()> {
        let mut all = self.cut;
        for number in 0..self.path.len() {
            let mut count = 0;
            let mut own = Others { last: &mut *self, of: Some(number) };
            own.scores(|_, score| count += usize::from(all.keeps(score)));
            let Cut { key, ties } = select::cut(&mut own, count, bins)?;
            self.keys.get_mut(number).into_iter().for_each(|own| *own = key);
            self.ties.get_mut(number).into_iter().for_each(|own| *own = ties);
        }
        Ok(())
    }

    /// Gives the mask, in rising order.
    pub(super) fn emit(mut self, mut emit: impl FnMut(u32)) -> Info {
        let mut cut = self.cut;
        for number in 0..self.path.len() {
            if self.params.choice == Choice::Sampled {
                let at = |cuts: &[u32]| cuts.get(number).copied().unwrap_or(0);
                cut = Cut { key: at(self.keys), ties: at(self.ties) };
            }
            let mut own = self.path.get(number).copied();
            let mut scores = Others { last: &mut self, of: Some(number) };
            select::above(&mut scores, &mut cut, |index| {
                own.take_if(|own| *own < index).into_iter().for_each(&mut emit);
                emit(index);
            });
            own.into_iter().for_each(&mut emit);
        }
        self.info
    }
}

/// The scores of all entries but those of the path, of one layer or of all.
pub(super) struct Others<'a, 'r, 'm> {
    pub(super) last: &'a mut Last<'r, 'm>,
    pub(super) of: Option<usize>,
}

impl Others<'_, '_, '_> {
    /// The scores themselves.
    fn scores(&mut self, mut take: impl FnMut(u32, f32)) {
        let Last { net, params, now, path, info, .. } = &mut *self.last;
        for layer in net.layers().filter(|layer| self.of.is_none_or(|of| of == layer.number)) {
            let weights = params.weights.layer(&layer);
            let flow = now.of(&layer);
            for ((row, &v), first) in
                (0..).zip(flow.v).zip((layer.first..).step_by(layer.inputs.max(1)))
            {
                if v == 0.0 {
                    continue;
                }
                let columns = flow.u.chunks(CHUNK).zip((first as u32..).step_by(CHUNK));
                for (column, (u, first)) in (0..).step_by(CHUNK).zip(columns) {
                    let w = Chunk::new(&weights, row, column, u, info);
                    for ((&w, &u), index) in w.sizes.iter().zip(u).zip(first..) {
                        if !path.contains(&index) {
                            take(index, score(w, v, u));
                        }
                    }
                }
            }
        }
    }
}

impl Scores for Others<'_, '_, '_> {
    fn each(&mut self, mut take: impl FnMut(u32, f32)) {
        // One layer's are asked for by the choice, those of all layers for the cut of all.
        let is_sampled = self.of.is_some() && self.last.params.choice == Choice::Sampled;
        let rng = CounterRng::new(self.last.params.weights.seed, stream::MASK);
        self.scores(|index, score| {
            take(index, if is_sampled { select::sampled(score, &rng, index) } else { score });
        });
    }
}
