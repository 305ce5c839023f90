//! Pictures of a training run, as SVG text: loss curves, weights beside those planted, predictions
//! beside labels, all of them on one page, heat maps over many runs, and sparklines for the
//! terminal.
//!
//! Every function takes plain slices, draws what is finite and says on the picture what it left
//! out. None fails and none panics, whatever the numbers. Pictures are 600 units wide with letters
//! of 14 and more, so that they can be read on a phone; they follow the reader's light or dark
//! setting, and the palette keeps apart for the colour-blind.
//!
//! The caller writes the text to a file; nothing here touches the disk.

mod axis;
mod figures;
mod heat_map;
mod input;
mod lines;
mod mark;
mod page;
mod palette;
mod spark;

pub use input::{Heat, Line, Measure, Names, Panel, Scale, Series};
pub use spark::{SPARKLINE_WIDTH, sparkline};

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
    page::page(title, page::FIGURE_HEIGHT, |area| figures::loss(area, title, time, series))
}

/// Lines over a quantity that is no count of steps, each axis linear or logarithmic. What is not
/// finite has no place.
///
/// ```
/// use tamis_host::lab::plot::{Line, Measure, lines};
/// let line = |label: &str, ends: [f64; 2], dashed| {
///     let points = vec![(100.0, ends[0]), (1000.0, ends[1])];
///     Line { label: label.to_owned(), points, colour: 0, dashed }
/// };
/// let rows = Measure { name: "n, rows", log: true };
/// let axes = [rows, Measure { name: "fraction of the rows", log: false }];
/// let lines_of = [line("gamma", [0.2, 0.3], false), line("limit", [0.33, 0.33], true)];
/// let svg = lines("Gates", axes, &lines_of);
/// assert!(svg.contains("n, rows") && svg.contains("limit"));
/// ```
#[must_use]
pub fn lines(title: &str, axes: [Measure<'_>; 2], lines: &[Line]) -> String {
    page::page(title, page::FIGURE_HEIGHT, |area| lines::draw(area, title, axes, lines))
}

/// Planted weights as rings and recovered ones as dots, over their flat index: a dot inside its
/// ring is a weight recovered. Planted weights that are missing and recovered ones that were never
/// planted have marks of their own.
///
/// Entries come in any order; of two with one index the later counts.
///
/// ```
/// use tamis_host::lab::plot::weights;
/// let svg = weights("Weights", &[(3, 1.0), (9, -2.0)], &[(3, 0.99), (40, 0.1)]);
/// assert!(svg.contains("1 of 2 planted weights found, 1 missing, 1 extra"));
/// ```
#[must_use]
pub fn weights(title: &str, planted: &[(usize, f32)], recovered: &[(usize, f32)]) -> String {
    page::page(title, page::FIGURE_HEIGHT, |area| figures::weights(area, title, planted, recovered))
}

/// Predictions against labels, with the diagonal on which they agree. The shorter length counts.
///
/// ```
/// let svg = tamis_host::lab::plot::scatter("Predictions", &[0.0, 1.0, 2.0], &[0.1, 0.9, 2.0]);
/// assert!(svg.contains("label") && svg.contains("prediction"));
/// ```
#[must_use]
pub fn scatter(title: &str, labels: &[f32], predictions: &[f32]) -> String {
    page::page(title, page::SQUARE_HEIGHT, |area| {
        figures::scatter(area, title, labels, predictions)
    })
}

/// The course of a run: losses on a logarithmic axis, and two figures of counts under it, all by
/// step.
///
/// ```
/// use tamis_host::lab::plot::{Names, Series, course};
/// let loss = Series { label: "loss", first: 1, values: &[1.0, 0.1, 1e-9] };
/// let weights = Series { label: "weights", first: 1, values: &[63.0, 63.0, 50.0] };
/// let live = Series { label: "live neurons", first: 1, values: &[12.0, 11.0, 10.0] };
/// let names = Names { title: "Search", step: "outer step", counted: "Neurons" };
/// let svg = course(names, &[loss], &[weights], &[live]);
/// assert!(svg.contains("outer step") && svg.contains("live neurons"));
/// ```
#[must_use]
pub fn course(
    names: Names<'_>,
    losses: &[Series<'_>],
    support: &[Series<'_>],
    counted: &[Series<'_>],
) -> String {
    figures::course(names, losses, support, counted)
}

/// A table of numbers whose cells are coloured by their values, from dark blue for the low end to
/// yellow for the high one. The lightness rises all the way, so that the colours also tell in print
/// and to the colour-blind; every cell carries its number.
///
/// ```
/// use tamis_host::lab::plot::{Heat, Scale, heat};
/// let labels = |of: [u32; 2]| of.map(|v| v.to_string());
/// let (m, s) = (labels([1, 2]), labels([10, 20]));
/// let svg = heat(&Heat {
///     title: "Recovery",
///     value: "PSNR, dB",
///     rows: Scale { name: "m", labels: &m },
///     columns: Scale { name: "s", labels: &s },
///     values: &[Some(160.0), Some(31.5), None, Some(-3.0)],
///     range: (-20.0, 160.0),
///     digits: 0,
///     starred: &[false, true],
///     star: "ended by the time limit",
///     hover: &[],
/// });
/// assert!(["160", "32*", "* ended by the time limit"].iter().all(|text| svg.contains(text)));
/// ```
#[must_use]
pub fn heat(heat: &Heat<'_>) -> String {
    heat_map::draw(heat)
}

/// One page with the facts, the loss, the weights and the predictions under each other.
///
/// ```
/// use tamis_host::lab::plot::{Panel, panel};
/// let facts = [("state", "1 216 bytes".to_string())];
/// let svg = panel(&Panel { title: "Demo", facts: &facts, time: "epoch", ..Panel::default() });
/// assert!(svg.contains("1 216 bytes") && svg.contains("no data"));
/// ```
#[must_use]
pub fn panel(panel: &Panel<'_>) -> String {
    figures::panel(panel)
}
