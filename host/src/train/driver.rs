//! The one way to train: options to a trained model, whatever the recipe, the outputs and the
//! hidden layers.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::path::Path;

use crate::data::Problem;
use crate::operator::Stop;
use crate::train::checkpoint::CheckpointFile;
use crate::train::dynamic::DynamicSetup;
use crate::train::layer::{self, LayerSetup, is_sum};
use crate::train::options::{Options, Recipe};
use crate::train::plan::{self, Forecast, Plan};
use crate::train::progress::{Observer, Progress, Stage};
use crate::train::scaled::{Scaled, TRAININGS};
use crate::train::trained::{Job, Start, Trained};
use crate::train::{choice, deep, imp, mask};
use crate::{Error, Result};

/// Trains a network on labelled rows: by default, given a [`Budget`](crate::Budget) alone, by the
/// recipe that suits the task, on small data as cross-validation chooses.
///
/// # Errors
/// As [`train_with`].
///
/// ```
/// use tamis_host::{Budget, data::{Problem, Task, planted}};
/// use tamis::{base::dims::Dims, network::gates::Signs};
///
/// let planted = planted::network(Dims::new(600, 16, 2, 6), Signs::Positive, 1)?;
/// let problem = Problem { data: planted.data, labels: planted.labels, task: Task::Regression };
/// let model = tamis_host::train(&problem, Budget::nnz(6))?;
/// assert!(model.report.search().unwrap().exact);
/// # Ok::<(), tamis_host::Error>(())
/// ```
pub fn train(problem: &Problem, options: impl Into<Options>) -> Result<Trained> {
    let stop = Stop::new();
    train_with(problem.clone(), &options.into(), Start::Zero, &stop, |_| ControlFlow::Continue(()))
}

/// Trains a network on rows that it may reorder in place, from nothing, a checkpoint or another
/// network.
///
/// `observe` is called after every step and ends the run by breaking; `stop` ends it within a step,
/// in the time of a tile or a panel, and what that step did is dropped. What was reached until then
/// is the outcome. Everything is allocated before the first step. Checkpoints are written where
/// [`Options::checkpoint`] says, and a run that starts from zero resumes from the one that is there
/// where it says so; they are for one hidden layer, for two that are searched for together, and for
/// recipe `imp`.
///
/// # Errors
/// A size or setting out of bounds, a memory budget that is too small, labels outside the task, or
/// steps that diverge; a checkpoint that does not fit; or the run was ended before its first step
/// ([`Error::is_interrupted`]).
///
/// ```
/// use std::ops::ControlFlow;
/// use tamis::{base::dims::Dims, network::gates::Signs};
/// use tamis_host::{Budget, Options, data::{Problem, Task, planted}, operator::Stop};
/// use tamis_host::train::{CheckpointOptions, Start, train, train_with};
///
/// let planted = planted::network(Dims::new(600, 16, 2, 6), Signs::Positive, 1)?;
/// let problem = Problem { data: planted.data, labels: planted.labels, task: Task::Regression };
/// let folder = tempfile::tempdir().unwrap();
/// let checkpoint = Some(CheckpointOptions::resume(folder.path().join("search")));
/// let options = Options { checkpoint, ..Options::new(Budget::nnz(6)) };
/// // Ended after five steps …
/// let stop = Stop::new();
/// train_with(problem.clone(), &options, Start::Zero, &stop, |progress| match progress.step {
///     5.. => ControlFlow::Break(()),
///     _ => ControlFlow::Continue(()),
/// })?;
/// // … and resumed from where it was.
/// assert!(train(&problem, options)?.report.psnr_db.unwrap() > 100.0);
/// # Ok::<(), tamis_host::Error>(())
/// ```
pub fn train_with(
    problem: Problem,
    options: &Options,
    start: Start<'_>,
    stop: &Stop,
    mut observe: impl FnMut(&Progress) -> ControlFlow<()> + Send,
) -> Result<Trained> {
    let mut observe = |progress: &Progress| observe(progress);
    if !choice::is_wanted(&problem, options, &start)? {
        return train_scaled(
            Cow::Owned(problem),
            options,
            start,
            TRAININGS,
            &mut Observer::new(stop, &mut observe),
        );
    }
    let silent = |problem: Problem, options: &Options| {
        let observe = &mut |_: &Progress| ControlFlow::Continue(());
        // Once more where the first network has other nonzeros is near enough to compare.
        train_scaled(
            Cow::Owned(problem),
            options,
            Start::Zero,
            2,
            &mut Observer::new(stop, observe),
        )
    };
    choice::train(&problem, options, stop, silent, |problem, options| {
        let observer = &mut Observer::new(stop, &mut observe);
        train_scaled(Cow::Owned(problem), options, Start::Zero, TRAININGS, observer)
    })
}

/// By one recipe, on columns that are mapped where that is needed: at most so many times.
pub(crate) fn train_scaled(
    problem: Cow<'_, Problem>,
    options: &Options,
    start: Start<'_>,
    most: usize,
    observer: &mut Observer<'_>,
) -> Result<Trained> {
    match Scaled::new(&problem, options, &start)? {
        None => train_on(problem.into_owned(), options, start, observer),
        Some(scaled) => scaled.train(&problem, options, most, |problem, options| {
            train_on(problem, options, start, observer)
        }),
    }
}

/// The same on rows as they are.
fn train_on(
    problem: Problem,
    options: &Options,
    start: Start<'_>,
    observer: &mut Observer<'_>,
) -> Result<Trained> {
    let (hidden, recipe) = options.resolve(&problem)?;
    if let Recipe::Imp(settings) = &recipe {
        return plan::pool(options.threads)?
            .install(|| imp::train(&problem, options, settings, &hidden, observer));
    }
    if let Recipe::Dynamic(settings) = &recipe {
        check_start(&start)?;
        let setup = plan::pool(options.threads)?
            .install(|| DynamicSetup::new(&problem, options, settings, &hidden))?;
        return plan::pool(setup.threads)?.install(|| {
            let kept = options.checkpoint.as_ref();
            let file = kept.map(|kept| setup.checkpoint_file(&kept.path, &problem));
            with_checkpoints(options, file, start, observer, |start, observer| {
                setup.train(problem, start, observer)
            })
        });
    }
    if let Recipe::Masked(settings) = &recipe {
        check_layers(options, &start)?;
        return plan::pool(options.threads)?
            .install(|| mask::train(problem, options, settings, observer));
    }
    if is_layer_by_layer(options, &problem, &hidden, &recipe) {
        check_layers(options, &start)?;
        return deep::train(problem, options, recipe, &hidden, observer);
    }
    let pinned = options.pinned.flat(hidden[0], problem.data.cols)?;
    let job = Job::new(options, &hidden, options.budget, &pinned);
    let setup = LayerSetup::new(&recipe, &problem, &job)?;
    let kept = options.checkpoint.as_ref();
    let file = kept.map(|kept| setup.checkpoint_file(&kept.path, &problem));
    with_checkpoints(options, file, start, observer, |start, observer| {
        setup.train(problem, options.threads, start, observer)
    })
}

/// Trains with checkpoints where the options say so: from the one that is there, and to the last one even
/// where the run failed.
fn with_checkpoints(
    options: &Options,
    file: Option<CheckpointFile>,
    start: Start<'_>,
    observer: &mut Observer<'_>,
    train: impl FnOnce(Start<'_>, &mut Observer<'_>) -> Result<Trained>,
) -> Result<Trained> {
    let Some((kept, mut file)) = options.checkpoint.as_ref().zip(file) else {
        return train(start, observer);
    };
    file.watch(kept.every, observer.stop, kept.on_error);
    let resumes = kept.resume && matches!(start, Start::Zero);
    let loaded = if resumes { file.load()? } else { None };
    let mut own = observer.at(Stage::default());
    own.checkpoint = Some(&mut file);
    let trained = train(loaded.as_ref().map_or(start, Start::Checkpoint), &mut own);
    // The last state is saved even where the run failed.
    let unsaved = file.flush().err();
    match (trained, unsaved) {
        (Ok(trained), unsaved) => Ok(Trained { unsaved, ..trained }),
        (Err(_), Some(error)) => Err(error),
        (Err(error), None) if error.is_interrupted() => {
            Err(error.help("--resume continues from the checkpoint, where there is one"))
        }
        (Err(error), None) => Err(error),
    }
}

/// The memory that training takes beside the data, for one hidden layer and for two that are
/// searched for together.
///
/// # Errors
/// As [`train_with`] before its first step; or several layers are trained one by one.
pub fn plan(problem: &Problem, options: &Options) -> Result<Plan> {
    with_setup(problem, options, |setup, _| setup.plan())
}

/// What training takes, with its device and its data, of one recipe: that of the first network where
/// cross-validation would choose one, and of the first layer where layers are trained one by one.
/// Nothing is trained.
///
/// # Errors
/// As [`train_with`] before its first step; or recipe `imp`, or training under a mask.
///
/// ```
/// use tamis::{base::dims::Dims, network::gates::Signs};
/// use tamis_host::{Budget, Options, data::{Problem, Task, planted}, train::forecast};
/// let planted = planted::network(Dims::new(600, 16, 4, 12), Signs::Positive, 1)?;
/// let problem = Problem { data: planted.data, labels: planted.labels, task: Task::Regression };
/// let forecast = forecast(&problem, &Options::new(Budget::nnz(12)))?;
/// assert!(forecast.support <= 4 * 12, "{forecast:?}");
/// # Ok::<(), tamis_host::Error>(())
/// ```
pub fn forecast(problem: &Problem, options: &Options) -> Result<Forecast> {
    let (hidden, recipe) = options.resolve(problem)?;
    let mut forecast = match &recipe {
        Recipe::Imp(_) | Recipe::Masked(_) => {
            return Err(Error::new(
                "there is no plan of dense training and of training under a mask",
            )
            .expected("recipe lm, anneal, paper, paper-safe or dynamic")
            .got(recipe.name())
            .help("choose one of these, or leave --plan out"));
        }
        Recipe::Dynamic(settings) => {
            let setup = plan::pool(options.threads)?
                .install(|| DynamicSetup::new(problem, options, settings, &hidden))?;
            plan::pool(setup.threads)?.install(|| setup.forecast(problem))?
        }
        _ => with_setup(problem, options, |setup, problem| {
            let Plan { layout, state_bytes, workspace_bytes } = setup.plan();
            let [requested_nnz, support] = setup.weights();
            Ok::<_, Error>(Forecast {
                requested_nnz,
                support,
                state_bytes,
                workspace_bytes,
                data_bytes: problem.bytes() as u64,
                layout: Some(layout),
                device_bytes: options.device.bytes_for(&problem.data, setup.neurons())?,
                ..Forecast::default()
            })
        })??,
    };
    forecast.recipe = recipe.name();
    forecast.device = options.device.name().to_owned();
    forecast.chosen = choice::is_wanted(problem, options, &Start::Zero)?;
    forecast.first_layer = is_layer_by_layer(options, problem, &hidden, &recipe);
    forecast.hidden = hidden;
    Ok(forecast)
}

/// The file of the checkpoints of a run on `problem`: to read one, and to see what it would hold.
/// All of the data is looked at once, for its checksum.
///
/// # Errors
/// As [`plan`].
pub fn checkpoint_file(
    path: impl AsRef<Path>,
    problem: &Problem,
    options: &Options,
) -> Result<CheckpointFile> {
    let path = path.as_ref();
    with_setup(problem, options, |setup, problem| setup.checkpoint_file(path, problem))
}

fn with_setup<T>(
    problem: &Problem,
    options: &Options,
    then: impl FnOnce(&LayerSetup<'_>, &Problem) -> T,
) -> Result<T> {
    let scaled = Scaled::new(problem, options, &Start::Zero)?;
    let own = scaled.as_ref().map(|scaled| (&scaled.problem, scaled.first(options)));
    let (problem, options) = own.as_ref().map_or((problem, options), |(data, own)| (*data, own));
    let (hidden, recipe) = options.resolve(problem)?;
    if is_layer_by_layer(options, problem, &hidden, &recipe) {
        check_layers(&Options { checkpoint: None, ..options.clone() }, &Start::Zero)?;
    }
    let first = hidden.first().copied().unwrap_or(0);
    let pinned = options.pinned.flat(first, problem.data.cols)?;
    let job = Job::new(options, &hidden, options.budget, &pinned);
    Ok(then(&LayerSetup::new(&recipe, problem, &job)?, problem))
}

/// Whether hidden layers are trained one after the other. The joint search of two needs one output
/// that is never negative.
///
/// # Errors
/// The recipe does not train for the task.
pub fn trains_layers(problem: &Problem, options: &Options) -> Result<bool> {
    let (hidden, recipe) = options.resolve(problem)?;
    Ok(is_layer_by_layer(options, problem, &hidden, &recipe))
}

fn is_layer_by_layer(
    options: &Options,
    problem: &Problem,
    hidden: &[usize],
    recipe: &Recipe,
) -> bool {
    layer::is_layer_by_layer(options.layers.is_some(), is_sum(problem), hidden, recipe)
}

/// Refuses a network or a mask to start from.
fn check_start(start: &Start<'_>) -> Result<()> {
    match start {
        Start::Zero | Start::Checkpoint(_) => Ok(()),
        Start::Network(_) | Start::Mask(_) => {
            Err(Error::new("recipe dynamic cannot start from a network")
                .expected("a run from nothing, or from a checkpoint")
                .got("a network or a mask to start from")
                .help("start it anew, or choose --recipe lm or paper"))
        }
    }
}

/// Refuses what is for one hidden layer.
fn check_layers(options: &Options, start: &Start<'_>) -> Result<()> {
    let got = match (&options.checkpoint, start) {
        (Some(_), _) => "--checkpoint",
        (None, Start::Zero) => return Ok(()),
        _ => "a checkpoint or a network to start from",
    };
    Err(Error::new("a setting is for networks of one hidden layer")
        .expected(format_args!("no {got} with several layers"))
        .got(got)
        .help(format!("leave {got} out, or pass one number to --hidden")))
}
