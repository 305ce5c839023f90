//! Selections on the device: those of the provided body, which reads all entries.

use crate::gpu;
use tamis::network::gates::{Empty, Gates, Signs};
use tamis::network::score::{GradientStep, Panel};
use tamis::network::top::Top;
use tamis::network::weights::Weights;
use tamis::operator::sensing::{Sensing as _, Stepped, provided};
use tamis_gpu::{GpuOperator, Values};

const N: usize = 300;
const D: usize = 210;
const M: usize = 120;

/// Small whole numbers, so that sums are exact and many magnitudes are the same.
fn whole(len: usize, seed: usize) -> Vec<f32> {
    (0..len).map(|e| ((e * 7919 + seed * 104_729) % 7) as f32 - 3.0).collect()
}

/// The selection of a panel of all blocks, by the operator and by the provided body.
fn both(
    sensing: &mut GpuOperator,
    gates: Gates<'_>,
    w: Weights<'_>,
    r: &[f32],
    count: usize,
) -> [(Vec<u32>, Vec<f32>); 2] {
    let mut memory = vec![0.0; N];
    let r = sensing.machine().upload(r, &mut memory);
    [true, false].map(|own| {
        let (mut index, mut value) = (vec![0; count], vec![0.0; count]);
        let mut top = Top::new(&mut index, &mut value);
        let mut panel = vec![0.0; M * D];
        for blocks in [0..M - 20, M - 20..M] {
            let memory = &mut panel[..blocks.len() * D];
            let panel = Panel { blocks, weights: w };
            let of = Stepped { panel, step: GradientStep { step_size: 0.25 } };
            let offered = match own {
                true => sensing.offer_step(gates, r, &of, memory, &mut top),
                false => provided::offer_step(sensing, gates, r, &of, memory, &mut top),
            };
            offered.unwrap();
        }
        let found = top.finish().unwrap();
        index.truncate(found);
        value.truncate(found);
        (index, value)
    })
}

#[test]
fn largest_entries_of_a_step_are_those_of_the_whole_panel() {
    let mut sensing = GpuOperator::new(gpu(), D, M, Values::F32(&whole(N * D, 1))).unwrap();
    let index: Vec<u32> = (0..(M * D) as u32).filter(|j| j % 91 == 5).collect();
    let values = whole(index.len(), 2);
    let w = Weights::new(D, M, &index, &values).unwrap();
    // Gates of other weights: neurons of the step are closed that have some.
    let other: Vec<u32> =
        index.iter().copied().filter(|j| !(*j / D as u32).is_multiple_of(3)).collect();
    let values = whole(other.len(), 3);
    let other = Weights::new(D, M, &other, &values).unwrap();
    let nothing = vec![0.0; N];
    for r in [&whole(N, 4), &nothing] {
        for of in [w, other] {
            let gates = Gates::of(of, Signs::Balanced, Empty::Freeze, 0, 0);
            // The last two are more than are not 0, and more than a device selects.
            for count in [1, 2, 77, 900, 2000, 3000, M * D] {
                let [own, expected] = both(&mut sensing, gates, w, r, count);
                assert_eq!(own, expected, "{count}");
            }
        }
    }
}

#[test]
fn what_is_not_finite_is_found_on_the_device() {
    let mut sensing = GpuOperator::new(gpu(), D, M, Values::F32(&whole(N * D, 1))).unwrap();
    let w = Weights::new(D, M, &[3], &[1.0]).unwrap();
    let mut memory = vec![0.0; N];
    let mut bad = whole(N, 4);
    bad[17] = f32::INFINITY;
    let r = sensing.machine().upload(&bad, &mut memory);
    let gates = Gates::of(w, Signs::Positive, Empty::Open, 0, 0);
    let (mut index, mut value) = ([0; 9], [0.0; 9]);
    let mut top = Top::new(&mut index, &mut value);
    let mut panel = vec![0.0; M * D];
    let of = Stepped {
        panel: Panel { blocks: 0..M, weights: w },
        step: GradientStep { step_size: 1.0 },
    };
    sensing.offer_step(gates, r, &of, &mut panel, &mut top).unwrap();
    assert_eq!(top.finish(), None);
}
