//! Rows that are changed a little whenever they are read for training: pictures that are moved, turned,
//! stretched and bent, numbers with noise. What becomes of a row is a function of the seed and of the
//! number of its draw alone.

use tamis::base::rng::{CounterRng, Rng, stream};

use crate::{Error, Result};

/// Draws of a row.
const DRAWS: u64 = stream::USER + (0xa6 << 32);
/// Fields by which pictures are bent.
const FIELDS: u64 = stream::USER + (0xa7 << 32);
/// Empty pixels around a picture, so that what is outside is 0.
const MARGIN: usize = 2;
/// Pixels of a row that are looked up together.
const PIXELS: usize = 32;
/// Fields, of which a picture takes two.
const FIELD_COUNT: usize = 64;
/// Standard deviation of the blur of a field, in pixels.
const BLUR: f64 = 4.0;

/// How far pictures are changed at most; the amounts are uniform up to these.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PictureChanges {
    /// Pixels of a row of the picture, and rows of it.
    pub width: usize,
    /// See [`Self::width`].
    pub height: usize,
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
    pub const fn for_nnz(width: usize, height: usize, nnz: usize) -> Self {
        if nnz < 1500 {
            Self {
                width,
                height,
                shift: 0.5,
                rotation: 5.0,
                scale: 0.05,
                shear: 0.05,
                elastic: 0.3,
            }
        } else {
            Self { width, height, shift: 1.0, rotation: 8.0, scale: 0.08, shear: 0.1, elastic: 0.6 }
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
}

impl Augment {
    /// For rows of `inputs` numbers.
    ///
    /// # Errors
    /// Rows that are no pictures of the size, or amounts that are negative or no numbers.
    ///
    /// ```
    /// use tamis_host::data::augment::{Augment, Changes, PictureChanges};
    /// let changes = PictureChanges::for_nnz(8, 8, 1000);
    /// let augment = Augment::new(Changes::Pictures(changes), 64, 7)?;
    /// let (row, mut out) = ([1.0_f32; 64], [0.0; 64]);
    /// let mut padded = augment.scratch();
    /// augment.row(3, &row, 1.0, &mut padded, &mut out);
    /// assert!((out[27] - 1.0).abs() < 1e-5); // the middle of a white picture is white
    /// # Ok::<(), tamis_host::Error>(())
    /// ```
    pub fn new(changes: Changes, inputs: usize, seed: u64) -> Result<Self> {
        let amounts = match changes {
            Changes::Pictures(of) => {
                if of.width.checked_mul(of.height) != Some(inputs) || inputs == 0 {
                    return Err(Error::new("the rows are no pictures of this size")
                        .expected(format_args!("{}×{} pixels a row", of.width, of.height))
                        .got(format_args!("{inputs} numbers"))
                        .help("pass the right size, as in --augment images=28x28"));
                }
                vec![of.shift, of.rotation, of.scale, of.shear, of.elastic]
            }
            Changes::Noise(deviation) => vec![deviation],
        };
        if let Some(wrong) = amounts.iter().find(|x| !(**x >= 0.0 && x.is_finite())) {
            return Err(Error::new("an amount of augmentation is out of bounds")
                .expected("0 or more")
                .got(wrong)
                .help("choose another, or leave it out"));
        }
        let fields = match changes {
            Changes::Pictures(of) if of.elastic > 0.0 => fields(of.width, of.height, seed),
            _ => Vec::new(),
        };
        Ok(Self { changes, seed, fields })
    }

    /// Memory for [`Self::row`].
    #[must_use]
    pub fn scratch(&self) -> Vec<f32> {
        match self.changes {
            Changes::Pictures(of) => {
                vec![0.0; (of.width + 2 * MARGIN) * (of.height + 2 * MARGIN)]
            }
            Changes::Noise(_) => Vec::new(),
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
        padded: &mut [f32],
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
                let stride = of.width + 2 * MARGIN;
                let inner = padded.chunks_exact_mut(stride).skip(MARGIN);
                for (own, row) in inner.zip(row.chunks_exact(of.width)) {
                    let own = &mut own[MARGIN..];
                    own.iter_mut().zip(row).for_each(|(own, x)| *own = scale * (*x).into());
                }
                self.warp(&of, &rng, padded, out);
            }
        }
    }

    fn warp(&self, of: &PictureChanges, rng: &CounterRng, padded: &[f32], out: &mut [f32]) {
        let within = |k: u32, most: f32| most * (2.0 * rng.uniform(k) - 1.0);
        let angle = within(0, of.rotation).to_radians();
        let (sin, cos) = angle.sin_cos();
        let [across, down] = [1.0 + within(1, of.scale), 1.0 + within(2, of.scale)];
        let shear = within(3, of.shear);
        let centre = |size: usize| (size as f32 - 1.0) / 2.0;
        let (middle_x, middle_y) = (centre(of.width), centre(of.height));
        let to_x = middle_x + MARGIN as f32 + within(4, of.shift);
        let to_y = middle_y + MARGIN as f32 + within(5, of.shift);
        // Where a pixel of the result is taken from: x' = a x + b y, y' = c x + d y, from the middle.
        let (a, b) = (cos * across + shear * sin, -sin * down);
        let (c, d) = (sin * across + shear * cos, cos * down);
        let size = of.width * of.height;
        let field = |k: u32| {
            let at = rng.bits(k) as usize % FIELD_COUNT;
            self.fields.get(at * size..(at + 1) * size)
        };
        // Uniform up to a root mean square of √3 times the mean of it.
        let bend = of.elastic * rng.uniform(8) * 1.7;
        let stride = of.width + 2 * MARGIN;
        let most_x = (stride - 1) as f32 - 0.001;
        let most_y = (of.height + 2 * MARGIN - 1) as f32 - 0.001;
        let fields = field(6).zip(field(7));
        for (i, row) in out.chunks_exact_mut(of.width).enumerate() {
            let y = i as f32 - middle_y;
            let (mut at_x, mut at_y) = (to_x + b * y - a * middle_x, to_y + d * y - c * middle_x);
            for (part, out) in row.chunks_mut(PIXELS).enumerate() {
                // Step by step, each over all pixels, so that a processor does several at once.
                let (mut xs, mut ys, mut places) = ([0.0; PIXELS], [0.0; PIXELS], [0; PIXELS]);
                for (x, y) in xs.iter_mut().zip(&mut ys) {
                    (*x, *y) = (at_x, at_y);
                    at_x += a;
                    at_y += c;
                }
                if let Some((x, y)) = fields {
                    let of_part = i * of.width + part * PIXELS..;
                    let add = |own: &mut [f32], by: &[f32]| {
                        own.iter_mut().zip(by).for_each(|(own, by)| *own += bend * by);
                    };
                    add(&mut xs[..out.len()], &x[of_part.clone()]);
                    add(&mut ys[..out.len()], &y[of_part]);
                }
                for ((x, y), place) in xs.iter_mut().zip(&mut ys).zip(&mut places) {
                    (*x, *y) = (x.clamp(0.0, most_x), y.clamp(0.0, most_y));
                    let (left, top) = (*x as i32, *y as i32);
                    (*x, *y) = (*x - left as f32, *y - top as f32);
                    *place = top * stride as i32 + left;
                }
                for (((out, right), below), place) in out.iter_mut().zip(xs).zip(ys).zip(places) {
                    let along = |at: usize| {
                        let pair = &padded[at..at + 2];
                        pair[0] + right * (pair[1] - pair[0])
                    };
                    let high = along(place as usize);
                    *out = high + below * (along(place as usize + stride) - high);
                }
            }
        }
    }
}

/// White noise through a Gaussian blur, brought to mean square 1.
fn fields(width: usize, height: usize, seed: u64) -> Vec<f32> {
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
        width: 10,
        height: 8,
        shift: 0.0,
        rotation: 0.0,
        scale: 0.0,
        shear: 0.0,
        elastic: 0.0,
    };

    fn changed(changes: Changes, draw: u64) -> Vec<f32> {
        let row: Vec<f32> = (0..80).map(|k| ((k * 37 + k / 7) % 19) as f32).collect();
        let augment = Augment::new(changes, 80, 1).unwrap();
        let (mut padded, mut out) = (augment.scratch(), vec![0.0; 80]);
        augment.row(draw, &row, 1.0, &mut padded, &mut out);
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
        let mut padded = augment.scratch();
        for draw in 0..50 {
            let mut out = vec![0.0; 80];
            augment.row(draw, &row, 1.0 / 200.0, &mut padded, &mut out);
            let light: f32 = out.iter().sum();
            assert!((4.0..8.5).contains(&light), "{light}");
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
