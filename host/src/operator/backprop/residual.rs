//! From the outputs of a strip to residuals, in place.

use tamis::base::math::ln;
use tamis::learn::loss::{self, Labels};

use crate::operator::lanes::{LANES, Lanes};

/// Of the samples of a strip.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Loss {
    pub(super) sum: f64,
    /// Samples whose class is right; 0 for numbers.
    pub(super) right: usize,
}

/// Turns the outputs of samples `rows`, one [`Lanes`] an output, into residuals; those of lanes
/// without a sample are 0.
#[inline(always)]
pub(super) fn residual(labels: Labels<'_>, rows: &[usize], out: &mut [Lanes]) -> Loss {
    let loss = match labels {
        Labels::Values(values) => squares(values, rows, out),
        Labels::Classes(classes) => {
            let own = std::array::from_fn(|l| rows.get(l).map_or(0, |&row| classes.labels[row]));
            match out {
                [out] => odds(&own, rows.len(), out),
                _ => softmax(&own, rows.len(), out),
            }
        }
    };
    for out in out {
        out.0[rows.len()..].fill(0.0);
    }
    loss
}

fn squares(values: &[f32], rows: &[usize], out: &mut [Lanes]) -> Loss {
    let outputs = out.len();
    let mut sum = 0.0;
    for (l, row) in rows.iter().enumerate() {
        for (out, y) in out.iter_mut().zip(&values[row * outputs..][..outputs]) {
            let r = y - out.0[l];
            out.0[l] = r;
            sum += f64::from(r) * f64::from(r);
        }
    }
    Loss { sum, right: 0 }
}

/// One output, the log-odds of class 1.
fn odds(own: &[u16; LANES], count: usize, out: &mut Lanes) -> Loss {
    let (own, out) = (&own[..count], &mut out.0[..count]);
    let right = own.iter().zip(&*out).filter(|(own, out)| (**out >= 0.0) == (**own == 1)).count();
    let sum = loss::cross_entropy(own, 1, out).map_or(f64::NAN, f64::from);
    Loss { sum, right }
}

#[inline(always)]
fn softmax(own: &[u16; LANES], count: usize, out: &mut [Lanes]) -> Loss {
    let (mut top, mut best) = ([f32::NEG_INFINITY; LANES], [0_u32; LANES]);
    for (k, out) in out.iter().enumerate() {
        for l in 0..LANES {
            let is_above = out.0[l] > top[l];
            top[l] = if is_above { out.0[l] } else { top[l] };
            best[l] = if is_above { k as u32 } else { best[l] };
        }
    }
    let margin: [f32; LANES] = std::array::from_fn(|l| top[l] - out[usize::from(own[l])].0[l]);
    let mut total = [0.0; LANES];
    for out in out.iter_mut() {
        for l in 0..LANES {
            out.0[l] = exp(out.0[l] - top[l]);
            total[l] += out.0[l];
        }
    }
    let share = total.map(|total| -1.0 / total);
    for out in out.iter_mut() {
        out.0.iter_mut().zip(&share).for_each(|(out, share)| *out *= share);
    }
    let mut loss = Loss::default();
    for l in 0..count {
        out[usize::from(own[l])].0[l] += 1.0;
        loss.sum += f64::from(ln(total[l]) + margin[l]);
        loss.right += usize::from(best[l] == u32::from(own[l]));
    }
    loss
}

/// The exponential of a number that is not above 0, within 2 units in the last place: a polynomial
/// (S. Moshier, Cephes) without branches, so that it becomes vector instructions.
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// Above it, units in the last place are whole numbers.
    const WHOLE: f32 = 12_582_912.0;
    const LN2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    // Below, the result is not a normal number. NaN stays.
    let x = if x < -87.0 { -87.0 } else { x };
    let power = x.mul_add(std::f32::consts::LOG2_E, WHOLE);
    let n = power - WHOLE;
    let r = n.mul_add(-LN2[1], n.mul_add(-LN2[0], x));
    let terms = [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];
    let sum = terms.into_iter().fold(0.0_f32, |sum, term| sum.mul_add(r, term));
    let y = sum.mul_add(r * r, r) + 1.0;
    f32::from_bits(y.to_bits().wrapping_add(power.to_bits() << 23))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_close() {
        for x in (0..87_000).map(|x| x as f32 * -1e-3) {
            let wanted = f64::from(x).exp();
            assert!((f64::from(exp(x)) / wanted - 1.0).abs() < 3e-7, "{x}");
        }
        assert!(exp(f32::NAN).is_nan() && exp(f32::NEG_INFINITY) < 1e-37);
    }
}
