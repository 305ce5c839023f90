//! Lines over any quantity.

use plotters::element::DashedPathElement;
use plotters::prelude::*;

use super::axis::Axis;
use super::input::{Line, Measure};
use super::mark::{Key, Mark};
use super::page::{self, Area, Drawn, Frame};

/// Lines up to this length have a dot at each place.
const DOTTED: usize = 24;

pub(super) fn draw(area: &Area<'_>, title: &str, axes: [Measure<'_>; 2], lines: &[Line]) -> Drawn {
    let points = || lines.iter().flat_map(|line| line.points.iter().copied());
    let finite = |(x, y): &(f64, f64)| (*x as f32).is_finite() && (*y as f32).is_finite();
    let lost = points().filter(|at| !finite(at)).count();
    let axis = |axis: Measure<'_>, of: fn((f64, f64)) -> f64| {
        let values = || points().filter(finite).map(move |at| of(at) as f32);
        if axis.log {
            Axis::log(axis.name, values(), values().any(|value| value <= 0.0))
        } else {
            Axis::linear(axis.name, values())
        }
    };
    let mark = |line: &Line| match (line.dashed, line.points.len()) {
        (true, _) => Mark::Dashed,
        (_, 0..=DOTTED) => Mark::Dotted,
        _ => Mark::Line,
    };
    let colour = |line: &Line| page::SERIES[line.colour % page::SERIES.len()];
    let named = lines.iter().filter(|line| !line.label.is_empty());
    let frame = Frame {
        title,
        keys: named.map(|line| Key::new(mark(line), colour(line), &line.label)).collect(),
        x: axis(axes[0], |at| at.0),
        y: axis(axes[1], |at| at.1),
        notes: if lost > 0 { vec![format!("{lost} not finite, left out")] } else { Vec::new() },
        empty: points().count() == lost,
    };
    frame.draw(area, |chart| {
        for line in lines {
            let place =
                |at: &(f64, f64)| Some((frame.x.place(at.0 as f32)?, frame.y.place(at.1 as f32)?));
            let path: Vec<(f64, f64)> = line.points.iter().filter_map(place).collect();
            let style = colour(line).light.stroke_width(2);
            if line.dashed {
                chart.draw_series([DashedPathElement::new(path, 7, 5, style)])?;
                continue;
            }
            if mark(line) == Mark::Dotted {
                let dot = Key::new(Mark::Dot, colour(line), "");
                path.iter().try_for_each(|&at| dot.draw(chart.plotting_area(), at))?;
            }
            chart.draw_series([PathElement::new(path, style)])?;
        }
        Ok(())
    })
}
