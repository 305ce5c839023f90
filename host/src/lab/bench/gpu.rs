//! CPU and GPU side by side, on one planted problem in one run, as a page of docs/results.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use tamis::base::dims::Dims;
use tamis::network::gates::{Empty, Gates, Signs};
use tamis::network::score::{GradientStep, Panel};
use tamis::network::top::Top;
use tamis::network::weights::Weights;
use tamis::operator::machine::Machine;
use tamis::operator::sensing::{Rows, Sensing, Stepped};
use tamis_gpu::{Gpu, GpuOperator, Roofline};

use crate::data::{Problem, Task, Values, planted};
use crate::operator::{Blocked, Device, DeviceReport, KernelReport, Layout, ProfileReport};
use crate::train::{Budget, Options, pool, train};
use crate::{Error, Result};

/// Planted networks that are searched for: which way a search goes is chance on either device.
const NETWORKS: u64 = 5;

/// What was measured of a GPU beside the CPU.
#[derive(Debug, Serialize)]
pub(crate) struct GpuReport {
    device: DeviceReport,
    /// Billions of multiply-adds a second, by a kernel that does nothing else.
    peak_gmacs: f64,
    /// Billions of bytes a second read from the device's memory.
    bandwidth_gbytes: f64,
    threads: usize,
    sizes: Vec<SizeReport>,
    searches: Vec<Search>,
}

/// Products of one problem size, and the kernels in them by the clock of the device.
#[derive(Debug, Serialize)]
struct SizeReport {
    samples: usize,
    inputs: usize,
    hidden: usize,
    nnz: usize,
    products: Vec<Product>,
    kernels: Vec<KernelReport>,
}

/// One product, in seconds, the fastest round; the GPU's with what moves for it.
#[derive(Debug, Serialize)]
struct Product {
    name: &'static str,
    cpu_seconds: f64,
    gpu_seconds: f64,
    /// Multiply-adds that it takes, dense ones for the gradient.
    macs: f64,
}

/// One planted network by default settings.
#[derive(Debug, Serialize)]
struct Search {
    seed: u64,
    cpu: Trained,
    gpu: Trained,
}

/// A search for it, on one device.
#[derive(Debug, Serialize)]
struct Trained {
    seconds: f64,
    psnr_db: Option<f64>,
    steps: u64,
    passes: f64,
    transferred_bytes: u64,
}

/// Measures a GPU beside all threads of the CPU on so many rows: of the planted cell (50, 200), and
/// on a GPU that is none in software of 784 inputs and 1000 neurons; and searches for planted networks
/// of the cell, from `seed` on.
pub(crate) fn run(gpu: &Arc<Gpu>, samples: usize, rounds: usize, seed: u64) -> Result<GpuReport> {
    let roofline = Roofline::measure(gpu)?;
    let small = Dims::new(samples, 100, 50, 200);
    let mut sizes = vec![products(gpu, roofline, small, rounds, seed)?];
    let device = DeviceReport::from(gpu.adapter.clone());
    if !device.is_software() {
        sizes.push(products(gpu, roofline, Dims::new(samples, 784, 1000, 1000), rounds, seed)?);
    }
    let searches = (seed..seed.saturating_add(NETWORKS)).map(|seed| search(gpu, small, seed));
    let searches = searches.collect::<Result<_>>()?;
    Ok(GpuReport {
        device,
        peak_gmacs: roofline.multiply_adds / 1e9,
        bandwidth_gbytes: roofline.bytes / 1e9,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        sizes,
        searches,
    })
}

/// Searches for one planted network on the CPU and on the GPU.
fn search(gpu: &Arc<Gpu>, dims: Dims, seed: u64) -> Result<Search> {
    let made = planted::network(dims, Signs::Positive, seed)?;
    let problem = Problem { data: made.data, labels: made.labels, task: Task::Regression };
    let on = |device: Device| -> Result<Trained> {
        let options = Options {
            hidden: vec![dims.hidden],
            seed,
            device,
            ..Options::new(Budget::nnz(dims.nnz))
        };
        let report = train(&problem, options)?.report;
        Ok(Trained {
            seconds: report.seconds,
            psnr_db: report.psnr_db,
            steps: report.steps,
            passes: report.passes,
            transferred_bytes: report.transferred_bytes.unwrap_or(0),
        })
    };
    Ok(Search { seed, cpu: on(Device::Cpu)?, gpu: on(Device::Gpu(Arc::clone(gpu)))? })
}

/// Measures the products of one size.
fn products(
    gpu: &Arc<Gpu>,
    peak: Roofline,
    dims: Dims,
    rounds: usize,
    seed: u64,
) -> Result<SizeReport> {
    let made = planted::network(dims, Signs::Positive, seed)?;
    let w = made.weights()?;
    let Values::F32(rows) = &made.data.values else {
        return Err(Error::new("planted data are not floats"));
    };
    let Dims { samples, inputs, hidden, nnz, .. } = dims;
    let mut device =
        GpuOperator::new(gpu, inputs, hidden, tamis_gpu::Values::F32(rows)).map_err(of_device)?;
    let layout = Layout { gram: 0, ..Layout::new(hidden, inputs) };
    let mut host = Blocked::new(made.data.clone(), hidden, nnz, layout)?;
    let on_host = pool(0)?.install(|| times(&mut host, w, &made.labels[..], rounds));
    let on_host = on_host.map_err(Error::from)?;
    let mut handle = vec![0.0; samples];
    let labels = device.machine().upload(&made.labels, &mut handle);
    let on_device = times(&mut device, w, labels, rounds).map_err(of_device)?;
    gpu.start_profile();
    times(&mut device, w, labels, rounds).map_err(of_device)?;
    let (n, d, m, s) = (samples as f64, inputs as f64, hidden as f64, w.nnz() as f64);
    let macs = [n * s, 2.0 * n * s, n * m * d, n * m * d];
    let product = |((name, cpu_seconds), (gpu_seconds, macs))| Product {
        name,
        cpu_seconds,
        gpu_seconds,
        macs,
    };
    Ok(SizeReport {
        samples,
        inputs,
        hidden,
        nnz,
        products: NAMES
            .into_iter()
            .zip(on_host)
            .zip(on_device.into_iter().zip(macs))
            .map(product)
            .collect(),
        kernels: gpu
            .end_profile()
            .map_or_else(Vec::new, |of| ProfileReport::new(&of, peak).kernels),
    })
}

fn of_device(error: tamis::Error<tamis_gpu::Error>) -> Error {
    error.narrow().map_or_else(Error::from, Error::from)
}

const NAMES: [&str; 4] = [
    "outputs and gates",
    "restricted product, gates held",
    "gradient of all panels, read",
    "s largest of a gradient step",
];

/// The fastest of some rounds of each product.
fn times<S: Sensing>(
    on: &mut S,
    w: Weights<'_>,
    labels: &Rows<S>,
    rounds: usize,
) -> tamis::Result<[f64; 4], S::Source> {
    let (n, d, m, s) = (on.rows(), on.inputs(), on.blocks(), w.nnz());
    let gates = Gates::of(w, Signs::Positive, Empty::Open, 0, 1);
    let (mut out, mut panel, mut own) = (vec![0.0; n], vec![0.0; m * d], vec![0.0; s]);
    let mut scratch = vec![0.0; n + d];
    let out = on.machine().rows_in(&mut out);
    let (mut index, mut value) = (vec![0; s], vec![0.0; s]);
    let mut best = [f64::INFINITY; 4];
    for _ in 0..=rounds {
        let mut began = Instant::now();
        let mut lap = |best: &mut f64| {
            *best = best.min(began.elapsed().as_secs_f64());
            began = Instant::now();
        };
        on.forward(gates, w, out)?;
        // A sum waits for what a device has not done yet.
        on.machine().squares(out);
        lap(&mut best[0]);
        let held = on.hold(gates, w.index())?;
        on.normal_at(held, w, &mut own, &mut scratch)?;
        // Holding gates is not timed.
        lap(&mut { f64::INFINITY });
        on.normal_at(held, w, &mut own, &mut scratch)?;
        lap(&mut best[1]);
        on.gradient(gates, labels, 0..m, &mut panel)?;
        lap(&mut best[2]);
        let mut top = Top::new(&mut index, &mut value);
        for first in (0..m).step_by(on.panel()) {
            let blocks = first..(first + on.panel()).min(m);
            let memory = &mut panel[..blocks.len() * d];
            let step = GradientStep { step_size: 1e-3 };
            let of = Stepped { panel: Panel { blocks, weights: w }, step };
            on.offer_step(gates, labels, &of, memory, &mut top)?;
        }
        top.finish().ok_or(tamis::Error::Diverged { step: 0 })?;
        lap(&mut best[3]);
    }
    Ok(best)
}

impl fmt::Display for GpuReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeviceReport { name, backend, kind, driver, limits } = &self.device;
        writeln!(f, "# The operator on a GPU, beside the CPU\n")?;
        writeln!(f, "Made by `tamis bench --device gpu` on one machine, in one run.\n")?;
        writeln!(f, "| | |\n|---|---|")?;
        writeln!(f, "| adapter | {name} |\n| backend, type | {backend}, {kind} |")?;
        writeln!(f, "| driver | {driver} |")?;
        let binding = limits.max_storage_buffer_binding_size >> 20;
        writeln!(f, "| largest binding | {binding} MiB |")?;
        writeln!(f, "| peak, measured | {:.1} G multiply-adds/s |", self.peak_gmacs)?;
        writeln!(f, "| bandwidth, measured | {:.1} GB/s |", self.bandwidth_gbytes)?;
        writeln!(f, "| CPU | {} threads |", self.threads)?;
        for size in &self.sizes {
            size.write(f, self.peak_gmacs)?;
        }
        writeln!(f, "\nSearches for planted networks of the first size, by default settings.\n")?;
        writeln!(f, "| seed | on | seconds | PSNR | steps | passes | moved |")?;
        writeln!(f, "|---|---|---|---|---|---|---|")?;
        for Search { seed, cpu, gpu } in &self.searches {
            for (name, of) in [("CPU", cpu), ("GPU", gpu)] {
                let Trained { seconds, psnr_db, steps, passes, transferred_bytes } = of;
                let (psnr, moved) = (psnr_db.unwrap_or(f64::NAN), *transferred_bytes as f64 / 1e6);
                writeln!(
                    f,
                    "| {seed} | {name} | {seconds:.2} | {psnr:.1} dB | {steps} | {passes:.0} | \
                     {moved:.1} MB |"
                )?;
            }
        }
        let total = |of: fn(&Search) -> f64| self.searches.iter().map(of).sum::<f64>();
        let whole = total(|of| of.gpu.seconds) / total(|of| of.cpu.seconds);
        let pass = whole * total(|of| of.cpu.passes) / total(|of| of.gpu.passes);
        writeln!(f, "\nGPU / CPU: {whole:.1} of all searches, {pass:.1} of a pass.\n")?;
        let name = &self.device.name;
        if self.device.is_software() {
            writeln!(
                f,
                "Measured on a driver that computes on the processor, {name}, alone: of the rates on \
                 a GPU it says nothing."
            )?;
        }
        Ok(())
    }
}

impl SizeReport {
    fn write(&self, f: &mut fmt::Formatter<'_>, peak: f64) -> fmt::Result {
        let Self { samples, inputs, hidden, nnz, products, kernels } = self;
        writeln!(
            f,
            "\nPlanted: {samples} rows, {inputs} inputs, {hidden} neurons, {nnz} nonzeros.\n"
        )?;
        writeln!(f, "| product | CPU, ms | GPU, ms | GPU / CPU | of the GPU's peak |")?;
        writeln!(f, "|---|---|---|---|---|")?;
        for Product { name, cpu_seconds: cpu, gpu_seconds: gpu, macs } in products {
            let share = 100.0 * macs / gpu / (1e9 * peak);
            let (cpu_ms, gpu_ms, ratio) = (1e3 * cpu, 1e3 * gpu, gpu / cpu);
            writeln!(f, "| {name} | {cpu_ms:.2} | {gpu_ms:.2} | {ratio:.2} | {share:.0} % |")?;
        }
        if kernels.is_empty() {
            return writeln!(f, "\nThis device has no clock for its kernels.");
        }
        writeln!(
            f,
            "\n| kernel | calls | ms a call | share of the time | of the GPU's peak | of its roofline |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        let all: f64 = kernels.iter().map(|kernel| kernel.seconds).sum();
        for KernelReport { name, calls, seconds, multiply_adds, share, .. } in kernels {
            let (each, part) = (1e3 * seconds / *calls as f64, 100.0 * seconds / all);
            let rate = 100.0 * multiply_adds / seconds / (1e9 * peak);
            let rate = if *multiply_adds > 0.0 { format!("{rate:.0} %") } else { "-".into() };
            let share = share.map_or("-".into(), |share| format!("{:.0} %", 100.0 * share));
            writeln!(f, "| {name} | {calls} | {each:.3} | {part:.0} % | {rate} | {share} |")?;
        }
        Ok(())
    }
}
