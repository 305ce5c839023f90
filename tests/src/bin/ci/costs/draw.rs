//! Random models of every encoding, with a row each, and the words that put them into a device's
//! flash.

mod drawn;
mod floats;
mod integers;
mod rows;

pub(crate) use drawn::{Content, Drawn, batches};
pub(crate) use floats::{FloatLayer, planned_floats};
use floats::{dense_floats, floats, two_of_floats};
use integers::integers;
pub(crate) use integers::{Besides, planned};

use crate::cost::{Kernel, Numbers};
use tamis::base::rng::{Rng, stream};
use tamis::infer::model::WINDOW;
use tamis::infer::quantised::Encoding;

/// Hidden neurons of two layers of floats: of fewer, what a core without a float unit takes depends
/// on which of them are open.
const HIDDEN: [usize; 2] = [8, 64];

/// Models to fit prices to, or others of the same kinds; of floats a quarter have a hidden layer.
pub(crate) fn models(seed: u64, per_kernel: usize) -> Vec<Drawn> {
    let mut rng = Rng::new(seed, stream::USER);
    let mut models = Vec::new();
    for kernel in Kernel::ALL {
        for at in 0..2 * per_kernel {
            let (sum, is_hidden) = (at % 2 == 0, at % 4 == 3);
            let (layer, range, hidden) = match kernel {
                Kernel::Windows => (FloatLayer::Windows, [WINDOW, 800], [WINDOW, 300]),
                Kernel::ShortWindows => (FloatLayer::Windows, [8, WINDOW - 1], HIDDEN),
                _ => (FloatLayer::Rows, [8, 800], HIDDEN),
            };
            let encoding = match kernel {
                Kernel::Dense => Encoding::Dense,
                Kernel::Mask => Encoding::Mask,
                _ => Encoding::Blocks,
            };
            models.push(match kernel {
                Kernel::DenseFloats => dense_floats(&mut rng),
                _ if kernel.numbers() == Numbers::Floats && is_hidden => {
                    two_of_floats(&mut rng, hidden, layer)
                }
                _ if kernel.numbers() == Numbers::Floats => floats(&mut rng, range, layer, sum),
                _ if at < per_kernel => integers(&mut rng, &[encoding]),
                _ => {
                    // The second layer is of any encoding.
                    let any = Encoding::ALL[rng.below(Encoding::ALL.len() as u32) as usize];
                    integers(&mut rng, &[encoding, any])
                }
            });
        }
    }
    models
}

#[cfg(test)]
mod tests {
    use super::drawn::END;
    use super::*;

    #[test]
    fn every_kernel_is_sampled_and_seeds_differ() {
        let (models, others) = (models(1, 2), models(2, 2));
        for kernel in Kernel::ALL {
            assert!(models.iter().any(|model| model.kernels.contains(&kernel)), "{kernel:?}");
        }
        let digests =
            |models: &[Drawn]| models.iter().map(|model| model.digest).collect::<Vec<_>>();
        assert_eq!(digests(&models), digests(&super::models(1, 2)));
        assert!(models.iter().zip(&others).all(|(model, other)| model.words() != other.words()));
    }

    #[test]
    fn batches_hold_all_models_within_capacity() {
        let models = models(1, 1);
        let largest = models.iter().map(|model| model.words().len()).max().unwrap_or(0);
        let most = 4 * (largest + END.len());
        let batches = batches(&models, most);
        assert!(batches.len() > 1 && batches.iter().all(|(bytes, _)| bytes.len() <= most));
        assert_eq!(batches.iter().map(|(_, of)| of.len()).sum::<usize>(), models.len());
    }
}
