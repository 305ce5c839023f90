//! Models as source code: compiled, run, and compared with the model to the bit; golden files; and
//! what is refused.
//!
//! `UPDATE_GOLDEN=1` writes the golden files, from which the modules below are built the next time.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::*;
use serde_json::json;
use tamis::base::rng::Rng;
use tamis::infer::model::{self, Activation, Sum};
use tamis::infer::quantised::{Encoding, Layer, Mask, Model, Rescale, Scales, Weights};
use tamis::store::wire::{Choice, QuantisedView, Task, View};

/// Modules that were exported from the models of this file.
macro_rules! golden {
    ($($name:ident $path:literal)*) => {
        $(
            #[path = $path]
            mod $name;
        )*
    };
}
golden! {
    dense "../golden/export/dense.rs"
    mask "../golden/export/mask.rs"
    blocks "../golden/export/blocks.rs"
    straight_line "../golden/export/straight_line.rs"
    floats "../golden/export/floats.rs"
    biased "../golden/export/biased.rs"
}

const NAMES: [(&str, Encoding); 3] =
    [("dense", Encoding::Dense), ("mask", Encoding::Mask), ("blocks", Encoding::Blocks)];

/// One layer: inputs, outputs, weights of each row.
type Shape = (usize, usize, usize);

/// What integer models are built of.
pub(crate) struct Plan<'a> {
    shapes: &'a [Shape],
    /// Factors, one for each neuron; biases; relu and factors at the end.
    rich: bool,
    sum: bool,
    task: Task,
}

/// Columns from all over the row, the first and the last among them, and weights of every size.
fn entries(rng: &mut Rng, (inputs, outputs, fan): Shape) -> (Vec<u16>, Vec<u16>, Vec<i8>) {
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    for row in 0..outputs {
        let width = inputs / fan;
        for k in 0..fan {
            let within = if row == 0 {
                if k == 0 { 0 } else { width as u32 - 1 }
            } else {
                rng.below(width as u32)
            };
            let last = row == 0 && k + 1 == fan;
            columns.push(if last { inputs as u16 - 1 } else { (k * width) as u16 + within as u16 });
            let value = rng.below(255) as i8;
            values.push(if value == 0 { -128 } else { value });
        }
    }
    (vec![fan as u16; outputs], columns, values)
}

/// The bytes of a `.tamis` file.
pub(crate) fn integers(seed: u64, plan: &Plan<'_>, choice: Choice) -> Vec<u8> {
    let mut rng = Rng::new(seed, 1);
    let drawn: Vec<_> = plan.shapes.iter().map(|&shape| entries(&mut rng, shape)).collect();
    let count = plan.shapes.len();
    let hidden = count - usize::from(!plan.sum);
    let extras: Vec<(Vec<u32>, Vec<i32>)> = plan
        .shapes
        .iter()
        .enumerate()
        .map(|(at, &(_, outputs, fan))| {
            let factor = |rng: &mut Rng| {
                Rescale::near((0.01 + 0.02 * rng.uniform()) / fan as f32).unwrap().bits()
            };
            let factors = match (plan.rich, at < hidden) {
                (true, _) => (0..outputs).map(|_| factor(&mut rng)).collect(),
                (false, true) => vec![factor(&mut rng)],
                (false, false) => Vec::new(),
            };
            let bias = |rng: &mut Rng| rng.below(20_001) as i32 - 10_000;
            (
                factors,
                if plan.rich { (0..outputs).map(|_| bias(&mut rng)).collect() } else { Vec::new() },
            )
        })
        .collect();
    let layers: Vec<Layer<'_>> = (0..count)
        .map(|at| {
            let (counts, columns, values) = &drawn[at];
            let (inputs, outputs, _) = plan.shapes[at];
            let mut bits = vec![0; Mask::words(inputs, outputs)];
            Mask::mark(inputs, counts, columns, &mut bits);
            let weights = Weights::Mask(Mask::new(inputs, outputs, bits.leak(), values).unwrap());
            let relu = plan.rich || at < hidden;
            let activation = if relu { Activation::Relu } else { Activation::Identity };
            Layer::new(weights, &extras[at].0, &extras[at].1, activation).unwrap()
        })
        .collect();
    let added = plan.shapes[count - 1].1;
    let signs: Vec<u32> = (0..added.div_ceil(32))
        .map(|at| {
            rng.bits() & if added - at * 32 >= 32 { u32::MAX } else { (1 << (added - at * 32)) - 1 }
        })
        .collect();
    let sum = plan.sum.then(|| Sum::new(added, &signs).unwrap());
    let scales = Scales::new(0.5, 0.001, 3, -7).unwrap();
    let view =
        QuantisedView::new(Model::new(&layers, sum, scales).unwrap()).with_task(plan.task).unwrap();
    let mut bytes = vec![0; view.encoded_len(choice)];
    let len = view.encode(choice, &mut bytes).unwrap();
    bytes.truncate(len);
    bytes
}

/// Two layers over two windows of columns, three classes.
pub(crate) const TINY: Plan<'static> =
    Plan { shapes: &[(300, 4, 3), (4, 3, 2)], rich: false, sum: false, task: Task::Multiclass };

/// A small model of floats with a threshold.
pub(crate) fn floats() -> Vec<u8> {
    floats_with(&[])
}

/// The same with biases.
fn biased() -> Vec<u8> {
    floats_with(&[0.25, -3.0, 0.0, 1e-3, 7.5])
}

fn floats_with(biases: &[f32]) -> Vec<u8> {
    let mut rng = Rng::new(5, 2);
    let (counts, columns, values) = entries(&mut rng, (20, 5, 4));
    let values: Vec<f32> = values.iter().map(|&value| f32::from(value) / 37.0).collect();
    let hidden = model::Csr::new(20, &counts, &columns, &values, Activation::Relu).unwrap();
    let hidden = hidden.with_biases(biases).unwrap();
    let sum = Sum::new(5, &[0b01001]).unwrap();
    let model = model::Model::new(&[model::Layer::Csr(hidden), model::Layer::Sum(sum)]).unwrap();
    let view = View::new(model).with_task(Task::Binary { threshold: -0.25 }).unwrap();
    let mut bytes = vec![0; view.encoded_len()];
    let len = view.encode(&mut bytes).unwrap();
    bytes.truncate(len);
    bytes
}

/// Rows of bytes: all 0, all 255, and random ones.
pub(crate) fn rows(inputs: usize, rows: usize) -> Vec<u8> {
    let mut rng = Rng::new(9, 3);
    let mut bytes: Vec<u8> = (0..inputs * rows).map(|_| rng.bits() as u8).collect();
    bytes[..inputs].fill(0);
    bytes[inputs..2 * inputs].fill(255);
    bytes
}

fn floats_of(bytes: &[u8]) -> Vec<f32> {
    bytes.iter().map(|&byte| f32::from(byte) / 63.0 - 2.0).collect()
}

/// A copy that starts at an even word.
fn aligned(bytes: &[u8]) -> tamis_host::base::file::Aligned {
    tamis_host::base::file::Aligned::new(bytes)
}

/// Outputs and the class, row after row, as little-endian words.
pub(crate) fn expected(model: &[u8], rows: &[u8]) -> Vec<u8> {
    let bytes = aligned(model);
    let mut out = Vec::new();
    if !QuantisedView::is(&bytes) {
        let view = View::parse(&bytes).unwrap();
        let model = view.model();
        let (mut scratch, mut y) = (vec![0.0; model.scratch_len()], vec![0.0; model.outputs()]);
        for row in rows.chunks(model.inputs()) {
            model.predict(&floats_of(row), &mut scratch, &mut y).unwrap();
            y.iter().for_each(|y| out.extend(y.to_bits().to_le_bytes()));
            let class = match view.task() {
                Some(Task::Binary { threshold }) => usize::from(y[0] >= threshold),
                _ => tamis::learn::loss::best(&y),
            };
            out.extend((class as u32).to_le_bytes());
        }
        return out;
    }
    let view = QuantisedView::parse(&bytes).unwrap();
    let model = view.model();
    let (mut scratch, mut y) = (vec![0; model.scratch_len()], vec![0; model.outputs()]);
    for row in rows.chunks(model.inputs()) {
        let class = model.classify(row, &mut scratch, &mut y).unwrap();
        y.iter().for_each(|y| out.extend(y.to_le_bytes()));
        out.extend((class as u32).to_le_bytes());
    }
    out
}

/// Runs a compiler that must say nothing: `cc` or rustc, both of which Rust itself needs to build
/// this test.
fn compile(compiler: &str, folder: &Path, line: &str) {
    let output =
        Command::new(compiler).current_dir(folder).args(line.split_whitespace()).output().unwrap();
    let (out, err) = texts(&output);
    assert!(
        output.status.success() && out.is_empty() && err.is_empty(),
        "{compiler} {line}\n{out}{err}"
    );
}

/// What a program makes of rows.
fn fed(folder: &Path, program: &str, rows: &[u8]) -> Vec<u8> {
    fs::write(folder.join("rows"), rows).unwrap();
    let rows = Stdio::from(File::open(folder.join("rows")).unwrap());
    let output = Command::new(folder.join(program)).stdin(rows).output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    output.stdout
}

const C_FLAGS: &str = "-std=c99 -O2 -Wall -Wextra -Wpedantic -Werror";

/// Exports `model` as C to `q.c`, compiles it by itself and with a program, and compares.
pub(crate) fn check_c(folder: &Path, model: &[u8], what: &str) {
    fs::write(folder.join("q.tamis"), model).unwrap();
    ok(folder, "export q.tamis --format c -o q.c -q");
    let (of, to, read) = if QuantisedView::is(&aligned(model)) {
        ("uint8_t", "int32_t", "x[k] = b[k];")
    } else {
        ("float", "float", "x[k] = (float)b[k] / 63.0f - 2.0f;")
    };
    let text = format!(
        "#include \"q.h\"\n#include <stdio.h>\nint main(void)\n{{\n\
         unsigned char b[Q_INPUTS]; {of} x[Q_INPUTS]; {to} y[Q_OUTPUTS];\n\
         while (fread(b, 1, sizeof b, stdin) == sizeof b) {{\n\
         for (int k = 0; k < Q_INPUTS; k++) {{ {read} }}\n\
         q_predict(x, y); const uint32_t c = q_classify(x);\n\
         fwrite(y, sizeof y, 1, stdout); fwrite(&c, sizeof c, 1, stdout); }}\nreturn 0;\n}}\n"
    );
    fs::write(folder.join("main.c"), text).unwrap();
    compile("cc", folder, &format!("{C_FLAGS} q.c main.c -o program"));
    let rows = rows(inputs_of(model), 400);
    assert!(fed(folder, "./program", &rows) == expected(model, &rows), "{what}");
}

/// Numbers in one row, from the head of a file.
fn inputs_of(model: &[u8]) -> usize {
    u32::from_le_bytes(model[16..20].try_into().unwrap()) as usize
}

#[test]
fn c_export_is_bit_identical_for_every_encoding() {
    let folder = tempfile::tempdir().unwrap();
    let narrow: &[Shape] = &[(40, 6, 5), (6, 4, 3)];
    let wide: &[Shape] = &[(700, 9, 20), (9, 7, 4), (7, 3, 3)];
    let long: &[Shape] = &[(5000, 4, 6), (4, 3, 2)];
    let kinds = [
        (false, false, Task::Multiclass),
        (true, true, Task::BINARY),
        (true, false, Task::Multiclass),
        (false, true, Task::BINARY),
    ];
    for (at, (name, encoding)) in NAMES.into_iter().enumerate() {
        for (seed, shapes) in [narrow, wide, long].into_iter().enumerate() {
            for (rich, sum, task) in [kinds[(at + seed) % 4], kinds[(at + seed + 1) % 4]] {
                let plan = Plan { shapes, rich, sum, task };
                let model = integers(seed as u64, &plan, Choice::Prefer(encoding));
                check_c(folder.path(), &model, &format!("{name} {shapes:?} {rich} {sum}"));
            }
        }
    }
    let plan = Plan { shapes: &[(90, 70, 3)], rich: false, sum: true, task: Task::BINARY };
    check_c(folder.path(), &integers(1, &plan, Choice::Fastest), "signs of several words");
    check_c(folder.path(), &biased(), "biases");
    check_c(folder.path(), &floats(), "floats");
    // Where products and sums may be fused the bits are the same.
    compile(
        "cc",
        folder.path(),
        "-std=gnu99 -O3 -march=native -ffp-contract=fast q.c main.c -o program",
    );
    let rows = rows(20, 2000);
    assert!(fed(folder.path(), "./program", &rows) == expected(&floats(), &rows));
}

#[test]
fn tableless_rust_export_is_bit_identical_to_model() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let folder = tempfile::tempdir().unwrap();
    let plans = [
        Plan {
            shapes: &[(784, 10, 60), (10, 10, 6)],
            rich: false,
            sum: false,
            task: Task::Multiclass,
        },
        Plan { shapes: &[(5000, 9, 20), (9, 4, 3)], rich: true, sum: true, task: Task::BINARY },
        Plan { shapes: &[(90, 70, 3)], rich: false, sum: true, task: Task::BINARY },
        Plan {
            shapes: &[(60, 9, 20), (9, 7, 4), (7, 3, 3)],
            rich: true,
            sum: false,
            task: Task::Multiclass,
        },
    ];
    let text = "mod q;\nuse std::io::{Read, Write};\nfn main() {\n\
         let (mut x, mut out) = ([0; q::INPUTS], std::io::stdout().lock());\n\
         while std::io::stdin().read_exact(&mut x).is_ok() {\n\
         for y in q::predict(&x) { out.write_all(&y.to_le_bytes()).unwrap(); }\n\
         out.write_all(&(q::classify(&x) as u32).to_le_bytes()).unwrap();\n}\n}\n";
    fs::write(folder.path().join("main.rs"), text).unwrap();
    for plan in &plans {
        let model = integers(11, plan, Choice::Fastest);
        fs::write(folder.path().join("q.tamis"), &model).unwrap();
        ok(folder.path(), "export q.tamis --format rust --straight-line -o q.rs -q");
        let text = fs::read_to_string(folder.path().join("q.rs")).unwrap();
        assert!(!text.contains("unsafe") && !text.contains("static ") && !text.contains("use "));
        let rows = rows(plan.shapes[0].0, 300);
        for flags in ["-Copt-level=3", "-Copt-level=0 -Cdebug-assertions=on"] {
            compile(
                &rustc,
                folder.path(),
                &format!("--edition 2024 -Dwarnings {flags} main.rs -o program"),
            );
            assert!(
                fed(folder.path(), "./program", &rows) == expected(&model, &rows),
                "{:?}",
                plan.shapes
            );
        }
    }
}

/// Outputs and class of a module on rows.
macro_rules! outputs {
    ($module:ident, $rows:expr) => {{
        let mut out = Vec::new();
        for row in $rows.as_chunks::<{ $module::INPUTS }>().0 {
            for y in $module::predict(row) {
                out.extend(y.to_le_bytes());
            }
            out.extend(($module::classify(row) as u32).to_le_bytes());
        }
        out
    }};
}

#[test]
fn table_modules_are_unchanged_and_bit_identical() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(300, 300);
    for (name, encoding) in NAMES {
        let model = integers(3, &TINY, Choice::Prefer(encoding));
        fs::write(folder.path().join("q.tamis"), &model).unwrap();
        let report = json(folder.path(), "export q.tamis --format rust -o q.rs");
        assert_eq!(report["encodings"][0], json!(encoding.name()));
        assert_eq!((&report["files"], &report["name"]), (&json!(["q.rs"]), &json!(null)));
        golden(&folder.path().join("q.rs"), &format!("{name}.rs"));
    }
    let model = floats();
    fs::write(folder.path().join("f.tamis"), &model).unwrap();
    ok(folder.path(), "export f.tamis --format rust -o f.rs");
    golden(&folder.path().join("f.rs"), "floats.rs");
    fs::write(folder.path().join("b.tamis"), biased()).unwrap();
    ok(folder.path(), "export b.tamis --format rust -o b.rs");
    golden(&folder.path().join("b.rs"), "biased.rs");
    let found: [Vec<u8>; 3] = [outputs!(dense, rows), outputs!(mask, rows), outputs!(blocks, rows)];
    for ((name, encoding), found) in NAMES.into_iter().zip(found) {
        assert!(found == expected(&integers(3, &TINY, Choice::Prefer(encoding)), &rows), "{name}");
    }
    let bytes = &rows[..20 * 200];
    assert!(outputs!(floats, floats_of(bytes)) == expected(&model, bytes));
    assert!(outputs!(biased, floats_of(bytes)) == expected(&biased(), bytes));
    ok(folder.path(), "export b.tamis --format tamis --encoding blocks -o w.tamis -q");
    let windows = fs::read(folder.path().join("w.tamis")).unwrap();
    assert!(windows != biased() && expected(&windows, bytes) == expected(&biased(), bytes));
}

#[test]
fn tableless_rust_and_c_match_golden_files() {
    let folder = tempfile::tempdir().unwrap();
    let model = integers(3, &TINY, Choice::Prefer(Encoding::Blocks));
    fs::write(folder.path().join("tiny.tamis"), &model).unwrap();
    fs::write(folder.path().join("floats.tamis"), floats()).unwrap();
    let report = json(folder.path(), "export tiny.tamis --format rust --straight-line -o q.rs");
    assert_eq!((&report["straight_line"], &report["table_bytes"]), (&json!(true), &json!(0)));
    golden(&folder.path().join("q.rs"), "straight_line.rs");
    let report = json(folder.path(), "export tiny.tamis --format c -o out/c");
    assert_eq!(report["files"], json!(["out/c/tiny.c", "out/c/tiny.h"]));
    assert_eq!(
        (&report["name"], &report["nnz"], &report["scratch_bytes"]),
        (&json!("tiny"), &json!(18), &json!(20))
    );
    ok(folder.path(), "export floats.tamis --format c --name tiny -o floats.c");
    for (file, kept) in [
        ("out/c/tiny.c", "tiny.c"),
        ("out/c/tiny.h", "tiny.h"),
        ("floats.c", "floats.c"),
        ("floats.h", "floats.h"),
    ] {
        golden(&folder.path().join(file), kept);
    }
    let rows = rows(300, 300);
    let mut found = Vec::new();
    for row in rows.as_chunks().0 {
        straight_line::predict(row).iter().for_each(|y| found.extend(y.to_le_bytes()));
        found.extend((straight_line::classify(row) as u32).to_le_bytes());
    }
    assert!(found == expected(&model, &rows));
}

/// Compares with the golden file, or writes it where `UPDATE_GOLDEN` is set.
fn golden(file: &Path, name: &str) {
    let path = format!("{}/tests/golden/export/{name}", env!("CARGO_MANIFEST_DIR"));
    let found = fs::read_to_string(file).unwrap();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
        fs::write(&path, &found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    assert_eq!(found, expected, "{name}: run with UPDATE_GOLDEN=1 after looking at it");
}

#[test]
fn a_trained_model_is_quantised_and_exported() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), "generate digits --samples 300 --seed 1 -o d -q");
    let train =
        "train --data d/X.npy --labels d/y.npy --task multiclass --hidden 8 --nnz 80 --epochs 5";
    ok(folder.path(), &format!("{train} -o digits.tamis -q"));
    ok(folder.path(), "quantize digits.tamis --data d/X.npy --encoding fastest -o small.tamis -q");
    // Rounding takes the rows of a model in windows, and gives the same file.
    ok(folder.path(), "export digits.tamis --format tamis --encoding blocks -o blocks.tamis -q");
    ok(folder.path(), "quantize blocks.tamis --data d/X.npy --encoding fastest -o again.tamis -q");
    let bytes = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert_ne!(bytes("blocks.tamis"), bytes("digits.tamis"));
    assert_eq!(bytes("again.tamis"), bytes("small.tamis"));
    ok(
        folder.path(),
        "finetune blocks.tamis --data d/X.npy --labels d/y.npy --epochs 2 -o tuned.tamis -q",
    );
    for line in [
        "export small.tamis --format rust -o digits.rs",
        "export small.tamis --format rust --straight-line -o digits.rs",
        "export small.tamis --format c -o digits.c",
        "export digits.tamis --format c --name digits -o firmware/model",
    ] {
        let said = ok(folder.path(), line);
        assert!(said.starts_with("Saved ") && said.contains("weights"), "{said}");
    }
    assert!(folder.path().join("firmware/model/digits.h").exists());
    for name in ["digits", "small"] {
        let model = fs::read(folder.path().join(format!("{name}.tamis"))).unwrap();
        check_c(folder.path(), &model, name);
    }
}

#[test]
fn a_model_of_numbers_has_no_classes() {
    let folder = prepared();
    ok(folder.path(), "export m.tamis --format c -o m.c");
    ok(folder.path(), "export m.tamis --format rust -o m.rs");
    for name in ["m.c", "m.h", "m.rs"] {
        let text = fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(text.contains("predict") && !text.contains("classify"), "{text}");
    }
}

#[test]
fn what_cannot_be_exported_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("f.tamis"), floats()).unwrap();
    fs::write(folder.path().join("1st.tamis"), floats()).unwrap();
    let large =
        Plan { shapes: &[(30_000, 3, 22_000)], rich: false, sum: false, task: Task::Multiclass };
    fs::write(folder.path().join("large.tamis"), integers(1, &large, Choice::Smallest)).unwrap();
    let wrong = |line: &str, words: &str| {
        let error = fails(folder.path(), line);
        assert!(error.contains(words), "{line}: {error}");
    };
    wrong("export f.tamis --format rust --straight-line -o f.rs", "models of integers");
    wrong("export large.tamis --format rust --straight-line -o f.rs", "at most 65536 weights");
    wrong("export f.tamis --format c --straight-line -o f.c", "--format rust");
    wrong("export f.tamis --format rust --name f -o f.rs", "leave --name out");
    wrong("export f.tamis --format rust -o f.c", "ends in .rs");
    wrong("export f.tamis --format c -o f.rs", "or a folder");
    wrong("export f.tamis --format c -o my-model.c", "--name");
    wrong("export 1st.tamis --format c -o folder", "\"1st\"");
    wrong("export f.tamis --format c --name _f -o f.c", "\"_f\"");
    wrong("export f.tamis --format c --name a_name_that_is_far_too_long -o f.c", "at most 22");
    wrong("export f.tamis --format c -o missing/f.c", "mkdir");
    wrong("export f.tamis --format rust -o missing/f.rs", "mkdir");
    fs::copy(folder.path().join("f.tamis"), folder.path().join("f.rs")).unwrap();
    wrong("export f.rs --format rust -o f.rs", "also an input");
    wrong("export none.tamis --format c -o folder", "none.tamis");
    let output = run(folder.path(), &["export", "f.tamis", "-o", "f.c"]);
    assert_eq!(output.status.code(), Some(2));
}
