//! Random models of every encoding, with a row each, and the words that put them into a part's
//! flash.

use crate::cost::{Around, Core, Estimate, Kernel, Numbers, Work, float_work, integer_work};
use tamis::base::rng::{Rng, stream};
use tamis::infer::model::{self, Activation, Sum, WINDOW};
use tamis::infer::price::{PER_INSTRUCTION, cost};
use tamis::infer::quantised::{self, Encoding, Mask, Scales, Weights};
use tamis::store::wire::{Aligned, Choice, QuantisedView, View};
use tamis_tests::cases::Digest;

/// Bytes of the longest model.
const LONGEST: usize = 1 << 16;
/// The most weights, zeros counted, of a layer of integers and of one of dense floats.
const MOST: [usize; 2] = [16_000, 4000];
/// Hidden neurons of two layers of floats: of fewer, what a part without a float unit takes depends
/// on which of them are open.
const HIDDEN: [usize; 2] = [8, 64];
/// Behind the last model.
pub(crate) const END: [u32; 4] = [u32::MAX; 4];

/// A model file, or the weights of a dense layer of floats.
#[derive(Debug, Clone)]
pub(crate) struct Drawn {
    /// Layers and encodings, for people.
    pub(crate) name: String,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) content: Content,
    /// The row in bytes.
    row: Vec<u8>,
    /// Of the outputs on the row.
    pub(crate) digest: u32,
}

/// What a part is given.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    DenseFloats { inputs: usize, outputs: usize, weights: Vec<u8> },
    Floats(Vec<u8>),
    Integers(Vec<u8>),
}

/// What is counted in a prediction.
#[derive(Debug, Clone)]
pub(crate) struct Counts {
    pub(crate) numbers: Numbers,
    pub(crate) around: Around,
    pub(crate) layers: Vec<(Kernel, Work)>,
}

/// Models to fit prices to, or others of the same kinds; of floats a quarter have a hidden layer.
pub(crate) fn models(seed: u64, per_kernel: usize) -> Vec<Drawn> {
    let mut rng = Rng::new(seed, stream::USER);
    let mut models = Vec::new();
    for kernel in Kernel::ALL {
        for at in 0..2 * per_kernel {
            let (sum, is_hidden) = (at % 2 == 0, at % 4 == 3);
            let (layer, range, hidden) = match kernel {
                Kernel::Windows => (FloatLayer::Windows, [WINDOW, 800], [WINDOW, 300]),
                Kernel::ShortWindows => (FloatLayer::Windows, [8, WINDOW - 1], HIDDEN),
                _ => (FloatLayer::Rows, [8, 800], HIDDEN),
            };
            let encoding = match kernel {
                Kernel::Dense => Encoding::Dense,
                Kernel::Mask => Encoding::Mask,
                _ => Encoding::Blocks,
            };
            models.push(match kernel {
                Kernel::DenseFloats => dense_floats(&mut rng),
                _ if kernel.numbers() == Numbers::Floats && is_hidden => {
                    two_of_floats(&mut rng, hidden, layer)
                }
                _ if kernel.numbers() == Numbers::Floats => floats(&mut rng, range, layer, sum),
                _ if at < per_kernel => integers(&mut rng, &[encoding]),
                _ => {
                    // The second layer is of any encoding.
                    let any = Encoding::ALL[rng.below(Encoding::ALL.len() as u32) as usize];
                    integers(&mut rng, &[encoding, any])
                }
            });
        }
    }
    models
}

/// Weights of a layer, row after row with columns rising.
struct Rows {
    inputs: usize,
    counts: Vec<u16>,
    columns: Vec<u16>,
}

impl Rows {
    fn nonzeros(&self) -> usize {
        self.columns.len()
    }
}

/// From `low` to `high`, as likely between 10 and 20 as between 100 and 200.
fn about(rng: &mut Rng, low: usize, high: usize) -> usize {
    let (a, b) = ((low as f64).ln(), (high as f64 + 1.0).ln());
    ((a + (b - a) * f64::from(rng.uniform())).exp() as usize).clamp(low, high)
}

fn pick<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u32) as usize]
}

/// Sizes with at most so many weights.
fn sizes(rng: &mut Rng, most: usize) -> (usize, usize) {
    loop {
        let (inputs, outputs) = (about(rng, 8, 800), about(rng, 2, 64));
        if inputs * outputs <= most && inputs * outputs >= 100 {
            return (inputs, outputs);
        }
    }
}

/// Which weights a layer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One or more in every row, as writers of models leave hidden layers.
    Hidden,
    /// Rows may have none.
    Last,
}

/// Weights at random.
fn rows(rng: &mut Rng, inputs: usize, outputs: usize, kind: Kind) -> Rows {
    let density = pick(rng, &[0.03_f32, 0.05, 0.1, 0.2, 0.35, 0.6]);
    let used = pick(rng, &[1.0_f32, 1.0, 0.7, 0.4]);
    rows_of(rng, inputs, outputs, kind, density, used)
}

/// The same with a part of the columns that have weights, and a part of the weights of those.
fn rows_of(
    rng: &mut Rng,
    inputs: usize,
    outputs: usize,
    kind: Kind,
    density: f32,
    used: f32,
) -> Rows {
    let mut columns: Vec<u16> = (0..inputs as u16).filter(|_| rng.uniform() < used).collect();
    if columns.is_empty() {
        columns.push(0);
    }
    let mut made = Rows { inputs, counts: Vec::new(), columns: Vec::new() };
    for row in 0..outputs {
        let before = made.columns.len();
        made.columns.extend(columns.iter().filter(|_| rng.uniform() < density));
        let none = made.columns.len() == before;
        if none && (kind == Kind::Hidden || row == 0) {
            made.columns.push(pick(rng, &columns));
        }
        made.counts.push((made.columns.len() - before) as u16);
    }
    made
}

fn signs(rng: &mut Rng, inputs: usize) -> Vec<u32> {
    let mut words: Vec<u32> = (0..inputs.div_ceil(32)).map(|_| rng.bits()).collect();
    if let Some(last) = words.last_mut().filter(|_| !inputs.is_multiple_of(32)) {
        *last &= (1 << (inputs % 32)) - 1;
    }
    words
}

fn numbers(rng: &mut Rng, len: usize) -> Vec<f32> {
    (0..len).map(|_| 2.0 * rng.uniform() - 1.0).collect()
}

fn bytes_of(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn digest(words: impl Iterator<Item = u32>) -> u32 {
    let mut digest = Digest::default();
    words.for_each(|word| digest.word(word));
    digest.value()
}

fn dense_floats(rng: &mut Rng) -> Drawn {
    let (inputs, outputs) = sizes(rng, MOST[1]);
    let (row, weights) = (numbers(rng, inputs), numbers(rng, inputs * outputs));
    let sums = weights.chunks(inputs).map(|weights| {
        let sum = row.iter().zip(weights).fold(0.0_f32, |sum, (x, weight)| sum + x * weight);
        (if sum <= 0.0 { 0.0_f32 } else { sum }).to_bits()
    });
    Drawn {
        name: format!("{inputs}-{outputs}, f32 dense"),
        kernels: vec![Kernel::DenseFloats],
        digest: digest(sums),
        row: bytes_of(&row),
        content: Content::DenseFloats { inputs, outputs, weights: bytes_of(&weights) },
    }
}

/// How a layer of floats is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FloatLayer {
    Rows,
    Windows,
}

impl FloatLayer {
    const fn name(self) -> &'static str {
        match self {
            Self::Rows => "f32 rows",
            Self::Windows => "f32 windows",
        }
    }
}

/// What a layer of floats borrows.
struct Tables {
    rows: Rows,
    values: Vec<f32>,
    /// In windows: counts of each row in each, indices, and values in their order.
    runs: (Vec<u8>, Vec<u8>, Vec<f32>),
}

impl Tables {
    fn new(rng: &mut Rng, rows: Rows) -> Self {
        let values = numbers(rng, rows.nonzeros());
        let mut runs = (Vec::new(), Vec::new(), Vec::new());
        for window in 0..rows.inputs.div_ceil(WINDOW) {
            let start = (window * WINDOW).min(rows.inputs.saturating_sub(WINDOW));
            let mut at = 0;
            for &count in &rows.counts {
                let before = runs.1.len();
                let row = at..at + usize::from(count);
                at = row.end;
                for (&column, &value) in rows.columns[row.clone()].iter().zip(&values[row]) {
                    let column = usize::from(column);
                    if column / WINDOW == window {
                        runs.1.push((column - start) as u8);
                        runs.2.push(value);
                    }
                }
                runs.0
                    .push(u8::try_from(runs.1.len() - before).expect("densities are far below 1"));
            }
        }
        Self { rows, values, runs }
    }

    fn layer(&self, kind: FloatLayer, activation: Activation) -> model::Layer<'_> {
        let Rows { inputs, counts, columns } = &self.rows;
        match kind {
            FloatLayer::Rows => {
                let csr = model::Csr::new(*inputs, counts, columns, &self.values, activation);
                model::Layer::Csr(csr.expect("drawn in order"))
            }
            FloatLayer::Windows => {
                let (runs, indices, values) = &self.runs;
                let blocks =
                    model::Blocks::new(*inputs, counts.len(), runs, indices, values, activation);
                model::Layer::Blocks(blocks.expect("drawn in order"))
            }
        }
    }
}

/// One layer with inputs in a range, and perhaps a `sum`.
fn floats(rng: &mut Rng, range: [usize; 2], kind: FloatLayer, sum: bool) -> Drawn {
    let (inputs, outputs) = loop {
        let (inputs, outputs) = sizes(rng, MOST[0]);
        if (range[0]..=range[1]).contains(&inputs) {
            break (inputs, outputs);
        }
    };
    let rows = rows(rng, inputs, outputs, if sum { Kind::Hidden } else { Kind::Last });
    let tables = Tables::new(rng, rows);
    let activation = pick(rng, &[Activation::Relu, Activation::Identity]);
    let signs = signs(rng, outputs);
    let mut layers = vec![tables.layer(kind, activation)];
    if sum {
        layers.push(model::Layer::Sum(Sum::new(outputs, &signs).expect("one bit each")));
    }
    float_file(rng, format!("{inputs}-{outputs}, {}", kind.name()), &layers)
}

/// Two layers with so many numbers between them.
fn two_of_floats(rng: &mut Rng, range: [usize; 2], kind: FloatLayer) -> Drawn {
    let hidden = about(rng, range[0], range[1]);
    let inputs = about(rng, 8, (MOST[0] / hidden).clamp(8, 800));
    let outputs = about(rng, 2, 16);
    let (first, second) =
        (rows(rng, inputs, hidden, Kind::Hidden), rows(rng, hidden, outputs, Kind::Last));
    let [first, second] = [first, second].map(|rows| Tables::new(rng, rows));
    let layers = [first.layer(kind, Activation::Relu), second.layer(kind, Activation::Identity)];
    float_file(rng, format!("{inputs}-{hidden}-{outputs}, {}", kind.name()), &layers)
}

fn float_file(rng: &mut Rng, name: String, layers: &[model::Layer<'_>]) -> Drawn {
    let model = model::Model::new(layers).expect("sizes follow each other");
    let row = numbers(rng, model.inputs());
    let (mut scratch, mut out) = (vec![0.0; model.scratch_len()], vec![0.0; model.outputs()]);
    model.predict(&row, &mut scratch, &mut out).expect("lengths are the model's");
    let view = View::new(model);
    let mut bytes = vec![0; view.encoded_len()];
    view.encode(&mut bytes).expect("as long as it says");
    let kernels = layers.iter().filter_map(Kernel::of_floats);
    Drawn {
        name,
        kernels: kernels.collect(),
        digest: digest(out.iter().map(|y: &f32| y.to_bits())),
        row: bytes_of(&row),
        content: Content::Floats(bytes),
    }
}

/// A model of one layer or two in these encodings.
fn integers(rng: &mut Rng, encodings: &[Encoding]) -> Drawn {
    loop {
        let (inputs, hidden) = sizes(rng, MOST[0]);
        let widths = [inputs, hidden, about(rng, 2, 16)];
        let sum = rng.below(4) == 0;
        let drawn: Vec<_> = encodings
            .iter()
            .zip(widths.windows(2))
            .enumerate()
            .map(|(at, (&encoding, pair))| {
                let kind = match encoding {
                    _ if at + 1 < encodings.len() || sum => Kind::Hidden,
                    _ => Kind::Last,
                };
                weights(rng, [pair[0], pair[1]], kind, encoding)
            })
            .collect();
        // A layer that this encoding cannot hold is drawn again.
        let plan: Vec<_> = encodings.iter().map(|_| Besides::drawn(rng)).collect();
        if let Some(model) = integer_file(rng, &drawn, encodings, sum, &plan) {
            return model;
        }
    }
}

/// A file of one layer in an encoding, or in another where that cannot hold it.
fn weights(
    rng: &mut Rng,
    [inputs, outputs]: [usize; 2],
    kind: Kind,
    encoding: Encoding,
) -> Vec<u8> {
    let rows = rows(rng, inputs, outputs, kind);
    weights_of(rng, &rows, encoding, false)
}

/// A weight that is not 0, any of 8 bits or, as training leaves them, most of them small.
fn weight(rng: &mut Rng, trained: bool) -> i8 {
    if !trained {
        return rng.bits() as i8 | 1;
    }
    let size = (127.0 * rng.uniform().powi(3)).max(1.0) as i8;
    if rng.below(2) == 0 { size } else { -size }
}

fn weights_of(rng: &mut Rng, rows: &Rows, encoding: Encoding, trained: bool) -> Vec<u8> {
    let values: Vec<i8> = (0..rows.nonzeros()).map(|_| weight(rng, trained)).collect();
    let mut bits = vec![0; Mask::words(rows.inputs, rows.counts.len())];
    Mask::mark(rows.inputs, &rows.counts, &rows.columns, &mut bits);
    let mask = Mask::new(rows.inputs, rows.counts.len(), &bits, &values).expect("drawn in order");
    let layer = quantised::Layer::new(Weights::Mask(mask), &[], &[], Activation::Identity);
    let layer = layer.expect("sums cannot overflow");
    let model = quantised::Model::new(&[layer], None, scales()).expect("one layer");
    encoded(&QuantisedView::new(model), Choice::Prefer(encoding))
}

fn scales() -> Scales {
    Scales::new(1.0, 1.0, 0, 0).expect("positive")
}

fn encoded(view: &QuantisedView<'_>, choice: Choice) -> Vec<u8> {
    let mut bytes = vec![0; view.encoded_len(choice)];
    view.encode(choice, &mut bytes).expect("as long as it says");
    bytes
}

fn aligned(bytes: &[u8]) -> Box<Aligned<[u8; LONGEST]>> {
    let mut buffer = Box::new(Aligned([0; LONGEST]));
    buffer.0[..bytes.len()].copy_from_slice(bytes);
    buffer
}

/// What layers of integers have besides weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Besides {
    /// Factors of a hidden layer for each output, not one for all.
    pub(crate) own_factors: bool,
    pub(crate) biases: bool,
    /// A last layer that is scaled, and one with `ReLU`.
    pub(crate) scaled: bool,
    pub(crate) relu: bool,
    pub(crate) sum: bool,
    /// Most weights are small, as training leaves them.
    pub(crate) trained: bool,
}

impl Besides {
    /// As `tamis quantize` leaves models for several classes: one factor for each hidden layer.
    pub(crate) const PLAIN: Self = Self {
        own_factors: false,
        biases: false,
        scaled: false,
        relu: false,
        sum: false,
        trained: false,
    };

    fn drawn(rng: &mut Rng) -> Self {
        let mut coin = || rng.below(2) == 0;
        let [own_factors, biases, scaled, relu] = [coin(), coin(), coin(), coin()];
        Self { own_factors, biases, scaled, relu, ..Self::PLAIN }
    }
}

/// A model of integers with these widths and encodings.
pub(crate) fn planned(
    rng: &mut Rng,
    widths: &[usize],
    encodings: &[Encoding],
    density: f32,
    besides: Besides,
) -> Drawn {
    loop {
        let drawn: Vec<_> = encodings
            .iter()
            .zip(widths.windows(2))
            .enumerate()
            .map(|(at, (&encoding, pair))| {
                // Of what no later layer reads the compiler would leave code out.
                let density = if at > 0 { density.max(0.6) } else { density };
                let rows = rows_of(rng, pair[0], pair[1], Kind::Hidden, density, 1.0);
                weights_of(rng, &rows, encoding, besides.trained)
            })
            .collect();
        let plan = vec![besides; encodings.len()];
        if let Some(model) = integer_file(rng, &drawn, encodings, besides.sum, &plan) {
            return model;
        }
    }
}

/// A model of floats with these widths, in rows or windows, and a sum behind it if wanted.
pub(crate) fn planned_floats(
    rng: &mut Rng,
    widths: &[usize],
    kinds: &[FloatLayer],
    density: f32,
    sum: bool,
) -> Drawn {
    let tables: Vec<_> = widths
        .windows(2)
        .map(|pair| {
            let rows = rows_of(rng, pair[0], pair[1], Kind::Hidden, density, 1.0);
            Tables::new(rng, rows)
        })
        .collect();
    let count = tables.len();
    let mut layers: Vec<_> = (tables.iter().zip(kinds).enumerate())
        .map(|(at, (tables, &kind))| {
            let relu = at + 1 < count || sum;
            tables.layer(kind, if relu { Activation::Relu } else { Activation::Identity })
        })
        .collect();
    let outputs = widths.last().copied().unwrap_or(0);
    let signs = signs(rng, outputs);
    if sum {
        layers.push(model::Layer::Sum(Sum::new(outputs, &signs).expect("one bit each")));
    }
    let names: Vec<_> = widths.iter().map(ToString::to_string).collect();
    let kinds: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
    float_file(rng, format!("{}, {}", names.join("-"), kinds.join(" and ")), &layers)
}

/// The layers of these files with factors and biases at random, one after the other, and a `sum`
/// behind them.
fn integer_file(
    rng: &mut Rng,
    files: &[Vec<u8>],
    encodings: &[Encoding],
    sum: bool,
    plan: &[Besides],
) -> Option<Drawn> {
    let buffers: Vec<_> = files.iter().map(|file| (aligned(file), file.len())).collect();
    let views: Vec<_> = buffers
        .iter()
        .map(|(buffer, len)| QuantisedView::parse(&buffer.0[..*len]).expect("written here"))
        .collect();
    let weights: Vec<Weights<'_>> =
        views.iter().map(|view| *view.model().layers()[0].weights()).collect();
    if weights.iter().zip(encodings).any(|(weights, encoding)| weights.encoding() != *encoding) {
        return None;
    }
    let outputs = weights.last()?.outputs();
    let signs = signs(rng, outputs);
    let sum = sum.then(|| Sum::new(outputs, &signs).expect("one bit each"));
    let mut tables = Vec::new();
    for (at, weights) in weights.iter().enumerate() {
        let hidden = at + 1 < files.len() || sum.is_some();
        let many = weights.outputs();
        let besides = plan.get(at)?;
        let count = match (hidden || besides.scaled, besides.own_factors) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => many,
        };
        let factors: Vec<u32> =
            (0..count).map(|_| (30 + rng.below(6)) << 24 | 1 << 23 | rng.below(1 << 23)).collect();
        let biases: Vec<i32> = (0..if besides.biases { many } else { 0 })
            .map(|_| rng.below(20_000) as i32 - 10_000)
            .collect();
        let relu = hidden || besides.relu;
        tables.push((factors, biases, if relu { Activation::Relu } else { Activation::Identity }));
    }
    let layers: Vec<_> = weights
        .iter()
        .zip(&tables)
        .map(|(&weights, (factors, biases, activation))| {
            quantised::Layer::new(weights, factors, biases, *activation)
                .expect("drawn within bounds")
        })
        .collect();
    let model = quantised::Model::new(&layers, sum, scales()).ok()?;
    let row: Vec<u8> = (0..model.inputs()).map(|_| rng.bits() as u8).collect();
    let (mut scratch, mut out) = (vec![0; model.scratch_len()], vec![0; model.outputs()]);
    model.predict(&row, &mut scratch, &mut out).expect("lengths are the model's");
    let widths: Vec<String> = std::iter::once(model.inputs())
        .chain(layers.iter().map(quantised::Layer::outputs))
        .map(|width| width.to_string())
        .collect();
    let names: Vec<_> = encodings.iter().map(|encoding| encoding.name()).collect();
    Some(Drawn {
        name: format!("{}, {}", widths.join("-"), names.join(" and ")),
        kernels: weights.iter().map(Kernel::of_integers).collect(),
        digest: digest(out.iter().map(|y: &i32| *y as u32)),
        row,
        content: Content::Integers(encoded(&QuantisedView::new(model), Choice::Keep)),
    })
}

impl Drawn {
    /// Of the bytes of a file of either kind, to estimate only.
    pub(crate) fn of_file(name: String, bytes: Vec<u8>) -> Self {
        let is_integers = QuantisedView::parse(&aligned(&bytes).0[..bytes.len()]).is_ok();
        let content = if is_integers { Content::Integers(bytes) } else { Content::Floats(bytes) };
        Self { name, kernels: Vec::new(), content, row: Vec::new(), digest: 0 }
    }

    /// The model in memory as its kind asks for.
    pub(crate) fn read<T>(
        &self,
        dense: impl FnOnce(usize, usize) -> T,
        floats: impl FnOnce(View<'_>) -> T,
        integers: impl FnOnce(QuantisedView<'_>) -> T,
    ) -> T {
        match &self.content {
            Content::DenseFloats { inputs, outputs, .. } => dense(*inputs, *outputs),
            Content::Floats(bytes) => {
                floats(View::parse(&aligned(bytes).0[..bytes.len()]).expect("written here"))
            }
            Content::Integers(bytes) => integers(
                QuantisedView::parse(&aligned(bytes).0[..bytes.len()]).expect("written here"),
            ),
        }
    }

    /// What is counted.
    pub(crate) fn counts(&self) -> Counts {
        self.read(
            |inputs, outputs| {
                let mut around = Around::PREDICTION;
                add(&mut around, Around::of_dense_floats(outputs, true));
                let layers = vec![(Kernel::DenseFloats, Work::dense(inputs, outputs))];
                Counts { numbers: Numbers::Floats, around, layers }
            },
            |view| {
                let (mut around, mut layers) = (Around::PREDICTION, Vec::new());
                for (at, layer) in view.model().layers().iter().enumerate() {
                    add(&mut around, Around::of_floats(view.model().layers(), at));
                    layers
                        .extend(Kernel::of_floats(layer).map(|kernel| (kernel, float_work(layer))));
                }
                Counts { numbers: Numbers::Floats, around, layers }
            },
            |view| {
                let (mut around, mut layers) = (Around::PREDICTION, Vec::new());
                let (model, count) = (view.model(), view.model().layers().len());
                for (at, layer) in model.layers().iter().enumerate() {
                    add(
                        &mut around,
                        Around::of_integers(layer, at + 1 == count && model.sum().is_none()),
                    );
                    layers.push((
                        Kernel::of_integers(layer.weights()),
                        integer_work(layer.weights()),
                    ));
                }
                if let Some(sum) = model.sum() {
                    add(&mut around, Around::of_sum(sum.inputs()));
                }
                Counts { numbers: Numbers::Integers, around, layers }
            },
        )
    }

    /// What the host says of it on a core.
    pub(crate) fn estimate(&self, core: Core) -> Estimate {
        self.read(
            |inputs, outputs| {
                // The loop has ReLU, as a hidden layer; an estimate takes a last layer for one
                // without.
                let relu = Around::of_dense_floats(outputs, true);
                let relu = cost(&relu.0, &core.prices().around[0]);
                let mut estimate = Estimate::of_dense(&[[inputs, outputs]], Numbers::Floats, core);
                estimate.instructions += relu / PER_INSTRUCTION;
                estimate
            },
            |view| Estimate::of_floats(&view, core),
            |view| Estimate::of_integers(&view, core),
        )
    }

    /// Words in flash: a head, the row, the model.
    fn words(&self) -> Vec<u32> {
        let (kind, outputs, model) = match &self.content {
            Content::DenseFloats { outputs, weights, .. } => (0, *outputs, weights),
            Content::Floats(bytes) => (1, 0, bytes),
            Content::Integers(bytes) => (2, 0, bytes),
        };
        let mut words = vec![kind, outputs as u32, self.row.len() as u32, model.len() as u32];
        for bytes in [&self.row, model] {
            words.extend(bytes.chunks(4).map(|chunk| {
                chunk.iter().rev().fold(0_u32, |word, &byte| word << 8 | u32::from(byte))
            }));
        }
        words
    }
}

fn add(sum: &mut Around, more: Around) {
    sum.0.iter_mut().zip(more.0).for_each(|(sum, more)| *sum += more);
}

/// Models in files of at most `most` bytes, with what each file holds.
pub(crate) fn batches(models: &[Drawn], most: usize) -> Vec<(Vec<u8>, Vec<&Drawn>)> {
    let mut batches: Vec<(Vec<u32>, Vec<&Drawn>)> = vec![(Vec::new(), Vec::new())];
    for model in models {
        let words = model.words();
        let full = batches
            .last()
            .is_some_and(|(held, _)| 4 * (held.len() + words.len() + END.len()) > most);
        if full {
            batches.push((Vec::new(), Vec::new()));
        }
        if let Some((held, of)) = batches.last_mut() {
            held.extend(words);
            of.push(model);
        }
    }
    let bytes = |words: Vec<u32>| words.into_iter().chain(END).flat_map(u32::to_le_bytes).collect();
    batches.into_iter().map(|(words, models)| (bytes(words), models)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_is_drawn_and_another_seed_gives_other_models() {
        let (models, others) = (models(1, 2), models(2, 2));
        for kernel in Kernel::ALL {
            assert!(models.iter().any(|model| model.kernels.contains(&kernel)), "{kernel:?}");
        }
        let digests =
            |models: &[Drawn]| models.iter().map(|model| model.digest).collect::<Vec<_>>();
        assert_eq!(digests(&models), digests(&super::models(1, 2)));
        assert!(models.iter().zip(&others).all(|(model, other)| model.words() != other.words()));
    }

    #[test]
    fn batches_hold_all_models_and_no_more_than_fits() {
        let models = models(1, 1);
        let largest = models.iter().map(|model| model.words().len()).max().unwrap_or(0);
        let most = 4 * (largest + END.len());
        let batches = batches(&models, most);
        assert!(batches.len() > 1 && batches.iter().all(|(bytes, _)| bytes.len() <= most));
        assert_eq!(batches.iter().map(|(_, of)| of.len()).sum::<usize>(), models.len());
    }
}
