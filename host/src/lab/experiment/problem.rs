//! The data of a cell: made from its seed, or read from files that are not part of the project.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use tamis::base::dims::Dims;
use tamis::network::gates::Signs;

use super::cell::Cell;
use super::compare::{self, Neuron};
use super::covertype;
use super::planted as rows;
use super::spec::{Data, DenseData, Distribution, MaskedData, Part, Pictures, Tables};
use crate::base::statistics::mean_square;
use crate::base::{file, room_for};
use crate::data::image::{Fourier, Picture};
use crate::data::{self, Matrix, Values, digits, planted, select, shrink};
use crate::data::{DataFiles, Labels, Problem, Task};
use crate::{Error, Result};

/// The variable that names the folder of the data, where no flag does.
pub(crate) const FOLDER_VARIABLE: &str = "TAMIS_DATA";
/// Seed of drawn digits: the same images in all cells.
const DIGITS_SEED: u64 = 0;
/// Images of each digit of MNIST before the test part.
const MNIST_TRAIN: usize = 5000;
/// Images of each digit in the test part of MNIST, at most.
const MNIST_TEST: usize = 1000;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Set {
    pub(crate) train: Problem,
    pub(crate) test: Option<Problem>,
    /// The planted network, of one hidden layer and one output.
    pub(super) planted: Option<Vec<Neuron>>,
    /// Mean square of the noise on the labels of the test rows.
    pub(super) noise: Option<f64>,
    /// Rows, columns and channels of the picture that the training rows are.
    pub(super) picture: Option<[usize; 3]>,
}

impl Set {
    pub(crate) const fn new(train: Problem, test: Option<Problem>) -> Self {
        Self { train, test, planted: None, noise: None, picture: None }
    }
}

/// The files of MNIST and of data sets like it, images and labels of either part.
const IDX: [&str; 4] = [
    "train-images-idx3-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
];

/// The files that a part needs, under the folder of the data.
pub(crate) fn files_of(part: &Part) -> Vec<String> {
    let pixels = part.variants.iter().any(|variant| variant.rows == Some(Distribution::Pixels));
    let from = match part.data {
        Data::Mnist { .. } => Some(Pictures::Mnist),
        Data::Image { from, .. }
        | Data::Masks { from, .. }
        | Data::Masked(MaskedData { from, .. }) => Some(from),
        _ => None,
    };
    let mut files = match part.data {
        _ if from.and_then(Pictures::idx_folder).is_some() => {
            let folder = from.and_then(Pictures::idx_folder).unwrap_or_default();
            IDX.map(|name| format!("{folder}/{name}")).to_vec()
        }
        Data::Image { from: Pictures::Cifar, index, .. } => {
            let chosen = part.variants.iter().filter_map(|variant| variant.picture);
            let chosen: BTreeSet<usize> = chosen.collect();
            let all = if chosen.is_empty() { BTreeSet::from([index]) } else { chosen };
            all.iter().map(|index| format!("cifar/image{index}.png")).collect()
        }
        Data::Dense(DenseData { from: Tables::Covertype, .. }) => vec![covertype::FILE.to_owned()],
        _ => Vec::new(),
    };
    files.extend(pixels.then(|| format!("mnist/{}", IDX[0])));
    files
}

/// A file under the folder of the data, without its ending `.gz` where only that is there.
fn found(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    let plain = name.strip_suffix(".gz").map(|name| folder.join(name));
    plain.filter(|plain| !path.exists() && plain.exists()).unwrap_or(path)
}

pub(crate) fn check_files(part: &Part, folder: Option<&Path>) -> Result<()> {
    for name in files_of(part) {
        let path = folder.map(|folder| found(folder, &name));
        if path.as_deref().map_or(Ok(false), file::exists)? {
            continue;
        }
        let help = if name.starts_with("mnist") {
            "get the four files of the MNIST database of handwritten digits (LeCun, Cortes and \
             Burges) and keep them, as gzip or not, in DIR/mnist"
        } else if name.starts_with("fashion") {
            "get the four files of Fashion-MNIST (Xiao, Rasul and Vollgraf, 2017) and keep them, as \
             gzip or not, in DIR/fashion"
        } else if name.starts_with("covtype") {
            "get covtype.data.gz of the data set Covertype (Blackard, 1998) and keep it, as gzip or not, \
             in DIR/covtype"
        } else {
            "save 32×32 pictures of the CIFAR-10 data set (Krizhevsky, 2009) as PNG files \
             image0.png, image1.png, … in DIR/cifar"
        };
        let error = Error::new("a data set is missing")
            .expected(format_args!("--data-dir DIR with {name} in DIR"))
            .help(format!(
                "{help}; or pass --digits to take drawn digits or generated rows instead"
            ));
        return Err(match path {
            Some(path) => error.at(path).got("no such file"),
            None => error.got(format_args!("no folder of data, and no {FOLDER_VARIABLE}")),
        });
    }
    Ok(())
}

pub(crate) fn load(part: &Part, cell: &Cell, folder: Option<&Path>) -> Result<Set> {
    check_files(part, folder)?;
    let folder = folder.unwrap_or(Path::new("."));
    let task = part.data.task();
    match &part.data {
        &Data::Planted { inputs, outputs, test, .. } => {
            plant(part, cell, folder, [inputs, outputs, test])
        }
        Data::Mnist { classes, train, test, official } => {
            let folder = folder.join("mnist");
            let images = |files, rows| learnt(&idx(&folder, files, classes, rows), task);
            let (own, other, tested): (&[usize], &[usize], _) = match official {
                true => (&[0], &[1], 0..*test),
                false => (&[0, 1], &[0, 1], *train..train + test),
            };
            let test = (*test > 0).then(|| images(other, tested)).transpose()?;
            Ok(Set::new(images(own, 0..*train)?, test))
        }
        Data::Digits { side, classes, train, test } => drawn(*side, classes, *train, *test, task),
        Data::Masks { from, train, .. } => {
            let classes: Vec<u8> = (0..10).collect();
            let Some(name) = from.idx_folder() else {
                return drawn(28, &classes, *train, 0, task);
            };
            let files = idx(&folder.join(name), &[0], &classes, 0..*train);
            Ok(Set::new(learnt(&files, task)?, None))
        }
        &Data::Masked(MaskedData { from, train, test, .. }) => {
            let classes: Vec<u8> = (0..10).collect();
            let Some(name) = from.idx_folder() else {
                return drawn(28, &classes, train, test, task);
            };
            let folder = folder.join(name);
            let images = |file, count| learnt(&idx(&folder, &[file], &classes, 0..count), task);
            Ok(Set::new(images(0, train)?, Some(images(1, test)?)))
        }
        Data::Dense(data) => {
            let file = found(folder, covertype::FILE);
            let [train, test] = covertype::load(data, cell.point(part).n, &file)?;
            Ok(Set::new(train, Some(test)))
        }
        Data::Image { from, index, features, deviation, channel_deviation } => {
            let (features, deviation, seed) = (*features, *deviation, cell.seed);
            let channel_deviation = channel_deviation.unwrap_or(0.0);
            let fourier = Fourier { features, deviation, channel_deviation, seed };
            let index = part.variant(cell.point(part)).picture.unwrap_or(*index);
            let picture = picture(*from, index, folder)?;
            let (data, labels) = picture.samples(&fourier)?;
            let shape = [picture.rows, picture.cols, picture.channels];
            Ok(Set { picture: Some(shape), ..Set::new(Problem { data, labels, task }, None) })
        }
        // Of checks of the theory.
        _ => Err(Error::new("a check of the theory has no data to train on")
            .expected("data to train on")
            .got(cell.id())
            .help("its data are made where it is measured")),
    }
}

/// Rows of a planted network, the first ones to train on.
fn plant(
    part: &Part,
    cell: &Cell,
    folder: &Path,
    [inputs, outputs, test]: [usize; 3],
) -> Result<Set> {
    let (at, seed) = (cell.point(part), cell.seed);
    let (train, variant) = (at.n, part.variant(at));
    let n = train + test;
    let dims = Dims::new(n, inputs, at.m, at.s);
    let numbers = (n as u64).saturating_mul((inputs as u64).saturating_add(outputs as u64));
    let help = "choose fewer data.samples in the spec";
    room_for("the planted data", numbers.saturating_mul(4), help)?;
    let mut planted = None;
    let (data, mut labels) = if (part.hidden, outputs) == (1, 1) {
        let signs = if variant.negative == Some(true) { Signs::Balanced } else { Signs::Positive };
        let made = match variant.rows {
            None => planted::network(dims, signs, seed)?,
            Some(of) => {
                let rows = rows::rows(of, n, inputs, seed, &found(&folder.join("mnist"), IDX[0]))?;
                planted::network_on(rows, at.m, at.s, signs, seed)?
            }
        };
        planted = Some(compare::planted(made.weights()?, made.signs));
        (made.data, made.labels)
    } else if part.hidden == 1 {
        let made = planted::factored(dims, outputs, seed)?;
        (made.data, made.labels)
    } else {
        let made = planted::deep(n, inputs, &vec![at.m; part.hidden], outputs, at.s, seed)?;
        (made.data, made.labels)
    };
    let noise = variant.noise.map(|sigma| rows::add_noise(&mut labels, sigma, seed));
    let noise = noise.map(|noise| mean_square(&noise[train * outputs..]));
    let test_labels = labels.split_off(train * outputs);
    let mut values = data.values.into_f32();
    let test_values = values.split_off(train * inputs);
    // A cell trains without the memory that the rows to test on had.
    labels.shrink_to_fit();
    shrink(&mut values);
    let problem = |rows, values, labels| {
        let data = Matrix { rows, cols: inputs, values: Values::F32(values) };
        Problem { data, labels, task: Task::Regression }
    };
    let test = (test > 0).then(|| problem(test, test_values, test_labels));
    Ok(Set { planted, noise, ..Set::new(problem(train, values, labels), test) })
}

/// Rows of the files in a folder, counted in the training files (0), the test files (1) or both.
fn idx(folder: &Path, files: &[usize], classes: &[u8], rows: Range<usize>) -> DataFiles {
    let path = |name: &str| found(folder, name).display().to_string();
    let paths = |at: usize| {
        PathBuf::from(files.iter().map(|i| path(IDX[at + i])).collect::<Vec<_>>().join(","))
    };
    let keep = Some(classes.iter().map(u8::to_string).collect());
    let files = DataFiles::new(paths(0), Labels::File(paths(2)));
    DataFiles { keep, rows_per_label: Some(rows), ..files }
}

fn learnt(files: &DataFiles, task: Task) -> Result<Problem> {
    files.load_to_learn(Some(task)).map(|loaded| loaded.problem)
}

/// Drawn digits: enough that every class has its images, then as with MNIST.
fn drawn(side: usize, classes: &[u8], train: usize, test: usize, task: Task) -> Result<Set> {
    let keep: Vec<f32> = classes.iter().map(|&class| f32::from(class)).collect();
    let of = |rows: Range<usize>| -> Result<Problem> {
        let bytes = (digits::CLASSES * side * side) as u64 * rows.end as u64;
        room_for("the drawn digits", bytes, "choose fewer data.train and data.test in the spec")?;
        // Every ten images hold each digit once.
        let (images, labels) = digits::generate(digits::CLASSES * rows.end, side, DIGITS_SEED)?;
        let labels: Vec<f32> = labels.into_iter().map(f32::from).collect();
        let (images, labels) = select::keep_labels(images, &labels, &keep)?;
        let (data, labels) = select::rows_per_label(images, &labels, rows)?;
        Ok(Problem { data, labels: select::class_indices(&labels, &keep)?, task })
    };
    let tested = (test > 0).then(|| of(train..train + test)).transpose()?;
    Ok(Set::new(of(0..train)?, tested))
}

fn picture(from: Pictures, index: usize, folder: &Path) -> Result<Picture> {
    let beyond = |most: usize| {
        Error::new("there is no such picture")
            .expected(format_args!("data.index below {most}"))
            .got(index)
            .help("choose another index in the spec")
    };
    match from {
        Pictures::Cifar => Picture::load(folder.join(format!("cifar/image{index}.png"))),
        Pictures::Mnist | Pictures::Fashion => {
            let folder = folder.join(from.idx_folder().unwrap_or_default());
            let source = idx(&folder, &[0, 1], &[], 0..1);
            let Labels::File(labels) = &source.labels else { return Err(beyond(0)) };
            let chosen = |labels: &[f32]| {
                let test = select::occurrences(labels, MNIST_TRAIN..MNIST_TRAIN + MNIST_TEST)?;
                Ok(Some(vec![*test.get(index).ok_or_else(|| beyond(test.len()))?]))
            };
            let (image, _) = data::load_chosen(&source.data, labels, chosen)?;
            square(image, 28, 1)
        }
        Pictures::Digits => {
            let count = index.checked_add(1).ok_or_else(|| beyond(usize::MAX))?;
            let (images, _) = digits::generate(count, 28, DIGITS_SEED)?;
            square(select::gather(images, vec![index])?, 28, 1)
        }
        Pictures::ColourDigits => {
            let first = index.checked_mul(3).filter(|&first| first < 1 << 20);
            let first = first.ok_or_else(|| beyond((1 << 20) / 3))?;
            let (images, _) = digits::generate(first + 3, 32, DIGITS_SEED)?;
            let planes = select::gather(images, (first..first + 3).collect())?;
            let picture = square(planes, 32, 3)?;
            // Plane by plane to pixel by pixel.
            let value = |i: usize| picture.values[i % 3 * 32 * 32 + i / 3];
            let values = (0..32 * 32 * 3).map(value).collect();
            Ok(Picture { values, ..picture })
        }
    }
}

fn square(images: Matrix, side: usize, channels: usize) -> Result<Picture> {
    match images.values {
        Values::U8(values) if values.len() == side * side * channels => {
            Ok(Picture { rows: side, cols: side, channels, values })
        }
        other => Err(Error::new("the images have another size")
            .expected(format_args!("{side} × {side} bytes each"))
            .got(format_args!("{} numbers", other.len()))
            .help("pass the original files of MNIST")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::Spec;
    use super::*;

    fn set(hidden: usize, m: usize, s: usize, data: &str) -> Set {
        let metric =
            if data.contains("digits\",") && !data.contains("image") { "accuracy" } else { "psnr" };
        let text = format!(
            "name='t'\ntitle='t'\nsource='t'\n[[part]]\nname='p'\ntitle='p'\nhidden={hidden}\nm=[{m}]\ns=[{s}]\nepochs=1\n\
             batch=0\nmethods=['paper']\nseeds=[3]\nmetric='{metric}'\non='train'\nrange=[0,1]\ndata={data}\n"
        );
        let spec = Spec::parse(&text, None).unwrap();
        load(&spec.part[0], &spec.cells()[0], None).unwrap()
    }

    /// All rows of both halves have noise, and the planted network is the same without it.
    #[test]
    fn a_variant_changes_planted_rows_and_labels() {
        let text = "name='t'\ntitle='t'\nsource='t'\n[[part]]\nname='p'\ntitle='p'\nm=[3]\ns=[6]\nn=[40]\nepochs=1\nbatch=0\n\
                    methods=['recipe']\nseeds=[3]\nmetric='psnr'\nrange=[0,1]\n\
                    variants=[{name='clean'}, {name='noisy', noise=0.5}, {name='small', \
                    rows='ternary'}]\n\
                    data={kind='planted',samples=9,inputs=5,outputs=1,test=300}\n";
        let spec = Spec::parse(text, None).unwrap();
        let [clean, noisy, small] =
            [0, 1, 2].map(|at| load(&spec.part[0], &spec.cells()[at], None).unwrap());
        assert_eq!((clean.train.data.rows, clean.noise, noisy.train.labels.len()), (40, None, 40));
        assert_eq!((&clean.planted, &clean.train.data), (&noisy.planted, &noisy.train.data));
        let [clean, noisy_labels] = [&clean, &noisy].map(|set| &set.test.as_ref().unwrap().labels);
        let added: Vec<f32> = noisy_labels.iter().zip(clean).map(|(a, b)| a - b).collect();
        assert!((mean_square(&added) / noisy.noise.unwrap() - 1.0).abs() < 1e-3);
        assert!(small.train.data.values.into_f32().iter().all(|x| [-1.0, 0.0, 1.0].contains(x)));
    }

    #[test]
    fn test_rows_continue_the_same_planted_network() {
        let of = |samples: usize, test: usize| {
            format!(
                r#"{{ kind = "planted", samples = {samples}, inputs = 6, outputs = 2, test = {test} }}"#
            )
        };
        for hidden in [1, 2] {
            let whole = set(hidden, 3, 9, &of(50, 0));
            let parts = set(hidden, 3, 9, &of(30, 20));
            let test = parts.test.unwrap();
            assert_eq!([&parts.train.labels[..], &test.labels].concat(), whole.train.labels);
            assert_eq!((parts.train.data.rows, test.data.rows, whole.test), (30, 20, None));
        }
    }

    #[test]
    fn drawn_digits_keep_train_and_test_apart() {
        let made = set(
            1,
            2,
            4,
            r#"{ kind = "digits", side = 8, classes = [1, 7], train = 30, test = 10 }"#,
        );
        let test = made.test.unwrap();
        assert_eq!((made.train.data.rows, test.data.rows, made.train.task), (60, 20, Task::Binary));
        assert_eq!(made.train.labels.iter().sum::<f32>(), 30.0);
        let (Values::U8(train), Values::U8(held)) = (&made.train.data.values, &test.data.values)
        else {
            panic!("bytes")
        };
        assert!(held.chunks(64).all(|image| train.chunks(64).all(|other| other != image)));
    }

    #[test]
    fn pictures_are_drawn_where_there_are_none() {
        let grey =
            r#"{ kind = "image", from = "digits", index = 1, features = 20, deviation = 2.0 }"#;
        let made = set(1, 2, 4, grey).train;
        assert_eq!((made.data.rows, made.data.cols), (784, 20));
        assert!(made.labels.iter().any(|&y| y > 0.5) && made.labels.iter().all(|&y| y <= 1.0));
        let colours = grey
            .replace("\"digits\"", "\"colour-digits\"")
            .replace(" }", ", channel_deviation = 0.05 }");
        assert_eq!(set(1, 2, 4, &colours).train.data.rows, 32 * 32 * 3);
    }
}
