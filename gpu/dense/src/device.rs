//! A device of burn: opened by its name, and what it does for dense networks.

use burn_tensor::Device;
use tamis_host::train::dense::{
    DenseDevice, DensePlace, DenseTraining, Goal, Measure, NetOnRows, Passed, Setup,
};
use tamis_host::{Error, Result};

use crate::network::{Network, add};
use crate::rows::{inputs, labels, tiles};
use crate::training::Training;

/// Dense networks on a device of burn.
#[derive(Debug)]
pub struct Burn {
    name: String,
    device: Device,
}

/// Dense networks on the GPU of this name, or of one that contains it; on the first one where there is none.
///
/// # Errors
/// There is no such GPU, or this program was built without the feature `wgpu`.
pub fn gpu(name: Option<&str>) -> Result<DensePlace> {
    Burn::gpu(name).map(DensePlace::new)
}

impl Burn {
    /// On burn's own CPU backend: what tests compare with, no faster than [`tamis_host`] itself.
    #[must_use]
    pub fn cpu() -> Self {
        Self { name: "burn-flex".into(), device: Device::flex() }
    }

    /// On the GPU of this name, or of one that contains it; on the first one where there is none.
    ///
    /// # Errors
    /// There is no such GPU.
    #[cfg(feature = "wgpu")]
    pub fn gpu(name: Option<&str>) -> Result<Self> {
        use std::sync::OnceLock;

        use burn_tensor::DeviceType;

        let named = |device: &Device| device.identity().map(|own| own.name).unwrap_or_default();
        let Some(wanted) = name else {
            // Burn opens it once in a process.
            static FIRST: OnceLock<std::result::Result<Device, String>> = OnceLock::new();
            let open = || Device::wgpu_options().init().map_err(|error| error.to_string());
            let device = FIRST.get_or_init(open).clone().map_err(|error| {
                Error::new("there is no GPU adapter").got(error).help(
                    "install a driver for Vulkan (Debian: mesa-vulkan-drivers), or use --device cpu",
                )
            })?;
            return Ok(Self { name: named(&device), device });
        };
        let all = Device::enumerate(DeviceType::Wgpu);
        let all: Vec<_> =
            all.into_iter().map(|device| Self { name: named(&device), device }).collect();
        let names: Vec<_> = all.iter().map(|own| own.name.clone()).collect();
        let fits = |own: &Self| own.name.to_lowercase().contains(&wanted.to_lowercase());
        all.into_iter().find(fits).ok_or_else(|| {
            Error::new("there is no GPU of this name")
                .expected(if names.is_empty() { "a GPU".into() } else { names.join(", ") })
                .got(wanted)
                .help("tamis devices lists what there is")
        })
    }

    /// As with the feature `wgpu`, without which there are none.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(feature = "wgpu"))]
    pub fn gpu(_: Option<&str>) -> Result<Self> {
        Err(Error::new("this build of tamis trains dense networks on no GPU")
            .expected("a build with the feature wgpu")
            .got("a build without it")
            .help("cargo run --release --manifest-path gpu/dense/Cargo.toml --features wgpu -- …"))
    }
}

impl DenseDevice for Burn {
    fn name(&self) -> &str {
        &self.name
    }

    fn training(&self, setup: &Setup<'_>) -> Result<Box<dyn DenseTraining>> {
        Ok(Box::new(Training::new(setup, &self.device)))
    }

    fn pass(&self, on: &NetOnRows<'_>, goal: Goal<'_>, temperature: f32) -> Result<Passed> {
        let set = on.rows.set;
        let network =
            Network::new(on.net.shape, set.task, on.net.weights, temperature, &self.device);
        let rows = on.rows.rows.len();
        let tangent = match goal {
            Goal::Loss => {
                let measure = network.measure(&on.rows, on.stop)?;
                return Ok(Passed { measure, sum: Vec::new() });
            }
            Goal::HessianProduct(v) => Some(network.with_weights(v)),
            _ => None,
        };
        let mut sums = network.zeros();
        let mut loss = 0.0;
        let scale = network.scale(rows);
        for rows in tiles(&on.rows, on.net.shape) {
            if on.stop.asked() {
                return Err(Error::interrupted());
            }
            let acts = network.forward(inputs(&on.rows, rows.clone(), &self.device));
            let own = match goal {
                Goal::JacobianSquares => network.jacobian_squares(&acts),
                Goal::InputSquares => network.input_squares(&acts),
                Goal::Loss | Goal::Gradient | Goal::HessianProduct(_) => {
                    let y = labels(&on.rows, rows, on.net.shape, &self.device)?;
                    let residual = network.residual(&acts, y);
                    loss += network.number(residual.loss.clone())?;
                    match &tangent {
                        Some(v) => network.hessian_product(&acts, residual, v, scale),
                        None => network.gradient(&acts, residual.values, scale),
                    }
                }
            };
            sums = add(sums, own);
        }
        // Which rows are right is not asked for.
        let right = network.has_classes().then_some(0);
        let measure = Measure { rows, loss: loss / network.terms(rows), right };
        Ok(Passed { measure, sum: network.flat(sums)? })
    }
}
