//! Parts that need nothing but the Rust toolchain.

use crate::command::{Cmd, root};
use crate::part::{Context, Outcome, Report, Stop};
use std::fs;

/// Features of the core, each tried alone and all together; what the workspace takes, the part
/// `clippy` tries.
const CORE_FEATURES: &[&str] = &[
    "embedded-hal",
    "embedded-storage",
    "defmt",
    "embedded-hal,embedded-storage,defmt",
    "first-phase",
    "std",
];

/// Crates outside the workspace that are formatted with it.
const OUTSIDE: &[&str] =
    &["examples/firmware/chips", "examples/firmware/deploy", "tests/firmware", "fuzz", "gpu/dense"];

pub(crate) fn fmt(_: &Context) -> Outcome {
    cargo("fmt --all --check").run()?;
    for dir in OUTSIDE {
        let manifest = format!("{dir}/Cargo.toml");
        if root().join(&manifest).exists() {
            cargo("fmt --all --check --manifest-path").args([manifest]).run()?;
        }
    }
    passed()
}

pub(crate) fn clippy(_: &Context) -> Outcome {
    cargo("clippy --workspace --all-targets -- -D warnings").run()?;
    passed()
}

pub(crate) fn docs(_: &Context) -> Outcome {
    // Libraries only: the binary `tamis` and the library of that name would be the same page.
    cargo("doc --workspace --lib --no-deps").env("RUSTDOCFLAGS", "-D warnings").run()?;
    passed()
}

pub(crate) fn features(_: &Context) -> Outcome {
    for features in CORE_FEATURES {
        cargo("clippy --package tamis --no-default-features --features")
            .words(features)
            .words("-- -D warnings")
            .run()?;
    }
    passed()
}

/// With the toolchain of the minimum version: the default one if it is that, else one that rustup
/// has.
pub(crate) fn msrv(context: &Context) -> Outcome {
    let minimum = minimum_version()?;
    let version = Cmd::new("rustc").words("--version").ask().unwrap_or_default();
    if version.starts_with(&format!("rustc {minimum}.")) {
        // What clippy lints is what that compiler checks, so after the part `clippy` nothing is
        // left to do.
        clippy(context)?;
        return Ok(format!("the default toolchain is the minimum, {minimum}").into());
    }
    let Some(toolchain) =
        [minimum.clone(), format!("{minimum}.0")].into_iter().find(|name| has_toolchain(name))
    else {
        return Err(Stop::Missing(format!(
            "no Rust {minimum}: rustup toolchain install {minimum} --profile minimal"
        )));
    };
    Cmd::new("rustup")
        .args(["run", &toolchain])
        .words("cargo check --workspace --all-targets --target-dir target/msrv")
        .run()?;
    Ok(format!("with Rust {toolchain}").into())
}

/// True when rustup can run this toolchain.
pub(crate) fn has_toolchain(name: &str) -> bool {
    // Listed rather than run: running would try to install it.
    let list = Cmd::new("rustup").words("toolchain list").ask().unwrap_or_default();
    list.lines().any(|line| {
        line.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', ' ']))
    })
}

pub(crate) fn cargo(args: &str) -> Cmd {
    Cmd::new("cargo").words(args)
}

fn passed() -> Outcome {
    Ok(Report::default())
}

fn minimum_version() -> Result<String, Stop> {
    let manifest = fs::read_to_string(root().join("Cargo.toml"))
        .map_err(|error| Stop::Failed(format!("Cargo.toml: {error}")))?;
    rust_version(&manifest)
        .ok_or_else(|| Stop::Failed("Cargo.toml: no `rust-version = \"…\"`".into()))
}

fn rust_version(manifest: &str) -> Option<String> {
    let line = manifest.lines().find_map(|line| line.strip_prefix("rust-version"))?;
    Some(line.split('"').nth(1)?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_version_is_read_from_the_manifest() {
        assert_eq!(
            rust_version("[workspace.package]\nrust-version = \"1.95\"\n").as_deref(),
            Some("1.95")
        );
        assert_eq!(rust_version("rust = \"1.95\""), None);
        assert!(minimum_version().is_ok());
    }
}
