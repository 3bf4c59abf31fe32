//! Random numbers for identities, secrets and ids, from a generator per thread that the system seeds.

/// Reseeds the random number generator after `fork`. The child inherits its parent's state, as do its siblings: with equal secrets they
/// would take each other's results. Call it in the child's only thread; takes no lock. Aborts the process if the system has no random
/// numbers.
pub fn draw_anew() {
    if let Err(error) = rand::rng().reseed() {
        eprintln!("midflight: no random numbers after a fork: {error}");
        std::process::abort();
    }
}
