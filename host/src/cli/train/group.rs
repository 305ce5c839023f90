//! `tamis train --recipe group`: a dense network from nothing, pruned by groups and then by weights.

use serde::Serialize;

use super::super::common::Common;
use super::super::console::refuse;
use super::super::interrupt;
use super::super::progress::Bar;
use super::super::prune::summary;
use super::super::saved::{Object, save};
use super::args::Train;
use super::data::{DataCounts, DataFacts};
use crate::Result;
use crate::base::file::{self, Kind};
use crate::data::Problem;
use crate::model::ModelFile;
use crate::prune::{DenseStart, PruneOptions, PruneReport, PruneRows, group};
use crate::train::Scale;
use crate::train::imp::check_test;

/// Epochs of the dense network.
const EPOCHS: u32 = 20;
/// The share of the rows that are scored where no others are given.
const VALIDATION: f64 = 0.1;

/// The object of `--json`.
#[derive(Serialize)]
struct Grouped<'a> {
    recipe: &'static str,
    #[serde(flatten)]
    object: &'a Object<'a, PruneReport>,
    #[serde(flatten)]
    data: &'a DataCounts,
}

pub(super) fn run(
    train: &Train,
    early: Option<(Problem, DataFacts)>,
    common: &Common,
) -> Result<()> {
    let flags =
        [(!train.must_keep.is_empty(), "--must-keep"), (train.scale != Scale::Auto, "--scale")];
    refuse(&flags, "recipe group maps columns by itself and prunes all weights", "neither", "")?;
    let read = [&train.imp.test_data, &train.imp.test_labels];
    let read = read.into_iter().filter_map(|path| path.as_deref());
    file::check(&train.output, Kind::MODEL, train.source.inputs().chain(read))?;
    let (problem, mut data) = early.map_or_else(|| train.load(), Ok)?;
    let test = train.test(data.names(), problem.task)?;
    let (problem, test, scored_on) = match test {
        Some(test) => {
            check_test(&problem, &test)?;
            (problem, test, "test")
        }
        None => {
            let (problem, test) = problem.split(1.0 - VALIDATION, common.seed)?;
            (problem, test, "validation")
        }
    };
    let defaults = PruneOptions::default();
    let options = PruneOptions {
        nnz: Some(train.budget()),
        batch: train.passes.batch.unwrap_or(defaults.batch),
        seed: common.seed,
        threads: common.threads(),
        ..defaults
    };
    let epochs = train.passes.epochs.unwrap_or(EPOCHS);
    let dense = DenseStart { hidden: train.hidden.clone(), epochs };
    let rows = PruneRows::Labelled { train: problem, test, scored_on };
    let bar = Bar::new(common);
    let outcome = interrupt::unsaved(|| {
        group(&dense, rows, &options, interrupt::stop(), |progress| {
            bar.epoch(progress);
        })
    });
    bar.clear();
    let mut outcome = outcome?;
    let model = data.name(&ModelFile::from_bytes(&outcome.model)?)?;
    save(&train.output, model.bytes())?;
    outcome.report.notes.splice(0..0, std::mem::take(&mut data.notes));
    let object = Object::new(&train.output, model.bytes(), &outcome.report);
    let whole = Grouped { recipe: "group", object: &object, data: &data.counts };
    common.result(&whole, || data.text() + &summary(&object))
}
