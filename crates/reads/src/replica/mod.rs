//! A replica.
