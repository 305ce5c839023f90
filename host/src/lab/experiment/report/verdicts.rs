//! What the figures of a part say together: the recipe beside the published method, the published
//! method beside the figures that are known of it, and why a baseline that was trained to its end
//! is no better.

use super::super::median::median;
use super::super::record::{Record, Solved, Status};
use super::super::spec::{Method, Metric, Point};
use super::axes::place;
use super::table::{Item, Table, plain};
use super::view::{Experiment, View, number};

/// From here on a fit in floats is exact: what is left is rounding.
const EXACT_DB: f64 = 100.0;

/// What a baseline that was trained should have above the zero predictor, and from how many
/// nonzeros on.
const ABOVE_ZERO_DB: f64 = 10.0;
const FROM_NONZEROS: usize = 50;

/// The part of a course that counts as its end, and the most that the loss falls by there where a
/// training has ended.
const LAST: f64 = 0.05;
const STILL: f64 = 0.01;

/// The tables of a part.
pub(super) fn tables(view: &View) -> Vec<Table> {
    [beside_paper(view), beside_known(view), baseline(view)].into_iter().flatten().collect()
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

    const fn word(self) -> &'static str {
        match self {
            Self::Exact => "both exact",
            other => other.title(),
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Equal => "equal",
            Self::Exact => "both exact, to the rounding of floats",
            Self::Behind => "behind",
        }
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

const ALL: [Standing; 4] = [Standing::Better, Standing::Equal, Standing::Exact, Standing::Behind];

/// The methods that the default recipe is to be better than.
const RIVALS: [Method; 3] = [Method::Paper, Method::ImpPublished, Method::Imp];

/// Who wins: the default recipe beside its rivals, a row per part, and one for all.
pub(super) struct Headline {
    /// One sentence.
    pub(super) sentence: String,
    pub(super) table: Table,
}

impl Headline {
    pub(super) fn markdown(&self) -> String {
        format!(
            "# {}\n\n{}\n\n{}\n",
            plain(&self.table.title),
            plain(&self.sentence),
            self.table.markdown()
        )
    }
}

/// None where nothing is compared.
pub(super) fn headline(experiments: &[Experiment]) -> Option<Headline> {
    let views = || experiments.iter().flat_map(|own| own.views.iter().map(move |view| (own, view)));
    let found = |rival: Method| -> Vec<Standing> {
        views().flat_map(|(_, view)| only(view, rival)).collect()
    };
    let rivals: Vec<Method> =
        RIVALS.into_iter().filter(|&rival| !found(rival).is_empty()).collect();
    let sentences: Vec<String> =
        rivals.iter().map(|&rival| sentence(rival, &found(rival))).collect();
    let row = |(experiment, view): (&Experiment, &View)| {
        let texts: Vec<String> = rivals.iter().map(|&rival| tally(&only(view, rival))).collect();
        let named = std::iter::once(title(experiment, view)).chain(texts.iter().cloned());
        texts.iter().any(|text| !text.is_empty()).then(|| named.map(Item::from).collect())
    };
    let head = rivals.iter().map(|rival| format!("beside {}", rival.title()));
    (!rivals.is_empty()).then(|| Headline {
        sentence: format!("Tamis's default recipe is {}.", sentences.join("; ")),
        table: Table {
            title: "Who wins".into(),
            note: "Medians over seeds in the digits that are printed; fits of 100 dB and more are exact to the rounding of floats."
                .into(),
            head: std::iter::once("cells of".to_owned()).chain(head).collect(),
            rows: views().filter_map(row).collect(),
        },
    })
}

fn only(view: &View, rival: Method) -> Vec<Standing> {
    standings(view, rival).into_iter().map(|(standing, _)| standing).collect()
}

fn count(found: &[Standing], own: Standing) -> usize {
    found.iter().filter(|standing| **standing == own).count()
}

/// Such as `better 19, both exact 10`.
fn tally(found: &[Standing]) -> String {
    let shown = ALL.into_iter().filter(|&own| count(found, own) > 0);
    shown.map(|own| format!("{} {}", own.word(), count(found, own))).collect::<Vec<_>>().join(", ")
}

fn sentence(rival: Method, found: &[Standing]) -> String {
    let (all, better, behind) =
        (found.len(), count(found, Standing::Better), count(found, Standing::Behind));
    let level = all - better - behind;
    format!(
        "better than {} in {better} of {all} cells, level in {level}, behind in {behind}",
        rival.title()
    )
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
fn beside_paper(view: &View) -> Option<Table> {
    let part = &view.part;
    let (_, digits) = part.metric.digits();
    let text = |(standing, at): &(Standing, Point)| {
        let [own, other] =
            [Method::Recipe, Method::Paper].map(|method| view.stats(method, *at).median());
        let mut cell = format!("({})", place(part, *at).replace("m = ", "").replace("s = ", ""));
        match (standing, own, other) {
            (Standing::Behind, Some(own), Some(other)) => {
                cell += &format!(" {} to {}", number(own, digits), number(other, digits));
                cell += if fits_better(view, *at) {
                    ", with less loss on the training rows"
                } else {
                    ""
                };
            }
            (Standing::Better, _, None) => cell += ", where the published steps diverge",
            _ => {}
        }
        cell
    };
    let standings = standings(view, Method::Paper);
    let all = standings.len();
    let row = |standing: Standing| {
        let cells: Vec<String> =
            standings.iter().filter(|own| own.0 == standing).map(text).collect();
        let (few, text) = (standing == Standing::Behind || cells.len() <= 6, cells.join(", "));
        let shown = if few {
            text.clone()
        } else {
            format!("{} and {} more", cells[..3].join(", "), cells.len() - 3)
        };
        let items =
            [standing.title().to_owned(), format!("{} of {all}", cells.len())].map(Item::from);
        (!cells.is_empty())
            .then(|| items.into_iter().chain([Item { text: shown, hover: text }]).collect())
    };
    let rows: Vec<Vec<Item>> = ALL.into_iter().filter_map(row).collect();
    (!rows.is_empty()).then(|| Table {
        title: format!("{} beside {}", Method::Recipe.title(), Method::Paper.title()),
        note: format!(
            "{} on the {}, medians over seeds, in the digits that are printed.",
            part.metric.title(),
            part.on.title()
        ),
        head: ["the recipe is", "cells", "(m, s)"].map(str::to_owned).to_vec(),
        rows,
    })
}

/// Whether the recipe has the lower median loss on the rows trained on.
fn fits_better(view: &View, at: Point) -> bool {
    let loss = |method: Method| {
        let losses = view
            .records_of(method, at)
            .filter_map(|record| Some(record.solved.as_ref()?.train?.loss));
        median(losses.collect())
    };
    matches!((loss(Method::Recipe), loss(Method::Paper)), (Some(own), Some(other)) if own < other)
}

/// The published method and its variants beside what the paper prints and what was measured of its
/// authors' code.
fn beside_known(view: &View) -> Option<Table> {
    let part = &view.part;
    if part.seeds.len() < 2 {
        // Seeds differ by more than methods: one says little.
        return None;
    }
    let ours: Vec<Method> =
        part.methods.iter().copied().filter(|method| method.is_published()).collect();
    let (_, digits) = part.metric.digits();
    let mut rows = Vec::new();
    for (source, values) in
        [("published", &view.known.published), ("authors' code", &view.known.reference)]
    {
        for known in values.iter().filter(|known| known.method == Method::Paper) {
            let (m, s) = (known.m, known.s);
            let Some(at) = part.points().into_iter().find(|at| (at.m, at.s) == (m, s)) else {
                continue;
            };
            let figure = known.median();
            let mut row: Vec<Item> =
                [m.to_string(), s.to_string(), source.to_owned()].map(Item::from).to_vec();
            row.push(Item { text: known.text(digits), hover: known.about() });
            let mut best: Option<Reach> = None;
            for &method in &ours {
                let stats = view.stats(method, at);
                row.push(Item::from(stats.spread(digits)));
                let reach = Reach::of(part.metric, stats.median(), stats.most(), figure);
                best = best.max(reach);
            }
            row.push(Item::from(best.map_or("", Reach::title).to_owned()));
            rows.push(row);
        }
    }
    let mut head: Vec<String> = ["m", "s", "source", "figure"].map(str::to_owned).to_vec();
    head.extend(ours.iter().map(|method| method.title().to_owned()));
    head.push("the best of ours".into());
    (!rows.is_empty()).then(|| Table {
        title: "Beside the known figures".into(),
        note: "Medians over seeds, in brackets the least and the most. Where a known figure is of several seeds it is their median, \
               and says which it is when it is pointed at."
            .into(),
        head,
        rows,
    })
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
        match self {
            Self::Behind => "behind",
            Self::WithinSeeds => "within its seeds",
            Self::Exact => "both exact, to the rounding of floats",
            Self::Reached => "reached",
        }
    }
}

/// Where the baseline that is trained to its end is little better than the zero predictor, and why.
fn baseline(view: &View) -> Option<Table> {
    let part = &view.part;
    if part.metric != Metric::Psnr || !part.methods.contains(&Method::Imp) {
        return None;
    }
    let mut rows = Vec::new();
    for at in part.points().into_iter().filter(|at| at.s >= FROM_NONZEROS) {
        let zero = view.stats(Method::Zero, at);
        for record in view.records_of(Method::Imp, at) {
            let Some(solved) = &record.solved else { continue };
            // Where the zero predictor is the same for all cells it has one seed.
            let base = zero
                .values
                .iter()
                .find(|(seed, _)| *seed == record.cell.seed)
                .or(zero.values.first());
            let (Some(own), Some(&(_, zero))) = (view.value(solved), base) else { continue };
            if own < zero + ABOVE_ZERO_DB {
                let live: Vec<String> = solved.live.iter().map(usize::to_string).collect();
                let row = [
                    at.m.to_string(),
                    at.s.to_string(),
                    record.cell.seed.to_string(),
                    number(own - zero, 2),
                    live.join(", "),
                    why(solved, record),
                ];
                rows.push(row.map(Item::from).to_vec());
            }
        }
    }
    (!rows.is_empty()).then(|| Table {
        title: format!("{} less than {ABOVE_ZERO_DB:.0} dB above the {}", Method::Imp.title(), Method::Zero.title()),
        note: format!("Cells of {FROM_NONZEROS} nonzeros and more. Neurons count that inputs reach and that reach the output."),
        head: ["m", "s", "seed", "dB above zero", "neurons", "why"].map(str::to_owned).to_vec(),
        rows,
    })
}

/// Why a baseline ended where it did, from what is kept of it.
fn why(solved: &Solved, record: &Record) -> String {
    if solved.live.contains(&0) {
        return format!(
            "the {} weights of the largest magnitude are no path from the inputs to the output: pruning over all layers has \
             emptied one, and no training can mend that",
            record.cell.s
        );
    }
    let Some(&(end, last)) = solved.curve.last() else { return String::new() };
    let before = solved.curve.iter().rev().find(|(at, _)| *at <= end - LAST * solved.passes);
    let Some(&(at, loss)) = before.filter(|(_, loss)| *loss > 0.0) else { return String::new() };
    let fell = 1.0 - last / loss;
    let (passes, part) = (end - at, 100.0 * fell.abs());
    if fell < -STILL {
        format!(
            "over its last {passes:.0} passes the loss rose by {part:.1} %: steps of this rate are too long for what is left to learn"
        )
    } else if fell < STILL {
        format!(
            "the last level has ended: over its last {passes:.0} passes the loss fell by {part:.1} %; the kept weights can do no more"
        )
    } else {
        format!(
            "over its last {passes:.0} passes the loss fell by {part:.1} %: it would gain from more epochs"
        )
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
        let record = Record::new(&cell, crate::lab::experiment::Status::Done, 1, None);
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
