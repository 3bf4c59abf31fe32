//! Whose commands a switch on loopback takes, where they run as its user.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Directory, Running, Said, run, run_as_nobody, skip, spawn_with, wait_until};
use rustix::process::geteuid;
use std::net::SocketAddr;
use std::process::Child;

/// Whether a user who may do little can run the command here.
fn can_be_nobody() -> bool {
    if !geteuid().is_root() {
        skip("other users, which only root can be");
        return false;
    }
    run_as_nobody(&["--version"]).is_some()
}

/// Another user submits a command line.
fn nobody_submits(switch: SocketAddr) -> Said {
    run_as_nobody(&["submit", "exec", "id -u", "--switch", &switch.to_string(), "--timeout", "1s"]).unwrap()
}

fn up(more: &[&str]) -> Running {
    Running::start(&[&["up", "--listen", "127.0.0.1:0", "--http", "off", "--slots", "1"], more].concat())
}

#[test]
fn t13_up_takes_nothing_from_other_users() {
    if !can_be_nobody() {
        return;
    }
    let up = up(&[]);
    let said = nobody_submits(up.address());
    assert!(said.code != Some(0) && said.stdout.is_empty(), "{said:?}");
    let said = run(&["submit", "exec", "id -u", "--switch", &up.address().to_string()]);
    assert_eq!((said.code, said.stdout.trim()), (Some(0), "0"), "{said:?}");
}

#[test]
fn up_takes_commands_from_other_users_if_it_is_told_to() {
    if !can_be_nobody() {
        return;
    }
    let up = up(&["--any-user"]);
    let said = nobody_submits(up.address());
    assert_eq!((said.code, said.stdout.trim()), (Some(0), "0"), "{said:?}");
}

/// The UDP addresses of a process on loopback.
fn addresses(child: &Child) -> Vec<SocketAddr> {
    let process = procfs::process::Process::new(i32::try_from(child.id()).unwrap()).unwrap();
    let sockets: Vec<u64> = process.fd().unwrap().flatten().filter_map(|fd| socket(&fd.target)).collect();
    let all = procfs::net::udp().unwrap().into_iter();
    all.filter(|entry| sockets.contains(&entry.inode)).map(|entry| entry.local_address).collect()
}

fn socket(target: &procfs::process::FDTarget) -> Option<u64> {
    match target {
        procfs::process::FDTarget::Socket(inode) => Some(*inode),
        _ => None,
    }
}

#[test]
fn t13_map_takes_nothing_from_other_users() {
    if !can_be_nobody() {
        return;
    }
    let directory = Directory::new("users");
    let started = directory.path("started");
    let mut map = spawn_with(&["map", "--quiet", "--", &format!("touch {started}; sleep 60; echo")], "1\n");
    wait_until("the command runs", || std::fs::exists(&started).unwrap());
    let addresses = addresses(&map);
    assert!(addresses.len() >= 3, "of switch, executor, client: {addresses:?}");
    for address in addresses {
        let said = nobody_submits(address);
        assert!(said.code != Some(0) && said.stdout.is_empty(), "{address}: {said:?}");
    }
    map.kill().unwrap();
    map.wait().unwrap();
}
