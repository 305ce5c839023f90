//! Steps along a gradient: Adam, and SGD with momentum, each as `PyTorch` computes them.

use rayon::prelude::*;
use serde::Serialize;
use tamis::learn::optimiser::Optimiser;

use crate::Result;
use crate::base::check_setting;

/// Weights that a thread updates at a time.
const CHUNK: usize = 1 << 14;
/// Adam's memory of gradients, of their squares, and what is added to the root.
const BETAS: (f32, f32) = (0.9, 0.999);
const EPSILON: f32 = 1e-8;

/// Step sizes over the epochs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rates {
    /// The rate of the first epoch.
    pub rate: f32,
    /// Epochs, counted from 0 and rising, from which on the rate is `factor` times what it was.
    pub falls: Vec<u32>,
    /// See [`Self::falls`].
    pub factor: f32,
    /// This times the weight is added to its gradient.
    pub decay: f32,
}

impl Rates {
    /// A constant rate without weight decay.
    #[must_use]
    pub const fn constant(rate: f32) -> Self {
        Self { rate, falls: Vec::new(), factor: 0.1, decay: 0.0 }
    }

    /// The default of training under a mask: a tenth from half of the epochs on, and a hundredth
    /// from three quarters on, both rounded up, as N. Bar and R. Giryes take it (arXiv 2305.17559).
    #[must_use]
    pub fn falling(rate: f32, epochs: u32) -> Self {
        let three_quarters = u64::from(epochs).saturating_mul(3).div_ceil(4);
        Self { falls: vec![epochs.div_ceil(2), three_quarters as u32], ..Self::constant(rate) }
    }

    /// The rate in `epoch`, counted from 0.
    pub(crate) fn at(&self, epoch: u32) -> f32 {
        let falls = self.falls.iter().filter(|&&fall| epoch >= fall).count();
        (f64::from(self.rate) * f64::from(self.factor).powi(falls as i32)) as f32
    }

    pub(crate) fn check(&self) -> Result<()> {
        let (rate, factor, decay) = (self.rate, self.factor, self.decay);
        let help = "leave --rate out for 0.001 with adam and 0.1 with sgd";
        let holds = rate > 0.0 && rate.is_finite();
        check_setting(holds, "--rate above 0, such as 0.001", rate, help)?;
        let help = "leave --rate-factor out for 0.1";
        let holds = factor > 0.0 && factor.is_finite();
        check_setting(holds, "--rate-factor above 0, such as 0.1", factor, help)?;
        let help = "leave --weight-decay out for none";
        let holds = decay >= 0.0 && decay.is_finite();
        check_setting(holds, "--weight-decay 0 or more, such as 0.0001", decay, help)
    }
}

/// The rate of an optimiser that is told none.
pub(crate) const fn default_rate(optimiser: &Optimiser) -> f32 {
    match optimiser {
        Optimiser::Adam => 0.001,
        Optimiser::Sgd { .. } => 0.1,
    }
}

pub(crate) fn check_momentum(optimiser: &Optimiser) -> Result<()> {
    let Optimiser::Sgd { momentum } = *optimiser else { return Ok(()) };
    let (expected, help) = ("--momentum 0 or more and less than 1", "leave --momentum out for 0.9");
    check_setting((0.0..1.0).contains(&momentum), expected, momentum, help)
}

/// An optimiser in reports.
#[derive(Serialize)]
#[serde(remote = "Optimiser", rename_all = "lowercase")]
pub(crate) enum Serialised {
    Adam,
    Sgd { momentum: f32 },
}

#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct Term(#[serde(serialize_with = "Serialised::serialize")] pub(super) Optimiser);

/// What an optimiser remembers.
#[derive(Debug)]
pub(super) struct State {
    optimiser: Optimiser,
    /// Means of the gradients, or the last step.
    first: Vec<f32>,
    /// Means of their squares; empty for SGD.
    second: Vec<f32>,
    steps: i32,
}

impl State {
    pub(super) fn new(optimiser: Optimiser, weights: usize) -> Self {
        let second = if optimiser.moments() > 1 { weights } else { 0 };
        Self { optimiser, first: vec![0.0; weights], second: vec![0.0; second], steps: 0 }
    }

    pub(super) fn reset(&mut self) {
        self.first.fill(0.0);
        self.second.fill(0.0);
        self.steps = 0;
    }

    /// Forgets what it remembers of all weights but those of the mask.
    pub(super) fn keep(&mut self, mask: &[bool]) {
        for moments in [&mut self.first, &mut self.second] {
            let gone = moments.iter_mut().zip(mask).filter(|(_, kept)| !**kept);
            gone.for_each(|(moment, _)| *moment = 0.0);
        }
    }

    /// What it remembers of the weights at these places.
    pub(super) fn of(&self, places: &[u32]) -> Self {
        let own = |all: &[f32]| match all {
            [] => Vec::new(),
            all => places.iter().map(|&at| all[at as usize]).collect(),
        };
        Self { first: own(&self.first), second: own(&self.second), ..*self }
    }

    /// Goes on from where `own` is, which is of these places.
    pub(super) fn put(&mut self, places: &[u32], own: &Self) {
        self.steps = own.steps;
        for (all, own) in [(&mut self.first, &own.first), (&mut self.second, &own.second)] {
            places.iter().zip(own).for_each(|(&at, &moment)| all[at as usize] = moment);
        }
    }

    /// One step on the weights of the mask; the others have the value 0 and keep it.
    pub(super) fn step(
        &mut self,
        rate: f32,
        decay: f32,
        weights: &mut [f32],
        gradient: &[f32],
        mask: &[bool],
    ) {
        self.steps = self.steps.saturating_add(1);
        let arch = pulp::Arch::new();
        let parts = weights
            .par_chunks_mut(CHUNK)
            .zip(gradient.par_chunks(CHUNK))
            .zip(mask.par_chunks(CHUNK))
            .zip(self.first.par_chunks_mut(CHUNK));
        match self.optimiser {
            Optimiser::Adam => {
                let (b1, b2) = BETAS;
                let unbias = |beta: f32| 1.0 - f64::from(beta).powi(self.steps);
                let rate = (f64::from(rate) / unbias(b1)) as f32;
                let root = (1.0 / unbias(b2).sqrt()) as f32;
                parts.zip(self.second.par_chunks_mut(CHUNK)).for_each(
                    |((((w, g), mask), m), v)| {
                        arch.dispatch(|| {
                            for ((((w, g), mask), m), v) in
                                w.iter_mut().zip(g).zip(mask).zip(m).zip(v)
                            {
                                let g = if *mask { g + decay * *w } else { 0.0 };
                                *m = b1 * *m + (1.0 - b1) * g;
                                *v = b2 * *v + (1.0 - b2) * (g * g);
                                *w -= rate * *m / (v.sqrt() * root + EPSILON);
                            }
                        });
                    },
                );
            }
            Optimiser::Sgd { momentum } => parts.for_each(|(((w, g), mask), m)| {
                arch.dispatch(|| {
                    for (((w, g), mask), m) in w.iter_mut().zip(g).zip(mask).zip(m) {
                        let g = if *mask { g + decay * *w } else { 0.0 };
                        *m = momentum * *m + g;
                        *w -= rate * *m;
                    }
                });
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three steps on `w²/2`, by the formulas in double precision.
    #[test]
    fn steps_are_those_of_the_definitions() {
        for (optimiser, decay) in [
            (Optimiser::Adam, 0.0),
            (Optimiser::Adam, 0.5),
            (Optimiser::Sgd { momentum: 0.9 }, 0.5),
        ] {
            let mut weights = vec![1.0_f32, -2.0, 0.0];
            let mask = [true, true, false];
            let mut state = State::new(optimiser, 3);
            let (mut w, mut m, mut v) = ([1.0_f64, -2.0], [0.0; 2], [0.0; 2]);
            for t in 1..=3 {
                let gradient = [weights[0], weights[1], 9.0];
                state.step(0.1, decay, &mut weights, &gradient, &mask);
                for i in 0..2 {
                    let g = w[i] + f64::from(decay) * w[i];
                    match optimiser {
                        Optimiser::Adam => {
                            m[i] = 0.9 * m[i] + 0.1 * g;
                            v[i] = 0.999 * v[i] + 0.001 * g * g;
                            let (mean, square) =
                                (m[i] / (1.0 - 0.9_f64.powi(t)), v[i] / (1.0 - 0.999_f64.powi(t)));
                            w[i] -= 0.1 * mean / (square.sqrt() + 1e-8);
                        }
                        Optimiser::Sgd { momentum } => {
                            m[i] = f64::from(momentum) * m[i] + g;
                            w[i] -= 0.1 * m[i];
                        }
                    }
                    assert!(
                        (f64::from(weights[i]) - w[i]).abs() < 1e-5,
                        "{optimiser:?} {t} {weights:?} {w:?}"
                    );
                }
                assert_eq!(weights[2].to_bits(), 0, "a pruned weight stays 0");
            }
        }
    }

    #[test]
    fn rates_fall_at_their_epochs() {
        let rates = Rates { falls: vec![80, 120], factor: 0.5, ..Rates::constant(0.1) };
        assert_eq!([79, 80, 119, 120].map(|epoch| rates.at(epoch)), [0.1, 0.05, 0.05, 0.025]);
        for (epochs, falls) in [(160, [80, 120]), (10, [5, 8]), (3, [2, 3]), (1, [1, 1])] {
            assert_eq!(Rates::falling(0.1, epochs).falls, falls);
        }
    }

    #[test]
    fn settings_out_of_bounds_are_refused() {
        for rate in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            assert!(Rates::constant(rate).check().unwrap_err().to_string().contains("--rate"));
        }
        assert!(Rates { decay: -1.0, ..Rates::constant(1.0) }.check().is_err());
        assert!(Rates { factor: 0.0, ..Rates::constant(1.0) }.check().is_err());
        assert!(
            check_momentum(&Optimiser::Sgd { momentum: 1.0 })
                .unwrap_err()
                .to_string()
                .contains("--momentum")
        );
    }
}
