//! What a file of a mask or of weights is, by its name.

use std::path::Path;

use crate::{Error, Result};

/// Form of a file of arrays, by the ending of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Npz,
    Safetensors,
    Tamis,
}

impl Form {
    /// That of a file of this name.
    ///
    /// # Errors
    /// An ending that says no form.
    pub(super) fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("npz") => Ok(Self::Npz),
            Some("safetensors") => Ok(Self::Safetensors),
            Some("tamis") => Ok(Self::Tamis),
            ending => Err(Error::new("the file's name does not say its format")
                .at(path)
                .mismatch(".npz, .safetensors or .tamis", ending.unwrap_or("no ending"))
                .help("name it mask.npz, or mask.safetensors for PyTorch")),
        }
    }
}
