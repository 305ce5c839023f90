//! The firmware of the deploy example: built, run under QEMU, and held to the lines that the host
//! example foretells, and to the flash and RAM that an estimate says.

use crate::boards::BOARDS;
use crate::command::root;
use crate::cost::{Core, Estimate, Way};
use crate::costs::{MOST_BYTES, off};
use crate::emulator::{EMULATORS, Emulation, Limits, build_plugin};
use crate::part::{Context, Outcome, Stop};
use crate::{cross, elf, images, install};
use std::fs;
use std::path::Path;
use tamis::store::wire::{Aligned, View};

const CRATE: &str = "examples/firmware/deploy";
const TARGET: &str = "thumbv7em-none-eabihf";
const PROGRAM: &str = "tamis-deploy";
/// The board whose memory is that of `memory.x`.
const CORE: &str = "Cortex-M4F";
/// Most bytes of flash that it may take, its report on the console included.
const MOST_FLASH: u64 = 10_500;
/// Bytes of stack that the program `under` takes in place of a prediction.
const ROOM: u64 = 4096;

pub(crate) fn run(_: &Context) -> Outcome {
    install::programs(&EMULATORS[..1])?;
    cross::compiler(&[TARGET])?
        .build(&[TARGET])
        .words("--release --manifest-path")
        .args([format!("{CRATE}/Cargo.toml")])
        .words("--target-dir")
        .args([format!("{CRATE}/target")])
        .run()?;
    let folder = root().join(CRATE);
    let image = |name| folder.join("target").join(TARGET).join("release").join(name);
    let plugin = build_plugin()?;
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
            return Err(Stop::Failed(format!(
                "{} bytes of flash, allowed are {MOST_FLASH}",
                with[0]
            )));
        }
    }
    let [embedded, file] = [0, 1].map(|at| lines.get(at).cloned().unwrap_or_default());
    Ok(format!(
        "the predictions on a Cortex-M4F are the host's, bit for bit; embedded: {embedded}; as a file: {file}"
    )
    .into())
}

/// How a program has the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    /// The compiler has read it.
    Embedded,
    /// It reads the file when it starts.
    File,
}

/// Bytes of flash and RAM of the program with the model, without it, and with [`ROOM`] in place of
/// the prediction.
#[derive(Debug, Clone, Copy)]
struct Memory {
    with: [u64; 2],
    rest: [u64; 2],
    under: [u64; 2],
}

/// What a program prints, its sections in flash, and its static data with the deepest stack.
fn measure(image: &Path, plugin: &Path) -> Result<(String, [u64; 2]), Stop> {
    let elf = images::read(image)?;
    let symbol = |name| {
        let address = elf::address(&elf, name);
        address.ok_or_else(|| Stop::Failed(format!("{}: no symbol {name}", image.display())))
    };
    let (data, top) = (symbol("__sheap")?, symbol("_stack_start")?);
    let board = BOARDS.iter().find(|board| board.core == CORE);
    let board = board.ok_or_else(|| Stop::Failed(format!("no board {CORE}")))?;
    let (name, more, quiet, limits) = ("deploy", &[][..], false, Limits::USUAL);
    let ran =
        Emulation { board, image, name, plugin, floor: Some(data), more, quiet, limits }.run();
    ran.ended?;
    let lowest = ran.lowest.ok_or_else(|| Stop::Failed("no stack was measured".into()))?;
    let ram = u64::from(data - board.ram.origin) + u64::from(top).saturating_sub(lowest);
    Ok((ran.log, [images::flash(image)?, ram]))
}

/// Of the model on the device.
fn estimate(folder: &Path) -> Result<Estimate, Stop> {
    let bytes = images::read(&folder.join("model/digits.tamis"))?;
    let mut buffer = Box::new(Aligned([0; 4096]));
    let place = buffer.0.get_mut(..bytes.len());
    place.ok_or_else(|| Stop::Failed("the model has grown".into()))?.copy_from_slice(&bytes);
    let view = View::parse(&buffer.0[..bytes.len()]);
    let view = view.map_err(|error| Stop::Failed(format!("digits.tamis: {error}")))?;
    Ok(Estimate::of_floats(&view, Core::CortexM4F))
}

/// Estimates are of the model alone, and the rest of the program comes on top: in flash all of it,
/// in RAM what lies under the prediction, or all of it where printing takes more. An embedded model
/// is predicted with from `main` itself.
fn judge(measured: &Memory, estimate: &Estimate, held: Held) -> Result<String, String> {
    let Memory { with, rest, under } = *measured;
    let (way, code, below) = match held {
        Held::Embedded => (Way::Embedded, rest[0], 0),
        Held::File => (Way::File, under[0], under[1].saturating_sub(ROOM)),
    };
    let memory = estimate.ways[way as usize].unwrap_or_default();
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
        let [got, wanted] =
            [printed, expected].map(|text| text.lines().nth(at).unwrap_or("nothing"));
        if got != wanted {
            return Err(format!(
                "line {}: the device printed {got:?}, the host {wanted:?}",
                at + 1
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost;

    #[test]
    fn flash_and_ram_are_checked_for_both_deployments() {
        let way = |model_bytes, code_bytes, stack_bytes| {
            let (scratch_bytes, output_bytes) = (0, 0);
            Some(cost::Memory {
                is_bound: false,
                model_bytes,
                code_bytes,
                scratch_bytes,
                output_bytes,
                stack_bytes,
            })
        };
        let ways = [way(300, 9700, 2000), way(200, 800, 100), None, None, None];
        let estimate = Estimate { ways, ..Estimate::default() };
        let (rest, under) = ([5000, 300], [6000, 250 + ROOM]);
        let wrong = |with, held| judge(&Memory { with, rest, under }, &estimate, held).unwrap_err();
        assert!(
            judge(&Memory { with: [16_000, 2250], rest, under }, &estimate, Held::File).is_ok()
        );
        assert!(wrong([17_500, 2250], Held::File).contains("flash"));
        assert!(wrong([14_500, 2250], Held::File).contains("flash"));
        assert!(wrong([16_000, 2500], Held::File).contains("RAM"));
        assert!(wrong([16_000, 2000], Held::File).contains("RAM"));
        // Embedded, the prediction may hide behind what is deeper.
        assert!(
            judge(&Memory { with: [6000, 310], rest, under }, &estimate, Held::Embedded).is_ok()
        );
        assert!(wrong([6000, 500], Held::Embedded).contains("RAM"));
        assert!(wrong([6600, 310], Held::Embedded).contains("flash"));
    }

    #[test]
    fn changed_missing_and_extra_lines_are_detected() {
        assert_eq!(compare("a\nb\n", "a\nb\n"), Ok(()));
        for (printed, words) in [("a\nc\n", "line 2"), ("a\n", "nothing"), ("a\nb\nc\n", "line 3")]
        {
            assert!(
                compare(printed, "a\nb\n").is_err_and(|error| error.contains(words)),
                "{printed}"
            );
        }
        assert!(compare("", "").is_err());
    }
}
