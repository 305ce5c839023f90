//! One neuron at a time: candidates for new ones, and what can be done with those that exist.
//!
//! A *candidate* is a way to add a neuron: a birth (a new direction) or a split of one that stands for two. It is
//! known by a number and formed again where it is needed, so that a list of candidates takes no memory that grows.

use super::fit::Fit;
use crate::error::Result;
use crate::gates::{Empty, Gates, Signs};
use crate::math::{dot, norm2, sqrt};
use crate::rng::{Rng, stream};
use crate::sensing::{Sensing, head_mut};
use crate::top::Top;
use crate::weights::{Editable, Weights};

/// Steps that refine the direction of a birth.
const BIRTH_STEPS: u32 = 5;
/// Power iterations for the direction of a split.
const SPLIT_STEPS: u32 = 4;
/// A split looks at the rows where the activation is below this part of its standard deviation.
const SPLIT_BAND: f32 = 0.35;
/// Lengths of the two halves' difference that are tried, in parts of the neuron's activation.
const SPLIT_LENGTHS: [f32; 5] = [0.15, 0.3, 0.5, 0.8, 1.2];

/// The sign of a neuron's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Positive,
    Negative,
}

impl Sign {
    pub(super) const fn value(self) -> f32 {
        match self {
            Self::Positive => 1.0,
            Self::Negative => -1.0,
        }
    }
}

/// A way to add one neuron.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Candidate {
    /// A neuron that starts as `relu(±x_j)`; the number is `2 j + sign`.
    Atom(u32, Sign),
    /// A neuron that starts with the random gate of this number.
    Random(u32, Sign),
    /// Two halves of this neuron.
    Split(u32),
}

/// Buffers for one neuron of d inputs and for images on the rows.
pub(super) struct Single<'a> {
    /// The neuron's entries.
    pub(super) index: &'a mut [u32],
    pub(super) value: &'a mut [f32],
    pub(super) len: usize,
    /// `A_iᵀ v`, d.
    pub(super) block: &'a mut [f32],
    /// Two images on the rows.
    pub(super) z: &'a mut [f32],
    pub(super) t: &'a mut [f32],
}

impl Single<'_> {
    /// The entries as weights of neuron `i`.
    fn view(&self, inputs: usize, hidden: usize) -> Weights<'_> {
        let index = self.index.get(..self.len).unwrap_or(&[]);
        let value = self.value.get(..self.len).unwrap_or(&[]);
        Weights::new(inputs, hidden, index, value).unwrap_or(Weights::empty(inputs, hidden))
    }

    /// The neuron's entries become the `k` largest `|g| / c` of the block, with value `g / c²`, as neuron `i`.
    fn keep(&mut self, scales: &[f32], i: usize, k: usize) {
        let d = scales.len();
        let (Some(index), Some(value)) = (self.index.get_mut(..k.min(d)), self.value.get_mut(..k.min(d)))
        else {
            return;
        };
        let mut top = Top::new(&mut *index, &mut *value);
        for ((g, c), j) in self.block.iter().zip(scales).zip((i * d) as u32..) {
            if *c > 0.0 {
                top.push(j, g / c);
            }
        }
        self.len = top.finish().unwrap_or(0);
        for (v, &j) in value.iter_mut().zip(&*index).take(self.len) {
            *v /= scales.get((j as usize).wrapping_sub(i * d)).copied().unwrap_or(1.0);
        }
    }

    /// Moves the entries from neuron `from` to neuron `to`.
    pub(super) fn shift(&mut self, from: usize, to: usize, inputs: usize) {
        for j in self.index.iter_mut().take(self.len) {
            *j = (*j as usize).wrapping_sub(from * inputs).wrapping_add(to * inputs) as u32;
        }
    }
}

/// Finds the entries of a birth as neuron `i`; returns `⟨r, φ⟩² / |φ|²`, what it could win at once.
pub(super) fn birth<S: Sensing + ?Sized>(
    fit: &mut Fit<'_, S>,
    single: &mut Single<'_>,
    scales: &[f32],
    (candidate, i, k): (Candidate, usize, usize),
    seed: u64,
) -> Result<f32, S::Source> {
    let (d, m, rows) = (scales.len(), fit.sensing.blocks(), fit.rows());
    match candidate {
        Candidate::Atom(atom, _) => {
            let (j, c) = (atom / 2, scales.get(atom as usize / 2).copied().unwrap_or(0.0));
            if let (Some(index), Some(value)) = (single.index.first_mut(), single.value.first_mut()) {
                *index = i as u32 * d as u32 + j;
                *value = if atom % 2 == 0 { 1.0 } else { -1.0 } * if c > 0.0 { 1.0 / c } else { 0.0 };
            }
            single.len = 1;
        }
        Candidate::Random(number, _) => {
            // Gates are drawn by neuron: a seed for every number, so that any neuron serves.
            let gates = Gates::seeded(seed ^ (u64::from(number) << 32));
            let block = head_mut(&mut *single.block, d)?;
            block.fill(0.0);
            fit.sensing.adjoint(gates, i, fit.residual.get(..rows).unwrap_or(&[]), block)?;
            fit.read();
            single.keep(scales, i, k);
        }
        Candidate::Split(_) => return Ok(0.0),
    }
    for _ in 0..BIRTH_STEPS {
        let block = head_mut(&mut *single.block, d)?;
        block.fill(0.0);
        let index = single.index.get(..single.len).unwrap_or(&[]);
        let value = single.value.get(..single.len).unwrap_or(&[]);
        let w = Weights::new(d, m, index, value).unwrap_or(Weights::empty(d, m));
        let gates = fit.gates(w);
        fit.sensing.adjoint(gates, i, fit.residual.get(..rows).unwrap_or(&[]), block)?;
        fit.read();
        single.keep(scales, i, k);
    }
    let mut z = core::mem::take(&mut single.z);
    let image = head_mut(&mut z, rows)?;
    image.fill(0.0);
    let w = single.view(d, m);
    let done = fit.image(w, w.block(i), image);
    let gain = gain(fit.residual(), image);
    single.z = z;
    done.map(|()| gain)
}

/// `⟨r, φ⟩² / |φ|²` where the two agree, else 0.
fn gain(r: &[f32], image: &[f32]) -> f32 {
    let along = dot(r, image);
    let gain = along * (along / norm2(image));
    if along > 0.0 && gain.is_finite() { gain } else { 0.0 }
}

/// What `relu(±x_j)` of the atom's number could win as neuron `i`, unrefined.
pub(super) fn atom<S: Sensing + ?Sized>(
    fit: &mut Fit<'_, S>,
    single: &mut Single<'_>,
    d: usize,
    (atom, i): (u32, usize),
) -> Result<f32, S::Source> {
    let (m, rows) = (fit.sensing.blocks(), fit.rows());
    let (index, value) = ([(i * d) as u32 + atom / 2], [if atom % 2 == 0 { 1.0 } else { -1.0 }]);
    let w = Weights::new(d, m, &index, &value).unwrap_or(Weights::empty(d, m));
    let image = head_mut(&mut *single.z, rows)?;
    image.fill(0.0);
    let gates = fit.gates(w);
    fit.sensing.apply(gates, w.block(i), image)?;
    fit.rows_read += (rows / d.max(1)) as u64;
    Ok(gain(fit.residual.get(..rows).unwrap_or(&[]), image))
}

/// Finds δ of a split of neuron `i`, the entries of `single`, such that the halves are `w/2 ± δ`; returns what the
/// split could win at once.
pub(super) fn split<S: Sensing + ?Sized>(
    fit: &mut Fit<'_, S>,
    net: &Editable<'_>,
    single: &mut Single<'_>,
    scales: &[f32],
    (i, k): (usize, usize),
    seed: u64,
) -> Result<f32, S::Source> {
    let (d, m, rows) = (scales.len(), fit.sensing.blocks(), fit.rows());
    let v = fit.signs.sign(i);
    let open = Gates::of(Weights::empty(d, m), Signs::Positive, Empty::Open, 0, 0);
    let (mut z, mut t, mut block) =
        (core::mem::take(&mut single.z), core::mem::take(&mut single.t), core::mem::take(&mut single.block));
    let mut work = || {
        let (z, t, block) = (head_mut(&mut z, rows)?, head_mut(&mut t, rows)?, head_mut(&mut block, d)?);
        z.fill(0.0);
        fit.sensing.apply(open, net.view().block(i), z)?;
        fit.read();
        // |w_i| of the activation: with the usual gates half of the rows are on either side of zero.
        let size = sqrt(norm2(z) / rows as f32);
        let band = SPLIT_BAND * size;
        if !(band > 0.0) {
            return Ok(0.0);
        }
        // A random direction to begin with.
        let mut rng = Rng::new(seed, stream::SUPPORT + i as u64);
        for (b, c) in block.iter_mut().zip(scales) {
            *b = c * rng.normal();
        }
        let residual = fit.residual.get(..rows).unwrap_or(&[]);
        for _ in 0..=SPLIT_STEPS {
            single.len = keep(single.index, single.value, block, scales, i, k);
            t.fill(0.0);
            let delta = Weights::new(d, m, head(single.index, single.len), headf(single.value, single.len))
                .unwrap_or(Weights::empty(d, m));
            fit.sensing.apply(open, delta.block(i), t)?;
            fit.rows_read += rows as u64;
            // Unit activation, so that the numbers stay in range.
            let length = sqrt(norm2(t) / rows as f32);
            if !(length > 0.0) {
                return Ok(0.0);
            }
            t.iter_mut().for_each(|t| *t /= length);
            single.value.iter_mut().take(single.len).for_each(|v| *v /= length);
            for ((t, z), r) in t.iter_mut().zip(&*z).zip(residual) {
                *t *= v * r * (1.0 - z.abs() / band).max(0.0);
            }
            block.fill(0.0);
            fit.sensing.adjoint(open, i, t, block)?;
            fit.rows_read += rows as u64;
        }
        // The direction's own activation again, then the best length.
        t.fill(0.0);
        let delta = Weights::new(d, m, head(single.index, single.len), headf(single.value, single.len))
            .unwrap_or(Weights::empty(d, m));
        fit.sensing.apply(open, delta.block(i), t)?;
        fit.rows_read += rows as u64;
        let mut best = (0.0, 0.0);
        for length in SPLIT_LENGTHS {
            let a = length * size;
            let relu = |x: f32| (v * x).max(0.0);
            let (mut along, mut norm) = (0.0, 0.0);
            for ((z, t), r) in z.iter().zip(&*t).zip(residual) {
                let change = v * (relu(0.5 * z + a * t) + relu(0.5 * z - a * t) - relu(*z));
                along += r * change;
                norm += change * change;
            }
            let gain = along * (along / norm);
            if along > 0.0 && gain > best.0 && gain.is_finite() {
                best = (gain, a);
            }
        }
        single.value.iter_mut().take(single.len).for_each(|v| *v *= best.1);
        Ok(best.0)
    };
    let result = work();
    (single.z, single.t, single.block) = (z, t, block);
    result
}

fn head(slice: &[u32], len: usize) -> &[u32] {
    slice.get(..len).unwrap_or(&[])
}

fn headf(slice: &[f32], len: usize) -> &[f32] {
    slice.get(..len).unwrap_or(&[])
}

/// The k largest `|g| / c` as entries of neuron `i` with value `g / c²`; how many there are.
fn keep(index: &mut [u32], value: &mut [f32], block: &[f32], scales: &[f32], i: usize, k: usize) -> usize {
    let d = scales.len();
    let k = k.min(d).min(index.len()).min(value.len());
    let (Some(index), Some(value)) = (index.get_mut(..k), value.get_mut(..k)) else { return 0 };
    let mut top = Top::new(&mut *index, &mut *value);
    for ((g, c), j) in block.iter().zip(scales).zip((i * d) as u32..) {
        if *c > 0.0 {
            top.push(j, g / c);
        }
    }
    let len = top.finish().unwrap_or(0);
    for (v, &j) in value.iter_mut().zip(&*index).take(len) {
        *v /= scales.get((j as usize).wrapping_sub(i * d)).copied().unwrap_or(1.0);
    }
    len
}
