//! The operator on a GPU: conformance, the same bits again, limits, and devices that fail. The
//! adapter is the first one, or the one that `TAMIS_ADAPTER` names.

mod conformance;
mod device;
mod on_host;
mod recipes;
mod select;
mod vectors;

use std::sync::{Arc, OnceLock};
use tamis::base::rng::{Rng, stream};
use tamis_gpu::Gpu;
use tamis_gpu::wgpu::Limits;

/// The device that all tests share.
fn gpu() -> &'static Arc<Gpu> {
    static GPU: OnceLock<Arc<Gpu>> = OnceLock::new();
    GPU.get_or_init(|| {
        let name = std::env::var("TAMIS_ADAPTER").ok();
        Gpu::open(name.as_deref()).unwrap_or_else(|error| panic!("{error}; {}", error.help()))
    })
}

/// A device of its own whose bindings are limited to so many bytes.
fn limited(bytes: u64) -> Arc<Gpu> {
    let limits =
        |_: &Limits| Limits { max_storage_buffer_binding_size: bytes, ..Limits::default() };
    Gpu::open_with(Some(&gpu().adapter.name), limits).unwrap()
}

/// The shared device, and one of its own that has the kernels of GPUs on software, too.
fn both_bodies() -> [Arc<Gpu>; 2] {
    let mut own = Arc::into_inner(Gpu::open(Some(&gpu().adapter.name)).unwrap()).unwrap();
    if own.adapter.is_software() {
        "DiscreteGpu".clone_into(&mut own.adapter.kind);
    }
    [Arc::clone(gpu()), Arc::new(own)]
}

fn normal(len: usize, seed: u64) -> Vec<f32> {
    let mut values = vec![0.0; len];
    Rng::new(seed, stream::USER).fill_normal(&mut values);
    values
}
