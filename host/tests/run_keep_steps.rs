//! Runs of anneal, paper and paper-safe that are ended and gone on with: the same bits and counters as without a break on any
//! number of threads, and nothing but a whole checkpoint of the same run is taken.

use std::path::Path;

use tamis::dims::Dims;
use tamis::gates::Signs;
use tamis::iht::{self, Refine, Step};
use tamis::rng::Rng;
use tamis::train::{Rank, Refresh, Schedule, Trials};
use tamis_host::Result;
use tamis_host::data::{Values, digits, planted};
use tamis_host::operator::Stop;
use tamis_host::run::{
    self, AnnealOptions, Keep, Keeps, Kept, Limits, Memory, Options, OutputsOptions, Problem, RecoverOptions,
    Size, Task,
};

/// Settings of a recipe of steps.
#[derive(Debug, Clone, Copy)]
enum How {
    Anneal(AnnealOptions<'static>),
    Paper(Options<'static>),
    Outputs(OutputsOptions<'static>),
}

/// What a run leaves: all that must be the same, and what depends on its parts.
#[derive(Debug)]
struct Done {
    bits: (Vec<u8>, u32, u64, u64, Option<u64>, Option<&'static str>),
    resumed: u32,
    plan: u64,
    stopped: bool,
}

impl How {
    fn keep(&self, path: &Path, problem: &Problem) -> Result<Keep> {
        fn new(path: &Path, problem: &Problem, options: &impl Keeps) -> Result<Keep> {
            Keep::new(path, problem, options)
        }
        match self {
            Self::Anneal(options) => new(path, problem, options),
            Self::Paper(options) => new(path, problem, options),
            Self::Outputs(options) => new(path, problem, options),
        }
    }

    fn with(self, threads: usize, limits: Limits, checkpoints: bool) -> Self {
        match self {
            Self::Anneal(options) => Self::Anneal(AnnealOptions { threads, limits, checkpoints, ..options }),
            Self::Paper(options) => Self::Paper(Options { threads, limits, checkpoints, ..options }),
            Self::Outputs(options) => {
                Self::Outputs(OutputsOptions { threads, limits, checkpoints, ..options })
            }
        }
    }

    /// Runs for at most so many steps, from what is kept where there is such; the last state is kept in any case.
    fn run(&self, problem: &Problem, mut keep: Option<&mut Keep>, most: u32) -> Result<Done> {
        let done = self.train(problem, keep.as_deref_mut(), most);
        keep.map_or(Ok(true), Keep::flush)?;
        done
    }

    fn train(&self, problem: &Problem, mut keep: Option<&mut Keep>, most: u32) -> Result<Done> {
        let kept: Option<Kept> = keep.as_ref().and_then(|keep| keep.load().unwrap());
        let (problem, stop, mut left) = (problem.clone(), Stop::new(), most);
        macro_rules! observe {
            () => {
                |progress| {
                    if let Some(keep) = &mut keep {
                        keep.see(progress).unwrap();
                    }
                    left = left.saturating_sub(1);
                    left > 0
                }
            };
        }
        let outcome = match (self, &kept) {
            (Self::Anneal(options), kept) => {
                let done = match kept {
                    None => run::anneal(problem, options, &stop, observe!()),
                    Some(kept) => run::resume_anneal(problem, options, kept, &stop, observe!()),
                }?;
                let report = &done.report;
                let (steps, passes, loss) = (report.steps, report.passes.to_bits(), report.loss.to_bits());
                let held = report.validation_loss.map(f64::to_bits);
                return Ok(Done {
                    bits: (done.model, steps, passes, loss, held, report.limit),
                    resumed: report.resumed_steps,
                    plan: report.plan.total_bytes(),
                    stopped: report.stopped,
                });
            }
            (Self::Paper(options), None) => run::train(problem, options, &stop, observe!()),
            (Self::Paper(options), Some(kept)) => {
                run::resume_train(problem, options, kept, &stop, observe!())
            }
            (Self::Outputs(options), None) => run::train_outputs(problem, options, &stop, observe!()),
            (Self::Outputs(options), Some(kept)) => {
                run::resume_outputs(problem, options, kept, &stop, observe!())
            }
        }?;
        let report = &outcome.report;
        let undone = report.published.map_or(0, |steps| steps.undone);
        let (passes, loss) = (report.passes.to_bits(), report.loss.to_bits());
        let counts = Some(u64::from(report.epochs) << 32 | u64::from(report.trials * 1000 + undone));
        Ok(Done {
            bits: (outcome.model, report.steps, passes, loss, counts, report.limit),
            resumed: report.resumed_steps,
            plan: report.plan.total_bytes(),
            stopped: report.stopped,
        })
    }
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

/// All recipes of steps, on data that suit them.
fn runs() -> Vec<(Problem, How)> {
    let anneal = AnnealOptions::new(8, Size::Nonzeros(60));
    let anneal = |validation, start_factor, patience| {
        let params = tamis::anneal::Params { epochs: 8, start_factor, patience, ..anneal.params };
        How::Anneal(AnnealOptions { params, least_steps: 0, validation, threads: 1, ..anneal })
    };
    let paper = Options { threads: 1, ..Options::new(3, Size::Nonzeros(9)) };
    let schedule = |k: usize| Schedule {
        epochs: 4,
        batch: [0, 100][k % 2],
        trials: [Trials { count: 3, rows: 80 }, Trials::NONE][k / 2 % 2],
        refresh: [Refresh::Every(1), Refresh::Every(2)][k / 3],
        params: iht::Params {
            step: [Step::Normalised, Step::Theory { beta: 0.0 }][k % 2],
            refine: [Refine::PAPER, Refine::ConjugateGradient { steps: 3, tolerance: 1e-3 }][k / 2 % 2],
            must_keep: [&[][..], &[1, 9]][k / 2 % 2],
        },
        ..paper.schedule
    };
    let outputs = OutputsOptions { threads: 1, epochs: 5, ..OutputsOptions::new(3, Size::Nonzeros(12)) };
    let mut all = vec![
        (classes(), anneal(0.0, 3.0, 0)),
        (classes(), anneal(0.2, 1.0, 0)),
        (classes(), anneal(0.2, 4.0, 2)),
    ];
    all.extend((0..4).map(|k| (values(1), How::Paper(Options { schedule: schedule(k), ..paper }))));
    all.extend([
        (values(3), How::Outputs(OutputsOptions { batch: 70, ..outputs })),
        (
            values(3),
            How::Outputs(OutputsOptions { step_size: Some(500.0), batch: 70, safe: true, ..outputs }),
        ),
        (classes(), How::Outputs(OutputsOptions { rank: Rank::Exact, batch: 100, safe: true, ..outputs })),
        (values(3), How::Outputs(OutputsOptions { batch: 70, ..outputs }.keeping(&[1, 9]))),
    ]);
    all
}

#[test]
fn runs_in_parts_on_one_thread_and_two_give_what_they_give_in_one() {
    for (problem, how) in runs() {
        let whole = how.run(&problem, None, u32::MAX).unwrap();
        assert_eq!(whole.resumed, 0);
        for most in [1, 3, 17] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("run");
            let mut ends = Vec::new();
            let rest = loop {
                let how = how.with(1 + ends.len() % 2, Limits::NONE, true);
                let mut keep = how.keep(&path, &problem).unwrap();
                match how.run(&problem, Some(&mut keep), most) {
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
            assert_eq!(rest.bits, whole.bits, "{most} steps a part: {how:?}");
            let steps: Vec<u32> = (0..ends.len() as u32).map(|part| part * most).collect();
            assert!(ends.len() > 1 || most > 3);
            assert!(ends == steps || ends[..ends.len() - 1] == steps[..ends.len() - 1], "{ends:?}");
            // The file stays, and gives the same again.
            let mut keep = how.keep(&path, &problem).unwrap();
            assert_eq!(how.run(&problem, Some(&mut keep), u32::MAX).unwrap().bits, whole.bits);
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}

#[test]
fn a_limit_on_passes_counts_all_parts() {
    for (problem, how) in runs() {
        let whole = how.run(&problem, None, u32::MAX).unwrap();
        let passes = f64::from_bits(whole.bits.2);
        let limited = |part: f64| how.with(1, Limits { passes: Some(part * passes), time: None }, true);
        let bits = |done: Result<Done>| done.map(|done| done.bits).map_err(|error| error.to_string());
        let direct = [0.4, 0.7].map(|part| bits(limited(part).run(&problem, None, u32::MAX)));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let part = |part| {
            let how = limited(part);
            bits(how.run(&problem, Some(&mut how.keep(&path, &problem).unwrap()), u32::MAX))
        };
        assert_eq!(part(0.4), direct[0], "{how:?}");
        assert!(direct[0].as_ref().is_ok_and(|bits| bits.5 == Some("passes")) || problem.outputs() > 1);
        // Nothing is left of the first limit: it ends at once, with the same result.
        assert_eq!(part(0.4), direct[0], "{how:?}");
        assert_eq!(part(0.7), direct[1], "{how:?}");
        assert_eq!(part(2.0), Ok(whole.bits), "{how:?}");
    }
}

/// The last checkpoint of a run as it is stored, and its keeper.
fn stored(problem: &Problem, how: &How) -> (Vec<u8>, Keep, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut keep = how.keep(&folder.path().join("run"), problem).unwrap();
    let _: Result<Done> = how.run(problem, Some(&mut keep), 10);
    (keep.bytes().to_vec(), keep, folder)
}

#[test]
fn every_cut_and_every_changed_bit_is_refused() {
    for (problem, how) in [0, 2, 3, 8].map(|k| runs().swap_remove(k)) {
        let (bytes, keep, _folder) = stored(&problem, &how);
        keep.parse(&bytes).unwrap();
        for len in 0..bytes.len() {
            let error = keep.parse(&bytes[..len]).unwrap_err().to_string();
            assert!(error.contains("damaged") || (len < 8 && error.contains("not a checkpoint")), "{error}");
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
    for (problem, how) in runs() {
        let (bytes, mut keep, folder) = stored(&problem, &how);
        let (mut refused, mut taken) = (0, 0);
        let terms = match how {
            How::Outputs(_) => 22,
            _ => 27,
        };
        let first = 16 + 8 * terms;
        for at in (first..bytes.len()).step_by(4).filter(|at| *at < first + 120 || at % 61 == 0) {
            for word in [0, 1, 5, 1 << 20, u32::MAX / 8, u32::MAX - 1, u32::MAX, f32::NAN.to_bits()] {
                let mut changed = bytes.clone();
                changed[at..at + 4].copy_from_slice(&word.to_le_bytes());
                let sum = Keep::checksum(&changed);
                changed[12..16].copy_from_slice(&sum.to_le_bytes());
                std::fs::write(folder.path().join("run"), &changed).unwrap();
                match keep.parse(&changed) {
                    Err(error) => {
                        assert!(error.to_string().contains("damaged"), "{at}, {word}: {error}");
                        refused += 1;
                    }
                    Ok(_) => {
                        taken += 1;
                        let _: Result<Done> = how.run(&problem, Some(&mut keep), 3);
                    }
                }
            }
        }
        assert!(refused > 50 && taken > 20, "{refused} refused, {taken} taken: {how:?}");
    }
}

#[test]
fn a_run_on_other_data_or_of_another_recipe_is_told_what_differs() {
    let refused = |bytes: &[u8], keep: Result<Keep>, what: &str| {
        let error = keep.unwrap().parse(bytes).unwrap_err().to_string();
        assert!(error.contains(what), "{what}: {error}");
    };
    let path = Path::new("never written");
    let all = runs();
    let bytes = [0, 3, 7].map(|k| stored(&all[k].0, &all[k].1).0);
    let (problem, How::Anneal(options)) = &all[0] else { unreachable!() };
    let anneal = |options: &AnnealOptions<'_>| Keep::new(path, problem, options);
    let params = options.params;
    for (what, params) in [
        ("expected: --epochs: 8", tamis::anneal::Params { epochs: 9, ..params }),
        ("expected: --rate: 0.02", tamis::anneal::Params { rate: 0.5, ..params }),
        ("expected: --drop: 0.3", tamis::anneal::Params { drop: 0.4, ..params }),
        (
            "expected: first support (--start-factor or --ram): 3",
            tamis::anneal::Params { start_factor: 2.0, ..params },
        ),
        ("expected: --patience: 0", tamis::anneal::Params { patience: 4, ..params }),
        ("expected: --seed: 0", tamis::anneal::Params { seed: 4, ..params }),
        ("expected: weights of --must-keep: 0", tamis::anneal::Params { must_keep: &[3], ..params }),
    ] {
        refused(&bytes[0], anneal(&AnnealOptions { params, ..*options }), what);
    }
    refused(&bytes[0], anneal(&AnnealOptions { validation: 0.5, ..*options }), "rows held out");
    refused(&bytes[0], anneal(&AnnealOptions { batch: Some(50), ..*options }), "--batch");
    refused(&bytes[0], anneal(&AnnealOptions { size: Size::Nonzeros(61), ..*options }), "--nnz");
    refused(&bytes[0], anneal(&AnnealOptions { memory: Memory::Panel(1), ..*options }), "panel");
    anneal(&AnnealOptions { threads: 2, ..*options }).unwrap().parse(&bytes[0]).unwrap();
    let mut other = problem.clone();
    let Values::U8(pixels) = &mut other.data.values else { unreachable!() };
    pixels.swap(0, 27);
    pixels[1] ^= 1;
    refused(&bytes[0], Keep::new(path, &other, options), "checksum of the samples");
    let mut other = problem.clone();
    let (k, l) = (0, other.labels.iter().position(|label| *label != other.labels[0]).unwrap());
    other.labels.swap(k, l);
    refused(&bytes[0], Keep::new(path, &other, options), "checksum of the labels");

    let (problem, How::Paper(options)) = &all[3] else { unreachable!() };
    let paper = |schedule| Keep::new(path, problem, &Options { schedule, ..*options });
    let schedule = options.schedule;
    refused(&bytes[1], paper(Schedule { signs: Signs::Balanced, ..schedule }), "--signs: positive");
    refused(&bytes[1], paper(Schedule { trials: Trials::NONE, ..schedule }), "--trials: 3");
    let fixed = iht::Params { step: Step::Fixed(0.5), ..schedule.params };
    refused(&bytes[1], paper(Schedule { params: fixed, ..schedule }), "--step: normalised");
    let none = iht::Params { refine: Refine::None, ..schedule.params };
    refused(&bytes[1], paper(Schedule { params: none, ..schedule }), "--refine: armijo");
    let keeping = |must_keep| Schedule { params: iht::Params { must_keep, ..schedule.params }, ..schedule };
    refused(&bytes[1], paper(keeping(&[3])), "expected: weights of --must-keep: 0");
    // Another list of as many weights.
    let (kept, ..) = stored(problem, &How::Paper(options.keeping(&[1, 9])));
    refused(&kept, paper(keeping(&[1, 10])), "checksum of the weights of --must-keep");
    paper(keeping(&[1, 9])).unwrap().parse(&kept).unwrap();
    refused(&bytes[0], paper(schedule), "one of recipe anneal");
    refused(&bytes[2], paper(schedule), "as many outputs");
    let lm = RecoverOptions::new(3, Size::Nonzeros(9));
    refused(&bytes[1], Keep::new(path, problem, &lm), "one of recipe paper");

    let (problem, How::Outputs(options)) = &all[7] else { unreachable!() };
    let outputs = |options: OutputsOptions<'_>| Keep::new(path, problem, &options);
    refused(&bytes[2], outputs(OutputsOptions { safe: true, ..*options }), "--recipe: paper");
    refused(&bytes[2], outputs(options.keeping(&[2])), "weights of --must-keep");
    refused(&bytes[2], outputs(OutputsOptions { rank: Rank::Exact, ..*options }), "--rank: sketch");
    refused(&bytes[2], outputs(OutputsOptions { step_size: Some(0.5), ..*options }), "length of a step");
    // A checkpoint that is given to another recipe than it was read for.
    let kept = outputs(*options).unwrap().parse(&bytes[2]).unwrap();
    let (problem, How::Anneal(options)) = &all[0] else { unreachable!() };
    let error = run::resume_anneal(problem.clone(), options, &kept, &Stop::new(), |_| true).unwrap_err();
    assert!(error.to_string().contains("one of recipe paper"), "{error}");
}

#[test]
fn the_plan_counts_two_of_the_longest_checkpoints() {
    for (problem, how) in runs() {
        let folder = tempfile::tempdir().unwrap();
        let plan = |checkpoints| {
            how.with(1, Limits::NONE, checkpoints).run(&problem, None, u32::MAX).unwrap().plan as usize
        };
        let most = (plan(true) - plan(false)) / 2;
        let mut keep = how.keep(&folder.path().join("run"), &problem).unwrap();
        let mut longest = 0;
        for steps in [1, u32::MAX] {
            let _: Result<Done> = how.run(&problem, Some(&mut keep), steps);
            longest = longest.max(keep.bytes().len());
        }
        assert!(longest <= most && longest * 2 > most, "{longest} of {most}: {how:?}");
    }
}
