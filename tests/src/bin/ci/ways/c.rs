//! Programs of C.

use super::Program;
use crate::boards::Board;
use crate::command::{Cmd, root};
use crate::cost::{Core, Numbers};
use crate::install;
use crate::part::Stop;
use std::path::{Path, PathBuf};

/// Compilers and the Debian packages that have them.
const ARM: (&str, &str) = ("arm-none-eabi-gcc", "gcc-arm-none-eabi");
const RISCV: (&str, &str) = ("riscv64-unknown-elf-gcc", "gcc-riscv64-unknown-elf");

/// Those that some cores need.
pub(crate) fn compilers(cores: &[Core]) -> Vec<(&'static str, &'static str)> {
    let is_riscv = |core: &Core| *core == Core::Rv32imac;
    let mut compilers = Vec::new();
    compilers.extend(cores.iter().any(|core| !is_riscv(core)).then_some(ARM));
    compilers.extend(cores.iter().any(is_riscv).then_some(RISCV));
    compilers
}

/// `model.c` and `model.h` in a folder of the program's name.
pub(super) fn export(folder: &Path, program: &Program) -> Result<(), Stop> {
    let to = folder.join("models").join(&program.name);
    std::fs::create_dir_all(&to)
        .map_err(|error| Stop::Failed(format!("{}: {error}", to.display())))?;
    super::export(folder, program, "c", &to.join("model.c"), &[])
}

/// Builds the program of a board: its start-up code, one prediction, and the end.
pub(super) fn build(
    folder: &Path,
    board: &Board,
    program: Option<&Program>,
) -> Result<PathBuf, Stop> {
    let name = program.map_or("nothing", |program| &program.name);
    let out = folder.join("target").join(board.target).join("c");
    std::fs::create_dir_all(&out)
        .map_err(|error| Stop::Failed(format!("{}: {error}", out.display())))?;
    let image = out.join(name);
    let script = out.join(format!("{name}.ld"));
    std::fs::write(&script, linked(board))
        .map_err(|error| Stop::Failed(format!("{}: {error}", script.display())))?;
    let (compiler, options) = options(board.target)?;
    let mut build = Cmd::new(install::program(compiler))
        .words(options)
        .words("-std=c99 -O2 -ffunction-sections -fdata-sections -ffreestanding -nostartfiles -nostdlib -Wl,--gc-sections")
        .args([format!("-Wl,-T,{}", script.display())]);
    if let Some(program) = program {
        let floats = program.numbers == Numbers::Floats;
        build = build.args([
            format!("-I{}", folder.join("models").join(&program.name).display()),
            "-DMODEL".into(),
            format!("-DFLOATS={}", u8::from(floats)),
            format!("{}", folder.join("models").join(&program.name).join("model.c").display()),
        ]);
    }
    build
        .args([root().join("tests/firmware/c/way.c")])
        .args(["-o".as_ref(), image.as_os_str()])
        .words("-lgcc")
        .quietly()
        .run()?;
    Ok(image)
}

fn options(target: &str) -> Result<(&'static str, &'static str), Stop> {
    let (arm, riscv) = (ARM.0, RISCV.0);
    Ok(match target {
        "thumbv6m-none-eabi" => (arm, "-mcpu=cortex-m0 -mthumb"),
        "thumbv7m-none-eabi" => (arm, "-mcpu=cortex-m3 -mthumb"),
        "thumbv7em-none-eabihf" => {
            (arm, "-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16")
        }
        "thumbv8m.main-none-eabihf" => {
            (arm, "-mcpu=cortex-m33 -mthumb -mfloat-abi=hard -mfpu=fpv5-sp-d16")
        }
        "riscv32imac-unknown-none-elf" => {
            (riscv, "-march=rv32imac -mabi=ilp32 -msmall-data-limit=0")
        }
        other => return Err(Stop::Failed(format!("no options of C for {other}"))),
    })
}

/// Code and constants in flash, data and stack in RAM.
fn linked(board: &Board) -> String {
    format!(
        "ENTRY(start)\nMEMORY {{ FLASH : ORIGIN = {:#x}, LENGTH = {:#x}\n  RAM : ORIGIN = {:#x}, LENGTH = {:#x} }}\n\
         SECTIONS {{\n  .text : {{ KEEP(*(.start)) *(.text*) *(.rodata*) *(.srodata*) }} > FLASH\n\
         \x20 .data : {{ *(.data*) *(.sdata*) *(.bss*) *(.sbss*) }} > RAM\n  __sheap = ORIGIN(RAM) + SIZEOF(.data);\n\
         \x20 /DISCARD/ : {{ *(.ARM.exidx*) *(.ARM.extab*) *(.eh_frame*) *(.comment) }}\n}}\n\
         _stack_start = ORIGIN(RAM) + LENGTH(RAM);\n",
        board.flash.origin, board.flash.length, board.ram.origin, board.ram.length
    )
}
