//! The progress bar of a training run, on standard error and only on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tamis::lm;
use tamis::train::Progress;

use super::Console;

/// A bar that fills step by step; hidden where nobody watches.
#[derive(Debug)]
pub(super) struct Bar(Option<ProgressBar>);

impl Bar {
    pub(super) fn new(console: &Console) -> Self {
        Self(console.shows_progress().then(|| {
            let style =
                ProgressStyle::with_template("  {bar:30} step {pos} of {len}, loss {msg}, {eta} left");
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
            match style {
                Ok(style) => bar.with_style(style.progress_chars("━╸·")),
                Err(_) => bar,
            }
        }))
    }

    pub(super) fn update(&self, progress: &Progress<'_>) {
        self.show(progress.step, progress.steps, progress.loss);
    }

    pub(super) fn show(&self, step: u32, steps: u32, loss: f32) {
        if let Self(Some(bar)) = self {
            bar.set_length(u64::from(steps));
            bar.set_message(format!("{loss:.3e}"));
            bar.set_position(u64::from(step));
        }
    }

    /// Takes the bar off the screen.
    pub(super) fn clear(&self) {
        if let Self(Some(bar)) = self {
            bar.finish_and_clear();
        }
    }
}

/// A line that tells where a search stands; hidden where nobody watches.
#[derive(Debug)]
pub(super) struct Search(Option<ProgressBar>);

impl Search {
    pub(super) fn new(console: &Console) -> Self {
        Self(console.shows_progress().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            match ProgressStyle::with_template("  {spinner} step {pos}, {msg}, {elapsed}") {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        }))
    }

    pub(super) fn update(&self, progress: &lm::Progress<'_>) {
        if let Self(Some(bar)) = self {
            let lm::Progress { loss, best, support, live, moves, kicks, .. } = *progress;
            bar.set_message(format!(
                "loss {loss:.3e}, best {best:.3e}, {support} weights in {live} neurons, {moves} moves, {kicks} kicks"
            ));
            bar.set_position(u64::from(progress.step));
        }
    }

    /// Takes the line off the screen.
    pub(super) fn clear(&self) {
        if let Self(Some(bar)) = self {
            bar.finish_and_clear();
        }
    }
}
