//! Ctrl-C leaves what there is.

use crate::common::*;
use serde_json::{Value, json};
use tamis_host::data;
use tamis_host::model::ModelFile;

#[test]
#[cfg(unix)]
fn ctrl_c_saves_what_there_is() {
    let folder = prepared();
    interrupt(
        folder.path(),
        &format!("{TRAIN} --recipe paper --epochs 100000000 --json -o long.tamis"),
    );
    // Labels that no network of this size explains: the search goes on for long.
    let labels = data::load_labels(folder.path().join("p/y.npy")).unwrap();
    let hard: Vec<f32> = labels.iter().enumerate().map(|(k, y)| y + (k * k % 7) as f32).collect();
    data::save_npy(folder.path().join("p/hard.npy"), &hard[..], &[hard.len()]).unwrap();
    let line = TRAIN.replace("p/y.npy", "p/hard.npy");
    interrupt(
        folder.path(),
        &format!(
            "{line} --recipe lm --kicks 100000000 --idle-kicks 100000000 --json -o long.tamis"
        ),
    );
}

#[cfg(unix)]
fn interrupt(folder: &std::path::Path, line: &str) {
    use std::time::Duration;
    let path = folder.join("long.tamis");
    drop(std::fs::remove_file(&path));
    for wait in [300, 1000, 3000, 10_000] {
        let mut command = command(folder, &line.split_whitespace().collect::<Vec<_>>());
        let child = command
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        let killed =
            std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(killed.unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130));
        if !path.exists() {
            continue; // interrupted while it was still loading
        }
        let (out, err) = texts(&output);
        assert!(err.contains("interrupted"), "{err}");
        let report: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&report["stopped"], &report["nnz"]), (&json!(true), &json!(6)));
        ModelFile::load(&path).unwrap();
        return;
    }
    panic!("training never began");
}

/// A step of these sizes takes minutes; before the first one there is nothing to save, and what is
/// there stays.
#[test]
#[cfg(unix)]
fn ctrl_c_is_seen_within_a_step() {
    use std::time::{Duration, Instant};
    let folder = prepared();
    let before = std::fs::read(folder.path().join("m.tamis")).unwrap();
    for flags in ["--trials 1", "--trials 16", "--trials 1 --step theory"] {
        let sizes = TRAIN.replace("--hidden 3", "--hidden 357913941");
        let line = format!("{sizes} {flags} --json -o m.tamis");
        let child = command(folder.path(), &line.split_whitespace().collect::<Vec<_>>())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(1500));
        let asked = Instant::now();
        let killed =
            std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(killed.unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert!(asked.elapsed() < Duration::from_secs(5), "{flags}: {:?}", asked.elapsed());
        let (out, err) = texts(&output);
        assert_eq!((output.status.code(), &out[..]), (Some(130), ""), "{flags}\n{err}");
        assert!(err.contains("interrupted") && err.contains("nothing is saved"), "{err}");
        assert_eq!(std::fs::read(folder.path().join("m.tamis")).unwrap(), before);
    }
}

/// A change of the support of these sizes takes many seconds.
#[test]
#[cfg(unix)]
fn ctrl_c_is_seen_while_a_support_changes() {
    use std::time::{Duration, Instant};
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), "generate digits --samples 6000 --side 16 -o d");
    let line = "train --data d/X.npy --labels d/y.npy --task multiclass --recipe anneal --hidden 100000 --nnz 300 --start-factor 1 \
        --epochs 2 --json -o m.tamis";
    let path = folder.path().join("m.tamis");
    for wait in [500, 1500, 3000, 6000] {
        let child = command(folder.path(), &line.split_whitespace().collect::<Vec<_>>())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        let asked = Instant::now();
        let killed =
            std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(killed.unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert!(asked.elapsed() < Duration::from_secs(5), "{wait}: {:?}", asked.elapsed());
        let (out, err) = texts(&output);
        assert_eq!(output.status.code(), Some(130), "{out}{err}");
        if !path.exists() {
            continue; // before the first step
        }
        let report: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&report["stopped"], &report["recipe"]), (&json!(true), &json!("anneal")));
        assert_eq!(report["validation_loss"], Value::Null);
        let eval = json(folder.path(), "eval m.tamis --data d/X.npy --labels d/y.npy");
        assert!(number(&report, "nnz") <= 300.0 && eval["task"] == json!("multiclass"), "{report}");
        return;
    }
    panic!("training never began");
}

/// An epoch of these sizes takes many seconds, and so does a mask.
#[test]
#[cfg(unix)]
fn ctrl_c_under_a_mask_saves_the_steps_of_the_first_epoch() {
    use std::time::Duration;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ok(folder, "generate digits --samples 6000 --side 16 -o d -q");
    let layers = "--layers 256,3000,3000,10 --density 0.2";
    ok(folder, &format!("mask {layers} --method random -o m.tamis -q"));
    let interrupted = |line: &str, wait: u64| {
        let child = command(folder, &line.split_whitespace().collect::<Vec<_>>())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        let killed =
            std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(killed.unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{line}: {}", texts(&output).1);
        texts(&output)
    };
    let (out, err) = interrupted(
        "mask --layers 5000,20000,20000,10 --density 0.01 --method synflow -o long.npz --json",
        500,
    );
    assert_eq!((&out[..], err.contains("nothing is saved")), ("", true), "{err}");
    assert!(!folder.join("long.npz").exists());
    let line = "train --mask m.tamis --data d/X.npy --labels d/y.npy --task multiclass --threads 1 --json --batch 16 \
        -o long.tamis";
    for wait in [500, 1500, 3000, 6000] {
        let (out, _) = interrupted(line, wait);
        if !folder.join("long.tamis").exists() {
            continue; // before the first step
        }
        let report: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&report["stopped"], &report["epochs"]), (&json!(true), &json!(0)), "{report}");
        assert!((1..375).contains(&report["steps"].as_u64().unwrap()), "{report}");
        ModelFile::load(folder.join("long.tamis")).unwrap();
        return;
    }
    panic!("training never began");
}
