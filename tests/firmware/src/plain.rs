//! A dense layer of floats as a plain loop: what sparse layers are compared with.

use core::hint::black_box;

/// `out[m] = relu(W x)` for `weights[m * x.len()]`, row after row, four products a turn.
#[inline(never)]
pub(crate) fn dense(x: &[f32], weights: &[f32], out: &mut [f32]) {
    let (fours, rest) = x.as_chunks::<4>();
    for (out, row) in out.iter_mut().zip(weights.chunks_exact(x.len().max(1))) {
        let (weights, more) = row.as_chunks::<4>();
        let mut sum = 0.0;
        for (&[x0, x1, x2, x3], &[w0, w1, w2, w3]) in fours.iter().zip(weights) {
            sum += x0 * w0;
            sum += x1 * w1;
            sum += x2 * w2;
            sum += x3 * w3;
            // No turn is unrolled again, or the bodies would differ in what they count.
            black_box(());
        }
        for (&x, &weight) in rest.iter().zip(more) {
            sum += x * weight;
            black_box(());
        }
        *out = if sum <= 0.0 { 0.0 } else { sum };
    }
}
