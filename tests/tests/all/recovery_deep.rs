//! The recovery recipe for two hidden layers finds planted networks on the reference operator and
//! on the host's.

use std::ops::ControlFlow::Continue;
use tamis::base::budget::{Recovery, gated_words};
use tamis::base::dims::Dims;
use tamis::data::samples::Rows;
use tamis::infer::model::Layer;
use tamis::learn::lm::{self, Goal, Info, Params};
use tamis::learn::start::Start;
use tamis::network::gates::Signs;
use tamis::operator::factored::Factored;
use tamis::operator::gated::Gated;
use tamis::operator::machine::Host;
use tamis_host::data::planted::{self, PlantedDeep};
use tamis_host::data::{Matrix, Values};
use tamis_host::data::{Problem, Task};
use tamis_host::operator::{Blocked, Layout};
use tamis_host::train::Memory;
use tamis_host::{Budget, Options};

const SECOND: usize = 5;

/// Entries of both layers, and what was done.
type Found = (Vec<(u32, f32)>, Info);

fn recover<S: Factored<Machine = Host>>(
    sensing: &mut S,
    made: &PlantedDeep,
    nnz: usize,
    params: &Params,
) -> Found {
    let dims = Dims::new(made.data.rows, made.data.cols, made.widths[1], nnz);
    let scratch = sensing.net_scratch(dims.samples).max(sensing.scratch(dims.samples));
    let (m, c) = (sensing.blocks(), lm::second_slots(SECOND));
    let mut memory = vec![0; Recovery::deep(dims, m, c, sensing.panel(), scratch).words()];
    let goal = Goal::two_layers(dims, SECOND);
    let found =
        lm::run(sensing, &made.labels, goal, Start::Zero, params, &mut memory, |_| Continue(()));
    let lm::Trained { network: net, info } = found.unwrap();
    assert!(net.nnz() <= nnz && net.outputs() == SECOND && net.w().blocks().count() <= dims.hidden);
    let entries = [net.w(), net.wt()]
        .map(|side| side.index().iter().copied().zip(side.value().iter().copied()));
    (entries.into_iter().flatten().collect(), info)
}

fn blocked(data: &Matrix, hidden: usize, nnz: usize, tile: usize) -> Blocked {
    let (slots, outputs) = (lm::slots(hidden, Signs::Positive), lm::second_slots(SECOND));
    let room = Recovery::deep(Dims::new(1, 1, hidden, nnz), slots, outputs, 1, 0).room();
    let layout = Layout { tile, ..Layout::new(slots, data.cols) };
    Blocked::new(data.clone(), slots, room, layout).unwrap().with_outputs(outputs)
}

#[test]
fn reference_and_host_operators_recover_planted_networks() {
    for seed in 1..4 {
        let made = planted::deep(2000, 20, &[5, SECOND], 1, 24, seed).unwrap();
        let params = Params { seed, ..Params::DEFAULT };
        let (_, host) = recover(&mut blocked(&made.data, 5, 24, 64), &made, 24, &params);
        assert!(host.exact, "host, seed {seed}: {host:?}");
        // It takes ten times as long.
        if seed == 3 {
            let Values::F32(values) = &made.data.values else { panic!("floats") };
            let (rows, slots) = (Rows::new(values, 20).unwrap(), lm::slots(5, Signs::Positive));
            let mut memory = vec![0.0; gated_words(20, slots)];
            let mut gated = Gated::new(rows, slots, 1, &mut memory).unwrap();
            let (_, reference) = recover(&mut gated, &made, 24, &params);
            assert!(reference.exact, "reference, seed {seed}: {reference:?}");
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let made = planted::deep(6000, 20, &[5, SECOND], 1, 24, 5).unwrap();
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut sensing = blocked(&made.data, 5, 24, 512);
        pool.install(|| recover(&mut sensing, &made, 24, &Params::DEFAULT))
    };
    let one = with(1);
    assert!(one.1.exact);
    assert_eq!(with(3), one);
}

#[test]
fn every_memory_budget_is_met_and_labels_reproduced() {
    let made = planted::deep(3000, 20, &[5, SECOND], 1, 24, 6).unwrap();
    let go = |memory| {
        let problem = Problem {
            data: made.data.clone(),
            labels: made.labels.clone(),
            task: Task::Regression,
        };
        let options = Options { hidden: vec![5, SECOND], memory, ..Options::new(Budget::nnz(24)) };
        tamis_host::train(&problem, options)
    };
    let usual = go(Memory::Auto).unwrap();
    let free = usual.report.total_bytes();
    let refused = go(Memory::Ram(1)).unwrap_err().to_string();
    let least: u64 =
        refused.split("at least ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(least < free && go(Memory::Ram(least - 1)).is_err());
    for ram in [least, free] {
        let outcome = go(Memory::Ram(ram)).unwrap();
        assert!(outcome.report.total_bytes() <= ram, "{ram}: {:?}", outcome.report.plan);
        assert!(outcome.report.search().unwrap().exact);
        let view = outcome.model.view().unwrap();
        assert!(matches!(view.model().layers(), [Layer::Csr(_), Layer::Csr(_), Layer::Sum(_)]));
        let Values::F32(values) = &made.data.values else { panic!("floats") };
        let mut scratch = vec![0.0; view.model().scratch_len()];
        for (row, label) in values.chunks(20).zip(&made.labels) {
            let mut f = [0.0];
            view.model().predict(row, &mut scratch, &mut f).unwrap();
            assert!((f[0] - label).abs() < 1e-3 * label.abs().max(1.0), "{f:?} for {label}");
        }
    }
}
