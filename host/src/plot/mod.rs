//! Pictures of a training run, as SVG text: loss curves, weights beside those planted, predictions beside labels, all
//! of them on one page, heat maps over many runs, and sparklines for the terminal.
//!
//! Every function takes plain slices, draws what is finite and says on the picture what it left out. None fails and
//! none panics, whatever the numbers. Pictures are 600 units wide with letters of 14 and more, so that they can be read on
//! a phone; they follow the reader's light or dark setting, and the palette keeps apart for the colour-blind.
//!
//! The caller writes the text to a file; nothing here touches the disk.

mod axis;
mod figures;
mod heat;
mod lines;
mod mark;
mod page;
mod spark;

pub use spark::{SPARKLINE_WIDTH, sparkline};

/// A named line of a loss curve.
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
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line<'a> {
    /// Name in the legend; a line without one stands in no legend.
    pub label: &'a str,
    /// Places (x, y), in the order in which they are joined.
    pub points: &'a [(f64, f64)],
    /// Which colour, counted round after six: what belongs together shares one.
    pub colour: usize,
    /// Whether it is what theory says, drawn with dashes and without dots.
    pub dashed: bool,
}

/// An axis of [`lines`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measure<'a> {
    /// What is measured along it, with its unit.
    pub name: &'a str,
    /// Whether it is logarithmic; values of 0 and less then lie on a line marked 0.
    pub log: bool,
}

/// One axis of a heat map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale<'a> {
    /// What is counted along it.
    pub name: &'a str,
    /// One label per row or column of cells.
    pub labels: &'a [String],
}

/// What [`heat`] draws: one cell per pair of a row and a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Heat<'a> {
    /// Heading of the picture.
    pub title: &'a str,
    /// What a value is, with its unit: `"PSNR, dB"`.
    pub value: &'a str,
    /// Down the picture.
    pub rows: Scale<'a>,
    /// Across the picture.
    pub columns: Scale<'a>,
    /// Values row by row; `None`, and what is missing, is a cell that was not measured.
    pub values: &'a [Option<f32>],
    /// Values at the two ends of the colours; values beyond have the colour of the end.
    pub range: (f32, f32),
    /// Digits behind the point.
    pub digits: usize,
    /// Cells with a star, in the order of the values; those missing have none.
    pub starred: &'a [bool],
    /// What a star says; it stands under the picture where there is a star.
    pub star: &'a str,
    /// What a reader sees who points at a cell, in the order of the values; nothing where it is empty or missing.
    pub hover: &'a [String],
}

/// What [`panel`] draws on one page. An empty part says that there is no data.
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

/// Losses against `time` (`"epoch"`, `"step"`) on a logarithmic axis; values of 0 and less lie on a line marked 0
/// below it, and gaps stand where a value is not finite. Colours repeat after six series.
///
/// ```
/// use tamis_host::plot::{Series, loss_curve};
/// let training = Series { label: "training", first: 0, values: &[1.0, 0.1, 1e-4, 0.0] };
/// let svg = loss_curve("Loss", "epoch", &[training]);
/// assert!(svg.starts_with("<svg") && svg.contains("training"));
/// ```
#[must_use]
pub fn loss_curve(title: &str, time: &str, series: &[Series<'_>]) -> String {
    page::page(title, page::FIGURE_HEIGHT, |area| figures::loss(area, title, time, series))
}

/// Lines over a quantity that is no count of steps, each axis linear or logarithmic. What is not finite has no place.
///
/// ```
/// use tamis_host::plot::{Line, Measure, lines};
/// let measured = Line { label: "gamma", points: &[(100.0, 0.2), (1000.0, 0.3)], colour: 0, dashed: false };
/// let limit = Line { label: "limit", points: &[(100.0, 0.33), (1000.0, 0.33)], colour: 0, dashed: true };
/// let axes = [Measure { name: "n, rows", log: true }, Measure { name: "part of the rows", log: false }];
/// let svg = lines("Gates", axes, &[measured, limit]);
/// assert!(svg.contains("n, rows") && svg.contains("limit"));
/// ```
#[must_use]
pub fn lines(title: &str, axes: [Measure<'_>; 2], lines: &[Line<'_>]) -> String {
    page::page(title, page::FIGURE_HEIGHT, |area| lines::draw(area, title, axes, lines))
}

/// Planted weights as rings and recovered ones as dots, over their flat index: a dot inside its ring is a weight
/// recovered. Planted weights that are missing and recovered ones that were never planted have marks of their own.
///
/// Entries come in any order; of two with one index the later counts.
///
/// ```
/// let svg = tamis_host::plot::weights("Weights", &[(3, 1.0), (9, -2.0)], &[(3, 0.99), (40, 0.1)]);
/// assert!(svg.contains("1 of 2 planted weights found, 1 missing, 1 extra"));
/// ```
#[must_use]
pub fn weights(title: &str, planted: &[(usize, f32)], recovered: &[(usize, f32)]) -> String {
    page::page(title, page::FIGURE_HEIGHT, |area| figures::weights(area, title, planted, recovered))
}

/// Predictions against labels, with the diagonal on which they agree. The shorter length counts.
///
/// ```
/// let svg = tamis_host::plot::scatter("Predictions", &[0.0, 1.0, 2.0], &[0.1, 0.9, 2.0]);
/// assert!(svg.contains("label") && svg.contains("prediction"));
/// ```
#[must_use]
pub fn scatter(title: &str, labels: &[f32], predictions: &[f32]) -> String {
    page::page(title, page::SQUARE_HEIGHT, |area| figures::scatter(area, title, labels, predictions))
}

/// The course of a run: losses on a logarithmic axis, and two figures of counts under it, all by step. The names are those of the
/// page, of a step, and of what the last figure counts.
///
/// ```
/// use tamis_host::plot::{Series, course};
/// let loss = Series { label: "loss", first: 1, values: &[1.0, 0.1, 1e-9] };
/// let weights = Series { label: "weights", first: 1, values: &[63.0, 63.0, 50.0] };
/// let live = Series { label: "live neurons", first: 1, values: &[12.0, 11.0, 10.0] };
/// let svg = course(("Search", "outer step", "Neurons"), &[loss], &[weights], &[live]);
/// assert!(svg.contains("outer step") && svg.contains("live neurons"));
/// ```
#[must_use]
pub fn course(
    names: (&str, &str, &str),
    losses: &[Series<'_>],
    support: &[Series<'_>],
    counted: &[Series<'_>],
) -> String {
    figures::course(names, losses, support, counted)
}

/// A table of numbers whose cells are coloured by their values, from dark blue for the low end to yellow for the high one.
/// The lightness rises all the way, so that the colours also tell in print and to the colour-blind; every cell carries
/// its number.
///
/// ```
/// use tamis_host::plot::{Heat, Scale, heat};
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
/// assert!(svg.contains("160") && svg.contains("32*") && svg.contains("* ended by the time limit"));
/// ```
#[must_use]
pub fn heat(heat: &Heat<'_>) -> String {
    heat::draw(heat)
}

/// One page with the facts, the loss, the weights and the predictions under each other.
///
/// ```
/// use tamis_host::plot::{Panel, panel};
/// let facts = [("state", "1 216 bytes".to_string())];
/// let svg = panel(&Panel { title: "Demo", facts: &facts, time: "epoch", ..Panel::default() });
/// assert!(svg.contains("1 216 bytes") && svg.contains("no data"));
/// ```
#[must_use]
pub fn panel(panel: &Panel<'_>) -> String {
    figures::panel(panel)
}
