//! Cells that one training gives together, the code that cells are of, and runs of some cells.

use crate::common::*;
use crate::run::{cells, planned, with_spec};
use std::collections::BTreeSet;

/// A small experiment on drawn digits, whose data no cell changes.
const DIGITS: &str = r#"name = "levels"
title = "Levels"
source = "nowhere"
[[part]]
name = "digits"
title = "Digits"
m = [3]
s = [5, 20, 60]
epochs = 3
batch = 0
methods = ["imp-published", "imp-published-sum", "imp"]
seeds = [0]
metric = "accuracy"
on = "test"
range = [0.5, 1]
data = { kind = "digits", side = 8, classes = [0, 1], train = 40, test = 10 }
imp = { epochs = 2, batch = 20, rates = [0.001, 0.01], prune = 0.4 }
"#;

#[test]
fn sizes_of_one_run_of_levels_are_those_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("spec.toml"), DIGITS).unwrap();
    json(path, "run spec.toml -o all");
    let names = "digits-imp-m3-s5-seed0,digits-imp-published-sum-m3-s20-seed0";
    ok(path, &format!("run spec.toml -o named -q --cell {names}"));
    assert_eq!(cells(&path.join("named")).len(), 2);
    let read = |folder: &str, name: &str| {
        let text = std::fs::read_to_string(path.join(folder).join("cells").join(name)).unwrap();
        let record: serde_json::Value = serde_json::from_str(&text).unwrap();
        record["solved"].clone()
    };
    for name in names.split(',').map(|name| format!("{name}.json")) {
        let [together, own] = ["all", "named"].map(|folder| read(folder, &name));
        for key in ["train", "test", "nnz", "passes", "measured"] {
            assert_eq!(together[key], own[key], "{name} {key}");
        }
    }
    let of = |method: &str, s: usize| read("all", &format!("digits-{method}-m3-s{s}-seed0.json"));
    for s in [5, 20, 60] {
        let rate = of("imp", s)["measured"]["learning-rate"].as_f64().unwrap() as f32;
        assert!([0.001, 0.01].contains(&rate), "{rate}");
        let published = of("imp-published", s);
        assert_eq!(published["nnz"], s);
        let last = published["curve"].as_array().unwrap().last().unwrap();
        assert!(last[0].as_f64().unwrap() <= number(&published, "passes"), "{published}");
        // Fewer weights take more levels.
        assert!(number(&of("imp", 5), "passes") >= number(&of("imp", s), "passes"));
    }
    // The last pruning is scored as it is: the levels above s alone have steps.
    assert!(number(&of("imp-published", 5), "passes") > 0.0);
    // Both halves of the trainings make the whole.
    for half in ["1/2", "2/2"] {
        ok(path, &format!("run spec.toml -o halves -q --cell {half}"));
    }
    assert_eq!(cells(&path.join("halves")).len(), 9);
    let refused = DIGITS.replace("classes = [0, 1]", "classes = [0, 1, 2]");
    std::fs::write(path.join("three.toml"), refused).unwrap();
    assert!(fails(path, "run three.toml -o three").contains("one output only"));
}

#[test]
fn cells_of_other_code_are_not_mixed() {
    let folder = with_spec("\"imp-published\", \"imp\", ", "");
    let path = folder.path();
    ok(path, "run spec.toml -o out -q");
    let results = path.join("out/results.jsonl");
    let text = std::fs::read_to_string(&results).unwrap();
    let code = text.split("\"code\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let empty = || {
        std::fs::remove_dir_all(path.join("out/cells")).unwrap();
        std::fs::create_dir(path.join("out/cells")).unwrap();
    };
    empty();
    // One line of another program.
    let other = text.replacen(&code, "0123456789abcdef", 1);
    std::fs::write(&results, &other).unwrap();
    let error = fails(path, "report out -o report");
    assert!(error.contains("several states of the code") && error.contains(&code), "{error}");
    assert!(fails(path, "run spec.toml -o out").contains("another state of the code"));
    // The line alone is removed, and run again.
    let done = json(path, "run spec.toml -o out --update");
    assert_eq!(number(&done, "ran"), 1.0, "{done}");
    ok(path, "report out -o report -q");
    empty();
    // All of them: a report is made, and nothing is added.
    std::fs::write(&results, text.replace(&code, "0123456789abcdef")).unwrap();
    let about = path.join("out/folder.json");
    let folder = std::fs::read_to_string(&about).unwrap();
    std::fs::write(&about, folder.replace(&code, "0123456789abcdef")).unwrap();
    ok(path, "report out -o report -q");
    assert!(fails(path, "run spec.toml -o out").contains("another state of the code"));
    let done = json(path, "run spec.toml -o out --update");
    assert_eq!(number(&done, "before"), 0.0, "{done}");
    assert!(std::fs::read_to_string(&results).unwrap().contains(&code));
}

#[test]
fn reports_say_what_the_whole_grid_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let cell = "planted-paper-m5-s5-seed0";
    ok(path, &format!("run figure-1-left --profile reduced --cell {cell} -o out -q"));
    ok(path, "report out -o report -q");
    let page = std::fs::read_to_string(path.join("report/report.md")).unwrap();
    let (_, table) = page.split_once("### Not run").unwrap();
    let row = |method: &str| table.lines().find(|line| line.starts_with(method)).unwrap();
    let own = row("| IHT as published | 281 | 1 to 1000 | 1 to 1000 | 0, 1, 2 | ");
    let hours: f64 = own.rsplit('|').nth(1).unwrap().trim().parse().unwrap();
    assert!((0.0..5.0).contains(&hours), "{own}");
    assert!(row("| Tamis, default recipe | 282 |").ends_with("| unknown |"), "{table}");
    // Other data have another grid.
    std::fs::write(path.join("spec.toml"), DIGITS).unwrap();
    ok(path, "run spec.toml -o own -q --cell digits-imp-m3-s5-seed0");
    ok(path, "report own -o page -q");
    let page = std::fs::read_to_string(path.join("page/report.md")).unwrap();
    assert!(!page.contains("Not run"), "{page}");
}

#[test]
fn methods_and_neurons_choose_cells() {
    let folder = with_spec("seeds = [0, 1]", "seeds = [0]");
    let path = folder.path();
    let names = |line: &str| planned(path, &format!("run spec.toml --dry-run {line}"));
    let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
    let small = set(&["planted-paper-m2-s2-seed0", "planted-paper-m2-s6-seed0"]);
    assert_eq!(names("--methods paper --most-neurons 2"), small);
    assert_eq!(names("--methods recipe,mean").len(), 8);
    assert_eq!(names("--most-neurons 2").len(), 12);
    // Of shares, too.
    let shares = [1, 2].map(|share| names(&format!("--methods paper,zero --cell {share}/2")));
    assert!(shares[0].is_disjoint(&shares[1]) && shares[0].len() + shares[1].len() == 8);
    let done = json(path, "run spec.toml -o out --methods zero,paper --most-neurons 2");
    assert_eq!(["cells", "ran"].map(|key| number(&done, key)), [4.0, 4.0]);
    assert_eq!(cells(&path.join("out")).len(), 4);
    // The rest is what a run of all cells has to do.
    let done = json(path, "run spec.toml -o out");
    assert_eq!(["cells", "before"].map(|key| number(&done, key)), [24.0, 4.0]);
    for (line, why) in [
        ("--methods lm", "some of paper, recipe, imp-published, imp, zero, mean"),
        ("--most-neurons 1", "no cell of the spec has so few neurons"),
        ("--most-neurons 1 --cell 1/8", "no cell of the spec has so few neurons"),
        ("--methods paper --cell planted-zero-m2-s2-seed0", "chosen already"),
    ] {
        let error = misuses(path, &format!("run spec.toml -o other {line}"));
        assert!(error.contains(why), "{error}");
        assert!(!path.join("other").exists());
    }
}
