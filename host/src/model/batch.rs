//! Rows through a model of floats, sixty-four at a time, with the bits that the core gives each by itself:
//!
//! ```text
//! out_i = a(b_i + w_i1 x_1 + w_i2 x_2 + …)     product and sum rounded on their own, entries in turn
//! ```

use std::borrow::Cow;

use pulp::{Arch, Simd};
use tamis::base::error;
use tamis::infer::model::{Activation, Layer, Model, Sum};

use super::rows::by_rows;
use crate::operator::gather::{Element, Gather, used_blocks};
use crate::operator::lanes::{ALL_LANES, Lanes, OverLanes, SumOfNeurons, registers, registers_mut};
use crate::{Error, Result};

/// A model whose layers are ready for batches.
pub(super) struct Batches<'a> {
    layers: Vec<Ready<'a>>,
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    /// The most numbers that each half of the scratch holds: layers read from one and write to the other in turn.
    halves: [usize; 2],
    /// Blocks of input columns that have weights.
    used: Vec<bool>,
    arch: Arch,
}

enum Ready<'a> {
    Sparse(Sparse<'a>),
    Sum(Sum<'a>),
}

/// A sparse layer in rows.
struct Sparse<'a> {
    /// Where the entries of each row end.
    ends: Vec<usize>,
    columns: Cow<'a, [u16]>,
    values: Cow<'a, [f32]>,
    biases: &'a [f32],
    activation: Activation,
}

/// Memory for the activations of a batch.
pub(super) struct Scratch {
    below: Vec<Lanes>,
    above: Vec<Lanes>,
}

impl<'a> Sparse<'a> {
    fn new(layer: &'a Layer<'a>) -> Option<Self> {
        let biases = layer.biases();
        Some(match layer {
            Layer::Csr(csr) => Self {
                ends: ends(csr.counts().iter().map(|&count| count.into())),
                columns: csr.columns().into(),
                values: csr.values().into(),
                biases,
                activation: csr.activation(),
            },
            Layer::Blocks(blocks) => {
                let entries = by_rows(blocks);
                let mut counts = vec![0; blocks.outputs()];
                entries.iter().for_each(|entry| counts[entry.row] += 1);
                Self {
                    ends: ends(counts.into_iter()),
                    columns: entries.iter().map(|entry| entry.column).collect(),
                    values: entries.iter().map(|entry| entry.value).collect(),
                    biases,
                    activation: blocks.activation(),
                }
            }
            _ => return None,
        })
    }
}

fn ends(counts: impl Iterator<Item = usize>) -> Vec<usize> {
    let next = |end: &mut usize, count| {
        *end += count;
        Some(*end)
    };
    counts.scan(0, next).collect()
}

impl<'a> Batches<'a> {
    pub(super) fn new(model: &'a Model<'a>) -> Result<Self> {
        let ready = |layer: &'a Layer<'a>| match (layer, Sparse::new(layer)) {
            (_, Some(sparse)) => Ok(Ready::Sparse(sparse)),
            (Layer::Sum(sum), _) => Ok(Ready::Sum(*sum)),
            _ => Err(Error::new("a layer is of a kind that is not predicted here")
                .expected("a sparse layer, or a sum of neurons")
                .got("another")
                .help("use the tamis that wrote the model")),
        };
        let layers = model.layers().iter().map(ready).collect::<Result<Vec<_>>>()?;
        let (inputs, outputs) = (model.inputs(), model.outputs());
        let mut halves = [inputs, 0];
        for (k, layer) in model.layers().iter().enumerate() {
            let half = &mut halves[(k + 1) % 2];
            *half = layer.outputs().max(*half);
        }
        let used = match layers.first() {
            Some(Ready::Sparse(first)) => {
                used_blocks(inputs, first.columns.iter().map(|&column| column.into()))
            }
            _ => used_blocks(inputs, 0..inputs),
        };
        Ok(Self { layers, inputs, outputs, halves, used, arch: Arch::new() })
    }

    pub(super) fn scratch(&self) -> Scratch {
        let [below, above] = self.halves.map(|numbers| vec![Lanes::ZERO; numbers]);
        Scratch { below, above }
    }

    /// Writes the predictions of at most 64 rows, row by row, to `out`.
    ///
    /// # Errors
    /// Rows of another length.
    pub(super) fn predict<T: Element>(
        &self,
        rows: &[T],
        scratch: &mut Scratch,
        out: &mut [f32],
    ) -> Result<()> {
        let (c, arch) = (self.outputs.max(1), self.arch);
        let count = out.len() / c;
        error::length("numbers of the rows", rows.len(), count * self.inputs)?;
        let Scratch { below, above } = scratch;
        let (mut below, mut above) = (below.as_mut_slice(), above.as_mut_slice());
        arch.dispatch(Gather {
            data: rows,
            rows: &ALL_LANES[..count],
            scale: 1.0,
            used: &self.used,
            out: &mut below[..self.inputs],
        });
        for layer in &self.layers {
            match layer {
                Ready::Sparse(layer) => Apply { layer, below, out: above }.on(arch),
                Ready::Sum(end) => {
                    let (signs, neurons) = (end.signs(), &below[..end.inputs()]);
                    arch.dispatch(SumOfNeurons { signs, neurons, out: &mut above[0] });
                }
            }
            std::mem::swap(&mut below, &mut above);
        }
        for (lane, out) in out.chunks_exact_mut(c).enumerate() {
            out.iter_mut().zip(&below[..self.outputs]).for_each(|(out, of)| *out = of.0[lane]);
        }
        Ok(())
    }
}

/// One sparse layer of a batch.
struct Apply<'a> {
    layer: &'a Sparse<'a>,
    below: &'a [Lanes],
    out: &'a mut [Lanes],
}

impl OverLanes for Apply<'_> {
    #[inline(always)]
    fn run<S: Simd, const N: usize, const M: usize>(self, simd: S) {
        let Self { layer, below, out } = self;
        let Sparse { ends, columns, values, biases, activation } = layer;
        let mut start = 0;
        for (i, (out, &end)) in out.iter_mut().zip(ends).enumerate() {
            let mut sums = [simd.splat_f32s(biases.get(i).copied().unwrap_or(0.0)); N];
            for (&column, &value) in columns[start..end].iter().zip(&values[start..end]) {
                let (w, x) =
                    (simd.splat_f32s(value), registers::<S, N>(&below[usize::from(column)]));
                for v in 0..N {
                    sums[v] = simd.add_f32s(sums[v], simd.mul_f32s(w, x[v]));
                }
            }
            *registers_mut::<S, N>(out) = sums;
            out.0.iter_mut().for_each(|x| *x = activation.of(*x));
            start = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis::infer::model::{Blocks, Csr};

    /// Numbers of many digits, some of them negative.
    fn numbers(count: usize, salt: usize) -> Vec<f32> {
        (0..count).map(|k| ((k * 7919 + salt * 31) % 1009) as f32 / 337.0 - 1.3).collect()
    }

    fn assert_same<T: Element>(model: &Model<'_>, rows: &[T], count: usize)
    where
        [T]: tamis::infer::model::Input,
    {
        let (d, c) = (model.inputs(), model.outputs());
        let batches = Batches::new(model).unwrap();
        let mut out = vec![f32::NAN; count * c];
        batches.predict(&rows[..count * d], &mut batches.scratch(), &mut out).unwrap();
        let (mut scratch, mut wanted) = (vec![0.0; model.scratch_len()], vec![0.0; c]);
        for (row, out) in rows.chunks(d).zip(out.chunks(c)) {
            model.predict_from(row, &mut scratch, &mut wanted).unwrap();
            let bits = |of: &[f32]| of.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(out), bits(&wanted), "{count} rows");
        }
    }

    #[test]
    fn batches_have_the_bits_of_the_core() {
        let d = 300;
        let counts = [40_u16, 0, 17, 3];
        let columns: Vec<u16> =
            counts.iter().flat_map(|&n| (0..n).map(move |k| 7 * k + n % 5)).collect();
        let (values, biases) = (numbers(60, 1), numbers(4, 2));
        let first = Csr::new(d, &counts, &columns, &values, Activation::Relu).unwrap();
        let first = Layer::Csr(first.with_biases(&biases).unwrap());
        let end = numbers(5, 3);
        let last = Csr::new(4, &[3, 2], &[0, 1, 3, 1, 2], &end, Activation::Identity).unwrap();
        let sum = Layer::Sum(Sum::new(4, &[0b0110]).unwrap());
        let six = numbers(6, 4);
        let windows =
            Blocks::new(d, 2, &[2, 1, 1, 2], &[0, 255, 9, 216, 230, 255], &six, Activation::Relu);
        let windows = Layer::Blocks(windows.unwrap());
        let floats = numbers(64 * d, 5);
        let bytes: Vec<u8> = (0..64 * d).map(|k| (k * 113 % 251) as u8).collect();
        for layers in [&[first, Layer::Csr(last)][..], &[first, sum], &[windows]] {
            let model = Model::new(layers).unwrap();
            for count in [1, 2, 63, 64] {
                assert_same(&model, &floats, count);
                assert_same(&model, &bytes, count);
            }
        }
    }

    #[test]
    fn no_rows_have_no_predictions() {
        use crate::data::{Matrix, Values};
        use crate::model::predict::predict_rows;
        let end = Csr::new(3, &[1], &[2], &[1.0], Activation::Identity).unwrap();
        let model = Model::new(&[Layer::Csr(end)]).unwrap();
        let none = |columns| Matrix::new(0, columns, Values::F32(Vec::new())).unwrap();
        assert!(predict_rows(&model, &none(3)).unwrap().is_empty());
        assert!(predict_rows(&model, &none(2)).unwrap_err().to_string().contains("input row"));
    }
}
