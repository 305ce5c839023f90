//! `tamis train --hidden M1,M2…` with a recipe for one hidden layer: layer by layer, then all together.

use clap::Args;
use tamis::deep::{shrink, tune};

use super::console::{bytes, count, facts, psnr_fact};
use super::parse::{self, Recipe};
use super::progress::Bar;
use super::saved::{Object, accuracy_fact, limit_fact, peak_fact};
use super::train::{Train, first_given, save};
use super::{Common, Console, anneal, interrupt, paper, recover};
use crate::run::{self, DeepOptions, DeepReport, LayerRecipe, Memory, Problem, Task};
use crate::{Error, Result, file};

/// Settings of networks of several hidden layers.
#[derive(Debug, Args)]
#[command(next_help_heading = "Several hidden layers (recipes lm, anneal and paper)")]
pub(super) struct DeepArgs {
    /// Epochs that all layers are fitted together, on the weights that each got by itself; 0 for none. Given, two layers are trained one
    /// by one too, where recipe lm would search for both at once [default: 20]
    #[arg(long, value_name = "E", value_parser = parse::whole::<u32>)]
    tune_epochs: Option<u32>,
    /// The first step of that fit, in parts of the size of a layer's weights [default: 0.02]
    #[arg(long, value_name = "RATE", value_parser = parse::number)]
    tune_rate: Option<f64>,
    /// Weights that layers are trained to by lm and anneal, in units of s; all layers together are then brought down to s, level
    /// by level. Of several factors one after the other is tried until the labels are fitted exactly, and the best network is kept
    /// [default: 3,2,4; 3 for classes; 1 with --ram or --tune-epochs 0]
    #[arg(long, value_name = "FACTOR", value_delimiter = ',', value_parser = parse::number)]
    grow: Vec<f64>,
}

impl DeepArgs {
    /// The first flag that was given, if any.
    pub(super) fn given(&self) -> Option<&'static str> {
        first_given(&[
            (self.tune_epochs.is_some(), "--tune-epochs"),
            (self.tune_rate.is_some(), "--tune-rate"),
            (!self.grow.is_empty(), "--grow"),
        ])
    }
}

/// Trains layer by layer.
pub(super) fn run(
    train: &Train,
    (task, recipe): (Task, Recipe),
    common: &Common,
    console: &Console,
) -> Result<()> {
    check(train)?;
    options(train, recipe, common)?;
    file::check(&train.output)?;
    file::check_distinct(&train.output, train.source.inputs())?;
    learn(train, train.source.source().load_to_learn(task)?, recipe, common, console)
}

/// Settings that are for one hidden layer are refused.
fn check(train: &Train) -> Result<()> {
    if let Some(flag) = train.one_layer_only() {
        return Err(Error::new("a setting is for networks of one hidden layer")
            .expected(format_args!("no {flag} with several layers"))
            .got(flag)
            .help(format!("leave {flag} out, or pass one number to --hidden")));
    }
    Ok(())
}

/// Trains layer by layer on a problem that was read.
pub(super) fn learn(
    train: &Train,
    problem: Problem,
    recipe: Recipe,
    common: &Common,
    console: &Console,
) -> Result<()> {
    check(train)?;
    let options = options(train, recipe, common)?;
    if recipe != Recipe::Anneal && recipe != Recipe::Lm {
        paper::fits(train, problem.has_several_outputs(), recipe)?;
    }
    let bar = Bar::new(console);
    let outcome = interrupt::training(|| {
        run::train_deep(problem, &options, interrupt::stop(), |progress| {
            bar.show(progress.step, progress.steps, progress.loss);
            true
        })
    });
    bar.clear();
    let outcome = outcome?;
    save(&train.output, &outcome.model)?;
    let object = Object::new(&train.output, &outcome.model, &outcome.report);
    console.result(&object, || summary(&object))
}

fn options(train: &Train, recipe: Recipe, common: &Common) -> Result<DeepOptions> {
    let first = train.hidden.first().copied().unwrap_or(0);
    let usual = tune::Params::DEFAULT;
    let args = &train.deep;
    let rate = args.tune_rate.map_or(usual.rate, |rate| rate as f32);
    if !(rate.is_finite() && rate >= 0.0) {
        return Err(Error::new("the rate of the joint fit is out of bounds")
            .expected("--tune-rate 0 or more")
            .got(rate)
            .help("0.02 is usual"));
    }
    let is_paper = matches!(recipe, Recipe::Paper | Recipe::PaperSafe);
    if is_paper && !args.grow.is_empty() {
        return Err(Error::new("the published method trains every layer to its share of s")
            .expected("no --grow with --recipe paper")
            .got("--grow")
            .help("leave --grow out, or take --recipe lm or anneal"));
    }
    if let Some(grow) = args.grow.iter().find(|grow| !(grow.is_finite() && **grow >= 1.0)) {
        return Err(Error::new("the layers cannot be trained to fewer weights than the network shall have")
            .expected("--grow 1 or more")
            .got(grow)
            .help("3 is usual; 1 trains layers to their share of s"));
    }
    let grow = match (train.memory(), recipe) {
        _ if !args.grow.is_empty() => args.grow.clone(),
        (Memory::Ram(_), _) => vec![1.0],
        (_, Recipe::Anneal) => run::LAYER_GROWTH[..1].to_vec(),
        _ => run::LAYER_GROWTH.to_vec(),
    };
    Ok(DeepOptions {
        hidden: train.hidden.clone(),
        size: train.size(),
        recipe: match recipe {
            Recipe::Anneal => LayerRecipe::Anneal(anneal::options(train, first, common)?),
            Recipe::Paper | Recipe::PaperSafe => LayerRecipe::Paper(
                paper::options(train, first, common)?,
                paper::outputs(train, first, recipe, common)?,
            ),
            Recipe::Lm | Recipe::Auto | Recipe::Imp => {
                let mut options = recover::options(train, first, common)?;
                if !train.recover.has_kicks() {
                    options.params.kicks = run::LAYER_KICKS;
                }
                LayerRecipe::Lm(options)
            }
        },
        grow,
        shrink: shrink::Params {
            tune: tune::Params { rate, seed: common.seed, ..shrink::Params::DEFAULT.tune },
            ..shrink::Params::DEFAULT
        },
        tune: tune::Params {
            epochs: args.tune_epochs.unwrap_or(usual.epochs),
            rate,
            seed: common.seed,
            ..usual
        },
        limits: train.course.limits()?,
        threads: common.threads(),
    })
}

fn summary(object: &Object<'_, DeepReport>) -> String {
    let r = object.report;
    let name = if r.task == Task::Multiclass { "mean cross-entropy" } else { "mean squared error" };
    let layers = r.layers.iter().map(|layer| format!("{} of {}", layer.live, layer.hidden));
    let parts = r.layers.iter().map(|layer| count(layer.nnz as u64));
    let mut rows = vec![
        (
            "nonzeros",
            format!(
                "{} of {} asked for; hidden layers {}",
                count(r.nnz as u64),
                count(r.requested_nnz as u64),
                parts.collect::<Vec<_>>().join(", ")
            ),
        ),
        ("neurons", format!("{} have weights", layers.collect::<Vec<_>>().join(", "))),
        ("loss", format!("{:.4e} {name}", r.loss)),
    ];
    rows.extend(r.untuned_loss.map(|before| {
        let grown = if r.grown_nnz > r.nnz {
            format!(" with {} weights", count(r.grown_nnz as u64))
        } else {
            String::new()
        };
        let of =
            if r.attempts > 1 { format!("; the best of {} networks", r.attempts) } else { String::new() };
        ("together", format!("{before:.4e} before{grown}, {} epochs{of}", r.tune_epochs))
    }));
    if r.task != Task::Multiclass {
        rows.push(psnr_fact(r.psnr_db, r.zero_psnr_db));
    }
    rows.extend(r.accuracy.map(accuracy_fact));
    rows.extend([
        (
            "time",
            format!(
                "{:.3} s, recipe {} layer by layer, {:.0} passes, {} threads{}",
                r.seconds,
                r.recipe,
                r.passes,
                r.threads,
                limit_fact(r.limit)
            ),
        ),
        (
            "memory",
            format!(
                "data {} and {} between layers, state {}, workspace {}{}",
                bytes(r.data_bytes),
                bytes(r.mapped_bytes),
                bytes(r.state_bytes),
                bytes(r.workspace_bytes),
                peak_fact(r.peak_rss_bytes)
            ),
        ),
    ]);
    facts(&object.title(r.stopped), &rows)
}
