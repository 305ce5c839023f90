//! Which weights exist on either side: the start, growth by the streamed gradient, exact
//! thresholding of both at once.
//!
//! All measures are free of how the scale is split between the sides. With
//! `b_i = |wt_i| sqrt(fraction of the rows where neuron i is active)` and `a_i = rms(relu(z_i))`, a
//! weight counts as what it contributes, `|w_ij| c_j b_i` or `|wt_ik| a_i`, and a gradient as what
//! its weight could win, `|g_ij| / (c_j b_i)` or `|g_ik| / a_i`.

use super::{Outgoing, OutputLayer};
use crate::base::error::{Error, Result};
use crate::base::math::{norm2, sqrt};
use crate::learn::lm::fit::Fit;
use crate::learn::lm::model::{Model, OutputBuffers, Support};
use crate::learn::lm::solver::Vectors;
use crate::learn::lm::support::{Edge, add};
use crate::network::gates::Gates;
use crate::network::top::Top;
use crate::operator::factored::{Factored, GradientMut};
use crate::operator::panels::panels;
use crate::operator::sensing::head_mut;

impl<S: Factored, H: OutputLayer<S>> Model<'_, S, H> {
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
                let wt = H::mean_square(&self.fit, net.wt().block(block.neuron()), image);
                let active = image.iter().filter(|&&a| a > 0.0).count() as f32 / rows as f32;
                pair.copy_from_slice(&[sqrt(active * wt), sqrt(norm2(image) / rows as f32)]);
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
        let Self { fit, net, columns, out, .. } = self;
        let shares = &mut *out.along;
        let view = net.view();
        let gates = fit.gates(view.w());
        fit.read();
        H::active_shares(fit, shares);
        let entries = fit.entries();
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
                    g_out.iter().zip(shares.iter()).zip((i * c) as u32..).zip(base + d as u32..);
                for (((g, share), k), at) in outputs.skip(H::FREE) {
                    let size = a * sqrt(*share) * rows;
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
    pub(super) fn keep_largest(&mut self, size: usize) -> Result<(), S::Source> {
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
        for wt in view.wt().blocks() {
            while pairs.next_if(|(i, _)| *i < wt.neuron()).is_some() {}
            let size = pairs.next_if(|(i, _)| *i == wt.neuron());
            let size = size.and_then(|(_, pair)| pair.last().copied()).unwrap_or(0.0);
            let (now, later) =
                core::mem::take(&mut out).into_slice().split_at_mut(wt.values().len());
            out = later.iter_mut();
            let z = head_mut(&mut *single.z, rows)?;
            done = H::saliences(fit, view, Outgoing { wt, size }, z, now);
            if done.is_err() {
                break;
            }
        }
        *fit.solver.free() = vectors;
        done
    }

    /// Adds the first weights of W: under random gates the `count` where `|g| / c` is largest, for
    /// a mean over `terms`, `w = g / c²` on them. `along` gives the residual of each neuron, one
    /// number a row.
    pub(super) fn start_inputs(
        &mut self,
        seed: u64,
        count: usize,
        terms: f32,
        mut along: impl FnMut(&Fit<'_, S, H>, usize, &mut OutputBuffers<'_>),
    ) -> Result<(), S::Source> {
        let (d, m, rows) = (self.inputs(), self.blocks(), self.fit.rows());
        let Self { fit, net, columns, single, out, .. } = self;
        let mut vectors = core::mem::take(fit.solver.free());
        let (values, index) = vectors.spare();
        let scales = columns.scales();
        let mut top = Top::new(head_mut(index, count)?, head_mut(values, count)?);
        for i in 0..m {
            along(fit, i, out);
            let back = head_mut(out.back, rows)?;
            fit.correlate(Gates::seeded(seed), i, Some(back), single.dense)?;
            for ((g, s), at) in single.dense.iter().zip(scales).zip((i * d) as u32..) {
                if *s > 0.0 {
                    top.push(at, g / (s * terms));
                }
            }
        }
        let picked = top.finish().ok_or(Error::Diverged { step: 0 })?;
        let (flat, values) = (head_mut(index, picked)?, head_mut(values, picked)?);
        for (v, &j) in values.iter_mut().zip(&*flat) {
            *v /= scales.get(j as usize % d.max(1)).copied().unwrap_or(1.0);
        }
        net.edit_w(|w| add(w, flat, values))?;
        *fit.solver.free() = vectors;
        Ok(())
    }
}
