//! Networks of several hidden layers from the command line: layer by layer, then together, to
//! exactly s nonzeros.

use crate::common::*;
use serde_json::json;

const DIGITS: &str = "generate digits --samples 600 --seed 2 -o d -q";
const CLASSES: &str = "train --data d/X.npy --labels d/y.npy --task multiclass";
const PLANTED: &str =
    "generate planted --samples 800 --inputs 10 --hidden 6 --nnz 18 --seed 3 -o p -q";
const VALUES: &str = "train --data p/X.npy --labels p/y.npy --task regression";

#[test]
fn classification_uses_exactly_the_requested_nonzeros() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), DIGITS);
    let train = format!("{CLASSES} --recipe anneal --hidden 24,16 --nnz 400 --epochs 30");
    let report = json(folder.path(), &format!("{train} -o m.tamis"));
    assert_eq!(
        (&report["recipe"], &report["hidden"]),
        (&json!("anneal"), &json!([24, 16])),
        "{report}"
    );
    assert_eq!((&report["nnz"], &report["requested_nnz"]), (&json!(400), &json!(400)), "{report}");
    // More weights at first, and then as many as were asked for, each of them in some layer.
    assert!(number(&report, "grown_nnz") > 800.0, "{report}");
    let layers = report["layers"].as_array().unwrap();
    let nnz: f64 = layers.iter().map(|layer| number(layer, "nnz")).sum();
    assert!(layers.len() == 2 && nnz > 200.0 && nnz < 400.0, "{report}");
    assert!(number(&report, "loss") <= number(&report, "untuned_loss") * 1.0001, "{report}");
    assert!(number(&report, "accuracy") > 0.8, "{report}");
    let eval = json(folder.path(), "eval m.tamis --data d/X.npy --labels d/y.npy");
    assert!(
        (number(&eval, "accuracy") - number(&report, "accuracy")).abs() < 1e-9,
        "{eval} {report}"
    );
    let cost = json(folder.path(), "inspect m.tamis");
    let layers = cost["layers"].as_array().unwrap();
    let nnz: f64 = layers.iter().map(|layer| number(layer, "nnz")).sum();
    assert_eq!((layers.len(), nnz, &cost["hidden"]), (3, 400.0, &json!([24, 16])), "{cost}");
    // Threads change nothing.
    ok(folder.path(), &format!("{train} --threads 1 -o one.tamis -q"));
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("m.tamis"), read("one.tamis"));
    ok(folder.path(), &format!("{train} --tune-epochs 0 -o plain.tamis -q"));
    assert_ne!(read("m.tamis"), read("plain.tamis"));
    let small = json(folder.path(), &format!("{train} --grow 1 -o small.tamis"));
    assert_eq!((&small["grown_nnz"], &small["nnz"]), (&json!(400), &json!(400)), "{small}");
    assert!(number(&report, "loss") < number(&small, "loss"), "{report} {small}");
    let limited = json(folder.path(), &format!("{train} --ram 400K -o small.tamis"));
    assert_eq!(limited["grown_nnz"], json!(400), "{limited}");
}

#[test]
fn regression_works_by_either_recipe_to_seven_layers() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), PLANTED);
    for (recipe, hidden) in [("paper", "8,6"), ("lm", "8,6"), ("paper", "6,6,6,6,6,6,6")] {
        let flags = "--nnz 60 --time-limit 4 --kicks 0";
        let flags = if recipe == "lm" { flags } else { "--nnz 60" };
        let report = json(
            folder.path(),
            &format!("{VALUES} --hidden {hidden} --recipe {recipe} {flags} -o m.tamis"),
        );
        assert!(number(&report, "nnz") <= 60.0 && number(&report, "nnz") > 40.0, "{report}");
        let zero = 12.0;
        assert!(number(&report, "psnr_db") > zero, "{report}");
        let eval = json(folder.path(), "eval m.tamis --data p/X.npy --labels p/y.npy");
        assert!(
            (number(&eval, "psnr_db") - number(&report, "psnr_db")).abs() < 1e-6,
            "{eval} {report}"
        );
    }
    // Several outputs end in weights of their own.
    ok(
        folder.path(),
        "generate planted --samples 600 --inputs 12 --hidden 4 --outputs 3 --nnz 20 --seed 3 -o q -q",
    );
    let line = "train --data q/X.npy --labels q/y.npy --task regression --hidden 6,5 --nnz 40 --kicks 0 -o m.tamis";
    let report = json(folder.path(), line);
    // A network that is found exactly may have fewer.
    assert_eq!(report["outputs"], json!(3), "{report}");
    assert!(
        (20.0..=40.0).contains(&number(&report, "nnz")) && number(&report, "psnr_db") > 40.0,
        "{report}"
    );
    ok(folder.path(), "eval m.tamis --data q/X.npy --labels q/y.npy");
}

#[test]
fn any_model_is_finetuned_on_its_own_support() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    ok(path, DIGITS);
    ok(
        path,
        &format!("{CLASSES} --hidden 24,16 --nnz 300 --epochs 5 --tune-epochs 0 -o a.tamis -q"),
    );
    ok(path, &format!("{CLASSES} --hidden 24 --nnz 300 --epochs 5 -o b.tamis -q"));
    ok(path, PLANTED);
    ok(path, &format!("{VALUES} --hidden 8 --nnz 15 --recipe paper -o c.tamis -q"));
    let (digits, planted) = ("--data d/X.npy --labels d/y.npy", "--data p/X.npy --labels p/y.npy");
    for (model, data) in [("a", digits), ("b", digits), ("c", planted)] {
        let old = json(path, &format!("eval {model}.tamis {data}"));
        let report = json(path, &format!("finetune {model}.tamis {data} -o n.tamis"));
        let new = json(path, &format!("eval n.tamis {data}"));
        assert!(
            (number(&old, "loss") - number(&report, "loss_before")).abs() < 1e-9,
            "{old} {report}"
        );
        assert!((number(&new, "loss") - number(&report, "loss")).abs() < 1e-9, "{new} {report}");
        // The published method ends where its weights fit best.
        let part = if model == "c" { 1.0 } else { 0.99 };
        assert!(number(&new, "loss") <= part * number(&old, "loss"), "{model}: {old} {new}");
        let size = |name: &str| std::fs::metadata(path.join(name)).unwrap().len();
        assert_eq!(size("n.tamis"), size(&format!("{model}.tamis")));
        // Places stay, and so do tasks and the neurons asked for.
        let [was, is] = [format!("{model}.tamis"), "n.tamis".into()]
            .map(|name| json(path, &format!("inspect {name}")));
        assert_eq!(
            (&was["layers"], &was["task"], &was["hidden"]),
            (&is["layers"], &is["task"], &is["hidden"])
        );
    }
    for (flags, says) in [
        ("--epochs 0", "--epochs 1 or more"),
        ("--rate=-1", "--rate"),
        ("--time-limit=-1", "--time-limit"),
    ] {
        let error = fails(path, &format!("finetune a.tamis {digits} {flags} -o x.tamis"));
        assert!(error.contains(says), "{flags}: {error}");
    }
    let error = fails(path, &format!("finetune a.tamis {planted} -o x.tamis"));
    assert!(error.contains("expected") && !path.join("x.tamis").exists(), "{error}");
}

#[test]
fn invalid_deep_settings_are_refused_writing_nothing() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), PLANTED);
    let refused = |train: &str, flags: &str, says: &str| {
        let error = fails(folder.path(), &format!("{train} {flags} -o m.tamis"));
        assert!(error.contains(says), "{flags}: {error}");
        assert!(!folder.path().join("m.tamis").exists());
    };
    for (flags, says) in [
        ("--hidden 8,8,0 --nnz 20", "the sizes of the network do not fit"),
        ("--hidden 8,8 --nnz 1", "2 to 144"),
        ("--hidden 8,8,8 --nnz 2", "3 to 208"),
        ("--hidden 8,8 --density 0", "density"),
        ("--hidden 2,2,2,2,2,2,2,2 --nnz 20", "1 to 7"),
        ("--hidden 8,8,8 --nnz 20 --checkpoint c", "--checkpoint"),
        ("--hidden 8,8,8 --nnz 20 --log l.jsonl", "--log"),
        ("--hidden 8,8 --nnz 20 --tune-rate=-1", "--tune-rate"),
        ("--hidden 8,8,8 --nnz 20 --grow 0.5", "--grow 1 or more"),
        ("--hidden 8,8,8 --nnz 20 --grow 2,nan", "--grow"),
        ("--hidden 8 --nnz 20 --grow 2", "--grow"),
        ("--hidden 8 --nnz 20 --tune-epochs 3", "--tune-epochs"),
        ("--hidden 8,8 --nnz 20 --recipe paper-safe", "several outputs"),
        ("--hidden 8,8,8 --nnz 20 --ram 1K", "hidden layer 1"),
    ] {
        refused(VALUES, flags, says);
    }
    ok(folder.path(), DIGITS);
    for (flags, says) in [
        ("--hidden 8,0 --nnz 40", "each of 1 to 65535 neurons"),
        (
            "--nnz 9",
            "11 or more: one for each of 10 outputs and each layer before; 10 with --hidden 0",
        ),
    ] {
        refused(CLASSES, flags, says);
    }
    for (flags, says) in [
        ("--hidden 8,8,8 --nnz 20 --grow 2 --recipe paper", "recipe paper does not take --grow"),
        (
            "--hidden 8,8 --nnz 20 --recipe imp --tune-epochs 3",
            "recipe imp does not take --tune-epochs",
        ),
    ] {
        let error = misuses(folder.path(), &format!("{VALUES} {flags} -o m.tamis"));
        assert!(error.contains(says), "{flags}: {error}");
    }
}

#[test]
fn memory_budget_holds_and_decides_stored_activations() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), PLANTED);
    let train =
        format!("{VALUES} --hidden 8,7,6 --nnz 40 --recipe paper --tune-epochs 2 -o m.tamis");
    let stored = |report: &serde_json::Value| -> Vec<f64> {
        report["layers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|layer| number(layer, "mapped_bytes"))
            .collect()
    };
    let total = |report: &serde_json::Value| -> f64 {
        ["mapped_bytes", "state_bytes", "workspace_bytes"]
            .iter()
            .map(|key| number(report, key))
            .sum()
    };
    let free = json(folder.path(), &train);
    let live: Vec<f64> =
        free["layers"].as_array().unwrap().iter().map(|layer| number(layer, "live")).collect();
    // 800 rows, nothing for the first layer.
    assert_eq!(stored(&free), [0.0, 3200.0 * live[0], 3200.0 * live[1]], "{free}");
    let wide = json(folder.path(), &format!("{train} --ram 200000"));
    assert!(stored(&wide)[1] > 0.0 && total(&wide) <= 200_000.0, "{wide}");
    for ram in [14_000.0, 9_000.0] {
        let least = json(folder.path(), &format!("{train} --ram {ram}"));
        assert_eq!(stored(&least), [0.0; 3], "{least}");
        assert!(total(&least) <= ram && total(&least) < total(&free), "{least}");
        let eval = json(folder.path(), "eval m.tamis --data p/X.npy --labels p/y.npy");
        assert!((number(&eval, "loss") - number(&least, "loss")).abs() < 1e-6, "{eval} {least}");
    }
    std::fs::remove_file(folder.path().join("m.tamis")).unwrap();
    for (ram, says) in [
        ("2000", ["hidden layer 1", "bytes needed", "got: 2000 bytes"]),
        ("500", ["too small to fit all layers together", "at least", "--tune-epochs 0"]),
    ] {
        let error = fails(folder.path(), &format!("{train} --ram {ram}"));
        assert!(says.iter().all(|says| error.contains(says)), "{ram}: {error}");
        assert!(!folder.path().join("m.tamis").exists());
    }
}

/// What classes and several layers take by default.
#[test]
fn deep_classes_train_on_a_support_that_moves() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ok(folder, DIGITS);
    let train = format!("{CLASSES} --hidden 24,16 --nnz 400");
    let report = json(folder, &format!("{train} -o m.tamis"));
    assert_eq!((&report["recipe"], &report["hidden"]), (&json!("dynamic"), &json!([24, 16])));
    assert_eq!((&report["nnz"], &report["requested_nnz"]), (&json!(400), &json!(400)), "{report}");
    assert!(number(&report, "grown") > 400.0 && number(&report, "start_nnz") > 1000.0, "{report}");
    assert!(number(&report, "accuracy") > 0.95, "{report}");
    let eval = json(folder, "eval m.tamis --data d/X.npy --labels d/y.npy");
    assert!((number(&eval, "accuracy") - number(&report, "accuracy")).abs() < 1e-9, "{eval}");
    // Biases are among the nonzeros.
    let cost = json(folder, "inspect m.tamis");
    let layers = cost["layers"].as_array().unwrap();
    let nnz: f64 = layers.iter().map(|layer| number(layer, "nnz")).sum();
    assert_eq!((layers.len(), nnz), (3, 400.0), "{cost}");
    ok(folder, &format!("{train} --threads 1 -o one.tamis -q"));
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    assert_eq!(read("m.tamis"), read("one.tamis"));
    ok(folder, "quantize m.tamis --data d/X.npy -o q.tamis -q");
    let eval = json(folder, "eval q.tamis --data d/X.npy --labels d/y.npy");
    assert!(number(&report, "accuracy") - number(&eval, "accuracy") < 0.02, "{eval}");
}

#[test]
fn memory_budget_bounds_the_weights_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ok(folder, DIGITS);
    let train = format!("{CLASSES} --hidden 24,16 --nnz 200 --epochs 3 --threads 1 -o m.tamis");
    let report = json(folder, &format!("{train} --ram 200K"));
    let bytes = number(&report, "state_bytes") + number(&report, "workspace_bytes");
    assert!(bytes <= 200.0 * 1024.0, "{report}");
    let start = number(&report, "start_nnz");
    assert!((200.0..2080.0).contains(&start), "{report}");
    let error = fails(folder, &format!("{train} --ram 20K"));
    assert!(
        error.contains("memory budget is too small") && error.contains("bytes needed"),
        "{error}"
    );
    // Classes of many rows are held, too.
    ok(folder, "generate digits --samples 40000 --side 8 --seed 3 -o many -q");
    let many = train.replace("d/", "many/").replace("--epochs 3", "--epochs 1");
    let report = json(folder, &format!("{many} --ram 240K"));
    assert!(number(&report, "heap_peak_bytes") < 240.0 * 1024.0 + 30_000.0, "{report}");
    // Whatever the rows become and however many threads there are.
    for (flags, ram) in
        [("--augment images", 300_000.0), ("--augment noise=1", 300_000.0), ("", 1e6)]
    {
        let train =
            format!("{CLASSES} --hidden 24,24,16 --nnz 200 --epochs 1 --threads 3 -o m.tamis");
        let report = json(folder, &format!("{train} {flags} --ram {ram}"));
        let bytes = number(&report, "state_bytes") + number(&report, "workspace_bytes");
        assert!(bytes <= ram, "{flags}: {report}");
        // The heap has what is said, and some KB.
        assert!(number(&report, "heap_peak_bytes") < ram + 30_000.0, "{flags}: {report}");
        let plan = json(folder, &format!("{train} {flags} --ram {ram} --plan"));
        for key in ["state_bytes", "workspace_bytes"] {
            assert_eq!(plan[key], report[key], "{flags} {key}");
        }
    }
    let error = fails(folder, &format!("{train} --start-factor 8 --ram 80K"));
    assert!(error.contains("too small for --start-factor") && error.contains("at most"), "{error}");
    let error = fails(folder, &format!("{train} --augment images --ram 70K"));
    assert!(error.contains("memory budget is too small"), "{error}");
}

#[test]
fn moments_as_bfloat16_take_less_memory_and_learn_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ok(folder, DIGITS);
    let train = format!("{CLASSES} --hidden 24,16 --nnz 300 --epochs 30 -o m.tamis");
    let one = format!("{train} --threads 1");
    let (whole, half) = (json(folder, &one), json(folder, &format!("{one} --moments bf16")));
    assert_eq!((&whole["moments"], &half["moments"]), (&json!("f32"), &json!("bf16")));
    // Four bytes of each weight that there is room for, of which two hand on biases.
    let room = number(&whole, "start_nnz").max(300.0);
    let saved = number(&whole, "state_bytes") - number(&half, "state_bytes");
    assert!(saved >= 4.0 * room && saved <= 4.0 * (room + 60.0), "{saved} {whole}");
    assert!(number(&half, "accuracy") > number(&whole, "accuracy") - 0.02, "{whole} {half}");
    // As many weights at the start as the budget has room for: more of those that take less.
    let start = |flags: &str| {
        let report = json(folder, &format!("{train} --threads 1 --ram 80K {flags}"));
        number(&report, "start_nnz")
    };
    assert!(start("--moments bf16") > 1.05 * start(""));
    // A run goes on with the moments that it began with, whatever the threads.
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let kept = format!("{train} --checkpoint k --resume");
    ok(folder, &format!("{kept} --moments bf16 --passes-limit 11 -q"));
    let error = fails(folder, &kept);
    assert!(error.contains("--moments"), "{error}");
    ok(folder, &format!("{kept} --moments bf16 -q"));
    ok(folder, &format!("{} --moments bf16 -q", train.replace("m.tamis", "whole.tamis")));
    assert_eq!(read("m.tamis"), read("whole.tamis"));
}

#[test]
fn best_start_on_validation_rows_is_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ok(folder, DIGITS);
    let train = format!("{CLASSES} --hidden 24,16 --nnz 200 --epochs 20 --seed 1 -o m.tamis");
    let run = |flags: &str| json(folder, &format!("{train} --validation 0.3 {flags}"));
    let losses = [1, 2, 3, 4].map(|starts| {
        let report = run(&format!("--starts {starts}"));
        let passes = f64::from(starts) * 20.0;
        assert!((number(&report, "passes") - passes).abs() < 1.0, "{report}");
        assert_eq!(number(&report, "trials"), f64::from(if starts > 1 { starts } else { 0 }));
        number(&report, "validation_loss")
    });
    assert!(losses.is_sorted_by(|a, b| a >= b) && losses[3] < losses[0], "{losses:?}");
    // A limit counts all of them, and what there is stays.
    let cut = run("--starts 4 --passes-limit 30");
    assert_eq!((&cut["limit"], number(&cut, "trials")), (&json!("passes"), 2.0), "{cut}");
    let is_first = number(&cut, "validation_loss") <= losses[0];
    assert!(is_first && number(&cut, "passes") == 30.0, "{cut}");
    let said = ok(folder, &format!("{train} --validation 0.3 --starts 2"));
    assert!(said.contains("the best of 2 starts"), "{said}");
    for (flags, expected) in [
        ("--starts 2", "--validation above 0"),
        ("--starts 0 --validation 0.3", "--starts 1 or more"),
        ("--starts 2 --validation 0.3 --checkpoint k", "a checkpoint is of one training"),
    ] {
        let error = fails(folder, &format!("{train} {flags}"));
        assert!(error.contains(expected), "{error}");
    }
}

/// A strip is the activations of 64 rows. Data are not counted.
#[test]
fn heap_has_24_bytes_a_weight_and_a_strip() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ok(folder, "generate digits --samples 500 --side 28 --seed 2 -o d -q");
    let two = [300, 100];
    for (hidden, batch, threads, moments) in [
        (&two[..], 128, 1, "f32"),
        (&two, 128, 1, "bf16"),
        (&two, 128, 2, "f32"),
        (&two, 128, 2, "bf16"),
        (&two, 128, 4, "f32"),
        (&two, 256, 4, "f32"),
        (&[400, 400, 400], 128, 1, "f32"),
        (&[400, 400, 400], 128, 2, "f32"),
        // Most weights come to lie in the second layer.
        (&[1000, 1000], 128, 2, "f32"),
        (&[2000], 128, 2, "f32"),
    ] {
        let widths: Vec<String> = hidden.iter().map(u32::to_string).collect();
        let train = format!(
            "{CLASSES} --hidden {} --epochs 3 --batch {batch} --threads {threads} \
             --moments {moments}",
            widths.join(",")
        );
        let neurons = 784 + hidden.iter().sum::<u32>() + 10 + hidden.len() as u32 + 1;
        let strips = 64.0 * 4.0 * f64::from(neurons * threads);
        for (nnz, factor) in [(4000, 1), (4000, 3), (4000, 20), (60_000, 1)] {
            let flags = format!("--nnz {nnz} --start-factor {factor}");
            let report = json(folder, &format!("{train} {flags} -o m.tamis"));
            let [weights, heap] = ["start_nnz", "heap_peak_bytes"].map(|key| number(&report, key));
            let bytes = if moments == "f32" { 22.0 } else { 18.0 };
            // What else each thread and the program have, and a panel of gradients that is more than that of the weights.
            let widest = f64::from(hidden.iter().copied().fold(785, u32::max));
            let of_threads = f64::from(threads) * (4.0 * widest + 22_000.0);
            let panel = (4.0 * (8.0 * widest - weights)).max(0.0);
            let own = of_threads + 20.0 * f64::from(neurons) + panel + 35_000.0;
            let most = bytes * weights + strips + own;
            assert!(heap < most, "{hidden:?} {batch} {moments} {threads} {flags}: {heap} {most}");
            let is_large = weights > 50_000.0;
            assert!(!is_large || heap < 24.0 * weights + strips, "{hidden:?} {threads}: {heap}");
        }
    }
}

#[test]
fn changed_rows_train_and_need_a_size() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ok(folder, DIGITS);
    let train = format!("{CLASSES} --hidden 24,16 --nnz 400 --epochs 20 -o m.tamis");
    for how in ["images", "images=8x8", "noise=0.1"] {
        let report = json(folder, &format!("{train} --augment {how}"));
        assert!(number(&report, "accuracy") > 0.8, "{how} {report}");
    }
    // Runs go on with the same changes of rows, to the same bits.
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let kept = format!("{train} --augment images --checkpoint k --resume -q");
    ok(folder, &format!("{kept} --passes-limit 9"));
    ok(folder, &kept);
    ok(folder, &format!("{} --augment images -q", train.replace("m.tamis", "whole.tamis")));
    assert_eq!(read("m.tamis"), read("whole.tamis"));
    let error = fails(folder, &format!("{train} --augment images=9x8"));
    assert!(error.contains("9×8 pixels a row") && error.contains("64 numbers"), "{error}");
    for wrong in ["pictures", "images=8", "images=0x3", "noise=-1", "noise=x", "noise=1e7"] {
        let line = format!("{train} --augment {wrong}");
        let output = run(folder, &line.split_whitespace().collect::<Vec<_>>());
        let (_, error) = texts(&output);
        assert_eq!(output.status.code(), Some(2), "{wrong} {error}");
        assert!(error.contains("images=WIDTHxHEIGHT"), "{wrong} {error}");
    }
    // The size is the one that a file of pictures has.
    let pictures = std::fs::File::create(folder.join("x.npz")).unwrap();
    let pixels: Vec<f32> = (0..640).map(|k| (k % 19) as f32).collect();
    let array = tamis_host::data::Array::new(&[10, 1, 4, 16], &pixels).unwrap();
    tamis_host::data::npz::write(pictures, &[("x", array)]).unwrap();
    std::fs::write(folder.join("few.csv"), "0\n1\n".repeat(5)).unwrap();
    let few = "train --data x.npz --labels few.csv --task multiclass --nnz 40 --epochs 1";
    let report = json(folder, &format!("{few} --augment images -o n.tamis"));
    assert!(report["notes"].to_string().contains("16×4"), "{report}");
    let rows: String = (0..20).map(|k| format!("{k},{},3,{},x{}\n", k % 3, k * k, k % 2)).collect();
    std::fs::write(folder.join("named.csv"), format!("a,b,c,d,kind\n{rows}")).unwrap();
    let named = "train --data named.csv --target kind --nnz 20 --augment images -o n.tamis";
    let error = fails(folder, named);
    assert!(error.contains("4 columns with names") && error.contains("images=28x28"), "{error}");
    let colours = std::fs::File::create(folder.join("c.npz")).unwrap();
    let array = tamis_host::data::Array::new(&[10, 4, 4, 4], &pixels).unwrap();
    tamis_host::data::npz::write(colours, &[("x", array)]).unwrap();
    let error = fails(folder, &format!("{} --augment images -o n.tamis", few.replace("x.", "c.")));
    assert!(error.contains("one number a pixel") && error.contains("[4, 4, 4]"), "{error}");
}

#[test]
fn weights_that_are_lost_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ok(folder, DIGITS);
    let short =
        json(folder, &format!("{CLASSES} --hidden 24,16 --nnz 100 --passes-limit 3 -o n.tamis"));
    assert!(number(&short, "cut") > 0.0 && number(&short, "nnz") <= 100.0, "{short}");
    assert!(short["notes"].to_string().contains("let it run to its end"), "{short}");
    let steps = "--hidden 24,16 --nnz 100 --epochs 2 --batch 600 -o n.tamis";
    let whole = json(folder, &format!("{CLASSES} {steps}"))["notes"].to_string();
    assert!(whole.contains("dropped at once") && whole.contains("more --epochs"), "{whole}");
    let deep = "--hidden 24,24,24,24 --nnz 60 --start-factor 1 --epochs 2 -o n.tamis";
    let few = json(folder, &format!("{CLASSES} {deep}"));
    assert!(number(&few, "nnz") < 54.0, "{few}");
    assert!(few["notes"].to_string().contains("more at the start"), "{few}");
    let error = fails(folder, &format!("{CLASSES} --hidden 24,16 --nnz 11 -o n.tamis"));
    assert!(error.contains("a path to every output") && error.contains("12 or more"), "{error}");
}

#[test]
fn other_methods_are_settings_of_the_support() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ok(folder, DIGITS);
    let train = format!("{CLASSES} --hidden 24,16 --nnz 400 --epochs 20 --rate 0.01 -o m.tamis");
    for method in ["anneal", "gmp", "rigl", "set", "momentum"] {
        let report = json(folder, &format!("{train} --support {method}"));
        let count = |key| number(&report, key) as usize;
        // Biases come later.
        let start = if ["anneal", "gmp"].contains(&method) { 2080 } else { 400 };
        assert_eq!((&report["support"], count("start_nnz")), (&json!(method), start));
        assert!(count("nnz") <= 400 && number(&report, "accuracy") > 0.6, "{report}");
        assert_eq!(count("grown") == 0, method == "gmp", "{report}");
    }
    // Gradual pruning says where it began with less than all.
    let notes =
        |flags| json(folder, &format!("{train} --support gmp {flags}"))["notes"].to_string();
    assert!(notes("--start-factor 2").contains("began with 800 of 2"));
    assert!(!notes("").contains("began with"));
    let error = misuses(folder, &format!("{train} --support set --recipe anneal"));
    assert!(error.contains("--support") && error.contains("dynamic"), "{error}");
}
