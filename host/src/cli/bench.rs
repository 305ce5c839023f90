//! `tamis bench`

use std::path::PathBuf;

use clap::Args;

use super::common::Common;
use super::parse::{self, DeviceName};
use crate::Result;
use crate::lab::bench;
use crate::operator::Device;

/// Measure the fast operator against the reference and plain matrix products, and training under a
/// mask against the peak of the processor, in one run.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis bench --rounds 21
  tamis bench --numpy python3
  tamis bench --device gpu")]
pub(super) struct Bench {
    /// Rows of the data
    #[arg(long, value_name = "N", default_value_t = 50_000,
          value_parser = parse::whole::<usize>)]
    samples: usize,
    /// Rounds; the fastest of each counts
    #[arg(long, value_name = "R", default_value_t = 15,
          value_parser = parse::whole::<usize>)]
    rounds: usize,
    /// A Python that has numpy, to measure dense weights times a mask beside training under it
    #[arg(long, value_name = "PYTHON")]
    numpy: Option<PathBuf>,
    /// Measure a GPU beside the CPU instead, as a page of docs/results: gpu
    #[arg(long, value_name = "DEVICE", value_enum, hide_possible_values = true, default_value_t = DeviceName::Cpu, hide_default_value = true)]
    device: DeviceName,
    /// The GPU, by its name or a part of it [default: the first one]
    #[arg(long, value_name = "NAME", requires = "device")]
    adapter: Option<String>,
}

impl Bench {
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        if self.device != DeviceName::Cpu {
            return self.run_gpu(common);
        }
        let report = bench::run(self.samples, self.rounds, common.seed, self.numpy.as_deref())?;
        common.result(&report, || report.to_string())
    }

    #[cfg(feature = "gpu")]
    fn run_gpu(&self, common: &Common) -> Result<()> {
        let Device::Gpu(gpu) = Device::gpu(self.adapter.as_deref())? else { return Ok(()) };
        let report = bench::gpu::run(&gpu, self.samples, self.rounds, common.seed)?;
        common.result(&report, || report.to_string())
    }

    /// Says how to build with GPUs.
    #[cfg(not(feature = "gpu"))]
    fn run_gpu(&self, _: &Common) -> Result<()> {
        Device::gpu(self.adapter.as_deref()).map(drop)
    }
}
