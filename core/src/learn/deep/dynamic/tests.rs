extern crate std;
use super::*;
use crate::base::rng::Rng;
use crate::data::samples::{Rows, Shifted};
use crate::learn::deep::Head;
use crate::learn::deep::backprop::{self, Backprop, Derivatives, PanelMemory, Panels, RowByRow};
use crate::learn::loss::Labels;
use crate::network::mask::Mlp;
use crate::network::mask::allocate::{Allocation, Bounds};
use crate::network::mask::select::BINS;
use crate::network::weights::Weights;
use core::ops::ControlFlow::{Break, Continue};
use std::vec;
use std::vec::Vec;

const ROWS: usize = 600;
const INPUTS: usize = 24;

/// Rows of normal numbers and a last 1, and classes of the largest of three sparse sums.
fn classes(constant: bool) -> (Vec<f32>, Vec<u16>) {
    let width = INPUTS + usize::from(constant);
    let mut rng = Rng::new(4, 0);
    let mut x = vec![1.0; ROWS * width];
    x.chunks_mut(width).for_each(|row| rng.fill_normal(&mut row[..INPUTS]));
    let class = |row: &[f32]| {
        let sums = [row[0].max(0.0) + row[5], row[7] - row[2].max(0.0), row[11].abs() - 0.5];
        (0..3).max_by(|&a, &b| f32::total_cmp(&sums[a], &sums[b])).unwrap() as u16
    };
    let y = x.chunks(width).map(class).collect();
    (x, y)
}

struct Fit {
    /// Weights of each layer.
    layers: Vec<usize>,
    index: Vec<u32>,
    value: Vec<f32>,
    nnz: usize,
    info: Info,
    /// Losses on the validation rows, as they were looked at.
    held: Vec<f32>,
    accuracy: f32,
}

fn fit(hidden: &[usize], params: &Params, stop_at: u32) -> Fit {
    let one = usize::from(params.constant);
    let (x, y) = classes(params.constant);
    let widths: Vec<usize> = hidden.iter().copied().chain([3]).collect();
    let most = 4 * 24 * 24;
    let (mut index, mut value) = (vec![0; most], vec![0.0; most]);
    let mut stack = Stack::new(INPUTS + one, &mut index, &mut value);
    let acts = INPUTS + one + hidden.iter().map(|h| h + one).sum::<usize>();
    let best = 2 * params.best_room(widths.len());
    let mut memory = vec![0xdead_beef; words(params.moments, most, acts, 3, 30) + best];
    start(&mut stack, &widths, params, &mut memory).unwrap();
    let mut own = vec![0; backprop::words(acts, 3)];
    let rows = Rows::new(&x, INPUTS + one).unwrap();
    let mut backprop = RowByRow::new(rows, Labels::classes(&y, 3), &stack, &mut own).unwrap();
    let mut held = Vec::new();
    let info = run(&mut backprop, &mut stack, params, &mut memory, None, |progress| {
        held.extend(progress.validation);
        if progress.epoch >= stop_at { Break(()) } else { Continue(()) }
    })
    .unwrap();
    for w in stack.layers() {
        // In order and within the layer.
        crate::network::weights::Weights::new(w.inputs(), w.hidden(), w.index(), w.value())
            .unwrap();
    }
    let mut right = 0;
    for (row, &y) in x.chunks(INPUTS + one).zip(&y) {
        let (mut scratch, mut out) = (vec![0.0; acts], [0.0; 3]);
        stack.predict(row, &mut scratch, &mut out).unwrap();
        let best = (0..3).max_by(|&a, &b| f32::total_cmp(&out[a], &out[b])).unwrap();
        right += usize::from(best == usize::from(y));
    }
    let nnz = stack.nnz() - one * hidden.len();
    let all = stack.nnz();
    Fit {
        layers: stack.layers().map(|w| w.nnz()).collect(),
        index: index[..all].to_vec(),
        value: value[..all].to_vec(),
        nnz,
        info,
        held,
        accuracy: right as f32 / ROWS as f32,
    }
}

fn params(nnz: usize) -> Params {
    Params {
        epochs: 40,
        batch: 20,
        every: 25,
        warmup: 20,
        factor: 4.0,
        rows: 200,
        ..Params::new(nnz)
    }
}

#[test]
fn classes_are_learned_with_exactly_the_nonzeros_asked_for() {
    for hidden in [&[10][..], &[10, 8], &[10, 8, 6]] {
        for (constant, moments) in [
            (false, Moments::F32),
            (true, Moments::F32),
            (false, Moments::Bf16),
            (true, Moments::Bf16),
        ] {
            let found = fit(hidden, &Params { constant, moments, ..params(40) }, u32::MAX);
            assert_eq!(found.nnz, 40, "{hidden:?}");
            assert!(found.value.iter().all(|value| *value != 0.0));
            assert!(found.accuracy > 0.78, "{hidden:?} {constant} {}", found.accuracy);
            assert!(found.info.grown > 0 && found.info.changes == 47, "{:?}", found.info);
        }
    }
}

#[test]
fn recipes_of_others_are_settings() {
    let own = params(40);
    let dense = Params { factor: 10.0, ..own };
    for (name, params) in [
        ("gradual", dense.gradual()),
        ("rigl", own.rigl()),
        ("set", own.set()),
        ("momentum", own.momentum()),
    ] {
        let found = fit(&[10, 8], &params, u32::MAX);
        assert!((36..=40).contains(&found.nnz), "{name} {}", found.nnz);
        assert!(found.accuracy > 0.6, "{name} {}", found.accuracy);
        assert_eq!(found.info.grown == 0, name == "gradual");
        // Layers keep their shares, but for what those before could not have, or some become larger.
        let (mut shares, net) = ([0; 3], Mlp::new(&[INPUTS, 10, 8, 3]).unwrap());
        Allocation::ErdosRenyi.share(&net, 40, Bounds::at_least(1), &mut shares).unwrap();
        let over = |(own, share): (&usize, &usize)| own.saturating_sub(*share);
        let is_within = found.layers.iter().zip(&shares).map(over).sum::<usize>() < 5;
        let is_per_layer = params.selection == Selection::PerLayer;
        assert_eq!(is_within, is_per_layer, "{name} {:?} {shares:?}", found.layers);
    }
}

#[test]
fn runs_repeat_bit_for_bit_and_differ_by_seed() {
    let own = Params { epochs: 6, ..params(30) };
    let bits = |params: &Params| {
        let found = fit(&[10, 8], params, u32::MAX);
        (found.index, found.value.iter().map(|value| value.to_bits()).collect::<Vec<_>>())
    };
    assert_eq!(bits(&own), bits(&own));
    assert_ne!(bits(&own), bits(&Params { seed: 1, ..own }));
}

#[test]
fn ended_runs_keep_no_more_than_asked_for() {
    let found = fit(&[10, 8], &Params { constant: true, ..params(30) }, 2);
    assert!(found.info.stopped && found.nnz <= 30, "{}", found.nnz);
    assert!(found.info.cut > 0, "{:?}", found.info);
    assert_eq!(found.info.epochs, 2);
}

/// The loss of a network on the last `count` rows.
fn loss_of_last(found: &Fit, hidden: usize, count: usize) -> f32 {
    let (x, y) = classes(true);
    let (mut index, mut value) = (found.index.clone(), found.value.clone());
    let mut stack = Stack::new(INPUTS + 1, &mut index, &mut value);
    let end = found.layers[0];
    let first = Weights::new(INPUTS + 1, hidden + 1, &found.index[..end], &found.value[..end]);
    stack.add(first.unwrap()).unwrap();
    let last = Weights::new(3, hidden + 1, &found.index[end..], &found.value[end..]).unwrap();
    stack.add(last).unwrap();
    stack.head = Head::Weights(3);
    let mut own = vec![0; backprop::words(stack.activations(), 3)];
    let rows = Rows::new(&x, INPUTS + 1).unwrap();
    let mut backprop = RowByRow::new(rows, Labels::classes(&y, 3), &stack, &mut own).unwrap();
    backprop.loss(&stack, &Batch { positions: ROWS - count..ROWS, order: None }).unwrap()
}

#[test]
fn validation_rows_choose_the_network() {
    // Steps so long that the loss goes up and down, and stays long, so that networks differ.
    let own = Params { constant: true, rate: 0.1, decay: 0.0, settled: 0.4, ..params(60) };
    let validated = Params { validation: 90, ..own };
    let best = fit(&[12], &validated, u32::MAX);
    let least = best.held.iter().copied().reduce(f32::min);
    assert_eq!(best.info.validation, Some(loss_of_last(&best, 12, 90)));
    assert!(best.info.validation == least && best.held.last().copied() > least, "{:?}", best.held);
    // Looked at from 0.4 of the epochs on, when the support has its last size.
    assert!((24..=25).contains(&best.held.len()) && !best.info.early, "{:?}", best.held);
    assert_eq!(best.nnz, 60);
    let early = fit(&[12], &Params { patience: 2, ..validated }, u32::MAX);
    assert!(early.info.early && !early.info.stopped && early.info.epochs < 40, "{:?}", early.info);
    assert_eq!(early.info.validation, Some(loss_of_last(&early, 12, 90)));
    // Before the support has shrunk there is none.
    let ended = fit(&[12], &validated, 3);
    assert!(ended.info.stopped && ended.info.validation.is_none() && ended.nnz <= 60);
}

/// Rows of three bars in pictures of 7 columns and 6 rows, with noise and a last 1: a bar that stands, one that lies and
/// one that leans, each moved by at most one pixel.
fn bars(seed: u64, rows: usize, is_moved: bool) -> (Vec<f32>, Vec<u16>) {
    let mut rng = Rng::new(seed, 0);
    let mut x = Vec::new();
    let classes = (0..rows).map(|k| (k % 3) as u16).collect::<Vec<_>>();
    for class in &classes {
        let mut by = || if is_moved { rng.below(3) as usize } else { 1 };
        let (down, right) = (by(), by());
        let mut picture = [0.0; 43];
        rng.fill_normal(&mut picture);
        picture.iter_mut().for_each(|pixel| *pixel *= 0.1);
        for k in 0..4 {
            let (i, j) = [(k, 2), (2, k), (k, k)][usize::from(*class)];
            picture[(down + i) * 7 + right + j] += 1.0;
        }
        picture[42] = 1.0;
        x.extend(picture);
    }
    (x, classes)
}

/// The share of moved pictures that are right, after training on few of which each stands in its middle.
fn right_of_moved(moves: usize) -> f32 {
    let params = Params { constant: true, validation: 12, ..params(80) };
    let (x, y) = bars(1, 48, false);
    let (mut index, mut value) = (vec![0; 400], vec![0.0; 400]);
    let mut stack = Stack::new(43, &mut index, &mut value);
    let acts = 43 + 13;
    let mut memory = vec![0; words(params.moments, 400, acts, 3, 43) + 2 * params.best_room(2)];
    start(&mut stack, &[12, 3], &params, &mut memory).unwrap();
    let mut own = vec![0; backprop::words(acts, 3)];
    let rows = Shifted::beside_constant(Rows::new(&x, 43).unwrap(), 7, moves, 9).unwrap();
    let mut rows = RowByRow::new(rows, Labels::classes(&y, 3), &stack, &mut own).unwrap();
    let info = run(&mut rows, &mut stack, &params, &mut memory, None, |_| Continue(())).unwrap();
    // Rows that choose the network are not moved: the loss on them is that of the network on the rows as they are.
    let mut own = vec![0; backprop::words(acts, 3)];
    let still = Rows::new(&x, 43).unwrap();
    let mut still = RowByRow::new(still, Labels::classes(&y, 3), &stack, &mut own).unwrap();
    let held = Batch { positions: 36..48, order: None };
    assert_eq!(info.validation, Some(still.loss(&stack, &held).unwrap()));
    let (x, y) = bars(2, 300, true);
    let mut right = 0.0;
    for (row, &class) in x.chunks(43).zip(&y) {
        let (mut scratch, mut out) = (vec![0.0; acts], [0.0; 3]);
        stack.predict(row, &mut scratch, &mut out).unwrap();
        right += f32::from(crate::learn::loss::best(&out) == usize::from(class));
    }
    right / 300.0
}

#[test]
fn moved_pictures_are_learned_from_few() {
    let [without, with] = [0, 1].map(right_of_moved);
    assert!(with > 0.7 && with > without + 0.3, "{without} {with}");
}

#[test]
fn several_numbers_are_learned() {
    let mut rng = Rng::new(8, 0);
    let mut x = vec![0.0; 400 * INPUTS];
    rng.fill_normal(&mut x);
    let sums = |row: &[f32]| [row[0].max(0.0) - row[3], (row[5] + row[7]).max(0.0)];
    let y: Vec<f32> = x.chunks(INPUTS).flat_map(sums).collect();
    let params = Params { epochs: 80, ..params(40) };
    let (mut index, mut value) = (vec![0; 400], vec![0.0; 400]);
    let (mut stack, acts) = (Stack::new(INPUTS, &mut index, &mut value), INPUTS + 16);
    let mut memory = vec![0; words(params.moments, 400, acts, 2, INPUTS)];
    start(&mut stack, &[8, 8, 2], &params, &mut memory).unwrap();
    let mut own = vec![0; backprop::words(acts, 2)];
    let rows = Rows::new(&x, INPUTS).unwrap();
    let mut rows = RowByRow::new(rows, Labels::values(&y), &stack, &mut own).unwrap();
    let none = y.iter().map(|y| y * y).sum::<f32>() / y.len() as f32;
    let info = run(&mut rows, &mut stack, &params, &mut memory, None, |_| Continue(())).unwrap();
    assert!(stack.nnz() <= 40 && info.loss < 0.02 * none, "{} {none}", info.loss);
}

#[test]
fn panels_are_the_gradient_on_the_support() {
    let (x, y) = classes(true);
    let own = Params { constant: true, ..params(60) };
    let (mut index, mut value) = (vec![0; 2000], vec![0.0; 2000]);
    let mut stack = Stack::new(INPUTS + 1, &mut index, &mut value);
    let acts = INPUTS + 1 + 11 + 9;
    start(&mut stack, &[10, 8, 3], &own, &mut vec![0; BINS]).unwrap();
    let mut memory = vec![0; backprop::words(acts, 3)];
    // Each row is moved by its own draw, which all panels have to see.
    let rows = Rows::new(&x, INPUTS + 1).unwrap();
    let rows = Shifted::beside_constant(rows, 6, 2, 5).unwrap();
    let mut backprop = RowByRow::new(rows, Labels::classes(&y, 3), &stack, &mut memory).unwrap();
    let batch = Batch { positions: 3..50, order: None };
    let mut gradient = vec![0.0; stack.nnz()];
    backprop.gradient(&stack, &batch, &mut gradient).unwrap();
    backprop.skip(0);
    let mut at = 0;
    let (mut sizes, mut panel) = (vec![0.0; acts], vec![9.0; 4 * (INPUTS + 1)]);
    let mut memory = PanelMemory { sizes: &mut sizes, panel: &mut panel };
    let see = |of: Derivatives<'_>| {
        let (l, low) = (of.panel.layer, of.panel.blocks.start);
        let w = stack.layers().nth(l).unwrap();
        let own = &gradient[stack.range(l)];
        for (&entry, gradient) in w.index().iter().zip(own) {
            let place = (entry as usize).checked_sub(low * w.inputs());
            if let Some(found) = place.and_then(|e| of.values.get(e)) {
                assert!((found - gradient).abs() < 1e-4, "{found} {gradient}");
                at += 1;
            }
        }
    };
    backprop.panels(&stack, &batch, 0..3, &mut memory, see).unwrap();
    assert_eq!(at, stack.nnz());
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let good = params(30);
    for bad in [
        Params { nnz: 0, ..good },
        Params { epochs: 0, ..good },
        Params { batch: 0, ..good },
        Params { every: 0, ..good },
        Params { rows: 0, ..good },
        Params { rate: 0.0, ..good },
        Params { rate: f32::NAN, ..good },
        Params { decay: -1.0, ..good },
        Params { decay: 100.0, ..good },
        Params { factor: 0.5, ..good },
        Params { hold: 0.9, ..good },
        Params { still: 1.5, ..good },
        Params { exchange: -0.1, ..good },
        Params { offset: -1.0, ..good },
        Params { validation: 100, ..good },
    ] {
        assert!(bad.check(100).is_err(), "{bad:?}");
    }
    let (mut index, mut value) = (vec![0; 200], vec![0.0; 200]);
    let mut stack = Stack::new(INPUTS, &mut index, &mut value);
    let mut memory = vec![0; BINS];
    for (widths, nnz) in
        [(&[][..], 30), (&[0, 3], 30), (&[10, 3], 1), (&[10, 3], 300), (&[40, 3], 200)]
    {
        let own = Params { nnz, ..good };
        assert!(start(&mut stack, widths, &own, &mut memory).is_err(), "{widths:?} {nnz}");
    }
}

#[test]
fn few_weights_of_wide_layers_begin_on_paths() {
    let (mut index, mut value) = (vec![0; 200], vec![0.0; 200]);
    for constant in [false, true] {
        let inputs = INPUTS + usize::from(constant);
        let own = Params { constant, ..params(20) };
        let mut stack = Stack::new(inputs, &mut index, &mut value);
        start(&mut stack, &[400, 300, 3], &own, &mut vec![0; BINS]).unwrap();
        let mut reached: Vec<bool> = vec![true; INPUTS];
        let mut counts = Vec::new();
        for (l, w) in stack.layers().enumerate() {
            let (width, is_end) = (w.inputs(), l == 2);
            let ends = |&e: &u32| {
                let (block, within) = (e as usize / width, e as usize % width);
                if is_end { (block, within) } else { (within, block) }
            };
            let own = w.index().iter().map(ends);
            let own: Vec<_> = own.filter(|(from, _)| reached.get(*from) == Some(&true)).collect();
            counts.push(own.len());
            reached = vec![false; [400, 300, 3][l]];
            for (_, to) in own {
                reached.get_mut(to).into_iter().for_each(|is_reached| *is_reached = true);
            }
        }
        // Of 80, which over all neurons hardly met.
        assert!(counts[1] >= 8 && counts[2] >= 4, "{counts:?}");
        assert!(reached.iter().any(|is_reached| *is_reached), "{counts:?}");
    }
}

#[test]
fn resumed_run_has_the_same_bits() {
    for moments in [Moments::F32, Moments::Bf16] {
        resumes(&Params { constant: true, moments, ..params(60) }, 0);
    }
    // One checkpoint is before there is a best network, one behind; and rows are moved.
    let validated = Params { validation: 90, patience: 4, ..params(60) };
    resumes(&Params { constant: true, epochs: 20, ..validated }, 1);
}

/// Of rows as pictures of six columns, moved by at most so many pixels.
fn resumes(params: &Params, moved: usize) {
    use crate::base::record::Record;
    let (x, y) = classes(true);
    let (widths, most, acts) = ([12, 3], 600, INPUTS + 1 + 13);
    // Runs from a checkpoint or the start: the network, and the checkpoint after so many epochs.
    let course = |from: Option<&[u32]>, at: u32| {
        let (mut index, mut value) = (vec![0; most], vec![0.0; most]);
        let mut stack = Stack::new(INPUTS + 1, &mut index, &mut value);
        let best = params.best_room(2);
        let memory = words(params.moments, most, acts, 3, 30) + 2 * best;
        let mut memory = vec![0xdead_beef; memory];
        let form = Checkpoint::form(most, best);
        let from = from.map(|words| Checkpoint::read(&form, words).unwrap());
        match &from {
            Some(checkpoint) => checkpoint.restore(&mut stack, &widths, params).unwrap(),
            None => start(&mut stack, &widths, params, &mut memory).unwrap(),
        }
        let mut own = vec![0; backprop::words(acts, 3)];
        let rows =
            Shifted::beside_constant(Rows::new(&x, INPUTS + 1).unwrap(), 6, moved, 2).unwrap();
        let mut backprop = RowByRow::new(rows, Labels::classes(&y, 3), &stack, &mut own).unwrap();
        let mut words = Vec::new();
        let see = |progress: &Progress<'_>| {
            if progress.epoch == at {
                let done = progress.checkpoint.write::<()>(&mut |piece| {
                    words.extend_from_slice(piece);
                    Ok(())
                });
                assert_eq!(done, Ok(()));
                assert_eq!(words.len(), progress.checkpoint.words());
            }
            Continue(())
        };
        let info = run(&mut backprop, &mut stack, params, &mut memory, from.as_ref(), see).unwrap();
        let nnz = stack.nnz();
        (index[..nnz].to_vec(), value[..nnz].to_vec(), info, words)
    };
    let whole = course(None, 17);
    for at in [1, 17] {
        let (.., words) = course(None, at);
        let resumed = course(Some(&words), 0);
        assert_eq!((&resumed.0, &resumed.1, resumed.2), (&whole.0, &whole.1, whole.2), "{at}");
    }
    // What is damaged is refused.
    let best = params.best_room(2);
    let form = Checkpoint::form(most, best);
    let mut words = whole.3.clone();
    words[form.least_words() + 3] = 0;
    let damaged = Checkpoint::read(&form, &words).unwrap();
    let (mut index, mut value) = (vec![0; most], vec![0.0; most]);
    let mut stack = Stack::new(INPUTS + 1, &mut index, &mut value);
    assert!(damaged.restore(&mut stack, &widths, params).is_err());
    assert!(Checkpoint::read(&Checkpoint::form(20, best), &whole.3).is_err());
    if best > 0 {
        // The second weight of the best network, which is then before the first.
        let mut words = whole.3.clone();
        let at = words.len() - 2 * (words[form.least_words() - 1] as usize);
        words[at + 1] = 0;
        let damaged = Checkpoint::read(&form, &words).unwrap();
        let (mut index, mut value) = (vec![0; most], vec![0.0; most]);
        let mut stack = Stack::new(INPUTS + 1, &mut index, &mut value);
        assert!(damaged.restore(&mut stack, &widths, params).is_err());
    }
    // Moments of the other kind are none of this run's.
    let moments = match params.moments {
        Moments::F32 => Moments::Bf16,
        Moments::Bf16 => Moments::F32,
    };
    let other = Params { moments, ..*params };
    let held = Checkpoint::read(&form, &whole.3).unwrap();
    let (mut index, mut value) = (vec![0; most], vec![0.0; most]);
    let mut stack = Stack::new(INPUTS + 1, &mut index, &mut value);
    held.restore(&mut stack, &widths, &other).unwrap();
    let mut memory = vec![0; super::words(moments, most, acts, 3, 30) + 2 * best];
    let mut own = vec![0; backprop::words(acts, 3)];
    let rows = Rows::new(&x, INPUTS + 1).unwrap();
    let mut backprop = RowByRow::new(rows, Labels::classes(&y, 3), &stack, &mut own).unwrap();
    let never = |_: &Progress<'_>| Continue(());
    assert!(run(&mut backprop, &mut stack, &other, &mut memory, Some(&held), never).is_err());
}

#[test]
fn a_weight_takes_20_bytes_or_16() {
    let (acts, outputs, panel) = (1100_usize, 10, 800);
    for (moments, bytes) in [(Moments::F32, 20), (Moments::Bf16, 16)] {
        for most in [0, 1, 5322, 53_220] {
            // Index and value, gradient, two moments.
            let own = 4 * (acts + 4 * (acts + outputs).div_ceil(32) + panel + BINS + 2);
            assert!(
                8 * most + 4 * words(moments, most, acts, outputs, panel) <= bytes * most + own
            );
        }
    }
}
