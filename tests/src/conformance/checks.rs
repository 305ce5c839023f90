//! The checks of the table.

use super::Spy;
use super::failure::{Failure, Outcome};
use super::situation::Buffers;
use super::trial::{Scale, Trial, agree, call, count, is_within, largest, part, refused};
use tamis::base::budget::Training;
use tamis::base::dims::Dims;
use tamis::base::math::{dot, sqrt};
use tamis::learn::iht::{self, Info, Params, Refine, Step};
use tamis::network::gates::Gates;
use tamis::network::net::EntriesMut;
use tamis::network::weights::{Block, Weights};
use tamis::operator::machine::{Host, Machine};
use tamis::operator::sensing::{HostSensing, Work};

/// Step rules, each with a refinement.
const RULES: [Params<'_>; 3] = [
    Params {
        step: Step::Normalised,
        refine: Refine::Armijo { steps: 3, decrease: 0.9, halvings: 10 },
        must_keep: &[],
    },
    Params { step: Step::Fixed(0.5), refine: Refine::None, must_keep: &[] },
    Params {
        step: Step::Theory { beta: 4.0 },
        refine: Refine::ConjugateGradient { steps: 2, tolerance: 0.1 },
        must_keep: &[],
    },
];

/// Fraction of a support that must be common where it need not be the same.
const OVERLAP: f32 = 0.9;

/// `<A_i w_i, v> = <w_i, A_i^T v>` for every block that has weights.
pub(super) fn adjoint_identity<O: HostSensing, S: HostSensing>(
    t: &mut Trial<'_, O, S>,
    tolerance: f32,
) -> Outcome {
    let (n, d, _) = t.sizes();
    let v = part(t.buffers.v, n)?;
    let image = part(t.buffers.expected, n)?;
    let (back, norms) = part(t.buffers.panel, 2 * d)?.split_at_mut(d);
    for block in t.w.blocks() {
        let i = block.neuron();
        image.fill(0.0);
        back.fill(0.0);
        call(t.sensing.apply(t.gates, block, image))?;
        call(t.sensing.adjoint(t.gates, i, v, back))?;
        call(t.sensing.column_norms(t.gates, i..i + 1, norms, t.buffers.scratch))?;
        let (left, right) = (dot(image, v), block.dot(back));
        norms.iter_mut().for_each(|norm| *norm = sqrt(*norm));
        let bound: f32 =
            block.entries().map(|(j, w)| w.abs() * norms.get(j).copied().unwrap_or(0.0)).sum();
        let allowed = tolerance * bound * t.scale.v;
        if (left - right).abs() > allowed || !left.is_finite() {
            return Err(Failure::new("<A w, v> - <w, A^T v>", i, left, right));
        }
    }
    Ok(())
}

pub(super) fn apply<O: HostSensing, S: HostSensing>(
    t: &mut Trial<'_, O, S>,
    tolerance: f32,
) -> Outcome {
    let (n, ..) = t.sizes();
    let limit = t.allow_output(tolerance * t.scale.output());
    for block in t.w.blocks() {
        let (expected, got) = (part(t.buffers.expected, n)?, part(t.buffers.got, n)?);
        // Products add to what is there.
        expected.fill(0.5);
        got.fill(0.5);
        call(t.oracle.apply(t.gates, block, expected))?;
        call(t.sensing.apply(t.gates, block, got))?;
        agree("A_i w_i", expected, got, limit)?;
    }
    Ok(())
}

pub(super) fn adjoint<O: HostSensing, S: HostSensing>(
    t: &mut Trial<'_, O, S>,
    tolerance: f32,
) -> Outcome {
    let (n, d, m) = t.sizes();
    let limit = t.allow(tolerance * t.scale.gradient());
    let v = part(t.buffers.v, n)?;
    let (expected, got) = (part(t.buffers.expected, d)?, part(t.buffers.got, d)?);
    for i in 0..m {
        expected.fill(0.5);
        got.fill(0.5);
        call(t.oracle.adjoint(t.gates, i, v, expected))?;
        call(t.sensing.adjoint(t.gates, i, v, got))?;
        agree("A_i^T v", expected, got, limit)?;
    }
    Ok(())
}

pub(super) fn forward<O: HostSensing, S: HostSensing>(
    t: &mut Trial<'_, O, S>,
    tolerance: f32,
) -> Outcome {
    let (n, ..) = t.sizes();
    let limit = t.allow_output(tolerance * t.scale.output());
    let (expected, got) = (part(t.buffers.expected, n)?, part(t.buffers.got, n)?);
    // Bulk operations overwrite.
    got.fill(f32::NAN);
    call(t.oracle.forward(t.gates, t.w, expected))?;
    call(t.sensing.forward(t.gates, t.w, got))?;
    agree("A w", expected, got, limit)
}

/// In panels of 1, 3 and m blocks.
pub(super) fn gradient<O: HostSensing, S: HostSensing>(
    t: &mut Trial<'_, O, S>,
    tolerance: f32,
) -> Outcome {
    let (n, d, m) = t.sizes();
    let limit = t.allow(tolerance * t.scale.gradient());
    let v = part(t.buffers.v, n)?;
    let (expected, got) = (part(t.buffers.expected, m * d)?, part(t.buffers.got, m * d)?);
    call(t.oracle.gradient(t.gates, v, 0..m, expected))?;
    for p in [1, 3, m] {
        got.fill(f32::NAN);
        for (first, panel) in (0..m).step_by(p).zip(got.chunks_mut(p * d)) {
            call(t.sensing.gradient(t.gates, v, first..(first + p).min(m), panel))?;
        }
        agree("A^T r", expected, got, limit)?;
    }
    Ok(())
}

pub(super) fn gradient_at<O: HostSensing, S: HostSensing>(
    t: &mut Trial<'_, O, S>,
    tolerance: f32,
) -> Outcome {
    let (n, ..) = t.sizes();
    let (limit, support) = (t.allow(tolerance * t.scale.gradient()), t.w.index());
    let v = part(t.buffers.v, n)?;
    let (expected, got) =
        (part(t.buffers.expected, support.len())?, part(t.buffers.got, support.len())?);
    got.fill(f32::NAN);
    call(t.oracle.gradient_at(t.gates, support, v, expected, t.buffers.scratch))?;
    call(t.sensing.gradient_at(t.gates, support, v, got, t.buffers.scratch))?;
    agree("A_S^T r", expected, got, limit)
}

pub(super) fn normal_at<O: HostSensing, S: HostSensing>(
    t: &mut Trial<'_, O, S>,
    tolerance: f32,
) -> Outcome {
    let limit = t.allow(tolerance * t.scale.output() * t.scale.column);
    let (expected, got) = (part(t.buffers.expected, t.w.nnz())?, part(t.buffers.got, t.w.nnz())?);
    got.fill(f32::NAN);
    call(t.oracle.normal_at(t.gates, t.w, expected, t.buffers.scratch))?;
    call(t.sensing.normal_at(t.gates, t.w, got, t.buffers.scratch))?;
    agree("A_S^T A_S p", expected, got, limit)
}

pub(super) fn diagonal_at<O: HostSensing, S: HostSensing>(
    t: &mut Trial<'_, O, S>,
    tolerance: f32,
) -> Outcome {
    let (limit, support) = (t.allow(tolerance * t.scale.column * t.scale.column), t.w.index());
    let (expected, got) =
        (part(t.buffers.expected, support.len())?, part(t.buffers.got, support.len())?);
    got.fill(f32::NAN);
    call(t.oracle.diagonal_at(t.gates, support, expected, t.buffers.scratch))?;
    call(t.sensing.diagonal_at(t.gates, support, got, t.buffers.scratch))?;
    agree("diag(A_S^T A_S)", expected, got, limit)
}

/// Products on one support in a row: as conjugate gradients need them, an operator may prepare for.
const PRODUCTS: usize = 8;

/// Held gates: products again and again on the support that they are held for, on a part of it, on
/// another batch, and once others are held.
pub(super) fn hold<O: HostSensing, S: HostSensing>(
    t: &mut Trial<'_, O, S>,
    tolerance: f32,
) -> Outcome {
    let (n, d, m) = t.sizes();
    let gates = t.gates;
    t.gates = call(t.sensing.hold(gates, t.w.index()))?;
    for _ in 0..PRODUCTS {
        normal_at(t, tolerance)?;
    }
    gradient_at(t, tolerance)?;
    diagonal_at(t, tolerance)?;
    forward(t, tolerance)?;
    let all = t.w;
    let kept = all.index().iter().take_while(|&&j| (j as usize) < m * d / 2).count();
    let (index, value) = (all.index().get(..kept), all.value().get(..kept));
    t.w = Weights::new(d, m, index.unwrap_or(&[]), value.unwrap_or(&[])).unwrap_or(all);
    normal_at(t, tolerance)?;
    t.w = all;
    let (rows, other) = (t.situation.rows(t.sensing.rows()), t.sensing.rows() - n.div_ceil(2));
    for rows in [other..t.sensing.rows(), rows] {
        call(t.oracle.select(rows.clone()))?;
        call(t.sensing.select(rows))?;
        // Columns have another norm on other rows.
        t.scale = Scale::measure(t.oracle, t.situation, t.gates, t.w, &mut t.buffers)?;
        gradient_at(t, tolerance)?;
        diagonal_at(t, tolerance)?;
        normal_at(t, tolerance)?;
        // The rows are others now, the gates are not.
        t.gates = call(t.sensing.hold(gates, t.w.index()))?;
        for _ in 0..PRODUCTS {
            normal_at(t, tolerance)?;
        }
    }
    // Other gates are held now, and these are what they were.
    let _ = call(t.sensing.hold(Gates::seeded(1), t.w.index()))?;
    normal_at(t, tolerance)?;
    gradient_at(t, tolerance)?;
    diagonal_at(t, tolerance)
}

/// Held gates, closed where there is no residual: products of the other rows alone, again and again;
/// and those of all rows once the same gates are held as they are.
pub(super) fn hold_where<O: HostSensing, S: HostSensing>(
    t: &mut Trial<'_, O, S>,
    tolerance: f32,
) -> Outcome {
    let (n, ..) = t.sizes();
    let (gates, w, s) = (t.gates, t.w, t.w.nnz());
    let limit = t.allow(tolerance * t.scale.output() * t.scale.column);
    let b = &mut t.buffers;
    let (z, r) = (part(b.expected, n)?, part(b.got, n)?);
    r.copy_from_slice(part(b.v, n)?);
    r.iter_mut().step_by(3).for_each(|r| *r = 0.0);
    let Some(held) = call(t.sensing.hold_where(gates, w.index(), r))? else { return Ok(()) };
    call(t.oracle.forward(gates, w, z))?;
    Host.keep(z, r);
    let (expected, got) = part(b.panel, 2 * s)?.split_at_mut(s);
    call(t.oracle.gradient_at(gates, w.index(), z, expected, b.scratch))?;
    for _ in 0..PRODUCTS {
        got.fill(f32::NAN);
        call(t.sensing.normal_at(held, w, got, b.scratch))?;
        agree("A_S^T A_S p where r is not 0", expected, got, limit)?;
    }
    if let [w] = w.value() {
        call(t.sensing.diagonal_at(held, t.w.index(), got, b.scratch))?;
        got.iter_mut().for_each(|diagonal| *diagonal *= w);
        agree("diag(A_S^T A_S) p where r is not 0", expected, got, limit)?;
    }
    t.gates = call(t.sensing.hold(gates, w.index()))?;
    normal_at(t, tolerance)?;
    diagonal_at(t, tolerance)
}

pub(super) fn norms<O: HostSensing, S: HostSensing>(
    t: &mut Trial<'_, O, S>,
    tolerance: f32,
) -> Outcome {
    let (_, d, m) = t.sizes();
    let limit = t.allow(tolerance * t.scale.column * t.scale.column);
    let (expected, got) = (part(t.buffers.expected, m * d)?, part(t.buffers.got, m * d)?);
    call(t.oracle.column_norms(t.gates, 0..m, expected, t.buffers.scratch))?;
    for p in [1, m] {
        got.fill(f32::NAN);
        for (first, panel) in (0..m).step_by(p).zip(got.chunks_mut(p * d)) {
            call(t.sensing.column_norms(
                t.gates,
                first..(first + p).min(m),
                panel,
                t.buffers.scratch,
            ))?;
        }
        agree("squared column norms", expected, got, limit)?;
    }
    Ok(())
}

/// A step under every rule with panels of 1, 3 and m blocks, against the oracle's step with its own
/// panel.
pub(super) fn step<O: HostSensing, S: HostSensing>(
    t: &mut Trial<'_, O, S>,
    tolerance: f32,
) -> Outcome {
    let (n, _, m) = t.sizes();
    let (limit, scale) = (t.allow(tolerance), t.scale);
    let s = new_nonzeros(t.w);
    for params in &RULES {
        // Unit columns of one row are all the same: which are largest is a matter of rounding.
        if n == 1 && limit.is_some() && matches!(params.step, Step::Theory { .. }) {
            continue;
        }
        let b = &mut t.buffers;
        let labels = part(b.v, n)?;
        let mut memory = Memory { residual: b.got, panel: b.panel, scratch: b.scratch };
        let room = first_entries(&mut b.first, s)?;
        let expected = one_step(t.oracle, t.gates, labels, t.w, params, room, &mut memory)?;
        for p in [1, 3.min(m), m] {
            let mut sensing = Spy::with_panel(&mut *t.sensing, p);
            let room = first_entries(&mut b.second, s)?;
            let got = one_step(&mut sensing, t.gates, labels, t.w, params, room, &mut memory)?;
            steps_agree(&expected, &got, limit, scale)?;
        }
    }
    Ok(())
}

/// Steps use bulk operations only, and report how often they read the data. Nothing is learned from
/// zero labels.
pub(super) fn reads<O: HostSensing, S: HostSensing>(t: &mut Trial<'_, O, S>, _: f32) -> Outcome {
    let (n, d, m) = t.sizes();
    let s = new_nonzeros(t.w);
    for params in &RULES {
        let b = &mut t.buffers;
        let labels = part(b.v, n)?;
        let mut memory = Memory { residual: b.got, panel: b.panel, scratch: b.scratch };
        let mut spy = Spy::new(&mut *t.sensing);
        let room = first_entries(&mut b.first, s)?;
        let info = one_step(&mut spy, t.gates, labels, t.w, params, room, &mut memory)?.info;
        let c = spy.calls;
        count("calls of apply and adjoint", 0, c.apply + c.adjoint)?;
        let is_normalised = matches!(params.step, Step::Normalised);
        // The first support of the normalised rule takes a pass of its own.
        let passes = 1 + usize::from(is_normalised && t.w.nnz() == 0);
        count("gradient passes, in blocks", passes * m, c.gradient_blocks)?;
        let is_theory = matches!(params.step, Step::Theory { .. });
        if !is_theory {
            count("column norms", 0, c.norm_blocks)?;
            count("diagonals", 0, c.diagonal_at)?;
            let reads = c.forward + passes + c.gradient_at + c.normal_at;
            count("reads", reads, info.reads as usize)?;
        }
        labels.fill(0.0);
        let nothing = Weights::empty(d, m);
        let room = first_entries(&mut b.first, s)?;
        let info = one_step(&mut spy, t.gates, labels, nothing, params, room, &mut memory)?.info;
        count("nonzeros from zero labels", 0, info.nnz)?;
        t.situation.rng(2).fill_normal(labels);
    }
    Ok(())
}

/// Arguments of other lengths and blocks that are not there are errors.
pub(super) fn lengths<O: HostSensing, S: HostSensing>(t: &mut Trial<'_, O, S>, _: f32) -> Outcome {
    let (n, d, m) = t.sizes();
    let unit = [0];
    let block = t.w.blocks().next().unwrap_or(Block::unit(0, d, &unit));
    let (gates, w, sensing) = (t.gates, t.w, &mut *t.sensing);
    let Buffers { expected: out, got: long, scratch, .. } = t.buffers.reborrow();
    let at = |len: usize| long.get(..len).ok_or(Failure::new("memory", len, 0.0, 0.0));
    for (wrong, other) in [(n + 1, d + 1), (n - 1, d - 1)] {
        let (v, bad_v) = (at(n)?, at(wrong)?);
        let rows = part(out, wrong)?;
        refused("apply, output", sensing.apply(gates, block, rows))?;
        refused("forward, output", sensing.forward(gates, w, rows))?;
        let cols = part(out, d)?;
        refused("adjoint, input", sensing.adjoint(gates, 0, bad_v, cols))?;
        refused("gradient, residual", sensing.gradient(gates, bad_v, 0..1, cols))?;
        let cols = part(out, other)?;
        refused("adjoint, output", sensing.adjoint(gates, 0, v, cols))?;
        refused("gradient, output", sensing.gradient(gates, v, 0..1, cols))?;
        refused("column_norms, output", sensing.column_norms(gates, 0..1, cols, scratch))?;
        let (support, s) = (w.index(), w.nnz());
        if s > 0 {
            let kept = part(out, s)?;
            refused(
                "gradient_at, residual",
                sensing.gradient_at(gates, support, bad_v, kept, scratch),
            )?;
            let fewer = part(out, s - 1)?;
            refused("gradient_at, output", sensing.gradient_at(gates, support, v, fewer, scratch))?;
            refused("normal_at, output", sensing.normal_at(gates, w, fewer, scratch))?;
            refused("diagonal_at, output", sensing.diagonal_at(gates, support, fewer, scratch))?;
        }
    }
    let (v, cols) = (at(n)?, part(out, d)?);
    refused("adjoint, block", sensing.adjoint(gates, m, v, cols))?;
    refused("gradient, blocks", sensing.gradient(gates, v, m..m + 1, cols))?;
    refused("column_norms, blocks", sensing.column_norms(gates, m..m + 1, cols, scratch))?;
    let rows = sensing.rows();
    for bad in [0..rows + 1, rows..rows, 0..0, rows..rows + 1] {
        refused("select", sensing.select(bad))?;
        count("rows after a refused batch", n, sensing.local_rows())?;
    }
    Ok(())
}

/// Nonzeros that a step from `w` may keep: as many as `w` has, half of all where it has none.
fn new_nonzeros(w: Weights<'_>) -> usize {
    if w.nnz() > 0 { w.nnz() } else { (w.inputs() * w.hidden()).div_ceil(2) }
}

/// Buffers of a step.
struct Memory<'b> {
    residual: &'b mut [f32],
    panel: &'b mut [f32],
    scratch: &'b mut [f32],
}

/// A step that was made: its report and the new weights.
struct Stepped<'n> {
    info: Info,
    index: &'n [u32],
    value: &'n [f32],
}

/// Room for s entries.
fn first_entries<'r>(room: &'r mut EntriesMut<'_>, s: usize) -> Result<EntriesMut<'r>, Failure> {
    let missing = Failure::new("memory", s, 0.0, 0.0);
    let index = room.index.get_mut(..s).ok_or(missing)?;
    Ok(EntriesMut { index, value: part(room.value, s)? })
}

/// One step with buffers exactly as long as the budget says.
fn one_step<'n, S: HostSensing>(
    sensing: &mut S,
    gates: Gates<'_>,
    labels: &[f32],
    w: Weights<'_>,
    params: &Params<'_>,
    mut new: EntriesMut<'n>,
    memory: &mut Memory<'_>,
) -> Result<Stepped<'n>, Failure> {
    let (n, s) = (sensing.local_rows(), new.index.len());
    let dims = Dims::new(n, sensing.inputs(), sensing.blocks(), s);
    let mut budget = Training::new(dims, n, sensing.panel(), sensing.scratch(n));
    budget.normalised_columns = matches!(params.step, Step::Theory { .. });
    let mut work: Work<'_> = Work {
        residual: part(memory.residual, n)?,
        panel: part(memory.panel, budget.panel_words())?,
        scratch: part(memory.scratch, budget.scratch)?,
        strips: None,
    };
    let info = call(iht::step(sensing, gates, labels, w, params, new.reborrow(), &mut work))?;
    match (new.index.get(..info.nnz), new.value.get(..info.nnz)) {
        (Some(index), Some(value)) => Ok(Stepped { info, index, value }),
        _ => Err(Failure::new("nonzeros", 0, s as f32, info.nnz as f32)),
    }
}

fn steps_agree(
    expected: &Stepped<'_>,
    got: &Stepped<'_>,
    limit: Option<f32>,
    scale: Scale,
) -> Outcome {
    let &Stepped { info: a, index: ai, value: av } = expected;
    let &Stepped { info: b, index: bi, value: bv } = got;
    let residual = scale.v + scale.output();
    agree("loss", &[a.loss], &[b.loss], limit.map(|limit| limit * residual * residual))?;
    agree("step size", &[a.step_size], &[b.step_size], limit.map(|limit| limit * a.step_size))?;
    count("nonzeros", a.nnz, b.nnz)?;
    if limit.is_none() {
        return match ai.iter().zip(bi).enumerate().find(|(_, (a, b))| a != b) {
            Some((at, (a, b))) => Err(Failure::new("support", at, *a as f32, *b as f32)),
            None => agree("weights", av, bv, None),
        };
    }
    // Old weights cancel; least squares divide the cancelling products A^T v by squared column
    // norms.
    let weight = largest(av).max(scale.w).max(scale.v / scale.column);
    let mut common = 0;
    for (at, (j, got)) in bi.iter().zip(bv).enumerate() {
        let Ok(found) = ai.binary_search(j) else { continue };
        common += 1;
        let expected = av.get(found).copied().unwrap_or(f32::NAN);
        if !is_within(limit.unwrap_or(0.0) * weight, expected, *got) {
            return Err(Failure::new("weights", at, expected, *got));
        }
    }
    if (common as f32) < OVERLAP * a.nnz as f32 {
        return Err(Failure::new("support overlap", 0, a.nnz as f32, common as f32));
    }
    Ok(())
}
