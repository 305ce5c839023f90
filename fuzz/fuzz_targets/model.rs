//! Any bytes as a model: reading them never panics; what is read predicts, and encodes to the same
//! bytes. From a chip on a bus the same is read and refused, and predictions are the same.
//!
//! A checksum stops nearly every changed input at the door, so the same bytes are tried again with
//! magic, version, length and checksum put right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis::data::spi::SpiFlash;
use tamis::infer::model::{Model, Scaled};
use tamis::infer::quantised::Encoding;
use tamis::store::stream;
use tamis::store::wire::{
    Aligned, Choice, MAGIC, OwnedModel, QuantisedView, VERSION, View, checksum, encoded_len,
};
use tamis_tests::simulated::Chip;

/// The longest input; scratch and predictions of what fits are small.
const MOST: usize = 4096;

fuzz_target!(|bytes: &[u8]| {
    let mut buffer = Aligned([0; MOST]);
    let len = bytes.len().min(MOST);
    let (bytes, buffer) = (&bytes[..len], &mut buffer.0[..len]);
    buffer.copy_from_slice(bytes);
    assert!(encoded_len(bytes).is_ok() || View::parse(buffer).is_err());
    check(file(buffer));
    check_integers(file(buffer));
    if len >= 24 {
        mend(buffer);
        check(buffer);
        check_integers(buffer);
        assert_eq!(OwnedModel::<MOST>::from_bytes(buffer).is_ok(), View::parse(buffer).is_ok());
    }
});

/// The bytes up to the length that they say: a chip may hold others behind a file, where memory is
/// given the file alone.
fn file(bytes: &[u8]) -> &[u8] {
    encoded_len(bytes).ok().and_then(|len| bytes.get(..len)).unwrap_or(bytes)
}

fn mend(bytes: &mut [u8]) {
    let len = bytes.len() as u32;
    bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
    bytes[8..12].copy_from_slice(&len.to_le_bytes());
    let crc = checksum(bytes);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
}

/// The bytes as a chip.
fn chip(bytes: &[u8]) -> SpiFlash<Chip<'_>> {
    SpiFlash::new(Chip::new(bytes), bytes.len() as u32)
}

/// Whether an error is that of a sound layer in an encoding that cannot be streamed.
fn is_of_encoding<S>(error: &tamis::Error<S>) -> bool {
    matches!(error, tamis::Error::Format { what, .. } if what.starts_with("layer in "))
}

/// Checks that a chip with these bytes predicts so, or is refused where memory is.
fn check_streamed(bytes: &[u8], expected: Option<(&[f32], &[f32])>) {
    let mut buffer = [0; 24];
    match (stream::Model::open(chip(bytes), 0, &mut buffer), expected) {
        (Ok(mut model), Some((row, expected))) => {
            let (mut scratch, mut out) =
                (vec![0.0; model.scratch_len()], vec![0.0; model.outputs()]);
            model.predict(row, &mut buffer, &mut scratch, &mut out).expect("a row of floats");
            let is_same =
                |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
            assert!(out.len() == expected.len() && out.iter().zip(expected).all(is_same));
        }
        (Ok(_), None) => panic!("a chip with what memory refuses"),
        (Err(error), expected) => {
            assert!(expected.is_none() || is_of_encoding(&error), "{error:?}")
        }
    }
}

fn check(bytes: &[u8]) {
    let Ok(view) = View::parse(bytes) else { return check_streamed(bytes, None) };
    let mut again = vec![0xAA; view.encoded_len()];
    assert_eq!(view.encode(&mut again), Ok(bytes.len()));
    assert_eq!(again, bytes);
    if let Ok(Some(names)) = view.names() {
        // What was found whole is read without an error.
        let classes = names.classes().len();
        assert_eq!(names.classes().count(), classes);
        assert_eq!(names.class(classes), None);
        names
            .columns()
            .for_each(|column| assert_eq!(column.categories.count(), column.categories.len()));
    }
    let (row, expected) = predict(view.model());
    check_streamed(bytes, Some((&row, &expected)));
}

/// The same of integers; and every encoding predicts the same.
fn check_integers(bytes: &[u8]) {
    let mut buffer = [0; 24];
    let streamed = stream::QuantisedModel::open(chip(bytes), 0, &mut buffer);
    let Ok(view) = QuantisedView::parse(bytes) else {
        assert!(streamed.is_err());
        return;
    };
    assert!(QuantisedView::is(bytes) && View::parse(bytes).is_err());
    let predict = |view: &QuantisedView<'_>| {
        let model = view.model();
        let row: Vec<u8> = (0..model.inputs()).map(|i| (i * 37 % 251) as u8).collect();
        let (mut scratch, mut out) = (vec![-1; model.scratch_len()], vec![-1; model.outputs()]);
        model.classify(&row, &mut scratch, &mut out).expect("a row of bytes");
        out
    };
    let expected = predict(&view);
    match streamed {
        Ok(mut model) => {
            let row: Vec<u8> = (0..model.inputs()).map(|i| (i * 37 % 251) as u8).collect();
            let (mut scratch, mut out) = (vec![-1; model.scratch_len()], vec![-1; model.outputs()]);
            model.classify(&row, &mut buffer, &mut scratch, &mut out).expect("a row of bytes");
            assert_eq!(out, expected);
        }
        Err(error) => assert!(is_of_encoding(&error), "{error:?}"),
    }
    let others = Encoding::ALL.into_iter().map(Choice::Prefer);
    for choice in [Choice::Keep, Choice::Smallest, Choice::Fastest].into_iter().chain(others) {
        let len = view.encoded_len(choice);
        // A small file may say that it has millions of columns that are all empty.
        if len > 16 * MOST {
            continue;
        }
        let mut again = vec![0xAA; len];
        assert_eq!(view.encode(choice, &mut again), Ok(len));
        assert!(choice != Choice::Keep || again == bytes);
        let again = tamis_host::base::file::Aligned::new(&again);
        assert_eq!(predict(&QuantisedView::parse(&again).expect("what was written")), expected);
    }
}

/// A row, and what is predicted of it.
fn predict(model: &Model<'_>) -> (Vec<f32>, Vec<f32>) {
    let cost = model.cost();
    assert_eq!(cost.ram_bytes, model.scratch_len() * 4);
    let row: Vec<u8> = (0..model.inputs()).map(|i| (i * 37 % 251) as u8).collect();
    let floats: Vec<f32> = row.iter().map(|&byte| f32::from(byte)).collect();
    // A row count is only a number in the file, and counts of 0 take two bytes: outputs stay below
    // MOST.
    let mut scratch = vec![0.0; model.scratch_len()];
    let (mut a, mut b, mut c) =
        (vec![0.0; model.outputs()], vec![0.0; model.outputs()], vec![0.0; model.outputs()]);
    model.predict(&floats, &mut scratch, &mut a).expect("floats");
    model.predict_u8(&row, &mut scratch, &mut b).expect("bytes");
    model
        .predict_from(&Scaled { bytes: &row, scale: 1.0 }, &mut scratch, &mut c)
        .expect("scaled bytes");
    let bits = |out: &[f32]| out.iter().map(|f| f.to_bits()).collect::<Vec<_>>();
    assert!(a.iter().any(|f| f.is_nan()) || (bits(&a) == bits(&b) && bits(&a) == bits(&c)));
    (floats, a)
}
