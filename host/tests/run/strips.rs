//! The published methods in as little memory as can be: in strips of rows, with the results of a
//! stored residual up to rounding, and with as many bytes whatever the rows.

use tamis::base::dims::Dims;
use tamis::network::gates::Signs;
use tamis_host::data::{Matrix, planted};
use tamis_host::data::{Problem, Task};
use tamis_host::train::{Memory, OutputsOptions, PaperOptions};
use tamis_host::{Budget, Options, Recipe, Trained};

fn train(data: Matrix, labels: Vec<f32>, memory: Memory, outputs: OutputsOptions) -> Trained {
    let problem = Problem { data, labels, task: Task::Regression };
    let recipe = Recipe::Paper(PaperOptions { outputs, ..PaperOptions::default() });
    let options =
        Options { recipe, memory, hidden: vec![5], threads: 1, ..Options::new(Budget::nnz(20)) };
    tamis_host::train(&problem, options).unwrap()
}

fn one(rows: usize, memory: Memory) -> Trained {
    let planted = planted::network(Dims::new(rows, 30, 5, 20), Signs::Positive, 2).unwrap();
    train(planted.data, planted.labels, memory, OutputsOptions::PUBLISHED)
}

fn several(rows: usize, memory: Memory) -> Trained {
    let planted = planted::factored(Dims::new(rows, 30, 5, 20), 3, 2).unwrap();
    let safe = OutputsOptions { safe: true, ..OutputsOptions::PUBLISHED };
    train(planted.data, planted.labels, memory, safe)
}

#[test]
fn minimum_memory_gives_same_network_at_constant_size() {
    for train in [one, several] {
        let (usual, least) = (train(3000, Memory::Auto), train(3000, Memory::Least));
        // Rounding may choose between two entries that are worth the same.
        let [a, b] = [&usual, &least]
            .map(|outcome| [&outcome.network.index[..], &outcome.network.out_index].concat());
        assert!(a.iter().filter(|j| b.contains(j)).count() + 1 >= a.len(), "{a:?} {b:?}");
        let (a, b) = (usual.report.loss, least.report.loss);
        assert!((a - b).abs() < 0.02 * a, "{a} {b}");
        let bytes = |outcome: &Trained| outcome.report.total_bytes();
        let strips = |outcome: &Trained| outcome.report.plan.unwrap().layout.strips;
        assert!(strips(&least) && !strips(&usual));
        assert!(5 * bytes(&least) < bytes(&usual), "{} {}", bytes(&least), bytes(&usual));
        assert_eq!(bytes(&least), bytes(&train(6000, Memory::Least)));
        // The same strips by a budget, and one byte less than they take.
        let budget = train(3000, Memory::Ram(bytes(&least)));
        assert_eq!((budget.model.bytes(), strips(&budget)), (least.model.bytes(), true));
    }
}
