//! How much flash an image takes.

/// Bytes that a programmer would write: allocated sections with contents. None unless a little-endian 32-bit ELF.
pub(crate) fn flash_bytes(elf: &[u8]) -> Option<u64> {
    const ALLOCATED: u32 = 2;
    const NO_CONTENTS: u32 = 8;
    if !elf.starts_with(b"\x7fELF\x01\x01") {
        return None;
    }
    let (table, entry, count) = (word(elf, 0x20)?, half(elf, 0x2e)?, half(elf, 0x30)?);
    let mut total = 0;
    for i in 0..usize::from(count) {
        let at = (table as usize).checked_add(i * usize::from(entry))?;
        let (kind, flags, size) = (word(elf, at + 4)?, word(elf, at + 8)?, word(elf, at + 20)?);
        if flags & ALLOCATED != 0 && kind != NO_CONTENTS {
            total += u64::from(size);
        }
    }
    Some(total)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header and a table of sections, each (kind, flags, size).
    fn image(sections: &[(u32, u32, u32)]) -> Vec<u8> {
        let mut elf = vec![0; 52];
        elf[..6].copy_from_slice(b"\x7fELF\x01\x01");
        elf[0x20] = 52;
        elf[0x2e] = 40;
        elf[0x30] = sections.len() as u8;
        for &(kind, flags, size) in sections {
            let words = [0, kind, flags, 0, 0, size, 0, 0, 0, 0];
            elf.extend(words.iter().flat_map(|word: &u32| word.to_le_bytes()));
        }
        elf
    }

    #[test]
    fn code_and_initial_data_count_but_not_zeroed_memory_or_debug_information() {
        let elf = image(&[(0, 0, 0), (1, 6, 1000), (1, 3, 20), (8, 3, 4096), (1, 0, 70_000)]);
        assert_eq!(flash_bytes(&elf), Some(1020));
        assert_eq!(flash_bytes(&elf[..elf.len() - 17]), None);
        assert_eq!(flash_bytes(b"not an image"), None);
    }
}
