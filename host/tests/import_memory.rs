//! Whatever a file says, reading it takes no more memory than its size allows.

use std::fs::{self, File};
use std::path::Path;

use peak_alloc::PeakAlloc;
use prost::encoding::encode_varint;
use tamis_host::base::HeapPeak;
use tamis_host::convert::{Dense, onnx, safetensors};
use tamis_host::convert::{ImportOptions, import};
use tamis_host::data::{Array, npz};

/// Bytes of memory that an import may take for each byte of the file, and beside that.
const MEMORY_FACTOR: u64 = 32;
const MEMORY_ROOM: u64 = 32 << 20;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// A field of protobuf that has a length.
fn field(tag: u64, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_varint(tag << 3 | 2, &mut bytes);
    encode_varint(body.len() as u64, &mut bytes);
    bytes.extend(body);
    bytes
}

fn dense(inputs: usize, outputs: usize, relu: bool) -> Dense {
    let weights = (1..=inputs * outputs).map(|i| i as f32).collect();
    Dense { name: "0".into(), inputs, outputs, weights, bias: Vec::new(), relu }
}

/// A safetensors file of a header and values.
fn with_header(header: &str, values: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), values].concat()
}

fn check(path: &Path, name: &str, expected: Option<bool>) {
    let path = path.join(name);
    let len = fs::metadata(&path).unwrap().len();
    let heap = HeapPeak::start();
    let done = import(&path, &ImportOptions::default());
    let peak = heap.bytes().unwrap();
    println!(
        "{name}: {len} bytes, peak {peak}, {:.1} times, ok {}",
        peak as f64 / len as f64,
        done.is_ok()
    );
    assert!(peak <= MEMORY_FACTOR * len + MEMORY_ROOM, "{name}: {peak} of {len}");
    if let Some(expected) = expected {
        assert_eq!(done.is_ok(), expected, "{name}: {:?}", done.err());
    }
}

/// One test: the heap is counted for the whole process.
#[test]
fn reader_memory_is_bounded_by_file_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let write = |name: &str, bytes: Vec<u8>| fs::write(path.join(name), bytes).unwrap();
    let layers = [dense(1500, 1500, true), dense(1500, 1500, false)];
    write("whole.onnx", onnx::write(&layers, None).unwrap());
    check(path, "whole.onnx", Some(true));
    write("whole.safetensors", safetensors::write(&layers, None).unwrap());
    check(path, "whole.safetensors", Some(true));
    let side = 2000_usize;
    let halves = vec![0x3c; 2 * side * side];
    let header = |shape: &str, len: usize| {
        format!(
            "{{\"0.weight\":{{\"dtype\":\"F16\",\"shape\":{shape},\"data_offsets\":[0,{len}]}}}}"
        )
    };
    write("half.safetensors", with_header(&header("[2000,2000]", halves.len()), &halves));
    check(path, "half.safetensors", Some(true));
    let weights: Vec<f32> = (1..=side * side).map(|i| i as f32).collect();
    let array = Array::new(&[side, side], &weights).unwrap();
    npz::write(File::create(path.join("whole.npz")).unwrap(), &[("0.weight", array)]).unwrap();
    check(path, "whole.npz", Some(true));

    let graph = |body: Vec<u8>| field(7, &body);
    write("nodes.onnx", graph(field(1, &[]).repeat(2 << 20)));
    check(path, "nodes.onnx", Some(false));
    write("tensors.onnx", graph(field(5, &[]).repeat(30_000)));
    check(path, "tensors.onnx", Some(false));
    write("names.onnx", graph(field(1, &field(1, &[]).repeat(30_000))));
    check(path, "names.onnx", Some(false));
    write("integers.onnx", graph(field(5, &field(7, &vec![1; 4 << 20]))));
    check(path, "integers.onnx", Some(false));
    write("floats.onnx", graph(field(5, &field(4, &vec![0; 4 << 20]))));
    check(path, "floats.onnx", Some(false));
    let axes = "1,".repeat(400_000);
    write("axes.safetensors", with_header(&header(&format!("[{axes}1]"), 2), &[0, 0]));
    check(path, "axes.safetensors", Some(false));
    let entries: Vec<_> = (0..18_000)
        .map(|i| format!("\"{i}\":{{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}"))
        .collect();
    write("entries.safetensors", with_header(&format!("{{{}}}", entries.join(",")), &[]));
    check(path, "entries.safetensors", Some(false));
    write("header.safetensors", with_header(&format!("{{{}", " ".repeat(4 << 20)), &[]));
    check(path, "header.safetensors", Some(false));
    let many: Vec<_> = (0..3000).map(|i| i.to_string()).collect();
    let one = [1.0_f32];
    let arrays: Vec<_> =
        many.iter().map(|name| (name.as_str(), Array::new(&[1], &one).unwrap())).collect();
    npz::write(File::create(path.join("many.npz")).unwrap(), &arrays).unwrap();
    check(path, "many.npz", Some(false));
}
