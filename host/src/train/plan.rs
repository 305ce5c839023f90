//! Memory before training: which panel and tile fit a byte budget, and what they take.

use std::ops::Range;

use serde::Serialize;
use tamis::base::budget::Training;
use tamis::base::dims::Dims;
use tamis::learn::iht::Step;
use tamis::learn::train::{OneOutput, Schedule};

use crate::base::memory::room_for;
use crate::operator::Layout;
use crate::train::budget::Memory;
use crate::train::checkpoint;
use crate::train::frozen::FrozenLayers;
use crate::{Error, Result};

/// Rows of the smallest tile that a budget leads to.
const SMALLEST_TILE: usize = 32;
/// Neurons of a panel that one vector register holds: smaller panels save little.
const SMALL_PANEL: usize = 16;

/// What training takes beside the data, known before it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Panel, tiles and buffers of the operator.
    #[serde(flatten)]
    pub layout: Layout,
    /// Bytes that survive from step to step: 16 per nonzero.
    #[serde(skip)]
    pub state_bytes: u64,
    /// All other bytes: residual, panel, scratch and the operator's buffers.
    #[serde(skip)]
    pub workspace_bytes: u64,
}

impl Plan {
    /// Chooses panel and tile for data of the given sizes, of bytes or of floats.
    ///
    /// # Errors
    /// A panel of no neuron; or a budget that is too small, with the bytes needed and given.
    ///
    /// ```
    /// use tamis::{base::dims::Dims, learn::train::Schedule};
    /// use tamis_host::train::{Memory, Plan};
    /// let dims = Dims::new(50_000, 100, 100, 500);
    /// let free = Plan::new(dims, false, &Schedule::PAPER, Memory::Auto)?;
    /// let tight = Plan::new(dims, false, &Schedule::PAPER, Memory::Ram(1 << 20))?;
    /// assert!(tight.total_bytes() <= 1 << 20 && tight.total_bytes() < free.total_bytes());
    /// assert!(Plan::new(dims, false, &Schedule::PAPER, Memory::Ram(1000)).is_err());
    /// # Ok::<(), tamis_host::Error>(())
    /// ```
    pub fn new(
        dims: Dims,
        bytes: bool,
        schedule: &Schedule<'_, OneOutput>,
        memory: Memory,
    ) -> Result<Self> {
        Self::of_run(dims, bytes, schedule, memory, false, &FrozenLayers::default())
    }

    /// The same with the memory of checkpoints, if they are taken, and of frozen layers; bytes held
    /// beside all this count in the budget and are not in the plan.
    pub(crate) fn of_run(
        dims: Dims,
        bytes: bool,
        schedule: &Schedule<'_, OneOutput>,
        memory: Memory,
        checkpoints: bool,
        frozen: &FrozenLayers,
    ) -> Result<Self> {
        let default = Layout::new(dims.hidden, dims.inputs);
        let plan = choose(memory, default, dims.hidden, LESS, |layout| {
            let layout = Layout { strips: layout.strips && can_strip(schedule), ..layout };
            let budget = budget(dims, schedule, layout);
            let checkpoints = checkpoint_bytes(checkpoints, checkpoint::paper_bytes(&budget));
            let layers = [frozen.layers_bytes(dims, layout), frozen.beside];
            let workspace = [budget.workspace_bytes(), layout.bytes(dims, bytes), checkpoints];
            Self::sum(layout, budget.state_bytes(), &[&workspace[..], &layers].concat())
        })?;
        Ok(plan.without(frozen.beside))
    }

    /// The same without bytes of the workspace that others hold.
    pub(crate) const fn without(self, beside: usize) -> Self {
        Self { workspace_bytes: self.workspace_bytes.saturating_sub(beside as u64), ..self }
    }

    /// State and workspace together.
    #[must_use]
    pub const fn total_bytes(&self) -> u64 {
        self.state_bytes.saturating_add(self.workspace_bytes)
    }

    /// Checks that the machine has the memory for training.
    pub(crate) fn check_room(&self) -> Result<()> {
        let help = "choose smaller --hidden, --nnz or --batch, or set --ram";
        room_for("training", self.total_bytes(), help)
    }

    /// A layout, the bytes of the state, and those of each item of the workspace.
    pub(crate) fn sum(layout: Layout, state: usize, workspace: &[usize]) -> Self {
        let add = |sum: u64, &bytes: &usize| sum.saturating_add(bytes as u64);
        Self { layout, state_bytes: state as u64, workspace_bytes: workspace.iter().fold(0, add) }
    }
}

/// Bytes of the checkpoints that a run holds, if they are taken: the one to resume from, and the
/// last one.
pub(crate) const fn checkpoint_bytes(taken: bool, most: usize) -> usize {
    if taken { most.saturating_mul(2) } else { 0 }
}

/// The core's share of the memory for the blocked operator with this layout.
pub(crate) fn budget(dims: Dims, schedule: &Schedule<'_, OneOutput>, layout: Layout) -> Training {
    let mut budget = stripped(schedule, layout).budget(dims, layout.panel, 0);
    budget.scratch = budget.strip + dims.inputs;
    budget
}

/// Whether a schedule can be run in strips: the theory step measures its curvature on all rows at
/// once.
const fn can_strip(schedule: &Schedule<'_, OneOutput>) -> bool {
    !matches!(schedule.head.step, Step::Theory { .. })
}

/// The schedule with the strips of a layout.
pub(crate) fn stripped<'k>(
    schedule: &Schedule<'k, OneOutput>,
    layout: Layout,
) -> Schedule<'k, OneOutput> {
    Schedule { strip: layout.strip(), ..*schedule }
}

/// How training needs less memory.
pub(crate) const LESS: &str =
    "raise --ram, or take fewer rows a step (--batch) or fewer nonzeros (--nnz)";

/// The fastest plan that fits the memory, given the default layout, the number of neurons, how to
/// need less, and the plan of a layout.
pub(crate) fn choose(
    memory: Memory,
    default: Layout,
    hidden: usize,
    less: &'static str,
    with: impl Fn(Layout) -> Plan,
) -> Result<Plan> {
    let plans = || layouts(default).filter(|layout| default.hold || !layout.hold).map(&with);
    // The smallest tile is not always the one that takes least: there is a padded row at its end.
    let least = || plans().min_by_key(Plan::total_bytes).unwrap_or_else(|| with(default));
    match memory {
        Memory::Auto => Ok(with(default)),
        Memory::Panel(0) => Err(no_panel()),
        Memory::Panel(panel) => Ok(with(Layout { panel: panel.min(hidden), ..default })),
        Memory::Ram(ram) => plans()
            .find(|plan| plan.total_bytes() <= ram)
            .ok_or_else(|| too_small(&least(), ram, less)),
        Memory::Least => Ok(least()),
    }
}

/// Layouts from the fastest to the smallest. First the tile shrinks, then there is no Gram matrix,
/// and tile and panel shrink, the panel to a vector; the same without held gates, then in strips;
/// all that with half the groups, to one; with one, panels below a vector.
fn layouts(default: Layout) -> impl Iterator<Item = Layout> {
    let tiles = move || {
        std::iter::successors(Some(default.tile), |&tile| {
            (tile / 2 >= SMALLEST_TILE).then_some(tile / 2)
        })
    };
    let vector = SMALL_PANEL.min(default.panel);
    let with = move |groups: usize, panels: Range<usize>| {
        [(true, false), (false, false), (false, true)].into_iter().flat_map(
            move |(hold, strips)| {
                let panels = panels.clone();
                tiles().flat_map(move |tile| {
                    panels.clone().rev().map(move |panel| Layout {
                        tile,
                        panel,
                        groups,
                        hold,
                        gram: 0,
                        activations: 0,
                        strips,
                    })
                })
            },
        )
    };
    let groups =
        std::iter::successors(Some(default.groups), |&groups| (groups > 1).then_some(groups / 2));
    let wide = groups.flat_map(move |groups| with(groups, vector..default.panel + 1));
    let kept = tiles()
        .map(move |tile| Layout { tile, ..default })
        .filter(move |_| default.gram > 0 || default.activations > 0);
    kept.chain(wide).chain(with(1, 1..vector))
}

/// A pool of so many threads; 0 for one per core.
pub(crate) fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(|error| {
        Error::new("cannot start the threads").source(error).help("ask for fewer with --threads")
    })
}

fn no_panel() -> Error {
    Error::new("a gradient panel needs a neuron")
        .expected("--panel 1 or more")
        .got(0)
        .help("leave --panel out for one that suits the machine")
}

fn too_small(least: &Plan, ram: u64, less: &'static str) -> Error {
    Error::new("the memory budget is too small for these sizes")
        .expected(format_args!(
            "at least {} bytes needed: {} of state, {} of workspace",
            least.total_bytes(),
            least.state_bytes,
            least.workspace_bytes
        ))
        .got(format_args!("{ram} bytes"))
        .help(less)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Matrix, Values};
    use crate::operator::Blocked;
    use tamis::operator::sensing::Sensing;

    fn plan(ram: u64) -> Result<Plan> {
        Plan::new(Dims::new(5000, 70, 40, 90), false, &Schedule::PAPER, Memory::Ram(ram))
    }

    #[test]
    fn every_budget_is_kept_or_refused_with_what_it_takes() {
        let error = plan(1).unwrap_err().to_string();
        let needed: u64 =
            error.split("at least ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!(plan(needed - 1).is_err());
        let free =
            Plan::new(Dims::new(5000, 70, 40, 90), false, &Schedule::PAPER, Memory::Auto).unwrap();
        let mut last = 0;
        for ram in (needed..free.total_bytes() + 9973).step_by(9973) {
            let plan = plan(ram).unwrap();
            assert!((1..=40).contains(&plan.layout.panel) && plan.total_bytes() <= ram);
            last = plan.total_bytes();
        }
        assert_eq!(last, free.total_bytes(), "the largest budget lacks nothing");
        let least =
            Plan::new(Dims::new(5000, 70, 40, 90), false, &Schedule::PAPER, Memory::Least).unwrap();
        assert_eq!(least.total_bytes(), needed);
    }

    #[test]
    fn the_plan_is_what_the_operator_takes() {
        for (batch, bytes) in [(0, false), (300, false), (0, true), (9999, true)] {
            let schedule = Schedule { batch, ..Schedule::PAPER };
            let (n, d, m, s) = (1000, 30, 50, 60);
            let dims = Dims::new(n, d, m, s);
            for memory in [Memory::Panel(7), Memory::Least] {
                let plan = Plan::new(dims, bytes, &schedule, memory).unwrap();
                assert_eq!(
                    (plan.layout.strips, plan.layout.groups),
                    if memory == Memory::Least { (true, 1) } else { (false, 8) }
                );
                let values =
                    if bytes { Values::U8(vec![0; n * d]) } else { Values::F32(vec![0.0; n * d]) };
                let operator =
                    Blocked::new(Matrix::new(n, d, values).unwrap(), m, s, plan.layout).unwrap();
                let budget = budget(dims, &schedule, plan.layout);
                assert_eq!(budget.scratch, operator.scratch(budget.strip));
                assert_eq!(budget.panel, operator.panel());
                let workspace = budget.workspace_bytes() + operator.workspace_bytes();
                assert_eq!(plan.workspace_bytes, workspace as u64);
                assert_eq!(plan.state_bytes, 16 * s as u64);
            }
        }
    }

    #[test]
    fn a_panel_is_at_most_all_neurons() {
        let dims = Dims::new(100, 5, 3, 4);
        let panel = |p| {
            Plan::new(dims, false, &Schedule::PAPER, Memory::Panel(p)).map(|plan| plan.layout.panel)
        };
        assert_eq!((panel(2).unwrap(), panel(100).unwrap()), (2, 3));
        assert!(panel(0).is_err());
    }
}
