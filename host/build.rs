//! Tells the program which compiler has made it, and from which sources; results of experiments say
//! so.

use std::path::{Path, PathBuf};

/// What results of experiments depend on, from this folder.
const SOURCES: [&str; 4] = ["../Cargo.lock", "../core/src", "src", "Cargo.toml"];
/// What shows results, or asks for them, and changes none.
const OTHERS: [&str; 3] = ["src/cli", "src/lab/plot", "src/lab/experiment/report"];

fn main() -> std::io::Result<()> {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = std::process::Command::new(compiler).arg("--version").output();
    if let Some(text) = version.ok().and_then(|output| String::from_utf8(output.stdout).ok()) {
        println!("cargo::rustc-env=TAMIS_RUSTC={}", text.trim());
    }
    let mut files = Vec::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        collect(Path::new(source), &mut files)?;
    }
    files.sort();
    // FNV-1a, of names and contents.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        bytes
            .iter()
            .for_each(|&byte| hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    };
    for file in files {
        add(file.as_os_str().as_encoded_bytes());
        add(&std::fs::read(file)?);
    }
    println!("cargo::rustc-env=TAMIS_CODE={hash:016x}");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC");
    Ok(())
}

/// All files below a path; none where there is nothing, as in a package of its own.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if OTHERS.iter().any(|other| path == Path::new(other)) || !path.exists() {
        return Ok(());
    }
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    std::fs::read_dir(path)?.try_for_each(|entry| collect(&entry?.path(), files))
}
