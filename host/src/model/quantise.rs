//! A model of floats to one of integers: scales from rows, rounded weights, and what it costs in
//! accuracy.
//!
//! ```text
//! View ─> round::layers_of ─> scales ─> Sparse<f32> ─> rounded, prune ─> build::Built ─> file
//!                                            └─ tune: rounds, predicts, moves the floats ─┘
//! ```

mod biases;
mod build;
mod round;
mod scales;
mod tune;

use serde::Serialize;
use tamis::infer::model::Model as FloatModel;
use tamis::infer::quantised::Layer;
use tamis::store::wire::{self, Choice, QuantisedView, View};

use self::biases::Fixed;
use self::build::{Built, Frame, predict_bytes};
use self::round::{Sparse, layers_of, prune};
pub use self::scales::Granularity;
use self::scales::{
    ColumnScales, InputScale, activations, by_largest, cuts, fitting, fraction_cut, given,
    input_scale, mean_squares, means, searched, spread,
};
pub use self::tune::{EpochProgress, TuneOptions, TuneReport};
use crate::base::file::Aligned;
use crate::data::{Matrix, Task, Values};
use crate::model::predict::predict_rows;
use crate::model::{ModelFile, Score};
use crate::operator::Stop;
use crate::{Error, Result};

/// Fractions of the activations that are not cut, from which the best is chosen.
const FRACTIONS: [f64; 6] = [1.0, 0.9999, 0.9995, 0.999, 0.995, 0.99];

/// What is cut of either tail of each column, from which the best is chosen.
const TAILS: [f64; 4] = [0.0, 0.001, 0.005, 0.02];
/// Scales for each input or each neuron are for errors below this share of that with one scale.
const WORTH: f64 = 0.5;
/// An error of this share of the outputs' variance is small enough for one scale a layer.
const SMALL: f64 = 1e-3;
/// What cannot be done with one scale must be good with several: to this share of the outputs' power.
const GOOD: f64 = 0.01;

/// How to make integers of a model.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct QuantiseOptions {
    /// Scales of the weights; none for one of each layer, or of each neuron where the former change
    /// the outputs by more than 0.1 % of their variance and the latter by at most half of that.
    pub granularity: Option<Granularity>,
    /// Fraction of the activations that is not cut; none for the one with the least error of the
    /// outputs.
    pub fraction: Option<f64>,
    /// How the weights are held.
    pub choice: Choice,
    /// How the weights are trained as they will be rounded, which needs labels; none for not at
    /// all.
    pub tune: Option<TuneOptions>,
}

/// What became of one layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuantisedLayer {
    /// How its weights are held.
    pub encoding: &'static str,
    /// Numbers that it takes.
    pub inputs: usize,
    /// Numbers that it gives.
    pub outputs: usize,
    /// Weights that are not 0.
    pub nnz: usize,
    /// Weights of the floats that lie beyond the ends of their scale, because that makes the error
    /// of all least.
    pub weights_cut: usize,
    /// Bytes with everything.
    pub flash_bytes: usize,
}

/// What was done; the fields are the keys of the command line's JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QuantiseReport {
    /// Rows that the scales come from.
    pub samples: usize,
    /// Scales of the weights.
    pub granularity: Granularity,
    /// Fraction of the activations that is not cut.
    #[serde(rename = "part")]
    pub fraction: f64,
    /// Fraction of the activations above 0 that are cut, on the rows that the scales were chosen
    /// on.
    #[serde(rename = "part_cut")]
    pub fraction_cut: f64,
    /// Whether each input has a scale and a zero of its own; the two below are 1 and 0 then.
    pub input_columns: bool,
    /// What a step of an input byte stands for.
    pub input_scale: f32,
    /// The byte that stands for 0.
    pub input_zero: u8,
    /// Whether the data are bytes as they are, without rounding.
    pub bytes_as_they_are: bool,
    /// Biases of 32 bits, made of biases, and of weights from a last input that is 1 in every row.
    pub biases: usize,
    /// Nonzeros before.
    pub nnz_before: usize,
    /// Nonzeros: weights that are rounded to 0, and those of neurons without use, are left out.
    pub nnz: usize,
    /// Bytes of the model before.
    pub model_bytes_before: usize,
    /// PSNR of the outputs against those before, in dB; none where they are all 0.
    pub outputs_psnr_db: Option<f64>,
    /// The score before, where there are labels.
    pub before: Option<Score>,
    /// The score of integers before they were tuned, where they were.
    pub untuned: Option<Score>,
    /// What tuning did.
    pub tune: Option<TuneReport>,
    /// The score.
    pub after: Option<Score>,
    /// Layer by layer.
    pub layers: Vec<QuantisedLayer>,
}

/// A model of integers and how it was made.
#[derive(Debug, Clone, PartialEq)]
pub struct QuantiseOutcome {
    /// The bytes of a `.tamis` file.
    pub model: Vec<u8>,
    /// What was done.
    pub report: QuantiseReport,
}

/// A model of integers without tuning, and what it is made of.
struct Choosing {
    /// Floats with their scales, and which of two each layer has.
    layers: Vec<Sparse<f32>>,
    which: Vec<usize>,
    granularity: Granularity,
    input: InputScale,
    columns: Option<ColumnScales>,
    fraction: f64,
    fraction_cut: f64,
    cuts: Vec<f32>,
    biased: usize,
    /// Squared error of the outputs on the rows of the choice.
    error: f64,
    bytes: Vec<u8>,
}

/// Makes a model of integers of `model`, with scales from the rows of `data`, and compares the two;
/// `labels` with a task score both. Runs on the current rayon pool.
///
/// # Errors
/// The model is one of integers, has a layer without relu before the last, or weights or
/// activations of which no scale can be made: all 0, not finite, or cut in more than a twentieth;
/// the data do not fit it; or it is to be tuned without labels.
pub fn quantise(
    model: &ModelFile,
    data: &Matrix,
    labels: Option<(Task, &[f32])>,
    options: &QuantiseOptions,
) -> Result<QuantiseOutcome> {
    quantise_until(model, data, labels, options, &Stop::new(), |_| true)
}

/// The same, with tuning that `stop` ends, or `observe`, which is called after each epoch, by
/// returning `false`: the best model until then is the result.
///
/// # Errors
/// As [`quantise`].
pub fn quantise_until(
    model: &ModelFile,
    data: &Matrix,
    labels: Option<(Task, &[f32])>,
    options: &QuantiseOptions,
    stop: &Stop,
    observe: impl FnMut(&EpochProgress) -> bool,
) -> Result<QuantiseOutcome> {
    let model = &model.in_rows()?;
    let view = model.view()?;
    let exact = model.predict(data)?;
    if data.rows == 0 {
        let what = "there are no rows to find scales from";
        return Err(Error::new(what).help("pass rows like those in use"));
    }
    let (plain, signs) = layers_of(view.model(), Fixed::of(data))?;
    let chosen = Chooser::new(&view, data, &signs, options)?.best(&plain)?;
    let score = |predictions: &[f32]| -> Result<Option<Score>> {
        labels.map(|(task, labels)| model.score(task, labels, predictions)).transpose()
    };
    let weights_cut: Vec<usize> = chosen.layers.iter().map(Sparse::cut).collect();
    let (mut bytes, mut untuned, mut tuned) = (chosen.bytes, None, None);
    if let Some(tune) = &options.tune {
        let Some((task, labels)) = labels else {
            return Err(Error::new("tuning needs labels").help("pass the labels of the rows"));
        };
        untuned = score(&predict_bytes(&bytes, data)?)?;
        let columns = chosen.columns.as_ref();
        let frame = Frame { input: chosen.input, columns, cuts: &chosen.cuts, task: view.task() };
        let (layers, choice) = (chosen.layers, options.choice);
        let start = tune::Start { layers, signs, frame, bytes, choice };
        let rows = tune::Rows { data, task, labels };
        let (best, report) = tune::tune(start, rows, tune, stop, observe)?;
        (bytes, tuned) = (best, Some(report));
    }
    let predictions = predict_bytes(&bytes, data)?;
    let peak = exact.iter().fold(0.0_f64, |peak, y| peak.max(f64::from(y.abs())));
    let mean = squared_error(&exact, &predictions) / exact.len().max(1) as f64;
    let aligned = Aligned::new(&bytes);
    let made = QuantisedView::parse(&aligned)?;
    let layer = |(layer, weights_cut): (&Layer<'_>, usize)| QuantisedLayer {
        encoding: layer.weights().encoding().name(),
        inputs: layer.inputs(),
        outputs: layer.outputs(),
        nnz: layer.weights().nonzeros(),
        weights_cut,
        flash_bytes: wire::layer_len(layer, Choice::Keep),
    };
    let layers: Vec<_> = made.model().layers().iter().zip(weights_cut).map(layer).collect();
    let report = QuantiseReport {
        samples: data.rows,
        granularity: chosen.granularity,
        fraction: chosen.fraction,
        fraction_cut: chosen.fraction_cut,
        input_scale: chosen.input.scale,
        input_zero: chosen.input.zero,
        input_columns: chosen.columns.is_some(),
        bytes_as_they_are: chosen.input.exact,
        biases: chosen.biased,
        nnz_before: view.model().cost().nonzeros,
        nnz: layers.iter().map(|layer| layer.nnz).sum(),
        model_bytes_before: view.encoded_len(),
        outputs_psnr_db: crate::model::score::psnr_db(peak, mean),
        before: score(&exact)?,
        untuned,
        tune: tuned,
        after: score(&predictions)?,
        layers,
    };
    Ok(QuantiseOutcome { model: bytes, report })
}

/// What scales are chosen by: the error of the outputs on some rows.
struct Chooser<'a> {
    view: &'a View<'a>,
    options: &'a QuantiseOptions,
    data: &'a Matrix,
    signs: &'a Option<Vec<bool>>,
    /// At most a few thousand of the rows.
    few: Matrix,
    /// What the hidden layers give on these.
    given: Vec<Matrix>,
    wanted: Vec<f32>,
    /// Scales of weights and inputs that are tried.
    granularity: Granularity,
    columns: Option<ColumnScales>,
}

impl<'a> Chooser<'a> {
    fn new(
        view: &'a View<'a>,
        data: &'a Matrix,
        signs: &'a Option<Vec<bool>>,
        options: &'a QuantiseOptions,
    ) -> Result<Self> {
        let (model, few): (&FloatModel<'_>, _) = (view.model(), spread(data));
        let given = given(model, &few, model.layers().len() - 1)?;
        let wanted = predict_rows(model, &few)?;
        let granularity = options.granularity.unwrap_or_default();
        Ok(Self { view, options, data, signs, few, given, wanted, granularity, columns: None })
    }

    /// The best with one scale a layer, or with one a neuron where that is asked for, or makes an
    /// error that counts a good deal less.
    fn best(mut self, plain: &[Sparse<f32>]) -> Result<Choosing> {
        let coarse = self.best_columns(plain);
        let small = |coarse: &Choosing| coarse.error <= SMALL * self.variance();
        if self.options.granularity.is_some() || coarse.as_ref().is_ok_and(small) {
            return coarse;
        }
        self.granularity = Granularity::PerNeuron;
        let fine = self.best_columns(plain);
        self.worthwhile(coarse, fine)
    }

    /// The best with one scale for all inputs, or where a scale for each makes the error of the
    /// outputs a good deal less, with these: with some of the tails of each column cut or none.
    fn best_columns(&mut self, plain: &[Sparse<f32>]) -> Result<Choosing> {
        self.columns = None;
        let mut best = self.best_scales(plain);
        if best.as_ref().is_ok_and(|best| best.input.exact) {
            return best;
        }
        let mut several = None;
        for tail in TAILS {
            self.columns = ColumnScales::of(self.data, tail);
            let Some(columns) = &self.columns else { continue };
            let mut layers = plain.to_vec();
            for row in layers.iter_mut().take(1).flat_map(|first| &mut first.rows) {
                row.iter_mut().for_each(|(column, w)| *w *= columns.scales[*column]);
            }
            let next = self.best_scales(&layers);
            several = Some(match several {
                Some(several) => better(several, next, 1.0),
                None => next,
            });
        }
        if let Some(several) = several {
            best = self.worthwhile(best, several);
        }
        best
    }

    /// What has several scales in place of one, where its error is so much less.
    fn worthwhile(&self, one: Result<Choosing>, several: Result<Choosing>) -> Result<Choosing> {
        let power = || self.wanted.iter().map(|&y| f64::from(y).powi(2)).sum::<f64>();
        match (&one, &several) {
            (Err(_), Ok(several)) if several.error > GOOD * power() => one,
            _ => better(one, several, WORTH),
        }
    }

    /// The sum of the squared distances of the outputs from their means.
    fn variance(&self) -> f64 {
        let outputs = self.view.model().outputs();
        let wanted =
            Matrix { rows: self.few.rows, cols: outputs, values: Values::F32(self.wanted.clone()) };
        let (mean, squares) = (means(&wanted, |y| y), mean_squares(&wanted));
        let variances = mean.iter().zip(&squares).map(|(mean, square)| square - mean * mean);
        variances.sum::<f64>() * self.few.rows as f64
    }

    /// The best of scales by the largest weights, of least error, and of both layer by layer.
    fn best_scales(&self, plain: &[Sparse<f32>]) -> Result<Choosing> {
        let granularity = self.granularity;
        let mut inputs = mean_squares(&self.few);
        if let Some(columns) = &self.columns {
            let each = inputs.iter_mut().zip(&columns.scales);
            each.for_each(|(square, &scale)| *square /= f64::from(scale).powi(2));
        }
        let squares = std::iter::once(inputs).chain(self.given.iter().map(mean_squares));
        let both = |((layer, squares), unit): ((&Sparse<f32>, Vec<f64>), f32)| {
            [by_largest(layer, granularity), searched(layer, granularity, &squares)]
                .map(|scales| fitting(scales, layer, unit))
        };
        let scales: Vec<_> = plain.iter().zip(squares).zip(self.units(plain)?).map(both).collect();
        let made = |which: Vec<usize>| {
            let mut layers = plain.to_vec();
            for ((layer, scales), &which) in layers.iter_mut().zip(&scales).zip(&which) {
                layer.scales.clone_from(&scales[which]);
            }
            self.choose(layers, which)
        };
        let n = plain.len();
        let mut best = made(vec![0; n]);
        let differ: Vec<usize> = (0..n).filter(|&at| scales[at][0] != scales[at][1]).collect();
        if !differ.is_empty() {
            best = better(best, made(vec![1; n]), 1.0);
        }
        for &at in differ.iter().filter(|_| differ.len() > 1) {
            let mut which = best.as_ref().map_or(vec![0; n], |best| best.which.clone());
            which[at] = 1 - which[at];
            best = better(best, made(which), 1.0);
        }
        best
    }

    /// What a 1 of the inputs of each layer stands for, at least.
    fn units(&self, plain: &[Sparse<f32>]) -> Result<Vec<f32>> {
        let first = match &self.columns {
            Some(_) => 1.0,
            None => input_scale(self.data, plain)?.scale,
        };
        let all: Vec<Vec<usize>> = self.given.iter().map(|of| (0..of.cols).collect()).collect();
        let least = FRACTIONS.iter().copied().fold(1.0, f64::min);
        let least = self.options.fraction.unwrap_or(least);
        let cuts = cuts(&activations(&self.given, &all)?, least)?;
        Ok(std::iter::once(first).chain(cuts.iter().map(|cut| cut / 255.0)).collect())
    }

    /// The best fraction of the activations for layers with these scales.
    fn choose(&self, layers: Vec<Sparse<f32>>, which: Vec<usize>) -> Result<Choosing> {
        let mut rounded: Vec<Sparse<i8>> =
            layers.iter().map(|layer| layer.rounded(false)).collect();
        let mut signs = self.signs.clone();
        let kept = prune(&mut rounded, &mut signs);
        let offsets = rounded.iter().flat_map(|layer| &layer.offsets);
        let biased = offsets.filter(|offset| **offset != 0.0).count();
        if let (Some(columns), [first, ..]) = (&self.columns, &mut rounded[..]) {
            let each = means(&self.few, |x| x).into_iter().zip(&columns.scales);
            let centres: Vec<f64> = each.map(|(mean, &scale)| mean / f64::from(scale)).collect();
            layers[0].keep_means(first, kept.first().map(Vec::as_slice), &centres);
        }
        let input = match &self.columns {
            Some(_) => InputScale { scale: 1.0, zero: 0, exact: false },
            None => input_scale(self.data, &rounded)?,
        };
        let activations = activations(&self.given, &kept)?;
        let tried = |fraction: f64| -> Result<Choosing> {
            let cuts = cuts(&activations, fraction)?;
            let columns = self.columns.as_ref();
            let frame = Frame { input, columns, cuts: &cuts, task: self.view.task() };
            let bytes =
                Built::new(&rounded, signs.as_deref(), frame)?.encode(self.options.choice)?;
            let error = squared_error(&self.wanted, &predict_bytes(&bytes, &self.few)?);
            let fraction_cut = fraction_cut(&activations, &cuts);
            let (layers, which) = (Vec::new(), Vec::new());
            Ok(Choosing {
                layers,
                which,
                granularity: self.granularity,
                input,
                columns: self.columns.clone(),
                fraction,
                fraction_cut,
                cuts,
                biased,
                error,
                bytes,
            })
        };
        let fractions = self.options.fraction.map_or(FRACTIONS.to_vec(), |one| vec![one]);
        let best = fractions.into_iter().map(tried).reduce(|best, next| better(best, next, 1.0));
        let none = || Err(Error::new("no scale was found").help("pass other rows"));
        Ok(Choosing { layers, which, ..best.unwrap_or_else(none)? })
    }
}

/// The next where its error is below this share of the best's.
fn better(best: Result<Choosing>, next: Result<Choosing>, share: f64) -> Result<Choosing> {
    match (&best, &next) {
        (Ok(one), Ok(other)) if other.error < share * one.error => next,
        (Err(_), Ok(_)) => next,
        _ => best,
    }
}

fn squared_error(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum()
}
