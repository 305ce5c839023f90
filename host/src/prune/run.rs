//! From a network to a smaller one: groups first, then weights, then fine-tuning.

use std::time::Instant;

use tamis::store::wire;

use super::check;
use super::fit::Fit;
use super::lasso::GroupLasso;
use super::network::{LastInput, Mlp};
use super::notes::{Asked, notes};
use super::options::{DenseStart, Neurons, PruneOptions, Structured};
use super::report::{Compared, PruneOutcome, PruneReport, Quality};
use super::rows::{FitRows, Units};
use super::select::Missing;
use super::source::{PruneRows, PruneSource};
use super::{greedy, schedule, scores, select, widths};
use crate::Result;
use crate::base::memory::room_for;
use crate::data::{Matrix, Problem, Task};
use crate::model::{EpochProgress, ModelFile, Score};
use crate::operator::Stop;
use crate::train::check::weights_between;
use crate::train::plan;

/// Prunes a network: whole neurons and inputs by their groups of weights first, then weights by
/// their magnitude to exactly the nonzeros asked for, all of which lie on paths from inputs to
/// outputs. With labelled rows it is fine-tuned meanwhile. `observe` hears of every epoch; threads
/// change no bit of the result.
///
/// # Errors
/// A model of integers or of another kind of layers, rows that do not fit it, more neurons, inputs
/// or nonzeros than there are, nothing to do, training that diverges, or a stop.
///
/// ```
/// use tamis_host::operator::Stop;
/// use tamis_host::prune::{Neurons, PruneOptions, PruneRows, PruneSource, prune};
/// use tamis_host::{Budget, ModelFile, data::{Matrix, Problem, Task, Values}, train};
/// let x: Vec<f32> = (0..600).map(|k| ((k * 7919 + k * k % 2531) % 1009) as f32 / 500.0 - 1.0).collect();
/// let labels = x.chunks(3).map(|x| (x[0] - x[1]).max(0.0) + 0.3 * x[2].max(0.0)).collect();
/// let data = Matrix::new(200, 3, Values::F32(x))?;
/// let rows = Problem { data, labels, task: Task::Regression };
/// let model = train(&rows, Budget::nnz(6))?.model;
/// let options = PruneOptions { neurons: Neurons::All, nnz: Some(Budget::nnz(3)), ..PruneOptions::default() };
/// let source = PruneSource::of(model);
/// let done = prune(&source, PruneRows::None, &options, &Stop::new(), |_| ())?;
/// assert_eq!(done.report.nnz, 3);
/// ModelFile::from_bytes(&done.model)?.predict(&rows.data)?;
/// # Ok::<(), tamis_host::Error>(())
/// ```
pub fn prune(
    source: &PruneSource,
    rows: PruneRows,
    options: &PruneOptions,
    stop: &Stop,
    observe: impl FnMut(&EpochProgress) + Send,
) -> Result<PruneOutcome> {
    plan::pool(options.threads)?.install(|| {
        let begun = Begun::of(source, &rows, options)?;
        run(begun, rows, options, stop, observe)
    })
}

/// Trains a dense network with biases from nothing on labelled rows, for so many epochs, and prunes it as
/// [`prune`] does.
///
/// # Errors
/// As [`prune`]; rows without labels, or a network that is none.
pub fn group(
    dense: &DenseStart,
    rows: PruneRows,
    options: &PruneOptions,
    stop: &Stop,
    observe: impl FnMut(&EpochProgress) + Send,
) -> Result<PruneOutcome> {
    plan::pool(options.threads)?.install(|| {
        let begun = Begun::dense(dense, &rows, options)?;
        run(begun, rows, options, stop, observe)
    })
}

/// A network before it is pruned, in the units that it is trained in.
struct Begun {
    mlp: Mlp,
    units: Units,
    /// What the model's file says of its task, and what it is for.
    stored: Option<wire::Task>,
    task: Option<Task>,
    /// Epochs of training before anything is cut.
    epochs: u32,
}

impl Begun {
    fn of(source: &PruneSource, rows: &PruneRows, options: &PruneOptions) -> Result<Self> {
        let mut mlp = Mlp::of(&source.model, last_input(source, rows)?)?;
        let units = match rows {
            PruneRows::None => source
                .spreads
                .as_deref()
                .map_or_else(|| Units::none(&mlp), |spreads| Units::of_file(&mlp, spreads)),
            PruneRows::Samples(data) => Units::of(&mlp, data, None),
            PruneRows::Labelled { train, .. } => Units::of(&mlp, &train.data, Some(train)),
        };
        units.apply(&mut mlp, source.is_imported && !options.raw);
        let (stored, task) = (source.model.view()?.task(), source.model.task()?);
        Ok(Self { mlp, units, stored, task, epochs: 0 })
    }

    fn dense(start: &DenseStart, rows: &PruneRows, options: &PruneOptions) -> Result<Self> {
        let PruneRows::Labelled { train, test, .. } = rows else { return Err(check::no_rows()) };
        check::check_dense(&start.hidden)?;
        // The only row of a class may be one that is scored.
        let outputs = train.network_outputs().max(test.network_outputs());
        let widths = [&[train.data.cols], &start.hidden[..], &[outputs]].concat();
        // Weights, what Adam remembers of them, their gradients, and copies.
        let bytes = 40 * weights_between(&widths) as u64;
        room_for("the dense network", bytes, "choose fewer --hidden")?;
        let mut mlp = Mlp::dense(&widths, options.seed)?;
        let units = Units::of(&mlp, &train.data, Some(train));
        units.enter(&mut mlp);
        let (stored, task) = (None, Some(train.task));
        Ok(Self { mlp, units, stored, task, epochs: start.epochs })
    }
}

/// What all steps have in common.
struct Run<'a> {
    options: &'a PruneOptions,
    nnz: Option<usize>,
    units: Units,
    task: Option<wire::Task>,
    train: Option<FitRows>,
    /// Rows to score on, as the model file takes them.
    test: Option<Problem>,
    stop: &'a Stop,
    done: u32,
    planned: u32,
    observe: &'a mut dyn FnMut(&EpochProgress),
}

fn run(
    begun: Begun,
    rows: PruneRows,
    options: &PruneOptions,
    stop: &Stop,
    mut observe: impl FnMut(&EpochProgress),
) -> Result<PruneOutcome> {
    let began = Instant::now();
    let Begun { mut mlp, units, stored, task, epochs: dense_epochs } = begun;
    let labelled = matches!(rows, PruneRows::Labelled { .. });
    let dense = mlp.counted().iter().map(|layer| layer.weights.len() + layer.bias.len());
    let nnz = options.nnz.map(|nnz| nnz.count(dense.sum(), 1)).transpose()?;
    let hidden = hidden(&mlp, &options.neurons, nnz.filter(|_| labelled))?;
    let cuts_neurons = hidden != mlp.hidden();
    let cuts_inputs = options.inputs.is_some_and(|inputs| inputs < mlp.layers[0].inputs);
    let default = if labelled { Structured::Lasso } else { Structured::Norm };
    let structured = options.structured.unwrap_or(default);
    check::check(&mlp, &hidden, structured, &rows, options)?;
    // Without training the most is known once groups are cut.
    let trains = labelled && options.epochs != Some(0);
    if let Some(nnz) = nnz.filter(|_| trains) {
        let most = check::most_trained(&mlp, &hidden, options);
        check::check_nnz(&mlp, &hidden, nnz, most, options)?;
    }
    let structured = (cuts_neurons || cuts_inputs).then_some(structured);

    let mut run = Run {
        options,
        nnz,
        units,
        task: stored,
        train: None,
        test: None,
        stop,
        done: 0,
        planned: 0,
        observe: &mut observe,
    };
    let mut samples = None;
    let (mut trained_on, mut scored_on) = (0, None);
    let mut task = task;
    match rows {
        PruneRows::None => {}
        PruneRows::Samples(data) => samples = Some(data),
        PruneRows::Labelled { train, test, scored_on: what } => {
            task = Some(train.task);
            run.task = stored.or(Some(match train.task {
                Task::Binary => Task::LOG_ODDS,
                task => task.stored(),
            }));
            (trained_on, scored_on) = (train.data.rows, Some(what));
            run.train = Some(run.units.rows(&mlp, train, run.task)?);
            let mut test = test;
            if test.data.cols > mlp.layers[0].inputs {
                test.data.take_column(mlp.layers[0].inputs)?;
            }
            run.test = Some(test);
        }
    }
    let uses_lasso = structured == Some(Structured::Lasso);
    let batches = trained_on.div_ceil(options.batch.max(1));
    let epochs = |asked: Option<u32>, does: bool| match does {
        true => asked.unwrap_or_else(|| schedule::epochs(batches)),
        false => 0,
    };
    let lasso_epochs = epochs(options.lasso_epochs, uses_lasso);
    let epochs = epochs(options.epochs, run.train.is_some());
    run.planned = dense_epochs + lasso_epochs + epochs;

    if dense_epochs > 0 {
        // What no model holds is refused before it is trained.
        run.encode(&mlp)?;
        let epochs = Epochs { rate: LASSO_RATE, falls: true, count: dense_epochs, before: 0 };
        run.fit(&mut mlp, epochs, &[], None)?;
    }
    let before = run.score(&mlp)?;
    let whole = mlp.clone();
    if uses_lasso {
        let lasso = GroupLasso {
            options: options.lasso,
            has_ones: mlp.has_ones,
            with_neurons: cuts_neurons,
            with_inputs: cuts_inputs,
        };
        let epochs =
            Epochs { rate: LASSO_RATE, falls: false, count: lasso_epochs, before: dense_epochs };
        run.fit(&mut mlp, epochs, &[], Some(lasso))?;
    }
    let mut fitted_rows = None;
    match structured {
        Some(Structured::Greedy) if cuts_neurons => {
            let own;
            let rows = match (&samples, &run.train) {
                (Some(data), _) => {
                    own = run.units.samples(&mlp, data)?;
                    &own
                }
                (None, Some(train)) => train,
                (None, None) => return Err(check::no_rows()),
            };
            fitted_rows = Some(rows.set.data.rows);
            greedy::select(&mut mlp, &hidden, rows, stop)?;
        }
        Some(_) => {
            let norms: Vec<_> = (0..hidden.len()).map(|l| scores::group_norms(&mlp, l)).collect();
            for (l, (norms, &count)) in norms.iter().zip(&hidden).enumerate() {
                mlp.keep_neurons(l, &select::largest(norms, count));
            }
        }
        None => {}
    }
    if let Some(count) = options.inputs.filter(|_| cuts_inputs) {
        mlp.keep_inputs(&select::largest(&scores::input_norms(&mlp), count));
    }
    mlp.compact();
    if let Some(nnz) = nnz.filter(|_| !trains) {
        check::check_nnz(&mlp, &hidden, nnz, check::most_untrained(&mlp)?, options)?;
    }

    let mut once = mlp.clone();
    let missing = if trains { Missing::Regrown } else { Missing::Refused };
    run.cut(&mut once, missing)?;
    let pruned = run.score(&once)?;
    let rounds = run.rounds(&mlp, epochs);
    let groups = mlp.clone();
    if epochs > 0 {
        run.fit(&mut mlp, run.tuning(epochs, dense_epochs + lasso_epochs), &rounds, None)?;
        mlp.compact();
    } else {
        mlp = once;
    }
    let model = run.encode(&mlp)?;
    let score = run.score(&mlp)?;

    let mut report = PruneReport {
        structured,
        task,
        widths_before: whole.widths(),
        widths: mlp.widths(),
        inputs_read_before: whole.inputs_read().len(),
        inputs_read: mlp.inputs_read().len(),
        nnz_before: whole.nnz(),
        requested_nnz: nnz,
        nnz: mlp.nnz(),
        biases: mlp.layers.iter().flat_map(|layer| &layer.bias).filter(|&&b| b != 0.0).count(),
        dead_weights: mlp.dead_weights(),
        samples: trained_on,
        scored_on,
        scored_samples: run.test.as_ref().map_or(0, |test| test.data.rows),
        loss_kind: score.as_ref().map(|score| score.loss_kind),
        loss_before: before.as_ref().map(|score| score.loss),
        accuracy_before: before.as_ref().and_then(|score| score.accuracy),
        psnr_db_before: before.as_ref().and_then(|score| score.psnr_db),
        loss_pruned: pruned.as_ref().map(|score| score.loss),
        accuracy_pruned: pruned.as_ref().and_then(|score| score.accuracy),
        psnr_db_pruned: pruned.as_ref().and_then(|score| score.psnr_db),
        loss: score.as_ref().map(|score| score.loss),
        accuracy: score.as_ref().and_then(|score| score.accuracy),
        psnr_db: score.as_ref().and_then(|score| score.psnr_db),
        lasso: uses_lasso.then_some(options.lasso),
        dense_epochs,
        lasso_epochs,
        epochs,
        rounds,
        scratch: None,
        scratch_pruned: None,
        unstructured: None,
        notes: Vec::new(),
        seconds: 0.0,
        seed: options.seed,
    };
    if options.compare && epochs > 0 {
        run.compare(&mut report, &whole, &groups)?;
    }
    let asked = Asked {
        hidden: matches!(options.neurons, Neurons::Each(_)).then_some(hidden.as_slice()),
        grouped: &groups.hidden(),
        inputs: options.inputs.filter(|_| cuts_inputs),
        rows: fitted_rows,
        has_path: mlp.has_path(),
        constant: run.test.as_ref().map(Quality::of_constant),
        is_compared: options.compare,
    };
    report.notes = notes(&report, &asked);
    report.seconds = began.elapsed().as_secs_f64();
    Ok(PruneOutcome { model, report })
}

/// The rate of Adam before anything is cut and under the group lasso.
const LASSO_RATE: f32 = 1e-3;

/// Epochs of a training.
#[derive(Debug, Clone, Copy)]
struct Epochs {
    rate: f32,
    falls: bool,
    count: u32,
    /// Epochs before.
    before: u32,
}

impl Run<'_> {
    /// The model of a network.
    fn encode(&self, mlp: &Mlp) -> Result<Vec<u8>> {
        let mut mlp = mlp.clone();
        self.units.undo(&mut mlp);
        mlp.encode(self.task)
    }

    /// The score of its model.
    fn score(&self, mlp: &Mlp) -> Result<Option<Score>> {
        let Some(test) = &self.test else { return Ok(None) };
        ModelFile::from_bytes(&self.encode(mlp)?)?.score_on(test).map(Some)
    }

    /// Leaves the nonzeros asked for, at once.
    fn cut(&self, mlp: &mut Mlp, missing: Missing) -> Result<()> {
        let Some(nnz) = self.nnz else { return Ok(()) };
        select::keep_weights(mlp, scores::magnitudes, nnz, missing)?;
        mlp.compact();
        Ok(())
    }

    /// Nonzeros of each round of fine-tuning.
    fn rounds(&self, mlp: &Mlp, epochs: u32) -> Vec<usize> {
        let Some((nnz, rows)) = self.nnz.zip(self.train.as_ref()) else { return Vec::new() };
        let rounds = schedule::rounds(rows.set.data.rows.div_ceil(self.options.batch));
        schedule::counts(mlp.nnz(), nnz, rounds * epochs as usize)
    }

    /// Epochs of fine-tuning.
    fn tuning(&self, count: u32, before: u32) -> Epochs {
        Epochs { rate: self.options.rate, falls: true, count, before }
    }

    fn fit(
        &mut self,
        mlp: &mut Mlp,
        epochs: Epochs,
        counts: &[usize],
        lasso: Option<GroupLasso>,
    ) -> Result<()> {
        let Self { options, train, stop, done, planned, observe, .. } = self;
        let Some(rows) = train else { return Err(check::no_rows()) };
        let fit = Fit {
            rows,
            rate: epochs.rate,
            falls: epochs.falls,
            epochs: epochs.count,
            batch: options.batch,
            seed: options.seed,
            before: epochs.before,
            counts,
            lasso,
            stop,
        };
        fit.run(mlp, &mut |loss| {
            *done += 1;
            observe(&EpochProgress { epoch: *done, epochs: *planned, best: loss as f32 });
        })
    }

    /// Trains the networks to compare with.
    fn compare(&mut self, report: &mut PruneReport, whole: &Mlp, groups: &Mlp) -> Result<()> {
        let PruneReport { dense_epochs, lasso_epochs, epochs, .. } = *report;
        let first_epochs = dense_epochs + lasso_epochs;
        if report.structured.is_none() {
            return Ok(());
        }
        let all = first_epochs + epochs;
        let fresh = groups.fresh(self.options.seed)?;
        let mut dense = fresh.clone();
        self.fit(&mut dense, self.tuning(all, 0), &[], None)?;
        report.scratch = Some(self.compared(dense, all)?);
        if self.nnz.is_some_and(|nnz| nnz < fresh.nnz()) {
            let mut pruned = fresh;
            let first = Epochs { falls: false, ..self.tuning(first_epochs, 0) };
            self.fit(&mut pruned, first, &[], None)?;
            let rounds = self.rounds(&pruned, epochs);
            self.fit(&mut pruned, self.tuning(epochs, first_epochs), &rounds, None)?;
            report.scratch_pruned = Some(self.compared(pruned, all)?);
            // As long as groups are trained: under the lasso, and behind it.
            let (mut alone, epochs) = (whole.clone(), all - dense_epochs);
            let rounds = self.rounds(&alone, epochs);
            self.fit(&mut alone, self.tuning(epochs, dense_epochs), &rounds, None)?;
            report.unstructured = Some(self.compared(alone, epochs)?);
        }
        Ok(())
    }

    fn compared(&self, mut mlp: Mlp, epochs: u32) -> Result<Compared> {
        mlp.compact();
        let quality = self.score(&mlp)?.as_ref().map(Quality::of).unwrap_or_default();
        Ok(Compared { widths: mlp.widths(), nnz: mlp.nnz(), epochs, quality })
    }
}

/// What the last input of the model is: as the data say, where there are some.
fn last_input(source: &PruneSource, rows: &PruneRows) -> Result<LastInput> {
    let data = match rows {
        PruneRows::None => return Ok(source.last),
        PruneRows::Samples(data) => data,
        PruneRows::Labelled { train, .. } => &train.data,
    };
    let inputs = source.model.cost()?.inputs;
    if data.cols + 1 == inputs && source.last != LastInput::Varies {
        return Ok(LastInput::Ones);
    }
    source.model.check_columns(data)?;
    Ok(if ends_in_ones(data) { LastInput::Ones } else { LastInput::Varies })
}

/// Whether the last column is 1 in every row, of several.
fn ends_in_ones(data: &Matrix) -> bool {
    use crate::data::Values;
    let last = data.cols.saturating_sub(1);
    last > 0
        && match &data.values {
            Values::F32(values) => values.iter().skip(last).step_by(data.cols).all(|&x| x == 1.0),
            Values::U8(values) => values.iter().skip(last).step_by(data.cols).all(|&x| x == 1),
        }
}

/// Neurons that stay in each hidden layer; by themselves as suits so many nonzeros.
fn hidden(mlp: &Mlp, neurons: &Neurons, nnz: Option<usize>) -> Result<Vec<usize>> {
    let own = mlp.hidden();
    match (neurons, nnz) {
        (Neurons::Each(each), _) => {
            check::check_widths(&own, each)?;
            Ok(each.clone())
        }
        (Neurons::Auto, Some(nnz)) => Ok(widths::automatic(&mlp.widths(), nnz)),
        (Neurons::All | Neurons::Auto, _) => Ok(own),
    }
}
