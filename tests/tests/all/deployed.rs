//! The models of `tamis_tests::deployed` and what is exported of them are as they were, and predict
//! as the files do.
//!
//! `UPDATE_GOLDEN=1` writes them; they are compiled the next time.

use std::fs;
use std::path::{Path, PathBuf};

use tamis::base::rng::Rng;
use tamis::infer::model::{self, Activation};
use tamis::infer::quantised::{self, Encoding, Layer, Rescale, Scales, Weights};
use tamis::store::wire::{Choice, QuantisedView, Task, View};
use tamis_host::base::file::Aligned;
use tamis_host::convert::{ExportForm, export};
use tamis_host::model::{Encodings, ModelFile};
use tamis_tests::deployed::{self, INPUTS, OUTPUTS};

const HIDDEN: usize = 10;
/// Weights of the last layer.
const LAST: usize = HIDDEN * OUTPUTS;

/// Columns all over each row, and weights that are not 0.
struct Drawn {
    counts: Vec<u16>,
    columns: Vec<u16>,
    values: Vec<i8>,
}

fn drawn(seed: u64, inputs: usize, rows: usize, nonzeros: usize) -> Drawn {
    let mut rng = Rng::new(seed, 1);
    let (fan, mut columns, mut values) = (nonzeros / rows, Vec::new(), Vec::new());
    for _ in 0..rows {
        let width = inputs / fan;
        columns.extend((0..fan).map(|k| (k * width) as u16 + rng.below(width as u32) as u16));
        values.extend(
            (0..fan).map(|_| (rng.below(127) as i8 + 1) * if rng.below(2) == 0 { 1 } else { -1 }),
        );
    }
    Drawn { counts: vec![fan as u16; rows], columns, values }
}

fn layers(nonzeros: usize) -> [Drawn; 2] {
    [drawn(1, INPUTS, HIDDEN, nonzeros - LAST), drawn(2, HIDDEN, OUTPUTS, LAST)]
}

/// The bytes of a file of integers.
fn integers(nonzeros: usize, choice: Choice) -> Vec<u8> {
    let [first, last] = layers(nonzeros);
    let factor = [Rescale::near(1.0 / 4096.0).unwrap().bits()];
    let mask = |inputs, drawn: &Drawn| {
        let outputs = drawn.counts.len();
        let mut bits = vec![0; quantised::Mask::words(inputs, outputs)];
        quantised::Mask::mark(inputs, &drawn.counts, &drawn.columns, &mut bits);
        let mask = quantised::Mask::new(inputs, outputs, bits.leak(), drawn.values.clone().leak());
        Weights::Mask(mask.unwrap())
    };
    let layers = [
        Layer::new(mask(INPUTS, &first), &factor, &[], Activation::Relu).unwrap(),
        Layer::new(mask(HIDDEN, &last), &[], &[], Activation::Identity).unwrap(),
    ];
    let model = quantised::Model::new(&layers, None, Scales::new(1.0 / 255.0, 0.01, 0, 0).unwrap())
        .unwrap();
    let view = QuantisedView::new(model).with_task(Task::Multiclass).unwrap();
    let mut bytes = vec![0; view.encoded_len(choice)];
    view.encode(choice, &mut bytes).unwrap();
    bytes
}

/// The bytes of a file whose first layer is in the fastest encoding, and whose last layer, which is
/// full, is dense: programs of two kernels.
fn tables(nonzeros: usize) -> Vec<u8> {
    let bytes = integers(nonzeros, Choice::Fastest);
    let bytes = Aligned::new(&bytes);
    let fastest = QuantisedView::parse(&bytes).unwrap();
    let [first, _] = fastest.model().layers() else { panic!("two layers") };
    let [_, full] = layers(nonzeros);
    let dense = quantised::Dense::new(HIDDEN, OUTPUTS, &full.values).unwrap();
    let last = Layer::new(Weights::Dense(dense), &[], &[], Activation::Identity).unwrap();
    let layers = [*first, last];
    let model = quantised::Model::new(&layers, None, fastest.model().scales()).unwrap();
    let view = QuantisedView::new(model).with_task(Task::Multiclass).unwrap();
    let mut bytes = vec![0; view.encoded_len(Choice::Keep)];
    view.encode(Choice::Keep, &mut bytes).unwrap();
    bytes
}

/// The bytes of a file of floats.
fn floats(nonzeros: usize) -> Vec<u8> {
    let layers = layers(nonzeros);
    let scaled =
        |drawn: &Drawn| drawn.values.iter().map(|&v| f32::from(v) / 311.0).collect::<Vec<f32>>();
    let values = layers.each_ref().map(scaled);
    let csr = |at: usize, inputs, activation| {
        let Drawn { counts, columns, .. } = &layers[at];
        model::Layer::Csr(
            model::Csr::new(inputs, counts, columns, &values[at], activation).unwrap(),
        )
    };
    let chain = [csr(0, INPUTS, Activation::Relu), csr(1, HIDDEN, Activation::Identity)];
    let view = View::new(model::Model::new(&chain).unwrap()).with_task(Task::Multiclass).unwrap();
    let mut bytes = vec![0; view.encoded_len()];
    view.encode(&mut bytes).unwrap();
    bytes
}

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/deployed")
}

/// Compares with the file that is kept, or writes it.
pub(crate) fn golden(name: &str, found: &[u8]) {
    let path = folder().join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(folder()).unwrap();
        fs::write(&path, found).unwrap();
    }
    let kept = fs::read(&path).unwrap_or_default();
    assert!(kept == found, "{}: run with UPDATE_GOLDEN=1 after looking at it", path.display());
}

#[test]
fn model_files_and_their_exports_are_unchanged() {
    let exported = |name: &str, bytes: &[u8], form: &ExportForm, kept: &str| {
        golden(&format!("{name}.tamis"), bytes);
        let file = ModelFile::load(folder().join(format!("{name}.tamis"))).unwrap();
        let files = export(&file, form).unwrap().files;
        golden(&format!("{kept}.rs"), &files[0].1);
    };
    for nonzeros in [1000, 500, 200] {
        let (bytes, tables) = (tables(nonzeros), format!("tables_{nonzeros}"));
        exported(&tables, &bytes, &ExportForm::Rust, &tables);
        if nonzeros > 200 {
            exported(&tables, &bytes, &ExportForm::StraightLine, &format!("straight_{nonzeros}"));
            let name = format!("rows_{nonzeros}");
            exported(&name, &floats(nonzeros), &ExportForm::Rust, &name);
            let rows = ModelFile::load(folder().join(format!("{name}.tamis"))).unwrap();
            let blocks = ExportForm::Tamis(Encodings::Chosen(Choice::Prefer(Encoding::Blocks)));
            let blocks = export(&rows, &blocks).unwrap().files.remove(0).1;
            let name = format!("floats_{nonzeros}");
            exported(&name, &blocks, &ExportForm::Rust, &name);
        }
    }
    let bytes = integers(1000, Choice::Prefer(Encoding::Blocks));
    exported("blocks_1000", &bytes, &ExportForm::Rust, "blocks_1000");
}

/// What a file predicts on the row.
fn of_file(bytes: &[u8]) -> [i32; OUTPUTS] {
    let bytes = Aligned::new(bytes);
    let view = QuantisedView::parse(&bytes).unwrap();
    let mut y = [0; OUTPUTS];
    view.model().predict(&deployed::ROW, &mut vec![0; view.model().scratch_len()], &mut y).unwrap();
    y
}

#[test]
fn every_form_predicts_the_bits_of_its_file() {
    let [many, some, few] =
        [1000, 500, 200].map(|nonzeros| of_file(&integers(nonzeros, Choice::Smallest)));
    assert_ne!(many, some);
    assert!(many.iter().any(|&y| y != 0));
    let row = &deployed::ROW;
    assert_eq!(deployed::tables_1000::predict(row), many);
    assert_eq!(deployed::blocks_1000::predict(row), many);
    assert_eq!(deployed::straight_1000::predict(row), many);
    assert_eq!(deployed::embedded(row), many);
    assert_eq!(of_file(deployed::INTEGERS), many);
    assert_eq!(deployed::tables_500::predict(row), some);
    assert_eq!(deployed::straight_500::predict(row), some);
    assert_eq!(deployed::tables_200::predict(row), few);

    let bytes = Aligned::new(&floats(1000));
    let (mut y, mut scratch) = ([0.0; OUTPUTS], [0.0; HIDDEN]);
    View::parse(&bytes)
        .unwrap()
        .model()
        .predict(&deployed::FLOAT_ROW, &mut scratch, &mut y)
        .unwrap();
    assert_eq!(
        deployed::embedded_floats(&deployed::FLOAT_ROW).map(f32::to_bits),
        y.map(f32::to_bits)
    );
    // Rows and blocks add up in the same order.
    assert_eq!(
        deployed::floats_1000::predict(&deployed::FLOAT_ROW).map(f32::to_bits),
        y.map(f32::to_bits)
    );
    assert_eq!(
        deployed::rows_1000::predict(&deployed::FLOAT_ROW).map(f32::to_bits),
        y.map(f32::to_bits)
    );
}
