//! Numbers for every row and output on the rows of a piece, output by output, so that every loop runs
//! along rows.

use super::group::{Group, Parts, Shared};
use super::kernel::{Element, Piece, activate};
use super::piece::{add_gated, own};
use tamis::network::gates::Gates;
use tamis::network::net::Network;
use tamis::operator::factored::Tangent;
use tamis::operator::tables::{Residual, open_words};

/// Numbers for every row and output: residuals, the outputs of the network, those along a direction, or
/// their sum where bits are set.
#[derive(Clone, Copy)]
pub(super) enum Outputs<'a> {
    Network,
    Residual(Residual<'a, [f32]>),
    Along(Network<'a>),
    SumAlong(Network<'a>, &'a [u32]),
}

impl Outputs<'_> {
    /// Writes those of the rows of a piece to `group.outputs`, output by output; sums and their residuals
    /// only for the outputs that are used, the others keep what they held.
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
            Outputs::Residual(Residual::Each(r)) => {
                by_output(&r[piece.at * c..][..len * c], c, &mut group.outputs);
            }
            Outputs::Residual(Residual::Open { r, open }) => {
                let open = Open::of(bytemuck::cast_slice(open), c, piece);
                let Group { v, outputs, .. } = group;
                let bits = bytemuck::cast_slice_mut(v);
                open.write(&r[piece.at..][..len], &shared.used, outputs, bits);
            }
            Outputs::Along(p) => {
                group.outputs[..c * len].fill(0.0);
                add_along(piece, gates, Tangent { net, p }, group);
            }
            Outputs::SumAlong(p, open) => {
                for &k in &shared.used {
                    group.outputs[k as usize * len..][..len].fill(0.0);
                }
                add_along(piece, gates, Tangent { net, p }, group);
                let open = Open::of(open, c, piece);
                let Group { z, v, outputs, .. } = group;
                let (sum, bits) = (&mut z[..len], bytemuck::cast_slice_mut(v));
                open.add_up(&shared.used, outputs, sum, bits);
                open.write(sum, &shared.used, outputs, bits);
            }
        }
    }
}

/// Which outputs are open on the rows of a piece: so many words of bits a row.
#[derive(Clone, Copy)]
struct Open<'a> {
    bits: &'a [u32],
    words: usize,
}

impl<'a> Open<'a> {
    #[inline(always)]
    fn of<T: Element>(open: &'a [u32], c: usize, piece: Piece<'_, T>) -> Self {
        let words = open_words(c);
        Self { bits: &open[piece.at * words..][..piece.len() * words], words }
    }

    /// `sum` = the sum of the `used` outputs that are open; `bits` has room for a word a row.
    #[inline(always)]
    fn add_up(self, used: &[u32], outputs: &[f32], sum: &mut [f32], bits: &mut [u32]) {
        let len = sum.len();
        sum.fill(0.0);
        for used in words_of(used) {
            column_of(self.bits, self.words, used[0] as usize / 32, &mut bits[..len]);
            for &k in used {
                let column = &outputs[k as usize * len..][..len];
                for ((sum, x), word) in sum.iter_mut().zip(column).zip(&*bits) {
                    *sum += f32::from_bits(x.to_bits() & ones_where(*word, k));
                }
            }
        }
    }

    /// Writes `r` to the `used` outputs where they are open, and 0 elsewhere.
    #[inline(always)]
    fn write(self, r: &[f32], used: &[u32], outputs: &mut [f32], bits: &mut [u32]) {
        let len = r.len();
        for used in words_of(used) {
            column_of(self.bits, self.words, used[0] as usize / 32, &mut bits[..len]);
            for &k in used {
                let column = &mut outputs[k as usize * len..][..len];
                for ((x, r), word) in column.iter_mut().zip(r).zip(&*bits) {
                    *x = f32::from_bits(r.to_bits() & ones_where(*word, k));
                }
            }
        }
    }
}

/// Outputs by the words of bits that they are in.
#[inline(always)]
fn words_of(used: &[u32]) -> impl Iterator<Item = &[u32]> {
    used.chunk_by(|a, b| a / 32 == b / 32)
}

/// Sums of outputs, one number a row, and which outputs they are of: so many words of bits a row.
pub(super) struct Sums<'a> {
    out: &'a mut [f32],
    open: &'a mut [u32],
    words: usize,
}

impl<'a> Sums<'a> {
    pub(super) fn new(out: &'a mut [f32], open: &'a mut [u32], c: usize) -> Self {
        Self { out, open, words: open_words(c) }
    }

    /// Adds up the `used` outputs of a piece, output 0 and those that are positive.
    #[inline(always)]
    pub(super) fn add_up(self, used: &[u32], group: &mut Group) {
        let (Self { out, open, words }, Group { v, outputs, .. }) = (self, group);
        let len = out.len();
        let bits: &mut [u32] = &mut bytemuck::cast_slice_mut(v)[..len];
        out.fill(0.0);
        open.fill(0);
        open.iter_mut().step_by(words).for_each(|word| *word = 1);
        for used in words_of(used) {
            bits.fill(0);
            for &k in used {
                let column = &outputs[k as usize * len..][..len];
                for ((out, z), word) in out.iter_mut().zip(column).zip(&mut *bits) {
                    let is_open = u32::from(k == 0 || *z > 0.0);
                    *word |= is_open << (k % 32);
                    *out += f32::from_bits(z.to_bits() & ones_where(is_open, 0));
                }
            }
            let words = open[used[0] as usize / 32..].iter_mut().step_by(words);
            words.zip(&*bits).for_each(|(word, bits)| *word |= bits);
        }
    }
}

impl Parts for Sums<'_> {
    fn split(self, at: usize) -> (Self, Self) {
        let Self { out, open, words } = self;
        let ((out, rest), (open, others)) = (out.split_at_mut(at), open.split_at_mut(at * words));
        (Self { out, open, words }, Self { out: rest, open: others, words })
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
fn by_output(rows: &[f32], c: usize, out: &mut [f32]) {
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
