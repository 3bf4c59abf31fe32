//! What measures a store: a load of clients, each of which waits for its answers, and the history of what they did and saw.

pub mod load;
mod worker;
