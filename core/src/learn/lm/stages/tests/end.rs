//! The end of a run: polish, weights of no use, the plain method, and the last steps.

use super::*;

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
fn plain_method_replaces_result_only_if_better() {
    let (mut search, _) = standing(&Params::DEFAULT, &[(1.0, FIRST)], &SEVEN[..1]);
    search.model.task.nnz = 3;
    (search.state.result_loss, search.model.task.hidden) = (f32::INFINITY, 1);
    assert_eq!(search.plain().unwrap(), Stage::End);
    let plain = search.state.result_loss;
    assert!(plain < 0.5 * search.model.fit.power && search.result.nnz() <= 3, "{plain}");
    search.state.result_loss = 0.0;
    let found = bits(search.result.view());
    search.params.seed = 8;
    assert_eq!(search.plain().unwrap(), Stage::End);
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
