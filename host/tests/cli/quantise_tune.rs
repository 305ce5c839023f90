//! Models of integers from the command line: scales by error, weights that are tuned as they are
//! rounded, and warnings.

use std::fmt::Write;
use std::path::Path;

use crate::common::*;
use serde_json::json;
use tamis_host::convert::{Dense, onnx};

const INPUTS: usize = 9;
const HIDDEN: usize = 6;

/// Numbers from -1 to 1.
fn numbers(seed: u32) -> impl FnMut() -> f32 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    }
}

/// A dense network 9-6-1 whose weights `change(neuron, input, weight)` may change, as `m.tamis`,
/// and 300 rows of bytes whose first column is 1 in row 7 and else 0, as `x.csv`; its outputs as
/// `y.npy`.
fn network(folder: &Path, change: impl Fn(usize, usize, f32) -> f32) {
    let mut draw = numbers(1);
    let weights =
        (0..INPUTS * HIDDEN).map(|at| change(at / INPUTS, at % INPUTS, draw() / 255.0)).collect();
    let bias = (0..HIDDEN).map(|_| draw()).collect();
    let hidden =
        Dense { name: "0".into(), inputs: INPUTS, outputs: HIDDEN, weights, bias, relu: true };
    let weights = (0..HIDDEN).map(|_| draw()).collect();
    let last = Dense {
        name: "2".into(),
        inputs: HIDDEN,
        outputs: 1,
        weights,
        bias: vec![0.5],
        relu: false,
    };
    std::fs::write(folder.join("m.onnx"), onnx::write(&[hidden, last], None).unwrap()).unwrap();
    let mut text = String::new();
    for row in 0..300 {
        write!(text, "{}", u8::from(row == 7)).unwrap();
        (1..INPUTS).for_each(|_| write!(text, ",{}", ((draw() + 1.0) * 127.5).round()).unwrap());
        text.push('\n');
    }
    std::fs::write(folder.join("x.csv"), text).unwrap();
    ok(folder, "import m.onnx --task regression -o m.tamis -q");
    ok(folder, "predict m.tamis --data x.csv -o y.npy -q");
}

#[test]
fn weights_of_nearly_constant_inputs_never_coarsen_others() {
    let folder = tempfile::tempdir().unwrap();
    network(folder.path(), |_, input, weight| if input == 0 { 300.0 * weight } else { weight });
    let rows = std::fs::read_to_string(folder.path().join("x.csv")).unwrap();
    let rows: Vec<&str> = rows.lines().filter(|row| row.starts_with('0')).collect();
    std::fs::write(folder.path().join("zeros.csv"), rows.join("\n")).unwrap();
    ok(folder.path(), "predict m.tamis --data zeros.csv -o zeros.npy -q");
    for scales in ["--per-layer", "--per-neuron"] {
        let report =
            json(folder.path(), &format!("quantize m.tamis --data x.csv {scales} -o q.tamis"));
        assert!(number(&report["layers"][0], "weights_cut") >= 1.0, "{report}");
        // The one row in which the input is 1 has another output; no other has.
        let eval = json(folder.path(), "eval q.tamis --data zeros.csv --labels zeros.npy");
        assert!(number(&eval, "psnr_db") > 40.0, "{eval}");
    }
    // Where the column is 0 in all rows nothing is lost, whatever the size of its weights.
    network(folder.path(), |_, input, weight| if input == 0 { 1e6 * weight } else { weight });
    for scales in ["--per-layer", "--per-neuron"] {
        let report =
            json(folder.path(), &format!("quantize m.tamis --data zeros.csv {scales} -o q.tamis"));
        assert!(number(&report, "outputs_psnr_db") > 45.0, "{report}");
    }
    // Beyond the grid nothing is left but the column, and that is what the error is about.
    network(folder.path(), |_, input, weight| if input == 0 { 1e12 * weight } else { weight });
    let error = fails(folder.path(), "quantize m.tamis --data zeros.csv -o n.tamis");
    assert!(error.contains("weights of the first layer are too far apart"), "{error}");
}

#[test]
fn tiny_weight_neuron_does_not_prevent_neuron_scales() {
    let folder = tempfile::tempdir().unwrap();
    network(folder.path(), |neuron, _, weight| if neuron == 2 { 1e-11 * weight } else { weight });
    for scales in ["--per-layer", "--per-neuron"] {
        let report =
            json(folder.path(), &format!("quantize m.tamis --data x.csv {scales} -o q.tamis"));
        assert!(number(&report, "outputs_psnr_db") > 40.0, "{report}");
    }
}

#[test]
fn tuning_recovers_coarse_weights_identically_for_any_threads() {
    let folder = tempfile::tempdir().unwrap();
    // One weight of an input that counts is 60 times the others, which have two bits left.
    network(
        folder.path(),
        |neuron, input, weight| if (neuron, input) == (0, 3) { 60.0 * weight } else { weight },
    );
    let line = "quantize m.tamis --data x.csv --labels y.npy --tune 40 --batch 32 --seed 5";
    let report = json(folder.path(), &format!("{line} --threads 1 -o a.tamis"));
    let (untuned, after) = (number(&report["untuned"], "loss"), number(&report["after"], "loss"));
    assert!(after < 0.6 * untuned, "{after} of {untuned}: {report}");
    assert_eq!((&report["tune"]["epochs"], &report["tune"]["seed"]), (&json!(40), &json!(5)));
    assert!(
        number(&report["tune"], "best_epoch") >= 1.0 && report["tune"]["limit"].is_null(),
        "{report}"
    );
    assert_eq!(
        json(folder.path(), "eval a.tamis --data x.csv --labels y.npy")["loss"],
        report["after"]["loss"]
    );
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    ok(folder.path(), &format!("{line} --threads 3 -o b.tamis -q"));
    assert!(read("a.tamis") == read("b.tamis"), "threads change the result");
    ok(folder.path(), &format!("{} --seed 6 -o c.tamis -q", line.replace(" --seed 5", "")));
    assert!(read("a.tamis") != read("c.tamis"), "the seed changes nothing");
    // Scales of neurons and a sum of scales at the end are tuned as well.
    let report = json(folder.path(), &format!("{line} --per-neuron -o d.tamis"));
    assert!(number(&report["after"], "loss") < number(&report["untuned"], "loss"), "{report}");
    // Of bad settings the model without tuning is what is left, and a limit of no time leaves it
    // too.
    ok(folder.path(), "quantize m.tamis --data x.csv -o plain.tamis -q");
    for bad in ["--rate 0", "--rate 1e6", "--time-limit 0"] {
        let report = json(folder.path(), &format!("{line} {bad} -o bad.tamis"));
        assert_eq!(report["tune"]["best_epoch"], json!(0), "{bad}: {report}");
        assert_eq!(report["tune"]["limit"] == json!("time"), bad == "--time-limit 0", "{report}");
        assert!(read("bad.tamis") == read("plain.tamis"), "{bad}");
    }
    let text = ok(folder.path(), &format!("{line} -o a.tamis"));
    assert!(text.contains(" untuned, ") && text.contains("40 epochs, best after"), "{text}");
}

#[test]
fn classes_are_tuned_by_their_cross_entropy() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), "generate digits --samples 400 --seed 1 -o d -q");
    let data = "--data d/X.npy --labels d/y.npy";
    ok(
        folder.path(),
        &format!("train {data} --task multiclass --hidden 12 --nnz 120 --epochs 20 -o c.tamis -q"),
    );
    let report = json(folder.path(), &format!("quantize c.tamis {data} --tune 5 -o q.tamis"));
    assert_eq!(report["after"]["loss_kind"], json!("cross-entropy"));
    assert!(number(&report["after"], "loss") < number(&report["untuned"], "loss"), "{report}");
    assert!(number(&report, "nnz") <= 120.0, "{report}");
    ok(folder.path(), "inspect q.tamis");
}

#[test]
fn tuning_without_labels_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    network(folder.path(), |_, _, weight| weight);
    let wrong = |line: &str, words: &str| {
        let error = fails(folder.path(), line);
        assert!(error.contains(words), "{line}: {error}");
    };
    wrong("quantize m.tamis --data x.csv --tune 3 -o n.tamis", "tuning needs labels");
    wrong(
        "quantize m.tamis --data x.csv --labels y.npy --tune 0 -o n.tamis",
        "tuning needs an epoch",
    );
    wrong(
        "quantize m.tamis --data x.csv --labels y.npy --tune 3 --rate=-1 -o n.tamis",
        "--rate 0 or more",
    );
    let usage = run(
        folder.path(),
        &["quantize", "m.tamis", "--data", "x.csv", "--rate", "1", "-o", "n.tamis"],
    );
    assert_eq!(usage.status.code(), Some(2));
}

#[test]
fn few_rows_and_values_beyond_range_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    ok(
        folder.path(),
        "generate planted --samples 600 --inputs 12 --hidden 4 --nnz 16 --seed 3 -o p -q",
    );
    let data = "--data p/X.npy --labels p/y.npy";
    ok(folder.path(), &format!("train {data} --task regression --hidden 4 --nnz 16 -o m.tamis -q"));
    assert!(!ok(folder.path(), "quantize m.tamis --data p/X.npy -o q.tamis").contains("warning"));
    assert_eq!(json(folder.path(), &format!("eval q.tamis {data}"))["inputs_cut"], json!(0));
    assert!(!ok(folder.path(), &format!("eval q.tamis {data}")).contains("warning"));
    assert_eq!(json(folder.path(), &format!("eval m.tamis {data}"))["inputs_cut"], json!(null));
    // Scales of a few small rows.
    let small = |size: f32| {
        ((0..12).map(|k| (size * (k as f32 - 5.5)).to_string()).collect::<Vec<_>>().join(",")
            + "\n")
            .repeat(2)
    };
    std::fs::write(folder.path().join("few.csv"), small(0.01)).unwrap();
    let text = ok(folder.path(), "quantize m.tamis --data few.csv -o few.tamis");
    assert!(text.contains("so few rows (2)"), "{text}");
    let cut = json(folder.path(), &format!("eval few.tamis {data}"));
    assert!(number(&cut, "inputs_cut") > 600.0, "{cut}");
    let line = "predict few.tamis --data p/X.npy -o o.npy";
    assert_eq!(json(folder.path(), line)["inputs_cut"], cut["inputs_cut"]);
    for line in [line, &format!("eval few.tamis {data}")] {
        let text = ok(folder.path(), line);
        assert_eq!(text.matches("beyond the range").count(), 1, "{text}");
    }
    ok(folder.path(), "compare few.tamis --data p/X.npy --dump log -q");
    let compared = json(folder.path(), "compare few.tamis --data p/X.npy --device log");
    assert_eq!(compared["inputs_cut"], cut["inputs_cut"]);
    let text = ok(folder.path(), "compare few.tamis --data p/X.npy --device log");
    assert_eq!(text.matches("beyond the range").count(), 1, "{text}");
    // The ends themselves are within the range.
    std::fs::write(folder.path().join("more.csv"), small(0.0101)).unwrap();
    assert_eq!(
        json(folder.path(), "predict few.tamis --data few.csv -o o.npy")["inputs_cut"],
        json!(0)
    );
}
