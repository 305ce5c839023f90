//! The kernels of C, which stand in `kernels.c`.

/// Every kernel as its name and its text, in the order in which they are written.
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    include_str!("kernels.c").split("\n//// ").skip(1).filter_map(|section| {
        let (name, about) = section.split_once('\n')?;
        about.split_once("////").map(|(_, text)| (name, text))
    })
}
