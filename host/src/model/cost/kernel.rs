//! Processors, ways of deploying a model, and kernels that run its layers.

use tamis::infer::model::{self, WINDOW};
use tamis::infer::quantised::{Encoding, Weights};

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
    pub const ALL: [Self; 6] = [
        Self::CortexM0,
        Self::CortexM3,
        Self::CortexM4F,
        Self::CortexM7,
        Self::CortexM33,
        Self::Rv32imac,
    ];

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

    /// Whether floats are computed by the processor, and not by routines of about a hundred
    /// instructions.
    #[must_use]
    pub const fn has_floats(self) -> bool {
        matches!(self, Self::CortexM4F | Self::CortexM7 | Self::CortexM33)
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
    /// It reads the file in place when it starts: `include_model!`.
    File,
    /// The compiler has read the file: `embed_model!`, `embed_quantised!`.
    Embedded,
    /// A module of tables, of `tamis export --format rust`.
    Rust,
    /// A module without tables, of `tamis export --format rust --straight-line`; of models of
    /// integers.
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
}

/// What runs a layer; each has a row in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kernel {
    /// A sparse layer of floats in rows.
    Floats,
    /// A sparse layer of floats in windows of columns, on at least one window of inputs.
    Windows,
    /// The same on fewer inputs than a window has, which are read number by number.
    ShortWindows,
    /// A plain loop over all weights as floats, to compare with; no model file holds one.
    DenseFloats,
    /// A dense layer of integers.
    Dense,
    /// A bitmask.
    Mask,
    /// Blocks on at least one window of inputs.
    Blocks,
    /// Blocks on fewer inputs, which are copied.
    ShortBlocks,
}

impl Kernel {
    /// Every one of them, in the order of the table.
    pub const ALL: [Self; 8] = [
        Self::Floats,
        Self::Windows,
        Self::ShortWindows,
        Self::DenseFloats,
        Self::Dense,
        Self::Mask,
        Self::Blocks,
        Self::ShortBlocks,
    ];

    /// What it computes with.
    #[must_use]
    pub const fn numbers(self) -> Numbers {
        match self {
            Self::Dense | Self::Mask | Self::Blocks | Self::ShortBlocks => Numbers::Integers,
            _ => Numbers::Floats,
        }
    }

    /// What runs a layer of floats; `None` of a sum.
    #[must_use]
    pub fn of_floats(layer: &model::Layer<'_>) -> Option<Self> {
        match layer {
            model::Layer::Csr(_) => Some(Self::Floats),
            model::Layer::Blocks(blocks) if blocks.inputs() < WINDOW => Some(Self::ShortWindows),
            model::Layer::Blocks(_) => Some(Self::Windows),
            _ => None,
        }
    }

    /// What runs a layer of integers.
    #[must_use]
    pub fn of_integers(weights: &Weights<'_>) -> Self {
        match weights.encoding() {
            Encoding::Dense => Self::Dense,
            Encoding::Mask => Self::Mask,
            _ if weights.inputs() < WINDOW => Self::ShortBlocks,
            _ => Self::Blocks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_stand_at_their_places() {
        assert!(Kernel::ALL.iter().enumerate().all(|(at, kernel)| *kernel as usize == at));
    }
}
