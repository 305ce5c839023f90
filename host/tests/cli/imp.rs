//! `tamis train --recipe imp`: every task from files to a model that is evaluated to the same
//! score, runs that go on, and what is refused.

use std::fs;
use std::path::Path;

use crate::common::*;
use serde_json::{Value, json};

const PLANT: &str =
    "generate planted --samples 400 --inputs 12 --hidden 3 --nnz 6 --seed 3 -o p -q";
const TRAIN: &str = "train --data p/X.npy --labels p/y.npy --task regression --recipe imp --epochs 5 --batch 40 --rate 0.01";

fn planted() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), PLANT);
    folder
}

/// Trains, and evaluates the model on the same rows to the same score.
fn trained(folder: &Path, line: &str, rows: &str) -> Value {
    let report = json(folder, &format!("{line} -o m.tamis"));
    assert_eq!(report["recipe"], json!("imp"));
    assert_eq!(report["nnz"], report["requested_nnz"]);
    let eval = json(folder, &format!("eval m.tamis {rows}"));
    for name in ["task", "loss", "psnr_db", "accuracy"] {
        assert_eq!(eval[name], report[name], "{name} of {line}");
    }
    let cost = json(folder, "inspect m.tamis");
    assert_eq!((&cost["total"]["nnz"], &cost["hidden"]), (&report["nnz"], &report["hidden"]));
    report
}

#[test]
fn every_task_trains_and_evaluates_to_same_score() {
    let folder = planted();
    let own = "--data p/X.npy --labels p/y.npy";
    for (flags, hidden, dense) in [
        ("--hidden 6 --nnz 20", json!([6]), 78),
        ("--hidden 6 --nnz 20 --sum-output", json!([6]), 72),
        ("--hidden 7,5,4 --nnz 40", json!([7, 5, 4]), 7 * 12 + 35 + 20 + 4),
        ("--hidden 7,5 --density 0.25 --sum-output", json!([7, 5]), 7 * 12 + 35),
        ("--hidden 6 --nnz 2 --prune-fraction 0.5", json!([6]), 78),
        (
            "--hidden 6 --nnz 20 --one-shot --optimiser sgd --weight-decay 0.001 --rate-falls 2,4",
            json!([6]),
            78,
        ),
    ] {
        let report = trained(folder.path(), &format!("{TRAIN} {flags}"), own);
        assert_eq!((&report["hidden"], &report["dense_nnz"]), (&hidden, &json!(dense)), "{flags}");
        let levels = report["levels"].as_array().unwrap();
        assert_eq!(
            (&levels[0]["nnz"], levels.len() as u64 - 1),
            (&json!(dense), report["rounds"].as_u64().unwrap())
        );
        let last = levels[levels.len() - 1]["loss"].as_f64().unwrap();
        assert!(
            (last / report["loss"].as_f64().unwrap() - 1.0).abs() < 1e-4,
            "{flags}: {last} {report}"
        );
    }
    ok(
        folder.path(),
        "generate planted --samples 300 --inputs 9 --hidden 3 --outputs 4 --nnz 12 -o c -q",
    );
    let line = TRAIN.replace("p/", "c/");
    let report = trained(
        folder.path(),
        &format!("{line} --hidden 5 --nnz 30"),
        "--data c/X.npy --labels c/y.npy",
    );
    assert_eq!((&report["outputs"], &report["dense_nnz"]), (&json!(4), &json!(65)));

    ok(folder.path(), "generate digits --samples 400 --side 8 -o d -q");
    let digits = "--data d/X.npy --labels d/y.npy";
    let line = format!(
        "train {digits} --recipe imp --epochs 8 --batch 20 --rate 0.01 --prune-fraction 0.3 --hidden 16"
    );
    let report = trained(folder.path(), &format!("{line} --task multiclass --nnz 300"), digits);
    assert!(report["accuracy"].as_f64().unwrap() > 0.8, "{report}");
    assert_eq!((&report["input_scale"], &report["psnr_db"]), (&json!(1.0 / 256.0), &json!(null)));
    let raw =
        trained(folder.path(), &format!("{line} --task multiclass --nnz 300 --raw-inputs"), digits);
    assert_eq!(raw["input_scale"], json!(1.0));
    let two = format!("{digits} --keep-labels 3,8");
    let line = line.replace(digits, &two);
    let report = trained(folder.path(), &format!("{line} --task binary --nnz 60"), &two);
    assert!(report["accuracy"].as_f64().unwrap() > 0.9, "{report}");
    let said = ok(folder.path(), &format!("{line} --task binary --nnz 60 -o m.tamis"));
    for part in ["of 16 count", "accuracy", "rounds of pruning", "dense training"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn test_rows_are_scored_level_by_level() {
    let folder = planted();
    ok(folder.path(), &PLANT.replace("-o p", "-o t").replace("400", "200"));
    let line =
        format!("{TRAIN} --hidden 6 --nnz 20 --test-data t/X.npy --test-labels t/y.npy -o m.tamis");
    let report = json(folder.path(), &line);
    let level = report["levels"].as_array().unwrap().last().unwrap();
    let eval = json(folder.path(), "eval m.tamis --data t/X.npy --labels t/y.npy");
    let ratio = level["test_loss"].as_f64().unwrap() / eval["loss"].as_f64().unwrap();
    assert!((ratio - 1.0).abs() < 1e-4, "{level} {eval}");
    assert!(level["test_psnr_db"].is_f64() && level["test_accuracy"].is_null());
    assert!(ok(folder.path(), &line).contains("\n  test "));
}

#[test]
fn threads_and_folder_leave_model_bit_identical() {
    let folder = planted();
    let line = format!("{TRAIN} --hidden 6,4 --nnz 20 --rewind 2");
    ok(folder.path(), &format!("{line} --threads 1 -o one.tamis"));
    ok(folder.path(), &format!("{line} --threads 3 --checkpoint run --keep-levels -o three.tamis"));
    ok(folder.path(), &format!("{line} --checkpoint run --resume -o again.tamis"));
    let [one, three, again] = ["one", "three", "again"]
        .map(|m| fs::read(folder.path().join(format!("{m}.tamis"))).unwrap());
    assert!(one == three && one == again);
    let levels =
        json(folder.path(), &format!("{line} -o m.tamis"))["levels"].as_array().unwrap().len();
    assert!(folder.path().join(format!("run/level-{:03}.npz", levels - 1)).exists());
    assert!(!folder.path().join(format!("run/level-{levels:03}.npz")).exists());
}

#[test]
#[cfg(unix)]
fn an_interrupted_run_resumes_to_the_same_model() {
    let folder = planted();
    let line = format!(
        "{} --hidden 30,20 --nnz 20",
        TRAIN.replace("--epochs 5 --batch 40", "--epochs 60 --batch 8")
    );
    ok(folder.path(), &format!("{line} -o whole.tamis"));
    let run = format!("{line} --checkpoint run --json -o part.tamis");
    let mut child = command(folder.path(), &run.split_whitespace().collect::<Vec<_>>())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while !folder.path().join("run/imp.npz").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(child.try_wait().unwrap().is_none(), "ended before its first level");
    }
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["stopped"], &report["nnz"]), (&json!(true), &json!(20)));
    assert_eq!(json(folder.path(), "inspect part.tamis")["total"]["nnz"], json!(20));
    assert!(fails(folder.path(), &run).contains("--resume"));
    ok(folder.path(), &run.replace("--json", "-q --resume"));
    let [whole, part] =
        ["whole", "part"].map(|m| fs::read(folder.path().join(format!("{m}.tamis"))).unwrap());
    assert!(whole == part);
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let folder = planted();
    let refused = |flags: &str| fails(folder.path(), &format!("{TRAIN} {flags} -o m.tamis"));
    for (flags, part) in [
        ("--hidden 0 --nnz 2", "--hidden"),
        ("--hidden 6 --nnz 0", "--nnz 1 to 78"),
        ("--hidden 6 --density 1.5", "--density"),
        ("--hidden 99999 --nnz 9", "65536"),
        ("--hidden 4,4,4,4,4,4,4,4 --nnz 9", "at most 7 layers"),
        ("--hidden 6 --nnz 9 --prune-fraction 0", "--prune-fraction"),
        ("--hidden 6 --nnz 9 --rewind 5", "--rewind 0 to 4"),
        ("--hidden 6 --nnz 9 --momentum 0.5", "--optimiser sgd"),
        ("--hidden 6 --nnz 9 --optimiser sgd --momentum 1", "--momentum"),
        ("--hidden 6 --nnz 9 --rate-factor 0", "--rate-factor"),
        ("--hidden 6 --nnz 9 --weight-decay -1", "--weight-decay"),
        ("--hidden 6 --nnz 9 --test-data p/X.npy", "--test-labels"),
        ("--hidden 6 --nnz 9 --checkpoint p/X.npy", "another folder"),
    ] {
        assert!(refused(flags).contains(part), "{flags}: {}", refused(flags));
    }
    let no_rate = TRAIN.replace("--rate 0.01", "--rate 0");
    assert!(
        fails(folder.path(), &format!("{no_rate} --hidden 6 --nnz 9 -o m.tamis"))
            .contains("--rate above 0")
    );
    ok(
        folder.path(),
        "generate planted --samples 300 --inputs 9 --hidden 3 --outputs 4 --nnz 12 -o c -q",
    );
    let several = TRAIN.replace("p/", "c/");
    let sum =
        fails(folder.path(), &format!("{several} --hidden 6 --nnz 9 --sum-output -o m.tamis"));
    assert!(sum.contains("--sum-output"));
    // A run of other settings or of other data stays as it is.
    ok(folder.path(), &format!("{TRAIN} --hidden 6 --nnz 20 --checkpoint run -q -o k.tamis"));
    assert!(refused("--hidden 6 --nnz 20 --checkpoint run").contains("--resume"));
    assert!(refused("--hidden 6 --nnz 21 --checkpoint run --resume").contains("nnz 21"));
    let rows = TRAIN.replace("p/", "c/");
    let rows = fails(
        folder.path(),
        &format!("{rows} --hidden 6 --nnz 20 --checkpoint run --resume -o m.tamis"),
    );
    assert!(rows.contains("other settings or other data"), "{rows}");
    fs::write(folder.path().join("run/imp.npz"), b"PK\x03\x04 no archive").unwrap();
    assert!(refused("--hidden 6 --nnz 20 --checkpoint run --resume").contains("imp.npz"));
}
