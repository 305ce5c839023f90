//! Products of networks with several outputs.

use crate::data::Piece;
use crate::error::Error;
use crate::gates::Neurons;
use crate::kernel::Kernel;
use crate::operator::{GpuOperator, len};
use crate::place::{BOUND, Place, Rows, Several};
use crate::restricted::{Mode, TASKS};
use crate::tables::{Entries, by_output, output_weights, rows_by};
use crate::vectors::{GROUP, GpuVectors};
use std::ops::Range;
use tamis::base::error;
use tamis::network::gates::Gates;
use tamis::network::net::{Head, Network};
use tamis::network::weights::{Block, Weights};
use tamis::operator::factored::{Factored, GradientMut, Tangent, provided};
use tamis::operator::machine::Machine as _;
use tamis::operator::sensing::{Done, Sensing as _};
use tamis::operator::tables::Residual;

type Result<T> = tamis::Result<T, Error>;

impl GpuOperator {
    /// d and c, if network and residual fit the operator.
    fn check_net(&self, net: Network<'_>, r: Residual<'_, [u32]>) -> Result<[usize; 2]> {
        net.check(self.data.inputs, self.hidden).map_err(error::Error::widen)?;
        let weighted = usize::from(matches!(net.head(), Head::Weights(_)));
        error::range("network with output weights", weighted, 1, 1)?;
        let (n, c) = (self.batch.len(), net.outputs());
        provided::check_residual::<GpuVectors>(r, n, c).map_err(error::Error::widen)?;
        Ok([self.data.inputs, c])
    }

    /// `out = J p`, a table.
    fn along_to(&mut self, gates: Gates<'_>, tangent: Tangent<'_>, out: &Place) -> Result<()> {
        let Tangent { net, p } = tangent;
        provided::check_tangent(tangent).map_err(error::Error::widen)?;
        self.machine.clear(out, self.batch.len() * net.outputs());
        self.add_outputs(gates, p.w(), net.wt(), out)?;
        self.add_outputs(gates, net.w(), p.wt(), out)
    }

    /// Adds `sum_i (A_i w_i) wt_i^T` to a table.
    fn add_outputs(
        &mut self,
        gates: Gates<'_>,
        w: Weights<'_>,
        wt: Weights<'_>,
        out: &Place,
    ) -> Result<()> {
        let both = |block: &Block<'_>| !wt.block(block.neuron()).is_empty();
        // Sets bits where they are needed.
        self.neurons(gates, w.blocks().filter(both))?;
        let (n, c) = (self.batch.len(), wt.inputs());
        let neurons: Vec<u32> =
            w.blocks().filter(both).map(|block| block.neuron() as u32).collect();
        for neurons in neurons.chunks(self.neurons_at_once(c)) {
            let image = self.activations(gates, w, neurons)?;
            let blocks = neurons.iter().map(|&i| wt.block(i as usize));
            let [places, weights] = by_output(blocks, c);
            let recorder = &mut self.machine.recorder;
            let [places, weights] = [&places, &weights].map(|words| recorder.send(words));
            for rows in recorder.windows(Rows::apart(n, c)) {
                let of = Several { count: neurons.len(), numbers: n };
                let a = image.part_of_each(of, rows.clone());
                let dims = [rows.len(), c, n, a.first].map(|x| x as u32);
                let out = out.rows(&rows, c);
                let places = [places.clone(), weights.clone(), a.place, out];
                recorder.run(Kernel::Outputs, &dims, &places, rows_by(rows.len(), c));
            }
        }
        Ok(())
    }

    /// Neurons whose numbers of all rows, and products with c outputs, are made at a time: a function
    /// of the sizes, since pieces are added up as one, where a device binds what WebGPU does by default.
    fn neurons_at_once(&self, c: usize) -> usize {
        let room = BOUND.min(self.machine.recorder.gpu.binding_limit() as usize / 4);
        let (rows, sums) = (self.batch.len(), self.batch.len().div_ceil(GROUP) * c);
        (room / rows).min(room / sums.max(1)).min(TASKS / c.div_ceil(4).max(1)).max(1)
    }

    /// `R wt_i` of these neurons, n numbers each.
    fn back(&mut self, wt: Weights<'_>, neurons: &[u32], r: &Place) -> Place {
        let (n, c) = (self.batch.len(), wt.inputs());
        let [places, weights] = output_weights(neurons.iter().map(|&i| wt.block(i as usize)));
        let back =
            self.machine.recorder.grow_vector(&mut self.back, "residuals", n * neurons.len());
        let back = Place::from(&back);
        self.machine.project_to(r, &places, &weights, [n, c], &back);
        back
    }

    /// `A_i w_i` of these neurons, n numbers each.
    fn activations(&mut self, gates: Gates<'_>, w: Weights<'_>, of: &[u32]) -> Result<Place> {
        let n = self.batch.len();
        let mut neurons = Neurons::default();
        for &i in of {
            neurons.push(gates.gate(i as usize), w.block(i as usize));
        }
        let image = self.machine.recorder.grow_vector(&mut self.image, "activations", n * of.len());
        let image = Place::from(&image);
        let sizes = |piece: &Piece, first| [piece.row, piece.rows, first, n, 0, 0];
        self.summation().neurons(Kernel::Activations, &neurons, &image, sizes, of.len());
        self.go_on()?;
        Ok(image)
    }
}

/// Adds numbers to others.
fn add(out: &mut [f32], numbers: &[f32]) {
    out.iter_mut().zip(numbers).for_each(|(out, x)| *out += x);
}

impl Factored for GpuOperator {
    /// None: what is made on the way is on the device.
    fn net_scratch(&self, _: usize) -> usize {
        0
    }

    fn net_forward(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        out: &mut [u32],
        _: &mut [f32],
    ) -> Done<Self> {
        net.check(self.data.inputs, self.hidden).map_err(error::Error::widen)?;
        let (n, c) = (self.batch.len(), net.outputs());
        error::length("outputs", len(out), n.saturating_mul(c))?;
        if let Head::Signs(_) = net.head() {
            return self.forward(gates, net.w(), out);
        }
        self.machine.fill(out, 0.0);
        let out = self.machine.place(out);
        self.add_outputs(gates, net.w(), net.wt(), &out)
    }

    fn net_sum_forward(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        open: &mut [u32],
        out: &mut [u32],
        _: &mut [f32],
    ) -> Done<Self> {
        let c = provided::check_sum(self, net, open, out)?;
        let table = self.machine.table(self.batch.len(), c);
        self.machine.clear(&table, self.batch.len() * c);
        self.add_outputs(gates, net.w(), net.wt(), &table)?;
        self.machine.sum(table, c, open, out);
        self.go_on()
    }

    fn net_gradient(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        r: Residual<'_, [u32]>,
        blocks: Range<usize>,
        out: GradientMut<'_>,
        _: &mut [f32],
    ) -> Done<Self> {
        let [d, c] = self.check_net(net, r)?;
        out.check_panel(net, &blocks).map_err(error::Error::widen)?;
        self.set(gates)?;
        let r = self.machine.spread(r, c);
        let of = blocks.start as u32..blocks.end as u32;
        let live: Vec<u32> = self.gates.live.iter().copied().filter(|i| of.contains(i)).collect();
        for live in live.chunks(self.neurons_at_once(c).min(self.panel())) {
            self.go_on()?;
            let back = self.back(net.wt(), live, &r);
            let inner = self.summation().panel_at(live, &back, Mode::Each(live.len()));
            let mut entries = Entries::default();
            for slot in 0..live.len() as u32 {
                entries.push([0, slot], 0..c as u32);
            }
            let image = self.activations(gates, net.w(), live)?;
            let outer = self.machine.transpose_to(&entries, &image, &r, [self.batch.len(), c]);
            let sizes = [(&inner, live.len() * d), (&outer, live.len() * c)];
            let [inner, outer] = self.machine.both_numbers(sizes);
            for (i, line) in live.iter().zip(inner.chunks(d)) {
                add(&mut out.w[(i - of.start) as usize * d..][..d], line);
            }
            for (i, line) in live.iter().zip(outer.chunks(c)) {
                add(&mut out.wt[(i - of.start) as usize * c..][..c], line);
            }
        }
        self.go_on()
    }

    fn net_gradient_at(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        r: Residual<'_, [u32]>,
        out: GradientMut<'_>,
        _: &mut [f32],
    ) -> Done<Self> {
        let [d, c] = self.check_net(net, r)?;
        out.check_support(net).map_err(error::Error::widen)?;
        self.set(gates)?;
        let r = self.machine.spread(r, c);
        let (w, wt) = (net.w(), net.wt());
        let mut neurons: Vec<u32> = w
            .index()
            .iter()
            .map(|j| j / d as u32)
            .chain(wt.index().iter().map(|j| j / c as u32))
            .collect();
        neurons.sort_unstable();
        neurons.dedup();
        let GradientMut { w: mut dw, wt: mut dwt } = out;
        for neurons in neurons.chunks(self.neurons_at_once(c)) {
            self.go_on()?;
            let (mut by_w, mut by_wt) = (Entries::default(), Entries::default());
            for (slot, &i) in (0..).zip(neurons) {
                let open = self.gates.slot(i as usize, self.hidden);
                let (from, to) = (w.block(i as usize), wt.block(i as usize));
                by_w.push([open, slot], from.entries().map(|(j, _)| j as u32));
                by_wt.push([0, slot], to.entries().map(|(k, _)| k as u32));
            }
            let back = self.back(wt, neurons, &r);
            let sums = self.summation().restricted(&by_w, &back, Mode::Each(neurons.len()));
            let (own, rest) = dw.split_at_mut(sums.len());
            own.copy_from_slice(&sums);
            dw = rest;
            let image = self.activations(gates, w, neurons)?;
            let sums = self.machine.transpose_of(&by_wt, &image, &r, [self.batch.len(), c]);
            let (own, rest) = dwt.split_at_mut(sums.len());
            own.copy_from_slice(&sums);
            dwt = rest;
        }
        self.go_on()
    }

    fn net_along(
        &mut self,
        gates: Gates<'_>,
        tangent: Tangent<'_>,
        out: &mut [u32],
        _: &mut [f32],
    ) -> Done<Self> {
        self.check_net(tangent.net, Residual::Each(out))?;
        let out = self.machine.place(out);
        self.along_to(gates, tangent, &out)
    }

    fn net_normal_at(
        &mut self,
        gates: Gates<'_>,
        tangent: Tangent<'_>,
        out: GradientMut<'_>,
        image: &mut [u32],
        scratch: &mut [f32],
    ) -> Done<Self> {
        self.net_along(gates, tangent, image, scratch)?;
        self.net_gradient_at(gates, tangent.net, Residual::Each(image), out, scratch)
    }

    fn net_sum_normal_at(
        &mut self,
        gates: Gates<'_>,
        tangent: Tangent<'_>,
        open: &[u32],
        out: GradientMut<'_>,
        image: &mut [u32],
        scratch: &mut [f32],
    ) -> Done<Self> {
        let c = provided::check_sum(self, tangent.net, open, image)?;
        let table = self.machine.table(self.batch.len(), c);
        self.along_to(gates, tangent, &table)?;
        self.machine.sum_open(table, c, open, image);
        let r = Residual::Open { r: image, open };
        self.net_gradient_at(gates, tangent.net, r, out, scratch)
    }
}
