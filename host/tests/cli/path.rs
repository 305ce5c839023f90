//! `tamis train --nnz S1,S2…`: what it writes, says and refuses.

use crate::common::*;
use serde_json::json;

const TRAIN: &str = "train --data d/X.npy --labels d/y.npy --task regression --hidden 3";

fn planted(folder: &std::path::Path) {
    json(folder, "generate planted --samples 700 --inputs 12 --hidden 3 --nnz 9 --seed 1 -o d");
}

#[test]
fn path_writes_model_folder_and_cross_validation_picks() {
    let folder = tempfile::tempdir().unwrap();
    planted(folder.path());
    let report = json(folder.path(), &format!("{TRAIN} --nnz 3,9,12 --folds 3 -o sizes"));
    assert_eq!(report["chosen_nnz"], json!(9), "{report}");
    assert_eq!(report["models"], json!(["s3.tamis", "s9.tamis", "s12.tamis"]));
    let read = |name: &str| std::fs::read(folder.path().join("sizes").join(name)).unwrap();
    assert_eq!(read("chosen.tamis"), read("s9.tamis"));
    let kept: serde_json::Value = serde_json::from_slice(&read("path.json")).unwrap();
    assert_eq!(kept, report);
    let eval = json(folder.path(), "eval sizes/chosen.tamis --data d/X.npy --labels d/y.npy");
    assert!(number(&eval, "psnr_db") > 120.0, "{eval}");
    let picture = String::from_utf8(read("path.svg")).unwrap();
    assert!(picture.contains("9 nonzeros chosen") && picture.contains("validation folds"));
    let again = fails(folder.path(), &format!("{TRAIN} --nnz 3,9 -o sizes"));
    assert!(again.contains("not empty"), "{again}");
    let cold = json(folder.path(), &format!("{TRAIN} --nnz 3,9 --cold -o cold"));
    assert_eq!((&cold["chosen"], &cold["points"][1]["warm"]), (&json!(null), &json!(false)));
    assert!(!folder.path().join("cold/chosen.tamis").exists());
    let said = ok(folder.path(), &format!("{TRAIN} --nnz 3,9 --folds 2 -o said"));
    assert!(
        said.contains("chosen") && said.contains("s9.tamis") && said.contains("6 trainings"),
        "{said}"
    );
}

#[test]
fn classes_of_any_depth_have_a_network_for_each_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    ok(path, "generate digits --samples 900 --side 8 --seed 2 -o d -q");
    ok(path, "generate digits --samples 300 --side 8 --seed 3 -o t -q");
    let train = "train --data d/X.npy --labels d/y.npy --task multiclass --epochs 16 --seed 1";
    let test = "--test-data t/X.npy --test-labels t/y.npy";
    let report =
        json(path, &format!("{train} --nnz 100,400 --augment images --folds 2 {test} -o sizes"));
    assert_eq!(report["recipe"], "dynamic", "{report}");
    assert!(report["notes"][0].as_str().unwrap().contains("8×8"), "{report}");
    let points = report["points"].as_array().unwrap();
    // Each has the width that suits it, and is that which is trained alone.
    assert_eq!((&points[0]["hidden"], &points[1]["hidden"]), (&json!([30]), &json!([60])));
    assert!(number(&points[1], "test_accuracy") > number(&points[0], "test_accuracy"));
    assert!(points.iter().all(|point| number(point, "cv_accuracy") > 0.5), "{report}");
    ok(path, &format!("{train} --nnz 400 --augment images -o alone.tamis -q"));
    let read = |name: &str| std::fs::read(path.join(name)).unwrap();
    assert!(read("sizes/s400.tamis") == read("alone.tamis"));
    // What is said of one size is said of each of several, and the largest chooses the recipe.
    let short = format!("{train} --nnz 60,120 --support gmp --start-factor 2 --passes-limit 3");
    let text = ok(path, &format!("{short} -o short"));
    assert!(text.contains("120 nonzeros: gradual pruning began with 240 of"), "{text}");
    assert!(text.contains("ended by the limit of passes"), "{text}");
    let two = train.replace("--task multiclass", "--keep-labels 3,8 --task binary");
    let report = json(path, &format!("{two} --nnz 8,40 --validation 0.2 -o two"));
    assert_eq!(report["recipe"], "dynamic", "{report}");
    let points = report["points"].as_array().unwrap();
    for key in ["validation_loss", "validation_accuracy"] {
        assert!(points.iter().all(|point| point[key].is_f64()), "{key} {report}");
    }
    let error = fails(path, &format!("{train} --nnz 200,200 -o twice"));
    assert!(error.contains("do not rise"), "{error}");
    // Before the first is trained.
    let error = fails(path, &format!("{train} --nnz 20,4000 --hidden 60 --ram 120K -o much"));
    assert!(error.contains("--nnz 4000") && error.contains("memory budget"), "{error}");
    // Several layers, and none.
    let text = ok(path, &format!("{train} --hidden 16,8 --nnz 100,200 {test} -o deep"));
    assert!(text.contains(" of 16, ") && text.contains("test "), "{text}");
    let report = json(path, &format!("{train} --hidden 0 --nnz 50,5000 -o linear"));
    // All that there are.
    assert_eq!(report["models"], json!(["s50.tamis", "s650.tamis"]), "{report}");
    assert_eq!(report["points"][1]["hidden"], json!([]), "{report}");
}

#[test]
fn single_nnz_options_are_refused_writing_nothing() {
    let folder = tempfile::tempdir().unwrap();
    planted(folder.path());
    for (line, what) in [
        ("--nnz 3,9 -o m.tamis", "folder"),
        ("--nnz 9,3 -o out", "[9, 3]"),
        ("--nnz 3,9 --folds 1 -o out", "--folds 2"),
        ("--nnz 9 --folds 3 -o out", "several numbers for --nnz"),
        ("--nnz 9 --cold -o out", "several numbers for --nnz"),
        ("--nnz 3,9 --checkpoint c -o out", "leave --checkpoint out"),
        ("--nnz 3,9 --log l.jsonl -o out", "leave --log out"),
        ("--nnz 3,9 --recipe imp -o out", "one number to --nnz"),
    ] {
        let refused = fails(folder.path(), &format!("{TRAIN} {line}"));
        assert!(refused.contains(what), "{line}: {refused}");
        assert!(
            !folder.path().join("out").exists() && !folder.path().join("m.tamis").exists(),
            "{line}"
        );
    }
}
