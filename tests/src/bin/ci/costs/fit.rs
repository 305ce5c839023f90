//! Prices from counts: least squares of the relative errors, with no price below 0.

/// Sweeps over all prices; a sweep that changes nothing any more is the last.
const SWEEPS: usize = 100_000;
/// A change of a price that is none, in instructions.
const STILL: f64 = 1e-7;

/// The prices `p >= 0` that minimise `sum_i ((counts_i · p - instructions_i) / instructions_i)²`,
/// by descent along one price after the other; what is never counted has the price 0.
pub(crate) fn prices(counts: &[Vec<f64>], instructions: &[f64]) -> Vec<f64> {
    let n = counts.first().map_or(0, Vec::len);
    let (mut gram, mut right) = (vec![vec![0.0; n]; n], vec![0.0; n]);
    for (row, &total) in counts.iter().zip(instructions) {
        let row: Vec<f64> = row.iter().map(|count| count / total).collect();
        for i in (0..n).filter(|&i| row[i] != 0.0) {
            right[i] += row[i];
            gram[i].iter_mut().zip(&row).for_each(|(sum, count)| *sum += row[i] * count);
        }
    }
    let mut prices = vec![0.0_f64; n];
    for _ in 0..SWEEPS {
        let mut most = 0.0_f64;
        for i in (0..n).filter(|&i| gram[i][i] > 0.0) {
            let slope: f64 =
                gram[i].iter().zip(&prices).map(|(a, p)| a * p).sum::<f64>() - right[i];
            let price = (prices[i] - slope / gram[i][i]).max(0.0);
            most = most.max((price - prices[i]).abs());
            prices[i] = price;
        }
        if most < STILL {
            break;
        }
    }
    prices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_that_explain_all_counts_are_found() {
        let counts: Vec<Vec<f64>> =
            (1..20).map(|k| vec![1.0, f64::from(k), f64::from(k * k % 7), 0.0]).collect();
        let totals: Vec<f64> =
            counts.iter().map(|row| 30.0 + 4.5 * row[1] + 2.0 * row[2]).collect();
        let found = prices(&counts, &totals);
        for (found, price) in found.iter().zip([30.0, 4.5, 2.0, 0.0]) {
            assert!((found - price).abs() < 1e-3, "{found} {price}");
        }
    }

    #[test]
    fn no_price_is_below_nought() {
        let counts = [vec![1.0, 1.0], vec![1.0, 2.0], vec![1.0, 3.0]];
        let found = prices(&counts, &[30.0, 20.0, 10.0]);
        assert!(found[0] > 0.0 && found[1] == 0.0, "{found:?}");
    }
}
