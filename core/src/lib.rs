//! Sparse MLPs where memory is the limit.
//!
//! `tamis` trains, prunes and runs networks of which only the nonzero weights exist. Everything
//! here is `no_std` (but for a square root with the feature `std`), needs no allocator, contains no `unsafe`, and gives the same bits on an x86-64
//! host and on every Cortex-M. Memory belongs to the caller; [`base::budget`] says in `const fn`
//! how much each algorithm needs.
//!
//! A folder is a room, and a file may use files of rooms before its own. Two paths meet only where
//! a trained network becomes a model:
//!
//! - `base → data → network → operator → learn`
//! - `base → infer → store`
//! - `network → store`
#![no_std]

#[cfg(feature = "std")]
extern crate std;

pub mod base;
pub mod data;
pub mod infer;
pub mod learn;
pub mod network;
pub mod operator;
pub mod store;

pub use base::error::{Error, Result};
