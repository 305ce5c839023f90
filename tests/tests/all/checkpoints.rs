//! Runs of `anneal` and `train` that are cut after any step and gone on with from their checkpoint:
//! the same bits and counts as without a break, on the reference operator and on the host's with
//! one thread and two; and nothing else is taken.

use tamis::Error;
use tamis::base::budget::gated_words;
use tamis::base::dims::Dims;
use tamis::base::rng::Rng;
use tamis::data::samples::Rows;
use tamis::learn::anneal::{self, Params};
use tamis::learn::iht::{Refine, Step};
use tamis::learn::loss::{Classes, Labels};
use tamis::learn::start::{Start, continue_if};
use tamis::learn::train::{
    self, OneOutput, Rank, Refresh, Schedule, SeveralOutputs, Standin, Trials,
};
use tamis::network::gates::{Empty, Signs};
use tamis::network::net::{Head, Network, Shape};
use tamis::network::weights::Weights;
use tamis::operator::factored::Factored;
use tamis::operator::gated::Gated;
use tamis::operator::machine::Host;
use tamis_host::data::{Matrix, Values};
use tamis_host::operator::{Blocked, Layout};

const N: usize = 60;
const D: usize = 6;
const M: usize = 5;
const C: usize = 3;

/// Noisy rows, and labels that two neurons explain in part.
struct Data {
    x: Vec<f32>,
    y: Vec<f32>,
    several: Vec<f32>,
    classes: Vec<u16>,
}

impl Data {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed, 7);
        let x: Vec<f32> = (0..N * D).map(|_| rng.normal()).collect();
        let rows = || x.chunks(D);
        let y: Vec<f32> = rows()
            .map(|x| (2.0 * x[1] - x[3]).max(0.0) + 0.5 * x[4].max(0.0) + 0.1 * x[0])
            .collect();
        let several = rows()
            .flat_map(|x| [x[0].max(0.0), (x[1] - x[2]).max(0.0) + 0.2 * x[5], x[3].abs()])
            .collect();
        let classes = rows().map(|x| if x[1] > x[3] { 2 } else { u16::from(x[0] > 0.2) }).collect();
        Self { x, y, several, classes }
    }

    /// The reference operator, and the host's on so many threads.
    fn on<T: Send>(&self, threads: usize, work: impl FnOnce(&mut dyn Any<T>) -> T + Send) -> T {
        if threads == 0 {
            let mut memory = vec![0.0; gated_words(D, M)];
            let mut sensing =
                Gated::new(Rows::new(&self.x, D).unwrap(), M, 2, &mut memory).unwrap();
            return work(&mut Runs(&mut sensing, self));
        }
        let data = Matrix::new(N, D, Values::F32(self.x.clone())).unwrap();
        let layout = Layout { tile: 16, panel: 3, hold: false, gram: 0, ..Layout::new(1, 1) };
        let mut sensing = Blocked::new(data, M, M * (D + C), layout).unwrap().with_outputs(C);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| work(&mut Runs(&mut sensing, self)))
    }
}

/// Hides which operator it is.
trait Any<T> {
    fn run(
        &mut self,
        how: &How,
        from: Option<&Kept>,
        observe: &mut Observe<'_>,
    ) -> Result<Done, Error>;
    fn _mark(&self, _: &T) {}
}

type Observe<'o> = dyn FnMut(u32, Option<Kept>) -> bool + 'o;

struct Runs<'d, S>(&'d mut S, &'d Data);

/// A recipe and its settings.
#[derive(Debug, Clone)]
enum How {
    Anneal(Params<'static>, usize),
    One(Schedule<'static, OneOutput>, usize),
    Several(Schedule<'static, SeveralOutputs>, usize, bool),
}

/// A network in memory of its own.
#[derive(Debug, Clone, PartialEq)]
struct Sides {
    w: (Vec<u32>, Vec<f32>),
    wt: (Vec<u32>, Vec<f32>),
    head: Head<usize>,
}

impl Sides {
    fn of(net: Network<'_>) -> Self {
        let side = |side: Weights<'_>| (side.index().to_vec(), side.value().to_vec());
        Self { w: side(net.w()), wt: side(net.wt()), head: net.shape().head }
    }

    fn net(&self) -> Network<'_> {
        let w = Weights::new(D, M, &self.w.0, &self.w.1).unwrap();
        match self.head {
            Head::Signs(signs) => Network::signed(w, signs),
            Head::Weights(outputs) => {
                Network::new(w, Weights::new(outputs, M, &self.wt.0, &self.wt.1).unwrap()).unwrap()
            }
        }
    }
}

/// A checkpoint in memory of its own: words, networks, vectors.
#[derive(Debug, Clone)]
struct Kept {
    words: Vec<u32>,
    nets: [Sides; 2],
    floats: Vec<Vec<f32>>,
}

/// All that must be the same.
#[derive(Debug, Clone, PartialEq)]
struct Done {
    net: Sides,
    info: String,
}

fn keep(at: anneal::Checkpoint<'_>) -> Kept {
    Kept {
        words: at.state.to_words().to_vec(),
        nets: [Sides::of(at.net), Sides::of(at.best)],
        floats: vec![at.mean.to_vec(), at.square.to_vec()],
    }
}

fn keep_train(checkpoint: Option<train::Checkpoint<'_>>) -> Option<Kept> {
    checkpoint.map(|at| Kept {
        words: at.state.to_words().to_vec(),
        nets: [Sides::of(at.net), Sides::of(at.held)],
        floats: vec![at.sketch.to_vec()],
    })
}

impl Kept {
    fn train(&self) -> train::Checkpoint<'_> {
        let [net, held] = self.nets.each_ref().map(Sides::net);
        let state = train::State::from_words(&self.words[..].try_into().unwrap()).unwrap();
        train::Checkpoint { state, net, held, sketch: &self.floats[0] }
    }

    fn anneal(&self) -> anneal::Checkpoint<'_> {
        let [net, best] = self.nets.each_ref().map(Sides::net);
        let state = anneal::State::from_words(&self.words[..].try_into().unwrap()).unwrap();
        anneal::Checkpoint { state, net, best, mean: &self.floats[0], square: &self.floats[1] }
    }
}

impl<S: Factored<Source = std::convert::Infallible, Machine = Host>, T> Any<T> for Runs<'_, S> {
    fn run(
        &mut self,
        how: &How,
        from: Option<&Kept>,
        observe: &mut Observe<'_>,
    ) -> Result<Done, Error> {
        let Self(sensing, data) = self;
        match how {
            How::Anneal(params, s) => {
                let mut budget = params.budget(Dims::new(N, D, M, *s), C, sensing.panel(), 0);
                budget.scratch = sensing.net_scratch(budget.batch);
                // What an earlier run has left must not matter.
                let mut memory = vec![0x7f80_0001; budget.words()];
                let told = |progress: &anneal::Progress<'_>| {
                    continue_if(observe(progress.step, Some(keep(progress.checkpoint))))
                };
                let from = from.map(Kept::anneal);
                let start = from.as_ref().map_or(Start::Zero, Start::Checkpoint);
                let (classes, memory) = (Classes::new(&data.classes, C), &mut memory);
                let done = anneal::run(*sensing, classes, *s, start, params, memory, told)?;
                Ok(Done { net: Sides::of(done.network), info: format!("{:?}", done.info) })
            }
            How::One(schedule, s) => {
                let mut budget = schedule.budget(Dims::new(N, D, M, *s), sensing.panel(), 0);
                budget.scratch = sensing.scratch(budget.batch);
                let mut memory = vec![0x7f80_0001; budget.words()];
                let told = |progress: &train::Progress<'_>| {
                    continue_if(observe(progress.step, keep_train(progress.checkpoint)))
                };
                let from = from.map(Kept::train);
                let start = from.as_ref().map_or(Start::Zero, Start::Checkpoint);
                let (labels, memory) = (Labels::values(&data.y), &mut memory);
                let done = train::run(*sensing, labels, *s, start, schedule, memory, told)?;
                Ok(Done { net: Sides::of(done.network), info: format!("{:?}", done.info) })
            }
            How::Several(schedule, s, classes) => {
                let goal = if *classes {
                    Labels::classes(&data.classes, C)
                } else {
                    Labels::values(&data.several)
                };
                let mut budget = schedule.budget(Dims::new(N, D, M, *s), C, sensing.panel(), 0);
                budget.scratch = sensing.net_scratch(budget.batch);
                let mut memory = vec![0x7f80_0001; budget.words()];
                let told = |progress: &train::Progress<'_>| {
                    continue_if(observe(progress.step, keep_train(progress.checkpoint)))
                };
                let from = from.map(Kept::train);
                let start = from.as_ref().map_or(Start::Zero, Start::Checkpoint);
                let done = train::run(*sensing, goal, *s, start, schedule, &mut memory, told)?;
                Ok(Done { net: Sides::of(done.network), info: format!("{:?}", done.info) })
            }
        }
    }
}

/// All checkpoints of a run, and what it gives.
fn whole(data: &Data, threads: usize, how: &How) -> (Vec<(u32, Kept)>, Done) {
    let mut kept = Vec::new();
    let done = data.on(threads, |runs: &mut dyn Any<_>| {
        let done = runs.run(how, None, &mut |step, at| {
            kept.push((step, at.expect("a checkpoint after every step")));
            true
        });
        (done.unwrap(), std::mem::take(&mut kept))
    });
    (done.1, done.0)
}

/// Ends a run at every step, goes on, ends it again a few steps later or not at all, and goes on.
fn check(data: &Data, threads: usize, how: &How) -> usize {
    let (kept, whole) = whole(data, threads, how);
    for (step, at) in &kept {
        let (mut seen, mut later) = (Vec::new(), None);
        let (rest, again) = data.on(threads, |runs: &mut dyn Any<_>| {
            let rest = runs.run(how, Some(at), &mut |step, at| {
                seen.push(step);
                if seen.len() == 4 {
                    later = at;
                }
                true
            });
            let again = later.as_ref().map(|at| runs.run(how, Some(at), &mut |_, _| true).unwrap());
            (rest.unwrap(), again)
        });
        assert_eq!(rest, whole, "{threads} threads, from step {step}: {how:?}");
        assert!(
            again.is_none_or(|again| again == whole),
            "{threads} threads, twice from step {step}: {how:?}"
        );
        assert!(seen.iter().copied().eq(*step..=kept.len() as u32), "{step}: {seen:?}");
        // Ended at the same step, the result is that of a run that was ended there.
        let ended = data.on(threads, |runs: &mut dyn Any<_>| {
            let direct = runs.run(how, None, &mut |now, _| now < *step).unwrap();
            (direct, runs.run(how, Some(at), &mut |_, _| false).unwrap())
        });
        assert_eq!(ended.0, ended.1, "{threads} threads, ended at step {step}: {how:?}");
    }
    kept.len()
}

fn anneals() -> Vec<How> {
    let usual = Params { epochs: 12, batch: 16, growth_rows: 20, drop: 0.5, ..Params::DEFAULT };
    let held = Params { validation: 12, ..usual };
    vec![
        How::Anneal(Params { start_factor: 1.0, ..usual }, 12),
        How::Anneal(Params { start_factor: 3.0, ..usual }, 10),
        How::Anneal(Params { start_factor: 1.0, seed: 1, ..held }, 12),
        How::Anneal(Params { start_factor: 2.5, seed: 2, ..held }, 8),
        How::Anneal(
            Params { start_factor: 2.0, rate: 0.5, patience: 1, settle: 0.3, shrink: 0.2, ..held },
            10,
        ),
        How::Anneal(Params { epochs: 6, batch: 0, ..held }, 9),
        // The support still changes after it has shrunk.
        How::Anneal(Params { start_factor: 2.0, drop: 0.6, shrink: 0.2, settle: 0.95, ..held }, 16),
        How::Anneal(Params { start_factor: 2.5, must_keep: &[0, 17, 18], ..held }, 8),
        How::Anneal(Params { start_factor: 1.0, drop: 1.0, must_keep: &[4], ..usual }, 6),
    ]
}

fn ones() -> Vec<How> {
    let steps = [Step::Normalised, Step::Fixed(0.3), Step::Theory { beta: 3.0 }];
    let refines =
        [Refine::None, Refine::PAPER, Refine::ConjugateGradient { steps: 3, tolerance: 1e-3 }];
    let refreshes = [Refresh::Every(1), Refresh::Every(3), Refresh::Never];
    let schedule = |k: usize| Schedule {
        epochs: 3,
        batch: [0, 13][k % 2],
        strip: [0, 0, 9][k % 3],
        trials: [Trials { count: 3, rows: 20 }, Trials::NONE, Trials { count: 4, rows: 30 }]
            [k / 2 % 3],
        seed: k as u64,
        must_keep: [&[][..], &[0, 17]][k / 2 % 2],
        head: OneOutput {
            convex_epochs: 1,
            refresh: refreshes[k / 3 % 3],
            signs: [Signs::Positive, Signs::Balanced][k / 2 % 2],
            empty: [Empty::Freeze, Empty::Open, Empty::Reseed][k / 4 % 3],
            step: steps[k % 3],
            refine: refines[k / 3 % 3],
        },
    };
    (0..12).map(|k| How::One(schedule(k), 4)).collect()
}

fn severals() -> Vec<How> {
    let how = |k: usize, step_size: f32| {
        let schedule = Schedule {
            epochs: 5,
            batch: [0, 17][k % 2],
            strip: [0, 11][k / 2 % 2],
            trials: [Trials::NONE, Trials { count: 3, rows: 20 }, Trials { count: 4, rows: 99 }]
                [k / 2 % 3],
            seed: k as u64,
            must_keep: [&[][..], &[0, 17, 18]][k.div_ceil(2) % 2],
            head: SeveralOutputs {
                step_size,
                rank: [Rank::Exact, Rank::Sketch { decay: 1.0 }, Rank::Sketch { decay: 0.5 }]
                    [k % 3],
                standin: [Standin::FirstEpoch, Standin::EveryEpoch][k / 3 % 2],
                convex_epochs: [1, 0][k / 2 % 2],
                refresh: [Refresh::Every(2), Refresh::Never, Refresh::Every(1)]
                    [(k / 2 + k % 2) % 3],
                keep_standins: !k.is_multiple_of(3),
                safe: false,
            },
        };
        let schedule = if (k / 2).is_multiple_of(2) { schedule.safe() } else { schedule };
        How::Several(schedule, 9, k % 4 == 1)
    };
    let mut all: Vec<How> = (0..12).map(|k| how(k, 0.05)).collect();
    // Steps that diverge and are undone.
    all.extend([how(0, 30.0), how(1, 300.0)]);
    all
}

#[test]
fn a_run_cut_anywhere_resumes_bit_identically() {
    let data = Data::new(1);
    let mut steps = 0;
    for how in anneals().iter().chain(&ones()).chain(&severals()) {
        for threads in 0..3 {
            steps += check(&data, threads, how);
        }
    }
    assert!(steps > 1000, "{steps} steps were cut after");
}

#[test]
fn interruptions_cover_every_phase_of_a_run() {
    let data = Data::new(1);
    let (mut phases, mut undone, mut best) = ([[false; 3]; 2], false, [false; 2]);
    for how in ones().iter().chain(&severals()) {
        let several = usize::from(matches!(how, How::Several(..)));
        for (_, kept) in whole(&data, 0, how).0 {
            phases[several][kept.words[0] as usize] = true;
            undone |= kept.words[15] > 0;
        }
    }
    for how in anneals() {
        for (_, kept) in whole(&data, 0, &how).0 {
            if kept.nets[1] != Sides::of(Network::empty(Shape::weighted(D, M, C))) {
                // On the settled support, and on one that still changes.
                best[usize::from(kept.nets[1].w.0 != kept.nets[0].w.0)] = true;
            }
        }
    }
    assert_eq!((phases, undone, best), ([[true; 3]; 2], true, [true; 2]));
}

/// Held-out loss of what a run gives that is ended after every step, where there is one.
#[test]
fn an_ended_annealed_run_gives_the_validation_best() {
    let data = Data::new(1);
    // A rate so large that iterates get worse.
    let usual = Params {
        epochs: 20,
        batch: 16,
        validation: 12,
        growth_rows: 20,
        rate: 0.4,
        ..Params::DEFAULT
    };
    let loss = |net: &Sides| {
        let mut memory = vec![0.0; gated_words(D, M)];
        let mut sensing = Gated::new(Rows::new(&data.x, D).unwrap(), M, 2, &mut memory).unwrap();
        tamis::operator::sensing::Sensing::select(&mut sensing, N - 12..N).unwrap();
        let (mut out, mut scratch) = ([0.0; 12 * C], vec![0.0; sensing.net_scratch(12)]);
        let net = net.net();
        sensing.net_forward(net.gates(0), net, &mut out, &mut scratch).unwrap();
        tamis::learn::loss::cross_entropy(&data.classes[N - 12..], C, &mut out).unwrap() / 12.0
    };
    for (factor, from) in [(1.0, 0.8), (3.0, 0.5)] {
        let how = How::Anneal(Params { start_factor: factor, ..usual }, 8);
        let steps = whole(&data, 0, &how).0.len() as u32;
        // The run passes the end of an epoch with so many entries; from there on there is a best
        // iterate.
        let first = ((from * f64::from(steps)) as u32).next_multiple_of(3) + 3;
        let (mut least, mut better) = (f32::INFINITY, [0; 2]);
        for last in first..steps {
            let mut now = None;
            let ended = data.on(0, |runs: &mut dyn Any<_>| {
                let ended = runs.run(&how, None, &mut |step, at| {
                    now = at;
                    step < last
                });
                (ended.unwrap(), now.take().unwrap())
            });
            let (given, current) = (loss(&ended.0.net), loss(&ended.1.nets[0]));
            // Iterates at the ends of epochs are kept; on the settled support only those of it.
            let settled = last >= (0.8 * f64::from(steps)) as u32 + 3;
            assert!(given <= current, "factor {factor}, step {last}: {given} and not {current}");
            better[usize::from(settled)] += u32::from(given < current);
            if settled && last % 3 == 0 {
                least = least.min(current);
            }
            assert!(
                !settled || given <= least,
                "factor {factor}, step {last}: {given} and not {least}"
            );
        }
        assert!(
            better[0] + better[1] > 2 && (better[0] > 2) == (factor > 1.0),
            "factor {factor}: {better:?}"
        );
    }
}

#[test]
fn incompatible_checkpoint_is_an_error() {
    let data = Data::new(1);
    let refused = |how: &How, change: &dyn Fn(&mut Kept)| {
        let (kept, _) = whole(&data, 0, how);
        let mut at = kept[kept.len() / 2].1.clone();
        change(&mut at);
        let error = data
            .on(0, |runs: &mut dyn Any<_>| runs.run(how, Some(&at), &mut |_, _| true))
            .unwrap_err();
        match error {
            Error::Range { what, .. }
            | Error::Length { what, .. }
            | Error::NotFinite { what, .. } => what,
            other => panic!("{other:?}"),
        }
    };
    let anneal = &anneals()[3];
    let entry = |kept: &mut Kept| kept.nets[0].w.1[0] = f32::NAN;
    assert_eq!(refused(anneal, &entry), "weights of the network");
    assert_eq!(refused(anneal, &|kept| kept.words[0] = 0), "steps of the checkpoint");
    assert_eq!(refused(anneal, &|kept| kept.words[0] = u32::MAX), "steps of the checkpoint");
    assert_eq!(refused(anneal, &|kept| kept.words[1] = u32::MAX), "changes of the checkpoint");
    assert_eq!(refused(anneal, &|kept| (kept.floats[0].pop(), ()).1), "means of the checkpoint");
    assert_eq!(
        refused(anneal, &|kept| kept.floats[1][0] = -1.0),
        "negative squares of the checkpoint"
    );
    let score = |kept: &mut Kept| kept.words[8] = 11;
    assert_eq!(refused(anneal, &score), "validation rows of the checkpoint");
    let one = &ones()[0];
    assert_eq!(refused(one, &entry), "weights of the network");
    assert_eq!(refused(one, &|kept| kept.words[4] = 3), "epoch of the checkpoint");
    assert_eq!(refused(one, &|kept| kept.words[5] = u32::MAX), "batch of the checkpoint");
    assert_eq!(refused(one, &|kept| kept.words[6] = u32::MAX), "steps of the checkpoint");
    assert_eq!(refused(one, &|kept| kept.words[10] = u32::MAX), "gates of the checkpoint");
    assert_eq!(
        refused(one, &|kept| kept.nets[1] = kept.nets[0].clone()),
        "other weights of the checkpoint"
    );
    assert_eq!(refused(one, &|kept| kept.floats[0].push(0.0)), "counters of the checkpoint");
    assert_eq!(refused(&severals()[1], &|kept| kept.words[0] = 0), "trials of the schedule");
    assert_eq!(
        refused(&severals()[1], &|kept| kept.floats[0][0] = f32::NAN),
        "counters of the checkpoint"
    );
    let words = |at: usize, word: u32| {
        let mut words = whole(&data, 0, one).0[0].1.words.clone();
        words[at] = word;
        train::State::from_words(&words[..].try_into().unwrap()).unwrap_err()
    };
    for (at, word) in
        [(0, 3), (3, f32::NAN.to_bits()), (7, u32::MAX), (9, f32::NAN.to_bits()), (12, 2)]
    {
        assert!(matches!(words(at, word), Error::Range { .. } | Error::NotFinite { .. }));
    }
    let words = |at: usize, word: u32| {
        let mut words = whole(&data, 0, anneal).0[0].1.words.clone();
        words[at] = word;
        anneal::State::from_words(&words[..].try_into().unwrap()).unwrap_err()
    };
    for (at, word) in [(4, f32::NAN.to_bits()), (7, 1), (10, f32::INFINITY.to_bits()), (14, 2)] {
        assert!(matches!(words(at, word), Error::Range { .. } | Error::NotFinite { .. }));
    }
}
