//! Of all four crates: shows the linker where `memory.x` is, and the scripts of the start-up code
//! and of defmt.

use std::env;

fn main() {
    let variable = |name| env::var(name).expect("cargo sets it");
    println!("cargo:rustc-link-search={}", variable("CARGO_MANIFEST_DIR"));
    // The ESP32-C3 has a script of its own that brings its memory.
    let scripts: &[&str] = match variable("CARGO_CFG_TARGET_ARCH").as_str() {
        "arm" => &["--nmagic", "-Tlink.x", "-Tdefmt.x"],
        "riscv32" => &["-Tlinkall.x", "-Tdefmt.x"],
        _ => &[],
    };
    for script in scripts {
        println!("cargo:rustc-link-arg-bins={script}");
    }
    println!("cargo:rerun-if-changed=../build.rs");
    println!("cargo:rerun-if-changed=memory.x");
}
