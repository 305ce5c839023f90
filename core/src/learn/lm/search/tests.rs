//! What all stages of a search use, on the model of one output.

extern crate std;
use super::*;
use crate::data::samples::{NormalRows, Samples};
use crate::learn::lm::goal::OneOutput;
use crate::learn::lm::signed::tests::{D, N, P, at, operator};
use crate::network::gates::Signs;
use crate::network::net::Shape;
use crate::operator::gated::Gated;
use std::{vec, vec::Vec};

type Observer = fn(&Progress<'_>) -> bool;
/// A search for networks of one output whose buffers are never given back.
pub(in crate::learn::lm) type Searching<R = NormalRows> =
    Search<'static, Gated<'static, R>, OneOutput, Observer>;

pub(in crate::learn::lm) const FIRST: [f32; D] = [1.0, -2.0, 0.5, 0.0];
pub(in crate::learn::lm) const SECOND: [f32; D] = [0.0, 1.0, 0.0, 1.0];
/// Both as neurons 1 and 3.
pub(in crate::learn::lm) const BOTH: [(u32, f32); 5] =
    [(4, 1.0), (5, -2.0), (6, 0.5), (13, 1.0), (15, 1.0)];

/// A search that stands at `net`, on the model of [`crate::learn::lm::signed::tests::with`], where
/// the labels are those of `planted`.
pub(in crate::learn::lm) fn searching(
    params: &Params,
    planted: &[(f32, [f32; D])],
    net: &[(u32, f32)],
) -> Searching {
    searching_rows(NormalRows::new(5, N, D), params, planted, net)
}

/// The same on rows of another kind.
pub(in crate::learn::lm) fn searching_rows<R: Samples + 'static>(
    rows: R,
    params: &Params,
    planted: &[(f32, [f32; D])],
    net: &[(u32, f32)],
) -> Searching<R> {
    let sensing = &mut vec![operator(rows)].leak()[0];
    let sides =
        || Sides::new(Shape::signed(D, P, params.signs), vec![0; 64].leak(), vec![0.0; 64].leak());
    let observe: Observer = |_| true;
    let mut search = Search {
        model: at(sensing, params, planted, net),
        base: sides(),
        trial: sides(),
        best: sides(),
        result: sides(),
        params: *params,
        state: State::starting(N),
        observe,
        cut_off: false,
    };
    search.take_up(N - params.validation).unwrap();
    search
}

/// A network to the bit.
pub(in crate::learn::lm) fn bits(net: crate::network::net::Network<'_>) -> Vec<(u32, u32)> {
    net.w().index().iter().copied().zip(net.w().value().iter().map(|w| w.to_bits())).collect()
}

/// Both neurons planted, one of them at hand.
fn half() -> Searching {
    searching(&Params::DEFAULT, &[(1.0, FIRST), (1.0, SECOND)], &BOTH[..3])
}

#[test]
fn descent_ends_when_step_leaves_over_85_percent() {
    let planted =
        [(1.0, [1.0, -2.0, 0.5, 0.7]), (1.0, [0.6, 1.0, -0.8, 1.0]), (1.0, [-1.0, 0.4, 1.0, 0.5])];
    let mut slow = 0;
    for count in 1..=BOTH.len() {
        let new = || searching(&Params::DEFAULT, &planted, &BOTH[..count]);
        let mut search = new();
        let loss = search.model.loss().unwrap();
        let (mut last, mut steps) = (loss, 0);
        loop {
            let (least, again) = search.down(last, Phase::Descend).unwrap();
            steps += 1;
            assert_eq!((again, search.model.task.info.steps), (least < 0.85 * last, steps));
            assert!(search.state.best_loss <= least && search.model.counted() <= 8);
            slow += u32::from(again && least > 0.7 * last);
            last = least;
            if !again {
                break;
            }
        }
        assert!(steps > 1 && last < loss);
        // A descent is these steps.
        let mut whole = new();
        let loss = whole.model.loss().unwrap();
        assert_eq!(whole.descend(loss, Phase::Descend).unwrap(), last);
        assert_eq!(
            (bits(whole.model.view()), whole.model.task.info.steps),
            (bits(search.model.view()), steps)
        );
    }
    assert!(slow > 0);
}

#[test]
fn no_step_at_rounding_floor_or_when_done() {
    let mut search = half();
    let loss = search.model.loss().unwrap();
    let floor = 1e-14 * search.model.fit.power;
    assert_eq!(search.down(floor, Phase::Move).unwrap(), (floor, false));
    search.model.task.info.stopped = true;
    assert_eq!(search.down(loss, Phase::Move).unwrap(), (loss, false));
    search.model.task.info.stopped = false;
    search.model.task.info.steps = search.params.steps;
    assert_eq!(search.down(loss, Phase::Move).unwrap(), (loss, false));
    assert_eq!(search.descend(loss, Phase::Move).unwrap(), loss);
    assert_eq!((bits(search.model.view()).len(), search.best.nnz()), (3, 0));
    search.model.task.info.steps -= 1;
    assert!(search.down(loss, Phase::Move).unwrap().0 < loss);
    assert!(search.is_done());
}

#[test]
fn best_network_has_least_loss_first_on_ties() {
    let mut search = half();
    search.store_best(2.0).unwrap();
    let first = bits(search.model.view());
    search.model.remove(1);
    search.store_best(2.0).unwrap();
    search.store_best(f32::NAN).unwrap();
    assert_eq!((bits(search.best.view()), search.state.best_loss), (first, 2.0));
    search.store_best(1.0).unwrap();
    assert_eq!((search.best.nnz(), search.state.best_loss), (0, 1.0));
}

#[test]
fn the_least_validation_loss_is_the_result() {
    let params = Params { validation: 20, ..Params::DEFAULT };
    for (params, chosen) in [(Params::DEFAULT, 1), (params, 2)] {
        let mut search = searching(&params, &[(1.0, FIRST), (1.0, SECOND)], &BOTH);
        // First a poor network that claims much, then a good one that claims less.
        let good = bits(search.model.view());
        search.model.remove(3);
        let poor = bits(search.model.view());
        search.state.stale = 5;
        search.store_result(0.5).unwrap();
        assert_eq!((bits(search.result.view()), search.state.result_loss), (poor.clone(), 0.5));
        search
            .model
            .load(searching(&params, &[(1.0, FIRST), (1.0, SECOND)], &BOTH).model.view())
            .unwrap();
        search.store_result(0.75).unwrap();
        assert_eq!(bits(search.result.view()), if chosen == 1 { poor } else { good });
        // The search itself goes by the rows that are fitted.
        assert_eq!(search.state.result_loss, 0.5);
        assert_eq!(
            (search.state.held < 1e-12, search.state.stale),
            if chosen == 1 { (false, 5) } else { (true, 0) }
        );
    }
}

#[test]
fn validation_leaves_rows_residual_and_goal() {
    let params = Params { validation: 20, ..Params::DEFAULT };
    let mut search = searching(&params, &[(1.0, FIRST), (1.0, SECOND)], &BOTH[..3]);
    let loss = search.model.loss().unwrap();
    let (residual, goal) = (search.model.fit.residual().to_vec(), search.model.task.goal);
    let held = search.validation_loss().unwrap();
    assert_eq!(residual.len(), N - 20);
    assert_eq!((search.model.fit.residual(), search.model.task.goal), (&residual[..], goal));
    // It is the mean over the last 20 rows.
    let mut all = searching(&Params::DEFAULT, &[(1.0, FIRST), (1.0, SECOND)], &BOTH[..3]);
    let both = all.model.loss().unwrap();
    assert!(
        (held * 20.0 + loss * 40.0 - both * 60.0).abs() < 1e-4 * both * 60.0,
        "{held} {loss} {both}"
    );
}

#[test]
fn fit_is_exact_relative_to_selected_label_power() {
    let mut search = half();
    for rows in [7, N] {
        search.select(rows).unwrap();
        let goal = search.params.exact * search.model.fit.power;
        assert_eq!((search.model.task.goal, search.state.rows as usize), (goal, rows));
        assert!(
            search.is_exact(goal) && !search.is_exact(goal * 1.001) && !search.is_exact(f32::NAN)
        );
    }
    // Four times the rows, as far as there are any.
    search.widen(7).unwrap();
    assert_eq!((search.model.fit.rows(), search.state.rows), (28, 28));
    search.widen(28).unwrap();
    assert_eq!(search.model.fit.rows(), N);
}

#[test]
fn stopped_search_hurries_and_reports_no_checkpoint() {
    let mut search = half();
    search.hurry();
    assert!(!search.model.task.hurried);
    search.observe = |_| false;
    let loss = search.model.loss().unwrap();
    search.outer(loss, 6, Phase::Trial).unwrap();
    assert!(search.model.task.info.stopped && search.is_done());
    // A step is told, and what the observer says changes nothing; a checkpoint would not be that of
    // a whole run.
    search.observe = |progress| {
        assert!(progress.step == 2 && progress.checkpoint.is_none());
        true
    };
    search.outer(loss, 6, Phase::Trial).unwrap();
    search.observe = |_| panic!("told a checkpoint");
    search.tell_checkpoint();
    assert!(search.model.task.info.stopped && search.model.task.info.steps == 2);
    search.hurry();
    assert!(search.model.task.hurried && search.model.task.steps(9) == 2);
}

#[test]
fn operator_stop_keeps_current_network_if_none_best() {
    let mut search = half();
    search.state.stage = Stage::Fall;
    assert_eq!(search.end_early().unwrap(), Stage::Perturb);
    assert_eq!(bits(search.best.view()), bits(search.model.view()));
    let best = bits(search.best.view());
    search.model.remove(1);
    assert_eq!(search.end_early().unwrap(), Stage::Perturb);
    assert_eq!(bits(search.best.view()), best);
    search.state.stage = Stage::Polish;
    assert_eq!(search.end_early().unwrap(), Stage::End);
    assert!(search.model.task.info.stopped && search.cut_off);
}

#[test]
fn a_checkpoint_gives_networks_damping_and_counters_back() {
    let (mut from, mut to) =
        (half(), searching(&Params::DEFAULT, &[(1.0, FIRST), (1.0, SECOND)], &[]));
    let loss = from.model.loss().unwrap();
    from.descend(loss, Phase::Descend).unwrap();
    from.store_result(0.5).unwrap();
    from.state.turn = 7;
    from.model.task.info.merges = 3;
    from.tell_checkpoint();
    let (state, net) = (from.state, from.model.view());
    let checkpoint = Checkpoint { state, net, best: from.best.view(), result: from.result.view() };
    to.restore(&checkpoint).unwrap();
    assert_eq!(to.state, state);
    for (a, b) in [
        (to.model.view(), net),
        (to.best.view(), from.best.view()),
        (to.result.view(), from.result.view()),
    ] {
        assert_eq!(bits(a), bits(b));
        assert!(a.nnz() > 0);
    }
    assert_eq!(to.model.solver.lambda, from.model.solver.lambda);
    assert_eq!(
        (to.model.task.info.merges, to.model.task.info.steps),
        (3, from.model.task.info.steps)
    );
    // Of another number of blocks it is refused.
    let other = crate::network::net::Network::empty(Shape::signed(D, P + 1, Signs::Positive));
    assert!(to.restore(&Checkpoint { net: other, ..checkpoint }).is_err());
}
