//! The mask of a network: from a seed without the network, or by rounds on its weights.

use std::time::Instant;

use tamis::network::mask::Mlp;
use tamis::network::mask::allocate::Bounds;
use tamis::network::mask::initial::Initial;
use tamis::network::mask::schedule::Schedule;
use tamis::network::mask::select::{BINS, Choice};
use tamis::network::mask::simple;
use tamis::network::mask::synflow::{self, Input};

use super::network::{InitialWeights, SourceNetwork};
use super::options::{InputSize, MaskOptions, Method, RowsNeeded, Scope};
use super::report::MaskReport;
use super::rounds::{Rounded, Rounds, input_sizes};
use super::rows::ScoredRows;
use super::select;
use crate::Result;
use crate::base::memory::room_for;
use crate::model::Mask;
use crate::operator::Stop;

const BINS_BYTES: u64 = 4 * BINS as u64;

/// A mask, and what was done for it.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportedMask {
    /// The mask.
    pub mask: Mask,
    /// What was done.
    pub report: MaskReport,
}

/// What a search for a mask gives.
struct Outcome {
    index: Vec<u32>,
    rounds: u32,
    schedule: Schedule,
    memoryless: bool,
    regenerated: u64,
    state_bytes: u64,
}

/// Chooses exactly so many weights of a network as the options say; `observe` is called with the
/// number of each round that is done. Threads change no bit of it.
///
/// # Errors
/// Settings out of bounds, rows that are missing or do not fit the network, fewer weights with a
/// score above 0 than are kept, scores that are no numbers, or a stop.
///
/// ```
/// use tamis::network::mask::initial::{Initial, Law};
/// use tamis_host::mask::{MaskOptions, Method, SourceNetwork, find};
/// use tamis_host::{Budget, operator::Stop};
/// let initial = Initial { seed: 7, law: Law::HeNormal };
/// let network = SourceNetwork::from_seed(&[40, 30, 10], initial)?;
/// let options = MaskOptions::new(Method::Synflow, Budget::density(0.05));
/// let found = find(&network, &options, None, &Stop::new(), |_| ())?;
/// assert_eq!((found.mask.index().len(), found.report.memoryless), (75, true));
/// # Ok::<(), tamis_host::Error>(())
/// ```
pub fn find(
    network: &SourceNetwork,
    options: &MaskOptions,
    rows: Option<&ScoredRows>,
    stop: &Stop,
    observe: impl FnMut(u32),
) -> Result<ReportedMask> {
    let began = Instant::now();
    options.check()?;
    let net = network.net()?;
    let count = options.count(net.weights(), net.layers().len())?;
    let least: usize = net.layers().map(|layer| options.least.min(layer.weights().len())).sum();
    if least > count {
        return Err(select::no_room(options.least, count));
    }
    let uses_rows = options.method.needs() != RowsNeeded::None
        || options.method == Method::Synflow && options.input.needs_rows();
    let rows = rows.filter(|_| uses_rows);
    if let Some(rows) = rows {
        rows.check(net.widths(), options.method.needs() == RowsNeeded::Labelled)?;
    }
    let outcome = match &network.weights {
        _ if options.method.is_random() => by_chance(network, options, count)?,
        InitialWeights::Seed(initial) if !options.exact && is_memoryless(options) => {
            from_seed(network, options, *initial, rows, count)?
        }
        _ => {
            let rounds = Rounds { net, options, rows, count, stop };
            by_rounds(network, &rounds, observe)?
        }
    };
    let Outcome { index, rounds, schedule, memoryless, regenerated, state_bytes } = outcome;
    let mask = Mask::new(network.names.clone(), network.widths.clone(), index)?;
    let layers = mask.layers();
    let name = |l: usize| network.names[l].name.clone();
    let dead: usize = layers.iter().map(|layer| layer.dead_weights).sum();
    let narrowest = || (0..layers.len()).min_by_key(|&l| layers[l].kept);
    let collapsed = match mask.collapsed() {
        None if 2 * dead > count => narrowest().into_iter().collect(),
        lost => lost.unwrap_or_default(),
    };
    let report = MaskReport {
        method: options.method,
        select: if options.choice == Choice::Sampled { "sample" } else { "threshold" },
        rounds,
        schedule: schedule_name(schedule),
        memoryless,
        temperature: (options.method == Method::Grasp).then_some(options.temperature),
        rows: rows.map_or(0, ScoredRows::count),
        weights: net.weights(),
        kept: mask.index().len(),
        collapsed: collapsed.into_iter().map(name).collect(),
        layers,
        regenerated_weights: regenerated,
        state_bytes,
        seconds: began.elapsed().as_secs_f64(),
        seed: options.seed,
    };
    Ok(ReportedMask { mask, report })
}

const fn schedule_name(schedule: Schedule) -> &'static str {
    match schedule {
        Schedule::Linear => "linear",
        Schedule::Exponential => "exponential",
        Schedule::FrontLoaded => "front-loaded",
    }
}

/// Whether core makes the mask from a seed.
fn is_memoryless(options: &MaskOptions) -> bool {
    let MaskOptions { method, choice, rounds, schedule, least, .. } = *options;
    let is_global = options.scope() == Scope::Global && least == 0;
    match method {
        Method::Synflow => is_global && matches!(schedule, None | Some(Schedule::FrontLoaded)),
        Method::Magnitude => {
            is_global && choice == Choice::Largest && rounds.is_none_or(|r| r == 1)
        }
        _ => false,
    }
}

fn from_seed(
    network: &SourceNetwork,
    options: &MaskOptions,
    weights: Initial,
    rows: Option<&ScoredRows>,
    count: usize,
) -> Result<Outcome> {
    let net = network.net()?;
    let words = if options.method == Method::Synflow { synflow::words(&net, 0) } else { BINS };
    let mut index = indices(words, count)?;
    let emit = |at| index.push(at);
    let (rounds, schedule, regenerated, state_bytes) = match options.method {
        Method::Synflow => {
            let sizes = match options.input {
                InputSize::Ones | InputSize::Chi => Vec::new(),
                input => input_sizes(input, rows)?,
            };
            let input = match options.input {
                InputSize::Ones => Input::Ones,
                InputSize::Chi => Input::Chi,
                InputSize::PixelRms | InputSize::PixelSd => Input::Sizes(&sizes),
            };
            let rounds = options.rounds.unwrap_or(synflow::Params::ROUNDS);
            let params = synflow::Params { weights, input, rounds, count, choice: options.choice };
            let mut memory = vec![0; words];
            let info = synflow::run(&net, &params, &mut memory, emit)
                .map_err(|error| select::too_few_of(error, count))?;
            let bytes = size_of_val(&memory[..]) + size_of_val(&sizes[..]);
            (rounds, Schedule::FrontLoaded, info.regenerated, bytes as u64)
        }
        _ => {
            simple::magnitude(&net, weights, count, &mut vec![0; BINS], emit)?;
            (1, Schedule::Exponential, 4 * net.weights() as u64, BINS_BYTES)
        }
    };
    Ok(Outcome { index, rounds, schedule, memoryless: true, regenerated, state_bytes })
}

/// Room for the indices of a mask, beside so many words to make it in.
fn indices(words: usize, count: usize) -> Result<Vec<u32>> {
    let bytes = 4 * (words as u64).saturating_add(count as u64);
    room_for("the mask", bytes, "choose fewer --layers or a smaller --density")?;
    Ok(Vec::with_capacity(count))
}

/// A random mask: the same for the same shape and seed, wherever the weights come from.
fn by_chance(network: &SourceNetwork, options: &MaskOptions, count: usize) -> Result<Outcome> {
    let net = network.net()?;
    let mut counts = vec![0; net.layers().len()];
    options.allocation().share(&net, count, Bounds::at_least(options.least), &mut counts)?;
    let mut index = indices(BINS, count)?;
    simple::random(&net, &counts, options.seed, &mut vec![0; BINS], |at| index.push(at))?;
    Ok(Outcome {
        index,
        rounds: 1,
        schedule: Schedule::Exponential,
        memoryless: matches!(network.weights, InitialWeights::Seed(_)),
        regenerated: 0,
        state_bytes: BINS_BYTES,
    })
}

fn by_rounds(
    network: &SourceNetwork,
    rounds: &Rounds<'_>,
    observe: impl FnMut(u32),
) -> Result<Outcome> {
    let Rounds { net, options, rows, .. } = rounds;
    let is_seeded = matches!(network.weights, InitialWeights::Seed(_));
    // Weights and scores, and what the scores are computed from: gradients, and a product of them.
    let vectors = match options.method {
        Method::Magnitude | Method::Random | Method::Erk => 2,
        Method::Synflow | Method::Snip | Method::Ntk | Method::Sketch => 3,
        Method::Grasp => 4,
        // Weights in training, two moments, and the gradient.
        Method::Imp => 6,
    };
    let bytes = 4 * vectors * net.weights() as u64;
    let help =
        "choose --method synflow without --exact, which takes weights from a seed one by one";
    room_for("the weights and their scores", bytes, help)?;
    let mut layers = network.dense()?;
    if let (InitialWeights::Seed(initial), Method::Synflow) = (&network.weights, options.method) {
        flow_sizes(net, *initial, &mut layers.weights);
    }
    let Rounded { index, rounds } = rounds.run(&mut layers, observe)?;
    let rows = rows.filter(|_| layers.has_biases()).map_or(0, |rows| 4 * rows.bytes() as u64);
    Ok(Outcome {
        index,
        rounds,
        schedule: options.schedule.unwrap_or_default(),
        memoryless: false,
        regenerated: if is_seeded { net.weights() as u64 } else { 0 },
        state_bytes: bytes + BINS_BYTES + rows,
    })
}

/// Sets weights from a seed to the sizes that core takes for their flow.
fn flow_sizes(net: &Mlp<'_>, initial: Initial, weights: &mut [f32]) {
    for layer in net.layers() {
        let own = initial.layer(&layer);
        let rows = weights[layer.weights()].chunks_exact_mut(layer.inputs);
        (0..).zip(rows).for_each(|(row, out)| own.sizes(row, 0, out));
    }
}

#[cfg(test)]
mod tests {
    use tamis::network::mask::initial::Law;

    use super::*;
    use crate::train::Budget;

    fn network(law: Law) -> SourceNetwork {
        SourceNetwork::from_seed(&[60, 40, 20, 5], Initial { seed: 3, law }).unwrap()
    }

    fn found(network: &SourceNetwork, options: &MaskOptions) -> ReportedMask {
        find(network, options, None, &Stop::new(), |_| ()).unwrap()
    }

    #[test]
    fn chance_takes_no_notice_of_weights() {
        let seeded = network(Law::HeNormal);
        let weights = InitialWeights::Dense(seeded.dense().unwrap());
        let dense = SourceNetwork { weights, ..seeded.clone() };
        for method in [Method::Random, Method::Erk] {
            let options = MaskOptions::new(method, Budget::nnz(300));
            let masks: Vec<_> = (0..10)
                .map(|seed| {
                    let options = MaskOptions { seed, ..options };
                    let exact = MaskOptions { exact: true, ..options };
                    let mask = found(&dense, &options).mask;
                    assert_eq!(mask, found(&seeded, &options).mask);
                    assert_eq!(mask, found(&seeded, &exact).mask);
                    mask
                })
                .collect();
            for (at, mask) in masks.iter().enumerate() {
                assert!(!masks[..at].contains(mask), "{method:?}");
            }
            // The first weights of every layer are no more likely than others.
            let last = |mask: &Mask| mask.index().iter().filter(|&&at| at < 2400).max().copied();
            assert!(masks.iter().all(|mask| last(mask) > Some(2000)));
        }
    }

    #[test]
    fn exact_sign_rounds_mostly_match_memoryless_synflow() {
        let (seeded, count) = (network(Law::Signs), 700);
        let options = MaskOptions::new(Method::Synflow, Budget::nnz(count));
        let own = found(&seeded, &options);
        let exact = found(&seeded, &MaskOptions { exact: true, ..options });
        assert!(own.report.memoryless && !exact.report.memoryless);
        let exact = exact.mask;
        let shared = own.mask.index().iter().filter(|at| exact.index().contains(at)).count();
        assert!(4 * shared >= 3 * count, "{shared}");
    }

    #[test]
    fn rounds_by_layer_keep_what_has_scores() {
        let options = MaskOptions {
            scope: Some(Scope::Layer),
            ..MaskOptions::new(Method::Synflow, Budget::density(0.05))
        };
        let report = found(&network(Law::HeNormal), &options).report;
        let kept: Vec<usize> = report.layers.iter().map(|layer| layer.kept).collect();
        assert_eq!((kept, report.rounds), (vec![120, 40, 5], 100));
    }
}
