//! The colours of pictures on light and on dark ground.

use plotters::style::RGBColor;

/// A colour on light ground and its stand-in on dark ground.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Colour {
    pub(super) light: RGBColor,
    pub(super) dark: RGBColor,
}

const fn colour(light: [u8; 3], dark: [u8; 3]) -> Colour {
    Colour {
        light: RGBColor(light[0], light[1], light[2]),
        dark: RGBColor(dark[0], dark[1], dark[2]),
    }
}

pub(super) const GROUND: Colour = colour([255, 255, 255], [17, 21, 28]);
pub(super) const INK: Colour = colour([32, 36, 42], [231, 235, 240]);
pub(super) const FAINT: Colour = colour([98, 106, 117], [154, 163, 175]);
pub(super) const GRID: Colour = colour([222, 226, 231], [48, 55, 66]);
/// Told apart with every common colour blindness, after Okabe and Ito.
pub(super) const SERIES: [Colour; 6] = [
    colour([0, 114, 178], [92, 176, 240]),
    colour([213, 94, 0], [255, 140, 66]),
    colour([0, 140, 104], [52, 204, 160]),
    colour([170, 80, 140], [226, 150, 200]),
    colour([190, 130, 0], [240, 190, 60]),
    colour([50, 150, 210], [150, 215, 250]),
];

/// The contrast of two colours as WCAG computes it, from 1 to 21.
pub(super) fn contrast(a: RGBColor, b: RGBColor) -> f64 {
    let linear = |c: u8| {
        let c = f64::from(c) / 255.0;
        if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    let light =
        |c: RGBColor| 0.05 + 0.2126 * linear(c.0) + 0.7152 * linear(c.1) + 0.0722 * linear(c.2);
    (light(a) / light(b)).max(light(b) / light(a))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_colour_stands_for_two() {
        let all: Vec<Colour> = [GROUND, INK, FAINT, GRID].into_iter().chain(SERIES).collect();
        for (i, a) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|b| a.light != b.light && a.dark != b.dark), "{a:?}");
        }
    }

    /// WCAG asks for a contrast of 3 for graphics and 4.5 for text.
    #[test]
    fn colours_stand_out_on_both_grounds() {
        for (colour, least) in SERIES.iter().map(|c| (c, 3.0)).chain([(&INK, 4.5), (&FAINT, 4.5)]) {
            assert!(contrast(colour.light, GROUND.light) >= least, "{colour:?} on light");
            assert!(contrast(colour.dark, GROUND.dark) >= least, "{colour:?} on dark");
        }
    }
}
