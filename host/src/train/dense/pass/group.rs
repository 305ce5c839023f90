//! The tiles of one group: forwards and back through the layers.

use std::ops::Range;

use tamis::learn::loss;

use super::curvature::Tangents;
use super::jacobian::Squares;
use super::tile::{Goal, Tile, Work, buffers, forward, inputs};
use crate::data::Task;
use crate::train::dense::product::product;
use crate::train::dense::shape::Shape;

/// Memory of one group of tiles, and what it sums up.
pub(super) struct Group {
    /// Rows of a tile that do not lie together or are scaled; empty until there are such.
    x: Vec<f32>,
    /// Outputs of each layer, those of the last one where the head is a sum included.
    acts: Vec<Vec<f32>>,
    /// Residuals of two neighbouring layers.
    back: [Vec<f32>; 2],
    labels: TileLabels,
    /// What a Hessian product and squares of the Jacobian take; none until there are such.
    tangents: Option<Tangents>,
    squares: Option<Squares>,
    /// What the goal of the pass sums, for all weights.
    pub(super) sum: Vec<f32>,
    pub(super) loss: f64,
    pub(super) right: usize,
    pub(super) failed: Option<tamis::Error>,
}

/// How many of the rows have the right class.
fn right(work: &Work<'_>, rows: Range<usize>, out: &[f32]) -> usize {
    let mut count = 0;
    let outputs = work.shape.outputs();
    match work.task {
        Task::Regression => {}
        Task::Binary => work.label_rows(rows, outputs, |at, label| {
            count += usize::from((out[at] >= 0.5) == (label[0] >= 0.5));
        }),
        Task::Multiclass => work.label_rows(rows, 1, |at, label| {
            count += usize::from(loss::class(&out[at * outputs..][..outputs]) == label[0] as usize);
        }),
    }
    count
}

impl Group {
    pub(super) fn new(shape: &Shape, task: Task, tile: usize) -> Self {
        Self {
            x: Vec::new(),
            acts: buffers(shape, tile),
            back: [(); 2].map(|()| vec![0.0; tile * shape.widest()]),
            labels: TileLabels::new(shape, task, tile),
            tangents: None,
            squares: None,
            sum: vec![0.0; shape.weights()],
            loss: 0.0,
            right: 0,
            failed: None,
        }
    }

    /// Runs the tiles of the group.
    pub(super) fn run(&mut self, work: &Work<'_>, tiles: Range<usize>) {
        (self.loss, self.right, self.failed) = (0.0, 0, None);
        for tile in tiles.clone() {
            if work.stop.asked() {
                self.failed = Some(tamis::Error::Stopped);
                return;
            }
            let all = &work.batch.rows;
            let start = all.start + tile * work.tile;
            let rows = start..(start + work.tile).min(all.end);
            if let Err(error) = self.tile(work, rows, tile > tiles.start) {
                self.failed = Some(error);
                return;
            }
        }
    }

    /// One tile; `add` where the sum already holds that of others.
    fn tile(&mut self, work: &Work<'_>, rows: Range<usize>, add: bool) -> tamis::Result<()> {
        let n = rows.len();
        let x = inputs(&mut self.x, work.batch, rows.clone());
        forward(work, x, &mut self.acts, n);
        let tile = Tile { work, n, x, acts: &self.acts, add };
        let back = self.back.each_mut().map(|back| &mut back[..]);
        if let Goal::JacobianSquares | Goal::InputSquares = work.goal {
            self.squares.get_or_insert_with(|| Squares::new(work)).tile(&tile, back, &mut self.sum);
            return Ok(());
        }
        let outputs = n * work.shape.outputs();
        back[0][..outputs].copy_from_slice(&self.acts[self.acts.len() - 1][..outputs]);
        let out = &mut back[0][..outputs];
        if let Goal::Loss = work.goal {
            self.right += right(work, rows.clone(), out);
        }
        self.loss += self.labels.residual(work, rows, out)?;
        match work.goal {
            Goal::Gradient => gradient(&tile, back, &mut self.sum),
            Goal::HessianProduct(v) => {
                let tangents = self.tangents.get_or_insert_with(|| Tangents::new(work));
                tangents.tile(&tile, v, back, &mut self.sum);
            }
            Goal::Loss | Goal::JacobianSquares | Goal::InputSquares => {}
        }
        Ok(())
    }
}

/// Goes back through the layers with residuals of the outputs: `sum += scale r_l^T a_(l-1)`.
fn gradient(tile: &Tile<'_>, back: [&mut [f32]; 2], sum: &mut [f32]) {
    let mut back = tile.spread(back);
    for (l, layer) in tile.work.shape.layers().enumerate().rev() {
        tile.gate(l, &layer, back[0]);
        let own = &mut sum[layer.range.clone()];
        let residual = tile.at_outputs(&layer, back[0]);
        product(own, tile.add, tile.work.scale, residual.t(), tile.input_matrix(l, &layer));
        if l > 0 {
            tile.step_back(&layer, &mut back);
        }
    }
}

/// Labels of a tile, as losses take them.
struct TileLabels {
    values: Vec<f32>,
    classes: Vec<u16>,
}

impl TileLabels {
    fn new(shape: &Shape, task: Task, tile: usize) -> Self {
        let [values, classes] =
            if task == Task::Multiclass { [0, 1] } else { [shape.outputs(), 0] };
        Self { values: vec![0.0; values * tile], classes: vec![0; classes * tile] }
    }

    /// Turns outputs into residuals; the sum of the losses of the rows.
    fn residual(
        &mut self,
        work: &Work<'_>,
        rows: Range<usize>,
        out: &mut [f32],
    ) -> tamis::Result<f64> {
        let (n, width) = (rows.len(), work.shape.outputs());
        Ok(f64::from(match work.task {
            Task::Multiclass => {
                work.label_rows(rows, 1, |at, row| self.classes[at] = row[0] as u16);
                out.iter_mut().for_each(|z| *z *= work.coldness);
                loss::cross_entropy(&self.classes[..n], width, out)?
            }
            Task::Regression | Task::Binary => {
                let values = &mut self.values[..n * width];
                let put =
                    |at: usize, row: &[f32]| values[at * width..][..width].copy_from_slice(row);
                work.label_rows(rows, width, put);
                loss::square(values, out)?
            }
        }))
    }
}
