//! Scores of the entries of the dense network, a panel at a time, by which
//! [`Top`](crate::network::top::Top) selects the s largest: those of hard thresholding,
//! `w + eta g`, of growth by the gradient, of masks and pruning. A panel's scores take the place of
//! its gradient, since a panel is the largest memory of a step.

use crate::network::weights::Weights;
use core::ops::Range;

/// Some whole blocks of the dense network, of which the nonzero weights are known.
#[derive(Debug, Clone)]
pub struct Panel<'a> {
    /// Which blocks, p of them.
    pub blocks: Range<usize>,
    /// The weights of the network, those of other blocks too.
    pub weights: Weights<'a>,
}

impl Panel<'_> {
    /// The flat index of its first entry.
    #[must_use]
    pub const fn first(&self) -> usize {
        self.blocks.start.saturating_mul(self.weights.inputs())
    }

    /// Its nonzero weights: the place in the panel, and the value.
    pub fn entries(&self) -> impl Iterator<Item = (usize, f32)> {
        let index = self.weights.index();
        let at =
            |block: usize| index.partition_point(|&j| (j as usize) < block * self.weights.inputs());
        let range = at(self.blocks.start)..at(self.blocks.end);
        let first = self.first();
        let index = index.get(range.clone()).unwrap_or(&[]).iter();
        let value = self.weights.value().get(range).unwrap_or(&[]).iter();
        index.zip(value).map(move |(&j, &w)| (j as usize - first, w))
    }
}

/// What ranks entries: the larger the magnitude of a score the better, and 0 for what is not to be
/// selected.
///
/// ```
/// use tamis::network::{score::{Panel, Score}, top::Top, weights::Weights};
/// /// `|w g|`: what the loss is likely to gain or lose with the weight (N. Lee et al., SNIP, 2019).
/// struct Snip;
/// impl Score for Snip {
///     fn panel(&self, panel: &Panel<'_>, entries: &mut [f32]) {
///         let mut weights = panel.entries().peekable();
///         for (at, entry) in entries.iter_mut().enumerate() {
///             let w = weights.next_if(|(place, _)| *place == at).map_or(0.0, |(_, w)| w);
///             *entry = (w * *entry).abs();
///         }
///     }
/// }
/// let weights = Weights::new(3, 2, &[1, 3, 5], &[1.0, -2.0, 3.0]).unwrap();
/// let (mut index, mut value) = ([0; 2], [0.0; 2]);
/// let mut top = Top::new(&mut index, &mut value);
/// for (blocks, mut gradient) in [(0..1, [9.0, 4.0, 9.0]), (1..2, [1.0, 9.0, 1.0])] {
///     let panel = Panel { blocks, weights };
///     Snip.panel(&panel, &mut gradient);
///     top.offer(panel.first(), &gradient);
/// }
/// assert_eq!(top.finish(), Some(2));
/// assert_eq!((index, value), ([1, 5], [4.0, 3.0]));
/// ```
pub trait Score {
    /// Turns the gradient of a panel, length p·d, into its scores.
    fn panel(&self, panel: &Panel<'_>, entries: &mut [f32]);
}

/// `w + eta g`: where a gradient step leads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GradientStep {
    /// eta, the length of the step.
    pub step_size: f32,
}

impl Score for GradientStep {
    fn panel(&self, panel: &Panel<'_>, entries: &mut [f32]) {
        entries.iter_mut().for_each(|g| *g *= self.step_size);
        for (at, w) in panel.entries() {
            if let Some(entry) = entries.get_mut(at) {
                *entry += w;
            }
        }
    }
}

/// `g / c` off the support and 0 on it: what new weights could win, c being the sizes of the
/// inputs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth<'a> {
    /// c, length d; 0 for an input that gets no weights.
    pub scales: &'a [f32],
    /// Rows that the gradient is a sum over.
    pub rows: f32,
}

impl Score for Growth<'_> {
    fn panel(&self, panel: &Panel<'_>, entries: &mut [f32]) {
        for block in entries.chunks_mut(self.scales.len().max(1)) {
            for (g, c) in block.iter_mut().zip(self.scales) {
                *g = if *c > 0.0 { *g / (c * self.rows) } else { 0.0 };
            }
        }
        for (at, _) in panel.entries() {
            if let Some(entry) = entries.get_mut(at) {
                *entry = 0.0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: [u32; 4] = [1, 4, 5, 11];
    const VALUE: [f32; 4] = [1.0, -2.0, 0.5, 3.0];

    fn panel(blocks: Range<usize>) -> Panel<'static> {
        Panel { blocks, weights: Weights::new(3, 4, &INDEX, &VALUE).unwrap() }
    }

    #[test]
    fn panel_holds_weights_of_its_blocks_only() {
        assert!(panel(1..3).entries().eq([(1, -2.0), (2, 0.5)]));
        assert!(panel(0..4).entries().eq([(1, 1.0), (4, -2.0), (5, 0.5), (11, 3.0)]));
        assert!(panel(2..3).entries().eq([]));
    }

    #[test]
    fn gradient_step_adds_to_weights_growth_skips_them() {
        let mut entries = [1.0, 2.0, 3.0, f32::NAN, 5.0, 6.0];
        GradientStep { step_size: 0.5 }.panel(&panel(1..3), &mut entries);
        assert_eq!(entries[..3], [0.5, -1.0, 2.0]);
        assert!(entries[3].is_nan() && entries[4..] == [2.5, 3.0]);
        let mut entries = [1.0, f32::NAN, 3.0, 4.0, 5.0, 6.0];
        Growth { scales: &[0.5, 1.0, 0.0], rows: 2.0 }.panel(&panel(1..3), &mut entries);
        assert_eq!(entries, [1.0, 0.0, 0.0, 4.0, 2.5, 0.0]);
    }
}
