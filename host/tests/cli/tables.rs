//! Tables as people have them: text, missing cells, names, columns in another order.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::json;
use tempfile::TempDir;

use crate::common::{command, fails, json, misuses, number, ok, run, texts};

/// A folder with the table `t.csv` of 600 people, and a model `m.tamis` of it.
fn people() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), "generate table --samples 600 -o . -q");
    fs::rename(folder.path().join("table.csv"), folder.path().join("t.csv")).unwrap();
    ok(
        folder.path(),
        "train --data t.csv --target income --nnz 30 --recipe dynamic --epochs 20 -o m.tamis -q",
    );
    folder
}

fn put(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).unwrap();
}

/// The cells of `t.csv`, which has no quotes.
fn cells(folder: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(folder.join("t.csv")).unwrap();
    text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn put_cells(folder: &Path, name: &str, rows: &[Vec<String>]) {
    let lines: Vec<String> = rows.iter().map(|row| row.join(",") + "\n").collect();
    put(folder, name, &lines.concat());
}

/// A table of two columns of numbers and a label, row by row.
fn labelled(label: impl Fn(usize) -> String) -> String {
    let row = |k: usize| format!("{},{},{}\n", k % 7, (k * 5) % 11, label(k));
    "a,b,y\n".to_owned() + &(0..60).map(row).collect::<String>()
}

#[test]
fn mixed_table_trains_with_its_task_and_names() {
    let folder = people();
    let line =
        "train --data t.csv --target income --nnz 30 --recipe dynamic --epochs 20 -o n.tamis";
    let text = ok(folder.path(), line);
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("Data: 600 rows × 8 columns, task binary, found"), "{text}");
    assert!(first.contains("<=50K ") && first.contains(">50K "), "{text}");
    assert!(
        text.contains(": work 30 (first") && text.contains("hours 33 (first"),
        "where cells are missing: {text}"
    );
    assert!(text.contains("occupation (8)"), "{text}");
    let report = json(folder.path(), line);
    assert_eq!((&report["rows"], &report["columns"]), (&json!(600), &json!(8)));
    assert_eq!((&report["task"], &report["inputs"]), (&json!("binary"), &json!(27)));
    assert_eq!(report["classes"][1]["name"], json!(">50K"));
    let eval = json(folder.path(), "eval n.tamis --data t.csv");
    assert!(number(&eval, "accuracy") > 0.85, "{eval}");
    assert!(number(&eval, "auc") > 0.9 && number(&eval, "calibration_error") < 0.2, "{eval}");
}

#[test]
fn columns_in_another_order_score_the_same() {
    let folder = people();
    let path = folder.path();
    let reversed: Vec<Vec<String>> =
        cells(path).into_iter().map(|row| row.into_iter().rev().collect()).collect();
    put_cells(path, "r.csv", &reversed);
    let score =
        |data: &str| json(path, &format!("eval m.tamis --data {data}"))["confusion"].clone();
    assert_eq!(score("t.csv"), score("r.csv"));
    for verb in
        ["finetune m.tamis --epochs 1", "quantize m.tamis", "quantize m.tamis --target income"]
    {
        let line = |data: &str| format!("{verb} --data {data} -o {data}.tamis -q");
        ok(path, &line("t.csv"));
        ok(path, &line("r.csv"));
        let model = |data: &str| fs::read(path.join(format!("{data}.tamis"))).unwrap();
        assert_eq!(model("t.csv"), model("r.csv"), "{verb}");
        // The names are in the model that was made, too.
        ok(path, "eval r.csv.tamis --data r.csv -q");
    }
    ok(path, "compare m.tamis --data t.csv --dump t.log --rows 0..3 -q");
    ok(path, "compare m.tamis --data r.csv --device t.log");
    let certify = "certify m.tamis r.csv.tamis --box r.csv --eps 0.1 --rows 2 --starts 1 -q";
    ok(path, certify);
}

#[test]
fn missing_columns_are_errors_and_extra_ones_said() {
    let folder = people();
    let path = folder.path();
    let without: Vec<Vec<String>> = cells(path).into_iter().map(|row| row[1..].to_vec()).collect();
    put_cells(path, "w.csv", &without);
    let error = fails(path, "eval m.tamis --data w.csv");
    assert!(error.contains("a column is missing") && error.contains("\"age\""), "{error}");
    let mut renamed = cells(path);
    renamed[0][1] = "works".into();
    put_cells(path, "w.csv", &renamed);
    let error = fails(path, "predict m.tamis --data w.csv -o p.csv");
    assert!(error.contains("\"work\"") && error.contains("is it \"works\"?"), "{error}");
    let mut extra = cells(path);
    extra.iter_mut().enumerate().for_each(|(k, row)| row.insert(2, format!("id{k}")));
    put_cells(path, "e.csv", &extra);
    let text = ok(path, "eval m.tamis --data e.csv");
    assert!(text.contains("does not have are ignored: \"id0\"\n"), "{text}");
    let notes = json(path, "eval m.tamis --data e.csv")["notes"].to_string();
    assert!(notes.contains("id0"), "{notes}");
}

#[test]
fn predictions_have_header_classes_and_probabilities() {
    let folder = people();
    let path = folder.path();
    ok(path, "predict m.tamis --data t.csv -o p.csv");
    let text = fs::read_to_string(path.join("p.csv")).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("income,probability_<=50K,probability_>50K"));
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let [low, high] = [1, 2].map(|k| cells[k].parse::<f32>().unwrap());
        assert!((low + high - 1.0).abs() < 1e-5, "{line}");
        assert_eq!(cells[0], if high >= 0.5 { ">50K" } else { "<=50K" }, "{line}");
    }
    // Without labels, and through pipes.
    let blind: Vec<Vec<String>> = cells(path).into_iter().map(|row| row[..8].to_vec()).collect();
    put_cells(path, "b.csv", &blind);
    let input = fs::File::open(path.join("b.csv")).unwrap();
    let output = command(path, &["predict", "m.tamis", "--data", "-", "-o", "-"])
        .stdin(Stdio::from(input))
        .output()
        .unwrap();
    // What there is to say of the rows is said beside them.
    let (out, said) = texts(&output);
    assert_eq!(out, text);
    assert!(
        said.lines().all(|line| line.starts_with("note: ")) && said.contains("hours"),
        "{said}"
    );
    ok(path, "train --data t.csv --target gain --nnz 12 --passes-limit 50 -o g.tamis -q");
    ok(path, "predict g.tamis --data t.csv -o p.csv -q");
    let text = fs::read_to_string(path.join("p.csv")).unwrap();
    assert_eq!((text.lines().next(), text.lines().count()), (Some("gain"), 601));
    let error = misuses(path, "predict m.tamis --data t.csv -o - --json");
    assert!(error.contains("standard output"), "{error}");
}

#[test]
fn task_is_found_from_the_column() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let found = |labels: &dyn Fn(usize) -> String| {
        put(path, "l.csv", &labelled(labels));
        let report =
            json(path, "train --data l.csv --target y --nnz 9 --passes-limit 20 -o l.tamis");
        let names = report["classes"].as_array().map_or_else(Vec::new, |classes| {
            classes.iter().map(|class| class["name"].as_str().unwrap().to_owned()).collect()
        });
        // The model scores what it was trained on, by these names.
        ok(path, "eval l.tamis --data l.csv -q");
        (report["task"].as_str().unwrap().to_owned(), names.join(" "))
    };
    let is = |task: &str, names: &str| (task.to_owned(), names.to_owned());
    let odd = |k: usize| k % 7 > 3;
    assert_eq!(
        found(&|k| if odd(k) { "True" } else { "False" }.into()),
        is("binary", "False True")
    );
    assert_eq!(found(&|k| (1 + usize::from(odd(k))).to_string()), is("binary", "1 2"));
    assert_eq!(found(&|k| if odd(k) { "ham " } else { " egg" }.into()), is("binary", "egg ham"));
    assert_eq!(found(&|k| (k % 3).to_string()), is("multiclass", "0 1 2"));
    assert_eq!(found(&|k| (k % 3 * 10).to_string()), is("multiclass", "0 10 20"));
    assert_eq!(found(&|k| (k % 21).to_string()), is("regression", ""));
    assert_eq!(found(&|k| format!("{}.5", k % 3)), is("regression", ""));
    put(path, "l.csv", &labelled(|k| (k % 3).to_string()));
    let line = "train --data l.csv --target y --task regression --nnz 4 -o l.tamis";
    assert_eq!(json(path, line)["task"], json!("regression"));
    // Labels of text in a file of their own.
    put(path, "x.csv", &labelled(|k| k.to_string()));
    put(path, "y.csv", &(0..60).map(|k| if odd(k) { "b\n" } else { "a\n" }).collect::<String>());
    let report = json(path, "train --data x.csv --labels y.csv --nnz 9 -o l.tamis");
    assert_eq!((&report["task"], &report["columns"]), (&json!("binary"), &json!(3)));
}

#[test]
fn unnamed_or_misspelt_targets_are_suggested() {
    let folder = people();
    let error = misuses(folder.path(), "train --data t.csv --nnz 9 -o n.tamis");
    assert!(error.contains("did you mean --target income?") && error.contains("\"marital\""));
    let error = fails(folder.path(), "train --data t.csv --target imcome --nnz 9 -o n.tamis");
    assert!(error.contains("did you mean --target income?"), "{error}");
    // A name wins over a number.
    let rows: String = (0..40).map(|k| format!("{},{},{}\n", k % 2, k % 5, k % 3)).collect();
    put(folder.path(), "n.csv", &format!("3,b,c\n{rows}"));
    let report = json(folder.path(), "train --data n.csv --target 3 --nnz 9 -o n.tamis");
    assert_eq!((&report["task"], &report["columns"]), (&json!("binary"), &json!(2)));
}

#[test]
fn missing_cells_are_filled_dropped_or_refused() {
    let folder = people();
    let path = folder.path();
    let train = |flags: &str| {
        format!(
            "train --data t.csv --target income --nnz 20 --recipe dynamic --epochs 10 {flags} -o n.tamis"
        )
    };
    let error = fails(path, &train("--missing error"));
    assert!(error.contains("work ") && error.contains("hours "), "all columns in one: {error}");
    let holes = cells(path).iter().filter(|row| row[1] == "?" || row[7].is_empty()).count();
    let report = json(path, &train("--missing drop"));
    assert_eq!(report["rows"], json!(600 - holes));
    // Without a category of its own for missing text.
    assert_eq!(json(path, &train("--missing zero"))["inputs"], json!(26));
    assert_eq!(json(path, &train("--ignore work,hours"))["columns"], json!(6));
    assert!(fails(path, &train("--ignore wrok")).contains("did you mean --ignore work?"));
    assert!(fails(path, "eval m.tamis --data t.csv --missing error").contains("cells are missing"));
    misuses(path, "predict m.tamis --data t.csv --missing drop -o p.csv");
    // A column without a value, and rows without a label.
    let rows: String = (0..40).map(|k| format!("{k},,{}\n", ["u", "v", "NA"][k % 3])).collect();
    put(path, "e.csv", &format!("a,b,y\n{rows}"));
    let error = fails(path, "train --data e.csv --target y --nnz 9 -o n.tamis");
    assert!(error.contains("all cells of column \"b\" are missing"), "{error}");
    let text = ok(path, "train --data e.csv --target y --ignore b --nnz 9 -o n.tamis");
    assert!(text.contains("13 rows have no label and are left out"), "{text}");
}

/// A file without names leaves no means in a model, and those of other rows are none of the training.
#[test]
fn means_that_a_model_does_not_hold_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    put(path, "t.csv", labelled(|k| (k % 2).to_string()).split_once('\n').unwrap().1);
    ok(path, "train --data t.csv --target 3 --task binary --hidden 2 --nnz 4 -o m.tamis -q");
    put(path, "hole.csv", "1,2\n3,\n");
    for line in ["-o p.csv --missing mean", "-o p.csv"] {
        let error = fails(path, &format!("predict m.tamis --data hole.csv {line}"));
        assert!(error.contains("mean") || error.contains("line 2"), "{error}");
    }
    ok(path, "predict m.tamis --data hole.csv -o p.csv --missing zero -q");
    // Rows that are left out need no mean.
    put(path, "hole.csv", "1,2,0\n3,,1\n");
    let error = fails(path, "eval m.tamis --data hole.csv --target 3 --missing mean");
    assert!(error.contains("mean"), "{error}");
    assert_eq!(json(path, "eval m.tamis --data hole.csv --target 3 --missing drop")["rows"], 1);
}

#[test]
fn long_text_is_read_and_quotes_that_are_open_are_named() {
    let folder = people();
    let mut rows = cells(folder.path());
    rows[0].push("review".to_owned());
    rows[1..].iter_mut().for_each(|row| row.push("very good ".repeat(600)));
    put_cells(folder.path(), "long.csv", &rows);
    let train = "train --data long.csv --target income --ignore review --nnz 12 --epochs 2";
    ok(folder.path(), &format!("{train} -o n.tamis -q"));
    for (cell, help) in
        [("x".repeat(70_000), "shorten"), ("\"".to_owned() + &"y\n".repeat(40_000), "quote")]
    {
        rows[5][9] = cell;
        put_cells(folder.path(), "long.csv", &rows);
        let error = fails(folder.path(), &format!("{train} -o o.tamis"));
        assert!(error.contains(help) && error.contains("line 6"), "{error}");
    }
}

#[test]
fn unseen_text_is_an_error_or_other() {
    let folder = people();
    let path = folder.path();
    let mut rows = cells(path);
    rows[5][4] = "Astronaut".into();
    put_cells(path, "u.csv", &rows);
    let error = fails(path, "eval m.tamis --data u.csv");
    assert!(error.contains("\"Astronaut\" in line 6, column 5") && error.contains("\"Sales\""));
    let text = ok(path, "eval m.tamis --data u.csv --unseen other");
    assert!(text.contains("did not see count as none: occupation 1"), "{text}");
    // A rare category is one with others that are rare, so a new one is too.
    let text = |k: usize| {
        if k.is_multiple_of(2) { "often".to_owned() } else { format!("rare{}", k % 120) }
    };
    let rows: String = (0..600).map(|k| format!("{},{},{}\n", k % 9, text(k), k % 2)).collect();
    put(path, "o.csv", &format!("a,b,y\n{rows}"));
    let train = ok(path, "train --data o.csv --target y --nnz 9 -o o.tamis");
    assert!(train.contains("rare categories are taken together as one; kept are of b (50 of 61)"));
    put(path, "o.csv", "a,b,y\n1,new,0\n2,often,1\n");
    ok(path, "eval o.tamis --data o.csv");
}

#[test]
fn useless_columns_and_classes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let table = |row: &dyn Fn(usize) -> String| {
        let rows: String = (0..40).map(|k| row(k) + "\n").collect();
        put(path, "t.csv", &format!("a,b,c,y\n{rows}"));
    };
    let line = "train --data t.csv --target y --nnz 9 -o n.tamis";
    table(&|k| format!("{k},7,{k},{}", k % 2));
    let text = ok(path, line);
    assert!(
        text.contains("the same in every row: b") && text.contains("equal cells: a = c"),
        "{text}"
    );
    table(&|k| format!("{k},person {k},{},{}", k % 3, k % 2));
    let error = fails(path, line);
    assert!(error.contains("nearly every row") && error.contains("--ignore b"), "{error}");
    ok(path, &format!("{line} --ignore b"));
    table(&|k| format!("{k},{},{},yes", k % 5, k % 3));
    assert!(fails(path, line).contains("nothing to tell apart"));
    table(&|k| format!("{k},{},{},{}", k % 5, k % 3, if k == 9 { "no" } else { "yes" }));
    assert!(ok(path, line).contains("classes of a single row, which can hardly be learnt: no"));
    table(&|k| {
        format!("{k},{},{},{}", if k == 9 { "x1".into() } else { k.to_string() }, k % 3, k % 2)
    });
    let error = fails(path, line);
    assert!(error.contains("not a number") && error.contains("\"x1\" in line 11, column 2 (b)"));
    put(path, "t.csv", "a,b,y\n");
    assert!(fails(path, line).contains("no rows"));
}

#[test]
fn kept_labels_may_be_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    put(path, "t.csv", &labelled(|k| ["benign", "unclear", "malignant"][k % 7 % 3].into()));
    let line = "train --data t.csv --target y --keep-labels malignant,benign --nnz 9 -o m.tamis";
    let report = json(path, line);
    assert_eq!(report["classes"][0]["name"], json!("malignant"));
    assert_eq!(report["task"], json!("binary"));
    let error = fails(path, "eval m.tamis --data t.csv");
    assert!(error.contains("\"unclear\"") && error.contains("malignant, benign"), "{error}");
    let eval = json(path, "eval m.tamis --data t.csv --keep-labels benign,malignant");
    assert_eq!(eval["accuracy"], report["accuracy"]);
    assert!(fails(path, &line.replace("benign", "bening")).contains("did you mean benign?"));
}

#[test]
fn odd_files_are_read_as_meant() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let rows: String = (0..40).map(|k| format!("{},0,{};{}\n", k % 7, k % 5, k % 2)).collect();
    let rows = rows.replace(",0,", ",5;");
    put(path, "e.csv", &format!("\u{feff}sep=;\n# measured in May\nx;z;y\n{rows}"));
    let report = json(path, "train --data e.csv --target y --nnz 9 -o n.tamis");
    assert_eq!((&report["rows"], &report["columns"]), (&json!(40), &json!(2)));
    let rows: String = (0..40).map(|k| format!("{},{},{}\n", k % 7, k % 5, k % 2)).collect();
    put(path, "h.csv", &format!("0,1,2\n{rows}"));
    let text = ok(path, "train --data h.csv --target 3 --nnz 9 -o n.tamis");
    assert!(
        text.contains("40 rows × 2 columns") && text.contains("warning: the first line is 0, 1")
    );
}

#[test]
fn too_large_nnz_takes_all_and_says_so() {
    let folder = crate::common::prepared();
    for nnz in ["37", "18446744073709551615"] {
        let line = crate::common::TRAIN.replace("--nnz 6", &format!("--nnz {nnz}"));
        let report = json(folder.path(), &format!("{line} -o n.tamis"));
        assert_eq!(report["requested_nnz"], json!(36));
        assert!(report["notes"][0].as_str().unwrap().contains("hold, which is 36 weights"));
    }
}

#[test]
fn names_are_stripped_or_written_into_code() {
    let folder = people();
    let path = folder.path();
    ok(path, "export m.tamis --format tamis -o e.tamis -q");
    ok(path, "eval e.tamis --data t.csv -q");
    ok(path, "export m.tamis --format tamis --strip -o s.tamis -q");
    let len = |name: &str| fs::metadata(path.join(name)).unwrap().len();
    assert!(len("s.tamis") < len("e.tamis"));
    assert!(fails(path, "eval s.tamis --data t.csv --target income").contains("not a number"));
    ok(path, "export m.tamis --format rust --class-names -o m.rs -q");
    let code = fs::read_to_string(path.join("m.rs")).unwrap();
    assert!(code.contains("pub static CLASSES: [&str; 2] = [\"<=50K\", \">50K\"];"), "{code}");
    ok(path, "export m.tamis --format c --class-names -o m.c -q");
    let code = fs::read_to_string(path.join("m.h")).unwrap();
    assert!(code.contains("m_classes[2] = {\"<=50K\", \">50K\"};"), "{code}");
    fails(path, "export s.tamis --format c --class-names -o m.c");
}

#[test]
fn scores_of_numbers_are_r2_and_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    put(path, "t.csv", &labelled(|k| format!("{}.5", 3 * (k % 7) + 1)));
    let made = json(path, "train --data t.csv --target y --nnz 9 -o n.tamis");
    let eval = json(path, "eval n.tamis --data t.csv");
    for key in ["r2", "rmse", "mae"] {
        assert!((number(&made, key) - number(&eval, key)).abs() < 1e-5, "{key}: {made} {eval}");
    }
    assert!(number(&eval, "r2") > 0.9 && number(&eval, "mae") <= number(&eval, "rmse"), "{eval}");
    assert!((number(&eval, "rmse").powi(2) - number(&eval, "loss")).abs() < 1e-9);
    let text = ok(path, "eval n.tamis --data t.csv");
    assert!(text.contains("R2") && !text.contains("PSNR"), "{text}");
}

#[test]
fn standard_input_is_read_as_a_file() {
    let folder = people();
    let table = fs::File::open(folder.path().join("t.csv")).unwrap();
    let output = command(folder.path(), &["eval", "m.tamis", "--data", "-", "--json"])
        .stdin(Stdio::from(table))
        .output()
        .unwrap();
    let whole = run(folder.path(), &["eval", "m.tamis", "--data", "t.csv", "--json"]);
    assert_eq!(texts(&output), texts(&whole));
}
