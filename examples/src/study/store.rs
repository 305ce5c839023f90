//! The checkpoint: one line of JSON per finished run, appended to a file that the next start reads.

use std::fs::{File, OpenOptions, TryLockError, create_dir_all};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::Record;

/// The finished runs and the file that holds them.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    file: File,
    /// All finished runs, in the order in which they ended.
    pub(super) records: Vec<Record>,
    /// Bytes of a torn last line that were cut off.
    pub(super) torn: usize,
}

impl Store {
    /// Opens `cells.jsonl` in `folder`, or makes both. A last line that a killed run left half-written is cut off.
    ///
    /// # Errors
    /// Another study writes there, a line is no record, or the system refuses.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let path = folder.join("cells.jsonl");
        let at = || format!("cannot use {}", path.display());
        let mut file =
            OpenOptions::new().read(true).append(true).create(true).open(&path).with_context(at)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                bail!("another study writes to {}: wait for its end, or choose another -o", path.display())
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(at),
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).with_context(at)?;
        let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let torn = text.len() - whole;
        if torn > 0 {
            file.set_len(whole as u64).with_context(at)?;
            file.seek(SeekFrom::End(0)).with_context(at)?;
        }
        let lines = text[..whole].split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        let read = |(number, line): (usize, &[u8])| {
            serde_json::from_slice(line).with_context(|| {
                let path = path.display();
                format!("line {} of {path} is no record of this version: delete the line, and its run is done again", number + 1)
            })
        };
        let records = lines.enumerate().map(read).collect::<Result<_>>()?;
        Ok(Self { path, file, records, torn })
    }

    /// Adds a finished run, on the disk when this returns.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn append(&mut self, record: Record) -> Result<()> {
        let at = || format!("cannot write to {}", self.path.display());
        let mut line = serde_json::to_vec(&record).with_context(at)?;
        line.push(b'\n');
        self.file.write_all(&line).with_context(at)?;
        self.file.sync_data().with_context(at)?;
        self.records.push(record);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{Job, Part};

    fn record(seed: u64) -> Record {
        let job = Job { part: Part::Grid, hidden: 1, nnz: 2, samples: 3, variant: String::new(), seed };
        Record::failed(job, "commit", 1, 60.0, "no reason".to_owned())
    }

    #[test]
    fn a_torn_line_is_cut_off_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cells.jsonl");
        let mut store = Store::open(folder.path()).unwrap();
        store.append(record(0)).unwrap();
        store.append(record(1)).unwrap();
        drop(store);
        let whole = std::fs::read(&path).unwrap();
        for cut in 1..whole.len() / 2 {
            std::fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            let mut store = Store::open(folder.path()).unwrap();
            assert_eq!((store.records.len(), store.torn), (1, whole.len() / 2 - cut));
            store.append(record(1)).unwrap();
            drop(store);
            assert_eq!(std::fs::read(&path).unwrap(), whole);
        }
    }

    #[test]
    fn two_studies_do_not_share_a_file_and_damage_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        assert!(Store::open(folder.path()).unwrap_err().to_string().contains("another study"));
        drop(store);
        std::fs::write(folder.path().join("cells.jsonl"), "{}\n").unwrap();
        assert!(Store::open(folder.path()).unwrap_err().to_string().contains("line 1 of"));
    }
}
