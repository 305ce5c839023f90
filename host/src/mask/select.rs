//! Which weights are kept by their scores: the counts of the layers first, then the weights of each.

use std::ops::Range;

use tamis::base::rng::CounterRng;
use tamis::network::mask::allocate::{Allocation, Bounds};
use tamis::network::mask::select::{BINS, Choice, Scores, above, cut, sampled};
use tamis::network::mask::{LayerShape, Mlp};

use super::options::Scope;
use crate::{Error, Result};

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Selection {
    /// Weights over all layers.
    pub(super) count: usize,
    pub(super) choice: Choice,
    pub(super) scope: Scope,
    pub(super) allocation: Allocation,
    /// Weights that a layer keeps at least.
    pub(super) least: usize,
}

/// Scores of some weights.
struct Stored<'a> {
    first: usize,
    scores: &'a [f32],
}

impl Scores for Stored<'_> {
    fn each(&mut self, mut take: impl FnMut(u32, f32)) {
        (self.first as u32..).zip(self.scores).for_each(|(index, &score)| take(index, score));
    }
}

/// Scores as keys of a sample.
struct Drawn<'a> {
    stored: Stored<'a>,
    rng: CounterRng,
}

impl Scores for Drawn<'_> {
    fn each(&mut self, mut take: impl FnMut(u32, f32)) {
        let rng = self.rng;
        self.stored.each(|index, score| take(index, sampled(score, &rng, index)));
    }
}

/// Flat indices of the weights that are kept, rising.
pub(super) fn select(
    net: &Mlp<'_>,
    scores: &[f32],
    selection: &Selection,
    rng: CounterRng,
) -> Result<Vec<u32>> {
    let counts = counts(net, scores, selection)?;
    let mut bins = vec![0; BINS];
    let mut index = Vec::with_capacity(selection.count);
    for (layer, &count) in net.layers().zip(&counts) {
        let range = layer.weights();
        let stored = stored(scores, range.clone());
        let mut keep = |at| index.push(at);
        let named = |error| too_few(error, &format!("layer {}", layer.number + 1));
        match selection.choice {
            Choice::Largest => {
                let mut stored = stored;
                let mut own = cut(&mut stored, count, &mut bins).map_err(named)?;
                above(&mut stored, &mut own, &mut keep);
            }
            Choice::Sampled => {
                let mut drawn = Drawn { stored, rng };
                let mut own = cut(&mut drawn, count, &mut bins).map_err(named)?;
                above(&mut drawn, &mut own, &mut keep);
            }
        }
    }
    Ok(index)
}

fn stored(scores: &[f32], range: Range<usize>) -> Stored<'_> {
    Stored { first: range.start, scores: &scores[range] }
}

/// How many weights each layer keeps.
fn counts(net: &Mlp<'_>, scores: &[f32], selection: &Selection) -> Result<Vec<usize>> {
    let &Selection { count, scope, allocation, least, .. } = selection;
    let mut counts = vec![0; net.layers().len()];
    match scope {
        Scope::Layer => {
            // Scores that are no numbers are found later; a layer without scores is refused then.
            let scored = |layer: LayerShape| {
                let own = scores[layer.weights()].iter();
                own.filter(|score| score.is_nan() || **score > 0.0).count()
            };
            let mut most: Vec<usize> = net.layers().map(scored).collect();
            let all: usize = most.iter().sum();
            if all < count {
                return Err(fewer_than(count, all, "the network"));
            }
            most.iter_mut().for_each(|most| *most = (*most).max(1));
            let bounds = Bounds { least, most: Some(&most) };
            allocation.share(net, count, bounds, &mut counts).map_err(|error| match error {
                tamis::Error::Range { max, .. } if max < count => too_few(error, "the network"),
                error => error.into(),
            })?;
        }
        Scope::Global => global_counts(net, scores, count, least, &mut counts)?,
    }
    Ok(counts)
}

/// Counts of the largest scores of all layers, but at least `least` of each: layers that have fewer
/// get so many, and the others share the rest, until none has fewer.
fn global_counts(
    net: &Mlp<'_>,
    scores: &[f32],
    count: usize,
    least: usize,
    counts: &mut [usize],
) -> Result<()> {
    let mut bins = vec![0; BINS];
    let mut raised = vec![false; counts.len()];
    loop {
        let fixed: usize = counts.iter().zip(&raised).filter(|(_, r)| **r).map(|(c, _)| c).sum();
        let mut open = OpenLayers { net, scores, raised: &raised };
        let left = count.checked_sub(fixed).ok_or_else(|| no_room(least, count))?;
        let mut all =
            cut(&mut open, left, &mut bins).map_err(|error| too_few(error, "the network"))?;
        for (layer, own) in net.layers().zip(&mut *counts).filter(|(l, _)| !raised[l.number]) {
            *own = 0;
            above(&mut stored(scores, layer.weights()), &mut all, |_| *own += 1);
        }
        let mut any = false;
        for (layer, own) in net.layers().zip(&mut *counts) {
            let most = scores[layer.weights()].iter().filter(|score| **score > 0.0).count();
            if !raised[layer.number] && *own < least.min(most) {
                (*own, raised[layer.number], any) = (least.min(most), true, true);
            }
        }
        if !any {
            return Ok(());
        }
    }
}

/// The scores of the layers whose counts are not raised.
struct OpenLayers<'a> {
    net: &'a Mlp<'a>,
    scores: &'a [f32],
    raised: &'a [bool],
}

impl Scores for OpenLayers<'_> {
    fn each(&mut self, mut take: impl FnMut(u32, f32)) {
        for layer in self.net.layers().filter(|layer| !self.raised[layer.number]) {
            stored(self.scores, layer.weights()).each(&mut take);
        }
    }
}

/// The layers ask for more than there is.
pub(super) fn no_room(least: usize, count: usize) -> Error {
    Error::new("the layers keep more weights at least than there are in all")
        .mismatch(
            format_args!("at most {count} over all layers"),
            format_args!("--min-layer {least}"),
        )
        .help("choose a smaller --min-layer, or a larger --density")
}

/// Of the core, which has given a weight of each layer to a path before it counts.
pub(super) fn too_few_of(error: tamis::Error, count: usize) -> Error {
    match error {
        tamis::Error::Range { max, got, .. } if got < count && max < got => {
            fewer_than(count, max + (count - got), "the network")
        }
        other => other.into(),
    }
}

fn fewer_than(count: usize, scored: usize, of: &str) -> Error {
    Error::new(format!("{of} has too few weights with a score above 0"))
        .expected(format_args!("at least {count}, the weights that are kept there"))
        .got(scored)
        .help("choose a smaller --density, or another --method, --input or --scope")
}

fn too_few(error: tamis::Error, of: &str) -> Error {
    match error {
        tamis::Error::Range { max, got, .. } => fewer_than(got, max, of),
        tamis::Error::NotFinite { at, .. } => Error::new(format!("a score of {of} is no number"))
            .mismatch("finite scores", format_args!("NaN or infinity at weight {at}"))
            .help("the weights or the data are too large: scale them"),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis::base::rng::stream;

    const NET: [usize; 3] = [10, 10, 2];

    fn scores() -> Vec<f32> {
        // The second layer's are all smaller than those of the first.
        (0..120_u32).map(|k| if k < 100 { 10.0 + (k * 37 % 100) as f32 } else { 1.0 }).collect()
    }

    fn chosen(scores: &[f32], selection: &Selection, seed: u64) -> Result<Vec<u32>> {
        let rng = CounterRng::new(seed, stream::MASK);
        select(&Mlp::new(&NET).unwrap(), scores, selection, rng)
    }

    const LARGEST: Selection = Selection {
        count: 24,
        choice: Choice::Largest,
        scope: Scope::Global,
        allocation: Allocation::Uniform,
        least: 0,
    };

    fn second(index: &[u32]) -> usize {
        index.iter().filter(|&&k| k >= 100).count()
    }

    #[test]
    fn scope_and_least_share_out_the_count() {
        let scores = scores();
        for (selection, wanted) in [
            (LARGEST, 0),
            (Selection { least: 3, ..LARGEST }, 3),
            (Selection { scope: Scope::Layer, ..LARGEST }, 4),
            (Selection { scope: Scope::Layer, allocation: Allocation::ErdosRenyi, ..LARGEST }, 9),
        ] {
            let index = chosen(&scores, &selection, 1).unwrap();
            assert_eq!((index.len(), second(&index)), (24, wanted), "{selection:?}");
            let first: Vec<f32> =
                index.iter().filter(|&&k| k < 100).map(|&k| scores[k as usize]).collect();
            assert!(first.iter().all(|&score| score >= 110.0 - first.len() as f32));
        }
    }

    #[test]
    fn samples_have_the_counts_and_follow_the_scores() {
        let scores = scores();
        let sampled = Selection { choice: Choice::Sampled, least: 3, ..LARGEST };
        let mut sums = [0.0; 2];
        for seed in 0..200 {
            let index = chosen(&scores, &sampled, seed).unwrap();
            assert_eq!((index.len(), second(&index)), (24, 3));
            sums[0] += index.iter().map(|&k| f64::from(scores[k as usize])).sum::<f64>();
        }
        // The mean score of all is 59.5, that of one drawn in proportion to it is above.
        let mean = (sums[0] / 200.0 - 3.0) / 21.0;
        assert!((66.0..76.0).contains(&mean), "{mean}");
    }

    #[test]
    fn what_cannot_be_selected_is_refused() {
        let mut scores = scores();
        let refused = |scores: &[f32], selection: Selection| {
            chosen(scores, &selection, 1).unwrap_err().to_string()
        };
        assert!(refused(&[0.0; 120], LARGEST).contains("above 0"));
        let most = refused(&scores, Selection { count: 4, least: 3, ..LARGEST });
        assert!(most.contains("at most 4"), "{most}");
        scores[7] = f32::NAN;
        assert!(refused(&scores, LARGEST).contains("no number"));
        let zeros = [&scores[..0], &[1.0; 100], &[0.0; 20]].concat();
        let by_layer = Selection { scope: Scope::Layer, ..LARGEST };
        assert!(refused(&zeros, by_layer).contains("layer 2"));
        // What a layer has no scores for goes to the others, as long as these have some.
        let few = [&[1.0; 100][..], &[0.0; 18], &[1.0; 2]].concat();
        assert_eq!(second(&chosen(&few, &by_layer, 1).unwrap()), 2);
        assert!(refused(&few, Selection { count: 103, ..by_layer }).contains("the network"));
    }
}
