//! Models that the compiler reads: [`embed_model!`](crate::embed_model) and
//! [`embed_quantised!`](crate::embed_quantised).
//!
//! A file is checked and taken apart while the program is built: its arrays become an array of
//! words, its layers a [`model::Chain`] or [`quantised::Chain`] in a `static`, and neither the file
//! nor a check is linked. What is public here is for these macros.

use super::TAG_SUM;
use super::integers::{check_columns, columns, scales};
use super::layer::{RawLayer, Walk, float_layer, integer_layer};
use super::names::{Names, Texts};
use super::reader::head;
use crate::base::error::{length, tri};
use crate::infer::model::{self, Activation, Sum};
use crate::infer::quantised::{self, Dense, Scales, Weights};
use crate::{Error, Result};

/// The layers of a file, one by one.
struct Layers<'a> {
    walk: Walk<'a>,
    inputs: usize,
    outputs: usize,
    /// Of a model of integers.
    scales: Option<Scales>,
    has_sum: bool,
}

impl<'a> Layers<'a> {
    const fn new(file: &'a [u8], is_integers: bool) -> Result<Self> {
        let (mut reader, inputs, outputs) = tri!(head(file));
        let scales = if is_integers { Some(tri!(scales(&mut reader))) } else { None };
        let (inputs, outputs) = (inputs as usize, outputs as usize);
        if is_integers && let Some(payload) = tri!(columns(&mut reader)) {
            tri!(check_columns(payload, inputs));
        }
        Ok(Self { walk: Walk::new(reader), inputs, outputs, scales, has_sum: false })
    }

    const fn next(&mut self) -> Result<Option<RawLayer<'a>>> {
        let raw = match self.scales {
            Some(_) => tri!(self.walk.integers(self.has_sum)),
            None => tri!(self.walk.floats()),
        };
        self.has_sum = matches!(&raw, Some(raw) if raw.head.tag == TAG_SUM);
        Ok(raw)
    }

    /// Checks the numbers that all layers together take and give, and the task.
    const fn end(&self, inputs: usize, outputs: usize) -> Result<()> {
        tri!(length("inputs of the model", inputs, self.inputs));
        tri!(length("outputs of the model", outputs, self.outputs));
        match self.walk.task {
            Some(task) => task.check(outputs),
            None => Ok(()),
        }
    }
}

/// How many layers a file has, without the sum of one of integers, and words of their arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    /// Layers.
    pub layers: usize,
    /// Words of all arrays.
    pub words: usize,
}

impl Lengths {
    /// Those of a model of integers, or else of floats; an error where the structure is wrong.
    pub const fn of(file: &[u8], integers: bool) -> Result<Self> {
        let mut all = Self { layers: 0, words: 0 };
        let mut left = tri!(Layers::new(file, integers));
        while let Some(raw) = tri!(left.next()) {
            all.layers += !(integers && raw.head.tag == TAG_SUM) as usize;
            all.words += raw.body.len() / 4;
        }
        Ok(all)
    }
}

/// All arrays, layer after layer, each from a whole word on.
pub const fn words<const N: usize>(file: &[u8], integers: bool) -> Result<[u32; N]> {
    let mut words = [0; N];
    let mut slots = words.as_mut_slice();
    let mut left = tri!(Layers::new(file, integers));
    while let Some(RawLayer { mut body, .. }) = tri!(left.next()) {
        while let Some((word, behind)) = body.split_first_chunk()
            && let [slot, others @ ..] = slots
        {
            *slot = u32::from_le_bytes(*word);
            (body, slots) = (behind, others);
        }
    }
    Ok(words)
}

/// The words of this layer, and those behind them.
const fn split<'a>(words: &'a [u32], raw: &RawLayer<'_>) -> Result<(&'a [u32], &'a [u32])> {
    match words.split_at_checked(raw.body.len() / 4) {
        Some(split) => Ok(split),
        None => Err(SHORT),
    }
}

const SHORT: Error = Error::Length { what: "words of a file", expected: 0, got: 0 };

/// The layers of a model of floats on its [`words`], checked as
/// [`View::parse`](super::View::parse) does.
pub const fn model<'a, const N: usize>(
    file: &[u8],
    words: &'a [u32],
) -> Result<[model::Layer<'a>; N]> {
    const EMPTY: Result<Sum<'static>> = Sum::new(0, &[]);
    let mut layers = [model::Layer::Sum(tri!(EMPTY)); N];
    let (mut words, mut slots) = (words, layers.as_mut_slice());
    let mut left = tri!(Layers::new(file, false));
    while let Some(raw) = tri!(left.next()) {
        let [slot, behind @ ..] = slots else { return Err(SHORT) };
        let (own, others) = tri!(split(words, &raw));
        *slot = tri!(float_layer(&raw.head, own));
        (slots, words) = (behind, others);
    }
    let chain: model::Chain<'_> = tri!(model::Chain::new(&layers));
    tri!(left.end(chain.inputs(), chain.outputs()));
    Ok(layers)
}

/// The layers of a model of integers on its [`words`], the sum behind them, and what the integers
/// stand for; checked as [`QuantisedView::parse`](super::QuantisedView::parse) does.
pub const fn quantised<'a, const N: usize>(
    file: &[u8],
    words: &'a [u32],
) -> Result<([quantised::Layer<'a>; N], Option<Sum<'a>>, Scales)> {
    const EMPTY: Result<Dense<'static>> = Dense::new(0, 0, &[]);
    let empty = Weights::Dense(tri!(EMPTY));
    let empty = tri!(quantised::Layer::new(empty, &[], &[], Activation::Identity));
    let (mut layers, mut sum) = ([empty; N], None);
    let (mut words, mut slots) = (words, layers.as_mut_slice());
    let mut left = tri!(Layers::new(file, true));
    while let Some(raw) = tri!(left.next()) {
        let (own, others) = tri!(split(words, &raw));
        words = others;
        if raw.head.tag == TAG_SUM {
            sum = Some(tri!(Sum::new(raw.head.inputs, own)));
            continue;
        }
        let [slot, behind @ ..] = slots else { return Err(SHORT) };
        *slot = tri!(integer_layer(&raw.head, own));
        slots = behind;
    }
    let Some(scales) = left.scales else { return Err(SHORT) };
    let chain: quantised::Chain<'_> = tri!(quantised::Chain::new(&layers, sum, scales));
    tri!(left.end(chain.inputs(), chain.outputs()));
    Ok((layers, sum, scales))
}

/// Names of the classes in a file.
const fn classes(file: &[u8]) -> Result<Option<Texts<'_>>> {
    let (reader, _, _) = tri!(head(file));
    match tri!(Names::find(reader.rest())) {
        Some(names) => Ok(Some(names.classes())),
        None => Ok(None),
    }
}

/// How many classes have names in a file.
///
/// # Errors
/// As [`Names::find`].
pub const fn class_count(file: &[u8]) -> Result<usize> {
    Ok(match tri!(classes(file)) {
        Some(classes) => classes.len(),
        None => 0,
    })
}

/// The names of the classes in a file, in the order of the outputs.
///
/// # Errors
/// As [`Names::find`].
pub const fn class_names<const N: usize>(file: &[u8]) -> Result<[&str; N]> {
    match tri!(classes(file)) {
        Some(classes) => classes.list(),
        None => Ok([""; N]),
    }
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

/// The words of a file.
#[doc(hidden)]
#[macro_export]
macro_rules! embedded_words {
    ($file:ident, $integers:literal) => {
        #[allow(long_running_const_eval)]
        const LENGTHS: $crate::store::wire::embed::Lengths =
            $crate::embedded!($crate::store::wire::embed::Lengths::of($file, $integers));
        #[allow(long_running_const_eval)]
        static WORDS: [u32; LENGTHS.words] =
            $crate::embedded!($crate::store::wire::embed::words($file, $integers));
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
        $crate::embedded_words!(FILE, false);
        #[allow(long_running_const_eval)]
        const LAYERS: [$crate::infer::model::Layer<'static>; LENGTHS.layers] =
            $crate::embedded!($crate::store::wire::embed::model(FILE, &WORDS));
        static MODEL: $crate::infer::model::Chain<
            'static,
            { $crate::infer::model::Chain::kernels(&LAYERS) },
        > = $crate::embedded!($crate::infer::model::Chain::new(&LAYERS));
        &MODEL
    }};
}

/// The names of the classes in the file of a model, of floats or of integers: a
/// `&'static [&'static str]`, in the order of the outputs; of a binary model those of 0 and 1, and empty
/// where the file has none. What is linked is the names.
///
/// ```
/// let classes = tamis::embed_class_names!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wire_names.tamis"));
/// assert_eq!(classes, ["idle", "shaken"]);
/// let none = tamis::embed_class_names!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wire_golden.tamis"));
/// assert!(none.is_empty());
/// ```
#[macro_export]
macro_rules! embed_class_names {
    ($path:expr $(,)?) => {{
        const FILE: &[u8] = include_bytes!($path);
        const COUNT: usize = $crate::embedded!($crate::store::wire::embed::class_count(FILE));
        static NAMES: [&str; COUNT] =
            $crate::embedded!($crate::store::wire::embed::class_names(FILE));
        let names: &'static [&'static str] = &NAMES;
        names
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
        $crate::embedded_words!(FILE, true);
        #[allow(long_running_const_eval)]
        const PARTS: (
            [$crate::infer::quantised::Layer<'static>; LENGTHS.layers],
            Option<$crate::infer::model::Sum<'static>>,
            $crate::infer::quantised::Scales,
        ) = $crate::embedded!($crate::store::wire::embed::quantised(FILE, &WORDS));
        static MODEL: $crate::infer::quantised::Chain<
            'static,
            { $crate::infer::quantised::Chain::kernels(&PARTS.0) },
        > = $crate::embedded!($crate::infer::quantised::Chain::new(&PARTS.0, PARTS.1, PARTS.2));
        &MODEL
    }};
}
