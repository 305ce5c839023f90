//! The conformance suite on every operator that runs on a host.

use tamis::base::budget::gated_words;
use tamis::base::rng::{Rng, stream};
use tamis::data::samples::{ByteRows, FnRows, NormalRows, Rows, Samples, Shuffled};
use tamis::learn::deep::Stack;
use tamis::network::gates::{Empty, Gates, Signs};
use tamis::network::weights::Weights;
use tamis::operator::gated::Gated;
use tamis::operator::gaussian::Gaussian;
use tamis::operator::sensing::{HostSensing, Sensing};
use tamis::operator::wrapper::Wrapper;
use tamis_host::data::{Matrix, Values};
use tamis_host::operator::{Blocked, HiddenLayers, Layout};
use tamis_tests::conformance::{Agreement, Situation, Spy, run, table, words};

/// (n, d, m): single rows, inputs and neurons, and sizes that no panel or vector length divides.
const SHAPES: [(usize, usize, usize); 9] = [
    (1, 1, 1),
    (1, 5, 3),
    (7, 1, 4),
    (9, 6, 1),
    (2, 3, 8),
    (17, 5, 3),
    (40, 12, 7),
    (67, 33, 5),
    (130, 7, 19),
];

/// What the columns are like.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Data {
    Normal,
    /// Every second column is zero.
    ZeroColumns,
    /// Every column is there twice.
    TwinColumns,
}

fn floats((n, d, _): (usize, usize, usize), data: Data) -> Vec<f32> {
    let mut rng = Rng::new(n as u64, stream::USER);
    let mut values = vec![0.0; n * d];
    rng.fill_normal(&mut values);
    for row in values.chunks_mut(d) {
        for j in (1..d).step_by(2) {
            match data {
                Data::Normal => {}
                Data::ZeroColumns => row[j] = 0.0,
                Data::TwinColumns => row[j] = row[j - 1],
            }
        }
    }
    values
}

fn bytes((n, d, _): (usize, usize, usize)) -> Vec<u8> {
    let mut rng = Rng::new(d as u64, stream::USER + 1);
    (0..n * d).map(|_| rng.below(256) as u8).collect()
}

/// Runs the suite and sees that it was all of it.
fn hold<O: HostSensing, S: HostSensing>(
    name: &str,
    oracle: &mut O,
    sensing: &mut S,
    agreement: Agreement,
) {
    hold_every(1, name, oracle, sensing, agreement);
}

/// As [`hold`], in every `stride`-th situation.
fn hold_every<O: HostSensing, S: HostSensing>(
    stride: usize,
    name: &str,
    oracle: &mut O,
    sensing: &mut S,
    agreement: Agreement,
) {
    let (n, d, m) = (sensing.rows(), sensing.inputs(), sensing.blocks());
    let mut memory = vec![0; words(n, d, m, sensing.scratch(n).max(oracle.scratch(n)))];
    match run(oracle, sensing, agreement, stride, &mut memory) {
        Ok(passed) => {
            assert_eq!(passed as usize, Situation::COUNT.div_ceil(stride) * table::<O, S>().len());
        }
        Err(failure) => panic!("{name}, {n} × {d}, {m} neurons: {failure:?}"),
    }
}

/// The reference operator over any samples: overrides and provided bodies give the same bits.
fn hold_gated<X: Samples + Clone>(stride: usize, name: &str, samples: &X, m: usize) {
    let d = samples.inputs();
    let (mut a, mut b) = (vec![0.0; gated_words(d, m)], vec![0.0; gated_words(d, m)]);
    let mut inner = Gated::new(samples.clone(), m, 1, &mut a).unwrap();
    let mut sensing = Gated::new(samples.clone(), m, m, &mut b).unwrap();
    hold_every(stride, name, &mut Spy::provided(&mut inner), &mut sensing, Agreement::Bits);
}

#[test]
fn reference_operator_conforms_over_every_row_source() {
    for shape @ (n, d, m) in SHAPES {
        let (floats, bytes) = (floats(shape, Data::Normal), bytes(shape));
        let rows = Rows::new(&floats, d).unwrap();
        hold_gated(1, "rows", &rows, m);
        hold_gated(5, "bytes", &ByteRows::new(&bytes, d, 1.0 / 255.0).unwrap(), m);
        hold_gated(5, "normal", &NormalRows::new(3, n, d), m);
        hold_gated(5, "shuffled", &Shuffled::new(rows, 5), m);
        let read = |k: usize, out: &mut [f32]| {
            out.copy_from_slice(&floats[k * d..(k + 1) * d]);
            Ok::<(), ()>(())
        };
        hold_gated(5, "function", &FnRows::new(n, d, read), m);
    }
}

#[test]
fn the_reference_operator_conforms_on_degenerate_columns() {
    for shape @ (_, d, m) in SHAPES {
        for data in [Data::ZeroColumns, Data::TwinColumns] {
            let values = floats(shape, data);
            hold_gated(1, &format!("{data:?}"), &Rows::new(&values, d).unwrap(), m);
        }
    }
}

#[test]
fn the_gaussian_operator_conforms() {
    for (n, d, m) in SHAPES {
        let make = || Gaussian::new(11, n, d, m).unwrap();
        hold("Gaussian", &mut Spy::provided(&mut make()), &mut make(), Agreement::Bits);
    }
}

/// A part of the rows is an operator like one over these rows alone.
/// The first rows of another operator.
#[derive(Debug)]
struct First<'a, S: ?Sized> {
    inner: &'a mut S,
    rows: usize,
}

impl<'a, S: Sensing + ?Sized> First<'a, S> {
    fn new(inner: &'a mut S, rows: usize) -> tamis::Result<Self, S::Source> {
        inner.select(0..rows)?;
        Ok(Self { inner, rows })
    }
}

impl<S: Sensing + ?Sized> Wrapper for First<'_, S> {
    type Inner = S;

    fn inner(&self) -> &S {
        self.inner
    }

    fn inner_mut(&mut self) -> &mut S {
        self.inner
    }

    fn first_rows(&self) -> usize {
        self.rows
    }
}

#[test]
fn the_first_rows_of_an_operator_conform() {
    for shape @ (n, d, m) in SHAPES {
        let (values, rows) = (floats(shape, Data::Normal), n.div_ceil(2));
        let (mut a, mut b) = (vec![0.0; gated_words(d, m)], vec![0.0; gated_words(d, m)]);
        let mut all = Gated::new(Rows::new(&values, d).unwrap(), m, m, &mut a).unwrap();
        let mut part =
            Gated::new(Rows::new(&values[..rows * d], d).unwrap(), m, m, &mut b).unwrap();
        hold("first rows", &mut part, &mut First::new(&mut all, rows).unwrap(), Agreement::Bits);
    }
}

fn layouts(m: usize) -> Vec<Layout> {
    let mut layouts = Vec::new();
    for tile in [1, 3, 16, 512] {
        for panel in [1, 3, m] {
            layouts.push(Layout {
                tile,
                panel: panel.min(m),
                hold: tile != 3,
                gram: usize::MAX,
                ..Layout::new(1, 1)
            });
        }
    }
    layouts
}

/// The blocked operator against its own provided bodies and against the reference operator: one
/// layout in every `strides[0]`-th situation, the others in every `strides[1]`-th.
fn hold_blocked(
    name: &str,
    (n, d, m): (usize, usize, usize),
    values: &Values,
    threads: usize,
    layouts: &[Layout],
    strides: [usize; 2],
) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    for &layout in layouts {
        let name = format!("{name}, {layout:?}, {threads} threads");
        let stride = strides[usize::from((layout.tile, layout.panel) != (16, 3.min(m)))];
        let blocked = || {
            let data = Matrix::new(n, d, values.clone()).unwrap();
            Blocked::new(data, m, m * d, layout).unwrap()
        };
        let floats = values.clone().into_f32();
        let mut memory = vec![0.0; gated_words(d, m)];
        pool.install(|| {
            let mut inner = blocked();
            hold_every(
                stride,
                &name,
                &mut Spy::provided(&mut inner),
                &mut blocked(),
                Agreement::Close,
            );
            let mut reference =
                Gated::new(Rows::new(&floats, d).unwrap(), m, 1, &mut memory).unwrap();
            hold_every(stride, &name, &mut reference, &mut blocked(), Agreement::Outputs);
        });
    }
}

#[test]
fn the_blocked_operator_conforms_on_floats() {
    for (i, shape) in SHAPES.into_iter().enumerate() {
        hold_blocked(
            "floats",
            shape,
            &Values::F32(floats(shape, Data::Normal)),
            1 + i % 2,
            &layouts(shape.2),
            [1, 17],
        );
    }
}

#[test]
fn the_blocked_operator_conforms_on_bytes() {
    for (i, shape) in SHAPES.into_iter().enumerate() {
        let (values, layouts) = (Values::U8(bytes(shape)), layouts(shape.2));
        hold_blocked("bytes", shape, &values, 2 - i % 2, &layouts, [3, 29]);
    }
}

#[test]
fn the_blocked_operator_conforms_on_degenerate_columns() {
    for shape in SHAPES {
        for data in [Data::ZeroColumns, Data::TwinColumns] {
            let layouts = [Layout {
                tile: 16,
                panel: 3.min(shape.2),
                hold: true,
                gram: usize::MAX,
                ..Layout::new(1, 1)
            }];
            hold_blocked(
                &format!("{data:?}"),
                shape,
                &Values::F32(floats(shape, data)),
                1,
                &layouts,
                [1, 7],
            );
        }
    }
}

/// Layers of these widths behind d inputs, with a weight for every second pair, are pushed on a
/// stack.
fn layers<'a>(
    d: usize,
    widths: &[usize],
    (index, value): (&'a mut [u32], &'a mut [f32]),
) -> Stack<'a> {
    let mut rng = Rng::new(d as u64, stream::USER + 2);
    let (mut stack, mut inputs) = (Stack::new(d, index, value), d);
    for &m in widths {
        let flat: Vec<u32> = (0..(inputs * m) as u32).step_by(2).collect();
        let mut values = vec![0.0; flat.len()];
        rng.fill_normal(&mut values);
        stack.push(Weights::new(inputs, m, &flat, &values).unwrap(), Signs::Positive).unwrap();
        inputs = m;
    }
    stack
}

/// What finished layers make of a tile at a time are the inputs that they make of all rows, in
/// every product.
#[test]
fn blocked_operator_through_layers_matches_precomputed_activations() {
    for (i, shape @ (n, d, m)) in SHAPES.into_iter().enumerate() {
        let widths = &[7, 5, 9][..1 + i % 3];
        let (mut index, mut value) = ([0; 1 << 10], [0.0; 1 << 10]);
        let stack = layers(d, widths, (&mut index, &mut value));
        let width = stack.width();
        for values in [Values::F32(floats(shape, Data::Normal)), Values::U8(bytes(shape))] {
            let (floats, mut made) = (values.clone().into_f32(), vec![0.0; n * width]);
            let mut scratch = vec![0.0; stack.activations()];
            for (row, made) in floats.chunks(d).zip(made.chunks_mut(width)) {
                stack.predict(row, &mut scratch, made).unwrap();
            }
            assert!(made.iter().any(|x| *x > 0.0) || n == 1);
            let data = Matrix::new(n, d, values).unwrap();
            for (l, layout) in layouts(m).into_iter().enumerate() {
                // The suite compares held gates with gates that are not, whose sums are rounded
                // otherwise; those are for the next test.
                let layout = Layout { gram: 0, hold: false, groups: [1, 2, 8][l % 3], ..layout };
                let made = Matrix::new(n, width, Values::F32(made.clone())).unwrap();
                let mut stored = Blocked::new(made, m, m * width, layout).unwrap();
                let through = HiddenLayers::new(&stack).unwrap();
                let more = through.bytes(n, layout);
                let mut behind =
                    Blocked::through(data.clone(), through, m, m * width, layout).unwrap();
                assert_eq!(behind.workspace_bytes(), stored.workspace_bytes() + more);
                let stride = if layout.tile == 16 { 29 } else { 61 };
                hold_every(stride, "behind layers", &mut stored, &mut behind, Agreement::Bits);
                assert_eq!(behind.into_data(), data);
            }
        }
    }
}

#[test]
fn held_gates_through_layers_match_precomputed_activations() {
    let (n, d, m) = (130, 7, 6);
    let (mut index, mut value) = ([0; 1 << 10], [0.0; 1 << 10]);
    let stack = layers(d, &[7, 5], (&mut index, &mut value));
    let (values, width) = (floats((n, d, m), Data::Normal), stack.width());
    let mut made = vec![0.0; n * width];
    for (row, made) in values.chunks(d).zip(made.chunks_mut(width)) {
        stack.predict(row, &mut vec![0.0; stack.activations()], made).unwrap();
    }
    let support: Vec<u32> = (0..(width * m) as u32).filter(|j| j % 3 != 1).collect();
    let weights: Vec<f32> = support.iter().map(|j| (j * 7 % 13) as f32 - 5.0).collect();
    let w = Weights::new(width, m, &support, &weights).unwrap();
    let gates = Gates::of(w, Signs::Positive, Empty::Freeze, 3, 1);
    for (tile, groups) in [(16, 1), (33, 3), (512, 8)] {
        let layout = Layout { tile, groups, panel: 4, gram: 0, ..Layout::new(m, width) };
        let (rows, made) = (
            Matrix::new(n, d, Values::F32(values.clone())),
            Matrix::new(n, width, Values::F32(made.clone())),
        );
        let mut stored = Blocked::new(made.unwrap(), m, m * width, layout).unwrap();
        let through = HiddenLayers::new(&stack).unwrap();
        let mut behind = Blocked::through(rows.unwrap(), through, m, m * width, layout).unwrap();
        for batch in [0..n, 5..120, 0..16, 64..65] {
            let products = |operator: &mut Blocked| {
                operator.select(batch.clone()).unwrap();
                let gates = operator.hold(gates, &support).unwrap();
                let (s, mut scratch) = (support.len(), vec![0.0; n + width]);
                let mut out = vec![0.0; batch.len() + 3 * s];
                let (image, rest) = out.split_at_mut(batch.len());
                let (normal, rest) = rest.split_at_mut(s);
                let (gradient, diagonal) = rest.split_at_mut(s);
                operator.forward(gates, w, image).unwrap();
                operator.normal_at(gates, w, normal, &mut scratch).unwrap();
                operator.gradient_at(gates, &support, image, gradient, &mut scratch).unwrap();
                operator.diagonal_at(gates, &support, diagonal, &mut scratch).unwrap();
                out
            };
            let (expected, got) = (products(&mut stored), products(&mut behind));
            assert_eq!(got, expected, "tiles of {tile}, rows {batch:?}");
            assert!(batch.len() < 16 || got.iter().filter(|x| **x != 0.0).count() > got.len() / 4);
        }
    }
}

#[test]
fn incompatible_or_ended_layers_are_refused() {
    let (mut index, mut value) = ([0; 64], [0.0; 64]);
    assert!(HiddenLayers::new(&Stack::new(3, &mut index, &mut value)).is_err(), "no layer");
    let mut stack = layers(3, &[4], (&mut index, &mut value));
    let rows = |d| Matrix::new(2, d, Values::F32(vec![1.0; 2 * d])).unwrap();
    let behind =
        |d| Blocked::through(rows(d), HiddenLayers::new(&stack).unwrap(), 2, 8, Layout::new(2, 4));
    assert!(behind(3).is_ok());
    assert_eq!(
        behind(4).unwrap_err(),
        tamis::Error::Length { what: "inputs of the layers", expected: 3, got: 4 }
    );
    stack.end_sum(&[]).unwrap();
    assert!(HiddenLayers::new(&stack).is_err(), "a stack that has ended");
}
