//! Where class 1 of two begins: for outputs that are fitted to labels 0 and 1, the number that puts
//! most rows on their side. Least squares pull outputs of few weights to the middle of what they
//! cannot tell apart, which is seldom a half.

use std::ops::Range;

use tamis::infer::model::Model;
use tamis::learn::loss;
use tamis::store::wire::{self, View};

use crate::Result;
use crate::data::{Problem, Task};
use crate::model::{ModelFile, Score};
use crate::train::trained::Trained;

/// Two classes with the threshold for outputs of rows with these labels; the outputs are reordered.
pub(crate) fn of_outputs(labels: &[f32], outputs: &mut [f32]) -> wire::Task {
    let mut zeros = 0;
    for (i, label) in labels.iter().enumerate().take(outputs.len()) {
        if *label < Score::THRESHOLD {
            outputs.swap(zeros, i);
            zeros += 1;
        }
    }
    let (zeros, ones) = outputs.split_at_mut(zeros);
    wire::Task::Binary { threshold: loss::threshold(zeros, ones) }
}

/// A model whose output is fitted to labels 0 and 1 with the threshold for these rows; any other
/// model as it is. On the current pool.
pub(crate) fn of_model(
    model: &ModelFile,
    problem: &Problem,
    rows: Range<usize>,
) -> Result<ModelFile> {
    let view = model.view()?;
    let is_fitted = view.task().is_some_and(|task| task != Task::LOG_ODDS);
    if problem.task != Task::Binary || !is_fitted {
        return Ok(model.clone());
    }
    let mut outputs = model.predict(&problem.data)?;
    let task = of_outputs(&problem.labels[rows.clone()], &mut outputs[rows]);
    let made = View::new(Model::new(view.model().layers())?).with_task(task)?;
    let mut bytes = vec![0; made.encoded_len()];
    made.encode(&mut bytes)?;
    Ok(ModelFile::new(&bytes))
}

/// The same of a model that was trained on these rows, with its report.
pub(crate) fn of_trained(trained: Trained, problem: &Problem) -> Result<Trained> {
    if problem.task != Task::Binary {
        return Ok(trained);
    }
    let model = of_model(&trained.model, problem, 0..problem.data.rows)?;
    let score = model.score_on(problem)?;
    Ok(Trained { model, report: trained.report.scored(&score), ..trained })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_told_apart_by_their_labels() {
        let mut outputs = [0.3, 0.1, 0.3, 0.0, 0.3, 0.9, 0.3, 0.2, 0.3, 0.3];
        let labels = [1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0];
        let task = of_outputs(&labels, &mut outputs);
        assert_eq!(task, wire::Task::Binary { threshold: 0.25 });
        assert_eq!(of_outputs(&[], &mut []), wire::Task::BINARY);
    }
}
