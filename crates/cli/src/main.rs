//! The `midflight` command.

fn main() -> std::process::ExitCode {
    midflight_cli::shell::main::<midflight_cli::Cli>()
}
