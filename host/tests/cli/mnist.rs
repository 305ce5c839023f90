//! MNIST, 0 against 1 and all ten digits.

use std::path::PathBuf;

use crate::common::*;

/// The folder of the four files.
fn mnist() -> String {
    let data = std::env::var_os("TAMIS_DATA").expect("TAMIS_DATA names the folder of mnist/");
    PathBuf::from(data).join("mnist").display().to_string()
}

fn files(folder: &str, part: &str) -> (String, String) {
    (
        format!("{folder}/{part}-images-idx3-ubyte.gz"),
        format!("{folder}/{part}-labels-idx1-ubyte.gz"),
    )
}

#[test]
#[ignore = "needs MNIST in TAMIS_DATA"]
fn zero_against_one_as_the_files_are_split() {
    let mnist = mnist();
    let folder = tempfile::tempdir().unwrap();
    let source = |part| {
        let (images, labels) = files(&mnist, part);
        format!("--data {images} --labels {labels} --keep-labels 0,1")
    };
    for (nnz, recipe, least) in [(100, "dynamic", 0.998), (1, "lm", 0.9885)] {
        let sizes = format!("--task binary --hidden 10 --nnz {nnz} --time-limit 15 -o m.tamis");
        let report = json(folder.path(), &format!("train {} {sizes}", source("train")));
        assert_eq!((report["samples"].as_u64(), report["nnz"].as_u64()), (Some(12665), Some(nnz)));
        assert_eq!(report["recipe"].as_str(), Some(recipe));
        let eval = json(folder.path(), &format!("eval m.tamis {}", source("t10k")));
        assert_eq!(eval["n"].as_u64(), Some(2115));
        let accuracy = eval["accuracy"].as_f64().unwrap();
        assert!(accuracy >= least, "{nnz}: {accuracy}");
    }
}

#[test]
#[ignore = "needs MNIST in TAMIS_DATA"]
fn the_split_of_the_paper_reaches_its_accuracy() {
    let mnist = mnist();
    let folder = tempfile::tempdir().unwrap();
    let ((x, y), (x2, y2)) = (files(&mnist, "train"), files(&mnist, "t10k"));
    let source = format!("--data {x},{x2} --labels {y},{y2} --keep-labels 0,1");
    for (hidden, nnz, least) in [(1, 1, 0.9885), (10, 100, 0.991)] {
        let sizes = format!("--task binary --hidden {hidden} --nnz {nnz} --epochs 15 --trials 1");
        let report = json(
            folder.path(),
            &format!("train {source} --rows-per-label 0..5000 {sizes} -o m.tamis"),
        );
        assert_eq!(
            (report["samples"].as_u64(), report["steps"].as_u64()),
            (Some(10_000), Some(15))
        );
        let eval =
            json(folder.path(), &format!("eval m.tamis {source} --rows-per-label 5000..6000"));
        assert_eq!(eval["n"].as_u64(), Some(2000));
        let accuracy = eval["accuracy"].as_f64().unwrap();
        assert!(accuracy >= least, "m={hidden}, s={nnz}: {accuracy}");
    }
}

#[test]
#[ignore = "needs MNIST in TAMIS_DATA"]
fn ten_classes_reach_what_the_table_says() {
    let mnist = mnist();
    let folder = tempfile::tempdir().unwrap();
    let source = |part| {
        let (images, labels) = files(&mnist, part);
        format!("--data {images} --labels {labels}")
    };
    // Of docs/results/deep.md, and a short run on a narrow layer.
    for (hidden, nnz, flags, least) in [
        ("35", 1000, "--epochs 10 --start-factor 5", 0.955),
        ("100", 1000, "--epochs 20", 0.964),
        ("300,100", 5322, "--epochs 20", 0.981),
    ] {
        let sizes = format!("--task multiclass --hidden {hidden} --nnz {nnz} {flags} --threads 2");
        let report = json(folder.path(), &format!("train {} {sizes} -o m.tamis", source("train")));
        assert_eq!(
            (report["nnz"].as_u64(), report["classes"].as_array().map(Vec::len)),
            (Some(nnz), Some(10))
        );
        let widths = hidden.split(',').map(|width| width.parse::<f64>().unwrap());
        // 24 bytes a weight at the start, and two strips of 64 rows, beside the data.
        let strips = 2.0 * 64.0 * 4.0 * (784.0 + 10.0 + widths.sum::<f64>());
        let [weights, heap] = ["start_nnz", "heap_peak_bytes"].map(|key| number(&report, key));
        assert!(heap < 24.0 * weights + strips, "{hidden} {nnz}: {heap} {weights}");
        let eval = json(folder.path(), &format!("eval m.tamis {}", source("t10k")));
        let accuracy = eval["accuracy"].as_f64().unwrap();
        assert!(accuracy >= least, "{hidden} {nnz}: {accuracy}");
    }
}
