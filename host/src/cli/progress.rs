//! Progress of a run, on one line of standard error and only on a terminal.

use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::common::Common;
use crate::model::EpochProgress;
use crate::train::{Progress, StepDetails};

/// A line on standard error, hidden where nobody watches; `{wide_msg}` at the end of the template
/// is cut to the width of the terminal.
pub(super) fn line(common: &Common, steps: Option<u64>, template: &str) -> ProgressBar {
    let is_watched = !common.quiet && io::stderr().is_terminal();
    let (shown, hidden) = (ProgressDrawTarget::stderr, ProgressDrawTarget::hidden);
    drawn(if is_watched { shown() } else { hidden() }, steps, template)
}

fn drawn(target: ProgressDrawTarget, steps: Option<u64>, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(steps, target);
    match ProgressStyle::with_template(template) {
        Ok(style) if steps.is_some() => bar.with_style(style.progress_chars("━╸·")),
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

const BAR: &str = "  {bar:12} {wide_msg}";
const SEARCH: &str = "  {spinner} {wide_msg}";

#[derive(Debug)]
pub(super) struct Bar(ProgressBar);

impl Bar {
    pub(super) fn new(common: &Common) -> Self {
        Self(line(common, Some(0), BAR))
    }

    pub(super) fn show(&self, step: u32, steps: u32, loss: f32) {
        let Self(bar) = self;
        if !bar.is_hidden() {
            bar.set_length(u64::from(steps));
            bar.set_position(u64::from(step));
            let left = HumanDuration(bar.eta());
            bar.set_message(format!("step {step} of {steps}, loss {loss:.3e}, {left:#} left"));
        }
    }

    /// Shows an epoch of a fit, which goes on.
    pub(super) fn epoch(&self, progress: &EpochProgress) -> bool {
        self.show(progress.epoch, progress.epochs, progress.best);
        true
    }

    /// Takes the bar off the screen.
    pub(super) fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// The progress of any run: a bar, or of a search a line that tells where it stands.
#[derive(Debug)]
pub(super) struct Watched {
    bar: Bar,
    search: ProgressBar,
}

impl Watched {
    pub(super) fn new(common: &Common) -> Self {
        Self { bar: Bar::new(common), search: line(common, None, SEARCH) }
    }

    pub(super) fn update(&self, progress: &Progress) -> ControlFlow<()> {
        let &Progress { stage, step, steps, loss, nnz, live, details, .. } = progress;
        match details {
            _ if stage.trainings > 1 => {
                self.bar.show(stage.training as u32, stage.trainings as u32, loss);
            }
            StepDetails::Lm { search_best, moves, kicks, .. } => say(&self.search, |time| {
                format!(
                    "step {step}, loss {loss:.3e}, least {search_best:.3e}, {nnz} weights in \
                     {live} neurons, {moves} moves, {kicks} perturbations, {time:#}"
                )
            }),
            _ => self.bar.show(step, steps, loss),
        }
        ControlFlow::Continue(())
    }

    pub(super) fn clear(&self) {
        self.bar.clear();
        self.search.finish_and_clear();
    }
}

fn say(bar: &ProgressBar, text: impl FnOnce(HumanDuration) -> String) {
    if !bar.is_hidden() {
        bar.set_message(text(HumanDuration(bar.elapsed())));
        bar.tick();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use indicatif::TermLike;

    use super::*;

    /// A terminal of 40 columns that keeps what is written to it.
    #[derive(Debug, Clone, Default)]
    struct Narrow(Arc<Mutex<Vec<String>>>);

    impl TermLike for Narrow {
        fn width(&self) -> u16 {
            40
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push(text.to_owned());
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    fn on(terminal: &Narrow, steps: Option<u64>, template: &str) -> ProgressBar {
        drawn(ProgressDrawTarget::term_like(Box::new(terminal.clone())), steps, template)
    }

    fn check(terminal: &Narrow, says: &str) {
        let lines = terminal.0.lock().unwrap();
        assert!(lines.iter().any(|line| line.contains(says)), "{lines:?}");
        for line in lines.iter() {
            assert!(line.chars().count() <= 40, "{line:?}");
        }
    }

    #[test]
    fn lines_fit_a_narrow_terminal() {
        let terminal = Narrow::default();
        let bar = Bar(on(&terminal, Some(0), BAR));
        bar.show(123_456, 1_000_000, 1.234e-5);
        check(&terminal, "step 123456 of");
        let terminal = Narrow::default();
        say(&on(&terminal, None, SEARCH), |time| {
            format!("step 1234, loss 1.500e-3, least 1.250e-3, 2644 weights, {time:#}")
        });
        check(&terminal, "step 1234, loss 1.500e-3");
    }
}
