//! Linear models, networks chosen by cross-validation, and what stands beside every training.

use std::path::Path;

use serde_json::json;

use crate::common::{fails, json, number, ok, run, texts};

/// A table of four columns in different units: its class is that of a line through two of them, or of a ring.
fn table(folder: &Path, name: &str, is_ring: bool) {
    let mut text = "a,b,c,d,kind\n".to_owned();
    let mut state = 7_u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    for _ in 0..300 {
        let [a, b, c, d] = [noise(), noise(), noise(), noise()];
        // Of the line one label in twelve is wrong.
        let is_in = match is_ring {
            true => a * a + b * b < 0.08,
            false => (a + 2.0 * b > 0.1) != (noise() < -0.42),
        };
        let kind = if is_in { "in" } else { "out" };
        text += &format!("{},{},{},{},{kind}\n", 100.0 + a, 3e4 * b, c, 1e-3 * d);
    }
    std::fs::write(folder.join(name), text).unwrap();
}

#[test]
fn linear_models_take_the_whole_path() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    table(at, "t.csv", false);
    let report = json(at, "train --data t.csv --target kind --hidden 0 --nnz 3 -o m.tamis");
    assert_eq!((&report["hidden"], &report["nnz"]), (&json!([]), &json!(3)));
    assert!(number(&report, "accuracy") > 0.88, "{report}");
    assert_eq!(report["baselines"]["linear"], json!(null));
    // Both lines are found, and what is not of them has no weight.
    let eval = json(at, "eval m.tamis --data t.csv");
    assert_eq!(eval["accuracy"], report["accuracy"]);
    let integers = json(at, "quantize m.tamis --data t.csv -o q.tamis");
    assert!(number(&integers, "model_bytes") > 0.0);
    assert!(number(&json(at, "eval q.tamis --data t.csv"), "accuracy") > 0.87);
    assert!(ok(at, "inspect m.tamis").contains("4 inputs, 1 output"));
    ok(at, "finetune m.tamis --data t.csv --epochs 2 -o f.tamis -q");
    ok(at, "export q.tamis --format c -o q.c -q");
    ok(at, "certify m.tamis q.tamis --box t.csv --target kind --eps 0.01 -q");
    // More than there is: all is taken, and said.
    let all = ok(at, "train --data t.csv --target kind --hidden 0 --nnz 9 -o a.tamis");
    assert!(all.contains("hold, which is 5 weights"), "{all}");
    // Numbers, too.
    let line = "train --data t.csv --ignore kind --target b --hidden 0 --nnz 4 -o r.tamis";
    assert_eq!(json(at, line)["task"], json!("regression"));
    let error =
        fails(at, "train --data t.csv --target kind --hidden 0 --recipe lm --nnz 3 -o n.tamis");
    assert!(error.contains("--hidden 0 with recipe lm"), "{error}");
}

#[test]
fn better_of_linear_and_hidden_is_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    table(at, "line.csv", false);
    table(at, "ring.csv", true);
    let line = json(at, "train --data line.csv --target kind --nnz 12 -o m.tamis");
    let chosen = |report: &serde_json::Value| {
        let choice = &report["choice"];
        choice["tried"][choice["chosen"].as_u64().unwrap() as usize].clone()
    };
    assert_eq!(chosen(&line)["hidden"], json!(0), "{line}");
    let ring = json(at, "train --data ring.csv --target kind --nnz 40 -o m.tamis");
    assert!(chosen(&ring)["hidden"].as_u64() > Some(1), "{ring}");
    assert!(number(&ring, "accuracy") > 0.93, "{ring}");
    assert!(ring["baselines"]["linear"]["accuracy"].as_f64() < Some(0.85), "{ring}");
    // The number of threads changes nothing, and neither does a log.
    let read = |name: &str| std::fs::read(at.join(name)).unwrap();
    ok(
        at,
        "train --data ring.csv --target kind --nnz 40 --threads 1 --log l.jsonl -o one.tamis -q",
    );
    assert_eq!(read("one.tamis"), read("m.tamis"));
    // What a recipe is told is not chosen.
    let told = json(at, "train --data ring.csv --target kind --nnz 40 --recipe dynamic -o n.tamis");
    assert!(told.get("choice").is_none(), "{told}");
}

#[test]
fn models_worse_than_the_obvious_are_said_aloud() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // The label has nothing to do with the columns.
    let rows =
        (0..60).map(|k| format!("{},{},{}\n", k * 37 % 11, k * 53 % 17, u8::from(k % 10 == 0)));
    std::fs::write(at.join("t.csv"), format!("a,b,y\n{}", rows.collect::<String>())).unwrap();
    let line = "train --data t.csv --target y --recipe dynamic --hidden 0 --nnz 2 --epochs 1 --rate 1e-9 -o m.tamis";
    let said = ok(at, line);
    assert!(said.contains("warning: the model is no better than class 0 for every row"), "{said}");
    let output = run(at, &format!("{line} --json").split(' ').collect::<Vec<_>>());
    let (out, err) = texts(&output);
    assert!(err.starts_with("warning: the model is no better than class 0"), "{err}");
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["baselines"]["constant"]["accuracy"], json!(0.9));
    assert!(report["notes"].to_string().contains("no better than"), "{report}");
}

#[test]
fn a_mixed_table_is_learnt_and_loses_nothing_in_integers() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    ok(at, "generate table --samples 1200 --seed 1 -o a -q");
    ok(at, "generate table --samples 1200 --seed 2 -o b -q");
    ok(at, "train --data a/table.csv --target income --nnz 30 -o m.tamis -q");
    ok(at, "quantize m.tamis --data a/table.csv -o q.tamis -q");
    let accuracy =
        |model: &str| number(&json(at, &format!("eval {model} --data b/table.csv")), "accuracy");
    let (floats, integers) = (accuracy("m.tamis"), accuracy("q.tamis"));
    assert!(floats > 0.92 && integers > floats - 0.005, "{floats} {integers}");
}

#[test]
fn few_nonzeros_and_large_labels_train() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // Three classes by one column in units of its own.
    let row = |k: usize| format!("{},{},{}\n", 500 + k, k * 7 % 13, ["a", "b", "c"][k / 20]);
    let rows: String = (0..60).map(row).collect();
    std::fs::write(at.join("t.csv"), format!("x,z,kind\n{rows}")).unwrap();
    for nnz in 3..=12 {
        let report = json(at, &format!("train --data t.csv --target kind --nnz {nnz} -o m.tamis"));
        assert!(report["nnz"].as_u64() <= Some(nnz), "{nnz}: {report}");
    }
    let error = fails(at, "train --data t.csv --target kind --nnz 1 -o n.tamis");
    assert!(error.contains("got: 1"), "{error}");
    // Labels far from 1, of columns that need no map.
    let row = |k: usize| {
        let x = (k as f32 * 0.7).sin();
        format!("{x},{},{}\n", (k as f32 * 1.3).cos(), 1e7 + 1e5 * x)
    };
    let rows: String = (0..80).map(row).collect();
    std::fs::write(at.join("r.csv"), format!("x,z,y\n{rows}")).unwrap();
    for flags in ["--hidden 0 --nnz 3", "--nnz 4"] {
        let report = json(at, &format!("train --data r.csv --target y {flags} -o m.tamis"));
        assert!(number(&report, "r2") > 0.99, "{flags}: {report}");
    }
    // One row of forty that differs is not in every fold.
    let rows: String = (0..40).map(|k| format!("{},1,{}\n", u8::from(k == 3), k % 2)).collect();
    std::fs::write(at.join("one.csv"), format!("x,z,y\n{rows}")).unwrap();
    ok(at, "train --data one.csv --target y --nnz 4 -o m.tamis -q");
}

#[test]
fn far_and_constant_columns_ruin_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    table(at, "t.csv", true);
    let text = std::fs::read_to_string(at.join("t.csv")).unwrap();
    let mut rows = text.lines().enumerate();
    let head = rows.next().map(|(_, head)| format!("year,unix,serial,{head}\n"));
    let rows = rows.map(|(k, row)| {
        format!("{},{},5000000,{row}\n", 2007 + k % 3, 1_700_000_000 + 86_400 * (k % 97))
    });
    std::fs::write(at.join("f.csv"), head.into_iter().chain(rows).collect::<String>()).unwrap();
    for hidden in ["", "--hidden 4"] {
        let line = format!("train --data f.csv --target kind --nnz 40 {hidden} -o m.tamis");
        let report = json(at, &line);
        let float = number(&report, "accuracy");
        assert!(float > 0.9, "{hidden} {report}");
        json(at, "quantize m.tamis --data f.csv -o q.tamis");
        let integers = number(&json(at, "eval q.tamis --data f.csv"), "accuracy");
        assert!(integers >= float - 0.01, "{hidden}: {integers}, of floats {float}");
    }
}

#[test]
fn more_weights_than_there_are_is_all_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    table(folder, "t.csv", true);
    for (flags, key, most) in [
        ("--hidden 4,3 --nnz 999 --task regression --target d --ignore kind", "nnz", 28),
        ("--hidden 2 --nnz 999 --recipe imp --epochs 2 --target kind --task binary", "nnz", 10),
    ] {
        let made = json(folder, &format!("train --data t.csv {flags} -o m.tamis"));
        assert!(number(&made, key) <= f64::from(most), "{made}");
        assert!(
            made["notes"].to_string().contains(&format!("hold, which is {most} weights")),
            "{made}"
        );
    }
    let line =
        "train --data t.csv --target d --ignore kind --task regression --hidden 4 --recipe lm";
    let made = json(folder, &format!("{line} --nnz 2,5,999,9999 -o out"));
    assert_eq!(made["models"], json!(["s2.tamis", "s5.tamis", "s12.tamis"]), "{made}");
}

/// Of noise a network learns the rows by heart.
#[test]
fn worse_than_the_mean_on_left_out_rows_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut text = "a,b,c,d,e,f,g,h,i,y\n".to_owned();
    let mut rng = tamis::base::rng::Rng::new(1, 0);
    for _ in 0..50 {
        let row = [(); 10].map(|()| rng.normal().to_string());
        text += &(row.join(",") + "\n");
    }
    std::fs::write(folder.join("noise.csv"), text).unwrap();
    let output = run(
        folder,
        &"train --data noise.csv --target y --nnz 20 -o m.tamis -q".split(' ').collect::<Vec<_>>(),
    );
    let (_, err) = texts(&output);
    assert!(output.status.success() && err.contains("rows that were left out"), "{err}");
}

/// Tamis beside scikit-learn, on a table of each; all of docs/results/tables.md take half an hour.
#[test]
#[ignore = "needs scikit-learn in TAMIS_PYTHON"]
fn small_tables_score_as_the_page_says() {
    let python =
        std::env::var_os("TAMIS_PYTHON").expect("TAMIS_PYTHON names a Python with scikit-learn");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/results/public-tables.py");
    let output = std::process::Command::new(python)
        .arg(script)
        .args(["--check", "wine", "generated"])
        .env("TAMIS", env!("CARGO_BIN_EXE_tamis"))
        .output()
        .unwrap();
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{out}{err}");
}
