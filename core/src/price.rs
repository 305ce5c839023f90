//! What a prediction takes on each kind of part: instructions, code and stack, from a table that was measured.
//!
//! A layer is described by what its kernel counts ([`Work`]): outputs, weights, full groups of an unrolled loop, windows. Its
//! instructions are `sum_k price_k count_k`, with one price for each count, [`Kernel`] and [`Core`]. What a model needs besides
//! its kernels, from the checks of the lengths to the fixed-point factors, is counted the same way ([`Around`]).
//!
//! The table is made by `cargo ci costs`, which counts instructions in an emulator and fits the prices; `cargo ci qemu` holds it
//! to models that were not in the fit. Prices are whole thousandths of an instruction, so nothing here needs a float.
//!
//! The first weight of a row is counted with the row, since a row without weights is passed by, and routines for floats add to
//! 0 quickly. A full group of k weights of a sparse layer is counted as k - 1 weights and one group. Thus no weight is counted
//! twice, and a further weight never takes less. Of a dense layer all weights are there: fours are counted, and what is left of
//! each row, the first weight of it apart.

mod count;
mod table;
pub mod ways;

pub use count::{Around, Shape, Work};

use crate::model::{Layer, WINDOW};
use crate::quantised::Encoding;
use count::cost;

/// Parts of an instruction that prices are given in.
pub const PER_INSTRUCTION: u64 = 1000;

/// A kind of processor with the instruction set that firmware for it is compiled to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Core {
    /// `thumbv6m`, as of a Cortex-M0 or M0+.
    CortexM0,
    /// `thumbv7m`.
    CortexM3,
    /// `thumbv7em` with a float unit.
    CortexM4F,
    /// The code of a Cortex-M4F.
    CortexM7,
    /// `thumbv8m.main` with a float unit.
    CortexM33,
    /// `riscv32imac`, as of cores without atomics too.
    Rv32imac,
}

impl Core {
    /// Every one of them, the smallest first.
    pub const ALL: [Self; 6] =
        [Self::CortexM0, Self::CortexM3, Self::CortexM4F, Self::CortexM7, Self::CortexM33, Self::Rv32imac];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CortexM0 => "Cortex-M0",
            Self::CortexM3 => "Cortex-M3",
            Self::CortexM4F => "Cortex-M4F",
            Self::CortexM7 => "Cortex-M7",
            Self::CortexM33 => "Cortex-M33",
            Self::Rv32imac => "RV32IMAC",
        }
    }

    /// Whether floats are computed by the processor, and not by routines of about a hundred instructions.
    #[must_use]
    pub const fn has_floats(self) -> bool {
        matches!(self, Self::CortexM4F | Self::CortexM7 | Self::CortexM33)
    }

    const fn prices(self) -> &'static Prices {
        let [m0, m3, m4f, m7, m33, rv32imac] = &table::TABLE;
        match self {
            Self::CortexM0 => m0,
            Self::CortexM3 => m3,
            Self::CortexM4F => m4f,
            Self::CortexM7 => m7,
            Self::CortexM33 => m33,
            Self::Rv32imac => rv32imac,
        }
    }
}

/// What a model computes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// 32-bit floats.
    Floats,
    /// 8-bit integers.
    Integers,
}

/// How a program has a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Way {
    /// It reads the file in place when it starts: [`include_model!`](crate::include_model).
    File,
    /// The compiler has read the file: [`embed_model!`](crate::embed_model), [`embed_quantised!`](crate::embed_quantised).
    Embedded,
    /// A module of tables, of `tamis export --format rust`.
    Rust,
    /// A module without tables, of `tamis export --format rust --straight-line`; of models of integers.
    Straight,
    /// Tables of C, of `tamis export --format c`, compiled by GCC with `-O2`.
    C,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::File, Self::Embedded, Self::Rust, Self::Straight, Self::C];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Embedded => "embedded",
            Self::Rust => "rust",
            Self::Straight => "straight",
            Self::C => "c",
        }
    }

    /// Flash and RAM are upper bounds, not estimates: how a compiler orders code without tables depends on all of its numbers.
    #[must_use]
    pub const fn is_bound(self) -> bool {
        matches!(self, Self::Straight)
    }
}

/// What runs a layer: one kernel for floats, and one for each encoding of integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kernel {
    /// A sparse layer of floats on rows of floats.
    Floats,
    /// The same right under a sum, which adds what rows give without a scratch.
    SummedFloats,
    /// Rows behind a hidden layer: about half of what they read is 0, which routines for floats multiply faster by.
    HiddenFloats,
    /// A sparse layer of floats in windows of columns on rows of at least one window.
    Windows,
    /// The same code behind a hidden layer.
    HiddenWindows,
    /// A layer in windows on rows shorter than one, which are read number by number.
    ShortWindows,
    /// The same code behind a hidden layer.
    HiddenShortWindows,
    /// A plain loop over all weights as floats, to compare with; no model file holds one.
    DenseFloats,
    /// A layer of integers.
    Integers(Encoding),
}

impl Kernel {
    /// How many there are.
    pub const COUNT: usize = Self::OF_FLOATS.len() + Encoding::ALL.len();

    /// Those of floats.
    const OF_FLOATS: [Self; 8] = [
        Self::Floats,
        Self::SummedFloats,
        Self::HiddenFloats,
        Self::Windows,
        Self::HiddenWindows,
        Self::ShortWindows,
        Self::HiddenShortWindows,
        Self::DenseFloats,
    ];

    /// Every one of them.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::OF_FLOATS.into_iter().chain(Encoding::ALL.map(Self::Integers))
    }

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Floats => "f32 rows",
            Self::SummedFloats => "f32 rows under a sum",
            Self::HiddenFloats => "f32 rows behind a hidden layer",
            Self::Windows => "f32 windows",
            Self::HiddenWindows => "f32 windows behind a hidden layer",
            Self::ShortWindows => "f32 short window",
            Self::HiddenShortWindows => "f32 short window behind a hidden layer",
            Self::DenseFloats => "f32 dense",
            Self::Integers(encoding) => encoding.name(),
        }
    }

    /// What it computes with.
    #[must_use]
    pub const fn numbers(self) -> Numbers {
        match self {
            Self::Integers(_) => Numbers::Integers,
            _ => Numbers::Floats,
        }
    }

    /// Whether it is the code of another behind a hidden layer, and never runs alone.
    #[must_use]
    pub const fn is_hidden(self) -> bool {
        matches!(self, Self::HiddenFloats | Self::HiddenWindows | Self::HiddenShortWindows)
    }

    /// The kernel whose code it has: rows have one, and windows.
    #[must_use]
    pub const fn code(self) -> Self {
        match self {
            Self::SummedFloats | Self::HiddenFloats => Self::Floats,
            Self::HiddenWindows | Self::ShortWindows | Self::HiddenShortWindows => Self::Windows,
            other => other,
        }
    }

    /// What runs the layer of floats at a place of a model; `None` of a sum and past the last.
    #[must_use]
    pub fn of_floats(layers: &[Layer<'_>], at: usize) -> Option<Self> {
        Some(match (layers.get(at)?, at) {
            (Layer::Sum(_), _) => return None,
            (Layer::Csr(_), 0) if matches!(layers, [_, Layer::Sum(_)]) => Self::SummedFloats,
            (Layer::Csr(_), 0) => Self::Floats,
            (Layer::Csr(_), _) => Self::HiddenFloats,
            (Layer::Blocks(blocks), 0) if blocks.inputs() < WINDOW => Self::ShortWindows,
            (Layer::Blocks(blocks), _) if blocks.inputs() < WINDOW => Self::HiddenShortWindows,
            (Layer::Blocks(_), 0) => Self::Windows,
            (Layer::Blocks(_), _) => Self::HiddenWindows,
        })
    }

    /// Its place among [`all`](Self::all) and in the table.
    #[must_use]
    pub fn place(self) -> usize {
        Self::all().position(|other| other == self).unwrap_or(0)
    }
}

/// Bytes of code and stack that a model takes on a part, by what runs it.
impl Core {
    /// Bytes of flash of a program that does nothing: start-up code and vectors.
    #[must_use]
    pub const fn startup_bytes(self) -> u32 {
        self.prices().startup
    }

    /// Bytes of code of a plain loop over dense floats.
    #[must_use]
    pub(crate) const fn plain_code_bytes(self) -> u32 {
        self.prices().plain
    }

    /// Bytes of stack, from the caller's frame on, of reading a model file with a layer for this kernel and predicting; buffers of
    /// the caller are not in it.
    #[must_use]
    pub fn stack_bytes(self, kernel: Kernel) -> u32 {
        self.prices().kernels.get(kernel.place()).map_or(0, |kernel| kernel.stack)
    }

    /// The same of predicting alone, with a model that the compiler has read.
    #[must_use]
    pub fn module_stack_bytes(self, kernel: Kernel) -> u32 {
        self.prices().kernels.get(kernel.place()).map_or(0, |kernel| kernel.alone)
    }
}

/// Everything measured of one kind of part.
#[derive(Debug)]
struct Prices {
    startup: u32,
    /// Code of a plain loop over dense floats.
    plain: u32,
    ways: ways::Ways,
    floats: Frame,
    integers: Frame,
    kernels: [Price; Kernel::COUNT],
}

impl Prices {
    const fn of(&self, numbers: Numbers) -> &Frame {
        match numbers {
            Numbers::Floats => &self.floats,
            Numbers::Integers => &self.integers,
        }
    }
}

/// What every model of its numbers has: prices of [`Around`].
#[derive(Debug)]
struct Frame {
    instructions: [u32; Around::COUNT],
}

/// Prices of [`Work`], and bytes of stack with everything that reading and predicting takes, and of predicting alone.
#[derive(Debug)]
struct Price {
    instructions: [u32; Work::COUNT],
    stack: u32,
    alone: u32,
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn kernels_have_places_of_their_own() {
        let places: Vec<usize> = Kernel::all().map(Kernel::place).collect();
        assert_eq!(places, (0..Kernel::COUNT).collect::<Vec<_>>());
    }

    #[test]
    fn every_kernel_has_a_price_on_every_part() {
        for core in Core::ALL {
            for kernel in Kernel::all() {
                let work = Shape::dense(100, 10).work(kernel);
                assert!(work.price(core, kernel) > 1000 * PER_INSTRUCTION, "{core:?} {kernel:?}");
                assert!(core.stack_bytes(kernel) > 0, "{core:?} {kernel:?}");
            }
            for numbers in [Numbers::Floats, Numbers::Integers] {
                assert!(core.file_code_bytes(numbers) > 1000, "{core:?}");
            }
        }
    }
}
