//! The streaming selection against a sort.

use proptest::prelude::*;
use tamis::network::top::Top;
use tamis_tests::conformance::fill_support;

fn top(candidates: &[f32], capacity: usize) -> Vec<(u32, u32)> {
    let (mut index, mut value) = (vec![0; capacity], vec![0.0; capacity]);
    let mut top = Top::new(&mut index, &mut value);
    candidates.iter().enumerate().for_each(|(j, &v)| top.push(j as u32, v));
    let len = top.finish().unwrap();
    index.into_iter().zip(value.iter().map(|v| v.to_bits())).take(len).collect()
}

fn sorted(candidates: &[f32], capacity: usize) -> Vec<(u32, u32)> {
    let mut all: Vec<(u32, f32)> =
        (0..).zip(candidates.iter().copied()).filter(|c| c.1 != 0.0).collect();
    all.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0)));
    all.truncate(capacity);
    all.sort_by_key(|c| c.0);
    all.into_iter().map(|(j, v)| (j, v.to_bits())).collect()
}

/// Many ties, zeros of both signs, and numbers across the whole range.
fn candidates() -> impl Strategy<Value = Vec<f32>> {
    let number = prop_oneof![
        (-3_i8..4).prop_map(f32::from),
        Just(-0.0_f32),
        any::<f32>().prop_filter("finite", |v| v.is_finite()),
    ];
    proptest::collection::vec(number, 0..400)
}

proptest! {
    #[test]
    fn the_streaming_selection_equals_a_sort(candidates in candidates(), capacity in 0_usize..420) {
        prop_assert_eq!(top(&candidates, capacity), sorted(&candidates, capacity));
    }

    #[test]
    fn supports_are_written_up_to_available_room(
        keep in proptest::collection::vec(any::<bool>(), 0..50),
        room in 0_usize..50,
    ) {
        let mut index = vec![0; room];
        let len = fill_support(&mut index, keep.len() as u32, |j| keep[j as usize]);
        let all: Vec<u32> = (0..keep.len() as u32).filter(|&j| keep[j as usize]).collect();
        prop_assert_eq!(&index[..len], &all[..all.len().min(room)]);
    }
}
