//! The firmware of the deploy example: built, run under QEMU, and held to the lines that the host example foretells.

use crate::command::{Cmd, root};
use crate::part::{Context, Outcome, Stop};
use crate::{cross, elf, install};
use std::fs;
use std::path::Path;

const CRATE: &str = "examples/firmware/deploy";
const TARGET: &str = "thumbv7em-none-eabihf";
const EMULATOR: &str = "qemu-system-arm";
/// Most bytes of flash that it may take, its report on the console included.
const MOST_FLASH: u64 = 10_500;
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
    let image = folder.join("target").join(TARGET).join("release/tamis-deploy");
    let flash = fs::read(&image).ok().and_then(|image| elf::flash_bytes(&image)).unwrap_or(u64::MAX);
    if flash > MOST_FLASH {
        return Err(Stop::Failed(format!("{flash} bytes of flash, allowed are {MOST_FLASH}")));
    }
    let log = folder.join("target/printed.txt");
    Cmd::new(EMULATOR)
        .words("-M mps2-an386 -display none -serial null -monitor none")
        .words("-semihosting-config enable=on,target=native -kernel")
        .args([&image])
        .within(LIMIT)
        .log(&log)
        .run()?;
    compare(&read(&log)?, &read(&folder.join("model/expected.txt"))?).map_err(Stop::Failed)?;
    Ok(format!("the predictions on a Cortex-M4F are the host's, bit for bit; {flash} bytes of flash"))
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
    fn another_line_a_missing_one_and_one_too_many_are_found() {
        assert_eq!(compare("a\nb\n", "a\nb\n"), Ok(()));
        for (printed, words) in [("a\nc\n", "line 2"), ("a\n", "nothing"), ("a\nb\nc\n", "line 3")] {
            assert!(compare(printed, "a\nb\n").is_err_and(|error| error.contains(words)), "{printed}");
        }
        assert!(compare("", "").is_err());
    }
}
