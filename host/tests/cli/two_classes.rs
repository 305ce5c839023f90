//! Two classes by least squares: the threshold of the model is what the report counts by.

use crate::common::*;
use tamis_host::data;
use tamis_host::model::ModelFile;

const ROWS: &str = "--data d/X.npy --labels classes.csv";

#[test]
fn rows_are_counted_by_the_threshold_of_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    ok(path, "generate planted --samples 2000 --inputs 8 --hidden 3 --nnz 6 -o d");
    // The few rows of large labels, whose outputs least squares pull to those of the many others.
    let labels = data::load_labels(path.join("d/y.npy")).unwrap();
    let large = 2.5 * labels.iter().sum::<f32>() / labels.len() as f32;
    let labels: Vec<bool> = labels.into_iter().map(|y| y > large).collect();
    assert!((20..500).contains(&labels.iter().filter(|one| **one).count()));
    let lines: String = labels.iter().map(|one| if *one { "1\n" } else { "0\n" }).collect();
    std::fs::write(path.join("classes.csv"), lines).unwrap();
    let mut own = 0;
    for how in [
        "--hidden 1 --nnz 2 --recipe lm",
        "--hidden 3 --nnz 5 --scale none",
        "--hidden 3 --nnz 12 --recipe lm --turns 1 --kicks 1",
        "--hidden 4,3 --nnz 10 --recipe lm --kicks 1",
        "--hidden 3,2,2 --nnz 12 --recipe lm --kicks 1",
        "--hidden 3 --nnz 9 --recipe lm --scale standard --kicks 1",
        "--hidden 3 --nnz 9 --recipe lm --validation 0.2 --kicks 1",
        "--hidden 3 --nnz 9 --recipe paper",
        "--hidden 3 --nnz 9 --recipe anneal",
    ] {
        let report = json(path, &format!("train {ROWS} --task binary {how} -o m.tamis"));
        let from = report["class_from"].as_f64().unwrap();
        match how.rsplit_once("--recipe ").map(|(_, recipe)| recipe) {
            Some("paper") => assert_eq!(from, 0.5, "{how}"),
            Some("anneal") => assert_eq!(from, 0.0, "{how}"),
            _ => own += u32::from(from != 0.5),
        }
        let scored = json(path, &format!("eval m.tamis {ROWS}"));
        assert_eq!(scored["class_from"].as_f64(), Some(from), "{how}");
        assert!(ok(path, "inspect m.tamis").contains(&format!("1 from {from}")), "{how}");
        let right = scored["accuracy"].as_f64().unwrap();
        if how.contains("--validation") || how.contains("anneal") {
            // Of which a part was trained on.
            continue;
        }
        let told = report["accuracy"].as_f64().unwrap();
        assert!((right - told).abs() < 1e-9, "{how}: {right} {told}");
        // No number of the outputs' would have more rows right, but for what is chance.
        let rows = data::load(path.join("d/X.npy")).unwrap();
        let outputs = ModelFile::load(path.join("m.tamis")).unwrap().predict(&rows).unwrap();
        let all: Vec<(f32, bool)> = outputs.into_iter().zip(labels.iter().copied()).collect();
        let right_from = |from: f32| all.iter().filter(|(y, one)| (*y >= from) == *one).count();
        let counted = right_from(from as f32);
        assert_eq!(counted as f64 / all.len() as f64, right, "{how}");
        if how.contains("lm") {
            assert!(counted >= right_from(0.5), "{how}");
            let most = all.iter().map(|(y, _)| right_from(*y)).max().unwrap();
            assert!(from == 0.5 || most <= counted + 1, "{how}: {counted} {most}");
        }
    }
    assert!(own >= 4, "{own}");
}

#[test]
fn few_weights_need_not_fit_labels() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    ok(path, "generate digits --samples 2000 --side 8 -o d");
    for (digits, nnz) in [("3,8", 5), ("0,1", 8)] {
        let train = format!(
            "train --data d/X.npy --labels d/y.npy --keep-labels {digits} --task binary --hidden 3 \
             --nnz {nnz} --recipe lm"
        );
        let told = json(path, &format!("{train} -o told.tamis"));
        let fitted = json(path, &format!("{train} --turns 1 -o fitted.tamis"));
        let [of, by] = [&told, &fitted]
            .map(|report| ["loss", "accuracy"].map(|what| report[what].as_f64().unwrap()));
        assert!(of[0] > 2.0 * by[0] && of[1] > by[1] + 0.004, "{told} {fitted}");
        let scored = json(
            path,
            &format!("eval told.tamis --data d/X.npy --labels d/y.npy --keep-labels {digits}"),
        );
        assert_eq!(scored["accuracy"].as_f64(), Some(of[1]));
        // A run that was ended goes on to the same network, with the same goal only.
        let part = format!("{train} --checkpoint c{nnz} -o part.tamis");
        ok(path, &format!("{part} --passes-limit 2000"));
        let refused = fails(path, &format!("{part} --turns 1 --resume"));
        assert!(refused.contains("--turns") && refused.contains("expected"), "{refused}");
        std::fs::remove_file(path.join("part.tamis")).unwrap();
        ok(path, &format!("{part} --resume"));
        let [a, b] = ["told", "part"]
            .map(|of| std::fs::read(path.join(of).with_extension("tamis")).unwrap());
        assert_eq!(a, b);
    }
}

#[test]
fn few_weights_are_searched_for_unless_settings_ask_for_epochs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    ok(path, "generate digits --samples 300 --side 8 -o d");
    let recipe = |own: &str| {
        let rows = "--data d/X.npy --labels d/y.npy --keep-labels 3,8 --task binary --hidden 4";
        json(path, &format!("train {rows} {own} -o m.tamis"))["recipe"].clone()
    };
    assert_eq!(recipe("--nnz 20 --validation 0.2"), "lm");
    assert_eq!(recipe("--nnz 21 --validation 0.2"), "dynamic");
    assert_eq!(recipe("--nnz 20 --epochs 2"), "dynamic");
    assert_eq!(recipe("--nnz 5 --weight-decay 0.1"), "dynamic");
    assert_eq!(recipe("--nnz 20 --kicks 1"), "lm");
}
