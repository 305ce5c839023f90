//! Initial weights as a function of seed and place, so that they need no memory.

use super::{LayerShape, Mlp};
use crate::base::math;
use crate::base::rng::{CounterRng, stream};

/// The law of the initial weights of a layer of d inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Law {
    /// Normal with variance 2/d (K. He et al., 2015).
    #[default]
    HeNormal,
    /// Uniform in ±1/√d: what `PyTorch`'s `Linear` starts from.
    Uniform,
    /// `±√(2/d)` with random signs (V. Ramanujan et al., 2020): one bit a weight.
    Signs,
}

/// All initial weights of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Initial {
    /// Seed of the weights.
    pub seed: u64,
    /// Their law.
    pub law: Law,
}

impl Initial {
    /// The weights of a layer.
    #[must_use]
    pub fn layer(&self, layer: &LayerShape) -> LayerWeights {
        let inputs = layer.inputs.max(1) as f32;
        let scale = match self.law {
            Law::HeNormal | Law::Signs => math::sqrt(2.0 / inputs),
            Law::Uniform => 1.0 / math::sqrt(inputs),
        };
        let rng = CounterRng::new(self.seed, stream::WEIGHTS + layer.number as u64);
        LayerWeights { rng, law: self.law, scale, inputs: layer.inputs as u32 }
    }

    /// The weight at a flat index; 0 outside the network.
    ///
    /// ```
    /// use tamis::network::mask::{Mlp, initial::{Initial, Law}};
    /// let net = Mlp::new(&[4, 3, 2])?;
    /// let weights = Initial { seed: 7, law: Law::HeNormal };
    /// let layer = weights.layer(&net.layer(1).unwrap());
    /// assert_eq!(weights.weight(&net, 12 + 5), layer.weight(1, 2));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn weight(&self, net: &Mlp<'_>, index: u32) -> f32 {
        let at = index as usize;
        net.layers().find(|layer| layer.weights().contains(&at)).map_or(0.0, |layer| {
            let own = at - layer.first;
            self.layer(&layer).weight((own / layer.inputs) as u32, (own % layer.inputs) as u32)
        })
    }
}

/// The weights of one layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerWeights {
    rng: CounterRng,
    law: Law,
    scale: f32,
    inputs: u32,
}

impl LayerWeights {
    /// The weight of output `row` from input `column`.
    #[inline]
    #[must_use]
    pub fn weight(&self, row: u32, column: u32) -> f32 {
        let mut weight = [0.0];
        self.fill(row, column, &mut weight);
        weight[0]
    }

    /// The weights of output `row` from the inputs from `column` on.
    #[inline]
    pub fn fill(&self, row: u32, column: u32, out: &mut [f32]) {
        let index = row.wrapping_mul(self.inputs).wrapping_add(column);
        match self.law {
            Law::HeNormal => self.rng.fill_normal(index, out),
            Law::Uniform => {
                let number = |bits: u32| (bits as i32 as f32 + 0.5) * (1.0 / 2_147_483_648.0);
                self.each(index, out, number);
            }
            Law::Signs => self.each(index, out, |bits| if bits >> 31 == 0 { 1.0 } else { -1.0 }),
        }
        math::scale(self.scale, out);
    }

    /// What the flow takes for `|w|` of output `row` from the inputs from `column` on. Random signs all
    /// have one size: there it is up to a quarter larger, by chance, since neurons of equal
    /// weights would go as a whole.
    #[inline]
    pub fn sizes(&self, row: u32, column: u32, out: &mut [f32]) {
        if self.law == Law::Signs {
            let index = row.wrapping_mul(self.inputs).wrapping_add(column);
            self.each(index, out, |bits| {
                1.0 + (bits & 0x7fff_ffff) as f32 * (1.0 / 8_589_934_592.0)
            });
            math::scale(self.scale, out);
        } else {
            self.fill(row, column, out);
            out.iter_mut().for_each(|w| *w = w.abs());
        }
    }

    fn each(&self, index: u32, out: &mut [f32], number: impl Fn(u32) -> f32) {
        for (k, out) in (0..).zip(out) {
            *out = number(self.rng.bits(index.wrapping_add(k)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_law_has_its_variance_in_every_layer() {
        let net = Mlp::new(&[200, 300, 100]).unwrap();
        for (law, variance) in [(Law::HeNormal, 2.0), (Law::Uniform, 1.0 / 3.0), (Law::Signs, 2.0)]
        {
            let initial = Initial { seed: 1, law };
            for layer in net.layers() {
                let (mut sum, mut square) = (0.0, 0.0);
                for at in layer.weights() {
                    let w = f64::from(initial.weight(&net, at as u32));
                    sum += w;
                    square += w * w * layer.inputs as f64;
                }
                let count = layer.weights().len() as f64;
                let error = libm::sqrt(2.0 / count);
                assert!((square / count / variance - 1.0).abs() < 5.0 * error, "{law:?}");
                let spread = libm::sqrt(variance / layer.inputs as f64 / count);
                assert!((sum / count).abs() < 5.0 * spread, "{law:?}");
            }
        }
    }
}
