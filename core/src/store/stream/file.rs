//! A model file in flash.

use super::{Layer, Layers, push};
use crate::base::error::{self, Error, Result};
use crate::infer::quantised::Scales;
use crate::store::wire::{CHECKSUM, CRC, HEADER, PIECE, Section, Sections, Task};
use embedded_storage::nor_flash::ReadNorFlash;

/// Where a file is in the flash.
#[derive(Debug)]
pub(super) struct File<R> {
    source: R,
    start: u32,
    len: usize,
    checksum: u32,
}

/// What a file says of its structure.
#[derive(Debug, Default)]
pub(super) struct Structure {
    pub(super) layers: Layers,
    pub(super) task: Option<Task>,
    pub(super) scales: Scales,
}

impl<R: ReadNorFlash> File<R> {
    /// Every read starts and ends at a multiple of this.
    const UNIT: usize = {
        assert!(
            4_usize.is_multiple_of(R::READ_SIZE),
            "flash that is read in units of at most 4 bytes"
        );
        4
    };

    /// Checks all of a file but what its arrays hold.
    pub(super) fn open(
        source: R,
        start: u32,
        buffer: &mut [u32],
        is_integers: bool,
    ) -> Result<(Self, Structure), R::Error> {
        error::length(
            "start of the model, at a multiple of 4",
            start as usize,
            start as usize / 4 * 4,
        )?;
        let mut file = Self { source, start, len: HEADER, checksum: 0 };
        file.check_end()?;
        let mut head = [0; HEADER];
        file.read(0, &mut head)?;
        let (mut sections, shape) = Sections::new(&head, is_integers).map_err(Error::widen)?;
        let [len, checksum, inputs, outputs] = shape;
        (file.len, file.checksum) = (len as usize, checksum);
        file.check_end()?;
        file.check(buffer)?;
        let mut found = Structure::default();
        while let Some((at, len)) = sections.place() {
            let mut piece = [0; PIECE];
            let piece = piece.get_mut(..len).unwrap_or_default();
            file.read(at, piece)?;
            match sections.next(piece).map_err(Error::widen)? {
                Section::Layer(head, at) => {
                    push(&mut found.layers, Layer { head, at }).map_err(Error::widen)?;
                }
                Section::Scales(scales) => found.scales = scales,
                Section::Other => {}
            }
        }
        sections.check().map_err(Error::widen)?;
        super::check_chain(&found.layers, [inputs, outputs]).map_err(Error::widen)?;
        found.task = sections.task;
        if let Some(task) = found.task {
            task.check(outputs as usize).map_err(Error::widen)?;
        }
        Ok((file, found))
    }

    /// Checks that the file ends within the flash.
    fn check_end(&self) -> Result<(), R::Error> {
        let end = self.len.saturating_add(self.start as usize);
        error::range(
            "end of the model in flash",
            end,
            HEADER,
            self.source.capacity().min(u32::MAX as usize),
        )
    }

    /// Reads whole words at an offset in the file.
    pub(super) fn read(&mut self, at: usize, out: &mut [u8]) -> Result<(), R::Error> {
        error::length("place in the model, at a word", at % Self::UNIT, 0)?;
        self.source.read(self.start.saturating_add(at as u32), out).map_err(Error::Source)
    }

    /// Checks the checksum.
    pub(super) fn check(&mut self, buffer: &mut [u32]) -> Result<(), R::Error> {
        super::check_buffer(buffer)?;
        let (mut digest, mut at) = (CRC.digest(), 0);
        while at < self.len {
            let most = if at < CHECKSUM.start { CHECKSUM.start - at } else { self.len - at };
            let buffer: &mut [u8] = bytemuck::cast_slice_mut(buffer);
            let most = most.min(buffer.len());
            let piece = buffer.get_mut(..most).unwrap_or_default();
            self.read(at, piece)?;
            digest.update(piece);
            at += piece.len();
            if at == CHECKSUM.start {
                at = CHECKSUM.end;
            }
        }
        let (expected, got) = (digest.finalize(), self.checksum);
        if expected == got {
            Ok(())
        } else {
            Err(Error::Format { what: "checksum", at: 12, expected, got })
        }
    }

    pub(super) fn release(self) -> R {
        self.source
    }
}
