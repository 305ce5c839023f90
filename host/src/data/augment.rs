//! Rows that are changed a little whenever they are read for training: pictures that are moved, turned,
//! stretched and bent, numbers with noise. What becomes of a row is a function of the seed and of the
//! number of its draw alone.

use pulp::Arch;
use tamis::base::rng::{CounterRng, Rng, stream};

use crate::base::vectorise;
use crate::{Error, Result};

/// Draws of a row.
const DRAWS: u64 = stream::USER + (0xa6 << 32);
/// Fields by which pictures are bent.
const FIELDS: u64 = stream::USER + (0xa7 << 32);
/// Empty pixels around a picture, so that what is outside is 0.
const MARGIN: usize = 2;
/// The largest amount of a change.
pub(crate) const MOST: f32 = 1e6;
/// Pixels that are looked up together.
const PIXELS: usize = 8;
/// Fields, of which a picture takes two.
const FIELD_COUNT: usize = 64;
/// Standard deviation of the blur of a field, in pixels.
const BLUR: f64 = 4.0;

/// Size of a picture of one number a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureSize {
    /// Pixels of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

impl PictureSize {
    /// Of as many rows as pixels in a row.
    #[must_use]
    pub const fn square(side: usize) -> Self {
        Self { width: side, height: side }
    }
}

/// How far pictures are changed at most; the amounts are uniform up to these.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PictureChanges {
    /// Of the pictures.
    pub size: PictureSize,
    /// Pixels in either direction.
    pub shift: f32,
    /// Degrees.
    pub rotation: f32,
    /// Fractions of the size, in each direction by itself.
    pub scale: f32,
    /// Slope.
    pub shear: f32,
    /// Pixels, root mean square of the most, in smooth waves.
    pub elastic: f32,
}

impl PictureChanges {
    /// Changes that suit hand-written digits and the number of nonzeros: small networks have no room
    /// for large ones.
    #[must_use]
    pub const fn for_nnz(size: PictureSize, nnz: usize) -> Self {
        if nnz < 1500 {
            Self { size, shift: 0.5, rotation: 5.0, scale: 0.05, shear: 0.05, elastic: 0.3 }
        } else {
            Self { size, shift: 1.0, rotation: 8.0, scale: 0.08, shear: 0.1, elastic: 0.6 }
        }
    }
}

/// What is done to rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Changes {
    /// Rows are pictures of one number a pixel.
    Pictures(PictureChanges),
    /// Normal noise of this standard deviation is added to every number.
    Noise(f32),
}

/// Changes rows, with the memory for it.
#[derive(Debug, Clone)]
pub struct Augment {
    changes: Changes,
    seed: u64,
    /// Smooth fields of mean square 1, each of the size of a picture.
    fields: Vec<f32>,
    arch: Arch,
}

/// Memory for [`Augment::row`]; none where no pictures are changed.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    /// The picture, with empty pixels around it.
    padded: Vec<f32>,
    /// Bits of all pixels of a column.
    columns: Vec<u32>,
    /// Column and row of `padded` that a pixel is taken from, pixel by pixel; whole groups of pixels.
    xs: Vec<f32>,
    ys: Vec<f32>,
}

impl Scratch {
    /// Bytes that it holds.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let Self { padded, columns, xs, ys } = self;
        let numbers = [padded, xs, ys].map(|numbers| size_of_val(&numbers[..]));
        numbers.iter().sum::<usize>() + size_of_val(&columns[..])
    }
}

impl Augment {
    /// For rows of `inputs` numbers.
    ///
    /// # Errors
    /// Rows that are no pictures of the size, or amounts that are negative or no numbers.
    ///
    /// ```
    /// use tamis_host::data::augment::{Augment, Changes, PictureChanges, PictureSize};
    /// let changes = PictureChanges::for_nnz(PictureSize::square(8), 1000);
    /// let augment = Augment::new(Changes::Pictures(changes), 64, 7)?;
    /// let (row, mut out) = ([1.0_f32; 64], [0.0; 64]);
    /// let mut scratch = augment.scratch();
    /// augment.row(3, &row, 1.0, &mut scratch, &mut out);
    /// assert!((out[27] - 1.0).abs() < 1e-5); // the middle of a white picture is white
    /// # Ok::<(), tamis_host::Error>(())
    /// ```
    pub fn new(changes: Changes, inputs: usize, seed: u64) -> Result<Self> {
        let amounts = match changes {
            Changes::Pictures(of) => {
                let PictureSize { width, height } = of.size;
                if width.checked_mul(height) != Some(inputs) || inputs == 0 {
                    return Err(Error::new("the rows are no pictures of this size")
                        .expected(format_args!("{width}×{height} pixels a row"))
                        .got(format_args!("{inputs} numbers"))
                        .help("pass the right size, as in --augment images=28x28"));
                }
                vec![of.shift, of.rotation, of.scale, of.shear, of.elastic]
            }
            Changes::Noise(deviation) => vec![deviation],
        };
        if let Some(wrong) = amounts.iter().find(|x| !(0.0..=MOST).contains(*x)) {
            return Err(Error::new("an amount of augmentation is out of bounds")
                .expected(format_args!("0 to {MOST}"))
                .got(wrong)
                .help("choose another, or leave it out"));
        }
        let fields = match changes {
            Changes::Pictures(of) if of.elastic > 0.0 => fields(of.size, seed),
            _ => Vec::new(),
        };
        Ok(Self { changes, seed, fields, arch: Arch::new() })
    }

    /// Memory for [`Self::row`].
    #[must_use]
    pub fn scratch(&self) -> Scratch {
        match self.changes {
            Changes::Pictures(of) => {
                let PictureSize { width, height } = of.size;
                let whole = (width * height).next_multiple_of(PIXELS);
                Scratch {
                    padded: vec![0.0; (width + 2 * MARGIN) * (height + 2 * MARGIN)],
                    columns: vec![0; width],
                    xs: vec![0.0; whole],
                    ys: vec![0.0; whole],
                }
            }
            Changes::Noise(_) => Scratch::default(),
        }
    }

    /// Bytes that it holds.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(&self.fields[..])
    }

    /// The row times `scale`, changed as draw number `draw` says; lengths are those of a row.
    pub fn row<T: Copy + Into<f32>>(
        &self,
        draw: u64,
        row: &[T],
        scale: f32,
        scratch: &mut Scratch,
        out: &mut [f32],
    ) {
        let rng = CounterRng::new(self.seed, DRAWS + draw);
        match self.changes {
            Changes::Noise(deviation) => {
                for (k, (out, x)) in (0..).zip(out.iter_mut().zip(row)) {
                    *out = scale * (*x).into() + deviation * rng.normal(k);
                }
            }
            Changes::Pictures(of) => {
                let warp = Warp::draw(&of, &rng);
                let size = of.size.width * of.size.height;
                let field = |k: u32| {
                    let at = rng.bits(k) as usize % FIELD_COUNT;
                    self.fields.get(at * size..(at + 1) * size)
                };
                let fields = field(6).zip(field(7));
                vectorise(
                    self.arch,
                    #[inline(always)]
                    || {
                        let lit = pad(row, scale, scratch);
                        warp.places(fields, scratch);
                        look_up(&lit, scratch, out);
                    },
                );
            }
        }
    }
}

/// Where pixels are taken from: of column j and row i, counted from the middle, from
/// `x = to_x + a j + b i` and `y = to_y + c j + d i`, and `bend` times what two fields say.
struct Warp {
    middle_x: f32,
    middle_y: f32,
    to_x: f32,
    to_y: f32,
    a: f32,
    b: f32,
    c: f32,
    d: f32,
    bend: f32,
}

impl Warp {
    fn draw(of: &PictureChanges, rng: &CounterRng) -> Self {
        let within = |k: u32, most: f32| most * (2.0 * rng.uniform(k) - 1.0);
        let angle = within(0, of.rotation).to_radians();
        let (sin, cos) = angle.sin_cos();
        let [across, down] = [1.0 + within(1, of.scale), 1.0 + within(2, of.scale)];
        let shear = within(3, of.shear);
        let centre = |size: usize| (size as f32 - 1.0) / 2.0;
        let (middle_x, middle_y) = (centre(of.size.width), centre(of.size.height));
        Self {
            middle_x,
            middle_y,
            to_x: middle_x + MARGIN as f32 + within(4, of.shift),
            to_y: middle_y + MARGIN as f32 + within(5, of.shift),
            a: cos * across + shear * sin,
            b: -sin * down,
            c: sin * across + shear * cos,
            d: cos * down,
            // Uniform up to a root mean square of √3 times the mean of it.
            bend: of.elastic * rng.uniform(8) * 1.7,
        }
    }

    /// Leaves the place of each pixel in `scratch`.
    #[inline(always)]
    fn places(&self, fields: Option<(&[f32], &[f32])>, scratch: &mut Scratch) {
        let Scratch { columns, xs, ys, .. } = scratch;
        let width = columns.len();
        let rows = xs.chunks_exact_mut(width).zip(ys.chunks_exact_mut(width));
        for (i, (xs, ys)) in rows.enumerate() {
            let i = i as f32 - self.middle_y;
            let (to_x, to_y) = (self.to_x + self.b * i, self.to_y + self.d * i);
            for (j, (x, y)) in (0_i32..).zip(xs.iter_mut().zip(ys)) {
                let j = j as f32 - self.middle_x;
                (*x, *y) = (to_x + self.a * j, to_y + self.c * j);
            }
        }
        if let Some((of_x, of_y)) = fields {
            for (own, field) in [(xs, of_x), (ys, of_y)] {
                own.iter_mut().zip(field).for_each(|(own, by)| *own += self.bend * by);
            }
        }
    }
}

/// Places between these see a pixel that is not 0, if there is one; others are 0.
struct Lit {
    left: f32,
    right: f32,
    top: f32,
    bottom: f32,
}

/// Puts the row into the middle of `scratch.padded`.
#[inline(always)]
fn pad<T: Copy + Into<f32>>(row: &[T], scale: f32, scratch: &mut Scratch) -> Lit {
    let Scratch { padded, columns, .. } = scratch;
    let width = columns.len();
    let (mut first, mut last) = (usize::MAX, 0);
    columns.fill(0);
    let inner = padded.chunks_exact_mut(width + 2 * MARGIN).enumerate().skip(MARGIN);
    for ((i, own), row) in inner.zip(row.chunks_exact(width)) {
        let mut any = 0;
        for ((own, x), column) in own[MARGIN..].iter_mut().zip(row).zip(columns.iter_mut()) {
            *own = scale * (*x).into();
            any |= own.to_bits();
            *column |= own.to_bits();
        }
        if any != 0 {
            (first, last) = (first.min(i), i);
        }
    }
    let seen = |bits: &u32| *bits != 0;
    let left = columns.iter().position(seen).unwrap_or(width) + MARGIN;
    let right = columns.iter().rposition(seen).unwrap_or(0) + MARGIN;
    let [left, right, top, bottom] = [left, right, first, last].map(|at| at as f32);
    Lit { left: left - 1.0, right: right + 1.0, top: top - 1.0, bottom: bottom + 1.0 }
}

/// The numbers at the places in `scratch`, between four pixels. Step by step, each over several
/// pixels, so that a processor does them at once.
#[inline(always)]
fn look_up(lit: &Lit, scratch: &Scratch, out: &mut [f32]) {
    let Scratch { padded, columns, xs, ys } = scratch;
    let stride = columns.len() + 2 * MARGIN;
    let most_x = (stride - 1) as f32 - 0.001;
    let most_y = (padded.len() / stride - 1) as f32 - 0.001;
    let places = xs.as_chunks::<PIXELS>().0.iter().zip(ys.as_chunks::<PIXELS>().0);
    for ((xs, ys), out) in places.zip(out.chunks_mut(PIXELS)) {
        let mut is_lit = false;
        for (x, y) in xs.iter().zip(ys) {
            is_lit |= (*x > lit.left) & (*x < lit.right) & (*y > lit.top) & (*y < lit.bottom);
        }
        if !is_lit {
            out.fill(0.0);
            continue;
        }
        let (mut places, mut right, mut below) = ([0; PIXELS], [0.0; PIXELS], [0.0; PIXELS]);
        for k in 0..PIXELS {
            let [x, y] = [xs[k].clamp(0.0, most_x), ys[k].clamp(0.0, most_y)].map(Whole::of);
            places[k] = y.whole * stride as u32 + x.whole;
            (right[k], below[k]) = (x.rest, y.rest);
        }
        let (mut high, mut low) = ([[0.0; 2]; PIXELS], [[0.0; 2]; PIXELS]);
        for k in 0..PIXELS {
            let place = places[k] as usize;
            high[k].copy_from_slice(&padded[place..place + 2]);
            low[k].copy_from_slice(&padded[place + stride..place + stride + 2]);
        }
        let mut values = [0.0; PIXELS];
        for k in 0..PIXELS {
            let along = |pair: [f32; 2]| pair[0] + right[k] * (pair[1] - pair[0]);
            values[k] = along(high[k]) + below[k] * (along(low[k]) - along(high[k]));
        }
        match out.first_chunk_mut() {
            Some(out) => *out = values,
            None => out.copy_from_slice(&values[..out.len()]),
        }
    }
}

/// A number of 0 or more in two parts. `as` would not be done for several numbers at once.
struct Whole {
    whole: u32,
    rest: f32,
}

impl Whole {
    /// Of a number below 2²³.
    #[inline(always)]
    fn of(x: f32) -> Self {
        /// Floats from here on to twice as much are the whole numbers, so adding rounds.
        const WHOLE: f32 = 8_388_608.0;
        let near = (x + WHOLE) - WHOLE;
        let whole = if near > x { near - 1.0 } else { near };
        Self { whole: (whole + WHOLE).to_bits() - WHOLE.to_bits(), rest: x - whole }
    }
}

/// White noise through a Gaussian blur, brought to mean square 1.
fn fields(size: PictureSize, seed: u64) -> Vec<f32> {
    let PictureSize { width, height } = size;
    let reach = (3.0 * BLUR).ceil() as usize;
    let kernel: Vec<f32> = (0..=2 * reach)
        .map(|k| (k as f64 - reach as f64) / BLUR)
        .map(|x| (-0.5 * x * x).exp() as f32)
        .collect();
    let (wide, high) = (width + 2 * reach, height + 2 * reach);
    let mut all = Vec::with_capacity(FIELD_COUNT * width * height);
    for field in 0..FIELD_COUNT {
        let mut noise = vec![0.0; wide * high];
        Rng::new(seed, FIELDS + field as u64).fill_normal(&mut noise);
        let mut rows = vec![0.0; width * high];
        for (out, row) in rows.chunks_exact_mut(width).zip(noise.chunks_exact(wide)) {
            for (out, window) in out.iter_mut().zip(row.windows(kernel.len())) {
                *out = window.iter().zip(&kernel).map(|(x, k)| x * k).sum();
            }
        }
        let start = all.len();
        for i in 0..height {
            for j in 0..width {
                let column = rows[i * width + j..].iter().step_by(width);
                all.push(column.zip(&kernel).map(|(x, k)| x * k).sum::<f32>());
            }
        }
        let own = &mut all[start..];
        let square = own.iter().map(|x| x * x).sum::<f32>() / own.len() as f32;
        let scale = 1.0 / square.sqrt().max(f32::MIN_POSITIVE);
        own.iter_mut().for_each(|x| *x *= scale);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const STILL: PictureChanges = PictureChanges {
        size: PictureSize { width: 10, height: 8 },
        shift: 0.0,
        rotation: 0.0,
        scale: 0.0,
        shear: 0.0,
        elastic: 0.0,
    };

    fn changed(changes: Changes, draw: u64) -> Vec<f32> {
        let row: Vec<f32> = (0..80).map(|k| ((k * 37 + k / 7) % 19) as f32).collect();
        let augment = Augment::new(changes, 80, 1).unwrap();
        let (mut scratch, mut out) = (augment.scratch(), vec![0.0; 80]);
        augment.row(draw, &row, 1.0, &mut scratch, &mut out);
        out
    }

    #[test]
    fn no_change_leaves_pictures_as_they_are() {
        let row: Vec<f32> = (0..80).map(|k| ((k * 37 + k / 7) % 19) as f32).collect();
        let out = changed(Changes::Pictures(STILL), 5);
        assert!(out.iter().zip(&row).all(|(a, b)| (a - b).abs() < 1e-4), "{out:?}");
    }

    #[test]
    fn draws_repeat_and_differ() {
        let all = PictureChanges { shift: 1.0, rotation: 9.0, elastic: 0.6, ..STILL };
        for changes in [Changes::Pictures(all), Changes::Noise(0.5)] {
            assert_eq!(changed(changes, 3), changed(changes, 3));
            assert_ne!(changed(changes, 3), changed(changes, 4));
        }
    }

    #[test]
    fn shifted_pictures_keep_most_of_their_light() {
        let all = PictureChanges { shift: 1.0, rotation: 5.0, elastic: 0.5, ..STILL };
        let mut row = [0_u8; 80];
        for i in 3..5 {
            row[i * 10 + 4..i * 10 + 7].fill(200);
        }
        let augment = Augment::new(Changes::Pictures(all), 80, 1).unwrap();
        let mut scratch = augment.scratch();
        for draw in 0..50 {
            let mut out = vec![0.0; 80];
            augment.row(draw, &row, 1.0 / 200.0, &mut scratch, &mut out);
            let light: f32 = out.iter().sum();
            assert!((4.0..8.5).contains(&light), "{light}");
        }
    }

    #[test]
    fn every_pixel_lies_between_the_four_around_its_place() {
        let all = PictureChanges { shift: 3.0, rotation: 40.0, scale: 0.3, shear: 0.2, ..STILL };
        let all = PictureChanges { elastic: 2.0, ..all };
        let augment = Augment::new(Changes::Pictures(all), 80, 1).unwrap();
        let mut scratch = augment.scratch();
        // Light up to the edge, and in a corner alone.
        let full: Vec<f32> = (0..80).map(|k| 1.0 + (k * 37 % 19) as f32).collect();
        let corner: Vec<f32> = (0..80).map(|k| f32::from(k % 10 < 3 && k < 30)).collect();
        for (draw, row) in (0..40).zip([full, corner].iter().cycle()) {
            let mut out = vec![f32::NAN; 80];
            augment.row(draw, row, 1.0, &mut scratch, &mut out);
            let at = |x: i32, y: i32| match (x - MARGIN as i32, y - MARGIN as i32) {
                (x @ 0..10, y @ 0..8) => row[(y * 10 + x) as usize],
                _ => 0.0,
            };
            for ((x, y), got) in scratch.xs.iter().zip(&scratch.ys).zip(&out) {
                let (left, top) = (x.floor(), y.floor());
                let (right, below) = (x - left, y - top);
                let (left, top) = (left as i32, top as i32);
                let along = |y| at(left, y) * (1.0 - right) + at(left + 1, y) * right;
                let wanted = along(top) * (1.0 - below) + along(top + 1) * below;
                assert!((got - wanted).abs() < 1e-3, "{draw}: {got} {wanted} at {x} {y}");
            }
        }
    }

    #[test]
    fn pictures_of_another_size_are_refused() {
        assert!(Augment::new(Changes::Pictures(STILL), 81, 1).is_err());
        let wrong = PictureChanges { shift: f32::NAN, ..STILL };
        assert!(Augment::new(Changes::Pictures(wrong), 80, 1).is_err());
        assert!(Augment::new(Changes::Noise(-1.0), 80, 1).is_err());
    }
}
