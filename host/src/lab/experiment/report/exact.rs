//! How many trainings are exact.

use super::super::record::{Record, Status};
use super::super::spec::{Method, Metric};
use super::table::{Item, Table};
use super::verdicts::EXACT_DB;
use super::view::View;

/// A row per number of neurons and one for all: of all s and seeds of a method, those that are exact.
/// Empty where none can be.
pub(super) fn table(view: &View) -> Table {
    let (part, methods) = (&view.part, view.trained());
    let mut rows = Vec::new();
    if part.metric == Metric::Psnr && part.m.len() > 1 {
        rows.extend(part.m.iter().map(|&m| (m.to_string(), Some(m))));
        rows.push(("all".to_owned(), None));
    }
    let row = |(name, m): (String, Option<usize>)| {
        let cells = methods.iter().map(|&method| Item::from(counted(view, method, m)));
        let row: Vec<Item> = cells.collect();
        row.iter()
            .any(|item| !item.text.is_empty())
            .then(|| std::iter::once(Item::from(name)).chain(row).collect())
    };
    let head = std::iter::once("m").chain(methods.iter().map(|method| method.title()));
    let note = format!(
        "Trainings of {EXACT_DB:.0} dB or more, where the error is the rounding of floats, of all \
         that were run: all s and all seeds."
    );
    Table::new("Exact fits", note, head, rows.into_iter().filter_map(row).collect())
}

/// Nothing where no training was run; those that have no network to find do not count.
fn counted(view: &View, method: Method, m: Option<usize>) -> String {
    let own =
        |record: &&Record| record.cell.method == method && m.is_none_or(|m| record.cell.m == m);
    let run = || view.records.iter().filter(own).filter(|own| own.status != Status::Skipped);
    let values = run().filter_map(|record| view.value(record.solved.as_ref()?));
    let exact = values.filter(|value| *value >= EXACT_DB).count();
    match run().count() {
        0 => String::new(),
        count => format!("{exact} of {count}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::figures;
    use super::super::super::known::Known;
    use super::super::super::record::{Quality, Solved};
    use super::*;

    #[test]
    fn failed_trainings_count_and_those_of_no_network_do_not() {
        let part = figures::load("figure-1-left", Some("smoke")).unwrap().part.remove(0);
        let cells = part.cells().into_iter().filter(|cell| cell.method == Method::Recipe);
        let values = [Ok(150.0), Ok(99.9), Err(Status::Failed), Err(Status::Skipped)];
        let records = cells.zip(values).map(|(cell, value)| {
            let train = |psnr_db| Quality { psnr_db: Some(psnr_db), ..Quality::default() };
            let status = value.err().unwrap_or(Status::Done);
            let solved =
                value.ok().map(|db| Solved { train: Some(train(db)), ..Solved::default() });
            Record { solved, ..Record::new(&cell, status, 1, None) }
        });
        let known = Known::of("figure-1-left", &part.name).unwrap();
        let view = View { records: records.collect(), whole: None, known, part };
        let rows: Vec<Vec<String>> = table(&view)
            .rows
            .into_iter()
            .map(|row| row.into_iter().map(|item| item.text).collect())
            .collect();
        let of = view.trained().iter().position(|method| *method == Method::Recipe).unwrap() + 1;
        let told: Vec<(&str, &str)> = rows.iter().map(|row| (&row[0][..], &row[of][..])).collect();
        assert_eq!(told, [("2", "1 of 2"), ("4", "0 of 1"), ("all", "1 of 3")]);
        assert!(rows.iter().all(|row| row.iter().filter(|text| !text.is_empty()).count() == 2));
    }
}
