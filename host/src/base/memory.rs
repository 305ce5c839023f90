//! What the process takes and what the machine has.

use peak_alloc::PeakAlloc;

use crate::{Error, Result};

/// The most memory that this process has had in RAM so far, in bytes; `None` but on Linux.
#[must_use]
pub fn peak_rss_bytes() -> Option<u64> {
    kilobytes("/proc/self/status", "VmHWM:")
}

/// The most bytes of the heap that were allocated at once since a moment, above what was allocated
/// then; in programs whose global allocator is [`PeakAlloc`], such as `tamis`.
///
/// ```
/// let heap = tamis_host::base::HeapPeak::start();
/// assert_eq!(heap.bytes(), None, "this program does not count");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct HeapPeak {
    before: usize,
}

impl HeapPeak {
    /// Counts from now on.
    #[must_use]
    pub fn start() -> Self {
        PeakAlloc.reset_peak_usage();
        Self { before: PeakAlloc.current_usage() }
    }

    /// The peak so far, in bytes; none where nothing is counted.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        let peak = PeakAlloc.peak_usage();
        (peak > 0).then(|| peak.saturating_sub(self.before) as u64)
    }
}

/// Checks that `bytes` can be had before they are asked for; `help` says how to need less.
pub(crate) fn room_for(what: &str, bytes: u64, help: &str) -> Result<()> {
    let refused = |got: String| {
        Err(Error::new(format!("not enough memory for {what}"))
            .mismatch(format_args!("{bytes} bytes"), got)
            .help(format!("{help}, or use a machine with more memory")))
    };
    if let Some(free) = kilobytes("/proc/meminfo", "MemAvailable:").filter(|free| bytes > *free) {
        return refused(format!("{free} bytes free"));
    }
    let reserved = usize::try_from(bytes).map(|len| Vec::<u8>::new().try_reserve_exact(len));
    match reserved {
        Ok(Ok(())) => Ok(()),
        _ => refused("an allocation that the system refused".into()),
    }
}

/// The bytes in a line such as `VmHWM:   1234 kB`.
fn kilobytes(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_has_is_refused() {
        assert!(room_for("a test", 1 << 20, "ask for less").is_ok());
        let error = room_for("a test", u64::MAX, "ask for less").unwrap_err().to_string();
        assert!(
            error.starts_with("not enough memory for a test") && error.contains("ask for less"),
            "{error}"
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_peak_covers_what_was_touched() {
        let touched = vec![1_u8; 8 << 20];
        assert!(peak_rss_bytes().unwrap() >= touched.iter().map(|&b| u64::from(b)).sum::<u64>());
    }
}
