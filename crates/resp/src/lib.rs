//! RESP, the protocol of Redis' clients, for servers: versions 2 and 3, pipelines, and the commands that concern the connection only.
//!
//! A server is a [`Service`], which says what its commands do; [`serve`] gives a connection to it.
//!
//! **Order.** Replies come in the order of their requests. Of one connection's requests, those on different keys may be under way at the
//! same time and take effect in any order, as in a Redis Cluster; a request begins only when all earlier ones that write to its keys, or
//! whose keys it writes to, have ended.
//!
//! **Transactions.** Between MULTI and EXEC commands are only planned; then the service does all in one step.
//!
//! **Bounds.** The cost of a request is its arguments' bytes, and 64 for each. While a connection's requests without a reply have the cost
//! [`Bounds::cost`], or are [`Bounds::under_way`], or its client has not read [`Bounds::unread_bytes`] of replies, no more of its requests
//! are read. A request of a higher cost ends the connection. What a connection needs beyond 64 KiB comes from the [`Memory`] of all; if
//! none is left, the connection ends.

mod call;
mod connection;
mod memory;
mod pattern;
mod reply;
mod request;
mod session;
mod transaction;

pub use call::{Call, Task, number};
pub use connection::{Bounds, Service, serve};
pub use memory::{Held, Memory};
pub use pattern::fits;
pub use reply::{Reply, Version};
pub use request::{Parser, ProtocolError, cost};
