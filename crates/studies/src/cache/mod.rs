//! What measures a replicated cache.
//!
//! | file | subject |
//! |---|---|
//! | `load` | `midflight cache bench`: the command |
//! | `gets` | gets at a fixed rate, whatever becomes of those before |
//! | `keys` | the keys and values, and how keys are drawn |

pub(crate) mod gets;
pub(crate) mod keys;
pub mod load;
