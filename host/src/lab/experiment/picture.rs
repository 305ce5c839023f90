//! The picture of a cell, and beside it what its network makes of it.

use tamis::store::wire::View;

use crate::base::file::Aligned;
use crate::data::Problem;
use crate::model::predict::predict_rows;
use crate::{Error, Result};

/// A picture and beside it what the model makes of it, as a PNG file in hexadecimal digits.
pub(super) fn side_by_side(
    model: &[u8],
    picture: &Problem,
    [rows, cols, channels]: [usize; 3],
) -> Result<String> {
    let bytes = Aligned::new(model);
    let made = predict_rows(View::parse(&bytes)?.model(), &picture.data)?;
    let byte = |value: &f32| (255.0 * value).round().clamp(0.0, 255.0) as u8;
    let mut pixels = Vec::with_capacity(2 * made.len());
    for (own, made) in picture.labels.chunks(cols * channels).zip(made.chunks(cols * channels)) {
        pixels.extend(own.iter().chain(made).map(byte));
    }
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, 2 * cols as u32, rows as u32);
    encoder.set_color(if channels == 1 { png::ColorType::Grayscale } else { png::ColorType::Rgb });
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(&pixels));
    written.map_err(|error| Error::new("cannot draw the picture").source(error))?;
    Ok(file.iter().map(|byte| format!("{byte:02x}")).collect())
}
