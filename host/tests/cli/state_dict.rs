//! Files that hold more than the weights of layers: what is skipped, and what is said of it.

use std::fs;
use std::path::Path;

use crate::common::*;
use serde_json::json;
use tamis_host::data::{Array, npz};

const NORMALISATION: [(&str, &[usize]); 3] =
    [("bn1.weight", &[4]), ("bn1.running_mean", &[4]), ("bn1.num_batches_tracked", &[])];
const OPTIMISER: [(&str, &[usize]); 2] = [("exp_avg.fc1.weight", &[4, 6]), ("optimizer.step", &[])];

/// Weights of a network of 6, 4 and 2, and arrays beside them.
fn write(path: &Path, beside: &[(&str, &[usize])]) {
    let layers: [(&str, &[usize]); 2] = [("fc1.weight", &[4, 6]), ("fc2.weight", &[2, 4])];
    let values: Vec<f32> = (0..24).map(|e| ((e * 7 % 11) as f32 - 5.5) / 11.0).collect();
    let arrays = layers.iter().chain(beside).map(|(name, dims)| {
        let count = dims.iter().product::<usize>();
        (*name, Array::new(dims, &values[..count]).unwrap())
    });
    npz::write(&mut fs::File::create(path).unwrap(), &arrays.collect::<Vec<_>>()).unwrap();
}

#[test]
fn masks_skip_arrays_of_no_layer() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(&folder.join("w.npz"), &[]);
    write(&folder.join("all.npz"), &[&NORMALISATION[..], &OPTIMISER].concat());
    let line = "--method synflow --density 0.5 -o";
    ok(folder, &format!("mask --weights w.npz {line} m.npz"));
    let output =
        run(folder, &format!("mask --weights all.npz {line} n.npz").split(' ').collect::<Vec<_>>());
    let (_, told) = texts(&output);
    let wanted = "note: skipped arrays that are of no layer: bn1.";
    assert!(output.status.success() && told.starts_with(wanted), "{told}");
    assert!(told.contains("bn1.weight") && told.contains("exp_avg.fc1.weight"), "{told}");
    assert_eq!(told.lines().count(), 1);
    assert_eq!(fs::read(folder.join("m.npz")).unwrap(), fs::read(folder.join("n.npz")).unwrap());
    for method in ["random", "erk"] {
        let line = format!("mask --weights w.npz --method {method} --density 0.5 -o m.npz");
        ok(folder, &line);
        let line = format!("mask --layers 6,4,2 --exact --method {method} --density 0.5 -o m.npz");
        let error = misuses(folder, &line);
        assert!(error.contains("--exact would change nothing"), "{error}");
    }
}

#[test]
fn imports_skip_optimisers_and_refuse_normalisation() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(&folder.join("w.npz"), &[]);
    write(&folder.join("o.npz"), &OPTIMISER);
    write(&folder.join("n.npz"), &NORMALISATION);
    ok(folder, "import w.npz -o w.tamis");
    let report = json(folder, "import o.npz -o o.tamis");
    let note = "skipped arrays of an optimiser: exp_avg.fc1.weight, optimizer.step";
    assert_eq!(report["notes"], json!([note]));
    let model = |name: &str| fs::read(folder.join(name)).unwrap();
    assert_eq!(model("w.tamis"), model("o.tamis"));
    let error = fails(folder, "import n.npz -o n.tamis");
    assert!(error.contains("bn1.running_mean") && error.contains("normalisation"), "{error}");
    ok(folder, "import n.npz --layers fc1,fc2 -o n.tamis");
    assert_eq!(model("w.tamis"), model("n.tamis"));
}
