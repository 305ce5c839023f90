//! What `tamis certify` says of two models, and what it refuses.

use crate::common::*;
use serde_json::{Value, json};
use tempfile::TempDir;

const CERTIFY: &str = "certify m.tamis q.tamis --box p/X.npy --eps 0.02";

/// A model of floats with its rows, and one of integers made of it.
fn quantised() -> TempDir {
    let folder = prepared();
    ok(folder.path(), "quantize m.tamis --data p/X.npy -o q.tamis -q");
    folder
}

#[test]
fn bounds_of_integers_enclose_what_rows_show() {
    let folder = quantised();
    let report = json(folder.path(), &format!("{CERTIFY} --rows 5"));
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 5);
    for (at, row) in rows.iter().enumerate() {
        let [lower, upper] = ["lower", "upper"].map(|key| number(row, key));
        assert!(0.0 < lower && lower <= upper && upper < 4.0 * lower, "{row}");
        let three = ["spectral", "crown", "difference"].map(|key| number(row, key));
        assert_eq!(upper, three.into_iter().fold(f64::INFINITY, f64::min));
        assert_eq!(number(row, row["bound"].as_str().unwrap()), upper);
        assert_eq!((&row["row"], &row["class_certain"]), (&json!(at), &json!(null)));
    }
    assert_eq!((&report["eps"], &report["task"]), (&json!(0.02), &json!("regression")));
    // All rows of the file are fresh: 400 of them, 0.01^(1/400).
    let fresh = &report["fresh"];
    assert_eq!((&fresh["rows"], &fresh["same_class"]), (&json!(400), &json!(null)));
    assert!((number(fresh, "share") - 0.988_553).abs() < 1e-6, "{fresh}");
    // Those of the boxes are among them, and none is beyond its box's bound.
    let all = json(folder.path(), CERTIFY);
    assert!(number(fresh, "largest") <= number(&all, "upper"), "{fresh} {}", all["upper"]);
}

#[test]
fn threads_change_no_certificate() {
    let folder = quantised();
    let on = |threads: &str| {
        let mut report = json(folder.path(), &format!("{CERTIFY} --rows 7 --threads {threads}"));
        report.as_object_mut().unwrap().remove("seconds");
        report
    };
    let one = on("1");
    assert_eq!(one, on("3"));
    let other: Value = json(folder.path(), &format!("{CERTIFY} --rows 7 --seed 1"));
    assert_eq!(one["rows"][0]["upper"], other["rows"][0]["upper"]);
}

#[test]
fn classes_are_certain_where_boxes_are_small() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), "generate digits --samples 300 --side 8 --seed 1 -o d -q");
    ok(
        folder.path(),
        "train --data d/X.npy --labels d/y.npy --task multiclass --hidden 12 --nnz 200 --epochs 20 -o m.tamis -q",
    );
    ok(folder.path(), "quantize m.tamis --data d/X.npy -o q.tamis -q");
    let certain = |eps: &str| {
        let line = format!("certify m.tamis q.tamis --box d/X.npy --rows 30 --eps {eps}");
        let report = json(folder.path(), &format!("{line} --fresh d/X.npy"));
        assert!(number(&report["fresh"], "same_class") > 280.0, "{report}");
        let rows = report["rows"].as_array().unwrap();
        let count = rows.iter().filter(|row| row["class_certain"] == json!(true)).count();
        assert_eq!(report["class_certain"], json!(count));
        count
    };
    assert_eq!(certain("200"), 0);
    assert!(certain("0.01") > 20);
    let text = ok(folder.path(), "certify m.tamis q.tamis --box d/X.npy --rows 30 --eps 0.01");
    for part in ["boxes of ±0.01", "certain", "and 10 more", "99 % confidence", "ratio"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn the_unit_box_needs_no_rows() {
    let folder = quantised();
    let report = json(folder.path(), "certify m.tamis q.tamis --box unit");
    assert_eq!((&report["fresh"], &report["eps"]), (&json!(null), &json!(null)));
    let row = &report["rows"][0];
    assert!(number(row, "lower") <= number(row, "upper"), "{row}");
    let report = json(folder.path(), "certify m.tamis m.tamis --box unit --fresh p/X.npy");
    assert_eq!(report["fresh"]["largest"], json!(0.0));
    assert!(number(&report, "upper") < 1e-4, "{report}");
    for flags in ["--eps 0.1", "--rows 3", "--range 0,1"] {
        let error = misuses(folder.path(), &format!("certify m.tamis q.tamis --box unit {flags}"));
        assert!(error.contains(flags.split(' ').next().unwrap()), "{error}");
    }
    // A box with a column less to move in is inside the other one.
    let held = json(folder.path(), "certify m.tamis q.tamis --box unit --hold 1");
    let whole = json(folder.path(), "certify m.tamis q.tamis --box unit");
    assert!(number(&held, "upper") <= number(&whole, "upper"), "{held} {whole}");
    let error = fails(folder.path(), "certify m.tamis q.tamis --box unit --hold 12");
    assert!(error.contains("from 0 to 11"), "{error}");
}

#[test]
fn models_and_rows_that_do_not_fit_are_refused() {
    let folder = quantised();
    let path = folder.path();
    ok(path, "generate planted --samples 50 --inputs 9 --hidden 3 --nnz 6 --seed 0 -o n -q");
    ok(
        path,
        "train --data n/X.npy --labels n/y.npy --task regression --hidden 3 --nnz 6 -o n.tamis -q",
    );
    std::fs::write(path.join("y.csv"), "y\n".to_owned() + &"0\n1\n".repeat(200)).unwrap();
    ok(path, "train --data p/X.npy --labels y.csv --task binary --hidden 3 --nnz 6 -o b.tamis -q");
    // Weights alone have no task, and so no classes.
    ok(path, "export b.tamis --format safetensors -o b.safetensors -q");
    let mut bytes = std::fs::read(path.join("b.safetensors")).unwrap();
    let at = bytes.windows(8).position(|part| part == b"\"tamis\":").unwrap();
    bytes[at..at + 8].copy_from_slice(b"\"other\":");
    std::fs::write(path.join("c.safetensors"), bytes).unwrap();
    ok(path, "import c.safetensors -o c.tamis -q");
    let report = json(path, "certify b.tamis c.tamis --box p/X.npy --eps 0.1 --rows 1");
    assert!(report["notes"].to_string().contains("c.tamis has no task"), "{report}");
    let refused = [
        ("certify m.tamis n.tamis --box p/X.npy --eps 0.1", "different inputs"),
        ("certify m.tamis b.tamis --box p/X.npy --eps 0.1", "different tasks"),
        ("certify m.tamis q.tamis --box n/X.npy --eps 0.1", "12 columns"),
        ("certify m.tamis q.tamis --box p/X.npy --fresh n/X.npy --eps 0.1", "12 columns"),
        ("certify m.tamis q.tamis --box p/X.npy --eps 0", "--eps above 0"),
        ("certify m.tamis q.tamis --box p/X.npy --eps -0.1", "--eps above 0"),
        ("certify m.tamis q.tamis --box p/X.npy --eps nan", "--eps above 0"),
        ("certify m.tamis q.tamis --box p/X.npy --eps inf", "--eps above 0"),
        ("certify m.tamis q.tamis --box p/X.npy --eps 1e39", "--eps above 0"),
        ("certify m.tamis q.tamis --box p/X.npy --eps 0.1 --rows 0", "there are no rows"),
        ("certify m.tamis q.tamis --box p/X.npy --eps 0.1 --hold 12", "from 0 to 11"),
        ("certify m.tamis q.tamis --box p/X.npy --eps 0.1 --range 0,1", "outside the range"),
        ("certify m.tamis none.tamis --box p/X.npy --eps 0.1", "none.tamis"),
        ("certify m.tamis p/X.npy --box p/X.npy --eps 0.1", "no model"),
    ];
    for (line, part) in refused {
        let error = fails(path, line);
        assert!(error.contains(part), "{line}: {error}");
    }
    let error = misuses(path, "certify m.tamis q.tamis --box p/X.npy");
    assert!(error.contains("no --eps"), "{error}");
    let error = misuses(path, &format!("{CERTIFY} --starts 0"));
    assert!(error.contains("--starts"), "{error}");
    let error = run(path, &["certify", "m.tamis", "q.tamis", "--box", "X", "--range", "1,0"]);
    assert_eq!(error.status.code(), Some(2));
}

#[test]
fn inspect_says_how_to_bound_the_difference() {
    let folder = quantised();
    let text = ok(folder.path(), "inspect q.tamis");
    assert!(text.contains("tamis certify ORIGINAL q.tamis"), "{text}");
}
