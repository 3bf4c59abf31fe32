//! Measures a replicated cache.

pub(crate) mod gets;
pub(crate) mod keys;
pub(crate) mod lab;
pub(crate) mod load;
