//! Programs from the system's packages.
//!
//! Nothing of the machine is ever removed: what `apt-get` would do is simulated first. Where it
//! would remove a package, or is not run by root, programs are unpacked below `target/tools`
//! instead, where nothing else sees them.

use crate::command::{Cmd, root};
use crate::part::Stop;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Where packages are unpacked that cannot be installed, and scripts that start their programs.
const UNPACKED: &str = "target/tools/debian";

/// Where a program of the search path lies.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|dir| dir.join(program)).find(|path| path.is_file())
}

/// What starts a program: its name, or the script for one that was unpacked.
pub(crate) fn program(name: &str) -> PathBuf {
    let own = root().join(UNPACKED).join("bin").join(name);
    if find(name).is_none() && own.is_file() { own } else { name.into() }
}

/// Makes sure that every program is there: `(program, Debian package)`.
pub(crate) fn programs(wanted: &[(&str, &str)]) -> Result<(), Stop> {
    let is_there = |name: &str| find(name).is_some() || program(name).is_file();
    let packages = missing(wanted, is_there);
    if packages.is_empty() {
        return Ok(());
    }
    let Err(refused) = debian(&packages) else { return Ok(()) };
    println!("{}; they are unpacked in {UNPACKED}", refused.why());
    let names: Vec<_> =
        wanted.iter().map(|&(name, _)| name).filter(|name| !is_there(name)).collect();
    unpack(&packages, &names).map_err(|why| Stop::Missing(format!("{}, and {why}", refused.why())))
}

/// Installs Debian packages, and removes none; only as root, for others the reason names the
/// command.
pub(crate) fn debian(packages: &[&str]) -> Result<(), Stop> {
    let list = packages.join(" ");
    if find("apt-get").is_none() {
        return Err(Stop::Missing(format!("not installed: {list}")));
    }
    let advice = format!("apt-get install --no-install-recommends {list}");
    let removes = plan(packages)?.removes;
    if !removes.is_empty() {
        let removes = removes.join(" ");
        return Err(Stop::Missing(format!("{advice} would remove {removes}, which is not done")));
    }
    if Cmd::new("id").words("-u").ask().as_deref() != Some("0") {
        return Err(Stop::Missing(format!("not installed: {list}; as root: {advice}")));
    }
    Cmd::new("apt-get")
        .words("install --yes --no-remove --no-install-recommends")
        .args(packages)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .run()
        .map_err(|_| Stop::Missing(format!("{advice} failed")))
}

/// What installing packages would do.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    /// New or upgraded packages.
    installs: Vec<String>,
    removes: Vec<String>,
}

impl Plan {
    /// Reads what `apt-get --simulate` prints.
    fn parse(text: &str) -> Self {
        let names = |verb: &str| {
            let rest = text.lines().filter_map(|line| line.strip_prefix(verb)?.strip_prefix(' '));
            rest.filter_map(|rest| rest.split(' ').next()).map(str::to_owned).collect()
        };
        Self { installs: names("Inst"), removes: names("Remv") }
    }
}

/// Simulates the installation.
fn plan(packages: &[&str]) -> Result<Plan, Stop> {
    let simulate = || {
        Cmd::new("apt-get").words("install --simulate --no-install-recommends").args(packages).ask()
    };
    // A fresh machine has no package lists, an old one stale ones.
    let text = simulate().or_else(|| {
        Cmd::new("apt-get").words("update").run().ok()?;
        simulate()
    });
    let text = text.ok_or_else(|| Stop::Missing(format!("no packages {}", packages.join(" "))))?;
    Ok(Plan::parse(&text))
}

/// Unpacks packages with all that they need and is not installed, and writes a script for each of
/// the programs.
fn unpack(packages: &[&str], programs: &[&str]) -> Result<(), String> {
    let to = root().join(UNPACKED);
    let (archives, files, scripts) = (to.join("archives"), to.join("root"), to.join("bin"));
    let _ = fs::remove_dir_all(&archives);
    for folder in [&archives, &files, &scripts] {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let needed = plan(packages).map_err(|stop| stop.why().to_owned())?.installs;
    let fetched =
        Cmd::new("apt-get").words("download").args(&needed).within_folder(&archives).run();
    fetched.map_err(|stop| stop.why().to_owned())?;
    let listed = |error: io::Error| format!("{}: {error}", archives.display());
    for archive in fs::read_dir(&archives).map_err(listed)? {
        let archive = archive.map_err(listed)?.path();
        let unpacked =
            Cmd::new("dpkg-deb").args(["-x".as_ref(), archive.as_path(), &files]).quietly().run();
        unpacked.map_err(|stop| stop.why().to_owned())?;
    }
    for name in programs {
        start_script(&files, &scripts, name).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

/// Starts a program with the libraries beside it.
fn start_script(files: &Path, scripts: &Path, name: &str) -> io::Result<()> {
    let program = files.join("usr/bin").join(name);
    fs::metadata(&program)?;
    let mut folders = Vec::new();
    for lib in ["usr/lib", "lib"].map(|lib| files.join(lib)).iter().filter(|lib| lib.is_dir()) {
        for folder in fs::read_dir(lib)? {
            let folder = folder?.path();
            folders.extend(folder.to_string_lossy().contains("-linux-gnu").then_some(folder));
        }
    }
    let folders = env::join_paths(folders).map_err(io::Error::other)?;
    let text = format!(
        "#!/bin/sh\nLD_LIBRARY_PATH='{}' exec '{}' \"$@\"\n",
        folders.to_string_lossy(),
        program.display()
    );
    let script = scripts.join(name);
    fs::write(&script, text)?;
    let mode = fs::metadata(&program)?.permissions();
    fs::set_permissions(script, mode)
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

    /// Printed by apt 2.6 on a Debian with a newer `qemu-utils`.
    const REMOVES: &str = "\
Reading package lists...
Building dependency tree...
Reading state information...
The following additional packages will be installed:
  libfdt1 libslirp0 qemu-system-common qemu-system-data
Recommended packages:
  qemu-system-gui qemu-utils ipxe-qemu
The following packages will be REMOVED:
  qemu-utils
The following NEW packages will be installed:
  libfdt1 libslirp0 qemu-system-arm qemu-system-common qemu-system-data
0 upgraded, 5 newly installed, 1 to remove and 117 not upgraded.
Remv qemu-utils [1:10.0.2+ds-2+deb13u1~bpo12+1]
Inst libfdt1 (1.6.1-4+b1 Debian:12.15/oldstable [amd64])
Inst libslirp0 (4.7.0-1 Debian:12.15/oldstable [amd64])
Inst qemu-system-common (1:7.2+dfsg-7+deb12u18+b3 Debian:12.15/oldstable [amd64])
Inst qemu-system-data (1:7.2+dfsg-7+deb12u18 Debian:12.15/oldstable [all])
Inst qemu-system-arm (1:7.2+dfsg-7+deb12u18+b3 Debian:12.15/oldstable [amd64])
Conf libfdt1 (1.6.1-4+b1 Debian:12.15/oldstable [amd64])
Conf qemu-system-arm (1:7.2+dfsg-7+deb12u18+b3 Debian:12.15/oldstable [amd64])
";

    #[test]
    fn what_apt_would_remove_is_read() {
        let plan = Plan::parse(REMOVES);
        assert_eq!(plan.removes, ["qemu-utils"]);
        let wanted =
            ["libfdt1", "libslirp0", "qemu-system-common", "qemu-system-data", "qemu-system-arm"];
        assert_eq!(plan.installs, wanted);
        let fine = REMOVES.replace("Remv qemu-utils [1:10.0.2+ds-2+deb13u1~bpo12+1]\n", "");
        assert!(Plan::parse(&fine).removes.is_empty());
    }

    #[test]
    fn a_program_that_was_unpacked_finds_its_libraries() {
        let folder = env::temp_dir().join(format!("tamis-ci-{}", std::process::id()));
        let (files, scripts) = (folder.join("root"), folder.join("bin"));
        for folder in [&files.join("usr/bin"), &files.join("usr/lib/x86_64-linux-gnu"), &scripts] {
            fs::create_dir_all(folder).unwrap();
        }
        let program = files.join("usr/bin/says");
        fs::copy("/bin/sh", &program).unwrap();
        start_script(&files, &scripts, "says").unwrap();
        let says =
            Cmd::new(scripts.join("says")).args(["-c", "echo $LD_LIBRARY_PATH $0", "x"]).ask();
        let libraries = files.join("usr/lib/x86_64-linux-gnu");
        assert_eq!(says.unwrap(), format!("{} x", libraries.display()));
        assert!(start_script(&files, &scripts, "other").is_err());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn only_packages_of_missing_programs_are_requested_once() {
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
