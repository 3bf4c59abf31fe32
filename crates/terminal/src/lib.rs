//! Output on a terminal, in the same form for the command and the studies.
//!
//! | module | subject |
//! |---|---|
//! | [`envelope`] | results: names, values and units, as JSON or for people |
//! | [`columns`], [`units`] | text in columns; times and large numbers for people |
//! | [`progress`] | progress bars |
//! | [`stdout`], [`stderr`], [`files`] | output that may fail |
//! | [`signals`] | SIGINT, SIGTERM, SIGPIPE |
//! | [`machine`] | this machine |
//! | [`usage`] | exit codes, and the errors that they stand for |
//! | [`store`] | a store: which one, and a client of it |
//! | [`cache`] | a cache: which one, and a client of it |
//! | [`switches`] | a running switch: a client of it, and its status |
//! | [`views`] | a running switch as those see it who watch it |

// First, for its macros.
#[macro_use]
pub mod stderr;

pub mod cache;
pub mod columns;
pub mod envelope;
pub mod files;
pub mod machine;
pub mod progress;
pub mod signals;
pub mod stdout;
pub mod store;
pub mod switches;
pub mod units;
pub mod usage;
pub mod views;
