//! The recovery recipe where columns repeat others, where an operator ends the run within a step,
//! and where labels leave the range of normal floats.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by it"
)]

use core::ops::ControlFlow::Continue;
use tamis::base::budget::{Recovery, gated_words};
use tamis::base::dims::Dims;
use tamis::base::error::Error;
use tamis::base::rng::Rng;
use tamis::data::samples::Rows;
use tamis::learn::lm::{self, Info, Params};
use tamis::learn::start::Start;
use tamis::network::gates::Signs;
use tamis::operator::factored::Factored;
use tamis::operator::gated::Gated;
use tamis::operator::sensing::Sensing;
use tamis::operator::wrapper::{Body, Operation, Wrapper};

const D: usize = 8;
const ROWS: usize = 300;

/// An operator that is asked to end at one of its calls, counted over applications and adjoints.
struct Ending<'a> {
    inner: Gated<'a, Rows<'a>>,
    calls: usize,
    at: usize,
}

impl<'a> Wrapper for Ending<'a> {
    type Inner = Gated<'a, Rows<'a>>;

    fn inner(&self) -> &Self::Inner {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut Self::Inner {
        &mut self.inner
    }

    fn before(&mut self, operation: Operation, _: usize) -> tamis::Result<Body> {
        if matches!(operation, Operation::Apply | Operation::Adjoint) {
            self.calls += 1;
            if self.calls == self.at {
                return Err(Error::Stopped);
            }
        }
        Ok(Body::Provided)
    }
}

/// Rows, their labels, and how many weights make them.
struct Problem {
    x: Vec<f32>,
    y: Vec<f32>,
    nnz: usize,
}

/// Rows whose first `D` columns are normal, and behind them columns `repeat` times a number; labels
/// of `outputs` columns of three neurons of three weights, in `labels` times their size, and how
/// many weights that takes.
fn planted(repeats: &[(usize, f32)], outputs: usize, scale: f32) -> Problem {
    let mut rng = Rng::new(11, 0);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    let neurons = [
        [(0, 1.0), (3, -2.0), (6, 0.5)],
        [(1, 1.5), (2, 1.0), (7, -1.0)],
        [(4, 1.0), (5, 2.0), (0, -1.0)],
    ];
    let ends = [[1.0, -0.5, 2.0], [0.5, 1.0, -1.0], [-1.5, 2.0, 0.5]];
    for _ in 0..ROWS {
        let mut row = [0.0; D];
        rng.fill_normal(&mut row);
        for k in 0..outputs {
            let active =
                |w: &[(usize, f32)]| w.iter().map(|&(j, w)| w * row[j]).sum::<f32>().max(0.0);
            let of = |v: &[f32; 3]| if outputs == 1 { 1.0 } else { v[k] };
            y.push(scale * neurons.iter().zip(&ends).map(|(w, v)| of(v) * active(w)).sum::<f32>());
        }
        x.extend_from_slice(&row);
        x.extend(repeats.iter().map(|&(j, factor)| factor * row[j]));
    }
    Problem { x, y, nnz: if outputs == 1 { 9 } else { 18 } }
}

/// Searches for three neurons, ended at call `at`: the flat indices of W, how many weights there
/// are in all, what was done, and how many calls it took.
fn search(
    problem: &Problem,
    signs: Signs,
    at: usize,
) -> tamis::Result<(Vec<u32>, usize, Info, usize)> {
    search_with(problem, &Params { signs, ..Params::DEFAULT }, at)
}

/// The same with other settings.
fn search_with(
    Problem { x, y, nnz }: &Problem,
    params: &Params,
    at: usize,
) -> tamis::Result<(Vec<u32>, usize, Info, usize)> {
    let (d, c, signs) = (x.len() / ROWS, y.len() / ROWS, params.signs);
    let blocks = lm::slots(3, signs);
    let mut row = vec![0.0; gated_words(d, blocks)];
    let inner = Gated::new(Rows::new(x, d)?, blocks, 2, &mut row)?;
    let mut sensing = Ending { inner, calls: 0, at };
    let dims = Dims::new(ROWS, d, 3, *nnz);
    let (w, all, info) = if c == 1 {
        let budget = Recovery::new(dims, sensing.panel(), sensing.scratch(ROWS), signs.linear(0));
        let mut memory = vec![0; budget.words()];
        let goal = lm::Goal::one_output(dims);
        let found =
            lm::run(&mut sensing, y, goal, Start::Zero, params, &mut memory, |_| Continue(()))?;
        let (w, info) = (found.network.w(), found.info);
        assert!(w.value().iter().all(|v| v.is_finite()));
        (w.index().to_vec(), w.nnz(), info)
    } else {
        let scratch = sensing.scratch(ROWS).max(sensing.net_scratch(ROWS));
        let mut memory = vec![0; Recovery::factored(dims, c, sensing.panel(), scratch).words()];
        let goal = lm::Goal::several_outputs(dims);
        let found =
            lm::run(&mut sensing, y, goal, Start::Zero, params, &mut memory, |_| Continue(()))?;
        let (net, info) = (found.network, found.info);
        assert!(net.w().value().iter().chain(net.wt().value()).all(|v| v.is_finite()));
        (net.w().index().to_vec(), net.nnz(), info)
    };
    Ok((w, all, info, sensing.calls))
}

#[test]
fn duplicate_columns_take_no_weights() {
    let all: Vec<(usize, f32)> =
        (0..D).map(|j| (j, 1.0)).chain((0..D).map(|j| (j, -3e3))).collect();
    for outputs in [1, 3] {
        let problem = planted(&all, outputs, 1.0);
        let (index, nnz, info, _) = search(&problem, Signs::Positive, usize::MAX).unwrap();
        assert!(info.exact, "{outputs} outputs: {}", info.relative);
        assert!(
            nnz == problem.nnz && index.iter().all(|j| (*j as usize) % (3 * D) < D),
            "{index:?}"
        );
    }
    let (index, _, info, _) = search(&planted(&all, 1, 1.0), Signs::Free, usize::MAX).unwrap();
    assert!(
        info.exact && index.iter().all(|j| (*j as usize) % (3 * D) < D),
        "{}: {index:?}",
        info.relative
    );
}

#[test]
fn columns_that_differ_a_little_are_told_apart() {
    // The last column is the first one but for the last row of it, which makes labels that only it
    // explains.
    let Problem { mut x, mut y, .. } = planted(&[(0, 1.0)], 1, 1.0);
    x.iter_mut().skip(D).step_by(D + 1).step_by(10).for_each(|x| *x += 0.01);
    for (row, y) in x.chunks(D + 1).zip(&mut y) {
        *y = (row[D] + row[1]).max(0.0) + (row[0] - row[2]).max(0.0);
    }
    let (index, _, info, _) =
        search(&Problem { x, y, nnz: 4 }, Signs::Positive, usize::MAX).unwrap();
    assert!(info.exact, "{}", info.relative);
    assert_eq!(index.iter().filter(|j| (**j as usize) % (D + 1) == D).count(), 1, "{index:?}");
}

#[test]
fn operator_stop_within_step_still_gives_result() {
    // The last one has too few weights, which are exchanged by some of the rows.
    let ways = [
        (1, Signs::Positive, 0),
        (1, Signs::Free, 0),
        (3, Signs::Positive, 0),
        (1, Signs::Positive, 3),
    ];
    for (outputs, signs, missing) in ways {
        let mut problem = planted(&[], outputs, 1.0);
        problem.nnz -= missing;
        let params = Params { signs, exchange_rows: ROWS / 4, perturbations: 2, ..Params::DEFAULT };
        let search = |at| search_with(&problem, &params, at);
        let (_, _, info, calls) = search(usize::MAX).unwrap();
        assert!(info.exact == (missing == 0));
        let mut given = 0;
        for at in (1..200).chain((200..calls).step_by(calls / 100 + 1)) {
            match search(at) {
                Err(Error::Stopped) => {
                    assert!(given == 0, "{at}: nothing, where an earlier end gave a result");
                }
                Err(other) => panic!("{at}: {other}"),
                Ok((_, nnz, info, _)) => {
                    given += 1;
                    assert!(
                        info.stopped && (1..=problem.nnz).contains(&nnz),
                        "{at}: {nnz}, {info:?}"
                    );
                    // Better than nothing: the zero network has 1.
                    assert!(info.relative < 0.9, "{at}: {}", info.relative);
                }
            }
        }
        assert!(given > 50, "{given}");
    }
}

#[test]
fn weights_that_lose_their_precision_are_not_exact() {
    let normal = search(&planted(&[], 1, 1e-30), Signs::Positive, usize::MAX).unwrap().2;
    assert!(normal.exact, "{}", normal.relative);
    let denormal = search(&planted(&[], 1, 1e-42), Signs::Positive, usize::MAX);
    assert!(denormal.as_ref().map_or(true, |found| !found.2.exact), "{denormal:?}");
}

#[test]
fn two_classes_are_told_apart_below_a_ceiling() {
    // A few rows of one class are far from the other one; the second column is noise.
    let mut rng = Rng::new(3, 0);
    let mut noise = [0.0; ROWS];
    rng.fill_normal(&mut noise);
    let far = |k: usize| match k % 20 {
        0..12 => 1.0,
        12..15 => 9.0,
        _ => 0.4,
    };
    let row = |k: usize| [far(k), noise[k]];
    let x: Vec<f32> = (0..ROWS).flat_map(row).collect();
    let y: Vec<f32> = (0..ROWS).map(|k| if row(k)[0] < 0.5 { 0.0 } else { 1.0 }).collect();
    let wrong = |ceiling: f32| {
        let mut memory = [0.0; gated_words(2, 3)];
        let mut sensing = Gated::new(Rows::new(&x, 2).unwrap(), 3, 2, &mut memory).unwrap();
        let dims = Dims::new(ROWS, 2, 1, 1);
        let budget = Recovery::new(dims, sensing.panel(), sensing.scratch(ROWS), false);
        let mut memory = vec![0; budget.words()];
        let goal = lm::Goal::one_output(dims);
        let params = Params { ceiling, ..Params::DEFAULT };
        let see = |_: &lm::Progress<'_>| Continue(());
        let found =
            lm::run(&mut sensing, &y, goal, Start::Zero, &params, &mut memory, see).unwrap();
        let (w, info) = (found.network.w(), found.info);
        assert!(matches!(w.index(), [j] if j % 2 == 0), "{:?}", w.index());
        let outputs: Vec<f32> = x.iter().step_by(2).map(|x| x * w.value()[0]).collect();
        let squares: f32 = y.iter().zip(&outputs).map(|(y, f)| (y - f) * (y - f)).sum();
        // What is told is the squared error, whatever was fitted.
        assert!((info.loss - squares / ROWS as f32).abs() <= 1e-4 * info.loss, "{info:?}");
        assert!(!info.exact && info.relative > 1e-3);
        y.iter().zip(outputs).filter(|(y, f)| (**y > 0.5) != (*f > 0.5)).count()
    };
    assert!(wrong(1.0) > ROWS / 2, "{}", wrong(1.0));
    assert_eq!(wrong(10.0), 0);
}
