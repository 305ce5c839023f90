//! Computations whose bits must be the same on the host and on every microcontroller.
//!
//! A case is a plain function that returns a digest of every bit it computed. The firmware runs all
//! of them on each emulated board, the `cargo ci` runner runs them on the host, and a test holds
//! the host to the pinned values. Buffers are locals, so that the stack's high water counts them;
//! the smallest board has 16 KiB of RAM.

mod anneal;
mod deep;
mod deployed;
mod digest;
mod dynamic;
pub mod learn;
mod masked;
mod monitor;
mod operator;
mod predict;
mod quantised;
mod recover;
mod streamed;
mod train;
mod wire;

pub use digest::{Digest, Probe};
pub use train::{DIGITS_SEED, IMAGES, LABELS, PIXELS};

use tamis::base::math;
use tamis::base::rng::{Permutation, Rng, stream};

/// One computation.
#[derive(Debug, Clone, Copy)]
pub struct Case<P> {
    /// What the result table calls it.
    pub name: &'static str,
    /// The digest that it must have everywhere.
    pub pinned: u32,
    /// Most bytes of RAM it may use on a board: static data of the whole firmware, and stack.
    pub ram: u32,
    /// Computes the digest.
    pub run: fn(&mut P) -> u32,
}

impl<P: Probe + 'static> Case<P> {
    /// The cases of the firmware's first image. To add one, add an entry.
    pub const FIRST: &'static [Self] = &[
        Self { name: "math", pinned: 0xdbaf_5d1d, ram: 5120, run: elementary::<P> },
        Self { name: "rng", pinned: 0x281f_7766, ram: 2560, run: randomness::<P> },
        Self {
            name: "conformance",
            pinned: 0x7dc9_c4a6,
            ram: 8192,
            run: operator::conformance::<P>,
        },
        Self { name: "predict", pinned: 0x07d2_1fe3, ram: 2880, run: predict::predict::<P> },
        Self { name: "train", pinned: 0xf856_b05d, ram: 10_240, run: train::train::<P> },
        Self { name: "recover", pinned: 0xcf32_4a7d, ram: 12_032, run: recover::recover::<P> },
    ];

    /// Those of its second image: all of them together outgrow the flash of the smallest board.
    pub const SECOND: &'static [Self] = &[
        Self { name: "deep", pinned: 0x9a4a_ab85, ram: 12_160, run: deep::deep::<P> },
        Self { name: "quantised", pinned: 0xe6d0_5965, ram: 10_240, run: quantised::predict::<P> },
        Self { name: "wire", pinned: 0xe803_5af1, ram: 4864, run: wire::damaged::<P> },
        Self { name: "nothing", pinned: 0x811c_9dc5, ram: 1280, run: deployed::nothing::<P> },
        Self { name: "tables", pinned: 0xce41_1207, ram: 1664, run: deployed::tables::<P> },
        Self { name: "blocks", pinned: 0x9119_856b, ram: 1792, run: deployed::blocks::<P> },
        Self { name: "embedded", pinned: 0x3aaf_2f5a, ram: 1792, run: deployed::embedded::<P> },
        Self { name: "code", pinned: 0xa0e8_b78e, ram: 1408, run: deployed::straight::<P> },
        Self { name: "trained", pinned: 0x47b6_ac9f, ram: 1792, run: deployed::trained::<P> },
        Self { name: "float-tables", pinned: 0x71b4_0e55, ram: 1920, run: deployed::floats::<P> },
        Self { name: "file", pinned: 0x9119_856b, ram: 3072, run: deployed::file::<P> },
        Self {
            name: "float-file",
            pinned: 0x1225_82a8,
            ram: 2400,
            run: deployed::file_of_floats::<P>,
        },
        Self { name: "learn", pinned: 0xa201_321e, ram: 12_288, run: learn::learn::<P> },
        Self { name: "stream", pinned: 0x4159_9209, ram: 11_264, run: streamed::predict::<P> },
    ];

    /// Those of its third image.
    pub const THIRD: &'static [Self] = &[
        Self { name: "anneal", pinned: 0x3ac8_34c1, ram: 10_240, run: anneal::classify::<P> },
        Self { name: "monitor", pinned: 0xa7dd_c2b1, ram: 8800, run: monitor::watch::<P> },
        Self { name: "shrink", pinned: 0xa2dc_59a7, ram: 10_240, run: deep::shrink::<P> },
        Self { name: "dynamic", pinned: 0xf581_6777, ram: 15_360, run: dynamic::train::<P> },
        Self { name: "masked", pinned: 0x16dd_ec16, ram: 13_824, run: masked::train::<P> },
    ];

    /// Those of an image for [`Self::LARGE_CORE`] alone: they need more RAM than the smallest board
    /// has.
    pub const LARGE: &'static [Self] =
        &[Self { name: "mask", pinned: 0xefe6_3ae9, ram: 48 * 1024, run: masked::large_mask::<P> }];

    /// The core that runs [`Self::LARGE`].
    pub const LARGE_CORE: &'static str = "Cortex-M4F";

    /// Those that every core runs.
    pub fn everywhere() -> impl Iterator<Item = &'static Self> {
        Self::FIRST.iter().chain(Self::SECOND).chain(Self::THIRD)
    }

    /// Every case.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        Self::everywhere().chain(Self::LARGE)
    }
}

/// Elementary functions on ordinary and extreme arguments, and sums across the block length of
/// [`math::dot`].
fn elementary<P: Probe>(probe: &mut P) -> u32 {
    let mut digest = Digest::default();
    let mut rng = Rng::new(1, stream::USER);
    let extreme = [0.0, -0.0, f32::MIN_POSITIVE / 4.0, f32::MAX, f32::INFINITY, f32::NAN];
    for value in extreme {
        functions(value, &mut digest);
        functions(-value, &mut digest);
    }
    for _ in 0..500 {
        functions(40.0 * rng.normal(), &mut digest);
    }
    let (mut a, mut b) = ([0.0; 300], [0.0; 300]);
    rng.fill_normal(&mut a);
    rng.fill_normal(&mut b);
    for len in [0, 1, 7, 8, 255, 256, 257, 300] {
        digest.float(math::dot(a.get(..len).unwrap_or_default(), &b));
    }
    probe.start();
    let whole = math::dot(&a, &b);
    probe.stop("dot", a.len() as u32);
    math::axpy(whole, &a, &mut b);
    b.iter().for_each(|&value| digest.float(value));
    digest.value()
}

fn functions(x: f32, digest: &mut Digest) {
    let (sin, cos) = math::sin_cos(x);
    for value in [math::exp(x), math::ln(x), math::sqrt(x), sin, cos] {
        digest.float(value);
    }
}

/// Every kind of draw, from several seeds and streams.
fn randomness<P: Probe>(_probe: &mut P) -> u32 {
    let mut digest = Digest::default();
    for seed in 0..4 {
        let mut rng = Rng::new(seed, stream::GATE + seed);
        for _ in 0..250 {
            digest.word(rng.bits());
            digest.word(rng.below(1000));
            digest.float(rng.uniform());
            digest.float(rng.normal());
        }
        let order = Permutation::new(seed, stream::ROWS, 200 + seed as usize);
        (0..200).for_each(|i| digest.word(order.get(i) as u32));
    }
    digest.value()
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::{format, string::String, vec::Vec};

    #[test]
    fn digests_on_the_host_are_the_pinned_ones() {
        let digests = |digest: fn(&Case<()>) -> u32| -> Vec<(&str, String)> {
            Case::all().map(|case| (case.name, format!("{:#010x}", digest(case)))).collect()
        };
        assert_eq!(digests(|case| (case.run)(&mut ())), digests(|case| case.pinned));
    }

    #[test]
    fn digest_depends_on_every_word_and_its_position() {
        let of = |words: &[u32]| {
            let mut digest = Digest::default();
            words.iter().for_each(|&word| digest.word(word));
            digest.value()
        };
        assert_eq!(of(&[]), 0x811c_9dc5);
        // FNV-1a of the four bytes "foob" continues that of "foo"; the published value for "foobar"
        // needs six.
        assert_eq!(of(&[u32::from_le_bytes(*b"foob")]), 0x3f5076ef);
        assert_ne!(of(&[1, 2]), of(&[2, 1]));
    }
}
