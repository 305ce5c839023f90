//! A column of the summary table of a part: a quantity of its cells, and what of the seeds is
//! shown.

use serde::{Deserialize, Serialize};

use super::metric::Metric;

/// `[STATISTIC ]QUANTITY[ >= NUMBER]`, such as `least psnr`, `seconds` or `psnr >= 120`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Column {
    pub(crate) statistic: Statistic,
    pub(crate) quantity: Quantity,
}

/// What is shown of the seeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Statistic {
    /// How many seeds have it, of how many; the default of metrics that are yes or no.
    Count,
    /// The default of the others.
    Median,
    Mean,
    Least,
    Most,
    /// Every seed's.
    Each,
    /// How many seeds have so much or more, of how many.
    Reaches(f64),
}

/// What is recorded of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// A metric; PSNR and accuracy on the rows of the part.
    Of(Metric),
    /// PSNR or accuracy on the test rows.
    Test(Metric),
    /// A number of a record, or its recipe.
    Recorded(Recorded),
}

/// What is recorded of a cell beside metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// The one that is no number.
    Recipe,
    Seconds,
    Passes,
    Nonzeros,
    StateBytes,
    WorkspaceBytes,
    DataBytes,
    HeapPeakBytes,
    RssPeakBytes,
    ModelBytes,
}

/// In the order of [`Recorded`]: name in specs, title, digits.
static RECORDED: [(Recorded, &str, &str, usize); 10] = [
    (Recorded::Recipe, "recipe", "recipe", 0),
    (Recorded::Seconds, "seconds", "seconds", 2),
    (Recorded::Passes, "passes", "passes", 0),
    (Recorded::Nonzeros, "nonzeros", "nonzeros", 0),
    (Recorded::StateBytes, "state", "state, bytes", 0),
    (Recorded::WorkspaceBytes, "workspace", "workspace, bytes", 0),
    (Recorded::DataBytes, "data", "data, bytes", 0),
    (Recorded::HeapPeakBytes, "heap", "heap, bytes", 0),
    (Recorded::RssPeakBytes, "rss", "peak of the process, bytes", 0),
    (Recorded::ModelBytes, "model", "model, bytes", 0),
];
const STATISTICS: [(&str, Statistic); 5] = [
    ("median", Statistic::Median),
    ("mean", Statistic::Mean),
    ("least", Statistic::Least),
    ("most", Statistic::Most),
    ("each", Statistic::Each),
];

impl Quantity {
    /// The recipe, the one quantity that is no number.
    pub(crate) const RECIPE: Self = Self::Recorded(Recorded::Recipe);

    fn parse(name: &str) -> Option<Self> {
        let metric = |name: &str| Metric::all().find(|metric| metric.name() == name);
        if let Some((recorded, ..)) = RECORDED.iter().find(|(_, own, ..)| *own == name) {
            return Some(Self::Recorded(*recorded));
        }
        match name.strip_prefix("test-") {
            Some(name) => metric(name).filter(|metric| !metric.is_measured()).map(Self::Test),
            None => metric(name).map(Self::Of),
        }
    }

    fn name(self) -> String {
        match self {
            Self::Of(metric) => metric.name().into(),
            Self::Test(metric) => format!("test-{}", metric.name()),
            Self::Recorded(at) => RECORDED[at as usize].1.into(),
        }
    }

    /// As people read it, and digits behind the point.
    pub(crate) fn shown(self) -> (String, usize) {
        match self {
            Self::Of(metric) => (metric.title().into(), metric.digits().1),
            Self::Test(metric) => (format!("{} on test rows", metric.title()), metric.digits().1),
            Self::Recorded(at) => {
                let (_, _, title, digits) = RECORDED[at as usize];
                (title.into(), digits)
            }
        }
    }

    /// What is shown of the seeds where a column does not say it.
    fn default_statistic(self) -> Statistic {
        match self {
            Self::Of(metric) if metric.is_yes_or_no() => Statistic::Count,
            _ => Statistic::Median,
        }
    }
}

impl Statistic {
    /// As columns call it.
    fn name(self) -> &'static str {
        STATISTICS.iter().find(|(_, own)| *own == self).map_or("", |(name, _)| name)
    }
}

impl Column {
    /// As people read it.
    pub(crate) fn title(self) -> String {
        let (title, _) = self.quantity.shown();
        match self.statistic {
            Statistic::Count => title,
            Statistic::Reaches(least) => format!("{title} ≥ {least}"),
            Statistic::Median if self.quantity == Quantity::RECIPE || title.ends_with("bytes") => {
                title
            }
            Statistic::Each => format!("{title}, every seed"),
            other => format!("{title}, {}", other.name()),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if let Some((name, least)) = text.split_once(">=") {
            let statistic = Statistic::Reaches(least.trim().parse().ok()?);
            return Some(Self { statistic, quantity: Quantity::parse(name.trim())? });
        }
        if let Some(quantity) = Quantity::parse(text) {
            return Some(Self { statistic: quantity.default_statistic(), quantity });
        }
        let (first, name) = text.split_once(' ')?;
        let (_, statistic) = STATISTICS.into_iter().find(|(own, _)| *own == first)?;
        Some(Self { statistic, quantity: Quantity::parse(name)? })
    }
}

impl TryFrom<String> for Column {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| {
            let recorded = RECORDED.map(|(_, name, ..)| name).join(", ");
            let metrics: Vec<&str> = Metric::all().map(Metric::name).collect();
            let metrics = metrics.join(", ");
            format!(
                "{text:?} is no column: [median|mean|least|most|each] QUANTITY or QUANTITY >= \
                 NUMBER, where QUANTITY is {recorded}, test-psnr, test-accuracy, {metrics}"
            )
        })
    }
}

impl From<Column> for String {
    fn from(Column { statistic, quantity }: Column) -> Self {
        let name = quantity.name();
        match statistic {
            Statistic::Reaches(least) => format!("{name} >= {least}"),
            own if own == quantity.default_statistic() => name,
            own => format!("{} {name}", own.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_read_as_they_are_written() {
        for text in [
            "exact",
            "least psnr",
            "psnr >= 120",
            "seconds",
            "most seconds",
            "each test-accuracy",
            "rss",
        ] {
            assert_eq!(String::from(Column::try_from(text.to_owned()).unwrap()), text);
        }
        assert_eq!(
            Column::try_from("median exact".to_owned()).unwrap().statistic,
            Statistic::Median
        );
        for text in ["", "fast", "best psnr", "psnr >= x", "least"] {
            assert!(
                Column::try_from(text.to_owned()).unwrap_err().contains("is no column"),
                "{text}"
            );
        }
    }

    #[test]
    fn recorded_numbers_stand_in_their_order() {
        for (at, (recorded, name, ..)) in RECORDED.iter().enumerate() {
            assert_eq!(*recorded as usize, at);
            assert_eq!(Quantity::parse(name).map(Quantity::name).as_deref(), Some(*name));
        }
    }
}
