//! Gates as bits on the device, which stay as long as the same gates are asked for.

use crate::data::{Data, Piece};
use crate::kernel::Kernel;
use crate::place::Place;
use crate::recorder::Recorder;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use tamis::network::gates::{Gate, Gates};
use tamis::network::weights::Block;

/// Neurons of one call, at most: a grid has no more lines.
const LINES: usize = 1 << 15;
/// Words of weights sent for one call, about: random generators are dense.
const WORDS: usize = 1 << 20;

/// Kinds of gates, as kernels have them. A neuron's own weights are told from others, since its
/// activation says its gate.
pub(crate) mod kind {
    pub(crate) const BITS: u32 = 0;
    pub(crate) const OPEN: u32 = 1;
    pub(crate) const POSITIVE: u32 = 2;
    pub(crate) const NEGATIVE: u32 = 3;
}

/// What gates are of: blocks of weights, and random generators by their seed and stream.
#[derive(Debug, Clone, PartialEq, Default)]
struct Generators {
    /// (neuron, first entry, entries, kind) of neurons that are not closed.
    blocks: Vec<u32>,
    entries: Sparse,
    random: Vec<Random>,
}

/// Inputs and values of entries, the values as bits.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Sparse {
    pub(crate) inputs: Vec<u32>,
    pub(crate) values: Vec<u32>,
}

impl Sparse {
    fn push(&mut self, entries: impl Iterator<Item = (usize, f32)>) {
        for (j, value) in entries {
            self.inputs.push(j as u32);
            self.values.push(value.to_bits());
        }
    }

    /// Sends both.
    pub(crate) fn send(&self, recorder: &mut Recorder) -> [Place; 2] {
        [&self.inputs, &self.values].map(|words| recorder.send(words))
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Random {
    neuron: u32,
    seed: u64,
    stream: u64,
}

impl Generators {
    fn new(gates: Gates<'_>, hidden: usize) -> Self {
        let mut this = Self::default();
        let mut cursor = gates.cursor();
        for i in 0..hidden {
            match cursor.at(i) {
                Gate::Closed => {}
                Gate::Open => this.blocks.extend([i as u32, 0, 0, kind::OPEN]),
                Gate::Random { seed, stream } => {
                    this.random.push(Random { neuron: i as u32, seed, stream });
                }
                Gate::Weights { block, sign } => {
                    push_block(&mut this.blocks, &mut this.entries, block, signed(sign));
                }
            }
        }
        this
    }
}

fn signed(sign: f32) -> u32 {
    if sign < 0.0 { kind::NEGATIVE } else { kind::POSITIVE }
}

fn push_block(blocks: &mut Vec<u32>, entries: &mut Sparse, block: Block<'_>, kind: u32) {
    let first = entries.inputs.len() as u32;
    blocks.extend([block.neuron() as u32, first, block.values().len() as u32, kind]);
    entries.push(block.entries());
}

/// The gates whose bits are on the device.
#[derive(Debug, Default)]
pub(crate) struct GateBits {
    generators: Generators,
    /// Neurons that are not closed, rising.
    pub(crate) live: Vec<u32>,
    /// The rows that they are of.
    rows: Range<usize>,
    /// What held gates are marked with.
    ticket: Option<NonZeroU32>,
}

impl GateBits {
    /// Makes the bits those of `gates` on the batch; whether they are others than before.
    pub(crate) fn set(
        &mut self,
        recorder: &mut Recorder,
        data: &Data,
        hidden: usize,
        batch: &Range<usize>,
        gates: Gates<'_>,
    ) -> bool {
        let is_held = self.ticket.is_some() && self.ticket == gates.ticket();
        let covers = self.rows.start <= batch.start && batch.end <= self.rows.end;
        if is_held && covers {
            return false;
        }
        let generators = Generators::new(gates, hidden);
        if covers && generators == self.generators && recorder.failure.is_none() {
            return false;
        }
        self.ticket = None;
        let Generators { blocks, entries, random } = &generators;
        for blocks in blocks.chunks(4 * LINES) {
            run(recorder, data, batch, blocks, entries);
        }
        let inputs = data.inputs.max(1);
        for random in random.chunks((WORDS / (2 * inputs)).clamp(1, LINES)) {
            let (mut blocks, mut entries) = (Vec::new(), Sparse::default());
            let mut generator = vec![0.0; inputs];
            for &Random { neuron, seed, stream } in random {
                Gate::Random { seed, stream }.generator(&mut generator);
                let first = entries.inputs.len() as u32;
                blocks.extend([neuron, first, inputs as u32, kind::POSITIVE]);
                entries.push(generator.iter().copied().enumerate());
            }
            run(recorder, data, batch, &blocks, &entries);
        }
        self.live = blocks.chunks(4).map(|block| block[0]).collect();
        self.live.extend(random.iter().map(|random| random.neuron));
        self.live.sort_unstable();
        self.generators = generators;
        self.rows = batch.clone();
        true
    }

    /// Marks gates that were just set.
    pub(crate) fn hold<'g>(&mut self, gates: Gates<'g>) -> Gates<'g> {
        static LAST: AtomicU32 = AtomicU32::new(0);
        self.ticket = NonZeroU32::new(LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1));
        self.ticket.map_or(gates, |ticket| gates.held(ticket))
    }

    /// The rows of bits of a neuron: of one that is active nowhere where it is closed.
    pub(crate) fn slot(&self, neuron: usize, hidden: usize) -> u32 {
        let neuron = neuron as u32;
        if self.live.binary_search(&neuron).is_ok() { neuron } else { hidden as u32 }
    }
}

fn run(
    recorder: &mut Recorder,
    data: &Data,
    batch: &Range<usize>,
    blocks: &[u32],
    entries: &Sparse,
) {
    let blocks_of = recorder.send(blocks);
    let [inputs, values] = entries.send(recorder);
    for Piece { chunk, row, rows, .. } in data.pieces(batch) {
        let chunk = &data.chunks[chunk];
        let [quads, words] = chunk.strides();
        let first = row / 256 * 256;
        let dims = [quads, words, first as u32, 0];
        let places = [
            (&chunk.x).into(),
            blocks_of.clone(),
            inputs.clone(),
            values.clone(),
            (&chunk.bits).into(),
        ];
        let grid = [(row + rows - first).div_ceil(256), blocks.len() / 4, 1];
        recorder.run(Kernel::Gates, &dims, &places, grid);
    }
}

/// Weights as kernels go through them, under gates.
#[derive(Debug, Default)]
pub(crate) struct Neurons {
    /// (neuron, first entry, entries, kind).
    pub(crate) blocks: Vec<u32>,
    pub(crate) entries: Sparse,
    /// Whether some gate is not said by the weights themselves.
    pub(crate) needs_bits: bool,
}

impl Neurons {
    /// Adds a block; one that is closed has no entries.
    pub(crate) fn push(&mut self, gate: Gate<'_>, block: Block<'_>) {
        let Self { blocks, entries, needs_bits } = self;
        match gate {
            Gate::Closed => blocks.extend([block.neuron() as u32, 0, 0, kind::OPEN]),
            Gate::Open => push_block(blocks, entries, block, kind::OPEN),
            Gate::Weights { block: own, sign } if own == block => {
                push_block(blocks, entries, block, signed(sign));
            }
            _ => {
                *needs_bits = true;
                push_block(blocks, entries, block, kind::BITS);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.blocks.len() / 4
    }
}
