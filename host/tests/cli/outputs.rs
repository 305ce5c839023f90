//! Networks of several outputs from generate to inspect, and what is refused with them.

use crate::common::*;
use serde_json::json;
use tamis_host::data;

const GENERATE: &str =
    "generate planted --samples 600 --inputs 12 --hidden 4 --outputs 5 --nnz 20 --seed 3 -o p -q";
const TRAIN_FIVE: &str =
    "train --data p/X.npy --labels p/y.npy --task regression --hidden 4 --nnz 20";

#[test]
fn generate_writes_a_network_that_gives_the_labels() {
    let folder = tempfile::tempdir().unwrap();
    let line =
        "generate planted --samples 200 --inputs 7 --hidden 4 --outputs 3 --nnz 9 --seed 5 -o d";
    let report = json(folder.path(), line);
    assert_eq!((&report["outputs"], &report["nnz"]), (&json!(3), &json!(9)));
    let column = |name: &str| {
        data::load_labels(folder.path().join(format!("d/weights.npz#{name}"))).unwrap()
    };
    let (index, value) = (column("index"), column("value"));
    let (out_index, out_value) = (column("out_index"), column("out_value"));
    assert_eq!((index.len(), out_index.len()), (5, 4));
    assert_eq!((column("shape"), column("out_shape")), (vec![4.0, 7.0], vec![4.0, 3.0]));
    let x = data::load(folder.path().join("d/X.npy")).unwrap().values.into_f32();
    let y = data::load(folder.path().join("d/y.npy")).unwrap();
    assert_eq!((y.rows, y.cols), (200, 3));
    for (x, y) in x.chunks(7).zip(y.values.into_f32().chunks(3)) {
        let (mut z, mut f) = ([0.0; 4], [0.0; 3]);
        for (j, v) in index.iter().zip(&value) {
            z[*j as usize / 7] += v * x[*j as usize % 7];
        }
        for (k, v) in out_index.iter().zip(&out_value) {
            f[*k as usize % 3] += v * z[*k as usize / 3].max(0.0);
        }
        assert!(f.iter().zip(y).all(|(f, y): (&f32, &f32)| (f - y).abs() < 1e-4), "{f:?} {y:?}");
    }
}

#[test]
fn what_is_trained_is_evaluated_predicted_and_inspected() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), GENERATE);
    let report =
        json(folder.path(), &format!("{TRAIN_FIVE} --log l.jsonl --picture r.svg -o m.tamis"));
    assert_eq!((&report["recipe"], &report["exact"]), (&json!("lm"), &json!(true)), "{report}");
    assert_eq!((&report["outputs"], &report["signs"]), (&json!(5), &json!("own")));
    assert!(number(&report, "psnr_db") > 120.0 && number(&report, "nnz") <= 20.0, "{report}");
    assert!(folder.path().join("l.jsonl").exists() && folder.path().join("r.svg").exists());
    let eval = json(folder.path(), "eval m.tamis --data p/X.npy --labels p/y.npy");
    assert_eq!((&eval["task"], &eval["n"]), (&json!("regression"), &json!(600)));
    let (trained, scored) = (number(&report, "psnr_db"), number(&eval, "psnr_db"));
    assert!((trained - scored).abs() < 3.0, "{trained} {scored}");
    let predicted = json(folder.path(), "predict m.tamis --data p/X.npy -o o.npy");
    assert_eq!((&predicted["outputs"], &predicted["columns"]), (&json!(5), &json!(5)));
    let (o, y) = (folder.path().join("o.npy"), folder.path().join("p/y.npy"));
    let (o, y) = (data::load(o).unwrap(), data::load(y).unwrap());
    assert_eq!((o.rows, o.cols), (600, 5));
    let y = y.values.into_f32();
    assert!(o.values.into_f32().iter().zip(&y).all(|(o, y)| (o - y).abs() < 1e-4));
    let cost = json(folder.path(), "inspect m.tamis");
    assert_eq!((&cost["outputs"], &cost["task"]), (&json!(5), &json!("regression")));
    assert_eq!(cost["total"]["nnz"], report["nnz"]);
    // What people read.
    let said = ok(folder.path(), &format!("{TRAIN_FIVE} -o m.tamis"));
    assert!(said.contains("4 × (12 + 5) weights"), "{said}");
}

#[test]
fn density_counts_both_sides_and_limit_ends_search() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), GENERATE);
    let part = TRAIN_FIVE.replace("--nnz 20", "--density 0.5");
    assert_eq!(json(folder.path(), &format!("{part} -o m.tamis"))["requested_nnz"], json!(34));
    // Labels of other rows: no network gives them.
    ok(folder.path(), &GENERATE.replace("--seed 3 -o p", "--seed 4 -o q"));
    let noise = TRAIN_FIVE.replace("p/X.npy", "q/X.npy");
    let report = json(folder.path(), &format!("{noise} --passes-limit 200 -o m.tamis"));
    assert_eq!((&report["exact"], &report["limit"]), (&json!(false), &json!("passes")), "{report}");
    assert!(number(&report, "nnz") <= 20.0 && number(&report, "live") <= 4.0);
}

#[test]
fn zero_labels_give_a_network_without_weights() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.csv"), "1,2\n3,4\n5,6\n").unwrap();
    std::fs::write(folder.path().join("y.csv"), "0,0\n0,0\n0,0\n").unwrap();
    let line = "train --data x.csv --labels y.csv --task regression --hidden 2 --nnz 4 -o m.tamis";
    let report = json(folder.path(), line);
    assert_eq!((&report["nnz"], &report["exact"]), (&json!(0), &json!(true)));
    let predicted = json(folder.path(), "predict m.tamis --data x.csv -o o.csv");
    assert_eq!(predicted["outputs"], json!(2));
}

#[test]
fn incompatible_settings_and_labels_are_named() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), GENERATE);
    let train = |from: &str, to: &str| {
        fails(folder.path(), &format!("{} -o n.tamis", TRAIN_FIVE.replace(from, to)))
    };
    for signs in ["positive", "balanced", "free"] {
        let error = train("--nnz 20", &format!("--nnz 20 --signs {signs}"));
        assert!(
            error.contains("--signs for 5 columns") && error.contains("leave --signs out"),
            "{error}"
        );
    }
    for flag in ["--empty open", "--refine cg", "--step theory", "--signs positive"] {
        let error = train("--nnz 20", &format!("--nnz 20 --recipe paper {flag}"));
        let name = flag.split(' ').next().unwrap();
        assert!(error.contains("number of outputs") && error.contains(name), "{error}");
    }
    assert!(train("--nnz 20", "--nnz 1").contains("--nnz 2 to 68"));
    assert!(train("regression", "binary").contains("one column"));
    assert!(train("regression", "multiclass").contains("one column"));
    assert!(train("p/y.npy", "p/X.npy").contains("their own labels"));
    assert!(train("--nnz 20", "--nnz 20 --keep-labels 0,1").contains("--keep-labels"));
    assert!(train("--nnz 20", "--nnz 20 --rows-per-label 0..9").contains("--rows-per-label"));
    assert!(train("p/X.npy", "p/X.npy,p/X.npy").contains("1200 labels"));
    assert!(train("--nnz 20", "--nnz 20 --ram 1K").contains("bytes needed"));
    assert!(!folder.path().join("n.tamis").exists());
    // Models and labels of other numbers of outputs.
    ok(folder.path(), &format!("{TRAIN_FIVE} -o m.tamis"));
    ok(folder.path(), &GENERATE.replace("--outputs 5", "--outputs 3").replace("-o p", "-o three"));
    let error = fails(folder.path(), "eval m.tamis --data p/X.npy --labels three/y.npy");
    assert!(
        error.contains("5 columns, one per output") && error.contains("got: 3 columns"),
        "{error}"
    );
    let single = "generate planted --samples 600 --inputs 12 --hidden 4 --nnz 9 -o one -q";
    ok(folder.path(), single);
    let error = fails(folder.path(), "eval m.tamis --data p/X.npy --labels one/y.npy");
    assert!(error.contains("5 columns") && error.contains("got: 1 column"), "{error}");
    ok(
        folder.path(),
        "train --data one/X.npy --labels one/y.npy --task regression --hidden 4 --nnz 9 -o one.tamis",
    );
    let error = fails(folder.path(), "eval one.tamis --data p/X.npy --labels p/y.npy");
    assert!(error.contains("1 columns") && error.contains("got: 5 columns"), "{error}");
    // Sizes of planted networks.
    let generate = |from: &str, to: &str| {
        fails(folder.path(), &GENERATE.replace(from, to).replace("-o p", "-o g"))
    };
    assert!(generate("--outputs 5", "--outputs 0").contains("--outputs 1 to"));
    assert!(generate("--nnz 20", "--nnz 41").contains("--nnz 1 to 40"));
    assert!(generate("--nnz 20", "--nnz 0").contains("got: 0"));
    assert!(generate("--outputs 5", "--outputs 99999999").contains("--outputs"));
    assert!(!folder.path().join("g").exists());
}
