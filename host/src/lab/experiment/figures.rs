//! The experiments that ship with the command: every figure of the paper on iterative hard
//! thresholding, its runtimes, checks of its theory and of that of masks as sketches, the tables and
//! figures on pruned networks and matrix sensing, and the tables of docs/results.

use std::path::Path;

use super::spec::Spec;
use crate::{Error, Result};

const FIGURES: [(&str, &str); 39] = [
    ("figure-1-left", include_str!("../../../specs/figure-1-left.toml")),
    ("figure-1-right", include_str!("../../../specs/figure-1-right.toml")),
    ("figure-2-left", include_str!("../../../specs/figure-2-left.toml")),
    ("figure-2-right", include_str!("../../../specs/figure-2-right.toml")),
    ("figure-3-left", include_str!("../../../specs/figure-3-left.toml")),
    ("figure-3-right", include_str!("../../../specs/figure-3-right.toml")),
    ("figure-4", include_str!("../../../specs/figure-4.toml")),
    ("figure-5", include_str!("../../../specs/figure-5.toml")),
    ("runtimes", include_str!("../../../specs/runtimes.toml")),
    ("references", include_str!("../../../specs/references.toml")),
    ("equal-time", include_str!("../../../specs/equal-time.toml")),
    ("theory-assumption", include_str!("../../../specs/theory-assumption.toml")),
    ("theory-curvature", include_str!("../../../specs/theory-curvature.toml")),
    ("theory-coverage", include_str!("../../../specs/theory-coverage.toml")),
    ("theory-convergence", include_str!("../../../specs/theory-convergence.toml")),
    ("theory-sensing", include_str!("../../../specs/theory-sensing.toml")),
    ("sketch-lemmas", include_str!("../../../specs/sketch-lemmas.toml")),
    ("sketch-magnitudes", include_str!("../../../specs/sketch-magnitudes.toml")),
    ("sketch-masks", include_str!("../../../specs/sketch-masks.toml")),
    ("greedy-figure-1", include_str!("../../../specs/greedy-figure-1.toml")),
    ("greedy-guarantee", include_str!("../../../specs/greedy-guarantee.toml")),
    ("greedy-noise", include_str!("../../../specs/greedy-noise.toml")),
    ("greedy-start", include_str!("../../../specs/greedy-start.toml")),
    ("prob-table-2", include_str!("../../../specs/prob-table-2.toml")),
    ("prob-table-3", include_str!("../../../specs/prob-table-3.toml")),
    ("prob-exponents", include_str!("../../../specs/prob-exponents.toml")),
    ("prob-lemmas", include_str!("../../../specs/prob-lemmas.toml")),
    ("prob-covertype", include_str!("../../../specs/prob-covertype.toml")),
    ("recovery", include_str!("../../../specs/recovery.toml")),
    ("lm-recipe", include_str!("../../../specs/lm-recipe.toml")),
    ("frontier", include_str!("../../../specs/frontier.toml")),
    ("lm-vector", include_str!("../../../specs/lm-vector.toml")),
    ("two-layers", include_str!("../../../specs/two-layers.toml")),
    ("paper-recipe", include_str!("../../../specs/paper-recipe.toml")),
    ("images", include_str!("../../../specs/images.toml")),
    ("binary", include_str!("../../../specs/binary.toml")),
    ("multiclass", include_str!("../../../specs/multiclass.toml")),
    ("memory", include_str!("../../../specs/memory.toml")),
    ("heap", include_str!("../../../specs/heap.toml")),
];

/// The names, in the order of the paper.
pub fn names() -> impl Iterator<Item = &'static str> {
    FIGURES.iter().map(|(name, _)| *name)
}

/// The experiment of a name, or in a file whose name ends in `.toml`, with a profile applied.
pub(crate) fn load(name: &str, profile: Option<&str>) -> Result<Spec> {
    if let Some((_, text)) = FIGURES.iter().find(|(own, _)| *own == name) {
        return Spec::parse(text, profile);
    }
    let path = Path::new(name);
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml")) {
        return Spec::load(path, profile);
    }
    Err(Error::new("there is no such experiment")
        .expected(format_args!("{}, or a file SPEC.toml", names().collect::<Vec<_>>().join(", ")))
        .got(name)
        .help("correct the name; a file needs the ending .toml"))
}

#[cfg(test)]
mod tests {
    use super::super::problem;
    use super::super::spec::PROFILES;
    use super::*;

    #[test]
    fn experiments_have_profiles_and_smoke_needs_no_files() {
        for (name, _) in FIGURES {
            let mut cells = Vec::new();
            for profile in PROFILES {
                let spec = load(name, Some(profile)).unwrap();
                assert_eq!((spec.name.as_str(), spec.resolved.as_str()), (name, profile));
                cells.push(spec.cells().len());
                let files: Vec<String> = spec.part.iter().flat_map(problem::files_of).collect();
                assert!(profile != "smoke" || files.is_empty(), "{name}: {files:?}");
                assert!(
                    profile != "reduced" || spec.minutes.is_some_and(|minutes| minutes < 60.0),
                    "{name}"
                );
            }
            // Runtimes are measured whole, with a shorter IMP.
            let grows = cells[0] < cells[1] && (cells[1] < cells[2] || name == "runtimes");
            assert!(cells[0] < 80 && grows, "{name}: {cells:?}");
        }
    }

    #[test]
    fn resolved_spec_roundtrips_with_same_cells_and_hash() {
        for (name, profile) in names().flat_map(|name| PROFILES.map(|profile| (name, profile))) {
            for spec in [
                load(name, Some(profile)).unwrap(),
                load(name, Some(profile)).unwrap().with_digits(),
            ] {
                let again = Spec::parse(&spec.to_toml().unwrap(), None).unwrap();
                assert_eq!(again, spec, "{name} {profile}");
                assert_eq!(again.hash(), spec.hash());
                assert!(Spec::parse(&spec.to_toml().unwrap(), Some(profile)).is_ok());
            }
        }
    }

    #[test]
    fn the_spec_of_the_documentation_is_one() {
        let docs = include_str!("../../../../docs/experiments.md");
        let text =
            docs.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let cells = |profile| Spec::parse(text, profile).unwrap().cells().len();
        // s = 2000 is above 100 · 5 and 100 · 10.
        assert_eq!((cells(None), cells(Some("smoke"))), (2 * 2 * 3 * 6, 6));
    }

    #[test]
    fn names_of_cells_are_all_different() {
        for name in names() {
            let spec = load(name, None).unwrap();
            let mut ids: Vec<String> = spec.cells().iter().map(super::super::Cell::id).collect();
            let all = ids.len();
            ids.sort();
            ids.dedup();
            assert_eq!(ids.len(), all, "{name}");
        }
    }

    #[test]
    fn paper_grid_omits_impossible_pairs() {
        let spec = load("figure-1-right", None).unwrap();
        let pairs = spec.part[0].pairs();
        // m² < s/2, and no others.
        for (m, s) in
            spec.part[0].m.iter().flat_map(|&m| spec.part[0].s.iter().map(move |&s| (m, s)))
        {
            let kept = m * m >= s / 2 && 100 * m >= s.div_ceil(2);
            assert_eq!(pairs.contains(&(m, s)), kept, "{m} {s}");
        }
    }
}
