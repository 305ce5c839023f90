//! Random models of integers: every encoding predicts what the dense loop does, has the size that
//! it says, and reads back.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by it"
)]

use proptest::prelude::*;
use tamis::infer::model::{Activation, Sum};
use tamis::infer::price::{CORTEX_M4F, Shape, cost};
use tamis::infer::quantised::{Encoding, Layer, Mask, Model, Rescale, Scales, Weights};
use tamis::store::wire::{Aligned, Choice, QuantisedView, Task, View, checksum};
use tamis::{Error, Result};

const BYTES: usize = 1 << 17;

/// A dense matrix with factors and biases.
#[derive(Debug, Clone)]
struct Dense {
    inputs: usize,
    weights: Vec<i8>,
    factors: Vec<u32>,
    bias: Vec<i32>,
}

/// The weights that are not 0, and the bits that say which.
struct Held {
    bits: Vec<u32>,
    values: Vec<i8>,
}

impl Dense {
    fn outputs(&self) -> usize {
        self.weights.len() / self.inputs
    }

    fn held(&self) -> Held {
        let words = self.inputs.div_ceil(32);
        let mut held = Held { bits: vec![0; words * self.outputs()], values: vec![] };
        for (k, &value) in self.weights.iter().enumerate().filter(|(_, value)| **value != 0) {
            let (row, column) = (k / self.inputs, k % self.inputs);
            held.bits[row * words + column / 32] |= 1 << (column % 32);
            held.values.push(value);
        }
        held
    }

    fn sums(&self, x: &[u8]) -> Vec<i64> {
        let bias = self.bias.iter().copied().chain(std::iter::repeat(0));
        let rows = self.weights.chunks(self.inputs).zip(bias);
        rows.map(|(w, b)| {
            w.iter().zip(x).fold(i64::from(b), |sum, (&w, &x)| sum + i64::from(w) * i64::from(x))
        })
        .collect()
    }

    /// The sums times the factors, to the nearest.
    fn scaled(&self, x: &[u8]) -> Vec<i64> {
        let scale = |(j, sum): (usize, i64)| match self
            .factors
            .get(j.min(self.factors.len().wrapping_sub(1)))
        {
            Some(factor) => {
                (sum * i64::from(factor & 0xFF_FFFF) + (1 << ((factor >> 24) - 1)))
                    >> (factor >> 24)
            }
            None => sum,
        };
        self.sums(x).into_iter().enumerate().map(scale).collect()
    }
}

fn dense(inputs: usize, outputs: usize, density: u8, last: bool) -> impl Strategy<Value = Dense> {
    let weight = (any::<u8>(), any::<i8>())
        .prop_map(move |(at, value)| if at < density { value } else { 0 });
    let factor = (1e-4_f32..0.2).prop_map(|factor| Rescale::near(factor).unwrap().bits());
    let least = usize::from(!last);
    (
        prop::collection::vec(weight, inputs * outputs),
        prop::sample::select(vec![least, 1, outputs.max(1)]),
        prop::collection::vec(factor, outputs.max(1)),
        prop::option::of(prop::collection::vec(-100_000..100_000, outputs)),
    )
        .prop_map(move |(weights, factors, mut all, bias)| {
            all.truncate(factors);
            Dense { inputs, weights, factors: all, bias: bias.unwrap_or_default() }
        })
}

/// One to three layers, a sum behind them or none, a row, and what the bytes stand for.
fn chain() -> impl Strategy<Value = (Vec<Dense>, Option<Vec<bool>>, Vec<u8>, u8)> {
    let widths = (
        prop::sample::select(vec![1_usize, 7, 33, 255, 256, 257, 300, 530, 784]),
        prop::collection::vec(1_usize..20, 1..=3),
        prop::sample::select(vec![0_u8, 8, 40, 130, 255]),
    );
    (widths, any::<bool>(), any::<u8>()).prop_flat_map(|((first, rest, density), sum, zero)| {
        let widths: Vec<_> = std::iter::once(first).chain(rest).collect();
        let layers: Vec<_> = widths
            .windows(2)
            .enumerate()
            .map(|(k, pair)| {
                dense(
                    pair[0],
                    pair[1],
                    if k > 0 { 200 } else { density },
                    !sum && k + 2 == widths.len(),
                )
            })
            .collect();
        let signs = prop::collection::vec(any::<bool>(), *widths.last().unwrap());
        let signs = signs.prop_map(move |signs| sum.then_some(signs));
        (layers, signs, prop::collection::vec(any::<u8>(), first), Just(zero))
    })
}

/// What the model gives by plain loops.
fn expected(layers: &[Dense], signs: Option<&[bool]>, x: &[u8]) -> Vec<i32> {
    let bytes = |layer: &Dense, x: &[u8]| -> Vec<u8> {
        layer.scaled(x).into_iter().map(|sum| sum.clamp(0, 255) as u8).collect()
    };
    let (last, body) = layers.split_last().unwrap();
    let x = body.iter().fold(x.to_vec(), |x, layer| bytes(layer, &x));
    match signs {
        Some(signs) => {
            let signed = bytes(last, &x)
                .into_iter()
                .zip(signs)
                .map(|(x, &minus)| if minus { -i32::from(x) } else { x.into() });
            vec![signed.sum()]
        }
        None => last.scaled(&x).into_iter().map(|sum| i32::try_from(sum).unwrap()).collect(),
    }
}

fn predict(model: &Model<'_>, x: &[u8]) -> Vec<i32> {
    let (mut scratch, mut out) = (vec![-1; model.scratch_len()], vec![-1; model.outputs()]);
    model.predict(x, &mut scratch, &mut out).unwrap();
    out
}

/// Builds the model and passes it on.
fn with_model<T>(
    layers: &[Dense],
    signs: Option<&[bool]>,
    zero: u8,
    use_it: impl FnOnce(QuantisedView<'_>) -> T,
) -> T {
    let held: Vec<_> = layers.iter().map(Dense::held).collect();
    let built: Vec<_> = layers
        .iter()
        .zip(&held)
        .enumerate()
        .map(|(k, (layer, held))| {
            let mask = Mask::new(layer.inputs, layer.outputs(), &held.bits, &held.values);
            let weights = Weights::Mask(mask.unwrap());
            let relu = k + 1 < layers.len() || signs.is_some();
            let activation = if relu { Activation::Relu } else { Activation::Identity };
            let built = Layer::new(weights, &layer.factors, &layer.bias, activation).unwrap();
            built.with_requested(layer.outputs() + k).unwrap()
        })
        .collect();
    let mut words = vec![0_u32; signs.map_or(0, |signs| signs.len().div_ceil(32))];
    for (j, _) in signs.unwrap_or_default().iter().enumerate().filter(|(_, minus)| **minus) {
        words[j / 32] |= 1 << (j % 32);
    }
    let sum = signs.map(|signs| Sum::new(signs.len(), &words).unwrap());
    let model = Model::new(&built, sum, Scales::new(0.5, 0.01, zero, -3).unwrap()).unwrap();
    use_it(QuantisedView::new(model))
}

fn encoded(view: &QuantisedView<'_>, choice: Choice) -> Vec<u8> {
    let mut bytes = vec![0xAA; view.encoded_len(choice)];
    assert_eq!(view.encode(choice, &mut bytes), Ok(bytes.len()));
    bytes
}

fn parsed<T>(bytes: &[u8], use_it: impl FnOnce(Result<QuantisedView<'_>>) -> T) -> T {
    let mut buffer = Box::new(Aligned([0; BYTES]));
    buffer.0[..bytes.len()].copy_from_slice(bytes);
    use_it(QuantisedView::parse(&buffer.0[..bytes.len()]))
}

fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let crc = checksum(&bytes);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Keep, the two best, and each encoding.
fn choices() -> Vec<Choice> {
    let all = Encoding::ALL.into_iter().map(Choice::Prefer);
    [Choice::Keep, Choice::Smallest, Choice::Fastest].into_iter().chain(all).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_encoding_predicts_what_the_dense_loop_does((layers, signs, x, zero) in chain()) {
        let expected = expected(&layers, signs.as_deref(), &x);
        with_model(&layers, signs.as_deref(), zero, |view| {
            prop_assert_eq!(predict(view.model(), &x), &expected[..]);
            let kept = encoded(&view, Choice::Keep);
            let smallest = view.encoded_len(Choice::Smallest);
            for choice in choices() {
                let bytes = encoded(&view, choice);
                prop_assert!(smallest <= bytes.len());
                prop_assert!(QuantisedView::is(&bytes));
                parsed(&bytes, |again| {
                    let again = again.unwrap();
                    prop_assert_eq!(predict(again.model(), &x), &expected[..], "{:?}", choice);
                    prop_assert_eq!(again.model().scales(), view.model().scales());
                    prop_assert_eq!(&encoded(&again, Choice::Keep), &bytes);
                    prop_assert_eq!(&encoded(&again, Choice::Prefer(Encoding::Mask)), &kept);
                    if let Choice::Prefer(encoding) = choice {
                        let first = again.model().layers()[0].weights().encoding();
                        // A row of 256 weights in a window has no count in blocks.
                        let held = first == encoding || encoding == Encoding::Blocks;
                        prop_assert!(held, "{:?} for {:?}", first, encoding);
                    }
                    Ok(())
                })?;
            }
            Ok(())
        })?;
    }

    #[test]
    fn damage_is_refused_or_another_model(
        (layers, signs, x, zero) in chain(), at: prop::sample::Index, flip in 1_u8.., choice in prop::sample::select(choices()),
    ) {
        with_model(&layers, signs.as_deref(), zero, |view| {
            let mut bytes = encoded(&view, choice);
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            prop_assert!(parsed(&bytes, |view| view.is_err()));
            prop_assert!(parsed(&bytes[..at], |view| view.is_err()));
            let mended = sealed(bytes);
            parsed(&mended, |again| {
                let Ok(again) = again else { return Ok(()) };
                prop_assert_eq!(&encoded(&again, Choice::Keep), &mended);
                if again.model().inputs() == x.len() {
                    predict(again.model(), &x);
                }
                Ok(())
            })
        })?;
    }
}

/// `f = (100 x_0 - 50 x_2, 25 x_1)` behind a hidden layer of two that passes them through, in
/// bytes.
fn small() -> Vec<Dense> {
    let eighth = Rescale::near(0.125).unwrap().bits();
    vec![
        Dense { inputs: 3, weights: vec![8, 0, -4, 0, 16, 0], factors: vec![eighth], bias: vec![] },
        Dense { inputs: 2, weights: vec![100, 0, -100, 25], factors: vec![], bias: vec![7, -9] },
    ]
}

#[test]
fn sums_that_could_overflow_are_refused() {
    let (mut bits, values) = (vec![u32::MAX; 2048], vec![-128; 65_535]);
    bits[2047] >>= 1;
    let full = Weights::Mask(Mask::new(65_536, 1, &bits, &values).unwrap());
    let most = i32::MAX - 255 * 128 * 65_536;
    assert_eq!(Layer::most_bias(65_536), most as u32);
    let layer = Layer::new(full, &[], &[], Activation::Identity).unwrap();
    let model = Model::new(&[layer], None, Scales::new(1.0, 1.0, 0, 0).unwrap()).unwrap();
    assert_eq!(predict(&model, &vec![255; 65_536]), [-128 * 255 * 65_535]);
    for bias in [[most], [-most]] {
        assert!(Layer::new(full, &[], &bias, Activation::Identity).is_ok());
    }
    for bias in [[most + 1], [-most - 1], [i32::MIN]] {
        assert!(matches!(
            Layer::new(full, &[], &bias, Activation::Identity),
            Err(Error::Range { .. })
        ));
    }
}

#[test]
fn predicted_class_is_largest_output_or_threshold() {
    with_model(&small(), None, 0, |view| {
        let (model, mut scratch, mut out) = (view.model(), [0; 3], [0; 2]);
        assert_eq!(model.scratch_len(), 3);
        // (10, 6) in the hidden layer
        assert_eq!(model.classify(&[20, 3, 20], &mut scratch, &mut out), Ok(0));
        assert_eq!(out, [1007, -1000 + 150 - 9]);
        assert_eq!(model.classify(&[0, 3, 20], &mut scratch, &mut out), Ok(1));
        assert_eq!(
            model.predict(&[1, 2], &mut scratch, &mut out),
            Err(Error::Length { what: "input row", expected: 3, got: 2 })
        );
        assert_eq!(
            model.predict(&[1, 2, 3], &mut [0; 2], &mut out),
            Err(Error::Budget { needed: 12, got: 8 })
        );
        assert!(view.with_task(Task::Multiclass).is_ok());
    });
    let one = [Dense { inputs: 1, weights: vec![-1], factors: vec![], bias: vec![] }];
    with_model(&one, None, 0, |view| {
        let classes = [2, 3, 4].map(|x| view.model().classify(&[x], &mut [], &mut [0]).unwrap());
        assert_eq!(classes, [1, 1, 0], "the threshold is -3");
    });
}

#[test]
fn scales_are_positive_numbers() {
    for wrong in [0.0, -0.0, -1.0, f32::NAN, f32::INFINITY, -f32::NAN] {
        assert!(Scales::new(wrong, 1.0, 0, 0).is_err(), "{wrong}");
        assert!(Scales::new(1.0, wrong, 0, 0).is_err(), "{wrong}");
    }
    let scales = Scales::new(0.5, 1e-40, 10, 0).unwrap();
    assert_eq!(
        [0.0, 0.25, -0.25, 200.0, -200.0, f32::NAN].map(|number| scales.byte(number)),
        [10, 11, 9, 255, 0, 10]
    );
    assert_eq!(scales.output(), 1e-40);
}

/// The bytes printed under "Integers" in the specification.
fn documented() -> Vec<u8> {
    let text = include_str!("../../../docs/format.md");
    let dump = text.split("```text\n").nth(3).and_then(|rest| rest.split("```").next()).unwrap();
    let bytes = dump.lines().flat_map(|line| line.split_whitespace().skip(1));
    bytes.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// Bytes and checksum of the small model by each choice but the fastest, which follows measured
/// prices.
const GOLDEN: [(usize, u32); 5] = [
    (0xa4, 0x82be_019a),
    (0x98, 0x23b9_f298),
    (0x98, 0x23b9_f298),
    (0xa4, 0x82be_019a),
    (0xa4, 0x7dd8_1caa),
];

#[test]
fn the_specification_has_the_bytes_of_each_encoding() {
    let bytes = with_model(&small(), None, 0, |view| {
        let view = view.with_task(Task::Multiclass).unwrap();
        // The checksums, from the header: other bytes are another format.
        let fixed = choices().into_iter().filter(|choice| *choice != Choice::Fastest);
        let checksums = fixed.map(|choice| {
            let bytes = encoded(&view, choice);
            (bytes.len(), u32::from_le_bytes(*bytes[12..].first_chunk().unwrap()))
        });
        assert_eq!(checksums.collect::<Vec<_>>(), GOLDEN);
        encoded(&view, Choice::Prefer(Encoding::Blocks))
    });
    assert_eq!(bytes, documented());
}

#[test]
fn parse_errors_name_other_model_kinds_and_versions() {
    let bytes = with_model(&small(), None, 0, |view| encoded(&view, Choice::Smallest));
    let mut buffer = Box::new(Aligned([0; 512]));
    buffer.0[..bytes.len()].copy_from_slice(&bytes);
    let error = View::parse(&buffer.0[..bytes.len()]).unwrap_err().to_string();
    assert!(
        error.starts_with("layer of floats (QuantisedView reads models of integers) at byte 24"),
        "{error}"
    );
    static FLOATS: &[u8] = tamis::include_model!("../wire_golden.tamis");
    assert!(!QuantisedView::is(FLOATS));
    let error = QuantisedView::parse(FLOATS).unwrap_err().to_string();
    assert!(error.starts_with("first section of a model of integers at byte 24"), "{error}");
    let mut later = bytes;
    later[48] = 200;
    let error = parsed(&sealed(later), |view| view.unwrap_err());
    assert_eq!(error, Error::Newer { what: "layer", at: 48, got: 200 });
}

/// Files of encodings that earlier programs wrote, with the tag of the layer and where it stands.
const OLD: [(&[u8], u32); 5] = [
    (tamis::include_model!("../old/dense-list.tamis"), 4),
    (tamis::include_model!("../old/bitmask-list.tamis"), 5),
    (tamis::include_model!("../old/rows.tamis"), 6),
    (tamis::include_model!("../old/distances.tamis"), 7),
    (tamis::include_model!("../old/fan.tamis"), 9),
];

#[test]
fn encodings_of_earlier_programs_are_refused_by_name() {
    for (file, tag) in OLD {
        let error = QuantisedView::parse(file).unwrap_err();
        assert_eq!(error, Error::Removed { what: "encoding of a layer", at: 48, got: tag });
        let text = error.to_string();
        assert!(
            text.contains("quantize the model of floats again") && text.contains("blocks"),
            "{text}"
        );
        assert_eq!(tamis::store::wire::embed::Lengths::of(file, true), Err(error));
    }
}

/// `Choice::Fastest` writes the encoding with the least price of those that can hold the layer.
#[test]
fn the_fastest_encoding_has_the_least_price() {
    for (inputs, outputs, every) in
        [(784, 32, 20), (64, 10, 3), (300, 4, 1), (40, 40, 7), (5, 3, 2)]
    {
        let weights = (0..inputs * outputs).map(|k| i8::from(k % inputs % every == 0));
        let layer = Dense { inputs, weights: weights.collect(), factors: vec![], bias: vec![] };
        with_model(&[layer], None, 0, |view| {
            let price = |choice| {
                parsed(&encoded(&view, choice), |again| {
                    let weights = *again.unwrap().model().layers()[0].weights();
                    let at =
                        Encoding::ALL.iter().position(|encoding| *encoding == weights.encoding());
                    cost(&Shape::of(&weights).counts(weights.encoding()), &CORTEX_M4F[at.unwrap()])
                })
            };
            let fastest = price(Choice::Fastest);
            assert!(
                Encoding::ALL.iter().all(|&encoding| fastest <= price(Choice::Prefer(encoding)))
            );
        });
    }
}

#[test]
fn the_seeds_of_the_fuzzer_are_these_bytes() {
    let seeds = [
        tamis::include_model!("../../../fuzz/seeds/model/int-dense.tamis"),
        tamis::include_model!("../../../fuzz/seeds/model/int-mask.tamis"),
        tamis::include_model!("../../../fuzz/seeds/model/int-blocks.tamis"),
    ];
    for (seed, (len, crc)) in seeds.into_iter().zip(&GOLDEN[2..]) {
        assert_eq!((seed.len(), checksum(seed)), (*len, *crc));
        assert!(QuantisedView::parse(seed).is_ok());
    }
}
