//! `tamis prune`: exact counts from every kind of file, with data and without, models that all other
//! verbs read, and what is refused.

use std::fs;
use std::path::Path;

use crate::common::*;
use serde_json::{Value, json};
use tamis_host::data::{Array, npz};

const DIGITS: &str = "--data d/X.npy --labels d/y.npy";

/// A folder with digits of 64 pixels, and `w.npz`, trained on them: 64, 20, 12 and 10 wide.
fn trained() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    ok(at, "generate digits --samples 900 --side 8 --seed 2 -o d -q");
    ok(
        at,
        &format!(
            "train --recipe imp --hidden 20,12 --nnz 1640 --epochs 300 --task multiclass {DIGITS} \
             -o dense.tamis -q"
        ),
    );
    folder
}

/// Arrays of a network of 6, 5, 4 and 3 with biases.
fn write_npz(path: &Path) {
    let number = |e: usize| ((e * 7919 + e / 7 + 3) % 997) as f32 / 997.0 - 0.45;
    let widths = [6, 5, 4, 3];
    let mut arrays = Vec::new();
    for l in 0..3 {
        let weights: Vec<f32> =
            (0..widths[l] * widths[l + 1]).map(|e| number(e + 100 * l)).collect();
        let bias: Vec<f32> = (0..widths[l + 1]).map(|e| number(e + 77 * l + 5)).collect();
        arrays.push((format!("layer{}.weight", l + 1), vec![widths[l + 1], widths[l]], weights));
        arrays.push((format!("layer{}.bias", l + 1), vec![widths[l + 1]], bias));
    }
    let arrays: Vec<_> = arrays
        .iter()
        .map(|(name, shape, values)| (name.as_str(), Array::new(shape, &values[..]).unwrap()))
        .collect();
    npz::write(&mut fs::File::create(path).unwrap(), &arrays).unwrap();
}

fn widths(report: &Value) -> Vec<u64> {
    report["widths"].as_array().unwrap().iter().map(|width| width.as_u64().unwrap()).collect()
}

#[test]
fn pruned_models_are_ordinary_ones_of_exact_size() {
    let folder = trained();
    let folder = folder.path();
    ok(folder, "export dense.tamis --format onnx -o dense.onnx -q");
    ok(folder, "export dense.tamis --format safetensors -o dense.safetensors -q");
    for source in ["dense.tamis", "dense.onnx", "dense.safetensors"] {
        let line = format!(
            "prune {source} --neurons 10,8 --nnz 250 {DIGITS} --test-data d/X.npy --test-labels \
             d/y.npy --epochs 100 -o b.tamis"
        );
        let report = json(folder, &line);
        assert_eq!((&report["nnz"], &report["dead_weights"]), (&json!(250), &json!(0)), "{source}");
        assert_eq!((&report["task"], &report["scored_on"]), (&json!("multiclass"), &json!("test")));
        assert_eq!(report["widths_before"], json!([64, 20, 12, 10]));
        let after = widths(&report);
        assert!(after[1] <= 10 && after[2] <= 8, "{after:?}");
        let [before, pruned, tuned] =
            ["accuracy_before", "accuracy_pruned", "accuracy"].map(|key| number(&report, key));
        assert!(before > 0.9 && tuned > 0.85 && tuned > pruned, "{before} {pruned} {tuned}");
        assert!(number(&report["scratch"], "accuracy") > 0.5);
        // What other verbs make of it.
        let score = json(folder, &format!("eval b.tamis {DIGITS}"));
        assert_eq!(score["accuracy"], report["accuracy"]);
        let cost = json(folder, "inspect b.tamis");
        assert_eq!((&cost["total"]["nnz"], &cost["inputs"]), (&json!(250), &json!(64)));
        ok(folder, "quantize b.tamis --data d/X.npy -o q.tamis -q");
        ok(folder, "predict b.tamis --data d/X.npy -o p.npy -q");
        ok(folder, "export b.tamis --format c -o b.c -q");
    }
}

#[test]
fn seeds_give_the_same_bytes_again() {
    let folder = trained();
    let folder = folder.path();
    let model = |line: &str| {
        let line = format!("prune dense.tamis {DIGITS} --epochs 3 --no-scratch {line} -o s.tamis");
        let report = json(folder, &line);
        assert_eq!((&report["nnz"], &report["scratch"]), (&json!(150), &Value::Null));
        (fs::read(folder.join("s.tamis")).unwrap(), report["scored_on"].clone())
    };
    let one = model("--nnz 150 --seed 3 --threads 1");
    assert_eq!(one.1, json!("validation"));
    assert_eq!(one, model("--nnz 150 --seed 3 --threads 2"));
    assert_ne!(one, model("--nnz 150 --seed 4 --threads 2"));
}

#[test]
fn without_data_it_is_pruned_only() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_npz(&folder.join("w.npz"));
    // 30 + 20 + 12 weights and 12 biases.
    let report = json(folder, "prune w.npz --nnz 40 -o m.tamis");
    assert_eq!((&report["nnz_before"], &report["nnz"]), (&json!(74), &json!(40)));
    assert_eq!((&report["accuracy"], &report["structured"]), (&Value::Null, &Value::Null));
    assert!(report["notes"][0].as_str().unwrap().contains("pruned only"), "{report}");
    assert_eq!(json(folder, "inspect m.tamis")["total"]["nnz"], json!(40));
    let report = json(folder, "prune w.npz --neurons 4,2 --inputs 3 -o n.tamis");
    assert_eq!((&report["widths"], &report["inputs_read"]), (&json!([6, 4, 2, 3]), &json!(3)));
    // 12 + 8 + 6 weights and 9 biases.
    assert_eq!((&report["nnz"], &report["biases"]), (&json!(35), &json!(9)));
    let cost = json(folder, "inspect n.tamis");
    assert_eq!((&cost["total"]["nnz"], &cost["inputs"]), (&json!(35), &json!(6)));
    // Pruned again, as a model with biases.
    let report = json(folder, "prune n.tamis --neurons 3,2 --density 0.5 -o o.tamis");
    assert_eq!(
        (&report["widths_before"], &report["nnz_before"]),
        (&json!([6, 4, 2, 3]), &json!(35))
    );
    assert_eq!(report["nnz"], report["requested_nnz"]);
}

#[test]
fn greedy_needs_no_labels() {
    let folder = trained();
    let folder = folder.path();
    let accuracy = |method: &str| {
        let line = "prune dense.tamis --neurons 12,10 --epochs 0";
        let report = json(folder, &format!("{line} {DIGITS} --structured {method} -o g.tamis"));
        assert_eq!(widths(&report), [64, 12, 10, 10]);
        number(&report, "accuracy")
    };
    let [norm, greedy] = ["norm", "greedy"].map(accuracy);
    assert!(greedy > norm, "{norm} {greedy}");
    let line = "prune dense.tamis --neurons 12,10 --structured greedy --data d/X.npy -o g.tamis";
    assert_eq!(json(folder, line)["samples"], json!(0));
}

#[test]
fn rows_to_score_a_group_on_are_checked_before_it_is_trained() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // One row alone is of class 2.
    let row =
        |k: usize| format!("{},{},{}\n", k % 7, (k * 5) % 11, if k == 30 { 2 } else { k % 2 });
    let text = (0..61).map(row).collect::<String>();
    std::fs::write(path.join("t.csv"), format!("a,b,y\n{text}")).unwrap();
    let line = "train --data t.csv --target y --task multiclass --hidden 4 --nnz 9 --epochs 1 --recipe group";
    for seed in 0..12 {
        ok(path, &format!("{line} --seed {seed} -o m.tamis -q"));
    }
    ok(path, "generate digits --samples 40 --side 8 -o d -q");
    ok(path, "generate digits --samples 40 --side 9 -o e -q");
    let line = "train --data d/X.npy --labels d/y.npy --task multiclass --hidden 4 --nnz 90 --epochs 1 --recipe group";
    let error =
        fails(path, &format!("{line} --test-data e/X.npy --test-labels e/y.npy -o n.tamis"));
    assert!(error.contains("do not fit the training data"), "{error}");
}

/// Rows of some of the classes are enough to tune a model of all.
#[test]
fn a_model_of_more_classes_than_the_rows_have_is_tuned() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    ok(path, "generate digits --samples 300 --side 8 -o d -q");
    let line = "--data d/X.npy --labels d/y.npy --task multiclass";
    ok(path, &format!("train {line} --hidden 10 --nnz 200 --epochs 4 -o m.tamis -q"));
    let rows = tamis_host::data::load(path.join("d/X.npy")).unwrap();
    let labels = tamis_host::data::load(path.join("d/y.npy")).unwrap().values.into_f32();
    let chosen: Vec<usize> = (0..300).filter(|&k| labels[k] > 1.0).collect();
    let values = rows.values.into_f32();
    let some: Vec<f32> =
        chosen.iter().flat_map(|&k| values[k * 64..(k + 1) * 64].to_vec()).collect();
    tamis_host::data::save(path.join("x.npy"), &some, 64).unwrap();
    let some: Vec<f32> = chosen.iter().map(|&k| labels[k]).collect();
    tamis_host::data::save(path.join("y.npy"), &some, 1).unwrap();
    for line in ["finetune m.tamis --epochs 2", "prune m.tamis --nnz 100 --epochs 2"] {
        ok(path, &format!("{line} --data x.npy --labels y.npy -o o.tamis -q"));
    }
}

#[test]
fn what_cannot_be_pruned_is_refused() {
    let folder = trained();
    let folder = folder.path();
    ok(folder, "quantize dense.tamis --data d/X.npy -o q.tamis -q");
    ok(folder, "generate digits --samples 100 --side 9 --seed 2 -o s -q");
    fs::write(folder.join("nan.csv"), "nan,".repeat(63) + "1\n").unwrap();
    write_npz(&folder.join("w.npz"));
    for (line, wanted) in [
        ("prune dense.tamis --neurons 0,5 -o x.tamis", "each from 1 and at most 20, 12"),
        ("prune dense.tamis --neurons 21,5 -o x.tamis", "each from 1 and at most 20, 12"),
        ("prune dense.tamis --neurons 5 -o x.tamis", "2 numbers"),
        ("prune dense.tamis --inputs 65 -o x.tamis", "--inputs 1 to 64"),
        ("prune dense.tamis --inputs 0 -o x.tamis", "--inputs 1 to 64"),
        ("prune dense.tamis --neurons 9,8 --nnz 16 -o x.tamis", "a weight a neuron"),
        ("prune dense.tamis --nnz 2 -o x.tamis", "--nnz 3 to 1640"),
        ("prune dense.tamis --nnz 1641 -o x.tamis", "--nnz 3 to 1640"),
        ("prune dense.tamis --neurons 2,2 --nnz 200 -o x.tamis", "to 152"),
        ("prune q.tamis --nnz 100 -o x.tamis", "integers"),
        ("prune w.npz --nnz 30 --data d/X.npy --labels d/y.npy -o x.tamis", "the model's classes"),
        ("prune dense.tamis --nnz 100 --data s/X.npy --labels s/y.npy -o x.tamis", "64 columns"),
        ("prune dense.tamis --nnz 100 --data nan.csv --target 64 -o x.tamis", "nan"),
        ("prune dense.tamis --neurons 5,5 --structured lasso -o x.tamis", "no rows"),
        ("prune dense.tamis --neurons 5,5 --structured greedy -o x.tamis", "no rows"),
        (
            "prune dense.tamis --nnz 100 --data d/X.npy --labels d/y.npy --rate 0 -o x.tamis",
            "--rate",
        ),
        (
            "prune dense.tamis --nnz 100 --data d/X.npy --labels d/y.npy --lambda 0 -o x.tamis",
            "--lambda above 0",
        ),
        ("prune d/X.npy --nnz 100 -o x.tamis", "a single array"),
    ] {
        let error = fails(folder, line);
        assert!(error.contains(wanted), "{line}: {error}");
    }
    for (line, wanted) in [
        ("prune dense.tamis -o x.tamis", "nothing to prune"),
        ("prune dense.tamis --neurons 20,12 -o x.tamis", "nothing to prune"),
        (
            "prune dense.tamis --nnz 9 --data d/X.npy --labels d/y.npy --epochs 4294967295 -o x.tamis",
            "--epochs 0 to 100000",
        ),
        (
            "prune dense.tamis --nnz 9 --data d/X.npy --labels d/y.npy --lasso-epochs 100001 -o x.tamis",
            "--lasso-epochs 0 to 100000",
        ),
    ] {
        let error = misuses(folder, line);
        assert!(error.contains(wanted), "{line}: {error}");
    }
}

/// Whether some note of a report has these words.
fn has_note(report: &Value, words: &str) -> bool {
    report["notes"].as_array().unwrap().iter().any(|note| note.as_str().unwrap().contains(words))
}

#[test]
fn training_that_destroys_is_said() {
    let folder = trained();
    let folder = folder.path();
    let line = format!(
        "prune dense.tamis --nnz 800 --neurons all {DIGITS} --epochs 2 --rate 1e6 -o r.tamis"
    );
    let report = json(folder, &line);
    assert!(has_note(&report, "worse than the network pruned at once"), "{report}");
    assert!(has_note(&report, "no networks to compare with"), "{report}");
    let line = format!("prune dense.tamis --nnz 800 --neurons all {DIGITS} --epochs 9 -o r.tamis");
    assert!(!has_note(&json(folder, &line), "worse"));
}

/// Layers of a network of 3, 4 and 2 of which neurons 2 and 3 lead to outputs without inputs.
fn write_sparse(path: &Path, first: [f32; 4]) {
    let first: Vec<f32> = first.iter().flat_map(|&w| [w, 0.5 * w, 0.25 * w]).collect();
    let second = [0.1, 0.2, 5.0, 6.0, 0.3, 0.1, 4.0, 3.0];
    let arrays = [
        ("layer1.weight", Array::new(&[4, 3], &first[..]).unwrap()),
        ("layer2.weight", Array::new(&[2, 4], &second[..]).unwrap()),
    ];
    npz::write(&mut fs::File::create(path).unwrap(), &arrays).unwrap();
}

#[test]
fn neurons_on_no_path_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_sparse(&folder.join("w.npz"), [9.0, 1.0, 0.0, 0.0]);
    let report = json(folder, "prune w.npz --neurons 3 -o m.tamis");
    assert_eq!(report["widths"], json!([3, 1, 2]));
    let unconnected = "lie on no path from an input to an output of the network";
    let note = format!("1 neuron is left of --neurons 3: the others {unconnected}");
    assert!(has_note(&report, &note), "{report}");
    let report = json(folder, "prune w.npz --neurons 2 --nnz 4 -o m.tamis");
    let note = format!("1 neuron is left of --neurons 2: the others {unconnected}");
    assert!(has_note(&report, &note), "{report}");
    // All neurons are connected, and weights that lead to some are cut.
    write_sparse(&folder.join("w.npz"), [9.0, 1.0, 0.1, 0.01]);
    let report = json(folder, "prune w.npz --neurons 3 --nnz 4 -o m.tamis");
    let cut = "the 4 nonzeros of --nnz leave no path through";
    assert!(has_note(&report, &format!("left of --neurons 3: {cut} the others")), "{report}");
    write_sparse(&folder.join("w.npz"), [9.0, 1.0, 0.1, 0.0]);
    let report = json(folder, "prune w.npz --neurons 4 --nnz 4 -o m.tamis");
    assert!(has_note(&report, &format!("those beyond 3 {unconnected}, and {cut}")), "{report}");
    write_sparse(&folder.join("w.npz"), [1.0, 1.0, 0.0, 0.0]);
    let report = json(folder, "prune w.npz --neurons 2 -o m.tamis");
    assert!(has_note(&report, "nothing connects"), "{report}");
    let error = fails(folder, "prune w.npz --neurons 2 --nnz 4 -o m.tamis");
    assert!(error.contains("nothing of the network connects"), "{error}");
}

#[test]
fn settings_that_change_nothing_are_noted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_npz(&folder.join("w.npz"));
    let line = "prune w.npz --neurons auto --nnz 40 --epochs 3 --lambda 0.1 -o m.tamis";
    let (report, text) = (json(folder, line), ok(folder, line));
    for flag in ["--neurons auto", "--epochs", "--lambda"] {
        let note = format!("{flag} changes nothing without --labels or --target");
        assert!(has_note(&report, &note) && text.contains(&note), "{report} {text}");
    }
    assert_eq!(ok(folder, &format!("{line} --quiet")), "");
    fs::write(folder.join("x.csv"), "0,1,0.5,0,1,1\n0,0,0.5,1,1,0\n").unwrap();
    for (source, why) in [("w.npz", "where data are no bytes"), ("m.tamis", "for a .tamis model")] {
        let line = format!("prune {source} --nnz 30 --data x.csv --raw-inputs -o n.tamis");
        let report = json(folder, &line);
        assert!(has_note(&report, &format!("--raw-inputs changes nothing {why}")), "{report}");
    }
}

#[test]
fn ctrl_c_is_in_the_help() {
    let folder = tempfile::tempdir().unwrap();
    for verb in ["mask", "prune", "certify"] {
        let help = ok(folder.path(), &format!("{verb} --help"));
        assert!(help.contains("Ctrl-C ends it at once"), "{verb}: {help}");
    }
}

#[test]
fn density_1_drops_no_weight() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_npz(&folder.join("w.npz"));
    let report = json(folder, "prune w.npz --density 1 -o m.tamis");
    assert_eq!((&report["nnz_before"], &report["nnz"]), (&json!(74), &json!(74)));
}

#[test]
fn labels_that_do_not_fit_name_files() {
    let folder = trained();
    let folder = folder.path();
    ok(folder, "export dense.tamis --format onnx -o dense.onnx -q");
    fs::write(folder.join("t.csv"), "11\n".repeat(900)).unwrap();
    for (line, file) in [
        (format!("{DIGITS} --task regression"), "dense.onnx"),
        (format!("{DIGITS} --test-data d/X.npy --test-labels t.csv"), "t.csv"),
    ] {
        let error = fails(folder, &format!("prune dense.onnx --nnz 90 {line} -o x.tamis"));
        assert!(error.contains(file) && !error.contains("in memory"), "{error}");
    }
}

/// `train --recipe group`: the same from nothing.
#[test]
fn groups_of_a_dense_network_are_trained_and_cut() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ok(folder, "generate digits --samples 900 --side 8 --seed 2 -o d -q");
    let line = "train --recipe group --task multiclass --data d/X.npy --labels d/y.npy";
    let shape = "--hidden 20,12 --nnz 250 --epochs 60 -o g.tamis --json -q";
    let report: Value = serde_json::from_str(&ok(folder, &format!("{line} {shape}"))).unwrap();
    assert_eq!((&report["recipe"], &report["nnz"]), (&json!("group"), &json!(250)));
    assert_eq!((&report["rows"], &report["dense_epochs"]), (&json!(900), &json!(60)));
    assert!(report["accuracy"].as_f64() > Some(0.7), "{report}");
    assert!(widths(&report)[1] < 20 && report["scratch"]["accuracy"].is_f64(), "{report}");
    ok(folder, "predict g.tamis --data d/X.npy -o p.npy -q");
    for (flags, said) in [
        ("--nnz 250 -o h.tamis", "--hidden with 1 to"),
        ("--hidden 20 --nnz 50 --scale none -o h.tamis", "--scale"),
        ("--hidden 70000 --nnz 50 -o h.tamis", "65535"),
    ] {
        let error = fails(folder, &format!("{line} {flags}"));
        assert!(error.contains(said), "{flags}: {error}");
    }
    for (flags, said) in [
        ("--hidden 20 --nnz 50,99 -o folder", "one number for --nnz"),
        ("--hidden 20 --nnz 50 --plan", "no --plan"),
        ("--hidden 20 --nnz 50 --rate 0.1 -o h.tamis", "--rate"),
    ] {
        let error = misuses(folder, &format!("{line} {flags}"));
        assert!(error.contains(said), "{flags}: {error}");
    }
}
