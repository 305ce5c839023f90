//! Rows of the table of forest cover types, or of a generated one in its place.

use std::path::Path;

use tamis::base::rng::{CounterRng, Permutation, stream};

use super::spec::{DenseData, Inputs, Tables};
use crate::data::select::reorder;
use crate::data::{DataFiles, Labels, Matrix, Problem, Task, Values};
use crate::{Error, Result};

/// The original file, under the folder of the data.
pub(super) const FILE: &str = "covtype/covtype.data.gz";
/// Numbers of a row; one of four areas and one of forty soils follow, a column for each.
const NUMBERS: usize = 10;
const AREAS: usize = 4;
const SOILS: usize = 40;
/// Which rows are trained on, and all of a generated table: the same in all cells.
const SEED: u64 = 0;

/// Rows in an order that is drawn once: `n` to train on, then those to test on.
pub(super) fn load(data: &DenseData, n: usize, file: &Path) -> Result<[Problem; 2]> {
    let table = match data.from {
        Tables::Covertype => read(file)?,
        Tables::StandIn => stand_in(n + data.test)?,
    };
    let all = table.data.rows;
    if n + data.test > all {
        return Err(Error::new("the table has too few rows")
            .at(file)
            .expected(format_args!("{n} to train and {} to test on", data.test))
            .got(format_args!("{all} rows"))
            .help("pass the whole file, or choose fewer rows in the spec"));
    }
    let order = Permutation::new(SEED, stream::USER, all);
    let Problem { data: mut matrix, mut labels, task } = table;
    reorder(&mut matrix, &mut labels, |k| order.get(k));
    labels.truncate(n + data.test);
    let mut values = matrix.values.into_f32();
    values.truncate((n + data.test) * Tables::COLUMNS);
    if data.inputs == Inputs::Standardised {
        standardise(&mut values, n);
    }
    let other = values.split_off(n * Tables::COLUMNS);
    let test_labels = labels.split_off(n);
    let problem = |values: Vec<f32>, labels: Vec<f32>| -> Result<Problem> {
        let data = Matrix::new(labels.len(), Tables::COLUMNS, Values::F32(values))?;
        Ok(Problem { data, labels, task })
    };
    Ok([problem(values, labels)?, problem(other, test_labels)?])
}

fn read(file: &Path) -> Result<Problem> {
    let column = Tables::COLUMNS + 1;
    let keep = Some((1..=Tables::CLASSES).map(|class| class.to_string()).collect());
    let files = DataFiles::new(file.to_owned(), Labels::Column(column.to_string()));
    let files = DataFiles { keep, ..files };
    let problem = files.load_to_learn(Some(Task::Multiclass))?.problem;
    if problem.data.cols == Tables::COLUMNS {
        return Ok(problem);
    }
    Err(Error::new("the table is not that of the cover types")
        .at(file)
        .expected(format_args!("{column} columns"))
        .got(problem.data.cols + 1)
        .help("keep the original file there, covtype.data.gz, unpacked or not"))
}

/// Each column less its mean, over its standard deviation, of the first `n` rows; columns without
/// any are 0 there.
fn standardise(values: &mut [f32], n: usize) {
    for column in 0..Tables::COLUMNS {
        let of = values.iter().skip(column).step_by(Tables::COLUMNS).take(n);
        let count = n.max(1) as f64;
        let mean = of.clone().map(|&x| f64::from(x)).sum::<f64>() / count;
        let square = of.map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / count;
        let deviation = if square > 0.0 { square.sqrt() } else { 1.0 };
        for x in values.iter_mut().skip(column).step_by(Tables::COLUMNS) {
            *x = ((f64::from(*x) - mean) / deviation) as f32;
        }
    }
}

/// Rows of the columns of the table: numbers of different sizes, an area, a soil. The class is the
/// largest of linear forms of these and of pairs of numbers, so that it can be learned.
fn stand_in(rows: usize) -> Result<Problem> {
    let forms = CounterRng::new(SEED, stream::USER + 1);
    let weight = |class: usize, term: usize| forms.normal((class * 1000 + term) as u32);
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let own = CounterRng::new(SEED, stream::USER + 2 + row as u64);
        let numbers: [f32; NUMBERS] = std::array::from_fn(|k| own.normal(k as u32));
        let area = own.bits(100) as usize % AREAS;
        let soil = own.bits(101) as usize % SOILS;
        let score = |class: usize| {
            let linear = (0..NUMBERS).map(|k| weight(class, k) * numbers[k]).sum::<f32>();
            let pairs = (0..NUMBERS - 1)
                .map(|k| weight(class, 100 + k) * numbers[k] * numbers[k + 1])
                .sum::<f32>();
            linear + pairs + weight(class, 200 + area) + weight(class, 300 + soil)
        };
        let class = (0..Tables::CLASSES).max_by(|&a, &b| score(a).total_cmp(&score(b)));
        labels.push(class.unwrap_or(0) as f32);
        // Of sizes from 1 to 3000, as elevations and slopes are.
        let size = |k: usize| 1.0 + 3000.0 / (1 << k) as f32;
        values.extend((0..NUMBERS).map(|k| size(k) * (3.0 + numbers[k])));
        values.extend((0..AREAS).map(|k| f32::from(u8::from(k == area))));
        values.extend((0..SOILS).map(|k| f32::from(u8::from(k == soil))));
    }
    let data = Matrix::new(rows, Tables::COLUMNS, Values::F32(values))?;
    Ok(Problem { data, labels, task: Task::Multiclass })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(from: Tables, inputs: Inputs) -> DenseData {
        DenseData { from, samples: 60, test: 40, inputs }
    }

    #[test]
    fn original_rows_are_read_and_shuffled_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("covtype.data");
        let line = |row: usize| {
            let mut cells = vec![row.to_string()];
            cells.extend((1..Tables::COLUMNS).map(|k| (row * k % 7).to_string()));
            cells.push((row % 7 + 1).to_string());
            cells.join(",")
        };
        std::fs::write(&file, (0..110).map(line).collect::<Vec<_>>().join("\n")).unwrap();
        let of = data(Tables::Covertype, Inputs::Raw);
        let [train, test] = load(&of, 60, &file).unwrap();
        assert_eq!((train.data.rows, test.data.rows), (60, 40));
        let Values::F32(values) = &train.data.values else { panic!("floats") };
        let rows = values.chunks(Tables::COLUMNS).zip(&train.labels);
        assert!(rows.clone().all(|(row, label)| row[0] as usize % 7 == *label as usize));
        assert!(!rows.map(|(row, _)| row[0]).is_sorted());
        assert!(load(&of, 80, &file).unwrap_err().to_string().contains("110 rows"));
    }

    #[test]
    fn standardised_columns_have_mean_0_and_deviation_1() {
        let of = data(Tables::StandIn, Inputs::Standardised);
        let [train, _] = load(&of, 60, Path::new("")).unwrap();
        let Values::F32(values) = &train.data.values else { panic!("floats") };
        for column in 0..NUMBERS {
            let of: Vec<f64> = values
                .iter()
                .skip(column)
                .step_by(Tables::COLUMNS)
                .map(|&x| f64::from(x))
                .collect();
            assert!(of.iter().sum::<f64>().abs() < 1e-3);
            assert!((of.iter().map(|x| x * x).sum::<f64>() / 60.0 - 1.0).abs() < 1e-3);
        }
    }

    #[test]
    fn stand_in_has_every_class() {
        let table = stand_in(2000).unwrap();
        for class in 0..Tables::CLASSES {
            assert!(table.labels.contains(&(class as f32)), "{class}");
        }
    }
}
