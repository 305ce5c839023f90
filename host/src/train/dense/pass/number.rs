//! Numbers that a network can be computed in.

use std::ops::{AddAssign, Mul};

/// Such as the network is computed in, `f32`; or `f64`, to test the gradients.
pub(in crate::train::dense) trait Real:
    Copy + Default + PartialOrd + AddAssign + Mul<Output = Self> + Send + Sync + 'static
{
    const ONE: Self;
    fn of(value: f64) -> Self;
    fn byte(value: u8) -> Self;
    /// The position of the largest; of equal ones the first.
    fn best(outputs: &[Self]) -> usize;
    /// The values themselves, where they are of this type.
    fn own(values: &[f32]) -> Option<&[Self]>;
    /// Outputs to residuals, in place; the sum of the squares.
    fn square(labels: &[f32], out: &mut [Self]) -> tamis::Result<f64>;
    /// Outputs to residuals of the softmax, in place; the sum of the cross-entropies.
    fn cross_entropy(labels: &[u16], classes: usize, out: &mut [Self]) -> tamis::Result<f64>;
}

impl Real for f32 {
    const ONE: Self = 1.0;

    fn of(value: f64) -> Self {
        value as Self
    }

    fn byte(value: u8) -> Self {
        Self::from(value)
    }

    fn best(outputs: &[Self]) -> usize {
        tamis::learn::loss::best(outputs)
    }

    fn own(values: &[f32]) -> Option<&[Self]> {
        Some(values)
    }

    fn square(labels: &[f32], out: &mut [Self]) -> tamis::Result<f64> {
        tamis::learn::loss::square(labels, out).map(f64::from)
    }

    fn cross_entropy(labels: &[u16], classes: usize, out: &mut [Self]) -> tamis::Result<f64> {
        tamis::learn::loss::cross_entropy(labels, classes, out).map(f64::from)
    }
}

#[cfg(test)]
mod tests {
    use super::Real;

    impl Real for f64 {
        const ONE: Self = 1.0;

        fn of(value: f64) -> Self {
            value
        }

        fn byte(value: u8) -> Self {
            Self::from(value)
        }

        fn best(outputs: &[Self]) -> usize {
            tamis::learn::loss::best(&outputs.iter().map(|&out| out as f32).collect::<Vec<_>>())
        }

        fn own(_: &[f32]) -> Option<&[Self]> {
            None
        }

        fn square(labels: &[f32], out: &mut [Self]) -> tamis::Result<f64> {
            out.iter_mut().zip(labels).for_each(|(out, y)| *out = f64::from(*y) - *out);
            Ok(out.iter().map(|r| r * r).sum())
        }

        fn cross_entropy(labels: &[u16], classes: usize, out: &mut [Self]) -> tamis::Result<f64> {
            let mut loss = 0.0;
            for (out, &label) in out.chunks_mut(classes).zip(labels) {
                let total: f64 = out.iter().map(|z| z.exp()).sum();
                loss += total.ln() - out[usize::from(label)];
                for (class, out) in out.iter_mut().enumerate() {
                    *out = f64::from(u8::from(class == usize::from(label))) - out.exp() / total;
                }
            }
            Ok(loss)
        }
    }
}
