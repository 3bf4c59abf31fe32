//! Jobs that outlive their terminal: a store on disk, the submitter that has their commands run, and its protocol with other processes.
//! `docs/internals/jobs.md` has the design.
//!
//! | module | subject |
//! |---|---|
//! | [`model`] | jobs, commands, dependencies |
//! | [`directory`] | the files of a submitter, and its lock |
//! | [`kept`] | the jobs that are kept on disk |
//! | [`protocol`] | requests and answers |
//! | [`submitter`] | the process |
//! | [`connection`] | the client of its socket |

pub mod connection;
pub mod directory;
pub mod kept;
pub mod model;
pub mod protocol;
pub mod submitter;
