//! `cargo ci`: everything that must hold before a change goes in, cheapest first.
//!
//! ```text
//! cargo ci                 the default parts
//! cargo ci host qemu       only those
//! cargo ci fuzz 600        each fuzz target for 600 seconds
//! cargo ci --list          what there is
//! ```
//!
//! Prints every command before running it, installs what is missing where it can, and ends with a table. A part that
//! cannot run is skipped and counted; with `CI=true` in the environment, skipping what could have been installed is a
//! failure.

mod checks;
mod command;
mod costs;
mod cross;
mod deploy;
mod elf;
mod firmware;
mod install;
mod matrix;
mod part;
mod qemu;
mod sizes;
mod tools;
mod ways;

use part::{Context, PARTS, Part, Stop, Verdict};
use std::process::ExitCode;
use std::time::Instant;

/// What the command line asks for.
#[derive(Debug)]
enum Request {
    List,
    Run { parts: Vec<&'static Part>, context: Context },
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match parse(&args) {
        Ok(Request::List) => {
            list();
            ExitCode::SUCCESS
        }
        Ok(Request::Run { parts, context }) => run(&parts, &context),
        Err(problem) => {
            eprintln!("cargo ci: {problem}");
            ExitCode::from(2)
        }
    }
}

fn parse(args: &[String]) -> Result<Request, String> {
    let mut parts = Vec::new();
    let mut context = Context { named: false, fuzz_seconds: 60 };
    for arg in args {
        if matches!(arg.as_str(), "--list" | "--help" | "-h") {
            return Ok(Request::List);
        } else if let Ok(seconds) = arg.parse() {
            context.fuzz_seconds = seconds;
        } else {
            let part = PARTS.iter().find(|part| part.name == arg);
            parts.push(part.ok_or_else(|| format!("no part '{arg}'; `cargo ci --list` shows them"))?);
        }
    }
    context.named = !parts.is_empty();
    if parts.is_empty() {
        parts = PARTS.iter().filter(|part| part.default).collect();
    }
    Ok(Request::Run { parts, context })
}

fn list() {
    for part in PARTS {
        println!("{:<9} {}{}", part.name, part.about, if part.default { "" } else { " (only when named)" });
    }
}

fn run(parts: &[&'static Part], context: &Context) -> ExitCode {
    let ci = std::env::var("CI").is_ok_and(|value| value == "true");
    let mut lines = Vec::new();
    let mut counts = [0_usize; 3];
    for part in parts {
        println!("\n== {}: {}", part.name, part.about);
        let started = Instant::now();
        let (verdict, note) = judge((part.run)(context), ci);
        counts[verdict as usize] += 1;
        let seconds = started.elapsed().as_secs_f64();
        let line = format!("{:<9} {:<8} {seconds:>7.1} s  {note}", part.name, verdict.word());
        println!("{}", line.trim_end());
        lines.push(line);
    }
    println!("\n{:<9} {:<8} {:>9}", "part", "result", "time");
    lines.iter().for_each(|line| println!("{}", line.trim_end()));
    println!("{}", closing(counts));
    if counts[Verdict::Failed as usize] == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What counts, and what the table says about it.
fn judge(outcome: part::Outcome, ci: bool) -> (Verdict, String) {
    match outcome {
        Ok(note) => (Verdict::Passed, note),
        Err(Stop::Failed(why)) => (Verdict::Failed, why),
        Err(Stop::Missing(why)) if ci => (Verdict::Failed, format!("CI=true does not allow SKIPPED({why})")),
        Err(Stop::Missing(why) | Stop::Excused(why)) => (Verdict::Skipped, format!("SKIPPED({why})")),
    }
}

/// The last line; other programs read it.
fn closing([passed, failed, skipped]: [usize; 3]) -> String {
    format!("{passed} passed, {failed} failed, {skipped} skipped")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<(Vec<&'static str>, u64, bool), String> {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        match parse(&args)? {
            Request::List => Err("list".to_string()),
            Request::Run { parts, context } => {
                Ok((parts.iter().map(|part| part.name).collect(), context.fuzz_seconds, context.named))
            }
        }
    }

    #[test]
    fn named_parts_run_in_the_order_given() {
        assert_eq!(parsed(&["qemu", "host"]).unwrap(), (vec!["qemu", "host"], 60, true));
        assert_eq!(parsed(&["fuzz", "600"]).unwrap(), (vec!["fuzz"], 600, true));
        assert!(parsed(&["host", "nothing"]).unwrap_err().contains("nothing"));
        assert_eq!(parsed(&["--list"]).unwrap_err(), "list");
    }

    #[test]
    fn the_default_leaves_fuzzing_out() {
        let (parts, _, named) = parsed(&[]).unwrap();
        assert!(!named && parts.starts_with(&["fmt", "clippy"]) && !parts.contains(&"fuzz"), "{parts:?}");
    }

    #[test]
    fn only_what_could_have_been_installed_fails_in_ci() {
        let verdict = |stop, ci| judge(Err(stop), ci).0;
        assert_eq!(verdict(Stop::Missing("x".into()), false), Verdict::Skipped);
        assert_eq!(verdict(Stop::Missing("x".into()), true), Verdict::Failed);
        assert_eq!(verdict(Stop::Excused("x".into()), true), Verdict::Skipped);
        assert_eq!(closing([3, 0, 1]), "3 passed, 0 failed, 1 skipped");
    }
}
