//! The command `tamis`: verbs, their flags, and what they print.
//!
//! Results go to standard output, for people or with `--json` as one object; progress and notes go
//! to standard error. Exit codes: 0 done; 1 failed, with one error; 2 wrong usage; 3 more than a
//! limit (`inspect`), or other numbers on a device (`compare`); 130 interrupted (what training had
//! reached is saved, if there was a step); 101 an internal error.

mod bench;
mod certify;
mod common;
mod compare;
mod console;
mod demo;
mod devices;
mod eval;
mod experiment;
mod export;
mod finetune;
mod generate;
mod import;
mod inspect;
mod interrupt;
mod mask;
mod parse;
mod predict;
mod progress;
mod prune;
mod quantise;
mod report;
mod saved;
mod settings;
mod source;
mod train;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Arg, Command, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::Result;
use common::{Common, INTERRUPTED, OVER_LIMIT, USAGE};
use console::say_error;
use parse::RecipeName;
use settings::Given;

#[derive(Debug, Parser)]
#[command(
    name = "tamis",
    version,
    about = "Train, prune and run sparse neural networks where memory is the limit",
    after_help = "Start with: tamis demo",
    arg_required_else_help = true,
    propagate_version = true
)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Demo(demo::Demo),
    Generate(generate::Generate),
    Mask(Box<mask::MaskVerb>),
    Train(Box<train::args::Train>),
    Eval(eval::Eval),
    Finetune(finetune::Finetune),
    Prune(Box<prune::Prune>),
    Predict(predict::Predict),
    #[command(name = "quantize", alias = "quantise")]
    Quantise(quantise::Quantise),
    Inspect(inspect::Inspect),
    Compare(compare::Compare),
    Certify(certify::Certify),
    Export(export::Export),
    Import(import::Import),
    Run(experiment::Run),
    Report(report::Report),
    Bench(bench::Bench),
    Devices(devices::Devices),
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let what = panic.payload_as_str().unwrap_or("no message").replace('\n', " ");
        say_error(format_args!(
            "internal error: {what} ({place}); please report this with the command"
        ));
    }));
    let matches = words(std::env::args_os());
    let mut matches = flags_for(&matches).get_matches_from(matches);
    let given = matches.subcommand_matches("train").map(Given::new);
    let mut cli = Cli::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.exit());
    if let (Verb::Train(train), Some(given)) = (&mut cli.verb, given) {
        train.given = given;
    }
    let done = interrupt::install().and_then(|()| run(&cli.verb, &cli.common));
    match done {
        Ok(()) if interrupt::stop().asked() => ExitCode::from(INTERRUPTED),
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say_error(format_args!("error: {error}"));
            match () {
                () if error.is_interrupted() => ExitCode::from(INTERRUPTED),
                () if error.is_over_limit() => ExitCode::from(OVER_LIMIT),
                () if error.is_usage() => ExitCode::from(USAGE),
                () => ExitCode::FAILURE,
            }
        }
    }
}

/// The words of the command line, but for `--help` behind `help`, whose own parser takes no flags.
fn words(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let words: Vec<OsString> = words.collect();
    let is_flag = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
    let helps = words.iter().skip(1).find(|word| !is_flag(word)).is_some_and(|verb| verb == "help");
    words.into_iter().filter(|word| !(helps && (word == "--help" || word == "-h"))).collect()
}

/// The command line; the help of `tamis train` is that of the recipe in these words, if any.
fn flags_for(words: &[OsString]) -> Command {
    let text = words.iter().filter_map(|word| word.to_str());
    let values = text.clone().skip(1).map(Some).chain([None]);
    let named = text.zip(values).find_map(|(word, next)| match word.strip_prefix("--recipe")? {
        "" => next,
        value => value.strip_prefix('='),
    });
    let recipe = named.and_then(|name| RecipeName::from_str(name, false).ok());
    let recipe = recipe.filter(|recipe| *recipe != RecipeName::Auto);
    flags().mut_subcommand("train", |train| settings::shown(train, recipe))
}

/// The command line as it is read: the value of a flag may be a negative number, which the flag's
/// own parser refuses by name.
fn flags() -> Command {
    fn take_negative(command: Command) -> Command {
        let takes = |arg: &Arg| arg.get_long().is_some() && arg.get_action().takes_values();
        command
            .mut_args(|arg| if takes(&arg) { arg.allow_negative_numbers(true) } else { arg })
            .mut_subcommands(take_negative)
    }
    take_negative(Cli::command())
}

fn run(verb: &Verb, common: &Common) -> Result<()> {
    match verb {
        Verb::Demo(demo) => demo.run(common),
        Verb::Generate(generate) => generate.run(common),
        Verb::Mask(mask) => mask.run(common),
        Verb::Train(train) => train.run(common),
        Verb::Eval(eval) => eval.run(common),
        Verb::Finetune(finetune) => finetune.run(common),
        Verb::Prune(prune) => prune.run(common),
        Verb::Predict(predict) => predict.run(common),
        Verb::Quantise(quantise) => quantise.run(common),
        Verb::Inspect(inspect) => inspect.run(common),
        Verb::Compare(compare) => compare.run(common),
        Verb::Certify(certify) => certify.run(common),
        Verb::Export(export) => export.run(common),
        Verb::Import(import) => import.run(common),
        Verb::Run(run) => run.run(common),
        Verb::Report(report) => report.run(common),
        Verb::Bench(bench) => bench.run(common),
        Verb::Devices(devices) => devices.run(common),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_contradict_nowhere() {
        flags().debug_assert();
    }

    #[test]
    fn train_help_fits_a_screen_and_groups_recipes() {
        let help = |text: &str| {
            let words: Vec<OsString> = text.split_whitespace().map(Into::into).collect();
            flags_for(&words).try_get_matches_from(words).unwrap_err().to_string()
        };
        let short = help("tamis train --help");
        assert!(short.lines().count() <= 45, "{} lines: {short}", short.lines().count());
        assert!(!short.contains("--kicks") && short.contains("--recipe lm"), "{short}");
        for (recipe, own) in
            [("lm", "--kicks"), ("anneal", "--drop"), ("paper", "--trials"), ("imp", "--rewind")]
        {
            let long = help(&format!("tamis train --help --recipe {recipe}"));
            assert!(long.contains(own) && long.contains("--checkpoint"), "{recipe}: {long}");
            assert!(recipe == "lm" || !long.contains("--kicks"), "{recipe}: {long}");
        }
    }

    #[test]
    fn every_verb_has_an_example_that_parses() {
        for verb in flags().get_subcommands() {
            let help = verb
                .get_after_help()
                .unwrap_or_else(|| panic!("{} has no example", verb.get_name()));
            let text = help.to_string().replace("\\\n", " ");
            let lines: Vec<_> =
                text.lines().filter(|line| line.trim().starts_with("tamis ")).collect();
            assert!(!lines.is_empty(), "{}", verb.get_name());
            for line in lines {
                let parsed = flags().try_get_matches_from(line.split_whitespace());
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }
}
