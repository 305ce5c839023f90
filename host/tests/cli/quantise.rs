//! Models of integers from the command line: made, scored, predicted with and inspected; and what
//! is refused.

use crate::common::*;
use serde_json::json;
use tamis::store::wire::{Aligned, QuantisedView};
use tamis_host::convert::{Dense, onnx};
use tamis_host::data;

const PLANTED: &str =
    "generate planted --samples 600 --inputs 12 --hidden 4 --nnz 16 --seed 3 -o p -q";
const TRAIN: &str =
    "train --data p/X.npy --labels p/y.npy --task regression --hidden 4 --nnz 16 -o m.tamis -q";
const DIGITS: &str = "generate digits --samples 400 --seed 1 -o d -q";
const CLASSES: &str = "train --data d/X.npy --labels d/y.npy --task multiclass --hidden 12 --nnz 120 --epochs 20 -o c.tamis -q";

#[test]
fn a_network_of_numbers_keeps_forty_decibels() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), PLANTED);
    ok(folder.path(), TRAIN);
    let report = json(
        folder.path(),
        "quantize m.tamis --data p/X.npy --labels p/y.npy --per-neuron -o q.tamis",
    );
    assert!(number(&report, "outputs_psnr_db") > 40.0, "{report}");
    assert_eq!(
        (&report["granularity"], &report["bytes_as_they_are"]),
        (&json!("per-neuron"), &json!(false))
    );
    assert!(
        number(&report["before"], "psnr_db") > 100.0 && number(&report["after"], "psnr_db") > 40.0,
        "{report}"
    );
    let eval = json(folder.path(), "eval q.tamis --data p/X.npy --labels p/y.npy");
    assert_eq!(eval["psnr_db"], report["after"]["psnr_db"]);
    let cost = json(folder.path(), "inspect q.tamis");
    assert_eq!(
        (&cost["file_bytes"], &cost["task"]),
        (&report["model_bytes"], &json!("regression"))
    );
    assert_eq!(
        (&cost["integers"]["zero"], &cost["layers"][1]["kind"]),
        (&report["input_zero"], &json!("sum"))
    );
    assert!(number(&cost, "file_bytes") < number(&report, "model_bytes_before"), "{cost}");
    // Without labels the same file, and no scores.
    let alone = json(folder.path(), "quantise m.tamis --data p/X.npy --per-neuron -o again.tamis");
    assert_eq!((&alone["before"], &alone["after"]), (&json!(null), &json!(null)));
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("again.tamis"), read("q.tamis"));
    assert!(
        ok(folder.path(), "quantize m.tamis --data p/X.npy -o again.tamis")
            .contains("rounded to steps of")
    );
}

#[test]
fn every_encoding_of_a_classifier_predicts_the_same() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), DIGITS);
    ok(folder.path(), CLASSES);
    // Labels that would be other classes than those of the model.
    for keep in ["3,7", "1,0", "0,1,2,3,4,5,6,7,9"] {
        let error = fails(
            folder.path(),
            &format!("eval c.tamis --data d/X.npy --labels d/y.npy --keep-labels {keep}"),
        );
        assert!(error.contains("number some classes of the model anew"), "{error}");
        assert!(error.contains("expected: 10 labels") && error.contains("d/y.npy"), "{error}");
    }
    ok(folder.path(), "eval c.tamis --data d/X.npy --labels d/y.npy --keep-labels 0,1");
    let mut seen: Option<(Vec<f32>, usize)> = None;
    for encoding in ["smallest", "fastest", "dense", "bitmask", "blocks"] {
        let line = format!(
            "quantize c.tamis --data d/X.npy --labels d/y.npy --encoding {encoding} -o q.tamis"
        );
        let report = json(folder.path(), &line);
        assert_eq!(
            (&report["bytes_as_they_are"], &report["input_scale"]),
            (&json!(true), &json!(1.0))
        );
        assert!(
            number(&report["after"], "accuracy") > number(&report["before"], "accuracy") - 0.02,
            "{report}"
        );
        ok(folder.path(), "predict q.tamis --data d/X.npy -o o.npy -q");
        let rows = data::load(folder.path().join("o.npy")).unwrap().values.into_f32();
        let len = number(&report, "model_bytes") as usize;
        let (first, least) = seen.get_or_insert((rows.clone(), len));
        assert!(*first == rows && *least <= len, "{encoding}");
    }
    // The class on a part is the first number of a row.
    let mut bytes = Box::new(Aligned([0; 1 << 14]));
    let file = std::fs::read(folder.path().join("q.tamis")).unwrap();
    bytes.0[..file.len()].copy_from_slice(&file);
    let view = QuantisedView::parse(&bytes.0[..file.len()]).unwrap();
    let images = data::load(folder.path().join("d/X.npy")).unwrap();
    let data::Values::U8(pixels) = images.values else { panic!("images are bytes") };
    let (mut scratch, mut out) =
        (vec![0; view.model().scratch_len()], vec![0; view.model().outputs()]);
    for (row, expected) in pixels.chunks(images.cols).zip(seen.unwrap().0.chunks(out.len() + 1)) {
        let class = view.model().classify(row, &mut scratch, &mut out).unwrap();
        assert_eq!(class as f32, expected[0]);
    }
}

/// Weights of a network on bytes are 255 times smaller than its biases: rounded to the same 8 bits
/// they would all be lost.
#[test]
fn imported_biases_do_not_coarsen_weight_scales() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = 1_u32;
    let mut draw = |count: usize, size: f32| -> Vec<f32> {
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            size * ((state >> 8) as f32 / (1 << 23) as f32 - 1.0)
        };
        (0..count).map(|_| next()).collect()
    };
    let (weights, bias) = (draw(6 * 9, 1.0 / 255.0), draw(6, 1.0));
    let hidden = Dense { name: "0".into(), inputs: 9, outputs: 6, weights, bias, relu: true };
    let (weights, bias) = (draw(3 * 6, 1.0), draw(3, 1.0));
    let last = Dense { name: "2".into(), inputs: 6, outputs: 3, weights, bias, relu: false };
    let save = |name: &str, layers: &[Dense]| {
        std::fs::write(folder.path().join(name), onnx::write(layers, None).unwrap()).unwrap();
    };
    save("m.onnx", &[hidden.clone(), last.clone()]);
    // The same with a last input of ones, which a seventh neuron hands on.
    let with_ones = |layer: &Dense, hands_on: bool| {
        let rows = layer.weights.chunks(layer.inputs).zip(&layer.bias);
        let mut weights: Vec<f32> =
            rows.flat_map(|(row, &b)| row.iter().copied().chain([b])).collect();
        let mut one = vec![0.0; layer.inputs + 1];
        one[layer.inputs] = 1.0;
        weights.extend(one.iter().filter(|_| hands_on));
        let (inputs, outputs) = (layer.inputs + 1, layer.outputs + usize::from(hands_on));
        Dense { inputs, outputs, weights, bias: Vec::new(), ..layer.clone() }
    };
    save("o.onnx", &[with_ones(&hidden, true), with_ones(&last, false)]);
    let mut rows = |ones: bool| -> String {
        let byte = |x: f32| ((x + 1.0) * 127.5).round().to_string();
        let mut bytes = draw(9 * 200, 1.0).into_iter();
        let last = |k: usize| if ones || k > 0 { "1".to_owned() } else { "2".to_owned() };
        let row = |k| bytes.by_ref().take(9).map(byte).chain([last(k)]).collect::<Vec<_>>();
        (0..200).map(row).map(|row| row.join(",") + "\n").collect()
    };
    let ones = rows(true);
    std::fs::write(folder.path().join("plain.csv"), ones.replace(",1\n", "\n")).unwrap();
    std::fs::write(folder.path().join("ones.csv"), ones).unwrap();
    std::fs::write(folder.path().join("others.csv"), rows(false)).unwrap();
    ok(folder.path(), "import m.onnx --task multiclass -o m.tamis -q");
    ok(folder.path(), "import o.onnx --task multiclass -o o.tamis -q");
    for (model, scales) in [
        ("m.tamis --data plain.csv", "--per-layer"),
        ("m.tamis --data plain.csv", "--per-neuron"),
        ("o.tamis --data ones.csv", "--per-layer"),
        ("o.tamis --data ones.csv", "--per-neuron"),
    ] {
        let report = json(folder.path(), &format!("quantize {model} {scales} -o q.tamis"));
        assert_eq!(
            (&report["biases"], &report["bytes_as_they_are"]),
            (&json!(9), &json!(true)),
            "{report}"
        );
        assert!(number(&report, "outputs_psnr_db") > 45.0, "{report}");
        // The neuron that handed on the 1 is not needed.
        assert_eq!(report["layers"][0]["outputs"], 6, "{report}");
    }
    // What differs from row to row is no bias.
    let report = json(folder.path(), "quantize o.tamis --data others.csv -o q.tamis");
    assert_eq!(
        (&report["biases"], &report["layers"][0]["outputs"]),
        (&json!(0), &json!(7)),
        "{report}"
    );
    let text = ok(folder.path(), "quantize o.tamis --data others.csv -o q.tamis");
    assert!(text.contains("far from those of the floats"), "{text}");
}

/// One neuron reads the end of one input by a large weight, the other many by small ones: with one scale for both
/// the small weights are two or three steps.
#[test]
fn neurons_get_own_scales_where_that_pays() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = 7_u32;
    let mut uniform = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32
    };
    let columns = 40;
    let model = |name: &str, large: f32, draw: &mut dyn FnMut() -> f32| {
        let mut weights = vec![0.0; 2 * columns];
        weights[0] = large;
        weights[columns + 1..].iter_mut().for_each(|w| *w = 0.2 + 0.2 * draw());
        let bias = vec![-0.75 * large, 0.0];
        let hidden =
            Dense { name: "0".into(), inputs: columns, outputs: 2, weights, bias, relu: true };
        let (weights, bias) = (vec![1.0, -1.0], vec![0.0]);
        let last = Dense { name: "2".into(), inputs: 2, outputs: 1, weights, bias, relu: false };
        let file = onnx::write(&[hidden, last], None).unwrap();
        std::fs::write(folder.path().join(name), file).unwrap();
    };
    model("apart.onnx", 16.0, &mut uniform);
    model("alike.onnx", 0.4, &mut uniform);
    let row = |_| (0..columns).map(|_| uniform().to_string()).collect::<Vec<_>>().join(",") + "\n";
    std::fs::write(folder.path().join("X.csv"), (0..300).map(row).collect::<String>()).unwrap();
    for (name, chosen) in [("apart", "per-neuron"), ("alike", "per-layer")] {
        ok(folder.path(), &format!("import {name}.onnx --task regression -o {name}.tamis -q"));
        let report = |more: &str| {
            json(folder.path(), &format!("quantize {name}.tamis --data X.csv -o q.tamis {more}"))
        };
        let [own, layer, neuron] = ["", "--per-layer", "--per-neuron"].map(report);
        assert_eq!(own["granularity"], chosen, "{own}");
        assert_eq!(
            (&layer["granularity"], &neuron["granularity"]),
            (&json!("per-layer"), &json!("per-neuron"))
        );
        let decibel = |report| number(report, "outputs_psnr_db");
        let same = if chosen == "per-layer" { &layer } else { &neuron };
        assert!((decibel(&own) - decibel(same)).abs() < 1e-9, "{own}");
        if chosen == "per-neuron" {
            assert!(decibel(&own) > decibel(&layer) + 3.0, "{own} {layer}");
        }
    }
}

#[test]
fn what_cannot_be_rounded_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), PLANTED);
    ok(folder.path(), TRAIN);
    ok(folder.path(), "quantize m.tamis --data p/X.npy -o q.tamis");
    let wrong = |line: &str, words: &str| {
        let error = fails(folder.path(), line);
        assert!(error.contains(words), "{line}: {error}");
    };
    wrong("quantize q.tamis --data p/X.npy -o n.tamis", "one of integers");
    wrong("finetune q.tamis --data p/X.npy --labels p/y.npy -o n.tamis", "one of integers");
    wrong("quantize m.tamis --data p/X.npy --part 0.5 -o n.tamis", "cut too many");
    wrong("quantize m.tamis --data p/X.npy --fraction 0 -o n.tamis", "--fraction above 0");
    wrong("quantize m.tamis --data p/y.npy -o n.tamis", "does not fit the model");
    wrong("quantize m.tamis --data p/X.npy --keep-labels 0,1 -o n.tamis", "--labels or --target");
    wrong("quantize m.tamis --data p/X.npy -o m.tamis", "m.tamis");
    let zeros = "0,".repeat(11) + "0\n";
    std::fs::write(folder.path().join("others.csv"), zeros.repeat(5)).unwrap();
    wrong("quantize m.tamis --data others.csv -o n.tamis", "scale");
    let mut later = std::fs::read(folder.path().join("q.tamis")).unwrap();
    later[48] = 99;
    let crc = tamis::store::wire::checksum(&later).to_le_bytes();
    later[12..16].copy_from_slice(&crc);
    std::fs::write(folder.path().join("later.tamis"), later).unwrap();
    wrong("inspect later.tamis", "update tamis");
}
