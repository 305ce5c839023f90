//! Any bytes as a mask: reading them never panics, and what is read encodes to the same bytes; so
//! with magic, version, length and checksum put right, too.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis::store::wire::{
    Aligned, MAGIC, MaskView, VERSION, View, checksum, encode_mask, mask_len,
};

/// The longest input.
const MOST: usize = 4096;

fuzz_target!(|bytes: &[u8]| {
    let mut buffer = Aligned([0; MOST]);
    let len = bytes.len().min(MOST);
    let buffer = &mut buffer.0[..len];
    buffer.copy_from_slice(&bytes[..len]);
    check(buffer);
    if len >= 24 {
        buffer[..4].copy_from_slice(&MAGIC.to_le_bytes());
        buffer[4..8].copy_from_slice(&u32::from(VERSION).to_le_bytes());
        buffer[8..12].copy_from_slice(&(len as u32).to_le_bytes());
        let crc = checksum(buffer);
        buffer[12..16].copy_from_slice(&crc.to_le_bytes());
        check(buffer);
    }
});

fn check(bytes: &[u8]) {
    let Ok(view) = MaskView::parse(bytes) else { return };
    assert!(MaskView::matches(bytes) && View::parse(bytes).is_err());
    let mut widths = vec![0; view.widths().len()];
    let mask = view.mask(&mut widths).expect("a checked mask");
    assert_eq!(mask_len(&mask.net()), bytes.len());
    let mut again = vec![0xAA; bytes.len()];
    assert_eq!(encode_mask(mask, &mut again), Ok(bytes.len()));
    assert_eq!(again, bytes);
    let all: usize = mask.net().layers().map(|layer| mask.layer(layer).count()).sum();
    assert_eq!(all, mask.count());
}
