//! The stages of a search, one by one, on the model of one output.

extern crate std;
use super::*;
use crate::base::rng::Rng;
use crate::data::samples::FnRows;
use crate::learn::lm::Params;
use crate::learn::lm::search::tests::{
    BOTH, FIRST, SECOND, Searching, bits, searching, searching_rows,
};
use crate::learn::lm::signed::tests::{D, N};
use core::convert::Infallible;
use std::vec::Vec;

mod end;

const PLANTED: [(f32, [f32; D]); 2] = [(1.0, FIRST), (1.0, SECOND)];
/// Three neurons of twelve weights, where six are to be had: no exact fit.
const RICH: [(f32, [f32; D]); 3] =
    [(1.0, [1.0, -2.0, 0.5, 0.7]), (1.0, [0.6, 1.0, -0.8, 1.0]), (1.0, [-1.0, 0.4, 1.0, 0.5])];
/// One weight in each of seven neurons.
const SEVEN: [(u32, f32); 7] =
    [(0, 1.0), (5, 1.0), (10, 1.0), (15, 1.0), (16, -1.0), (21, -1.0), (26, -1.0)];

/// A search at `net`, which is its best network too, and its loss.
fn standing(params: &Params, planted: &[(f32, [f32; D])], net: &[(u32, f32)]) -> (Searching, f32) {
    let mut search = searching(params, planted, net);
    let loss = search.model.loss().unwrap();
    search.store_best(loss).unwrap();
    (search, loss)
}

/// Which of [`SEVEN`] a restart with this seed leaves, as the `number`th after so many without
/// progress.
fn left(seed: u64, number: u32, idle: u32) -> Vec<usize> {
    let (mut search, _) = standing(&Params { seed, ..Params::DEFAULT }, &RICH, &SEVEN);
    (search.state.perturbations, search.state.idle) = (number, idle);
    search.drop_neurons();
    search.model.neurons().map(|block| block.neuron()).collect()
}

#[test]
fn search_on_more_rows_keeps_its_result() {
    let (good, good_loss) = standing(&Params::DEFAULT, &PLANTED, &BOTH);
    let (mut search, loss) = standing(&Params::DEFAULT, &PLANTED, &SEVEN[..2]);
    assert_eq!(search.begin(loss).unwrap(), Stage::Fall);
    assert_eq!(search.state.result_loss, f32::INFINITY);
    search.result.store::<Infallible>(good.model.view()).unwrap();
    // What it was on other rows.
    search.state.result_loss = 0.0;
    let now = bits(search.model.view());
    search.begin(loss).unwrap();
    assert_eq!((search.state.result_loss, search.state.best_loss), (good_loss, loss));
    assert_eq!((bits(search.model.view()), search.model.loss().unwrap()), (now, loss));
    search.store_result(loss).unwrap();
    assert_eq!(bits(search.result.view()), bits(good.model.view()));
}

#[test]
fn perturbation_empties_a_fifth_more_when_idle() {
    assert_eq!([1, 4, 5, 9, 10, 100].map(|live| emptied(live, 0)), [1, 1, 1, 1, 2, 20]);
    assert_eq!(
        [0, 2, 3, 5, 6, 9, 12, u32::MAX].map(|idle| emptied(10, idle)),
        [2, 2, 4, 4, 6, 8, 8, 8]
    );
    assert_eq!((emptied(0, 0), emptied(2, u32::MAX)), (1, 1));
    assert_eq!([0, 3, 6, 9].map(|idle| 7 - left(1, 1, idle).len()), [1, 2, 4, 5]);
}

#[test]
fn perturbation_depends_on_its_seed_and_number() {
    assert_eq!(left(1, 1, 6), left(1, 1, 6));
    let perturbations: Vec<_> =
        (0..4).flat_map(|seed| (1..4).map(move |number| left(seed, number, 6))).collect();
    let differ = |a: &[Vec<usize>]| a.iter().any(|other| other != &a[0]);
    assert!(perturbations.chunks(3).all(differ), "{perturbations:?}");
    assert!(
        differ(&perturbations.iter().step_by(3).cloned().collect::<Vec<_>>()),
        "{perturbations:?}"
    );
    // Every neuron is in reach.
    assert!(
        (0..7).all(|i| perturbations.iter().any(|left| !left.contains(&i))),
        "{perturbations:?}"
    );
}

#[test]
fn perturbation_starts_from_best_network_and_preserves_it() {
    let (mut search, _) = standing(&Params::DEFAULT, &RICH, &SEVEN);
    let best = bits(search.best.view());
    search.model.net.clear();
    assert_eq!(search.restart().unwrap(), Stage::Fall);
    assert_eq!(search.model.live(), 6);
    assert_eq!((search.state.perturbations, search.model.task.info.perturbations), (1, 1));
    assert_eq!(bits(search.best.view()), best);
    // What is left is fitted.
    let fitted = search.model.loss().unwrap();
    let indices = |bits: &[(u32, u32)]| bits.iter().map(|(j, _)| *j).collect::<Vec<_>>();
    assert!(indices(&bits(search.model.view())).iter().all(|j| indices(&best).contains(j)));
    let refitted = search.model.improve(fitted, 1, 0.0).unwrap();
    assert!(refitted > 0.9 * fitted, "{refitted} {fitted}");
    // The same restart of another run has the same bits.
    let (mut again, _) = standing(&Params::DEFAULT, &RICH, &SEVEN);
    again.restart().unwrap();
    let (mut other, _) = standing(&Params::DEFAULT, &RICH, &SEVEN);
    other.model.net.clear();
    other.restart().unwrap();
    assert_eq!(bits(again.model.view()), bits(other.model.view()));
}

#[test]
fn emptied_network_restarts_only_where_budget_is_tight() {
    for tight in [false, true] {
        let (mut search, _) = standing(&Params::DEFAULT, &PLANTED, &BOTH[..3]);
        search.model.task.tight = tight;
        assert_eq!(search.restart().unwrap(), Stage::Fall);
        assert_eq!(search.model.live() > 0, tight);
    }
}

#[test]
fn exact_fit_of_unoriented_neurons_is_not_perturbed() {
    for (signs, net, next) in [
        (Signs::Unoriented, &BOTH[..], Stage::AllRows),
        (Signs::Free, &BOTH, Stage::Fall),
        (Signs::Unoriented, &BOTH[..3], Stage::Fall),
    ] {
        let (mut search, _) = standing(&Params { signs, ..Params::DEFAULT }, &PLANTED, net);
        assert_eq!(search.restart().unwrap(), next);
        assert_eq!(search.state.perturbations > 0, next == Stage::Fall);
    }
}

#[test]
fn search_ends_with_best_network_after_last_perturbation() {
    for (perturbations, stopped) in [(0, false), (9, true)] {
        let (mut search, _) = standing(&Params { perturbations, ..Params::DEFAULT }, &RICH, &SEVEN);
        search.model.task.info.stopped = stopped;
        assert_eq!(search.restart().unwrap(), Stage::AllRows);
        assert_eq!((search.state.perturbations, search.model.task.info.perturbations), (0, 0));
        assert!((1..=6).contains(&search.result.nnz()) && search.model.live() <= 3);
        assert_eq!(bits(search.model.view()), bits(search.result.view()));
    }
}

#[test]
fn perturbations_are_idle_without_two_percent_gain() {
    let params = Params { patience: 3, ..Params::DEFAULT };
    let mut search = searching(&params, &RICH, &[]);
    let mut idle = |part: f32| {
        search.state.best_loss = part * search.model.fit.power;
        (search.is_idle(), search.state.idle)
    };
    let seen = [0.5, 0.495, 0.495, 0.48, 0.48, 0.48, 0.479].map(&mut idle);
    let expected =
        [(false, 0), (false, 1), (false, 2), (false, 0), (false, 1), (false, 2), (true, 3)];
    assert_eq!(seen, expected);
    // Near an exact fit it is always worth going on.
    assert_eq!(
        [1e-3, 1e-3, 1e-3, 1e-3, 1e-3].map(&mut idle).map(|(is_idle, _)| is_idle),
        [false; 5]
    );
}

#[test]
fn patience_quarters_with_more_rows_minimum_one() {
    assert_eq!([0, 1, 2, 3, 40].map(|times| patient(40, times)), [40, 10, 2, 1, 1]);
    assert_eq!((patient(0, 0), patient(u32::MAX, 15)), (1, 3));
    let params = Params { rows: 3, ..Params::DEFAULT };
    let mut search = searching(&params, &RICH, &[]);
    let mut times = |rows| {
        search.select(rows).unwrap();
        search.widenings()
    };
    assert_eq!([3, 12, 48, N].map(&mut times), [0, 1, 2, 3]);
}

/// Rows of which the first 20 have no last input.
fn late() -> FnRows<impl FnMut(usize, &mut [f32]) -> Result<(), core::convert::Infallible>> {
    FnRows::new(N, D, |k, row: &mut [f32]| {
        Rng::new(3, k as u64).fill_normal(row);
        row[D - 1] *= if k < 20 { 0.0 } else { 1.0 };
        Ok(())
    })
}

#[test]
fn a_fit_refuted_by_all_rows_widens_fourfold() {
    let with = (1.0, [1.0, -2.0, 0.5, 1.0]);
    let mut search = searching_rows(late(), &Params::DEFAULT, &[with], &BOTH[..3]);
    search.take_up(10).unwrap();
    let loss = search.model.loss().unwrap();
    search.store_best(loss).unwrap();
    assert!(loss < 1e-12);
    assert_eq!(search.restart().unwrap(), Stage::Descend);
    assert_eq!(
        (search.state.rows, search.model.fit.rows(), search.state.perturbations),
        (40, 40, 0)
    );
    // A fit that all rows bear out is not refuted, and one of all rows cannot be.
    for rows in [10, N] {
        let mut search = searching_rows(late(), &Params::DEFAULT, &[(1.0, FIRST)], &BOTH[..3]);
        search.take_up(rows).unwrap();
        search.state.best_loss = 1e-3;
        assert!(!search.refute().unwrap());
        assert_eq!(search.model.fit.rows(), rows);
    }
}

#[test]
fn a_search_without_progress_widens_to_all_rows() {
    for (rows, next) in [(30, Stage::Descend), (N, Stage::AllRows)] {
        let params = Params { patience: 1, ..Params::DEFAULT };
        let (mut search, _) = standing(&params, &RICH, &SEVEN);
        search.take_up(rows).unwrap();
        search.state.best_loss = 0.5 * search.model.fit.power;
        search.state.mark = search.state.best_loss;
        // All rows do not refute a loss as large as that.
        assert_eq!(search.restart().unwrap(), next);
        assert_eq!((search.model.fit.rows(), search.state.perturbations), (N, 0));
    }
}

#[test]
fn no_progress_on_validation_rows_stops_early() {
    let params =
        Params { validation: 20, validation_patience: 2, patience: 100, ..Params::DEFAULT };
    let (mut search, _) = standing(&params, &RICH, &SEVEN);
    // The best network so far is brought to s weights and counts where it is better on them.
    assert!(!search.is_stale().unwrap());
    assert!((1..=6).contains(&search.result.nnz()) && search.state.stale == 0);
    assert_eq!(bits(search.model.view()), bits(search.best.view()));
    search.state.idle = 1;
    let steps = search.model.task.info.steps;
    assert!(!search.is_stale().unwrap() && search.is_stale().unwrap());
    // What got no better is not brought down again.
    assert_eq!(search.model.task.info.steps, steps);
    search.params.validation_patience = 0;
    assert!(!search.is_stale().unwrap());
    (search.params.validation, search.params.validation_patience) = (0, 1);
    assert!(!search.is_stale().unwrap());
    assert_eq!(search.state.stale, 3);
    (search.params.validation, search.state.stale) = (20, 9);
    assert_eq!(search.restart().unwrap(), Stage::AllRows);
    assert!(search.state.early);
}

#[test]
fn search_begins_with_current_network_as_best() {
    let (mut search, loss) = standing(&Params::DEFAULT, &RICH, &SEVEN);
    let state = &mut search.state;
    (state.best_loss, state.result_loss, state.mark) = (0.0, 0.0, 0.0);
    (state.perturbations, state.idle, state.stale) = (9, 9, 9);
    search.model.remove(0);
    assert_eq!(search.begin(loss).unwrap(), Stage::Fall);
    let state = &search.state;
    assert_eq!(
        (state.best_loss, state.result_loss, state.mark),
        (loss, f32::INFINITY, f32::INFINITY)
    );
    assert_eq!((state.perturbations, state.idle, state.stale), (0, 0, 0));
    assert_eq!(bits(search.best.view()), bits(search.model.view()));
}

#[test]
fn steps_repeat_until_stall_moves_until_none_helps() {
    let (mut search, mut loss) = standing(&Params::DEFAULT, &RICH, &BOTH);
    let mut steps = 1;
    while search.fall(loss).unwrap() == Stage::Fall {
        loss = search.model.loss().unwrap();
        steps += 1;
    }
    assert_eq!(search.model.task.info.steps, steps);
    loss = search.model.loss().unwrap();
    for _ in 0..50 {
        let moves = search.model.task.info.moves;
        match search.moves(loss).unwrap() {
            Stage::Moves => assert_eq!(search.model.task.info.moves, moves + 1),
            next => {
                assert_eq!(
                    (next, search.model.task.info.moves, search.result.nnz()),
                    (Stage::Perturb, moves, 0)
                );
                return;
            }
        }
        loss = search.model.loss().unwrap();
    }
    panic!("moves without an end");
}

#[test]
fn exact_fit_goes_down_to_s_before_moves() {
    // Three weights beside those of both neurons.
    let net =
        [(4, 1.001), (5, -2.0), (6, 0.5), (7, 1e-4), (12, 1e-4), (13, 1.0), (14, 1e-4), (15, 1.0)];
    let pass = |nnz, goal: f32, finished: f32| {
        let (mut search, loss) = standing(&Params::DEFAULT, &PLANTED, &net);
        (search.model.task.nnz, search.model.task.goal) = (nnz, goal * loss);
        search.state.finished = finished * loss;
        let stage = search.moves(loss).unwrap();
        let has_moved = search.state.turn > 0;
        (stage, has_moved, search.state.finished / loss, search.state.best_loss <= loss)
    };
    // Where that finds the network no move is tried.
    assert_eq!(pass(6, 10.0, f32::INFINITY), (Stage::AllRows, false, 1.0, true));
    // With too few weights it does not, once: it is not tried again before the loss is a quarter.
    assert_eq!(pass(3, 10.0, f32::INFINITY), (Stage::Moves, false, 1.0, true));
    assert!(pass(3, 10.0, 3.0).1 && !pass(3, 10.0, 5.0).1);
    // Nor where the fit is not exact.
    assert!(pass(6, 0.5, f32::INFINITY).1);
}

#[test]
fn search_goes_on_from_what_the_way_down_has_made_better() {
    // A third neuron stays out of reach.
    let planted = [PLANTED[0], PLANTED[1], (1.0, [0.0, 0.0, -1e-3, 1e-3])];
    let net = [(4, 1.01), (5, -2.0), (6, 0.5), (12, 1e-4), (13, 1.0), (15, 1.0)];
    let (mut search, loss) = standing(&Params::DEFAULT, &planted, &net);
    (search.model.task.nnz, search.model.task.goal) = (5, 10.0 * loss);
    assert_eq!(search.moves(loss).unwrap(), Stage::Fall);
    let result = search.state.result_loss;
    assert!(result < 0.1 * loss && !search.is_found(result));
    assert_eq!(search.model.loss().unwrap(), search.state.best_loss);
    assert_eq!(bits(search.model.view()), bits(search.result.view()));
    assert_eq!(bits(search.model.view()), bits(search.best.view()));
}

#[test]
fn exact_fit_is_fitted_before_it_is_judged() {
    let net = [(4, 1.001), (5, -2.0), (6, 0.5), (13, 1.0), (15, 1.0)];
    let (mut search, loss) = standing(&Params::DEFAULT, &PLANTED, &net);
    search.model.task.goal = 10.0 * loss;
    let result = search.finish(loss).unwrap();
    assert!(!search.is_found(loss) && search.is_found(result), "{loss:e} {result:e}");
}

#[test]
fn exact_fit_over_budget_shrinks_to_planted_support() {
    let spread =
        [(4, 1.0), (5, -2.0), (6, 0.5), (7, 1e-7), (12, 1e-7), (13, 1.0), (14, 1e-7), (15, 1.0)];
    let (mut search, loss) = standing(&Params::DEFAULT, &PLANTED, &spread);
    assert!(search.is_exact(loss));
    search.model.task.nnz = 5;
    assert_eq!(search.moves(loss).unwrap(), Stage::AllRows);
    assert_eq!(search.result.view().w().index(), [4, 5, 6, 13, 15]);
    assert!(search.is_exact(search.state.result_loss) && search.model.task.info.trials == 0);
    // Where the run was ended a fit that is not exact is brought down all the same.
    let (mut search, loss) = standing(&Params::DEFAULT, &RICH, &SEVEN);
    search.model.task.info.stopped = true;
    assert_eq!(search.moves(loss).unwrap(), Stage::Perturb);
}

#[test]
fn shrinking_keeps_weights_of_largest_salience() {
    // Each three times the last, so that what is fitted between the cuts changes no order.
    let net: [(u32, f32); 7] =
        core::array::from_fn(|i| (SEVEN[i].0, SEVEN[i].1 * 3.0_f32.powi(i as i32)));
    let planted: Vec<(f32, [f32; D])> = net
        .iter()
        .map(|&(j, w)| {
            let mut row = [0.0; D];
            row[j as usize % D] = w;
            (1.0, row)
        })
        .collect();
    let (mut search, loss) = standing(&Params::DEFAULT, &planted, &net);
    (search.model.task.hidden, search.model.task.nnz) = (7, 3);
    search.finish(loss).unwrap();
    assert_eq!(search.result.view().w().index(), [16, 21, 26]);
    assert_eq!(search.state.result_loss, search.model.loss().unwrap());
}

#[test]
fn fit_spoilt_by_shrinking_gets_outer_steps() {
    let third = [0.6, 0.0, 1.0, 0.0];
    let net = [(4, 1.0), (5, -2.0), (6, 0.5), (13, 1.0), (15, 1.0), (16, 0.6), (18, 1.0)];
    let planted = [PLANTED[0], PLANTED[1], (1.0, third)];
    // Seven weights on the way down to five or, where that is what there is, to seven.
    let found = |polish: u32, goal: f32, nnz: usize| {
        let (mut search, loss) = standing(&Params { polish, ..Params::DEFAULT }, &planted, &net);
        let task = &mut search.model.task;
        (task.goal, task.nnz) = (goal, nnz);
        let found = search.finish(loss).unwrap();
        assert!(found == search.state.result_loss && search.result.nnz() <= nnz);
        (found, search.model.task.info.steps)
    };
    let (spoilt, cuts) = found(0, 1e-12, 5);
    let (better, steps) = found(10, 1e-12, 5);
    assert!(better <= spoilt && spoilt > 1e-3, "{better} {spoilt}");
    assert!(steps > cuts && cuts == 2, "{steps} {cuts}");
    // Where the fit was not exact there is nothing to bring back, and where it was not spoilt
    // neither.
    assert_eq!(found(10, -1.0, 5), (spoilt, cuts));
    assert_eq!(found(10, 1e-12, 7).1, 0);
}

#[test]
fn shrinking_stopped_midway_matches_hurried_start() {
    // Seven neurons of four weights, down to six weights of 28: in a hurry or not, the way down
    // loses something.
    let net: Vec<(u32, f32)> = (0..28)
        .map(|j| (j, ((j * 7 + 3) % 11) as f32 / 4.0 - 1.2 + 0.3 * ((j / 4) as f32)))
        .collect();
    let planted: Vec<(f32, [f32; D])> =
        net.chunks(D).map(|row| (1.0, core::array::from_fn(|j| row[j].1))).collect();
    let down = |ended_at: u32, nnz: usize| {
        let (mut search, loss) = standing(&Params::DEFAULT, &planted, &net);
        let task = &mut search.model.task;
        (task.goal, task.hidden, task.nnz) = (1e-12, 7, nnz);
        search.model.task.info.stopped = ended_at == 0;
        search.hurry();
        search.observe = match ended_at {
            1 => |progress| progress.step < 1,
            2 => |progress| progress.step < 2,
            3 => |progress| progress.step < 3,
            _ => |_| true,
        };
        search.finish(loss).unwrap();
        assert_eq!(search.model.task.info.stopped, ended_at < 4);
        search.state.result_loss
    };
    let mut worse = 0;
    for nnz in [6, 10, 14, 20] {
        let hasty = down(0, nnz);
        for ended_at in [1, 2, 3] {
            let found = down(ended_at, nnz);
            // The damping that a step begins with is another one.
            assert!(found < 1.05 * hasty, "{nnz} {ended_at}: {found} {hasty}");
            worse += u32::from(found < hasty);
        }
    }
    assert!(worse > 0, "the steps before the end are for nothing");
}

#[test]
fn only_exact_fit_of_all_rows_ends_search() {
    // Exact on all rows.
    let (mut search, loss) = standing(&Params::DEFAULT, &PLANTED, &BOTH);
    search.take_up(20).unwrap();
    assert_eq!(search.all_rows(loss).unwrap(), Stage::Polish);
    assert_eq!((search.state.rows as usize, search.result.nnz()), (N, 5));
    // Exact on a few rows: on with four times as many.
    let mut search =
        searching_rows(late(), &Params::DEFAULT, &[(1.0, [1.0, -2.0, 0.5, 1.0])], &BOTH[..3]);
    search.take_up(10).unwrap();
    let loss = search.model.loss().unwrap();
    assert_eq!(search.all_rows(loss).unwrap(), Stage::Descend);
    assert_eq!(search.model.fit.rows(), 40);
    // The same where it is exact there too, but others may be more so.
    let near = BOTH.map(|(j, w)| (j, if j == BOTH[0].0 { w * (1.0 + 4e-6) } else { w }));
    let (mut search, _) = standing(&Params { final_steps: 0, ..Params::DEFAULT }, &PLANTED, &near);
    search.take_up(20).unwrap();
    let loss = search.model.loss().unwrap();
    assert_eq!(search.all_rows(loss).unwrap(), Stage::Descend);
    let on_all = search.model.loss().unwrap();
    assert!(search.is_exact(on_all) && !search.is_found(on_all));
    // Not exact on all rows, which are all there are.
    let (mut search, loss) = standing(&Params::DEFAULT, &RICH, &SEVEN);
    assert_eq!(search.all_rows(loss).unwrap(), Stage::Polish);
    // Not exact even there: what is found is fitted to all rows, and a better support for these is
    // looked for.
    let (mut search, _) = standing(&Params::DEFAULT, &RICH, &SEVEN);
    search.take_up(20).unwrap();
    let loss = search.model.loss().unwrap();
    assert_eq!(search.all_rows(loss).unwrap(), Stage::Support);
    assert_eq!(search.model.fit.rows(), N);
    let (before, loss) = (search.state.result_loss, search.model.loss().unwrap());
    assert_eq!(search.improve_support(loss).unwrap(), Stage::Polish);
    assert!(search.state.result_loss < before && search.result.nnz() <= 6);
    // The best network while searching was that of fewer rows.
    assert!(search.state.best_loss > 0.0 && search.best.nnz() > 0);
    assert_eq!(bits(search.model.view()), bits(search.result.view()));
}
