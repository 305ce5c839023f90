//! The command `tamis`; everything is in [`tamis_host::cli`].

fn main() -> std::process::ExitCode {
    tamis_host::cli::main()
}
