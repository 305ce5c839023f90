//! Compressed files, and how far they may expand.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

use super::source::{TooFar, Trailing, expansion_limit};

/// The members of a gzip file one after the other, as `gzip -d` gives them; what follows the last
/// is an error of its own.
pub(super) struct Members<R> {
    member: Option<GzDecoder<Counted<R>>>,
    given: u64,
    limited: bool,
}

impl<R: BufRead> Members<R> {
    pub(super) fn new(reader: R) -> Self {
        let reader = Counted { reader, taken: 0 };
        Self { member: Some(GzDecoder::new(reader)), given: 0, limited: false }
    }

    /// Ends with [`TooFar`] as soon as what was read has expanded too far: text does not say how
    /// long it is.
    pub(super) fn limited(self) -> Self {
        Self { limited: true, ..self }
    }

    fn check(&mut self, n: usize, taken: u64) -> io::Result<usize> {
        self.given += n as u64;
        let limit = expansion_limit(taken);
        if self.limited && self.given > limit {
            return Err(io::Error::other(TooFar { limit, bytes: self.given }));
        }
        Ok(n)
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let n = member.read(buffer)?;
            if n > 0 || buffer.is_empty() {
                let taken = member.get_ref().taken;
                return self.check(n, taken);
            }
            let rest = member.get_mut().fill_buf()?;
            match rest {
                [] => return Ok(0),
                [0x1f] | [0x1f, 0x8b, ..] => {
                    self.member =
                        self.member.take().map(|member| GzDecoder::new(member.into_inner()));
                }
                _ => return Err(io::Error::other(Trailing(rest[..rest.len().min(8)].to_vec()))),
            }
        }
        Ok(0)
    }
}

struct Counted<R> {
    reader: R,
    taken: u64,
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.reader.fill_buf()
    }

    fn consume(&mut self, n: usize) {
        self.taken += n as u64;
        self.reader.consume(n);
    }
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.reader.read(buffer)?;
        self.taken += n as u64;
        Ok(n)
    }
}
