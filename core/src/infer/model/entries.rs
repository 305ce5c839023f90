//! The entries of windows, and the products of a run of them.

use super::kernels::apart;

/// Columns of a window.
pub const WINDOW: usize = 256;

/// The entries of a layer that windows have not used yet; see
/// [`Input::add_window`](super::Input::add_window).
#[derive(Debug, Clone, Copy)]
pub struct Entries<'a> {
    indices: &'a [u8],
    values: &'a [f32],
}

impl<'a> Entries<'a> {
    pub(super) const fn new(indices: &'a [u8], values: &'a [f32]) -> Self {
        Self { indices, values }
    }

    /// Adds to each number of `out` the products of its row's entries, `counts` each, with the
    /// numbers that `at` reads for their indices; `None` where it has none.
    pub fn add(
        &mut self,
        counts: &[u8],
        out: &mut [f32],
        at: impl Fn(usize) -> Option<f32>,
    ) -> Option<()> {
        self.runs(counts, out, |indices, values, mut sum| {
            for (&index, value) in indices.iter().zip(values) {
                sum += value * at(usize::from(index))?;
                apart();
            }
            Some(sum)
        })
    }

    /// The same with the numbers of a window that lies in memory.
    #[inline(always)]
    pub(super) fn add_from<T: Copy>(
        &mut self,
        counts: &[u8],
        out: &mut [f32],
        x: &[T; WINDOW],
        number: impl Fn(T) -> f32,
    ) -> Option<()> {
        self.runs(counts, out, |indices, values, sum| Some(dot(x, &number, indices, values, sum)))
    }

    #[inline(always)]
    fn runs(
        &mut self,
        counts: &[u8],
        out: &mut [f32],
        dot: impl Fn(&[u8], &[f32], f32) -> Option<f32>,
    ) -> Option<()> {
        for (out, &count) in out.iter_mut().zip(counts) {
            let (indices, behind) = self.indices.split_at_checked(usize::from(count))?;
            let (values, left) = self.values.split_at_checked(usize::from(count))?;
            (self.indices, self.values) = (behind, left);
            *out = dot(indices, values, *out)?;
        }
        Some(())
    }
}

/// One run: the products are added one by one, in the order of the entries, four a turn.
#[inline(always)]
fn dot<T: Copy>(
    x: &[T; WINDOW],
    number: impl Fn(T) -> f32,
    indices: &[u8],
    values: &[f32],
    mut sum: f32,
) -> f32 {
    // The index of an array of 256 by an `u8` needs no check, and none is emitted.
    let at = |index: u8| x.get(usize::from(index)).map_or(0.0, |&x| number(x));
    let (indices, more_indices) = indices.as_chunks::<4>();
    let (values, more_values) = values.as_chunks::<4>();
    for (&[i0, i1, i2, i3], &[v0, v1, v2, v3]) in indices.iter().zip(values) {
        sum += v0 * at(i0);
        sum += v1 * at(i1);
        sum += v2 * at(i2);
        sum += v3 * at(i3);
        apart();
    }
    for (&index, value) in more_indices.iter().zip(more_values) {
        sum += value * at(index);
        apart();
    }
    sum
}
