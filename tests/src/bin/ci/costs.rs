//! What models take on each board: measured and fitted to prices (`cargo ci costs`), and models that were not in the fit held
//! against those prices (a part of `cargo ci qemu`).
//!
//! An encoding takes part as soon as `tamis::price` counts it and `tests/firmware/src/flash.rs` has a program for it.

pub(crate) mod draw;
pub(crate) mod fit;
mod table;

use crate::command::{Cmd, root};
use crate::part::{Context, Outcome, Stop};
use crate::qemu::boards::{BOARDS, Board};
use crate::qemu::{self, WORK};
use crate::{cross, install, ways};
use draw::Drawn;
use std::fs;
use std::path::Path;
use table::Measured;
use tamis::estimate::Estimate;
use tamis::price::{Around, Core, Kernel, Numbers, Way, Work};

/// The generated file.
const TABLE: &str = "core/src/price/table.rs";
/// Seeds of the models that prices are fitted to, and of those that the prices are held to.
const FIT_SEED: u64 = 1;
const CHECK_SEED: u64 = 2;
/// Models of one layer for each encoding of integers, and as many of two; of floats twice as many for each kernel.
const FIT: usize = 14;
const CHECK: usize = 5;
/// The most that an estimate may be wrong by, as a part of what was measured.
const MOST_INSTRUCTIONS: f64 = 0.10;
/// The same of floats behind a hidden layer where routines compute them: it depends on which neurons are open on the row.
const MOST_OPEN: f64 = 0.15;
pub(crate) const MOST_BYTES: f64 = 0.05;
/// Bytes of stack that the deepest frames may differ by, where a twentieth is less: those of routines for floats depend on what they
/// add.
const FRAME: u64 = 16;

/// What one prediction took.
#[derive(Debug, Clone, Copy)]
struct Took {
    instructions: u64,
    /// Stack of reading and predicting, and of predicting alone.
    stack: u64,
    alone: u64,
}

/// Measures, fits, and writes the table.
pub(crate) fn run(_: &Context) -> Outcome {
    install::programs(&qemu::EMULATORS)?;
    install::programs(&ways::c::COMPILERS)?;
    qemu::build_plain(&["flash"], &["flash-empty", "flash-dense-floats", "costs"])?;
    let plugin = qemu::build_plugin()?;
    ways::build_tool()?;
    let entries = ways::fit::entries();
    let memory = ways::measure(BOARDS, &plugin, &entries.programs())?;
    let models = draw::models(FIT_SEED, FIT);
    let mut parts = Vec::new();
    for (board, memory) in BOARDS.iter().zip(&memory) {
        let took = measure(board, &plugin, &models, "costs")?;
        let (prices, errors) = fitted(&models, &took);
        let mut order: Vec<_> = errors.iter().zip(&models).zip(&took).collect();
        order.sort_by(|((a, _), _), ((b, _), _)| b.abs().total_cmp(&a.abs()));
        println!("{}: {} models; farthest from the fit:", board.core, models.len());
        for ((error, model), took) in order.into_iter().take(9) {
            println!("{:>9.1} %  {}, {} instructions", 100.0 * error, model.name, took.instructions);
        }
        parts.push(sized(board, &prices, &models, &took, entries.prices(memory))?);
    }
    let command = format!("cargo ci costs ({})", cross::version(&[BOARDS[0].target])?);
    let path = root().join(TABLE);
    fs::write(&path, table::text(&command, &parts))
        .map_err(|error| Stop::Failed(format!("{TABLE}: {error}")))?;
    Cmd::new("rustfmt").words("--edition 2024").args([&path]).run()?;
    Ok(format!("{TABLE} is written; `cargo ci qemu` holds other models to it"))
}

/// The check alone.
pub(crate) fn estimates(_: &Context) -> Outcome {
    install::programs(&qemu::EMULATORS)?;
    install::programs(&ways::c::COMPILERS)?;
    qemu::build_plain(&[], &["costs", "integers"])?;
    let plugin = qemu::build_plugin()?;
    let mut problems = check(&plugin)?;
    problems.extend(check_ways(&plugin, &Core::ALL)?);
    problems.iter().for_each(|problem| println!("{problem}"));
    match problems.len() {
        0 => Ok("estimates are within their bounds".into()),
        count => Err(Stop::Failed(format!("{count} estimates are not"))),
    }
}

/// Every problem of the estimates of flash and RAM in each way of deploying a model, that of C only if its compilers are there.
pub(crate) fn check_ways(plugin: &Path, cores: &[Core]) -> Result<Vec<String>, Stop> {
    ways::build_tool()?;
    let left_out = if install::found(&ways::c::COMPILERS) { None } else { Some(Way::C) };
    if left_out.is_some() {
        println!("what models take in C is not checked: `cargo ci estimates` installs its compilers");
    }
    ways::check::check(plugin, cores, left_out)
}

/// Every problem of the estimates of models that were not in the fit.
pub(crate) fn check(plugin: &Path) -> Result<Vec<String>, Stop> {
    let models = draw::models(CHECK_SEED, CHECK);
    let mut problems = Vec::new();
    println!(
        "\n{:<11} {:>6} {:>22} {:>18} {:>24}",
        "core", "models", "instructions, worst", "mean error", "RAM, worst"
    );
    for (board, core) in BOARDS.iter().zip(Core::ALL) {
        let took = measure(board, plugin, &models, "estimates")?;
        let (mut worst, mut sum, mut worst_ram) = ((0.0_f64, ""), 0.0, 0.0_f64);
        for (model, took) in models.iter().zip(&took) {
            let estimate = model.estimate(core);
            let error = off(estimate.instructions, took.instructions);
            sum += error.abs();
            if error.abs() > worst.0.abs() {
                worst = (error, &model.name);
            }
            let open = !core.has_floats() && model.kernels.iter().any(|kernel| kernel.is_hidden());
            if error.abs() > if open { MOST_OPEN } else { MOST_INSTRUCTIONS } {
                problems.push(format!(
                    "{}, {}: {} instructions estimated, {} counted: {:+.1} %",
                    board.core,
                    model.name,
                    estimate.instructions,
                    took.instructions,
                    100.0 * error
                ));
            }
            // Scratch and outputs are as long as the model says; the part has found them long enough.
            let buffers = (estimate.scratch_bytes + estimate.output_bytes) as u64;
            // The stack of this program, which has a frame of its own for each kind of numbers; `check_ways` has those of users.
            let stack = model.kernels.iter().map(|&kernel| core.stack_bytes(kernel)).max().unwrap_or(0);
            let estimated = u64::from(stack) + buffers;
            let ram = off(estimated, took.stack + buffers);
            worst_ram = if ram.abs() > worst_ram.abs() { ram } else { worst_ram };
            let bytes = estimated.abs_diff(took.stack + buffers);
            if ram.abs() > MOST_BYTES && bytes > FRAME {
                problems.push(format!(
                    "{}, {}: {estimated} bytes of RAM estimated, {} taken: {:+.1} %",
                    board.core,
                    model.name,
                    took.stack + buffers,
                    100.0 * ram
                ));
            }
        }
        println!(
            "{:<11} {:>6} {:>20.1} % {:>16.2} % {:>22.1} %   ({})",
            board.core,
            models.len(),
            100.0 * worst.0,
            100.0 * sum / models.len() as f64,
            100.0 * worst_ram,
            worst.1
        );
    }
    Ok(problems)
}

/// How far an estimate is from what was measured, as a part of that.
pub(crate) fn off(estimate: u64, measured: u64) -> f64 {
    estimate as f64 / measured.max(1) as f64 - 1.0
}

impl Drawn {
    pub(crate) fn estimate(&self, core: Core) -> Estimate {
        self.read(
            |inputs, outputs| {
                // The loop has ReLU, as a hidden layer; an estimate takes a last layer for one without.
                let relu = Around::of_dense_floats(outputs, true).price(core, Numbers::Floats);
                let mut estimate = Estimate::of_dense([(inputs, outputs)], Numbers::Floats, core);
                estimate.instructions += relu / tamis::price::PER_INSTRUCTION;
                estimate
            },
            |view| Estimate::of_floats(&view, core),
            |view| Estimate::of_integers(&view, core),
        )
    }
}

/// Runs all models on a board, as many at a time as its flash holds.
fn measure(board: &Board, plugin: &Path, models: &[Drawn], name: &str) -> Result<Vec<Took>, Stop> {
    let image = qemu::plain_image(board, "costs");
    let region = board.models();
    let mut all = Vec::new();
    for (bytes, batch) in draw::batches(models, region.length as usize) {
        let path = root().join(WORK).join(format!("{}-{name}.bin", board.core));
        fs::write(&path, bytes).map_err(|error| Stop::Failed(format!("{}: {error}", path.display())))?;
        let loader = format!("loader,file={},addr={:#x},force-raw=on", path.display(), region.origin);
        let ran = qemu::start(board, &image, name, plugin, &["-device".into(), loader])?;
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
    let lines: Vec<_> = log.lines().filter_map(|line| line.strip_prefix("model digest=0x")).collect();
    let counts: Vec<u64> = counts
        .lines()
        .filter_map(|line| line.strip_prefix("insns=")?.split(' ').next()?.parse().ok())
        .collect();
    if [lines.len(), counts.len()] != [models.len(); 2] || log.lines().last() != Some("done") {
        let found = format!("{} lines and {} counts for {} models", lines.len(), counts.len(), models.len());
        return Err(format!("{core}: {found}\n{log}"));
    }
    let joined = lines.iter().zip(counts).zip(models);
    joined
        .map(|((line, instructions), model)| {
            let wrong =
                || format!("{core}, {}: {line}, the host's digest is {:08x}", model.name, model.digest);
            let (digest, stacks) = line.split_once(" stack=").ok_or_else(wrong)?;
            let (stack, alone) = stacks.split_once(" alone=").ok_or_else(wrong)?;
            let same = u32::from_str_radix(digest, 16) == Ok(model.digest);
            let bytes = |text: &str| text.parse().ok().filter(|_| same).ok_or_else(wrong);
            Ok(Took { instructions, stack: bytes(stack)?, alone: bytes(alone)? })
        })
        .collect()
}

/// Where the prices of a kernel start among all that are fitted.
fn place(kernel: Kernel) -> usize {
    2 * Around::COUNT + Work::COUNT * kernel.place()
}

fn around(numbers: Numbers) -> usize {
    if numbers == Numbers::Floats { 0 } else { Around::COUNT }
}

/// Prices in instructions, and how far each model is from them.
fn fitted(models: &[Drawn], took: &[Took]) -> (Vec<f64>, Vec<f64>) {
    let width = 2 * Around::COUNT + Work::COUNT * Kernel::COUNT;
    let row = |model: &Drawn| {
        let counts = model.counts();
        let mut row = vec![0.0; width];
        let from = around(counts.numbers);
        row[from..].iter_mut().zip(counts.around.0).for_each(|(sum, count)| *sum += count as f64);
        for (kernel, work) in counts.layers {
            row[place(kernel)..].iter_mut().zip(work.0).for_each(|(sum, count)| *sum += count as f64);
        }
        row
    };
    let rows: Vec<Vec<f64>> = models.iter().map(row).collect();
    let totals: Vec<f64> = took.iter().map(|took| took.instructions as f64).collect();
    let prices = fit::prices(&rows, &totals);
    let errors = rows.iter().zip(&totals).map(|(row, total)| {
        let sum: f64 = row.iter().zip(&prices).map(|(count, price)| count * price).sum();
        sum / total - 1.0
    });
    let errors = errors.collect();
    (prices, errors)
}

/// Adds what the images and the stacks say.
fn sized(
    board: &Board,
    prices: &[f64],
    models: &[Drawn],
    took: &[Took],
    ways: ways::fit::Prices,
) -> Result<Measured, Stop> {
    let size = |name: &str| qemu::flash(&qemu::plain_image(board, &format!("flash-{name}")));
    let empty = size("empty")?;
    let deepest = |kernel: Kernel, stack: fn(&Took) -> u64| {
        // No other kernel may run; but what is behind a hidden layer is never alone.
        let alone = |model: &Drawn| {
            model.kernels == [kernel] || kernel.is_hidden() && model.kernels.contains(&kernel)
        };
        let of = models.iter().zip(took).filter(|(model, _)| alone(model));
        of.map(|(_, took)| stack(took)).max().unwrap_or(0)
    };
    Ok(Measured {
        core: board.core,
        startup: empty,
        plain: size("dense-floats")?.saturating_sub(empty),
        ways,
        stack: Kernel::all().map(|kernel| deepest(kernel, |took| took.stack)).collect(),
        alone: Kernel::all().map(|kernel| deepest(kernel, |took| took.alone)).collect(),
        around: [Numbers::Floats, Numbers::Integers]
            .map(|numbers| prices[around(numbers)..][..Around::COUNT].to_vec()),
        work: Kernel::all().map(|kernel| prices[place(kernel)..][..Work::COUNT].to_vec()).collect(),
    })
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
        let line = |model: &Drawn| format!("model digest=0x{:08x} stack=700 alone=90\n", model.digest);
        let log = format!("{}{}done\n", line(models[0]), line(models[1]));
        let counts = "insns=10 loads=1 stores=1\ninsns=20 loads=1 stores=1\n";
        let took = parse("core", &log, counts, &models).unwrap();
        assert_eq!((took[1].instructions, took[1].stack, took[1].alone), (20, 700, 90));
        for (wrong, counts) in [
            (log.replace("done\n", ""), counts),
            (log.clone(), "insns=10\n"),
            (log.replace("0x", "0x1"), counts),
        ] {
            assert!(parse("core", &wrong, counts, &models).is_err(), "{wrong}");
        }
    }
}
