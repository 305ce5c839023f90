//! What the figures of a part say together: the recipe beside the published method, the published
//! method beside the figures that are known of it, and why a baseline that was trained to its end
//! is no better.

use super::super::known::Value;
use super::super::record::{Record, Solved, Status};
use super::super::spec::{Method, Metric, Point};
use super::axes::place;
use super::table::{Item, Table, listed};
use super::view::{Experiment, Stats, View, number};
use crate::base::statistics::median;

/// From here on a fit in floats is exact: the error is rounding.
pub(super) const EXACT_DB: f64 = 100.0;

/// What a trained baseline should have above the zero predictor, and from which s on.
const ABOVE_ZERO_DB: f64 = 10.0;
const FROM_NONZEROS: usize = 50;

/// The end of a course, and the most that the loss falls there where a training has ended.
const LAST: f64 = 0.05;
const STILL: f64 = 0.01;

/// What the statistic of Q. `McNemar` (1947) of two classifiers exceeds by chance in one case of twenty.
const CHANCE: f64 = 4.0;

/// The baselines that the published method is compared with; the default recipe with that too.
const BASELINES: [Method; 4] =
    [Method::ImpPublished, Method::ImpPublishedSum, Method::Imp, Method::ImpSum];

pub(super) fn tables(view: &View) -> [Table; 3] {
    [beside_paper(view), beside_known(view), baseline(view)]
}

/// How a value stands beside another one, in the digits that are printed. Accuracies whose numbers of
/// wrong rows do not settle it are neither better nor behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Behind,
    Below,
    /// Behind in the median, and not with the best seed.
    WithinSeeds,
    Exact,
    Equal,
    Above,
    Better,
}

impl Standing {
    /// In the order of tables.
    const ALL: [Self; 6] =
        [Self::Better, Self::Above, Self::Equal, Self::Exact, Self::Below, Self::Behind];

    /// Of a value beside another one; accuracies are shares of so many rows.
    fn of(metric: Metric, own: f64, other: f64, rows: usize) -> Self {
        let (_, digits) = metric.digits();
        let printed = |value: f64| (value * 10_f64.powi(digits as i32)).round();
        if metric == Metric::Psnr && own >= EXACT_DB && other >= EXACT_DB {
            Self::Exact
        } else if printed(own) == printed(other) {
            Self::Equal
        } else {
            match (own > other, metric == Metric::Accuracy && is_chance(own, other, rows)) {
                (true, false) => Self::Better,
                (true, true) => Self::Above,
                (false, true) => Self::Below,
                (false, false) => Self::Behind,
            }
        }
    }

    /// Of a median and the best seed beside a known figure, NaN where that run diverged.
    fn reached(metric: Metric, stats: &Stats, figure: f64) -> Option<Self> {
        let (own, most) = (stats.median()?, stats.most()?);
        Some(match Self::of(metric, own, figure, 0) {
            _ if figure.is_nan() || own >= figure => Self::Better,
            Self::Behind if most >= figure => Self::WithinSeeds,
            standing => standing,
        })
    }

    const fn title(self) -> &'static str {
        let exact = "both exact, to the rounding of floats";
        let above = "ahead, not settled by the rows";
        let below = "behind, not settled by the rows";
        ["behind", below, "within its seeds", exact, "equal", above, "better"][self as usize]
    }
}

/// Whether chance may have made the difference of two shares of right rows: the test of two classifiers (Q. `McNemar`,
/// 1947) divides by the rows that one of them alone has wrong, which are at most all that either has wrong.
fn is_chance(own: f64, other: f64, rows: usize) -> bool {
    let [own, other] = [own, other].map(|right| (1.0 - right) * rows as f64);
    (own - other).powi(2) < CHANCE * (own + other)
}

/// A method beside another one at each size with both; better where the other diverges, and behind
/// where it does itself.
fn standings(view: &View, method: Method, other: Method) -> Vec<(Standing, Point)> {
    let part = &view.part;
    let rows = part.data.scored(part.on);
    let standing = |at: Point| {
        let [own, beside] = [method, other].map(|method| view.stats(method, at));
        let failed = |of: &Stats| of.lost.iter().any(|(_, status)| *status == Status::Failed);
        match (own.median(), beside.median()) {
            (Some(own), Some(other)) => Some((Standing::of(part.metric, own, other, rows), at)),
            (Some(_), None) if failed(&beside) => Some((Standing::Better, at)),
            (None, Some(_)) if failed(&own) => Some((Standing::Behind, at)),
            _ => None,
        }
    };
    let is_compared = matches!(part.metric, Metric::Psnr | Metric::Accuracy);
    part.points().into_iter().filter(|_| is_compared).filter_map(standing).collect()
}

fn count(all: &[(Standing, Point)], own: Standing) -> usize {
    all.iter().filter(|(standing, _)| *standing == own).count()
}

/// A method beside one rival, in all parts that have both.
struct Match {
    rival: Method,
    all: Vec<(Standing, Point)>,
}

/// Who wins: a sentence and a table for the default recipe, and for the published method; none where
/// nothing is compared.
pub(super) fn headlines(experiments: &[Experiment]) -> Vec<(String, Table)> {
    let recipe =
        headline(experiments, Method::Recipe, &[&[Method::Paper], &BASELINES[..]].concat());
    let paper = headline(experiments, Method::Paper, &BASELINES);
    recipe.into_iter().chain(paper).collect()
}

/// One method beside its rivals: one sentence over all, and a row per part.
fn headline(
    experiments: &[Experiment],
    method: Method,
    rivals: &[Method],
) -> Option<(String, Table)> {
    let views = || experiments.iter().flat_map(|own| own.views.iter().map(move |view| (own, view)));
    let matches = rivals.iter().filter_map(|&rival| {
        let all: Vec<_> = views().flat_map(|(_, view)| standings(view, method, rival)).collect();
        (!all.is_empty()).then_some(Match { rival, all })
    });
    let matches: Vec<Match> = matches.collect();
    let sentences = matches.iter().map(|Match { rival, all }| {
        let (better, behind) = (count(all, Standing::Better), count(all, Standing::Behind));
        let open = match (count(all, Standing::Above), count(all, Standing::Below)) {
            (0, 0) => String::new(),
            (above, below) => {
                format!(" (ahead in {above} and behind in {below} by what the rows do not settle)")
            }
        };
        let (title, level, all) = (rival.title(), all.len() - better - behind, all.len());
        format!(
            "better than {title} in {better} of {all} cells, level in {level}{open}, behind in \
             {behind}"
        )
    });
    // Such as `better 19, both exact 10; 0.3 s and 40 passes to 12 s and 500`.
    let tally = |view: &View, rival: Method| {
        let all = standings(view, method, rival);
        let counts = Standing::ALL.map(|own| (own, count(&all, own)));
        let counts =
            listed(counts.into_iter().filter(|(_, count)| *count > 0).map(|(own, count)| {
                let word = if own == Standing::Exact { "both exact" } else { own.title() };
                format!("{word} {count}")
            }));
        let efforts = [method, rival].map(|method| effort(view, method, &all));
        match efforts {
            [Some(own), Some(other)] => format!("{counts}; {own} to {other}"),
            _ => counts,
        }
    };
    let row = |(experiment, view): (&Experiment, &View)| {
        let texts: Vec<String> = matches.iter().map(|of| tally(view, of.rival)).collect();
        let is_compared = texts.iter().any(|text| !text.is_empty());
        let named = std::iter::once(title(experiment, view)).chain(texts);
        is_compared.then(|| named.map(Item::from).collect())
    };
    let own = method.title();
    let sentence = format!("{own} is {}.", sentences.collect::<Vec<_>>().join("; "));
    let note = "Medians over seeds in the digits that are printed; fits of 100 dB and more are \
                exact to the rounding of floats. Accuracies are level where the numbers of wrong \
                rows A and B do not settle it, (A - B)² < 4 (A + B): from there on McNemar's test \
                finds a difference at one in twenty, whichever rows are wrong. \
                Behind the semicolon medians over the cells: \
                seconds and passes over the data, of the method and of the other. The rate of IMP \
                trained properly is the best of several; its effort is that of one.";
    let beside = matches.iter().map(|of| format!("beside {}", of.rival.title()));
    let head = std::iter::once("cells of".to_owned()).chain(beside);
    let rows = views().filter_map(row).collect();
    let table = Table::new(format!("Who wins: {own}"), note, head, rows);
    (!matches.is_empty()).then_some((sentence, table))
}

/// Seconds and passes of a method in cells, in the median.
fn effort(view: &View, method: Method, cells: &[(Standing, Point)]) -> Option<String> {
    let all = cells.iter().map(|(_, at)| view.stats(method, *at));
    let (seconds, passes): (Vec<_>, Vec<_>) = all.map(|of| (of.seconds, of.passes)).unzip();
    let [seconds, passes] = [seconds, passes].map(|of| median(of.into_iter().flatten().collect()));
    Some(format!("{} s, {} passes", number(seconds?, 2), number(passes?, 0)))
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
    let methods = [Method::Recipe, Method::Paper];
    let text = |(standing, at): &(Standing, Point)| {
        let mut cell = format!("({})", place(part, *at).replace("m = ", "").replace("s = ", ""));
        match (standing, methods.map(|method| view.stats(method, *at).median())) {
            (Standing::Behind | Standing::Below, [Some(own), Some(other)]) => {
                cell += &format!(" {} to {}", number(own, digits), number(other, digits));
                let loss = |method: Method| {
                    let solved = view.solved(method, *at);
                    median(solved.filter_map(|solved| Some(solved.train?.loss)).collect())
                };
                if loss(Method::Recipe).zip(loss(Method::Paper)).is_some_and(|(a, b)| a < b) {
                    cell += ", with less loss on the training rows";
                }
            }
            (Standing::Better, [_, None]) => cell += ", where the published steps diverge",
            _ => {}
        }
        cell
    };
    let standings = standings(view, Method::Recipe, Method::Paper);
    let row = |standing: Standing| {
        let cells: Vec<String> =
            standings.iter().filter(|own| own.0 == standing).map(text).collect();
        let hover = cells.join(", ");
        let is_named = matches!(standing, Standing::Behind | Standing::Below);
        let text = if is_named || cells.len() <= 6 {
            hover.clone()
        } else {
            format!("{} and {} more", cells[..3].join(", "), cells.len() - 3)
        };
        let count = format!("{} of {}", cells.len(), standings.len());
        let row = vec![standing.title().into(), count.into(), Item { text, hover }];
        (!cells.is_empty()).then_some(row)
    };
    let [metric, rows] = [part.metric.title(), part.on.title()];
    Table::new(
        format!("{} beside {}", Method::Recipe.title(), Method::Paper.title()),
        format!("{metric} on the {rows}, medians over seeds, in the digits that are printed."),
        ["the recipe is", "cells", "(m, s)"],
        Standing::ALL.into_iter().filter_map(row).collect(),
    )
}

/// The published methods beside the known figures, each by itself.
fn beside_known(view: &View) -> Table {
    let part = &view.part;
    let is_ours = |known: Method, method: Method| match known {
        Method::Paper => method.is_published(),
        Method::ImpPublished => method.is_published_imp(),
        _ => false,
    };
    let ours = part.methods.iter().copied();
    let ours: Vec<Method> =
        ours.filter(|method| method.is_published() || method.is_published_imp()).collect();
    let (_, digits) = part.metric.digits();
    let points = part.points();
    let row = |source: &str, known: &Value| {
        let (m, s) = (known.m, known.s);
        let at = points.iter().find(|at| (at.m, at.s) == (m, s))?;
        let figure = Item { text: known.text(digits), hover: known.about() };
        let known_of = known.method.title();
        let mut row = vec![
            m.to_string().into(),
            s.to_string().into(),
            source.into(),
            known_of.into(),
            figure,
        ];
        row.extend(ours.iter().map(|&method| {
            let stats = view.stats(method, *at);
            let standing = Standing::reached(part.metric, &stats, known.median());
            Item::from(match standing.filter(|_| is_ours(known.method, method)) {
                None => String::new(),
                Some(Standing::Equal | Standing::Better) => {
                    format!("{}, reached", stats.spread(digits))
                }
                Some(other) => format!("{}, {}", stats.spread(digits), other.title()),
            })
        }));
        Some(row)
    };
    let mut rows = Vec::new();
    // Seeds differ by more than methods: one says little.
    for (source, values) in view.known.sources().into_iter().filter(|_| part.seeds.len() > 1) {
        let values = values.iter().filter(|known| ours.iter().any(|&of| is_ours(known.method, of)));
        rows.extend(values.filter_map(|known| row(source, known)));
    }
    let head = ["m", "s", "source", "of", "figure"].into_iter();
    let note = "Medians over seeds, in brackets the least and the most. Where a known figure is of \
                several seeds it is their median, and says which it is when it is pointed at.";
    let head = head.chain(ours.iter().map(|of| of.title()));
    Table::new("Beside the known figures", note, head, rows)
}

/// Where the baseline that is trained to its end is little better than the zero predictor, and why.
fn baseline(view: &View) -> Table {
    let part = &view.part;
    let mut rows = Vec::new();
    let own = [Method::Imp, Method::ImpSum].into_iter().filter(|of| part.methods.contains(of));
    let own: Vec<Method> = own.filter(|_| part.metric == Metric::Psnr).collect();
    for at in part.points().into_iter().filter(|at| at.s >= FROM_NONZEROS) {
        let zero = view.stats(Method::Zero, at).values;
        for record in own.iter().flat_map(|&method| view.records_of(method, at)) {
            let Some(solved) = &record.solved else { continue };
            let seed = record.cell.seed;
            // Where the zero predictor is the same for all cells it has one seed.
            let base = zero.iter().find(|(own, _)| *own == seed).or(zero.first());
            let (Some(own), Some(&(_, zero))) = (view.value(solved), base) else { continue };
            if own < zero + ABOVE_ZERO_DB {
                let method = record.cell.method.title().to_owned();
                let sizes = [method, at.m.to_string(), at.s.to_string(), seed.to_string()];
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
        ["method", "m", "s", "seed", "dB above zero", "neurons", "why"],
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
    let (way, what) = match fell {
        _ if fell < -STILL => ("rose", "steps of this rate are too long for what is left to learn"),
        _ if fell >= STILL => ("fell", "it would gain from more epochs"),
        _ => ("fell", "the last level has ended; the weights it has can do no more"),
    };
    let (passes, percent) = (end - at, 100.0 * fell.abs());
    format!("over its last {passes:.0} passes the loss {way} by {percent:.1} %: {what}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::experiment::Cell;

    #[test]
    fn standings_are_those_of_what_is_printed() {
        let psnr = |own, other| Standing::of(Metric::Psnr, own, other, 0);
        assert_eq!(psnr(158.1, 200.0), Standing::Exact);
        assert_eq!((psnr(31.96, 31.74), psnr(31.74, 31.96)), (Standing::Better, Standing::Behind));
        assert_eq!(psnr(20.2428, 20.2476), Standing::Equal);
        assert_eq!(psnr(150.0, 99.0), Standing::Better);
        // 19 and 18 wrong rows of 2000 say nothing, 40 and 20 do; and of 200 000 the first do, too.
        let share = |own, other, rows| Standing::of(Metric::Accuracy, own, other, rows);
        assert_eq!(share(0.9905, 0.991, 2000), Standing::Below);
        assert_eq!(share(0.991, 0.9905, 2000), Standing::Above);
        assert_eq!(share(0.98, 0.99, 2000), Standing::Behind);
        assert_eq!(share(0.9905, 0.9915, 200_000), Standing::Behind);
        assert_eq!(
            (share(1.0, 0.9985, 2000), share(1.0, 0.998, 2000)),
            (Standing::Above, Standing::Better)
        );
    }

    #[test]
    fn figures_are_reached_by_median_or_best_seed() {
        let reach = |median: f64, most: f64, figure| {
            let values = vec![(0, 2.0 * median - most), (1, median), (2, most)];
            let stats = Stats { values, ..Stats::default() };
            Standing::reached(Metric::Psnr, &stats, figure)
        };
        assert_eq!(reach(22.1, 24.3, 23.5), Some(Standing::WithinSeeds));
        assert_eq!(reach(23.5, 24.3, 23.5), Some(Standing::Better));
        assert_eq!(reach(22.1, 23.0, 23.5), Some(Standing::Behind));
        assert_eq!(reach(-3.0, 1.0, f64::NAN), Some(Standing::Better));
        // Both are exact, and 159.6 is not 165.3.
        assert_eq!(
            (reach(159.6, 161.0, 165.3), reach(165.3, 165.3, 159.6)),
            (Some(Standing::Exact), Some(Standing::Better))
        );
        assert_eq!(Standing::reached(Metric::Psnr, &Stats::default(), 1.0), None);
        assert!(
            Standing::Better > Standing::WithinSeeds && Standing::WithinSeeds > Standing::Behind
        );
    }

    #[test]
    fn baseline_reports_collapse_or_early_stop() {
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
