//! Modules use only those before them in the order that their crate's documentation gives.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, UseTree};

/// The order: what stands between backticks and is parted by arrows in the crate's documentation.
fn order(root: &syn::File) -> Vec<String> {
    let doc: Vec<String> = root.attrs.iter().filter_map(doc_line).collect();
    let doc = doc.join(" ");
    let list = doc.split('`').find(|part| part.contains('→')).expect("an order with arrows in backticks");
    list.split('→').map(|name| name.trim().to_string()).collect()
}

fn doc_line(attribute: &Attribute) -> Option<String> {
    let syn::Meta::NameValue(pair) = &attribute.meta else { return None };
    let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &pair.value else { return None };
    pair.path.is_ident("doc").then(|| text.value().trim().to_string())
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        _ => false,
    })
}

/// Collects the top-level modules of the crate that the code of one module names.
struct Uses<'a> {
    /// Depth of the module that is visited; 0 for the crate's root.
    depth: usize,
    /// Names at the root that are re-exports, and where from.
    reexports: &'a dyn Fn(&str) -> Option<String>,
    found: BTreeSet<String>,
}

impl Uses<'_> {
    /// A path from a module; `names` are its segments.
    fn path(&mut self, names: &[String]) {
        let supers = names.iter().take_while(|name| *name == "super").count();
        let from_root = match names.first().map(String::as_str) {
            Some("crate") => names.get(1),
            Some("super") if supers == self.depth => names.get(supers),
            _ => None,
        };
        if let Some(name) = from_root {
            self.found.insert((self.reexports)(name).unwrap_or(name.clone()));
        }
    }

    fn tree(&mut self, tree: &UseTree, before: &mut Vec<String>) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.tree(&path.tree, before);
                before.pop();
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.tree(tree, before)),
            UseTree::Name(name) => self.leaf(name.ident.to_string(), before),
            UseTree::Rename(name) => self.leaf(name.ident.to_string(), before),
            UseTree::Glob(_) => self.path(before),
        }
    }

    fn leaf(&mut self, name: String, before: &mut Vec<String>) {
        before.push(name);
        self.path(before);
        before.pop();
    }
}

impl<'ast> Visit<'ast> for Uses<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_test(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        self.depth += 1;
        visit::visit_item_mod(self, module);
        self.depth -= 1;
    }

    fn visit_use_tree(&mut self, tree: &'ast UseTree) {
        self.tree(tree, &mut Vec::new());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.path(&names);
        visit::visit_path(self, path);
    }
}

fn parse(path: &Path) -> syn::File {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Source files of a module with the depth at which each lies.
fn files(source: &Path, module: &str) -> Vec<(PathBuf, usize)> {
    let mut files = Vec::new();
    let mut folders = vec![(source.join(module), 2)];
    let own = source.join(format!("{module}.rs"));
    if own.is_file() {
        files.push((own, 1));
    }
    while let Some((folder, depth)) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            let is_root = path.file_name().is_some_and(|name| name == "mod.rs");
            if path.is_dir() {
                folders.push((path, depth + 1));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push((path, if is_root { depth - 1 } else { depth }));
            }
        }
    }
    assert!(!files.is_empty(), "no file for module {module}");
    files
}

fn modules(root: &syn::File) -> Vec<String> {
    let module = |item: &Item| match item {
        Item::Mod(item) => Some(item.ident.to_string()),
        _ => None,
    };
    root.items.iter().filter_map(module).collect()
}

/// `pub use error::{Error, Result}` makes `crate::Error` a use of `error`.
fn reexports(root: &syn::File) -> Vec<(String, String)> {
    let mut names = Vec::new();
    for item in &root.items {
        let Item::Use(item) = item else { continue };
        let UseTree::Path(path) = &item.tree else { continue };
        let mut leaves = vec![&*path.tree];
        while let Some(tree) = leaves.pop() {
            match tree {
                UseTree::Group(group) => leaves.extend(&group.items),
                UseTree::Name(name) => names.push((name.ident.to_string(), path.ident.to_string())),
                other => panic!("a re-export of another form: {other:?}"),
            }
        }
    }
    names
}

/// (module, what it uses and must not), for all modules.
fn violations(source: &Path) -> Vec<(String, String)> {
    let root = parse(&source.join("lib.rs"));
    let (order, modules, names) = (order(&root), modules(&root), reexports(&root));
    let reexport = |name: &str| names.iter().find(|(from, _)| from == name).map(|(_, to)| to.clone());
    let mut wrong = Vec::new();
    for module in &modules {
        let place = order.iter().position(|name| name == module);
        let place = place.unwrap_or_else(|| panic!("module {module} has no place in {order:?}"));
        let allowed = &order[..=place];
        for (file, depth) in files(source, module) {
            let mut uses = Uses { depth, reexports: &reexport, found: BTreeSet::new() };
            uses.visit_file(&parse(&file));
            let bad = uses.found.into_iter().filter(|name| modules.contains(name) && !allowed.contains(name));
            wrong.extend(bad.map(|name| (module.clone(), name)));
        }
    }
    wrong
}

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

#[test]
fn core_modules_use_only_those_before_them() {
    assert_eq!(violations(&workspace().join("core/src")), []);
}

#[test]
fn host_modules_use_only_those_before_them() {
    assert_eq!(violations(&workspace().join("host/src")), []);
}

#[test]
fn shared_test_modules_use_only_those_before_them() {
    assert_eq!(violations(&workspace().join("tests/src")), []);
}

#[test]
fn every_module_of_the_core_is_in_the_order_and_nothing_else() {
    let root = parse(&workspace().join("core/src/lib.rs"));
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    assert_eq!(sorted(order(&root)), sorted(modules(&root)));
}

/// The rules of reading, on sources made for it.
#[test]
fn every_form_of_use_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let found = |text: &str| {
        write("b.rs", text);
        violations(folder.path())
    };
    write("lib.rs", "//! The order: `a → b → c`.\npub mod a;\npub mod b;\npub mod c;\npub use c::Late;\n");
    write("a.rs", "");
    write("c.rs", "use crate::{a, b};");
    let late = [("b".to_string(), "c".to_string())];
    assert_eq!(found("use crate::a::x; fn f() { crate::a::g() }"), []);
    for bad in [
        "use crate::c;",
        "use crate::{a, c::x};",
        "use crate::Late;",
        "use super::c::{x, y};",
        "use crate::c::*;",
        "fn f() { crate::c::g() }",
        "fn f(x: crate::Late) {}",
        "mod inner { use super::super::c; }",
    ] {
        assert_eq!(found(bad), late, "{bad}");
    }
    assert_eq!(found("#[cfg(test)] mod tests { use crate::c; }\nmod inner { use super::c; }"), []);
}
