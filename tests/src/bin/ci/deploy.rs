//! The firmware of the deploy example: built, run under QEMU, and held to the lines that the host example foretells, and to the
//! flash and RAM that an estimate says.

use crate::command::{Cmd, root};
use crate::costs::{MOST_BYTES, off};
use crate::part::{Context, Outcome, Stop};
use crate::{cross, elf, install, qemu};
use std::fs;
use std::path::Path;
use tamis::estimate::Estimate;
use tamis::price::{Core, Way};
use tamis::wire::{Aligned, View};

const CRATE: &str = "examples/firmware/deploy";
const TARGET: &str = "thumbv7em-none-eabihf";
const PROGRAM: &str = "tamis-deploy";
/// First address of RAM in `memory.x`.
const RAM: u32 = 0x2000_0000;
const EMULATOR: &str = "qemu-system-arm";
/// Most bytes of flash that it may take, its report on the console included.
const MOST_FLASH: u64 = 10_500;
/// Bytes of stack that the program `under` takes in place of a prediction.
const ROOM: u64 = 4096;
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
    let plugin = qemu::build_plugin()?;
    let expected = read(&folder.join("model/expected.txt"))?;
    let (_, rest) = measure(&image("rest"), &plugin)?;
    let (_, under) = measure(&image("under"), &plugin)?;
    let estimate = estimate(&folder)?;
    let mut lines = Vec::new();
    for (program, held) in [(PROGRAM, Held::Embedded), ("file", Held::File)] {
        let (printed, with) = measure(&image(program), &plugin)?;
        compare(&printed, &expected).map_err(Stop::Failed)?;
        let judged = judge(&Memory { with, rest, under }, &estimate, held);
        lines.push(judged.map_err(|why| Stop::Failed(format!("{program}: {why}")))?);
        if held == Held::Embedded && with[0] > MOST_FLASH {
            return Err(Stop::Failed(format!("{} bytes of flash, allowed are {MOST_FLASH}", with[0])));
        }
    }
    let [embedded, file] = [0, 1].map(|at| lines.get(at).cloned().unwrap_or_default());
    Ok(format!(
        "the predictions on a Cortex-M4F are the host's, bit for bit; embedded: {embedded}; as a file: {file}"
    ))
}

/// How a program has the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    /// The compiler has read it.
    Embedded,
    /// It reads the file when it starts.
    File,
}

/// Bytes of flash and RAM of the program with the model, without it, and with [`ROOM`] in place of the prediction.
#[derive(Debug, Clone, Copy)]
struct Memory {
    with: [u64; 2],
    rest: [u64; 2],
    under: [u64; 2],
}

/// What a program prints, its sections in flash, and its static data with the deepest stack.
fn measure(image: &Path, plugin: &Path) -> Result<(String, [u64; 2]), Stop> {
    let (log, counts) = (image.with_extension("log"), image.with_extension("counts"));
    let elf = qemu::read(image)?;
    let symbol = |name| {
        let address = elf::address(&elf, name);
        address.ok_or_else(|| Stop::Failed(format!("{}: no symbol {name}", image.display())))
    };
    let (data, top) = (symbol("__sheap")?, symbol("_stack_start")?);
    Cmd::new(EMULATOR)
        .words("-M mps2-an386 -display none -serial null -monitor none")
        .words("-semihosting-config enable=on,target=native -plugin")
        .args([format!("{},out={},floor={data:#x}", plugin.display(), counts.display())])
        .args([Path::new("-kernel"), image])
        .within(LIMIT)
        .log(&log)
        .run()?;
    let lowest = lowest(&read(&counts)?).ok_or_else(|| Stop::Failed("no stack was measured".into()))?;
    let ram = u64::from(data - RAM) + u64::from(top).saturating_sub(lowest);
    Ok((read(&log)?, [qemu::flash(image)?, ram]))
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

/// Estimates are of the model alone, and the rest of the program comes on top: in flash all of it, in RAM what lies under the
/// prediction, or all of it where printing takes more. An embedded model is predicted with from `main` itself.
fn judge(measured: &Memory, estimate: &Estimate, held: Held) -> Result<String, String> {
    let Memory { with, rest, under } = *measured;
    let (way, code, below) = match held {
        Held::Embedded => (Way::Embedded, rest[0], 0),
        Held::File => (Way::File, under[0], under[1].saturating_sub(ROOM)),
    };
    let memory = estimate.memory(way).unwrap_or_default();
    let [flash, ram] = [memory.flash_bytes(), memory.ram_bytes()].map(|bytes| bytes as u64);
    let wholes = [("flash", code + flash, flash), ("RAM", rest[1].max(below + ram), ram)];
    let mut lines = Vec::new();
    for ((what, estimated, model), with) in wholes.into_iter().zip(with) {
        let error = off(estimated, with);
        let line = format!(
            "{what}: {estimated} bytes estimated, {model} of them for the model, {with} taken: {:+.1} %",
            100.0 * error
        );
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
    use tamis::estimate;

    #[test]
    fn flash_and_ram_of_both_ways_are_held_to_a_twentieth() {
        let way = |model_bytes, code_bytes, stack_bytes| {
            let (scratch_bytes, output_bytes) = (0, 0);
            Some(estimate::Memory { model_bytes, code_bytes, scratch_bytes, output_bytes, stack_bytes })
        };
        let ways = [way(300, 9700, 2000), way(200, 800, 100), None, None, None];
        let estimate = Estimate { ways, ..Estimate::default() };
        let (rest, under) = ([5000, 300], [6000, 250 + ROOM]);
        let wrong = |with, held| judge(&Memory { with, rest, under }, &estimate, held).unwrap_err();
        assert!(judge(&Memory { with: [16_000, 2250], rest, under }, &estimate, Held::File).is_ok());
        assert!(wrong([17_000, 2250], Held::File).contains("flash"));
        assert!(wrong([15_000, 2250], Held::File).contains("flash"));
        assert!(wrong([16_000, 2400], Held::File).contains("RAM"));
        assert!(wrong([16_000, 2100], Held::File).contains("RAM"));
        // Embedded, the prediction may hide behind what is deeper.
        assert!(judge(&Memory { with: [6000, 310], rest, under }, &estimate, Held::Embedded).is_ok());
        assert!(wrong([6000, 500], Held::Embedded).contains("RAM"));
        assert!(wrong([6500, 310], Held::Embedded).contains("flash"));
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
