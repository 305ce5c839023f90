//! Figures to compare with: what the paper prints, and what was measured of its authors' code. They
//! stand in `host/specs/known.toml`, each list with its source.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::spec::Method;
use crate::base::statistics::median;
use crate::{Error, Result};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Value {
    pub(crate) method: Method,
    pub(crate) m: usize,
    pub(crate) s: usize,
    /// In the metric of the part, of the one seed that is known or of seed 0.
    pub(crate) value: f64,
    /// The same of further seeds, where they are known; not a number where the run diverged.
    #[serde(default)]
    more: Vec<f64>,
    pub(crate) seconds: Option<f64>,
    /// Megabytes above what was resident before.
    mb: Option<f64>,
    note: Option<String>,
}

impl Value {
    /// Of all seeds that are known.
    fn all(&self) -> impl Iterator<Item = f64> + '_ {
        std::iter::once(self.value).chain(self.more.iter().copied())
    }

    /// The median of these, a run that diverged below all others; NaN where that is the median.
    pub(crate) fn median(&self) -> f64 {
        let all = self.all().map(|v| if v.is_nan() { f64::NEG_INFINITY } else { v });
        median(all.collect()).filter(|middle| middle.is_finite()).unwrap_or(f64::NAN)
    }

    pub(crate) fn text(&self, digits: usize) -> String {
        let median = self.median();
        if median.is_nan() { "diverged".to_owned() } else { format!("{median:.digits$}") }
    }

    /// What else there is to know.
    pub(crate) fn about(&self) -> String {
        let text = |v: f64| if v.is_nan() { "diverged".into() } else { v.to_string() };
        let seeds: Vec<String> = self.all().map(text).collect();
        let (last, list) = (self.more.len(), seeds.join(", "));
        let seeds = (last > 0).then(|| format!("seeds 0 to {last}: {list}"));
        [self.note.clone(), seeds].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Known {
    /// `experiment/part`, for which they hold.
    parts: Vec<String>,
    /// Printed in the paper.
    pub(crate) published: Vec<Value>,
    pub(crate) reference: Vec<Value>,
}

impl Known {
    /// Both lists, with their sources as reports call them.
    pub(crate) fn sources(&self) -> [(&'static str, &[Value]); 2] {
        [("published", &self.published), ("authors' code", &self.reference)]
    }

    fn read() -> Result<Vec<Self>> {
        let file: BTreeMap<String, Vec<Self>> =
            toml::from_str(include_str!("../../../specs/known.toml"))
                .map_err(|error| Error::new("the known figures cannot be read").source(error))?;
        Ok(file.into_values().flatten().collect())
    }

    /// The figures of a part of an experiment; none where nothing is known.
    pub(crate) fn of(experiment: &str, part: &str) -> Result<Self> {
        let name = format!("{experiment}/{part}");
        let mut known = Self::default();
        for entry in Self::read()?.into_iter().filter(|entry| entry.parts.contains(&name)) {
            known.published.extend(entry.published);
            known.reference.extend(entry.reference);
        }
        Ok(known)
    }

    pub(crate) fn find(values: &[Value], method: Method, m: usize, s: usize) -> Option<&Value> {
        values.iter().find(|value| (value.method, value.m, value.s) == (method, m, s))
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures;
    use super::*;

    #[test]
    fn median_covers_all_seeds_with_diverged_ones_lowest() {
        let known = Known::of("runtimes", "classes").unwrap();
        let one = Known::find(&known.published, Method::Paper, 10, 1000).unwrap();
        assert_eq!(one.value, 0.8873);
        let of = |more| Value { value: 41.0, more, ..one.clone() };
        assert_eq!(of(vec![29.1, 19.9]).median(), 29.1);
        assert!(of(vec![f64::NAN, f64::NAN]).median().is_nan());
    }

    #[test]
    fn every_known_figure_is_a_full_grid_cell() {
        for entry in Known::read().unwrap() {
            let parts: Vec<_> = entry.parts.iter().map(|name| part(name)).collect();
            for value in entry.published.iter().chain(&entry.reference) {
                let at = format!("{:?}: {value:?}", entry.parts);
                assert!(
                    parts.iter().all(|part| part.pairs().contains(&(value.m, value.s))),
                    "{at}"
                );
                assert!(parts.iter().any(|part| part.methods.contains(&value.method)), "{at}");
            }
        }
    }

    /// `experiment/part` with the full grid.
    fn part(name: &str) -> super::super::spec::Part {
        let (experiment, part) = name.split_once('/').unwrap();
        let spec = figures::load(experiment, None).unwrap();
        spec.part.into_iter().find(|own| own.name == part).unwrap()
    }
}
