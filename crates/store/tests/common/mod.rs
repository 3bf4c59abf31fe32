//! Shared by the client's tests.

pub(crate) mod packets;
pub(crate) mod store;
