//! The recovery recipe finds planted networks on the reference operator and on the host's, with
//! every kind of signs.

use tamis::base::budget::{Recovery, gated_words};
use tamis::base::dims::Dims;
use tamis::data::samples::Rows;
use tamis::learn::lm::{self, Goal, Info, Params};
use tamis::learn::start::{Start, continue_if};
use tamis::network::gates::Signs;
use tamis::network::weights::Weights;
use tamis::operator::gated::Gated;
use tamis::operator::sensing::HostSensing;
use tamis_host::data::planted::{self, Planted};
use tamis_host::data::{Matrix, Values};
use tamis_host::operator::{Blocked, Layout};

/// Output sign, inputs and values rounded to thousandths, of every neuron in order.
type Neurons = Vec<(bool, Vec<(usize, i32)>)>;

fn neurons(w: Weights<'_>, signs: Signs) -> Neurons {
    let mut neurons: Neurons = w
        .blocks()
        .map(|block| {
            let entries = block.entries().map(|(j, w)| (j, (1000.0 * w).round() as i32));
            (signs.sign(block.neuron()) > 0.0, entries.collect())
        })
        .collect();
    neurons.sort();
    neurons
}

fn recover<S: HostSensing>(
    sensing: &mut S,
    labels: &[f32],
    (dims, params): (Dims, &Params),
    steps: u32,
) -> (Vec<u32>, Vec<f32>, Info) {
    let scratch = sensing.scratch(dims.samples);
    let budget = Recovery::new(dims, sensing.panel(), scratch, params.signs.linear(0));
    let mut memory = vec![0; budget.words()];
    let goal = Goal::one_output(dims);
    let observe = |progress: &lm::Progress<'_>| continue_if(progress.step < steps);
    let found = lm::run(sensing, labels, goal, Start::Zero, params, &mut memory, observe).unwrap();
    let w = found.network.w();
    (w.index().to_vec(), w.value().to_vec(), found.info)
}

/// A planted network and how it is searched for.
fn problem(dims: Dims, signs: Signs, seed: u64) -> (Planted, Params) {
    // Free signs are those of the search: the labels come from as many neurons of either sign.
    let planted =
        planted::network(dims, if signs.both() { Signs::Balanced } else { signs }, seed).unwrap();
    (planted, Params { signs, seed, ..Params::DEFAULT })
}

fn blocked(data: &Matrix, dims: Dims, signs: Signs) -> Blocked {
    let slots = lm::slots(dims.hidden, signs);
    let room = Recovery::new(dims, 1, 0, signs.linear(0)).room();
    Blocked::new(data.clone(), slots, room, Layout::new(slots, dims.inputs)).unwrap()
}

#[test]
fn reference_and_host_operators_recover_planted_networks() {
    let dims = Dims::new(1500, 20, 5, 15);
    for signs in [Signs::Positive, Signs::Balanced, Signs::Free] {
        for seed in 0..3 {
            let (planted, params) = problem(dims, signs, seed);
            let expected = neurons(planted.weights().unwrap(), planted.signs);
            let Values::F32(values) = &planted.data.values else { panic!("floats") };
            let slots = lm::slots(dims.hidden, signs);
            let mut memory = vec![0.0; gated_words(dims.inputs, slots)];
            let rows = Rows::new(values, dims.inputs).unwrap();
            let mut gated = Gated::new(rows, slots, 1, &mut memory).unwrap();
            let reference = recover(&mut gated, &planted.labels, (dims, &params), u32::MAX);
            let mut blocked = blocked(&planted.data, dims, signs);
            let host = recover(&mut blocked, &planted.labels, (dims, &params), u32::MAX);
            for (name, (index, value, info)) in [("reference", reference), ("host", host)] {
                let w = Weights::new(dims.inputs, slots, &index, &value).unwrap();
                assert!(info.exact, "{name}, {signs:?}, seed {seed}: {info:?}");
                assert_eq!(neurons(w, signs), expected, "{name}, {signs:?}, seed {seed}");
            }
        }
    }
}

/// Gates that the operator held when an earlier run was cut short must not leak into the next one.
#[test]
fn reused_operator_is_bit_identical_to_fresh_one() {
    let dims = Dims::new(1200, 20, 5, 15);
    let (planted, params) = problem(dims, Signs::Free, 4);
    let fresh = recover(
        &mut blocked(&planted.data, dims, Signs::Free),
        &planted.labels,
        (dims, &params),
        u32::MAX,
    );
    let mut used = blocked(&planted.data, dims, Signs::Free);
    let negative: Vec<f32> = planted.labels.iter().map(|y| -y).collect();
    for steps in 0..6 {
        recover(&mut used, &negative, (dims, &params), steps);
        assert_eq!(
            recover(&mut used, &planted.labels, (dims, &params), u32::MAX),
            fresh,
            "after {steps}"
        );
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let dims = Dims::new(6000, 20, 5, 15);
    let (planted, params) = problem(dims, Signs::Balanced, 5);
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut sensing = blocked(&planted.data, dims, Signs::Balanced);
        pool.install(|| recover(&mut sensing, &planted.labels, (dims, &params), u32::MAX))
    };
    let one = with(1);
    assert!(one.2.exact);
    assert_eq!(with(3), one);
}
