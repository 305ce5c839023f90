//! Memory before training: which panel and tile fit a byte budget, and what they take.

use std::num::NonZeroUsize;
use std::ops::Range;

use serde::Serialize;
use tamis::base::dims::Dims;

use crate::base::memory::room_for;
use crate::operator::Layout;
use crate::train::budget::Memory;
use crate::{Error, Result};

/// Rows of the smallest tile that a budget leads to.
const SMALLEST_TILE: usize = 32;
/// Neurons of a panel that one vector register holds: smaller panels save little.
pub(crate) const SMALL_PANEL: usize = 16;

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

/// What a training would take.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Forecast {
    /// The recipe.
    pub recipe: &'static str,
    /// Neurons of each hidden layer.
    pub hidden: Vec<usize>,
    /// s, nonzero weights asked for.
    pub requested_nnz: usize,
    /// Weights that are held at a time, at most.
    pub support: usize,
    /// Bytes that survive from step to step.
    pub state_bytes: u64,
    /// All other bytes: residual, panel, scratch and buffers.
    pub workspace_bytes: u64,
    /// Bytes of samples and labels.
    pub data_bytes: u64,
    /// Panel, tiles and buffers of the operator, for recipes that have one.
    #[serde(flatten)]
    pub layout: Option<Layout>,
    /// Where it would be trained.
    pub device: String,
    /// Bytes of samples and gates on a GPU, which go there before the first step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_bytes: Option<u64>,
    /// Whether layers are trained one by one, so that this is of the first one alone.
    pub first_layer: bool,
    /// Whether cross-validation chooses recipe and network first, so that this is one of several.
    pub chosen: bool,
}

/// Bytes of an operator with this layout, for networks of so many outputs to which weights lead.
pub(crate) fn operator_bytes(layout: Layout, dims: Dims, bytes: bool, outputs: usize) -> usize {
    layout.bytes(dims, bytes) + if outputs > 0 { layout.outputs_bytes(dims, outputs) } else { 0 }
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
    // Without its Gram matrix a search has more use of held gates.
    let may_hold = default.hold || default.gram > 0;
    let plans = || layouts(default).filter(|layout| may_hold || !layout.hold).map(&with);
    // The smallest tile is not always the one that takes least: there is a padded row at its end.
    let least = || plans().min_by_key(Plan::total_bytes).unwrap_or_else(|| with(default));
    match memory {
        Memory::Auto => Ok(with(default)),
        Memory::Panel(0) => Err(Error::new("a gradient panel needs a neuron")
            .expected("--panel 1 or more")
            .got(0)
            .help("leave --panel out for one that suits the machine")),
        Memory::Panel(panel) => Ok(with(Layout { panel: panel.min(hidden), ..default })),
        Memory::Ram(ram) => {
            let fits = |plan: &Plan| plan.total_bytes() <= ram;
            // What is chosen does not depend on threads, but there may be room for fewer.
            let chosen = plans().find(fits).and_then(|plan| {
                let of = |at_once| with(Layout { at_once, ..plan.layout });
                (1..=default.at_once).rev().map(of).find(fits)
            });
            chosen.ok_or_else(|| {
                let least = least();
                let (state, workspace) = (least.state_bytes, least.workspace_bytes);
                Error::new("the memory budget is too small for these sizes")
                    .expected(format_args!(
                        "at least {} bytes needed: {state} of state, {workspace} of workspace",
                        least.total_bytes()
                    ))
                    .got(format_args!("{ram} bytes"))
                    .help(less)
            })
        }
        Memory::Least => Ok(least()),
    }
}

/// Layouts from the fastest to the smallest. First the tile shrinks, then there is no Gram matrix but
/// held gates, and tile and panel shrink, the panel to a vector; the same without held gates, then in strips;
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
                        at_once: 1,
                        hold,
                        gram: 0,
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
        .map(move |tile| Layout { tile, at_once: 1, ..default })
        .filter(move |_| default.gram > 0);
    kept.chain(wide).chain(with(1, 1..vector))
}

/// Threads of [`pool`].
pub(crate) fn thread_count(threads: usize) -> usize {
    match threads {
        0 => std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
        threads => threads,
    }
}

/// A pool of so many threads; 0 for one per core.
pub(crate) fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(|error| {
        Error::new("cannot start the threads").source(error).help("ask for fewer with --threads")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plan of 5000 rows of 100 inputs, 40 neurons and 200 weights.
    fn of(layout: Layout) -> Plan {
        let bytes = layout.bytes(Dims::new(5000, 100, 40, 200), false);
        Plan::sum(layout, 0, &[bytes])
    }

    #[test]
    fn what_a_budget_leads_to_differs_by_threads_in_the_groups_at_work_alone() {
        let default = |at_once| Layout { at_once, ..Layout::new(40, 100).with_gram([100, 300]) };
        let chosen = |memory, at_once| choose(memory, default(at_once), 40, LESS, of).unwrap();
        let least = chosen(Memory::Least, 8).total_bytes();
        let all = chosen(Memory::Auto, 8);
        for ram in (least..all.total_bytes() + 9973).step_by(9973) {
            let [one, many] = [1, 8].map(|at_once| chosen(Memory::Ram(ram), at_once));
            assert!(many.total_bytes() <= ram && many.layout.at_once >= one.layout.at_once);
            assert_eq!(Layout { at_once: 1, ..many.layout }, one.layout);
        }
        // The budget of the default leads to it.
        assert_eq!(chosen(Memory::Ram(all.total_bytes()), 8), all);
    }
}
