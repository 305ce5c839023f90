//! A table as people have it, from a seed: numbers in several units, text, missing cells, and
//! classes by name.

use std::io::{self, Write};

use tamis::base::rng::{Rng, stream};

/// The first line.
pub(crate) const COLUMNS: &str = "age,work,education,marital,occupation,sex,gain,hours,income";

/// Columns beside the target.
pub(crate) const INPUTS: usize = 8;

const WORK: [&str; 5] = ["Private", "Self-employed", "Government", "Without pay", "?"];
const EDUCATION: [&str; 6] =
    ["Some school", "High school", "College", "Bachelors", "Masters", "Doctorate"];
const MARITAL: [&str; 3] = ["Married", "Never married", "Divorced"];
const OCCUPATION: [&str; 8] =
    ["Sales", "Craft", "Clerical", "Executive", "Professional", "Service", "Farming", "Transport"];

/// Writes so many rows of people and what they earn, as CSV: eight columns, four of text, and the
/// class `<=50K` or `>50K`. About one cell of `work` in 20 is `?`, one of `hours` in 15 empty.
///
/// # Errors
/// Those of `out`.
///
/// ```
/// let mut table = Vec::new();
/// tamis_host::data::mixed::write(3, 0, &mut table)?;
/// let text = String::from_utf8(table).unwrap();
/// assert!(text.starts_with("age,work,") && text.lines().count() == 4);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn write(rows: usize, seed: u64, out: &mut impl Write) -> io::Result<()> {
    let mut rng = Rng::new(seed, stream::DATA);
    writeln!(out, "{COLUMNS}")?;
    for _ in 0..rows {
        let mut one_of = |of: &[&'static str]| {
            let k = rng.below(of.len() as u32) as usize;
            (k, of[k])
        };
        let (education, school) = one_of(&EDUCATION);
        let (married, marital) = one_of(&MARITAL);
        let (occupation, job) = one_of(&OCCUPATION);
        let (_, sex) = one_of(&["Male", "Female"]);
        let age = 17 + rng.below(60);
        let work = match rng.below(20) {
            0 => WORK[4],
            k @ 1..=3 => WORK[k as usize],
            _ => WORK[0],
        };
        let gain = if rng.below(12) == 0 { 500 * rng.below(30) } else { 0 };
        let hours = (40.0 + 8.0 * rng.normal()).round().clamp(5.0, 90.0);
        // Log-odds of earning more.
        let odds = 0.9 * education as f32
            + 0.05 * (age as f32 - 40.0)
            + 0.06 * (hours - 40.0)
            + if married == 0 { 2.0 } else { 0.0 }
            + if [3, 4].contains(&occupation) { 1.2 } else { 0.0 }
            + gain as f32 / 2500.0
            - 4.5
            + 0.5 * rng.normal();
        let income = if odds > 0.0 { ">50K" } else { "<=50K" };
        let hours = if rng.below(15) == 0 { String::new() } else { hours.to_string() };
        writeln!(out, "{age},{work},{school},{marital},{job},{sex},{gain},{hours},{income}")?;
    }
    Ok(())
}
