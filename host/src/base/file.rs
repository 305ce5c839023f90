//! Whole files or nothing: a file is written beside its final place, synced to disk, then renamed.
//!
//! Character devices (`/dev/null`) and the process's own streams (`/dev/stdout`) are written to
//! directly. Pipes and the like are refused: without a reader they would wait for ever.

mod input;
mod kind;
mod partial;

use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::NamedTempFile;

pub use input::{ALIGNED_LIMIT, Aligned, read_aligned};
pub(crate) use input::{check_len, exists, open, open_in, read_text, standard_input};
pub use kind::Kind;
use partial::temporary_beside;
pub(crate) use partial::{folder_of, is_partial, sweep};

use crate::{Error, Result};

/// What a file is written through: buffered, and able to seek where the file is a plain one.
pub type Writer<'a> = BufWriter<&'a mut File>;

/// Writes the file at `path` with `fill`, all of it or none of it.
///
/// Links are followed, and an existing file keeps its permissions.
///
/// # Errors
/// The folder is missing or may not be written to, `path` is a folder, the disk is full, or `fill`
/// failed; then an existing file is untouched and no other is left.
///
/// ```
/// use std::io::Write;
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("note.txt");
/// tamis_host::base::file::write(&path, |w| writeln!(w, "all of it")).unwrap();
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "all of it\n");
/// ```
pub fn write(
    path: impl AsRef<Path>,
    fill: impl FnOnce(&mut Writer<'_>) -> io::Result<()>,
) -> Result<()> {
    write_files(|files| files.write(path, fill))
}

/// Writes several files: all of them or none of them.
///
/// Plain files have temporary names until `fill` returns `Ok`; devices and streams take
/// their bytes at once.
///
/// # Errors
/// As for [`write()`]; or `fill` failed. Then existing files are untouched and no others are left.
pub fn write_files(fill: impl FnOnce(&mut Files) -> Result<()>) -> Result<()> {
    let mut files = Files::default();
    fill(&mut files)?;
    files.publish()
}

/// Whether [`write()`] can and may write a file of this kind to `path`; nothing is left behind. For
/// `inputs` see [`check_distinct`].
///
/// # Errors
/// The folder cannot be written to; or `path` is a folder, a pipe, an input, or of another kind.
///
/// ```
/// use std::path::Path;
/// use tamis_host::base::file::{Kind, check};
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("model.tamis");
/// assert!(check(&path, Kind::MODEL, []).is_ok());
/// std::fs::write(&path, "old").unwrap();
/// assert!(check(&path, Kind::MODEL, [path.as_path()]).is_err());
/// ```
pub fn check<'a>(
    path: impl AsRef<Path>,
    kind: Kind,
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Result<()> {
    let path = path.as_ref();
    check_distinct(path, inputs)?;
    match Target::of(path)? {
        Target::Direct(_) => Ok(()),
        Target::Plain(place) => {
            if place.exists() {
                kind.check(&place).map_err(|e| e.at(path))?;
            }
            temporary_beside(&place).map(drop).map_err(|e| refused(path, e))
        }
    }
}

/// Where a file is or would be, whatever way its name leads there.
pub(crate) fn place(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).canonicalize();
    let beside = |folder: PathBuf| path.file_name().map(|name| folder.join(name));
    let there = path.canonicalize().ok().or_else(|| folder.ok().and_then(beside));
    there.unwrap_or_else(|| path.to_owned())
}

/// Whether `output` is none of the files that a run reads; each of `inputs` may name several,
/// separated by commas, and an array of an archive behind `#`.
///
/// # Errors
/// Names the input that would be overwritten.
pub fn check_distinct<'a>(output: &Path, inputs: impl IntoIterator<Item = &'a Path>) -> Result<()> {
    let Ok(output) = output.canonicalize() else { return Ok(()) };
    for input in inputs {
        let whole = input.to_string_lossy();
        let names = whole.split(',').map(|name| name.split('#').next().unwrap_or(name));
        if names
            .chain([whole.as_ref()])
            .any(|name| Path::new(name).canonicalize().is_ok_and(|p| p == output))
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
    let files = Files::in_folder(path.as_ref())?;
    temporary_beside(&files.folder.join("file")).map(drop).map_err(|e| refused(path.as_ref(), e))
}

/// Writes several files into the folder `path`, made if missing, as [`write_files`] does; files of
/// the folder that are not written again stay.
///
/// # Errors
/// As for [`write_files`]; or the folder cannot be made. One that was made here is removed again.
///
/// ```
/// use std::io::Write;
/// let parent = tempfile::tempdir().unwrap();
/// let out = parent.path().join("results/first");
/// tamis_host::base::file::write_folder(&out, |folder| {
///     folder.write("a.txt", |w| w.write_all(b"a"))?;
///     folder.write("b.txt", |w| w.write_all(b"b"))
/// }).unwrap();
/// assert!(out.join("a.txt").exists() && out.join("b.txt").exists());
/// ```
pub fn write_folder(
    path: impl AsRef<Path>,
    fill: impl FnOnce(&mut Files) -> Result<()>,
) -> Result<()> {
    let mut files = Files::in_folder(path.as_ref())?;
    fill(&mut files)?;
    files.publish()
}

/// Files being written by [`write_files`] or [`write_folder`].
#[derive(Debug, Default)]
pub struct Files {
    /// Empty for [`write_files`].
    folder: PathBuf,
    /// Complete files under temporary names, and their places.
    staged: Vec<(NamedTempFile, PathBuf)>,
    /// Folders made here, outermost first; removed again unless the files are published.
    made: Vec<PathBuf>,
}

impl Files {
    /// Writes the file at `path`, within the folder if there is one, with `fill`.
    ///
    /// # Errors
    /// As for [`write()`].
    pub fn write(
        &mut self,
        path: impl AsRef<Path>,
        fill: impl FnOnce(&mut Writer<'_>) -> io::Result<()>,
    ) -> Result<()> {
        let path = self.folder.join(path);
        let refused = |e| refused(&path, e);
        // Files of a folder are of this run alone, whatever the shell has opened.
        let is_alone = self.folder.as_os_str().is_empty();
        match if is_alone { Target::of(&path)? } else { Target::beside_streams(&path)? } {
            Target::Direct(mut file) if is_alone => {
                TAKEN.fetch_or(is_standard_output(&file), Ordering::Relaxed);
                fill_file(&mut file, fill, false).map_err(refused)
            }
            Target::Direct(_) => Err(no_plain_file(&path, "a device or stream")),
            Target::Plain(place) => {
                let mut file = temporary_beside(&place).map_err(refused)?;
                fill_file(file.as_file_mut(), fill, true).map_err(refused)?;
                self.staged.push((file, place));
                Ok(())
            }
        }
    }

    /// The folder of [`write_folder`]; empty for files that lie anywhere.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.folder
    }

    fn in_folder(path: &Path) -> Result<Self> {
        let missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
        let mut made: Vec<_> = path.ancestors().take_while(missing).map(Path::to_owned).collect();
        made.reverse();
        let files = Self { folder: path.to_owned(), staged: Vec::new(), made };
        fs::create_dir_all(path).map_err(|e| match e.kind() {
            ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
                Error::new("cannot make the folder")
                    .at(path)
                    .mismatch("a folder, or a name that is free", "a file of that name")
                    .help("choose another folder, or move the file away")
            }
            _ => refused(path, e),
        })?;
        Ok(files)
    }

    fn publish(mut self) -> Result<()> {
        for (file, place) in std::mem::take(&mut self.staged) {
            file.persist(&place).map_err(|e| refused(&place, e.error))?;
            sync_folder(folder_of(&place));
        }
        self.made.clear();
        Ok(())
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        self.staged.clear();
        for folder in self.made.iter().rev() {
            // A folder that something else has filled meanwhile stays.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// What is under the name of an output.
enum Target {
    /// A plain file, or nothing yet: where it is once links are followed.
    Plain(PathBuf),
    /// Something that takes bytes and must stay what it is.
    Direct(File),
}

impl Target {
    fn of(path: &Path) -> Result<Self> {
        match fs::metadata(path).ok().and_then(|there| own_stream(&there)) {
            Some(stream) => Ok(Self::Direct(stream)),
            None => Self::beside_streams(path),
        }
    }

    /// The same where none of the process's own streams is meant.
    fn beside_streams(path: &Path) -> Result<Self> {
        let refused = |got: &str, help: &str| {
            let error = Error::new("cannot write").at(path).expected("the name of a file");
            Err(error.got(got).help(help))
        };
        match fs::metadata(path) {
            Ok(there) if there.is_dir() => refused("a folder", "name a file in that folder"),
            Ok(there) if there.is_file() => {
                Ok(Self::Plain(fs::canonicalize(path).map_err(|e| self::refused(path, e))?))
            }
            Ok(there) => Self::direct(path, &there),
            Err(_) if path.file_name().is_none() => {
                refused("a path without one", "add a name, such as model.tamis")
            }
            Err(_) => Ok(Self::Plain(path.to_owned())),
        }
    }

    /// What is neither a plain file nor a folder.
    #[cfg(unix)]
    fn direct(path: &Path, there: &Metadata) -> Result<Self> {
        use std::os::unix::fs::FileTypeExt;
        let kind = there.file_type();
        if kind.is_char_device() {
            return open_device(path).map(Self::Direct);
        }
        Err(no_plain_file(path, if kind.is_fifo() { "a pipe" } else { "a device or socket" }))
    }

    #[cfg(not(unix))]
    fn direct(path: &Path, _: &Metadata) -> Result<Self> {
        open_device(path).map(Self::Direct)
    }
}

/// Whether standard output holds an output: what is said goes elsewhere then.
pub(crate) fn is_standard_output_taken() -> bool {
    TAKEN.load(Ordering::Relaxed)
}

static TAKEN: AtomicBool = AtomicBool::new(false);

/// The process's own stream, not opened anew: a pipe would wait for a reader where its own has gone away, and a file that
/// the shell has opened would be written from its start.
#[cfg(unix)]
fn own_stream(there: &Metadata) -> Option<File> {
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileTypeExt;
    if there.is_dir() || there.file_type().is_char_device() {
        return None;
    }
    let stream = |stream: io::Result<std::os::fd::OwnedFd>| {
        stream.ok().map(File::from).filter(|file| is_same(file, there))
    };
    stream(io::stdout().as_fd().try_clone_to_owned())
        .or_else(|| stream(io::stderr().as_fd().try_clone_to_owned()))
}

#[cfg(unix)]
fn is_same(file: &File, there: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |about: &Metadata| (about.dev(), about.ino());
    file.metadata().is_ok_and(|about| place(&about) == place(there))
}

/// Whether a file that is written to is standard output, and not the terminal.
#[cfg(unix)]
fn is_standard_output(file: &File) -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileTypeExt;
    let output = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let there = output.and_then(|output| output.metadata());
    there.is_ok_and(|there| !there.file_type().is_char_device() && is_same(file, &there))
}

#[cfg(not(unix))]
fn is_standard_output(_: &File) -> bool {
    false
}

#[cfg(not(unix))]
fn own_stream(_: &Metadata) -> Option<File> {
    None
}

fn no_plain_file(path: &Path, got: &str) -> Error {
    Error::new("cannot write")
        .at(path)
        .mismatch("the name of a plain file, or one that is free", got)
        .help("name a file; to hand an output on, write it to /dev/stdout")
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

/// As far as it can: not every file system syncs folders, and the rename is done.
fn sync_folder(folder: &Path) {
    if cfg!(unix) {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
}

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
