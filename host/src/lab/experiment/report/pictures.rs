//! Heat maps and curves of a part.

use super::super::known::{Known, Value};
use super::super::spec::{Method, Metric, Point};
use super::axes::{Grid, Side, place};
use super::view::{View, spread};
use super::{checks, dense, masked, masks, random, sketch, tables};
use crate::lab::plot::{self, Heat, HeatCell, Line, Measure, Scale};

/// Most sizes whose curves are drawn.
const CURVES: usize = 3;
/// A curve is smoothed where one of `MANY` steps rises by this factor.
const JUMP: f64 = 1.05;
const MANY: usize = 10;

pub(super) fn all(view: &View) -> Vec<(String, String)> {
    heat_maps(view).into_iter().chain(curves(view)).collect()
}

/// A map per method, and per source of known figures; none where there is no grid.
pub(super) fn heat_maps(view: &View) -> Vec<(String, String)> {
    let Some(grid) = Grid::of(&view.part) else { return Vec::new() };
    let points: Vec<Option<Point>> = grid.points(&view.part).into_iter().flatten().collect();
    let map = |title: &str, cell: &dyn Fn(Point) -> HeatCell| {
        let cells = points.iter().map(|at| at.map_or_else(HeatCell::default, cell));
        draw(view, &grid, title, &cells.collect::<Vec<_>>())
    };
    let mut maps = Vec::new();
    for &method in &view.part.methods {
        let svg = map(method.title(), &|at| of_method(view, method, at));
        maps.push((method.name().to_owned(), svg));
    }
    let names =
        [("published", "printed in the paper"), ("authors-code", "authors' code, measured")];
    for ((name, source), (_, values)) in names.into_iter().zip(view.known.sources()) {
        for method in [Method::Paper, Method::ImpPublished] {
            let find = |at: Point| Known::find(values, method, at.m, at.s);
            let cell = |at: Point| HeatCell {
                value: find(at).map(|value| value.value as f32),
                hover: find(at).map(Value::about).unwrap_or_default(),
                starred: false,
            };
            if points.iter().flatten().any(|&at| find(at).is_some()) {
                let svg = map(&format!("{}, {source}", method.short()), &cell);
                maps.push((format!("{}-{name}", method.name()), svg));
            }
        }
    }
    maps
}

fn of_method(view: &View, method: Method, at: Point) -> HeatCell {
    if view.part.data.is_check() {
        let error = checks::value(view, method, at, Metric::Error);
        let error = error.map_or(String::new(), |error| format!("; median error {error:.1e}"));
        let value = checks::value(view, method, at, view.part.metric).map(|value| value as f32);
        return HeatCell { value, hover: place(&view.part, at) + &error, starred: false };
    }
    let stats = view.stats(method, at);
    HeatCell {
        value: stats.mean().map(|mean| mean as f32),
        hover: tables::hover(view, method, at),
        starred: !stats.values.is_empty() && (stats.limited || !stats.lost.is_empty()),
    }
}

fn draw(view: &View, grid: &Grid, title: &str, cells: &[HeatCell]) -> String {
    let part = &view.part;
    let labels = |values: &[usize]| values.iter().map(usize::to_string).collect::<Vec<_>>();
    let Side { axis: down, values: rows } = &grid.down;
    let Side { axis: across, values: columns } = &grid.across;
    plot::heat(&Heat {
        title,
        value: part.metric.title(),
        rows: Scale { name: &down.title(part), labels: &labels(rows) },
        columns: Scale { name: &across.title(part), labels: &labels(columns) },
        cells,
        range: (part.range[0] as f32, part.range[1] as f32),
        digits: part.metric.digits().0,
        star: "ended by a limit of the part, or a seed without a result",
    })
}

/// What the trained methods have at the smallest, a middle and the largest size where one has it.
fn chosen<T>(view: &View, of: impl Fn(Method, Point) -> Option<T>) -> Vec<(Point, Vec<T>)> {
    let all = |at: Point| view.trained().into_iter().filter_map(|method| of(method, at)).collect();
    let points = view.part.points().into_iter().map(|at| (at, all(at)));
    spread(points.filter(|(_, all): &(Point, Vec<T>)| !all.is_empty()).collect(), CURVES)
}

/// Losses over the course of each training.
pub(super) fn curves(view: &View) -> Vec<(String, String)> {
    let part = &view.part;
    if part.data.is_check() {
        let curves = checks::curves(view).into_iter();
        let curves = curves.chain(sketch::movements(view)).chain(masks::histograms(view));
        let curves = curves.chain(dense::histograms(view));
        return curves.chain(masked::curves(view)).chain(random::pictures(view)).collect();
    }
    let line = |method: Method, at: Point| {
        let points = smooth(&view.first_seed(method, at)?.curve);
        let end = points.last()?.0.max(f64::MIN_POSITIVE);
        let points = points.iter().map(|(passes, loss)| (100.0 * passes / end, *loss)).collect();
        let label = method.title().to_owned();
        Some(Line { label, points, colour: 0, dashed: false }).filter(|line| line.points.len() > 1)
    };
    let draw = |(at, mut lines): (Point, Vec<Line>)| {
        lines.iter_mut().enumerate().for_each(|(colour, line)| line.colour = colour);
        let title = format!("Loss of training, {}", place(part, at));
        let variant = part.variants.get(at.variant).filter(|_| part.variants.len() > 1);
        let name = variant.map_or(String::new(), |variant| format!("-{}", variant.name));
        let rows = if part.n.len() > 1 { format!("-n{}", at.n) } else { String::new() };
        let name = format!("curve-{}-{}{rows}{name}", at.m, at.s);
        let axes = [("percent of the training", false), ("loss (log scale)", true)];
        (name, plot::lines(&title, axes.map(|(name, log)| Measure { name, log }), &lines))
    };
    chosen(view, line).into_iter().map(draw).collect()
}

/// Pictures and what the networks made of them: captions and PNG files in hexadecimal digits.
pub(super) fn reconstructions(view: &View) -> Vec<(String, &str)> {
    let one = |method: Method, at: Point| {
        let solved = view.first_seed(method, at)?;
        let db = solved.train.and_then(|train| train.psnr_db);
        let db = db.map_or(String::new(), |db| format!(", {db:.1} dB"));
        let text = format!("{}, {}{db}", method.title(), place(&view.part, at));
        solved.picture.as_deref().map(|picture| (text, picture))
    };
    chosen(view, one).into_iter().flat_map(|(_, pictures)| pictures).collect()
}

/// A curve that jumps up and down as running means over a tenth of it; any other as it is.
fn smooth(curve: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let jumps = |pair: &&[(f64, f64)]| {
        pair[1].1 > pair[0].1 && pair[1].1 / pair[0].1.max(f64::MIN_POSITIVE) > JUMP
    };
    if MANY * curve.windows(2).filter(jumps).count() < curve.len() {
        return curve.to_vec();
    }
    let reach = curve.len().div_ceil(20);
    let mean = |at: usize| {
        let near = &curve[at.saturating_sub(reach)..(at + reach + 1).min(curve.len())];
        near.iter().map(|(_, loss)| loss).sum::<f64>() / near.len() as f64
    };
    curve.iter().enumerate().map(|(at, (passes, _))| (*passes, mean(at))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Losses that jump between 1 and 3 were a solid band; their mean is a line.
    #[test]
    fn only_curves_that_jump_are_smoothed() {
        let band: Vec<(f64, f64)> =
            (0..64).map(|k| (f64::from(k), if k % 2 == 0 { 1.0 } else { 3.0 })).collect();
        let line = smooth(&band);
        assert!(
            line.len() == 64 && line.iter().all(|(_, loss)| (1.5..2.5).contains(loss)),
            "{line:?}"
        );
        let falls: Vec<(f64, f64)> = (0..64).map(|k| (f64::from(k), 0.5_f64.powi(k))).collect();
        assert_eq!(smooth(&falls), falls);
    }
}
