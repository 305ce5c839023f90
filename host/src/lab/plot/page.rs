//! What every picture shares: the SVG shell with its dark form, text, legend and frame.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::Axis;
pub(super) use super::mark::Drawn;
use super::mark::Key;
pub(super) use super::palette::{Colour, FAINT, GRID, GROUND, INK, SERIES, contrast};

/// Width of every picture, in SVG units.
pub(super) const WIDTH: u32 = 600;
pub(super) const FIGURE_HEIGHT: u32 = 400;
/// Height of a figure whose axes carry the same unit.
pub(super) const SQUARE_HEIGHT: u32 = 560;

/// Sizes of letters, in SVG units.
pub(super) const TITLE: u32 = 20;
pub(super) const TEXT: u32 = 16;
pub(super) const NOTE: u32 = 14;
/// Width of a letter over its size, on the wide side of sans-serif faces.
const ASPECT: f64 = 0.56;
/// Free space left and right of text, and between legend entries.
pub(super) const SIDE: i32 = 16;
/// Height of a row of the legend, and of a note.
pub(super) const ROW: u32 = 24;
/// Width of the mark of a legend entry.
const KEY: i32 = 28;

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Axis, Axis>>;

/// A picture of [`WIDTH`] by `height`, drawn by `draw`.
pub(super) fn page(title: &str, height: u32, draw: impl FnOnce(&Area<'_>) -> Drawn) -> String {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
    // Drawing into a string has nothing to fail on.
    let _ = area.fill(&GROUND.light).and_then(|()| draw(&area));
    // Ends the picture.
    drop(area);
    let head = svg.find('>').map_or(0, |at| at + 1);
    svg.insert_str(head, &format!("\n<title>{}</title>\n{}", escape(title), style()));
    svg
}

/// The dark form: every colour of the palette is replaced where the reader prefers dark.
fn style() -> String {
    let hex = |c: RGBColor| format!("#{:02X}{:02X}{:02X}", c.0, c.1, c.2);
    let rule = |c: &Colour| {
        let (light, dark) = (hex(c.light), hex(c.dark));
        format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}\n")
    };
    let rules: String = [GROUND, INK, FAINT, GRID].iter().chain(&SERIES).map(rule).collect();
    format!(
        "<style>\nsvg{{max-width:100%;height:auto}}\npolyline{{stroke-linejoin:round}}\n\
         @media (prefers-color-scheme:dark){{\n{rules}}}\n</style>"
    )
}

/// As text of an XML element or attribute.
pub(crate) fn escape(text: &str) -> String {
    let text = clean(text).replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

/// Without the characters that XML forbids.
fn clean(text: &str) -> String {
    let forbidden = |c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
    text.chars().map(|c| if forbidden(c) { ' ' } else { c }).collect()
}

/// Width of a text, as far as it can be known without the reader's fonts.
pub(super) fn width_of(text: &str, size: u32) -> i32 {
    (text.chars().count() as f64 * f64::from(size) * ASPECT).ceil() as i32
}

/// The text, cut where it would not fit into `width`.
pub(super) fn fit(text: &str, size: u32, width: i32) -> String {
    let text = clean(text);
    if width_of(&text, size) <= width {
        return text;
    }
    let room = (f64::from(width.max(0)) / (f64::from(size) * ASPECT)) as usize;
    text.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}

/// A style for text that is `size` units high. The backend divides sizes by 1.24.
pub(super) fn letters<'a>(size: u32, colour: Colour) -> TextStyle<'a> {
    ("sans-serif", f64::from(size) * 1.24).into_font().color(&colour.light)
}

/// Writes one line centred on the height `y`: to the right of `x`, around it, or to the left of it.
pub(super) fn write(
    area: &Area<'_>,
    text: &str,
    style: &TextStyle<'_>,
    side: HPos,
    x: i32,
    y: i32,
) -> Drawn {
    area.draw_text(text, &style.pos(Pos::new(side, VPos::Center)), (x, y))
}

/// What stands around a figure.
pub(super) struct Frame<'a> {
    pub(super) title: &'a str,
    pub(super) keys: Vec<Key>,
    pub(super) x: Axis,
    pub(super) y: Axis,
    /// What the reader has to know, such as what is not drawn.
    pub(super) notes: Vec<String>,
    /// Whether there is nothing to draw.
    pub(super) empty: bool,
}

impl Frame<'_> {
    /// Draws title, legend, axes and notes, and hands the chart between them to `plot`.
    pub(super) fn draw<'b>(
        &self,
        area: &Area<'b>,
        plot: impl FnOnce(&mut Chart<'_, 'b>) -> Drawn,
    ) -> Drawn {
        let (top, rest) = area.split_vertically(40);
        heading(&top, self.title)?;
        let rows = rows(&self.keys);
        let (legend, rest) = rest.split_vertically(ROW * rows.len() as u32);
        for (keys, y) in rows.iter().zip((ROW as i32 / 2..).step_by(ROW as usize)) {
            let mut x = SIDE;
            for key in keys {
                key.draw(&legend, (x + KEY / 2 - 4, y))?;
                write(&legend, &key.label, &letters(TEXT, INK), HPos::Left, x + KEY, y)?;
                x += key_width(key);
            }
        }
        let height = rest.dim_in_pixel().1 - ROW * self.notes.len() as u32;
        let (middle, bottom) = rest.split_vertically(height);
        let mut chart = self.chart(&middle)?;
        if self.empty {
            no_data(&middle)?;
        } else {
            plot(&mut chart)?;
        }
        let mut notes = self.notes.iter().zip((8..).step_by(ROW as usize));
        notes.try_for_each(|(text, y)| note(&bottom, text, y))
    }

    fn chart<'a, 'b>(
        &self,
        area: &'a Area<'b>,
    ) -> Result<Chart<'a, 'b>, DrawingAreaErrorKind<std::io::Error>> {
        let widest = self.y.ticks.iter().map(|(_, label)| width_of(label, TEXT)).max().unwrap_or(0);
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .margin_right(24)
            .x_label_area_size(52)
            .y_label_area_size((widest + 38) as u32)
            .build_cartesian_2d(self.x.clone(), self.y.clone())?;
        chart
            .configure_mesh()
            .bold_line_style(GRID.light)
            .light_line_style(TRANSPARENT)
            .axis_style(FAINT.light)
            .set_all_tick_mark_size(4)
            .label_style(letters(TEXT, INK))
            .axis_desc_style(letters(TEXT, INK))
            .x_desc(clean(&self.x.name))
            .y_desc(clean(&self.y.name))
            .draw()?;
        Ok(chart)
    }
}

pub(super) fn no_data(area: &Area<'_>) -> Drawn {
    let (wide, high) = area.dim_in_pixel();
    let (x, y) = (wide as i32 / 2, high as i32 / 2);
    write(area, "no data", &letters(TEXT, FAINT), HPos::Center, x, y)
}

/// A line under a figure.
pub(super) fn note(area: &Area<'_>, text: &str, y: i32) -> Drawn {
    let text = fit(text, NOTE, WIDTH as i32 - 2 * SIDE);
    write(area, &text, &letters(NOTE, FAINT), HPos::Left, SIDE, y)
}

/// A title on its own strip.
pub(super) fn heading(area: &Area<'_>, title: &str) -> Drawn {
    let style =
        ("sans-serif", f64::from(TITLE) * 1.24, FontStyle::Bold).into_font().color(&INK.light);
    write(area, &fit(title, TITLE, WIDTH as i32 - 2 * SIDE), &style, HPos::Left, SIDE, 22)
}

/// The keys, in rows that fit into the width.
fn rows(keys: &[Key]) -> Vec<Vec<Key>> {
    let mut rows: Vec<Vec<Key>> = Vec::new();
    let mut room = 0;
    for key in keys {
        let label = fit(&key.label, TEXT, WIDTH as i32 - 2 * SIDE - KEY);
        let key = Key { label, ..key.clone() };
        room -= key_width(&key);
        match rows.last_mut().filter(|_| room >= 0) {
            Some(row) => row.push(key),
            None => {
                room = WIDTH as i32 - SIDE - key_width(&key);
                rows.push(vec![key]);
            }
        }
    }
    rows
}

fn key_width(key: &Key) -> i32 {
    KEY + width_of(&key.label, TEXT) + SIDE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_and_forbidden_characters_go() {
        assert_eq!(fit("loss", TEXT, 200), "loss");
        let cut = fit(&"x".repeat(1000), TEXT, 100);
        assert!(cut.ends_with('…') && width_of(&cut, TEXT) <= 100);
        assert_eq!(fit("a\u{0}\n\u{ffff}b", TEXT, 200), "a   b");
        assert_eq!(fit("long", TEXT, -3), "…");
    }
}
