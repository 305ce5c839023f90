//! What an experiment is: a TOML file with one or more parts, each a grid of cells, and profiles
//! that change them.
//!
//! `docs/experiments.md` describes every key. A profile is applied once: what runs, what is hashed
//! and what stands in the results folder is the resolved spec, which is a valid spec file itself.

mod check;
mod column;
mod kinds;
mod metric;
mod part;
mod variant;

use std::collections::BTreeMap;
use std::path::Path;

use crc::{CRC_64_XZ, Crc};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

pub use column::{Column, Quantity, Statistic};
pub use kinds::{Data, Directions, Imp, Impossible, Method, Pictures, Rows, patterns};
pub use metric::Metric;
pub use part::{Part, Point};
pub use variant::{Distribution, Variant};

/// The profiles that a spec may have; `paper` is the spec as it stands, the full grid.
pub const PROFILES: [&str; 3] = ["smoke", "reduced", "paper"];
/// The profile that changes nothing unless the spec says so.
pub const FULL: &str = "paper";
/// The most cells of an experiment.
const MOST_CELLS: usize = 1_000_000;

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
    /// Keys of all parts, in place of their own.
    #[serde(default)]
    all: toml::Table,
    /// Keys of one part.
    #[serde(default)]
    part: BTreeMap<String, toml::Table>,
}

impl Spec {
    /// Reads a spec and applies a profile: the one named, of a resolved spec its own, else the full
    /// grid.
    ///
    /// # Errors
    /// The text is no TOML, has an unknown key, a value of another type or out of bounds, or a cell
    /// that cannot be; there is no such profile, or the spec was resolved for another one.
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
    /// use tamis_host::lab::experiment::Spec;
    /// assert_eq!(Spec::parse(text, None)?.cells().len(), 2);
    /// assert_eq!(Spec::parse(text, Some("smoke"))?.cells().len(), 1);
    /// assert!(Spec::parse(&text.replace("epochs", "epoch"), None).is_err());
    /// # Ok::<(), tamis_host::Error>(())
    /// ```
    pub fn parse(text: &str, profile: Option<&str>) -> Result<Self> {
        let document: Document = toml::from_str(text).map_err(|error| unreadable(text, &error))?;
        if let Some(other) = document.profile.keys().find(|name| !PROFILES.contains(&name.as_str()))
        {
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
        let bytes = crate::base::file::read_aligned(path)?;
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
        toml::to_string(self)
            .map_err(|error| Error::new("cannot write the spec as TOML").source(error))
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
            match &mut part.data {
                Data::Mnist { classes, train, test, .. } => {
                    let (classes, train, test) = (std::mem::take(classes), *train, *test);
                    part.data = Data::Digits { side: 28, classes, train, test };
                }
                Data::Image { from: from @ Pictures::Mnist, .. } => *from = Pictures::Digits,
                Data::Image { from: from @ Pictures::Cifar, .. } => *from = Pictures::ColourDigits,
                _ => {}
            }
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
                return Err(part.out_of_bounds("name", "a name of its own", &part.name));
            }
            part.check()?;
        }
        // Counted before they are made.
        let count =
            |part: &Part| part.sizes().saturating_mul(part.methods.len() * part.seeds.len());
        match self.part.iter().map(count).fold(0, usize::saturating_add) {
            1..=MOST_CELLS => Ok(()),
            cells => Err(Error::new("the number of cells is out of bounds")
                .expected(format_args!("1 to {MOST_CELLS}"))
                .got(cells)
                .help(
                    "choose another grid: with impossible = \"skip\" cells that cannot be are \
                    left out",
                )),
        }
    }
}

/// The parts that a profile runs, with its changes.
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
    let none = toml::Table::new();
    let change = |part: Part| {
        let own = changes.part.get(&part.name).unwrap_or(&none);
        changed(changed(part, &changes.all)?, own)
    };
    parts.into_iter().filter(kept).map(change).collect()
}

/// A part with some keys in place of its own.
fn changed(part: Part, keys: &toml::Table) -> Result<Part> {
    if keys.is_empty() {
        return Ok(part);
    }
    let wrong = |why: String| {
        Error::new(format!("a profile cannot change part {}", part.name))
            .expected("keys of a part, with values of their types")
            .got(why.replace('\n', " "))
            .help("docs/experiments.md describes every key")
    };
    let mut table = toml::Table::try_from(&part).map_err(|error| wrong(error.to_string()))?;
    // A grid takes the place of pairs, and the other way round.
    if keys.contains_key("m") || keys.contains_key("s") {
        table.remove("sizes");
    }
    if keys.contains_key("sizes") {
        ["m", "s"].iter().for_each(|key| drop(table.remove(*key)));
    }
    table.extend(keys.clone());
    table.try_into().map_err(|error: toml::de::Error| wrong(error.message().to_owned()))
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
    let line =
        error.span().map(|span| 1 + text.bytes().take(span.start).filter(|&b| b == b'\n').count());
    let place = line.map_or(String::new(), |line| format!(", in line {line}"));
    Error::new("the spec cannot be read")
        .expected("TOML with the keys that docs/experiments.md describes")
        .got(format_args!("{}{place}", error.message().replace('\n', " ")))
        .help("correct the line, or start from one of the specs in host/specs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_beyond_any_machine_are_refused_before_they_are_made() {
        let text = include_str!("../../../../specs/figure-1-left.toml");
        let list = |len: usize| format!("{:?}", (1..=len).collect::<Vec<_>>());
        let refused = |changes: String| {
            let text = text.replace(
                "[profile.smoke.all]",
                &format!("[profile.paper.all]\n{changes}\n[profile.smoke.all]"),
            );
            Spec::parse(&text, None).unwrap_err().to_string()
        };
        let cube = format!("m = {0}\ns = {0}\nseeds = {0}", list(900));
        assert!(refused(cube).contains("the number of cells"));
        assert!(refused(format!("seeds = {}", list(1001))).contains("at most 1000 entries"));
        assert!(refused("m = [100000001]".into()).contains("1 to 100000000"));
    }

    #[test]
    fn a_profile_changes_all_parts_and_then_one() {
        let text = include_str!("../../../../specs/runtimes.toml");
        let change = "[profile.paper]\nparts = ['binary', 'planted']\nall = { epochs = 7 \
            }\npart.planted = { epochs = 9 }\n";
        let spec = Spec::parse(
            &text.replace("[profile.smoke]\n", &format!("{change}[profile.smoke]\n")),
            None,
        )
        .unwrap();
        let epochs: Vec<_> =
            spec.part.iter().map(|part| (part.name.as_str(), part.epochs)).collect();
        assert_eq!(epochs, [("binary", 7), ("planted", 9)]);
        let usual = Spec::parse(text, None).unwrap();
        assert_ne!(usual.hash(), spec.hash());
        // How long it takes changes no result.
        assert_eq!(Spec { minutes: Some(1.0), ..usual.clone() }.hash(), usual.hash());
    }
}
