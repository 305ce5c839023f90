//! Outputs that cannot be written.

use std::fs;
use std::path::Path;

use crate::common::*;

#[test]
fn an_input_is_never_overwritten() {
    let folder = prepared();
    let data = fs::read(folder.path().join("p/X.npy")).unwrap();
    for output in ["p/X.npy", "p/../p/X.npy", "p/y.npy"] {
        let error = fails(folder.path(), &format!("{TRAIN} -o {output}"));
        assert!(error.contains("also an input"), "{error}");
    }
    let error = fails(folder.path(), "predict m.tamis --data p/X.npy -o ./p/X.npy");
    assert!(error.contains("also an input"), "{error}");
    assert_eq!(fs::read(folder.path().join("p/X.npy")).unwrap(), data);
}

#[test]
fn unwritable_outputs_are_detected_before_training() {
    let folder = prepared();
    fs::write(folder.path().join("file"), "x").unwrap();
    let long = TRAIN.replace("--nnz 6", "--nnz 6 --recipe paper --epochs 1000000000");
    for output in ["missing/n.tamis", "p", "file/n.tamis", "/proc/n.tamis"] {
        if !output.starts_with('/') || Path::new("/proc/self").exists() {
            let error = fails(folder.path(), &format!("{long} -o {output}"));
            assert!(error.contains("cannot write") && error.contains(output), "{error}");
            assert!(error.contains("help:") && !error.contains(".partial"), "{error}");
            assert_eq!(error.contains("mkdir"), output.starts_with("missing"), "{error}");
            fails(folder.path(), &format!("predict m.tamis --data p/X.npy -o {output}"));
        }
    }
    assert!(
        fails(folder.path(), "predict m.tamis --data p/X.npy -o o.txt").contains(".npy or .csv")
    );
    for line in ["demo -o file", "demo -o file/below", "generate digits --samples 5 -o file"] {
        fails(folder.path(), line);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn folders_without_the_right_to_write() {
    use std::os::unix::fs::PermissionsExt;
    let folder = prepared();
    let closed = folder.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    let everywhere = fs::write(closed.join("probe"), "").is_ok();
    let _ = fs::remove_file(closed.join("probe"));
    // Root may write there; not even root may make files in sysfs.
    let place = if everywhere { "/sys" } else { "closed" };
    for line in [
        format!("{TRAIN} -o PLACE/n.tamis"),
        "demo -o PLACE/d".into(),
        "generate digits --samples 5 -o PLACE".into(),
    ] {
        let line = line.replace("PLACE", place);
        assert!(fails(folder.path(), &line).contains("may write"), "{line}");
    }
}

/// A limit on the length of files stands for a disk that fills up while a file is being written.
#[test]
#[cfg(unix)]
fn a_file_that_cannot_be_finished_leaves_nothing() {
    let folder = prepared();
    let binary = env!("CARGO_BIN_EXE_tamis");
    for line in [
        "generate planted --samples 5000 --inputs 50 --hidden 1 --nnz 1 -o new/folder",
        "generate digits --samples 1000 -o new",
        "predict m.tamis --data p/X.npy -o o.npy",
        "demo -o new",
    ] {
        let before = listing(folder.path());
        let script = format!("trap '' XFSZ; ulimit -f 1 && exec {binary} {line}");
        let output = std::process::Command::new("sh")
            .current_dir(folder.path())
            .args(["-c", &script])
            .output()
            .unwrap();
        let (_, err) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{line}\n{err}");
        assert!(err.starts_with("error: cannot write"), "{line}\n{err}");
        assert_eq!(listing(folder.path()), before, "{line}");
    }
}

#[test]
#[cfg(target_os = "linux")]
#[ignore = "needs the right to mount a disk"]
fn a_full_disk_leaves_nothing() {
    let folder = prepared();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mount = |arguments: &[&str]| std::process::Command::new("mount").args(arguments).output();
    let mounted = mount(&["-t", "tmpfs", "-o", "size=64k", "tmpfs", disk.to_str().unwrap()]);
    assert!(mounted.unwrap().status.success());
    let checked = std::panic::catch_unwind(|| {
        ok(folder.path(), &format!("{TRAIN} -o disk/m.tamis -q"));
        let error = fails(
            folder.path(),
            "generate planted --samples 5000 --inputs 50 --hidden 1 --nnz 1 -o disk/new",
        );
        assert!(error.contains("free some space"), "{error}");
    });
    let unmounted = std::process::Command::new("umount").arg(&disk).status();
    assert!(unmounted.unwrap().success());
    checked.unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn failed_log_or_image_write_leaves_no_model() {
    let folder = prepared();
    for line in ["--log /dev/full", "--picture /dev/full", "--log l.jsonl --picture /dev/full"] {
        let error = fails(folder.path(), &format!("{TRAIN} -o n.tamis {line}"));
        assert!(error.contains("nothing was left behind"), "{error}");
    }
    let error = fails(folder.path(), &format!("{TRAIN} -o n.tamis --log missing/l.jsonl"));
    assert!(error.contains("mkdir"), "{error}");
}
