//! What `tamis compare` says of a log of a device: agreement, the first difference and its exit code,
//! and what is refused.

use crate::common::*;
use serde_json::{Value, json};
use std::path::Path;
use tamis::infer::trace;
use tempfile::TempDir;

/// A model of floats with its rows, one of integers made of it, and what both give on four rows.
fn dumped() -> TempDir {
    let folder = prepared();
    ok(folder.path(), "quantize m.tamis --data p/X.npy -o q.tamis -q");
    ok(folder.path(), "compare m.tamis --data p/X.npy --rows 0..4 --dump m.log -q");
    ok(folder.path(), "compare q.tamis --data p/X.npy --rows 0..4 --dump q.log -q");
    folder
}

fn text(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// Writes `bad.log`: the log with other bits of one number, its row's checksum made anew.
fn changed(
    folder: &Path,
    name: &str,
    row: usize,
    layer: u32,
    neuron: u32,
    change: impl Fn(u32) -> u32,
) {
    let (mut out, mut at, mut numbers) = (String::new(), 0, Vec::new());
    for line in text(folder, name).lines() {
        let words: Vec<_> = line.split(' ').collect();
        match words[1..] {
            ["end", count, _] => {
                let sum = trace::checksum(numbers.drain(..));
                out += &format!("@tamis end {count} {sum:08x}\n");
                at += 1;
            }
            [a, b, bits] if [a, b].iter().all(|word| word.parse::<u32>().is_ok()) => {
                let [a, b] = [a, b].map(|word| word.parse::<u32>().unwrap());
                let mut bits = u32::from_str_radix(bits, 16).unwrap();
                if (at, a, b) == (row, layer, neuron) {
                    bits = change(bits);
                }
                numbers.push([a, b, bits]);
                out += &format!("@tamis {a} {b} {bits:08x}\n");
            }
            _ => {
                out += line;
                out += "\n";
            }
        }
    }
    std::fs::write(folder.join("bad.log"), out).unwrap();
}

/// Exit code, the object, and standard error.
fn judged(folder: &Path, line: &str) -> (Option<i32>, Value, String) {
    let output = run(folder, &line.split_whitespace().collect::<Vec<_>>());
    let (out, err) = texts(&output);
    (output.status.code(), serde_json::from_str(&out).unwrap_or(Value::Null), err)
}

#[test]
fn a_device_that_gives_the_same_agrees() {
    let folder = dumped();
    for (model, log, kind) in [("m.tamis", "m.log", "floats"), ("q.tamis", "q.log", "integers")] {
        let line = format!("compare {model} --data p/X.npy --device {log}");
        let report = json(folder.path(), &line);
        assert_eq!(
            (&report["agree"], &report["rows"], &report["first"]),
            (&json!(true), &json!(4), &Value::Null)
        );
        assert_eq!(report["numbers_are"], json!(kind));
        assert_eq!(report["layers"].as_array().unwrap().len(), 2, "{report}");
        assert_eq!(report["numbers"], json!(number(&report["layers"][0], "numbers") as u64 + 4));
        assert!(ok(folder.path(), &line).contains("bit-identical"));
    }
    // The log says what predict says.
    ok(folder.path(), "predict m.tamis --data p/X.npy -o y.csv -q");
    let first: f32 = text(folder.path(), "y.csv").lines().nth(1).unwrap().parse().unwrap();
    let line = format!("@tamis 1 0 {:08x}", first.to_bits());
    assert!(text(folder.path(), "m.log").lines().any(|own| own == line), "{line}");
}

#[test]
fn first_difference_is_named_bitwise_with_exit_3() {
    let folder = dumped();
    // The least bit, on two rows: the first one counts.
    changed(folder.path(), "m.log", 2, 1, 0, |bits| bits ^ 1);
    std::fs::rename(folder.path().join("bad.log"), folder.path().join("one.log")).unwrap();
    changed(folder.path(), "one.log", 1, 0, 1, |_| f32::to_bits(-3.5));
    let (code, report, err) =
        judged(folder.path(), "compare m.tamis --data p/X.npy --device bad.log --json");
    assert_eq!((code, &report["agree"], &report["differ"]), (Some(3), &json!(false), &json!(2)));
    let first = &report["first"];
    assert_eq!(
        (&first["row"], &first["layer"], &first["neuron"]),
        (&json!(1), &json!(0), &json!(1))
    );
    assert_eq!((&first["got"], &first["got_bits"]), (&json!(-3.5), &json!("c0600000")));
    assert!(err.contains("first in row 1, layer 0, neuron 1"), "{err}");
    assert_eq!(
        (&report["layers"][0]["differ"], &report["layers"][1]["differ"]),
        (&json!(1), &json!(1))
    );

    let output =
        run(folder.path(), &["compare", "m.tamis", "--data", "p/X.npy", "--device", "one.log"]);
    let (out, _) = texts(&output);
    assert_eq!(output.status.code(), Some(3));
    assert!(out.contains("First difference: row 2, layer 1, neuron 0"), "{out}");

    changed(folder.path(), "q.log", 3, 1, 0, |bits| bits.wrapping_sub(1));
    let (code, report, _) =
        judged(folder.path(), "compare q.tamis --data p/X.npy --device bad.log --json");
    assert_eq!((code, &report["first"]["row"]), (Some(3), &json!(3)));
    assert_eq!(number(&report["first"], "expected") - 1.0, number(&report["first"], "got"));
    assert_eq!(report["layers"][1]["largest"], json!(1.0));

    // No number of a float.
    changed(folder.path(), "m.log", 0, 0, 0, |_| f32::NAN.to_bits());
    let (code, report, _) =
        judged(folder.path(), "compare m.tamis --data p/X.npy --device bad.log --json");
    assert_eq!(
        (code, &report["first"]["got"], &report["layers"][0]["largest"]),
        (Some(3), &Value::Null, &Value::Null)
    );
}

#[test]
fn differing_input_row_is_named_before_its_outputs() {
    let folder = dumped();
    let line = "compare m.tamis --data p/X.npy --device m.log --first 7 --json";
    let (code, report, err) = judged(folder.path(), line);
    assert_eq!((code, &report["inputs_differ"]), (Some(3), &json!(4)));
    assert_eq!((&report["first"]["row"], &report["first"]["layer"]), (&json!(7), &Value::Null));
    assert!(err.contains("given another row"), "{err}");
    // From the place where the rows lie it agrees.
    ok(folder.path(), "compare m.tamis --data p/X.npy --rows 7..9 --dump later.log -q");
    ok(folder.path(), "compare m.tamis --data p/X.npy --first 7 --device later.log");
}

#[test]
fn damaged_or_foreign_logs_are_refused() {
    let folder = dumped();
    let log = text(folder.path(), "m.log");
    let compare = |name: &str| format!("compare m.tamis --data p/X.npy --device {name}");
    let refused = |content: &str, words: &str| {
        std::fs::write(folder.path().join("bad.log"), content).unwrap();
        let error = fails(folder.path(), &compare("bad.log"));
        assert!(error.contains(words), "{words}\n{error}");
    };
    refused("", "there is no trace");
    refused("boot\nready\n", "there is no trace");
    refused(&log[..log.len() / 2], "");
    refused(log.split("@tamis done").next().unwrap(), "ends too soon");
    refused(&log.replacen("@tamis 0 0 ", "@tamis 0 0", 1), "damaged");
    refused(&log.replacen("@tamis row 1", "@tamis row 9", 1), "a row is missing");
    // Without a layer, counts and checksums of what is left put right.
    let left = |line: &&str| !line.starts_with("@tamis 0 ");
    let lines: Vec<_> = log.lines().filter(left).collect();
    std::fs::write(folder.path().join("left.log"), lines.join("\n") + "\n").unwrap();
    changed(folder.path(), "left.log", 9, 0, 0, |bits| bits);
    let counted: String = text(folder.path(), "bad.log")
        .lines()
        .map(|line| match line.strip_prefix("@tamis end ").and_then(|rest| rest.split_once(' ')) {
            Some((_, sum)) => format!("@tamis end 1 {sum}\n"),
            None => format!("{line}\n"),
        })
        .collect();
    refused(&counted, "no number of layer 0");

    let error = fails(folder.path(), "compare q.tamis --data p/X.npy --device m.log");
    assert!(error.contains("another model") && error.contains("integers"), "{error}");
    let error = fails(folder.path(), "compare m.tamis --data p/X.npy --device m.log --first 398");
    assert!(error.contains("too few rows") && error.contains("400 rows"), "{error}");
    let error = fails(folder.path(), "compare m.tamis --data p/y.npy --device m.log");
    assert!(error.contains("12 columns"), "{error}");
    let error = fails(folder.path(), "compare m.tamis --data p/X.npy --rows 0..401 --dump new.log");
    assert!(error.contains("too few rows"), "{error}");
    fails(folder.path(), &compare("missing.log"));
    fails(folder.path(), "compare m.tamis --data p/X.npy --dump m.tamis");
}
