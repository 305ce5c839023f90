//! The house: rooms use only rooms before them, no files use each other in a circle, and no
//! function takes a tuple.

mod source;

use source::{Source, Use, each_function, parse};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Lines of a file at the most.
const LINES: usize = 500;

/// The rooms that each room may use: those before it, on the lines of the crate's documentation
/// that are parted by arrows.
fn rooms(root: &syn::File) -> BTreeMap<String, BTreeSet<String>> {
    let mut rooms = BTreeMap::<String, BTreeSet<String>>::new();
    for line in root.attrs.iter().filter_map(doc_line).filter(|line| line.contains('→')) {
        let line = line.split('`').find(|part| part.contains('→')).unwrap_or_default();
        let mut before = BTreeSet::new();
        for room in line.split('→').map(|name| name.trim().to_string()) {
            before.insert(room.clone());
            rooms.entry(room).or_default().extend(before.clone());
        }
    }
    assert!(!rooms.is_empty(), "no rooms between arrows in the crate's documentation");
    rooms
}

fn doc_line(attribute: &syn::Attribute) -> Option<String> {
    let syn::Meta::NameValue(pair) = &attribute.meta else { return None };
    let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &pair.value else {
        return None;
    };
    pair.path.is_ident("doc").then(|| text.value().trim().to_string())
}

/// The room that a file lies in: its folder, or the module at the root.
fn room(file: &str) -> &str {
    file.split('/').next().unwrap().trim_end_matches(".rs")
}

/// Uses of a room that is not before the file's own.
fn violations(folder: &Path) -> Vec<Use> {
    let rooms = rooms(&parse(&folder.join("lib.rs")));
    let known: BTreeSet<&str> = rooms.keys().map(String::as_str).collect();
    let source = Source::read(folder);
    let there: BTreeSet<&str> = source.files.iter().map(|file| room(file)).collect();
    let strays: Vec<_> =
        there.difference(&known).filter(|name| !["lib", "main"].contains(name)).collect();
    assert!(
        strays.is_empty() && known.is_subset(&there),
        "rooms without a place, or places without a room: {strays:?}"
    );
    let wrong = |of: &&Use| {
        rooms.get(room(&of.from)).is_some_and(|allowed| !allowed.contains(room(&of.to)))
    };
    source.uses().iter().filter(wrong).cloned().collect()
}

/// The circles: files that reach each other, each circle with the uses that tie it.
fn circles(source: &Source) -> Vec<Vec<Use>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        source.files.iter().map(|file| (&**file, reach(source, file))).collect();
    let tied = |of: &Use| reached[&*of.to].contains(&*of.from);
    let mut left: Vec<&Use> = source.uses().iter().filter(|of| tied(of)).collect();
    let mut circles = Vec::new();
    while let Some(first) = left.first().copied() {
        let own = &reached[&*first.from];
        let (circle, others) = left.into_iter().partition::<Vec<_>, _>(|of| {
            own.contains(&*of.from) && reached[&*of.from].contains(&*first.from)
        });
        circles.push(circle.into_iter().cloned().collect());
        left = others;
    }
    circles
}

/// Files that a file uses, at any distance.
fn reach<'a>(source: &'a Source, file: &'a str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open = vec![file];
    while let Some(from) = open.pop() {
        for to in source.uses().iter().filter(|of| of.from == from).map(|of| &*of.to) {
            if seen.insert(to) {
                open.push(to);
            }
        }
    }
    seen
}

fn shown(circles: &[Vec<Use>]) -> String {
    let line = |of: &Use| format!("  {} -> {}\n", of.from, of.to);
    circles
        .iter()
        .map(|circle| format!("circle\n{}", circle.iter().map(line).collect::<String>()))
        .collect()
}

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The folders of source that the rules hold for.
const CRATES: [&str; 5] = ["core/src", "gpu/dense/src", "gpu/src", "host/src", "tests/src"];

fn crates() -> impl Iterator<Item = PathBuf> {
    CRATES.into_iter().map(|folder| workspace().join(folder))
}

/// Functions with a parameter that is a tuple, as `file: function`.
fn tuple_parameters(folder: &Path) -> Vec<String> {
    fn is_tuple(of: &syn::Type) -> bool {
        match of {
            syn::Type::Tuple(tuple) => tuple.elems.len() > 1,
            syn::Type::Reference(reference) => is_tuple(&reference.elem),
            _ => false,
        }
    }
    let mut found = Vec::new();
    for file in Source::read(folder).files {
        each_function(&parse(&folder.join(&file)), &mut |signature| {
            let takes = |input: &syn::FnArg| matches!(input, syn::FnArg::Typed(typed) if is_tuple(&typed.ty));
            if signature.inputs.iter().any(takes) {
                found.push(format!("{file}: {}", signature.ident));
            }
        });
    }
    found
}

#[test]
fn rooms_use_only_rooms_before_them() {
    for folder in crates() {
        assert_eq!(violations(&folder), [], "{}", folder.display());
    }
}

#[test]
fn no_files_use_each_other_in_a_circle() {
    for folder in crates() {
        let circles = circles(&Source::read(&folder));
        assert!(circles.is_empty(), "{}\n{}", folder.display(), shown(&circles));
    }
}

#[test]
fn no_function_takes_a_tuple() {
    for folder in crates() {
        assert_eq!(tuple_parameters(&folder), [""; 0], "{}", folder.display());
    }
}

#[test]
fn no_file_is_long() {
    let lines = |path: &Path| std::fs::read_to_string(path).unwrap().lines().count();
    for folder in crates() {
        let files = Source::read(&folder).files;
        let is_long =
            |file: &&String| !file.ends_with("table.rs") && lines(&folder.join(file)) > LINES;
        let long: Vec<_> = files.iter().filter(is_long).collect();
        assert!(long.is_empty(), "{}: {long:#?}", folder.display());
    }
}

/// A crate of files made for a test of the reading itself.
fn made(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

#[test]
fn every_form_of_use_is_seen() {
    let found = |text: &str| {
        let lib = "//! `a → b → c`\n//! `a → d`\npub mod a;\npub mod b;\npub mod c;\npub mod d;\npub use c::Late;\n";
        let c =
            "use crate::{a, b};\npub struct Late;\npub fn f() {}\npub mod inner { pub fn g() {} }";
        let folder = made(&[
            ("lib.rs", lib),
            ("a.rs", "pub fn x() {}"),
            ("b.rs", text),
            ("c.rs", c),
            ("d.rs", "pub fn y() {}"),
        ]);
        violations(folder.path()).into_iter().map(|of| of.to).collect::<Vec<_>>()
    };
    assert_eq!(found("use crate::a::x; fn f() { crate::a::x() }"), [""; 0]);
    for bad in [
        "use crate::c::f;",
        "use crate::{a, c::f};",
        "use crate::Late;",
        "use super::c::{f, Late};",
        "use crate::c; fn g() { c::f() }",
        "use crate::c as other; fn g() { other::inner::g() }",
        "fn g() { crate::c::f() }",
        "fn g() { assert!(crate::c::f() == ()) }",
        "fn g(x: crate::Late) {}",
        "mod inner { use super::super::c::f; }",
    ] {
        assert_eq!(found(bad), ["c.rs"], "{bad}");
    }
    assert_eq!(found("use crate::d::y;"), ["d.rs"]);
    assert_eq!(found("#[cfg(test)] mod tests { use crate::c::f; }"), [""; 0]);
}

#[test]
fn cycle_is_detected_through_a_reexport() {
    let lib = "pub mod a;\npub mod b;\npub mod c;";
    let found = |a: &str, b: &str| {
        let folder = made(&[
            ("lib.rs", lib),
            ("a.rs", a),
            ("b.rs", b),
            ("c.rs", "pub use crate::a::X; use crate::b::Y;"),
        ]);
        circles(&Source::read(folder.path())).len()
    };
    assert_eq!(found("pub struct X;", "pub struct Y; use crate::c::X;"), 0);
    assert_eq!(found("pub struct X; use crate::b::Y;", "pub struct Y; use crate::c::X;"), 1);
    assert_eq!(
        found("pub struct X; fn f() { crate::b::Y; }", "pub struct Y; fn g(x: crate::a::X) {}"),
        1
    );
}

#[test]
fn module_and_function_sharing_a_name_are_distinguished() {
    let tied = |a: &str, run: &str, other: &str| {
        let folder = made(&[
            ("lib.rs", "pub mod a;"),
            ("a.rs", a),
            ("a/run.rs", run),
            ("a/other.rs", other),
        ]);
        circles(&Source::read(folder.path())).len()
    };
    let defines = "pub mod run; pub mod other; use other::f; pub fn run() { run::go(); }";
    let go = "pub fn go() {}";
    let receiver = "pub struct S; impl S { fn f(&self) { self.g() } } pub fn go() {}";
    assert_eq!(tied(defines, receiver, "pub fn f() {}"), 0);
    assert_eq!(tied(defines, go, "use super::run; pub fn f() { run::go() }"), 0);
    assert_eq!(tied(defines, go, "pub fn f() { super::run::go() }"), 0);
    for other in [
        "use super::run; pub fn f() { run() }",
        "use super::run; pub fn f() { assert!(run() == ()) }",
        "use super::run as start; pub fn f() { [()].map(|()| start()); }",
        "pub fn f() { super::run() }",
    ] {
        assert_eq!(tied(defines, go, other), 1, "{other}");
    }
    let passes_on = "pub mod run; pub mod other; pub use run::run;";
    let other = "use super::run; pub fn f() { run() }";
    assert_eq!(tied(passes_on, "pub fn run() {}", other), 0);
    assert_eq!(tied(passes_on, "pub fn run() { super::other::f() }", other), 1);
    let two = "pub mod run; pub mod other; pub use other::go; pub use run::inner::go;";
    let run = "pub mod inner { pub mod go {} } pub fn h() { super::go() }";
    assert_eq!(tied(two, run, "pub fn go() { super::run::h() }"), 1);
}

#[test]
fn tuples_are_seen_in_every_kind_of_function() {
    let text = "fn a((x, y): (u8, u8)) {} struct S; impl S { fn b(&self, z: &mut (u8, u8)) {} } trait T { fn c(w: (u8, u8)); } fn d(x: u8) {}";
    let folder = made(&[("lib.rs", text)]);
    assert_eq!(tuple_parameters(folder.path()), ["lib.rs: a", "lib.rs: b", "lib.rs: c"]);
}
