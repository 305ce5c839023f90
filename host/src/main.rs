//! The command `tamis`; everything is in [`tamis_host::cli`].

/// Counts the bytes that are allocated: the experiments report the peak of each training.
#[global_allocator]
static HEAP: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;

fn main() -> std::process::ExitCode {
    tamis_host::cli::main()
}
