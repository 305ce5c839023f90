//! Tables of numbers, as Rust and C write them.

use tamis::infer::model;
use tamis::infer::quantised::Weights;

const WIDE: usize = 100;

#[derive(Debug, Clone, Copy)]
pub(super) enum Table<'a> {
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
    I8(&'a [i8]),
    I32(&'a [i32]),
    F32(&'a [f32]),
    /// Index and weight.
    Pairs(&'a [[u8; 2]]),
}

macro_rules! each {
    ($table:expr, $values:ident => $call:expr) => {
        match $table {
            Table::U8($values) => $call,
            Table::U16($values) => $call,
            Table::U32($values) => $call,
            Table::I8($values) => $call,
            Table::I32($values) => $call,
            Table::F32($values) => $call,
            Table::Pairs($values) => $call,
        }
    };
}

impl Table<'_> {
    pub(super) fn is_empty(self) -> bool {
        each!(self, values => values.is_empty())
    }

    pub(super) fn bytes(self) -> usize {
        each!(self, values => size_of_val(values))
    }

    /// Each as Rust writes it: of floats the fewest digits that give the same bits back.
    fn texts(self) -> Vec<String> {
        each!(self, values => values.iter().map(|value| format!("{value:?}")).collect())
    }

    /// `static NAME: [T; N] = […];`
    pub(super) fn rust(self, name: &str) -> String {
        let (kind, texts) = (self.kinds()[0], self.texts());
        format!("static {name}: [{kind}; {}] = [\n{}];\n", texts.len(), lines(&texts))
    }

    /// `static const T name[N] = {…};`. C has no arrays without elements: one that has none gets a
    /// 0 that is never read.
    pub(super) fn c(self, name: &str) -> String {
        let mut texts: Vec<String> = match self {
            Table::U32(values) => values.iter().map(|value| format!("{value}u")).collect(),
            Table::I32(values) => values.iter().copied().map(c_integer).collect(),
            Table::F32(values) => values.iter().copied().map(c_float).collect(),
            Table::Pairs(values) => {
                values.iter().map(|&[at, w]| format!("{{{at}, {}}}", w as i8)).collect()
            }
            _ => self.texts(),
        };
        let [_, kind, zero] = self.kinds();
        if texts.is_empty() {
            texts.push(zero.into());
        }
        format!("static const {kind} {name}[{}] = {{\n{}}};\n", texts.len(), lines(&texts))
    }

    /// The type in Rust and in C, and 0 in C.
    fn kinds(self) -> [&'static str; 3] {
        match self {
            Table::U8(_) => ["u8", "uint8_t", "0"],
            Table::U16(_) => ["u16", "uint16_t", "0"],
            Table::U32(_) => ["u32", "uint32_t", "0u"],
            Table::I8(_) => ["i8", "int8_t", "0"],
            Table::I32(_) => ["i32", "int32_t", "0"],
            Table::F32(_) => ["f32", "float", "0.0f"],
            Table::Pairs(_) => ["[u8; 2]", "struct pair", "{0, 0}"],
        }
    }
}

pub(super) fn float(value: f32) -> String {
    format!("{value:?}")
}

pub(super) fn c_float(value: f32) -> String {
    format!("{value:?}f")
}

/// -2147483648 is no number of C, but the negative of one that is too large.
pub(super) fn c_integer(value: i32) -> String {
    if value == i32::MIN { "(-2147483647 - 1)".into() } else { value.to_string() }
}

fn lines(texts: &[String]) -> String {
    let (mut out, mut line) = (String::new(), String::from("   "));
    for text in texts {
        if line.len() + text.len() + 2 > WIDE {
            out += &(std::mem::replace(&mut line, String::from("   ")) + "\n");
        }
        line += &format!(" {text},");
    }
    if texts.is_empty() { out } else { out + &line + "\n" }
}

/// The weights of a layer of integers: their type in the crate `tamis`, and the tables in the order
/// in which its constructor takes them.
pub(super) fn weights<'a>(weights: &Weights<'a>) -> (&'static str, Vec<(&'static str, Table<'a>)>) {
    match weights {
        Weights::Dense(dense) => ("Dense", vec![("values", Table::I8(dense.values()))]),
        Weights::Mask(mask) => {
            let bits = ("bits", Table::U32(mask.bits()));
            ("Mask", vec![bits, ("values", Table::I8(mask.values()))])
        }
        Weights::Blocks(blocks) => {
            let counts = ("counts", Table::U8(blocks.counts()));
            ("Blocks", vec![counts, ("pairs", Table::Pairs(blocks.pairs()))])
        }
        _ => ("Blocks", Vec::new()),
    }
}

pub(super) fn rows<'a>(csr: &model::Csr<'a>) -> [(&'static str, Table<'a>); 3] {
    [
        ("counts", Table::U16(csr.counts())),
        ("columns", Table::U16(csr.columns())),
        ("values", Table::F32(csr.values())),
    ]
}

pub(super) fn windows<'a>(blocks: &model::Blocks<'a>) -> [(&'static str, Table<'a>); 3] {
    [
        ("counts", Table::U8(blocks.counts())),
        ("indices", Table::U8(blocks.indices())),
        ("values", Table::F32(blocks.values())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_so_that_they_read_back() {
        for value in [0.1_f32, 1e-40, 3.0, -f32::MAX, 1.0 / 3.0, 1e20, -0.0] {
            assert_eq!(float(value).parse::<f32>().unwrap().to_bits(), value.to_bits());
            assert!(c_float(value).contains(['.', 'e']), "{}", c_float(value));
        }
        assert_eq!((c_integer(i32::MIN), c_integer(-5)), ("(-2147483647 - 1)".into(), "-5".into()));
    }

    #[test]
    fn long_tables_wrap_and_empty_c_tables_exist() {
        let values: Vec<u8> = (0..200).collect();
        let text = Table::U8(&values).rust("T");
        assert!(text.starts_with("static T: [u8; 200] = [\n    0, 1,"), "{text}");
        assert!(text.lines().count() > 8 && text.lines().all(|line| line.len() <= WIDE), "{text}");
        assert_eq!(Table::U16(&[]).rust("T"), "static T: [u16; 0] = [\n];\n");
        assert_eq!(
            Table::Pairs(&[]).c("t"),
            "static const struct pair t[1] = {\n    {0, 0},\n};\n"
        );
        assert_eq!(
            Table::Pairs(&[[7, 251]]).c("t"),
            "static const struct pair t[1] = {\n    {7, -5},\n};\n"
        );
    }
}
