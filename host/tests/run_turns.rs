//! A search that ends without an exact fit goes on by turns with published steps: better than either alone, within the limits, the
//! same on any number of threads, and ended when that is wished.

use tamis::lm::Params;
use tamis_host::data::image::{Fourier, Picture};
use tamis_host::data::{Values, digits};
use tamis_host::operator::Stop;
use tamis_host::run::{self, Limits, Options, Outcome, Problem, RecoverOptions, Size, Task};

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

fn options(passes: f64) -> RecoverOptions {
    let params = Params { seed: 1, ..Params::DEFAULT };
    let limits = Limits { passes: Some(passes), time: None };
    RecoverOptions { params, limits, threads: 1, ..RecoverOptions::new(HIDDEN, Size::Nonzeros(NNZ)) }
}

fn recover(problem: Problem, options: &RecoverOptions) -> Outcome {
    run::recover(problem, options, &Stop::new(), |_| true).unwrap()
}

#[test]
fn turns_make_a_fit_better_that_is_not_exact() {
    let mut turns = 0;
    for seed in [0, 2, 5, 6] {
        let found = recover(problem(seed), &options(20000.0)).report;
        let search = found.search.unwrap();
        assert!(!search.exact, "{found:?}");
        turns += u32::from(search.turns > 0);
        assert!(found.nnz <= NNZ && found.live <= HIDDEN);
        assert!(found.passes <= 1.1 * 20000.0, "{}", found.passes);
        let paper =
            Options { schedule: run::published(100, 0, 1), ..Options::new(HIDDEN, Size::Nonzeros(NNZ)) };
        let paper = run::train(problem(seed), &paper, &Stop::new(), |_| true).unwrap().report;
        assert!(found.loss < paper.loss, "{} {}", found.loss, paper.loss);
        // Rows held out are for the search alone, and the published method is for positive signs.
        for other in [
            RecoverOptions { validation: 0.1, ..options(2000.0) },
            RecoverOptions { signs: Some(tamis::gates::Signs::Free), ..options(2000.0) },
        ] {
            assert_eq!(recover(problem(seed), &other).report.search.unwrap().turns, 0);
        }
    }
    // In one of them the network of the search stays the best.
    assert!(turns >= 3, "{turns}");
}

#[test]
fn turns_do_not_depend_on_threads() {
    let alone = recover(problem(3), &options(8000.0));
    let shared = recover(problem(3), &RecoverOptions { threads: 2, ..options(8000.0) });
    assert!(alone.report.search.unwrap().turns >= 1);
    assert_eq!(alone.model, shared.model);
    assert_eq!((alone.report.passes, alone.report.steps), (shared.report.passes, shared.report.steps));
}

#[test]
fn what_is_shown_goes_on_in_turns_and_an_end_is_heeded_there() {
    let (whole, shown) = {
        let mut last = (0, 0, 0);
        let outcome = run::recover(problem(2), &options(20000.0), &Stop::new(), |step| {
            let now = (step.step, step.kicks, step.rows_read);
            assert!(now.0 >= last.0 && now.1 >= last.1 && now.2 >= last.2, "{last:?} {now:?}");
            last = now;
            true
        });
        let outcome = outcome.unwrap();
        // What brings a search to its end after a limit is not shown.
        assert!(last.0 <= outcome.report.steps);
        (outcome, last.0)
    };
    // The last step that is shown belongs to a turn: without it, what was found before is the outcome.
    let mut checkpoints = 0;
    let ended = run::recover(problem(2), &options(20000.0), &Stop::new(), |step| {
        checkpoints += u32::from(step.checkpoint.is_some());
        step.step < shown
    });
    let ended = ended.unwrap();
    assert!(checkpoints > 0 && ended.report.stopped && !whole.report.stopped);
    assert!(ended.report.loss >= whole.report.loss, "{} {}", ended.report.loss, whole.report.loss);
    let score = run::score_model(&ended.model, &problem(2)).unwrap();
    assert!((score.loss / ended.report.loss - 1.0).abs() < 1e-4, "{} {}", score.loss, ended.report.loss);
}
