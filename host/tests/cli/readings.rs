//! Columns in different units as bytes: calibration, files, and the code that makes bytes of
//! readings.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::*;
use serde_json::json;
use tamis::base::rng::Rng;
use tamis::infer::model::Activation;
use tamis::infer::quantised::{Columns, Dense, Layer, Model, Scales, Weights};
use tamis::store::wire::{Choice, QuantisedView, Task};

const SCALES: [f32; 3] = [0.25, 1000.0, 0.037];
const ZEROS: [i32; 3] = [7, -9000, 128];

/// A model of three inputs, with scales of their own or one for all.
fn model(columns: Option<Columns<'_>>) -> Vec<u8> {
    let weights = Weights::Dense(Dense::new(3, 1, &[3, -5, 7]).unwrap());
    let layer = Layer::new(weights, &[], &[], Activation::Identity).unwrap();
    let scales = Scales::new(0.3, 0.01, 20, 0).unwrap();
    let model = Model::new(&[layer], None, scales).unwrap().with_columns(columns).unwrap();
    let view = QuantisedView::new(model).with_task(Task::BINARY).unwrap();
    let mut bytes = vec![0; view.encoded_len(Choice::Keep)];
    view.encode(Choice::Keep, &mut bytes).unwrap();
    bytes
}

/// Readings of every kind: halves of steps, their neighbours, ends, whole numbers, and none.
fn readings() -> Vec<f32> {
    let mut rng = Rng::new(2, 0);
    let mut all = vec![0.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, 1e-40];
    for scale in SCALES.into_iter().chain([0.3]) {
        for k in -20..=300 {
            let half = (k as f32 + 0.5) * scale;
            all.extend([half, half.next_up(), half.next_down(), -half, k as f32 * scale]);
        }
    }
    all.extend((-200..200).map(|k| (k * 163) as f32));
    all.extend((0..400).map(|_| 9_100_000.0 + 90_000.0 * rng.normal()));
    all.extend([8_388_607.5, 8_388_608.0, -8_388_608.0, 2e9, -2e9].map(|x: f32| x * 0.25));
    all.resize(all.len().next_multiple_of(3), 1.0);
    all
}

fn compile(folder: &Path, compiler: &str, line: &str) {
    let done = Command::new(compiler).current_dir(folder).args(line.split(' ')).output().unwrap();
    assert!(done.status.success(), "{line}\n{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn exported_code_rounds_readings_as_the_crate() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let columns = Columns::new(&SCALES, &ZEROS).unwrap();
    let x = readings();
    let words: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
    fs::write(folder.join("x"), words).unwrap();
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    for columns in [Some(columns), None] {
        let bytes = model(columns);
        fs::write(folder.join("q.tamis"), &bytes).unwrap();
        let aligned = tamis_host::base::file::Aligned::new(&bytes);
        let view = QuantisedView::parse(&aligned).unwrap();
        assert_eq!(view.model().readings().columns(), columns);
        let mut expected = vec![0; x.len()];
        for (row, bytes) in x.chunks(3).zip(expected.chunks_mut(3)) {
            view.model().readings().quantise_input(row, bytes).unwrap();
        }
        assert!((0..=255).all(|byte| expected.contains(&byte)));
        ok(folder, "export q.tamis --format c -o q.c -q");
        let text = "#include \"q.h\"\n#include <stdio.h>\nint main(void)\n{\nfloat x[Q_INPUTS]; \
             uint8_t q[Q_INPUTS];\nwhile (fread(x, sizeof x, 1, stdin) == 1) {\n\
             q_quantize_input(x, q); fwrite(q, sizeof q, 1, stdout); }\nreturn 0;\n}\n";
        fs::write(folder.join("main.c"), text).unwrap();
        let flags = "-std=c99 -O2 -Wall -Wextra -Wpedantic -Werror";
        compile(folder, "cc", &format!("{flags} q.c main.c -o program"));
        let fed = || {
            let rows = fs::File::open(folder.join("x")).unwrap();
            Command::new(folder.join("program")).stdin(rows).output().unwrap().stdout
        };
        assert!(fed() == expected, "C");
        ok(folder, "export q.tamis --format rust --straight-line -o q.rs -q");
        let text = "mod q;\nuse std::io::{Read, Write};\nfn main() {\nlet mut b = [0; 4 * q::INPUTS];\n\
             while std::io::stdin().read_exact(&mut b).is_ok() {\n\
             let x = std::array::from_fn(|k| f32::from_le_bytes(b[4 * k..4 * k + 4].try_into().unwrap()));\n\
             std::io::stdout().write_all(&q::quantize_input(&x)).unwrap();\n}\n}\n";
        fs::write(folder.join("main.rs"), text).unwrap();
        compile(folder, &rustc, "--edition 2024 -Dwarnings -O main.rs -o program");
        assert!(fed() == expected, "Rust");
    }
}

#[test]
fn damaged_scales_of_inputs_are_refused() {
    let columns = Columns::new(&SCALES, &ZEROS).unwrap();
    let bytes = model(Some(columns));
    let refused = |at: usize, word: u32| {
        let mut bytes = bytes.clone();
        bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        let sum = tamis::store::wire::checksum(&bytes).to_le_bytes();
        bytes[12..16].copy_from_slice(&sum);
        let aligned = tamis_host::base::file::Aligned::new(&bytes);
        QuantisedView::parse(&aligned).unwrap_err().to_string()
    };
    // Header, scales of the model, and the head of the section.
    let at = 24 + 24 + 8;
    assert!(refused(at, 2).contains("end of the scales"), "{}", refused(at, 2));
    assert!(refused(at + 4, 0).contains("scales above 0"), "{}", refused(at + 4, 0));
    assert!(refused(at - 8, 14).contains("later program"), "{}", refused(at - 8, 14));
    assert!(refused(at - 8, 1 << 16 | 13).contains("flags of a layer"));
    assert!(Columns::new(&SCALES, &ZEROS[..2]).is_err());
}

/// Pressure in pascals, a thousand ranges of the column from 0.
#[test]
fn columns_far_from_zero_keep_their_bits() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut rng = Rng::new(5, 0);
    let mut rows = "pressure,temperature,y\n".to_owned();
    for _ in 0..500 {
        let [a, b] = [rng.normal(), rng.normal()];
        let label = if a - b > 0.0 { "up" } else { "down" };
        writeln!(rows, "{},{},{label}", 101_325.0 + 10.0 * a, 293.0 + 2.0 * b).unwrap();
    }
    fs::write(folder.join("t.csv"), rows).unwrap();
    ok(folder, "train --data t.csv --target y --nnz 6 -o m.tamis -q");
    let report = json(folder, "quantize m.tamis --data t.csv --target y -o q.tamis");
    let [before, after] = ["before", "after"].map(|key| number(&report[key], "accuracy"));
    assert!(before > 0.97 && after > before - 0.01, "{report}");
    assert!(number(&report, "outputs_psnr_db") > 35.0, "{report}");
}

#[test]
fn units_and_heavy_tails_cost_integers_little() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut rng = Rng::new(4, 0);
    let [mut x, mut y] = [String::new(), String::new()];
    for _ in 0..600 {
        let z: Vec<f32> = (0..4).map(|_| rng.normal()).collect();
        // The third has a tail: a few numbers are a hundred times the others.
        let tail = if rng.below(100) == 0 { 300.0 } else { 1.0 };
        let row = [0.01 * z[0], 5000.0 + 200.0 * z[1], tail * z[2].abs(), 30.0 * z[3]];
        let row = row.map(|x| x.to_string()).join(",");
        writeln!(x, "{row}").unwrap();
        writeln!(y, "{}", u8::from(z[0] + z[1] - z[3] > 0.0)).unwrap();
    }
    fs::write(folder.join("x.csv"), x).unwrap();
    fs::write(folder.join("y.csv"), y).unwrap();
    let data = "--data x.csv --labels y.csv";
    ok(folder, &format!("train {data} --task binary --nnz 20 --scale standard -o m.tamis -q"));
    let floats = number(&json(folder, &format!("eval m.tamis {data}")), "accuracy");
    for tune in ["", "--tune 3"] {
        let report = json(folder, &format!("quantize m.tamis {data} {tune} -o q.tamis"));
        assert_eq!(report["input_columns"], json!(true), "{report}");
        let cost = json(folder, "inspect q.tamis");
        assert_eq!(cost["integers"]["columns"], json!(true), "{cost}");
        let integers = number(&json(folder, &format!("eval q.tamis {data}")), "accuracy");
        assert!(floats > 0.9 && integers > floats - 0.01, "{floats} {integers}");
    }
    // What bounds the difference knows the units, too.
    fs::write(folder.join("few.csv"), "0.01,5100,0.5,3\n-0.02,4900,1.5,20\n").unwrap();
    let report = json(folder, "certify m.tamis q.tamis --box few.csv --eps 0.001");
    assert_eq!(report["rows"].as_array().map(Vec::len).or(Some(2)), Some(2), "{report}");
}
