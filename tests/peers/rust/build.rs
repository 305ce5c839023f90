//! Points at the models that tests/peers/run.sh has made, in the folder PEERS.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-env-changed=PEERS");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    let work = PathBuf::from(
        env::var("PEERS").expect("tests/peers/run.sh sets PEERS to the folder of its models"),
    );
    let file = |name: &str| {
        let path = work.join(name);
        println!("cargo:rerun-if-changed={}", path.display());
        path
    };
    let mut text = String::new();
    for (module, name) in [
        ("tables", "tamis_int8.rs"),
        ("straight", "tamis_straight.rs"),
        ("floats", "tamis_f32.rs"),
        ("dense", "dense.rs"),
    ] {
        text += &format!("#[path = {:?}]\npub mod {module};\n", file(name));
    }
    let net = "#[microflow_macros::model(NAME)]\npub struct MicroFlow;\n";
    text += &net.replace("NAME", &format!("{:?}", file("dense.tflite")));
    text += &format!(
        "pub static FILE: &[u8] = tamis::include_model!({:?});\n",
        file("tamis_int8.tamis")
    );
    fs::write(out.join("models.rs"), text).expect("OUT_DIR is writable");
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    println!("cargo:rustc-link-search={}", Path::new(&here).display());
    for arg in ["--nmagic", "-Tlink.x"] {
        println!("cargo:rustc-link-arg-bins={arg}");
    }
}
