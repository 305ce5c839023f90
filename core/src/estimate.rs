//! What a model takes on a part, before it is flashed: flash, RAM, stack and instructions, and what dense layers in its place would.
//!
//! Bytes of the model, scratch and outputs are exact. Code, stack and instructions come from the measured prices of
//! [`price`](crate::price), for firmware at optimisation level 3 with one code unit and link-time optimisation. Counted are
//! instructions, not cycles.
//!
//! ```
//! use tamis::estimate::Estimate;
//! use tamis::model::{Activation, Csr, Layer, Model, Sum};
//! use tamis::price::{Core, Numbers};
//! use tamis::wire::View;
//!
//! // f(x) = relu(x_0 - 0.5 x_2) - relu(2 x_1)
//! let hidden = Csr::new(3, &[2, 1], &[0, 2, 1], &[1.0, -0.5, 2.0], Activation::Relu)?;
//! let view = View::new(Model::new(&[Layer::Csr(hidden), Layer::Sum(Sum::new(2, &[0b10])?)])?);
//! let sparse = Estimate::of_floats(&view, Core::CortexM4F);
//! assert_eq!((sparse.model_bytes, sparse.scratch_bytes, sparse.output_bytes, sparse.macs), (92, 0, 4, 5));
//!
//! // The dense network of the same shape: two neurons of three inputs, and one output of both.
//! let dense = Estimate::of_dense([(3, 2), (2, 1)], Numbers::Floats, Core::CortexM4F);
//! assert_eq!((dense.model_bytes, dense.macs), (4 * (6 + 2), 6 + 2));
//! # Ok::<(), tamis::Error>(())
//! ```

use crate::model::{self, MAX_LAYERS, Model};
use crate::price::ways::{Bytes, straight_scratch};
use crate::price::{Around, Core, Kernel, Numbers, PER_INSTRUCTION, Shape, Way};
use crate::quantised;
use crate::wire::{self, Choice, QuantisedView, View};

/// Bytes of a model in one way of deploying it: code and stack of linked programs within 5 % of all flash and all RAM, of RAM within
/// 24 bytes where that is more; upper bounds where [`Way::is_bound`] says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// The encoded model, or the arrays and layers that the compiler makes of it; 0 of code without tables.
    pub model_bytes: usize,
    /// Code that predicts, and, of a file, that reads and checks it.
    pub code_bytes: usize,
    /// Activations between layers.
    pub scratch_bytes: usize,
    /// The prediction, exactly.
    pub output_bytes: usize,
    /// Stack besides both, from the caller's frame on.
    pub stack_bytes: usize,
}

impl Memory {
    /// With so many outputs of 4 bytes.
    const fn new(bytes: Bytes, model_bytes: usize, scratch_bytes: usize, outputs: usize) -> Self {
        Self {
            model_bytes,
            code_bytes: bytes.code as usize,
            scratch_bytes,
            output_bytes: outputs.saturating_mul(4),
            stack_bytes: bytes.stack as usize,
        }
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

/// What a model takes on a part. Lengths are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Estimate {
    /// The encoded model, exactly; of dense floats their weights alone.
    pub model_bytes: usize,
    /// Code that reads the model in place, checks it, and predicts; of dense floats a plain loop.
    pub code_bytes: usize,
    /// The scratch between layers, exactly.
    pub scratch_bytes: usize,
    /// The prediction, exactly.
    pub output_bytes: usize,
    /// One input row, exactly: in flash or RAM, as the program has it. In no sum here.
    pub row_bytes: usize,
    /// Stack, from the caller's frame on, of reading the model and predicting.
    pub stack_bytes: usize,
    /// Multiplications with addition, and additions of a sum.
    pub macs: usize,
    /// Instructions of one prediction.
    pub instructions: u64,
    /// Of each of [`Way::ALL`]; none where there is no such way.
    pub ways: [Option<Memory>; Way::ALL.len()],
}

impl Estimate {
    /// Of a model of floats and rows of floats.
    #[must_use]
    pub fn of_floats(view: &View<'_>, core: Core) -> Self {
        let model = view.model();
        let price = (0..model.layers().len()).map(|at| float_price(model.layers(), at, core));
        let (tables, between) = c_floats(model);
        let memory = |way| {
            let bytes = core.floats(model, way)?;
            let (model_bytes, scratch_bytes) = match way {
                Way::File => (view.encoded_len(), model.scratch_len().saturating_mul(4)),
                Way::C => (tables, between),
                _ => (wire::embedded_len(model), model.scratch_len().saturating_mul(4)),
            };
            Some(Memory::new(bytes, model_bytes, scratch_bytes, model.outputs()))
        };
        Self {
            row_bytes: model.inputs().saturating_mul(4),
            macs: model.cost().macs,
            instructions: total(price, core, Numbers::Floats),
            ..Self::of_ways(Way::ALL.map(memory))
        }
    }

    /// Of a model of integers.
    #[must_use]
    pub fn of_integers(view: &QuantisedView<'_>, core: Core) -> Self {
        let model = view.model();
        let price = (0..=MAX_LAYERS).filter_map(|at| integer_price(model, at, core));
        let macs = model.layers().iter().map(integer_macs).fold(0, usize::saturating_add);
        let memory = |way| {
            let bytes = core.integers(model, way);
            let scratch = model.scratch_len().saturating_mul(4);
            let (model_bytes, scratch_bytes) = match way {
                Way::File => (view.encoded_len(Choice::Keep), scratch),
                Way::Straight => (0, straight_scratch(model)),
                Way::C => (wire::tables_len(model), scratch),
                _ => (wire::embedded_integers_len(model), scratch),
            };
            Some(Memory::new(bytes, model_bytes, scratch_bytes, model.outputs()))
        };
        Self {
            row_bytes: model.inputs(),
            macs: macs.saturating_add(model.sum().map_or(0, model::Sum::inputs)),
            instructions: total(price, core, Numbers::Integers),
            ..Self::of_ways(Way::ALL.map(memory))
        }
    }

    /// What is of a file, and all ways.
    fn of_ways(ways: [Option<Memory>; Way::ALL.len()]) -> Self {
        let file = ways.first().copied().flatten().unwrap_or_default();
        Self {
            model_bytes: file.model_bytes,
            code_bytes: file.code_bytes,
            scratch_bytes: file.scratch_bytes,
            output_bytes: file.output_bytes,
            stack_bytes: file.stack_bytes,
            ways,
            ..Self::default()
        }
    }

    /// Bytes in a way of deploying the model; none where there is no such way.
    #[must_use]
    pub fn memory(&self, way: Way) -> Option<Memory> {
        let place = Way::ALL.iter().position(|&other| other == way)?;
        self.ways.get(place).copied().flatten()
    }

    /// Of dense layers of these (inputs, outputs), in the order in which they run: integers as a model file holds them, with a
    /// factor for each hidden layer, or floats as bare weights.
    #[must_use]
    pub fn of_dense(layers: impl IntoIterator<Item = (usize, usize)>, numbers: Numbers, core: Core) -> Self {
        let kernel = match numbers {
            Numbers::Floats => Kernel::DenseFloats,
            Numbers::Integers => Kernel::Integers(quantised::Encoding::Dense),
        };
        let stack = match numbers {
            Numbers::Floats => core.stack_bytes(kernel),
            Numbers::Integers => core.integer_file_stack(),
        };
        let mut dense = Self { stack_bytes: stack as usize, ..Self::default() };
        // Of floats nothing is read or checked.
        dense.code_bytes = match numbers {
            Numbers::Floats => core.plain_code_bytes() as usize,
            Numbers::Integers => core.file_code_bytes(numbers) as usize,
        };
        let (mut module_bytes, mut hidden) = (0, 0);
        if numbers == Numbers::Integers {
            (dense.model_bytes, module_bytes) = (wire::EMPTY, wire::EMPTY_CHAIN);
        }
        let mut price = Around::PREDICTION.price(core, numbers);
        let mut layers = layers.into_iter().peekable();
        let (mut first, mut before) = (true, 0);
        while let Some((inputs, outputs)) = layers.next() {
            let last = layers.peek().is_none();
            let weights = inputs.saturating_mul(outputs);
            let (len, module) = match numbers {
                Numbers::Floats => (weights.saturating_mul(4), weights.saturating_mul(4)),
                Numbers::Integers => {
                    let len = wire::dense_len(inputs, outputs, usize::from(!last));
                    (len, wire::embedded_layer_len(len))
                }
            };
            dense.model_bytes = dense.model_bytes.saturating_add(len);
            module_bytes = module_bytes.saturating_add(module);
            hidden += usize::from(!last);
            dense.macs = dense.macs.saturating_add(weights);
            let around = match numbers {
                Numbers::Floats => Around::of_dense_floats(outputs, !last),
                Numbers::Integers => Around::of_dense_integers(outputs, !last),
            };
            price = price
                .saturating_add(Shape::dense(inputs, outputs).work(kernel).price(core, kernel))
                .saturating_add(around.price(core, numbers));
            let size = if numbers == Numbers::Floats { 4 } else { 1 };
            if first {
                dense.row_bytes = inputs.saturating_mul(size);
                first = false;
            }
            // Integers have their sums and bytes in one scratch; floats what a layer reads and what it writes.
            let scratch = match (numbers, last) {
                (_, true) => 0,
                (Numbers::Floats, _) => outputs.saturating_add(before).saturating_mul(4),
                (Numbers::Integers, _) => outputs.saturating_add(outputs.div_ceil(4)).saturating_mul(4),
            };
            dense.scratch_bytes = dense.scratch_bytes.max(scratch);
            dense.output_bytes = outputs.saturating_mul(4);
            before = outputs;
        }
        dense.instructions = whole(price);
        let file = Memory {
            model_bytes: dense.model_bytes,
            code_bytes: dense.code_bytes,
            scratch_bytes: dense.scratch_bytes,
            output_bytes: dense.output_bytes,
            stack_bytes: dense.stack_bytes,
        };
        let chain = core.dense_chain(hidden, [dense.scratch_bytes / 4, dense.output_bytes / 4]);
        let (code_bytes, stack_bytes) = (chain.code as usize, chain.stack as usize);
        dense.ways[0] = Some(file);
        dense.ways[1] = Some(match numbers {
            Numbers::Floats => Memory { model_bytes: module_bytes, ..file },
            Numbers::Integers => Memory { model_bytes: module_bytes, code_bytes, stack_bytes, ..file },
        });
        dense
    }

    /// Flash of the model and the code that reads it and predicts; a program has start-up code and its own besides.
    #[must_use]
    pub const fn flash_bytes(&self) -> usize {
        self.model_bytes.saturating_add(self.code_bytes)
    }

    /// RAM of scratch, prediction and stack; a program has its own besides, the input row perhaps.
    #[must_use]
    pub const fn ram_bytes(&self) -> usize {
        self.scratch_bytes.saturating_add(self.output_bytes).saturating_add(self.stack_bytes)
    }
}

/// Instructions of each layer of a model of floats, in the order of [`Model::layers`].
pub fn float_layers(model: &Model<'_>, core: Core) -> impl Iterator<Item = u64> {
    (0..model.layers().len()).map(move |at| whole(float_price(model.layers(), at, core)))
}

/// Instructions of each layer of a model of integers, and of the sum behind them where there is one.
pub fn integer_layers(model: &quantised::Model<'_>, core: Core) -> impl Iterator<Item = u64> {
    (0..=MAX_LAYERS).filter_map(move |at| integer_price(model, at, core)).map(whole)
}

/// Bytes of the tables of C, and of what lies between layers: all hidden activations, and a layer in rows.
fn c_floats(model: &Model<'_>) -> (usize, usize) {
    let layers = model.layers();
    let table = |layer: &model::Layer<'_>| match layer {
        model::Layer::Sum(sum) => size_of_val(sum.signs()),
        layer => {
            let weights = Shape::of_floats(layer).nonzeros.saturating_mul(6);
            weights.saturating_add(layer.outputs().saturating_mul(2))
        }
    };
    let hidden = layers.iter().take(layers.len().saturating_sub(1)).map(model::Layer::outputs);
    let between = hidden.fold(0, usize::saturating_add).saturating_mul(4);
    (layers.iter().map(table).fold(0, usize::saturating_add), between)
}

/// Multiplications with addition of a layer of integers.
fn integer_macs(layer: &quantised::Layer<'_>) -> usize {
    match layer.weights() {
        quantised::Weights::Dense(dense) => dense.values().len(),
        weights => weights.nonzeros(),
    }
}

fn float_price(layers: &[model::Layer<'_>], at: usize, core: Core) -> u64 {
    let Some(layer) = layers.get(at) else { return 0 };
    let kernel = Kernel::of_floats(layers, at);
    let price = kernel.map_or(0, |kernel| Shape::of_floats(layer).work(kernel).price(core, kernel));
    price.saturating_add(Around::of_floats(layers, at).price(core, Numbers::Floats))
}

/// Thousandths of the layer at a place, the sum's behind the last; `None` past them.
fn integer_price(model: &quantised::Model<'_>, at: usize, core: Core) -> Option<u64> {
    let layers = model.layers();
    if at == layers.len() {
        return model.sum().map(|sum| Around::of_sum(sum.inputs()).price(core, Numbers::Integers));
    }
    let layer = layers.get(at)?;
    let last = at + 1 == layers.len() && model.sum().is_none();
    let kernel = Kernel::Integers(layer.weights().encoding());
    let price = Shape::of_integers(layer.weights()).work(kernel).price(core, kernel);
    Some(price.saturating_add(Around::of_integers(layer, last).price(core, Numbers::Integers)))
}

fn total(layers: impl Iterator<Item = u64>, core: Core, numbers: Numbers) -> u64 {
    whole(layers.fold(Around::PREDICTION.price(core, numbers), u64::saturating_add))
}

/// Instructions, rounded up.
const fn whole(thousandths: u64) -> u64 {
    thousandths.div_ceil(PER_INSTRUCTION)
}
