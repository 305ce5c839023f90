//! Pictures as SVG text: loss curves, weights beside those planted, predictions beside labels, all
//! of them on one page, heat maps over many runs, histograms, and sparklines for the terminal.
//!
//! Every function takes plain slices, draws what is finite and says on the picture what it left
//! out. None fails and none panics, whatever the numbers. Pictures are 600 units wide with letters
//! of 14 and more, so that they can be read on a phone; they follow the reader's light or dark
//! setting, and the palette keeps apart for the colour-blind.

mod axis;
mod figures;
mod heat_map;
mod histogram;
mod mark;
mod page;
mod palette;
mod spark;

pub(crate) use figures::{Line, Measure, Names, course, lines};
pub use figures::{Panel, Series, loss_curve, panel, scatter, weights};
pub use heat_map::{Heat, HeatCell, Scale, heat};
pub use histogram::{Bins, Histogram, histograms};
pub(crate) use page::escape;
pub use spark::{SPARKLINE_WIDTH, sparkline};
