//! Commands that are printed before they run.

use crate::part::Stop;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    let tests = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    tests.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// What `run` gives of each item, in their order: as many at a time as there are processors.
pub(crate) fn each<T: Sync, R: Send>(items: &[T], run: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, done) = (Mutex::new(items.iter().enumerate()), Mutex::new(Vec::new()));
    let take = || next.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(|| {
                while let Some((at, item)) = take() {
                    let result = run(item);
                    done.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// A program with arguments, run in the repository's root.
#[derive(Debug)]
pub(crate) struct Cmd {
    inner: Command,
    limit: Option<Duration>,
    log: Option<PathBuf>,
    quiet: bool,
}

impl Cmd {
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        let mut inner = Command::new(program);
        inner.current_dir(root()).stdin(Stdio::null());
        // The variables that cargo sets for this program are not for the programs it starts.
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(of_cargo_run) {
                inner.env_remove(name);
            }
        }
        Self { inner, limit: None, log: None, quiet: false }
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.inner.args(args);
        self
    }

    /// Arguments separated by blanks.
    pub(crate) fn words(self, args: &str) -> Self {
        self.args(args.split_whitespace())
    }

    pub(crate) fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.inner.env(name, value);
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.inner.env_remove(name);
        self
    }

    /// Kills the command after `seconds`.
    pub(crate) fn within(mut self, seconds: u64) -> Self {
        self.limit = Some(Duration::from_secs(seconds));
        self
    }

    /// One of very many: it is not printed.
    pub(crate) fn quietly(mut self) -> Self {
        self.quiet = true;
        self
    }

    /// Sends both output streams to a file.
    pub(crate) fn log(mut self, path: &Path) -> Self {
        self.log = Some(path.to_path_buf());
        self
    }

    /// Runs the command in another folder than the repository's root.
    pub(crate) fn within_folder(mut self, folder: &Path) -> Self {
        self.inner.current_dir(folder);
        self
    }

    /// Runs the command; anything but success is a failure.
    pub(crate) fn run(mut self) -> Result<(), Stop> {
        self.show();
        let status = self.status();
        self.judge(status)
    }

    /// Runs the command, and shows each line of its standard output to `read` as it is printed.
    pub(crate) fn lines(mut self, mut read: impl FnMut(&str)) -> Result<(), Stop> {
        self.show();
        let status = self.inner.stdout(Stdio::piped()).spawn().and_then(|mut child| {
            for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines())
            {
                let line = line?;
                println!("{line}");
                read(&line);
            }
            child.wait()
        });
        self.judge(status.map(Some))
    }

    fn show(&self) {
        if !self.quiet {
            println!("$ {}", self.shown());
        }
    }

    fn judge(&self, status: io::Result<Option<ExitStatus>>) -> Result<(), Stop> {
        let name = self.name();
        match status {
            Ok(Some(status)) if status.success() => Ok(()),
            Ok(Some(status)) => Err(Stop::Failed(format!("{name}: {status}"))),
            Ok(None) => Err(Stop::Failed(format!(
                "{name}: killed after {} s",
                self.limit.unwrap_or_default().as_secs()
            ))),
            Err(error) => Err(Stop::Failed(format!("{name}: {error}"))),
        }
    }

    /// Standard output of a command that only asks; not printed. None when it cannot run or fails.
    pub(crate) fn ask(mut self) -> Option<String> {
        let output = self.inner.stderr(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    }

    /// Exit status, or None when the time was up.
    fn status(&mut self) -> io::Result<Option<ExitStatus>> {
        if let Some(path) = &self.log {
            let file = File::create(path)?;
            self.inner.stdout(file.try_clone()?).stderr(file);
        }
        let mut child = self.inner.spawn()?;
        match self.limit {
            None => child.wait().map(Some),
            Some(limit) => wait(&mut child, limit),
        }
    }

    fn name(&self) -> String {
        Path::new(self.inner.get_program())
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    }

    fn shown(&self) -> String {
        let env = self.inner.get_envs().filter_map(|(name, value)| {
            value.map(|value| format!("{}={}", name.to_string_lossy(), quoted(value)))
        });
        let words =
            std::iter::once(self.inner.get_program()).chain(self.inner.get_args()).map(quoted);
        env.chain(words).collect::<Vec<_>>().join(" ")
    }
}

/// Set by `cargo run` for the program it runs.
fn of_cargo_run(name: &str) -> bool {
    matches!(name, "CARGO" | "LD_LIBRARY_PATH" | "DYLD_FALLBACK_LIBRARY_PATH")
        || name.starts_with("CARGO_PKG_")
        || name.starts_with("CARGO_MANIFEST_")
        || name.starts_with("CARGO_BIN_")
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    if word.is_empty() || word.contains([' ', '"', '$', '*']) {
        format!("'{word}'")
    } else {
        word.into_owned()
    }
}

fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        sleep(Duration::from_millis(10));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gives_results_in_order() {
        let items: Vec<u64> = (0..50).rev().collect();
        let slow = |item: &u64| {
            sleep(Duration::from_micros(50 * item));
            item * item
        };
        assert_eq!(each(&items, slow), items.iter().map(|item| item * item).collect::<Vec<_>>());
        assert_eq!(each(&[0; 0], slow), [0; 0]);
    }

    #[test]
    fn the_printed_command_can_be_pasted() {
        let command = Cmd::new("cargo").env("RUSTDOCFLAGS", "-D warnings").words("doc  --no-deps");
        assert_eq!(command.shown(), "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps");
    }

    #[test]
    fn failure_silence_and_endless_loops_are_told_apart() {
        assert_eq!(Cmd::new("true").run(), Ok(()));
        assert!(
            matches!(Cmd::new("false").run(), Err(Stop::Failed(why)) if why.starts_with("false: exit status: 1"))
        );
        assert!(matches!(Cmd::new("no-such-program").run(), Err(Stop::Failed(_))));
        assert_eq!(
            Cmd::new("sleep").words("60").within(0).run(),
            Err(Stop::Failed("sleep: killed after 0 s".into()))
        );
        assert_eq!(Cmd::new("echo").words("word").ask().as_deref(), Some("word"));
        assert_eq!(Cmd::new("false").ask(), None);
    }

    #[test]
    fn lines_are_read_as_they_are_printed() {
        let mut lines = Vec::new();
        let script = |text: &str| Cmd::new("sh").args(["-c", text]);
        assert_eq!(script("echo a; echo b").lines(|line| lines.push(line.to_owned())), Ok(()));
        assert_eq!(lines, ["a", "b"]);
        assert!(script("echo a; exit 1").lines(|_| {}).is_err());
    }
}
