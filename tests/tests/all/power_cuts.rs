//! Payloads in flash whose power fails in every operation there is, and whose bits change: what is
//! found afterwards is the newest payload or the one before it, whole, and never anything else.

use tamis::Error;
use tamis::base::rng::{Rng, stream};
use tamis::store::flash::{Slot, Slots};
use tamis_tests::simulated::{Fault, Nor, Tear};

/// Words of 4 bytes in sectors of 128, and of 32 in sectors of 256.
pub(crate) type Small = Nor<1024, 4, 128>;
pub(crate) type Wide = Nor<1024, 32, 256>;

pub(crate) const PAGE: usize = 64;
pub(crate) const ALL: core::ops::Range<u32> = 0..1024;

/// Payload k: its length and its bytes say which it is.
pub(crate) fn payload(k: u32) -> Vec<u8> {
    let len = 1 + (k as usize * 97) % 300;
    (0..len).map(|i| (k as usize * 31 + i * 7) as u8 ^ if i % 5 == 0 { 0xff } else { 0 }).collect()
}

/// What the store holds, which must be a whole payload: its number.
pub(crate) fn held<const B: usize, const W: usize, const S: usize>(
    slots: &mut Slots<&mut Nor<B, W, S>, PAGE>,
) -> Option<u32> {
    let entry = *slots.newest()?;
    let mut words = [0; 128];
    let words = slots.load(&mut words).unwrap().unwrap();
    let bytes: Vec<u8> =
        words.iter().flat_map(|word| word.to_le_bytes()).take(entry.len()).collect();
    assert_eq!(bytes, payload(entry.tag()), "payload {} is torn", entry.tag());
    assert!(entry.sequence() >= entry.tag(), "copies count");
    Some(entry.tag())
}

/// What must be found after the next reset: at least the payload that was last seen or acknowledged
/// while power was on, at most the one that was being written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bounds {
    least: Option<u32>,
    most: Option<u32>,
    /// Less than that was found, after a sector had come back from its erase as only
    /// [`Tear::Drifting`] allows.
    is_lost: bool,
}

/// A session: opens the store and writes payloads from the next one to `last`, until power fails.
pub(crate) fn session<const B: usize, const W: usize, const S: usize>(
    flash: &mut Nor<B, W, S>,
    bounds: &mut Bounds,
    last: u32,
) {
    let mut slots = match Slots::<_, PAGE>::open(flash, ALL) {
        Ok(slots) => slots,
        Err(error) => return assert_eq!(error, Error::Source(Fault::Off)),
    };
    if !slots.flash().is_on() {
        return;
    }
    let first = held(&mut slots);
    // One mark of the three is enough to pass for whole.
    bounds.is_lost |= first < bounds.least && slots.flash().has_come_back(2);
    if bounds.is_lost {
        return;
    }
    assert!((bounds.least..=bounds.most).contains(&first), "{first:?}, {bounds:?}");
    bounds.least = first;
    for k in first.map_or(0, |k| k + 1)..=last {
        bounds.most = bounds.most.max(Some(k));
        match slots.store(k, &payload(k)) {
            Ok(entry) => assert_eq!(entry.tag(), k),
            Err(Error::Source(Fault::Off)) => return,
            Err(error) => panic!("payload {k}: {error:?}"),
        }
        bounds.least = Some(k);
    }
}

/// Cuts power in every operation of five payloads, and in every one of the session that follows.
fn cut_everywhere<const B: usize, const W: usize, const S: usize>(tear: Tear) {
    const LAST: u32 = 4;
    let (mut whole, mut bounds) = (Nor::<B, W, S>::new(1, tear), Bounds::default());
    session(&mut whole, &mut bounds, LAST);
    assert_eq!(bounds.least, Some(LAST));
    for cut in 0..whole.operations() {
        let (mut flash, mut bounds) =
            (Nor::<B, W, S>::new(u64::from(cut), tear), Bounds::default());
        flash.cut_in(cut);
        session(&mut flash, &mut bounds, LAST);
        assert!(!flash.is_on());
        flash.restart();
        let last = bounds.most.unwrap() + 1;
        let mut rest = flash.clone();
        session(&mut rest, &mut bounds.clone(), last);
        for again in flash.operations()..rest.operations() {
            let (mut flash, mut bounds) = (flash.clone(), bounds);
            flash.cut_in(again);
            session(&mut flash, &mut bounds, last);
            assert!(!flash.is_on());
            // Power comes and goes without a write of the part's own, and in the end everything
            // works.
            for last in [0, 0, last + 2] {
                flash.restart();
                session(&mut flash, &mut bounds, last);
            }
            assert!(bounds.is_lost || bounds.least == Some(last + 2));
        }
    }
}

#[test]
fn single_power_cut_loses_only_payload_being_written() {
    for tear in Tear::ALL {
        cut_everywhere::<1024, 4, 128>(tear);
    }
}

#[test]
fn the_same_holds_for_wide_words() {
    for tear in Tear::ALL {
        cut_everywhere::<1024, 32, 256>(tear);
    }
}

/// Sessions of `each` payloads, with a reset between two of them, up to payload `last`. Power fails
/// in the operations that `next_cut` gives, which is told how many were done. Whether a payload was
/// lost because a sector came back.
fn history<const B: usize, const W: usize, const S: usize>(
    tear: Tear,
    seed: u64,
    each: u32,
    last: u32,
    mut next_cut: impl FnMut(u32) -> Option<u32>,
) -> bool {
    let (mut flash, mut bounds) = (Nor::<B, W, S>::new(seed, tear), Bounds::default());
    let mut cut = next_cut(0);
    while bounds.least != Some(last) && !bounds.is_lost {
        if let Some(cut) = cut {
            flash.cut_in(cut);
        }
        let until = bounds.least.map_or(each - 1, |least| least + each);
        session(&mut flash, &mut bounds, until.min(last));
        if !flash.is_on() {
            cut = next_cut(flash.operations());
        }
        flash.restart();
    }
    session(&mut flash, &mut bounds, last + 2);
    assert!(bounds.is_lost || bounds.least == Some(last + 2));
    bounds.is_lost
}

/// Operations of a history without a cut.
fn operations<const B: usize, const W: usize, const S: usize>(last: u32) -> u32 {
    let mut flash = Nor::<B, W, S>::new(0, Tear::Before);
    session(&mut flash, &mut Bounds::default(), last);
    flash.operations()
}

/// Every pair of operations in a history of sessions of one and of two payloads.
fn cut_in_pairs<const B: usize, const W: usize, const S: usize>(tear: Tear, last: u32) {
    let all = operations::<B, W, S>(last);
    for (first, second) in
        (0..all).flat_map(|first| (first + 1..all + 20).map(move |second| (first, second)))
    {
        for each in 1..3 {
            let mut cuts = [first, second].into_iter();
            let seed = u64::from(first << 16 | second);
            assert!(
                !history::<B, W, S>(tear, seed, each, last, |_| cuts.next()),
                "{first}, {second}"
            );
        }
    }
}

#[test]
fn pair_of_cuts_loses_nothing_seen_before() {
    for tear in Tear::ALL {
        cut_in_pairs::<1024, 4, 128>(tear, 3);
        cut_in_pairs::<1024, 32, 256>(tear, 6);
    }
}

/// Histories of three to six cuts: the first in or near the marks of a payload, each further one
/// within the next few operations or, one in eight, anywhere in the next payload. How many lost a
/// payload because a sector came back.
fn cut_in_bunches<const B: usize, const W: usize, const S: usize>(
    tear: Tear,
    histories: u64,
) -> u64 {
    let mut lost = 0;
    let ends: Vec<u32> = (0..6).map(operations::<B, W, S>).collect();
    for seed in 0..histories {
        let mut rng = Rng::new(seed, stream::USER);
        let mut below = move |n: u32| ((u64::from(rng.bits()) * u64::from(n)) >> 32) as u32;
        let mut left = 3 + below(4);
        let (payload, back, each) = (1 + below(5), 1 + below(4), 1 + below(3));
        let first = ends[payload as usize] - back;
        lost += u64::from(history::<B, W, S>(tear, seed, each, 6, |done| {
            left = left.checked_sub(1)?;
            let within = if below(8) == 0 { 60 } else { 5 };
            Some(if done == 0 { first } else { done + below(within) })
        }));
    }
    lost
}

/// How many histories of each kind: `TAMIS_HISTORIES`, or few enough for every day.
fn histories() -> u64 {
    std::env::var("TAMIS_HISTORIES").ok().and_then(|count| count.parse().ok()).unwrap_or(4000)
}

#[test]
fn repeated_cuts_at_marks_lose_nothing_seen_before() {
    for tear in Tear::ALL {
        assert_eq!(cut_in_bunches::<1024, 4, 128>(tear, histories()), 0);
        let lost = cut_in_bunches::<1024, 32, 256>(tear, histories());
        // A slot has few words of 32 bytes, so all of them come back at times.
        assert!(
            lost <= if tear == Tear::Drifting { histories() / 1000 } else { 0 },
            "{tear:?}: {lost}"
        );
    }
}

/// Flash with payloads 0 and 1, after a reset; bytes of the marks of slot 1, which holds the newer
/// one.
fn two_payloads(marks: [[u8; 4]; 3]) -> Small {
    let mut flash = Small::new(0, Tear::Before);
    session(&mut flash, &mut Bounds::default(), 1);
    flash.bytes()[512 + 28..512 + 40].copy_from_slice(marks.as_flattened());
    flash
}

const WHOLE: [u8; 4] = *b"CMT1";
const NONE: [u8; 4] = [0xff; 4];

#[test]
fn completed_save_is_opened_without_rewriting_its_slot() {
    let mut flash = two_payloads([WHOLE, WHOLE, NONE]);
    let before = flash.clone();
    for k in 2..4 {
        let operations = flash.operations();
        let mut slots = Slots::<_, PAGE>::open(&mut flash, ALL).unwrap();
        assert_eq!(slots.flash().operations(), operations);
        slots.store(k, &payload(k)).unwrap();
        if k == 2 {
            assert_eq!(flash.bytes()[512..], before.clone().bytes()[512..]);
        }
    }
}

#[test]
fn singly_marked_payload_is_completed_doubly_marked_copied() {
    for torn in [WHOLE, [0x43, 0xff, 0x54, 0xff]] {
        let mut flash = two_payloads([torn, NONE, NONE]);
        // The word of the second mark may be written again: nobody wrote to it as far as can be
        // seen.
        let slots = Slots::<_, PAGE>::open(&mut flash, ALL).unwrap();
        assert!(matches!(slots.state()[0], Slot::Held(_)), "the one before is still there");
        assert_eq!(slots.newest().map(|entry| (entry.tag(), entry.sequence())), Some((1, 1)));
        let flash = slots.release();
        assert_eq!(flash.bytes()[540..552], *[torn, NONE, WHOLE].as_flattened());
        let mut slots = Slots::<_, PAGE>::open(flash, ALL).unwrap();
        assert_eq!(held(&mut slots), Some(1));
        assert_eq!(
            slots.newest().map(|entry| (entry.sequence(), entry.range().start)),
            Some((2, 40))
        );
        let operations = slots.flash().operations();
        let mut slots = Slots::<_, PAGE>::open(slots.release(), ALL).unwrap();
        assert_eq!((held(&mut slots), slots.flash().operations()), (Some(1), operations));
    }
}

#[test]
fn unmarked_payload_is_used_only_as_last_resort() {
    let mut flash = two_payloads([NONE; 3]);
    let mut slots = Slots::<_, PAGE>::open(&mut flash, ALL).unwrap();
    assert_eq!(slots.state()[1], Slot::Unfinished);
    assert_eq!(held(&mut slots), Some(0));
    flash.bytes()[40] ^= 1;
    let mut slots = Slots::<_, PAGE>::open(&mut flash, ALL).unwrap();
    assert_eq!(held(&mut slots), Some(1));
    assert_eq!(
        slots.newest().map(|entry| entry.range().start),
        Some(40),
        "a copy, over what is damaged"
    );
}

#[test]
fn uncertain_payload_is_opened_and_never_overwritten() {
    let mut flash = two_payloads([WHOLE, NONE, WHOLE]);
    flash.cut_in(flash.operations());
    let mut slots = Slots::<_, PAGE>::open(&mut flash, ALL).unwrap();
    assert_eq!(slots.newest().map(|entry| entry.tag()), Some(1));
    assert_eq!(slots.save(2, 4).unwrap_err(), Error::Source(Fault::Off));
    slots.flash().restart();
    assert_eq!(held(&mut slots), Some(1));
    slots.store(2, &payload(2)).unwrap();
    assert_eq!(held(&mut slots), Some(2));
}
