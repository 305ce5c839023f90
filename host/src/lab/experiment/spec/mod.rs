//! What an experiment is: a TOML file with one or more grids of cells, and profiles that change
//! them. `docs/experiments.md` describes every key.
//!
//! A profile is applied once: what runs, what is hashed and what stands in the results folder is
//! the resolved spec, which is a valid spec file itself.

mod check;
mod claim;
mod column;
mod dense;
mod kinds;
mod method;
mod metric;
mod notes;
mod part;
mod published;
mod random;
mod sensing;
mod variant;

use std::collections::BTreeMap;
use std::path::Path;

use crc::{CRC_64_XZ, Crc};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Error, Result};

pub(crate) use claim::{Claim, Expected};
pub(crate) use column::{Column, Quantity, Recorded, Statistic};
pub(crate) use dense::{DenseData, Inputs, Tables};
pub(crate) use kinds::{Data, Directions, Imp, Law, MaskedData, Pictures, Rows};
pub(crate) use method::Method;
pub(crate) use metric::Metric;
pub(crate) use notes::range_of_alpha;
pub(crate) use part::{Part, Point};
pub(crate) use published::Published;
pub(crate) use random::{Choice, Entries, EntryLaw, NetworkData};
pub(crate) use sensing::{Measurements, Sensed, SensingData};
pub(crate) use variant::{Distribution, MaskSpec, ScoreData, Variant};

/// The profiles that a spec may have; `paper` is the full grid.
pub(crate) const PROFILES: [&str; 3] = ["smoke", "reduced", "paper"];
/// The most cells of an experiment.
const MOST_CELLS: usize = 1_000_000;

/// An experiment with its profile applied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Small letters, digits and dashes.
    pub(crate) name: String,
    pub(crate) title: String,
    /// Where the figure was published, with its settings in words.
    pub(crate) source: String,
    /// What the results say of the publication, a sentence each; at the head of reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) remarks: Vec<String>,
    /// The profile that was applied.
    #[serde(default, deserialize_with = "named")]
    pub(crate) resolved: String,
    /// How long it took where it was measured, on two cores; for `--dry-run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) minutes: Option<f64>,
    /// The grids.
    pub(crate) part: Vec<Part>,
    /// The profiles of a spec as it is written; empty once one is applied.
    #[serde(default, skip_serializing)]
    profile: BTreeMap<String, Profile>,
}

/// What a profile changes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
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

/// The name of a profile, which is not empty.
fn named<'de, D: Deserializer<'de>>(reader: D) -> std::result::Result<String, D::Error> {
    let name = String::deserialize(reader)?;
    if name.is_empty() { Err(D::Error::custom("a profile without a name")) } else { Ok(name) }
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
    /// methods = ["paper"]
    /// seeds = [0]
    /// metric = "psnr"
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
        let mut spec = read(text)?;
        let mut profiles = std::mem::take(&mut spec.profile);
        let is_known = |name: &str| PROFILES.contains(&name);
        if let Some(other) = profiles.keys().find(|name| !is_known(name)) {
            return Err(no_profile(other, "the spec"));
        }
        let resolved = (!spec.resolved.is_empty()).then_some(spec.resolved.as_str());
        let name = profile.or(resolved).unwrap_or("paper").to_owned();
        if !is_known(&name) {
            return Err(no_profile(&name, "--profile"));
        }
        if let Some(resolved) = resolved.filter(|resolved| *resolved != name) {
            return Err(Error::new("the spec was resolved for another profile")
                .expected(format_args!("--profile {resolved}, or none"))
                .got(format_args!("--profile {name}"))
                .help("run the spec that it came from"));
        }
        match profiles.remove(&name) {
            Some(changes) => {
                spec.minutes = changes.minutes.or(spec.minutes);
                spec.part = apply(spec.part, &changes)?;
            }
            None if name == "smoke" && resolved.is_none() => {
                return Err(Error::new("the spec has no profile smoke")
                    .expected("a table [profile.smoke]")
                    .help("add one, or choose another --profile"));
            }
            None => {}
        }
        spec.resolved = name;
        spec.check()?;
        Ok(spec)
    }

    /// Reads a spec file, as [`parse`](Self::parse).
    pub(crate) fn load(path: &Path, profile: Option<&str>) -> Result<Self> {
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

    /// What results belong to: the same for the same resolved spec, but for how long it took and what they
    /// say.
    #[must_use]
    pub fn hash(&self) -> String {
        let bare = Self { minutes: None, remarks: Vec::new(), ..self.clone() };
        let text = serde_json::to_string(&bare).unwrap_or_default();
        format!("{:016x}", Crc::<u64>::new(&CRC_64_XZ).checksum(text.as_bytes()))
    }

    /// The same with drawn digits, or generated rows, in place of data that has to be fetched.
    pub(crate) fn with_digits(mut self) -> Self {
        for part in &mut self.part {
            match &mut part.data {
                Data::Mnist { classes, train, test, .. } => {
                    let (classes, train, test) = (std::mem::take(classes), *train, *test);
                    part.data = Data::Digits { side: 28, classes, train, test };
                }
                Data::Dense(data) => data.from = Tables::StandIn,
                Data::Image { from: from @ Pictures::Cifar, .. } => *from = Pictures::ColourDigits,
                Data::Image { from, .. }
                | Data::Masks { from, .. }
                | Data::Masked(MaskedData { from, .. })
                    if from.idx_folder().is_some() =>
                {
                    *from = Pictures::Digits;
                }
                _ => {}
            }
        }
        self
    }

    fn check(&self) -> Result<()> {
        slug(&self.name)?;
        if self.part.is_empty() {
            return Err(Error::new("the experiment has no part")
                .expected("a table [[part]]")
                .help("add one"));
        }
        for (at, part) in self.part.iter().enumerate() {
            slug(&part.name)?;
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
fn apply(mut parts: Vec<Part>, changes: &Profile) -> Result<Vec<Part>> {
    let named = changes.part.keys().chain(changes.parts.iter().flatten());
    if let Some(name) = named.into_iter().find(|name| parts.iter().all(|part| part.name != **name))
    {
        let all: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        return Err(Error::new("the profile changes a part that there is not")
            .expected(format_args!("one of {}", all.join(", ")))
            .got(name)
            .help("correct the name"));
    }
    parts.retain(|part| changes.parts.as_ref().is_none_or(|names| names.contains(&part.name)));
    let change = |part: Part| {
        let own = changes.part.get(&part.name);
        changed(changed(part, Some(&changes.all))?, own)
    };
    parts.into_iter().map(change).collect()
}

/// A part with some keys in place of its own.
fn changed(part: Part, keys: Option<&toml::Table>) -> Result<Part> {
    let Some(keys) = keys.filter(|keys| !keys.is_empty()) else { return Ok(part) };
    let wrong = |why: &str| {
        Error::new(format!("a profile cannot change part {}", part.name))
            .expected("keys of a part, with values of their types")
            .got(why.replace('\n', " "))
            .help("docs/experiments.md describes every key")
    };
    let mut table = toml::Table::try_from(&part).map_err(|error| wrong(&error.to_string()))?;
    // A grid takes the place of pairs, and the other way round.
    if keys.contains_key("m") || keys.contains_key("s") {
        table.remove("sizes");
    }
    if keys.contains_key("sizes") {
        table.retain(|key, _| key != "m" && key != "s");
    }
    table.extend(keys.clone());
    table.try_into().map_err(|error: toml::de::Error| wrong(error.message()))
}

/// Checks the name of an experiment or a part, which names files.
fn slug(name: &str) -> Result<()> {
    if !name.is_empty() && name.len() <= 60 && is_plain(name) {
        return Ok(());
    }
    Err(Error::new("a name in the spec cannot be the name of a file")
        .expected("small letters, digits and dashes, at most 60")
        .got(format_args!("{name:?}"))
        .help("choose another name"))
}

/// Whether a name has small letters, digits and dashes alone.
fn is_plain(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

fn no_profile(name: &str, place: &str) -> Error {
    Error::new(format!("{place} names a profile that there is not"))
        .expected(PROFILES.join(", "))
        .got(name)
        .help("correct the name")
}

/// The spec of a text, with the keys that parts have from others ([`like`]).
fn read(text: &str) -> Result<Spec> {
    let unreadable = |error| unreadable(text, &error);
    let mut table: toml::Table = toml::from_str(text).map_err(unreadable)?;
    let parts = table.get_mut("part").and_then(toml::Value::as_array_mut);
    if like(parts.map_or(&mut [], |parts| parts))? {
        return table.try_into().map_err(unreadable);
    }
    // As it is written, so that errors name a line.
    toml::from_str(text).map_err(unreadable)
}

/// Gives every part with a key `like` the keys that it lacks of the part so named, which stands
/// before it; whether there was one.
fn like(parts: &mut [toml::Value]) -> Result<bool> {
    let mut any = false;
    for at in 0..parts.len() {
        let (before, rest) = parts.split_at_mut(at);
        let Some(part) = rest.first_mut().and_then(toml::Value::as_table_mut) else { continue };
        let Some(name) = part.remove("like") else { continue };
        let other = before.iter().filter_map(toml::Value::as_table);
        let Some(other) = other.into_iter().find(|other| other.get("name") == Some(&name)) else {
            return Err(Error::new("a part is like one that there is not")
                .expected("the name of a part before it")
                .got(format_args!("like = {name}"))
                .help("correct the name, or put the other part first"));
        };
        for (key, value) in other {
            part.entry(key).or_insert_with(|| value.clone());
        }
        any = true;
    }
    Ok(any)
}

fn unreadable(text: &str, error: &toml::de::Error) -> Error {
    let place = error.span().map_or(String::new(), |span| {
        let breaks = text.bytes().take(span.start).filter(|&byte| byte == b'\n').count();
        format!(", in line {}", breaks + 1)
    });
    Error::new("the spec cannot be read")
        .expected("TOML with the keys that docs/experiments.md describes")
        .got(format_args!("{}{place}", error.message().replace('\n', " ")))
        .help("correct the line, or start from one of the specs in host/specs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oversized_grids_are_refused_before_allocation() {
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

    #[test]
    fn a_part_has_what_it_lacks_of_another() {
        let text = include_str!("../../../../specs/runtimes.toml");
        let with = |part: &str| {
            let part = format!("[[part]]\n{part}\n[profile.smoke]\n");
            Spec::parse(&text.replacen("[profile.smoke]\n", &part, 1), None)
        };
        let spec = with("like = 'binary'\nname = 'again'\nepochs = 3").unwrap();
        let (binary, again) = (&spec.part[0], spec.part.last().unwrap());
        let named = Part { name: "again".into(), epochs: 3, ..binary.clone() };
        assert_eq!((binary.name.as_str(), again), ("binary", &named));
        // What is written resolved says it in full.
        assert_eq!(Spec::parse(&spec.to_toml().unwrap(), None).unwrap(), spec);
        let error = with("like = 'none'\nname = 'again'").unwrap_err().to_string();
        assert!(error.contains("like = \"none\""), "{error}");
    }
}
