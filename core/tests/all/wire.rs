//! Random models: what is written reads back, predicts as a dense loop does, and encodes to the
//! same bytes.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by it"
)]

use proptest::prelude::*;
use tamis::Error;
use tamis::infer::model::{Activation, Csr, Layer, Model, Sum};
use tamis::network::gates::Signs;
use tamis::network::net::{Network, Shape};
use tamis::network::weights::Weights;
use tamis::store::wire::{OwnedModel, Task, View, encode, max_len, trained_len};

const BYTES: usize = 16 << 10;

/// A dense matrix, row by row, that is mostly zero.
#[derive(Debug, Clone)]
struct Dense {
    inputs: usize,
    relu: bool,
    weights: Vec<f32>,
    biases: Vec<f32>,
}

impl Dense {
    fn outputs(&self) -> usize {
        self.weights.len() / self.inputs
    }

    /// Every product, zeros too, in the order of the columns.
    fn apply(&self, x: &[f32]) -> Vec<f32> {
        let row = |(i, w): (usize, &[f32])| {
            let bias = self.biases.get(i).copied().unwrap_or(0.0);
            w.iter().zip(x).fold(bias, |sum, (w, x)| sum + w * x)
        };
        let rows = self.weights.chunks(self.inputs).enumerate().map(row);
        rows.map(|z| if self.relu && z <= 0.0 { 0.0 } else { z }).collect()
    }

    fn sparse(&self) -> Sparse {
        let mut sparse = Sparse::default();
        for row in self.weights.chunks(self.inputs) {
            let entries = row.iter().enumerate().filter(|(_, value)| **value != 0.0);
            let before = sparse.values.len();
            sparse.columns.extend(entries.clone().map(|(column, _)| column as u16));
            sparse.values.extend(entries.map(|(_, value)| *value));
            sparse.counts.push((sparse.values.len() - before) as u16);
        }
        sparse.biases.clone_from(&self.biases);
        sparse
    }
}

#[derive(Default)]
struct Sparse {
    counts: Vec<u16>,
    columns: Vec<u16>,
    values: Vec<f32>,
    biases: Vec<f32>,
}

impl Sparse {
    fn layer(&self, inputs: usize, relu: bool) -> Layer<'_> {
        let activation = if relu { Activation::Relu } else { Activation::Identity };
        let csr = Csr::new(inputs, &self.counts, &self.columns, &self.values, activation).unwrap();
        Layer::Csr(csr.with_biases(&self.biases).unwrap())
    }
}

fn weight() -> impl Strategy<Value = f32> {
    prop_oneof![3 => Just(0.0), 2 => -4.0_f32..4.0, 1 => -1e-38_f32..1e-38]
}

fn dense(inputs: usize, outputs: usize) -> impl Strategy<Value = Dense> {
    let biases = prop_oneof![Just(Vec::new()), prop::collection::vec(weight(), outputs)];
    (prop::collection::vec(weight(), inputs * outputs), biases, any::<bool>())
        .prop_map(move |(weights, biases, relu)| Dense { inputs, relu, weights, biases })
}

/// One to eight layers, and a row for the first.
fn chain() -> impl Strategy<Value = (Vec<Dense>, Vec<f32>)> {
    prop::collection::vec(1_usize..12, 2..=9).prop_flat_map(|widths| {
        let layers: Vec<_> = widths.windows(2).map(|pair| dense(pair[0], pair[1])).collect();
        (layers, prop::collection::vec(-300.0_f32..300.0, widths[0]))
    })
}

/// A hidden layer, its signs, and a row.
fn shallow() -> impl Strategy<Value = (Dense, Vec<bool>, Vec<f32>)> {
    (1_usize..40, 1_usize..70).prop_flat_map(|(inputs, hidden)| {
        let hidden_layer = dense(inputs, hidden).prop_map(|layer| Dense {
            relu: true,
            biases: Vec::new(),
            ..layer
        });
        let signs = prop::collection::vec(any::<bool>(), hidden);
        (hidden_layer, signs, prop::collection::vec(-300.0_f32..300.0, inputs))
    })
}

fn task() -> impl Strategy<Value = Option<Task>> {
    prop_oneof![
        Just(None),
        Just(Some(Task::Regression)),
        (-1e9_f32..1e9).prop_map(|threshold| Some(Task::Binary { threshold })),
    ]
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

fn predict(model: &Model<'_>, x: &[f32]) -> Vec<f32> {
    let mut scratch = vec![f32::NAN; model.scratch_len()];
    let mut out = vec![f32::NAN; model.outputs()];
    model.predict(x, &mut scratch, &mut out).unwrap();
    out
}

/// What `view` encodes to, after it was read back and found to be the same.
fn round_trip(view: &View<'_>) -> OwnedModel<BYTES> {
    let mut bytes = vec![0xAA; view.encoded_len()];
    assert_eq!(view.encode(&mut bytes), Ok(bytes.len()));
    let owned = OwnedModel::from_bytes(&bytes).unwrap();
    assert_eq!(&owned.view().unwrap(), view);
    owned
}

proptest! {
    #[test]
    fn chains_predict_what_the_dense_loop_does((layers, x) in chain()) {
        let sparse: Vec<_> = layers.iter().map(Dense::sparse).collect();
        let chained: Vec<_> =
            sparse.iter().zip(&layers).map(|(sparse, dense)| sparse.layer(dense.inputs, dense.relu)).collect();
        let owned = round_trip(&View::new(Model::new(&chained).unwrap()));
        let expected = layers.iter().fold(x.clone(), |x, layer| layer.apply(&x));
        prop_assert_eq!(bits(&predict(owned.view().unwrap().model(), &x)), bits(&expected));
    }

    #[test]
    fn trained_layers_predict_what_the_dense_loop_does((layer, negative, x) in shallow(), task in task()) {
        let entries: Vec<_> = layer.weights.iter().enumerate().filter(|(_, value)| **value != 0.0).collect();
        let index: Vec<u32> = entries.iter().map(|(index, _)| *index as u32).collect();
        let value: Vec<f32> = entries.iter().map(|(_, value)| **value).collect();
        let signs = if negative[0] { Signs::Balanced } else { Signs::Positive };
        let minus = |i: usize| signs.sign(i) < 0.0;
        let fused: Vec<f32> =
            index.iter().zip(&value).map(|(&j, v)| signs.sign(j as usize / layer.inputs) * v).collect();
        let trained = Weights::new(layer.inputs, layer.outputs(), &index, &fused).unwrap();
        let trained = Network::signed(trained, signs);
        let owned = OwnedModel::<BYTES>::from_trained(trained, layer.outputs(), task).unwrap();
        prop_assert_eq!(trained_len(trained, task), Ok(owned.as_bytes().len()));
        prop_assert!(owned.as_bytes().len() <= max_len(layer.outputs(), index.len()));

        let view = owned.view().unwrap();
        prop_assert_eq!(view.task(), task);
        let again = round_trip(&view);
        prop_assert_eq!(again.as_bytes(), owned.as_bytes());
        let Some(Layer::Csr(hidden)) = view.model().layers().first() else { panic!("no hidden layer") };
        prop_assert!(hidden.counts().iter().all(|&count| count > 0));
        prop_assert_eq!(hidden.requested(), layer.outputs());

        let signed = layer.apply(&x).into_iter().enumerate().map(|(i, h)| if minus(i) { -h } else { h });
        let expected = signed.fold(0.0_f32, |f, h| f + h);
        prop_assert_eq!(predict(view.model(), &x)[0].to_bits(), expected.to_bits());
    }

    #[test]
    fn damaged_bytes_are_refused((layer, negative, _) in shallow(), task in task(), at: prop::sample::Index, flip in 1_u8..) {
        let sparse = layer.sparse();
        let mut signs = vec![0_u32; layer.outputs().div_ceil(32)];
        for (i, &minus) in negative.iter().enumerate() {
            signs[i / 32] |= u32::from(minus) << (i % 32);
        }
        let sum = Layer::Sum(Sum::new(layer.outputs(), &signs).unwrap());
        let model = Model::new(&[sparse.layer(layer.inputs, true), sum]).unwrap();
        let view = View::new(model);
        let view = if let Some(task) = task { view.with_task(task).unwrap() } else { view };
        let mut bytes = round_trip(&view).as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        prop_assert!(OwnedModel::<BYTES>::from_bytes(&bytes).is_err());
        prop_assert!(OwnedModel::<BYTES>::from_bytes(&bytes[..at]).is_err());
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = OwnedModel::<256>::from_bytes(&bytes);
    }
}

#[test]
fn what_the_trainer_may_not_hold_is_named() {
    fn positive(w: Weights<'_>) -> Network<'_> {
        Network::signed(w, Signs::Positive)
    }
    let fine = positive(Weights::new(4, 2, &[1, 6], &[0.5, 2.0]).unwrap());
    assert_eq!(encode(fine, 2, None, &mut [0; 83]), Err(Error::Budget { needed: 84, got: 83 }));
    assert_eq!(encode(fine, 2, None, &mut [0; 200]), Ok(84));
    let error = |weights: Weights<'_>| {
        encode(positive(weights), weights.hidden(), None, &mut [0; 200]).unwrap_err().to_string()
    };
    let wide = Weights::new(65_537, 2, &[1, 6], &[0.5, 2.0]).unwrap();
    assert_eq!(error(wide), "inputs of a layer: expected 1 to 65536, got 65537");
    assert_eq!(error(Weights::empty(0, 2)), "inputs of a layer: expected 1 to 65536, got 0");
    let bad = Weights::new(4, 2, &[1, 6], &[1.0, f32::NAN]).unwrap();
    assert_eq!(error(bad), "weights: expected finite numbers, position 1 is not");
    let two = encode(fine, 1, None, &mut [0; 200]).unwrap_err().to_string();
    assert_eq!(two, "neurons asked for: expected 2 to 4294967295, got 1");
}

#[test]
fn neuron_with_every_column_overflows_its_count() {
    let index: Vec<u32> = (0..65_536).collect();
    let value = vec![-1.0; 65_536];
    let trained =
        Network::signed(Weights::new(65_536, 2, &index, &value).unwrap(), Signs::Positive);
    let many = Error::Range { what: "weights of one neuron", min: 0, max: 65_535, got: 65_536 };
    assert_eq!(trained_len(trained, None), Err(many));
    // The second neuron of two, which is negative.
    let second: Vec<u32> = (65_537..131_072).collect();
    let most =
        Network::signed(Weights::new(65_536, 2, &second, &value[1..]).unwrap(), Signs::Balanced);
    let mut words = vec![0_u32; trained_len(most, None).unwrap() / 4];
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    encode(most, 2, None, bytes).unwrap();
    assert_eq!(predict(View::parse(bytes).unwrap().model(), &vec![1.0; 65_536]), [-65_535.0]);
}

#[test]
fn a_model_without_weights_predicts_zero() {
    let owned = OwnedModel::<{ max_len(3, 0) }>::from_trained(
        Network::empty(Shape::signed(5, 3, Signs::Positive)),
        3,
        None,
    )
    .unwrap();
    assert_eq!(predict(owned.view().unwrap().model(), &[1.0; 5]), [0.0]);
}

#[test]
fn the_seeds_of_the_fuzzer_are_models() {
    let seeds = [
        tamis::include_model!("../../../fuzz/seeds/model/golden.tamis"),
        tamis::include_model!("../../../fuzz/seeds/model/task.tamis"),
        tamis::include_model!("../../../fuzz/seeds/model/classes.tamis"),
        tamis::include_model!("../../../fuzz/seeds/model/deep.tamis"),
        tamis::include_model!("../../../fuzz/seeds/model/wide.tamis"),
        tamis::include_model!("../../../fuzz/seeds/model/extra.tamis"),
        tamis::include_model!("../../../fuzz/seeds/model/windows.tamis"),
    ];
    for seed in seeds {
        let view = View::parse(seed).unwrap();
        let mut again = vec![0; view.encoded_len()];
        view.encode(&mut again).unwrap();
        assert_eq!(again, seed);
    }
}
