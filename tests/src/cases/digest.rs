//! What a case computes, and what counts its instructions.

/// Counts instructions between `start` and `stop` where that is possible. Pairs may nest.
pub trait Probe {
    /// Counting starts behind this call.
    fn start(&mut self);
    /// Counting stops before this call: `region` did `units` of work, such as multiplications by a
    /// nonzero.
    fn stop(&mut self, region: &'static str, units: u32);
}

/// Counts nothing.
impl Probe for () {
    fn start(&mut self) {}
    fn stop(&mut self, _region: &'static str, _units: u32) {}
}

/// FNV-1a over the bytes of 32-bit words.
#[derive(Debug, Clone, Copy)]
pub struct Digest(u32);

impl Default for Digest {
    fn default() -> Self {
        Self(0x811c_9dc5)
    }
}

impl Digest {
    /// Adds a word, lowest byte first.
    pub fn word(&mut self, word: u32) {
        for byte in word.to_le_bytes() {
            self.0 = (self.0 ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        }
    }

    /// Adds the bits of a number. All NaN count as one: their payload is the platform's choice.
    pub fn float(&mut self, value: f32) {
        self.word(if value.is_nan() { f32::NAN.to_bits() } else { value.to_bits() });
    }

    /// The digest so far.
    #[must_use]
    pub fn value(self) -> u32 {
        self.0
    }
}
