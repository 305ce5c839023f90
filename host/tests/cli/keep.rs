//! `train` with checkpoints and with rows of the validation split.

use crate::common::*;
use serde_json::{Value, json};
use tamis_host::data::{self, Array, npy};

/// The prepared problem, whose labels have noise, so that a search goes on until it gives up.
fn noisy() -> tempfile::TempDir {
    let folder = prepared();
    let mut y = data::load_labels(folder.path().join("p/y.npy")).unwrap();
    let mut rng = tamis::base::rng::Rng::new(1, 0);
    y.iter_mut().for_each(|y| *y += 0.3 * rng.normal());
    let mut bytes = Vec::new();
    npy::write(&mut bytes, &Array::new(&[y.len()], &y).unwrap()).unwrap();
    std::fs::write(folder.path().join("p/noisy.npy"), bytes).unwrap();
    folder
}

/// Trains on the noisy labels, but for the output.
const NOISY: &str =
    "train --data p/X.npy --labels p/noisy.npy --task regression --hidden 3 --nnz 6 --threads 1";

/// What does not depend on when and where a run was.
fn essence(report: &Value) -> Vec<Value> {
    let keys = "nnz live loss steps passes exact moves tried kicks merges flips limit validation_loss early stopped";
    keys.split(' ').map(|key| report[key].clone()).collect()
}

#[test]
fn a_search_resumes_from_its_checkpoint() {
    let folder = noisy();
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let whole = json(folder.path(), &format!("{NOISY} -o whole.tamis"));
    assert_eq!(whole["resumed_steps"], json!(0));
    let (mut parts, mut steps) = (0, Vec::new());
    let last = loop {
        parts += 1;
        let passes = number(&whole, "passes") * f64::from(parts) / 4.0;
        let line = format!("{NOISY} --checkpoint k --resume --passes-limit {passes} -o n.tamis");
        let report = json(folder.path(), &line);
        steps.push(number(&report, "resumed_steps"));
        if report["limit"] == Value::Null {
            break report;
        }
        assert_eq!(report["limit"], json!("passes"));
    };
    assert!(parts > 2 && steps[0] == 0.0 && steps.is_sorted() && steps[1] > 0.0, "{steps:?}");
    assert_eq!((essence(&last), read("n.tamis")), (essence(&whole), read("whole.tamis")));
    // What ended by itself gives the same again, and says that it went on.
    let said = ok(folder.path(), &format!("{NOISY} --checkpoint k --resume -o again.tamis"));
    assert!(
        said.contains("resumed from step") && read("again.tamis") == read("whole.tamis"),
        "{said}"
    );
    let said = ok(folder.path(), &format!("{NOISY} --checkpoint other --resume -o n.tamis"));
    assert!(said.contains("There is no other yet: the run starts anew"), "{said}");
    assert_eq!(read("n.tamis"), read("whole.tamis"));
}

#[test]
fn a_checkpoint_is_lost_to_no_mistake() {
    let folder = noisy();
    ok(folder.path(), &format!("{NOISY} --passes-limit 300 --checkpoint k -o n.tamis"));
    let train = |flags: &str| fails(folder.path(), &format!("{NOISY} {flags} -o n.tamis"));
    let error = train("--checkpoint k");
    assert!(
        error.contains("there is a checkpoint already") && error.contains("--resume"),
        "{error}"
    );
    let error = train("--checkpoint k --resume --seed 1");
    assert!(error.contains("--seed: 0, as the run began") && error.contains("got: 1"), "{error}");
    let error = train("--checkpoint k --resume --validation 0.1");
    assert!(error.contains("rows of the validation split") && error.contains("got: 40"), "{error}");
    assert!(
        train("--checkpoint k --resume --signs balanced")
            .contains("--signs: free, as the run began")
    );
    let other = NOISY.replace("p/noisy.npy", "p/y.npy --signs free");
    let error = fails(folder.path(), &format!("{other} --checkpoint k --resume -o n.tamis"));
    assert!(error.contains("checksum of the labels"), "{error}");
    assert!(train("--checkpoint n.tamis").contains("two outputs have one name"));
    assert!(train("--checkpoint p/X.npy --resume").contains("also an input"));
    std::fs::write(folder.path().join("k.old"), b"TAMIS-XX and more").unwrap();
    for other in ["m.tamis", "k.old"] {
        let error = train(&format!("--checkpoint {other} --resume"));
        assert!(
            error.contains("of another kind") && error.contains("expected: a checkpoint"),
            "{error}"
        );
    }
    assert!(train("--checkpoint p --resume").contains("a folder"));
    assert!(train("--checkpoint none/k").contains("mkdir"));
    let whole = std::fs::read(folder.path().join("k")).unwrap();
    std::fs::write(folder.path().join("k"), &whole[..whole.len() / 2]).unwrap();
    let error = train("--checkpoint k --resume");
    assert!(error.contains("the checkpoint is damaged: k"), "{error}");
    let output =
        run(folder.path(), &format!("{NOISY} --resume -o n.tamis").split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(2));
}

#[test]
#[cfg(unix)]
fn ctrl_c_leaves_a_checkpoint_to_resume_from() {
    use std::process::{Command, Stdio};
    use std::time::Duration;
    let folder = noisy();
    // Kicks for minutes.
    let line = format!("{NOISY} --kicks 3000 --idle-kicks 3000 --checkpoint k --resume");
    let (mut steps, mut passes) = (Vec::new(), 0.0);
    for wait in [400, 800, 1600, 3200, 6400] {
        let child = command(
            folder.path(),
            &format!("{line} --json -o n.tamis").split(' ').collect::<Vec<_>>(),
        )
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        assert!(
            Command::new("kill")
                .args(["-INT", &child.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
        let output = child.wait_with_output().unwrap();
        let (out, err) = texts(&output);
        assert_eq!(output.status.code(), Some(130), "{out}{err}");
        if let Ok(report) = serde_json::from_str::<Value>(&out) {
            assert_eq!(report["stopped"], json!(true), "{report}");
            assert!(folder.path().join("k").exists());
            steps.push((number(&report, "resumed_steps"), number(&report, "steps")));
            passes = number(&report, "passes");
        }
        if steps.len() == 2 {
            break;
        }
    }
    assert!(steps.len() > 1, "the search never began");
    for pair in steps.windows(2) {
        // It goes on from the last stage before the end of the part before.
        assert!(
            pair[1].0 > pair[0].0 && pair[1].0 <= pair[0].1 && pair[1].1 > pair[1].0,
            "{steps:?}"
        );
    }
    // Where a limit ends it, it is what a search without a break is there.
    let passes = 1.2 * passes;
    let ended = json(folder.path(), &format!("{line} --passes-limit {passes} -o n.tamis"));
    let whole = line.replace("--checkpoint k --resume", "");
    let whole = json(folder.path(), &format!("{whole} --passes-limit {passes} -o whole.tamis"));
    assert_eq!(essence(&ended), essence(&whole));
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(number(&ended, "resumed_steps") > 0.0 && read("n.tamis") == read("whole.tamis"));
}

/// Recipes of steps: lines that train, but for the output.
const STEPS: [&str; 6] = [
    "train --data d/X.npy --labels d/y.npy --task multiclass --hidden 10 --nnz 120 --recipe anneal --epochs 12",
    "train --data p/X.npy --labels p/noisy.npy --task regression --hidden 3 --nnz 6 --recipe paper --batch 100",
    "train --data d/X.npy --labels d/y.npy --task multiclass --hidden 10 --nnz 120 --recipe paper --batch 100 --step fixed:0.002",
    "train --data d/X.npy --labels d/y.npy --task multiclass --hidden 10 --nnz 120 --recipe paper-safe --trials 1 --batch 100 --step fixed:0.5",
    "train --data d/X.npy --labels d/y.npy --task multiclass --hidden 10,8 --nnz 120 --recipe dynamic --epochs 12",
    "train --data d/X.npy --labels d/y.npy --task multiclass --hidden 10 --nnz 120 --recipe dynamic --epochs 12 --validation 0.2",
];

/// The noisy problem, and digits.
fn steps() -> tempfile::TempDir {
    let folder = noisy();
    ok(folder.path(), "generate digits --samples 600 --side 8 --seed 2 -o d -q");
    folder
}

#[test]
fn runs_of_steps_resume_from_their_checkpoints() {
    let folder = steps();
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    for (k, line) in STEPS.iter().enumerate() {
        let whole = json(folder.path(), &format!("{line} --threads 1 -o whole.tamis"));
        assert_eq!((&whole["resumed_steps"], &whole["limit"]), (&json!(0), &Value::Null));
        let (mut parts, mut resumed) = (0, Vec::new());
        let last = loop {
            parts += 1;
            let passes = number(&whole, "passes") * f64::from(parts) / 4.0;
            let more = format!(
                "--checkpoint k{k} --resume --passes-limit {passes} --threads {}",
                1 + parts % 2
            );
            let report = json(folder.path(), &format!("{line} {more} -o n.tamis"));
            resumed.push(number(&report, "resumed_steps"));
            if report["limit"] == Value::Null {
                break report;
            }
            assert_eq!((&report["limit"], &report["stopped"]), (&json!("passes"), &json!(false)));
        };
        assert!(parts > 2 && resumed.is_sorted() && resumed[1] > 0.0, "{line}: {resumed:?}");
        for key in
            "nnz live loss steps epochs passes trials undone validation_loss early".split(' ')
        {
            assert_eq!(last[key], whole[key], "{line}: {key}");
        }
        assert_eq!(read("n.tamis"), read("whole.tamis"), "{line}");
        // What ended by itself gives the same again without a step, and says that it went on.
        let again = format!(
            "{line} --checkpoint k{k} --resume --log l.jsonl --picture p.svg -o again.tamis"
        );
        let said = ok(folder.path(), &again);
        assert!(
            said.contains("resumed from step") && read("again.tamis") == read("whole.tamis"),
            "{said}"
        );
        assert_eq!(String::from_utf8(read("l.jsonl")).unwrap().lines().count(), 1);
        // It is not overwritten, and no other run takes it.
        let error = fails(folder.path(), &format!("{line} --checkpoint k{k} -o n.tamis"));
        assert!(
            error.contains("there is a checkpoint already") && error.contains("--resume"),
            "{error}"
        );
        let error =
            fails(folder.path(), &format!("{line} --checkpoint k{k} --resume --seed 3 -o n.tamis"));
        assert!(
            error.contains("--seed: 0, as the run began") && error.contains("got: 3"),
            "{error}"
        );
    }
    let error = fails(folder.path(), &format!("{} --checkpoint k0 --resume -o n.tamis", STEPS[2]));
    assert!(
        error.contains("one of recipe anneal") && error.contains("choose --recipe anneal"),
        "{error}"
    );
    let error = fails(folder.path(), &format!("{} --checkpoint k2 --resume -o n.tamis", STEPS[3]));
    assert!(error.contains("--recipe: paper, as the run began"), "{error}");
    let error = fails(folder.path(), &format!("{NOISY} --checkpoint k1 --resume -o n.tamis"));
    assert!(error.contains("one of recipe paper"), "{error}");
    let whole = read("k0");
    std::fs::write(folder.path().join("k0"), &whole[..whole.len() / 2]).unwrap();
    let error = fails(folder.path(), &format!("{} --checkpoint k0 --resume -o n.tamis", STEPS[0]));
    assert!(error.contains("the checkpoint is damaged: k0"), "{error}");
}

/// A process that is killed at once leaves the file of a few seconds before, from which the run
/// goes on.
#[test]
#[cfg(unix)]
fn a_killed_run_resumes_from_its_checkpoint() {
    let folder = steps();
    let line = STEPS[0].replace("--epochs 12", "--epochs 1000000 --threads 1");
    let kept = format!("{line} --checkpoint k --resume");
    let arguments = format!("{kept} -q -o n.tamis");
    let mut child =
        command(folder.path(), &arguments.split(' ').collect::<Vec<_>>()).spawn().unwrap();
    let began = std::time::Instant::now();
    while !folder.path().join("k").exists() {
        assert!(began.elapsed().as_secs() < 120 && child.try_wait().unwrap().is_none());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!folder.path().join("n.tamis").exists());
    let there = json(folder.path(), &format!("{kept} --passes-limit 1 -o n.tamis"));
    assert_eq!(there["steps"], there["resumed_steps"]);
    let passes = 1.1 * number(&there, "passes");
    let rest = json(folder.path(), &format!("{kept} --passes-limit {passes} -o n.tamis"));
    let whole = json(folder.path(), &format!("{line} --passes-limit {passes} -o whole.tamis"));
    assert!(number(&rest, "resumed_steps") > 100.0 && rest["steps"] == whole["steps"], "{rest}");
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("n.tamis"), read("whole.tamis"));
}

#[test]
#[cfg(unix)]
fn ctrl_c_leaves_checkpoints_of_runs_of_steps() {
    use std::process::{Command, Stdio};
    let folder = steps();
    for (k, line) in STEPS.iter().enumerate() {
        let line = line.replace(" --epochs 12", "") + " --epochs 200000 --threads 1";
        let kept = format!("{line} --checkpoint k{k} --resume");
        let arguments = format!("{kept} --json -o n.tamis");
        let child = command(folder.path(), &arguments.split(' ').collect::<Vec<_>>())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(600));
        assert!(
            Command::new("kill")
                .args(["-INT", &child.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
        let output = child.wait_with_output().unwrap();
        let (out, err) = texts(&output);
        assert_eq!(output.status.code(), Some(130), "{out}{err}");
        let ended: Value = serde_json::from_str(&out).unwrap();
        // Nothing is lost: the file is of the last step, but in trials, whose best start is run
        // again.
        let there = json(folder.path(), &format!("{kept} --passes-limit 1e-3 -o n.tamis"));
        let [resumed, last] = [number(&there, "resumed_steps"), number(&ended, "steps")];
        // Recipe `dynamic` goes on from the end of an epoch.
        let is_last = resumed == last || [1, 2, 4, 5].contains(&k);
        assert!(resumed > 0.0 && is_last, "{line}: {ended} {there}");
        if k != 1 && k != 2 {
            let passes = 1.1 * number(&there, "passes");
            let rest = json(folder.path(), &format!("{kept} --passes-limit {passes} -o n.tamis"));
            let whole =
                json(folder.path(), &format!("{line} --passes-limit {passes} -o whole.tamis"));
            assert_eq!(
                (&rest["steps"], &rest["loss"]),
                (&whole["steps"], &whole["loss"]),
                "{line}"
            );
            let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
            assert_eq!(read("n.tamis"), read("whole.tamis"), "{line}");
        }
    }
}

#[test]
fn validation_rows_choose_the_network_of_classes_and_may_end_training() {
    let folder = steps();
    let line = "train --data d/X.npy --labels d/y.npy --task multiclass --hidden 10 --nnz 120 --rate 0.2 --epochs 60";
    let whole = json(folder.path(), &format!("{line} --validation 0.25 --log l -o n.tamis"));
    assert_eq!((&whole["recipe"], &whole["validation_samples"]), (&json!("dynamic"), &json!(150)));
    assert_eq!((&whole["early"], &whole["epochs"]), (&json!(false), &json!(60)));
    // All rows together are those of both parts, and the log ends with the least loss.
    let eval = json(folder.path(), "eval n.tamis --data d/X.npy --labels d/y.npy");
    for key in ["loss", "accuracy"] {
        let held = number(&whole, &format!("validation_{key}"));
        let both = 0.75 * number(&whole, key) + 0.25 * held;
        assert!((both / number(&eval, key) - 1.0).abs() < 1e-5, "{both} {eval}");
    }
    let log = std::fs::read_to_string(folder.path().join("l")).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let epochs = lines.filter(|line| line["step"].is_number());
    let held: Vec<f64> = epochs.filter_map(|line| line["validation_loss"].as_f64()).collect();
    let (least, own) =
        (held.iter().copied().fold(1e9, f64::min), number(&whole, "validation_loss"));
    assert!((least / own - 1.0).abs() < 1e-4 && held[held.len() - 1] > least, "{held:?} {own}");
    // Looked at when the support has its last size.
    assert!((12..=13).contains(&held.len()), "{held:?}");
    let patient = format!("{line} --validation 0.25 --patience 2 -o m.tamis");
    let early = json(folder.path(), &patient);
    assert!(early["early"] == json!(true) && number(&early, "epochs") < 60.0, "{early}");
    assert!(own <= number(&early, "validation_loss"));
    assert!(ok(folder.path(), &patient).contains("early stopping"));
    // Wider than its weights can feed, which is said.
    let wide = line.replace("--hidden 10", "--hidden 90").replace("--epochs 60", "--epochs 1");
    let said = ok(folder.path(), &format!("{wide} -o m.tamis"));
    assert!(said.contains("feed at most 60 of") && said.contains("layer of 90"), "{said}");
    let error = fails(folder.path(), &format!("{line} --patience 2 -o m.tamis"));
    assert!(error.contains("patience needs a validation split"), "{error}");
    let error = fails(folder.path(), &format!("{line} --validation 0.0001 -o m.tamis"));
    assert!(error.contains("too few rows for a validation split"), "{error}");
}

#[test]
fn validation_rows_choose_the_network() {
    let folder = noisy();
    let report = json(folder.path(), &format!("{NOISY} --validation 0.25 -o n.tamis"));
    assert_eq!(
        (&report["validation_samples"], &report["samples"]),
        (&json!(100), &json!(400)),
        "{report}"
    );
    assert!(
        number(&report, "validation_loss") > 0.0 && number(&report, "validation_psnr_db") > 0.0
    );
    assert_eq!((&report["validation_accuracy"], &report["early"]), (&Value::Null, &json!(false)));
    // All rows together are those of both parts.
    let eval = json(folder.path(), "eval n.tamis --data p/X.npy --labels p/noisy.npy");
    let both = 0.75 * number(&report, "loss") + 0.25 * number(&report, "validation_loss");
    assert!((both / number(&eval, "loss") - 1.0).abs() < 1e-5, "{both} {eval}");
    let said = ok(folder.path(), &format!("{NOISY} --validation 0.25 -o n.tamis"));
    assert!(said.contains("validation") && said.contains("100 rows"), "{said}");
    let none = json(folder.path(), &format!("{NOISY} -o n.tamis"));
    assert_eq!((&none["validation_samples"], &none["validation_loss"]), (&json!(0), &Value::Null));
    // Without noise everything comes back.
    let exact = json(folder.path(), &format!("{TRAIN} --validation 0.1 -o n.tamis"));
    assert_eq!(
        (&exact["exact"], &exact["validation_samples"]),
        (&json!(true), &json!(40)),
        "{exact}"
    );
    assert!(number(&exact, "validation_psnr_db") > 120.0, "{exact}");
    // Patience.
    let long = format!("{NOISY} --kicks 40 --idle-kicks 40 --validation 0.25");
    let all = json(folder.path(), &format!("{long} -o n.tamis"));
    let some = json(folder.path(), &format!("{long} --patience 2 -o n.tamis"));
    assert_eq!((&all["early"], &some["early"]), (&json!(false), &json!(true)));
    assert!(number(&some, "kicks") < number(&all, "kicks"), "{some} {all}");
    let said = ok(folder.path(), &format!("{long} --patience 2 -o n.tamis"));
    assert!(said.contains("early stopping on the validation split"), "{said}");
}

#[test]
fn validation_of_two_classes_and_several_outputs() {
    let folder = noisy();
    let y = data::load_labels(folder.path().join("p/noisy.npy")).unwrap();
    let classes: Vec<f32> = y.iter().map(|&y| f32::from(u8::from(y > 1.0))).collect();
    let several: Vec<f32> = y.iter().flat_map(|&y| [y, -y]).collect();
    for (name, shape, values) in [("c.npy", vec![400], &classes), ("s.npy", vec![400, 2], &several)]
    {
        let mut bytes = Vec::new();
        npy::write(&mut bytes, &Array::new(&shape, values).unwrap()).unwrap();
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let binary = NOISY.replace("p/noisy.npy --task regression", "c.npy --task binary");
    let report = json(folder.path(), &format!("{binary} --validation 0.25 -o n.tamis"));
    let eval = json(folder.path(), "eval n.tamis --data p/X.npy --labels c.npy");
    let both = 0.75 * number(&report, "accuracy") + 0.25 * number(&report, "validation_accuracy");
    assert!((both - number(&eval, "accuracy")).abs() < 1e-9, "{report} {eval}");
    let outputs = NOISY.replace("p/noisy.npy", "s.npy");
    let report = json(folder.path(), &format!("{outputs} --validation 0.25 -o n.tamis"));
    let eval = json(folder.path(), "eval n.tamis --data p/X.npy --labels s.npy");
    let both = 0.75 * number(&report, "loss") + 0.25 * number(&report, "validation_loss");
    assert!((both / number(&eval, "loss") - 1.0).abs() < 1e-5, "{both} {eval}");
}
