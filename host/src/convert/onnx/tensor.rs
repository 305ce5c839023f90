//! Constants of a graph: initialisers and the values of `Constant` nodes, decoded when they are
//! used.

use std::collections::HashMap;

use bytes::Bytes;
use half::{bf16, f16};

use super::proto;
use crate::convert::{check_finite, elements, floats, shape, shown};
use crate::{Error, Result};

pub(super) mod element {
    pub(crate) const FLOAT: i32 = 1;
    pub(super) const INT32: i32 = 6;
    pub(super) const INT64: i32 = 7;
    pub(super) const FLOAT16: i32 = 10;
    pub(super) const DOUBLE: i32 = 11;
    pub(super) const BFLOAT16: i32 = 16;
}

const MOST_INTEGERS: usize = 1 << 16;

/// `data_location` of values in a file of their own.
const EXTERNAL: i32 = 1;

/// Opens the files beside a model that hold its weights.
pub type Beside<'a> = dyn FnMut(&str) -> Result<Bytes> + 'a;

/// A constant as nodes see it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Constant<'g> {
    pub(super) tensor: &'g proto::Tensor,
    /// Seen with its two axes exchanged.
    pub(super) transposed: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Array {
    pub(super) dims: Vec<usize>,
    pub(super) values: Vec<f32>,
}

pub(super) fn is_float(kind: i64) -> bool {
    [element::FLOAT, element::FLOAT16, element::DOUBLE, element::BFLOAT16]
        .map(i64::from)
        .contains(&kind)
}

impl Constant<'_> {
    fn name(&self) -> String {
        shown(&self.tensor.name)
    }

    /// Its axes, as nodes see them.
    fn dims(&self) -> Result<Vec<usize>> {
        let dims: Option<Vec<usize>> =
            self.tensor.dims.iter().map(|&dim| usize::try_from(dim).ok()).collect();
        let wrong = || {
            Error::new(format!("the constant {} has axes that no array has", self.name()))
                .expected("lengths of 1 or more")
                .got(format_args!("{:?}", &self.tensor.dims[..self.tensor.dims.len().min(8)]))
                .help("the file is damaged: export the network again")
        };
        let mut dims = dims.filter(|dims| elements(dims).is_some()).ok_or_else(wrong)?;
        if self.transposed {
            dims.reverse();
        }
        Ok(dims)
    }

    pub(super) fn len(&self) -> usize {
        self.dims().ok().and_then(|dims| elements(&dims)).unwrap_or(0)
    }

    /// Numbers that it holds at the most; none where they lie in another file.
    pub(super) fn stored(&self) -> Option<usize> {
        let tensor = self.tensor;
        let lists =
            tensor.float_data.len().max(tensor.double_data.len()).max(tensor.int32_data.len());
        (tensor.data_location != EXTERNAL).then(|| lists.max(tensor.raw_data.len()))
    }

    /// Its floats, decoded; `beside` opens files that hold weights of their own.
    pub(super) fn floats(&self, beside: &mut Beside<'_>) -> Result<Array> {
        let dims = self.dims()?;
        let tensor = self.tensor;
        let external =
            (tensor.data_location == EXTERNAL).then(|| self.external(beside)).transpose()?;
        let raw = external.as_ref().unwrap_or(&tensor.raw_data);
        let is_raw = !raw.is_empty();
        let halves = || tensor.int32_data.iter().map(|&bits| bits as u16);
        let values = match tensor.data_type {
            element::FLOAT if is_raw => floats(raw, f32::from_le_bytes),
            element::FLOAT => tensor.float_data.clone(),
            element::DOUBLE if is_raw => floats(raw, |bytes| f64::from_le_bytes(bytes) as f32),
            element::DOUBLE => tensor.double_data.iter().map(|&value| value as f32).collect(),
            element::FLOAT16 if is_raw => floats(raw, |bytes| f16::from_le_bytes(bytes).to_f32()),
            element::FLOAT16 => halves().map(|bits| f16::from_bits(bits).to_f32()).collect(),
            element::BFLOAT16 if is_raw => floats(raw, |bytes| bf16::from_le_bytes(bytes).to_f32()),
            element::BFLOAT16 => halves().map(|bits| bf16::from_bits(bits).to_f32()).collect(),
            other => {
                return Err(Error::new(format!("the constant {} is not of floats", self.name()))
                    .expected("element type 1 (float), 10 (float16), 11 (double) or 16 (bfloat16)")
                    .got(format_args!("element type {other}"))
                    .help("export the network before it is quantised"));
            }
        };
        self.check_len(&dims, values.len())?;
        check_finite(&shown(&tensor.name), &values)?;
        // The axes are exchanged already: what lies in memory is `cols × rows`.
        let values = match dims[..] {
            [rows, cols] if self.transposed => transposed(&values, cols, rows),
            _ => values,
        };
        Ok(Array { dims, values })
    }

    pub(super) fn integers(&self) -> Result<Vec<i64>> {
        let tensor = self.tensor;
        let is_raw = !tensor.raw_data.is_empty();
        if self.len() > MOST_INTEGERS {
            return Err(Error::new(format!("the constant {} is too long", self.name()))
                .mismatch(format_args!("at most {MOST_INTEGERS} integers"), self.len()));
        }
        let raw = &tensor.raw_data;
        let values = match tensor.data_type {
            element::INT64 if is_raw => {
                raw.as_chunks().0.iter().map(|&b| i64::from_le_bytes(b)).collect()
            }
            element::INT64 => tensor.int64_data.clone(),
            element::INT32 if is_raw => {
                raw.as_chunks().0.iter().map(|&b| i32::from_le_bytes(b).into()).collect()
            }
            element::INT32 => tensor.int32_data.iter().map(|&value| value.into()).collect(),
            other => {
                return Err(Error::new(format!("the constant {} is not of integers", self.name()))
                    .expected("element type 6 or 7 (int32, int64)")
                    .got(format_args!("element type {other}")));
            }
        };
        self.check_len(&self.dims()?, values.len())?;
        Ok(values)
    }

    fn check_len(&self, dims: &[usize], len: usize) -> Result<()> {
        if elements(dims) == Some(len) {
            return Ok(());
        }
        let name = self.name();
        Err(Error::new(format!("the constant {name} has more or fewer values than its axes say"))
            .mismatch(shape(dims), format_args!("{len} values"))
            .help("the file is damaged: export the network again"))
    }

    fn external(&self, beside: &mut Beside<'_>) -> Result<Bytes> {
        let entry = |key: &str| self.tensor.external_data.iter().find(|entry| entry.key == key);
        let place = |key: &str| {
            let number = |value: &str| value.parse::<usize>().map_err(|_| self.misplaced(value));
            entry(key).map(|entry| number(&entry.value)).transpose()
        };
        let location = entry("location").map_or("", |entry| &entry.value);
        // A name alone: nothing outside the model's folder is read.
        let is_path = location.contains(['/', '\\', ':', '\0']) || location.starts_with("..");
        if location.is_empty() || is_path {
            let what = format!("the values of {} are in a file that is not opened", self.name());
            return Err(Error::new(what)
                .expected("the name of a file in the folder of the model")
                .got(format_args!("{:?}", shown(location)))
                .help(
                    "export the network with its weights in the file (PyTorch: \
                    external_data=False)",
                ));
        }
        let file = beside(location)?;
        let start = place("offset")?.unwrap_or(0);
        let end = match place("length")? {
            Some(len) => start.saturating_add(len),
            None => file.len(),
        };
        if start > end || end > file.len() {
            return Err(self.misplaced(&format!("{start} to {end} of {} bytes", file.len())));
        }
        Ok(file.slice(start..end))
    }

    fn misplaced(&self, got: &str) -> Error {
        Error::new(format!("the values of {} are not where the model says", self.name()))
            .mismatch("a place within the file of weights", shown(got))
            .help("the file of weights is cut off or of another model: export the network again")
    }
}

/// Gives a constant its name, which no other one has.
pub(super) fn define<'g>(
    constants: &mut HashMap<&'g str, Constant<'g>>,
    name: &'g str,
    constant: Constant<'g>,
) -> Result<()> {
    match constants.insert(name, constant) {
        None => Ok(()),
        Some(_) => Err(Error::new("two constants have one name")
            .expected("a name for each initializer and each constant")
            .got(format_args!("{} twice", shown(name)))
            .help("the file is damaged: export the network again")),
    }
}

/// `rows × cols` numbers as `cols × rows`.
pub(crate) fn transposed<T: Copy + Default>(values: &[T], rows: usize, cols: usize) -> Vec<T> {
    let at = |place: usize| values.get(place).copied().unwrap_or_default();
    (0..cols).flat_map(|c| (0..rows).map(move |r| at(r * cols + c))).collect()
}
