//! Elementary functions (of `libm`, compiled from source, but for the square root with the feature `std`) and sums
//! with the same bits on every target.
//!
//! Sums run over eight lanes in blocks, block totals are added with a running compensation: fast on
//! a host, no double precision on a device, and an error that does not grow with the length.

/// Square root; correctly rounded.
#[must_use]
#[inline]
pub fn sqrt(x: f32) -> f32 {
    // That of `libm` is assembly, which keeps loops from running in vectors.
    #[cfg(feature = "std")]
    return x.sqrt();
    #[cfg(not(feature = "std"))]
    libm::sqrtf(x)
}

/// Natural exponential.
#[must_use]
pub fn exp(x: f32) -> f32 {
    libm::expf(x)
}

/// Natural logarithm.
#[must_use]
pub fn ln(x: f32) -> f32 {
    libm::logf(x)
}

/// Sine and cosine of an angle in radians.
#[must_use]
pub fn sin_cos(x: f32) -> (f32, f32) {
    libm::sincosf(x)
}

/// Standard normal quantiles at `(bits + 1/2) / 2^32 + 1/2`, to 1e-6 relative: uniform bits become
/// normal numbers (M. Wichura, *Algorithm AS 241*, 1988, routine PPND7). The shorter length counts.
///
/// ```
/// let mut numbers = [0.0; 2];
/// tamis::base::math::normal_quantiles(&[0x4000_0000, i32::MIN], &mut numbers); // 3/4 and 2^-33
/// assert!((numbers[0] - 0.674_489_8).abs() < 1e-6 && (numbers[1] + 6.338).abs() < 1e-3);
/// ```
#[inline]
pub fn normal_quantiles(bits: &[i32], out: &mut [f32]) {
    // How far from the middle, in units of 2^-32, less a half.
    let far = |bits: i32| if bits < 0 { !bits } else { bits };
    let sign = |bits: i32, x: f32| if bits < 0 { -x } else { x };
    // Two loops, of which the first has no branch and runs in vectors.
    for (&bits, out) in bits.iter().zip(&mut *out) {
        let q = (far(bits) as f32 + 0.5) * (1.0 / 4_294_967_296.0);
        let r = 0.180_625 - q * q;
        let above = ((59.109_375 * r + 159.291_13) * r + 50.434_27) * r + 3.387_132_7;
        let below = ((67.187_56 * r + 78.757_76) * r + 17.895_17) * r + 1.0;
        *out = sign(bits, q * above / below);
    }
    for (&bits, out) in bits.iter().zip(out).filter(|(bits, _)| far(**bits) > MIDDLE) {
        // Of the integer, since 1/2 - q would lose what is small.
        let tail = (2 * (0x8000_0000 - far(bits) as u32) - 1) as f32 * (1.0 / 8_589_934_592.0);
        // At most 4.79, so the third branch of the published routine is never taken.
        let r = sqrt(-ln(tail)) - 1.6;
        let above = ((0.170_238_21 * r + 1.306_728_5) * r + 2.756_815_4) * r + 1.423_437_3;
        *out = sign(bits, above / ((0.120_211_33 * r + 0.737_001_64) * r + 1.0));
    }
}

/// 0.425 · 2^32: where the tails begin.
const MIDDLE: i32 = 1_825_361_100;

/// Lanes that a sum runs over.
const LANES: usize = 8;
/// Elements between two compensated additions.
const BLOCK: usize = 32 * LANES;

/// Dot product of two vectors; the shorter length counts.
///
/// ```
/// assert_eq!(tamis::base::math::dot(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), 32.0);
/// ```
#[must_use]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut total = Sum::default();
    for (a, b) in a.chunks(BLOCK).zip(b.chunks(BLOCK)) {
        let mut lanes = [0.0_f32; LANES];
        let (pa, pb) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
        let (ra, rb) = (pa.remainder(), pb.remainder());
        for (a, b) in pa.zip(pb) {
            for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
                *lane += a * b;
            }
        }
        // The longer side may still hold a full chunk here; zip stops with the shorter one.
        let tail = if a.len() <= b.len() { ra.len() } else { rb.len() };
        let from = a.len().min(b.len()) - tail;
        for ((lane, a), b) in lanes.iter_mut().zip(a.iter().skip(from)).zip(b.iter().skip(from)) {
            *lane += a * b;
        }
        let [s0, s1, s2, s3, s4, s5, s6, s7] = lanes;
        total.add(((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7)));
    }
    total.value()
}

/// Squared Euclidean norm.
#[must_use]
pub fn norm2(a: &[f32]) -> f32 {
    dot(a, a)
}

/// A compensated running sum (Neumaier): the error stays that of one rounding, not of one per term.
///
/// ```
/// let mut sum = tamis::base::math::Sum::default();
/// for _ in 0..10_000 { sum.add(0.1); }
/// assert_eq!(sum.value(), 1000.0);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Sum {
    total: f32,
    lost: f32,
}

impl Sum {
    /// Adds one term.
    pub fn add(&mut self, term: f32) {
        let total = self.total + term;
        self.lost += if self.total.abs() >= term.abs() {
            (self.total - total) + term
        } else {
            (term - total) + self.total
        };
        self.total = total;
    }

    /// The sum so far.
    pub fn value(&self) -> f32 {
        // Past the finite numbers the compensation is NaN; the total says more.
        if self.lost.is_finite() { self.total + self.lost } else { self.total }
    }
}

/// The power of two that brings the largest magnitude of `values` into [1, 2): scaling by it rounds
/// nothing, and keeps the squares of large and small vectors within range. 1 for zeros and for what
/// is not finite.
///
/// ```
/// assert_eq!(tamis::base::math::unit_scale(&[0.1, -12.0]), 0.125);
/// ```
#[must_use]
pub fn unit_scale(values: &[f32]) -> f32 {
    let largest = values.iter().fold(0.0_f32, |largest, v| largest.max(v.abs()));
    if !largest.is_normal() {
        return 1.0;
    }
    let exponent = largest.to_bits() >> 23;
    f32::from_bits(254_u32.saturating_sub(exponent).max(1) << 23)
}

/// `x *= a`, element by element.
pub fn scale(a: f32, x: &mut [f32]) {
    x.iter_mut().for_each(|x| *x *= a);
}

/// `y += a x`, element by element; the shorter length counts.
pub fn axpy(a: f32, x: &[f32], y: &mut [f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    /// With the feature `std` it is not that of `libm`.
    #[test]
    fn square_roots_have_the_bits_of_libm() {
        let mut bits = 0_u32;
        for _ in 0..200_000 {
            bits = bits.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
            let x = f32::from_bits(bits & 0x7fff_ffff);
            let (own, of_libm) = (sqrt(x), libm::sqrtf(x));
            assert!(own.to_bits() == of_libm.to_bits() || own.is_nan() && of_libm.is_nan(), "{x}");
        }
        assert_eq!((sqrt(0.0), sqrt(f32::INFINITY)), (0.0, f32::INFINITY));
        assert!(sqrt(-1.0).is_nan());
    }

    #[test]
    fn dot_error_is_below_one_rounding_per_block() {
        let a: std::vec::Vec<f32> =
            (0..50_003).map(|i| ((i * 7919) % 1000) as f32 * 1e-3 - 0.3).collect();
        let exact: f64 = a.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        assert!((f64::from(norm2(&a)) / exact - 1.0).abs() < 2e-7);
    }

    #[test]
    fn dot_takes_the_shorter_length_at_every_remainder() {
        let a: std::vec::Vec<f32> = (0..600).map(|i| i as f32).collect();
        for n in [0, 1, 7, 8, 9, 255, 256, 257, 263, 264, 511, 513] {
            let expected: f64 = a.iter().take(n).map(|&x| f64::from(x)).sum();
            let ones = std::vec![1.0_f32; n];
            assert_eq!(f64::from(dot(&a, &ones)), expected, "n = {n}");
            assert_eq!(f64::from(dot(&ones, &a)), expected, "n = {n}");
        }
    }

    fn quantiles(bits: [i32; 2]) -> [f32; 2] {
        let mut out = [0.0; 2];
        normal_quantiles(&bits, &mut out);
        out
    }

    /// Against the error function's series, in double precision.
    #[test]
    fn quantiles_are_those_of_the_normal_law() {
        let below = |z: f64| {
            let (mut term, mut sum, mut k) = (z, z, 1.0);
            while term.abs() > 1e-17 * sum.abs() && k < 400.0 {
                term *= z * z / (2.0 * k + 1.0);
                sum += term;
                k += 1.0;
            }
            sum * libm::exp(-z * z / 2.0) / libm::sqrt(core::f64::consts::TAU)
        };
        for step in -2047..2048_i32 {
            let bits = step * (1 << 20) + 12_345;
            let [z, opposite] = quantiles([bits, !bits]);
            let z = f64::from(z);
            let expected = (f64::from(bits) + 0.5) / 4_294_967_296.0;
            let slope = libm::exp(-z * z / 2.0) / libm::sqrt(core::f64::consts::TAU);
            let error = (below(z) - expected).abs() / slope / z.abs().max(1e-3);
            assert!(error < 1e-6, "{bits}: {z} is wrong by {error}");
            assert_eq!(f64::from(opposite), -z);
        }
        assert!(quantiles([i32::MIN, i32::MAX]).iter().all(|z| z.is_finite()));
    }

    #[test]
    fn sums_of_what_is_not_finite_say_so() {
        assert_eq!(dot(&[f32::MAX, f32::MAX], &[2.0, 2.0]), f32::INFINITY);
        assert!(dot(&[f32::NAN], &[1.0]).is_nan());
    }
}
