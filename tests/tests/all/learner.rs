//! The part that learns, of `examples/firmware/monitor`: a stream from its sensor goes through the
//! window, power fails all over the operations of its flash, and the weights have the bits of a
//! life without a break.

use tamis::base::rng::{Rng, stream};
use tamis_monitor::simulated::{Accelerometer, Clock, Pin, window};
use tamis_monitor::{Class, FLASH, How, INPUTS, Learner, Lis3dh, Monitor, ROWS, STRIDE};
use tamis_tests::simulated::{Fault, Nor, Tear};

type Flash = Nor<{ FLASH as usize }, 4, 2048>;

/// Rows of two runs.
const STREAM: usize = ROWS + STRIDE;

/// What the machine does at row k of the stream.
const PLAN: [Class; STREAM] = {
    let mut plan = [Class::Running; STREAM];
    let mut k = 0;
    while k < STREAM {
        plan[k] = Class::ALL[(k * k + k / 5) % 3];
        k += 1;
    }
    plan
};

/// Seed of the machine, but where several are tried.
const SEED: u64 = 3;

/// From the second run on whoever stands beside the machine takes all shaking for a fifth worse.
fn label(k: usize) -> f32 {
    let shakes = [0.0, 0.3, 1.0][PLAN[k] as usize];
    if k < ROWS { shakes } else { 1.2 * shakes }
}

/// Indices and bits of the weights after each run.
type Learned = Vec<(Vec<u32>, Vec<u32>)>;

fn bits(learner: &Learner<&mut Flash>) -> (Vec<u32>, Vec<u32>) {
    let weights = learner.weights().unwrap();
    (weights.index().to_vec(), weights.value().iter().map(|value| value.to_bits()).collect())
}

/// A life of the part from row `taken` on, whose sensor gives what it gave before; what it has
/// learned, or the fault of power.
fn live(
    seed: u64,
    flash: &mut Flash,
    how: How,
    taken: &mut usize,
    learned: &mut Learned,
    steps: u32,
) -> Result<bool, tamis::Error<Fault>> {
    let mut learner = Learner::open(flash, 0)?;
    let mut left = steps;
    let mut go_on = move |_| {
        left = left.saturating_sub(1);
        left > 0
    };
    let mut sensor = Lis3dh::new(Accelerometer::new(seed, &PLAN), 0x18);
    let mut row = [0; INPUTS];
    // What this life has lost of the stream comes from the same places again.
    let from = learner.taken() as usize;
    *taken = from;
    for _ in 0..from {
        sensor.window(&mut Clock::default(), &mut row).unwrap();
    }
    loop {
        if learner.is_learning() || learner.is_due() {
            if !learner.learn(how, &mut go_on)? {
                return Ok(false);
            }
            learned.push(bits(&learner));
        } else if *taken == STREAM {
            return Ok(true);
        } else {
            sensor.window(&mut Clock::default(), &mut row).unwrap();
            learner.take(&row, label(*taken))?;
            *taken += 1;
        }
    }
}

/// A whole life without a break.
fn whole(seed: u64, how: How) -> (Learned, u32) {
    let (mut flash, mut learned) = (Flash::new(0, Tear::Before), Vec::new());
    assert_eq!(live(seed, &mut flash, how, &mut 0, &mut learned, u32::MAX), Ok(true));
    (learned, flash.operations())
}

#[test]
fn learning_survives_power_cut_losing_four_rows_maximum() {
    for (how, tear) in [(How::Support, Tear::Weak), (How::Anew, Tear::Halfway)] {
        let (expected, operations) = whole(SEED, how);
        assert_eq!(expected.len(), 2);
        for cut in (0..operations).step_by(29).chain(operations - 12..operations) {
            let (mut flash, mut learned, mut taken) = (Flash::new(cut.into(), tear), Vec::new(), 0);
            flash.cut_in(cut);
            assert_eq!(
                live(SEED, &mut flash, how, &mut taken, &mut learned, u32::MAX),
                Err(tamis::Error::Source(Fault::Off))
            );
            flash.restart();
            let (before, mut rest, mut from) = (taken, Vec::new(), 0);
            let kept = Learner::open(&mut flash, 0).unwrap().taken() as usize;
            assert!(before - kept.min(before) <= 4, "{before} rows, of which {kept} are known");
            assert_eq!(live(SEED, &mut flash, how, &mut from, &mut rest, u32::MAX), Ok(true));
            let end = bits(&Learner::open(&mut flash, 0).unwrap());
            assert_eq!(Some(&end), expected.last(), "{how:?}, cut in {cut}");
            assert!(rest.iter().all(|run| expected.contains(run)), "{how:?}, cut in {cut}");
        }
    }
}

#[test]
fn lives_of_any_length_reach_the_same_weights() {
    for how in [How::Support, How::Anew] {
        let (expected, _) = whole(SEED, how);
        for steps in [17, 29, 61] {
            let (mut flash, mut learned, mut lives) = (Flash::new(0, Tear::Before), Vec::new(), 0);
            while !live(SEED, &mut flash, how, &mut 0, &mut learned, steps).unwrap() {
                lives += 1;
                assert!(lives < 100, "no progress in lives of {steps} steps");
            }
            assert!(lives > 2);
            assert_eq!(learned.last(), expected.last());
        }
    }
}

/// The share of windows that were never taken for which the score is on the right side of `limit`,
/// by `is_above`.
fn right(learner: &Learner<&mut Flash>, classes: [Class; 2], limit: f32) -> f32 {
    let mut rng = Rng::new(99, stream::USER);
    let mut right = 0;
    for k in 0..400 {
        let class = classes[k % 2];
        let score = learner.score(&window(class, &mut rng)).unwrap().unwrap();
        right += u32::from((score > limit) == (k % 2 == 1));
    }
    right as f32 / 400.0
}

#[test]
fn learned_model_classifies_new_windows_on_any_machine() {
    for (seed, how) in (1..9).flat_map(|seed| [(seed, How::Support), (seed, How::Anew)]) {
        let mut flash = Flash::new(0, Tear::Before);
        live(seed, &mut flash, how, &mut 0, &mut Vec::new(), u32::MAX).unwrap();
        let learner = Learner::open(&mut flash, 0).unwrap();
        let shakes = right(&learner, [Class::Running, Class::Unbalanced], 0.72);
        let stands = right(&learner, [Class::Stopped, Class::Running], 0.18);
        assert!(shakes > 0.85 && stands > 0.85, "{seed}, {how:?}: {shakes}, {stands}");
    }
}

#[test]
fn tuning_preserves_support_while_fresh_run_may_not() {
    let (learned, _) = whole(SEED, How::Support);
    let [(first, values), (second, tuned)] = &learned[..] else { panic!("two runs") };
    assert_eq!(first, second, "the support stays");
    assert_ne!(values, tuned, "and its values do not");
    let (learned, _) = whole(SEED, How::Anew);
    let [_, (_, anew)] = &learned[..] else { panic!("two runs") };
    assert_ne!(tuned, anew);
}

#[test]
fn unlearnable_label_ends_only_one_run() {
    let mut flash = Flash::new(0, Tear::Before);
    live(SEED, &mut flash, How::Support, &mut 0, &mut Vec::new(), u32::MAX).unwrap();
    let mut learner = Learner::open(&mut flash, 0).unwrap();
    let (before, mut rng) = (bits(&learner), Rng::new(4, stream::USER));
    let mut take = |learner: &mut Learner<&mut Flash>, label| {
        learner.take(&window(Class::Running, &mut rng), label).unwrap()
    };
    take(&mut learner, 1e30);
    while !take(&mut learner, 0.36) {}
    let result = learner.learn(How::Support, |_| true);
    assert!(matches!(result, Err(tamis::Error::Diverged { .. })), "{result:?}");
    assert!(!learner.is_learning() && bits(&learner) == before);
    // Behind the label that was wrong it learns again, after a reset, too.
    let mut learner = Learner::open(learner.release(), 0).unwrap();
    assert_eq!(bits(&learner), before);
    for _ in 0..ROWS {
        take(&mut learner, 0.36);
    }
    assert_eq!(learner.learn(How::Support, |_| true), Ok(true));
}

#[test]
fn monitor_enables_machine_only_after_learning() {
    const GOOD: [Class; 4] = [Class::Running; 4];
    let run = |flash: &mut Flash| {
        let sensor = Lis3dh::new(Accelerometer::new(8, &GOOD), 0x18);
        let learner = Learner::open(flash, 0).unwrap();
        let mut monitor = Monitor::new(sensor, learner, Pin::default(), Clock::default());
        (0..4).map(|_| monitor.step().unwrap().may_run).collect::<Vec<_>>()
    };
    let mut flash = Flash::new(0, Tear::Before);
    assert_eq!(run(&mut flash), [false; 4]);
    live(SEED, &mut flash, How::Support, &mut 0, &mut Vec::new(), u32::MAX).unwrap();
    assert_eq!(run(&mut flash), [false, true, true, true]);
}
