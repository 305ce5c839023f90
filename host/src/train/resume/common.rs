//! Terms that all recipes have.

use crate::data::{Problem, Task, Values};
use crate::train::check::Sizes;
use crate::train::checkpoint::terms::{CRC_64, Term};
use crate::train::plan::Plan;

const TASKS: [&str; 3] = [Task::Regression.name(), Task::Binary.name(), Task::Multiclass.name()];

/// The terms of a run: sizes, its own ones, memory; checksums come last, since all else says more.
pub(super) fn terms(
    problem: &Problem,
    sizes: Sizes,
    seed: u64,
    own: impl IntoIterator<Item = Term>,
    plan: &Plan,
) -> Vec<Term> {
    let Sizes { dims, outputs } = sizes;
    let samples = match &problem.data.values {
        Values::F32(values) => CRC_64.checksum(bytemuck::cast_slice(values)),
        Values::U8(values) => !CRC_64.checksum(values),
    };
    let labels = CRC_64.checksum(bytemuck::cast_slice(&problem.labels));
    let sizes = [
        Term::count("rows", dims.samples),
        Term::count("columns", dims.inputs),
        Term::count(
            if problem.task == Task::Multiclass { "classes" } else { "columns of labels" },
            outputs,
        ),
        Term::name("--task", &TASKS, problem.task.name()),
        Term::count("--hidden", dims.hidden),
        Term::count("--nnz", dims.nnz),
        Term::seed(seed),
    ];
    let last = [
        Term::count("neurons of a panel (--panel or --ram)", plan.layout.panel),
        Term::count(
            "rows of a tile, groups, strips, held gates and Gram matrix (--ram)",
            (plan.layout.tile * 256 + plan.layout.groups) * 8
                + usize::from(plan.layout.strips) * 4
                + usize::from(plan.layout.hold) * 2
                + usize::from(plan.layout.gram > 0),
        ),
        Term::checksum("checksum of the samples", samples),
        Term::checksum("checksum of the labels", labels),
    ];
    sizes.into_iter().chain(own).chain(last).collect()
}
