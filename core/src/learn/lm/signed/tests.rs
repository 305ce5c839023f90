//! A model of one output for tests, and its edits.

mod ceiling;
mod edits;
mod moves;

extern crate std;
use super::*;
use crate::data::samples::{FnRows, NormalRows, Samples};
use crate::learn::lm::Params;
use crate::learn::lm::fit::{Data, Fit};
use crate::learn::lm::model::{OutputBuffers, Task};
use crate::learn::lm::neuron::{Entries, Single};
use crate::learn::lm::solver::Solver;
use crate::learn::lm::support::Columns;
use crate::network::gates::Signs;
use crate::network::net::Shape;
use crate::network::weights::Weights;
use crate::operator::gated::Gated;
use core::convert::Infallible;
use std::{vec, vec::Vec};

/// Inputs and blocks of the model in [`with`].
pub(in crate::learn::lm) const D: usize = 4;
pub(in crate::learn::lm) const P: usize = 7;
pub(in crate::learn::lm) const N: usize = 60;

/// Calls `body` with a model of 60 rows of four normal inputs for seven blocks, on which labels
/// are the outputs of `planted`, (output sign, weights), and the network is `net`, brought to
/// their scale; s = 6, m = 3.
pub(in crate::learn::lm) fn with(
    signs: Signs,
    planted: &[(f32, [f32; D])],
    net: &[(u32, f32)],
    body: impl FnOnce(&mut Model<'_, Gated<'static, NormalRows>, OneOutput>),
) {
    with_rows(NormalRows::new(5, N, D), signs, planted, net, body);
}

/// The same on rows of another kind, [`N`] of [`D`] inputs.
pub(in crate::learn::lm) fn with_rows<R: Samples>(
    rows: R,
    signs: Signs,
    planted: &[(f32, [f32; D])],
    net: &[(u32, f32)],
    body: impl FnOnce(&mut Model<'_, Gated<'static, R>, OneOutput>),
) {
    // A model whose buffers are never given back serves any lifetime.
    let sensing = vec![operator(rows)].leak();
    body(&mut at(&mut sensing[0], &Params { signs, ..Params::DEFAULT }, planted, net));
}

/// Rows that come with their mirror images and have the same second moment in all directions,
/// as the vertices of two 24-cells, and some rows of zeros: a gradient `Σ_{w·x > 0} (w·x) x` is
/// along w itself.
pub(in crate::learn::lm) fn even()
-> FnRows<impl FnMut(usize, &mut [f32]) -> core::result::Result<(), Infallible>> {
    FnRows::new(N, D, |k, row: &mut [f32]| {
        row.fill(0.0);
        let sign = |bit: usize| if k >> bit & 1 == 0 { 1.0 } else { -1.0 };
        match k {
            // ±1 in two of four places, in all of them, and ±2 in one.
            0..24 => {
                let (i, j) = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)][k / 4];
                (row[i], row[j]) = (sign(0), sign(1));
            }
            24..40 => row.iter_mut().enumerate().for_each(|(j, x)| *x = sign(j)),
            40..48 => row[(k - 40) / 2] = 2.0 * sign(0),
            _ => {}
        }
        Ok(())
    })
}

/// The operator of these rows for [`P`] blocks.
pub(in crate::learn::lm) fn operator<R: Samples>(rows: R) -> Gated<'static, R> {
    Gated::new(rows, P, 1, vec![0.0; crate::base::budget::gated_words(D, P)].leak()).unwrap()
}

/// The rows of an operator.
pub(in crate::learn::lm) fn rows_of<R: Samples>(sensing: &mut Gated<'_, R>) -> Vec<[f32; D]> {
    let open = crate::network::gates::Gates::of(
        Weights::empty(D, P),
        Signs::Positive,
        crate::network::gates::Empty::Open,
        0,
        0,
    );
    let mut rows = vec![[0.0; D]; N];
    for j in 0..D {
        let mut column = [0.0; N];
        let index = [j as u32];
        let unit = Weights::new(D, P, &index, &[1.0]).unwrap();
        sensing.apply(open, unit.block(0), &mut column).unwrap();
        rows.iter_mut().zip(column).for_each(|(row, x)| row[j] = x);
    }
    rows
}

/// `w · x`.
pub(in crate::learn::lm) fn along(w: &[f32; D], x: &[f32; D]) -> f32 {
    w.iter().zip(x).map(|(w, x)| w * x).sum()
}

/// The model of [`with`] on an operator of [`N`] rows.
pub(in crate::learn::lm) fn at<'a, R: Samples>(
    sensing: &'a mut Gated<'static, R>,
    params: &Params,
    planted: &[(f32, [f32; D])],
    net: &[(u32, f32)],
) -> Model<'a, Gated<'static, R>, OneOutput> {
    let rows = rows_of(sensing);
    let label = |x: &[f32; D]| planted.iter().map(|(v, w)| v * along(w, x).max(0.0)).sum();
    let labels: &[f32] = rows.iter().map(label).collect::<Vec<f32>>().leak();
    let take = |len: usize| vec![0.0; len].leak();
    let solver = Solver::new(core::array::from_fn(|_| take(64)), params.products);
    let mut columns = Columns { scales: take(D), panel: take(D) };
    let (residual, scratch) = (take(N), take(64 * 4));
    let data = Data { labels, outputs: 1, head: OneOutput, residual, scratch };
    let mut fit = Fit::new(sensing, data, params).unwrap();
    columns.measure(&mut fit).unwrap();
    fit.rows_read = 0;
    let entries = Entries::new(vec![0; D].leak(), take(D));
    let mut model = Model {
        fit,
        solver,
        net: Sides::new(Shape::signed(D, P, params.signs), vec![0; 64].leak(), take(64)),
        columns,
        single: Single { entries, share: 0.5, dense: take(D), z: take(N), t: take(N) },
        out: OutputBuffers {
            entries: Entries::new(&mut [], &mut []),
            along: &mut [],
            other: &mut [],
            back: &mut [],
        },
        task: Task { goal: 1e-12, nnz: 6, hidden: 3, spare: params.spare, ..Task::default() },
    };
    let (index, value): (Vec<u32>, Vec<f32>) = net.iter().copied().unzip();
    let scaled: Vec<f32> =
        value.iter().map(|w| w * crate::base::math::unit_scale(labels)).collect();
    assert!(model.net.edit_w(|w| w.add(&index, &scaled)));
    model
}

#[test]
fn weakest_neuron_is_evicted_when_none_is_vacant() {
    let net: Vec<(u32, f32)> = (0..7).map(|i| (4 * i, 1.0 + (i as f32 - 3.0).abs())).collect();
    with(Signs::Positive, &[], &net, |model| {
        assert_eq!((model.live(), model.vacant(1.0), model.vacant(-1.0)), (7, None, None));
        assert_eq!((model.vacate(1.0, Some(3)), model.vacate(1.0, None)), (Some(2), Some(2)));
        assert_eq!((model.live(), model.weakest(|_| true)), (6, Some(3)));
    });
    with(Signs::Free, &[], &[(0, 9.0), (4, 1.0), (8, 2.0)], |model| {
        model.relax().unwrap();
        assert_eq!((model.linear(), model.counted(), model.live()), (4, 2, 2));
        assert_eq!((model.vacant(1.0), model.vacant(-1.0)), (Some(3), Some(4)));
    });
}

#[test]
fn linear_term_covers_nonzero_columns_and_keeps_values() {
    let rows = FnRows::new(N, D, |k, row: &mut [f32]| -> core::result::Result<(), Infallible> {
        crate::base::rng::Rng::new(3, k as u64).fill_normal(row);
        row[2] = 0.0;
        Ok(())
    });
    with_rows(rows, Signs::Free, &[], &[(1, 5.0), (6, 1.0)], |model| {
        let before = model.net.view().w().value()[0];
        model.relax().unwrap();
        model.relax().unwrap();
        assert_eq!(model.net.view().w().index(), [0, 1, 3, 6]);
        assert_eq!(model.net.view().w().value()[..3], [0.0, before, 0.0]);
    });
    with(Signs::Positive, &[], &[(6, 1.0)], |model| {
        model.relax().unwrap();
        assert_eq!((model.net.nnz(), model.linear()), (1, 0));
    });
}

#[test]
fn thresholding_leaves_the_linear_term_alone() {
    with(Signs::Free, &[], &[(0, 1e-3), (3, 1e-3), (4, 1.0), (9, 3.0), (14, 2.0)], |model| {
        model.threshold(2).unwrap();
        assert_eq!((model.net.view().w().index(), model.counted()), (&[0, 3, 9, 14][..], 2));
    });
}
