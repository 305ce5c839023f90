//! `tamis report`

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::console;
use super::{Console, interrupt};
use crate::Result;
use crate::experiment::Store;
use crate::experiment::report;

/// Report results of tamis run: one page, heat maps, curves, and tables in Markdown and CSV.
///
/// index.html holds all of it and needs no other file; it follows the reader's light or dark setting.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis report results/figure-3-left -o report
  tamis report results/figure-1-left results/runtimes -o report")]
pub(super) struct Report {
    /// Folders that tamis run has made
    #[arg(value_name = "DIR", required = true)]
    results: Vec<PathBuf>,
    /// The folder to write
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
}

#[derive(Serialize)]
struct Object {
    folder: String,
    cells: usize,
    files: Vec<String>,
}

impl Report {
    pub(super) fn run(&self, console: &Console) -> Result<()> {
        let stores = self.results.iter().map(|path| Store::read(path)).collect::<Result<Vec<_>>>()?;
        let report = report::make(&stores)?;
        let files = interrupt::saving(|| report.write(&self.output))?;
        let object = Object { folder: self.output.display().to_string(), cells: report.cells, files };
        console.result(&object, || {
            let facts = [("cells", object.cells.to_string()), ("files", object.files.join("\n         "))];
            console::facts(&format!("Report in {}", object.folder), &facts)
        })
    }
}
