//! Masks as files: the arrays of a network by their names and shapes, 1 where a weight is kept, or
//! bits in the format of models.

use std::io::{Read as _, Seek as _, Write};
use std::path::Path;

use tamis::network::mask::packed::Packed;
use tamis::network::mask::{LayerShape, Mlp};
use tamis::store::wire::{MaskView, encode_mask, encoded_len, mask_len};

use super::network::{Line, SourceNetwork};
use crate::base::file::{self, Kind};
use crate::convert::named::{self, NamedShape};
use crate::convert::{Tensor, shown};
use crate::model::{LayerName, Mask};
use crate::{Error, Result};
use arrays::MaskArray;
use form::Form;
use write::{Numbers, OutgoingArray};

mod arrays;
mod form;
mod write;

/// Bytes of a `.tamis` file: no mask has more.
const LIMIT: u64 = 1 << 30;

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
/// gives the same bytes. Memory is that of the kept weights, for `.tamis` of one bit a weight.
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
        return file::write(path, |w| w.write_all(&bytes));
    }
    let arrays = mask.names().iter().zip(mask.by_layer()).map(|(name, layer)| {
        let [outputs, inputs] = [layer.outputs, layer.inputs];
        let mut places: Vec<u32> = layer.own().map(|own| own as u32).collect();
        if name.in_out {
            turn(&mut places, [outputs, inputs]);
        }
        let fill = move |w: &mut dyn Write| {
            let places = places.iter().map(|&place| place as usize);
            write::ones(w, outputs * inputs, places)
        };
        OutgoingArray::new(name, [outputs, inputs], Box::new(fill))
    });
    write::arrays(path, form, Numbers::Bytes, &mut arrays.collect::<Vec<_>>())
}

/// Writes the weights of a network, named and shaped as its masks are, a row at a time.
///
/// # Errors
/// As [`write()`]; `.tamis` is for sparse models.
pub fn export_weights(path: &Path, network: &SourceNetwork) -> Result<()> {
    weights_kind(path)?;
    let net = network.net()?;
    let arrays = network.names.iter().zip(net.layers()).map(|(name, layer)| {
        let fill = move |w: &mut dyn Write| {
            let [rows, width] = if name.in_out {
                [layer.inputs, layer.outputs]
            } else {
                [layer.outputs, layer.inputs]
            };
            let mut values = vec![0.0; width];
            (0..rows).try_for_each(|row| {
                network.line(&layer, Line { row, is_input: name.in_out }, &mut values);
                w.write_all(bytemuck::cast_slice(&values))
            })
        };
        OutgoingArray::new(name, [layer.outputs, layer.inputs], Box::new(fill))
    });
    write::arrays(path, Form::of(path)?, Numbers::Floats, &mut arrays.collect::<Vec<_>>())
}

/// Places in an array of `rows` × `columns` as those in its transpose, rising.
fn turn(places: &mut [u32], [rows, columns]: [usize; 2]) {
    for place in places.iter_mut() {
        let [row, column] = [*place as usize / columns, *place as usize % columns];
        *place = (column * rows + row) as u32;
    }
    places.sort_unstable();
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
    let unreadable = |error| Error::new("cannot read").source(error);
    let mut head = Vec::with_capacity(16);
    (&source).take(16).read_to_end(&mut head).map_err(unreadable)?;
    source.rewind().map_err(unreadable)?;
    if head.starts_with(b"\x89TAM") {
        file::check_len("file", len, LIMIT, "a .tamis mask has a bit a weight")?;
        return packed(&file::read_aligned(path)?, network);
    }
    let arrays = arrays::read(source, len, &head)?;
    match network {
        Some(network) => of_network(arrays, network),
        None => by_itself(arrays),
    }
}

/// The mask of a `.tamis` file, which names no layers.
fn packed(bytes: &[u8], network: Option<&SourceNetwork>) -> Result<Mask> {
    // A file that is cut off has no section to tell them apart by.
    let is_whole = encoded_len(bytes).is_ok_and(|len| len <= bytes.len());
    if is_whole && !MaskView::matches(bytes) {
        return Err(Error::new("the file holds a model, not a mask")
            .mismatch("a mask that tamis mask has written", "a model")
            .help("pass the mask; models are trained on by tamis finetune"));
    }
    let view = MaskView::parse(bytes).map_err(damaged)?;
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

/// What is wrong with bytes that are no mask.
fn damaged(error: tamis::Error) -> Error {
    match error {
        tamis::Error::Version { .. } | tamis::Error::Newer { .. } => {
            Error::from(error).help("update tamis, or make the mask again with this one")
        }
        error => Error::new("the file is not a whole mask").source(error).help(
            "the file is cut off or damaged: copy it again, or make it again with tamis mask",
        ),
    }
}

fn other_network(what: &str, own: &[usize], got: &[usize]) -> Error {
    Error::new("the mask is of another network")
        .mismatch(format_args!("{what} {own:?}"), format_args!("{got:?}"))
        .help("pass the mask that was made for these weights")
}

/// The mask of a network, array by array.
fn of_network(mut arrays: Vec<MaskArray>, network: &SourceNetwork) -> Result<Mask> {
    let net = network.net()?;
    let names: Vec<_> = arrays.iter().take(20).map(|array| shown(&array.name)).collect();
    let mut index = Vec::with_capacity(arrays.iter().map(|array| array.ones.len()).sum());
    for (name, layer) in network.names.iter().zip(net.layers()) {
        let at = arrays.iter().position(|array| array.name == name.array);
        let Some(at) = at else {
            return Err(Error::new(format!("the mask has no array {}", name.array))
                .expected("an array for each layer, named as that of its weights")
                .got(if names.is_empty() { "no arrays".into() } else { names.join(", ") })
                .help("pass the mask that was made for these weights"));
        };
        let MaskArray { dims, ones, .. } = arrays.swap_remove(at);
        let mut own = [layer.outputs, layer.inputs];
        if name.in_out {
            own.reverse();
        }
        if dims != own {
            return Err(other_network(&name.array, &own, &dims));
        }
        append(&mut index, Placed { ones, in_out: name.in_out }, &layer);
    }
    if let Some(other) = arrays.first() {
        return Err(Error::new(format!(
            "the mask has an array {} of no layer",
            shown(&other.name)
        ))
        .mismatch("the arrays of the weights", shown(&other.name))
        .help("pass the mask that was made for these weights"));
    }
    Mask::new(network.names.clone(), network.widths.clone(), index)
}

/// The mask of a network that its arrays describe.
fn by_itself(mut arrays: Vec<MaskArray>) -> Result<Mask> {
    let tensor = |array: &MaskArray| Tensor {
        name: array.name.clone(),
        dims: array.dims.clone(),
        values: Some(Vec::new()),
    };
    let NamedShape { names, widths } = named::shape_of(arrays.iter().map(tensor).collect())?;
    let (net, mut index) = (Mlp::new(&widths)?, Vec::new());
    for (name, layer) in names.iter().zip(net.layers()) {
        let array = arrays.iter_mut().find(|array| array.name == name.array);
        let ones = array.map(|array| std::mem::take(&mut array.ones)).unwrap_or_default();
        append(&mut index, Placed { ones, in_out: name.in_out }, &layer);
    }
    Mask::new(names, widths, index)
}

/// Places of ones in the array of a layer.
struct Placed {
    ones: Vec<u32>,
    in_out: bool,
}

/// Appends the flat indices of a layer's weights.
fn append(index: &mut Vec<u32>, placed: Placed, layer: &LayerShape) {
    let Placed { mut ones, in_out } = placed;
    if in_out {
        turn(&mut ones, [layer.inputs, layer.outputs]);
    }
    index.extend(ones.iter().map(|&own| layer.first as u32 + own));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::named::Layout;
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
    fn seeded_weights_roundtrip_under_their_names() {
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
