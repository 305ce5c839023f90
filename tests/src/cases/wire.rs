//! A model that was damaged on its way is refused on the device.

use super::digest::{Digest, Probe};
use tamis::network::gates::Signs;
use tamis::network::net::Network;
use tamis::network::weights::Weights;
use tamis::store::wire::{self, Aligned, Task, View};

const INDEX: [u32; 12] = [0, 3, 4, 9, 11, 12, 17, 30, 31, 32, 38, 39];
const VALUE: [f32; 12] = [0.5, -1.25, 3.0, 0.125, -0.75, 2.5, 1.0, -2.0, 0.25, 1.5, -0.5, 4.0];
const INPUTS: usize = 8;
const HIDDEN: usize = 5;
const LENGTH: usize = wire::max_len(HIDDEN, INDEX.len());

/// Writes a model and reads it back, then after every flipped bit and every shortening. Digest of
/// the bytes, the prediction and the kinds of errors; 0 if damage goes unseen or the model does not
/// come back.
pub(super) fn damaged<P: Probe>(probe: &mut P) -> u32 {
    let mut digest = Digest::default();
    let mut bytes = Aligned([0; LENGTH]);
    let Some(len) = written(&mut bytes.0) else { return 0 };
    let Some(bytes) = bytes.0.get_mut(..len) else { return 0 };
    if sound(probe, &mut digest, bytes).is_err() {
        return 0;
    }
    for at in 0..8 * len {
        flip(bytes, at);
        let Err(error) = View::parse(bytes) else { return 0 };
        digest.word(kind(&error));
        flip(bytes, at);
    }
    for short in 0..len {
        match bytes.get(..short).map(View::parse) {
            Some(Err(error)) => digest.word(kind(&error)),
            _ => return 0,
        }
    }
    digest.value()
}

/// Reads the model and predicts.
fn sound<P: Probe>(probe: &mut P, digest: &mut Digest, bytes: &[u8]) -> tamis::Result<()> {
    bytes.iter().for_each(|&byte| digest.word(byte.into()));
    probe.start();
    let view = View::parse(bytes);
    probe.stop("parsing, a byte", bytes.len() as u32);
    let mut out = [0.0];
    let row = [1.0, -2.0, 3.0, 0.5, -0.25, 4.0, 0.0, 2.0];
    view?.model().predict(&row, &mut [], &mut out)?;
    digest.float(out[0]);
    Ok(())
}

fn written(bytes: &mut [u8]) -> Option<usize> {
    let weights = Weights::new(INPUTS, HIDDEN, &INDEX, &VALUE).ok()?;
    wire::encode(Network::signed(weights, Signs::Balanced), HIDDEN, Some(Task::Regression), bytes)
        .ok()
}

fn flip(bytes: &mut [u8], bit: usize) {
    if let Some(byte) = bytes.get_mut(bit / 8) {
        *byte ^= 1 << (bit % 8);
    }
}

/// Which error, and where.
fn kind(error: &tamis::Error) -> u32 {
    match error {
        tamis::Error::Format { at, .. } => *at as u32,
        tamis::Error::Length { .. } => 1 << 16,
        tamis::Error::Range { .. } => 2 << 16,
        tamis::Error::Version { got, .. } => 4 << 16 | u32::from(*got),
        _ => 3 << 16,
    }
}
