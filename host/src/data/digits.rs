//! Rendered digits: labelled pictures drawn from a seed.
//!
//! A digit is a few strokes (polylines and elliptic arcs) in a box one unit high. Every image bends
//! the box by a random 3×3 lattice of control points, then scales, slants, turns and shifts it,
//! draws the strokes with a pen of random width and darkness, and adds pixel noise. With p a point
//! of the bent glyph, θ the turn, k the slant, a the width over the height, h the height in pixels
//! and t the shift, a pixel sits at
//!
//! `q = side/2 + t + h R(θ) [a (p_x − k p_y), p_y]`,
//!
//! and its ink is the share of a pixel that the pen covers at the distance from the nearest stroke.
//!
//! Image `i` is a function of (seed, i) alone, the same on every machine and with any threads.

use crate::{Error, Result};
use rayon::prelude::*;
use tamis::base::math;
use tamis::base::rng::{Rng, stream};

use super::matrix::zeros;
use super::{Matrix, Values};

/// Number of classes: the digits 0 to 9.
pub const CLASSES: usize = 10;
/// Smallest side of an image, in pixels.
pub const MIN_SIDE: usize = 8;
/// Largest side of an image, in pixels.
pub const MAX_SIDE: usize = 64;

/// Draws `samples` digits of `side` × `side` pixels: the images, `samples × side²` bytes, and their
/// labels, 0 to 9.
///
/// A pixel is 0 without ink. Every ten images from the start hold each digit once, in an order of
/// their own.
///
/// ```
/// use tamis_host::data::digits;
/// let (images, labels) = digits::generate(200, 8, 0)?;
/// assert_eq!((images.rows, images.cols, labels.len()), (200, 64, 200));
/// assert_eq!(labels.iter().filter(|&&l| l == 7).count(), 20);
/// # Ok::<(), tamis_host::Error>(())
/// ```
///
/// # Errors
/// If `side` lies outside [`MIN_SIDE`]`..=`[`MAX_SIDE`], or the images do not fit in memory.
pub fn generate(samples: usize, side: usize, seed: u64) -> Result<(Matrix, Vec<u8>)> {
    check_side(side)?;
    let cols = side * side;
    let too_many = || {
        Error::new("the digits do not fit in memory")
            .got(format!("{samples} images of {cols} bytes"))
            .help("ask for fewer samples")
    };
    let mut pixels = zeros(samples, cols).ok_or_else(too_many)?;
    let mut labels = zeros(samples, 1).ok_or_else(too_many)?;
    pixels.par_chunks_exact_mut(cols).zip(labels.par_iter_mut()).enumerate().for_each(
        |(i, (image, label))| {
            *label = label_of(seed, i as u64);
            draw(*label, &mut Rng::new(seed, IMAGES + i as u64), side, image);
        },
    );
    Ok((Matrix { rows: samples, cols, values: Values::U8(pixels) }, labels))
}

/// Checks that digits can be drawn on `side` × `side` pixels.
pub(crate) fn check_side(side: usize) -> Result<()> {
    if (MIN_SIDE..=MAX_SIDE).contains(&side) {
        return Ok(());
    }
    Err(Error::new("digits cannot be drawn at this size")
        .mismatch(format!("a side (--side) of {MIN_SIDE} to {MAX_SIDE} pixels"), side)
        .help("8 and 28 are common sides"))
}

/// Streams of the order of the labels, one per ten images.
const LABELS: u64 = stream::USER + (0xd1 << 32);
/// Streams of the images, one each.
const IMAGES: u64 = stream::USER + (0xd2 << 32);

type Point = [f32; 2];

/// A piece of a glyph; x runs to the right within ±0.3, y down within ±0.5.
enum Stroke {
    Line(&'static [Point]),
    /// Centre, radii, and the angles between which the pen runs, in turns: 0 right, 1/4 down, 1/2
    /// left, 3/4 up.
    Arc(Point, Point, [f32; 2]),
}
use Stroke::{Arc, Line};

/// Shapes of each digit; an image takes one of them at random.
static GLYPHS: [&[&[Stroke]]; CLASSES] = [
    &[&[Arc([0.0, 0.0], [0.28, 0.5], [0.0, 1.0])]],
    &[
        &[Line(&[[0.0, -0.5], [0.0, 0.5]])],
        &[Line(&[[-0.18, -0.3], [0.04, -0.5], [0.04, 0.5]])],
        &[Line(&[[-0.18, -0.3], [0.02, -0.5], [0.02, 0.5]]), Line(&[[-0.2, 0.5], [0.22, 0.5]])],
    ],
    &[&[
        Arc([0.0, -0.24], [0.27, 0.26], [0.52, 1.1]),
        Line(&[[0.218, -0.087], [-0.28, 0.5], [0.29, 0.5]]),
    ]],
    &[
        &[
            Arc([-0.02, -0.25], [0.25, 0.25], [0.56, 1.25]),
            Arc([-0.02, 0.25], [0.28, 0.25], [0.75, 1.44]),
        ],
        &[
            Line(&[[-0.25, -0.5], [0.24, -0.5], [-0.02, -0.08]]),
            Arc([-0.02, 0.21], [0.28, 0.29], [0.75, 1.42]),
        ],
    ],
    &[
        &[Line(&[[-0.2, -0.5], [-0.28, 0.08], [0.29, 0.08]]), Line(&[[0.14, -0.35], [0.14, 0.5]])],
        &[Line(&[[0.12, 0.5], [0.12, -0.5], [-0.29, 0.17], [0.3, 0.17]])],
    ],
    &[&[
        Line(&[[0.25, -0.5], [-0.2, -0.5], [-0.23, -0.01]]),
        Arc([-0.01, 0.18], [0.27, 0.32], [0.6, 1.42]),
    ]],
    &[
        &[Arc([0.0, 0.2], [0.27, 0.3], [0.0, 1.0]), Arc([0.18, 0.2], [0.45, 0.7], [0.5, 0.73])],
        &[Arc([0.0, 0.2], [0.27, 0.3], [0.0, 1.0]), Line(&[[0.12, -0.5], [-0.22, 0.03]])],
    ],
    &[
        &[Line(&[[-0.27, -0.5], [0.28, -0.5], [-0.06, 0.5]])],
        &[Line(&[[-0.27, -0.5], [0.28, -0.5], [-0.06, 0.5]]), Line(&[[-0.14, 0.02], [0.24, 0.02]])],
    ],
    &[&[Arc([0.0, -0.25], [0.22, 0.25], [0.0, 1.0]), Arc([0.0, 0.25], [0.27, 0.25], [0.0, 1.0])]],
    &[
        &[Arc([0.0, -0.2], [0.26, 0.3], [0.0, 1.0]), Arc([-0.19, -0.2], [0.45, 0.7], [0.0, 0.23])],
        &[Arc([0.0, -0.2], [0.26, 0.3], [0.0, 1.0]), Line(&[[0.26, -0.2], [0.2, 0.5]])],
    ],
];

const PIECES: f32 = 24.0;

/// How one image differs from the plain glyph.
struct Hand {
    lattice: [[Point; 3]; 3],
    turn: (f32, f32),
    slant: f32,
    /// Width and height of the unit box, in pixels.
    size: Point,
    centre: Point,
    /// Half the width of the pen, in pixels.
    pen: f32,
    /// Full ink, and the standard deviation of the noise, in grey levels.
    ink: f32,
    noise: f32,
}

impl Hand {
    fn new(rng: &mut Rng, side: f32) -> Self {
        let mut between = |low: f32, high: f32| low + (high - low) * rng.uniform();
        let height = side * between(0.64, 0.8);
        let (slant, angle) = (between(-0.15, 0.35), between(-0.2, 0.2));
        Self {
            turn: math::sin_cos(angle),
            slant,
            size: [height * between(0.8, 1.2), height],
            centre: [side * between(0.44, 0.56), side * between(0.44, 0.56)],
            pen: 0.5 * side * between(0.1, 0.15),
            ink: between(180.0, 255.0),
            noise: between(4.0, 24.0),
            lattice: core::array::from_fn(|_| {
                core::array::from_fn(|_| [0.09 * rng.normal(), 0.09 * rng.normal()])
            }),
        }
    }

    /// From the glyph's box to pixels.
    fn place(&self, [x, y]: Point) -> Point {
        let [bend_x, bend_y] = self.bend(x / 0.6 + 0.5, y + 0.5);
        let (x, y) = (x + bend_x, y + bend_y);
        let (x, y) = (self.size[0] * (x - self.slant * y), self.size[1] * y);
        let (sin, cos) = self.turn;
        [self.centre[0] + cos * x - sin * y, self.centre[1] + sin * x + cos * y]
    }

    /// The displacement at (u, v): the lattice under quadratic Bernstein weights.
    fn bend(&self, u: f32, v: f32) -> Point {
        let (across, down) = (bernstein(u), bernstein(v));
        let mut bend = [0.0; 2];
        for (row, weight) in self.lattice.iter().zip(down) {
            for (offset, across) in row.iter().zip(across) {
                bend[0] += weight * across * offset[0];
                bend[1] += weight * across * offset[1];
            }
        }
        bend
    }
}

fn bernstein(t: f32) -> [f32; 3] {
    [(1.0 - t) * (1.0 - t), 2.0 * t * (1.0 - t), t * t]
}

/// The label of image `index`: ten images in a row hold every digit once, shuffled.
fn label_of(seed: u64, index: u64) -> u8 {
    let mut rng = Rng::new(seed, LABELS + index / CLASSES as u64);
    let mut order: [u8; CLASSES] = core::array::from_fn(|i| i as u8);
    for last in (1..CLASSES).rev() {
        order.swap(last, rng.below(last as u32 + 1) as usize);
    }
    order[(index % CLASSES as u64) as usize]
}

fn draw(digit: u8, rng: &mut Rng, side: usize, image: &mut [u8]) {
    let shapes = GLYPHS[usize::from(digit)];
    let shape = shapes[rng.below(shapes.len() as u32) as usize];
    let hand = Hand::new(rng, side as f32);
    let mut cover = [0.0_f32; MAX_SIDE * MAX_SIDE];
    let cover = &mut cover[..side * side];
    for stroke in shape {
        stroke.pieces(|from, to| ink(cover, side, hand.place(from), hand.place(to), hand.pen));
    }
    for (pixel, cover) in image.iter_mut().zip(cover) {
        *pixel = (*cover * hand.ink + hand.noise * rng.normal() + 0.5).clamp(0.0, 255.0) as u8;
    }
}

impl Stroke {
    /// Cuts the stroke into straight pieces; long lines too, so that they bend with the lattice.
    fn pieces(&self, mut piece: impl FnMut(Point, Point)) {
        let mut steps = |count: usize, at: &dyn Fn(f32) -> Point| {
            for i in 0..count {
                piece(at(i as f32 / count as f32), at((i + 1) as f32 / count as f32));
            }
        };
        match *self {
            Line(points) => {
                points.windows(2).for_each(|ends| steps(4, &|t| mix(ends[0], ends[1], t)));
            }
            Arc(centre, radii, [from, to]) => {
                steps((PIECES * (to - from)).max(1.0) as usize, &|t| {
                    let (sin, cos) =
                        math::sin_cos(core::f32::consts::TAU * (from + (to - from) * t));
                    [centre[0] + radii[0] * cos, centre[1] + radii[1] * sin]
                });
            }
        }
    }
}

fn mix(a: Point, b: Point, t: f32) -> Point {
    [a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t]
}

/// Raises the cover of pixels near the segment `a b` to the share that a round pen covers.
fn ink(cover: &mut [f32], side: usize, a: Point, b: Point, pen: f32) {
    let reach = pen + 0.5;
    // Pixels whose centres lie within reach; the casts saturate at 0 and at the side.
    let span =
        |a: f32, b: f32| (a.min(b) - reach) as usize..((a.max(b) + reach + 1.0) as usize).min(side);
    for y in span(a[1], b[1]) {
        for x in span(a[0], b[0]) {
            let gap = distance([x as f32 + 0.5, y as f32 + 0.5], a, b);
            let share = (reach - gap).clamp(0.0, 1.0);
            let pixel = &mut cover[y * side + x];
            *pixel = pixel.max(share);
        }
    }
}

fn distance(p: Point, a: Point, b: Point) -> f32 {
    let (along, to) = ([b[0] - a[0], b[1] - a[1]], [p[0] - a[0], p[1] - a[1]]);
    let length2 = along[0] * along[0] + along[1] * along[1];
    let t = if length2 > 0.0 { (to[0] * along[0] + to[1] * along[1]) / length2 } else { 0.0 };
    let nearest = mix(a, b, t.clamp(0.0, 1.0));
    let (dx, dy) = (p[0] - nearest[0], p[1] - nearest[1]);
    math::sqrt(dx * dx + dy * dy)
}
