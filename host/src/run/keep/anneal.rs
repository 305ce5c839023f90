//! Checkpoints of an annealed run: the support, what Adam keeps on it, and the best iterate.

use tamis::anneal::{Checkpoint, Params, Progress};
use tamis::budget::Annealing;

use super::super::anneal::Settled;
use super::super::{AnnealOptions, Problem};
use super::terms::{COMMON, MUST_KEEP, Term, terms};
use super::{Form, Keeps, Kept, Offers, Recipe, Record, damaged};
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
            body: Checkpoint::form(&settled.params.budget(dims, outputs, 1, 0)),
        })
    }
}

impl Offers for Progress<'_> {
    fn offer(&self, record: &mut Record<'_>) {
        if let Some(checkpoint) = &self.checkpoint {
            record.take(checkpoint);
        }
    }
}

impl Kept {
    /// As the core takes it.
    pub(in crate::run) fn anneal(&self) -> Result<Checkpoint<'_>> {
        self.check_recipe("anneal")?;
        Checkpoint::read(&self.form, &self.words).map_err(|error| damaged().source(error.to_string()))
    }
}

/// The longest checkpoint of a run with this budget, in bytes.
pub(in crate::run) fn most_bytes(budget: &Annealing) -> usize {
    super::most_bytes(&Checkpoint::form(budget), COMMON + OWN)
}
