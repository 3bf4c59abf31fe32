//! The cache program: sends each read to the replica that will answer it soonest.
//!
//! | module | content |
//! |---|---|
//! | [`client`] | submits reads through an operator, or with its own selector |
//! | [`server`] | the NetRS side of a backend |
//! | [`backend`] | the protocols of memcached and Redis |
//! | [`keyspace`] | maps keys to replica groups and servers |
//! | [`select`] | the selectors |
//! | [`rsnode`] | an operator's selector process |
//! | `control` | which operators select: the controller, and the keepers that obey it (feature `control`) |

pub mod backend;
pub mod client;
#[cfg(feature = "control")]
pub mod control;
pub mod keyspace;
pub mod rsnode;
pub mod select;
pub mod server;
