//! `tamis train --nnz S1,S2…`: a model for each size, and the size that rows left out speak for.

use std::io::Write as _;
use std::path::Path;

use clap::Args;
use serde::Serialize;

use super::console::{count, decibel, facts, percent};
use super::parse::{self, Recipe};
use super::progress::Bar;
use super::train::{Train, first_given};
use super::{Common, Console, anneal, interrupt, paper, recover};
use crate::plot::{self, Line, Measure};
use crate::run::{
    LayerRecipe, PathOptions, PathPoint, PathReport, Problem, RecoverOptions, Task, train_path,
};
use crate::{Error, Result, file};

/// Settings of several sizes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Several sizes (--nnz S1,S2… -o FOLDER)")]
pub(super) struct PathArgs {
    /// Train every size by itself; without it each starts from the network of the size before (recipes lm, and paper for one output)
    #[arg(long)]
    cold: bool,
    /// Cut the rows into K parts, leave each out once, and choose the least size whose mean loss on the rows left out is within a
    /// standard error of the least one; 0 for no choice [default: 0]
    #[arg(long, value_name = "K", value_parser = parse::whole::<usize>)]
    folds: Option<usize>,
}

impl PathArgs {
    /// The first flag that was given, if any.
    pub(super) fn given(&self) -> Option<&'static str> {
        first_given(&[(self.cold, "--cold"), (self.folds.is_some(), "--folds")])
    }
}

/// The object of `--json`, and of `path.json`.
#[derive(Serialize)]
struct Object<'a> {
    folder: String,
    /// Files of the models, one for each point.
    models: Vec<String>,
    /// File of the model of the size that was chosen.
    chosen: Option<&'static str>,
    #[serde(flatten)]
    report: &'a PathReport,
}

/// File of the model that was chosen.
const CHOSEN: &str = "chosen.tamis";

/// Trains along the sizes.
pub(super) fn run(
    train: &Train,
    (task, recipe): (Task, Recipe),
    common: &Common,
    console: &Console,
) -> Result<()> {
    check(train, recipe)?;
    check_folder(&train.output)?;
    let problem = train.source.source().load_to_learn(task)?;
    let must_keep = train.must_keep(&problem)?;
    let options = options(train, (&problem, &must_keep), recipe, common)?;
    let bar = Bar::new(console);
    let outcome = interrupt::training(|| {
        train_path(&problem, &options, interrupt::stop(), |progress| {
            let done = progress.training as u32;
            bar.show(done, progress.trainings as u32, progress.loss);
            true
        })
    });
    bar.clear();
    let outcome = outcome?;
    let report = &outcome.report;
    let object = Object {
        folder: train.output.display().to_string(),
        models: report.points.iter().map(|point| name(point.requested_nnz)).collect(),
        chosen: report.chosen_nnz.map(|_| CHOSEN),
        report,
    };
    interrupt::saving(|| {
        file::write_folder(&train.output, |folder| {
            for (name, model) in object.models.iter().zip(&outcome.models) {
                folder.write(name, |w| w.write_all(model))?;
            }
            if let Some(model) = outcome.chosen() {
                folder.write(CHOSEN, |w| w.write_all(model))?;
            }
            folder.write("path.svg", |w| w.write_all(picture(report).as_bytes()))?;
            folder.write("path.json", |w| {
                serde_json::to_writer_pretty(&mut *w, &object)?;
                writeln!(w)
            })
        })
    })?;
    console.result(&object, || summary(&object))
}

/// A folder that is new or empty: a model of another path beside those of this one would be taken for one of them.
fn check_folder(folder: &Path) -> Result<()> {
    if !folder.exists() {
        // Made with the files, so that nothing is left where the training fails.
        return file::check(folder);
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

/// Refuses what is for one size.
fn check(train: &Train, recipe: Recipe) -> Result<()> {
    if let Some(flag) = train.one_layer_only() {
        return Err(Error::new("a setting is for one size")
            .expected(format_args!("no {flag} with several sizes"))
            .got(flag)
            .help(format!("leave {flag} out, or pass one number to --nnz")));
    }
    let layers = train.hidden.len();
    if recipe == Recipe::Imp || (layers > 1 && !(recipe == Recipe::Lm && layers == 2)) {
        return Err(Error::new("several sizes are for one hidden layer, or for two that recipe lm searches for together")
            .expected("recipe lm, anneal, paper or paper-safe with one hidden layer, or lm with two")
            .got(format_args!("recipe {} with {layers} hidden layers", recipe.name()))
            .help("pass one number to --nnz; recipe imp saves every level that it comes through, in the folder of --checkpoint"));
    }
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

fn options<'k>(
    train: &Train,
    (problem, must_keep): (&Problem, &'k [u32]),
    recipe: Recipe,
    common: &Common,
) -> Result<PathOptions<'k>> {
    let hidden = train.one_hidden();
    let several = problem.has_several_outputs();
    let recipe = match recipe {
        Recipe::Anneal => LayerRecipe::Anneal(anneal::options(train, hidden, common)?.keeping(must_keep)),
        Recipe::Paper | Recipe::PaperSafe => {
            paper::fits(train, several, recipe)?;
            LayerRecipe::Paper(
                paper::options(train, hidden, common)?.keeping(must_keep),
                paper::outputs(train, hidden, recipe, common)?.keeping(must_keep),
            )
        }
        Recipe::Lm | Recipe::Auto | Recipe::Imp => {
            let inner = recover::options(train, hidden, common)?;
            LayerRecipe::Lm(RecoverOptions { second: train.hidden.get(1).copied(), ..inner })
        }
    };
    Ok(PathOptions {
        hidden,
        sizes: train.sizes().to_vec(),
        recipe,
        warm: !train.path.cold,
        folds: train.path.folds.unwrap_or(0),
        limits: train.course.limits()?,
        threads: common.threads(),
        seed: common.seed,
    })
}

/// Losses over the sizes.
fn picture(report: &PathReport) -> String {
    let points = |loss: &dyn Fn(&PathPoint) -> Option<f64>| -> Vec<(f64, f64)> {
        let at = |point: &PathPoint| Some((point.requested_nnz as f64, loss(point)?));
        report.points.iter().filter_map(at).collect()
    };
    let (own, held) = (points(&|point| Some(point.loss)), points(&|point| point.cv_loss));
    let above = points(&|point| Some(point.cv_loss? + point.cv_error?));
    let line = |label, points, colour, dashed| Line { label, points, colour, dashed };
    let mut all = vec![line("rows trained on", own.as_slice(), 0, false)];
    if !held.is_empty() {
        all.push(line("rows left out", &held, 1, false));
        all.push(line("with a standard error", &above, 1, true));
    }
    let title =
        report.chosen_nnz.map_or_else(|| "Sizes".into(), |nnz| format!("Sizes: {nnz} nonzeros chosen"));
    let axes = [Measure { name: "s, nonzeros", log: true }, Measure { name: "loss", log: true }];
    plot::lines(&title, axes, &all)
}

fn summary(object: &Object<'_>) -> String {
    let r = object.report;
    let line = |point: &PathPoint| {
        let fit = match (point.accuracy, point.psnr_db) {
            (Some(part), _) => percent(part),
            (None, psnr) => decibel(psnr),
        };
        let held = point.cv_loss.zip(point.cv_error);
        let held = held.map_or_else(String::new, |(loss, error)| {
            let right = point.cv_accuracy.map(|part| format!(", {}", percent(part))).unwrap_or_default();
            format!("; left out {loss:.4e} ± {error:.1e}{right}")
        });
        let start = if point.warm { "warm" } else { "cold" };
        format!(
            "{} nonzeros, {} neurons: loss {:.4e}, {fit}{held}; {:.2} s, {start}",
            count(point.nnz as u64),
            count(point.live as u64),
            point.loss,
            point.seconds
        )
    };
    let lines: Vec<(String, String)> =
        r.points.iter().map(|point| (name(point.requested_nnz), line(point))).collect();
    let mut rows: Vec<(&str, String)> =
        lines.iter().map(|(name, line)| (name.as_str(), line.clone())).collect();
    rows.extend(
        r.chosen_nnz
            .map(|nnz| ("chosen", format!("{} nonzeros, by {} folds: {CHOSEN}", count(nnz as u64), r.folds))),
    );
    rows.push(("time", format!("{:.2} s, {}", r.seconds, several(r.trainings, "training"))));
    let ended = if r.stopped { "Interrupted; saved" } else { "Saved" };
    facts(&format!("{ended} {} in {}", several(r.points.len(), "model"), object.folder), &rows)
}

/// So many, with an s where it takes one.
fn several(number: usize, what: &str) -> String {
    format!("{} {what}{}", count(number as u64), if number == 1 { "" } else { "s" })
}
