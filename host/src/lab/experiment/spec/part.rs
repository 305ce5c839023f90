//! One grid of an experiment.

use serde::{Deserialize, Serialize};

use super::claim::Claim;
use super::column::Column;
use super::kinds::{Data, Directions, Imp, Impossible, Rows, patterns};
use super::method::Method;
use super::metric::Metric;
use super::published::Published;
use super::variant::Variant;
use crate::data::planted;

/// The sizes of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    /// Neurons of a hidden layer, or generators; 1 for measurements without gates.
    pub(crate) m: usize,
    /// Nonzeros of the network, or columns of a support; 0 where there are none.
    pub(crate) s: usize,
    /// Rows; 0 where the data say how many there are.
    pub(crate) n: usize,
    pub(crate) d: usize,
    pub(crate) variant: usize,
}

/// One grid of cells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) title: String,
    /// Hidden layers, each of m neurons.
    #[serde(default = "one")]
    pub(crate) hidden: usize,
    /// Neurons of a hidden layer, down the grid; with `s`, all pairs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) m: Vec<usize>,
    /// Nonzero weights, across the grid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) s: Vec<usize>,
    /// Rows: an axis of planted data and of checks of the theory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) n: Vec<usize>,
    /// Inputs, an axis of checks of the theory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) d: Vec<usize>,
    /// Pairs of m and s, in place of a grid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) sizes: Vec<[usize; 2]>,
    #[serde(default)]
    pub(crate) impossible: Impossible,
    /// Epochs of the published methods; of IMP, each level; of checks, steps.
    #[serde(default)]
    pub(crate) epochs: u32,
    /// Rows of their batches, 0 for all.
    #[serde(default)]
    pub(crate) batch: usize,
    /// What each cell is trained with in turn; without it, one way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) variants: Vec<Variant>,
    pub(crate) methods: Vec<Method>,
    /// Seeds of each cell: of planted data, frequencies, starts and orders.
    pub(crate) seeds: Vec<u64>,
    pub(crate) metric: Metric,
    #[serde(default)]
    pub(crate) on: Rows,
    /// Values at the ends of the colours.
    pub(crate) range: [f64; 2],
    /// Limits of the method `recipe`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) passes: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seconds: Option<f64>,
    /// Of checks: supports of which eigenvalues are taken, vectors that are recovered, or masks;
    /// without it all masks that can be drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) draws: Option<u32>,
    /// Of checks: how many times s nonzeros iterates may have, 1 or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) inflation: Option<f64>,
    /// Of sketches: claims that are expected to fail as printed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) refuted: Vec<Method>,
    /// Of masks: differences between variants, each a sentence of the report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) claims: Vec<Claim>,
    /// Of random matrices: what the paper prints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) published: Vec<Published>,
    /// What the summary table shows of each size and method.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) columns: Vec<Column>,
    /// Text over the summary table.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) note: String,
    pub(crate) data: Data,
    #[serde(default)]
    pub(crate) imp: Imp,
}

const fn one() -> usize {
    1
}

impl Part {
    /// Pairs of m and s, in order: down the grid, then across.
    pub(super) fn all_pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let grid = self.m.iter().flat_map(|&m| self.s.iter().map(move |&s| (m, s)));
        grid.chain(self.sizes.iter().map(|&[m, s]| (m, s)))
    }

    /// Those of them that can be.
    pub(crate) fn pairs(&self) -> Vec<(usize, usize)> {
        self.all_pairs().filter(|&(m, s)| self.refusal(m, s).is_none()).collect()
    }

    /// The number of [`points`](Self::points); of checks without making them.
    pub(crate) fn sizes(&self) -> usize {
        let len = |axis: &[usize]| axis.len().max(1);
        let pairs = match self.data.is_check() {
            true => len(&self.m).saturating_mul(len(&self.s)).saturating_mul(len(&self.d)),
            false => self.pairs().len(),
        };
        pairs.saturating_mul(len(&self.n)).saturating_mul(self.variants.len().max(1))
    }

    /// The sizes of all cells, in order: m, then s, n, d and variants.
    pub(crate) fn points(&self) -> Vec<Point> {
        let or =
            |axis: &[usize], one: usize| if axis.is_empty() { vec![one] } else { axis.to_vec() };
        let (ns, ds) = (or(&self.n, self.data.samples()), or(&self.d, self.data.inputs()));
        let sizes = if self.data.is_check() {
            let s = or(&self.s, 0);
            or(&self.m, 0).iter().flat_map(|&m| s.iter().map(move |&s| (m, s))).collect()
        } else {
            self.pairs()
        };
        let mut points = Vec::new();
        for (m, s) in sizes {
            for (n, d) in ns.iter().flat_map(|&n| ds.iter().map(move |&d| (n, d))) {
                let m = match self.data {
                    _ if m > 0 => m,
                    Data::Gaussian { .. } => 1,
                    Data::Gates { generators: Directions::Patterns, weights, .. } => {
                        patterns(d, weights).unwrap_or(0)
                    }
                    _ => 0,
                };
                let variants = 0..self.variants.len().max(1);
                let points_here = variants.map(|variant| Point { m, s, n, d, variant });
                points.extend(points_here.filter(|&at| !self.is_skipped(at)));
            }
        }
        points
    }

    /// Whether a point of a check is left out, as one that cannot be: a matrix of more rows than
    /// columns is the transpose of another one, and a model has the rank and its singular values.
    fn is_skipped(&self, at: Point) -> bool {
        self.impossible == Impossible::Skip
            && match self.data {
                Data::Matrices { .. } => at.n > at.d,
                Data::Sensing(_) => self.refuses_rank(at),
                _ => false,
            }
    }

    /// Whether nothing that is sensed can have these sizes: a rank above the columns or rows of a
    /// model, or one singular value, which is 1, that is to be less.
    pub(super) fn refuses_rank(&self, at: Point) -> bool {
        let sr = self.variant(at).sensing.unwrap_or_default().sr;
        at.s > at.m.min(at.d) || at.s == 1 && sr < 1.0
    }

    /// What is printed for a point.
    pub(crate) fn published_at(&self, at: Point) -> Option<&Published> {
        let variant = self.variant(at).name;
        self.published.iter().find(|row| {
            row.n.is_none_or(|n| n == at.n)
                && row.d.is_none_or(|d| d == at.d)
                && row.variant == variant
        })
    }

    /// What a point changes; nothing where the part has no variants.
    pub(crate) fn variant(&self, at: Point) -> Variant {
        self.variants.get(at.variant).cloned().unwrap_or_default()
    }

    /// What a cell depends on beside its name: no grid, heading or settings of other methods.
    pub(crate) fn behind(&self, method: Method, variant: Option<&str>) -> Self {
        let mut own = self.clone();
        own.variants.retain(|of| variant.is_none_or(|name| of.name == name));
        own.variants.iter_mut().for_each(|of| of.title = None);
        (own.title, own.note, own.columns, own.impossible) = Default::default();
        (own.refuted, own.claims, own.published) = Default::default();
        (own.m, own.s, own.n, own.d, own.sizes, own.seeds) = Default::default();
        (own.methods, own.range) = (vec![method], [0.0, 1.0]);
        if !(method.is_published() || method.is_check() || method.is_published_imp()) {
            (own.epochs, own.batch) = (0, 0);
        }
        if method != Method::Recipe {
            (own.passes, own.seconds) = (None, None);
        }
        if !matches!(method, Method::Imp | Method::ImpSum | Method::KeptImp) {
            own.imp = Imp::default();
        }
        own
    }

    /// Why a cell cannot be.
    pub(super) fn refusal(&self, m: usize, s: usize) -> Option<String> {
        // Weights of each layer; of one output, none lead to it.
        let mut layers = vec![m * self.data.inputs()];
        layers.extend(std::iter::repeat_n(m * m, self.hidden - 1));
        if self.data.outputs() > 1 {
            layers.push(m * self.data.outputs());
        }
        if matches!(self.data, Data::Planted { .. }) {
            // Each layer of the planted network has its share.
            let shares =
                (0..).zip(&layers).map(|(l, &len)| (planted::share(s, layers.len(), l), l, len));
            let mut wrong = shares.filter(|(share, _, len)| !(1..=*len).contains(share));
            let (share, l, len) = wrong.next()?;
            return Some(format!("{share} planted weights in layer {} of {len}", l + 1));
        }
        let (least, most) = (self.data.outputs().min(2), layers.iter().sum::<usize>());
        (!(least..=most).contains(&s)).then(|| format!("{least} to {most} parameters"))
    }
}
