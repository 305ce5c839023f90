//! `tamis train --nnz S1,S2…`: a model for each size, and the size that cross-validation picks.

use std::io::Write as _;
use std::path::Path;

use serde::Serialize;

use super::super::common::Common;
use super::super::console::{count, decibel, facts, percent, refuse};
use super::super::interrupt;
use super::super::parse::RecipeName;
use super::super::progress::Watched;
use super::args::Train;
use super::data::{DataFacts, all_taken};
use super::notes::notes;
use super::summary::live;
use crate::base::file::{self, Kind};
use crate::data::{Problem, Task};
use crate::lab::plot::{self, Line, Measure};
use crate::train::{Budget, PathOptions, PathPoint, PathReport, Recipe, Scale, train_path};
use crate::{Error, Result};

/// The object of `--json`, and of `path.json`.
#[derive(Serialize)]
struct Object<'a> {
    folder: String,
    models: Vec<String>,
    chosen: Option<&'static str>,
    #[serde(flatten)]
    report: &'a PathReport,
    #[serde(flatten)]
    data: &'a DataFacts,
}

const CHOSEN: &str = "chosen.tamis";

pub(super) fn run(
    train: &Train,
    sizes: &PathOptions,
    early: Option<(Problem, DataFacts)>,
    recipe: RecipeName,
    task: Task,
    common: &Common,
) -> Result<()> {
    check(train)?;
    check_folder(&train.output)?;
    let mut options = train.options(recipe, task, common)?;
    let (problem, mut data) = early.map_or_else(|| train.load(), Ok)?;
    train.complete(&mut options.recipe, &problem, &mut data)?;
    train.choose_device(&problem, &mut options)?;
    let mut sizes = sizes.clone();
    let largest = sizes.sizes.last().copied().unwrap_or(0);
    let mut own = options.clone();
    for &nnz in &sizes.sizes {
        own.budget = Budget::Nonzeros(nnz);
        if let Some(note) = own.starved(&problem) {
            data.note(note);
        }
    }
    own.budget = options.budget;
    // Columns are mapped where the smallest size has room for biases.
    own.scale = Scale::None;
    let mut all = |nnz| {
        // By default networks of recipe `dynamic` have each their own width.
        if let Recipe::Dynamic(_) = own.recipe {
            own.budget = Budget::Nonzeros(nnz);
        }
        own.all_weights(&problem).unwrap_or(nnz)
    };
    // Sizes that do not rise are refused.
    if sizes.sizes.is_sorted_by(|a, b| a < b) {
        sizes.sizes.iter_mut().for_each(|size| *size = all(*size).min(*size));
        sizes.sizes.dedup();
    }
    if let Some(note) = all_taken(largest, all(largest)) {
        data.note(note);
    }
    if matches!(recipe, RecipeName::Paper | RecipeName::PaperSafe) {
        train.check_paper(&problem)?;
    }
    let bar = Watched::new(common);
    let outcome = interrupt::training(|| {
        train_path(&problem, &options, &sizes, interrupt::stop(), |progress| bar.update(progress))
    });
    bar.clear();
    let outcome = outcome?;
    let report = &outcome.report;
    for of in &outcome.reports {
        for note in notes(of) {
            data.note(format!("{} nonzeros: {note}", count(of.requested_nnz)));
        }
    }
    let models = outcome.models.iter().map(|model| data.name(model));
    let models = models.collect::<Result<Vec<_>>>()?;
    let chosen = outcome.chosen().map(|model| data.name(model)).transpose()?;
    let object = Object {
        folder: train.output.display().to_string(),
        models: report.points.iter().map(|point| name(point.requested_nnz)).collect(),
        chosen: report.chosen_nnz.map(|_| CHOSEN),
        report,
        data: &data,
    };
    interrupt::saving(|| {
        file::write_folder(&train.output, |folder| {
            for (name, model) in object.models.iter().zip(&models) {
                folder.write(name, |w| w.write_all(model.bytes()))?;
            }
            if let Some(model) = &chosen {
                folder.write(CHOSEN, |w| w.write_all(model.bytes()))?;
            }
            folder.write("path.svg", |w| w.write_all(picture(report).as_bytes()))?;
            folder.write("path.json", |w| {
                serde_json::to_writer_pretty(&mut *w, &object)?;
                writeln!(w)
            })
        })
    })?;
    common.result(&object, || data.text() + &summary(&object))
}

/// A new or empty folder: a model of another path could be taken for one of these.
fn check_folder(folder: &Path) -> Result<()> {
    if !folder.exists() {
        // Made with the files, so that nothing is left where the training fails.
        return file::check(folder, Kind::MODEL, []);
    }
    file::check_folder(folder)?;
    if std::fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some()) {
        return Err(Error::new("the folder is not empty")
            .at(folder)
            .expected("a new folder, or an empty one")
            .got("files of another run, which could be taken for those of this one")
            .help("choose another name for -o, or remove the folder"));
    }
    Ok(())
}

/// The file of a size.
fn name(nnz: usize) -> String {
    format!("s{nnz}.tamis")
}

fn check(train: &Train) -> Result<()> {
    let (expected, other) = ("settings for several sizes", ", or pass one number to --nnz");
    let flags = [&train.single_flags()[..], &[(train.plan, "--plan")]].concat();
    refuse(&flags, "a setting is for one size", expected, other)?;
    if train.output.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("tamis"))
        && !train.output.is_dir()
    {
        return Err(Error::new("several sizes make several models")
            .at(&train.output)
            .expected("-o with the name of a folder")
            .got("the name of a model")
            .help("pass -o FOLDER, or one number to --nnz"));
    }
    Ok(())
}

fn picture(report: &PathReport) -> String {
    let points = |loss: &dyn Fn(&PathPoint) -> Option<f64>| -> Vec<(f64, f64)> {
        let at = |point: &PathPoint| Some((point.requested_nnz as f64, loss(point)?));
        report.points.iter().filter_map(at).collect()
    };
    let (own, held) = (points(&|point| Some(point.loss)), points(&|point| point.cv_loss));
    let above = points(&|point| Some(point.cv_loss? + point.cv_error?));
    let line = |label: &str, points, colour, dashed| {
        let label = label.to_owned();
        Line { label, points, colour, dashed }
    };
    let has_folds = !held.is_empty();
    let mut all = vec![line("training rows", own, 0, false)];
    if has_folds {
        all.push(line("validation folds", held, 1, false));
        all.push(line("with a standard error", above, 1, true));
    }
    let title = match report.chosen_nnz {
        Some(nnz) => format!("Sizes: {nnz} nonzeros chosen"),
        None => "Sizes".into(),
    };
    let axes = [Measure { name: "s, nonzeros", log: true }, Measure { name: "loss", log: true }];
    plot::lines(&title, axes, &all)
}

fn summary(object: &Object<'_>) -> String {
    let r = object.report;
    let line = |point: &PathPoint| {
        let fit = point.accuracy.map_or_else(|| decibel(point.psnr_db), percent);
        let held = point.cv_loss.zip(point.cv_error).map(|(loss, error)| {
            let right = point.cv_accuracy.map(|share| format!(", {}", percent(share)));
            format!("; cross-validation {loss:.4e} ± {error:.1e}{}", right.unwrap_or_default())
        });
        let rows = |name: &str, accuracy: Option<f64>, loss: Option<f64>| {
            let score =
                accuracy.map(percent).or_else(|| loss.map(|loss| format!("loss {loss:.4e}")));
            score.map_or_else(String::new, |score| format!("; {name} {score}"))
        };
        let split = rows("validation", point.validation_accuracy, point.validation_loss);
        let test = rows("test", point.test_accuracy, point.test_loss);
        let ended = match (point.limit, point.stopped) {
            (Some(limit), _) => format!("; ended by the limit of {limit}"),
            (None, true) => "; ended early".to_owned(),
            _ => String::new(),
        };
        let start = if point.warm { "warm" } else { "cold" };
        let nnz = match (point.nnz, point.requested_nnz) {
            (nnz, asked) if nnz < asked => format!("{} of {}", count(nnz), count(asked)),
            (nnz, _) => count(nnz),
        };
        let live = match point.hidden.layers() {
            [] => String::new(),
            _ => format!(", {} neurons", live(&point.live, &point.hidden)),
        };
        let (loss, seconds) = (point.loss, point.seconds);
        let held = held.unwrap_or_default() + &split + &test + &ended;
        format!("{nnz} nonzeros{live}: loss {loss:.4e}, {fit}{held}; {seconds:.2} s, {start}")
    };
    let names: Vec<String> = r.points.iter().map(|point| name(point.requested_nnz)).collect();
    let mut rows: Vec<(&str, String)> =
        names.iter().zip(&r.points).map(|(name, point)| (name.as_str(), line(point))).collect();
    let chosen = |nnz| format!("{} nonzeros, by {} folds: {CHOSEN}", count(nnz), r.folds);
    rows.extend(r.chosen_nnz.map(|nnz| ("chosen", chosen(nnz))));
    rows.push(("time", format!("{:.2} s, {}", r.seconds, several(r.trainings, "training"))));
    let ended = if r.stopped { "Interrupted; saved" } else { "Saved" };
    facts(&format!("{ended} {} in {}", several(r.points.len(), "model"), object.folder), &rows)
}

/// So many, with an s where it takes one.
fn several(number: usize, what: &str) -> String {
    format!("{} {what}{}", count(number), if number == 1 { "" } else { "s" })
}
