//! `tamis train`: flags to options, a run, and what is said of it.

pub(super) mod args;
mod data;
pub(super) mod device;
mod group;
pub(super) mod history;
mod notes;
mod options;
mod path;
mod plan;
mod summary;

use serde::Serialize;

use super::common::Common;
use super::console::{refuse, say_error};
use super::interrupt;
use super::parse::{DeviceName, RecipeName};
use super::progress::Watched;
use super::saved::Object;
use crate::base::HeapPeak;
use crate::base::file::{self, Kind};
use crate::data::{Problem, Task};
use crate::model::ModelFile;
use crate::operator::ProfileReport;
use crate::train::{
    Baselines, Beaten, Budget, Details, Options, Recipe, Report, Start, train_with, trains_layers,
};
use crate::{Error, Result};
use args::Train;
use data::{DataFacts, Fit, all_taken};
use history::{History, check_outputs};
use notes::notes;
use summary::summary;

/// Takes all weights that there are where more nonzeros are asked for; says so.
fn take_all(options: &mut Options, problem: &Problem) -> Option<String> {
    let all = options.all_weights(problem)?;
    let Budget::Nonzeros(nnz) = options.budget else { return None };
    options.budget = Budget::Nonzeros(nnz.min(all));
    all_taken(nnz, all)
}

/// The object of `--json`.
#[derive(Serialize)]
struct WithData<'a, O> {
    #[serde(flatten)]
    object: &'a O,
    #[serde(flatten)]
    data: &'a DataFacts,
    #[serde(flatten)]
    fit: Option<Fit>,
    baselines: Baselines,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<ProfileReport>,
}

/// Obvious models for the rows; without a linear one where training it would take long, after a run that was
/// ended, for the dense baseline and under a mask.
struct Obvious {
    own: Baselines,
    /// To train a linear model on.
    rows: Option<Problem>,
}

impl Obvious {
    fn new(problem: &Problem, options: &Options) -> Self {
        let is_wanted = !matches!(options.recipe, Recipe::Imp(_) | Recipe::Masked(_))
            && Baselines::is_cheap(problem, options);
        Self { own: Baselines::constant(problem), rows: is_wanted.then(|| problem.clone()) }
    }

    /// The mean absolute error on the rows, where they are at hand.
    fn absolute_error(&self, model: &ModelFile) -> Option<f64> {
        let rows = self.rows.as_ref().filter(|rows| rows.task == Task::Regression)?;
        model.measure(rows).ok()?.1.mae
    }

    fn measure(self, options: &Options, report: &Report) -> Result<Baselines> {
        match self.rows.filter(|_| !report.stopped) {
            // Rows that are all the same have no linear model.
            Some(rows) => match self.own.with_linear(&rows, options, interrupt::stop()) {
                Err(error) if !error.is_interrupted() => Ok(self.own),
                own => own,
            },
            None => Ok(self.own),
        }
    }
}

impl Train {
    /// Neurons of each hidden layer: by default of one, with two or more.
    fn layers(&self) -> &[usize] {
        match self.hidden[..] {
            [] => &[2],
            [0] => &[],
            _ => &self.hidden,
        }
    }

    pub(super) fn run(&self, common: &Common) -> Result<()> {
        self.check_counts()?;
        // Settings depend on the task, which the labels say where --task does not.
        let early = if self.task.is_none() { Some(self.load()?) } else { None };
        let found = early.as_ref().map(|(problem, _)| problem.task);
        let task = self.task.or(found).unwrap_or(Task::Regression);
        let recipe = self.recipe_name(task)?;
        if let Some(sizes) = self.path_options() {
            return path::run(self, &sizes, early, recipe, task, common);
        }
        if recipe == RecipeName::Group && !self.plan {
            return group::run(self, early, common);
        }
        let mut options = self.options(recipe, task, common)?;
        let read = [&self.imp.test_data, &self.imp.test_labels, &self.mask, &self.masked.weights];
        let inputs =
            self.source.inputs().chain(read.into_iter().filter_map(|path| path.as_deref()));
        file::check(&self.output, Kind::MODEL, inputs)?;
        if !matches!(options.recipe, Recipe::Imp(_) | Recipe::Masked(_)) {
            check_outputs(self)?;
            self.check_checkpoint(common)?;
        }
        let (problem, mut data) = early.map_or_else(|| self.load(), Ok)?;
        self.complete(&mut options.recipe, &problem, &mut data)?;
        self.check_problem(&problem, &options)?;
        self.choose_device(&problem, &mut options)?;
        if self.profile && !self.plan {
            options.device.start_profile()?;
        }
        if let Some(note) = take_all(&mut options, &problem) {
            data.note(note);
        }
        if let Some(note) = options.starved(&problem) {
            data.note(note);
        }
        if self.plan {
            return plan::run(&problem, &options, &data, common);
        }
        let obvious = Obvious::new(&problem, &options);
        let bar = Watched::new(common);
        let mut history = History::new(self)?;
        let heap = HeapPeak::start();
        let trained = interrupt::training(|| {
            train_with(problem, &options, Start::Zero, interrupt::stop(), |progress| {
                history.add(progress);
                bar.update(progress)
            })
        });
        bar.clear();
        let mut trained = trained?;
        trained.report.heap_peak_bytes = heap.bytes();
        if let Details::Paper(_) | Details::Outputs(_) = trained.report.details {
            history.losses.push(trained.report.loss as f32);
        }
        let model = data.name(&trained.model)?;
        history.save(self, model.bytes(), &trained.report)?;
        if let Some(error) = trained.unsaved {
            return Err(error);
        }
        notes(&trained.report).into_iter().for_each(|note| data.note(note));
        let mae = obvious.absolute_error(&model);
        let baselines = obvious.measure(&options, &trained.report)?;
        if let Some((beaten, text)) = data.warning(&baselines, &trained.report) {
            // Which the report says, where there is one.
            if beaten == Beaten::Constant && (common.json || common.quiet) {
                say_error(format_args!("{text}"));
            }
            data.note(text);
        }
        let object = Object::new(&self.output, model.bytes(), &trained.report);
        let fit = data.fit(trained.report.loss, mae, &baselines);
        let profile = options.device.end_profile()?;
        let whole = WithData { object: &object, data: &data, fit, baselines, profile };
        common.result(&whole, || {
            let line = data.baselines(&whole.baselines);
            let own = data.text() + &summary(&object, &history.line(), fit, line);
            own + &whole.profile.as_ref().map_or_else(String::new, device::profile)
        })
    }

    /// Refuses settings of several hidden layers for one, and of several sizes for one.
    fn check_counts(&self) -> Result<()> {
        if self.nnz.is_empty() && self.density.is_none() && self.mask.is_none() {
            return Err(Error::usage("the number of nonzero weights is missing")
                .expected("--nnz S, --density FRACTION, or --mask MASK")
                .got("none of them")
                .help("pass --nnz 50 for a model of at most 50 nonzero weights"));
        }
        if self.hidden.len() <= 1 {
            let what = "a setting is for networks of several hidden layers";
            let expected = "several numbers for --hidden, such as 64,32";
            refuse(&self.layers_flags(), what, expected, "")?;
        }
        if self.nnz.len() <= 1 {
            let flags = [(self.path.cold, "--cold"), (self.path.folds.is_some(), "--folds")];
            let expected = "several numbers for --nnz, such as 50,100,200";
            refuse(&flags, "a setting is for several sizes", expected, "")?;
        }
        Ok(())
    }

    /// Flags for one network of one hidden layer.
    fn single_flags(&self) -> [(bool, &'static str); 3] {
        [
            (self.checkpoints.checkpoint.is_some(), "--checkpoint"),
            (self.limits.log.is_some(), "--log"),
            (self.limits.picture.is_some(), "--picture"),
        ]
    }

    /// Refuses what the data turn out not to be for.
    fn check_problem(&self, problem: &Problem, options: &Options) -> Result<()> {
        if let Recipe::Paper(_) = options.recipe {
            self.check_paper(problem)?;
        }
        if !trains_layers(problem, options)? {
            return Ok(());
        }
        let what = "a setting is for networks of one hidden layer";
        let other = ", or pass one number to --hidden";
        let device = (self.device == Some(DeviceName::Gpu), "--device gpu");
        let flags = [&self.single_flags()[..], &[device]].concat();
        refuse(&flags, what, "settings for several layers", other)
    }

    /// Checks that no checkpoint would be lost, and says where there is none to resume from.
    fn check_checkpoint(&self, common: &Common) -> Result<()> {
        let Some(path) = &self.checkpoints.checkpoint else { return Ok(()) };
        match (self.checkpoints.resume, file::exists(path)?) {
            (false, true) => Err(Error::new("there is a checkpoint already")
                .at(path)
                .expected("--resume, or the name of a file that there is not")
                .got("a file of that name, which this run would overwrite")
                .help("pass --resume to continue from it, or remove it to start anew")),
            (true, false) => {
                common.say(format_args!("There is no {} yet: the run starts anew.", path.display()))
            }
            _ => Ok(()),
        }
    }
}
