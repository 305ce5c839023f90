//! Runs of anneal, paper and paper-safe that are ended and gone on with: the same bits and counters
//! as without a break on any number of threads, and nothing but a whole checkpoint of the same run
//! is taken.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use tamis::base::dims::Dims;
use tamis::base::rng::Rng;
use tamis::learn::iht::{Refine, Step};
use tamis::learn::train::{OneOutput, Rank, Refresh, Schedule, Trials};
use tamis::network::gates::Signs;
use tamis_host::base::Limits;
use tamis_host::data::{Problem, Task};
use tamis_host::data::{Values, digits, planted};
use tamis_host::operator::Stop;
use tamis_host::train::{
    AnnealOptions, CheckpointFile, CheckpointOptions, Details, LmOptions, Memory, OutputsOptions,
    PaperOptions, Start, checkpoint_file, train_with,
};
use tamis_host::{Budget, Options, Recipe, Result};

/// What a run leaves: all that must be the same, and what depends on its parts.
#[derive(Debug)]
struct Done {
    bits: (Vec<u8>, u64, u64, u64, Option<u64>, Option<&'static str>),
    resumed: u32,
    plan: u64,
    stopped: bool,
}

/// The same options with checkpoints in a file, all of them written.
fn kept(options: &Options, path: &Path) -> Options {
    let checkpoint = CheckpointOptions { every: Duration::ZERO, ..CheckpointOptions::resume(path) };
    Options { checkpoint: Some(checkpoint), ..options.clone() }
}

/// Runs for at most so many steps, from what is kept where there is such; the last state is kept in
/// any case.
fn run(problem: &Problem, options: &Options, most: u32) -> Result<Done> {
    let mut left = most;
    let done = train_with(problem.clone(), options, Start::Zero, &Stop::new(), |_| {
        left = left.saturating_sub(1);
        if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    let report = &done.report;
    let counts = match &report.details {
        Details::Anneal(anneal) => anneal.validation_loss.map(f64::to_bits),
        details => {
            let undone = if let Details::Outputs(outputs) = details { outputs.undone } else { 0 };
            Some(u64::from(report.epochs) << 32 | u64::from(report.trials * 1000 + undone))
        }
    };
    let (passes, loss) = (report.passes.to_bits(), report.loss.to_bits());
    Ok(Done {
        bits: (done.model.bytes().to_vec(), report.steps, passes, loss, counts, report.limit),
        resumed: report.resumed_steps,
        plan: report.total_bytes(),
        stopped: report.stopped,
    })
}

fn classes() -> Problem {
    let (data, labels) = digits::generate(300, 8, 3).unwrap();
    Problem { data, labels: labels.into_iter().map(f32::from).collect(), task: Task::Multiclass }
}

fn values(outputs: usize) -> Problem {
    let dims = Dims::new(240, 8, 3, 9);
    let (data, mut labels) = match outputs {
        1 => planted::network(dims, Signs::Positive, 5).map(|made| (made.data, made.labels)),
        _ => planted::factored(dims, outputs, 5).map(|made| (made.data, made.labels)),
    }
    .unwrap();
    let mut rng = Rng::new(5, 99);
    labels.iter_mut().for_each(|y| *y += 0.1 * rng.normal());
    Problem { data, labels, task: Task::Regression }
}

fn options(recipe: Recipe, hidden: usize, nnz: usize) -> Options {
    Options { recipe, hidden: vec![hidden], threads: 1, ..Options::new(Budget::nnz(nnz)) }
}

/// Of three columns or classes: three neurons.
fn outputs(outputs: OutputsOptions) -> Options {
    options(Recipe::Paper(PaperOptions { outputs, ..PaperOptions::default() }), 3, 12)
}

/// Of one column.
fn paper(schedule: Schedule<'static, OneOutput>) -> Options {
    options(Recipe::Paper(PaperOptions { schedule, ..PaperOptions::default() }), 3, 9)
}

/// Pinned weights by flat index, for 8 columns.
fn pinning(flat: &[usize], options: Options) -> Options {
    Options { pinned: flat.iter().map(|j| [j / 8, j % 8]).collect(), ..options }
}

const USUAL: OutputsOptions = OutputsOptions { epochs: 5, ..OutputsOptions::PUBLISHED };

/// All recipes of steps, on data that suit them.
fn runs() -> Vec<(Problem, Options)> {
    let usual = AnnealOptions::default();
    let anneal = |validation, start_factor, patience| {
        let params =
            tamis::learn::anneal::Params { epochs: 8, start_factor, patience, ..usual.params };
        options(
            Recipe::Anneal(AnnealOptions { params, least_steps: 0, validation, ..usual }),
            8,
            60,
        )
    };
    let schedule = |k: usize| Schedule {
        epochs: 4,
        batch: [0, 100][k % 2],
        trials: [Trials { count: 3, rows: 80 }, Trials::NONE][k / 2 % 2],
        head: OneOutput {
            refresh: [Refresh::Every(1), Refresh::Every(2)][k / 3],
            step: [Step::Normalised, Step::Theory { beta: 0.0 }][k % 2],
            refine: [Refine::PAPER, Refine::ConjugateGradient { steps: 3, tolerance: 1e-3 }]
                [k / 2 % 2],
            ..OneOutput::PAPER
        },
        ..PaperOptions::default().schedule
    };
    let pinned = |k: usize| [&[][..], &[1, 9]][k / 2 % 2];
    let long = OutputsOptions { step_size: Some(500.0), batch: 70, safe: true, ..USUAL };
    let exact = OutputsOptions { rank: Rank::Exact, batch: 100, safe: true, ..USUAL };
    let mut all = vec![
        (classes(), anneal(0.0, 3.0, 0)),
        (classes(), anneal(0.2, 1.0, 0)),
        (classes(), anneal(0.2, 4.0, 2)),
    ];
    all.extend((0..4).map(|k| (values(1), pinning(pinned(k), paper(schedule(k))))));
    all.extend([
        (values(3), outputs(OutputsOptions { batch: 70, ..USUAL })),
        (values(3), outputs(long)),
        (classes(), outputs(exact)),
        (values(3), pinning(&[1, 9], outputs(OutputsOptions { batch: 70, ..USUAL }))),
    ]);
    all
}

#[test]
fn interrupted_runs_match_uninterrupted_for_any_threads() {
    for (problem, options) in runs() {
        let whole = run(&problem, &options, u32::MAX).unwrap();
        assert_eq!(whole.resumed, 0);
        for most in [1, 3, 17] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("run");
            let mut ends = Vec::new();
            let rest = loop {
                let threads = 1 + ends.len() % 2;
                match run(&problem, &Options { threads, ..kept(&options, &path) }, most) {
                    // All that a safe run has reached yet was undone.
                    Err(error) => {
                        assert!(error.is_interrupted(), "{error}");
                        ends.push(ends.len() as u32 * most);
                    }
                    Ok(done) => {
                        ends.push(done.resumed);
                        if !done.stopped {
                            break done;
                        }
                    }
                }
            };
            assert_eq!(rest.bits, whole.bits, "{most} steps a part: {options:?}");
            let steps: Vec<u32> = (0..ends.len() as u32).map(|part| part * most).collect();
            assert!(ends.len() > 1 || most > 3);
            assert!(ends == steps || ends[..ends.len() - 1] == steps[..ends.len() - 1], "{ends:?}");
            // The file stays, and gives the same again.
            assert_eq!(run(&problem, &kept(&options, &path), u32::MAX).unwrap().bits, whole.bits);
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}

#[test]
fn a_limit_on_passes_counts_all_parts() {
    for (problem, options) in runs() {
        let whole = run(&problem, &options, u32::MAX).unwrap();
        let passes = f64::from_bits(whole.bits.2);
        let limited = |part: f64| {
            let limits = Limits { passes: Some(part * passes), time: None };
            Options { limits, ..options.clone() }
        };
        let bits =
            |done: Result<Done>| done.map(|done| done.bits).map_err(|error| error.to_string());
        let direct = [0.4, 0.7].map(|part| bits(run(&problem, &limited(part), u32::MAX)));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let part = |part| bits(run(&problem, &kept(&limited(part), &path), u32::MAX));
        assert_eq!(part(0.4), direct[0], "{options:?}");
        assert!(
            direct[0].as_ref().is_ok_and(|bits| bits.5 == Some("passes")) || problem.outputs() > 1
        );
        // Nothing is left of the first limit: it ends at once, with the same result.
        assert_eq!(part(0.4), direct[0], "{options:?}");
        assert_eq!(part(0.7), direct[1], "{options:?}");
        assert_eq!(part(2.0), Ok(whole.bits), "{options:?}");
    }
}

/// The last checkpoint of a run as it is stored, and its reader.
fn stored(problem: &Problem, options: &Options) -> (Vec<u8>, CheckpointFile, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let _: Result<Done> = run(problem, &kept(options, &path), 10);
    (std::fs::read(&path).unwrap(), checkpoint_file(&path, problem, options).unwrap(), folder)
}

#[test]
fn every_cut_and_every_changed_bit_is_refused() {
    for (problem, options) in [0, 2, 3, 8].map(|k| runs().swap_remove(k)) {
        let (bytes, keep, _folder) = stored(&problem, &options);
        keep.parse(&bytes).unwrap();
        for len in 0..bytes.len() {
            let error = keep.parse(&bytes[..len]).unwrap_err().to_string();
            assert!(
                error.contains("damaged") || (len < 8 && error.contains("not a checkpoint")),
                "{error}"
            );
        }
        let longer: Vec<u8> = bytes.iter().copied().chain([0]).collect();
        assert!(keep.parse(&longer).unwrap_err().to_string().contains("damaged"));
        for bit in (0..8 * bytes.len()).filter(|bit| *bit < 4096 || bit % 7 == 0) {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let error = keep.parse(&changed).unwrap_err().to_string();
            let expected = match bit / 8 {
                ..8 => "not a checkpoint",
                8..12 => "version",
                _ => "damaged",
            };
            assert!(error.contains(expected) && error.contains("help: "), "bit {bit}: {error}");
        }
    }
}

/// Words with a right checksum and any content: an error, or a run that ends.
#[test]
fn no_word_of_a_checkpoint_is_believed() {
    for (problem, options) in runs() {
        let (bytes, keep, folder) = stored(&problem, &options);
        let path = folder.path().join("run");
        let (mut refused, mut taken) = (0, 0);
        let is_outputs =
            matches!(options.recipe, Recipe::Paper(_)) && problem.has_several_outputs();
        let terms = if is_outputs { 25 } else { 27 };
        let first = 16 + 8 * terms;
        for at in (first..bytes.len()).step_by(4).filter(|at| *at < first + 120 || at % 157 == 0) {
            for word in [0, 1, 5, 1 << 20, u32::MAX / 8, u32::MAX - 1, u32::MAX, f32::NAN.to_bits()]
            {
                let mut changed = bytes.clone();
                changed[at..at + 4].copy_from_slice(&word.to_le_bytes());
                let sum = CheckpointFile::checksum(&changed);
                changed[12..16].copy_from_slice(&sum.to_le_bytes());
                std::fs::write(&path, &changed).unwrap();
                match keep.parse(&changed) {
                    Err(error) => {
                        assert!(error.to_string().contains("damaged"), "{at}, {word}: {error}");
                        refused += 1;
                    }
                    Ok(_) => {
                        taken += 1;
                        let _: Result<Done> = run(&problem, &kept(&options, &path), 3);
                    }
                }
            }
        }
        assert!(refused > 50 && taken > 20, "{refused} refused, {taken} taken: {options:?}");
    }
}

#[test]
fn run_checkpoint_of_other_recipe_names_the_difference() {
    let path = Path::new("never written");
    let refused_on = |bytes: &[u8], problem: &Problem, options: &Options, what: &str| {
        let file = checkpoint_file(path, problem, options).unwrap();
        let error = file.parse(bytes).unwrap_err().to_string();
        assert!(error.contains(what), "{what}: {error}");
    };
    let all = runs();
    let bytes = [0, 3, 7].map(|k| stored(&all[k].0, &all[k].1).0);
    let (problem, usual) = &all[0];
    let Recipe::Anneal(anneal) = usual.recipe else { unreachable!() };
    let refused = |options: &Options, what: &str| refused_on(&bytes[0], problem, options, what);
    let changed =
        |anneal: AnnealOptions| Options { recipe: Recipe::Anneal(anneal), ..usual.clone() };
    let params = anneal.params;
    for (what, params) in [
        ("expected: --epochs: 8", tamis::learn::anneal::Params { epochs: 9, ..params }),
        ("expected: --rate: 0.02", tamis::learn::anneal::Params { rate: 0.5, ..params }),
        ("expected: --drop: 0.3", tamis::learn::anneal::Params { drop: 0.4, ..params }),
        (
            "expected: first support (--start-factor or --ram): 3",
            tamis::learn::anneal::Params { start_factor: 2.0, ..params },
        ),
        ("expected: --patience: 0", tamis::learn::anneal::Params { patience: 4, ..params }),
    ] {
        refused(&changed(AnnealOptions { params, ..anneal }), what);
    }
    refused(&Options { seed: 4, ..usual.clone() }, "expected: --seed: 0");
    refused(&pinning(&[3], usual.clone()), "expected: weights of --must-keep: 0");
    refused(&changed(AnnealOptions { validation: 0.5, ..anneal }), "rows of the validation split");
    refused(&changed(AnnealOptions { batch: Some(50), ..anneal }), "--batch");
    refused(&Options { budget: Budget::nnz(61), ..usual.clone() }, "--nnz");
    refused(&Options { memory: Memory::Panel(1), ..usual.clone() }, "panel");
    let threads = Options { threads: 2, ..usual.clone() };
    checkpoint_file(path, problem, &threads).unwrap().parse(&bytes[0]).unwrap();
    let mut other = problem.clone();
    let Values::U8(pixels) = &mut other.data.values else { unreachable!() };
    pixels.swap(0, 27);
    pixels[1] ^= 1;
    refused_on(&bytes[0], &other, usual, "checksum of the samples");
    let mut other = problem.clone();
    let (k, l) = (0, other.labels.iter().position(|label| *label != other.labels[0]).unwrap());
    other.labels.swap(k, l);
    refused_on(&bytes[0], &other, usual, "checksum of the labels");

    let (problem, usual) = &all[3];
    let Recipe::Paper(PaperOptions { schedule, .. }) = usual.recipe else { unreachable!() };
    let refused = |schedule, what: &str| refused_on(&bytes[1], problem, &paper(schedule), what);
    let with = |head| Schedule { head, ..schedule };
    refused(with(OneOutput { signs: Signs::Balanced, ..schedule.head }), "--signs: positive");
    refused(Schedule { trials: Trials::NONE, ..schedule }, "--trials: 3");
    refused(with(OneOutput { step: Step::Fixed(0.5), ..schedule.head }), "--step: normalised");
    refused(with(OneOutput { refine: Refine::None, ..schedule.head }), "--refine: armijo");
    let pinned = |flat: &[usize]| pinning(flat, usual.clone());
    refused_on(&bytes[1], problem, &pinned(&[3]), "expected: weights of --must-keep: 0");
    // Another list of as many weights.
    let (kept, ..) = stored(problem, &pinned(&[1, 9]));
    refused_on(&kept, problem, &pinned(&[1, 10]), "checksum of the weights of --must-keep");
    checkpoint_file(path, problem, &pinned(&[1, 9])).unwrap().parse(&kept).unwrap();
    refused_on(&bytes[0], problem, usual, "one of recipe anneal");
    refused_on(&bytes[2], problem, usual, "as many outputs");
    let lm = options(Recipe::Lm(LmOptions::default()), 3, 9);
    refused_on(&bytes[1], problem, &lm, "one of recipe paper");

    let (problem, usual) = &all[7];
    let Recipe::Paper(PaperOptions { outputs: steps, .. }) = usual.recipe else { unreachable!() };
    let refused = |options: &Options, what: &str| refused_on(&bytes[2], problem, options, what);
    refused(&outputs(OutputsOptions { safe: true, ..steps }), "--recipe: paper");
    refused(&pinning(&[2], usual.clone()), "weights of --must-keep");
    refused(&outputs(OutputsOptions { rank: Rank::Exact, ..steps }), "--rank: sketch");
    refused(&outputs(OutputsOptions { step_size: Some(0.5), ..steps }), "length of a step");
    // A checkpoint that is given to another recipe than it was read for.
    let kept = checkpoint_file(path, problem, usual).unwrap().parse(&bytes[2]).unwrap();
    let (problem, usual) = &all[0];
    let start = Start::Checkpoint(&kept);
    let go_on = |_: &_| ControlFlow::Continue(());
    let error = train_with(problem.clone(), usual, start, &Stop::new(), go_on).unwrap_err();
    assert!(error.to_string().contains("one of recipe paper"), "{error}");
}

#[test]
fn the_plan_counts_two_of_the_longest_checkpoints() {
    for (problem, options) in runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let with = kept(&options, &path);
        let mut longest = 0;
        let mut plan = |options: &Options, most| {
            let done = run(&problem, options, most);
            longest = longest.max(std::fs::metadata(&path).map_or(0, |data| data.len() as usize));
            done.map_or(0, |done| done.plan as usize)
        };
        plan(&with, 1);
        let most = (plan(&with, u32::MAX) - plan(&options, u32::MAX)) / 2;
        assert!(longest <= most && longest * 2 > most, "{longest} of {most}: {options:?}");
    }
}
