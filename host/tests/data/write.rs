//! Whole files or nothing, and the bytes of a file in aligned memory.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use tamis_host::base::file;

fn assert_error<T: std::fmt::Debug>(result: tamis_host::Result<T>, parts: &[&str]) {
    let error = result.unwrap_err().to_string();
    for part in parts {
        assert!(error.contains(part), "{part:?} is missing in:\n{error}");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_failed_write_leaves_the_file_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    file::write(&path, |w| w.write_all(b"first")).unwrap();
    let failing = |w: &mut file::Writer<'_>| {
        w.write_all(&[7; 1 << 20])?;
        Err(io::Error::from(io::ErrorKind::StorageFull))
    };
    assert_error(
        file::write(&path, failing),
        &["cannot write", "model", "free some space", "nothing was left"],
    );
    assert_error(file::write(folder.path().join("new"), failing), &["cannot write"]);
    assert_eq!(names(folder.path()), ["model"]);
    assert_eq!(fs::read(&path).unwrap(), b"first");
    file::write(&path, |w| w.write_all(b"second")).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"second");
    assert_eq!(names(folder.path()), ["model"]);
}

#[test]
fn a_panic_while_writing_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let result = std::panic::catch_unwind(|| file::write(&path, |_| panic!("stopped")));
    assert!(result.is_err() && names(folder.path()).is_empty());
}

#[test]
fn impossible_places_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &Path| file::write(path, |w| w.write_all(b"x"));
    assert_error(write(folder.path()), &["cannot write", "got: a folder", "name a file"]);
    assert_error(write(&folder.path().join("no/model")), &["cannot write", "mkdir -p", "no"]);
    assert_error(write(Path::new("")), &["cannot write", "name of a file"]);
    fs::write(folder.path().join("plain"), b"").unwrap();
    assert_error(
        write(&folder.path().join("plain/model")),
        &["cannot write", "choose another folder"],
    );
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn folder_without_write_permission_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
        let everywhere = fs::write(folder.path().join("probe"), b"").is_ok();
        // Root may write there; not even root may make files in sysfs.
        let place = if everywhere { Path::new("/sys") } else { folder.path() };
        let result = file::write(place.join("model"), |w| w.write_all(b"x"));
        assert_error(result, &["cannot write", "model", "choose a place that you may write to"]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_named() {
        let result = file::write("/dev/full", |w| w.write_all(b"x"));
        assert_error(result, &["cannot write", "/dev/full", "free some space"]);
        let kind = fs::metadata("/dev/full").unwrap();
        assert!(!kind.is_file(), "the device was replaced");
    }

    #[test]
    fn devices_are_written_to_and_stay() {
        file::write("/dev/null", |w| w.write_all(b"x")).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn links_and_permissions_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, b"old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("real", &link).unwrap();
        file::write(&link, |w| w.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert_eq!(fs::metadata(&real).unwrap().mode() & 0o777, 0o640);
        let fresh = folder.path().join("fresh");
        file::write(&fresh, |w| w.write_all(b"x")).unwrap();
        fs::write(folder.path().join("plain"), b"x").unwrap();
        let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().mode();
        assert_eq!(mode("fresh"), mode("plain"), "as any other new file");
        fs::set_permissions(&fresh, fs::Permissions::from_mode(0o444)).unwrap();
        assert_error(file::write(&fresh, |w| w.write_all(b"y")), &["cannot write", "may write"]);
        assert_eq!(fs::read(&fresh).unwrap(), b"x");
    }
}

#[test]
fn folder_write_is_all_or_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().join("deep/out");
    let fail = file::write_folder(&out, |folder| {
        folder.write("a", |w| w.write_all(b"a"))?;
        assert_eq!(folder.path(), out);
        folder.write("b", |_| Err(io::Error::other("no more")))
    });
    assert_error(fail, &["cannot write", "no more"]);
    assert!(names(parent.path()).is_empty(), "the folders made are gone");

    file::write_folder(&out, |folder| folder.write("a", |w| w.write_all(b"1"))).unwrap();
    fs::write(out.join("mine"), b"mine").unwrap();
    let fail = file::write_folder(&out, |folder| {
        folder.write("a", |w| w.write_all(b"2"))?;
        folder.write("missing/b", |w| w.write_all(b"b"))
    });
    assert_error(fail, &["mkdir -p"]);
    assert_eq!(
        (names(&out), fs::read(out.join("a")).unwrap()),
        (vec!["a".into(), "mine".into()], b"1".to_vec())
    );
    file::write_folder(&out, |folder| folder.write("a", |w| w.write_all(b"3"))).unwrap();
    assert_eq!(
        (names(&out), fs::read(out.join("a")).unwrap()),
        (vec!["a".into(), "mine".into()], b"3".to_vec())
    );

    let in_the_way = out.join("mine");
    assert_error(
        file::write_folder(&in_the_way, |_| Ok(())),
        &["cannot make the folder", "a file of that name"],
    );
    let below = in_the_way.join("x");
    assert_error(
        file::write_folder(&below, |_| Ok(())),
        &["cannot make the folder", "choose another folder"],
    );
}

#[test]
fn aligned_bytes_are_those_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    for len in 0..10u8 {
        let path = folder.path().join("bytes");
        let bytes: Vec<u8> = (1..=len).collect();
        fs::write(&path, &bytes).unwrap();
        let read = file::read_aligned(&path).unwrap();
        assert_eq!(&read[..], &bytes[..]);
        assert_eq!(read.as_ptr().align_offset(4), 0);
        assert_eq!(read, file::Aligned::new(&bytes));
    }
    assert_error(file::read_aligned(folder.path()), &["got: a folder"]);
    assert_error(
        file::read_aligned(folder.path().join("none")),
        &["cannot open", "check the name"],
    );
    let large = folder.path().join("large");
    fs::File::create(&large).unwrap().set_len(file::ALIGNED_LIMIT + 1).unwrap();
    assert_error(
        file::read_aligned(&large),
        &["too large", "at most 1073741824 bytes", "got: 1073741825 bytes"],
    );
}
