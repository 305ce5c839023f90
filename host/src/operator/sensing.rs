//! The core's trait on the blocked operator.

use super::group::{Group, Shared, with_piece};
use super::held::{self, Held};
use super::kernel::PAD;
use super::{Blocked, piece};
use std::convert::Infallible;
use std::ops::Range;
use tamis::base::error::{self, Result};
use tamis::network::gates::{Gate, Gates};
use tamis::network::weights::{Block, Weights, runs};
use tamis::operator::machine::Host;
use tamis::operator::sensing::{Sensing, provided};

impl Sensing for Blocked {
    type Source = Infallible;
    type Machine = Host;

    fn machine(&mut self) -> &mut Host {
        &mut self.host
    }

    fn rows(&self) -> usize {
        self.shared.tiles.rows
    }

    fn local_rows(&self) -> usize {
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

    fn always_needs_scratch(&self) -> bool {
        false
    }

    fn select(&mut self, rows: Range<usize>) -> Result<()> {
        let least = rows.start.saturating_add(1);
        error::range("rows of the batch", rows.end, least, self.shared.tiles.rows)?;
        self.shared.batch = rows;
        self.shared.held.ticket = None;
        self.gram.forget();
        Ok(())
    }

    fn apply(&mut self, gates: Gates<'_>, w: Block<'_>, out: &mut [f32]) -> Result<()> {
        error::length("apply output", out.len(), self.local_rows())?;
        self.check(gates)?;
        w.check(self.shared.tiles.cols, self.hidden)?;
        let gate = gates.gate(w.neuron());
        gate.generator(&mut self.shared.generators[..self.shared.tiles.cols]);
        self.each_row(out, |shared, group, k, out| {
            with_piece!(shared, group, k, piece => {
                let (h, Group { z, v, .. }) = (shared.generator(), &mut *group);
                piece::add_gated(piece, gate, h, w, z, v, out);
            });
        })
    }

    fn adjoint(&mut self, gates: Gates<'_>, i: usize, v: &[f32], out: &mut [f32]) -> Result<()> {
        error::range("block", i, 0, self.hidden - 1)?;
        error::length("adjoint input", v.len(), self.local_rows())?;
        let d = self.shared.tiles.cols;
        error::length("adjoint output", out.len(), d)?;
        self.check(gates)?;
        let gate = gates.gate(i);
        gate.generator(&mut self.shared.generators[..d]);
        let groups = self.each_group(d, |shared, group, k| {
            with_piece!(shared, group, k, piece => {
                piece::add_block(piece, gate, shared.generator(), v, group);
            });
        })?;
        for product in &self.products[..groups] {
            for (out, part) in out.iter_mut().zip(product) {
                *out += part;
            }
        }
        Ok(())
    }

    fn hold<'g>(&mut self, gates: Gates<'g>, support: &[u32]) -> Result<Gates<'g>> {
        self.check(gates)?;
        self.check_support(support)?;
        let (d, words, panel) = (self.shared.tiles.cols, self.shared.held.words, self.layout.panel);
        self.shared.held.ticket = None;
        self.gram.forget();
        if self.layout.marked(self.hidden, self.nnz) == 0 {
            return Ok(gates);
        }
        self.shared.held.neurons.clear();
        self.shared.held.neurons.extend(runs(d, support).map(|(i, _)| i as u32));
        if !self.shared.held.has_bits() {
            self.shared.held.ticket = held::ticket();
            return Ok(self.shared.held.ticket.map_or(gates, |ticket| gates.held(ticket)));
        }
        let (neurons, mut bits) = (
            std::mem::take(&mut self.shared.held.neurons),
            std::mem::take(&mut self.shared.held.bits),
        );
        let stride = neurons.len() * words;
        let used = self.shared.tiles.pieces(&self.shared.batch) * stride;
        let mut done = Ok(());
        for (first, neurons) in (0..).step_by(panel).zip(neurons.chunks(panel)) {
            let mut cursor = gates.cursor();
            for (&i, h) in neurons.iter().zip(self.shared.generators.chunks_mut(d)) {
                cursor.at(i as usize).generator(h);
            }
            let body = |shared: &Shared, group: &mut Group, k, bits: &mut [u32]| {
                let bits = &mut bits[first * words..][..neurons.len() * words];
                with_piece!(shared, group, k, piece => {
                    piece::hold(shared, piece, gates, neurons, bits, group);
                });
            };
            done = self.each_piece(0, &mut bits[..used], |k| k * stride, body).map(drop);
            if done.is_err() {
                break;
            }
        }
        let ticket = done.is_ok().then(held::ticket).flatten();
        self.shared.held = Held { ticket, neurons, bits, words };
        done.map(|()| ticket.map_or(gates, |ticket| gates.held(ticket)))
    }

    fn hold_where<'g>(
        &mut self,
        gates: Gates<'g>,
        support: &[u32],
        r: &[f32],
    ) -> Result<Option<Gates<'g>>> {
        error::length("residual", r.len(), self.local_rows())?;
        let gates = self.hold(gates, support)?;
        if gates.ticket().is_none() || !self.shared.held.has_bits() {
            return Ok(None);
        }
        let (count, words) = (self.shared.held.neurons.len(), self.shared.held.words);
        let mut bits = std::mem::take(&mut self.shared.held.bits);
        let stride = count * words;
        let used = self.shared.tiles.pieces(&self.shared.batch) * stride;
        let body = |shared: &Shared, group: &mut Group, k, bits: &mut [u32]| {
            with_piece!(shared, group, k, piece => {
                held::close(&r[piece.at..][..piece.len()], words, bits);
            });
        };
        let done = self.each_piece(0, &mut bits[..used], |k| k * stride, body);
        self.shared.held.bits = bits;
        done.map(|_| Some(gates))
    }

    fn forward(&mut self, gates: Gates<'_>, w: Weights<'_>, out: &mut [f32]) -> Result<()> {
        error::length("forward output", out.len(), self.local_rows())?;
        self.check(gates)?;
        w.check(self.shared.tiles.cols, self.hidden)?;
        let held = self.shared.held.fits(gates, w.blocks().map(|block| block.neuron()));
        if !held && gates.may_be_random() {
            return provided::forward(self, gates, w, out);
        }
        self.each_row(out, |shared, group, k, out| {
            let held = held.then(|| shared.held.piece(k));
            with_piece!(shared, group, k, piece => {
                piece::forward(piece, gates, held, w, group, out);
            });
        })
    }

    fn gradient(
        &mut self,
        gates: Gates<'_>,
        r: &[f32],
        blocks: Range<usize>,
        out: &mut [f32],
    ) -> Result<()> {
        let d = self.shared.tiles.cols;
        error::range("block", blocks.end, blocks.start, self.hidden)?;
        error::length("residual", r.len(), self.local_rows())?;
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
        error::length("residual", r.len(), self.local_rows())?;
        error::length("restricted gradient", out.len(), support.len())?;
        let (d, held) = (self.shared.tiles.cols, self.holds(gates, support)?);
        if !held && gates.may_be_random() {
            return provided::gradient_at(self, gates, support, r, out, scratch);
        }
        let groups = self.each_group(support.len(), |shared, group, k| {
            let held = held.then(|| shared.held.piece(k));
            with_piece!(shared, group, k, piece => {
                let r = &r[piece.at..][..piece.len()];
                piece::add_restricted(piece, gates, held, d, support, r, group);
            });
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
        p.check(self.shared.tiles.cols, self.hidden)?;
        let marked = self.marked(gates, p.index())?;
        let held = marked && self.shared.held.has_bits();
        if !held && gates.may_be_random() {
            return provided::normal_at(self, gates, p, out, scratch);
        }
        if marked && self.gram.wanted(p.index()) {
            self.gram.make(&self.shared, gates);
            if let Err(stopped) = self.go_on() {
                self.gram.forget();
                return Err(stopped);
            }
        }
        if marked && self.gram.is_of(p.index()) {
            self.gram.product(self.shared.arch, p.value(), out);
            return Ok(());
        }
        let groups = self.each_group(p.nnz(), |shared, group, k| {
            let held = held.then(|| shared.held.piece(k));
            with_piece!(shared, group, k, piece => {
                piece::add_normal(piece, gates, held, p, group);
            });
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
        let (d, held) = (self.shared.tiles.cols, self.holds(gates, support)?);
        if !held && gates.may_be_random() {
            return provided::diagonal_at(self, gates, support, out, scratch);
        }
        let groups = self.each_group(support.len(), |shared, group, k| {
            let held = held.then(|| shared.held.piece(k));
            with_piece!(shared, group, k, piece => {
                piece::add_diagonal(piece, gates, held, d, support, group);
            });
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
            let groups = self.each_group(d, |shared, group, k| {
                with_piece!(shared, group, k, piece => {
                    piece::add_norms(piece, gate, shared.generator(), group);
                });
            })?;
            self.reduce(groups, out);
        }
        Ok(())
    }
}

impl Blocked {
    /// Whether the gates of a support are held, once both are checked.
    fn holds(&self, gates: Gates<'_>, support: &[u32]) -> Result<bool> {
        Ok(self.marked(gates, support)? && self.shared.held.has_bits())
    }

    /// Whether these are the gates that [`Sensing::hold`] marked for this support, once both are checked.
    fn marked(&self, gates: Gates<'_>, support: &[u32]) -> Result<bool> {
        self.check(gates)?;
        self.check_support(support)?;
        let neurons = runs(self.shared.tiles.cols, support).map(|(i, _)| i);
        Ok(self.shared.held.are(gates, neurons))
    }

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
        let groups = self.each_group(padded * d, |shared, group, k| {
            with_piece!(shared, group, k, piece => {
                piece::add_panel(shared, piece, gates, random, r, padded, group);
            });
        })?;
        for product in &self.products[..groups] {
            for (slot, &i) in self.shared.live.iter().enumerate() {
                let out = &mut out[(i as usize - blocks.start) * d..][..d];
                for (out, column) in out.iter_mut().zip(product.chunks(padded)) {
                    *out += column[slot];
                }
            }
        }
        Ok(())
    }
}
