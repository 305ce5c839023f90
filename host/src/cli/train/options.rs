//! The flags of `tamis train` as options of the library.

use std::path::Path;
use std::sync::Arc;

use tamis::learn::deep::{shrink, tune};
use tamis::learn::iht::Step;
use tamis::learn::optimiser::Optimiser;
use tamis::learn::train::{OneOutput, Schedule, Trials};
use tamis::learn::{anneal, lm};
use tamis::network::gates::Signs;
use tamis::network::mask::initial::Initial;

use super::super::common::Common;
use super::super::console::{first_given, refuse, say_error, say_note};
use super::super::parse::{self, AugmentName, RecipeName, ToPin, limit_above_zero};
use super::args::{LimitArgs, Train};
use super::data::DataFacts;
use super::device::dense_place;
use crate::base::{Limits, check_setting};
use crate::data::augment::{Changes, PictureSize};
use crate::data::{Columns, DataFiles, Labels, Problem, Reading, Task};
use crate::mask::{self, SourceNetwork};
use crate::train::check::check_patience;
use crate::train::dense::{Head, Rates, default_rate};
use crate::train::mask::check_size;
use crate::train::masked::MaskedSettings;
use crate::train::{
    AnnealOptions, Augmentation, Budget, CheckpointOptions, DynamicOptions, ImpSettings,
    LayersOptions, LmOptions, Memory, Options, OutputsOptions, PaperOptions, PathOptions,
    PinnedWeights, Recipe, check_recipe,
};
use crate::{Error, Result};

impl Train {
    /// The recipe that is meant; refuses one that does not suit the task, and settings of others.
    pub(super) fn recipe_name(&self, task: Task) -> Result<RecipeName> {
        let help = "leave --epochs out for the default; recipe lm needs none";
        check_setting(self.passes.epochs != Some(0), "--epochs 1 or more", 0, help)?;
        let has_search = self.given.only_for(&[RecipeName::Lm]);
        let deep = self.hidden.len() > 1 && !has_search && self.signs.is_none();
        let searched = has_search || self.signs.is_some() || self.hidden.len() > 1;
        // A search gives no weight a place that lasts.
        let pinned = !self.must_keep.is_empty() && self.hidden.len() <= 1 && !has_search;
        let hidden = self.layers();
        let published = self.given.only_for(&[RecipeName::Paper, RecipeName::PaperSafe])
            || (pinned && self.signs.is_some());
        let is_masked = self.recipe == RecipeName::Masked;
        if self.mask.is_some() != is_masked && (is_masked || self.recipe != RecipeName::Auto) {
            return Err(Error::usage("recipe masked and --mask go together")
                .expected("--mask MASK, with --recipe masked or no --recipe")
                .got(if is_masked { "no --mask" } else { "--mask with another recipe" })
                .help("make a mask with tamis mask"));
        }
        let is_plain = self.given.are_of_the_run()
            && self.must_keep.is_empty()
            && self.nnz.len() <= 1
            && hidden.len() <= 1;
        // Of several sizes the largest says.
        let budget = self.last_budget();
        let recipe = match (self.recipe, task) {
            _ if self.mask.is_some() => RecipeName::Masked,
            (RecipeName::Auto, _) if is_plain => RecipeName::Auto,
            (RecipeName::Auto, Task::Regression | Task::Binary) if published => RecipeName::Paper,
            (RecipeName::Auto, Task::Binary) if searched && !deep => RecipeName::Lm,
            (RecipeName::Auto, _) => {
                let [layered, auto] = [Recipe::layered, Recipe::auto].map(|of| {
                    match of(task, hidden, budget, pinned) {
                        Recipe::Anneal(_) => RecipeName::Anneal,
                        Recipe::Paper(_) => RecipeName::Paper,
                        Recipe::Dynamic(_) => RecipeName::Dynamic,
                        _ => RecipeName::Lm,
                    }
                });
                // What recipe `dynamic` does not take is for those that train layers one by one, if they do; and
                // what those do not take, for `dynamic`.
                let is_layered = !self.given.fits(RecipeName::Dynamic) && self.given.fits(layered);
                let is_dynamic = !pinned && task == Task::Binary && !self.given.fits(auto);
                match (is_layered, is_dynamic && self.given.fits(RecipeName::Dynamic)) {
                    (true, _) => layered,
                    (_, true) => RecipeName::Dynamic,
                    _ => auto,
                }
            }
            (recipe, _) => recipe,
        };
        check_recipe(recipe.name(), task)?;
        if recipe != RecipeName::Auto {
            self.given.check(recipe, task)?;
        }
        Ok(recipe)
    }

    /// All options; of recipes `imp` and `masked` without the test rows.
    pub(super) fn options(
        &self,
        recipe: RecipeName,
        task: Task,
        common: &Common,
    ) -> Result<Options> {
        let layers = self.layers_options()?;
        let is_dense = matches!(recipe, RecipeName::Imp | RecipeName::Masked);
        let recipe = match recipe {
            RecipeName::Auto => Recipe::Auto,
            RecipeName::Lm => Recipe::Lm(self.lm_options(task)?),
            RecipeName::Anneal => Recipe::Anneal(self.anneal_options()),
            RecipeName::Paper | RecipeName::PaperSafe => Recipe::Paper(self.paper_options(recipe)?),
            RecipeName::Imp => Recipe::Imp(self.imp_settings()?),
            RecipeName::Dynamic => Recipe::Dynamic(self.dynamic_options()),
            RecipeName::Masked => Recipe::Masked(self.masked_settings(common)?),
            RecipeName::Group => {
                return Err(Error::usage("recipe group trains one network at a time")
                    .expected("one number for --nnz, no --plan, --must-keep or --scale")
                    .got("another of these")
                    .help("pass --hidden, --nnz and data, or choose recipe dynamic"));
            }
        };
        let checkpoint = self.checkpoints.checkpoint.clone().map(|path| CheckpointOptions {
            resume: self.checkpoints.resume,
            on_error: |error| {
                say_error(format_args!("warning: the run continues without a checkpoint: {error}"));
            },
            ..CheckpointOptions::resume(path)
        });
        Ok(Options {
            budget: self.budget(),
            hidden: self.hidden.clone(),
            recipe,
            layers,
            pinned: self.pinned()?,
            scale: self.scale,
            seed: common.seed,
            memory: match (self.ram, self.panel) {
                (Some(ram), _) => Memory::Ram(ram),
                (None, Some(panel)) => Memory::Panel(panel),
                (None, None) => Memory::Auto,
            },
            threads: common.threads(),
            device: if is_dense { Default::default() } else { self.device()? },
            limits: self.limits.limits()?,
            checkpoint,
        })
    }

    pub(super) fn path_options(&self) -> Option<PathOptions> {
        let (warm, folds) = (!self.path.cold, self.path.folds.unwrap_or(0));
        (self.nnz.len() > 1).then(|| PathOptions { sizes: self.nnz.clone(), warm, folds })
    }

    /// That of the last of several networks.
    fn last_budget(&self) -> Budget {
        self.nnz.last().map_or(self.budget(), |&nnz| Budget::Nonzeros(nnz))
    }

    pub(super) fn budget(&self) -> Budget {
        match (self.nnz.first(), self.density) {
            (None, Some(share)) => Budget::Density(share),
            (nnz, _) => Budget::Nonzeros(nnz.copied().unwrap_or(0)),
        }
    }

    fn pinned(&self) -> Result<PinnedWeights> {
        let mut pinned = PinnedWeights::NONE;
        for named in &self.must_keep {
            match named {
                ToPin::Weight(neuron, input) => pinned.add(*neuron, *input),
                ToPin::File(path) => pinned.read(path)?,
            }
        }
        Ok(pinned)
    }

    fn lm_options(&self, task: Task) -> Result<LmOptions> {
        let args = &self.lm;
        let defaults = match self.signs {
            None | Some(Signs::Positive) => LmOptions::of(task, self.layers(), self.last_budget()),
            Some(_) => LmOptions::default(),
        };
        let help = "leave --search-rows out for a number that suits --nnz";
        check_setting(args.search_rows != Some(0), "--search-rows 1 or more", 0, help)?;
        let validation = self.validation.validation.unwrap_or(defaults.validation);
        let patience = self.validation.patience.unwrap_or(defaults.params.validation_patience);
        check_patience(patience, validation)?;
        let own = defaults.params;
        let params = lm::Params {
            rows: args.search_rows.unwrap_or(own.rows),
            perturbations: args.kicks.unwrap_or(own.perturbations),
            patience: args.idle_kicks.unwrap_or(own.patience),
            validation_patience: patience,
            // As many steps as the perturbations take: there are other limits.
            steps: if args.kicks.is_some() { u32::MAX } else { own.steps },
            ..own
        };
        Ok(LmOptions {
            params,
            signs: self.signs,
            validation,
            turns: args.turns.unwrap_or(defaults.turns),
            adam_steps: args.adam_steps,
            layer_kicks: args.kicks.unwrap_or(defaults.layer_kicks),
        })
    }

    fn anneal_options(&self) -> AnnealOptions {
        let (args, defaults) = (&self.anneal, AnnealOptions::default());
        let own = defaults.params;
        let or = |given: Option<f64>, default: f32| given.map_or(default, |value| value as f32);
        let params = anneal::Params {
            epochs: self.passes.epochs.unwrap_or(own.epochs),
            patience: self.validation.patience.unwrap_or(own.patience),
            start_factor: or(args.start_factor, own.start_factor),
            rate: or(self.passes.rate, own.rate),
            drop: or(args.drop, own.drop),
            ..own
        };
        AnnealOptions {
            params,
            validation: self.validation.validation.unwrap_or(defaults.validation),
            batch: self.passes.batch,
            least_steps: if self.passes.epochs.is_some() { 0 } else { defaults.least_steps },
        }
    }

    fn paper_options(&self, recipe: RecipeName) -> Result<PaperOptions> {
        let args = &self.paper;
        if self.signs == Some(Signs::Free) {
            return Err(Error::new("the published method has no free signs")
                .expected("--signs positive or balanced")
                .got("free")
                .help("choose --recipe lm"));
        }
        let defaults = PaperOptions::default();
        let batch = self.passes.batch.unwrap_or(defaults.schedule.batch);
        let epochs = self.passes.epochs.unwrap_or(defaults.schedule.epochs);
        let trials = |defaults: Trials| Trials {
            count: args.trials.unwrap_or(defaults.count),
            rows: args.trial_rows.unwrap_or(defaults.rows),
        };
        let published = PaperOptions::published(epochs, batch);
        let refresh = PaperOptions::refresh(args.convex, args.refresh);
        let head = OneOutput {
            signs: self.signs.unwrap_or(defaults.schedule.head.signs),
            empty: args.empty.unwrap_or(defaults.schedule.head.empty),
            step: args.step.unwrap_or(defaults.schedule.head.step),
            refine: args.refine.unwrap_or(defaults.schedule.head.refine),
            refresh,
            ..published.head
        };
        Ok(PaperOptions {
            schedule: Schedule { trials: trials(defaults.schedule.trials), head, ..published },
            outputs: OutputsOptions {
                step_size: if let Some(Step::Fixed(eta)) = args.step { Some(eta) } else { None },
                rank: args.rank.unwrap_or(defaults.outputs.rank),
                trials: trials(defaults.outputs.trials),
                refresh,
                safe: recipe == RecipeName::PaperSafe,
                ..OutputsOptions::published(epochs, batch)
            },
        })
    }

    /// Refuses what the published recipe has for one output only, or for several.
    pub(super) fn check_paper(&self, problem: &Problem) -> Result<()> {
        let args = &self.paper;
        let what = "a setting does not suit the number of outputs";
        if !problem.has_several_outputs() {
            return refuse(&[(args.rank.is_some(), "--rank")], what, "settings for one output", "");
        }
        let has_rule = args.step.is_some_and(|step| !matches!(step, Step::Fixed(_)));
        let flags = [
            (has_rule, "--step normalised or theory"),
            (args.refine.is_some(), "--refine"),
            (args.empty.is_some(), "--empty"),
            (self.signs.is_some(), "--signs"),
        ];
        refuse(&flags, what, "settings for several outputs", "")
    }

    /// The optimiser and its rates, which by default are those that `rates` makes.
    fn descent(
        &self,
        default: Optimiser,
        rates: impl Fn(f32) -> Rates,
    ) -> Result<(Optimiser, Rates)> {
        let args = &self.imp;
        let optimiser = match (args.optimiser.unwrap_or(default), args.momentum) {
            (Optimiser::Adam, Some(_)) => {
                return Err(Error::new("adam has no momentum to set")
                    .expected("--momentum with --optimiser sgd")
                    .got("--optimiser adam")
                    .help("leave --momentum out, or choose --optimiser sgd"));
            }
            (Optimiser::Sgd { .. }, Some(momentum)) => Optimiser::Sgd { momentum: momentum as f32 },
            (optimiser, None) => optimiser,
        };
        let default = rates(self.passes.rate.map_or(default_rate(&optimiser), |rate| rate as f32));
        let rates = Rates {
            falls: args.rate_falls.clone().unwrap_or(default.falls),
            factor: args.rate_factor.map_or(default.factor, |factor| factor as f32),
            decay: args.weight_decay.map_or(default.decay, |decay| decay as f32),
            rate: default.rate,
        };
        Ok((optimiser, rates))
    }

    /// The mask and the values of its weights, without the test rows.
    fn masked_settings(&self, common: &Common) -> Result<MaskedSettings> {
        let args = &self.masked;
        let path = self.mask.as_deref().unwrap_or(Path::new(""));
        let start = match &args.weights {
            Some(weights) => {
                let network = SourceNetwork::from_file(weights, None, args.layout)?;
                say_note(network.note());
                let mask = mask::read(path, Some(&network))?;
                network.start(mask)?
            }
            None => {
                let mask = mask::read(path, None)?;
                let initial = Initial { seed: common.seed, law: args.init.into() };
                SourceNetwork::from_seed(mask.widths(), initial)?.start(mask)?
            }
        };
        check_size(start.mask.widths())?;
        let defaults = MaskedSettings::new(start);
        let epochs = self.passes.epochs.unwrap_or(defaults.epochs);
        let falling = |rate| Rates::falling(rate, epochs);
        let (optimiser, rates) = self.descent(defaults.optimiser, falling)?;
        Ok(MaskedSettings {
            epochs,
            batch: self.passes.batch.unwrap_or(defaults.batch),
            optimiser,
            rates: Some(rates),
            warmup: args.warmup,
            raw: self.imp.raw_inputs,
            place: dense_place(self.device, self.adapter.as_deref())?,
            ..defaults
        })
    }

    /// Adds to the recipe what depends on the data: test rows, and how rows are changed.
    pub(super) fn complete(
        &self,
        recipe: &mut Recipe,
        problem: &Problem,
        data: &mut DataFacts,
    ) -> Result<()> {
        let test = |data: &DataFacts| self.test(data.names(), problem.task);
        match recipe {
            Recipe::Imp(settings) => settings.test = test(data)?,
            Recipe::Masked(settings) => settings.test = test(data)?,
            Recipe::Dynamic(settings) => {
                settings.test = test(data)?.map(Arc::new);
                settings.augment = self.augmentation(problem.data.cols, data)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// How rows of so many numbers are changed.
    fn augmentation(&self, inputs: usize, data: &mut DataFacts) -> Result<Option<Augmentation>> {
        let Some(how) = self.passes.augment else { return Ok(None) };
        Ok(Some(match how {
            AugmentName::Noise(deviation) => {
                Augmentation::Changes(Changes::Noise(deviation as f32))
            }
            AugmentName::Images(Some(size)) => Augmentation::Images(size),
            AugmentName::Images(None) => {
                let size = self.picture(inputs, data.names().are_named())?;
                let PictureSize { width, height } = size;
                data.note(format!(
                    "rows are taken as pictures of {width}×{height} numbers (--augment images={width}x{height})"
                ));
                Augmentation::Images(size)
            }
        }))
    }

    /// The size of pictures of so many numbers: that in their file, or a square where columns have no names.
    fn picture(&self, inputs: usize, are_named: bool) -> Result<PictureSize> {
        let axes = self.source.row_axes()?.filter(|axes| axes.iter().product::<usize>() == inputs);
        let help = "pass it, as in --augment images=28x28: columns, then rows";
        match axes.as_deref() {
            Some(&[height, width]) => return Ok(PictureSize { width, height }),
            Some(axes @ [_, _, _, ..]) => {
                return Err(Error::new("the rows are no pictures of one number a pixel")
                    .expected("an axis of rows and one of columns")
                    .got(format_args!("axes of {axes:?}"))
                    .help(format!("make them grey; or, if they are, {help}")));
            }
            _ => {}
        }
        let side = inputs.isqrt();
        let is_square = side * side == inputs && !are_named;
        is_square.then_some(PictureSize::square(side)).ok_or_else(|| {
            let what = if are_named { "columns with names" } else { "numbers a row" };
            Error::new("the size of the pictures is not known")
                .expected("a file of pictures, rows of as many numbers as a square has, or a size")
                .got(format_args!("{inputs} {what}"))
                .help(help)
        })
    }

    fn dynamic_options(&self) -> DynamicOptions {
        let single = |value: Option<f64>| value.map(|value| value as f32);
        DynamicOptions {
            epochs: self.passes.epochs,
            batch: self.passes.batch,
            rate: single(self.passes.rate),
            decay: single(self.imp.weight_decay),
            warmup: self.masked.warmup,
            support: self.passes.support.unwrap_or_default(),
            moments: self.passes.moments.unwrap_or_default(),
            factor: single(self.anneal.start_factor),
            raw: self.imp.raw_inputs,
            validation: self.validation.validation.unwrap_or(0.0),
            patience: self.validation.patience.unwrap_or(0),
            starts: self.validation.starts,
            augment: None,
            test: None,
        }
    }

    fn imp_settings(&self) -> Result<ImpSettings> {
        let (args, defaults) = (&self.imp, ImpSettings::default());
        let (optimiser, rates) = self.descent(Optimiser::Adam, Rates::constant)?;
        Ok(ImpSettings {
            head: if args.sum_output { Head::Sum } else { Head::Weights },
            epochs: self.passes.epochs.unwrap_or(defaults.epochs),
            batch: self.passes.batch.unwrap_or(defaults.batch),
            optimiser,
            rates: Some(rates),
            prune: if args.one_shot { 1.0 } else { args.prune_fraction.unwrap_or(defaults.prune) },
            rewind: args.rewind.unwrap_or(defaults.rewind),
            retrain: true,
            raw: args.raw_inputs,
            test: None,
            keep_levels: args.keep_levels,
            place: dense_place(self.device, self.adapter.as_deref())?,
        })
    }

    /// The test rows of recipes `imp` and `masked`, chosen as those to train on but for the occurrences.
    pub(super) fn test(&self, columns: &Columns, task: Task) -> Result<Option<Problem>> {
        let Some(data) = &self.imp.test_data else { return Ok(None) };
        let train = self.source.source();
        let labels = match (&self.imp.test_labels, &train.labels) {
            (Some(path), _) => Labels::File(path.clone()),
            (None, Labels::Column(name)) => Labels::Column(name.clone()),
            (None, Labels::File(_)) => {
                return Err(Error::new("the test data have no labels")
                    .at(data)
                    .expected("--test-labels FILE, as --labels is a file")
                    .got("no --test-labels")
                    .help("name the file of their labels"));
            }
        };
        let files = DataFiles {
            keep: train.keep.clone(),
            table: train.table.clone(),
            ..DataFiles::new(data.clone(), labels)
        };
        Ok(Some(files.load_as(Some(task), Reading::Known(columns))?.problem))
    }

    pub(super) fn layers_flags(&self) -> [(bool, &'static str); 3] {
        [
            (self.layers.tune_epochs.is_some(), "--tune-epochs"),
            (self.layers.tune_rate.is_some(), "--tune-rate"),
            (!self.layers.grow.is_empty(), "--grow"),
        ]
    }

    /// None where no flag asks for layers one by one.
    fn layers_options(&self) -> Result<Option<LayersOptions>> {
        let (args, defaults) = (&self.layers, LayersOptions::default());
        let rate = args.tune_rate.map_or(defaults.tune.rate, |rate| rate as f32);
        let help = "leave --tune-rate out for 0.02";
        check_setting(rate.is_finite() && rate >= 0.0, "--tune-rate 0 or more", rate, help)?;
        for &grow in &args.grow {
            let help = "leave --grow out for the default; 1 trains layers to their share of s";
            check_setting(grow.is_finite() && grow >= 1.0, "--grow 1 or more", grow, help)?;
        }
        let epochs = args.tune_epochs.unwrap_or(defaults.tune.epochs);
        let shrink_tune = tune::Params { rate, ..defaults.shrink.tune };
        Ok(first_given(&self.layers_flags()).map(|_| LayersOptions {
            grow: args.grow.clone(),
            even: defaults.even,
            shrink: shrink::Params { tune: shrink_tune, ..defaults.shrink },
            tune: tune::Params { epochs, rate, ..defaults.tune },
        }))
    }
}

impl LimitArgs {
    fn limits(&self) -> Result<Limits> {
        let time = limit_above_zero("--time-limit", self.time_limit)?.map(parse::duration);
        Ok(Limits { time, passes: limit_above_zero("--passes-limit", self.passes_limit)? })
    }
}
