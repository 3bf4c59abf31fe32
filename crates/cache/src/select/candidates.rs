use thiserror::Error;

/// A server, by its index in a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Server(pub u16);

/// Bound on the replicas of a key.
pub const CANDIDATES_MAX: usize = 8;

/// The servers to choose from: 1 to [`CANDIDATES_MAX`], all different.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidates {
    servers: [Server; CANDIDATES_MAX],
    count: u8,
}

/// Why candidates are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CandidatesError {
    /// No server.
    #[error("no server")]
    None,
    /// More than [`CANDIDATES_MAX`].
    #[error("{0} servers; at most {CANDIDATES_MAX}")]
    TooMany(usize),
    /// A server is listed twice; it would be chosen too often.
    #[error("server {} twice", .0.0)]
    Twice(Server),
}

impl Candidates {
    /// Checks the servers.
    ///
    /// # Errors
    /// No server, too many, or one of them twice.
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

    /// In the order given.
    #[must_use]
    pub fn servers(&self) -> &[Server] {
        // Repeats `new`'s bound for the compiler.
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
