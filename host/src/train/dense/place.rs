//! Where dense networks are trained: on the CPU, or on what a program has installed.

use std::sync::{Arc, OnceLock};

use super::device::DenseDevice;
use super::threads::Threads;
use crate::{Error, Result};

/// Where dense networks are trained; by default on the CPU.
#[derive(Debug, Clone)]
pub struct DensePlace(Arc<dyn DenseDevice>);

impl Default for DensePlace {
    fn default() -> Self {
        Self::new(Threads)
    }
}

/// The same device.
impl PartialEq for DensePlace {
    fn eq(&self, other: &Self) -> bool {
        self.0.name() == other.0.name()
    }
}

impl std::ops::Deref for DensePlace {
    type Target = dyn DenseDevice;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl DensePlace {
    /// On a device.
    #[must_use]
    pub fn new(device: impl DenseDevice + 'static) -> Self {
        Self(Arc::new(device))
    }

    /// On the GPU of this name, or of one that contains it; the first one where there is no name.
    ///
    /// # Errors
    /// There is none, or this program trains dense networks on the CPU alone.
    pub fn gpu(name: Option<&str>) -> Result<Self> {
        let Some(open) = OPENER.get() else {
            return Err(Error::new("this program trains dense networks on the CPU alone")
                .expected("the program of gpu/dense")
                .got("that of host")
                .help(
                    "cargo run --release --manifest-path gpu/dense/Cargo.toml --features wgpu -- …, \
                     or leave --device out",
                ));
        };
        open(name)
    }

    /// Whether [`Self::gpu`] has what to open.
    #[must_use]
    pub fn has_gpu() -> bool {
        OPENER.get().is_some()
    }
}

/// Opens a GPU by its name.
type Opener = fn(Option<&str>) -> Result<DensePlace>;

static OPENER: OnceLock<Opener> = OnceLock::new();

/// Says how the GPUs of this program are opened for dense networks, once.
pub fn install(opener: Opener) {
    OPENER.get_or_init(|| opener);
}
