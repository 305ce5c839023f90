//! `cargo ci`: everything that must hold before a change goes in, cheapest first.
//!
//! ```text
//! cargo ci                 the default parts
//! cargo ci host qemu       only those
//! cargo ci fuzz 600        each fuzz target for 600 seconds
//! cargo ci --list          what there is
//! ```
//!
//! Prints every command before running it, installs what is missing where it can, and ends with a
//! table. A part that cannot run is skipped and counted, and so is each single check of a part,
//! such as a test, that does not run; with `CI=true` in the environment, skipping what could have
//! been installed is a failure.

mod checks;
mod command;
#[path = "../../../../host/src/model/cost/mod.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "of the host, which this runner does not wait for"
)]
mod cost;
mod costs;
mod cross;
mod deploy;
mod elf;
mod emulator;
mod firmware;
mod gpu;
mod host;
mod images;
mod install;
mod matrix;
mod needs;
mod part;
mod parts;
mod qemu;
mod sizes;
mod tools;
mod ways;

#[path = "../../../firmware/boards.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with the build script of the firmware")]
mod boards;

use part::{Context, Outcome, Part, Run, Runs, Skipped, Stop, Verdict};
use parts::PARTS;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::thread;
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
            PARTS.iter().for_each(|part| println!("{}", listed(part)));
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
            let part =
                part.ok_or_else(|| format!("no part '{arg}'; `cargo ci --list` shows them"))?;
            parts.push(part);
        }
    }
    context.named = !parts.is_empty();
    if parts.is_empty() {
        parts = PARTS
            .iter()
            .filter(|part| matches!(part.runs, Runs::Always(_) | Runs::Beside(_)))
            .collect();
    }
    Ok(Request::Run { parts, context })
}

fn listed(part: &Part) -> String {
    let when = match part.runs {
        Runs::Always(_) | Runs::Beside(_) => "",
        Runs::WhenNamed(_) => " (only when named)",
    };
    format!("{:<9} {}{when}", part.name, part.about)
}

fn run(parts: &[&'static Part], context: &Context) -> ExitCode {
    let done = Mutex::new(Vec::new());
    let push = |at, of: Done| done.lock().unwrap_or_else(PoisonError::into_inner).push((at, of));
    thread::scope(|scope| {
        for (at, part) in parts.iter().enumerate() {
            match part.runs {
                Runs::Always(run) | Runs::WhenNamed(run) => push(at, timed(part, run, context)),
                Runs::Beside(run) => drop(scope.spawn(move || push(at, timed(part, run, context)))),
            }
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    let mut counts = Counts::default();
    println!("\n{:<9} {:<8} {:>9}", "part", "result", "time");
    for (_, Done { line, judged }) in &done {
        println!("{line}");
        counts.add(judged);
    }
    println!("{}", counts.closing());
    if counts.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A part that has run, and its line of the table.
struct Done {
    judged: Judged,
    line: String,
}

fn timed(part: &Part, run: Run, context: &Context) -> Done {
    println!("\n== {}: {}", part.name, part.about);
    let started = Instant::now();
    let judged = judge(run(context), std::env::var("CI").is_ok_and(|value| value == "true"));
    let (seconds, verdict) = (started.elapsed().as_secs_f64(), judged.verdict.word());
    let line = format!("{:<9} {verdict:<8} {seconds:>7.1} s  {}", part.name, judged.note);
    let line = line.trim_end().to_owned();
    println!("{line}");
    Done { judged, line }
}

/// What counts of a part, and what the table says about it.
#[derive(Debug, PartialEq, Eq)]
struct Judged {
    verdict: Verdict,
    /// Checks of a part that itself passed or failed.
    skipped: usize,
    note: String,
}

fn judge(outcome: Outcome, ci: bool) -> Judged {
    let judged = |verdict, note| Judged { verdict, skipped: 0, note };
    match outcome {
        Ok(report) if report.skipped.is_empty() => judged(Verdict::Passed, report.note),
        Ok(report) => {
            let denied = ci && report.skipped.iter().any(|skipped| skipped.installable);
            let verdict = if denied { Verdict::Failed } else { Verdict::Passed };
            let notes = (!report.note.is_empty()).then_some(report.note).into_iter();
            let notes = notes.chain(report.skipped.iter().map(|skipped| said(skipped, ci)));
            let note = notes.collect::<Vec<_>>().join("; ");
            Judged {
                verdict,
                skipped: report.skipped.iter().map(|skipped| skipped.count).sum(),
                note,
            }
        }
        Err(Stop::Failed(why)) => judged(Verdict::Failed, why),
        Err(Stop::Missing(why)) if ci => {
            judged(Verdict::Failed, format!("CI=true does not allow SKIPPED({why})"))
        }
        Err(Stop::Missing(why) | Stop::Excused(why)) => {
            judged(Verdict::Skipped, format!("SKIPPED({why})"))
        }
    }
}

fn said(skipped: &Skipped, ci: bool) -> String {
    let Skipped { count, why, installable } = skipped;
    let denied = if ci && *installable { "CI=true does not allow " } else { "" };
    format!("{denied}{count} SKIPPED({why})")
}

/// The last line; other programs read it.
#[derive(Debug, Default)]
struct Counts {
    passed: usize,
    failed: usize,
    /// Parts, and single checks of others.
    skipped: usize,
}

impl Counts {
    fn add(&mut self, judged: &Judged) {
        match judged.verdict {
            Verdict::Passed => self.passed += 1,
            Verdict::Failed => self.failed += 1,
            Verdict::Skipped => self.skipped += 1,
        }
        self.skipped += judged.skipped;
    }

    fn closing(&self) -> String {
        format!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use part::Report;

    fn parsed(args: &[&str]) -> Result<(Vec<&'static str>, u64, bool), String> {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        match parse(&args)? {
            Request::List => Err("list".to_string()),
            Request::Run { parts, context } => Ok((
                parts.iter().map(|part| part.name).collect(),
                context.fuzz_seconds,
                context.named,
            )),
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
        assert!(
            !named && parts.starts_with(&["fmt", "clippy"]) && !parts.contains(&"fuzz"),
            "{parts:?}"
        );
    }

    #[test]
    fn the_gpu_suite_runs_only_when_named() {
        assert_eq!(parsed(&["gpu"]).unwrap().0, ["gpu"]);
        assert!(!parsed(&[]).unwrap().0.contains(&"gpu"));
        let gpu = PARTS.iter().find(|part| part.name == "gpu").unwrap();
        assert!(listed(gpu).ends_with("(only when named)"));
    }

    #[test]
    fn only_installable_missing_needs_fail_in_ci() {
        let verdict = |stop, ci| judge(Err(stop), ci).verdict;
        assert_eq!(verdict(Stop::Missing("x".into()), false), Verdict::Skipped);
        assert_eq!(verdict(Stop::Missing("x".into()), true), Verdict::Failed);
        assert_eq!(verdict(Stop::Excused("x".into()), true), Verdict::Skipped);
    }

    #[test]
    fn single_checks_that_did_not_run_are_counted() {
        let skipped = |count, installable| Skipped { count, why: "no x".into(), installable };
        let report =
            Report { note: "n".into(), skipped: vec![skipped(3, false), skipped(1, true)] };
        let mut counts = Counts::default();
        for (ci, verdict) in [(false, Verdict::Passed), (true, Verdict::Failed)] {
            let judged = judge(Ok(report.clone()), ci);
            assert_eq!((judged.verdict, judged.skipped), (verdict, 4));
            counts.add(&judged);
        }
        assert_eq!(judge(Ok(report), false).note, "n; 3 SKIPPED(no x); 1 SKIPPED(no x)");
        counts.add(&judge(Err(Stop::Excused("x".into())), true));
        assert_eq!(counts.closing(), "1 passed, 1 failed, 9 skipped");
    }
}
