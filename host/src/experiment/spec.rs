//! What an experiment is: a TOML file with one or more parts, each a grid of cells, and profiles that change them.
//!
//! `docs/experiments.md` describes every key. A profile is applied once: what runs, what is hashed and what stands in the
//! results folder is the resolved spec, which is a valid spec file itself.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use crc::{CRC_64_XZ, Crc};
use serde::{Deserialize, Serialize};

use crate::data::{digits, image, planted};
use crate::run::Task;
use crate::{Error, Result};

/// The profiles that a spec may have; `paper` is the spec as it stands, the full grid.
pub const PROFILES: [&str; 3] = ["smoke", "reduced", "paper"];
/// The profile that changes nothing unless the spec says so.
pub const FULL: &str = "paper";
/// The largest number of a grid, of epochs and of rows: enough for any machine, and safe to multiply.
const MOST: usize = 100_000_000;
/// The most cells of an experiment.
const MOST_CELLS: usize = 1_000_000;

/// How a cell is trained, or predicted without training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Iterative hard thresholding as published.
    Paper,
    /// The same in the least memory that it can be had in, for more time.
    PaperLeast,
    /// The same for several outputs, with epochs that diverge undone and the best iterate kept.
    PaperSafe,
    /// What `tamis train --recipe auto` takes for the task.
    Recipe,
    /// Iterative magnitude pruning with the epochs, batches and inputs of the published figure.
    ImpPublished,
    /// Iterative magnitude pruning that is trained to its end: the settings of the part's `imp`.
    Imp,
    /// Zero for every row.
    Zero,
    /// The mean of the training labels for every row.
    Mean,
}

impl Method {
    /// As specs and files call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::PaperLeast => "paper-least",
            Self::PaperSafe => "paper-safe",
            Self::Recipe => "recipe",
            Self::ImpPublished => "imp-published",
            Self::Imp => "imp",
            Self::Zero => "zero",
            Self::Mean => "mean",
        }
    }

    /// As people read it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Paper => "IHT as published",
            Self::PaperLeast => "IHT, least memory",
            Self::PaperSafe => "IHT, safe steps",
            Self::Recipe => "Tamis, usual recipe",
            Self::ImpPublished => "IMP as published",
            Self::Imp => "IMP trained properly",
            Self::Zero => "zero predictor",
            Self::Mean => "mean predictor",
        }
    }

    /// Whether it looks at nothing but the labels.
    #[must_use]
    pub const fn is_constant(self) -> bool {
        matches!(self, Self::Zero | Self::Mean)
    }

    /// Whether the dense network is trained and pruned.
    #[must_use]
    pub const fn is_dense(self) -> bool {
        matches!(self, Self::Imp | Self::ImpPublished)
    }
}

/// What a cell learns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Data {
    /// Labels of a random sparse network of the cell's m and s, with as many hidden layers as the part, on standard normal rows.
    Planted {
        /// Rows to train on.
        samples: usize,
        /// Columns, d.
        inputs: usize,
        /// Outputs, c.
        outputs: usize,
        /// Further rows to test on.
        test: usize,
    },
    /// MNIST: of each class so many images to train on and the next ones to test on, the 60000 + 10000 images in order.
    Mnist {
        /// Digits; two are a binary task.
        classes: Vec<u8>,
        /// Images of each class to train on.
        train: usize,
        /// Images of each class to test on, at most.
        test: usize,
    },
    /// Drawn digits in place of MNIST, from a fixed seed.
    Digits {
        /// Pixels of a side.
        side: usize,
        /// Digits; two are a binary task.
        classes: Vec<u8>,
        /// Images of each class to train on.
        train: usize,
        /// Images of each class to test on.
        test: usize,
    },
    /// One picture: places to brightness.
    Image {
        /// Which pictures.
        from: Pictures,
        /// Which of them, from 0.
        index: usize,
        /// Fourier features of a place.
        features: usize,
        /// Standard deviation of their frequencies, in turns per pixel.
        deviation: f64,
        /// The same in turns per channel, for pictures in colours.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel_deviation: Option<f64>,
    },
}

/// Where pictures come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pictures {
    /// The test part of MNIST: images 5000 to 5999 of each digit, in order of the digits; 28×28.
    Mnist,
    /// `cifar/image0.png` and so on; 32×32 in colours.
    Cifar,
    /// A drawn digit; 28×28.
    Digits,
    /// Three drawn digits, one per colour; 32×32.
    ColourDigits,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// `20 log10(max|y|) - 10 log10(MSE)`, in dB; means over seeds are taken in dB.
    Psnr,
    /// Part of the rows whose class is right.
    Accuracy,
}

impl Metric {
    /// With its unit.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Psnr => "PSNR, dB",
            Self::Accuracy => "accuracy",
        }
    }

    /// Digits behind the point in pictures and tables.
    #[must_use]
    pub const fn digits(self) -> (usize, usize) {
        match self {
            Self::Psnr => (0, 1),
            Self::Accuracy => (2, 4),
        }
    }
}

/// Which rows the metric is taken on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rows {
    /// Those trained on.
    Train,
    /// Those held back.
    Test,
}

impl Rows {
    /// As people read it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Train => "training rows",
            Self::Test => "test rows",
        }
    }
}

/// What becomes of cells that cannot be, such as s above the number of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Impossible {
    /// The spec is refused.
    #[default]
    Refuse,
    /// They are left out, as in the published figures.
    Skip,
}

/// How iterative magnitude pruning is trained properly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Imp {
    /// Epochs of each level.
    #[serde(default = "Imp::epochs")]
    pub epochs: u32,
    /// Rows of a batch, 0 for all.
    #[serde(default = "Imp::batch")]
    pub batch: usize,
    /// Rate of Adam.
    #[serde(default = "Imp::rate")]
    pub rate: f64,
    /// Part of the weights that a round prunes.
    #[serde(default = "Imp::prune")]
    pub prune: f64,
}

impl Imp {
    const fn epochs() -> u32 {
        20
    }

    const fn batch() -> usize {
        256
    }

    const fn rate() -> f64 {
        0.001
    }

    const fn prune() -> f64 {
        0.1
    }
}

impl Default for Imp {
    fn default() -> Self {
        Self { epochs: Self::epochs(), batch: Self::batch(), rate: Self::rate(), prune: Self::prune() }
    }
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
    /// Pairs of m and s, in place of a grid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<[usize; 2]>,
    /// What becomes of cells that cannot be.
    #[serde(default)]
    pub impossible: Impossible,
    /// Epochs of the published methods; of IMP, each level.
    pub epochs: u32,
    /// Rows of their batches, 0 for all.
    pub batch: usize,
    /// How each cell is trained.
    pub methods: Vec<Method>,
    /// Seeds of each cell: of planted data, frequencies, starts and orders.
    pub seeds: Vec<u64>,
    /// What is compared.
    pub metric: Metric,
    /// On which rows.
    pub on: Rows,
    /// Values at the ends of the colours.
    pub range: [f64; 2],
    /// Passes over all rows after which the method `recipe` ends, if it has not before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<f64>,
    /// What is learnt.
    pub data: Data,
    /// How the method `imp` trains.
    #[serde(default)]
    pub imp: Imp,
}

const fn one() -> usize {
    1
}

/// A resolved experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spec {
    /// Its name, of small letters, digits and dashes.
    pub name: String,
    /// Heading.
    pub title: String,
    /// Where the figure was published, with its settings in words.
    pub source: String,
    /// The profile that was applied.
    pub resolved: String,
    /// How long it took where it was measured, on two cores; for `--dry-run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<f64>,
    /// The grids.
    pub part: Vec<Part>,
}

/// A spec as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    name: String,
    title: String,
    source: String,
    resolved: Option<String>,
    minutes: Option<f64>,
    part: Vec<Part>,
    #[serde(default)]
    profile: BTreeMap<String, Profile>,
}

/// What a profile changes.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Profile {
    minutes: Option<f64>,
    /// The parts that are run; all without it.
    parts: Option<Vec<String>>,
    #[serde(default)]
    all: Changes,
    #[serde(default)]
    part: BTreeMap<String, Changes>,
}

/// Keys of a part that take the place of its own.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Changes {
    m: Option<Vec<usize>>,
    s: Option<Vec<usize>>,
    sizes: Option<Vec<[usize; 2]>>,
    impossible: Option<Impossible>,
    epochs: Option<u32>,
    batch: Option<usize>,
    methods: Option<Vec<Method>>,
    seeds: Option<Vec<u64>>,
    metric: Option<Metric>,
    on: Option<Rows>,
    range: Option<[f64; 2]>,
    passes: Option<f64>,
    data: Option<Data>,
    imp: Option<Imp>,
}

impl Changes {
    fn apply(&self, part: &mut Part) {
        fn set<T: Clone>(place: &mut T, value: &Option<T>) {
            if let Some(value) = value {
                *place = value.clone();
            }
        }
        // A grid takes the place of pairs, and the other way round.
        if self.m.is_some() || self.s.is_some() {
            part.sizes.clear();
        }
        if self.sizes.is_some() {
            (part.m, part.s) = (Vec::new(), Vec::new());
        }
        set(&mut part.m, &self.m);
        set(&mut part.s, &self.s);
        set(&mut part.sizes, &self.sizes);
        set(&mut part.impossible, &self.impossible);
        set(&mut part.epochs, &self.epochs);
        set(&mut part.batch, &self.batch);
        set(&mut part.methods, &self.methods);
        set(&mut part.seeds, &self.seeds);
        set(&mut part.metric, &self.metric);
        set(&mut part.on, &self.on);
        set(&mut part.range, &self.range);
        set(&mut part.data, &self.data);
        set(&mut part.imp, &self.imp);
        part.passes = self.passes.or(part.passes);
    }
}

impl Spec {
    /// Reads a spec and applies a profile: the one named, of a resolved spec its own, else the full grid.
    ///
    /// # Errors
    /// The text is no TOML, has an unknown key, a value of another type or out of bounds, or a cell that cannot be; there is
    /// no such profile, or the spec was resolved for another one.
    ///
    /// ```
    /// let text = r#"
    /// name = "small"
    /// title = "A small planted grid"
    /// source = "nowhere"
    /// [[part]]
    /// name = "planted"
    /// title = "Planted"
    /// m = [2]
    /// s = [2, 4]
    /// epochs = 5
    /// batch = 0
    /// methods = ["paper"]
    /// seeds = [0]
    /// metric = "psnr"
    /// on = "train"
    /// range = [-20, 50]
    /// data = { kind = "planted", samples = 200, inputs = 8, outputs = 1, test = 0 }
    /// [profile.smoke.all]
    /// s = [2]
    /// "#;
    /// use tamis_host::experiment::Spec;
    /// assert_eq!(Spec::parse(text, None)?.cells().len(), 2);
    /// assert_eq!(Spec::parse(text, Some("smoke"))?.cells().len(), 1);
    /// assert!(Spec::parse(&text.replace("epochs", "epoch"), None).is_err());
    /// # Ok::<(), tamis_host::Error>(())
    /// ```
    pub fn parse(text: &str, profile: Option<&str>) -> Result<Self> {
        let document: Document = toml::from_str(text).map_err(|error| unreadable(text, &error))?;
        if let Some(other) = document.profile.keys().find(|name| !PROFILES.contains(&name.as_str())) {
            return Err(no_profile(other, "the spec"));
        }
        let name = profile.or(document.resolved.as_deref()).unwrap_or(FULL);
        if !PROFILES.contains(&name) {
            return Err(no_profile(name, "--profile"));
        }
        if let Some(resolved) = document.resolved.as_deref().filter(|resolved| *resolved != name) {
            return Err(Error::new("the spec was resolved for another profile")
                .expected(format_args!("--profile {resolved}, or none"))
                .got(format_args!("--profile {name}"))
                .help("run the spec that it came from"));
        }
        let none = Profile::default();
        let changes = document.profile.get(name).unwrap_or(&none);
        if name == "smoke" && !document.profile.contains_key(name) && document.resolved.is_none() {
            return Err(Error::new("the spec has no profile smoke")
                .expected("a table [profile.smoke]")
                .help("add one, or choose another --profile"));
        }
        let spec = Self {
            name: document.name,
            title: document.title,
            source: document.source,
            resolved: name.to_owned(),
            minutes: changes.minutes.or(document.minutes),
            part: apply(document.part, changes)?,
        };
        spec.check()?;
        Ok(spec)
    }

    /// Reads a spec file, as [`parse`](Self::parse).
    ///
    /// # Errors
    /// The file cannot be read, and those of `parse`.
    pub fn load(path: &Path, profile: Option<&str>) -> Result<Self> {
        let bytes = crate::file::read_aligned(path)?;
        let text = std::str::from_utf8(&bytes).map_err(|error| {
            Error::new("the spec is no text").at(path).source(error).help("save it as UTF-8")
        })?;
        Self::parse(text, profile).map_err(|error| error.at(path))
    }

    /// The resolved spec as a spec file.
    ///
    /// # Errors
    /// None for what [`parse`](Self::parse) gives.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self).map_err(|error| Error::new("cannot write the spec as TOML").source(error))
    }

    /// What results belong to: the same for the same resolved spec, but for how long it took.
    #[must_use]
    pub fn hash(&self) -> String {
        let bare = Self { minutes: None, ..self.clone() };
        let text = serde_json::to_string(&bare).unwrap_or_default();
        format!("{:016x}", Crc::<u64>::new(&CRC_64_XZ).checksum(text.as_bytes()))
    }

    /// The same with drawn digits in place of data that has to be fetched.
    #[must_use]
    pub fn with_digits(mut self) -> Self {
        for part in &mut self.part {
            part.data = match std::mem::replace(&mut part.data, Data::NONE) {
                Data::Mnist { classes, train, test } => Data::Digits { side: 28, classes, train, test },
                Data::Image { from: Pictures::Mnist, index, features, deviation, channel_deviation } => {
                    let from = Pictures::Digits;
                    Data::Image { from, index, features, deviation, channel_deviation }
                }
                Data::Image { from: Pictures::Cifar, index, features, deviation, channel_deviation } => {
                    let from = Pictures::ColourDigits;
                    Data::Image { from, index, features, deviation, channel_deviation }
                }
                other => other,
            };
        }
        self
    }

    fn check(&self) -> Result<()> {
        slug("name", &self.name)?;
        if self.part.is_empty() {
            return Err(Error::new("the experiment has no part")
                .expected("a table [[part]]")
                .help("add one"));
        }
        for (at, part) in self.part.iter().enumerate() {
            slug("name", &part.name)?;
            if self.part[..at].iter().any(|other| other.name == part.name) {
                return Err(bounds(part, "name", "a name of its own", &part.name));
            }
            part.check()?;
        }
        match self.cells().len() {
            1..=MOST_CELLS => Ok(()),
            cells => Err(Error::new("the number of cells is out of bounds")
                .expected(format_args!("1 to {MOST_CELLS}"))
                .got(cells)
                .help("choose another grid: with impossible = \"skip\" cells that cannot be are left out")),
        }
    }
}

fn apply(parts: Vec<Part>, changes: &Profile) -> Result<Vec<Part>> {
    let known = |name: &String| parts.iter().any(|part| part.name == *name);
    let named = changes.part.keys().chain(changes.parts.iter().flatten());
    if let Some(name) = named.into_iter().find(|name| !known(name)) {
        let all: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        return Err(Error::new("the profile changes a part that there is not")
            .expected(format_args!("one of {}", all.join(", ")))
            .got(name)
            .help("correct the name"));
    }
    let kept = |part: &Part| changes.parts.as_ref().is_none_or(|parts| parts.contains(&part.name));
    let mut parts: Vec<Part> = parts.into_iter().filter(kept).collect();
    for part in &mut parts {
        changes.all.apply(part);
        if let Some(own) = changes.part.get(&part.name) {
            own.apply(part);
        }
    }
    Ok(parts)
}

impl Data {
    const NONE: Self = Self::Planted { samples: 1, inputs: 1, outputs: 1, test: 0 };

    /// What the labels mean.
    #[must_use]
    pub fn task(&self) -> Task {
        match self {
            Self::Mnist { classes, .. } | Self::Digits { classes, .. } if classes.len() == 2 => Task::Binary,
            Self::Mnist { .. } | Self::Digits { .. } => Task::Multiclass,
            Self::Planted { .. } | Self::Image { .. } => Task::Regression,
        }
    }

    /// Columns, d.
    #[must_use]
    pub fn inputs(&self) -> usize {
        match self {
            Self::Planted { inputs, .. } => *inputs,
            Self::Mnist { .. } => 784,
            Self::Digits { side, .. } => side * side,
            Self::Image { features, .. } => *features,
        }
    }

    /// Outputs, c: labels of a row, or classes.
    #[must_use]
    pub fn outputs(&self) -> usize {
        match self {
            Self::Planted { outputs, .. } => *outputs,
            Self::Mnist { classes, .. } | Self::Digits { classes, .. } if classes.len() > 2 => classes.len(),
            _ => 1,
        }
    }

    /// Whether labels are the same in every cell.
    #[must_use]
    pub const fn is_fixed(&self) -> bool {
        !matches!(self, Self::Planted { .. })
    }

    /// Whether there are rows to test on.
    #[must_use]
    pub const fn has_test(&self) -> bool {
        match self {
            Self::Planted { test, .. } | Self::Mnist { test, .. } | Self::Digits { test, .. } => *test > 0,
            Self::Image { .. } => false,
        }
    }
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
            let mut shares = layers.iter().enumerate().map(|(l, &len)| (planted::share(s, least, l), l, len));
            return shares
                .find(|(share, _, len)| !(1..=*len).contains(share))
                .map(|(share, l, len)| format!("{share} planted weights in layer {} of {len}", l + 1));
        }
        let least = if self.data.outputs() > 1 { 2 } else { 1 };
        (!(least..=most).contains(&s)).then(|| format!("{least} to {most} parameters"))
    }

    fn check(&self) -> Result<()> {
        self.check_grid()?;
        self.check_settings()?;
        self.check_data()?;
        if self.impossible == Impossible::Refuse {
            let all = self.m.iter().flat_map(|&m| self.s.iter().map(move |&s| (m, s)));
            let mut all = all.chain(self.sizes.iter().map(|&[m, s]| (m, s)));
            if let Some((m, s, why)) = all.find_map(|(m, s)| Some((m, s, self.refusal(m, s)?))) {
                return Err(Error::new(format!("a cell of part {} cannot be: m = {m}, s = {s}", self.name))
                    .expected("s within the parameters of the network")
                    .got(why)
                    .help("take the pair out, or set impossible = \"skip\""));
            }
        }
        if self.pairs().is_empty() {
            return Err(bounds(self, "m and s", "a pair that can be", "none"));
        }
        Ok(())
    }

    fn check_grid(&self) -> Result<()> {
        if self.sizes.is_empty() == (self.m.is_empty() || self.s.is_empty())
            || (!self.sizes.is_empty() && !(self.m.is_empty() && self.s.is_empty()))
        {
            return Err(bounds(self, "m, s and sizes", "m and s, or sizes", "another choice of them"));
        }
        let numbers = self.m.iter().chain(&self.s).chain(self.sizes.iter().flatten());
        if let Some(wrong) = numbers.into_iter().find(|n| !(1..=MOST).contains(*n)) {
            return Err(bounds(self, "m and s", &format!("1 to {MOST}"), wrong));
        }
        let repeats =
            |list: &[usize]| (1..list.len()).find(|&i| list[..i].contains(&list[i])).map(|i| list[i]);
        if let Some(twice) = repeats(&self.m).or(repeats(&self.s)) {
            return Err(bounds(self, "m and s", "every number once", twice));
        }
        if let Some(i) = (1..self.sizes.len()).find(|&i| self.sizes[..i].contains(&self.sizes[i])) {
            return Err(bounds(self, "sizes", "every pair once", format_args!("{:?}", self.sizes[i])));
        }
        if !(1..=5).contains(&self.hidden) {
            return Err(bounds(self, "hidden", "1 to 5 layers", self.hidden));
        }
        Ok(())
    }

    fn check_settings(&self) -> Result<()> {
        if self.epochs == 0 || self.epochs as usize > MOST {
            return Err(bounds(self, "epochs", &format!("1 to {MOST}"), self.epochs));
        }
        if self.batch > MOST || self.imp.batch > MOST {
            let batch = self.batch.max(self.imp.batch);
            return Err(bounds(self, "batch", &format!("0 for all rows, or up to {MOST}"), batch));
        }
        if self.imp.epochs == 0 || self.imp.epochs as usize > MOST {
            return Err(bounds(self, "imp.epochs", &format!("1 to {MOST}"), self.imp.epochs));
        }
        if !(self.imp.rate > 0.0 && self.imp.rate.is_finite()) {
            return Err(bounds(self, "imp.rate", "above 0", self.imp.rate));
        }
        if !(self.imp.prune > 0.0 && self.imp.prune <= 1.0) {
            return Err(bounds(self, "imp.prune", "above 0 and at most 1", self.imp.prune));
        }
        if let Some(passes) = self.passes.filter(|passes| !(*passes > 0.0 && passes.is_finite())) {
            return Err(bounds(self, "passes", "above 0", passes));
        }
        let [low, high] = self.range;
        if !(low < high && low.is_finite() && high.is_finite()) {
            return Err(bounds(
                self,
                "range",
                "two numbers, the second above the first",
                format_args!("{:?}", self.range),
            ));
        }
        let mut seeds = self.seeds.clone();
        seeds.sort_unstable();
        seeds.dedup();
        if seeds.is_empty()
            || seeds.len() < self.seeds.len()
            || seeds.iter().any(|&seed| i64::try_from(seed).is_err())
        {
            return Err(bounds(
                self,
                "seeds",
                "one or more, every seed once",
                format_args!("{:?}", self.seeds),
            ));
        }
        let mut methods = self.methods.clone();
        methods.sort_unstable();
        methods.dedup();
        if methods.is_empty() || methods.len() < self.methods.len() {
            return Err(bounds(
                self,
                "methods",
                "one or more, every method once",
                format_args!("{:?}", self.methods),
            ));
        }
        if self.methods.contains(&Method::PaperSafe) && self.data.outputs() == 1 {
            return Err(bounds(self, "methods", "paper-safe for several outputs only", "one output"));
        }
        Ok(())
    }

    fn check_data(&self) -> Result<()> {
        let rows = |name: &str, n: usize, least: usize| match (least..=MOST).contains(&n) {
            true => Ok(()),
            false => Err(bounds(self, &format!("data.{name}"), &format!("{least} to {MOST}"), n)),
        };
        match &self.data {
            Data::Planted { samples, inputs, outputs, test } => {
                rows("samples", *samples, 1)?;
                rows("test", *test, 0)?;
                rows("inputs", *inputs, 1)?;
                rows("outputs", *outputs, 1)?;
            }
            Data::Mnist { classes, train, test } | Data::Digits { classes, train, test, .. } => {
                rows("train", *train, 1)?;
                rows("test", *test, 0)?;
                let mut sorted = classes.clone();
                sorted.sort_unstable();
                sorted.dedup();
                if sorted.len() < 2 || sorted.len() < classes.len() || sorted.iter().any(|&class| class > 9) {
                    let expected = "two digits or more, 0 to 9, every one once";
                    return Err(bounds(self, "data.classes", expected, format_args!("{classes:?}")));
                }
                if let Data::Digits { side, .. } = self.data {
                    digits::check_side(side).map_err(|_| {
                        let expected = format!("{} to {} pixels", digits::MIN_SIDE, digits::MAX_SIDE);
                        bounds(self, "data.side", &expected, side)
                    })?;
                }
            }
            Data::Image { from, features, deviation, channel_deviation, .. } => {
                let colours = matches!(from, Pictures::Cifar | Pictures::ColourDigits);
                if colours != channel_deviation.is_some() {
                    let expected =
                        if colours { "a number, for pictures in colours" } else { "none, for grey pictures" };
                    let got = channel_deviation.map_or("none".into(), |value| value.to_string());
                    return Err(bounds(self, "data.channel_deviation", expected, got));
                }
                let (features, deviation) = (*features, *deviation);
                let channel_deviation = channel_deviation.unwrap_or(0.0);
                let fourier = image::Fourier { features, deviation, channel_deviation, seed: 0 };
                rows("features", features, 2)?;
                fourier.check().map_err(|_| {
                    let expected = "an even number of features, deviations of 0 or more";
                    bounds(self, "data", expected, format_args!("{fourier:?}"))
                })?;
            }
        }
        match (self.metric, self.data.task(), self.on) {
            (Metric::Accuracy, Task::Regression, _) => {
                Err(bounds(self, "metric", "psnr, as the labels are numbers", "accuracy"))
            }
            (Metric::Psnr, Task::Multiclass, _) => {
                Err(bounds(self, "metric", "accuracy, as the labels are classes", "psnr"))
            }
            (_, _, Rows::Test) if !self.data.has_test() => {
                Err(bounds(self, "on", "train, as there are no rows to test on", "test"))
            }
            _ => Ok(()),
        }
    }
}

fn bounds(part: &Part, key: &str, expected: &str, got: impl fmt::Display) -> Error {
    Error::new(format!("a key of part {} of the spec is out of bounds: {key}", part.name))
        .expected(expected)
        .got(got)
        .help("docs/experiments.md describes every key")
}

/// Names of files and figures.
fn slug(key: &str, name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.is_empty() && name.len() <= 60 && name.chars().all(plain) {
        return Ok(());
    }
    Err(Error::new(format!("a {key} in the spec cannot be the name of a file"))
        .expected("small letters, digits and dashes, at most 60")
        .got(format_args!("{name:?}"))
        .help("choose another name"))
}

fn no_profile(name: &str, place: &str) -> Error {
    Error::new(format!("{place} names a profile that there is not"))
        .expected(PROFILES.join(", "))
        .got(name)
        .help("correct the name")
}

fn unreadable(text: &str, error: &toml::de::Error) -> Error {
    let line = error.span().map(|span| 1 + text.bytes().take(span.start).filter(|&b| b == b'\n').count());
    let place = line.map_or(String::new(), |line| format!(", in line {line}"));
    Error::new("the spec cannot be read")
        .expected("TOML with the keys that docs/experiments.md describes")
        .got(format_args!("{}{place}", error.message().replace('\n', " ")))
        .help("correct the line, or start from one of the specs in host/specs")
}
