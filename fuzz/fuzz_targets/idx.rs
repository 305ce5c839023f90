//! idx from any bytes: the size known, and only bounded.
#![no_main]

mod check;

use libfuzzer_sys::fuzz_target;
use tamis_host::data::{Size, Source, idx};

fuzz_target!(|bytes: &[u8]| {
    let known = idx::read(Source::bytes(bytes));
    let bounded = idx::read(Source::new(bytes, Size::expanded(bytes.len() as u64)));
    match (known, bounded) {
        (Ok(known), Ok(bounded)) => {
            check::check(&known);
            assert_eq!(known, bounded);
        }
        (known, bounded) => assert!(known.is_err() && bounded.is_err()),
    }
});
