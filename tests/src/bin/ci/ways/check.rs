//! Models that no price comes from, in every way of deploying them, against what `tamis inspect`
//! says.

use super::programs::Program;
use crate::boards::BOARDS;
use crate::command::root;
use crate::cost::{Core, Way};
use crate::costs::draw::{Besides, Drawn, FloatLayer, planned, planned_floats};
use crate::costs::{MOST_BYTES, off};
use crate::images;
use crate::part::Stop;
use std::path::Path;
use tamis::base::rng::{Rng, stream};
use tamis::infer::quantised::Encoding;

/// Of `tests/src/deployed`: of integers in one encoding and in two, of floats in windows and in
/// rows.
const MODELS: &[(&str, &[Way])] = &[
    ("tables_1000", &Way::ALL),
    ("tables_500", &[Way::File, Way::Embedded, Way::Straight, Way::C]),
    ("blocks_1000", &[Way::Rust, Way::C]),
    ("floats_1000", &[Way::File, Way::Rust, Way::C]),
    ("floats_500", &[Way::Embedded]),
    ("rows_500", &[Way::File, Way::Embedded, Way::C]),
];
/// Seed of the models that are drawn; no price is fitted to those.
const SEED: u64 = 29;
/// What every run checks; `cargo ci estimates` checks all, which takes minutes.
pub(crate) const SOME: &[Core] = &[Core::CortexM4F];

/// Models of other shapes, encodings and numbers than those that prices come from.
fn drawn() -> Vec<(&'static [Way], Drawn)> {
    use Encoding::{Blocks, Dense, Mask};
    const TABLES: &[Way] = &[Way::Embedded, Way::Rust, Way::C];
    let mut rng = Rng::new(SEED, stream::USER);
    let plain = Besides::PLAIN;
    let (biases, sum) = (Besides { biases: true, ..plain }, Besides { sum: true, ..plain });
    let own = Besides { own_factors: true, scaled: true, ..plain };
    type Plan = (&'static [Way], &'static [usize], &'static [Encoding], f32, Besides);
    let trained = Besides { trained: true, ..plain };
    let integers: [Plan; 10] = [
        (TABLES, &[784, 30, 10], &[Blocks, Blocks], 0.03, plain),
        (TABLES, &[300, 10, 10], &[Mask, Mask], 0.08, plain),
        (&[Way::File, Way::Embedded, Way::C], &[500, 40, 5], &[Blocks, Mask], 0.04, biases),
        (TABLES, &[400, 24, 12, 10], &[Blocks, Mask, Dense], 0.05, plain),
        (&[Way::File, Way::Embedded], &[200, 70, 4], &[Blocks, Dense], 0.05, own),
        (TABLES, &[150, 40], &[Mask], 0.1, sum),
        (&[Way::Straight], &[784, 16, 10], &[Mask, Mask], 0.05, biases),
        (&[Way::Straight], &[200, 20, 8], &[Mask, Mask], 0.1, own),
        (&[Way::Straight], &[784, 27, 10], &[Mask, Mask], 0.022, trained),
        (
            &[Way::Straight],
            &[64, 30, 4],
            &[Blocks, Dense],
            0.2,
            Besides { biases: true, ..trained },
        ),
    ];
    let mut models: Vec<_> = integers
        .map(|(ways, widths, kinds, density, besides)| {
            (ways, planned(&mut rng, widths, kinds, density, besides))
        })
        .into();
    type Floats = (&'static [Way], &'static [usize], &'static [FloatLayer], f32, bool);
    let floats: [Floats; 3] = [
        (TABLES, &[784, 30, 10], &[FloatLayer::Rows, FloatLayer::Rows], 0.03, false),
        (
            &[Way::File, Way::Embedded, Way::Rust],
            &[400, 12, 4],
            &[FloatLayer::Windows, FloatLayer::Windows],
            0.1,
            false,
        ),
        (TABLES, &[500, 24], &[FloatLayer::Windows], 0.05, true),
    ];
    models.extend(floats.map(|(ways, widths, kinds, density, sum)| {
        (ways, planned_floats(&mut rng, widths, kinds, density, sum))
    }));
    models
}

/// What a bound of flash may be above what was taken, as a fraction of that, and one of RAM in bytes.
const MOST_ABOVE: f64 = 0.25;
const MOST_BYTES_ABOVE: u64 = 512;
/// Bytes of stack that frames may differ by, where a twentieth is less: cores cut them to 8 or 16.
const FRAME: u64 = 24;

/// Every estimate for some cores, but for a way that is left out, that is off by more than a
/// twentieth, of RAM by more than a frame too, and every bound that is below.
pub(crate) fn check(
    plugin: &Path,
    cores: &[Core],
    left_out: Option<Way>,
) -> Result<Vec<String>, Stop> {
    let boards: Vec<_> = BOARDS
        .iter()
        .filter(|board| cores.iter().any(|core| core.name() == board.core))
        .copied()
        .collect();
    let mut entries = Vec::new();
    for (name, ways) in MODELS {
        let bytes = images::read(&root().join(format!("tests/src/deployed/{name}.tamis")))?;
        let model = Drawn::of_file((*name).to_owned(), bytes);
        for &way in *ways {
            let program = Program::of(format!("{name}_{}", way.name()), way, &model);
            entries.push((program, model.clone()));
        }
    }
    for (at, (ways, model)) in drawn().into_iter().enumerate() {
        entries.extend(ways.iter().map(|way| {
            (Program::of(format!("drawn_{at}_{}", way.name()), *way, &model), model.clone())
        }));
    }
    entries.retain(|(program, _)| Some(program.way) != left_out);
    let programs: Vec<_> = entries.iter().map(|(program, _)| program.clone()).collect();
    let took = super::measure(&boards, plugin, &programs)?;
    let mut problems = Vec::new();
    println!(
        "\n{:<11} {:<22} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "core", "model and way", "flash", "linked", "", "RAM", "taken", ""
    );
    for ((board, took), core) in boards.iter().zip(&took).zip(cores) {
        for ((program, model), took) in entries.iter().zip(took) {
            let memory = model.estimate(*core).ways[program.way as usize].unwrap_or_default();
            let both = [
                ("flash", memory.flash_bytes() as u64, took.flash),
                ("RAM", memory.ram_bytes() as u64, took.ram),
            ];
            let errors = both.map(|(_, estimated, taken)| 100.0 * off(estimated, taken));
            println!(
                "{:<11} {:<22} {:>8} {:>8} {:>+6.1} % {:>8} {:>8} {:>+6.1} %",
                board.core,
                program.name,
                both[0].1,
                both[0].2,
                errors[0],
                both[1].1,
                both[1].2,
                errors[1]
            );
            let far = both.iter().zip(errors).filter(|(both, error)| {
                let (what, estimated, taken) = **both;
                if memory.is_bound {
                    let far = match what {
                        "flash" => *error > 100.0 * MOST_ABOVE,
                        _ => estimated > taken + MOST_BYTES_ABOVE,
                    };
                    return estimated < taken || far;
                }
                let frame = if what == "flash" { 0 } else { FRAME };
                error.abs() > 100.0 * MOST_BYTES && estimated.abs_diff(taken) > frame
            });
            problems.extend(far.map(|((what, estimated, taken), error)| {
                let name = &program.name;
                format!(
                    "{}, {name}: {estimated} bytes of {what} estimated, {taken} taken: {error:+.1} %",
                    board.core
                )
            }));
        }
    }
    Ok(problems)
}
