//! Random rows with random labels, for scores of masks that take no labelled data, or none at all.

use tamis::base::rng::{Permutation, Rng, stream};

use super::{Matrix, Problem, Task, Values};
use crate::Result;

const VALUES: u64 = stream::USER + (0xd7 << 32);
const LABELS: u64 = stream::USER + (0xd8 << 32);
/// The order in which inputs are dealt to the rows.
const INPUTS: u64 = stream::USER + (0xd9 << 32);

/// Mean and standard deviation of all values of a data set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Moments {
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
}

impl Moments {
    pub(crate) const STANDARD: Self = Self { mean: 0.0, deviation: 1.0 };

    /// Those of all values, each times `scale`.
    pub(crate) fn of(data: &Matrix, scale: f32) -> Self {
        let scale = f64::from(scale);
        match &data.values {
            Values::F32(values) => Self::of_values(values.iter().map(|&x| scale * f64::from(x))),
            Values::U8(values) => Self::of_values(values.iter().map(|&x| scale * f64::from(x))),
        }
    }

    fn of_values(values: impl ExactSizeIterator<Item = f64> + Clone) -> Self {
        let n = values.len().max(1) as f64;
        let mean = values.clone().sum::<f64>() / n;
        let variance = values.map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        Self { mean, deviation: variance.sqrt() }
    }
}

/// Random rows: normal values, and labels that do not depend on them, uniform classes or, for
/// regression, standard normal numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RandomRows {
    /// B.
    pub(crate) rows: usize,
    /// d.
    pub(crate) inputs: usize,
    /// Of the network; for several classes one for each.
    pub(crate) outputs: usize,
    pub(crate) task: Task,
    pub(crate) moments: Moments,
    pub(crate) seed: u64,
}

impl RandomRows {
    /// Every value is drawn.
    ///
    /// # Errors
    /// No row.
    pub(crate) fn dense(&self) -> Result<Problem> {
        let mut rng = Rng::new(self.seed, VALUES);
        let count = self.rows.saturating_mul(self.inputs);
        self.problem((0..count).map(|_| self.value(&mut rng)).collect())
    }

    /// Every input is 0 but in one row, which is drawn, as many inputs in each row as in all others
    /// or one more; with more rows than inputs some rows are all 0 (N. Bar and R. Giryes,
    /// arXiv 2305.17559).
    ///
    /// # Errors
    /// No row.
    pub(crate) fn sparse(&self) -> Result<Problem> {
        let mut rng = Rng::new(self.seed, VALUES);
        let order = Permutation::new(self.seed, INPUTS, self.inputs);
        let mut values = vec![0.0; self.rows.saturating_mul(self.inputs)];
        for input in 0..self.inputs.min(values.len()) {
            values[order.get(input) % self.rows * self.inputs + input] = self.value(&mut rng);
        }
        self.problem(values)
    }

    fn value(&self, rng: &mut Rng) -> f32 {
        let Moments { mean, deviation } = self.moments;
        (mean + deviation * f64::from(rng.normal())) as f32
    }

    fn problem(&self, values: Vec<f32>) -> Result<Problem> {
        let mut rng = Rng::new(self.seed, LABELS);
        let width = if self.task == Task::Regression { self.outputs } else { 1 };
        let labels = (0..self.rows * width).map(|_| match self.task {
            Task::Regression => rng.normal(),
            Task::Binary => rng.below(2) as f32,
            Task::Multiclass => rng.below(self.outputs as u32) as f32,
        });
        let labels = labels.collect();
        let data = Matrix::new(self.rows, self.inputs, Values::F32(values))?;
        Ok(Problem { data, labels, task: self.task })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: RandomRows = RandomRows {
        rows: 400,
        inputs: 50,
        outputs: 5,
        task: Task::Multiclass,
        moments: Moments { mean: 3.0, deviation: 0.5 },
        seed: 1,
    };

    fn floats(problem: &Problem) -> &[f32] {
        let Values::F32(values) = &problem.data.values else { panic!("floats") };
        values
    }

    fn is_near(found: Moments, wanted: Moments, count: usize) {
        let error = wanted.deviation / (count as f64).sqrt();
        assert!((found.mean - wanted.mean).abs() < 4.0 * error, "{found:?}");
        // The deviation's standard error is 1/√2 of the mean's.
        assert!((found.deviation - wanted.deviation).abs() < 3.0 * error, "{found:?}");
    }

    #[test]
    fn moments_of_bytes_are_scaled() {
        let data = Matrix::new(2, 2, Values::U8(vec![0, 0, 255, 255])).unwrap();
        assert_eq!(Moments::of(&data, 2.0), Moments { mean: 255.0, deviation: 255.0 });
        let data = Matrix::new(1, 4, Values::F32(vec![1.0, -1.0, 3.0, -3.0])).unwrap();
        assert_eq!(Moments::of(&data, 1.0), Moments { mean: 0.0, deviation: 5.0_f64.sqrt() });
    }

    #[test]
    fn dense_rows_have_the_moments_asked_for() {
        let made = ROWS.dense().unwrap();
        is_near(Moments::of(&made.data, 1.0), ROWS.moments, 400 * 50);
        assert_eq!(made, ROWS.dense().unwrap());
        assert_ne!(made, RandomRows { seed: 2, ..ROWS }.dense().unwrap());
    }

    #[test]
    fn classes_are_uniform_and_labels_fit_the_task() {
        let made = ROWS.dense().unwrap();
        let counts: Vec<usize> = (0..5)
            .map(|class| made.labels.iter().filter(|&&label| label == class as f32).count())
            .collect();
        // 80 each, with a standard deviation of 8.
        assert_eq!(counts.iter().sum::<usize>(), 400);
        assert!(counts.iter().all(|count| (48..112).contains(count)), "{counts:?}");
        for (task, labels) in [(Task::Binary, 400), (Task::Regression, 2000)] {
            let made = RandomRows { task, ..ROWS }.sparse().unwrap();
            made.check().unwrap();
            assert_eq!((made.labels.len(), made.task), (labels, task));
        }
    }

    #[test]
    fn sparse_rows_have_each_input_once() {
        for (rows, inputs) in [(7, 784), (32, 100), (100, 100), (60, 7), (1, 5)] {
            let made = RandomRows { rows, inputs, ..ROWS }.sparse().unwrap();
            let values = floats(&made);
            for input in 0..inputs {
                let nonzero = (0..rows).filter(|row| values[row * inputs + input] != 0.0).count();
                assert_eq!(nonzero, 1, "{rows} rows of {inputs} inputs: {input}");
            }
            for row in values.chunks(inputs) {
                let count = row.iter().filter(|&&x| x != 0.0).count();
                assert!(count == inputs / rows || count == inputs.div_ceil(rows), "{count}");
            }
        }
    }

    #[test]
    fn sparse_values_are_normal_and_dealt_at_random() {
        let standard = RandomRows { rows: 4, inputs: 4000, moments: Moments::STANDARD, ..ROWS };
        let made = standard.sparse().unwrap();
        let drawn: Vec<f32> = floats(&made).iter().copied().filter(|&x| x != 0.0).collect();
        let drawn = Matrix::new(1, 4000, Values::F32(drawn)).unwrap();
        is_near(Moments::of(&drawn, 1.0), standard.moments, 4000);
        // Neighbours lie in one row about as often as two drawn at random.
        let row = |input: usize| (0..4).find(|row| floats(&made)[row * 4000 + input] != 0.0);
        let together = (1..4000).filter(|&input| row(input) == row(input - 1)).count();
        assert!((890..1110).contains(&together), "{together}");
        let other = RandomRows { seed: 9, ..standard }.sparse().unwrap();
        assert_ne!(floats(&made)[..4000], floats(&other)[..4000]);
    }
}
