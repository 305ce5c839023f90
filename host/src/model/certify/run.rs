//! Certificates of two model files.

use rayon::prelude::*;
use tamis::base::rng::Rng;

use super::ascent::{Predictor, Search};
use super::bounds::{Analysis, Bound, OutputWeight};
use super::fresh::{Classes, FreshRows};
use super::input::InputBox;
use super::near::Goal;
use super::network::Network;
use super::pair::Pair;
use super::relax::{Ways, Weight};
use super::report::{Certificate, RowCertificate};
use super::spectral::{self, Norms};
use crate::base::check_setting;
use crate::base::memory::room_for;
use crate::base::statistics::median;
use crate::data::{Matrix, Values};
use crate::model::ModelFile;
use crate::model::file::Opened;
use crate::{Error, Result};

/// The boxes of a certificate.
#[derive(Debug, Clone)]
pub enum Boxes<'a> {
    /// `x ± eps` around each row, in every column.
    Around {
        /// The rows, in the columns of the models.
        rows: &'a Matrix,
        /// Half the width of a box, above 0.
        eps: f64,
        /// Boxes are cut to the numbers from the first to the second.
        range: Option<[f32; 2]>,
        /// Columns that do not move, counted from 0: a column of ones that stands for biases.
        held: &'a [usize],
    },
    /// One box, all rows of numbers from 0 to 1.
    Unit {
        /// Columns that are 1 in all of them, counted from 0.
        held: &'a [usize],
    },
}

/// How [`certify`] looks for differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CertifyOptions {
    /// The seed of random starts.
    pub seed: u64,
    /// Starts of the gradient ascent, at least 1.
    pub starts: usize,
}

impl Default for CertifyOptions {
    fn default() -> Self {
        Self { seed: 0, starts: 6 }
    }
}

/// Bounds how far `b` is from `a` on boxes: `|b(x) - a(x)|`, the largest difference of any output, as
/// [`ModelFile::predict`] gives outputs, of any row `x` of 32-bit floats in the box; with what rows of
/// `fresh` say about their distribution. `done` is told of each box that is done, on the current
/// rayon pool; the number of threads changes nothing.
///
/// Upper bounds hold for what devices compute, rounding included (`docs/certify.md`). Sources: joint
/// CROWN, Zhang et al. 2018; differences neuron by neuron, Paulsen et al. 2020 (`ReluDiff`).
///
/// # Errors
/// The models differ in inputs, outputs or task; `eps` is not a number above 0; there are no rows, or
/// they have other columns, numbers that are not finite or outside `range`; bounds overflow; there is
/// not enough memory.
///
/// ```
/// use tamis::infer::model::{Activation, Csr, Layer, Model};
/// use tamis::store::wire::{Aligned, View};
/// use tamis_host::data::{Matrix, Values};
/// use tamis_host::model::{Boxes, CertifyOptions, ModelFile, certify};
///
/// /// `relu(x_0 + weight x_1)`
/// fn model(weight: f32) -> ModelFile {
///     let values = [1.0, weight];
///     let row = Csr::new(2, &[2], &[0, 1], &values, Activation::Relu).unwrap();
///     let view = View::new(Model::new(&[Layer::Csr(row)]).unwrap());
///     let mut bytes = Aligned([0; 96]);
///     let len = view.encode(&mut bytes.0).unwrap();
///     ModelFile::from_bytes(&bytes.0[..len]).unwrap()
/// }
/// let rows = Matrix::new(1, 2, Values::F32(vec![3.0, 1.0]))?;
/// let boxes = Boxes::Around { rows: &rows, eps: 0.5, range: None, held: &[] };
/// let report = certify(&model(0.25), &model(0.5), &boxes, None, CertifyOptions::default(), &|| ())?;
/// // The difference is 0.25 x_1, and x_1 at most 1.5.
/// let row = &report.rows[0];
/// assert!(row.lower <= 0.375 && row.lower > 0.3749);
/// assert!(row.upper >= 0.375 && row.upper < 0.3751);
/// # Ok::<(), tamis_host::Error>(())
/// ```
pub fn certify(
    a: &ModelFile,
    b: &ModelFile,
    boxes: &Boxes<'_>,
    fresh: Option<&Matrix>,
    options: CertifyOptions,
    done: &(dyn Fn() + Sync),
) -> Result<Certificate> {
    let task = check_models(a, b)?;
    let (opened_a, opened_b) = (a.open()?, b.open()?);
    let regions = regions(a, boxes)?;
    if let Some(fresh) = fresh {
        check_rows(a, fresh)?;
    }
    room_for("the bounds", memory(a, b)?, "certify smaller models, use fewer --threads")?;
    let fresh = fresh.map(|fresh| FreshRows::new(a, b, fresh)).transpose()?;
    let pair = Pair::new(Network::new(&opened_a)?, Network::new(&opened_b)?);
    let norms = Norms::all(&pair);
    let classes = Classes::of(a)?.zip(Classes::of(b)?).map(|(a, _)| a);
    let job = Job { pair: &pair, norms: &norms, a: &opened_a, b: &opened_b, classes, options };
    let certified = (0..regions.len()).into_par_iter().map(|at| {
        let row = job.row(at, &regions.get(at));
        done();
        row
    });
    let rows = certified.collect::<Result<Vec<_>>>()?;
    let each = |of: &dyn Fn(&RowCertificate) -> f64| rows.iter().map(of).collect::<Vec<_>>();
    let median = |of: &dyn Fn(&RowCertificate) -> f64| median(each(of)).unwrap_or(0.0);
    let ratio = median(&RowCertificate::ratio);
    let certain = rows.iter().filter(|row| row.class_certain == Some(true)).count();
    let (eps, range) = match boxes {
        Boxes::Around { eps, range, .. } => (Some(*eps), *range),
        Boxes::Unit { .. } => (None, None),
    };
    Ok(Certificate {
        a: a.path().display().to_string(),
        b: b.path().display().to_string(),
        inputs: pair.inputs,
        outputs: pair.outputs,
        task,
        eps,
        range,
        upper: each(&|row| row.upper).into_iter().fold(0.0, f64::max),
        median_upper: median(&|row| row.upper),
        median_lower: median(&|row| row.lower),
        median_ratio: ratio.is_finite().then_some(ratio),
        class_certain: classes.map(|_| certain),
        rows,
        fresh,
    })
}

/// Whether two models have the same inputs, outputs and task; the task.
fn check_models(a: &ModelFile, b: &ModelFile) -> Result<Option<crate::data::Task>> {
    let (opened_a, opened_b) = (a.open()?, b.open()?);
    let refused = |what: &str, of_a: String, of_b: String| {
        Err(Error::new(format!("the models have different {what}"))
            .at(b.path())
            .expected(format_args!("{of_a}, as {}", a.path().display()))
            .got(of_b)
            .help("pass a model and what was made of it by tamis quantize, finetune or pruning"))
    };
    let shapes = [
        ("inputs", opened_a.inputs(), opened_b.inputs()),
        ("outputs", opened_a.outputs(), opened_b.outputs()),
    ];
    for (what, of_a, of_b) in shapes {
        if of_a != of_b {
            return refused(what, format!("{of_a} {what}"), format!("{of_b} {what}"));
        }
    }
    match (a.task()?, b.task()?) {
        (Some(of_a), Some(of_b)) if of_a != of_b => {
            refused("tasks", format!("{of_a:?}").to_lowercase(), format!("{of_b:?}").to_lowercase())
        }
        (of_a, of_b) => Ok(of_a.and(of_b)),
    }
}

/// The bytes that bounds take at the most: weights of both networks as 64-bit floats, those of their
/// difference, and for each thread what is known of each neuron.
fn memory(a: &ModelFile, b: &ModelFile) -> Result<u64> {
    const WEIGHT: usize = 120;
    const NEURON: usize = 1024;
    /// Gram matrices of spectral norms, and what they are made of.
    const NORMS: usize = 64 << 20;
    let (a, b) = (a.cost()?, b.cost()?);
    let weights = a.total.nonzeros.saturating_add(b.total.nonzeros).saturating_mul(WEIGHT);
    let neurons = a.layers.iter().chain(&b.layers).map(|layer| layer.outputs + layer.inputs);
    let known = neurons.sum::<usize>().saturating_mul(NEURON * rayon::current_num_threads());
    Ok(weights.saturating_add(known).saturating_add(NORMS) as u64)
}

fn check_rows(model: &ModelFile, rows: &Matrix) -> Result<()> {
    model.check_columns(rows)?;
    if rows.rows == 0 {
        return Err(Error::new("there are no rows")
            .mismatch("at least one row", "0 rows")
            .help("pass rows to put boxes around"));
    }
    if let Values::F32(values) = &rows.values
        && let Some(at) = values.iter().position(|value| !value.is_finite())
    {
        let (row, column) = (at / rows.cols.max(1), at % rows.cols.max(1));
        return Err(Error::new("a row has a number that is not finite")
            .expected("32-bit floats")
            .got(format_args!("{} in row {row}, column {column} (counted from 0)", values[at]))
            .help("remove the row, or replace the number"));
    }
    Ok(())
}

/// The boxes, one by one.
enum Regions<'a> {
    Around { rows: &'a Matrix, eps: f64, range: Option<[f32; 2]>, is_held: Vec<bool> },
    Unit { is_held: Vec<bool> },
}

/// A box as bounds take it, rounded outward, and as a search may use it, rounded inward.
struct Region {
    outer: InputBox,
    inner: InputBox,
    centre: Vec<f32>,
}

/// Which of the columns are held.
fn is_held(held: &[usize], columns: usize) -> Result<Vec<bool>> {
    let mut is_held = vec![false; columns];
    for &column in held {
        check_setting(
            column < columns,
            format_args!("--hold columns from 0 to {}", columns - 1),
            column,
            "count columns from 0",
        )?;
        is_held[column] = true;
    }
    Ok(is_held)
}

fn regions<'a>(model: &ModelFile, boxes: &Boxes<'a>) -> Result<Regions<'a>> {
    let (rows, eps, range, held) = match *boxes {
        Boxes::Around { rows, eps, range, held } => (rows, eps, range, held),
        Boxes::Unit { held } => {
            return Ok(Regions::Unit { is_held: is_held(held, model.open()?.inputs())? });
        }
    };
    check_rows(model, rows)?;
    let help = "a box of width 0 is a row: tamis predict compares rows";
    let is_eps = eps > 0.0 && eps <= f64::from(f32::MAX);
    check_setting(is_eps, "--eps above 0, and within the range of 32-bit floats", eps, help)?;
    let is_held = is_held(held, rows.cols)?;
    let [least, most] = range.unwrap_or([f32::MIN, f32::MAX]);
    check_setting(
        least < most,
        "--range LOW,HIGH with LOW below HIGH",
        format_args!("{least},{most}"),
        "pass the least and the largest number that an input may be",
    )?;
    for at in 0..rows.rows {
        let row = row(rows, at);
        let outside = |&(column, x): &(usize, &f32)| {
            let ends = [f64::from(*x) - eps, f64::from(*x) + eps];
            let is_far = ends.iter().any(|end| end.abs() > f64::from(f32::MAX));
            !is_held[column] && (*x < least || *x > most || (range.is_none() && is_far))
        };
        if let Some((column, x)) = row.iter().enumerate().find(outside) {
            return Err(Error::new("a row is outside the range of inputs")
                .expected(format_args!("numbers from {least} to {most}"))
                .got(format_args!("{x} in row {at}, column {column} (counted from 0)"))
                .help(
                    "pass a wider --range or a smaller --eps, or scale the rows as for training",
                ));
        }
    }
    Ok(Regions::Around { rows, eps, range, is_held })
}

fn row(rows: &Matrix, at: usize) -> Vec<f32> {
    let range = at * rows.cols..(at + 1) * rows.cols;
    match &rows.values {
        Values::F32(values) => values[range].to_vec(),
        Values::U8(values) => values[range].iter().map(|&byte| byte.into()).collect(),
    }
}

impl Regions<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Around { rows, .. } => rows.rows,
            Self::Unit { .. } => 1,
        }
    }

    fn get(&self, at: usize) -> Region {
        let (rows, eps, range, is_held) = match self {
            Self::Around { rows, eps, range, is_held } => (rows, *eps, *range, is_held),
            Self::Unit { is_held } => {
                let of = |free: f32| {
                    is_held.iter().map(|&is_held| if is_held { 1.0 } else { free }).collect()
                };
                let all = InputBox { low: of(0.0), high: of(1.0) };
                return Region { inner: all.clone(), outer: all, centre: of(0.5) };
            }
        };
        let centre = row(rows, at);
        let [least, most] = range.unwrap_or([f32::MIN, f32::MAX]);
        // `towards` is 1 outward and -1 inward.
        let ends = |towards: f64| {
            let end = |sign: f64| -> Vec<f32> {
                let moved = |column: usize, x: f32| match is_held[column] {
                    true => x,
                    false => rounded(f64::from(x) + sign * eps, sign * towards).clamp(least, most),
                };
                centre.iter().enumerate().map(|(column, &x)| moved(column, x)).collect()
            };
            InputBox { low: end(-1.0), high: end(1.0) }
        };
        Region { outer: ends(1.0), inner: ends(-1.0), centre }
    }
}

/// A 32-bit float not below a number, for a positive sign, or not above it.
fn rounded(number: f64, sign: f64) -> f32 {
    let near = number as f32;
    match f64::from(near) {
        wide if sign > 0.0 && wide < number => near.next_up(),
        wide if sign < 0.0 && wide > number => near.next_down(),
        _ => near,
    }
}

/// What the boxes of a certificate share.
struct Job<'a> {
    pair: &'a Pair,
    norms: &'a [Norms],
    a: &'a Opened<'a>,
    b: &'a Opened<'a>,
    classes: Option<Classes>,
    options: CertifyOptions,
}

/// Outputs by how far the second model may be above or below the first.
struct Reach {
    goal: Goal,
    bound: Bound,
}

impl Job<'_> {
    fn row(&self, at: usize, region: &Region) -> Result<RowCertificate> {
        let analysis = Analysis::new(self.pair, &region.outer);
        let spectral = spectral::bound(&analysis, self.norms);
        let (mut crown, mut reaches) = (0.0_f64, Vec::new());
        let is_same = self.pair.layers.last().map_or(&[][..], |layer| &layer.is_same);
        for output in (0..self.pair.outputs).filter(|&output| !is_same[output]) {
            for sign in [1.0, -1.0] {
                let weight = Weight { a: -sign, b: sign };
                let bound = |ways| analysis.above(&[OutputWeight { output, weight }], ways);
                crown = crown.max(bound(Ways::Apart).most);
                reaches.push(Reach { goal: Goal { output, sign }, bound: bound(Ways::Least) });
            }
        }
        reaches.sort_by(|x, y| y.bound.most.total_cmp(&x.bound.most));
        let difference = reaches.first().map_or(0.0, |reach| reach.bound.most.max(0.0));
        let all = [("spectral", spectral), ("crown", crown), ("difference", difference)];
        let (mut bound, mut upper) = all[2];
        for (name, value) in all {
            if value < upper {
                (bound, upper) = (name, value);
            }
        }
        if !(upper.is_finite() && analysis.is_finite()) {
            return Err(Error::new("a prediction may be too large for a 32-bit float")
                .got(format_args!("a bound of {upper:e} around row {at} (counted from 0)"))
                .help("choose a smaller --eps, or scale the data as it was for training"));
        }
        let mut search = Search {
            pair: self.pair,
            a: Predictor::new(self.a),
            b: Predictor::new(self.b),
            of: &region.inner,
            rng: Rng::new(self.options.seed, at as u64),
            best: 0.0,
        };
        search.a.predict(&region.centre)?;
        let class = self.classes.map(|classes| classes.class(&search.a.out));
        for start in 0..self.options.starts.max(1) {
            let Some(reach) = reaches.get(start % 2) else { break };
            let x = match start / 2 {
                0 => search.corner(&reach.bound.corner),
                1 => region.centre.clone(),
                _ => search.random(),
            };
            search.climb(x, reach.goal)?;
        }
        if !reaches.is_empty() {
            search.sample()?;
        }
        if search.best > upper {
            return Err(Error::new("a bound is wrong, which is an error of this program")
                .expected(format_args!(
                    "a difference of at most {upper:e} around row {at} (counted from 0)"
                ))
                .got(format_args!("{:e}, predicted with both models", search.best))
                .help("do not trust bounds of these models, and report both files and the row"));
        }
        Ok(RowCertificate {
            row: at,
            upper,
            lower: search.best,
            spectral,
            crown,
            difference,
            bound,
            class,
            class_certain: class.map(|class| self.is_certain(&analysis, class)),
        })
    }

    /// Whether both models give every row of the box this class.
    fn is_certain(&self, analysis: &Analysis<'_>, class: usize) -> bool {
        let sides =
            [(Weight { a: 1.0, b: 0.0 }, &self.pair.a), (Weight { a: 0.0, b: 1.0 }, &self.pair.b)];
        sides.into_iter().all(|(one, ends)| {
            let minus = Weight { a: -one.a, b: -one.b };
            let most = |weights: &[OutputWeight]| analysis.above(weights, Ways::Least).most;
            match (self.classes, ends.threshold) {
                (Some(Classes::Two(_)), Some([low, high])) => {
                    let of = |weight| most(&[OutputWeight { output: 0, weight }]);
                    if class == 1 { -of(minus) >= high } else { of(one) < low }
                }
                (Some(Classes::Several), _) => {
                    let others = (0..self.pair.outputs).filter(|other| *other != class);
                    others.into_iter().all(|other| {
                        let own = OutputWeight { output: class, weight: minus };
                        most(&[own, OutputWeight { output: other, weight: one }]) < 0.0
                    })
                }
                _ => false,
            }
        })
    }
}
