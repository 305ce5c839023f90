//! Estimates of layers and networks of any size: never less for more weights, and never an overflow.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by it"
)]

use std::collections::BTreeSet;

use proptest::prelude::*;
use tamis::estimate::{Estimate, float_layers, integer_layers};
use tamis::model::{self, Activation, Sum};
use tamis::price::{Around, Core, Kernel, Numbers, PER_INSTRUCTION, Shape, Way, Work};
use tamis::quantised::{Csr, Encoding, Layer, Model, Scales, Weights};
use tamis::wire::{Choice, QuantisedView, View};

/// Rows and columns that have weights.
type Places = BTreeSet<(usize, u16)>;

/// The shape of the layer that has these weights.
fn shape(inputs: usize, outputs: usize, weights: &Places) -> Shape {
    let mut shape = Shape::new(inputs, outputs);
    for &(row, column) in weights {
        shape.add(row, column);
    }
    shape.used = weights.iter().map(|(_, column)| column).collect::<BTreeSet<_>>().len();
    shape
}

/// Inputs, outputs, weights, and one more.
fn layers() -> impl Strategy<Value = (usize, usize, Places, (usize, u16))> {
    (1_usize..1000, 1_usize..20).prop_flat_map(|(inputs, outputs)| {
        let weight = move || (0..outputs, 0..inputs as u16);
        (Just(inputs), Just(outputs), prop::collection::btree_set(weight(), 0..300), weight())
    })
}

proptest! {
    #[test]
    fn a_further_weight_never_takes_less((inputs, outputs, mut weights, more) in layers()) {
        let before = shape(inputs, outputs, &weights);
        weights.insert(more);
        let after = shape(inputs, outputs, &weights);
        for core in Core::ALL {
            for kernel in Kernel::all() {
                let [a, b] = [before, after].map(|shape| shape.work(kernel).price(core, kernel));
                prop_assert!(a <= b, "{core:?} {kernel:?}: {a} {b}");
            }
        }
    }

    #[test]
    fn no_size_overflows(
        sizes in prop::collection::vec((any::<usize>(), any::<usize>()), 0..9),
        counts in any::<[u64; Work::COUNT]>(),
        around in any::<[u64; Around::COUNT]>(),
        fields in any::<[usize; 6]>(),
    ) {
        let mut any = Shape::new(fields[0], fields[1]);
        [any.used, any.nonzeros, any.skips, any.filled] = [fields[2], fields[3], fields[4], fields[5]];
        [any.fours, any.eights] = [fields[4], fields[5]];
        for core in Core::ALL {
            for numbers in [Numbers::Floats, Numbers::Integers] {
                let estimate = Estimate::of_dense(sizes.iter().copied(), numbers, core);
                prop_assert!(estimate.flash_bytes() >= estimate.model_bytes);
                prop_assert!(estimate.ram_bytes() >= estimate.stack_bytes);
                let _ = Around(around).price(core, numbers);
            }
            for kernel in Kernel::all() {
                let _ = any.work(kernel).price(core, kernel);
                let _ = Work(counts).price(core, kernel);
            }
        }
    }

    #[test]
    fn dense_networks_grow_with_every_width(inputs in 1_usize..900, hidden in 1_usize..80, outputs in 1_usize..20) {
        let of = |inputs, hidden, numbers, core| {
            Estimate::of_dense([(inputs, hidden), (hidden, outputs)], numbers, core)
        };
        for core in Core::ALL {
            for numbers in [Numbers::Floats, Numbers::Integers] {
                let (small, wide, more) = (
                    of(inputs, hidden, numbers, core),
                    of(inputs + 4, hidden, numbers, core),
                    of(inputs, hidden + 4, numbers, core),
                );
                for larger in [wide, more] {
                    prop_assert!(small.instructions < larger.instructions && small.macs < larger.macs);
                    prop_assert!(small.flash_bytes() <= larger.flash_bytes());
                    prop_assert!(small.ram_bytes() <= larger.ram_bytes());
                }
            }
        }
    }
}

#[test]
fn a_model_is_its_layers_and_the_prediction_itself() {
    let csr = model::Csr::new(3, &[2, 1], &[0, 2, 1], &[1.0, -0.5, 2.0], Activation::Relu).unwrap();
    let layers = [model::Layer::Csr(csr), model::Layer::Sum(Sum::new(2, &[0b10]).unwrap())];
    let view = View::new(model::Model::new(&layers).unwrap());
    let weights = Weights::Csr(Csr::new(3, &[2, 1], &[0, 2, 1], &[100, -50, 7]).unwrap());
    let layer = Layer::new(weights, &[30 << 24 | 1 << 23], &[], Activation::Relu).unwrap();
    let sum = Some(Sum::new(2, &[0]).unwrap());
    let integers = Model::new(&[layer], sum, Scales::new(1.0, 1.0, 0, 0).unwrap()).unwrap();
    let integers = QuantisedView::new(integers);
    for core in Core::ALL {
        let whole = Estimate::of_floats(&view, core);
        let frame = Around::PREDICTION.price(core, Numbers::Floats) / PER_INSTRUCTION;
        let sum = float_layers(view.model(), core).sum::<u64>() + frame;
        assert!(whole.instructions.abs_diff(sum) <= 2, "{core:?}");
        assert_eq!((whole.model_bytes, whole.row_bytes, whole.scratch_bytes), (view.encoded_len(), 12, 0));

        let whole = Estimate::of_integers(&integers, core);
        let layers: Vec<u64> = integer_layers(integers.model(), core).collect();
        let frame = Around::PREDICTION.price(core, Numbers::Integers) / PER_INSTRUCTION;
        assert!(layers.len() == 2 && whole.instructions.abs_diff(layers.iter().sum::<u64>() + frame) <= 3);
        assert_eq!(
            (whole.model_bytes, whole.row_bytes, whole.scratch_bytes, whole.macs),
            (integers.encoded_len(Choice::Keep), 3, 12, 5)
        );
    }
}

/// The encoding that `Choice::Fastest` writes has the least price on a Cortex-M4F of those that can hold the layer.
#[test]
fn the_fastest_encoding_is_that_of_the_least_price() {
    for (inputs, outputs, every) in [(784, 32, 20), (64, 10, 3), (300, 4, 1), (40, 40, 7), (5, 3, 2)] {
        let columns: Vec<u16> = (0..inputs as u16).filter(|column| column % every == 0).collect();
        let (counts, n) = (vec![columns.len() as u16; outputs], columns.len() * outputs);
        let all = columns.repeat(outputs);
        let values = vec![3; n];
        let weights = Weights::Csr(Csr::new(inputs, &counts, &all, &values).unwrap());
        let layer = Layer::new(weights, &[], &[], Activation::Identity).unwrap();
        let view =
            QuantisedView::new(Model::new(&[layer], None, Scales::new(1.0, 1.0, 0, 0).unwrap()).unwrap());
        let read = |choice| {
            let mut bytes = Box::new(tamis::wire::Aligned([0; 1 << 16]));
            let len = view.encode(choice, &mut bytes.0).unwrap();
            let view = QuantisedView::parse(&bytes.0[..len]).unwrap();
            let encoding = view.model().layers()[0].weights().encoding();
            (encoding, Estimate::of_integers(&view, Core::CortexM4F).instructions)
        };
        let (_, fastest) = read(Choice::Fastest);
        for encoding in Encoding::ALL {
            let (held, instructions) = read(Choice::Prefer(encoding));
            assert!(held != encoding || fastest <= instructions, "{inputs}-{outputs}: {encoding:?}");
        }
    }
}

#[test]
fn every_way_of_deploying_a_model_has_its_own_flash_and_ram() {
    let csr = model::Csr::new(3, &[2, 1], &[0, 2, 1], &[1.0, -0.5, 2.0], Activation::Relu).unwrap();
    let layers = [model::Layer::Csr(csr), model::Layer::Sum(Sum::new(2, &[0b10]).unwrap())];
    let floats = View::new(model::Model::new(&layers).unwrap());
    let factor = [30 << 24 | 1 << 23];
    let layer = |inputs, activation| {
        let weights = Weights::Csr(Csr::new(inputs, &[2, 1], &[0, 1, 1], &[100, -50, 7]).unwrap());
        Layer::new(weights, if activation == Activation::Relu { &factor } else { &[] }, &[], activation)
            .unwrap()
    };
    let two = [layer(3, Activation::Relu), layer(2, Activation::Identity)];
    let scales = Scales::new(1.0, 1.0, 0, 0).unwrap();
    let integers = QuantisedView::new(Model::new(&two, None, scales).unwrap());
    for core in Core::ALL {
        let floats = Estimate::of_floats(&floats, core);
        assert_eq!(floats.memory(Way::Straight), None, "code without tables is of integers");
        let integers = Estimate::of_integers(&integers, core);
        for estimate in [floats, integers] {
            let flash = |way| estimate.memory(way).map_or(0, |memory| memory.flash_bytes());
            assert_eq!((flash(Way::File), flash(Way::Embedded) > 0), (estimate.flash_bytes(), true));
            assert!(flash(Way::Embedded) < flash(Way::File) && flash(Way::C) < flash(Way::File), "{core:?}");
        }
        let straight = integers.memory(Way::Straight).unwrap();
        assert_eq!((straight.model_bytes, straight.scratch_bytes, straight.output_bytes), (0, 2, 8));
    }
}
