//! A model of the reads protocol, small enough to be searched exhaustively; `docs/internals/reads.md` describes both.
//!
//! | file | subject |
//! |---|---|
//! | `state` | what parties and messages hold |
//! | `world` | which steps are possible, and what each does |
//! | `switch`, `leader`, `raft`, `clocks` | the rules of the protocol, by party |
//! | `founding` | how a set begins, a model of its own |
//! | `applied`, `history` | what a log makes of the store; whether what clients saw is linearizable |
//! | `scope`, `scopes`, `planted` | what each search covers; the errors that must be refuted |
//! | `search`, `reduce`, `narrate` | the search, how it meets fewer states, what it says |

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
