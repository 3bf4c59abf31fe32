//! Which users may submit commands to a switch on loopback, where they run as its user.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{CommandOutput, Directory, Running, run, run_as_nobody, run_with, skip, spawn_with, wait_until};
use rustix::process::geteuid;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// Whether an unprivileged user can run it here.
fn can_be_nobody() -> bool {
    if !geteuid().is_root() {
        skip("other users, which only root can be");
        return false;
    }
    run_as_nobody(&["--version"]).is_some()
}

fn nobody_submits(switch: SocketAddr) -> CommandOutput {
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

#[track_caller]
fn assert_not_served(args: &[&str]) {
    let said = run_as_nobody(&[args, &["--timeout", "1s"]].concat()).unwrap();
    assert!(!matches!(said.code, Some(0 | 3)) && said.stdout.is_empty(), "{args:?}: {said:?}");
}

/// The store's number, by which its replicas recognise each other.
fn number_of(directory: &Directory, data: &str) -> u64 {
    std::fs::read_to_string(directory.path(&format!("{data}/cluster"))).unwrap().trim().parse().unwrap()
}

#[test]
fn t13_up_store_takes_nothing_from_other_users() {
    let directory = Directory::new("users-store");
    let start = |data: &str, listen: &str| {
        let up = ["up", "--store", "--listen", listen, "--http", "off", "--data", &directory.path(data)];
        Running::start(&up)
    };
    let up = start("one", &common::free_address().to_string());
    let switch = up.address().to_string();
    let said = run(&["store", "put", "secret", "value", "--switch", &switch]);
    assert_eq!(said.code, Some(0), "{said:?}");
    if can_be_nobody() {
        assert_not_served(&["store", "get", "secret", "--switch", &switch]);
        assert_not_served(&["store", "put", "secret", "other", "--switch", &switch]);
        for file in ["", "/1", "/1/identity", "/cluster"] {
            let open = std::fs::metadata(directory.path(&format!("one{file}"))).unwrap();
            assert_eq!(std::os::unix::fs::MetadataExt::mode(&open) & 0o077, 0, "{file}");
        }
    }
    let number = number_of(&directory, "one");
    drop(start("two", "127.0.0.1:0"));
    assert!(![0, 1, number].contains(&number_of(&directory, "two")), "drawn at random");
    drop(up);
    let _up = start("one", &switch);
    assert_eq!(number_of(&directory, "one"), number, "kept with its data");
    let said = run(&["store", "get", "secret", "--switch", &switch]);
    assert_eq!((said.code, said.stdout.trim()), (Some(0), "value"), "{said:?}");
}

#[test]
fn t13_redis_clients_of_other_users_are_not_served() {
    let redis = common::free_address();
    let args = ["up", "--store", "--listen", "127.0.0.1:0", "--http", "off", "--redis", &redis.to_string()];
    let _up = Running::start(&args);
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{}; printf 'PING\\r\\nQUIT\\r\\n' >&3; cat <&3", redis.port());
    let hears = |user: Option<u32>| {
        let mut client = Command::new("bash");
        if let Some(user) = user {
            client.uid(user).gid(user).current_dir("/");
        }
        String::from_utf8(client.args(["-c", &script]).output().unwrap().stdout).unwrap()
    };
    assert_eq!(hears(None), "+PONG\r\n+OK\r\n");
    if can_be_nobody() {
        assert_eq!(hears(Some(65_534)), "-NOPERM only the user who started this gateway is served, and root\r\n");
    }
}

/// A free port whose successor by `offset` this process listens on, as another user could.
fn held_port(offset: u16) -> (u16, TcpListener) {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port() - offset;
        if UdpSocket::bind(("127.0.0.1", port)).is_ok() {
            return (port, listener);
        }
    }
}

#[test]
fn t13_up_store_tells_its_number_to_no_holder_of_a_replicas_port() {
    let directory = Directory::new("users-store-port");
    let (port, holder) = held_port(31); // the links of the third replica
    let (listen, data) = (format!("127.0.0.1:{port}"), directory.path("data"));
    let said = run(&["up", "--store", "--listen", &listen, "--http", "off", "--data", &data]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains(&holder.local_addr().unwrap().to_string()), "{said:?}");
    holder.set_nonblocking(true).unwrap();
    assert!(holder.accept().is_err(), "a replica has connected, and said the number");
}

#[test]
fn a_store_without_its_number_is_refused() {
    let directory = Directory::new("users-store-number");
    let listen = common::free_address().to_string();
    let up = ["up", "--store", "--listen", &listen, "--http", "off", "--data", &directory.path("data")];
    drop(Running::start(&up));
    std::fs::remove_file(directory.path("data/cluster")).unwrap();
    let said = run(&up);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("data/cluster is missing") && said.stderr.contains("restore it"), "{said:?}");
}

#[test]
fn t13_up_cache_takes_nothing_from_other_users() {
    if std::process::Command::new("memcached").arg("-V").output().is_err() {
        return common::skip("a cache: there is no memcached");
    }
    if !can_be_nobody() {
        return;
    }
    let up = Running::start(&["up", "--cache", "--listen", "127.0.0.1:0", "--http", "off"]);
    let operator = up.address().to_string();
    let said = run(&["cache", "set", "secret", "value", "--operator", &operator]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let long = "x".repeat(100_000);
    let said = run_with(&["cache", "set", "long", "-", "--operator", &operator], &long);
    assert_eq!(said.code, Some(0), "over a stream: {said:?}");
    assert_not_served(&["cache", "get", "secret", "--operator", &operator]);
    assert_not_served(&["cache", "get", "long", "--operator", &operator]);
    assert_not_served(&["cache", "set", "secret", "other", "--operator", &operator]);
    let said = run(&["cache", "get", "secret", "--operator", &operator]);
    assert_eq!((said.code, said.stdout.trim()), (Some(0), "value"), "{said:?}");
}
