//! Several hidden layers to train: settings that were resolved, and sizes that were checked.

use tamis::learn::deep::{self, shrink, tune};

use crate::base::memory::room_for;
use crate::data::{Problem, Task};
use crate::train::budget::Memory;
use crate::train::check::weighted_outputs;
use crate::train::options::{LayersOptions, Options, Recipe};
use crate::{Error, Result};

pub(super) struct DeepJob<'a> {
    pub(super) options: &'a Options,
    pub(super) hidden: &'a [usize],
    pub(super) recipe: Recipe,
    pub(super) shrink: shrink::Params,
    pub(super) tune: tune::Params,
    /// c, where weights lead to the outputs; 0 where they have signs.
    pub(super) outputs: usize,
    pub(super) nnz: usize,
    /// Nonzeros of every attempt before all layers are brought down to `nnz` together.
    pub(super) grown: Vec<usize>,
    /// Whether all layers have the same share of them.
    pub(super) even: bool,
    /// Weights that each hidden layer has room for, those to the outputs counted with the last.
    pub(super) rooms: Vec<usize>,
}

impl<'a> DeepJob<'a> {
    pub(super) fn new(
        problem: &Problem,
        options: &'a Options,
        mut recipe: Recipe,
        hidden: &'a [usize],
    ) -> Result<Self> {
        let (seed, memory) = (options.seed, options.memory);
        let layers = options.layers.clone().unwrap_or_default();
        let grow = match (memory, &recipe) {
            _ if !layers.grow.is_empty() => &layers.grow[..],
            (Memory::Ram(_), _) => &[1.0],
            (_, Recipe::Anneal(_)) => &LayersOptions::GROWTH[..1],
            _ => &LayersOptions::GROWTH,
        };
        if !(1..deep::MAX_LAYERS).contains(&hidden.len()) {
            return Err(Error::new("the number of hidden layers is out of bounds")
                .expected(format_args!("1 to {}", deep::MAX_LAYERS - 1))
                .got(hidden.len())
                .help("pass fewer layers to --hidden"));
        }
        if let (Task::Binary, Recipe::Anneal(_)) = (problem.task, &recipe) {
            return Err(Error::new(
                "recipe anneal tells two classes apart with one hidden layer only",
            )
            .expected("--recipe lm or paper, or --task multiclass")
            .got(format_args!("--recipe anneal --task binary and --hidden {hidden:?}"))
            .help("leave --recipe out"));
        }
        let outputs = weighted_outputs(problem);
        let widths = core::iter::once(problem.data.cols).chain(hidden.iter().copied());
        let mut rooms: Vec<usize> = widths.zip(hidden).map(|(d, &m)| d.saturating_mul(m)).collect();
        if let (Some(last), Some(&m)) = (rooms.last_mut(), hidden.last()) {
            *last = last.saturating_add(outputs.saturating_mul(m));
        }
        let all = rooms.iter().fold(0_usize, |sum, room| sum.saturating_add(*room));
        let least = hidden.len() * if outputs > 0 { 2 } else { 1 };
        let nnz = options.budget.count(all, least)?;
        if hidden.contains(&0) || !(least..=all).contains(&nnz) {
            return Err(Error::new("the sizes of the network do not fit")
                .expected(format_args!(
                    "layers of at least one neuron, and --nnz from {least} to {all}"
                ))
                .got(format_args!("--hidden {hidden:?} and {nnz} nonzeros"))
                .help("each hidden layer needs a weight, and with several outputs two"));
        }
        let mut grown = vec![nnz];
        if matches!(recipe, Recipe::Lm(_) | Recipe::Anneal(_)) && layers.tune.epochs > 0 {
            grown.clear();
            for grow in grow {
                let count = ((nnz as f64 * grow) as usize).clamp(nnz, all);
                if !grown.contains(&count) {
                    grown.push(count);
                }
            }
        }
        if let Recipe::Lm(lm) = &mut recipe {
            lm.params.perturbations = lm.layer_kicks;
        }
        let tune = tune::Params { seed, ..layers.tune };
        let shrink =
            shrink::Params { tune: tune::Params { seed, ..layers.shrink.tune }, ..layers.shrink };
        let even = layers.even;
        let job = Self { options, hidden, recipe, shrink, tune, outputs, nnz, grown, even, rooms };
        job.check_room(problem)?;
        Ok(job)
    }

    /// Bytes of the layers that are done, in the largest attempt.
    pub(super) fn layers_bytes(&self) -> usize {
        self.most().saturating_mul(8)
    }

    fn most(&self) -> usize {
        self.grown.iter().copied().max().unwrap_or(self.nnz)
    }

    /// Checks that there is room for the joint fit, and for what layers are trained on.
    fn check_room(&self, problem: &Problem) -> Result<()> {
        let inputs = problem.data.cols;
        match self.options.memory {
            Memory::Ram(ram) if self.tune.epochs > 0 => {
                let activations = self.hidden.iter().fold(inputs, |sum, &m| sum.saturating_add(m));
                let words = tune::words(self.most(), activations, self.outputs.max(1));
                let needed = words.saturating_mul(4).saturating_add(self.layers_bytes()) as u64;
                if needed > ram {
                    return Err(Error::new(
                        "the memory budget is too small to fit all layers together",
                    )
                    .expected(format_args!("at least {needed} bytes"))
                    .got(format_args!("{ram} bytes"))
                    .help("raise --ram, or pass --tune-epochs 0"));
                }
                Ok(())
            }
            Memory::Ram(_) | Memory::Least => Ok(()),
            Memory::Auto | Memory::Panel(_) => {
                let is_lent = matches!(self.recipe, Recipe::Paper(_));
                let copies = if is_lent { 0 } else { problem.bytes() as u64 };
                let widest = self.hidden.iter().rev().skip(1).copied().max().unwrap_or(0) as u64;
                let mapped = (problem.data.rows as u64).saturating_mul(widest).saturating_mul(4);
                let help = "take fewer neurons or rows, or set --ram";
                room_for("what the layers make of the rows", mapped.max(copies), help)
            }
        }
    }
}
