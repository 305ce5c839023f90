//! Activations kept from one evaluation of the network to the next.
//!
//! A search changes a few neurons at a time: only the activations of those are computed again. They
//! lie with the groups whose rows they are of, piece by piece, slot by slot; here stands whose they
//! are.

use tamis::network::gates::{Gate, Gates};
use tamis::network::weights::{Block, Weights, runs};

const USUAL_BYTES: usize = 4 << 20;

/// Floats for each of so many groups: `neurons` activations on each of `rows` rows, or as many as a
/// few megabytes hold.
pub(super) fn usual(groups: usize, rows: usize, neurons: usize) -> usize {
    rows.saturating_mul(neurons).min(USUAL_BYTES / 4 / groups.max(1))
}

/// Bytes beside the activations, `floats` a group, of `neurons` neurons with `nnz` weights.
pub(super) const fn bytes(floats: usize, neurons: usize, nnz: usize) -> usize {
    if floats == 0 { 0 } else { 8 * nnz + neurons * (2 * size_of::<Place>() + size_of::<bool>()) }
}

#[derive(Debug, Default)]
pub(super) struct Activations {
    /// The weights that they are of: inputs and values.
    entries: Vec<(u32, f32)>,
    /// Where they are, neuron by neuron.
    pub(super) places: Vec<Place>,
    /// The same for the network that is to take the place of that one.
    next: Vec<Place>,
    taken: Vec<bool>,
    /// Slots of a piece.
    pub(super) slots: usize,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    neuron: u32,
    pub(super) slot: u32,
    start: u32,
    end: u32,
    /// Whether the activations are still to be computed.
    pub(super) stale: bool,
}

impl Activations {
    pub(super) fn new(neurons: usize, nnz: usize) -> Self {
        Self {
            entries: Vec::with_capacity(nnz),
            places: Vec::with_capacity(neurons),
            next: Vec::with_capacity(neurons),
            taken: vec![false; neurons],
            slots: 0,
        }
    }

    /// The rows are others from now on, or not all activations were computed.
    pub(super) fn forget(&mut self) {
        self.places.clear();
    }

    /// Turns to the network `w`; whether `slots` activations a row are enough. If so, the stale ones
    /// are to be computed ([`super::piece::add_forward_kept`]), and are stale no more.
    pub(super) fn turn_to(&mut self, w: Weights<'_>, slots: usize) -> bool {
        let inputs = w.inputs();
        let slots = slots.min(self.taken.len());
        let live = runs(inputs, w.index()).count();
        if live == 0 || live > slots || w.nnz() > self.entries.capacity() {
            return false;
        }
        if slots != self.slots {
            self.forget();
            self.slots = slots;
        }
        self.taken.fill(false);
        self.next.clear();
        for (block, (neuron, run)) in w.blocks().zip(runs(inputs, w.index())) {
            let kept = self.place(block).map(|place| place.slot);
            let (slot, stale) = (kept.unwrap_or(0), kept.is_none());
            self.taken[slot as usize] |= !stale;
            let (start, end) = (run.start as u32, run.end as u32);
            self.next.push(Place { neuron: neuron as u32, slot, start, end, stale });
        }
        let mut free = (0..).zip(&self.taken).filter(|(_, taken)| !**taken).map(|(slot, _)| slot);
        for place in self.next.iter_mut().filter(|place| place.stale) {
            place.slot = free.next().unwrap_or(0);
        }
        std::mem::swap(&mut self.places, &mut self.next);
        self.entries.clear();
        for block in w.blocks() {
            self.entries.extend(block.entries().map(|(j, value)| (j as u32, value)));
        }
        true
    }

    /// The place of a neuron with these very weights.
    pub(super) fn place(&self, block: Block<'_>) -> Option<&Place> {
        let at = self
            .places
            .binary_search_by_key(&block.neuron(), |place| place.neuron as usize)
            .ok()?;
        let place = &self.places[at];
        let entries = self.entries[place.start as usize..place.end as usize].iter();
        let bits = |(j, value): (usize, f32)| (j, value.to_bits());
        let same =
            block.entries().map(bits).eq(entries.map(|&(j, value)| bits((j as usize, value))));
        same.then_some(place)
    }
}

/// Whether each gate is that of the neuron's own weights, or the same on all rows.
pub(super) fn gates_own(gates: Gates<'_>, w: Weights<'_>) -> bool {
    let mut cursor = gates.cursor();
    w.blocks().all(|block| match cursor.at(block.neuron()) {
        Gate::Weights { block: gate, .. } => gate.is(&block),
        Gate::Open | Gate::Closed => true,
        Gate::Random { .. } => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::planted;
    use crate::operator::{Blocked, Layout, Stop};
    use tamis::base::dims::Dims;
    use tamis::network::gates::Signs;
    use tamis::network::weights::check_support;
    use tamis::operator::sensing::Sensing;

    const DIMS: Dims = Dims::new(700, 20, 6, 40);

    /// Networks as a search meets them: (neuron, input, value).
    fn networks() -> Vec<Vec<(u32, u32, f32)>> {
        let base = vec![(0, 1, 0.5), (0, 7, -1.0), (2, 3, 2.0), (3, 0, -0.25), (3, 19, 1.5)];
        let with = |more: &[(u32, u32, f32)], without: u32| {
            let mut w: Vec<_> =
                base.iter().copied().filter(|e| e.0 != without).chain(more.to_vec()).collect();
            w.sort_by_key(|e| (e.0, e.1));
            w
        };
        vec![
            base.clone(),
            with(&[(1, 4, 1.0)], 9),
            base.clone(),
            with(&[(5, 2, 0.0), (5, 3, 1.0)], 2),
            with(&[(2, 3, -2.0)], 2),
            with(&[(2, 3, 2.0), (4, 3, 2.0)], 2),
            with(&[], 0),
            vec![],
            base,
        ]
    }

    fn index_and_value(network: &[(u32, u32, f32)]) -> (Vec<u32>, Vec<f32>) {
        network.iter().map(|&(i, j, v)| (i * DIMS.inputs as u32 + j, v)).unzip()
    }

    fn operators(layout: Layout) -> (Blocked, Blocked, Vec<f32>) {
        let made = planted::network(DIMS, Signs::Positive, 3).unwrap();
        let new = |layout| Blocked::new(made.data.clone(), DIMS.hidden, DIMS.nnz, layout).unwrap();
        (new(Layout { activations: 0, ..layout }), new(layout), made.labels)
    }

    #[test]
    fn cached_activations_are_bit_identical_to_full_recomputation() {
        let (n, d, m) = (DIMS.samples, DIMS.inputs, DIMS.hidden);
        let usual = Layout { tile: 64, ..Layout::new(m, d) };
        for (floats, signs) in [
            (usual.with_activations(n, m).activations, Signs::Balanced),
            (usual.with_activations(n, m).activations, Signs::Free),
            (usual.with_activations(n, 4).activations, Signs::Positive),
            (7, Signs::Positive),
        ] {
            let (mut plain, mut kept, labels) = operators(Layout { activations: floats, ..usual });
            for (round, rows) in [0..700, 30..650, 30..650, 0..64].into_iter().enumerate() {
                plain.select(rows.clone()).unwrap();
                kept.select(rows.clone()).unwrap();
                let labels = &labels[rows.clone()];
                for (turn, network) in networks().iter().enumerate() {
                    let (index, value) = index_and_value(network);
                    check_support(d, m, &index).unwrap();
                    let w = Weights::new(d, m, &index, &value).unwrap();
                    let key = (100 * round + turn + 1) as u32;
                    let gates = Gates::of(w, signs, tamis::network::gates::Empty::Freeze, 0, key);
                    let [mut expected, mut got] =
                        [vec![0.0; rows.len()], vec![f32::NAN; rows.len()]];
                    plain.forward(gates, w, &mut expected).unwrap();
                    kept.forward(gates, w, &mut got).unwrap();
                    assert_eq!(expected, got, "outputs, {floats} {rows:?} {turn}");
                    let [mut expected, mut got] = [vec![0.0; m * d], vec![f32::NAN; m * d]];
                    plain.gradient(gates, labels, 0..m, &mut expected).unwrap();
                    kept.gradient(gates, labels, 0..m, &mut got).unwrap();
                    assert_eq!(expected, got, "gradient, {floats} {rows:?} {turn}");
                    let _ = plain.hold(gates, &index).unwrap();
                    let _ = kept.hold(gates, &index).unwrap();
                    let used = plain.shared.tiles.pieces(&rows) * plain.shared.held.neurons.len();
                    let used = used * plain.shared.held.words;
                    assert_eq!(plain.shared.held.bits[..used], kept.shared.held.bits[..used]);
                }
            }
        }
    }

    #[test]
    fn only_neurons_that_changed_are_computed() {
        // One tile, so that the activations of a slot are in a row.
        let layout = Layout { tile: DIMS.samples, ..Layout::new(DIMS.hidden, DIMS.inputs) };
        let (_, mut kept, _) = operators(layout.with_activations(DIMS.samples, DIMS.hidden));
        let mut out = vec![0.0; DIMS.samples];
        let mut spoiled = |kept: &mut Blocked, network: &[(u32, u32, f32)], round: u32| {
            let (index, value) = index_and_value(network);
            let w = Weights::new(DIMS.inputs, DIMS.hidden, &index, &value).unwrap();
            let gates = Gates::of(w, Signs::Positive, Default::default(), 0, round);
            kept.forward(gates, w, &mut out).unwrap();
            out.iter().any(|out| *out > 1e30)
        };
        let network = [(0, 1, 0.5), (2, 3, 2.0), (4, 4, -1.0)];
        assert!(!spoiled(&mut kept, &network, 1));
        // Whatever is computed again loses what is put here.
        let slot = kept.shared.activations.places[1].slot;
        kept.groups[0].kept[slot as usize * DIMS.samples] = 2e30;
        assert!(spoiled(&mut kept, &network, 2), "nothing changed");
        assert!(
            spoiled(&mut kept, &[(0, 1, 0.5), (2, 3, 2.0), (4, 4, 1.0)], 3),
            "another neuron changed"
        );
        assert!(spoiled(&mut kept, &[(1, 1, 0.5), (2, 3, 2.0)], 4), "neurons came and went");
        assert!(!spoiled(&mut kept, &[(1, 1, 0.5), (2, 3, 2.5)], 5), "this one changed");
        assert!(!spoiled(&mut kept, &network, 6));
    }

    #[test]
    fn an_evaluation_that_was_ended_leaves_none() {
        let layout =
            Layout::new(DIMS.hidden, DIMS.inputs).with_activations(DIMS.samples, DIMS.hidden);
        let (mut plain, mut kept, _) = operators(layout);
        let (index, value) = index_and_value(&networks()[0]);
        let w = Weights::new(DIMS.inputs, DIMS.hidden, &index, &value).unwrap();
        let gates = |round| Gates::of(w, Signs::Positive, Default::default(), 0, round);
        let [mut expected, mut got] = [vec![0.0; DIMS.samples], vec![0.0; DIMS.samples]];
        let stop = Stop::new();
        kept.heed(Some(stop.clone()));
        stop.ask();
        assert!(kept.forward(gates(1), w, &mut got).is_err());
        assert!(kept.shared.activations.places.is_empty());
        kept.forward(gates(2), w, &mut got).unwrap();
        plain.forward(gates(2), w, &mut expected).unwrap();
        assert_eq!(expected, got);
    }
}
