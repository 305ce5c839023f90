//! Training under a mask: what is trained and how, and where dense networks are trained.

mod elsewhere;
mod job;

pub(crate) use elsewhere::Elsewhere;
pub(crate) use job::Ran;
pub use job::{MaskedSettings, MaskedStart};
