//! Models of other programs: as those programs predict, cut to size, exported and read back to the
//! bit; and what is refused.
//!
//! `golden/import/make.py` writes the files of PyTorch, Keras and scikit-learn, `UPDATE_GOLDEN=1`
//! those of Tamis.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::*;
use serde_json::json;
use tamis_host::convert::{Dense, onnx, safetensors};
use tamis_host::data::{Array, load, npz};
use tamis_host::model::ModelFile;
use tempfile::TempDir;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/import")
}

/// Names of golden files that `make.py` has written rows and predictions for.
const GOLDEN: [&str; 15] = [
    "torch_three_dynamo.onnx",
    "torch_three_script.onnx",
    "torch_flat_dynamo.onnx",
    "torch_flat_script.onnx",
    "torch_plain_dynamo.onnx",
    "torch_plain_script.onnx",
    "keras_classes.onnx",
    "keras_binary.onnx",
    "keras_numbers.onnx",
    "sklearn_classes.onnx",
    "sklearn_binary.onnx",
    "sklearn_numbers.onnx",
    "sklearn_scaled.onnx",
    "sklearn_ranged.onnx",
    "sklearn_numbers.npz",
];

/// What a program that ends in softmax or sigmoid makes of outputs.
fn probabilities(outputs: &[f32], task: Option<&str>) -> Vec<f64> {
    let outputs: Vec<f64> = outputs.iter().map(|&y| y.into()).collect();
    match task {
        Some("multiclass") => {
            let sum: f64 = outputs.iter().map(|y| y.exp()).sum();
            outputs.iter().map(|y| y.exp() / sum).collect()
        }
        Some("binary") => outputs.iter().map(|y| 1.0 / (1.0 + (-y).exp())).collect(),
        _ => outputs,
    }
}

#[test]
fn imported_framework_models_predict_as_in_their_framework() {
    let folder = tempfile::tempdir().unwrap();
    for name in GOLDEN {
        let file = golden().join(name);
        let stem = name.rsplit_once('.').unwrap().0;
        let object = json(folder.path(), &format!("import {} -o m.tamis", file.display()));
        let model = ModelFile::load(folder.path().join("m.tamis")).unwrap();
        let x = load(golden().join(format!("{stem}.X.npy"))).unwrap();
        let y = load(golden().join(format!("{stem}.y.npy"))).unwrap();
        assert_eq!(object["inputs"], x.cols, "{name}: inputs stay");
        let got = model.predict(&x).unwrap();
        let expected = y.values.into_f32();
        assert_eq!(got.len(), expected.len(), "{name}");
        for (got, expected) in got.chunks(y.cols).zip(expected.chunks(y.cols)) {
            for (got, &expected) in probabilities(got, object["task"].as_str()).iter().zip(expected)
            {
                // Their sums run in other orders.
                assert!((got - f64::from(expected)).abs() < 2e-6, "{name}: {got} for {expected}");
            }
        }
        assert_eq!(object["model"], "m.tamis");
        assert_eq!(object["nnz"], model.cost().unwrap().total.nonzeros, "{name}");
    }
}

#[test]
fn what_was_left_out_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let import = |name: &str| {
        ok(folder.path(), &format!("import {} -o m.tamis", golden().join(name).display()))
    };
    let text = import("keras_binary.onnx");
    assert!(text.contains("Sigmoid left out") && text.contains(" biases"), "{text}");
    assert!(text.contains("binary, class 1 from 0 on"), "{text}");
    assert!(import("sklearn_scaled.onnx").contains("Scaler"), "folded");
    let text = import("torch_plain_script.onnx");
    assert!(text.contains("Softmax left out") && !text.contains(", 0 biases"), "{text}");
    assert!(import("torch_three.safetensors").contains("pass --task to store it"));
}

/// Layers of drawn weights, of which every third is 0.
fn layers(sizes: &[usize], bias: bool) -> Vec<Dense> {
    let mut rng = tamis::base::rng::Rng::new(7, 0);
    let mut draw = |n: usize| {
        (0..n).map(|i| if i % 3 == 1 { 0.0 } else { rng.normal() }).collect::<Vec<f32>>()
    };
    let pairs = sizes.iter().zip(&sizes[1..]).enumerate();
    let made = pairs.map(|(l, (&inputs, &outputs))| Dense {
        name: format!("{l}"),
        inputs,
        outputs,
        weights: draw(inputs * outputs),
        bias: if bias { draw(outputs) } else { Vec::new() },
        relu: l + 2 < sizes.len(),
    });
    made.collect()
}

/// A folder with these layers as `m.onnx` and `m.safetensors`.
fn saved(layers: &[Dense]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("m.onnx"), onnx::write(layers, None).unwrap()).unwrap();
    fs::write(folder.path().join("m.safetensors"), safetensors::write(layers, None).unwrap())
        .unwrap();
    folder
}

#[test]
fn zeros_are_dropped_and_all_else_is_imported() {
    let layers = layers(&[6, 5, 4], false);
    let nonzeros: usize =
        layers.iter().map(|l| l.weights.iter().filter(|&&w| w != 0.0).count()).sum();
    let folder = saved(&layers);
    let object = json(folder.path(), "import m.onnx -o a.tamis");
    assert_eq!(
        (object["nnz"].as_u64(), object["nnz_before"].as_u64()),
        (Some(nonzeros as u64), Some(nonzeros as u64))
    );
    assert_eq!(object["dense_nnz"], 50);
    assert_eq!(
        (object["requested_nnz"].clone(), object["task"].clone()),
        (json!(null), json!(null))
    );
    json(folder.path(), "import m.safetensors -o b.tamis");
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("a.tamis"), read("b.tamis"));
}

#[test]
fn exactly_requested_count_of_largest_weights_is_imported() {
    let layers = layers(&[6, 5, 4], false);
    let folder = saved(&layers);
    let mut sizes: Vec<f32> = layers.iter().flat_map(|l| &l.weights).map(|w| w.abs()).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    for nnz in [1, 7, 20] {
        let object = json(folder.path(), &format!("import m.onnx --nnz {nnz} -o a.tamis"));
        assert_eq!(
            (object["nnz"].as_u64(), object["requested_nnz"].as_u64()),
            (Some(nnz), Some(nnz))
        );
        let model = ModelFile::load(folder.path().join("a.tamis")).unwrap();
        assert_eq!(model.cost().unwrap().total.nonzeros as u64, nnz);
        json(
            folder.path(),
            &format!("import m.onnx --threshold {} -o b.tamis", sizes[nnz as usize - 1]),
        );
        let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
        assert_eq!(read("a.tamis"), read("b.tamis"), "{nnz}");
    }
    let object = json(folder.path(), "import m.onnx --density 0.2 -o a.tamis");
    assert_eq!(object["nnz"], 10, "a fifth of 50");
    assert!(ok(folder.path(), "import m.onnx --nnz 10 -o a.tamis").contains("tamis finetune"));
    let error = fails(folder.path(), "import m.onnx --nnz 51 -o a.tamis");
    assert!(error.contains("51 asked for"), "{error}");
    assert!(fails(folder.path(), "import m.onnx --nnz 0 -o a.tamis").contains("0 asked for"));
    assert!(fails(folder.path(), "import m.onnx --density 1.5 -o a.tamis").contains("at most 1"));
    assert!(
        fails(folder.path(), "import m.onnx --threshold -1 -o a.tamis")
            .contains("--threshold of 0 or more")
    );
}

#[test]
fn of_equal_weights_the_first_are_kept() {
    let layer = Dense {
        name: "0".into(),
        inputs: 4,
        outputs: 1,
        weights: vec![0.5; 4],
        bias: vec![],
        relu: false,
    };
    let folder = saved(&[layer]);
    json(folder.path(), "import m.onnx --nnz 3 -o a.tamis");
    json(folder.path(), "export a.tamis --format safetensors -o b.safetensors");
    let bytes = fs::read(folder.path().join("b.safetensors")).unwrap();
    let (tensors, _) = safetensors::read(&bytes).unwrap();
    assert_eq!(tensors[0].values.as_deref(), Some(&[0.5, 0.5, 0.5, 0.0][..]));
}

#[test]
fn biases_are_imported_as_biases() {
    let layers = layers(&[3, 4, 4, 2], true);
    let folder = saved(&layers);
    let object = json(folder.path(), "import m.safetensors -o m.tamis");
    let all = layers.iter().flat_map(|layer| layer.weights.iter().chain(&layer.bias));
    assert_eq!(object["nnz"], all.filter(|&&w| w != 0.0).count());
    assert_eq!((&object["inputs"], &object["ones_input"]), (&json!(3), &serde_json::Value::Null));
    let model = ModelFile::load(folder.path().join("m.tamis")).unwrap();
    let x = [0.5_f32, -1.0, 2.0];
    let mut h = x.to_vec();
    for layer in &layers {
        let sums = layer.weights.chunks(layer.inputs).zip(&layer.bias);
        let sums = sums.map(|(row, &b)| row.iter().zip(&h).fold(b, |sum, (w, x)| sum + w * x));
        h = sums.map(|sum: f32| if layer.relu { sum.max(0.0) } else { sum }).collect();
    }
    let row = tamis_host::data::Matrix::new(1, 3, tamis_host::data::Values::F32(x.to_vec()));
    assert_eq!(model.predict(&row.unwrap()).unwrap(), h, "to the bit: sums start at biases");
    let fixed = layers.iter().map(|l| l.bias.iter().filter(|&&b| b != 0.0).count()).sum::<usize>();
    let object =
        json(folder.path(), &format!("import m.safetensors --nnz {} -o m.tamis", fixed + 5));
    assert_eq!(object["nnz"], fixed + 5);
    assert_eq!(json(folder.path(), "inspect m.tamis")["total"]["nnz"], fixed + 5);
    let error =
        fails(folder.path(), &format!("import m.safetensors --nnz {} -o m.tamis", fixed - 1));
    assert!(error.contains("are biases"), "{error}");
}

#[test]
fn finetuned_biases_stay_biases() {
    let folder = saved(&layers(&[3, 4, 4, 2], true));
    ok(folder.path(), "import m.safetensors --task regression -o m.tamis -q");
    let text = |row: fn(f32) -> String| (0..60).map(|k| row(k as f32 / 10.0)).collect::<String>();
    let x = text(|x| format!("{x},{},{}\n", (7.0 * x).sin(), (3.0 * x).cos()));
    fs::write(folder.path().join("x.csv"), x).unwrap();
    fs::write(folder.path().join("y.csv"), text(|x| format!("{},{}\n", 5.0 + x, -x))).unwrap();
    let before = json(folder.path(), "inspect m.tamis");
    let line = "finetune m.tamis --data x.csv --labels y.csv --epochs 60 -o t.tamis";
    let report = json(folder.path(), line);
    let after = json(folder.path(), "inspect t.tamis");
    assert_eq!(report["nnz"], before["total"]["nnz"]);
    assert_eq!((&after["total"]["nnz"], &after["inputs"]), (&report["nnz"], &json!(3)));
    let eval = json(folder.path(), "eval t.tamis --data x.csv --labels y.csv");
    let [eval, loss] = [&eval, &report].map(|of| number(of, "loss"));
    assert!((eval - loss).abs() < 1e-9 * loss, "{eval} {loss}");
    assert!(number(&report, "loss") < 0.5 * number(&report, "loss_before"), "{report}");
}

#[test]
fn what_is_exported_is_imported_to_the_byte() {
    let folder = prepared();
    let path = folder.path();
    ok(path, "generate digits --samples 300 --seed 1 -o d -q");
    let digits = "train --data d/X.npy --labels d/y.npy --task multiclass --epochs 2 -q";
    ok(path, &format!("{digits} --hidden 8 --nnz 60 -o classes.tamis"));
    ok(path, &format!("{digits} --hidden 8,6 --nnz 80 -o deep.tamis"));
    ok(path, &format!("{digits} --recipe imp --hidden 6,5 --nnz 70 -o imp.tamis"));
    let two = "train --data d/X.npy --labels d/y.npy --keep-labels 0,1 --task binary --hidden 4 --nnz 20 --epochs 2";
    ok(path, &format!("{two} -q -o two.tamis"));
    for model in ["m", "classes", "deep", "imp", "two"] {
        let data = if model == "m" { "p/X.npy" } else { "d/X.npy" };
        ok(path, &format!("predict {model}.tamis --data {data} -o before.npy -q"));
        for format in ["onnx", "safetensors"] {
            let object =
                json(path, &format!("export {model}.tamis --format {format} -o e.{format}"));
            assert_eq!(object["format"], format);
            json(path, &format!("export {model}.tamis --format {format} -o again.{format}"));
            let read = |name: &str| fs::read(path.join(name)).unwrap();
            assert_eq!(
                read(&format!("e.{format}")),
                read(&format!("again.{format}")),
                "the same bytes each time"
            );
            json(path, &format!("import e.{format} -o back.tamis"));
            assert_eq!(read("back.tamis"), read(&format!("{model}.tamis")), "{model} by {format}");
            ok(path, &format!("predict back.tamis --data {data} -o after.npy -q"));
            assert_eq!(read("before.npy"), read("after.npy"));
        }
    }
}

#[test]
fn exported_files_are_bit_identical_to_golden_files() {
    let weights = [vec![1.0, -0.5, 0.0, 0.0, 0.25, 3.0], vec![1.5, -2.0]];
    let layer = |l: usize, inputs, outputs, relu| Dense {
        name: String::new(),
        inputs,
        outputs,
        weights: weights[l].clone(),
        bias: Vec::new(),
        relu,
    };
    let folder = saved(&[layer(0, 3, 2, true), layer(1, 2, 1, false)]);
    ok(folder.path(), "import m.safetensors --task binary --class-from 0.5 -o tiny.tamis -q");
    for format in ["onnx", "safetensors"] {
        let name = format!("tiny.{format}");
        ok(folder.path(), &format!("export tiny.tamis --format {format} -o {name} -q"));
        let made = fs::read(folder.path().join(&name)).unwrap();
        let place = golden().join(&name);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&place, &made).unwrap();
        }
        assert_eq!(
            made,
            fs::read(&place).unwrap(),
            "{name}: UPDATE_GOLDEN=1 if the change is wanted"
        );
    }
}

#[test]
fn npz_is_read_by_names_and_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, arrays: &[(&str, Array<'_>)]| {
        npz::write(File::create(folder.path().join(name)).unwrap(), arrays).unwrap();
    };
    let (w, b) = ([1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], [0.5_f32, 0.0, 0.25]);
    let (square, layer) = (Array::new(&[2, 2], &w[..4]).unwrap(), Array::new(&[2, 3], &w).unwrap());
    write("kernel.npz", &[("coefs_0", layer), ("intercepts_0", Array::new(&[3], &b).unwrap())]);
    let object = json(folder.path(), "import kernel.npz -o m.tamis");
    assert_eq!((object["format"].as_str(), object["outputs"].as_u64()), (Some("npz"), Some(3)));
    write("square.npz", &[("W", square)]);
    let error = fails(folder.path(), "import square.npz -o m.tamis");
    assert!(error.contains("--layout out-in"), "{error}");
    ok(folder.path(), "import square.npz --layout in-out -o m.tamis");
    let error = fails(folder.path(), "import kernel.npz --layers 1 -o m.tamis");
    assert!(error.contains("no layer 1") && error.contains("the file has 0"), "{error}");
    ok(folder.path(), "import kernel.npz --layers 0 -o m.tamis");
}

#[test]
fn tasks_are_stored_and_checked() {
    let folder = saved(&layers(&[3, 4, 1], false));
    let import = |flags: &str| json(folder.path(), &format!("import m.onnx {flags} -o m.tamis"));
    let object = import("--task binary");
    assert_eq!(
        (object["task"].clone(), object["threshold"].clone()),
        (json!("binary"), json!(0.0))
    );
    assert_eq!(import("--task binary --class-from 0.5")["threshold"], 0.5);
    assert_eq!(import("--task regression")["threshold"], json!(null));
    let object = json(folder.path(), "inspect m.tamis");
    assert_eq!(object["task"], "regression");
    let fails = |flags: &str| fails(folder.path(), &format!("import m.onnx {flags} -o m.tamis"));
    assert!(fails("--task multiclass").contains("two outputs or more"));
    assert!(fails("--class-from 0.5").contains("with --task binary"));
    assert!(fails("--task binary --class-from inf").contains("finite"));
    assert!(fails("--layers 0").contains("named arrays"));
}

#[test]
fn files_of_other_formats_are_named_with_remedy() {
    let folder = prepared();
    let path = folder.path();
    for (name, bytes, expected) in [
        ("m.h5", &b"\x89HDF\r\n\x1a\n0000"[..], "HDF5"),
        ("m.pkl", b"\x80\x04\x95rest of it", "pickle of Python"),
        ("m.pt", b"PK\x03\x04 and more", "pickle of PyTorch"),
        ("m.keras", b"PK\x03\x04 and more", "archive of Keras"),
        ("m.npy", b"\x93NUMPY\x01\x00", "single array"),
        ("m.tflite", b"\x1c\0\0\0TFL3\0\0\0\0", "TFLite"),
        ("empty.onnx", b"", "an empty file"),
        ("text.onnx", b"this is no model at all", "malformed"),
        ("zip.npz", b"PK\x03\x04 and more", "archive"),
        ("st.safetensors", b"\x0c\0\0\0\0\0\0\0{\"a\": 3, 4} ", "safetensors file is malformed"),
    ] {
        fs::write(path.join(name), bytes).unwrap();
        let error = fails(path, &format!("import {name} -o new.tamis"));
        assert!(error.contains(expected) && error.contains(name), "{error}");
    }
    assert!(fails(path, "import m.tamis -o new.tamis").contains("needs no import"));
    assert!(fails(path, "import missing.onnx -o new.tamis").contains("missing.onnx"));
    assert!(fails(path, "import m.tamis -o m.tamis").contains("m.tamis"));
    assert!(fails(path, "import . -o new.tamis").contains("folder"));
}

#[test]
fn framework_exports_are_floats_with_their_own_extensions() {
    let folder = prepared();
    let path = folder.path();
    ok(path, "quantize m.tamis --data p/X.npy -o q.tamis -q");
    for format in ["onnx", "safetensors"] {
        let error = fails(path, &format!("export q.tamis --format {format} -o e.{format}"));
        assert!(error.contains("8-bit integers") && error.contains("made of"), "{error}");
        let error = fails(path, &format!("export m.tamis --format {format} -o e.rs"));
        assert!(error.contains(&format!("ends in .{format}")), "{error}");
        assert!(
            fails(path, &format!("export m.tamis --format {format} --name a -o e.{format}"))
                .contains("--name")
        );
        let error =
            fails(path, &format!("export m.tamis --format {format} --straight-line -o e.{format}"));
        assert!(error.contains("--format rust"), "{error}");
    }
}

/// Runs the graphs on the same rows, and compares.
const RUNTIME: &str = "
import sys, numpy as np, onnxruntime as ort
for model, rows, expected in zip(*[iter(sys.argv[1:])] * 3):
    x = np.load(rows).astype(np.float32)
    y = ort.InferenceSession(model, providers=['CPUExecutionProvider']).run(None, {'input': x})[0]
    p = np.load(expected).reshape(len(x), -1)[:, -y.shape[1]:]
    error = np.abs(y - p).max() / np.abs(p).max()
    print(model, error)
    assert error < 1e-5, (model, error)
";

#[test]
#[ignore = "needs onnxruntime in TAMIS_PYTHON"]
fn onnxruntime_predicts_the_same_of_what_is_exported() {
    let python =
        std::env::var_os("TAMIS_PYTHON").expect("TAMIS_PYTHON names a Python with onnxruntime");
    let folder = prepared();
    let path = folder.path();
    ok(path, "generate digits --samples 300 --seed 1 -o d -q");
    let digits = "train --data d/X.npy --labels d/y.npy --task multiclass --epochs 2 -q";
    ok(path, &format!("{digits} --hidden 8 --nnz 60 -o classes.tamis"));
    ok(path, &format!("{digits} --hidden 8,6 --nnz 80 -o deep.tamis"));
    let mut arguments = Vec::new();
    for (model, data) in [("m", "p/X.npy"), ("classes", "d/X.npy"), ("deep", "d/X.npy")] {
        ok(path, &format!("export {model}.tamis --format onnx -o {model}.onnx -q"));
        ok(path, &format!("predict {model}.tamis --data {data} -o {model}.npy -q"));
        arguments.extend([format!("{model}.onnx"), data.to_owned(), format!("{model}.npy")]);
    }
    let output = Command::new(python)
        .current_dir(path)
        .args(["-c", RUNTIME])
        .args(arguments)
        .output()
        .unwrap();
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{out}{err}");
}
