//! A model of the store's protocol for exhaustive search; `docs/internals/store.md` describes the protocol and the model.
//!
//! | file | subject |
//! |---|---|
//! | `state` | parties and messages |
//! | `world` | possible steps and their effects |
//! | `switch`, `leader`, `raft`, `clocks` | the rules, by party |
//! | `founding` | how a set begins, a separate model |
//! | `applied`, `history` | the store that a log gives; linearizability |
//! | `scope`, `scopes`, `planted` | what each search covers; errors that it must refute |
//! | `search`, `reduce`, `narrate` | the search, its state reduction, its report |

mod applied;
mod clocks;
mod founding;
mod history;
mod leader;
mod narrate;
mod planted;
mod raft;
mod reduce;
mod scope;
mod scopes;
mod search;
mod state;
mod switch;
mod world;

pub use planted::Planted;
pub use scope::{ReplyCheck, Scope};
pub use scopes::{all, with};
pub use search::{Refutation, Verdict, search};
