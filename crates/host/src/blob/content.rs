//! The bytes of a blob, in pieces in memory or in files.

use crate::disk::spill::SpillFile;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Content(Vec<Piece>);

#[derive(Debug)]
pub(crate) enum Piece {
    Memory(Arc<Vec<u8>>),
    File(SpillFile),
}

impl Content {
    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.0
    }

    pub(crate) fn len(&self) -> u64 {
        self.0.iter().map(Piece::len).sum()
    }

    pub(crate) fn in_memory(&self) -> usize {
        self.0.iter().map(Piece::in_memory).sum()
    }
}

impl Piece {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(file) => file.len(),
        }
    }

    fn in_memory(&self) -> usize {
        match self {
            Self::Memory(bytes) => bytes.len(),
            Self::File(_) => 0,
        }
    }
}

impl From<Arc<Vec<u8>>> for Content {
    fn from(bytes: Arc<Vec<u8>>) -> Self {
        Self(vec![Piece::Memory(bytes)])
    }
}

impl From<Vec<Piece>> for Content {
    fn from(pieces: Vec<Piece>) -> Self {
        Self(pieces)
    }
}
