//! The blocked parallel operator: the core's [`Sensing`] at the speed of the machine.
//!
//! The data lies in tiles of rows that stay in cache while all neurons of a panel pass over them
//! ([`tiles`](self)). Sparse products run along the columns of a tile; the dense gradient of a panel,
//! `X^T [gate_1 ∘ r, …, gate_p ∘ r]`, is one matrix product a tile, by the `gemm` crate. Neurons whose gates are
//! closed on every row take no part.
//!
//! Tiles belong to a fixed number of groups, each with accumulators of its own, added in a fixed order: the result
//! does not depend on the number of threads. Nothing is allocated after construction.

mod kernel;
mod tiles;

use crate::data::{Matrix, Values};
use kernel::{Element, Piece, activate, gemm, project, vectorise};
use pulp::Arch;
use std::convert::Infallible;
use std::ops::Range;
use tamis::error::{self, Result};
use tamis::gates::{Gate, Gates};
use tamis::sensing::{Sensing, provided};
use tamis::weights::{Block, Weights, runs};
use tiles::Tiles;

/// Groups that tiles are divided into, whatever the number of threads.
const GROUPS: usize = 8;
/// Panels are padded to whole vectors, so that the matrix product need not pack them.
const PAD: usize = 16;

/// Sizes of the operator's buffers; the defaults suit data of any size on a machine with a megabyte of cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Rows of a tile.
    pub tile: usize,
    /// Neurons of a gradient panel.
    pub panel: usize,
}

impl Layout {
    /// The layout for m hidden neurons and d inputs.
    #[must_use]
    pub const fn new(hidden: usize, inputs: usize) -> Self {
        let panel = if hidden < 128 { hidden } else { 128 };
        // A tile of floats takes a quarter of a megabyte or less.
        let tile = if inputs <= 128 {
            512
        } else if inputs <= 512 {
            256
        } else {
            128
        };
        Self { tile, panel }
    }

    /// Bytes that the operator allocates besides the data, for s nonzeros and data of n rows and d columns.
    #[must_use]
    pub const fn bytes(&self, samples: usize, inputs: usize, nnz: usize, bytes: bool) -> usize {
        let padded = self.panel.next_multiple_of(PAD);
        let product = if padded * inputs > nnz { padded * inputs } else { nnz };
        let expanded = if bytes { self.tile * inputs } else { 0 };
        let group = product + 2 * padded * self.tile + 2 * self.tile + expanded;
        let tiles = samples.div_ceil(self.tile);
        let groups = if tiles < GROUPS { tiles } else { GROUPS };
        4 * (groups * group + self.panel * inputs + self.panel)
    }
}

/// The gated network over data in memory, blocked and parallel; runs on the current rayon pool.
#[derive(Debug)]
pub struct Blocked {
    tiles: Tiles,
    hidden: usize,
    nnz: usize,
    layout: Layout,
    batch: Range<usize>,
    arch: Arch,
    groups: Vec<Group>,
    /// Random generators of a panel, p×d.
    generators: Vec<f32>,
    /// Neurons of the panel that are not closed.
    live: Vec<u32>,
}

/// Accumulators and buffers of one group of tiles.
#[derive(Debug)]
struct Group {
    /// A gradient panel, one column per input, or one number per nonzero.
    product: Vec<f32>,
    /// `gate ∘ r` of a panel, row by row; or gates, neuron by neuron.
    gated: Vec<f32>,
    /// Activations of a panel's random generators, neuron by neuron.
    random: Vec<f32>,
    /// Activations of one neuron.
    z: Vec<f32>,
    /// One number per row of a tile.
    v: Vec<f32>,
    /// A tile of bytes as floats.
    expanded: Vec<f32>,
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
        let group = || Group {
            product: vec![0.0; (padded * d).max(nnz)],
            gated: vec![0.0; padded * layout.tile],
            random: vec![0.0; padded * layout.tile],
            z: vec![0.0; layout.tile],
            v: vec![0.0; layout.tile],
            expanded: vec![0.0; if bytes { layout.tile * d } else { 0 }],
        };
        Ok(Self {
            hidden,
            nnz,
            layout,
            batch: 0..n,
            arch: Arch::new(),
            groups: (0..n.div_ceil(layout.tile).min(GROUPS)).map(|_| group()).collect(),
            generators: vec![0.0; layout.panel * d],
            live: Vec::with_capacity(layout.panel),
            tiles: Tiles::new(data, layout.tile),
        })
    }

    /// Bytes allocated besides the data.
    #[must_use]
    pub fn workspace_bytes(&self) -> usize {
        let bytes = matches!(self.tiles.values, Values::U8(_));
        self.layout.bytes(self.tiles.rows, self.tiles.cols, self.nnz, bytes)
    }

    fn check_support(&self, len: usize) -> Result<()> {
        error::range("nonzeros", len, 0, self.nnz)
    }

    /// Runs `body(group, pieces)` for every group, in parallel, on the pieces that belong to it.
    fn each_group(&mut self, body: impl Fn(&Shared<'_>, &mut Group, Range<usize>) + Sync) -> usize {
        let pieces = self.tiles.pieces(&self.batch);
        let groups = self.groups.len().min(pieces);
        let shared = Shared {
            tiles: &self.tiles,
            batch: &self.batch,
            generators: &self.generators,
            live: &self.live,
            arch: self.arch,
        };
        fork(&mut self.groups[..groups], 0, &|g, group| {
            body(&shared, group, pieces * g / groups..pieces * (g + 1) / groups);
        });
        groups
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

    /// `out[rows of each piece] = or += body(piece)`, pieces in parallel.
    fn each_row(
        &mut self,
        out: &mut [f32],
        body: impl Fn(&Shared<'_>, &mut Group, usize, &mut [f32]) + Sync,
    ) {
        let pieces = self.tiles.pieces(&self.batch);
        let groups = self.groups.len().min(pieces);
        let shared = Shared {
            tiles: &self.tiles,
            batch: &self.batch,
            generators: &self.generators,
            live: &self.live,
            arch: self.arch,
        };
        let first = self.batch.start / self.tiles.tile;
        let end_of = |k: usize| {
            ((first + k) * self.tiles.tile).clamp(self.batch.start, self.batch.end) - self.batch.start
        };
        let work = |g: usize, group: &mut Group, out: &mut [f32]| {
            let (from, to) = (pieces * g / groups, pieces * (g + 1) / groups);
            let mut rest = out;
            for k in from..to {
                let (part, tail) = rest.split_at_mut(end_of(k + 1) - end_of(k));
                body(&shared, group, k, part);
                rest = tail;
            }
        };
        fork_rows(&mut self.groups[..groups], 0, out, &|g| end_of(pieces * g / groups), &work);
    }
}

/// What all groups read.
struct Shared<'a> {
    tiles: &'a Tiles,
    batch: &'a Range<usize>,
    generators: &'a [f32],
    live: &'a [u32],
    arch: Arch,
}

impl Shared<'_> {
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

impl Sensing for Blocked {
    type Source = Infallible;

    fn rows(&self) -> usize {
        self.tiles.rows
    }

    fn samples(&self) -> usize {
        self.batch.len()
    }

    fn inputs(&self) -> usize {
        self.tiles.cols
    }

    fn blocks(&self) -> usize {
        self.hidden
    }

    fn panel(&self) -> usize {
        self.layout.panel
    }

    fn scratch(&self, batch: usize) -> usize {
        batch + self.tiles.cols
    }

    fn select(&mut self, rows: Range<usize>) -> Result<()> {
        error::range("rows of the batch", rows.end, rows.start.saturating_add(1), self.tiles.rows)?;
        self.batch = rows;
        Ok(())
    }

    fn apply(&mut self, gates: Gates<'_>, w: Block<'_>, out: &mut [f32]) -> Result<()> {
        error::length("apply output", out.len(), self.samples())?;
        let gate = gates.gate(w.neuron());
        gate.generator(&mut self.generators[..self.tiles.cols]);
        self.each_row(out, |shared, group, k, out| {
            with_values!(shared, values => {
                let piece = shared.tiles.piece(values, shared.batch, k);
                vectorise(shared.arch, #[inline(always)] || add_gated(piece, gate, shared.generator(), w, group, out));
            });
        });
        Ok(())
    }

    fn adjoint(&mut self, gates: Gates<'_>, i: usize, v: &[f32], out: &mut [f32]) -> Result<()> {
        error::range("block", i, 0, self.hidden - 1)?;
        error::length("adjoint input", v.len(), self.samples())?;
        let d = self.tiles.cols;
        error::length("adjoint output", out.len(), d)?;
        let gate = gates.gate(i);
        gate.generator(&mut self.generators[..d]);
        let groups = self.each_group(|shared, group, pieces| {
            group.product[..d].fill(0.0);
            for k in pieces {
                with_values!(shared, values => {
                    let piece = shared.tiles.piece(values, shared.batch, k);
                    vectorise(shared.arch, #[inline(always)] || add_block(piece, gate, shared.generator(), v, group));
                });
            }
        });
        for group in &self.groups[..groups] {
            for (out, part) in out.iter_mut().zip(&group.product) {
                *out += part;
            }
        }
        Ok(())
    }

    fn forward(&mut self, gates: Gates<'_>, w: Weights<'_>, out: &mut [f32]) -> Result<()> {
        error::length("forward output", out.len(), self.samples())?;
        if gates.may_be_random() {
            return provided::forward(self, gates, w, out);
        }
        self.each_row(out, |shared, group, k, out| {
            with_values!(shared, values => {
                let piece = shared.tiles.piece(values, shared.batch, k);
                vectorise(shared.arch, #[inline(always)] || {
                    out.fill(0.0);
                    let mut cursor = gates.cursor();
                    for block in w.blocks() {
                        add_gated(piece, cursor.at(block.neuron()), &[], block, group, out);
                    }
                });
            });
        });
        Ok(())
    }

    fn gradient(&mut self, gates: Gates<'_>, r: &[f32], blocks: Range<usize>, out: &mut [f32]) -> Result<()> {
        let d = self.tiles.cols;
        error::range("block", blocks.end, blocks.start, self.hidden)?;
        error::length("residual", r.len(), self.samples())?;
        error::length("gradient panel", out.len(), blocks.len() * d)?;
        for (first, out) in
            blocks.clone().step_by(self.layout.panel).zip(out.chunks_mut(self.layout.panel * d))
        {
            self.gradient_panel(gates, r, first..(first + self.layout.panel).min(blocks.end), out);
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
        self.check_support(support.len())?;
        if gates.may_be_random() {
            return provided::gradient_at(self, gates, support, r, out, scratch);
        }
        let d = self.tiles.cols;
        let groups = self.each_group(|shared, group, pieces| {
            group.product[..support.len()].fill(0.0);
            for k in pieces {
                with_values!(shared, values => {
                    let piece = shared.tiles.piece(values, shared.batch, k);
                    vectorise(shared.arch, #[inline(always)] || {
                        let mut cursor = gates.cursor();
                        for (i, run) in runs(d, support) {
                            let gate = cursor.at(i);
                            let Group { z, v, product, .. } = group;
                            mask(piece, gate, &[], &r[piece.at..][..piece.len()], z, v);
                            project_run(piece, v, i * d, support, run, product);
                        }
                    });
                });
            }
        });
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
        self.check_support(p.nnz())?;
        if gates.may_be_random() {
            return provided::normal_at(self, gates, p, out, scratch);
        }
        let groups = self.each_group(|shared, group, pieces| {
            group.product[..p.nnz()].fill(0.0);
            for k in pieces {
                with_values!(shared, values => {
                    let piece = shared.tiles.piece(values, shared.batch, k);
                    vectorise(shared.arch, #[inline(always)] || add_normal(piece, gates, p, group));
                });
            }
        });
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
        let d = self.tiles.cols;
        error::range("block", blocks.end, blocks.start, self.hidden)?;
        error::length("column norms", out.len(), blocks.len() * d)?;
        for (i, out) in blocks.zip(out.chunks_mut(d)) {
            let gate = gates.gate(i);
            gate.generator(&mut self.generators[..d]);
            let groups = self.each_group(|shared, group, pieces| {
                group.product[..d].fill(0.0);
                for k in pieces {
                    with_values!(shared, values => {
                        let piece = shared.tiles.piece(values, shared.batch, k);
                        vectorise(shared.arch, #[inline(always)] || add_norms(piece, gate, shared.generator(), group));
                    });
                }
            });
            self.reduce(groups, out);
        }
        Ok(())
    }
}

impl Blocked {
    /// The gradient of at most p blocks: one matrix product a tile.
    fn gradient_panel(&mut self, gates: Gates<'_>, r: &[f32], blocks: Range<usize>, out: &mut [f32]) {
        let d = self.tiles.cols;
        self.live.clear();
        let mut cursor = gates.cursor();
        let mut random = false;
        for i in blocks.clone() {
            let gate = cursor.at(i);
            if gate == Gate::Closed {
                continue;
            }
            if matches!(gate, Gate::Random { .. }) {
                gate.generator(&mut self.generators[self.live.len() * d..][..d]);
                random = true;
            }
            self.live.push(i as u32);
        }
        out.fill(0.0);
        if self.live.is_empty() {
            return;
        }
        let padded = self.live.len().next_multiple_of(PAD);
        let groups = self.each_group(|shared, group, pieces| {
            group.product[..padded * d].fill(0.0);
            for k in pieces {
                with_values!(shared, values => {
                    let piece = shared.tiles.piece(values, shared.batch, k);
                    add_panel(shared, piece, gates, random, r, padded, group);
                });
            }
        });
        for group in &self.groups[..groups] {
            for (slot, &i) in self.live.iter().enumerate() {
                let out = &mut out[(i as usize - blocks.start) * d..][..d];
                for (out, column) in out.iter_mut().zip(group.product.chunks(padded)) {
                    *out += column[slot];
                }
            }
        }
    }
}

/// `z` = activation that opens the gate, for every row of the piece; `false` if the gate needs none.
#[inline(always)]
fn gate_activation<T: Element>(piece: Piece<'_, T>, gate: Gate<'_>, h: &[f32], z: &mut [f32]) -> bool {
    match gate {
        Gate::Closed | Gate::Open => return false,
        Gate::Weights { block, sign } => {
            activate(piece, block, z);
            if sign < 0.0 {
                z.iter_mut().for_each(|z| *z = -*z);
            }
        }
        Gate::Random { .. } => dense(piece, h, z),
    }
    true
}

/// `z = h · x` for every row of the piece, h dense.
#[inline(always)]
fn dense<T: Element>(piece: Piece<'_, T>, h: &[f32], z: &mut [f32]) {
    z[..piece.len()].fill(0.0);
    for (j, h) in h.iter().enumerate() {
        for (z, x) in z.iter_mut().zip(piece.column(j)) {
            *z += h * x.widen();
        }
    }
}

/// `v = gate ∘ r` on the rows of the piece.
#[inline(always)]
fn mask<T: Element>(piece: Piece<'_, T>, gate: Gate<'_>, h: &[f32], r: &[f32], z: &mut [f32], v: &mut [f32]) {
    if gate_activation(piece, gate, h, z) {
        for ((v, z), r) in v.iter_mut().zip(&*z).zip(r) {
            *v = if *z > 0.0 { *r } else { 0.0 };
        }
    } else if gate == Gate::Open {
        v[..r.len()].copy_from_slice(r);
    } else {
        v[..r.len()].fill(0.0);
    }
}

/// `product[run] += v · x_j` for the inputs j that `support[run]` names in the block that starts at `base`.
#[inline(always)]
fn project_run<T: Element>(
    piece: Piece<'_, T>,
    v: &[f32],
    base: usize,
    support: &[u32],
    run: Range<usize>,
    product: &mut [f32],
) {
    for (out, &j) in product[run.clone()].iter_mut().zip(&support[run]) {
        *out += project(&v[..piece.len()], piece.column(j as usize - base));
    }
}

/// `out += A_i w_i` on the rows of the piece.
#[inline(always)]
fn add_gated<T: Element>(
    piece: Piece<'_, T>,
    gate: Gate<'_>,
    h: &[f32],
    w: Block<'_>,
    group: &mut Group,
    out: &mut [f32],
) {
    let Group { z, v, .. } = group;
    activate(piece, w, v);
    // A neuron under its own gate, the usual case: no second activation.
    if let Gate::Weights { block, sign } = gate
        && std::ptr::eq(block.values(), w.values())
    {
        for (out, v) in out.iter_mut().zip(&*v) {
            *out += if sign * *v > 0.0 { *v } else { 0.0 };
        }
    } else if gate_activation(piece, gate, h, z) {
        for ((out, z), v) in out.iter_mut().zip(&*z).zip(&*v) {
            *out += if *z > 0.0 { *v } else { 0.0 };
        }
    } else if gate == Gate::Open {
        for (out, v) in out.iter_mut().zip(&*v) {
            *out += v;
        }
    }
}

/// `product += A_i^T v` over the rows of the piece.
#[inline(always)]
fn add_block<T: Element>(piece: Piece<'_, T>, gate: Gate<'_>, h: &[f32], r: &[f32], group: &mut Group) {
    let Group { z, v, product, .. } = group;
    mask(piece, gate, h, &r[piece.at..][..piece.len()], z, v);
    for (j, out) in product[..piece.tile.len() / piece.stride].iter_mut().enumerate() {
        *out += project(&v[..piece.len()], piece.column(j));
    }
}

/// `product += |A_i e_j|²` over the rows of the piece.
#[inline(always)]
fn add_norms<T: Element>(piece: Piece<'_, T>, gate: Gate<'_>, h: &[f32], group: &mut Group) {
    let Group { z, v, product, .. } = group;
    let open = &mut v[..piece.len()];
    if gate_activation(piece, gate, h, z) {
        for (open, z) in open.iter_mut().zip(&*z) {
            *open = if *z > 0.0 { 1.0 } else { 0.0 };
        }
    } else {
        open.fill(if gate == Gate::Open { 1.0 } else { 0.0 });
    }
    for (j, out) in product[..piece.tile.len() / piece.stride].iter_mut().enumerate() {
        let squares = &mut z[..piece.len()];
        for ((square, x), open) in squares.iter_mut().zip(piece.column(j)).zip(&*open) {
            let x = open * x.widen();
            *square = x * x;
        }
        *out += squares.iter().map(|&s| f64::from(s)).sum::<f64>() as f32;
    }
}

/// `product += A_S^T A_S p` over the rows of the piece; gates of the first neurons are kept between the two halves.
#[inline(always)]
fn add_normal<T: Element>(piece: Piece<'_, T>, gates: Gates<'_>, p: Weights<'_>, group: &mut Group) {
    let len = piece.len();
    let Group { z, v, product, gated, random, .. } = group;
    let image = &mut random[..len];
    image.fill(0.0);
    let kept = gated.len() / len;
    let mut cursor = gates.cursor();
    for (slot, block) in p.blocks().enumerate() {
        activate(piece, block, v);
        let gate = cursor.at(block.neuron());
        if slot < kept {
            let open = &mut gated[slot * len..][..len];
            gate_flags(piece, gate, z, open);
            for ((image, v), open) in image.iter_mut().zip(&*v).zip(&*open) {
                *image += v * open;
            }
        } else {
            gate_flags(piece, gate, z, &mut gated[..0]);
            add_open(gate, z, &v[..len], image);
        }
    }
    let mut cursor = gates.cursor();
    for (slot, (i, run)) in runs(p.inputs(), p.index()).enumerate() {
        let gate = cursor.at(i);
        if slot < kept {
            let open = &gated[slot * len..][..len];
            for ((v, image), open) in v.iter_mut().zip(&*image).zip(open) {
                *v = image * open;
            }
        } else {
            mask(piece, gate, &[], image, z, v);
        }
        project_run(piece, v, i * p.inputs(), p.index(), run, product);
    }
}

/// Writes 1 or 0 per row to `open` (as far as it reaches), and the activation behind it to `z`.
#[inline(always)]
fn gate_flags<T: Element>(piece: Piece<'_, T>, gate: Gate<'_>, z: &mut [f32], open: &mut [f32]) {
    if gate_activation(piece, gate, &[], z) {
        for (open, z) in open.iter_mut().zip(&*z) {
            *open = if *z > 0.0 { 1.0 } else { 0.0 };
        }
    } else {
        open.fill(if gate == Gate::Open { 1.0 } else { 0.0 });
    }
}

/// `out += gate ∘ v`, with the activation of the gate in `z`.
#[inline(always)]
fn add_open(gate: Gate<'_>, z: &[f32], v: &[f32], out: &mut [f32]) {
    for ((out, z), v) in out.iter_mut().zip(z).zip(v) {
        let open = match gate {
            Gate::Closed => false,
            Gate::Open => true,
            _ => *z > 0.0,
        };
        *out += if open { *v } else { 0.0 };
    }
}

/// `product += X^T [gate ∘ r]` for the live neurons of a panel over the rows of the piece.
fn add_panel<T: Element>(
    shared: &Shared<'_>,
    piece: Piece<'_, T>,
    gates: Gates<'_>,
    random: bool,
    r: &[f32],
    padded: usize,
    group: &mut Group,
) {
    let (len, d) = (piece.len(), shared.tiles.cols);
    let Group { z, gated, random: images, product, expanded, .. } = group;
    vectorise(
        shared.arch,
        #[inline(always)]
        || widen(piece, d, expanded),
    );
    let (data, stride) = match T::as_floats(piece.tile) {
        Some(tile) => (&tile[piece.lo..], piece.stride),
        None => (&expanded[..], len),
    };
    let gated = &mut gated[..padded * len];
    if random {
        // All activations of the panel at once; whole vectors of rows by the matrix product, the rest one by one.
        let whole = len / PAD * PAD;
        let p = shared.live.len();
        gemm((whole, d, p), (images, 1, len), false, (data, 1, stride), (shared.generators, 1, d));
        for (image, h) in images.chunks_mut(len).zip(shared.generators.chunks(d)).take(p) {
            for (t, z) in image.iter_mut().enumerate().skip(whole) {
                *z = h.iter().enumerate().map(|(j, h)| h * data[j * stride + t]).sum();
            }
        }
    }
    vectorise(
        shared.arch,
        #[inline(always)]
        || {
            let r = &r[piece.at..][..len];
            let mut cursor = gates.cursor();
            for slot in 0..padded {
                let column = gated[slot..].iter_mut().step_by(padded);
                let Some(&i) = shared.live.get(slot) else {
                    column.for_each(|g| *g = 0.0);
                    continue;
                };
                let gate = cursor.at(i as usize);
                let z = match gate {
                    Gate::Random { .. } => &images[slot * len..][..len],
                    _ => {
                        gate_activation(piece, gate, &[], z);
                        &z[..len]
                    }
                };
                if gate == Gate::Open {
                    column.zip(r).for_each(|(g, r)| *g = *r);
                } else {
                    column.zip(z.iter().zip(r)).for_each(|(g, (z, r))| *g = if *z > 0.0 { *r } else { 0.0 });
                }
            }
        },
    );
    gemm((padded, len, d), (product, 1, padded), true, (gated, 1, padded), (data, 1, stride));
}

/// Writes a piece of bytes as floats, column by column; floats are used where they are.
#[inline(always)]
fn widen<T: Element>(piece: Piece<'_, T>, cols: usize, out: &mut [f32]) {
    if T::as_floats(piece.tile).is_some() {
        return;
    }
    for (j, column) in out.chunks_mut(piece.len()).take(cols).enumerate() {
        for (out, x) in column.iter_mut().zip(piece.column(j)) {
            *out = x.widen();
        }
    }
}

/// `work(index, group)` for every group, by halves in parallel.
fn fork(groups: &mut [Group], first: usize, work: &(impl Fn(usize, &mut Group) + Sync)) {
    match groups {
        [] => {}
        [group] => work(first, group),
        _ => {
            let half = groups.len() / 2;
            let (left, right) = groups.split_at_mut(half);
            rayon::join(|| fork(left, first, work), || fork(right, first + half, work));
        }
    }
}

/// As [`fork`], where group g writes the rows from `start(g)` to `start(g + 1)` of `out`.
fn fork_rows(
    groups: &mut [Group],
    first: usize,
    out: &mut [f32],
    start: &(impl Fn(usize) -> usize + Sync),
    work: &(impl Fn(usize, &mut Group, &mut [f32]) + Sync),
) {
    match groups {
        [] => {}
        [group] => work(first, group, out),
        _ => {
            let half = groups.len() / 2;
            let (left, right) = groups.split_at_mut(half);
            let (top, bottom) = out.split_at_mut(start(first + half) - start(first));
            rayon::join(
                || fork_rows(left, first, top, start, work),
                || fork_rows(right, first + half, bottom, start, work),
            );
        }
    }
}
