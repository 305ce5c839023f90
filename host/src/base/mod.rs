//! What every room may use: errors, files, limits of time and passes, memory, statistics,
//! loops in vectors.

pub mod error;
pub mod file;
pub(crate) mod limits;
pub(crate) mod memory;
pub(crate) mod statistics;
pub(crate) mod vectorise;

pub(crate) use error::check_setting;
pub use limits::{Limits, Stop};
pub(crate) use memory::room_for;
pub use memory::{HeapPeak, peak_rss_bytes};
pub(crate) use vectorise::vectorise;
