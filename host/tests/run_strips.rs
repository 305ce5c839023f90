//! The published methods in as little memory as can be: in strips of rows, with the results of a stored residual up to
//! rounding, and with as many bytes whatever the rows.

use tamis::dims::Dims;
use tamis::gates::Signs;
use tamis_host::data::planted::{self, Planted};
use tamis_host::operator::Stop;
use tamis_host::run::{self, Memory, Options, Outcome, OutputsOptions, Problem, Size, Task};

fn problem(of: &Planted) -> Problem {
    Problem { data: of.data.clone(), labels: of.labels.clone(), task: Task::Regression }
}

fn one(rows: usize, memory: Memory) -> Outcome {
    let planted = planted::network(Dims::new(rows, 30, 5, 20), Signs::Positive, 2).unwrap();
    let options = Options { memory, threads: 1, ..Options::new(5, Size::Nonzeros(20)) };
    run::train(problem(&planted), &options, &Stop::new(), |_| true).unwrap()
}

fn several(rows: usize, memory: Memory) -> Outcome {
    let planted = planted::factored(Dims::new(rows, 30, 5, 20), 3, 2).unwrap();
    let options =
        OutputsOptions { memory, threads: 1, safe: true, ..OutputsOptions::new(5, Size::Nonzeros(20)) };
    run::train_outputs(problem(&planted), &options, &Stop::new(), |_| true).unwrap()
}

#[test]
fn the_least_memory_gives_the_same_network_and_does_not_grow_with_the_rows() {
    for train in [one, several] {
        let (usual, least) = (train(3000, Memory::Auto), train(3000, Memory::Least));
        let [a, b] = [&usual, &least].map(|outcome| (&outcome.index, &outcome.out_index));
        assert_eq!(a, b);
        let most = usual.value.iter().fold(0.0_f32, |most, v| most.max(v.abs()));
        for (a, b) in usual.value.iter().zip(&least.value) {
            assert!((a - b).abs() < 1e-3 * most, "{a} {b}");
        }
        let bytes = |outcome: &Outcome| outcome.report.plan.state_bytes + outcome.report.plan.workspace_bytes;
        assert!(least.report.plan.strips && !usual.report.plan.strips);
        assert!(20 * bytes(&least) < bytes(&usual), "{} {}", bytes(&least), bytes(&usual));
        assert_eq!(bytes(&least), bytes(&train(6000, Memory::Least)));
        // The same strips by a budget, and one byte less than they take.
        let budget = train(3000, Memory::Ram(bytes(&least)));
        assert_eq!((&budget.model, budget.report.plan.strips), (&least.model, true));
    }
}
