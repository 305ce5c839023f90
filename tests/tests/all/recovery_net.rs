//! The recovery recipe for several outputs finds planted networks on the reference operator and on
//! the host's.

use std::ops::ControlFlow::Continue;
use tamis::base::budget::{Recovery, gated_words};
use tamis::base::dims::Dims;
use tamis::data::samples::Rows;
use tamis::learn::lm::{self, Goal, Info, Params};
use tamis::learn::start::Start;
use tamis::network::gates::Signs;
use tamis::network::net::Network;
use tamis::network::weights::Block;
use tamis::operator::factored::Factored;
use tamis::operator::gated::Gated;
use tamis::operator::machine::Host;
use tamis_host::data::planted::{self, PlantedNet};
use tamis_host::data::{Matrix, Values};
use tamis_host::data::{Problem, Task};
use tamis_host::operator::{Blocked, Layout};
use tamis_host::train::Memory;
use tamis_host::{Budget, Options};

/// Inputs and outputs of every neuron that has both, in order, with the products of its weights in
/// thousandths: what does not depend on how its scale is split.
type Neurons = Vec<(Vec<usize>, Vec<usize>, Vec<i32>)>;

fn neurons(net: Network<'_>) -> Neurons {
    let places = |block: Block<'_>| block.entries().map(|(j, _)| j).collect::<Vec<_>>();
    let neuron = |w: Block<'_>| {
        let wt = net.wt().block(w.neuron());
        let products = w
            .values()
            .iter()
            .flat_map(|w| wt.values().iter().map(move |v| (1000.0 * w * v).round()));
        (places(w), places(wt), products.map(|x| x as i32).collect())
    };
    let mut all: Neurons =
        net.w().blocks().map(neuron).filter(|(_, wt, _)| !wt.is_empty()).collect();
    all.sort();
    all
}

/// Entries of both sides, neurons, and what was done.
type Found = (Vec<(u32, f32)>, Neurons, Info);

fn recover<S: Factored<Machine = Host>>(
    sensing: &mut S,
    made: &PlantedNet,
    nnz: usize,
    params: &Params,
) -> Found {
    let dims = Dims::new(made.data.rows, made.data.cols, made.hidden, nnz);
    let scratch = sensing.net_scratch(dims.samples).max(sensing.scratch(dims.samples));
    let mut memory =
        vec![0; Recovery::factored(dims, made.outputs, sensing.panel(), scratch).words()];
    let goal = Goal::several_outputs(dims);
    let found =
        lm::run(sensing, &made.labels, goal, Start::Zero, params, &mut memory, |_| Continue(()));
    let lm::Trained { network: net, info } = found.unwrap();
    let entries = [net.w(), net.wt()]
        .map(|side| side.index().iter().copied().zip(side.value().iter().copied()));
    (entries.into_iter().flatten().collect(), neurons(net), info)
}

fn blocked(data: &Matrix, hidden: usize, nnz: usize, outputs: usize, tile: usize) -> Blocked {
    let slots = lm::slots(hidden, Signs::Positive);
    let room = Recovery::factored(Dims::new(1, 1, hidden, nnz), outputs, 1, 0).room();
    let layout = Layout { tile, ..Layout::new(slots, data.cols) };
    Blocked::new(data.clone(), slots, room, layout).unwrap().with_outputs(outputs)
}

#[test]
fn reference_and_host_operators_recover_planted_networks() {
    for (outputs, nnz) in [(1, 10), (3, 20), (10, 24)] {
        for seed in 0..3 {
            let made = planted::factored(Dims::new(1500, 20, 5, nnz), outputs, seed).unwrap();
            let expected = neurons(made.net().unwrap());
            // Planted weights on one side only give nothing: room for them is left out, so that no
            // weight is idle.
            let nnz = expected.iter().map(|(w, wt, _)| w.len() + wt.len()).sum();
            let params = Params { seed, ..Params::DEFAULT };
            let Values::F32(values) = &made.data.values else { panic!("floats") };
            let slots = lm::slots(5, Signs::Positive);
            let mut memory = vec![0.0; gated_words(20, slots)];
            let mut gated =
                Gated::new(Rows::new(values, 20).unwrap(), slots, 1, &mut memory).unwrap();
            let reference = recover(&mut gated, &made, nnz, &params);
            let host = recover(&mut blocked(&made.data, 5, nnz, outputs, 64), &made, nnz, &params);
            for (name, (_, found, info)) in [("reference", reference), ("host", host)] {
                assert!(info.exact, "{name}, {outputs} outputs, seed {seed}: {info:?}");
                if outputs == 1 {
                    // Neurons of one input may add up to fewer.
                    continue;
                }
                let close = |a: &[i32], b: &[i32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1);
                let same = found.len() == expected.len()
                    && found
                        .iter()
                        .zip(&expected)
                        .all(|(a, b)| a.0 == b.0 && a.1 == b.1 && close(&a.2, &b.2));
                assert!(same, "{name}, {outputs} outputs, seed {seed}: {found:?} for {expected:?}");
            }
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let made = planted::factored(Dims::new(6000, 20, 5, 20), 4, 5).unwrap();
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut sensing = blocked(&made.data, 5, 20, 4, 512);
        pool.install(|| recover(&mut sensing, &made, 20, &Params::DEFAULT))
    };
    let one = with(1);
    assert!(one.2.exact);
    assert_eq!(with(3), one);
}

#[test]
fn every_accepted_memory_budget_gives_the_same_network() {
    let made = planted::factored(Dims::new(3000, 20, 5, 20), 4, 6).unwrap();
    let go = |memory| {
        let problem = Problem {
            data: made.data.clone(),
            labels: made.labels.clone(),
            task: Task::Regression,
        };
        let options = Options { hidden: vec![5], memory, ..Options::new(Budget::nnz(20)) };
        tamis_host::train(&problem, options)
    };
    let usual = go(Memory::Auto).unwrap();
    let free = usual.report.total_bytes();
    let refused = go(Memory::Ram(1)).unwrap_err().to_string();
    let least: u64 =
        refused.split("at least ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(least < free && go(Memory::Ram(least - 1)).is_err());
    for ram in [least, (least + free) / 2, free] {
        let outcome = go(Memory::Ram(ram)).unwrap();
        assert!(outcome.report.total_bytes() <= ram, "{ram}: {:?}", outcome.report.plan);
        assert!(outcome.report.search().unwrap().exact);
        assert_eq!(
            (outcome.report.outputs, outcome.report.nnz),
            (4, outcome.network.index.len() + outcome.network.out_index.len())
        );
    }
}
