//! The marks that carry data and stand in legends, told apart by shape as well as by colour.

use plotters::coord::CoordTranslate;
use plotters::prelude::*;

use super::palette::Colour;

/// What drawing gives.
pub(super) type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Mark {
    Line,
    /// A line with a dot at each value.
    Dotted,
    /// A line of dashes.
    Dashed,
    Ring,
    Dot,
    Cross,
    Triangle,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Key {
    pub(super) mark: Mark,
    pub(super) colour: Colour,
    pub(super) label: String,
}

impl Key {
    pub(super) fn new(mark: Mark, colour: Colour, label: &str) -> Self {
        Self { mark, colour, label: label.to_owned() }
    }

    /// Draws the mark at a place, in the coordinates of the area.
    pub(super) fn draw<C: CoordTranslate>(
        &self,
        area: &DrawingArea<SVGBackend<'_>, C>,
        at: C::From,
    ) -> Drawn
    where
        C::From: Clone,
    {
        let style = |width| self.colour.light.stroke_width(width);
        let (thin, full) = (style(2), self.colour.light.filled());
        let line = |from, to, style| PathElement::new([(from, 0), (to, 0)], style);
        let here = EmptyElement::at(at.clone());
        match self.mark {
            Mark::Ring => area.draw(&Circle::new(at, 6, thin)),
            Mark::Cross => area.draw(&Cross::new(at, 5, thin)),
            Mark::Triangle => area.draw(&TriangleMarker::new(at, 8, full)),
            Mark::Dot => area.draw(&Circle::new(at, 3, full)),
            Mark::Line => area.draw(&(here + line(-10, 10, style(3)))),
            Mark::Dashed => area.draw(&(here + line(-10, -3, thin) + line(3, 10, thin))),
            Mark::Dotted => area.draw(&(here + line(-10, 10, thin) + Circle::new((0, 0), 3, full))),
        }
    }
}
