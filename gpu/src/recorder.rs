//! Calls of kernels, recorded and submitted together, and what moves between host and device.

use crate::device::{Gpu, Pipeline};
use crate::error::Error;
use crate::kernel::Kernel;
use crate::place::{ALIGN, Place, Rows};
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use wgpu::{Buffer, BufferUsages};

/// Bytes that have moved between host and device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transfers {
    /// Data, once, and labels.
    pub data: u64,
    /// Weights, supports, sizes.
    pub sent: u64,
    /// Panels, products on a support, sums.
    pub received: u64,
}

/// What a call does at least.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    pub(crate) multiply_adds: usize,
    pub(crate) bytes: usize,
}

/// A product with rows of the data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OnRows {
    pub(crate) rows: usize,
    /// Multiply-adds of each row.
    pub(crate) products: usize,
    /// Inputs of each row that are read.
    pub(crate) inputs: usize,
}

/// The clock's readings that are not looked at yet.
#[derive(Debug)]
struct Clock {
    queries: wgpu::QuerySet,
    /// Readings, and where this machine reads them.
    ticks: [Buffer; 2],
    calls: Vec<Kernel>,
}

/// Bytes of the first arena.
const ARENA: u64 = 1 << 18;
/// Lists of at least so many words are kept on the device, and how many of them.
const KEPT_WORDS: usize = 64;
const KEPT: usize = 16;
/// Another thread that waits for the device may be the one that hands a result over.
const CALLBACK: Duration = Duration::from_secs(30);
/// Calls of one submission that are timed, at most: a query set holds two readings of each.
const CALLS: usize = wgpu::QUERY_SET_MAX_QUERIES as usize / 2;
/// How long a GPU is asked whether it is done before this thread sleeps, and software, which needs the processor itself.
const ASKING: [Duration; 2] = [Duration::from_millis(2), Duration::from_micros(50)];

impl Clock {
    fn new(gpu: &Gpu) -> Self {
        let bytes = (2 * CALLS * size_of::<u64>()) as u64;
        let made = gpu.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("readings of the clock"),
            size: bytes,
            usage: BufferUsages::QUERY_RESOLVE | BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        let queries = gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
            label: Some("the clock"),
            ty: wgpu::QueryType::Timestamp,
            count: 2 * CALLS as u32,
        });
        Self { queries, ticks: [made, staging(gpu, bytes)], calls: Vec::new() }
    }

    /// Where the readings of the next call go; none where there is no room left for them.
    fn next(&mut self, kernel: Kernel) -> Option<wgpu::ComputePassTimestampWrites<'_>> {
        let first = 2 * self.calls.len() as u32;
        if self.calls.len() == CALLS {
            return None;
        }
        self.calls.push(kernel);
        Some(wgpu::ComputePassTimestampWrites {
            query_set: &self.queries,
            beginning_of_pass_write_index: Some(first),
            end_of_pass_write_index: Some(first + 1),
        })
    }
}

/// Records calls until a result is read.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) gpu: Arc<Gpu>,
    encoder: Option<wgpu::CommandEncoder>,
    /// What calls one after the other are recorded in; timed ones have one each.
    pass: Option<wgpu::ComputePass<'static>>,
    /// What small uploads of one submission lie in, one after the other.
    arena: Buffer,
    staged: Vec<u8>,
    /// Arenas that were full, with what goes there.
    full: Vec<(Buffer, Vec<u8>)>,
    /// Lists that were sent lately, the last one last; with a buffer where that was more than once.
    kept: Vec<(Vec<u32>, Option<Buffer>)>,
    /// What results are read from.
    staging: Option<Buffer>,
    pub(crate) bytes: bool,
    pub(crate) transfers: Transfers,
    pub(crate) failure: Option<Error>,
    clock: Option<Clock>,
}

impl Recorder {
    pub(crate) fn new(gpu: Arc<Gpu>, bytes: bool) -> Self {
        let arena = arena(&gpu, ARENA);
        Self {
            gpu,
            encoder: None,
            pass: None,
            arena,
            staged: Vec::new(),
            full: Vec::new(),
            kept: Vec::new(),
            staging: None,
            bytes,
            transfers: Transfers::default(),
            failure: None,
            clock: None,
        }
    }

    /// Notes what a kernel does in the call that is recorded.
    pub(crate) fn note_work(&mut self, kernel: Kernel, Work { multiply_adds, bytes }: Work) {
        if self.failure.is_none() {
            self.gpu.note_time(kernel, |time| {
                time.multiply_adds += multiply_adds as f64;
                time.bytes += bytes as f64;
            });
        }
    }

    /// The work of a product with rows of the data, of which it reads or writes a number each, too.
    pub(crate) fn work_on(&self, of: OnRows) -> Work {
        let element = if self.bytes { 1 } else { 4 };
        Work {
            multiply_adds: of.rows * of.products,
            bytes: of.rows * (element * of.inputs + size_of::<f32>()),
        }
    }

    /// Reads the clock's readings of what was submitted.
    fn read_clock(&mut self) {
        let Some(mut clock) = self.clock.take() else { return };
        let period = f64::from(self.gpu.queue.get_timestamp_period()) * 1e-9;
        let words = self.fetch(&clock.ticks[1], 16 * clock.calls.len() as u64);
        let tick = |half: &[u32]| u64::from(half[1]) << 32 | u64::from(half[0]);
        for (kernel, pair) in clock.calls.drain(..).zip(words.chunks(4)) {
            let ticks = tick(&pair[2..]).saturating_sub(tick(pair));
            self.gpu.note_time(kernel, |time| {
                time.calls += 1;
                time.seconds += ticks as f64 * period;
            });
        }
        self.clock = Some(clock);
    }

    /// Notes the first failure.
    pub(crate) fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
    }

    /// A buffer of zeros; an empty one after a failure.
    pub(crate) fn buffer(&mut self, what: &str, numbers: usize) -> Buffer {
        let made = self.gpu.buffer(what, 4 * numbers as u64);
        self.made(what, made)
    }

    /// The same for a vector that kernels go through by windows.
    pub(crate) fn vector(&mut self, what: &str, numbers: usize) -> Buffer {
        let made = self.gpu.vector(what, 4 * numbers as u64);
        self.made(what, made)
    }

    fn made(&mut self, what: &str, made: Result<Buffer, Error>) -> Buffer {
        made.unwrap_or_else(|error| {
            self.fail(error);
            self.gpu.create(what, 0)
        })
    }

    /// Makes a buffer at least so large; what is in it is lost where it grows.
    pub(crate) fn grow(
        &mut self,
        buffer: &mut Option<Buffer>,
        what: &str,
        numbers: usize,
    ) -> Buffer {
        enough(buffer, numbers).unwrap_or_else(|| buffer.insert(self.buffer(what, numbers)).clone())
    }

    /// The same for a vector that kernels go through by windows.
    pub(crate) fn grow_vector(
        &mut self,
        buffer: &mut Option<Buffer>,
        what: &str,
        numbers: usize,
    ) -> Buffer {
        enough(buffer, numbers).unwrap_or_else(|| buffer.insert(self.vector(what, numbers)).clone())
    }

    /// The rows of one call after the other; none after a failure.
    pub(crate) fn windows(&mut self, rows: Rows) -> Vec<Range<usize>> {
        rows.windows(&self.gpu).unwrap_or_else(|error| {
            self.fail(error);
            Vec::new()
        })
    }

    /// Sends numbers, unless they were sent before and are on the device still; the place is for calls
    /// recorded before the next submission.
    pub(crate) fn send(&mut self, words: &[u32]) -> Place {
        if words.len() < KEPT_WORDS {
            self.transfers.sent += 4 * words.len() as u64;
            return self.stage(words);
        }
        let before = self.kept.iter().position(|(kept, _)| kept == words);
        let (list, buffer) = match before {
            Some(at) => self.kept.remove(at),
            None => (words.to_vec(), None),
        };
        if self.kept.len() == KEPT {
            self.kept.remove(0);
        }
        let is_there = buffer.is_some();
        // Most lists are sent once; a buffer of its own costs more than the numbers.
        let buffer = buffer.or_else(|| before.map(|_| self.buffer("a list", words.len())));
        self.kept.push((list, buffer.clone()));
        if !is_there {
            self.transfers.sent += 4 * words.len() as u64;
        }
        let Some(buffer) = buffer else { return self.stage(words) };
        if !is_there && self.failure.is_none() {
            self.gpu.queue.write_buffer(&buffer, 0, bytemuck::cast_slice(words));
        }
        Place::from(&buffer)
    }

    fn stage(&mut self, words: &[u32]) -> Place {
        let bytes: &[u8] = bytemuck::cast_slice(words);
        let len = bytes.len().max(16).next_multiple_of(16);
        if (self.staged.len() + len) as u64 > self.arena.size() {
            let size = self.arena.size().max(len.next_multiple_of(ALIGN) as u64);
            if let Err(error) = self.gpu.within_binding("weights of one call", size) {
                self.fail(error);
            }
            let next = arena(&self.gpu, size);
            let full = std::mem::replace(&mut self.arena, next);
            self.full.push((full, std::mem::take(&mut self.staged)));
        }
        let offset = self.staged.len();
        self.staged.extend_from_slice(bytes);
        self.staged.resize((offset + len).next_multiple_of(ALIGN), 0);
        Place { buffer: self.arena.clone(), offset: offset as u64, bytes: len as u64 }
    }

    /// Writes data or labels to a buffer.
    pub(crate) fn write(&mut self, buffer: &Buffer, bytes: &[u8]) {
        self.transfers.data += bytes.len() as u64;
        self.write_uncounted(buffer, bytes);
    }

    /// Writes numbers of the size of a support to a buffer.
    pub(crate) fn write_numbers(&mut self, buffer: &Buffer, words: &[u32]) {
        self.transfers.sent += 4 * words.len() as u64;
        self.write_uncounted(buffer, bytemuck::cast_slice(words));
    }

    fn write_uncounted(&mut self, buffer: &Buffer, bytes: &[u8]) {
        if self.failure.is_none() && bytes.len() as u64 <= buffer.size() {
            self.submit();
            self.gpu.queue.write_buffer(buffer, 0, bytes);
        }
    }

    /// Sets a buffer's first numbers to 0.
    pub(crate) fn clear(&mut self, buffer: &Buffer, numbers: usize) {
        if self.failure.is_none() {
            self.encoder().clear_buffer(buffer, 0, Some(4 * numbers as u64));
        }
    }

    /// Records a call: sizes, then buffers from binding 1 on. An empty grid is no call.
    pub(crate) fn run(&mut self, kernel: Kernel, dims: &[u32], places: &[Place], grid: [usize; 3]) {
        if self.failure.is_some() || grid.contains(&0) {
            return;
        }
        let dims = self.stage(dims);
        let Pipeline { pipeline, layout } = self.gpu.pipeline(kernel, self.bytes);
        let all = (0..).zip(std::iter::once(&dims).chain(places));
        let entries: Vec<_> = all
            .map(|(binding, place)| wgpu::BindGroupEntry { binding, resource: place.resource() })
            .collect();
        let group = self.gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout,
            entries: &entries,
        });
        let timestamp_writes = self
            .gpu
            .is_profiled()
            .then(|| self.clock.get_or_insert_with(|| Clock::new(&self.gpu)).next(kernel));
        let is_timed = timestamp_writes.is_some();
        if is_timed {
            // One that was begun before calls were timed.
            self.pass = None;
        }
        let encoder = encoder(&mut self.encoder, &self.gpu);
        let pass = self.pass.get_or_insert_with(|| {
            let timestamp_writes = timestamp_writes.flatten();
            let own = wgpu::ComputePassDescriptor { label: None, timestamp_writes };
            encoder.begin_compute_pass(&own).forget_lifetime()
        });
        pass.set_pipeline(pipeline);
        pass.set_bind_group(0, &group, &[]);
        let [x, y, z] = grid.map(|size| size as u32);
        pass.dispatch_workgroups(x, y, z);
        if is_timed {
            self.pass = None;
        }
    }

    /// Submits what is recorded.
    pub(crate) fn submit(&mut self) {
        let began = Instant::now();
        self.pass = None;
        for (arena, staged) in self.full.drain(..) {
            self.gpu.queue.write_buffer(&arena, 0, &staged);
        }
        if !self.staged.is_empty() {
            self.gpu.queue.write_buffer(&self.arena, 0, &self.staged);
            self.staged.clear();
        }
        let timed = self.clock.as_ref().filter(|clock| !clock.calls.is_empty());
        if let (Some(Clock { queries, ticks: [made, read], calls }), Some(encoder)) =
            (timed, &mut self.encoder)
        {
            encoder.resolve_query_set(queries, 0..2 * calls.len() as u32, made, 0);
            encoder.copy_buffer_to_buffer(made, 0, read, 0, 16 * calls.len() as u64);
        }
        let is_timed = timed.is_some();
        self.gpu.queue.submit(self.encoder.take().map(wgpu::CommandEncoder::finish));
        self.gpu.note(|profile| {
            profile.submissions += 1;
            profile.submitting += began.elapsed().as_secs_f64();
        });
        if is_timed {
            self.read_clock();
        }
    }

    /// Submits, and waits until it is done.
    pub(crate) fn wait(&mut self) {
        self.submit();
        self.finish();
    }

    /// What is recorded, for what is no call of a kernel.
    fn encoder(&mut self) -> &mut wgpu::CommandEncoder {
        self.pass = None;
        encoder(&mut self.encoder, &self.gpu)
    }

    /// Waits until what was submitted is done. The device is asked again and again for a while,
    /// since a thread that sleeps is woken late.
    fn finish(&mut self) {
        let (began, device) = (Instant::now(), &self.gpu.device);
        let asking = ASKING[usize::from(self.gpu.adapter.is_software())];
        while began.elapsed() < asking {
            match device.poll(wgpu::PollType::Poll) {
                Ok(status) if !status.is_queue_empty() => std::hint::spin_loop(),
                _ => break,
            }
        }
        let waited = self.gpu.device.poll(wgpu::PollType::wait_indefinitely());
        self.gpu.note(|profile| profile.waiting += began.elapsed().as_secs_f64());
        if let Err(error) = waited {
            let adapter = self.gpu.adapter.name.clone();
            self.fail(Error::Lost { adapter, message: error.to_string() });
        }
        if let Some(error) = self.gpu.failure() {
            self.fail(error);
        }
    }

    /// Submits, and reads the first numbers of a buffer: none after a failure.
    pub(crate) fn read(&mut self, buffer: &Buffer, numbers: usize) -> Vec<u32> {
        self.read_all(&[(buffer, numbers)])
    }

    /// The same of several buffers, one after the other.
    pub(crate) fn read_all(&mut self, all: &[(&Buffer, usize)]) -> Vec<u32> {
        let numbers: usize = all.iter().map(|(_, numbers)| numbers).sum();
        let bytes = 4 * numbers as u64;
        if self.failure.is_some() || numbers == 0 {
            return Vec::new();
        }
        let staging = match &self.staging {
            Some(staging) if staging.size() >= bytes => staging.clone(),
            _ => self.staging.insert(staging(&self.gpu, bytes.next_multiple_of(1 << 12))).clone(),
        };
        let encoder = self.encoder();
        let mut at = 0;
        for (buffer, numbers) in all.iter().filter(|(_, numbers)| *numbers > 0) {
            let bytes = 4 * *numbers as u64;
            encoder.copy_buffer_to_buffer(buffer, 0, &staging, at, bytes);
            at += bytes;
        }
        self.submit();
        let words = self.fetch(&staging, bytes);
        if self.failure.is_none() {
            self.transfers.received += bytes;
        }
        words
    }

    /// Waits, and reads the first bytes of a buffer for results: none after a failure.
    fn fetch(&mut self, staging: &Buffer, bytes: u64) -> Vec<u32> {
        let (tell, told) = mpsc::channel();
        staging.map_async(wgpu::MapMode::Read, 0..bytes, move |done| {
            let _ = tell.send(done);
        });
        self.finish();
        if self.failure.is_some() {
            return Vec::new();
        }
        let adapter = self.gpu.adapter.name.clone();
        let message = match told.recv_timeout(CALLBACK) {
            Ok(Ok(())) => match staging.get_mapped_range(0..bytes) {
                Ok(view) => {
                    let words = bytemuck::pod_collect_to_vec(&view[..]);
                    drop(view);
                    staging.unmap();
                    return words;
                }
                Err(error) => error.to_string(),
            },
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        self.fail(Error::Lost { adapter, message });
        Vec::new()
    }
}

fn encoder<'e>(
    kept: &'e mut Option<wgpu::CommandEncoder>,
    gpu: &Gpu,
) -> &'e mut wgpu::CommandEncoder {
    kept.get_or_insert_with(|| gpu.device.create_command_encoder(&Default::default()))
}

/// A buffer that is large enough.
fn enough(buffer: &Option<Buffer>, numbers: usize) -> Option<Buffer> {
    buffer.clone().filter(|there| there.size() >= 4 * numbers as u64)
}

fn arena(gpu: &Gpu, size: u64) -> Buffer {
    gpu.device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("arena"),
        size,
        usage: BufferUsages::UNIFORM | BufferUsages::STORAGE | BufferUsages::COPY_DST,
        mapped_at_creation: false,
    })
}

fn staging(gpu: &Gpu, size: u64) -> Buffer {
    gpu.device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("results"),
        size,
        usage: BufferUsages::MAP_READ | BufferUsages::COPY_DST,
        mapped_at_creation: false,
    })
}
