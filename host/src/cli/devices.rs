//! `tamis devices`

use clap::Args;

use super::common::Common;
use super::console::say_note;
use crate::Result;
use crate::operator::{DeviceReport, WITH_GPU, devices};

/// List the GPUs that training can use, the one taken by default first.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis devices --json")]
pub(super) struct Devices {}

impl Devices {
    #[allow(clippy::unused_self, reason = "as the other verbs")]
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        let all = devices();
        let why = match (cfg!(feature = "gpu"), all.is_empty()) {
            (false, _) => Some(format!("this build of tamis computes on no GPU; {WITH_GPU}")),
            (true, true) => Some(
                "there is no GPU adapter; install a driver for Vulkan (Debian: mesa-vulkan-drivers; \
                 VK_LOADER_DEBUG=error says what an installed one lacks)"
                    .to_owned(),
            ),
            (true, false) => None,
        };
        if !common.quiet {
            say_note(why);
        }
        common.result(&all, || all.iter().map(line).collect::<Vec<_>>().join("\n"))
    }
}

fn line(device: &DeviceReport) -> String {
    let DeviceReport { name, backend, kind, driver, limits } = device;
    let mib = limits.max_storage_buffer_binding_size >> 20;
    format!("{name}\n  {backend}, type {kind}, driver {driver}, bindings of {mib} MiB")
}
