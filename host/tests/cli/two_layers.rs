//! Searches for two hidden layers from training to inspect, and what is refused with them.

use crate::common::*;
use serde_json::json;
use tamis_host::data::planted;

const TRAIN: &str = "train --data X.csv --labels y.csv --task regression --hidden 4,4 --nnz 16";

/// Rows and labels of a planted network of two layers, as CSV; labels have `more` added.
fn write(folder: &std::path::Path, more: f32) {
    let made = planted::deep(1500, 12, &[4, 4], 1, 16, 2).unwrap();
    let text = |values: &[f32], width: usize| {
        let line =
            |row: &[f32]| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(",") + "\n";
        values.chunks(width).map(line).collect::<String>()
    };
    std::fs::write(folder.join("X.csv"), text(&made.data.values.clone().into_f32(), 12)).unwrap();
    let labels: Vec<f32> = made.labels.iter().map(|y| y + more).collect();
    std::fs::write(folder.join("y.csv"), text(&labels, 1)).unwrap();
}

#[test]
fn what_is_trained_is_evaluated_predicted_and_inspected() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 0.0);
    let report =
        json(folder.path(), &format!("{TRAIN} --log l.jsonl --checkpoint c --resume -o m.tamis"));
    assert_eq!((&report["recipe"], &report["exact"]), (&json!("lm"), &json!(true)), "{report}");
    assert_eq!((&report["hidden"], &report["second_hidden"]), (&json!(4), &json!(4)));
    assert!(number(&report, "second_live") >= 1.0 && number(&report, "nnz") <= 16.0, "{report}");
    let eval = json(folder.path(), "eval m.tamis --data X.csv --labels y.csv");
    let (trained, scored) = (number(&report, "psnr_db"), number(&eval, "psnr_db"));
    assert!(trained > 110.0 && (trained - scored).abs() < 3.0, "{trained} {scored}");
    let cost = json(folder.path(), "inspect m.tamis");
    let kinds: Vec<_> =
        cost["layers"].as_array().unwrap().iter().map(|layer| layer["kind"].clone()).collect();
    assert_eq!(
        (kinds, &cost["hidden"]),
        (vec![json!("sparse"), json!("sparse"), json!("sum")], &json!([4, 4]))
    );
    assert_eq!(json(folder.path(), "predict m.tamis --data X.csv -o o.npy")["outputs"], json!(1));
    // The checkpoint is of the end, and of these sizes.
    let again = json(folder.path(), &format!("{TRAIN} --checkpoint c --resume -o again.tamis"));
    assert!(number(&again, "resumed_steps") > 0.0, "{again}");
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("again.tamis"), read("m.tamis"));
    let other = TRAIN.replace("4,4", "4,3");
    let refused = fails(folder.path(), &format!("{other} --checkpoint c --resume -o x.tamis"));
    assert!(refused.contains("(--hidden): 4") && refused.contains("got: 3"), "{refused}");
}

#[test]
fn invalid_two_layer_settings_are_refused_writing_nothing() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 0.0);
    for (line, what) in [
        (TRAIN.replace("4,4", "4,0"), "second hidden layer"),
        (format!("{TRAIN} --signs free"), "leave --signs out"),
        (
            TRAIN.replace("--nnz 16", "--nnz 1"),
            "--nnz 2 to 64 (4 hidden × (12 inputs + 4 outputs))",
        ),
    ] {
        let refused = fails(folder.path(), &format!("{line} -o x.tamis"));
        assert!(refused.contains(what), "{line}: {refused}");
    }
}

/// Neurons of the second layer beyond s can have no weights, and take neither time nor memory.
#[test]
fn second_layer_width_beyond_s_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 0.0);
    let of = |second: usize| {
        let train = TRAIN.replace("4,4", &format!("4,{second}"));
        json(folder.path(), &format!("{train} --kicks 0 -o m.tamis"))
    };
    let (few, many) = (of(16), of(60_000));
    for key in ["nnz", "loss", "second_live", "state_bytes", "workspace_bytes"] {
        assert_eq!(few[key], many[key], "{key}");
    }
    assert_eq!(many["second_hidden"], json!(60_000));
    let cost = json(folder.path(), "inspect m.tamis");
    assert_eq!(cost["hidden"], json!([4, 60_000]), "{cost}");
}

#[test]
fn labels_beyond_neuron_sums_train_layer_by_layer() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), -0.5);
    let report = json(folder.path(), &format!("{TRAIN} -o m.tamis"));
    assert_eq!(report["layers"].as_array().map(Vec::len), Some(2), "{report}");
    let refused = fails(folder.path(), &format!("{TRAIN} --checkpoint c -o x.tamis"));
    assert!(refused.contains("leave --checkpoint out"), "{refused}");
}

#[test]
fn nearly_empty_layer_leaves_few_weights_for_next() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 0.0);
    let report = json(folder.path(), &format!("{} -o m.tamis", TRAIN.replace("4,4", "4,4,4")));
    assert!((3.0..=16.0).contains(&number(&report, "nnz")), "{report}");
}

#[test]
fn planted_two_layer_data_with_noise_is_generated() {
    let folder = tempfile::tempdir().unwrap();
    let make = "generate planted --samples 1500 --inputs 12 --hidden 4,4 --nnz 16 --seed 1";
    let made = json(folder.path(), &format!("{make} -o two"));
    assert_eq!((&made["hidden"], &made["nnz"]), (&json!([4, 4]), &json!(16)));
    json(folder.path(), &format!("{make} --noise 0.5 -o noisy"));
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(
        (read("two/X.npy"), read("two/weights.npz")),
        (read("noisy/X.npy"), read("noisy/weights.npz"))
    );
    let labels = |name: &str| -> Vec<f32> {
        let numbers = read(name).split_off(128);
        numbers.chunks(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
    };
    let (clean, noisy) = (labels("two/y.npy"), labels("noisy/y.npy"));
    let squares = clean.iter().zip(&noisy).map(|(y, noisy)| f64::from(noisy - y).powi(2));
    let deviation = (squares.sum::<f64>() / clean.len() as f64).sqrt();
    assert!(clean.len() == 1500 && (deviation / 0.5 - 1.0).abs() < 0.05, "{deviation}");
    for (line, what) in [
        ("--hidden 4,4 --nnz 200", "1 to 48 weights in layer 1"),
        ("--hidden 4,4 --nnz 1", "1 to 16 weights in layer 2"),
        ("--hidden 4,4 --nnz 16 --signs balanced", "leave --signs out"),
        ("--hidden 1,1,1,1,1,1,1,1,1 --nnz 9", "8 hidden layers"),
        ("--hidden 500,500 --nnz 4", "gives 0 for every row"),
        ("--hidden 4 --nnz 4 --noise -1", "--noise 0 or more"),
        ("--hidden 4,0 --nnz 4", "at least one neuron"),
    ] {
        let refused =
            fails(folder.path(), &format!("generate planted --samples 50 --inputs 12 {line} -o x"));
        assert!(refused.contains(what), "{line}: {refused}");
    }
}

/// Of few weights, so that a search of fewer neurons follows; what a budget leads to has one thread's bits, too.
#[test]
fn two_classes_are_told_apart_by_the_same_model_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 0.0);
    let labels = std::fs::read_to_string(folder.path().join("y.csv")).unwrap();
    let labels: Vec<f32> = labels.lines().map(|line| line.parse().unwrap()).collect();
    let mean = labels.iter().sum::<f32>() / labels.len() as f32;
    let classes = labels.iter().map(|y| format!("{}\n", u8::from(*y > mean))).collect::<String>();
    std::fs::write(folder.path().join("y.csv"), classes).unwrap();
    let train = TRAIN.replace("regression", "binary").replace("4,4 --nnz 16", "8,8 --nnz 9");
    for ram in ["", "--ram 90K"] {
        let mut models = Vec::new();
        for threads in [1, 3] {
            let line =
                format!("{train} --recipe lm --kicks 1 {ram} --threads {threads} -o m.tamis");
            let report = json(folder.path(), &line);
            let eval = json(folder.path(), "eval m.tamis --data X.csv --labels y.csv");
            let (trained, scored) = (number(&report, "accuracy"), number(&eval, "accuracy"));
            assert!(trained > 0.7 && (trained - scored).abs() < 1e-3, "{trained} {scored}");
            models.push(std::fs::read(folder.path().join("m.tamis")).unwrap());
        }
        assert_eq!(models[0], models[1], "{ram}");
    }
}
