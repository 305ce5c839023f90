//! Data in memory, and the files it comes from and goes to.
//!
//! [`load`] reads any of the formats by what is in the file; each format also reads from a
//! [`Source`] of bytes:
//!
//! | format | module | becomes |
//! |---|---|---|
//! | idx, rank 1 to 4 | [`idx`] | bytes stay bytes, other types become `f32` |
//! | NPY | [`npy`] | `u8` and `bool` stay bytes, other types become `f32` |
//! | NPZ | [`npz`] | as NPY, one array of the archive |
//! | CSV | [`csv`] | `f32`, with the column names of the header; text and missing cells by [`DataFiles`] |
//!
//! [`image`] reads PNG files and makes samples of the pixels of one picture.
//!
//! All but NPZ may be compressed with gzip. The first axis counts samples; further axes are
//! flattened into one row. Headers are not believed: nothing is allocated that the file could not
//! fill. Values go straight into their final place, through one buffer of 64 KiB. Every value must
//! be finite.

mod array;
pub mod augment;
mod cell;
pub(crate) mod classes;
pub mod columns;
pub mod csv;
pub mod digits;
mod element;
mod files;
mod gzip;
pub mod idx;
pub mod image;
mod labels;
mod layout;
mod load;
mod matrix;
pub mod mixed;
pub mod npy;
pub mod npz;
mod oddities;
pub mod planted;
pub(crate) mod problem;
pub(crate) mod random_rows;
mod request;
mod save;
pub mod select;
mod source;
mod statistics;
mod survey;
mod table;
mod tabular;

pub use array::{Array, Number};
pub use columns::Columns;
pub use files::{DataFiles, Labels, Loaded, Rows};
pub(crate) use load::row_axes;
pub use load::{load, load_beside, load_chosen, load_labels};
pub(crate) use matrix::{LINE, shrink, spare};
pub use matrix::{Matrix, Values};
pub use problem::{Problem, Task};
pub use request::{Missing, Reading, TableOptions, Unseen};
pub use save::{save, save_csv, save_npy, save_npz};
pub use source::{Size, Source};
pub use table::Table;
