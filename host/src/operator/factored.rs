//! Networks with several outputs on the blocked operator.
//!
//! Within a piece, outputs and residuals lie output by output ([`super::outputs`]). The full
//! gradient of W is that of [`super::piece`], with `gate ∘ (R wt_i)` for `gate ∘ r`.

use super::Blocked;
use super::group::{Group, Shared, with_piece};
use super::kernel::{Element, PAD, Piece, project};
use super::outputs::{Outputs, Sums, add_scaled};
use super::piece::{add_gated, interleaved_product, mask, own};
use super::tiles::start;
use crate::base::vectorise;
use std::ops::Range;
use tamis::base::error::{self, Result};
use tamis::network::gates::{Gate, Gates};
use tamis::network::net::Network;
use tamis::network::weights::Block;
use tamis::operator::factored::{Factored, GradientMut, Tangent, provided};
use tamis::operator::machine::Host;
use tamis::operator::tables::Residual;

impl Blocked {
    fn check_net(&self, gates: Gates<'_>, net: Network<'_>) -> Result<()> {
        self.check(gates)?;
        net.check(self.shared.tiles.cols, self.hidden)?;
        error::range("outputs", net.outputs(), 1, self.outputs)?;
        error::range("nonzeros", net.nnz(), 0, self.nnz)
    }

    fn check_residual(&self, net: Network<'_>, r: Residual<'_, [f32]>) -> Result<()> {
        provided::check_residual::<Host>(r, self.shared.batch.len(), net.outputs())
    }

    /// Lists the outputs that the network has weights to, in order.
    fn list_used(&mut self, net: Network<'_>) {
        let used = &mut self.shared.used;
        used.clear();
        for (k, _) in net.wt().blocks().flat_map(|to| to.entries()) {
            if let Err(at) = used.binary_search(&(k as u32)) {
                used.insert(at, k as u32);
            }
        }
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
                of.write(shared, piece, gates, net, group);
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
        r: Residual<'_, [f32]>,
        blocks: Range<usize>,
        dw: &mut [f32],
        dwt: &mut [f32],
    ) -> Result<()> {
        self.go_on()?;
        let (d, c) = (self.shared.tiles.cols, net.outputs());
        self.shared.used.clear();
        self.shared.used.extend(0..c as u32);
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
        for product in &self.products[..groups] {
            let (columns, outputs) = product[..padded * (d + c)].split_at(padded * d);
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
        if let Outputs::SumAlong(..) | Outputs::Residual(Residual::Open { .. }) = residual {
            self.list_used(net);
        }
        let groups = self.each_group(net.nnz(), |shared, group, k| {
            with_piece!(shared, group, k, piece => {
                residual.write(shared, piece, gates, net, group);
                add_restricted(piece, gates, net, group);
            });
        })?;
        w.fill(0.0);
        wt.fill(0.0);
        for product in &self.products[..groups] {
            for (out, part) in w.iter_mut().chain(&mut *wt).zip(product) {
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
        self.check_residual(net, Residual::Each(out))?;
        self.by_row(gates, net, Outputs::Network, out)
    }

    fn net_sum_forward(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        open: &mut [f32],
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<()> {
        self.check_net(gates, net)?;
        if gates.may_be_random() {
            return provided::sum_forward(self, gates, net, open, out, scratch);
        }
        let c = provided::check_sum(self, net, open, out)?;
        self.list_used(net);
        let (tile, batch) = (self.shared.tiles.tile, self.shared.batch.clone());
        let out = Sums::new(out, bytemuck::cast_slice_mut(open), c);
        self.each_piece(
            0,
            out,
            |k| start(tile, &batch, k),
            |shared, group, k, out| {
                with_piece!(shared, group, k, piece => {
                    Outputs::Network.write(shared, piece, gates, net, group);
                    out.add_up(&shared.used, group);
                });
            },
        )
        .map(drop)
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
        self.check_residual(tangent.net, Residual::Each(out))?;
        provided::check_tangent(tangent)?;
        self.by_row(gates, tangent.net, Outputs::Along(tangent.p), out)
    }

    fn net_gradient(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        r: Residual<'_, [f32]>,
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
        r: Residual<'_, [f32]>,
        out: GradientMut<'_>,
        scratch: &mut [f32],
    ) -> Result<()> {
        self.check_net(gates, net)?;
        if gates.may_be_random() {
            return provided::gradient_at(self, gates, net, r, out, scratch);
        }
        self.check_residual(net, r)?;
        self.restricted(gates, net, Outputs::Residual(r), out)
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
        self.check_residual(tangent.net, Residual::Each(image))?;
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
        provided::check_sum(self, net, open, image)?;
        provided::check_tangent(tangent)?;
        self.restricted(gates, net, Outputs::SumAlong(tangent.p, bytemuck::cast_slice(open)), out)
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
    let (mut wt, mut at) = (net.wt(), 0);
    for from in net.w().blocks() {
        let to = wt.take_block(from.neuron());
        if !to.is_empty() {
            let out = net.nnz() - wt.nnz();
            activations(piece, cursor.at(from.neuron()), from, to, group);
            let Group { v, product, image, outputs, .. } = &mut *group;
            for ((j, _), product) in from.entries().zip(&mut product[at..]) {
                *product += project(&v[..len], piece.column(j));
            }
            for ((k, _), product) in to.entries().zip(&mut product[out..]) {
                *product += project(&outputs[k * len..][..len], &image[..len]);
            }
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
    r: Residual<'_, [f32]>,
    padded: usize,
    group: &mut Group,
) {
    let (len, d, c) = (piece.len(), shared.tiles.cols, net.outputs());
    let mut images = std::mem::take(&mut group.random);
    vectorise(
        shared.arch,
        #[inline(always)]
        || {
            Outputs::Residual(r).write(shared, piece, gates, net, group);
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
