//! `tamis demo`
use super::{Common, Console};
use crate::Result;
use clap::Args;
use std::path::PathBuf;

/// Plant a sparse network, recover it within a byte budget, save, reload, predict and draw.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis demo -o tamis-demo")]
pub(super) struct Demo {
    /// The folder to write
    #[arg(short, long, value_name = "DIR", default_value = "tamis-demo")]
    output: PathBuf,
}

impl Demo {
    pub(super) fn run(&self, _common: &Common, _console: &Console) -> Result<()> {
        Err(crate::Error::new("not written yet").at(&self.output))
    }
}
