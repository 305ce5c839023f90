//! NPZ from any bytes: the only array, and one by name.
#![no_main]

mod check;

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use tamis_host::data::npz;

fuzz_target!(|bytes: &[u8]| {
    for member in [None, Some("x")] {
        if let Ok(matrix) = npz::read(Cursor::new(bytes), bytes.len() as u64, member) {
            check::check(&matrix);
        }
    }
});
