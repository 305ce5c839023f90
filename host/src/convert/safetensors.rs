//! safetensors: a header of JSON with names, types, shapes and places, then the values.

use std::collections::HashMap;

use half::{bf16, f16};
use safetensors::tensor::{Dtype, Metadata, SafeTensors, TensorView};

use super::{Dense, Meta, Tensor, check_finite, floats, le_bytes, shown};
use crate::{Error, Result};

/// Bytes of a header that is read: it is JSON, which takes many times its length to hold.
pub(crate) const HEADER_LIMIT: u64 = 1 << 20;

/// Reads all arrays; those that are not of floats have no values.
///
/// # Errors
/// Bytes that are not in the format, and values that are not finite.
///
/// ```
/// use tamis_host::convert::{Dense, safetensors};
/// let (name, weights) = ("0".to_owned(), vec![0.5, 2.0]);
/// let layer = Dense { name, inputs: 2, outputs: 1, weights, bias: vec![], relu: false };
/// let bytes = safetensors::write(&[layer], None).unwrap();
/// let (tensors, meta) = safetensors::read(&bytes).unwrap();
/// assert_eq!((tensors[0].name.as_str(), tensors[0].dims.as_slice()), ("0.weight", &[1, 2][..]));
/// assert_eq!((tensors[0].values.as_deref(), meta), (Some(&[0.5, 2.0][..]), None));
/// ```
pub fn read(bytes: &[u8]) -> Result<(Vec<Tensor>, Option<Meta>)> {
    let len = bytes.first_chunk().map_or(0, |size| u64::from_le_bytes(*size));
    if len > HEADER_LIMIT {
        return Err(Error::new("the header of the safetensors file is too long")
            .mismatch(format_args!("at most {HEADER_LIMIT} bytes"), format_args!("{len} bytes"))
            .help("save only the layers that are wanted, or the file is damaged: copy it again"));
    }
    let (_, metadata): (usize, Metadata) = SafeTensors::read_metadata(bytes).map_err(malformed)?;
    let text = metadata.metadata().as_ref().and_then(|map| map.get(Meta::KEY));
    let meta = text.and_then(|text| Meta::from_text(text));
    let file = SafeTensors::deserialize(bytes).map_err(malformed)?;
    let mut tensors =
        file.iter().map(|(name, view)| tensor(name, &view)).collect::<Result<Vec<_>>>()?;
    // The crate keeps them in a hash map: by name, so that the same file always gives the same
    // answer.
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    Ok((tensors, meta))
}

/// Whether a file that starts with `head` and is `len` bytes long is meant to be safetensors.
#[must_use]
pub fn matches(head: &[u8], len: u64) -> bool {
    head.split_first_chunk::<8>().is_some_and(|(size, rest)| {
        let fits = u64::from_le_bytes(*size).checked_add(8).is_some_and(|n| n <= len);
        fits && rest.first() == Some(&b'{')
    })
}

/// Writes layers as `0.weight`, `2.weight`, …: what `Sequential(Linear, ReLU, Linear, …)` of
/// PyTorch calls them.
///
/// # Errors
/// None that is known; those of the crate.
pub fn write(layers: &[Dense], meta: Option<&Meta>) -> Result<Vec<u8>> {
    let mut arrays = Vec::new();
    for (l, layer) in layers.iter().enumerate() {
        arrays.push((
            format!("{}.weight", 2 * l),
            vec![layer.outputs, layer.inputs],
            le_bytes(&layer.weights),
        ));
        if !layer.bias.is_empty() {
            arrays.push((format!("{}.bias", 2 * l), vec![layer.outputs], le_bytes(&layer.bias)));
        }
    }
    let views = arrays.iter().map(|(name, dims, bytes)| {
        let view = TensorView::new(Dtype::F32, dims.clone(), bytes).map_err(malformed)?;
        Ok((name.as_str(), view))
    });
    let views = views.collect::<Result<Vec<_>>>()?;
    // One key: the crate writes a hash map, whose order would change from run to run.
    let meta = meta.map(|meta| HashMap::from([(Meta::KEY.to_owned(), meta.to_text())]));
    safetensors::serialize(views, meta).map_err(malformed)
}

fn tensor(name: &str, view: &TensorView<'_>) -> Result<Tensor> {
    let data = view.data();
    let values = match view.dtype() {
        Dtype::F32 => Some(floats(data, f32::from_le_bytes)),
        Dtype::F64 => Some(floats(data, |bytes| f64::from_le_bytes(bytes) as f32)),
        Dtype::F16 => Some(floats(data, |bytes| f16::from_le_bytes(bytes).to_f32())),
        Dtype::BF16 => Some(floats(data, |bytes| bf16::from_le_bytes(bytes).to_f32())),
        _ => None,
    };
    values.as_deref().map_or(Ok(()), |values| check_finite(&shown(name), values))?;
    Ok(Tensor { name: name.to_owned(), dims: view.shape().to_vec(), values })
}

#[allow(clippy::needless_pass_by_value, reason = "goes to map_err")]
pub(crate) fn malformed(error: impl std::fmt::Display) -> Error {
    Error::new("the safetensors file is malformed")
        .expected("a header of JSON, then the values that it describes, without gaps")
        .got(shown(&error.to_string()))
        .help("the file is cut off or damaged: copy it again, or save it again with safetensors")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file of one array of two values.
    fn file(dtype: &str, values: &[u8]) -> Vec<u8> {
        let header = format!(
            "{{\"w\":{{\"dtype\":\"{dtype}\",\"shape\":[1,2],\"data_offsets\":[0,{}]}}}}",
            values.len()
        );
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend(values);
        bytes
    }

    #[test]
    fn floats_of_every_width_are_read() {
        let wide: Vec<u8> = [1.5_f64, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let narrow: Vec<u8> = [1.5_f32, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let half: Vec<u8> = [0x3e00_u16, 0xc000].iter().flat_map(|x| x.to_le_bytes()).collect();
        let brain: Vec<u8> = [0x3fc0_u16, 0xc000].iter().flat_map(|x| x.to_le_bytes()).collect();
        for (dtype, values) in [("F64", &wide), ("F32", &narrow), ("F16", &half), ("BF16", &brain)]
        {
            let (tensors, _) = read(&file(dtype, values)).unwrap();
            assert_eq!(
                tensors.first().unwrap().values.as_deref(),
                Some(&[1.5, -2.0][..]),
                "{dtype}"
            );
        }
        let (tensors, _) = read(&file("I32", &narrow)).unwrap();
        assert_eq!(tensors.first().unwrap().values, None);
    }

    #[test]
    fn non_finite_values_are_refused_with_their_position() {
        let wide: Vec<u8> = [1.0_f64, 1e300].iter().flat_map(|x| x.to_le_bytes()).collect();
        let error = read(&file("F64", &wide)).unwrap_err().to_string();
        assert!(error.contains("w holds") && error.contains("inf at place 1"), "{error}");
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }

        #[test]
        fn no_header_makes_the_reader_panic(
            text in "[{}\\[\\]\":,a-zF0-9]{0,80}",
            values in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
            bytes.extend(text.as_bytes());
            bytes.extend(&values);
            let _ = read(&bytes);
        }
    }
}
