//! What a device does at the most, measured: multiply-adds, and bytes read from its memory.

use crate::device::Gpu;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::recorder::Recorder;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Groups of a micro-kernel, of 256 threads each.
const GROUPS: usize = 1024;
/// Bytes that are read, at most.
const BYTES: u64 = 1 << 27;
/// Time that a measurement takes at least.
const LEAST: Duration = Duration::from_millis(100);

/// Rates of a device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Roofline {
    /// Multiply-adds of 32-bit floats a second.
    pub multiply_adds: f64,
    /// Bytes read from the device's memory a second.
    pub bytes: f64,
}

impl Roofline {
    /// Measures a device: the fastest of five calls of 0.1 s or more each.
    ///
    /// # Errors
    /// The device fails.
    pub fn measure(gpu: &Arc<Gpu>) -> Result<Self, Error> {
        let mut recorder = Recorder::new(Arc::clone(gpu), false);
        let out = recorder.buffer("results", GROUPS * 256);
        let size = BYTES.min(gpu.binding_limit());
        let data = recorder.buffer("what is read", (size / 4) as usize);
        let mut rate = |kernel: Kernel, work: &dyn Fn(u32) -> f64| {
            let (mut times, mut best) = (1_u32, 0.0_f64);
            let mut calls = 0;
            while calls < 5 && recorder.failure.is_none() {
                let began = Instant::now();
                match kernel {
                    Kernel::Peak => {
                        let dims = [16 * times, 0, 0, 0];
                        recorder.run(kernel, &dims, &[(&out).into()], [GROUPS, 1, 1]);
                    }
                    _ => (0..times).for_each(|_| {
                        let dims = [(size / 16) as u32, 0, 0, 0];
                        let places = [(&data).into(), (&out).into()];
                        recorder.run(kernel, &dims, &places, [GROUPS, 1, 1]);
                    }),
                }
                recorder.wait();
                let spent = began.elapsed();
                if spent < LEAST && times < 1 << 20 {
                    times *= 2;
                } else {
                    best = best.max(work(times) / spent.as_secs_f64());
                    calls += 1;
                }
            }
            best
        };
        let multiply_adds =
            rate(Kernel::Peak, &|times| f64::from(16 * times) * 64.0 * (GROUPS * 256) as f64);
        let bytes = rate(Kernel::Stream, &|times| f64::from(times) * size as f64);
        recorder.failure.map_or(Ok(Self { multiply_adds, bytes }), Err)
    }
}
