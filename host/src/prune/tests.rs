//! What pruning promises: exact counts on paths, functions that stay, and bits that threads do not
//! change.

use proptest::prelude::*;

use super::lasso::GroupLasso;
use super::network::{LastInput, Mlp};
use super::select::Missing;
use super::{
    DenseStart, LassoOptions, Neurons, PruneOptions, PruneReport, PruneRows, PruneSource,
    Structured, greedy, group, prune, rows, scores, select, widths,
};
use crate::convert::{Dense, Spread};
use crate::data::{Matrix, Problem, Task, Values};
use crate::model::ModelFile;
use crate::operator::Stop;
use crate::train::Budget;
use crate::train::dense::shape::Shape;
use crate::train::scaling::Mapped;
use tamis::base::rng::{Rng, stream};

/// A network of normal weights, of which a share is 0.
fn mlp(widths: &[usize], zeros: f32, has_ones: bool, seed: u64) -> Mlp {
    let mut rng = Rng::new(seed, stream::USER);
    let last = widths.len() - 2;
    let layer = |(l, pair): (usize, &[usize])| {
        let mut numbers = |count: usize| {
            let mut numbers = vec![0.0; count];
            rng.fill_normal(&mut numbers);
            numbers.iter_mut().for_each(|w| *w = if rng.uniform() < zeros { 0.0 } else { *w });
            numbers
        };
        Dense {
            name: format!("layer{l}"),
            inputs: pair[0],
            outputs: pair[1],
            weights: numbers(pair[0] * pair[1]),
            bias: if has_ones { numbers(pair[1]) } else { Vec::new() },
            relu: l != last,
        }
    };
    let layers = widths.windows(2).enumerate().map(layer).collect();
    let (is_sum, readable, is_centred) = (false, Vec::new(), false);
    let mut mlp = Mlp { layers, has_ones, is_sum, readable, is_centred };
    mlp.layers.iter_mut().for_each(Dense::trim_bias);
    mlp
}

fn data(rows: usize, cols: usize) -> Matrix {
    let mut values = vec![0.0; rows * cols];
    Rng::new(9, stream::USER).fill_normal(&mut values);
    Matrix::new(rows, cols, Values::F32(values)).unwrap()
}

/// What the network's model predicts.
fn predictions(mlp: &Mlp) -> Vec<f32> {
    let data = data(50, mlp.layers[0].inputs);
    ModelFile::from_bytes(&mlp.encode(None).unwrap()).unwrap().predict(&data).unwrap()
}

fn distance(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).fold(0.0, |most: f32, (a, b)| most.max((a - b).abs()))
}

proptest! {
    #[test]
    fn counts_are_exact_and_nothing_is_dead(
        widths in prop::collection::vec(2_usize..9, 3..5),
        has_ones: bool,
        is_centred: bool,
        share in 0.0..1.0_f64,
        seed: u64,
    ) {
        let mut mlp = mlp(&widths, 0.0, has_ones, seed);
        mlp.is_centred = has_ones && is_centred;
        let least = if has_ones { 12 } else { widths.len() };
        let count = least + (share * (mlp.nnz() - least) as f64) as usize;
        select::keep_weights(&mut mlp, scores::magnitudes, count, Missing::Regrown).unwrap();
        prop_assert_eq!((mlp.nnz(), mlp.dead_weights()), (count, 0));
        let kept = predictions(&mlp);
        mlp.compact();
        prop_assert_eq!((mlp.nnz(), mlp.dead_weights()), (count, 0));
        prop_assert!(distance(&predictions(&mlp), &kept) < 1e-4);
        prop_assert!(!mlp.is_centred || mlp.has_first_biases());
    }

    #[test]
    fn compact_networks_keep_their_function(
        widths in prop::collection::vec(2_usize..8, 3..5),
        zeros in 0.3..0.9_f32,
        has_ones: bool,
        seed: u64,
    ) {
        let before = mlp(&widths, zeros, has_ones, seed);
        let mut after = before.clone();
        after.compact();
        prop_assume!(after.hidden().iter().all(|&width| width > 1));
        prop_assert_eq!(after.dead_weights(), 0);
        prop_assert!(distance(&predictions(&before), &predictions(&after)) < 1e-4);
    }
}

#[test]
fn few_weights_all_lie_on_paths() {
    let mut net = mlp(&[2, 4, 5, 2], 0.0, false, 11_820_897_442_634_290_960);
    let count = 4 + (0.111_098_769_505_013_04 * (net.nnz() - 4) as f64) as usize;
    select::keep_weights(&mut net, scores::magnitudes, count, Missing::Regrown).unwrap();
    assert_eq!((net.nnz(), net.dead_weights()), (count, 0));
    let kept = predictions(&net);
    net.compact();
    assert_eq!((net.nnz(), net.dead_weights()), (count, 0));
    assert!(distance(&predictions(&net), &kept) < 1e-4);
}

#[test]
fn budget_of_dead_weights_is_regrown() {
    // The two largest weights lead nowhere: neuron 1 has no way out.
    let mut net = mlp(&[2, 2, 1], 0.0, false, 1);
    net.layers[0].weights = vec![0.5, 0.4, 9.0, 8.0];
    net.layers[1].weights = vec![0.3, 0.01];
    select::keep_weights(&mut net, scores::magnitudes, 3, Missing::Regrown).unwrap();
    assert_eq!(net.layers[0].weights, [0.5, 0.4, 0.0, 0.0]);
    assert_eq!(net.layers[1].weights, [0.3, 0.0]);
    net.compact();
    assert_eq!(net.widths(), [2, 1, 1]);
}

#[test]
fn models_come_back_as_their_layers() {
    for has_ones in [false, true] {
        let net = mlp(&[5, 4, 3, 2], 0.2, has_ones, 3);
        let file = ModelFile::from_bytes(&net.encode(None).unwrap()).unwrap();
        let back = Mlp::of(&file, LastInput::Unknown).unwrap();
        assert_eq!(back.has_ones, has_ones);
        let same = |a: &Dense, b: &Dense| a.weights == b.weights && a.bias == b.bias;
        assert!(net.layers.iter().zip(&back.layers).all(|(a, b)| same(a, b)));
        assert_eq!(back.nnz(), file.cost().unwrap().total.nonzeros);
    }
}

#[test]
fn sums_stay_sums_under_trained_weights() {
    let mut net = mlp(&[4, 3, 1], 0.0, true, 5);
    net.layers[1].bias.clear();
    let as_weights = predictions(&net);
    net.is_sum = true;
    assert!(distance(&predictions(&net), &as_weights) < 1e-5);
    // Three neurons of four weights and a bias; those of the sum do not count.
    assert_eq!(net.nnz(), 15);
}

#[test]
fn the_penalty_has_the_gradient_of_its_formula() {
    let options = LassoOptions { lambda: 0.1, beta: 0.05 };
    for has_ones in [false, true] {
        let ones = usize::from(has_ones);
        let shape = Shape::of(&[3, 4, 3, 2]).unwrap();
        let mut weights = vec![0.0; shape.weights()];
        Rng::new(4, stream::USER).fill_normal(&mut weights);
        let lasso = GroupLasso { options, has_ones, with_neurons: true, with_inputs: true };
        let value = |weights: &[f32]| {
            let layers: Vec<_> = shape.layers().collect();
            let at = |l: usize, i: usize, j: usize| {
                f64::from(weights[layers[l].range.start + i * layers[l].inputs + j]).powi(2)
            };
            let mut groups = Vec::new();
            for j in 0..layers[0].inputs - ones {
                groups.push((0..layers[0].outputs).map(|i| at(0, i, j)).sum::<f64>());
            }
            for l in 0..2 {
                for i in 0..layers[l].outputs - ones {
                    let own: f64 = (0..layers[l].inputs).map(|j| at(l, i, j)).sum();
                    let next: f64 = (0..layers[l + 1].outputs).map(|k| at(l + 1, k, i)).sum();
                    groups.push(own + next);
                }
            }
            0.1 * groups.iter().map(|n| n / (n + 0.05).sqrt()).sum::<f64>()
        };
        let mut gradient = vec![1.0; weights.len()];
        lasso.add(&shape, &weights, &mut gradient);
        for at in 0..weights.len() {
            let moved = |step: f32| {
                let mut moved = weights.clone();
                moved[at] += step;
                value(&moved)
            };
            let slope = (moved(1e-2) - moved(-1e-2)) / 2e-2;
            let got = f64::from(gradient[at]) - 1.0;
            assert!((got - slope).abs() < 2e-4, "{has_ones} {at}: {got} {slope}");
        }
    }
}

#[test]
fn greedy_drops_copies_and_keeps_the_function() {
    for has_ones in [false, true] {
        let mut net = mlp(&[6, 4, 2], 0.0, has_ones, 7);
        // Neurons 4 to 7 are twice those before.
        let [first, last] = &mut net.layers[..] else { unreachable!() };
        first.weights.extend(first.weights.clone().iter().map(|w| 2.0 * w));
        first.bias.extend(first.bias.clone().iter().map(|w| 2.0 * w));
        first.outputs = 8;
        last.weights = last.weights.chunks(4).flat_map(|row| [row, row].concat()).collect();
        last.inputs = 8;
        let before = predictions(&net);
        let units = rows::Units::none(&net);
        let rows = units.samples(&net, &data(300, 6)).unwrap();
        greedy::select(&mut net, &[4], &rows, &Stop::new()).unwrap();
        assert_eq!(net.widths(), [6, 4, 2]);
        assert!(distance(&predictions(&net), &before) < 1e-3, "{has_ones}");
    }
}

#[test]
fn automatic_widths_suit_the_nonzeros() {
    assert_eq!(widths::automatic(&[784, 300, 100, 10], 500), [20, 12]);
    assert_eq!(widths::automatic(&[784, 300, 100, 10], 2000), [40, 24]);
    // No more than there are; of few inputs enough for the nonzeros.
    assert_eq!(widths::automatic(&[784, 15, 10], 500), [15]);
    let few = widths::automatic(&[8, 500, 1], 900);
    assert!((200..220).contains(&few[0]), "{few:?}");
}

/// Classes by the quarter of the plane that two of six numbers lie in.
fn quarters(rows: usize) -> Problem {
    let data = data(rows, 6);
    let Values::F32(values) = &data.values else { unreachable!() };
    let class = |x: &[f32]| f32::from(2 * u8::from(x[0] > 0.0) + u8::from(x[3] > 0.2));
    let labels = values.chunks(6).map(class).collect();
    Problem { data, labels, task: Task::Multiclass }
}

#[test]
fn threads_change_no_bit_of_the_model() {
    let model = mlp(&[6, 12, 9, 4], 0.0, true, 11).encode(None).unwrap();
    let source = PruneSource::of(ModelFile::from_bytes(&model).unwrap());
    for structured in [Structured::Lasso, Structured::Greedy] {
        let run = |threads| {
            let options = PruneOptions {
                structured: Some(structured),
                neurons: Neurons::Each(vec![6, 5]),
                nnz: Some(Budget::nnz(45)),
                lasso_epochs: Some(20),
                epochs: Some(100),
                threads,
                ..PruneOptions::default()
            };
            let (train, test) = quarters(1500).split(0.8, 0).unwrap();
            let rows = PruneRows::Labelled { train, test, scored_on: "test" };
            prune(&source, rows, &options, &Stop::new(), |_| ()).unwrap()
        };
        let [one, three] = [1, 3].map(run);
        assert_eq!(one.model, three.model);
        let report = one.report;
        assert_eq!((report.nnz, report.dead_weights), (45, 0));
        let [pruned, tuned] = [report.accuracy_pruned, report.accuracy].map(Option::unwrap);
        assert!(tuned > 0.9 && tuned > pruned, "{structured:?}: {pruned} {tuned}");
        let scratch = report.scratch.unwrap();
        assert_eq!(scratch.widths, [6, 6, 5, 4]);
    }
}

#[test]
fn imported_networks_keep_their_function_in_units() {
    let net = mlp(&[6, 4, 3], 0.0, true, 21);
    let floats = data(20, 6);
    let Values::F32(values) = &floats.values else { unreachable!() };
    let large = values.iter().map(|x| 1000.0 * x).collect();
    let large = Matrix::new(20, 6, Values::F32(large)).unwrap();
    let bytes = values.iter().map(|x| (40.0 * x.abs()) as u8).collect();
    let bytes = Matrix::new(20, 6, Values::U8(bytes)).unwrap();
    for (data, fractions) in [(large, 1.0), (bytes, 1.0 / 256.0)] {
        let labels = vec![5000.0; 20];
        let set = Problem { data: data.clone(), labels, task: Task::Regression };
        let units = rows::Units::of(&net, &data, Some(&set));
        let mut own = net.clone();
        units.apply(&mut own, true);
        assert_eq!(own.is_centred, fractions == 1.0);
        units.undo(&mut own);
        let mut wanted = net.clone();
        wanted.layers[0].weights.iter_mut().for_each(|w| *w *= fractions);
        let [own, wanted] = [own, wanted].map(|mlp| {
            mlp.layers.into_iter().flat_map(|layer| [layer.weights, layer.bias]).flatten()
        });
        for (own, wanted) in own.zip(wanted) {
            assert!((own - wanted).abs() <= 1e-4 * wanted.abs(), "{own} {wanted}");
        }
    }
}

/// On columns as they are, without a network to begin with.
#[test]
fn dense_networks_are_trained_before_they_are_pruned() {
    let plain = quarters(1500);
    let Values::F32(values) = &plain.data.values else { unreachable!() };
    let raw = values.iter().enumerate().map(|(k, x)| 500.0 + (1 + k % 6) as f32 * x).collect();
    let raw = Problem { data: Matrix::new(1500, 6, Values::F32(raw)).unwrap(), ..plain };
    let run = |threads| {
        let options = PruneOptions {
            nnz: Some(Budget::nnz(80)),
            neurons: Neurons::Each(vec![8, 6]),
            lasso_epochs: Some(20),
            epochs: Some(60),
            threads,
            ..PruneOptions::default()
        };
        let (train, test) = raw.clone().split(0.8, 0).unwrap();
        let rows = PruneRows::Labelled { train, test, scored_on: "test" };
        let start = DenseStart { hidden: vec![12, 9], epochs: 60 };
        group(&start, rows, &options, &Stop::new(), |_| ()).unwrap()
    };
    let [one, three] = [1, 3].map(run);
    assert_eq!(one.model, three.model);
    let PruneReport { dense_epochs, nnz, dead_weights, accuracy, accuracy_before, .. } = one.report;
    assert_eq!((dense_epochs, nnz, dead_weights), (60, 80, 0));
    assert!(
        accuracy_before > Some(0.9) && accuracy > Some(0.9),
        "{accuracy_before:?} {accuracy:?}"
    );
    assert_eq!(one.report.scratch.unwrap().epochs, 140);
    let start = DenseStart { hidden: vec![4, 0], epochs: 1 };
    let none = group(&start, PruneRows::None, &PruneOptions::default(), &Stop::new(), |_| ());
    assert!(none.unwrap_err().to_string().contains("no rows"));
}

/// Columns far from 0, of other sizes: what is pruned is what would be on columns of mean 0 and size 1.
#[test]
fn raw_columns_are_pruned_as_standardised_ones() {
    let [means, sizes] =
        [[1000.0, 0.0, -3.0, 5e4, 1e-3, 20.0], [1.0, 100.0, 0.01, 30.0, 1e-5, 2.0]];
    let plain = quarters(1500);
    let Values::F32(values) = &plain.data.values else { unreachable!() };
    let raw = values.iter().enumerate().map(|(k, x)| means[k % 6] + sizes[k % 6] * x).collect();
    let raw = Problem { data: Matrix::new(1500, 6, Values::F32(raw)).unwrap(), ..plain.clone() };
    let net = mlp(&[6, 12, 9, 4], 0.0, true, 11);
    let mut own = net.clone();
    own.map_inputs(|j, w| {
        let w = w / f64::from(sizes[j]);
        Mapped { weight: w, bias: -w * f64::from(means[j]) }
    });
    let run = |net: &Mlp, set: &Problem, epochs| {
        let model = net.encode(None).unwrap();
        let source = PruneSource::of(ModelFile::from_bytes(&model).unwrap());
        let options = PruneOptions {
            neurons: Neurons::All,
            nnz: Some(Budget::nnz(80)),
            epochs: Some(epochs),
            ..PruneOptions::default()
        };
        let (train, test) = set.clone().split(0.8, 0).unwrap();
        let rows = PruneRows::Labelled { train, test, scored_on: "test" };
        let report = prune(&source, rows, &options, &Stop::new(), |_| ()).unwrap().report;
        assert_eq!((report.nnz, report.dead_weights), (80, 0));
        report.accuracy.unwrap()
    };
    let [plain, raw] = [(&net, &plain), (&own, &raw)].map(|(net, set)| run(net, set, 150));
    assert!(raw > 0.9 && raw > plain - 0.05, "{raw} {plain}");
}

/// Without rows the units are those of the file's scaler: the cut is that of the network behind it.
#[test]
fn without_rows_columns_are_those_of_the_file() {
    let [centres, sizes] =
        [[1000.0, 0.0, -3.0, 5e4, 1e-3, 20.0], [1.0, 100.0, 0.01, 30.0, 1e-5, 2.0]];
    let net = mlp(&[6, 12, 9, 4], 0.0, true, 11);
    let mut own = net.clone();
    own.map_inputs(|j, w| Mapped { weight: w / sizes[j], bias: -w / sizes[j] * centres[j] });
    let read = |net: &Mlp, spreads: Option<Vec<Spread>>| {
        let model = ModelFile::from_bytes(&net.encode(None).unwrap()).unwrap();
        let source = PruneSource { spreads, ..PruneSource::of(model) };
        let options = PruneOptions {
            neurons: Neurons::Each(vec![8, 6]),
            inputs: Some(3),
            nnz: Some(Budget::nnz(50)),
            ..PruneOptions::default()
        };
        let pruned = prune(&source, PruneRows::None, &options, &Stop::new(), |_| ()).unwrap();
        assert_eq!((pruned.report.nnz, pruned.report.dead_weights), (50, 0));
        let model = ModelFile::from_bytes(&pruned.model).unwrap();
        Mlp::of(&model, LastInput::Unknown).unwrap().inputs_read()
    };
    let spread = |(&centre, &size): (&f64, &f64)| Spread { centre, size };
    let spreads = centres.iter().zip(&sizes).map(spread).collect();
    let plain = read(&net, None);
    assert_eq!(read(&own, Some(spreads)), plain);
    assert_ne!(read(&own, None), plain);
}

#[test]
fn inputs_that_were_cut_stay_unread() {
    let mut net = mlp(&[6, 4, 3], 0.0, false, 31);
    net.keep_inputs(&[1, 4]);
    net.layers[0].weights[1] = 0.0;
    net.layers[0].weights[7] = 0.0;
    // 8 + 12 weights between two inputs, of which two are gone: they come back, no others.
    select::keep_weights(&mut net, scores::magnitudes, 20, Missing::Regrown).unwrap();
    assert_eq!((net.nnz(), net.inputs_read()), (20, vec![1, 4]));
    let error =
        select::keep_weights(&mut net, scores::magnitudes, 21, Missing::Regrown).unwrap_err();
    assert!(error.to_string().contains("20"), "{error}");
}

#[test]
fn without_training_no_weights_are_made_up() {
    let net = mlp(&[8, 7, 5, 3], 0.6, false, 41);
    let mut left = net.clone();
    left.drop_dead();
    let most = left.nnz();
    let keep = |count| {
        let mut cut = net.clone();
        select::keep_weights(&mut cut, scores::magnitudes, count, Missing::Refused).map(|()| cut)
    };
    for count in 6..=most {
        let cut = keep(count).unwrap();
        assert_eq!((cut.nnz(), cut.dead_weights()), (count, 0));
        let old = net.layers.iter().flat_map(|layer| &layer.weights);
        let new = cut.layers.iter().flat_map(|layer| &layer.weights);
        assert!(old.zip(new).all(|(old, new)| *new == 0.0 || old == new));
    }
    assert!(keep(most + 1).is_err());
}

#[test]
fn most_nonzeros_are_those_on_paths() {
    let mut net = mlp(&[8, 7, 5, 3], 0.0, false, 41);
    // A neuron without inputs, and one that leads nowhere.
    net.layers[0].weights[..8].fill(0.0);
    net.layers[2].weights.iter_mut().step_by(5).for_each(|w| *w = 0.0);
    let model = ModelFile::from_bytes(&net.encode(None).unwrap()).unwrap();
    let pruned = |nnz| {
        let options = PruneOptions { nnz: Some(Budget::nnz(nnz)), ..PruneOptions::default() };
        let source = PruneSource::of(model.clone());
        prune(&source, PruneRows::None, &options, &Stop::new(), |_| ())
    };
    let most = 6 * 8 + 6 * 4 + 4 * 3;
    assert!(net.nnz() > most);
    for nnz in [most + 1, net.nnz(), net.nnz() + 1, 2] {
        let error = pruned(nnz).unwrap_err().to_string();
        assert!(error.contains(&format!("--nnz 3 to {most}")), "{error}");
    }
    assert_eq!([3, most].map(|nnz| pruned(nnz).unwrap().report.nnz), [3, most]);
}

#[test]
fn signs_of_sums_leave_nonzeros_nonzero() {
    let mut net = mlp(&[4, 3, 1], 0.0, true, 5);
    net.layers[1].bias.clear();
    net.is_sum = true;
    net.layers[1].weights.fill(-1e-25);
    net.layers[0].weights[2] = 1e-25;
    net.layers[0].bias[1] = -1e-25;
    let file = ModelFile::from_bytes(&net.encode(None).unwrap()).unwrap();
    // The signs of the sum are no weights, one hands the 1 of biases on.
    assert_eq!(net.nnz(), 15);
    assert_eq!(file.cost().unwrap().layers[0].cost.nonzeros, 15);
}

#[test]
fn greedy_fits_activations_of_low_rank() {
    for has_ones in [false, true] {
        let net = mlp(&[20, 40, 4], 0.0, has_ones, 51);
        let few = data(5, 20);
        let Values::F32(values) = &few.values else { unreachable!() };
        let repeated = Matrix::new(500, 20, Values::F32(values.repeat(100))).unwrap();
        let zeros = Matrix::new(30, 20, Values::F32(vec![0.0; 600])).unwrap();
        for data in [few, repeated, zeros] {
            let units = rows::Units::none(&net);
            let predict = |mlp: &Mlp| {
                let model = mlp.encode(None).unwrap();
                ModelFile::from_bytes(&model).unwrap().predict(&data).unwrap()
            };
            let mut pruned = net.clone();
            let rows = units.samples(&net, &data).unwrap();
            greedy::select(&mut pruned, &[20], &rows, &Stop::new()).unwrap();
            let apart = distance(&predict(&net), &predict(&pruned));
            assert!(apart < 1e-2, "{has_ones} {}: {apart}", data.rows);
        }
    }
}

#[test]
fn units_leave_nonzeros_nonzero() {
    let mut net = mlp(&[3, 2, 1], 0.0, false, 61);
    net.layers[0].weights[0] = f32::MIN_POSITIVE;
    let huge = vec![1e37, 1e37, 1e37, -1e37, -1e37, -1e37];
    let huge = Matrix::new(2, 3, Values::F32(huge)).unwrap();
    rows::Units::of(&net, &huge, None).undo(&mut net);
    assert_eq!(net.nnz(), 8);
}
