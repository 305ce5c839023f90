//! Heat maps: a table whose cells have colours.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::page::{self, Area, Drawn};

/// Colours from the low end to the high one. Like the letters on them they are the same on light
/// and on dark ground, so none of them is in the palette, which the reader's setting changes.
const COLOURS: [RGBColor; 5] = [
    RGBColor(28, 30, 86),
    RGBColor(45, 88, 146),
    RGBColor(38, 144, 140),
    RGBColor(128, 196, 98),
    RGBColor(250, 230, 80),
];
const DARK_LETTERS: RGBColor = RGBColor(0, 0, 0);
const LIGHT_LETTERS: RGBColor = RGBColor(254, 254, 254);

/// Height of a row of cells; of title, colour bar and names.
const CELL: u32 = 36;
const TITLE: u32 = 40;
const BAR: u32 = 32;
const NAME: u32 = 28;
/// Steps of the colour bar, and its width.
const STEPS: i32 = 60;
const BAR_WIDTH: i32 = 180;

/// One axis of a heat map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale<'a> {
    /// What is counted along it.
    pub name: &'a str,
    /// One label per row or column of cells.
    pub labels: &'a [String],
}

/// A cell of a heat map.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HeatCell {
    /// None where it was not measured.
    pub value: Option<f32>,
    /// Whether it has a star.
    pub starred: bool,
    /// What a reader sees who points at it, if anything.
    pub hover: String,
}

/// What [`heat`] draws: one cell per pair of a row and a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Heat<'a> {
    /// Heading of the picture.
    pub title: &'a str,
    /// What a value is, with its unit: `"PSNR, dB"`.
    pub value: &'a str,
    /// Down the picture.
    pub rows: Scale<'a>,
    /// Across the picture.
    pub columns: Scale<'a>,
    /// Row by row; what is missing was not measured.
    pub cells: &'a [HeatCell],
    /// Values at the two ends of the colours; values beyond have the colour of the end.
    pub range: (f32, f32),
    /// Digits behind the point.
    pub digits: usize,
    /// What a star says; it stands under the picture where there is a star.
    pub star: &'a str,
}

/// A table of numbers whose cells are coloured by their values, from dark blue for the low end to
/// yellow for the high one. The lightness rises all the way, so that the colours also tell in print
/// and to the colour-blind; every cell carries its number.
#[must_use]
pub fn heat(map: &Heat<'_>) -> String {
    let table = Table::of(map);
    let starred = map.cells.iter().any(|cell| cell.starred);
    let body = NAME + CELL * table.rows.max(1) as u32 + 2 * NAME;
    let height = TITLE + BAR + body + if starred { page::ROW } else { 0 };
    let mut svg = page::page(map.title, height, |area| {
        let (top, rest) = area.split_vertically(TITLE);
        page::heading(&top, map.title)?;
        let (legend, rest) = rest.split_vertically(BAR);
        draw_bar(&legend, map)?;
        let (middle, notes) = rest.split_vertically(body);
        if map.cells.iter().filter_map(|cell| cell.value).any(f32::is_finite) {
            table.draw(&middle, map)?;
        } else {
            page::no_data(&middle)?;
        }
        if starred { page::note(&notes, &format!("* {}", map.star), 4) } else { Ok(()) }
    });
    // A clear rectangle with a title over every cell that has something to say: readers show it to
    // who points there.
    let cells = map.cells.iter().enumerate().take(table.rows * table.columns);
    let titles = cells.filter(|(_, cell)| !cell.hover.is_empty()).map(|(at, cell)| {
        let [(x, y), (right, bottom)] = table.cell(at / table.columns, at % table.columns);
        let (y, wide, high) = (y + (TITLE + BAR) as i32, right - x, bottom - y);
        let text = page::escape(&cell.hover);
        format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{high}\" fill=\"none\" \
             pointer-events=\"all\">\n<title>{text}</title>\n</rect>\n"
        )
    });
    if let Some(end) = svg.rfind("</svg>") {
        svg.insert_str(end, &titles.collect::<String>());
    }
    svg
}

/// Where the cells are, below the colours.
struct Table {
    rows: usize,
    columns: usize,
    left: i32,
    right: i32,
}

impl Table {
    fn of(map: &Heat<'_>) -> Self {
        let (rows, columns) = (map.rows.labels.len(), map.columns.labels.len());
        let widest = map.rows.labels.iter().map(|label| page::width_of(label, page::TEXT)).max();
        let names = widest.unwrap_or(0).max(page::SIDE).min(page::WIDTH as i32 / 4);
        Self { rows, columns, left: page::SIDE + names + 8, right: page::WIDTH as i32 - page::SIDE }
    }

    /// Two corners of a cell.
    fn cell(&self, row: usize, column: usize) -> [(i32, i32); 2] {
        let across = |column: usize| {
            self.left + (self.right - self.left) * column as i32 / self.columns.max(1) as i32
        };
        let down = |row: usize| (NAME + CELL * row as u32) as i32;
        [(across(column), down(row)), (across(column + 1) - 2, down(row + 1) - 2)]
    }

    fn draw(&self, area: &Area<'_>, map: &Heat<'_>) -> Drawn {
        let [ink, faint] = [page::INK, page::FAINT].map(|colour| page::letters(page::TEXT, colour));
        let name = page::fit(map.rows.name, page::TEXT, self.right - page::SIDE);
        page::write(area, &name, &faint, HPos::Left, page::SIDE, NAME as i32 / 2)?;
        for (row, label) in map.rows.labels.iter().enumerate() {
            let label = page::fit(label, page::TEXT, self.left - page::SIDE - 8);
            let middle = self.cell(row, 0)[0].1 + CELL as i32 / 2;
            page::write(area, &label, &ink, HPos::Right, self.left - 8, middle)?;
            for column in 0..self.columns {
                let Some(cell) = map.cells.get(row * self.columns + column) else { continue };
                let Some(value) = cell.value.filter(|value| value.is_finite()) else { continue };
                let fraction = fraction(value, map.range.0, map.range.1);
                let place = self.cell(row, column);
                area.draw(&Rectangle::new(place, colour(fraction).filled()))?;
                let star = if cell.starred { "*" } else { "" };
                let text = format!("{}{star}", number(value, map.digits));
                let text = page::fit(&text, page::NOTE, place[1].0 - place[0].0);
                let size = f64::from(page::NOTE) * 1.24;
                let style = ("sans-serif", size).into_font().color(&letters(fraction));
                let x = i32::midpoint(place[0].0, place[1].0);
                page::write(area, &text, &style, HPos::Center, x, middle - 1)?;
            }
        }
        for (column, label) in map.columns.labels.iter().enumerate() {
            let [(left, below), (right, _)] = self.cell(self.rows, column);
            let label = page::fit(label, page::TEXT, right + 2 - left);
            let (x, y) = (i32::midpoint(left, right), below + NAME as i32 / 2);
            page::write(area, &label, &ink, HPos::Center, x, y)?;
        }
        let name = page::fit(map.columns.name, page::TEXT, self.right - self.left);
        let below = self.cell(self.rows, 0)[0].1 + NAME as i32 * 3 / 2 - 4;
        let x = i32::midpoint(self.left, self.right);
        page::write(area, &name, &faint, HPos::Center, x, below)
    }
}

/// The colours, with the values at their ends and what they are.
fn draw_bar(area: &Area<'_>, map: &Heat<'_>) -> Drawn {
    let ink = page::letters(page::TEXT, page::INK);
    let (low, high) = map.range;
    let [low, high] = [low, high].map(|end| page::fit(&number(end, map.digits), page::TEXT, 100));
    let y = BAR as i32 / 2;
    let mut x = page::SIDE;
    page::write(area, &low, &ink, HPos::Left, x, y)?;
    x += page::width_of(&low, page::TEXT) + 8;
    for step in 0..STEPS {
        let at = |step: i32| x + step.min(STEPS) * BAR_WIDTH / STEPS;
        let fill = colour(step as f32 / (STEPS - 1) as f32).filled();
        // Each step reaches under the next one: rectangles side by side show the ground between
        // them where the picture is scaled.
        area.draw(&Rectangle::new([(at(step), y - 8), (at(step + 2), y + 8)], fill))?;
    }
    x += BAR_WIDTH + 8;
    page::write(area, &high, &ink, HPos::Left, x, y)?;
    x += page::width_of(&high, page::TEXT) + page::SIDE;
    let what = page::fit(map.value, page::TEXT, page::WIDTH as i32 - page::SIDE - x);
    page::write(area, &what, &ink, HPos::Left, x, y)
}

/// A number with so many digits, scientific where it would be long, and never "-0".
fn number(value: f32, digits: usize) -> String {
    let digits = digits.min(6);
    if value.abs() >= 1e5 {
        return format!("{value:.0e}");
    }
    let text = format!("{value:.digits$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| matches!(c, '0' | '.')) => rest.to_owned(),
        _ => text,
    }
}

/// Where a value lies between the ends, 0 to 1.
fn fraction(value: f32, low: f32, high: f32) -> f32 {
    let fraction = (f64::from(value) - f64::from(low)) / (f64::from(high) - f64::from(low));
    if fraction.is_finite() { fraction.clamp(0.0, 1.0) as f32 } else { 0.5 }
}

fn colour(fraction: f32) -> RGBColor {
    let at = fraction.clamp(0.0, 1.0) * (COLOURS.len() - 1) as f32;
    let first = (at as usize).min(COLOURS.len() - 2);
    let (a, b, t) = (COLOURS[first], COLOURS[first + 1], at - first as f32);
    let mix = |a: u8, b: u8| (f32::from(a) + (f32::from(b) - f32::from(a)) * t).round() as u8;
    RGBColor(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}

/// Letters that can be read on the colour.
fn letters(fraction: f32) -> RGBColor {
    let contrast = |letters| page::contrast(letters, colour(fraction));
    if contrast(DARK_LETTERS) > contrast(LIGHT_LETTERS) { DARK_LETTERS } else { LIGHT_LETTERS }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lightness_rises_and_text_contrasts_with_every_colour() {
        let mut last = 0.0;
        for step in 0..=100 {
            let fraction = step as f32 / 100.0;
            let light = page::contrast(colour(fraction), DARK_LETTERS);
            assert!(light > last, "{fraction}");
            last = light;
            assert!(page::contrast(letters(fraction), colour(fraction)) >= 4.5, "{fraction}");
        }
    }

    #[test]
    fn cell_and_text_colours_are_independent_of_theme() {
        let palette =
            [page::GROUND, page::INK, page::FAINT, page::GRID].into_iter().chain(page::SERIES);
        let taken: Vec<RGBColor> = palette.map(|c| c.light).collect();
        let cells = (0..=1000).map(|step| colour(step as f32 / 1000.0));
        assert!(cells.chain([DARK_LETTERS, LIGHT_LETTERS]).all(|c| !taken.contains(&c)));
    }

    /// Where two steps only touch, a browser that scales the picture shows the ground between them.
    #[test]
    fn steps_of_the_colour_bar_overlap() {
        let one = ["1".to_owned()];
        let scale = Scale { name: "m", labels: &one };
        let svg = heat(&Heat {
            title: "t",
            value: "v",
            rows: scale,
            columns: scale,
            cells: &[],
            range: (0.0, 1.0),
            digits: 0,
            star: "",
        });
        let number = |line: &str, key: &str| -> Option<i32> {
            line.split_once(&format!(" {key}=\""))
                .and_then(|(_, rest)| rest.split('"').next()?.parse().ok())
        };
        let steps: Vec<(i32, i32)> = svg
            .lines()
            .filter(|line| line.starts_with("<rect") && number(line, "height") == Some(16))
            .filter_map(|line| Some((number(line, "x")?, number(line, "width")?)))
            .collect();
        assert_eq!(steps.len(), STEPS as usize, "{svg}");
        assert!(steps.windows(2).all(|pair| pair[1].0 < pair[0].0 + pair[0].1), "{steps:?}");
    }

    #[test]
    fn values_are_clamped_to_the_colours() {
        assert_eq!((fraction(-50.0, -20.0, 160.0), fraction(500.0, -20.0, 160.0)), (0.0, 1.0));
        assert_eq!(fraction(70.0, -20.0, 160.0), 0.5);
        assert_eq!(fraction(f32::MAX, f32::MIN, f32::MAX), 1.0);
        assert_eq!(fraction(1.0, 2.0, 2.0), 0.5);
        assert_eq!((colour(0.0), colour(1.0)), (COLOURS[0], COLOURS[4]));
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!((number(-0.2, 0), number(-0.5, 1)), ("0".to_owned(), "-0.5".to_owned()));
        assert_eq!((number(1e30, 2), number(99_999.0, 0)), ("1e30".to_owned(), "99999".to_owned()));
    }
}
