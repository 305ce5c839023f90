//! NPZ archives of weights from any bytes, the arrays as layers in every layout.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use tamis_host::convert::named::{self, Layout};
use tamis_host::convert::npz;

fuzz_target!(|bytes: &[u8]| {
    let Ok(tensors) = npz::read(Cursor::new(bytes), bytes.len() as u64) else { return };
    for tensor in &tensors {
        assert_eq!(
            tensor.dims.iter().product::<usize>(),
            tensor.values.as_ref().map_or(0, Vec::len)
        );
    }
    for layout in [Layout::Auto, Layout::OutIn, Layout::InOut] {
        if let Ok(network) = named::network(tensors.clone(), None, layout) {
            network.check().unwrap();
        }
    }
});
