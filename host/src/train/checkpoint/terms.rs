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
    pub(crate) fn count(name: &'static str, value: impl TryInto<u64>) -> Self {
        Self { name, value: value.try_into().unwrap_or(u64::MAX), shown: Shown::Count }
    }

    pub(crate) fn float(name: &'static str, value: f32) -> Self {
        Self { name, value: value.to_bits().into(), shown: Shown::Float }
    }

    /// One of a list of names.
    pub(crate) fn name(name: &'static str, all: &'static [&'static str], at: usize) -> Self {
        Self { name, value: at as u64, shown: Shown::Name(all) }
    }

    /// Pinned weights: how many, and which.
    pub(crate) fn pinned(list: &[u32]) -> [Self; 2] {
        let which = CRC_64.checksum(bytemuck::cast_slice(list));
        [
            Self::count("weights of --must-keep", list.len()),
            Self::checksum("checksum of the weights of --must-keep", which),
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
                all.get(value as usize).map_or_else(|| value.to_string(), |&name| name.into())
            }
        }
    }
}

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
