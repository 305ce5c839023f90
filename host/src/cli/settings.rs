//! Which recipes take which settings of `tamis train`.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use super::parse::RecipeName::{self, Anneal, Imp, Lm, Paper, PaperSafe};
use crate::data::Task;
use crate::train::check_recipe;
use crate::{Error, Result};

/// A setting that some recipes take.
#[derive(Debug, Clone, Copy)]
struct Setting {
    /// Its name in the parser.
    id: &'static str,
    recipes: &'static [RecipeName],
}

const fn of(id: &'static str, recipes: &'static [RecipeName]) -> Setting {
    Setting { id, recipes }
}

/// All but the dense baseline.
const SPARSE: &[RecipeName] = &[Lm, Anneal, Paper, PaperSafe];
const PUBLISHED: &[RecipeName] = &[Paper, PaperSafe];
const STEPPED: &[RecipeName] = &[Anneal, Paper, PaperSafe, Imp];

/// Settings that every recipe takes are not among them, nor are those that need a reason of their
/// own (`--must-keep`).
const SETTINGS: &[Setting] = &[
    of("search_rows", &[Lm]),
    of("kicks", &[Lm]),
    of("idle_kicks", &[Lm]),
    of("turns", &[Lm]),
    of("start_factor", &[Anneal]),
    of("drop", &[Anneal]),
    of("trials", PUBLISHED),
    of("trial_rows", PUBLISHED),
    of("step", PUBLISHED),
    of("rank", PUBLISHED),
    of("refine", &[Paper]),
    of("empty", &[Paper]),
    of("prune_part", &[Imp]),
    of("one_shot", &[Imp]),
    of("rewind", &[Imp]),
    of("optimiser", &[Imp]),
    of("momentum", &[Imp]),
    of("weight_decay", &[Imp]),
    of("rate_falls", &[Imp]),
    of("rate_factor", &[Imp]),
    of("sum_output", &[Imp]),
    of("raw_inputs", &[Imp]),
    of("test_data", &[Imp]),
    of("test_labels", &[Imp]),
    of("keep_levels", &[Imp]),
    of("tune_epochs", SPARSE),
    of("tune_rate", SPARSE),
    of("grow", &[Lm, Anneal]),
    of("epochs", STEPPED),
    of("batch", STEPPED),
    of("rate", &[Anneal, Imp]),
    of("signs", &[Lm, Paper]),
    of("validation", &[Lm, Anneal]),
    of("patience", &[Lm, Anneal]),
    of("time_limit", SPARSE),
    of("passes_limit", SPARSE),
    of("log", SPARSE),
    of("picture", SPARSE),
    of("ram", SPARSE),
    of("panel", SPARSE),
    of("folds", SPARSE),
    of("cold", SPARSE),
];

/// Settings of recipes that train for several classes too, but not these settings.
const ONE_OUTPUT: &[&str] = &["refine", "empty", "signs"];

/// Settings that the help of `tamis train` shows without a recipe.
const BASIC: &[&str] = &["ram", "time_limit"];

/// `tamis train` with the flags that its help shows: those of a recipe, or those that matter to
/// all.
pub(super) fn shown(train: Command, recipe: Option<RecipeName>) -> Command {
    let hides = |id: &str| match (SETTINGS.iter().find(|setting| setting.id == id), recipe) {
        (Some(setting), Some(recipe)) => !setting.recipes.contains(&recipe),
        (Some(_), None) => !BASIC.contains(&id),
        (None, recipe) => id == "must_keep" && !matches!(recipe, Some(Anneal | Paper | PaperSafe)),
    };
    train.mut_args(|arg| {
        let hide = hides(arg.get_id().as_str());
        arg.hide(hide)
    })
}

/// The settings of a command line that not every recipe takes.
#[derive(Debug, Clone, Default)]
pub(super) struct Given(Vec<Setting>);

impl Given {
    /// Of the parsed flags of `tamis train`.
    pub(super) fn new(train: &ArgMatches) -> Self {
        let is_given =
            |setting: &&Setting| train.value_source(setting.id) == Some(ValueSource::CommandLine);
        Self(SETTINGS.iter().filter(is_given).copied().collect())
    }

    /// Whether there is one that these recipes alone take.
    pub(super) fn only_for(&self, recipes: &[RecipeName]) -> bool {
        self.0.iter().any(|setting| setting.recipes.iter().all(|recipe| recipes.contains(recipe)))
    }

    /// Refuses the first one that the recipe does not take.
    pub(super) fn check(&self, recipe: RecipeName, task: Task) -> Result<()> {
        match self.0.iter().find(|setting| !setting.recipes.contains(&recipe)) {
            None => Ok(()),
            Some(setting) => Err(foreign(setting, recipe, task)),
        }
    }
}

/// The error of a setting that the recipe does not take.
fn foreign(setting: &Setting, recipe: RecipeName, task: Task) -> Error {
    let Setting { id, recipes } = setting;
    let flag = format!("--{}", id.replace('_', "-"));
    let for_task = |recipe: &RecipeName| {
        let one_output = task == Task::Multiclass && ONE_OUTPUT.contains(id);
        !one_output && check_recipe(recipe.name(), task).is_ok()
    };
    let suitable: Vec<_> = recipes.iter().copied().filter(for_task).collect();
    Error::usage(format!("recipe {} does not take {flag}", recipe.name()))
        .expected(format_args!("{flag} with recipe {}", either(recipes)))
        .got(format_args!("{flag} with recipe {}", recipe.name()))
        .help(match &suitable[..] {
            [] => {
                format!("leave {flag} out: these recipes do not take it for --task {}", task.name())
            }
            suitable => format!("leave {flag} out, or choose --recipe {}", either(suitable)),
        })
}

/// The names of recipes, as in `lm, anneal or paper`.
fn either(recipes: &[RecipeName]) -> String {
    let names: Vec<&str> = recipes.iter().map(|recipe| recipe.name()).collect();
    match &names[..] {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What every recipe takes, or says itself why it does not.
    const EVERY: &[&str] = &[
        "data",
        "labels",
        "target",
        "keep_labels",
        "rows_per_label",
        "task",
        "hidden",
        "nnz",
        "density",
        "recipe",
        "must_keep",
        "output",
        "checkpoint",
        "resume",
        "json",
        "quiet",
        "seed",
        "threads",
        "help",
    ];

    #[test]
    fn every_setting_of_train_has_its_recipes() {
        let mut flags = super::super::flags();
        flags.build();
        let train = flags.find_subcommand("train").unwrap();
        let ids: Vec<&str> =
            train.get_arguments().map(|argument| argument.get_id().as_str()).collect();
        let known =
            |id: &&str| SETTINGS.iter().any(|setting| setting.id == *id) != EVERY.contains(id);
        let unknown: Vec<_> = ids.iter().filter(|id| !known(id) && **id != "version").collect();
        assert!(unknown.is_empty(), "not in SETTINGS, or in both: {unknown:?}");
        let gone: Vec<_> = SETTINGS.iter().filter(|setting| !ids.contains(&setting.id)).collect();
        assert!(gone.is_empty(), "no flags: {gone:?}");
    }
}
