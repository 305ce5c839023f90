extern crate std;
use super::super::initial::{Initial, Law};
use super::*;
use crate::base::rng::Rng;
use std::{vec, vec::Vec};

fn params(seed: u64, count: usize) -> Params<'static> {
    let weights = Initial { seed, law: Law::HeNormal };
    Params { weights, input: Input::Ones, rounds: Params::ROUNDS, count, choice: Choice::Largest }
}

fn mask(net: &Mlp<'_>, params: &Params<'_>) -> Result<Vec<u32>> {
    let (mut memory, mut mask) = (vec![0xdead_beef; words(net, 0)], Vec::new());
    let info = run(net, params, &mut memory, |index| mask.push(index))?;
    let mut memory = vec![0xdead_beef; words(net, params.count)];
    let held = indices(net, params, &mut memory).unwrap();
    assert_eq!((&*held.index, held.info), (&mask[..], info));
    Ok(mask)
}

/// `SynFlow` with a stored mask, exact in every round, in double precision.
fn exact(net: &Mlp<'_>, params: &Params<'_>, schedule: Schedule) -> Vec<u32> {
    let n = net.weights();
    let mut w: Vec<f64> =
        (0..n as u32).map(|k| f64::from(params.weights.weight(net, k).abs())).collect();
    for round in 1..=params.rounds {
        let mut u = vec![vec![1.0; net.widths()[0]]];
        for layer in net.layers() {
            let row = |o: usize| {
                let first = layer.first + o * layer.inputs;
                (0..layer.inputs).map(|i| w[first + i] * u[layer.number][i]).sum::<f64>()
            };
            u.push((0..layer.outputs).map(row).collect());
        }
        let mut v = vec![1.0; *net.widths().last().unwrap()];
        let mut scores = vec![0.0; n];
        for layer in net.layers().collect::<Vec<_>>().into_iter().rev() {
            let mut below = vec![0.0; layer.inputs];
            for at in layer.weights() {
                let (o, i) = ((at - layer.first) / layer.inputs, (at - layer.first) % layer.inputs);
                scores[at] = w[at] * v[o] * u[layer.number][i];
                below[i] += w[at] * v[o];
            }
            v = below;
        }
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
        let count = schedule.count(n, params.count, round, params.rounds);
        order[count..].iter().for_each(|&at| w[at] = 0.0);
    }
    (0..n as u32).filter(|&k| w[k as usize] > 0.0).collect()
}

fn overlap(a: &[u32], b: &[u32]) -> f64 {
    a.iter().filter(|k| b.binary_search(k).is_ok()).count() as f64 / b.len() as f64
}

/// Whether some path of the mask's weights leads from an input to an output.
fn connects(net: &Mlp<'_>, mask: &[u32]) -> bool {
    let mut reached = vec![true; net.widths()[0]];
    for layer in net.layers() {
        let mut next = vec![false; layer.outputs];
        for &k in mask.iter().filter(|&&k| layer.weights().contains(&(k as usize))) {
            let own = k as usize - layer.first;
            next[own / layer.inputs] |= reached[own % layer.inputs];
        }
        reached = next;
    }
    reached.contains(&true)
}

#[test]
fn masks_overlap_those_of_hundred_exact_rounds() {
    let net = Mlp::new(&[120, 60, 40, 10]).unwrap();
    for (density, least) in [(0.2, 0.9), (0.1, 0.88), (0.05, 0.85)] {
        let count = (density * net.weights() as f64) as usize;
        let mean = (0..3).map(|seed| {
            let params = params(seed, count);
            let hundred = exact(&net, &Params { rounds: 100, ..params }, Schedule::Exponential);
            overlap(&mask(&net, &params).unwrap(), &hundred)
        });
        let mean = mean.sum::<f64>() / 3.0;
        assert!(mean >= least, "{mean} at {density}");
    }
}

/// A round computes the first layer once: 20 rounds of two passes over all weights would be 40.
#[test]
fn wide_first_layers_are_computed_once_a_round() {
    let net = Mlp::new(&[784, 300, 100, 10]).unwrap();
    for seed in 0..3 {
        let mut memory = vec![0; words(&net, 0)];
        let info = run(&net, &params(seed, 2662), &mut memory, |_| ()).unwrap();
        let passes = info.regenerated as f64 / net.weights() as f64;
        assert!(passes < 13.0, "{passes}");
    }
}

#[test]
fn one_round_is_exact() {
    let net = Mlp::new(&[30, 20, 10]).unwrap();
    for seed in 0..5 {
        let params = Params { rounds: 1, ..params(seed, 200) };
        let once = exact(&net, &params, Schedule::Exponential);
        assert!(overlap(&mask(&net, &params).unwrap(), &once) >= 0.99);
    }
}

#[test]
fn counts_are_exact_and_paths_connected_throughout() {
    let mut rng = Rng::new(3, 0);
    let sizes: Vec<f32> =
        (0..50).map(|i| if i % 3 == 0 { 0.0 } else { 200.0 * rng.uniform() }).collect();
    let net = Mlp::new(&[50, 30, 20, 15, 5]).unwrap();
    for law in [Law::HeNormal, Law::Uniform, Law::Signs] {
        for input in [Input::Ones, Input::Chi, Input::Sizes(&sizes)] {
            for (count, rounds) in [(4, 20), (5, 20), (9, 1), (60, 2), (900, 20)] {
                for seed in 0..6 {
                    let weights = Initial { seed, law };
                    let choice = [Choice::Largest, Choice::Sampled][seed as usize % 2];
                    let params = Params { weights, input, rounds, count, choice };
                    let mask = mask(&net, &params).unwrap_or_else(|e| panic!("{params:?} {e}"));
                    assert_eq!(mask.len(), count, "{law:?} {input:?} {rounds}");
                    assert!(mask.windows(2).all(|pair| pair[0] < pair[1]));
                    assert!(connects(&net, &mask), "{law:?} {input:?} {count} {rounds} {seed}");
                }
            }
        }
    }
}

/// All weights of a layer have one size, so their scores would be equal in the first round.
#[test]
fn random_signs_keep_weights_in_every_layer() {
    let net = Mlp::new(&[64, 40, 30, 10]).unwrap();
    for seed in 0..5 {
        let weights = Initial { seed, law: Law::Signs };
        let mask = mask(&net, &Params { weights, ..params(seed, 406) }).unwrap();
        for layer in net.layers() {
            let own = mask.iter().filter(|&&k| layer.weights().contains(&(k as usize))).count();
            assert!(own >= 60, "{own} in layer {}", layer.number);
        }
    }
}

#[test]
fn seeds_differ_and_repeat() {
    let net = Mlp::new(&[50, 30, 10]).unwrap();
    let mut seen: Vec<_> = (0..10).map(|seed| mask(&net, &params(seed, 100)).unwrap()).collect();
    assert_eq!(seen[7], mask(&net, &params(7, 100)).unwrap());
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 10);
}

/// As many weights in each layer, but others; of equal scores all choices are equally likely.
#[test]
fn sampled_masks_match_largest_in_layer_counts() {
    let net = Mlp::new(&[50, 30, 10]).unwrap();
    for seed in 0..4 {
        let largest = params(seed, 200);
        let sampled = Params { choice: Choice::Sampled, ..largest };
        let [largest, sampled] = [largest, sampled].map(|params| mask(&net, &params).unwrap());
        let first = |mask: &[u32]| mask.iter().filter(|&&index| index < 1500).count();
        assert_eq!(first(&largest), first(&sampled));
        let both = overlap(&largest, &sampled);
        assert!((0.3..0.9).contains(&both), "{both}");
    }
}

#[test]
fn inputs_without_flow_get_no_weights() {
    let net = Mlp::new(&[6, 8, 3]).unwrap();
    let input = Input::Sizes(&[1.0, 0.0, 2.0, 0.0, 0.5, 0.0]);
    // 24 weights of the first layer and 24 of the second have a score.
    let all = mask(&net, &Params { input, ..params(1, 48) }).unwrap();
    assert!(all.iter().take_while(|&&k| k < 48).all(|k| k % 6 % 2 == 0));
    // Of which two are the widest path's, beside which 46 are wanted.
    let beyond = mask(&net, &Params { input, ..params(1, 49) });
    assert!(matches!(beyond, Err(Error::Range { max: 46, got: 47, .. })), "{beyond:?}");
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let net = Mlp::new(&[6, 8, 3]).unwrap();
    let good = params(1, 20);
    let refused = |params: &Params<'_>| mask(&net, params).is_err();
    assert!(!refused(&good));
    assert!(refused(&Params { rounds: 0, ..good }));
    assert!(refused(&Params { count: 1, ..good }) && refused(&Params { count: 73, ..good }));
    assert!(refused(&Params { input: Input::Sizes(&[1.0; 5]), ..good }));
    assert!(refused(&Params { input: Input::Sizes(&[0.0; 6]), ..good }));
    assert!(refused(&Params { input: Input::Sizes(&[1.0, 1.0, f32::NAN, 1.0, 1.0, 1.0]), ..good }));
    assert!(matches!(run(&net, &good, &mut [0; 9], |_| ()), Err(Error::Budget { got: 36, .. })));
}
