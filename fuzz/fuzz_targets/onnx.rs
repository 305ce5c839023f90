//! ONNX from any bytes; what is read is a network, and comes back when it is written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis_host::Error;
use tamis_host::convert::onnx;

fuzz_target!(|bytes: &[u8]| {
    let beside = bytes.to_vec();
    let read = onnx::read(bytes.to_vec(), &mut |name| {
        if name.len() % 2 == 0 { Ok(beside.clone().into()) } else { Err(Error::new("not there")) }
    });
    let Ok(network) = read else { return };
    network.check().unwrap();
    let written = onnx::write(&network.layers, network.meta.as_ref()).unwrap();
    let again = onnx::read(written, &mut |_| unreachable!()).unwrap();
    assert_eq!(again.layers.len(), network.layers.len());
    for (a, b) in again.layers.iter().zip(&network.layers) {
        assert_eq!((&a.weights, a.relu), (&b.weights, b.relu));
    }
});
