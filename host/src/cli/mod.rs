//! The command `tamis`: verbs, their flags, and what they print.
//!
//! Results go to standard output, for people or with `--json` as one object; progress and notes go to standard error.
//! Exit codes: 0 done; 1 failed, with one error; 2 wrong usage; 3 more than a limit (`inspect`), or other
//! numbers on a part (`compare`); 130 interrupted (what training had reached is saved,
//! if there was a step); 101 an internal error.

mod anneal;
mod bench;
mod compare;
mod console;
mod deep;
mod demo;
mod eval;
mod experiment;
mod export;
mod finetune;
mod generate;
mod history;
mod imp;
mod import;
mod inspect;
mod interrupt;
mod keep;
mod paper;
mod parse;
mod path;
mod predict;
mod progress;
mod quantise;
mod recover;
mod report;
mod saved;
mod source;
mod train;

use std::io::Write;
use std::process::ExitCode;

use clap::{Arg, Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::Result;
use console::Console;

/// Exit code of a run that Ctrl-C or a signal ended: 128 + SIGINT, as shells count.
const INTERRUPTED: u8 = 130;

/// Exit code of a model that takes more than a limit allows, and of a part that predicts otherwise.
const OVER_LIMIT: u8 = 3;

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

/// Flags of every verb.
#[derive(Debug, Clone, Copy, Args)]
struct Common {
    /// Print one JSON object on standard output, and nothing else there
    #[arg(long, global = true, help_heading = "Common options")]
    json: bool,
    /// No progress and no report, only errors (and the object of --json)
    #[arg(long, short, global = true, help_heading = "Common options")]
    quiet: bool,
    /// Seed of everything that is drawn
    #[arg(long, global = true, default_value_t = 0, value_name = "N", help_heading = "Common options",
          value_parser = parse::whole::<u64>)]
    seed: u64,
    /// Threads to use [default: one per core]; never changes a result
    #[arg(long, global = true, value_name = "T", help_heading = "Common options",
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

impl Common {
    /// Threads as a pool takes them: 0 for one per core.
    fn threads(&self) -> usize {
        self.threads.map_or(0, usize::from)
    }

    /// Runs `work` on a pool of the threads asked for.
    fn on_pool<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        Ok(crate::run::pool(self.threads())?.install(work))
    }
}

#[derive(Debug, Subcommand)]
enum Verb {
    Demo(demo::Demo),
    Generate(generate::Generate),
    Train(Box<train::Train>),
    Eval(eval::Eval),
    Finetune(finetune::Finetune),
    Predict(predict::Predict),
    #[command(name = "quantize", alias = "quantise")]
    Quantise(quantise::Quantise),
    Inspect(inspect::Inspect),
    Compare(compare::Compare),
    Export(export::Export),
    Import(import::Import),
    Run(experiment::Run),
    Report(report::Report),
    Bench(bench::Bench),
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let what = panic.payload_as_str().unwrap_or("no message").replace('\n', " ");
        say_error(format_args!("internal error: {what} ({place}); please report this with the command"));
    }));
    let cli = Cli::from_arg_matches(&flags().get_matches()).unwrap_or_else(|error| error.exit());
    let console = Console { json: cli.common.json, quiet: cli.common.quiet };
    let done = interrupt::install().and_then(|()| run(&cli.verb, &cli.common, &console));
    match done {
        Ok(()) if interrupt::stop().asked() => ExitCode::from(INTERRUPTED),
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say_error(format_args!("error: {error}"));
            match () {
                () if error.is_interrupted() => ExitCode::from(INTERRUPTED),
                () if error.is_over_limit() => ExitCode::from(OVER_LIMIT),
                () => ExitCode::FAILURE,
            }
        }
    }
}

/// The command line as it is read: the value of a flag may be a negative number, which the flag's own parser refuses by
/// name.
fn flags() -> Command {
    fn take_negative(command: Command) -> Command {
        let takes = |arg: &Arg| arg.get_long().is_some() && arg.get_action().takes_values();
        command
            .mut_args(|arg| if takes(&arg) { arg.allow_negative_numbers(true) } else { arg })
            .mut_subcommands(take_negative)
    }
    take_negative(Cli::command())
}

fn run(verb: &Verb, common: &Common, console: &Console) -> Result<()> {
    match verb {
        Verb::Demo(demo) => demo.run(common, console),
        Verb::Generate(generate) => generate.run(common, console),
        Verb::Train(train) => train.run(common, console),
        Verb::Eval(eval) => eval.run(common, console),
        Verb::Finetune(finetune) => finetune.run(common, console),
        Verb::Predict(predict) => predict.run(common, console),
        Verb::Quantise(quantise) => quantise.run(common, console),
        Verb::Inspect(inspect) => inspect.run(console),
        Verb::Compare(compare) => compare.run(console),
        Verb::Export(export) => export.run(console),
        Verb::Import(import) => import.run(console),
        Verb::Run(run) => run.run(common, console),
        Verb::Report(report) => report.run(console),
        Verb::Bench(bench) => bench.run(common, console),
    }
}

/// Says it where it can be said: a closed standard error is no reason to fail again.
fn say_error(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_contradict_nowhere() {
        flags().debug_assert();
    }

    #[test]
    fn every_verb_has_an_example_that_parses() {
        for verb in flags().get_subcommands() {
            let help = verb.get_after_help().unwrap_or_else(|| panic!("{} has no example", verb.get_name()));
            let text = help.to_string().replace("\\\n", " ");
            let lines: Vec<_> = text.lines().filter(|line| line.trim().starts_with("tamis ")).collect();
            assert!(!lines.is_empty(), "{}", verb.get_name());
            for line in lines {
                let parsed = flags().try_get_matches_from(line.split_whitespace());
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }
}
