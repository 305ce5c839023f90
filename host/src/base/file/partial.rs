//! Files that are being written, under temporary names beside their places. Their writers lock
//! them, so that what a killed program has left is told from what another one writes.

use std::fs::{self, DirEntry, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use tempfile::NamedTempFile;

/// How the names of files that are being written begin and end.
const PARTIAL: (&str, &str) = (".tamis-", ".partial");

/// A file as old as this is abandoned, where the file system has no locks.
const STALE: Duration = Duration::from_secs(3600);

/// Times that a name is drawn anew because [`sweep`] was faster than the lock.
const DRAWS: usize = 16;

/// Whether a file of this name is one that is being written, or was.
pub(crate) fn is_partial(name: &str) -> bool {
    name.starts_with(PARTIAL.0) && name.ends_with(PARTIAL.1)
}

/// An empty locked file in the folder of `path`, with the permissions the final one should have.
pub(super) fn temporary_beside(path: &Path) -> io::Result<NamedTempFile> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o666); // less what the umask takes away
    let mut builder = tempfile::Builder::new();
    builder.prefix(PARTIAL.0).suffix(PARTIAL.1);
    // Opened here: errors of `tempfile_in` would name a file that the user never asked for.
    let draw = || builder.make_in(folder_of(path), |name| options.open(name));
    let mut file = draw()?;
    for _ in 0..DRAWS {
        // Not every file system can lock.
        let _ = file.as_file().lock();
        if file.path().exists() {
            break;
        }
        file = draw()?;
    }
    if let Ok(there) = fs::metadata(path) {
        if there.permissions().readonly() {
            return Err(ErrorKind::PermissionDenied.into());
        }
        file.as_file().set_permissions(there.permissions())?;
    }
    Ok(file)
}

/// Removes what killed programs have left half written in a folder, as far as it can.
pub(crate) fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_partial(&entry.file_name().to_string_lossy()) {
            remove_abandoned(&entry);
        }
    }
}

fn remove_abandoned(entry: &DirEntry) {
    let path = entry.path();
    if !entry.file_type().is_ok_and(|kind| kind.is_file()) {
        return;
    }
    let file = File::open(&path);
    let abandoned = match file.as_ref().map(File::try_lock) {
        Ok(Ok(())) => true,
        Ok(Err(TryLockError::WouldBlock)) => false,
        _ => is_stale(entry),
    };
    // Removed before the lock ends, so that nobody begins to write it meanwhile.
    if abandoned {
        let _ = fs::remove_file(path);
    }
}

fn is_stale(entry: &DirEntry) -> bool {
    let written = entry.metadata().and_then(|about| about.modified());
    written.is_ok_and(|time| time.elapsed().is_ok_and(|age| age >= STALE))
}

/// The folder that a file is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_abandoned_files_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        let live = temporary_beside(&folder.path().join("model")).unwrap();
        let dead = folder.path().join(".tamis-killed.partial");
        let other = folder.path().join(".tamis-notes");
        fs::write(&dead, "half").unwrap();
        fs::write(&other, "whole").unwrap();
        sweep(folder.path());
        assert!(live.path().exists() && other.exists() && !dead.exists());
        let path = live.path().to_owned();
        let (file, kept) = live.keep().unwrap();
        sweep(folder.path());
        assert!(kept.exists(), "still being written");
        drop(file);
        sweep(folder.path());
        assert!(!path.exists(), "its writer has ended");
    }
}
