//! Weights that stay whatever their size: by the library, by the command line, and over a break.

use std::path::Path;

use crate::common::*;
use serde_json::json;
use tamis::base::dims::Dims;
use tamis::network::gates::Signs;
use tamis_host::data::planted;
use tamis_host::data::{Problem, Task};
use tamis_host::train::{PaperOptions, PinnedWeights};
use tamis_host::{Budget, Options, Recipe, Trained};

const TRAIN: &str = "train --data p/X.npy --labels p/y.npy --task regression --hidden 1 --nnz 4";

fn generate(folder: &Path) {
    ok(folder, "generate planted --samples 2000 --inputs 20 --hidden 1 --nnz 3 --seed 1 -o p -q");
}

/// Inputs of the first layer that have weights.
fn inputs(model: &Path) -> Vec<u16> {
    let bytes = std::fs::read(model).unwrap();
    let mut words = vec![0_u32; bytes.len().div_ceil(4)];
    bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(&bytes);
    let view =
        tamis::store::wire::View::parse(&bytemuck::cast_slice(&words)[..bytes.len()]).unwrap();
    let tamis::infer::model::Layer::Csr(csr) = view.model().layers()[0] else {
        panic!("a sparse layer")
    };
    csr.columns().to_vec()
}

/// The published method for two neurons, with pinned weights.
fn pinning(s: usize, names: &[[usize; 2]]) -> Options {
    let pinned = names.iter().copied().collect();
    let recipe = Recipe::Paper(PaperOptions::default());
    Options { hidden: vec![2], recipe, pinned, ..Options::new(Budget::nnz(s)) }
}

#[test]
fn pinned_useless_input_joins_the_planted_support() {
    let made = planted::network(Dims::new(2000, 20, 2, 6), Signs::Positive, 3).unwrap();
    let problem =
        || Problem { data: made.data.clone(), labels: made.labels.clone(), task: Task::Regression };
    let train = |s: usize, names: &[[usize; 2]]| -> Trained {
        tamis_host::train(&problem(), pinning(s, names)).unwrap()
    };
    let free = train(6, &[]);
    assert!(free.report.psnr_db.unwrap() > 100.0, "{:?}", free.report);
    // In both neurons an input that neither looks at.
    let inputs: Vec<u32> = made.index.iter().map(|j| j % 20).collect();
    let useless = (0..20).find(|j| !inputs.contains(j)).unwrap() as usize;
    let names = [[1, useless], [0, useless]];
    let keep = names.into_iter().collect::<PinnedWeights>().flat(2, 20).unwrap();
    let kept = train(8, &names);
    assert!(kept.report.psnr_db.unwrap() > 100.0, "{:?}", kept.report);
    let network = &kept.network;
    assert_eq!((network.index.len(), kept.report.nnz), (8, 8));
    for j in &keep {
        let at = network.index.binary_search(j).expect("a weight that must be kept");
        assert!(
            network.value[at].abs() < 1e-3,
            "a useless input has a small weight: {}",
            network.value[at]
        );
    }
    assert!(free.report.requested_nnz == 6 && !keep.iter().any(|j| free.network.index.contains(j)));
    // All that there is room for.
    let full = train(2, &names);
    assert_eq!(full.network.index, keep);
}

#[test]
fn command_pins_weights_and_auto_picks_suitable_recipe() {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path());
    let free = json(
        folder.path(),
        &format!("{TRAIN} --nnz 3 --recipe paper -o free.tamis").replace("--nnz 4 ", ""),
    );
    assert!(number(&free, "psnr_db") > 100.0, "{free}");
    let planted = inputs(&folder.path().join("free.tamis"));
    let other = (0..20).find(|j| !planted.contains(j)).unwrap();
    let report = json(folder.path(), &format!("{TRAIN} --must-keep 0:{other} -o kept.tamis"));
    assert_eq!((&report["recipe"], &report["nnz"]), (&json!("paper"), &json!(4)), "{report}");
    assert!(number(&report, "psnr_db") > 100.0, "{report}");
    let mut expected = planted;
    expected.push(other);
    expected.sort_unstable();
    assert_eq!(inputs(&folder.path().join("kept.tamis")), expected);
    // Several sizes, each with the weight.
    ok(folder.path(), &format!("{TRAIN},5 --recipe paper --must-keep 0:{other} -o sizes -q"));
    for size in ["s4", "s5"] {
        assert!(
            inputs(&folder.path().join(format!("sizes/{size}.tamis"))).contains(&other),
            "{size}"
        );
    }
}

#[test]
fn classes_and_several_outputs_keep_them_too() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), "generate digits --samples 600 --side 8 --seed 2 -o d -q");
    // The first column is that of a corner of the pictures.
    for (task, recipe) in [("multiclass", "auto"), ("multiclass", "paper-safe")] {
        let line = format!(
            "train --data d/X.npy --labels d/y.npy --task {task} --hidden 8 --nnz 80 --epochs 5 --recipe {recipe} --must-keep 2:0,5:0 -o m.tamis"
        );
        let report = json(folder.path(), &line);
        let expected = if recipe == "auto" { "anneal" } else { recipe };
        assert_eq!(report["recipe"], json!(expected));
        let kept = inputs(&folder.path().join("m.tamis")).into_iter().filter(|j| *j == 0).count();
        assert!(kept >= 2, "{recipe}: {kept}");
    }
}

#[test]
fn a_run_resumes_with_the_same_list_only() {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path());
    let line = format!("{TRAIN} --recipe paper --must-keep 0:1,0:7");
    ok(folder.path(), &format!("{line} -o whole.tamis -q"));
    ok(folder.path(), &format!("{line} --passes-limit 3 --checkpoint run.state -o part.tamis -q"));
    let go = |line: &str| format!("{line} --checkpoint run.state --resume -o rest.tamis");
    for other in ["0:1,0:8", "0:1", "0:1,0:7,0:9"] {
        let error = fails(folder.path(), &go(&line.replace("0:1,0:7", other)));
        assert!(
            error.contains("--must-keep") && error.contains("same data and settings"),
            "{error}"
        );
    }
    let error = fails(folder.path(), &go(&line.replace("--must-keep 0:1,0:7", "")));
    assert!(error.contains("weights of --must-keep: 2, as the run began"), "{error}");
    // In another order it is the same list.
    let report = json(folder.path(), &go(&line.replace("0:1,0:7", "0:7,0:1")));
    assert!(number(&report, "resumed_steps") > 0.0, "{report}");
    let read = |name| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("rest.tamis"), read("whole.tamis"));
}

#[test]
fn unusable_pinned_lists_name_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path());
    for (flags, found) in [
        (
            "--must-keep 1:3",
            [
                "from a neuron that does not exist",
                "got: 1:3",
                "a neuron below 1 and an input below 20",
            ],
        ),
        ("--must-keep 0:20", ["from an input that does not exist", "got: 0:20", "counted from 0"]),
        (
            "--must-keep 0:3,0:4,0:3",
            ["named twice", "0:3 more than once", "leave the second one out"],
        ),
        (
            "--must-keep 0:1,0:2,0:3,0:4,0:5",
            [
                "there are more pinned weights than nonzeros",
                "at most 4 in --must-keep",
                "raise --nnz",
            ],
        ),
        (
            "--recipe lm --must-keep 0:3",
            ["moves, splits and merges", "got: recipe lm", "--recipe paper"],
        ),
        (
            "--kicks 3 --must-keep 0:3",
            ["moves, splits and merges", "got: recipe lm", "--recipe paper"],
        ),
        (
            "--recipe imp --must-keep 0:3",
            ["prunes dense layers", "got: recipe imp", "--recipe paper"],
        ),
    ] {
        let error = fails(folder.path(), &format!("{TRAIN} {flags} -o m.tamis"));
        assert!(found.iter().all(|text| error.contains(text)), "{flags}\n{error}");
    }
    let deep = TRAIN.replace("--hidden 1", "--hidden 4,4");
    for recipe in ["auto", "lm", "paper", "imp"] {
        let error =
            fails(folder.path(), &format!("{deep} --recipe {recipe} --must-keep 0:3 -o m.tamis"));
        assert!(
            error.contains("one hidden layer only") && error.contains("2 hidden layers"),
            "{error}"
        );
    }
    // Of weights to outputs one place is left.
    ok(folder.path(), "generate digits --samples 300 --side 8 --seed 2 -o d -q");
    let classes = "train --data d/X.npy --labels d/y.npy --task multiclass --hidden 4 --nnz 3";
    let error = fails(folder.path(), &format!("{classes} --must-keep 0:1,0:2,0:3 -o m.tamis"));
    assert!(error.contains("at most 2") && error.contains("a weight to an output"), "{error}");
    let output = run(
        folder.path(),
        &[&TRAIN.split(' ').collect::<Vec<_>>()[..], &["--must-keep", "3", "-o", "m"]].concat(),
    );
    let (_, text) = texts(&output);
    assert!(output.status.code() == Some(2) && text.contains("NEURON:INPUT"), "{text}");
}

#[test]
fn pinned_file_works_and_report_lists_final_values() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    generate(path);
    std::fs::write(
        path.join("k.txt"),
        "\u{feff}# sensors that are certified\r\n0:1,\t0:7 # both\r\n\r\n",
    )
    .unwrap();
    let line = format!("{} --recipe paper", TRAIN.replace("--nnz 4", "--nnz 6"));
    let listed = json(path, &format!("{line} --must-keep 0:1,0:7,0:9 -o a.tamis"));
    let report = json(path, &format!("{line} --must-keep @k.txt,0:9 -o b.tamis"));
    let read = |name: &str| std::fs::read(path.join(name)).unwrap();
    assert_eq!(read("a.tamis"), read("b.tamis"));
    assert_eq!(report["pinned"], listed["pinned"]);
    let kept = report["pinned"].as_array().unwrap();
    let names: Vec<_> = kept.iter().map(|kept| (&kept["neuron"], &kept["input"])).collect();
    assert_eq!(names, [(&json!(0), &json!(1)), (&json!(0), &json!(7)), (&json!(0), &json!(9))]);
    // The values are those of the model.
    let bytes = tamis_host::base::file::read_aligned(path.join("b.tamis")).unwrap();
    let view = tamis::store::wire::View::parse(&bytes).unwrap();
    let tamis::infer::model::Layer::Csr(csr) = view.model().layers()[0] else {
        panic!("a sparse layer")
    };
    for kept in kept {
        let at = csr.columns().iter().position(|j| json!(j) == kept["input"]).unwrap();
        assert_eq!(csr.values()[at], number(kept, "value") as f32, "{kept}");
    }
    let text = ok(path, &format!("{line} --must-keep @k.txt -o c.tamis"));
    assert!(
        text.contains("pinned") && text.contains("0:1 = ") && text.contains("0:7 = "),
        "{text}"
    );
    // Without such weights nothing is said of them.
    assert!(json(path, &format!("{line} -o d.tamis")).get("pinned").is_none());
    // Classes by either recipe, and several sizes.
    ok(path, "generate digits --samples 600 --side 8 --seed 2 -o d -q");
    std::fs::write(path.join("c.txt"), "2:0\n5:0\n").unwrap();
    for recipe in ["anneal", "paper-safe"] {
        let line = "train --data d/X.npy --labels d/y.npy --task multiclass --hidden 8 --nnz 80 --epochs 5";
        let report = json(path, &format!("{line} --recipe {recipe} --must-keep @c.txt -o m.tamis"));
        let kept = report["pinned"].as_array().unwrap();
        assert_eq!(
            (kept.len(), &kept[1]["neuron"], &kept[1]["input"]),
            (2, &json!(5), &json!(0)),
            "{report}"
        );
        let text = ok(path, &format!("{line} --recipe {recipe} --must-keep @c.txt -o m.tamis"));
        assert!(text.contains("2:0 = "), "{text}");
    }
    ok(
        path,
        &format!(
            "{} --recipe paper --must-keep @k.txt -o sizes -q",
            TRAIN.replace("--nnz 4", "--nnz 5,6")
        ),
    );
    for size in ["s5", "s6"] {
        let found = inputs(&path.join(format!("sizes/{size}.tamis")));
        assert!(found.contains(&1) && found.contains(&7), "{size}: {found:?}");
    }
}

#[test]
fn invalid_pinned_files_name_the_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    generate(path);
    std::fs::create_dir(path.join("folder")).unwrap();
    let text: &[(&[u8], &str, &[&str])] = &[
        (
            b"0:3\n0:20 # none\n",
            "@k",
            &["from an input that does not exist", "0:20 in line 2 of k", "input below 20"],
        ),
        (b"# one\n\n1:3\n", "@k", &["from a neuron that does not exist", "1:3 in line 3 of k"]),
        (b"0:3\n0:4\n0:3\n", "@k", &["named twice", "0:3 in line 3 of k, and in line 1\n"]),
        (b"0:4\n0:3\n", "0:3,@k", &["named twice", "0:3 in line 2 of k, and on the command line"]),
        (b"0:4\n0:3\n", "@k,0:3", &["named twice", "0:3 in line 2 of k, and on the command line"]),
        (b"0:4\n", "@k,@k", &["named twice", "0:4 in line 1 of k, and in line 1 of k"]),
        (b"0:4\n0-3\n", "@k", &["cannot be read: k", "\"0-3\" in line 2", "NEURON:INPUT"]),
        (b"0:4\n0: 3\n", "@k", &["cannot be read: k", "\"0:\" in line 2"]),
        (b"0:99999999999999999999", "@k", &["cannot be read: k", "in line 1"]),
        (b"0:4\n0:\xff\n", "@k", &["is no text: k", "in line 2"]),
        (b"", "@k", &["names no weight to pin: k", "an empty file"]),
        (b"\n# 0:3\n", "@k", &["names no weight to pin: k", "blank lines and comments"]),
        (
            b"0:1 0:2 0:3 0:4 0:5",
            "@k",
            &["there are more pinned weights than nonzeros", "at most 4"],
        ),
        (b"", "@none.txt", &["cannot open: none.txt", "check the name"]),
        (b"", "@folder", &["cannot read: folder", "a folder"]),
    ];
    for (bytes, list, found) in text {
        std::fs::write(path.join("k"), bytes).unwrap();
        let error = fails(path, &format!("{TRAIN} --must-keep {list} -o m.tamis"));
        assert!(found.iter().all(|text| error.contains(text)), "{list}: {found:?}\n{error}");
        assert!(!path.join("m.tamis").exists(), "{list}");
    }
    std::fs::write(path.join("k"), vec![b'#'; (16 << 20) + 1]).unwrap();
    let error = fails(path, &format!("{TRAIN} --must-keep @k -o m.tamis"));
    assert!(error.contains("too large: k") && error.contains("16777217 bytes"), "{error}");
}

#[test]
fn the_library_refuses_what_is_no_list() {
    let made = planted::network(Dims::new(60, 5, 2, 3), Signs::Positive, 3).unwrap();
    let refused = |names: &[[usize; 2]]| {
        let problem = Problem {
            data: made.data.clone(),
            labels: made.labels.clone(),
            task: Task::Regression,
        };
        tamis_host::train(&problem, pinning(3, names)).unwrap_err().to_string()
    };
    assert!(refused(&[[0, 4], [2, 0]]).contains("a neuron below 2 and an input below 5"));
    assert!(refused(&[[0, 4], [0, 4]]).contains("named twice"));
    assert!(refused(&[[0, 0], [0, 1], [0, 2], [0, 3]]).contains("at most 3"));
}
