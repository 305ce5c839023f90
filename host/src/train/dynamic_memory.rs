//! How the memory of recipe `dynamic` is shared out: weights at the start, and threads.

use tamis::learn::deep::dynamic::{self, Growth, Moments, Params};

use crate::data::augment::Augment;
use crate::operator::backprop::{across_bytes, changed_bytes};
use crate::operator::lanes::LANES;
use crate::train::checkpoint::{self, Kind};
use crate::{Error, Result};

/// Blocks of the longest that a panel of gradients has room for at least: it lies where the gradient does.
const PANEL_BLOCKS: usize = 8;

/// Bytes of the gradient by a weight.
const GRADIENT: usize = size_of::<f32>();

/// Bytes of a weight: index and value, gradient and moments, and its block by the other end.
const fn weight_bytes(moments: Moments) -> f64 {
    match moments {
        Moments::F32 => 22.0,
        Moments::Bf16 => 18.0,
    }
}

/// The sizes that memory depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes<'a> {
    pub(crate) inputs: usize,
    pub(crate) hidden: &'a [usize],
    pub(crate) outputs: usize,
    /// Weights and biases of the dense network.
    pub(crate) dense: usize,
    pub(crate) params: &'a Params,
    pub(crate) augment: Option<&'a Augment>,
    pub(crate) has_checkpoints: bool,
}

/// What there is memory for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    /// Weights at the start, in units of s.
    pub(crate) factor: f32,
    pub(crate) threads: usize,
}

impl Sizes<'_> {
    /// Each layer but the last has one more, for biases.
    fn activations(&self) -> usize {
        self.inputs + 1 + self.hidden.iter().sum::<usize>() + self.hidden.len()
    }

    /// Numbers of the longest block of a layer.
    fn longest(&self) -> usize {
        let widths = self.hidden.iter().copied();
        widths.chain([self.inputs, self.outputs]).max().unwrap_or(0) + 1
    }

    /// Weights that the stack has room for: one more in each layer but the last hands on the constant.
    pub(crate) fn room(&self, factor: f32) -> usize {
        Params { factor, ..*self.params }.most(self.dense) + self.hidden.len()
    }

    /// Words beside the stack.
    pub(crate) fn words(&self, room: usize) -> usize {
        let &Self { params, hidden, outputs, .. } = self;
        let of_run =
            dynamic::words(params.moments, room, self.activations(), outputs, self.panel());
        of_run + 2 * params.best_room(hidden.len() + 1)
    }

    /// The smallest panel; where nothing is grown a block is enough.
    fn panel(&self) -> usize {
        let blocks = if self.params.growth == Growth::None { 1 } else { PANEL_BLOCKS };
        blocks * self.longest()
    }

    /// Bytes of the checkpoints that are held with so much room.
    pub(crate) fn checkpoint_bytes(&self, room: usize) -> usize {
        let best = self.params.best_room(self.hidden.len() + 1);
        let form = dynamic::Checkpoint::form(room, best);
        checkpoint::bytes(self.has_checkpoints, Kind::Dynamic, &form)
    }

    /// What memory without a limit is for.
    pub(crate) fn all(&self) -> Share {
        Share { factor: self.params.factor, threads: rayon::current_num_threads() }
    }

    /// What `ram` bytes are for; `asked` is the factor that was asked for, if one was.
    ///
    /// # Errors
    /// They are too few for s weights and the smallest panel, or for that factor.
    pub(crate) fn within(&self, ram: u64, asked: Option<f32>) -> Result<Share> {
        let &Self { inputs, hidden, outputs, dense, params, augment, .. } = self;
        let (nnz, layers, longest) = (params.nnz, hidden.len(), self.longest());
        let neurons = self.activations() + outputs;
        let [fields, changed] =
            augment.map_or([0, 0], |augment| [augment.bytes(), changed_bytes(augment, inputs)]);
        let own = LANES * (4 * neurons + size_of::<usize>()) + 4 * longest;
        let strip = own + changed + if params.grows() { across_bytes(longest) } else { 0 };
        let checkpoints = self.checkpoint_bytes(0);
        let of_checkpoints = self.checkpoint_bytes(nnz) - checkpoints;
        let weight = weight_bytes(params.moments) + of_checkpoints as f64 / nnz as f64;
        // Where the weights of each neuron begin, by both of their ends, and which inputs have weights.
        let starts = 8 * (neurons + layers + 1) + inputs.div_ceil(8);
        // With no weight; those that the panel is large enough for need no room for their gradients.
        let none = (4 * self.words(0) + strip + starts + fields + checkpoints) as f64;
        let bytes =
            |room: usize| none + weight * room as f64 - (GRADIENT * room.min(self.panel())) as f64;
        let least = bytes(nnz + layers);
        // As many weights at the start as there is memory for.
        let left = ram as f64 - least;
        let spare = (GRADIENT * self.panel().saturating_sub(nnz + layers)) as f64;
        let more = (left / (weight - GRADIENT as f64)).min((left + spare) / weight);
        let factor = 1.0 + more / nnz as f64;
        if factor < 1.0 {
            return Err(Error::new("the memory budget is too small for these sizes")
                .expected(format_args!("at least {} bytes needed", least.ceil()))
                .got(format_args!("{ram} bytes"))
                .help("raise --ram, choose fewer nonzeros or neurons, or pass --moments bf16"));
        }
        let all = dense as f64 / nnz as f64;
        let is_more = |asked: &f32| f64::from(*asked).min(all) > factor;
        if let Some(asked) = asked.filter(is_more) {
            return Err(Error::new("the memory budget is too small for --start-factor")
                .expected(format_args!("at most {factor:.2} in {ram} bytes"))
                .got(asked)
                .help("raise --ram, or leave --start-factor out, which --ram then chooses"));
        }
        let factor = params.factor.min(factor as f32);
        // Other threads have what that leaves, so that no result depends on them.
        let room = self.room(factor);
        let left = ram as f64 - bytes(room);
        let others = left.max(0.0) as usize / strip;
        let threads = rayon::current_num_threads().min(1 + others);
        Ok(Share { factor, threads })
    }
}
