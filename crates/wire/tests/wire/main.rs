//! The format: its three descriptions agree, its golden vectors hold, and its parser trusts nothing.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod agreement;
mod answers;
mod formats;
mod golden;
mod owned;
mod properties;
mod reads;
mod replicas;
mod replicas_control;
mod replicas_store;
