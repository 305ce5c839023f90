//! A random model with a row, its counts, and the words that put it into flash.

use crate::cost::{Around, Core, Estimate, Kernel, Numbers, Work, float_work, integer_work};
use tamis::infer::price::{PER_INSTRUCTION, cost};
use tamis::store::wire::{Aligned, QuantisedView, View};
use tamis_tests::cases::Digest;

/// Bytes of the longest model.
pub(super) const LONGEST: usize = 1 << 16;

/// Behind the last model.
pub(crate) const END: [u32; 4] = [u32::MAX; 4];

/// A model file, or the weights of a dense layer of floats.
#[derive(Debug, Clone)]
pub(crate) struct Drawn {
    /// Layers and encodings, for people.
    pub(crate) name: String,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) content: Content,
    /// The row in bytes.
    pub(super) row: Vec<u8>,
    /// Of the outputs on the row.
    pub(crate) digest: u32,
}

/// What a board is given.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    DenseFloats { inputs: usize, outputs: usize, weights: Vec<u8> },
    Floats(Vec<u8>),
    Integers(Vec<u8>),
}

/// What is counted in a prediction.
#[derive(Debug, Clone)]
pub(crate) struct Counts {
    pub(crate) numbers: Numbers,
    pub(crate) around: Around,
    pub(crate) layers: Vec<(Kernel, Work)>,
}

pub(super) fn bytes_of(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub(super) fn digest(words: impl Iterator<Item = u32>) -> u32 {
    let mut digest = Digest::default();
    words.for_each(|word| digest.word(word));
    digest.value()
}

pub(super) fn aligned(bytes: &[u8]) -> Box<Aligned<[u8; LONGEST]>> {
    let mut buffer = Box::new(Aligned([0; LONGEST]));
    buffer.0[..bytes.len()].copy_from_slice(bytes);
    buffer
}

impl Drawn {
    /// Of the bytes of a file of either kind, to estimate only.
    pub(crate) fn of_file(name: String, bytes: Vec<u8>) -> Self {
        let is_integers = QuantisedView::parse(&aligned(&bytes).0[..bytes.len()]).is_ok();
        let content = if is_integers { Content::Integers(bytes) } else { Content::Floats(bytes) };
        Self { name, kernels: Vec::new(), content, row: Vec::new(), digest: 0 }
    }

    /// The model in memory as its kind asks for.
    pub(crate) fn read<T>(
        &self,
        dense: impl FnOnce(usize, usize) -> T,
        floats: impl FnOnce(View<'_>) -> T,
        integers: impl FnOnce(QuantisedView<'_>) -> T,
    ) -> T {
        match &self.content {
            Content::DenseFloats { inputs, outputs, .. } => dense(*inputs, *outputs),
            Content::Floats(bytes) => {
                floats(View::parse(&aligned(bytes).0[..bytes.len()]).expect("written here"))
            }
            Content::Integers(bytes) => integers(
                QuantisedView::parse(&aligned(bytes).0[..bytes.len()]).expect("written here"),
            ),
        }
    }

    /// What is counted.
    pub(crate) fn counts(&self) -> Counts {
        self.read(
            |inputs, outputs| {
                let mut around = Around::PREDICTION;
                add(&mut around, Around::of_dense_floats(outputs, true));
                let layers = vec![(Kernel::DenseFloats, Work::dense(inputs, outputs))];
                Counts { numbers: Numbers::Floats, around, layers }
            },
            |view| {
                let (mut around, mut layers) = (Around::PREDICTION, Vec::new());
                for (at, layer) in view.model().layers().iter().enumerate() {
                    add(&mut around, Around::of_floats(view.model().layers(), at));
                    layers
                        .extend(Kernel::of_floats(layer).map(|kernel| (kernel, float_work(layer))));
                }
                Counts { numbers: Numbers::Floats, around, layers }
            },
            |view| {
                let (mut around, mut layers) = (Around::PREDICTION, Vec::new());
                let (model, count) = (view.model(), view.model().layers().len());
                for (at, layer) in model.layers().iter().enumerate() {
                    add(
                        &mut around,
                        Around::of_integers(layer, at + 1 == count && model.sum().is_none()),
                    );
                    layers.push((
                        Kernel::of_integers(layer.weights()),
                        integer_work(layer.weights()),
                    ));
                }
                if let Some(sum) = model.sum() {
                    add(&mut around, Around::of_sum(sum.inputs()));
                }
                Counts { numbers: Numbers::Integers, around, layers }
            },
        )
    }

    /// What the host says of it on a core.
    pub(crate) fn estimate(&self, core: Core) -> Estimate {
        self.read(
            |inputs, outputs| {
                // The loop has ReLU, as a hidden layer; an estimate takes a last layer for one
                // without.
                let relu = Around::of_dense_floats(outputs, true);
                let relu = cost(&relu.0, &core.prices().around[0]);
                let mut estimate = Estimate::of_dense(&[[inputs, outputs]], Numbers::Floats, core);
                estimate.instructions += relu / PER_INSTRUCTION;
                estimate
            },
            |view| Estimate::of_floats(&view, core),
            |view| Estimate::of_integers(&view, core),
        )
    }

    /// Words in flash: a head, the row, the model.
    pub(super) fn words(&self) -> Vec<u32> {
        let (kind, outputs, model) = match &self.content {
            Content::DenseFloats { outputs, weights, .. } => (0, *outputs, weights),
            Content::Floats(bytes) => (1, 0, bytes),
            Content::Integers(bytes) => (2, 0, bytes),
        };
        let mut words = vec![kind, outputs as u32, self.row.len() as u32, model.len() as u32];
        for bytes in [&self.row, model] {
            words.extend(bytes.chunks(4).map(|chunk| {
                chunk.iter().rev().fold(0_u32, |word, &byte| word << 8 | u32::from(byte))
            }));
        }
        words
    }
}

pub(super) fn add(sum: &mut Around, more: Around) {
    sum.0.iter_mut().zip(more.0).for_each(|(sum, more)| *sum += more);
}

/// Models in files of at most `most` bytes, with what each file holds.
pub(crate) fn batches(models: &[Drawn], most: usize) -> Vec<(Vec<u8>, Vec<&Drawn>)> {
    let mut batches: Vec<(Vec<u32>, Vec<&Drawn>)> = vec![(Vec::new(), Vec::new())];
    for model in models {
        let words = model.words();
        let full = batches
            .last()
            .is_some_and(|(held, _)| 4 * (held.len() + words.len() + END.len()) > most);
        if full {
            batches.push((Vec::new(), Vec::new()));
        }
        if let Some((held, of)) = batches.last_mut() {
            held.extend(words);
            of.push(model);
        }
    }
    let bytes = |words: Vec<u32>| words.into_iter().chain(END).flat_map(u32::to_le_bytes).collect();
    batches.into_iter().map(|(words, models)| (bytes(words), models)).collect()
}
