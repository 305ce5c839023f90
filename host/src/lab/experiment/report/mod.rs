//! What experiments gave: heat maps, curves and tables, as files and on one page; see
//! docs/experiments.md. Parts that check the theory have lines over their axes, each beside what
//! theory says, in place of maps and curves.

mod about;
mod axes;
mod checks;
mod csv;
mod dense;
mod exact;
mod interval;
mod masked;
mod masks;
mod missing;
mod page;
mod pictures;
mod random;
mod sketch;
mod summary;
mod table;
mod tables;
mod verdicts;
mod view;

use std::path::Path;

use super::store::Store;
use crate::{Error, Result, base::file};

use view::Experiment;

#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) cells: usize,
    /// Names and contents.
    files: Vec<(String, String)>,
}

/// Makes a report of results.
pub(crate) fn make(stores: &[Store]) -> Result<Report> {
    let mut experiments = stores.iter().map(Experiment::read).collect::<Result<Vec<_>>>()?;
    name(&mut experiments);
    let mut files = vec![
        ("index.html".to_owned(), page::page(&experiments)),
        ("report.md".to_owned(), tables::markdown(&experiments)),
        ("results.csv".to_owned(), csv::csv(&experiments)),
    ];
    for experiment in &experiments {
        for view in &experiment.views {
            let start = format!("{}-{}", experiment.name, view.part.name);
            let pictures = pictures::all(view).into_iter();
            files.extend(pictures.map(|(name, svg)| (format!("{start}-{name}.svg"), svg)));
        }
    }
    Ok(Report::new(&experiments, files))
}

/// Makes one Markdown file of the summary tables of results, of that name.
pub(crate) fn summarise(stores: &[Store], name: &str) -> Result<Report> {
    let experiments = stores.iter().map(Experiment::read).collect::<Result<Vec<_>>>()?;
    let mut views = experiments.iter().flat_map(|experiment| &experiment.views);
    if views.all(|view| view.part.columns.is_empty() && random::summary(view).is_empty()) {
        return Err(Error::new("the results have no summary table")
            .expected("a spec with columns = [...] in a part")
            .got(table::listed(experiments.iter().map(|own| &own.spec.name)))
            .help("name a folder with -o, not a file NAME.md, for the whole report"));
    }
    let text = summary::markdown(&experiments);
    Ok(Report::new(&experiments, vec![(name.to_owned(), text)]))
}

impl Report {
    fn new(experiments: &[Experiment], files: Vec<(String, String)>) -> Self {
        Self { cells: experiments.iter().flat_map(Experiment::records).count(), files }
    }

    /// Writes all files into a folder, or none; their paths. What is there is replaced if it is of a report.
    pub(crate) fn write(&self, path: &Path) -> Result<Vec<String>> {
        for (name, _) in &self.files {
            let place = path.join(name);
            if file::exists(&place)? {
                match Path::new(name).extension().and_then(|ending| ending.to_str()) {
                    Some("csv") => file::check(&place, file::Kind::table(csv::HEADS), [])?,
                    Some("svg") => file::check(&place, file::Kind::PICTURE.by_content(), [])?,
                    _ => check_is_report(&place)?,
                }
            }
        }
        file::write_folder(path, |folder| {
            self.files.iter().try_for_each(|(name, text)| {
                folder.write(name, |w| std::io::Write::write_all(w, text.as_bytes()))
            })
        })?;
        Ok(self.files.iter().map(|(name, _)| path.join(name).display().to_string()).collect())
    }
}

/// Refuses to replace a page that no report has.
fn check_is_report(page: &Path) -> Result<()> {
    const MARKS: [&str; 4] =
        ["made by</dt><dd>tamis ", "- made by: tamis ", "`tamis report`", "`tamis run "];
    // What cannot be read as text is none of ours.
    let is_ours = |text: &String| text.is_empty() || MARKS.iter().any(|mark| text.contains(mark));
    if file::read_text(page).is_ok_and(|text| is_ours(&text)) {
        return Ok(());
    }
    Err(Error::new("a file of another kind would be overwritten")
        .at(page)
        .expected("an earlier report, or a name that is free")
        .got("something else")
        .help("choose another name with -o, or remove the file first if it is not needed"))
}

/// Names that are different even where two results are of one spec.
fn name(experiments: &mut [Experiment]) {
    for at in 0..experiments.len() {
        let (earlier, [own, ..]) = experiments.split_at_mut(at) else { return };
        let taken = |name: &str| earlier.iter().any(|other| other.name == name);
        if taken(&own.name) {
            let base = format!("{}-{}", own.name, own.spec.resolved);
            let numbered = (2..).map(|number| format!("{base}-{number}"));
            let mut names = std::iter::once(base.clone()).chain(numbered);
            own.name = names.find(|name| !taken(name)).unwrap_or(base);
        }
    }
}
