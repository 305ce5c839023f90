//! CSV from any bytes.
#![no_main]

mod check;

use libfuzzer_sys::fuzz_target;
use tamis_host::data::{Source, csv};

fuzz_target!(|bytes: &[u8]| {
    let Ok(table) = csv::read(Source::bytes(bytes)) else { return };
    check::check(&table.matrix);
    if let Some(names) = table.names {
        assert_eq!(names.len(), table.matrix.cols);
    }
});
