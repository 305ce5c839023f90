//! Figures with two axes, and pages of several.

use std::collections::BTreeMap;

use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::axis::Axis;
use super::mark::{Key, Mark};
use super::page::{self, Area, Drawn, Frame};

/// Flat index and value of a weight.
type Entry = (usize, f32);

/// Most values of one curve that are drawn; of longer ones every stretch shows its extremes.
const MOST_VALUES: usize = 800;
/// Most points and most weights that are drawn.
const MOST_POINTS: usize = 1500;
/// Lines up to this length have a dot at each value.
const DOTTED: usize = 40;

/// A named curve over steps or epochs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Series<'a> {
    /// Name in the legend.
    pub label: &'a str,
    /// Step or epoch of the first value: 0 when it was taken before training.
    pub first: usize,
    /// One value per step or epoch.
    pub values: &'a [f32],
}

/// A named line through places.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    /// In the legend, where it is not empty.
    pub(crate) label: String,
    /// Places (x, y), in the order in which they are joined; gaps where one is not finite.
    pub(crate) points: Vec<(f64, f64)>,
    /// Which colour, counted modulo six: what belongs together shares one.
    pub(crate) colour: usize,
    /// Whether it is what theory says, drawn with dashes and without dots.
    pub(crate) dashed: bool,
}

/// An axis of [`lines`]; on a logarithmic one values of 0 and less lie on a line marked 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Measure<'a> {
    pub(crate) name: &'a str,
    pub(crate) log: bool,
}

/// What [`panel`] draws on one page. An empty figure says that there is no data.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Panel<'a> {
    /// Heading of the page.
    pub title: &'a str,
    /// Names and values for the box under the heading, such as the byte budget.
    pub facts: &'a [(&'a str, String)],
    /// What the loss is counted against: `"epoch"`, `"step"`.
    pub time: &'a str,
    /// Loss curves.
    pub losses: &'a [Series<'a>],
    /// Planted weights: flat index and value.
    pub planted: &'a [(usize, f32)],
    /// Recovered weights: flat index and value.
    pub recovered: &'a [(usize, f32)],
    /// Labels of the samples.
    pub labels: &'a [f32],
    /// Predictions for the same samples.
    pub predictions: &'a [f32],
}

/// The names on the page of a run: its title, and what is counted along and in the last figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Names<'a> {
    pub(crate) title: &'a str,
    pub(crate) step: &'a str,
    pub(crate) counted: &'a str,
}

/// Losses against `time` (`"epoch"`, `"step"`) on a logarithmic axis; values of 0 and less lie on a
/// line marked 0 below it, and gaps stand where a value is not finite. Colours repeat after six
/// series.
///
/// ```
/// use tamis_host::lab::plot::{Series, loss_curve};
/// let training = Series { label: "training", first: 0, values: &[1.0, 0.1, 1e-4, 0.0] };
/// let svg = loss_curve("Loss", "epoch", &[training]);
/// assert!(svg.starts_with("<svg") && svg.contains("training"));
/// ```
#[must_use]
pub fn loss_curve(title: &str, time: &str, series: &[Series<'_>]) -> String {
    page::page(title, page::FIGURE_HEIGHT, |area| draw_losses(area, title, time, series))
}

/// Lines over a quantity that is no count of steps, each axis linear or logarithmic.
pub(crate) fn lines(title: &str, axes: [Measure<'_>; 2], lines: &[Line]) -> String {
    let points = || lines.iter().flat_map(|line| line.points.iter().copied());
    let finite = |(x, y): &(f64, f64)| (*x as f32).is_finite() && (*y as f32).is_finite();
    let lost = points().filter(|at| !finite(at)).count();
    let axis = |axis: Measure<'_>, of: fn((f64, f64)) -> f64| {
        let values = points().filter(finite).map(of);
        if axis.log { Axis::log(axis.name, values) } else { Axis::linear(axis.name, values) }
    };
    let axes = [axis(axes[0], |at| at.0), axis(axes[1], |at| at.1)];
    let notes = notes([(lost, "not finite, left out")]);
    page::page(title, page::FIGURE_HEIGHT, |area| draw_lines(area, title, axes, lines, notes))
}

/// Planted weights as rings and recovered ones as dots, over their flat index: a dot inside its
/// ring is a weight recovered. Planted weights that are missing and recovered ones that were never
/// planted have marks of their own.
///
/// Entries come in any order; of two with one index the later counts.
#[must_use]
pub fn weights(title: &str, planted: &[(usize, f32)], recovered: &[(usize, f32)]) -> String {
    page::page(title, page::FIGURE_HEIGHT, |area| draw_weights(area, title, planted, recovered))
}

/// Predictions against labels, with the diagonal on which they agree. The shorter length counts.
#[must_use]
pub fn scatter(title: &str, labels: &[f32], predictions: &[f32]) -> String {
    page::page(title, page::SQUARE_HEIGHT, |area| draw_scatter(area, title, labels, predictions))
}

/// The course of a run: losses on a logarithmic axis, and two figures of counts under it, all by
/// step.
pub(crate) fn course(
    names: Names<'_>,
    losses: &[Series<'_>],
    support: &[Series<'_>],
    counted: &[Series<'_>],
) -> String {
    let Names { title, step, counted: others } = names;
    let height = page::FIGURE_HEIGHT;
    stack(
        title,
        &[
            (height, &|area| draw_losses(area, "Loss", step, losses)),
            (height, &|area| draw_counts(area, "Support", step, support)),
            (height, &|area| draw_counts(area, others, step, counted)),
        ],
    )
}

/// One page with the facts, the loss, the weights and the predictions under each other.
#[must_use]
pub fn panel(panel: &Panel<'_>) -> String {
    let rows = panel.facts.len() as u32;
    let facts_height = if rows > 0 { 28 * rows + 24 } else { 0 };
    let figure = page::FIGURE_HEIGHT;
    stack(
        panel.title,
        &[
            (facts_height, &|area| draw_facts(area, panel.facts)),
            (figure, &|area| draw_losses(area, "Loss", panel.time, panel.losses)),
            (figure, &|area| draw_weights(area, "Weights", panel.planted, panel.recovered)),
            (page::SQUARE_HEIGHT, &|area| {
                draw_scatter(area, "Predictions", panel.labels, panel.predictions)
            }),
        ],
    )
}

/// A height, and what is drawn there.
type Figure<'a> = (u32, &'a dyn Fn(&Area<'_>) -> Drawn);

/// A page of figures under each other.
fn stack(title: &str, figures: &[Figure<'_>]) -> String {
    let head = 40;
    let height = head + figures.iter().map(|(height, _)| height).sum::<u32>();
    page::page(title, height, |area| {
        let (top, mut rest) = area.split_vertically(head);
        page::heading(&top, title)?;
        for (height, draw) in figures {
            let (own, below) = rest.split_vertically(*height);
            draw(&own)?;
            rest = below;
        }
        Ok(())
    })
}

fn draw_losses(area: &Area<'_>, title: &str, time: &str, series: &[Series<'_>]) -> Drawn {
    draw_series(area, title, time, series, Axis::log("loss (log scale)", values(series)))
}

/// Counts on a linear axis from 0.
fn draw_counts(area: &Area<'_>, title: &str, time: &str, series: &[Series<'_>]) -> Drawn {
    draw_series(area, title, time, series, Axis::linear("count", values(series).chain([0.0])))
}

fn values<'s>(series: &'s [Series<'_>]) -> impl Iterator<Item = f64> + Clone + 's {
    series.iter().flat_map(|s| s.values.iter().map(|&value| value.into()))
}

fn draw_series(area: &Area<'_>, title: &str, time: &str, series: &[Series<'_>], y: Axis) -> Drawn {
    let low = values(series).filter(|v| y.log && *v <= 0.0 && v.is_finite()).count();
    let lost = values(series).filter(|v| !v.is_finite()).count();
    let ends = series
        .iter()
        .filter_map(|s| Some([s.first, s.first.saturating_add(s.values.len().checked_sub(1)?)]));
    let x = Axis::count(time, ends.flatten());
    let line = |(colour, s): (usize, &Series<'_>)| {
        let points = thin(s.values).into_iter();
        let points = points.map(|(i, value)| (s.first as f64 + i as f64, value.into())).collect();
        Line { label: s.label.to_owned(), points, colour, dashed: false }
    };
    let lines: Vec<Line> = series.iter().enumerate().map(line).collect();
    let notes = notes([(low, "not above 0, drawn on the line 0"), (lost, "not finite, left out")]);
    draw_lines(area, title, [x, y], &lines, notes)
}

/// Lines between neighbours that both have a place, dots where a line would not show.
fn draw_lines(
    area: &Area<'_>,
    title: &str,
    [x, y]: [Axis; 2],
    lines: &[Line],
    notes: Vec<String>,
) -> Drawn {
    let place = |at: &(f64, f64)| Some((x.place(at.0)?, y.place(at.1)?));
    let runs = |line: &Line| -> Vec<Vec<(f64, f64)>> {
        let runs = line.points.split(|at| place(at).is_none()).filter(|run| !run.is_empty());
        runs.map(|run| run.iter().filter_map(place).collect()).collect()
    };
    let runs: Vec<_> = lines.iter().map(runs).collect();
    let is_dotted = |line: &Line| line.points.len() <= DOTTED;
    let colour = |line: &Line| page::SERIES[line.colour % page::SERIES.len()];
    // A colour that is another line's, too, is told by the dashes.
    let is_dashed = |line: &Line| line.dashed || line.colour >= page::SERIES.len();
    let key = |(line, runs): (&Line, &Vec<Vec<_>>)| {
        let mark = match runs.iter().any(|run| run.len() > 1) {
            _ if is_dashed(line) => Mark::Dashed,
            false => Mark::Dot,
            true if is_dotted(line) => Mark::Dotted,
            true => Mark::Line,
        };
        Key::new(mark, colour(line), &line.label)
    };
    let keys = lines.iter().zip(&runs).filter(|(line, _)| !line.label.is_empty()).map(key);
    let (keys, empty) = (keys.collect(), runs.iter().all(Vec::is_empty));
    Frame { title, keys, x, y, notes, empty }.draw(area, |chart| {
        for (line, runs) in lines.iter().zip(runs) {
            let style = colour(line).light.stroke_width(2);
            let dot = Key::new(Mark::Dot, colour(line), "");
            for run in runs {
                if is_dashed(line) {
                    chart.draw_series([DashedPathElement::new(run, 7, 5, style)])?;
                    continue;
                }
                if run.len() == 1 || is_dotted(line) {
                    run.iter().try_for_each(|&at| dot.draw(chart.plotting_area(), at))?;
                }
                if run.len() > 1 {
                    chart.draw_series([PathElement::new(run, style)])?;
                }
            }
        }
        Ok(())
    })
}

fn draw_weights(area: &Area<'_>, title: &str, planted: &[Entry], recovered: &[Entry]) -> Drawn {
    let (planted, recovered) = (finite(planted), finite(recovered));
    let pick = |of: &BTreeMap<usize, f32>, other: &BTreeMap<usize, f32>, shared: bool| {
        let of = of.iter().filter(|(i, _)| other.contains_key(i) == shared);
        of.map(|(&i, &v)| (i, v)).collect::<Vec<Entry>>()
    };
    let key = |mark, colour: usize, label| Key::new(mark, page::SERIES[colour], label);
    let marks = [
        (key(Mark::Ring, 0, "planted"), pick(&planted, &recovered, true)),
        (key(Mark::Dot, 1, "recovered"), pick(&recovered, &planted, true)),
        (key(Mark::Triangle, 3, "missing"), pick(&planted, &recovered, false)),
        (key(Mark::Cross, 1, "extra"), pick(&recovered, &planted, false)),
    ];
    let [found, _, missing, extra] = marks.each_ref().map(|(_, entries)| entries.len());
    let all = found + missing;
    let mut notes =
        vec![format!("{found} of {all} planted weights found, {missing} missing, {extra} extra")];
    let entries = || planted.iter().chain(&recovered);
    if entries().count() > MOST_POINTS {
        notes.push("only the largest of each kind are drawn".to_owned());
    }
    let is_needed = |(key, entries): &&(Key, Vec<Entry>)| {
        matches!(key.mark, Mark::Ring | Mark::Dot) || !entries.is_empty()
    };
    let frame = Frame {
        title,
        keys: marks.iter().filter(is_needed).map(|(key, _)| key.clone()).collect(),
        x: Axis::count("flat index of the weight", entries().map(|(&i, _)| i)),
        y: Axis::linear("weight", entries().map(|(_, &v)| v.into()).chain([0.0])),
        notes,
        empty: entries().count() == 0,
    };
    frame.draw(area, |chart| {
        let zero = [(frame.x.low, 0.0), (frame.x.high, 0.0)];
        chart.draw_series([PathElement::new(zero, page::FAINT.light)])?;
        for (key, mut entries) in marks {
            entries.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
            entries.truncate(MOST_POINTS / 3);
            let mut at = entries.iter().map(|&(i, v)| (i as f64, f64::from(v)));
            if key.mark != Mark::Dot {
                let style = key.colour.light.mix(0.5);
                let stem = |(x, y)| PathElement::new([(x, 0.0), (x, y)], style);
                chart.draw_series(at.clone().map(stem))?;
            }
            at.try_for_each(|at| key.draw(chart.plotting_area(), at))?;
        }
        Ok(())
    })
}

fn draw_scatter(area: &Area<'_>, title: &str, labels: &[f32], predictions: &[f32]) -> Drawn {
    let pairs = || labels.iter().zip(predictions).map(|(&a, &b)| (f64::from(a), f64::from(b)));
    let points: Vec<(f64, f64)> = pairs().filter(|(a, b)| a.is_finite() && b.is_finite()).collect();
    let axis = |name| Axis::linear(name, points.iter().flat_map(|(a, b)| [*a, *b]));
    let shown = points.len().min(MOST_POINTS);
    let mut notes = notes([(pairs().count() - points.len(), "not finite, left out")]);
    if shown < points.len() {
        notes.insert(0, format!("{shown} of {} samples drawn, evenly spaced", points.len()));
    }
    let sample = Key::new(Mark::Dot, page::SERIES[0], "sample");
    let frame = Frame {
        title,
        keys: vec![sample, Key::new(Mark::Line, page::INK, "prediction = label")],
        x: axis("label"),
        y: axis("prediction"),
        notes,
        empty: points.is_empty(),
    };
    frame.draw(area, |chart| {
        let spread = (0..shown).map(|i| points[i * points.len() / shown]);
        // Where points are many, darker means more of them.
        let style = page::SERIES[0].light.mix(if shown > 200 { 0.5 } else { 1.0 }).filled();
        chart.draw_series(spread.map(|at| Circle::new(at, 3, style)))?;
        let diagonal = [(frame.x.low, frame.y.low), (frame.x.high, frame.y.high)];
        chart.draw_series([PathElement::new(diagonal, page::INK.light)]).map(drop)
    })
}

/// A box of names on the left and values on the right.
fn draw_facts(area: &Area<'_>, facts: &[(&str, String)]) -> Drawn {
    if facts.is_empty() {
        return Ok(());
    }
    let (wide, high) = area.dim_in_pixel();
    let (wide, high) = (wide as i32, high as i32);
    let (left, right) = (2 * page::SIDE, wide - 2 * page::SIDE);
    area.draw(&Rectangle::new([(page::SIDE, 4), (wide - page::SIDE, high - 8)], page::GRID.light))?;
    for ((name, value), y) in facts.iter().zip((24..).step_by(28)) {
        let value = page::fit(value, page::TEXT, (right - left) * 3 / 4);
        let room = right - left - page::width_of(&value, page::TEXT) - page::SIDE;
        let name = page::fit(name, page::TEXT, room);
        page::write(area, &name, &page::letters(page::TEXT, page::FAINT), HPos::Left, left, y)?;
        page::write(area, &value, &page::letters(page::TEXT, page::INK), HPos::Right, right, y)?;
    }
    Ok(())
}

fn notes<const N: usize>(counts: [(usize, &str); N]) -> Vec<String> {
    let noted = counts.into_iter().filter(|(count, _)| *count > 0);
    let values = |count| if count == 1 { "value" } else { "values" };
    noted.map(|(count, what)| format!("{count} {}: {what}", values(count))).collect()
}

/// At most [`MOST_VALUES`] values with their positions, and one more for each gap: the least and
/// the greatest of each stretch, in order; one gap for a stretch without a finite value.
fn thin(values: &[f32]) -> Vec<(usize, f32)> {
    if values.len() <= MOST_VALUES {
        return values.iter().copied().enumerate().collect();
    }
    let stretches = MOST_VALUES / 2;
    let bound = |i: usize| (i as u128 * values.len() as u128 / stretches as u128) as usize;
    let extremes = |i: usize| {
        let finite = || (bound(i)..bound(i + 1)).filter(|&at| values[at].is_finite());
        let least = finite().min_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap_or(bound(i));
        let most = finite().max_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap_or(bound(i));
        let both = [least.min(most), least.max(most)];
        both.into_iter().take(if least == most { 1 } else { 2 })
    };
    (0..stretches).flat_map(extremes).map(|at| (at, values[at])).collect()
}

/// Entries by index, without what is not finite.
fn finite(entries: &[Entry]) -> BTreeMap<usize, f32> {
    entries.iter().copied().filter(|(_, v)| v.is_finite()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_axes_and_labels() {
        let points = vec![(100.0, 0.2), (1000.0, 0.3)];
        let line = Line { label: "gamma".to_owned(), points, colour: 0, dashed: false };
        let rows = Measure { name: "n, rows", log: true };
        let svg = lines("Gates", [rows, Measure { name: "fraction", log: false }], &[line]);
        assert!(svg.contains("n, rows") && svg.contains("gamma"));
    }

    #[test]
    fn lines_of_one_colour_are_told_apart() {
        let line = |colour| Line {
            label: format!("line {colour}"),
            points: (0..90).map(|k| (f64::from(k), 0.5)).collect(),
            colour,
            dashed: false,
        };
        let drawn = |colour| {
            let axes = ["x", "y"].map(|name| Measure { name, log: false });
            lines("Lines", axes, &[line(colour)]).replace(&format!("line {colour}"), "line")
        };
        let all = [0, 1, page::SERIES.len(), page::SERIES.len() + 1].map(drawn);
        for (i, svg) in all.iter().enumerate() {
            assert!(!all[..i].contains(svg), "{i}");
        }
    }

    #[test]
    fn a_course_has_its_names() {
        let loss = Series { label: "loss", first: 1, values: &[1.0, 0.1, 1e-9] };
        let live = Series { label: "live neurons", first: 1, values: &[12.0, 11.0, 10.0] };
        let names = Names { title: "Search", step: "outer step", counted: "Neurons" };
        let svg = course(names, &[loss], &[], &[live]);
        assert!(svg.contains("outer step") && svg.contains("live neurons"));
    }
}
