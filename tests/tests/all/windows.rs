//! Windows of samples: the last rows that were pushed, with their labels, and nothing else; in
//! flash and back.

use proptest::prelude::*;
use std::collections::VecDeque;
use tamis::data::samples::{Samples, Window};
use tamis::store::flash::Slots;
use tamis::{Error, base::record::Record};
use tamis_tests::simulated::{Nor, Tear};

/// All rows that a source gives.
fn all(mut samples: impl Samples<Source: std::fmt::Debug>) -> Vec<Vec<f32>> {
    let (rows, inputs) = (samples.samples(), samples.inputs());
    let row = |k| {
        let mut row = vec![f32::NAN; inputs];
        samples.row(k, &mut row).map(|()| row).unwrap()
    };
    (0..rows).map(row).collect()
}

/// Rows with their labels, oldest first, as a window of so many rows has them when `pushed` were
/// pushed.
fn in_order<T: Clone>(places: &[T], pushed: usize) -> Vec<T> {
    let next = if pushed > places.len() { pushed % places.len() } else { 0 };
    [&places[next..], &places[..next]].concat()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn window_holds_exactly_the_last_rows(
        rows in 1_usize..7, inputs in 1_usize..6, pushed in 0_usize..30, cleared in 0_usize..40, break_at in 0_usize..30
    ) {
        let words = Window::<u8>::words(rows, inputs);
        let (mut bytes, mut floats) = (vec![7; words + 2], vec![9; Window::<f32>::words(rows, inputs)]);
        Window::<u8>::new(&mut bytes, rows, inputs).unwrap();
        Window::<f32>::new(&mut floats, rows, inputs).unwrap();
        let (mut last, mut since) = (VecDeque::new(), 0);
        for k in 0..pushed {
            // Opened anew each time: all that a window knows is in its words.
            let mut window = Window::<u8>::open(&mut bytes, rows, inputs).unwrap();
            let mut other = Window::<f32>::open(&mut floats, rows, inputs).unwrap();
            if k == cleared {
                window.clear();
                other.clear();
                (last, since) = (VecDeque::new(), 0);
            }
            let row: Vec<u8> = (0..inputs).map(|j| (31 * k + 7 * j) as u8).collect();
            if k == break_at {
                let long = vec![0; inputs + 1];
                let [long, nan] = [window.push(&long, 0.0), window.push(&row, f32::NAN)];
                prop_assert!(matches!((long, nan), (Err(Error::Length { .. }), Err(Error::NotFinite { .. }))), "refused");
                let endless = vec![f32::INFINITY; inputs];
                let endless = other.push(&endless, 0.0);
                prop_assert!(matches!(endless, Err(Error::NotFinite { .. })), "refused");
            }
            let values: Vec<f32> = row.iter().map(|&byte| 0.5 * f32::from(byte)).collect();
            window.push(&row, k as f32).unwrap();
            other.push(&values, k as f32).unwrap();
            last.push_back((values, k as f32));
            if last.len() > rows {
                last.pop_front();
            }
            since += 1;
            prop_assert_eq!((window.len(), window.is_full()), (last.len(), last.len() == rows));
            prop_assert_eq!(window.pushed() as usize, k + 1);
            prop_assert_eq!(window.labels(), other.labels());
            let (expected, labels): (Vec<_>, Vec<_>) = last.iter().cloned().unzip();
            prop_assert_eq!(in_order(window.labels(), since), labels);
            prop_assert_eq!(&in_order(&all(window.rows(0.5).unwrap()), since), &expected);
            prop_assert_eq!(&in_order(&all(other.rows()), since), &expected);
            prop_assert_eq!(all(&mut other), all(window.rows(0.5).unwrap()));
        }
        prop_assert_eq!(&bytes[words..], [7, 7], "beyond its words");
    }

    #[test]
    fn arbitrary_words_open_as_window_or_are_refused(
        at in 0_usize..15, word in prop_oneof![any::<u32>(), 0_u32..4, Just(f32::NAN.to_bits())], pushed in 0_u8..6
    ) {
        let mut memory = [0; Window::<f32>::words(3, 2)];
        let mut window = Window::<f32>::new(&mut memory, 3, 2).unwrap();
        (0..pushed).for_each(|k| window.push(&[k.into(), 1.0], 2.0).unwrap());
        memory[at] = word;
        if let Ok(mut window) = Window::<f32>::open(&mut memory, 3, 2) {
            prop_assert!(window.len() <= 3);
            prop_assert!(all(window.rows()).iter().flatten().chain(window.labels()).all(|x| x.is_finite()));
            window.push(&[1.0, 2.0], 3.0).unwrap();
            prop_assert!(all(&mut window).contains(&vec![1.0, 2.0]));
        }
    }
}

#[test]
fn windows_of_other_kinds_and_sizes_are_refused() {
    let mut memory = [0; Window::<u8>::words(4, 4)];
    assert_eq!(memory.len(), 6 + 4 + 4);
    assert!(
        matches!(Window::<u8>::open(&mut memory, 4, 4), Err(Error::Format { at: 0, .. })),
        "never begun"
    );
    Window::<u8>::new(&mut memory, 4, 4).unwrap();
    assert!(matches!(Window::<f32>::open(&mut memory, 1, 1), Err(Error::Format { at: 0, .. })));
    assert!(matches!(
        Window::<u8>::open(&mut memory, 2, 4),
        Err(Error::Format { at: 4, got: 4, expected: 2, .. })
    ));
    assert!(matches!(Window::<u8>::open(&mut memory, 4, 3), Err(Error::Format { at: 8, .. })));
    assert!(matches!(
        Window::<u8>::new(&mut memory, 4, 5),
        Err(Error::Budget { needed: 60, got: 56 })
    ));
    assert!(matches!(Window::<u8>::new(&mut memory, 0, 5), Err(Error::Range { .. })));
    assert!(matches!(Window::<u8>::new(&mut memory, 5, 0), Err(Error::Range { .. })));
    assert!(Window::<f32>::new(&mut memory, usize::MAX, usize::MAX).is_err());
}

#[test]
fn a_window_goes_to_flash_and_comes_back() {
    let mut flash = Nor::<1024, 4, 128>::new(0, Tear::Before);
    let mut memory = [0; Window::<u8>::words(5, 9)];
    let mut window = Window::<u8>::new(&mut memory, 5, 9).unwrap();
    (0..7).for_each(|k| window.push(&[k; 9], 0.25 * f32::from(k)).unwrap());
    assert_eq!(Record::words(&window), Window::<u8>::words(5, 9));
    let mut slots = Slots::<_, 64>::open(&mut flash, 0..1024).unwrap();
    slots.keep(1, &window).unwrap();
    let mut slots = Slots::<_, 64>::open(&mut flash, 0..1024).unwrap();
    let mut kept = [0; 32];
    slots.load(&mut kept).unwrap().unwrap();
    let back = Window::<u8>::open(&mut kept, 5, 9).unwrap();
    assert_eq!(
        (back.labels(), all(back.rows(1.0).unwrap())),
        (window.labels(), all(window.rows(1.0).unwrap()))
    );
}
