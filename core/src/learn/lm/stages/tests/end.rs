//! The end of a run: polish, weights of no use, the plain method, and the last steps.

use super::*;
use crate::learn::lm::EXCHANGED;
use crate::learn::lm::exchange::STARTS;

#[test]
fn polish_adds_missing_weights_and_stays_at_s() {
    // Before any outer step.
    let (mut search, loss) =
        standing(&Params { polish: 0, ..Params::DEFAULT }, &PLANTED, &BOTH[..4]);
    search.polish(loss).unwrap();
    assert!(search.result.nnz() == 6 && search.state.result_loss < loss);
    let (mut search, _) = standing(&Params::DEFAULT, &PLANTED, &BOTH[..4]);
    search.model.task.nnz = 5;
    search.state.result_loss = f32::INFINITY;
    let loss = search.model.loss().unwrap();
    assert_eq!(search.polish(loss).unwrap(), Stage::End);
    assert_eq!(search.result.view().w().index(), [4, 5, 6, 13, 15]);
    assert!(search.is_exact(search.state.result_loss));
    // Where no exact fit is in reach the plain method has a try.
    let (mut search, _) = standing(&Params::DEFAULT, &RICH, &SEVEN[..6]);
    let loss = search.model.loss().unwrap();
    assert_eq!(search.polish(loss).unwrap(), Stage::Plain);
    assert!(search.result.nnz() <= 6 && search.state.result_loss < loss);
    // In a run that was ended only with one or two weights.
    for (nnz, next) in [(2, Stage::Plain), (3, Stage::End)] {
        search.model.task.nnz = nnz;
        search.model.task.info.stopped = true;
        search.state.result_loss = f32::INFINITY;
        assert_eq!(search.polish(loss).unwrap(), next);
    }
}

#[test]
fn ended_run_without_a_network_starts_again_by_the_plain_method() {
    // Neurons without a row on which they are active: nothing lowers the loss.
    let dead: Vec<(u32, f32)> = BOTH.iter().map(|&(j, _)| (j, 0.0)).collect();
    for (net, next) in [(&dead, Stage::Plain), (&BOTH[..4].to_vec(), Stage::End)] {
        let (mut search, loss) = standing(&Params { polish: 0, ..Params::DEFAULT }, &PLANTED, net);
        search.model.task.nnz = net.len();
        search.model.task.info.stopped = true;
        search.store_result(loss).unwrap();
        let power = search.model.fit.power;
        assert_eq!(search.polish(loss).unwrap(), next, "{} of {power}", search.state.result_loss);
    }
    let (mut search, loss) = standing(&Params { polish: 0, ..Params::DEFAULT }, &PLANTED, &dead);
    search.model.task.info.stopped = true;
    search.store_result(loss).unwrap();
    search.plain().unwrap();
    assert!(search.state.result_loss < 0.5 * search.model.fit.power);
}

#[test]
fn plain_method_replaces_result_only_if_better() {
    let (mut search, _) = standing(&Params::DEFAULT, &[(1.0, FIRST)], &SEVEN[..1]);
    search.model.task.nnz = 3;
    (search.state.result_loss, search.model.task.hidden) = (f32::INFINITY, 1);
    assert_eq!(search.plain().unwrap(), Stage::Exchange);
    assert_eq!(bits(search.model.view()), bits(search.result.view()));
    let plain = search.state.result_loss;
    assert!(plain < 0.5 * search.model.fit.power && search.result.nnz() <= 3, "{plain}");
    search.state.result_loss = 0.0;
    let found = bits(search.result.view());
    search.params.seed = 8;
    assert_eq!(search.plain().unwrap(), Stage::Exchange);
    assert_eq!((bits(search.result.view()), search.state.result_loss), (found, 0.0));
}

#[test]
fn debiasing_changes_values_only_and_ends_without_gain() {
    let near: Vec<(u32, f32)> = BOTH.iter().map(|&(j, w)| (j, 1.1 * w)).collect();
    for (final_steps, exact) in [(1, false), (30, true)] {
        let (mut search, loss) =
            standing(&Params { final_steps, ..Params::DEFAULT }, &PLANTED, &near);
        search.take_up(20).unwrap();
        assert_eq!(search.refit().unwrap(), Stage::End);
        assert_eq!(
            (search.model.fit.rows(), search.is_exact(search.state.result_loss)),
            (N, exact)
        );
        assert!(search.state.result_loss < loss);
        assert_eq!(search.result.view().w().index(), BOTH.map(|(j, _)| j));
        assert!(search.model.task.info.steps <= 10);
    }
}

/// A search for one neuron of so many weights that has found `net`, and its loss.
fn neuron(planted: &[(f32, [f32; D])], net: &[(u32, f32)]) -> (Searching, f32) {
    let (mut search, loss) = standing(&Params::DEFAULT, planted, net);
    (search.model.task.nnz, search.model.task.hidden) = (net.len(), 1);
    search.state.result_loss = f32::INFINITY;
    let loss = search.model.improve(loss, 20, 0.0).unwrap();
    search.store_result(loss).unwrap();
    (search, loss)
}

#[test]
fn few_weights_end_on_the_best_support() {
    let pairs = [(0_u32, 1_u32), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
    for planted in RICH {
        let least = |(i, j)| neuron(&[planted], &[(4 + i, 0.3), (4 + j, 0.3)]);
        let losses = pairs.map(|pair| least(pair).1);
        let best = losses.iter().copied().fold(f32::INFINITY, f32::min);
        assert!(losses.iter().any(|loss| *loss > 1.5 * best));
        for pair in pairs {
            let (mut search, mut loss) = least(pair);
            let mut rounds = 0;
            while search.exchange(loss).unwrap() != Stage::End {
                loss = search.model.loss().unwrap();
                rounds += 1;
            }
            assert!((STARTS..30).contains(&rounds), "{rounds}");
            assert!(search.state.result_loss < 1.001 * best, "{pair:?} {best}");
            assert!(search.result.nnz() <= 2);
        }
    }
}

/// Exchanges until there is none left, or until it is stopped after so many; how many there were.
fn exchange_all(search: &mut Searching, most: u32) -> u32 {
    for nth in 0..30 {
        search.model.task.info.stopped |= nth >= most;
        let loss = search.model.loss().unwrap();
        match search.exchange(loss).unwrap() {
            Stage::Exchange => {}
            Stage::Exchanged => {
                assert_eq!(search.judge().unwrap(), Stage::End);
                return nth;
            }
            stage => panic!("{stage:?}"),
        }
    }
    panic!("no end");
}

#[test]
fn many_rows_say_what_a_part_of_them_has_exchanged() {
    let large = [0.3, 2.0, 0.5, -0.4];
    let best = neuron(&[(1.0, large)], &[(5, 0.3)]).1;
    // Ended before the first, and by itself.
    for (most, left) in [(1, 4), (30, 5)] {
        let (mut search, loss) = neuron(&[(1.0, large)], &[(4, 0.3)]);
        search.params.exchange_rows = N / 4;
        assert!(exchange_all(&mut search, most) >= most.min(2));
        assert_eq!(search.result.view().w().index(), [left]);
        assert_eq!(search.state.rows, N as u32);
        let wanted = if left == 5 { best } else { loss };
        assert!((0.999..1.001).contains(&(search.state.result_loss / wanted)) && best < loss);
    }
    // Three rows say nothing of the others: the network before stays.
    let (mut search, loss) = neuron(&[(1.0, large)], &[(5, 0.3)]);
    let before = bits(search.result.view());
    search.params.exchange_rows = 3;
    while search.exchange(loss).unwrap() == Stage::Exchange {}
    assert!(bits(search.result.view()) != before);
    assert_eq!(search.judge().unwrap(), Stage::End);
    assert_eq!((bits(search.result.view()), search.state.rows), (before, N as u32));
    assert_eq!(search.state.result_loss, loss);
}

#[test]
fn the_only_weight_of_a_neuron_is_exchanged() {
    let large = [0.3, 2.0, 0.5, -0.4];
    let (mut search, loss) = neuron(&[(1.0, large)], &[(4, 0.3)]);
    let best = neuron(&[(1.0, large)], &[(5, 0.3)]).1;
    assert!(loss > 1.5 * best);
    // Without other starts.
    search.state.idle = STARTS;
    assert_eq!(search.exchange(loss).unwrap(), Stage::Exchange);
    assert_eq!((search.result.view().w().index(), search.result.nnz()), (&[5][..], 1));
    assert!(search.state.result_loss < 1.001 * best);
}

#[test]
fn columns_that_vanish_are_no_candidates() {
    // Input 1 is so small on the rows of the neuron that a quotient with its size is infinite.
    let rows = |row: usize, x: &mut [f32]| {
        let sign = if row.is_multiple_of(2) { 1.0 } else { -1.0 };
        let small = if sign > 0.0 { 1e-21 } else { 1.0 };
        x.copy_from_slice(&[sign, small, ((row * 7) % 11) as f32, ((row * 5) % 13) as f32]);
        Ok::<_, core::convert::Infallible>(())
    };
    let planted = [(1.0, [1.0, 0.0, 0.1, 0.0])];
    let rows = FnRows::new(N, D, rows);
    let mut search = searching_rows(rows, &Params::DEFAULT, &planted, &[(4, 1.0)]);
    search.model.loss().unwrap();
    search.model.grow_active(1).unwrap();
    assert_eq!(search.model.view().w().index(), [4, 6]);
}

#[test]
fn many_weights_and_exact_fits_are_not_exchanged() {
    let (mut search, loss) = neuron(&RICH[..1], &[(4, 0.3), (6, 0.3)]);
    search.model.task.nnz = EXCHANGED + 1;
    let before = bits(search.model.view());
    assert_eq!(search.exchange(loss).unwrap(), Stage::End);
    search.model.task.nnz = 2;
    assert_eq!(search.exchange(0.0).unwrap(), Stage::End);
    assert_eq!(bits(search.model.view()), before);
    // One that was ended tries nothing more, nor one that has made its steps.
    for (stopped, steps) in [(true, 0), (false, search.params.steps)] {
        (search.model.task.info.stopped, search.model.task.info.steps) = (stopped, steps);
        assert_eq!(search.exchange(loss).unwrap(), Stage::End);
        assert_eq!(bits(search.model.view()), before);
    }
}

#[test]
fn candidates_count_by_the_rows_on_which_their_neuron_is_active() {
    // What is missing is input 2, which is large on other rows; input 1 tells a part of it.
    let rows = |row: usize, x: &mut [f32]| {
        let open = row.is_multiple_of(2);
        let [by, other] =
            [(7, 11), (5, 13)].map(|(by, of)| ((row * by) % of) as f32 / of as f32 - 0.5);
        let large = if open { by } else { 40.0 };
        x.copy_from_slice(&[if open { 1.0 } else { -1.0 }, by + other, large, 0.0]);
        Ok::<_, core::convert::Infallible>(())
    };
    let planted = [(1.0, [1.0, 0.0, 0.01, 0.0])];
    let grown = |is_active: bool| {
        let rows = FnRows::new(N, D, rows);
        let mut search = searching_rows(rows, &Params::DEFAULT, &planted, &[(4, 1.0)]);
        search.model.loss().unwrap();
        if is_active {
            search.model.grow_active(1).unwrap();
        } else {
            search.model.grow(1).unwrap();
        }
        search.model.view().w().index().to_vec()
    };
    assert_eq!([grown(false), grown(true)], [[4, 5], [4, 6]]);
}

#[test]
fn moves_that_come_to_nothing_are_not_made_again() {
    let mut made = 0;
    for seed in 90..110 {
        let mut rng = Rng::new(seed, 9);
        let planted: Vec<_> =
            (0..4).map(|_| (1.0, core::array::from_fn(|_| rng.normal()))).collect();
        // Inputs that are 0 on most rows, as pixels are.
        let rows = move |row: usize, x: &mut [f32]| {
            let mut rng = Rng::new(seed, 10 + row as u64);
            x.iter_mut().enumerate().for_each(|(j, x)| {
                *x = (rng.normal() - 0.3 * j as f32).max(0.0) * 10_f32.powi(j as i32 % 3);
            });
            Ok::<_, core::convert::Infallible>(())
        };
        let net = [rng.below(4), 4 + rng.below(4)].map(|j| (j, 0.3));
        let params = Params { seed, ..Params::DEFAULT };
        let mut search = searching_rows(FnRows::new(N, D, rows), &params, &planted, &net);
        let task = &mut search.model.task;
        (task.nnz, task.hidden, task.tight) = (1 + seed as usize % 3, 1, true);
        let loss = search.model.loss().unwrap();
        let mut loss = search.model.improve(loss, 2, 0.0).unwrap();
        search.store_best(loss).unwrap();
        for _ in 0..30 {
            if search.moves(loss).unwrap() != Stage::Moves {
                break;
            }
            let now = search.model.loss().unwrap();
            assert!(now < loss, "{seed}: {loss} to {now}");
            loss = now;
            made += 1;
        }
    }
    assert!(made > 5, "{made}");
}
