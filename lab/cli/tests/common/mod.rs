//! `midflight-lab` as processes, on this machine or in labs.

#![allow(dead_code, reason = "each test binary uses what it needs")]
#![allow(clippy::unwrap_used, reason = "tests may")]
#![allow(unused_imports, reason = "each test binary uses what it needs")]

#[path = "../../../../crates/cli/tests/common/mod.rs"]
mod of_product;

pub(crate) use midflight_net::testing::labs_work;
pub(crate) use of_product::*;

use midflight::Client;
use midflight_net::{Lab, Place};
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

/// The command with these arguments at a place of a lab.
pub(crate) fn midflight_at(lab: &Lab, place: Place, args: &[impl AsRef<OsStr>]) -> Command {
    quiet(lab.command(place, MIDFLIGHT), args)
}

pub(crate) fn status_at(lab: &Lab, switch: &Running) -> serde_json::Value {
    lab.within(Place::Switch, || status(&switch.http())).unwrap()
}

/// A client in this process, whose sockets are at a place of a lab.
pub(crate) fn client_at(lab: &Lab, place: Place, switch: SocketAddr) -> Client {
    lab.within(place, || Client::builder().switch(switch).connect_timeout(PATIENCE).connect().unwrap()).unwrap()
}

/// A load on a store, with its history in a file. Ends after its time, or by SIGINT.
pub(crate) fn load(store: &Store, seconds: &str, history: &str) -> Child {
    let args = ["load", "store", "--config", &store.config, "--seconds", seconds, "--clients", "6", "--keys", "30"];
    let args = [&args[..], &["--reads", "0.5", "--history", history, "--json"]].concat();
    midflight(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}
