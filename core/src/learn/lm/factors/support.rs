//! Which weights exist on either side: the start, growth by the streamed gradient, exact
//! thresholding of both at once.
//!
//! All measures are free of how the scale is split between the sides. With
//! `b_i = |wt_i| sqrt(part of the rows where neuron i is open)` and `a_i = rms(relu(z_i))`, a
//! weight counts as what it contributes, `|w_ij| c_j b_i` or `|wt_ik| a_i`, and a gradient as what
//! its weight could win, `|g_ij| / (c_j b_i)` or `|g_ik| / a_i`.

use super::Factors;
use crate::base::error::{Error, Result};
use crate::base::math::{norm2, sqrt};
use crate::base::rng::{Rng, stream};
use crate::learn::lm::fit::Fit;
use crate::learn::lm::problem::Problem;
use crate::learn::lm::solver::Vectors;
use crate::learn::lm::support::{Edge, add};
use crate::network::gates::Gates;
use crate::network::top::Top;
use crate::operator::factored::{Factored, GradientMut};
use crate::operator::panels::panels;
use crate::operator::sensing::head_mut;

impl<S: Factored> Factors<'_, S> {
    /// `(b_i, a_i)` of the live neurons, in order, two numbers each, at the front of a vector of
    /// the solver.
    fn weigh(&mut self) -> Result<(), S::Source> {
        let rows = self.fit.rows();
        let pairs = core::mem::take(&mut self.fit.solver.free().h);
        let mut done = Ok(());
        let net = self.net.view();
        for (block, pair) in net.w().blocks().zip(pairs.chunks_exact_mut(2)) {
            let gates = self.fit.gates(net.w());
            let image = head_mut(&mut *self.single.z, rows);
            done = image.and_then(|image| {
                self.fit.image(gates, block, image)?;
                let (wt, open) = self.fit.reach(net.wt().block(block.neuron()), image);
                let open = open as f32 / rows as f32;
                pair.copy_from_slice(&[sqrt(open * wt), sqrt(norm2(image) / rows as f32)]);
                Ok(())
            });
            if done.is_err() {
                break;
            }
        }
        self.fit.solver.free().h = pairs;
        done
    }

    /// Adds up to `count` weights of value 0 to live neurons, on the side and place where the
    /// gradient is largest, as many as there is room for. The residual must be current.
    pub(super) fn add_zeros(&mut self, count: usize) -> Result<(), S::Source> {
        let count = count.min(self.net.room() - self.net.nnz());
        if self.net.nnz() == 0 || count == 0 {
            return Ok(());
        }
        self.weigh()?;
        let picked = self.pick(count)?;
        self.insert(picked)
    }

    /// The `count` places of largest gradient, as `i (d + c)` and the input, or d and the output,
    /// in a vector of the solver, rising; how many there are.
    #[inline(never)]
    fn pick(&mut self, count: usize) -> Result<usize, S::Source> {
        let (d, c, rows) = (self.inputs(), self.outputs(), self.fit.terms() as f32);
        let Self { fit, net, columns, along: parts, .. } = self;
        let view = net.view();
        let gates = fit.gates(view.w());
        fit.read();
        fit.open_parts(parts);
        let (entries, first_output) = (fit.entries(), u32::from(fit.is_summed()));
        let Fit { sensing, residual, solver, scratch, .. } = fit;
        let residual = residual.get(..entries).unwrap_or(&[]);
        let Vectors { g, p, h, .. } = solver.free();
        let index: &mut [u32] = bytemuck::cast_slice_mut(g);
        let mut top = Top::new(head_mut(&mut *index, count)?, head_mut(p, count)?);
        let (scales, panel) = columns.parts();
        let width = d + c;
        let mut pairs =
            view.w().blocks().map(|block| block.neuron()).zip(h.chunks_exact(2)).peekable();
        let mut old = view.w().index().iter().peekable();
        let mut old_out = view.wt().index().iter().peekable();
        panels(*sensing, panel, width, |sensing, blocks, panel| {
            panel.fill(0.0);
            let mut gradient = GradientMut::split(panel, blocks.len() * d);
            let to = gradient.reborrow();
            sensing.net_gradient(gates, view, residual, blocks.clone(), to, scratch)?;
            for ((g, g_out), i) in gradient.w.chunks(d).zip(gradient.wt.chunks(c)).zip(blocks) {
                let Some((_, pair)) = pairs.next_if(|(neuron, _)| *neuron == i) else { continue };
                let &[b, a] = pair else { continue };
                let base = (i * width) as u32;
                for (((g, s), j), at) in g.iter().zip(scales).zip((i * d) as u32..).zip(base..) {
                    let size = s * b * rows;
                    while old.next_if(|&&other| other < j).is_some() {}
                    if old.next_if_eq(&&j).is_none() && *g != 0.0 && size > 0.0 {
                        top.push(at, g / size);
                    }
                }
                let outputs =
                    g_out.iter().zip(parts.iter()).zip((i * c) as u32..).zip(base + d as u32..);
                // What is summed up without a gate is no weight of its own.
                for (((g, part), k), at) in outputs.skip(first_output as usize) {
                    let size = a * sqrt(*part) * rows;
                    while old_out.next_if(|&&other| other < k).is_some() {}
                    if old_out.next_if_eq(&&k).is_none() && *g != 0.0 && size > 0.0 {
                        top.push(at, g / size);
                    }
                }
            }
            Ok(())
        })?;
        top.finish().ok_or(Error::Diverged { step: 0 })
    }

    /// Adds zeros at the places that [`Self::pick`] found.
    fn insert(&mut self, picked: usize) -> Result<(), S::Source> {
        let (d, c) = (self.inputs(), self.outputs());
        let width = d + c;
        let Self { fit, net, .. } = self;
        let Vectors { rhs, g, delta, .. } = fit.solver.free();
        let picked: &[u32] = bytemuck::cast_slice(g.get(..picked).unwrap_or(&[]));
        let zeros = head_mut(delta, picked.len())?;
        zeros.fill(0.0);
        let flat: &mut [u32] = bytemuck::cast_slice_mut(rhs);
        for is_first in [true, false] {
            let mut len = 0;
            for &at in picked {
                let (i, e) = (at as usize / width, at as usize % width);
                if (e < d) == is_first
                    && let Some(to) = flat.get_mut(len)
                {
                    *to = if is_first { i * d + e } else { i * c + (e - d) } as u32;
                    len += 1;
                }
            }
            let (flat, zeros) = (flat.get(..len).unwrap_or(&[]), zeros.get(..len).unwrap_or(&[]));
            if is_first {
                net.edit_w(|w| add(w, flat, zeros))
            } else {
                net.edit_wt(|wt| add(wt, flat, zeros))
            }?;
        }
        Ok(())
    }

    /// Keeps the `size` weights that contribute most, of equal ones those of W and the first;
    /// neurons that lose one side lose the other too.
    pub(super) fn keep(&mut self, size: usize) -> Result<(), S::Source> {
        let (len, counted) = (self.net.nnz(), self.counted());
        let Some(drop) = counted.checked_sub(size).filter(|&drop| drop > 0) else { return Ok(()) };
        if drop == counted {
            self.net.clear();
            return Ok(());
        }
        self.weigh()?;
        self.saliences()?;
        let Self { fit, net, .. } = self;
        let Vectors { p, delta, .. } = fit.solver.free();
        let (saliences, buffer) = (head_mut(p, len)?, head_mut(delta, len)?);
        buffer.copy_from_slice(saliences);
        let mut edge = Edge::new(buffer, drop);
        let mut saliences = saliences.iter();
        let mut keeps = |_: u32, _: f32| saliences.next().is_some_and(|&x| edge.keeps(x));
        net.edit_w(|w| w.retain(&mut keeps));
        net.edit_wt(|wt| wt.retain(&mut keeps));
        net.clear_halves();
        Ok(())
    }

    /// What every weight contributes, those of W first, in a vector of the solver.
    fn saliences(&mut self) -> Result<(), S::Source> {
        let Self { fit, net, columns, single, .. } = self;
        let rows = fit.rows();
        let mut vectors = core::mem::take(fit.solver.free());
        let Vectors { p, h, .. } = &mut vectors;
        let saliences = head_mut(p, net.nnz())?;
        let view = net.view();
        let scales = columns.scales();
        let mut out = saliences.iter_mut();
        for (block, pair) in view.w().blocks().zip(h.chunks_exact(2)) {
            let b = pair.first().copied().unwrap_or(0.0);
            for ((j, w), out) in block.entries().zip(&mut out) {
                *out = w.abs() * scales.get(j).copied().unwrap_or(0.0) * b;
            }
        }
        let pairs = view.w().blocks().map(|block| block.neuron()).zip(h.chunks_exact(2));
        let mut pairs = pairs.peekable();
        let mut done = Ok(());
        for block in view.wt().blocks() {
            while pairs.next_if(|(i, _)| *i < block.neuron()).is_some() {}
            let a = pairs.next_if(|(i, _)| *i == block.neuron());
            let a = a.and_then(|(_, pair)| pair.last().copied()).unwrap_or(0.0);
            if !fit.is_summed() {
                for (v, out) in block.values().iter().zip(&mut out) {
                    *out = v.abs() * a;
                }
                continue;
            }
            let gates = fit.gates(view.w());
            let image = head_mut(&mut *single.z, rows)?;
            done = fit.image(gates, view.w().block(block.neuron()), image);
            if done.is_err() {
                break;
            }
            let (now, rest) =
                core::mem::take(&mut out).into_slice().split_at_mut(block.values().len());
            out = rest.iter_mut();
            fit.norms_at(image, block, &mut now.iter_mut());
            for ((k, v), out) in block.entries().zip(now) {
                // What is summed up without a gate stays, and does not count.
                *out = if k == 0 { f32::INFINITY } else { v.abs() * sqrt(*out / rows as f32) };
            }
        }
        *fit.solver.free() = vectors;
        done
    }

    /// The first weights: under random gates and for random output weights, half of s where
    /// `|g| / c` is largest, `w = g / c²` on them; then for these neurons the other half where
    /// output weights win most, of the least squares of each; one scale for all.
    pub(super) fn first_weights(&mut self, seed: u64) -> Result<(), S::Source> {
        self.net.clear();
        self.loss()?;
        let half = self.task.nnz / 2;
        let (d, c, m) = (self.inputs(), self.outputs(), self.blocks());
        let (rows, terms) = (self.fit.rows(), self.fit.terms() as f32);
        let Self { fit, net, columns, single, along, back, .. } = self;
        let mut vectors = core::mem::take(fit.solver.free());
        let Vectors { g, p, h, .. } = &mut vectors;
        let index: &mut [u32] = bytemuck::cast_slice_mut(g);
        let scales = columns.scales();
        let mut top = Top::new(head_mut(&mut *index, half)?, head_mut(p, half)?);
        let (z, back) = (head_mut(&mut *single.z, rows)?, head_mut(back, rows)?);
        for i in 0..m {
            Rng::new(seed, stream::OUTPUTS + i as u64).fill_normal(along);
            fit.project(along, back);
            fit.correlate(Gates::seeded(seed), i, Some(back), single.dense)?;
            for ((g, s), at) in single.dense.iter().zip(scales).zip((i * d) as u32..) {
                if *s > 0.0 {
                    top.push(at, g / (s * terms));
                }
            }
        }
        let picked = top.finish().ok_or(Error::Diverged { step: 0 })?;
        let (flat, values) = (head_mut(&mut *index, picked)?, head_mut(p, picked)?);
        for (v, &j) in values.iter_mut().zip(&*flat) {
            *v /= scales.get(j as usize % d.max(1)).copied().unwrap_or(1.0);
        }
        net.edit_w(|w| add(w, flat, values))?;
        let mut top = Top::new(head_mut(&mut *index, half)?, head_mut(p, half)?);
        let view = net.view();
        for (block, norm) in view.w().blocks().zip(h.iter_mut()) {
            let gates = fit.gates(view.w());
            fit.image(gates, block, z)?;
            *norm = sqrt(norm2(z));
            fit.transpose(z, along);
            for (g, at) in along.iter().zip((block.neuron() * c) as u32..) {
                if *norm > 0.0 {
                    top.push(at, g / *norm);
                }
            }
        }
        let picked = top.finish().ok_or(Error::Diverged { step: 0 })?;
        let (flat, values) = (head_mut(&mut *index, picked)?, head_mut(p, picked)?);
        for (v, &k) in values.iter_mut().zip(&*flat) {
            let neuron = k as usize / c.max(1);
            let norm = view.w().blocks().zip(&**h).find(|(block, _)| block.neuron() == neuron);
            *v /= norm.map_or(1.0, |(_, norm)| *norm);
        }
        net.edit_wt(|wt| add(wt, flat, values))?;
        *fit.solver.free() = vectors;
        self.net.clear_halves();
        self.loss()?;
        let factor = self.fit.factor()?;
        if factor.is_finite() && factor > 0.0 {
            self.net.values().1.iter_mut().for_each(|wt| *wt *= factor);
        }
        self.balance();
        Ok(())
    }
}

impl<S: Factored> Fit<'_, S> {
    /// `out = R v`, one number a row, for one number per output.
    pub(super) fn project(&self, v: &[f32], out: &mut [f32]) {
        for (out, r) in out.iter_mut().zip(self.residual().chunks(self.outputs().max(1))) {
            *out = r.iter().zip(v).map(|(r, v)| r * v).sum();
        }
    }

    /// `out = Rᵀ a`, one number per output, for one number a row.
    pub(super) fn transpose(&self, a: &[f32], out: &mut [f32]) {
        out.fill(0.0);
        for (a, r) in a.iter().zip(self.residual().chunks(self.outputs().max(1))) {
            if *a != 0.0 {
                out.iter_mut().zip(r).for_each(|(out, r)| *out += a * r);
            }
        }
    }
}
