use super::*;
use crate::data::Values;
use std::ops::ControlFlow::Continue;
use tamis::base::error::Error;
use tamis::base::rng::{Permutation, Rng, stream};
use tamis::data::samples::{ByteRows, Rows};
use tamis::learn::deep::backprop::RowByRow;
use tamis::learn::masked::{self, Params};
use tamis::learn::optimiser::Optimiser;
use tamis::network::gates::Signs;
use tamis::network::weights::Weights;

/// Rows of the data.
const ROWS: usize = 230;
/// A column is left over behind the blocks of eight.
const INPUTS: usize = 19;
const SCALE: f32 = 1.0 / 256.0;

/// Buffers of a network whose layers lack two thirds of the weights, a row and a column.
struct Net {
    /// Of the input, the hidden layers, and the outputs, where these are no sum.
    widths: Vec<usize>,
    is_sum: bool,
    index: Vec<u32>,
    value: Vec<f32>,
}

impl Net {
    fn new(hidden: &[usize], outputs: usize, is_sum: bool) -> Self {
        let end = if is_sum { &[][..] } else { &[outputs] };
        let widths = [&[INPUTS], hidden, end].concat();
        let most = widths.windows(2).map(|pair| pair[0] * pair[1]).sum();
        Self { widths, is_sum, index: vec![0; most], value: vec![0.0; most] }
    }

    fn stack(&mut self) -> Stack<'_> {
        let mut stack = Stack::new(INPUTS, &mut self.index, &mut self.value);
        for (l, pair) in self.widths.windows(2).enumerate() {
            let is_end = l + 2 == self.widths.len() && !self.is_sum;
            let (inputs, neurons) = if is_end { (pair[1], pair[0]) } else { (pair[0], pair[1]) };
            let is_kept = |at: &u32| {
                let (i, j) = (*at as usize / inputs, *at as usize % inputs);
                let is_empty = pair[0] > 4 && !is_end && (i == 1 || j == 3);
                !is_empty && (i * 5 + j * 3 + i * j) % 3 < 2
            };
            let index: Vec<u32> = (0..(inputs * neurons) as u32).filter(is_kept).collect();
            let mut value = vec![0.0; index.len()];
            Rng::new(1, stream::USER + l as u64).fill_normal(&mut value);
            let w = Weights::new(inputs, neurons, &index, &value).unwrap();
            match is_end {
                true => stack.end_weights(w).unwrap(),
                false => stack.push(w, Signs::Positive).unwrap(),
            }
        }
        if self.is_sum {
            stack.end_sum(&[2]).unwrap();
        }
        stack
    }
}

fn bytes() -> Vec<u8> {
    (0..ROWS * INPUTS).map(|e| ((e * 7919 + e / 13 + 5) % 256) as u8).collect()
}

fn matrix(values: Values) -> Matrix {
    Matrix::new(ROWS, INPUTS, values).unwrap()
}

fn floats() -> Matrix {
    matrix(Values::F32(bytes().iter().map(|&b| f32::from(b)).collect()))
}

fn classes(outputs: usize) -> Vec<u16> {
    (0..ROWS).map(|k| (k * 7 % outputs.max(2)) as u16).collect()
}

fn numbers(outputs: usize) -> Vec<f32> {
    let mut values = vec![0.0; ROWS * outputs];
    Rng::new(3, stream::USER).fill_normal(&mut values);
    values
}

/// Loss and gradient by the reference.
fn reference(stack: &Stack<'_>, labels: Labels<'_>, batch: &Batch) -> (f32, Vec<f32>, f32) {
    let bytes = bytes();
    let rows = ByteRows::new(&bytes, INPUTS, SCALE).unwrap();
    let mut memory = vec![0; backprop::words(stack.activations(), stack.outputs())];
    let mut rows = RowByRow::new(rows, labels, stack, &mut memory).unwrap();
    let mut gradient = vec![0.0; stack.nnz()];
    let loss = rows.gradient(stack, batch, &mut gradient).unwrap();
    (loss, gradient, rows.loss(stack, &Batch::all(ROWS)).unwrap())
}

fn is_close(a: f32, b: f32, size: f32) -> bool {
    (a - b).abs() <= 1e-5 * size
}

fn compare(net: &mut Net, labels: Labels<'_>) {
    let stack = net.stack();
    for data in [floats(), matrix(Values::U8(bytes()))] {
        let mut engine = Engine::new(&data, SCALE, labels, &stack, &Stop::new()).unwrap();
        engine.check(&stack).unwrap();
        for (count, order) in [
            (1, None),
            (63, Some(Permutation::new(1, 2, ROWS))),
            (64, None),
            (65, Some(Permutation::new(1, 3, ROWS))),
            (128, None),
            (200, Some(Permutation::new(1, 4, ROWS))),
        ] {
            let batch = Batch { positions: 7..7 + count, order };
            let (loss, wanted, mean) = reference(&stack, labels, &batch);
            let mut gradient = vec![f32::NAN; stack.nnz()];
            let got = engine.gradient(&stack, &batch, &mut gradient).unwrap();
            assert!(is_close(got, loss, loss), "{count} rows: {got} {loss}");
            let size = wanted.iter().fold(0.0_f32, |top, g| top.max(g.abs()));
            for (j, (got, wanted)) in gradient.iter().zip(&wanted).enumerate() {
                assert!(is_close(*got, *wanted, size), "{count} rows, {j}: {got} {wanted}");
            }
            let got = engine.loss(&stack, &Batch::all(ROWS)).unwrap();
            assert!(is_close(got, mean, mean), "{got} {mean}");
        }
    }
}

#[test]
fn gradients_and_losses_are_those_of_the_reference() {
    for hidden in [&[6][..], &[9, 4], &[12, 7, 5]] {
        for outputs in [1, 3, 10] {
            let classes = classes(outputs);
            compare(&mut Net::new(hidden, outputs, false), Labels::classes(&classes, outputs));
            let numbers = numbers(outputs);
            compare(&mut Net::new(hidden, outputs, false), Labels::values(&numbers));
        }
        compare(&mut Net::new(hidden, 1, true), Labels::values(&numbers(1)));
        compare(&mut Net::new(hidden, 1, true), Labels::classes(&classes(1), 1));
    }
}

/// Sizes and derivatives of all layers, layers from the last to the first.
fn derivatives(
    on: &mut impl Panels<Source: std::fmt::Debug>,
    stack: &Stack<'_>,
    batch: &Batch,
    room: usize,
) -> [Vec<f32>; 2] {
    let (mut sizes, mut panel) = (vec![f32::NAN; stack.activations()], vec![f32::NAN; room]);
    let mut memory = PanelMemory { sizes: &mut sizes, panel: &mut panel };
    let mut all = Vec::new();
    let layers = 0..stack.layers().count();
    on.panels(stack, batch, layers, &mut memory, |of| all.extend_from_slice(of.values)).unwrap();
    [sizes, all]
}

#[test]
fn panels_are_those_of_the_reference() {
    let (classes, numbers, data) = (classes(10), numbers(1), matrix(Values::U8(bytes())));
    // One layer has more inputs than are turned into rows at a time.
    let of_classes = Labels::classes(&classes, 10);
    for (hidden, outputs, is_sum, labels) in [
        (&[300, 7][..], 10, false, of_classes),
        (&[9], 10, false, of_classes),
        (&[12, 7], 1, true, Labels::values(&numbers)),
    ] {
        let mut net = Net::new(hidden, outputs, is_sum);
        let stack = net.stack();
        for (rows, order) in [(1, None), (64, Some(Permutation::new(1, 2, ROWS))), (150, None)] {
            let batch = Batch { positions: 7..7 + rows, order };
            let bytes = bytes();
            let rows = ByteRows::new(&bytes, INPUTS, SCALE).unwrap();
            let mut memory = vec![0; backprop::words(stack.activations(), stack.outputs())];
            let mut reference = RowByRow::new(rows, labels, &stack, &mut memory).unwrap();
            let wanted = derivatives(&mut reference, &stack, &batch, 300);
            let on = |threads: usize, room: usize| {
                pool(threads).install(|| {
                    let mut engine =
                        Engine::new(&data, SCALE, labels, &stack, &Stop::new()).unwrap();
                    derivatives(&mut engine, &stack, &batch, room)
                })
            };
            let one = on(1, 300);
            for (got, wanted) in one.iter().zip(&wanted) {
                assert_eq!(got.len(), wanted.len());
                let size = wanted.iter().fold(0.0_f32, |top, x| top.max(x.abs()));
                assert!(got.iter().zip(wanted).all(|(a, b)| is_close(*a, *b, size)), "{hidden:?}");
            }
            for (threads, room) in [(1, 10_000), (2, 301), (3, 4000)] {
                assert!(on(threads, room) == one, "{threads} threads, {room} numbers");
            }
        }
    }
    let stack_of = |net: &mut Net| {
        let stack = net.stack();
        let mut engine = Engine::new(&data, SCALE, of_classes, &stack, &Stop::new()).unwrap();
        let (mut sizes, mut panel) = (vec![0.0; stack.activations()], vec![0.0; INPUTS - 1]);
        let mut memory = PanelMemory { sizes: &mut sizes, panel: &mut panel };
        engine.panels(&stack, &Batch::all(ROWS), 0..2, &mut memory, |_| ())
    };
    let short = stack_of(&mut Net::new(&[9], 10, false));
    assert!(matches!(short, Err(Error::Length { .. })), "{short:?}");
}

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

/// Trains a network on so many threads; the bits of its weights, of its loss and of its outputs.
fn trained(threads: usize, optimiser: Optimiser) -> Vec<u32> {
    let (classes, data) = (classes(10), floats());
    // Large enough for threads to share the gradient of a layer, and small enough for them not to share another's.
    let mut net = Net::new(&[60, 90], 10, false);
    let mut stack = net.stack();
    pool(threads).install(|| {
        let labels = Labels::classes(&classes, 10);
        let mut engine = Engine::new(&data, SCALE, labels, &stack, &Stop::new()).unwrap();
        let params = Params { epochs: 3, batch: 200, optimiser, rate: 0.01, ..Params::SGD };
        let mut memory = vec![0; masked::words(stack.nnz(), optimiser)];
        masked::run(&mut engine, &mut stack, &params, &mut memory, |_| Continue(())).unwrap();
        let loss = engine.loss(&stack, &Batch::all(ROWS)).unwrap();
        let mut out = vec![0.0; ROWS * 10];
        engine.predict(&stack, &mut out).unwrap();
        stack.values().iter().chain(&[loss]).chain(&out).map(|x| x.to_bits()).collect()
    })
}

#[test]
fn threads_change_no_bit() {
    for optimiser in [Optimiser::Sgd { momentum: 0.9 }, Optimiser::Adam] {
        let one = trained(1, optimiser);
        assert!([2, 3, 7].into_iter().all(|threads| trained(threads, optimiser) == one));
    }
}

#[test]
fn predictions_and_scores_are_those_of_the_network() {
    let (classes, data) = (classes(10), matrix(Values::U8(bytes())));
    let mut net = Net::new(&[12, 7], 10, false);
    let stack = net.stack();
    let labels = Labels::classes(&classes, 10);
    let mut engine = Engine::new(&data, SCALE, labels, &stack, &Stop::new()).unwrap();
    let mut out = vec![0.0; ROWS * 10];
    engine.predict(&stack, &mut out).unwrap();
    let floats: Vec<f32> = bytes().iter().map(|&b| f32::from(b) * SCALE).collect();
    let rows = Rows::new(&floats, INPUTS).unwrap();
    let (mut scratch, mut right) = (vec![0.0; stack.activations()], 0);
    for (k, class) in classes.iter().enumerate() {
        let (mut row, mut wanted) = ([0.0; INPUTS], [0.0; 10]);
        tamis::data::samples::Samples::row(&mut rows.clone(), k, &mut row).unwrap();
        stack.predict(&row, &mut scratch, &mut wanted).unwrap();
        right += usize::from(tamis::learn::loss::best(&wanted) == usize::from(*class));
        for (got, wanted) in out[k * 10..][..10].iter().zip(&wanted) {
            assert!(is_close(*got, *wanted, 10.0), "{got} {wanted}");
        }
    }
    let accuracy = engine.score(&stack).unwrap().accuracy.unwrap();
    assert!((accuracy * ROWS as f64 - right as f64).abs() < 1e-6, "{accuracy} {right}");
}

#[test]
fn other_support_is_refused_and_stop_ends_pass() {
    let (numbers, data, stop) = (numbers(1), floats(), Stop::new());
    let mut net = Net::new(&[6], 1, false);
    let mut stack = net.stack();
    let labels = Labels::values(&numbers);
    let mut engine = Engine::new(&data, SCALE, labels, &stack, &stop).unwrap();
    stop.ask();
    assert_eq!(engine.loss(&stack, &Batch::all(ROWS)), Err(Error::Stopped));
    stack.retain(|at| at != 3);
    assert!(matches!(engine.check(&stack), Err(Error::Length { .. })));
    let open = Stack::new(INPUTS, &mut [], &mut []);
    assert!(Engine::new(&data, SCALE, labels, &open, &stop).is_err());
}

/// Beside activations and what is of each neuron, 2 bytes a weight behind the first layer.
#[test]
fn links_take_two_bytes_a_weight() {
    let (classes, data) = (classes(10), floats());
    let mut net = Net::new(&[200, 100], 10, false);
    let stack = net.stack();
    let bytes = pool(1).install(|| {
        let labels = Labels::classes(&classes, 10);
        Engine::new(&data, SCALE, labels, &stack, &Stop::new()).unwrap().bytes()
    });
    let widths = stack.activations() + stack.outputs();
    let behind: usize = stack.layers().skip(1).map(|w| w.nnz()).sum();
    assert!(bytes <= 2 * behind + widths * (4 * LANES + 16) + 1000, "{bytes}");
}
