//! One grid of an experiment.

use serde::{Deserialize, Serialize};

use super::column::Column;
use super::kinds::{Data, Directions, Imp, Impossible, Method, Rows, patterns};
use super::metric::Metric;
use super::variant::Variant;
use crate::data::planted;

/// The sizes of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    /// Neurons of a hidden layer, or generators; 1 for measurements without gates.
    pub m: usize,
    /// Nonzeros of the network, or columns of a support; 0 where there are none.
    pub s: usize,
    /// Rows; 0 where the data say how many there are.
    pub n: usize,
    /// Inputs.
    pub d: usize,
    /// Which variant, from 0.
    pub variant: usize,
}

/// One grid of cells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Short name, of small letters, digits and dashes.
    pub name: String,
    /// Heading.
    pub title: String,
    /// Hidden layers, each of m neurons.
    #[serde(default = "one")]
    pub hidden: usize,
    /// Neurons of a hidden layer, down the grid; with `s`, all pairs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub m: Vec<usize>,
    /// Nonzero weights, across the grid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub s: Vec<usize>,
    /// Rows: an axis of planted data and of checks of the theory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub n: Vec<usize>,
    /// Inputs, an axis of checks of the theory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub d: Vec<usize>,
    /// Pairs of m and s, in place of a grid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<[usize; 2]>,
    /// What becomes of cells that cannot be.
    #[serde(default)]
    pub impossible: Impossible,
    /// Epochs of the published methods; of IMP, each level; of checks, steps.
    #[serde(default)]
    pub epochs: u32,
    /// Rows of their batches, 0 for all.
    #[serde(default)]
    pub batch: usize,
    /// What each cell is trained with in turn; without it, one way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
    /// How each cell is trained.
    pub methods: Vec<Method>,
    /// Seeds of each cell: of planted data, frequencies, starts and orders.
    pub seeds: Vec<u64>,
    /// What is compared.
    pub metric: Metric,
    /// On which rows.
    #[serde(default)]
    pub on: Rows,
    /// Values at the ends of the colours.
    pub range: [f64; 2],
    /// Passes over all rows after which the method `recipe` ends, if it has not before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<f64>,
    /// Seconds after which the method `recipe` ends, if it has not before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Of checks: supports that eigenvalues are taken over; of measurements, vectors that are
    /// recovered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draws: Option<u32>,
    /// Of checks: how many times s nonzeros iterates may have, 1 or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inflation: Option<f64>,
    /// What the summary table shows of each size and method.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Column>,
    /// What there is to know of the summary table.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// What is learnt.
    pub data: Data,
    /// How the method `imp` trains.
    #[serde(default)]
    pub imp: Imp,
}

const fn one() -> usize {
    1
}

impl Part {
    /// Pairs of m and s that can be, in order: down the grid, then across.
    #[must_use]
    pub fn pairs(&self) -> Vec<(usize, usize)> {
        let all: Vec<(usize, usize)> = match self.sizes.is_empty() {
            true => self.m.iter().flat_map(|&m| self.s.iter().map(move |&s| (m, s))).collect(),
            false => self.sizes.iter().map(|&[m, s]| (m, s)).collect(),
        };
        all.into_iter().filter(|&(m, s)| self.refusal(m, s).is_none()).collect()
    }

    /// Sizes of the grid, those that cannot be included where all have to be made to know: see
    /// [`Self::points`].
    #[must_use]
    pub fn sizes(&self) -> usize {
        let more = self.n.len().max(1).saturating_mul(self.variants.len().max(1));
        if !self.data.is_check() {
            return self.pairs().len().saturating_mul(more);
        }
        [&self.m, &self.s, &self.d]
            .iter()
            .fold(more, |sizes, axis| sizes.saturating_mul(axis.len().max(1)))
    }

    /// The sizes of all cells, in order: m, then s, n, d and variants.
    #[must_use]
    pub fn points(&self) -> Vec<Point> {
        let or =
            |axis: &[usize], one: usize| if axis.is_empty() { vec![one] } else { axis.to_vec() };
        let (ns, ds) = (or(&self.n, self.data.samples()), or(&self.d, self.data.inputs()));
        let sizes: Vec<(usize, usize)> = if self.data.is_check() {
            or(&self.m, 0)
                .into_iter()
                .flat_map(|m| or(&self.s, 0).into_iter().map(move |s| (m, s)))
                .collect()
        } else {
            self.pairs()
        };
        let mut points = Vec::new();
        for (m, s) in sizes {
            for (n, d) in ns.iter().flat_map(|&n| ds.iter().map(move |&d| (n, d))) {
                let m = if m > 0 { m } else { self.generators(d) };
                let variants = 0..self.variants.len().max(1);
                points.extend(variants.map(|variant| Point { m, s, n, d, variant }));
            }
        }
        points
    }

    /// m where the part does not say it; 0 where it has to.
    fn generators(&self, inputs: usize) -> usize {
        match self.data {
            Data::Gaussian { .. } => 1,
            Data::Gates { generators: Directions::Patterns, weights, .. } => {
                patterns(inputs, weights).unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// What a point changes; nothing where the part has no variants.
    #[must_use]
    pub fn variant(&self, at: Point) -> Variant {
        self.variants.get(at.variant).cloned().unwrap_or_default()
    }

    /// Rows and columns of the grid, rising.
    #[must_use]
    pub fn axes(&self) -> [Vec<usize>; 2] {
        let axis = |own: &[usize], k: usize| {
            let mut axis: Vec<usize> =
                own.iter().copied().chain(self.sizes.iter().map(|pair| pair[k])).collect();
            axis.sort_unstable();
            axis.dedup();
            axis
        };
        [axis(&self.m, 0), axis(&self.s, 1)]
    }

    /// What a cell of a method depends on beside its own name: the part without its grid, its
    /// heading and the settings of other methods.
    #[must_use]
    pub fn behind(&self, method: Method, variant: Option<&str>) -> Self {
        let own = |of: &&Variant| variant.is_none_or(|name| of.name == name);
        let variants = self.variants.iter().filter(own);
        let is_stepped =
            method.is_published() || method.is_check() || method == Method::ImpPublished;
        Self {
            title: String::new(),
            note: String::new(),
            columns: Vec::new(),
            variants: variants.map(|of| Variant { title: None, ..of.clone() }).collect(),
            m: Vec::new(),
            s: Vec::new(),
            n: Vec::new(),
            d: Vec::new(),
            sizes: Vec::new(),
            impossible: Impossible::default(),
            methods: vec![method],
            seeds: Vec::new(),
            range: [0.0, 1.0],
            epochs: if is_stepped { self.epochs } else { 0 },
            batch: if is_stepped { self.batch } else { 0 },
            passes: self.passes.filter(|_| method == Method::Recipe),
            seconds: self.seconds.filter(|_| method == Method::Recipe),
            imp: if method == Method::Imp { self.imp } else { Imp::default() },
            ..self.clone()
        }
    }

    /// Weights of each layer of the network: of one output, none lead to it.
    fn layers(&self, m: usize) -> Vec<usize> {
        let mut layers = vec![m * self.data.inputs()];
        layers.extend(std::iter::repeat_n(m * m, self.hidden - 1));
        if self.data.outputs() > 1 {
            layers.push(m * self.data.outputs());
        }
        layers
    }

    /// Why a cell cannot be.
    pub(super) fn refusal(&self, m: usize, s: usize) -> Option<String> {
        let layers = self.layers(m);
        let (least, most) = (layers.len(), layers.iter().sum::<usize>());
        if matches!(self.data, Data::Planted { .. }) {
            // Each layer of the planted network has its share.
            let mut shares =
                layers.iter().enumerate().map(|(l, &len)| (planted::share(s, least, l), l, len));
            return shares.find(|(share, _, len)| !(1..=*len).contains(share)).map(
                |(share, l, len)| format!("{share} planted weights in layer {} of {len}", l + 1),
            );
        }
        let least = if self.data.outputs() > 1 { 2 } else { 1 };
        (!(least..=most).contains(&s)).then(|| format!("{least} to {most} parameters"))
    }
}
