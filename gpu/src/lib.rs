//! Tamis on a GPU: the operator [`Sensing`](tamis::operator::sensing::Sensing) on Vulkan, Metal or
//! DX12.
//!
//! X, the gates as bits and all row vectors live on the device; weights, supports, sums and the
//! panels that are asked for move. The code is behind the feature `wgpu`; without it this crate is
//! empty and pulls nothing in.
//!
//! ```text
//! error → kernel → device → place → recorder → roofline → product → reduce → vectors → second → tables → data → gates → restricted → solve → select → operator → factored
//! ```
//!
//! # The same result every time
//!
//! On one device and driver a run gives the same bits each time. No floating-point atomics and no
//! subgroup operations; sums over rows are those of groups whose size and order the sizes of the
//! problem say, not the limits of the device where it binds what WebGPU does by default (software
//! adapters have fewer groups). Between devices, and against the host,
//! bits differ, since a driver may fuse a product with the sum that it goes to: products agree
//! within rounding, and a gate may differ where a sum is within rounding of 0.
//!
//! # Kernels
//!
//! One file of `kernels/` each, with its sizes; tiles and outputs have two bodies, `*_shared` for GPUs and `*_alone` for
//! software. Those over X are prefixed with `x_f32.wgsl` or
//! `x_u8.wgsl`, which read four rows of a column. X is tiled by rows into buffers of at most the
//! largest binding of the device, and vectors that are larger are bound by windows of rows.

#[cfg(feature = "wgpu")]
mod data;
#[cfg(feature = "wgpu")]
mod device;
#[cfg(feature = "wgpu")]
mod error;
#[cfg(feature = "wgpu")]
mod factored;
#[cfg(feature = "wgpu")]
mod gates;
#[cfg(feature = "wgpu")]
mod kernel;
#[cfg(feature = "wgpu")]
mod operator;
#[cfg(feature = "wgpu")]
mod place;
#[cfg(feature = "wgpu")]
mod product;
#[cfg(feature = "wgpu")]
mod recorder;
#[cfg(feature = "wgpu")]
mod reduce;
#[cfg(feature = "wgpu")]
mod restricted;
#[cfg(feature = "wgpu")]
mod roofline;
#[cfg(feature = "wgpu")]
mod second;
#[cfg(feature = "wgpu")]
mod select;
#[cfg(feature = "wgpu")]
mod solve;
#[cfg(feature = "wgpu")]
mod tables;
#[cfg(feature = "wgpu")]
mod vectors;

#[cfg(feature = "wgpu")]
pub use {
    data::{Resident, Values},
    device::{AdapterReport, Gpu, KernelTime, Profile, adapters},
    error::Error,
    operator::GpuOperator,
    product::{Lines, Products},
    recorder::Transfers,
    roofline::Roofline,
    vectors::GpuVectors,
};

#[cfg(feature = "wgpu")]
pub use wgpu;
