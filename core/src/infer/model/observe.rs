//! Who sees what layers give.

/// Sees every number of every layer, or none: then nothing of it is compiled, not even an empty
/// loop that would count when the optimiser decides what to inline.
pub(crate) trait Observer<T> {
    /// Whether it sees anything.
    const SEES: bool;

    /// A number of the layer at hand.
    fn number(&mut self, neuron: usize, value: T);

    /// The layer at hand is complete.
    fn next(&mut self);

    /// All numbers of the layer at hand.
    #[inline(always)]
    fn layer(&mut self, values: impl Iterator<Item = T>) {
        if Self::SEES {
            values.enumerate().for_each(|(neuron, value)| self.number(neuron, value));
            self.next();
        }
    }
}

/// Sees nothing.
pub(crate) struct Blind;

impl<T> Observer<T> for Blind {
    const SEES: bool = false;
    fn number(&mut self, _: usize, _: T) {}
    fn next(&mut self) {}
}

/// Hands every number to a function, with its layer and its neuron.
pub(crate) struct Seeing<F> {
    layer: usize,
    see: F,
}

impl<F> Seeing<F> {
    pub(crate) const fn new(see: F) -> Self {
        Self { layer: 0, see }
    }
}

impl<T, F: FnMut(usize, usize, T)> Observer<T> for Seeing<F> {
    const SEES: bool = true;

    fn number(&mut self, neuron: usize, value: T) {
        (self.see)(self.layer, neuron, value);
    }

    fn next(&mut self) {
        self.layer += 1;
    }
}
