//! The sources of the programs.

use crate::cost::{Numbers, Way};
use crate::costs::draw::{Content, Drawn};
use std::path::Path;

/// A model and the way in which a program has it.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    /// Of the binary.
    pub(crate) name: String,
    pub(crate) way: Way,
    pub(crate) numbers: Numbers,
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    /// Numbers of the scratch.
    pub(crate) scratch: usize,
    /// The model file.
    pub(crate) file: Vec<u8>,
}

/// Of the crate of all programs, as users build theirs.
pub(crate) fn manifest(root: &Path) -> String {
    let root = root.display();
    format!(
        "[package]\nname = \"tamis-ways\"\nversion = \"0.1.0\"\nedition = \"2024\"\npublish = false\n\
         build = \"{root}/tests/firmware/build.rs\"\n\n[workspace]\n\n\
         [dependencies]\nsemihosting = \"0.1.25\"\ntamis = {{ path = \"{root}/core\" }}\n\n\
         [target.'cfg(target_arch = \"arm\")'.dependencies]\ncortex-m-rt = \"0.7.7\"\n\n\
         [target.'cfg(target_arch = \"riscv32\")'.dependencies]\n\
         riscv-rt = {{ version = \"0.18\", features = [\"single-hart\"] }}\n\n\
         [profile.release]\nopt-level = 3\nlto = \"fat\"\ncodegen-units = 1\npanic = \"abort\"\n"
    )
}

fn front(root: &Path) -> String {
    format!(
        "#![no_std]\n#![no_main]\n#[path = \"{}/tests/firmware/src/way.rs\"]\nmod way;\n\n",
        root.display()
    )
}

/// The program without a model, which ends with what numbers in its flash add up to.
pub(crate) fn nothing(root: &Path) -> String {
    front(root) + "fn run() -> i32 {\n    way::nothing()\n}\n"
}

impl Program {
    /// Of a model that was drawn.
    pub(crate) fn of(name: String, way: Way, model: &Drawn) -> Self {
        let (numbers, [inputs, outputs, scratch]) = model.read(
            |_, _| (Numbers::Floats, [0; 3]),
            |view| {
                let model = view.model();
                (Numbers::Floats, [model.inputs(), model.outputs(), model.scratch_len()])
            },
            |view| {
                let model = view.model();
                (Numbers::Integers, [model.inputs(), model.outputs(), model.scratch_len()])
            },
        );
        let file = match &model.content {
            Content::Floats(bytes) | Content::Integers(bytes) => bytes.clone(),
            Content::DenseFloats { .. } => Vec::new(),
        };
        Self { name, way, numbers, inputs, outputs, scratch, file }
    }

    /// Its source; the model lies in the folder of the crate.
    pub(crate) fn source(&self, root: &Path, folder: &Path) -> String {
        let (n, m, s) = (self.inputs, self.outputs, self.scratch);
        let place = format!("{}/models/{}", folder.display(), self.name);
        let is_floats = self.numbers == Numbers::Floats;
        let [row, number] = if is_floats { ["f32"; 2] } else { ["u8", "i32"] };
        let one = if is_floats { "1.0" } else { "1" };
        let view = if is_floats { "View" } else { "QuantisedView" };
        let embed = if is_floats { "embed_model" } else { "embed_quantised" };
        // As README and the examples have them.
        let buffers = if is_floats {
            format!("let (mut scratch, mut y) = ([0.0; {s}], [0.0; {m}]);")
        } else {
            format!("let (mut scratch, mut y) = (zeros::<i32, {s}>(), zeros::<i32, {m}>());")
        };
        let fold = format!("way::fold_{row}(core::hint::black_box(&y))");
        let body = match self.way {
            Way::File => format!(
                "    {buffers}\n    let done = predict(row, &mut scratch, &mut y);\n    {fold}.wrapping_add(way::looked_at(done))\n"
            ),
            Way::Embedded => format!(
                "    let model = tamis::{embed}!(\"{place}.tamis\");\n    {buffers}\n\
                 \x20   let done = model.predict(row, &mut scratch, &mut y);\n    {fold}.wrapping_add(way::looked_at(done))\n"
            ),
            _ => format!("    let y = model::predict(row);\n    {fold}\n"),
        };
        // As README has it.
        let reads = format!(
            "static MODEL: &[u8] = tamis::include_model!(\"{place}.tamis\");\n\n#[inline(always)]\n\
             fn predict(row: &[{row}], scratch: &mut [{number}], y: &mut [{number}]) -> tamis::Result<()> {{\n\
             \x20   let view = tamis::store::wire::{view}::parse(MODEL)?;\n    view.model().predict(row, scratch, y)\n}}\n\n"
        );
        let own_buffers = matches!(self.way, Way::File | Way::Embedded) && !is_floats;
        let uses = if own_buffers { "use tamis::infer::model::zeros;\n\n" } else { "" };
        let module = match self.way {
            Way::Rust | Way::Straight => format!("#[path = \"{place}.rs\"]\nmod model;\n\n"),
            Way::File => reads,
            _ => String::new(),
        };
        format!(
            "{}{uses}{module}static ROW: [{row}; {n}] = [{one}; {n}];\n\nfn run() -> i32 {{\n    let row = way::unknown(&ROW);\n{body}}}\n",
            front(root)
        )
    }
}
