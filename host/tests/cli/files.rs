//! Files that are no plain files, of another kind, linked elsewhere, made to fill the memory, or
//! left by a killed run.

use std::fs;
use std::path::Path;
#[cfg(unix)]
use std::process::{Output, Stdio};
#[cfg(unix)]
use std::time::{Duration, Instant};

use crate::common::*;

/// Runs a line that must end by itself; nobody reads or writes a pipe that it meets.
#[cfg(unix)]
fn ends(folder: &Path, line: &str) -> Output {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut command = command(folder, &words);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("{line}: hangs");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

#[cfg(unix)]
fn pipe(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
#[cfg(unix)]
fn a_pipe_is_refused_and_never_waited_for() {
    let folder = prepared();
    pipe(&folder.path().join("pipe"));
    for line in [
        format!("{TRAIN} -o pipe"),
        format!("{TRAIN} -o n.tamis --log pipe"),
        format!("{TRAIN} -o n.tamis --picture pipe"),
        format!("{TRAIN} -o n.tamis --checkpoint pipe"),
        TRAIN.replace("p/X.npy", "pipe") + " -o n.tamis",
        "predict m.tamis --data p/X.npy -o pipe".into(),
        "predict pipe --data p/X.npy -o o.npy".into(),
        "quantize m.tamis --data p/X.npy -o pipe".into(),
        "export m.tamis --format rust -o pipe".into(),
        "generate digits --samples 5 -o pipe".into(),
        "import pipe -o n.tamis".into(),
        "run pipe -o results".into(),
        "inspect pipe".into(),
    ] {
        let output = ends(folder.path(), &line);
        let error = refusal(&line, &output);
        assert!(error.contains("pipe"), "{line}: {error}");
    }
    assert!(!folder.path().join("n.tamis").exists());
}

#[test]
#[cfg(unix)]
fn report_on_folder_with_pipes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), "run figure-3-right --profile smoke -o smoke -q");
    let cell = fs::read_dir(folder.path().join("smoke/cells")).unwrap().next().unwrap().unwrap();
    let cell = format!("cells/{}", cell.file_name().display());
    for name in ["folder.json", "spec.toml", "results.jsonl", cell.as_str()] {
        let path = folder.path().join("smoke").join(name);
        let whole = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        pipe(&path);
        let output = ends(folder.path(), "report smoke -o report");
        let error = refusal(name, &output);
        assert!(error.contains(name) && error.contains("got: a pipe or device"), "{name}: {error}");
        fs::remove_file(&path).unwrap();
        fs::write(path, whole).unwrap();
    }
    ok(folder.path(), "report smoke -o report");
}

#[test]
#[cfg(target_os = "linux")]
fn standard_output_takes_an_output() {
    let folder = prepared();
    ok(folder.path(), "predict m.tamis --data p/X.npy -o o.npy -q");
    let output = ends(folder.path(), "predict m.tamis --data p/X.npy -o /dev/stdout -q");
    assert!(output.status.success());
    assert!(output.stdout == fs::read(folder.path().join("o.npy")).unwrap());
    // What is said goes beside it, into a pipe as into a file, which keeps what it held.
    let output = ends(folder.path(), "predict m.tamis --data p/X.npy -o /dev/stdout");
    assert!(output.stdout == fs::read(folder.path().join("o.npy")).unwrap());
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("Saved /dev/stdout"));
    fs::write(folder.path().join("log"), "before\n").unwrap();
    let append = fs::File::options().append(true).open(folder.path().join("log")).unwrap();
    let words = ["predict", "m.tamis", "--data", "p/X.npy", "-o", "/dev/stdout"];
    let status = command(folder.path(), &words).stdout(append).stderr(Stdio::null()).status();
    assert!(status.unwrap().success());
    let log = fs::read(folder.path().join("log")).unwrap();
    assert!(log.strip_prefix(b"before\n").unwrap() == output.stdout);
    // What is only planned is no output.
    let plan = ok(folder.path(), &format!("{TRAIN} -o /dev/stdout --plan"));
    assert!(plan.contains("state"), "{plan}");
    // A file that the shell has opened is replaced like any other where a folder is named.
    let table = fs::File::create(folder.path().join("table.csv")).unwrap();
    let words = ["generate", "table", "--samples", "5", "-o", "."];
    assert!(command(folder.path(), &words).stdout(table).status().unwrap().success());
    let table = fs::read_to_string(folder.path().join("table.csv")).unwrap();
    assert_eq!(table.lines().count(), 6);
    // A reader that has gone away is an error, and none that is waited for.
    let line = format!(
        "{} predict m.tamis --data p/X.npy -o /dev/stdout -q | true",
        env!("CARGO_BIN_EXE_tamis")
    );
    let mut shell = std::process::Command::new("timeout");
    let status = shell.current_dir(folder.path()).args(["60", "sh", "-c", &line]).status().unwrap();
    assert!(status.success());
}

#[test]
#[cfg(target_os = "linux")]
fn an_output_that_nobody_reads_can_be_interrupted() {
    let folder = prepared();
    let rows = "0,0,0,0,0,0,0,0,0,0,0,1\n".repeat(40_000);
    fs::write(folder.path().join("many.csv"), rows).unwrap();
    let words = ["predict", "m.tamis", "--data", "many.csv", "-o", "/dev/stdout", "-q"];
    // 160 kB are more than a pipe holds.
    let mut child = command(folder.path(), &words).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(60), "ignores Ctrl-C");
        std::process::Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap();
        std::thread::sleep(Duration::from_millis(300));
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn files_that_nobody_named_are_only_replaced_by_their_kind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for (line, name) in [
        ("generate digits --samples 5", "y.npy"),
        ("generate planted --samples 5 --inputs 4 --hidden 2 --nnz 3", "weights.npz"),
        ("generate table --samples 5", "table.csv"),
    ] {
        fs::write(path.join(name), "age,mine\n1,2\n").unwrap();
        let error = fails(path, &format!("{line} -o ."));
        assert!(error.contains("another kind") && error.contains(name), "{error}");
        fs::remove_file(path.join(name)).unwrap();
        ok(path, &format!("{line} -o ."));
        ok(path, &format!("{line} --seed 2 -o ."));
    }
    ok(path, "run figure-3-right --profile smoke -o smoke -q");
    fs::create_dir(path.join("report")).unwrap();
    ok(path, "report smoke -o report");
    let picture = fs::read_dir(path.join("report")).unwrap().flatten().map(|file| file.file_name());
    let picture =
        picture.map(|name| name.into_string().unwrap()).find(|name| name.ends_with("svg"));
    for (name, content) in [
        ("index.html", &b"<title>my site</title>"[..]),
        ("report.md", b"in Latin-1: \xfc"),
        ("results.csv", b"age,mine\n"),
        (&picture.unwrap(), b"mine"),
    ] {
        let place = path.join("report").join(name);
        fs::write(&place, content).unwrap();
        let error = fails(path, "report smoke -o report");
        assert!(error.contains("another kind") && error.contains(name), "{error}");
        assert_eq!(fs::read(&place).unwrap(), content);
        fs::remove_file(place).unwrap();
        ok(path, "report smoke -o report");
    }
    ok(path, "report smoke -o report");
}

#[test]
fn two_outputs_in_one_place_are_refused() {
    let folder = prepared();
    for (one, other) in [("same", "./same"), ("p/../same", "same")] {
        let error = fails(folder.path(), &format!("{TRAIN} -o {one} --log {other}"));
        assert!(error.contains("two outputs have one name"), "{error}");
    }
}

#[test]
fn a_file_of_another_kind_is_never_overwritten() {
    let folder = prepared();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("thesis.csv"), "a,b\n1,2\n").unwrap();
    fs::write(path("notes.txt"), "mine").unwrap();
    fs::write(path("rows.jsonl"), "{\"user\":1}\n").unwrap();
    for line in [
        format!("{TRAIN} -o notes.txt"),
        format!("{TRAIN} --hidden 3,3 -o notes.txt").replacen("--hidden 3 ", "", 1),
        format!("{TRAIN} --recipe imp -o notes.txt"),
        format!("{TRAIN} -o n.tamis --picture thesis.csv"),
        format!("{TRAIN} -o n.tamis --log rows.jsonl"),
        "finetune m.tamis --data p/X.npy --labels p/y.npy -o notes.txt".into(),
        "quantize m.tamis --data p/X.npy -o notes.txt".into(),
        "import m.onnx -o notes.txt".into(),
        "compare m.tamis --data p/X.npy --dump notes.txt".into(),
    ] {
        let error = fails(folder.path(), &line);
        assert!(error.contains("a file of another kind would be overwritten"), "{line}: {error}");
        assert!(error.contains("choose another name, or remove the file"), "{line}: {error}");
    }
    // What is of the same kind is replaced, by its content or by its name; and what is empty.
    fs::copy(path("m.tamis"), path("model")).unwrap();
    fs::write(path("old.tamis"), "of another version").unwrap();
    fs::write(path("empty"), "").unwrap();
    for output in ["model", "old.tamis", "empty"] {
        ok(folder.path(), &format!("{TRAIN} -q -o {output}"));
        assert!(fs::read(path(output)).unwrap() == fs::read(path("m.tamis")).unwrap(), "{output}");
    }
    for _ in 0..2 {
        ok(folder.path(), &format!("{TRAIN} -q -o n.tamis --log log --picture picture"));
    }
}

#[test]
fn no_verb_overwrites_the_model_that_it_reads() {
    let folder = prepared();
    for line in [
        "finetune m.tamis --data p/X.npy --labels p/y.npy -o m.tamis",
        "quantize m.tamis --data p/X.npy -o m.tamis",
        "export m.tamis --format tamis -o m.tamis",
        "import m.tamis -o m.tamis",
    ] {
        let error = fails(folder.path(), line);
        assert!(error.contains("the output is also an input"), "{line}: {error}");
    }
}

#[test]
fn leftovers_of_killed_run_are_swept_when_complete() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), "run figure-3-right --profile smoke -o smoke -q");
    let left = ["smoke/.tamis-a1b2.partial", "smoke/cells/.tamis-c3d4.partial"];
    for _ in 0..2 {
        left.iter().for_each(|name| fs::write(folder.path().join(name), "half").unwrap());
        ok(folder.path(), "run figure-3-right --profile smoke -o smoke -q");
        assert!(left.iter().all(|name| !folder.path().join(name).exists()));
    }
}

#[test]
fn help_on_help_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    for line in ["help --help", "help -h"] {
        assert!(ok(folder.path(), line).contains("Usage: tamis"), "{line}");
    }
    assert!(ok(folder.path(), "help train --help").contains("Usage: tamis train"));
}
