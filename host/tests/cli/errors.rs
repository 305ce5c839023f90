//! Bad input: exit code 1, one clear error, nothing left behind, never a panic.

use std::fs;

use crate::common::*;

const EVAL: &str = "eval m.tamis --data p/X.npy --labels p/y.npy";

#[test]
fn sizes_out_of_bounds() {
    let folder = prepared();
    let train = |from: &str, to: &str| {
        fails(folder.path(), &format!("{} -o n.tamis", TRAIN.replace(from, to)))
    };
    let error = train("--nnz 6", "--nnz 0");
    assert!(error.contains("1 to 36") && error.contains("got: 0"), "{error}");
    assert!(train("--hidden 3", "--hidden 0,3").contains("hidden"));
    assert!(
        train("--hidden 3", "--hidden 3,0").contains("the second hidden layer is out of bounds")
    );
    assert!(train("--hidden 3", "--hidden 18446744073709551615").contains("--hidden 1 to"));
    for density in ["0", "-1", "1.5", "nan", "inf"] {
        assert!(train("--nnz 6", &format!("--density={density}")).contains("density"));
    }
    assert!(train("--nnz 6", "--nnz 6 --epochs 0").contains("epoch"));
    assert!(train("--nnz 6", "--nnz 6 --panel 0").contains("panel"));
    for part in ["1", "-0.1", "nan"] {
        assert!(train("--nnz 6", &format!("--nnz 6 --validation={part}")).contains("--validation"));
    }
    assert!(
        train("--nnz 6", "--nnz 6 --validation 0.0001")
            .contains("too few rows for a validation split")
    );
    assert!(train("--nnz 6", "--nnz 6 --recipe anneal").contains("--task binary or multiclass"));
}

#[test]
fn memory_that_is_not_there() {
    let folder = prepared();
    let error = fails(folder.path(), &format!("{TRAIN} --ram 1K -o n.tamis"));
    assert!(error.contains("bytes needed") && error.contains("got: 1024 bytes"), "{error}");
    let huge = TRAIN.replace("--hidden 3 --nnz 6", "--hidden 300000000 --nnz 3000000000");
    assert!(fails(folder.path(), &format!("{huge} -o n.tamis")).contains("not enough memory"));
    for line in [
        "generate planted --samples 4294967295 --inputs 4294967294 --hidden 1 --nnz 1 -o d",
        "generate planted --samples 4294967295 --inputs 100000 --hidden 1 --nnz 1 -o d",
        "generate gaussian --samples 4294967295 --inputs 100000 --nnz 1 -o d",
        "generate digits --samples 18446744073709551615 -o d",
        "generate digits --samples 100000000000 --side 28 -o d",
    ] {
        let error = fails(folder.path(), line);
        assert!(error.contains("memory") || error.contains("expected 1 to"), "{line}\n{error}");
    }
}

#[test]
fn generators_check_their_sizes() {
    let folder = tempfile::tempdir().unwrap();
    for line in [
        "generate planted --samples 0 --inputs 5 --hidden 1 --nnz 1 -o d",
        "generate planted --samples 5 --inputs 0 --hidden 1 --nnz 1 -o d",
        "generate planted --samples 5 --inputs 5 --hidden 0 --nnz 1 -o d",
        "generate planted --samples 5 --inputs 5 --hidden 1 --nnz 0 -o d",
        "generate planted --samples 5 --inputs 5 --hidden 1 --nnz 6 -o d",
        "generate gaussian --samples 5 --inputs 5 --nnz 6 -o d",
        "generate digits --samples 0 -o d",
        "generate digits --samples 5 --side 7 -o d",
        "generate digits --samples 5 --side 4294967296 -o d",
    ] {
        let error = fails(folder.path(), line);
        assert!(error.contains("expected"), "{line}\n{error}");
    }
}

#[test]
fn invalid_sizes_name_their_flag_and_remedy() {
    let folder = prepared();
    let planted = |flags: &str| format!("generate planted --samples 5 --inputs 5 {flags} -o d");
    let train = |flags: &str| format!("{TRAIN} {flags} -o n.tamis");
    for (line, flag, got) in [
        (planted("--hidden 0 --nnz 1"), "--hidden 1 to 858993458", "got: 0"),
        (planted("--hidden 99999999999 --nnz 1"), "--hidden 1 to 858993458", "got: 99999999999"),
        (planted("--hidden 2 --nnz 0"), "--nnz 1 to 10", "got: 0"),
        (planted("--hidden 2 --nnz 11"), "--nnz 1 to 10", "got: 11"),
        (planted("--hidden 800000000 --nnz 4000000000"), "choose smaller --nnz", "bytes free"),
        (
            "generate planted --samples 0 --inputs 5 --hidden 1 --nnz 1 -o d".into(),
            "--samples 1",
            "got: 0",
        ),
        ("generate gaussian --samples 5 --inputs 0 --nnz 1 -o d".into(), "--inputs 1", "got: 0"),
        (
            "generate gaussian --samples 4000000000 --inputs 90000 --nnz 1 -o d".into(),
            "--samples or",
            "bytes free",
        ),
        ("generate digits --samples 5 --side 7 -o d".into(), "--side", "got: 7"),
        (train("--epochs 0"), "--epochs 1", "got: 0"),
        (train("--trials 0"), "--trials 1", "got: 0"),
        (train("--trial-rows 0"), "--trial-rows 1", "got: 0"),
        (train("--panel 0"), "--panel 1", "got: 0"),
        (
            TRAIN.replace("--hidden 3", "--hidden 99999999999") + " -o n.tamis",
            "--hidden 1 to",
            "got: 99999999999",
        ),
        ("bench --samples 0".into(), "--samples 1", "got: 0"),
        ("bench --samples 4000000000".into(), "smaller --samples", "bytes free"),
        ("bench --rounds 0".into(), "--rounds 1", "got: 0"),
    ] {
        let error = fails(folder.path(), &line);
        for part in ["expected:", "help:", flag, got] {
            assert!(error.contains(part), "{line}: no {part:?} in {error}");
        }
    }
}

#[test]
fn negative_numbers_are_refused_under_their_flag() {
    let folder = prepared();
    for (flag, value) in [
        ("--nnz", "-3"),
        ("--seed", "-1"),
        ("--epochs", "-2"),
        ("--hidden", "-7"),
        ("--batch", "-1"),
        ("--trials", "-1"),
        ("--trial-rows", "-1"),
        ("--panel", "-4"),
        ("--threads", "-1"),
        ("--ram", "-1M"),
        ("--rows-per-label", "-1..2"),
    ] {
        let line = match TRAIN.split_once(&format!("{flag} ")) {
            Some((before, after)) => {
                let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
                format!("{before}{flag} {value}{after} -o n.tamis")
            }
            None => format!("{TRAIN} {flag} {value} -o n.tamis"),
        };
        let output = run(folder.path(), &line.split_whitespace().collect::<Vec<_>>());
        let (_, err) = texts(&output);
        assert_eq!(output.status.code(), Some(2), "{line}\n{err}");
        assert!(err.contains(&format!("invalid value '{value}' for '{flag} ")), "{line}\n{err}");
    }
    let error =
        fails(folder.path(), &format!("{} -o n.tamis", TRAIN.replace("--nnz 6", "--density -2")));
    assert!(error.contains("--density above 0"), "{error}");
}

#[test]
fn damaged_models() {
    let folder = prepared();
    let good = fs::read(folder.path().join("m.tamis")).unwrap();
    let mut magic = good.clone();
    magic[0] ^= 1;
    let mut version = good.clone();
    version[4] = 9;
    let mut crc = good.clone();
    crc[12] ^= 1;
    let mut body = good.clone();
    *body.last_mut().unwrap() ^= 128;
    let longer = [&good[..], &[0; 4]].concat();
    for (name, bytes, says) in [
        ("magic", &magic[..], "magic"),
        ("version", &version, "version"),
        ("crc", &crc, "checksum"),
        ("body", &body, "checksum"),
        ("short", &good[..good.len() - 4], &*format!("expected: {} bytes", good.len())),
        ("head", &good[..20], "got: 20 bytes"),
        ("two", &good[..2], "got: \"\\x89T\""),
        ("empty", &[], "an empty file"),
        ("longer", &longer, "length"),
    ] {
        fs::write(folder.path().join("bad.tamis"), bytes).unwrap();
        for line in [
            "inspect bad.tamis",
            "eval bad.tamis --data p/X.npy --labels p/y.npy",
            "predict bad.tamis --data p/X.npy -o o.npy",
        ] {
            let error = fails(folder.path(), line);
            assert!(error.contains(says) && error.contains("bad.tamis"), "{name}: {error}");
            assert!(!error.contains("0x"), "{name}: {error}");
        }
    }
    let later = fails_with(&folder, &version);
    assert!(
        later.contains("expected: format version 1") && later.contains("help: update tamis"),
        "{later}"
    );
    assert!(!later.contains("damaged"), "{later}");
    for not_there in ["missing.tamis", "p", "p/X.npy/x"] {
        assert!(fails(folder.path(), &format!("inspect {not_there}")).contains(not_there));
    }
    assert!(fails(folder.path(), "inspect p/X.npy").contains("magic"));
}

/// The error of inspecting these bytes.
fn fails_with(folder: &tempfile::TempDir, bytes: &[u8]) -> String {
    fs::write(folder.path().join("bad.tamis"), bytes).unwrap();
    fails(folder.path(), "inspect bad.tamis")
}

#[test]
fn labels_outside_the_task_of_the_model() {
    let folder = prepared();
    let rows: String = (0..40).map(|k| format!("{},{}\n", k % 9, u8::from(k % 9 > 4))).collect();
    fs::write(folder.path().join("t.csv"), format!("a,y\n{rows}")).unwrap();
    fs::write(folder.path().join("u.csv"), "a,y\n1,0\n2,1\n3,7\n").unwrap();
    ok(folder.path(), "train --data t.csv --target y --task binary --hidden 2 --nnz 2 -o b.tamis");
    let error = fails(folder.path(), "eval b.tamis --data u.csv --target y");
    for says in
        ["outside the binary task", "u.csv", "expected: 0 or 1", "got: 7 in row 2", "--keep-labels"]
    {
        assert!(error.contains(says), "{says}: {error}");
    }
    ok(folder.path(), "eval b.tamis --data u.csv --target y --task regression");
    ok(folder.path(), "eval b.tamis --data u.csv --target y --keep-labels 7,0");
}

#[test]
fn data_that_does_not_fit() {
    let folder = prepared();
    ok(folder.path(), "generate planted --samples 300 --inputs 5 --hidden 1 --nnz 1 -o q -q");
    let error = fails(folder.path(), &EVAL.replace("p/", "q/"));
    assert!(error.contains("12 columns") && error.contains("5 columns"), "{error}");
    fails(folder.path(), "predict m.tamis --data q/X.npy -o o.npy");
    let error =
        fails(folder.path(), &format!("{} -o n.tamis", TRAIN.replace("p/y.npy", "q/y.npy")));
    assert!(error.contains("400 labels") && error.contains("300"), "{error}");
    fails(folder.path(), &EVAL.replace("p/y.npy", "q/y.npy"));
    assert!(
        fails(folder.path(), &format!("{} -o n.tamis", TRAIN.replace("p/y.npy", "p/X.npy")))
            .contains("labels of one column")
    );
    fails(folder.path(), &format!("{} -o n.tamis", TRAIN.replace("p/X.npy", "p/X.npy,q/X.npy")));
    fails(folder.path(), &format!("{} -o n.tamis", TRAIN.replace("p/X.npy", "missing.npy")));
    fails(folder.path(), &format!("{} -o n.tamis", TRAIN.replace("p/X.npy", "p")));
}

#[test]
fn damaged_data() {
    let folder = prepared();
    let npy = fs::read(folder.path().join("p/X.npy")).unwrap();
    let mut not_finite = npy.clone();
    let last = not_finite.len() - 4;
    not_finite[last..].copy_from_slice(&f32::NAN.to_le_bytes());
    let idx = [0, 0, 8, 2, 0, 0, 0, 3, 0, 0, 0, 2, 1, 2, 3, 4, 5];
    let lying = [0, 0, 8, 2, 255, 255, 255, 255, 255, 255, 255, 255, 1, 2];
    for (name, bytes) in [
        ("nan.npy", &not_finite[..]),
        ("short.npy", &npy[..npy.len() - 1]),
        ("head.npy", &npy[..40]),
        ("longer.npy", &[&npy[..], &[0]].concat()),
        ("magic.npy", b"NOT NUMPY AT ALL"),
        ("short-ubyte", &idx),
        ("lying-ubyte", &lying),
        ("ragged.csv", b"1,2\n3\n"),
        ("empty.csv", b""),
        ("head.csv", b"a,b\n"),
        ("nan.csv", b"1,nan\n"),
        ("inf.csv", b"1,inf\n"),
        ("ragged.csv", b"1,2\n3\n"),
        ("magic.bin", &[0, 1, 8, 2, 0, 0, 0, 1]),
        ("rank-ubyte", &[0, 0, 8, 9, 0, 0, 0, 1]),
        ("empty.npz#X", b""),
        ("broken.npz", b"PK\x03\x04 and no more"),
        ("broken.gz", &[0x1f, 0x8b, 8, 0, 0, 0]),
    ] {
        fs::write(folder.path().join(name.trim_end_matches("#X")), bytes).unwrap();
        for line in [
            format!(
                "train --data {name} --labels p/y.npy --task regression --hidden 1 --nnz 1 -o n.tamis"
            ),
            format!(
                "train --data p/X.npy --labels {name} --task regression --hidden 1 --nnz 1 -o n.tamis"
            ),
            format!("eval m.tamis --data {name} --labels p/y.npy"),
            format!("predict m.tamis --data {name} -o o.npy"),
        ] {
            assert!(fails(folder.path(), &line).contains(name), "{line}");
        }
    }
}

#[test]
fn labels_outside_the_task() {
    let folder = prepared();
    let binary = TRAIN.replace("regression", "binary");
    assert!(
        fails(folder.path(), &format!("{binary} -o n.tamis")).contains("outside the binary task")
    );
    fs::write(folder.path().join("t.csv"), "a,y\n1,0\n2,1\n3,2\n4,1\n").unwrap();
    let train = |flags: &str| {
        fails(
            folder.path(),
            &format!(
                "train --data t.csv --target y --task binary --hidden 1 --nnz 1 {flags} -o n.tamis"
            ),
        )
    };
    assert!(train("").contains("2 in row 2"));
    assert!(train("--keep-labels 0,1,2").contains("two labels"));
    assert!(train("--keep-labels 0,7").contains('7'));
    assert!(train("--keep-labels 1,1").contains("twice"));
    assert!(train("--keep-labels 0,nan").contains("nan"));
    assert!(train("--keep-labels 0,1 --rows-per-label 1..2").contains("label 0"));
    fs::write(folder.path().join("t.csv"), "a,y\n1,1\n2,1\n").unwrap();
    assert!(train("").contains("nothing to tell apart"));
    assert!(
        fails(
            folder.path(),
            "train --data t.csv --target z --task binary --hidden 1 --nnz 1 -o n.tamis"
        )
        .contains("\"z\"")
    );
}

#[test]
fn steps_that_diverge() {
    let folder = prepared();
    let error =
        fails(folder.path(), &format!("{TRAIN} --step fixed:1e30 --refine none -o n.tamis"));
    assert!(error.contains("diverged at step"), "{error}");
    fs::write(folder.path().join("z.csv"), "a,b,y\n0,0,1\n0,0,2\n").unwrap();
    let zero = "train --data z.csv --target y --task regression --hidden 1 --nnz 1 -o n.tamis";
    assert!(fails(folder.path(), &format!("{zero} --step theory")).contains("all zero"));
}

#[test]
fn numbers_too_large_to_be_squared() {
    let folder = prepared();
    for (csv, says) in [("a,b,y\n1,1,1\n2,3e38,2\n", "column 2"), ("a,y\n1,1\n2,-3e38\n", "labels")]
    {
        fs::write(folder.path().join("big.csv"), csv).unwrap();
        for recipe in ["lm", "paper"] {
            let line =
                format!("train --data big.csv --target y --task regression --recipe {recipe}");
            let error = fails(folder.path(), &format!("{line} --hidden 1 --nnz 1 -o n.tamis"));
            assert!(
                error.contains(says) && error.contains("row 1") && error.contains("big.csv"),
                "{error}"
            );
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_or_closed_standard_output() {
    let folder = prepared();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = command(folder.path(), &["inspect", "m.tamis"]).stdout(full).output().unwrap();
    let (_, err) = texts(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(err.starts_with("error: cannot write to standard output"), "{err}");
    assert!(err.contains("help: files that the command writes are written and whole"), "{err}");
    let script = format!("{} inspect m.tamis | true", env!("CARGO_BIN_EXE_tamis"));
    let piped =
        std::process::Command::new("sh").current_dir(folder.path()).args(["-c", &script]).output();
    assert_eq!(texts(&piped.unwrap()).1, "");
}

#[test]
fn wrong_usage_exits_with_2() {
    let folder = prepared();
    for line in [
        "",
        "nonsense",
        "train",
        "eval m.tamis",
        "predict m.tamis --data p/X.npy",
        "inspect",
        "generate",
        &format!("{TRAIN} --density 0.5 -o n.tamis"),
        &format!("{TRAIN} --step fast -o n.tamis"),
        &format!("{TRAIN} --ram 5X -o n.tamis"),
        &format!("{TRAIN} --ram 1M --panel 2 -o n.tamis"),
        &format!("{TRAIN} --rows-per-label 5..5 -o n.tamis"),
        &format!("{TRAIN} --threads 0 -o n.tamis"),
        &format!("{TRAIN} --target y -o n.tamis"),
        &format!("{TRAIN} --recipe cake -o n.tamis"),
        TRAIN,
    ] {
        let output = run(folder.path(), &line.split_whitespace().collect::<Vec<_>>());
        let (out, err) = texts(&output);
        assert_eq!(output.status.code(), Some(2), "{line}\n{out}{err}");
        assert!(out.is_empty() && !err.contains("panicked"), "{line}\n{out}{err}");
    }
}

const CLASSES: &str = "a,b,y\n1,0,0\n0,1,1\n1,1,2\n2,0,0\n0,2,1\n2,2,2\n";

#[test]
fn classes_that_cannot_be_learnt() {
    let folder = tempfile::tempdir().unwrap();
    let put = |text: &str| fs::write(folder.path().join("c.csv"), text).unwrap();
    let line = "train --data c.csv --target y --task multiclass --hidden 3 --nnz 8 -o n.tamis";
    let train = |from: &str, to: &str| fails(folder.path(), &line.replace(from, to));
    put(CLASSES);
    for (nnz, says) in [("0", "got: 0"), ("1", "got: 1")] {
        let error = train("--nnz 8", &format!("--nnz {nnz}"));
        assert!(error.contains("4 or more") && error.contains(says), "{error}");
    }
    assert!(train("--nnz 8", "--nnz 8 --epochs 0").contains("epoch"));
    assert!(train("--nnz 8", "--nnz 8 --panel 0").contains("panel"));
    assert!(train("--nnz 8", "--nnz 8 --start-factor 0.5").contains("--start-factor 1 or more"));
    for (flag, wrong) in [("--rate", "0"), ("--rate", "nan"), ("--drop", "1.5"), ("--drop", "nan")]
    {
        assert!(train("--nnz 8", &format!("--nnz 8 {flag}={wrong}")).contains(flag));
    }
    for part in ["1", "-0.1", "nan"] {
        assert!(train("--nnz 8", &format!("--nnz 8 --validation={part}")).contains("--validation"));
    }
    assert!(train("--nnz 8", "--nnz 8 --ram 100").contains("bytes needed"));
    assert!(
        train("--nnz 8", "--nnz 8 --recipe lm").contains("recipe lm does not train for this task")
    );
    assert!(train("--nnz 8", "--nnz 8 --keep-labels 0,1,7").contains('7'));
    for (text, says) in [
        (CLASSES.replace(",1\n", ",0\n").replace(",2\n", ",0\n"), "nothing to tell apart"),
        (CLASSES.replace(",1\n", ",0.5\n"), "0.5 in row 1"),
        (CLASSES.replace("0,1,1\n", "0,1,inf\n"), "inf"),
        (CLASSES.replace("0,1,1\n", "0,inf,1\n"), "inf"),
        ("a,b,y\n1,0,1\n".to_owned(), "1 in all 1 rows"),
        ("a,b,y\n0,0,0\n0,0,1\n".to_owned(), "column is not all zero"),
    ] {
        put(&text);
        let error = train("", "").to_lowercase();
        assert!(error.contains(says), "{text}\n{error}");
    }
}
