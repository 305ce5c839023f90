//! What the checkpoints of each recipe are bound to: sizes, settings, memory and data.

mod anneal;
mod common;
mod lm;
mod paper;

pub(crate) use anneal::form as anneal_form;
pub(crate) use lm::form as lm_form;
pub(crate) use paper::{form as paper_form, form_outputs as outputs_form};
