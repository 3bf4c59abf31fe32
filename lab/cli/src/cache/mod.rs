//! What measures a replicated cache.
//!
//! | file | subject |
//! |---|---|
//! | `load` | `midflight-lab load cache`: the command |
//! | `gets` | gets at a fixed rate, whatever becomes of those before |
//! | `keys` | the keys and values, and how keys are drawn |
//! | `lab` | a cache in a lab that is a small tree |

pub(crate) mod gets;
pub(crate) mod keys;
pub(crate) mod lab;
pub(crate) mod load;
