//! Training with its state in flash: power fails in every operation of the flash, the part starts
//! again, and the model is that of a run without a break.

use tamis::data::samples::{NormalRows, Samples as _};
use tamis::store::wire::{Aligned, View};
use tamis_tests::cases::learn::{EVERY, MODEL, Phase, Seen, SimulatedFlash, session};
use tamis_tests::simulated::Tear;

/// The model of a run without a break, and the operations that it took.
fn whole(tear: Tear) -> ([u8; MODEL], u32) {
    let (mut flash, mut model, mut seen) =
        (SimulatedFlash::new(0, tear), [0; MODEL], Seen::default());
    assert!(session(&mut flash, u32::MAX, &mut seen, &mut model).unwrap().is_some());
    assert_eq!(seen, Seen { began: (Phase::Training, 0), ended: (Phase::Tuning, 18) });
    (model, flash.operations())
}

#[test]
fn power_cut_anywhere_loses_at_most_one_checkpoint() {
    for tear in Tear::ALL {
        let (expected, operations) = whole(tear);
        for cut in 0..operations {
            let (mut flash, mut model) = (SimulatedFlash::new(u64::from(cut), tear), [0; MODEL]);
            flash.cut_in(cut);
            let mut before = Seen::default();
            session(&mut flash, u32::MAX, &mut before, &mut model).unwrap_err();
            flash.restart();
            let mut after = Seen::default();
            assert!(session(&mut flash, u32::MAX, &mut after, &mut model).unwrap().is_some());
            assert!(model == expected, "{tear:?}, cut in {cut}");
            lost_little(before, after);
        }
    }
}

/// The second session began at most two intervals before the step that the first one ended with:
/// the checkpoint that was being written is lost, and what came after the one before.
fn lost_little(before: Seen, after: Seen) {
    const LAST: u32 = 18;
    let place = |(phase, step)| match phase {
        Phase::Training => step,
        Phase::Tuning => LAST + step,
        Phase::Model => 2 * LAST,
    };
    let lost = place(before.ended) - place(after.began).min(place(before.ended));
    assert!(lost <= EVERY, "{before:?}, {after:?}");
}

#[test]
fn sessions_of_any_length_give_the_same_model() {
    let (expected, _) = whole(Tear::Before);
    for steps in EVERY + 1..20 {
        let (mut flash, mut model) = (SimulatedFlash::new(0, Tear::Before), [0; MODEL]);
        let mut sessions = 0;
        while session(&mut flash, steps, &mut Seen::default(), &mut model).unwrap().is_none() {
            sessions += 1;
            assert!(sessions < 40, "no progress in sessions of {steps} steps");
        }
        assert!(model == expected, "sessions of {steps} steps");
    }
}

/// On rows that were in neither stream, against what the second one was labelled with.
#[test]
fn model_learns_the_labels_of_the_later_stream() {
    let mut file = Aligned([0; MODEL]);
    let len =
        session(SimulatedFlash::new(0, Tear::Before), u32::MAX, &mut Seen::default(), &mut file.0)
            .unwrap()
            .unwrap();
    let view = View::parse(&file.0[..len]).unwrap();
    let (mut error, mut power, mut row) = (0.0, 0.0, [0.0; 12]);
    for k in 0..500 {
        NormalRows::new(77, 500, 12).row(k, &mut row).unwrap();
        let y = (2.0 * row[1] - row[7]).max(0.0) + (1.5 * row[4] + row[8] - row[10]).max(0.0);
        let mut f = [0.0];
        view.model().predict(&row, &mut [], &mut f).unwrap();
        error += (f[0] - y).powi(2);
        power += y.powi(2);
    }
    assert!(error < 1e-6 * power, "{}", error / power);
}
