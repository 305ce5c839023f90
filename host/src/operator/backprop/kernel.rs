//! The inner loops: one layer of one strip, forwards and back.
//!
//! ```text
//! forwards   out_i = Σ_j w_ij a_j                              64 sums in registers, links of i in turn
//! back       g_ij += <r_i, a_j>,  δ_j = 1[a_j > 0] Σ_i w_ij r_i     one sweep over the links of j
//! ```
//!
//! The first layer needs no δ, so its gradient is taken in the order of the weights.
//!
//! A dot product over the 64 samples has 16 sums, each of 4 products by fused multiply-add, which
//! are then added by halves: the same bits for vectors of 4, 8 and 16 lanes. The loops are bound by
//! what the second-level cache delivers, four lines a link: adding up 16 dot products at a time, by
//! fewer shuffles, was no faster. Bodies are loops and no closures, which would not be inlined into
//! functions for other vectors: backwards that took 13 times as long.

use std::ops::Range;

use pulp::Simd;

use super::links::{Blocks, Link, Links};
use crate::operator::lanes::{Lanes, OverLanes, registers, registers_mut};

/// `out_i = Σ_j w_ij below_j`, and its relu where asked for.
pub(super) struct Forward<'a, L> {
    /// Grouped by i.
    pub(super) links: L,
    pub(super) weights: &'a [f32],
    pub(super) below: &'a [Lanes],
    pub(super) out: &'a mut [Lanes],
    pub(super) relu: bool,
}

impl<L: Links> OverLanes for Forward<'_, L> {
    #[inline(always)]
    fn run<S: Simd, const N: usize, const M: usize>(self, simd: S) {
        let Self { mut links, weights, below, out, relu } = self;
        let zero = simd.splat_f32s(0.0);
        for (i, out) in out.iter_mut().enumerate() {
            let mut sums = [zero; N];
            for Link { place, other: j } in links.of_neuron(i) {
                let w = simd.splat_f32s(weights[place]);
                let a = registers::<S, N>(&below[j]);
                for v in 0..N {
                    sums[v] = simd.mul_add_f32s(w, a[v], sums[v]);
                }
            }
            let out = registers_mut::<S, N>(out);
            for v in 0..N {
                out[v] = if relu { simd.max_f32s(sums[v], zero) } else { sums[v] };
            }
        }
    }
}

/// Adds `<above_i, below_j>` to the gradient of link i, j, where there is one; then below becomes the residuals of the
/// layer below, `1[below_j > 0] Σ_i w_ij above_i`.
pub(super) struct Backward<'a, L> {
    /// Grouped by j.
    pub(super) links: L,
    pub(super) weights: &'a [f32],
    pub(super) gradient: &'a mut [f32],
    pub(super) above: &'a [Lanes],
    pub(super) below: &'a mut [Lanes],
}

impl<L: Links> OverLanes for Backward<'_, L> {
    #[inline(always)]
    fn run<S: Simd, const N: usize, const M: usize>(self, simd: S) {
        let Self { mut links, weights, gradient, above, below } = self;
        let zero = simd.splat_f32s(0.0);
        for (j, a) in below.iter_mut().enumerate() {
            let a = registers_mut::<S, N>(a);
            let mut sums = [zero; N];
            for Link { place, other: i } in links.of_neuron(j) {
                let w = simd.splat_f32s(weights[place]);
                let r = registers::<S, N>(&above[i]);
                for v in 0..N {
                    sums[v] = simd.mul_add_f32s(w, r[v], sums[v]);
                }
                if let Some(gradient) = gradient.get_mut(place) {
                    *gradient += dot::<S, N, M>(simd, a, r);
                }
            }
            for v in 0..N {
                let is_active = simd.greater_than_f32s(a[v], zero);
                a[v] = simd.select_f32s(is_active, sums[v], zero);
            }
        }
    }
}

/// Adds `<own_i, others_j>` to the gradient of link i, j, for some i: what [`Backward`] adds.
pub(super) struct Outer<'a> {
    /// Grouped by i, in the order of the weights.
    pub(super) links: Blocks<'a>,
    pub(super) blocks: Range<usize>,
    /// Of these blocks.
    pub(super) gradient: &'a mut [f32],
    pub(super) own: &'a [Lanes],
    pub(super) others: &'a [Lanes],
}

impl OverLanes for Outer<'_> {
    #[inline(always)]
    fn run<S: Simd, const N: usize, const M: usize>(self, simd: S) {
        let Self { mut links, blocks, gradient, own, others } = self;
        let before = links.starts.before(blocks.start);
        for i in blocks {
            let own = *registers::<S, N>(&own[i]);
            for Link { place, other: j } in links.of_neuron(i) {
                let other = registers::<S, N>(&others[j]);
                gradient[place - before] += dot::<S, N, M>(simd, &own, other);
            }
        }
    }
}

/// `<a, b>` over the lanes.
#[inline(always)]
fn dot<S: Simd, const N: usize, const M: usize>(
    simd: S,
    a: &[S::f32s; N],
    b: &[S::f32s; N],
) -> f32 {
    let mut sums = [simd.splat_f32s(0.0); M];
    for v in 0..M {
        sums[v] = simd.mul_f32s(a[v], b[v]);
    }
    for v in M..N {
        sums[v % M] = simd.mul_add_f32s(a[v], b[v], sums[v % M]);
    }
    let mut half = M / 2;
    while half > 0 {
        for v in 0..half {
            sums[v] = simd.add_f32s(sums[v], sums[v + half]);
        }
        half /= 2;
    }
    simd.reduce_sum_f32s(sums[0])
}
