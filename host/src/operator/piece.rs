//! What the blocked operator does with one piece of a tile.

use super::group::{Group, Shared};
use super::kernel::{
    Columns, Element, PAD, Piece, Size, activate, add_product, pack, project, unpack,
};
use crate::base::vectorise;
use std::slice::Chunks;
use tamis::network::gates::{Gate, Gates};
use tamis::network::weights::{Block, Weights, runs};

/// Rows of one matrix product: a strip of the left factor then stays in the first cache.
pub(super) const DEPTH: usize = 128;

/// Rows of one matrix product where the data are bytes, which are made floats for it: more for wide
/// panels, whose sums are many to read and write.
pub(super) const fn bytes_depth(panel: usize) -> usize {
    match panel {
        ..32 => 32,
        DEPTH.. => DEPTH,
        depth => depth,
    }
}

/// `z` = activation that opens the gate, for every row of the piece; `false` if it needs none.
#[inline(always)]
fn gate_activation<T: Element>(
    piece: Piece<'_, T>,
    gate: Gate<'_>,
    h: &[f32],
    z: &mut [f32],
) -> bool {
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
pub(super) fn mask<T: Element>(
    piece: Piece<'_, T>,
    gate: Gate<'_>,
    h: &[f32],
    r: &[f32],
    z: &mut [f32],
    v: &mut [f32],
) {
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

/// Whether the gate of a neuron is that of its own weights.
#[inline(always)]
pub(super) fn own(gate: Gate<'_>, w: Block<'_>) -> bool {
    matches!(gate, Gate::Weights { block, .. } if block.is(&w))
}

/// `out += A_i w_i` on the rows of the piece.
#[inline(always)]
pub(super) fn add_gated<T: Element>(
    piece: Piece<'_, T>,
    gate: Gate<'_>,
    h: &[f32],
    w: Block<'_>,
    z: &mut [f32],
    v: &mut [f32],
    out: &mut [f32],
) {
    activate(piece, w, v);
    // A neuron under its own gate, the usual case: no second activation.
    if let Gate::Weights { sign, .. } = gate
        && own(gate, w)
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
pub(super) fn add_block<T: Element>(
    piece: Piece<'_, T>,
    gate: Gate<'_>,
    h: &[f32],
    r: &[f32],
    group: &mut Group,
) {
    let Group { z, v, product, .. } = group;
    mask(piece, gate, h, &r[piece.at..][..piece.len()], z, v);
    for (j, out) in product[..piece.tile.len() / piece.stride].iter_mut().enumerate() {
        *out += project(&v[..piece.len()], piece.column(j));
    }
}

/// `product += |A_i e_j|²` over the rows of the piece.
#[inline(always)]
pub(super) fn add_norms<T: Element>(
    piece: Piece<'_, T>,
    gate: Gate<'_>,
    h: &[f32],
    group: &mut Group,
) {
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

/// `product += A_S^T r` on a support over the rows of the piece, gates `held` or computed here.
#[inline(always)]
pub(super) fn add_restricted<T: Element>(
    piece: Piece<'_, T>,
    gates: Gates<'_>,
    mut held: Option<Chunks<'_, u32>>,
    inputs: usize,
    support: &[u32],
    r: &[f32],
    group: &mut Group,
) {
    let Group { z, v, product, .. } = group;
    let mut cursor = gates.cursor();
    for (i, run) in runs(inputs, support) {
        match held.as_mut().and_then(Chunks::next) {
            Some(bits) => unpack(bits, r, v),
            None => mask(piece, cursor.at(i), &[], r, z, v),
        }
        for (out, &j) in product[run.clone()].iter_mut().zip(&support[run]) {
            *out += project(&v[..piece.len()], piece.column(j as usize - i * inputs));
        }
    }
}

/// `product += diag(A_S^T A_S)` over the rows of the piece, gates `held` or computed here.
#[inline(always)]
pub(super) fn add_diagonal<T: Element>(
    piece: Piece<'_, T>,
    gates: Gates<'_>,
    mut held: Option<Chunks<'_, u32>>,
    inputs: usize,
    support: &[u32],
    group: &mut Group,
) {
    let Group { z, v, image, product, .. } = group;
    let ones = &mut image[..piece.len()];
    ones.fill(1.0);
    let mut cursor = gates.cursor();
    for (i, run) in runs(inputs, support) {
        match held.as_mut().and_then(Chunks::next) {
            Some(bits) => unpack(bits, ones, v),
            None => mask(piece, cursor.at(i), &[], ones, z, v),
        }
        for (out, &j) in product[run.clone()].iter_mut().zip(&support[run]) {
            let column = piece.column(j as usize - i * inputs);
            for (z, (x, v)) in z.iter_mut().zip(column.iter().zip(&*v)) {
                *z = v * x.widen();
            }
            *out += project(&z[..piece.len()], column);
        }
    }
}

/// `product += A_S^T A_S p` over the rows of the piece, gates `held` or computed here.
#[inline(always)]
pub(super) fn add_normal<T: Element>(
    piece: Piece<'_, T>,
    gates: Gates<'_>,
    held: Option<Chunks<'_, u32>>,
    p: Weights<'_>,
    group: &mut Group,
) {
    let mut image = std::mem::take(&mut group.image);
    let out = &mut image[..piece.len()];
    forward(piece, gates, held.clone(), p, group, out);
    add_restricted(piece, gates, held, p.inputs(), p.index(), out, group);
    group.image = image;
}

/// `out = A w` over the rows of the piece, gates `held` or computed here.
#[inline(always)]
pub(super) fn forward<T: Element>(
    piece: Piece<'_, T>,
    gates: Gates<'_>,
    held: Option<Chunks<'_, u32>>,
    w: Weights<'_>,
    group: &mut Group,
    out: &mut [f32],
) {
    out.fill(0.0);
    let Group { z, v, .. } = group;
    let Some(bits) = held else {
        let mut cursor = gates.cursor();
        for block in w.blocks() {
            add_gated(piece, cursor.at(block.neuron()), &[], block, z, v, out);
        }
        return;
    };
    let v = &mut v[..piece.len()];
    for (block, bits) in w.blocks().zip(bits) {
        activate(piece, block, v);
        unpack(bits, v, z);
        for (out, z) in out.iter_mut().zip(&*z) {
            *out += z;
        }
    }
}

/// Writes the gates of `neurons` on the rows of the piece to `bits`, one neuron after the other.
pub(super) fn hold<T: Element>(
    shared: &Shared,
    piece: Piece<'_, T>,
    gates: Gates<'_>,
    neurons: &[u32],
    bits: &mut [u32],
    group: &mut Group,
) {
    let len = piece.len();
    let random = gates.may_be_random();
    if random {
        random_activations(shared, piece, neurons.len(), group);
    }
    let mut buffer = std::mem::take(&mut group.z);
    let (z, images) = (&mut buffer, &group.random);
    vectorise(
        shared.arch,
        #[inline(always)]
        || {
            let mut cursor = gates.cursor();
            for (slot, (&i, bits)) in
                neurons.iter().zip(bits.chunks_mut(shared.held.words)).enumerate()
            {
                let gate = cursor.at(i as usize);
                if let Gate::Random { .. } = gate {
                    pack(&images[slot * len..][..len], bits);
                } else {
                    pack_gate(piece, gate, z, bits);
                }
            }
        },
    );
    group.z = buffer;
}

/// Writes a gate that is not random on the rows of the piece to `bits`; `z` has room for a number a row.
#[inline(always)]
pub(super) fn pack_gate<T: Element>(
    piece: Piece<'_, T>,
    gate: Gate<'_>,
    z: &mut [f32],
    bits: &mut [u32],
) {
    if gate_activation(piece, gate, &[], z) {
        pack(&z[..piece.len()], bits);
    } else {
        bits.fill(if gate == Gate::Open { u32::MAX } else { 0 });
    }
}

/// Activations of the first `count` of the panel's generators, neuron by neuron, in `group.random`.
fn random_activations<T: Element>(
    shared: &Shared,
    piece: Piece<'_, T>,
    count: usize,
    group: &mut Group,
) {
    let (len, d) = (piece.len(), shared.tiles.cols);
    let Group { random: images, expanded, .. } = group;
    images[..len * count].fill(0.0);
    each_strip(shared, piece, expanded, |Strip { first, rows, data }| {
        // Whole vectors of rows by the matrix product, the rest one by one.
        let whole = rows / PAD * PAD;
        let size = Size { rows: whole, depth: d, cols: count };
        let sum = Columns { values: &mut images[first..], stride: len };
        add_product(size, sum, data, Columns { values: &*shared.generators, stride: d });
        for (image, h) in images.chunks_mut(len).zip(shared.generators.chunks(d)).take(count) {
            let rest = &mut image[first..first + rows][whole..];
            for (t, z) in (whole..).zip(rest) {
                *z = h.iter().enumerate().map(|(j, h)| h * data.values[j * data.stride + t]).sum();
            }
        }
    });
}

/// Rows of a piece from `first` on, and their inputs as floats.
struct Strip<'a> {
    first: usize,
    rows: usize,
    data: Columns<&'a [f32]>,
}

/// Calls `see` for the rows of the piece, a matrix product of them at a time; bytes become floats in
/// `expanded`, as many rows as it has room for.
fn each_strip<T: Element>(
    shared: &Shared,
    piece: Piece<'_, T>,
    expanded: &mut [f32],
    mut see: impl FnMut(Strip<'_>),
) {
    let depth = match T::as_floats(piece.tile) {
        Some(_) => DEPTH,
        None => expanded.len() / shared.tiles.cols,
    };
    for first in (0..piece.len()).step_by(depth) {
        let rows = depth.min(piece.len() - first);
        let strip = piece.rows(first, rows);
        let data = match T::as_floats(strip.tile) {
            Some(tile) => Columns { values: &tile[strip.lo..], stride: strip.stride },
            None => {
                vectorise(
                    shared.arch,
                    #[inline(always)]
                    || widen(strip, expanded),
                );
                Columns { values: &*expanded, stride: rows }
            }
        };
        see(Strip { first, rows, data });
    }
}

/// `product += X^T [gate ∘ r]` for the live neurons of a panel over the rows of the piece.
pub(super) fn add_panel<T: Element>(
    shared: &Shared,
    piece: Piece<'_, T>,
    gates: Gates<'_>,
    random: bool,
    r: &[f32],
    padded: usize,
    group: &mut Group,
) {
    let len = piece.len();
    if random {
        random_activations(shared, piece, shared.live.len(), group);
    }
    let mut images = std::mem::take(&mut group.random);
    vectorise(
        shared.arch,
        #[inline(always)]
        || {
            let r = &r[piece.at..][..len];
            let mut cursor = gates.cursor();
            for (slot, image) in images[..padded * len].chunks_mut(len).enumerate() {
                match shared.live.get(slot) {
                    None => image.fill(0.0),
                    Some(&i) => gate_in_place(piece, cursor.at(i as usize), r, image),
                }
            }
        },
    );
    interleaved_product(shared, piece, &images[..padded * len], padded, group);
    group.random = images;
}

/// `product += X^T images` over the rows of the piece, one column for each neuron of a panel.
pub(super) fn interleaved_product<T: Element>(
    shared: &Shared,
    piece: Piece<'_, T>,
    images: &[f32],
    padded: usize,
    group: &mut Group,
) {
    let (len, d) = (piece.len(), shared.tiles.cols);
    let Group { gated, product, expanded, .. } = group;
    each_strip(shared, piece, expanded, |Strip { first, rows, data }| {
        let gated = &mut gated[..padded * rows];
        vectorise(
            shared.arch,
            #[inline(always)]
            || {
                for (slot, images) in (0..).step_by(PAD).zip(images.chunks(PAD * len)) {
                    let columns = Columns { values: &images[first..], stride: len };
                    interleave(columns, rows, &mut gated[slot..], padded);
                }
            },
        );
        let size = Size { rows: padded, depth: rows, cols: d };
        let left = Columns { values: &*gated, stride: padded };
        add_product(size, Columns { values: &mut **product, stride: padded }, left, data);
    });
}

/// `image = gate ∘ r`, where `image` holds the activations of a random gate already.
#[inline(always)]
fn gate_in_place<T: Element>(piece: Piece<'_, T>, gate: Gate<'_>, r: &[f32], image: &mut [f32]) {
    match gate {
        Gate::Closed => image.fill(0.0),
        Gate::Open => image.copy_from_slice(r),
        Gate::Random { .. } | Gate::Weights { .. } => {
            if !matches!(gate, Gate::Random { .. }) {
                gate_activation(piece, gate, &[], image);
            }
            for (z, r) in image.iter_mut().zip(r) {
                *z = if *z > 0.0 { *r } else { 0.0 };
            }
        }
    }
}

/// `len` numbers of each of [`PAD`] columns become the first columns of a row-major matrix with rows of
/// `width`.
#[inline(always)]
pub(super) fn interleave(columns: Columns<&[f32]>, len: usize, out: &mut [f32], width: usize) {
    let Columns { values, stride } = columns;
    let columns: [&[f32]; PAD] = std::array::from_fn(|l| &values[l * stride..][..len]);
    let whole = len / PAD * PAD;
    for t in (0..whole).step_by(PAD) {
        let tile: [[f32; PAD]; PAD] =
            std::array::from_fn(|l| std::array::from_fn(|k| columns[l][t..t + PAD][k]));
        for (k, row) in out[t * width..].chunks_mut(width).take(PAD).enumerate() {
            let row = &mut row[..PAD];
            for l in 0..PAD {
                row[l] = tile[l][k];
            }
        }
    }
    for t in whole..len {
        for (out, column) in out[t * width..][..PAD].iter_mut().zip(columns) {
            *out = column[t];
        }
    }
}

/// Writes a piece as floats, column by column.
#[inline(always)]
fn widen<T: Element>(piece: Piece<'_, T>, out: &mut [f32]) {
    let cols = piece.tile.len() / piece.stride;
    for (j, column) in out.chunks_mut(piece.len()).take(cols).enumerate() {
        for (out, x) in column.iter_mut().zip(piece.column(j)) {
            *out = x.widen();
        }
    }
}
