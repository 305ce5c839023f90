//! Whole files or nothing: what is written appears under its name only when it is complete.
//!
//! A file is written beside its final place, flushed and synced to disk, then renamed over it; whatever goes wrong
//! before the rename leaves an existing file as it was and nothing else behind. Names that are not plain files
//! (`/dev/stdout`, a pipe) are written to directly, since renaming over them would replace the device.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

use crate::{Error, Result};

/// What a file is written through: buffered, and able to seek where the file is a plain one.
pub type Writer<'a> = BufWriter<&'a mut File>;

/// Writes the file at `path` with `fill`, all of it or none of it.
///
/// Links are followed, and the permissions of a file that was already there are kept.
///
/// # Errors
/// The folder is missing or may not be written to, `path` is a folder, the disk is full, or `fill` failed; then an
/// existing file is untouched and no other is left.
///
/// ```
/// use std::io::Write;
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("note.txt");
/// tamis_host::file::write(&path, |w| writeln!(w, "all of it")).unwrap();
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "all of it\n");
/// ```
pub fn write(path: impl AsRef<Path>, fill: impl FnOnce(&mut Writer<'_>) -> io::Result<()>) -> Result<()> {
    write_files(|files| files.write(path, fill))
}

/// Writes several files: all of them or none of them.
///
/// Plain files are kept under temporary names until `fill` returns `Ok`; devices and pipes take their bytes at once.
///
/// # Errors
/// As for [`write()`]; or `fill` failed. Then existing files are untouched and no others are left.
///
/// ```
/// use std::io::Write;
/// let folder = tempfile::tempdir().unwrap();
/// let (a, b) = (folder.path().join("a"), folder.path().join("missing/b"));
/// let both = tamis_host::file::write_files(|files| {
///     files.write(&a, |w| w.write_all(b"a"))?;
///     files.write(&b, |w| w.write_all(b"b"))
/// });
/// assert!(both.is_err() && !a.exists());
/// ```
pub fn write_files(fill: impl FnOnce(&mut Files) -> Result<()>) -> Result<()> {
    let mut files = Files::default();
    fill(&mut files)?;
    files.publish()
}

/// Files being written by [`write_files`].
#[derive(Debug, Default)]
pub struct Files {
    staged: Vec<Staged>,
}

impl Files {
    /// Writes the file at `path` with `fill`.
    ///
    /// # Errors
    /// As for [`write()`].
    pub fn write(
        &mut self,
        path: impl AsRef<Path>,
        fill: impl FnOnce(&mut Writer<'_>) -> io::Result<()>,
    ) -> Result<()> {
        let path = path.as_ref();
        match Target::of(path)? {
            Target::Device => fill_file(&mut open_device(path)?, fill, false).map_err(|e| refused(path, e)),
            Target::Plain(place) => {
                self.staged.push(Staged::new(&place, path, fill)?);
                Ok(())
            }
        }
    }

    fn publish(self) -> Result<()> {
        self.staged.into_iter().try_for_each(Staged::publish)
    }
}

/// Whether [`write()`] can write `path`, found out before the work that makes its content; nothing is left behind.
///
/// # Errors
/// The folder is missing or may not be written to, or `path` is a folder.
///
/// ```
/// let folder = tempfile::tempdir().unwrap();
/// assert!(tamis_host::file::check(folder.path().join("model.tamis")).is_ok());
/// assert!(tamis_host::file::check(folder.path().join("missing/model.tamis")).is_err());
/// ```
pub fn check(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    match Target::of(path)? {
        Target::Device => Ok(()),
        Target::Plain(place) => temporary_beside(&place).map(drop).map_err(|e| refused(path, e)),
    }
}

/// Whether `output` is none of the files that a run reads; each of `inputs` may name several, separated by commas, and
/// an array of an archive behind `#`.
///
/// # Errors
/// Names the input that would be overwritten.
pub fn check_distinct<'a>(output: &Path, inputs: impl IntoIterator<Item = &'a Path>) -> Result<()> {
    let Ok(output) = output.canonicalize() else { return Ok(()) };
    for input in inputs {
        let whole = input.to_string_lossy();
        let parts = whole.split(',').map(|part| part.split('#').next().unwrap_or(part));
        if parts.chain([whole.as_ref()]).any(|part| Path::new(part).canonicalize().is_ok_and(|p| p == output))
        {
            return Err(Error::new("the output is also an input")
                .at(input)
                .expected("a file that is not read")
                .help("choose another name for the output"));
        }
    }
    Ok(())
}

/// Whether [`write_folder`] can write into the folder `path`; nothing is left behind.
///
/// # Errors
/// The folder cannot be made or may not be written to.
pub fn check_folder(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let folder = Folder::new(path)?;
    temporary_beside(&folder.path.join("file")).map(drop).map_err(|e| refused(path, e))
}

/// Writes several files into the folder `path`, made if missing: all of them or none of them.
///
/// Every [`Folder::write`] is kept under a temporary name until `fill` returns `Ok`; files of the folder that are not
/// written again stay.
///
/// # Errors
/// As for [`write()`]; or `fill` failed. Then the files written so far are removed, and so is the folder if it was
/// made here.
///
/// ```
/// use std::io::Write;
/// let parent = tempfile::tempdir().unwrap();
/// let out = parent.path().join("results/first");
/// tamis_host::file::write_folder(&out, |folder| {
///     folder.write("a.txt", |w| w.write_all(b"a"))?;
///     folder.write("b.txt", |w| w.write_all(b"b"))
/// }).unwrap();
/// assert!(out.join("a.txt").exists() && out.join("b.txt").exists());
/// ```
pub fn write_folder(path: impl AsRef<Path>, fill: impl FnOnce(&mut Folder) -> Result<()>) -> Result<()> {
    let mut folder = Folder::new(path.as_ref())?;
    fill(&mut folder)?;
    folder.publish()
}

/// A folder being written by [`write_folder`].
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    files: Files,
    /// Folders made here, outermost first; removed again unless the work is published.
    made: Vec<PathBuf>,
}

impl Folder {
    /// Writes the file `name` of this folder with `fill`.
    ///
    /// # Errors
    /// As for [`write()`].
    pub fn write(&mut self, name: &str, fill: impl FnOnce(&mut Writer<'_>) -> io::Result<()>) -> Result<()> {
        let path = self.path.join(name);
        match Target::of(&path)? {
            Target::Device => Err(Error::new("cannot write over a device").at(&path)),
            Target::Plain(_) => self.files.write(path, fill),
        }
    }

    /// Where the files will be.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn new(path: &Path) -> Result<Self> {
        let mut folder = Self { path: path.to_owned(), files: Files::default(), made: Vec::new() };
        if !path.exists() {
            folder.made = missing_ancestors(path);
        }
        fs::create_dir_all(path).map_err(|e| match e.kind() {
            ErrorKind::AlreadyExists | ErrorKind::NotADirectory => Error::new("cannot make the folder")
                .at(path)
                .expected("a folder, or a name that is free")
                .got("a file of that name")
                .help("choose another folder, or move the file away"),
            _ => refused(path, e),
        })?;
        Ok(folder)
    }

    fn publish(mut self) -> Result<()> {
        std::mem::take(&mut self.files).publish()?;
        self.made.clear();
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.files.staged.clear();
        for folder in self.made.iter().rev() {
            // A folder that something else has filled meanwhile stays.
            let _ = fs::remove_dir(folder);
        }
    }
}

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
/// No such file, a folder, more than [`ALIGNED_LIMIT`] bytes, or a file that changes while it is read.
///
/// ```
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("five");
/// std::fs::write(&path, [1, 2, 3, 4, 5]).unwrap();
/// let bytes = tamis_host::file::read_aligned(&path).unwrap();
/// assert_eq!(&bytes[..], [1, 2, 3, 4, 5]);
/// assert_eq!(bytes.as_ptr() as usize % 4, 0);
/// ```
pub fn read_aligned(path: impl AsRef<Path>) -> Result<Aligned> {
    let path = path.as_ref();
    let (mut file, len) = open(path)?;
    if len > ALIGNED_LIMIT {
        return Err(Error::new("the file is too large")
            .at(path)
            .expected(format_args!("at most {ALIGNED_LIMIT} bytes"))
            .got(format_args!("{len} bytes"))
            .help("is this the model file?"));
    }
    let mut aligned = Aligned::zeroed(usize::try_from(len).unwrap_or(usize::MAX));
    file.read_exact(aligned.bytes_mut()).map_err(|e| Error::io("cannot read", path, e))?;
    match file.read(&mut [0]) {
        Ok(0) => Ok(aligned),
        Ok(_) => {
            Err(Error::new("the file grew while it was read").at(path).help("wait until it is complete"))
        }
        Err(e) => Err(Error::io("cannot read", path, e)),
    }
}

/// Opens a plain file for reading: the file and its length in bytes.
pub(crate) fn open(path: &Path) -> Result<(File, u64)> {
    // Asked before opening, since opening a pipe would wait for its writer.
    let kind = fs::metadata(path).map_err(|e| cannot_open(path, e))?;
    if kind.is_dir() {
        return Err(Error::new("cannot read")
            .at(path)
            .expected("a file")
            .got("a folder")
            .help("name a file in it"));
    }
    if !kind.is_file() {
        return Err(Error::new("cannot read")
            .at(path)
            .expected("a plain file")
            .got("a pipe or device")
            .help("save its output to a file first"));
    }
    Ok((File::open(path).map_err(|e| cannot_open(path, e))?, kind.len()))
}

/// Whether there is anything of that name.
pub(crate) fn exists(path: &Path) -> Result<bool> {
    path.try_exists().map_err(|e| cannot_open(path, e))
}

/// Longer than any file is being written.
pub(crate) const STALE: Duration = Duration::from_secs(3600);

/// Removes what killed programs have left half written in a folder, where it is older than `age`: [`STALE`], but for a folder
/// that one program has to itself. A best effort, since nobody reads such files.
pub(crate) fn sweep(folder: &Path, age: Duration) {
    let is_old = |entry: &fs::DirEntry| {
        let written = entry.metadata().and_then(|about| about.modified()).ok();
        written.and_then(|time| SystemTime::now().duration_since(time).ok()).is_some_and(|old| old >= age)
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(PARTIAL.0) && name.ends_with(PARTIAL.1) && is_old(&entry) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn cannot_open(path: &Path, e: io::Error) -> Error {
    let help = match e.kind() {
        ErrorKind::NotFound => "check the name and the folder it is in",
        ErrorKind::NotADirectory => "a part of the path is a file: check the folders",
        ErrorKind::PermissionDenied => "ask for the right to read it, or run as its owner",
        _ => return Error::io("cannot open", path, e),
    };
    Error::io("cannot open", path, e).help(help)
}

/// What is under the name of an output.
enum Target {
    /// A plain file, or nothing yet: where it is once links are followed.
    Plain(PathBuf),
    /// Something that takes bytes and must stay what it is.
    Device,
}

impl Target {
    fn of(path: &Path) -> Result<Self> {
        match fs::metadata(path) {
            Ok(there) if there.is_dir() => Err(Error::new("cannot write")
                .at(path)
                .expected("the name of a file")
                .got("a folder")
                .help("name a file in that folder")),
            Ok(there) if there.is_file() => {
                Ok(Self::Plain(fs::canonicalize(path).map_err(|e| refused(path, e))?))
            }
            Ok(_) => Ok(Self::Device),
            Err(_) if path.file_name().is_none() => Err(Error::new("cannot write")
                .at(path)
                .expected("the name of a file")
                .got("a path without one")
                .help("add a name, such as model.tamis")),
            Err(_) => Ok(Self::Plain(path.to_owned())),
        }
    }
}

/// A complete file under a temporary name, in the folder of its final place; removed if dropped.
#[derive(Debug)]
struct Staged {
    file: NamedTempFile,
    place: PathBuf,
}

impl Staged {
    /// `place` is where the file goes, `path` what the user calls it.
    fn new(place: &Path, path: &Path, fill: impl FnOnce(&mut Writer<'_>) -> io::Result<()>) -> Result<Self> {
        let mut file = temporary_beside(place).map_err(|e| refused(path, e))?;
        fill_file(file.as_file_mut(), fill, true).map_err(|e| refused(path, e))?;
        Ok(Self { file, place: place.to_owned() })
    }

    fn publish(self) -> Result<()> {
        let Self { file, place } = self;
        file.persist(&place).map_err(|e| refused(&place, e.error))?;
        sync_folder(folder_of(&place));
        Ok(())
    }
}

/// How the names of files that are being written begin and end.
const PARTIAL: (&str, &str) = (".tamis-", ".partial");

/// An empty file in the folder of `path`, with the permissions the final one should have.
fn temporary_beside(path: &Path) -> io::Result<NamedTempFile> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o666); // less what the umask takes away
    let mut builder = tempfile::Builder::new();
    builder.prefix(PARTIAL.0).suffix(PARTIAL.1);
    // Opened here: errors of `tempfile_in` would name a file that the user never asked for.
    let file = builder.make_in(folder_of(path), |name| options.open(name))?;
    if let Ok(there) = fs::metadata(path) {
        if there.permissions().readonly() {
            return Err(ErrorKind::PermissionDenied.into());
        }
        file.as_file().set_permissions(there.permissions())?;
    }
    Ok(file)
}

fn fill_file(
    file: &mut File,
    fill: impl FnOnce(&mut Writer<'_>) -> io::Result<()>,
    sync: bool,
) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(1 << 16, file);
    let filled = fill(&mut writer).and_then(|()| writer.flush());
    let (file, _unwritten) = writer.into_parts(); // never flushed again by a drop after an error
    filled?;
    if sync { file.sync_all() } else { Ok(()) }
}

fn open_device(path: &Path) -> Result<File> {
    File::options().write(true).open(path).map_err(|e| refused(path, e))
}

/// The rename is done and cannot be taken back, and not every file system can sync a folder: a best effort.
fn sync_folder(folder: &Path) {
    if cfg!(unix) {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The folders that making `path` will make, outermost first.
fn missing_ancestors(path: &Path) -> Vec<PathBuf> {
    let missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let mut made: Vec<_> = path.ancestors().take_while(missing).map(Path::to_owned).collect();
    made.reverse();
    made
}

/// A write that the system refused, with what to do about it.
fn refused(path: &Path, e: io::Error) -> Error {
    let help = match e.kind() {
        ErrorKind::NotFound if folder_of(path).is_dir() => {
            format!("{} takes no new files: choose another folder", folder_of(path).display())
        }
        ErrorKind::NotFound => {
            format!("make the folder first: mkdir -p {}", folder_of(path).display())
        }
        ErrorKind::NotADirectory => "a file is in the way: choose another folder".into(),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "choose a place that you may write to".into()
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free some space, or write to another disk; nothing was left behind".into()
        }
        _ => return Error::io("cannot write", path, e),
    };
    Error::io("cannot write", path, e).help(help)
}
