//! Predictions from models that lie in a chip on a bus: the bits of models in memory, and errors in
//! place of predictions where a file is damaged or the bus fails.

use embedded_hal::spi::ErrorKind;
use embedded_hal_mock::eh1::spi::{Mock, Transaction};
use proptest::prelude::*;
use tamis::Error;
use tamis::base::rng::Rng;
use tamis::data::spi::{ReadError, SpiFlash};
use tamis::infer::model::{Activation, Csr, Layer, Model, Sum};
use tamis::infer::quantised::{self, Encoding, Rescale, Scales, Weights};
use tamis::store::flash::Slots;
use tamis::store::stream::{self, LEAST_WORDS};
use tamis::store::wire::embed::Lengths;
use tamis::store::wire::{Choice, QuantisedView, Task, View, checksum};
use tamis_tests::simulated::{BusFault, Chip, Nor, Tear};

/// Counts and columns of a random layer, whose rows have at most one in `least` of the columns.
fn support(rng: &mut Rng, inputs: usize, outputs: usize, least: u32) -> (Vec<u16>, Vec<u16>) {
    let (mut counts, mut columns) = (Vec::new(), Vec::new());
    for _ in 0..outputs {
        let before = columns.len();
        let one_in = least + rng.below(6);
        columns.extend((0..inputs as u16).filter(|_| rng.below(one_in) == 0));
        counts.push((columns.len() - before) as u16);
    }
    (counts, columns)
}

/// A file of floats: layers of these widths, and perhaps a sum.
fn floats(seed: u64, widths: &[usize], has_sum: bool) -> Vec<u32> {
    let mut rng = Rng::new(seed, 1);
    let parts: Vec<_> = widths
        .windows(2)
        .map(|pair| {
            let (counts, columns) = support(&mut rng, pair[0], pair[1], 1);
            let values: Vec<f32> = columns.iter().map(|_| rng.normal()).collect();
            let biases: Vec<f32> = if seed.is_multiple_of(2) {
                counts.iter().map(|_| rng.normal()).collect()
            } else {
                vec![]
            };
            (pair[0], counts, columns, values, biases)
        })
        .collect();
    let last = *widths.last().unwrap();
    let mut signs: Vec<u32> = (0..last.div_ceil(32)).map(|_| rng.bits()).collect();
    if let (Some(word), false) = (signs.last_mut(), last.is_multiple_of(32)) {
        *word &= (1 << (last % 32)) - 1;
    }
    let mut layers: Vec<Layer<'_>> = parts
        .iter()
        .enumerate()
        .map(|(k, (inputs, counts, columns, values, biases))| {
            let relu = has_sum || k + 2 < widths.len();
            let activation = if relu { Activation::Relu } else { Activation::Identity };
            let csr = Csr::new(*inputs, counts, columns, values, activation).unwrap();
            Layer::Csr(csr.with_biases(biases).unwrap())
        })
        .collect();
    if has_sum {
        layers.push(Layer::Sum(Sum::new(last, &signs).unwrap()));
    }
    let view = View::new(Model::new(&layers).unwrap()).with_task(Task::Regression).unwrap();
    let mut words = vec![0; view.encoded_len() / 4];
    view.encode(bytemuck::cast_slice_mut(&mut words)).unwrap();
    words
}

/// A file of integers, its layers in blocks.
fn integers(seed: u64, widths: &[usize], has_sum: bool) -> Vec<u32> {
    let mut rng = Rng::new(seed, 2);
    let hidden = widths.len() - 1 - usize::from(!has_sum);
    let parts: Vec<_> = widths
        .windows(2)
        .enumerate()
        .map(|(k, pair)| {
            // A count of blocks is a byte: a row that has all of a window is held otherwise.
            let (counts, columns) = support(&mut rng, pair[0], pair[1], 2);
            let values: Vec<i8> = columns.iter().map(|_| rng.bits() as i8).collect();
            let mut factor = || Rescale::near(0.001 + 0.004 * rng.uniform()).unwrap().bits();
            let factors: Vec<u32> = match seed % 3 {
                0 if k >= hidden => Vec::new(),
                1 => vec![factor()],
                _ => (0..pair[1]).map(|_| factor()).collect(),
            };
            let biases: Vec<i32> = (0..if seed.is_multiple_of(2) { pair[1] } else { 0 })
                .map(|_| rng.bits() as i32 % 9000)
                .collect();
            (pair[0], counts, columns, values, factors, biases)
        })
        .collect();
    let last = *widths.last().unwrap();
    let signs: Vec<u32> = (0..last.div_ceil(32))
        .map(|k| 0x5555_5555 >> (32 * (k + 1)).saturating_sub(last))
        .collect();
    let layers: Vec<_> = parts
        .iter()
        .enumerate()
        .map(|(k, (inputs, counts, columns, values, factors, biases))| {
            let mut bits = vec![0; quantised::Mask::words(*inputs, counts.len())];
            quantised::Mask::mark(*inputs, counts, columns, &mut bits);
            let mask = quantised::Mask::new(*inputs, counts.len(), bits.leak(), values);
            let weights = Weights::Mask(mask.unwrap());
            let relu = k < hidden || seed.is_multiple_of(5);
            let activation = if relu { Activation::Relu } else { Activation::Identity };
            quantised::Layer::new(weights, factors, biases, activation).unwrap()
        })
        .collect();
    let sum = has_sum.then(|| Sum::new(last, &signs).unwrap());
    let model =
        quantised::Model::new(&layers, sum, Scales::new(0.5, 0.25, 3, -7).unwrap()).unwrap();
    let (scales, zeros) = (vec![0.5; widths[0]], vec![-3; widths[0]]);
    let columns = quantised::Columns::new(&scales, &zeros).unwrap();
    let model = model.with_columns(seed.is_multiple_of(3).then_some(columns)).unwrap();
    let choice = Choice::Prefer(Encoding::Blocks);
    let view = QuantisedView::new(model);
    let mut words = vec![0; view.encoded_len(choice) / 4];
    view.encode(choice, bytemuck::cast_slice_mut(&mut words)).unwrap();
    words
}

type Flash<'a> = SpiFlash<Chip<'a>>;
type Read = ReadError<BusFault>;

fn chip(bytes: &[u8]) -> Flash<'_> {
    SpiFlash::new(Chip::new(bytes), bytes.len() as u32)
}

/// What a model of floats in memory predicts.
fn in_memory(bytes: &[u8], x: &[f32]) -> tamis::Result<Vec<f32>> {
    let view = View::parse(bytes)?;
    let model = view.model();
    let (mut scratch, mut out) = (vec![0.0; model.scratch_len()], vec![0.0; model.outputs()]);
    let x: Vec<f32> = x.iter().cycle().take(model.inputs()).copied().collect();
    model.predict(&x, &mut scratch, &mut out).map(|()| out)
}

/// What the same model in a chip predicts, with a buffer of so many words.
fn streamed(flash: Flash<'_>, x: &[f32], words: usize) -> tamis::Result<Vec<f32>, Read> {
    let mut buffer = vec![0; words];
    let mut model = stream::Model::open(flash, 0, &mut buffer)?;
    let (mut scratch, mut out) = (vec![f32::NAN; model.scratch_len()], vec![0.0; model.outputs()]);
    let x: Vec<f32> = x.iter().cycle().take(model.inputs()).copied().collect();
    let done = model.predict(&x, &mut buffer, &mut scratch, &mut out);
    assert!(done.is_ok() || out.iter().all(|&y| y == 0.0), "outputs of a failed prediction");
    done.map(|()| out)
}

fn in_memory_integers(bytes: &[u8], x: &[u8]) -> tamis::Result<(Vec<i32>, usize)> {
    let view = QuantisedView::parse(bytes)?;
    let model = view.model();
    let (mut scratch, mut out) = (vec![0; model.scratch_len()], vec![0; model.outputs()]);
    let x: Vec<u8> = x.iter().cycle().take(model.inputs()).copied().collect();
    let class = model.classify(&x, &mut scratch, &mut out)?;
    Ok((out, class))
}

fn streamed_integers(
    flash: Flash<'_>,
    x: &[u8],
    words: usize,
) -> tamis::Result<(Vec<i32>, usize), Read> {
    let mut buffer = vec![0; words];
    let mut model = stream::QuantisedModel::open(flash, 0, &mut buffer)?;
    let (mut scratch, mut out) = (vec![-1; model.scratch_len()], vec![0; model.outputs()]);
    let x: Vec<u8> = x.iter().cycle().take(model.inputs()).copied().collect();
    let done = model.classify(&x, &mut buffer, &mut scratch, &mut out);
    assert!(done.is_ok() || out.iter().all(|&y| y == 0), "outputs of a failed prediction");
    done.map(|class| (out, class))
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

/// Gives the bytes the checksum that they should have.
fn mend(words: &mut [u32]) {
    let sum = checksum(bytemuck::cast_slice(words));
    words[3] = sum;
}

fn widths() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![1_usize..9, 30_usize..70, Just(300)], 2..5)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn streamed_predictions_are_bit_identical_to_in_memory(
        seed in any::<u64>(), widths in widths(), has_sum in any::<bool>(), words in LEAST_WORDS..90
    ) {
        let mut rng = Rng::new(seed, 3);
        let x: Vec<f32> = (0..widths[0]).map(|_| rng.normal()).collect();
        let file = floats(seed, &widths, has_sum);
        let bytes: &[u8] = bytemuck::cast_slice(&file);
        prop_assert_eq!(bits(&streamed(chip(bytes), &x, words).unwrap()), bits(&in_memory(bytes, &x).unwrap()));
        let x: Vec<u8> = (0..widths[0]).map(|_| rng.bits() as u8).collect();
        let file = integers(seed, &widths, has_sum);
        let bytes: &[u8] = bytemuck::cast_slice(&file);
        prop_assert_eq!(streamed_integers(chip(bytes), &x, words).unwrap(), in_memory_integers(bytes, &x).unwrap());
    }

    /// What is damaged in a way that the checksum does not tell is refused in the chip where it is
    /// in memory, and else predicts alike.
    #[test]
    fn streaming_refuses_files_that_memory_refuses(
        seed in 0_u64..40, at in any::<prop::sample::Index>(), word in any::<u32>(), bit in 0_u32..32, flips in any::<bool>()
    ) {
        let widths = [9, 6, 40];
        let sum = seed % 7 < 3;
        for (is_integers, mut file) in [(false, floats(seed, &widths, true)), (true, integers(seed, &widths, sum))] {
            let at = at.index(file.len());
            file[at] = if flips { file[at] ^ 1 << bit } else { word };
            mend(&mut file);
            let bytes: &[u8] = bytemuck::cast_slice(&file);
            let (one, other) = if is_integers {
                let of = |(y, class): (Vec<i32>, usize)| (y.iter().map(|&y| y as u32).collect(), class);
                let one = in_memory_integers(bytes, &[3, 200]).ok().map(of);
                (one, streamed_integers(chip(bytes), &[3, 200], 12).map(of))
            } else {
                let of = |y: Vec<f32>| (bits(&y), 0);
                (in_memory(bytes, &[1.0, -2.0]).ok().map(of), streamed(chip(bytes), &[1.0, -2.0], 12).map(of))
            };
            // A changed tag may make it one of another encoding.
            let is_same = one == other.clone().ok() || (one.is_some() && is_of_encoding(&other));
            prop_assert!(is_same, "word {at} {:#x}: {one:?}, {other:?}", file[at]);
        }
    }
}

fn is_of_encoding<T>(result: &tamis::Result<T, Read>) -> bool {
    matches!(result, Err(Error::Format { what, .. }) if what.starts_with("layer in "))
}

/// The scales of single inputs stand once, are of all inputs and are numbers, however a file is read.
#[test]
fn scales_of_inputs_are_checked_by_every_reader() {
    let (file, first, len) = (integers(3, &[5, 4, 3], false), 12, 3 + 2 * 5);
    let refused = |mut file: Vec<u32>| {
        mend(&mut file);
        let bytes: &[u8] = bytemuck::cast_slice(&file);
        assert!(in_memory_integers(bytes, &[3, 200]).is_err());
        assert!(streamed_integers(chip(bytes), &[3, 200], 12).is_err());
        // What the compiler reads.
        assert!(Lengths::of(bytes, true).is_err());
    };
    assert_eq!(file[first] & 0xffff, 13);
    assert!(Lengths::of(bytemuck::cast_slice(&file), true).is_ok());
    let mut twice = file.clone();
    twice.splice(first..first, file[first..first + len].iter().copied());
    twice[2] += 4 * len as u32;
    refused(twice);
    for wrong in [f32::NAN, 0.0, -1.0] {
        let mut other = file.clone();
        other[first + 3 + 4] = wrong.to_bits();
        refused(other);
    }
    let mut fewer = file.clone();
    fewer.drain(first + 3 + 5..first + len - 4);
    fewer.remove(first + 3);
    let cut = file.len() - fewer.len();
    (fewer[2], fewer[first + 1]) = (fewer[2] - 4 * cut as u32, fewer[first + 1] - 4 * cut as u32);
    fewer[first + 2] -= 1;
    refused(fewer);
}

#[test]
fn every_changed_bit_and_every_cut_is_refused() {
    for (is_integers, file) in
        [(false, floats(4, &[5, 4], true)), (true, integers(4, &[5, 4], true))]
    {
        let bytes: &[u8] = bytemuck::cast_slice(&file);
        let opens = |bytes: &[u8]| {
            if is_integers {
                streamed_integers(chip(bytes), &[1], 12).is_ok()
            } else {
                streamed(chip(bytes), &[1.0], 12).is_ok()
            }
        };
        assert!(opens(bytes));
        for bit in 0..8 * bytes.len() {
            let mut changed = bytes.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(!opens(&changed), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(!opens(&bytes[..len]), "{len} bytes");
        }
    }
}

#[test]
fn failed_read_reports_its_address_and_no_prediction() {
    let file = integers(2, &[40, 12, 3], false);
    let bytes: &[u8] = bytemuck::cast_slice(&file);
    let mut last = None;
    for broken in 0.. {
        let flash = SpiFlash::new(Chip::new(bytes).failing_in(broken), bytes.len() as u32);
        match streamed_integers(flash, &[9, 8, 7], 24) {
            Err(Error::Source(ReadError::Bus { at, source: BusFault::Broken })) => {
                last = Some((broken, at));
            }
            Ok(_) => break,
            Err(error) => panic!("{error:?}"),
        }
    }
    let (reads, at) = last.unwrap();
    assert!(reads > 20 && (at as usize) < bytes.len(), "{reads} reads, the last at {at}");
}

#[test]
fn streamed_bytes_can_be_checked_again_later() {
    let file = floats(1, &[8, 3], true);
    let mut nor = Nor::<2048, 4, 256>::new(0, Tear::Before);
    let bytes: &[u8] = bytemuck::cast_slice(&file);
    nor.bytes()[512..512 + bytes.len()].copy_from_slice(bytes);
    let mut buffer = [0; LEAST_WORDS];
    let mut model = stream::Model::open(&mut nor, 512, &mut buffer).unwrap();
    assert_eq!(model.check(&mut buffer), Ok(()));
    model.release().bytes()[600] ^= 1;
    let again = stream::Model::open(&mut nor, 512, &mut buffer);
    assert!(matches!(again, Err(Error::Format { what: "checksum", at: 12, .. })));
    let odd = stream::Model::open(&mut nor, 514, &mut buffer);
    assert!(matches!(odd, Err(Error::Length { expected: 512, got: 514, .. })));
    let beyond = stream::Model::open(&mut nor, 2044, &mut buffer);
    assert!(matches!(beyond, Err(Error::Range { max: 2048, got: 2068, .. })));
    let short = stream::Model::open(&mut nor, 512, &mut buffer[1..]);
    assert!(matches!(short, Err(Error::Budget { needed: 48, got: 44 })));
}

#[test]
fn model_in_slot_is_read_in_place() {
    let file = floats(3, &[20, 8], true);
    let bytes: &[u8] = bytemuck::cast_slice(&file);
    let mut nor = Nor::<4096, 4, 512>::new(0, Tear::Before);
    let mut slots = Slots::<_, 64>::open(&mut nor, 0..4096).unwrap();
    let entry = slots.store(1, bytes).unwrap();
    let mut buffer = [0; 24];
    let mut model = stream::Model::open(slots.flash(), entry.range().start, &mut buffer).unwrap();
    let (mut scratch, mut out) = (vec![0.0; model.scratch_len()], [0.0]);
    model.predict(&[0.5; 20], &mut buffer, &mut scratch, &mut out).unwrap();
    assert_eq!(bits(&out), bits(&in_memory(bytes, &[0.5]).unwrap()));
}

#[test]
fn models_beyond_16_mib_use_longer_addresses() {
    const START: usize = (16 << 20) + 4096;
    let file = floats(5, &[3000, 50, 10], false);
    let bytes: &[u8] = bytemuck::cast_slice(&file);
    let mut all = vec![0xff; START];
    all.extend_from_slice(bytes);
    let mut buffer = [0; 96];
    let flash = SpiFlash::new(Chip::new(&all), all.len() as u32);
    let mut model = stream::Model::open(flash, START as u32, &mut buffer).unwrap();
    let (mut scratch, mut out) = (vec![0.0; model.scratch_len()], [0.0; 10]);
    model.predict(&[0.25; 3000], &mut buffer, &mut scratch, &mut out).unwrap();
    assert_eq!(bits(&out), bits(&in_memory(bytes, &[0.25]).unwrap()));
}

/// The operations of one read.
fn read(command: &[u8], bytes: &[u8]) -> [Transaction<u8>; 4] {
    [
        Transaction::transaction_start(),
        Transaction::write_vec(command.to_vec()),
        Transaction::read_vec(bytes.to_vec()),
        Transaction::transaction_end(),
    ]
}

#[test]
fn read_is_one_command_followed_by_its_address() {
    let expected = [read(&[0x03, 0x12, 0x34, 0x56], &[1, 2, 3]), read(&[0x03, 0, 0, 7], &[9])];
    let mut flash = SpiFlash::new(Mock::new(expected.as_flattened()), 1 << 24);
    let mut bytes = [0; 3];
    flash.read(0x12_3456, &mut bytes).unwrap();
    assert_eq!(bytes, [1, 2, 3]);
    flash.read(7, &mut bytes[..1]).unwrap();
    let beyond = flash.read((1 << 24) - 2, &mut bytes).unwrap_err();
    assert_eq!(beyond, ReadError::Bounds { end: (1 << 24) + 1, capacity: 1 << 24 });
    flash.release().done();

    let expected = read(&[0x13, 0x01, 0x02, 0x03, 0x04], &[5]);
    let mut flash = SpiFlash::new(Mock::new(&expected), 1 << 25);
    flash.read(0x0102_0304, &mut bytes[..1]).unwrap();
    flash.release().done();
}

#[test]
fn file_header_is_read_first() {
    let file = floats(7, &[2, 1], false);
    let bytes: &[u8] = bytemuck::cast_slice(&file);
    let mut damaged = bytes[..24].to_vec();
    damaged[0] = 0;
    let expected = read(&[0x03, 0, 0, 0], &damaged);
    let mut flash = SpiFlash::new(Mock::new(&expected), 4096);
    let refused = stream::Model::open(&mut flash, 0, &mut [0; 24]).map(|_| ());
    assert!(
        matches!(refused, Err(Error::Format { what: "magic of a model", at: 0, .. })),
        "{refused:?}"
    );
    flash.release().done();
    assert_eq!(
        ReadError::Bus { at: 16, source: ErrorKind::Other }.to_string(),
        "the bus failed in the read at 0x10: Other"
    );
}
