//! Regularisation path: one network per nnz, and the nnz that cross-validation picks.
//!
//! ```text
//! all rows       s_1 ──warm──> s_2 ──warm──> … : a model each
//! each fold      s_1 ──warm──> s_2 ──warm──> … without its rows, scored on them
//!                  └── the least s whose loss is within a standard error of the least one
//! ```
//!
//! Warm starts take the network of the size before, where the recipe can: every network is then at
//! least as good a start as the last one, and a path of searches costs little more than its
//! longest. Cold ones take nothing, so that a size does not inherit a local minimum: those of
//! recipes `dynamic` and `anneal`, on mapped columns, of several outputs by `paper`, and of layers one by one.

use std::borrow::Cow;
use std::ops::ControlFlow;

use serde::Serialize;

use crate::data::Problem;
use crate::model::{ModelFile, score_model};
use crate::operator::Stop;
use crate::train::budget::Budget;
use crate::train::driver::{train_scaled, trains_layers};
use crate::train::dynamic::DynamicSetup;
use crate::train::folds::cut;
use crate::train::lm_options::LmOptions;
use crate::train::options::{Options, Recipe};
use crate::train::plan;
use crate::train::progress::{Observer, Progress, Stage};
use crate::train::report::{Details, Neurons, Report, SearchDetails};
use crate::train::scaled::{Scaled, TRAININGS};
use crate::train::scaling::Scale;
use crate::train::search::default_signs;
use crate::train::trained::{Start, Trained};
use crate::{Error, Result};

/// Most sizes of a path, and most folds.
const MOST: usize = 100;

/// The sizes of a path, and how one of them is chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathOptions {
    /// Numbers of nonzeros, rising; they stand in place of [`Options::budget`].
    pub sizes: Vec<usize>,
    /// Whether each network starts from the one before, where the recipe can; otherwise each starts
    /// by itself.
    pub warm: bool,
    /// Folds of the cross-validation that chooses a size; 0 for no choice.
    pub folds: usize,
}

/// One size in a report.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PathPoint {
    /// Requested nonzeros, s.
    pub requested_nnz: usize,
    /// Nonzeros of the model.
    pub nnz: usize,
    /// Requested neurons of the hidden layers.
    pub hidden: Neurons,
    /// Neurons that have weights.
    pub live: Neurons,
    /// Loss on the rows trained on.
    pub loss: f64,
    /// As [`crate::model::Score::psnr_db`].
    pub psnr_db: Option<f64>,
    /// As [`crate::model::Score::accuracy`].
    pub accuracy: Option<f64>,
    /// Loss on the validation split; none without it.
    pub validation_loss: Option<f64>,
    /// Accuracy on it; none of regression.
    pub validation_accuracy: Option<f64>,
    /// Loss on the test rows; none where none were given.
    pub test_loss: Option<f64>,
    /// Accuracy on the test rows; none of regression, and where none were given.
    pub test_accuracy: Option<f64>,
    /// Whether it started from the network before.
    pub warm: bool,
    /// Passes over all rows of this training.
    pub passes: f64,
    /// Seconds of this training.
    pub seconds: f64,
    /// Which limit ended it.
    pub limit: Option<&'static str>,
    /// Whether it was ended early on request.
    pub stopped: bool,
    /// Loss on each left-out fold.
    pub fold_losses: Vec<f64>,
    /// Their mean; none without folds.
    pub cv_loss: Option<f64>,
    /// The standard error of that mean.
    pub cv_error: Option<f64>,
    /// Mean accuracy on the left-out folds; none for regression.
    pub cv_accuracy: Option<f64>,
}

/// The report of a path; the fields are the keys of the command line's JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathReport {
    /// The recipe.
    pub recipe: &'static str,
    /// Each size that was trained on all rows.
    pub points: Vec<PathPoint>,
    /// Folds.
    pub folds: usize,
    /// Trainings done.
    pub trainings: usize,
    /// The least size whose mean loss on the left-out folds, or share of wrong rows for two classes by recipe
    /// `lm`, is within a standard error of the least; none without folds, and none where the path was ended before its end.
    pub chosen_nnz: Option<usize>,
    /// Whether the path was ended early on request.
    pub stopped: bool,
    /// Seed of the folds.
    pub seed: u64,
    /// Seconds of all trainings.
    pub seconds: f64,
    /// The most memory that the process has had so far; none where the system does not say.
    pub peak_rss_bytes: Option<u64>,
}

/// A finished path.
#[derive(Debug)]
pub struct PathOutcome {
    /// The model of every point.
    pub models: Vec<ModelFile>,
    /// The report of the training of every point.
    pub reports: Vec<Report>,
    /// What was done.
    pub report: PathReport,
}

impl PathOutcome {
    /// The model of the size that was chosen.
    #[must_use]
    pub fn chosen(&self) -> Option<&ModelFile> {
        let chosen = self.report.chosen_nnz?;
        let at = self.report.points.iter().position(|point| point.requested_nnz == chosen)?;
        self.models.get(at)
    }
}

/// Trains a network for each of several sizes, and chooses one where there are folds.
///
/// `observe` is called after every step of every training and ends the path by breaking,
/// as `stop` does: the networks of all rows that were done until then are the result, the one that
/// was ended included.
///
/// # Errors
/// Those of the recipe, before the first network where they can be known; sizes that do not rise; too many of them, or too many
/// folds for the rows.
///
/// ```
/// use tamis::{base::dims::Dims, network::gates::Signs};
/// use tamis_host::{Budget, Options, data::{Problem, Task, planted}, operator::Stop};
/// use tamis_host::train::{PathOptions, train_path};
///
/// let planted = planted::network(Dims::new(600, 16, 2, 6), Signs::Positive, 1)?;
/// let problem = Problem { data: planted.data, labels: planted.labels, task: Task::Regression };
/// let options = Options { hidden: vec![2], ..Options::new(Budget::nnz(6)) };
/// let sizes = PathOptions { sizes: vec![3, 6, 9], warm: true, folds: 3 };
/// let go = |_: &_| std::ops::ControlFlow::Continue(());
/// let path = train_path(&problem, &options, &sizes, &Stop::new(), go)?;
/// assert_eq!((path.models.len(), path.report.chosen_nnz), (3, Some(6)));
/// # Ok::<(), tamis_host::Error>(())
/// ```
pub fn train_path(
    problem: &Problem,
    options: &Options,
    path_options: &PathOptions,
    stop: &Stop,
    mut observe: impl FnMut(&Progress) -> ControlFlow<()> + Send,
) -> Result<PathOutcome> {
    problem.check()?;
    let own = Options { budget: sizes_of(path_options), checkpoint: None, ..options.clone() };
    let (hidden, recipe) = own.resolve(problem)?;
    check_recipe(&recipe)?;
    check(problem, path_options)?;
    let whole = Scaled::new(problem, &own, &Start::Zero)?;
    let mapped = whole.as_ref().map_or(problem, |whole| &whole.problem);
    // Two layers have no output signs.
    let recipe = if hidden.len() == 1 { with_signs(mapped, recipe) } else { recipe };
    let own = Options {
        // What the columns of all rows need, those of a fold need, too.
        scale: whole.as_ref().map_or(Scale::None, |whole| whole.scale),
        // Networks that start from each other have the same neurons.
        hidden: if let Recipe::Dynamic(_) = recipe { own.hidden } else { hidden },
        recipe,
        ..own
    };
    drop(whole);
    if let Recipe::Dynamic(settings) = &own.recipe {
        // Before the first is trained.
        for &nnz in &path_options.sizes {
            let own = Options { budget: Budget::Nonzeros(nnz), ..own.clone() };
            let (hidden, _) = own.resolve(problem)?;
            DynamicSetup::new(problem, &own, settings, &hidden)
                .map_err(|error| error.of(format_args!("--nnz {nnz}")))?;
        }
    }
    let mut observer = Observer::new(stop, &mut observe);
    let PathOptions { sizes, warm, folds } = path_options;
    // Networks on mapped columns are trained to their sizes more than once.
    let is_warm = *warm
        && own.scale == Scale::None
        && !trains_layers(problem, &own)?
        && match &own.recipe {
            Recipe::Lm(_) => true,
            Recipe::Paper(_) => !problem.has_several_outputs(),
            _ => false,
        };
    let (mut training, trainings) = (0, sizes.len() * (folds + 1));
    // Trains every size, until the path is ended, which is the result; `see` is given each network.
    let mut along = |problem: &Problem, fold: Option<usize>, see: &mut See<'_>| -> Result<bool> {
        let mut last: Option<Trained> = None;
        let mut own = own.clone();
        if let (Recipe::Dynamic(settings), Some(_)) = (&mut own.recipe, fold) {
            // Which folds are scored on.
            settings.test = None;
        }
        for &nnz in sizes {
            let start = last.as_ref().map_or(Start::Zero, Start::Network);
            let mut observer =
                observer.at(Stage { training, trainings, nnz, fold, ..Stage::default() });
            own.budget = Budget::Nonzeros(nnz);
            let rows = Cow::Borrowed(problem);
            let done = train_scaled(rows, &own, start, TRAININGS, &mut observer);
            let done = match done {
                Err(error) if error.is_interrupted() && training > 0 => return Ok(true),
                Err(error) if !error.is_interrupted() => {
                    return Err(error.of(format_args!("--nnz {nnz}")));
                }
                done => done?,
            };
            training += 1;
            let ended = done.report.stopped;
            // What a fold has not finished says nothing.
            if fold.is_none() || !ended {
                see(&done, last.is_some())?;
            }
            if ended {
                return Ok(true);
            }
            last = is_warm.then_some(done);
        }
        Ok(false)
    };
    let began = std::time::Instant::now();
    let (mut models, mut reports, mut points) = (Vec::new(), Vec::new(), Vec::new());
    let mut ended = along(problem, None, &mut |trained, warm| {
        let report = &trained.report;
        let (mut hidden, mut live) = (report.hidden.clone(), report.live.clone());
        let dynamic = match &report.details {
            Details::Dynamic(details) => Some(details),
            Details::Lm(SearchDetails {
                second_hidden: Some(second),
                second_live: Some(second_live),
                ..
            }) => {
                hidden = Neurons::Each(vec![hidden.first(), *second]);
                live = Neurons::Each(vec![live.first(), *second_live]);
                None
            }
            _ => None,
        };
        let [validation_loss, validation_accuracy] = report.validation();
        points.push(PathPoint {
            requested_nnz: report.requested_nnz,
            nnz: report.nnz,
            hidden,
            live,
            loss: report.loss,
            psnr_db: report.psnr_db,
            accuracy: report.accuracy,
            validation_loss,
            validation_accuracy,
            test_loss: dynamic.and_then(|details| details.test_loss),
            test_accuracy: dynamic.and_then(|details| details.test_accuracy),
            warm,
            passes: report.passes,
            seconds: report.seconds,
            limit: report.limit,
            stopped: report.stopped,
            ..PathPoint::default()
        });
        models.push(trained.model.clone());
        reports.push(report.clone());
        Ok(())
    })?;
    let mut accuracies = vec![Vec::new(); points.len()];
    let mut worths = Vec::new();
    for fold in 0..*folds {
        if ended {
            break;
        }
        let (train, held) = cut(problem, *folds, options.seed, fold)?;
        let mut at = 0;
        ended = along(&train, Some(fold), &mut |trained, _| {
            let score = plan::pool(options.threads)?
                .install(|| score_model(trained.model.bytes(), &held))?;
            points[at].fold_losses.push(score.loss);
            accuracies[at].extend(score.accuracy);
            at += 1;
            Ok(())
        })?;
    }
    if *folds > 0 && !ended {
        for (point, accuracies) in points.iter_mut().zip(&accuracies) {
            let (mean, error) = mean_and_error(&point.fold_losses);
            (point.cv_loss, point.cv_error) = (Some(mean), Some(error));
            // Two classes need only be told apart.
            let is_told = own.recipe.name() == "lm" && !accuracies.is_empty();
            worths.push(if is_told {
                let (mean, error) = mean_and_error(accuracies);
                (1.0 - mean, error)
            } else {
                (mean, error)
            });
            point.cv_accuracy = (!accuracies.is_empty()).then(|| mean_and_error(accuracies).0);
        }
    }
    let report = PathReport {
        recipe: own.recipe.name(),
        chosen_nnz: choose(&points, &worths),
        points,
        folds: *folds,
        trainings: training,
        stopped: ended,
        seed: options.seed,
        seconds: began.elapsed().as_secs_f64(),
        peak_rss_bytes: crate::base::peak_rss_bytes(),
    };
    Ok(PathOutcome { models, reports, report })
}

/// Sees a network, and whether it started from the one before.
type See<'a> = dyn FnMut(&Trained, bool) -> Result<()> + 'a;

/// The budget of the smallest network.
fn sizes_of(path: &PathOptions) -> Budget {
    Budget::Nonzeros(path.sizes.first().copied().unwrap_or(0))
}

/// The recipe with signs that suit all labels: some folds may lack a sign.
fn with_signs(problem: &Problem, recipe: Recipe) -> Recipe {
    match recipe {
        Recipe::Lm(inner @ LmOptions { signs: None, .. }) if problem.outputs() == 1 => {
            Recipe::Lm(LmOptions { signs: Some(default_signs(problem)), ..inner })
        }
        recipe => recipe,
    }
}

fn check_recipe(recipe: &Recipe) -> Result<()> {
    match recipe {
        Recipe::Imp(_) | Recipe::Masked(_) => Err(Error::new(format!(
            "recipe {} trains one size at a time",
            recipe.name()
        ))
        .expected("recipe dynamic, lm, anneal, paper or paper-safe for several")
        .got(recipe.name())
        .help(
            "pass one number to --nnz; recipe imp saves every level that it comes through, in the folder of \
             --checkpoint",
        )),
        _ => Ok(()),
    }
}

fn check(problem: &Problem, options: &PathOptions) -> Result<()> {
    let PathOptions { sizes, folds, .. } = options;
    if sizes.is_empty() || sizes.len() > MOST || sizes.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(Error::new("the sizes of a path do not rise, or are too many")
            .expected(format_args!("1 to {MOST} numbers of nonzeros, each above the last"))
            .got(if sizes.len() > MOST {
                format!("{} of them", sizes.len())
            } else {
                format!("{sizes:?}")
            })
            .help("pass them as in --nnz 50,100,200"));
    }
    let rows = problem.data.rows;
    if *folds == 1 || *folds > MOST.min(rows) {
        return Err(Error::new("the number of folds is out of bounds")
            .expected(format_args!("--folds 2 to {}, one for each row at the most", MOST.min(rows)))
            .got(folds)
            .help("choose 5 or 10"));
    }
    if *folds > 0 {
        let counts = problem.class_rows();
        // The folds have even numbers of each class, so that one has at least two where there are
        // two.
        if let Some(class) = counts.iter().position(|&count| count < 2) {
            return Err(Error::new("a class has too few rows for folds")
                .expected("at least 2 rows of each class, so that no fold has all of them")
                .got(format_args!("{} of class {class}", counts[class]))
                .help(
                    "give more rows of this class, leave it out (--keep-labels), or leave \
                     --folds out",
                ));
        }
    }
    Ok(())
}

/// The mean, and the standard error of it.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0).max(1.0);
    (mean, (variance / n).sqrt())
}

/// The least size whose loss, (mean, standard error) of each, is within a standard error of the least.
fn choose(points: &[PathPoint], losses: &[(f64, f64)]) -> Option<usize> {
    let &(least, error) = losses.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let mut all = points.iter().zip(losses);
    all.find(|(_, (loss, _))| *loss <= least + error).map(|(point, _)| point.requested_nnz)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smallest_nnz_within_one_standard_error_is_chosen() {
        assert_eq!(mean_and_error(&[1.0, 3.0]), (2.0, 1.0));
        let points =
            [5, 10, 20].map(|requested_nnz| PathPoint { requested_nnz, ..PathPoint::default() });
        let chosen = |losses: [&[f64]; 3]| choose(&points, &losses.map(mean_and_error));
        // 2 ± 1 is the least: 2.9 is within, 3.1 is not.
        assert_eq!(chosen([&[3.1, 3.1], &[2.9, 2.9], &[1.0, 3.0]]), Some(10));
        assert_eq!(chosen([&[9.0, 9.0], &[2.0, 2.0], &[2.5, 2.5]]), Some(10));
        assert_eq!(choose(&points, &[]), None);
    }
}
