//! How much flash an image takes.

/// Bytes that a programmer would write: allocated sections with contents. None unless a
/// little-endian 32-bit ELF.
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

/// Bytes of a section by its name. None unless a little-endian 32-bit ELF that has it.
pub(crate) fn section_bytes(elf: &[u8], wanted: &str) -> Option<u64> {
    if !elf.starts_with(b"\x7fELF\x01\x01") {
        return None;
    }
    let (table, entry, count) = (word(elf, 0x20)?, half(elf, 0x2e)?, half(elf, 0x30)?);
    let header = |i: u16| (table as usize).checked_add(usize::from(i) * usize::from(entry));
    let names = elf.get(word(elf, header(half(elf, 0x32)?)? + 16)? as usize..)?;
    (0..count).filter_map(header).find_map(|at| {
        let name = names.get(word(elf, at)? as usize..)?.split(|&byte| byte == 0).next()?;
        (name == wanted.as_bytes()).then(|| word(elf, at + 20).map(u64::from))?
    })
}

/// The names of all symbols. None unless a little-endian 32-bit ELF with a table of them.
pub(crate) fn symbols(elf: &[u8]) -> Option<Vec<String>> {
    Some(table(elf)?.into_iter().map(|(name, _)| name).collect())
}

/// The address of a symbol.
pub(crate) fn address(elf: &[u8], name: &str) -> Option<u32> {
    table(elf)?.into_iter().find(|(symbol, _)| symbol == name).map(|(_, address)| address)
}

/// Names and values of all symbols.
fn table(elf: &[u8]) -> Option<Vec<(String, u32)>> {
    const SYMBOLS: u32 = 2;
    if !elf.starts_with(b"\x7fELF\x01\x01") {
        return None;
    }
    let (table, entry, count) = (word(elf, 0x20)?, half(elf, 0x2e)?, half(elf, 0x30)?);
    let header = |i: usize| (table as usize).checked_add(i * usize::from(entry));
    let section =
        |at: usize| elf.get(word(elf, at + 16)? as usize..)?.get(..word(elf, at + 20)? as usize);
    let at = (0..usize::from(count))
        .filter_map(header)
        .find(|&at| word(elf, at + 4) == Some(SYMBOLS))?;
    let (symbols, names) = (section(at)?, section(header(word(elf, at + 24)? as usize)?)?);
    let name = |symbol: &[u8]| {
        let name = names.get(word(symbol, 0)? as usize..)?.split(|&byte| byte == 0).next()?;
        Some((String::from_utf8_lossy(name).into_owned(), word(symbol, 4)?))
    };
    Some(symbols.as_chunks::<16>().0.iter().filter_map(|symbol| name(symbol)).collect())
}

/// Whether a symbol is a routine for floats of a core without a float unit: of Arm's run-time
/// interface or of the compiler's library.
pub(crate) fn is_soft_float(name: &str) -> bool {
    if let Some(rest) = name.strip_prefix("__aeabi_") {
        let to = ["i2f", "i2d", "l2f", "l2d", "ui2f", "ui2d", "ul2f", "ul2d"];
        return rest.starts_with(['f', 'd'])
            || rest.starts_with("cf")
            || rest.starts_with("cd")
            || to.contains(&rest);
    }
    let inner =
        name.strip_prefix("__").unwrap_or_default().trim_end_matches(|c: char| c.is_ascii_digit());
    let kinds = ["sf", "df", "sfsi", "sfdi", "dfsi", "dfdi", "sfvfp", "dfvfp"];
    kinds.iter().any(|kind| inner.ends_with(kind))
        && inner.bytes().all(|byte| byte.is_ascii_lowercase())
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
    fn code_and_initial_data_count_without_zeroed_memory() {
        let elf = image(&[(0, 0, 0), (1, 6, 1000), (1, 3, 20), (8, 3, 4096), (1, 0, 70_000)]);
        assert_eq!(flash_bytes(&elf), Some(1020));
        assert_eq!(flash_bytes(&elf[..elf.len() - 17]), None);
        assert_eq!(flash_bytes(b"not an image"), None);
    }

    #[test]
    fn a_section_is_found_by_its_name() {
        let mut elf = image(&[(0, 0, 0), (1, 6, 1000), (3, 0, 0)]);
        let names = elf.len() as u32;
        elf[0x32] = 2;
        elf[52 + 40..][..4].copy_from_slice(&1_u32.to_le_bytes());
        elf[52 + 80 + 16..][..4].copy_from_slice(&names.to_le_bytes());
        elf.extend(b"\0.text\0");
        assert_eq!(section_bytes(&elf, ".text"), Some(1000));
        assert_eq!(section_bytes(&elf, ".rodata"), None);
        assert_eq!(section_bytes(b"not an image", ".text"), None);
    }

    #[test]
    fn float_routines_are_told_from_integer_ones() {
        for float in [
            "__aeabi_fmul",
            "__aeabi_dadd",
            "__aeabi_cfcmple",
            "__aeabi_ui2f",
            "__mulsf3",
            "__adddf3",
            "__fixunssfsi",
            "__floatsisf",
        ] {
            assert!(is_soft_float(float), "{float}");
        }
        for integer in [
            "__aeabi_lmul",
            "__aeabi_uidiv",
            "__aeabi_memcpy",
            "__aeabi_llsr",
            "__udivsi3",
            "__muldi3",
            "main",
            "",
        ] {
            assert!(!is_soft_float(integer), "{integer}");
        }
        assert_eq!(symbols(b"not an image"), None);
    }
}
