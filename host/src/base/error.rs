//! One error for everything a user can meet.

use std::fmt;
use std::path::{Path, PathBuf};

/// `Result` with the host's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What failed, where, what was expected, what was there, and what to do.
///
/// ```
/// use tamis_host::Error;
/// let error = Error::new("not an idx file")
///     .at("train.gz")
///     .expected("magic 0x00000803")
///     .got("0x89504e47")
///     .help("pass a file in idx format, or .npy, .npz or .csv");
/// assert!(error.to_string().contains("train.gz"));
/// ```
#[derive(Debug)]
pub struct Error(Box<Report>);

/// Behind a pointer, so that a `Result` stays small.
#[derive(Debug, Default)]
struct Report {
    what: String,
    place: Option<PathBuf>,
    expected: Option<String>,
    got: Option<String>,
    help: Option<String>,
    end: End,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Kinds of errors that a caller may want to tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum End {
    #[default]
    Failed,
    Interrupted,
    OverLimit,
    Usage,
}

impl Error {
    /// An error that says what failed.
    pub fn new(what: impl Into<String>) -> Self {
        Self(Box::new(Report { what: what.into(), ..Report::default() }))
    }

    /// That of a run which was stopped before there was anything to keep.
    #[must_use]
    pub fn interrupted() -> Self {
        Self::interrupted_in(
            "before the first step was done: nothing was reached, nothing is saved",
        )
    }

    pub(crate) fn interrupted_in(place: impl fmt::Display) -> Self {
        Self::new(format!("ended {place}"))
            .help("give it more time, or ask for smaller --hidden, --nnz or --batch")
            .ending(End::Interrupted)
    }

    fn ending(mut self, end: End) -> Self {
        self.0.end = end;
        self
    }

    /// Whether the work was ended on request, and nothing went wrong.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.0.end == End::Interrupted
    }

    /// Nothing failed, but something is more than it may be, or other than it should be.
    pub(crate) fn over_limit(what: impl Into<String>) -> Self {
        Self::new(what).ending(End::OverLimit)
    }

    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::new(what).ending(End::Usage)
    }

    /// Whether settings do not go together, found before any work was done.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        self.0.end == End::Usage
    }

    /// Whether something is more than it may be, or other than it should be, and nothing failed.
    #[must_use]
    pub fn is_over_limit(&self) -> bool {
        self.0.end == End::OverLimit
    }

    /// A file operation that the system refused; `doing` reads like "cannot read".
    #[must_use]
    pub fn io(doing: &str, path: &Path, source: std::io::Error) -> Self {
        Self::new(doing).at(path).source(source)
    }

    /// Says of which step of the work the error is.
    #[must_use]
    pub(crate) fn of(mut self, step: impl fmt::Display) -> Self {
        self.0.what = format!("{step}: {}", self.0.what);
        self
    }

    /// Where: the file or folder.
    #[must_use]
    pub fn at(mut self, place: impl AsRef<Path>) -> Self {
        self.0.place = Some(place.as_ref().to_owned());
        self
    }

    /// What should have been there.
    #[must_use]
    pub fn expected(mut self, expected: impl fmt::Display) -> Self {
        self.0.expected = Some(expected.to_string());
        self
    }

    /// What was there.
    #[must_use]
    pub fn got(mut self, got: impl fmt::Display) -> Self {
        self.0.got = Some(got.to_string());
        self
    }

    /// What should have been there, and what was.
    #[must_use]
    pub fn mismatch(self, expected: impl fmt::Display, got: impl fmt::Display) -> Self {
        self.expected(expected).got(got)
    }

    /// What the user can do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    /// The error underneath.
    #[must_use]
    pub fn source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }
}

/// Refuses a setting that is out of bounds; `expected` names its flag.
pub(crate) fn check_setting(
    holds: bool,
    expected: impl fmt::Display,
    got: impl fmt::Display,
    help: &str,
) -> Result<()> {
    if holds {
        return Ok(());
    }
    Err(Error::new("a setting is out of bounds").expected(expected).got(got).help(help))
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { what, place, expected, got, help, source, .. } = &*self.0;
        f.write_str(what)?;
        if let Some(place) = place {
            write!(f, ": {}", place.display())?;
        }
        if let Some(source) = source {
            write!(f, ": {source}")?;
        }
        for (name, text) in [("expected", expected), ("got", got), ("help", help)] {
            if let Some(text) = text {
                write!(f, "\n{name:>10}: {text}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|e| e as _)
    }
}

#[cfg(feature = "gpu")]
impl From<tamis_gpu::Error> for Error {
    fn from(error: tamis_gpu::Error) -> Self {
        Self::new(error.to_string()).help(error.help())
    }
}

impl From<tamis::Error> for Error {
    fn from(error: tamis::Error) -> Self {
        match error {
            tamis::Error::Stopped => Self::interrupted(),
            tamis::Error::Diverged { step } => Self::new(format!("diverged at step {step}"))
                .expected("numbers within the range of 32-bit floats")
                .got("sums or steps beyond it")
                .help(
                    "scale inputs and labels to about 1, or choose --step normalised or a \
                    smaller step",
                ),
            error => Self::new(error.to_string()),
        }
    }
}
