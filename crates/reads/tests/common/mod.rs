//! What the tests of the client share.

pub(crate) mod packets;
pub(crate) mod store;
