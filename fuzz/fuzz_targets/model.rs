//! Any bytes as a model: reading them never panics; what is read predicts, and encodes to the same bytes.
//!
//! A checksum stops nearly every changed input at the door, so the same bytes are tried again with magic, version,
//! length and checksum put right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis::model::{Model, Scaled};
use tamis::quantised::Encoding;
use tamis::wire::{Aligned, Choice, MAGIC, OwnedModel, QuantisedView, VERSION, View, checksum, encoded_len};

/// The longest input; scratch and predictions of what fits are small.
const MOST: usize = 4096;

fuzz_target!(|bytes: &[u8]| {
    let mut buffer = Aligned([0; MOST]);
    let len = bytes.len().min(MOST);
    let (bytes, buffer) = (&bytes[..len], &mut buffer.0[..len]);
    buffer.copy_from_slice(bytes);
    assert!(encoded_len(bytes).is_ok() || View::parse(buffer).is_err());
    check(buffer);
    check_integers(buffer);
    if len >= 24 {
        mend(buffer);
        check(buffer);
        check_integers(buffer);
        assert_eq!(OwnedModel::<MOST>::from_bytes(buffer).is_ok(), View::parse(buffer).is_ok());
    }
});

fn mend(bytes: &mut [u8]) {
    let len = bytes.len() as u32;
    bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
    bytes[8..12].copy_from_slice(&len.to_le_bytes());
    let crc = checksum(bytes);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
}

fn check(bytes: &[u8]) {
    let Ok(view) = View::parse(bytes) else { return };
    let mut again = vec![0xAA; view.encoded_len()];
    assert_eq!(view.encode(&mut again), Ok(bytes.len()));
    assert_eq!(again, bytes);
    predict(view.model());
}

/// The same of integers; and every encoding predicts the same.
fn check_integers(bytes: &[u8]) {
    let Ok(view) = QuantisedView::parse(bytes) else { return };
    assert!(QuantisedView::is(bytes) && View::parse(bytes).is_err());
    let predict = |view: &QuantisedView<'_>| {
        let model = view.model();
        let row: Vec<u8> = (0..model.inputs()).map(|i| (i * 37 % 251) as u8).collect();
        let (mut scratch, mut out) = (vec![-1; model.scratch_len()], vec![-1; model.outputs()]);
        model.classify(&row, &mut scratch, &mut out).expect("a row of bytes");
        out
    };
    let expected = predict(&view);
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
        let again = tamis_host::file::Aligned::new(&again);
        assert_eq!(predict(&QuantisedView::parse(&again).expect("what was written")), expected);
    }
}

fn predict(model: &Model<'_>) {
    let cost = model.cost();
    assert_eq!(cost.ram_bytes, model.scratch_len() * 4);
    let row: Vec<u8> = (0..model.inputs()).map(|i| (i * 37 % 251) as u8).collect();
    let floats: Vec<f32> = row.iter().map(|&byte| f32::from(byte)).collect();
    // A row count is only a number in the file, and counts of 0 take two bytes: outputs stay below MOST.
    let mut scratch = vec![0.0; model.scratch_len()];
    let (mut a, mut b, mut c) =
        (vec![0.0; model.outputs()], vec![0.0; model.outputs()], vec![0.0; model.outputs()]);
    model.predict(&floats, &mut scratch, &mut a).expect("floats");
    model.predict_u8(&row, &mut scratch, &mut b).expect("bytes");
    model.predict_from(&Scaled { bytes: &row, scale: 1.0 }, &mut scratch, &mut c).expect("scaled bytes");
    let bits = |out: &[f32]| out.iter().map(|f| f.to_bits()).collect::<Vec<_>>();
    assert!(a.iter().any(|f| f.is_nan()) || (bits(&a) == bits(&b) && bits(&a) == bits(&c)));
}
