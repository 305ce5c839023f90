//! PNG files from any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis_host::data::image::{MAX_SIDE, Picture};

fuzz_target!(|bytes: &[u8]| {
    let Ok(picture) = Picture::read(bytes) else { return };
    assert!((1..=MAX_SIDE).contains(&picture.rows) && (1..=MAX_SIDE).contains(&picture.cols));
    assert!([1, 3].contains(&picture.channels));
    assert_eq!(picture.values.len(), picture.rows * picture.cols * picture.channels);
});
