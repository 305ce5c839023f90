//! Models in other encodings, and back.

use std::fs::{self};

use crate::common::*;
use crate::export::{TINY, check_c, expected, floats, integers, rows};
use serde_json::json;
use tamis::infer::quantised::Encoding;
use tamis::store::wire::Choice;

#[test]
fn model_converts_to_other_encodings_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = |name: &str| fs::read(folder.path().join(name)).unwrap();
    let drawn = rows(20, 200);
    fs::write(folder.path().join("f.tamis"), floats()).unwrap();
    let report = json(folder.path(), "export f.tamis --format tamis --encoding blocks -o b.tamis");
    assert_eq!((&report["format"], &report["encodings"]), (&json!("tamis"), &json!(["blocks"])));
    assert_eq!(report["table_bytes"], json!(bytes("b.tamis").len()));
    assert_ne!(bytes("b.tamis"), floats());
    assert!(expected(&bytes("b.tamis"), &drawn) == expected(&floats(), &drawn));
    ok(folder.path(), "export b.tamis --format tamis --encoding rows -o r.tamis");
    assert_eq!(bytes("r.tamis"), floats());
    let smallest = json(folder.path(), "export f.tamis --format tamis -o s.tamis");
    assert_eq!(smallest["encodings"], json!(["blocks"]), "five bytes a weight in place of six");
    // Other forms and verbs take either.
    check_c(folder.path(), &bytes("b.tamis"), "blocks of floats");
    for (format, name) in [("rust", "b.rs"), ("onnx", "b.onnx"), ("safetensors", "b.safetensors")] {
        ok(folder.path(), &format!("export b.tamis --format {format} -o {name}"));
    }
    assert!(
        String::from_utf8(bytes("b.rs"))
            .unwrap()
            .contains("Layer::Blocks(checked(Blocks::new(20, 5,")
    );
    let cost = json(folder.path(), "inspect b.tamis");
    assert_eq!(
        (&cost["layers"][0]["kind"], &cost["layers"][0]["nnz"]),
        (&json!("blocks"), &json!(20))
    );

    let model = integers(3, &TINY, Choice::Prefer(Encoding::Blocks));
    fs::write(folder.path().join("q.tamis"), &model).unwrap();
    let report = json(folder.path(), "export q.tamis --format tamis --encoding bitmask -o m.tamis");
    assert_eq!(report["encodings"], json!(["bitmask", "bitmask"]));
    let drawn = rows(300, 50);
    assert!(expected(&bytes("m.tamis"), &drawn) == expected(&model, &drawn));

    let wrong = |line: &str, words: &str| {
        let error = fails(folder.path(), line);
        assert!(error.contains(words), "{line}: {error}");
    };
    wrong(
        "export f.tamis --format tamis --encoding dense -o d.tamis",
        "smallest, fastest, rows or blocks",
    );
    wrong("export q.tamis --format tamis --encoding rows -o d.tamis", "dense, bitmask or blocks");
    wrong("export f.tamis --format rust --encoding rows -o d.rs", "--format tamis");
    wrong("export f.tamis --format tamis -o f.tamis", "also an input");
}
