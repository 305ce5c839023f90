//! The weights of trained networks, layer by layer.

use super::super::record::Solved;
use super::super::spec::{Data, DenseData, Inputs, Method, Part, Point, Tables};
use super::axes::{by_size, place};
use super::table::{Item, Table};
use super::view::{View, number};
use crate::lab::plot;
use crate::model::WeightStats;

/// What the networks are trained on, in words.
pub(super) fn settings(part: &Part, data: &DenseData) -> String {
    let DenseData { from, inputs, test, .. } = data;
    let rows = match from {
        Tables::Covertype => "rows of Covertype",
        Tables::StandIn => "generated rows in place of Covertype (a stand-in)",
    };
    let inputs = match inputs {
        Inputs::Raw => "as they are",
        Inputs::Standardised => "each column standardised",
    };
    let imp = &part.imp;
    format!(
        "n {rows}, {inputs}, {test} others to test on; {} hidden layers of m neurons of relu, no \
         biases; {} epochs of Adam at {}, batches of {}",
        part.hidden, imp.epochs, imp.rate, imp.batch
    )
}

/// The networks whose weights are shown: of the first seed.
fn solved(view: &View, at: Point) -> Option<&Solved> {
    view.first_seed(Method::TrainedWeights, at).filter(|solved| !solved.layers.is_empty())
}

/// A row for each layer of each network.
pub(super) fn layers(view: &View) -> Option<Table> {
    let Data::Dense(_) = view.part.data else { return None };
    let heads = ["layer", "weights", "mean", "variance", "variance · m", "least", "largest"];
    let note = format!(
        "{} Of the first seed. The theory of random weights is for a variance of 3/m at most.",
        view.part.note
    );
    let row = |at: Point, layer: usize, of: &WeightStats| -> Vec<Item> {
        let times = of.variance * at.m as f64;
        let numbers = [of.mean, of.variance].map(|x| number(x, 5));
        let ends = [of.least, of.largest].map(|x| number(f64::from(x), 3));
        let texts = [(layer + 1).to_string(), of.count.to_string()].into_iter().chain(numbers);
        texts.chain([number(times, 2)]).chain(ends).map(Item::from).collect()
    };
    Some(by_size(
        &view.part,
        ["Weights of each layer", note.trim_start()],
        heads.map(str::to_owned),
        |at| {
            let layers = solved(view, at).map_or(&[][..], |solved| &solved.layers);
            layers.iter().enumerate().map(|(layer, of)| row(at, layer, of)).collect::<Vec<_>>()
        },
    ))
}

/// The histograms of the layers of each network.
pub(super) fn histograms(view: &View) -> Vec<(String, String)> {
    let Data::Dense(_) = view.part.data else { return Vec::new() };
    let draw = |at: Point| {
        let title = format!("Weights, {}", place(&view.part, at));
        let svg = plot::histograms(&title, "weight", &solved(view, at)?.histograms);
        Some((format!("weights-m{}-n{}", at.m, at.n), svg))
    };
    view.part.points().into_iter().filter_map(draw).collect()
}
