//! What the figures of a part say together: the recipe beside the published method, the published
//! method beside the figures that are known of it, and why a baseline that was trained to its end
//! is no better.

use super::super::median::median;
use super::super::record::{Record, Solved, Status};
use super::super::spec::{Method, Metric, Point};
use super::axes::place;
use super::table::{Item, Table, listed, plain};
use super::view::{Experiment, View, number};

/// From here on a fit in floats is exact: the error is rounding.
const EXACT_DB: f64 = 100.0;

/// What a baseline that was trained should have above the zero predictor, and from how many
/// nonzeros on.
const ABOVE_ZERO_DB: f64 = 10.0;
const FROM_NONZEROS: usize = 50;

/// The fraction of a course that counts as its end, and the most that the loss falls by there where
/// a training has ended.
const LAST: f64 = 0.05;
const STILL: f64 = 0.01;

const EXACT: &str = "both exact, to the rounding of floats";

/// The tables of a part.
pub(super) fn tables(view: &View) -> [Table; 3] {
    [beside_paper(view), beside_known(view), baseline(view)]
}

/// How a value stands beside another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Better,
    Equal,
    Exact,
    Behind,
}

impl Standing {
    const ALL: [Self; 4] = [Self::Better, Self::Equal, Self::Exact, Self::Behind];

    /// Beyond what is printed of them.
    fn of(metric: Metric, own: f64, other: f64) -> Self {
        let (_, digits) = metric.digits();
        let printed = |value: f64| (value * 10_f64.powi(digits as i32)).round();
        if metric == Metric::Psnr && own >= EXACT_DB && other >= EXACT_DB {
            Self::Exact
        } else if printed(own) == printed(other) {
            Self::Equal
        } else if own > other {
            Self::Better
        } else {
            Self::Behind
        }
    }

    const fn title(self) -> &'static str {
        ["better", "equal", EXACT, "behind"][self as usize]
    }
}

/// How the default recipe stands beside another method at each size that both have a result of.
/// Where the other's steps diverge, it is better.
fn standings(view: &View, other: Method) -> Vec<(Standing, Point)> {
    let standing = |at: Point| {
        let [own, beside] = [Method::Recipe, other].map(|method| view.stats(method, at));
        let failed = || beside.lost.iter().any(|(_, status)| *status == Status::Failed);
        match (own.median(), beside.median()) {
            (Some(own), Some(other)) => Some((Standing::of(view.part.metric, own, other), at)),
            (Some(_), None) if failed() => Some((Standing::Better, at)),
            _ => None,
        }
    };
    let is_compared = matches!(view.part.metric, Metric::Psnr | Metric::Accuracy);
    view.part.points().into_iter().filter(|_| is_compared).filter_map(standing).collect()
}

/// The methods that the default recipe is to be better than.
const RIVALS: [Method; 3] = [Method::Paper, Method::ImpPublished, Method::Imp];

/// Who wins: the default recipe beside its rivals, a row per part.
pub(super) struct Headline {
    /// One sentence over all parts.
    pub(super) sentence: String,
    pub(super) table: Table,
}

impl Headline {
    pub(super) fn markdown(&self) -> String {
        let Self { sentence, table } = self;
        format!("# {}\n\n{}\n\n{}\n", plain(&table.title), plain(sentence), table.markdown())
    }
}

/// None where nothing is compared.
pub(super) fn headline(experiments: &[Experiment]) -> Option<Headline> {
    let views = || experiments.iter().flat_map(|own| own.views.iter().map(move |view| (own, view)));
    let of = |view: &View, rival: Method| -> Vec<Standing> {
        standings(view, rival).into_iter().map(|(standing, _)| standing).collect()
    };
    let rivals = RIVALS.into_iter().filter_map(|rival| {
        let all: Vec<Standing> = views().flat_map(|(_, view)| of(view, rival)).collect();
        (!all.is_empty()).then_some((rival, all))
    });
    let rivals: Vec<(Method, Vec<Standing>)> = rivals.collect();
    let sentences = rivals.iter().map(|(rival, all)| sentence(*rival, all)).collect::<Vec<_>>();
    let row = |(experiment, view): (&Experiment, &View)| {
        let texts: Vec<String> = rivals.iter().map(|(rival, _)| tally(&of(view, *rival))).collect();
        let is_compared = texts.iter().any(|text| !text.is_empty());
        let named = std::iter::once(title(experiment, view)).chain(texts);
        is_compared.then(|| named.map(Item::from).collect())
    };
    let head = rivals.iter().map(|(rival, _)| format!("beside {}", rival.title()));
    let note = "Medians over seeds in the digits that are printed; fits of 100 dB and more are \
                exact to the rounding of floats.";
    (!rivals.is_empty()).then(|| Headline {
        sentence: format!("Tamis's default recipe is {}.", sentences.join("; ")),
        table: Table::new(
            "Who wins",
            note,
            std::iter::once("cells of".to_owned()).chain(head),
            views().filter_map(row).collect(),
        ),
    })
}

fn count(all: &[Standing], own: Standing) -> usize {
    all.iter().filter(|standing| **standing == own).count()
}

/// Such as `better 19, both exact 10`.
fn tally(all: &[Standing]) -> String {
    let shown = Standing::ALL.into_iter().filter(|&own| count(all, own) > 0);
    listed(shown.map(|own| {
        let word = if own == Standing::Exact { "both exact" } else { own.title() };
        format!("{word} {}", count(all, own))
    }))
}

fn sentence(rival: Method, found: &[Standing]) -> String {
    let (all, better, behind) =
        (found.len(), count(found, Standing::Better), count(found, Standing::Behind));
    let level = all - better - behind;
    let title = rival.title();
    format!("better than {title} in {better} of {all} cells, level in {level}, behind in {behind}")
}

/// A part's title, with that of its experiment where it does not say it.
fn title(experiment: &Experiment, view: &View) -> String {
    let (whole, own) = (&experiment.spec.title, &view.part.title);
    match experiment.views.len() {
        1 => whole.clone(),
        _ if own.starts_with(whole) => own.clone(),
        _ => format!("{whole}: {own}"),
    }
}

/// The default recipe beside the published method, cell by cell.
fn beside_paper(view: &View) -> Table {
    let part = &view.part;
    let (_, digits) = part.metric.digits();
    let text = |(standing, at): &(Standing, Point)| {
        let [own, other] =
            [Method::Recipe, Method::Paper].map(|method| view.stats(method, *at).median());
        let mut cell = format!("({})", place(part, *at).replace("m = ", "").replace("s = ", ""));
        match (standing, own, other) {
            (Standing::Behind, Some(own), Some(other)) => {
                cell += &format!(" {} to {}", number(own, digits), number(other, digits));
                if fits_better(view, *at) {
                    cell += ", with less loss on the training rows";
                }
            }
            (Standing::Better, _, None) => cell += ", where the published steps diverge",
            _ => {}
        }
        cell
    };
    let standings = standings(view, Method::Paper);
    let row = |standing: Standing| {
        let cells: Vec<String> =
            standings.iter().filter(|own| own.0 == standing).map(text).collect();
        let hover = cells.join(", ");
        let text = if standing == Standing::Behind || cells.len() <= 6 {
            hover.clone()
        } else {
            format!("{} and {} more", cells[..3].join(", "), cells.len() - 3)
        };
        let count = format!("{} of {}", cells.len(), standings.len());
        let row = vec![standing.title().into(), count.into(), Item { text, hover }];
        (!cells.is_empty()).then_some(row)
    };
    Table::new(
        format!("{} beside {}", Method::Recipe.title(), Method::Paper.title()),
        format!(
            "{} on the {}, medians over seeds, in the digits that are printed.",
            part.metric.title(),
            part.on.title()
        ),
        ["the recipe is", "cells", "(m, s)"],
        Standing::ALL.into_iter().filter_map(row).collect(),
    )
}

/// Whether the recipe has the lower median loss on the rows trained on.
fn fits_better(view: &View, at: Point) -> bool {
    let loss = |method: Method| {
        median(view.solved(method, at).filter_map(|solved| Some(solved.train?.loss)).collect())
    };
    matches!((loss(Method::Recipe), loss(Method::Paper)), (Some(own), Some(other)) if own < other)
}

/// The published method and its variants beside what the paper prints and what was measured of its
/// authors' code.
fn beside_known(view: &View) -> Table {
    let part = &view.part;
    let ours = part.methods.iter().copied().filter(|method| method.is_published());
    let ours: Vec<Method> = ours.collect();
    let (_, digits) = part.metric.digits();
    let points = part.points();
    let mut rows = Vec::new();
    for (source, values) in
        [("published", &view.known.published), ("authors' code", &view.known.reference)]
    {
        // Seeds differ by more than methods: one says little.
        let is_shown = part.seeds.len() > 1;
        for known in values.iter().filter(|known| is_shown && known.method == Method::Paper) {
            let (m, s) = (known.m, known.s);
            let Some(&at) = points.iter().find(|at| (at.m, at.s) == (m, s)) else { continue };
            let mut row: Vec<Item> = vec![m.to_string().into(), s.to_string().into()];
            row.extend([source.into(), Item { text: known.text(digits), hover: known.about() }]);
            let mut best: Option<Reach> = None;
            for &method in &ours {
                let stats = view.stats(method, at);
                row.push(stats.spread(digits).into());
                let (median, most) = (stats.median(), stats.most());
                best = best.max(Reach::of(part.metric, median, most, known.median()));
            }
            row.push(best.map_or("", Reach::title).into());
            rows.push(row);
        }
    }
    let head = ["m", "s", "source", "figure"].into_iter().chain(ours.iter().map(|of| of.title()));
    let note = "Medians over seeds, in brackets the least and the most. Where a known figure is of \
                several seeds it is their median, and says which it is when it is pointed at.";
    Table::new("Beside the known figures", note, head.chain(["the best of ours"]), rows)
}

/// How a median stands to a known figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    Behind,
    WithinSeeds,
    Exact,
    Reached,
}

impl Reach {
    /// None where there is nothing to compare; a figure that is no number is that of a run that
    /// diverged.
    fn of(metric: Metric, own: Option<f64>, most: Option<f64>, figure: f64) -> Option<Self> {
        let (own, most) = (own?, most?);
        Some(match Standing::of(metric, own, figure) {
            _ if figure.is_nan() || own >= figure => Self::Reached,
            Standing::Exact => Self::Exact,
            Standing::Behind if most >= figure => Self::WithinSeeds,
            Standing::Behind => Self::Behind,
            Standing::Better | Standing::Equal => Self::Reached,
        })
    }

    const fn title(self) -> &'static str {
        ["behind", "within its seeds", EXACT, "reached"][self as usize]
    }
}

/// Where the baseline that is trained to its end is little better than the zero predictor, and why.
fn baseline(view: &View) -> Table {
    let part = &view.part;
    let mut rows = Vec::new();
    let is_shown = part.metric == Metric::Psnr && part.methods.contains(&Method::Imp);
    for at in part.points().into_iter().filter(|at| is_shown && at.s >= FROM_NONZEROS) {
        let zero = view.stats(Method::Zero, at).values;
        for record in view.records_of(Method::Imp, at) {
            let Some(solved) = &record.solved else { continue };
            let seed = record.cell.seed;
            // Where the zero predictor is the same for all cells it has one seed.
            let base = zero.iter().find(|(own, _)| *own == seed).or(zero.first());
            let (Some(own), Some(&(_, zero))) = (view.value(solved), base) else { continue };
            if own < zero + ABOVE_ZERO_DB {
                let sizes = [at.m.to_string(), at.s.to_string(), seed.to_string()];
                let why = [number(own - zero, 2), listed(&solved.live), why(solved, record)];
                rows.push(sizes.into_iter().chain(why).map(Item::from).collect());
            }
        }
    }
    let [imp, zero] = [Method::Imp, Method::Zero].map(Method::title);
    Table::new(
        format!("{imp} less than {ABOVE_ZERO_DB:.0} dB above the {zero}"),
        format!(
            "Cells of {FROM_NONZEROS} nonzeros and more. Neurons count that inputs reach and that \
             reach the output."
        ),
        ["m", "s", "seed", "dB above zero", "neurons", "why"],
        rows,
    )
}

/// Why a baseline ended where it did, from its record.
fn why(solved: &Solved, record: &Record) -> String {
    if solved.live.contains(&0) {
        return format!(
            "the {} weights of the largest magnitude are no path from the inputs to the output: \
             pruning over all layers has emptied one, and no training can mend that",
            record.cell.s
        );
    }
    let Some(&(end, last)) = solved.curve.last() else { return String::new() };
    let earlier = solved.curve.iter().rev().find(|(at, _)| *at <= end - LAST * solved.passes);
    let Some(&(at, loss)) = earlier.filter(|(_, loss)| *loss > 0.0) else { return String::new() };
    let fell = 1.0 - last / loss;
    let (passes, percent) = (end - at, 100.0 * fell.abs());
    let way = if fell < -STILL { "rose" } else { "fell" };
    let what = format!("over its last {passes:.0} passes the loss {way} by {percent:.1} %");
    if fell < -STILL {
        format!("{what}: steps of this rate are too long for what is left to learn")
    } else if fell < STILL {
        format!("the last level has ended: {what}; the kept weights can do no more")
    } else {
        format!("{what}: it would gain from more epochs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::experiment::Cell;

    #[test]
    fn standings_are_those_of_what_is_printed() {
        let psnr = |own, other| Standing::of(Metric::Psnr, own, other);
        assert_eq!(psnr(158.1, 200.0), Standing::Exact);
        assert_eq!((psnr(31.96, 31.74), psnr(31.74, 31.96)), (Standing::Better, Standing::Behind));
        assert_eq!(psnr(20.2428, 20.2476), Standing::Equal);
        assert_eq!(psnr(150.0, 99.0), Standing::Better);
        assert_eq!(Standing::of(Metric::Accuracy, 0.9905, 0.991), Standing::Behind);
    }

    #[test]
    fn figures_are_reached_by_the_median_or_by_the_best_seed() {
        let reach = |own, most, figure| Reach::of(Metric::Psnr, Some(own), Some(most), figure);
        assert_eq!(reach(22.1, 24.3, 23.5), Some(Reach::WithinSeeds));
        assert_eq!(reach(23.5, 24.3, 23.5), Some(Reach::Reached));
        assert_eq!(reach(22.1, 23.0, 23.5), Some(Reach::Behind));
        assert_eq!(reach(-3.0, 1.0, f64::NAN), Some(Reach::Reached));
        // Both are exact, and 159.6 is not 165.3.
        assert_eq!(
            (reach(159.6, 161.0, 165.3), reach(165.3, 165.3, 159.6)),
            (Some(Reach::Exact), Some(Reach::Reached))
        );
        assert_eq!(Reach::of(Metric::Psnr, None, None, 1.0), None);
        assert!(Reach::Reached > Reach::WithinSeeds && Reach::WithinSeeds > Reach::Behind);
    }

    #[test]
    fn a_baseline_says_whether_it_collapsed_or_stopped_early() {
        let cell = Cell {
            part: "p".into(),
            method: Method::Imp,
            m: 3,
            s: 60,
            n: None,
            d: None,
            variant: None,
            seed: 0,
        };
        let record = Record::new(&cell, Status::Done, 1, None);
        let ended = |curve: Vec<(f64, f64)>, live: Vec<usize>| {
            why(&Solved { live, passes: 100.0, curve, ..Solved::default() }, &record)
        };
        assert!(ended(vec![(1.0, 1.0)], vec![3, 0]).contains("no path"));
        assert!(
            ended(vec![(0.0, 4.0), (90.0, 1.0), (100.0, 0.999)], vec![3]).contains("has ended")
        );
        assert!(
            ended(vec![(0.0, 4.0), (90.0, 1.0), (100.0, 0.8)], vec![3])
                .contains("fell by 20.0 %: it would gain")
        );
        assert!(
            ended(vec![(0.0, 4.0), (90.0, 1.0), (100.0, 1.5)], vec![3]).contains("rose by 50.0 %")
        );
    }
}
