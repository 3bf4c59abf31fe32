//! Random numbers: identities, secrets and ids. They come from a generator of each thread, which the system seeds.

/// Draws other numbers from here on, in a child of a fork: it has copies of its parent's generators, and so have its siblings.
/// With the same secrets, they would take each other's results for their own. The thread that has forked, the child's only one,
/// calls this; it waits for no lock.
///
/// Ends the process if the system has no random numbers, rather than go on with somebody else's.
pub fn draw_anew() {
    if let Err(error) = rand::rng().reseed() {
        eprintln!("midflight: no random numbers after a fork: {error}");
        std::process::abort();
    }
}
