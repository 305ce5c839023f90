//! Builds the firmware for every board, runs it under QEMU with the counting plugin, and holds the results to the
//! host's digests and to the limits.

use crate::command::{Cmd, root};
use crate::matrix::{self, Run};
use crate::part::{Context, Outcome, Stop};
use crate::ways::check::SOME;
use crate::{costs, cross, elf, install, sizes};
use boards::{BOARDS, Board};
use std::fs;
use std::path::{Path, PathBuf};
use tamis_tests::deployed;

#[path = "../../../firmware/boards.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with the build script of the firmware")]
pub(crate) mod boards;

/// Seconds after which a board that has not finished is stopped.
const LIMIT: u64 = 120;
/// Where firmware images go; the target's name follows.
const IMAGES: &str = "tests/firmware/target";
/// Built plugin and logs.
pub(crate) const WORK: &str = "target/qemu";
/// Emulators and the Debian packages that have them.
pub(crate) const EMULATORS: [(&str, &str); 2] =
    [("qemu-system-arm", "qemu-system-arm"), ("qemu-system-riscv32", "qemu-system-misc")];

pub(crate) fn run(_: &Context) -> Outcome {
    install::programs(&EMULATORS)?;
    build_firmware()?;
    build_plain(&[], &["costs", "integers"])?;
    without_floats()?;
    let plugin = build_plugin()?;
    let expected = matrix::expected();
    let runs = BOARDS.iter().map(|board| emulate(board, &plugin)).collect::<Result<Vec<_>, _>>()?;
    print!("{}", matrix::table(&runs, &expected));
    let mut problems = matrix::problems(&runs, &expected);
    for board in BOARDS {
        problems.extend(trace(board, &plugin)?);
    }
    build_sized()?;
    problems.extend(sizes::check(IMAGES)?);
    problems.extend(costs::check(&plugin)?);
    problems.extend(costs::check_ways(&plugin, SOME)?);
    problems.iter().for_each(|problem| println!("{problem}"));
    match problems.len() {
        0 => Ok(format!(
            "{} boards, {} cases, the host's bits on each; estimates of other models within their bounds",
            runs.len(),
            expected.len()
        )),
        count => Err(Stop::Failed(format!("{count} problems in the matrix"))),
    }
}

/// All cases together outgrow the 256 KiB of the smallest part unless they are compiled for size.
const SMALL_TARGET: &str = "thumbv6m-none-eabi";
const SMALL: (&str, &str) = ("CARGO_TARGET_THUMBV6M_NONE_EABI_RUSTFLAGS", "-Copt-level=s");

/// Builds programs as users do: all targets but the smallest part's come so from [`build_firmware`], into the same folders.
pub(crate) fn build_plain(features: &[&str], programs: &[&str]) -> Result<(), Stop> {
    let small = SMALL_TARGET;
    let build = cross::compiler(&targets())?.build(&[small]).words("--profile plain");
    named(build, features, programs).run()?;
    let others: Vec<_> = targets().into_iter().filter(|&target| target != small).collect();
    let build = cross::compiler(&targets())?.build(&others).words("--release");
    named(build, features, programs).run()
}

fn named(build: Cmd, features: &[&str], programs: &[&str]) -> Cmd {
    let build = build.words("--manifest-path tests/firmware/Cargo.toml --target-dir").args([IMAGES]);
    let build = if features.is_empty() { build } else { build.args(["--features", &features.join(",")]) };
    programs.iter().fold(build, |build, program| build.args(["--bin", program]))
}

/// Where a program lies that was built as users do.
pub(crate) fn plain_image(board: &Board, program: &str) -> PathBuf {
    let profile = if board.target == SMALL_TARGET { "plain" } else { "release" };
    root().join(IMAGES).join(board.target).join(profile).join(program)
}

fn build_firmware() -> Result<(), Stop> {
    let targets = targets();
    let build = cross::compiler(&targets)?.build(&targets);
    let build = build.env(SMALL.0, SMALL.1);
    build.words("--release --manifest-path tests/firmware/Cargo.toml --target-dir").args([IMAGES]).run()
}

/// The programs whose flash is measured.
fn build_sized() -> Result<(), Stop> {
    let build = cross::compiler(&[sizes::TARGET])?.build(&[sizes::TARGET]);
    let build =
        build.words("--release --manifest-path tests/firmware/Cargo.toml --features sizes --target-dir");
    sizes::programs().fold(build.args([IMAGES]), |build, name| build.args(["--bin", name])).run()
}

/// Targets without a float unit, where every float would be a call.
const SOFT: [&str; 3] = ["thumbv6m-none-eabi", "thumbv7m-none-eabi", "riscv32imac-unknown-none-elf"];

/// The program that reads a model of integers and classifies holds no routine for floats.
fn without_floats() -> Result<(), Stop> {
    for target in SOFT {
        let image = root().join(IMAGES).join(target).join("release/integers");
        let names = elf::symbols(&read(&image)?)
            .ok_or_else(|| Stop::Failed(format!("{}: no symbols", image.display())))?;
        if let Some(name) = names.iter().find(|name| elf::is_soft_float(name)) {
            return Err(Stop::Failed(format!("{target}: predicting by integers calls {name}")));
        }
    }
    Ok(())
}

/// Each target once.
fn targets() -> Vec<&'static str> {
    let mut targets: Vec<_> = BOARDS.iter().map(|board| board.target).collect();
    targets.dedup();
    targets
}

pub(crate) fn build_plugin() -> Result<PathBuf, Stop> {
    let plugin = root().join(WORK).join("insncount.so");
    fs::create_dir_all(root().join(WORK)).map_err(|error| Stop::Failed(format!("{WORK}: {error}")))?;
    Cmd::new("cc")
        .words("-O2 -Wall -Wextra -Werror -fPIC -shared -fvisibility=hidden tests/plugin/insncount.c -o")
        .args([&plugin])
        .run()?;
    Ok(plugin)
}

/// All images, one after the other.
fn emulate(board: &Board, plugin: &Path) -> Result<Run, Stop> {
    let first = emulate_one(board, "tamis-firmware", plugin)?;
    let both = first.and(emulate_one(board, "second", plugin)?);
    Ok(both.and(emulate_one(board, "third", plugin)?))
}

fn emulate_one(board: &Board, program: &str, plugin: &Path) -> Result<Run, Stop> {
    let image = root().join(IMAGES).join(board.target).join("release").join(program);
    let ran = start(board, &image, program, plugin, &[])?;
    let flash = flash(&image)?;
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
        let image = root().join(IMAGES).join(board.target).join("release").join(program);
        let ran = start(board, &image, program, plugin, &[])?;
        ran.ended?;
        let differ = ran.log.lines().zip(expected.lines()).position(|(got, expected)| got != expected);
        let (got, lines) = (ran.log.lines().count(), expected.lines().count());
        if let Some(at) = differ.or_else(|| (got != lines).then_some(got.min(lines))) {
            let line = |text: &str| text.lines().nth(at).unwrap_or("nothing").to_owned();
            let (got, expected) = (line(&ran.log), line(&expected));
            let at = at + 1;
            problems.push(format!("{}, {program}, line {at}: {got:?}, on the host {expected:?}", board.core));
        }
    }
    Ok(problems)
}

/// What a program left behind.
pub(crate) struct Ran {
    pub(crate) ended: Result<(), Stop>,
    /// What it printed.
    pub(crate) log: String,
    /// What the plugin counted.
    pub(crate) counts: String,
}

/// Runs an image on a board, with further arguments of the emulator.
pub(crate) fn start(
    board: &Board,
    image: &Path,
    name: &str,
    plugin: &Path,
    more: &[String],
) -> Result<Ran, Stop> {
    let work = root().join(WORK);
    let file = |ending| work.join(format!("{}-{name}.{ending}", board.core));
    let (log, counts) = (file("log"), file("counts"));
    // Left-over counts must not be taken for new ones.
    let _ = fs::remove_file(&counts);
    let ended = Cmd::new(board.emulator)
        .args(["-M", board.machine])
        .args(board.options)
        .args(more)
        .words("-display none -serial null -monitor none -semihosting-config enable=on,target=native -plugin")
        .args([format!("{},out={}", plugin.display(), counts.display())])
        .args([Path::new("-kernel"), image])
        .within(LIMIT)
        .log(&log)
        .run();
    let text =
        |path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    Ok(Ran { ended, log: text(&log), counts: text(&counts) })
}

/// Bytes of flash that an image takes.
pub(crate) fn flash(image: &Path) -> Result<u64, Stop> {
    elf::flash_bytes(&read(image)?).ok_or_else(|| Stop::Failed(format!("{}: no ELF", image.display())))
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Stop> {
    fs::read(path).map_err(|error| Stop::Failed(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// They share an image, and the image one memory layout.
    #[test]
    fn boards_of_one_target_stand_together_and_agree_on_memory() {
        for pair in BOARDS.windows(2).filter(|pair| pair[0].target == pair[1].target) {
            assert_eq!((pair[0].flash, pair[0].ram), (pair[1].flash, pair[1].ram), "{}", pair[1].core);
        }
        let targets = targets();
        for (i, target) in targets.iter().enumerate() {
            assert!(!targets[..i].contains(target), "boards of {target} are apart in the table");
        }
    }

    #[test]
    fn every_board_has_an_emulator_that_can_be_installed() {
        for board in BOARDS {
            assert!(EMULATORS.iter().any(|(program, _)| *program == board.emulator), "{}", board.core);
        }
    }
}
