//! Experiments: run, killed, gone on with, shared out, refused and reported.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::common::*;
use serde_json::{Value, json};

/// A small experiment; the text behind replaces its line of `epochs` and follows it.
pub(crate) const SPEC: &str = r#"name = "small"
title = "A small grid"
source = "nowhere"
[[part]]
name = "planted"
title = "Planted"
m = [2, 3]
s = [2, 6]
epochs = 4
batch = 0
methods = ["paper", "recipe", "imp-published", "imp", "zero", "mean"]
seeds = [0, 1]
metric = "psnr"
on = "train"
range = [-20, 50]
passes = 300
data = { kind = "planted", samples = 500, inputs = 8, outputs = 1, test = 40 }
imp = { epochs = 3, batch = 100 }
"#;

/// A folder with [`SPEC`] in it, `from` replaced by `to`.
pub(crate) fn with_spec(from: &str, to: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    assert!(SPEC.contains(from), "{from}");
    std::fs::write(folder.path().join("spec.toml"), SPEC.replace(from, to)).unwrap();
    folder
}

pub(crate) fn cells(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.join("cells")).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect()
}

/// The merged results without what differs from run to run, and with threads.
fn results(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("results.jsonl")).unwrap();
    let lines = text.lines().map(|line| {
        let mut value: Value = serde_json::from_str(line).unwrap();
        assert!(value.as_object_mut().unwrap().remove("threads").is_some());
        if let Some(solved) = value["solved"].as_object_mut() {
            for key in ["seconds", "heap_peak_bytes", "rss_peak_bytes", "workspace_bytes"] {
                assert!(solved.remove(key).is_some(), "{key}");
            }
        }
        value
    });
    lines.collect()
}

/// Checks that two folders have the same results.
fn same(a: &Path, b: &Path) {
    let (a, b) = (results(a), results(b));
    let ids = |all: &[Value]| all.iter().map(|record| record["id"].to_string()).collect::<Vec<_>>();
    assert_eq!(ids(&a), ids(&b));
    for (a, b) in a.iter().zip(&b) {
        assert!(a == b, "{} differs", a["id"]);
    }
}

fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} took too long");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn start(folder: &Path, line: &str) -> Child {
    let mut command = command(folder, &line.split_whitespace().collect::<Vec<_>>());
    command.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_killed_run_resumes_to_the_same_results() {
    let folder = with_spec("samples = 500", "samples = 2000");
    let path = folder.path();
    let whole = json(path, "run spec.toml -o whole --jobs 2");
    assert_eq!(
        (whole["cells"].as_u64(), whole["done"].as_u64(), whole["before"].as_u64()),
        (Some(48), Some(48), Some(0))
    );
    let out = path.join("killed");
    for kept in [1, 9, 23] {
        let mut run = start(path, "run spec.toml -o killed");
        wait("the first cells", || cells(&out).len() >= kept);
        run.kill().unwrap(); // SIGKILL
        run.wait().unwrap();
        // What is there is whole.
        for cell in cells(&out) {
            let value: Value =
                serde_json::from_str(&std::fs::read_to_string(&cell).unwrap()).unwrap();
            assert_eq!(value["id"].as_str(), cell.file_stem().and_then(|stem| stem.to_str()));
        }
    }
    let kept = cells(&out).len() as u64;
    assert!((23..48).contains(&kept), "{kept}: the kills were too late to tell anything");
    let rest = json(path, "run spec.toml -o killed");
    // The cell that was in flight may have ended by itself.
    let before = rest["before"].as_u64().unwrap();
    assert!(
        (kept..=kept + 1).contains(&before) && before + rest["ran"].as_u64().unwrap() == 48,
        "{rest}"
    );
    same(&out, &path.join("whole"));
    assert_eq!(json(path, "run spec.toml -o killed")["ran"], json!(0));
    // Merged results without cells can be gone on with, and reported.
    std::fs::remove_dir_all(out.join("cells")).unwrap();
    assert_eq!(json(path, "report killed -o report")["cells"], json!(48));
    assert_eq!(json(path, "run killed/spec.toml -o killed")["before"], json!(48));
}

#[test]
fn concurrent_shares_may_create_the_same_new_folder() {
    let folder = with_spec("seeds = [0, 1]", "seeds = [0]");
    let path = folder.path();
    for round in 0..4 {
        let start = |share: usize| {
            let (out, cell) = (format!("out{round}"), format!("{share}/6"));
            let mut share =
                command(path, &["run", "spec.toml", "-o", &out, "--cell", &cell, "--quiet"]);
            share.stderr(std::process::Stdio::piped()).spawn().unwrap()
        };
        let shares: Vec<_> = (1..=6).map(start).collect();
        for share in shares {
            let output = share.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        assert_eq!(results(&path.join(format!("out{round}"))).len(), 24);
    }
}

/// The cells that a run would do, all of those that are meant.
pub(crate) fn planned(folder: &Path, line: &str) -> BTreeSet<String> {
    let plan = json(folder, line);
    let ids = plan["missing"].as_array().unwrap().iter();
    let ids: Vec<_> = ids.map(|id| id.as_str().unwrap().to_owned()).collect();
    let set: BTreeSet<_> = ids.iter().cloned().collect();
    assert_eq!((ids.len(), plan["cells"].as_u64()), (set.len(), Some(ids.len() as u64)));
    set
}

#[test]
fn shares_are_all_cells_and_none_twice() {
    let folder = with_spec("seeds = [0, 1]", "seeds = [0]");
    let path = folder.path();
    let all = planned(path, "run spec.toml --dry-run");
    assert_eq!(all.len(), 24);
    assert!(!path.join("out").exists());
    let mut seen = BTreeSet::new();
    for share in 1..=5 {
        let own = planned(path, &format!("run spec.toml --dry-run --cell {share}/5"));
        assert!((4..=5).contains(&own.len()) && own.is_disjoint(&seen), "{own:?}");
        let methods: BTreeSet<&str> = own.iter().filter_map(|id| id.split('-').nth(1)).collect();
        assert!(methods.len() >= 3, "a share has cells of several methods: {own:?}");
        json(path, &format!("run spec.toml -o out --cell {share}/5"));
        seen.extend(own);
    }
    assert_eq!(seen, all);
    json(path, "run spec.toml -o whole");
    same(&path.join("out"), &path.join("whole"));
    // By name, in the process itself; on any number of threads the same.
    let one = json(path, "run spec.toml -o one --cell planted-recipe-m3-s6-seed0 --threads 1");
    let whole =
        results(&path.join("whole")).into_iter().find(|record| record["id"] == one["id"]).unwrap();
    assert_eq!(
        (&one["solved"]["train"], &one["solved"]["test"]),
        (&whole["solved"]["train"], &whole["solved"]["test"])
    );
    assert_eq!(cells(&path.join("one")).len(), 1);
}

#[test]
fn every_figure_runs_without_files_onto_one_report() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // Those with tests of their own, which run and report them, are left out.
    let has_own = |name: &str| name.starts_with("theory-") || name == "sketch-masks";
    let names = tamis_host::lab::experiment::figures::names();
    let names: Vec<&str> = names.filter(|name| !has_own(name)).collect();
    let mut all = 0;
    for name in &names {
        let done = json(path, &format!("run {name} --profile smoke -o {name} --jobs 2"));
        assert!(number(&done, "done") >= 2.0 && number(&done, "crashed") == 0.0, "{done}");
        all += done["cells"].as_u64().unwrap();
        for record in
            results(&path.join(name)).iter().filter(|record| record["status"] == "skipped")
        {
            let reason = record["reason"].as_str().unwrap();
            assert!(reason.contains("gives 0"), "{record}");
        }
    }
    let report = json(path, &format!("report {} -o report", names.join(" ")));
    assert_eq!(report["cells"].as_u64(), Some(all));
    let read = |name: &str| std::fs::read_to_string(path.join("report").join(name)).unwrap();
    let (html, csv, md) = (read("index.html"), read("results.csv"), read("report.md"));
    assert_eq!(csv.lines().count() as u64, all + 1);
    let columns = csv.lines().next().unwrap().split(',').count();
    let own = |line: &str| {
        line.split('"').step_by(2).map(|part| part.matches(',').count()).sum::<usize>()
    };
    assert!(csv.lines().all(|line| own(line) + 1 == columns));
    assert!(
        !html.contains("<script")
            && !html.contains("<link")
            && html.matches("src=").count()
                == html.matches("src=\"data:image/png,%89%50%4e%47").count()
            && !html.contains("url(")
    );
    assert!(html.contains("prefers-color-scheme:dark") && html.contains("name=\"viewport\""));
    // Well-formed but for its first line and the tags that HTML leaves open.
    let xml = html.replace("<!DOCTYPE html>\n", "").replace("<meta charset=\"utf-8\">", "");
    let xml =
        xml.replace("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">", "");
    let tree = roxmltree::Document::parse(&xml).unwrap();
    let hovers = tree
        .descendants()
        .filter(|n| n.has_tag_name(("http://www.w3.org/2000/svg", "title")))
        .count();
    assert!(hovers > 100, "{hovers}");
    for text in ["IHT as published", "IMP trained properly", "zero predictor", "authors' code"] {
        assert!(md.contains(text) || html.contains(text), "{text}");
    }
    for table in [
        "### Data passes",
        "### Tamis, default recipe beside IHT as published",
        "| the recipe is | cells |",
    ] {
        assert!(md.matches(table).count() >= 8, "{table}");
    }
    // Who wins stands before everything else, and pictures are shown beside what networks make of
    // them.
    assert!(
        md.starts_with(
            "# Who wins: Tamis, default recipe\n\nTamis, default recipe is better than "
        ),
        "{md}"
    );
    assert!(md.contains("# Who wins: IHT as published\n\nIHT as published is better than IMP "));
    assert!(html.find("class=\"lead\"").unwrap() < html.find("<section").unwrap());
    assert!(html.matches("<figure class=\"made\"").count() >= 6);
    let rows: Vec<&str> = md.lines().filter(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 60);
    let maps = std::fs::read_dir(path.join("report")).unwrap().flatten();
    assert!(maps.filter(|file| file.path().extension().is_some_and(|e| e == "svg")).count() > 50);
}

#[test]
fn summary_has_the_columns_requested_by_spec() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    ok(path, "run recovery --profile smoke -o out --jobs 2 -q");
    ok(path, "report out -o recovery.md -q");
    let page = std::fs::read_to_string(path.join("recovery.md")).unwrap();
    assert!(
        page.starts_with("# Recovery of planted networks\n")
            && page.contains("Made by `tamis run recovery --profile smoke`")
    );
    let line = |start: &str| {
        page.lines()
            .find(|line| line.starts_with(start))
            .unwrap_or_else(|| panic!("{start}: {page}"))
    };
    // One weight is found by both methods, and no other.
    assert!(
        line("| m | s | method | exact | one to one | PSNR, dB, median |")
            .ends_with("| seconds, median | passes, median |")
    );
    assert!(
        line("| 1 | 1 | Tamis, default recipe |")
            .starts_with("| 1 | 1 | Tamis, default recipe | 1 of 1 | 1 of 1 | ")
    );
    assert!(line("| 2 | 4 | no-kicks |").contains("| 100.00 % |"));
    // Over two axes, and beside the noise.
    assert_eq!(
        line("| fraction recovered: s down, n across |"),
        "| fraction recovered: s down, n across | 20 | 100 |"
    );
    assert!(line("| 4 | ").matches(" of 1").count() == 2);
    assert!(page.contains("| m | s | loss over noise, median |"), "{page}");
    let error = fails(path, "report out/none -o x.md");
    assert!(error.contains("there are no results"), "{error}");
    let spec = with_spec("seeds = [0, 1]", "seeds = [0]");
    ok(spec.path(), "run spec.toml -o out -q");
    assert!(fails(spec.path(), "report out -o x.md").contains("no summary table"));
}

#[test]
fn recorded_measurements_follow_from_the_data() {
    let folder = with_spec("seeds = [0, 1]", "seeds = [0]");
    json(folder.path(), "run spec.toml -o out");
    for record in results(&folder.path().join("out")) {
        let solved = &record["solved"];
        let trains = !["zero", "mean"].contains(&record["method"].as_str().unwrap());
        let loss = number(&solved["train"], "loss");
        assert!(loss >= 0.0 && number(&solved["test"], "loss") >= 0.0, "{record}");
        assert_eq!(number(solved, "data_bytes"), 500.0 * 9.0 * 4.0);
        assert_eq!(solved["curve"].as_array().unwrap().len() > 1, trains, "{record}");
        assert!(!trains || number(solved, "nnz") <= number(&record, "s"));
        assert_eq!(record["version"], env!("CARGO_PKG_VERSION"));
    }
    let text = std::fs::read_to_string(folder.path().join("out/results.jsonl")).unwrap();
    for line in text.lines().filter(|line| !line.contains("\"zero\"") && !line.contains("\"mean\""))
    {
        let record: Value = serde_json::from_str(line).unwrap();
        let (peak, rss) = (
            number(&record["solved"], "heap_peak_bytes"),
            number(&record["solved"], "rss_peak_bytes"),
        );
        // The state at least, and less than the whole process.
        assert!(number(&record["solved"], "state_bytes") < peak && peak < rss, "{record}");
    }
    // The zero predictor by hand.
    let environment: Value = serde_json::from_str(
        &std::fs::read_to_string(folder.path().join("out/folder.json")).unwrap(),
    )
    .unwrap();
    assert!(
        environment["environment"]["toolchain"].as_str().unwrap().starts_with("rustc "),
        "{environment}"
    );
}

/// A spec whose first cell never ends.
fn endless() -> tempfile::TempDir {
    let folder = with_spec("epochs = 4\n", "epochs = 90000000\n");
    let text = std::fs::read_to_string(folder.path().join("spec.toml")).unwrap();
    let text = text
        .replace("m = [2, 3]", "m = [3]")
        .replace("s = [2, 6]", "s = [6]")
        .replace("seeds = [0, 1]", "seeds = [0]");
    let text = text.replace("\"paper\", \"recipe\", \"imp-published\", \"imp\",", "\"paper\",");
    // Enough rows for a step to take a while.
    std::fs::write(
        folder.path().join("spec.toml"),
        text.replace("samples = 500", "samples = 20000"),
    )
    .unwrap();
    folder
}

#[test]
fn timed_out_cell_affects_only_itself_and_retries() {
    let folder = endless();
    let done = json(folder.path(), "run spec.toml -o out --time-limit 0.4");
    let states =
        |done: &Value| [number(done, "timeout"), number(done, "done"), number(done, "ran")];
    assert_eq!(states(&done), [1.0, 2.0, 3.0], "{done}");
    let again = json(folder.path(), "run spec.toml -o out --time-limit 0.4");
    assert_eq!(states(&again), [1.0, 2.0, 0.0], "{again}");
    let retried = json(folder.path(), "run spec.toml -o out --time-limit 0.4 --retry");
    assert_eq!(states(&retried), [1.0, 2.0, 1.0], "{retried}");
    ok(folder.path(), "report out -o report -q");
    let report = std::fs::read_to_string(folder.path().join("report/report.md")).unwrap();
    assert!(
        report.contains("| timeout |") && report.contains("timeout: longer than 0.4 s"),
        "{report}"
    );
}

/// The processes of cells that `parent` has started.
#[cfg(target_os = "linux")]
fn children(parent: u32) -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let of = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // After the name in brackets: state, then the parent.
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    let cell = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|&byte| byte == 0).any(|word| word == b"--cell")
    };
    pids.filter(|pid| of(pid) == Some(parent) && cell(pid)).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn killed_cell_is_recorded_and_run_kills_cells() {
    let folder = endless();
    let mut run = start(folder.path(), "run spec.toml -o out");
    let mut found = Vec::new();
    wait("the first cell", || {
        found = children(run.id());
        !found.is_empty()
    });
    let killed =
        std::process::Command::new("kill").args(["-9", &found[0].to_string()]).status().unwrap();
    assert!(killed.success() && run.wait().unwrap().success());
    let records = results(&folder.path().join("out"));
    let crashed: Vec<&Value> =
        records.iter().filter(|record| record["status"] == "crashed").collect();
    assert_eq!((records.len(), crashed.len()), (3, 1));
    assert!(
        crashed[0]["reason"].as_str().unwrap().contains("perhaps for want of memory"),
        "{}",
        crashed[0]
    );

    let mut run = start(folder.path(), "run spec.toml -o out --retry");
    wait("the cell", || {
        found = children(run.id());
        !found.is_empty()
    });
    run.kill().unwrap();
    run.wait().unwrap();
    wait("the end of the cell", || !Path::new(&format!("/proc/{}/exe", found[0])).exists());
}

#[test]
fn changed_spec_reuses_unaffected_cells() {
    let folder = with_spec("epochs = 4", "epochs = 4");
    let path = folder.path();
    ok(path, "run spec.toml -o out -q");
    let spec = std::fs::read_to_string(path.join("spec.toml")).unwrap();
    let before = std::fs::read_to_string(path.join("out/results.jsonl")).unwrap();
    // Another setting of imp alone, and a seed more.
    let changed = spec
        .replace("imp = { epochs = 3", "imp = { epochs = 4")
        .replace("seeds = [0, 1]", "seeds = [0, 1, 2]");
    std::fs::write(path.join("spec.toml"), &changed).unwrap();
    let error = fails(path, "run spec.toml -o out");
    assert!(error.contains("another spec") && error.contains("--update"), "{error}");
    let lines: Vec<&str> = before.lines().collect();
    let imp = lines.iter().filter(|line| line.contains("\"method\":\"imp\"")).count();
    let done = json(path, "run spec.toml -o out --update");
    assert_eq!(done["before"], json!(lines.len() - imp), "{done}");
    let after = std::fs::read_to_string(path.join("out/results.jsonl")).unwrap();
    assert!(
        lines
            .iter()
            .filter(|line| !line.contains("\"method\":\"imp\""))
            .all(|line| after.contains(line))
    );
    assert_eq!(after.lines().count(), 3 * lines.len() / 2);
    ok(path, "report out -o report -q");
    // An update that was killed before it wrote the spec is mended by the next run.
    std::fs::write(path.join("out/spec.toml"), &spec).unwrap();
    assert_eq!(json(path, "run spec.toml -o out --update")["ran"], json!(0));
    ok(path, "report out -o report -q");
    // Another experiment is refused.
    std::fs::write(path.join("other.toml"), changed.replacen("name = \"", "name = \"other-", 1))
        .unwrap();
    assert!(fails(path, "run other.toml -o out --update").contains("another spec"));
}

#[test]
#[ignore = "needs MNIST and CIFAR-10 in TAMIS_DATA"]
fn mnist_and_images_match_those_of_the_paper() {
    let data =
        std::env::var_os("TAMIS_DATA").expect("TAMIS_DATA names the folder of mnist/ and cifar/");
    let data = PathBuf::from(data);
    let folder = tempfile::tempdir().unwrap();
    let cell = |figure: &str, id: &str| {
        let line = format!(
            "run {figure} --profile paper -o {figure} --data-dir {} --cell {id}",
            data.display()
        );
        json(folder.path(), &line)
    };
    // 18.9 dB and 12.3 dB were measured of the authors' code: the picture is theirs.
    let zero = cell("figure-4", "one-zero-m0-s0-seed0");
    assert!((number(&zero["solved"]["train"], "psnr_db") - 12.3).abs() < 0.05, "{zero}");
    let binary = cell("runtimes", "binary-paper-m1-s1-seed0");
    assert!((number(&binary["solved"]["test"], "accuracy") - 0.9885).abs() < 1e-9, "{binary}");
    let colours = cell("images", "cifar-paper-m5-s50-picture-0-seed0");
    assert_eq!(number(&colours["solved"], "data_bytes"), 3072.0 * 1501.0 * 4.0);
}
