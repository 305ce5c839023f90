//! The terms of a search.

use tamis::learn::lm::{Checkpoint, Params};

use super::common::terms;
use crate::data::Problem;
use crate::train::check::signs_name;
use crate::train::checkpoint::terms::Term;
use crate::train::checkpoint::{Form, Kind, LM_TERMS};
use crate::train::search::SearchSetup;

const SIGNS: [&str; 3] = ["positive", "balanced", "free"];

/// What the checkpoints of a search look like.
pub(crate) fn form(problem: &Problem, setup: &SearchSetup<'_>) -> Form {
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
    } = setup.params;
    let count = |name, count: u32| Term::count(name, count as usize);
    let own: [Term; LM_TERMS] = [
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
        // Once settings, which every search now has on; files hold them.
        Term::count("births", 1),
        Term::count("tidying", 1),
        Term::count("neurons of the second layer (--hidden)", setup.second.unwrap_or(0)),
    ];
    let plan = &setup.plan;
    Form {
        kind: Kind::Lm { hidden: setup.sizes.dims.hidden, linear: signs.linear(0) },
        terms: terms(problem, setup.sizes, seed, own, &plan.plan),
        body: Checkpoint::form(&plan.budget, plan.slots, signs),
    }
}
