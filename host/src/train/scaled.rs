//! Training on mapped columns, to a model of at most s nonzeros for rows as they are.
//!
//! Weights and biases of the model count in s. How many biases there are is known when the network
//! is: a neuron has one whether it has a weight from the ones or not, and neurons with nothing else
//! become one bias behind them. So a training is done again with as many weights as make s, until
//! the model has exactly s, a few times at the most, and the best model is the result. Where that
//! would take long, or checkpoints or limits are set, one training leaves room for all biases.

use std::sync::Arc;

use tamis::infer::model::Layer;

use super::scaling::{Layers, Maps, Scale, Scaling};
use crate::base::Limits;
use crate::data::{Matrix, Problem, Task, Values};
use crate::model::{ModelFile, Score, score_model, score_rows};
use crate::train::check::{
    dense_weights, paths, sizes, validation_rows, weighted_outputs, weights_between,
};
use crate::train::encode::{End, encode_layers};
use crate::train::imp::check_test;
use crate::train::layer::{is_layer_by_layer, is_sum};
use crate::train::offsets;
use crate::train::ones::layers_of;
use crate::train::options::{Options, Recipe};
use crate::train::report::{
    AnnealDetails, Details, DynamicDetails, Neurons, Report, SearchDetails,
};
use crate::train::threshold;
use crate::train::trained::{Start, Trained, shuffle};
use crate::{Budget, Error, Result};
use tamis::base::bits::is_set;
use tamis::base::rng::{Permutation, stream};
use tamis::network::gates::Signs;
use tamis::store::wire;

/// Trainings at the most.
pub(crate) const TRAININGS: usize = 4;
/// Rows beyond which there is one.
const MOST_ROWS: usize = 20_000;

/// A problem on mapped columns.
pub(crate) struct Scaled {
    /// The rows mapped.
    pub(crate) problem: Problem,
    pub(crate) scale: Scale,
    maps: Maps,
    hidden: Vec<usize>,
    recipe: Recipe,
    /// Test rows of recipe `dynamic`, as they are: for the model of rows as they are.
    test: Option<Arc<Problem>>,
    /// Rows of the validation split, of which neither the maps nor the model know.
    held: usize,
    /// By which these rows are drawn.
    seed: u64,
    /// Nonzeros of the model.
    pub(crate) nnz: usize,
    /// Biases that the outputs have in any case.
    shifted: usize,
    /// Fewest weights of a training.
    least: usize,
}

/// A model for rows as they are, and its report.
struct Folded {
    model: ModelFile,
    report: Report,
    /// Nonzeros before any were taken away to be at most s.
    nnz: usize,
}

impl Scaled {
    /// The problem on mapped columns; none where they stay as they are.
    ///
    /// # Errors
    /// A map is asked for where there is none: with recipes `imp` and `masked`, pinned weights, or
    /// fewer nonzeros than a neuron with a bias takes.
    pub(crate) fn new(
        problem: &Problem,
        options: &Options,
        start: &Start<'_>,
    ) -> Result<Option<Self>> {
        problem.check()?;
        let is_asked = !matches!(options.scale, Scale::Auto | Scale::None);
        if options.scale == Scale::None {
            return Ok(None);
        }
        let (hidden, mut recipe) = options.resolve(problem)?;
        let has_units = matches!(recipe, Recipe::Dynamic(_));
        if !is_asked && !Scaling::is_needed(problem, has_units) {
            return Ok(None);
        }
        let outputs = weighted_outputs(problem);
        let maps_labels = problem.task == Task::Regression;
        let shifted = problem.classes().map_or(problem.outputs(), |classes| classes - 1);
        let budget = if has_units {
            options.budget.count(dense_weights(problem, &hidden), hidden.len() + 1)?
        } else if let [hidden] = hidden[..] {
            let Matrix { rows, cols, .. } = problem.data;
            sizes(rows, cols + 1, hidden, options.budget, outputs)?.dims.nnz
        } else {
            let ends = [problem.data.cols + 1, outputs];
            let widths = [&ends[..1], &hidden[..], &ends[1..]].concat();
            options.budget.count(weights_between(&widths), 1)?
        };
        let paths = paths(problem, &hidden);
        if has_units && budget < paths {
            // Training says so.
            return Ok(None);
        }
        let least = if has_units { paths } else { shifted + if outputs > 0 { 3 } else { 2 } };
        let refused = match (&recipe, start) {
            (Recipe::Imp(_) | Recipe::Masked(_), _) => Some(format!("recipe {}", recipe.name())),
            _ if !options.pinned.is_empty() => Some("pinned weights (--must-keep)".to_owned()),
            (_, Start::Network(_) | Start::Mask(_)) => Some("a network to start from".to_owned()),
            _ if budget < least => {
                Some(format!("{budget} nonzeros, of which a network takes {least}"))
            }
            _ => None,
        };
        match refused {
            None => {}
            Some(_) if !is_asked => return Ok(None),
            Some(got) => {
                return Err(Error::usage("columns cannot be mapped here")
                    .expected(
                        "recipe dynamic, lm, anneal or paper from nothing, without pinned weights",
                    )
                    .got(got)
                    .help("leave --scale out, or pass --scale none"));
            }
        }
        let map = |data| match options.scale {
            Scale::Minmax => Scaling::minmax(data),
            _ => Scaling::standard(data),
        };
        let is_positive = has_positive_signs(&recipe, problem);
        let is_sum = if maps_labels { is_positive } else { is_sum(problem) };
        // Layers that are trained one by one are fitted together on all rows in the end.
        let share = match is_layer_by_layer(options.layers.is_some(), is_sum, &hidden, &recipe) {
            true => 0.0,
            false => validation(&recipe),
        };
        let held = validation_rows(problem.data.rows, share)?;
        let own = training_rows(problem, held, options.seed)?;
        let known = own.as_ref().unwrap_or(problem);
        let inputs = map(&known.data);
        // Recipe `dynamic` has biases of its own.
        let has_ones = !has_units;
        let data = inputs.apply(&problem.data, has_ones)?;
        let (mut labels, mut label_map) = (problem.labels.clone(), None);
        if maps_labels {
            let (rows, cols) = (known.data.rows, problem.outputs());
            let table = Matrix::new(rows, cols, Values::F32(known.labels.clone()))?;
            let mut own = Scaling::standard(&table);
            own.factor.iter_mut().filter(|factor| **factor == 0.0).for_each(|factor| *factor = 1.0);
            if is_positive {
                // Of all rows: where the numbers of the one output begin chooses the signs.
                let least = problem.labels.iter().copied().fold(f32::INFINITY, f32::min);
                own.shift = vec![f64::from(least)];
            }
            let maps = || own.shift.iter().zip(&own.factor).cycle();
            let mapped = labels.iter_mut().zip(maps());
            mapped.for_each(|(y, (shift, f))| *y = ((f64::from(*y) - shift) * f) as f32);
            label_map = Some(own);
        }
        let scale = if is_asked { options.scale } else { Scale::Standard };
        let test = match &mut recipe {
            Recipe::Dynamic(settings) => settings.test.take(),
            _ => None,
        };
        test.as_ref().map_or(Ok(()), |test| check_test(problem, test))?;
        let least = match (&recipe, outputs) {
            (Recipe::Dynamic(_), _) => paths,
            (_, 0) => 1,
            _ => 2,
        };
        Ok(Some(Self {
            problem: Problem { data, labels, task: problem.task },
            maps: Maps { inputs, has_ones, outputs: label_map },
            scale,
            hidden,
            recipe,
            test,
            held,
            seed: options.seed,
            nnz: budget,
            shifted,
            least,
        }))
    }

    /// The options of the first training, often the only one.
    pub(crate) fn first(&self, options: &Options) -> Options {
        // Recipe `dynamic` has counted its biases.
        let counts = self.maps.has_ones && self.is_once(options, self.problem.data.rows);
        let biases = self.hidden.first().filter(|_| counts).copied().unwrap_or(0);
        self.with(options, self.nnz.saturating_sub(self.shifted + biases))
    }

    fn with(&self, options: &Options, nnz: usize) -> Options {
        Options {
            scale: Scale::None,
            budget: Budget::nnz(nnz.max(self.least)),
            hidden: if self.hidden.is_empty() { vec![0] } else { self.hidden.clone() },
            recipe: self.recipe.clone(),
            ..options.clone()
        }
    }

    /// Whether there is one training of so many rows.
    fn is_once(&self, options: &Options, rows: usize) -> bool {
        options.checkpoint.is_some()
            || options.limits != Limits::NONE
            || self.hidden.len() > 1 && !matches!(self.recipe, Recipe::Dynamic(_))
            || rows > MOST_ROWS
    }

    /// Trains by `run` until the model has s nonzeros, so many times at the most.
    pub(crate) fn train(
        mut self,
        rows: &Problem,
        options: &Options,
        most: usize,
        mut run: impl FnMut(Problem, &Options) -> Result<Trained>,
    ) -> Result<Trained> {
        let mut own = self.first(options);
        let mut best: Option<Trained> = None;
        let mut tried = Vec::new();
        let is_once = self.is_once(options, rows.data.rows) || most == 1;
        let values = Values::U8(Vec::new());
        let none = Problem {
            data: Matrix { rows: 0, cols: 0, values },
            labels: Vec::new(),
            task: rows.task,
        };
        let mapped = std::mem::replace(&mut self.problem, none);
        // The last one takes the rows themselves.
        for problem in std::iter::repeat_n(mapped, if is_once { 1 } else { most }) {
            let Budget::Nonzeros(asked) = own.budget else { break };
            tried.push(asked);
            let trained = match run(problem, &own) {
                // There is a model.
                Err(_) if best.is_some() => break,
                trained => trained?,
            };
            let (used, stopped) = (trained.report.nnz, trained.report.stopped);
            // Those of the validation split come last.
            let mut ordered = (self.held > 0).then(|| rows.clone());
            ordered.iter_mut().for_each(|rows| shuffle(rows, self.seed));
            let rows = ordered.as_ref().unwrap_or(rows);
            let Folded { model, report, nnz } = self.fold(&trained, rows)?;
            let trained = Trained { model, report, ..trained };
            if best
                .as_ref()
                .is_none_or(|best| trained.report.is_better(&best.report) || nnz == self.nnz)
            {
                best = Some(trained);
            }
            // What a training does not use it will not use the next time.
            let next = (asked + self.nnz).saturating_sub(nnz).min(self.nnz);
            let is_done = nnz == self.nnz || (used < asked && next > asked);
            if is_done || stopped || next == 0 || tried.contains(&next) {
                break;
            }
            own = self.with(options, next);
        }
        best.ok_or_else(Error::interrupted)
    }

    /// The layers for rows as they are, with the biases that the outputs lack on them.
    fn with_offsets(
        &self,
        layers: &Layers,
        rows: &Problem,
        task: Option<wire::Task>,
    ) -> Result<Layers> {
        let folded = layers.clone().fold(&self.maps, &[])?;
        let (outputs, known) = (folded.outputs(), rows.data.rows - self.held);
        let y = ModelFile::from_bytes(&encoded(folded, task)?)?.predict(&rows.data)?;
        let (y, labels) = (&y[..known * outputs], &rows.labels[..known * rows.outputs()]);
        let offsets = match rows.task {
            Task::Multiclass => offsets::of_classes(y, labels, outputs),
            Task::Binary if task == Some(Task::LOG_ODDS) => {
                vec![offsets::of_log_odds(y, labels)]
            }
            _ => offsets::of_numbers(y, labels, outputs),
        };
        layers.clone().fold(&self.maps, &offsets)
    }

    /// The model of a network that was trained on the mapped rows, of at most s nonzeros.
    fn fold(&self, trained: &Trained, rows: &Problem) -> Result<Folded> {
        let most = self.nnz;
        let view = trained.model.view()?;
        let signs = match view.model().layers().last() {
            Some(Layer::Sum(sum)) => {
                let is_minus = |j| is_set(sum.signs(), j);
                Some((0..sum.inputs()).map(is_minus).collect())
            }
            _ => None,
        };
        let mut layers = Layers { layers: layers_of(view.model())?, signs };
        let mut folded = self.with_offsets(&layers, rows, view.task())?;
        let nnz = folded.nnz();
        while folded.nnz() > most {
            let before = layers.nnz();
            layers.trim(folded.nnz() - most, rows.data.cols);
            if layers.nnz() == before {
                break;
            }
            folded = self.with_offsets(&layers, rows, view.task())?;
        }
        let live = folded.layers[0].neurons.iter().filter(|neuron| !neuron.is_empty()).count();
        let (left, biases) = (folded.nnz(), folded.biases());
        let bytes = encoded(folded, view.task())?;
        let known = rows.data.rows - self.held;
        let mut model = ModelFile::from_bytes(&bytes)?;
        if matches!(self.recipe, Recipe::Lm(_)) {
            model = threshold::of_model(&model, rows, 0..known)?;
        }
        let score = score_rows(model.bytes(), rows, 0..known)?;
        let mut details = trained.report.details.clone();
        if self.held > 0 {
            validate(&mut details, &score_rows(model.bytes(), rows, known..rows.data.rows)?);
        }
        if let Details::Dynamic(details) = &mut details {
            let test =
                self.test.as_ref().map(|test| score_model(model.bytes(), test)).transpose()?;
            details.test_loss = test.as_ref().map(|test| test.loss);
            details.test_accuracy = test.as_ref().and_then(|test| test.accuracy);
        }
        let report = Report {
            inputs: rows.data.cols,
            requested_nnz: most,
            nnz: left,
            biases,
            scale: self.scale,
            details,
            live: match &trained.report.live {
                Neurons::One(_) => Neurons::One(live),
                each => each.clone(),
            },
            ..trained.report.clone()
        };
        Ok(Folded { model, report: report.scored(&score), nnz })
    }
}

/// Share of the rows of the validation split; 0 without one.
const fn validation(recipe: &Recipe) -> f64 {
    match recipe {
        Recipe::Lm(options) => options.validation,
        Recipe::Anneal(options) => options.validation,
        Recipe::Dynamic(options) => options.validation,
        Recipe::Auto | Recipe::Paper(_) | Recipe::Imp(_) | Recipe::Masked(_) => 0.0,
    }
}

/// The rows that are not of the validation split, where there is one.
fn training_rows(problem: &Problem, held: usize, seed: u64) -> Result<Option<Problem>> {
    let rows = problem.data.rows;
    let order = Permutation::new(seed, stream::ROWS, rows);
    let chosen = || (0..rows - held).map(|k| order.get(k)).collect();
    (held > 0).then(|| problem.rows(chosen())).transpose()
}

/// Says what the rows of the validation split give, where that was said.
fn validate(details: &mut Details, score: &Score) {
    let (loss, accuracy) = match details {
        Details::Lm(SearchDetails {
            validation_loss: loss @ Some(_),
            validation_psnr_db,
            validation_accuracy,
            ..
        }) => {
            *validation_psnr_db = score.psnr_db;
            (loss, validation_accuracy)
        }
        Details::Anneal(AnnealDetails {
            validation_loss: loss @ Some(_),
            validation_accuracy: accuracy,
            ..
        })
        | Details::Dynamic(DynamicDetails {
            validation_loss: loss @ Some(_),
            validation_accuracy: accuracy,
            ..
        }) => (loss, accuracy),
        _ => return,
    };
    (*loss, *accuracy) = (Some(score.loss), score.accuracy);
}

/// The bytes of a model.
fn encoded(of: Layers, task: Option<wire::Task>) -> Result<Vec<u8>> {
    let bits = of.signs.as_ref().map(|signs| {
        let word = |signs: &[bool]| {
            signs.iter().enumerate().fold(0, |word, (k, &minus)| word | u32::from(minus) << k)
        };
        signs.chunks(32).map(word).collect::<Vec<_>>()
    });
    encode_layers(of.layers, bits.as_deref().map_or(End::Layer, End::Sum), task)
}

/// Whether neurons with positive signs alone are searched for, as for labels without negatives:
/// these stay so, with 0 for the least. They fit rows that were not seen better so than centred
/// labels do with free signs (diabetes, s = 12 and 40: R2 of .41 and .30 against .32 and below 0).
fn has_positive_signs(recipe: &Recipe, problem: &Problem) -> bool {
    let signs = match recipe {
        // It has weights of both signs.
        Recipe::Dynamic(_) => return false,
        Recipe::Lm(lm) => lm.signs,
        Recipe::Paper(paper) => Some(paper.schedule.head.signs),
        _ => None,
    };
    problem.outputs() == 1 && signs.map_or(is_sum(problem), |signs| signs == Signs::Positive)
}
