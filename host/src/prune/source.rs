//! What is pruned, and the rows for it.

use std::io::Read as _;
use std::path::Path;

use super::network::LastInput;
use crate::base::file;
use crate::convert::{ImportOptions, Spread, import};
use crate::data::{Matrix, Problem};
use crate::model::ModelFile;
use crate::{Error, Result};

/// A network to prune.
#[derive(Debug, Clone)]
pub struct PruneSource {
    /// The network.
    pub model: ModelFile,
    /// What its last input is.
    pub last: LastInput,
    /// Whether its weights are for bytes as fractions of 256, as those of other programs.
    pub is_imported: bool,
    /// How far each input spreads, where the file of another program scales them: units of a network without
    /// rows.
    pub spreads: Option<Vec<Spread>>,
}

impl PruneSource {
    /// A model of tamis.
    #[must_use]
    pub const fn of(model: ModelFile) -> Self {
        Self { model, last: LastInput::Unknown, is_imported: false, spreads: None }
    }

    /// Reads a `.tamis` model, or a network of another program as [`import`] does.
    ///
    /// # Errors
    /// As [`ModelFile::load`] and [`import`].
    pub fn load(path: &Path, options: &ImportOptions) -> Result<Self> {
        let mut head = Vec::new();
        let (file, _) = file::open(path)?;
        let read = file.take(4).read_to_end(&mut head);
        read.map_err(|error| Error::io("cannot read", path, error))?;
        if head == *b"\x89TAM" {
            return Ok(Self::of(ModelFile::load(path)?));
        }
        let outcome = import(path, options)?;
        let model = ModelFile::from_bytes(&outcome.model)?.named(path);
        let spreads = outcome.spreads;
        Ok(Self { model, last: LastInput::Varies, is_imported: true, spreads })
    }
}

impl PruneRows {
    /// Whether these are rows of bytes.
    #[must_use]
    pub const fn are_bytes(&self) -> bool {
        match self {
            Self::None => false,
            Self::Samples(data) => data.is_bytes(),
            Self::Labelled { train, .. } => train.data.is_bytes(),
        }
    }
}

/// Rows for pruning.
#[derive(Debug, Clone, PartialEq)]
pub enum PruneRows {
    /// None: nothing is trained or scored.
    None,
    /// Rows without labels, for the method `greedy`.
    Samples(Matrix),
    /// Labelled rows.
    Labelled {
        /// Rows to train on.
        train: Problem,
        /// Rows to score on.
        test: Problem,
        /// What these are: `test` or `validation`.
        scored_on: &'static str,
    },
}
