//! What `tamis inspect` says of a model on a device: text, JSON, limits and their exit code, and what
//! is refused.

use crate::common::*;
use serde_json::{Value, json};
use std::path::Path;
use tamis::infer::model::{Activation, Csr, Layer, Model};
use tamis::store::wire::View;

/// Writes a model of one full layer of floats.
fn full(path: &Path, inputs: usize, outputs: usize) {
    let columns: Vec<u16> = (0..inputs as u16).collect::<Vec<_>>().repeat(outputs);
    let (counts, values) = (vec![inputs as u16; outputs], vec![0.5; inputs * outputs]);
    let csr = Csr::new(inputs, &counts, &columns, &values, Activation::Identity).unwrap();
    let view = View::new(Model::new(&[Layer::Csr(csr)]).unwrap());
    let mut bytes = vec![0; view.encoded_len()];
    view.encode(&mut bytes).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// Exit code, the object, and standard error.
fn judged(folder: &Path, line: &str) -> (Option<i32>, Value, String) {
    let output = run(folder, &line.split_whitespace().collect::<Vec<_>>());
    let (out, err) = texts(&output);
    (output.status.code(), serde_json::from_str(&out).unwrap_or(Value::Null), err)
}

#[test]
fn model_is_shown_by_layer_and_against_dense() {
    let folder = prepared();
    let text = ok(folder.path(), "inspect m.tamis --mcu nrf52840");
    for words in [
        "nRF52840",
        "64 MHz",
        "density",
        "instructions",
        "dense int8",
        "dense f32",
        "Fits",
        "cycles an instruction",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    let cost = json(folder.path(), "inspect m.tamis --mcu nRF52840 --deploy file");
    let on = &cost["target"];
    assert_eq!(
        (&on["core"], &on["fits"], &on["numbers"]),
        (&json!("Cortex-M4F"), &json!(true), &json!("floats"))
    );
    assert_eq!(
        (&on["device"]["flash_bytes"], &on["device"]["megahertz"]),
        (&json!(1 << 20), &json!(64))
    );
    for network in ["model", "dense_int8", "dense_f32"] {
        let needs = &on[network];
        assert_eq!(
            number(needs, "flash_bytes"),
            number(needs, "model_bytes") + number(needs, "code_bytes")
        );
        let ram = ["scratch_bytes", "output_bytes", "stack_bytes"]
            .map(|key| number(needs, key))
            .iter()
            .sum::<f64>();
        assert_eq!(number(needs, "ram_bytes"), ram);
        assert!(
            number(needs, "instructions") > 0.0 && needs["milliseconds"][1].as_f64() > Some(0.0)
        );
    }
    assert_eq!(on["model"]["model_bytes"], cost["file_bytes"]);
    let layers = on["layer_instructions"].as_array().unwrap();
    assert_eq!(layers.len(), cost["layers"].as_array().unwrap().len());
    let sum: f64 = layers.iter().map(|layer| layer.as_f64().unwrap()).sum();
    assert!(number(&on["model"], "instructions") + 2.0 >= sum);
    // The dense shape is the one that was asked for: 12 inputs, 3 neurons, one output.
    assert_eq!(on["dense_f32"]["macs"], json!(39));
    assert!(
        (number(&cost["layers"][0], "density") - number(&cost["layers"][0], "nnz") / 36.0).abs()
            < 1e-12
    );
}

#[test]
fn weights_are_drawn_and_counted() {
    let folder = prepared();
    let path = folder.path();
    full(&path.join("full.tamis"), 6, 4);
    let report = json(path, "inspect full.tamis --weights w.svg");
    let layer = &report["weights"][0];
    assert_eq!((&layer["count"], number(layer, "mean")), (&json!(24), 0.5), "{report}");
    assert_eq!((number(layer, "variance"), number(layer, "least")), (0.0, 0.5), "{report}");
    let svg = std::fs::read_to_string(path.join("w.svg")).unwrap();
    assert!(svg.contains("layer 1") && roxmltree::Document::parse(&svg).is_ok());
    let text = ok(path, "inspect m.tamis --weights m.svg --mcu cortex-m0");
    assert!(text.contains("variance") && path.join("m.svg").exists(), "{text}");
    assert!(json(path, "inspect full.tamis").get("weights").is_none());
    let (code, _, error) = judged(path, "inspect m.tamis --weights m.tamis");
    assert!(code != Some(0) && !error.is_empty(), "{error}");
}

#[test]
fn without_target_every_processor_kind_is_shown() {
    let folder = prepared();
    let cost = json(folder.path(), "inspect m.tamis");
    let targets = cost["targets"].as_array().unwrap();
    let cores: Vec<_> = targets.iter().map(|on| on["target"].as_str().unwrap()).collect();
    assert_eq!(
        cores,
        ["cortex-m0", "cortex-m3", "cortex-m4f", "cortex-m7", "cortex-m33", "rv32imac"]
    );
    assert_eq!(
        (&targets[0]["fits"], &targets[0]["model"]["milliseconds"]),
        (&Value::Null, &Value::Null)
    );
    // Without a float unit a float takes many instructions.
    let instructions = |at: usize| number(&targets[at]["model"], "instructions");
    assert!(instructions(0) > instructions(1) && instructions(1) > 2.0 * instructions(2), "{cost}");
    let text = ok(folder.path(), "inspect m.tamis");
    assert!(cores.iter().all(|core| text.contains(core)), "{text}");
    let known = json(folder.path(), "inspect --mcus");
    assert!(
        known["devices"].as_array().unwrap().len() >= 10
            && known["cores"].as_array().unwrap().len() == 6
    );
    assert!(ok(folder.path(), "inspect --mcus").contains("RP2040"));
}

#[test]
fn dense_wins_where_it_does() {
    let folder = tempfile::tempdir().unwrap();
    full(&folder.path().join("full.tamis"), 64, 10);
    let line = "inspect full.tamis --mcu cortex-m4f --deploy file";
    let cost = json(folder.path(), line);
    let wins = cost["target"]["dense_int8_wins"].as_array().unwrap();
    assert!(
        wins.contains(&json!("model_bytes")) && wins.contains(&json!("instructions")),
        "{cost}"
    );
    let text = ok(folder.path(), line);
    let wins = text.lines().find(|line| line.starts_with("Dense int8 wins on "));
    assert!(wins.is_some_and(|line| line.contains("bytes of the model (")), "{text}");
    let folder = prepared();
    let text = ok(folder.path(), "inspect m.tamis --mcu cortex-m0");
    assert!(text.contains("no float unit") && text.contains("instructions ("), "{text}");
}

#[test]
fn exceeded_limits_exit_3_and_are_named() {
    let folder = prepared();
    let line = "inspect m.tamis --mcu cortex-m4f --json --fail-above";
    let (code, cost, err) =
        judged(folder.path(), &format!("{line} ram=64K,flash=1M,stack=64K,instructions=1M"));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let limits = cost["target"]["limits"].as_array().unwrap();
    assert!(
        limits.len() == 4 && limits.iter().all(|limit| limit["exceeded"] == json!(false)),
        "{cost}"
    );

    let (code, cost, err) =
        judged(folder.path(), &format!("{line} ram=16,flash=1M,instructions=10"));
    assert_eq!(code, Some(3));
    let target = &cost["target"];
    let [ram, instructions] =
        ["ram_bytes", "instructions"].map(|key| number(&target["model"], key));
    for words in [
        "error: the model takes more than it may on cortex-m4f".to_owned(),
        "expected: ram at most 16 bytes (--fail-above), instructions at most 10 (--fail-above)"
            .to_owned(),
        format!("got: ram {ram} bytes, instructions {instructions}"),
        "help: ".to_owned(),
    ] {
        assert!(err.contains(&words), "{words}\n{err}");
    }
    assert!(!err.contains("flash at most"), "{err}");
    let over: Vec<_> =
        target["limits"].as_array().unwrap().iter().map(|limit| &limit["exceeded"]).collect();
    assert_eq!(over, [&json!(true), &json!(false), &json!(true)]);
}

#[test]
fn deployments_are_listed_and_one_is_checked() {
    let folder = prepared();
    let line = "inspect m.tamis --mcu cortex-m4f";
    let text = ok(folder.path(), line);
    for words in [
        "include_model!",
        "embed_model!",
        "export --format rust",
        "export --format c",
        "deployed as c",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    assert!(!text.contains("--straight-line"), "code without tables is of integers\n{text}");
    let cost = json(folder.path(), line);
    let on = &cost["target"];
    let ways = on["ways"].as_array().unwrap();
    let names: Vec<_> = ways.iter().map(|way| way["way"].as_str().unwrap()).collect();
    assert_eq!((names, &on["deploy"]), (vec!["c", "rust", "embedded", "file"], &json!("c")));
    for way in ways {
        assert_eq!(
            number(way, "flash_bytes"),
            number(way, "model_bytes") + number(way, "code_bytes")
        );
    }
    assert_eq!(
        on["model"]["flash_bytes"], ways[0]["flash_bytes"],
        "what takes the least comes first"
    );
    let flash = |at: usize| number(&ways[at], "flash_bytes");
    assert!(flash(0) <= flash(1) && flash(1) <= flash(2) && flash(2) < flash(3), "{cost}");
    let embedded = flash(2);
    // What a file takes is too much where the embedded model is not.
    let limit = format!("{line} --json --fail-above flash={embedded}");
    assert_eq!(judged(folder.path(), &limit).0, Some(0));
    assert_eq!(judged(folder.path(), &format!("{limit} --deploy file")).0, Some(3));
    let (code, cost, _) = judged(folder.path(), &format!("{limit} --deploy embedded"));
    assert_eq!((code, &cost["target"]["deploy"]), (Some(0), &json!("embedded")));
    assert_eq!(number(&cost["target"]["model"], "flash_bytes"), embedded);
    let refused = fails(folder.path(), &format!("{line} --deploy straight"));
    assert!(refused.contains("quantize"), "{refused}");
}

#[test]
fn upper_bounds_are_marked_so() {
    let folder = prepared();
    ok(folder.path(), "quantize m.tamis --data p/X.npy -o q.tamis -q");
    let line = "inspect q.tamis --mcu cortex-m0";
    let cost = json(folder.path(), line);
    let ways = cost["target"]["ways"].as_array().unwrap();
    let is_bound =
        |name: &str| ways.iter().find(|way| way["way"] == json!(name)).unwrap()["is_bound"].clone();
    // Sums of rows are bounds, and so is the stack of what reads a file.
    assert_eq!(
        (ways.len(), is_bound("straight"), is_bound("embedded")),
        (5, json!(true), json!(true))
    );
    assert_eq!(is_bound("file"), json!(true));
    let text = ok(folder.path(), line);
    let marked =
        |words: &str| text.lines().any(|line| line.contains(words) && line.contains("<= "));
    assert!(
        marked("--straight-line") && marked("embed_quantised!") && marked("upper bounds"),
        "{text}"
    );
    assert!(marked("include_model!") && !marked("dense f32"), "{text}");
}

#[test]
fn the_way_with_the_least_flash_leads() {
    let folder = prepared();
    ok(folder.path(), "quantize m.tamis --data p/X.npy -o q.tamis -q");
    for model in ["m.tamis", "q.tamis"] {
        for target in
            json(folder.path(), &format!("inspect {model}"))["targets"].as_array().unwrap()
        {
            let ways = target["ways"].as_array().unwrap();
            let flash: Vec<_> = ways.iter().map(|way| number(way, "flash_bytes")).collect();
            assert!(flash.is_sorted() && flash[0] < 0.5 * flash[ways.len() - 1], "{target}");
            assert_eq!(
                (&target["deploy"], number(&target["model"], "flash_bytes")),
                (&ways[0]["way"], flash[0])
            );
        }
    }
}

#[test]
fn model_exceeding_its_device_is_over_limit() {
    let folder = tempfile::tempdir().unwrap();
    full(&folder.path().join("large.tamis"), 784, 32);
    let (code, cost, err) = judged(folder.path(), "inspect large.tamis --mcu STM32F103C8 --json");
    assert_eq!((code, &cost["target"]["fits"]), (Some(3), &json!(false)));
    assert!(
        err.contains("flash at most 65536 bytes (STM32F103C8)") && !err.contains("ram"),
        "{err}"
    );
    let output = run(folder.path(), &["inspect", "large.tamis", "--mcu", "STM32F103C8"]);
    assert!(texts(&output).0.contains("Does not fit"));
    let (code, ..) = judged(folder.path(), "inspect large.tamis --mcu STM32F407VG --json");
    assert_eq!(code, Some(0));
}

#[test]
fn wrong_flags_say_what_they_may_be() {
    let folder = prepared();
    for (line, words) in [
        ("inspect m.tamis --mcu z80", "RP2040"),
        ("inspect m.tamis --mcu z80", "cortex-m33"),
        (
            "inspect m.tamis --mcu cortex-m4f --fail-above speed=5",
            "flash, ram, stack, instructions",
        ),
        ("inspect m.tamis --mcu cortex-m4f --fail-above ram", "ram=16K"),
        ("inspect m.tamis --mcu cortex-m4f --fail-above ram=16X", "64K"),
        ("inspect m.tamis --mcu cortex-m4f --fail-above instructions=-1", "50000"),
        ("inspect m.tamis --fail-above ram=16K", "--mcu"),
        ("inspect m.tamis --mcus", "cannot be used with"),
        ("inspect", "M.tamis"),
    ] {
        let (code, _, err) = judged(folder.path(), line);
        assert_eq!(code, Some(2), "{line}\n{err}");
        assert!(err.contains(words), "{line}: {words}\n{err}");
    }
    assert!(fails(folder.path(), "inspect nothing.tamis --mcu RP2040").contains("nothing.tamis"));
}
