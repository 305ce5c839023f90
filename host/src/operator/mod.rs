//! The blocked parallel operator: the core's [`Sensing`] at the speed of the machine.
//!
//! The data lies in tiles of rows that stay in cache while all neurons of a panel pass over them
//! ([`tiles`](self)). Sparse products run along the columns of a tile; the dense gradient of a panel,
//! `X^T [gate_1 ∘ r, …, gate_p ∘ r]`, is one matrix product a tile, by the `nano-gemm` crate. Neurons whose gates are
//! closed on every row take no part.
//!
//! Tiles belong to a fixed number of groups, each with accumulators of its own, added in a fixed order: the result
//! does not depend on the number of threads. Nothing is allocated after construction.

mod factored;
mod fork;
mod held;
mod kernel;
mod layout;
mod piece;
mod stop;
mod tiles;

use crate::data::{Matrix, Values};
use fork::{fork, fork_parts};
use held::Held;
use kernel::vectorise;
pub use layout::Layout;
use pulp::Arch;
use std::convert::Infallible;
use std::ops::Range;
pub use stop::Stop;
use tamis::dims::Dims;
use tamis::error::{self, Result};
use tamis::gates::{Gate, Gates};
use tamis::sensing::{Sensing, provided};
use tamis::weights::{Block, Weights, check_support, runs};
use tiles::Tiles;

/// Groups that tiles are divided into, whatever the number of threads.
const GROUPS: usize = 8;
/// Panels are padded to whole vectors, so that the matrix product need not pack them.
const PAD: usize = 16;

/// The gated network over data in memory, blocked and parallel; runs on the current rayon pool.
#[derive(Debug)]
pub struct Blocked {
    hidden: usize,
    nnz: usize,
    /// Outputs of the networks with several; 0 where there are none.
    outputs: usize,
    layout: Layout,
    shared: Shared,
    groups: Vec<Group>,
}

/// What all groups read.
#[derive(Debug)]
struct Shared {
    tiles: Tiles,
    batch: Range<usize>,
    arch: Arch,
    /// Random generators of a panel, p×d.
    generators: Vec<f32>,
    /// Neurons of the panel that are not closed.
    live: Vec<u32>,
    held: Held,
    /// Looked at before every piece.
    stop: Option<Stop>,
}

/// Accumulators and buffers of one group of tiles.
#[derive(Debug)]
struct Group {
    /// A gradient panel, one column per input, or one number per nonzero.
    product: Vec<f32>,
    /// `gate ∘ r` of a panel, row by row.
    gated: Vec<f32>,
    /// Activations of a panel's random generators, neuron by neuron.
    random: Vec<f32>,
    /// Activations of one neuron.
    z: Vec<f32>,
    /// One number per row of a tile.
    v: Vec<f32>,
    /// `A_S p` on the rows of a tile.
    image: Vec<f32>,
    /// A tile of bytes as floats.
    expanded: Vec<f32>,
    /// Outputs or residuals on the rows of a tile, output by output.
    outputs: Vec<f32>,
    /// `R wt_i` on the rows of a tile.
    back: Vec<f32>,
}

impl Blocked {
    /// Takes the data over, for `hidden` neurons and supports of at most `nnz` entries.
    ///
    /// # Errors
    /// [`error::Error::Range`] if a size is 0 or the layout has no rows or neurons.
    pub fn new(data: Matrix, hidden: usize, nnz: usize, layout: Layout) -> Result<Self> {
        let (n, d) = (data.rows, data.cols);
        error::range("samples", n, 1, usize::MAX)?;
        error::range("inputs", d, 1, usize::MAX)?;
        error::range("hidden neurons", hidden, 1, usize::MAX)?;
        error::range("rows of a tile", layout.tile, 1, usize::MAX)?;
        error::range("panel", layout.panel, 1, hidden)?;
        let bytes = matches!(data.values, Values::U8(_));
        let padded = layout.panel.next_multiple_of(PAD);
        let (tiles, words) = (n.div_ceil(layout.tile), layout.tile.div_ceil(32));
        let held = if layout.hold { hidden.min(nnz) } else { 0 };
        let group = || Group {
            product: vec![0.0; (padded * d).max(nnz)],
            gated: vec![0.0; padded * layout.tile],
            random: vec![0.0; padded * layout.tile],
            z: vec![0.0; layout.tile],
            v: vec![0.0; layout.tile],
            image: vec![0.0; layout.tile],
            expanded: vec![0.0; if bytes { layout.tile * d } else { 0 }],
            outputs: Vec::new(),
            back: Vec::new(),
        };
        let groups = (0..tiles.min(GROUPS)).map(|_| group()).collect();
        let shared = Shared {
            batch: 0..n,
            arch: Arch::new(),
            generators: vec![0.0; layout.panel * d],
            live: Vec::with_capacity(layout.panel),
            // A batch may begin and end within a tile, and so have one piece more than its rows fill.
            held: Held {
                key: None,
                neurons: Vec::with_capacity(held),
                bits: vec![0; (tiles + 1) * held * words],
                words,
            },
            tiles: Tiles::new(data, layout.tile),
            stop: None,
        };
        Ok(Self { hidden, nnz, outputs: 0, layout, shared, groups })
    }

    /// Makes room for networks of up to `outputs` outputs ([`tamis::factored`]).
    #[must_use]
    pub fn with_outputs(mut self, outputs: usize) -> Self {
        let padded = self.layout.panel.next_multiple_of(PAD);
        let product = (padded * (self.shared.tiles.cols + outputs)).max(self.nnz);
        for group in &mut self.groups {
            group.product = vec![0.0; product];
            group.outputs = vec![0.0; outputs * self.layout.tile];
            group.back = vec![0.0; self.layout.tile];
        }
        self.outputs = outputs;
        self
    }

    /// Bytes allocated besides the data.
    #[must_use]
    pub fn workspace_bytes(&self) -> usize {
        let bytes = matches!(self.shared.tiles.values, Values::U8(_));
        let dims = Dims::new(self.shared.tiles.rows, self.shared.tiles.cols, self.hidden, self.nnz);
        let outputs = if self.outputs > 0 { self.layout.outputs_bytes(dims, self.outputs) } else { 0 };
        self.layout.bytes(dims, bytes) + outputs
    }

    /// Heeds `stop` from now on, or nothing: the call that sees it fails with [`error::Error::Stopped`] within the time of
    /// a tile or a panel. It is heeded once; later calls run to their end again.
    pub fn heed(&mut self, stop: Option<Stop>) {
        self.shared.stop = stop;
    }

    fn go_on(&mut self) -> Result<()> {
        if self.shared.stopped() {
            self.shared.stop = None;
            return Err(error::Error::Stopped);
        }
        Ok(())
    }

    fn check(&self, gates: Gates<'_>) -> Result<()> {
        gates.check(self.shared.tiles.cols, self.hidden)
    }

    fn check_support(&self, support: &[u32]) -> Result<()> {
        error::range("nonzeros", support.len(), 0, self.nnz)?;
        check_support(self.shared.tiles.cols, self.hidden, support)
    }

    /// Runs `body(group, pieces)` for every group, in parallel, on the pieces that belong to it.
    fn each_group(&mut self, body: impl Fn(&Shared, &mut Group, Pieces<'_>) + Sync) -> Result<usize> {
        let pieces = self.shared.tiles.pieces(&self.shared.batch);
        let groups = self.groups.len().min(pieces);
        let shared = &self.shared;
        fork(&mut self.groups[..groups], 0, &|g, group| {
            body(shared, group, Pieces { shared, left: pieces * g / groups..pieces * (g + 1) / groups });
        });
        self.go_on()?;
        Ok(groups)
    }

    /// Adds the groups' products, `len` numbers each, in order.
    fn reduce(&self, groups: usize, out: &mut [f32]) {
        out.copy_from_slice(&self.groups[0].product[..out.len()]);
        for group in &self.groups[1..groups] {
            for (out, part) in out.iter_mut().zip(&group.product) {
                *out += part;
            }
        }
    }

    /// Calls `body(group, k, part)` for every piece k, in parallel, with `out[start(k)..start(k + 1)]`.
    fn each_part<T: Send>(
        &mut self,
        out: &mut [T],
        start: impl Fn(usize) -> usize + Sync,
        body: impl Fn(&Shared, &mut Group, usize, &mut [T]) + Sync,
    ) -> Result<()> {
        let pieces = self.shared.tiles.pieces(&self.shared.batch);
        let groups = self.groups.len().min(pieces);
        let shared = &self.shared;
        let work = |g: usize, group: &mut Group, out: &mut [T]| {
            let mut rest = out;
            for k in (Pieces { shared, left: pieces * g / groups..pieces * (g + 1) / groups }) {
                let (part, tail) = rest.split_at_mut(start(k + 1) - start(k));
                body(shared, group, k, part);
                rest = tail;
            }
        };
        fork_parts(&mut self.groups[..groups], 0, out, &|g| start(pieces * g / groups), &work);
        self.go_on()
    }

    /// [`Self::each_part`] where the parts are the rows of the pieces.
    fn each_row(
        &mut self,
        out: &mut [f32],
        body: impl Fn(&Shared, &mut Group, usize, &mut [f32]) + Sync,
    ) -> Result<()> {
        let (tile, batch) = (self.shared.tiles.tile, self.shared.batch.clone());
        let first = batch.start / tile;
        let start = |k: usize| ((first + k) * tile).clamp(batch.start, batch.end) - batch.start;
        self.each_part(out, start, body)
    }
}

/// Pieces of one group, until the work is to end.
struct Pieces<'a> {
    shared: &'a Shared,
    left: Range<usize>,
}

impl Iterator for Pieces<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.shared.stopped() { None } else { self.left.next() }
    }
}

impl Shared {
    fn stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(Stop::asked)
    }

    /// The generator of a single random gate, d numbers.
    fn generator(&self) -> &[f32] {
        &self.generators[..self.tiles.cols]
    }
}

/// Calls a generic method on the data, whichever element it has.
macro_rules! with_values {
    ($shared:expr, $values:ident => $body:expr) => {
        match &$shared.tiles.values {
            Values::F32($values) => $body,
            Values::U8($values) => $body,
        }
    };
}

use with_values;

impl Sensing for Blocked {
    type Source = Infallible;

    fn rows(&self) -> usize {
        self.shared.tiles.rows
    }

    fn samples(&self) -> usize {
        self.shared.batch.len()
    }

    fn inputs(&self) -> usize {
        self.shared.tiles.cols
    }

    fn blocks(&self) -> usize {
        self.hidden
    }

    fn panel(&self) -> usize {
        self.layout.panel
    }

    fn scratch(&self, batch: usize) -> usize {
        batch + self.shared.tiles.cols
    }

    fn select(&mut self, rows: Range<usize>) -> Result<()> {
        error::range("rows of the batch", rows.end, rows.start.saturating_add(1), self.shared.tiles.rows)?;
        self.shared.batch = rows;
        self.shared.held.key = None;
        Ok(())
    }

    fn apply(&mut self, gates: Gates<'_>, w: Block<'_>, out: &mut [f32]) -> Result<()> {
        error::length("apply output", out.len(), self.samples())?;
        self.check(gates)?;
        w.check(self.shared.tiles.cols, self.hidden)?;
        let gate = gates.gate(w.neuron());
        gate.generator(&mut self.shared.generators[..self.shared.tiles.cols]);
        self.each_row(out, |shared, group, k, out| {
            with_values!(shared, values => {
                let piece = shared.tiles.piece(values, &shared.batch, k);
                vectorise(shared.arch, #[inline(always)] || piece::add_gated(piece, gate, shared.generator(), w, group, out));
            });
        })
    }

    fn adjoint(&mut self, gates: Gates<'_>, i: usize, v: &[f32], out: &mut [f32]) -> Result<()> {
        error::range("block", i, 0, self.hidden - 1)?;
        error::length("adjoint input", v.len(), self.samples())?;
        let d = self.shared.tiles.cols;
        error::length("adjoint output", out.len(), d)?;
        self.check(gates)?;
        let gate = gates.gate(i);
        gate.generator(&mut self.shared.generators[..d]);
        let groups = self.each_group(|shared, group, pieces| {
            group.product[..d].fill(0.0);
            for k in pieces {
                with_values!(shared, values => {
                    let piece = shared.tiles.piece(values, &shared.batch, k);
                    vectorise(shared.arch, #[inline(always)] || piece::add_block(piece, gate, shared.generator(), v, group));
                });
            }
        })?;
        for group in &self.groups[..groups] {
            for (out, part) in out.iter_mut().zip(&group.product) {
                *out += part;
            }
        }
        Ok(())
    }

    fn hold(&mut self, gates: Gates<'_>, support: &[u32]) -> Result<()> {
        self.check(gates)?;
        self.check_support(support)?;
        let (d, words, panel) = (self.shared.tiles.cols, self.shared.held.words, self.layout.panel);
        self.shared.held.key = None;
        if !self.layout.hold {
            return Ok(());
        }
        self.shared.held.neurons.clear();
        self.shared.held.neurons.extend(runs(d, support).map(|(i, _)| i as u32));
        let (neurons, mut bits) =
            (std::mem::take(&mut self.shared.held.neurons), std::mem::take(&mut self.shared.held.bits));
        let stride = neurons.len() * words;
        let used = self.shared.tiles.pieces(&self.shared.batch) * stride;
        let mut done = Ok(());
        for (first, neurons) in (0..).step_by(panel).zip(neurons.chunks(panel)) {
            let mut cursor = gates.cursor();
            for (&i, h) in neurons.iter().zip(self.shared.generators.chunks_mut(d)) {
                cursor.at(i as usize).generator(h);
            }
            done = self.each_part(
                &mut bits[..used],
                |k| k * stride,
                |shared, group, k, bits| {
                    let bits = &mut bits[first * words..][..neurons.len() * words];
                    with_values!(shared, values => {
                        let piece = shared.tiles.piece(values, &shared.batch, k);
                        piece::hold(shared, piece, gates, neurons, (bits, words), group);
                    });
                },
            );
            if done.is_err() {
                break;
            }
        }
        let key = done.is_ok().then(|| gates.key());
        self.shared.held = Held { key, neurons, bits, words };
        done
    }

    fn forward(&mut self, gates: Gates<'_>, w: Weights<'_>, out: &mut [f32]) -> Result<()> {
        error::length("forward output", out.len(), self.samples())?;
        self.check(gates)?;
        w.check(self.shared.tiles.cols, self.hidden)?;
        let held = self.shared.held.fits(gates, w.blocks().map(|block| block.neuron()));
        if !held && gates.may_be_random() {
            return provided::forward(self, gates, w, out);
        }
        self.each_row(out, |shared, group, k, out| {
            with_values!(shared, values => {
                let piece = shared.tiles.piece(values, &shared.batch, k);
                vectorise(shared.arch, #[inline(always)] || {
                    out.fill(0.0);
                    if held {
                        piece::add_forward_held(piece, shared.held.piece(k), w, group, out);
                        return;
                    }
                    let mut cursor = gates.cursor();
                    for block in w.blocks() {
                        piece::add_gated(piece, cursor.at(block.neuron()), &[], block, group, out);
                    }
                });
            });
        })
    }

    fn gradient(&mut self, gates: Gates<'_>, r: &[f32], blocks: Range<usize>, out: &mut [f32]) -> Result<()> {
        let d = self.shared.tiles.cols;
        error::range("block", blocks.end, blocks.start, self.hidden)?;
        error::length("residual", r.len(), self.samples())?;
        error::length("gradient panel", out.len(), blocks.len() * d)?;
        self.check(gates)?;
        for (first, out) in
            blocks.clone().step_by(self.layout.panel).zip(out.chunks_mut(self.layout.panel * d))
        {
            self.gradient_panel(gates, r, first..(first + self.layout.panel).min(blocks.end), out)?;
        }
        Ok(())
    }

    fn gradient_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        r: &[f32],
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<()> {
        error::length("residual", r.len(), self.samples())?;
        error::length("restricted gradient", out.len(), support.len())?;
        self.check(gates)?;
        self.check_support(support)?;
        let d = self.shared.tiles.cols;
        let held = self.shared.held.fits(gates, runs(d, support).map(|(i, _)| i));
        if !held && gates.may_be_random() {
            return provided::gradient_at(self, gates, support, r, out, scratch);
        }
        let groups = self.each_group(|shared, group, pieces| {
            group.product[..support.len()].fill(0.0);
            for k in pieces {
                with_values!(shared, values => {
                    let piece = shared.tiles.piece(values, &shared.batch, k);
                    let r = &r[piece.at..][..piece.len()];
                    vectorise(shared.arch, #[inline(always)] || match held {
                        true => piece::add_restricted_held(piece, shared.held.piece(k), d, support, r, group),
                        false => piece::add_restricted(piece, gates, d, support, r, group),
                    });
                });
            }
        })?;
        self.reduce(groups, out);
        Ok(())
    }

    fn normal_at(
        &mut self,
        gates: Gates<'_>,
        p: Weights<'_>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<()> {
        error::length("restricted product", out.len(), p.nnz())?;
        self.check(gates)?;
        p.check(self.shared.tiles.cols, self.hidden)?;
        self.check_support(p.index())?;
        let held = self.shared.held.fits(gates, p.blocks().map(|block| block.neuron()));
        if !held && gates.may_be_random() {
            return provided::normal_at(self, gates, p, out, scratch);
        }
        let groups = self.each_group(|shared, group, pieces| {
            group.product[..p.nnz()].fill(0.0);
            for k in pieces {
                with_values!(shared, values => {
                    let piece = shared.tiles.piece(values, &shared.batch, k);
                    vectorise(shared.arch, #[inline(always)] || match held {
                        true => piece::add_normal_held(piece, shared.held.piece(k), p, group),
                        false => piece::add_normal(piece, gates, p, group),
                    });
                });
            }
        })?;
        self.reduce(groups, out);
        Ok(())
    }

    fn diagonal_at(
        &mut self,
        gates: Gates<'_>,
        support: &[u32],
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<()> {
        error::length("diagonal", out.len(), support.len())?;
        self.check(gates)?;
        self.check_support(support)?;
        let d = self.shared.tiles.cols;
        let held = self.shared.held.fits(gates, runs(d, support).map(|(i, _)| i));
        if !held && gates.may_be_random() {
            return provided::diagonal_at(self, gates, support, out, scratch);
        }
        let groups = self.each_group(|shared, group, pieces| {
            group.product[..support.len()].fill(0.0);
            for k in pieces {
                with_values!(shared, values => {
                    let piece = shared.tiles.piece(values, &shared.batch, k);
                    let held = held.then(|| shared.held.piece(k));
                    vectorise(shared.arch, #[inline(always)] || {
                        piece::add_diagonal(piece, gates, held, d, support, group);
                    });
                });
            }
        })?;
        self.reduce(groups, out);
        Ok(())
    }

    fn column_norms(
        &mut self,
        gates: Gates<'_>,
        blocks: Range<usize>,
        out: &mut [f32],
        _scratch: &mut [f32],
    ) -> Result<()> {
        let d = self.shared.tiles.cols;
        error::range("block", blocks.end, blocks.start, self.hidden)?;
        error::length("column norms", out.len(), blocks.len() * d)?;
        self.check(gates)?;
        for (i, out) in blocks.zip(out.chunks_mut(d)) {
            let gate = gates.gate(i);
            gate.generator(&mut self.shared.generators[..d]);
            let groups = self.each_group(|shared, group, pieces| {
                group.product[..d].fill(0.0);
                for k in pieces {
                    with_values!(shared, values => {
                        let piece = shared.tiles.piece(values, &shared.batch, k);
                        vectorise(shared.arch, #[inline(always)] || piece::add_norms(piece, gate, shared.generator(), group));
                    });
                }
            })?;
            self.reduce(groups, out);
        }
        Ok(())
    }
}

impl Blocked {
    /// The gradient of at most p blocks: one matrix product a tile.
    fn gradient_panel(
        &mut self,
        gates: Gates<'_>,
        r: &[f32],
        blocks: Range<usize>,
        out: &mut [f32],
    ) -> Result<()> {
        self.go_on()?;
        let d = self.shared.tiles.cols;
        self.shared.live.clear();
        let mut cursor = gates.cursor();
        let mut random = false;
        for i in blocks.clone() {
            let gate = cursor.at(i);
            if gate == Gate::Closed {
                continue;
            }
            if matches!(gate, Gate::Random { .. }) {
                gate.generator(&mut self.shared.generators[self.shared.live.len() * d..][..d]);
                random = true;
            }
            self.shared.live.push(i as u32);
        }
        out.fill(0.0);
        if self.shared.live.is_empty() {
            return Ok(());
        }
        let padded = self.shared.live.len().next_multiple_of(PAD);
        let groups = self.each_group(|shared, group, pieces| {
            group.product[..padded * d].fill(0.0);
            for k in pieces {
                with_values!(shared, values => {
                    let piece = shared.tiles.piece(values, &shared.batch, k);
                    piece::add_panel(shared, piece, gates, random, r, padded, group);
                });
            }
        })?;
        for group in &self.groups[..groups] {
            for (slot, &i) in self.shared.live.iter().enumerate() {
                let out = &mut out[(i as usize - blocks.start) * d..][..d];
                for (out, column) in out.iter_mut().zip(group.product.chunks(padded)) {
                    *out += column[slot];
                }
            }
        }
        Ok(())
    }
}
