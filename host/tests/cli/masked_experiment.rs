//! Accuracies under masks as an experiment: run, resumed, the same for any number of threads, and
//! reported in sentences that follow the numbers.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::*;
use serde_json::{Value, json};

const SPEC: &str = r#"name = "small"
title = "Small masks"
source = "nowhere"
[[part]]
name = "masks"
title = "Small masks"
s = [300, 900]
epochs = 3
methods = ["masked"]
seeds = [0, 1]
metric = "accuracy"
range = [0, 1]
variants = [
    { name = "seed", mask = { method = "synflow", rounds = 5 } },
    { name = "snip", mask = { method = "snip", sample = true } },
    { name = "sparse", mask = { method = "ntk", rows = "sparse" } },
    { name = "rms", mask = { method = "synflow", exact = true, rounds = 3, input = "pixel-rms" } },
    { name = "chance", mask = { method = "random" } },
    { name = "anneal", neurons = 12 },
]
claims = [
    { says = "Annealing minus chance", of = ["anneal"], minus = ["chance"], least = [1] },
    { says = "Overlap", of = ["seed"], metric = "overlap", least = [0.1, 0.2] },
]
data = { kind = "masked", from = "digits", hidden = [12, 9], train = 12, test = 8, inputs = "standardised", initial = "pytorch" }
"#;

/// The records but for what time and memory were measured, and threads.
fn records(folder: &Path) -> BTreeMap<String, Value> {
    let text = std::fs::read_to_string(folder.join("results.jsonl")).unwrap();
    let record = |line: &str| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        record["threads"] = Value::Null;
        for key in ["seconds", "heap_peak_bytes", "rss_peak_bytes", "workspace_bytes"] {
            record["solved"][key] = Value::Null;
        }
        record["solved"]["measured"]["mask-seconds"] = Value::Null;
        (record["id"].as_str().unwrap().to_owned(), record)
    };
    text.lines().map(record).collect()
}

#[test]
fn masked_accuracies_are_the_same_for_any_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("small.toml"), SPEC).unwrap();
    let done = json(path, "run small.toml -o one --jobs 2 --threads 1");
    assert_eq!((&done["done"], &done["ran"]), (&json!(24), &json!(24)), "{done}");
    let again = json(path, "run small.toml -o one");
    assert_eq!((&again["before"], &again["ran"]), (&json!(24), &json!(0)), "{again}");
    json(path, "run small.toml -o three --jobs 1 --threads 3");
    let (one, three) = (records(&path.join("one")), records(&path.join("three")));
    assert_eq!(one, three);
    for (id, record) in &one {
        let solved = &record["solved"];
        let accuracy = number(&solved["test"], "accuracy");
        assert!((0.0..=1.0).contains(&accuracy), "{id}: {accuracy}");
        let is_mask = record["variant"] != "anneal";
        assert!(solved["nnz"] == record["s"] || !is_mask, "{id}");
        assert_eq!(solved["measured"]["dead-weights"].is_number(), is_mask, "{id}");
        assert_eq!(solved["measured"]["overlap"].is_number(), record["variant"] == "seed", "{id}");
    }
}

#[test]
fn sentences_of_claims_follow_the_records() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let spec = SPEC.replace("s = [300, 900]", "s = [300]").replace("[0.1, 0.2]", "[0.1]");
    std::fs::write(path.join("small.toml"), spec).unwrap();
    json(path, "run small.toml -o results");
    let sentence = |name: &str| {
        json(path, &format!("report results -o {name}"));
        let md = std::fs::read_to_string(path.join(name).join("report.md")).unwrap();
        let line = md.lines().find(|line| line.contains("Annealing minus chance")).unwrap();
        line.to_owned()
    };
    let before = sentence("before");
    assert!(
        before.contains("at s = 300 (3.1 %): ") && before.contains("95 % interval"),
        "{before}"
    );
    for seed in [0, 1] {
        let file = path.join(format!("results/cells/masks-masked-m0-s300-anneal-seed{seed}.json"));
        let mut record: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let test = &mut record["solved"]["test"]["accuracy"];
        *test = json!(0.001 * f64::from(seed));
        std::fs::write(&file, record.to_string()).unwrap();
    }
    let after = sentence("after");
    assert!(after != before && after.contains(": -"), "{after}");
}

#[test]
fn the_experiment_on_masks_runs_without_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let run = "run sketch-masks --profile smoke -o results --jobs 2 --threads 1";
    let done = json(path, run);
    assert_eq!(done["done"], done["cells"], "{done}");
    let report = json(path, "report results -o report");
    let files = report["files"].as_array().unwrap();
    let picture = "sketch-masks-masks-accuracy-1.svg";
    let file = files.iter().find(|file| file.as_str().unwrap().ends_with(picture)).unwrap();
    let svg = std::fs::read_to_string(path.join(file.as_str().unwrap())).unwrap();
    assert!(roxmltree::Document::parse(&svg).is_ok() && !svg.contains("no data"), "{svg}");
    let md = std::fs::read_to_string(path.join("report/report.md")).unwrap();
    for text in ["Overlap of SynFlow", "points (95 % interval", "sparse training, 20 neurons"] {
        assert!(md.contains(text), "{text}");
    }
}
