//! Compressed files, and how far they may expand.

use std::io::{self, BufRead, Read, Take};

use flate2::bufread::GzDecoder;

use super::source::{expansion_limit, too_far, trailing};

/// The members of a gzip file one after the other, as `gzip -d` gives them; what follows the last
/// is an error of its own.
pub(super) struct Members<R> {
    /// What is taken of the reader, counted by what is left of [`u64::MAX`].
    member: Option<GzDecoder<Take<R>>>,
    given: u64,
    limited: bool,
}

impl<R: BufRead> Members<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { member: Some(GzDecoder::new(reader.take(u64::MAX))), given: 0, limited: false }
    }

    /// Ends as soon as what was read has expanded too far: text does not say how long it is.
    pub(super) fn limited(self) -> Self {
        Self { limited: true, ..self }
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let n = member.read(buffer)?;
            if n > 0 || buffer.is_empty() {
                self.given += n as u64;
                let limit = expansion_limit(u64::MAX - member.get_ref().limit());
                if self.limited && self.given > limit {
                    return Err(io::Error::other(too_far(limit, self.given)));
                }
                return Ok(n);
            }
            let rest = member.get_mut().fill_buf()?;
            match rest {
                [] => return Ok(0),
                [0x1f] | [0x1f, 0x8b, ..] => {
                    self.member =
                        self.member.take().map(|member| GzDecoder::new(member.into_inner()));
                }
                _ => return Err(io::Error::other(trailing(rest))),
            }
        }
        Ok(0)
    }
}
