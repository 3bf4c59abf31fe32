//! Servers, and the few of them that have the same key.

use thiserror::Error;

/// A server, as its place in a table without gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Server(pub u16);

/// Replicas of a key at most.
pub const CANDIDATES_MAX: usize = 8;

/// The servers of which one is chosen: 1 to [`CANDIDATES_MAX`], all different.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidates {
    servers: [Server; CANDIDATES_MAX],
    count: u8,
}

/// Why servers are no candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CandidatesError {
    /// Nothing can be chosen.
    #[error("no server")]
    None,
    /// More than there is room for.
    #[error("{0} servers; at most {CANDIDATES_MAX}")]
    TooMany(usize),
    /// It would be chosen more often than the others.
    #[error("server {} twice", .0.0)]
    Twice(Server),
}

impl Candidates {
    /// Checks them.
    ///
    /// # Errors
    /// None, too many, or one of them twice.
    pub fn new(servers: &[Server]) -> Result<Self, CandidatesError> {
        if servers.is_empty() {
            return Err(CandidatesError::None);
        }
        let mut candidates = Self { servers: [Server(0); CANDIDATES_MAX], count: servers.len() as u8 };
        let room = candidates.servers.get_mut(..servers.len()).ok_or(CandidatesError::TooMany(servers.len()))?;
        room.copy_from_slice(servers);
        match servers.iter().enumerate().find(|(i, server)| servers[..*i].contains(server)) {
            Some((_, server)) => Err(CandidatesError::Twice(*server)),
            None => Ok(candidates),
        }
    }

    /// In the order in which they were given.
    #[must_use]
    pub fn servers(&self) -> &[Server] {
        // The bound is `new`'s; this way the compiler sees it too.
        &self.servers[..usize::from(self.count).min(CANDIDATES_MAX)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_to_eight_different_servers_are_candidates() {
        let servers: Vec<Server> = (0..9).map(Server).collect();
        assert_eq!(Candidates::new(&servers[..8]).unwrap().servers(), &servers[..8]);
        assert_eq!(Candidates::new(&servers), Err(CandidatesError::TooMany(9)));
        assert_eq!(Candidates::new(&[]), Err(CandidatesError::None));
        assert_eq!(Candidates::new(&[Server(1), Server(2), Server(1)]), Err(CandidatesError::Twice(Server(1))));
    }
}
