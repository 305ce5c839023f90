//! Planted weights must be found again.

use super::failure::Failure;
use tamis::Result as Core;
use tamis::base::budget::{Training, Workspace};
use tamis::base::dims::Dims;
use tamis::base::math::{norm2, sqrt};
use tamis::learn::iht::{self, Params, Refine, Step};
use tamis::network::gates::Gates;
use tamis::network::net::EntriesMut;
use tamis::network::weights::Weights;
use tamis::operator::sensing::{HostSensing, Work, provided};

/// Normalised steps, conjugate gradients on each support.
const PARAMS: Params<'_> = Params {
    step: Step::Normalised,
    refine: Refine::ConjugateGradient { steps: 10, tolerance: 1e-5 },
    must_keep: &[],
};

/// Words that [`recover`] needs: labels, two sparse vectors, and the workspace of a step.
#[must_use]
pub const fn recovery_words(dims: Dims, panel: usize, scratch: usize) -> usize {
    dims.samples + Training::new(dims, dims.samples, panel, scratch).words()
}

/// Measures `planted` under fixed `gates`, solves for it from zero, and returns the error
/// `|w - planted| / |planted|` after at most `steps` steps.
///
/// With fixed gates the problem is the linear one that hard thresholding has its guarantees for, so
/// the support must be found exactly.
///
/// # Errors
/// A call failed, or the support is another.
pub fn recover<S: HostSensing>(
    sensing: &mut S,
    gates: Gates<'_>,
    planted: Weights<'_>,
    steps: u32,
    memory: &mut [u32],
) -> Result<f32, Failure> {
    let dims = Dims::new(sensing.rows(), sensing.inputs(), sensing.blocks(), planted.nnz());
    let budget = Training::new(dims, dims.samples, sensing.panel(), sensing.scratch(dims.samples));
    let mut space = Workspace::new(memory);
    let (labels, mut w, mut next, mut work) = carve(&mut space, &budget).map_err(failed)?;
    provided::forward(sensing, gates, planted, labels).map_err(failed)?;
    let mut len = 0;
    for _ in 0..steps {
        let now = view(planted, &w, len)?;
        let new = EntriesMut { index: &mut *next.0, value: &mut *next.1 };
        len = iht::step(sensing, gates, labels, now, &PARAMS, new, &mut work).map_err(failed)?.nnz;
        core::mem::swap(&mut w, &mut next);
    }
    let found = view(planted, &w, len)?;
    if found.index() != planted.index() {
        let common = found.index().iter().filter(|j| planted.index().contains(j)).count();
        return Err(wrong("planted support", planted.nnz() as f32, common as f32));
    }
    let error = &mut next.1[..];
    error.iter_mut().zip(found.value()).zip(planted.value()).for_each(|((e, a), b)| *e = a - b);
    Ok(sqrt(norm2(error) / norm2(planted.value())))
}

type Sparse<'a> = (&'a mut [u32], &'a mut [f32]);

fn carve<'a>(
    space: &mut Workspace<'a>,
    budget: &Training,
) -> Core<(&'a mut [f32], Sparse<'a>, Sparse<'a>, Work<'a>)> {
    let s = budget.dims.nnz;
    Ok((
        space.floats(budget.dims.samples)?,
        (space.indices(s)?, space.floats(s)?),
        (space.indices(s)?, space.floats(s)?),
        Work {
            residual: space.floats(budget.batch)?,
            panel: space.floats(budget.panel_words())?,
            scratch: space.floats(budget.scratch)?,
            strips: None,
        },
    ))
}

fn view<'w>(like: Weights<'_>, w: &'w Sparse<'_>, len: usize) -> Result<Weights<'w>, Failure> {
    let (index, value) = (w.0.get(..len).unwrap_or(&[]), w.1.get(..len).unwrap_or(&[]));
    Weights::new(like.inputs(), like.hidden(), index, value).map_err(failed)
}

fn failed<E>(error: tamis::Error<E>) -> Failure {
    Failure { check: "recovery", ..Failure::refused(error) }
}

fn wrong(what: &'static str, expected: f32, got: f32) -> Failure {
    Failure { check: "recovery", ..Failure::new(what, 0, expected, got) }
}
