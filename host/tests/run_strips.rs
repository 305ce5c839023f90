//! The published methods in as little memory as can be: in strips of rows, with the results of a stored residual up to
//! rounding, and with as many bytes whatever the rows.

use tamis::dims::Dims;
use tamis::gates::Signs;
use tamis_host::data::{Matrix, planted};
use tamis_host::operator::Stop;
use tamis_host::run::{self, Memory, Options, Outcome, OutputsOptions, Problem, Size, Task};

fn problem(data: Matrix, labels: Vec<f32>) -> Problem {
    Problem { data, labels, task: Task::Regression }
}

fn one(rows: usize, memory: Memory) -> Outcome {
    let planted = planted::network(Dims::new(rows, 30, 5, 20), Signs::Positive, 2).unwrap();
    let options = Options { memory, threads: 1, ..Options::new(5, Size::Nonzeros(20)) };
    run::train(problem(planted.data, planted.labels), &options, &Stop::new(), |_| true).unwrap()
}

fn several(rows: usize, memory: Memory) -> Outcome {
    let planted = planted::factored(Dims::new(rows, 30, 5, 20), 3, 2).unwrap();
    let options =
        OutputsOptions { memory, threads: 1, safe: true, ..OutputsOptions::new(5, Size::Nonzeros(20)) };
    run::train_outputs(problem(planted.data, planted.labels), &options, &Stop::new(), |_| true).unwrap()
}

#[test]
fn the_least_memory_gives_the_same_network_and_does_not_grow_with_the_rows() {
    for train in [one, several] {
        let (usual, least) = (train(3000, Memory::Auto), train(3000, Memory::Least));
        // Rounding may choose between two entries that are worth the same.
        let [a, b] = [&usual, &least].map(|outcome| [&outcome.index[..], &outcome.out_index].concat());
        assert!(a.iter().filter(|j| b.contains(j)).count() + 1 >= a.len(), "{a:?} {b:?}");
        let (a, b) = (usual.report.loss, least.report.loss);
        assert!((a - b).abs() < 0.02 * a, "{a} {b}");
        let bytes = |outcome: &Outcome| outcome.report.plan.state_bytes + outcome.report.plan.workspace_bytes;
        assert!(least.report.plan.strips && !usual.report.plan.strips);
        assert!(20 * bytes(&least) < bytes(&usual), "{} {}", bytes(&least), bytes(&usual));
        assert_eq!(bytes(&least), bytes(&train(6000, Memory::Least)));
        // The same strips by a budget, and one byte less than they take.
        let budget = train(3000, Memory::Ram(bytes(&least)));
        assert_eq!((&budget.model, budget.report.plan.strips), (&least.model, true));
    }
}
