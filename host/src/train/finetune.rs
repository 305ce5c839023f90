//! A finished model, of however many layers, fitted to rows on the weights that it has.

use clap::ValueEnum;
use serde::Serialize;
use tamis::infer::model::{Activation, Csr, Layer};
use tamis::learn::deep::{Stack, tune};
use tamis::store::wire::View;

use crate::base::{Limits, check_setting, peak_rss_bytes};
use crate::data::{Problem, Task};
use crate::model::{EpochProgress, ModelFile, score_model};
use crate::operator::Stop;
use crate::train::encode::SparseLayer;
use crate::train::joint::{Ending, Joint, encode_stack, fit_together, push_layer};
use crate::train::ones::{changed, layers_of, with_biases, without_biases};
use crate::train::plan;
use crate::train::refit::{Refit, Shallow, refit};
use crate::train::trained::{Stopwatch, shuffle};
use crate::train::units::Units;
use crate::{Error, Result};

/// What fits the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum FinetuneMethod {
    /// Least squares where the model is one for it, else Adam
    #[default]
    Auto,
    /// Levenberg-Marquardt steps on all rows, for one hidden layer and squared loss
    LeastSquares,
    /// Adam in batches, for any number of layers and any loss
    Adam,
}

/// How to fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FinetuneOptions {
    /// What fits.
    pub method: FinetuneMethod,
    /// Epochs, batches, rate and seed of Adam.
    pub params: tune::Params,
    /// Steps of least squares at the most.
    pub steps: u32,
    /// Time, looked at after every epoch, by least squares in every product; passes are not
    /// limited.
    pub limits: Limits,
    /// Threads of the scores; the fit itself takes one.
    pub threads: usize,
}

/// What a fit did; the fields are the keys of the command line's JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FinetuneReport {
    /// `least-squares` or `adam`.
    pub method: &'static str,
    /// What the model is for.
    pub task: Task,
    /// Rows, n.
    pub samples: usize,
    /// Nonzeros, biases among them, which do not change.
    pub nnz: usize,
    /// As [`crate::model::Score::loss_kind`].
    pub loss_kind: &'static str,
    /// Loss on the rows before.
    pub loss_before: f64,
    /// As [`crate::model::Score::psnr_db`], before.
    pub psnr_db_before: Option<f64>,
    /// As [`crate::model::Score::accuracy`], before.
    pub accuracy_before: Option<f64>,
    /// Loss on the rows afterwards.
    pub loss: f64,
    /// As [`crate::model::Score::psnr_db`].
    pub psnr_db: Option<f64>,
    /// As [`crate::model::Score::accuracy`].
    pub accuracy: Option<f64>,
    /// Epochs done, of least squares steps; the result is the best of them, or the model as it was.
    pub epochs: u32,
    /// Which limit ended the fit.
    pub limit: Option<&'static str>,
    /// Whether it was ended early on request.
    pub stopped: bool,
    /// Seconds of the fit and of its scores, without reading files.
    pub seconds: f64,
    /// Seed of the order of the rows.
    pub seed: u64,
    /// Bytes of samples and labels.
    pub data_bytes: u64,
    /// Bytes of the fit: of Adam indices, values, gradient, moments, best values, and activations
    /// of one row; of least squares what survives from step to step.
    pub state_bytes: u64,
    /// The most memory that the process has had so far; none where the system does not say.
    pub peak_rss_bytes: Option<u64>,
}

/// A finished fit.
#[derive(Debug, Clone, PartialEq)]
pub struct FinetuneOutcome {
    /// The bytes of a `.tamis` file.
    pub model: Vec<u8>,
    /// What was done.
    pub report: FinetuneReport,
}

/// Fits the weights of `model` to `problem`, all layers together, and leaves which weights there
/// are: the last step of pruning, new data for an old model, or the end of a model that was trained
/// layer by layer.
///
/// `observe` is called after every epoch and ends the fit by returning `false`, as `stop` does; the
/// best weights until then are the result.
///
/// # Errors
/// A model that does not end in a sum or in weights without relu, or without a hidden layer; labels
/// or columns that do not fit it; or predictions that are no numbers.
pub fn finetune(
    model: &ModelFile,
    problem: Problem,
    options: &FinetuneOptions,
    stop: &Stop,
    observe: impl FnMut(&EpochProgress) -> bool + Send,
) -> Result<FinetuneOutcome> {
    problem.check_for_model()?;
    let holds = options.params.epochs > 0 && options.steps > 0;
    check_setting(holds, "--epochs 1 or more", 0, "leave --epochs out for the default")?;
    plan::pool(options.threads)?.install(|| fit(model, problem, options, stop, observe))
}

fn fit(
    model: &ModelFile,
    problem: Problem,
    options: &FinetuneOptions,
    stop: &Stop,
    mut observe: impl FnMut(&EpochProgress) -> bool,
) -> Result<FinetuneOutcome> {
    let start = Stopwatch::start(&problem);
    let before = model.predict(&problem.data)?;
    let before = model.score(problem.task, &problem.labels, &before)?;
    let (model, problem, handing) = without_biases(model.in_rows()?, problem)?;
    let view = model.view()?;
    let layers = view.model().layers();
    let nnz: usize = layers
        .iter()
        .map(|layer| if let Layer::Csr(csr) = layer { csr.nonzeros() } else { 0 })
        .sum();
    let (epochs, task) = (options.steps, problem.task);
    if nnz == 0 {
        return Err(Error::new("the model has no weights to fit")
            .expected("at least one nonzero weight")
            .got(0)
            .help("train it anew: a model without weights is what labels of 0 give"));
    }
    let shallow = match options.method {
        FinetuneMethod::Adam => None,
        _ => Shallow::new(view.model(), task, view.task())?,
    };
    let done = match shallow {
        Some(shallow) => {
            let mut best = f32::INFINITY;
            refit(shallow, problem, view.task(), epochs, options.limits, stop, |epoch, loss| {
                best = best.min(loss);
                observe(&EpochProgress { epoch, epochs, best })
            })?
        }
        None if options.method == FinetuneMethod::LeastSquares => {
            return Err(Error::new("the model is not one for least squares")
                .expected(
                    "one hidden layer of relu, and numbers or two classes by their labels 0 and 1",
                )
                .got(match (layers.len(), task) {
                    (3.., _) => "several hidden layers",
                    (_, Task::Regression) => "another kind of layers, or sizes beyond 32 bits",
                    _ => "classes by their scores",
                })
                .help("leave --method out, or pass --method adam"));
        }
        None => in_units(&view, problem, handing.is_some(), |view, problem| {
            adam(view, nnz, problem, options, stop, observe)
        })?,
    };
    let (model, problem) = match handing {
        Some(handing) => with_biases(&done.model, done.problem, handing)?,
        None => (done.model, done.problem),
    };
    let score = score_model(&model, &problem)?;
    let samples = score.n;
    let report = FinetuneReport {
        method: done.method,
        task,
        samples,
        // What hands biases on is none of the model's.
        nnz: nnz - handing.unwrap_or(0),
        loss_kind: score.loss_kind,
        loss_before: before.loss,
        psnr_db_before: before.psnr_db,
        accuracy_before: before.accuracy,
        loss: score.loss,
        psnr_db: score.psnr_db,
        accuracy: score.accuracy,
        epochs: done.epochs,
        limit: done.limit,
        stopped: done.stopped,
        seconds: start.seconds(),
        seed: options.params.seed,
        data_bytes: start.data_bytes,
        state_bytes: done.state_bytes,
        peak_rss_bytes: peak_rss_bytes(),
    };
    Ok(FinetuneOutcome { model, report })
}

/// A fit on mapped columns where they differ in their units, of a model without biases.
fn in_units(
    view: &View<'_>,
    problem: Problem,
    has_ones: bool,
    fit: impl FnOnce(&View<'_>, Problem) -> Result<Refit>,
) -> Result<Refit> {
    let layers = layers_of(view.model())?;
    let units = layers.first().and_then(|first| Units::of(&problem, has_ones, first));
    let Some(units) = units else { return fit(view, problem) };
    let mapped = changed(view, |layers| layers.iter_mut().take(1).for_each(|l| units.enter(l)))?;
    let data = units.rows(&problem.data)?;
    let rows = Problem { data, labels: problem.labels.clone(), task: problem.task };
    let done = fit(&ModelFile::from_bytes(&mapped)?.view()?, rows)?;
    let fitted = ModelFile::from_bytes(&done.model)?;
    let leave = |layers: &mut [SparseLayer]| layers.iter_mut().take(1).for_each(|l| units.leave(l));
    Ok(Refit { model: changed(&fitted.view()?, leave)?, problem, ..done })
}

/// The joint fit of all layers.
fn adam(
    view: &View<'_>,
    nnz: usize,
    mut problem: Problem,
    options: &FinetuneOptions,
    stop: &Stop,
    mut observe: impl FnMut(&EpochProgress) -> bool,
) -> Result<Refit> {
    let (mut index, mut value) = (vec![0; nnz], vec![0.0; nnz]);
    let mut stack = Stack::new(view.model().inputs(), &mut index, &mut value);
    let hidden_layer = |layer| match layer {
        &Layer::Csr(csr) if csr.activation() == Activation::Relu => Some(csr),
        _ => None,
    };
    let Some((end, hidden)) = view.model().layers().split_last() else { return Err(other_kind()) };
    if hidden_layer(end).is_some() {
        return Err(other_kind());
    }
    let mut requested = Vec::new();
    for layer in hidden {
        let csr = hidden_layer(layer).ok_or_else(other_kind)?;
        push_layer(&mut stack, &csr)?;
        requested.push(Csr::requested(&csr));
    }
    let ending = Ending::new(end)?;
    ending.end(&mut stack)?;
    shuffle(&mut problem, options.params.seed);
    let is_class = match problem.task {
        Task::Multiclass => true,
        task => task == Task::Binary && view.task() == Some(Task::LOG_ODDS),
    };
    let (tune, time) = (&options.params, options.limits.time);
    let joint = Joint { shrink: None, nnz, tune, is_class, time };
    let fitted = fit_together(&mut stack, &problem, &joint, stop, &mut |progress| {
        let tune::Progress { epoch, epochs, best, .. } = *progress;
        observe(&EpochProgress { epoch, epochs, best })
    })?;
    Ok(Refit {
        method: "adam",
        model: encode_stack(&stack, &requested, &ending.signs, view.task())?,
        problem,
        epochs: fitted.epochs,
        limit: fitted.limit,
        stopped: fitted.stopped,
        state_bytes: fitted.memory_bytes + 8 * nnz as u64,
    })
}

fn other_kind() -> Error {
    Error::new("the model is of a kind that cannot be fitted")
        .expected("hidden layers with relu, then their sum or a layer without")
        .got("layers in another order")
        .help("fit a model that tamis has trained")
}
