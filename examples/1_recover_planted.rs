//! Recovers a planted network: a few weights make 20 000 labels, and from the labels alone
//! iterative hard thresholding finds which weights they were.
//!
//! The network is `y = sum_i relu(w_i · x)` with 10 neurons on 100 inputs; of its 1000 weights 10
//! are not zero.
//!
//! Run: `cargo run --release -p tamis-examples --example 1_recover_planted`

use std::ops::ControlFlow::Continue;
use tamis::base::dims::Dims;
use tamis::learn::loss::Labels;
use tamis::learn::start::Start;
use tamis::learn::train::{self, OneOutput, Schedule, Trials};
use tamis::network::gates::Signs;
use tamis::network::weights::{Block, Weights};
use tamis::operator::sensing::Sensing;
use tamis_host::data::planted;
use tamis_host::operator::{Blocked, Layout};

/// Samples, inputs, hidden neurons, nonzero weights.
const DIMS: Dims = Dims::new(20_000, 100, 10, 10);
/// The published schedule, from the best of up to 32 random starts on 2000 of the samples.
const SCHEDULE: Schedule<'_, OneOutput> = Schedule { trials: Trials::DEFAULT, ..Schedule::PAPER };
/// Another seed, another problem.
const SEED: u64 = 0;

fn main() -> anyhow::Result<()> {
    let planted = planted::network(DIMS, Signs::Positive, SEED)?;
    let truth = planted.weights()?;

    // The operator takes the data; the run works in memory that is the caller's, and says
    // beforehand how much.
    let layout = Layout::new(DIMS.hidden, DIMS.inputs);
    let mut sensing = Blocked::new(planted.data.clone(), DIMS.hidden, DIMS.nnz, layout)?;
    let budget = SCHEDULE.budget(DIMS, sensing.panel(), sensing.scratch(DIMS.samples));
    let mut memory = vec![0; budget.words()];
    let (labels, s) = (Labels::values(&planted.labels), DIMS.nnz);
    let trained =
        train::run(&mut sensing, labels, s, Start::Zero, &SCHEDULE, &mut memory, |_| Continue(()))?;
    let w = trained.network.w();

    println!("planted:   {}", show(truth));
    println!("recovered: {}", show(w));
    println!(
        "{} starts, {} steps, {} bytes of state",
        trained.info.trials,
        trained.info.steps,
        budget.state_bytes()
    );
    let psnr = psnr(&planted.labels, trained.info.loss);
    println!("{} of {} weights found, PSNR {psnr:.0} dB", found(truth, w), DIMS.nnz);
    Ok(())
}

/// The neurons with weights, each as the inputs that it reads. Which neuron comes first means
/// nothing to the sum, so they are sorted.
fn neurons(w: Weights<'_>) -> Vec<Vec<(usize, f32)>> {
    let mut neurons: Vec<Vec<_>> =
        w.blocks().map(|block: Block<'_>| block.entries().collect()).collect();
    neurons.sort_by_key(|entries| entries.iter().map(|&(input, _)| input).collect::<Vec<_>>());
    neurons
}

fn show(w: Weights<'_>) -> String {
    let weight = |(input, value): &(usize, f32)| format!("{value:.3} x{input}");
    let neuron = |entries: &Vec<_>| entries.iter().map(weight).collect::<Vec<_>>().join(" + ");
    neurons(w).iter().map(|entries| format!("({})", neuron(entries))).collect::<Vec<_>>().join(" ")
}

/// Weights of the neurons of which every input was found, and no other.
fn found(truth: Weights<'_>, trained: Weights<'_>) -> usize {
    let inputs = |w| {
        neurons(w).iter().map(|n| n.iter().map(|&(j, _)| j).collect()).collect::<Vec<Vec<usize>>>()
    };
    let trained = inputs(trained);
    inputs(truth).iter().filter(|neuron| trained.contains(neuron)).map(Vec::len).sum()
}

/// Peak signal to noise ratio in decibels: the largest label against the root of the mean squared
/// error.
fn psnr(labels: &[f32], loss: f32) -> f32 {
    let peak = labels.iter().fold(0.0_f32, |peak, label| peak.max(label.abs()));
    20.0 * peak.log10() - 10.0 * loss.log10()
}
