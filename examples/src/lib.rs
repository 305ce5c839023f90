//! Numbered, runnable examples of Tamis on a host, in the order in which to read them:
//!
//! | example | shows |
//! |---|---|
//! | `1_recover_planted` | find the weights of a sparse network again from its answers |
//! | `2_train_on_csv` | a table in, a model file out, and predictions from the file |
//! | `3_fit_a_byte_budget` | the largest network that fits a device's RAM, and training within those bytes |
//! | `4_deploy` | a model into the firmware of `examples/firmware/deploy` |
//! | `5_firmware` | integers for the firmware of four chips, `examples/firmware/chips` |
//!
//! Run one with `cargo run --release -p tamis-examples --example 1_recover_planted`. This library
//! holds the data that examples 3 and 4 share.

use tamis_host::Result;
use tamis_host::data::{Values, digits, select};

/// Inputs of one picture: 8×8 pixels.
pub const PIXELS: usize = 64;

/// `samples` pictures of the digits 0 and 1, drawn from a seed: `samples`×64 bytes in random order,
/// and one label each, 0 or 1.
///
/// # Errors
/// None for a number of samples from 1 on that fits in memory.
///
/// ```
/// let (pixels, labels) = tamis_examples::zeros_and_ones(20, 7)?;
/// assert_eq!((pixels.len(), labels.len()), (20 * 64, 20));
/// assert!(labels.contains(&0.0) && labels.contains(&1.0));
/// # Ok::<(), tamis_host::Error>(())
/// ```
pub fn zeros_and_ones(samples: usize, seed: u64) -> Result<(Vec<u8>, Vec<f32>)> {
    // Every ten pictures in a row hold each digit once, in random order.
    let (images, labels) =
        digits::generate(samples.saturating_mul(5).next_multiple_of(10), 8, seed)?;
    let labels: Vec<f32> = labels.into_iter().map(f32::from).collect();
    let (images, mut labels) = select::keep_labels(images, &labels, &[0.0, 1.0])?;
    let mut pixels = match images.values {
        Values::U8(pixels) => pixels,
        Values::F32(_) => return Err(tamis_host::Error::new("digits are bytes")),
    };
    labels.truncate(samples);
    pixels.truncate(samples * PIXELS);
    Ok((pixels, labels))
}
