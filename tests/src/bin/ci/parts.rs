//! The parts of `cargo ci`, as data.

use crate::part::{Part, Run, Runs};
use crate::{checks, costs, deploy, firmware, gpu, host, qemu, tools};

const fn part(name: &'static str, about: &'static str, run: Run) -> Part {
    Part { name, about, runs: Runs::Always(run) }
}

const fn when_named(name: &'static str, about: &'static str, run: Run) -> Part {
    Part { name, about, runs: Runs::WhenNamed(run) }
}

/// Every part, cheapest first, and one that runs beside others before them.
pub(crate) const PARTS: &[Part] = &[
    part("fmt", "formatting", checks::fmt),
    part("clippy", "lints, warnings denied", checks::clippy),
    part("docs", "documentation builds, warnings denied", checks::docs),
    part("features", "the core with each of its features", checks::features),
    part("host", "unit, integration and doc tests", host::run),
    part("msrv", "the workspace builds with its minimum Rust version", checks::msrv),
    Part {
        name: "firmware",
        about: "the example firmware of four chips lints and builds, within its flash and RAM",
        runs: Runs::Beside(firmware::run),
    },
    part("qemu", "the conformance cases on emulated microcontrollers", qemu::run),
    part("deploy", "the deploy example's firmware predicts as the host does", deploy::run),
    part("deny", "bans, licenses and sources of dependencies", tools::deny),
    when_named(
        "costs",
        "measures what models take on each board, and writes host/src/model/cost/table.rs",
        costs::run,
    ),
    when_named(
        "estimates",
        "what models take on each board against what is estimated, as in qemu",
        costs::estimates,
    ),
    when_named("fuzz", "every fuzz target for the given seconds, 60 by default", tools::fuzz),
    when_named("dense", "dense networks on burn, as those of the CPU", gpu::dense),
    when_named("gpu", "the GPU backend's suite, on the first Vulkan driver there is", gpu::run),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_no_numbers() {
        for (i, part) in PARTS.iter().enumerate() {
            assert!(part.name.parse::<u64>().is_err());
            assert!(PARTS[..i].iter().all(|other| other.name != part.name), "{}", part.name);
        }
    }
}
