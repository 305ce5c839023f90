//! The firmware of the deploy example: built, run under QEMU, and held to the lines that the host example foretells, and to the
//! flash and RAM that an estimate says.

use crate::command::{Cmd, root};
use crate::costs::{MOST_BYTES, off};
use crate::part::{Context, Outcome, Stop};
use crate::{cross, elf, install, qemu};
use std::fs;
use std::path::Path;
use tamis::estimate::Estimate;
use tamis::price::Core;
use tamis::wire::{Aligned, View};

const CRATE: &str = "examples/firmware/deploy";
const TARGET: &str = "thumbv7em-none-eabihf";
const PROGRAM: &str = "tamis-deploy";
/// First address of RAM in `memory.x`.
const RAM: u32 = 0x2000_0000;
const EMULATOR: &str = "qemu-system-arm";
/// Seconds after which the emulator is stopped.
const LIMIT: u64 = 60;

pub(crate) fn run(_: &Context) -> Outcome {
    install::programs(&[(EMULATOR, EMULATOR)])?;
    cross::compiler(&[TARGET])?
        .build(&[TARGET])
        .words("--release --manifest-path")
        .args([format!("{CRATE}/Cargo.toml")])
        .words("--target-dir")
        .args([format!("{CRATE}/target")])
        .run()?;
    let folder = root().join(CRATE);
    let image = |name| folder.join("target").join(TARGET).join("release").join(name);
    let (log, counts) = (folder.join("target/printed.txt"), folder.join("target/counts.txt"));
    let elf = qemu::read(&image(PROGRAM))?;
    let [data, stack] = ["__sheap", "_stack_start"].map(|name| {
        elf::address(&elf, name).ok_or_else(|| Stop::Failed(format!("{PROGRAM}: no symbol {name}")))
    });
    let (data, stack) = (data?, stack?);
    let plugin = qemu::build_plugin()?;
    Cmd::new(EMULATOR)
        .words("-M mps2-an386 -display none -serial null -monitor none")
        .words("-semihosting-config enable=on,target=native -plugin")
        .args([format!("{},out={},floor={data:#x}", plugin.display(), counts.display())])
        .words("-kernel")
        .args([image(PROGRAM)])
        .within(LIMIT)
        .log(&log)
        .run()?;
    compare(&read(&log)?, &read(&folder.join("model/expected.txt"))?).map_err(Stop::Failed)?;
    let lowest = lowest(&read(&counts)?).ok_or_else(|| Stop::Failed("no stack was measured".into()))?;
    let measured = Memory {
        flash: qemu::flash(&image(PROGRAM))?,
        rest: qemu::flash(&image("rest"))?,
        data: u64::from(data - RAM),
        stack: u64::from(stack).saturating_sub(lowest),
    };
    let estimated = judge(&measured, &estimate(&folder)?).map_err(Stop::Failed)?;
    Ok(format!("the predictions on a Cortex-M4F are the host's, bit for bit; {estimated}"))
}

/// What the program took.
#[derive(Debug, Clone, Copy)]
struct Memory {
    /// Sections of the image.
    flash: u64,
    /// Those of the program without the model.
    rest: u64,
    /// Static data.
    data: u64,
    stack: u64,
}

/// Of the model on the part.
fn estimate(folder: &Path) -> Result<Estimate, Stop> {
    let bytes = qemu::read(&folder.join("model/digits.tamis"))?;
    let mut buffer = Box::new(Aligned([0; 4096]));
    let place = buffer.0.get_mut(..bytes.len());
    place.ok_or_else(|| Stop::Failed("the model has grown".into()))?.copy_from_slice(&bytes);
    let view = View::parse(&buffer.0[..bytes.len()]);
    let view = view.map_err(|error| Stop::Failed(format!("digits.tamis: {error}")))?;
    Ok(Estimate::of_floats(&view, Core::CortexM4F))
}

/// Flash is that of the rest and of the model; RAM that of the model alone, since the rest is done where the stack is deepest.
fn judge(measured: &Memory, estimate: &Estimate) -> Result<String, String> {
    let flash = measured.rest + estimate.flash_bytes() as u64;
    let ram = (measured.data + measured.stack, estimate.ram_bytes() as u64);
    let mut lines = Vec::new();
    for (what, measured, estimated) in [
        ("flash", measured.flash, flash),
        ("flash of the model", measured.flash - measured.rest, estimate.flash_bytes() as u64),
        ("RAM", ram.0, ram.1),
    ] {
        let error = off(estimated, measured);
        let line = format!("{what}: {estimated} bytes estimated, {measured} taken: {:+.1} %", 100.0 * error);
        if error.abs() > MOST_BYTES {
            return Err(line);
        }
        lines.push(line);
    }
    Ok(lines.join("; "))
}

/// The lowest address that the stack reached.
fn lowest(counts: &str) -> Option<u64> {
    counts.lines().find_map(|line| line.strip_prefix("lowest=")?.parse().ok())
}

fn read(path: &Path) -> Result<String, Stop> {
    fs::read_to_string(path).map_err(|error| Stop::Failed(format!("{}: {error}", path.display())))
}

/// Both texts have the same lines, and some.
fn compare(printed: &str, expected: &str) -> Result<(), String> {
    if expected.lines().next().is_none() {
        return Err(format!("{CRATE}/model/expected.txt is empty"));
    }
    let longer = printed.lines().count().max(expected.lines().count());
    for at in 0..longer {
        let [got, wanted] = [printed, expected].map(|text| text.lines().nth(at).unwrap_or("nothing"));
        if got != wanted {
            return Err(format!("line {}: the part printed {got:?}, the host {wanted:?}", at + 1));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flash_and_ram_are_held_to_a_twentieth() {
        let estimate =
            Estimate { model_bytes: 300, code_bytes: 9700, stack_bytes: 2000, ..Estimate::default() };
        let fine = Memory { flash: 15_000, rest: 5000, data: 8, stack: 2050 };
        assert!(judge(&fine, &estimate).is_ok());
        assert!(
            judge(&Memory { flash: 16_000, ..fine }, &estimate).is_err_and(|error| error.contains("flash"))
        );
        assert!(judge(&Memory { stack: 2200, ..fine }, &estimate).is_err_and(|error| error.contains("RAM")));
        assert_eq!(lowest("insns=1\nlowest=512\n"), Some(512));
    }

    #[test]
    fn another_line_a_missing_one_and_one_too_many_are_found() {
        assert_eq!(compare("a\nb\n", "a\nb\n"), Ok(()));
        for (printed, words) in [("a\nc\n", "line 2"), ("a\n", "nothing"), ("a\nb\nc\n", "line 3")] {
            assert!(compare(printed, "a\nb\n").is_err_and(|error| error.contains(words)), "{printed}");
        }
        assert!(compare("", "").is_err());
    }
}
