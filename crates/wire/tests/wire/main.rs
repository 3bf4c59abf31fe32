//! Tests of the formats: the descriptions agree, the golden packets are current, and the parsers reject malformed input.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod agreement;
mod answers;
mod cache;
mod cache_backend;
mod cache_control;
mod formats;
mod golden;
mod owned;
mod properties;
mod store;
