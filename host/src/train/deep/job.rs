//! Several hidden layers to train: settings that were resolved, and sizes that were checked.

use tamis::learn::deep::{self, shrink, tune};

use crate::base::memory::room_for;
use crate::data::{Problem, Task};
use crate::train::budget::Memory;
use crate::train::options::{LayersOptions, Options, Recipe};
use crate::{Error, Result};

pub(super) struct DeepJob<'a> {
    pub(super) options: &'a Options,
    pub(super) hidden: &'a [usize],
    pub(super) recipe: Recipe,
    pub(super) shrink: shrink::Params,
    pub(super) tune: tune::Params,
    pub(super) sizes: DeepSizes,
}

impl<'a> DeepJob<'a> {
    pub(super) fn new(
        problem: &Problem,
        options: &'a Options,
        recipe: &Recipe,
        hidden: &'a [usize],
        layers: &LayersOptions,
    ) -> Result<Self> {
        let seed = options.seed;
        let grow = match (options.memory, recipe) {
            _ if !layers.grow.is_empty() => &layers.grow,
            (Memory::Ram(_), _) => &vec![1.0],
            (_, Recipe::Anneal(_)) => &LayersOptions::GROWTH[..1].to_vec(),
            _ => &LayersOptions::GROWTH.to_vec(),
        };
        let layers = &LayersOptions { grow: grow.clone(), ..layers.clone() };
        let sizes = DeepSizes::new(problem, options, recipe, hidden, layers)?;
        let mut recipe = recipe.clone();
        if let Recipe::Lm(lm) = &mut recipe {
            lm.params.perturbations = lm.layer_kicks;
        }
        let tune = tune::Params { seed, ..layers.tune };
        let shrink =
            shrink::Params { tune: tune::Params { seed, ..layers.shrink.tune }, ..layers.shrink };
        Ok(Self { options, hidden, recipe, shrink, tune, sizes })
    }
}

pub(super) struct DeepSizes {
    /// c, where weights lead to the outputs; 0 where they have signs.
    pub(super) outputs: usize,
    pub(super) nnz: usize,
    /// Nonzeros of every attempt before all layers are brought down to `nnz` together.
    pub(super) grown: Vec<usize>,
    /// Weights that each hidden layer has room for, those to the outputs counted with the last.
    pub(super) rooms: Vec<usize>,
}

impl DeepSizes {
    fn new(
        problem: &Problem,
        options: &Options,
        recipe: &Recipe,
        hidden: &[usize],
        layers: &LayersOptions,
    ) -> Result<Self> {
        if !(1..deep::MAX_LAYERS).contains(&hidden.len()) {
            return Err(Error::new("the number of hidden layers is out of bounds")
                .expected(format_args!("1 to {}", deep::MAX_LAYERS - 1))
                .got(hidden.len())
                .help("pass fewer layers to --hidden"));
        }
        if let (Task::Binary, Recipe::Anneal(_)) = (problem.task, recipe) {
            return Err(Error::new(
                "recipe anneal tells two classes apart with one hidden layer only",
            )
            .expected("--recipe lm or paper, or --task multiclass")
            .got(format_args!("--recipe anneal --task binary and --hidden {hidden:?}"))
            .help("leave --recipe out"));
        }
        let outputs = match (problem.task, problem.outputs()) {
            (Task::Multiclass, _) => problem.classes().unwrap_or(0),
            (_, 1) => 0,
            (_, outputs) => outputs,
        };
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
        let grown = match recipe {
            Recipe::Lm(_) | Recipe::Anneal(_) if layers.tune.epochs > 0 => {
                let mut grown = Vec::new();
                for grow in &layers.grow {
                    let count = ((nnz as f64 * grow) as usize).clamp(nnz, all);
                    if !grown.contains(&count) {
                        grown.push(count);
                    }
                }
                grown
            }
            _ => vec![nnz],
        };
        let sizes = Self { outputs, nnz, grown, rooms };
        let memory = options.memory;
        let copies = if let Recipe::Paper(_) = recipe { 0 } else { problem.bytes() };
        sizes.check_joint(problem.data.cols, hidden, layers, memory)?;
        if !matches!(memory, Memory::Least | Memory::Ram(_)) {
            let widest = hidden.iter().rev().skip(1).copied().max().unwrap_or(0) as u64;
            let mapped = (problem.data.rows as u64).saturating_mul(widest).saturating_mul(4);
            let help = "take fewer neurons or rows, or set --ram";
            room_for("what the layers make of the rows", mapped.max(copies as u64), help)?;
        }
        Ok(sizes)
    }

    /// The most nonzeros of an attempt.
    fn most(&self) -> usize {
        self.grown.iter().copied().max().unwrap_or(self.nnz)
    }

    /// Bytes of the layers that are done.
    pub(super) fn layers_bytes(&self) -> usize {
        self.most().saturating_mul(8)
    }

    /// Checks that a budget has room for the joint fit.
    fn check_joint(
        &self,
        inputs: usize,
        hidden: &[usize],
        layers: &LayersOptions,
        memory: Memory,
    ) -> Result<()> {
        let Memory::Ram(ram) = memory else { return Ok(()) };
        if layers.tune.epochs == 0 {
            return Ok(());
        }
        let activations = hidden.iter().fold(inputs, |sum, &m| sum.saturating_add(m));
        let words = tune::words(self.most(), activations, self.outputs.max(1));
        let needed = words.saturating_mul(4).saturating_add(self.layers_bytes()) as u64;
        if needed > ram {
            return Err(Error::new("the memory budget is too small to fit all layers together")
                .expected(format_args!("at least {needed} bytes"))
                .got(format_args!("{ram} bytes"))
                .help("raise --ram, or pass --tune-epochs 0"));
        }
        Ok(())
    }
}
