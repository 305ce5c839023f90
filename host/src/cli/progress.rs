//! Progress of a run, on one line of standard error and only on a terminal.

use std::ops::ControlFlow;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::console::Console;
use crate::train::{Progress, StepDetails};

/// A line on standard error for so many steps, if there are so many; hidden where nobody watches.
///
/// What may be long belongs into `{wide_msg}` at the end of the template, which is cut to the width
/// of the terminal.
pub(super) fn line(console: &Console, steps: Option<u64>, template: &str) -> ProgressBar {
    let target = if console.shows_progress() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    drawn(target, steps, template)
}

fn drawn(target: ProgressDrawTarget, steps: Option<u64>, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(steps, target);
    match ProgressStyle::with_template(template) {
        Ok(style) if steps.is_some() => bar.with_style(style.progress_chars("━╸·")),
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// A bar that fills step by step.
#[derive(Debug)]
pub(super) struct Bar(ProgressBar);

impl Bar {
    const TEMPLATE: &str = "  {bar:12} {wide_msg}";

    pub(super) fn new(console: &Console) -> Self {
        Self(line(console, Some(0), Self::TEMPLATE))
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

    /// Takes the bar off the screen.
    pub(super) fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// A line that tells where a search stands.
#[derive(Debug)]
struct Search(ProgressBar);

impl Search {
    const TEMPLATE: &str = "  {spinner} {wide_msg}";

    pub(super) fn new(console: &Console) -> Self {
        Self(line(console, None, Self::TEMPLATE))
    }

    fn update(&self, progress: &Progress) {
        let &Progress { step, loss, nnz, live, .. } = progress;
        let StepDetails::Lm { search_best, moves, kicks, .. } = progress.details else { return };
        self.say(|time| {
            format!(
                "step {step}, loss {loss:.3e}, least {search_best:.3e}, {nnz} weights in {live} \
                 neurons, {moves} moves, {kicks} perturbations, {time:#}"
            )
        });
    }

    fn say(&self, text: impl FnOnce(HumanDuration) -> String) {
        let Self(bar) = self;
        if !bar.is_hidden() {
            bar.set_message(text(HumanDuration(bar.elapsed())));
            bar.tick();
        }
    }

    /// Takes the line off the screen.
    pub(super) fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// The progress of any run: a bar, or of a search a line.
#[derive(Debug)]
pub(super) struct Watched {
    bar: Bar,
    search: Search,
}

impl Watched {
    pub(super) fn new(console: &Console) -> Self {
        Self { bar: Bar::new(console), search: Search::new(console) }
    }

    /// Shows a step.
    pub(super) fn update(&self, progress: &Progress) -> ControlFlow<()> {
        let &Progress { stage, step, steps, loss, details, .. } = progress;
        match details {
            _ if stage.trainings > 1 => {
                self.bar.show(stage.training as u32, stage.trainings as u32, loss);
            }
            StepDetails::Lm { .. } => self.search.update(progress),
            _ => self.bar.show(step, steps, loss),
        }
        ControlFlow::Continue(())
    }

    /// Takes all of it off the screen.
    pub(super) fn clear(&self) {
        self.bar.clear();
        self.search.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::io;
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
        let bar = Bar(on(&terminal, Some(0), Bar::TEMPLATE));
        bar.show(123_456, 1_000_000, 1.234e-5);
        check(&terminal, "step 123456 of");
        let terminal = Narrow::default();
        let search = Search(on(&terminal, None, Search::TEMPLATE));
        search.say(|time| {
            format!("step 1234, loss 1.500e-3, least 1.250e-3, 2644 weights, {time:#}")
        });
        check(&terminal, "step 1234, loss 1.500e-3");
    }
}
