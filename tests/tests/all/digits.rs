//! The digits that the parts train on are those that the host's generator draws.

use std::path::PathBuf;
use tamis_host::data::{self, Values, digits};
use tamis_tests::cases::{DIGITS_SEED, IMAGES, LABELS, PIXELS};

/// The first `IMAGES` pictures of zeros and ones, as idx files: pixels and labels.
fn drawn() -> (Vec<u8>, Vec<u8>) {
    let (all, labels) = digits::generate(10 * IMAGES, 8, DIGITS_SEED).unwrap();
    let Values::U8(pixels) = all.values else { panic!("digits are bytes") };
    let count = (IMAGES as u32).to_be_bytes();
    let side = 8_u32.to_be_bytes();
    let mut images = [&[0, 0, 8, 3], &count[..], &side, &side].concat();
    let mut kept = [&[0, 0, 8, 1], &count[..]].concat();
    let pictures = pixels.chunks(64).zip(&labels).filter(|(_, label)| **label < 2);
    for (picture, label) in pictures.take(IMAGES) {
        images.extend_from_slice(picture);
        kept.push(*label);
    }
    (images, kept)
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data").join(name)
}

/// `TAMIS_BLESS=1` writes the files anew.
#[test]
fn the_committed_digits_are_what_the_generator_draws() {
    let (images, labels) = drawn();
    if std::env::var_os("TAMIS_BLESS").is_some() {
        std::fs::write(file("digits01-images.idx"), &images).unwrap();
        std::fs::write(file("digits01-labels.idx"), &labels).unwrap();
    }
    assert!(
        std::fs::read(file("digits01-images.idx")).unwrap() == images,
        "run with TAMIS_BLESS=1"
    );
    assert!(
        std::fs::read(file("digits01-labels.idx")).unwrap() == labels,
        "run with TAMIS_BLESS=1"
    );
}

#[test]
fn committed_digits_are_idx_files_matching_firmware() {
    let images = data::load(file("digits01-images.idx")).unwrap();
    let labels = data::load(file("digits01-labels.idx")).unwrap();
    assert_eq!((images.rows, images.cols, labels.rows), (IMAGES, 64, IMAGES));
    assert_eq!(images.values, Values::U8(PIXELS.to_vec()));
    assert_eq!(labels.values.into_f32(), LABELS);
}
