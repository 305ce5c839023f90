//! Checkpoints of a search: the current network, the best while searching, and the best of at most s weights.

use tamis::budget::Recovery;
use tamis::lm::{Checkpoint, Params, Progress};

use super::super::recover::{Settled, signs_name};
use super::super::{Problem, RecoverOptions};
use super::terms::{COMMON, Term, terms};
use super::{Form, Keeps, Kept, Offers, Recipe, Record, damaged};
use crate::Result;

const SIGNS: [&str; 3] = ["positive", "balanced", "free"];
/// Terms of its own.
const OWN: usize = 16;

impl Keeps for RecoverOptions {
    fn form(&self, problem: &Problem) -> Result<Form> {
        let Settled { dims, outputs, options, plan, .. } = Settled::new(problem, self)?;
        let Params {
            seed,
            signs,
            rows,
            exact,
            random_births,
            kicks,
            steps,
            final_steps,
            polish,
            patience,
            validation,
            validation_patience,
            spare,
            products,
            births,
            tidy,
        } = options.params;
        let count = |name, count: u32| Term::count(name, count as usize);
        let own: [Term; OWN] = [
            Term::name("--signs", &SIGNS, signs_name(signs)),
            Term::count("rows held out (--validation)", validation),
            count("--patience", validation_patience),
            Term::count("--search-rows", rows),
            count("--kicks", kicks),
            count("--idle-kicks", patience),
            count("steps", steps),
            Term::float("loss of an exact fit", exact),
            count("random births", random_births),
            count("last steps on all rows", final_steps),
            count("polishing steps", polish),
            Term::count("spare weights", spare as usize),
            count("products of a step", products),
            Term::count("births", usize::from(births)),
            Term::count("tidying", usize::from(tidy)),
            Term::count("neurons of the second layer (--hidden)", options.second.unwrap_or(0)),
        ];
        let budget = plan.budget;
        Ok(Form {
            recipe: Recipe::Lm { hidden: dims.hidden, linear: signs.linear(0) },
            terms: terms(problem, (dims, outputs, seed), own, &plan.plan),
            body: Checkpoint::form(&budget, plan.slots),
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
    pub(in crate::run) fn lm(&self) -> Result<Checkpoint<'_>> {
        self.check_recipe("lm")?;
        Checkpoint::read(&self.form, &self.words).map_err(|error| damaged().source(error.to_string()))
    }

    /// What the best network of s weights is in addition.
    pub(super) fn check_lm(&self, hidden: usize, linear: bool) -> Result<()> {
        let found = self.lm()?.found;
        let live = found.w().blocks().count();
        if live > hidden || (linear && !found.w().block(0).is_empty()) {
            return Err(damaged()
                .expected(format_args!("a result of at most {hidden} neurons"))
                .got(format_args!("{live}, or a linear term")));
        }
        Ok(())
    }
}

/// The longest checkpoint of a search with this budget, in bytes.
pub(in crate::run) fn most_bytes(budget: &Recovery) -> usize {
    super::most_bytes(&Checkpoint::form(budget, 0), COMMON + OWN)
}
