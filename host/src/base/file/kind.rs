//! What an output holds, and whether a file that is there already may be replaced by it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::{Error, Result};

/// What an output holds. A file that is there already is replaced only if it is of the same kind,
/// by its first bytes or by the ending of its name; or if it is empty.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// What it is called.
    name: &'static str,
    endings: &'static [&'static str],
    /// First bytes.
    heads: &'static [&'static [u8]],
}

impl Kind {
    const fn new(
        name: &'static str,
        endings: &'static [&'static str],
        heads: &'static [&'static [u8]],
    ) -> Self {
        Self { name, endings, heads }
    }

    /// A `.tamis` model.
    pub const MODEL: Self = Self::new("a model", &["tamis"], &[b"\x89TAM"]);
    /// An SVG picture.
    pub const PICTURE: Self = Self::new("an SVG picture", &["svg"], &[b"<svg"]);
    /// The log of a run, in JSON lines. The ending is that of other data, too.
    pub const LOG: Self = Self::new("the log of a run", &[], &[b"{\"step\":", b"{\"result\":"]);
    /// The checkpoint of a run.
    pub const CHECKPOINT: Self = Self::new("a checkpoint", &[], &[b"tamis-"]);
    /// An array.
    pub const NPY: Self = Self::new("an NPY array", &["npy"], &[b"\x93NUMPY"]);
    /// An archive of arrays.
    pub const NPZ: Self = Self::new("an NPZ archive", &["npz"], &[b"PK\x03\x04"]);
    /// A table.
    pub const CSV: Self = Self::new("a CSV table", &["csv"], &[]);
    /// What layers give on rows.
    pub const TRACE: Self = Self::new("a trace", &[], &[b"@tamis"]);
    /// Source text of C.
    pub const C: Self = Self::new("source text of C", &["c", "h"], &[]);
    /// Source text of Rust.
    pub const RUST: Self = Self::new("source text of Rust", &["rs"], &[b"//! A model of "]);
    /// An ONNX graph.
    pub const ONNX: Self = Self::new("an ONNX graph", &["onnx"], &[]);
    /// A safetensors file.
    pub const SAFETENSORS: Self = Self::new("a safetensors file", &["safetensors"], &[]);

    /// The same, known by its first bytes alone: for names that nobody has chosen.
    #[must_use]
    pub(crate) const fn by_content(self) -> Self {
        Self { endings: &[], ..self }
    }

    /// A table that begins so.
    pub(crate) const fn table(heads: &'static [&'static [u8]]) -> Self {
        Self::new("a table that this command has made", &[], heads)
    }

    /// Refuses to replace the plain file at `path` if it is of another kind.
    pub(super) fn check(self, path: &Path) -> Result<()> {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("");
        if self.endings.iter().any(|own| own.eq_ignore_ascii_case(ending)) {
            return Ok(());
        }
        let mut head = Vec::new();
        let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
        let is_own = head.is_empty() || self.heads.iter().any(|start| head.starts_with(start));
        if read.is_ok() && is_own {
            return Ok(());
        }
        Err(Error::new("a file of another kind would be overwritten")
            .at(path)
            .mismatch(format_args!("{}, or a name that is free", self.name), "something else")
            .help("choose another name, or remove the file first if it is not needed"))
    }
}

const HEAD: u64 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_only_replaced_by_its_own_kind() {
        let folder = tempfile::tempdir().unwrap();
        for (name, content, kind, may) in [
            ("notes.txt", "notes", Kind::MODEL, false),
            ("old.tamis", "of another version", Kind::MODEL, true),
            ("best", "\u{89}TAM", Kind::MODEL, false), // UTF-8, not the magic
            ("thesis.csv", "a,b\n1,2\n", Kind::PICTURE, false),
            ("plot", "<svg xmlns=", Kind::PICTURE, true),
            ("rows.jsonl", "{\"user\":1}", Kind::LOG, false),
            ("rows.jsonl", "{\"step\":1}", Kind::LOG, true),
            ("PREDICTED.CSV", "1\n2\n", Kind::CSV, true),
            ("new.txt", "", Kind::MODEL, true),
            ("model.c", "int main(void)", Kind::RUST, false),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            assert_eq!(kind.check(&path).is_ok(), may, "{name}");
        }
    }
}
