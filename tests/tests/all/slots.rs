//! Slots in flash: marks, refusals, damage.

use crate::power_cuts::{ALL, Bounds, PAGE, Small, Wide, held, payload, session};

use embedded_storage::nor_flash::NorFlash as _;
use proptest::prelude::*;
use tamis::Error;
use tamis::store::flash::{Slot, Slots};
use tamis_tests::simulated::{Fault, Tear};

#[test]
fn oversized_payload_is_refused_with_sizes_erasing_nothing() {
    let mut flash = Small::new(0, Tear::Before);
    let mut slots = Slots::<_, PAGE>::open(&mut flash, ALL).unwrap();
    // 28 bytes of header and three marks of 4.
    assert_eq!((slots.capacity(), Slots::<&mut Small, PAGE>::HEAD), (512 - 40, 40));
    assert_eq!(Slots::<&mut Small, PAGE>::slot_bytes(88), 128);
    assert_eq!(Slots::<&mut Small, PAGE>::slot_bytes(89), 256);
    slots.store(0, &[7; 472]).unwrap();
    let refused = slots.store(1, &[7; 473]).unwrap_err();
    assert_eq!(refused, Error::Budget { needed: 473, got: 472 });
    assert_eq!(slots.newest().map(|entry| entry.tag()), Some(0));
    let mut words = [0; 117];
    assert_eq!(slots.load(&mut words), Err(Error::Budget { needed: 472, got: 468 }));
}

#[test]
fn ranges_that_are_no_slots_are_refused() {
    let open = |range| {
        Slots::<_, PAGE>::open(&mut Small::new(0, Tear::Before), range).map(|_| ()).unwrap_err()
    };
    assert!(matches!(open(0..2048), Error::Range { max: 1024, got: 2048, .. }));
    #[expect(clippy::reversed_empty_ranges, reason = "that is the point")]
    let reversed = open(256..0);
    assert!(matches!(reversed, Error::Range { .. }));
    assert!(matches!(open(64..1024), Error::Length { expected: 0, got: 64, .. }));
    assert!(matches!(open(0..384), Error::Length { expected: 256, got: 384, .. }));
    assert!(matches!(open(0..0), Error::Budget { needed: 128, got: 0 }));
    assert!(Slots::<_, PAGE>::open(&mut Small::new(0, Tear::Before), 256..768).is_ok());
}

#[test]
fn incomplete_save_leaves_the_previous_payload() {
    let mut flash = Small::new(0, Tear::Before);
    let mut slots = Slots::<_, PAGE>::open(&mut flash, ALL).unwrap();
    for k in 0..3 {
        slots.store(k, &payload(k)).unwrap();
        let mut save = slots.save(9, 10).unwrap();
        save.put(&[1; 7]).unwrap();
        assert!(matches!(save.put(&[1; 4]), Err(Error::Length { expected: 10, got: 11, .. })));
        assert!(matches!(save.commit(), Err(Error::Length { expected: 10, got: 7, .. })));
        slots.save(9, 200).unwrap();
        assert_eq!(held(&mut slots), Some(k));
        slots = Slots::open(slots.release(), ALL).unwrap();
        assert_eq!(held(&mut slots), Some(k));
    }
}

#[test]
fn sequence_numbers_wrap_around() {
    let mut flash = Small::new(0, Tear::Before);
    for first in [u32::MAX - 1, u32::MAX, 0, 1, i32::MAX as u32] {
        let mut slots = Slots::<_, PAGE>::format(&mut flash, ALL).unwrap();
        slots.store(0, &[1]).unwrap();
        let flash = slots.release();
        // The number of the first payload, and the checksum of its header.
        flash.bytes()[8..12].copy_from_slice(&first.to_le_bytes());
        let sum = crc(&flash.bytes()[..24]);
        flash.bytes()[24..28].copy_from_slice(&sum.to_le_bytes());
        let mut slots = Slots::<_, PAGE>::open(flash, ALL).unwrap();
        for k in 1..5 {
            let entry = slots.store(k, &[k as u8]).unwrap();
            assert_eq!(entry.sequence(), first.wrapping_add(k));
            slots = Slots::open(slots.release(), ALL).unwrap();
            assert_eq!(slots.newest().map(|entry| entry.tag()), Some(k));
        }
    }
}

/// CRC-32/ISO-HDLC, bit by bit.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| {
            sum >> 1 ^ (0xedb8_8320 & (sum & 1).wrapping_neg())
        })
    })
}

#[test]
fn what_is_wrong_with_a_slot_is_said() {
    let mut flash = Small::new(0, Tear::Before);
    let mut slots = Slots::<_, PAGE>::open(&mut flash, ALL).unwrap();
    assert_eq!(slots.state(), &[Slot::Empty, Slot::Empty]);
    slots.store(0, &payload(2)).unwrap();
    slots.store(1, &payload(1)).unwrap();
    let flash = slots.release();
    let state = |at: usize, bytes: &[u8], mend: bool| {
        let mut flash = flash.clone();
        flash.bytes()[at..at + bytes.len()].copy_from_slice(bytes);
        if mend {
            let sum = crc(&flash.bytes()[..24]);
            flash.bytes()[24..28].copy_from_slice(&sum.to_le_bytes());
        }
        let slots = Slots::<_, PAGE>::open(&mut flash, ALL).unwrap();
        assert_eq!(slots.newest().map(|entry| entry.tag()), Some(1));
        slots.state()[0]
    };
    let format = |slot, expected| match slot {
        Slot::Refused(Error::Format { what, at, .. }) => assert_eq!((what, at), expected),
        other => panic!("{other:?}"),
    };
    format(state(0, b"data", false), ("magic of a slot in flash", 0));
    format(state(8, &[9], false), ("checksum of a slot's head in flash", 24));
    format(state(6, &[9], true), ("version and reserved field of a slot", 4));
    format(state(40, &[9], false), ("checksum of the payload in flash", 40));
    assert_eq!(state(4, &[2, 0], true), Slot::Refused(Error::Version { reads: 1, got: 2 }));
    let long = Error::Range { what: "payload of a slot in flash", min: 0, max: 472, got: 473 };
    assert_eq!(state(16, &473_u32.to_le_bytes(), true), Slot::Refused(long));
    assert_eq!(state(28, &[0xff; 8], false), Slot::Unfinished);
    assert_eq!(state(0, &[0xff; 512], false), Slot::Empty);
    let marks = [[0; 4], *b"CMT1", [0xff; 4]];
    assert!(matches!(state(28, marks.as_flattened(), false), Slot::Held(_)), "one mark is enough");
}

#[test]
fn unreadable_flash_is_an_error_but_can_format() {
    let mut flash = Small::new(3, Tear::Unreadable);
    for slot in [0, 512] {
        flash.cut_in(flash.operations());
        flash.erase(slot, slot + 512).unwrap_err();
        flash.restart();
    }
    assert_eq!(
        Slots::<_, PAGE>::open(&mut flash, ALL).unwrap_err(),
        Error::Source(Fault::Unreadable(0))
    );
    let mut slots = Slots::<_, PAGE>::format(&mut flash, ALL).unwrap();
    slots.store(0, &payload(0)).unwrap();
    assert_eq!(held(&mut slots), Some(0));
}

#[test]
fn unwritable_page_ends_the_save() {
    let mut flash = Small::new(0, Tear::Halfway);
    let mut slots = Slots::<_, PAGE>::open(&mut flash, ALL).unwrap();
    slots.store(0, &payload(0)).unwrap();
    let flash = slots.flash();
    // Three sectors are erased; power fails in the second page.
    flash.cut_in(flash.operations() + 3 + PAGE as u32 / 4 + 2);
    let mut save = slots.save(1, 300).unwrap();
    save.put(&[5; 100]).unwrap();
    assert_eq!(save.put(&[5; 60]), Err(Error::Source(Fault::Off)));
    // No word is written again, even where the flash would take it.
    assert!(matches!(save.put(&[5; 10]), Err(Error::Range { got: 1, .. })));
    assert!(save.put(&[5; 172]).is_err() && save.commit().is_err());
    slots.flash().restart();
    assert_eq!(held(&mut slots), Some(0));
    slots.store(1, &payload(1)).unwrap();
    assert_eq!(held(&mut slots), Some(1));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_bits_are_seen_or_do_no_harm(
        last in 1_u32..9, flips in prop::collection::vec(0_usize..8 * 512, 1..6), both in any::<bool>()
    ) {
        let mut flash = Small::new(0, Tear::Before);
        session(&mut flash, &mut Bounds::default(), last);
        let slot = last as usize % 2;
        for (k, flip) in flips.iter().enumerate() {
            let slot = if both && k % 2 == 1 { 1 - slot } else { slot };
            flash.bytes()[512 * slot + flip / 8] ^= 1 << (flip % 8);
        }
        let mut slots = Slots::<_, PAGE>::open(&mut flash, ALL).unwrap();
        let found = held(&mut slots);
        prop_assert!(both || found >= Some(last - 1), "{:?}", slots.state());
        let next = found.map_or(0, |k| k + 1);
        slots.store(next, &payload(next)).unwrap();
        prop_assert_eq!(held(&mut slots), Some(next));
    }

    #[test]
    fn any_bytes_open_and_can_be_written_over(bytes in prop::collection::vec(any::<u8>(), 1024), head in any::<bool>()) {
        let mut flash = Wide::new(0, Tear::Before);
        flash.bytes().copy_from_slice(&bytes);
        if head {
            flash.bytes()[..4].copy_from_slice(&[0x89, b'T', b'F', b'S']);
        }
        let mut slots = Slots::<_, PAGE>::open(&mut flash, ALL).unwrap();
        prop_assert!(slots.newest().is_none());
        slots.store(0, &payload(0)).unwrap();
        prop_assert_eq!(held(&mut slots), Some(0));
    }

    #[test]
    fn pieces_of_any_length_give_the_same_slot(cuts in prop::collection::vec(0_usize..90, 0..12)) {
        let whole = payload(3);
        let mut one = Small::new(0, Tear::Before);
        Slots::<_, PAGE>::open(&mut one, ALL).unwrap().store(3, &whole).unwrap();
        let mut other = Small::new(0, Tear::Before);
        let mut slots = Slots::<_, PAGE>::open(&mut other, ALL).unwrap();
        let mut save = slots.save(3, whole.len()).unwrap();
        let mut left = &whole[..];
        for cut in cuts {
            let (piece, rest) = left.split_at(cut.min(left.len()));
            save.put(piece).unwrap();
            left = rest;
        }
        save.put(left).unwrap();
        save.commit().unwrap();
        prop_assert_eq!(one.bytes(), other.bytes());
    }
}
