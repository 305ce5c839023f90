//! Flags of every verb, and exit codes.

use clap::Args;

use super::parse;
use crate::Result;

/// Exit code of a run that Ctrl-C or a signal ended: 128 + SIGINT, as shells count.
pub(super) const INTERRUPTED: u8 = 130;

/// Exit code of flags that do not go together, as of those that the parser refuses.
pub(super) const USAGE: u8 = 2;

/// Exit code of a model above a limit, and of a device that predicts otherwise.
pub(super) const OVER_LIMIT: u8 = 3;

/// Flags of every verb.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct Common {
    /// Print one JSON object on standard output, and nothing else there
    #[arg(long, global = true, help_heading = "Common options")]
    pub(super) json: bool,
    /// No progress and no report, only errors (and the object of --json)
    #[arg(long, short, global = true, help_heading = "Common options")]
    pub(super) quiet: bool,
    /// Seed of everything that is drawn
    #[arg(long, global = true, default_value_t = 0, value_name = "N",
          help_heading = "Common options",
          value_parser = parse::whole::<u64>)]
    pub(super) seed: u64,
    /// Threads to use [default: one per core]; never changes a result
    #[arg(long, global = true, value_name = "T", help_heading = "Common options",
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) threads: Option<u16>,
}

impl Common {
    /// Threads as a pool takes them: 0 for one per core.
    pub(super) fn threads(&self) -> usize {
        self.threads.map_or(0, usize::from)
    }

    /// Runs `work` on a pool of --threads.
    pub(super) fn on_pool<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        Ok(crate::train::pool(self.threads())?.install(work))
    }
}
