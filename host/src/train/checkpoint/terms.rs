//! What a run is bound to: two runs of one recipe with the same terms have the same bits.

use crc::{CRC_64_XZ, Crc, Table};

use crate::{Error, Result};

/// The checksum of data.
pub(crate) static CRC_64: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_XZ);

/// A size, a setting or a checksum, in the words of the command line where it has some.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Term {
    name: &'static str,
    value: u64,
    shown: Shown,
}

/// How people know a value.
#[derive(Debug, Clone, Copy)]
enum Shown {
    Count,
    /// The bits of a float.
    Float,
    Checksum,
    /// A place in a list.
    Name(&'static [&'static str]),
}

impl Term {
    /// A count whose value may be beyond a machine's sizes.
    pub(crate) const fn seed(value: u64) -> Self {
        Self { name: "--seed", value, shown: Shown::Count }
    }

    pub(crate) fn count(name: &'static str, value: usize) -> Self {
        Self { name, value: value as u64, shown: Shown::Count }
    }

    pub(crate) fn float(name: &'static str, value: f32) -> Self {
        Self { name, value: value.to_bits().into(), shown: Shown::Float }
    }

    pub(crate) fn name(name: &'static str, all: &'static [&'static str], one: &str) -> Self {
        let value = all.iter().position(|other| *other == one).map_or(u64::MAX, |at| at as u64);
        Self { name, value, shown: Shown::Name(all) }
    }

    /// A list of weights: how many, and which.
    pub(crate) fn weights(names: [&'static str; 2], list: &[u32]) -> [Self; 2] {
        let [count, which] = names;
        [
            Self::count(count, list.len()),
            Self::checksum(which, CRC_64.checksum(bytemuck::cast_slice(list))),
        ]
    }

    pub(crate) const fn checksum(name: &'static str, value: u64) -> Self {
        Self { name, value, shown: Shown::Checksum }
    }

    pub(crate) const fn to_bytes(self) -> [u8; 8] {
        self.value.to_le_bytes()
    }

    fn show(&self, value: u64) -> String {
        match self.shown {
            Shown::Count => value.to_string(),
            Shown::Float => f32::from_bits(value as u32).to_string(),
            Shown::Checksum => format!("{value:016x}"),
            Shown::Name(all) => {
                match usize::try_from(value).ok().and_then(|value| all.get(value)) {
                    Some(name) => (*name).to_owned(),
                    None => value.to_string(),
                }
            }
        }
    }
}

/// Names of the terms of weights that must be kept.
pub(crate) const MUST_KEEP: [&str; 2] =
    ["weights of --must-keep", "checksum of the weights of --must-keep"];

/// Terms that all recipes have.
pub(crate) const COMMON: usize = 11;

/// Checks that the terms in `bytes` are these.
pub(crate) fn check(terms: &[Term], bytes: &[u8]) -> Result<()> {
    let stored = bytes.chunks_exact(8).map(|term| term.try_into().map_or(0, u64::from_le_bytes));
    for (own, stored) in terms.iter().zip(stored) {
        if own.value != stored {
            return Err(Error::new(
                "the checkpoint is of a run on other data or with other settings",
            )
            .expected(format_args!("{}: {}, as the run began", own.name, own.show(stored)))
            .got(own.show(own.value))
            .help("resume with the same data and settings, or name another file to start anew"));
        }
    }
    Ok(())
}
