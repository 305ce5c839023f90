//! The network that a search works on, and what differs between networks of one output, of several
//! outputs and of two layers.

use super::checkpoint::Info;
use super::fit::{Fit, Readout};
use super::neuron::{BATCH, Candidate, Candidates, Entries, Origin, Pair, Single};
use super::sides::Sides;
use super::solver::Solver;
use super::support::{Columns, add};
use crate::base::budget::Recovery;
use crate::base::error::Result;
use crate::base::math::sqrt;
use crate::network::net::Network;
use crate::network::weights::Block;
use crate::operator::sensing::{Rows, Sensing};

const HURRIED_STEPS: u32 = 2;
/// A neuron nearly reads one input alone where its weight from it is this part of its square.
const NEARLY: f32 = 0.98;
/// The loss of the network that is looked for is what rounding leaves, a few times: this fraction of that of an exact
/// fit, and so much more for every neuron, but at most the last one.
const ROUNDED: [f32; 3] = [5e-4, 1e-5, 0.01];

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Task {
    pub(super) nnz: usize,
    pub(super) hidden: usize,
    /// Weights above s while searching, in percent of s.
    pub(super) spare: u32,
    /// Loss at which the fit counts as exact on the rows selected.
    pub(super) goal: f32,
    /// What was done so far, but for the rows read.
    pub(super) info: Info,
    /// Whether the run was ended: what is left to do takes few steps.
    pub(super) hurried: bool,
    /// Whether weights are few for the labels: the search covers rows, and swaps weights at s.
    pub(super) tight: bool,
}

impl Task {
    /// Whether the network is found: another one may fit exactly, but less so.
    pub(super) fn is_found(&self, loss: f32) -> bool {
        let [least, neuron, most] = ROUNDED;
        loss <= (least + neuron * self.hidden as f32).min(most) * self.goal
    }

    /// Of so many steps, those that are made.
    pub(super) fn steps(&self, steps: u32) -> u32 {
        if self.hurried { steps.min(HURRIED_STEPS) } else { steps }
    }

    /// Of so many weights too many, those that go at once: a third, or all once the run was ended.
    pub(super) fn share(&self, excess: usize) -> usize {
        if self.hurried { excess } else { excess.div_ceil(3) }
    }

    /// Weights while searching.
    pub(super) fn work_size(&self) -> usize {
        let spare = self.nnz.saturating_mul(self.spare as usize).div_ceil(100);
        Recovery::work_size(self.nnz).min(self.nnz.saturating_add(spare))
    }
}

/// Buffers for output weights, empty where these are signs.
pub(super) struct OutputBuffers<'a, S: Sensing> {
    /// Output weights of a neuron that is being formed.
    pub(super) entries: Entries<'a>,
    /// Two vectors over the outputs, c each.
    pub(super) along: &'a mut [f32],
    pub(super) other: &'a mut [f32],
    /// The residual along output weights, n.
    pub(super) back: &'a mut Rows<S>,
}

/// A network, its data, and buffers. Neurons with weights are *live*; the linear term is none.
pub(super) struct Model<'a, S: Sensing, H> {
    pub(super) fit: Fit<'a, S, H>,
    pub(super) solver: Solver<'a>,
    pub(super) net: Sides<'a>,
    /// The scales of the inputs, and a panel.
    pub(super) columns: Columns<'a>,
    pub(super) single: Single<'a, S>,
    pub(super) out: OutputBuffers<'a, S>,
    pub(super) task: Task,
}

/// How the weights of a network of one kind are fitted, selected and formed.
pub(super) trait Support<S: Sensing> {
    /// New neurons from random gates for each that [`Draw::random`] counts.
    const RANDOM: u32 = 1;
    /// Whether a neuron that could win nothing is not added.
    const GAINS: bool = false;

    /// Weights that count in s.
    fn counted(&self) -> usize;

    /// Loss of the network as it is; the residual is current from then on.
    fn loss(&mut self) -> Result<f32, S::Source>;

    /// At most `steps` steps until `goal`; the residual must be current.
    fn improve(&mut self, loss: f32, steps: u32, goal: f32) -> Result<f32, S::Source>;

    /// Adds up to `count` zeros where the gradient asks for weights; the residual must be current.
    fn grow(&mut self, count: usize) -> Result<(), S::Source>;

    /// The same by what weights could win on the rows on which their neuron is active, where the two differ: with
    /// inputs that are 0 on most rows they do. Costs a pass for each neuron.
    fn grow_active(&mut self, count: usize) -> Result<(), S::Source> {
        self.grow(count)
    }

    /// Keeps the `size` counted weights that contribute most.
    fn threshold(&mut self, size: usize) -> Result<(), S::Source>;

    /// Merges one of neurons i and j into the other where their cosine is above `least`.
    fn merge_two(&mut self, i: usize, j: usize, least: f32) -> Result<bool, S::Source>;

    /// What an atom could win as neuron `i`, unrefined.
    fn atom_gain(&mut self, number: u32, i: usize) -> Result<f32, S::Source>;

    /// Forms a new neuron as neuron `i`; what it could win at once.
    fn form(&mut self, origin: Origin, i: usize) -> Result<f32, S::Source>;

    /// Forms the difference of the halves of neuron `i`; what they could win at once.
    fn form_halves(&mut self, i: usize, seed: u64) -> Result<f32, S::Source>;

    /// Adds the neuron that was formed as neuron `from` to neuron `to`, which is empty.
    fn add_formed(&mut self, from: usize, to: usize) -> Result<(), S::Source>;

    /// Numbers of the outputs of largest residual, best first, as those of [`Origin::Output`].
    fn rank_outputs(&mut self) -> heapless::Vec<Candidate<u32>, BATCH> {
        heapless::Vec::new()
    }
}

/// Weights that may be of no use, by their size in the metric of the inputs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Small {
    pub(super) above: f32,
    pub(super) below: f32,
    /// The cube of the size is below so many times the norm of the largest neuron.
    pub(super) turned: f32,
}

/// What a search does with a network of one kind.
pub(super) trait Moves<S: Sensing>: Support<S> {
    fn second_live(&self) -> usize {
        0
    }

    fn nth_second(&self, _nth: usize) -> Option<usize> {
        None
    }

    fn remove_second(&mut self, _k: usize) {}

    /// The first weights, s of them at most, from the data and a seed.
    fn start(&mut self, seed: u64) -> Result<(), S::Source>;

    /// [`Params::first`](super::Params::first) steps from nothing, where there are such; `tell` is told of losses
    /// meanwhile, and ends them by returning false.
    fn adam(
        &mut self,
        _steps: u32,
        _seed: u64,
        _tell: &mut dyn FnMut(&mut Self, f32) -> bool,
    ) -> Result<(), S::Source> {
        Ok(())
    }

    /// Whether the search relaxes the model by more than weights that count.
    fn is_relaxed(&self) -> bool;

    /// Adds what relaxes the model, where there is such and it is missing.
    fn relax(&mut self) -> Result<(), S::Source>;

    /// Flips neurons, `w_i -> -w_i`, where that alone lowers the loss, and fits if any was flipped;
    /// the loss. The residual must be current.
    fn flip(&mut self, loss: f32) -> Result<f32, S::Source>;

    /// Flips neurons back that their mirror images and neuron `i` represent; how many.
    fn unmirror(&mut self, _i: usize) -> Result<u32, S::Source> {
        Ok(0)
    }

    /// The neuron without which the loss is least, where they are few and add up; none else. The residual is
    /// another one then.
    fn least_missed(&mut self) -> Result<Option<usize>, S::Source> {
        Ok(None)
    }

    /// [`Model::merge`] of the second layer.
    fn merge_second(&mut self, _least: f32) -> Result<u32, S::Source> {
        Ok(0)
    }

    fn list_pairs(&mut self, _list: &mut Candidates) -> Result<(), S::Source> {
        Ok(())
    }

    /// Adds a neuron to the second layer, in place of the weakest one if all are live; false, and
    /// no change, if it wins nothing.
    fn add_pair(&mut self, _pair: Pair) -> Result<bool, S::Source> {
        Ok(false)
    }

    /// Drops weights below `least` in the metric of the inputs, where that says what they contribute.
    fn drop_below(&mut self, _least: f32) {}

    /// Drops the smallest of these weights; its size.
    fn drop_next(&mut self, _small: Small) -> Option<f32> {
        None
    }

    /// Turns neurons where others represent the difference with fewer weights; whether there was one.
    fn turn_back(&mut self) -> Result<bool, S::Source> {
        Ok(false)
    }

    /// Brings a network of at most s counted weights to m neurons and removes what relaxes the
    /// model; returns the loss. The buffers have room for s weights.
    fn conclude(&mut self, loss: f32, buffers: [&mut Sides<'_>; 2]) -> Result<f32, S::Source>;
}

impl<S: Sensing, H: Readout<S>> Model<'_, S, H> {
    pub(super) fn inputs(&self) -> usize {
        self.columns.scales().len()
    }

    /// p, blocks: neurons that there is room for, and the linear term.
    pub(super) fn blocks(&self) -> usize {
        self.fit.sensing.blocks()
    }

    pub(super) fn first(&self) -> usize {
        usize::from(self.fit.signs.linear(0))
    }

    pub(super) fn view(&self) -> Network<'_> {
        self.net.view()
    }

    /// Becomes a copy of a network, which must fit.
    pub(super) fn load(&mut self, from: Network<'_>) -> Result<(), S::Source> {
        self.net.store(from)?;
        self.net.clear_halves();
        Ok(())
    }

    /// The live neurons of the first layer.
    pub(super) fn neurons(&self) -> impl Iterator<Item = Block<'_>> {
        let first = self.first();
        self.net.view().w().blocks().filter(move |block| block.neuron() >= first)
    }

    /// The weight of neuron `i` of the first layer from input j.
    pub(super) fn weight_mut(&mut self, i: usize, j: usize) -> Option<&mut f32> {
        let at = self.net.view().w().block(i).entries().position(|(at, _)| at == j)?;
        self.net.values_of(i).0.get_mut(at)
    }

    pub(super) fn is_vacant(&self, i: usize) -> bool {
        self.net.view().w().block(i).is_empty()
    }

    /// The first neuron without weights whose output has this sign.
    pub(super) fn vacant(&self, sign: f32) -> Option<usize> {
        let mut live = self.neurons().map(|block| block.neuron()).peekable();
        (self.first()..self.blocks())
            .find(|&i| live.next_if_eq(&i).is_none() && self.fit.signs.sign(i) == sign)
    }

    /// Any neuron of this sign, to measure new ones with.
    pub(super) fn of_sign(&self, sign: f32) -> Option<usize> {
        (self.first()..self.blocks()).find(|&i| self.fit.signs.sign(i) == sign)
    }

    /// The neuron that contributes least to the outputs, of those that `which` holds for.
    #[inline(never)]
    pub(super) fn weakest(&self, which: impl Fn(usize) -> bool) -> Option<usize> {
        let wt = self.net.view().wt();
        let strength = |w: Block<'_>| {
            let strength = square_in(w, self.columns.scales());
            if self.net.is_signed() { strength } else { strength * square(wt.block(w.neuron())) }
        };
        let candidates = self.neurons().filter(|block| which(block.neuron()));
        let strengths = candidates.map(|block| (strength(block), block.neuron()));
        strengths.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, i)| i)
    }

    /// A neuron of this sign without weights, if need be the weakest one but `but`, emptied.
    pub(super) fn vacate(&mut self, sign: f32, but: Option<usize>) -> Option<usize> {
        self.vacant(sign).or_else(|| {
            let weakest = self.weakest(|i| Some(i) != but && self.fit.signs.sign(i) == sign)?;
            self.net.remove(weakest);
            Some(weakest)
        })
    }

    /// Adds the entries of the single neuron, times `sign`, which is 1 or -1.
    pub(super) fn add_single(&mut self, sign: f32) -> Result<(), S::Source> {
        let entries = &mut self.single.entries;
        entries.scale(sign);
        let added = self.net.edit_w(|w| add(w, entries.index(), entries.value()));
        entries.scale(sign);
        added
    }

    /// Changes the signs of the weights from the inputs of neuron `i`.
    pub(super) fn negate(&mut self, i: usize) {
        self.net.values_of(i).0.iter_mut().for_each(|w| *w = -*w);
    }
}

/// (input, `w c`) of every weight of a block.
pub(super) fn scaled<'w>(
    block: Block<'w>,
    scales: &'w [f32],
) -> impl Iterator<Item = (usize, f32)> {
    block.entries().map(|(j, w)| (j, w * scales.get(j).copied().unwrap_or(0.0)))
}

/// The squared norm of weights in the metric of the inputs.
pub(super) fn square_in(w: Block<'_>, scales: &[f32]) -> f32 {
    scaled(w, scales).map(|(_, x)| x * x).sum()
}

/// The input that a neuron nearly reads alone, in the metric of the inputs.
pub(super) fn main_input(w: Block<'_>, scales: &[f32]) -> Option<usize> {
    let all = square_in(w, scales);
    scaled(w, scales).find(|(_, x)| x * x >= NEARLY * all).map(|(j, _)| j)
}

pub(super) fn square(w: Block<'_>) -> f32 {
    w.values().iter().map(|v| v * v).sum()
}

/// The cosine of two neurons in the metric of the inputs.
pub(super) fn cosine(a: Block<'_>, b: Block<'_>, scales: &[f32]) -> f32 {
    let mut others = scaled(b, scales).peekable();
    let mut product = 0.0;
    for (at, x) in scaled(a, scales) {
        while others.next_if(|&(j, _)| j < at).is_some() {}
        if let Some((_, y)) = others.next_if(|&(j, _)| j == at) {
            product += x * y;
        }
    }
    product / sqrt(square_in(a, scales) * square_in(b, scales))
}
