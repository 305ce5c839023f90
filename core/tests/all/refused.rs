//! What public functions refuse: sizes that do not fit, settings that mean nothing, memory that is too short.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by it"
)]

use core::ops::ControlFlow::Continue;

use tamis::Error;
use tamis::base::budget;
use tamis::base::dims::Dims;
use tamis::data::samples::{ByteRows, Rows};
use tamis::infer::model::{Activation, Sum};
use tamis::infer::quantised::{Dense, Layer, Model, Rescale, Scales, Weights as Integers};
use tamis::learn::deep::backprop::{self, Backprop, Batch, RowByRow};
use tamis::learn::deep::{Stack, dynamic, tune};
use tamis::learn::iht::Refine;
use tamis::learn::loss::Labels;
use tamis::learn::masked::{self, Params};
use tamis::learn::start::Start;
use tamis::learn::train::{self, OneOutput, Schedule};
use tamis::network::gates::{Gates, Signs};
use tamis::network::mask::Mlp;
use tamis::network::net::Network;
use tamis::network::weights::Weights;
use tamis::operator::factored::{Factored, GradientMut, provided};
use tamis::operator::gated::Gated;
use tamis::operator::sensing::Sensing;
use tamis::operator::tables::Residual;

const X: [f32; 6] = [2.0, -1.0, 0.5, 1.0, -3.0, 0.25];

/// More entries than indices of 32 bits count, also where a product saturates at as many.
#[test]
fn more_entries_than_indices_count_are_refused() {
    assert!(Dims::new(1, 65_537, 65_535, 1).check().is_err());
    assert!(Dims::new(1, 65_536, 65_535, 1).check().is_ok());
    assert!(Mlp::new(&[65_537, 65_535]).is_err());
    assert!(Mlp::new(&[65_536, 65_535]).is_ok());
}

#[test]
fn a_scratch_too_short_for_a_sum_is_refused() {
    let bytes = Dense::new(3, 2, &[8, 0, 0, 0, 8, 8]).unwrap();
    let factor = [Rescale::near(0.125).unwrap().bits()];
    let layer = Layer::new(Integers::Dense(bytes), &factor, &[], Activation::Relu).unwrap();
    let (layers, sum) = ([layer], Sum::new(2, &[0]).unwrap());
    let model = Model::new(&layers, Some(sum), Scales::new(1.0, 1.0, 0, 0).unwrap()).unwrap();
    let (mut out, mut enough) = ([0], vec![0; model.scratch_len()]);
    model.predict(&[1, 2, 3], &mut enough, &mut out).unwrap();
    assert_eq!(out, [1 + 5]);
    for short in 0..enough.len() {
        let refused = model.predict(&[1, 2, 3], &mut enough[..short], &mut out);
        assert!(matches!(refused, Err(Error::Budget { .. })), "{short}: {refused:?}");
    }
}

/// The reference operator gives what its specification gives, for networks with signs too.
#[test]
fn outputs_of_a_network_with_signs_are_those_of_the_specification() {
    let mut memory = [0.0; budget::gated_words(2, 2)];
    let mut gated = Gated::new(Rows::new(&X, 2).unwrap(), 2, 1, &mut memory).unwrap();
    let w = Weights::new(2, 2, &[0, 3], &[3.0, 2.0]).unwrap();
    let net = Network::signed(w, Signs::Positive);
    let gates = Gates::of(w, Signs::Positive, Default::default(), 0, 0);
    let (mut own, mut wanted) = ([9.0; 3], [7.0; 3]);
    gated.net_forward(gates, net, &mut own, &mut [0.0; 8]).unwrap();
    provided::forward(&mut gated, gates, net, &mut wanted, &mut [0.0; 8]).unwrap();
    assert_eq!((own, wanted), ([6.0, 1.5 + 2.0, 0.5], [6.0, 1.5 + 2.0, 0.5]));
}

#[test]
fn weights_gates_and_supports_of_another_shape_are_refused() {
    let mut memory = [0.0; budget::gated_words(2, 2)];
    let mut gated = Gated::new(Rows::new(&X, 2).unwrap(), 2, 2, &mut memory).unwrap();
    let own = Weights::new(2, 2, &[0, 2], &[1.0; 2]).unwrap();
    let wide = Weights::new(3, 2, &[0, 5], &[1.0; 2]).unwrap();
    let [fits, other] =
        [own, wide].map(|w| Gates::of(w, Signs::Positive, Default::default(), 0, 0));
    let (r, mut out, mut scratch) = ([1.0; 3], [0.0; 4], [0.0; 9]);
    assert!(gated.forward(fits, own, &mut out[..3]).is_ok());
    assert!(gated.forward(fits, wide, &mut out[..3]).is_err());
    assert!(gated.forward(other, own, &mut out[..3]).is_err());
    assert!(gated.apply(fits, wide.block(1), &mut out[..3]).is_err());
    assert!(gated.apply(other, own.block(1), &mut out[..3]).is_err());
    assert!(gated.adjoint(other, 0, &r, &mut out[..2]).is_err());
    assert!(gated.gradient(other, &r, 0..2, &mut out).is_err());
    assert!(gated.column_norms(other, 0..2, &mut out, &mut scratch).is_err());
    for (gates, support, is_fine) in
        [(fits, [0, 3], true), (fits, [0, 4], false), (other, [0, 3], false)]
    {
        let gradient = gated.gradient_at(gates, &support, &r, &mut out[..2], &mut scratch);
        assert_eq!(gradient.is_ok(), is_fine, "{support:?}");
        let diagonal = gated.diagonal_at(gates, &support, &mut out[..2], &mut scratch);
        assert_eq!(diagonal.is_ok(), is_fine, "{support:?}");
    }
    assert!(gated.normal_at(fits, own, &mut out[..2], &mut scratch).is_ok());
    assert!(gated.normal_at(fits, wide, &mut out[..2], &mut scratch).is_err());
    // No outputs at all.
    let net = Network::new(own, Weights::empty(0, 2)).unwrap();
    let room = GradientMut { w: &mut out, wt: &mut [] };
    assert!(
        gated
            .net_gradient(net.gates(0), net, Residual::Each(&[]), 0..2, room, &mut scratch)
            .is_ok()
    );
}

#[test]
fn a_refinement_that_holds_never_or_always_is_refused() {
    for (decrease, is_fine) in
        [(0.9, true), (0.0, true), (2.0, false), (-0.1, false), (f32::NAN, false)]
    {
        let mut memory = [0.0; budget::gated_words(2, 1)];
        let mut gated = Gated::new(Rows::new(&X, 2).unwrap(), 1, 1, &mut memory).unwrap();
        let refine = Refine::Armijo { steps: 2, decrease, halvings: 2 };
        let schedule =
            Schedule { head: OneOutput { refine, ..OneOutput::PAPER }, ..Schedule::PAPER };
        let run = schedule.budget(Dims::new(3, 2, 1, 1), 1, 0);
        let (labels, mut words) = (Labels::values(&[1.0, 0.5, 0.0]), vec![0; run.words() + 64]);
        let done = train::run(
            &mut gated,
            labels,
            1,
            Start::Zero,
            &schedule,
            &mut words,
            &mut |_: &train::Progress<'_>| Continue(()),
        );
        assert_eq!(done.is_ok(), is_fine, "{decrease}: {done:?}");
    }
}

fn network<'a>(neurons: usize, index: &'a mut [u32], value: &'a mut [f32]) -> Stack<'a> {
    let mut stack = Stack::new(2, index, value);
    let places: Vec<u32> = (0..neurons as u32).map(|i| 2 * i + i % 2).collect();
    let w = Weights::new(2, neurons, &places, &[0.5; 9][..neurons]).unwrap();
    stack.push(w, Signs::Positive).unwrap();
    stack.end_sum(&[]).unwrap();
    stack
}

#[test]
fn networks_of_other_widths_than_the_memory_is_for_are_refused() {
    let (mut index, mut value) = ([0; 9], [0.0; 9]);
    let one = network(1, &mut index, &mut value);
    let mut memory = [0; backprop::words(3, 1)];
    let labels = Labels::values(&[1.0, 0.0, 1.0]);
    let mut backprop = RowByRow::new(Rows::new(&X, 2).unwrap(), labels, &one, &mut memory).unwrap();
    let mut gradient = [0.0; 8];
    assert!(backprop.gradient(&one, &Batch::all(3), &mut gradient[..1]).is_ok());
    let (mut index, mut value) = ([0; 9], [0.0; 9]);
    let other = network(8, &mut index, &mut value);
    let refused = backprop.gradient(&other, &Batch::all(3), &mut gradient);
    assert!(matches!(refused, Err(Error::Length { .. })), "{refused:?}");
    assert!(backprop.loss(&other, &Batch::all(3)).is_err());
    // The same neurons, which are the outputs.
    let (mut index, mut value) = ([0; 2], [0.0; 2]);
    let mut memory = [0; backprop::words(4, 1)];
    let two = network(2, &mut index, &mut value);
    let mut backprop = RowByRow::new(Rows::new(&X, 2).unwrap(), labels, &two, &mut memory).unwrap();
    assert!(backprop.loss(&two, &Batch::all(3)).is_ok());
    let (mut index, mut value) = ([0; 2], [0.0; 2]);
    let mut open = Stack::new(2, &mut index, &mut value);
    open.push(two.layers().next().unwrap(), Signs::Positive).unwrap();
    let refused = backprop.loss(&open, &Batch::all(3));
    assert!(matches!(refused, Err(Error::Length { .. })), "{refused:?}");
}

#[test]
fn places_beyond_the_support_are_no_weights_that_stay() {
    for (place, is_fine) in [(1, true), (2, false), (9, false)] {
        let (mut index, mut value) = ([0; 2], [0.0; 2]);
        let mut stack = network(2, &mut index, &mut value);
        let mut memory = [0; backprop::words(4, 1)];
        let labels = Labels::values(&[1.0, 0.0, 1.0]);
        let rows = Rows::new(&X, 2).unwrap();
        let mut backprop = RowByRow::new(rows, labels, &stack, &mut memory).unwrap();
        let params = Params { epochs: 1, fixed: &[place], ..Params::SGD };
        let mut memory = [0; masked::words(2, Params::SGD.optimiser)];
        let done = masked::run(&mut backprop, &mut stack, &params, &mut memory, |_| Continue(()));
        assert_eq!(done.is_ok(), is_fine, "{place}: {done:?}");
        // What stays stays, and nothing else.
        assert_eq!(
            stack.values().iter().filter(|w| **w == 0.5).count(),
            if is_fine { 1 } else { 2 }
        );
    }
}

#[test]
fn a_constant_that_no_weight_hands_on_is_refused() {
    let x = [1.0, 1.0, -2.0, 1.0, 0.5, 1.0];
    // The last neuron hands on the last input, by another weight, or not at all.
    for (index, values, is_fine) in [
        (&[0, 3][..], &[0.5, 1.0][..], true),
        (&[0, 3], &[0.5, 2.0], false),
        (&[0, 2], &[0.5, 1.0], false),
        (&[2, 3], &[0.5, 1.0], false),
        (&[], &[], false),
    ] {
        let (mut places, mut weights) = ([0; 12], [0.0; 12]);
        let mut stack = Stack::new(2, &mut places, &mut weights);
        stack.push(Weights::new(2, 2, index, values).unwrap(), Signs::Positive).unwrap();
        stack.end_weights(Weights::new(1, 2, &[0, 1], &[1.0, 1.0]).unwrap()).unwrap();
        let mut memory = [0; backprop::words(4, 1)];
        let labels = Labels::values(&[1.0, 0.0, 1.0]);
        let rows = Rows::new(&x, 2).unwrap();
        let mut backprop = RowByRow::new(rows, labels, &stack, &mut memory).unwrap();
        let params =
            dynamic::Params { epochs: 1, batch: 3, constant: true, ..dynamic::Params::new(3) };
        let mut memory = vec![0; dynamic::words(params.moments, 12, 4, 1, 8)];
        let done =
            dynamic::run(&mut backprop, &mut stack, &params, &mut memory, None, |_| Continue(()));
        assert_eq!(done.is_ok(), is_fine, "{index:?}: {done:?}");
    }
}

#[test]
fn steps_that_leave_the_floats_are_no_end_by_the_observer() {
    let (mut index, mut value) = ([0; 2], [0.0; 2]);
    let mut stack = network(2, &mut index, &mut value);
    let params = tune::Params { epochs: 5, batch: 3, rate: f32::MAX, seed: 0 };
    let mut memory = [0; tune::words(2, 4, 1)];
    let mut rows = Rows::new(&X, 2).unwrap();
    let labels = Labels::values(&[1.0, 0.0, 1.0]);
    let info = tune::run(&mut rows, labels, &mut stack, &params, &mut memory, |_| Continue(()));
    let info = info.unwrap();
    assert!(info.diverged && !info.stopped && info.epochs == 1, "{info:?}");
    assert_eq!((info.loss, stack.values()), (info.before, &[0.5; 2][..]));
}

#[test]
fn scales_that_are_no_numbers_are_refused() {
    assert!(ByteRows::new(&[1, 2], 2, f32::NAN).is_err());
    let mut memory = [0; tamis::data::samples::Window::<u8>::words(2, 2)];
    let mut window = tamis::data::samples::Window::<u8>::new(&mut memory, 2, 2).unwrap();
    window.push(&[1, 2], 0.0).unwrap();
    assert!(window.rows(0.5).is_ok() && window.rows(f32::NAN).is_err());
}
