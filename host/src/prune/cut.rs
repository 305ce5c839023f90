//! Neurons and inputs that go, and what is folded so that the others keep their function.

use super::network::Mlp;
use super::paths::Paths;

impl Mlp {
    /// Keeps these neurons of a hidden layer, rising.
    pub(super) fn keep_neurons(&mut self, hidden: usize, kept: &[usize]) {
        let own = &mut self.layers[hidden];
        let row = |&i: &usize| own.weights[i * own.inputs..(i + 1) * own.inputs].to_vec();
        own.weights = kept.iter().flat_map(row).collect();
        if !own.bias.is_empty() {
            own.bias = kept.iter().map(|&i| own.bias[i]).collect();
        }
        own.outputs = kept.len();
        let next = &mut self.layers[hidden + 1];
        let rows = next.weights.chunks_exact(next.inputs);
        next.weights = rows.flat_map(|row| kept.iter().map(|&i| row[i])).collect();
        next.inputs = kept.len();
        self.layers[hidden].trim_bias();
    }

    /// Takes away the weights of all inputs but these, which alone may be read from then on.
    pub(super) fn keep_inputs(&mut self, kept: &[usize]) {
        let first = &mut self.layers[0];
        let mut stays = vec![false; first.inputs];
        kept.iter().for_each(|&j| stays[j] = true);
        for row in first.weights.chunks_exact_mut(first.inputs) {
            row.iter_mut().zip(&stays).filter(|(_, stays)| !**stays).for_each(|(w, _)| *w = 0.0);
        }
        self.readable = stays;
    }

    /// Takes away the neurons that lie on no path from an input to an output. What one gives that
    /// has a bias and no input is the same in every row, and goes into the biases behind it: the
    /// function stays as it is.
    pub(super) fn compact(&mut self) {
        self.fold_constants();
        let paths = Paths::of(self);
        for hidden in 0..self.layers.len() - 1 {
            let live = &paths.live[hidden + 1];
            let mut kept: Vec<usize> = (0..live.len()).filter(|&i| live[i]).collect();
            // A network of constants keeps a neuron, since a layer has some.
            if kept.is_empty() {
                kept.push(0);
            }
            self.keep_neurons(hidden, &kept);
        }
    }

    /// Adds to the biases behind it what a neuron without input gives, layer by layer.
    pub(super) fn fold_constants(&mut self) {
        // A sum has no bias to add to: neurons below it stay, with their bias alone.
        let last = self.layers.len() - 1 - usize::from(self.is_sum);
        for l in 0..last {
            let (own, next) = self.layers.split_at_mut(l + 1);
            let (own, next) = (&own[l], &mut next[0]);
            for i in 0..own.outputs {
                let row = &own.weights[i * own.inputs..(i + 1) * own.inputs];
                let bias = own.bias.get(i).copied().unwrap_or(0.0);
                if row.iter().any(|&weight| weight != 0.0) {
                    continue;
                }
                let column = || (0..next.outputs).map(|k| k * next.inputs + i);
                if bias > 0.0 && column().any(|at| next.weights[at] != 0.0) {
                    next.bias.resize(next.outputs, 0.0);
                    for (k, at) in column().enumerate() {
                        next.bias[k] += next.weights[at] * bias;
                    }
                }
                column().for_each(|at| next.weights[at] = 0.0);
            }
        }
    }
}
