//! What is to be said of a training of recipe `dynamic`.

use super::super::console::count;
use crate::train::{Details, DynamicDetails, Report, SupportRule};

/// What is not as it was asked for.
pub(super) fn notes(report: &Report) -> Vec<String> {
    let Details::Dynamic(dynamic) = &report.details else { return Vec::new() };
    let all = [begun_short(report, dynamic), lost(report, dynamic), diverged(report, dynamic)];
    all.into_iter().flatten().collect()
}

/// Which weights it lost.
fn lost(report: &Report, dynamic: &DynamicDetails) -> Option<String> {
    let (nnz, asked) = (count(report.nnz), count(report.requested_nnz));
    if dynamic.cut > 0 {
        let is_whole = report.limit.is_none() && !report.stopped;
        let help = match is_whole {
            true => "pass more --epochs, or a smaller --batch",
            false => "let it run to its end, or pass fewer --epochs",
        };
        return Some(format!(
            "the training ended before the support had shrunk: {} weights too many were dropped at once, and {nnz} of \
             {asked} are left, which costs accuracy; {help}",
            count(dynamic.cut as usize)
        ));
    }
    // All of a small network, such as a linear one, are not few.
    let is_short = report.nnz < report.requested_nnz - report.requested_nnz / 10
        && report.nnz < dynamic.dense_nnz;
    is_short.then(|| {
        let why = "no others lie on a path from an input that changes to an output";
        let is_from_few = dynamic.start_nnz < 3 * report.requested_nnz.min(dynamic.dense_nnz / 3);
        // Many layers with a weight or two a neuron hand nothing on.
        let has_died = 2 * report.nnz < report.requested_nnz;
        let help = if is_from_few || has_died && dynamic.start_nnz < dynamic.dense_nnz {
            "; more at the start (--start-factor, --ram), or fewer and narrower layers, may keep more"
        } else {
            ""
        };
        format!("{nnz} of {asked} weights are left: {why}{help}")
    })
}

/// Which starts gave no network.
fn diverged(report: &Report, dynamic: &DynamicDetails) -> Option<String> {
    let DynamicDetails { diverged, rate, .. } = *dynamic;
    let all = count((report.trials + diverged) as usize);
    (diverged > 0).then(|| {
        format!(
            "{} of {all} starts diverged, with --rate {rate}; pass a smaller one, or more --warmup",
            count(diverged as usize)
        )
    })
}

/// Whether gradual pruning began with fewer weights than there are.
fn begun_short(report: &Report, dynamic: &DynamicDetails) -> Option<String> {
    // Biases are not among the first weights.
    let biases = report.hidden.layers().iter().sum::<usize>() + report.outputs;
    let all = dynamic.dense_nnz.saturating_sub(biases);
    let is_short = dynamic.support == SupportRule::Gmp && dynamic.start_nnz < all;
    is_short.then(|| {
        format!(
            "gradual pruning began with {} of {} weights, chosen by chance, for --ram or --start-factor; it grows none, so \
             without these it may do better",
            count(dynamic.start_nnz),
            count(all)
        )
    })
}
