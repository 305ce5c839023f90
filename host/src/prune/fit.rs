//! Epochs on the weights that a network has, with fewer of them from round to round, or a penalty.

use tamis::learn::optimiser::Optimiser;

use super::lasso::GroupLasso;
use super::network::Mlp;
use super::rows::FitRows;
use super::select::Missing;
use super::{schedule, scores, select};
use crate::Result;
use crate::mask::DenseLayers;
use crate::mask::biases::WithBiases;
use crate::operator::Stop;
use crate::train::dense::scores::Role;
use crate::train::dense::shape::Shape;
use crate::train::dense::training::Training;
use crate::train::dense::{Epoch, Penalty};

/// What epochs are made of.
pub(super) struct Fit<'a> {
    pub(super) rows: &'a FitRows,
    /// The rate of Adam.
    pub(super) rate: f32,
    /// Whether the rate falls towards the end.
    pub(super) falls: bool,
    pub(super) epochs: u32,
    /// Rows of a batch.
    pub(super) batch: usize,
    pub(super) seed: u64,
    /// Epochs with this seed before, whose orders of the rows are other ones.
    pub(super) before: u32,
    /// Nonzeros that are left in each of the first rounds.
    pub(super) counts: &'a [usize],
    /// A penalty on the weights.
    pub(super) lasso: Option<GroupLasso>,
    pub(super) stop: &'a Stop,
}

/// Weight decay while weights are pruned: what the loss does not hold shrinks, so that magnitudes
/// say what is needed. Without it MNIST at 500 nonzeros ends at 90.4 % in place of 94.5 %.
const DECAY: f32 = 1e-3;

impl Fit<'_> {
    /// Trains the nonzeros of a network; `observe` is told the mean loss of each epoch.
    pub(super) fn run(&self, mlp: &mut Mlp, observe: &mut dyn FnMut(f64)) -> Result<()> {
        let flat = Flat::of(mlp)?;
        let FitRows { set, scale } = self.rows;
        let n = set.data.rows;
        let batch = self.batch.min(n);
        let (adam, weights) = (Optimiser::Adam, flat.weights);
        let mut training = Training::new(&flat.shape, weights, adam, set.task, batch, self.stop)?;
        training.mask = flat.mask;
        let shape = &flat.shape;
        let penalty = self.lasso.map(|lasso| {
            move |weights: &[f32], gradient: &mut [f32]| lasso.add(shape, weights, gradient)
        });
        let penalty = penalty.as_ref().map(|own| own as &Penalty<'_>);
        let parts = schedule::rounds(n.div_ceil(batch));
        let rounds = parts * self.epochs as usize;
        let mut sum = 0.0;
        for round in 0..rounds {
            if let Some(&count) = self.counts.get(round) {
                mlp.set_flat(&training);
                select::keep_weights(mlp, scores::magnitudes, count, Missing::Regrown)?;
                let Flat { weights, mask, .. } = Flat::of(mlp)?;
                training.prune(weights, mask);
            }
            let (epoch, part) = (round / parts, round % parts);
            let done = round as f64 / rounds as f64;
            let loss = training.epoch(&Epoch {
                set,
                rows: part * n / parts..(part + 1) * n / parts,
                scale: *scale,
                batch,
                seed: self.seed,
                number: u64::from(self.before) + epoch as u64,
                rate: self.rate * if self.falls { schedule::falling(done) } else { 1.0 },
                decay: if round < self.counts.len() { DECAY } else { 0.0 },
                warmup: 0,
                penalty,
            })?;
            sum += loss / parts as f64;
            if part + 1 == parts {
                observe(std::mem::take(&mut sum));
            }
        }
        mlp.set_flat(&training);
        Ok(())
    }
}

/// A network as it is trained: without biases, on rows with a last 1 where it has some.
struct Flat {
    shape: Shape,
    weights: Vec<f32>,
    /// Which weights are trained: those that are not 0, but what hands the 1 on.
    mask: Vec<bool>,
}

impl Flat {
    fn of(mlp: &Mlp) -> Result<Self> {
        let shape = Shape::of(&mlp.widths())?;
        let weights = mlp.layers.iter().flat_map(|layer| layer.weights.iter().copied()).collect();
        if !mlp.has_ones {
            let mask = mlp.layers.iter().flat_map(|layer| layer.weights.iter().map(|&w| w != 0.0));
            return Ok(Self { shape, mask: mask.collect(), weights });
        }
        let biases = mlp.layers.iter().map(|layer| layer.bias.clone()).collect();
        let whole = WithBiases::new(&shape, &DenseLayers { weights, biases })?;
        let WithBiases { shape, weights, roles } = whole;
        let trained = weights.iter().zip(&roles).map(|(&w, &role)| w != 0.0 && role != Role::Fixed);
        Ok(Self { shape, mask: trained.collect(), weights })
    }
}

impl Mlp {
    /// Takes over weights that were trained as those of [`Flat`].
    fn set_flat(&mut self, training: &Training) {
        let ones = usize::from(self.has_ones);
        // A trained weight that happens to be 0 stays one that is there.
        let values = training.weights.iter().zip(&training.mask);
        let mut values =
            values.map(|(&w, &mask)| if mask && w == 0.0 { f32::MIN_POSITIVE } else { w });
        let last = self.layers.len() - 1;
        for (l, layer) in self.layers.iter_mut().enumerate() {
            let has_bias = !layer.bias.is_empty();
            for i in 0..layer.outputs {
                let row = &mut layer.weights[i * layer.inputs..(i + 1) * layer.inputs];
                row.iter_mut().zip(&mut values).for_each(|(w, value)| *w = value);
                let bias = values.by_ref().take(ones).next();
                if has_bias && let Some(bias) = bias {
                    layer.bias[i] = bias;
                }
            }
            if l != last && self.has_ones {
                values.by_ref().take(layer.inputs + 1).for_each(drop);
            }
        }
    }
}
