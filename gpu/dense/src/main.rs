//! The command `tamis`, whose dense networks are trained and scored on a GPU with `--device gpu`.

/// Counts the bytes that are allocated: the experiments report the peak of each training.
#[global_allocator]
static HEAP: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;

fn main() -> std::process::ExitCode {
    tamis_host::train::dense::install(tamis_dense::gpu);
    tamis_host::cli::main()
}
