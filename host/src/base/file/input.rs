//! Reading whole files: plain ones alone, since a pipe or device could wait for ever.

use std::fs::{self, File};
use std::io::{self, ErrorKind, IsTerminal as _, Read, Seek as _};
use std::ops::Deref;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::{Error, Result};

/// The bytes of a file in memory that is aligned to four bytes, as views of 32-bit words need them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aligned {
    words: Vec<u32>,
    len: usize,
}

impl Aligned {
    /// A copy of `bytes`.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let mut aligned = Self::zeroed(bytes.len());
        aligned.bytes_mut().copy_from_slice(bytes);
        aligned
    }

    fn zeroed(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(4)], len }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.len]
    }
}

impl Deref for Aligned {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }
}

/// The largest file that [`read_aligned`] takes, in bytes.
pub const ALIGNED_LIMIT: u64 = 1 << 30;

/// Reads a whole file, such as a model, into memory that is aligned to four bytes.
///
/// # Errors
/// No such file, a folder, more than [`ALIGNED_LIMIT`] bytes, or a file that changes while it is
/// read.
///
/// ```
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("five");
/// std::fs::write(&path, [1, 2, 3, 4, 5]).unwrap();
/// let bytes = tamis_host::base::file::read_aligned(&path).unwrap();
/// assert_eq!(&bytes[..], [1, 2, 3, 4, 5]);
/// assert_eq!(bytes.as_ptr() as usize % 4, 0);
/// ```
pub fn read_aligned(path: impl AsRef<Path>) -> Result<Aligned> {
    let path = path.as_ref();
    let (mut file, len) = open(path)?;
    let too_large = check_len("file", len, ALIGNED_LIMIT, "is this the model file?");
    too_large.map_err(|error| error.at(path))?;
    let mut aligned = Aligned::zeroed(usize::try_from(len).unwrap_or(usize::MAX));
    file.read_exact(aligned.bytes_mut()).map_err(|e| Error::io("cannot read", path, e))?;
    match file.read(&mut [0]) {
        Ok(0) => Ok(aligned),
        Ok(_) => Err(Error::new("the file grew while it was read")
            .at(path)
            .help("wait until it is complete")),
        Err(e) => Err(Error::io("cannot read", path, e)),
    }
}

/// Refuses a file that is called `what` and has more than `most` bytes.
pub(crate) fn check_len(what: &str, len: u64, most: u64, help: &str) -> Result<()> {
    if len <= most {
        return Ok(());
    }
    Err(Error::new(format!("the {what} is too large"))
        .mismatch(format_args!("at most {most} bytes"), format_args!("{len} bytes"))
        .help(help))
}

/// Opens a plain file for reading: the file and its length in bytes.
pub(crate) fn open(path: &Path) -> Result<(File, u64)> {
    // Asked before opening, since opening a pipe would wait for its writer.
    let kind = fs::metadata(path).map_err(|e| cannot_open(path, e))?;
    let refused = |expected: &str, got: &str, help: &str| {
        Err(Error::new("cannot read").at(path).expected(expected).got(got).help(help))
    };
    if kind.is_dir() {
        return refused("a file", "a folder", "name a file in it");
    }
    if !kind.is_file() {
        return refused("a plain file", "a pipe or device", "save its output to a file first");
    }
    Ok((File::open(path).map_err(|e| cannot_open(path, e))?, kind.len()))
}

/// The most bytes that are taken from standard input.
const INPUT_LIMIT: u64 = 16 << 30;

/// Standard input as a file without a name, from its beginning: it is read to its end once, and can
/// then be read several times, one after the other.
///
/// # Errors
/// Nothing comes from it but a terminal, it cannot be read, or it has more than 16 GiB.
pub(crate) fn standard_input() -> Result<(File, u64)> {
    static SPOOLED: Mutex<Option<File>> = Mutex::new(None);
    let failed = |e| Error::io("cannot read standard input", Path::new("-"), e);
    let mut spooled = SPOOLED.lock().unwrap_or_else(PoisonError::into_inner);
    if spooled.is_none() {
        if io::stdin().is_terminal() {
            return Err(Error::new("there are no data on standard input")
                .mismatch("the output of another program", "a terminal")
                .help("pass the name of a file in place of -, or a pipe: cat t.csv | tamis …"));
        }
        let mut file = tempfile::tempfile().map_err(failed)?;
        let len = io::copy(&mut io::stdin().lock().take(INPUT_LIMIT + 1), &mut file);
        let len = len.map_err(failed)?;
        check_len("standard input", len, INPUT_LIMIT, "pass fewer rows at a time")?;
        *spooled = Some(file);
    }
    let file = spooled.as_ref().map(File::try_clone);
    let mut file = file.unwrap_or_else(tempfile::tempfile).map_err(failed)?;
    file.rewind().map_err(failed)?;
    let len = file.metadata().map_err(failed)?.len();
    Ok((file, len))
}

/// Opens the plain file `name` of a folder; links are followed within the folder only.
pub(crate) fn open_in(folder: &Path, name: &str) -> Result<(File, u64)> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let path = folder.join(name);
    let real = |path: &Path| fs::canonicalize(path).map_err(|e| cannot_open(path, e));
    let (place, home) = (real(&path)?, real(folder)?);
    if !place.starts_with(&home) {
        return Err(Error::new("a link leads out of the folder")
            .at(&path)
            .mismatch(format_args!("a file in {}", home.display()), place.display())
            .help("copy the file into the folder"));
    }
    open(&place)
}

pub(crate) fn read_text(path: &Path) -> Result<String> {
    let (file, _) = open(path)?;
    io::read_to_string(file.take(ALIGNED_LIMIT)).map_err(|e| Error::io("cannot read", path, e))
}

/// Whether there is anything of that name.
pub(crate) fn exists(path: &Path) -> Result<bool> {
    path.try_exists().map_err(|e| cannot_open(path, e))
}

fn cannot_open(path: &Path, e: io::Error) -> Error {
    let help = match e.kind() {
        ErrorKind::NotFound => "check the name and the folder it is in",
        ErrorKind::NotADirectory => "a folder of the path is a file: check the folders",
        ErrorKind::PermissionDenied => "ask for the right to read it, or run as its owner",
        _ => return Error::io("cannot open", path, e),
    };
    Error::io("cannot open", path, e).help(help)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_within_the_folder_only() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("model");
        fs::create_dir(&folder).unwrap();
        fs::write(parent.path().join("secret"), "secret").unwrap();
        fs::write(folder.join("weights"), "weights").unwrap();
        symlink("weights", folder.join("inside")).unwrap();
        symlink("../secret", folder.join("outside")).unwrap();
        symlink(&folder, parent.path().join("linked")).unwrap();
        for home in [folder.clone(), parent.path().join("linked")] {
            assert_eq!(open_in(&home, "weights").unwrap().1, 7);
            assert_eq!(open_in(&home, "inside").unwrap().1, 7);
            let error = open_in(&home, "outside").unwrap_err().to_string();
            assert!(error.contains("a link leads out of the folder"), "{error}");
        }
        assert!(open_in(&folder, "missing").is_err());
    }
}
