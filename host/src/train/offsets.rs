//! Output biases that a trained network lacks: fitted to its outputs, which stay as they are.
//!
//! Without one, a class whose neurons are all inactive has the outputs of every other such class.

/// Steps of Newton's method for each further bias.
const STEPS: usize = 8;
/// A class whose share differs by less from its mean probability needs no bias.
const SMALL: f64 = 1e-3;

/// What to add to each of `classes` outputs to lower the mean cross-entropy: nothing to one output
/// at least, and to as few as bring all mean probabilities to the shares of the classes.
pub(crate) fn of_classes(outputs: &[f32], labels: &[f32], classes: usize) -> Vec<f64> {
    let mut biases = vec![0.0; classes];
    let mut used: Vec<usize> = Vec::new();
    let rows = labels.len().max(1) as f64;
    while used.len() + 1 < classes {
        let (gradient, _) = slopes(outputs, labels, &biases);
        let free = (0..classes).filter(|k| !used.contains(k));
        let steepest = free.max_by(|&a, &b| gradient[a].abs().total_cmp(&gradient[b].abs()));
        let Some(k) = steepest.filter(|&k| gradient[k].abs() > SMALL * rows) else { break };
        used.push(k);
        for _ in 0..STEPS {
            // Coordinate by coordinate: the curvature of one output is that of all beside it.
            let (gradient, curvature) = slopes(outputs, labels, &biases);
            for &k in &used {
                let step = gradient[k] / (curvature[k] + 1e-6 * rows);
                biases[k] -= step.clamp(-2.0, 2.0);
            }
        }
    }
    biases
}

/// First and second derivatives of the sum of cross-entropies by each bias.
fn slopes(outputs: &[f32], labels: &[f32], biases: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let classes = biases.len();
    let (mut gradient, mut curvature) = (vec![0.0; classes], vec![0.0; classes]);
    let mut row = vec![0.0; classes];
    for (own, &label) in outputs.chunks_exact(classes.max(1)).zip(labels) {
        row.iter_mut().zip(own).zip(biases).for_each(|((z, &y), b)| *z = f64::from(y) + b);
        let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        row.iter_mut().for_each(|z| *z = (*z - most).exp());
        let sum: f64 = row.iter().sum();
        for (k, &e) in row.iter().enumerate() {
            let p = e / sum;
            gradient[k] += p - f64::from(u8::from(label == k as f32));
            curvature[k] += p * (1.0 - p);
        }
    }
    (gradient, curvature)
}

/// What to add to an output of log-odds.
pub(crate) fn of_log_odds(outputs: &[f32], labels: &[f32]) -> f64 {
    // As two classes, one of which has the output 0.
    let both: Vec<f32> = outputs.iter().flat_map(|&y| [0.0, y]).collect();
    let [zero, one] = of_classes(&both, labels, 2)[..] else { return 0.0 };
    one - zero
}

/// What to add to each of several outputs that are numbers: the mean of what is missing.
pub(crate) fn of_numbers(outputs: &[f32], labels: &[f32], count: usize) -> Vec<f64> {
    let mut missing = vec![0.0; count];
    let pairs = outputs.chunks_exact(count.max(1)).zip(labels.chunks_exact(count.max(1)));
    for (y, label) in pairs {
        let terms = missing.iter_mut().zip(y.iter().zip(label));
        terms.for_each(|(sum, (&y, &label))| *sum += f64::from(label) - f64::from(y));
    }
    let rows = (labels.len() / count.max(1)).max(1) as f64;
    missing.iter().map(|sum| sum / rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_biases_match_class_shares() {
        // Outputs that say nothing: probabilities become the shares 1/2, 1/4, 1/4.
        let labels: Vec<f32> = (0..400).map(|k| [0.0, 1.0, 0.0, 2.0][k % 4]).collect();
        let biases = of_classes(&vec![0.0; 1200], &labels, 3);
        let softmax = |k: usize| biases[k].exp() / biases.iter().map(|b| b.exp()).sum::<f64>();
        let [a, b, c] = [0, 1, 2].map(softmax);
        assert!((a - 0.5).abs() < 1e-2 && (b - 0.25).abs() < 1e-2 && (c - 0.25).abs() < 1e-2);
        // One of them is enough, since two classes are alike.
        assert_eq!(biases.iter().filter(|&&b| b != 0.0).count(), 1);
        let odds =
            of_log_odds(&vec![0.0; 400], &labels.iter().map(|y| y.min(1.0)).collect::<Vec<_>>());
        assert!(odds.abs() < 1e-2, "{odds}");
        assert_eq!(of_numbers(&[1.0, 2.0, 3.0, 4.0], &[2.0, 2.0, 4.0, 5.0], 2), [1.0, 0.5]);
    }
}
