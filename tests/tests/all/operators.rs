//! Operators where gates and weights are other than an algorithm would pass them.

use crate::training::{blocked, floats, layout};

use tamis::base::budget::gated_words;
use tamis::base::dims::Dims;
use tamis::data::samples::Rows;
use tamis::network::gates::{Empty, Gates, Signs};
use tamis::network::weights::Weights;
use tamis::operator::gated::Gated;
use tamis::operator::sensing::{HostSensing, Sensing};
use tamis_host::data::planted::{self};

/// The same values at other places are other weights.
#[test]
fn gates_and_weights_sharing_values_are_distinguished() {
    let values = [1.0, -2.0, 0.5, 1.5];
    let made = planted::network(Dims::new(40, 6, 3, 8), Signs::Balanced, 1).unwrap();
    let x = floats(&made);
    let mut memory = vec![0.0; gated_words(6, 3)];
    let mut reference = Gated::new(Rows::new(&x, 6).unwrap(), 3, 1, &mut memory).unwrap();
    let mut fast = blocked(&made, 8, layout(16, 3));
    let w = Weights::new(6, 3, &[0, 4, 7, 8], &values).unwrap();
    let other = Weights::new(6, 3, &[2, 3, 9, 10], &values).unwrap();
    let gates = Gates::of(other, Signs::Positive, Empty::Freeze, 0, 1);
    let (mut expected, mut got) = (vec![0.0; 40], vec![0.0; 40]);
    reference.forward(gates, w, &mut expected).unwrap();
    fast.forward(gates, w, &mut got).unwrap();
    assert_eq!(expected, got);
}

/// Weights of other sizes than the operator's: an error or a result, but no panic.
#[test]
fn weights_of_other_sizes_do_not_panic() {
    let made = planted::network(Dims::new(40, 6, 3, 8), Signs::Balanced, 1).unwrap();
    let x = floats(&made);
    let mut memory = vec![0.0; gated_words(6, 3)];
    let mut reference = Gated::new(Rows::new(&x, 6).unwrap(), 3, 1, &mut memory).unwrap();
    let mut fast = blocked(&made, 8, layout(16, 3));
    for (d, m) in [(7, 3), (5, 3), (6, 4), (100, 1), (1, 100)] {
        let index = [0, (d * m) as u32 / 2, (d * m) as u32 - 1];
        let w = Weights::new(d, m, &index, &[1.0, 2.0, 3.0]).unwrap();
        let gates = Gates::of(w, Signs::Positive, Empty::Open, 0, 1);
        tolerate(&mut reference, gates, w);
        tolerate(&mut fast, gates, w);
    }
}

fn tolerate<S: HostSensing>(sensing: &mut S, gates: Gates<'_>, w: Weights<'_>) {
    let (mut out, mut few, mut scratch) = (vec![0.0; 40], vec![0.0; 3], vec![0.0; 1000]);
    let r = vec![1.0; 40];
    let _ = sensing.forward(gates, w, &mut out);
    let _ = sensing.gradient_at(gates, w.index(), &r, &mut few, &mut scratch);
    let _ = sensing.normal_at(gates, w, &mut few, &mut scratch);
    let gates = sensing.hold(gates, w.index()).unwrap_or(gates);
    let _ = sensing.normal_at(gates, w, &mut few, &mut scratch);
    for block in w.blocks() {
        let _ = sensing.apply(gates, block, &mut out);
    }
    let mut panel = vec![0.0; 6];
    let _ = sensing.gradient(gates, &r, 0..1, &mut panel);
    let _ = sensing.adjoint(gates, 0, &r, &mut panel);
}
