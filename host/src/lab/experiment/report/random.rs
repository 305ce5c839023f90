//! Tables and pictures of parts on random matrices and networks, and on matrix sensing.

use std::collections::BTreeMap;

use super::super::spec::{Data, Method, Metric, Point, Published, range_of_alpha};
use super::axes::{Axis, by_size, place};
use super::interval::Interval;
use super::table::{Item, Table, listed};
use super::view::{View, number};
use super::{checks, dense};
use crate::base::statistics::LeastSquares;
use crate::lab::plot::{self, Histogram, Line, Measure};

/// The tables that say the most: measured beside printed, and exponents.
pub(super) fn summary(view: &View) -> Vec<Table> {
    let tables = [beside_print(view), exponents(view)].into_iter().chain(dense::layers(view));
    tables.filter(|table| !table.rows.is_empty()).collect()
}

/// What of a printed row was measured, and how far they are apart.
fn beside_print(view: &View) -> Table {
    let part = &view.part;
    let printed: Vec<Metric> = Metric::all()
        .filter(|metric| part.published.iter().any(|row| row.values.contains_key(metric)))
        .collect();
    let heads = printed.iter().map(|metric| metric.title().to_owned());
    let mut furthest = BTreeMap::<Metric, f64>::new();
    let mut table = by_size(part, ["Beside the printed figures", ""], heads, |at| {
        let row = part.published_at(at)?;
        let cells: Vec<Item> =
            printed.iter().map(|metric| beside(view, at, row, *metric, &mut furthest)).collect();
        Some(cells)
    });
    let apart = furthest.iter().map(|(metric, apart)| {
        let (unit, digits) = if is_small(*metric) { ("", 4) } else { (" %", 2) };
        format!("{} {}{unit}", metric.title(), number(*apart, digits))
    });
    table.note = format!(
        "Measured, then printed. Furthest apart, without what is wrong in print: {}.",
        listed(apart)
    );
    table
}

fn beside(
    view: &View,
    at: Point,
    row: &Published,
    metric: Metric,
    furthest: &mut BTreeMap<Metric, f64>,
) -> Item {
    let own = view.part.methods.iter().find_map(|&of| checks::value(view, of, at, metric));
    let (Some(own), Some(&printed)) = (own, row.values.get(&metric)) else {
        return Item::default();
    };
    let is_wrong = row.wrong.contains(&metric);
    let apart = if is_small(metric) { own - printed } else { 100.0 * (own / printed - 1.0) };
    if !is_wrong {
        let most = furthest.entry(metric).or_insert(0.0);
        *most = most.max(apart.abs());
    }
    let mark = if is_wrong { " (wrong in print)" } else { "" };
    let text = format!("{} · {printed}{mark}", number(own, metric.digits().1));
    let unit = if is_small(metric) { "" } else { " %" };
    Item { text, hover: format!("{apart:+.3}{unit}") }
}

/// Whether print has so few digits of it that a difference says more than a ratio.
const fn is_small(metric: Metric) -> bool {
    use Metric::{Delta95, Delta99, Delta999, Delta9999, Std};
    matches!(metric, Std | Delta95 | Delta99 | Delta999 | Delta9999)
}

/// The line of least squares of logarithms, seed by seed: exponents with their intervals.
fn exponents(view: &View) -> Table {
    let part = &view.part;
    let is_shown = matches!(part.data, Data::Networks(_) | Data::Convolutions { .. })
        && part.methods.iter().all(|method| method.is_pruning());
    let mut rows = Vec::new();
    for &method in part.methods.iter().filter(|_| is_shown) {
        for (variant, own) in part.variants.iter().enumerate() {
            let slope = |metric: Metric| {
                let of = |&seed: &u64| slope(view, method, variant, seed, metric);
                Interval::of(&part.seeds.iter().filter_map(of).collect::<Vec<f64>>())
            };
            let text = |metric| slope(metric).map_or("–".into(), |own| own.text(3));
            let Some(alpha) = own.entries.and_then(|entries| entries.alpha) else { continue };
            let is_network = matches!(part.data, Data::Networks(_));
            let (exact, theorem) = match method {
                Method::PruneMagnitude if is_network => (format!("3α = {:.2}", 3.0 * alpha), alpha),
                _ if is_network => (format!("α = {alpha:.2}"), alpha / 4.0),
                // The least of filters of q² weights shrink with the q²-th root of their share.
                _ => {
                    let size = part.s.first().map_or(1.0, |&s| (s * s) as f64);
                    let own = if method == Method::PruneMagnitude { 1.0 / size } else { 0.0 };
                    (format!("{:.2}", alpha * (0.5 + own)), alpha / 4.0)
                }
            };
            let least = part.points().iter().map(|at| at.d).min().unwrap_or(1);
            let most = range_of_alpha(least);
            let theorem = match is_network && method == Method::PruneRandom && alpha > most {
                true => format!("none: asks for α ≤ {most:.3} at d = {least}"),
                false => number(theorem, 3),
            };
            let cells = [
                method.title().to_owned(),
                number(alpha, 2),
                text(Metric::DeltaNorm),
                exact,
                text(Metric::SupNorm),
                theorem,
            ];
            rows.push(cells.map(Item::from).to_vec());
        }
    }
    let note = "Exponents e in d^(−e), by least squares over logarithms, with 95 % intervals over \
                seeds; the theorem's is that of an upper bound.";
    let head = ["method", "α", "|W − Ŵ|₂", "its theory", "sup |f − F|", "theorem"];
    Table::new("Exponents", format!("{} {note}", part.note).trim_start(), head, rows)
}

fn slope(view: &View, method: Method, variant: usize, seed: u64, metric: Metric) -> Option<f64> {
    let at_seed = |at: Point| {
        let record = view.records_of(method, at).find(|record| record.cell.seed == seed)?;
        let value = *record.solved.as_ref()?.measured.get(&metric)?;
        (value > 0.0).then(|| [(at.d as f64).ln(), value.ln()])
    };
    let points = view.part.points().into_iter().filter(|at| at.variant == variant);
    let points: Vec<[f64; 2]> = points.filter_map(at_seed).collect();
    LeastSquares::through(&points).map(|line| -line.slope)
}

pub(super) fn pictures(view: &View) -> Vec<(String, String)> {
    match &view.part.data {
        Data::Sensing(_) => columns(view).into_iter().chain(over_columns(view)).collect(),
        data if data.is_random() => {
            let shown =
                [Metric::Mean, Metric::C, Metric::DeltaNorm, Metric::SupNorm, Metric::Failures];
            shown.into_iter().filter_map(|metric| over_sizes(view, metric)).collect()
        }
        _ => Vec::new(),
    }
}

/// A metric over d, a line for each method, variant and number of rows; printed and theory's in
/// dashes.
fn over_sizes(view: &View, metric: Metric) -> Option<(String, String)> {
    let part = &view.part;
    if part.d.len() < 2 || !part.methods.iter().all(|of| of.measures(&part.data).contains(&metric))
    {
        return None;
    }
    let mut families = BTreeMap::<(usize, usize, usize), (String, Vec<Point>)>::new();
    for (m, &method) in part.methods.iter().enumerate() {
        for at in part.points() {
            let names = [
                (part.methods.len() > 1).then(|| method.title().to_owned()),
                (part.n.len() > 1).then(|| Axis::N.equals(at)),
                (part.variants.len() > 1).then(|| part.variant(at).title().to_owned()),
            ];
            let name = listed(names.into_iter().flatten());
            families.entry((m, at.n, at.variant)).or_insert((name, Vec::new())).1.push(at);
        }
    }
    let mut lines = Vec::new();
    for (colour, ((m, ..), (label, points))) in families.into_iter().enumerate() {
        let method = part.methods[m];
        let through = |of: &dyn Fn(Point) -> Option<f64>| -> Vec<(f64, f64)> {
            points.iter().filter_map(|&at| Some((at.d as f64, of(at)?))).collect()
        };
        let own = through(&|at| checks::value(view, method, at, metric));
        let printed = through(&|at| part.published_at(at)?.values.get(&metric).copied());
        // The theorem has no constant: its line begins where the measured one does.
        let theory_of = |of: Metric| through(&|at| checks::value(view, method, at, of));
        let theory = match metric {
            Metric::DeltaNorm | Metric::SupNorm => theory_of(Metric::TheoremForm),
            Metric::Failures => theory_of(Metric::FailureForm),
            _ => printed,
        };
        let scale = match (metric, own.first(), theory.first()) {
            (Metric::DeltaNorm | Metric::SupNorm, Some(own), Some(theory)) => own.1 / theory.1,
            _ => 1.0,
        };
        let theory = theory.into_iter().map(|(x, y)| (x, scale * y)).collect();
        lines.push(Line { label: String::new(), points: theory, colour, dashed: true });
        lines.push(Line { label, points: own, colour, dashed: false });
    }
    lines.retain(|line| !line.points.is_empty());
    let log = matches!(metric, Metric::DeltaNorm | Metric::SupNorm | Metric::Failures);
    let name = Axis::D.title(part);
    let axes = [Measure { name: &name, log: true }, Measure { name: metric.title(), log }];
    let dashes = match lines.iter().any(|line| line.dashed) {
        true if log => ", the theorem in dashes",
        true => ", printed in dashes",
        false => "",
    };
    let title = format!("{} over the {}{dashes}", metric.title(), Axis::D.noun(part));
    (!lines.is_empty()).then(|| (metric.name().to_owned(), plot::lines(&title, axes, &lines)))
}

/// Norms of columns of the first seed, for the largest model: the fraction above a share of the
/// largest, and their histogram (paper GREEDY, figure 1).
fn columns(view: &View) -> Vec<(String, String)> {
    let part = &view.part;
    let both = [Method::Greedy, Method::Vanilla];
    if !both.iter().all(|method| part.methods.contains(method)) {
        return Vec::new();
    }
    let Some(at) = part.points().into_iter().max_by_key(|at| at.m) else { return Vec::new() };
    let of = |&method: &Method| {
        let solved = view.first_seed(method, at)?;
        let own = solved.histograms.first()?.clone();
        Some(Histogram { label: method.title().to_owned(), ..own })
    };
    let all: Vec<Histogram> = part.methods.iter().filter_map(of).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let line = |(colour, own): (usize, &Histogram)| {
        let count = own.counts.iter().sum::<u64>().max(1) as f64;
        let bins = own.counts.len();
        let above = |bin: usize| own.counts[bin..].iter().sum::<u64>() as f64 / count;
        let points = (0..bins).map(|bin| (bin as f64 / bins as f64, above(bin))).collect();
        Line { label: own.label.clone(), points, colour, dashed: false }
    };
    let lines: Vec<Line> = all.iter().enumerate().map(line).collect();
    let (x, place) = ("share of the largest norm", place(part, at));
    let axes = ["x, ", ""].map(|start| format!("{start}{x}"));
    let above = plot::lines(
        &format!("Columns of x or more, {place}"),
        [
            Measure { name: &axes[0], log: false },
            Measure { name: "fraction of the columns", log: true },
        ],
        &lines,
    );
    let counts = plot::histograms(&format!("Norms of columns, {place}"), &axes[1], &all);
    vec![("columns-above".to_owned(), above), ("columns".to_owned(), counts)]
}

/// Errors over the columns of the model, where these are an axis; theory's in dashes.
fn over_columns(view: &View) -> Option<(String, String)> {
    let part = &view.part;
    let has_noise = part.variants.iter().any(|own| own.sensing.unwrap_or_default().sigma > 0.0);
    if part.m.len() < 2 || !has_noise {
        return None;
    }
    let mut lines = Vec::new();
    for (colour, &method) in part.methods.iter().enumerate() {
        for (metric, dashed) in [(Metric::TunedError, false), (Metric::NoiseForm, true)] {
            let point = |at: &Point| Some((at.m as f64, checks::value(view, method, *at, metric)?));
            let points = part.points().iter().filter_map(point).collect();
            let label = if dashed { String::new() } else { method.title().to_owned() };
            lines.push(Line { label, points, colour, dashed });
        }
    }
    let axes = [
        Measure { name: "m, columns of the model", log: true },
        Measure { name: "|U Uᵀ − U* U*ᵀ|, median", log: true },
    ];
    let svg = plot::lines("Errors under noise, and σ √(p/n) in dashes", axes, &lines);
    Some(("errors".to_owned(), svg))
}
