//! What can be wrong with a part of a spec: of trainings, and of checks of the theory.

use std::fmt::Display;
use std::ops::RangeInclusive;

use super::is_plain;
use super::kinds::{Data, Directions, Imp, Impossible, Pictures, Rows};
use super::method::Method;
use super::metric::Metric;
use super::part::{Part, Point};
use super::variant::{Distribution, Variant};
use crate::data::{Task, digits, image};
use crate::{Error, Result};

/// The largest number of a grid, of epochs and of rows, safe to multiply.
const MOST: usize = 100_000_000;
/// The most entries of a list.
const LONGEST: usize = 1000;

fn outside(value: usize, range: RangeInclusive<usize>) -> Option<usize> {
    (!range.contains(&value)).then_some(value)
}

/// A number, where it is not above 0 and at most `most`.
fn not_positive(value: f64, most: f64) -> Option<f64> {
    (!(value > 0.0 && value <= most)).then_some(value)
}

/// The first entry that stands in a list twice.
fn twice<T: PartialEq + Copy>(list: &[T]) -> Option<T> {
    (1..list.len()).find(|&i| list[..i].contains(&list[i])).map(|i| list[i])
}

impl Part {
    /// Checks every key, and every cell.
    pub(super) fn check(&self) -> Result<()> {
        self.check_lists()?;
        self.check_masked()?;
        self.check_keys_of_random()?;
        let [low, high] = self.range;
        let is_wrong = !(low < high && low.is_finite() && high.is_finite());
        let expected = "two numbers, the second above the first";
        self.refuse("range", expected, is_wrong.then(|| format!("{:?}", self.range)))?;
        match &self.data {
            data if data.is_random() => self.check_random(),
            Data::Dense(_) => self.check_dense(),
            data if data.is_check() => self.check_theory(),
            _ => self.check_training(),
        }
    }

    pub(super) fn out_of_bounds(&self, key: &str, expected: &str, got: impl Display) -> Error {
        Error::new(format!("a key of part {} of the spec is out of bounds: {key}", self.name))
            .expected(expected)
            .got(got)
            .help("docs/experiments.md describes every key")
    }

    /// Refuses the value of a key, where there is a wrong one.
    fn refuse(&self, key: &str, expected: &str, wrong: Option<impl Display>) -> Result<()> {
        wrong.map_or(Ok(()), |got| Err(self.out_of_bounds(key, expected, got)))
    }

    fn refuse_beyond(&self, key: &str, value: usize, range: RangeInclusive<usize>) -> Result<()> {
        let expected = format!("{} to {}", range.start(), range.end());
        self.refuse(key, &expected, outside(value, range))
    }

    /// Refuses keys that are set and mean nothing here.
    fn refuse_set(&self, expected: &str, keys: &[(&str, bool)]) -> Result<()> {
        let key = keys.iter().find(|(_, is_set)| *is_set).map(|(key, _)| key);
        key.map_or(Ok(()), |key| Err(self.out_of_bounds(key, expected, "one")))
    }

    /// Refuses keys of trainings, and others.
    fn refuse_trained(&self, others: &[(&str, bool)]) -> Result<()> {
        let own = [
            ("hidden", self.hidden != 1),
            ("sizes", !self.sizes.is_empty()),
            ("batch", self.batch != 0),
            ("passes", self.passes.is_some()),
            ("seconds", self.seconds.is_some()),
            ("on", self.on != Rows::Train),
        ];
        self.refuse_set("none: nothing is trained", &[&own, others].concat())
    }

    /// Lists, none too long and all entries different; seeds and methods are not empty.
    fn check_lists(&self) -> Result<()> {
        let pairs: Vec<usize> = self.sizes.iter().flatten().copied().collect();
        let axes = [("m", &self.m), ("s", &self.s), ("n", &self.n), ("d", &self.d)];
        let lens = [("seeds", self.seeds.len()), ("sizes", self.sizes.len())];
        for (name, len) in axes.iter().map(|(name, axis)| (*name, axis.len())).chain(lens) {
            let expected = format!("at most {LONGEST} entries");
            self.refuse(name, &expected, outside(len, 0..=LONGEST))?;
        }
        for (name, list) in axes.into_iter().chain([("sizes", &pairs)]) {
            list.iter().try_for_each(|&value| self.refuse_beyond(name, value, 1..=MOST))?;
        }
        for (name, axis) in axes {
            self.refuse(name, "every number once", twice(axis))?;
        }
        let pair = twice(&self.sizes).map(|pair| format!("{pair:?}"));
        self.refuse("sizes", "every pair once", pair)?;
        let is_large = |&seed: &u64| i64::try_from(seed).is_err();
        let (seeds, methods) = (&self.seeds, &self.methods);
        let is_wrong = seeds.is_empty() || twice(seeds).is_some() || seeds.iter().any(is_large);
        let got = is_wrong.then(|| format!("{seeds:?}"));
        self.refuse("seeds", "one or more, every seed once", got)?;
        let is_wrong = methods.is_empty() || twice(methods).is_some();
        let got = is_wrong.then(|| format!("{methods:?}"));
        self.refuse("methods", "one or more, every method once", got)
    }

    fn check_training(&self) -> Result<()> {
        let check = self.methods.iter().find(|method| method.is_check()).map(|of| of.name());
        let expected = "ways to train, or data of kind gates or gaussian to check the theory on";
        self.refuse("methods", expected, check)?;
        let metric = Some(self.metric).filter(|metric| !metric.is_of_training());
        self.refuse("metric", "one of a training", metric.map(Metric::title))?;
        let has_rows = !self.n.is_empty() && self.data.samples() == 0;
        self.refuse_set("none but for planted data", &[("n", has_rows)])?;
        self.refuse_set(
            "none: it is for data of kind gates or gaussian",
            &[
                ("d", !self.d.is_empty()),
                ("draws", self.draws.is_some()),
                ("inflation", self.inflation.is_some()),
            ],
        )?;
        let keys = [("m", self.m.len()), ("s", self.s.len()), ("sizes", self.sizes.len())];
        let set: Vec<&str> = keys.iter().filter(|(_, len)| *len > 0).map(|(key, _)| *key).collect();
        let got = if set.is_empty() { "none of them".into() } else { set.join(" and ") };
        let is_wrong = set != ["m", "s"] && set != ["sizes"];
        let expected = "m and s, or sizes, with one number or more";
        self.refuse("m, s and sizes", expected, is_wrong.then_some(got))?;
        self.check_settings()?;
        self.check_data()?;
        self.check_variants()?;
        let mut refused = self.all_pairs().filter_map(|(m, s)| Some((m, s, self.refusal(m, s)?)));
        if self.impossible == Impossible::Refuse
            && let Some((m, s, why)) = refused.next()
        {
            let name = &self.name;
            return Err(Error::new(format!("a cell of part {name} cannot be: m = {m}, s = {s}"))
                .expected("s within the parameters of the network")
                .got(why)
                .help("take the pair out, or set impossible = \"skip\""));
        }
        self.refuse("m and s", "a pair that can be", self.pairs().is_empty().then_some("none"))
    }

    fn check_settings(&self) -> Result<()> {
        self.refuse("hidden", "1 to 5 layers", outside(self.hidden, 1..=5))?;
        let stepped = |method: &Method| method.is_published() || method.is_published_imp();
        let least = usize::from(self.methods.iter().any(stepped));
        self.refuse_beyond("epochs", self.epochs as usize, least..=MOST)?;
        let batch = outside(self.batch.max(self.imp.batch), 0..=MOST);
        self.refuse("batch", &format!("0 for all rows, or up to {MOST}"), batch)?;
        let Imp { epochs, prune, .. } = self.imp;
        self.refuse_beyond("imp.epochs", epochs as usize, 1..=MOST)?;
        let rate = self.imp.rates().into_iter().find_map(|rate| not_positive(rate, f64::MAX));
        self.refuse("imp.rate and imp.rates", "above 0", rate)?;
        self.refuse("imp.prune", "above 0 and at most 1", not_positive(prune, 1.0))?;
        let passes = self.passes.and_then(|passes| not_positive(passes, f64::MAX));
        self.refuse("passes", "above 0", passes)?;
        let seconds = self.seconds.and_then(|seconds| not_positive(seconds, 1e6));
        self.refuse("seconds", "above 0, at most 1000000", seconds)?;
        let is_wrong = self.methods.contains(&Method::PaperSafe) && self.data.outputs() == 1;
        let expected = "paper-safe for several outputs only";
        self.refuse("methods", expected, is_wrong.then_some("one output"))?;
        let is_wrong = self.methods.iter().any(|of| of.is_sum()) && self.data.outputs() > 1;
        let expected = "imp-sum and imp-published-sum for one output only";
        self.refuse("methods", expected, is_wrong.then_some("several outputs"))
    }

    fn check_data(&self) -> Result<()> {
        let rows = |name: &str, n: usize, least: usize| {
            self.refuse_beyond(&format!("data.{name}"), n, least..=MOST)
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
                let is_wrong =
                    classes.len() < 2 || twice(classes).is_some() || classes.iter().any(|&c| c > 9);
                let got = is_wrong.then(|| format!("{classes:?}"));
                self.refuse("data.classes", "two digits or more, 0 to 9, every one once", got)?;
                if let Data::Digits { side, .. } = self.data {
                    let expected = format!("{} to {} pixels", digits::MIN_SIDE, digits::MAX_SIDE);
                    let wrong = digits::check_side(side).is_err().then_some(side);
                    self.refuse("data.side", &expected, wrong)?;
                }
            }
            &Data::Image { ref from, features, deviation, channel_deviation, .. } => {
                let colours = matches!(from, Pictures::Cifar | Pictures::ColourDigits);
                let grey = "none, for grey pictures";
                let expected = if colours { "a number, for pictures in colours" } else { grey };
                let is_wrong = colours != channel_deviation.is_some();
                let got = || channel_deviation.map_or("none".into(), |value| value.to_string());
                self.refuse("data.channel_deviation", expected, is_wrong.then(got))?;
                let channel_deviation = channel_deviation.unwrap_or(0.0);
                let fourier = image::Fourier { features, deviation, channel_deviation, seed: 0 };
                rows("features", features, 2)?;
                let expected = "an even number of features, deviations of 0 or more";
                let wrong = fourier.check().is_err().then(|| format!("{fourier:?}"));
                self.refuse("data", expected, wrong)?;
            }
            // Those of a check, whose keys are checked as its own.
            _ => {}
        }
        let (key, expected, got) = match (self.metric, self.data.task(), self.on) {
            (Metric::Accuracy, Task::Regression, _) => {
                ("metric", "psnr, as the labels are numbers", "accuracy")
            }
            (Metric::Psnr, Task::Multiclass, _) => {
                ("metric", "accuracy, as the labels are classes", "psnr")
            }
            (_, _, Rows::Test) if !self.data.has_test() => {
                ("on", "train, as there are no rows to test on", "test")
            }
            _ => return Ok(()),
        };
        Err(self.out_of_bounds(key, expected, got))
    }

    fn check_variants(&self) -> Result<()> {
        self.check_names()?;
        let is_plain_data = matches!(self.data, Data::Planted { .. })
            && self.hidden == 1
            && self.data.outputs() == 1;
        let is_picture = matches!(self.data, Data::Image { .. });
        for variant in &self.variants {
            let name = &variant.name;
            let wrong = variant.movement.map(|_| name);
            self.refuse("variants", "no movement but for data of kind sketch", wrong)?;
            let noise = variant.noise.filter(|noise| !(*noise >= 0.0 && noise.is_finite()));
            self.refuse("variants.noise", "0 or more", noise)?;
            let fraction = variant.validation.filter(|fraction| !(0.0..1.0).contains(fraction));
            self.refuse("variants.validation", "0 up to but not 1", fraction)?;
            let is_wrong = variant.refresh == Some(0)
                || variant.refresh.is_some() && variant.convex == Some(true);
            let expected = "refresh of 1 or more, or convex = true";
            self.refuse("variants", expected, is_wrong.then_some(name))?;
            let is_safe = |of: &Method| {
                *of == Method::PaperSafe || *of == Method::PaperLeast && self.data.outputs() > 1
            };
            let is_wrong = (variant.refresh.is_some() || variant.convex.is_some())
                && self.methods.iter().any(is_safe);
            let expected =
                "no refresh or convex with safe steps, whose gates are those of the network";
            self.refuse("variants", expected, is_wrong.then_some(name))?;
            let wrong = (variant.picture.is_some() && !is_picture).then_some(name);
            self.refuse("variants", "no picture but for data of kind image", wrong)?;
            let wrong = (variant.is_of_data() && !is_plain_data).then_some(name);
            let expected = "no rows, noise or negative but for planted data of one hidden layer \
                            and one output";
            self.refuse("variants", expected, wrong)?;
        }
        let pixels = self.variants.iter().any(|variant| variant.rows == Some(Distribution::Pixels));
        let wrong = outside(self.data.inputs(), 0..=784).filter(|_| pixels);
        self.refuse("data.inputs", "at most 784 pixels", wrong)
    }

    /// Checks how many variants there are, and their names.
    fn check_names(&self) -> Result<()> {
        let count = self.variants.len();
        self.refuse("variants", &format!("at most {LONGEST}"), outside(count, 0..=LONGEST))?;
        for (at, Variant { name, .. }) in self.variants.iter().enumerate() {
            let is_wrong = self.variants[..at].iter().any(|other| other.name == *name)
                || name.is_empty() && count > 1
                || !is_plain(name);
            let expected = "names of small letters, digits and dashes, every one once";
            self.refuse("variants", expected, is_wrong.then(|| format!("{name:?}")))?;
        }
        Ok(())
    }

    fn check_theory(&self) -> Result<()> {
        // Counted before they are made.
        let most = LONGEST * LONGEST;
        let expected = format!("at most {most} pairs, triples or fours of sizes");
        self.refuse("m, s, n and d", &expected, outside(self.sizes(), 0..=most))?;
        let random = matches!(self.data, Data::Gates { generators: Directions::Gaussian, .. });
        let expected = match self.data {
            _ if random => "how many random generators there are",
            Data::Gaussian { .. } | Data::Sketch { .. } | Data::Masks { .. } | Data::Masked(_) => {
                "none: there are no gates"
            }
            _ => "none: all patterns are taken",
        };
        let got = (random == self.m.is_empty()).then(|| format!("{:?}", self.m));
        self.refuse("m", expected, got)?;
        let has_none =
            |of: &Method| matches!(of, Method::Assumption | Method::Coverage | Method::SketchRatio);
        let supports = !self.methods.iter().all(has_none);
        let expected = if supports { "nonzeros" } else { "none: nothing depends on it" };
        let got = (supports == self.s.is_empty()).then(|| format!("{:?}", self.s));
        self.refuse("s", expected, got)?;
        let unknown = self.methods.iter().find(|method| method.measures(&self.data).is_empty());
        let expected = "curvature, theory, normalised or paper; with gates also assumption and \
                        coverage; of sketches and masks their own";
        self.refuse("methods", expected, unknown.map(|method| method.name()))?;
        let measured = |method: &Method| method.measures(&self.data).contains(&self.metric);
        let names = self.methods[0].measures(&self.data).iter().map(|metric| metric.name());
        let names = names.collect::<Vec<_>>().join(", ");
        let wrong = (!self.methods.iter().all(measured)).then(|| self.metric.name());
        self.refuse("metric", &format!("what all methods measure: {names}"), wrong)?;
        let iterative = self.methods.iter().any(|method| method.is_iterative());
        let is_masked = matches!(self.data, Data::Masked(_));
        let iterative = iterative || is_masked;
        let steps = format!("1 to {MOST} steps");
        let expected = if iterative { &steps } else { "none: nothing is iterated" };
        let range = if iterative { 1..=MOST } else { 0..=0 };
        self.refuse("epochs", expected, outside(self.epochs as usize, range))?;
        let is_sketch = matches!(self.data, Data::Sketch { .. });
        let range = if is_sketch { 2..=MOST } else { 1..=LONGEST };
        self.refuse_beyond("draws", self.draws.unwrap_or(2) as usize, range)?;
        let mut movements = self.variants.iter().filter_map(|variant| variant.movement);
        let wrong = movements.find(|by| !(*by >= 0.0 && by.is_finite()));
        self.refuse("variants.movement", "0 or more", wrong)?;
        let inflation = self.inflation.filter(|inflation| !(1.0..=1e6).contains(inflation));
        self.refuse("inflation", "1 to 1000000", inflation)?;
        self.refuse_trained(&[
            ("imp", self.imp != Imp::default() && !self.methods.contains(&Method::KeptImp)),
            ("variants", !self.variants.is_empty() && !is_sketch && !is_masked),
        ])?;
        self.check_names()?;
        let refused = |point: Point| Some((point, self.impossible_point(point, iterative)?));
        let Some((Point { m, s, n, d, .. }, expected)) =
            self.points().into_iter().find_map(refused)
        else {
            return Ok(());
        };
        let got = format!("m = {m}, s = {s}, n = {n}, d = {d}");
        Err(self.out_of_bounds("the sizes", &expected, got))
    }

    /// What the sizes of a check, which may plant networks, have to be, where these are not.
    fn impossible_point(&self, at: Point, plants: bool) -> Option<String> {
        if let Data::Masks { from, hidden, train } = &self.data {
            let widths = [&[at.d], &hidden[..], &[self.data.outputs()]].concat();
            let weights: usize = widths.windows(2).map(|w| w[0].saturating_mul(w[1])).sum();
            let is_wrong = !matches!(from, Pictures::Mnist | Pictures::Fashion | Pictures::Digits)
                || hidden.is_empty()
                || !self.d.is_empty()
                || !self.n.is_empty()
                || hidden.iter().any(|width| !(1..=10_000).contains(width))
                || !(1..=5000).contains(train)
                || !(widths.len()..=weights).contains(&at.s);
            let expected = "pictures of mnist, fashion or digits, 1 to 5000 of each, no n or d, 1 to 10000 \
                            neurons of a hidden layer, s within the weights of the network";
            return is_wrong.then(|| expected.into());
        }
        if let Data::Masked(data) = &self.data {
            return self.impossible_mask(data, at);
        }
        let is_sketch = matches!(self.data, Data::Sketch { .. });
        let columns = if is_sketch { at.d } else { at.m.saturating_mul(at.d) };
        if is_sketch && self.draws.is_none() && !self.s.is_empty() {
            // Of all draws, for two norms of each row.
            let ways = 2_f64.powf(at.d as f64) * (at.d as f64).powf(at.s as f64);
            if ways > MOST as f64 {
                return Some(format!("draws, or at most {MOST} ways to draw 2^d d^s"));
            }
        }
        if self.methods.contains(&Method::SketchTangent) && !at.d.is_multiple_of(8) {
            return Some("d a multiple of 8, as many weights as a neuron has".into());
        }
        if let Data::Gates { weights, .. } = self.data {
            if !(1..=at.d).contains(&weights) {
                return Some(format!("data.weights from 1 to d, not {weights}"));
            }
            if plants && !at.s.is_multiple_of(weights) {
                return Some(format!(
                    "s a multiple of data.weights = {weights}, as many as a planted neuron has"
                ));
            }
            if plants && at.s / weights > at.m {
                return Some(format!("s at most data.weights = {weights} for each generator"));
            }
        }
        if !(1..=MOST).contains(&columns) || at.n == 0 || at.n > MOST {
            return Some(format!("1 to {MOST} columns m·d, and as many rows"));
        }
        (at.s > columns && !is_sketch).then(|| "s within the columns m·d".into())
    }
}

mod dense;
mod masked;
mod measures;
mod random;
#[cfg(test)]
mod tests;
