//! What goes wrong on a device.

use std::fmt::Display;

use burn_tensor::Device;
use tamis_host::Error;

/// The device failed.
pub(crate) fn failed(device: &Device, error: impl Display) -> Error {
    Error::new("the device failed")
        .at(format!("{device:?}"))
        .got(error)
        .help("use smaller --batch or --hidden, or --device cpu; checkpoints are for any device")
}
