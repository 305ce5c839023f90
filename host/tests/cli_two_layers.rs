//! Searches for two hidden layers from training to inspect, and what is refused with them.

mod cli_common;

use cli_common::*;
use serde_json::json;
use tamis_host::data::planted;

const TRAIN: &str = "train --data X.csv --labels y.csv --task regression --hidden 4,4 --nnz 16";

/// Rows and labels of a planted network of two layers, as CSV; labels have `more` added.
fn write(folder: &std::path::Path, more: f32) {
    let made = planted::deep(1500, 12, &[4, 4], 1, 16, 1).unwrap();
    let text = |values: &[f32], width: usize| {
        let line = |row: &[f32]| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(",") + "\n";
        values.chunks(width).map(line).collect::<String>()
    };
    std::fs::write(folder.join("X.csv"), text(&made.data.values.clone().into_f32(), 12)).unwrap();
    let labels: Vec<f32> = made.labels.iter().map(|y| y + more).collect();
    std::fs::write(folder.join("y.csv"), text(&labels, 1)).unwrap();
}

#[test]
fn what_is_trained_is_evaluated_predicted_and_inspected() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 0.0);
    let report = json(folder.path(), &format!("{TRAIN} --log l.jsonl --checkpoint c --resume -o m.tamis"));
    assert_eq!((&report["recipe"], &report["exact"]), (&json!("lm"), &json!(true)), "{report}");
    assert_eq!((&report["hidden"], &report["second_hidden"]), (&json!(4), &json!(4)));
    assert!(number(&report, "second_live") >= 1.0 && number(&report, "nnz") <= 16.0, "{report}");
    let eval = json(folder.path(), "eval m.tamis --data X.csv --labels y.csv");
    let (trained, scored) = (number(&report, "psnr_db"), number(&eval, "psnr_db"));
    assert!(trained > 110.0 && (trained - scored).abs() < 3.0, "{trained} {scored}");
    let cost = json(folder.path(), "inspect m.tamis");
    let kinds: Vec<_> =
        cost["layers"].as_array().unwrap().iter().map(|layer| layer["kind"].clone()).collect();
    assert_eq!(
        (kinds, &cost["hidden"]),
        (vec![json!("sparse"), json!("sparse"), json!("sum")], &json!([4, 4]))
    );
    assert_eq!(json(folder.path(), "predict m.tamis --data X.csv -o o.npy")["outputs"], json!(1));
    // The checkpoint is of the end, and of these sizes.
    let again = json(folder.path(), &format!("{TRAIN} --checkpoint c --resume -o again.tamis"));
    assert!(number(&again, "resumed_steps") > 0.0, "{again}");
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("again.tamis"), read("m.tamis"));
    let other = TRAIN.replace("4,4", "4,3");
    let refused = fails(folder.path(), &format!("{other} --checkpoint c --resume -o x.tamis"));
    assert!(refused.contains("--hidden: 4,4") && refused.contains("got: 4,3"), "{refused}");
}

#[test]
fn what_two_layers_cannot_be_is_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 0.0);
    for (line, what) in [
        (TRAIN.replace("4,4", "4,0"), "second hidden layer"),
        (format!("{TRAIN} --signs free"), "leave --signs out"),
        (TRAIN.replace("4,4", "4,4,4"), "several hidden layers"),
        (TRAIN.replace("--nnz 16", "--nnz 65"), "--nnz 2 to 64 (4 hidden × (12 inputs + 4 outputs))"),
    ] {
        let refused = fails(folder.path(), &format!("{line} -o x.tamis"));
        assert!(refused.contains(what), "{line}: {refused}");
    }
    write(folder.path(), -0.5);
    let refused = fails(folder.path(), &format!("{TRAIN} -o x.tamis"));
    assert!(refused.contains("is never below 0"), "{refused}");
}
