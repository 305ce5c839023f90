//! The figures of README are those of docs/results.

use std::collections::BTreeSet;
use std::path::Path;

/// The numbers of a text, digits and points.
fn numbers(text: &str) -> BTreeSet<String> {
    let words =
        text.split(|c: char| !c.is_ascii_digit() && c != '.').map(|word| word.trim_matches('.'));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Without the spaces that part thousands: `4 419` is `4419`.
fn joined(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let digit = |at: usize| chars.get(at).is_some_and(char::is_ascii_digit);
    let parts =
        |at: usize| at > 0 && digit(at - 1) && (1..=3).all(|k| digit(at + k)) && !digit(at + 4);
    let kept = chars.iter().enumerate().filter(|(at, c)| **c != ' ' || !parts(*at));
    kept.map(|(_, c)| *c).collect()
}

/// A row that links to files of docs/results has no number that is in none of them.
#[test]
fn readme_numbers_appear_in_the_linked_results() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let mut rows = 0;
    for line in
        readme.lines().filter(|line| line.starts_with('|') && line.contains("](docs/results/"))
    {
        let mut known = BTreeSet::new();
        for link in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if let Some(text) =
                link.ends_with(".md").then(|| std::fs::read_to_string(root.join(link)).unwrap())
            {
                known.extend(numbers(&text));
                known.extend(numbers(&joined(&text)));
            }
        }
        let text = line.split("](").map(|part| part.split_once(')').map_or(part, |(_, rest)| rest));
        let own = numbers(&joined(&text.collect::<String>()));
        let missing: Vec<&String> = own.difference(&known).collect();
        assert!(
            missing.is_empty(),
            "{missing:?} of README.md are in none of the linked files: {line}"
        );
        rows += 1;
    }
    assert!(rows > 0, "README.md has no row of results");
}
