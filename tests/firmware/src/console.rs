//! Lines on the semihosting console, without `core::fmt`: it would dwarf what is measured.

use core::ffi::CStr;
use semihosting::sys::arm_compat::sys_write0;

/// Bytes of one line with its newline and terminator.
const LENGTH: usize = 120;

/// A line under construction; what does not fit is cut off.
pub(crate) struct Line {
    bytes: [u8; LENGTH],
    used: usize,
}

impl Line {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; LENGTH], used: 0 }
    }

    pub(crate) fn text(mut self, text: &str) -> Self {
        for &byte in text.as_bytes() {
            self.push(byte);
        }
        self
    }

    #[allow(dead_code, reason = "of the programs that run cases")]
    pub(crate) fn hex(self, value: u32) -> Self {
        let mut line = self.text("0x");
        for shift in (0..32).step_by(4).rev() {
            let digit = (value >> shift) as u8 & 15;
            line.push(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 });
        }
        line
    }

    pub(crate) fn decimal(mut self, value: u32) -> Self {
        let mut digits = [0_u8; 10];
        let (mut rest, mut count) = (value, 0);
        for digit in &mut digits {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
            count += 1;
            if rest == 0 {
                break;
            }
        }
        for &digit in digits.iter().take(count).rev() {
            self.push(digit);
        }
        self
    }

    pub(crate) fn print(mut self) {
        if let Some(end) = self.bytes.get_mut(self.used) {
            *end = b'\n';
        }
        if let Ok(text) = CStr::from_bytes_until_nul(&self.bytes) {
            sys_write0(text);
        }
    }

    /// Keeps two bytes free, for the newline and the terminator.
    fn push(&mut self, byte: u8) {
        if let Some(slot) = self.bytes.get_mut(self.used).filter(|_| self.used < LENGTH - 2) {
            *slot = byte;
            self.used += 1;
        }
    }
}
