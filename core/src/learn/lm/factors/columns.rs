//! The neurons of a second layer, each a column of the output weights, and those that are merged.
//!
//! While searching, output 0 is a linear function of the first layer's activations, `z_0 = l · a`,
//! whose weights do not count in s. With it a neuron of the second layer may have either sign at no
//! cost, since `relu(u) = u + relu(-u)`, and neurons whose weights are all positive, which are
//! linear, need no place of their own. At the end [`super::fold`] does away with it.

use super::SecondLayer;
use crate::base::error::Result;
use crate::base::math::sqrt;
use crate::learn::lm::model::{Model, square_in};
use crate::learn::lm::support::add;
use crate::operator::factored::Factored;
use crate::operator::sensing::head_mut;

impl<S: Factored> Model<'_, S, SecondLayer<'_>> {
    /// Weights of output k.
    pub(super) fn fan_in(&self, k: usize) -> usize {
        self.net.view().wt().blocks().flat_map(|wt| wt.entries()).filter(|(j, _)| *j == k).count()
    }

    /// Neurons of the second layer that have weights, but output 0.
    pub(super) fn live_outputs(&self) -> usize {
        (1..self.outputs()).filter(|&k| self.fan_in(k) > 0).count()
    }

    /// The first neuron of the second layer without weights.
    fn vacant_output(&self) -> Option<usize> {
        (1..self.outputs()).find(|&k| self.fan_in(k) == 0)
    }

    /// The neuron of the second layer that contributes least.
    pub(super) fn weakest_output(&self) -> Option<usize> {
        let net = self.net.view();
        let strength = |k: usize| {
            let of = |i: usize| {
                let v = net.wt().block(i).entries().find(|(j, _)| *j == k).map_or(0.0, |(_, v)| v);
                v * v * square_in(net.w().block(i), self.columns.scales())
            };
            net.wt().blocks().map(|wt| of(wt.neuron())).sum::<f32>()
        };
        let live = (1..self.outputs()).filter(|&k| self.fan_in(k) > 0).map(|k| (strength(k), k));
        live.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, k)| k)
    }

    /// A neuron of the second layer without weights, the weakest one being emptied if there is
    /// none.
    pub(super) fn vacate_output(&mut self) -> Option<usize> {
        self.vacant_output().or_else(|| {
            let weakest = self.weakest_output()?;
            self.remove_output(weakest);
            Some(weakest)
        })
    }

    /// Removes the weights of output k.
    pub(super) fn remove_output(&mut self, k: usize) {
        let c = self.outputs().max(1);
        self.net.edit_wt(|wt| wt.retain(|at, _| at as usize % c != k));
    }

    /// Makes one of neurons of the second layer that are equivalent: those that are linear go into
    /// output 0 where there is that, and else into one of them, those that are never active vanish,
    /// and those that are parallel add up. Returns how many vanished.
    pub(super) fn merge_outputs(&mut self, least: f32) -> Result<u32, S::Source> {
        let mut merged = 0;
        let mut linear = if self.passed() > 0 { Some(0) } else { None };
        for k in 1..self.outputs() {
            let (up, down) = self.column_signs(k);
            if up + down == 0 {
                continue;
            }
            if up == 0 {
                self.remove_output(k);
                merged += 1;
            } else if down == 0 {
                match linear {
                    Some(to) if self.add_column(k, to, 1.0)? => {
                        self.remove_output(k);
                        merged += 1;
                    }
                    Some(_) => {}
                    None => linear = Some(k),
                }
            }
        }
        for k in 1..self.outputs() {
            for l in k + 1..self.outputs() {
                let Some((cosine, ratio)) = self.compare_columns(k, l) else { continue };
                if cosine > least {
                    self.scale_column(k, 1.0 + ratio);
                } else if -cosine > least && self.passed() > 0 && self.add_column(k, 0, -ratio)? {
                    // relu(u) + r relu(-u) = (1 + r) relu(u) - r u.
                    self.scale_column(k, 1.0 + ratio);
                } else {
                    continue;
                }
                self.remove_output(l);
                merged += 1;
            }
        }
        if merged > 0 {
            self.net.clear_halves();
        }
        Ok(merged)
    }

    /// Weights above and below zero of output k.
    fn column_signs(&self, k: usize) -> (usize, usize) {
        let (mut up, mut down) = (0, 0);
        for (_, v) in
            self.net.view().wt().blocks().flat_map(|wt| wt.entries()).filter(|(j, _)| *j == k)
        {
            if v >= 0.0 { up += 1 } else { down += 1 }
        }
        (up, down)
    }

    /// Cosine and ratio of lengths of outputs k and l; none where one has no weights.
    fn compare_columns(&self, k: usize, l: usize) -> Option<(f32, f32)> {
        let net = self.net.view();
        let (mut product, mut of_k, mut of_l) = (0.0, 0.0, 0.0);
        for wt in net.wt().blocks() {
            let value = |k: usize| wt.entries().find(|(j, _)| *j == k).map_or(0.0, |(_, v)| v);
            let (a, b) = (value(k), value(l));
            if a != 0.0 || b != 0.0 {
                let size = square_in(net.w().block(wt.neuron()), self.columns.scales());
                product += a * b * size;
                of_k += a * a * size;
                of_l += b * b * size;
            }
        }
        (of_k > 0.0 && of_l > 0.0).then(|| (product / sqrt(of_k * of_l), sqrt(of_l / of_k)))
    }

    pub(super) fn scale_column(&mut self, k: usize, factor: f32) {
        let c = self.outputs().max(1);
        self.net.edit_wt(|wt| {
            for at in 0..wt.nnz() {
                let is_here = wt.view().index().get(at).is_some_and(|j| *j as usize % c == k);
                if let (true, Some(v)) = (is_here, wt.values().get_mut(at)) {
                    *v *= factor;
                }
            }
        });
    }

    /// Gives output `to`, which must have no weights, those of output `from`.
    pub(super) fn move_column(&mut self, from: usize, to: usize) -> Result<(), S::Source> {
        let c = self.outputs();
        for i in 0..self.blocks() {
            let wt = self.net.view().wt().block(i);
            let Some((_, v)) = wt.entries().find(|(k, _)| *k == from) else { continue };
            // One by one, since there may be no room for two of them.
            self.net.edit_wt(|wt| {
                wt.retain(|at, _| at as usize != i * c + from);
                add(wt, &[(i * c + to) as u32], &[v])
            })?;
        }
        Ok(())
    }

    /// Adds `factor` times the weights of one output to another one, as far as there is room; false
    /// if there was not.
    pub(super) fn add_column(
        &mut self,
        from: usize,
        to: usize,
        factor: f32,
    ) -> Result<bool, S::Source> {
        let c = self.outputs();
        let Self { fit, net, .. } = self;
        let (value, index) = fit.spare();
        let mut count = 0;
        let wt = net.view().wt();
        let column = wt.blocks().flat_map(|wt| wt.entries().map(move |(k, v)| (wt.neuron(), k, v)));
        for ((i, _, v), (value, index)) in
            column.filter(|(_, k, _)| *k == from).zip(value.iter_mut().zip(&mut *index))
        {
            (*value, *index) = (factor * v, (i * c + to) as u32);
            count += 1;
        }
        let (value, index) = (head_mut(value, count)?, head_mut(index, count)?);
        Ok(net.edit_wt(|wt| wt.add(index, value)))
    }
}
