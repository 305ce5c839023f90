//! Flips, merges and the way down to s weights, on the model of one output.

use crate::base::math::sqrt;
use crate::learn::lm::model::cosine;
use crate::learn::lm::model::{Moves, Support};
use crate::learn::lm::signed::tests::{even, with, with_rows};
use crate::network::gates::Signs;
use crate::network::weights::Weights;

const W: [f32; 4] = [1.0, -2.0, 0.5, 0.0];

#[test]
fn neuron_with_wrong_direction_is_flipped() {
    let net = [(4, -1.0), (5, 2.0), (6, -0.5), (8, 1.0)];
    with(Signs::Positive, &[(1.0, W), (1.0, [1.0, 0.0, 0.0, 0.0])], &net, |model| {
        let loss = model.loss().unwrap();
        assert!(model.flip(loss).unwrap() < 1e-10 && loss > 1e-2);
        let is_up: [bool; 4] = core::array::from_fn(|at| model.net.view().w().value()[at] > 0.0);
        assert_eq!((model.task.info.flips, is_up), (1, [true, false, true, true]));
    });
}

#[test]
fn neurons_active_on_the_same_rows_are_summed() {
    let net = [(0, 0.25), (1, -0.5), (2, 0.125), (8, 0.75), (9, -1.5), (10, 0.375), (12, 1.0)];
    with(Signs::Positive, &[(1.0, W), (1.0, [1.0, 0.0, 0.0, 0.0])], &net, |model| {
        assert_eq!(model.merge(0.999).unwrap(), 1);
        assert!(model.loss().unwrap() < 1e-12);
        assert_eq!(
            (model.net.view().w().index(), model.task.info.merges),
            (&[8, 9, 10, 12][..], 1)
        );
    });
}

#[test]
fn mirrored_neurons_merge_only_with_linear_term() {
    // 3 relu(z) + relu(-z), z = w·x, is 2 relu(z) + |z|.
    let minus = W.map(|w| -w);
    let planted = [(3.0, W), (1.0, minus)];
    let net = [(4, 3.0), (5, -6.0), (6, 1.5), (12, -1.0), (13, 2.0), (14, -0.5)];
    with(Signs::Free, &planted, &net, |model| {
        assert_eq!(model.merge(0.999).unwrap(), 0);
        model.relax().unwrap();
        assert_eq!(model.merge(0.999).unwrap(), 1);
        assert!(model.loss().unwrap() < 1e-10);
        assert_eq!((model.live(), model.counted()), (1, 3));
    });
}

#[test]
fn shrinking_ends_at_s_weights_and_m_neurons() {
    let net: [(u32, f32); 28] = core::array::from_fn(|j| (j as u32, 1.0 + (j % 5) as f32));
    with(Signs::Positive, &[(1.0, W)], &net, |model| {
        let loss = model.loss().unwrap();
        let mut reports = 0;
        let report = |_: &mut _, _| {
            reports += 1;
            true
        };
        let loss = model.thin(loss, report).unwrap();
        assert!(model.counted() <= 6 && (1..=10).contains(&reports), "{reports}");
        let loss = model.narrow(loss).unwrap();
        assert!(model.live() <= 3 && loss.is_finite());
    });
}

#[test]
fn correctly_directed_neuron_stays_bit_identical() {
    with(
        Signs::Positive,
        &[(1.0, W), (1.0, [1.0, 0.0, 0.0, 0.0])],
        &[(4, 0.9), (5, -2.1), (8, 1.0)],
        |model| {
            let loss = model.loss().unwrap();
            let before: [u32; 3] =
                core::array::from_fn(|at| model.net.view().w().value()[at].to_bits());
            assert_eq!((model.flip(loss).unwrap(), model.task.info.flips), (loss, 0));
            assert!(model.net.view().w().value().iter().map(|w| w.to_bits()).eq(before));
        },
    );
}

#[test]
fn a_neuron_that_fits_either_way_stays() {
    // |x_0| and one half of it: either half leaves as much on rows with their mirror images.
    let minus = [-1.0, 0.0, 0.0, 0.0];
    with_rows(
        even(),
        Signs::Positive,
        &[(1.0, [1.0, 0.0, 0.0, 0.0]), (1.0, minus)],
        &[(4, 1.0)],
        |model| {
            let loss = model.loss().unwrap();
            assert_eq!((model.flip(loss).unwrap(), model.task.info.flips), (loss, 0));
            assert!(model.net.view().w().value()[0] > 0.0);
        },
    );
}

#[test]
fn merge_needs_cosine_and_keeps_stronger_neuron() {
    // A cosine of 0.8 on rows of equal columns.
    let net = [(4, 2.0), (8, 4.0), (9, 3.0)];
    for (least, merged) in [(0.79, 1), (0.81, 0)] {
        with_rows(even(), Signs::Positive, &[(1.0, W)], &net, |model| {
            assert_eq!(model.merge(least).unwrap(), merged);
            assert_eq!(model.task.info.merges, merged);
            let (index, sum): (&[u32], f32) =
                if merged == 1 { (&[8, 9], 6.0) } else { (&[4, 8, 9], 2.0) };
            let unit = model.net.view().w().value().last().unwrap() / 3.0;
            assert_eq!(
                (model.net.view().w().index(), model.net.view().w().value()[0]),
                (index, sum * unit)
            );
        });
    }
    // Of equal ones the first one does.
    with_rows(even(), Signs::Positive, &[(1.0, W)], &[(4, 2.0), (8, 2.0)], |model| {
        assert_eq!((model.merge(0.99).unwrap(), model.net.view().w().index()), (1, &[4][..]));
    });
}

#[test]
fn neuron_merges_with_all_sharing_its_hinge() {
    let net = [(0, 1.0), (4, 3.0), (8, 2.0), (13, 1.0), (16, 0.5)];
    with_rows(
        even(),
        Signs::Positive,
        &[(6.5, [1.0, 0.0, 0.0, 0.0]), (1.0, [0.0, 1.0, 0.0, 0.0])],
        &net,
        |model| {
            assert_eq!(model.merge(0.999).unwrap(), 3);
            assert_eq!(model.net.view().w().index(), [4, 13]);
            assert!(model.loss().unwrap() < 1e-12);
        },
    );
}

#[test]
fn parallel_neurons_of_opposite_sign_are_mirror_images() {
    // Block 1 is active above, block 2 below: both together are linear.
    let net = [(4, 1.0), (5, -2.0), (6, 0.5), (8, 1.0), (9, -2.0), (10, 0.5)];
    let minus = W.map(|w| -w);
    with(Signs::Free, &[(1.0, W), (-1.0, minus)], &net, |model| {
        assert!(model.loss().unwrap() < 1e-12);
        assert_eq!(model.merge(0.999).unwrap(), 0);
        model.relax().unwrap();
        assert_eq!(model.merge(0.999).unwrap(), 1);
        assert!(model.loss().unwrap() < 1e-12);
        // Nothing is left of either, and all is in the linear term.
        assert!(
            model
                .net
                .view()
                .w()
                .blocks()
                .skip(1)
                .all(|block| block.values().iter().all(|w| w.abs() < 1e-6))
        );
    });
}

#[test]
fn cosine_uses_the_column_metric() {
    let w =
        Weights::new(4, 3, &[0, 1, 3, 5, 6, 7, 9], &[1.0, 2.0, 4.0, 2.0, 9.0, -1.0, 1.0]).unwrap();
    let scales = [3.0, 0.5, 0.0, 1.0];
    // (3, 1, 0, 4) and (0, 1, 0, -1): -3 over the root of 26 and that of 2.
    let of = |i, j| cosine(w.block(i), w.block(j), &scales);
    assert!((of(0, 1) + 3.0 / sqrt(52.0)).abs() < 1e-6, "{}", of(0, 1));
    assert_eq!((of(1, 0), of(2, 2)), (of(0, 1), 1.0));
}
