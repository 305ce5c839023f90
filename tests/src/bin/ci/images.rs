//! Images of the firmware: how each is built, and where it lies.

use crate::boards::{BOARDS, Board};
use crate::command::{Cmd, root};
use crate::part::Stop;
use crate::{cross, elf, sizes};
use std::fs;
use std::path::{Path, PathBuf};

/// Where firmware images go; the target's name follows.
pub(crate) const IMAGES: &str = "tests/firmware/target";

/// Targets without a float unit, where every float would be a call.
pub(crate) const SOFT: [&str; 3] =
    ["thumbv6m-none-eabi", "thumbv7m-none-eabi", "riscv32imac-unknown-none-elf"];

/// All cases together outgrow the 256 KiB of the smallest board unless they are compiled for size.
const SMALL_TARGET: &str = "thumbv6m-none-eabi";
const SMALL: (&str, &str) = ("CARGO_TARGET_THUMBV6M_NONE_EABI_RUSTFLAGS", "-Copt-level=s");

/// Builds programs as users do: all targets but the smallest board's come so from
/// [`build_firmware`], into the same folders.
pub(crate) fn build_plain(features: &[&str], programs: &[&str]) -> Result<(), Stop> {
    let small = SMALL_TARGET;
    let build = cross::compiler(&targets())?.build(&[small]).words("--profile plain");
    named(build, features, programs).run()?;
    let others: Vec<_> = targets().into_iter().filter(|&target| target != small).collect();
    let build = cross::compiler(&targets())?.build(&others).words("--release");
    named(build, features, programs).run()
}

fn named(build: Cmd, features: &[&str], programs: &[&str]) -> Cmd {
    let build =
        build.words("--manifest-path tests/firmware/Cargo.toml --target-dir").args([IMAGES]);
    let build =
        if features.is_empty() { build } else { build.args(["--features", &features.join(",")]) };
    programs.iter().fold(build, |build, program| build.args(["--bin", program]))
}

/// Where a program lies that was built as users do.
pub(crate) fn plain_image(board: &Board, program: &str) -> PathBuf {
    let profile = if board.target == SMALL_TARGET { "plain" } else { "release" };
    root().join(IMAGES).join(board.target).join(profile).join(program)
}

pub(crate) fn build_firmware() -> Result<(), Stop> {
    let targets = targets();
    let build = cross::compiler(&targets)?.build(&targets);
    let build = build.env(SMALL.0, SMALL.1);
    build
        .words("--release --manifest-path tests/firmware/Cargo.toml --target-dir")
        .args([IMAGES])
        .run()
}

/// The programs whose flash is measured.
pub(crate) fn build_sized() -> Result<(), Stop> {
    let build = cross::compiler(&[sizes::TARGET])?.build(&[sizes::TARGET]);
    let build = build
        .words("--release --manifest-path tests/firmware/Cargo.toml --features sizes --target-dir");
    sizes::programs().fold(build.args([IMAGES]), |build, name| build.args(["--bin", name])).run()
}

/// Where a program of a target lies.
pub(crate) fn image(target: &str, program: &str) -> PathBuf {
    root().join(IMAGES).join(target).join("release").join(program)
}

/// Each target once.
fn targets() -> Vec<&'static str> {
    let mut targets: Vec<_> = BOARDS.iter().map(|board| board.target).collect();
    targets.dedup();
    targets
}

/// Bytes of flash that an image takes.
pub(crate) fn flash(image: &Path) -> Result<u64, Stop> {
    elf::flash_bytes(&read(image)?)
        .ok_or_else(|| Stop::Failed(format!("{}: no ELF", image.display())))
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Stop> {
    fs::read(path).map_err(|error| Stop::Failed(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// They share an image, and the image one memory layout.
    #[test]
    fn boards_of_one_target_agree_on_memory() {
        for pair in BOARDS.windows(2).filter(|pair| pair[0].target == pair[1].target) {
            assert_eq!(
                (pair[0].flash, pair[0].ram),
                (pair[1].flash, pair[1].ram),
                "{}",
                pair[1].core
            );
        }
        let targets = targets();
        for (i, target) in targets.iter().enumerate() {
            assert!(!targets[..i].contains(target), "boards of {target} are apart in the table");
        }
    }
}
