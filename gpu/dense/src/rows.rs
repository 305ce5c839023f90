//! Rows and labels on a device, in tiles that it has room for.

use std::ops::Range;

use burn_tensor::{Device, Int, Tensor, TensorData};
use tamis_host::data::{Problem, Task, Values};
use tamis_host::train::dense::{Batch, Shape};
use tamis_host::{Error, Result};

/// Numbers of the largest tensor: 64 MiB, half of what common adapters bind.
pub(crate) const MOST: usize = 1 << 24;

/// Some rows on a device, and their labels.
#[derive(Clone)]
pub(crate) struct Tile {
    /// n×d.
    pub(crate) x: Tensor<2>,
    /// n×outputs; of several classes 1 for the row's own and else 0, of one output the class.
    pub(crate) y: Tensor<2>,
}

/// Rows of a tile, for layers of these widths.
pub(crate) fn tile_rows(shape: &Shape) -> usize {
    let widest = shape.layers().map(|layer| layer.inputs.max(layer.outputs)).max().unwrap_or(1);
    (MOST / widest).max(1)
}

/// Positions of a batch, as many in each tile as there is room for.
pub(crate) fn tiles(
    batch: &Batch<'_>,
    shape: &Shape,
) -> impl Iterator<Item = Range<usize>> + use<> {
    let (all, tile) = (batch.rows.clone(), tile_rows(shape));
    all.clone().step_by(tile).map(move |start| start..(start + tile).min(all.end))
}

/// The inputs at these positions of a batch, n×d.
pub(crate) fn inputs(batch: &Batch<'_>, rows: Range<usize>, device: &Device) -> Tensor<2> {
    let (n, d) = (rows.len(), batch.set.data.cols);
    let mut x = Vec::with_capacity(n * d);
    for place in rows.map(|row| batch.place(row)) {
        let own = place * d..(place + 1) * d;
        match &batch.set.data.values {
            Values::F32(values) => x.extend(values[own].iter().map(|v| v * batch.scale)),
            Values::U8(values) => x.extend(values[own].iter().map(|&v| f32::from(v) * batch.scale)),
        }
    }
    Tensor::from_data(TensorData::new(x, [n, d]), device)
}

/// The labels at these positions of a batch, n×outputs.
pub(crate) fn labels(
    batch: &Batch<'_>,
    rows: Range<usize>,
    shape: &Shape,
    device: &Device,
) -> Result<Tensor<2>> {
    let (n, outputs) = (rows.len(), shape.outputs());
    let mut y = vec![0.0; n * outputs];
    for (place, y) in rows.map(|row| batch.place(row)).zip(y.chunks_exact_mut(outputs)) {
        label(batch.set, place, y)?;
    }
    Ok(Tensor::from_data(TensorData::new(y, [n, outputs]), device))
}

fn label(set: &Problem, place: usize, y: &mut [f32]) -> Result<()> {
    if set.task != Task::Multiclass || y.len() == 1 && [0.0, 1.0].contains(&set.labels[place]) {
        y.copy_from_slice(&set.labels[place * y.len()..][..y.len()]);
        return Ok(());
    }
    let (label, classes) = (set.labels[place], y.len().max(2));
    let class = y.get_mut(label as usize).filter(|_| label >= 0.0 && label.fract() == 0.0);
    let class = class.ok_or_else(|| {
        Error::new(format!("the label of row {place} is no class"))
            .expected(format_args!("whole numbers below {classes}"))
            .got(label)
    })?;
    *class = 1.0;
    Ok(())
}

/// All rows of a set, which stay on the device.
pub(crate) struct Held {
    pieces: Vec<Tile>,
    /// Rows of a piece.
    each: usize,
}

impl Held {
    pub(crate) fn new(set: &Problem, scale: f32, shape: &Shape, device: &Device) -> Result<Self> {
        let batch = Batch { set, rows: 0..set.data.rows, order: None, scale };
        let piece = |rows: Range<usize>| {
            let y = labels(&batch, rows.clone(), shape, device)?;
            Ok(Tile { x: inputs(&batch, rows, device), y })
        };
        let pieces = tiles(&batch, shape).map(piece).collect::<Result<_>>()?;
        Ok(Self { pieces, each: tile_rows(shape) })
    }

    /// The rows of a batch, in tiles; those of each piece lie together.
    pub(crate) fn tiles(&self, batch: &Batch<'_>) -> Vec<Tile> {
        if batch.order.is_none() {
            return self.in_order(batch.rows.clone());
        }
        let mut places = vec![Vec::new(); self.pieces.len()];
        for place in batch.rows.clone().map(|row| batch.place(row)) {
            places[place / self.each].push((place % self.each) as i32);
        }
        let parts = self.pieces.iter().zip(places).filter(|(_, places)| !places.is_empty());
        let parts: Vec<Tile> = parts.map(|(piece, places)| piece.select(places)).collect();
        join(parts, self.each)
    }

    fn in_order(&self, rows: Range<usize>) -> Vec<Tile> {
        let piece = |(at, piece): (usize, &Tile)| {
            let first = at * self.each;
            let n = piece.x.dims()[0];
            let [start, end] =
                [rows.start, rows.end].map(|row| row.clamp(first, first + n) - first);
            (start < end)
                .then(|| if end - start == n { piece.clone() } else { piece.slice(start..end) })
        };
        self.pieces.iter().enumerate().filter_map(piece).collect()
    }
}

impl Tile {
    fn select(&self, places: Vec<i32>) -> Self {
        let n = places.len();
        let device = self.x.device();
        let places = Tensor::<1, Int>::from_data(TensorData::new(places, [n]), &device);
        let Self { x, y } = self.clone();
        Self { x: x.select(0, places.clone()), y: y.select(0, places) }
    }

    fn slice(&self, rows: Range<usize>) -> Self {
        let (start, n) = (rows.start, rows.len());
        let Self { x, y } = self.clone();
        Self { x: x.narrow(0, start, n), y: y.narrow(0, start, n) }
    }
}

/// One tile of several, where it has no more rows than a piece.
fn join(parts: Vec<Tile>, most: usize) -> Vec<Tile> {
    let rows: usize = parts.iter().map(|part| part.x.dims()[0]).sum();
    if parts.len() < 2 || rows > most {
        return parts;
    }
    let (x, y) = parts.into_iter().map(|Tile { x, y }| (x, y)).unzip();
    vec![Tile { x: Tensor::cat(x, 0), y: Tensor::cat(y, 0) }]
}
