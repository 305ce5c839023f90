//! Builds the firmware for every board, runs it under QEMU with the counting plugin, and holds the
//! results to the host's digests and to the limits.

use crate::boards::{BOARDS, Board};
use crate::command::each;
use crate::emulator::{EMULATORS, Emulation, Limits, Ran, build_plugin, endless};
use crate::images::{self, IMAGES, SOFT};
use crate::matrix::{self, Run};
use crate::part::{Context, Outcome, Report, Skipped, Stop};
use crate::ways::check::SOME;
use crate::{costs, elf, install, sizes, ways};
use std::path::Path;
use tamis_tests::cases::Case;
use tamis_tests::deployed;

pub(crate) fn run(_: &Context) -> Outcome {
    install::programs(&EMULATORS)?;
    let compilers = install::programs(&ways::c::compilers(SOME));
    images::build_firmware()?;
    images::build_plain(&[], &["costs", "integers"])?;
    without_floats()?;
    let plugin = build_plugin()?;
    let mut problems = endless(&plugin)?;
    let expected = matrix::expected();
    let runs = each(BOARDS, |board| emulate(board, &plugin));
    let runs = runs.into_iter().collect::<Result<Vec<_>, _>>()?;
    print!("{}", matrix::table(&runs, &expected));
    problems.extend(matrix::problems(&runs, &expected));
    for traced in each(BOARDS, |board| trace(board, &plugin)) {
        problems.extend(traced?);
    }
    images::build_sized()?;
    problems.extend(sizes::check(IMAGES)?);
    problems.extend(costs::check(&plugin)?);
    problems.extend(costs::check_ways(&plugin, SOME, compilers.is_ok())?);
    problems.iter().for_each(|problem| println!("{problem}"));
    if !problems.is_empty() {
        return Err(Stop::Failed(format!("{} problems in the matrix", problems.len())));
    }
    let note = format!(
        "{} boards, {} cases, the host's bits on each; estimates of other models within their bounds",
        runs.len(),
        expected.len()
    );
    Ok(Report { note, skipped: compilers.err().iter().map(without_c).collect() })
}

/// What models take in C was not checked.
fn without_c(stop: &Stop) -> Skipped {
    Skipped { count: 1, why: format!("what models take in C: {}", stop.why()), installable: true }
}

/// The program that reads a model of integers and classifies holds no routine for floats.
fn without_floats() -> Result<(), Stop> {
    for target in SOFT {
        let image = images::image(target, "integers");
        let names = elf::symbols(&images::read(&image)?)
            .ok_or_else(|| Stop::Failed(format!("{}: no symbols", image.display())))?;
        if let Some(name) = names.iter().find(|name| elf::is_soft_float(name)) {
            return Err(Stop::Failed(format!("{target}: predicting by integers calls {name}")));
        }
    }
    Ok(())
}

/// All images, one after the other.
fn emulate(board: &Board, plugin: &Path) -> Result<Run, Stop> {
    let first = emulate_one(board, "tamis-firmware", plugin)?;
    let both = first.and(emulate_one(board, "second", plugin)?);
    let all = both.and(emulate_one(board, "third", plugin)?);
    if board.core != Case::<()>::LARGE_CORE {
        return Ok(all);
    }
    Ok(all.and(emulate_one(board, "large", plugin)?))
}

fn emulate_one(board: &Board, program: &str, plugin: &Path) -> Result<Run, Stop> {
    let image = images::image(board.target, program);
    let ran = start(board, &image, program, plugin);
    let flash = images::flash(&image)?;
    Ok(Run::new(board.core, flash, ran.ended, &ran.log, &ran.counts))
}

/// The programs that print what layers give do it as the host does, to the bit.
fn trace(board: &Board, plugin: &Path) -> Result<Vec<String>, Stop> {
    let (mut integers, mut floats) = (String::new(), String::new());
    let push = |text: &mut String, line: &str| text.extend([line, "\n"]);
    let host = deployed::trace_integers(|line| push(&mut integers, line));
    let host = host.and(deployed::trace_floats(|line| push(&mut floats, line)));
    host.map_err(|error| Stop::Failed(format!("traces on the host: {error}")))?;
    let mut problems = Vec::new();
    for (program, expected) in [("trace", integers), ("trace-floats", floats)] {
        let image = images::image(board.target, program);
        let ran = start(board, &image, program, plugin);
        ran.ended?;
        let differ =
            ran.log.lines().zip(expected.lines()).position(|(got, expected)| got != expected);
        let (got, lines) = (ran.log.lines().count(), expected.lines().count());
        if let Some(at) = differ.or_else(|| (got != lines).then_some(got.min(lines))) {
            let line = |text: &str| text.lines().nth(at).unwrap_or("nothing").to_owned();
            let (got, expected) = (line(&ran.log), line(&expected));
            let at = at + 1;
            problems.push(format!(
                "{}, {program}, line {at}: {got:?}, on the host {expected:?}",
                board.core
            ));
        }
    }
    Ok(problems)
}

/// Runs an image on a board.
fn start(board: &Board, image: &Path, name: &str, plugin: &Path) -> Ran {
    let limits = Limits::USUAL;
    Emulation { board, image, name, plugin, floor: None, more: &[], quiet: false, limits }.run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_compilers_mean_the_check_is_skipped() {
        let skipped = without_c(&Stop::Missing("not installed: gcc-arm-none-eabi".into()));
        assert!(
            skipped.installable && skipped.count == 1 && skipped.why.contains("gcc-arm-none-eabi")
        );
    }
}
