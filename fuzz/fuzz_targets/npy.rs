//! NPY from any bytes; what is read is also written and read again.
#![no_main]

mod check;

use libfuzzer_sys::fuzz_target;
use tamis_host::data::{Array, Source, Values, npy};

fuzz_target!(|bytes: &[u8]| {
    let Ok(matrix) = npy::read(Source::bytes(bytes)) else { return };
    check::check(&matrix);
    let shape = [matrix.rows, matrix.cols];
    let array = match &matrix.values {
        Values::F32(values) => Array::new(&shape, values),
        Values::U8(values) => Array::new(&shape, values),
    };
    let mut written = Vec::new();
    npy::write(&mut written, &array.unwrap()).unwrap();
    assert_eq!(npy::read(Source::bytes(&written)).unwrap(), matrix);
});
