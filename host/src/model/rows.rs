//! The weights of a sparse layer, row after row, whichever way it holds them.

use tamis::infer::model::{Blocks, Csr, WINDOW};

/// A weight, and its place.
pub(super) struct Entry {
    pub(super) row: usize,
    pub(super) column: u16,
    pub(super) value: f32,
}

/// The entries of a layer in windows, row after row and columns rising: each window is looked at once.
pub(super) fn by_rows(blocks: &Blocks<'_>) -> Vec<Entry> {
    let mut left = blocks.indices().iter().zip(blocks.values());
    let mut entries = Vec::with_capacity(blocks.nonzeros());
    for (window, counts) in blocks.counts().chunks(blocks.outputs().max(1)).enumerate() {
        let start = start_of(window, blocks.inputs());
        for (row, &count) in counts.iter().enumerate() {
            let run = left.by_ref().take(count.into());
            entries.extend(run.map(|(&index, &value)| {
                let column = (start + usize::from(index)) as u16;
                Entry { row, column, value }
            }));
        }
    }
    entries.sort_by_key(|entry| entry.row);
    entries
}

/// The row of each weight in compressed rows.
pub(crate) fn rows_of(csr: &Csr<'_>) -> impl Iterator<Item = usize> {
    let counts = csr.counts().iter().enumerate();
    counts.flat_map(|(row, &n)| std::iter::repeat_n(row, n.into()))
}

/// The first column of a window.
pub(super) fn start_of(window: usize, inputs: usize) -> usize {
    (window * WINDOW).min(inputs.saturating_sub(WINDOW))
}
