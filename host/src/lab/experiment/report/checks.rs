//! Pictures and tables of parts that check the theory: what was measured, over the axes of the
//! part, beside what theory says.

use super::super::median::median;
use super::super::record::Record;
use super::super::spec::{Data, Directions, Method, Metric, Point};
use super::axes::Axis;
use super::table::{Item, Table};
use super::view::{View, number};
use crate::lab::plot::{self, Line, Measure};

/// Most pictures of one kind, and most lines of loss in one.
const MOST: usize = 3;
const CURVES: usize = 6;

/// The axes of a part that have several values, the longest first.
fn axes(view: &View) -> Vec<Axis> {
    let part = &view.part;
    let mut axes = [(Axis::N, &part.n), (Axis::D, &part.d), (Axis::M, &part.m), (Axis::S, &part.s)]
        .into_iter()
        .filter(|(_, values)| values.len() > 1)
        .collect::<Vec<_>>();
    axes.sort_by_key(|(_, values)| std::cmp::Reverse(values.len()));
    axes.into_iter().map(|(axis, _)| axis).collect()
}

/// The points of a part by all axes but the first one: a name such as `s = 4`, and the points along
/// the first axis, rising.
fn families(view: &View, axes: &[Axis]) -> Vec<(String, Vec<Point>)> {
    let mut families: Vec<(String, Vec<Point>)> = Vec::new();
    for point in view.part.points() {
        let rest = axes.iter().skip(1).map(|axis| format!("{} = {}", axis.name(), axis.at(point)));
        let name = rest.collect::<Vec<_>>().join(", ");
        match families.iter_mut().find(|(own, _)| *own == name) {
            Some((_, points)) => points.push(point),
            None => families.push((name, vec![point])),
        }
    }
    if let Some(first) = axes.first() {
        families.iter_mut().for_each(|(_, points)| points.sort_by_key(|&point| first.at(point)));
    }
    families
}

/// The first, a middle and the last.
fn spread<T>(all: Vec<T>, most: usize) -> Vec<T> {
    let (len, last) = (all.len(), all.len().saturating_sub(1));
    let chosen: Vec<usize> =
        (0..most.min(len)).map(|k| k * last / (most.min(len) - 1).max(1)).collect();
    all.into_iter().enumerate().filter(|(at, _)| chosen.contains(at)).map(|(_, one)| one).collect()
}

/// The median over seeds, of what is recovered the mean. A seed that never gets as far has
/// infinitely many steps; none where that is the median.
pub(super) fn value(view: &View, method: Method, at: Point, metric: Metric) -> Option<f64> {
    let measured = |record: &Record| {
        let found = record.solved.as_ref()?.measured.get(&metric).copied();
        found.or((metric == Metric::Steps).then_some(f64::INFINITY))
    };
    let values: Vec<f64> = view.records_of(method, at).filter_map(measured).collect();
    if metric == Metric::Success && !values.is_empty() {
        return Some(values.iter().sum::<f64>() / values.len() as f64);
    }
    median(values).filter(|value| value.is_finite())
}

/// A line of a picture.
struct Path {
    label: String,
    points: Vec<(f64, f64)>,
    colour: usize,
    dashed: bool,
}

impl Path {
    fn line(&self) -> Line<'_> {
        let Self { label, points, colour, dashed } = self;
        Line { label, points, colour: *colour, dashed: *dashed }
    }
}

/// What one picture shows: metrics that were measured, and those that stand beside them in dashes
/// with their colour.
struct Group {
    name: &'static str,
    unit: &'static str,
    log: bool,
    measured: &'static [Metric],
    /// Each with the place of the metric that it stands beside.
    beside: &'static [(Metric, usize)],
}

fn groups(view: &View, method: Method) -> Vec<Group> {
    let group = |name, unit, log, measured, beside| Group { name, unit, log, measured, beside };
    let gates = matches!(view.part.data, Data::Gates { .. });
    match method {
        Method::Assumption => vec![
            group(
                "gamma",
                "fraction of the rows",
                false,
                &[Metric::Gamma],
                &[(Metric::GammaLimit, 0)],
            ),
            group("eps", "fraction of the rows", false, &[Metric::Eps], &[]),
        ],
        Method::Curvature => vec![group(
            "curvature",
            "eigenvalue",
            true,
            if gates {
                &[Metric::Alpha, Metric::Beta, Metric::AlphaAligned, Metric::BetaAligned]
            } else {
                &[Metric::Alpha, Metric::Beta]
            },
            if gates {
                &[
                    (Metric::AlphaIndependent, 0),
                    (Metric::BetaIndependent, 1),
                    (Metric::GammaLimit, 2),
                    (Metric::BetaForm, 3),
                ]
            } else {
                &[(Metric::AlphaIndependent, 0), (Metric::BetaIndependent, 1)]
            },
        )],
        _ if gates => {
            vec![group("steps", "steps", true, &[Metric::Steps], &[(Metric::StepsForm, 0)])]
        }
        _ => vec![group("error", "median relative error", true, &[Metric::Error], &[])],
    }
}

/// Lines over the longest axis, and the losses of recoveries.
pub(super) fn curves(view: &View) -> Vec<(String, String)> {
    let mut pictures = Vec::new();
    for &method in &view.part.methods {
        if matches!(view.part.data, Data::Gates { .. }) && method.is_iterative() {
            pictures.extend(losses(view, method));
        }
        let Some(&along) = axes(view).first() else { continue };
        for group in groups(view, method) {
            pictures.extend(over(view, method, along, &group));
        }
    }
    pictures
}

/// One picture for all families where one metric is measured, else one for each.
fn over(view: &View, method: Method, along: Axis, group: &Group) -> Vec<(String, String)> {
    let families = families(view, &axes(view));
    let shared = group.measured.len() == 1;
    let families = spread(families, if shared { CURVES } else { MOST });
    let path = |points: &[Point], metric: Metric| -> Vec<(f64, f64)> {
        let at =
            |&point: &Point| Some((along.at(point) as f64, value(view, method, point, metric)?));
        points.iter().filter_map(at).collect()
    };
    let values: Vec<f64> = view.part.points().iter().map(|&point| along.at(point) as f64).collect();
    let ends =
        values.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), &v| (low.min(v), high.max(v)));
    let name = along.title(&view.part);
    let scales = [
        Measure { name: &name, log: ends.1 >= 8.0 * ends.0 },
        Measure { name: group.unit, log: group.log },
    ];
    let draw = |families: &[(String, Vec<Point>)], place: &str| {
        let mut paths = Vec::new();
        for (at, (name, points)) in families.iter().enumerate() {
            for (k, &metric) in group.measured.iter().enumerate() {
                let label = if shared && !name.is_empty() {
                    name.clone()
                } else {
                    metric.title().to_owned()
                };
                let colour = if shared { at } else { k };
                paths.push(Path { label, points: path(points, metric), colour, dashed: false });
            }
            for &(metric, k) in group.beside {
                // Where several families have one, the first stands for all.
                let label = if at == 0 { metric.title().to_owned() } else { String::new() };
                let colour = if shared { at } else { k };
                paths.push(Path { label, points: path(points, metric), colour, dashed: true });
            }
        }
        paths.retain(|path| !path.points.is_empty());
        // In the legend what was measured comes first.
        paths.sort_by_key(|path| path.dashed);
        let lines: Vec<Line<'_>> = paths.iter().map(Path::line).collect();
        let what: Vec<&str> = group.measured.iter().take(2).map(|metric| metric.title()).collect();
        let what = what.join(" and ");
        // A title has room for one of the two; the axis has its name in any case.
        let title = match view.part.methods.len() {
            1 => format!("{what} over the {}{place}", along.noun(&view.part)),
            _ => format!("{}: {what}{place}", method.title()),
        };
        plot::lines(&title, scales, &lines)
    };
    let name = format!("{}-{}", method.name(), group.name);
    if shared {
        return vec![(name, draw(&families, ""))];
    }
    let one = |family: &(String, Vec<Point>)| {
        let place = if family.0.is_empty() { String::new() } else { format!(", {}", family.0) };
        let file = family.0.replace(" = ", "").replace(", ", "-");
        let file = if file.is_empty() { name.clone() } else { format!("{name}-{file}") };
        (file, draw(std::slice::from_ref(family), &place))
    };
    families.iter().map(one).collect()
}

/// The losses of the first seed, step by step, each with its line of least squares.
fn losses(view: &View, method: Method) -> Vec<(String, String)> {
    let chosen = spread(view.part.points(), CURVES);
    let axes = axes(view);
    let mut paths = Vec::new();
    for (colour, point) in chosen.into_iter().enumerate() {
        let record =
            view.records_of(method, point).find(|record| record.cell.seed == view.part.seeds[0]);
        let Some(solved) = record.and_then(|record| record.solved.as_ref()) else { continue };
        let Some(&(_, first)) = solved.curve.first() else { continue };
        let points: Vec<(f64, f64)> =
            solved.curve.iter().map(|(step, loss)| (*step, loss / first)).collect();
        let name = axes.iter().rev().map(|axis| format!("{} = {}", axis.name(), axis.at(point)));
        let mut label = name.collect::<Vec<_>>().join(", ");
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
            paths.push(Path {
                label: String::new(),
                points: fitted.to_vec(),
                colour,
                dashed: true,
            });
        }
        paths.push(Path { label, points, colour, dashed: false });
    }
    let lines: Vec<Line<'_>> = paths.iter().map(Path::line).collect();
    let scales =
        [Measure { name: "step", log: false }, Measure { name: "loss over its start", log: true }];
    let svg = plot::lines(&format!("{}: loss and fitted line", method.title()), scales, &lines);
    if lines.is_empty() { Vec::new() } else { vec![(format!("{}-loss", method.name()), svg)] }
}

/// The settings in words.
pub(super) fn settings(view: &View) -> String {
    let part = &view.part;
    let what = match part.data {
        Data::Gates { generators: Directions::Patterns, weights, .. } => {
            let inputs =
                if weights == 1 { "one input".to_owned() } else { format!("{weights} inputs") };
            format!("standard normal rows, all sign patterns of {inputs} as generators")
        }
        Data::Gates { weights, .. } => {
            format!("standard normal rows, random generators of {weights} normal weights")
        }
        _ => "Gaussian measurements of vectors with normal entries".into(),
    };
    let fixed = part.points().first().map_or(String::new(), |&at| {
        let axes = [(Axis::N, part.n.len()), (Axis::D, part.d.len()), (Axis::S, part.s.len())];
        let one = axes.iter().filter(|(axis, len)| *len < 2 && axis.at(at) > 0);
        one.map(|(axis, _)| format!("; {} = {}", axis.name(), axis.at(at))).collect()
    });
    let steps =
        if part.epochs > 0 { format!("; at most {} steps", part.epochs) } else { String::new() };
    let inflation =
        part.inflation.map_or(String::new(), |times| format!("; iterates of {times} s nonzeros"));
    let draws = part.draws.map_or(String::new(), |draws| format!("; {draws} draws"));
    let seeds = part.seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let word = if part.seeds.len() == 1 { "seed" } else { "seeds" };
    format!("{what}{fixed}{steps}{inflation}{draws}; {word} {seeds}")
}

/// All that was measured, a row per size and method.
pub(super) fn table(view: &View) -> Table {
    let part = &view.part;
    let methods = &part.methods;
    let columns: Vec<Metric> = Metric::all()
        .filter(|metric| methods.iter().any(|method| method.measures(&part.data).contains(metric)))
        .collect();
    let sizes = Axis::of(part);
    let mut head: Vec<String> = sizes.iter().map(|axis| axis.name().to_owned()).collect();
    head.push("method".into());
    head.extend(columns.iter().map(|metric| metric.title().to_owned()));
    head.push("seconds".into());
    let row = |at: Point, method: Method| {
        let mut row: Vec<Item> = sizes.iter().map(|axis| Item::from(axis.text(part, at))).collect();
        row.push(Item::from(method.title().to_owned()));
        let text = |metric: &Metric| {
            let found = value(view, method, at, *metric)?;
            Some(shown(found, metric.digits().1))
        };
        row.extend(columns.iter().map(|metric| Item::from(text(metric).unwrap_or_default())));
        let seconds =
            view.records_of(method, at).filter_map(|record| Some(record.solved.as_ref()?.seconds));
        let seconds = median(seconds.collect()).map_or(String::new(), |seconds| number(seconds, 2));
        row.push(Item::from(seconds));
        row
    };
    let rows =
        part.points().into_iter().flat_map(|at| methods.iter().map(move |&method| row(at, method)));
    Table { title: "Measured".into(), note: note(view), head, rows: rows.collect() }
}

/// A number of either size in few letters.
fn shown(value: f64, digits: usize) -> String {
    if digits > 0 && value != 0.0 && value.abs() < 1e-3 {
        format!("{value:.1e}")
    } else {
        number(value, digits)
    }
}

/// What the columns are, and what theory says of them.
fn note(view: &View) -> String {
    let about = |method: &Method| match (method, &view.part.data) {
        (Method::Assumption, _) => {
            "eps is the fraction of the rows that the rarest gate is active on and comes to 1/2; gamma is the fraction of the rows on \
             which the two nearest gates differ and comes to the smallest angle between generators over π."
        }
        (Method::Curvature, Data::Gates { .. }) => {
            "alpha and beta are extreme eigenvalues over random supports of s unit columns, and over supports of the columns \
             of one input in random neurons. Beside them stand forms without the constants of a bound: (1 ∓ √(s/n))², where \
             independent columns end, with n the active half of the rows; gamma for many rows, which alpha is no larger than \
             once a support holds one input of the two nearest gates; and (s + 1)/2, the beta of one input where two gates \
             share half of their rows."
        }
        (Method::Curvature, _) => {
            "alpha and beta are extreme eigenvalues over random supports of s unit columns; independent ones end at \
             (1 ∓ √(s/n))² (Marchenko and Pastur)."
        }
        (_, Data::Gates { .. }) => {
            "alpha is taken over random supports of as many columns as iterate and planted network have together and stands beside \
             that of one input, beta over both kinds. A network is recovered where the relative error is below 1e-3. Theorem 1 promises steps of the order of (β/α) ln(f(0)/eps), of which the form is \
             shown without a constant, and asks for 32 (β/α)² s nonzeros."
        }
        _ => {
            "A vector is recovered where the relative error is below 1e-3; the error is the median of the draws."
        }
    };
    let mut notes: Vec<&str> = view.part.methods.iter().map(about).collect();
    notes.dedup();
    format!("Medians over seeds, of fractions recovered means. {}", notes.join(" "))
}
