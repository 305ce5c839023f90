//! A deep network that recipe `dynamic` has trained, as 8-bit integers: what the boards run.
//!
//! `UPDATE_GOLDEN=1` trains it anew and writes it; it is compiled the next time.

use std::fs;
use std::ops::ControlFlow::Continue;

use tamis::learn::loss::best;
use tamis_host::convert::{ExportForm, export};
use tamis_host::data::{Problem, Task, Values, digits};
use tamis_host::model::{ModelFile, QuantiseOptions, quantise};
use tamis_host::operator::Stop;
use tamis_host::train::{DynamicOptions, Start, train_with};
use tamis_host::{Budget, Options, Recipe};
use tamis_tests::deployed::trained_300;

use crate::deployed::{folder, golden};

const SIDE: usize = 8;

fn trained() -> Vec<u8> {
    let (data, labels) = digits::generate(2000, SIDE, 5).unwrap();
    let labels: Vec<f32> = labels.iter().map(|&label| label.into()).collect();
    let problem = Problem { data: data.clone(), labels, task: Task::Multiclass };
    let options = Options {
        hidden: vec![24, 12],
        recipe: Recipe::Dynamic(DynamicOptions { epochs: Some(60), ..DynamicOptions::default() }),
        ..Options::new(Budget::nnz(300))
    };
    let found = train_with(problem, &options, Start::Zero, &Stop::new(), |_| Continue(())).unwrap();
    assert_eq!(found.report.nnz, 300);
    quantise(&found.model, &data, None, &QuantiseOptions::default()).unwrap().model
}

#[test]
fn model_of_two_hidden_layers_predicts_as_its_export_does() {
    let file = folder().join("trained_300.tamis");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&file, trained()).unwrap();
    }
    let model = ModelFile::load(&file).unwrap();
    golden("trained_300.rs", &export(&model, &ExportForm::Rust).unwrap().files.remove(0).1);
    let (data, labels) = digits::generate(1000, SIDE, 6).unwrap();
    let Values::U8(pixels) = &data.values else { panic!("digits are bytes") };
    let of_file = model.predict(&data).unwrap();
    let mut right = 0;
    let rows = pixels.as_chunks().0.iter().zip(&labels).zip(of_file.chunks(10));
    for ((picture, &label), wanted) in rows {
        let own = best(&trained_300::predict(picture).map(|y| y as f32));
        assert_eq!(own, best(wanted));
        right += usize::from(own == usize::from(label));
    }
    assert!(right > 850, "{right} of 1000");
}
