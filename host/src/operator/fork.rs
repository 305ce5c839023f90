//! Work on groups of tiles, by halves in parallel; no allocation.

/// `work(g, group, out[start(g)..start(g + 1)])` for every group, by halves in parallel.
pub(super) fn fork<G: Send, T: Send>(
    groups: &mut [G],
    first: usize,
    out: &mut [T],
    start: &(impl Fn(usize) -> usize + Sync),
    work: &(impl Fn(usize, &mut G, &mut [T]) + Sync),
) {
    match groups {
        [] => {}
        [group] => work(first, group, out),
        _ => {
            let half = groups.len() / 2;
            let (left, right) = groups.split_at_mut(half);
            let (top, bottom) = out.split_at_mut(start(first + half) - start(first));
            rayon::join(
                || fork(left, first, top, start, work),
                || fork(right, first + half, bottom, start, work),
            );
        }
    }
}
