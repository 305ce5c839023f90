//! What `tamis mask` and `tamis train --mask` refuse.

use std::fs;

use crate::common::*;
use crate::mask::{DIGITS, LAYERS, bytes, digits};
use tamis_host::data::{Array, npz};

#[test]
fn bad_input_is_refused_and_leaves_nothing() {
    let folder = digits();
    let folder = folder.path();
    ok(folder, &format!("{LAYERS} --method erk --nnz 900 --export-weights w.npz -o m.npz"));
    ok(folder, "mask --layers 64,40,20,10 --method erk --nnz 900 -o other.npz");
    ok(folder, "mask --layers 64,40,20,10 --method erk --nnz 900 -o other.tamis");
    ok(folder, "generate planted --samples 30 --inputs 9 --hidden 2 --nnz 4 -o p -q");
    let zeros = [0.0_f32; 64 * 40];
    let nan = [f32::MAX; 64 * 40];
    for (name, values) in [("zero.npz", &zeros), ("huge.npz", &nan)] {
        let arrays = [
            ("a.weight", Array::new(&[40, 64], &values[..]).unwrap()),
            ("b.weight", Array::new(&[10, 40], &values[..400]).unwrap()),
        ];
        npz::write(&mut fs::File::create(folder.join(name)).unwrap(), &arrays).unwrap();
    }
    let arrays = [
        ("a.weight", Array::new(&[40, 64], &zeros[..]).unwrap()),
        ("bn.bias", Array::new(&[40], &zeros[..40]).unwrap()),
        ("bn.running_mean", Array::new(&[40], &zeros[..40]).unwrap()),
    ];
    npz::write(&mut fs::File::create(folder.join("norm.npz")).unwrap(), &arrays).unwrap();
    fs::write(folder.join("empty.npz"), b"").unwrap();
    fs::write(folder.join("cut.tamis"), &bytes(folder, "other.tamis")[..12]).unwrap();
    let own = format!("{LAYERS} --method synflow -o x.npz");
    for (line, says) in [
        (format!("{own} --density 0"), "above 0 and below 1"),
        (format!("{own} --density 1"), "above 0 and below 1"),
        (format!("{own} --density -0.5"), "above 0 and below 1"),
        (format!("{own} --density nan"), "NaN"),
        (format!("{own} --density 0.0001"), "one for each layer"),
        (format!("{own} --nnz 2"), "one for each layer"),
        (format!("{own} --nnz 4060"), "not all"),
        (format!("{own} --nnz 40 --rounds 0"), "--rounds 1"),
        (format!("{LAYERS} --method imp {DIGITS} --epochs 0 --nnz 40 -o x.npz"), "--epochs 1"),
        (
            "mask --layers 60,20,10 --method snip --random-data normal --data d/X.npy --nnz 40 -o x.npz"
                .into(),
            "rows of 60 numbers",
        ),
        (
            format!("{LAYERS} --method erk --nnz 20 --min-layer 10 -o x.npz"),
            "--min-layer 10",
        ),
        (
            format!("{LAYERS} --method snip --data d/X.npy --labels d/y.npy --task binary --nnz 40 -o x.npz"),
            "one output for --task binary",
        ),
        ("mask --layers 64 --method synflow --nnz 4 -o x.npz".into(), "widths"),
        ("mask --layers 64,0,10 --method synflow --nnz 4 -o x.npz".into(), "widths"),
        ("mask --weights zero.npz --method synflow --nnz 40 -o x.npz".into(), "above 0"),
        ("mask --weights zero.npz --method magnitude --nnz 40 -o x.npz".into(), "above 0"),
        (
            "mask --weights huge.npz --method snip --data d/X.npy --labels d/y.npy --nnz 40 -o x.npz"
                .into(),
            "finite",
        ),
        ("mask --weights missing.npz --method erk --nnz 40 -o x.npz".into(), "missing.npz"),
        ("mask --weights d/X.npy --method erk --nnz 40 -o x.npz".into(), "X.npy"),
        (format!("{LAYERS} --method ntk --data p/X.npy --nnz 40 -o x.npz"), "rows of 64"),
        (
            format!("mask --layers 64,40,5 --method snip {DIGITS} --nnz 40 -o x.npz"),
            "10 outputs",
        ),
        (format!("{LAYERS} --method synflow --nnz 40 -o x.txt"), ".npz"),
        (format!("{LAYERS} --method synflow --nnz 40 -o x.npz --export-weights y.tamis"), ".npz"),
        (format!("train --mask other.npz --weights w.npz {DIGITS} -o x.tamis"), "another network"),
        (format!("train --mask other.tamis --weights w.npz {DIGITS} -o x.tamis"), "another network"),
        (format!("train --mask w.npz --weights w.npz {DIGITS} -o x.tamis"), "is no mask"),
        (
            "train --mask m.npz --data p/X.npy --labels p/y.npy --task regression -o x.tamis".into(),
            "rows of 64",
        ),
        (format!("train --mask m.npz {DIGITS} --epochs 2 --rate 1e30 -o x.tamis"), "smaller --rate"),
        (format!("train --mask empty.npz {DIGITS} -o x.tamis"), "an empty file"),
        (format!("train --mask cut.tamis {DIGITS} -o x.tamis"), "cut off"),
        (
            "mask --layers 65536,65536,10 --method erk --nnz 40 -o x.npz".into(),
            "at most 4294967295 weights in all",
        ),
        (
            "mask --weights norm.npz --method erk --nnz 40 -o x.npz".into(),
            "bn.bias",
        ),
    ] {
        let error = fails(folder, &line);
        assert!(error.contains(says), "{line}: {error}");
    }
    for (line, says) in [
        (format!("{LAYERS} --method snip --data d/X.npy --nnz 40 -o x.npz"), "--labels"),
        (format!("{LAYERS} --method ntk --nnz 40 -o x.npz"), "--data"),
        (format!("{own} --nnz 40 --input pixel-sd"), "--data"),
        (format!("{own} --nnz 40 --temperature 3"), "--method grasp"),
        (format!("{own} --nnz 40 --epochs 3"), "--method imp"),
        (format!("{LAYERS} --method imp --nnz 40 -o x.npz"), "--labels"),
        (format!("{LAYERS} --method erk --input chi --nnz 40 -o x.npz"), "--method synflow"),
        (format!("{LAYERS} --method erk --nnz 40 -o x.npz --export-weights x.npz"), "one file"),
        (format!("{own} --nnz 40 --allocation erk"), "--scope layer"),
        (format!("{own} --nnz 40 --scope global --allocation erk"), "--scope layer"),
        (format!("{own} --nnz 40 --rounds 1 --schedule linear"), "--rounds 2"),
        (format!("{LAYERS} --method magnitude --schedule linear --nnz 40 -o x.npz"), "--rounds 2"),
        (
            format!("{LAYERS} --method snip {DIGITS} --random-data normal --nnz 40 -o x.npz"),
            "without --random-data",
        ),
        (format!("{LAYERS} --method erk --rounds 3 --nnz 40 -o x.npz"), "--rounds"),
        (format!("{LAYERS} --method random --schedule linear --nnz 40 -o x.npz"), "--schedule"),
        (
            format!("{LAYERS} --method erk --nnz 40 -o x.npz --export-weights d/../x.npz"),
            "one file",
        ),
        (format!("train {DIGITS} -o x.tamis"), "--mask"),
        (format!("train --recipe masked {DIGITS} -o x.tamis"), "--mask MASK"),
        (format!("train --recipe masked {DIGITS} --nnz 30 -o x.tamis"), "--mask"),
        (format!("train --mask m.npz --recipe lm {DIGITS} -o x.tamis"), "--mask"),
        (format!("train --mask m.npz --kicks 3 {DIGITS} -o x.tamis"), "--kicks"),
    ] {
        let error = misuses(folder, &line);
        assert!(error.contains(says), "{line}: {error}");
    }
    for line in [
        format!("{LAYERS} --method synflow -o x.npz"),
        "mask --method synflow --nnz 4 -o x.npz".into(),
        format!("{LAYERS} --weights w.npz --method erk --nnz 40 -o x.npz"),
        format!("train --mask m.npz --nnz 30 {DIGITS} -o x.tamis"),
    ] {
        let output = run(folder, &line.split_whitespace().collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{line}");
    }
    // A model is no mask.
    ok(folder, &format!("train --mask m.npz {DIGITS} --epochs 1 -o model.tamis"));
    assert!(
        fails(folder, &format!("train --mask model.tamis {DIGITS} -o x.tamis")).contains("mask")
    );
    for verb in ["inspect other.tamis", "eval other.tamis --data d/X.npy --labels d/y.npy"] {
        assert!(fails(folder, verb).contains("a mask, not a model"));
    }
}
