//! The client, driven by hand.
