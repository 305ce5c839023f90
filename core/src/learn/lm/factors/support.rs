//! Which weights exist on either side: the start, growth by the streamed gradient, exact
//! thresholding of both at once, and how a new neuron is formed.
//!
//! All measures are free of how the scale is split between the sides. With
//! `b_i = |wt_i| sqrt(fraction of the rows where neuron i is active)` and `a_i = rms(relu(z_i))`, a
//! weight counts as what it contributes, `|w_ij| c_j b_i` or `|wt_ik| a_i`, and a gradient as what
//! its weight could win, `|g_ij| / (c_j b_i)` or `|g_ik| / a_i`.

use super::equations::Jacobian;
use super::{OutputLayer, Weighted};
use crate::base::error::{Error, Result};
use crate::base::math::sqrt;
use crate::base::rng::{Rng, stream};
use crate::learn::lm::fit::Fit;
use crate::learn::lm::model::{Model, Support, cosine, square, square_in};
use crate::learn::lm::neuron::{
    BATCH, Candidate, Entries, FORM_STEPS, Forming, Origin, atom, rank,
};
use crate::learn::lm::solver::{Solver, Stepped, entries};
use crate::learn::lm::support::{Edge, add};
use crate::network::gates::Gates;
use crate::network::top::Top;
use crate::operator::factored::{Factored, GradientMut, provided};
use crate::operator::machine::Machine;
use crate::operator::panels::panels;
use crate::operator::sensing::{head_mut, row_head};
use crate::operator::tables::Tables;
use core::{iter::Peekable, slice::Iter};

impl<S: Factored, H: OutputLayer<S> + Weighted> Support<S> for Model<'_, S, H> {
    const RANDOM: u32 = 2;
    const GAINS: bool = true;

    fn counted(&self) -> usize {
        self.net.nnz() - self.passed()
    }

    fn loss(&mut self) -> Result<f32, S::Source> {
        self.fit.net_loss(self.net.view())
    }

    fn improve(&mut self, loss: f32, steps: u32, goal: f32) -> Result<f32, S::Source> {
        let Self { fit, solver, net, single, task, .. } = self;
        let loss = solver.improve(loss, task.steps(steps), goal, |solver, loss| {
            let mut jacobian = Jacobian::new(&mut *fit, &*net, &mut *single.z);
            let Stepped { loss, values } = solver.step(&mut jacobian, loss)?;
            net.set_values(values);
            Ok(loss)
        })?;
        self.balance();
        Ok(loss)
    }

    /// On either side of live neurons, as many as there is room for.
    fn grow(&mut self, count: usize) -> Result<(), S::Source> {
        if self.passed() > 0 {
            self.pass_through()?;
        }
        let count = count.min(self.net.room() - self.net.nnz());
        if self.net.nnz() == 0 || count == 0 {
            return Ok(());
        }
        self.weigh()?;
        let picked = self.pick(count)?;
        let (d, c) = (self.inputs(), self.fit.outputs);
        let Self { solver: Solver { rhs, g, delta, .. }, net, .. } = self;
        let picked: &[u32] = bytemuck::cast_slice(g.get(..picked).unwrap_or(&[]));
        let places = picked.iter().map(|&at| (at as usize / (d + c), at as usize % (d + c)));
        let first = places.clone().filter(|(_, e)| *e < d).map(|(i, e)| ((i * d + e) as u32, 0.0));
        let (index, zeros) = entries(rhs, delta, first);
        net.edit_w(|w| add(w, index, zeros))?;
        let second = places.filter(|(_, e)| *e >= d).map(|(i, e)| ((i * c + e - d) as u32, 0.0));
        let (index, zeros) = entries(rhs, delta, second);
        net.edit_wt(|wt| add(wt, index, zeros))
    }

    /// Of equal weights those of W and the first stay.
    fn threshold(&mut self, size: usize) -> Result<(), S::Source> {
        let (len, counted) = (self.net.nnz(), self.counted());
        let Some(drop) = counted.checked_sub(size).filter(|&drop| drop > 0) else { return Ok(()) };
        if drop == counted {
            self.net.clear();
            return Ok(());
        }
        self.weigh()?;
        self.saliences()?;
        let Self { solver, net, .. } = self;
        let (saliences, buffer) = (head_mut(solver.p, len)?, head_mut(solver.delta, len)?);
        buffer.copy_from_slice(saliences);
        let mut edge = Edge::new(buffer, drop);
        let mut saliences = saliences.iter();
        let mut keeps = |_: u32, _: f32| saliences.next().is_some_and(|&x| edge.keeps(x));
        net.edit_w(|w| w.retain(&mut keeps));
        net.edit_wt(|wt| wt.retain(&mut keeps));
        net.clear_halves();
        Ok(())
    }

    /// Neurons that share a hinge are active on the same rows, so their output weights add up.
    fn merge_two(&mut self, i: usize, j: usize, least: f32) -> Result<bool, S::Source> {
        let (net, scales) = (self.net.view(), self.columns.scales());
        if !(cosine(net.w().block(i), net.w().block(j), scales) > least) {
            return Ok(false);
        }
        let [w, v] = [i, j].map(|i| square_in(net.w().block(i), scales));
        let [wt, vt] = [i, j].map(|i| square(net.wt().block(i)));
        let (to, from, ratio) = if w * wt >= v * vt { (i, j, v / w) } else { (j, i, w / v) };
        let entries = &mut self.out.entries;
        entries.take(net.wt().block(from), to);
        entries.scale(sqrt(ratio));
        self.net.remove(from);
        self.net.edit_wt(|wt| add(wt, entries.index(), entries.value()))?;
        Ok(true)
    }

    fn atom_gain(&mut self, number: u32, _i: usize) -> Result<f32, S::Source> {
        self.single.entries.atom(number, 0, self.columns.scales());
        let before = self.fit.rows_read;
        let gain = self.answer(self.new_outputs())?;
        // One column of d.
        self.fit.rows_read = before.saturating_add((self.fit.rows() / self.inputs().max(1)) as u64);
        Ok(gain)
    }

    fn form(&mut self, origin: Origin, _i: usize) -> Result<f32, S::Source> {
        self.alternate(origin, self.new_size(), self.new_outputs())
    }

    /// Along the unit vector of its output weights the network is one of a single output.
    fn form_halves(&mut self, i: usize, seed: u64) -> Result<f32, S::Source> {
        let (rows, size) = (self.fit.rows(), self.new_size().min(self.spare_room() / 2));
        let Self { fit, net, single, columns, out, .. } = self;
        let back = row_head::<S>(out.back, rows)?;
        let (w, wt) = (net.view().w().block(i), net.view().wt().block(i));
        let norm = sqrt(square(wt));
        if !(norm > 0.0) {
            return Ok(0.0);
        }
        fit.project(wt, back);
        fit.sensing.machine().divide(back, norm);
        let of = Forming { scales: columns.scales(), neuron: i, size };
        single.split(fit, of, w, seed, Some(back))
    }

    fn add_formed(&mut self, from: usize, to: usize) -> Result<(), S::Source> {
        let Self { net, single, out, .. } = self;
        single.entries.shift(from, to);
        out.entries.shift(from, to);
        net.edit_w(|w| add(w, single.entries.index(), single.entries.value()))?;
        net.edit_wt(|wt| add(wt, out.entries.index(), out.entries.value()))
    }

    fn rank_outputs(&mut self) -> heapless::Vec<Candidate<u32>, BATCH> {
        let (m, rows) = (self.blocks(), self.fit.rows());
        let Self { fit, out, .. } = self;
        let mut outputs = heapless::Vec::new();
        let Ok(back) = row_head::<S>(out.back, rows) else { return outputs };
        for kind in 0..fit.outputs as u32 {
            out.entries.unit(kind, 1.0);
            fit.project(out.entries.view(m).block(0), back);
            let gain = fit.sensing.machine().squares(back);
            rank(&mut outputs, Candidate { gain, kind });
        }
        outputs
    }
}

impl<S: Factored, H: OutputLayer<S> + Weighted> Model<'_, S, H> {
    /// `(b_i, a_i)` of the live neurons, in order, two numbers each, in the vector `h`.
    fn weigh(&mut self) -> Result<(), S::Source> {
        let Self { fit, solver, net, single, .. } = self;
        let (net, rows) = (net.view(), fit.rows());
        for (block, pair) in net.w().blocks().zip(solver.h.chunks_exact_mut(2)) {
            let image = row_head::<S>(single.z, rows)?;
            fit.image(fit.gates(net.w()), block, image)?;
            let wt = H::mean_square(fit, net.wt().block(block.neuron()), image);
            let active = fit.sensing.machine().count_active(image, 1.0) as f32 / rows as f32;
            pair.copy_from_slice(&[sqrt(active * wt), sqrt(fit.norm2(image)? / rows as f32)]);
        }
        Ok(())
    }

    /// The `count` places of largest gradient, `i (d + c)` and the input, or d and the output, in
    /// the vector `g`, rising; how many there are.
    #[inline(never)]
    fn pick(&mut self, count: usize) -> Result<usize, S::Source> {
        let (d, c, rows) = (self.inputs(), self.fit.outputs, self.fit.terms() as f32);
        let Self { fit, solver, net, columns, out, .. } = self;
        let (shares, view, local) = (&mut *out.along, net.view(), fit.rows());
        let gates = fit.gates(view.w());
        fit.read();
        H::open_shares(fit, shares);
        let Fit { sensing, head, residual, scratch, .. } = fit;
        let residual = head.residual(residual, local, c);
        let index: &mut [u32] = bytemuck::cast_slice_mut(solver.g);
        let mut top = Top::new(head_mut(index, count)?, head_mut(solver.p, count)?);
        // Offers a place that has no weight yet.
        let mut offer = |old: &mut Peekable<Iter<'_, u32>>, j: usize, at: usize, g: f32, size| {
            while old.next_if(|&&other| (other as usize) < j).is_some() {}
            if old.next_if(|&&other| other as usize == j).is_none() && g != 0.0 && size > 0.0 {
                top.push(at as u32, g / size);
            }
        };
        let width = d + c;
        let mut pairs =
            view.w().blocks().map(|block| block.neuron()).zip(solver.h.chunks_exact(2)).peekable();
        let mut old = view.w().index().iter().peekable();
        let mut old_out = view.wt().index().iter().peekable();
        panels(*sensing, columns.panel, width, |sensing, blocks, panel| {
            panel.fill(0.0);
            let mut gradient = GradientMut::split(panel, blocks.len() * d);
            let to = gradient.reborrow();
            sensing.net_gradient(gates, view, residual, blocks.clone(), to, scratch)?;
            for ((g, g_out), i) in gradient.w.chunks(d).zip(gradient.wt.chunks(c)).zip(blocks) {
                let Some((_, pair)) = pairs.next_if(|(neuron, _)| *neuron == i) else { continue };
                let &[b, a] = pair else { continue };
                for ((j, g), s) in g.iter().enumerate().zip(&*columns.scales) {
                    offer(&mut old, i * d + j, i * width + j, *g, s * b * rows);
                }
                for ((k, g), share) in g_out.iter().enumerate().zip(&*shares).skip(H::FREE) {
                    let size = a * sqrt(*share) * rows;
                    offer(&mut old_out, i * c + k, i * width + d + k, *g, size);
                }
            }
            Ok(())
        })?;
        top.finish().ok_or(Error::Diverged { step: 0 })
    }

    /// What every weight contributes, those of W first, in the vector `p`.
    fn saliences(&mut self) -> Result<(), S::Source> {
        let Self { fit, solver: Solver { p, h, .. }, net, columns, single, .. } = self;
        let (view, rows) = (net.view(), fit.rows());
        let GradientMut { w, mut wt } =
            GradientMut::split(head_mut(p, view.nnz())?, view.w().nnz());
        let mut out = w.iter_mut();
        for (block, pair) in view.w().blocks().zip(h.chunks_exact(2)) {
            let b = pair.first().copied().unwrap_or(0.0);
            for ((j, w), out) in block.entries().zip(&mut out) {
                *out = w.abs() * columns.scales.get(j).copied().unwrap_or(0.0) * b;
            }
        }
        let pairs = view.w().blocks().map(|block| block.neuron()).zip(h.chunks_exact(2));
        let mut pairs = pairs.peekable();
        for block in view.wt().blocks() {
            while pairs.next_if(|(i, _)| *i < block.neuron()).is_some() {}
            let size = pairs.next_if(|(i, _)| *i == block.neuron());
            let size = size.and_then(|(_, pair)| pair.last().copied()).unwrap_or(0.0);
            let out = provided::take(&mut wt, block.values().len());
            H::saliences(fit, view, block, size, row_head::<S>(single.z, rows)?, out)?;
        }
        Ok(())
    }

    /// Adds the first weights of W: under random gates the `count` where `|g| / c` is largest, for
    /// a mean over `terms`, `w = g / c²` on them. `direct` gives the output weights of each neuron.
    pub(super) fn start_inputs(
        &mut self,
        seed: u64,
        count: usize,
        terms: f32,
        direct: impl Fn(usize, &mut Entries<'_>),
    ) -> Result<(), S::Source> {
        let (d, m, rows) = (self.inputs(), self.blocks(), self.fit.rows());
        let Self { fit, solver, net, columns, single, out, .. } = self;
        let scales = columns.scales();
        let (value, index) = solver.spare(count)?;
        let mut top = Top::new(&mut *index, &mut *value);
        for i in 0..m {
            direct(i, &mut out.entries);
            let back = row_head::<S>(out.back, rows)?;
            fit.project(out.entries.view(m).block(0), back);
            fit.correlate(Gates::seeded(seed), i, Some(back), single.dense)?;
            for ((g, s), at) in single.dense.iter().zip(scales).zip((i * d) as u32..) {
                if *s > 0.0 {
                    top.push(at, g / (s * terms));
                }
            }
        }
        let picked = top.finish().ok_or(Error::Diverged { step: 0 })?;
        let (index, value) = (head_mut(index, picked)?, head_mut(value, picked)?);
        for (v, &j) in value.iter_mut().zip(&*index) {
            *v /= scales.get(j as usize % d.max(1)).copied().unwrap_or(1.0);
        }
        net.edit_w(|w| add(w, index, value))
    }

    /// Forms a new neuron as neuron 0 of at most `size` and `l` weights, by alternating its sides:
    /// given w, `wt = Rᵀ a / |a|²`; given wt, `Aᵀ (R wt) / c²` under the gate of w; each truncated.
    /// Returns what it could win at once.
    #[inline(never)]
    pub(super) fn alternate(
        &mut self,
        origin: Origin,
        size: usize,
        l: usize,
    ) -> Result<f32, S::Source> {
        let (m, rows) = (self.blocks(), self.fit.rows());
        let Self { fit, single, columns, out, .. } = self;
        let scales = columns.scales();
        let of = Forming { scales, neuron: 0, size };
        match origin {
            Origin::Atom(number) => single.entries.atom(number, 0, scales),
            Origin::Random(seed) | Origin::Output(seed, _) => {
                if let Origin::Output(_, number) = origin {
                    let (output, sign) = atom(number);
                    out.entries.unit(output as u32, sign);
                } else {
                    out.entries.normal(Rng::new(seed, stream::OUTPUTS));
                }
                let back = row_head::<S>(out.back, rows)?;
                fit.project(out.entries.view(m).block(0), back);
                fit.correlate(Gates::seeded(seed), 0, Some(back), single.dense)?;
                single.entries.climb(single.dense, of);
            }
        }
        for _ in 0..FORM_STEPS {
            if !(self.answer(l)? > 0.0) {
                return Ok(0.0);
            }
            let Self { fit, single, columns, out, .. } = self;
            let back = row_head::<S>(out.back, rows)?;
            fit.project(out.entries.view(m).block(0), back);
            fit.correlate(fit.gates(single.entries.view(m)), 0, Some(back), single.dense)?;
            let of = Forming { scales: columns.scales(), neuron: 0, size };
            single.entries.climb(single.dense, of);
        }
        self.answer(l)
    }

    /// Brings the single neuron to unit activation and gives it the `l` output weights of least
    /// squares that win most; returns what they win.
    fn answer(&mut self, l: usize) -> Result<f32, S::Source> {
        let (m, rows) = (self.blocks(), self.fit.rows());
        let Self { fit, single, out, .. } = self;
        let (z, w) = (row_head::<S>(single.z, rows)?, single.entries.view(m));
        fit.image(fit.gates(w), w.block(0), z)?;
        let length = sqrt(fit.norm2(z)? / rows as f32);
        if !(length > 0.0 && length.is_finite()) {
            return Ok(0.0);
        }
        single.entries.scale(1.0 / length);
        let gain = H::choose(fit, z, length, l, out);
        Ok(if gain.is_finite() { gain } else { 0.0 })
    }

    /// Weights from the inputs of a new neuron: its share of half of s, as far as there is room.
    fn new_size(&self) -> usize {
        self.share().min(self.inputs()).min(self.spare_room() / 2)
    }

    fn new_outputs(&self) -> usize {
        let spare = self.spare_room() - self.new_size();
        H::new_outputs(self.share().min(self.fit.outputs).min(spare))
    }

    fn share(&self) -> usize {
        self.task.nnz.div_ceil(2 * self.task.hidden.max(1)).max(2)
    }

    fn spare_room(&self) -> usize {
        self.net.room().saturating_sub(self.task.work_size())
    }
}
