//! Weights that must be kept: what thresholding makes of them, and that they are on the support of
//! every step of every recipe of steps, whatever the gradient says of them.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by it"
)]

use core::ops::ControlFlow::Continue;
use proptest::prelude::*;
use tamis::Error;
use tamis::base::budget::gated_words;
use tamis::base::dims::Dims;
use tamis::base::rng::Rng;
use tamis::data::samples::Rows;
use tamis::learn::anneal;
use tamis::learn::iht::{Refine, Step};
use tamis::learn::loss::{Classes, Labels};
use tamis::learn::start::{Start, continue_if};
use tamis::learn::train::{self, Checkpoint, OneOutput, Rank, Schedule, SeveralOutputs, Trials};
use tamis::network::gates::{Empty, Signs};
use tamis::network::net::Network;
use tamis::network::top::Top;
use tamis::network::weights::Weights;
use tamis::operator::factored::Factored;
use tamis::operator::gated::Gated;
use tamis::operator::sensing::Sensing;

const N: usize = 120;
const D: usize = 7;
const M: usize = 4;
const C: usize = 3;
/// A column of zeros: no gradient ever moves a weight from it.
const EMPTY: u32 = 6;

fn select(candidates: &[(u32, f32)], capacity: usize, keep: &[u32]) -> Vec<(u32, f32)> {
    let (mut index, mut value) = (vec![77; capacity], vec![f32::NAN; capacity]);
    let mut top = Top::keeping(&mut index, &mut value, keep).unwrap();
    candidates.iter().for_each(|&(j, v)| top.push(j, v));
    let len = top.finish().unwrap();
    index.into_iter().zip(value).take(len).collect()
}

proptest! {
    #[test]
    fn pinned_weights_precede_top_choice_among_others(
        values in prop::collection::vec(-4_i32..5, 0..60),
        capacity in 0_usize..20,
        kept in prop::collection::btree_set(0_u32..70, 0..20),
        turn in 0_usize..60,
    ) {
        let keep: Vec<u32> = kept.into_iter().take(capacity).collect();
        let mut candidates: Vec<(u32, f32)> = (0..).zip(values.iter().map(|&v| v as f32)).collect();
        let (given, others): (Vec<_>, Vec<_>) = candidates.iter().partition(|(j, _)| keep.contains(j));
        let mut expected: Vec<(u32, f32)> = keep
            .iter()
            .map(|&j| (j, given.iter().find(|(i, _)| *i == j).map_or(0.0, |&(_, v)| v)))
            .collect();
        expected.extend(select(&others, capacity - keep.len(), &[]));
        expected.sort_by_key(|&(j, _)| j);
        prop_assert_eq!(select(&candidates, capacity, &keep), expected.clone());
        // In another order of the stream.
        let turn = turn % candidates.len().max(1);
        candidates.rotate_left(turn);
        prop_assert_eq!(select(&candidates, capacity, &keep), expected);
    }
}

#[test]
fn places_that_there_are_not_are_refused() {
    let keeping = |keep: &[u32]| Top::keeping(&mut [0; 2], &mut [0.0; 2], keep).map(|_| ());
    assert!(matches!(keeping(&[1, 2, 3]), Err(Error::Range { min: 0, max: 2, got: 3, .. })));
    assert_eq!(keeping(&[2, 1]), Err(Error::Unsorted { at: 1 }));
    assert_eq!(keeping(&[1, 1]), Err(Error::Unsorted { at: 1 }));
    assert_eq!(keeping(&[1, 2]), Ok(()));
}

#[test]
fn what_must_be_kept_has_to_be_finite() {
    let (mut index, mut value) = ([0; 2], [0.0; 2]);
    let mut top = Top::keeping(&mut index, &mut value, &[5]).unwrap();
    top.push(5, f32::NAN);
    assert_eq!(top.finish(), None);
}

/// Rows with a column of zeros, and labels of two neurons.
struct Data {
    x: Vec<f32>,
    y: Vec<f32>,
    several: Vec<f32>,
    classes: Vec<u16>,
}

impl Data {
    fn new() -> Self {
        let mut rng = Rng::new(3, 1);
        let x: Vec<f32> =
            (0..N * D).map(|e| if e % D == EMPTY as usize { 0.0 } else { rng.normal() }).collect();
        let rows = || x.chunks(D);
        let y: Vec<f32> = rows().map(|x| (2.0 * x[1] - x[3]).max(0.0) + x[4].max(0.0)).collect();
        let several =
            rows().flat_map(|x| [x[0].max(0.0), (x[1] - x[2]).max(0.0), x[3].max(0.0)]).collect();
        let classes = rows().map(|x| if x[1] > x[3] { 2 } else { u16::from(x[0] > 0.2) }).collect();
        Self { x, y, several, classes }
    }

    fn classes(&self) -> Classes<'_> {
        Classes::new(&self.classes, C)
    }

    fn operator<'a>(&'a self, panel: usize, memory: &'a mut [f32]) -> Gated<'a, Rows<'a>> {
        Gated::new(Rows::new(&self.x, D).unwrap(), M, panel, memory).unwrap()
    }

    fn train(
        &self,
        schedule: &Schedule<'_, OneOutput>,
        s: usize,
        panel: usize,
        from: Option<&Checkpoint<'_>>,
        keep: &[u32],
    ) -> tamis::Result<Vec<(u32, f32)>> {
        let mut row = vec![0.0; gated_words(D, M)];
        let mut sensing = self.operator(panel, &mut row);
        let mut budget = schedule.budget(Dims::new(N, D, M, s), sensing.panel(), 0);
        budget.scratch = sensing.scratch(budget.batch);
        let mut memory = vec![0x7fc0_4321; budget.words()];
        let see = |progress: &train::Progress<'_>| {
            if let Some(at) = progress.checkpoint {
                holds(at.net.w(), keep);
                assert_eq!(progress.nnz, at.net.nnz());
            }
            Continue(())
        };
        let start = from.map_or(Start::Zero, Start::Checkpoint);
        let labels = Labels::values(&self.y);
        let trained = train::run(&mut sensing, labels, s, start, schedule, &mut memory, see)?;
        assert!(trained.info.nnz == trained.network.nnz() && trained.info.nnz <= s);
        holds(trained.network.w(), keep);
        let w = trained.network.w();
        Ok(w.index().iter().copied().zip(w.value().iter().copied()).collect())
    }
}

fn holds(w: Weights<'_>, keep: &[u32]) {
    assert!(keep.iter().all(|j| w.index().contains(j)), "{keep:?} in {:?}", w.index());
}

fn schedules<'k>(must_keep: &'k [u32]) -> impl Iterator<Item = Schedule<'k, OneOutput>> {
    let steps = [Step::Normalised, Step::Fixed(0.3), Step::Theory { beta: 3.0 }];
    let refines =
        [Refine::None, Refine::PAPER, Refine::ConjugateGradient { steps: 3, tolerance: 1e-3 }];
    (0..36).map(move |k| Schedule {
        epochs: 4,
        batch: [0, 30][k / 9 % 2],
        trials: [Trials::NONE, Trials { count: 3, rows: 40 }][k / 2 % 2],
        seed: k as u64,
        must_keep,
        head: OneOutput {
            convex_epochs: 1,
            refresh: [train::Refresh::Every(1), train::Refresh::Every(2)][k / 5 % 2],
            empty: [Empty::Freeze, Empty::Open, Empty::Reseed][k / 6 % 3],
            step: steps[k % 3],
            refine: refines[k / 3 % 3],
            ..Schedule::PAPER.head
        },
        ..Schedule::PAPER
    })
}

#[test]
fn every_step_rule_preserves_pinned_weights_throughout() {
    let data = Data::new();
    // Useless inputs, one of them without any gradient, in three neurons.
    let keep = [0, EMPTY, D as u32 + EMPTY, 3 * D as u32 + 2];
    for schedule in schedules(&keep) {
        for s in [4, 6, 9] {
            let one = data.train(&schedule, s, 1, None, &keep).unwrap();
            let dead = one.iter().filter(|(j, _)| j % D as u32 == EMPTY);
            assert!(dead.clone().count() == 2 && dead.clone().all(|(_, v)| *v == 0.0), "{one:?}");
            assert_eq!(data.train(&schedule, s, 3, None, &keep).unwrap(), one, "{schedule:?}");
        }
    }
}

#[test]
fn keeping_what_would_stay_anyway_changes_no_bit() {
    let data = Data::new();
    for schedule in schedules(&[]) {
        let free = data.train(&schedule, 6, 2, None, &[]).unwrap();
        // On the support all the way.
        let mut always: Option<Vec<u32>> = None;
        let mut row = vec![0.0; gated_words(D, M)];
        let mut sensing = data.operator(2, &mut row);
        let mut budget = schedule.budget(Dims::new(N, D, M, 6), 2, 0);
        budget.scratch = sensing.scratch(budget.batch);
        let (labels, mut memory) = (Labels::values(&data.y), vec![0; budget.words()]);
        train::run(&mut sensing, labels, 6, Start::Zero, &schedule, &mut memory, |progress| {
            let now = progress.checkpoint.unwrap().net.w().index().to_vec();
            always = Some(match always.take() {
                None => now,
                Some(before) => before.into_iter().filter(|j| now.contains(j)).collect(),
            });
            Continue(())
        })
        .unwrap();
        let always = always.unwrap();
        // The normalised rule starts from the support of the first gradient, which the observer
        // does not see.
        if schedule.head.step == Step::Normalised {
            continue;
        }
        let keeping = Schedule { must_keep: &always, ..schedule };
        assert_eq!(data.train(&keeping, 6, 2, None, &always).unwrap(), free);
    }
}

#[test]
fn neuron_of_pinned_zeros_restarts_as_empty_neuron() {
    let data = Data::new();
    let keep: Vec<u32> = (0..M as u32).map(|i| i * D as u32 + EMPTY).collect();
    // Zeros that must be kept are all that there is: with gates of their own all would stay closed.
    let zeros = vec![0.0; keep.len()];
    let from = Checkpoint::starting(Network::signed(
        Weights::new(D, M, &keep, &zeros).unwrap(),
        Signs::Positive,
    ));
    let train = |empty| {
        let head = OneOutput { empty, ..OneOutput::PAPER };
        let schedule = Schedule { must_keep: &keep, head, ..Schedule::PAPER };
        let found = data.train(&schedule, 10, 2, Some(&from), &keep).unwrap();
        found.iter().filter(|(_, v)| *v != 0.0).count()
    };
    assert_eq!(train(Empty::Freeze), 0);
    assert!(train(Empty::Open) > 3 && train(Empty::Reseed) > 3);
}

#[test]
fn checkpoint_missing_pinned_weights_is_refused() {
    let data = Data::new();
    let schedule = Schedule { must_keep: &[3, 20], ..Schedule::PAPER };
    let w = Weights::new(D, M, &[1, 3], &[1.0, 2.0]).unwrap();
    let warm = Checkpoint::starting(Network::signed(w, Signs::Positive));
    data.train(&schedule, 5, 2, Some(&warm), &[20]).unwrap();
    let mut words = None;
    let mut row = vec![0.0; gated_words(D, M)];
    let mut sensing = data.operator(2, &mut row);
    let (labels, mut memory) = (Labels::values(&data.y), vec![0; 1000]);
    train::run(&mut sensing, labels, 5, Start::Zero, &Schedule::PAPER, &mut memory, |progress| {
        words = progress.checkpoint.map(|at| at.state);
        continue_if(progress.step < 3)
    })
    .unwrap();
    let later = Checkpoint { state: words.unwrap(), ..warm };
    let refused = data.train(&schedule, 5, 2, Some(&later), &[]);
    assert!(matches!(refused, Err(Error::Length { expected: 2, got: 1, .. })), "{refused:?}");
}

#[test]
fn several_outputs_keep_them_under_either_ranking() {
    let data = Data::new();
    let keep = [0, EMPTY, 2 * D as u32 + 5];
    for k in 0..16 {
        let goal = [Labels::values(&data.several), Labels::classes(&data.classes, C)][k % 2];
        let schedule = Schedule {
            epochs: 5,
            batch: [0, 30][k / 2 % 2],
            must_keep: &keep,
            head: SeveralOutputs {
                step_size: [0.05, 300.0][k / 8],
                rank: [Rank::Exact, Rank::Sketch { decay: 1.0 }][k / 4 % 2],
                ..Schedule::paper(&goal, M, 9).safe().head
            },
            ..Schedule::paper(&goal, M, 9)
        };
        let mut row = vec![0.0; gated_words(D, M)];
        let mut sensing = data.operator(2, &mut row);
        let mut budget = schedule.budget(Dims::new(N, D, M, 9), C, 2, 0);
        budget.scratch = sensing.net_scratch(budget.batch);
        let mut memory = vec![0x7fc0_4321; budget.words()];
        let done =
            train::run(&mut sensing, goal, 9, Start::Zero, &schedule, &mut memory, |progress| {
                holds(progress.checkpoint.unwrap().net.w(), &keep);
                Continue(())
            });
        let done = done.unwrap();
        assert!(done.network.nnz() <= 9 && done.info.nnz == done.network.nnz());
        // A run of which every epoch was undone is at its start, without weights.
        if done.network.nnz() > 0 {
            holds(done.network.w(), &keep);
            let at = done.network.w().index().iter().position(|&j| j == EMPTY).unwrap();
            // Random values stand for empty blocks in gradients only.
            assert_eq!(done.network.w().value()[at], 0.0, "{k}");
        }
    }
}

#[test]
fn the_annealed_support_keeps_them() {
    let data = Data::new();
    let keep = [0, EMPTY, 2 * D as u32 + 5, 3 * D as u32 + EMPTY];
    for k in 0..12 {
        let params = anneal::Params {
            epochs: 12,
            batch: 20,
            validation: [0, 20][k % 2],
            start_factor: [1.0, 2.0, 3.0][k / 2 % 3],
            drop: [0.5, 1.0][k / 6],
            growth_rows: 40,
            seed: k as u64,
            must_keep: &keep,
            ..anneal::Params::DEFAULT
        };
        for (s, most) in [(9, u32::MAX), (5, u32::MAX), (9, 30), (9, 3)] {
            let mut row = vec![0.0; gated_words(D, M)];
            let mut sensing = data.operator(2, &mut row);
            let mut budget = params.budget(Dims::new(N, D, M, s), C, 2, 0);
            budget.scratch = sensing.net_scratch(budget.batch);
            let mut memory = vec![0x7fc0_4321; budget.words()];
            let see = |progress: &anneal::Progress<'_>| {
                holds(progress.checkpoint.net.w(), &keep);
                continue_if(progress.step < most)
            };
            let done = anneal::run(
                &mut sensing,
                data.classes(),
                s,
                Start::Zero,
                &params,
                &mut memory,
                see,
            )
            .unwrap();
            assert!(done.network.nnz() <= s && done.info.nnz == done.network.nnz());
            holds(done.network.w(), &keep);
            let at = done.network.w().index().iter().position(|&j| j == EMPTY).unwrap();
            assert_eq!(done.network.w().value()[at], 0.0);
        }
    }
}

#[test]
fn invalid_pinned_lists_are_refused() {
    let data = Data::new();
    let refused = |must_keep: &[u32]| {
        data.train(&Schedule { must_keep, ..Schedule::PAPER }, 2, 2, None, &[]).map(|_| ())
    };
    assert!(matches!(refused(&[0, 1, 2]), Err(Error::Range { max: 2, got: 3, .. })));
    assert!(
        matches!(refused(&[(D * M) as u32]), Err(Error::Range { max, .. }) if max == D * M - 1)
    );
    assert_eq!(refused(&[1, 0]), Err(Error::Unsorted { at: 1 }));
    assert_eq!(refused(&[0, 1]), Ok(()));
    // Where weights lead to outputs one place is left for such a weight.
    let mut row = vec![0.0; gated_words(D, M)];
    let mut sensing = data.operator(2, &mut row);
    let keep = [0, 1, 2];
    let goal = Labels::values(&data.several);
    let schedule = Schedule { must_keep: &keep, ..Schedule::paper(&goal, M, 3) };
    let several =
        train::run(&mut sensing, goal, 3, Start::Zero, &schedule, &mut [], |_| Continue(()));
    assert!(matches!(several, Err(Error::Range { max: 2, got: 3, .. })));
    let params = anneal::Params { must_keep: &keep, ..anneal::Params::DEFAULT };
    let annealed =
        anneal::run(&mut sensing, data.classes(), 3, Start::Zero, &params, &mut [], |_| {
            Continue(())
        });
    assert!(matches!(annealed, Err(Error::Range { max: 2, got: 3, .. })));
}
