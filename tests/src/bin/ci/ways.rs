//! What programs take that have a model in each way of deploying it: a crate of one program each is
//! written, built for every board and run, and its sections and its deepest stack are those of the
//! way, less those of a program that predicts nothing.

pub(crate) mod c;
pub(crate) mod check;
pub(crate) mod fit;
pub(crate) mod programs;

use crate::boards::Board;
use crate::command::{Cmd, each, root};
use crate::cost::{Numbers, Way};
use crate::emulator::{Emulation, Limits, WORK};
use crate::images;
use crate::part::Stop;
use crate::{cross, elf};
use programs::Program;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the crate is written, beside other work.
const FOLDER: &str = "ways";
/// The program without a model.
const NOTHING: &str = "nothing";

/// Bytes of flash and RAM of a model on a board: of the program with it, less those of the one
/// without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) flash: u64,
    pub(crate) ram: u64,
}

/// What every program takes on every board; the order is that of both.
pub(crate) fn measure(
    boards: &[Board],
    plugin: &Path,
    programs: &[Program],
) -> Result<Vec<Vec<Taken>>, Stop> {
    let folder = root().join(WORK).join(FOLDER);
    write(&folder, programs)?;
    let mut targets: Vec<_> = boards.iter().map(|board| board.target).collect();
    targets.dedup();
    let build =
        cross::compiler(&targets)?.build(&targets).words("--quiet --release --manifest-path");
    let build =
        build.args([folder.join("Cargo.toml")]).words("--target-dir").args([folder.join("target")]);
    build.run()?;
    let mut all: Vec<Vec<Taken>> = Vec::new();
    for (at, board) in boards.iter().enumerate() {
        // Boards of one target stand together, and share the image.
        if let Some(before) =
            at.checked_sub(1).filter(|&before| boards[before].target == board.target)
        {
            all.push(all[before].clone());
            continue;
        }
        let take = |program: Option<&Program>, is_c: bool| {
            let name = program.map_or(NOTHING, |program| &program.name);
            let image = match is_c {
                true => c::build(&folder, board, program)?,
                false => folder.join("target").join(board.target).join("release").join(name),
            };
            taken(board, &image, plugin)
        };
        let rust = take(None, false)?;
        let has_c = programs.iter().any(|program| program.way == Way::C);
        let c = if has_c { take(None, true)? } else { rust };
        let took = each(programs, |program| {
            let (is_c, without) = match program.way {
                Way::C => (true, c),
                _ => (false, rust),
            };
            Ok(less(take(Some(program), is_c)?, without, program))
        });
        all.push(took.into_iter().collect::<Result<_, Stop>>()?);
    }
    Ok(all)
}

/// The row is the program's own.
fn less(with: Taken, without: Taken, program: &Program) -> Taken {
    let row = if program.numbers == Numbers::Floats { 4 * program.inputs } else { program.inputs };
    Taken {
        flash: with.flash.saturating_sub(without.flash + row as u64),
        ram: with.ram.saturating_sub(without.ram),
    }
}

/// Sections in flash; static data and the deepest stack.
fn taken(board: &Board, image: &Path, plugin: &Path) -> Result<Taken, Stop> {
    let bytes = images::read(image)?;
    let symbol = |name| {
        let address = elf::address(&bytes, name);
        address.ok_or_else(|| Stop::Failed(format!("{}: no symbol {name}", image.display())))
    };
    let (data, top) = (symbol("__sheap")?, symbol("_stack_start")?);
    let name = image.file_name().map(|name| format!("way-{}", name.display()));
    let (name, more, quiet, limits) = (&*name.unwrap_or_default(), &[][..], true, Limits::USUAL);
    let ran =
        Emulation { board, image, name, plugin, floor: Some(data), more, quiet, limits }.run();
    // The program ends with what it predicted as its status.
    let lowest = match (ran.lowest, ran.ended) {
        (Some(lowest), _) => lowest,
        (None, Err(stop)) => return Err(stop),
        (None, Ok(())) => {
            return Err(Stop::Failed(format!("{}: no stack was measured", image.display())));
        }
    };
    let data = u64::from(data - board.ram.origin);
    Ok(Taken { flash: images::flash(image)?, ram: data + u64::from(top).saturating_sub(lowest) })
}

/// Writes the crate: one program each, and one without a model.
fn write(folder: &Path, programs: &[Program]) -> Result<(), Stop> {
    let fail = |path: &Path, error| Stop::Failed(format!("{}: {error}", path.display()));
    let put = |path: PathBuf, bytes: &[u8]| {
        if fs::read(&path).is_ok_and(|kept| kept == bytes) {
            return Ok(());
        }
        fs::write(&path, bytes).map_err(|error| fail(&path, error))
    };
    let bins = folder.join("src/bin");
    let models = folder.join("models");
    let _ = fs::remove_dir_all(&bins);
    for folder in [&bins, &models] {
        fs::create_dir_all(folder).map_err(|error| fail(folder, error))?;
    }
    let source = root().join("tests/firmware");
    put(folder.join("Cargo.toml"), programs::manifest(&root()).as_bytes())?;
    let lock = source.join("Cargo.lock");
    if !folder.join("Cargo.lock").exists() {
        put(folder.join("Cargo.lock"), &images::read(&lock)?)?;
    }
    put(bins.join(format!("{NOTHING}.rs")), programs::nothing(&root()).as_bytes())?;
    for program in programs {
        put(models.join(format!("{}.tamis", program.name)), &program.file)?;
    }
    for program in programs {
        match program.way {
            Way::C => c::export(folder, program)?,
            Way::File | Way::Embedded => {
                put(
                    bins.join(format!("{}.rs", program.name)),
                    program.source(&root(), folder).as_bytes(),
                )?;
            }
            Way::Rust | Way::Straight => {
                let to = models.join(format!("{}.rs", program.name));
                let straight: &[&str] =
                    if program.way == Way::Straight { &["--straight-line"] } else { &[] };
                let _ = fs::remove_file(&to);
                export(folder, program, "rust", &to, straight)?;
                put(
                    bins.join(format!("{}.rs", program.name)),
                    program.source(&root(), folder).as_bytes(),
                )?;
            }
        }
    }
    Ok(())
}

/// `tamis export` of a program's model.
fn export(
    folder: &Path,
    program: &Program,
    format: &str,
    to: &Path,
    more: &[&str],
) -> Result<(), Stop> {
    let model = folder.join("models").join(format!("{}.tamis", program.name));
    let tool = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.join("tamis")));
    let tool =
        tool.ok_or_else(|| Stop::Failed("the folder of this program is not known".into()))?;
    Cmd::new(tool)
        .args(["export".as_ref(), model.as_os_str(), "--format".as_ref(), format.as_ref()])
        .args(["--output".as_ref(), to.as_os_str()])
        .args(more)
        .log(&root().join(WORK).join("export.log"))
        .quietly()
        .run()
}

/// Builds the program that exports, beside this one: as the tests of the workspace do, whose
/// dependencies have more features than those of the program alone, so that the part `host` has
/// compiled all of it.
pub(crate) fn build_tool() -> Result<(), Stop> {
    Cmd::new("cargo").words("test --quiet --workspace --no-run --test import_memory").run()
}
