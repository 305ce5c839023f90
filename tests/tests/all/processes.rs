//! Rows that are spread over processes, here threads: each has an operator of its own rows, and all
//! that they exchange are the sums that algorithms ask for.

use std::ops::{ControlFlow, Range};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use tamis::Result;
use tamis::base::budget::{Recovery, gated_words};
use tamis::base::dims::Dims;
use tamis::base::rng::Rng;
use tamis::data::samples;
use tamis::learn::iht::{self, Params, Refine, Step};
use tamis::learn::lm;
use tamis::learn::start::Start;
use tamis::network::gates::{Gates, Signs};
use tamis::network::net::EntriesMut;
use tamis::network::weights::{Block, Weights};
use tamis::operator::gated::Gated;
use tamis::operator::machine::Host;
use tamis::operator::sensing::{Done, Sensing, Strips, Work};

const DIMS: Dims = Dims::new(1501, 8, 6, 18);
/// Fewer rows than inputs, where a search on one process covers rows.
const WIDE: Dims = Dims::new(60, 64, 6, 12);
const PROCESSES: usize = 3;

/// What a process sends to and gets from the others.
struct Link {
    to: Sender<Vec<f32>>,
    from: Receiver<Vec<f32>>,
}

/// The operator of a process: every [`PROCESSES`]-th row.
struct Spread<'a> {
    inner: Gated<'a, samples::Rows<'a>>,
    /// Rows of all processes.
    rows: usize,
    process: usize,
    batch: Range<usize>,
    links: Vec<Link>,
    /// The most numbers that were added up at once.
    largest: usize,
}

impl Sensing for Spread<'_> {
    type Source = std::convert::Infallible;
    type Machine = Host;

    fn machine(&mut self) -> &mut Host {
        self.inner.machine()
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn local_rows(&self) -> usize {
        self.local(self.batch.clone()).len()
    }

    fn batch_rows(&self) -> usize {
        self.batch.len()
    }

    fn local(&self, rows: Range<usize>) -> Range<usize> {
        let at = |row: usize| row.saturating_sub(self.process).div_ceil(PROCESSES);
        at(rows.start)..at(rows.end)
    }

    /// In the order of the processes, so that each has the same bits.
    fn sum(&mut self, numbers: &mut [f32]) -> Done<Self> {
        self.largest = self.largest.max(numbers.len());
        self.links.iter().for_each(|link| link.to.send(numbers.to_vec()).unwrap());
        let wait = Duration::from_secs(60);
        let others = self.links.iter().map(|link| link.from.recv_timeout(wait).expect("a sum"));
        let mut all: Vec<_> = others.collect();
        all.insert(self.process, numbers.to_vec());
        numbers.fill(0.0);
        for of_process in all {
            assert_eq!(of_process.len(), numbers.len(), "another sum");
            numbers.iter_mut().zip(of_process).for_each(|(sum, x)| *sum += x);
        }
        Ok(())
    }

    fn inputs(&self) -> usize {
        self.inner.inputs()
    }

    fn blocks(&self) -> usize {
        self.inner.blocks()
    }

    fn select(&mut self, rows: Range<usize>) -> Done<Self> {
        self.batch = rows;
        let local = self.local(self.batch.clone());
        // A short batch may have none of the rows that are here.
        if local.is_empty() { Ok(()) } else { self.inner.select(local) }
    }

    fn apply(&mut self, gates: Gates<'_>, w: Block<'_>, out: &mut [f32]) -> Done<Self> {
        if out.is_empty() { Ok(()) } else { self.inner.apply(gates, w, out) }
    }

    fn adjoint(&mut self, gates: Gates<'_>, i: usize, v: &[f32], out: &mut [f32]) -> Done<Self> {
        if v.is_empty() { Ok(()) } else { self.inner.adjoint(gates, i, v, out) }
    }
}

/// Rows and labels.
struct Data {
    dims: Dims,
    rows: Vec<f32>,
    labels: Vec<f32>,
}

/// Normal rows, and labels of three neurons of three weights each, of which the last has `sign`.
fn planted(dims: Dims, sign: f32) -> Data {
    let mut rng = Rng::new(7, 0);
    let mut rows = vec![0.0; dims.samples * dims.inputs];
    rng.fill_normal(&mut rows);
    let neurons: [[(u32, f32); 3]; 3] =
        core::array::from_fn(|_| core::array::from_fn(|_| (rng.below(8), rng.normal())));
    let label = |x: &[f32]| {
        let output = |neuron: &[(u32, f32); 3]| {
            neuron.iter().map(|(j, w)| x[*j as usize] * w).sum::<f32>().max(0.0)
        };
        output(&neurons[0]) + output(&neurons[1]) + sign * output(&neurons[2])
    };
    let labels = rows.chunks(dims.inputs).map(label).collect();
    Data { dims, rows, labels }
}

/// What `run` gives on one operator of all rows, and in every process.
fn compare<T: Send>(
    data: &Data,
    one: impl FnOnce(&mut Gated<'_, samples::Rows<'_>>, &[f32]) -> T,
    each: impl Fn(&mut Spread<'_>, &[f32]) -> T + Sync,
) -> (T, Vec<T>) {
    let dims = data.dims;
    let mut memory = vec![0.0; gated_words(dims.inputs, dims.hidden)];
    let rows = samples::Rows::new(&data.rows, dims.inputs).unwrap();
    let mut whole = Gated::new(rows, dims.hidden, dims.hidden, &mut memory).unwrap();
    let expected = one(&mut whole, &data.labels);
    let mut links: [Vec<Link>; PROCESSES] = Default::default();
    for a in 0..PROCESSES {
        for b in a + 1..PROCESSES {
            let ((to_b, from_a), (to_a, from_b)) = (channel(), channel());
            links[a].push(Link { to: to_b, from: from_b });
            links[b].push(Link { to: to_a, from: from_a });
        }
    }
    let each = &each;
    let got = thread::scope(|scope| {
        let threads = links.into_iter().enumerate().map(|(process, links)| {
            scope.spawn(move || {
                let held = || (process..dims.samples).step_by(PROCESSES);
                let row = |k: usize| &data.rows[k * dims.inputs..(k + 1) * dims.inputs];
                let rows: Vec<f32> = held().flat_map(row).copied().collect();
                let labels: Vec<f32> = held().map(|k| data.labels[k]).collect();
                let mut memory = vec![0.0; gated_words(dims.inputs, dims.hidden)];
                let rows = samples::Rows::new(&rows, dims.inputs).unwrap();
                let inner = Gated::new(rows, dims.hidden, dims.hidden, &mut memory).unwrap();
                let batch = 0..dims.samples;
                let mut spread =
                    Spread { inner, rows: dims.samples, process, batch, links, largest: 0 };
                let result = each(&mut spread, &labels);
                assert!(spread.largest <= dims.inputs * dims.hidden, "{} at once", spread.largest);
                result
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    (expected, got)
}

/// New weights of a step.
#[derive(Debug, PartialEq)]
struct Stepped {
    index: Vec<u32>,
    value: Vec<f32>,
    loss: f32,
}

/// One step, with room for the residuals of `room` rows.
fn step<S: Sensing<Machine = Host>>(
    sensing: &mut S,
    labels: &[f32],
    params: &Params<'_>,
    rows: Range<usize>,
    room: usize,
) -> Result<Stepped, S::Source> {
    let start = [0, 3, 9, 17, 25, 26, 40];
    let w = Weights::new(DIMS.inputs, DIMS.hidden, &start, &[0.5; 7]).unwrap();
    sensing.select(rows.clone())?;
    let labels = &labels[sensing.local(rows.clone())];
    let (mut index, mut value) = (vec![0; DIMS.nnz], vec![0.0; DIMS.nnz]);
    let panel = DIMS.hidden * DIMS.inputs;
    let (mut residual, mut part) = (vec![0.0; room.min(labels.len())], vec![0.0; panel]);
    let (mut panel, mut scratch) = (vec![0.0; 2 * panel], vec![0.0; sensing.scratch(rows.len())]);
    let is_stripped = room < labels.len();
    let mut work = Work {
        residual: &mut residual[..],
        panel: &mut panel,
        scratch: &mut scratch,
        strips: is_stripped.then_some(Strips { rows, part: &mut part }),
    };
    let gates = Gates::of(w, Signs::Positive, Default::default(), 0, 0);
    let new = EntriesMut { index: &mut index[..], value: &mut value[..] };
    let info = iht::step(sensing, gates, labels, w, params, new, &mut work)?;
    index.truncate(info.nnz);
    value.truncate(info.nnz);
    Ok(Stepped { index, value, loss: info.loss })
}

fn is_close(a: f32, b: f32) -> bool {
    (a - b).abs() <= 1e-4 * (1.0 + b.abs())
}

#[test]
fn distributed_step_equals_step_over_all_rows() {
    let refine = Refine::ConjugateGradient { steps: 5, tolerance: 0.0 };
    let theory = Params { step: Step::Theory { beta: 4.0 }, refine, must_keep: &[] };
    let (data, all) = (planted(DIMS, 1.0), DIMS.samples);
    for params in [Params::PAPER, theory] {
        for (rows, room) in [(0..all, all), (0..all, 100), (200..1001, all), (301..1001, 64)] {
            let (expected, got) = compare(
                &data,
                |sensing, labels| step(sensing, labels, &params, rows.clone(), room).unwrap(),
                |sensing, labels| step(sensing, labels, &params, rows.clone(), room).unwrap(),
            );
            let what = format!("{params:?} on {rows:?}, {room} at a time");
            assert!(got.iter().all(|process| *process == got[0]), "{what}: {got:?}");
            assert_eq!(got[0].index, expected.index, "{what}");
            let values = got[0].value.iter().zip(&expected.value);
            assert!(values.clone().all(|(a, b)| is_close(*a, *b)), "{what}: {values:?}");
            assert!(is_close(got[0].loss, expected.loss), "{what}");
        }
    }
}

/// What a search found.
#[derive(Debug, PartialEq)]
struct Found {
    index: Vec<u32>,
    value: Vec<f32>,
    is_exact: bool,
    relative: f32,
    /// The loss on the validation rows.
    held: Option<f32>,
}

fn search<S: Sensing<Machine = Host>>(
    sensing: &mut S,
    labels: &[f32],
    dims: Dims,
    params: &lm::Params,
) -> Result<Found, S::Source> {
    let (scratch, linear) = (dims.samples + dims.inputs, params.signs.linear(0));
    let budget = Recovery::new(dims, dims.hidden, scratch, linear);
    let (goal, mut memory) = (lm::Goal::one_output(dims), vec![0; budget.words()]);
    let go_on = |_: &lm::Progress<'_>| ControlFlow::Continue(());
    let found = lm::run(sensing, labels, goal, Start::Zero, params, &mut memory, go_on)?;
    let (w, info) = (found.network.w(), found.info);
    Ok(Found {
        index: w.index().to_vec(),
        value: w.value().to_vec(),
        is_exact: info.exact,
        relative: info.relative,
        held: info.held,
    })
}

#[test]
fn distributed_search_recovers_what_single_process_does() {
    for (signs, last) in [(Signs::Positive, 1.0), (Signs::Free, -1.0)] {
        let data = planted(DIMS, last);
        // At first on a few rows; with and without rows for validation.
        for (rows, validation) in [(0, 0), (400, 0), (0, 300)] {
            let params = lm::Params { signs, rows, validation, ..lm::Params::DEFAULT };
            let (expected, got) = searches(&data, &params);
            let what = format!("{signs:?}, {rows} rows first, {validation} for validation");
            assert!(expected.is_exact, "{what}: {expected:?}");
            assert!(got.iter().all(|process| *process == got[0]), "{what}: {got:?}");
            assert!(got[0].is_exact && got[0].relative < 1e-10, "{what}: {got:?}");
            assert_eq!(got[0].held.is_some(), validation > 0);
            assert!(got[0].held.unwrap_or(0.0) < 1e-9, "{what}: {got:?}");
        }
    }
}

#[test]
fn processes_agree_on_fewer_rows_than_inputs() {
    let data = planted(WIDE, 1.0);
    let (_, got) = searches(&data, &lm::Params { steps: 200, ..lm::Params::DEFAULT });
    assert!(got.iter().all(|process| *process == got[0]), "{got:?}");
    assert!(got[0].relative < 0.5, "{got:?}");
}

#[test]
fn processes_agree_on_two_classes_below_a_ceiling() {
    let mut data = planted(DIMS, 1.0);
    let mean = data.labels.iter().sum::<f32>() / data.labels.len() as f32;
    data.labels.iter_mut().for_each(|y| *y = f32::from(*y > mean));
    let params = lm::Params { ceiling: 3.0, steps: 200, ..lm::Params::DEFAULT };
    let (expected, got) = searches(&data, &params);
    assert!(got.iter().all(|process| *process == got[0]), "{got:?}");
    // Above the error of the labels' fit.
    assert!(
        [&expected, &got[0]].iter().all(|of| (0.1..2.0).contains(&of.relative)),
        "{expected:?} {got:?}"
    );
}

fn searches(data: &Data, params: &lm::Params) -> (Found, Vec<Found>) {
    compare(
        data,
        |sensing, labels| search(sensing, labels, data.dims, params).unwrap(),
        |sensing, labels| search(sensing, labels, data.dims, params).unwrap(),
    )
}
