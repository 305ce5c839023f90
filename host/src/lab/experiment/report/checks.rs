//! Pictures and tables of parts that check the theory: what was measured, over the axes of the
//! part, beside what theory says.

use super::super::record::Record;
use super::super::spec::{Data, Directions, Method, Metric, Point};
use super::about;
use super::axes::{Axis, by_size};
use super::table::{Item, Table, listed};
use super::view::{View, number, spread};
use crate::base::statistics::{mean, median};
use crate::lab::plot::{self, Line, Measure};

/// Most pictures of one kind, and most lines in one.
const MOST: usize = 3;
const CURVES: usize = 6;

/// The axes of a part that have several values, the longest first.
fn axes(view: &View) -> Vec<Axis> {
    let part = &view.part;
    let all = [(Axis::N, &part.n), (Axis::D, &part.d), (Axis::M, &part.m), (Axis::S, &part.s)];
    let mut axes: Vec<_> = all.into_iter().filter(|(_, values)| values.len() > 1).collect();
    axes.sort_by_key(|(_, values)| std::cmp::Reverse(values.len()));
    axes.into_iter().map(|(axis, _)| axis).collect()
}

/// A name such as `s = 4`, and points that differ along the first axis only, rising.
type Family = (String, Vec<Point>);

fn families(view: &View, along: Axis) -> Vec<Family> {
    let others = axes(view).into_iter().filter(|axis| *axis != along).collect::<Vec<_>>();
    let mut points = view.part.points();
    let mut families: Vec<Family> = Vec::new();
    points.sort_by_key(|&point| along.at(point));
    for point in points {
        let name = listed(others.iter().map(|axis| axis.equals(point)));
        match families.iter_mut().find(|family| family.0 == name) {
            Some((_, points)) => points.push(point),
            None => families.push((name, vec![point])),
        }
    }
    families
}

/// The median over seeds, of fractions recovered the mean; steps that never get there are infinite.
pub(super) fn value(view: &View, method: Method, at: Point, metric: Metric) -> Option<f64> {
    let measured = |record: &Record| {
        let measured = record.solved.as_ref()?.measured.get(&metric).copied();
        measured.or((metric == Metric::Steps).then_some(f64::INFINITY))
    };
    let values: Vec<f64> = view.records_of(method, at).filter_map(measured).collect();
    if metric == Metric::Success {
        return mean(&values);
    }
    median(values).filter(|value| value.is_finite())
}

/// What one picture shows: metrics that were measured, and the theory's in dashes beside them.
struct Group {
    name: &'static str,
    unit: &'static str,
    log: bool,
    measured: &'static [Metric],
    /// Each with the place of the measured metric whose colour it has.
    theory: &'static [(Metric, usize)],
}

fn groups(view: &View, method: Method) -> Vec<Group> {
    use Metric::*;
    let group = |name, unit, log, measured, theory| Group { name, unit, log, measured, theory };
    let gates = matches!(view.part.data, Data::Gates { .. });
    let fraction = "fraction of the rows";
    match method {
        Method::Assumption => vec![
            group("gamma", fraction, false, &[Gamma], &[(GammaLimit, 0)]),
            group("eps", fraction, false, &[Eps], &[]),
        ],
        Method::Curvature => {
            let forms: &[_] = match gates {
                true => &[(AlphaLimit, 0), (BetaLimit, 1), (AlphaBound, 2), (BetaBound, 3)],
                false => &[(AlphaIndependent, 0), (BetaIndependent, 1)],
            };
            let measured: &[Metric] = &[Alpha, Beta, AlphaAligned, BetaAligned];
            vec![group("curvature", "eigenvalue", true, &measured[..forms.len()], forms)]
        }
        Method::Coverage => {
            let covered =
                group("coverage", "fraction covered", false, &[Coverage], &[(CoverageForm, 0)]);
            vec![covered, group("nearest", fraction, true, &[Nearest], &[])]
        }
        _ if view.part.data.is_random() => Vec::new(),
        Method::TrainedWeights => Vec::new(),
        _ if matches!(method, Method::SketchRatio | Method::Masked) || method.is_mask() => {
            Vec::new()
        }
        _ if method.is_sketch() => {
            vec![group("error", "mean squared error", true, &[SketchError], &[(PrintedForm, 0)])]
        }
        _ if gates => vec![group("steps", "steps", true, &[Steps], &[(StepsForm, 0)])],
        _ => vec![group("error", "median relative error", true, &[Error], &[])],
    }
}

/// Lines over the longest axis, and the losses of recoveries.
pub(super) fn curves(view: &View) -> Vec<(String, String)> {
    let mut pictures = Vec::new();
    for &method in &view.part.methods {
        if matches!(view.part.data, Data::Gates { .. }) && method.is_iterative() {
            pictures.extend(losses(view, method));
        }
        for along in axes(view).into_iter().take(1) {
            let groups = groups(view, method);
            pictures.extend(groups.iter().flat_map(|group| over(view, method, along, group)));
        }
    }
    pictures
}

/// One picture for all families where one metric is measured, else one for each; none where nothing
/// was reached.
fn over(view: &View, method: Method, along: Axis, group: &Group) -> Vec<(String, String)> {
    let part = &view.part;
    let shared = group.measured.len() == 1;
    let families = spread(families(view, along), if shared { CURVES } else { MOST });
    let values = part.points().into_iter().map(|point| along.at(point));
    let log = values.clone().max() >= values.min().map(|low| 8 * low);
    let name = along.title(part);
    let scales = [Measure { name: &name, log }, Measure { name: group.unit, log: group.log }];
    let draw = |families: &[Family], place: &str| {
        let mut lines = Vec::new();
        for (at, (name, points)) in families.iter().enumerate() {
            let mut add = |metric: Metric, label: &str, k: usize, dashed: bool| {
                let place = |&point: &Point| {
                    Some((along.at(point) as f64, value(view, method, point, metric)?))
                };
                let points: Vec<_> = points.iter().filter_map(place).collect();
                if !points.is_empty() {
                    let (label, colour) = (label.to_owned(), if shared { at } else { k });
                    lines.push(Line { label, points, colour, dashed });
                }
            };
            for (k, &metric) in group.measured.iter().enumerate() {
                let is_named = shared && !name.is_empty();
                add(metric, if is_named { name } else { metric.title() }, k, false);
            }
            for &(metric, k) in group.theory {
                // Where several families have one, the first stands for all.
                add(metric, if at == 0 { metric.title() } else { "" }, k, true);
            }
        }
        // In the legend what was measured comes first.
        lines.sort_by_key(|line| line.dashed);
        let what: Vec<&str> = group.measured.iter().take(2).map(|metric| metric.title()).collect();
        let what = what.join(" and ");
        // A title has room for one of the two; the axis has its name in any case.
        let title = match part.methods.len() {
            1 => format!("{what} over the {}{place}", along.noun(part)),
            _ => format!("{}: {what}{place}", method.title()),
        };
        (!lines.is_empty()).then(|| plot::lines(&title, scales, &lines))
    };
    let name = format!("{}-{}", method.name(), group.name);
    if shared {
        return draw(&families, "").map(|svg| (name, svg)).into_iter().collect();
    }
    let one = |family: &Family| {
        let (mut place, mut file) = (String::new(), name.clone());
        if !family.0.is_empty() {
            place = format!(", {}", family.0);
            file += &format!("-{}", family.0.replace(" = ", "").replace(", ", "-"));
        }
        draw(std::slice::from_ref(family), &place).map(|svg| (file, svg))
    };
    families.iter().filter_map(one).collect()
}

/// The losses of the first seed, step by step, each with its line of least squares.
fn losses(view: &View, method: Method) -> Option<(String, String)> {
    let axes = axes(view);
    let mut lines = Vec::new();
    for (colour, point) in spread(view.part.points(), CURVES).into_iter().enumerate() {
        let Some(solved) = view.first_seed(method, point) else { continue };
        let Some(&(_, first)) = solved.curve.first() else { continue };
        let points: Vec<(f64, f64)> =
            solved.curve.iter().map(|(step, loss)| (*step, loss / first)).collect();
        let mut label = listed(axes.iter().rev().map(|axis| axis.equals(point)));
        if let Some(rate) = solved.measured.get(&Metric::Rate) {
            let straight = solved.measured.get(&Metric::Straight).copied().unwrap_or(0.0);
            label += &format!(": {} decades a step, r² {}", number(*rate, 3), number(straight, 3));
            // A line of least squares goes through the middle of its points.
            let above = points.iter().filter(|(_, loss)| *loss > 0.0);
            let n = above.clone().count().max(1) as f64;
            let (x, y) =
                above.fold((0.0, 0.0), |sum, (x, y)| (sum.0 + x / n, sum.1 + y.log10() / n));
            let end = points.last().map_or(0.0, |(step, _)| *step);
            let fitted = [0.0, end].map(|step| (step, 10.0_f64.powf(y - rate * (step - x))));
            let points = fitted.to_vec();
            lines.push(Line { label: String::new(), points, colour, dashed: true });
        }
        lines.push(Line { label, points, colour, dashed: false });
    }
    let scales =
        [Measure { name: "step", log: false }, Measure { name: "loss over its start", log: true }];
    let svg = plot::lines(&format!("{}: loss and fitted line", method.title()), scales, &lines);
    (!lines.is_empty()).then(|| (format!("{}-loss", method.name()), svg))
}

pub(super) fn settings(view: &View) -> String {
    let part = &view.part;
    let mut facts = vec![match part.data {
        Data::Gates { generators: Directions::Patterns, weights, .. } => {
            let inputs = if weights == 1 { "one input" } else { &format!("{weights} inputs") };
            format!("standard normal rows, all sign patterns of {inputs} as generators")
        }
        Data::Gates { weights, .. } => {
            format!("standard normal rows, random generators of {weights} normal weights")
        }
        Data::Sketch { weights, .. } => {
            let law = ["1", "normal numbers", "±0.5 to ±1.5"][weights as usize];
            let moved = part.variants.iter().filter_map(|of| of.movement);
            let moved = moved.map(|by| by.to_string()).collect::<Vec<_>>().join(", ");
            let moved = if moved.is_empty() { moved } else { format!(", moved by {moved}") };
            format!("masks of s draws for weights of {law}{moved}")
        }
        Data::Masks { ref hidden, train, .. } => {
            let widths = hidden.iter().map(|width| format!("{width}-")).collect::<String>();
            format!("an untrained network 784-{widths}10; IMP on {train} pictures of each digit")
        }
        _ => about::settings(view)
            .unwrap_or_else(|| "Gaussian measurements of vectors with normal entries".into()),
    }];
    let axes = [(Axis::N, part.n.len()), (Axis::D, part.d.len()), (Axis::S, part.s.len())];
    for at in part.points().into_iter().take(1) {
        let fixed = axes.into_iter().filter(|(axis, len)| *len < 2 && axis.at(at) > 0);
        facts.extend(fixed.map(|(axis, _)| axis.equals(at)));
    }
    facts.extend((part.epochs > 0).then(|| format!("at most {} steps", part.epochs)));
    facts.extend(part.inflation.map(|times| format!("iterates of {times} s nonzeros")));
    facts.extend(part.draws.map(|draws| format!("{draws} draws")));
    facts.push(view.seeds());
    facts.join("; ")
}

pub(super) fn table(view: &View) -> Table {
    let part = &view.part;
    let methods = &part.methods;
    let columns: Vec<Metric> = Metric::all()
        .filter(|metric| methods.iter().any(|method| method.measures(&part.data).contains(metric)))
        .collect();
    let titles = columns.iter().map(|metric| metric.title());
    let heads = std::iter::once("method").chain(titles).chain(["seconds"]).map(str::to_owned);
    let row = |at: Point, method: Method| {
        let mut row: Vec<Item> = vec![method.title().into()];
        row.extend(columns.iter().map(|metric| {
            let measured = value(view, method, at, *metric);
            Item::from(measured.map(|value| shown(value, metric.digits().1)).unwrap_or_default())
        }));
        let seconds = median(view.solved(method, at).map(|solved| solved.seconds).collect());
        row.push(seconds.map(|seconds| number(seconds, 2)).unwrap_or_default().into());
        row
    };
    by_size(part, ["Measured", &note(view)], heads, |at| {
        methods.iter().map(|&method| row(at, method)).collect::<Vec<_>>()
    })
}

/// A number; small ones by their exponent.
pub(super) fn shown(value: f64, digits: usize) -> String {
    if digits > 0 && value != 0.0 && value.abs() < 1e-3 {
        format!("{value:.1e}")
    } else {
        number(value, digits)
    }
}

fn note(view: &View) -> String {
    let about = |method: &Method| match (method, &view.part.data) {
        (Method::Assumption, _) => {
            "eps is the fraction of the rows that the rarest gate is active on and comes to 1/2; \
             gamma is the fraction of the rows on which the two nearest gates differ and comes to \
             the smallest angle between generators over π."
        }
        (Method::Curvature, Data::Gates { .. }) => {
            "alpha and beta are extreme eigenvalues over random supports of s unit columns, and \
             over supports of the columns of one input in random neurons; with opposite gates such \
             a support has one input under h, -h, h' and -h', four columns that are dependent. \
             Lemma 1 bounds all of them by 1 ∓ (√(1 − γ) + C s/n^¼): beside them stand that with C \
             = 1, where it is above 0, and what it comes to for many rows; gamma is that of many \
             rows. (s + 1)/2 is the beta of one input where two gates share half of their rows."
        }
        (Method::Coverage, _) => {
            "A drawn neuron of as many inputs as the generators have is covered where a generator \
             has its gate on all rows. The rows cut the directions of such neurons into so many \
             regions, of each of which one generator is needed. The nearest gate is that of the \
             generator which differs from a drawn neuron on the fewest rows, on average."
        }
        (Method::Curvature, _) => {
            "alpha and beta are extreme eigenvalues over random supports of s unit columns; \
             independent ones end at (1 ∓ √(s/n))² (Marchenko and Pastur)."
        }
        (_, data) if data.is_random() => "",
        (Method::TrainedWeights, _) => "The accuracy is that of the test rows.",
        (_, Data::Masks { .. }) => {
            "Magnitudes are initial ones, uniform in ±1/√inputs of their layer; scores are those of \
             SynFlow in the dense network, |w| ∂R/∂|w|. The histograms are of the first seed."
        }
        (Method::SketchRatio, _) => {
            "The exact form of Theorem 4.4 over that of Lemma 4.5, and the same of what is printed."
        }
        (Method::SketchTangent, _) => {
            "The error is the mean of |Jᵀ(m ⊙ w) − Jᵀw|₂² over masks m; J are the derivatives of the \
             output of a network of one hidden layer and 7 inputs by its weights w."
        }
        (_, Data::Sketch { .. }) => {
            "The error is the mean of |Xᵀ(m ⊙ w) − Xᵀw|₂² over masks m, and over normal X but in \
             Lemmas 4.1 and 4.3."
        }
        (_, Data::Gates { .. }) => {
            "alpha is taken over random supports of 2 s~ + s columns, as Theorem 1 has it for \
             iterates of s~ nonzeros, and stands beside that of one input and that with opposite \
             gates; beta is the larger one of random supports and of one input. Output weights have \
             both signs. A network is recovered where the relative error is below 1e-3. Theorem 1 \
             promises steps of the order of (β/α) ln(f(0)/eps), of which the form is shown without \
             a constant, and asks for s~ = 32 (β/α)² s by the least alpha, which is none where four \
             columns are dependent."
        }
        _ => {
            "A vector is recovered where the relative error is below 1e-3; the error is the median \
             of the draws."
        }
    };
    let mut notes: Vec<&str> = view.part.methods.iter().map(about).collect();
    notes.dedup();
    let is_recovery = view.part.methods.iter().any(|of| of.is_iterative());
    let means = if is_recovery { ", of fractions recovered means" } else { "" };
    format!("Medians over seeds{means}. {}", notes.join(" ")).trim_end().to_owned()
}
