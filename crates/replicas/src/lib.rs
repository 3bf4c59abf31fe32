//! The replicas program: each read goes to the replica that will answer it soonest.
//!
//! | module | what is in it |
//! |---|---|
//! | [`client`] | reads in, one event for each out; through operators, or with a selector of its own |
//! | [`server`] | NetRS's side of a store |
//! | [`store`] | what an agent says to memcached or Redis, and how it reads the answers |
//! | [`keyspace`] | which servers have a key, and the id of that replica group |
//! | [`select`] | which of a key's replicas gets a read: one trait, and its selectors |
//! | [`rsnode`] | what runs beside an operator that selects for others |

pub mod client;
pub mod keyspace;
pub mod rsnode;
pub mod select;
pub mod server;
pub mod store;
