//! Random sizes, numbers and weights of layers.

use tamis::base::rng::Rng;

/// The most weights, zeros counted, of a layer of integers and of one of dense floats.
pub(super) const MOST: [usize; 2] = [16_000, 4000];

/// Weights of a layer, row after row with columns rising.
pub(super) struct Rows {
    pub(super) inputs: usize,
    pub(super) counts: Vec<u16>,
    pub(super) columns: Vec<u16>,
}

impl Rows {
    pub(super) fn nonzeros(&self) -> usize {
        self.columns.len()
    }
}

/// From `low` to `high`, as likely between 10 and 20 as between 100 and 200.
pub(super) fn about(rng: &mut Rng, low: usize, high: usize) -> usize {
    let (a, b) = ((low as f64).ln(), (high as f64 + 1.0).ln());
    ((a + (b - a) * f64::from(rng.uniform())).exp() as usize).clamp(low, high)
}

pub(super) fn pick<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u32) as usize]
}

/// Sizes with at most so many weights.
pub(super) fn sizes(rng: &mut Rng, most: usize) -> (usize, usize) {
    loop {
        let (inputs, outputs) = (about(rng, 8, 800), about(rng, 2, 64));
        if inputs * outputs <= most && inputs * outputs >= 100 {
            return (inputs, outputs);
        }
    }
}

/// Which weights a layer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One or more in every row, as writers of models leave hidden layers.
    Hidden,
    /// Rows may have none.
    Last,
}

/// Weights at random.
pub(super) fn rows(rng: &mut Rng, inputs: usize, outputs: usize, kind: Kind) -> Rows {
    let density = pick(rng, &[0.03_f32, 0.05, 0.1, 0.2, 0.35, 0.6]);
    let used = pick(rng, &[1.0_f32, 1.0, 0.7, 0.4]);
    rows_of(rng, inputs, outputs, kind, density, used)
}

/// The same with a fraction of the columns that have weights, and a fraction of the weights of those.
pub(super) fn rows_of(
    rng: &mut Rng,
    inputs: usize,
    outputs: usize,
    kind: Kind,
    density: f32,
    used: f32,
) -> Rows {
    let mut columns: Vec<u16> = (0..inputs as u16).filter(|_| rng.uniform() < used).collect();
    if columns.is_empty() {
        columns.push(0);
    }
    let mut made = Rows { inputs, counts: Vec::new(), columns: Vec::new() };
    for row in 0..outputs {
        let before = made.columns.len();
        made.columns.extend(columns.iter().filter(|_| rng.uniform() < density));
        let none = made.columns.len() == before;
        if none && (kind == Kind::Hidden || row == 0) {
            made.columns.push(pick(rng, &columns));
        }
        made.counts.push((made.columns.len() - before) as u16);
    }
    made
}

pub(super) fn signs(rng: &mut Rng, inputs: usize) -> Vec<u32> {
    let mut words: Vec<u32> = (0..inputs.div_ceil(32)).map(|_| rng.bits()).collect();
    if let Some(last) = words.last_mut().filter(|_| !inputs.is_multiple_of(32)) {
        *last &= (1 << (inputs % 32)) - 1;
    }
    words
}

pub(super) fn numbers(rng: &mut Rng, len: usize) -> Vec<f32> {
    (0..len).map(|_| 2.0 * rng.uniform() - 1.0).collect()
}
