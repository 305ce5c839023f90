//! Networks with several outputs on the blocked operator.
//!
//! Within a piece, outputs and residuals lie output by output, so that every loop runs along rows.
//! The full gradient of W is that of [`super::piece`], with `gate ∘ (R wt_i)` for `gate ∘ r`.

use super::Blocked;
use super::group::{Group, Shared, with_piece};
use super::kernel::{Element, PAD, Piece, activate, project};
use super::piece::{add_gated, interleaved_product, mask, own, widen};
use super::tiles::start;
use crate::base::vectorise;
use std::ops::Range;
use tamis::base::error::{self, Result};
use tamis::network::gates::{Gate, Gates};
use tamis::network::net::Network;
use tamis::network::weights::Block;
use tamis::operator::factored::{Factored, GradientMut, Tangent, provided};
use tamis::operator::tables::open_words;

impl Blocked {
    fn check_net(&self, gates: Gates<'_>, net: Network<'_>) -> Result<()> {
        self.check(gates)?;
        net.check(self.shared.tiles.cols, self.hidden)?;
        error::range("outputs", net.outputs(), 1, self.outputs)?;
        error::range("nonzeros", net.nnz(), 0, self.nnz)
    }

    fn check_residual(&self, net: Network<'_>, r: &[f32]) -> Result<()> {
        error::length("residual", r.len(), self.shared.batch.len().saturating_mul(net.outputs()))
    }

    fn by_row(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        of: Outputs<'_>,
        out: &mut [f32],
    ) -> Result<()> {
        let (c, tile, batch) = (net.outputs(), self.shared.tiles.tile, self.shared.batch.clone());
        let begin = |k| c * start(tile, &batch, k);
        self.each_piece(0, out, begin, |shared, group, k, out| {
            with_piece!(shared, group, k, piece => {
                of.write(piece, gates, net, group);
                for (k, column) in group.outputs[..out.len()].chunks(piece.len()).enumerate() {
                    for (out, value) in out[k..].iter_mut().step_by(c).zip(column) {
                        *out = *value;
                    }
                }
            });
        })
        .map(drop)
    }

    /// The gradient of at most p blocks.
    fn net_panel(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        r: &[f32],
        blocks: Range<usize>,
        dw: &mut [f32],
        dwt: &mut [f32],
    ) -> Result<()> {
        self.go_on()?;
        let (d, c) = (self.shared.tiles.cols, net.outputs());
        let mut cursor = gates.cursor();
        self.shared.live.clear();
        let open = blocks.clone().filter(|&i| cursor.at(i) != Gate::Closed).map(|i| i as u32);
        self.shared.live.extend(open);
        if self.shared.live.is_empty() {
            return Ok(());
        }
        let padded = self.shared.live.len().next_multiple_of(PAD);
        let groups = self.each_group(padded * (d + c), |shared, group, k| {
            with_piece!(shared, group, k, piece => {
                add_panel(shared, piece, gates, net, r, padded, group);
            });
        })?;
        for group in &self.groups[..groups] {
            let (columns, outputs) = group.product[..padded * (d + c)].split_at(padded * d);
            for (slot, &i) in self.shared.live.iter().enumerate() {
                let at = i as usize - blocks.start;
                for (out, column) in dw[at * d..][..d].iter_mut().zip(columns.chunks(padded)) {
                    *out += column[slot];
                }
                for (out, part) in dwt[at * c..][..c].iter_mut().zip(&outputs[slot * c..]) {
                    *out += part;
                }
            }
        }
        Ok(())
    }

    /// The gradient on the support.
    fn restricted(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        residual: Outputs<'_>,
        out: GradientMut<'_>,
    ) -> Result<()> {
        out.check_support(net)?;
        let GradientMut { w, wt } = out;
        let groups = self.each_group(net.nnz(), |shared, group, k| {
            with_piece!(shared, group, k, piece => {
                residual.write(piece, gates, net, group);
                add_restricted(piece, gates, net, group);
            });
        })?;
        w.fill(0.0);
        wt.fill(0.0);
        for group in &self.groups[..groups] {
            for (out, part) in w.iter_mut().chain(&mut *wt).zip(&group.product) {
                *out += part;
            }
        }
        Ok(())
    }
}

impl Factored for Blocked {
    fn net_forward(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<()> {
        self.check_net(gates, net)?;
        if gates.may_be_random() {
            return provided::forward(self, gates, net, out, scratch);
        }
        self.check_residual(net, out)?;
        self.by_row(gates, net, Outputs::Network, out)
    }

    fn net_along(
        &mut self,
        gates: Gates<'_>,
        tangent: Tangent<'_>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<()> {
        self.check_net(gates, tangent.net)?;
        if gates.may_be_random() {
            return provided::along(self, gates, tangent, out, scratch);
        }
        self.check_residual(tangent.net, out)?;
        provided::check_tangent(tangent)?;
        self.by_row(gates, tangent.net, Outputs::Along(tangent.p), out)
    }

    fn net_gradient(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        r: &[f32],
        blocks: Range<usize>,
        out: GradientMut<'_>,
        scratch: &mut [f32],
    ) -> Result<()> {
        self.check_net(gates, net)?;
        if gates.may_be_random() {
            return provided::gradient(self, gates, net, r, blocks, out, scratch);
        }
        self.check_residual(net, r)?;
        out.check_panel(net, &blocks)?;
        let GradientMut { w: dw, wt: dwt } = out;
        let (d, c, p) = (self.shared.tiles.cols, net.outputs(), self.layout.panel);
        let panels = dw.chunks_mut(p * d).zip(dwt.chunks_mut(p * c));
        for (first, (dw, dwt)) in blocks.clone().step_by(p).zip(panels) {
            self.net_panel(gates, net, r, first..(first + p).min(blocks.end), dw, dwt)?;
        }
        Ok(())
    }

    fn net_gradient_at(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        r: &[f32],
        out: GradientMut<'_>,
        scratch: &mut [f32],
    ) -> Result<()> {
        self.check_net(gates, net)?;
        if gates.may_be_random() {
            return provided::gradient_at(self, gates, net, r, out, scratch);
        }
        self.check_residual(net, r)?;
        self.restricted(gates, net, Outputs::Rows(r), out)
    }

    fn net_normal_at(
        &mut self,
        gates: Gates<'_>,
        tangent: Tangent<'_>,
        out: GradientMut<'_>,
        image: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<()> {
        self.check_net(gates, tangent.net)?;
        if gates.may_be_random() {
            return provided::normal_at(self, gates, tangent, out, image, scratch);
        }
        self.check_residual(tangent.net, image)?;
        provided::check_tangent(tangent)?;
        self.restricted(gates, tangent.net, Outputs::Along(tangent.p), out)
    }

    fn net_sum_normal_at(
        &mut self,
        gates: Gates<'_>,
        tangent: Tangent<'_>,
        open: &[f32],
        out: GradientMut<'_>,
        image: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<()> {
        let net = tangent.net;
        self.check_net(gates, net)?;
        if gates.may_be_random() {
            return provided::sum_normal_at(self, gates, tangent, open, out, image, scratch);
        }
        provided::check_open(self.shared.batch.len(), net.outputs(), open.len())?;
        provided::check_tangent(tangent)?;
        self.restricted(gates, net, Outputs::SumAlong(tangent.p, bytemuck::cast_slice(open)), out)
    }
}

/// Numbers for every row and output: residuals row by row, the outputs of the network, those along
/// a direction, or their sum where bits are set.
#[derive(Clone, Copy)]
enum Outputs<'a> {
    Network,
    Rows(&'a [f32]),
    Along(Network<'a>),
    SumAlong(Network<'a>, &'a [u32]),
}

impl Outputs<'_> {
    /// Writes those of the rows of a piece to `group.outputs`, output by output.
    #[inline(always)]
    fn write<T: Element>(
        self,
        piece: Piece<'_, T>,
        gates: Gates<'_>,
        net: Network<'_>,
        group: &mut Group,
    ) {
        let (len, c) = (piece.len(), net.outputs());
        match self {
            Outputs::Network => forward(piece, gates, net, group),
            Outputs::Rows(r) => by_output(&r[piece.at * c..][..len * c], c, &mut group.outputs),
            Outputs::Along(p) => along(piece, gates, Tangent { net, p }, group),
            Outputs::SumAlong(p, open) => {
                along(piece, gates, Tangent { net, p }, group);
                let words = open_words(c);
                let open = &open[piece.at * words..][..len * words];
                sum_open(open, words, &mut group.outputs[..c * len], &mut group.z);
            }
        }
    }
}

/// Puts the sum of the outputs that are open in the place of each of them, and 0 in that of the
/// others; `words` words of bits belong to a row, and `sum` has room for a number a row.
#[inline(always)]
fn sum_open(open: &[u32], words: usize, outputs: &mut [f32], sum: &mut [f32]) {
    let len = open.len() / words;
    let sum = &mut sum[..len];
    sum.fill(0.0);
    // All ones for a row where output k is active.
    let masks = |k: usize| {
        let words = open[k / 32..].iter().step_by(words);
        words.map(move |word| 0_u32.wrapping_sub(word >> (k % 32) & 1))
    };
    for (k, column) in outputs.chunks(len).enumerate() {
        for ((sum, x), mask) in sum.iter_mut().zip(column).zip(masks(k)) {
            *sum += f32::from_bits(x.to_bits() & mask);
        }
    }
    for (k, column) in outputs.chunks_mut(len).enumerate() {
        for ((x, sum), mask) in column.iter_mut().zip(&*sum).zip(masks(k)) {
            *x = f32::from_bits(sum.to_bits() & mask);
        }
    }
}

/// `outputs = sum_i (A_i w_i) wt_i^T` on the rows of the piece, output by output.
#[inline(always)]
fn forward<T: Element>(piece: Piece<'_, T>, gates: Gates<'_>, net: Network<'_>, group: &mut Group) {
    let (len, c) = (piece.len(), net.outputs());
    let Group { z, v, image, outputs, .. } = group;
    let image = &mut image[..len];
    outputs[..c * len].fill(0.0);
    let mut cursor = gates.cursor();
    for block in net.w().blocks() {
        let to = net.wt().block(block.neuron());
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

/// `outputs = J p` on the rows of the piece, output by output.
#[inline(always)]
fn along<T: Element>(
    piece: Piece<'_, T>,
    gates: Gates<'_>,
    tangent: Tangent<'_>,
    group: &mut Group,
) {
    let Tangent { net, p } = tangent;
    let (len, c) = (piece.len(), net.outputs());
    let Group { z, v, image, back, outputs, .. } = group;
    outputs[..c * len].fill(0.0);
    let (activation, tangent) = (&mut image[..len], &mut back[..len]);
    let mut cursor = gates.cursor();
    // One support: its blocks come in pairs.
    for (from, change) in net.w().blocks().zip(p.w().blocks()) {
        let [to, change_out] = [net, p].map(|net| net.wt().block(from.neuron()));
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
fn add_scaled(value: f32, x: &[f32], out: &mut [f32]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out += value * x;
    }
}

/// The restricted gradient of both sides over the rows of the piece, that of W first.
#[inline(always)]
fn add_restricted<T: Element>(
    piece: Piece<'_, T>,
    gates: Gates<'_>,
    net: Network<'_>,
    group: &mut Group,
) {
    let len = piece.len();
    let mut cursor = gates.cursor();
    let mut wt = net.wt().blocks().peekable();
    let (mut at, mut out) = (0, net.w().nnz());
    for from in net.w().blocks() {
        // What stands before the next block of Wt belongs to neurons without inputs.
        while let Some(skipped) = wt.next_if(|to| to.neuron() < from.neuron()) {
            out += skipped.values().len();
        }
        if let Some(to) = wt.next_if(|to| to.neuron() == from.neuron()) {
            activations(piece, cursor.at(from.neuron()), from, to, group);
            let Group { v, product, image, outputs, .. } = &mut *group;
            for ((j, _), product) in from.entries().zip(&mut product[at..]) {
                *product += project(&v[..len], piece.column(j));
            }
            for ((k, _), product) in to.entries().zip(&mut product[out..]) {
                *product += project(&outputs[k * len..][..len], &image[..len]);
            }
            out += to.values().len();
        }
        at += from.values().len();
    }
}

/// `group.image = A_i w_i` and `group.v = gate ∘ (R wt_i)` on the rows of the piece, the residual R
/// in `group.outputs`.
#[inline(always)]
fn activations<T: Element>(
    piece: Piece<'_, T>,
    gate: Gate<'_>,
    from: Block<'_>,
    to: Block<'_>,
    group: &mut Group,
) {
    let len = piece.len();
    let Group { z, v, image, back, outputs, .. } = group;
    let (image, back) = (&mut image[..len], &mut back[..len]);
    image.fill(0.0);
    add_gated(piece, gate, &[], from, z, v, image);
    back.fill(0.0);
    for (k, value) in to.entries() {
        add_scaled(value, &outputs[k * len..][..len], back);
    }
    if own(gate, from) {
        // Under its own gate a neuron is open where its activation is not zero.
        for ((v, a), back) in v.iter_mut().zip(&*image).zip(&*back) {
            *v = if *a == 0.0 { 0.0 } else { *back };
        }
    } else {
        mask(piece, gate, &[], back, z, v);
    }
}

/// The full gradient of the live neurons of a panel over the rows of the piece.
fn add_panel<T: Element>(
    shared: &Shared,
    piece: Piece<'_, T>,
    gates: Gates<'_>,
    net: Network<'_>,
    r: &[f32],
    padded: usize,
    group: &mut Group,
) {
    let (len, d, c) = (piece.len(), shared.tiles.cols, net.outputs());
    let mut images = std::mem::take(&mut group.random);
    vectorise(
        shared.arch,
        #[inline(always)]
        || {
            widen(piece, d, &mut group.expanded);
            by_output(&r[piece.at * c..][..len * c], c, &mut group.outputs);
            images[..padded * len].fill(0.0);
            let mut cursor = gates.cursor();
            for (slot, &i) in shared.live.iter().enumerate() {
                let i = i as usize;
                let (from, to) = (net.w().block(i), net.wt().block(i));
                activations(piece, cursor.at(i), from, to, group);
                let Group { v, product, image, outputs, .. } = &mut *group;
                images[slot * len..][..len].copy_from_slice(&v[..len]);
                let products = &mut product[padded * d + slot * c..][..c];
                for (product, r) in products.iter_mut().zip(outputs.chunks(len)) {
                    *product += project(r, &image[..len]);
                }
            }
        },
    );
    interleaved_product(shared, piece, &images[..padded * len], padded, group);
    group.random = images;
}

/// Rows of c numbers, output by output.
#[inline(always)]
fn by_output(rows: &[f32], c: usize, out: &mut [f32]) {
    let len = rows.len() / c;
    for (k, column) in out[..rows.len()].chunks_mut(len).enumerate() {
        for (out, value) in column.iter_mut().zip(rows[k..].iter().step_by(c)) {
            *out = *value;
        }
    }
}
