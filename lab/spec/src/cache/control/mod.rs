//! A model of the protocol between controllers and operators, for exhaustive search;
//! `docs/internals/cache-controller.md` describes both.
//!
//! | file | subject |
//! |---|---|
//! | `state` | parties, messages, requests |
//! | `keeper` | an operator's side |
//! | `controller`, `claim`, `ids` | a controller: orders, takeover, RSNode ids and labels |
//! | `requests` | requests and answers through operators |
//! | `world` | possible steps and their effects |
//! | `scope`, `planted` | what each search covers; errors that it must find |
//! | `search`, `narrate` | the search, its report |

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
