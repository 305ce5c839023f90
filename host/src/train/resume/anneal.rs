//! The terms of a run of recipe `anneal`.

use tamis::learn::anneal::{Checkpoint, Params};

use super::common::terms;
use crate::data::Problem;
use crate::train::anneal::AnnealSetup;
use crate::train::checkpoint::terms::{MUST_KEEP, Term};
use crate::train::checkpoint::{ANNEAL_TERMS, Form, Kind};

/// What the checkpoints of a run look like.
pub(crate) fn form(problem: &Problem, setup: &AnnealSetup<'_>) -> Form {
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
    } = setup.params;
    let count = |name, count: u32| Term::count(name, count as usize);
    let [kept, which] = Term::weights(MUST_KEEP, must_keep);
    let own: [Term; ANNEAL_TERMS] = [
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
    Form {
        kind: Kind::Anneal,
        terms: terms(problem, setup.sizes, seed, own, &setup.plan),
        body: Checkpoint::form(&setup.params.budget(setup.sizes.dims, setup.sizes.outputs, 1, 0)),
    }
}
