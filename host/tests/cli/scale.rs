//! `tamis train` on columns in different units.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::common::*;
use serde_json::json;
use tamis::base::rng::Rng;

/// 400 rows of five columns from thousandths to thousands, far from 0, and a label that is a ramp
/// of two of them, in units of its own: `t.csv`; as two classes `c.csv`.
fn tables(folder: &Path) {
    let mut rng = Rng::new(3, 0);
    let (mut numbers, mut classes) = (String::new(), String::new());
    for _ in 0..400 {
        let z: Vec<f32> = (0..5).map(|_| rng.normal()).collect();
        let units = [1e-3, 1.0, 2000.0, 30.0, 0.1];
        let row = z.iter().zip(units).map(|(z, unit)| format!("{}", unit * (z + 4.0)));
        let row = row.collect::<Vec<_>>().join(",");
        let y = (z[0] - 0.5 * z[2] + 0.3).max(0.0);
        writeln!(numbers, "{row},{}", 500.0 + 20.0 * y).unwrap();
        writeln!(classes, "{row},{}", u8::from(z[0] > z[2])).unwrap();
    }
    fs::write(folder.join("t.csv"), numbers).unwrap();
    fs::write(folder.join("c.csv"), classes).unwrap();
}

#[test]
fn columns_in_units_train_as_standardised_ones() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    tables(folder);
    let line = "train --data t.csv --target 6 --task regression --hidden 2 --nnz 4";
    let report = json(folder, &format!("{line} -o m.tamis"));
    assert_eq!((&report["scale"], &report["inputs"]), (&json!("standard"), &json!(5)));
    let cost = json(folder, "inspect m.tamis");
    assert_eq!((&cost["total"]["nnz"], &cost["inputs"]), (&report["nnz"], &json!(5)));
    let biases: u64 =
        cost["layers"].as_array().unwrap().iter().filter_map(|l| l["biases"].as_u64()).sum();
    assert_eq!(report["biases"], json!(biases));
    assert!(number(&report, "nnz") <= 4.0 && biases == 2, "{report}");
    // Two weights, a bias for them and one for the mean: all that made the labels.
    let eval = json(folder, "eval m.tamis --data t.csv --target 6");
    assert!(number(&eval, "loss") < 1e-3, "{eval}");
    let raw = json(folder, &format!("{line} --scale none -o r.tamis"));
    assert_eq!((&raw["scale"], &raw["biases"]), (&json!("none"), &json!(0)));
    assert!(number(&raw, "loss") > 1.0, "{raw}");
    let shown = ok(folder, &format!("{line} --scale minmax -o n.tamis"));
    assert!(shown.contains("minmax, folded into weights"), "{shown}");
}

/// Of rows as they are, and training rows without those of the split.
#[test]
fn validation_is_of_the_rows_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    tables(folder);
    for (recipe, file, nnz) in
        [("lm", "t.csv", 4), ("dynamic", "t.csv", 12), ("anneal", "c.csv", 12)]
    {
        let line = format!(
            "train --data {file} --target 6 --hidden 3 --nnz {nnz} --recipe {recipe} --validation 0.25 --scale standard -o m.tamis"
        );
        let report = json(folder, &line);
        assert_eq!(number(&report, "validation_samples"), 100.0, "{report}");
        let of_all =
            number(&json(folder, &format!("eval m.tamis --data {file} --target 6")), "loss");
        let both = 0.75 * number(&report, "loss") + 0.25 * number(&report, "validation_loss");
        assert!((both / of_all - 1.0).abs() < 1e-4, "{recipe}: {both} {of_all}");
    }
}

/// Where the numbers begin chooses the signs, whichever rows are held back.
#[test]
fn least_label_in_the_validation_split_changes_no_signs() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    tables(folder);
    // One row is below all others.
    let text = fs::read_to_string(folder.join("t.csv")).unwrap();
    let row = text.lines().next().unwrap().rsplit_once(',').unwrap().0;
    fs::write(folder.join("t.csv"), format!("{text}{row},499.5\n")).unwrap();
    for seed in 0..6 {
        let line = format!(
            "train --data t.csv --target 6 --hidden 3,2 --nnz 12 --recipe lm --kicks 0 --validation 0.5 --scale standard --seed {seed} -o m.tamis"
        );
        let report = json(folder, &line);
        assert_eq!(number(&report, "validation_samples"), 201.0, "{seed}: {report}");
    }
}

/// They are fitted together on all rows in the end.
#[test]
fn layers_one_by_one_hold_no_rows_back() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    tables(folder);
    for (data, recipe, task) in [("c.csv", "anneal", "multiclass"), ("t.csv", "lm", "regression")] {
        let rest = "--validation 0.25 --hidden 4,3,3 --nnz 40 --scale standard -o m.tamis";
        let line = format!("train --data {data} --target 6 --task {task} --recipe {recipe} {rest}");
        let report = json(folder, &line);
        let eval = json(folder, &format!("eval m.tamis --data {data} --target 6"));
        let (own, all) = (number(&report, "loss"), number(&eval, "loss"));
        assert!((own / all - 1.0).abs() < 1e-4, "{recipe}: {own} {all}");
    }
}

#[test]
fn classes_have_exactly_the_nonzeros_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    tables(folder);
    for nnz in [8, 12, 20] {
        let line = format!("train --data c.csv --target 6 --task binary --nnz {nnz} -o m.tamis");
        let report = json(folder, &line);
        let total = json(folder, "inspect m.tamis")["total"]["nnz"].clone();
        assert!(total == report["nnz"] && number(&report, "nnz") <= f64::from(nnz), "{report}");
        assert!(number(&report, "accuracy") > 0.9, "{report}");
    }
}

/// Test rows are in the units of the file, as those that were trained on.
#[test]
fn test_rows_are_scored_with_the_model_that_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    tables(folder);
    let train = "train --data c.csv --target 6 --test-data c.csv --recipe dynamic --nnz 12";
    for scale in ["auto", "standard", "minmax", "none"] {
        let report = json(folder, &format!("{train} --scale {scale} -o m.tamis"));
        let eval = json(folder, "eval m.tamis --data c.csv --target 6");
        assert_eq!(report["test_accuracy"], eval["accuracy"], "{scale} {report}");
        assert_eq!(report["test_loss"], eval["loss"], "{scale} {report}");
        let least = if scale == "none" { 0.4 } else { 0.9 };
        assert!(number(&report, "test_accuracy") > least, "{scale} {report}");
    }
}

#[test]
fn scaled_runs_resume_to_the_same_model() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    tables(folder);
    let line = "train --data t.csv --target 6 --task regression --hidden 3 --nnz 9 -q";
    ok(folder, &format!("{line} --checkpoint a -o a.tamis"));
    ok(folder, &format!("{line} --checkpoint b --passes-limit 300 -o part.tamis"));
    ok(folder, &format!("{line} --checkpoint b --resume -o b.tamis"));
    let bytes = |name: &str| fs::read(folder.join(name)).unwrap();
    assert_eq!(bytes("a.tamis"), bytes("b.tamis"));
    let error = fails(folder, &format!("{line} --scale minmax --checkpoint b --resume -o c.tamis"));
    assert!(error.contains("b"), "{error}");
}

#[test]
fn paths_map_columns_by_their_training_rows() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    tables(folder);
    let line = "train --data t.csv --target 6 --task regression --hidden 2 --nnz 5,8 --folds 3";
    let report = json(folder, &format!("{line} -o sizes"));
    for point in report["points"].as_array().unwrap() {
        assert!(number(point, "nnz") <= number(point, "requested_nnz"), "{point}");
        assert!(number(point, "cv_loss") < 1.0, "{point}");
    }
}

#[test]
fn scales_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    tables(folder);
    let line =
        "train --data t.csv --target 6 --task regression --hidden 2 --scale standard -o m.tamis";
    let error = misuses(folder, &format!("{line} --nnz 2"));
    assert!(error.contains("2 nonzeros"), "{error}");
    let error = misuses(folder, &format!("{line} --nnz 9 --recipe paper --must-keep 0:1"));
    assert!(error.contains("--must-keep"), "{error}");
}
