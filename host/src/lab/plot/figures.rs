//! The figures themselves: what is drawn inside the frame.

use std::collections::BTreeMap;

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::axis::Axis;
use super::input::{Names, Panel, Series};
use super::mark::{Key, Mark};
use super::page::{self, Area, Chart, Colour, Drawn, Frame};

/// Flat index and value of a weight.
type Entry = (usize, f32);

/// Most values of one curve that are drawn; of longer ones every stretch shows its extremes.
const MOST_VALUES: usize = 800;
/// Most points and most weights that are drawn.
const MOST_POINTS: usize = 1500;
/// Curves up to this length have a dot at each value.
const DOTTED: usize = 40;

pub(super) fn loss(area: &Area<'_>, title: &str, time: &str, series: &[Series<'_>]) -> Drawn {
    let low = values(series).filter(|v| *v <= 0.0 && v.is_finite()).count();
    let y = Axis::log("loss (log scale)", values(series), low > 0);
    curves(area, title, time, series, y, low)
}

/// Counts against `time` on a linear axis from 0.
fn counts(area: &Area<'_>, title: &str, time: &str, series: &[Series<'_>]) -> Drawn {
    let y = Axis::linear("count", values(series).chain([0.0]));
    curves(area, title, time, series, y, 0)
}

fn values<'s>(series: &'s [Series<'_>]) -> impl Iterator<Item = f32> + 's {
    series.iter().flat_map(|s| s.values.iter().copied())
}

/// Series against `time`, of which `low` values lie on the line 0 of a logarithmic axis.
fn curves(
    area: &Area<'_>,
    title: &str,
    time: &str,
    series: &[Series<'_>],
    y: Axis,
    low: usize,
) -> Drawn {
    let lost = values(series).filter(|v| !v.is_finite()).count();
    let ends = series.iter().filter(|s| !s.values.is_empty()).flat_map(ends);
    let key = |(i, s): (usize, &Series<'_>)| Key::new(curve_mark(&y, s), series_colour(i), s.label);
    let frame = Frame {
        title,
        keys: series.iter().enumerate().map(key).collect(),
        x: Axis::count(time, ends),
        y,
        notes: notes([(low, "not above 0, drawn on the line 0"), (lost, "not finite, left out")]),
        empty: values(series).count() == lost,
    };
    frame.draw(area, |chart| {
        series.iter().enumerate().try_for_each(|(i, s)| curve(chart, &frame.y, s, series_colour(i)))
    })
}

/// The loss above, the counts below.
pub(super) fn course(
    names: Names<'_>,
    losses: &[Series<'_>],
    support: &[Series<'_>],
    counted: &[Series<'_>],
) -> String {
    let Names { title, step, counted: others } = names;
    let head = 40;
    page::page(title, head + 3 * page::FIGURE_HEIGHT, |area| {
        let (top, rest) = area.split_vertically(head);
        page::heading(&top, title)?;
        let (first, rest) = rest.split_vertically(page::FIGURE_HEIGHT);
        loss(&first, "Loss", step, losses)?;
        let (second, third) = rest.split_vertically(page::FIGURE_HEIGHT);
        counts(&second, "Support", step, support)?;
        counts(&third, others, step, counted)
    })
}

pub(super) fn weights(
    area: &Area<'_>,
    title: &str,
    planted: &[Entry],
    recovered: &[Entry],
) -> Drawn {
    let (planted, recovered) = (finite(planted), finite(recovered));
    let both = Both::new(&planted, &recovered);
    let all = || planted.iter().chain(&recovered);
    let frame = Frame {
        title,
        keys: both.keys(),
        x: Axis::count("flat index of the weight", all().map(|(&i, _)| i)),
        y: Axis::linear("weight", all().map(|(_, &v)| v).chain([0.0])),
        notes: both.notes(all().count()),
        empty: all().count() == 0,
    };
    frame.draw(area, |chart| {
        let zero = [(frame.x.low, 0.0), (frame.x.high, 0.0)];
        chart.draw_series([PathElement::new(zero, page::FAINT.light)])?;
        both.draw(chart)
    })
}

pub(super) fn scatter(area: &Area<'_>, title: &str, labels: &[f32], predictions: &[f32]) -> Drawn {
    let pairs = || labels.iter().copied().zip(predictions.iter().copied());
    let points: Vec<(f32, f32)> = pairs().filter(|(a, b)| a.is_finite() && b.is_finite()).collect();
    let lost = pairs().count() - points.len();
    let shared = |name| Axis::linear(name, points.iter().flat_map(|(a, b)| [*a, *b]));
    let shown = points.len().min(MOST_POINTS);
    let mut notes = notes([(lost, "not finite, left out")]);
    if shown < points.len() {
        notes.insert(0, format!("{shown} of {} samples drawn, evenly spaced", points.len()));
    }
    let sample = Key::new(Mark::Dot, page::SERIES[0], "sample");
    let frame = Frame {
        title,
        keys: vec![sample.clone(), Key::new(Mark::Line, page::INK, "prediction = label")],
        x: shared("label"),
        y: shared("prediction"),
        notes,
        empty: points.is_empty(),
    };
    frame.draw(area, |chart| {
        let spread = (0..shown).map(|i| points[i * points.len() / shown]);
        let at = spread.map(|(label, prediction)| (f64::from(label), f64::from(prediction)));
        // Where points are many, darker means more of them.
        let style = page::SERIES[0].light.mix(if shown > 200 { 0.5 } else { 1.0 }).filled();
        chart.draw_series(at.map(|at| Circle::new(at, 3, style)))?;
        let diagonal = [(frame.x.low, frame.y.low), (frame.x.high, frame.y.high)];
        chart.draw_series([PathElement::new(diagonal, page::INK.light)]).map(drop)
    })
}

pub(super) fn panel(panel: &Panel<'_>) -> String {
    let rows = panel.facts.len() as u32;
    let (head, figure) = (40, page::FIGURE_HEIGHT);
    let facts_height = if rows > 0 { 28 * rows + 24 } else { 0 };
    let height = head + facts_height + 2 * figure + page::SQUARE_HEIGHT;
    page::page(panel.title, height, |area| {
        let (top, rest) = area.split_vertically(head);
        page::heading(&top, panel.title)?;
        let (box_area, rest) = rest.split_vertically(facts_height);
        facts(&box_area, panel.facts)?;
        let (first, rest) = rest.split_vertically(figure);
        loss(&first, "Loss", panel.time, panel.losses)?;
        let (second, third) = rest.split_vertically(figure);
        weights(&second, "Weights", panel.planted, panel.recovered)?;
        scatter(&third, "Predictions", panel.labels, panel.predictions)
    })
}

/// A box of names on the left and values on the right.
fn facts(area: &Area<'_>, facts: &[(&str, String)]) -> Drawn {
    let (wide, high) = area.dim_in_pixel();
    let (wide, high) = (wide as i32, high as i32);
    let (left, right) = (2 * page::SIDE, wide - 2 * page::SIDE);
    if facts.is_empty() {
        return Ok(());
    }
    area.draw(&Rectangle::new([(page::SIDE, 4), (wide - page::SIDE, high - 8)], page::GRID.light))?;
    for (row, (name, value)) in facts.iter().enumerate() {
        let y = 24 + 28 * row as i32;
        let value = page::fit(value, page::TEXT, (right - left) * 3 / 4);
        let room = right - left - page::width_of(&value, page::TEXT) - page::SIDE;
        let name = page::fit(name, page::TEXT, room);
        page::write(area, &name, &page::letters(page::TEXT, page::FAINT), HPos::Left, left, y)?;
        page::write(area, &value, &page::letters(page::TEXT, page::INK), HPos::Right, right, y)?;
    }
    Ok(())
}

fn series_colour(i: usize) -> Colour {
    page::SERIES[i % page::SERIES.len()]
}

/// Steps of the first and the last value.
fn ends(series: &Series<'_>) -> [usize; 2] {
    [series.first, series.first.saturating_add(series.values.len().saturating_sub(1))]
}

fn notes<const N: usize>(counts: [(usize, &str); N]) -> Vec<String> {
    let said = counts.into_iter().filter(|(count, _)| *count > 0);
    said.map(|(count, what)| {
        format!("{count} {}: {what}", if count == 1 { "value" } else { "values" })
    })
    .collect()
}

/// Draws one series: lines between neighbours that both have a place, dots where a line would not
/// show.
fn curve(chart: &mut Chart<'_, '_>, y: &Axis, series: &Series<'_>, colour: Colour) -> Drawn {
    let dot = Key::new(Mark::Dot, colour, "");
    for run in stretches(y, series) {
        if run.len() == 1 || series.values.len() <= DOTTED {
            run.iter().try_for_each(|&at| dot.draw(chart.plotting_area(), at))?;
        }
        if run.len() > 1 {
            chart.draw_series([PathElement::new(run, colour.light.stroke_width(2))])?;
        }
    }
    Ok(())
}

/// What the legend shows for a series: what [`curve`] draws.
fn curve_mark(y: &Axis, series: &Series<'_>) -> Mark {
    match stretches(y, series).iter().any(|run| run.len() > 1) {
        false => Mark::Dot,
        true if series.values.len() <= DOTTED => Mark::Dotted,
        true => Mark::Line,
    }
}

/// The points of a series, cut where a value has no place.
fn stretches(y: &Axis, series: &Series<'_>) -> Vec<Vec<(f64, f64)>> {
    let points = thin(series.values);
    let runs = points.split(|&(_, value)| y.place(value).is_none()).filter(|run| !run.is_empty());
    let at = |&(i, value): &(usize, f32)| Some((series.first as f64 + i as f64, y.place(value)?));
    runs.map(|run| run.iter().filter_map(at).collect()).collect()
}

/// At most [`MOST_VALUES`] values with their positions, and one more for each gap: the least and
/// the greatest of each stretch, in order.
fn thin(values: &[f32]) -> Vec<(usize, f32)> {
    if values.len() <= MOST_VALUES {
        return values.iter().copied().enumerate().collect();
    }
    let stretches = MOST_VALUES / 2;
    let bound = |i: usize| (i as u128 * values.len() as u128 / stretches as u128) as usize;
    (0..stretches).flat_map(|i| extremes(bound(i), &values[bound(i)..bound(i + 1)])).collect()
}

/// The least and the greatest finite value of a stretch that starts at `from`, or one gap if there
/// is none.
fn extremes(from: usize, stretch: &[f32]) -> Vec<(usize, f32)> {
    let finite = || stretch.iter().copied().enumerate().filter(|(_, v)| v.is_finite());
    let least = finite().min_by(|a, b| a.1.total_cmp(&b.1));
    let greatest = finite().max_by(|a, b| a.1.total_cmp(&b.1));
    let mut found: Vec<(usize, f32)> = least.into_iter().chain(greatest).collect();
    found.sort_unstable_by_key(|(i, _)| *i);
    found.dedup_by_key(|(i, _)| *i);
    if found.is_empty() {
        found.push((0, f32::NAN));
    }
    found.into_iter().map(|(i, v)| (from + i, v)).collect()
}

/// Entries by index, without what is not finite.
fn finite(entries: &[Entry]) -> BTreeMap<usize, f32> {
    entries.iter().copied().filter(|(_, v)| v.is_finite()).collect()
}

/// Planted and recovered weights, sorted by what became of them.
struct Both {
    planted: Vec<Entry>,
    recovered: Vec<Entry>,
    missing: Vec<Entry>,
    extra: Vec<Entry>,
}

impl Both {
    fn new(planted: &BTreeMap<usize, f32>, recovered: &BTreeMap<usize, f32>) -> Self {
        let subset = |of: &BTreeMap<usize, f32>, other: &BTreeMap<usize, f32>, shared: bool| {
            of.iter()
                .filter(|(i, _)| other.contains_key(i) == shared)
                .map(|(&i, &v)| (i, v))
                .collect()
        };
        Self {
            planted: subset(planted, recovered, true),
            recovered: subset(recovered, planted, true),
            missing: subset(planted, recovered, false),
            extra: subset(recovered, planted, false),
        }
    }

    /// Marks with the entries that they stand for, in the order in which they are drawn.
    fn marks(&self) -> [(Key, &[Entry]); 4] {
        [
            (Key::new(Mark::Ring, page::SERIES[0], "planted"), &self.planted),
            (Key::new(Mark::Dot, page::SERIES[1], "recovered"), &self.recovered),
            (Key::new(Mark::Triangle, page::SERIES[3], "missing"), &self.missing),
            (Key::new(Mark::Cross, page::SERIES[1], "extra"), &self.extra),
        ]
    }

    fn keys(&self) -> Vec<Key> {
        let needed =
            |mark, entries: &[Entry]| matches!(mark, Mark::Ring | Mark::Dot) || !entries.is_empty();
        let marks = self.marks().into_iter();
        marks.filter(|(key, entries)| needed(key.mark, entries)).map(|(key, _)| key).collect()
    }

    fn notes(&self, total: usize) -> Vec<String> {
        let (found, missing) = (self.planted.len(), self.missing.len());
        let all = found + missing;
        let extra = self.extra.len();
        let mut notes = vec![format!(
            "{found} of {all} planted weights found, {missing} missing, {extra} extra"
        )];
        if total > MOST_POINTS {
            notes.push("only the largest of each kind are drawn".to_owned());
        }
        notes
    }

    fn draw(&self, chart: &mut Chart<'_, '_>) -> Drawn {
        for (key, entries) in self.marks() {
            let kept = largest(entries);
            let at = kept.iter().map(|&(i, v)| (i as f64, f64::from(v)));
            if key.mark != Mark::Dot {
                let stems = at
                    .clone()
                    .map(|(x, y)| PathElement::new([(x, 0.0), (x, y)], key.colour.light.mix(0.5)));
                chart.draw_series(stems)?;
            }
            at.clone().try_for_each(|at| key.draw(chart.plotting_area(), at))?;
        }
        Ok(())
    }
}

/// The entries of greatest magnitude, as many as are drawn of one kind.
fn largest(entries: &[Entry]) -> Vec<Entry> {
    let mut kept = entries.to_vec();
    kept.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    kept.truncate(MOST_POINTS / 3);
    kept
}
