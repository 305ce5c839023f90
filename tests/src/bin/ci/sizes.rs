//! What a way of predicting takes in flash: the sections of a program that does only that, less
//! those of one that does nothing.

use crate::command::root;
use crate::elf;
use crate::part::Stop;
use std::fmt::Write as _;
use std::fs;

/// The board that is measured, whose image is at full optimisation.
pub(crate) const TARGET: &str = "thumbv7em-none-eabihf";
const NONE: &str = "size-none";

/// A program and what it may take.
#[derive(Debug)]
pub(crate) struct Limit {
    pub(crate) program: &'static str,
    /// Nonzeros of its model.
    nonzeros: u64,
    /// Most bytes of instructions.
    code: u64,
    /// Most bytes of constants: tables, layers and what else the model takes.
    data: u64,
}

const fn limit(program: &'static str, nonzeros: u64, code: u64, data: u64) -> Limit {
    Limit { program, nonzeros, code, data }
}

/// To measure another program, add an entry. A model of integers takes at most 2.2 bytes a nonzero
/// and 1200 of code; the layers, about 70 bytes each, are constants where they are read in a loop.
pub(crate) const LIMITS: &[Limit] = &[
    limit("size-blocks", 1000, 1100, 2200),
    limit("size-tables", 1000, 1100, 2100),
    limit("size-tables-500", 500, 1100, 1100),
    limit("size-tables-200", 200, 1100, 500),
    limit("size-embedded", 1000, 1100, 2150),
    limit("size-straight", 1000, 10_500, 0),
    limit("size-floats", 1000, 1350, 5150),
    limit("size-file", 1000, 10_300, 3000),
    limit("size-file-floats", 1000, 10_048, 6000),
];

/// Names of all programs.
pub(crate) fn programs() -> impl Iterator<Item = &'static str> {
    LIMITS.iter().map(|limit| limit.program).chain([NONE])
}

/// Bytes of instructions and of constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    code: u64,
    data: u64,
}

/// Measures the images in a folder, prints a table, and gives what is too large.
pub(crate) fn check(images: &str) -> Result<Vec<String>, Stop> {
    let size = |program: &str| {
        let path = root().join(images).join(TARGET).join("release").join(program);
        let image = fs::read(&path)
            .map_err(|error| Stop::Failed(format!("{}: {error}", path.display())))?;
        let section = |name| elf::section_bytes(&image, name);
        let sizes = section(".text").zip(section(".rodata").or(Some(0)));
        let (code, data) =
            sizes.ok_or_else(|| Stop::Failed(format!("{}: no ELF", path.display())))?;
        Ok(Size { code, data: data + section(".data").unwrap_or(0) })
    };
    let none = size(NONE)?;
    let (mut text, mut problems) = (String::new(), Vec::new());
    let _ = writeln!(
        text,
        "{:<18} {:>8} {:>6} {:>9} {:>11}",
        "program", "nonzeros", "code", "constants", "per nonzero"
    );
    for limit in LIMITS {
        let all = size(limit.program)?;
        let Size { code, data } =
            Size { code: all.code - none.code, data: all.data.saturating_sub(none.data) };
        let per = data as f64 / limit.nonzeros as f64;
        let _ = writeln!(
            text,
            "{:<18} {:>8} {code:>6} {data:>9} {per:>11.2}",
            limit.program, limit.nonzeros
        );
        problems.extend(too_large(limit, code, data));
    }
    print!("{text}");
    Ok(problems)
}

fn too_large(limit: &Limit, code: u64, data: u64) -> Vec<String> {
    let mut problems = Vec::new();
    if code > limit.code {
        problems
            .push(format!("{}: {code} bytes of code, allowed are {}", limit.program, limit.code));
    }
    if data > limit.data {
        problems.push(format!(
            "{}: {data} bytes of constants, allowed are {}",
            limit.program, limit.data
        ));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_constants_have_bounds_of_their_own() {
        let limit = limit("size-x", 100, 1000, 200);
        assert_eq!(too_large(&limit, 1000, 200), Vec::<String>::new());
        assert_eq!(too_large(&limit, 1001, 200), ["size-x: 1001 bytes of code, allowed are 1000"]);
        assert_eq!(too_large(&limit, 1, 201), ["size-x: 201 bytes of constants, allowed are 200"]);
    }

    #[test]
    fn integer_models_may_not_exceed_promised_size() {
        let integers = LIMITS.iter().filter(|limit| {
            ["size-blocks", "size-embedded"].contains(&limit.program)
                || limit.program.contains("tables")
        });
        for limit in integers {
            let most = 2.2 * limit.nonzeros as f64 + 1200.0;
            assert!((limit.code + limit.data) as f64 <= most, "{}", limit.program);
        }
    }
}
