//! The axes along which the cells of a part differ.

use super::super::spec::{Data, Part, Point};
use super::table::{Item, Table, listed};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Axis {
    M,
    S,
    N,
    D,
    Variant,
}

impl Axis {
    const ALL: [Self; 5] = [Self::M, Self::S, Self::N, Self::D, Self::Variant];

    /// The axes in tables: m and s of a training, all that a check has, and those that vary.
    pub(super) fn of(part: &Part) -> Vec<Self> {
        let points = part.points();
        let varies = |axis: Self| points.iter().any(|&at| axis.at(at) != axis.at(points[0]));
        let has = |axis: &Self| match axis {
            Self::Variant => varies(*axis),
            // As many as pixels, always.
            Self::D if matches!(part.data, Data::Masked(_) | Data::Dense(_)) => false,
            _ if part.data.is_check() => points.iter().any(|&at| axis.at(at) > 0),
            Self::M | Self::S => true,
            _ => varies(*axis),
        };
        Self::ALL.into_iter().filter(has).collect()
    }

    /// Where a point is along it.
    pub(super) const fn at(self, point: Point) -> usize {
        match self {
            Self::M => point.m,
            Self::S => point.s,
            Self::N => point.n,
            Self::D => point.d,
            Self::Variant => point.variant,
        }
    }

    /// The same in words.
    fn text(self, part: &Part, point: Point) -> String {
        match self {
            Self::Variant => part.variant(point).title().to_owned(),
            _ => self.at(point).to_string(),
        }
    }

    pub(super) const fn name(self) -> &'static str {
        ["m", "s", "n", "d", "variant"][self as usize]
    }

    /// What is counted along it.
    pub(super) const fn noun(self, part: &Part) -> &'static str {
        let (gates, check) = (matches!(part.data, Data::Gates { .. }), part.data.is_check());
        let is_sketch = matches!(part.data, Data::Sketch { .. });
        match self {
            _ if part.data.is_random() => self.noun_of_random(&part.data),
            Self::M if matches!(part.data, Data::Dense(_)) => "neurons of a hidden layer",
            Self::N | Self::D if matches!(part.data, Data::Dense(_)) => {
                ["rows", "columns"][(self as usize) - 2]
            }
            Self::N if is_sketch => "samples",
            Self::D if is_sketch || matches!(part.data, Data::Masks { .. }) => "inputs",
            Self::S if matches!(part.data, Data::Masks { .. }) => "weights that are kept",
            Self::S if is_sketch => "draws of a mask",
            Self::N if gates || !check => "rows",
            Self::N => "measurements",
            Self::D if gates || !check => "inputs",
            Self::D => "entries of the vector",
            Self::M if check => "generators",
            Self::M => "neurons of a hidden layer",
            Self::S if check => "nonzeros",
            Self::S => "nonzero weights",
            Self::Variant => "variants",
        }
    }

    /// The same of random matrices and networks, and of matrix sensing.
    const fn noun_of_random(self, data: &Data) -> &'static str {
        match (self, data) {
            (Self::Variant, _) => "variants",
            (Self::N, Data::Matrices { .. }) => "rows",
            (Self::D, Data::Matrices { .. }) => "columns",
            (Self::N, Data::Numbers { .. }) => "numbers",
            (Self::S, Data::Numbers { .. }) => "rank of a number",
            (Self::D, Data::Numbers { .. }) => "bins",
            (Self::N, Data::Convolutions { .. }) => "side of a map",
            (Self::S, Data::Convolutions { .. }) => "side of a filter",
            (Self::D, Data::Convolutions { .. }) => "channels",
            (Self::M, _) => "columns of the model",
            (Self::S, _) => "rank of the target",
            (Self::N, _) => "measurements",
            (Self::D, Data::Networks(_)) => "width",
            (Self::D, _) => "rows of the factors",
        }
    }

    pub(super) fn title(self, part: &Part) -> String {
        format!("{}, {}", self.name(), self.noun(part))
    }

    pub(super) fn equals(self, point: Point) -> String {
        format!("{} = {}", self.name(), self.at(point))
    }
}

/// A table with rows for each size: its axes, then `cells`.
pub(super) fn by_size<R: IntoIterator<Item = Vec<Item>>>(
    part: &Part,
    [title, note]: [&str; 2],
    columns: impl IntoIterator<Item = String>,
    mut cells: impl FnMut(Point) -> R,
) -> Table {
    let axes = Axis::of(part);
    let mut rows = Vec::new();
    for at in part.points() {
        let size = || axes.iter().map(|axis| axis.text(part, at).into());
        rows.extend(cells(at).into_iter().map(|cells| size().chain(cells).collect()));
    }
    let head = axes.iter().map(|axis| axis.name().to_owned());
    Table::new(title, note, head.chain(columns), rows)
}

/// A point in words, such as `m = 10, s = 50`.
pub(super) fn place(part: &Part, point: Point) -> String {
    listed(Axis::of(part).into_iter().map(|axis| match axis {
        Axis::Variant => axis.text(part, point),
        _ => axis.equals(point),
    }))
}

/// An axis of a map, and its values in the order of the map.
pub(super) struct Side {
    pub(super) axis: Axis,
    pub(super) values: Vec<usize>,
}

/// The axes of a map.
pub(super) struct Grid {
    pub(super) down: Side,
    pub(super) across: Side,
}

impl Grid {
    /// None where the part is no grid.
    pub(super) fn of(part: &Part) -> Option<Self> {
        if part.variants.len() > 1 || !part.sizes.is_empty() {
            return None;
        }
        let several = |axis: Axis| Axis::of(part).contains(&axis) && values(part, axis).len() > 1;
        let [down, across] = match (part.data.is_check(), several(Axis::N)) {
            (true, true) if several(Axis::S) && matches!(part.data, Data::Gaussian { .. }) => {
                [Axis::N, Axis::S]
            }
            (false, true) if !(several(Axis::S) && several(Axis::M)) => {
                [if several(Axis::S) { Axis::S } else { Axis::M }, Axis::N]
            }
            (true, _) | (false, true) => return None,
            (false, false) => [Axis::M, Axis::S],
        };
        let mut rows = values(part, down);
        if down == Axis::N {
            rows.reverse();
        }
        Some(Self {
            down: Side { axis: down, values: rows },
            across: Side { axis: across, values: values(part, across) },
        })
    }

    /// The points, row by row; none where the part has no such cell.
    pub(super) fn points(&self, part: &Part) -> Vec<Vec<Option<Point>>> {
        let points = part.points();
        let Self { down, across } = self;
        let find = |a: usize, b: usize| {
            points.iter().copied().find(|&at| (down.axis.at(at), across.axis.at(at)) == (a, b))
        };
        let row = |&a: &usize| across.values.iter().map(|&b| find(a, b)).collect();
        down.values.iter().map(row).collect()
    }
}

/// The values of a part along an axis, rising; those of impossible sizes included.
fn values(part: &Part, axis: Axis) -> Vec<usize> {
    let mut values = match axis {
        Axis::M => part.m.clone(),
        Axis::S => part.s.clone(),
        _ => part.points().into_iter().map(|at| axis.at(at)).collect(),
    };
    values.sort_unstable();
    values.dedup();
    values
}
