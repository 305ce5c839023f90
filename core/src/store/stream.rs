//! Prediction from models in flash that is not mapped into memory, such as a chip on an SPI bus:
//! weights are read piece by piece into a buffer of the caller, through
//! [`ReadNorFlash`](embedded_storage::nor_flash::ReadNorFlash) of `embedded-storage`.
//!
//! A device needs RAM for the activations and for a buffer of 48 bytes or more, however large the
//! model is; each prediction reads all of it once and has the bits of models in memory. Layers of
//! floats must be in rows, those of integers in blocks:
//! `tamis export --format tamis --encoding rows` and `--encoding blocks` write a model so.
//!
//! Opening reads the file twice, for its checksum and to check every number. What the bus gives
//! later is not checked again: [`Model::check`] reads the checksum anew. A read that fails ends the
//! call with its error and leaves the outputs as they were.
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
mod model;

pub use file::LEAST_WORDS;
pub use model::{Model, QuantisedModel, Streamed};
