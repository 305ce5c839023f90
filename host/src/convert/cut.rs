//! Which weights of an imported network stay: the largest by what they do.

use crate::base::check_setting;
use crate::convert::{Dense, Spread};
use crate::train::Budget;
use crate::{Error, Result};

/// Which weights the model has.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Cut {
    /// All that are not 0.
    #[default]
    None,
    /// The largest over all layers, to this budget, which includes biases.
    Size(Budget),
    /// Those of at least this absolute value.
    Threshold(f32),
}

/// Sets the smaller weights to 0, never biases; the nonzeros asked for, of all layers.
pub(super) fn cut(
    layers: &mut [Dense],
    cut: Cut,
    dense: usize,
    columns: Option<&[Spread]>,
) -> Result<Option<usize>> {
    let fixed = layers.iter().flat_map(|layer| &layer.bias).filter(|&&b| b != 0.0).count();
    let size = match cut {
        Cut::None => return Ok(None),
        Cut::Threshold(least) => {
            let help = "weights of a smaller absolute value are left out";
            let is_fine = least.is_finite() && least >= 0.0;
            check_setting(is_fine, "--threshold of 0 or more", least, help)?;
            let weights = layers.iter_mut().flat_map(|layer| &mut layer.weights);
            weights.filter(|w| w.abs() < least).for_each(|w| *w = 0.0);
            return Ok(None);
        }
        Cut::Size(size) => size.count(dense, 1)?,
    };
    let mut sizes: Vec<u32> = Vec::new();
    each_worth(layers, columns, |worth, _| sizes.push(worth));
    let most = sizes.len() + fixed;
    if size > most || size < fixed.max(1) {
        let what = match fixed {
            0 => String::new(),
            _ => format!(", of which {fixed} are biases, which are kept"),
        };
        return Err(Error::new("the model cannot have as many nonzeros as asked for")
            .expected(format_args!("{} to {most} nonzeros{what}", fixed.max(1)))
            .got(format_args!("{size} asked for"))
            .help("choose another --nnz or --density, or leave both out for all nonzeros"));
    }
    let (room, whole) = (size - fixed, layers.to_vec());
    // Whether neurons without a bias get one for what went.
    let (mut keep, mut makes) = (room, true);
    while keep < sizes.len() {
        keep_largest(layers, columns, &mut sizes, keep);
        if let (Some(columns), [first, ..], [before, ..]) = (columns, &mut *layers, &whole[..]) {
            shift(first, &before.weights, columns, makes);
        }
        let beyond = nonzeros(layers).saturating_sub(size);
        if beyond == 0 {
            break;
        }
        // Biases that this made count, too; where they would take more than half, none are made.
        layers.clone_from_slice(&whole);
        keep = keep.saturating_sub(beyond);
        if keep == 0 || 2 * keep < room {
            (keep, makes) = (room, false);
        }
    }
    Ok(Some(size))
}

fn nonzeros(layers: &[Dense]) -> usize {
    let numbers = layers.iter().flat_map(|layer| layer.weights.iter().chain(&layer.bias));
    numbers.filter(|&&number| number != 0.0).count()
}

/// Sets all weights but so many to 0, those that do least; of equal ones the first in the file stay.
fn keep_largest(layers: &mut [Dense], columns: Option<&[Spread]>, sizes: &mut [u32], keep: usize) {
    let (larger, &mut edge, _) = sizes.select_nth_unstable_by(keep, |a, b| b.cmp(a));
    let mut equal = larger.iter().filter(|&&w| w == edge).count();
    each_worth(layers, columns, |own, w| {
        if own == edge && equal > 0 {
            equal -= 1;
        } else if own <= edge {
            *w = 0.0;
        }
    });
}

/// Gives each weight that is not 0 with the bits of what it does: its absolute value, times the size of its
/// column in the first layer.
fn each_worth(
    layers: &mut [Dense],
    columns: Option<&[Spread]>,
    mut see: impl FnMut(u32, &mut f32),
) {
    for (l, layer) in layers.iter_mut().enumerate() {
        let columns = columns.filter(|_| l == 0);
        let inputs = layer.inputs.max(1);
        for (at, w) in layer.weights.iter_mut().enumerate().filter(|(_, w)| **w != 0.0) {
            let size = columns.map_or(1.0, |columns| columns[at % inputs].size);
            see(((f64::from(w.abs()) * size) as f32).to_bits(), w);
        }
    }
}

/// Adds to biases what the weights that went did at the centres of their columns; to those that are 0 only
/// where this may make biases.
fn shift(layer: &mut Dense, before: &[f32], columns: &[Spread], makes: bool) {
    let inputs = layer.inputs.max(1);
    if layer.bias.is_empty() && makes {
        layer.bias = vec![0.0; layer.outputs];
    }
    let rows = layer.weights.chunks_exact(inputs).zip(before.chunks_exact(inputs));
    for ((own, before), bias) in
        rows.zip(&mut layer.bias).filter(|(_, bias)| makes || **bias != 0.0)
    {
        let gone = own
            .iter()
            .zip(before)
            .zip(columns)
            .filter(|((own, before), _)| **own == 0.0 && **before != 0.0);
        let sum: f64 = gone.map(|((_, w), column)| f64::from(*w) * column.centre).sum();
        *bias = (f64::from(*bias) + sum) as f32;
    }
}

pub(super) fn check_spreads(spreads: Option<&[Spread]>, layers: &[Dense]) -> Result<()> {
    let inputs = layers.first().map_or(0, |layer| layer.inputs);
    let Some(spreads) = spreads else { return Ok(()) };
    let is_fine = |of: &Spread| of.size >= 0.0 && of.size.is_finite() && of.centre.is_finite();
    if spreads.len() == inputs && spreads.iter().all(is_fine) {
        return Ok(());
    }
    Err(Error::new("the data do not fit the network")
        .expected(format_args!("{inputs} columns of finite numbers"))
        .got(format_args!("{} columns", spreads.len()))
        .help("pass the rows that the network takes, before any scaling"))
}

/// What to say of a layer that has fewer weights than neurons.
pub(super) fn starved(layer: &Dense, is_ranked: bool) -> Option<String> {
    let inputs = layer.inputs.max(1);
    let is_empty = |row: &&[f32]| row.iter().all(|&w| w == 0.0);
    let empty = layer.weights.chunks_exact(inputs).filter(is_empty).count();
    let Dense { name, outputs, .. } = layer;
    let help = match is_ranked {
        true => "pass a larger --nnz",
        false => "pass --data ROWS to rank weights by what they do, or a larger --nnz",
    };
    (2 * empty >= *outputs && empty > 0).then(|| {
        format!(
            "warning: layer {name} is starved: {empty} of its {outputs} neurons have no weight; {help}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One neuron of two columns, the second of which is a thousand times as large, around 5000: `0.5 (x - 1) +
    /// 2 (x - 5000) / 1000 + 0.25`.
    fn layer() -> Dense {
        Dense {
            name: "0".into(),
            inputs: 2,
            outputs: 1,
            weights: vec![0.5, 0.002],
            bias: vec![0.25 - 0.5 - 10.0],
            relu: false,
        }
    }

    #[test]
    fn weights_are_ranked_by_what_they_do() {
        let spreads = [(1.0, 1.0), (5000.0, 1000.0)].map(|(centre, size)| Spread { centre, size });
        let mut layers = [layer()];
        let size = Cut::Size(Budget::Nonzeros(2));
        assert_eq!(cut(&mut layers, size, 3, Some(&spreads)).unwrap(), Some(2));
        // A neuron without a bias gets one, which counts.
        let mut plain = [Dense { bias: Vec::new(), ..layer() }];
        cut(&mut plain, Cut::Size(Budget::Nonzeros(1)), 3, Some(&spreads)).unwrap();
        let nonzeros = plain[0].weights.iter().chain(&plain[0].bias).filter(|&&w| w != 0.0);
        assert_eq!(nonzeros.count(), 1);
        assert_eq!(layers[0].weights, [0.0, 0.002]);
        // What is left is that of scaled rows without the first column.
        assert!((layers[0].bias[0] - (0.25 - 10.0)).abs() < 1e-5, "{layers:?}");
        // By size alone the other one stays, and the bias is what it was.
        let mut layers = [layer()];
        cut(&mut layers, size, 3, None).unwrap();
        assert_eq!((&layers[0].weights[..], layers[0].bias[0]), (&[0.5, 0.0][..], layer().bias[0]));
        assert!(check_spreads(Some(&spreads[..1]), &layers).is_err());
        assert!(
            check_spreads(Some(&[Spread { centre: f64::NAN, size: 1.0 }; 2]), &layers).is_err()
        );
    }

    #[test]
    fn biases_that_a_cut_makes_are_within_the_budget() {
        let spreads = [Spread { centre: 2.0, size: 1.0 }; 3];
        let weights = |len: usize| (1..=len).map(|k| k as f32 / 10.0).collect::<Vec<_>>();
        let hidden =
            Dense { inputs: 3, outputs: 10, weights: weights(30), bias: Vec::new(), ..layer() };
        let last = Dense { inputs: 10, outputs: 1, weights: weights(10), ..hidden.clone() };
        for size in 1..40 {
            let mut layers = [hidden.clone(), last.clone()];
            cut(&mut layers, Cut::Size(Budget::Nonzeros(size)), 40, Some(&spreads)).unwrap();
            let kept = layers.iter().flat_map(|layer| &layer.weights).filter(|&&w| w != 0.0);
            let (all, kept) = (nonzeros(&layers), kept.count());
            assert!(all <= size && all + 3 > size && 2 * kept >= size, "{size}: {all} {kept}");
        }
        // Where biases would take too much, those that are there still have the effect of what went.
        let own = Dense { bias: [0.0, 1.0].repeat(5), ..hidden.clone() };
        let mut layers = [own, last.clone()];
        cut(&mut layers, Cut::Size(Budget::Nonzeros(10)), 50, Some(&spreads)).unwrap();
        let bias = &layers[0].bias;
        let [none, some] = [0, 1].map(|from| bias.iter().skip(from).step_by(2));
        // The last one keeps its weights.
        let changed = some.filter(|b| **b > 1.0).count();
        assert!(none.copied().all(|b| b == 0.0) && changed == 4, "{bias:?}");
        // As many as there are biases, which stay.
        let own = Dense { bias: vec![0.5; 10], ..hidden };
        let mut layers = [own, last];
        cut(&mut layers, Cut::Size(Budget::Nonzeros(10)), 50, Some(&spreads)).unwrap();
        assert!(nonzeros(&layers) <= 10 && layers[0].weights.iter().all(|&w| w == 0.0));
    }

    #[test]
    fn layers_with_few_weights_are_starved() {
        let weights = vec![1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let mut layer = Dense { outputs: 3, weights, bias: vec![0.0; 3], ..layer() };
        assert!(starved(&layer, false).unwrap().contains("2 of its 3 neurons"));
        layer.weights[2] = 1.0;
        assert_eq!(starved(&layer, true), None);
    }
}
