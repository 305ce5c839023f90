//! The blocked parallel operator: the core's [`Sensing`](tamis::operator::sensing::Sensing) at the
//! speed of the machine. In [`backprop`] is that of networks of sparse layers.
//!
//! Sparse products run along the columns of tiles of rows; the dense gradient of a panel,
//! `X^T [gate_1 ∘ r, …, gate_p ∘ r]`, is one matrix product a tile. Tiles belong to a fixed number
//! of groups, each with accumulators of its own, added in a fixed order: the result does not depend
//! on the number of threads. [`Blocked`] allocates nothing after construction.

pub mod backprop;
mod buffer;
mod bytes;
mod device;
mod factored;
pub(crate) mod gather;
mod gram;
mod group;
mod held;
mod hidden_layers;
mod kernel;
pub(crate) mod lanes;
mod layout;
mod outputs;
mod piece;
mod placed;
mod products;
mod sensing;
mod tiles;

pub use crate::base::Stop;
pub(crate) use device::{CPU, no_devices};
pub use device::{
    Device, DeviceReport, KernelReport, LimitsReport, ProfileReport, RooflineReport, devices,
};
pub use hidden_layers::HiddenLayers;
pub use layout::Layout;
pub(crate) use placed::{Backend, OperatorSizes, Placed, on_device};
pub(crate) use products::{GpuProducts, MatrixLines};

use crate::data::{Matrix, Values};
use buffer::Buffer;
use gram::Gram;
use group::{Group, Parts, Rooms, Shared, fork};
use held::Held;
use kernel::PAD;
pub(crate) use kernel::{Columns, Size, add_product};
use pulp::Arch;

use tamis::base::dims::Dims;
use tamis::base::error::{self, Result};
use tamis::network::gates::Gates;
use tamis::network::weights::check_support;
use tamis::operator::machine::Host;
use tiles::Tiles;

/// The gated network over data in memory, blocked and parallel; runs on the current rayon pool.
#[derive(Debug)]
pub struct Blocked {
    hidden: usize,
    nnz: usize,
    /// Outputs of the networks with several; 0 where there are none.
    outputs: usize,
    layout: Layout,
    shared: Shared,
    /// Accumulators of each group.
    products: Vec<Buffer>,
    rooms: Rooms,
    gram: Gram,
    host: Host,
}

impl Blocked {
    /// Takes the data over, for `hidden` neurons and supports of at most `nnz` entries.
    ///
    /// # Errors
    /// [`error::Error::Range`] if a size is 0 or the layout has no rows or neurons.
    pub fn new(data: Matrix, hidden: usize, nnz: usize, layout: Layout) -> Result<Self> {
        Self::build(data, None, hidden, nnz, layout)
    }

    /// The same, for what finished layers make of the data, tile by tile and never stored. No Gram
    /// matrix is kept.
    ///
    /// # Errors
    /// As [`Self::new`]; [`error::Error::Length`] for data of another width than the first layer's.
    pub fn through(
        data: Matrix,
        layers: HiddenLayers,
        hidden: usize,
        nnz: usize,
        layout: Layout,
    ) -> Result<Self> {
        error::length("inputs of the layers", data.cols, layers.inputs())?;
        Self::build(data, Some(layers), hidden, nnz, Layout { gram: 0, ..layout })
    }

    fn build(
        data: Matrix,
        through: Option<HiddenLayers>,
        hidden: usize,
        nnz: usize,
        layout: Layout,
    ) -> Result<Self> {
        let (n, d) = (data.rows, through.as_ref().map_or(data.cols, HiddenLayers::width));
        for (name, size) in [
            ("samples", n),
            ("inputs", d),
            ("hidden neurons", hidden),
            ("rows of a tile", layout.tile),
            ("groups of tiles", layout.groups),
            ("groups at a time", layout.at_once),
        ] {
            error::range(name, size, 1, usize::MAX)?;
        }
        error::range("panel", layout.panel, 1, hidden)?;
        let bytes = data.is_bytes() && through.is_none();
        let padded = layout.panel.next_multiple_of(PAD);
        let (tiles, words) = (n.div_ceil(layout.tile), layout.tile.div_ceil(32));
        let held = if layout.hold { hidden.min(nnz) } else { 0 };
        let group = || Group {
            gated: Buffer::zeros(padded * layout.tile.min(piece::DEPTH)),
            random: Buffer::zeros(padded * layout.tile),
            z: Buffer::zeros(layout.tile),
            v: Buffer::zeros(layout.tile),
            image: Buffer::zeros(layout.tile),
            expanded: Buffer::zeros(if bytes { layout.expanded(d) } else { 0 }),
            mapped: through.as_ref().map(|layers| layers.room(layout.tile)).unwrap_or_default(),
            ..Group::default()
        };
        let rooms = (0..layout.rooms(n)).map(|_| group()).collect();
        let product = |_| Buffer::zeros((padded * d).max(nnz));
        let products = (0..layout.used(n)).map(product).collect();
        let shared = Shared {
            batch: 0..n,
            arch: Arch::new(),
            generators: vec![0.0; layout.panel * d],
            live: Vec::with_capacity(layout.panel),
            used: Vec::new(),
            // A batch may begin and end within a tile, and so have one piece more than its rows
            // fill.
            held: Held {
                ticket: None,
                neurons: Vec::with_capacity(layout.marked(hidden, nnz)),
                bits: vec![0; (tiles + 1) * held * words],
                words,
            },
            tiles: Tiles::new(data, layout.tile, through),
            stop: None,
        };
        let gram = Gram::new(layout.gram.min(nnz));
        let rooms = Rooms::new(rooms);
        Ok(Self { hidden, nnz, outputs: 0, layout, shared, products, rooms, gram, host: Host })
    }

    /// Gives the data back, as they came.
    #[must_use]
    pub fn into_data(self) -> Matrix {
        self.shared.tiles.into_matrix()
    }

    /// Makes room for networks of up to `outputs` outputs ([`tamis::operator::factored`]).
    #[must_use]
    pub fn with_outputs(mut self, outputs: usize) -> Self {
        let padded = self.layout.panel.next_multiple_of(PAD);
        let product = (padded * (self.shared.tiles.cols + outputs)).max(self.nnz);
        for room in &mut self.products {
            *room = Buffer::zeros(product);
        }
        for group in self.rooms.all() {
            group.outputs = Buffer::zeros(outputs * self.layout.tile);
            group.back = Buffer::zeros(self.layout.tile);
        }
        self.shared.used = Vec::with_capacity(outputs);
        self.outputs = outputs;
        self
    }

    /// Bytes allocated besides the data.
    #[must_use]
    pub fn workspace_bytes(&self) -> usize {
        let Tiles { rows, cols, ref values, ref through, .. } = self.shared.tiles;
        let bytes = matches!(values, Values::U8(_)) && through.is_none();
        let dims = Dims::new(rows, cols, self.hidden, self.nnz);
        let through = through.as_ref().map_or(0, |layers| layers.bytes(rows, self.layout));
        let outputs =
            if self.outputs > 0 { self.layout.outputs_bytes(dims, self.outputs) } else { 0 };
        self.layout.bytes(dims, bytes) + outputs + through
    }

    /// Heeds `stop` from now on, or nothing: the call that sees it fails with
    /// [`error::Error::Stopped`] within the time of a tile or a panel. It is heeded once; later
    /// calls run to their end again.
    pub fn heed(&mut self, stop: Option<Stop>) {
        self.shared.stop = stop;
    }

    fn go_on(&mut self) -> Result<()> {
        if self.shared.stopped() {
            self.shared.stop = None;
            return Err(error::Error::Stopped);
        }
        Ok(())
    }

    fn check(&self, gates: Gates<'_>) -> Result<()> {
        gates.check(self.shared.tiles.cols, self.hidden)
    }

    fn check_support(&self, support: &[u32]) -> Result<()> {
        error::range("nonzeros", support.len(), 0, self.nnz)?;
        check_support(self.shared.tiles.cols, self.hidden, support)
    }

    /// [`Self::each_piece`] for what goes to the groups' products alone.
    fn each_group(
        &mut self,
        len: usize,
        body: impl Fn(&Shared, &mut Group, usize) + Sync,
    ) -> Result<usize> {
        self.each_piece(len, (), |_| 0, |shared, group, k, ()| body(shared, group, k))
    }

    /// Adds the groups' products, `len` numbers each, in order.
    fn reduce(&self, groups: usize, out: &mut [f32]) {
        out.copy_from_slice(&self.products[0][..out.len()]);
        for product in &self.products[1..groups] {
            for (out, part) in out.iter_mut().zip(product) {
                *out += part;
            }
        }
    }

    /// Clears the first `len` numbers of every group's product and calls `body(group, k, part)` for
    /// every piece k, in parallel, with `out[start(k)..start(k + 1)]`; the number of groups that
    /// took part.
    fn each_piece<P: Parts>(
        &mut self,
        len: usize,
        out: P,
        start: impl Fn(usize) -> usize + Sync,
        body: impl Fn(&Shared, &mut Group, usize, P) + Sync,
    ) -> Result<usize> {
        let shared = &self.shared;
        let pieces = shared.tiles.pieces(&shared.batch);
        let groups = self.products.len().min(pieces);
        let first = |g: usize| pieces * g / groups;
        let rooms = &self.rooms;
        let work = |g: usize, product: &mut Buffer, mut rest: P| {
            product[..len].fill(0.0);
            rooms.with(product, |group| {
                for k in (first(g)..first(g + 1)).take_while(|_| !shared.stopped()) {
                    let (part, tail) = rest.split(start(k + 1) - start(k));
                    body(shared, group, k, part);
                    rest = tail;
                }
            });
        };
        fork(&mut self.products[..groups], 0, out, &|g| start(first(g)), &work);
        self.go_on()?;
        Ok(groups)
    }

    /// [`Self::each_piece`] where the parts are the rows of the pieces.
    fn each_row(
        &mut self,
        out: &mut [f32],
        body: impl Fn(&Shared, &mut Group, usize, &mut [f32]) + Sync,
    ) -> Result<()> {
        let (tile, batch) = (self.shared.tiles.tile, self.shared.batch.clone());
        self.each_piece(0, out, |k| tiles::start(tile, &batch, k), body).map(drop)
    }
}
