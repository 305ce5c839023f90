//! `tamis devices`

use clap::Args;

use super::common::Common;
use super::console::say_note;
use crate::Result;
use crate::operator::{DeviceReport, devices, no_devices};

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
        if all.is_empty() && !common.quiet {
            say_note(Some(no_devices()));
        }
        common.result(&all, || all.iter().map(line).collect::<Vec<_>>().join("\n"))
    }
}

fn line(device: &DeviceReport) -> String {
    let DeviceReport { name, backend, kind, driver, limits } = device;
    let mib = limits.max_storage_buffer_binding_size >> 20;
    format!("{name}\n  {backend}, type {kind}, driver {driver}, bindings of {mib} MiB")
}
