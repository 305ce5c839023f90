//! The example firmware of four chips: linted and built for each with its weights in the program
//! and in a flash chip, and held to what flash and RAM that may take. `cargo ci qemu` runs what
//! they share, as the case `monitor`.

use crate::command::{Cmd, each, root};
use crate::part::{Context, Outcome, Report, Skipped, Stop};
use crate::{cross, elf, images, install};

const WORKSPACE: &str = "examples/firmware/chips/Cargo.toml";
/// A folder for each target, so that chips are built at the same time.
const TARGETS: &str = "examples/firmware/chips/target";
/// The compiler with clippy's lints.
const CLIPPY: &str = "clippy-driver";
/// The feature that leaves the weights in a flash chip.
const STREAMED: &str = "spi-flash";

/// A chip, and the most bytes that its programs may take.
#[derive(Debug)]
struct Chip {
    package: &'static str,
    target: &'static str,
    /// Of flash, with the weights in the program and in a flash chip.
    flash: [u64; 2],
    /// Of RAM, without the stack.
    ram: u64,
}

/// To add a chip, add an entry. The one of most drivers is first, since the others are built beside it.
const CHIPS: &[Chip] = &[
    Chip {
        package: "tamis-esp32c3",
        target: "riscv32imc-unknown-none-elf",
        flash: [50_000, 68_000],
        ram: 7168,
    },
    Chip {
        package: "tamis-rp2040",
        target: "thumbv6m-none-eabi",
        flash: [8_300, 21_400],
        ram: 1_152,
    },
    Chip {
        package: "tamis-nrf52840",
        target: "thumbv7em-none-eabihf",
        flash: [10_300, 23_100],
        ram: 1_152,
    },
    Chip {
        package: "tamis-stm32f4",
        target: "thumbv7em-none-eabihf",
        flash: [14_500, 27_900],
        ram: 1_152,
    },
];

/// Sections that lie in RAM: data, and what the ESP32-C3 runs from there.
const IN_RAM: [&str; 6] = [".data", ".bss", ".uninit", ".noinit", ".trap", ".rwtext"];

pub(crate) fn run(_: &Context) -> Outcome {
    let (here, absent): (Vec<&Chip>, Vec<&Chip>) =
        CHIPS.iter().partition(|chip| cross::rustup(&[chip.target]));
    if here.is_empty() {
        // Drivers want the toolchain's own targets: Debian's compiler is older than some of them.
        return Err(Stop::Excused("rustup cannot get the targets of the chips".into()));
    }
    if install::find(CLIPPY).is_none() {
        return Err(Stop::Missing("no clippy: rustup component add clippy".into()));
    }
    let manifest = ["--manifest-path", WORKSPACE];
    let fetch = Cmd::new("cargo").words("fetch --locked").args(manifest).run();
    fetch
        .map_err(|_| Stop::Excused("the crates of the chips' drivers cannot be fetched".into()))?;
    println!("{:<16} {:<10} {:>7} {:>7}", "program", "weights", "flash", "RAM");
    let mut problems = Vec::new();
    for found in each(&here, |chip| check(chip)) {
        problems.extend(found?);
    }
    if let [first, ..] = &problems[..] {
        problems.iter().for_each(|problem| println!("{problem}"));
        return Err(Stop::Failed(first.clone()));
    }
    let note = format!("{} of {} chips within their flash and RAM", here.len(), CHIPS.len());
    let skipped = absent.into_iter().map(|chip| Skipped {
        count: 1,
        why: format!("{}: no target {}", chip.package, chip.target),
        installable: false,
    });
    Ok(Report { note, skipped: skipped.collect() })
}

/// Lints and builds both programs of a chip; in what they are too large.
fn check(chip: &Chip) -> Result<Vec<String>, Stop> {
    let programs = [("", "embedded", chip.flash[0]), (STREAMED, "streamed", chip.flash[1])];
    let mut problems = Vec::new();
    for (features, place, most) in programs {
        lint(chip, features)?;
        let sizes = build(chip, features)?;
        println!("{:<16} {place:<10} {:>7} {:>7}", chip.package, sizes[0], sizes[1]);
        let program = format!("{}, {place}", chip.package);
        problems.extend(too_large(&program, sizes, [most, chip.ram]));
    }
    Ok(problems)
}

/// Lints a program, with warnings denied.
///
/// `cargo clippy` would check all drivers once more, beside building them. Here clippy compiles the
/// program alone, against the drivers that [`build`] takes too, which costs a second. It leaves out
/// optimisations, so its image is not the one to measure.
fn lint(chip: &Chip, features: &str) -> Result<(), Stop> {
    cargo("rustc", chip, features)
        .env("RUSTC_WORKSPACE_WRAPPER", CLIPPY)
        .args(["--bin", chip.package])
        .words("-- -D warnings")
        .run()
}

/// Builds a program; its bytes in flash and in RAM.
fn build(chip: &Chip, features: &str) -> Result<[u64; 2], Stop> {
    cargo("build", chip, features).run()?;
    let image = root().join(targets(chip)).join(chip.target).join("release").join(chip.package);
    let bytes = images::read(&image)?;
    let ram = IN_RAM.iter().filter_map(|name| elf::section_bytes(&bytes, name)).sum();
    Ok([images::flash(&image)?, ram])
}

fn targets(chip: &Chip) -> String {
    format!("{TARGETS}/{}", chip.target)
}

fn cargo(verb: &str, chip: &Chip, features: &str) -> Cmd {
    Cmd::new("cargo")
        .words(verb)
        .words("--locked --release --manifest-path")
        .args([WORKSPACE, "--target-dir", &targets(chip), "--target", chip.target])
        .args(["--package", chip.package, "--features", features])
        // Without tables of lines, which do not go into an image.
        .env("CARGO_PROFILE_RELEASE_DEBUG", "false")
        // Cargo reads the folder's own settings only from within.
        .env("DEFMT_LOG", "info")
}

fn too_large(program: &str, taken: [u64; 2], most: [u64; 2]) -> Vec<String> {
    let each = ["flash", "RAM"].into_iter().zip(taken).zip(most);
    let above = each.filter(|((_, taken), most)| taken > most);
    above
        .map(|((what, taken), most)| {
            format!("{program}: {taken} bytes of {what}, allowed are {most}")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flash_and_ram_have_bounds_of_their_own() {
        assert!(too_large("x", [10, 5], [10, 5]).is_empty());
        assert_eq!(too_large("x", [11, 5], [10, 5]), ["x: 11 bytes of flash, allowed are 10"]);
        assert_eq!(too_large("x", [10, 6], [10, 5]), ["x: 6 bytes of RAM, allowed are 5"]);
    }

    #[test]
    fn every_chip_is_a_member_of_its_workspace() {
        let text = std::fs::read_to_string(root().join(WORKSPACE)).unwrap();
        for chip in CHIPS {
            let folder = chip.package.strip_prefix("tamis-").unwrap();
            assert!(text.contains(&format!("\"{folder}\"")), "{folder}");
        }
    }
}
