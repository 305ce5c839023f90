//! Settings that a recipe does not take.

use crate::common::*;
use serde_json::json;
use tamis_host::model::ModelFile;

#[test]
fn settings_of_another_recipe_are_refused() {
    let folder = prepared();
    for (flags, name) in [
        ("--recipe paper --passes-limit 0", "--passes-limit"),
        ("--recipe paper --signs free", "free"),
        ("--time-limit 0", "--time-limit"),
        ("--patience 3", "--validation"),
        ("--recipe anneal", "--task binary"),
        ("--recipe anneal --step theory", "--task binary"),
        ("--search-rows 0", "--search-rows"),
    ] {
        let error = fails(folder.path(), &format!("{TRAIN} {flags} -o n.tamis"));
        assert!(error.contains(name) && error.contains("help:"), "{flags}: {error}");
        assert!(!folder.path().join("n.tamis").exists());
    }
    for (flags, recipe, help) in [
        ("--epochs 3", "lm", "choose --recipe paper, paper-safe, imp, dynamic or group"),
        ("--batch 9", "lm", "choose --recipe paper, paper-safe, imp, dynamic or group"),
        ("--recipe lm --step theory", "lm", "choose --recipe paper or paper-safe"),
        ("--recipe lm --rate 0.1", "lm", "choose --recipe imp or dynamic"),
        ("--recipe lm --drop 0.1", "lm", "these recipes do not take it for --task regression"),
        ("--step theory --start-factor 2", "paper", "choose --recipe dynamic"),
        ("--recipe paper --validation 0.2", "paper", "choose --recipe lm"),
        ("--trials 2 --validation 0.2", "paper", "choose --recipe lm"),
        ("--recipe paper --patience 3", "paper", "choose --recipe lm"),
        ("--recipe imp --time-limit 3", "imp", "choose --recipe lm, paper, paper-safe or dynamic"),
        ("--recipe imp --passes-limit 3", "imp", "choose --recipe lm"),
        ("--recipe imp --log l.jsonl", "imp", "choose --recipe lm"),
        ("--recipe imp --picture p.svg", "imp", "choose --recipe lm"),
        ("--recipe imp --ram 1M", "imp", "choose --recipe lm"),
        ("--recipe imp --panel 2", "imp", "choose --recipe lm"),
        ("--recipe imp --kicks 2", "imp", "choose --recipe lm"),
        ("--recipe imp --signs positive", "imp", "choose --recipe lm or paper"),
        ("--one-shot", "lm", "choose --recipe imp"),
    ] {
        let error = misuses(folder.path(), &format!("{TRAIN} {flags} -o n.tamis"));
        let flag = flags.split_whitespace().rfind(|word| word.starts_with("--")).unwrap();
        assert!(
            error.contains(&format!("recipe {recipe} does not take {flag}\n")),
            "{flags}: {error}"
        );
        assert!(error.contains(help), "{flags}: {error}");
        assert!(!folder.path().join("n.tamis").exists());
    }
    // For several classes; the recipe is refused before anything is read.
    std::fs::write(
        folder.path().join("c.csv"),
        "a,b,y\n1,0,0\n0,1,1\n1,1,2\n2,0,0\n0,2,1\n2,2,2\n",
    )
    .unwrap();
    let classes = "train --data c.csv --target y --task multiclass --hidden 3 --nnz 8";
    for (flags, name) in [
        ("--recipe paper --validation 0", "--recipe anneal"),
        ("--recipe imp --picture p.svg", "--recipe anneal"),
    ] {
        let error = misuses(folder.path(), &format!("{classes} {flags} -o n.tamis"));
        assert!(error.contains(&format!("choose {name}")), "{flags}: {error}");
    }
    // The recipe that is the task's default says no, where none of those that it has takes a setting.
    for flags in ["--hidden 4,3 --trials 2", "--hidden 4,3 --convex", "--support gmp --trials 2"] {
        let line = format!("{} {flags} -o n.tamis", classes.replace("--hidden 3 ", ""));
        let error = misuses(folder.path(), &line);
        assert!(error.contains("recipe dynamic does not take --"), "{flags}: {error}");
    }
    for flags in ["--kicks 2", "--refine none", "--empty open", "--signs positive"] {
        let error = misuses(folder.path(), &format!("{classes} {flags} -o n.tamis"));
        assert!(
            error.contains("these recipes do not take it for --task multiclass"),
            "{flags}: {error}"
        );
    }
    for (flags, name) in
        [("--time-limit 0", "--time-limit"), ("--recipe lm", "--task regression or binary")]
    {
        let error = fails(folder.path(), &format!("{classes} {flags} -o n.tamis"));
        assert!(error.contains(name) && error.contains("help:"), "{flags}: {error}");
        assert!(!error.contains("choose --recipe"), "{flags}: {error}");
    }
    let report =
        json(folder.path(), &format!("{classes} --epochs 2 --batch 3 --validation 0 -o n.tamis"));
    assert_eq!(
        (&report["recipe"], &report["batch"], &report["epochs"]),
        (&json!("dynamic"), &json!(3), &json!(2))
    );
    let binary = classes.replace("multiclass", "binary --keep-labels 0,1");
    let report = json(folder.path(), &format!("{binary} --recipe anneal --epochs 2 -o n.tamis"));
    assert_eq!((&report["classes"][1]["rows"], &report["outputs"]), (&json!(2), &json!(1)));
    assert!(
        fails(folder.path(), &format!("{TRAIN} --recipe anneal -o n.tamis"))
            .contains("--task binary")
    );
    let report =
        json(folder.path(), &format!("{binary} --nnz 2 -o n.tamis").replacen("--nnz 8 ", "", 1));
    assert_eq!(report["recipe"], json!("lm"));
    assert_eq!(
        json(folder.path(), &format!("{TRAIN} --trials 2 -o n.tamis"))["recipe"],
        json!("paper")
    );
    for signs in ["positive", "balanced", "free"] {
        let report = json(folder.path(), &format!("{TRAIN} --signs {signs} -o n.tamis"));
        assert_eq!((&report["signs"], &report["exact"]), (&json!(signs), &json!(true)), "{report}");
        ModelFile::load(folder.path().join("n.tamis")).unwrap();
    }
}

#[test]
fn few_inputs_have_more_neurons_by_default() {
    let folder = tempfile::tempdir().unwrap();
    let row =
        |k: usize| (0..6).map(|j| (k * (j + 3) % 17).to_string()).collect::<Vec<_>>().join(",");
    let rows = (0..60).map(|k| format!("{},{}\n", row(k), k % 17));
    let text = rows.fold("a,b,c,d,e,f,y\n".to_owned(), |text, row| text + &row);
    std::fs::write(folder.path().join("few.csv"), text).unwrap();
    let line =
        "train --data few.csv --target y --task regression --nnz 40 --passes-limit 50 -o m.tamis";
    ok(folder.path(), line);
}

#[test]
fn plan_says_what_training_takes_and_trains_nothing() {
    let folder = prepared();
    let folder = folder.path();
    let deep = TRAIN.replace("--hidden 3 --nnz 6", "--hidden 4,3 --nnz 30");
    let dynamic = "--recipe dynamic --epochs 1";
    for line in [
        format!("{TRAIN} --recipe lm"),
        format!("{TRAIN} --recipe paper --epochs 1"),
        format!("{TRAIN} {dynamic}"),
        format!("{deep} {dynamic}"),
    ] {
        let line = format!("{line} -o n.tamis");
        let before = listing(folder);
        let planned = json(folder, &format!("{line} --plan"));
        assert_eq!(listing(folder), before, "{line}");
        let trained = json(folder, &line);
        for key in ["state_bytes", "workspace_bytes", "data_bytes", "recipe", "device", "panel"] {
            assert_eq!(planned.get(key), trained.get(key), "{line}: {key}");
        }
        let (support, nnz) = (number(&planned, "support"), number(&planned, "requested_nnz"));
        assert!(support >= number(&trained, "nnz") && nnz == number(&trained, "requested_nnz"));
        std::fs::remove_file(folder.join("n.tamis")).unwrap();
    }
    let text = ok(folder, &format!("{TRAIN} --plan -o n.tamis"));
    assert!(text.contains("nothing is trained") && text.contains("weights at a time"), "{text}");
    assert!(!folder.join("n.tamis").exists());
    let error = fails(folder, &format!("{TRAIN},9 --plan -o n"));
    assert!(error.contains("--plan"), "{error}");
    let error = fails(folder, &format!("{TRAIN} --recipe imp --plan -o n.tamis"));
    assert!(error.contains("imp") && error.contains("help:"), "{error}");
}
