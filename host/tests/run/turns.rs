//! A search that ends without an exact fit goes on by turns with published steps: better than
//! either alone, within the limits, the same on any number of threads, and ended when that is
//! wished.

use std::ops::ControlFlow;

use tamis_host::base::Limits;
use tamis_host::data::image::{Fourier, Picture};
use tamis_host::data::{Problem, Task};
use tamis_host::data::{Values, digits};
use tamis_host::model;
use tamis_host::operator::Stop;
use tamis_host::train::{LmOptions, PaperOptions, Report, Start, StepDetails, train_with};
use tamis_host::{Budget, Options, Recipe, Trained};

const HIDDEN: usize = 6;
const NNZ: usize = 40;

/// A picture of 16×16 pixels from its places: no network of so few weights fits it.
fn problem(seed: u64) -> Problem {
    let (pixels, _) = digits::generate(1, 16, seed).unwrap();
    let Values::U8(values) = pixels.values else { panic!("pixels are bytes") };
    let picture = Picture { rows: 16, cols: 16, channels: 1, values };
    let fourier = Fourier { features: 60, deviation: 0.1, channel_deviation: 0.0, seed };
    let (data, labels) = picture.samples(&fourier).unwrap();
    Problem { data, labels, task: Task::Regression }
}

fn options(passes: f64, lm: LmOptions) -> Options {
    let limits = Limits { passes: Some(passes), time: None };
    let (recipe, usual) = (Recipe::Lm(lm), Options::new(Budget::nnz(NNZ)));
    Options { recipe, hidden: vec![HIDDEN], limits, seed: 1, threads: 1, ..usual }
}

fn recover(seed: u64, passes: f64, lm: LmOptions) -> Trained {
    tamis_host::train(&problem(seed), options(passes, lm)).unwrap()
}

fn turns_of(report: &Report) -> u32 {
    report.search().unwrap().turns
}

#[test]
fn alternation_improves_an_inexact_fit() {
    let mut turns = 0;
    for seed in [0, 1, 2, 6] {
        let found = recover(seed, 20000.0, LmOptions::default()).report;
        assert!(!found.search().unwrap().exact, "{found:?}");
        turns += u32::from(turns_of(&found) > 0);
        assert!(found.nnz <= NNZ && found.live.first() <= HIDDEN);
        assert!(found.passes <= 1.1 * 20000.0, "{}", found.passes);
        let schedule = PaperOptions::published(100, 0);
        let recipe = Recipe::Paper(PaperOptions { schedule, ..PaperOptions::default() });
        let paper =
            Options { recipe, hidden: vec![HIDDEN], seed: 1, ..Options::new(Budget::nnz(NNZ)) };
        let paper = tamis_host::train(&problem(seed), paper).unwrap().report;
        assert!(found.loss < paper.loss, "{} {}", found.loss, paper.loss);
        // Rows held out are for the search alone, and the published method is for positive signs.
        let usual = LmOptions::default();
        for other in [
            LmOptions { validation: 0.1, ..usual },
            LmOptions { signs: Some(tamis::network::gates::Signs::Free), ..usual },
        ] {
            assert_eq!(turns_of(&recover(seed, 2000.0, other).report), 0);
        }
    }
    // In one of them the network of the search stays the best.
    assert!(turns >= 3, "{turns}");
}

#[test]
fn alternation_is_independent_of_threads() {
    let alone = recover(3, 8000.0, LmOptions::default());
    let shared = Options { threads: 2, ..options(8000.0, LmOptions::default()) };
    let shared = tamis_host::train(&problem(3), shared).unwrap();
    assert!(turns_of(&alone.report) >= 1);
    assert_eq!(alone.model.bytes(), shared.model.bytes());
    assert_eq!(
        (alone.report.passes, alone.report.steps),
        (shared.report.passes, shared.report.steps)
    );
}

#[test]
fn alternation_shows_progress_and_heeds_an_end() {
    let options = options(20000.0, LmOptions::default());
    let mut last = (0, 0, 0.0);
    let whole = train_with(problem(2), &options, Start::Zero, &Stop::new(), |step| {
        let StepDetails::Lm { kicks, .. } = step.details else { panic!("a step of a search") };
        let now = (step.step, kicks, step.passes);
        assert!(now.0 >= last.0 && now.1 >= last.1 && now.2 >= last.2, "{last:?} {now:?}");
        last = now;
        ControlFlow::Continue(())
    });
    let (whole, shown) = (whole.unwrap(), last.0);
    // What brings a search to its end after a limit is not shown.
    assert!(shown <= whole.report.epochs);
    // The last step that is shown belongs to a turn: without it, what was found before is the
    // outcome.
    let ended = train_with(problem(2), &options, Start::Zero, &Stop::new(), |step| {
        if step.step < shown { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let ended = ended.unwrap();
    assert!(ended.report.stopped && !whole.report.stopped);
    assert!(ended.report.loss >= whole.report.loss, "{} {}", ended.report.loss, whole.report.loss);
    let score = model::score_model(ended.model.bytes(), &problem(2)).unwrap();
    assert!(
        (score.loss / ended.report.loss - 1.0).abs() < 1e-4,
        "{} {}",
        score.loss,
        ended.report.loss
    );
}
