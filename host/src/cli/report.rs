//! `tamis report`

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::common::Common;
use super::console;
use super::interrupt;
use crate::Result;
use crate::lab::experiment::Store;
use crate::lab::experiment::report;

/// Report results of tamis run: one page, heat maps, curves, and tables in Markdown and CSV.
///
/// index.html holds all of it and needs no other file; it follows the reader's light or dark
/// setting. With -o NAME.md there is one Markdown file of the summary tables that the specs ask
/// for.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis report results/figure-3-left -o report
  tamis report results/figure-1-left results/runtimes -o report
  tamis report results/lm-recipe -o lm-recipe.md")]
pub(super) struct Report {
    /// Folders that tamis run has made
    #[arg(value_name = "DIR", required = true)]
    results: Vec<PathBuf>,
    /// The folder to write, or a file NAME.md
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
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        let stores =
            self.results.iter().map(|path| Store::read(path)).collect::<Result<Vec<_>>>()?;
        let name = self.output.file_name().and_then(|name| name.to_str());
        let (report, folder) = match name {
            Some(name) if name.ends_with(".md") => {
                (report::summarise(&stores, name)?, self.output.parent().unwrap_or(&self.output))
            }
            _ => (report::make(&stores)?, self.output.as_path()),
        };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let files = interrupt::saving(|| report.write(folder))?;
        let object =
            Object { folder: self.output.display().to_string(), cells: report.cells, files };
        let facts =
            [("cells", object.cells.to_string()), ("files", object.files.join("\n         "))];
        let title = format!("Report in {}", object.folder);
        common.result(&object, || console::facts(&title, &facts))
    }
}
