//! Specs of experiments from any text; what is read is written and read again, and its cells are
//! all different.
#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use tamis_host::lab::experiment::Spec;

fuzz_target!(|text: &str| {
    for profile in [None, Some("smoke"), Some("reduced")] {
        let Ok(spec) = Spec::parse(text, profile) else { continue };
        let again = Spec::parse(&spec.to_toml().unwrap(), None).unwrap();
        assert_eq!(again.hash(), spec.hash());
        let cells = spec.cells();
        let ids: BTreeSet<String> = cells.iter().map(|cell| cell.id()).collect();
        assert_eq!(ids.len(), cells.len());
        assert!(cells.first().is_none_or(|cell| spec.cell(&cell.id()).unwrap() == *cell));
    }
});
