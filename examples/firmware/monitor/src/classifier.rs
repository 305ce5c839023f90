//! What the machine does, and a network that tells.

use crate::Window;

/// What the machine does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Class {
    /// It stands still.
    Stopped,
    /// It runs as it should.
    Running,
    /// It shakes: something is loose or broken.
    Unbalanced,
}

impl Class {
    /// In the order of the network's outputs.
    pub const ALL: [Self; 3] = [Self::Stopped, Self::Running, Self::Unbalanced];

    /// Whether the machine may go on.
    #[must_use]
    pub const fn is_good(self) -> bool {
        !matches!(self, Self::Unbalanced)
    }
}

/// Tells what the machine does.
pub trait Classifier {
    /// Why it cannot.
    type Error;

    /// The class of a window.
    ///
    /// # Errors
    /// Whatever the weights cannot be read for.
    fn classify(&mut self, window: &Window) -> Result<Class, Self::Error>;
}

/// The file of the network: 8-bit integers, layers in blocks, so that it can be read from a chip as
/// well.
pub static MODEL_FILE: &[u8] = tamis::include_model!("../model/vibration.tamis");

/// Hidden neurons, at most.
pub(crate) const HIDDEN: usize = 12;
/// Words between layers: the sums of the hidden neurons and their bytes.
pub(crate) const SCRATCH: usize = HIDDEN + HIDDEN.div_ceil(4);

/// The network in the program: the compiler has read and checked its file.
#[derive(Debug, Default)]
pub struct Embedded(());

impl Classifier for Embedded {
    type Error = tamis::Error;

    fn classify(&mut self, window: &Window) -> tamis::Result<Class> {
        let model = tamis::embed_quantised!("../model/vibration.tamis");
        let mut sums = [0; Class::ALL.len()];
        let class = model.classify(window, &mut [0; SCRATCH], &mut sums)?;
        named(class)
    }
}

/// The class at a place among the outputs.
pub(crate) fn named<S>(at: usize) -> tamis::Result<Class, S> {
    let range = tamis::Error::Range { what: "class", min: 0, max: Class::ALL.len() - 1, got: at };
    Class::ALL.get(at).copied().ok_or(range)
}
