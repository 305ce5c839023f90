//! One picture as a data set: where a pixel is, and how bright.
//!
//! A network that learns this is an implicit image. Places are given as random Fourier features
//! (paper IHT, 5.3): for k frequencies `b_i`, normal with mean 0, and the place v of a pixel, row
//! and column and perhaps channel as whole numbers,
//!
//! `x = [sin 2π v·b_1, …, sin 2π v·b_k, cos 2π v·b_1, …, cos 2π v·b_k]`, `y = brightness / 255`.
//!
//! The turns `v·b` are computed and reduced to one turn in double precision.

use std::io::{BufReader, Cursor, Read};
use std::path::Path;

use png::{ColorType, DecodeOptions, Decoder, Limits, Transformations};
use rayon::prelude::*;
use tamis::base::math;
use tamis::base::rng::{Rng, stream};

use super::matrix::zeros;
use super::{Matrix, Values};
use crate::{Error, Result, base::file};

const FREQUENCIES: u64 = stream::USER + (0xd4 << 32);
/// The largest side of a picture, in pixels.
pub const MAX_SIDE: usize = 4096;
const MAX_FILE: u64 = 256 << 20;

/// A picture in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Pixels down.
    pub rows: usize,
    /// Pixels across.
    pub cols: usize,
    /// Numbers of a pixel: 1 for grey, 3 for red, green and blue.
    pub channels: usize,
    /// rows×cols×channels numbers.
    pub values: Vec<u8>,
}

/// How places become inputs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fourier {
    /// Inputs: a sine and a cosine of each frequency, so an even number.
    pub features: usize,
    /// Standard deviation of a frequency in turns per pixel, down and across.
    pub deviation: f64,
    /// The same in turns per channel; only for pictures of several channels.
    pub channel_deviation: f64,
    /// Seed of the frequencies.
    pub seed: u64,
}

impl Picture {
    /// Reads a PNG file, grey or in colours, of 8 bits a number; transparency is ignored.
    ///
    /// # Errors
    /// The file cannot be read, is no PNG, is damaged, or larger than [`MAX_SIDE`] pixels a side.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let (source, len) = file::open(path)?;
        let checked = file::check_len("picture", len, MAX_FILE, "scale the picture down");
        checked.map_err(|error| error.at(path))?;
        let mut bytes = Vec::new();
        let read = source.take(MAX_FILE).read_to_end(&mut bytes);
        read.map_err(|e| Error::io("cannot read", path, e))?;
        Self::read(&bytes).map_err(|error| error.at(path))
    }

    /// Reads the bytes of a PNG file, as [`load`](Self::load).
    ///
    /// # Errors
    /// The same.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let damaged = |error: png::DecodingError| {
            Error::new("cannot read the picture")
                .source(error)
                .expected("a whole PNG file of at most 4096 pixels a side")
                .help("save it as PNG again, scaled down if it is large")
        };
        let source = BufReader::new(Cursor::new(bytes));
        let mut decoder = Decoder::new_with_options(source, DecodeOptions::default());
        decoder.set_limits(Limits { bytes: 4 * MAX_SIDE * MAX_SIDE });
        decoder.set_transformations(Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().map_err(damaged)?;
        let (wide, high) = (reader.info().width as usize, reader.info().height as usize);
        if wide.max(high) > MAX_SIDE {
            return Err(Error::new("the picture is too large")
                .expected(format_args!("at most {MAX_SIDE} pixels a side"))
                .got(format_args!("{wide} × {high}"))
                .help("scale the picture down"));
        }
        let (kind, _) = reader.output_color_type();
        let (given, channels) = match kind {
            ColorType::Grayscale | ColorType::Indexed => (1, 1),
            ColorType::GrayscaleAlpha => (2, 1),
            ColorType::Rgb => (3, 3),
            ColorType::Rgba => (4, 3),
        };
        let mut values = vec![0; wide * high * given];
        reader.next_frame(&mut values).map_err(damaged)?;
        if given > channels {
            let opaque = values.chunks(given).flat_map(|pixel| pixel[..channels].iter().copied());
            values = opaque.collect();
        }
        Ok(Self { rows: high, cols: wide, channels, values })
    }

    /// One sample per number of the picture, rows×cols×channels in the order of
    /// [`values`](Self::values), and their labels, 0 to 1.
    ///
    /// # Errors
    /// No frequency, an odd number of features, or a deviation that is not a number of 0 or more;
    /// samples that do not fit in memory.
    ///
    /// ```
    /// use tamis_host::data::image::{Fourier, Picture};
    /// let values = vec![0, 51, 102, 153, 204, 255];
    /// let picture = Picture { rows: 2, cols: 3, channels: 1, values };
    /// let fourier = Fourier { features: 8, deviation: 2.0, channel_deviation: 0.0, seed: 0 };
    /// let (samples, labels) = picture.samples(&fourier)?;
    /// assert_eq!((samples.rows, samples.cols, labels[1], labels[5]), (6, 8, 0.2, 1.0));
    /// # Ok::<(), tamis_host::Error>(())
    /// ```
    pub fn samples(&self, fourier: &Fourier) -> Result<(Matrix, Vec<f32>)> {
        fourier.check()?;
        let (n, d, k) = (self.values.len(), fourier.features, fourier.features / 2);
        let axes = if self.channels > 1 { 3 } else { 2 };
        let deviations = [fourier.deviation, fourier.deviation, fourier.channel_deviation];
        let mut rng = Rng::new(fourier.seed, FREQUENCIES);
        let frequencies: Vec<f64> =
            (0..k * axes).map(|i| deviations[i % axes] * f64::from(rng.normal())).collect();
        let mut values = zeros::<f32>(n, d).ok_or_else(|| {
            Error::new("the samples of the picture do not fit in memory")
                .got(format_args!("{n} rows of {d} numbers"))
                .help("take a smaller picture, or fewer features")
        })?;
        values.par_chunks_mut(d).enumerate().for_each(|(i, row)| {
            let (pixel, channel) = (i / self.channels, i % self.channels);
            let place = [pixel / self.cols, pixel % self.cols, channel].map(|at| at as f64);
            let (sines, cosines) = row.split_at_mut(k);
            for ((sin, cos), b) in sines.iter_mut().zip(cosines).zip(frequencies.chunks(axes)) {
                let turns: f64 = b.iter().zip(place).map(|(b, v)| b * v).sum();
                (*sin, *cos) =
                    math::sin_cos(core::f32::consts::TAU * (turns - turns.floor()) as f32);
            }
        });
        let labels = self.values.iter().map(|&value| f32::from(value) / 255.0).collect();
        Ok((Matrix { rows: n, cols: d, values: Values::F32(values) }, labels))
    }
}

impl Fourier {
    pub(crate) fn check(&self) -> Result<()> {
        if self.features == 0 || !self.features.is_multiple_of(2) {
            return Err(Error::new("the number of Fourier features is out of bounds")
                .expected("an even number of 2 or more: a sine and a cosine of each frequency")
                .got(self.features)
                .help("1500 is the published number"));
        }
        for value in [self.deviation, self.channel_deviation] {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(Error::new("the deviation of the frequencies is out of bounds")
                    .mismatch("a number of 0 or more", value)
                    .help("2 was published for 28×28 pixels, 5 for 32×32"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(kind: ColorType, values: &[u8], (wide, high): (u32, u32)) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, wide, high);
        encoder.set_color(kind);
        encoder.write_header().unwrap().write_image_data(values).unwrap();
        bytes
    }

    #[test]
    fn images_of_every_kind_roundtrip_dropping_alpha() {
        let grey = Picture { rows: 2, cols: 3, channels: 1, values: (0..6).collect() };
        assert_eq!(
            Picture::read(&encode(ColorType::Grayscale, &grey.values, (3, 2))).unwrap(),
            grey
        );
        let with: Vec<u8> = (0..6).flat_map(|v| [v, 9]).collect();
        assert_eq!(Picture::read(&encode(ColorType::GrayscaleAlpha, &with, (3, 2))).unwrap(), grey);
        let rgb = Picture { rows: 1, cols: 2, channels: 3, values: vec![1, 2, 3, 4, 5, 6] };
        assert_eq!(Picture::read(&encode(ColorType::Rgb, &rgb.values, (2, 1))).unwrap(), rgb);
        let with = [1, 2, 3, 0, 4, 5, 6, 255];
        assert_eq!(Picture::read(&encode(ColorType::Rgba, &with, (2, 1))).unwrap(), rgb);
    }

    #[test]
    fn damaged_pictures_are_refused_at_every_length() {
        let whole = encode(ColorType::Grayscale, &[7; 64], (8, 8));
        for len in 0..whole.len() - 16 {
            let error = Picture::read(&whole[..len]).unwrap_err().to_string();
            assert!(
                error.contains("cannot read the picture") && error.contains("help"),
                "{len}: {error}"
            );
        }
        let mut wide = whole;
        wide[16..20].copy_from_slice(&u32::MAX.to_be_bytes());
        assert!(Picture::read(&wide).is_err());
    }

    #[test]
    fn features_are_sines_and_cosines_of_the_places() {
        let picture = Picture { rows: 3, cols: 4, channels: 3, values: vec![0; 36] };
        let fourier = Fourier { features: 400, deviation: 5.0, channel_deviation: 0.05, seed: 1 };
        let (samples, _) = picture.samples(&fourier).unwrap();
        let Values::F32(x) = &samples.values else { panic!("floats") };
        let row =
            |r: usize, c: usize, channel: usize| &x[((r * 4 + c) * 3 + channel) * 400..][..400];
        for k in 0..200 {
            let pair = |row: &[f32]| (f64::from(row[k]), f64::from(row[200 + k]));
            let (sin, cos) = pair(row(0, 1, 0));
            assert!((sin * sin + cos * cos - 1.0).abs() < 1e-5);
            // Two steps across turn twice as far as one.
            let (twice, _) = pair(row(0, 2, 0));
            assert!((twice - 2.0 * sin * cos).abs() < 1e-4, "{twice}");
            assert_eq!(pair(row(0, 0, 0)), (0.0, 1.0));
        }
        // A step of a channel turns little, one of a pixel much.
        let turned = |row: &[f32]| row[..200].iter().filter(|v| v.abs() > 0.7).count();
        assert!(turned(row(0, 0, 1)) < 20 && turned(row(1, 0, 0)) > 60);
        assert_eq!(picture.samples(&fourier).unwrap().0, samples);
        assert!(picture.samples(&Fourier { features: 3, ..fourier }).is_err());
        assert!(picture.samples(&Fourier { deviation: f64::NAN, ..fourier }).is_err());
    }
}
