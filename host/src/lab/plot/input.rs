//! What the pictures are drawn from: plain slices with their names.

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
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Name in the legend; a line without one stands in no legend.
    pub label: String,
    /// Places (x, y), in the order in which they are joined.
    pub points: Vec<(f64, f64)>,
    /// Which colour, counted round after six: what belongs together shares one.
    pub colour: usize,
    /// Whether it is what theory says, drawn with dashes and without dots.
    pub dashed: bool,
}

/// An axis of [`lines`](super::lines()).
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

/// What [`heat`](super::heat()) draws: one cell per pair of a row and a column.
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
    /// What a reader sees who points at a cell, in the order of the values; nothing where it is
    /// empty or missing.
    pub hover: &'a [String],
}

/// What [`panel`](super::panel()) draws on one page. An empty part says that there is no data.
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

/// The names on the page of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Names<'a> {
    /// Heading of the page.
    pub title: &'a str,
    /// What the curves are counted against.
    pub step: &'a str,
    /// What the last figure counts.
    pub counted: &'a str,
}
