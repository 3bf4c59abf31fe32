//! Jobs that outlive their terminal: a store on the disk, the submitter that has their commands run, and what other processes of the
//! user say to it. `docs/internals/jobs.md` has the design.
//!
//! | module | subject |
//! |---|---|
//! | [`model`] | jobs, commands, dependencies |
//! | [`directory`] | where a submitter has its files, and that there is one |
//! | [`store`] | what is on the disk |
//! | [`protocol`] | requests and answers |
//! | [`submitter`] | the process |
//! | [`connection`] | the other side of its socket |

pub mod connection;
pub mod directory;
pub mod model;
pub mod protocol;
pub mod store;
pub mod submitter;
