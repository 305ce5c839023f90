//! Heat maps and curves of a part.

use super::super::known::{Known, Value};
use super::super::spec::Method;
use super::tables;
use super::{View, checks};
use crate::plot::{self, Heat, Scale, Series};

/// Points of a curve over its whole training.
const POINTS: usize = 101;
/// Most pairs of m and s whose curves are drawn.
const CURVES: usize = 3;

/// All pictures, with their names.
pub(super) fn all(view: &View) -> Vec<(String, String)> {
    let mut pictures = heat_maps(view);
    pictures.extend(curves(view));
    pictures
}

/// A map per method, and per source of known figures; none where there is no grid.
pub(super) fn heat_maps(view: &View) -> Vec<(String, String)> {
    if view.part.data.is_check() {
        return checks::heat_maps(view);
    }
    if !view.part.sizes.is_empty() {
        return Vec::new();
    }
    let own = view.part.methods.iter().map(|&method| (method.name().to_owned(), of_method(view, method)));
    let known = [("published", &view.known.published), ("authors-code", &view.known.reference)];
    let known = known.into_iter().flat_map(|(name, values)| {
        let methods = [Method::Paper, Method::ImpPublished].into_iter();
        let some = methods.filter(move |method| has(view, values, *method));
        some.map(move |method| (format!("{}-{name}", method.name()), of_known(view, name, values, method)))
    });
    own.chain(known).collect()
}

fn has(view: &View, values: &[Value], method: Method) -> bool {
    let pairs = view.part.pairs();
    values.iter().any(|value| value.method == method && pairs.contains(&(value.m, value.s)))
}

fn of_method(view: &View, method: Method) -> String {
    let [ms, ss] = view.part.axes();
    let pairs = view.part.pairs();
    let (mut values, mut starred, mut hover) = (Vec::new(), Vec::new(), Vec::new());
    for (m, s) in ms.iter().flat_map(|&m| ss.iter().map(move |&s| (m, s))) {
        let there = pairs.contains(&(m, s));
        let stats = view.stats(method, m, s);
        values.push(stats.mean().filter(|_| there).map(|mean| mean as f32));
        starred.push(there && !stats.values.is_empty() && (stats.limited || !stats.lost.is_empty()));
        hover.push(if there { tables::hover(view, method, m, s) } else { String::new() });
    }
    draw(view, method.title(), &values, &starred, &hover)
}

fn of_known(view: &View, name: &str, known: &[Value], method: Method) -> String {
    let [ms, ss] = view.part.axes();
    let pairs = ms.iter().flat_map(|&m| ss.iter().map(move |&s| (m, s)));
    let found: Vec<Option<&Value>> = pairs.map(|(m, s)| Known::find(known, method, m, s)).collect();
    let values: Vec<Option<f32>> = found.iter().map(|value| value.map(|value| value.value as f32)).collect();
    let hover = found.iter().map(|value| value.map(tables::about).unwrap_or_default());
    let title = if method == Method::Paper { "IHT" } else { "IMP" };
    let source = if name == "published" { "printed in the paper" } else { "authors' code, measured" };
    draw(view, &format!("{title}, {source}"), &values, &[], &hover.collect::<Vec<_>>())
}

fn draw(view: &View, title: &str, values: &[Option<f32>], starred: &[bool], hover: &[String]) -> String {
    let part = &view.part;
    let [m, s] = part.axes().map(|axis| axis.iter().map(usize::to_string).collect::<Vec<_>>());
    plot::heat(&Heat {
        title,
        value: part.metric.title(),
        rows: Scale { name: "m, neurons of a hidden layer", labels: &m },
        columns: Scale { name: "s, nonzero weights", labels: &s },
        values,
        range: (part.range[0] as f32, part.range[1] as f32),
        digits: part.metric.digits().0,
        starred,
        star: "ended by the limit of passes, or a seed without a result",
        hover,
    })
}

/// Losses over the course of each training, at the smallest, a middle and the largest pair that have some.
pub(super) fn curves(view: &View) -> Vec<(String, String)> {
    if view.part.data.is_check() {
        return checks::curves(view);
    }
    let seed = view.part.seeds.first().copied().unwrap_or(0);
    let lines = |(m, s): (usize, usize)| -> Vec<(Method, Vec<f32>)> {
        let line = |method: Method| {
            let record = view.records_of(method, m, s).find(|record| record.cell.seed == seed)?;
            let curve = &record.solved.as_ref()?.curve;
            (curve.len() > 1).then(|| (method, stretched(curve)))
        };
        view.trained().filter_map(line).collect()
    };
    let pairs: Vec<(usize, usize)> =
        view.part.pairs().into_iter().filter(|&pair| !lines(pair).is_empty()).collect();
    let (count, last) = (CURVES.min(pairs.len()), pairs.len().saturating_sub(1));
    let mut chosen: Vec<(usize, usize)> =
        (0..count).map(|k| pairs[k * last / count.saturating_sub(1).max(1)]).collect();
    chosen.dedup();
    let draw = |(m, s): (usize, usize)| {
        let lines = lines((m, s));
        let series: Vec<Series<'_>> =
            lines.iter().map(|(method, values)| Series { label: method.title(), first: 0, values }).collect();
        let title = format!("Loss of training, m = {m}, s = {s}");
        (format!("curve-{m}-{s}"), plot::loss_curve(&title, "percent of the training", &series))
    };
    chosen.into_iter().map(draw).collect()
}

/// A curve over the passes as one of [`POINTS`] points, each the last value until then.
fn stretched(curve: &[(f64, f64)]) -> Vec<f32> {
    let end = curve.last().map_or(0.0, |(at, _)| *at);
    let at = |k: usize| end * k as f64 / (POINTS - 1) as f64;
    let value = |k: usize| {
        let until = curve.partition_point(|(passes, _)| *passes <= at(k)).max(1);
        curve[until - 1].1 as f32
    };
    (0..POINTS).map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_stretched_from_their_first_value_to_their_last() {
        let line = stretched(&[(2.0, 9.0), (5.0, 4.0), (10.0, 1.0)]);
        assert_eq!(
            (line.len(), line[0], line[49], line[50], line[99], line[100]),
            (101, 9.0, 9.0, 4.0, 4.0, 1.0)
        );
        assert!(stretched(&[(0.0, 3.0), (0.0, 2.0)]).iter().all(|v| *v == 2.0));
    }
}
