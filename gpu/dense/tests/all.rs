//! Dense networks on burn are those of the CPU: losses, derivatives, and what training gives.

use std::ops::ControlFlow;

use tamis::learn::optimiser::Optimiser;
use tamis_dense::Burn;
use tamis_host::Options;
use tamis_host::data::{Matrix, Problem, Task, Values};
use tamis_host::operator::Stop;
use tamis_host::train::dense::{
    Batch, DenseDevice, DenseNet, DensePlace, Epoch, Goal, Head, NetOnRows, Rates, Setup, Shape,
    Threads, Trained,
};
use tamis_host::train::{Budget, ImpSettings, Recipe, train_with};

/// The CPU backend, and a GPU where this build has them.
fn devices() -> Vec<Burn> {
    #[cfg(feature = "wgpu")]
    return vec![Burn::cpu(), Burn::gpu(None).unwrap()];
    #[cfg(not(feature = "wgpu"))]
    vec![Burn::cpu()]
}

fn number(k: usize) -> f32 {
    ((k * 7919 + k / 13) % 1009) as f32 / 504.0 - 1.0
}

fn problem(rows: usize, shape: &Shape, task: Task, bytes: bool) -> Problem {
    let count = rows * shape.inputs();
    let values = match bytes {
        true => Values::U8((0..count).map(|k| (k * 7919 % 251) as u8).collect()),
        false => Values::F32((0..count).map(number).collect()),
    };
    let labels = (0..rows * shape.labels(task)).map(|k| match task {
        Task::Regression => 2.0 * number(3 * k + 1),
        Task::Binary => (k % 2) as f32,
        Task::Multiclass => (k * k % shape.outputs().max(2)) as f32,
    });
    let labels = labels.collect();
    Problem { data: Matrix::new(rows, shape.inputs(), values).unwrap(), labels, task }
}

fn shapes() -> Vec<(Shape, Task)> {
    let shape = |hidden: &[usize], outputs, head| Shape::new(6, hidden, outputs, head).unwrap();
    vec![
        (shape(&[9], 1, Head::Sum), Task::Regression),
        (shape(&[9], 1, Head::Sum), Task::Binary),
        (shape(&[8, 5], 1, Head::Sum), Task::Regression),
        (shape(&[9], 2, Head::Weights), Task::Regression),
        (shape(&[9, 4], 1, Head::Weights), Task::Binary),
        (shape(&[9, 7], 3, Head::Weights), Task::Multiclass),
        // One output is the log-odds of class 1.
        (shape(&[9, 4], 1, Head::Weights), Task::Multiclass),
    ]
}

/// Largest difference over the largest number.
fn apart(a: &[f32], b: &[f32]) -> f32 {
    let largest = b.iter().fold(0.0_f32, |top, x| top.max(x.abs()));
    assert!(largest > 0.0 && a.len() == b.len());
    a.iter().zip(b).fold(0.0_f32, |top, (a, b)| top.max((a - b).abs())) / largest
}

#[test]
fn losses_and_derivatives_are_those_of_the_cpu() {
    for (shape, task) in shapes() {
        for (bytes, scale) in [(false, 0.5), (true, 1.0 / 256.0)] {
            let (set, stop) = (&problem(300, &shape, task, bytes), &Stop::new());
            let mut weights = shape.initial(3);
            weights.iter_mut().step_by(4).for_each(|w| *w = 0.0);
            let v: Vec<f32> = (0..weights.len()).map(|k| number(5 * k + 2)).collect();
            let goals = [
                Goal::Loss,
                Goal::Gradient,
                Goal::HessianProduct(&v),
                Goal::JacobianSquares,
                Goal::InputSquares,
            ];
            for burn in devices() {
                for goal in goals {
                    for temperature in [1.0, 20.0] {
                        let of = |device: &dyn DenseDevice| {
                            let net = DenseNet { shape: &shape, weights: &weights };
                            let rows = Batch { set, rows: 3..290, order: None, scale };
                            device.pass(&NetOnRows { net, rows, stop, device }, goal, temperature)
                        };
                        let (wanted, got) = (of(&Threads).unwrap(), of(&burn).unwrap());
                        let what = format!("{} {task:?} {shape:?} {goal:?}", burn.name());
                        assert_eq!(got.measure.rows, wanted.measure.rows, "{what}");
                        if !matches!(goal, Goal::JacobianSquares | Goal::InputSquares) {
                            let ratio = got.measure.loss / wanted.measure.loss;
                            assert!((ratio - 1.0).abs() < 1e-5, "{what}: {ratio}");
                        }
                        if matches!(goal, Goal::Loss) {
                            assert_eq!(got.measure.right, wanted.measure.right, "{what}");
                            assert!(got.sum.is_empty());
                        } else {
                            let apart = apart(&got.sum, &wanted.sum);
                            assert!(apart < 2e-5, "{what}: {apart}");
                        }
                    }
                }
            }
        }
    }
}

/// Weights after a few epochs in drawn batches, some of them pruned on the way.
fn trained(device: &dyn DenseDevice, shape: &Shape, task: Task, optimiser: Optimiser) -> Vec<f32> {
    let (set, stop) = (&problem(500, shape, task, false), &Stop::new());
    let batch = 64;
    let setup = Setup { shape, task, optimiser, batch, stop };
    let mut training = device.training(&setup).unwrap();
    let (mut weights, mut steps) = (shape.initial(1), 0);
    let mut mask = vec![true; weights.len()];
    for number in 0..4 {
        if number == 2 {
            mask.iter_mut().step_by(3).for_each(|own| *own = false);
            weights.iter_mut().step_by(3).for_each(|w| *w = 0.0);
            training.keep(&mask);
        }
        let rate = 0.01;
        let epoch = Epoch {
            set,
            rows: 0..500,
            scale: 1.0,
            batch,
            seed: 7,
            number,
            rate,
            decay: 0.01,
            warmup: 10,
            penalty: None,
        };
        let net = Trained { weights: &mut weights, mask: &mask, steps: &mut steps };
        let loss = training.epoch(net, &epoch).unwrap();
        assert!(loss.is_finite() && loss > 0.0);
        let measure = training.measure(&weights, set, 1.0).unwrap();
        assert_eq!((measure.rows, measure.right.is_some()), (500, task != Task::Regression));
    }
    assert_eq!(steps, 4 * 8);
    assert!(weights.iter().step_by(3).all(|w| *w == 0.0), "a pruned weight stays 0");
    weights
}

#[test]
fn steps_are_those_of_the_cpu_and_repeat_to_the_bit() {
    for (shape, task) in shapes() {
        for optimiser in [Optimiser::Adam, Optimiser::Sgd { momentum: 0.9 }] {
            let wanted = trained(&Threads, &shape, task, optimiser);
            for burn in devices() {
                let got = trained(&burn, &shape, task, optimiser);
                let apart = apart(&got, &wanted);
                assert!(apart < 1e-3, "{} {task:?} {optimiser:?} {apart}", burn.name());
                let bits =
                    |weights: &[f32]| weights.iter().map(|w| w.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&got), bits(&trained(&burn, &shape, task, optimiser)));
            }
        }
    }
}

#[test]
fn magnitude_pruning_ends_as_on_the_cpu() {
    let shape = Shape::new(6, &[12], 3, Head::Weights).unwrap();
    let mut set = problem(600, &shape, Task::Multiclass, false);
    let Values::F32(values) = &set.data.values else { return };
    // Classes that a small network tells apart.
    let label =
        |x: &[f32]| f32::from(u8::from(x[0] > 0.2)) + f32::from(u8::from(x[1] + x[2] > 0.6));
    set.labels = values.chunks(6).map(label).collect();
    let run = |place: DensePlace| {
        let rates = Some(Rates::constant(0.01));
        let settings =
            ImpSettings { epochs: 30, batch: 60, rates, place, ..ImpSettings::default() };
        let options = Options {
            hidden: vec![12],
            recipe: Recipe::Imp(settings),
            ..Options::new(Budget::nnz(30))
        };
        let stop = Stop::new();
        train_with(set.clone(), &options, tamis_host::train::Start::Zero, &stop, |_| {
            ControlFlow::Continue(())
        })
        .unwrap()
    };
    let cpu = run(DensePlace::default());
    for burn in devices() {
        let name = burn.name().to_owned();
        let own = run(DensePlace::new(burn));
        assert_eq!((own.report.device.as_str(), own.report.nnz), (name.as_str(), 30));
        assert_eq!(own.report.steps, cpu.report.steps);
        let [own, cpu] = [&own, &cpu].map(|trained| trained.report.accuracy.unwrap());
        assert!(own > 0.9 && (own - cpu).abs() < 0.05, "{name}: {own}, on the CPU {cpu}");
    }
}

/// Scores without labels have sets whose labels are of no use.
#[test]
fn norms_need_no_labels() {
    let (shape, _) = shapes().pop().unwrap();
    let mut set = problem(50, &shape, Task::Multiclass, false);
    set.task = Task::Regression;
    let (weights, stop) = (shape.initial(2), &Stop::new());
    for burn in devices() {
        for goal in [Goal::JacobianSquares, Goal::InputSquares] {
            let of = |device: &dyn DenseDevice| {
                let net = DenseNet { shape: &shape, weights: &weights };
                let rows = Batch { set: &set, rows: 0..50, order: None, scale: 1.0 };
                device.pass(&NetOnRows { net, rows, stop, device }, goal, 1.0).unwrap().sum
            };
            assert!(apart(&of(&burn), &of(&Threads)) < 2e-5, "{goal:?}");
        }
    }
}

#[test]
fn stops_and_divergence_are_errors() {
    let (shape, task) = shapes().pop().unwrap();
    let set = &problem(100, &shape, task, false);
    for burn in devices() {
        let stop = &Stop::new();
        let setup = Setup { shape: &shape, task, optimiser: Optimiser::Adam, batch: 20, stop };
        let mut training = burn.training(&setup).unwrap();
        let mut run = |weights: &mut [f32]| {
            let (mask, mut steps) = (vec![true; weights.len()], 0);
            let epoch = Epoch {
                set,
                rows: 0..100,
                scale: 1.0,
                batch: 20,
                seed: 0,
                number: 0,
                rate: 0.01,
                decay: 0.0,
                warmup: 0,
                penalty: None,
            };
            training.epoch(Trained { weights, mask: &mask, steps: &mut steps }, &epoch)
        };
        let error = run(&mut vec![1e30; shape.weights()]).unwrap_err();
        assert!(error.to_string().contains("diverged"), "{error}");
        let error = run(&mut vec![f32::NAN; shape.weights()]).unwrap_err();
        assert!(error.to_string().contains("diverged"), "{error}");
        let mut wrong = set.clone();
        wrong.labels[7] = 9.0;
        let batch = Batch { set: &wrong, rows: 0..100, order: None, scale: 1.0 };
        let weights = shape.initial(0);
        let net = DenseNet { shape: &shape, weights: &weights };
        let on = NetOnRows { net, rows: batch, stop, device: &burn };
        let error = burn.pass(&on, Goal::Gradient, 1.0).unwrap_err().to_string();
        assert!(error.contains("row 7") && error.contains('9'), "{error}");
        stop.ask();
        assert!(run(&mut shape.initial(0)).unwrap_err().is_interrupted());
    }
}
