//! Problems for several outputs, what a run leaves of them, and the gradient in dense arithmetic of
//! double precision.

use tamis::base::budget::gated_words;
use tamis::base::dims::Dims;
use tamis::base::rng::{Rng, stream};
use tamis::data::samples::Rows;
use tamis::learn::loss::Labels;
use tamis::learn::start::{Start, continue_if};
use tamis::learn::train::{Info, Progress, Schedule, SeveralOutputs, run};
use tamis::network::net::Network;
use tamis::network::weights::Weights;
use tamis::operator::gated::Gated;

/// Rows, inputs, neurons, outputs, and the weights that a run may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) n: usize,
    pub(super) d: usize,
    pub(super) m: usize,
    pub(super) c: usize,
    pub(super) s: usize,
}

/// Sizes, rows and labels.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    pub(super) sizes: Sizes,
    pub(super) x: Vec<f32>,
    pub(super) y: Vec<f32>,
    pub(super) classes: Vec<u16>,
}

/// Flat weights of a whole network, zeros included.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Dense {
    pub(super) w: Vec<f64>,
    pub(super) wt: Vec<f64>,
}

impl Dense {
    pub(super) fn of(net: Network<'_>) -> Self {
        let fill = |side: Weights<'_>| {
            let mut all = vec![0.0; side.inputs() * side.hidden()];
            for (&j, &v) in side.index().iter().zip(side.value()) {
                all[j as usize] = f64::from(v);
            }
            all
        };
        Self { w: fill(net.w()), wt: fill(net.wt()) }
    }
}

/// What a run leaves.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) index: Vec<u32>,
    pub(super) bits: Vec<u32>,
    pub(super) dense: Dense,
    pub(super) info: Info,
    pub(super) undone: u32,
}

impl Found {
    pub(super) fn network(&self) -> (&[u32], &[u32]) {
        (&self.index, &self.bits)
    }
}

impl Problem {
    pub(super) fn new(sizes: Sizes, seed: u64) -> Self {
        let Sizes { n, d, c, .. } = sizes;
        let mut rng = Rng::new(seed, stream::USER);
        let x: Vec<f32> = (0..n * d).map(|_| rng.normal()).collect();
        // Three neurons of two weights, each to one output.
        let mut y = vec![0.0; n * c];
        let neurons: Vec<_> = (0..3)
            .map(|i| {
                let pick = |r: &mut Rng| (r.below(d as u32) as usize, r.normal() + 1.0);
                (pick(&mut rng), pick(&mut rng), i % c)
            })
            .collect();
        for (row, y) in x.chunks(d).zip(y.chunks_mut(c)) {
            for &((j, a), (k, b), o) in &neurons {
                y[o] += (a * row[j] + b * row[k]).max(0.0);
            }
        }
        let classes = y.chunks(c).map(|y| tamis::learn::loss::best(y) as u16).collect();
        Self { sizes, x, y, classes }
    }

    pub(super) fn goal(&self, values: bool) -> Labels<'_> {
        if values { Labels::values(&self.y) } else { Labels::classes(&self.classes, self.sizes.c) }
    }

    pub(super) fn train(
        &self,
        goal: Labels<'_>,
        schedule: &Schedule<'_, SeveralOutputs>,
        panel: usize,
        words: isize,
        mut observe: impl FnMut(&Progress<'_>) -> bool,
    ) -> tamis::Result<Found> {
        let Sizes { n, d, m, c, s } = self.sizes;
        let mut row = vec![0.0; gated_words(d, m)];
        let mut sensing = Gated::new(Rows::new(&self.x, d)?, m, panel, &mut row)?;
        let dims = Dims::new(n, d, m, s);
        let mut budget = schedule.budget(dims, c, panel.min(m), 0);
        budget.scratch = tamis::operator::factored::Factored::net_scratch(&sensing, budget.batch);
        // What memory held before must not matter.
        let mut memory = vec![0x7fc0_4321; budget.words().saturating_add_signed(words)];
        let observe = |progress: &Progress<'_>| continue_if(observe(progress));
        let done = run(&mut sensing, goal, s, Start::Zero, schedule, &mut memory, observe)?;
        let (w, wt) = (done.network.w(), done.network.wt());
        let index = w.index().iter().chain(wt.index()).copied().collect();
        let bits = w.value().iter().chain(wt.value()).map(|v| v.to_bits()).collect();
        Ok(Found {
            index,
            bits,
            dense: Dense::of(done.network),
            info: done.info,
            undone: done.info.undone,
        })
    }

    /// The gradient, dense, of a network on all rows, downhill, where random values stand for empty
    /// blocks, and the network with them. Gates are of the generators, or of the weights.
    pub(super) fn gradient(
        &self,
        at: &Dense,
        values: bool,
        standin: Option<u64>,
        generators: Option<&[f64]>,
    ) -> (Dense, Dense) {
        let Sizes { n, d, m, c, .. } = self.sizes;
        let mut with = at.clone();
        if let Some(seed) = standin {
            for (which, (side, width)) in
                [(&mut with.w, d), (&mut with.wt, c)].into_iter().enumerate()
            {
                let bound = 1.0 / ((width * m) as f32).sqrt();
                for (i, block) in side.chunks_mut(width).enumerate() {
                    if block.iter().all(|&v| v == 0.0) {
                        let mut rng = Rng::new(seed, stream::STANDIN + 2 * i as u64 + which as u64);
                        block
                            .iter_mut()
                            .for_each(|v| *v = f64::from(bound * (2.0 * rng.uniform() - 1.0)));
                    }
                }
            }
        }
        let z = |w: &[f64], row: &[f32]| -> f64 {
            w.iter().zip(row).map(|(w, x)| w * f64::from(*x)).sum()
        };
        // Activations, and which gates are open.
        let act = |w: &[f64], row: &[f32]| -> Vec<(f64, bool)> {
            let gates = generators.unwrap_or(w).chunks(d).map(|h| z(h, row) > 0.0);
            w.chunks(d)
                .zip(gates)
                .map(|(w, open)| (if open { z(w, row) } else { 0.0 }, open))
                .collect()
        };
        let mut g = Dense { w: vec![0.0; m * d], wt: vec![0.0; m * c] };
        for (k, row) in self.x.chunks(d).enumerate() {
            let mut out = vec![0.0; c];
            for ((a, _), wt) in act(&at.w, row).iter().zip(at.wt.chunks(c)) {
                out.iter_mut().zip(wt).for_each(|(o, v)| *o += a * v);
            }
            let r: Vec<f64> = if values {
                out.iter().zip(&self.y[k * c..]).map(|(o, y)| f64::from(*y) - o).collect()
            } else {
                let total: f64 = out.iter().map(|o| o.exp()).sum();
                let own = |o: usize| if o == usize::from(self.classes[k]) { 1.0 } else { 0.0 };
                out.iter().enumerate().map(|(o, v)| own(o) - v.exp() / total).collect()
            };
            let hidden = act(&with.w, row);
            let blocks = hidden.iter().zip(with.wt.chunks(c));
            for (((a, open), wt), (gw, gwt)) in
                blocks.zip(g.w.chunks_mut(d).zip(g.wt.chunks_mut(c)))
            {
                let back: f64 = wt.iter().zip(&r).map(|(v, r)| v * r).sum();
                let open = if *open { back / n as f64 } else { 0.0 };
                gw.iter_mut().zip(row).for_each(|(g, x)| *g += open * f64::from(*x));
                gwt.iter_mut().zip(&r).for_each(|(g, r)| *g += a * r / n as f64);
            }
        }
        (g, with)
    }
}
