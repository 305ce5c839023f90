//! Loading takes the memory of the data and little more: bytes are counted by the allocator.

mod counting;

use counting::peak;
use tamis_host::data::{self, Values, select};

#[test]
fn loading_makes_no_second_copy() {
    const SLACK: usize = 256 << 10;
    let (rows, cols) = (50_000, 100);
    let data = 4 * rows * cols;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("X.npy");
    let values: Vec<f32> = (0..rows * cols).map(|i| i as f32).collect();
    data::save_npy(&path, &values, &[rows, cols]).unwrap();

    let (matrix, used) = peak(|| data::load(&path).unwrap());
    assert!(used <= data + SLACK, "C order: {used} bytes for {data}");
    assert_eq!(matrix.values, Values::F32(values.clone()));

    let labels: Vec<f32> = (0..rows).map(|row| (row % 2) as f32).collect();
    let (kept, used) = peak(|| select::rows_per_label(matrix, &labels, 0..10_000).unwrap().0);
    // 17 bytes per row of indices and marks; the final cut is counted as a new block of the kept
    // size.
    assert!(used <= 4 * 20_000 * cols + 32 * rows + SLACK, "selection: {used} bytes");
    assert_eq!(kept.rows, 20_000);
    drop(kept);

    let fortran = folder.path().join("F.npy");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(5).position(|w| w == b"False").unwrap();
    bytes[at..at + 5].copy_from_slice(b"True ");
    std::fs::write(&fortran, bytes).unwrap();
    let (matrix, used) = peak(|| data::load(&fortran).unwrap());
    assert!(used <= data + 2 * SLACK, "Fortran order: {used} bytes for {data}");
    let Values::F32(turned) = matrix.values else { panic!("floats expected") };
    assert_eq!(turned[1], values[rows]);

    let lie = folder.path().join("lie.npy");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(5).position(|w| w == b"50000").unwrap();
    bytes[at..at + 5].copy_from_slice(b"90000");
    bytes.truncate(1 << 20);
    std::fs::write(&lie, bytes).unwrap();
    let (error, used) = peak(|| data::load(&lie).unwrap_err());
    assert!(error.to_string().contains("truncated") && used < SLACK, "{used} bytes: {error}");
}
