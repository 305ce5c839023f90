//! Microcontrollers and kinds of processors that models are made for.

use serde::Serialize;

use crate::model::cost::Core;
use crate::{Error, Result};

/// A microcontroller, as its maker's data sheet has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Device {
    /// Its name.
    pub name: &'static str,
    /// Its processor, as the maker calls it.
    pub processor: &'static str,
    /// The kind of code that it runs.
    #[serde(serialize_with = "core_name")]
    pub core: Core,
    /// Bytes of flash.
    pub flash_bytes: usize,
    /// Bytes of RAM in one piece that all programs can use.
    pub ram_bytes: usize,
    /// The highest clock of the processor, in MHz.
    pub megahertz: u32,
    /// What the numbers leave out.
    pub note: &'static str,
}

const K: usize = 1 << 10;
const M: usize = 1 << 20;

const fn device(
    name: &'static str,
    processor: &'static str,
    core: Core,
    [flash_bytes, ram_bytes]: [usize; 2],
    megahertz: u32,
) -> Device {
    Device { name, processor, core, flash_bytes, ram_bytes, megahertz, note: "" }
}

impl Device {
    const fn with_note(self, note: &'static str) -> Self {
        Self { note, ..self }
    }
}

/// Well-known microcontrollers, by core.
pub const DEVICES: &[Device] = &[
    device("SAMD21G18", "Cortex-M0+", Core::CortexM0, [256 * K, 32 * K], 48),
    device("RP2040", "Cortex-M0+", Core::CortexM0, [2 * M, 264 * K], 133)
        .with_note("flash: outside the chip, that of a Pico; of two cores one"),
    device("STM32F103C8", "Cortex-M3", Core::CortexM3, [64 * K, 20 * K], 72),
    device("STM32F401RE", "Cortex-M4F", Core::CortexM4F, [512 * K, 96 * K], 84),
    device("STM32F407VG", "Cortex-M4F", Core::CortexM4F, [M, 128 * K], 168)
        .with_note("besides 64 KiB of core-coupled RAM"),
    device("STM32L476RG", "Cortex-M4F", Core::CortexM4F, [M, 96 * K], 80)
        .with_note("besides 32 KiB of SRAM2"),
    device("nRF52840", "Cortex-M4F", Core::CortexM4F, [M, 256 * K], 64),
    device("STM32H743ZI", "Cortex-M7", Core::CortexM7, [2 * M, 512 * K], 480)
        .with_note("AXI SRAM; besides tightly coupled and other RAM"),
    device("GD32VF103CB", "Bumblebee (RV32IMAC)", Core::Rv32imac, [128 * K, 32 * K], 108),
    device("ESP32-C3", "RV32IMC", Core::Rv32imac, [4 * M, 400 * K], 160)
        .with_note("flash: of modules with 4 MiB; some of the RAM is cache"),
];

/// A device, or a kind of processor without a size and a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The kind of code that it runs.
    pub core: Core,
    /// The device; none for a kind of processor.
    pub device: Option<&'static Device>,
}

fn core_name<S: serde::Serializer>(
    core: &Core,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(core.name())
}

impl Target {
    /// Every kind of processor, then every device.
    pub fn all() -> impl Iterator<Item = Self> {
        let cores = Core::ALL.into_iter().map(|core| Self { core, device: None });
        cores.chain(DEVICES.iter().map(|device| Self { core: device.core, device: Some(device) }))
    }

    /// The target of a name, whatever its case.
    ///
    /// # Errors
    /// There is none; the error names all.
    pub fn find(name: &str) -> Result<Self> {
        let same = |target: &Self| target.name().eq_ignore_ascii_case(name.trim());
        Self::all().find(same).ok_or_else(|| {
            let names: Vec<_> = Self::all().map(|target| target.name()).collect();
            Error::new("there is no such target")
                .expected(format_args!("one of {}", names.join(", ")))
                .got(name)
                .help("take the kind of processor for another device")
        })
    }

    /// Its name; of a kind of processor in lower case.
    #[must_use]
    pub fn name(&self) -> String {
        self.device.map_or_else(|| self.core.name().to_lowercase(), |device| device.name.into())
    }

    /// Cycles an instruction, from and to, with flash that does not make the processor wait. That
    /// is an assumption and no measurement: loads and branches that are taken need two cycles or
    /// three, a superscalar processor may pair instructions.
    #[must_use]
    pub const fn cycles(&self) -> [f64; 2] {
        match self.core {
            Core::CortexM7 => [0.5, 2.0],
            _ => [1.0, 2.0],
        }
    }

    /// Milliseconds of so many instructions at the device's clock, from and to.
    pub(crate) fn milliseconds(&self, instructions: u64) -> Option<[f64; 2]> {
        let clock = 1000.0 * f64::from(self.device?.megahertz);
        Some(self.cycles().map(|cycles| instructions as f64 * cycles / clock))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_names_are_case_insensitive_and_unique() {
        let names: Vec<_> = Target::all().map(|target| target.name().to_lowercase()).collect();
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{name}");
            assert_eq!(Target::find(&name.to_uppercase()).unwrap().name().to_lowercase(), *name);
        }
        let error = Target::find("Z80").unwrap_err().to_string();
        assert!(
            error.contains("cortex-m4f") && error.contains("RP2040") && error.contains("Z80"),
            "{error}"
        );
    }

    #[test]
    fn sizes_are_those_of_microcontrollers() {
        for device in DEVICES {
            assert!(
                device.flash_bytes.is_multiple_of(K) && device.ram_bytes.is_multiple_of(4 * K),
                "{device:?}"
            );
            assert!(
                (16..=600).contains(&device.megahertz) && device.flash_bytes > device.ram_bytes,
                "{device:?}"
            );
        }
    }
}
