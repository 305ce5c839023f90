//! Parts whose tools take minutes to build: installed below `target/tools`, and only when the part
//! is named.

use crate::checks::has_toolchain;
use crate::command::{Cmd, root};
use crate::install;
use crate::part::{Context, Outcome, Report, Stop};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Root of the installed tools.
const TOOLS: &str = "target/tools";

/// The workspace's dependencies, and those of the crates outside it.
const MANIFESTS: &[&str] = &[
    "Cargo.toml",
    "examples/firmware/chips/Cargo.toml",
    "examples/firmware/deploy/Cargo.toml",
    "tests/firmware/Cargo.toml",
    "fuzz/Cargo.toml",
    "gpu/dense/Cargo.toml",
];

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
    Ok(Report::default())
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
    let list = cargo_fuzz(&tool, "list")
        .ask()
        .ok_or_else(|| Stop::Failed("cargo fuzz list failed".into()))?;
    let runs = list
        .lines()
        .map(|target| fuzz_one(&tool, target, context.fuzz_seconds))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(format!("{} s each: {}", context.fuzz_seconds, runs.join(", ")).into())
}

/// Runs one target from its grown corpus and its kept seeds; says how many inputs it tried.
fn fuzz_one(tool: &Path, target: &str, seconds: u64) -> Result<String, Stop> {
    let failed = |error: io::Error| Stop::Failed(format!("{target}: {error}"));
    let (corpus, seeds) = (format!("fuzz/corpus/{target}"), format!("fuzz/seeds/{target}"));
    let log = root().join("target").join(format!("fuzz-{target}.log"));
    fs::create_dir_all(root().join(&corpus)).map_err(failed)?;
    let mut folders = vec![corpus];
    folders.extend(root().join(&seeds).is_dir().then_some(seeds));
    let ended = cargo_fuzz(tool, "run")
        .args([target])
        .args(folders)
        .words("-- -print_final_stats=1")
        .args([format!("-max_total_time={seconds}")])
        .log(&log)
        .run();
    let text = fs::read(&log).map_err(failed)?;
    let text = String::from_utf8_lossy(&text);
    if ended.is_err() {
        println!("{text}");
    }
    ended.map(|()| format!("{target} {}", units(&text).unwrap_or("?")))
}

fn cargo_fuzz(tool: &Path, verb: &str) -> Cmd {
    Cmd::new("rustup").words("run nightly").args([tool]).args(["fuzz", verb])
}

/// Inputs that libFuzzer tried, from its final statistics.
fn units(log: &str) -> Option<&str> {
    log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:")).map(str::trim)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_count_is_read_from_statistics() {
        assert_eq!(
            units("Done\nstat::number_of_executed_units: 995731\nstat::x: 1\n"),
            Some("995731")
        );
        assert_eq!(units("Done\n"), None);
    }
}
