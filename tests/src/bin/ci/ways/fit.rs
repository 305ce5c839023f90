//! The programs that the bytes of ways come from, and the bytes.

use super::Taken;
use super::programs::Program;
use crate::cost::{Core, EXTRAS, Kernel, Numbers, STRAIGHT, Straight, Way, zeros};
use crate::costs::draw::{Besides, Drawn, FloatLayer, planned, planned_floats};
use crate::costs::fit;
use tamis::base::rng::{Rng, stream};
use tamis::infer::quantised::Encoding;

const SEED: u64 = 11;
/// What a bound is above the most that was measured.
const MARGIN: f64 = 0.02;
/// Of [`EXTRAS`], those that floats have: sums of several layers and of one, and one layer alone.
const OF_FLOATS: [usize; 3] = [3, 4, 5];
/// The last of them, another kernel, comes from models of two.
const ANOTHER: usize = EXTRAS - 1;
/// Hidden neurons of models whose buffers [`tamis::infer::model::zeros`] makes by few stores, by
/// many, and by a routine.
const BUFFERS: [usize; 3] = [12, 50, 90];
/// Outputs of models that become modules: more than eight some processors return by a routine.
const OUTPUTS: [usize; 2] = [6, 10];
/// In both languages, in the order of the table.
const LANGUAGES: [Way; 2] = [Way::Embedded, Way::C];

/// Code and stack.
type Pair = [i64; 2];

/// What a program is measured for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Two layers that a kernel runs.
    Kernel(Kernel),
    /// The same with one of [`EXTRAS`].
    Extra(usize, Kernel),
    /// A layer of each.
    Two(Kernel, Kernel),
    File(Numbers),
    Module(Numbers),
    Buffers(usize),
    Straight,
}

#[derive(Debug)]
struct Entry {
    role: Role,
    program: Program,
    model: Drawn,
}

/// Every program.
#[derive(Debug)]
pub(crate) struct Entries(Vec<Entry>);

/// What the table has of one core besides instructions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bytes {
    pub(crate) kernels: [[Pair; 2]; Kernel::ALL.len()],
    pub(crate) extras: [[[Pair; 2]; EXTRAS]; 2],
    pub(crate) shared: Pair,
    pub(crate) file: [Pair; 2],
    pub(crate) module: [Pair; 2],
    pub(crate) zeros: Pair,
    pub(crate) straight: [Vec<f64>; 2],
}

/// Widths of two layers that a kernel runs; the second of windows is run by the short ones, which
/// its row has too.
const fn widths(kernel: Kernel) -> [usize; 3] {
    match kernel {
        Kernel::ShortWindows => [100, 20, 10],
        Kernel::Blocks => [300, 260, 6],
        Kernel::ShortBlocks => [60, 12, 6],
        Kernel::Dense | Kernel::Mask => [300, 12, 6],
        _ => [300, 20, 10],
    }
}

/// A model of layers that these kernels run, with one of [`EXTRAS`].
fn model(rng: &mut Rng, widths: &[usize], kernels: &[Kernel], extra: Option<usize>) -> Drawn {
    let is = |at: usize| extra == Some(at);
    let sum = is(3) || is(4);
    let layers = if is(4) || is(5) { 1 } else { 2 + usize::from(is(7)) };
    let mut widths = widths.to_vec();
    if is(7) {
        widths.insert(1, widths[1]);
    }
    let kernels = (0..layers).map(|at| kernels[at.min(kernels.len() - 1)]);
    if kernels.clone().all(|kernel| kernel.numbers() == Numbers::Floats) {
        let rows =
            |kernel| if kernel == Kernel::Floats { FloatLayer::Rows } else { FloatLayer::Windows };
        let kinds: Vec<_> = kernels.map(rows).collect();
        return planned_floats(rng, &widths[..=layers], &kinds, 0.1, sum);
    }
    let plain = Besides::PLAIN;
    let besides =
        Besides { biases: is(0), scaled: is(1), relu: is(2), sum, own_factors: is(6), ..plain };
    let encoding = |kernel| match kernel {
        Kernel::Dense => Encoding::Dense,
        Kernel::Mask => Encoding::Mask,
        _ => Encoding::Blocks,
    };
    let encodings: Vec<_> = kernels.map(encoding).collect();
    let density = if widths[1] > 256 { 0.01 } else { 0.05 };
    planned(rng, &widths[..=layers], &encodings, density, besides)
}

/// Models to write without tables: weights of any size, and most of them small.
fn straight(rng: &mut Rng) -> Vec<Drawn> {
    let plain = Besides::PLAIN;
    let (biases, relu) = (Besides { biases: true, ..plain }, Besides { relu: true, ..plain });
    let (own_factors, scaled) =
        (Besides { own_factors: true, ..plain }, Besides { scaled: true, ..plain });
    let sum = Besides { sum: true, ..plain };
    let shapes: [(&[usize], f32, Besides); 12] = [
        (&[784, 10, 10], 0.03, plain),
        (&[784, 24, 10], 0.04, biases),
        (&[784, 16, 10], 0.1, plain),
        (&[60, 16, 5], 0.4, scaled),
        (&[30, 24, 2], 0.5, relu),
        (&[30, 40, 10], 0.3, plain),
        (&[200, 20, 12, 8], 0.1, scaled),
        (&[200, 12, 20], 0.1, own_factors),
        (&[1000, 12], 0.04, sum),
        (&[100, 30], 0.1, sum),
        (&[250, 20, 20], 0.2, relu),
        (&[28, 8, 4], 0.5, biases),
    ];
    let mut models = Vec::new();
    for trained in [false, true] {
        for (widths, density, besides) in shapes {
            let encodings = vec![Encoding::Mask; widths.len() - 1];
            models.push(planned(rng, widths, &encodings, density, Besides { trained, ..besides }));
        }
    }
    models
}

/// Every program.
pub(crate) fn entries() -> Entries {
    use Kernel::{Blocks, Dense, DenseFloats, Floats, Mask, ShortBlocks, ShortWindows, Windows};
    let mut rng = Rng::new(SEED, stream::USER);
    let mut all = Vec::new();
    let mut add = |role: Role, ways: &[Way], model: &Drawn| {
        for &way in ways {
            let program = Program::of(format!("p{}_{}", all.len(), way.name()), way, model);
            all.push(Entry { role, program, model: model.clone() });
        }
    };
    // In C all floats are in rows.
    let languages = |kernel: Kernel| match kernel {
        Windows | ShortWindows => &LANGUAGES[..1],
        _ => &LANGUAGES[..],
    };
    for kernel in Kernel::ALL.into_iter().filter(|kernel| *kernel != DenseFloats) {
        let numbers = kernel.numbers();
        let plain = model(&mut rng, &widths(kernel), &[kernel], None);
        add(Role::Kernel(kernel), languages(kernel), &plain);
        for extra in 0..ANOTHER {
            // What blocks on long rows have besides is what those on short ones have.
            if kernel != Blocks && (numbers == Numbers::Integers || OF_FLOATS.contains(&extra)) {
                let with = model(&mut rng, &widths(kernel), &[kernel], Some(extra));
                add(Role::Extra(extra, kernel), languages(kernel), &with);
            }
        }
        if numbers == Numbers::Floats || kernel == Mask {
            add(Role::File(numbers), &[Way::File], &plain);
        }
    }
    for (a, b) in [
        (Windows, Floats),
        (ShortWindows, Floats),
        (Mask, Dense),
        (Blocks, Dense),
        (Blocks, Mask),
        (Blocks, ShortBlocks),
        (ShortBlocks, Dense),
        (ShortBlocks, Mask),
    ] {
        let widths = if a == Blocks { [300, 12, 6] } else { widths(a) };
        add(Role::Two(a, b), languages(a), &model(&mut rng, &widths, &[a, b], None));
    }
    for (kernel, outputs) in
        [Floats, Mask].into_iter().flat_map(|kernel| OUTPUTS.map(|n| (kernel, n)))
    {
        let model = model(&mut rng, &[300, 12, outputs], &[kernel], None);
        add(Role::Module(kernel.numbers()), &[Way::Embedded, Way::Rust], &model);
    }
    for (at, hidden) in BUFFERS.into_iter().enumerate() {
        add(
            Role::Buffers(at),
            &[Way::Embedded],
            &model(&mut rng, &[300, hidden, 6], &[Mask], None),
        );
    }
    straight(&mut rng).iter().for_each(|model| add(Role::Straight, &[Way::Straight], model));
    Entries(all)
}

/// What programs took beyond what is known exactly.
struct Own<'a> {
    entries: &'a [Entry],
    own: Vec<Pair>,
}

impl Own<'_> {
    fn of(&self, role: Role, way: Way) -> impl Iterator<Item = Pair> {
        let is = move |entry: &Entry| entry.role == role && entry.program.way == way;
        self.entries.iter().zip(&self.own).filter(move |(entry, _)| is(entry)).map(|(_, own)| *own)
    }

    /// A kernel in a language; in C all floats are in rows.
    fn kernel(&self, kernel: Kernel, way: Way) -> Pair {
        let floats = self.of(Role::Kernel(Kernel::Floats), way);
        self.of(Role::Kernel(kernel), way).chain(floats).next().unwrap_or_default()
    }

    /// The most that something takes beyond kernels of these numbers.
    fn extra(&self, extra: usize, numbers: Numbers, way: Way) -> Pair {
        let kernels = || Kernel::ALL.into_iter().filter(move |kernel| kernel.numbers() == numbers);
        if extra < ANOTHER {
            return most(kernels().flat_map(|kernel| {
                let plain = self.kernel(kernel, way);
                self.of(Role::Extra(extra, kernel), way).map(move |own| less(own, plain))
            }));
        }
        let pairs = kernels().flat_map(|a| kernels().map(move |b| (a, b)));
        let pairs = pairs.filter(|pair| *pair != (Kernel::Blocks, Kernel::ShortBlocks));
        most(pairs.flat_map(|(a, b)| {
            let sum = sum(self.kernel(a, way), self.kernel(b, way));
            self.of(Role::Two(a, b), way).map(move |own| less(own, sum))
        }))
    }
}

fn less(a: Pair, b: Pair) -> Pair {
    [a[0] - b[0], a[1] - b[1]]
}

/// Of two kernels: code adds up, the deepest stack stays.
fn sum(a: Pair, b: Pair) -> Pair {
    [a[0] + b[0], a[1].max(b[1])]
}

fn most(pairs: impl Iterator<Item = Pair>) -> Pair {
    pairs.reduce(|a, b| [a[0].max(b[0]), a[1].max(b[1])]).unwrap_or_default()
}

impl Entries {
    pub(crate) fn programs(&self) -> Vec<Program> {
        self.0.iter().map(|entry| entry.program.clone()).collect()
    }

    /// What the table says of a core on which the programs took this, and a plain loop over floats
    /// that.
    pub(crate) fn bytes(&self, took: &[Taken], plain: [u64; 2]) -> Bytes {
        let mut own = Own { entries: &self.0, own: Vec::new() };
        own.own = self.0.iter().zip(took).map(|(entry, took)| entry.own(*took)).collect();
        let mut bytes =
            Bytes { zeros: self.zeros(&own), straight: self.straight(took), ..Bytes::default() };
        for (entry, own) in self.0.iter().zip(&mut own.own) {
            own[0] -= zeros(bytes.zeros.map(|bytes| bytes as u16), entry.buffers()) as i64;
        }
        for (language, way) in LANGUAGES.into_iter().enumerate() {
            for kernel in Kernel::ALL {
                bytes.kernels[kernel as usize][language] = own.kernel(kernel, way);
            }
            for (at, numbers) in [Numbers::Floats, Numbers::Integers].into_iter().enumerate() {
                for extra in 0..EXTRAS {
                    bytes.extras[at][extra][language] = own.extra(extra, numbers, way);
                }
            }
            let [long, short] =
                [Kernel::Blocks, Kernel::ShortBlocks].map(|kernel| own.kernel(kernel, way));
            let both = most(own.of(Role::Two(Kernel::Blocks, Kernel::ShortBlocks), way));
            let another = bytes.extras[1][ANOTHER][language][0];
            bytes.shared[language] = (sum(long, short)[0] + another - both[0]).max(0);
        }
        bytes.kernels[Kernel::DenseFloats as usize] = [plain.map(|bytes| bytes as i64), [0; 2]];
        for (at, numbers) in [Numbers::Floats, Numbers::Integers].into_iter().enumerate() {
            bytes.file[at] = most(own.of(Role::File(numbers), Way::File));
            let embedded = own.of(Role::Module(numbers), Way::Embedded);
            let modules = own.of(Role::Module(numbers), Way::Rust);
            bytes.module[at] =
                most(modules.zip(embedded).map(|(module, embedded)| less(module, embedded)));
        }
        bytes
    }

    /// Bounds of code and of all RAM without tables.
    fn straight(&self, took: &[Taken]) -> [Vec<f64>; 2] {
        let of = || self.0.iter().zip(took).filter(|(entry, _)| entry.role == Role::Straight);
        let counts = |entry: &Entry| {
            let none = [0; STRAIGHT];
            let counts =
                entry.model.read(|_, _| none, |_| none, |view| Straight::of(view.model()).0);
            counts.map(|count| count as f64).to_vec()
        };
        // Of RAM only what is in it: the prediction itself, bytes, what a sum adds, and outputs.
        let held = |at: usize| [0, 6, 10, 11].contains(&at);
        let in_ram = |counts: &Vec<f64>| {
            let counts = counts.iter().enumerate();
            counts.map(|(at, &count)| if held(at) { count } else { 0.0 }).collect()
        };
        let code: Vec<Vec<f64>> = of().map(|(entry, _)| counts(entry)).collect();
        let ram: Vec<Vec<f64>> = code.iter().map(in_ram).collect();
        let [flash, stack]: [Vec<f64>; 2] = [|took: &Taken| took.flash, |took: &Taken| took.ram]
            .map(|bytes: fn(&Taken) -> u64| of().map(|(_, took)| bytes(took) as f64).collect());
        [bounding(&code, &flash), bounding(&ram, &stack)]
    }

    /// Bytes of code for buffers of 64 words, and of the routine for longer ones.
    fn zeros(&self, own: &Own<'_>) -> Pair {
        let [few, many, routine] =
            [0, 1, 2].map(|k| most(own.of(Role::Buffers(k), Way::Embedded))[0]);
        let words =
            |k| self.0.iter().find(|entry| entry.role == Role::Buffers(k)).map_or(0, Entry::words);
        let (short, long) = (words(0), words(1));
        let of_64 = (64 * (many - few) + (long - short) / 2) / (long - short).max(1);
        [of_64.max(0), (routine - few + of_64 * short / 64).max(0)]
    }
}

/// Prices that no measured model takes more than.
fn bounding(counts: &[Vec<f64>], took: &[f64]) -> Vec<f64> {
    let prices = fit::prices(counts, took);
    let of = |counts: &[f64]| {
        counts.iter().zip(&prices).map(|(count, price)| count * price).sum::<f64>()
    };
    let most = counts.iter().zip(took).map(|(counts, took)| took / of(counts)).fold(1.0, f64::max);
    prices.iter().map(|price| price * most * (1.0 + MARGIN)).collect()
}

impl Entry {
    /// Code, and stack besides what is known exactly.
    fn own(&self, took: Taken) -> Pair {
        let known = self.model.estimate(Core::CortexM4F).ways[self.program.way as usize]
            .unwrap_or_default();
        let buffers = known.scratch_bytes + known.output_bytes;
        [took.flash as i64 - known.model_bytes as i64, took.ram as i64 - buffers as i64]
    }

    /// Words of scratch and outputs that [`tamis::infer::model::zeros`] makes.
    fn buffers(&self) -> [usize; 2] {
        let by_zeros = self.program.numbers == Numbers::Integers
            && matches!(self.program.way, Way::Embedded | Way::Rust);
        if by_zeros { [self.program.scratch, self.program.outputs] } else { [0; 2] }
    }

    fn words(&self) -> i64 {
        self.program.scratch as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{float_extras, integer_extras};

    #[test]
    fn every_program_has_what_it_is_measured_for() {
        for entry in &entries().0 {
            let (kernels, extras): (Vec<_>, _) = entry.model.read(
                |_, _| (Vec::new(), [0; EXTRAS]),
                |view| {
                    let layers = view.model().layers();
                    (layers.iter().filter_map(Kernel::of_floats).collect(), float_extras(layers))
                },
                |view| {
                    let kernels = view.model().layers().iter();
                    let kernels =
                        kernels.map(|layer| Kernel::of_integers(layer.weights())).collect();
                    (kernels, integer_extras(view.model()))
                },
            );
            let mut expected = [0; EXTRAS];
            match entry.role {
                Role::Kernel(kernel) => assert!(kernels[0] == kernel && kernels.len() == 2),
                Role::Extra(extra, kernel) => {
                    assert_eq!(kernels[0], kernel);
                    expected[extra] = 1;
                }
                Role::Two(a, b) => assert_eq!(kernels, [a, b]),
                _ => continue,
            }
            assert_eq!(extras, expected, "{:?}", entry.role);
        }
    }
}
