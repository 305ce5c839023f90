//! Which file of a crate uses which: modules, what they define and re-export, and every path that
//! their code names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, UseTree, Visibility};

type Names = Vec<String>;

/// A crate, read from its root file.
pub(super) struct Source {
    modules: Vec<Module>,
    /// Files by their path below the root's folder, in the order in which they were read.
    pub(super) files: Vec<String>,
    uses: BTreeSet<Use>,
}

/// One file names something that another one defines.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Use {
    pub(super) from: String,
    pub(super) to: String,
}

#[derive(Default)]
struct Module {
    path: Names,
    file: usize,
    defined: BTreeSet<String>,
    /// Names that `use` brings into the module, and what they stand for: a type and a function of
    /// one name may come from two places.
    imported: BTreeMap<String, Vec<Names>>,
    /// Those that it passes on.
    reexported: BTreeSet<String>,
    globs: Vec<Names>,
}

pub(super) fn parse(path: &Path) -> syn::File {
    let text =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl Source {
    /// Reads `lib.rs` in `folder` and every module that it declares, without those of tests.
    pub(super) fn read(folder: &Path) -> Self {
        let mut source = Self { modules: Vec::new(), files: Vec::new(), uses: BTreeSet::new() };
        let mut parsed = Vec::new();
        source.file(folder, &folder.join("lib.rs"), &[], &mut parsed);
        for (at, file) in parsed {
            let mut visitor = Uses { source: &source, at, found: BTreeSet::new() };
            visitor.visit_file(&file);
            let found = visitor.found;
            source.uses.extend(found);
        }
        source
    }

    /// What every file uses of other files.
    pub(super) fn uses(&self) -> &BTreeSet<Use> {
        &self.uses
    }

    fn file(
        &mut self,
        root: &Path,
        path: &Path,
        module: &[String],
        parsed: &mut Vec<(usize, syn::File)>,
    ) {
        let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
        self.files.push(name);
        let file = parse(path);
        let at = self.module(root, path, module, self.files.len() - 1, &file.items, parsed);
        parsed.push((at, file));
    }

    fn module(
        &mut self,
        root: &Path,
        path: &Path,
        module: &[String],
        file: usize,
        items: &[Item],
        parsed: &mut Vec<(usize, syn::File)>,
    ) -> usize {
        let at = self.modules.len();
        self.modules.push(Module { path: module.to_vec(), file, ..Module::default() });
        for item in items.iter().filter(|item| !is_test(attributes(item))) {
            let below = |name: &str| [module.to_vec(), vec![name.to_string()]].concat();
            match item {
                Item::Mod(ItemMod { ident, content: Some((_, items)), .. }) => {
                    self.module(root, path, &below(&ident.to_string()), file, items, parsed);
                }
                Item::Mod(ItemMod { ident, .. }) => {
                    let name = ident.to_string();
                    self.file(root, &child(path, &name), &below(&name), parsed);
                }
                Item::Use(item) => self.import(at, item),
                _ => self.modules[at].defined.extend(name(item)),
            }
        }
        at
    }

    fn import(&mut self, at: usize, item: &ItemUse) {
        let mut leaves = Vec::new();
        tree(&item.tree, &mut Vec::new(), &mut leaves);
        let passed_on = !matches!(item.vis, Visibility::Inherited);
        let module = &mut self.modules[at];
        for leaf in leaves {
            let Some(path) = absolute(&module.path, &leaf.path) else { continue };
            match leaf.name {
                Some(name) => {
                    if passed_on {
                        module.reexported.insert(name.clone());
                    }
                    module.imported.entry(name).or_default().push(path);
                }
                None => module.globs.push(path),
            }
        }
    }

    fn find(&self, path: &[String]) -> Option<&Module> {
        self.modules.iter().find(|module| module.path == path)
    }

    /// Everything that an absolute path names, through re-exports; nothing of another crate.
    fn resolve(&self, path: &[String]) -> Meaning {
        let mut meaning = Meaning::default();
        self.collect(path, 0, &mut meaning);
        meaning
    }

    fn collect(&self, path: &[String], depth: usize, meaning: &mut Meaning) {
        let Some(mut module) = self.find(&[]).filter(|_| depth <= 16) else { return };
        for (at, name) in path.iter().enumerate() {
            let below = [module.path.as_slice(), std::slice::from_ref(name)].concat();
            let inner = self.find(&below);
            // A function may have the name of a module: only the module has something below it.
            if let Some(inner) = inner.filter(|_| at + 1 < path.len()) {
                module = inner;
                continue;
            }
            let (is_defined, imported) = (module.defined.contains(name), module.imported.get(name));
            meaning.is_module |= inner.is_some();
            meaning.files.extend(is_defined.then_some(module.file));
            let globs = (inner.is_none() && !is_defined && imported.is_none())
                .then(|| module.globs.iter().map(|glob| [glob.as_slice(), &path[at..]].concat()));
            let imported = imported.into_iter().flatten();
            for target in imported
                .map(|target| [target.as_slice(), &path[at + 1..]].concat())
                .chain(globs.into_iter().flatten())
            {
                self.collect(&target, depth + 1, meaning);
            }
            return;
        }
        meaning.is_module = true;
    }
}

/// What a path names: it may be a module and a function at once.
#[derive(Default)]
struct Meaning {
    is_module: bool,
    /// The files that define the types, functions and constants of that name.
    files: BTreeSet<usize>,
}

/// Collects what the code of one file names.
struct Uses<'a> {
    source: &'a Source,
    /// The module that is visited.
    at: usize,
    found: BTreeSet<Use>,
}

impl Uses<'_> {
    /// Counts what a path in code names.
    fn named(&mut self, path: &[String]) {
        let module = &self.source.modules[self.at];
        let Some(first) = path.first() else { return };
        // The receiver, and modules.
        if path.len() == 1 && ["self", "super", "crate"].contains(&first.as_str()) {
            return;
        }
        let own = absolute(&module.path, path).into_iter();
        let imported = module.imported.get(first).into_iter().flatten();
        let imported = imported.map(|target| [target.as_slice(), &path[1..]].concat());
        for path in own.chain(imported) {
            let files = self.source.resolve(&path).files;
            self.count(files);
        }
    }

    fn count(&mut self, files: impl IntoIterator<Item = usize>) {
        let module = &self.source.modules[self.at];
        for to in files.into_iter().filter(|to| *to != module.file) {
            let [from, to] = [module.file, to].map(|file| self.source.files[file].clone());
            self.found.insert(Use { from, to });
        }
    }

    /// Paths in the tokens of a macro, which may stand in braces of a string.
    fn tokens(&mut self, tokens: &str) {
        let in_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let text = tokens.replace(" :: ", "::").replace("\\\"", "");
        for (at, piece) in text.split('"').enumerate() {
            let is_string = at % 2 == 1;
            for word in
                piece.split(|c| !in_path(c)).filter(|word| !is_string || word.contains("::"))
            {
                self.named(&word.split("::").map(str::to_string).collect::<Names>());
            }
        }
    }
}

impl<'ast> Visit<'ast> for Uses<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if item.content.is_none() {
            return;
        }
        let below =
            [self.source.modules[self.at].path.clone(), vec![item.ident.to_string()]].concat();
        let at = self.source.modules.iter().position(|module| module.path == below).unwrap();
        let outer = std::mem::replace(&mut self.at, at);
        visit::visit_item_mod(self, item);
        self.at = outer;
    }

    /// What is imported is used. What is passed on is used where it is named, and so is a name that
    /// is a module too: only the kind of path tells which of the two is meant.
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if matches!(item.vis, Visibility::Inherited) {
            let mut leaves = Vec::new();
            tree(&item.tree, &mut Vec::new(), &mut leaves);
            for leaf in leaves {
                let path = absolute(&self.source.modules[self.at].path, &leaf.path);
                let Some(path) = path.filter(|_| leaf.name.is_some()) else { continue };
                let meaning = self.source.resolve(&path);
                if !meaning.is_module {
                    self.count(meaning.files);
                }
            }
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.named(
            &path.segments.iter().map(|segment| segment.ident.to_string()).collect::<Names>(),
        );
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.tokens(&item.tokens.to_string());
        visit::visit_macro(self, item);
    }
}

struct Leaf {
    path: Names,
    /// None for all names.
    name: Option<String>,
}

fn tree(of: &UseTree, before: &mut Names, leaves: &mut Vec<Leaf>) {
    let whole = |before: &Names, name: &str| {
        let name = (name != "self").then(|| name.to_string());
        before.iter().cloned().chain(name).collect::<Names>()
    };
    match of {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            tree(&path.tree, before, leaves);
            before.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|item| tree(item, before, leaves)),
        UseTree::Name(name) => {
            let path = whole(before, &name.ident.to_string());
            leaves.push(Leaf { name: path.last().cloned(), path });
        }
        UseTree::Rename(name) => {
            let path = whole(before, &name.ident.to_string());
            leaves.push(Leaf { path, name: Some(name.rename.to_string()) });
        }
        UseTree::Glob(_) => leaves.push(Leaf { path: before.clone(), name: None }),
    }
}

/// A path as seen from the crate's root, which has no name; none where it may be of another crate.
fn absolute(module: &[String], path: &[String]) -> Option<Names> {
    let rest = |skip: usize| path[skip..].to_vec();
    match path.first()?.as_str() {
        "crate" => Some(rest(1)),
        "self" => Some([module.to_vec(), rest(1)].concat()),
        "super" => {
            let up = path.iter().take_while(|name| *name == "super").count();
            Some([module.get(..module.len().checked_sub(up)?)?.to_vec(), rest(up)].concat())
        }
        // A child of this module, perhaps: what is not there resolves to nothing.
        _ => Some([module.to_vec(), rest(0)].concat()),
    }
}

/// The file of module `name` that `parent` declares.
fn child(parent: &Path, name: &str) -> PathBuf {
    let folder = parent.parent().unwrap();
    let stem = parent.file_stem().unwrap().to_string_lossy();
    let folder = match &*stem {
        "lib" | "mod" | "main" => folder.to_path_buf(),
        stem => folder.join(stem),
    };
    let [own, inner] = [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")];
    if own.is_file() { own } else { inner }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        _ => false,
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Mod(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Const(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        _ => &[],
    }
}

fn name(item: &Item) -> Option<String> {
    Some(match item {
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Const(item) => item.ident.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Macro(item) => item.ident.as_ref()?.to_string(),
        _ => return None,
    })
}

/// Calls `body` for every function that is no test: its name and its parameters.
pub(super) fn each_function(file: &syn::File, body: &mut dyn FnMut(&syn::Signature)) {
    struct Functions<'a>(&'a mut dyn FnMut(&syn::Signature));
    impl<'ast> Visit<'ast> for Functions<'_> {
        // The trait says what its methods take, and traits of other crates are theirs.
        fn visit_item(&mut self, item: &'ast Item) {
            let of_trait = matches!(item, Item::Impl(item) if item.trait_.is_some());
            if !is_test(attributes(item)) && !of_trait {
                visit::visit_item(self, item);
            }
        }
        fn visit_signature(&mut self, signature: &'ast syn::Signature) {
            (self.0)(signature);
        }
    }
    Functions(body).visit_file(file);
}
