//! Randomness from one seed, in streams that do not disturb each other: a draw more for one purpose changes no
//! draw of another.

use rand_pcg::Pcg64;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// Delays and faults of the network.
    Network = 1,
    /// Identities, epochs, secrets and seeds of nodes.
    Nodes = 2,
}

pub(crate) fn stream(seed: u64, purpose: Purpose) -> Pcg64 {
    Pcg64::new(u128::from(seed), purpose as u128)
}
