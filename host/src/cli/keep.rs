//! `tamis train --checkpoint FILE --resume`, whatever the recipe: all but the dense baseline keep their state in one file.

use super::train::{KeptArgs, Train};
use super::{Console, interrupt, say_error};
use crate::run::{Keep, Keeps, Kept, Offers, Problem};
use crate::{Error, Result, file};

/// Checks that no checkpoint would be lost.
pub(super) fn check_checkpoint(train: &Train) -> Result<()> {
    let kept = &train.kept;
    match &kept.checkpoint {
        Some(path) if !kept.resume && file::exists(path)? => Err(Error::new("there is a checkpoint already")
            .at(path)
            .expected("--resume, or the name of a file that there is not")
            .got("a file of that name, which this run would overwrite")
            .help("pass --resume to go on from it, or remove it to start anew")),
        _ => Ok(()),
    }
}

/// Keeps checkpoints where they are wanted.
pub(super) struct Keeper {
    keep: Option<Keep>,
    /// Whether the user was told that the file cannot be written.
    warned: bool,
}

impl Keeper {
    pub(super) fn new(args: &KeptArgs, problem: &Problem, options: &impl Keeps) -> Result<Self> {
        let keep = args.checkpoint.as_ref().map(|path| Keep::new(path, problem, options)).transpose()?;
        Ok(Self { keep, warned: false })
    }

    /// The checkpoint to go on from.
    pub(super) fn load(&self, args: &KeptArgs, console: &Console) -> Result<Option<Kept>> {
        let (Some(keep), Some(path), true) = (&self.keep, &args.checkpoint, args.resume) else {
            return Ok(None);
        };
        let kept = keep.load()?;
        if kept.is_none() {
            console.say(format_args!("There is no {} yet: the run starts anew.", path.display()))?;
        }
        Ok(kept)
    }

    /// Writes what is due; at once where the run is about to end, so that a second Ctrl-C loses nothing. A file that cannot
    /// be written is no reason to end the run: it is tried again, and told at the end.
    pub(super) fn see(&mut self, progress: &impl Offers) {
        let Some(keep) = &mut self.keep else { return };
        let written = interrupt::saving(|| {
            keep.see(progress)?;
            if interrupt::stop().asked() { keep.flush().map(|_| ()) } else { Ok(()) }
        });
        if let Err(error) = written
            && !self.warned
        {
            self.warned = true;
            say_error(format_args!("warning: the run goes on without a checkpoint: {error}"));
        }
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        self.keep.as_mut().map_or(Ok(()), |keep| keep.flush().map(|_| ()))
    }

    /// What came of a run. Where that is an error, the last state is kept all the same, and a run that was ended before its first
    /// step says what the checkpoint is good for.
    pub(super) fn check<T>(&mut self, outcome: Result<T>) -> Result<T> {
        let error = match outcome {
            Err(error) => error,
            done => return done,
        };
        Err(match interrupt::saving(|| self.flush()) {
            Err(error) => error,
            Ok(()) if self.keep.is_some() && error.is_interrupted() => {
                error.help("--resume goes on from the checkpoint, where there is one")
            }
            Ok(()) => error,
        })
    }
}
