//! Checkpoints of an annealed run: the support, what Adam keeps on it, and the best iterate.

use tamis::anneal::{Checkpoint, Params, Progress, State};
use tamis::budget::Annealing;

use super::super::anneal::Settled;
use super::super::{AnnealOptions, Problem};
use super::terms::{COMMON, MUST_KEEP, Term, terms};
use super::{Form, Keeps, Kept, Offers, Recipe, Record, Sizes, damaged};
use crate::Result;

/// Terms of its own.
const OWN: usize = 16;

impl Keeps for AnnealOptions<'_> {
    fn form(&self, problem: &Problem) -> Result<Form> {
        let settled = Settled::new(problem, self)?;
        let (dims, outputs) = (settled.dims, settled.outputs);
        let Params {
            epochs,
            batch,
            validation,
            patience,
            start_factor,
            rate,
            warmup,
            update_every,
            drop,
            shrink,
            settle,
            growth_rows,
            floor,
            input_scale,
            seed,
            must_keep,
        } = settled.params;
        let count = |name, count: u32| Term::count(name, count as usize);
        let [kept, which] = Term::weights(MUST_KEEP, must_keep);
        let own: [Term; OWN] = [
            count("--epochs", epochs),
            Term::count("rows of a batch (--batch)", batch),
            Term::count("rows held out (--validation)", validation),
            count("--patience", patience),
            Term::float("first support (--start-factor or --ram)", start_factor),
            Term::float("--rate", rate),
            count("steps of warming up", warmup),
            count("steps between changes of the support", update_every),
            Term::float("--drop", drop),
            Term::float("part of the run that shrinks the support", shrink),
            Term::float("part of the run that settles the support", settle),
            Term::count("rows that growth looks at", growth_rows),
            Term::float("floor of the column scales", floor),
            Term::float("scale of the inputs", input_scale),
            kept,
            which,
        ];
        Ok(Form {
            recipe: Recipe::Anneal,
            terms: terms(problem, (dims, outputs, seed), own, &settled.plan),
            sizes: sizes(&settled.params.budget(dims, outputs, 1, 0)),
        })
    }
}

impl Offers for Progress<'_> {
    fn offer(&self, record: &mut Record<'_>) {
        if let Some(Checkpoint { state, net, mean, square, best }) = self.checkpoint {
            record.write(&state.to_words(), &[net, best], &[mean, square]);
        }
    }
}

impl Kept {
    /// As the core takes it.
    pub(in crate::run) fn anneal(&self) -> Result<Checkpoint<'_>> {
        self.check_recipe("anneal")?;
        let state = State::from_words(&self.words()?).map_err(|error| damaged().source(error.to_string()))?;
        let (mean, square) = (self.floats(0), self.floats(1));
        Ok(Checkpoint { state, net: self.net(0)?, mean, square, best: self.net(1)? })
    }
}

/// The longest checkpoint of a run with this budget, in bytes.
pub(in crate::run) fn most_bytes(budget: &Annealing) -> usize {
    sizes(budget).most_bytes(COMMON + OWN)
}

fn sizes(budget: &Annealing) -> Sizes {
    let best = if budget.validated { budget.dims.nnz } else { 0 };
    Sizes {
        words: State::WORDS,
        inputs: budget.dims.inputs,
        outputs: budget.outputs,
        slots: budget.dims.hidden,
        rooms: vec![budget.start, best],
        floats: vec![budget.start, budget.start],
    }
}
