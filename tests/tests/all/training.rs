//! Training on every operator: planted weights, degenerate labels and columns, exact budgets, and
//! results that depend neither on the panel nor on threads.

use std::cell::Cell;

use proptest::prelude::*;
use std::ops::ControlFlow::Continue;
use tamis::Error;
use tamis::base::budget::{WORD, gated_words};
use tamis::base::dims::Dims;
use tamis::base::rng::Rng;
use tamis::data::samples::Rows;
use tamis::learn::iht::{self, Params, Refine, Step};
use tamis::learn::loss::Labels;
use tamis::learn::start::Start;
use tamis::learn::train::{self, Info, OneOutput, Progress, Refresh, Schedule, Trials};
use tamis::network::gates::{Empty, Gates, Signs};
use tamis::network::net::EntriesMut;
use tamis::network::top::Top;
use tamis::network::weights::Weights;
use tamis::operator::gated::Gated;
use tamis::operator::gaussian::Gaussian;
use tamis::operator::sensing::{HostSensing, Sensing, Work};
use tamis::operator::wrapper::{Body, Operation, Wrapper};
use tamis_host::data::planted::{self, Planted};
use tamis_host::data::{Matrix, Values};
use tamis_host::operator::{Blocked, Layout};
use tamis_tests::conformance::{Spy, fill_support, recover, recovery_words};

const STEPS: [Step; 3] = [Step::Normalised, Step::Fixed(0.3), Step::Theory { beta: 3.0 }];
const REFINEMENTS: [Refine; 3] = [
    Refine::None,
    Refine::Armijo { steps: 3, decrease: 0.9, halvings: 10 },
    Refine::ConjugateGradient { steps: 3, tolerance: 1e-3 },
];

/// Every step rule, refinement, policy and refresh once or more.
fn schedules() -> impl Iterator<Item = Schedule<'static, OneOutput>> {
    let refreshes = [Refresh::Every(1), Refresh::Every(3), Refresh::Never];
    (0..18).map(move |k| Schedule {
        epochs: 4,
        strip: [0, 5][k % 2],
        batch: [0, 13, 7][k / 2 % 3],
        trials: [Trials::NONE, Trials { count: 3, rows: 20 }][k / 5 % 2],
        seed: k as u64,
        must_keep: &[],
        head: OneOutput {
            // Frozen gates start closed: they need random ones before them.
            convex_epochs: if k < 6 { 1 + k % 2 } else { k % 3 } as u32,
            refresh: refreshes[k / 3 % 3],
            signs: [Signs::Positive, Signs::Balanced][k % 2],
            empty: [Empty::Freeze, Empty::Open, Empty::Reseed][k / 6],
            step: STEPS[k % 3],
            refine: REFINEMENTS[k / 3 % 3],
        },
    })
}

/// What a run leaves, bit by bit.
#[derive(Debug, PartialEq)]
struct Bits {
    index: Vec<u32>,
    value: Vec<u32>,
    loss: u32,
}

fn train<S: HostSensing>(
    sensing: &mut S,
    labels: &[f32],
    nnz: usize,
    schedule: &Schedule<'_, OneOutput>,
) -> Result<Bits, Error<S::Source>> {
    let mut memory = vec![0; needed(sensing, nnz, schedule)];
    let trained = train::run(
        sensing,
        Labels::Values(labels),
        nnz,
        Start::Zero,
        schedule,
        &mut memory,
        |_| Continue(()),
    )?;
    let w = trained.network.w();
    assert_eq!(trained.info.nnz, w.nnz());
    Ok(Bits {
        index: w.index().to_vec(),
        value: w.value().iter().map(|v| v.to_bits()).collect(),
        loss: trained.info.loss.to_bits(),
    })
}

/// Words of the budget.
fn needed<S: HostSensing>(sensing: &S, nnz: usize, schedule: &Schedule<'_, OneOutput>) -> usize {
    let dims = Dims::new(sensing.rows(), sensing.inputs(), sensing.blocks(), nnz);
    let strip = schedule.budget(dims, 1, 0).strip;
    schedule.budget(dims, sensing.panel(), sensing.scratch(strip)).words()
}

fn blocked(made: &Planted, nnz: usize, layout: Layout) -> Blocked {
    Blocked::new(made.data.clone(), made.hidden, nnz, layout).unwrap()
}

fn layout(tile: usize, panel: usize) -> Layout {
    Layout { tile, panel, ..Layout::new(1, 1) }
}

fn floats(made: &Planted) -> Vec<f32> {
    made.data.values.clone().into_f32()
}

#[test]
fn training_on_the_reference_operator_does_not_depend_on_the_panel() {
    let made = planted::network(Dims::new(40, 9, 5, 8), Signs::Balanced, 1).unwrap();
    let x = floats(&made);
    let mut memory = vec![0.0; gated_words(9, 5)];
    let mut trained = 0;
    for schedule in schedules() {
        let mut with_panel = |p| {
            let mut sensing = Gated::new(Rows::new(&x, 9).unwrap(), 5, p, &mut memory).unwrap();
            train(&mut sensing, &made.labels, 8, &schedule).unwrap()
        };
        let one = with_panel(1);
        trained += usize::from(!one.index.is_empty());
        assert_eq!(one, with_panel(3), "{schedule:?}");
        assert_eq!(one, with_panel(5), "{schedule:?}");
    }
    // Normalised columns lose what is closed on a whole batch.
    assert!(trained >= 15, "{trained}");
}

#[test]
fn overrides_and_provided_bodies_train_to_the_same_bits() {
    let made = planted::network(Dims::new(40, 9, 5, 8), Signs::Balanced, 1).unwrap();
    let x = floats(&made);
    let mut memory = vec![0.0; gated_words(9, 5)];
    let mut sensing = Gated::new(Rows::new(&x, 9).unwrap(), 5, 2, &mut memory).unwrap();
    for schedule in schedules() {
        let overridden = train(&mut sensing, &made.labels, 8, &schedule).unwrap();
        let provided = train(&mut Spy::provided(&mut sensing), &made.labels, 8, &schedule).unwrap();
        assert_eq!(overridden, provided, "{schedule:?}");
    }
}

#[test]
fn training_on_the_blocked_operator_does_not_depend_on_the_number_of_threads() {
    let made = planted::network(Dims::new(700, 19, 11, 30), Signs::Balanced, 2).unwrap();
    let pools = [1, 2, 3].map(|n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap());
    let bytes =
        made.data.values.clone().into_f32().iter().map(|x| (x * 40.0 + 128.0) as u8).collect();
    for values in [made.data.values.clone(), Values::U8(bytes)] {
        let data = Matrix::new(700, 19, values).unwrap();
        for (i, schedule) in schedules().enumerate() {
            let layout = [layout(16, 3), layout(512, 11)][i % 2];
            // Fixed steps suit data of unit scale only.
            let wide = matches!(data.values, Values::U8(_));
            let step = if wide { Step::Normalised } else { schedule.head.step };
            let head = OneOutput { step, ..schedule.head };
            let schedule = Schedule { batch: 10 * schedule.batch, head, ..schedule };
            let runs = pools.each_ref().map(|pool| {
                let mut sensing = Blocked::new(data.clone(), 11, 30, layout).unwrap();
                pool.install(|| train(&mut sensing, &made.labels, 30, &schedule)).unwrap()
            });
            assert!(!runs[0].index.is_empty());
            assert_eq!(runs[0], runs[1], "{schedule:?}");
            assert_eq!(runs[0], runs[2], "{schedule:?}");
        }
    }
}

#[test]
fn a_gaussian_measurement_of_a_sparse_vector_is_solved() {
    for seed in 0..10 {
        let (n, d, m, s) = (120, 50, 6, 8);
        let mut index = vec![0; s];
        let mut rng = Rng::new(seed, 1 << 50);
        let step = d * m / s;
        index
            .iter_mut()
            .enumerate()
            .for_each(|(k, j)| *j = (k * step) as u32 + rng.below(step as u32));
        let value: Vec<f32> =
            (0..s).map(|k| if k % 2 == 0 { 1.0 } else { -1.0 } + 0.3 * rng.normal()).collect();
        let planted = Weights::new(d, m, &index, &value).unwrap();
        let mut sensing = Gaussian::new(seed, n, d, m).unwrap();
        let mut memory = vec![0; recovery_words(Dims::new(n, d, m, s), 1, n + d)];
        let error = recover(&mut sensing, Gates::seeded(0), planted, 12, &mut memory).unwrap();
        assert!(error < 1e-5, "seed {seed}: {error}");
    }
}

/// Under given gates a network is a linear measurement with the guarantees of hard thresholding.
#[test]
fn a_planted_network_is_found_under_given_gates_by_both_operators() {
    for seed in 0..10 {
        let dims = Dims::new(600, 15, 2, 4);
        let made = planted::network(dims, Signs::Balanced, seed).unwrap();
        let x = floats(&made);
        let mut row_memory = vec![0.0; gated_words(15, 2)];
        let mut reference = Gated::new(Rows::new(&x, 15).unwrap(), 2, 1, &mut row_memory).unwrap();
        let mut fast = blocked(&made, 4, layout(64, 2));
        // No weight so small that others hide it.
        let value: Vec<f32> = made.value.iter().map(|v| v + v.signum()).collect();
        let planted = Weights::new(15, 2, &made.index, &value).unwrap();
        let gates = Gates::seeded(seed);
        let mut memory = vec![0; recovery_words(dims, 2, 600 + 15)];
        let errors = [
            recover(&mut reference, gates, planted, 30, &mut memory),
            recover(&mut fast, gates, planted, 30, &mut memory),
        ];
        for error in errors {
            assert!(error.unwrap() < 1e-5, "seed {seed}: {error:?}");
        }
    }
}

/// From zero, gates unknown: one neuron, so that there is no permutation to undo.
#[test]
fn a_planted_neuron_is_found_from_zero() {
    for seed in 0..5 {
        let made = planted::network(Dims::new(400, 20, 1, 4), Signs::Positive, seed).unwrap();
        let schedule = Schedule { seed, ..Schedule::PAPER };
        let mut sensing = blocked(&made, 4, layout(64, 1));
        let bits = train(&mut sensing, &made.labels, 4, &schedule).unwrap();
        assert_eq!(bits.index, made.index, "seed {seed}");
        for (got, value) in bits.value.iter().zip(&made.value) {
            assert!((f32::from_bits(*got) - value).abs() < 1e-4, "seed {seed}");
        }
    }
}

#[test]
fn memory_of_exactly_the_budget_is_enough_and_one_word_less_is_not() {
    let made = planted::network(Dims::new(40, 9, 5, 8), Signs::Balanced, 1).unwrap();
    let x = floats(&made);
    let mut row_memory = vec![0.0; gated_words(9, 5)];
    for nnz in [1, 8, 45] {
        for schedule in schedules() {
            for p in [1, 2, 5] {
                let mut reference =
                    Gated::new(Rows::new(&x, 9).unwrap(), 5, p, &mut row_memory).unwrap();
                exact(&mut reference, &made.labels, nnz, &schedule);
                exact(&mut blocked(&made, nnz, layout(16, p)), &made.labels, nnz, &schedule);
            }
        }
    }
}

fn exact<S: HostSensing>(
    sensing: &mut S,
    labels: &[f32],
    nnz: usize,
    schedule: &Schedule<'_, OneOutput>,
) {
    let words = needed(sensing, nnz, schedule);
    let mut memory = vec![0; words];
    let labels = Labels::Values(labels);
    train::run(sensing, labels, nnz, Start::Zero, schedule, &mut memory, |_| Continue(())).unwrap();
    match train::run(
        sensing,
        labels,
        nnz,
        Start::Zero,
        schedule,
        &mut memory[1..],
        |_| Continue(()),
    ) {
        Err(Error::Budget { needed, got }) => {
            assert_eq!((needed, got), (words * WORD, (words - 1) * WORD));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_state_is_16_bytes_a_nonzero_and_the_rest_is_residual_scratch_and_panel() {
    let budget = Schedule::PAPER.budget(Dims::new(1000, 30, 8, 20), 4, 1030);
    assert_eq!(
        (budget.state_bytes(), budget.workspace_bytes()),
        (16 * 20, 4 * (1000 + 1030 + 4 * 30))
    );
    assert_eq!(budget.words() * WORD, budget.state_bytes() + budget.workspace_bytes());
}

#[test]
fn nothing_is_learned_from_zero_labels() {
    let made = planted::network(Dims::new(40, 9, 5, 8), Signs::Balanced, 1).unwrap();
    let x = floats(&made);
    let mut memory = vec![0.0; gated_words(9, 5)];
    let nothing = Bits { index: vec![], value: vec![], loss: 0 };
    for schedule in schedules() {
        let mut reference = Gated::new(Rows::new(&x, 9).unwrap(), 5, 2, &mut memory).unwrap();
        assert_eq!(
            train(&mut reference, &[0.0; 40], 8, &schedule).unwrap(),
            nothing,
            "{schedule:?}"
        );
        let mut fast = blocked(&made, 8, layout(16, 2));
        assert_eq!(train(&mut fast, &[0.0; 40], 8, &schedule).unwrap(), nothing, "{schedule:?}");
    }
}

/// Inputs 1, 3, 5, … are zero; none gets a weight, even where there is room for all.
#[test]
fn columns_of_zeros_get_no_weight() {
    let mut made = planted::network(Dims::new(40, 9, 5, 8), Signs::Balanced, 1).unwrap();
    let Values::F32(values) = &mut made.data.values else { panic!("floats") };
    values.chunks_mut(9).for_each(|row| row.iter_mut().skip(1).step_by(2).for_each(|x| *x = 0.0));
    let x = floats(&made);
    let mut memory = vec![0.0; gated_words(9, 5)];
    let mut trained = 0;
    for schedule in schedules() {
        let mut reference = Gated::new(Rows::new(&x, 9).unwrap(), 5, 2, &mut memory).unwrap();
        let mut fast = blocked(&made, 45, layout(16, 2));
        for bits in [
            train(&mut reference, &made.labels, 45, &schedule).unwrap(),
            train(&mut fast, &made.labels, 45, &schedule).unwrap(),
        ] {
            trained += usize::from(!bits.index.is_empty());
            assert!(bits.index.iter().all(|j| j % 9 % 2 == 0), "{schedule:?} {bits:?}");
        }
    }
    assert!(trained >= 30, "{trained}");
}

/// One theory step from the weights 0.7 of input 0 and 1 of input 1, on rows of which input 0 is
/// zero.
fn theory_step<S: HostSensing>(
    sensing: &mut S,
    labels: &[f32],
    unit: f32,
    nnz: usize,
) -> (Vec<u32>, Vec<f32>) {
    let (d, n) = (sensing.inputs(), sensing.local_rows());
    let gates = Gates::of(Weights::empty(d, 1), Signs::Positive, Empty::Open, 0, 1);
    let value = [0.7 / unit, 1.0 / unit];
    let w = Weights::new(d, 1, &[0, 1], &value).unwrap();
    let (mut index, mut value) = (vec![0; nnz], vec![0.0; nnz]);
    let (mut residual, mut panel) = (vec![0.0; n], vec![0.0; 2 * d]);
    let mut scratch = vec![0.0; sensing.scratch(n)];
    let mut work: Work<'_> =
        Work { residual: &mut residual, panel: &mut panel, scratch: &mut scratch, strips: None };
    let params = Params { step: Step::Theory { beta: 2.0 }, refine: Refine::None, must_keep: &[] };
    let out = EntriesMut { index: &mut index, value: &mut value };
    let info = iht::step(sensing, gates, labels, w, &params, out, &mut work).unwrap();
    index.truncate(info.nnz);
    value.truncate(info.nnz);
    (index, value)
}

/// A batch on which a column vanishes says nothing of its weight: it is not dropped for that, it
/// does not move, and it competes as if its column were as long as the others, in whatever unit the
/// inputs come.
#[test]
fn weights_on_columns_that_vanish_on_the_batch_stay_as_they_are() {
    let (n, d) = (60, 4);
    for unit in [1.0_f32, 1e-4, 1e6] {
        let mut x = vec![0.0; n * d];
        Rng::new(8, 1 << 50).fill_normal(&mut x);
        x.chunks_mut(d).for_each(|row| row[0] = 0.0);
        let labels = |of: fn(&[f32]) -> f32| -> Vec<f32> { x.chunks(d).map(of).collect() };
        let (same, other) = (labels(|row| row[1]), labels(|row| row[1] + 9.0 * row[2]));
        let x: Vec<f32> = x.iter().map(|x| x * unit).collect();
        let mut memory = vec![0.0; gated_words(d, 1)];
        let mut reference = Gated::new(Rows::new(&x, d).unwrap(), 1, 1, &mut memory).unwrap();
        let data = Matrix::new(n, d, Values::F32(x.clone())).unwrap();
        let mut fast = Blocked::new(data, 1, 3, layout(16, 1)).unwrap();
        let mut each = |labels: &[f32], nnz| {
            let found = theory_step(&mut reference, labels, unit, nnz);
            assert_eq!(theory_step(&mut fast, labels, unit, nnz).0, found.0);
            found
        };
        let (index, value) = each(&same, 2);
        assert_eq!((&index[..], value[0]), (&[0, 1][..], 0.7 / unit), "unit {unit}");
        // Input 2 becomes about 9/3, larger than both.
        let (index, value) = each(&other, 3);
        assert_eq!((&index[..], value[0]), (&[0, 1, 2][..], 0.7 / unit), "unit {unit}");
        assert!((value[2] * unit - 3.0).abs() < 1.0, "{value:?}");
        assert_eq!(each(&other, 2).0, [1, 2], "unit {unit}");
    }
}

/// Two equal columns have equal gradients; the first of them is taken.
#[test]
fn of_equal_columns_the_first_is_chosen() {
    let (n, d) = (30, 6);
    let mut x = vec![0.0; n * d];
    Rng::new(4, 1 << 50).fill_normal(&mut x);
    x.chunks_mut(d).for_each(|row| row.copy_within(0..3, 3));
    let labels: Vec<f32> = x.chunks(d).map(|row| row[1].max(0.0)).collect();
    let mut memory = vec![0.0; gated_words(d, 1)];
    let mut reference = Gated::new(Rows::new(&x, d).unwrap(), 1, 1, &mut memory).unwrap();
    let data = Matrix::new(n, d, Values::F32(x.clone())).unwrap();
    let mut fast = Blocked::new(data, 1, 1, layout(16, 1)).unwrap();
    for seed in 0..5 {
        let schedule = Schedule { seed, ..Schedule::PAPER };
        let chosen = train(&mut reference, &labels, 1, &schedule).unwrap().index;
        assert!(chosen.len() == 1 && chosen[0] < 3, "{chosen:?}");
        assert_eq!(train(&mut fast, &labels, 1, &schedule).unwrap().index, chosen);
    }
}

#[test]
fn bad_labels_and_sizes_are_errors() {
    let made = planted::network(Dims::new(40, 9, 5, 8), Signs::Balanced, 1).unwrap();
    let mut fast = blocked(&made, 45, layout(16, 2));
    let mut of = |labels: &[f32], nnz, schedule: Schedule<'_, OneOutput>| {
        let mut memory = vec![0; 10_000];
        let labels = Labels::Values(labels);
        train::run(&mut fast, labels, nnz, Start::Zero, &schedule, &mut memory, |_| Continue(()))
            .map(|trained| trained.info)
    };
    let mut labels = made.labels.clone();
    assert!(matches!(
        of(&labels[1..], 8, Schedule::PAPER),
        Err(Error::Length { expected: 40, got: 39, .. })
    ));
    assert!(matches!(of(&labels, 0, Schedule::PAPER), Err(Error::Range { .. })));
    assert!(matches!(of(&labels, 46, Schedule::PAPER), Err(Error::Range { max: 45, got: 46, .. })));
    assert!(matches!(
        of(&labels, 8, Schedule { epochs: 0, ..Schedule::PAPER }),
        Err(Error::Range { .. })
    ));
    for bad in [f32::NAN, f32::INFINITY] {
        labels[7] = bad;
        assert!(matches!(of(&labels, 8, Schedule::PAPER), Err(Error::NotFinite { at: 7, .. })));
    }
    let head = OneOutput { step: Step::Fixed(1e30), refine: Refine::None, ..OneOutput::PAPER };
    let far = Schedule { head, ..Schedule::PAPER };
    assert!(matches!(of(&made.labels, 8, far), Err(Error::Diverged { .. })));
}

fn top(candidates: &[f32], capacity: usize) -> Vec<(u32, u32)> {
    let (mut index, mut value) = (vec![0; capacity], vec![0.0; capacity]);
    let mut top = Top::new(&mut index, &mut value);
    candidates.iter().enumerate().for_each(|(j, &v)| top.push(j as u32, v));
    let len = top.finish().unwrap();
    index.into_iter().zip(value.iter().map(|v| v.to_bits())).take(len).collect()
}

fn sorted(candidates: &[f32], capacity: usize) -> Vec<(u32, u32)> {
    let mut all: Vec<(u32, f32)> =
        (0..).zip(candidates.iter().copied()).filter(|c| c.1 != 0.0).collect();
    all.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0)));
    all.truncate(capacity);
    all.sort_by_key(|c| c.0);
    all.into_iter().map(|(j, v)| (j, v.to_bits())).collect()
}

/// Many ties, zeros of both signs, and numbers across the whole range.
fn candidates() -> impl Strategy<Value = Vec<f32>> {
    let number = prop_oneof![
        (-3_i8..4).prop_map(f32::from),
        Just(-0.0_f32),
        any::<f32>().prop_filter("finite", |v| v.is_finite()),
    ];
    proptest::collection::vec(number, 0..400)
}

proptest! {
    #[test]
    fn the_streaming_selection_equals_a_sort(candidates in candidates(), capacity in 0_usize..420) {
        prop_assert_eq!(top(&candidates, capacity), sorted(&candidates, capacity));
    }

    #[test]
    fn supports_are_written_as_far_as_there_is_room(
        keep in proptest::collection::vec(any::<bool>(), 0..50),
        room in 0_usize..50,
    ) {
        let mut index = vec![0; room];
        let len = fill_support(&mut index, keep.len() as u32, |j| keep[j as usize]);
        let all: Vec<u32> = (0..keep.len() as u32).filter(|&j| keep[j as usize]).collect();
        prop_assert_eq!(&index[..len], &all[..all.len().min(room)]);
    }
}

/// The same values at other places are other weights.
#[test]
fn gates_and_weights_that_share_their_values_are_told_apart() {
    let values = [1.0, -2.0, 0.5, 1.5];
    let made = planted::network(Dims::new(40, 6, 3, 8), Signs::Balanced, 1).unwrap();
    let x = floats(&made);
    let mut memory = vec![0.0; gated_words(6, 3)];
    let mut reference = Gated::new(Rows::new(&x, 6).unwrap(), 3, 1, &mut memory).unwrap();
    let mut fast = blocked(&made, 8, layout(16, 3));
    let w = Weights::new(6, 3, &[0, 4, 7, 8], &values).unwrap();
    let other = Weights::new(6, 3, &[2, 3, 9, 10], &values).unwrap();
    let gates = Gates::of(other, Signs::Positive, Empty::Freeze, 0, 1);
    let (mut expected, mut got) = (vec![0.0; 40], vec![0.0; 40]);
    reference.forward(gates, w, &mut expected).unwrap();
    fast.forward(gates, w, &mut got).unwrap();
    assert_eq!(expected, got);
}

/// Powers of two in inputs and labels come out in the weights and nowhere else, far beyond the
/// range of their squares.
#[test]
fn scales_of_inputs_and_labels_change_nothing_but_the_scale_of_the_weights() {
    let dims = Dims::new(600, 8, 3, 5);
    let made = planted::network(dims, Signs::Positive, 4).unwrap();
    let cg = Refine::ConjugateGradient { steps: 5, tolerance: 1e-4 };
    for refine in [Refine::PAPER, cg] {
        let schedule =
            Schedule { head: OneOutput { refine, ..OneOutput::PAPER }, ..Schedule::PAPER };
        let run = |x: f32, y: f32| {
            let values: Vec<f32> = floats(&made).iter().map(|v| v * x).collect();
            let labels: Vec<f32> = made.labels.iter().map(|v| v * y).collect();
            let data = Matrix::new(600, 8, Values::F32(values)).unwrap();
            let mut sensing = Blocked::new(data, 3, 5, layout(64, 3)).unwrap();
            let mut memory = vec![0; needed(&sensing, 5, &schedule)];
            let labels = Labels::Values(&labels);
            let trained =
                train::run(&mut sensing, labels, 5, Start::Zero, &schedule, &mut memory, |_| {
                    Continue(())
                })
                .unwrap();
            let w = trained.network.w();
            (w.index().to_vec(), w.value().iter().map(|v| v * x / y).collect::<Vec<f32>>())
        };
        let plain = run(1.0, 1.0);
        assert_eq!(plain.0.len(), 5);
        let two = |exponent: i32| 2.0_f32.powi(exponent);
        for (x, y) in [(14, 20), (20, 0), (-20, -20), (0, 30), (14, -20)] {
            assert_eq!(run(two(x), two(y)), plain, "2^{x} and 2^{y}, {refine:?}");
        }
    }
}

/// Weights of other sizes than the operator's: an error or a result, but no panic.
#[test]
fn weights_of_other_sizes_do_not_panic() {
    let made = planted::network(Dims::new(40, 6, 3, 8), Signs::Balanced, 1).unwrap();
    let x = floats(&made);
    let mut memory = vec![0.0; gated_words(6, 3)];
    let mut reference = Gated::new(Rows::new(&x, 6).unwrap(), 3, 1, &mut memory).unwrap();
    let mut fast = blocked(&made, 8, layout(16, 3));
    for (d, m) in [(7, 3), (5, 3), (6, 4), (100, 1), (1, 100)] {
        let index = [0, (d * m) as u32 / 2, (d * m) as u32 - 1];
        let w = Weights::new(d, m, &index, &[1.0, 2.0, 3.0]).unwrap();
        let gates = Gates::of(w, Signs::Positive, Empty::Open, 0, 1);
        tolerate(&mut reference, gates, w);
        tolerate(&mut fast, gates, w);
    }
}

fn tolerate<S: HostSensing>(sensing: &mut S, gates: Gates<'_>, w: Weights<'_>) {
    let (mut out, mut few, mut scratch) = (vec![0.0; 40], vec![0.0; 3], vec![0.0; 1000]);
    let r = vec![1.0; 40];
    let _ = sensing.forward(gates, w, &mut out);
    let _ = sensing.gradient_at(gates, w.index(), &r, &mut few, &mut scratch);
    let _ = sensing.normal_at(gates, w, &mut few, &mut scratch);
    let gates = sensing.hold(gates, w.index()).unwrap_or(gates);
    let _ = sensing.normal_at(gates, w, &mut few, &mut scratch);
    for block in w.blocks() {
        let _ = sensing.apply(gates, block, &mut out);
    }
    let mut panel = vec![0.0; 6];
    let _ = sensing.gradient(gates, &r, 0..1, &mut panel);
    let _ = sensing.adjoint(gates, 0, &r, &mut panel);
}

/// Fails once with [`Error::Stopped`] in the next gradient after it was asked, and works on.
struct Stopping<'a, S> {
    inner: &'a mut S,
    asked: &'a Cell<bool>,
}

impl<S: Sensing> Wrapper for Stopping<'_, S> {
    type Inner = S;

    fn inner(&self) -> &S {
        self.inner
    }

    fn inner_mut(&mut self) -> &mut S {
        self.inner
    }

    fn before(&mut self, operation: Operation, _: usize) -> Result<Body, Error<S::Source>> {
        match operation {
            Operation::Gradient if self.asked.take() => Err(Error::Stopped),
            _ => Ok(Body::Inner),
        }
    }
}

const STARTS: Schedule<'_, OneOutput> =
    Schedule { epochs: 6, trials: Trials { count: 6, rows: 150 }, seed: 11, ..Schedule::PAPER };

/// A run of `count` starts that the operator ends in the step after the one that `last` accepts:
/// its weights.
fn ended(
    made: &Planted,
    count: u32,
    mut last: impl FnMut(&Progress<'_>) -> bool,
) -> (Vec<(u32, f32)>, Info) {
    let x = floats(made);
    let mut memory = vec![0.0; gated_words(20, 4)];
    let mut inner = Gated::new(Rows::new(&x, 20).unwrap(), 4, 4, &mut memory).unwrap();
    let asked = Cell::new(false);
    let mut sensing = Stopping { inner: &mut inner, asked: &asked };
    let schedule = Schedule { trials: Trials { count, ..STARTS.trials }, ..STARTS };
    let mut words = vec![0; needed(&sensing, 10, &schedule)];
    let observe = |progress: &Progress<'_>| {
        asked.set(last(progress));
        Continue(())
    };
    let trained = train::run(
        &mut sensing,
        Labels::Values(&made.labels),
        10,
        Start::Zero,
        &schedule,
        &mut words,
        observe,
    )
    .unwrap();
    let weights = trained.network.w();
    (weights.index().iter().copied().zip(weights.value().iter().copied()).collect(), trained.info)
}

#[test]
fn a_run_ended_during_the_trials_gives_the_best_start_so_far() {
    let made = planted::network(Dims::new(600, 20, 4, 10), Signs::Positive, 3).unwrap();
    let per_trial = STARTS.epochs;
    let mut again = 0;
    for tried in 2..STARTS.trials.count {
        // The best of so many starts is what the run on all rows begins with.
        let mut before = 0;
        let (_, whole) = ended(&made, tried, |p| {
            before += u32::from(p.trial > 0);
            false
        });
        assert_eq!((whole.trials, whole.stopped), (tried, false), "the best one counts once");
        assert_eq!(whole.steps, per_trial);
        let (best, info) = ended(&made, tried, |p| p.step == before);
        assert_eq!((info.trials, info.stopped, info.steps), (tried, true, 0));
        again += u32::from(before > tried * per_trial);
        // Ended in the first step of the next start, the run gives the same.
        let (found, info) = ended(&made, STARTS.trials.count, |p| p.step == tried * per_trial);
        assert_eq!((info.trials, info.stopped, info.steps), (tried + 1, true, 0));
        assert_eq!(found, best, "after {tried} starts");
        assert!(!found.is_empty());
    }
    assert!(again > 0, "the best start was always the last: the test shows nothing");
}

#[test]
fn an_operator_that_stops_leaves_the_last_complete_step() {
    let made = planted::network(Dims::new(600, 20, 4, 10), Signs::Positive, 3).unwrap();
    for steps in 1..STARTS.epochs {
        let (found, info) = ended(&made, 1, |p| p.step == steps);
        assert_eq!((info.steps, info.stopped), (steps, true));
        let x = floats(&made);
        let mut memory = vec![0.0; gated_words(20, 4)];
        let mut sensing = Gated::new(Rows::new(&x, 20).unwrap(), 4, 4, &mut memory).unwrap();
        let schedule = Schedule { epochs: steps, trials: Trials::NONE, ..STARTS };
        let mut words = vec![0; needed(&sensing, 10, &schedule)];
        let labels = Labels::Values(&made.labels);
        let short =
            train::run(&mut sensing, labels, 10, Start::Zero, &schedule, &mut words, |_| {
                Continue(())
            })
            .unwrap();
        let w = short.network.w();
        let expected = w.index().iter().copied().zip(w.value().iter().copied());
        assert_eq!(found, expected.collect::<Vec<_>>());
        assert_eq!(info.loss.to_bits(), short.info.loss.to_bits());
    }
}
