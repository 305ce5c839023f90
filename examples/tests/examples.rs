//! Runs every host example and looks at its last line, so that none of them rots.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/firmware/deploy");

const NONE: &[&str] = &[];

/// An example's program: `cargo test` builds it beside the tests.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.ancestors().nth(2).unwrap().join("examples");
    folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

/// What an example prints.
fn output<A: AsRef<OsStr>>(name: &str, arguments: &[A]) -> String {
    let program = program(name);
    let run = Command::new(&program).args(arguments).output().unwrap_or_else(|error| {
        panic!(
            "{}: {error}; cargo build --examples --package tamis-examples makes it",
            program.display()
        )
    });
    let (out, err) = (String::from_utf8(run.stdout).unwrap(), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && err.is_empty(), "{name}: {}\n{out}\n{err}", run.status);
    out
}

/// The numbers of a line, in order.
fn numbers(line: &str) -> Vec<f64> {
    line.split(|c: char| !c.is_ascii_digit() && c != '.')
        .filter_map(|word| word.parse().ok())
        .collect()
}

fn last_numbers(out: &str) -> Vec<f64> {
    numbers(out.lines().last().unwrap())
}

#[test]
fn the_planted_network_is_recovered() {
    let out = output("1_recover_planted", NONE);
    let [found, of, psnr] = last_numbers(&out)[..] else { panic!("{out}") };
    assert!(found == 10.0 && of == 10.0 && psnr > 120.0, "{out}");
}

#[test]
fn the_table_is_learnt_down_to_its_noise() {
    let out = output("2_train_on_csv", NONE);
    let [rows, error, noise] = last_numbers(&out)[..] else { panic!("{out}") };
    assert!(rows == 400.0 && error < 1.1 * noise, "{out}");
}

#[test]
fn the_byte_budget_is_exact() {
    let out = output("3_fit_a_byte_budget", NONE);
    let [right, of] = last_numbers(&out)[..] else { panic!("{out}") };
    assert!(right >= 0.98 * of && of == 1000.0, "{out}");
    let line = |start: &str| {
        numbers(out.lines().find(|line| line.trim_start().starts_with(start)).unwrap())
    };
    let fits = line("4096 bytes of RAM");
    assert!(fits[2] <= fits[0], "{out}");
    assert_eq!(line("trained")[..2], fits[1..], "{out}");
    let [operator, needed, got] = line("one byte less")[..] else { panic!("{out}") };
    assert_eq!((operator + needed, needed - got), (fits[2], 4.0), "{out}");
}

/// What is committed is what the example makes, and what `cargo ci` holds the firmware's output to.
#[test]
fn the_firmware_holds_what_the_host_makes() {
    let folder = tempfile::tempdir().unwrap();
    let out = output("4_deploy", &[folder.path()]);
    assert_eq!(last_numbers(&out)[..2], [336.0, 10.0], "{out}");
    for name in ["digits.tamis", "pictures.bin", "expected.txt"] {
        let committed = std::fs::read(Path::new(DEPLOY).join("model").join(name)).unwrap();
        let made = std::fs::read(folder.path().join(name)).unwrap();
        assert!(made == committed, "{name}: run example 4_deploy again");
    }
}

/// What is committed is what the example makes, and it tells the windows of the machine apart.
#[test]
fn committed_monitor_network_equals_host_output() {
    let folder = tempfile::tempdir().unwrap();
    let out = output("5_firmware", &[folder.path()]);
    let [right, of] = last_numbers(&out)[..] else { panic!("{out}") };
    assert!(of == 3000.0 && right >= 0.995 * of, "{out}");
    let committed = concat!(env!("CARGO_MANIFEST_DIR"), "/firmware/monitor/model/vibration.tamis");
    let made = std::fs::read(folder.path().join("vibration.tamis")).unwrap();
    assert!(
        made == std::fs::read(committed).unwrap(),
        "vibration.tamis: run example 5_firmware again"
    );
}

#[test]
fn every_example_is_in_the_table_and_short() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = std::fs::read_to_string(here.join("src/lib.rs")).unwrap();
    let mut count = 0;
    for entry in std::fs::read_dir(here).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(library.contains(&format!("| `{name}` |")), "{name} is not in the table");
        assert!(text.contains(&format!("--example {name}")), "{name} does not say how to run it");
        assert!(text.lines().count() < 100, "{name} is too long");
        count += 1;
    }
    assert_eq!(count, 5);
}
