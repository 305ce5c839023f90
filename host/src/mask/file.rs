//! Masks as files: the arrays of a network by their names and shapes, 1 where a weight is kept, or
//! bits in the format of models.

use std::collections::HashMap;
use std::io::{BufReader, Cursor, Read as _};
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use tamis::store::wire::{MaskView, encode_mask, mask_len};

use super::network::SourceNetwork;
use crate::base::file::{self, Aligned, Kind};
use crate::convert::named::{self, Layout};
use crate::convert::onnx::transposed;
use crate::convert::{Network, Tensor};
use crate::data::{Array, npz};
use crate::model::{LayerName, Mask};
use crate::{Error, Result};
use tamis::network::mask::packed::Packed;

/// Bytes of a file, unpacked.
const LIMIT: u64 = 1 << 30;

/// Form of a file of arrays, by the ending of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Npz,
    Safetensors,
    Tamis,
}

impl Form {
    fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("npz") => Ok(Self::Npz),
            Some("safetensors") => Ok(Self::Safetensors),
            Some("tamis") => Ok(Self::Tamis),
            ending => Err(Error::new("the file's name does not say its format")
                .at(path)
                .mismatch(".npz, .safetensors or .tamis", ending.unwrap_or("no ending"))
                .help("name it mask.npz, or mask.safetensors for PyTorch")),
        }
    }
}

/// What a file of arrays of this name holds, for checks before the work.
///
/// # Errors
/// An ending that says no format.
pub fn kind(path: &Path) -> Result<Kind> {
    Ok(match Form::of(path)? {
        Form::Npz => Kind::NPZ,
        Form::Safetensors => Kind::SAFETENSORS,
        Form::Tamis => Kind::MODEL,
    })
}

/// The same for dense weights.
///
/// # Errors
/// As [`kind`]; `.tamis` is for sparse models.
pub fn weights_kind(path: &Path) -> Result<Kind> {
    if Form::of(path)? == Form::Tamis {
        return Err(Error::new("dense weights are no .tamis file")
            .at(path)
            .mismatch(".npz or .safetensors", ".tamis")
            .help("name it weights.npz"));
    }
    kind(path)
}

/// Writes a mask: NPZ, safetensors or `.tamis`, by the ending of the name. The same mask always
/// gives the same bytes.
///
/// # Errors
/// An ending that says no format, or those of [`file::write`].
pub fn write(path: &Path, mask: &Mask) -> Result<()> {
    let form = Form::of(path)?;
    if form == Form::Tamis {
        let bits = mask.bits();
        let packed = Packed::new(mask.net()?, &bits)?;
        let mut bytes = vec![0; mask_len(&packed.net())];
        encode_mask(packed, &mut bytes)?;
        return file::write(path, |w| std::io::Write::write_all(w, &bytes));
    }
    let layer = |(name, layer): (&LayerName, crate::model::MaskLayer<'_>)| {
        let mut values = vec![0_u8; layer.inputs * layer.outputs];
        layer.own().for_each(|own| values[own] = 1);
        arrange(name, [layer.outputs, layer.inputs], values)
    };
    let arrays: Vec<_> = mask.names().iter().zip(mask.by_layer()).map(layer).collect();
    write_arrays(path, form, &arrays)
}

/// Writes the weights of a network, named and shaped as its masks are.
///
/// # Errors
/// As [`write()`]; `.tamis` is for sparse models.
pub fn export_weights(path: &Path, network: &SourceNetwork) -> Result<()> {
    weights_kind(path)?;
    let (net, dense) = (network.net()?, network.dense()?);
    let layers = network.names.iter().zip(net.layers()).map(|(name, layer)| {
        let weights = dense.weights[layer.weights()].to_vec();
        arrange(name, [layer.outputs, layer.inputs], weights)
    });
    write_arrays(path, Form::of(path)?, &layers.collect::<Vec<_>>())
}

/// An array to write.
struct NamedArray<T> {
    name: String,
    dims: [usize; 2],
    values: Vec<T>,
}

/// Values of a layer, outputs × inputs, as its array lies.
fn arrange<T: Copy + Default>(name: &LayerName, dims: [usize; 2], values: Vec<T>) -> NamedArray<T> {
    let [outputs, inputs] = dims;
    let (dims, values) = match name.in_out {
        false => (dims, values),
        true => ([inputs, outputs], transposed(&values, outputs, inputs)),
    };
    NamedArray { name: name.array.clone(), dims, values }
}

/// Numbers that both formats hold.
trait Element: crate::data::Number {
    const DTYPE: Dtype;
}

impl Element for u8 {
    const DTYPE: Dtype = Dtype::U8;
}

impl Element for f32 {
    const DTYPE: Dtype = Dtype::F32;
}

fn write_arrays<T: Element>(path: &Path, form: Form, arrays: &[NamedArray<T>]) -> Result<()> {
    if form == Form::Npz {
        let views = arrays
            .iter()
            .map(|array| Ok((array.name.as_str(), Array::new(&array.dims, &array.values)?)));
        let views = views.collect::<Result<Vec<_>>>()?;
        return file::write(path, |w| npz::write(w, &views));
    }
    let broken = |error| Error::new("cannot make a safetensors file").at(path).source(error);
    let views = arrays.iter().map(|array| {
        let bytes = bytemuck::cast_slice(&array.values);
        let view = TensorView::new(T::DTYPE, array.dims.to_vec(), bytes).map_err(broken)?;
        Ok((array.name.as_str(), view))
    });
    let views = views.collect::<Result<Vec<_>>>()?;
    let none: Option<HashMap<String, String>> = None;
    let bytes = safetensors::serialize(views, none).map_err(broken)?;
    file::write(path, |w| std::io::Write::write_all(w, &bytes))
}

/// Reads a mask by what is in the file: NPZ or safetensors of zeros and ones, or `.tamis`. Arrays
/// must be those of `network`, by name and shape, where there is one.
///
/// # Errors
/// A file that is none of them or is damaged, values other than 0 and 1, or a mask of another
/// network.
pub fn read(path: &Path, network: Option<&SourceNetwork>) -> Result<Mask> {
    read_file(path, network).map_err(|error| error.at(path))
}

fn read_file(path: &Path, network: Option<&SourceNetwork>) -> Result<Mask> {
    let (mut source, len) = file::open(path)?;
    file::check_len("file", len, LIMIT, "a mask has a byte a weight")?;
    let mut bytes = Vec::new();
    let read = source.read_to_end(&mut bytes);
    read.map_err(|error| Error::new("cannot read").source(error))?;
    let tensors = match &bytes[..] {
        [0x89, b'T', b'A', b'M', ..] => return packed(&bytes, network),
        [b'P', b'K', ..] => from_npz(&bytes)?,
        _ => from_safetensors(&bytes)?,
    };
    for tensor in &tensors {
        let values = tensor.values.as_deref().unwrap_or_default();
        if let Some(at) = values.iter().position(|&value| value != 0.0 && value != 1.0) {
            return Err(Error::new(format!("array {} is no mask", tensor.name))
                .mismatch("0 or 1 for each weight", format_args!("{} at {at}", values[at]))
                .help("pass a mask that tamis mask has written, or arrays of zeros and ones"));
        }
    }
    match network {
        Some(network) => of_network(tensors, network),
        None => by_itself(tensors),
    }
}

/// The mask of a `.tamis` file, which names no layers.
fn packed(bytes: &[u8], network: Option<&SourceNetwork>) -> Result<Mask> {
    let bytes = Aligned::new(bytes);
    if !MaskView::matches(&bytes) {
        return Err(Error::new("the file holds a model, not a mask")
            .mismatch("a mask that tamis mask has written", "a model")
            .help("pass the mask; models are trained on by tamis finetune"));
    }
    let view = MaskView::parse(&bytes)?;
    let mut widths = vec![0; view.widths().len()];
    let mask = view.mask(&mut widths)?;
    let index = mask.net().layers().flat_map(|layer| mask.layer(layer)).collect();
    let names = match network {
        Some(network) if network.widths != widths => {
            return Err(other_network("layers", &network.widths, &widths));
        }
        Some(network) => network.names.clone(),
        None => LayerName::numbered(widths.len() - 1),
    };
    Mask::new(names, widths, index)
}

fn other_network(what: &str, own: &[usize], got: &[usize]) -> Error {
    Error::new("the mask is of another network")
        .mismatch(format_args!("{what} {own:?}"), format_args!("{got:?}"))
        .help("pass the mask that was made for these weights")
}

fn from_npz(bytes: &[u8]) -> Result<Vec<Tensor>> {
    crate::convert::npz::read(BufReader::new(Cursor::new(bytes)), bytes.len() as u64)
}

/// Arrays of bytes, booleans or floats.
fn from_safetensors(bytes: &[u8]) -> Result<Vec<Tensor>> {
    let (mut tensors, _) = crate::convert::safetensors::read(bytes)?;
    let malformed = |error| Error::new("the safetensors file is malformed").source(error);
    let file = SafeTensors::deserialize(bytes).map_err(malformed)?;
    for tensor in &mut tensors {
        let view = file.tensor(&tensor.name).map_err(malformed)?;
        if matches!(view.dtype(), Dtype::U8 | Dtype::BOOL | Dtype::I8) {
            tensor.values = Some(view.data().iter().map(|&byte| f32::from(byte)).collect());
        }
    }
    Ok(tensors)
}

/// The mask of a network, array by array.
fn of_network(mut tensors: Vec<Tensor>, network: &SourceNetwork) -> Result<Mask> {
    let (net, mut index) = (network.net()?, Vec::new());
    for (name, layer) in network.names.iter().zip(net.layers()) {
        let at = tensors.iter().position(|tensor| tensor.name == name.array);
        let Some(at) = at else {
            let names: Vec<_> = tensors.iter().take(20).map(|tensor| &*tensor.name).collect();
            return Err(Error::new(format!("the mask has no array {}", name.array))
                .expected("an array for each layer, named as that of its weights")
                .got(names.join(", "))
                .help("pass the mask that was made for these weights"));
        };
        let tensor = tensors.swap_remove(at);
        let mut dims = [layer.outputs, layer.inputs];
        if name.in_out {
            dims.reverse();
        }
        if tensor.dims != dims {
            return Err(other_network(&name.array, &dims, &tensor.dims));
        }
        let values = tensor.values.unwrap_or_default();
        let values = if name.in_out { transposed(&values, dims[0], dims[1]) } else { values };
        index.extend(
            (layer.first as u32..).zip(&values).filter(|(_, v)| **v == 1.0).map(|(k, _)| k),
        );
    }
    if let Some(other) = tensors.first() {
        return Err(Error::new(format!("the mask has an array {} of no layer", other.name))
            .mismatch("the arrays of the weights", &other.name)
            .help("pass the mask that was made for these weights"));
    }
    Mask::new(network.names.clone(), network.widths.clone(), index)
}

/// The mask of a network that its arrays describe.
fn by_itself(tensors: Vec<Tensor>) -> Result<Mask> {
    let Network { layers, names, .. } = named::network(tensors, None, Layout::Auto)?;
    let inputs = layers.first().map_or(0, |layer| layer.inputs);
    let widths = std::iter::once(inputs).chain(layers.iter().map(|layer| layer.outputs)).collect();
    let values = layers.iter().flat_map(|layer| &layer.weights);
    let index = (0..).zip(values).filter(|(_, value)| **value == 1.0).map(|(k, _)| k).collect();
    Mask::new(names, widths, index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mask::InitialWeights;
    use tamis::network::mask::initial::{Initial, Law};

    fn network() -> SourceNetwork {
        SourceNetwork::from_seed(&[5, 4, 3], Initial { seed: 1, law: Law::HeNormal }).unwrap()
    }

    fn mask(network: &SourceNetwork) -> Mask {
        let index = (0..32).filter(|k| k * 7 % 5 < 2).collect();
        Mask::new(network.names.clone(), network.widths.clone(), index).unwrap()
    }

    #[test]
    fn masks_come_back_from_every_format() {
        let folder = tempfile::tempdir().unwrap();
        let mut network = network();
        for in_out in [false, true] {
            network.names.iter_mut().for_each(|name| name.in_out = in_out);
            let mask = mask(&network);
            for name in ["m.npz", "m.safetensors", "m.tamis"] {
                let path = folder.path().join(name);
                write(&path, &mask).unwrap();
                let bytes = std::fs::read(&path).unwrap();
                assert_eq!(read(&path, Some(&network)).unwrap(), mask, "{name}");
                let alone = read(&path, None).unwrap();
                assert_eq!(
                    (alone.widths(), alone.index()),
                    (mask.widths(), mask.index()),
                    "{name}"
                );
                write(&path, &mask).unwrap();
                assert_eq!(std::fs::read(&path).unwrap(), bytes, "{name}");
            }
        }
    }

    #[test]
    fn weights_of_a_seed_come_back_by_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let network = network();
        for name in ["w.npz", "w.safetensors"] {
            let path = folder.path().join(name);
            export_weights(&path, &network).unwrap();
            let again = SourceNetwork::from_file(&path, None, Layout::Auto).unwrap();
            assert_eq!((&again.names, &again.widths), (&network.names, &network.widths));
            assert_eq!(again.weights, InitialWeights::Dense(network.dense().unwrap()));
        }
        assert!(export_weights(&folder.path().join("w.tamis"), &network).is_err());
    }

    #[test]
    fn masks_of_other_networks_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let own = network();
        let refused = |name: &str, network: &SourceNetwork| {
            read(&folder.path().join(name), Some(network)).unwrap_err().to_string()
        };
        let initial = Initial { seed: 1, law: Law::HeNormal };
        let wide = SourceNetwork::from_seed(&[5, 6, 3], initial).unwrap();
        let deep = SourceNetwork::from_seed(&[5, 4, 3, 2], initial).unwrap();
        let mut renamed = own.clone();
        renamed.names[0].array = "fc1.weight".into();
        for name in ["m.npz", "m.safetensors", "m.tamis"] {
            write(&folder.path().join(name), &mask(&own)).unwrap();
            assert!(refused(name, &wide).contains("another network"), "{name}");
        }
        assert!(refused("m.npz", &deep).contains("no array layer3.weight"));
        assert!(refused("m.npz", &renamed).contains("fc1.weight"));
        write(&folder.path().join("deep.npz"), &mask_of(&deep)).unwrap();
        assert!(refused("deep.npz", &own).contains("of no layer"));
        export_weights(&folder.path().join("w.npz"), &own).unwrap();
        assert!(refused("w.npz", &own).contains("is no mask"));
        std::fs::write(folder.path().join("bad"), b"nothing").unwrap();
        assert!(read(&folder.path().join("bad"), None).is_err());
    }

    fn mask_of(network: &SourceNetwork) -> Mask {
        Mask::new(network.names.clone(), network.widths.clone(), vec![0, 20, 33]).unwrap()
    }
}
