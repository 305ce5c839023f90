//! Where an operator computes: the CPU, or a GPU that was opened before.

#[cfg(feature = "gpu")]
use std::sync::Arc;

use serde::Serialize;

use crate::data::Matrix;
use crate::{Error, Result};

/// Where training computes.
#[derive(Debug, Clone, Default)]
pub enum Device {
    /// The threads of the CPU.
    #[default]
    Cpu,
    /// A GPU, ready for work.
    #[cfg(feature = "gpu")]
    Gpu(Arc<tamis_gpu::Gpu>),
}

/// The CPU, where nothing else is said.
pub(crate) static CPU: Device = Device::Cpu;

impl Device {
    /// The GPU of this name, or of one that contains it; the first one where there is no name.
    ///
    /// # Errors
    /// There is none, it lacks a limit, or this build knows no GPUs.
    #[cfg(feature = "gpu")]
    pub fn gpu(name: Option<&str>) -> Result<Self> {
        tamis_gpu::Gpu::open(name).map(Self::Gpu).map_err(Error::from)
    }

    /// As with the feature `gpu`, without which there are none.
    ///
    /// # Errors
    /// Always: this build knows no GPUs.
    #[cfg(not(feature = "gpu"))]
    pub fn gpu(_: Option<&str>) -> Result<Self> {
        Err(Error::new("this build of tamis computes on no GPU")
            .expected("a build with the feature gpu")
            .got("a build without it")
            .help(WITH_GPU))
    }

    /// `cpu`, or the name of the GPU's adapter.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Cpu => "cpu",
            #[cfg(feature = "gpu")]
            Self::Gpu(gpu) => &gpu.adapter.name,
        }
    }

    /// Times the kernels of a GPU from now on.
    ///
    /// # Errors
    /// It is the CPU, or has no clock for them.
    pub fn start_profile(&self) -> Result<()> {
        match self {
            Self::Cpu => Err(Error::new("kernels of a GPU are timed")
                .expected("a GPU")
                .got("the CPU")
                .help("pass --device gpu, or leave --profile out")),
            #[cfg(feature = "gpu")]
            Self::Gpu(gpu) if gpu.start_profile() => Ok(()),
            #[cfg(feature = "gpu")]
            Self::Gpu(gpu) => Err(Error::new("kernels cannot be timed")
                .expected("an adapter with the feature timestamp-query")
                .got(&gpu.adapter.name)
                .help("leave --profile out")),
        }
    }

    /// What was timed since then, and times no more; none on the CPU and where nothing is. It measures the
    /// roofline of the GPU first, which takes a second.
    ///
    /// # Errors
    /// The GPU fails.
    pub fn end_profile(&self) -> Result<Option<ProfileReport>> {
        match self {
            Self::Cpu => Ok(None),
            #[cfg(feature = "gpu")]
            Self::Gpu(gpu) => {
                let Some(profile) = gpu.end_profile() else { return Ok(None) };
                let roofline = tamis_gpu::Roofline::measure(gpu)?;
                Ok(Some(ProfileReport::new(&profile, roofline)))
            }
        }
    }

    /// Bytes that samples, and gates of so many neurons on them, take on a GPU; none on the CPU.
    ///
    /// # Errors
    /// A tile of the data is larger than the GPU binds.
    pub fn bytes_for(&self, data: &Matrix, hidden: usize) -> Result<Option<u64>> {
        match self {
            Self::Cpu => {
                let _ = (data, hidden);
                Ok(None)
            }
            #[cfg(feature = "gpu")]
            Self::Gpu(gpu) => {
                let is_bytes = data.is_bytes();
                let sizes =
                    tamis_gpu::Resident { rows: data.rows, inputs: data.cols, hidden, is_bytes };
                Ok(Some(sizes.bytes(gpu)?))
            }
        }
    }

    /// Whether it is the CPU.
    #[must_use]
    pub const fn is_cpu(&self) -> bool {
        matches!(self, Self::Cpu)
    }
}

/// How to build with GPUs.
#[cfg(not(feature = "gpu"))]
const WITH_GPU: &str = "build with cargo build --release --features gpu, or use --device cpu";

/// What is known of a GPU adapter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceReport {
    /// The name, by which it is chosen.
    pub name: String,
    /// Vulkan, Metal or DX12.
    pub backend: String,
    /// Discrete, integrated or virtual GPU, or CPU.
    #[serde(rename = "type")]
    pub kind: String,
    /// The driver and its version.
    pub driver: String,
    /// What it admits.
    pub limits: LimitsReport,
}

impl DeviceReport {
    /// Whether it computes on the processor.
    #[must_use]
    pub fn is_software(&self) -> bool {
        self.kind == "Cpu"
    }
}

/// Limits of an adapter, by the names of the WebGPU standard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LimitsReport {
    /// Bytes of the largest binding: data are tiled by rows into buffers of this size.
    pub max_storage_buffer_binding_size: u64,
    /// Bytes of the largest buffer.
    pub max_buffer_size: u64,
    /// Threads of a workgroup.
    pub max_compute_invocations_per_workgroup: u32,
    /// Bytes that a workgroup shares.
    pub max_compute_workgroup_storage_size: u32,
}

/// The GPU adapters of this machine, the one taken by default first; none in a build without the
/// feature `gpu`.
#[must_use]
pub fn devices() -> Vec<DeviceReport> {
    #[cfg(feature = "gpu")]
    return tamis_gpu::adapters().into_iter().map(DeviceReport::from).collect();
    #[cfg(not(feature = "gpu"))]
    Vec::new()
}

/// What to say where [`devices`] finds none.
pub(crate) fn no_devices() -> String {
    #[cfg(feature = "gpu")]
    {
        let none = tamis_gpu::Error::NoAdapter { wanted: None, found: Vec::new() };
        format!("{none}; {}", none.help())
    }
    #[cfg(not(feature = "gpu"))]
    format!("this build of tamis computes on no GPU; {WITH_GPU}")
}

/// Where the time went on a GPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProfileReport {
    /// The kernels that were called, the longest first.
    pub kernels: Vec<KernelReport>,
    /// Lists of calls that were submitted.
    pub submissions: u64,
    /// Seconds of this machine that submitting them took.
    pub submitting: f64,
    /// Seconds that it waited for them, while kernels ran and after.
    pub waiting: f64,
    /// What the GPU does at the most, measured once all was timed.
    pub roofline: RooflineReport,
}

/// What the calls of one kernel took on a GPU, by its clock.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelReport {
    /// The kernel.
    pub name: &'static str,
    /// Calls.
    pub calls: u64,
    /// Seconds of all calls.
    pub seconds: f64,
    /// Multiply-adds of the calls, of kernels that are products; else 0.
    pub multiply_adds: f64,
    /// Bytes that these must read from memory or write to it.
    pub bytes: f64,
    /// Of products the least time that the roofline admits, as a fraction of the time taken.
    pub share: Option<f64>,
}

/// What a GPU does at the most, measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RooflineReport {
    /// Multiply-adds of 32-bit floats a second.
    pub multiply_adds: f64,
    /// Bytes read from its memory a second.
    pub bytes: f64,
}

#[cfg(feature = "gpu")]
impl ProfileReport {
    /// What was timed on a device of these rates.
    pub(crate) fn new(profile: &tamis_gpu::Profile, peak: tamis_gpu::Roofline) -> Self {
        let &tamis_gpu::Profile { ref kernels, submissions, submitting, waiting } = profile;
        let used = kernels.iter().filter(|time| time.calls > 0);
        let report = |&tamis_gpu::KernelTime { name, calls, seconds, multiply_adds, bytes }| {
            let least = (multiply_adds / peak.multiply_adds).max(bytes / peak.bytes);
            let share = (multiply_adds > 0.0 && seconds > 0.0).then(|| least / seconds);
            KernelReport { name, calls, seconds, multiply_adds, bytes, share }
        };
        let mut kernels: Vec<KernelReport> = used.map(report).collect();
        kernels.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        let roofline = RooflineReport { multiply_adds: peak.multiply_adds, bytes: peak.bytes };
        Self { kernels, submissions, submitting, waiting, roofline }
    }
}

#[cfg(feature = "gpu")]
impl From<tamis_gpu::AdapterReport> for DeviceReport {
    fn from(adapter: tamis_gpu::AdapterReport) -> Self {
        Self {
            name: adapter.name,
            backend: adapter.backend,
            kind: adapter.kind,
            driver: adapter.driver,
            limits: LimitsReport {
                max_storage_buffer_binding_size: adapter.max_storage_buffer_binding_size,
                max_buffer_size: adapter.max_buffer_size,
                max_compute_invocations_per_workgroup: adapter
                    .max_compute_invocations_per_workgroup,
                max_compute_workgroup_storage_size: adapter.max_compute_workgroup_storage_size,
            },
        }
    }
}
