//! What models take on each board: measured and fitted to prices (`cargo ci costs`), and models
//! that were not in the fit held against those prices (a part of `cargo ci qemu`).
//!
//! An encoding takes part as soon as it has a kernel in `host/src/model/cost`.

pub(crate) mod draw;
pub(crate) mod fit;
mod table;

use crate::boards::{BOARDS, Board};
use crate::command::{each, root};
use crate::cost::{Around, Core, Kernel, Numbers, Way, Work};
use crate::emulator::{EMULATORS, Emulation, Limits, WORK, build_plugin};
use crate::images;
use crate::part::{Context, Outcome, Stop};
use crate::{cross, install, ways};
use draw::Drawn;
use std::fs;
use std::path::Path;
use table::Measured;
use tamis::infer::price::CORTEX_M4F;

/// The generated file.
const TABLE: &str = "host/src/model/cost/table.rs";
/// Seeds of the models that prices are fitted to, and of those that the prices are held to.
const FIT_SEED: u64 = 1;
const CHECK_SEED: u64 = 2;
/// Models of one layer for each encoding of integers, and as many of two; of floats twice as many
/// for each kernel.
const FIT: usize = 14;
const CHECK: usize = 5;
/// The most that an estimate may be wrong by, as a fraction of what was measured.
const MOST_INSTRUCTIONS: f64 = 0.20;
pub(crate) const MOST_BYTES: f64 = 0.08;
/// What one prediction took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Took {
    instructions: u64,
    /// The deepest stack.
    stack: u64,
}

/// Measures, fits, and writes the table.
pub(crate) fn run(_: &Context) -> Outcome {
    install::programs(&EMULATORS)?;
    install::programs(&ways::c::compilers(&Core::ALL))?;
    images::build_plain(&["flash"], &["flash-empty", "flash-dense-floats", "costs"])?;
    let plugin = build_plugin()?;
    ways::build_tool()?;
    let entries = ways::fit::entries();
    let memory = ways::measure(BOARDS, &plugin, &entries.programs())?;
    let models = draw::models(FIT_SEED, FIT);
    let mut cores = Vec::new();
    let measured = each(BOARDS, |board| measure(board, &plugin, &models, "costs"));
    for (((board, memory), took), core) in BOARDS.iter().zip(&memory).zip(measured).zip(Core::ALL) {
        if core == Core::CortexM7 {
            continue;
        }
        let took = took?;
        let (prices, errors) = fitted(&models, &took, core);
        let mut order: Vec<_> = errors.iter().zip(&models).zip(&took).collect();
        order.sort_by(|((a, _), _), ((b, _), _)| b.abs().total_cmp(&a.abs()));
        println!("{}: {} models; farthest from the fit:", board.core, models.len());
        for ((error, model), took) in order.into_iter().take(9) {
            println!(
                "{:>9.1} %  {}, {} instructions",
                100.0 * error,
                model.name,
                took.instructions
            );
        }
        let size =
            |name: &str| images::flash(&images::plain_image(board, &format!("flash-{name}")));
        let startup = size("empty")?;
        let dense =
            models.iter().zip(&took).filter(|(model, _)| model.kernels == [Kernel::DenseFloats]);
        let stack = dense.map(|(_, took)| took.stack).max().unwrap_or(0);
        let plain = [size("dense-floats")?.saturating_sub(startup), stack];
        let bytes = entries.bytes(memory, plain);
        cores.push(Measured { core: board.core, startup, prices, bytes });
    }
    let command = format!("cargo ci costs ({})", cross::version(&[BOARDS[0].target])?);
    let path = root().join(TABLE);
    fs::write(&path, table::text(&command, &cores))
        .map_err(|error| Stop::Failed(format!("{TABLE}: {error}")))?;
    for (row, held) in table::encodings(&cores[2].prices).iter().zip(CORTEX_M4F) {
        if *row != held {
            println!("tamis::infer::price::CORTEX_M4F has {held:?}, now {row:?}");
        }
    }
    Ok(format!("{TABLE} is written; `cargo ci qemu` holds other models to it").into())
}

/// The check alone.
pub(crate) fn estimates(_: &Context) -> Outcome {
    install::programs(&EMULATORS)?;
    install::programs(&ways::c::compilers(&Core::ALL))?;
    images::build_plain(&[], &["costs", "integers"])?;
    let plugin = build_plugin()?;
    let mut problems = check(&plugin)?;
    problems.extend(check_ways(&plugin, &Core::ALL, true)?);
    problems.iter().for_each(|problem| println!("{problem}"));
    match problems.len() {
        0 => Ok("estimates are within their bounds".to_owned().into()),
        count => Err(Stop::Failed(format!("{count} estimates are not"))),
    }
}

/// Every problem of the estimates of flash and RAM in each way of deploying a model, that of C only
/// `with_c`.
pub(crate) fn check_ways(plugin: &Path, cores: &[Core], with_c: bool) -> Result<Vec<String>, Stop> {
    ways::build_tool()?;
    ways::check::check(plugin, cores, (!with_c).then_some(Way::C))
}

/// Every problem of the estimates of models that were not in the fit.
pub(crate) fn check(plugin: &Path) -> Result<Vec<String>, Stop> {
    let models = draw::models(CHECK_SEED, CHECK);
    let mut problems = Vec::new();
    println!("\n{:<11} {:>6} {:>22} {:>18}", "core", "models", "instructions, worst", "mean error");
    let measured = each(BOARDS, |board| measure(board, plugin, &models, "estimates"));
    for ((board, took), core) in BOARDS.iter().zip(measured).zip(Core::ALL) {
        let took = took?;
        let (mut worst, mut sum) = ((0.0_f64, ""), 0.0);
        for (model, took) in models.iter().zip(&took) {
            let estimate = model.estimate(core);
            let error = off(estimate.instructions, took.instructions);
            let is_off =
                if estimate.is_bound { error < 0.0 } else { error.abs() > MOST_INSTRUCTIONS };
            if !estimate.is_bound {
                sum += error.abs();
                worst = if error.abs() > worst.0.abs() { (error, &model.name) } else { worst };
            }
            if is_off {
                problems.push(format!(
                    "{}, {}: {} instructions estimated, {} counted: {:+.1} %",
                    board.core,
                    model.name,
                    estimate.instructions,
                    took.instructions,
                    100.0 * error
                ));
            }
        }
        println!(
            "{:<11} {:>6} {:>20.1} % {:>16.2} %   ({})",
            board.core,
            models.len(),
            100.0 * worst.0,
            100.0 * sum / models.len() as f64,
            worst.1
        );
    }
    Ok(problems)
}

/// How far an estimate is from what was measured, as a fraction of that.
pub(crate) fn off(estimate: u64, measured: u64) -> f64 {
    estimate as f64 / measured.max(1) as f64 - 1.0
}

/// Runs all models on a board, as many at a time as its flash holds.
fn measure(board: &Board, plugin: &Path, models: &[Drawn], name: &str) -> Result<Vec<Took>, Stop> {
    let image = images::plain_image(board, "costs");
    let region = board.models();
    let mut all = Vec::new();
    for (bytes, batch) in draw::batches(models, region.length as usize) {
        let path = root().join(WORK).join(format!("{}-{name}.bin", board.core));
        fs::write(&path, bytes)
            .map_err(|error| Stop::Failed(format!("{}: {error}", path.display())))?;
        let loader =
            format!("loader,file={},addr={:#x},force-raw=on", path.display(), region.origin);
        let more = &["-device".into(), loader];
        let (image, floor, quiet, limits) = (&*image, None, false, Limits::USUAL);
        let ran = Emulation { board, image, name, plugin, floor, more, quiet, limits }.run();
        ran.ended.map_err(|stop| match stop {
            Stop::Failed(why) => Stop::Failed(format!("{}: {why}\n{}", board.core, ran.log)),
            other => other,
        })?;
        all.extend(parse(board.core, &ran.log, &ran.counts, &batch).map_err(Stop::Failed)?);
    }
    Ok(all)
}

/// Joins the firmware's lines with the plugin's, and holds the outputs to the host's.
fn parse(core: &str, log: &str, counts: &str, models: &[&Drawn]) -> Result<Vec<Took>, String> {
    let lines: Vec<_> =
        log.lines().filter_map(|line| line.strip_prefix("model digest=0x")).collect();
    let counts: Vec<u64> = counts
        .lines()
        .filter_map(|line| line.strip_prefix("insns=")?.split(' ').next()?.parse().ok())
        .collect();
    if [lines.len(), counts.len()] != [models.len(); 2] || log.lines().last() != Some("done") {
        let found = format!(
            "{} lines and {} counts for {} models",
            lines.len(),
            counts.len(),
            models.len()
        );
        return Err(format!("{core}: {found}\n{log}"));
    }
    let joined = lines.iter().zip(counts).zip(models);
    joined
        .map(|((line, instructions), model)| {
            let wrong = || {
                format!("{core}, {}: {line}, the host's digest is {:08x}", model.name, model.digest)
            };
            let (digest, stacks) = line.split_once(" stack=").ok_or_else(wrong)?;
            let (stack, _) = stacks.split_once(" alone=").ok_or_else(wrong)?;
            let same = u32::from_str_radix(digest, 16) == Ok(model.digest);
            let bytes = |text: &str| text.parse().ok().filter(|_| same).ok_or_else(wrong);
            Ok(Took { instructions, stack: bytes(stack)? })
        })
        .collect()
}

/// Where the prices of a kernel start among all that are fitted; both of blocks have one row.
fn place(kernel: Kernel) -> usize {
    let kernel = if kernel == Kernel::ShortBlocks { Kernel::Blocks } else { kernel };
    2 * Around::COUNT + Work::COUNT * kernel as usize
}

/// Instructions around layers of floats and of integers, and of each kernel.
#[derive(Debug, Clone)]
pub(crate) struct Instructions {
    pub(crate) around: [Vec<f64>; 2],
    pub(crate) kernels: Vec<Vec<f64>>,
}

/// Prices in instructions, and how far each model is from them.
fn fitted(models: &[Drawn], took: &[Took], core: Core) -> (Instructions, Vec<f64>) {
    let width = 2 * Around::COUNT + Work::COUNT * Kernel::ALL.len();
    let row = |model: &Drawn| {
        let counts = model.counts();
        let mut row = vec![0.0; width];
        let from = if counts.numbers == Numbers::Floats { 0 } else { Around::COUNT };
        row[from..].iter_mut().zip(counts.around.0).for_each(|(sum, count)| *sum += count as f64);
        for (kernel, work) in counts.layers {
            row[place(kernel)..]
                .iter_mut()
                .zip(work.0)
                .for_each(|(sum, count)| *sum += count as f64);
        }
        row
    };
    let rows: Vec<Vec<f64>> = models.iter().map(row).collect();
    let totals: Vec<f64> = took.iter().map(|took| took.instructions as f64).collect();
    // What is a bound is not to pull the prices of what is none.
    let exact = models
        .iter()
        .zip(rows.iter().zip(&totals))
        .filter(|(model, _)| !model.estimate(core).is_bound);
    let (exact_rows, exact_totals): (Vec<_>, Vec<_>) =
        exact.map(|(_, (row, total))| (row.clone(), *total)).unzip();
    let prices = fit::prices(&exact_rows, &exact_totals);
    let error = |(row, total): (&Vec<f64>, &f64)| {
        let sum: f64 = row.iter().zip(&prices).map(|(count, price)| count * price).sum();
        sum / total - 1.0
    };
    let errors = rows.iter().zip(&totals).map(error).collect();
    let around = [0, Around::COUNT].map(|from| prices[from..][..Around::COUNT].to_vec());
    let kernels =
        Kernel::ALL.map(|kernel| prices[place(kernel)..][..Work::COUNT].to_vec()).to_vec();
    (Instructions { around, kernels }, errors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boards_are_the_parts_in_their_order() {
        let names: Vec<_> = BOARDS.iter().map(|board| board.core).collect();
        assert_eq!(names, Core::ALL.map(Core::name));
    }

    #[test]
    fn lines_and_counts_are_joined_and_outputs_compared() {
        let models = draw::models(3, 1);
        let models: Vec<_> = models.iter().take(2).collect();
        let line =
            |model: &Drawn| format!("model digest=0x{:08x} stack=700 alone=90\n", model.digest);
        let log = format!("{}{}done\n", line(models[0]), line(models[1]));
        let counts = "insns=10 loads=1 stores=1\ninsns=20 loads=1 stores=1\n";
        let took = parse("core", &log, counts, &models).unwrap();
        assert_eq!((took[1].instructions, took[1].stack), (20, 700));
        for (wrong, counts) in [
            (log.replace("done\n", ""), counts),
            (log.clone(), "insns=10\n"),
            (log.replace("0x", "0x1"), counts),
        ] {
            assert!(parse("core", &wrong, counts, &models).is_err(), "{wrong}");
        }
    }
}
