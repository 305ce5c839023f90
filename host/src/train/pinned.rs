//! Pinned weights: they stay whatever their size, and are named by neuron and input.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tamis::base::dims::Dims;

use crate::train::network::SparseNetwork;
use crate::{Error, Result, base::file};

/// Weights that stay whatever their size, by their names, and from where these are: the command
/// line, or lines of files. A run does not renumber its neurons; a model numbers those that have
/// weights, in the same order.
///
/// A file has names `NEURON:INPUT`, both from 0, one in a line or several, with commas or blanks
/// between them; `#` begins a comment that goes to the end of its line.
///
/// ```
/// use tamis_host::train::PinnedWeights;
///
/// let pinned: PinnedWeights = [[0, 3], [1, 0]].into_iter().collect();
/// assert_eq!(pinned.flat(2, 8)?, [3, 8]);
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("keep.txt");
/// std::fs::write(&path, "# the clock\n0:3, 0:5\n1:3  # for both neurons\n").unwrap();
/// let mut list = PinnedWeights::default();
/// list.add(1, 0);
/// list.read(&path)?;
/// assert_eq!(list.flat(2, 8)?, [3, 5, 8, 11]);
/// // What is wrong is named with its line.
/// let error = list.flat(2, 5).unwrap_err().to_string();
/// assert!(error.contains("0:5 in line 2") && error.contains("keep.txt"), "{error}");
/// # Ok::<(), tamis_host::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct PinnedWeights {
    files: Vec<PathBuf>,
    named: Vec<Named>,
}

/// A weight, and its file and line where it is from one.
#[derive(Debug, Clone, Copy)]
struct Named {
    neuron: usize,
    input: usize,
    place: Option<(usize, usize)>,
}

impl PinnedWeights {
    /// Bytes of a file at the most: more than a million names.
    const MOST: u64 = 16 << 20;

    /// No weights.
    pub const NONE: Self = Self { files: Vec::new(), named: Vec::new() };

    /// Whether nothing is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// Adds a weight by its name.
    pub fn add(&mut self, neuron: usize, input: usize) {
        self.named.push(Named { neuron, input, place: None });
    }

    /// Adds the weights that a file names.
    ///
    /// # Errors
    /// The file cannot be read, is longer than 16 MB, is no text, names no weight, or has a line
    /// that is no list of names; then nothing is added.
    pub fn read(&mut self, path: &Path) -> Result<()> {
        let (file, len) = file::open(path)?;
        if len > Self::MOST {
            return Err(Error::new("the file of pinned weights is too large")
                .at(path)
                .expected(format_args!("at most {} bytes", Self::MOST))
                .got(format_args!("{len} bytes"))
                .help("name the weights alone, one in a line"));
        }
        let mut bytes = Vec::new();
        file.take(Self::MOST)
            .read_to_end(&mut bytes)
            .map_err(|e| Error::io("cannot read", path, e))?;
        let text = std::str::from_utf8(&bytes).map_err(|e| {
            let line = 1 + bytes[..e.valid_up_to()].iter().filter(|&&b| b == b'\n').count();
            Error::new("the file of pinned weights is no text")
                .at(path)
                .expected("names NEURON:INPUT, such as 0:3")
                .got(format_args!("bytes in line {line} that are no UTF-8"))
                .help("save it as plain text")
        })?;
        let at = self.files.len();
        let mut named = Vec::new();
        for (line, text) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
            let names = text.split('#').next().unwrap_or("");
            for name in names.split([',', ' ', '\t', '\r']).filter(|name| !name.is_empty()) {
                let Some((neuron, input)) = parse_weight(name) else {
                    let shown: String = name.chars().take(40).collect();
                    return Err(Error::new("a pinned weight cannot be read")
                        .at(path)
                        .expected("NEURON:INPUT, two numbers from 0, such as 0:3")
                        .got(format_args!("{shown:?} in line {line}"))
                        .help(
                            "name weights one in a line or with commas between them; # begins a \
                             comment",
                        ));
                };
                named.push(Named { neuron, input, place: Some((at, line)) });
            }
        }
        if named.is_empty() {
            return Err(Error::new("the file names no weight to pin")
                .at(path)
                .expected("names NEURON:INPUT, such as 0:3")
                .got(if bytes.is_empty() { "an empty file" } else { "blank lines and comments" })
                .help("leave the file out, or name weights in it"));
        }
        self.files.push(path.to_owned());
        self.named.append(&mut named);
        Ok(())
    }

    /// The flat indices of all weights that are named, for networks of so many neurons and inputs.
    ///
    /// # Errors
    /// A neuron or an input that there is not, or a weight that is named twice; with the line of
    /// the name.
    pub fn flat(&self, hidden: usize, inputs: usize) -> Result<Vec<u32>> {
        for named in &self.named {
            let what = match named {
                named if named.neuron >= hidden => "a neuron",
                named if named.input >= inputs => "an input",
                _ => continue,
            };
            return Err(Error::new(format!("a pinned weight is from {what} that does not exist"))
                .expected(format_args!(
                    "--must-keep NEURON:INPUT with a neuron below {hidden} and \
                     an input below {inputs}"
                ))
                .got(self.name(named))
                .help(
                    "neurons are counted from 0 up to --hidden, inputs from 0 in the order of \
                     the columns, without the labels",
                ));
        }
        let name = |named: &Named| (named.neuron, named.input);
        let mut all: Vec<&Named> = self.named.iter().collect();
        // Stable, so that the first of two that are the same comes first.
        all.sort_by_key(|named| name(named));
        let Some(pair) = all.windows(2).find(|pair| name(pair[0]) == name(pair[1])) else {
            // Sizes that a run takes are counted in 32 bits.
            let flat = |named: &Named| named.neuron.wrapping_mul(inputs).wrapping_add(named.input);
            return Ok(all.into_iter().map(|named| flat(named) as u32).collect());
        };
        let [first, second] = [pair[0], pair[1]];
        let got = match (first.place, second.place) {
            (None, None) => format!("{} more than once", self.name(first)),
            (None, _) => format!("{}, and on the command line", self.name(second)),
            (_, None) => format!("{}, and on the command line", self.name(first)),
            (Some((file, line)), Some((other, _))) if file == other => {
                format!("{}, and in line {line}", self.name(second))
            }
            (Some((file, line)), Some(_)) => {
                let of = self.files[file].display();
                format!("{}, and in line {line} of {of}", self.name(second))
            }
        };
        Err(Error::new("a pinned weight is named twice")
            .expected("every weight once in --must-keep")
            .got(got)
            .help("leave the second one out: it would count twice in --nnz"))
    }

    /// A weight as it is named, and where.
    fn name(&self, named: &Named) -> String {
        let Named { neuron, input, place } = named;
        match place {
            None => format!("{neuron}:{input}"),
            Some((file, line)) => {
                format!("{neuron}:{input} in line {line} of {}", self.files[*file].display())
            }
        }
    }
}

impl FromIterator<[usize; 2]> for PinnedWeights {
    /// Of neurons and inputs.
    fn from_iter<I: IntoIterator<Item = [usize; 2]>>(names: I) -> Self {
        let mut list = Self::NONE;
        names.into_iter().for_each(|[neuron, input]| list.add(neuron, input));
        list
    }
}

/// `NEURON:INPUT` as two numbers.
pub(crate) fn parse_weight(text: &str) -> Option<(usize, usize)> {
    let (neuron, input) = text.split_once(':')?;
    Some((neuron.trim().parse().ok()?, input.trim().parse().ok()?))
}

/// A pinned weight in a report: its name and its value in the model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PinnedWeight {
    /// The neuron, by the number that it has in the run.
    pub neuron: usize,
    /// The input.
    pub input: usize,
    /// The weight in the model, for one output with the sign of the neuron; 0 where it says
    /// nothing, and where a run that was ended did not come to it.
    pub value: f32,
}

/// Pinned weights as flat indices, and what they came out as in a network.
pub(crate) fn report(pinned: &[u32], network: &SparseNetwork) -> Vec<PinnedWeight> {
    let SparseNetwork { index, value, inputs, .. } = network;
    let found = |j: &u32| index.binary_search(j).ok().and_then(|at| value.get(at)).copied();
    let weight = |j: &u32| {
        let (neuron, input) = (*j as usize / inputs, *j as usize % inputs);
        PinnedWeight { neuron, input, value: found(j).unwrap_or(0.0) }
    };
    pinned.iter().map(weight).collect()
}

/// Checks that there are not too many for a run, where `outputs` says whether weights to outputs
/// count in s too.
pub(crate) fn check(pinned: &[u32], dims: &Dims, outputs: bool) -> Result<()> {
    let most = dims.nnz - usize::from(outputs);
    if pinned.len() <= most {
        return Ok(());
    }
    let why = if outputs { ", of which one is left for a weight to an output" } else { "" };
    Err(Error::new("there are more pinned weights than nonzeros")
        .expected(format_args!(
            "at most {most} in --must-keep: they count in --nnz {}{why}",
            dims.nnz
        ))
        .got(pinned.len())
        .help("raise --nnz, or name fewer weights"))
}
