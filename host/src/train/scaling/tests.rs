use super::*;
use proptest::prelude::*;
use tamis::base::rng::{Rng, stream};

/// What layers give on a row, in double precision.
fn predict(of: &Layers, row: &[f64]) -> Vec<f64> {
    let mut x = row.to_vec();
    for (l, layer) in of.layers.iter().enumerate() {
        let biases = layer.biases.iter().copied().chain(std::iter::repeat(0.0));
        let sum = |(neuron, bias): (&Vec<(usize, f32)>, f32)| {
            neuron.iter().fold(f64::from(bias), |sum, &(j, w)| sum + f64::from(w) * x[j])
        };
        let sums: Vec<f64> = layer.neurons.iter().zip(biases).map(sum).collect();
        let relu = l + 1 < of.layers.len() || of.signs.is_some();
        x = sums.into_iter().map(|z| if relu { z.max(0.0) } else { z }).collect();
    }
    match &of.signs {
        Some(signs) => {
            let terms = x.iter().zip(signs).map(|(h, &minus)| if minus { -h } else { *h });
            vec![terms.sum()]
        }
        None => x,
    }
}

/// Random sparse layers behind so many inputs and a one.
fn network(rng: &mut Rng, widths: &[usize], has_sum: bool) -> Layers {
    let mut layers = Vec::new();
    for (l, pair) in widths.windows(2).enumerate() {
        let inputs = pair[0] + usize::from(l == 0);
        let mut neuron = |k: usize| {
            // Every fourth has a weight from the last input alone: a constant, or nothing.
            let all = 0..inputs;
            let is_there =
                |j: &usize| if k % 4 == 3 { *j + 1 == inputs } else { rng.uniform() < 0.6 };
            let kept: Vec<usize> = all.filter(is_there).collect();
            kept.into_iter().map(|j| (j, rng.normal())).collect::<Vec<_>>()
        };
        let neurons: Vec<_> = (0..pair[1]).map(&mut neuron).collect();
        layers.push(SparseLayer { inputs, requested: pair[1], neurons, biases: Vec::new() });
    }
    let last = widths[widths.len() - 1];
    Layers { layers, signs: has_sum.then(|| (0..last).map(|k| k % 3 == 1).collect()) }
}

proptest! {
    #[test]
    fn folded_networks_give_the_same_on_raw_rows(
        seed: u64,
        widths in prop::collection::vec(1_usize..7, 2..5),
        has_sum: bool,
        is_minmax: bool,
        with_labels: bool,
        has_ones: bool,
    ) {
        let mut rng = Rng::new(seed, stream::USER);
        let cols = widths[0];
        let unit = |j: usize| 10.0_f32.powi(j as i32 % 5 - 2);
        let values: Vec<f32> =
            (0..40 * cols).map(|k| unit(k % cols) * (3.0 * rng.normal() + 5.0)).collect();
        let data = Matrix::new(40, cols, Values::F32(values)).unwrap();
        let inputs = if is_minmax { Scaling::minmax(&data) } else { Scaling::standard(&data) };
        let mut net = network(&mut rng, &widths, has_sum);
        if !has_ones {
            // Biases of its own in place of those from a column of ones.
            net.layers[0].inputs -= 1;
            net.layers.iter_mut().for_each(|layer| {
                layer.neurons.iter_mut().for_each(|of| of.retain(|&(j, _)| j < layer.inputs));
                layer.biases = layer.neurons.iter().map(|_| rng.normal()).collect();
            });
        }
        let outputs = net.outputs();
        let labels = Scaling { shift: vec![7.0; outputs], factor: vec![0.25; outputs] };
        let maps = Maps { inputs, has_ones, outputs: with_labels.then(|| labels.clone()) };
        let folded = net.clone().fold(&maps, &[]).unwrap();
        prop_assert_eq!(folded.outputs(), outputs);
        let mapped = maps.inputs.apply(&data, has_ones).unwrap();
        let (raw, mapped) = (data.values.into_f32(), mapped.values.into_f32());
        let wide = |row: &[f32]| row.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        for (row, mapped) in raw.chunks(cols).zip(mapped.chunks(cols + usize::from(has_ones))) {
            let expected = predict(&net, &wide(mapped)).into_iter();
            let expected = expected.map(|y| if with_labels { 4.0 * y + 7.0 } else { y });
            for (got, expected) in predict(&folded, &wide(row)).into_iter().zip(expected) {
                prop_assert!((got - expected).abs() < 1e-3 * (1.0 + expected.abs()), "{got} {expected}");
            }
        }
    }
}

#[test]
fn units_that_overflow_are_refused() {
    let neurons = vec![vec![(0, 1e30_f32)]];
    let layer = SparseLayer { inputs: 2, requested: 1, neurons, biases: Vec::new() };
    let net = Layers { layers: vec![layer], signs: Some(vec![false]) };
    let inputs = Scaling { shift: vec![0.0], factor: vec![1e20] };
    let error =
        net.fold(&Maps { inputs, has_ones: true, outputs: None }, &[]).unwrap_err().to_string();
    assert!(error.contains("units of a column"), "{error}");
}

#[test]
fn only_columns_far_from_zero_need_a_map() {
    let mut rng = Rng::new(1, stream::USER);
    let mut table = |cols: usize, number: &dyn Fn(usize, f32) -> f32| {
        let values = (0..100 * cols).map(|k| number(k % cols, rng.normal())).collect();
        let data = Matrix::new(100, cols, Values::F32(values)).unwrap();
        let labels = (0..100).map(|k| (k % 2) as f32).collect();
        let problem = Problem { data, labels, task: Task::Binary };
        [false, true].map(|has_units| Scaling::is_needed(&problem, has_units))
    };
    assert_eq!(table(8, &|_, x| x), [false, false]);
    assert_eq!(table(8, &|_, x| 0.001 * x), [false, true]);
    assert_eq!(table(8, &|j, x| 10.0_f32.powi(j as i32) * x), [false, true]);
    assert_eq!(table(8, &|_, x| x + 10.0), [true, true]);
    // A pixel that is 0 in most rows is none of another unit, and a column that is small in all rows is.
    let pixel = |j: usize, x: f32| match j {
        0 => 0.05 * f32::from(u8::from(x > 2.0)),
        _ => x,
    };
    assert_eq!(table(8, &pixel), [false, false]);
    assert_eq!(table(8, &|j, x| if j == 0 { 0.002 * x } else { x }), [false, true]);
    // One column of many may be.
    assert_eq!(table(30, &|j, x| if j == 0 { x + 3.5 } else { x }), [false, false]);
    assert_eq!(table(3, &|_, _| 5.0), [false, false]);
    assert_eq!(table(3, &|j, x| if j == 0 { 5.0 } else { x }), [false, true]);
    let bytes = Matrix::new(2, 1, Values::U8(vec![0, 255])).unwrap();
    let labels = vec![0.0, 1.0];
    assert!(!Scaling::is_needed(&Problem { data: bytes, labels, task: Task::Binary }, true));
}
