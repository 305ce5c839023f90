//! Experiments that are refused: specs, data that are not there, folders of others.

use crate::common::*;
use crate::run::{SPEC, cells, with_spec};
use serde_json::json;

#[test]
fn bad_specs_name_key_and_line_writing_nothing() {
    for (from, to, says) in [
        ("epochs = 4", "epoch = 4", &["epoch", "line 9", "epochs"][..]),
        ("epochs = 4", "epochs = \"four\"", &["line 9", "string"]),
        ("epochs = 4", "epochs = 0", &["epochs", "got: 0"]),
        ("epochs = 4", "epochs = -1", &["line 9"]),
        ("s = [2, 6]", "s = [2, 17]", &["m = 2, s = 17", "impossible = \"skip\""]),
        ("s = [2, 6]", "s = [2, 2]", &["every number once"]),
        ("s = [2, 6]", "s = []", &["sizes"]),
        ("\"zero\"", "\"nil\"", &["nil", "imp-published"]),
        ("\"zero\"", "\"paper-safe\"", &["paper-safe", "several outputs"]),
        ("metric = \"psnr\"", "metric = \"accuracy\"", &["metric", "psnr"]),
        ("test = 40", "test = 0, tests = 3", &["tests"]),
        ("on = \"train\"", "on = \"test\"\nhidden = 9", &["hidden", "got: 9"]),
        ("range = [-20, 50]", "range = [50, -20]", &["range"]),
        ("passes = 300", "passes = -1.0", &["passes", "got: -1"]),
        ("seeds = [0, 1]", "seeds = []", &["seeds"]),
        ("samples = 500", "samples = 99999999999", &["samples", "got: 99999999999"]),
        ("name = \"small\"", "name = \"../small\"", &["small letters"]),
        ("[[part]]", "[profile.quick]\n[[part]]", &["quick", "smoke, reduced, paper"]),
        ("[[part]]", "[profile.paper.part.other]\nepochs = 1\n[[part]]", &["other", "planted"]),
        ("title = \"Planted\"", "title = \"Planted", &["line 6"]),
        ("kind = \"planted\"", "kind = \"plant\"", &["plant", "mnist"]),
        ("imp = { epochs = 3", "imp = { epochs = 3, rate = 0.0", &["imp.rate"]),
    ] {
        let folder = with_spec(from, to);
        let error = fails(folder.path(), "run spec.toml -o out");
        assert!(
            says.iter().all(|says| error.contains(says)) && error.contains("spec"),
            "{to}: {error}"
        );
    }
    let folder = with_spec("epochs = 4", "epochs = 4");
    for (line, says) in [
        ("run spec.toml -o out --profile smoke", "[profile.smoke]"),
        ("run figure-9 -o out", "figure-3-right"),
        ("run missing.toml -o out", "missing.toml"),
        ("run spec.toml -o out --cell 0/3", "from 1 to N"),
        ("run spec.toml -o out --cell 4/3", "from 1 to N"),
        ("run spec.toml -o out --cell planted-paper-m9-s9-seed9", "planted-paper-m2-s2-seed0"),
        ("run spec.toml -o out --time-limit 0", "--time-limit"),
        ("run spec.toml -o spec.toml", "spec.toml"),
        ("run spec.toml -o spec.toml/out", "spec.toml"),
        ("report out -o report", "nothing of that name"),
    ] {
        let error = fails(folder.path(), line);
        assert!(error.contains(says), "{line}: {error}");
    }
}

#[test]
fn missing_data_names_its_source_and_an_alternative() {
    let folder = tempfile::tempdir().unwrap();
    for (figure, file) in
        [("figure-3-left", "mnist/train-images-idx3-ubyte.gz"), ("figure-5", "cifar/image1000.png")]
    {
        let line = format!("run {figure} --profile reduced -o out --data-dir nowhere");
        let output = command(folder.path(), &line.split(' ').collect::<Vec<_>>())
            .env_remove("TAMIS_DATA")
            .output();
        let error = refusal(&line, &output.unwrap());
        assert!(
            error.contains(file) && error.contains("--digits") && error.contains("nowhere"),
            "{error}"
        );
        assert!(!folder.path().join("out").exists());
        let plan = json(
            folder.path(),
            &format!("run {figure} --profile reduced --dry-run --digits --data-dir nowhere"),
        );
        assert_eq!(plan["missing_files"], json!([]));
    }
}

#[test]
fn foreign_or_damaged_result_folders_are_refused() {
    let folder =
        with_spec("methods = [\"paper\", \"recipe\", \"imp-published\", \"imp\", ", "methods = [");
    let path = folder.path();
    ok(path, "run spec.toml -o out -q");
    std::fs::write(path.join("other.toml"), SPEC).unwrap();
    assert!(fails(path, "run other.toml -o out").contains("results of another spec"));
    assert!(
        fails(path, "run figure-1-left --profile smoke -o out").contains("results of another spec")
    );
    let about = std::fs::read_to_string(path.join("out/folder.json")).unwrap();
    let change = |from: &str, to: &str| {
        std::fs::write(path.join("out/folder.json"), about.replace(from, to)).unwrap();
    };
    change(&format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION")), "\"version\":\"0.0.9\"");
    assert!(fails(path, "run spec.toml -o out").contains("another version of tamis"));
    change("\"format\":1", "\"format\":2");
    assert!(fails(path, "run spec.toml -o out").contains("another version"));
    assert!(fails(path, "report out -o report").contains("another version"));
    change("\"format\":1", "\"format\":");
    assert!(fails(path, "report out -o report").contains("damaged"));
    change("", "");
    let cell = path.join("out/cells/planted-zero-m2-s2-seed0.json");
    let text = std::fs::read_to_string(&cell).unwrap();
    std::fs::write(&cell, &text[..text.len() / 2]).unwrap();
    assert!(fails(path, "run spec.toml -o out").contains("planted-zero-m2-s2-seed0.json"));
    std::fs::remove_file(&cell).unwrap();
    // It comes back from the merged results.
    assert_eq!(json(path, "run spec.toml -o out")["ran"], json!(0));
    let spec = std::fs::read_to_string(path.join("out/spec.toml")).unwrap();
    std::fs::write(path.join("out/spec.toml"), spec.replace("epochs = 4", "epochs = 5")).unwrap();
    assert!(fails(path, "report out -o report").contains("was changed"));
    std::fs::create_dir(path.join("mine")).unwrap();
    std::fs::write(path.join("mine/thesis.txt"), "text").unwrap();
    assert!(fails(path, "run spec.toml -o mine").contains("thesis.txt"));
}

#[cfg(target_os = "linux")]
#[test]
fn unwritable_record_ends_run_and_loses_nothing() {
    let folder = with_spec("seeds = [0, 1]", "seeds = [0]");
    let path = folder.path();
    ok(path, "run spec.toml -o out --cell planted-zero-m2-s2-seed0 -q");
    // As on a full disk: files can be made, and nothing written to them.
    let script = format!(
        "trap '' XFSZ; ulimit -f 0; exec {} run spec.toml -o out",
        env!("CARGO_BIN_EXE_tamis")
    );
    let output =
        std::process::Command::new("sh").args(["-c", &script]).current_dir(path).output().unwrap();
    let error = refusal(&script, &output);
    assert!(error.contains("planted-paper-m2-s2-seed0") && error.contains("full"), "{error}");
    assert_eq!(cells(&path.join("out")).len(), 1);
    let done = json(path, "run spec.toml -o out");
    let counts = ["before", "done", "failed"].map(|key| number(&done, key));
    assert_eq!(counts, [1.0, 24.0, 0.0], "{done}");
}

/// A descent that diverges in every cell, with a group lasso that closes all ways: both are said.
#[test]
fn an_experiment_without_a_result_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let spec = r#"
name = "steep"
title = "Steep"
source = "nowhere"
[[part]]
name = "steep"
title = "Steep"
d = [12]
m = [6]
s = [2]
epochs = 50
methods = ["greedy"]
seeds = [0, 1]
metric = "columns"
range = [0, 6]
variants = [{ name = "", sensing = { lambda = 0.9, beta = 0.01, start = 1.0, step = 100.0 } }]
data = { kind = "sensing", samples = 0, inputs = 12 }
"#;
    std::fs::write(path.join("spec.toml"), spec).unwrap();
    let output = run(path, &["run", "spec.toml", "-o", "out"]);
    let (shown, error) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{shown}{error}");
    assert!(error.contains("no cell has a result") && error.contains("diverges"), "{error}");
    assert!(error.contains("zero is a local minimum"), "{error}");
    assert_eq!(cells(&path.join("out")).len(), 2);
}
