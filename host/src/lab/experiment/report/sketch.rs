//! What a part on sketched masks says of each claim of the paper, in a sentence; and the picture of
//! weights that move.

use super::super::record::Record;
use super::super::spec::{Data, Method, Metric, Point};
use super::axes::place;
use super::table::{Item, Table};
use super::view::{View, number};
use crate::base::statistics::median;
use crate::lab::plot::{self, Line, Measure};

/// Standard errors that a mean may be off; of an enumeration, in units of the error.
const SIGMAS: f64 = 4.0;
const ROUNDING: f64 = 1e-12;

/// What the paper prints, and what it is.
struct Formulas {
    printed: &'static str,
    exact: &'static str,
    /// Whether it is printed as an equality; else as a bound.
    is_equality: bool,
}

const fn formulas(claim: Method) -> Formulas {
    let (printed, exact, is_equality) = match claim {
        Method::SketchWeights | Method::SketchTangent => {
            let form = "((Σ|X_k||w_k|)² − |Xᵀw|₂²)/s";
            (form, form, true)
        }
        Method::SketchTrained => {
            let form = "(Σ|X_k|²w*_k²/p_k − |Xᵀw*|₂²)/s";
            (form, form, true)
        }
        Method::SketchNormal => ("≤ |w|₂²/s", "c(|w|₁² − |w|₂²)/s", false),
        Method::SketchUniform => ("≤ d|w*|₂²/s", "(d − 1)|w*|₂²/s", false),
        Method::SketchNormalTrained => (
            "≤ |w⁰|₁(|w* − w⁰|₂²|1/w⁰|∞ + 2|w* − w⁰|₁ + |w⁰|₁)/s",
            "c(|w⁰|₁Σw*_k²/|w⁰_k| − |w*|₂²)/s",
            false,
        ),
        _ => ("avoids the factor d", "", false),
    };
    Formulas { printed, exact, is_equality }
}

/// What was found of a claim.
struct Verdict {
    holds: bool,
    sentence: String,
    /// How far the error is from the exact form, in words.
    exact: String,
}

/// One cell of a claim.
struct Found {
    at: Point,
    error: f64,
    /// The standard error, or the rounding of an enumeration.
    unit: f64,
    exact: f64,
    printed: f64,
    repaired: Option<f64>,
}

impl Found {
    fn of(view: &View, record: &Record) -> Option<Self> {
        let measured = &record.solved.as_ref()?.measured;
        let get = |metric: Metric| measured.get(&metric).copied();
        let error = get(Metric::SketchError)?;
        let unit = get(Metric::StandardError).unwrap_or(ROUNDING / SIGMAS * error);
        Some(Self {
            at: record.cell.point(&view.part),
            error,
            unit,
            exact: get(Metric::ExactForm)?,
            printed: get(Metric::PrintedForm)?,
            repaired: get(Metric::RepairedForm),
        })
    }

    /// How far above a value the error is, in units.
    fn above(&self, value: f64) -> f64 {
        (self.error - value) / self.unit
    }
}

/// A row for each claim; none on other data.
pub(super) fn claims(view: &View) -> Table {
    let part = &view.part;
    let methods = part.methods.iter().copied().filter(|method| method.is_sketch());
    let row = |claim: Method| {
        let Verdict { holds, sentence, exact } = verdict(view, claim)?;
        let expected = if holds == part.refuted.contains(&claim) { "no" } else { "yes" };
        let Formulas { printed, exact: form, .. } = formulas(claim);
        Some([printed, form, &sentence, &exact, expected].map(Item::from).to_vec())
    };
    let note = format!(
        "A mean over drawn masks may be {SIGMAS} of its standard errors from a form, that over all \
         draws {ROUNDING:e} of it. c is E|X_j| E|X_k|, 1 for many samples. The spec says which claims \
         are expected to fail as printed."
    );
    let head =
        ["printed", "exact form", "what was measured", "beside the exact form", "as expected"];
    Table::new("Claims", note, head, methods.filter_map(row).collect())
}

fn verdict(view: &View, claim: Method) -> Option<Verdict> {
    if claim == Method::SketchRatio {
        return factor(view);
    }
    let records = view.records.iter().filter(|record| record.cell.method == claim);
    let found: Vec<Found> = records.filter_map(|record| Found::of(view, record)).collect();
    let most = |of: &dyn Fn(&Found) -> f64| found.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
    let worst = found.iter().max_by(|a, b| {
        let ratio = |own: &Found| own.error / own.printed;
        ratio(a).total_cmp(&ratio(b))
    })?;
    let off = |of: &Found, from: f64| of.above(from).abs();
    let far = most(&|own| off(own, own.exact));
    let is_enumerated = view.part.draws.is_none();
    let words = |far: f64| match is_enumerated {
        true => format!("equal to {:.0e}", (far * ROUNDING / SIGMAS).max(f64::EPSILON)),
        false => format!("within {far:.1} standard errors in {} cells", found.len()),
    };
    let exact = if far <= SIGMAS { words(far) } else { format!("{far:.1} units off") };
    let (title, is_equality) = (claim.title(), formulas(claim).is_equality);
    let beyond =
        most(&|own| if is_equality { off(own, own.printed) } else { own.above(own.printed) });
    let holds = beyond <= SIGMAS;
    // Means of draws may lie above a bound that the exact form keeps.
    let ratio = most(&|own| own.exact / own.printed);
    let sentence = match (holds, is_equality) {
        (true, true) => format!("{title} holds, as an equality."),
        (true, false) => {
            format!("{title} holds: the exact form is at most {} of the bound.", number(ratio, 3))
        }
        (false, _) => {
            let repaired =
                found.iter().all(|own| own.repaired.is_some_and(|r| own.above(r) <= SIGMAS));
            let repair = if repaired { "; with |w|₁ in place of |w|₂ it holds" } else { "" };
            let [error, printed] = [worst.error, worst.printed].map(significant);
            let at = place(&view.part, worst.at);
            format!("{title} as printed is refuted: {error} against {printed} at {at}{repair}.")
        }
    };
    Some(Verdict { holds, sentence, exact })
}

/// Three digits, whole numbers from 100 on.
fn significant(value: f64) -> String {
    let digits = 2 - value.abs().max(1e-9).log10().floor() as i32;
    number(value, digits.max(0) as usize)
}

/// The median over seeds.
fn value(view: &View, at: Point, metric: Metric) -> Option<f64> {
    let solved = view.solved(Method::SketchRatio, at);
    median(solved.filter_map(|solved| solved.measured.get(&metric).copied()).collect())
}

fn movement(view: &View, at: Point) -> f64 {
    view.part.variant(at).movement.unwrap_or(0.0)
}

/// Whether the error over that of uniform masks falls as d grows: as 1/d would be to avoid it.
fn factor(view: &View) -> Option<Verdict> {
    let points = view.part.points();
    let least = points.iter().map(|&at| movement(view, at)).fold(f64::INFINITY, f64::min);
    let still = || points.iter().filter(|&&at| movement(view, at) == least);
    let (small, large) = (still().min_by_key(|at| at.d)?, still().max_by_key(|at| at.d)?);
    let [low, high] = [small, large].map(|at| value(view, *at, Metric::UniformRatio));
    let (low, high, fall) = (low?, high?, small.d as f64 / large.d as f64);
    let holds = small.d < large.d && high <= low * fall.sqrt();
    let crossing = |d: usize| {
        let own = points.iter().filter(|at| at.d == d);
        let mut above =
            own.filter(|at| value(view, **at, Metric::UniformRatio).is_some_and(|r| r >= 1.0));
        above.next().map(|at| movement(view, *at))
    };
    let crossing = crossing(large.d).map_or(String::new(), |by| {
        format!(" From a movement of {by} on uniform masks are as good or better.")
    });
    let sentence = format!(
        "The factor d is {}: the error over that of uniform masks is {} at d = {} and {} at d = {} \
         where weights stay.{crossing}",
        if holds { "avoided" } else { "not avoided" },
        number(low, 2),
        small.d,
        number(high, 2),
        large.d,
    );
    Some(Verdict { holds, sentence, exact: String::new() })
}

/// The error over that of uniform masks, over the movement of the weights; none of other claims.
pub(super) fn movements(view: &View) -> Option<(String, String)> {
    let part = &view.part;
    let is_shown = matches!(part.data, Data::Sketch { .. }) && part.variants.len() > 1;
    if !is_shown || !part.methods.contains(&Method::SketchRatio) {
        return None;
    }
    let points = part.points();
    let mut inputs: Vec<usize> = points.iter().map(|at| at.d).collect();
    inputs.sort_unstable();
    inputs.dedup();
    let line = |(colour, d): (usize, usize)| {
        let own = points.iter().filter(|at| at.d == d);
        let points = own
            .filter_map(|&at| Some((movement(view, at), value(view, at, Metric::UniformRatio)?)));
        let mut points: Vec<(f64, f64)> = points.collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Line { label: format!("d = {d}"), points, colour, dashed: false }
    };
    let mut lines: Vec<Line> = inputs.into_iter().enumerate().map(line).collect();
    let ends = lines.first().map(|line| line.points.iter().map(|at| (at.0, 1.0)).collect());
    let label = "uniform masks".to_owned();
    lines.extend(ends.map(|points| Line { label, points, colour: 5, dashed: true }));
    let x = Measure { name: "movement of the weights, in their deviation", log: false };
    let y = Measure { name: "error over that of uniform masks", log: true };
    Some(("movement".into(), plot::lines("Masks of initial weights that move", [x, y], &lines)))
}
