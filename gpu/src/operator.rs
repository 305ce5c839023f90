//! The operator: the products of one output on a device.

use crate::data::{Data, Piece, Values};
use crate::device::Gpu;
use crate::error::Error;
use crate::gates::{GateBits, Neurons};
use crate::kernel::Kernel;
use crate::place::Place;
use crate::recorder::Transfers;
use crate::restricted::{Mode, Summation};
use crate::select::{Selected, Selector, Steps};
use crate::solve::{Solver, Support};
use crate::tables::Entries;
use crate::vectors::GpuVectors;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use tamis::base::error;
use tamis::network::gates::Gates;
use tamis::network::top::Top;
use tamis::network::weights::{Block, Weights, check_support, runs};
use tamis::operator::machine::Machine;
use tamis::operator::sensing::{Done, Sensing, Stepped, provided};
use tamis::operator::solve::{Equations, Solved, Unknowns};
use wgpu::Buffer;

type Result<T> = tamis::Result<T, Error>;

/// Numbers of a panel, at most.
const PANEL: usize = 1 << 24;
/// Numbers of a panel from which on the largest are selected on the device.
const LARGE: usize = 1 << 14;

/// The gated network over data that are resident on a device.
#[derive(Debug)]
pub struct GpuOperator {
    pub(crate) machine: GpuVectors,
    pub(crate) data: Data,
    pub(crate) gates: GateBits,
    pub(crate) hidden: usize,
    pub(crate) batch: Range<usize>,
    /// One number a row, or several: what is made on the way.
    pub(crate) image: Option<Buffer>,
    pub(crate) back: Option<Buffer>,
    solver: Solver,
    selector: Selector,
    panel: usize,
    stop: Stop,
}

/// Says whether the work should end.
#[derive(Default)]
struct Stop(Option<Box<dyn Fn() -> bool + Send>>);

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stop").field(&self.0.is_some()).finish()
    }
}

impl GpuOperator {
    /// Copies n rows of d inputs to the device, for `hidden` neurons. The batch is all rows.
    ///
    /// # Errors
    /// [`error::Error::Range`] if a size is 0 or m·d is beyond 32 bits, [`error::Error::Length`]
    /// for other data, [`error::Error::NotFinite`] for what is no number, [`error::Error::Source`] for
    /// what the device refuses.
    pub fn new(gpu: &Arc<Gpu>, inputs: usize, hidden: usize, values: Values<'_>) -> Result<Self> {
        let (len, bytes) = match values {
            Values::F32(values) => (values.len(), false),
            Values::U8(values) => (values.len(), true),
        };
        error::range("inputs", inputs, 1, u32::MAX as usize)?;
        error::range("hidden neurons", hidden, 1, u32::MAX as usize / inputs)?;
        let rows = len / inputs;
        error::range("samples", rows, 1, u32::MAX as usize)?;
        error::length("values", len, rows * inputs)?;
        if let Values::F32(values) = values
            && let Some(at) = values.iter().position(|x| !x.is_finite())
        {
            return Err(error::Error::NotFinite { what: "samples", at });
        }
        let mut machine = GpuVectors::new(Arc::clone(gpu), bytes);
        let data = Data::new(&mut machine.recorder, [rows, inputs, hidden], values)
            .map_err(error::Error::Source)?;
        Ok(Self {
            machine,
            data,
            gates: GateBits::default(),
            hidden,
            batch: 0..rows,
            image: None,
            back: None,
            solver: Solver::default(),
            selector: Selector::default(),
            panel: hidden,
            stop: Stop::default(),
        })
    }

    /// The same with panels of at most so many blocks.
    #[must_use]
    pub fn with_panel(self, blocks: usize) -> Self {
        Self { panel: blocks.clamp(1, self.hidden), ..self }
    }

    /// Ends calls with [`error::Error::Stopped`] once `stop` says so, or no more. It is heeded
    /// once; later calls run to their end again.
    pub fn heed(&mut self, stop: Option<Box<dyn Fn() -> bool + Send>>) {
        self.stop = Stop(stop);
    }

    /// What has moved so far.
    #[must_use]
    pub const fn transfers(&self) -> Transfers {
        self.machine.recorder.transfers
    }

    /// What has failed, if anything has.
    #[must_use]
    pub fn failure(&self) -> Option<&Error> {
        self.machine.failure()
    }

    /// The failure of the device, or the wish to end.
    pub(crate) fn go_on(&mut self) -> Result<()> {
        if let Some(error) = self.machine.failure() {
            return Err(error::Error::Source(error.clone()));
        }
        if self.stop.0.as_ref().is_some_and(|stop| stop()) {
            self.stop = Stop::default();
            return Err(error::Error::Stopped);
        }
        Ok(())
    }

    /// Checks gates and support, and brings the gates' bits to the device.
    pub(crate) fn set(&mut self, gates: Gates<'_>) -> Result<()> {
        gates.check(self.data.inputs, self.hidden).map_err(error::Error::widen)?;
        self.go_on()?;
        let Self { machine, data, gates: bits, hidden, batch, .. } = self;
        if bits.set(&mut machine.recorder, data, *hidden, batch, gates) {
            self.solver.forget();
        }
        Ok(())
    }

    pub(crate) fn summation(&mut self) -> Summation<'_> {
        let Self { machine, data, batch, .. } = self;
        Summation { machine, data, batch }
    }

    /// Entries of a support: what sums over rows are for.
    fn entries(&self, support: &[u32]) -> Entries {
        let mut entries = Entries::default();
        for (i, run) in runs(self.data.inputs, support) {
            let first = (i * self.data.inputs) as u32;
            let slot = self.gates.slot(i, self.hidden);
            entries.push([slot, 0], support[run].iter().map(|j| j - first));
        }
        entries
    }

    fn check_support(&self, support: &[u32]) -> Result<()> {
        check_support(self.data.inputs, self.hidden, support).map_err(error::Error::widen)
    }

    /// The neurons of some weights under gates, whose bits are set where they are needed.
    pub(crate) fn neurons<'w>(
        &mut self,
        gates: Gates<'_>,
        blocks: impl Iterator<Item = Block<'w>>,
    ) -> Result<Neurons> {
        gates.check(self.data.inputs, self.hidden).map_err(error::Error::widen)?;
        let mut neurons = Neurons::default();
        for block in blocks {
            neurons.push(gates.gate(block.neuron()), block);
        }
        if neurons.needs_bits {
            self.set(gates)?;
        }
        self.go_on()?;
        Ok(neurons)
    }

    /// Outputs of some neurons, or what they add to outputs.
    fn outputs(&mut self, neurons: &Neurons, out: &Place, add: bool) {
        let count = neurons.len();
        let sizes =
            |piece: &Piece, first| [count, usize::from(add), piece.row, piece.rows, first, 0];
        self.summation().neurons(Kernel::Forward, neurons, out, sizes, 1);
    }

    /// `A_S^T A_S p`, and the sums of it.
    fn normal(&mut self, gates: Gates<'_>, p: Weights<'_>) -> Result<Vec<f32>> {
        self.set(gates)?;
        let neurons = self.neurons(gates, p.blocks())?;
        let n = self.batch.len();
        let image = self.machine.recorder.grow_vector(&mut self.image, "outputs", n);
        self.outputs(&neurons, &(&image).into(), false);
        let entries = self.entries(p.index());
        Ok(self.summation().restricted(&entries, &(&image).into(), Mode::One))
    }

    /// Sums for a range of blocks, at most a panel at a time.
    fn panels(
        &mut self,
        gates: Gates<'_>,
        blocks: Range<usize>,
        r: &Place,
        mode: Mode,
        out: &mut [f32],
    ) -> Result<()> {
        self.set(gates)?;
        let (d, panel) = (self.data.inputs, self.panel());
        for (first, out) in blocks.clone().step_by(panel).zip(out.chunks_mut(panel * d)) {
            self.go_on()?;
            let of = first as u32..(first + panel).min(blocks.end) as u32;
            let live: Vec<u32> =
                self.gates.live.iter().copied().filter(|i| of.contains(i)).collect();
            out.fill(0.0);
            if live.is_empty() {
                continue;
            }
            let sums = self.summation().panel(&live, r, mode);
            for (i, line) in live.iter().zip(sums.chunks(d)) {
                out[(i - of.start) as usize * d..][..d].copy_from_slice(line);
            }
        }
        self.go_on()
    }
}

impl Sensing for GpuOperator {
    type Source = Error;
    type Machine = GpuVectors;

    fn machine(&mut self) -> &mut GpuVectors {
        &mut self.machine
    }

    fn rows(&self) -> usize {
        self.data.rows
    }

    fn local_rows(&self) -> usize {
        self.batch.len()
    }

    fn inputs(&self) -> usize {
        self.data.inputs
    }

    fn blocks(&self) -> usize {
        self.hidden
    }

    /// As many as fit a binding, and at most what [`GpuOperator::with_panel`] says.
    fn panel(&self) -> usize {
        let room = (self.machine.recorder.gpu.binding_limit() / 4) as usize;
        (room.min(PANEL) / self.data.inputs).clamp(1, self.panel)
    }

    /// None: what is made on the way is on the device.
    fn scratch(&self, _: usize) -> usize {
        0
    }

    fn select(&mut self, rows: Range<usize>) -> Done<Self> {
        let least = rows.start.saturating_add(1);
        error::range("rows of the batch", rows.end, least, self.data.rows)?;
        if self.batch != rows {
            self.solver.forget();
        }
        self.batch = rows;
        Ok(())
    }

    fn apply(&mut self, gates: Gates<'_>, w: Block<'_>, out: &mut [u32]) -> Done<Self> {
        error::length("apply output", out.len(), self.batch.len())?;
        w.check(self.data.inputs, self.hidden).map_err(error::Error::widen)?;
        let neurons = self.neurons(gates, [w].into_iter())?;
        let out = self.machine.place(out);
        self.outputs(&neurons, &out, true);
        Ok(())
    }

    fn adjoint(&mut self, gates: Gates<'_>, i: usize, v: &[u32], out: &mut [f32]) -> Done<Self> {
        error::range("block", i, 0, self.hidden - 1)?;
        error::length("adjoint input", v.len(), self.batch.len())?;
        error::length("adjoint output", out.len(), self.data.inputs)?;
        let mut sums = vec![0.0; out.len()];
        let r = self.machine.place(v);
        self.panels(gates, i..i + 1, &r, Mode::One, &mut sums)?;
        out.iter_mut().zip(sums).for_each(|(out, sum)| *out += sum);
        Ok(())
    }

    fn hold<'g>(&mut self, gates: Gates<'g>, support: &[u32]) -> Result<Gates<'g>> {
        self.check_support(support)?;
        self.set(gates)?;
        Ok(self.gates.hold(gates))
    }

    fn forward(&mut self, gates: Gates<'_>, w: Weights<'_>, out: &mut [u32]) -> Done<Self> {
        error::length("forward output", out.len(), self.batch.len())?;
        w.check(self.data.inputs, self.hidden).map_err(error::Error::widen)?;
        let neurons = self.neurons(gates, w.blocks())?;
        let out = self.machine.place(out);
        self.outputs(&neurons, &out, false);
        Ok(())
    }

    fn gradient(
        &mut self,
        gates: Gates<'_>,
        r: &[u32],
        blocks: Range<usize>,
        out: &mut [f32],
    ) -> Done<Self> {
        error::range("block", blocks.end, blocks.start, self.hidden)?;
        error::length("residual", r.len(), self.batch.len())?;
        error::length("gradient panel", out.len(), blocks.len() * self.data.inputs)?;
        let r = self.machine.place(r);
        self.panels(gates, blocks, &r, Mode::One, out)
    }

    fn offer_step(
        &mut self,
        gates: Gates<'_>,
        r: &[u32],
        of: &Stepped<'_>,
        memory: &mut [f32],
        top: &mut Top<'_>,
    ) -> Done<Self> {
        let d = self.data.inputs;
        let numbers = of.panel.blocks.len().saturating_mul(d);
        // Where most of the panel would be read all the same, or little, it is read.
        let count = top.largest().filter(|count| numbers >= LARGE && *count <= numbers / 8);
        let Some(count) = count else {
            return provided::offer_step(self, gates, r, of, memory, top);
        };
        let Stepped { panel, step } = of;
        error::range("block", panel.blocks.end, panel.blocks.start, self.hidden)?;
        error::length("residual", r.len(), self.batch.len())?;
        self.set(gates)?;
        let live = self.gates.live.partition_point(|&i| (i as usize) < panel.blocks.start)
            ..self.gates.live.partition_point(|&i| (i as usize) < panel.blocks.end);
        let live = self.gates.live[live].to_vec();
        let mut weights = Vec::new();
        for (at, w) in panel.entries() {
            let neuron = (panel.blocks.start + at / d) as u32;
            match live.binary_search(&neuron) {
                Ok(line) => weights.extend([(line * d + at % d) as u32, w.to_bits()]),
                // A closed neuron has no gradient.
                Err(_) => top.push((panel.first() + at) as u32, w),
            }
        }
        if live.is_empty() {
            return self.go_on();
        }
        let r = self.machine.place(r);
        let sums = self.summation().panel_at(&live, &r, Mode::One);
        let Self { machine, selector, .. } = self;
        let steps = Steps { eta: step.step_size, weights: &weights };
        let (recorder, numbers) = (&mut machine.recorder, live.len() * d);
        for Selected { place, value } in
            selector.largest_of_step(recorder, &sums, numbers, steps, count)
        {
            let neuron = live[place as usize / d] as usize;
            top.push((neuron * d + place as usize % d) as u32, value);
        }
        self.go_on()
    }

    fn gradient_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        r: &[u32],
        out: &mut [f32],
        _: &mut [f32],
    ) -> Done<Self> {
        error::length("residual", r.len(), self.batch.len())?;
        error::length("restricted gradient", out.len(), support.len())?;
        self.check_support(support)?;
        self.set(gates)?;
        let (r, entries) = (self.machine.place(r), self.entries(support));
        out.copy_from_slice(&self.summation().restricted(&entries, &r, Mode::One));
        self.go_on()
    }

    fn normal_at(
        &mut self,
        gates: Gates<'_>,
        p: Weights<'_>,
        out: &mut [f32],
        _: &mut [f32],
    ) -> Done<Self> {
        error::length("restricted product", out.len(), p.nnz())?;
        p.check(self.data.inputs, self.hidden).map_err(error::Error::widen)?;
        out.copy_from_slice(&self.normal(gates, p)?);
        self.go_on()
    }

    fn solve_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        equations: Equations<'_>,
        unknowns: Unknowns<'_>,
        scratch: &mut [f32],
    ) -> Result<Solved> {
        self.check_support(support)?;
        error::length("unknowns", unknowns.delta.len(), support.len())?;
        error::length("residual of the equations", unknowns.g.len(), support.len())?;
        if support.is_empty() || equations.products == 0 {
            return Ok(Solved::default());
        }
        self.set(gates)?;
        let mut pairs = Vec::with_capacity(2 * support.len());
        for (i, run) in runs(self.data.inputs, support) {
            let slot = self.gates.slot(i, self.hidden);
            let first = (i * self.data.inputs) as u32;
            pairs.extend(support[run].iter().flat_map(|j| [slot, j - first]));
        }
        let Unknowns { delta, g, p, h } = unknowns;
        let mut unknowns = Unknowns { delta: &mut *delta, g: &mut *g, p: &mut *p, h: &mut *h };
        let Self { machine, data, batch, solver, .. } = self;
        let mut on = Summation { machine, data, batch };
        let of = Support { index: support, pairs: &pairs };
        let solved = solver.solve(&mut on, of, equations, &mut unknowns);
        self.go_on()?;
        match solved {
            Some(solved) => Ok(solved),
            None => {
                let unknowns = Unknowns { delta, g, p, h };
                provided::solve_at(self, gates, support, equations, unknowns, scratch)
            }
        }
    }

    fn diagonal_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        out: &mut [f32],
        _: &mut [f32],
    ) -> Done<Self> {
        error::length("diagonal", out.len(), support.len())?;
        self.check_support(support)?;
        self.set(gates)?;
        let (r, entries) = (self.machine.nothing(), self.entries(support));
        out.copy_from_slice(&self.summation().restricted(&entries, &r, Mode::Squares));
        self.go_on()
    }

    fn column_norms(
        &mut self,
        gates: Gates<'_>,
        blocks: Range<usize>,
        out: &mut [f32],
        _: &mut [f32],
    ) -> Done<Self> {
        error::range("block", blocks.end, blocks.start, self.hidden)?;
        error::length("column norms", out.len(), blocks.len() * self.data.inputs)?;
        let r = self.machine.nothing();
        self.panels(gates, blocks, &r, Mode::Squares, out)
    }
}

/// The length of a vector of the machine.
pub(crate) fn len(rows: &[u32]) -> usize {
    GpuVectors::len(rows)
}
