//! Whether labelled rows fit a model, and its score on them.

use crate::data::{DataFiles, Problem, Task, classes};
use crate::model::file::ModelFile;
use crate::model::measures::Measures;
use crate::model::score::Score;
use crate::{Error, Result};

impl ModelFile {
    /// The score on labelled rows; on the current rayon pool.
    ///
    /// # Errors
    /// The data or the labels do not fit the model, or a prediction overflows.
    pub fn score_on(&self, problem: &Problem) -> Result<Score> {
        self.measure(problem).map(|(score, _)| score)
    }

    /// The score on labelled rows, and what measures of all predictions say; on the current rayon
    /// pool.
    ///
    /// # Errors
    /// As [`score_on`](Self::score_on).
    pub fn measure(&self, problem: &Problem) -> Result<(Score, Measures)> {
        let outputs = self.open()?.outputs();
        let (labels, fits) = match problem.classes() {
            Some(classes) => (classes, outputs > 1 && classes <= outputs),
            None => (problem.outputs(), problem.outputs() == outputs),
        };
        if !fits {
            return Err(Error::new("the labels do not fit the model")
                .at(self.path())
                .expected(format_args!("labels for {outputs} outputs"))
                .got(format_args!("{labels}, of task {}", problem.task.name()))
                .help("score it on labels of the task that it was trained for"));
        }
        let (task, labels, predictions) =
            (problem.task, &problem.labels, self.predict(&problem.data)?);
        let measures = Measures::new(task, self.threshold()?, outputs, labels, &predictions);
        Ok((self.score(task, labels, &predictions)?, measures))
    }

    /// Checks that a problem from `source` is such as the model can be scored on.
    ///
    /// # Errors
    /// The task needs another number of outputs, or a label is none of the model's classes.
    pub fn check_fit(&self, source: &DataFiles, problem: &Problem) -> Result<()> {
        let outputs = self.open()?.outputs();
        let labels = problem.outputs();
        if problem.task == Task::Regression && labels == outputs {
            return Ok(());
        }
        if problem.task == Task::Regression
            && (labels > 1 || self.task()? == Some(Task::Regression))
        {
            return Err(Error::new("the labels do not fit the model")
                .at(source.labels_file())
                .expected(format_args!("{outputs} columns, one per output"))
                .got(format_args!("{labels} columns"))
                .help("pass the labels of the outputs that the model was trained for"));
        }
        let (expected, help) = match (problem.task, outputs) {
            (Task::Multiclass, 2..) => {
                // Classes by name were found among those of the model.
                let is_named = self.columns()?.is_some_and(|columns| !columns.classes.is_empty());
                let keep = source.keep.as_ref().filter(|_| !is_named);
                let keep = keep.map(|keep| keep.iter().filter_map(|label| label.parse().ok()));
                let keep = keep.map(Iterator::collect::<Vec<f32>>);
                return classes::check_known(&problem.labels, keep.as_deref(), outputs)
                    .map_err(|error| error.at(source.labels_file()));
            }
            (Task::Binary, 1) => return Ok(()),
            (Task::Multiclass, _) => ("--task regression or binary", "leave --task out"),
            (Task::Regression | Task::Binary, _) => ("--task multiclass", "score it as multiclass"),
        };
        Err(Error::new("the task does not fit the model")
            .at(self.path())
            .expected(expected)
            .got(format_args!("{} with {outputs} outputs", problem.task.name()))
            .help(help))
    }
}
