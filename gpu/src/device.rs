//! Setting a device up: adapters, limits, and pipelines that are made once.

use crate::error::Error;
use crate::kernel::Kernel;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use wgpu::{Adapter, Backends, Instance, InstanceDescriptor, Limits};

/// What is known of an adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdapterReport {
    /// The name, by which it is chosen.
    pub name: String,
    /// Vulkan, Metal or DX12.
    pub backend: String,
    /// Discrete, integrated or virtual GPU, or CPU.
    pub kind: String,
    /// The driver and its version.
    pub driver: String,
    /// The largest binding of a buffer in bytes: X is tiled by rows into buffers of this size.
    pub max_storage_buffer_binding_size: u64,
    /// The largest buffer in bytes.
    pub max_buffer_size: u64,
    /// Threads of a workgroup.
    pub max_compute_invocations_per_workgroup: u32,
    /// Bytes that a workgroup shares.
    pub max_compute_workgroup_storage_size: u32,
}

impl AdapterReport {
    /// Whether it computes on the processor.
    #[must_use]
    pub fn is_software(&self) -> bool {
        self.kind == "Cpu"
    }

    fn new(adapter: &Adapter) -> Self {
        let (info, limits) = (adapter.get_info(), adapter.limits());
        Self {
            name: info.name,
            backend: format!("{:?}", info.backend),
            kind: format!("{:?}", info.device_type),
            driver: format!("{} {}", info.driver, info.driver_info).trim().to_owned(),
            max_storage_buffer_binding_size: limits.max_storage_buffer_binding_size,
            max_buffer_size: limits.max_buffer_size,
            max_compute_invocations_per_workgroup: limits.max_compute_invocations_per_workgroup,
            max_compute_workgroup_storage_size: limits.max_compute_workgroup_storage_size,
        }
    }
}

/// The adapters of Vulkan, Metal and DX12, GPUs before software.
fn all() -> Vec<Adapter> {
    let instance = Instance::new(InstanceDescriptor {
        backends: Backends::VULKAN | Backends::METAL | Backends::DX12,
        ..InstanceDescriptor::new_without_display_handle()
    });
    let mut found = pollster::block_on(instance.enumerate_adapters(Backends::all()));
    found.sort_by_key(|adapter| match adapter.get_info().device_type {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    });
    found
}

/// What adapters there are, the one that is taken by default first.
#[must_use]
pub fn adapters() -> Vec<AdapterReport> {
    all().iter().map(AdapterReport::new).collect()
}

/// A device that is ready for work: its queue, its limits, and its pipelines, which are made once.
#[derive(Debug)]
pub struct Gpu {
    /// What is known of the adapter.
    pub adapter: AdapterReport,
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pipelines: [OnceLock<Pipeline>; 2 * Kernel::ALL.len()],
    failure: Arc<Mutex<Option<Error>>>,
    /// What was timed, where it is asked for.
    profile: Mutex<Option<Profile>>,
}

/// A kernel that is ready, and what it binds.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) pipeline: wgpu::ComputePipeline,
    pub(crate) layout: wgpu::BindGroupLayout,
}

/// Where the time went.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Profile {
    /// What kernels took, of calls that are done.
    pub kernels: Vec<KernelTime>,
    /// Lists of calls that were submitted.
    pub submissions: u64,
    /// Seconds of this machine that submitting them took.
    pub submitting: f64,
    /// Seconds that it waited for them, while kernels ran and after.
    pub waiting: f64,
}

/// What the calls of one kernel took.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct KernelTime {
    /// The kernel's file.
    pub name: &'static str,
    /// Calls.
    pub calls: u64,
    /// Seconds by the clock of the device, from the begin of a call to its end.
    pub seconds: f64,
    /// Multiply-adds, of the kernels that are products.
    pub multiply_adds: f64,
    /// Bytes that these must read from memory or write to it, each once a call.
    pub bytes: f64,
}

impl Gpu {
    /// Opens the adapter of this name, or of one that contains it; the first one where there is no
    /// name.
    ///
    /// # Errors
    /// [`Error::NoAdapter`] with the names that there are, [`Error::Limit`] for an adapter that
    /// lacks what every WebGPU device has.
    pub fn open(name: Option<&str>) -> Result<Arc<Self>, Error> {
        Self::open_with(name, |has| Limits {
            max_storage_buffer_binding_size: has.max_storage_buffer_binding_size,
            max_buffer_size: has.max_buffer_size,
            ..Limits::default()
        })
    }

    /// The same with limits that are chosen from those of the adapter.
    ///
    /// # Errors
    /// As [`Self::open`]; [`Error::Limit`] for a limit that the adapter lacks.
    pub fn open_with(
        name: Option<&str>,
        limits: impl FnOnce(&Limits) -> Limits,
    ) -> Result<Arc<Self>, Error> {
        let all = all();
        let names = || all.iter().map(|adapter| adapter.get_info().name).collect::<Vec<_>>();
        let wanted = name.map(str::to_lowercase);
        let fits = |adapter: &&Adapter| {
            let own = adapter.get_info().name.to_lowercase();
            wanted.as_ref().is_none_or(|wanted| own.contains(wanted))
        };
        let Some(adapter) = all.iter().find(fits) else {
            return Err(Error::NoAdapter { wanted: name.map(str::to_owned), found: names() });
        };
        Self::on(adapter, limits(&adapter.limits()))
    }

    fn on(adapter: &Adapter, limits: Limits) -> Result<Arc<Self>, Error> {
        let report = AdapterReport::new(adapter);
        let name = &report.name;
        let mut missed = None;
        limits.check_limits_with_fail_fn(&adapter.limits(), true, |limit, needed, has| {
            let (adapter, what) = (name.clone(), "the operator".to_owned());
            missed = Some(Error::Limit { adapter, limit: limit.to_owned(), what, needed, has });
        });
        if let Some(missed) = missed {
            return Err(missed);
        }
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("tamis"),
            // Where it has them, kernels can be timed.
            required_features: adapter.features() & wgpu::Features::TIMESTAMP_QUERY,
            required_limits: limits,
            memory_hints: wgpu::MemoryHints::Performance,
            ..Default::default()
        };
        let opened = pollster::block_on(adapter.request_device(&descriptor));
        let (device, queue) = opened.map_err(|error| Error::Refused {
            adapter: name.clone(),
            message: error.to_string(),
        })?;
        Ok(Arc::new(Self::new(report, device, queue)))
    }

    /// Takes a device that was opened elsewhere.
    #[must_use]
    pub fn new(adapter: AdapterReport, device: wgpu::Device, queue: wgpu::Queue) -> Self {
        let failure = Arc::<Mutex<Option<Error>>>::default();
        let note = |failure: &Arc<Mutex<Option<Error>>>, error: Error| {
            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        };
        let (name, kept) = (adapter.name.clone(), Arc::clone(&failure));
        device.on_uncaptured_error(Arc::new(move |error| {
            let (adapter, message) = (name.clone(), error.to_string());
            note(
                &kept,
                match error {
                    wgpu::Error::OutOfMemory { .. } => Error::Memory { adapter, message },
                    _ => Error::Refused { adapter, message },
                },
            );
        }));
        let (name, kept) = (adapter.name.clone(), Arc::clone(&failure));
        device.set_device_lost_callback(move |reason, message| {
            let message = format!("{reason:?} {message}").trim().to_owned();
            note(&kept, Error::Lost { adapter: name.clone(), message });
        });
        Self {
            adapter,
            device,
            queue,
            pipelines: std::array::from_fn(|_| OnceLock::new()),
            failure,
            profile: Mutex::default(),
        }
    }

    /// Times all calls of kernels from now on, by the clock of the device; whether it has one.
    pub fn start_profile(&self) -> bool {
        let has_clock = self.device.features().contains(wgpu::Features::TIMESTAMP_QUERY);
        let time = |kernel: Kernel| KernelTime { name: kernel.name(), ..KernelTime::default() };
        let kernels = Kernel::ALL.map(time).to_vec();
        *self.times() = has_clock.then(|| Profile { kernels, ..Profile::default() });
        has_clock
    }

    /// What was timed since then, and times no more; none where nothing is.
    #[must_use]
    pub fn end_profile(&self) -> Option<Profile> {
        self.times().take()
    }

    pub(crate) fn is_profiled(&self) -> bool {
        self.times().is_some()
    }

    /// Adds to what was timed.
    pub(crate) fn note(&self, add: impl FnOnce(&mut Profile)) {
        if let Some(profile) = &mut *self.times() {
            add(profile);
        }
    }

    /// Adds to what a kernel took.
    pub(crate) fn note_time(&self, kernel: Kernel, add: impl FnOnce(&mut KernelTime)) {
        self.note(|profile| add(&mut profile.kernels[kernel as usize]));
    }

    fn times(&self) -> MutexGuard<'_, Option<Profile>> {
        self.profile.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Destroys the device, as if it were unplugged: what runs on it fails.
    pub fn destroy(&self) {
        self.device.destroy();
        let (adapter, message) = (self.adapter.name.clone(), "it was destroyed".to_owned());
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(Error::Lost { adapter, message });
    }

    /// What has failed since this was last asked; a device that was lost stays lost.
    pub(crate) fn failure(&self) -> Option<Error> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        match &*failure {
            Some(Error::Lost { .. }) => failure.clone(),
            _ => failure.take(),
        }
    }

    /// The largest binding in bytes.
    #[must_use]
    pub fn binding_limit(&self) -> u64 {
        let limits = self.device.limits();
        limits.max_storage_buffer_binding_size.min(limits.max_buffer_size)
    }

    /// A new buffer of zeros.
    ///
    /// # Errors
    /// [`Error::Limit`] if it is larger than a binding.
    pub(crate) fn buffer(&self, what: &str, bytes: u64) -> Result<wgpu::Buffer, Error> {
        self.within_binding(what, bytes)?;
        Ok(self.create(what, bytes))
    }

    /// A new vector of zeros, which may be larger than a binding.
    ///
    /// # Errors
    /// [`Error::Limit`] if it is larger than a buffer.
    pub(crate) fn vector(&self, what: &str, bytes: u64) -> Result<wgpu::Buffer, Error> {
        self.within("max_buffer_size", self.device.limits().max_buffer_size, what, bytes)?;
        Ok(self.create(what, bytes))
    }

    /// A new buffer of zeros, of at least 16 bytes; what is larger than the device admits is an error of the device.
    pub(crate) fn create(&self, what: &str, bytes: u64) -> wgpu::Buffer {
        let usage = wgpu::BufferUsages::STORAGE
            | wgpu::BufferUsages::COPY_SRC
            | wgpu::BufferUsages::COPY_DST;
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some(what),
            size: bytes.next_multiple_of(16).max(16),
            usage,
            mapped_at_creation: false,
        })
    }

    /// Checks that a binding can be so large.
    ///
    /// # Errors
    /// [`Error::Limit`] if it cannot.
    pub(crate) fn within_binding(&self, what: &str, bytes: u64) -> Result<(), Error> {
        self.within("max_storage_buffer_binding_size", self.binding_limit(), what, bytes)
    }

    fn within(&self, limit: &str, has: u64, what: &str, needed: u64) -> Result<(), Error> {
        if needed <= has {
            return Ok(());
        }
        let (adapter, limit, what) = (self.adapter.name.clone(), limit.to_owned(), what.to_owned());
        Err(Error::Limit { adapter, limit, what, needed, has })
    }

    /// The pipeline of a kernel, for X of bytes or of floats where it reads X.
    pub(crate) fn pipeline(&self, kernel: Kernel, bytes: bool) -> &Pipeline {
        let slot = 2 * kernel as usize + usize::from(bytes && kernel.reads_data());
        self.pipelines[slot].get_or_init(|| {
            let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor {
                label: Some(kernel.name()),
                source: wgpu::ShaderSource::Wgsl(
                    kernel.source(bytes, self.adapter.is_software()).into(),
                ),
            });
            // No kernel reads what is shared before it writes it.
            let options = wgpu::PipelineCompilationOptions {
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            };
            let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(kernel.name()),
                layout: None,
                module: &module,
                entry_point: Some("main"),
                compilation_options: options,
                cache: None,
            });
            Pipeline { layout: pipeline.get_bind_group_layout(0), pipeline }
        })
    }
}
