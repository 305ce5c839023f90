//! How a number of weights is shared out over the layers: the same density everywhere, or
//! Erdős-Rényi.

use super::{LayerShape, Mlp};
use crate::base::error::{self, Result};

/// A rule for the number of weights of each layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Allocation {
    /// The same density in every layer.
    #[default]
    Uniform,
    /// Densities in proportion to `(inputs + outputs) / (inputs · outputs)`, no layer denser than 1
    /// (`ERK`; D. Mocanu et al., 2018; U. Evci et al., 2020).
    ErdosRenyi,
}

/// How many weights each layer gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounds<'a> {
    /// At least, or all that it can take.
    pub least: usize,
    /// At most, one number a layer; all weights without it.
    pub most: Option<&'a [usize]>,
}

impl Bounds<'_> {
    /// No bounds but this.
    #[must_use]
    pub const fn at_least(least: usize) -> Self {
        Self { least, most: None }
    }
}

impl Allocation {
    /// Shares out `count` weights within `bounds`. They add up to `count` exactly. `counts` has a
    /// place for each layer.
    ///
    /// # Errors
    /// [`error::Error::Range`] for more weights than the layers can take, or fewer than they get at
    /// least; [`error::Error::Length`] for another number of places or bounds.
    ///
    /// ```
    /// use tamis::network::mask::{Mlp, allocate::{Allocation, Bounds}};
    /// let net = Mlp::new(&[784, 300, 100, 10])?;
    /// let (mut counts, bounds) = ([0; 3], Bounds::at_least(1));
    /// Allocation::Uniform.share(&net, 2662, bounds, &mut counts)?;
    /// assert_eq!(counts, [2352, 300, 10]);
    /// Allocation::ErdosRenyi.share(&net, 2662, bounds, &mut counts)?;
    /// assert_eq!(counts, [1810, 668, 184]);
    /// // What a layer cannot take goes to the others.
    /// let bounds = Bounds { most: Some(&[9000, 600, 100]), ..bounds };
    /// Allocation::ErdosRenyi.share(&net, 2662, bounds, &mut counts)?;
    /// assert_eq!(counts, [1962, 600, 100]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn share(
        self,
        net: &Mlp<'_>,
        count: usize,
        bounds: Bounds<'_>,
        counts: &mut [usize],
    ) -> Result<()> {
        let layers = net.layers().len();
        error::length("counts of the layers", counts.len(), layers)?;
        error::length("bounds of the layers", bounds.most.map_or(layers, <[_]>::len), layers)?;
        let all = |layer: LayerShape| {
            let most = bounds.most.and_then(|most| most.get(layer.number).copied());
            layer.weights().len().min(most.unwrap_or(usize::MAX))
        };
        let floor = |layer: LayerShape| bounds.least.min(all(layer));
        let sum = |of: &dyn Fn(LayerShape) -> usize| {
            net.layers().fold(0_usize, |sum, layer| sum.saturating_add(of(layer)))
        };
        error::range("weights to share out", count, sum(&floor), sum(&all))?;
        // Layers whose count is settled, since their share is above what they have or below what
        // they get; the others share what is left.
        counts.fill(OPEN);
        let share = loop {
            let share = self.open_share(net, count, counts);
            let mut settle = |is_out: &dyn Fn(LayerShape) -> bool,
                              to: &dyn Fn(LayerShape) -> usize| {
                let mut any = false;
                for (layer, own) in net.layers().zip(&mut *counts) {
                    if *own == OPEN && is_out(layer) {
                        (*own, any) = (to(layer), true);
                    }
                }
                any
            };
            let exact = |layer: LayerShape| share * self.demand(layer);
            // Full layers first: what they cannot take raises all others.
            if !settle(&|layer| exact(layer) > all(layer) as f64, &all)
                && !settle(&|layer| exact(layer) < floor(layer) as f64, &floor)
            {
                break share;
            }
        };
        // The running sum is rounded, so that the counts add up.
        let mut sum = 0.0;
        for (layer, own) in net.layers().zip(&mut *counts).filter(|(_, own)| **own == OPEN) {
            let before = libm::round(sum);
            sum += share * self.demand(layer);
            *own = (libm::round(sum) - before) as usize;
        }
        debug_assert_eq!(counts.iter().sum::<usize>(), count, "all are shared out");
        Ok(())
    }

    /// What the layers that are not settled get for each unit of their demand.
    fn open_share(self, net: &Mlp<'_>, count: usize, counts: &[usize]) -> f64 {
        let (mut left, mut demand) = (count as f64, 0.0);
        for (layer, &own) in net.layers().zip(counts) {
            if own == OPEN { demand += self.demand(layer) } else { left -= own as f64 }
        }
        if demand > 0.0 { left / demand } else { 0.0 }
    }

    /// What a layer's number of weights is in proportion to.
    fn demand(self, layer: LayerShape) -> f64 {
        match self {
            Self::Uniform => layer.weights().len() as f64,
            Self::ErdosRenyi => layer.inputs as f64 + layer.outputs as f64,
        }
    }
}

/// The count of a layer that is not settled.
const OPEN: usize = usize::MAX;

#[cfg(test)]
mod tests {
    use super::Allocation::{ErdosRenyi, Uniform};
    use super::*;
    use crate::base::rng::Rng;

    fn share(rule: Allocation, widths: &[usize], count: usize, least: usize) -> [usize; 4] {
        let mut counts = [0; 4];
        let net = Mlp::new(widths).unwrap();
        rule.share(&net, count, Bounds::at_least(least), &mut counts[..widths.len() - 1]).unwrap();
        counts
    }

    #[test]
    fn counts_add_up_within_what_layers_have() {
        let mut rng = Rng::new(1, 0);
        for _ in 0..2000 {
            let widths: [usize; 5] = core::array::from_fn(|_| 1 + rng.below(30) as usize);
            let net = Mlp::new(&widths).unwrap();
            let count = 4 + rng.below(net.weights() as u32 - 3) as usize;
            for rule in [Uniform, ErdosRenyi] {
                let counts = share(rule, &widths, count, 1);
                assert_eq!(counts.iter().sum::<usize>(), count, "{widths:?}");
                let fits =
                    |(own, layer): (&usize, LayerShape)| (1..=layer.weights().len()).contains(own);
                assert!(counts.iter().zip(net.layers()).all(fits), "{widths:?} {counts:?}");
            }
        }
    }

    #[test]
    fn erdos_renyi_fills_small_layers_first() {
        assert_eq!(share(Uniform, &[100, 100, 10], 1100, 1)[..2], [1000, 100]);
        // 200 : 110 of 1100 weights.
        assert_eq!(share(ErdosRenyi, &[100, 100, 10], 1100, 1)[..2], [710, 390]);
        assert_eq!(share(ErdosRenyi, &[100, 100, 10], 5000, 1)[..2], [4000, 1000]);
        assert_eq!(share(Uniform, &[100, 100, 2], 60, 10)[..2], [50, 10]);
    }

    #[test]
    fn counts_that_cannot_be_are_refused() {
        let net = Mlp::new(&[3, 2, 2]).unwrap();
        let refused = |count, places| {
            let counts = &mut [0; 3][..places];
            Uniform.share(&net, count, Bounds::at_least(1), counts).is_err()
        };
        assert!(refused(1, 2) && refused(11, 2) && refused(5, 3) && !refused(10, 2));
        let within = |count, most: &[usize]| {
            let bounds = Bounds { least: 1, most: Some(most) };
            Uniform.share(&net, count, bounds, &mut [0; 2])
        };
        assert!(
            within(6, &[5, 0]).is_err() && within(5, &[5]).is_err() && within(5, &[5, 0]).is_ok()
        );
    }
}
