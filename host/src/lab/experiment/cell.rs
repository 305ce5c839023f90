//! One training, or one measurement, of an experiment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::spec::{Method, Part, Point, Spec};
use crate::operator::{Device, Stop};
use crate::train::dense::DensePlace;
use crate::{Error, Result};

/// What a cell is; the cells of a spec are all different.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    pub(crate) part: String,
    pub(crate) method: Method,
    /// Neurons of a hidden layer; 0 for a constant predictor of fixed labels.
    pub(crate) m: usize,
    /// Nonzero weights; 0 as for `m`, and where nothing depends on them.
    pub(crate) s: usize,
    /// Rows, where the part has an axis of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) n: Option<usize>,
    /// Inputs, where the part has an axis of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) d: Option<usize>,
    /// What it is trained with, where the part has several variants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) variant: Option<String>,
    pub(crate) seed: u64,
}

/// Where cells are trained.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// For networks of one hidden layer and recipes of sparse weights, and for products of matrix sensing.
    pub(crate) device: &'a Device,
    /// For dense networks: levels of iterative magnitude pruning, scores and training of masks.
    pub(crate) dense: &'a DensePlace,
    pub(crate) threads: usize,
}

/// A cell, and what it runs with.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub(super) part: &'a Part,
    pub(super) cell: &'a Cell,
    pub(super) on: Place<'a>,
    pub(super) stop: &'a Stop,
}

impl Cell {
    /// Its name, and that of its file, such as `planted-paper-m10-s50-seed0`.
    #[must_use]
    pub fn id(&self) -> String {
        let Self { part, method, m, s, n, d, variant, seed } = self;
        let axis = |name: &str, value: &Option<usize>| {
            value.map_or(String::new(), |v| format!("-{name}{v}"))
        };
        let variant = variant.as_ref().map_or(String::new(), |name| format!("-{name}"));
        let (method, n, d) = (method.name(), axis("n", n), axis("d", d));
        format!("{part}-{method}-m{m}-s{s}{n}{d}{variant}-seed{seed}")
    }

    /// The name of the training that gives it, which may give all s.
    pub(super) fn training(&self, part: &Part) -> String {
        let is_shared = self.method.is_dense() && part.data.is_fixed();
        Self { s: if is_shared { 0 } else { self.s }, ..self.clone() }.id()
    }

    /// Its sizes, in its part.
    pub(crate) fn point(&self, part: &Part) -> Point {
        let own = |variant: &String| part.variants.iter().position(|of| of.name == *variant);
        Point {
            m: self.m,
            s: self.s,
            n: self.n.unwrap_or(part.data.samples()),
            d: self.d.unwrap_or(part.data.inputs()),
            variant: self.variant.as_ref().and_then(own).unwrap_or(0),
        }
    }
}

impl Spec {
    /// All cells, in order; constant predictors of labels that no cell changes have one.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        self.part.iter().flat_map(Part::cells).collect()
    }

    pub(crate) fn part_of(&self, cell: &Cell) -> Result<&Part> {
        self.part.iter().find(|part| part.name == cell.part).ok_or_else(|| {
            Error::new("the cell is of no part of the spec")
                .got(cell.id())
                .help("run the spec that it is of")
        })
    }

    /// All cells, those together that one training gives.
    #[must_use]
    pub fn trainings(&self) -> Vec<Vec<Cell>> {
        self.together(self.cells())
    }

    /// Cells, those together that one training gives: of iterative magnitude pruning all that are
    /// alike but for s, where no cell changes the data.
    pub(crate) fn together(&self, cells: Vec<Cell>) -> Vec<Vec<Cell>> {
        let mut places = BTreeMap::new();
        let mut all: Vec<Vec<Cell>> = Vec::new();
        for cell in cells {
            let training =
                self.part_of(&cell).map_or_else(|_| cell.id(), |part| cell.training(part));
            let at = *places.entry(training).or_insert(all.len());
            match all.get_mut(at) {
                Some(training) => training.push(cell),
                None => all.push(vec![cell]),
            }
        }
        all
    }

    /// The cell of a name.
    ///
    /// # Errors
    /// There is none.
    pub fn cell(&self, id: &str) -> Result<Cell> {
        let all = self.cells();
        let example = all.first().map_or_else(String::new, Cell::id);
        all.into_iter().find(|cell| cell.id() == id).ok_or_else(|| {
            Error::new("the spec has no such cell")
                .expected(format_args!("I/N, such as 1/8, or names of cells, such as {example}"))
                .got(id)
                .help("--dry-run --json lists the names")
        })
    }
}

impl Part {
    /// Its cells, in order.
    pub(super) fn cells(&self) -> Vec<Cell> {
        let part = self;
        let fixed = |method: Method| method.is_constant() && part.data.is_fixed();
        let (constants, methods): (Vec<Method>, Vec<Method>) =
            part.methods.iter().partition(|&&method| fixed(method));
        let cell = |method, m, s, seed| {
            let part = part.name.clone();
            Cell { part, method, m, s, n: None, d: None, variant: None, seed }
        };
        let mut cells: Vec<Cell> =
            constants.into_iter().map(|method| cell(method, 0, 0, part.seeds[0])).collect();
        for at in part.points() {
            let n = (!part.n.is_empty()).then_some(at.n);
            let d = (!part.d.is_empty()).then_some(at.d);
            let variant = Some(part.variant(at).name).filter(|name| !name.is_empty());
            for &seed in &part.seeds {
                cells.extend(methods.iter().map(|&method| {
                    let variant = variant.clone();
                    Cell { n, d, variant, ..cell(method, at.m, at.s, seed) }
                }));
            }
        }
        cells
    }
}

/// The trainings of machine `index`, from 1, of so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shard {
    pub(crate) index: usize,
    pub(crate) of: usize,
}

impl Shard {
    /// Reads `I/N`; nothing where the text has another form.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>> {
        let Some((index, of)) = text.split_once('/') else { return Ok(None) };
        match (index.trim().parse(), of.trim().parse()) {
            (Ok(index), Ok(of)) if (1..=of).contains(&index) => Ok(Some(Self { index, of })),
            _ => Err(Error::new("no shard of the cells has this number")
                .expected("--cell I/N with I from 1 to N, such as 1/8")
                .got(text)
                .help("number the tasks of an array from 1 on")),
        }
    }

    /// Whether training `at`, from 0, is one of its own; every shard has all sizes and methods.
    pub(crate) const fn has(&self, at: usize) -> bool {
        (at % self.of + at / self.of) % self.of == self.index - 1
    }
}

/// Which cells of a spec are meant.
#[derive(Debug, Clone, Default)]
pub(crate) struct Choice {
    pub(crate) shard: Option<Shard>,
    /// All methods where it is empty.
    pub(crate) methods: Vec<Method>,
    /// Neurons of a hidden layer, at most.
    pub(crate) most_neurons: Option<usize>,
}

impl Choice {
    /// The trainings that are meant, each with the cells that it is for.
    pub(crate) fn trainings(&self, spec: &Spec) -> impl Iterator<Item = Vec<Cell>> {
        let own = |at| self.shard.is_none_or(|shard| shard.has(at));
        let all = spec.trainings().into_iter().enumerate();
        let chosen = all.filter(move |(at, _)| own(*at)).map(|(_, mut cells)| {
            cells.retain(|cell| self.has(cell));
            cells
        });
        chosen.filter(|cells| !cells.is_empty())
    }

    fn has(&self, cell: &Cell) -> bool {
        (self.methods.is_empty() || self.methods.contains(&cell.method))
            && self.most_neurons.is_none_or(|most| cell.m <= most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_told_from_names() {
        let shard = Shard::parse("2/8").unwrap().unwrap();
        assert_eq!((shard.index, shard.of), (2, 8));
        assert_eq!(Shard::parse("planted-paper-m1-s1-seed0").unwrap(), None);
        assert!(Shard::parse("0/8").is_err());
    }
}
