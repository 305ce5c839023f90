//! A program on an emulated board: what it printed, and what the plugin counted.
//!
//! A program is stopped by the instructions that it runs, not by the clock: a busy machine makes an
//! emulator slow, but not its program long.

use crate::boards::{BOARDS, Board};
use crate::command::{Cmd, root};
use crate::install;
use crate::part::Stop;
use std::fs;
use std::path::{Path, PathBuf};

/// Emulators and the Debian packages that have them.
pub(crate) const EMULATORS: [(&str, &str); 2] =
    [("qemu-system-arm", "qemu-system-arm"), ("qemu-system-riscv32", "qemu-system-misc")];
/// Built plugin and logs.
pub(crate) const WORK: &str = "target/qemu";
/// Most instructions of a program, four times what the longest runs (10.6e9 on the Cortex-M0); an
/// idle machine emulates them in minutes.
const MOST: u64 = 40_000_000_000;
/// Seconds after which an emulator is stopped that never came to start its program.
const NEVER: u64 = 3600;

/// A program, and how it is run.
#[derive(Debug)]
pub(crate) struct Emulation<'a> {
    pub(crate) board: &'a Board,
    pub(crate) image: &'a Path,
    /// Of the files with what it printed and what was counted, below [`WORK`].
    pub(crate) name: &'a str,
    pub(crate) plugin: &'a Path,
    /// Where static data ends: the lowest address that the stack reaches is looked for above.
    pub(crate) floor: Option<u32>,
    /// Further arguments of the emulator.
    pub(crate) more: &'a [String],
    /// One of very many: it is not printed.
    pub(crate) quiet: bool,
    pub(crate) limits: Limits,
}

/// When a program is stopped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Instructions.
    most: u64,
    /// Naps of 0.1 s in which it runs no instruction.
    naps: u64,
}

impl Limits {
    pub(crate) const USUAL: Self = Self { most: MOST, naps: 600 };
}

/// What a program left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) ended: Result<(), Stop>,
    /// What it printed.
    pub(crate) log: String,
    /// What the plugin counted: a line for each region.
    pub(crate) counts: String,
    /// The lowest address that the stack reached.
    pub(crate) lowest: Option<u64>,
}

impl Emulation<'_> {
    pub(crate) fn run(&self) -> Ran {
        let work = root().join(WORK);
        let file = |ending| work.join(format!("{}-{}.{ending}", self.board.core, self.name));
        let (log, counts) = (file("log"), file("counts"));
        // Left-over counts must not be taken for new ones.
        let _ = fs::remove_file(&counts);
        let Limits { most, naps } = self.limits;
        let mut plugin =
            format!("{},out={},most={most},naps={naps}", self.plugin.display(), counts.display());
        if let Some(floor) = self.floor {
            plugin += &format!(",floor={floor:#x}");
        }
        let command = Cmd::new(install::program(self.board.emulator))
            .args(["-M", self.board.machine])
            .args(self.board.options)
            .args(self.more)
            .words("-display none -serial null -monitor none")
            .words("-semihosting-config enable=on,target=native -plugin")
            .args([plugin])
            .args([Path::new("-kernel"), self.image])
            .within(NEVER)
            .log(&log);
        let ended = if self.quiet { command.quietly() } else { command }.run();
        let text = |path| {
            fs::read(path)
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                .unwrap_or_default()
        };
        Ran::of(ended, text(&log), &text(&counts))
    }
}

impl Ran {
    fn of(mut ended: Result<(), Stop>, log: String, plugin: &str) -> Self {
        let (mut counts, mut lowest) = (String::new(), None);
        for line in plugin.lines() {
            match line.split_once('=') {
                Some(("stopped", why)) => ended = Err(Stop::Failed(format!("stopped: {why}"))),
                Some(("lowest", address)) => lowest = address.parse().ok(),
                Some(("total", _)) => {}
                _ => counts.extend([line, "\n"]),
            }
        }
        Self { ended, log, counts, lowest }
    }
}

pub(crate) fn build_plugin() -> Result<PathBuf, Stop> {
    let plugin = root().join(WORK).join("insncount.so");
    fs::create_dir_all(root().join(WORK))
        .map_err(|error| Stop::Failed(format!("{WORK}: {error}")))?;
    Cmd::new("cc")
        .words("-O2 -pthread -Wall -Wextra -Werror -fPIC -shared -fvisibility=hidden tests/plugin/insncount.c -o")
        .args([&plugin])
        .run()?;
    Ok(plugin)
}

/// That a program without an end is stopped, whether it runs on or sleeps.
pub(crate) fn endless(plugin: &Path) -> Result<Vec<String>, Stop> {
    // Where the stack starts, where the program does, and the program.
    const START: [u8; 8] = [0, 0x10, 0, 0x20, 9, 0, 0, 0];
    const RUNS_ON: [u8; 4] = [0xfe, 0xe7, 0xfe, 0xe7]; // b .
    const SLEEPS: [u8; 4] = [0x30, 0xbf, 0xfd, 0xe7]; // wfi; b .-2
    let board = BOARDS.iter().find(|board| board.core == "Cortex-M4F");
    let board = board.ok_or_else(|| Stop::Failed("no Cortex-M4F".into()))?;
    let mut problems = Vec::new();
    for (name, program, words) in
        [("runs-on", RUNS_ON, "more instructions"), ("sleeps", SLEEPS, "what never comes")]
    {
        let image = root().join(WORK).join(format!("{name}.bin"));
        fs::write(&image, [&START[..], &program].concat())
            .map_err(|error| Stop::Failed(format!("{}: {error}", image.display())))?;
        let limits = Limits { most: 1_000_000, naps: 5 };
        let (floor, more, quiet) = (None, &[][..], false);
        let ran =
            Emulation { board, image: &image, name, plugin, floor, more, quiet, limits }.run();
        match ran.ended {
            Err(Stop::Failed(why)) if why.contains(words) => {}
            other => problems.push(format!("a program that {name} was not stopped: {other:?}")),
        }
    }
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_plugin_says_is_told_apart() {
        let text = "insns=1 loads=2 stores=3\nunbalanced markers\ntotal=99\nlowest=512\n";
        let ran = Ran::of(Ok(()), "done\n".into(), text);
        assert_eq!((ran.ended, ran.lowest), (Ok(()), Some(512)));
        assert_eq!(ran.counts, "insns=1 loads=2 stores=3\nunbalanced markers\n");
        let status = Stop::Failed("qemu-system-arm: exit status: 3".into());
        let ran =
            Ran::of(Err(status), String::new(), "insns=1 loads=2 stores=3\nstopped=it waits\n");
        assert_eq!(ran.ended, Err(Stop::Failed("stopped: it waits".into())));
    }

    #[test]
    fn every_board_has_an_installable_emulator() {
        for board in BOARDS {
            assert!(
                EMULATORS.iter().any(|(program, _)| *program == board.emulator),
                "{}",
                board.core
            );
        }
    }
}
