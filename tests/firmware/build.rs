//! Writes the linker's `memory.x` for the board that the target stands for.

use std::path::PathBuf;
use std::{env, fs};

#[allow(dead_code)]
mod boards;

fn main() {
    let target = env::var("TARGET").expect("cargo sets TARGET");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    let board = boards::BOARDS.iter().find(|board| board.target == target).unwrap_or_else(|| {
        panic!("no board for target {target}: add one to tests/firmware/boards.rs")
    });
    fs::write(out.join("memory.x"), memory(board)).expect("OUT_DIR is writable");
    println!("cargo:rustc-link-search={}", out.display());
    for arg in link_args(&target) {
        println!("cargo:rustc-link-arg-bins={arg}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=boards.rs");
}

/// The two regions, and for riscv-rt which of them holds what; cortex-m-rt knows FLASH and RAM by
/// name.
fn memory(board: &boards::Board) -> String {
    let mut text = format!(
        "MEMORY\n{{\n  FLASH : ORIGIN = {:#x}, LENGTH = {:#x}\n  RAM : ORIGIN = {:#x}, LENGTH = {:#x}\n}}\n",
        board.flash.origin, board.flash.length, board.ram.origin, board.ram.length
    );
    text += "_ram_origin = ORIGIN(RAM);\n";
    text += &format!("_models = {:#x};\n", board.models().origin);
    if board.target.starts_with("riscv") {
        for (section, region) in [
            ("TEXT", "FLASH"),
            ("RODATA", "FLASH"),
            ("DATA", "RAM"),
            ("BSS", "RAM"),
            ("HEAP", "RAM"),
            ("STACK", "RAM"),
        ] {
            text += &format!("REGION_ALIAS(\"REGION_{section}\", {region});\n");
        }
    }
    text
}

/// cortex-m-rt's script includes `memory.x` itself; riscv-rt's wants it first.
fn link_args(target: &str) -> &'static [&'static str] {
    if target.starts_with("riscv") {
        &["-Tmemory.x", "-Tlink.x"]
    } else {
        &["--nmagic", "-Tlink.x"]
    }
}
