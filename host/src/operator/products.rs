//! Products of dense matrices on a GPU.

#[cfg(feature = "gpu")]
use std::cell::RefCell;

use super::device::Device;
use crate::Result;

/// Makes products of dense matrices.
#[derive(Debug)]
pub(crate) struct GpuProducts {
    #[cfg(feature = "gpu")]
    own: RefCell<tamis_gpu::Products>,
    #[cfg(not(feature = "gpu"))]
    never: std::convert::Infallible,
}

/// The lines of a matrix, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct MatrixLines {
    pub(crate) values: Vec<f32>,
    /// Numbers of a line.
    #[cfg_attr(not(feature = "gpu"), expect(dead_code, reason = "a GPU reads it"))]
    pub(crate) inner: usize,
}

impl GpuProducts {
    /// On a device; none on the CPU, which needs no copies of matrices for them.
    pub(crate) fn on(device: &Device) -> Option<Self> {
        match device {
            Device::Cpu => None,
            #[cfg(feature = "gpu")]
            Device::Gpu(gpu) => Some(Self { own: RefCell::new(tamis_gpu::Products::new(gpu)) }),
        }
    }

    /// `A Bᵀ`, row by row, of the lines of A and of B.
    ///
    /// # Errors
    /// The device fails.
    #[cfg(feature = "gpu")]
    pub(crate) fn multiply(&self, a: &MatrixLines, b: &MatrixLines) -> Result<Vec<f32>> {
        let [a, b] = [a, b].map(|of| tamis_gpu::Lines { values: &of.values, inner: of.inner });
        Ok(self.own.borrow_mut().multiply(a, b)?)
    }

    /// As with the feature `gpu`, without which there are none.
    #[cfg(not(feature = "gpu"))]
    pub(crate) fn multiply(&self, _: &MatrixLines, _: &MatrixLines) -> Result<Vec<f32>> {
        match self.never {}
    }
}
