//! Shared by the client's tests.

pub(crate) mod packets;
