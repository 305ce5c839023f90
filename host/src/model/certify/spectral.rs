//! Upper bounds of spectral norms, and the bound of a difference by their product.
//!
//! Power iteration gives a lower bound. This is an upper one: of a symmetric matrix `G`,
//! `|G|_2^2 = |G^2|_2 <= |G^2|_F`, so squared k times `|G|_2 <= |G^(2^k)|_F^(1/2^k)`, which is above
//! `|G|_2` by at most the factor `m^(1/2^(k+1))` for m rows. What rounding may add in each square is
//! added to the norm on the way back.

use super::bounds::Analysis;
use super::pair::{Pair, Side};
use super::rows::Rows;

/// Squares of the Gram matrix: for 1000 rows `|W|_2` is at most 0.2 % above.
const SQUARES: u32 = 10;
/// Products that the squares of one matrix may take; beyond, norms of rows and columns bound it.
const MOST_PRODUCTS: f64 = 3e9;

/// Upper bounds of the spectral norms of one layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Norms {
    a: f64,
    b: f64,
    change: f64,
}

impl Norms {
    /// Those of every layer.
    pub(super) fn all(pair: &Pair) -> Vec<Self> {
        let layers = pair.layers.iter();
        layers
            .map(|layer| {
                let (rows, width) = (layer.a.neurons.len(), layer.inputs);
                let norm = |of: &Rows| norm(of, rows, width);
                let (a, b) = (norm(&layer.a.rows), norm(&layer.b.rows));
                // Weights in real units, and their differences, are rounded.
                let rounding = 32.0 * f64::EPSILON * (rows.min(width) as f64).sqrt();
                Self { a, b, change: norm(&layer.change) + rounding * (a + b) }
            })
            .collect()
    }
}

/// An upper bound of the spectral norm of `rows × width` weights.
fn norm(of: &Rows, rows: usize, width: usize) -> f64 {
    let small = rows.min(width);
    let (n, m) = (rows.max(width) as f64, small as f64);
    let slack = 1.0 + (n + m + 64.0) * 4.0 * f64::EPSILON;
    let (mut sums, mut most_row, mut squares) = (vec![0.0; width], 0.0_f64, 0.0);
    for row in 0..rows {
        let mut sum = 0.0;
        of.each(row, |column, w| {
            sums[column] += w.abs();
            sum += w.abs();
            squares += w * w;
        });
        most_row = most_row.max(sum);
    }
    let most_column = sums.iter().copied().fold(0.0, f64::max);
    let simple = (most_row * most_column).sqrt().min(f64::sqrt(squares))
        * (slack + (rows * width) as f64 * f64::EPSILON);
    if m * m * (n + m * f64::from(SQUARES)) > MOST_PRODUCTS || squares == 0.0 {
        return simple;
    }
    // The rows, or the columns where they are fewer.
    let mut lines = vec![vec![0.0; rows.max(width)]; small];
    for row in 0..rows {
        of.each(row, |column, w| {
            let [line, place] = if rows > width { [column, row] } else { [row, column] };
            lines[line][place] = w;
        });
    }
    let mut gram = vec![0.0; small * small];
    for (i, x) in lines.iter().enumerate() {
        for (j, y) in lines.iter().enumerate().take(i + 1) {
            let product = dot(x, y);
            (gram[i * small + j], gram[j * small + i]) = (product, product);
        }
    }
    // Products of the Gram matrix are off by at most n u |x||y|, all of it by n u |W|_F^2.
    let gram_error = n * f64::EPSILON * squares * slack;
    let largest = power(gram, small) + gram_error;
    simple.min((largest * slack).sqrt())
}

/// An upper bound of the spectral norm of a symmetric matrix.
fn power(mut matrix: Vec<f64>, m: usize) -> f64 {
    let mut scales = Vec::new();
    let size = |matrix: &[f64]| matrix.iter().map(|g| g * g).sum::<f64>().sqrt();
    for _ in 0..SQUARES {
        let scale = size(&matrix);
        if scale == 0.0 {
            break;
        }
        scales.push(scale);
        matrix.iter_mut().for_each(|g| *g /= scale);
        let mut square = vec![0.0; m * m];
        for i in 0..m {
            // Symmetric: row j is column j.
            for j in 0..=i {
                let product = dot(&matrix[i * m..(i + 1) * m], &matrix[j * m..(j + 1) * m]);
                (square[i * m + j], square[j * m + i]) = (product, product);
            }
        }
        matrix = square;
    }
    let rounding = (m as f64 + 16.0) * 4.0 * f64::EPSILON;
    let mut bound = size(&matrix) * (1.0 + rounding * m as f64);
    for scale in scales.iter().rev() {
        // The matrix that was squared has a Frobenius norm of 1.
        bound = (bound + rounding).sqrt() * scale * (1.0 + rounding * m as f64);
    }
    bound
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (x_chunks, y_chunks) = (x.chunks_exact(8), y.chunks_exact(8));
    let rest = x_chunks.remainder().iter().zip(y_chunks.remainder());
    let rest: f64 = rest.map(|(x, y)| x * y).sum();
    for (x, y) in x_chunks.zip(y_chunks) {
        for lane in 0..8 {
            sums[lane] += x[lane] * y[lane];
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// The bound of the largest difference of any output by the product of spectral norms:
/// `|D_l| <= |W'_l| |D_(l-1)| + |W'_l - W_l| |h_(l-1)| + |b'_l - b_l|`, with `|h|` bounded likewise,
/// and what rounding and cuts add.
pub(super) fn bound(analysis: &Analysis<'_>, norms: &[Norms]) -> f64 {
    let pair = analysis.pair;
    let length = |terms: &mut dyn Iterator<Item = f64>| {
        let (mut squares, mut count) = (0.0, 64.0);
        for term in terms {
            squares += term * term;
            count += 1.0;
        }
        f64::sqrt(squares) * (1.0 + count * f64::EPSILON)
    };
    let sizes: Vec<_> = analysis.inputs.iter().map(|input| input.sizes()).collect();
    let mut hidden = length(&mut sizes.iter().map(|[a, ..]| *a));
    let mut change = length(&mut sizes.iter().map(|[.., d]| *d));
    let added = |side: &Side| length(&mut side.neurons.iter().map(|of| of.bias));
    for ((layer, stage), norms) in pair.layers.iter().zip(&analysis.stages).zip(norms) {
        let neurons = || stage.neurons.iter().enumerate();
        let biases = layer.a.neurons.iter().zip(&layer.b.neurons);
        let moved = length(
            &mut biases
                .map(|(a, b)| [a.bias, b.bias])
                .map(|[a, b]| (b - a).abs() + 4.0 * f64::EPSILON * (a.abs() + b.abs())),
        );
        let rounding_a = length(&mut neurons().map(|(j, neuron)| stage.round_a[j] + neuron.half_a));
        let rounding_b = length(&mut neurons().map(|(j, neuron)| stage.round_b[j] + neuron.half_b));
        let over = |high: f64, cap: f64| if high > cap { high - cap } else { 0.0 };
        let cuts = length(&mut neurons().map(|(j, neuron)| match layer.a.relu || layer.b.relu {
            true => {
                over(neuron.a.high, layer.a.neurons[j].cap)
                    + over(neuron.b.high, layer.b.neurons[j].cap)
            }
            false => 0.0,
        }));
        // Of different activations relu may take off all that is negative.
        let kinds = length(&mut neurons().map(|(_, neuron)| match layer.a.relu == layer.b.relu {
            true => 0.0,
            false => (-neuron.a.low).max(-neuron.b.low).max(0.0),
        }));
        change = norms.b * change + norms.change * hidden + moved + rounding_a + rounding_b;
        change = (change + cuts + kinds) * (1.0 + 64.0 * f64::EPSILON);
        hidden = norms.a * hidden + added(&layer.a) + rounding_a;
        hidden *= 1.0 + 64.0 * f64::EPSILON;
    }
    let last = analysis.stages.last();
    let rounding = last.map_or(0.0, |stage| {
        let outputs = stage.neurons.iter();
        let of = |neuron: &super::relax::Neuron| {
            neuron.out_a.size() * pair.a.output + neuron.out_b.size() * pair.b.output
        };
        // Outputs below the normal range of 32-bit floats are off by that much.
        outputs.map(of).fold(0.0, f64::max) + 2.0 * f64::from(f32::MIN_POSITIVE)
    });
    ((change + rounding) * (1.0 + 64.0 * f64::EPSILON)).next_up()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::certify::rows::Entry;

    #[test]
    fn norms_are_above_and_close_to_the_spectral_norm() {
        // 40 × 3 with orthogonal columns of lengths 5, 4 and 3, and its transpose.
        let row = |j: usize| {
            let at = j % 3;
            let length = [5.0, 4.0, 3.0][at] / [14.0_f64, 13.0, 13.0][at].sqrt();
            vec![Entry {
                column: at as u32,
                value: if j.is_multiple_of(2) { length } else { -length },
            }]
        };
        let rows: Vec<_> = (0..40).map(row).collect();
        let mut columns = vec![Vec::new(); 3];
        for (j, row) in rows.iter().enumerate() {
            columns[row[0].column as usize].push(Entry { column: j as u32, value: row[0].value });
        }
        for (rows, width) in [(rows, 3), (columns, 40)] {
            let bound = norm(&Rows::new(&rows, width), rows.len(), width);
            assert!((5.0..5.01).contains(&bound), "{bound}");
        }
        assert_eq!(norm(&Rows::new(&[vec![], vec![]], 2), 2, 2), 0.0);
    }

    #[test]
    fn simple_norms_do_without_a_gram_matrix() {
        let rows: Vec<_> = (0..4000).map(|j| vec![Entry { column: j, value: 2.0 }]).collect();
        let bound = norm(&Rows::new(&rows, 4000), 4000, 4000);
        assert!((2.0..2.000_001).contains(&bound), "{bound}");
    }
}
