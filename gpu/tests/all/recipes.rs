//! Whole runs of the recipes: the results of the host, and what moves.

use crate::gpu;
use std::ops::ControlFlow::{Break, Continue};
use tamis::base::budget::Recovery;
use tamis::base::dims::Dims;
use tamis::base::record::Record;
use tamis::learn::anneal;
use tamis::learn::iht::{self, Params, Refine, Step};
use tamis::learn::lm::{self, Goal};
use tamis::learn::loss::{self, Classes, Labels};
use tamis::learn::start::Start;
use tamis::learn::train::{self, OneOutput, Schedule};
use tamis::network::gates::{Empty, Gates, Signs};
use tamis::network::net::EntriesMut;
use tamis::network::weights::Weights;
use tamis::operator::factored::Factored;
use tamis::operator::machine::Machine;
use tamis::operator::sensing::{Rows, Sensing, Work};
use tamis_gpu::{GpuOperator, Values};
use tamis_host::data::planted::{self, Planted};
use tamis_host::operator::{Blocked, Layout};

/// A search for a planted network: what it found, and its weights.
fn search<S: Factored>(
    sensing: &mut S,
    labels: &Rows<S>,
    dims: Dims,
) -> (lm::Info, Vec<u32>, Vec<f32>) {
    let params = lm::Params { signs: Signs::Positive, ..lm::Params::DEFAULT };
    let budget = Recovery::new(dims, sensing.panel(), dims.samples + dims.inputs, false);
    let mut memory = vec![0; budget.words()];
    let goal = Goal::one_output(dims);
    let found = lm::run(sensing, labels, goal, Start::Zero, &params, &mut memory, |_| Continue(()));
    let lm::Trained { network, info } = found.unwrap();
    (info, network.w().index().to_vec(), network.w().value().to_vec())
}

fn floats(planted: &Planted) -> Vec<f32> {
    planted.data.values.clone().into_f32()
}

#[test]
fn search_recovers_planted_networks_as_on_the_host() {
    for (hidden, nnz, n) in [(10, 50, 4000), (20, 80, 6000)] {
        let dims = Dims::new(n, 50, hidden, nnz);
        let made = planted::network(dims, Signs::Positive, 3).unwrap();
        let slots = lm::slots(hidden, Signs::Positive);
        let layout = Layout::new(slots, 50);
        let mut host = Blocked::new(made.data.clone(), slots, 2 * nnz + 50, layout).unwrap();
        let (expected, index, value) = search(&mut host, &made.labels[..], dims);
        let values = floats(&made);
        let mut device = GpuOperator::new(gpu(), 50, slots, Values::F32(&values)).unwrap();
        let mut handle = vec![0.0; n];
        let labels = device.machine().upload(&made.labels, &mut handle);
        let (info, own, weights) = search(&mut device, labels, dims);
        assert!(expected.exact && info.exact, "{expected:?} {info:?}");
        // Neurons may be numbered otherwise: the weights are the same, in some order.
        let sorted = |value: &[f32]| {
            let mut value = value.to_vec();
            value.sort_by(f32::total_cmp);
            value
        };
        assert_eq!(own.len(), index.len());
        for (a, b) in sorted(&weights).iter().zip(sorted(&value)) {
            assert!((a - b).abs() < 1e-4, "{a} {b}");
        }
    }
}

/// Steps of hard thresholding from the host's weights: how many have the host's support on the
/// device, of how many; and what one moves.
fn steps(hidden: usize, nnz: usize) -> [u64; 3] {
    let (n, d, count) = (4000, 50, 20);
    let made = planted::network(Dims::new(n, d, hidden, nnz), Signs::Positive, 1).unwrap();
    let mut host = Blocked::new(made.data.clone(), hidden, nnz, Layout::new(hidden, d)).unwrap();
    let values = floats(&made);
    let mut device = GpuOperator::new(gpu(), d, hidden, Values::F32(&values)).unwrap();
    let mut handle = vec![0.0; n];
    device.machine().upload(&made.labels, &mut handle);
    let labels: Vec<u32> = bytemuck::cast_slice(&handle).to_vec();
    let mut index: Vec<u32> = (0..nnz as u32).map(|j| j * (hidden * d / nnz) as u32).collect();
    let mut value = vec![0.1; nnz];
    let (mut same, mut moved) = (0, 0);
    for _ in 0..count {
        let before = device.transfers();
        let on_device = step(&mut device, &labels, &index, &value, [n, d, hidden]);
        let after = device.transfers();
        assert_eq!(after.data, before.data);
        moved = after.sent + after.received - before.sent - before.received;
        (index, value) = step(&mut host, &made.labels[..], &index, &value, [n, d, hidden]);
        same += u64::from(on_device.0 == index);
    }
    [same, count, moved]
}

/// The support and weights after a step under the weights' own gates, and random ones where a neuron
/// has none.
fn step<S: Sensing>(
    sensing: &mut S,
    labels: &Rows<S>,
    index: &[u32],
    value: &[f32],
    [n, d, m]: [usize; 3],
) -> (Vec<u32>, Vec<f32>) {
    let (s, mut scratch) = (index.len(), vec![0.0; n + d]);
    let (mut new, mut values) = (vec![0; s], vec![0.0; s]);
    let (mut residual, mut panel) = (vec![0.0; n], vec![0.0; (m * d).max(3 * s)]);
    let residual = sensing.machine().rows_in(&mut residual);
    let mut work = Work { residual, panel: &mut panel, scratch: &mut scratch, strips: None };
    let w = Weights::new(d, m, index, value).unwrap();
    let gates = Gates::of(w, Signs::Positive, Empty::Freeze, 0, 0);
    let out = EntriesMut { index: &mut new[..], value: &mut values[..] };
    let params = Params {
        step: Step::Normalised,
        refine: Refine::ConjugateGradient { steps: 10, tolerance: 1e-3 },
        must_keep: &[],
    };
    let nnz = iht::step(sensing, gates, labels, w, &params, out, &mut work).unwrap().nnz;
    new.truncate(nnz);
    values.truncate(nnz);
    (new, values)
}

#[test]
fn steps_have_the_support_of_the_host_and_move_no_vector() {
    for (hidden, nnz) in [(10, 50), (50, 200), (50, 1000)] {
        let [same, all, moved] = steps(hidden, nnz);
        assert!(20 * same >= 19 * all, "{same} of {all} supports, {hidden} neurons");
        let panel = 4 * 50 * hidden as u64;
        assert!(moved <= panel + (64 << 10), "{moved} bytes, {panel} of them the panel");
    }
}

#[test]
fn published_method_trains_as_on_the_host() {
    let (n, d, m, s) = (3000, 20, 8, 40);
    let made = planted::network(Dims::new(n, d, m, s), Signs::Positive, 2).unwrap();
    let values = floats(&made);
    let head = OneOutput {
        refine: Refine::ConjugateGradient { steps: 5, tolerance: 1e-3 },
        ..OneOutput::PAPER
    };
    let schedule = Schedule { epochs: 20, head, ..Schedule::PAPER };
    let dims = Dims::new(n, d, m, s);
    let mut host = Blocked::new(made.data.clone(), m, s, Layout::new(m, d)).unwrap();
    let mut device = GpuOperator::new(gpu(), d, m, Values::F32(&values)).unwrap();
    let words = schedule.budget(dims, m, n + d).words();
    let run = |words: &mut [u32], device: Option<&mut GpuOperator>, host: &mut Blocked| {
        let mut losses = Vec::new();
        let see = |progress: &train::Progress<'_>| {
            losses.push(progress.loss);
            Continue(())
        };
        let mut handle = vec![0.0; n];
        match device {
            None => {
                let labels = Labels::values(&made.labels);
                train::run(host, labels, s, Start::Zero, &schedule, words, see).unwrap();
            }
            Some(device) => {
                let labels = Labels::Values(device.machine().upload(&made.labels, &mut handle));
                train::run(device, labels, s, Start::Zero, &schedule, words, see).unwrap();
            }
        }
        losses
    };
    let expected = run(&mut vec![0; words], None, &mut host);
    let got = run(&mut vec![0; words], Some(&mut device), &mut host);
    assert_eq!(got.len(), expected.len());
    let (first, last, on_host) = (got[0], got[got.len() - 1], expected[expected.len() - 1]);
    assert!(last < 0.5 * first, "{first} to {last}");
    // 1 dB of PSNR.
    assert!((last / on_host).log10().abs() < 0.1, "{last}, {on_host} on the host");
}

#[test]
fn several_outputs_classes_and_two_layers_train() {
    let (n, d, m, c) = (1500, 12, 8, 3);
    let rows = crate::normal(n * d, 1);
    let outputs = |x: &[f32]| {
        let [a, b, c, d] = [[1, 4, 7], [2, 5, 9], [0, 3, 10], [6, 8, 11]]
            .map(|[i, j, k]| (x[i] - 0.7 * x[j] + 0.4 * x[k]).max(0.0));
        [a - b, c + 0.5 * b, 2.0 * d - c]
    };
    let several: Vec<f32> = rows.chunks(d).flat_map(outputs).collect();
    let classes: Vec<u16> = several.chunks(c).map(|y| loss::best(y) as u16).collect();
    let mut device = GpuOperator::new(gpu(), d, m, Values::F32(&rows)).unwrap();
    let mut handle = vec![0.0; n * c];
    // A search with several outputs finds the network of 24 weights.
    let dims = Dims::new(n, d, 4, 24);
    let budget = Recovery::factored(dims, c, m, 2 * n + d);
    let mut memory = vec![0; budget.words()];
    let labels = device.machine().upload(&several, &mut handle);
    let params = lm::Params { rows: 1000, ..lm::Params::DEFAULT };
    let goal = Goal::several_outputs(dims);
    let found =
        lm::run(&mut device, labels, goal, Start::Zero, &params, &mut memory, |_| Continue(()));
    let info = found.unwrap().info;
    assert!(info.relative < 1e-6, "{info:?}");
    // Classes by an annealed support.
    let params = anneal::Params {
        epochs: 12,
        batch: 250,
        growth_rows: 500,
        validation: 300,
        ..anneal::Params::DEFAULT
    };
    let budget = params.budget(Dims::new(n, d, m, 30), c, m, 2 * n + d);
    let mut memory = vec![0; budget.words()];
    let labels = device.machine().upload_classes(&classes, &mut handle[..n]);
    let labels = Classes { labels, outputs: c };
    let info =
        anneal::run(&mut device, labels, 30, Start::Zero, &params, &mut memory, |_| Continue(()));
    let held = info.unwrap().info.training;
    let data = tamis_host::data::Matrix::new(n, d, tamis_host::data::Values::F32(rows.clone()));
    let layout = Layout { hold: false, ..Layout::new(m, d) };
    let mut host = Blocked::new(data.unwrap(), m, 30 * 6, layout).unwrap().with_outputs(c);
    let labels = Classes::new(&classes, c);
    let found =
        anneal::run(&mut host, labels, 30, Start::Zero, &params, &mut memory, |_| Continue(()));
    let on_host = found.unwrap().info.training;
    assert!(
        (held.loss - on_host.loss).abs() < 0.05 * on_host.loss,
        "{held:?}, {on_host:?} on the host"
    );
    // Two layers.
    let label = |x: &[f32]| {
        let [a, b, c, d] = [[1, 4], [2, 5], [0, 3], [6, 8]].map(|[i, j]| (x[i] - x[j]).max(0.0));
        (a - 0.8 * b).max(0.0) + (1.5 * c - d).max(0.0)
    };
    let labels: Vec<f32> = rows.chunks(d).map(label).collect();
    let dims = Dims::new(n, d, 4, 12);
    let budget = Recovery::deep(dims, m, lm::second_slots(2), m, 2 * n + d);
    let mut memory = vec![0; budget.words()];
    let labels = device.machine().upload(&labels, &mut handle[..n]);
    let params = lm::Params { rows: 1000, ..lm::Params::DEFAULT };
    let goal = Goal::two_layers(dims, 2);
    let mut losses = Vec::new();
    let see = |progress: &lm::Progress<'_>| {
        losses.push(progress.loss);
        if progress.step < 25 { Continue(()) } else { Break(()) }
    };
    lm::run(&mut device, labels, goal, Start::Zero, &params, &mut memory, see).unwrap();
    let (first, last) = (losses[0], losses[losses.len() - 1]);
    assert!(last < 0.2 * first, "{first} to {last}");
    assert_eq!(device.failure(), None);
}

#[test]
fn checkpoint_of_a_lost_device_resumes_on_the_host() {
    let dims = Dims::new(2000, 30, 10, 40);
    let made = planted::network(dims, Signs::Positive, 4).unwrap();
    let slots = lm::slots(10, Signs::Positive);
    let gpu = crate::limited(1 << 24);
    let values = floats(&made);
    let mut device = GpuOperator::new(&gpu, 30, slots, Values::F32(&values)).unwrap();
    let mut handle = vec![0.0; 2000];
    let labels = device.machine().upload(&made.labels, &mut handle);
    let params = lm::Params { signs: Signs::Positive, ..lm::Params::DEFAULT };
    let budget = Recovery::new(dims, slots, 2030, false);
    let goal = Goal::one_output(dims);
    let mut kept: Vec<u32> = Vec::new();
    let mut memory = vec![0; budget.words()];
    let ended = lm::run(&mut device, labels, goal, Start::Zero, &params, &mut memory, |progress| {
        if let Some(checkpoint) = progress.checkpoint {
            kept.clear();
            let put = &mut |piece: &[u32]| {
                kept.extend_from_slice(piece);
                Ok::<(), ()>(())
            };
            checkpoint.write(put).unwrap();
        }
        if progress.step == 3 {
            gpu.destroy();
        }
        Continue(())
    });
    assert!(ended.is_err() && matches!(device.failure(), Some(tamis_gpu::Error::Lost { .. })));
    let form = lm::Checkpoint::form(&budget, slots, Signs::Positive);
    let checkpoint = lm::Checkpoint::read(&form, &kept).unwrap();
    let mut host =
        Blocked::new(made.data.clone(), slots, budget.room(), Layout::new(slots, 30)).unwrap();
    let labels = &made.labels[..];
    let start = Start::Checkpoint(&checkpoint);
    let mut memory = vec![0; budget.words()];
    let found = lm::run(&mut host, labels, goal, start, &params, &mut memory, |_| Continue(()));
    assert!(found.unwrap().info.exact);
}
