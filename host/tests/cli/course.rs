//! Limits, log and picture of the recipes: what ends a run early, and what tells of it.

use std::path::Path;

use crate::common::*;
use serde_json::{Value, json};

const DIGITS: &str = "generate digits --samples 1200 --side 8 --seed 2 -o d -q";
const CLASSES: &str =
    "train --data d/X.npy --labels d/y.npy --task multiclass --recipe anneal --hidden 10 --nnz 120";
/// Without a recipe.
fn plain() -> String {
    CLASSES.replace(" --recipe anneal", "")
}

const PLANTED: &str =
    "generate planted --samples 2000 --inputs 20 --hidden 5 --nnz 20 --seed 1 -o p -q";
const ONE: &str = "train --data p/X.npy --labels p/y.npy --task regression --hidden 5 --nnz 20";

/// The steps of a log, and the result at its end.
fn log(folder: &Path, name: &str) -> (Vec<Value>, Value) {
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    assert!(text.ends_with('\n'));
    let mut lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let result = lines.pop().unwrap();
    assert!(lines.iter().all(|line| line["result"].is_null()) && result["result"] == json!(true));
    for key in ["step", "passes", "seconds"] {
        let rising = |pair: &[Value]| number(&pair[0], key) <= number(&pair[1], key);
        assert!(lines.windows(2).all(rising), "{key}");
    }
    (lines, result)
}

/// The words of a picture.
fn words(folder: &Path, name: &str) -> String {
    let picture = std::fs::read_to_string(folder.join(name)).unwrap();
    let document = roxmltree::Document::parse(&picture).unwrap();
    document
        .descendants()
        .filter_map(|node| node.text())
        .map(str::trim)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Trains with a log and a picture, which change nothing; the report, the steps and the words of
/// the picture.
fn told(folder: &Path, line: &str) -> (Value, Vec<Value>, String) {
    json(folder, &format!("{line} -o plain.tamis"));
    let report = json(folder, &format!("{line} --log l.jsonl --picture r.svg -o m.tamis"));
    let model = |name: &str| std::fs::read(folder.join(name)).unwrap();
    assert!(model("plain.tamis") == model("m.tamis"), "a log changed the model");
    let (lines, result) = log(folder, "l.jsonl");
    for key in ["recipe", "nnz", "loss", "limit", "passes", "stopped"] {
        assert_eq!(result[key], report[key], "{key}");
    }
    (report, lines, words(folder, "r.svg"))
}

#[test]
fn classes_are_logged_step_by_step_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), DIGITS);
    let (report, lines, words) = told(folder.path(), &format!("{CLASSES} --epochs 20 --batch 108"));
    assert_eq!((json!(lines.len()), lines.len()), (report["steps"].clone(), 200));
    assert_eq!((&report["limit"], &report["stopped"]), (&Value::Null, &json!(false)));
    let [first, last] = [&lines[0], &lines[199]];
    assert_eq!((&first["epoch"], &last["epoch"]), (&json!(1), &json!(20)));
    // The support shrinks to the nonzeros of the model; the loss falls; the rate ends near 0.
    assert!(number(first, "nnz") > 120.0 && last["nnz"] == report["nnz"], "{first} {last}");
    assert!(number(last, "loss") < number(first, "loss") && number(last, "rate") < 1e-4);
    // Rows held out are looked at after the epochs on the final support, and the best of these
    // losses is the result's.
    let held: Vec<&Value> =
        lines.iter().filter(|line| line["validation_loss"].is_number()).collect();
    assert!(!held.is_empty() && held.iter().all(|line| number(line, "step") % 10.0 == 0.0));
    let least =
        held.iter().map(|line| number(line, "validation_loss")).fold(f64::INFINITY, f64::min);
    assert!((least - number(&report, "validation_loss")).abs() < 1e-6, "{least} {report}");
    for word in ["Training", "batch", "validation", "weights", "live neurons"] {
        assert!(words.contains(word), "{word}: {words}");
    }
    let (_, lines, words) = told(folder.path(), &format!("{CLASSES} --epochs 4 --validation 0"));
    assert!(
        lines.iter().all(|line| line.get("validation_loss").is_none())
            && !words.contains("validation")
    );
}

#[test]
fn a_resumed_log_is_that_of_one_run() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), DIGITS);
    ok(folder.path(), PLANTED);
    let steps = |name: &str| {
        let (mut lines, _) = log(folder.path(), name);
        lines.iter_mut().for_each(|line| {
            line.as_object_mut().unwrap().remove("seconds");
        });
        lines
    };
    for (k, (line, limit)) in [
        (format!("{CLASSES} --epochs 8 --batch 108"), 3.1),
        (format!("{} --epochs 9", CLASSES.replace("anneal", "dynamic")), 4.0),
        (format!("{ONE} --recipe lm"), 150.0),
        (format!("{ONE} --recipe paper --epochs 6"), 20.0),
    ]
    .into_iter()
    .enumerate()
    {
        ok(folder.path(), &format!("{line} --log whole{k} -o whole.tamis -q"));
        let part = format!("{line} --checkpoint state{k} --resume --log part{k} -o part.tamis");
        let report = json(folder.path(), &format!("{part} --passes-limit {limit}"));
        assert_eq!(report["limit"], json!("passes"), "{line}");
        let first = steps(&format!("part{k}"));
        assert!(!first.is_empty());
        ok(folder.path(), &format!("{part} -q"));
        let [whole, part] = [steps(&format!("whole{k}")), steps(&format!("part{k}"))];
        assert_eq!(whole, part, "{line}");
        assert!(first[0] == whole[0] && first.len() < 2 * whole.len());
    }
    // A file that is no log is not written over.
    std::fs::write(folder.path().join("notes"), "{\"step\": 1}\nbuy milk\n").unwrap();
    let line = format!("{ONE} --checkpoint state1 --resume --log notes -o part.tamis -q");
    let error = fails(folder.path(), &line);
    assert!(error.contains("notes") && error.contains("line 2"), "{error}");
    assert!(std::fs::read_to_string(folder.path().join("notes")).unwrap().ends_with("buy milk\n"));
}

#[test]
fn very_long_log_has_one_line_per_epoch() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), DIGITS);
    let (report, lines, _) = told(folder.path(), &format!("{CLASSES} --epochs 20 --batch 2"));
    assert_eq!((number(&report, "steps"), lines.len()), (10_800.0, 20));
    assert!(lines.iter().all(|line| number(line, "step") == 540.0 * number(line, "epoch")));
}

#[test]
fn limits_end_classification_with_its_best_weights() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), DIGITS);
    let (report, lines, _) =
        told(folder.path(), &format!("{CLASSES} --batch 108 --passes-limit 30"));
    assert_eq!((&report["limit"], &report["stopped"]), (&json!("passes"), &json!(false)));
    assert_eq!((&report["nnz"], json!(lines.len())), (&json!(120), report["steps"].clone()));
    // The first step at which the passes are done is the last.
    let [before, last] = [&lines[lines.len() - 2], &lines[lines.len() - 1]];
    assert!(number(before, "passes") < 30.0 && number(last, "passes") >= 30.0, "{before} {last}");
    assert!(number(last, "nnz") > 120.0 && number(last, "step") < 1000.0);
    let limited = json(folder.path(), &format!("{CLASSES} --time-limit 1e-9 -o t.tamis"));
    assert_eq!((&limited["limit"], &limited["steps"]), (&json!("time"), &json!(1)));
    let said = ok(folder.path(), &format!("{CLASSES} --time-limit 1e-9 -o t.tamis"));
    assert!(said.contains("ended by the limit of time"), "{said}");
}

#[test]
fn the_published_method_is_limited_logged_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), PLANTED);
    ok(folder.path(), DIGITS);
    let one = format!("{ONE} --recipe paper");
    let (report, lines, words) = told(folder.path(), &one);
    // Steps of the trials first, then those on all rows.
    let on_all = lines.iter().filter(|line| line["trial"] == json!(0)).count();
    assert!(lines.len() > on_all && json!(on_all) == report["steps"], "{report}");
    assert!(words.contains("Training") && words.contains("random start"), "{words}");
    for line in [
        format!("{one} --trials 1"),
        one,
        format!("{} --recipe paper --step fixed:0.002", plain()),
        format!("{} --recipe paper-safe --batch 100", plain()),
    ] {
        let (report, lines, _) = told(folder.path(), &format!("{line} --passes-limit 12"));
        assert_eq!(
            (&report["limit"], &report["stopped"]),
            (&json!("passes"), &json!(false)),
            "{line}"
        );
        assert!(lines.iter().rev().skip(1).all(|line| number(line, "passes") < 12.0), "{line}");
        assert!(number(&report, "nnz") > 0.0 && number(&report, "loss").is_finite());
        let limited = json(folder.path(), &format!("{line} --time-limit 1e-9 -o t.tamis"));
        assert_eq!(limited["limit"], json!("time"), "{line}");
    }
    // 600 epochs of 20 batches are too many for a line a step.
    let many = format!("{ONE} --recipe paper --trials 1 --batch 100 --epochs 600");
    let (report, lines, _) = told(folder.path(), &many);
    assert_eq!((number(&report, "steps"), lines.len()), (12_000.0, 6000));
}

#[test]
fn log_of_stopped_search_shows_the_result() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), PLANTED);
    let (report, lines, _) = told(folder.path(), &format!("{ONE} --passes-limit 1"));
    assert_eq!((&report["exact"], &report["limit"]), (&json!(false), &json!("passes")));
    // What follows the limit is among the steps.
    let last = lines.last().unwrap();
    assert_eq!(
        (&last["phase"], &last["support"], &report["nnz"]),
        (&json!("polish"), &json!(20), &json!(20))
    );
    assert!(number(&report, "loss") <= number(last, "best"), "{report} {last}");
}

#[test]
fn logged_best_is_loss_of_final_support() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), &PLANTED.replace("-o p", "--noise 0.5 -o p"));
    let (report, lines, words) = told(folder.path(), &format!("{ONE} --kicks 3 --turns 0"));
    let (loss, last) = (number(&report, "loss"), lines.last().unwrap());
    assert!((number(last, "best") - loss).abs() < 1e-5 * loss, "{report} {last}");
    // The search goes through networks of more weights, whose loss is less.
    assert!(number(last, "search_best") < 0.999 * loss, "{last}");
    for line in lines.iter().filter(|line| !line["best"].is_null()) {
        assert!(number(line, "best") > 0.999 * loss, "{line}");
    }
    assert!(
        words.contains("best of s weights") && words.contains("best of any support"),
        "{words}"
    );
}

#[test]
fn duplicate_output_and_input_paths_are_always_refused() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), PLANTED);
    ok(folder.path(), DIGITS);
    for line in [CLASSES.to_owned(), ONE.to_owned(), format!("{ONE} --recipe paper")] {
        let data = if line.starts_with(CLASSES) { "d" } else { "p" };
        for twice in ["--log n.tamis", "--log a --picture a", &format!("--picture {data}/X.npy")] {
            let error = fails(folder.path(), &format!("{line} {twice} -o n.tamis"));
            assert!(error.contains("expected:"), "{line} {twice}: {error}");
            assert!(!folder.path().join("a").exists() && !folder.path().join("n.tamis").exists());
        }
        let error = fails(folder.path(), &format!("{line} --log missing/l.jsonl -o n.tamis"));
        assert!(error.contains("missing"), "{error}");
    }
    let imp = format!("{} --recipe imp --log l.jsonl -o n.tamis", plain());
    let error = misuses(folder.path(), &imp);
    assert!(error.contains("--log") && error.contains("--recipe anneal"), "{error}");
}
