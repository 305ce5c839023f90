//! Data files on disk: formats told apart, several files, labels, and every way a file can be
//! unusable.

use std::fs;
use std::io::{Cursor, Write};
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use tamis_host::data::{self, Array, Matrix, Values, npy, npz, select};
use tempfile::TempDir;

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    /// Both names, as one argument.
    fn both(&self, a: &str, b: &str) -> PathBuf {
        format!("{},{}", self.path(a).display(), self.path(b).display()).into()
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let level = if bytes.len() < 1 << 20 { Compression::best() } else { Compression::fast() };
    let mut encoder = GzEncoder::new(Vec::new(), level);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn npy_bytes(values: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    npy::write(&mut file, &Array::new(&[values.len()], values).unwrap()).unwrap();
    file
}

/// An NPZ file of one compressed array.
fn deflated(values: &[u8]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let method = zip::CompressionMethod::Deflated;
    archive
        .start_file("x.npy", zip::write::SimpleFileOptions::default().compression_method(method))
        .unwrap();
    archive.write_all(&npy_bytes(values)).unwrap();
    archive.finish().unwrap().into_inner()
}

fn bytes(rows: usize, cols: usize, values: &[u8]) -> Matrix {
    Matrix::new(rows, cols, Values::U8(values.to_vec())).unwrap()
}

fn floats(rows: usize, cols: usize, values: &[f32]) -> Matrix {
    Matrix::new(rows, cols, Values::F32(values.to_vec())).unwrap()
}

fn assert_error<T: std::fmt::Debug>(result: tamis_host::Result<T>, parts: &[&str]) {
    let error = result.unwrap_err().to_string();
    for part in parts {
        assert!(error.contains(part), "{part:?} is missing in:\n{error}");
    }
}

const IDX: [u8; 16] = [0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4];

#[test]
fn formats_are_told_apart_by_content() {
    let folder = Folder::new();
    let npy = folder.path("a.npy");
    data::save_npy(&npy, &[1.0f32, 2.0], &[2]).unwrap();
    let npy = fs::read(npy).unwrap();
    assert_eq!(data::load(folder.put("images", IDX)).unwrap(), bytes(2, 2, &[1, 2, 3, 4]));
    assert_eq!(
        data::load(folder.put("images.dat", gzip(&IDX))).unwrap(),
        bytes(2, 2, &[1, 2, 3, 4])
    );
    assert_eq!(data::load(folder.put("b", &npy)).unwrap(), floats(2, 1, &[1.0, 2.0]));
    assert_eq!(data::load(folder.put("b.gz", gzip(&npy))).unwrap(), floats(2, 1, &[1.0, 2.0]));
    assert_eq!(data::load(folder.put("c.txt", "1,2\n")).unwrap(), floats(1, 2, &[1.0, 2.0]));
    assert_eq!(
        data::load(folder.put("c.csv.gz", gzip(b"1,2\n"))).unwrap(),
        floats(1, 2, &[1.0, 2.0])
    );
    let mut two_members = gzip(&IDX[..9]);
    two_members.extend(gzip(&IDX[9..]));
    assert_eq!(data::load(folder.put("two.gz", two_members)).unwrap(), bytes(2, 2, &[1, 2, 3, 4]));
}

#[test]
fn a_wrong_format_is_named_with_the_file() {
    let folder = Folder::new();
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    assert_error(data::load(folder.put("x.npy", png)), &["not an NPY file", "x.npy", "\\x89PNG"]);
    assert_error(data::load(folder.put("x-ubyte", png)), &["not an idx file", "got: 0x89504e47"]);
    assert_error(
        data::load(folder.put("x-ubyte.gz", gzip(png))),
        &["not an idx file", "x-ubyte.gz"],
    );
    assert_error(data::load(folder.put("x.npz", png)), &["not an NPZ archive"]);
    assert_error(
        data::load(folder.put("x.png", png)),
        &["not a text file", "idx, NPY, NPZ or CSV"],
    );
    assert_error(data::load(folder.put("x.csv", "")), &["the file is empty", "x.csv", "0 bytes"]);
    assert_error(data::load(folder.put("y.npy", "")), &["the file is empty"]);
    assert_error(data::load(folder.put("x.csv.gz", gzip(b""))), &["the file is empty"]);
}

#[test]
fn unusable_files_say_what_to_do() {
    let folder = Folder::new();
    assert_error(
        data::load(folder.path("none.npy")),
        &["cannot open", "none.npy", "check the name"],
    );
    assert_error(data::load(&folder.0), &["cannot read", "got: a folder", "name a file in it"]);
    if cfg!(unix) {
        assert_error(data::load("/dev/zero"), &["cannot read", "/dev/zero", "pipe or device"]);
    }
    let cut = &gzip(&IDX)[..20];
    assert_error(
        data::load(folder.put("cut-ubyte.gz", cut)),
        &["cut-ubyte.gz", "copy or download"],
    );
    let mut damaged = gzip(&IDX);
    let sum = damaged.len() - 8;
    damaged[sum] ^= 1;
    assert_error(data::load(folder.put("sum.gz", damaged)), &["cannot read the bytes", "sum.gz"]);
}

#[test]
fn bytes_behind_compressed_data_are_named() {
    let folder = Folder::new();
    let two = [gzip(&IDX[..6]), gzip(&IDX[6..])].concat();
    assert_eq!(
        data::load(folder.put("two.gz", &two)).unwrap(),
        data::load(folder.put("one", IDX)).unwrap()
    );
    for (name, compressed) in [("x-ubyte.gz", gzip(&IDX)), ("t.csv.gz", gzip(b"1,2\n"))] {
        for garbage in [&b"x"[..], b"GARBAGE AT THE END", &[0; 600]] {
            let path = folder.put(name, [&compressed[..], garbage].concat());
            let first = format!(
                "trailing bytes that start with \"{}\"",
                garbage[..garbage.len().min(8)].escape_ascii()
            );
            let result = data::load(path);
            assert!(!result.as_ref().unwrap_err().to_string().contains("cut off"));
            assert_error(result, &["bytes follow the end", name, &first]);
        }
    }
}

#[test]
fn unselected_rows_are_skipped_in_every_format() {
    let folder = Folder::new();
    let (rows, cols) = (700, 130); // more than one buffer of 64 KiB, and rows across their ends
    let bytes: Vec<u8> = (0..rows * cols).map(|k| (k % 251) as u8).collect();
    let numbers: Vec<f32> = bytes.iter().map(|&byte| f32::from(byte)).collect();
    let labels: Vec<u8> = (0..rows).map(|row| (row * 7 % 10) as u8).collect();
    let y = folder.path("y.npy");
    data::save_npy(&y, &labels, &[rows]).unwrap();
    let idx =
        [&[0, 0, 8, 2][..], &(rows as u32).to_be_bytes(), &(cols as u32).to_be_bytes(), &bytes]
            .concat();
    let fortran: Vec<u8> =
        (0..rows * cols).flat_map(|k| numbers[k % rows * cols + k / rows].to_le_bytes()).collect();
    let mut head =
        format!("{{'descr': '<f4', 'fortran_order': True, 'shape': ({rows}, {cols}), }}");
    head.push_str(&" ".repeat(117 - head.len()));
    let fortran = [b"\x93NUMPY\x01\x00\x76\x00", head.as_bytes(), b"\n", &fortran].concat();
    let (npy, csv, halves) =
        (folder.path("x.npy"), folder.path("x.csv"), folder.path("a.npy,b.csv"));
    data::save_npy(&npy, &numbers, &[rows, cols]).unwrap();
    data::save_csv(&csv, &[], &numbers, cols).unwrap();
    data::save_npy(folder.path("a.npy"), &bytes[..300 * cols], &[300, cols]).unwrap();
    data::save_csv(folder.path("b.csv"), &[], &numbers[300 * cols..], cols).unwrap();
    let halves = PathBuf::from(
        halves.to_str().unwrap().replace(",b.csv", &format!(",{}", folder.path("b.csv").display())),
    );
    let files = [
        folder.put("x-ubyte", &idx),
        folder.put("x.gz", gzip(&idx)),
        folder.put("f.npy", fortran),
        npy,
        csv,
        halves,
    ];
    let orders = [
        (0..rows).filter(|row| row % 9 == 4).collect(),
        vec![699, 0, 350, 1],
        vec![],
        (0..rows).collect(),
    ];
    for path in files {
        let (all, _) = data::load_chosen(&path, &y, |_| Ok(None)).unwrap();
        assert_eq!(all.values.clone().into_f32(), numbers, "{path:?}");
        for order in &orders {
            let (x, found) = data::load_chosen(&path, &y, |_| Ok(Some(order.clone()))).unwrap();
            let expected: Vec<f32> =
                order.iter().flat_map(|&row| &numbers[row * cols..][..cols]).copied().collect();
            assert_eq!(
                (x.rows, x.cols, x.values.into_f32()),
                (order.len(), cols, expected),
                "{path:?}"
            );
            assert_eq!(found, order.iter().map(|&row| f32::from(labels[row])).collect::<Vec<_>>());
        }
        assert_error(data::load_chosen(&path, &y, |_| Ok(Some(vec![rows]))), &["no such row"]);
    }
    let short = folder.put("short.csv", "1,2\n3,4\n");
    assert_error(
        data::load_chosen(short, &y, |_| Ok(Some(vec![0]))),
        &["not the number", "expected: 2 labels", "got: 700"],
    );
}

#[test]
fn a_bomb_is_refused_before_it_expands() {
    let folder = Folder::new();
    let mut idx = vec![0, 0, 8, 1, 0, 0, 0, 4]; // declares 4 bytes, expands to 50 million
    idx.resize(50_000_000, 0);
    assert_error(data::load(folder.put("idx.gz", gzip(&idx))), &["oversized", "expected: 4 bytes"]);
    let declares = [0, 0, 0x0e, 2, 0xff, 0xff, 0xff, 0xff, 0, 0, 1, 0];
    assert_error(
        data::load(folder.put("huge.gz", gzip(&declares))),
        &["truncated", "8796093020160 bytes", "at most"],
    );
    let text = gzip(&vec![b'1'; 80_000_000]);
    assert_error(data::load(folder.put("text.gz", text)), &["a cell is too long"]);
    // A text that says nothing of its length is read as far as it may expand, whatever follows.
    let text = gzip("0,0,0,0,0,0,0,0\n".repeat(6_000_000).as_bytes());
    let mut long = text.clone();
    long.resize(text.len() + 4_000_000, 0);
    for text in [text, long] {
        assert_error(
            data::load(folder.put("zeros.csv.gz", text)),
            &["expand too far: ", "zeros.csv.gz", "at most 67108864 bytes", "decompress it first"],
        );
    }
    // What an array says of its length is believed as far as the compressed bytes may expand.
    let zeros = vec![0_u8; 80_000_000];
    let mut archive = Vec::new();
    npz::write(Cursor::new(&mut archive), &[("X", Array::new(&[80_000_000], &zeros[..]).unwrap())])
        .unwrap();
    let stored = folder.put("stored.npz", archive);
    assert_eq!(data::load(&stored).unwrap().rows, 80_000_000);
    for (name, file) in [("bomb.npz", deflated(&zeros)), ("bomb.npy.gz", gzip(&npy_bytes(&zeros)))]
    {
        assert_error(
            data::load(folder.put(name, file)),
            &["expand too far: ", name, "at most 67108864 bytes", "decompress it first"],
        );
    }
}

#[test]
fn several_files_are_one_data_set() {
    let folder = Folder::new();
    folder.put("a", IDX);
    folder.put("b.gz", gzip(&IDX));
    folder.put("c.csv", "x,y\n0.5,1\n");
    folder.put("d.csv", "1,2,3\n");
    let bytes_only = data::load(folder.both("a", "b.gz")).unwrap();
    assert_eq!(bytes_only, bytes(4, 2, &[1, 2, 3, 4, 1, 2, 3, 4]));
    let mixed = data::Table::read(folder.both("a", "c.csv")).unwrap();
    assert_eq!(mixed.matrix, floats(3, 2, &[1.0, 2.0, 3.0, 4.0, 0.5, 1.0]));
    assert_eq!(mixed.names.unwrap(), ["x", "y"]);
    let mixed = data::load(folder.both("c.csv", "a")).unwrap();
    assert_eq!(mixed, floats(3, 2, &[0.5, 1.0, 1.0, 2.0, 3.0, 4.0]));
    assert_error(
        data::load(folder.both("a", "d.csv")),
        &["different numbers of columns", "d.csv", "2 columns", "3 columns"],
    );
    assert_error(data::load(format!("{},", folder.path("a").display())), &["a file name is empty"]);
    folder.put("with,comma", IDX);
    assert_eq!(data::load(folder.path("with,comma")).unwrap().rows, 2);
}

#[test]
fn fortran_order_is_appended_too() {
    let folder = Folder::new();
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    let header = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }";
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend([1.0f32, 3.0, 2.0, 4.0].iter().flat_map(|v| v.to_le_bytes()));
    folder.put("f.npy", file);
    folder.put("a", IDX);
    assert_eq!(
        data::load(folder.both("a", "f.npy")).unwrap(),
        floats(4, 2, &[1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0])
    );
}

#[test]
fn archives_name_their_arrays() {
    let folder = Folder::new();
    let path = folder.path("m.npz");
    let x = || Array::new(&[1, 2], &[1.0f32, 2.0]).unwrap();
    let y = || Array::new(&[1], &[3u8]).unwrap();
    data::save_npz(&path, &[("X", x()), ("y", y())]).unwrap();
    let named = |name: &str| format!("{}#{name}", path.display());
    assert_eq!(data::load(named("X")).unwrap(), floats(1, 2, &[1.0, 2.0]));
    assert_eq!(data::load_labels(named("y")).unwrap(), [3.0]);
    assert_error(data::load(&path), &["several arrays", "m.npz", "X, y", "file.npz#X"]);
    assert_error(data::load(named("z")), &["no array \"z\"", "X, y"]);
    folder.put("a", IDX);
    assert_error(data::load(format!("{}#x", folder.path("a").display())), &["only an NPZ archive"]);
    folder.put("a#x", IDX);
    assert!(data::load(folder.path("a#x")).is_ok());
    assert_error(data::save_npz(&path, &[("X", x()), ("X", x())]), &["cannot write", "m.npz"]);
    assert!(data::load(named("X")).is_ok(), "the archive before is untouched");
}

#[test]
fn labels_are_one_column_matching_row_count() {
    let folder = Folder::new();
    let images = folder.put("images", IDX);
    let labels = folder.put("labels", [0, 0, 8, 1, 0, 0, 0, 2, 7, 9]);
    let few = folder.put("few.csv", "label\n1\n");
    assert_eq!(data::load_chosen(&images, &labels, |_| Ok(None)).unwrap().1, [7.0, 9.0]);
    assert_error(data::load_labels(&images), &["one column", "images", "2 columns", "--target"]);
    assert_error(
        data::load_chosen(&images, few, |_| Ok(None)),
        &["number of labels", "few.csv", "2 labels", "got: 1"],
    );
}

#[test]
fn table_column_can_be_the_target() {
    let folder = Folder::new();
    let path = folder.put("t.csv", "width,class,2,x\n1,0,5,6\n2,1,7,8\n");
    let load = || data::Table::read(&path).unwrap();
    let (inputs, target) = load().split("class").unwrap();
    assert_eq!((inputs, target), (floats(2, 3, &[1.0, 5.0, 6.0, 2.0, 7.0, 8.0]), vec![0.0, 1.0]));
    assert_eq!(load().split("4").unwrap().1, [6.0, 8.0]);
    assert_eq!(load().split("1").unwrap().0, floats(2, 3, &[0.0, 5.0, 6.0, 1.0, 7.0, 8.0]));
    assert_eq!(load().split("2").unwrap().1, [5.0, 7.0], "names come before numbers");
    let mut twice = load();
    twice.names.as_mut().unwrap()[3] = "2".into();
    assert_error(twice.split("2"), &["several columns are named \"2\"", "number"]);
    assert_error(load().split("5"), &["no such column", "\"class\"", "a number from 1 to 4"]);
    assert_error(load().split("0"), &["no such column"]);
    let bytes = data::Table { matrix: data::load(folder.put("a", IDX)).unwrap(), names: None };
    assert_eq!(bytes.clone().split("2").unwrap().0.values, Values::U8(vec![1, 3]));
    assert_error(bytes.split("x"), &["no such column", "expected: a number from 1 to 2"]);
    let single = data::Table::read(folder.put("s.csv", "y\n1\n")).unwrap();
    assert_error(single.split("y"), &["no inputs are left"]);
}

#[test]
fn saved_files_have_the_format_of_their_name() {
    let folder = Folder::new();
    let values = [0.1f32, -2.5e-8, 3.0e38, f32::MIN_POSITIVE];
    for name in ["p.csv", "p.npy", "p"] {
        data::save(folder.path(name), &values, 2).unwrap();
        assert_eq!(data::load(folder.path(name)).unwrap(), floats(2, 2, &values), "{name}");
        data::save(folder.path(name), &values, 1).unwrap();
        assert_eq!(data::load_labels(folder.path(name)).unwrap(), values, "{name}");
    }
    assert_error(data::save(folder.path("q.npy"), &values, 3), &["does not fit the shape"]);
    assert_error(data::save(folder.path("q.csv"), &values, 3), &["do not fill the table"]);
    assert_error(
        data::save_npy(folder.path("q.npy"), &values, &[2, 3]),
        &["does not fit", "[2, 3]", "4 values"],
    );
    assert!(!folder.path("q.npy").exists() && !folder.path("q.csv").exists());
}

#[test]
#[ignore = "needs MNIST in TAMIS_DATA"]
fn mnist_is_split_as_in_the_paper() {
    let data = std::env::var_os("TAMIS_DATA").expect("TAMIS_DATA names the folder of mnist/");
    let folder = PathBuf::from(data).join("mnist");
    let both = |what: &str| {
        let path =
            |part: &str| folder.join(format!("{part}-{what}-ubyte.gz")).display().to_string();
        format!("{},{}", path("train"), path("t10k"))
    };
    let (images, labels) =
        data::load_chosen(both("images-idx3"), both("labels-idx1"), |_| Ok(None)).unwrap();
    assert_eq!((images.rows, images.cols, labels.len()), (70_000, 784, 70_000));
    assert_eq!(images.values.bytes(), 70_000 * 784);
    let pair = |range| {
        let (images, labels) = select::keep_labels(images.clone(), &labels, &[0.0, 1.0]).unwrap();
        select::rows_per_label(images, &labels, range).unwrap()
    };
    let (train, train_labels) = pair(0..5000);
    assert_eq!((train.rows, &train_labels[4999..5001]), (10_000, &[0.0, 1.0][..]));
    let (test, test_labels) = pair(5000..6000);
    assert_eq!((test.rows, &test_labels[999..1001]), (2000, &[0.0, 1.0][..]));
    // Row i of the chosen ones is the i-th image of its digit.
    let Values::U8(all) = &images.values else { panic!("bytes expected") };
    let Values::U8(chosen) = &test.values else { panic!("bytes expected") };
    let ones: Vec<usize> = (0..70_000).filter(|&row| labels[row] == 1.0).collect();
    for i in [0, 500, 999] {
        let row = ones[5000 + i];
        assert_eq!(chosen[(1000 + i) * 784..][..784], all[row * 784..][..784]);
    }
}
