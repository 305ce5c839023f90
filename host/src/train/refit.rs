//! Least squares on the support of a finished model of one hidden layer (*debiasing*): the steps of
//! a search, and no search.

use tamis::base::bits::is_set;
use tamis::base::dims::Dims;
use tamis::base::math::unit_scale;
use tamis::infer::model::{Activation, Csr, Layer, Model};
use tamis::learn::lm::{self, Checkpoint, Params};
use tamis::network::gates::Signs;
use tamis::network::net::Network;

use crate::Result;
use crate::base::Limits;
use crate::base::limits::Watch;
use crate::base::memory::room_for;
use crate::data::{Problem, Task};
use crate::model::rows::rows_of;
use crate::operator::Stop;
use crate::train::check::Sizes;
use crate::train::encode::{End, SparseLayer, encode_layers};
use crate::train::joint::Ending;
use crate::train::network::SparseNetwork;
use crate::train::search::SearchSetup;
use crate::train::trained::Job;
use tamis::store::wire;

/// A model of one hidden layer as a search has it: neurons whose output is taken away in the odd
/// blocks.
pub(crate) struct Shallow {
    requested: usize,
    blocks: usize,
    /// The block of each neuron, and whether its output is taken away.
    places: Vec<(usize, bool)>,
    signs: Vec<u32>,
    network: SparseNetwork,
}

impl Shallow {
    /// Of a model that least squares can fit: one hidden layer of relu and a sum, or weights to
    /// outputs, which are no scores of classes.
    pub(crate) fn new(
        model: &Model<'_>,
        task: Task,
        stored: Option<wire::Task>,
    ) -> Result<Option<Self>> {
        let [Layer::Csr(csr), end] = model.layers() else { return Ok(None) };
        let is_linear = match end {
            Layer::Sum(_) => true,
            Layer::Csr(end) => end.activation() != Activation::Relu,
            _ => false,
        };
        let scores = task == Task::Multiclass || stored == Some(Task::LOG_ODDS);
        if csr.activation() != Activation::Relu || scores || !is_linear {
            return Ok(None);
        }
        let Ending { signs, outputs, index: out_index, value: out_value } = Ending::new(end)?;
        let (live, inputs) = (csr.outputs(), csr.inputs());
        let is_negative = |i: usize| is_set(&signs, i);
        let mixed = (0..live).any(is_negative);
        let mut counts = [0; 2];
        let place = |i: usize| {
            let negative = is_negative(i);
            let rank = &mut counts[usize::from(negative)];
            *rank += 1;
            (if mixed { 2 * (*rank - 1) + usize::from(negative) } else { i }, negative)
        };
        let places: Vec<(usize, bool)> = (0..live).map(place).collect();
        let blocks = places.iter().map(|(block, _)| block + 1).max().unwrap_or(0);
        // Flat indices have 32 bits.
        if blocks.saturating_mul(inputs) > u32::MAX as usize {
            return Ok(None);
        }
        let entry = |(i, (&j, &value)): (usize, (&u16, &f32))| {
            let (block, negative) = places[i];
            let index = (block * inputs + usize::from(j)) as u32;
            (index, if negative { -value } else { value })
        };
        let entries = rows_of(csr).zip(csr.columns().iter().zip(csr.values()));
        let mut entries: Vec<(u32, f32)> = entries.map(entry).collect();
        entries.sort_unstable_by_key(|&(index, _)| index);
        let (index, value) = entries.into_iter().unzip();
        let kind = if mixed { Signs::Balanced } else { Signs::Positive };
        let network =
            SparseNetwork { index, value, out_index, out_value, inputs, outputs, signs: kind };
        Ok(Some(Self { requested: Csr::requested(csr), blocks, places, signs, network }))
    }

    /// The bytes of a model with these weights in the places of its own.
    fn encode(&self, net: Network<'_>, task: Option<wire::Task>) -> Result<Vec<u8>> {
        let neurons = self.places.iter().map(|&(block, negative)| {
            let sign = if negative { -1.0 } else { 1.0 };
            net.w().block(block).entries().map(|(j, v)| (j, sign * v)).collect()
        });
        let hidden = SparseLayer {
            inputs: self.network.inputs,
            requested: self.requested,
            neurons: neurons.collect(),
            biases: Vec::new(),
        };
        match self.network.outputs {
            0 => encode_layers(vec![hidden], End::Sum(&self.signs), task),
            // Neurons are in the places of their own.
            outputs => {
                let last = SparseLayer::behind(net.wt(), outputs);
                encode_layers(vec![hidden, last], End::Layer, task)
            }
        }
    }
}

/// A fit that is done, by least squares or by Adam.
pub(crate) struct Refit {
    pub(crate) method: &'static str,
    pub(crate) model: Vec<u8>,
    /// What it was fitted to, in some order of the rows.
    pub(crate) problem: Problem,
    pub(crate) epochs: u32,
    pub(crate) limit: Option<&'static str>,
    pub(crate) stopped: bool,
    /// Bytes that survive from step to step.
    pub(crate) state_bytes: u64,
}

/// At most `steps` steps on the support; `tell` hears of each with the loss. Runs on the current
/// pool.
pub(crate) fn refit(
    mut model: Shallow,
    problem: Problem,
    task: Option<wire::Task>,
    steps: u32,
    limits: Limits,
    stop: &Stop,
    mut tell: impl FnMut(u32, f32) -> bool,
) -> Result<Refit> {
    let Problem { data, labels, task: kind } = problem;
    let SparseNetwork { signs, outputs, .. } = model.network;
    let nnz = model.network.index.len() + model.network.out_index.len();
    let sizes = Sizes { dims: Dims::new(data.rows, data.cols, model.blocks, nnz), outputs };
    let params = Params { signs, final_steps: steps, ..Params::DEFAULT };
    let threads = rayon::current_num_threads();
    let job = Job { threads, ..Job::plain(model.blocks, nnz) };
    let bytes = data.is_bytes();
    let setup = SearchSetup::planned(sizes, None, params, bytes, model.blocks, &job, None)?;
    room_for("the fit", setup.plan.total_bytes(), "fit a smaller model or fewer rows")?;
    let mut operator = setup.operator(data)?;
    let mut memory = vec![0; setup.budget.words()];
    let mut watch = Watch::new(limits, stop);
    let start = &mut model.network;
    let scaled = if outputs == 0 { &mut start.value } else { &mut start.out_value };
    let scale = unit_scale(&labels);
    scaled.iter_mut().for_each(|v| *v *= scale);
    let from = Checkpoint::fitting(start.net(model.blocks)?);
    let mut observe = |progress: &lm::Progress<'_>| {
        progress.checkpoint.is_some() || tell(progress.step, progress.loss)
    };
    let lm::Trained { network: net, info } =
        setup.run(&mut operator, &labels, Some(&from), &mut memory, &mut watch, &mut observe)?;
    let (limit, stopped) = watch.ended(info.stopped);
    Ok(Refit {
        method: "least-squares",
        model: model.encode(net, task)?,
        problem: Problem { data: operator.into_data(), labels, task: kind },
        epochs: info.steps,
        limit,
        stopped,
        state_bytes: setup.plan.state_bytes,
    })
}
