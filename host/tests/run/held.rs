//! Rows held out of a search whose labels have noise: what they choose is better, on rows that
//! nobody saw, than what the search gives from the same rows without looking at others.

use tamis::base::dims::Dims;
use tamis::base::rng::{Permutation, Rng, stream};
use tamis::network::gates::Signs;
use tamis::network::weights::Weights;
use tamis_host::data::{Matrix, Values, planted};
use tamis_host::data::{Problem, Task};
use tamis_host::model::Score;
use tamis_host::train::LmOptions;
use tamis_host::{Budget, Options, Recipe};

/// Rows to learn from, a fifth of which is held out, and rows that nobody sees.
const ROWS: usize = 300;
const UNSEEN: usize = 2000;
const INPUTS: usize = 20;
const HIDDEN: usize = 3;
const NNZ: usize = 15;
/// Of the labels, in parts of their root mean square.
const NOISE: f32 = 0.3;
const SEEDS: u64 = 16;

/// A planted problem with noise, and unseen rows with labels that have none.
fn noisy(seed: u64) -> (Problem, (Vec<f32>, Vec<f32>)) {
    let dims = Dims::new(ROWS + UNSEEN, INPUTS, HIDDEN, NNZ);
    let planted::Planted { data, mut labels, .. } =
        planted::network(dims, Signs::Positive, seed).unwrap();
    let mut x = data.values.into_f32();
    let unseen = (x.split_off(ROWS * INPUTS), labels.split_off(ROWS));
    let rms = (labels.iter().map(|y| y * y).sum::<f32>() / ROWS as f32).sqrt();
    let mut rng = Rng::new(seed, stream::USER);
    labels.iter_mut().for_each(|y| *y += NOISE * rms * rng.normal());
    let data = Matrix::new(ROWS, INPUTS, Values::F32(x)).unwrap();
    (Problem { data, labels, task: Task::Regression }, unseen)
}

/// The rows that a search with this seed fits where a fifth is held out.
fn fitted(problem: &Problem, seed: u64) -> Problem {
    let order = Permutation::new(seed, stream::ROWS, ROWS);
    let rows: Vec<usize> = (0..ROWS - ROWS / 5).map(|k| order.get(k)).collect();
    let x = problem.data.values.clone().into_f32();
    let values = rows.iter().flat_map(|&k| &x[k * INPUTS..][..INPUTS]).copied().collect();
    let data = Matrix::new(rows.len(), INPUTS, Values::F32(values)).unwrap();
    Problem { data, labels: rows.iter().map(|&k| problem.labels[k]).collect(), task: problem.task }
}

/// Mean squared error on unseen rows of the network that a search finds.
fn unseen_loss(
    problem: &Problem,
    seed: u64,
    validation: f64,
    (x, y): &(Vec<f32>, Vec<f32>),
) -> f64 {
    let lm = LmOptions { validation, signs: Some(Signs::Positive), ..LmOptions::default() };
    let (recipe, usual) = (Recipe::Lm(lm), Options::new(Budget::nnz(NNZ)));
    let options = Options { recipe, hidden: vec![HIDDEN], seed, threads: 1, ..usual };
    let network = tamis_host::train(problem, options).unwrap().network;
    let w = Weights::new(INPUTS, HIDDEN, &network.index, &network.value).unwrap();
    let predict = |row: &[f32]| -> f32 {
        w.blocks().map(|block| block.entries().map(|(j, w)| w * row[j]).sum::<f32>().max(0.0)).sum()
    };
    let predicted: Vec<f32> = x.chunks(INPUTS).map(predict).collect();
    Score::new(Task::Regression, y, &predicted).loss
}

#[test]
fn validation_chooses_no_worse_on_unseen_rows() {
    let (mut chosen, mut plain, mut better) = (0.0, 0.0, 0);
    for seed in 0..SEEDS {
        let (problem, unseen) = noisy(seed);
        let power = unseen.1.iter().map(|y| f64::from(y * y)).sum::<f64>() / UNSEEN as f64;
        let without = unseen_loss(&fitted(&problem, seed), seed, 0.0, &unseen) / power;
        let with = unseen_loss(&problem, seed, 0.2, &unseen) / power;
        (chosen, plain) = (chosen + with, plain + without);
        better += u32::from(with < without);
    }
    let (chosen, plain) = (chosen / SEEDS as f64, plain / SEEDS as f64);
    println!(
        "unseen loss {chosen:.4} with and {plain:.4} without, better for {better} of {SEEDS} seeds"
    );
    assert!(chosen <= plain, "{chosen} {plain}");
}
