//! Frozen hidden layers before those that are trained: what they make of the rows, a tile at a time.
//!
//! A group holds what the layers make of one tile, with the bits of [`tamis::learn::deep::Stack`].

use super::buffer::{self, Buffer};
use super::kernel::{Element, Piece, activate};
use super::layout::Layout;
use crate::base::vectorise;
use pulp::Arch;
use tamis::base::error::{self, Result};
use tamis::learn::deep::{Head, Stack};
use tamis::network::weights::Weights;

/// Frozen hidden layers, whose activations are the inputs of an operator
/// ([`super::Blocked::through`]).
#[derive(Debug, Clone, PartialEq)]
pub struct HiddenLayers {
    inputs: usize,
    layers: Vec<Frozen>,
}

#[derive(Debug, Clone, PartialEq)]
struct Frozen {
    inputs: usize,
    neurons: usize,
    index: Vec<u32>,
    value: Vec<f32>,
}

/// Activations of the layers on a tile, one layer behind another, each neuron by neuron.
#[derive(Debug, Default)]
pub(super) struct Mapped {
    pub(super) tile: Option<usize>,
    pub(super) values: Buffer,
}

impl HiddenLayers {
    /// The layers of a stack that is open, copied: 8 bytes a weight.
    ///
    /// # Errors
    /// [`error::Error::Range`] for a stack without layers, or one that has ended.
    ///
    /// ```
    /// use tamis::{learn::deep::Stack, network::gates::{Gates, Signs}, operator::sensing::Sensing, network::weights::Weights};
    /// use tamis_host::data::{Matrix, Values};
    /// use tamis_host::operator::{Blocked, Layout, HiddenLayers};
    /// // Two neurons, relu(x_0) and relu(-x_1), and the product of one above them with the rows.
    /// let (mut index, mut value) = ([0; 2], [0.0; 2]);
    /// let mut stack = Stack::new(2, &mut index, &mut value);
    /// stack.push(Weights::new(2, 2, &[0, 3], &[1.0, -1.0])?, Signs::Positive)?;
    /// let rows = Matrix::new(2, 2, Values::F32(vec![3.0, -1.0, -2.0, 4.0])).unwrap();
    /// let mut above = Blocked::through(rows.clone(), HiddenLayers::new(&stack)?, 1, 2, Layout::new(1, 2))?;
    /// let w = Weights::new(2, 1, &[0, 1], &[1.0, 10.0])?;
    /// let mut out = [0.0; 2];
    /// above.forward(Gates::of(w, Signs::Positive, Default::default(), 0, 1), w, &mut out)?;
    /// assert_eq!((above.inputs(), out), (2, [13.0, 0.0]));
    /// assert_eq!(above.into_data(), rows);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn new(stack: &Stack<'_>) -> Result<Self> {
        let frozen = |w: Weights<'_>| Frozen {
            inputs: w.inputs(),
            neurons: w.hidden(),
            index: w.index().to_vec(),
            value: w.value().to_vec(),
        };
        let layers: Vec<_> = stack.layers().map(frozen).collect();
        let most = if stack.head() == Head::Open { layers.len() } else { 0 };
        error::range("layers before the end", layers.len(), 1, most)?;
        Ok(Self { inputs: stack.inputs(), layers })
    }

    /// Numbers of a row before the first layer.
    #[must_use]
    pub const fn inputs(&self) -> usize {
        self.inputs
    }

    /// Neurons of the last layer: the inputs of what comes behind.
    #[must_use]
    pub fn width(&self) -> usize {
        self.layers.last().map_or(self.inputs, |layer| layer.neurons)
    }

    /// Activations of a row, of all layers.
    fn activations(&self) -> usize {
        self.layers.iter().map(|layer| layer.neurons).sum()
    }

    /// Bytes of the layers, and of what they make of a tile of each group at work.
    #[must_use]
    pub fn bytes(&self, samples: usize, layout: Layout) -> usize {
        let layers = self.layers.iter().map(|layer| size_of::<Frozen>() + 8 * layer.index.len());
        let tiles = 4 * layout.rooms(samples) * buffer::floats(&[layout.tile * self.activations()]);
        layers.fold(tiles, usize::saturating_add)
    }

    /// Room for what the layers make of a tile of so many rows.
    pub(super) fn room(&self, tile: usize) -> Mapped {
        Mapped { tile: None, values: Buffer::zeros(tile * self.activations()) }
    }

    pub(super) fn fill<T: Element>(&self, arch: Arch, rows: Piece<'_, T>, out: &mut [f32]) {
        let stride = rows.stride;
        let Some((first, behind)) = self.layers.split_first() else { return };
        let (mut done, mut rest) = out.split_at_mut(stride * first.neurons);
        first.activate(arch, rows, done);
        for layer in behind {
            let (next, left) = rest.split_at_mut(stride * layer.neurons);
            layer.activate(arch, Piece { tile: &*done, stride, lo: 0, hi: stride, at: 0 }, next);
            (done, rest) = (next, left);
        }
    }

    /// The activations of the last layer on a tile of so many rows.
    pub(super) fn last<'a>(&self, values: &'a [f32], rows: usize) -> &'a [f32] {
        let end = rows * self.activations();
        &values[end - rows * self.width()..end]
    }
}

impl Frozen {
    fn weights(&self) -> Weights<'_> {
        // Checked in the stack that they come from.
        let weights = Weights::new(self.inputs, self.neurons, &self.index, &self.value);
        weights.unwrap_or(Weights::empty(self.inputs, self.neurons))
    }

    /// Activations of all rows of a tile, neuron by neuron.
    fn activate<T: Element>(&self, arch: Arch, rows: Piece<'_, T>, out: &mut [f32]) {
        let w = self.weights();
        out.fill(0.0);
        vectorise(
            arch,
            #[inline(always)]
            || {
                for block in w.blocks() {
                    let out = &mut out[block.neuron() * rows.stride..][..rows.stride];
                    activate(rows, block, out);
                    out.iter_mut().for_each(|z| *z = if *z > 0.0 { *z } else { 0.0 });
                }
            },
        );
    }
}
