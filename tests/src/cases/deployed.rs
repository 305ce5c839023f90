//! A model as it is deployed: exported as tables and as code, and read from its file. All give the
//! same numbers.

use super::digest::{Digest, Probe};
use super::train::{LABELS, PIXELS};
use crate::deployed::{
    self, FLOAT_ROW, FLOATS, INTEGERS, OUTPUTS, ROW, blocks_1000, floats_500, floats_1000,
    rows_500, rows_1000, straight_500, straight_1000, tables_200, tables_500, tables_1000,
    trained_300,
};
use core::hint::black_box;
use tamis::store::wire::{QuantisedView, View};

/// Counts one call; its outputs go into the digest.
macro_rules! counted {
    ($probe:ident, $digest:ident, $name:expr, $units:literal, $predict:expr, $row:expr, $word:expr) => {{
        let row = black_box($row);
        // Not inlined, so that the stack is that of one prediction.
        let predict = black_box($predict as fn(&_) -> [_; OUTPUTS]);
        $probe.start();
        let y = predict(row);
        $probe.stop($name, $units);
        y.iter().for_each(|&y| $digest.word($word(y)));
        y
    }};
}

/// Nothing: its stack is that of the program itself.
pub(super) fn nothing<P: Probe>(_probe: &mut P) -> u32 {
    Digest::default().value()
}

/// Modules of tables.
pub(super) fn tables<P: Probe>(probe: &mut P) -> u32 {
    let mut digest = Digest::default();
    let word = |y: i32| y as u32;
    counted!(probe, digest, "tables, 1000", 1000, tables_1000::predict, &ROW, word);
    counted!(probe, digest, "tables, 500", 500, tables_500::predict, &ROW, word);
    counted!(probe, digest, "tables, 200", 200, tables_200::predict, &ROW, word);
    digest.value()
}

/// A module of tables with one encoding.
pub(super) fn blocks<P: Probe>(probe: &mut P) -> u32 {
    let mut digest = Digest::default();
    let word = |y: i32| y as u32;
    counted!(probe, digest, "blocks only, 1000", 1000, blocks_1000::predict, &ROW, word);
    digest.value()
}

/// Files that the compiler has read; 0 unless they predict as the modules do.
pub(super) fn embedded<P: Probe>(probe: &mut P) -> u32 {
    let mut digest = Digest::default();
    let word = |y: i32| y as u32;
    let y = counted!(probe, digest, "embedded, 1000", 1000, deployed::embedded, &ROW, word);
    let name = "embedded floats, 1000";
    counted!(probe, digest, name, 1000, deployed::embedded_floats, &FLOAT_ROW, f32::to_bits);
    if y == tables_1000::predict(&ROW) { digest.value() } else { 0 }
}

/// Modules without tables.
pub(super) fn straight<P: Probe>(probe: &mut P) -> u32 {
    let mut digest = Digest::default();
    let word = |y: i32| y as u32;
    counted!(probe, digest, "code, 1000", 1000, straight_1000::predict, &ROW, word);
    counted!(probe, digest, "code, 500", 500, straight_500::predict, &ROW, word);
    digest.value()
}

/// A deep network that was trained from nothing, on pictures that it has not seen; 0 unless it tells eight of ten.
pub(super) fn trained<P: Probe>(probe: &mut P) -> u32 {
    const PICTURES: usize = 40;
    let mut digest = Digest::default();
    let mut right = 0;
    probe.start();
    for (picture, &label) in PIXELS.as_chunks().0.iter().zip(&LABELS).take(PICTURES) {
        let y = trained_300::predict(black_box(picture));
        y.iter().for_each(|&y| digest.word(y as u32));
        let class = (0..OUTPUTS).rev().max_by_key(|&k| y.get(k).copied());
        right += usize::from(class == Some(label as usize));
    }
    probe.stop("deep, trained, a picture", PICTURES as u32);
    if 10 * right >= 8 * PICTURES { digest.value() } else { 0 }
}

/// Modules of tables of floats.
pub(super) fn floats<P: Probe>(probe: &mut P) -> u32 {
    let mut digest = Digest::default();
    counted!(
        probe,
        digest,
        "float tables, 1000",
        1000,
        floats_1000::predict,
        &FLOAT_ROW,
        f32::to_bits
    );
    let some = counted!(
        probe,
        digest,
        "float tables, 500",
        500,
        floats_500::predict,
        &FLOAT_ROW,
        f32::to_bits
    );
    counted!(probe, digest, "float rows, 1000", 1000, rows_1000::predict, &FLOAT_ROW, f32::to_bits);
    let same = counted!(
        probe,
        digest,
        "float rows, 500",
        500,
        rows_500::predict,
        &FLOAT_ROW,
        f32::to_bits
    );
    if some == same { digest.value() } else { 0 }
}

/// The file of integers; 0 if it is refused.
pub(super) fn file<P: Probe>(probe: &mut P) -> u32 {
    let mut digest = Digest::default();
    let (mut scratch, mut y) = ([0; 13], [0; OUTPUTS]);
    let (bytes, row) = (black_box(INTEGERS), black_box(&ROW));
    probe.start();
    let view = QuantisedView::parse(bytes);
    probe.stop("reading, a byte", bytes.len() as u32);
    let Ok(view) = view else { return 0 };
    probe.start();
    let done = view.model().predict(row, &mut scratch, &mut y);
    probe.stop("file, 1000", 1000);
    y.iter().for_each(|&y| digest.word(y as u32));
    if done.is_ok() { digest.value() } else { 0 }
}

/// The file of floats; 0 if it is refused.
pub(super) fn file_of_floats<P: Probe>(probe: &mut P) -> u32 {
    let mut digest = Digest::default();
    let (mut scratch, mut y) = ([0.0; 10], [0.0; OUTPUTS]);
    let (bytes, row) = (black_box(FLOATS), black_box(&FLOAT_ROW));
    let Ok(view) = View::parse(bytes) else { return 0 };
    probe.start();
    let done = view.model().predict(row, &mut scratch, &mut y);
    probe.stop("float file, 1000", 1000);
    y.iter().for_each(|&y| digest.float(y));
    if done.is_ok() { digest.value() } else { 0 }
}
