//! Numbers for every row and output on the rows of a piece, output by output, so that every loop runs
//! along rows.

use super::group::{Group, Shared};
use super::kernel::{Element, Piece, activate};
use super::piece::{add_gated, own};
use tamis::network::gates::Gates;
use tamis::network::net::Network;
use tamis::operator::factored::Tangent;
use tamis::operator::tables::open_words;

/// Numbers for every row and output: residuals row by row, the outputs of the network, those along
/// a direction, or their sum where bits are set.
#[derive(Clone, Copy)]
pub(super) enum Outputs<'a> {
    Network,
    Rows(&'a [f32]),
    Along(Network<'a>),
    SumAlong(Network<'a>, &'a [u32]),
}

impl Outputs<'_> {
    /// Writes those of the rows of a piece to `group.outputs`, output by output; sums only for the
    /// outputs that have weights, the others keep what they held.
    #[inline(always)]
    pub(super) fn write<T: Element>(
        self,
        shared: &Shared,
        piece: Piece<'_, T>,
        gates: Gates<'_>,
        net: Network<'_>,
        group: &mut Group,
    ) {
        let (len, c) = (piece.len(), net.outputs());
        match self {
            Outputs::Network => forward(piece, gates, net, group),
            Outputs::Rows(r) => by_output(&r[piece.at * c..][..len * c], c, &mut group.outputs),
            Outputs::Along(p) => {
                group.outputs[..c * len].fill(0.0);
                add_along(piece, gates, Tangent { net, p }, group);
            }
            Outputs::SumAlong(p, open) => {
                for &k in &shared.used {
                    group.outputs[k as usize * len..][..len].fill(0.0);
                }
                add_along(piece, gates, Tangent { net, p }, group);
                let words = open_words(c);
                let open = &open[piece.at * words..][..len * words];
                let Group { z, v, outputs, .. } = group;
                let bits = bytemuck::cast_slice_mut(v);
                sum_open(open, words, &shared.used, outputs, z, bits);
            }
        }
    }
}

/// Of the `used` outputs: puts the sum of those that are open in the place of each of these, and 0 in
/// that of the others. A row has `words` words of bits; `sum` and `bits` have room for one number a
/// row.
#[inline(always)]
fn sum_open(
    open: &[u32],
    words: usize,
    used: &[u32],
    outputs: &mut [f32],
    sum: &mut [f32],
    bits: &mut [u32],
) {
    let len = open.len() / words;
    let (sum, bits) = (&mut sum[..len], &mut bits[..len]);
    sum.fill(0.0);
    for used in used.chunk_by(|a, b| a / 32 == b / 32) {
        column_of(open, words, used[0] as usize / 32, bits);
        for &k in used {
            let column = &outputs[k as usize * len..][..len];
            for ((sum, x), word) in sum.iter_mut().zip(column).zip(&*bits) {
                *sum += f32::from_bits(x.to_bits() & ones_where(*word, k));
            }
        }
    }
    for used in used.chunk_by(|a, b| a / 32 == b / 32) {
        column_of(open, words, used[0] as usize / 32, bits);
        for &k in used {
            let column = &mut outputs[k as usize * len..][..len];
            for ((x, sum), word) in column.iter_mut().zip(&*sum).zip(&*bits) {
                *x = f32::from_bits(sum.to_bits() & ones_where(*word, k));
            }
        }
    }
}

/// All ones where bit k % 32 is set.
#[inline(always)]
fn ones_where(word: u32, k: u32) -> u32 {
    0_u32.wrapping_sub(word >> (k % 32) & 1)
}

/// `outputs = sum_i (A_i w_i) wt_i^T` on the rows of the piece, output by output.
#[inline(always)]
fn forward<T: Element>(piece: Piece<'_, T>, gates: Gates<'_>, net: Network<'_>, group: &mut Group) {
    let (len, c) = (piece.len(), net.outputs());
    let Group { z, v, image, outputs, .. } = group;
    let image = &mut image[..len];
    outputs[..c * len].fill(0.0);
    let mut cursor = gates.cursor();
    let mut wt = net.wt();
    for block in net.w().blocks() {
        let to = wt.take_block(block.neuron());
        if to.is_empty() {
            continue;
        }
        image.fill(0.0);
        add_gated(piece, cursor.at(block.neuron()), &[], block, z, v, image);
        for (k, value) in to.entries() {
            add_scaled(value, image, &mut outputs[k * len..][..len]);
        }
    }
}

/// `outputs += J p` on the rows of the piece, output by output.
#[inline(always)]
fn add_along<T: Element>(
    piece: Piece<'_, T>,
    gates: Gates<'_>,
    tangent: Tangent<'_>,
    group: &mut Group,
) {
    let Tangent { net, p } = tangent;
    let len = piece.len();
    let Group { z, v, image, back, outputs, .. } = group;
    let (activation, tangent) = (&mut image[..len], &mut back[..len]);
    let mut cursor = gates.cursor();
    let (mut wt, mut changes) = (net.wt(), p.wt());
    // One support: its blocks come in pairs.
    for (from, change) in net.w().blocks().zip(p.w().blocks()) {
        let [to, change_out] = [&mut wt, &mut changes].map(|wt| wt.take_block(from.neuron()));
        if to.is_empty() {
            continue;
        }
        let gate = cursor.at(from.neuron());
        activation.fill(0.0);
        add_gated(piece, gate, &[], from, z, v, activation);
        tangent.fill(0.0);
        if own(gate, from) {
            // Under its own gate a neuron is open where its activation is not zero.
            activate(piece, change, tangent);
            for (tangent, a) in tangent.iter_mut().zip(&*activation) {
                *tangent = if *a == 0.0 { 0.0 } else { *tangent };
            }
        } else {
            add_gated(piece, gate, &[], change, z, v, tangent);
        }
        for ((k, value), (_, change)) in to.entries().zip(change_out.entries()) {
            let out = &mut outputs[k * len..][..len];
            for ((out, t), a) in out.iter_mut().zip(&*tangent).zip(&*activation) {
                *out += value * t + change * a;
            }
        }
    }
}

#[inline(always)]
pub(super) fn add_scaled(value: f32, x: &[f32], out: &mut [f32]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out += value * x;
    }
}

/// Rows of c numbers, output by output.
#[inline(always)]
pub(super) fn by_output(rows: &[f32], c: usize, out: &mut [f32]) {
    let len = rows.len() / c;
    for (k, column) in out[..rows.len()].chunks_mut(len).enumerate() {
        column_of(rows, c, k, column);
    }
}

/// Number `k` of each row of c.
#[inline(always)]
fn column_of<T: Copy>(rows: &[T], c: usize, k: usize, out: &mut [T]) {
    for (out, value) in out.iter_mut().zip(rows[k..].iter().step_by(c)) {
        *out = *value;
    }
}
