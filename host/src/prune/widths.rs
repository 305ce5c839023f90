//! How many neurons suit a number of nonzeros.

/// Neurons of each hidden layer, given all widths, for so many nonzeros s: `0.9 sqrt(s)` in the
/// first and 0.6 times as many in the others. No more than there are; where inputs are few, more,
/// until their dense layers have twice as many weights as stay.
pub(super) fn automatic(widths: &[usize], nnz: usize) -> Vec<usize> {
    let hidden = &widths[1..widths.len() - 1];
    let mut first = 0.9 * (nnz as f64).sqrt();
    loop {
        let width = |l: usize| if l == 0 { first } else { 0.6 * first };
        let own = |(l, &most): (usize, &usize)| (width(l).round() as usize).clamp(1, most);
        let own: Vec<usize> = hidden.iter().enumerate().map(own).collect();
        let all = [&widths[..1], &own, &widths[widths.len() - 1..]].concat();
        let weights: usize = all.windows(2).map(|pair| pair[0] * pair[1]).sum();
        if weights >= 2 * nnz || own == hidden {
            return own;
        }
        first *= 1.1;
    }
}
