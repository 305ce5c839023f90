//! Any bytes as flash with two slots: opening never panics, the newest payload is loaded, and a payload
//! can be written over it.
//!
//! Checksums stop nearly every changed input at the door, so the same bytes are tried again with
//! the head of the first slot put right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis::learn::train::{Checkpoint, Schedule};
use tamis::network::gates::Signs;
use tamis::store::flash::Slots;
use tamis_tests::simulated::{Nor, Tear};

const BYTES: usize = 1024;
const PAGE: usize = 64;
/// Bytes of a header, and of all before a payload.
const HEADER: usize = 28;
const HEAD: usize = 40;

type Flash = Nor<BYTES, 4, 128>;

fuzz_target!(|bytes: &[u8]| {
    let mut flash = Flash::new(1, Tear::Before);
    let len = bytes.len().min(BYTES);
    flash.bytes()[..len].copy_from_slice(&bytes[..len]);
    check(flash.clone());
    mend(flash.bytes());
    check(flash);
});

fn check(mut flash: Flash) {
    let mut slots =
        Slots::<_, PAGE>::open(&mut flash, 0..BYTES as u32).expect("flash that can be read");
    let mut words = [0; BYTES / 4];
    let found = slots.newest().copied();
    if let Some(entry) = found {
        let words = slots.load(&mut words).expect("what was checked").expect("a payload");
        assert_eq!(words.len(), entry.len().div_ceil(4));
        // A checkpoint is read from any words, or refused.
        let budget = Schedule::PAPER.budget(tamis::base::dims::Dims::new(20, 6, 3, 9), 1, 0);
        let form = Checkpoint::form(&budget, Signs::Positive);
        assert!(Checkpoint::read(&form, words).is_err() || words.len() <= form.most_words());
    }
    let payload = [0x5a; 201];
    let entry = slots.store(7, &payload).expect("a payload that fits");
    assert_eq!(entry.sequence(), found.map_or(0, |entry| entry.sequence().wrapping_add(1)));
    let mut slots =
        Slots::<_, PAGE>::open(slots.release(), 0..BYTES as u32).expect("flash that can be read");
    assert_eq!(slots.newest(), Some(&entry));
    let words = slots.load(&mut words).expect("what was written").expect("a payload");
    assert!(words.iter().flat_map(|word| word.to_le_bytes()).take(201).eq(payload));
}

/// Magic, version, both checksums and the mark of the first slot.
fn mend(bytes: &mut [u8; BYTES]) {
    bytes[..8].copy_from_slice(&[0x89, b'T', b'F', b'S', 1, 0, 0, 0]);
    let len = usize::from(u16::from_le_bytes([bytes[16], bytes[17]])) % (BYTES / 2 - HEAD + 1);
    bytes[16..20].copy_from_slice(&(len as u32).to_le_bytes());
    let payload = crc(&bytes[HEAD..HEAD + len]);
    bytes[20..24].copy_from_slice(&payload.to_le_bytes());
    let head = crc(&bytes[..HEADER - 4]);
    bytes[HEADER - 4..HEADER].copy_from_slice(&head.to_le_bytes());
    bytes[HEADER..HEADER + 4].copy_from_slice(b"CMT1");
}

/// CRC-32/ISO-HDLC.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| {
            (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg())
        })
    })
}
