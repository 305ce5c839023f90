//! The model format to the byte: the documented example, alignment, and every damage to a small file.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by it"
)]

use tamis::Error;
use tamis::gates::Signs;
use tamis::model::{Activation, Csr, Layer, Model, Sum};
use tamis::weights::Weights;
use tamis::wire::{Aligned, OwnedModel, View, checksum, encoded_len, max_len, trained_len};

/// The second neuron counts negatively, so its weights are fused with -1.
fn example() -> Weights<'static> {
    Weights::new(3, 3, &[0, 2, 4], &[1.0, -0.5, -2.0]).unwrap()
}

static GOLDEN: &[u8] = tamis::include_model!("wire_golden.tamis");

/// The bytes printed under "Example" in the specification.
fn documented() -> Vec<u8> {
    let text = include_str!("../../docs/format.md");
    let dump = text.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let bytes = dump.lines().flat_map(|line| line.split_whitespace().skip(1));
    bytes.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// `bytes` at an aligned address, in a buffer that holds them, and what `use_it` makes of them.
fn parsed<T>(bytes: &[u8], use_it: impl FnOnce(Result<View<'_>, Error>) -> T) -> T {
    let mut buffer = Box::new(Aligned([0; 1024]));
    buffer.0[..bytes.len()].copy_from_slice(bytes);
    use_it(View::parse(&buffer.0[..bytes.len()]))
}

fn refusal(bytes: &[u8]) -> Error {
    parsed(bytes, |view| view.expect_err("accepted"))
}

/// `bytes` with another word at `at`, and the checksum that belongs to it.
fn with_word(bytes: &[u8], at: usize, word: u32) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
    sealed(bytes)
}

fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let crc = checksum(&bytes);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The example with further sections behind it.
fn extended(sections: &[u8]) -> Vec<u8> {
    let bytes = [GOLDEN, sections].concat();
    let len = bytes.len() as u32;
    with_word(&bytes, 8, len)
}

#[test]
fn writer_file_and_specification_hold_the_same_bytes() {
    let owned: OwnedModel<{ max_len(3, 3) }> = OwnedModel::from_trained(example(), Signs::Balanced).unwrap();
    assert_eq!(owned.as_bytes(), documented());
    assert_eq!(GOLDEN, documented());
    assert_eq!(trained_len(example()), Ok(GOLDEN.len()));
}

#[test]
fn the_file_reads_as_the_specification_says() {
    let view = View::parse(GOLDEN).unwrap();
    let hidden = Csr::new(3, &[2, 1], &[0, 2, 1], &[1.0, -0.5, 2.0], Activation::Relu).unwrap();
    let hidden = Layer::Csr(hidden.with_requested(3).unwrap());
    let expected = Model::new(&[hidden, Layer::Sum(Sum::new(2, &[0b10]).unwrap())]).unwrap();
    assert_eq!(view, View::new(expected));
    let mut again = vec![0xAA; view.encoded_len()];
    assert_eq!(view.encode(&mut again), Ok(GOLDEN.len()));
    assert_eq!(again, GOLDEN);
}

#[test]
fn costs_are_those_of_the_bytes() {
    let view = View::parse(GOLDEN).unwrap();
    let total = view.model().cost();
    assert_eq!(total.flash_bytes, GOLDEN.len());
    assert_eq!((total.nonzeros, total.macs, total.ram_bytes), (3, 3 + 2, 0));
    assert_eq!((total.dense_macs, total.dense_flash_bytes), (3 * 3 + 3, 4 * (3 * 3 + 3)));
    let layers: Vec<_> = view.model().layer_costs().map(|cost| (cost.flash_bytes, cost.nonzeros)).collect();
    assert_eq!(layers, [(52, 3), (16, 0)]);
}

#[test]
fn every_truncation_is_refused() {
    for len in 0..GOLDEN.len() {
        assert!(matches!(refusal(&GOLDEN[..len]), Error::Format { .. }), "{len} bytes");
        let shorter = with_word_if_there(&GOLDEN[..len], 8, len as u32);
        refusal(&shorter);
    }
    assert!(matches!(
        refusal(&[GOLDEN, &[0; 4]].concat()),
        Error::Format { at: 8, expected: 92, got: 96, .. }
    ));
}

fn with_word_if_there(bytes: &[u8], at: usize, word: u32) -> Vec<u8> {
    if bytes.len() >= 16 { with_word(bytes, at, word) } else { bytes.to_vec() }
}

#[test]
fn every_flip_of_one_bit_is_refused() {
    for bit in 0..GOLDEN.len() * 8 {
        let mut bytes = GOLDEN.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(matches!(refusal(&bytes), Error::Format { .. }), "bit {bit}");
    }
}

/// With a checksum made to fit, what is still accepted is another well-formed model and nothing else.
#[test]
fn every_flip_under_a_fitting_checksum_is_refused_or_read_to_the_last_bit() {
    let mut accepted = 0;
    for bit in (0..GOLDEN.len() * 8).filter(|bit| !(96..128).contains(bit)) {
        let mut bytes = GOLDEN.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let bytes = sealed(bytes);
        accepted += parsed(&bytes, |view| {
            let Ok(view) = view else { return 0 };
            let mut again = vec![0; view.encoded_len()];
            view.encode(&mut again).unwrap();
            assert_eq!(again, bytes, "bit {bit}");
            1
        });
    }
    // The values but for one flip, which makes 1.0 an infinity; two signs; bits 2 to 31 of the outputs asked for,
    // and bit 0 (3 becomes 2); the activation; a column from 0 to 1, and another from 1 to 0.
    assert_eq!(accepted, 95 + 2 + 31 + 1 + 2);
}

#[test]
fn fields_that_contradict_each_other_are_named() {
    let word = |at, word| refusal(&with_word(GOLDEN, at, word)).to_string();
    assert_eq!(word(0, 0), "magic of a model at byte 0: expected 0x4d415489, got 0x0");
    assert_eq!(word(4, 2), "version at byte 4: expected 0x1, got 0x2");
    assert_eq!(word(4, 1 << 16 | 1), "reserved at byte 6: expected 0x0, got 0x1");
    assert_eq!(word(16, 4), "inputs of the model at byte 16: expected 0x3, got 0x4");
    assert_eq!(word(20, 2), "outputs of the model at byte 20: expected 0x1, got 0x2");
    assert_eq!(word(24, 7), "layer tag, unknown to this version at byte 24: expected 0x2, got 0x7");
    assert_eq!(word(24, 1 << 16 | 1), "flags of a layer at byte 26: expected 0x0, got 0x1");
    assert_eq!(word(24, 2 << 16 | 1), "flags of a section at byte 26: expected 0x0, got 0x2");
    assert_eq!(word(32, 65_537), "inputs of a layer: expected 0 to 65536, got 65537");
    assert_eq!(word(36, u32::MAX), "bytes left for a field at byte 52: expected 0xffffffff, got 0x18");
    assert_eq!(word(44, 1), "outputs asked for: expected 2 to 4294967295, got 1");
    assert_eq!(word(48, 9), "activation, unknown to this version at byte 48: expected 0x1, got 0x9");
    assert_eq!(word(52, 1 << 16 | 1), "columns: expected length 2, got 3");
    assert_eq!(word(56, 0), "indices: expected strictly rising, position 1 is not");
    assert_eq!(word(56, 3 << 16), "columns used: expected 0 to 3, got 4");
    assert_eq!(word(60, 1 << 16 | 1), "padding at byte 62: expected 0x0, got 0x1");
    assert_eq!(word(68, 0x7FC0_0000), "weights: expected finite numbers, position 1 is not");
    assert_eq!(word(84, 3), "inputs of a layer: expected length 2, got 3");
    assert_eq!(word(88, 0b110), "neurons in the last sign word: expected 0 to 2, got 3");
}

#[test]
fn sections_that_may_be_skipped_are_kept() {
    let section = [9, 0, 1, 0, 4, 0, 0, 0, 1, 2, 3, 4];
    let bytes = extended(&section);
    parsed(&bytes, |view| {
        let view = view.unwrap();
        assert_eq!(view.extra(), section);
        assert_eq!(view.model(), View::parse(GOLDEN).unwrap().model());
        let mut again = vec![0; view.encoded_len()];
        view.encode(&mut again).unwrap();
        assert_eq!(again, bytes);
    });
    let layer = &GOLDEN[24..76];
    assert!(refusal(&extended(&[&section, layer].concat())).to_string().starts_with("layer behind"));
    assert!(refusal(&extended(&[9, 0, 1, 0, 8, 0, 0, 0, 1, 2, 3, 4])).to_string().starts_with("bytes left"));
    assert!(refusal(&extended(&[9, 0, 1, 0, 2, 0, 0, 0])).to_string().starts_with("length of a section"));
}

#[test]
fn the_seeds_of_the_fuzzer_are_models() {
    let seeds = [
        tamis::include_model!("../../fuzz/seeds/model/golden.tamis"),
        tamis::include_model!("../../fuzz/seeds/model/deep.tamis"),
        tamis::include_model!("../../fuzz/seeds/model/wide.tamis"),
        tamis::include_model!("../../fuzz/seeds/model/extra.tamis"),
    ];
    for seed in seeds {
        let view = View::parse(seed).unwrap();
        let mut again = vec![0; view.encoded_len()];
        view.encode(&mut again).unwrap();
        assert_eq!(again, seed);
    }
}

#[test]
fn misaligned_bytes_are_refused_and_can_be_copied() {
    let mut buffer = Aligned([0; 96]);
    buffer.0[1..93].copy_from_slice(GOLDEN);
    let error = View::parse(&buffer.0[1..93]).unwrap_err();
    assert!(matches!(error, Error::Format { expected: 0, got: 1, .. }), "{error}");
    assert_eq!(OwnedModel::<92>::from_bytes(&buffer.0[1..93]).unwrap().as_bytes(), GOLDEN);
    assert_eq!(OwnedModel::<91>::from_bytes(GOLDEN), Err(Error::Budget { needed: 92, got: 91 }));
    assert!(OwnedModel::<92>::from_bytes(&GOLDEN[..88]).is_err());
}

#[test]
fn the_length_is_read_from_the_head_of_a_longer_region() {
    let mut flash = Aligned([0xFF; 256]);
    flash.0[..92].copy_from_slice(GOLDEN);
    let len = encoded_len(&flash.0[..24]).unwrap();
    assert!(View::parse(&flash.0[..len]).is_ok());
    assert!(encoded_len(&[0xFF; 256]).is_err());
}
