//! `tamis mask` and `tamis train --mask`: exact counts, the same mask from every source and in every
//! format, collapse, and training in memory for the kept weights.

use std::fs;
use std::path::Path;

use crate::common::*;
use serde_json::{Value, json};
use tamis_host::data::{Array, npz};

pub(crate) const LAYERS: &str = "mask --layers 64,40,30,10";
pub(crate) const DIGITS: &str = "--data d/X.npy --labels d/y.npy --task multiclass";

pub(crate) fn digits() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), "generate digits --samples 600 --side 8 --seed 2 -o d -q");
    folder
}

fn kept(report: &Value) -> Vec<u64> {
    let layers = report["layers"].as_array().unwrap();
    layers.iter().map(|layer| layer["kept"].as_u64().unwrap()).collect()
}

pub(crate) fn bytes(folder: &Path, name: &str) -> Vec<u8> {
    fs::read(folder.join(name)).unwrap()
}

/// 64·40 + 40·30 + 30·10 = 4060 weights.
#[test]
fn every_method_keeps_exactly_the_count() {
    let folder = digits();
    let folder = folder.path();
    ok(
        folder,
        &format!("{LAYERS} --method erk --nnz 900 --seed 5 --export-weights w.npz -o m.npz"),
    );
    for (method, rows) in [
        ("synflow", ""),
        ("magnitude", ""),
        ("random", ""),
        ("erk", ""),
        ("snip", DIGITS),
        ("snip --rounds 5 --schedule linear", DIGITS),
        ("snip --random-data sparse --rows 40", "--data d/X.npy"),
        ("grasp --temperature 1", DIGITS),
        ("ntk --rounds 3", "--data d/X.npy --rows 100"),
        ("sketch", "--data d/X.npy"),
        ("synflow --input pixel-sd", "--data d/X.npy"),
        ("synflow --input chi --rounds 7", ""),
        ("imp --rounds 2 --epochs 1", DIGITS),
    ] {
        for source in ["--layers 64,40,30,10", "--weights w.npz"] {
            for select in ["--select threshold", "--select sample"] {
                let select = if ["random", "erk"].contains(&method) { "" } else { select };
                let line = format!(
                    "mask {source} --method {method} {rows} {select} --density 0.2 -o m.npz"
                );
                let report = json(folder, &line);
                assert_eq!(report["kept"], json!(812), "{line}");
                assert_eq!(kept(&report).iter().sum::<u64>(), 812, "{line}");
                let first = bytes(folder, "m.npz");
                ok(folder, &line);
                assert_eq!(bytes(folder, "m.npz"), first, "{line}");
            }
        }
    }
}

/// Also of weights of one size, in a network of a weight for each layer and two more.
#[test]
fn every_law_and_count_is_exact() {
    let folder = tempfile::tempdir().unwrap();
    for law in ["he", "pytorch", "signs"] {
        for nnz in [3, 5, 40, 406, 3000, 4059] {
            let line =
                format!("{LAYERS} --method synflow --init {law} --nnz {nnz} -o m.npz --json");
            let output = run(folder.path(), &line.split(' ').collect::<Vec<_>>());
            let report: Value = serde_json::from_str(&texts(&output).0).unwrap();
            assert_eq!(report["kept"], json!(nnz), "{line}");
            assert!(nnz < 400 || kept(&report).iter().all(|&kept| kept > 9), "{report}");
        }
    }
}

#[test]
fn ten_seeds_make_ten_masks() {
    let folder = tempfile::tempdir().unwrap();
    for method in ["synflow", "random", "magnitude"] {
        let mut seen: Vec<_> = (0..10)
            .map(|seed| {
                let line =
                    format!("{LAYERS} --method {method} --density 0.1 --seed {seed} -o m.tamis");
                assert_eq!(json(folder.path(), &line)["memoryless"], json!(true));
                bytes(folder.path(), "m.tamis")
            })
            .collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 10, "{method}");
    }
}

#[test]
fn seeded_weights_and_their_file_give_one_mask() {
    let folder = digits();
    let folder = folder.path();
    let line = format!("{LAYERS} --method synflow --density 0.1 --seed 3 --export-weights w.npz");
    let report = json(folder, &format!("{line} -o free.npz"));
    assert_eq!(report["memoryless"], json!(true));
    let regenerated = report["regenerated_weights"].as_u64().unwrap();
    assert!((4060 * 4..4060 * 40).contains(&regenerated), "{regenerated}");
    for method in ["synflow", "snip --data d/X.npy --labels d/y.npy"] {
        let seeded = format!("{LAYERS} --method {method} --density 0.1 --seed 3 --exact");
        let report = json(folder, &format!("{seeded} -o a.npz"));
        assert_eq!(
            (&report["memoryless"], &report["regenerated_weights"]),
            (&json!(false), &json!(4060))
        );
        ok(folder, &format!("mask --weights w.npz --method {method} --density 0.1 -o b.npz"));
        assert_eq!(bytes(folder, "a.npz"), bytes(folder, "b.npz"));
    }
    // The memoryless one is close to it.
    let ones = |name: &str| {
        let path = |layer| folder.join(format!("{name}#layer{layer}.weight"));
        (1..=3).flat_map(|layer| load(&path(layer))).collect::<Vec<_>>()
    };
    ok(folder, "mask --weights w.npz --method synflow --density 0.1 -o b.npz");
    let both =
        ones("free.npz").into_iter().zip(ones("b.npz")).filter(|&(a, b)| a == 1.0 && b == 1.0);
    assert!(both.count() > 350);
}

fn load(path: &Path) -> Vec<f32> {
    tamis_host::data::load(path).unwrap().values.into_f32()
}

/// 784-512-512-10 at 1 %: what a microcontroller of 48 KB makes.
#[test]
fn seeded_mask_memory_is_small() {
    let folder = tempfile::tempdir().unwrap();
    let line = "mask --layers 784,512,512,10 --method synflow --density 0.01 -o m.tamis";
    let report = json(folder.path(), line);
    assert_eq!((&report["kept"], &report["state_bytes"]), (&json!(6687), &json!(35_100)));
    assert!(report["regenerated_weights"].as_u64().unwrap() <= 14 * 668_672);
}

#[test]
fn collapsed_layers_are_named_and_refused_if_strict() {
    let folder = digits();
    let folder = folder.path();
    ok(
        folder,
        "mask --layers 784,300,100,10 --method erk --nnz 30000 --export-weights w.npz -o m.npz",
    );
    let rounds = "--method synflow --rounds 1 --density 0.02";
    for (line, layer) in [
        (format!("mask --weights w.npz {rounds}"), "layer1"),
        (format!("mask --layers 784,300,100,10 {rounds}"), "layer1"),
        (
            "mask --layers 784,300,100,10 --init pytorch --method magnitude --density 0.02".into(),
            "layer1",
        ),
        // Normal rows as standardised ones: a layer keeps some weights, few of which reach an output.
        (
            "mask --weights w.npz --method snip --random-data normal --density 0.01 --seed 3"
                .into(),
            "layer1",
        ),
    ] {
        let output = run(folder, &format!("{line} -o m.npz --json").split(' ').collect::<Vec<_>>());
        let (out, err) = texts(&output);
        assert!(output.status.success() && err.contains("warning") && err.contains(layer), "{err}");
        let report: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(report["collapsed"], json!([layer]), "{line}");
        fs::remove_file(folder.join("m.npz")).unwrap();
        let error = fails(folder, &format!("{line} -o m.npz --strict"));
        assert!(error.contains(layer) && error.contains("--min-layer"), "{error}");
        // A layer may be made to keep some.
        let report = json(folder, &format!("{line} --min-layer 600 -o m.npz --strict"));
        assert!(kept(&report).iter().all(|&kept| kept >= 600), "{report}");
    }
}

#[test]
fn masks_train_alike_from_every_format_and_source() {
    let folder = digits();
    let folder = folder.path();
    let mask = format!("{LAYERS} --method synflow --density 0.1 --seed 4");
    for name in ["m.npz", "m.safetensors", "m.tamis"] {
        ok(folder, &format!("{mask} --export-weights w.npz -o {name}"));
    }
    let train = |from: &str| {
        let line = format!("train {from} {DIGITS} --epochs 40 --batch 20 --seed 4 -o model.tamis");
        (json(folder, &line), bytes(folder, "model.tamis"))
    };
    let (report, model) = train("--mask m.npz --weights w.npz");
    for from in ["--mask m.safetensors --weights w.npz", "--mask m.tamis", "--mask m.npz"] {
        assert_eq!(train(from).1, model, "{from}");
    }
    assert_eq!((&report["recipe"], &report["nnz"]), (&json!("masked"), &json!(406)));
    assert_eq!((&report["kept"], &report["dense_nnz"]), (&json!(406), &json!(4060)));
    // Weights, indices, gradient and momentum.
    assert_eq!(report["state_bytes"], json!(16 * 406));
    assert!(report["accuracy"].as_f64().unwrap() > 0.8, "{report}");
    let eval = json(folder, "eval model.tamis --data d/X.npy --labels d/y.npy");
    assert_eq!((&eval["loss"], &eval["accuracy"]), (&report["loss"], &report["accuracy"]));
    assert_eq!(train("--mask m.npz --optimiser adam --rate 0.005").0["optimiser"], json!("adam"));
    let threads = train("--mask m.npz --threads 3").1;
    assert_eq!(threads, model);
}

/// Arrays as other programs name and lay them, with biases.
#[test]
fn foreign_names_layouts_and_biases_are_preserved() {
    let folder = digits();
    let folder = folder.path();
    let number = |e: usize| ((e * 7919 + e / 7 + 3) % 997) as f32 / 997.0 - 0.5;
    let values: Vec<f32> = (0..64 * 20 + 20 * 10).map(|e| 0.4 * number(e)).collect();
    let (hidden, out) = values.split_at(64 * 20);
    let biases: Vec<f32> = (0..30).map(|e| 0.1 * number(e + 77)).collect();
    let save = |name: &str, with: bool| {
        let mut arrays = vec![
            ("dense_1/kernel", Array::new(&[64, 20], hidden).unwrap()),
            ("dense_2/kernel", Array::new(&[20, 10], out).unwrap()),
        ];
        if with {
            arrays.push(("dense_1/bias", Array::new(&[20], &biases[..20]).unwrap()));
            arrays.push(("dense_2/bias", Array::new(&[10], &biases[20..]).unwrap()));
        }
        npz::write(&mut fs::File::create(folder.join(name)).unwrap(), &arrays).unwrap();
    };
    save("bare.npz", false);
    save("biased.npz", true);
    for name in ["bare.npz", "biased.npz"] {
        let line = format!("mask --weights {name} --method snip {DIGITS} --density 0.2 -o m.npz");
        let report = json(folder, &line);
        assert_eq!(report["layers"][0]["name"], json!("dense_1"));
        let mask = tamis_host::data::load(folder.join("m.npz#dense_1/kernel")).unwrap();
        assert_eq!((mask.rows, mask.cols, mask.is_bytes()), (64, 20, true));
        assert_eq!(mask.values.into_f32().iter().sum::<f32>() as u64, kept(&report)[0]);
        let line = format!("train --mask m.npz --weights {name} {DIGITS} --epochs 30 --batch 20");
        let report = json(folder, &format!("{line} -o model.tamis"));
        let is_biased = name == "biased.npz";
        let biases = if is_biased { 30 } else { 0 };
        assert_eq!((&report["kept"], &report["biases"]), (&json!(296), &json!(biases)));
        assert_eq!(report["nnz"], json!(296 + biases));
        assert!(report["accuracy"].as_f64().unwrap() > 0.7, "{report}");
        let cost = json(folder, "inspect model.tamis");
        assert_eq!((&cost["inputs"], &cost["total"]["nnz"]), (&json!(64), &report["nnz"]));
    }
}

/// Many programs begin with biases of 0: that they are there is what counts.
#[test]
fn biases_that_begin_at_zero_are_trained() {
    let folder = digits();
    let folder = folder.path();
    ok(folder, &format!("{LAYERS} --method erk --nnz 900 --export-weights w.npz -o m.npz -q"));
    let number = |e: usize| ((e * 7919 + e / 7 + 3) % 997) as f32 / 997.0 - 0.5;
    let widths = [64, 40, 30, 10];
    for (name, biases) in [("none.npz", None), ("zeros.npz", Some(0.0_f32))] {
        let mut arrays = Vec::new();
        for l in 0..3 {
            let [inputs, outputs] = [widths[l], widths[l + 1]];
            let weights: Vec<f32> = (0..inputs * outputs).map(number).collect();
            arrays.push((format!("layer{}.weight", l + 1), vec![outputs, inputs], weights));
            let bias = biases.map(|bias| vec![bias; outputs]);
            arrays.extend(bias.map(|bias| (format!("layer{}.bias", l + 1), vec![outputs], bias)));
        }
        let arrays: Vec<_> = arrays
            .iter()
            .map(|(name, shape, values)| (name.as_str(), Array::new(shape, &values[..]).unwrap()))
            .collect();
        npz::write(&mut fs::File::create(folder.join(name)).unwrap(), &arrays).unwrap();
        let line = format!("train --mask m.npz --weights {name} {DIGITS} --epochs 3 -o m.tamis");
        let trained = json(folder, &line)["biases"].as_u64().unwrap();
        assert_eq!(trained > 60, biases.is_some(), "{name}: {trained}");
        // To a model biases of 0 are none.
        let imported = json(folder, &format!("import {name} --density 0.5 -o i.tamis"));
        assert_eq!(imported["layers"][0]["biases"], json!(0), "{name}");
    }
}

#[test]
fn two_classes_and_numbers_train_under_masks() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ok(folder, "generate planted --samples 500 --inputs 8 --hidden 3 --nnz 6 --seed 3 -o p -q");
    let rows = "--data p/X.npy --labels p/y.npy --task regression";
    ok(folder, &format!("mask --layers 8,20,1 --method snip {rows} --density 0.3 -o m.npz"));
    let line = format!("train --mask m.npz {rows} --epochs 40 --batch 20 --rate 0.01 -o m.tamis");
    let report = json(folder, &line);
    let [loss, zero] = ["psnr_db", "zero_psnr_db"].map(|name| report[name].as_f64().unwrap());
    assert!(loss > zero + 5.0, "{report}");
    ok(folder, "generate digits --samples 400 --side 8 --seed 2 -o d -q");
    let rows = "--data d/X.npy --labels d/y.npy --keep-labels 3,8 --task binary";
    ok(folder, "mask --layers 64,12,1 --method synflow --density 0.3 -o m.npz");
    let report =
        json(folder, &format!("train --mask m.npz {rows} --epochs 20 --batch 10 -o m.tamis"));
    assert!(report["accuracy"].as_f64().unwrap() > 0.8, "{report}");
    let eval = json(folder, &format!("eval m.tamis {}", rows.replace(" --task binary", "")));
    assert_eq!(eval["accuracy"], report["accuracy"]);
}

#[test]
fn one_line_is_for_all_methods() {
    let folder = digits();
    for (method, unused) in [
        ("snip", &[][..]),
        ("ntk", &["--labels", "--task"]),
        ("magnitude", &["--data", "--labels", "--task"]),
        ("random", &["--data", "--labels", "--task", "--select"]),
    ] {
        let line =
            format!("{LAYERS} --method {method} --select sample {DIGITS} --nnz 400 -o m.npz");
        let output = run(folder.path(), &line.split_whitespace().collect::<Vec<_>>());
        assert!(output.status.success(), "{line}");
        let said = String::from_utf8(output.stderr).unwrap();
        let notes: Vec<&str> = said.lines().filter(|line| line.starts_with("note: ")).collect();
        let wanted =
            unused.iter().map(|flag| format!("note: --method {method} does not use {flag}"));
        assert_eq!(notes, wanted.collect::<Vec<_>>());
    }
}

#[test]
fn the_next_line_trains_the_weights_of_the_mask() {
    let folder = digits();
    let folder = folder.path();
    let next = |line: &str| {
        let text = ok(folder, line);
        text.lines().find(|line| line.contains("  next ")).unwrap().to_owned()
    };
    let seeded = next(&format!(
        "{LAYERS} --method erk --nnz 900 --init pytorch --seed 3 --export-weights w.npz -o m.npz"
    ));
    assert!(seeded.contains("--seed 3 --init pytorch"), "{seeded}");
    let read = next("mask --weights w.npz --layout out-in --method erk --nnz 900 -o m.npz");
    assert!(read.contains("--weights w.npz --layout out-in"), "{read}");
}

#[test]
fn reports_of_two_classes_have_no_psnr() {
    let folder = digits();
    let folder = folder.path();
    ok(folder, "mask --layers 64,12,1 --method synflow --density 0.3 -o m.npz");
    let rows = "--data d/X.npy --labels d/y.npy --keep-labels 3,8 --task binary";
    let text = ok(folder, &format!("train --mask m.npz {rows} --epochs 2 -o m.tamis"));
    assert!(text.contains("accuracy") && !text.contains("PSNR"), "{text}");
}

/// 784·4000 + 4000·4000 + 4000·10 = 19 176 000 weights, of which 19 176 are kept.
#[test]
#[cfg(target_os = "linux")]
fn a_huge_mask_is_read_in_memory_for_its_weights() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ok(folder, "generate digits --samples 40 --side 28 --seed 2 -o d -q");
    let mask = "mask --layers 784,4000,4000,10 --method random --min-layer 4000 --density 0.001";
    let peak = |name: &str| {
        ok(folder, &format!("{mask} -o {name}"));
        let line = format!("train --mask {name} {DIGITS} --epochs 1 --threads 1 -o m.tamis");
        let report = json(folder, &line);
        assert_eq!(report["kept"], json!(19_176));
        (report["peak_rss_bytes"].as_u64().unwrap(), bytes(folder, "m.tamis"))
    };
    let (least, model) = peak("mask.tamis");
    for name in ["mask.npz", "mask.safetensors"] {
        let (own, same) = peak(name);
        assert!(own < least + (2 << 20), "{name}: {own} bytes, where .tamis takes {least}");
        assert!(same == model, "{name}");
    }
}
