//! The model format to the byte: the documented example, alignment, and every damage to a small
//! file.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by it"
)]

use tamis::Error;
use tamis::infer::model::{Activation, Blocks, Chain, Csr, Layer, Model, Sum};
use tamis::network::gates::Signs;
use tamis::network::net::Network;
use tamis::network::weights::Weights;
use tamis::store::wire::{
    Aligned, OwnedModel, Task, View, checksum, encode, encoded_len, max_len, trained_len,
};

/// The second neuron counts negatively, so its weights are fused with -1.
fn example() -> Network<'static> {
    Network::signed(Weights::new(3, 3, &[0, 2, 4], &[1.0, -0.5, -2.0]).unwrap(), Signs::Balanced)
}

static GOLDEN: &[u8] = tamis::include_model!("../wire_golden.tamis");
/// The same model as it was written before there were tasks.
static WITHOUT_TASK: &[u8] = tamis::include_model!("../wire_without_task.tamis");
/// A classifier of two classes; the second example.
static MULTICLASS: &[u8] = tamis::include_model!("../wire_multiclass.tamis");
/// A layer in windows of columns; the last example.
static BIASES: &[u8] = tamis::include_model!("../wire_biases.tamis");
static WINDOWS: &[u8] = tamis::include_model!("../wire_windows.tamis");
/// Where the section of the task starts in the example.
const TASK: usize = 92;

/// `f(x) = (relu(x_0 - x_2), -2 relu(x_0 - x_2))`: the third neuron of five is the only one with
/// weights.
fn classifier() -> Network<'static> {
    let w = Weights::new(3, 5, &[6, 8], &[1.0, -1.0]).unwrap();
    Network::new(w, Weights::new(2, 5, &[4, 5], &[1.0, -2.0]).unwrap()).unwrap()
}

/// The bytes printed under "Examples" in the specification.
fn documented(example: usize) -> Vec<u8> {
    let text = include_str!("../../../docs/format.md");
    let dump =
        text.split("```text\n").nth(example).and_then(|rest| rest.split("```").next()).unwrap();
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
    lengthened(GOLDEN, sections)
}

/// A model with further sections behind it.
fn lengthened(model: &[u8], sections: &[u8]) -> Vec<u8> {
    let bytes = [model, sections].concat();
    let len = bytes.len() as u32;
    with_word(&bytes, 8, len)
}

#[test]
fn writer_file_and_specification_hold_the_same_bytes() {
    let written = |task| OwnedModel::<{ max_len(3, 3) }>::from_trained(example(), 3, task).unwrap();
    assert_eq!(written(Some(Task::BINARY)).as_bytes(), documented(1));
    assert_eq!(GOLDEN, documented(1));
    assert_eq!(trained_len(example(), Some(Task::BINARY)), Ok(GOLDEN.len()));
    assert_eq!(written(None).as_bytes(), WITHOUT_TASK);
    assert_eq!(trained_len(example(), None), Ok(WITHOUT_TASK.len()));

    let task = Some(Task::Multiclass);
    let mut bytes = [0xAA; 130];
    assert_eq!(encode(classifier(), 5, task, &mut bytes), Ok(128));
    assert_eq!(trained_len(classifier(), task), Ok(128));
    assert_eq!((&bytes[..128], &bytes[128..]), (MULTICLASS, &[0xAA; 2][..]));
    assert_eq!(MULTICLASS, documented(2));
    assert_eq!(trained_len(classifier(), None), Ok(112));
    let short = Err(Error::Budget { needed: 128, got: 127 });
    assert_eq!(encode(classifier(), 5, task, &mut bytes[..127]), short);
}

#[test]
fn a_classifier_knows_that_it_is_one() {
    let view = View::parse(MULTICLASS).unwrap();
    assert_eq!((view.task(), view.model().outputs()), (Some(Task::Multiclass), 2));
    let mut f = [0.0; 2];
    view.model().predict(&[3.0, 9.0, 1.0], &mut [0.0], &mut f).unwrap();
    assert_eq!(f, [2.0, -4.0]);
    let mut again = vec![0xAA; view.encoded_len()];
    assert_eq!(view.encode(&mut again), Ok(128));
    assert_eq!(again, MULTICLASS);
    // As files were before: without the section, the last 16 bytes.
    let without = with_word(&MULTICLASS[..112], 8, 112);
    parsed(&without, |view| {
        let view = view.unwrap();
        assert_eq!(view.task(), None);
        let again = view.with_task(Task::Multiclass).unwrap();
        assert_eq!(again.encoded_len(), 128);
    });
    // Tasks and outputs that do not fit, in the file and before it is written.
    let one = Error::Range { what: "outputs of a multiclass model", min: 2, max: 65_536, got: 1 };
    assert_eq!(refusal(&with_word(&with_word(GOLDEN, TASK + 8, 3), TASK + 12, 0)), one);
    assert_eq!(View::parse(GOLDEN).unwrap().with_task(Task::Multiclass), Err(one));
    assert_eq!(trained_len(example(), Some(Task::Multiclass)), Err(one));
    let mut bytes = [0; 200];
    assert_eq!(encode(example(), 3, Some(Task::Multiclass), &mut bytes), Err(one));
    let two = Error::Length { what: "outputs of a binary model", expected: 1, got: 2 };
    assert_eq!(refusal(&with_word(MULTICLASS, 120, 2)), two);
    assert_eq!(encode(classifier(), 5, Some(Task::BINARY), &mut bytes), Err(two));
    assert_eq!(bytes, [0; 200]);
    let word = |at, word| refusal(&with_word(MULTICLASS, at, word)).to_string();
    assert_eq!(word(124, 1), "threshold of a multiclass task at byte 124: expected 0x0, got 0x1");
    assert_eq!(word(120, 4), "task 4 at byte 120 is of a later program: update this one");
}

#[test]
fn the_file_reads_as_the_specification_says() {
    let hidden = Csr::new(3, &[2, 1], &[0, 2, 1], &[1.0, -0.5, 2.0], Activation::Relu).unwrap();
    let hidden = Layer::Csr(hidden.with_requested(3).unwrap());
    let expected = Model::new(&[hidden, Layer::Sum(Sum::new(2, &[0b10]).unwrap())]).unwrap();
    let expected = View::new(expected);
    assert_eq!(View::parse(WITHOUT_TASK), Ok(expected.clone()));
    assert_eq!(View::parse(GOLDEN), expected.clone().with_task(Task::BINARY));
    for (bytes, task) in [(GOLDEN, Some(Task::BINARY)), (WITHOUT_TASK, None)] {
        let view = View::parse(bytes).unwrap();
        assert_eq!((view.task(), view.extra()), (task, &[][..]));
        let mut again = vec![0xAA; view.encoded_len()];
        assert_eq!(view.encode(&mut again), Ok(bytes.len()));
        assert_eq!(again, bytes);
    }
}

#[test]
fn blocked_layers_match_documentation_and_damage_is_detected() {
    assert_eq!(WINDOWS, documented(4));
    let view = View::parse(WINDOWS).unwrap();
    let blocks =
        Blocks::new(300, 2, &[1, 0, 1, 1], &[0, 255, 216], &[1.0, 2.0, -1.0], Activation::Identity);
    assert_eq!(view.model().layers(), [Layer::Blocks(blocks.unwrap())]);
    let mut again = vec![0xAA; view.encoded_len()];
    assert_eq!((view.encode(&mut again), again), (Ok(72), WINDOWS.to_vec()));
    assert_eq!(view.model().cost().flash_bytes, 72);
    let (mut x, mut y) = ([0.0; 300], [0.0; 2]);
    (x[0], x[260], x[299]) = (3.0, 5.0, 0.5);
    view.model().predict(&x, &mut [], &mut y).unwrap();
    assert_eq!(y, [4.0, -5.0]);
    for at in 0..8 * WINDOWS.len() {
        let mut bytes = WINDOWS.to_vec();
        bytes[at / 8] ^= 1 << (at % 8);
        refusal(&bytes);
    }
    let word = |at, word| refusal(&with_word(WINDOWS, at, word)).to_string();
    assert_eq!(word(0x18, 0x0001_000b), "flags of a layer at byte 26: expected 0x0, got 0x1");
    assert_eq!(word(0x34, 0x0001_0001), "entries of windows: expected length 2, got 3");
    // Column 44 is of the window before, and 0 padding is padding.
    assert_eq!(word(0x38, 0x00D8_0000), "columns of a window: expected 256 to 511, got 44");
    assert_eq!(word(0x38, 0x01D8_FF00), "padding at byte 59: expected 0x0, got 0x1");
    assert_eq!(word(0x3c, 0x7F80_0000), "weights: expected finite numbers, position 0 is not");
}

/// Layers of windows and of rows, of every number of inputs around a window's, add up in the same
/// order.
#[test]
fn windows_give_the_bits_of_rows() {
    for (inputs, fan) in
        [(3, 2), (200, 60), (255, 255), (256, 256), (257, 100), (511, 37), (784, 90), (1100, 300)]
    {
        let width = inputs / fan;
        let column = |row: usize, k: usize| k * width + (row * 7 + k * 5) % width;
        let rows = 3;
        let columns: Vec<u16> =
            (0..rows * fan).map(|at| column(at / fan, at % fan) as u16).collect();
        let values: Vec<f32> =
            (0..rows * fan).map(|at| ((at * 37 + 11) % 101) as f32 / 7.0 - 6.9).collect();
        let counts = vec![fan as u16; rows];
        let csr = Csr::new(inputs, &counts, &columns, &values, Activation::Relu).unwrap();
        let (mut runs, mut indices, mut moved) = (Vec::new(), Vec::new(), Vec::new());
        for window in 0..inputs.div_ceil(256) {
            let start = (window * 256).min(inputs.saturating_sub(256));
            for row in 0..rows {
                let own = (row * fan..(row + 1) * fan)
                    .filter(|&at| usize::from(columns[at]) / 256 == window);
                let before = indices.len();
                for at in own {
                    indices.push((usize::from(columns[at]) - start) as u8);
                    moved.push(values[at]);
                }
                runs.push(u8::try_from(indices.len() - before).unwrap_or(255));
            }
        }
        if runs.iter().map(|&run| usize::from(run)).sum::<usize>() != indices.len() {
            assert_eq!((inputs, fan), (256, 256), "only a run of 256 has no count");
            continue;
        }
        let blocks = Blocks::new(inputs, rows, &runs, &indices, &moved, Activation::Relu).unwrap();
        let (mut seen, mut k) = (Vec::new(), 0);
        blocks.entries(&mut |row, column, value| seen.push((row, column, value.to_bits())));
        assert!(seen.iter().all(|&(row, column, value)| {
            k += 1;
            (row, column, value) == ((k - 1) / fan, columns[k - 1], values[k - 1].to_bits())
        }));
        let biases = [-1.5, 0.0, 40.0];
        let (csr, blocks) =
            (csr.with_biases(&biases).unwrap(), blocks.with_biases(&biases).unwrap());
        let sum = Sum::new(rows, &[0b010]).unwrap();
        let chains = [[Layer::Csr(csr), Layer::Sum(sum)], [Layer::Blocks(blocks), Layer::Sum(sum)]];
        let floats: Vec<f32> = (0..inputs).map(|i| ((i * 29) % 53) as f32 / 3.0 - 5.0).collect();
        let bytes: Vec<u8> = (0..inputs).map(|i| (i * 91) as u8).collect();
        let scaled = tamis::infer::model::Scaled { bytes: &bytes, scale: 0.37 };
        let outputs = chains.map(|layers| {
            let chain: Chain<'_> = Chain::new(&layers).unwrap();
            let (mut scratch, mut f) = ([0.0; 3], [[0.0; 1]; 3]);
            assert_eq!(
                chain.scratch_len(),
                if matches!(layers[0], Layer::Blocks(_)) { 3 } else { 0 }
            );
            chain.predict(&floats, &mut scratch, &mut f[0]).unwrap();
            chain.predict_from(&bytes[..], &mut scratch, &mut f[1]).unwrap();
            chain.predict_from(&scaled, &mut scratch, &mut f[2]).unwrap();
            f.map(|[f]| f.to_bits())
        });
        assert_eq!(outputs[0], outputs[1], "{inputs} inputs");
    }
}

#[test]
fn chain_without_a_needed_kernel_is_refused() {
    let csr = Csr::new(1, &[1], &[0], &[2.0], Activation::Identity).unwrap();
    let blocks = Blocks::new(1, 1, &[1], &[0], &[2.0], Activation::Identity).unwrap();
    let (rows, windows) = ([Layer::Csr(csr)], [Layer::Blocks(blocks)]);
    const ROWS: u16 = Chain::kernels(&[]) | 1;
    assert_eq!(Chain::kernels(&rows), ROWS);
    assert!(Chain::<'_, ROWS>::new(&rows).is_ok());
    let what = "kernels that layers need and the chain lacks";
    let one = Error::Length { what, expected: 0, got: 1 };
    assert_eq!(Chain::<'_, ROWS>::new(&windows), Err(one));
    let biased = [Layer::Csr(csr.with_biases(&[3.0]).unwrap())];
    assert_eq!(Chain::<'_, ROWS>::new(&biased), Err(one));
}

#[test]
fn biased_layers_match_documentation_and_damage_is_detected() {
    assert_eq!(BIASES, documented(5));
    let view = View::parse(BIASES).unwrap();
    let csr = Csr::new(2, &[1, 0], &[1], &[2.0], Activation::Identity).unwrap();
    let csr = csr.with_biases(&[0.5, -3.0]).unwrap();
    assert_eq!(view.model().layers(), [Layer::Csr(csr)]);
    let mut again = vec![0xAA; view.encoded_len()];
    assert_eq!((view.encode(&mut again), again), (Ok(72), BIASES.to_vec()));
    let cost = view.model().cost();
    assert_eq!((cost.flash_bytes, cost.nonzeros, cost.macs), (72, 3, 1));
    let (mut read, mut embedded) = ([0.0; 2], [0.0; 2]);
    view.model().predict(&[9.0, 1.0], &mut [], &mut read).unwrap();
    let model = tamis::embed_model!("../wire_biases.tamis");
    model.predict(&[9.0, 1.0], &mut [], &mut embedded).unwrap();
    assert_eq!((read, embedded), ([2.5, -3.0], read));
    for at in 0..8 * BIASES.len() {
        let mut bytes = BIASES.to_vec();
        bytes[at / 8] ^= 1 << (at % 8);
        refusal(&bytes);
    }
    let word = |at, word| refusal(&with_word(BIASES, at, word)).to_string();
    assert_eq!(word(0x30, 0x0002_0000), "biases at byte 50: expected 0x1, got 0x2");
    assert_eq!(word(0x30, 0), "end of a layer at byte 64: expected 0x40, got 0x48");
    assert_eq!(word(0x40, 0x7FC0_0000), "biases: expected finite numbers, position 0 is not");
}

#[test]
fn biases_are_none_or_one_per_output() {
    let csr = Csr::new(1, &[1, 0], &[0], &[2.0], Activation::Identity).unwrap();
    let blocks = Blocks::new(1, 2, &[1, 0], &[0], &[2.0], Activation::Identity).unwrap();
    let three = Error::Length { what: "biases of a layer", expected: 2, got: 3 };
    assert_eq!(csr.with_biases(&[1.0; 3]), Err(three));
    assert_eq!(blocks.with_biases(&[1.0; 3]), Err(three));
    assert_eq!(csr.with_biases(&[]), Ok(csr));
    let second = Error::NotFinite { what: "biases", at: 1 };
    assert_eq!(blocks.with_biases(&[0.0, f32::NAN]), Err(second));
}

#[test]
fn task_appears_once_and_must_fit_model() {
    let task = &GOLDEN[TASK..];
    let word = |at, word| refusal(&with_word(GOLDEN, TASK + at, word)).to_string();
    assert_eq!(word(0, 3), "flags of a task at byte 94: expected 0x1, got 0x0");
    assert_eq!(word(4, 4), "bytes left for a field at byte 104: expected 0x4, got 0x0");
    assert_eq!(word(8, 4), "task 4 at byte 100 is of a later program: update this one");
    assert_eq!(
        word(8, 3),
        "threshold of a multiclass task at byte 104: expected 0x0, got 0x3f000000"
    );
    assert_eq!(word(8, 1), "threshold of a regression at byte 104: expected 0x0, got 0x3f000000");
    assert_eq!(word(8, 1 << 16 | 2), "reserved at byte 102: expected 0x0, got 0x1");
    assert_eq!(
        word(12, 0x7FC0_0000),
        "threshold of a binary task: expected finite numbers, position 0 is not"
    );
    let place = "task, once and right behind the layers at byte 108: expected 0x5c, got 0x6c";
    assert_eq!(refusal(&extended(task)).to_string(), place);
    let other = [99, 0, 1, 0, 0, 0, 0, 0];
    let (behind, before) = ([task, &other].concat(), [&other, task].concat());
    assert!(parsed(&lengthened(WITHOUT_TASK, &behind), |view| view.unwrap().extra() == other));
    assert!(
        refusal(&lengthened(WITHOUT_TASK, &before))
            .to_string()
            .starts_with("task, once and right behind")
    );
    let layer = lengthened(GOLDEN, &GOLDEN[24..76]);
    assert!(refusal(&layer).to_string().starts_with("layer behind"));
    let wide = [&[16, 0, 1, 0, 8, 0, 0, 0][..], &GOLDEN[TASK + 8..]].concat();
    assert!(parsed(&lengthened(WITHOUT_TASK, &wide), |view| view.unwrap().task().is_none()));

    let two = Csr::new(1, &[1, 1], &[0, 0], &[1.0, 2.0], Activation::Identity).unwrap();
    let two = View::new(Model::new(&[Layer::Csr(two)]).unwrap());
    let outputs = Error::Length { what: "outputs of a binary model", expected: 1, got: 2 };
    assert_eq!(two.clone().with_task(Task::BINARY), Err(outputs));
    let mut bytes = Aligned([0; 128]);
    let len = two.clone().with_task(Task::Regression).unwrap().encode(&mut bytes.0).unwrap();
    assert_eq!(View::parse(&bytes.0[..len]).unwrap().task(), Some(Task::Regression));
    let kind = with_word(&bytes.0[..len], len - 8, 2);
    assert_eq!(refusal(&kind), outputs);
    let threshold = Task::Binary { threshold: f32::INFINITY };
    assert!(matches!(
        View::parse(GOLDEN).unwrap().with_task(threshold),
        Err(Error::NotFinite { .. })
    ));
    assert!(matches!(trained_len(example(), Some(threshold)), Err(Error::NotFinite { .. })));
}

#[test]
fn later_version_is_named_before_reading_further() {
    let mut later = GOLDEN.to_vec();
    later[4] = 2;
    for bytes in [&later[..], &later[..8], &sealed(later.clone())] {
        assert_eq!(refusal(bytes), Error::Version { reads: 1, got: 2 });
    }
    later[6..].fill(0xFF);
    let error = refusal(&later).to_string();
    assert_eq!(error, "the model has format version 2, this program reads 1: update the program");
}

#[test]
fn costs_are_those_of_the_bytes() {
    let view = View::parse(WITHOUT_TASK).unwrap();
    let total = view.model().cost();
    assert_eq!(total.flash_bytes, WITHOUT_TASK.len());
    assert_eq!((total.nonzeros, total.macs, total.ram_bytes), (3, 3 + 2, 0));
    assert_eq!((total.dense_macs, total.dense_flash_bytes), (3 * 3 + 3, 4 * (3 * 3 + 3)));
    let layers: Vec<_> =
        view.model().layer_costs().map(|cost| (cost.flash_bytes, cost.nonzeros)).collect();
    assert_eq!(layers, [(52, 3), (16, 0)]);
}

#[test]
fn every_truncation_is_refused() {
    for model in [GOLDEN, MULTICLASS] {
        for len in 0..model.len() {
            assert!(matches!(refusal(&model[..len]), Error::Format { .. }), "{len} bytes");
            let shorter = with_word_if_there(&model[..len], 8, len as u32);
            // Without its last section and with another length and checksum it is another model.
            if len == model.len() - 16 {
                parsed(&shorter, |view| assert_eq!(view.unwrap().task(), None));
            } else {
                refusal(&shorter);
            }
        }
    }
    assert_eq!(with_word(&GOLDEN[..TASK], 8, 92), WITHOUT_TASK);
    assert!(matches!(
        refusal(&[GOLDEN, &[0; 4]].concat()),
        Error::Format { at: 8, expected: 108, got: 112, .. }
    ));
}

fn with_word_if_there(bytes: &[u8], at: usize, word: u32) -> Vec<u8> {
    if bytes.len() >= 16 { with_word(bytes, at, word) } else { bytes.to_vec() }
}

#[test]
fn every_flip_of_one_bit_is_refused() {
    for model in [GOLDEN, MULTICLASS] {
        for bit in 0..model.len() * 8 {
            let mut bytes = model.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            // The flips that make the version a later one.
            let later = (33..48).contains(&bit);
            let named = match refusal(&bytes) {
                Error::Version { .. } => later,
                Error::Format { .. } => !later,
                _ => false,
            };
            assert!(named, "bit {bit}");
        }
    }
}

/// How many flips of one bit give another model under a checksum made to fit; each is read to the
/// last bit.
fn accepted_flips(model: &[u8]) -> usize {
    let mut accepted = 0;
    for bit in (0..model.len() * 8).filter(|bit| !(96..128).contains(bit)) {
        let mut bytes = model.to_vec();
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
    accepted
}

/// With a checksum made to fit, what is still accepted is another well-formed model and nothing
/// else.
#[test]
fn resealed_bit_flips_are_refused_or_roundtrip() {
    // The values but for one flip, which makes 1.0 an infinity; two signs; bits 2 to 31 of the
    // outputs asked for, and bit 0 (3 becomes 2); the activation; a column from 0 to 1, and another
    // from 1 to 0. Every bit of the threshold, which stays finite; the task's tag, but for the four
    // flips that make it a layer's.
    assert_eq!(accepted_flips(GOLDEN), 95 + 2 + 31 + 1 + 2 + 32 + 12);
    // The values but for three flips; every bit of the neurons asked for, which stay 1 or more, and
    // all but one of the outputs asked for; two activations; a column from 0 to 1; the task's tag
    // as above, and the task to a regression.
    assert_eq!(accepted_flips(MULTICLASS), 125 + 32 + 31 + 2 + 1 + 12 + 1);
}

#[test]
fn fields_that_contradict_each_other_are_named() {
    let word = |at, word| refusal(&with_word(GOLDEN, at, word)).to_string();
    assert_eq!(word(0, 0), "magic of a model at byte 0: expected 0x4d415489, got 0x0");
    assert_eq!(word(4, 0), "version at byte 4: expected 0x1, got 0x0");
    assert_eq!(word(4, 1 << 16 | 1), "reserved at byte 6: expected 0x0, got 0x1");
    assert_eq!(word(16, 4), "inputs of the model at byte 16: expected 0x3, got 0x4");
    assert_eq!(word(20, 2), "outputs of the model at byte 20: expected 0x1, got 0x2");
    assert_eq!(word(24, 77), "layer 77 at byte 24 is of a later program: update this one");
    assert_eq!(word(24, 1 << 16 | 1), "flags of a layer at byte 26: expected 0x0, got 0x1");
    assert_eq!(word(24, 2 << 16 | 1), "flags of a section at byte 26: expected 0x0, got 0x2");
    assert_eq!(word(32, 65_537), "inputs of a layer: expected 0 to 65536, got 65537");
    assert_eq!(
        word(36, u32::MAX),
        "bytes left for a field at byte 52: expected 0xffffffff, got 0x18"
    );
    assert_eq!(word(44, 1), "outputs asked for: expected 2 to 4294967295, got 1");
    assert_eq!(word(48, 9), "activation 9 at byte 48 is of a later program: update this one");
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
    let section = [99, 0, 1, 0, 4, 0, 0, 0, 1, 2, 3, 4];
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
    assert!(
        refusal(&extended(&[&section, layer].concat())).to_string().starts_with("layer behind")
    );
    assert!(
        refusal(&extended(&[99, 0, 1, 0, 8, 0, 0, 0, 1, 2, 3, 4]))
            .to_string()
            .starts_with("bytes left")
    );
    assert!(
        refusal(&extended(&[99, 0, 1, 0, 2, 0, 0, 0]))
            .to_string()
            .starts_with("length of a section")
    );
}

#[test]
fn misaligned_bytes_are_refused_and_can_be_copied() {
    let mut buffer = Aligned([0; 112]);
    buffer.0[1..109].copy_from_slice(GOLDEN);
    let error = View::parse(&buffer.0[1..109]).unwrap_err();
    assert!(matches!(error, Error::Format { expected: 0, got: 1, .. }), "{error}");
    assert_eq!(OwnedModel::<108>::from_bytes(&buffer.0[1..109]).unwrap().as_bytes(), GOLDEN);
    assert_eq!(OwnedModel::<107>::from_bytes(GOLDEN), Err(Error::Budget { needed: 108, got: 107 }));
    assert!(OwnedModel::<108>::from_bytes(&GOLDEN[..88]).is_err());
}

#[test]
fn encoded_length_is_read_from_larger_region() {
    let mut flash = Aligned([0xFF; 256]);
    flash.0[..108].copy_from_slice(GOLDEN);
    let len = encoded_len(&flash.0[..24]).unwrap();
    assert!(View::parse(&flash.0[..len]).is_ok());
    assert!(encoded_len(&[0xFF; 256]).is_err());
}
