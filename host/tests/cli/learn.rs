//! Awkward input through the command line, problem by problem and recipe by recipe: a run either
//! saves a model of finite weights that `eval`, `predict` and `inspect` work with, or ends with one
//! clear error and leaves no file; in little time.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::*;
use serde_json::Value;
use tamis::base::dims::Dims;
use tamis::infer::model::Layer;
use tamis_host::data::{self, planted};
use tamis_host::model::ModelFile;

/// No run of the table may take longer.
const LIMIT: Duration = Duration::from_secs(60);
const D: usize = 6;

/// Runs a line; it is killed, and the test fails, once [`LIMIT`] has passed.
fn timed(folder: &Path, line: &str) -> (Output, Duration) {
    let arguments: Vec<&str> = line.split_whitespace().collect();
    let start = Instant::now();
    let mut command = command(folder, &arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > LIMIT {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{line}: not done after {LIMIT:?}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    (child.wait_with_output().unwrap(), start.elapsed())
}

/// Rows and labels, and a way to learn them.
#[derive(Clone)]
struct Case {
    name: String,
    x: Vec<f32>,
    inputs: usize,
    y: Vec<f32>,
    outputs: usize,
    task: &'static str,
    recipe: &'static str,
    hidden: usize,
    nnz: usize,
    /// What the error says, where there is to be one.
    refused: Option<&'static str>,
    /// The least PSNR on the rows, where there is one to reach.
    psnr: Option<f64>,
}

impl Case {
    fn rows(&self) -> usize {
        self.x.len() / self.inputs
    }

    /// Trains in a folder of its own, and uses the model; how long the training took.
    fn check(&self) -> Duration {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let n = self.rows();
        data::save_npy(at.join("x.npy"), &self.x[..], &[n, self.inputs]).unwrap();
        data::save(at.join("y.npy"), &self.y, self.outputs).unwrap();
        let before = listing(at);
        let Self { task, recipe, hidden, nnz, .. } = self;
        let line = format!(
            "train --data x.npy --labels y.npy --task {task} --recipe {recipe} --hidden {hidden} --nnz {nnz} --json -o m.tamis"
        );
        let (output, took) = timed(at, &line);
        if let Some(says) = self.refused {
            let error = refusal(&line, &output);
            assert!(
                error.contains(says) && error.contains("expected: ") && error.contains("got: "),
                "{error}"
            );
            assert_eq!(listing(at), before, "something was left");
            return took;
        }
        let (out, err) = texts(&output);
        assert!(
            output.status.success()
                && (err.is_empty() || err.starts_with("warning: the model is no")),
            "exit {:?}: {out}{err}",
            output.status.code()
        );
        let report: Value = serde_json::from_str(&out).unwrap();
        let loss = number(&report, "loss");
        assert!(loss.is_finite() && number(&report, "nnz") <= *nnz as f64, "{report}");
        let model = ModelFile::load(at.join("m.tamis")).unwrap();
        for layer in model.view().unwrap().model().layers() {
            let Layer::Csr(layer) = layer else { continue };
            assert!(layer.values().iter().all(|w| w.is_finite()), "weights: {:?}", layer.values());
        }
        let scored = json(at, "eval m.tamis --data x.npy --labels y.npy");
        let evaluated = number(&scored, "loss");
        assert_eq!(number(&scored, "n"), n as f64);
        // The files hold all n rows; anneal reports those it trained on. Else the two differ in
        // rounding only.
        let power = self.y.iter().map(|&y| f64::from(y).powi(2)).sum::<f64>() / self.y.len() as f64;
        if *recipe == "lm" {
            assert!(loss <= power, "worse than no weight at all: {loss}, {power} of labels");
        }
        if *recipe != "anneal" {
            assert!((loss - evaluated).abs() <= 0.01 * loss + 1e-9 * power, "{loss} {evaluated}");
        }
        json(at, "predict m.tamis --data x.npy -o o.npy");
        // The reader refuses what is not finite.
        assert_eq!(data::load(at.join("o.npy")).unwrap().rows, n);
        let cost = json(at, "inspect m.tamis");
        assert_eq!(cost["total"]["nnz"], report["nnz"]);
        if let Some(psnr) = self.psnr {
            let [trained, scored] = [&report, &scored].map(|value| number(value, "psnr_db"));
            assert!(trained >= psnr && scored >= psnr, "{trained} {scored} dB of {psnr}");
        }
        took
    }
}

/// n×6 standard normal rows.
fn normal(rows: usize) -> Vec<f32> {
    planted::network(Dims::new(rows, D, 1, 1), tamis::network::gates::Signs::Positive, 7)
        .unwrap()
        .data
        .values
        .into_f32()
}

/// Three outputs of two hinges in units of the columns; the first is positive.
fn teacher(u: [f64; D]) -> [f64; 3] {
    let a = (2.0 * u[0] - u[3]).max(0.0);
    let b = (u[1] + 1.5 * u[2]).max(0.0);
    [a + b, b - a, 0.5 * a - 2.0 * b]
}

/// Rows of the teacher's inputs, what is made of each, and the labels.
struct Data {
    x: Vec<f32>,
    y: Vec<[f64; 3]>,
}

impl Data {
    /// Rows that `change` makes of normal ones, and the teacher's labels for them, with inputs in
    /// the units of `scale`.
    fn new(rows: usize, scale: [f64; D], change: impl Fn(&mut [f64])) -> Self {
        let (mut x, mut y) = (Vec::new(), Vec::new());
        for row in normal(rows).chunks(D) {
            let mut row: Vec<f64> = row.iter().map(|&x| f64::from(x)).collect();
            change(&mut row);
            let row: Vec<f32> =
                row.iter().zip(scale).map(|(x, scale)| (x * scale) as f32).collect();
            let units: Vec<f64> =
                row.iter().zip(scale).map(|(&x, scale)| f64::from(x) / scale).collect();
            y.push(teacher(units.try_into().unwrap()));
            x.extend(row);
        }
        Self { x, y }
    }
}

const ONE: [f64; D] = [1.0; D];

/// A kind of inputs, the neurons and weights of a network for it, and the PSNR that the search is
/// to reach.
type Inputs = (&'static str, Data, (usize, usize), Option<f64>);

fn inputs() -> Vec<Inputs> {
    let with = |change: fn(&mut [f64])| Data::new(300, ONE, change);
    let plain = |rows| Data::new(rows, ONE, |_| ());
    let good = Some(100.0);
    vec![
        ("plain", plain(300), (3, 8), good),
        ("duplicate columns", with(|x| (x[4], x[5]) = (x[0], x[1])), (3, 8), good),
        ("a column of zeros", with(|x| x[4] = 0.0), (3, 8), good),
        ("a column of ones", with(|x| x[4] = 1.0), (3, 8), good),
        ("a large constant", with(|x| x[4] = 1e6), (3, 8), good),
        (
            "columns of 1e-6 to 1e6",
            Data::new(300, [1e-6, 1e3, 1e6, 1e-3, 1.0, 1e5], |_| ()),
            (3, 8),
            good,
        ),
        ("all columns of 1e-6", Data::new(300, [1e-6; D], |_| ()), (3, 8), good),
        ("all columns of 1e15", Data::new(300, [1e15; D], |_| ()), (3, 8), good),
        ("collinear", with(|x| (x[4], x[5]) = (3.0 * x[1], x[0] + x[1])), (3, 8), good),
        ("fewer rows than weights", plain(10), (4, 20), None),
        ("one row", plain(1), (2, 4), None),
        ("two rows", plain(2), (2, 4), None),
        ("more neurons than weights", plain(300), (40, 8), None),
        ("dense", plain(300), (3, 18), None),
        ("zeros alone", with(|x| x.fill(0.0)), (3, 8), None),
        ("ones alone", with(|x| x.fill(1.0)), (3, 8), None),
        ("denormal", Data::new(300, [1e-40; D], |_| ()), (3, 8), None),
        ("columns of 1e-20", Data::new(300, [1e-20; D], |_| ()), (3, 8), None),
    ]
}

fn case(
    name: &str,
    data: &Data,
    recipe: &'static str,
    (task, outputs): (&'static str, usize),
    size: (usize, usize),
) -> Case {
    let y = match task {
        "regression" => {
            data.y.iter().flat_map(|y| y[..outputs].iter().map(|&y| y as f32)).collect()
        }
        "binary" => data.y.iter().map(|y| f32::from(u8::from(y[1] > 0.0))).collect(),
        _ => {
            let class =
                |y: &[f64; 3]| (0..3).max_by(|&a, &b| y[a].total_cmp(&y[b])).unwrap_or(0) as f32;
            data.y.iter().map(class).collect()
        }
    };
    Case {
        name: format!("{name}, {recipe}, {task} of {outputs}"),
        x: data.x.clone(),
        inputs: data.x.len() / data.y.len(),
        y,
        outputs,
        task,
        recipe,
        hidden: size.0,
        // Weights to the outputs count.
        nnz: if outputs > 1 { size.1 + 2 } else { size.1 },
        refused: None,
        psnr: None,
    }
}

const WAYS: [(&str, (&str, usize)); 7] = [
    ("lm", ("regression", 1)),
    ("lm", ("regression", 3)),
    ("lm", ("binary", 1)),
    ("paper", ("regression", 1)),
    ("paper", ("binary", 1)),
    ("anneal", ("binary", 1)),
    ("anneal", ("multiclass", 1)),
];

fn table() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, data, size, psnr) in inputs() {
        for (recipe, what) in WAYS {
            let mut case = case(name, &data, recipe, what, size);
            case.refused = match (name, what.0) {
                ("one row" | "zeros alone" | "ones alone", "binary") => {
                    Some("nothing to tell apart")
                }
                ("two rows", "multiclass") => Some("a class has no rows"),
                ("one row" | "zeros alone" | "ones alone", "multiclass") => {
                    Some("nothing to tell apart")
                }
                // The mean square of a column is below 1e-30, which counts as zero.
                ("denormal", _) if recipe == "anneal" => {
                    Some("no weight that tells the classes apart")
                }
                ("denormal", _) if (recipe, what.0) == ("paper", "regression") => Some("diverged"),
                ("columns of 1e-20", _) if recipe == "paper" => Some("diverged"),
                ("denormal", _) => Some("no weight that explains the labels"),
                ("columns of 1e-20", _) if recipe == "lm" => {
                    Some("no weight that explains the labels")
                }
                _ => None,
            };
            case.psnr = psnr.filter(|_| recipe == "lm" && what.0 == "regression");
            if name == "duplicate columns" && what.1 == 3 {
                // While searching, two columns share one weight, and the way down to s takes a
                // whole small weight before half of a large one: there is a weight too few for
                // each. With room for them the fit is exact.
                case.psnr = Some(20.0);
                cases.push(Case {
                    name: format!("{name} with room"),
                    nnz: case.nnz + 2,
                    psnr,
                    ..case.clone()
                });
            }
            cases.push(case);
        }
    }
    // Labels, on plain inputs.
    let plain = Data::new(300, ONE, |_| ());
    let label =
        |name: &str, way: (&'static str, (&'static str, usize)), y: &dyn Fn(usize, f32) -> f32| {
            let mut case = case(name, &plain, way.0, way.1, (3, 8));
            case.y.iter_mut().enumerate().for_each(|(k, label)| *label = y(k, *label));
            case
        };
    for way in WAYS.into_iter().filter(|way| way.1.0 == "regression") {
        let several = way.1.1 == 3;
        cases.extend([
            label("constant labels", way, &|_, _| 5.0),
            label("constant negative labels", way, &|_, _| -5.0),
            label("labels of zeros", way, &|_, _| 0.0),
            label("labels about 1e20", way, &|_, y| y * 1e20),
            label("labels about 1e15", way, &|_, y| y * 1e15),
            label("labels about 1e-30", way, &|_, y| y * 1e-30),
            label("one label that is not 0", way, &|k, _| f32::from(u8::from(k == 17))),
        ]);
        if several {
            let scales = [1e-6, 1.0, 1e6];
            cases.extend([
                label("labels of scales 1e-6 to 1e6", way, &|k, y| y * scales[k % 3]),
                label("outputs of zeros beside others", way, &|k, y| {
                    if k % 3 == 1 { 0.0 } else { y }
                }),
                label("outputs of one kind", way, &|k, _| plain.y[k / 3][0] as f32),
            ]);
        }
    }
    for way in WAYS.into_iter().filter(|way| way.1.0 != "regression") {
        for class in [0.0, 1.0] {
            cases.push(label(&format!("class {class} alone"), way, &|_, _| class));
        }
        cases.push(label("a class of one row", way, &|k, _| f32::from(u8::from(k == 5))));
    }
    for case in &mut cases {
        if case.name.contains("1e20") {
            case.refused = Some("too large to be squared");
        } else if case.name.contains(" alone, ") && case.name.starts_with("class") {
            case.refused = Some("nothing to tell apart");
        }
        let shape = ["labels of scales", "labels about 1e15", "labels about 1e-30", "outputs of"];
        if shape.iter().any(|start| case.name.starts_with(start)) && case.recipe == "lm" {
            case.psnr = Some(100.0);
        }
    }
    // One column.
    let mut line = Data::new(200, ONE, |_| ());
    line.x = line.x.chunks(D).map(|row| row[0]).collect();
    for (recipe, what) in WAYS {
        cases.push(case("one column", &line, recipe, what, (2, 2)));
    }
    cases
}

#[test]
fn awkward_problems_are_learnt_or_refused() {
    let cases = table();
    let (mut failures, mut times) = (String::new(), Vec::new());
    for case in &cases {
        match catch_unwind(AssertUnwindSafe(|| case.check())) {
            Ok(took) => times.push((took, &case.name)),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map_or("", String::as_str);
                writeln!(failures, "== {}\n{text}", case.name).unwrap();
            }
        }
    }
    times.sort();
    let total: Duration = times.iter().map(|(took, _)| *took).sum();
    println!("{} runs, {total:?} of training; the slowest:", cases.len());
    times.iter().rev().take(8).for_each(|(took, name)| println!("  {took:?} {name}"));
    assert!(failures.is_empty(), "{failures}");
}

/// Files of other shapes than the model's, for networks of one output and of several.
#[test]
fn models_refuse_data_of_other_shapes() {
    for (outputs, columns) in [("", 1), ("--outputs 3", 3)] {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let generate = |rows: usize, inputs: usize, name: &str| {
            ok(
                at,
                &format!(
                    "generate planted --samples {rows} --inputs {inputs} --hidden 3 {outputs} --nnz 8 -o {name} -q"
                ),
            );
        };
        generate(200, 7, "p");
        generate(200, 9, "wide");
        generate(200, 5, "narrow");
        generate(199, 7, "short");
        ok(
            at,
            "train --data p/X.npy --labels p/y.npy --task regression --hidden 3 --nnz 8 -o m.tamis -q",
        );
        for (name, width) in [("wide", 9), ("narrow", 5)] {
            for line in [
                format!("eval m.tamis --data {name}/X.npy --labels {name}/y.npy"),
                format!("predict m.tamis --data {name}/X.npy -o o.npy"),
            ] {
                let error = fails(at, &line);
                for part in ["expected: 7".to_owned(), format!("got: {width}")] {
                    assert!(error.contains(&part), "{line}: no {part:?} in {error}");
                }
            }
        }
        for (data, labels) in [("p", "short"), ("short", "p")] {
            let error =
                fails(at, &format!("eval m.tamis --data {data}/X.npy --labels {labels}/y.npy"));
            assert!(error.contains("199") && error.contains("200"), "{error}");
        }
        // The labels as data, and the data as labels.
        let error = fails(at, "predict m.tamis --data p/y.npy -o o.npy");
        assert!(
            error.contains("expected: 7") && error.contains(&format!("got: {columns}")),
            "{error}"
        );
        let error = fails(at, "eval m.tamis --data p/X.npy --labels wide/X.npy");
        assert!(
            error.contains(&format!("expected: {columns} ")) && error.contains("got: 9 columns"),
            "{error}"
        );
        for wrong in ["p/X.npy", "p", "nothing.tamis"] {
            for line in [
                format!("inspect {wrong}"),
                format!("eval {wrong} --data p/X.npy --labels p/y.npy"),
                format!("predict {wrong} --data p/X.npy -o o.npy"),
            ] {
                let error = fails(at, &line);
                assert!(error.contains(wrong), "{line}: {error}");
            }
        }
    }
}
