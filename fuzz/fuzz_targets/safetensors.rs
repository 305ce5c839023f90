//! safetensors from any bytes, the arrays as layers in every layout.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis_host::convert::named::{self, Layout};
use tamis_host::convert::safetensors;

fuzz_target!(|bytes: &[u8]| {
    let Ok((tensors, _)) = safetensors::read(bytes) else { return };
    for tensor in &tensors {
        if let Some(values) = &tensor.values {
            assert_eq!(tensor.dims.iter().product::<usize>(), values.len());
            assert!(values.iter().all(|value| value.is_finite()));
        }
    }
    for layout in [Layout::Auto, Layout::OutIn, Layout::InOut] {
        let Ok(network) = named::network(tensors.clone(), None, layout) else { continue };
        network.check().unwrap();
        let written = safetensors::write(&network.layers, None).unwrap();
        let again =
            named::network(safetensors::read(&written).unwrap().0, None, Layout::OutIn).unwrap();
        for (a, b) in again.layers.iter().zip(&network.layers) {
            assert_eq!((&a.weights, &a.bias), (&b.weights, &b.bias));
        }
    }
});
