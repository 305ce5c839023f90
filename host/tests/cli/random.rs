//! Random matrices, pruned networks and matrix sensing as experiments: every line of the results is
//! a row of a printed table, and the reports say how far it is from print.

use std::path::Path;

use crate::common::*;
use serde_json::{Value, json};

const NAMES: [&str; 8] = [
    "prob-table-2",
    "prob-table-3",
    "prob-exponents",
    "prob-lemmas",
    "greedy-figure-1",
    "greedy-guarantee",
    "greedy-noise",
    "greedy-start",
];

fn lines(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("results.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn tables_of_random_networks_run_and_report() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for name in NAMES {
        let done = json(path, &format!("run {name} --profile smoke -o {name} --jobs 2"));
        assert_eq!((&done["done"], &done["before"]), (&done["cells"], &json!(0)), "{done}");
        let again = json(path, &format!("run {name} --profile smoke -o {name}"));
        assert_eq!((&again["ran"], &again["before"]), (&json!(0), &done["cells"]), "{again}");
    }
    for row in lines(&path.join("prob-table-2")) {
        assert!(row["n1"] == 32 && row["wrong_in_print"] == false, "{row}");
        for key in ["mean", "std", "q95", "q99", "q999", "q9999"] {
            let (own, printed) = (number(&row, key), number(&row["published"], key));
            let most = if key == "std" { 0.5 } else { 0.1 };
            assert!((own / printed - 1.0).abs() < most, "{key}: {row}");
        }
        assert!((number(&row, "k") - 1.0).abs() < 1e-9 || number(&row, "k") == 1.7320508, "{row}");
    }
    let laws = ["uniform", "normal", "normal3", "zeroed", "zeroed", "zeroed"];
    for (row, law) in lines(&path.join("prob-table-3")).iter().zip(laws) {
        assert_eq!((row["law"].as_str(), &row["d"]), (Some(law), &json!(32)), "{row}");
        assert_eq!(row["alpha"].is_null(), law != "zeroed", "{row}");
        let (own, printed) = (number(row, "c"), number(&row["published"], "c"));
        assert!((own / printed - 1.0).abs() < 0.05, "{row}");
    }
    for row in lines(&path.join("greedy-figure-1")) {
        let is_regularised = row["regularised"] == true;
        assert_eq!(number(&row, "lambda") > 0.0, is_regularised, "{row}");
        let columns = number(&row, "columns");
        assert!(if is_regularised { columns == 4.0 } else { columns > 8.0 }, "{row}");
        assert!(number(&row, "gradient_norm") <= 1e-4 && number(&row, "loss") < 1e-3, "{row}");
        assert!(number(&row, "beta") == 0.01 && row["seconds"].is_number(), "{row}");
    }
    let report = json(path, &format!("report {} -o report", NAMES.join(" ")));
    let files: Vec<&str> =
        report["files"].as_array().unwrap().iter().map(|file| file.as_str().unwrap()).collect();
    for file in [
        "prob-table-2-norms-mean.svg",
        "prob-exponents-layers-delta-norm.svg",
        "prob-exponents-layers-sup-norm.svg",
        "prob-lemmas-balls-failures.svg",
        "greedy-figure-1-columns-columns.svg",
        "greedy-figure-1-columns-columns-above.svg",
        "greedy-noise-columns-errors.svg",
    ] {
        let file = files.iter().find(|own| own.ends_with(file)).unwrap_or_else(|| panic!("{file}"));
        let svg = std::fs::read_to_string(path.join(file)).unwrap();
        assert!(roxmltree::Document::parse(&svg).is_ok() && !svg.contains("no data"), "{svg}");
    }
    let md = std::fs::read_to_string(path.join("report/report.md")).unwrap();
    for text in ["Beside the printed figures", "Furthest apart", "3α = 0.30", "Exponents"] {
        assert!(md.contains(text), "{text}");
    }
    json(path, "report prob-table-2 prob-exponents -o prob.md");
    let md = std::fs::read_to_string(path.join("prob.md")).unwrap();
    assert!(md.contains("1.087") && md.contains("magnitude pruning"), "{md}");
}

#[test]
fn random_matrices_are_the_same_for_any_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let bare = |folder: &str| -> Vec<Value> {
        let rows = lines(&path.join(folder)).into_iter();
        rows.map(|row| row["solved"]["measured"].clone()).collect()
    };
    for name in ["prob-table-2", "prob-table-3", "prob-exponents"] {
        json(path, &format!("run {name} --profile smoke -o {name}-1 --threads 1"));
        json(path, &format!("run {name} --profile smoke -o {name}-2 --threads 2"));
        assert_eq!(bare(&format!("{name}-1")), bare(&format!("{name}-2")), "{name}");
    }
}

/// Every printed row stands in the spec: 30 and 27.
#[test]
fn specs_have_all_rows_of_print() {
    for (text, rows) in [
        (include_str!("../../specs/prob-table-2.toml"), 30),
        (include_str!("../../specs/prob-table-3.toml"), 27),
    ] {
        assert_eq!(text.matches("values = {").count(), rows);
    }
}
