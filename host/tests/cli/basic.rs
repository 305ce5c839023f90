//! Every verb and flag does what it says.

use crate::common::*;
use serde_json::{Value, json};
use tamis_host::data;
use tamis_host::model::ModelFile;

#[test]
fn demo_recovers_within_its_budget_and_draws() {
    let folder = tempfile::tempdir().unwrap();
    let report = json(folder.path(), "demo");
    assert_eq!((&report["recovered"], &report["within_budget"]), (&json!(true), &json!(true)));
    assert_eq!(report["support_match"], report["requested_nnz"]);
    assert!(number(&report, "max_error") < 1e-5 && number(&report, "psnr_db") > 100.0);
    let used = number(&report, "state_bytes") + number(&report, "workspace_bytes");
    assert!(used <= number(&report, "budget_bytes"));
    assert!(number(&report["unseen"], "psnr_db") > 100.0);
    let picture =
        std::fs::read_to_string(folder.path().join(report["picture"].as_str().unwrap())).unwrap();
    roxmltree::Document::parse(&picture).unwrap();
    let model = ModelFile::load(folder.path().join(report["model"].as_str().unwrap())).unwrap();
    assert_eq!(model.cost().unwrap().total.nonzeros, 50);
}

#[test]
fn what_the_demo_proposes_next_works() {
    let folder = tempfile::tempdir().unwrap();
    let text = ok(folder.path(), "demo -o out");
    let next: Vec<&str> = text.split("Try next:").nth(1).unwrap().trim().lines().collect();
    assert_eq!(next.len(), 3, "{text}");
    for line in next {
        ok(folder.path(), line.trim().strip_prefix("tamis ").unwrap());
    }
    assert!(
        text.contains("Recovered: all 50 weights") && text.contains("within the budget"),
        "{text}"
    );
}

#[test]
fn demo_reports_what_each_seed_came_to() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 1..5 {
        let report = json(folder.path(), &format!("demo --seed {seed}"));
        let all = report["support_match"] == report["requested_nnz"]
            && number(&report, "max_error") < 1e-4;
        assert_eq!((&report["recovered"], &report["within_budget"]), (&json!(all), &json!(true)));
        assert_eq!(report["seed"], json!(seed));
    }
}

#[test]
fn planted_network_file_reproduces_its_labels() {
    let folder = tempfile::tempdir().unwrap();
    let line = "generate planted --samples 300 --inputs 7 --hidden 4 --nnz 9 --signs balanced --seed 5 -o d";
    let report = json(folder.path(), line);
    assert_eq!(report["files"], json!(["d/X.npy", "d/y.npy", "d/weights.npz"]));
    let column = |name: &str| {
        data::load_labels(folder.path().join(format!("d/weights.npz#{name}"))).unwrap()
    };
    let (index, value, signs) = (column("index"), column("value"), column("signs"));
    assert_eq!((column("shape"), &signs), (vec![4.0, 7.0], &vec![1.0, -1.0, 1.0, -1.0]));
    let x = data::load(folder.path().join("d/X.npy")).unwrap().values.into_f32();
    let y = data::load_labels(folder.path().join("d/y.npy")).unwrap();
    assert_eq!((x.len(), y.len(), index.len()), (300 * 7, 300, 9));
    for (x, y) in x.chunks(7).zip(y) {
        let mut z = [0.0; 4];
        for (j, v) in index.iter().zip(&value) {
            z[*j as usize / 7] += v * x[*j as usize % 7];
        }
        let f: f32 = z.iter().zip(&signs).map(|(z, v)| v * (v * z).max(0.0)).sum();
        assert!((f - y).abs() < 1e-4, "{f} {y}");
    }
}

#[test]
fn generate_gaussian_is_linear() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), "generate gaussian --samples 50 --inputs 80 --nnz 5 -o g");
    let load = |name: &str| data::load(folder.path().join(name)).unwrap().values.into_f32();
    let (x, y, index, value) = (
        load("g/X.npy"),
        load("g/y.npy"),
        load("g/weights.npz#index"),
        load("g/weights.npz#value"),
    );
    for (x, y) in x.chunks(80).zip(y) {
        let f: f32 = index.iter().zip(&value).map(|(&j, v)| v * x[j as usize]).sum();
        assert!((f - y).abs() < 1e-4, "{f} {y}");
    }
}

#[test]
fn generate_digits_are_bytes() {
    let folder = tempfile::tempdir().unwrap();
    for (flag, inputs) in [("", 64), ("--side 28", 784)] {
        ok(folder.path(), &format!("generate digits --samples 30 {flag} -o d"));
        let x = data::load(folder.path().join("d/X.npy")).unwrap();
        assert!(matches!(x.values, data::Values::U8(_)) && x.cols == inputs);
        assert_eq!(data::load_labels(folder.path().join("d/y.npy")).unwrap().len(), 30);
    }
}

#[test]
fn train_reports_under_the_agreed_names() {
    let folder = prepared();
    let report = json(
        folder.path(),
        &format!("{TRAIN} --epochs 15 --batch 0 --seed 0 --recipe paper -o n.tamis"),
    );
    assert_eq!((&report["requested_nnz"], &report["nnz"]), (&json!(6), &json!(6)));
    assert_eq!((&report["model"], &report["accuracy"]), (&json!("n.tamis"), &Value::Null));
    assert_eq!((&report["epochs"], &report["state_bytes"]), (&json!(15), &json!(16 * 6)));
    assert_eq!(report["data_bytes"], json!(400 * 12 * 4 + 400 * 4));
    for key in ["loss", "psnr_db", "passes", "seconds", "workspace_bytes"] {
        assert!(number(&report, key) > 0.0, "{key}");
    }
    if cfg!(target_os = "linux") {
        assert!(number(&report, "peak_rss_bytes") > number(&report, "data_bytes"));
    }
}

#[test]
fn eval_agrees_with_training_and_with_the_predictions() {
    let folder = prepared();
    let trained = json(folder.path(), &format!("{TRAIN} -o n.tamis"));
    let eval = json(folder.path(), "eval n.tamis --data p/X.npy --labels p/y.npy");
    assert_eq!((&eval["n"], &eval["accuracy"]), (&json!(400), &Value::Null));
    for key in ["loss", "psnr_db"] {
        let (a, b) = (number(&trained, key), number(&eval, key));
        assert!((a - b).abs() <= 1e-6 * a.abs(), "{key}: {a} {b}");
    }
    let y = data::load_labels(folder.path().join("p/y.npy")).unwrap();
    for name in ["o.npy", "o.csv", "O.NPY"] {
        assert_eq!(
            json(folder.path(), &format!("predict n.tamis --data p/X.npy -o {name}"))["n"],
            json!(400)
        );
        let f = data::load_labels(folder.path().join(name)).unwrap();
        let loss = f.iter().zip(&y).map(|(f, y)| f64::from(f - y).powi(2)).sum::<f64>() / 400.0;
        assert!((loss - number(&eval, "loss")).abs() <= 1e-5 * loss, "{name}");
    }
}

#[test]
fn a_model_knows_its_task() {
    let folder = tempfile::tempdir().unwrap();
    let table: String =
        (0..60).map(|k| format!("{},{},1,{}\n", k % 7, k % 5, u8::from(k % 7 > 3))).collect();
    std::fs::write(folder.path().join("t.csv"), format!("a,b,one,y\n{table}")).unwrap();
    // All labels are 0 or 1, so only the model says that they are numbers here.
    for (task, threshold) in [("binary", json!(0.0)), ("regression", Value::Null)] {
        let train = format!(
            "train --data t.csv --target y --task {task} --hidden 3 --nnz 6 -o {task}.tamis"
        );
        let trained = json(folder.path(), &train);
        let cost = json(folder.path(), &format!("inspect {task}.tamis"));
        assert_eq!((&cost["task"], &cost["threshold"]), (&json!(task), &threshold));
        let eval = json(folder.path(), &format!("eval {task}.tamis --data t.csv --target y"));
        assert_eq!((&eval["task"], &eval["task_from"]), (&json!(task), &json!("model")));
        assert_eq!(eval["accuracy"], trained["accuracy"]);
    }
    assert!(ok(folder.path(), "inspect binary.tamis").contains("for two classes (1 from 0 on)"));
    let asked = json(folder.path(), "eval regression.tamis --data t.csv --target y --task binary");
    assert_eq!((&asked["task"], &asked["task_from"]), (&json!("binary"), &json!("option")));
    assert!(asked["accuracy"].is_number());

    let old = include_bytes!("../../../core/tests/wire_without_task.tamis");
    std::fs::write(folder.path().join("old.tamis"), old).unwrap();
    assert_eq!(json(folder.path(), "inspect old.tamis")["task"], Value::Null);
    let eval = json(folder.path(), "eval old.tamis --data t.csv --target y");
    assert_eq!((&eval["task"], &eval["task_from"]), (&json!("binary"), &json!("labels")));
    let text = ok(folder.path(), "eval old.tamis --data t.csv --target y");
    assert!(text.contains("binary, guessed from the labels: the model does not say"), "{text}");
}

#[test]
fn the_threshold_of_the_file_decides() {
    let folder = tempfile::tempdir().unwrap();
    // relu(x_0 - 0.5 x_2) - relu(2 x_1), of class 1 from 0.5 on, and from 2.5 on.
    let half = include_bytes!("../../../core/tests/wire_golden.tamis");
    let mut more = half.to_vec();
    more[104..].copy_from_slice(&2.5_f32.to_le_bytes());
    let crc = tamis::store::wire::checksum(&more).to_le_bytes();
    more[12..16].copy_from_slice(&crc);
    std::fs::write(folder.path().join("half.tamis"), half).unwrap();
    std::fs::write(folder.path().join("more.tamis"), more).unwrap();
    std::fs::write(folder.path().join("t.csv"), "a,b,c,y\n1,0,0,0\n2,0,0,0\n3,0,0,1\n").unwrap();
    let confusion = |model| {
        json(folder.path(), &format!("eval {model}.tamis --data t.csv --target y"))["confusion"]
            .clone()
    };
    assert_eq!(
        (confusion("half"), confusion("more")),
        (json!([[0, 2], [0, 1]]), json!([[2, 0], [0, 1]]))
    );
}

#[test]
fn inspect_adds_up() {
    let folder = prepared();
    let cost = json(folder.path(), "inspect m.tamis");
    let file = std::fs::read(folder.path().join("m.tamis")).unwrap();
    let layers = cost["layers"].as_array().unwrap();
    for key in ["nnz", "macs", "dense_flash_bytes", "dense_macs"] {
        assert_eq!(
            layers.iter().map(|l| number(l, key)).sum::<f64>(),
            number(&cost["total"], key),
            "{key}"
        );
    }
    assert_eq!(number(&cost["total"], "flash_bytes"), file.len() as f64);
    assert_eq!(number(&cost["total"], "ram_bytes"), 0.0);
    assert_eq!((&cost["total"]["nnz"], &cost["hidden"]), (&json!(6), &json!([3])));
    assert_eq!(
        (&layers[0]["dense_flash_bytes"], &layers[0]["dense_macs"]),
        (&json!(144), &json!(36))
    );
    let stored = u32::from_le_bytes(file[12..16].try_into().unwrap());
    assert_eq!(cost["crc32"], json!(format!("{stored:08x}")));
    assert!(ok(folder.path(), "inspect m.tamis").contains("Sparse wins: 1.2 times less flash"));
    let full = TRAIN.replace("--nnz 6", "--nnz 36 --recipe paper");
    ok(folder.path(), &format!("{full} -o full.tamis"));
    assert!(ok(folder.path(), "inspect full.tamis").contains("Dense wins on flash here"));
    // What the search had to spare is none of the model's.
    for signs in ["positive", "balanced", "free"] {
        ok(folder.path(), &format!("{TRAIN} --signs {signs} -o s.tamis"));
        let cost = json(folder.path(), "inspect s.tamis");
        assert_eq!(
            (&cost["hidden"], &cost["layers"][0]["dense_macs"]),
            (&json!([3]), &json!(36)),
            "{signs}"
        );
    }
}

#[test]
fn every_rule_and_policy_trains() {
    let folder = prepared();
    for flags in [
        "--step normalised",
        "--step theory",
        "--step fixed:0.3",
        "--refine armijo",
        "--refine cg:5",
        "--refine none",
        "--signs positive",
        "--signs balanced",
        "--empty freeze",
        "--empty open",
        "--empty reseed",
        "--panel 1",
        "--panel 99",
        "--ram 1M",
        "--ram 200000",
        "--threads 1",
        "--recipe paper --batch 100",
        "--recipe paper --batch 100000",
        "--recipe paper --epochs 1",
    ] {
        let report = json(folder.path(), &format!("{TRAIN} {flags} -o n.tamis"));
        assert_eq!(report["nnz"], json!(6), "{flags}");
        // 0.5 is the variance that a constant would leave, and more
        assert!(number(&report, "loss").is_finite(), "{flags}");
        let ram: Option<f64> = match flags {
            "--ram 1M" => Some(1048576.0),
            "--ram 200000" => Some(200000.0),
            _ => None,
        };
        let used = number(&report, "state_bytes") + number(&report, "workspace_bytes");
        assert!(ram.is_none_or(|ram| used <= ram), "{flags}: {used}");
    }
    assert!(
        number(&json(folder.path(), &format!("{TRAIN} --step theory -o n.tamis")), "beta") > 0.0
    );
    let line = TRAIN.replace("--nnz 6", "--density 0.25");
    assert_eq!(json(folder.path(), &format!("{line} -o n.tamis"))["requested_nnz"], json!(9));
}

#[test]
fn same_seed_is_bit_identical_for_any_threads() {
    let folder = tempfile::tempdir().unwrap();
    let make = "generate planted --samples 2000 --inputs 40 --hidden 8 --nnz 30 --seed 3";
    let train =
        "train --data t1/X.npy --labels t1/y.npy --task regression --hidden 8 --nnz 30 --seed 3";
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    for threads in [1, 2] {
        ok(folder.path(), &format!("{make} --threads {threads} -o t{threads}"));
    }
    for file in ["X.npy", "y.npy", "weights.npz"] {
        assert_eq!(read(&format!("t1/{file}")), read(&format!("t2/{file}")), "{file}");
    }
    for recipe in ["lm", "paper --batch 700"] {
        for threads in [1, 2, 3] {
            ok(
                folder.path(),
                &format!("{train} --recipe {recipe} --threads {threads} -o {threads}.tamis"),
            );
            assert_eq!(
                read("1.tamis"),
                read(&format!("{threads}.tamis")),
                "{recipe}, {threads} threads"
            );
        }
    }
    ok(folder.path(), &format!("{train} --seed 4 -o other.tamis").replacen("--seed 3 ", "", 1));
    assert_ne!(read("1.tamis"), read("other.tamis"));
}

const TABLE: &str = "\
a,class,b
1.0,3,0.5
2.0,8,-0.5
1.1,3,0.4
2.1,8,-0.4
0.9,3,0.6
1.9,8,-0.6
5.0,1,0
";

#[test]
fn one_csv_with_two_of_its_classes() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.csv"), TABLE).unwrap();
    let source = "--data t.csv --target class --keep-labels 3,8";
    let report =
        json(folder.path(), &format!("train {source} --task binary --hidden 2 --nnz 3 -o m.tamis"));
    assert_eq!((&report["samples"], &report["inputs"]), (&json!(6), &json!(2)));
    let eval = json(folder.path(), &format!("eval m.tamis {source}"));
    assert_eq!((&eval["n"], &eval["accuracy"]), (&json!(6), &report["accuracy"]));
    let counts: u64 = eval["confusion"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|row| row.as_array().unwrap())
        .map(|n| n.as_u64().unwrap())
        .sum();
    assert_eq!(counts, 6);
    let swapped = json(folder.path(), &format!("eval m.tamis {}", source.replace("3,8", "8,3")));
    // Classes are those of the model, by name, whatever the order.
    assert_eq!(swapped["confusion"], eval["confusion"]);
    let raw = json(folder.path(), &format!("eval m.tamis {source} --task regression"));
    assert_eq!(raw["accuracy"], Value::Null);
    let first = json(folder.path(), &format!("eval m.tamis {source} --rows-per-label 0..2"));
    assert_eq!(first["n"], json!(4));
    let text = ok(folder.path(), "predict m.tamis --data t.csv --target 2 -o o.csv");
    assert!(text.contains("o.csv"), "{text}");
    let predictions = std::fs::read_to_string(folder.path().join("o.csv")).unwrap();
    assert!(predictions.starts_with("class,probability_3,probability_8\n"), "{predictions}");
    assert_eq!(predictions.lines().count(), 8);
}

#[test]
fn quiet_prints_nothing_and_existing_files_are_replaced() {
    let folder = prepared();
    let before = std::fs::read(folder.path().join("m.tamis")).unwrap();
    std::fs::write(folder.path().join("m.tamis"), "old").unwrap();
    assert_eq!(ok(folder.path(), &format!("{TRAIN} -o m.tamis --quiet")), "");
    assert_eq!(std::fs::read(folder.path().join("m.tamis")).unwrap(), before);
    for line in [
        "eval m.tamis --data p/X.npy --labels p/y.npy",
        "inspect m.tamis",
        "demo",
        "predict m.tamis --data p/X.npy -o o.npy",
    ] {
        assert_eq!(ok(folder.path(), &format!("{line} -q")), "");
    }
}

#[test]
fn help_has_an_example_for_every_verb() {
    let folder = tempfile::tempdir().unwrap();
    for verb in ["demo", "generate", "train", "eval", "predict", "inspect", "bench"] {
        let help = ok(folder.path(), &format!("{verb} --help"));
        assert!(help.contains(&format!("tamis {verb}")) && help.contains("--json"), "{help}");
    }
    assert!(ok(folder.path(), "--version").starts_with("tamis "));
}

#[test]
fn ten_digits_from_training_to_predictions() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), "generate digits --samples 1200 --side 8 --seed 5 -o d");
    let source = "--data d/X.npy --labels d/y.npy";
    let train = format!("train {source} --task multiclass --hidden 16 --nnz 250 --epochs 60");
    let report = json(folder.path(), &format!("{train} -o m.tamis"));
    assert_eq!(
        (&report["recipe"], &report["classes"][9]["rows"]),
        (&json!("dynamic"), &json!(120))
    );
    assert_eq!((&report["nnz"], &report["requested_nnz"]), (&json!(250), &json!(250)));
    assert!(report["accuracy"].as_f64().unwrap() > 0.75, "{report}");
    let eval = json(folder.path(), &format!("eval m.tamis {source}"));
    assert_eq!((&eval["task"], &eval["n"]), (&json!("multiclass"), &json!(1200)));
    assert!(eval["accuracy"].as_f64().unwrap() > 0.8, "{eval}");
    let rows = eval["confusion"].as_array().unwrap();
    let counts = rows.iter().flat_map(|row| row.as_array().unwrap()).map(|n| n.as_u64().unwrap());
    assert_eq!((rows.len(), counts.sum::<u64>()), (10, 1200));
    // One thread, and memory that shrinks the first support: the first changes nothing, the second
    // keeps its bounds.
    ok(folder.path(), &format!("{train} --threads 1 -o one.tamis"));
    let bytes = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(bytes("one.tamis"), bytes("m.tamis"));
    let small = json(folder.path(), &format!("{train} --ram 64K -o small.tamis"));
    ok(folder.path(), &format!("{train} --ram 64K --threads 1 -o one.tamis"));
    assert_eq!(bytes("one.tamis"), bytes("small.tamis"));
    let used = small["state_bytes"].as_u64().unwrap() + small["workspace_bytes"].as_u64().unwrap();
    assert!(used <= 64 << 10 && small["nnz"] == json!(250), "{small}");
    assert!(small["start_nnz"].as_u64() < report["start_nnz"].as_u64(), "{small}");
    // The class comes first, and is that of the largest score.
    let predict = json(folder.path(), "predict m.tamis --data d/X.npy -o p.npy");
    assert_eq!((&predict["outputs"], &predict["columns"]), (&json!(10), &json!(11)));
    let table = data::load(folder.path().join("p.npy")).unwrap().values.into_f32();
    for row in table.chunks(11) {
        assert_eq!(row[0] as usize, tamis::learn::loss::best(&row[1..]));
    }
    let right = table.chunks(11).zip(data::load_labels(folder.path().join("d/y.npy")).unwrap());
    let right = right.filter(|(row, label)| row[0] == *label).count();
    assert_eq!((number(&eval, "accuracy") * 1200.0).round() as usize, right);
    let inspect = json(folder.path(), "inspect m.tamis");
    assert_eq!((&inspect["outputs"], &inspect["total"]["nnz"]), (&json!(10), &json!(250)));
    // Kept labels become 0, 1, 2 in the order given.
    let three = format!("{source} --keep-labels 7,1,4");
    ok(
        folder.path(),
        &format!("train {three} --task multiclass --hidden 8 --nnz 60 --epochs 40 -o t.tamis"),
    );
    let eval = json(folder.path(), &format!("eval t.tamis {three}"));
    assert!(eval["accuracy"].as_f64().unwrap() > 0.85, "{eval}");
    let swapped = json(folder.path(), &format!("eval t.tamis {}", three.replace("7,1,4", "1,7,4")));
    // Classes are those of the model, by name, whatever the order.
    assert_eq!(swapped["confusion"], eval["confusion"]);
    let inspect = json(folder.path(), "inspect t.tamis");
    assert_eq!((&inspect["task"], &inspect["outputs"]), (&json!("multiclass"), &json!(3)));
    assert!(ok(folder.path(), "inspect t.tamis").contains("for 3 classes"));
    assert_eq!((&eval["task"], &eval["task_from"]), (&json!("multiclass"), &json!("model")));
    let labels = data::load_labels(folder.path().join("d/y.npy")).unwrap();
    let row = labels.iter().position(|label| ![7.0, 1.0, 4.0].contains(label)).unwrap();
    let error = fails(folder.path(), &format!("eval t.tamis {source}"));
    let got = format!("got: {} in row {row}", labels[row]);
    for says in ["none of the model's classes", "d/y.npy", "expected: one of 7, 1, 4", &got] {
        assert!(error.contains(says), "{says}: {error}");
    }
    let error = fails(folder.path(), &format!("eval t.tamis {three},5"));
    assert!(error.contains("labels among 7, 1, 4") && error.contains("got: 5"), "{error}");
    assert!(
        fails(folder.path(), &format!("eval t.tamis {three} --task regression"))
            .contains("--task multiclass")
    );
    // A model from before models knew their task: several outputs are classes.
    let mut old = bytes("t.tamis");
    old.truncate(old.len() - 16 - 44); // the task, and the names of three classes
    let len = (old.len() as u32).to_le_bytes();
    old[8..12].copy_from_slice(&len);
    let crc = tamis::store::wire::checksum(&old).to_le_bytes();
    old[12..16].copy_from_slice(&crc);
    std::fs::write(folder.path().join("old.tamis"), old).unwrap();
    let again = json(folder.path(), &format!("eval old.tamis {three}"));
    assert_eq!((&again["task"], &again["confusion"]), (&eval["task"], &eval["confusion"]));
    assert_eq!(
        json(folder.path(), "predict old.tamis --data d/X.npy -o o.npy")["columns"],
        json!(4)
    );
}

#[test]
fn a_search_is_limited_logged_and_drawn() {
    let folder = prepared();
    let report =
        json(folder.path(), &format!("{TRAIN} --log run.jsonl --picture run.svg -o n.tamis"));
    assert_eq!((&report["recipe"], &report["exact"]), (&json!("lm"), &json!(true)));
    assert!(number(&report, "psnr_db") > 110.0, "{report}");
    let log = std::fs::read_to_string(folder.path().join("run.jsonl")).unwrap();
    let mut lines: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = lines.pop().unwrap();
    assert_eq!((&last["result"], &last["nnz"]), (&json!(true), &report["nnz"]));
    assert_eq!((&last["loss"], &last["exact"]), (&report["loss"], &json!(true)));
    assert_eq!(json!(lines.len()), report["steps"]);
    assert!(lines.windows(2).all(|pair| number(&pair[0], "passes") <= number(&pair[1], "passes")));
    assert!(lines.iter().all(|line| line["loss"].is_number() && line["live"].is_number()));
    let picture = std::fs::read_to_string(folder.path().join("run.svg")).unwrap();
    roxmltree::Document::parse(&picture).unwrap();
    let limited = json(folder.path(), &format!("{TRAIN} --passes-limit 0.001 -o n.tamis"));
    assert_eq!((&limited["limit"], &limited["nnz"]), (&json!("passes"), &json!(6)));
    let limited = json(folder.path(), &format!("{TRAIN} --time-limit 1e-9 -o n.tamis"));
    assert_eq!(limited["limit"], json!("time"));
    // One output for all, or one of them an input: refused before anything is written.
    for twice in ["--log n.tamis", "--log a --picture a", "--picture p/X.npy"] {
        assert!(
            fails(folder.path(), &format!("{TRAIN} {twice} -o n.tamis")).contains("error"),
            "{twice}"
        );
    }
    assert!(!folder.path().join("a").exists());
}
