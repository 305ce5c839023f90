//! Parts whose tools take minutes to build: installed below `target/tools`, and only when the part is named.

use crate::checks::has_toolchain;
use crate::command::{Cmd, root};
use crate::install;
use crate::part::{Context, Outcome, Stop};
use std::path::PathBuf;

/// Root of the installed tools.
const TOOLS: &str = "target/tools";

/// The workspace's dependencies, and those of the crates outside it.
const MANIFESTS: &[&str] = &["Cargo.toml", "tests/firmware/Cargo.toml", "fuzz/Cargo.toml"];

pub(crate) fn deny(context: &Context) -> Outcome {
    let tool = tool("cargo-deny", context.named)?;
    for manifest in MANIFESTS.iter().filter(|manifest| root().join(manifest).exists()) {
        Cmd::new(&tool)
            .args(["--manifest-path", manifest])
            .words("--all-features --config")
            .args([root().join("deny.toml")])
            .words("check bans licenses sources")
            .run()?;
    }
    Ok(String::new())
}

pub(crate) fn fuzz(context: &Context) -> Outcome {
    if !root().join("fuzz/Cargo.toml").exists() {
        return Err(Stop::Excused("there are no fuzz targets yet".into()));
    }
    if !has_toolchain("nightly") {
        return Err(Stop::Missing(
            "no nightly Rust: rustup toolchain install nightly --profile minimal".into(),
        ));
    }
    let tool = tool("cargo-fuzz", context.named)?;
    let fuzz = |args: &str| Cmd::new("rustup").words("run nightly").args([&tool]).words(args);
    let list = fuzz("fuzz list").ask().ok_or_else(|| Stop::Failed("cargo fuzz list failed".into()))?;
    for target in list.lines() {
        fuzz("fuzz run")
            .args([target])
            .words("-- -print_final_stats=1")
            .args([format!("-max_total_time={}", context.fuzz_seconds)])
            .run()?;
    }
    Ok(format!("{} targets, {} s each", list.lines().count(), context.fuzz_seconds))
}

/// Where a tool lies, installing it first if that is allowed.
fn tool(name: &str, install: bool) -> Result<PathBuf, Stop> {
    let own = root().join(TOOLS).join("bin").join(name);
    if own.is_file() {
        return Ok(own);
    }
    if let Some(path) = install::find(name) {
        return Ok(path);
    }
    let part = name.trim_start_matches("cargo-");
    if !install {
        return Err(Stop::Excused(format!(
            "{name} is not installed; `cargo ci {part}` builds it, which takes minutes"
        )));
    }
    // Unoptimised: the tool runs for seconds, but would compile for much longer.
    Cmd::new("cargo")
        .words("install --locked --debug --target-dir target/tools/build --root")
        .args([TOOLS, name])
        .run()
        .map_err(|_| Stop::Missing(format!("cargo install {name} failed")))?;
    Ok(own)
}
