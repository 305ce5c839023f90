//! The programs that the prices of ways come from, and the prices.

use super::Taken;
use super::programs::Program;
use crate::costs::draw::{Besides, Drawn, FloatLayer, planned, planned_floats};
use crate::costs::fit;
use tamis::price::ways::{self, FLOAT_SETS, INTEGER_KINDS, STRAIGHT, Straight};
use tamis::price::{Numbers, Way};
use tamis::quantised::Encoding;
use tamis::rng::{Rng, stream};

const SEED: u64 = 11;
/// Of the kernels of integers, in the order of [`ways::integer_kind`]; the two of blocks have one.
const ENCODINGS: [Encoding; INTEGER_KINDS] = [
    Encoding::Dense,
    Encoding::DenseUsed,
    Encoding::Mask,
    Encoding::Csr,
    Encoding::Delta,
    Encoding::Blocks,
    Encoding::Blocks,
    Encoding::Fan,
];
/// Rows and rows, and distances and distances: what else there may be is measured with those.
const ROWS: usize = ways::integer_set(3, 3);
const DISTANCES: usize = ways::integer_set(4, 4);
/// Hidden neurons of models whose buffers [`tamis::model::zeros`] makes by few stores, by many, and by a routine.
const BUFFERS: [usize; 3] = [12, 50, 90];
/// Inputs and hidden neurons of models that become modules, and their outputs, of which eight are few.
const MODULES: [[usize; 2]; 2] = [[300, 12], [700, 20]];
const OUTPUTS: [usize; 2] = [6, 10];
/// What a bound is above the most that was measured.
const MARGIN: f64 = 0.02;
const WIDE: usize = 5;
const SHORT: usize = 6;

/// A program and the model in it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) program: Program,
    pub(crate) model: Drawn,
}

/// All of them, by what they are for.
#[derive(Debug)]
pub(crate) struct Entries {
    pub(crate) all: Vec<Entry>,
    /// Where those of floats, sets of integers, what they have besides, files, modules, buffers, code without tables and C begin.
    starts: [usize; 8],
}

fn entry(name: &str, way: Way, model: &Drawn) -> Entry {
    let name = format!("{name}_{}", way.name()).replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    Entry { program: Program::of(name, way, model), model: model.clone() }
}

/// Models of two shapes of each set of floats, all of one before all of the other, in their order.
fn floats(rng: &mut Rng) -> Vec<Drawn> {
    let shapes =
        [([300, 20, 10], [100, 20, 10], [300, 20, 12, 10]), ([700, 12, 6], [60, 12, 6], [700, 12, 8, 6])];
    shapes.map(|(wide, short, three)| floats_of(rng, wide, short, three)).concat()
}

/// Of one shape: rows longer than a window, shorter ones, and three layers.
fn floats_of(rng: &mut Rng, wide: [usize; 3], short: [usize; 3], three: [usize; 4]) -> Vec<Drawn> {
    use FloatLayer::{Rows, Windows};
    let sets: [(&[usize], &[FloatLayer], bool); FLOAT_SETS] = [
        (&wide, &[Rows, Rows], false),
        (&wide, &[Windows, Windows], false),
        (&short, &[Windows, Windows], false),
        (&wide, &[Windows, Rows], false),
        (&short, &[Windows, Rows], false),
        (&wide, &[Windows, Windows], true),
        (&short, &[Windows, Windows], true),
        (&three, &[Windows, Rows, Windows], true),
        (&wide, &[Rows, Windows], true),
        (&wide, &[Rows, Rows], true),
        (&wide, &[Windows, Rows], true),
        (&short, &[Windows, Rows], true),
        (&wide[..2], &[Rows], false),
        (&wide[..2], &[Windows], false),
        (&short[..2], &[Windows], false),
        (&wide[..2], &[Rows], true),
    ];
    sets.map(|(widths, kinds, sum)| planned_floats(rng, widths, kinds, 0.1, sum)).to_vec()
}

/// Models of two shapes of each set of kernels of integers, all of one before all of the other, in their order.
fn integers(rng: &mut Rng) -> Vec<Drawn> {
    let mut models = Vec::new();
    let shapes: [[&[usize]; 3]; 2] =
        [[&[300, 260, 6], &[60, 12, 6], &[300, 12, 6]], [&[400, 258, 10], &[90, 20, 10], &[700, 10, 10]]];
    for [both_wide, both_short, others] in shapes {
        for b in 0..INTEGER_KINDS {
            for a in 0..=b {
                let widths: &[usize] = match (a, b) {
                    (WIDE, WIDE) => both_wide,
                    (SHORT, SHORT) => both_short,
                    _ => others,
                };
                // Blocks are wide on the row, and short behind it.
                let (first, last) =
                    if b == WIDE || b == Encoding::ALL.len() - 1 && a != WIDE || a == SHORT && b != SHORT {
                        (b, a)
                    } else {
                        (a, b)
                    };
                let density = if widths[1] > 256 { 0.01 } else { 0.05 };
                let encodings = [ENCODINGS[first], ENCODINGS[last]];
                models.push(planned(rng, widths, &encodings, density, Besides::PLAIN));
            }
        }
    }
    models
}

/// Rows and rows, and distances and distances, with one more thing each, in the order of [`ways::besides`]: one of each of the two
/// shapes of [`integers`].
fn besides(rng: &mut Rng) -> Vec<Drawn> {
    [([300, 12, 6], Encoding::Csr), ([700, 10, 10], Encoding::Delta)]
        .map(|(widths, encoding)| besides_of(rng, widths, encoding))
        .concat()
}

fn besides_of(rng: &mut Rng, widths: [usize; 3], encoding: Encoding) -> Vec<Drawn> {
    let [inputs, hidden, outputs] = widths;
    let plain = Besides::PLAIN;
    let with = [
        Besides { biases: true, ..plain },
        Besides { scaled: true, ..plain },
        Besides { relu: true, ..plain },
        Besides { sum: true, ..plain },
    ];
    let three = [encoding; 3];
    let (one, two) = (&three[..1], &three[..2]);
    let mut models: Vec<_> = with.map(|with| planned(rng, &widths, two, 0.05, with)).to_vec();
    models.push(planned(rng, &widths[..2], one, 0.05, Besides { sum: true, ..plain }));
    models.push(planned(rng, &widths[..2], one, 0.05, plain));
    models.push(planned(rng, &widths, two, 0.05, Besides { own_factors: true, ..plain }));
    models.push(planned(rng, &[inputs, hidden, hidden, outputs], &three, 0.05, plain));
    models
}

/// Floats with few and with many outputs, and integers: rows and rows each.
fn modules(rng: &mut Rng, inputs: usize, hidden: usize) -> Vec<Drawn> {
    let mut models = OUTPUTS
        .map(|m| planned_floats(rng, &[inputs, hidden, m], &[FloatLayer::Rows; 2], 0.1, false))
        .to_vec();
    let rows = [Encoding::Csr; 2];
    models.extend(OUTPUTS.map(|m| planned(rng, &[inputs, hidden, m], &rows, 0.05, Besides::PLAIN)));
    models
}

/// Models to write without tables.
fn straight(rng: &mut Rng) -> Vec<Drawn> {
    let plain = Besides::PLAIN;
    let (biases, relu) = (Besides { biases: true, ..plain }, Besides { relu: true, ..plain });
    let (own_factors, scaled) = (Besides { own_factors: true, ..plain }, Besides { scaled: true, ..plain });
    let sum = Besides { sum: true, ..plain };
    let shapes: [(&[usize], f32, Besides); 15] = [
        (&[784, 10, 10], 0.03, plain),
        (&[784, 24, 10], 0.04, biases),
        (&[784, 16, 10], 0.1, plain),
        (&[60, 16, 5], 0.4, scaled),
        (&[30, 24, 2], 0.5, relu),
        (&[30, 10, 10], 0.6, plain),
        (&[30, 40, 10], 0.3, plain),
        (&[200, 20, 12, 8], 0.1, scaled),
        (&[200, 12, 20], 0.1, own_factors),
        (&[1000, 12], 0.04, sum),
        (&[100, 30], 0.1, sum),
        (&[400, 32, 10], 0.06, own_factors),
        (&[250, 20, 20], 0.2, relu),
        (&[28, 8, 4], 0.5, biases),
        (&[500, 40, 3], 0.03, plain),
    ];
    let rows = |widths: &[usize]| vec![Encoding::Csr; widths.len() - 1];
    // Weights of any size, and most of them small.
    let twice = shapes.iter().map(|shape| (shape, false)).chain(shapes.iter().map(|shape| (shape, true)));
    twice
        .map(|((widths, density, besides), trained)| {
            planned(rng, widths, &rows(widths), *density, Besides { trained, ..*besides })
        })
        .collect()
}

/// Every program.
pub(crate) fn entries() -> Entries {
    let mut rng = Rng::new(SEED, stream::USER);
    let (floats, integers, besides) = (floats(&mut rng), integers(&mut rng), besides(&mut rng));
    let straight = straight(&mut rng);
    let mut all = Vec::new();
    let add = |all: &mut Vec<Entry>, name: &str, way, models: &[&Drawn]| {
        let start = all.len();
        all.extend(models.iter().enumerate().map(|(at, model)| entry(&format!("{name}{at}"), way, model)));
        start
    };
    let (f, i, b, s) = (&floats, &integers, &besides, &straight);
    let c: Vec<&Drawn> = i.iter().chain(b).chain(f).collect();
    let files = [&f[15], &f[2], &f[0], &f[1], &i[ways::integer_set(0, WIDE)]];
    let modules = MODULES.map(|[inputs, hidden]| modules(&mut rng, inputs, hidden)).concat();
    let buffers = BUFFERS.map(|m| planned(&mut rng, &[300, m, 6], &[Encoding::Csr; 2], 0.05, Besides::PLAIN));
    let starts = [
        add(&mut all, "f", Way::Embedded, &f.iter().collect::<Vec<_>>()),
        add(&mut all, "i", Way::Embedded, &i.iter().collect::<Vec<_>>()),
        add(&mut all, "b", Way::Embedded, &b.iter().collect::<Vec<_>>()),
        add(&mut all, "file", Way::File, &files),
        add(&mut all, "m", Way::Rust, &modules.iter().collect::<Vec<_>>()),
        add(&mut all, "z", Way::Embedded, &buffers.each_ref()),
        add(&mut all, "s", Way::Straight, &s.iter().collect::<Vec<_>>()),
        add(&mut all, "c", Way::C, &c),
    ];
    Entries { all, starts }
}

/// What the table has of one part.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prices {
    pub(crate) floats: Vec<[i64; 2]>,
    pub(crate) float_file: Vec<[i64; 2]>,
    pub(crate) integers: Vec<[i64; 2]>,
    pub(crate) besides: Vec<[i64; 2]>,
    pub(crate) integer_file: [i64; 2],
    pub(crate) straight: [Vec<f64>; 2],
    pub(crate) rust: [[[i64; 2]; 2]; 2],
    pub(crate) zeros: [i64; 2],
    pub(crate) c_floats: Vec<[i64; 2]>,
    pub(crate) c_integers: Vec<[i64; 2]>,
    pub(crate) c_besides: Vec<[i64; 2]>,
}

impl Entries {
    pub(crate) fn programs(&self) -> Vec<Program> {
        self.all.iter().map(|entry| entry.program.clone()).collect()
    }

    /// The prices of a part on which the programs took this.
    pub(crate) fn prices(&self, took: &[Taken]) -> Prices {
        let mut own: Vec<[i64; 2]> =
            self.all.iter().zip(took).map(|(entry, took)| entry.own(*took)).collect();
        let [_, i, b, file, m, _, s, c] = self.starts;
        let zeros = self.zeros(&own);
        for (entry, own) in self.all.iter().zip(&mut own) {
            own[0] -= i64::from(ways::zeros(zeros.map(|bytes| bytes as u16), entry.buffers()));
        }
        let less = |of: [i64; 2], base: [i64; 2]| [of[0] - base[0], of[1] - base[1]];
        // What each has beyond the model of the same shape and encoding.
        let more = |of: &[[i64; 2]], start: usize| {
            let (first, second) = of.split_at(ways::BESIDES);
            let pair = [(first, start + ROWS), (second, start + ways::INTEGER_SETS + DISTANCES)];
            pair.map(|(of, plain)| of.iter().map(|&of| less(of, own[plain])).collect::<Vec<_>>()).concat()
        };
        let (c_besides, c_floats) = (c + 2 * ways::INTEGER_SETS, self.all.len() - 2 * FLOAT_SETS);
        let (floats, integers) = (means(&own[..i]), means(&own[i..b]));
        let modules = means(&own[m..m + 4 * MODULES.len()]);
        let base = [floats[0], integers[ROWS]];
        let module = |at: usize| [0, 1].map(|many| less(modules[2 * at + many], base[at]));
        let mut prices = Prices {
            besides: means(&more(&own[b..file], i)),
            float_file: own[file..file + 4].to_vec(),
            integer_file: own[file + 4],
            rust: [module(0), module(1)],
            floats,
            integers,
            zeros,
            c_integers: means(&own[c..c_besides]),
            c_besides: means(&more(&own[c_besides..c_floats], c)),
            c_floats: means(&own[c_floats..]),
            ..Prices::default()
        };
        let counts: Vec<Vec<f64>> = self.all[s..c].iter().map(|entry| numbers(&entry.straight())).collect();
        let of = |of: fn(&Taken) -> u64| took[s..c].iter().map(|took| of(took) as f64).collect::<Vec<_>>();
        let ram: Vec<Vec<f64>> = counts.iter().map(|counts| ram_counts(counts)).collect();
        prices.straight = [bounding(&counts, &of(|took| took.flash)), bounding(&ram, &of(|took| took.ram))];
        prices
    }
}

impl Entries {
    /// Bytes of code for buffers of 64 words, and of the routine for longer ones.
    fn zeros(&self, own: &[[i64; 2]]) -> [i64; 2] {
        let z = self.starts[5];
        let [few, many, routine] = [0, 1, 2].map(|at| own[z + at][0]);
        let [short, long, _] = [0, 1, 2].map(|at| self.all[z + at].buffers()[0] as i64);
        let of_64 = (64 * (many - few) + (long - short) / 2) / (long - short);
        [of_64.max(0), (routine - few + of_64 * short / 64).max(0)]
    }
}

/// Of both shapes.
fn pairs(own: &[[i64; 2]]) -> impl Iterator<Item = ([i64; 2], [i64; 2])> + '_ {
    let (first, second) = own.split_at(own.len() / 2);
    first.iter().copied().zip(second.iter().copied())
}

/// Between both.
const fn mean(a: i64, b: i64) -> i64 {
    (a + b + 1).div_euclid(2)
}

fn means(own: &[[i64; 2]]) -> Vec<[i64; 2]> {
    pairs(own).map(|(a, b)| [0, 1].map(|k| mean(a[k], b[k]))).collect()
}

/// Prices that no measured model takes more than.
fn bounding(counts: &[Vec<f64>], took: &[f64]) -> Vec<f64> {
    let prices = fit::prices(counts, took);
    let of = |counts: &[f64]| counts.iter().zip(&prices).map(|(count, price)| count * price).sum::<f64>();
    let most = counts.iter().zip(took).map(|(counts, took)| took / of(counts)).fold(1.0, f64::max);
    prices.iter().map(|price| price * most * (1.0 + MARGIN)).collect()
}

/// Of RAM only what is in it: the prediction itself, layers, and what they give.
fn ram_counts(counts: &[f64]) -> Vec<f64> {
    let held = |name: &&str| ["prediction", "byte", "output", "sign"].contains(name);
    let counts = counts.iter().zip(&Straight::NAMES);
    counts.map(|(&count, name)| if held(name) { count } else { 0.0 }).collect()
}

fn numbers(counts: &[u64]) -> Vec<f64> {
    counts.iter().map(|&count| count as f64).collect()
}

impl Entry {
    /// Code, and stack besides what is known exactly.
    fn own(&self, took: Taken) -> [i64; 2] {
        let estimate = self.model.estimate(tamis::price::Core::CortexM4F);
        let known = estimate.memory(self.program.way).unwrap_or_default();
        let buffers = known.scratch_bytes + known.output_bytes;
        [took.flash as i64 - known.model_bytes as i64, took.ram as i64 - buffers as i64]
    }

    /// Words of scratch and outputs that [`tamis::model::zeros`] makes.
    fn buffers(&self) -> [usize; 2] {
        let by_zeros = self.program.numbers == Numbers::Integers
            && matches!(self.program.way, Way::Embedded | Way::Rust);
        if by_zeros { [self.program.scratch, self.program.outputs] } else { [0; 2] }
    }

    fn straight(&self) -> [u64; STRAIGHT] {
        self.model.read(|_, _| [0; STRAIGHT], |_| [0; STRAIGHT], |view| Straight::of(view.model()).0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis::price::ways::BESIDES;

    #[test]
    fn every_set_has_a_model_of_its_own_at_its_place() {
        let mut rng = Rng::new(1, 1);
        for (at, model) in floats(&mut rng).iter().enumerate() {
            let set = model.read(|_, _| 99, |view| ways::float_set(view.model().layers()), |_| 99);
            assert_eq!(set, at % FLOAT_SETS, "{}", model.name);
        }
        for (at, model) in integers(&mut rng).iter().enumerate() {
            let set = model.read(
                |_, _| 99,
                |_| 99,
                |view| {
                    let kinds: Vec<_> =
                        view.model().layers().iter().map(|l| ways::integer_kind(l.weights())).collect();
                    ways::integer_set(kinds[0], kinds[1])
                },
            );
            assert_eq!(set, at % ways::INTEGER_SETS, "{}", model.name);
        }
        for (at, model) in besides(&mut rng).iter().enumerate() {
            let there = model.read(
                |_, _| [false; BESIDES],
                |_| [false; BESIDES],
                |view| ways::besides(view.model().layers(), view.model().sum().is_some()),
            );
            let only: Vec<_> = (0..BESIDES).map(|k| k == at % BESIDES).collect();
            assert_eq!(there.to_vec(), only, "{}", model.name);
        }
    }
}
