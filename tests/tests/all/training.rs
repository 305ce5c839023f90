//! Training on every operator: planted weights, degenerate labels and columns, exact budgets, and
//! results that depend neither on the panel nor on threads.

use std::ops::ControlFlow::Continue;
use tamis::Error;
use tamis::base::budget::{WORD, gated_words};
use tamis::base::dims::Dims;
use tamis::base::rng::Rng;
use tamis::data::samples::Rows;
use tamis::learn::iht::{self, Params, Refine, Step};
use tamis::learn::loss::Labels;
use tamis::learn::start::Start;
use tamis::learn::train::{self, OneOutput, Refresh, Schedule, Trials};
use tamis::network::gates::{Empty, Gates, Signs};
use tamis::network::net::EntriesMut;
use tamis::network::weights::Weights;
use tamis::operator::gated::Gated;
use tamis::operator::gaussian::Gaussian;
use tamis::operator::sensing::{HostSensing, Work};
use tamis_host::data::planted::{self, Planted};
use tamis_host::data::{Matrix, Values};
use tamis_host::operator::{Blocked, Layout};
use tamis_tests::conformance::{Spy, recover, recovery_words};

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
pub(crate) fn needed<S: HostSensing>(
    sensing: &S,
    nnz: usize,
    schedule: &Schedule<'_, OneOutput>,
) -> usize {
    let dims = Dims::new(sensing.rows(), sensing.inputs(), sensing.blocks(), nnz);
    let strip = schedule.budget(dims, 1, 0).strip;
    schedule.budget(dims, sensing.panel(), sensing.scratch(strip)).words()
}

pub(crate) fn blocked(made: &Planted, nnz: usize, layout: Layout) -> Blocked {
    Blocked::new(made.data.clone(), made.hidden, nnz, layout).unwrap()
}

pub(crate) fn layout(tile: usize, panel: usize) -> Layout {
    Layout { tile, panel, ..Layout::new(1, 1) }
}

pub(crate) fn floats(made: &Planted) -> Vec<f32> {
    made.data.values.clone().into_f32()
}

#[test]
fn reference_operator_training_is_independent_of_panel() {
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
fn overrides_and_provided_methods_train_bit_identical() {
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
fn blocked_operator_training_is_independent_of_threads() {
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
fn gaussian_measurement_of_sparse_vector_is_solved() {
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
fn both_operators_recover_planted_network_under_given_gates() {
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
fn exact_memory_budget_suffices_one_word_less_fails() {
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
fn state_is_16_bytes_per_nonzero_plus_buffers() {
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
fn weights_on_batch_vanishing_columns_stay_unchanged() {
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

/// Powers of two in inputs and labels come out in the weights and nowhere else, far beyond the
/// range of their squares.
#[test]
fn input_and_label_scales_change_only_weight_scale() {
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
            let labels = Labels::values(&labels);
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
