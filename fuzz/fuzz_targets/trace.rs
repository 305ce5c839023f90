//! Any bytes as a log of what layers gave on a device: reading it never panics, and what is read
//! holds together.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis_host::model::TraceLog;

fuzz_target!(|bytes: &[u8]| {
    let Ok(log) = TraceLog::parse(bytes) else { return };
    // Each number and each row has a line of its own.
    let numbers: usize = log.rows.iter().map(|row| row.numbers.len()).sum();
    let lines = String::from_utf8_lossy(bytes).lines().count();
    assert!(numbers + 2 * log.rows.len() + 2 <= lines);
    // What stands before the trace and behind it changes nothing.
    let more = [b"noise\n".as_slice(), bytes, b"\nnoise"].concat();
    assert_eq!(TraceLog::parse(&more).unwrap(), log);
});
