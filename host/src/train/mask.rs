//! Training under a mask as a recipe: the kept weights of a network to a model, and a report.

use std::convert::Infallible;
use std::ops::ControlFlow;

use tamis::infer::model::{MAX_INPUTS, MAX_LAYERS};
use tamis::learn::deep::Stack;
use tamis::learn::deep::backprop::{Backprop, Batch};
use tamis::learn::loss::Labels;
use tamis::learn::masked::{self, Params};
use tamis::network::gates::Signs;
use tamis::network::weights::Weights;

use crate::base::memory::room_for;
use crate::data::{Problem, Task};
use crate::model::{MaskLayer, score_model};
use crate::operator::backprop::Engine;
use crate::train::check::{at_least_one, weights_between};
use crate::train::dense::{DensePlace, Rates, check_momentum, default_rate};
use crate::train::encode::{End, encode_layers};
use crate::train::imp::check_test;
use crate::train::labels::HeldLabels;
use crate::train::masked::{Elsewhere, MaskedSettings, MaskedStart, Ran};
use crate::train::network::SparseNetwork;
use crate::train::ones::layers_of_stack;
use crate::train::options::Options;
use crate::train::progress::Observer;
use crate::train::report::{Details, MaskedDetails, Neurons, Report};
use crate::train::trained::{Stopwatch, Trained};
use crate::{Error, Result};

/// Steps of warming up, where there are ten times as many or more.
const WARMUP: u64 = 100;

/// Trains the weights of a mask on `problem`, on the current pool, in memory for these weights.
pub(crate) fn train(
    mut problem: Problem,
    options: &Options,
    settings: &MaskedSettings,
    observer: &mut Observer<'_>,
) -> Result<Trained> {
    problem.check()?;
    check(&problem, settings)?;
    let stopwatch = Stopwatch::start(&problem);
    let start = &settings.start;
    let unit = if problem.data.is_bytes() && !settings.raw { 1.0 / 256.0 } else { 1.0 };
    let layers = Layers::new(start);
    let handing = layers.has_ones.then_some(layers.fixed.len());

    let nnz = layers.layers.iter().map(|layer| layer.index.len()).sum();
    let (mut index, mut value) = (vec![0; nnz], vec![0.0; nnz]);
    let mut stack = layers.stack(&mut index, &mut value)?;
    let rates = settings.rates.clone();
    let rate = default_rate(&settings.optimiser);
    let rates = rates.unwrap_or_else(|| Rates::falling(rate, settings.epochs));
    rates.check()?;
    check_momentum(&settings.optimiser)?;
    let rows = problem.data.rows;
    let batch = if settings.batch == 0 { rows } else { settings.batch.min(rows) };
    let steps = u64::from(settings.epochs) * rows.div_ceil(batch.max(1)) as u64;
    let warmup = settings.warmup.unwrap_or_else(|| WARMUP.min(steps / 10) as u32);
    let params = Params {
        epochs: settings.epochs,
        batch,
        optimiser: settings.optimiser,
        rate: rates.rate,
        warmup,
        falls: &rates.falls,
        factor: rates.factor,
        decay: rates.decay,
        fixed: &layers.fixed,
        seed: options.seed,
    };
    let (place, rates) = (&settings.place, &rates);
    let ran = match *place == DensePlace::default() {
        true => on_threads(&mut problem, unit, &params, &mut stack, observer)?,
        false => Elsewhere { problem: &problem, unit, params: &params, rates, place }
            .run(&mut stack, observer)?,
    };
    if !stack.values().iter().all(|weight| weight.is_finite()) {
        return Err(diverged(ran.steps.saturating_sub(1) as usize, rates.rate));
    }
    let task = match problem.task {
        Task::Binary => Task::LOG_ODDS,
        task => task.stored(),
    };
    let model = encode_layers(layers_of_stack(&stack, unit, handing), End::Layer, Some(task))?;
    let score = |problem: &Problem| score_model(&model, problem);
    let (test, score) = (settings.test.as_ref().map(score).transpose()?, score(&problem)?);
    let masked = start.mask.layers();
    let hidden = start.hidden();
    let biases = start.biases.iter().map(Vec::len).sum();
    let dense = weights_between(start.mask.widths());
    let steps_per_epoch = rows.div_ceil(params.batch.min(rows).max(1)) as u64;
    let details = MaskedDetails {
        dense_nnz: dense,
        kept: start.mask.index().len(),
        dead_weights: masked.iter().map(|layer| layer.dead_weights).sum(),
        batch: params.batch.min(rows),
        optimiser: settings.optimiser,
        rates: rates.clone(),
        warmup,
        input_scale: unit,
        test_loss: test.as_ref().map(|test| test.loss),
        test_accuracy: test.as_ref().and_then(|test| test.accuracy),
    };
    let live = masked.iter().map(|layer| layer.live_neurons).take(hidden.len()).collect();
    let report = Report {
        outputs: stack.outputs(),
        hidden: Neurons::Each(hidden.to_vec()),
        requested_nnz: start.mask.index().len(),
        seed: options.seed,
        // What hands biases on is none of the model's.
        nnz: nnz - layers.fixed.len(),
        biases,
        live: Neurons::Each(live),
        epochs: ran.epochs,
        steps: ran.steps,
        passes: ran.steps as f64 / steps_per_epoch as f64,
        stopped: ran.stopped,
        state_bytes: ran.state_bytes,
        workspace_bytes: ran.workspace_bytes,
        device: place.name().to_owned(),
        ..stopwatch.report("masked", Details::Masked(details)).scored(&score)
    };
    Ok(Trained::new(&model, SparseNetwork::default(), report))
}

/// Trains in memory for the kept weights, on the current pool.
fn on_threads(
    problem: &mut Problem,
    unit: f32,
    params: &Params<'_>,
    stack: &mut Stack<'_>,
    observer: &mut Observer<'_>,
) -> Result<Ran> {
    let held = HeldLabels::new(std::mem::take(&mut problem.labels), problem.task, 0);
    let labels = held.labels(stack.outputs());
    let engine = Engine::new(&problem.data, unit, labels, stack, observer.stop)?;
    let words = masked::words(stack.nnz(), params.optimiser);
    let mut ran = Ran {
        state_bytes: (8 * stack.nnz() + 4 * words) as u64,
        workspace_bytes: engine.bytes() as u64,
        ..Ran::default()
    };
    room_for("training", ran.state_bytes + ran.workspace_bytes, "pass a mask of fewer weights")?;
    let mut memory = vec![0; words];
    let mut observe = |now: &masked::Progress| {
        ran.epochs = now.epoch;
        let goes_on = observer.epoch(now.epoch, now.epochs, now.loss);
        if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let mut counted = CountedSteps { engine, steps: 0 };
    let done = masked::run(&mut counted, stack, params, &mut memory, &mut observe);
    ran.steps = counted.steps;
    drop(counted);
    problem.labels = held.into_numbers();
    match done {
        Ok(info) => ran.stopped = info.stopped,
        Err(tamis::Error::Diverged { step }) => return Err(diverged(step, params.rate)),
        // What the steps until then have reached is the result.
        Err(tamis::Error::Stopped) if ran.steps > 0 => ran.stopped = true,
        Err(tamis::Error::Stopped) => {
            let help = "give it more time, or pass a smaller --batch or a mask of fewer weights";
            return Err(Error::interrupted().help(help));
        }
        Err(error) => return Err(error.into()),
    }
    Ok(ran)
}

/// An engine, and the steps that were taken with its gradients.
struct CountedSteps<'a> {
    engine: Engine<'a>,
    steps: u64,
}

impl Backprop for CountedSteps<'_> {
    type Source = Infallible;

    fn samples(&self) -> usize {
        self.engine.samples()
    }

    fn labels(&self) -> Labels<'_> {
        Backprop::labels(&self.engine)
    }

    fn check(&self, stack: &Stack<'_>) -> tamis::Result<()> {
        self.engine.check(stack)
    }

    fn gradient(
        &mut self,
        stack: &Stack<'_>,
        batch: &Batch,
        gradient: &mut [f32],
    ) -> tamis::Result<f32> {
        let loss = self.engine.gradient(stack, batch, gradient)?;
        self.steps += 1;
        Ok(loss)
    }

    fn skip(&mut self, rows: u64) {
        self.engine.skip(rows);
    }

    fn loss(&mut self, stack: &Stack<'_>, batch: &Batch) -> tamis::Result<f32> {
        self.engine.loss(stack, batch)
    }
}

pub(crate) fn diverged(step: usize, rate: f32) -> Error {
    Error::new(format!("diverged at step {step}"))
        .expected("numbers within the range of 32-bit floats")
        .got(format_args!("sums or steps beyond it, with --rate {rate}"))
        .help("pass a smaller --rate, or more --warmup; scale labels that are numbers to about 1")
}

/// Checks that a network of these widths is one that a mask is trained of.
pub(crate) fn check_size(widths: &[usize]) -> Result<()> {
    let too_wide = widths.iter().any(|&width| width >= MAX_INPUTS);
    if !(3..=MAX_LAYERS + 1).contains(&widths.len()) || too_wide {
        return Err(Error::new("no model is of the size of the mask")
            .expected(format_args!(
                "1 to {} hidden layers, and layers of fewer than {MAX_INPUTS} neurons",
                MAX_LAYERS - 1
            ))
            .got(format_args!("widths {widths:?}"))
            .help("make a mask of a smaller network"));
    }
    Ok(())
}

/// Checks that mask, rows and settings go together.
fn check(problem: &Problem, settings: &MaskedSettings) -> Result<()> {
    at_least_one("--epochs", settings.epochs as usize, "leave --epochs out for 10")?;
    let MaskedStart { mask, values, biases } = &settings.start;
    let widths = mask.widths();
    let [inputs, .., outputs] = *widths else { return Ok(()) };
    check_size(widths)?;
    let layers = widths.len() - 1;
    let fits = |(biases, &outputs): (&Vec<f32>, &usize)| [0, outputs].contains(&biases.len());
    if values.len() != mask.index().len()
        || biases.len() != layers
        || !biases.iter().zip(&widths[1..]).all(fits)
    {
        return Err(Error::new("the values are not those of the mask")
            .expected(format_args!("{} values, biases of {layers} layers", mask.index().len()))
            .got(format_args!("{} values, {} lists of biases", values.len(), biases.len())));
    }
    if problem.data.cols != inputs {
        return Err(Error::new("the rows do not fit the mask")
            .mismatch(format_args!("rows of {inputs} numbers"), problem.data.cols)
            .help("pass the data that the mask was made for"));
    }
    let needed = match problem.task {
        Task::Binary => 1,
        Task::Multiclass => outputs.max(problem.classes().unwrap_or(0)),
        Task::Regression => problem.outputs(),
    };
    if needed != outputs || problem.task == Task::Multiclass && outputs < 2 {
        return Err(Error::new("the labels do not fit the mask")
            .expected(match problem.task {
                Task::Binary => "a network of 1 output for --task binary".to_owned(),
                Task::Multiclass => format!("a network of {} outputs, one a class", needed.max(2)),
                Task::Regression => format!("a network of {needed} outputs, one a label"),
            })
            .got(format_args!("{outputs} outputs"))
            .help("pass the right --task, or make a mask of a network with so many outputs"));
    }
    if let Some(lost) = mask.collapsed() {
        let names: Vec<_> = lost.iter().map(|&l| &*mask.names()[l].name).collect();
        return Err(Error::new(format!("no path leads through the mask: {}", names.join(", ")))
            .expected("weights on paths from inputs to outputs in every layer")
            .got("a network whose outputs are the same for every row")
            .help("make a mask with --min-layer 1 or more, or by another method"));
    }
    settings.test.as_ref().map_or(Ok(()), |test| check_test(problem, test))
}

/// The layers of a network as they are trained. Biases are weights of one more input, the last,
/// which is 1 in every row; a hidden neuron with the weight 1 to it hands it on.
pub(crate) struct Layers {
    layers: Vec<TrainedLayer>,
    /// Places among all weights of those that hand on the 1, which are not trained.
    fixed: Vec<u32>,
    /// Whether rows have a last column of ones.
    has_ones: bool,
}

/// The weights of a layer as [`Stack`] has them: for each output of a hidden layer, and of the last
/// one for each neuron below it.
struct TrainedLayer {
    width: usize,
    neurons: usize,
    index: Vec<u32>,
    value: Vec<f32>,
}

struct Entry {
    output: usize,
    input: usize,
    value: f32,
}

impl Layers {
    pub(crate) fn new(start: &MaskedStart) -> Self {
        let last = start.biases.len() - 1;
        // Whether this layer or one behind it has biases.
        let ones = |l: usize| start.biases[l..].iter().any(|biases| !biases.is_empty());
        let mut all = Self { layers: Vec::new(), fixed: Vec::new(), has_ones: ones(0) };
        let (mut values, mut before) = (&start.values[..], 0);
        for (l, layer) in start.mask.by_layer().enumerate() {
            let (own, rest) = values.split_at(layer.own().len());
            values = rest;
            let mut entries = entries(layer, own, &start.biases[l]);
            let mut sizes = [layer.inputs + usize::from(ones(l)), layer.outputs];
            if l != last && ones(l + 1) {
                let [output, input] = [layer.outputs, layer.inputs];
                entries.push(Entry { output, input, value: 1.0 });
                all.fixed.push((before + entries.len() - 1) as u32);
                sizes[1] += 1;
            }
            before += entries.len();
            if l == last {
                entries.sort_by_key(|entry| (entry.input, entry.output));
                sizes.reverse();
            }
            let [width, neurons] = sizes;
            let flat = |entry: &Entry| match l == last {
                false => entry.output * width + entry.input,
                true => entry.input * width + entry.output,
            };
            all.layers.push(TrainedLayer {
                width,
                neurons,
                index: entries.iter().map(|entry| flat(entry) as u32).collect(),
                value: entries.iter().map(|entry| entry.value).collect(),
            });
        }
        all
    }

    /// The network, in memory of as many weights as there are.
    pub(crate) fn stack<'a>(
        &self,
        index: &'a mut [u32],
        value: &'a mut [f32],
    ) -> Result<Stack<'a>> {
        let inputs = self.layers.first().map_or(0, |layer| layer.width);
        let mut stack = Stack::new(inputs, index, value);
        let last = self.layers.len() - 1;
        for (l, layer) in self.layers.iter().enumerate() {
            let TrainedLayer { width, neurons, index, value } = layer;
            let weights = Weights::new(*width, *neurons, index, value)?;
            match l == last {
                false => stack.push(weights, Signs::Positive)?,
                true => stack.end_weights(weights)?,
            }
        }
        Ok(stack)
    }
}

/// The weights of a layer and its biases, for each output in turn.
fn entries(layer: MaskLayer<'_>, values: &[f32], biases: &[f32]) -> Vec<Entry> {
    let mut entries = Vec::with_capacity(values.len() + biases.len());
    let mut own = layer.own().zip(values).peekable();
    for output in 0..layer.outputs {
        while let Some((at, &value)) = own.next_if(|(at, _)| at / layer.inputs == output) {
            entries.push(Entry { output, input: at % layer.inputs, value });
        }
        let bias = biases.get(output).map(|&value| Entry { output, input: layer.inputs, value });
        entries.extend(bias);
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LayerName, Mask};

    /// Every output of a dense network with biases, the mask's weights alone.
    fn dense(start: &MaskedStart, row: &[f32]) -> Vec<f32> {
        let widths = start.mask.widths();
        let (mut x, mut first, mut values) = (row.to_vec(), 0, start.values.iter());
        for (l, pair) in widths.windows(2).enumerate() {
            let mut out = vec![0.0; pair[1]];
            out.iter_mut().zip(&start.biases[l]).for_each(|(out, bias)| *out = *bias);
            let own = first..first + pair[0] * pair[1];
            for at in start.mask.index().iter().map(|&at| at as usize) {
                if own.contains(&at) {
                    let at = at - first;
                    out[at / pair[0]] += x[at % pair[0]] * values.next().unwrap();
                }
            }
            if l + 2 < widths.len() {
                out.iter_mut().for_each(|z| *z = z.max(0.0));
            }
            (x, first) = (out, own.end);
        }
        x
    }

    #[test]
    fn biases_are_weights_of_a_constant_input() {
        let number = |e: usize| ((e * 7919 + e / 7 + 3) % 997) as f32 / 997.0 - 0.4;
        let widths = [4, 5, 3, 2];
        let weights: usize = widths.windows(2).map(|pair| pair[0] * pair[1]).sum();
        let index: Vec<u32> = (0..weights as u32).filter(|k| k % 3 != 1).collect();
        for biased in 0..8 {
            let biases = |l: usize| match biased >> l & 1 {
                0 => Vec::new(),
                _ => (0..widths[l + 1]).map(|e| number(e + 50 * l)).collect(),
            };
            let start = MaskedStart {
                mask: Mask::new(LayerName::numbered(3), widths.to_vec(), index.clone()).unwrap(),
                values: (0..index.len()).map(|e| number(e + 7)).collect(),
                biases: (0..3).map(biases).collect(),
            };
            let layers = Layers::new(&start);
            let nnz = layers.layers.iter().map(|layer| layer.index.len()).sum();
            let (mut index, mut value) = (vec![0; nnz], vec![0.0; nnz]);
            let stack = layers.stack(&mut index, &mut value).unwrap();
            assert!(layers.fixed.iter().all(|&at| stack.values()[at as usize] == 1.0));
            let row = [0.5, 1.0, -2.0, 0.25];
            let whole = [&row[..], if biased > 0 { &[1.0] } else { &[] }].concat();
            let (mut scratch, mut out) = (vec![0.0; stack.activations()], [0.0; 2]);
            stack.predict(&whole, &mut scratch, &mut out).unwrap();
            for (got, wanted) in out.iter().zip(dense(&start, &row)) {
                assert!((got - wanted).abs() < 1e-5, "{biased}: {got} {wanted}");
            }
            // Those of the last layer with biases are not handed on.
            let last = (0..3).rev().find(|l| biased >> l & 1 == 1).unwrap_or(0);
            assert_eq!(layers.fixed.len(), last);
        }
    }
}
