//! Estimates of whole models, in every way of deploying them.

use super::count::{
    Around, EXTRAS, MORE_KERNELS, Straight, Work, extras, float_extras, float_work, integer_extras,
    integer_work,
};
use super::kernel::{Core, Kernel, Numbers, Way};
use super::rows::{Prices, zeros};
use super::table::TABLE;
use tamis::infer::model::{Layer, MAX_LAYERS, Sum};
use tamis::infer::price::{PER_INSTRUCTION, cost};
use tamis::infer::quantised::{self, Weights};
use tamis::store::wire::{Choice, QuantisedView, View, layer_len};

/// Bytes of a file and of a chain of integers without layers, and what a layer of integers has in
/// both besides its arrays.
const EMPTY_FILE: usize = 48;
const EMPTY_CHAIN: usize = 40;
const FILE_LAYER: usize = 32;
const CHAIN_LAYER: usize = 68;
/// The same of a chain of floats; a sparse layer and a sum have other heads in a file.
const FLOAT_CHAIN: usize = 8;
const FLOAT_LAYER: usize = 40;
const FILE_SPARSE: usize = 28;
const FILE_SUM: usize = 12;
/// Stack of a long row of code without tables, beyond what was measured of others.
const STRAIGHT_STACK: usize = 160;

/// Bytes of a model in one way of deploying it; buffers and the model are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// Code and stack are upper bounds; else they are measured, all flash within 8 % and all RAM
    /// within 8 % or 24 bytes.
    pub is_bound: bool,
    /// The encoded model, or the arrays and layers that the compiler makes of it; of dense floats
    /// the weights; 0 of code without tables.
    pub model_bytes: usize,
    /// Code that predicts, and, of a file, that reads and checks it.
    pub code_bytes: usize,
    /// Activations between layers.
    pub scratch_bytes: usize,
    /// The prediction.
    pub output_bytes: usize,
    /// Stack besides both, from the caller's frame on.
    pub stack_bytes: usize,
}

impl Memory {
    fn code([code_bytes, stack_bytes]: [usize; 2], is_bound: bool) -> Self {
        Self { is_bound, code_bytes, stack_bytes, ..Self::default() }
    }

    /// Flash: model and code.
    #[must_use]
    pub const fn flash_bytes(&self) -> usize {
        self.model_bytes.saturating_add(self.code_bytes)
    }

    /// RAM: scratch, prediction and stack.
    #[must_use]
    pub const fn ram_bytes(&self) -> usize {
        self.scratch_bytes.saturating_add(self.output_bytes).saturating_add(self.stack_bytes)
    }
}

/// What a network takes on a core.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Estimate {
    /// One input row, exactly: in flash or RAM, as the program has it. In no sum here.
    pub row_bytes: usize,
    /// Multiplications with addition, and additions of a sum.
    pub macs: usize,
    /// Instructions of one prediction.
    pub instructions: u64,
    /// They are an upper bound: of floats computed by routines, which multiply zeros faster.
    pub is_bound: bool,
    /// Instructions of each layer, and of the sum behind them where there is one.
    pub layers: Vec<u64>,
    /// Of each of [`Way::ALL`]; none where there is no such way.
    pub ways: [Option<Memory>; Way::ALL.len()],
}

impl Core {
    /// Everything measured of it.
    #[must_use]
    pub const fn prices(self) -> &'static Prices {
        let [m0, m3, m4f, m33, rv32imac] = &TABLE;
        match self {
            Self::CortexM0 => m0,
            Self::CortexM3 => m3,
            Self::CortexM4F | Self::CortexM7 => m4f,
            Self::CortexM33 => m33,
            Self::Rv32imac => rv32imac,
        }
    }
}

impl Estimate {
    /// Of a model of floats and rows of floats.
    #[must_use]
    pub fn of_floats(view: &View<'_>, core: Core) -> Self {
        let (model, prices) = (view.model(), core.prices());
        let layers = model.layers();
        let kernels = each(layers.iter().filter_map(Kernel::of_floats));
        let extras = float_extras(layers);
        let scratch = 4 * model.scratch_len();
        let bytes = |way| {
            let (model_bytes, scratch_bytes, code) = match way {
                Way::File => {
                    let code = Memory::code(bounded(prices.file[0].map(usize::from)), true);
                    (view.encoded_len(), scratch, code)
                }
                Way::C => {
                    // Every sparse layer is exported in rows, and every hidden layer has its own
                    // activations.
                    let code = sum_of(prices, extras, &[Kernel::Floats], true);
                    let hidden = layers.iter().take(layers.len().saturating_sub(1));
                    let scratch = hidden.map(|layer| 4 * layer.outputs()).sum();
                    (layers.iter().map(c_len).sum(), scratch, code)
                }
                Way::Straight => return None,
                Way::Embedded | Way::Rust => {
                    let code = in_module(sum_of(prices, extras, &kernels, false), way, prices, 0);
                    (FLOAT_CHAIN + layers.iter().map(chain_len).sum::<usize>(), scratch, code)
                }
            };
            Some(Memory { model_bytes, scratch_bytes, output_bytes: 4 * model.outputs(), ..code })
        };
        let hidden = layers.iter().filter(|layer| !matches!(layer, Layer::Sum(_))).count() > 1;
        // Software's instructions for a float depend on the numbers: a sixteenth more bounds them.
        let is_bound = hidden && !core.has_floats();
        let priced: Vec<u64> = (0..layers.len()).map(|at| float_price(layers, at, core)).collect();
        let instructions = total(&priced, core, Numbers::Floats);
        Self {
            row_bytes: 4 * model.inputs(),
            macs: model.cost().macs,
            instructions: instructions + if is_bound { instructions.div_ceil(16) } else { 0 },
            is_bound,
            layers: priced.into_iter().map(whole).collect(),
            ways: Way::ALL.map(bytes),
        }
    }

    /// Of a model of integers.
    #[must_use]
    pub fn of_integers(view: &QuantisedView<'_>, core: Core) -> Self {
        let (model, prices) = (view.model(), core.prices());
        let layers = model.layers();
        let kernels = each(layers.iter().map(|layer| Kernel::of_integers(layer.weights())));
        let (extras, scratch) = (integer_extras(model), 4 * model.scratch_len());
        let signs = model.sum().map_or(0, |sum| size_of_val(sum.signs()));
        let lens = layers.iter().map(|layer| layer_len(layer, Choice::Keep) - FILE_LAYER);
        let arrays = signs + lens.sum::<usize>();
        let bytes = |way| {
            let (model_bytes, scratch_bytes, code) = match way {
                Way::File => {
                    let code = Memory::code(bounded(prices.file[1].map(usize::from)), true);
                    (view.encoded_len(Choice::Keep), scratch, code)
                }
                Way::Straight => (0, straight_scratch(model), straight(model, prices)),
                Way::C => (arrays, scratch, sum_of(prices, extras, &kernels, true)),
                Way::Embedded | Way::Rust => {
                    let mut code = sum_of(prices, extras, &kernels, false);
                    code.code_bytes += zeros(prices.zeros, [model.scratch_len(), model.outputs()]);
                    let head = EMPTY_CHAIN + CHAIN_LAYER * layers.len();
                    (head + arrays, scratch, in_module(code, way, prices, 1))
                }
            };
            Some(Memory { model_bytes, scratch_bytes, output_bytes: 4 * model.outputs(), ..code })
        };
        let macs = layers.iter().map(|layer| integer_macs(layer.weights())).sum::<usize>();
        let priced: Vec<u64> =
            (0..=MAX_LAYERS).filter_map(|at| integer_price(model, at, core)).collect();
        Self {
            row_bytes: model.inputs(),
            macs: macs + model.sum().map_or(0, Sum::inputs),
            instructions: total(&priced, core, Numbers::Integers),
            is_bound: false,
            layers: priced.into_iter().map(whole).collect(),
            ways: Way::ALL.map(bytes),
        }
    }

    /// Of dense layers of these (inputs, outputs), in the order in which they run: integers as a
    /// file and as a program hold them, with a factor for each hidden layer, or floats as bare
    /// weights and a plain loop.
    #[must_use]
    pub fn of_dense(layers: &[[usize; 2]], numbers: Numbers, core: Core) -> Self {
        let (prices, is_floats) = (core.prices(), numbers == Numbers::Floats);
        let kernel = if is_floats { Kernel::DenseFloats } else { Kernel::Dense };
        let (size, frame) = (if is_floats { 4 } else { 1 }, prices.around[numbers as usize]);
        let mut dense = Self {
            row_bytes: size * layers.first().map_or(0, |layer| layer[0]),
            ..Self::default()
        };
        let (mut arrays, mut scratch, mut before) = (0, 0, 0);
        let mut price = cost(&Around::PREDICTION.0, &frame);
        for (at, &[inputs, outputs]) in layers.iter().enumerate() {
            // Sizes asked for may be any; nothing below overflows.
            let weights = inputs.saturating_mul(outputs).min(usize::MAX >> 8);
            let is_hidden = at + 1 < layers.len();
            dense.macs += weights;
            arrays +=
                (weights * size).next_multiple_of(4) + if is_hidden && !is_floats { 4 } else { 0 };
            let around = if is_floats {
                Around::of_dense_floats(outputs, is_hidden)
            } else {
                Around::of_dense_integers(outputs, is_hidden)
            };
            let work = cost(&Work::dense(inputs, outputs).0, &prices.row(kernel).instructions);
            price = price.saturating_add(work).saturating_add(cost(&around.0, &frame));
            // Integers have their sums and bytes in one scratch; floats what a layer reads and what
            // it writes.
            scratch = scratch.max(match (is_hidden, is_floats) {
                (false, _) => 0,
                (true, true) => 4 * (outputs + before),
                (true, false) => 4 * (outputs + outputs.div_ceil(4)),
            });
            before = outputs;
        }
        dense.instructions = whole(price);
        let of = |model_bytes, code| {
            Some(Memory { model_bytes, scratch_bytes: scratch, output_bytes: 4 * before, ..code })
        };
        let n = layers.len();
        (dense.ways[0], dense.ways[1]) = if is_floats {
            let plain =
                of(arrays, Memory::code(prices.row(kernel).bytes[0].map(usize::from), false));
            (plain, plain)
        } else {
            let mut code = sum_of(prices, extras(n, false), &[kernel], false);
            code.code_bytes += zeros(prices.zeros, [scratch / 4, before]);
            let file = Memory::code(prices.file[1].map(usize::from), false);
            (
                of(arrays + EMPTY_FILE + FILE_LAYER * n, file),
                of(arrays + EMPTY_CHAIN + CHAIN_LAYER * n, code),
            )
        };
        dense
    }
}

fn each(kernels: impl Iterator<Item = Kernel>) -> Vec<Kernel> {
    let all: Vec<_> = kernels.collect();
    // The row of windows was measured with shorter ones behind them.
    let measured =
        |kernel: Kernel| kernel == Kernel::ShortWindows && all.contains(&Kernel::Windows);
    Kernel::ALL.into_iter().filter(|&kernel| all.contains(&kernel) && !measured(kernel)).collect()
}

/// Code and stack of a chain: of one kernel alone they are measured, else a bound. A sum of rows
/// may be a few hundredths below what is linked, so that a bound has a twenty-fourth of the code
/// and an eighth of the stack besides and 8 bytes.
fn sum_of(prices: &Prices, mut extras: [u8; EXTRAS], kernels: &[Kernel], is_c: bool) -> Memory {
    extras[MORE_KERNELS] = kernels.len().saturating_sub(1) as u8;
    let sum = prices.chain(kernels, &extras, is_c);
    let is_bound = kernels.len() > 1 || extras != [0; EXTRAS];
    Memory::code(if is_bound { bounded(sum) } else { sum }, is_bound)
}

/// Code and stack with that room.
fn bounded([code, stack]: [usize; 2]) -> [usize; 2] {
    [code + code.div_ceil(24) + 40, (stack + stack.div_ceil(8) + 8).next_multiple_of(4)]
}

/// With what a module of Rust takes beyond an embedded model.
fn in_module(code: Memory, way: Way, prices: &Prices, numbers: usize) -> Memory {
    let [more, stack] = if way == Way::Rust { prices.module[numbers] } else { [0, 0] };
    let code_bytes = code.code_bytes.saturating_add_signed(more.into());
    Memory { code_bytes, stack_bytes: code.stack_bytes.saturating_add_signed(stack.into()), ..code }
}

/// Bytes of the arrays and the head of a layer of floats in a chain.
fn chain_len(layer: &Layer<'_>) -> usize {
    let head = if matches!(layer, Layer::Sum(_)) { FILE_SUM } else { FILE_SPARSE };
    layer.flash_bytes() - head + FLOAT_LAYER
}

/// Bytes of the tables of C of a layer of floats.
fn c_len(layer: &Layer<'_>) -> usize {
    match layer {
        Layer::Sum(sum) => size_of_val(sum.signs()),
        Layer::Csr(csr) => 6 * csr.nonzeros() + 2 * csr.outputs() + 4 * csr.biases().len(),
        Layer::Blocks(blocks) => {
            6 * blocks.nonzeros() + 2 * blocks.outputs() + 4 * blocks.biases().len()
        }
        _ => 0,
    }
}

/// Bytes between the layers of code without tables: those of two neighbours.
fn straight_scratch(model: &quantised::Model<'_>) -> usize {
    let hidden = model.layers().len() - usize::from(model.sum().is_none());
    let (mut most, mut before) = (0, 0);
    for layer in model.layers().iter().take(hidden) {
        most = most.max(before + layer.outputs());
        before = layer.outputs();
    }
    most
}

/// Bounds of code and of stack without tables.
fn straight(model: &quantised::Model<'_>, prices: &Prices) -> Memory {
    let [code, ram] = prices.straight.map(|prices| Straight::of(model).bytes(&prices));
    let buffers = straight_scratch(model) + 4 * model.outputs();
    // No fit to some models bounds all others; a margin of 1/32 does those that it was held to.
    Memory::code([code + code / 32, ram.saturating_sub(buffers) + STRAIGHT_STACK], true)
}

/// Multiplications with addition of a layer of integers.
#[must_use]
pub fn integer_macs(weights: &Weights<'_>) -> usize {
    if let Weights::Dense(dense) = weights { dense.values().len() } else { weights.nonzeros() }
}

/// Thousandths of an instruction of the layer at a place.
fn float_price(layers: &[Layer<'_>], at: usize, core: Core) -> u64 {
    let prices = core.prices();
    let own = layers.get(at).and_then(|layer| {
        Some(cost(&float_work(layer).0, &prices.row(Kernel::of_floats(layer)?).instructions))
    });
    own.unwrap_or(0) + cost(&Around::of_floats(layers, at).0, &prices.around[0])
}

/// The same, the sum's behind the last; `None` past them.
fn integer_price(model: &quantised::Model<'_>, at: usize, core: Core) -> Option<u64> {
    let (layers, prices) = (model.layers(), core.prices());
    if at == layers.len() {
        return model.sum().map(|sum| cost(&Around::of_sum(sum.inputs()).0, &prices.around[1]));
    }
    let layer = layers.get(at)?;
    let last = at + 1 == layers.len() && model.sum().is_none();
    let row = prices.row(Kernel::of_integers(layer.weights()));
    let own = cost(&integer_work(layer.weights()).0, &row.instructions);
    Some(own + cost(&Around::of_integers(layer, last).0, &prices.around[1]))
}

/// Instructions of layers, whose thousandths these are, with what is around them.
fn total(layers: &[u64], core: Core, numbers: Numbers) -> u64 {
    let frame = cost(&Around::PREDICTION.0, &core.prices().around[numbers as usize]);
    whole(layers.iter().copied().fold(frame, u64::saturating_add))
}

const fn whole(thousandths: u64) -> u64 {
    thousandths.div_ceil(PER_INSTRUCTION)
}
