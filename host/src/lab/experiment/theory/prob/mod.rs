//! Pruned random matrices and networks (paper PROB: J. Qian and D. Klabjan, 2021).
//!
//! ```text
//! Table 2     B n1×n2, entries U[-K/√n, K/√n], n = max(n1, n2):  law of |B|_2
//! Table 3     C = E|A|_2 / (max_i √(Σ_j E A_ij²) + max_j √(Σ_i E A_ij²) + (Σ E A_ij⁴)^(1/4))
//! exponents   |W - Ŵ|_2 of an inner layer and sup over the unit ball of |f - F|, against the width
//! Lemma 1     order statistics of squares of uniform numbers
//! Lemma 6     the fullest of n bins with n ln n balls
//! Lemma 7     |convolution|_2 by its frequencies
//! ```

mod convolution;
mod counting;
mod entries;
mod matrices;
mod networks;

pub(super) use convolution::convolution;
pub(super) use counting::{balls, order};
pub(super) use matrices::{Draws, constant, norms};
pub(super) use networks::{Pruned, pruned};
