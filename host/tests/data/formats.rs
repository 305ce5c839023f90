//! Every data format, there and back, against an independent reader and writer, and cut off or
//! flipped at every place.

use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use npyz::WriterBuilder;
use proptest::prelude::*;
use tamis_host::data::{self, Array, Matrix, Size, Source, Values, csv, idx, npy, npz};

pub(crate) fn floats(rows: usize, cols: usize, values: Vec<f32>) -> Matrix {
    Matrix::new(rows, cols, Values::F32(values)).unwrap()
}

fn idx_file(kind: u8, dims: &[u32], payload: &[u8]) -> Vec<u8> {
    let mut file = vec![0, 0, kind, dims.len() as u8];
    file.extend(dims.iter().flat_map(|dim| dim.to_be_bytes()));
    file.extend(payload);
    file
}

fn npy_file(array: &Array<'_>) -> Vec<u8> {
    let mut file = Vec::new();
    npy::write(&mut file, array).unwrap();
    file
}

/// An NPY file with a header of our own making.
fn npy_raw(header: &str, payload: &[u8]) -> Vec<u8> {
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(payload);
    file
}

fn npy_typed(descr: &str, dims: &str, payload: &[u8]) -> Vec<u8> {
    npy_raw(
        &format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {dims}, }}\n"),
        payload,
    )
}

fn npz_file(arrays: &[(&str, Array<'_>)]) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    npz::write(&mut file, arrays).unwrap();
    file.into_inner()
}

fn read_npz(file: &[u8], member: Option<&str>) -> tamis_host::Result<Matrix> {
    npz::read(Cursor::new(file), file.len() as u64, member)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The error's text, which must hold every one of `parts`.
pub(crate) fn assert_error<T: std::fmt::Debug>(result: tamis_host::Result<T>, parts: &[&str]) {
    let error = result.unwrap_err().to_string();
    for part in parts {
        assert!(error.contains(part), "{part:?} is missing in:\n{error}");
    }
}

fn finite() -> impl Strategy<Value = f32> {
    any::<f32>().prop_filter("finite", |v| v.is_finite())
}

/// A small table: columns and values.
fn table() -> impl Strategy<Value = (usize, Vec<f32>)> {
    (1usize..6, 1usize..8)
        .prop_flat_map(|(cols, rows)| (Just(cols), prop::collection::vec(finite(), cols * rows)))
}

proptest! {
    #[test]
    fn npy_floats_come_back((cols, values) in table()) {
        let rows = values.len() / cols;
        let file = npy_file(&Array::new(&[rows, cols], &values).unwrap());
        prop_assert_eq!(npy::read(Source::bytes(&file)).unwrap(), floats(rows, cols, values));
    }

    #[test]
    fn npy_bytes_come_back(values in prop::collection::vec(any::<u8>(), 1..99)) {
        let file = npy_file(&Array::new(&[values.len()], &values).unwrap());
        let matrix = npy::read(Source::bytes(&file)).unwrap();
        prop_assert_eq!(matrix, Matrix::new(values.len(), 1, Values::U8(values)).unwrap());
    }

    #[test]
    fn npyz_reads_what_we_write((cols, values) in table()) {
        let rows = values.len() / cols;
        let file = npy_file(&Array::new(&[rows, cols], &values).unwrap());
        let other = npyz::NpyFile::new(&file[..]).unwrap();
        prop_assert_eq!(other.shape(), [rows as u64, cols as u64]);
        prop_assert_eq!(other.into_vec::<f32>().unwrap(), values);
    }

    #[test]
    fn we_read_what_npyz_writes((cols, values) in table(), fortran: bool, double: bool) {
        let rows = values.len() / cols;
        let order = if fortran { npyz::Order::Fortran } else { npyz::Order::C };
        let stored = |k: usize| if fortran { values[k % rows * cols + k / rows] } else { values[k] };
        let mut file = Vec::new();
        let options = npyz::WriteOptions::new().default_dtype().shape(&[rows as u64, cols as u64]).order(order);
        if double {
            let mut writer = options.writer(&mut file).begin_nd().unwrap();
            writer.extend((0..values.len()).map(|k| f64::from(stored(k)))).unwrap();
            writer.finish().unwrap();
        } else {
            let options = npyz::WriteOptions::new().default_dtype().shape(&[rows as u64, cols as u64]).order(order);
            let mut writer = options.writer(&mut file).begin_nd().unwrap();
            writer.extend((0..values.len()).map(stored)).unwrap();
            writer.finish().unwrap();
        }
        prop_assert_eq!(npy::read(Source::bytes(&file)).unwrap(), floats(rows, cols, values));
    }

    #[test]
    fn npz_comes_back((cols, values) in table(), index in prop::collection::vec(any::<u32>(), 0..9)) {
        let rows = values.len() / cols;
        let file = npz_file(&[
            ("index", Array::new(&[index.len()], &index).unwrap()),
            ("value", Array::new(&[rows, cols], &values).unwrap()),
        ]);
        prop_assert_eq!(read_npz(&file, Some("value")).unwrap(), floats(rows, cols, values));
        if !index.is_empty() {
            let expected = index.iter().map(|&i| i as f32).collect();
            prop_assert_eq!(read_npz(&file, Some("index")).unwrap(), floats(index.len(), 1, expected));
        }
    }

    #[test]
    fn idx_floats_come_back((cols, values) in table()) {
        let rows = values.len() / cols;
        let payload: Vec<u8> = values.iter().flat_map(|v| v.to_be_bytes()).collect();
        let file = idx_file(0x0d, &[rows as u32, cols as u32], &payload);
        prop_assert_eq!(idx::read(Source::bytes(&file)).unwrap(), floats(rows, cols, values));
    }

    #[test]
    fn csv_comes_back((cols, values) in table(), named: bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.csv");
        let names: Vec<String> = (0..cols).map(|i| format!("x \"{i}\", or so")).collect();
        let given: Vec<&str> = if named { names.iter().map(String::as_str).collect() } else { Vec::new() };
        data::save_csv(&path, &given, &values, cols).unwrap();
        let table = data::Table::read(&path).unwrap();
        prop_assert_eq!(table.matrix, floats(values.len() / cols, cols, values));
        prop_assert_eq!(table.names, named.then_some(names));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = idx::read(Source::bytes(&bytes));
        let _ = npy::read(Source::bytes(&bytes));
        let _ = csv::read(Source::bytes(&bytes));
        let _ = read_npz(&bytes, None);
    }

    #[test]
    fn any_header_is_read_or_refused(header in r"[\{\}\(\)\[\]'a-z0-9:, <>|]{0,80}", payload in any::<[u8; 16]>()) {
        let _ = npy::read(Source::bytes(&npy_raw(&header, &payload)));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[0-9a,;\t \"\r\n.-]{0,120}") {
        if let Ok(table) = csv::read(Source::bytes(text.as_bytes())) {
            prop_assert_eq!(table.matrix.values.len(), table.matrix.rows * table.matrix.cols);
        }
    }
}

/// Small files of every format, with the reader each is for.
type Read = fn(&[u8]) -> tamis_host::Result<Matrix>;

fn small_files() -> Vec<(&'static str, Vec<u8>, Read)> {
    let array = Array::new(&[3, 2], &[1.5f32, -2.0, 3.25, 4.0, 5.0, 6.0]).unwrap();
    let labels = Array::new(&[3], &[0u8, 1, 1]).unwrap();
    let idx = idx_file(0x08, &[3, 2, 1], &[1, 2, 3, 4, 5, 6]);
    vec![
        ("idx", idx.clone(), |b| idx::read(Source::bytes(b))),
        ("idx.gz", gzip(&idx), read_gz),
        ("npy", npy_file(&array), |b| npy::read(Source::bytes(b))),
        ("npz", npz_file(&[("x", array.clone()), ("labels", labels)]), |b| read_npz(b, Some("x"))),
        ("deflated npz", deflated_npz(&npy_file(&array)), |b| read_npz(b, None)),
        ("csv", b"a,b\n1,2\n-3.5,4e2\n".to_vec(), |b| {
            csv::read(Source::bytes(b)).map(|table| table.matrix)
        }),
    ]
}

fn read_gz(bytes: &[u8]) -> tamis_host::Result<Matrix> {
    idx::read(Source::new(
        flate2::read::MultiGzDecoder::new(bytes),
        Size::expanded(bytes.len() as u64),
    ))
}

fn deflated_npz(npy: &[u8]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Deflated);
    archive.start_file("x.npy", options).unwrap();
    archive.write_all(npy).unwrap();
    archive.finish().unwrap().into_inner()
}

#[test]
fn small_files_are_read() {
    for (name, file, read) in small_files() {
        assert!(read(&file).is_ok(), "{name}: {:?}", read(&file));
    }
}

#[test]
fn every_truncation_is_refused() {
    for (name, file, read) in small_files() {
        for len in 0..file.len() {
            let result = read(&file[..len]);
            // What is left of a CSV file can be one; a last line cut off is not seen by anyone.
            assert!(
                result.is_err() || name == "csv",
                "{name} cut to {len} of {} bytes was read",
                file.len()
            );
        }
    }
}

#[test]
fn every_flipped_bit_is_read_or_refused() {
    for (name, file, read) in small_files() {
        let good = read(&file).unwrap();
        for bit in 0..file.len() * 8 {
            let mut flipped = file.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let result = read(&flipped);
            // These carry a sum of their contents.
            if name.contains('z') {
                assert!(
                    result.is_err() || result.unwrap() == good,
                    "{name}: bit {bit} changed the values"
                );
            }
        }
    }
}

#[test]
fn bytes_after_the_values_are_refused() {
    for (name, mut file, read) in
        small_files().into_iter().filter(|(name, ..)| ["idx", "npy"].contains(name))
    {
        file.push(0);
        assert_error(read(&file), &["oversized", "bytes of values", "got"]);
        assert!(read(&file[..file.len() - 1]).is_ok(), "{name}");
    }
    let mut idx = idx_file(0x08, &[2], &[1, 2]);
    idx.push(3);
    assert_error(
        read_gz(&gzip(&idx)),
        &["oversized", "expected: 2 bytes", "got: more than 2 bytes"],
    );
}

#[test]
fn idx_types_and_ranks() {
    let read = |kind, dims: &[u32], payload: &[u8]| {
        idx::read(Source::bytes(&idx_file(kind, dims, payload)))
    };
    let column = |values: &[f32]| floats(values.len(), 1, values.to_vec());
    assert_eq!(read(0x09, &[2], &[0xff, 2]).unwrap(), column(&[-1.0, 2.0]));
    assert_eq!(read(0x0b, &[2], &[0xff, 0xfe, 1, 0]).unwrap(), column(&[-2.0, 256.0]));
    assert_eq!(read(0x0c, &[1], &[0, 1, 0, 0]).unwrap(), column(&[65536.0]));
    assert_eq!(read(0x0d, &[1], &0.5f32.to_be_bytes()).unwrap(), column(&[0.5]));
    assert_eq!(read(0x0e, &[1], &0.25f64.to_be_bytes()).unwrap(), column(&[0.25]));
    let cube = read(0x08, &[2, 1, 1, 2], &[1, 2, 3, 4]).unwrap();
    assert_eq!(cube, Matrix::new(2, 2, Values::U8(vec![1, 2, 3, 4])).unwrap());
    assert_error(read(0x08, &[1; 5], &[1]), &["rank", "1 to 4", "got: 5"]);
    assert_error(read(0x0a, &[1], &[1]), &["not an idx file", "got: 0x00000a01"]);
    assert_error(read(0x08, &[3, 0], &[]), &["holds no values", "[3, 0]"]);
    assert_error(read(0x08, &[u32::MAX; 4], &[1]), &["larger than any file"]);
    assert_error(
        read(0x08, &[u32::MAX, 2], &[1]),
        &["truncated", "8589934590 bytes", "got: 1 bytes"],
    );
    assert_error(read(0x0d, &[1], &f32::NAN.to_be_bytes()), &["finite", "NaN in row 0, column 0"]);
}

#[test]
fn npy_types() {
    let cases: [(&str, &[u8], f32); 16] = [
        ("|b1", &[1], 1.0),
        ("|u1", &[200], 200.0),
        ("|i1", &[0xff], -1.0),
        ("<u2", &[1, 2], 513.0),
        (">u2", &[1, 2], 258.0),
        ("<i2", &[0xff, 0xff], -1.0),
        ("<u4", &[0, 0, 1, 0], 65536.0),
        ("<i4", &[0xfe, 0xff, 0xff, 0xff], -2.0),
        ("<u8", &[3, 0, 0, 0, 0, 0, 0, 0], 3.0),
        ("<i8", &[0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], -3.0),
        ("<f2", &[0, 0x38], 0.5),
        (">f2", &[0x38, 0], 0.5),
        ("<f4", &[0, 0, 0, 0x3f], 0.5),
        (">f4", &[0x3f, 0, 0, 0], 0.5),
        ("<f8", &[0, 0, 0, 0, 0, 0, 0xd0, 0x3f], 0.25),
        (">f8", &[0x3f, 0xd0, 0, 0, 0, 0, 0, 0], 0.25),
    ];
    for (descr, bytes, value) in cases {
        let matrix = npy::read(Source::bytes(&npy_typed(descr, "(1,)", bytes))).unwrap();
        assert_eq!(matrix.into_column().unwrap(), [value], "{descr}");
    }
    for descr in ["<f3", "<c8", "|O", "<U3", "|S7", "<i3", "", "é4"] {
        let read = npy::read(Source::bytes(&npy_typed(descr, "(1,)", &[0; 8])));
        assert_error(read, &["not of a supported type", "astype"]);
    }
    let record =
        npy_raw("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,), }", &[0; 4]);
    assert_error(npy::read(Source::bytes(&record)), &["structured array"]);
}

#[test]
fn npy_shapes() {
    let bytes: Vec<u8> = (0..24).collect();
    let read = |dims| npy::read(Source::bytes(&npy_typed("|u1", dims, &bytes)));
    for (dims, rows, cols) in
        [("(24,)", 24, 1), ("(4, 6)", 4, 6), ("(2, 3, 4)", 2, 12), ("(24L,)", 24, 1)]
    {
        let matrix = read(dims).unwrap();
        assert_eq!((matrix.rows, matrix.cols), (rows, cols), "{dims}");
    }
    assert_error(read("()"), &["single number"]);
    assert_error(read("(24, 0)"), &["holds no values", "[24, 0]"]);
    assert_error(read("(4294967296, 4294967296)"), &["larger than any file"]);
    assert_error(read("(18446744073709551616,)"), &["malformed", "axis length"]);
    assert_error(read("(-1,)"), &["malformed", "axis length"]);
    assert_error(read("(4, 7)"), &["truncated", "expected: 28 bytes", "got: 24 bytes"]);
    assert_error(read("(4, 5)"), &["oversized", "expected: 20 bytes", "got: 24 bytes"]);
    assert_error(read("(1000000000, 1000)"), &["truncated", "expected: 1000000000000 bytes"]);
}

#[test]
fn npy_headers() {
    let good = "{\"shape\":(2,),\"fortran_order\":True,\"descr\":\"|u1\"}";
    assert!(npy::read(Source::bytes(&npy_raw(good, &[1, 2]))).is_ok());
    for (header, part) in [
        ("{'fortran_order': False, 'shape': (2,)}", "descr"),
        ("{'descr': '|u1', 'shape': (2,)}", "fortran_order"),
        ("{'descr': '|u1', 'fortran_order': False}", "shape"),
        ("{'descr': '|u1', 'fortran_order': 0, 'shape': (2,)}", "True or False"),
        ("{'descr': '|u1', 'extra': 1}", "extra"),
        ("{'descr': '|u1', 'fortran_order': False, 'shape': (2,)} x", "end of the header"),
        ("{'descr': '|u1", "closed string"),
        ("{'shape': ((((((((", "axis length"),
        ("", "{"),
    ] {
        assert_error(npy::read(Source::bytes(&npy_raw(header, &[1, 2]))), &["malformed", part]);
    }
    let mut nested = vec![b'('; 60000];
    nested.splice(0..0, *b"{'shape': ");
    let nested = npy_raw(std::str::from_utf8(&nested).unwrap(), &[]);
    assert_error(npy::read(Source::bytes(&nested)), &["malformed"]);
    assert_error(
        npy::read(Source::bytes(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}")),
        &["too long", "4294967295"],
    );
    assert_error(
        npy::read(Source::bytes(b"\x93NUMPY\x09\x00\x02\x00{}")),
        &["version", "got: 9.0"],
    );
    assert_error(npy::read(Source::bytes(b"PK\x03\x04....")), &["not an NPY file", "PK\\x03\\x04"]);
}

#[test]
fn higher_rank_fortran_order_matches_numpy() {
    // numpy.arange(24).reshape(2, 3, 4), stored with the first axis fastest.
    let mut stored = Vec::new();
    for k in 0..4u8 {
        for j in 0..3 {
            stored.extend((0..2).map(|i| i * 12 + j * 4 + k));
        }
    }
    let file = npy_raw("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4), }", &stored);
    let matrix = npy::read(Source::bytes(&file)).unwrap();
    assert_eq!(matrix, Matrix::new(2, 12, Values::U8((0..24).collect())).unwrap());
}

#[test]
fn values_that_are_not_finite_are_named() {
    let mut values = vec![0.5f32; 70_000]; // more than one buffer
    values[69_999] = f32::INFINITY;
    let file = npy_file(&Array::new(&[7000, 10], &values).unwrap());
    assert_error(
        npy::read(Source::bytes(&file)),
        &["finite", "inf in row 6999, column 9 (counted from 0)"],
    );
    let mut payload: Vec<u8> =
        [1.0f64, 2.0, 3.0, 1e300].iter().flat_map(|v| v.to_le_bytes()).collect();
    assert_error(
        npy::read(Source::bytes(&npy_typed("<f8", "(2, 2)", &payload))),
        &["1e300 in row 1, column 1", "32-bit"],
    );
    payload.rotate_left(8); // 2, 3, 1e300, 1: in Fortran order row 0, column 1
    let fortran = npy_raw("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 2), }", &payload);
    assert_error(
        npy::read(Source::bytes(&fortran)),
        &["1e300 in row 0, column 1", "beyond 32-bit floats"],
    );
}

#[test]
fn npz_members() {
    let one = Array::new(&[1], &[1i8]).unwrap();
    let two = npz_file(&[("weights", one.clone()), ("bias", one.clone())]);
    assert_error(read_npz(&two, None), &["several arrays", "weights, bias", "file.npz#X"]);
    assert_error(read_npz(&two, Some("gates")), &["no array \"gates\"", "weights, bias"]);
    assert!(read_npz(&two, Some("bias")).is_ok() && read_npz(&two, Some("bias.npy")).is_ok());
    assert!(read_npz(&npz_file(&[("only", one)]), None).is_ok());
    assert_error(read_npz(&npz_file(&[]), None), &["holds no array"]);
    assert_error(read_npz(b"PK\x03\x04 and no more", None), &["cannot open the archive"]);
}

#[test]
fn archives_are_the_same_bytes_every_time() {
    let make = || {
        let arrays = [
            Array::new(&[2], &[1.0f32, 2.0]),
            Array::new(&[2], &[1u32, 2]),
            Array::new(&[2], &[1u8, 2]),
            Array::new(&[2], &[-1i8, 2]),
        ]
        .map(Result::unwrap);
        let names = ["a", "b", "c", "d"];
        npz_file(&names.into_iter().zip(arrays).collect::<Vec<_>>())
    };
    let first = make();
    std::thread::sleep(std::time::Duration::from_millis(2100)); // ZIP counts time in steps of two seconds
    assert_eq!(first, make());
}

#[test]
fn npy_half_floats_are_read_exactly() {
    // 1, -2, 65504 and the least subnormal, in both byte orders.
    let bits: [u16; 4] = [0x3c00, 0xc000, 0x7bff, 0x0001];
    let values = vec![1.0, -2.0, 65504.0, 2.0_f32.powi(-24)];
    let little: Vec<u8> = bits.iter().flat_map(|bits| bits.to_le_bytes()).collect();
    let big: Vec<u8> = bits.iter().flat_map(|bits| bits.to_be_bytes()).collect();
    for (descr, payload) in [("<f2", little), (">f2", big)] {
        let file = npy_typed(descr, "(2, 2)", &payload);
        assert_eq!(npy::read(Source::bytes(&file)).unwrap(), floats(2, 2, values.clone()));
    }
    let infinite = npy_typed("<f2", "(1,)", &0x7c00_u16.to_le_bytes());
    assert_error(npy::read(Source::bytes(&infinite)), &["finite"]);
}
