//! What a run is about: two runs of one recipe with the same terms have the same bits.

use tamis::dims::Dims;

use super::super::{Plan, Problem, Task};
use crate::data::Values;
use crate::{Error, Result};

use super::CRC_64;

/// A size, a setting or a checksum, in the words of the command line where it has some.
#[derive(Debug, Clone, Copy)]
pub(super) struct Term {
    name: &'static str,
    value: u64,
    shown: Shown,
}

/// How people know a value.
#[derive(Debug, Clone, Copy)]
enum Shown {
    Count,
    /// The bits of a float.
    Float,
    Checksum,
    /// A place in a list.
    Name(&'static [&'static str]),
}

impl Term {
    pub(super) fn count(name: &'static str, value: usize) -> Self {
        Self { name, value: value as u64, shown: Shown::Count }
    }

    pub(super) fn float(name: &'static str, value: f32) -> Self {
        Self { name, value: value.to_bits().into(), shown: Shown::Float }
    }

    pub(super) fn name(name: &'static str, all: &'static [&'static str], one: &str) -> Self {
        let value = all.iter().position(|other| *other == one).map_or(u64::MAX, |at| at as u64);
        Self { name, value, shown: Shown::Name(all) }
    }

    /// A list of weights: how many, and which.
    pub(super) fn weights(names: [&'static str; 2], list: &[u32]) -> [Self; 2] {
        let [count, which] = names;
        [Self::count(count, list.len()), Self::checksum(which, CRC_64.checksum(bytemuck::cast_slice(list)))]
    }

    const fn checksum(name: &'static str, value: u64) -> Self {
        Self { name, value, shown: Shown::Checksum }
    }

    /// As it is stored.
    pub(super) const fn to_bytes(self) -> [u8; 8] {
        self.value.to_le_bytes()
    }

    fn show(&self, value: u64) -> String {
        match self.shown {
            Shown::Count => value.to_string(),
            Shown::Float => f32::from_bits(value as u32).to_string(),
            Shown::Checksum => format!("{value:016x}"),
            Shown::Name(all) => match usize::try_from(value).ok().and_then(|value| all.get(value)) {
                Some(name) => (*name).to_owned(),
                None => value.to_string(),
            },
        }
    }
}

const TASKS: [&str; 3] = [Task::Regression.name(), Task::Binary.name(), Task::Multiclass.name()];

/// Names of the terms of weights that must be kept.
pub(super) const MUST_KEEP: [&str; 2] = ["weights of --must-keep", "checksum of the weights of --must-keep"];

/// Terms that all recipes have.
pub(super) const COMMON: usize = 11;

/// The terms of a run: sizes, its own ones, memory; checksums come last, since all else says more.
pub(super) fn terms(
    problem: &Problem,
    (dims, outputs, seed): (Dims, usize, u64),
    own: impl IntoIterator<Item = Term>,
    plan: &Plan,
) -> Vec<Term> {
    let samples = match &problem.data.values {
        Values::F32(values) => CRC_64.checksum(bytemuck::cast_slice(values)),
        Values::U8(values) => !CRC_64.checksum(values),
    };
    let labels = CRC_64.checksum(bytemuck::cast_slice(&problem.labels));
    let sizes = [
        Term::count("rows", dims.samples),
        Term::count("columns", dims.inputs),
        Term::count(if problem.task == Task::Multiclass { "classes" } else { "columns of labels" }, outputs),
        Term::name("--task", &TASKS, problem.task.name()),
        Term::count("--hidden", dims.hidden),
        Term::count("--nnz", dims.nnz),
        Term { name: "--seed", value: seed, shown: Shown::Count },
    ];
    let last = [
        Term::count("neurons of a panel (--panel or --ram)", plan.panel),
        Term::count(
            "rows of a tile, groups, strips, held gates and Gram matrix (--ram)",
            (plan.tile * 256 + plan.groups) * 8
                + usize::from(plan.strips) * 4
                + usize::from(plan.hold) * 2
                + usize::from(plan.gram > 0),
        ),
        Term::checksum("checksum of the samples", samples),
        Term::checksum("checksum of the labels", labels),
    ];
    sizes.into_iter().chain(own).chain(last).collect()
}

/// Checks that the terms in `bytes` are these.
pub(super) fn check(terms: &[Term], bytes: &[u8]) -> Result<()> {
    let stored = bytes.chunks_exact(8).map(|term| term.try_into().map_or(0, u64::from_le_bytes));
    for (own, stored) in terms.iter().zip(stored) {
        if own.value != stored {
            return Err(Error::new("the checkpoint is of a run on other data or with other settings")
                .expected(format_args!("{}: {}, as the run began", own.name, own.show(stored)))
                .got(own.show(own.value))
                .help("resume with the same data and settings, or name another file to start anew"));
        }
    }
    Ok(())
}
