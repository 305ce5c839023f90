//! `--device` and `--adapter`: where a run trains.

use super::super::console::{count, say_note};
use super::super::parse::DeviceName;
use super::args::Train;
use crate::data::Problem;
use crate::operator::{Device, KernelReport, ProfileReport, devices};
use crate::train::dense::DensePlace;
use crate::train::{Options, Recipe, trains_layers};
use crate::{Error, Result};

/// Multiply-adds of a gradient by all weights from which on `auto` takes a GPU: the host operator
/// takes some 10 ms for these on two cores, a hundred times what a call to a device costs.
const LARGE: usize = 1 << 29;

/// Multiply-adds of a batch of a dense network from which on `auto` takes a GPU: below it a step takes no
/// longer on 16 threads (docs/results/gpu-dense.md).
const LARGE_DENSE: usize = 1 << 28;

/// A line for each kernel, and what this machine did meanwhile.
pub(super) fn profile(of: &ProfileReport) -> String {
    let line = |name: &str, calls: u64, seconds: f64, rate: &str| {
        format!(
            "\n  {name:<12} {:>9} times {:>10.2} ms{rate}",
            count(calls as usize),
            1e3 * seconds
        )
    };
    let kernel = |of: &KernelReport| {
        let rate = of.share.map(|share| {
            let [adds, bytes] = [of.multiply_adds, of.bytes].map(|work| work / of.seconds / 1e9);
            let share = 100.0 * share;
            format!("  {adds:.1} G multiply-adds/s, {bytes:.1} GB/s: {share:.0} % of the roofline")
        });
        line(of.name, of.calls, of.seconds, rate.as_deref().unwrap_or(""))
    };
    let [adds, bytes] = [of.roofline.multiply_adds, of.roofline.bytes].map(|rate| rate / 1e9);
    let title = format!(
        "\n\nKernels, by the clock of the device, and what this machine did meanwhile; the device makes \
         {adds:.0} G multiply-adds/s and reads {bytes:.0} GB/s, measured:"
    );
    let own = [
        line("submitted", of.submissions, of.submitting, ""),
        line("waited", of.submissions, of.waiting, "  while kernels ran and after"),
    ];
    [title].into_iter().chain(of.kernels.iter().map(kernel)).chain(own).collect()
}

/// Refuses a GPU by its name for what is trained on the CPU.
pub(in crate::cli) fn no_adapter(name: &str) -> Error {
    Error::usage("the CPU has no adapters")
        .expected("--device gpu, or no --adapter")
        .got(format_args!("--device cpu --adapter {name}"))
        .help("leave --adapter out, or pass --device gpu")
}

/// Where dense networks are trained and scored; `auto` is the CPU.
pub(in crate::cli) fn dense_place(
    device: Option<DeviceName>,
    adapter: Option<&str>,
) -> Result<DensePlace> {
    match (device, adapter) {
        (Some(DeviceName::Gpu), name) => DensePlace::gpu(name),
        (Some(DeviceName::Auto), _) | (_, None) => Ok(DensePlace::default()),
        (_, Some(name)) => Err(no_adapter(name)),
    }
}

impl Train {
    /// What `--device` says by itself: a GPU is opened, so that nothing is read where there is none.
    pub(super) fn device(&self) -> Result<Device> {
        if let (Some(adapter), Some(DeviceName::Cpu)) = (&self.adapter, self.device) {
            return Err(no_adapter(adapter));
        }
        match self.device {
            Some(DeviceName::Gpu) => Device::gpu(self.adapter.as_deref()),
            _ => Ok(Device::Cpu),
        }
    }

    /// Chooses for `--device auto`, and says what and why.
    pub(super) fn choose_device(&self, problem: &Problem, options: &mut Options) -> Result<()> {
        if self.device != Some(DeviceName::Auto) {
            return Ok(());
        }
        let hidden = options.all_weights(problem).unwrap_or(0);
        let size = problem.data.rows.saturating_mul(hidden);
        let all = devices();
        let wanted = self.adapter.as_ref().map(|name| name.to_lowercase());
        let fits = |name: &str| wanted.as_ref().is_none_or(|own| name.to_lowercase().contains(own));
        let gpu = all.iter().find(|gpu| !gpu.is_software() && fits(&gpu.name));
        let why = match gpu {
            None => "there is no GPU that this build can use".to_owned(),
            Some(gpu) if let Recipe::Imp(settings) = &mut options.recipe => {
                let batch = if settings.batch == 0 { problem.data.rows } else { settings.batch };
                let size = batch.min(problem.data.rows).saturating_mul(hidden);
                if !DensePlace::has_gpu() {
                    "dense networks are trained there by this program".to_owned()
                } else if size < LARGE_DENSE {
                    format!("{size} multiply-adds a batch are too few for a GPU")
                } else {
                    settings.place = DensePlace::gpu(Some(&gpu.name))?;
                    format!("{size} multiply-adds a batch are worth it")
                }
            }
            Some(_) if trains_layers(problem, options)? => {
                "layers are trained one by one there".to_owned()
            }
            Some(_)
                if !matches!(
                    options.resolve(problem)?.1,
                    Recipe::Lm(_) | Recipe::Anneal(_) | Recipe::Paper(_)
                ) =>
            {
                "the recipe trains there".to_owned()
            }
            Some(_) if size < LARGE => {
                format!("{size} multiply-adds a gradient are too few for a GPU")
            }
            Some(gpu) => {
                options.device = Device::gpu(Some(&gpu.name))?;
                format!("{size} multiply-adds a gradient are worth it")
            }
        };
        let place = match &options.recipe {
            Recipe::Imp(settings) => settings.place.name(),
            _ => options.device.name(),
        };
        say_note(Some(format!("--device auto takes {place}: {why}")));
        Ok(())
    }
}
