//! One grid of an experiment, and what can be wrong with it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::column::Column;
use super::kinds::{Data, Directions, Imp, Impossible, Method, Pictures, Rows, patterns};
use super::metric::Metric;
use super::variant::{Distribution, Variant};
use crate::data::Task;
use crate::data::{digits, image, planted};
use crate::{Error, Result};

/// The largest number of a grid, of epochs and of rows: enough for any machine, and safe to
/// multiply.
pub(super) const MOST: usize = 100_000_000;
/// The most entries of a list.
pub(super) const LONGEST: usize = 1000;

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
                points.extend((0..self.variants.len().max(1)).map(|variant| Point {
                    m,
                    s,
                    n,
                    d,
                    variant,
                }));
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
        let is_stepped =
            method.is_published() || method.is_check() || method == Method::ImpPublished;
        Self {
            title: String::new(),
            note: String::new(),
            columns: Vec::new(),
            variants: self
                .variants
                .iter()
                .filter(own)
                .map(|of| Variant { title: None, ..of.clone() })
                .collect(),
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
    fn refusal(&self, m: usize, s: usize) -> Option<String> {
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

    /// Checks every key, and every cell.
    pub(super) fn check(&self) -> Result<()> {
        if self.data.is_check() {
            return self.check_theory();
        }
        self.refuse_theory()?;
        self.check_grid()?;
        self.check_settings()?;
        self.check_data()?;
        self.check_variants()?;
        if self.impossible == Impossible::Refuse {
            let all = self.m.iter().flat_map(|&m| self.s.iter().map(move |&s| (m, s)));
            let mut all = all.chain(self.sizes.iter().map(|&[m, s]| (m, s)));
            if let Some((m, s, why)) = all.find_map(|(m, s)| Some((m, s, self.refusal(m, s)?))) {
                return Err(Error::new(format!(
                    "a cell of part {} cannot be: m = {m}, s = {s}",
                    self.name
                ))
                .expected("s within the parameters of the network")
                .got(why)
                .help("take the pair out, or set impossible = \"skip\""));
            }
        }
        if self.pairs().is_empty() {
            return Err(self.out_of_bounds("m and s", "a pair that can be", "none"));
        }
        Ok(())
    }

    fn check_variants(&self) -> Result<()> {
        let planted = matches!(self.data, Data::Planted { .. });
        if self.variants.len() > LONGEST {
            return Err(self.out_of_bounds(
                "variants",
                &format!("at most {LONGEST}"),
                self.variants.len(),
            ));
        }
        for (at, variant) in self.variants.iter().enumerate() {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            let twice = self.variants[..at].iter().any(|other| other.name == variant.name);
            let unnamed = variant.name.is_empty() && self.variants.len() > 1;
            if twice || unnamed || !variant.name.chars().all(plain) {
                let expected = "names of small letters, digits and dashes, every one once";
                return Err(self.out_of_bounds(
                    "variants",
                    expected,
                    format_args!("{:?}", variant.name),
                ));
            }
            if let Some((key, expected)) = variant.wrong() {
                return Err(self.out_of_bounds(
                    &format!("variants.{key}"),
                    expected,
                    "another number",
                ));
            }
            if variant.picture.is_some() && !matches!(self.data, Data::Image { .. }) {
                return Err(self.out_of_bounds(
                    "variants",
                    "no picture but for data of kind image",
                    &variant.name,
                ));
            }
            let shallow = planted && self.hidden == 1 && self.data.outputs() == 1;
            if variant.is_of_data() && !shallow {
                let expected = "no rows, noise or negative but for planted data of one hidden layer and one output";
                return Err(self.out_of_bounds("variants", expected, &variant.name));
            }
        }
        let pixels = self.variants.iter().any(|variant| variant.rows == Some(Distribution::Pixels));
        if pixels && self.data.inputs() > 784 {
            return Err(self.out_of_bounds(
                "data.inputs",
                "at most 784 pixels",
                self.data.inputs(),
            ));
        }
        Ok(())
    }

    fn check_grid(&self) -> Result<()> {
        let (pairs, grid) = (!self.sizes.is_empty(), [!self.m.is_empty(), !self.s.is_empty()]);
        if grid != [!pairs; 2] {
            let named = [("m", &self.m[..]), ("s", &self.s[..])]
                .map(|(name, list)| (!list.is_empty()).then_some(name));
            let named: Vec<&str> =
                named.into_iter().chain([pairs.then_some("sizes")]).flatten().collect();
            let got = if named.is_empty() { "none of them".into() } else { named.join(" and ") };
            return Err(self.out_of_bounds(
                "m, s and sizes",
                "m and s, or sizes, with one number or more",
                got,
            ));
        }
        let lists = [self.m.len(), self.s.len(), self.n.len(), self.sizes.len(), self.seeds.len()];
        if let Some(long) = lists.into_iter().find(|&len| len > LONGEST) {
            return Err(self.out_of_bounds(
                "m, s, n, sizes and seeds",
                &format!("at most {LONGEST} entries"),
                long,
            ));
        }
        let numbers =
            self.m.iter().chain(&self.s).chain(&self.n).chain(self.sizes.iter().flatten());
        if let Some(wrong) = numbers.into_iter().find(|n| !(1..=MOST).contains(*n)) {
            return Err(self.out_of_bounds("m, s and n", &format!("1 to {MOST}"), wrong));
        }
        let repeats = |list: &[usize]| {
            (1..list.len()).find(|&i| list[..i].contains(&list[i])).map(|i| list[i])
        };
        if let Some(twice) = repeats(&self.m).or(repeats(&self.s)).or(repeats(&self.n)) {
            return Err(self.out_of_bounds("m, s and n", "every number once", twice));
        }
        if let Some(i) = (1..self.sizes.len()).find(|&i| self.sizes[..i].contains(&self.sizes[i])) {
            return Err(self.out_of_bounds(
                "sizes",
                "every pair once",
                format_args!("{:?}", self.sizes[i]),
            ));
        }
        if !(1..=5).contains(&self.hidden) {
            return Err(self.out_of_bounds("hidden", "1 to 5 layers", self.hidden));
        }
        Ok(())
    }

    fn check_settings(&self) -> Result<()> {
        let stepped = |method: &Method| method.is_published() || *method == Method::ImpPublished;
        let least = u32::from(self.methods.iter().any(stepped));
        if self.epochs < least || self.epochs as usize > MOST {
            return Err(self.out_of_bounds("epochs", &format!("{least} to {MOST}"), self.epochs));
        }
        if self.batch > MOST || self.imp.batch > MOST {
            let batch = self.batch.max(self.imp.batch);
            return Err(self.out_of_bounds(
                "batch",
                &format!("0 for all rows, or up to {MOST}"),
                batch,
            ));
        }
        if self.imp.epochs == 0 || self.imp.epochs as usize > MOST {
            return Err(self.out_of_bounds("imp.epochs", &format!("1 to {MOST}"), self.imp.epochs));
        }
        if !(self.imp.rate > 0.0 && self.imp.rate.is_finite()) {
            return Err(self.out_of_bounds("imp.rate", "above 0", self.imp.rate));
        }
        if !(self.imp.prune > 0.0 && self.imp.prune <= 1.0) {
            return Err(self.out_of_bounds("imp.prune", "above 0 and at most 1", self.imp.prune));
        }
        if let Some(passes) = self.passes.filter(|passes| !(*passes > 0.0 && passes.is_finite())) {
            return Err(self.out_of_bounds("passes", "above 0", passes));
        }
        if let Some(seconds) = self.seconds.filter(|seconds| !(*seconds > 0.0 && *seconds <= 1e6)) {
            return Err(self.out_of_bounds("seconds", "above 0, at most 1000000", seconds));
        }
        self.check_range()?;
        self.check_lists()?;
        if self.methods.contains(&Method::PaperSafe) && self.data.outputs() == 1 {
            return Err(self.out_of_bounds(
                "methods",
                "paper-safe for several outputs only",
                "one output",
            ));
        }
        Ok(())
    }

    pub(super) fn check_range(&self) -> Result<()> {
        let [low, high] = self.range;
        if low < high && low.is_finite() && high.is_finite() {
            return Ok(());
        }
        let got = format!("{:?}", self.range);
        Err(self.out_of_bounds("range", "two numbers, the second above the first", got))
    }

    /// Seeds and methods, each one or more and all different.
    pub(super) fn check_lists(&self) -> Result<()> {
        let mut seeds = self.seeds.clone();
        seeds.sort_unstable();
        seeds.dedup();
        if seeds.is_empty()
            || seeds.len() < self.seeds.len()
            || seeds.iter().any(|&seed| i64::try_from(seed).is_err())
        {
            return Err(self.out_of_bounds(
                "seeds",
                "one or more, every seed once",
                format_args!("{:?}", self.seeds),
            ));
        }
        let mut methods = self.methods.clone();
        methods.sort_unstable();
        methods.dedup();
        if methods.is_empty() || methods.len() < self.methods.len() {
            return Err(self.out_of_bounds(
                "methods",
                "one or more, every method once",
                format_args!("{:?}", self.methods),
            ));
        }
        Ok(())
    }

    fn check_data(&self) -> Result<()> {
        let rows = |name: &str, n: usize, least: usize| match (least..=MOST).contains(&n) {
            true => Ok(()),
            false => {
                Err(self.out_of_bounds(&format!("data.{name}"), &format!("{least} to {MOST}"), n))
            }
        };
        match &self.data {
            Data::Planted { samples, inputs, outputs, test } => {
                rows("samples", *samples, 1)?;
                rows("test", *test, 0)?;
                rows("inputs", *inputs, 1)?;
                rows("outputs", *outputs, 1)?;
            }
            Data::Mnist { classes, train, test, .. }
            | Data::Digits { classes, train, test, .. } => {
                rows("train", *train, 1)?;
                rows("test", *test, 0)?;
                let mut sorted = classes.clone();
                sorted.sort_unstable();
                sorted.dedup();
                if sorted.len() < 2
                    || sorted.len() < classes.len()
                    || sorted.iter().any(|&class| class > 9)
                {
                    let expected = "two digits or more, 0 to 9, every one once";
                    return Err(self.out_of_bounds(
                        "data.classes",
                        expected,
                        format_args!("{classes:?}"),
                    ));
                }
                if let Data::Digits { side, .. } = self.data {
                    digits::check_side(side).map_err(|_| {
                        let expected =
                            format!("{} to {} pixels", digits::MIN_SIDE, digits::MAX_SIDE);
                        self.out_of_bounds("data.side", &expected, side)
                    })?;
                }
            }
            // Their keys are those of a check.
            Data::Gates { .. } | Data::Gaussian { .. } => {}
            Data::Image { from, features, deviation, channel_deviation, .. } => {
                let colours = matches!(from, Pictures::Cifar | Pictures::ColourDigits);
                if colours != channel_deviation.is_some() {
                    let expected = if colours {
                        "a number, for pictures in colours"
                    } else {
                        "none, for grey pictures"
                    };
                    let got = channel_deviation.map_or("none".into(), |value| value.to_string());
                    return Err(self.out_of_bounds("data.channel_deviation", expected, got));
                }
                let (features, deviation) = (*features, *deviation);
                let channel_deviation = channel_deviation.unwrap_or(0.0);
                let fourier = image::Fourier { features, deviation, channel_deviation, seed: 0 };
                rows("features", features, 2)?;
                fourier.check().map_err(|_| {
                    let expected = "an even number of features, deviations of 0 or more";
                    self.out_of_bounds("data", expected, format_args!("{fourier:?}"))
                })?;
            }
        }
        match (self.metric, self.data.task(), self.on) {
            (Metric::Accuracy, Task::Regression, _) => {
                Err(self.out_of_bounds("metric", "psnr, as the labels are numbers", "accuracy"))
            }
            (Metric::Psnr, Task::Multiclass, _) => {
                Err(self.out_of_bounds("metric", "accuracy, as the labels are classes", "psnr"))
            }
            (_, _, Rows::Test) if !self.data.has_test() => {
                Err(self.out_of_bounds("on", "train, as there are no rows to test on", "test"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn out_of_bounds(&self, key: &str, expected: &str, got: impl fmt::Display) -> Error {
        Error::new(format!("a key of part {} of the spec is out of bounds: {key}", self.name))
            .expected(expected)
            .got(got)
            .help("docs/experiments.md describes every key")
    }
}
