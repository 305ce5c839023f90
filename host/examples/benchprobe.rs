//! scratch
fn main() {
    let r = tamis_host::bench::run(&Default::default(), |_| {}).unwrap();
    println!("{}", serde_json::to_string_pretty(&r).unwrap());
}
