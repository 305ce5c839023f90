//! A small picture, drawn here, from places to brightness: about as many weights as pixels that are
//! not dark, and more inputs than rows. The search covers pixels that no neuron is open on; it ends
//! exactly, and goes on from checkpoints.

use std::ops::ControlFlow::Continue;
use tamis::base::budget::Recovery;
use tamis::base::dims::Dims;
use tamis::learn::lm::{self, Checkpoint, Goal, Info, Params, Progress, State};
use tamis::learn::start::{Start, continue_if};
use tamis::network::gates::Signs;
use tamis::network::net::Network;
use tamis::network::weights::Weights;
use tamis::operator::sensing::Sensing;
use tamis_host::data::Matrix;
use tamis_host::data::image::{Fourier, Picture};
use tamis_host::operator::{Blocked, Layout};

const SIDE: usize = 12;
const DIMS: Dims = Dims::new(SIDE * SIDE, 240, 8, 70);
const SLOTS: usize = lm::slots(DIMS.hidden, Signs::Positive);

/// A shaded disc: 39 of 144 pixels are not dark.
fn disc(seed: u64) -> (Matrix, Vec<f32>) {
    let shade = |i: usize| {
        let (down, across) = ((i / SIDE) as f64 - 5.2, (i % SIDE) as f64 - 6.1);
        (255.0 * (1.0 - (down * down + across * across) / 12.0)).max(0.0) as u8
    };
    let picture = Picture {
        rows: SIDE,
        cols: SIDE,
        channels: 1,
        values: (0..SIDE * SIDE).map(shade).collect(),
    };
    let fourier = Fourier { features: DIMS.inputs, deviation: 2.0, channel_deviation: 0.0, seed };
    picture.samples(&fourier).unwrap()
}

fn operator(data: Matrix) -> Blocked {
    let room = Recovery::new(DIMS, 1, 0, false).room();
    Blocked::new(data, SLOTS, room, Layout::new(SLOTS, DIMS.inputs)).unwrap()
}

fn memory(sensing: &Blocked) -> Vec<u32> {
    let budget = Recovery::new(DIMS, sensing.panel(), sensing.scratch(DIMS.samples), false);
    assert!(budget.is_wide());
    vec![0; budget.words()]
}

type Side = (Vec<u32>, Vec<f32>);

fn side(w: Weights<'_>) -> Side {
    (w.index().to_vec(), w.value().to_vec())
}

/// A checkpoint in memory of its own.
type Kept = (State, [Side; 3]);

fn search(
    (data, labels): &(Matrix, Vec<f32>),
    params: &Params,
    from: Option<&Kept>,
    mut observe: impl FnMut(&Progress<'_>) -> bool,
) -> (Side, Info) {
    let mut sensing = operator(data.clone());
    let mut memory = memory(&sensing);
    let from = from.map(|(state, nets)| {
        let [net, best, result] = nets.each_ref().map(|(index, value)| {
            Network::signed(Weights::new(DIMS.inputs, SLOTS, index, value).unwrap(), params.signs)
        });
        Checkpoint { state: *state, net, best, result }
    });
    let start = from.as_ref().map_or(Start::Zero, Start::Checkpoint);
    let observe = |progress: &Progress<'_>| continue_if(observe(progress));
    let goal = Goal::one_output(DIMS);
    let found = lm::run(&mut sensing, labels, goal, start, params, &mut memory, observe).unwrap();
    (side(found.network.w()), found.info)
}

#[test]
fn a_picture_is_fitted_exactly() {
    let found: Vec<Info> = (0..3)
        .map(|seed| {
            search(&disc(seed), &Params { seed, steps: 400, ..Params::DEFAULT }, None, |_| true).1
        })
        .collect();
    let exact = found.iter().filter(|info| info.exact).count();
    assert!(exact >= 2, "{exact} of 3: {found:?}");
}

#[test]
fn a_search_with_a_cover_resumes_bit_identically() {
    let picture = disc(1);
    let params = Params { seed: 1, steps: 40, ..Params::DEFAULT };
    let whole = search(&picture, &params, None, |_| true);
    for stop in [2, 9, 20] {
        let mut kept: Option<Kept> = None;
        search(&picture, &params, None, |progress| {
            if let Some(at) = &progress.checkpoint {
                kept = Some((at.state, [at.net, at.best, at.result].map(|net| side(net.w()))));
            }
            progress.step < stop
        });
        let resumed = search(&picture, &params, kept.as_ref(), |_| true);
        assert_eq!(resumed, whole, "after {stop}");
    }
}

/// Planted networks on fewer rows than inputs, where the same search needs new neurons: a cover
/// alone gets stuck.
#[test]
fn planted_networks_are_recovered_where_n_below_d() {
    for (dims, seeds) in [
        (Dims::new(60, 100, 2, 6), 0..4),
        (Dims::new(90, 100, 3, 9), 0..4),
        (Dims::new(100, 120, 4, 16), 0..5),
    ] {
        for seed in seeds {
            let made = tamis_host::data::planted::network(dims, Signs::Positive, seed).unwrap();
            let slots = lm::slots(dims.hidden, Signs::Positive);
            let budget = Recovery::new(dims, slots, dims.samples + dims.inputs, false);
            let layout = Layout::new(slots, dims.inputs);
            let mut sensing = Blocked::new(made.data, slots, budget.room(), layout).unwrap();
            let mut memory =
                vec![
                    0;
                    Recovery::new(dims, sensing.panel(), sensing.scratch(dims.samples), false)
                        .words()
                ];
            let params = Params { seed, ..Params::DEFAULT };
            let (goal, start) = (Goal::one_output(dims), Start::Zero);
            let found =
                lm::run(&mut sensing, &made.labels, goal, start, &params, &mut memory, |_| {
                    Continue(())
                });
            let lm::Trained { network, info } = found.unwrap();
            assert!(info.exact && network.nnz() <= dims.nnz, "{dims:?} seed {seed}: {info:?}");
        }
    }
}
