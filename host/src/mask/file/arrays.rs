//! Arrays of zeros and ones out of files, as the places of their ones: values pass through one
//! buffer, so that memory is that of the kept weights, whatever the network's size.

use std::fs::File;
use std::io::{BufReader, Read};

use half::{bf16, f16};
use safetensors::tensor::{Dtype, Metadata, TensorInfo};

use crate::base::memory::room_for;
use crate::convert::safetensors::{HEADER_LIMIT, malformed};
use crate::convert::{npz::ARRAYS, shown};
use crate::data::{npy::ArrayReader, npz};
use crate::{Error, Result};

/// An array of a mask.
pub(super) struct MaskArray {
    pub(super) name: String,
    pub(super) dims: Vec<usize>,
    /// Places of its ones, rising, the last axis fastest.
    pub(super) ones: Vec<u32>,
}

/// The arrays of a file of `len` bytes that starts with `head`: NPZ, else safetensors.
pub(super) fn read(file: File, len: u64, head: &[u8]) -> Result<Vec<MaskArray>> {
    let reader = BufReader::with_capacity(1 << 16, file);
    if head.starts_with(b"PK") {
        return from_npz(reader, len);
    }
    if crate::convert::safetensors::matches(head, len) {
        return from_safetensors(reader, len);
    }
    Err(Error::new("the file holds no mask")
        .expected("an NPZ archive, a safetensors file, or a .tamis mask")
        .got(match len {
            0 => "an empty file".to_owned(),
            _ => format!("{len} bytes of no such format"),
        })
        .help("the file is cut off or of another kind: make it again with tamis mask"))
}

fn from_npz(reader: BufReader<File>, len: u64) -> Result<Vec<MaskArray>> {
    let (mut arrays, mut limit) = (Vec::new(), Limit::default());
    npz::for_each(reader, len, ARRAYS, |name, source| {
        let array = ArrayReader::open(source)?;
        limit.add(array.dims().iter().copied())?;
        let dims = array.dims().iter().map(|&dim| dim as usize).collect();
        let mut ones = Ones::default();
        array.nonzeros(|at, value| ones.add(at, f64::from(value)))?;
        arrays.push(MaskArray { name: name.to_owned(), dims, ones: ones.places() });
        Ok(())
    })?;
    Ok(arrays)
}

fn from_safetensors(mut reader: BufReader<File>, len: u64) -> Result<Vec<MaskArray>> {
    let unreadable = |error| Error::new("cannot read").source(error);
    let mut size = [0; 8];
    reader.read_exact(&mut size).map_err(unreadable)?;
    let size = u64::from_le_bytes(size);
    if size > HEADER_LIMIT {
        return Err(Error::new("the header of the safetensors file is too long")
            .mismatch(format_args!("at most {HEADER_LIMIT} bytes"), format_args!("{size} bytes"))
            .help("save only the arrays of the mask, or the file is damaged: copy it again"));
    }
    let mut header = vec![0; size as usize];
    reader.read_exact(&mut header).map_err(unreadable)?;
    let metadata: Metadata = serde_json::from_slice(&header).map_err(malformed)?;
    let (values, left) = (metadata.data_len() as u64, len.saturating_sub(8 + size));
    if values != left {
        return Err(malformed(format_args!("{left} bytes of values where it describes {values}")));
    }
    let (mut arrays, mut limit) = (Vec::new(), Limit::default());
    for name in metadata.offset_keys() {
        let Some(info) = metadata.info(&name) else { continue };
        let ones = limit
            .add(info.shape.iter().map(|&dim| dim as u64))
            .and_then(|()| ones(&mut reader, info))
            .map_err(|error| error.of(shown(&name)))?;
        arrays.push(MaskArray { name, dims: info.shape.clone(), ones });
    }
    arrays.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(arrays)
}

/// Places of the ones of the next array.
fn ones(reader: &mut impl Read, info: &TensorInfo) -> Result<Vec<u32>> {
    let Some(Element { size, value }) = Element::of(info.dtype) else {
        return Err(Error::new("the array is no mask")
            .mismatch("booleans, whole numbers or floats", format_args!("{:?}", info.dtype))
            .help("save the mask as bytes of 0 and 1"));
    };
    let (mut ones, mut buffer) = (Ones::default(), vec![0; 1 << 16]);
    let (start, end) = info.data_offsets;
    let (mut left, mut done) = (end - start, 0);
    while left > 0 {
        let most = left.min(buffer.len());
        let chunk = &mut buffer[..most];
        reader.read_exact(chunk).map_err(|error| Error::new("cannot read").source(error))?;
        for (k, bytes) in chunk.chunks_exact(size).enumerate() {
            if bytes.iter().any(|&byte| byte != 0) {
                ones.add(done + k, value(bytes))?;
            }
        }
        (left, done) = (left - most, done + most / size);
    }
    Ok(ones.places())
}

/// How a number lies in a safetensors file.
struct Element {
    size: usize,
    value: fn(&[u8]) -> f64,
}

impl Element {
    fn of(dtype: Dtype) -> Option<Self> {
        macro_rules! element {
            ($number:ty, $to:expr) => {{
                const SIZE: usize = size_of::<$number>();
                let value = |bytes: &[u8]| {
                    let bytes = bytes.first_chunk::<SIZE>().copied().unwrap_or([0; SIZE]);
                    $to(<$number>::from_le_bytes(bytes))
                };
                Self { size: SIZE, value }
            }};
        }
        Some(match dtype {
            Dtype::BOOL | Dtype::U8 => element!(u8, f64::from),
            Dtype::I8 => element!(i8, f64::from),
            Dtype::U16 => element!(u16, f64::from),
            Dtype::I16 => element!(i16, f64::from),
            Dtype::U32 => element!(u32, f64::from),
            Dtype::I32 => element!(i32, f64::from),
            Dtype::U64 => element!(u64, |value| value as f64),
            Dtype::I64 => element!(i64, |value| value as f64),
            Dtype::F16 => element!(f16, f16::to_f64),
            Dtype::BF16 => element!(bf16, bf16::to_f64),
            Dtype::F32 => element!(f32, f64::from),
            Dtype::F64 => element!(f64, |value| value),
            _ => return None,
        })
    }
}

/// Places of ones so far.
#[derive(Default)]
struct Ones {
    places: Vec<u32>,
    is_unsorted: bool,
}

impl Ones {
    /// A value that is not stored as zeros, at `at`, which fits after [`Limit::add`].
    fn add(&mut self, at: usize, value: f64) -> Result<()> {
        if value == 0.0 {
            return Ok(());
        }
        if value != 1.0 {
            return Err(Error::new("the array is no mask")
                .mismatch("0 or 1 for each weight", format_args!("{value} at {at}"))
                .help("pass a mask that tamis mask has written, or arrays of zeros and ones"));
        }
        let len = self.places.len();
        if len >= 1 << 20 && len == self.places.capacity() {
            room_for("the mask", 8 * len as u64, "pass a mask of fewer weights")?;
        }
        self.is_unsorted |= self.places.last().is_some_and(|&last| last >= at as u32);
        self.places.push(at as u32);
        Ok(())
    }

    fn places(mut self) -> Vec<u32> {
        if self.is_unsorted {
            self.places.sort_unstable();
        }
        self.places
    }
}

/// Weights of all arrays so far: no network has more than 2^32 - 1.
#[derive(Default)]
struct Limit(u64);

impl Limit {
    fn add(&mut self, mut dims: impl Iterator<Item = u64>) -> Result<()> {
        let own = dims.try_fold(1_u64, u64::checked_mul);
        match own.and_then(|own| own.checked_add(self.0)) {
            Some(all) if all <= u64::from(u32::MAX) => {
                self.0 = all;
                Ok(())
            }
            _ => Err(Error::new("the arrays are too large")
                .expected(format_args!("at most {} weights in all arrays", u32::MAX))
                .got("more")
                .help("pass the mask of one network alone")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::data::{Array, npz::write};

    /// The ones of a file of one array, or the error.
    fn ones_of(bytes: &[u8]) -> Result<Vec<u32>> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        let arrays = read(file, bytes.len() as u64, &bytes[..bytes.len().min(16)])?;
        Ok(arrays.into_iter().flat_map(|array| array.ones).collect())
    }

    fn safetensors(dtype: &str, shape: [usize; 2], values: &[u8]) -> Vec<u8> {
        let header = format!(
            "{{\"w\":{{\"dtype\":\"{dtype}\",\"shape\":{shape:?},\"data_offsets\":[0,{}]}}}}",
            values.len()
        );
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend(values);
        bytes
    }

    fn npz(descr: &str, values: &[u8]) -> Vec<u8> {
        let text = format!("{{'descr': '{descr}', 'fortran_order': True, 'shape': (2, 3), }}\n");
        let mut array = b"\x93NUMPY\x01\x00".to_vec();
        array.extend((text.len() as u16).to_le_bytes());
        array.extend(text.as_bytes());
        array.extend(values);
        let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file("w.npy", options).unwrap();
        zip.write_all(&array).unwrap();
        zip.finish().unwrap().into_inner()
    }

    #[test]
    fn ones_of_every_type_are_read() {
        let places = [0, 1, 0, 0, 1, 1];
        let bytes =
            |one: &[u8]| places.map(|place| [vec![0; one.len()], one.to_vec()][place].clone());
        let half = f16::ONE.to_le_bytes();
        for (dtype, descr, one) in [
            ("U8", "|u1", &[1][..]),
            ("BOOL", "|b1", &[1]),
            ("I32", "<i4", &1_i32.to_le_bytes()),
            ("I64", "<i8", &1_i64.to_le_bytes()),
            ("F16", "<f2", &half),
            ("F32", "<f4", &1_f32.to_le_bytes()),
            ("F64", "<f8", &1_f64.to_le_bytes()),
        ] {
            let values = bytes(one).concat();
            assert_eq!(
                ones_of(&safetensors(dtype, [2, 3], &values)).unwrap(),
                [1, 4, 5],
                "{dtype}"
            );
            // The first axis runs fastest: 0 0 1 / 1 0 1.
            assert_eq!(ones_of(&npz(descr, &values)).unwrap(), [2, 3, 5], "{descr}");
        }
    }

    #[test]
    fn what_is_no_mask_is_refused() {
        let says = |bytes: &[u8]| ones_of(bytes).unwrap_err().to_string();
        let two = says(&safetensors("U8", [1, 3], &[0, 1, 2]));
        assert!(two.contains("w: the array is no mask") && two.contains("2 at 2"), "{two}");
        assert!(says(&safetensors("F32", [1, 1], &f32::NAN.to_le_bytes())).contains("NaN at 0"));
        assert!(says(&npz("<f4", &[0, 0, 0, 64].repeat(6))).contains("2 at 0"));
        assert!(says(&safetensors("U8", [1, 3], &[0, 1])).contains("malformed"));
        assert!(says(&safetensors("F8_E4M3", [1, 1], &[0])).contains("no mask"));
        assert!(says(&npz("|u1", &[0; 5])).contains("truncated"));
        assert!(says(&npz("|u1", &[0; 7])).contains("oversized"));
        let whole = safetensors("U8", [2, 3], &[0; 6]);
        (0..whole.len()).for_each(|len| assert!(ones_of(&whole[..len]).is_err(), "{len}"));
        assert!(says(b"").contains("an empty file"));
        assert!(says(b"PK\x03\x04").contains("archive"));
    }

    #[test]
    fn more_weights_than_a_network_has_are_refused() {
        let mut limit = Limit::default();
        assert!(limit.add([u64::from(u32::MAX)].into_iter()).is_ok());
        assert!(
            limit.add([1].into_iter()).is_err() && limit.add([1 << 40; 2].into_iter()).is_err()
        );
        let mut file = std::io::Cursor::new(Vec::new());
        write(&mut file, &[("w", Array::new(&[2, 2], &[0_u8, 1, 1, 0]).unwrap())]).unwrap();
        assert_eq!(ones_of(file.get_ref()).unwrap(), [1, 2]);
    }
}
