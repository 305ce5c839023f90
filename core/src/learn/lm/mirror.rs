//! Undoing mirror images that hide in other neurons: in one that is active on every row, or in those
//! of single inputs.
//!
//! Such a neuron, frequent on inputs that are never negative, is a linear function, with which
//! others may point the wrong way at no cost, `relu(w·x) = w·x + relu(-w·x)`: searches end with
//! mirror images, and one neuron that has all their weights. Flipping one back takes its weights
//! out of it. So the signs are those with which it has the fewest weights, which is found by
//! flipping one neuron at a time, and two where none alone helps.
//!
//! Neurons of one input on either side of it are another place:
//! `relu(w·x) = relu(-w·x) + Σ w_j relu(x_j) - Σ w_j relu(-x_j)`. A neuron and a part of its mirror image
//! become one so.

use super::goal::OneOutput;
use super::model::{Model, cosine};
use super::moves::SAME;
use super::neuron::{Forming, add_dense};
use crate::base::error::Result;
use crate::network::weights::Block;
use crate::operator::machine::Machine;
use crate::operator::sensing::{Sensing, row_head};

/// Neurons that are active on this fraction of the rows are linear functions.
const EVERYWHERE: f32 = 0.99;
/// One that is active on this fraction may be taken for one.
const OPEN: f32 = 0.9;
/// A weight cancels another one where less than this fraction of it is left.
const CANCELS: f32 = 0.2;
/// Pairs are looked for among so many neurons at the most.
const PAIRED: usize = 64;
/// A neuron of one input goes where less than this fraction of what is taken from it is left.
const GONE: f32 = 1e-3;
/// Sweeps over all neurons at the most.
const SWEEPS: u32 = 8;

impl<S: Sensing> Model<'_, S, OneOutput> {
    /// Where neuron `open` is active on nearly every row: merges others of that kind into it, and
    /// flips neurons whose weights cancel some of its own. Returns how many; nothing is fitted.
    #[inline(never)]
    pub(super) fn flip_mirrored(&mut self, open: usize) -> Result<u32, S::Source> {
        // A linear term is folded at the end.
        if self.first() > 0 {
            return Ok(0);
        }
        let part = self.active_share(open)?;
        if part < OPEN {
            return Ok(0);
        }
        self.single.dense.fill(0.0);
        add_dense(self.single.dense, self.net.view().w().block(open), 1.0);
        let mut turned = 0;
        for i in 0..self.blocks() {
            if part >= EVERYWHERE && i != open && self.active_share(i)? >= EVERYWHERE {
                add_dense(self.single.dense, self.net.view().w().block(i), 1.0);
                self.net.remove(i);
                turned += 1;
            }
        }
        for _ in 0..SWEEPS {
            let before = turned;
            for i in 0..self.blocks() {
                if i != open && self.change(i) < 0 {
                    self.flip_into(i);
                    turned += 1;
                }
            }
            if turned == before {
                turned += self.flip_pair(open);
            }
            if turned == before {
                break;
            }
        }
        if turned > 0 {
            self.net.remove(open);
            let size = (self.net.room() - self.net.nnz()).min(self.inputs());
            let of = Forming { scales: self.columns.scales(), neuron: open, size };
            self.single.entries.sift(self.single.dense, of);
            self.add_single(1.0)?;
        }
        Ok(turned)
    }

    /// Turns neurons that leave fewer weights so: what they miss then goes to neurons of single inputs,
    /// and one that has a mirror image becomes one with it. Whether there was one.
    pub(super) fn turn_into_singles(&mut self) -> Result<bool, S::Source> {
        let mut turned = false;
        for i in self.first()..self.blocks() {
            if self.fit.signs.both() || self.net.view().w().block(i).values().len() < 2 {
                continue;
            }
            let image = self.image_of(i);
            if !self.is_better_turned(i, image.is_some()) {
                continue;
            }
            turned = true;
            let entry = |model: &Self, at| model.net.view().w().block(i).entries().nth(at);
            let mut at = 0;
            while let Some((j, w)) = entry(self, at) {
                at += 1;
                for side in [1.0, -1.0] {
                    let single = self.single_neuron(j, side);
                    let stays = left_of(single, side * w) > GONE;
                    match single {
                        Some((k, _)) if !stays => self.net.remove(k),
                        Some((k, _)) => self.net.values_of(k).0.iter_mut().for_each(|of| *of += w),
                        None if stays => {
                            let vacant = self.vacant(1.0);
                            debug_assert!(vacant.is_some(), "room was counted before");
                            let Some(to) = vacant else { continue };
                            self.add_weight(to, j, w)?;
                        }
                        None => {}
                    }
                }
            }
            match image {
                None => self.negate(i),
                Some(to) => {
                    self.single.entries.take(self.net.view().w().block(i), to);
                    self.net.remove(i);
                    self.add_single(-1.0)?;
                }
            }
        }
        Ok(turned)
    }

    /// Whether turning neuron `i` of several weights leaves fewer, and no neuron that would have to be
    /// subtracted.
    fn is_better_turned(&self, i: usize, has_image: bool) -> bool {
        let block = self.net.view().w().block(i);
        let mut change = if has_image { -(block.values().len() as i32) } else { 0 };
        let mut added = 0;
        for (j, w) in block.entries() {
            for side in [1.0, -1.0] {
                let single = self.single_neuron(j, side);
                let left = left_of(single, side * w);
                if left < -GONE {
                    return false;
                }
                change += i32::from(left > GONE) - i32::from(single.is_some());
                added += usize::from(left > GONE && single.is_none());
            }
        }
        let vacant = self.blocks() - self.first() - self.neurons().count();
        change < 0 && added <= vacant
    }

    /// The neuron that is a mirror image of neuron `i`, of several weights.
    fn image_of(&self, i: usize) -> Option<usize> {
        let block = self.net.view().w().block(i);
        let is_image = |other: &Block<'_>| {
            other.values().len() > 1 && cosine(*other, block, self.columns.scales()) < -SAME
        };
        self.neurons().find(is_image).map(|other| other.neuron())
    }

    /// Makes the empty neuron `to` one of one weight, from input j.
    pub(super) fn add_weight(&mut self, to: usize, j: usize, w: f32) -> Result<(), S::Source> {
        self.single.entries.unit((to * self.inputs() + j) as u32, w);
        self.add_single(1.0)
    }

    /// The neuron that reads input j alone, where that has this sign, and how steep it is.
    fn single_neuron(&self, j: usize, sign: f32) -> Option<(usize, f32)> {
        let steep = |block: Block<'_>| match block.entries().next() {
            Some((of, w)) if block.values().len() == 1 && of == j && w * sign > 0.0 => {
                Some((block.neuron(), w.abs()))
            }
            _ => None,
        };
        self.neurons().find_map(steep)
    }

    /// Flips two neurons that make the dense row smaller only together; how many.
    fn flip_pair(&mut self, open: usize) -> u32 {
        let mut at = 0;
        for _ in 0..PAIRED {
            let Some(i) = self.next_live(at, open) else { break };
            at = i + 1;
            let first = self.change(i);
            self.flip_into(i);
            let mut behind = at;
            for _ in 0..PAIRED {
                let Some(j) = self.next_live(behind, open) else { break };
                behind = j + 1;
                if first + self.change(j) < 0 {
                    self.flip_into(j);
                    return 2;
                }
            }
            self.flip_into(i);
        }
        0
    }

    /// The first neuron from `at` on that has weights and is not `open`.
    fn next_live(&self, at: usize, open: usize) -> Option<usize> {
        (at..self.blocks()).find(|&i| i != open && !self.is_vacant(i))
    }

    /// Adds the weights of neuron `i` to the dense row, and changes their sign.
    fn flip_into(&mut self, i: usize) {
        add_dense(self.single.dense, self.net.view().w().block(i), 1.0);
        self.negate(i);
    }

    /// By how many weights the dense row grows when those of neuron `i` are added.
    fn change(&self, i: usize) -> i32 {
        let mut change = 0;
        for (j, w) in self.net.view().w().block(i).entries() {
            let l = self.single.dense.get(j).copied().unwrap_or(0.0);
            let is_there = |sum: f32| i32::from(sum.abs() > CANCELS * w.abs());
            change += is_there(l + w) - is_there(l);
        }
        change
    }

    /// The fraction of the rows on which neuron `i` is active.
    fn active_share(&mut self, i: usize) -> Result<f32, S::Source> {
        let rows = self.fit.rows();
        if self.is_vacant(i) {
            return Ok(0.0);
        }
        let z = row_head::<S>(&mut *self.single.z, rows)?;
        let (sign, gates) = (self.fit.signs.sign(i), self.fit.open());
        self.fit.image(gates, self.net.view().w().block(i), z)?;
        let active = self.fit.sensing.machine().count_active(z, sign) as f32;
        Ok(self.fit.sum([active])?[0] / self.fit.batch_rows())
    }
}

/// How steep a neuron of one input, 0 where there is none, is once this much is added, as a part of that.
fn left_of(single: Option<(usize, f32)>, added: f32) -> f32 {
    (single.map_or(0.0, |(_, steep)| steep) + added) / added.abs()
}

#[cfg(test)]
mod tests {
    use crate::base::rng::Rng;
    use crate::data::samples::FnRows;
    use crate::learn::lm::model::{Moves, Support};
    use crate::learn::lm::signed::tests::{D, N, with, with_rows};
    use crate::network::gates::Signs;
    use core::convert::Infallible;

    /// Rows between 0 and 1.
    fn uniform() -> FnRows<impl FnMut(usize, &mut [f32]) -> Result<(), Infallible>> {
        FnRows::new(N, D, |k, row: &mut [f32]| {
            let mut rng = Rng::new(3, k as u64);
            row.iter_mut().for_each(|x| *x = rng.uniform());
            Ok(())
        })
    }

    /// A neuron of one weight.
    fn single(at: usize, w: f32) -> (f32, [f32; D]) {
        let mut of = [0.0; D];
        of[at] = w;
        (1.0, of)
    }

    const FIRST: [f32; D] = [1.0, -2.0, 0.0, 0.0];
    const SECOND: [f32; D] = [0.0, 0.0, -1.0, 0.5];

    #[test]
    fn mirror_images_are_extracted_from_hiding_neuron() {
        // Of the neurons of FIRST and SECOND the mirror images, and what they miss and 40 x_3 more.
        let net = [
            (0, -1.0),
            (1, 2.0),
            (8, 1.0),
            (9, -2.0),
            (10, -1.0),
            (11, 40.5),
            (22, 1.0),
            (23, -0.5),
        ];
        let open = [0.0, 0.0, 0.0, 40.0];
        with_rows(
            uniform(),
            Signs::Positive,
            &[(1.0, FIRST), (1.0, SECOND), (1.0, open)],
            &net,
            |model| {
                assert_eq!([0, 1, 5].map(|i| model.flip_mirrored(i).unwrap()), [0; 3]);
                assert_eq!(model.flip_mirrored(2).unwrap(), 2);
                model.threshold(5).unwrap();
                assert!(model.loss().unwrap() < 1e-12);
                assert_eq!(model.net.view().w().index(), [0, 1, 11, 22, 23]);
                assert!(model.net.view().w().value()[0] > 0.0);
            },
        );
    }

    #[test]
    fn overlapping_mirror_images_are_extracted_together() {
        // Either alone leaves both weights of the active neuron there.
        let net = [(0, -1.0), (1, 2.0), (4, -1.0), (5, 3.0), (8, 2.0), (9, -5.0), (11, 40.0)];
        let second = [1.0, -3.0, 0.0, 0.0];
        let planted = [(1.0, FIRST), (1.0, second), (1.0, [0.0, 0.0, 0.0, 40.0])];
        with_rows(uniform(), Signs::Positive, &planted, &net, |model| {
            assert_eq!(model.flip_mirrored(2).unwrap(), 2);
            model.threshold(5).unwrap();
            assert!(model.loss().unwrap() < 1e-10);
            assert_eq!(model.net.view().w().index(), [0, 1, 4, 5, 11]);
        });
    }

    #[test]
    fn neurons_that_are_open_everywhere_become_one() {
        let net = [(0, 1.0), (5, 3.0), (8, 1.0), (9, -2.0)];
        let planted = [(1.0, FIRST), (1.0, [1.0, 3.0, 0.0, 0.0])];
        with_rows(uniform(), Signs::Positive, &planted, &net, |model| {
            assert_eq!(model.flip_mirrored(1).unwrap(), 1);
            assert_eq!(model.net.view().w().index(), [4, 5, 8, 9]);
            assert!(model.loss().unwrap() < 1e-12);
        });
    }

    #[test]
    fn mirror_images_are_extracted_from_neurons_of_single_inputs() {
        // Neurons of x_0 and x_1 make up for FIRST turned. That of x_0 goes unless it is planted too.
        for (steep, nnz) in [(0.0, 5), (0.5, 6)] {
            let planted =
                [(1.0, FIRST), single(0, steep), single(0, -4.0), single(1, 3.0), single(1, -0.5)];
            let net = [(0, -1.0), (1, 2.0), (4, steep + 1.0), (8, -3.0), (13, 1.0), (17, -2.5)];
            with(Signs::Positive, &planted, &net, |model| {
                assert!(model.loss().unwrap() < 1e-10);
                assert_eq!(model.turn_back().unwrap(), nnz < net.len());
                assert!(model.loss().unwrap() < 1e-10);
                assert_eq!(model.counted(), nnz);
            });
        }
    }

    #[test]
    fn neuron_becomes_one_with_its_mirror_image() {
        // A part of FIRST is turned: neurons of x_0 and x_1 make up for that, and one of these is gone for it.
        for part in [0.25, 0.75] {
            let planted = [
                (1.0, FIRST),
                single(0, 2.0),
                single(0, -1.0),
                single(1, -3.0),
                single(1, 2.0 * part),
            ];
            let net = [
                (0, 1.0 - part),
                (1, 2.0 * part - 2.0),
                (4, -part),
                (5, 2.0 * part),
                (8, 2.0 + part),
                (12, part - 1.0),
                (17, -3.0 - 2.0 * part),
            ];
            with(Signs::Positive, &planted, &net, |model| {
                assert!(model.loss().unwrap() < 1e-10);
                assert!(model.turn_back().unwrap());
                assert!(model.loss().unwrap() < 1e-10);
                assert_eq!(model.counted(), 6);
            });
        }
    }

    #[test]
    fn on_centred_rows_nothing_is_turned() {
        let net = [(0, -1.0), (1, 2.0), (4, 1.0), (5, -2.0)];
        with(Signs::Positive, &[(1.0, FIRST)], &net, |model| {
            assert_eq!([0, 1, 2].map(|i| model.flip_mirrored(i).unwrap()), [0; 3]);
            assert!(
                model
                    .net
                    .view()
                    .w()
                    .value()
                    .iter()
                    .map(|w| *w > 0.0)
                    .eq([false, true, true, false])
            );
        });
    }

    #[test]
    fn with_a_linear_term_nothing_is_turned() {
        let net = [(4, -1.0), (5, 2.0), (12, 1.0), (13, -2.0), (15, 40.5)];
        with_rows(uniform(), Signs::Free, &[(1.0, FIRST)], &net, |model| {
            assert!(model.active_share(3).unwrap() > 0.99);
            assert_eq!(model.flip_mirrored(3).unwrap(), 0);
        });
    }

    #[test]
    fn only_mostly_active_neurons_may_hide_mirror_images() {
        // The second input is 1 but for some rows, where it is -1.
        for (closed, turned) in [(6, 1), (7, 0)] {
            let rows = FnRows::new(N, D, move |k, row: &mut [f32]| -> Result<(), Infallible> {
                let mut rng = Rng::new(3, k as u64);
                row.iter_mut().for_each(|x| *x = rng.uniform());
                row[1] = if k < closed { -1.0 } else { 1.0 };
                Ok(())
            });
            let net = [(0, -1.0), (2, 1.0), (8, 1.0), (9, 9.0), (10, -1.0)];
            with_rows(rows, Signs::Positive, &[(1.0, FIRST)], &net, |model| {
                assert_eq!(model.active_share(2).unwrap(), (N - closed) as f32 / N as f32);
                assert_eq!(model.flip_mirrored(2).unwrap(), turned);
            });
        }
    }

    #[test]
    fn mirroring_counts_weights_freed_minus_weights_taken() {
        let net = [(0, -1.0), (1, 2.0), (5, 2.0), (6, 1.0)];
        with_rows(uniform(), Signs::Positive, &[(1.0, FIRST)], &net, |model| {
            let scale = model.net.view().w().value()[1] / 2.0;
            let mut change = |dense: [f32; D], i: usize| {
                model.single.dense.copy_from_slice(&dense.map(|l| l * scale));
                model.change(i)
            };
            assert_eq!(change([1.0, -2.0, 0.0, 0.0], 0), -2);
            assert_eq!(change([0.0; D], 0), 2);
            assert_eq!(change([1.0, 5.0, 0.0, 0.0], 0), -1);
            // Less than a fifth of a weight is none.
            assert_eq!(change([1.19, -1.7, 0.0, 0.0], 0), -2);
            assert_eq!(change([1.21, -1.5, 0.0, 0.0], 0), 0);
            assert_eq!(change([0.0, -2.0, 0.0, 9.0], 1), 0);
            // An empty neuron changes nothing.
            assert_eq!(change([1.0; D], 4), 0);
        });
    }
}
