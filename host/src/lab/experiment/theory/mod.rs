//! The theory of iterative hard thresholding on gated networks, checked by numbers (paper IHT,
//! sections 3 and 4).
//!
//! ```text
//! X standard normal n×d,  generators h_1 … h_m,  D_i = diag(1[X h_i > 0]),  A = [D_1 X … D_m X]
//!
//! assumption   eps = min_i tr(D_i) / n,  gamma = min_{i≠i'} |D_i - D_i'|_1 / n                  (Assumption 2)
//! curvature    alpha, beta: extreme eigenvalues of A_S^T A_S, unit columns, over supports S     (Lemma 1)
//! coverage     of neurons' gates 1[X u > 0]: how many are those of some generator                (Theorem 6)
//! recovery     y = A w*:  w <- H_s~(w + 2/(3 beta) A^T (y - A w)),  unit columns                (Theorem 1)
//!              y = G x, G Gaussian: the same without gates, where the theory is classical
//! ```
//!
//! And that of masks as sketches of products (paper SKETCH, section 4), of pruned random networks
//! (paper PROB), and of pruning in matrix sensing (paper GREEDY).

mod assumption;
mod coverage;
mod curvature;
mod generators;
mod greedy;
mod lanczos;
mod measure;
mod measured;
mod prob;
mod recovery;
mod sketch;

pub(super) use measure::measure;
