extern crate std;
use super::*;
use crate::data::samples::{Rows, Samples};
use crate::learn::deep::backprop::{self, RowByRow};
use crate::learn::loss::Labels;
use crate::network::gates::Signs;
use crate::network::weights::Weights;
use core::ops::ControlFlow::{Break, Continue};
use std::vec;
use std::vec::Vec;

const ROWS: usize = 40;
const INPUTS: usize = 5;

/// Numbers that look random, in -1 to 1.
fn noise(len: usize, seed: u64) -> Vec<f32> {
    let mut values = vec![0.0; len];
    crate::base::rng::Rng::new(seed, stream::USER).fill_normal(&mut values);
    values
}

/// Buffers of a network; every third weight is missing, and so are a row and a column.
struct Net {
    widths: Vec<usize>,
    is_sum: bool,
    index: Vec<u32>,
    value: Vec<f32>,
}

impl Net {
    fn new(hidden: &[usize], outputs: usize, is_sum: bool) -> Self {
        let mut widths = vec![INPUTS];
        widths.extend(hidden);
        if !is_sum {
            widths.push(outputs);
        }
        let most = widths.windows(2).map(|pair| pair[0] * pair[1]).sum();
        Self { widths, is_sum, index: vec![0; most], value: vec![0.0; most] }
    }

    fn stack(&mut self) -> Stack<'_> {
        let mut stack = Stack::new(INPUTS, &mut self.index, &mut self.value);
        let layers = self.widths.len() - 1;
        for (l, pair) in self.widths.windows(2).enumerate() {
            let is_end = l + 1 == layers && !self.is_sum;
            let (inputs, outputs) = if is_end { (pair[1], pair[0]) } else { (pair[0], pair[1]) };
            let is_kept = |at: &u32| at % 3 != 2 && at % inputs as u32 != 1 || *at == 0;
            let index: Vec<u32> = (0..(inputs * outputs) as u32).filter(is_kept).collect();
            let value = noise(index.len(), l as u64);
            let w = Weights::new(inputs, outputs, &index, &value).unwrap();
            match is_end {
                true => stack.end_weights(w).unwrap(),
                false => stack.push(w, Signs::Positive).unwrap(),
            }
        }
        if self.is_sum {
            stack.end_sum(&[2]).unwrap();
        }
        stack
    }
}

fn with_rows<R>(
    stack: &mut Stack<'_>,
    labels: Labels<'_>,
    work: impl FnOnce(&mut RowByRow<'_, Rows<'_>>, &mut Stack<'_>) -> R,
) -> R {
    let x = noise(ROWS * INPUTS, 99);
    let mut memory = vec![0; backprop::words(stack.activations(), stack.outputs())];
    let rows = Rows::new(&x, INPUTS).unwrap();
    let mut backprop = RowByRow::new(rows, labels, stack, &mut memory).unwrap();
    work(&mut backprop, stack)
}

/// Central differences of the mean loss; the network is piecewise smooth, and few steps cross an
/// edge.
#[test]
fn gradients_are_slopes_of_the_loss() {
    let classes: Vec<u16> = (0..ROWS).map(|k| (k * 7 % 3) as u16).collect();
    let values = noise(ROWS * 3, 5);
    for hidden in [&[6][..], &[5, 4], &[7, 3, 4]] {
        for (labels, is_sum) in [
            (Labels::classes(&classes, 3), false),
            (Labels::values(&values), false),
            (Labels::values(&values[..ROWS]), true),
        ] {
            let mut net = Net::new(hidden, 3, is_sum);
            with_rows(&mut net.stack(), labels, |rows, stack| {
                rows.check(stack).unwrap();
                let mut gradient = vec![0.0; stack.nnz()];
                let order = Some(Permutation::new(1, 2, ROWS));
                let batch = Batch { positions: 0..ROWS, order };
                let sum = rows.gradient(stack, &batch, &mut gradient).unwrap();
                let terms = ROWS as f32 * labels.terms(ROWS);
                let mean = rows.loss(stack, &Batch::all(ROWS)).unwrap();
                assert!((sum / terms / mean - 1.0).abs() < 1e-5, "{sum} {mean}");
                for (j, g) in gradient.iter().enumerate() {
                    let w = stack.values()[j];
                    let mut at = |step: f32| {
                        stack.values_mut()[j] = w + step;
                        let loss = rows.loss(stack, &Batch::all(ROWS)).unwrap();
                        stack.values_mut()[j] = w;
                        loss
                    };
                    let slope = (at(1e-3) - at(-1e-3)) / 2e-3;
                    let g = -labels.slope() * g / terms;
                    assert!((slope - g).abs() < 1e-2 * (0.1 + g.abs()), "{hidden:?} {slope} {g}");
                }
            });
        }
    }
}

/// Two epochs by the formulas in double precision.
#[test]
fn steps_are_those_of_the_definitions() {
    let classes: Vec<u16> = (0..ROWS).map(|k| (k * 7 % 3) as u16).collect();
    for optimiser in [Optimiser::Sgd { momentum: 0.9 }, Optimiser::Adam] {
        let params = Params {
            epochs: 2,
            batch: 15,
            optimiser,
            rate: 0.05,
            warmup: 2,
            falls: &[1],
            factor: 0.5,
            decay: 0.01,
            fixed: &[],
            seed: 7,
        };
        let labels = Labels::classes(&classes, 3);
        let mut net = Net::new(&[6, 4], 3, false);
        let (trained, rates) = with_rows(&mut net.stack(), labels, |rows, stack| {
            let mut rates = Vec::new();
            let mut memory = vec![1; words(stack.nnz(), optimiser)];
            let info = run(rows, stack, &params, &mut memory, |now| {
                rates.push(now.rate);
                Continue(())
            });
            let info = info.unwrap();
            assert_eq!((info.epochs, info.steps, info.stopped), (2, 6, false));
            (stack.values().to_vec(), rates)
        });
        assert_eq!(rates, [0.05, 0.025]);
        let wanted = with_rows(&mut net.stack(), labels, |rows, stack| {
            let mut w: Vec<f64> = stack.values().iter().map(|&w| w.into()).collect();
            let (mut m, mut v) = (vec![0.0; w.len()], vec![0.0; w.len()]);
            for step in 0..6 {
                let epoch = step / 3;
                let order = Some(Permutation::new(7, stream::ROWS + epoch, ROWS));
                let start = (step % 3) as usize * 15;
                let batch = Batch { positions: start..(start + 15).min(ROWS), order };
                let count = batch.rows().count() as f64;
                let rate = [0.025, 0.05, 0.05, 0.025, 0.025, 0.025][step as usize];
                let mut gradient = vec![0.0; w.len()];
                let values: Vec<f32> = w.iter().map(|&w| w as f32).collect();
                stack.values_mut().copy_from_slice(&values);
                rows.gradient(stack, &batch, &mut gradient).unwrap();
                for i in 0..w.len() {
                    let g = 0.01 * w[i] - f64::from(gradient[i]) / count;
                    if let Optimiser::Sgd { .. } = optimiser {
                        m[i] = 0.9 * m[i] + g;
                        w[i] -= rate * m[i];
                    } else {
                        m[i] = 0.9 * m[i] + 0.1 * g;
                        v[i] = 0.999 * v[i] + 0.001 * g * g;
                        let t = step as i32 + 1;
                        let mean = m[i] / (1.0 - 0.9_f64.powi(t));
                        let square = v[i] / (1.0 - 0.999_f64.powi(t));
                        w[i] -= rate * mean / (square.sqrt() + 1e-8);
                    }
                }
            }
            w
        });
        for (w, wanted) in trained.iter().zip(&wanted) {
            assert!((f64::from(*w) - wanted).abs() < 1e-4, "{optimiser:?} {w} {wanted}");
        }
    }
}

#[test]
fn planted_classes_are_learned() {
    let mut planted = Net::new(&[6], 3, false);
    let mut classes = vec![0; ROWS];
    with_rows(&mut planted.stack(), Labels::values(&[]), |_, stack| {
        let x = noise(ROWS * INPUTS, 99);
        for (k, class) in classes.iter_mut().enumerate() {
            let (mut row, mut out) = ([0.0; INPUTS], [0.0; 3]);
            Rows::new(&x, INPUTS).unwrap().row(k, &mut row).unwrap();
            stack.predict(&row, &mut [0.0; 30], &mut out).unwrap();
            *class = crate::learn::loss::best(&out) as u16;
        }
    });
    for params in [Params::SGD, Params { rate: 0.01, ..Params::ADAM }] {
        let mut net = Net::new(&[6], 3, false);
        with_rows(&mut net.stack(), Labels::classes(&classes, 3), |rows, stack| {
            stack.values_mut().iter_mut().for_each(|w| *w = 0.3 * *w + 0.1);
            let params = Params { epochs: 200, batch: 10, ..params };
            let mut memory = vec![0; words(stack.nnz(), params.optimiser)];
            let mut losses = Vec::new();
            let info = run(rows, stack, &params, &mut memory, |now| {
                losses.push(now.loss);
                Continue(())
            });
            let last = info.unwrap().loss;
            assert!(last < 0.5 * losses[0], "{:?} {} {last}", params.optimiser, losses[0]);
        });
    }
}

#[test]
fn observer_stops_run_and_large_steps_diverge() {
    let values = noise(ROWS, 5);
    let mut net = Net::new(&[6], 1, false);
    with_rows(&mut net.stack(), Labels::values(&values), |rows, stack| {
        let mut memory = vec![0; words(stack.nnz(), Params::SGD.optimiser)];
        let info = run(rows, stack, &Params::SGD, &mut memory, |_| Break(())).unwrap();
        assert_eq!((info.epochs, info.stopped), (1, true));
        let far = Params { rate: 1e20, ..Params::SGD };
        let refused = run(rows, stack, &far, &mut memory, |_| Continue(()));
        assert!(matches!(refused, Err(Error::Diverged { .. })), "{refused:?}");
    });
}

#[test]
fn settings_out_of_bounds_are_refused() {
    let values = noise(ROWS, 5);
    let mut net = Net::new(&[6], 1, false);
    with_rows(&mut net.stack(), Labels::values(&values), |rows, stack| {
        let mut refused = |params: Params<'_>, memory: usize| {
            run(rows, stack, &params, &mut vec![0; memory], |_| Continue(())).unwrap_err()
        };
        let usual = Params::SGD;
        let what = |error: Error| error.what();
        let adam = Params::ADAM;
        for (params, name) in [
            (Params { epochs: 0, ..usual }, "epochs"),
            (Params { batch: 0, ..usual }, "rows of a batch"),
            (Params { rate: 0.0, ..usual }, "rate above 0"),
            (Params { rate: f32::NAN, ..usual }, "rate, factor or weight decay"),
            (Params { factor: -1.0, ..adam }, "factor of the rate above 0"),
            (Params { decay: -1.0, ..usual }, "weight decay of 0 or more"),
            (Params { optimiser: Optimiser::Sgd { momentum: 1.0 }, ..usual }, "momentum below 1"),
            (Params { falls: &[3, 2], ..usual }, "indices: expected strictly rising"),
        ] {
            assert_eq!(what(refused(params, 1000)), name);
        }
        assert!(matches!(refused(usual, 3), Error::Budget { got: 12, .. }));
    });
}

#[test]
fn fixed_weights_stay_and_change_no_other() {
    let values = noise(ROWS, 5);
    let trained = |fixed: &[u32], params: Params<'_>| {
        let mut net = Net::new(&[6], 1, false);
        let mut stack = net.stack();
        with_rows(&mut stack, Labels::values(&values), |rows, stack| {
            let params = Params { epochs: 1, batch: ROWS, decay: 0.1, rate: 0.01, fixed, ..params };
            let mut memory = vec![0; words(stack.nnz(), params.optimiser)];
            run(rows, stack, &params, &mut memory, |_| Continue(())).unwrap();
        });
        stack.values().to_vec()
    };
    let start = Net::new(&[6], 1, false).stack().values().to_vec();
    for params in [Params::SGD, Params::ADAM] {
        let (free, fixed) = (trained(&[], params), trained(&[0, 3, 4], params));
        for (at, (free, fixed)) in free.iter().zip(&fixed).enumerate() {
            let wanted = if [0, 3, 4].contains(&at) { &start[at] } else { free };
            assert_eq!(fixed, wanted, "{at}");
        }
        assert!(free != start);
    }
}
