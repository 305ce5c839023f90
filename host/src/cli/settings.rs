//! Which recipes take which settings of `tamis train`.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use super::parse::DeviceName;
use super::parse::RecipeName::{self, Anneal, Dynamic, Group, Imp, Lm, Masked, Paper, PaperSafe};
use crate::data::Task;
use crate::train::check_recipe;
use crate::{Error, Result};

/// A setting that some recipes take, by its name in the parser.
#[derive(Debug, Clone, Copy)]
struct Setting {
    id: &'static str,
    recipes: &'static [RecipeName],
}

/// All but the dense baseline.
const SPARSE: &[RecipeName] = &[Lm, Anneal, Paper, PaperSafe];
const PUBLISHED: &[RecipeName] = &[Paper, PaperSafe];
const STEPPED: &[RecipeName] = &[Anneal, Paper, PaperSafe, Imp, Masked, Dynamic, Group];
const DESCENT: &[RecipeName] = &[Imp, Masked];

/// Settings by the recipes that take them. Those that every recipe takes are not among them, nor
/// are those that need a reason of their own (`--must-keep`).
const SETTINGS: &[(&[RecipeName], &str)] = &[
    (&[Lm], "search_rows kicks idle_kicks turns adam_steps"),
    (&[Anneal], "drop"),
    (&[Anneal, Dynamic], "start_factor"),
    (PUBLISHED, "trials trial_rows step rank"),
    (&[Paper], "refine empty refresh convex"),
    (&[Imp], "prune_fraction one_shot rewind sum_output keep_levels"),
    (DESCENT, "optimiser momentum rate_falls rate_factor"),
    (&[Imp, Masked, Dynamic], "weight_decay"),
    (&[Imp, Masked, Dynamic], "raw_inputs"),
    (&[Imp, Masked, Dynamic, Group], "test_data test_labels"),
    (&[Masked], "weights layout init"),
    (&[Masked, Dynamic], "warmup"),
    (&[Dynamic], "augment support moments starts"),
    (&[Lm, Anneal, Paper, PaperSafe, Dynamic], "ram folds cold"),
    (&[Lm, Anneal, Paper, PaperSafe, Imp, Dynamic], "checkpoint resume"),
    (SPARSE, "tune_epochs tune_rate"),
    (&[Lm, Anneal], "grow"),
    (STEPPED, "epochs batch"),
    (&[Anneal, Imp, Masked, Dynamic], "rate"),
    (&[Lm, Paper], "signs"),
    (&[Lm, Anneal, Dynamic], "validation patience"),
    (&[Lm, Anneal, Paper, PaperSafe, Dynamic], "time_limit passes_limit log picture"),
    (SPARSE, "panel profile"),
    (&[Lm, Anneal, Paper, PaperSafe, Imp, Masked], "device"),
];

fn settings() -> impl Iterator<Item = Setting> {
    let of =
        |&(recipes, ids): &(_, &'static str)| ids.split(' ').map(move |id| Setting { id, recipes });
    SETTINGS.iter().flat_map(of)
}

/// Settings of recipes that train for several classes too, but not these settings.
const ONE_OUTPUT: &[&str] = &["refine", "empty", "signs"];

/// Settings of a run, whatever trains.
const RUN: &[&str] = &["checkpoint", "resume", "time_limit", "passes_limit", "log", "picture"];

/// Settings that the help of `tamis train` shows without a recipe.
const BASIC: &[&str] = &["ram", "time_limit", "checkpoint", "resume"];

/// Settings of tables that are read well without, which the help shows with that of a recipe.
const TABLES: &[&str] = &["missing", "ignore", "unseen"];

/// `tamis train` with the flags of a recipe in its help, or those that matter to all.
pub(super) fn shown(train: Command, recipe: Option<RecipeName>) -> Command {
    let hides = |id: &str| match (settings().find(|setting| setting.id == id), recipe) {
        (Some(setting), Some(recipe)) => !setting.recipes.contains(&recipe),
        (Some(_), None) => !BASIC.contains(&id),
        (None, None) if TABLES.contains(&id) => true,
        (None, recipe) => match id {
            "must_keep" => !matches!(recipe, Some(Anneal | Paper | PaperSafe)),
            "adapter" => !recipe.is_some_and(|recipe| recipe == Imp || SPARSE.contains(&recipe)),
            _ => false,
        },
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
    pub(super) fn new(train: &ArgMatches) -> Self {
        // What asks for no GPU suits every recipe.
        let is_gpu = || train.get_one("device") == Some(&DeviceName::Gpu);
        let is_given = |setting: &Setting| {
            train.value_source(setting.id) == Some(ValueSource::CommandLine)
                && (setting.id != "device" || is_gpu())
        };
        Self(settings().filter(is_given).collect())
    }

    /// Whether no recipe is meant by them: they are of a run, whatever trains.
    pub(super) fn are_of_the_run(&self) -> bool {
        self.0.iter().all(|setting| RUN.contains(&setting.id))
    }

    /// Whether there is one that these recipes alone take.
    pub(super) fn only_for(&self, recipes: &[RecipeName]) -> bool {
        self.0.iter().any(|setting| setting.recipes.iter().all(|recipe| recipes.contains(recipe)))
    }

    /// Whether the recipe takes all of them.
    pub(super) fn fits(&self, recipe: RecipeName) -> bool {
        self.0.iter().all(|setting| setting.recipes.contains(&recipe))
    }

    /// Refuses the first one that the recipe does not take.
    pub(super) fn check(&self, recipe: RecipeName, task: Task) -> Result<()> {
        let foreign = self.0.iter().find(|setting| !setting.recipes.contains(&recipe));
        let Some(Setting { id, recipes }) = foreign else { return Ok(()) };
        let flag = format!("--{}", id.replace('_', "-"));
        let for_task = |recipe: &RecipeName| {
            let one_output = task == Task::Multiclass && ONE_OUTPUT.contains(id);
            !one_output && check_recipe(recipe.name(), task).is_ok()
        };
        let mut suitable: Vec<_> = recipes.iter().copied().filter(for_task).collect();
        // It needs a mask: others are nearer, where there are some.
        if suitable.len() > 1 {
            suitable.retain(|recipe| *recipe != Masked);
        }
        let task = task.name();
        let help = if suitable.is_empty() {
            format!("leave {flag} out: these recipes do not take it for --task {task}")
        } else {
            format!("leave {flag} out, or choose --recipe {}", either(&suitable))
        };
        Err(Error::usage(format!("recipe {} does not take {flag}", recipe.name()))
            .expected(format_args!("{flag} with recipe {}", either(recipes)))
            .got(format_args!("{flag} with recipe {}", recipe.name()))
            .help(help))
    }
}

/// The names of recipes, as in `lm, anneal or paper`.
fn either(recipes: &[RecipeName]) -> String {
    let names: Vec<&str> = recipes.iter().map(|recipe| recipe.name()).collect();
    match &names[..] {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        one => one.concat(),
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
        "missing",
        "ignore",
        "unseen",
        "task",
        "hidden",
        "nnz",
        "density",
        "recipe",
        "must_keep",
        "mask",
        "scale",
        "adapter",
        "plan",
        "output",
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
        let known = |id: &&str| settings().any(|setting| setting.id == *id) != EVERY.contains(id);
        let unknown: Vec<_> = ids.iter().filter(|id| !known(id) && **id != "version").collect();
        assert!(unknown.is_empty(), "not in SETTINGS, or in both: {unknown:?}");
        let gone: Vec<_> = settings().filter(|setting| !ids.contains(&setting.id)).collect();
        assert!(gone.is_empty(), "no flags: {gone:?}");
    }
}
