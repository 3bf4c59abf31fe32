//! A model of what controllers of replicas and operators say to each other, small enough to be searched exhaustively;
//! `docs/internals/replicas-controller.md` describes both.
//!
//! | file | subject |
//! |---|---|
//! | `state` | what parties, messages and requests hold |
//! | `keeper` | an operator's side |
//! | `controller`, `claim`, `ids` | a controller: its steps, taking over, RSNode ids and labels |
//! | `requests` | requests and answers that pass operators |
//! | `world` | which steps are possible, and what each does |
//! | `scope`, `planted` | what each search covers; the errors that must be found |
//! | `search`, `narrate` | the search, and what it says |

mod claim;
mod controller;
mod ids;
mod keeper;
#[cfg(test)]
mod lockstep;
mod narrate;
mod planted;
mod requests;
mod scope;
mod search;
mod state;
mod world;

pub use planted::Planted;
pub use scope::{Scope, all, with};
pub use search::{Refutation, Verdict, search};
