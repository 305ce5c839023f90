//! What is noted of a cell from step to step.

use std::time::Instant;

use super::record::{Quality, Solved};
use crate::base::{self, HeapPeak};
use crate::operator::CPU;
use crate::train::{Report, Trained};

/// Most points of a curve.
const POINTS: usize = 64;

/// A curve of at most [`POINTS`] points, the peak of the heap, and the time.
#[derive(Clone)]
pub(super) struct Course {
    start: Instant,
    heap: HeapPeak,
    peak: Option<u64>,
    every: u64,
    curve: Vec<(f64, f64)>,
    steps: u64,
}

/// The name of a device that is no CPU.
pub(super) fn gpu_name(device: &str) -> Option<String> {
    (device != CPU.name()).then(|| device.to_owned())
}

impl Course {
    pub(super) fn start() -> Self {
        let curve = Vec::with_capacity(POINTS + 1);
        let (start, heap) = (Instant::now(), HeapPeak::start());
        Self { start, heap, peak: None, every: 1, curve, steps: 0 }
    }

    /// After a step: what the run has taken so far, and the loss after so many passes.
    pub(super) fn see(&mut self, at: f64, loss: f64) {
        self.peak = self.heap.bytes();
        if self.steps.is_multiple_of(self.every) && loss.is_finite() {
            if self.curve.len() == POINTS {
                let mut odd = false;
                self.curve.retain(|_| {
                    odd = !odd;
                    odd
                });
                self.every *= 2;
            }
            self.curve.push((at, loss));
        }
        self.steps += 1;
    }

    /// The losses of steps, after they were done.
    pub(super) fn see_all(&mut self, losses: &[f64]) {
        (0..).zip(losses).for_each(|(step, loss)| self.see(f64::from(step), *loss));
    }

    /// What is recorded of every training.
    pub(super) fn trained(self, trained: &Trained) -> Solved {
        let report = &trained.report;
        let mut live = report.live.layers().to_vec();
        live.extend(report.search().and_then(|search| search.second_live));
        let mapped = report.layers().map_or(0, |layers| layers.mapped_bytes);
        let model = trained.model.bytes().to_vec();
        let &Report { loss, psnr_db, accuracy, .. } = report;
        Solved {
            recipe: report.recipe.into(),
            train: Some(Quality { loss, psnr_db, accuracy }),
            nnz: report.nnz,
            live,
            device: gpu_name(&report.device),
            seconds: report.seconds,
            passes: report.passes,
            limit: report.limit.map(Into::into),
            state_bytes: Some(report.state_bytes),
            workspace_bytes: Some(report.workspace_bytes + mapped),
            dense_bytes: report.imp().map(|imp| imp.dense_bytes),
            model_bytes: Some(model.len() as u64),
            ..self.ended(Some(model))
        }
    }

    /// What was noted, and nothing else yet.
    pub(super) fn ended(self, model: Option<Vec<u8>>) -> Solved {
        let (seconds, heap_peak_bytes) = (self.start.elapsed().as_secs_f64(), self.peak);
        let (curve, rss_peak_bytes) = (self.curve, base::peak_rss_bytes());
        Solved { seconds, heap_peak_bytes, rss_peak_bytes, curve, model, ..Solved::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_thinned_and_keep_their_first_point() {
        let mut course = Course::start();
        (0..10_000).for_each(|i| course.see(f64::from(i), 1.0));
        assert!((POINTS / 2..=POINTS).contains(&course.curve.len()), "{}", course.curve.len());
        assert_eq!(course.curve[0].0, 0.0);
        let step = course.curve[1].0;
        assert!(course.curve.windows(2).all(|pair| pair[1].0 - pair[0].0 == step));
    }
}
