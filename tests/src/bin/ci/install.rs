//! Programs from the system's packages.

use crate::command::Cmd;
use crate::part::Stop;
use std::env;
use std::path::PathBuf;

/// Where a program of the search path lies.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|dir| dir.join(program)).find(|path| path.is_file())
}

/// Makes sure that every program is there: `(program, Debian package)`.
pub(crate) fn programs(wanted: &[(&str, &str)]) -> Result<(), Stop> {
    let packages = missing(wanted, |program| find(program).is_some());
    if packages.is_empty() { Ok(()) } else { debian(&packages) }
}

/// Whether all of the programs are there.
pub(crate) fn found(wanted: &[(&str, &str)]) -> bool {
    missing(wanted, |program| find(program).is_some()).is_empty()
}

/// Installs Debian packages; only as root, for others the reason names the command.
pub(crate) fn debian(packages: &[&str]) -> Result<(), Stop> {
    let list = packages.join(" ");
    let advice = format!("apt-get install -y --no-install-recommends {list}");
    if find("apt-get").is_none() {
        return Err(Stop::Missing(format!("not installed: {list}")));
    }
    if Cmd::new("id").words("-u").ask().as_deref() != Some("0") {
        return Err(Stop::Missing(format!("not installed: {list}; as root: {advice}")));
    }
    let install =
        || Cmd::new("apt-get").args(advice.split(' ').skip(1)).env("DEBIAN_FRONTEND", "noninteractive").run();
    // A fresh machine has no package lists, an old one stale ones.
    install()
        .or_else(|_| Cmd::new("apt-get").words("update").run().and_then(|()| install()))
        .map_err(|_| Stop::Missing(format!("{advice} failed")))
}

/// Packages of the programs that are not there, each once.
fn missing<'a>(wanted: &[(&str, &'a str)], there: impl Fn(&str) -> bool) -> Vec<&'a str> {
    let mut packages: Vec<&str> =
        wanted.iter().filter(|(program, _)| !there(program)).map(|&(_, package)| package).collect();
    packages.dedup();
    packages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packages_of_missing_programs_are_wanted_and_once() {
        let wanted = [("a", "one"), ("b", "one"), ("c", "two"), ("d", "three")];
        assert_eq!(missing(&wanted, |program| program == "c"), ["one", "three"]);
        assert!(missing(&wanted, |_| true).is_empty());
    }

    #[test]
    fn programs_are_found_on_the_search_path() {
        assert!(find("sh").is_some_and(|path| path.is_absolute()));
        assert_eq!(find("no-such-program"), None);
    }
}
