//! One error for everything a user can meet: what failed, where, what was expected, what was there, what to do.

use std::fmt;
use std::path::{Path, PathBuf};

/// `Result` with the host's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, in the words the user needs.
///
/// ```
/// use tamis_host::Error;
/// let error = Error::new("not an idx file").at("train.gz").expected("magic 0x00000803").got("0x89504e47")
///     .help("pass a file in idx format, or .npy, .npz or .csv");
/// assert!(error.to_string().contains("train.gz"));
/// ```
#[derive(Debug)]
pub struct Error {
    what: String,
    place: Option<PathBuf>,
    expected: Option<String>,
    got: Option<String>,
    help: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error that says what failed.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), place: None, expected: None, got: None, help: None, source: None }
    }

    /// A file operation that the system refused; `doing` reads like "cannot read".
    pub fn io(doing: &str, path: &Path, source: std::io::Error) -> Self {
        Self::new(doing).at(path).source(source)
    }

    /// Where: the file or folder.
    #[must_use]
    pub fn at(mut self, place: impl AsRef<Path>) -> Self {
        self.place = Some(place.as_ref().to_owned());
        self
    }

    /// What should have been there.
    #[must_use]
    pub fn expected(mut self, expected: impl fmt::Display) -> Self {
        self.expected = Some(expected.to_string());
        self
    }

    /// What was there.
    #[must_use]
    pub fn got(mut self, got: impl fmt::Display) -> Self {
        self.got = Some(got.to_string());
        self
    }

    /// What the user can do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The error underneath.
    #[must_use]
    pub fn source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(place) = &self.place {
            write!(f, ": {}", place.display())?;
        }
        if let Some(source) = &self.source {
            write!(f, ": {source}")?;
        }
        if let Some(expected) = &self.expected {
            write!(f, "\n  expected: {expected}")?;
        }
        if let Some(got) = &self.got {
            write!(f, "\n       got: {got}")?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n      help: {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|e| e as _)
    }
}

impl From<tamis::Error> for Error {
    fn from(error: tamis::Error) -> Self {
        Self::new(error.to_string())
    }
}
