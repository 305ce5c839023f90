//! The published method for several outputs and classes, from files to models.

use crate::common::*;
use serde_json::json;

const GENERATE: &str =
    "generate planted --samples 3000 --inputs 20 --hidden 5 --outputs 5 --nnz 10 --seed 1 -o p -q";
const TRAIN: &str =
    "train --data p/X.npy --labels p/y.npy --task regression --hidden 5 --nnz 10 --recipe";

#[test]
fn regression_by_either_ranking_scores_as_trained() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), GENERATE);
    // What a network without weights scores.
    let zero = {
        let y = tamis_host::data::load(folder.path().join("p/y.npy")).unwrap().values.into_f32();
        y.iter().map(|y| f64::from(*y).powi(2)).sum::<f64>() / y.len() as f64
    };
    for (rank, words) in [("exact", false), ("sketch", true), ("sketch:0.5", true)] {
        let line =
            format!("{TRAIN} paper-safe --step fixed:1 --epochs 60 --rank {rank} -o m.tamis");
        let report = json(folder.path(), &line);
        assert_eq!(
            (&report["recipe"], &report["outputs"]),
            (&json!("paper-safe"), &json!(5)),
            "{report}"
        );
        assert!(
            number(&report, "nnz") <= 10.0 && number(&report, "loss") < 0.5 * zero,
            "{rank}: {report}"
        );
        assert_eq!(number(&report, "sketch_words") > 0.0, words);
        let state = 24.0 * 10.0 + 4.0 * number(&report, "sketch_words");
        assert_eq!(number(&report, "state_bytes"), state);
        let eval = json(folder.path(), "eval m.tamis --data p/X.npy --labels p/y.npy");
        let (trained, scored) = (number(&report, "loss"), number(&eval, "loss"));
        assert!((trained - scored).abs() <= 1e-5 * trained, "{trained} {scored}");
    }
}

#[test]
fn divergence_is_an_error_unless_recipe_is_safe() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), GENERATE);
    let error =
        fails(folder.path(), &format!("{TRAIN} paper --step fixed:5 --epochs 40 -o m.tamis"));
    assert!(error.contains("diverge") && error.contains("paper-safe"), "{error}");
    let report =
        json(folder.path(), &format!("{TRAIN} paper-safe --step fixed:900 --epochs 40 -o m.tamis"));
    assert!(number(&report, "undone") >= 1.0 && number(&report, "loss").is_finite(), "{report}");
    let single = GENERATE.replace("--outputs 5 ", "").replace("-o p", "-o s");
    ok(folder.path(), &single);
    let one = TRAIN.replace("p/", "s/");
    assert!(
        fails(folder.path(), &format!("{one} paper-safe -o n.tamis"))
            .contains("for several outputs")
    );
    assert!(
        fails(folder.path(), &format!("{one} paper --rank sketch -o n.tamis")).contains("--rank")
    );
}

#[test]
fn classification_is_independent_of_threads_and_memory() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), "generate digits --samples 1500 --side 8 --seed 2 -o d -q");
    let line = concat!(
        "train --data d/X.npy --labels d/y.npy --task multiclass --hidden 12 --nnz 200 --recipe paper ",
        "--epochs 40 --batch 100 --step fixed:0.002"
    );
    let model = |flags: &str| {
        let report = json(folder.path(), &format!("{line} {flags} -o m.tamis"));
        (report, std::fs::read(folder.path().join("m.tamis")).unwrap())
    };
    let (report, bytes) = model("--threads 1");
    assert!(number(&report, "accuracy") > 0.5, "{report}");
    let eval = json(folder.path(), "eval m.tamis --data d/X.npy --labels d/y.npy");
    assert_eq!(eval["accuracy"], report["accuracy"]);
    let (loss, scored) = (number(&report, "loss"), number(&eval, "loss"));
    assert!((loss - scored).abs() < 1e-5, "{loss} {scored}");
    assert_eq!(model("--threads 2").1, bytes);
    let total = |report: &serde_json::Value| {
        number(report, "state_bytes") + number(report, "workspace_bytes")
    };
    let ram = 0.5 * total(&report);
    let (small, _) = model(&format!("--ram {}", ram as u64));
    assert!(total(&small) <= ram, "{small}");
    assert!(fails(folder.path(), &format!("{line} --ram 999 -o n.tamis")).contains("bytes needed"));
}

#[test]
fn gates_follow_weights_at_once_later_or_never() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), GENERATE);
    let one = "generate planted --samples 3000 --inputs 20 --hidden 5 --nnz 10 --seed 1 -o q -q";
    ok(folder.path(), one);
    for data in ["p", "q"] {
        let line = format!(
            "train --data {data}/X.npy --labels {data}/y.npy --task regression --hidden 5 --nnz 10 \
             --recipe paper --trials 1 --epochs 12 -o m.tamis"
        );
        let loss = |flags: &str| {
            let report = json(folder.path(), &format!("{line} {flags}"));
            assert_eq!(number(&report, "epochs"), 12.0);
            number(&report, "loss")
        };
        let usual = loss("");
        assert_eq!(loss("--refresh 1"), usual);
        assert!(loss("--refresh 3") != usual && loss("--convex") != usual);
        let both = format!("{line} --convex --refresh 2");
        let output = run(folder.path(), &both.split_whitespace().collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2));
        assert!(fails(folder.path(), &format!("{line} --refresh 0")).contains("--refresh"));
    }
    let safe = misuses(folder.path(), &format!("{TRAIN} paper-safe --convex -o m.tamis"));
    assert!(safe.contains("--convex with recipe paper"), "{safe}");
}
