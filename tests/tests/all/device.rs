//! What moves between an algorithm and an operator that lives elsewhere: numbers of the size of the
//! support, and the panels asked for. That a search runs on a [`Device`] at all says that it reads
//! no row vector.

use std::cell::Cell;
use std::ops::ControlFlow::{Break, Continue};

use tamis::base::budget::{Recovery, gated_words};
use tamis::base::dims::Dims;
use tamis::base::rng::Rng;
use tamis::data::samples::Rows;
use tamis::learn::anneal;
use tamis::learn::iht::{self, Info, Params, Refine, Step};
use tamis::learn::lm;
use tamis::learn::loss::{self, Classes, Labels};
use tamis::learn::start::Start;
use tamis::learn::train::{self, OneOutput, Rank, Schedule, SeveralOutputs, Trials};
use tamis::network::gates::{Gates, Signs};
use tamis::network::net::EntriesMut;
use tamis::network::weights::Weights;
use tamis::operator::gated::Gated;
use tamis::operator::machine::Machine;
use tamis::operator::sensing::{self, Sensing, Work};
use tamis_tests::conformance::{Device, Registers, Transfers};

const DIMS: Dims = Dims::new(4000, 12, 5, 20);
const BLOCKS: usize = 8;
const OUTPUTS: usize = 3;
/// Numbers of all registers of a run.
const REGISTERS: usize = 12 * DIMS.samples;

/// Normal rows, and what five neurons of four weights make of them.
fn planted(signs: Signs) -> (Vec<f32>, Vec<f32>) {
    let mut rng = Rng::new(1, 0);
    let mut rows = vec![0.0; DIMS.samples * DIMS.inputs];
    rng.fill_normal(&mut rows);
    let neurons: [[(u32, f32); 4]; 5] =
        core::array::from_fn(|_| core::array::from_fn(|_| (rng.below(12), rng.normal())));
    // As many of either sign, where the search may choose.
    let made_with = if signs.both() { Signs::Balanced } else { signs };
    let label = |x: &[f32]| {
        let output = |(i, w): (usize, &[(u32, f32); 4])| {
            made_with.sign(i) * w.iter().map(|(j, w)| x[*j as usize] * w).sum::<f32>().max(0.0)
        };
        neurons.iter().enumerate().map(output).sum()
    };
    let labels = rows.chunks(DIMS.inputs).map(label).collect();
    (rows, labels)
}

fn gated<'a>(rows: &'a [f32], memory: &'a mut Vec<f32>) -> Gated<'a, Rows<'a>> {
    memory.resize(gated_words(DIMS.inputs, BLOCKS), 0.0);
    Gated::new(Rows::new(rows, DIMS.inputs).unwrap(), BLOCKS, BLOCKS, memory).unwrap()
}

/// One step from `w`: the support and the bits of the new weights, and what was done.
fn step<S: Sensing>(
    sensing: &mut S,
    labels: &sensing::Rows<S>,
    w: Weights<'_>,
    params: &Params<'_>,
) -> (Vec<u32>, Vec<u32>, Info) {
    let (s, n) = (w.nnz(), sensing.rows());
    let (mut index, mut value) = (vec![0; s], vec![0.0; s]);
    let (mut residual, mut panel) = (vec![0.0; n], vec![0.0; 2 * BLOCKS * DIMS.inputs]);
    let mut scratch = vec![0.0; sensing.scratch(n)];
    let residual = sensing.machine().rows_in(&mut residual);
    let mut work = Work { residual, panel: &mut panel, scratch: &mut scratch, strips: None };
    let gates = Gates::of(w, Signs::Positive, Default::default(), 0, 0);
    let new = EntriesMut { index: &mut index[..], value: &mut value[..] };
    let info = iht::step(sensing, gates, labels, w, params, new, &mut work).unwrap();
    (index, value.iter().map(|v| v.to_bits()).collect(), info)
}

#[test]
fn hard_thresholding_step_moves_support_and_panel_only() {
    let (rows, labels) = planted(Signs::Positive);
    let index = [1, 2, 14, 17, 30, 31, 40, 55, 60];
    let w = Weights::new(DIMS.inputs, BLOCKS, &index, &[0.5; 9]).unwrap();
    let refine = Refine::ConjugateGradient { steps: 5, tolerance: 0.0 };
    let theory = Params { step: Step::Theory { beta: 4.0 }, refine, must_keep: &[] };
    for (params, panels) in [(Params::PAPER, 1), (theory, 2)] {
        let (mut memory, mut other) = (Vec::new(), Vec::new());
        let expected = step(&mut gated(&rows, &mut memory), &labels[..], w, &params);
        let mut inner = gated(&rows, &mut other);
        let (transfers, mut registers) = (Cell::default(), vec![0.0; REGISTERS]);
        let mut device = Device::new(&mut inner, Registers::new(&mut registers, &transfers));
        let mut handle = vec![0.0; DIMS.samples];
        let labels = device.registers().upload(&labels, &mut handle);
        assert_eq!(step(&mut device, labels, w, &params), expected);
        let Transfers { numbers, panels: of_panels, largest } = transfers.get();
        // Fifteen products at most on s weights, of which each is three vectors, and gates and
        // weights around them; conjugate gradients are one call.
        assert!(numbers <= 60 * w.nnz() && largest <= 6 * w.nnz(), "{numbers}, at once {largest}");
        // The gradient, the norms of its columns where they scale the step, and again those of live
        // neurons.
        let panel = BLOCKS * DIMS.inputs;
        assert!((panels * panel..=(2 * panels - 1) * panel).contains(&of_panels), "{of_panels}");
    }
}

#[test]
fn a_search_moves_supports_and_panels_only() {
    for signs in [Signs::Positive, Signs::Free] {
        let (rows, labels) = planted(signs);
        let params = lm::Params { signs, rows: 2000, ..lm::Params::DEFAULT };
        let budget = Recovery::new(DIMS, BLOCKS, DIMS.samples + DIMS.inputs, signs.linear(0));
        let goal = lm::Goal::one_output(DIMS);
        let (mut memory, mut other) = (Vec::new(), Vec::new());
        let (mut words, mut others) = (vec![0; budget.words()], vec![0; budget.words()]);
        let mut host = gated(&rows, &mut memory);
        let expected =
            lm::run(&mut host, &labels[..], goal, Start::Zero, &params, &mut words, |_| {
                Continue(())
            })
            .unwrap();
        let mut inner = gated(&rows, &mut other);
        let (transfers, mut registers) = (Cell::default(), vec![0.0; REGISTERS]);
        let mut device = Device::new(&mut inner, Registers::new(&mut registers, &transfers));
        let mut handle = vec![0.0; DIMS.samples];
        let labels = device.registers().upload(&labels, &mut handle);
        let found =
            lm::run(&mut device, labels, goal, Start::Zero, &params, &mut others, |_| Continue(()))
                .unwrap();
        assert_eq!(found, expected);
        let (Transfers { numbers, largest, .. }, info) = (transfers.get(), found.info);
        // A call moves at most four vectors on a support of 1.75 s weights and a linear term; an
        // outer step makes four fits of at most seven attempts, and a trial forms its candidates
        // besides. A row vector would be 2000 numbers.
        assert!(info.trials > 0 || signs == Signs::Positive);
        let steps = (info.steps + info.trials) as usize;
        assert!(largest <= 8 * (DIMS.nnz + DIMS.inputs), "{largest} numbers at once");
        assert!(numbers <= 400 * steps * DIMS.nnz, "{numbers} in {steps} steps");
    }
}

/// What a run of the published method is made of.
struct Made {
    rows: Vec<f32>,
    labels: Vec<f32>,
    several: Vec<f32>,
    classes: Vec<u16>,
}

/// Labels of [`planted`], three outputs of four neurons of three weights, and the largest of these.
fn made() -> Made {
    let (rows, labels) = planted(Signs::Positive);
    let outputs = |x: &[f32]| {
        let [a, b, c, d] = [[1, 4, 7], [2, 5, 9], [0, 3, 10], [6, 8, 11]]
            .map(|[i, j, k]| (x[i] - 0.7 * x[j] + 0.4 * x[k]).max(0.0));
        [a - b, c + 0.5 * b, 2.0 * d - c]
    };
    let several: Vec<f32> = rows.chunks(DIMS.inputs).flat_map(outputs).collect();
    let classes = several.chunks(OUTPUTS).map(|y| loss::best(y) as u16).collect();
    Made { rows, labels, several, classes }
}

/// Runs `work` on a device; its result, and what has moved.
fn on_device<T>(
    rows: &[f32],
    work: impl FnOnce(&mut Device<'_, Gated<'_, Rows<'_>>>) -> T,
) -> (T, Transfers) {
    let mut memory = Vec::new();
    let mut inner = gated(rows, &mut memory);
    let (transfers, mut registers) = (Cell::default(), vec![0.0; REGISTERS]);
    let mut device = Device::new(&mut inner, Registers::new(&mut registers, &transfers));
    let result = work(&mut device);
    (result, transfers.get())
}

/// The network, what has been done, and all steps.
macro_rules! train {
    ($sensing:expr, $labels:expr, $schedule:expr, $words:expr) => {{
        let (mut memory, mut steps, s) = (vec![0; $words], 0, DIMS.nnz);
        let trained =
            train::run($sensing, $labels, s, Start::Zero, $schedule, &mut memory, |progress| {
                steps = progress.step;
                Continue(())
            })
            .unwrap();
        let net = trained.network;
        let bits = [net.w(), net.wt()]
            .map(|side| side.value().iter().map(|v| v.to_bits()).collect::<Vec<_>>());
        ([net.w(), net.wt()].map(|side| side.index().to_vec()), bits, trained.info, steps)
    }};
}

const NET: Dims = Dims::new(DIMS.samples, DIMS.inputs, BLOCKS, DIMS.nnz);

#[test]
fn hard_thresholding_run_moves_supports_and_panels_only() {
    let Made { rows, labels, .. } = made();
    let head = OneOutput {
        refine: Refine::ConjugateGradient { steps: 5, tolerance: 1e-3 },
        ..OneOutput::PAPER
    };
    for (strip, head) in [(0, head), (300, OneOutput::PAPER)] {
        let trials = Trials { count: 3, rows: 1500 };
        let schedule = Schedule { epochs: 4, batch: 1000, strip, trials, head, ..Schedule::PAPER };
        let words = schedule.budget(NET, BLOCKS, DIMS.samples + DIMS.inputs).words();
        let mut memory = Vec::new();
        let host = &mut gated(&rows, &mut memory);
        let expected = train!(host, Labels::values(&labels), &schedule, words);
        let (found, moved) = on_device(&rows, |device| {
            let mut handle = vec![0.0; DIMS.samples];
            let labels = device.registers().upload(&labels, &mut handle);
            train!(device, Labels::Values(labels), &schedule, words)
        });
        assert_eq!(found, expected);
        // Products, each three vectors, with gates and weights around them, in each of four strips.
        let (strips, Transfers { numbers, largest, .. }) = (if strip > 0 { 4 } else { 1 }, moved);
        let most = 70 * strips * found.3 as usize * DIMS.nnz;
        assert!(numbers <= most && largest <= 6 * DIMS.nnz, "{moved:?} in {} steps", found.3);
    }
}

#[test]
fn several_output_run_moves_supports_and_panels_only() {
    let Made { rows, several, classes, .. } = made();
    for (is_class, rank, strip) in [
        (false, Rank::Exact, 0),
        (false, Rank::Sketch { decay: 1.0 }, 300),
        (true, Rank::Exact, 300),
        (true, Rank::Sketch { decay: 1.0 }, 0),
    ] {
        let of = if is_class { Labels::classes(&[], OUTPUTS) } else { Labels::values(&[]) };
        let head =
            SeveralOutputs { rank, step_size: 0.1, ..SeveralOutputs::paper(&of, BLOCKS, DIMS.nnz) };
        let schedule = Schedule {
            epochs: 4,
            batch: 1000,
            strip,
            head,
            ..Schedule::paper(&of, BLOCKS, DIMS.nnz)
        }
        .safe();
        let words = schedule.budget(NET, OUTPUTS, BLOCKS, 2 * DIMS.samples + DIMS.inputs).words();
        let mut memory = Vec::new();
        let host = &mut gated(&rows, &mut memory);
        let labels =
            if is_class { Labels::classes(&classes, OUTPUTS) } else { Labels::values(&several) };
        let expected = train!(host, labels, &schedule, words);
        let (found, moved) = on_device(&rows, |device| {
            let mut handle = vec![0.0; if is_class { DIMS.samples } else { several.len() }];
            let registers = device.registers();
            let labels = if is_class {
                let labels = registers.upload_classes(&classes, &mut handle);
                Labels::Classes(Classes { labels, outputs: OUTPUTS })
            } else {
                Labels::Values(registers.upload(&several, &mut handle))
            };
            train!(device, labels, &schedule, words)
        });
        assert_eq!(found, expected);
        // Networks and gradients in each of four strips, and random values for a panel's empty blocks.
        let (strips, Transfers { numbers, panels, largest }) =
            (if strip > 0 { 4 } else { 1 }, moved);
        let most = 10 * strips * found.3 as usize * DIMS.nnz + 2 * panels;
        let panel = BLOCKS * (DIMS.inputs + OUTPUTS);
        assert!(numbers <= most && largest <= 4 * panel, "{moved:?} in {} steps", found.3);
    }
}

#[test]
fn several_output_search_moves_supports_and_panels_only() {
    let Made { rows, several, .. } = made();
    let params = lm::Params { rows: 1000, ..lm::Params::DEFAULT };
    // A network that fits, and the first moves of a search for a smaller one.
    for nnz in [DIMS.nnz, 14] {
        let dims = Dims::new(DIMS.samples, DIMS.inputs, DIMS.hidden, nnz);
        let budget = Recovery::factored(dims, OUTPUTS, BLOCKS, 2 * DIMS.samples + DIMS.inputs);
        let goal = lm::Goal::several_outputs(dims);
        let (mut words, mut others) = (vec![0; budget.words()], vec![0; budget.words()]);
        let observe = |progress: &lm::Progress<'_>| {
            if progress.step < 40 { Continue(()) } else { Break(()) }
        };
        let mut memory = Vec::new();
        let host = &mut gated(&rows, &mut memory);
        let expected =
            lm::run(host, &several[..], goal, Start::Zero, &params, &mut words, observe).unwrap();
        let (found, moved) = on_device(&rows, |device| {
            let mut handle = vec![0.0; several.len()];
            let labels = device.registers().upload(&several, &mut handle);
            lm::run(device, labels, goal, Start::Zero, &params, &mut others, observe).unwrap()
        });
        assert_eq!(found, expected);
        let (Transfers { numbers, largest, .. }, info) = (moved, found.info);
        // Network, direction, product and gates of 1.75 s weights; an outer step makes up to seven
        // attempts of many products, and a trial forms its candidates besides.
        assert!(info.exact != (info.trials > 0), "{info:?}");
        let steps = (info.steps + info.trials) as usize;
        assert!(largest <= 11 * nnz, "{largest} numbers at once");
        assert!(numbers <= 500 * steps * nnz, "{numbers} in {steps} steps");
    }
}

#[test]
fn an_annealed_support_moves_supports_and_panels_only() {
    let Made { rows, classes, .. } = made();
    let params = anneal::Params {
        epochs: 6,
        batch: 500,
        growth_rows: 1000,
        validation: 400,
        ..anneal::Params::DEFAULT
    };
    let scratch = 2 * DIMS.samples + DIMS.inputs;
    let budget = params.budget(NET, OUTPUTS, BLOCKS, scratch);
    let (mut words, mut others) = (vec![0; budget.words()], vec![0; budget.words()]);
    let (mut memory, s) = (Vec::new(), DIMS.nnz);
    let (labels, observe) =
        (Classes::new(&classes, OUTPUTS), |_: &anneal::Progress<'_>| Continue(()));
    let host = &mut gated(&rows, &mut memory);
    let expected = anneal::run(host, labels, s, Start::Zero, &params, &mut words, observe).unwrap();
    let (found, moved) = on_device(&rows, |device| {
        let mut handle = vec![0.0; DIMS.samples];
        let labels = device.registers().upload_classes(&classes, &mut handle);
        let labels = Classes { labels, outputs: OUTPUTS };
        anneal::run(device, labels, s, Start::Zero, &params, &mut others, observe).unwrap()
    });
    assert_eq!(found, expected);
    let (Transfers { numbers, largest, .. }, info) = (moved, found.info);
    // Network and gradient of the support, which begins with 6 s weights.
    assert!(largest <= 5 * budget.start, "{largest} numbers at once");
    assert!(numbers <= 6 * info.steps as usize * budget.start, "{numbers} in {info:?}");
}

#[test]
fn two_layer_search_moves_supports_and_panels_only() {
    let Made { rows, .. } = made();
    let label = |x: &[f32]| {
        let [a, b, c, d] = [[1, 4], [2, 5], [0, 3], [6, 8]].map(|[i, j]| (x[i] - x[j]).max(0.0));
        (a - 0.8 * b).max(0.0) + (1.5 * c - d).max(0.0)
    };
    let labels: Vec<f32> = rows.chunks(DIMS.inputs).map(label).collect();
    let params = lm::Params { rows: 1000, ..lm::Params::DEFAULT };
    let (second, scratch) = (2, 2 * DIMS.samples + DIMS.inputs);
    let dims = Dims::new(DIMS.samples, DIMS.inputs, 4, 12);
    let budget = Recovery::deep(dims, BLOCKS, lm::second_slots(second), BLOCKS, scratch);
    let goal = lm::Goal::two_layers(dims, second);
    let (mut words, mut others) = (vec![0; budget.words()], vec![0; budget.words()]);
    let observe = |progress: &lm::Progress<'_>| {
        if progress.step < 40 { Continue(()) } else { Break(()) }
    };
    let mut memory = Vec::new();
    let host = &mut gated(&rows, &mut memory);
    let expected =
        lm::run(host, &labels[..], goal, Start::Zero, &params, &mut words, observe).unwrap();
    let (found, moved) = on_device(&rows, |device| {
        let mut handle = vec![0.0; labels.len()];
        let labels = device.registers().upload(&labels, &mut handle);
        lm::run(device, labels, goal, Start::Zero, &params, &mut others, observe).unwrap()
    });
    assert_eq!(found, expected);
    let (Transfers { numbers, largest, .. }, info) = (moved, found.info);
    // As with several outputs; the weights of output 0, one a block, come on top of s.
    assert!(info.trials > 0 && info.moves > 0 && info.folds > 0, "{info:?}");
    let (steps, s) = ((info.steps + info.trials) as usize, dims.nnz + BLOCKS);
    assert!(largest <= 11 * s, "{largest} numbers at once");
    assert!(numbers <= 500 * steps * s, "{numbers} in {steps} steps");
}
