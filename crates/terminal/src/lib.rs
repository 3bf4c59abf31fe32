//! Terminal output, in the same form for all commands.
//!
//! | module | subject |
//! |---|---|
//! | [`envelope`] | results: names, values and units, as JSON or as text |
//! | [`columns`], [`units`] | text in columns; times and large numbers |
//! | [`progress`] | progress bars |
//! | [`stdout`], [`stderr`], [`files`] | output that may fail |
//! | [`signals`] | SIGINT, SIGTERM, SIGPIPE |
//! | [`machine`] | this machine |
//! | [`usage`] | exit codes and their errors |
//! | [`store`] | options that name a store, and a client of it |
//! | [`cache`] | options that name a cache, and a client of it |
//! | [`switches`] | a running switch: a client of it, and its status |
//! | [`views`] | a running switch as its viewers see it |

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
