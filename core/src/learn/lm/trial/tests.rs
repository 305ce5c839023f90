//! Passes of moves on the model of one output: what is tried, what is kept, and what is given back
//! to the bit.

extern crate std;
use super::*;
use crate::learn::lm::Params;
use crate::learn::lm::neuron::{Move, Origin};
use crate::learn::lm::search::tests::{
    BOTH, FIRST, SECOND, Searching, bits, searching, searching_rows,
};
use crate::learn::lm::signed::tests::{D, even, rows_of};
use std::vec::Vec;

const PLANTED: [(f32, [f32; D]); 2] = [(1.0, FIRST), (1.0, SECOND)];
/// Three neurons of twelve weights, where eight are to be had: no exact fit.
const RICH: [(f32, [f32; D]); 3] =
    [(1.0, [1.0, -2.0, 0.5, 0.7]), (1.0, [0.6, 1.0, -0.8, 1.0]), (1.0, [-1.0, 0.4, 1.0, 0.5])];

const DRAW: Draw = Draw { seed: 3, random: 6 };

/// A new neuron from this atom.
fn added(number: u32) -> Candidate {
    Candidate { gain: 1.0, kind: Move::Add(Origin::Atom(number), 1.0) }
}

/// A search at a base, and its loss.
fn at_base(planted: &[(f32, [f32; D])], net: &[(u32, f32)]) -> (Searching, f32) {
    let mut search = searching(&Params::DEFAULT, planted, net);
    let loss = search.model.loss().unwrap();
    search.base.store::<core::convert::Infallible>(search.model.view()).unwrap();
    (search, loss)
}

/// The loss of a trial of one candidate, and the network it leads to, from the damping of a start.
fn tried(search: &mut Searching, candidate: Candidate, loss: f32) -> (f32, Vec<(u32, u32)>) {
    search.model.solver.lambda = 0.01;
    let tried = search.try_out(&[candidate], DRAW, loss).unwrap();
    (tried, bits(search.model.view()))
}

#[test]
fn helpful_move_is_accepted_and_then_descended() {
    let (mut search, loss) = at_base(&PLANTED, &BOTH[..3]);
    let better = search.try_moves(loss).unwrap().unwrap();
    assert!(better < SUCCESS * loss, "{better} {loss}");
    assert_eq!(search.model.loss().unwrap(), better);
    assert_eq!((search.model.task.info.moves, search.state.turn), (1, 1));
    assert!(search.model.task.info.trials >= 1 && search.state.best_loss <= better);
}

/// A pass that does not simplify the network first.
fn unsimplified(search: &mut Searching, loss: f32) -> Option<f32> {
    search.state.turn += 1;
    search.base.store::<()>(search.model.view()).unwrap();
    search.try_candidates(loss).unwrap()
}

#[test]
fn unhelpful_moves_leave_network_bit_identical() {
    let mut search = searching(&Params::DEFAULT, &RICH, &BOTH);
    let mut refused = 0;
    for _ in 0..40 {
        let loss = search.model.loss().unwrap();
        let loss = search.descend(loss, Phase::Descend).unwrap();
        let (before, info) = (bits(search.model.view()), search.model.task.info);
        let (best, best_loss) = (bits(search.best.view()), search.state.best_loss);
        let helped = unsimplified(&mut search, loss);
        let trials = search.model.task.info.trials - info.trials;
        assert!(trials > 0);
        if helped.is_some() {
            assert_eq!(search.model.task.info.moves, info.moves + 1);
            continue;
        }
        refused += 1;
        assert_eq!(bits(search.model.view()), before);
        assert_eq!(search.model.loss().unwrap().to_bits(), loss.to_bits());
        assert_eq!(
            (search.model.task.info.moves, search.model.task.info.perturbations),
            (info.moves, info.perturbations)
        );
        assert!(trials <= 24, "{trials}");
        // What a trial has found is not lost where it is the best so far, and nothing else takes
        // its place.
        assert!(search.state.best_loss <= best_loss);
        assert!(search.state.best_loss < best_loss || bits(search.best.view()) == best);
    }
    assert!(refused > 0);
}

#[test]
fn refused_move_restores_base_gates_and_residual() {
    let mut search = searching(&Params::DEFAULT, &RICH, &BOTH);
    let open = |search: &mut Searching| -> Vec<bool> {
        let rows = rows_of(search.model.fit.sensing);
        let net = search.model.net.view();
        let z =
            |i: usize, x: &[f32; D]| net.w().block(i).entries().map(|(j, w)| w * x[j]).sum::<f32>();
        rows.iter().flat_map(|x| (0..7).map(|i| z(i, x) > 0.0).collect::<Vec<_>>()).collect()
    };
    let mut loss = search.model.loss().unwrap();
    for _ in 0..40 {
        loss = search.descend(loss, Phase::Descend).unwrap();
        search.model.loss().unwrap();
        let (gates, residual) = (open(&mut search), search.model.fit.residual().to_vec());
        if let Some(better) = unsimplified(&mut search, loss) {
            loss = better;
            continue;
        }
        assert_eq!(open(&mut search), gates);
        search.model.loss().unwrap();
        assert_eq!(search.model.fit.residual(), residual);
        return;
    }
    panic!("every move helped");
}

#[test]
fn every_trial_starts_from_unchanged_base() {
    let (mut search, loss) = at_base(&RICH, &BOTH);
    let base = bits(search.base.view());
    let (first, other) = (tried(&mut search, added(2), loss), tried(&mut search, added(5), loss));
    assert_ne!(first.1, other.1);
    search.model.remove(1);
    assert_eq!(tried(&mut search, added(2), loss), first);
    assert_eq!((bits(search.base.view()), search.model.task.info.trials), (base, 3));
    assert!(search.model.counted() <= search.model.task.work_size());
    // The best of the trials is the best network so far.
    let best = if first.0 <= other.0 { first } else { other };
    assert_eq!((search.state.best_loss, bits(search.best.view())), best);
}

#[test]
fn trial_goes_on_while_it_wins_of_several_while_success_is_in_reach() {
    let (mut search, loss) = at_base(&RICH, &BOTH);
    let mut steps = |candidates: &[Candidate], loss| {
        let before = search.model.task.info.steps;
        search.model.solver.lambda = 0.01;
        search.try_out(candidates, DRAW, loss).unwrap();
        search.model.task.info.steps - before
    };
    let (mut alone, mut most) = (0, 0);
    for number in 0..8 {
        // Any loss is a success, or none is.
        let several = [added(number), added((number + 1) % 8)];
        assert_eq!([0.0, 1e9].map(|loss| steps(&several, loss)), [1, 1]);
        assert_eq!(steps(&several[..1], 1e9), 1);
        alone = alone.max(steps(&several[..1], 0.0));
        let near = (0..40).map(|nth| steps(&several, loss * 0.9_f32.powi(nth)));
        most = near.fold(most, u32::max);
    }
    assert!((2..=4).contains(&alone) && (2..=4).contains(&most), "{alone} {most}");
}

#[test]
fn immediately_exact_trial_is_cut_to_search_budget() {
    let missing = [1.0, -2.0, 0.0, 0.0];
    // Three weights too many in the base, and two more with the new neuron.
    let net = [(12, 1e-6), (13, 1.0), (14, 1e-6), (15, 1.0), (17, 1e-6)];
    let planted = [(1.0, missing), (1.0, SECOND)];
    let mut search = searching_rows(even(), &Params::DEFAULT, &planted, &net);
    (search.model.task.nnz, search.model.task.hidden) = (4, 2);
    search.base.store::<core::convert::Infallible>(search.model.view()).unwrap();
    let loss = search.model.loss().unwrap();
    // Found is a small part of it.
    search.model.task.goal = 1e-2;
    let tried = search.try_out(&[added(3)], DRAW, loss).unwrap();
    assert_eq!((search.model.task.info.steps, search.model.counted()), (0, 5));
    assert!(tried < 1e-4 && loss > 1e-2);
}

#[test]
fn trial_without_applicable_candidate_is_worth_nothing() {
    let (mut search, loss) = at_base(&PLANTED, &BOTH[..3]);
    let empty = Candidate { gain: 1.0, kind: Move::Split(5) };
    let before = bits(search.model.view());
    assert_eq!(search.try_out(&[empty], DRAW, loss).unwrap(), f32::INFINITY);
    assert_eq!((bits(search.model.view()), search.model.task.info.steps), (before, 0));
    // Beside one that can it does no harm.
    assert!(search.try_out(&[empty, added(2)], DRAW, loss).unwrap() < loss);
}

#[test]
fn batch_keeps_best_network_and_ends_at_success() {
    let (mut search, loss) = at_base(&PLANTED, &BOTH[..3]);
    let batch: Vec<Candidate> = [7, 2, 3, 0].map(added).to_vec();
    let alone: Vec<_> =
        batch.iter().map(|&candidate| tried(&mut search, candidate, loss)).collect();
    let success = alone.iter().position(|(tried, _)| *tried < SUCCESS * loss).unwrap();
    assert!(success < batch.len() - 1, "{success}");
    let before = search.model.task.info.trials;
    search.model.solver.lambda = 0.01;
    let least = search.try_batch(&batch, DRAW, loss).unwrap();
    assert!(least < SUCCESS * loss);
    assert_eq!(search.model.task.info.trials - before, success as u32 + 1);
    assert_eq!(bits(search.trial.view()), bits(search.model.view()));
    // Without a success all are tried, and the best of them is kept, not the last.
    let (mut search, _) = at_base(&RICH, &BOTH);
    let least = search.try_batch(&batch, DRAW, 0.0).unwrap();
    assert_eq!(search.model.task.info.trials, 4);
    let loss_of_kept = |search: &mut Searching| {
        search.model.load(search.trial.view()).unwrap();
        search.model.loss().unwrap()
    };
    assert_eq!(loss_of_kept(&mut search), least);
    assert_eq!(search.state.best_loss, least);
}

#[test]
fn tidying_alone_may_do() {
    // A neuron that points the wrong way, and one in two halves.
    let minus = FIRST.map(|w| -w);
    let net =
        [(4, minus[0]), (5, minus[1]), (6, minus[2]), (13, 0.5), (15, 0.5), (17, 0.5), (19, 0.5)];
    let (mut search, loss) = at_base(&PLANTED, &net);
    let simplified = search.try_moves(loss).unwrap().unwrap();
    assert!(search.is_exact(simplified) && loss > 1e-2);
    let task = search.model.task;
    assert_eq!(
        (
            task.info.flips,
            task.info.merges,
            search.model.task.info.trials,
            search.model.task.info.moves
        ),
        (1, 1, 0, 0)
    );
    assert_eq!((search.model.live(), bits(search.base.view())), (2, bits(search.model.view())));
}

#[test]
fn merge_that_spoils_fit_is_undone_bit_identical() {
    let near = [1.0, -2.0, 1.2, 0.0];
    let planted = [(1.0, FIRST), (1.0, near)];
    let net = [(4, 1.0), (5, -2.0), (6, 0.5), (12, 1.0), (13, -2.0), (14, 1.2)];
    let (mut search, loss) = at_base(&planted, &net);
    let before = bits(search.model.view());
    assert!(loss < 1e-12);
    // Their cosine is above 0.9: they become one, which does not fit.
    let kept = search.merge(loss, 0.9, loss).unwrap();
    assert_eq!(
        (bits(search.model.view()), kept.to_bits(), search.model.live()),
        (before, loss.to_bits(), 2)
    );
    // Where the fit is poor anyway the same merge stays.
    let (mut search, loss) = at_base(&planted, &net);
    search.merge(loss, 0.9, 1.0).unwrap();
    assert_eq!((search.model.live(), search.base.nnz()), (1, 3));
}

#[test]
fn exact_fit_merges_what_is_the_same_and_nothing_else() {
    // The first neuron in two halves, and another one that is nearly the same as it.
    let near = [1.0, -2.0, 0.55, 0.0];
    let net = [
        (0, 0.5),
        (1, -1.0),
        (2, 0.25),
        (4, 0.5),
        (5, -1.0),
        (6, 0.25),
        (8, 1.0),
        (9, -2.0),
        (10, 0.55),
    ];
    let (mut search, loss) = at_base(&[(1.0, FIRST), (1.0, near)], &net);
    assert!(loss < 1e-12);
    let merged = search.merge_pairs(0.99, loss).unwrap();
    assert!(merged < 1e-12, "{merged}");
    assert_eq!((search.model.live(), search.model.view().nnz(), search.base.nnz()), (2, 6, 6));
}

#[test]
fn full_network_merges_pair_by_pair_where_all_at_once_spoil_the_fit() {
    // The first neuron in two halves, one that is nearly the same as it, and four others.
    let near = [1.0, -2.0, 0.55, 0.0];
    let others = [SECOND, [0.0, 0.0, 1.0, -1.0], [-1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]];
    let planted: Vec<_> = [FIRST, near].into_iter().chain(others).map(|w| (1.0, w)).collect();
    let half = FIRST.map(|w| 0.5 * w);
    let neurons: Vec<_> = [half, half, near].into_iter().chain(others).collect();
    for (count, left) in [(7, 6), (6, 6)] {
        let net = neurons[..count].iter().flatten().copied().enumerate();
        let net: Vec<_> = net.filter(|(_, w)| *w != 0.0).map(|(j, w)| (j as u32, w)).collect();
        let (mut search, loss) = at_base(&planted[..count - 1], &net);
        assert!(loss < 1e-12 && search.model.live() == count);
        let simplified = search.simplify(loss).unwrap();
        assert!(simplified < 1e-12, "{simplified}");
        assert_eq!((search.model.live(), search.base.nnz()), (left, search.model.view().nnz()));
    }
}

#[test]
fn loss_increase_gets_some_steps_before_undo() {
    let (mut search, _) = at_base(&PLANTED, &BOTH[..3]);
    let base = bits(search.base.view());
    let near: Vec<(u32, f32)> = BOTH.iter().map(|&(j, w)| (j, 1.2 * w)).collect();
    let start = |search: &mut Searching| {
        search.model.load(searching(&Params::DEFAULT, &PLANTED, &near).model.view()).unwrap();
        search.model.loss().unwrap()
    };
    let loss = start(&mut search);
    let settled = search.accept(loss, 1e-9).unwrap();
    assert!(settled <= 1e-9 && loss > 1e-3);
    assert_eq!(bits(search.base.view()), bits(search.model.view()));
    assert_ne!(bits(search.base.view()), base);
    // Within the bound it stays as it is, without a step.
    let loss = start(&mut search);
    let before = bits(search.model.view());
    assert_eq!(search.accept(loss, loss).unwrap(), loss);
    assert_eq!(bits(search.model.view()), before);
    // Below what steps can reach it goes back.
    let (mut search, least) = at_base(&PLANTED, &BOTH[..3]);
    search.model.remove(1);
    let loss = search.model.loss().unwrap();
    assert_eq!(search.accept(loss, 0.9 * loss).unwrap(), least);
    assert_eq!(bits(search.model.view()), base);
}

#[test]
fn swap_ends_at_s_weights_failure_is_undone() {
    let mut search = searching(&Params { spare: 0, ..Params::DEFAULT }, &RICH, &BOTH);
    search.model.task.tight = true;
    let loss = search.model.loss().unwrap();
    let mut loss = search.model.improve(loss, 20, 0.0).unwrap();
    let (mut swapped, mut refused) = (0, false);
    for turn in 0..40 {
        search.state.turn = turn;
        search.base.store::<core::convert::Infallible>(search.model.view()).unwrap();
        let (before, info) = (bits(search.model.view()), search.model.task.info);
        match search.swap(loss).unwrap() {
            Some(better) => {
                assert!(better < 0.99 * loss && search.model.counted() <= 6);
                assert_eq!(search.model.loss().unwrap(), better);
                assert!(search.state.best_loss <= better);
                (loss, swapped) = (better, swapped + 1);
            }
            None => {
                assert_eq!(bits(search.model.view()), before);
                assert_eq!(search.model.loss().unwrap(), loss);
                // All sizes were tried.
                assert_eq!(search.model.task.info.trials - info.trials, 5);
                // It is the base that comes back, not the best network.
                (search.state.best_loss, refused) = (0.0, true);
                search.best.clear();
                assert_eq!(search.swap(loss).unwrap(), None);
                assert_eq!(bits(search.model.view()), before);
                break;
            }
        }
    }
    assert!(swapped > 0 && refused, "{swapped}");
}

#[test]
fn swap_sizes_and_merge_cosines_cycle() {
    let sizes = |most| [0, 1, 2, 3, 4, 5].map(|turn| swapped(turn, most));
    assert_eq!((sizes(100), sizes(12)), ([5, 10, 20, 40, 100, 5], [5, 10, 12, 12, 12, 5]));
    assert_eq!([0, 1, 2, 3, 4, 5].map(alike), [0.995, 0.98, 0.95, 0.995, 0.9, 0.995]);
    assert_eq!(alike(u32::MAX), alike(u32::MAX % 5));
}

#[test]
fn joint_trials_take_one_candidate_per_twelve_neurons() {
    let pairs = [(0, 24), (23, 24), (24, 24), (35, 24), (36, 24), (600, 24), (600, 1), (24, 0)];
    assert_eq!(pairs.map(|(live, listed)| joint(live, listed)), [0, 0, 2, 2, 3, 24, 0, 0]);
}

#[test]
fn finished_run_tries_no_further_moves() {
    let (mut search, loss) = at_base(&RICH, &BOTH);
    search.observe = |_| false;
    // The first trial ends with its first step, and no other one follows, though it was no success.
    search.try_batch(&[7, 2, 3, 0].map(added), DRAW, 0.0).unwrap();
    assert_eq!((search.model.task.info.trials, search.model.task.info.steps), (1, 1));
    search.try_moves(loss).unwrap();
    assert_eq!((search.model.task.info.trials, search.model.task.info.steps), (2, 1));
}
