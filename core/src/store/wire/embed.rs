//! Models that the compiler reads: [`embed_model!`](crate::embed_model) and
//! [`embed_quantised!`](crate::embed_quantised).
//!
//! A file is checked and taken apart while the program is built: its arrays become arrays of
//! numbers, its layers a [`model::Chain`] or [`quantised::Chain`] in a `static`, and neither the
//! file nor a check is linked. What is public here is for these macros.

use super::head::Head;
use super::integers::scales;
use super::layer::{RawLayer, Walk};
use super::reader::head;
use super::{TAG_CSR, TAG_DENSE, TAG_MASK, TAG_SUM, TAG_WINDOWS};
use crate::base::error::{length, tri};
use crate::infer::model::{self, Activation, Sum};
use crate::infer::quantised::{self, Scales, Weights};
use crate::{Error, Result};

/// What the numbers of an array are.
#[derive(Clone, Copy)]
enum Kind {
    Byte,
    Weight,
    Column,
    Word,
    Bias,
    Float,
    Pair,
}

/// The arrays of a layer, in the order in which pools hold them.
type Arrays<'a> = [(Kind, &'a [u8]); 5];

/// The layers of a file, one by one.
struct Layers<'a> {
    walk: Walk<'a>,
    is_integers: bool,
    ended: bool,
}

impl<'a> Layers<'a> {
    const fn new(file: &'a [u8], is_integers: bool) -> Result<Self> {
        let (mut reader, ..) = tri!(head(file));
        if is_integers {
            tri!(scales(&mut reader));
        }
        Ok(Self { walk: Walk::new(reader), is_integers, ended: false })
    }

    const fn next(&mut self) -> Result<Option<RawLayer<'a>>> {
        if !self.is_integers {
            return self.walk.floats();
        }
        let layer = tri!(self.walk.integers(self.ended));
        self.ended = matches!(&layer, Some(raw) if raw.head.tag == TAG_SUM);
        Ok(layer)
    }
}

const fn arrays<'a>(raw: &RawLayer<'a>) -> Arrays<'a> {
    const NONE: (Kind, &[u8]) = (Kind::Byte, &[]);
    let [a, b, c] = raw.arrays;
    let [a, b, c] = match raw.head.tag {
        TAG_CSR => [(Kind::Column, a), (Kind::Column, b), (Kind::Float, c)],
        TAG_WINDOWS => [(Kind::Byte, a), (Kind::Byte, b), (Kind::Float, c)],
        TAG_SUM => [(Kind::Word, a), NONE, NONE],
        TAG_DENSE => [(Kind::Weight, a), NONE, NONE],
        TAG_MASK => [(Kind::Word, a), (Kind::Weight, b), NONE],
        _ => [(Kind::Byte, a), (Kind::Pair, b), NONE],
    };
    [(Kind::Word, raw.rescale), (Kind::Bias, raw.bias), a, b, c]
}

/// How many layers a file has, without the sum of one of integers, and numbers of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    /// Layers.
    pub layers: usize,
    /// Counts and indices of `u8`.
    pub bytes: usize,
    /// Weights of `i8`.
    pub weights: usize,
    /// Columns and counts of `u16`.
    pub columns: usize,
    /// Factors, bits and signs of `u32`.
    pub words: usize,
    /// Biases of `i32`.
    pub biases: usize,
    /// Weights of `f32`.
    pub floats: usize,
    /// Pairs of an index and a weight.
    pub pairs: usize,
}

impl Lengths {
    /// Those of a model of integers, or else of floats.
    ///
    /// # Errors
    /// As [`View::parse`](super::View::parse) and
    /// [`QuantisedView::parse`](super::QuantisedView::parse) where the structure of the file is
    /// wrong.
    pub const fn of(file: &[u8], integers: bool) -> Result<Self> {
        let (layers, bytes, weights, columns, words) = (0, 0, 0, 0, 0);
        let mut all =
            Self { layers, bytes, weights, columns, words, biases: 0, floats: 0, pairs: 0 };
        let mut left = tri!(Layers::new(file, integers));
        while let Some(layer) = tri!(left.next()) {
            all.layers += !(integers && layer.head.tag == TAG_SUM) as usize;
            let arrays = arrays(&layer);
            let mut arrays: &[(Kind, &[u8])] = &arrays;
            while let [(kind, bytes), behind @ ..] = arrays {
                match kind {
                    Kind::Byte => all.bytes += bytes.len(),
                    Kind::Weight => all.weights += bytes.len(),
                    Kind::Column => all.columns += bytes.len() / 2,
                    Kind::Word => all.words += bytes.len() / 4,
                    Kind::Bias => all.biases += bytes.len() / 4,
                    Kind::Float => all.floats += bytes.len() / 4,
                    Kind::Pair => all.pairs += bytes.len() / 2,
                }
                arrays = behind;
            }
        }
        Ok(all)
    }
}

/// All numbers of one kind, layer after layer.
macro_rules! pool {
    ($(#[$doc:meta] $name:ident: $type:ty = $zero:expr, $kind:ident, $number:expr;)*) => {
        $(
            #[$doc]
            ///
            /// # Errors
            /// As [`Lengths::of`].
            pub const fn $name<const N: usize>(file: &[u8], integers: bool) -> Result<[$type; N]> {
                let mut numbers: [$type; N] = [$zero; N];
                let mut slots: &mut [$type] = &mut numbers;
                let mut left = tri!(Layers::new(file, integers));
                while let Some(layer) = tri!(left.next()) {
                    let arrays = arrays(&layer);
                    let mut arrays: &[(Kind, &[u8])] = &arrays;
                    while let [(kind, bytes), behind @ ..] = arrays {
                        let mut bytes = if matches!(kind, Kind::$kind) { *bytes } else { &[] };
                        while let Some((number, more)) = bytes.split_first_chunk()
                            && let [slot, others @ ..] = slots
                        {
                            *slot = $number(*number);
                            (bytes, slots) = (more, others);
                        }
                        arrays = behind;
                    }
                }
                Ok(numbers)
            }
        )*
    };
}
pool! {
    /// Counts and indices.
    bytes: u8 = 0, Byte, u8::from_le_bytes;
    /// Weights of integers.
    weights: i8 = 0, Weight, i8::from_le_bytes;
    /// Columns and counts.
    columns: u16 = 0, Column, u16::from_le_bytes;
    /// Factors, bits and signs.
    words: u32 = 0, Word, u32::from_le_bytes;
    /// Biases.
    biases: i32 = 0, Bias, i32::from_le_bytes;
    /// Weights of floats.
    floats: f32 = 0.0, Float, f32::from_le_bytes;
    /// Pairs of an index and a weight.
    pairs: [u8; 2] = [0; 2], Pair, pair;
}

const fn pair(bytes: [u8; 2]) -> [u8; 2] {
    bytes
}

/// Numbers that no layer has taken yet.
#[derive(Debug, Clone, Copy)]
pub struct Pools<'a> {
    /// Of [`bytes`].
    pub bytes: &'a [u8],
    /// Of [`weights`].
    pub weights: &'a [i8],
    /// Of [`columns`].
    pub columns: &'a [u16],
    /// Of [`words`].
    pub words: &'a [u32],
    /// Of [`biases`].
    pub biases: &'a [i32],
    /// Of [`floats`].
    pub floats: &'a [f32],
    /// Of [`pairs`].
    pub pairs: &'a [[u8; 2]],
}

/// The next numbers of a pool, as many as the array of a file has.
macro_rules! take {
    ($pool:expr, $array:expr, $size:literal) => {{
        let Some((taken, behind)) = $pool.split_at_checked($array.len() / $size) else {
            return Err(SHORT);
        };
        $pool = behind;
        taken
    }};
}
const SHORT: Error = Error::Length { what: "numbers of a pool", expected: 0, got: 0 };

/// The layers of a model of floats.
///
/// # Errors
/// Those of [`View::parse`](super::View::parse) but for the address, and [`Error::Length`] where
/// the pools are not those of the file.
pub const fn model<'a, const N: usize>(
    file: &[u8],
    pools: Pools<'a>,
) -> Result<[model::Layer<'a>; N]> {
    const FIRST: Result<Sum<'static>> = Sum::new(0, &[]);
    let (_, inputs, outputs) = tri!(head(file));
    let mut layers = [model::Layer::Sum(tri!(FIRST)); N];
    let (mut pools, mut slots) = (pools, layers.as_mut_slice());
    let mut left = tri!(Layers::new(file, false));
    while let Some(layer) = tri!(left.next()) {
        let [slot, behind @ ..] = slots else { return Err(SHORT) };
        *slot = tri!(float_layer(&layer, &mut pools));
        slots = behind;
    }
    let chain: model::Chain<'_> = tri!(model::Chain::new(&layers));
    tri!(length("inputs of the model", chain.inputs(), inputs as usize));
    tri!(length("outputs of the model", chain.outputs(), outputs as usize));
    if let Some(task) = left.walk.task {
        tri!(task.check(outputs as usize));
    }
    Ok(layers)
}

const fn float_layer<'a>(raw: &RawLayer<'_>, pools: &mut Pools<'a>) -> Result<model::Layer<'a>> {
    let Head { inputs, outputs, activation, requested, .. } = raw.head;
    let [a, b, c] = raw.arrays;
    match raw.head.tag {
        TAG_CSR => {
            let (counts, columns) = (take!(pools.columns, a, 2), take!(pools.columns, b, 2));
            let values = take!(pools.floats, c, 4);
            let csr = tri!(model::Csr::new(inputs, counts, columns, values, activation));
            Ok(model::Layer::Csr(tri!(csr.with_requested(requested))))
        }
        TAG_WINDOWS => {
            let (counts, indices) = (take!(pools.bytes, a, 1), take!(pools.bytes, b, 1));
            let values = take!(pools.floats, c, 4);
            let blocks =
                tri!(model::Blocks::new(inputs, outputs, counts, indices, values, activation));
            Ok(model::Layer::Blocks(tri!(blocks.with_requested(requested))))
        }
        _ => Ok(model::Layer::Sum(tri!(Sum::new(inputs, take!(pools.words, a, 4))))),
    }
}

/// The layers of a model of integers, the sum behind them, and what the integers stand for.
///
/// # Errors
/// Those of [`QuantisedView::parse`](super::QuantisedView::parse) but for the address, and
/// [`Error::Length`] where the pools are not those of the file.
pub const fn quantised<'a, const N: usize>(
    file: &[u8],
    pools: Pools<'a>,
) -> Result<([quantised::Layer<'a>; N], Option<Sum<'a>>, Scales)> {
    const EMPTY: Result<quantised::Dense<'static>> = quantised::Dense::new(0, 0, &[]);
    let (mut reader, inputs, outputs) = tri!(head(file));
    let scales = tri!(scales(&mut reader));
    let empty =
        tri!(quantised::Layer::new(Weights::Dense(tri!(EMPTY)), &[], &[], Activation::Identity));
    let (mut layers, mut sum) = ([empty; N], None);
    let (mut pools, mut slots) = (pools, layers.as_mut_slice());
    let mut left = tri!(Layers::new(file, true));
    while let Some(layer) = tri!(left.next()) {
        if layer.head.tag == TAG_SUM {
            let signs = take!(pools.words, layer.arrays[0], 4);
            sum = Some(tri!(Sum::new(layer.head.inputs, signs)));
            continue;
        }
        let [slot, behind @ ..] = slots else { return Err(SHORT) };
        *slot = tri!(integer_layer(&layer, &mut pools));
        slots = behind;
    }
    let chain: quantised::Chain<'_> = tri!(quantised::Chain::new(&layers, sum, scales));
    tri!(length("inputs of the model", chain.inputs(), inputs as usize));
    tri!(length("outputs of the model", chain.outputs(), outputs as usize));
    if let Some(task) = left.walk.task {
        tri!(task.check(outputs as usize));
    }
    Ok((layers, sum, scales))
}

const fn integer_layer<'a>(
    raw: &RawLayer<'_>,
    pools: &mut Pools<'a>,
) -> Result<quantised::Layer<'a>> {
    let Head { inputs, outputs, nonzeros, activation, requested, .. } = raw.head;
    let [a, b, _] = raw.arrays;
    let (rescale, bias) = (take!(pools.words, raw.rescale, 4), take!(pools.biases, raw.bias, 4));
    let weights = match raw.head.tag {
        TAG_DENSE => {
            Weights::Dense(tri!(quantised::Dense::new(inputs, outputs, take!(pools.weights, a, 1))))
        }
        TAG_MASK => {
            let (bits, values) = (take!(pools.words, a, 4), take!(pools.weights, b, 1));
            Weights::Mask(tri!(quantised::Mask::new(inputs, outputs, bits, values)))
        }
        _ => {
            let (counts, pairs) = (take!(pools.bytes, a, 1), take!(pools.pairs, b, 2));
            Weights::Blocks(tri!(quantised::Blocks::new(inputs, outputs, counts, pairs)))
        }
    };
    tri!(length("weights of a layer", weights.nonzeros(), nonzeros));
    tri!(quantised::Layer::new(weights, rescale, bias, activation)).with_requested(requested)
}

/// A value that was checked, or the end of the compilation.
#[doc(hidden)]
#[macro_export]
macro_rules! embedded {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) => panic!("{}", error.what()),
        }
    };
}

/// The pools of a file.
#[doc(hidden)]
#[macro_export]
macro_rules! embedded_pools {
    ($file:ident, $integers:literal) => {
        #[allow(long_running_const_eval)]
        const LENGTHS: $crate::store::wire::embed::Lengths =
            $crate::embedded!($crate::store::wire::embed::Lengths::of($file, $integers));
        #[allow(long_running_const_eval)]
        static BYTES: [u8; LENGTHS.bytes] =
            $crate::embedded!($crate::store::wire::embed::bytes($file, $integers));
        #[allow(long_running_const_eval)]
        static WEIGHTS: [i8; LENGTHS.weights] =
            $crate::embedded!($crate::store::wire::embed::weights($file, $integers));
        #[allow(long_running_const_eval)]
        static COLUMNS: [u16; LENGTHS.columns] =
            $crate::embedded!($crate::store::wire::embed::columns($file, $integers));
        #[allow(long_running_const_eval)]
        static WORDS: [u32; LENGTHS.words] =
            $crate::embedded!($crate::store::wire::embed::words($file, $integers));
        #[allow(long_running_const_eval)]
        static BIASES: [i32; LENGTHS.biases] =
            $crate::embedded!($crate::store::wire::embed::biases($file, $integers));
        #[allow(long_running_const_eval)]
        static FLOATS: [f32; LENGTHS.floats] =
            $crate::embedded!($crate::store::wire::embed::floats($file, $integers));
        #[allow(long_running_const_eval)]
        static PAIRS: [[u8; 2]; LENGTHS.pairs] =
            $crate::embedded!($crate::store::wire::embed::pairs($file, $integers));
        const POOLS: $crate::store::wire::embed::Pools<'static> =
            $crate::store::wire::embed::Pools {
                bytes: &BYTES,
                weights: &WEIGHTS,
                columns: &COLUMNS,
                words: &WORDS,
                biases: &BIASES,
                floats: &FLOATS,
                pairs: &PAIRS,
            };
    };
}

/// A model of floats that the compiler reads from its file: a `&'static`
/// [`model::Chain`](crate::infer::model::Chain).
///
/// The path is relative to the file that calls, as for [`include_bytes!`]. The file is checked when
/// the program is built, as [`View::parse`](crate::store::wire::View::parse) checks it; what is
/// linked is its numbers, its layers and the kernels that they need.
///
/// ```
/// let model = tamis::embed_model!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wire_golden.tamis"));
/// let mut f = [0.0];
/// model.predict(&[3.0, 0.25, 1.0], &mut [], &mut f)?;
/// assert_eq!(f, [2.0]);
/// # Ok::<(), tamis::Error>(())
/// ```
///
/// A file that is damaged does not compile; in this one a bit is flipped:
///
/// ```compile_fail,E0080
/// let model = tamis::embed_model!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wire_damaged.tamis"));
/// ```
#[macro_export]
macro_rules! embed_model {
    ($path:expr $(,)?) => {{
        const FILE: &[u8] = include_bytes!($path);
        $crate::embedded_pools!(FILE, false);
        #[allow(long_running_const_eval)]
        const LAYERS: [$crate::infer::model::Layer<'static>; LENGTHS.layers] =
            $crate::embedded!($crate::store::wire::embed::model(FILE, POOLS));
        static MODEL: $crate::infer::model::Chain<
            'static,
            { $crate::infer::model::Chain::kernels(&LAYERS) },
        > = $crate::embedded!($crate::infer::model::Chain::new(&LAYERS));
        &MODEL
    }};
}

/// A model of integers that the compiler reads from its file: a `&'static`
/// [`quantised::Chain`](crate::infer::quantised::Chain).
///
/// As [`embed_model!`](crate::embed_model), for the files that `tamis quantize` writes.
///
/// ```
/// let model = tamis::embed_quantised!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wire_integers.tamis"));
/// // h = (relu((8 x_0 - 4 x_2) / 8), relu(16 x_1 / 8)), y = (100 h_0 + 7, 25 h_1 - 100 h_0 - 9)
/// let mut y = [0; 2];
/// model.predict(&[3, 5, 2], &mut [0; 3], &mut y)?;
/// assert_eq!(y, [207, 41]);
/// assert_eq!(model.class(&y), 0);
/// # Ok::<(), tamis::Error>(())
/// ```
///
/// A model of floats is none of integers:
///
/// ```compile_fail,E0080
/// let model = tamis::embed_quantised!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wire_golden.tamis"));
/// ```
#[macro_export]
macro_rules! embed_quantised {
    ($path:expr $(,)?) => {{
        const FILE: &[u8] = include_bytes!($path);
        $crate::embedded_pools!(FILE, true);
        #[allow(long_running_const_eval)]
        const PARTS: (
            [$crate::infer::quantised::Layer<'static>; LENGTHS.layers],
            Option<$crate::infer::model::Sum<'static>>,
            $crate::infer::quantised::Scales,
        ) = $crate::embedded!($crate::store::wire::embed::quantised(FILE, POOLS));
        static MODEL: $crate::infer::quantised::Chain<
            'static,
            { $crate::infer::quantised::Chain::kernels(&PARTS.0) },
        > = $crate::embedded!($crate::infer::quantised::Chain::new(&PARTS.0, PARTS.1, PARTS.2));
        &MODEL
    }};
}
