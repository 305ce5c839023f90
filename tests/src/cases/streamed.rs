//! Prediction from models that lie in a chip on an SPI bus, with the bits of models in memory.

use super::digest::{Digest, Probe};
use crate::simulated::{BusFault, Chip};
use core::hint::black_box;
use tamis::Error;
use tamis::data::spi::{ReadError, SpiFlash};
use tamis::infer::model::{Activation, Layer, Model, Scaled, Sum};
use tamis::infer::quantised;
use tamis::store::stream;
use tamis::store::wire::{Aligned, Choice, QuantisedView, Task, View};

const INPUTS: usize = 300;
const HIDDEN: usize = 40;
const NNZ: usize = 200;
/// Room for a file of either kind.
const FILE: usize = 1536;

/// The weights of 40 neurons: five each, of which the second layer of integers has two outputs.
struct Weights {
    counts: [u16; HIDDEN],
    columns: [u16; NNZ],
    values: [f32; NNZ],
    integers: [i8; NNZ],
}

static WEIGHTS: Weights = {
    let row = NNZ / HIDDEN;
    let mut all = Weights {
        counts: [row as u16; HIDDEN],
        columns: [0; NNZ],
        values: [0.0; NNZ],
        integers: [0; NNZ],
    };
    let (mut k, mut state) = (0, 1_u32);
    while k < NNZ {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        all.columns[k] =
            ((k % row) * (INPUTS / row) + (state >> 16) as usize % (INPUTS / row)) as u16;
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        all.integers[k] = (state >> 24) as i8;
        all.values[k] = all.integers[k] as f32 / 77.0;
        k += 1;
    }
    all
};

static ROW: [u8; INPUTS] = {
    let (mut row, mut k) = ([0; INPUTS], 0);
    while k < INPUTS {
        row[k] = (k * k % 251) as u8;
        k += 1;
    }
    row
};

/// Digest of the predictions of both kinds of models in memory; 0 unless the same files give the
/// same bits from the chip, and a bus that breaks at any read gives its error and no prediction.
pub(super) fn predict<P: Probe>(probe: &mut P) -> u32 {
    let mut digest = Digest::default();
    let mut file = Aligned([0; FILE]);
    let done = floats(probe, &mut digest, &mut file.0)
        .and_then(|()| integers(probe, &mut digest, &mut file.0));
    if done.is_some() { digest.value() } else { 0 }
}

/// A model of floats.
#[inline(never)]
fn floats<P: Probe>(probe: &mut P, digest: &mut Digest, file: &mut [u8; FILE]) -> Option<()> {
    let file = file_of_floats(file)?;
    let row = Scaled { bytes: black_box(&ROW), scale: 0.01 };
    let (mut scratch, mut expected, mut f) = ([0.0; HIDDEN + 1], [0.0], [f32::NAN]);
    View::parse(file).ok()?.model().predict_from(&row, &mut [], &mut expected).ok()?;
    digest.float(expected[0]);

    let mut buffer = [0; 24];
    let flash = SpiFlash::new(Chip::new(file), file.len() as u32);
    let mut model = stream::Model::open(flash, 0, &mut buffer).ok()?;
    probe.start();
    let done = model.predict_from(&row, &mut buffer, &mut scratch, &mut f);
    probe.stop("floats over SPI, a weight", NNZ as u32);
    done.ok()?;
    let reads = model.release().release().reads();
    digest.word(reads);
    for broken in 0..reads {
        let flash = SpiFlash::new(Chip::new(file).failing_in(broken), file.len() as u32);
        let mut none = [7.0];
        let ended = stream::Model::open(flash, 0, &mut buffer)
            .and_then(|mut model| model.predict_from(&row, &mut buffer, &mut scratch, &mut none));
        let Err(Error::Source(ReadError::Bus { source: BusFault::Broken, .. })) = ended else {
            return None;
        };
        none[0].eq(&7.0).then_some(())?;
    }
    f[0].to_bits().eq(&expected[0].to_bits()).then_some(())
}

#[inline(never)]
fn file_of_floats(out: &mut [u8; FILE]) -> Option<&[u8]> {
    let Weights { counts, columns, values, .. } = black_box(&WEIGHTS);
    let hidden =
        tamis::infer::model::Csr::new(INPUTS, counts, columns, values, Activation::Relu).ok()?;
    let sum = Sum::new(HIDDEN, &[0xdead_beef, 0x5a]).ok()?;
    let model = Model::new(&[Layer::Csr(hidden), Layer::Sum(sum)]).ok()?;
    let len = View::new(model).with_task(Task::BINARY).ok()?.encode(out).ok()?;
    out.get(..len)
}

/// A model of integers.
#[inline(never)]
fn integers<P: Probe>(probe: &mut P, digest: &mut Digest, file: &mut [u8; FILE]) -> Option<()> {
    let file = file_of_integers(file)?;
    let (mut scratch, mut expected, mut y) = ([0; HIDDEN + HIDDEN / 4], [0; 2], [0; 2]);
    let view = QuantisedView::parse(file).ok()?;
    view.model().predict(black_box(&ROW), &mut scratch, &mut expected).ok()?;
    expected.iter().for_each(|&y| digest.word(y as u32));

    let mut buffer = [0; 24];
    let flash = SpiFlash::new(Chip::new(file), file.len() as u32);
    let mut model = stream::QuantisedModel::open(flash, 0, &mut buffer).ok()?;
    probe.start();
    let done = model.predict(black_box(&ROW), &mut buffer, &mut scratch, &mut y);
    probe.stop("blocks over SPI, a weight", NNZ as u32 + HIDDEN as u32);
    done.ok()?;
    digest.word(model.release().release().reads());
    (y == expected).then_some(())
}

#[inline(never)]
fn file_of_integers(out: &mut [u8; FILE]) -> Option<&[u8]> {
    use quantised::{Encoding, Mask, Rescale, Scales, Weights};
    let all = black_box(&WEIGHTS);
    let factors = [Rescale::near(1.0 / 300.0).ok()?.bits()];
    let biases: [i32; HIDDEN] = core::array::from_fn(|k| 90 * k as i32 - 1000);
    let mut bits = [0; Mask::words(INPUTS, HIDDEN)];
    Mask::mark(INPUTS, &all.counts, &all.columns, &mut bits);
    let hidden = Mask::new(INPUTS, HIDDEN, &bits, &all.integers).ok()?;
    let hidden =
        quantised::Layer::new(Weights::Mask(hidden), &factors, &biases, Activation::Relu).ok()?;
    let columns: [u16; HIDDEN] = core::array::from_fn(|k| (2 * (k % 20) + k / 20) as u16);
    let mut bits = [0; Mask::words(HIDDEN, 2)];
    Mask::mark(HIDDEN, &[20, 20], &columns, &mut bits);
    let last = Mask::new(HIDDEN, 2, &bits, all.integers.first_chunk::<HIDDEN>()?).ok()?;
    let last =
        quantised::Layer::new(Weights::Mask(last), &[], &[5, -6], Activation::Identity).ok()?;
    let model =
        quantised::Model::new(&[hidden, last], None, Scales::new(0.1, 0.2, 0, 0).ok()?).ok()?;
    let view = QuantisedView::new(model).with_task(Task::Multiclass).ok()?;
    let len = view.encode(Choice::Prefer(Encoding::Blocks), out).ok()?;
    out.get(..len)
}
