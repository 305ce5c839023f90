//! One training, or one measurement, of an experiment.

use serde::{Deserialize, Serialize};

use super::spec::{Method, Part, Spec};
use crate::{Error, Result};

/// What a cell is; the cells of a spec are all different.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Name of its part.
    pub part: String,
    /// How it is trained.
    pub method: Method,
    /// Neurons of a hidden layer; 0 for a constant predictor of labels that are the same in all cells.
    pub m: usize,
    /// Nonzero weights; 0 as for `m`, and where nothing depends on them.
    pub s: usize,
    /// Rows, where the part has an axis of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<usize>,
    /// Inputs, where the part has an axis of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub d: Option<usize>,
    /// Its seed.
    pub seed: u64,
}

impl Cell {
    /// Its name among the cells of the spec, and that of its file: `planted-paper-m10-s50-seed0`, of a check also
    /// `inputs-assumption-m180-s0-n1000-d10-seed0`.
    #[must_use]
    pub fn id(&self) -> String {
        let Self { part, method, m, s, n, d, seed } = self;
        let axis = |name: &str, value: &Option<usize>| value.map_or(String::new(), |v| format!("-{name}{v}"));
        format!("{part}-{}-m{m}-s{s}{}{}-seed{seed}", method.name(), axis("n", n), axis("d", d))
    }
}

impl Spec {
    /// All cells, in an order that depends on the spec alone. Constant predictors of labels that no cell changes have one
    /// cell.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        self.part.iter().flat_map(cells).collect()
    }

    /// The part of a cell.
    ///
    /// # Errors
    /// There is no such part.
    pub fn part_of(&self, cell: &Cell) -> Result<&Part> {
        self.part.iter().find(|part| part.name == cell.part).ok_or_else(|| {
            Error::new("the cell is of no part of the spec").got(cell.id()).help("run the spec that it is of")
        })
    }

    /// The cell of a name.
    ///
    /// # Errors
    /// There is no such cell.
    pub fn cell(&self, id: &str) -> Result<Cell> {
        let all = self.cells();
        let example = all.first().map_or_else(String::new, Cell::id);
        all.into_iter().find(|cell| cell.id() == id).ok_or_else(|| {
            Error::new("the spec has no such cell")
                .expected(format_args!("I/N, such as 1/8, or the name of a cell, such as {example}"))
                .got(id)
                .help("--dry-run --json lists the names")
        })
    }
}

fn cells(part: &Part) -> Vec<Cell> {
    let mut cells = Vec::new();
    let fixed = |method: Method| method.is_constant() && part.data.is_fixed();
    let cell = |method, m, s, seed| Cell { part: part.name.clone(), method, m, s, n: None, d: None, seed };
    if part.data.is_check() {
        for point in part.points() {
            let n = (!part.n.is_empty()).then_some(point.n);
            let d = (!part.d.is_empty()).then_some(point.d);
            let of = |method, seed| Cell { n, d, ..cell(method, point.m, point.s, seed) };
            cells.extend(part.seeds.iter().flat_map(|&seed| part.methods.iter().map(move |&m| of(m, seed))));
        }
        return cells;
    }
    for &method in part.methods.iter().filter(|&&method| fixed(method)) {
        cells.push(cell(method, 0, 0, part.seeds[0]));
    }
    for (m, s) in part.pairs() {
        for &seed in &part.seeds {
            cells.extend(part.methods.iter().filter(|&&of| !fixed(of)).map(|&of| cell(of, m, s, seed)));
        }
    }
    cells
}

/// Every N-th cell: what one of N machines runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Which one, from 1.
    pub index: usize,
    /// Of how many.
    pub of: usize,
}

impl Shard {
    /// Reads `I/N`; nothing where the text has another form.
    ///
    /// # Errors
    /// I is 0 or above N.
    ///
    /// ```
    /// use tamis_host::experiment::Shard;
    /// assert_eq!(Shard::parse("2/8").unwrap(), Some(Shard { index: 2, of: 8 }));
    /// assert_eq!(Shard::parse("planted-paper-m1-s1-seed0").unwrap(), None);
    /// assert!(Shard::parse("0/8").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Option<Self>> {
        let Some((index, of)) = text.split_once('/') else { return Ok(None) };
        match (index.trim().parse(), of.trim().parse()) {
            (Ok(index), Ok(of)) if (1..=of).contains(&index) => Ok(Some(Self { index, of })),
            _ => Err(Error::new("no part of the cells has this number")
                .expected("--cell I/N with I from 1 to N, such as 1/8")
                .got(text)
                .help("number the tasks of an array from 1 on")),
        }
    }

    /// Whether cell number `at`, from 0, is one of its cells. Neighbours go to different shards, each time from the next one
    /// on, so that every shard has cells of every size and method.
    #[must_use]
    pub const fn has(&self, at: usize) -> bool {
        (at % self.of + at / self.of) % self.of == self.index - 1
    }
}
