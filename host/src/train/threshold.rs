//! Where class 1 of two begins: for outputs that are fitted to labels 0 and 1, the number that puts
//! most rows on their side. Least squares pull outputs of few weights to the middle of what they
//! cannot tell apart, which is seldom a half.

use std::ops::Range;

use tamis::infer::model::Model;
use tamis::store::wire::View;

use crate::Result;
use crate::data::{Problem, Task};
use crate::model::ModelFile;
use crate::model::score::two_classes;
use crate::train::trained::Trained;

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
    let task = two_classes(&problem.labels[rows.clone()], &mut outputs[rows]);
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
