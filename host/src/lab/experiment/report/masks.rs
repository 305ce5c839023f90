//! Histograms of the weights that masks keep, beside those of all weights.

use super::super::record::Solved;
use super::super::spec::Point;
use super::axes::place;
use super::view::View;
use crate::lab::plot::{self, Histogram};

/// What is counted, as axes and files call it; in the order of the histograms of a record, each
/// kept and all.
const COUNTED: [(&str, &str); 2] =
    [("|w| at the start", "weights"), ("score in the dense network", "scores")];

/// One picture for each number of weights, and each that is counted; of the first seed.
pub(super) fn histograms(view: &View) -> Vec<(String, String)> {
    let points = if view.part.data.hidden().is_empty() { Vec::new() } else { view.part.points() };
    points.into_iter().flat_map(|at| pictures(view, at)).collect()
}

fn pictures(view: &View, at: Point) -> Vec<(String, String)> {
    let solved = view.part.methods.iter().filter_map(|&of| Some((of, view.first_seed(of, at)?)));
    let solved: Vec<_> = solved.collect();
    let draw = |(k, (name, file)): (usize, &(&str, &str))| {
        let of = |solved: &Solved, which: usize| solved.histograms.get(2 * k + which).cloned();
        let kept = solved.iter().filter_map(|(method, solved)| {
            Some(Histogram { label: method.title().to_owned(), ..of(solved, 0)? })
        });
        let all = solved.first().and_then(|(_, solved)| of(solved, 1));
        let samples: Vec<Histogram> = kept.chain(all).collect();
        let title = format!("{name}, {}", place(&view.part, at));
        let svg = plot::histograms(&title, name, &samples);
        (!samples.is_empty()).then(|| (format!("{file}-s{}", at.s), svg))
    };
    COUNTED.iter().enumerate().filter_map(draw).collect()
}
