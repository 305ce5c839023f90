//! What every operator of the trait [`Sensing`](tamis::operator::sensing::Sensing) must do, as one
//! table of checks.
//!
//! An operator is held against an *oracle* on the same data, in situations that are drawn from the
//! table of [`Situation`]: kinds of gates, supports and batches. Oracles are the operator's own
//! provided bodies ([`Spy::provided`]) and the reference operator. Every check names a tolerance
//! and why it is what it is; where [`Agreement::Bits`] is claimed there is none.
//!
//! Nothing here allocates or panics, so that the suite runs on parts too: memory is the caller's,
//! [`words`] says how much, and what is wrong comes back as a [`Failure`].

mod checks;
mod device;
mod failure;
mod recovery;
mod registers;
mod situation;
mod spy;
mod trial;

pub use device::Device;
pub use failure::{Agreement, Failure};
pub use recovery::{recover, recovery_words};
pub use registers::{Registers, Transfers};
pub use situation::{Situation, fill_support};
pub use spy::{Calls, Spy};

use core::ops::Range;
use failure::Outcome;
use situation::Vectors;
use tamis::base::budget::Workspace;
use tamis::operator::sensing::HostSensing;
use trial::{Scale, Trial};

/// One entry of the table.
#[derive(Debug)]
pub struct Check<O, S> {
    /// What the failure calls it.
    pub name: &'static str,
    /// The largest difference, relative to the scale that `why` names; none where bits are claimed.
    pub tolerance: f32,
    /// Why the tolerance is what it is.
    pub why: &'static str,
    run: fn(&mut Trial<'_, O, S>, f32) -> Outcome,
}

const OUTPUT: &str =
    "relative to the sum of |w_j| times the largest column norm: roundings of a row, in any order";
const GRADIENT: &str =
    "relative to |v| times the largest column norm: roundings of a column, in any order";

/// The table. `O` is the oracle, `S` the operator.
#[must_use]
pub fn table<O: HostSensing, S: HostSensing>() -> [Check<O, S>; 14] {
    let check = |name, tolerance, why, run| Check { name, tolerance, why, run };
    [
        check(
            "adjoint identity",
            2e-6,
            "relative to |v| sum_j |w_j| |column j|, which bounds every partial sum of either side",
            checks::adjoint_identity,
        ),
        check("apply", 1e-6, OUTPUT, checks::apply),
        check("adjoint", 2e-6, GRADIENT, checks::adjoint),
        check("forward", 1e-6, OUTPUT, checks::forward),
        check("gradient", 2e-6, GRADIENT, checks::gradient),
        check("gradient_at", 2e-6, GRADIENT, checks::gradient_at),
        check(
            "normal_at",
            2e-6,
            "relative to the sum of |w_j| times the largest squared column norm: forward and gradient in a row",
            checks::normal_at,
        ),
        check(
            "diagonal_at",
            2e-6,
            "relative to the largest: sums of one sign, in any order",
            checks::diagonal_at,
        ),
        check("hold", 2e-6, "as the products it announces", checks::hold),
        check("hold_where", 2e-6, "as the products it announces", checks::hold_where),
        check(
            "column_norms",
            2e-6,
            "relative to the largest: sums of one sign, in any order",
            checks::norms,
        ),
        check(
            "step",
            1e-4,
            "of what enters the quotients of step sizes, which refinements multiply; supports must overlap by 9 in 10",
            checks::step,
        ),
        check("reads", 0.0, "counts are exact", checks::reads),
        check("lengths", 0.0, "refused or not", checks::lengths),
    ]
}

/// Words of memory that [`run`] needs for n rows, d inputs, m neurons and the operators' larger
/// [`Sensing::scratch`](tamis::operator::sensing::Sensing::scratch).
#[must_use]
pub const fn words(rows: usize, inputs: usize, hidden: usize, scratch: usize) -> usize {
    let parameters = hidden * inputs;
    let longest = if rows > parameters { rows } else { parameters };
    // Two outputs and a residual; four sparse vectors; a panel or three vectors on the support;
    // scratch.
    2 * (longest + 1) + rows + 8 * parameters + 3 * parameters + scratch
}

/// Holds `sensing` to the table in every `stride`-th situation and returns how many checks passed.
///
/// `oracle` must stand over the same data. Both are left with all rows selected. The shape, the
/// situations and the numbers drawn are functions of the operator's sizes only.
///
/// # Errors
/// The first failure. A failure named "memory" says that `memory` is shorter than [`words`].
pub fn run<O: HostSensing, S: HostSensing>(
    oracle: &mut O,
    sensing: &mut S,
    agreement: Agreement,
    stride: usize,
    memory: &mut [u32],
) -> Result<u32, Failure> {
    let (n, d, m) = (sensing.rows(), sensing.inputs(), sensing.blocks());
    let scratch = sensing.scratch(n).max(oracle.scratch(n));
    let mut passed = 0;
    for situation in Situation::all().step_by(stride.max(1)) {
        let mut space = Workspace::new(memory);
        let vectors = Vectors::carve(&mut space, n, d * m, scratch).map_err(Failure::refused)?;
        let rows = situation.rows(n);
        select(oracle, sensing, rows)?;
        passed += trials(oracle, sensing, situation, agreement, vectors)
            .map_err(|failure| Failure { situation: situation.number(), ..failure })?;
    }
    select(oracle, sensing, 0..n)?;
    Ok(passed)
}

fn select<O: HostSensing, S: HostSensing>(
    oracle: &mut O,
    sensing: &mut S,
    rows: Range<usize>,
) -> Outcome {
    oracle.select(rows.clone()).map_err(Failure::refused)?;
    sensing.select(rows).map_err(Failure::refused)
}

fn trials<O: HostSensing, S: HostSensing>(
    oracle: &mut O,
    sensing: &mut S,
    situation: Situation,
    agreement: Agreement,
    vectors: Vectors<'_>,
) -> Result<u32, Failure> {
    let Vectors { w, other, mut buffers } = vectors;
    let (d, m) = (sensing.inputs(), sensing.blocks());
    let w = situation.weights(d, m, 0, w).map_err(Failure::refused)?;
    let other = situation.weights(d, m, 1, other).map_err(Failure::refused)?;
    let gates = situation.gates(w, other);
    let scale = Scale::measure(oracle, situation, gates, w, &mut buffers)?;
    let mut passed = 0;
    for check in table::<O, S>() {
        let (oracle, sensing, buffers) = (&mut *oracle, &mut *sensing, buffers.reborrow());
        let mut trial = Trial { oracle, sensing, situation, gates, w, agreement, scale, buffers };
        (check.run)(&mut trial, check.tolerance)
            .map_err(|failure| Failure { check: check.name, ..failure })?;
        passed += 1;
    }
    Ok(passed)
}
