//! Prediction from models in flash that is not mapped into memory, such as a chip on an SPI bus:
//! weights are read piece by piece into a buffer of the caller, through
//! [`ReadNorFlash`](embedded_storage::nor_flash::ReadNorFlash) of `embedded-storage`.
//!
//! A device needs RAM for the activations and for a buffer of 48 bytes or more, however large the
//! model is; each prediction reads all of it once. Rows go through the kernels that models in
//! memory use, piece by piece of a row in its order, so predictions have the same bits. Layers of
//! floats must be in rows, those of integers in blocks:
//! `tamis export --format tamis --encoding rows` and `--encoding blocks` write a model so.
//!
//! Opening reads the file twice, for its checksum and to check every number, as
//! [`crate::store::wire::View::parse`] does. What the bus gives later is not checked again:
//! [`Model::check`] reads the checksum anew. A read that fails ends the call with its error and
//! leaves the outputs as they were.
//!
//! ```
//! # mod mapped {
//! #     use embedded_storage::nor_flash::{ErrorType, ReadNorFlash};
//! #     pub struct Mapped<'a>(pub &'a [u8]);
//! #     impl ErrorType for Mapped<'_> { type Error = core::convert::Infallible; }
//! #     impl ReadNorFlash for Mapped<'_> {
//! #         const READ_SIZE: usize = 1;
//! #         fn read(&mut self, at: u32, out: &mut [u8]) -> Result<(), Self::Error> {
//! #             out.copy_from_slice(&self.0[at as usize..][..out.len()]);
//! #             Ok(())
//! #         }
//! #         fn capacity(&self) -> usize { self.0.len() }
//! #     }
//! # }
//! # let w = tamis::network::weights::Weights::new(3, 3, &[0, 2, 4], &[1.0, -0.5, -2.0])?;
//! # let trained = tamis::network::net::Network::signed(w, tamis::network::gates::Signs::Balanced);
//! # let owned: tamis::store::wire::OwnedModel<108> = tamis::store::wire::OwnedModel::from_trained(trained, 3, None)?;
//! # let chip = mapped::Mapped(owned.as_bytes());
//! use tamis::store::stream::Model;
//!
//! // A driver of the chip; the model starts at its first byte.
//! let mut buffer = [0; 64];
//! let mut model = Model::open(chip, 0, &mut buffer)?;
//! assert_eq!((model.inputs(), model.scratch_len()), (3, 3));
//! let (mut scratch, mut f) = ([0.0; 3], [0.0]);
//! model.predict(&[3.0, 0.25, 1.0], &mut buffer, &mut scratch, &mut f)?;
//! assert_eq!(f, [2.0]);
//! # Ok::<(), tamis::Error>(())
//! ```

mod array;
mod file;
mod floats;
mod integers;

pub use floats::Model;
pub use integers::QuantisedModel;

use crate::base::error::{Error, Result, length, range};
use crate::infer::model::MAX_LAYERS;
use crate::store::wire::{Head, TAG_SUM};

/// The fewest words of a buffer.
pub const LEAST_WORDS: usize = 12;

/// A layer, and where its arrays start in the file.
#[derive(Debug, Clone, Copy)]
struct Layer {
    head: Head,
    at: usize,
}

impl Layer {
    /// Where array `k` is, and its bytes.
    fn array(&self, k: usize) -> Place {
        Place {
            at: self.at + self.head.start(k),
            len: self.head.arrays.get(k).copied().unwrap_or(0),
        }
    }

    const fn is_sum(&self) -> bool {
        self.head.tag == TAG_SUM
    }
}

type Layers = heapless::Vec<Layer, MAX_LAYERS>;

/// One more layer.
fn push(layers: &mut Layers, layer: Layer) -> Result<()> {
    let many =
        Error::Range { what: "layers of the model", min: 1, max: MAX_LAYERS, got: MAX_LAYERS + 1 };
    layers.push(layer).map_err(|_| many)
}

/// Checks that layers follow each other, that a sum is the last, and that the file's head says the
/// same.
fn check_chain(layers: &[Layer], [inputs, outputs]: [u32; 2]) -> Result<()> {
    range("layers of the model", layers.len(), 1, MAX_LAYERS)?;
    let sum = layers.iter().position(Layer::is_sum).map_or(layers.len(), |k| k + 1);
    length("layers up to the sum", sum, layers.len())?;
    for pair in layers.windows(2) {
        if let [before, after] = pair {
            length("inputs of a layer", after.head.inputs, before.head.outputs)?;
        }
    }
    let ends = layers
        .first()
        .zip(layers.last())
        .map(|(first, last)| (first.head.inputs, last.head.outputs));
    let (first, last) = ends.unwrap_or_default();
    length("inputs of the model", first, inputs as usize)?;
    length("outputs of the model", last, outputs as usize)
}

/// Checks the lengths of a row, of a prediction, of the scratch and of the buffer.
fn check_call<S>(given: &Lengths, needed: &Lengths, buffer: &[u32]) -> Result<(), S> {
    length("input row", given.row, needed.row)?;
    length("prediction", given.out, needed.out)?;
    if given.scratch < needed.scratch {
        let [needed, got] = [needed.scratch, given.scratch].map(|len| len.saturating_mul(4));
        return Err(Error::Budget { needed, got });
    }
    check_buffer(buffer)
}

/// Where an array lies in the file, and its bytes.
#[derive(Clone, Copy)]
struct Place {
    at: usize,
    len: usize,
}

/// Lengths of the arguments of a prediction.
struct Lengths {
    row: usize,
    out: usize,
    scratch: usize,
}

fn check_buffer<S>(buffer: &[u32]) -> Result<(), S> {
    if buffer.len() < LEAST_WORDS {
        return Err(Error::Budget { needed: 4 * LEAST_WORDS, got: size_of_val(buffer) });
    }
    Ok(())
}

/// The error of a row that has fewer numbers than it says.
const fn missing<S>(expected: usize) -> Error<S> {
    Error::Length { what: "numbers of the row that is read", expected, got: 0 }
}

/// The columns of rows that are checked: each above the one before in its row, and below the
/// inputs.
#[derive(Debug, Default)]
struct Rising {
    least: usize,
    at: usize,
}

impl Rising {
    fn then(&mut self, column: usize, inputs: usize) -> Result<()> {
        if column < self.least {
            return Err(Error::Unsorted { at: self.at });
        }
        (self.least, self.at) = (column + 1, self.at + 1);
        range("columns used", self.least, 0, inputs)
    }

    const fn end_row(&mut self, is_end: bool) {
        if is_end {
            self.least = 0;
        }
    }
}
