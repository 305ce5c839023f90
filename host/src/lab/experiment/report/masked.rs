//! Networks that are trained under masks: accuracies with their intervals, a sentence for each claim
//! on differences, and lines over the number of weights.

use super::super::record::{Record, Solved};
use super::super::spec::{Claim, Data, Expected, Inputs, Metric, Point, Rows};
use super::axes::by_size;
use super::interval::Interval;
use super::table::{Item, Table};
use super::view::{View, number};
use crate::base::statistics::median;
use crate::lab::plot::{self, Line, Measure};
use crate::mask::WeightLaw;

/// Most lines of a picture.
const LINES: usize = 6;
/// Digits of percentages.
const DIGITS: usize = 2;

/// A cell of the part.
struct Place<'a> {
    variant: &'a str,
    s: usize,
    seed: u64,
}

pub(super) fn settings(view: &View) -> String {
    let part = &view.part;
    let Data::Masked(data) = &part.data else { return String::new() };
    let widths: Vec<String> = data.widths().iter().map(usize::to_string).collect();
    let inputs = match data.inputs {
        Inputs::Raw => "pixels as fractions of 256",
        Inputs::Standardised => "pixels less their mean, over their deviation",
    };
    let law = match data.initial {
        WeightLaw::He => "normal initial weights of variance 2/inputs",
        WeightLaw::Pytorch => "initial weights uniform in ±1/√inputs",
        WeightLaw::Signs => "initial weights ±√(2/inputs)",
    };
    format!(
        "{}, {} weights; {inputs}; {law}; {} epochs of SGD; {}; accuracy on the test rows",
        widths.join("-"),
        data.weights(),
        part.epochs,
        view.seeds()
    )
}

pub(super) fn tables(view: &View) -> Vec<Table> {
    vec![claims(view), accuracies(view)]
}

fn accuracies(view: &View) -> Table {
    let heads = [
        "accuracy, %",
        "least",
        "weights",
        "collapsed layers",
        "dead weights",
        "overlap",
        "seconds of the mask",
        "of training",
        "state of the mask, KB",
        "of training, KB",
        "with its workspace, KB",
        "peak, KB",
    ];
    let note = "Mean accuracy on the test rows and half of its 95 % confidence interval over seeds, \
                the least of all seeds, and medians. Dead weights lie on no path from an input to an \
                output; overlap is the fraction of the weights that 100 rounds on weights in memory \
                keep too. State is what lives from step to step, by formula, and with the workspace all that \
                training holds beside the data; the peak is that of the heap over mask and training, measured, without the data.";
    let bytes = |value: f64| number(value / 1000.0, 0);
    by_size(&view.part, ["Accuracy", note], heads.map(str::to_owned), |at| {
        let solved: Vec<&Solved> = solved(view, at).collect();
        let values = accuracy(view, at);
        let interval = Interval::of(&values)?;
        let middle = |of: &dyn Fn(&Solved) -> Option<f64>| {
            median(solved.iter().filter_map(|solved| of(solved)).collect())
        };
        let measured = |metric: Metric, digits: usize| {
            let value = middle(&|solved| solved.measured.get(&metric).copied());
            value.map(|value| number(value, digits)).unwrap_or_default()
        };
        let held = |of: &Solved| Some((of.state_bytes? + of.workspace_bytes?) as f64);
        let kept = middle(&|solved| Some(solved.nnz as f64));
        let seconds = middle(&|solved| Some(solved.seconds));
        let state = middle(&|of| of.measured.get(&Metric::MaskState).copied());
        let row = [
            interval.text(DIGITS),
            number(values.iter().copied().fold(f64::INFINITY, f64::min), DIGITS),
            kept.map(|kept| number(kept, 0)).unwrap_or_default(),
            measured(Metric::CollapsedLayers, 1),
            measured(Metric::DeadWeights, 0),
            measured(Metric::Overlap, 3),
            measured(Metric::MaskSeconds, 2),
            seconds.map(|seconds| number(seconds, 1)).unwrap_or_default(),
            state.map(bytes).unwrap_or_default(),
            middle(&|of| Some(of.state_bytes? as f64)).map(bytes).unwrap_or_default(),
            middle(&held).map(bytes).unwrap_or_default(),
            middle(&|of| Some(of.heap_peak_bytes? as f64)).map(bytes).unwrap_or_default(),
        ];
        Some(row.map(Item::from).to_vec())
    })
}

fn solved(view: &View, at: Point) -> impl Iterator<Item = &Solved> {
    let own = move |record: &&Record| record.cell.point(&view.part) == at;
    view.records.iter().filter(own).filter_map(|record| record.solved.as_ref())
}

/// In percent, of each seed that has a result.
fn accuracy(view: &View, at: Point) -> Vec<f64> {
    let percent = |of: &Solved| Some(100.0 * view.metric(of, Rows::Test, Metric::Accuracy)?);
    solved(view, at).filter_map(percent).collect()
}

fn value(view: &View, at: &Place<'_>, metric: Metric) -> Option<f64> {
    let Place { variant, s, seed } = *at;
    let own = |record: &&Record| {
        let cell = &record.cell;
        cell.s == s && cell.seed == seed && cell.variant.as_deref() == Some(variant)
    };
    let solved = view.records.iter().find(own)?.solved.as_ref()?;
    let value = view.metric(solved, Rows::Test, metric)?;
    Some(if metric == Metric::Accuracy { 100.0 * value } else { value })
}

/// A row for each claim and s that has results.
fn claims(view: &View) -> Table {
    let mut rows = Vec::new();
    let weights = match &view.part.data {
        Data::Masked(data) => data.weights() as f64,
        _ => return Table::new("Claims", "", [""; 0], rows),
    };
    for claim in &view.part.claims {
        for (at, &s) in view.part.s.iter().enumerate() {
            let Some(found) = difference(view, claim, s) else { continue };
            let expected = claim.expected(at);
            let share = number(100.0 * s as f64 / weights, 1);
            let said = sentence(claim, &format!("s = {s} ({share} %)"), &found);
            rows.push(
                [said, bounds(expected), judged(&found, expected).to_owned()]
                    .map(Item::from)
                    .to_vec(),
            );
        }
    }
    let note = "Differences are taken seed by seed, of several methods as means over them; intervals \
                are those of Student's t. As expected: yes where the whole interval is, no where none \
                of it is, else undecided.";
    Table::new("Claims", note, ["what was measured", "expected", "as expected"], rows)
}

/// The mean over pairs of each seed that has all of them.
fn difference(view: &View, claim: &Claim, s: usize) -> Option<Interval> {
    let metric = claim.metric.unwrap_or(Metric::Accuracy);
    let of_seed = |&seed: &u64| {
        let of = |variant: &String| value(view, &Place { variant, s, seed }, metric);
        let mut sum = 0.0;
        for (at, name) in claim.of.iter().enumerate() {
            let other = claim.minus.get(at).or(claim.minus.last());
            sum += of(name)? - other.map_or(Some(0.0), of)?;
        }
        Some(sum / claim.of.len() as f64)
    };
    Interval::of(&view.part.seeds.iter().filter_map(of_seed).collect::<Vec<_>>())
}

fn sentence(claim: &Claim, place: &str, found: &Interval) -> String {
    let (unit, digits) = if claim.metric.is_none() { (" points", DIGITS) } else { ("", 3) };
    let [mean, low, high] = [found.mean, found.low(), found.high()].map(|x| number(x, digits));
    let certain = match found.count {
        1 => "one seed, no interval".to_owned(),
        count => format!("95 % interval {low} to {high}, {count} seeds"),
    };
    let verdict = match (claim.minus.is_empty() || found.count == 1, found.low(), found.high()) {
        (true, ..) => "",
        (_, low, _) if low > 0.0 => " The first is better.",
        (_, _, high) if high < 0.0 => " The second is better.",
        _ => " No difference is shown.",
    };
    format!("{} at {place}: {mean}{unit} ({certain}).{verdict}", claim.says)
}

fn bounds(of: Expected) -> String {
    match (of.least.is_finite(), of.most.is_finite()) {
        (true, true) => format!("{} to {}", of.least, of.most),
        (true, false) => format!("at least {}", of.least),
        (false, true) => format!("at most {}", of.most),
        (false, false) => String::new(),
    }
}

fn judged(found: &Interval, Expected { least, most }: Expected) -> &'static str {
    if !least.is_finite() && !most.is_finite() {
        return "";
    }
    match () {
        () if found.low() >= least && found.high() <= most => "yes",
        () if found.high() < least || found.low() > most => "no",
        () => "undecided",
    }
}

/// Accuracies over s, with their intervals, so many variants in a picture.
pub(super) fn curves(view: &View) -> Vec<(String, String)> {
    let part = &view.part;
    if !matches!(part.data, Data::Masked(_)) || part.s.len() < 2 {
        return Vec::new();
    }
    let points = part.points();
    let order: Vec<usize> = (0..part.variants.len()).collect();
    let draw = |(at, variants): (usize, &[usize])| {
        let (mut lines, mut bars) = (Vec::new(), Vec::new());
        for (colour, &variant) in variants.iter().enumerate() {
            let mut joined = Vec::new();
            for &point in points.iter().filter(|point| point.variant == variant) {
                let Some(found) = Interval::of(&accuracy(view, point)) else { continue };
                // Beside each other, so that bars are seen.
                let x = point.s as f64 * (1.0 + 0.015 * colour as f64);
                joined.push((x, found.mean));
                if found.half.is_finite() {
                    let points = vec![(x, found.low()), (x, found.high().min(100.0))];
                    bars.push(Line { label: String::new(), points, colour, dashed: true });
                }
            }
            joined.sort_by(|a, b| a.0.total_cmp(&b.0));
            let label = part.variants[variant].title().to_owned();
            lines.push(Line { label, points: joined, colour, dashed: false });
        }
        lines.extend(bars);
        let x = Measure { name: "weights that are kept", log: true };
        let y = Measure { name: "accuracy on the test rows, %", log: false };
        (
            format!("accuracy-{}", at + 1),
            plot::lines("Accuracy, with 95 % intervals", [x, y], &lines),
        )
    };
    order.chunks(LINES).enumerate().map(draw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim() -> Claim {
        let names = |name: &str| vec![name.to_owned()];
        Claim {
            says: "A minus B".into(),
            of: names("a"),
            minus: names("b"),
            metric: None,
            least: vec![0.8],
            most: Vec::new(),
        }
    }

    #[test]
    fn sentences_and_verdicts_follow_the_numbers() {
        let said = |values: &[f64]| {
            let found = Interval::of(values).unwrap();
            let is_expected = judged(&found, claim().expected(3));
            format!("{} {is_expected}", sentence(&claim(), "s = 20", &found))
        };
        assert_eq!(
            said(&[1.0, 1.1, 1.2]),
            "A minus B at s = 20: 1.10 points (95 % interval 0.85 to 1.35, 3 seeds). The first is \
             better. yes"
        );
        assert!(said(&[-1.0, -1.1, -1.2]).ends_with("The second is better. no"));
        assert!(said(&[-2.0, 0.1, 3.0]).ends_with("No difference is shown. undecided"));
        assert!(said(&[0.9]).ends_with("(one seed, no interval). undecided"));
    }

    #[test]
    fn bounds_are_for_all_sizes_or_one_each() {
        let each = Claim { least: vec![0.1, 0.2], most: vec![0.5], ..claim() };
        let texts: Vec<_> = (0..2).map(|at| bounds(each.expected(at))).collect();
        assert_eq!(texts, ["0.1 to 0.5", "0.2 to 0.5"]);
        assert_eq!(bounds(Claim { least: Vec::new(), ..claim() }.expected(0)), "");
    }
}
