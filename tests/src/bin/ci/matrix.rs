//! What the boards reported: parsed, joined with the plugin's counts, judged and printed.

use crate::part::Stop;
use std::fmt::Write as _;
use tamis_tests::cases::Case;

/// A bound on instructions per unit of work of a counted region.
#[derive(Debug)]
struct Ceiling {
    core: &'static str,
    region: &'static str,
    /// A region of the same case with less work; what both have in common is taken off.
    less: Option<&'static str>,
    per_unit: f64,
}

const fn ceiling(region: &'static str, less: Option<&'static str>, per_unit: f64) -> Ceiling {
    Ceiling { core: "Cortex-M4F", region, less, per_unit }
}

/// To hold another region to a bound, add an entry.
const CEILINGS: &[Ceiling] = &[
    ceiling("dot", None, 4.5),
    ceiling("f32, 1000 nonzeros", Some("f32, 500 nonzeros"), 9.0),
    ceiling("u8, 1000 nonzeros", Some("u8, 500 nonzeros"), 10.5),
    ceiling("int8, 784-10-10, 1000", None, 5.95),
    ceiling("int8, 784-32-10, 10 %", Some("int8, 784-32-10, 5 %"), 4.8),
    ceiling("tables, 1000", None, 5.9),
    ceiling("tables, 1000", Some("tables, 500"), 4.7),
    ceiling("blocks only, 1000", None, 5.85),
    ceiling("embedded, 1000", None, 5.9),
    ceiling("embedded floats, 1000", None, 9.3),
    ceiling("code, 1000", None, 3.1),
    ceiling("code, 1000", Some("code, 500"), 2.85),
    ceiling("float tables, 1000", None, 9.3),
    ceiling("float tables, 1000", Some("float tables, 500"), 6.0),
    ceiling("float rows, 1000", Some("float rows, 500"), 8.5),
    ceiling("file, 1000", None, 5.95),
    ceiling("float file, 1000", None, 9.3),
];

/// Digest and RAM bound of one case, from the host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    name: &'static str,
    digest: u32,
    ram: u64,
    /// The only core that runs it; none where all do.
    core: Option<&'static str>,
}

/// Computes every case on the host.
pub(crate) fn expected() -> Vec<Expected> {
    let run = |case: &Case<()>, core| Expected {
        name: case.name,
        digest: (case.run)(&mut ()),
        ram: case.ram.into(),
        core,
    };
    let everywhere = Case::everywhere().map(|case| run(case, None));
    let large = Case::LARGE.iter().map(|case| run(case, Some(Case::<()>::LARGE_CORE)));
    everywhere.chain(large).collect()
}

/// Instructions, loads and stores of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    insns: u64,
    loads: u64,
    stores: u64,
}

/// A counted region: what the firmware said and what the plugin counted.
#[derive(Debug)]
struct Region {
    name: String,
    units: u64,
    counts: Option<Counts>,
}

/// A case as the firmware reported it, with the regions inside.
#[derive(Debug)]
struct Report {
    name: String,
    digest: u32,
    fixed: u64,
    stack: u64,
    counts: Option<Counts>,
    regions: Vec<Region>,
}

/// One board's run.
#[derive(Debug)]
pub(crate) struct Run {
    core: &'static str,
    flash: u64,
    reports: Vec<Report>,
    problems: Vec<String>,
}

impl Run {
    /// Joins the firmware's lines with the plugin's, both in the order in which regions ended.
    pub(crate) fn new(
        core: &'static str,
        flash: u64,
        ended: Result<(), Stop>,
        log: &str,
        counts: &str,
    ) -> Self {
        let mut run = Self { core, flash, reports: Vec::new(), problems: Vec::new() };
        let mut counts = counts.lines();
        let mut regions = Vec::new();
        let mut done = false;
        for line in log.lines() {
            let mut next = || counts.next().and_then(parse_counts);
            match line.split_once(' ') {
                Some(("region", rest)) => regions.extend(parse_region(rest, next())),
                Some(("case", rest)) => run.reports.extend(parse_case(rest, next(), &mut regions)),
                None if line == "done" => done = true,
                _ => run.problems.push(format!("{core}: {line}")),
            }
        }
        if let Err(Stop::Failed(why) | Stop::Missing(why) | Stop::Excused(why)) = ended {
            run.problems.push(format!("{core}: {why}"));
        }
        if !done {
            run.problems.push(format!("{core}: stopped before the end"));
        }
        if counts.next().is_some() {
            run.problems.push(format!("{core}: more counted regions than reported ones"));
        }
        run
    }
}

impl Run {
    /// With what the board's next image did; the flash is that of the larger.
    pub(crate) fn and(mut self, second: Self) -> Self {
        self.flash = self.flash.max(second.flash);
        self.reports.extend(second.reports);
        self.problems.extend(second.problems);
        self
    }
}

/// Everything that is not as it should be, one line each.
pub(crate) fn problems(runs: &[Run], expected: &[Expected]) -> Vec<String> {
    let mut problems = Vec::new();
    for run in runs {
        problems.extend(run.problems.iter().cloned());
        let runs = |expected: &&Expected| expected.core.is_none_or(|core| core == run.core);
        for expected in expected.iter().filter(runs) {
            match run.reports.iter().find(|report| report.name == expected.name) {
                Some(report) => problems.extend(judge(run.core, report, expected)),
                None => {
                    problems.push(format!("{}: case {} did not report", run.core, expected.name));
                }
            }
        }
    }
    problems
}

fn judge(core: &str, report: &Report, expected: &Expected) -> Vec<String> {
    let at = format!("{core}, case {}", report.name);
    let mut problems = Vec::new();
    if report.digest != expected.digest {
        problems.push(format!(
            "{at}: digest {:#010x}, the host's is {:#010x}",
            report.digest, expected.digest
        ));
    }
    let ram = report.fixed + report.stack;
    if ram > expected.ram {
        problems.push(format!("{at}: {ram} bytes of RAM, allowed are {}", expected.ram));
    }
    if report.counts.is_none() {
        problems.push(format!("{at}: nothing was counted"));
    }
    for region in &report.regions {
        problems.extend(
            too_many(core, report, region)
                .map(|what| format!("{at}, region {}: {what}", region.name)),
        );
    }
    problems
}

fn too_many(core: &str, report: &Report, region: &Region) -> Option<String> {
    if region.counts.is_none() {
        return Some("nothing was counted".into());
    }
    let mut ceilings =
        CEILINGS.iter().filter(|ceiling| ceiling.core == core && ceiling.region == region.name);
    ceilings.find_map(|ceiling| {
        let per_unit = match ceiling.less {
            Some(less) => marginal(report, region, less)?,
            None => region.per_unit()?,
        };
        (per_unit > ceiling.per_unit).then(|| {
            format!("{per_unit:.2} instructions per unit, allowed are {:.2}", ceiling.per_unit)
        })
    })
}

/// Instructions per further unit, over a region with less work.
fn marginal(report: &Report, region: &Region, less: &str) -> Option<f64> {
    let less = report.regions.iter().find(|region| region.name == less)?;
    let units = region.units.checked_sub(less.units).filter(|&units| units > 0)?;
    Some((region.counts?.insns as f64 - less.counts?.insns as f64) / units as f64)
}

impl Region {
    fn per_unit(&self) -> Option<f64> {
        self.counts.map(|counts| counts.insns as f64 / self.units.max(1) as f64)
    }
}

/// The matrix: a row per board and case, a row below for each counted region.
pub(crate) fn table(runs: &[Run], expected: &[Expected]) -> String {
    let mut text = format!(
        "{:<11} {:<14} {:<6} {:<10} {:>6} {:>6} {:>7} {:>12} {:>11} {:>11}\n",
        "core",
        "case",
        "result",
        "digest",
        "static",
        "stack",
        "flash",
        "instructions",
        "loads",
        "stores"
    );
    for run in runs {
        for report in &run.reports {
            let expected = expected.iter().find(|expected| expected.name == report.name);
            let fine =
                expected.is_some_and(|expected| judge(run.core, report, expected).is_empty());
            let _ = writeln!(
                text,
                "{:<11} {:<14} {:<6} {:#010x} {:>6} {:>6} {:>7} {}",
                run.core,
                report.name,
                if fine { "ok" } else { "WRONG" },
                report.digest,
                report.fixed,
                report.stack,
                run.flash,
                columns(report.counts)
            );
            report.regions.iter().for_each(|region| text += &row(report, region));
        }
    }
    text
}

fn row(report: &Report, region: &Region) -> String {
    let mut per_unit = region
        .per_unit()
        .map(|value| format!("{value:.2} per unit of {}", region.units))
        .unwrap_or_default();
    let less = CEILINGS
        .iter()
        .filter(|ceiling| ceiling.region == region.name)
        .find_map(|ceiling| ceiling.less);
    if let Some(marginal) = less.and_then(|less| marginal(report, region, less)) {
        let _ = write!(per_unit, ", {marginal:.2} more");
    }
    format!("{:<11}  {:<18} {:<36} {}\n", "", region.name, per_unit, columns(region.counts))
}

fn columns(counts: Option<Counts>) -> String {
    counts.map(|c| format!("{:>12} {:>11} {:>11}", c.insns, c.loads, c.stores)).unwrap_or_default()
}

/// `NAME units=N`; the name may have spaces.
fn parse_region(line: &str, counts: Option<Counts>) -> Option<Region> {
    let (name, units) = line.rsplit_once(' ')?;
    Some(Region { name: name.into(), units: field(units, "units")?, counts })
}

/// `NAME digest=0xN static=N stack=N`, and the regions that ended before.
fn parse_case(line: &str, counts: Option<Counts>, regions: &mut Vec<Region>) -> Option<Report> {
    let (name, rest) = line.split_once(' ')?;
    Some(Report {
        name: name.into(),
        digest: u32::from_str_radix(value(rest, "digest")?.strip_prefix("0x")?, 16).ok()?,
        fixed: field(rest, "static")?,
        stack: field(rest, "stack")?,
        counts,
        regions: std::mem::take(regions),
    })
}

/// `insns=N loads=N stores=N`
fn parse_counts(line: &str) -> Option<Counts> {
    Some(Counts {
        insns: field(line, "insns")?,
        loads: field(line, "loads")?,
        stores: field(line, "stores")?,
    })
}

fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split(' ').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

fn field(line: &str, name: &str) -> Option<u64> {
    value(line, name)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str =
        "region dot units=300\ncase math digest=0x0000002a static=16 stack=1000\ndone\n";
    const COUNTS: &str = "insns=1200 loads=600 stores=3\ninsns=9000 loads=10 stores=20\n";
    const EXPECTED: [Expected; 1] = [Expected { name: "math", digest: 42, ram: 1016, core: None }];

    fn found(core: &'static str, log: &str, counts: &str) -> Vec<String> {
        problems(&[Run::new(core, 5000, Ok(()), log, counts)], &EXPECTED)
    }

    #[test]
    fn reports_and_counts_are_joined_in_order() {
        let run = Run::new("Cortex-M4F", 5000, Ok(()), LOG, COUNTS);
        let report = &run.reports[0];
        assert_eq!((report.digest, report.fixed, report.stack), (42, 16, 1000));
        assert_eq!(report.counts, Some(Counts { insns: 9000, loads: 10, stores: 20 }));
        assert_eq!(report.regions[0].per_unit(), Some(4.0));
        let table = table(&[run], &EXPECTED);
        assert!(
            table.contains("4.00 per unit of 300") && table.contains("ok     0x0000002a"),
            "{table}"
        );
        assert_eq!(found("Cortex-M4F", LOG, COUNTS), Vec::<String>::new());
    }

    #[test]
    fn every_kind_of_wrong_result_is_a_problem() {
        let one = |log: &str, counts: &str, words: &str| {
            let problems = found("Cortex-M4F", log, counts);
            assert!(problems.len() == 1 && problems[0].contains(words), "{words}: {problems:?}");
        };
        one(&LOG.replace("2a", "2b"), COUNTS, "the host's is 0x0000002a");
        one(
            &LOG.replace("stack=1000", "stack=1001"),
            COUNTS,
            "1017 bytes of RAM, allowed are 1016",
        );
        one(&LOG.replace("done", "panic src/a.rs:3\ndone"), COUNTS, "panic src/a.rs:3");
        one(&LOG.replace("done\n", ""), COUNTS, "stopped before the end");
        one(
            LOG,
            &COUNTS.replace("insns=1200", "insns=1500"),
            "5.00 instructions per unit, allowed are 4.50",
        );
        one(LOG, &format!("{COUNTS}insns=1 loads=1 stores=1\n"), "more counted regions");
        one(LOG, COUNTS.lines().next().unwrap_or_default(), "nothing was counted");
        one("done\n", "", "case math did not report");
    }

    #[test]
    fn work_outside_the_smaller_region_is_bounded() {
        let log = "region f32, 1000 nonzeros units=1000\nregion f32, 500 nonzeros units=500\n\
                   case math digest=0x0000002a static=16 stack=1000\ndone\n";
        let counts = |more: u64| {
            format!(
                "insns={more} loads=1 stores=1\ninsns=5000 loads=1 stores=1\ninsns=1 loads=1 stores=1\n"
            )
        };
        assert_eq!(found("Cortex-M4F", log, &counts(9500)), Vec::<String>::new());
        let problems = found("Cortex-M4F", log, &counts(9501));
        assert!(problems.len() == 1 && problems[0].contains("allowed are 9.00"), "{problems:?}");
        assert_eq!(found("Cortex-M3", log, &counts(9501)), Vec::<String>::new());
    }

    #[test]
    fn failed_emulator_is_a_problem_despite_fine_output() {
        let run = Run::new(
            "Cortex-M0",
            5000,
            Err(Stop::Failed("killed after 120 s".into())),
            LOG,
            COUNTS,
        );
        assert_eq!(problems(&[run], &EXPECTED), ["Cortex-M0: killed after 120 s"]);
    }
}
