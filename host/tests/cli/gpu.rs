//! `tamis devices`, and `--device`: with GPUs where the program is built with them, and errors that
//! say how to build it where it is not.

use std::fs;
use std::path::Path;

use crate::common::*;
#[cfg(feature = "gpu")]
use serde_json::Value;

/// A planted problem of 2000 rows in `p`.
fn planted(folder: &Path) {
    ok(folder, "generate planted --samples 2000 --inputs 30 --hidden 4 --nnz 12 -o p");
}

const TRAIN: &str = "train --data p/X.npy --labels p/y.npy --task regression --hidden 4 --nnz 12";

#[test]
fn gpu_recipes_refuse_what_trains_on_the_cpu_only() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    planted(folder);
    let error = misuses(folder, &format!("{TRAIN} --recipe dynamic --device gpu -o m.tamis"));
    assert!(error.contains("--device"), "{error}");
    // Dense networks are another program's.
    let error = fails(folder, &format!("{TRAIN} --recipe imp --device gpu -o m.tamis"));
    assert!(error.contains("gpu/dense/Cargo.toml"), "{error}");
    let error = run(folder, &["train", "--adapter", "x", "--data", "p/X.npy", "-o", "m.tamis"]);
    assert_eq!(error.status.code(), Some(2), "--adapter without --device");
}

#[test]
fn auto_device_takes_cpu_for_small_problems_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    planted(folder);
    let line = format!("{TRAIN} --device auto --json -o m.tamis");
    let output = run(folder, &line.split(' ').collect::<Vec<_>>());
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{err}");
    assert!(out.contains("\"device\":\"cpu\""), "{out}");
    assert!(err.contains("note: --device auto takes cpu: "), "{err}");
}

#[cfg(not(feature = "gpu"))]
#[test]
fn build_without_gpus_says_how_to_build_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    planted(folder);
    for line in [&format!("{TRAIN} --device gpu -o m.tamis")[..], "bench --device gpu"] {
        let error = fails(folder, line);
        assert!(error.contains("--features gpu"), "{error}");
    }
    let output = run(folder, &["devices", "--json"]);
    let (out, err) = texts(&output);
    assert_eq!((out.trim(), output.status.code()), ("[]", Some(0)));
    assert!(err.starts_with("note: ") && err.contains("--features gpu"), "{err}");
    assert!(fs::read_dir(folder).unwrap().count() == 1);
}

/// Runs a line whose driver may print to standard error; the values that it prints.
#[cfg(feature = "gpu")]
fn values(folder: &Path, line: &str) -> Value {
    let output = run(folder, &line.split(' ').collect::<Vec<_>>());
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{line}\n{out}{err}");
    serde_json::from_str(&out).unwrap()
}

#[cfg(feature = "gpu")]
#[test]
fn gpu_finds_the_networks_of_the_cpu() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    planted(folder);
    let devices = values(folder, "devices --json");
    let first = &devices.as_array().unwrap()[0];
    let name = first["name"].as_str().unwrap();
    assert!(first["limits"]["max_storage_buffer_binding_size"].as_u64().unwrap() > 0);
    assert!(["backend", "type", "driver"].iter().all(|key| first[key].is_string()), "{first}");
    for recipe in ["auto", "lm", "paper --refine cg:10"] {
        let line = format!("{TRAIN} --recipe {recipe} --json");
        let cpu = values(folder, &format!("{line} -o cpu.tamis"));
        let gpu = values(folder, &format!("{line} --device gpu -o gpu.tamis"));
        assert_eq!((cpu["device"].as_str(), gpu["device"].as_str()), (Some("cpu"), Some(name)));
        assert!(gpu["transferred_bytes"].as_u64().unwrap() > 4 * 2000 * 30, "{gpu}");
        assert!(cpu.get("transferred_bytes").is_none() && gpu["seconds"].is_number());
        let psnr = |of: &Value| of["psnr_db"].as_f64().unwrap();
        let is_exact = psnr(&cpu) > 100.0 && psnr(&gpu) > 100.0;
        assert!(is_exact || psnr(&gpu) > psnr(&cpu) - 1.0, "{recipe}: {cpu} {gpu}");
    }
    let classes = "train --data d/X.npy --labels d/y.npy --task multiclass --recipe anneal --hidden 8 --nnz 120 \
                   --epochs 20 --json";
    ok(folder, "generate digits --samples 600 --side 8 -o d");
    let of =
        |device: &str| values(folder, &format!("{classes} --device {device} -o {device}.tamis"));
    let (cpu, gpu) = (of("cpu"), of("gpu"));
    let accuracy = |of: &Value| of["accuracy"].as_f64().unwrap();
    assert!((accuracy(&cpu) - accuracy(&gpu)).abs() < 0.05, "{cpu} {gpu}");
    // Several sizes, and a checkpoint that is resumed on the CPU.
    let line = "train --data p/X.npy --labels p/y.npy --task regression --hidden 4 --nnz 12,16";
    let path = values(folder, &format!("{line} --device gpu --json -o path"));
    assert_eq!(path["points"].as_array().unwrap().len(), 2);
    let kept = format!("{TRAIN} --recipe lm --checkpoint kept --json");
    let cut = values(folder, &format!("{kept} --device gpu --passes-limit 150 -o cut.tamis"));
    assert_eq!(cut["limit"], "passes", "{cut}");
    let resumed = values(folder, &format!("{kept} --resume -o resumed.tamis"));
    assert!(
        resumed["resumed_steps"].as_u64().unwrap() > 0 && resumed["exact"] == true,
        "{resumed}"
    );
}

#[cfg(feature = "gpu")]
#[test]
fn unknown_adapter_is_refused_with_the_names_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let name = values(folder, "devices --json")[0]["name"].as_str().unwrap().to_owned();
    let line = format!("{TRAIN} --device gpu --adapter nobody -o m.tamis");
    let error = run(folder, &line.split(' ').collect::<Vec<_>>());
    let (_, err) = texts(&error);
    assert_eq!(error.status.code(), Some(1));
    assert!(err.contains("\"nobody\"") && err.contains(&name), "{err}");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
}
