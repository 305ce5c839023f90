//! The axes along which the cells of a part differ.

use super::super::spec::{Data, Part, Point};

/// One axis.
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

    /// Those that tables of a part have a column for: of a training m and s, of a check all that it
    /// has, and what else varies.
    pub(super) fn of(part: &Part) -> Vec<Self> {
        let points = part.points();
        let varies = |axis: Self| points.iter().any(|&at| axis.at(at) != axis.at(points[0]));
        let has = |axis: &Self| match axis {
            Self::Variant => varies(*axis),
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
    pub(super) fn text(self, part: &Part, point: Point) -> String {
        match self {
            Self::Variant => part.variant(point).title().to_owned(),
            _ => self.at(point).to_string(),
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::M => "m",
            Self::S => "s",
            Self::N => "n",
            Self::D => "d",
            Self::Variant => "variant",
        }
    }

    /// What is counted along it.
    pub(super) const fn noun(self, part: &Part) -> &'static str {
        let (gates, check) = (matches!(part.data, Data::Gates { .. }), part.data.is_check());
        match self {
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

    pub(super) fn title(self, part: &Part) -> String {
        format!("{}, {}", self.name(), self.noun(part))
    }
}

/// A point in words, such as `m = 10, s = 50`.
pub(super) fn place(part: &Part, point: Point) -> String {
    let axes = Axis::of(part).into_iter();
    let one = |axis: Axis| match axis {
        Axis::Variant => axis.text(part, point),
        _ => format!("{} = {}", axis.name(), axis.text(part, point)),
    };
    axes.map(one).collect::<Vec<_>>().join(", ")
}

/// What a map of the part has down and across, and their values in that order; none where there is
/// no grid.
pub(super) fn grid(part: &Part) -> Option<[(Axis, Vec<usize>); 2]> {
    if part.variants.len() > 1 || !part.sizes.is_empty() {
        return None;
    }
    let several = |axis: Axis| Axis::of(part).contains(&axis) && values(part, axis).len() > 1;
    let axes = match (part.data.is_check(), several(Axis::N)) {
        (true, true) if several(Axis::S) && matches!(part.data, Data::Gaussian { .. }) => {
            [Axis::N, Axis::S]
        }
        (true, _) => return None,
        (false, true) if !(several(Axis::S) && several(Axis::M)) => {
            [if several(Axis::S) { Axis::S } else { Axis::M }, Axis::N]
        }
        (false, true) => return None,
        (false, false) => [Axis::M, Axis::S],
    };
    let mut axes = axes.map(|axis| (axis, values(part, axis)));
    if axes[0].0 == Axis::N {
        axes[0].1.reverse();
    }
    Some(axes)
}

/// The values of a part along an axis, rising; those of sizes that cannot be included.
fn values(part: &Part, axis: Axis) -> Vec<usize> {
    let mut values = match axis {
        Axis::M => part.axes()[0].clone(),
        Axis::S => part.axes()[1].clone(),
        _ => part.points().into_iter().map(|at| axis.at(at)).collect(),
    };
    values.sort_unstable();
    values.dedup();
    values
}
