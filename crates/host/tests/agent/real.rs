//! An agent with real memcached and Redis. SKIPPED with a message where they are not installed.

use crate::asker::{Asker, Back, Stream, bytes_of, get, set};
use crate::{options, start, wait_until};
use midflight_host::cache::agent::{Agent, AgentOptions};
use midflight_wire::cache::backend::{BackendAnswer, BackendRequest};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

struct Real {
    child: Child,
    directory: PathBuf,
    urls: Vec<String>,
}

impl Drop for Real {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn is_installed(program: &str, package: &str) -> bool {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|directory| directory.join(program).is_file()));
    if !found {
        eprintln!("!!! SKIPPED: {program} is not installed (package {package})");
    }
    found
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn directory(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("midflight-agent-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

fn run(program: &str, arguments: &[&str], directory: &Path) -> Child {
    let quiet = || Stdio::from(std::fs::File::create(directory.join("log")).unwrap());
    Command::new(program).args(arguments).current_dir(directory).stdout(quiet()).stderr(quiet()).spawn().unwrap()
}

/// By TCP or by a Unix socket; it cannot do both at once.
fn memcached(name: &str, port: u16, is_unix: bool) -> Option<Real> {
    if !is_installed("memcached", "memcached") {
        return None;
    }
    let directory = directory(name);
    let (socket, port_text) = (directory.join("socket"), port.to_string());
    let mut arguments = vec!["-U", "0", "-m", "64", "-u", "nobody"];
    if is_unix {
        arguments.extend(["-s", socket.to_str().unwrap(), "-a", "777"]);
        // memcached becomes another user, which must be able to create the socket.
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(&directory, all).unwrap();
    } else {
        arguments.extend(["-l", "127.0.0.1", "-p", &port_text]);
    }
    let child = run("memcached", &arguments, &directory);
    let url =
        if is_unix { format!("memcached://{}", socket.display()) } else { format!("memcached://127.0.0.1:{port}") };
    let is_there =
        || if is_unix { UnixStream::connect(&socket).is_ok() } else { TcpStream::connect(("127.0.0.1", port)).is_ok() };
    wait_until("memcached is there", is_there, || std::fs::read_to_string(directory.join("log")).unwrap());
    Some(Real { child, directory, urls: vec![url] })
}

/// By TCP, with two databases, and by a Unix socket.
fn redis(name: &str) -> Option<Real> {
    if !is_installed("redis-server", "redis-server") {
        return None;
    }
    let (directory, port) = (directory(name), free_port());
    let (socket, port_text) = (directory.join("socket"), port.to_string());
    let arguments =
        ["--port", &port_text, "--bind", "127.0.0.1", "--unixsocket", socket.to_str().unwrap(), "--save", ""];
    let child = run("redis-server", &arguments, &directory);
    let is_there = || TcpStream::connect(("127.0.0.1", port)).is_ok() && UnixStream::connect(&socket).is_ok();
    wait_until("Redis is there", is_there, || std::fs::read_to_string(directory.join("log")).unwrap());
    let tcp = format!("redis://127.0.0.1:{port}");
    let urls = vec![tcp.clone(), format!("{tcp}/3"), format!("redis+unix://{}", socket.display())];
    Some(Real { child, directory, urls })
}

fn agent(url: &str) -> Agent {
    start(AgentOptions { backend_timeout: Duration::from_secs(5), ..options(url) })
}

fn value(value: &[u8], flags: u32) -> Vec<u8> {
    bytes_of(&BackendAnswer::Value { value, flags })
}

fn done() -> Vec<u8> {
    bytes_of(&BackendAnswer::Done)
}

fn missing() -> Vec<u8> {
    bytes_of(&BackendAnswer::Missing)
}

fn works(url: &str, flags: u32) {
    let agent = agent(url);
    assert!(agent.report().backend_is_gone.is_none(), "{url}: {:?}", agent.report());
    let (mut stream, mut asker) = (Stream::connect(agent.local_addr()), Asker::new(agent.local_addr()));
    assert_eq!(asker.get("key"), missing(), "{url}");
    let every_byte: Vec<u8> = (0..=255).chain(*b"\r\nEND\r\n$3\r\n").collect();
    for bytes in [&b"Ada"[..], b"", &every_byte] {
        let set = BackendRequest::Set { key: b"key", value: bytes, flags, expires_s: 0 };
        assert_eq!(stream.ask(&set), done(), "{url}");
        assert_eq!(asker.get("key"), value(bytes, flags), "{url}");
        assert_eq!(stream.ask(&get("key")), value(bytes, flags), "{url}");
    }
    // memcached's items have 1 MB including their metadata.
    let long: Vec<u8> = (0..1_000_000).map(|at| (at * 31 % 251) as u8).collect();
    assert_eq!(stream.ask(&set("long", &long)), done(), "{url}");
    assert_eq!(asker.get("long"), bytes_of(&BackendAnswer::Long { length: 1_000_000 }), "{url}");
    assert!(stream.ask(&get("long")) == value(&long, 0), "{url}");
    let longest_key = "k".repeat(250);
    assert_eq!(stream.ask(&set(&longest_key, b"1")), done(), "{url}");
    assert_eq!(asker.get(&longest_key), value(b"1", 0), "{url}");
    assert_eq!(stream.ask(&set("kéy", b"2")), done(), "{url}: a key of any letters");
    assert_eq!(asker.get("kéy"), value(b"2", 0), "{url}");
    for expires_s in [1, 40 * 86_400, u32::MAX] {
        let key = format!("expires-{expires_s}");
        let set = BackendRequest::Set { key: key.as_bytes(), value: b"3", flags: 0, expires_s };
        assert_eq!(stream.ask(&set), done(), "{url}");
        assert_eq!(asker.get(&key), value(b"3", 0), "{url}: {expires_s}");
    }
    assert_eq!(stream.ask(&BackendRequest::Delete { key: b"key" }), done(), "{url}");
    assert_eq!(stream.ask(&BackendRequest::Delete { key: b"key" }), missing(), "{url}");
    assert_eq!(asker.get("key"), missing(), "{url}");
    wait_until("it expires", || asker.get("expires-1") == missing(), || url.into());
    let counters = agent.report().counters;
    let wrong = [counters.backend_garbage, counters.backend_gone, counters.backend_timeouts, counters.backend_refused];
    assert_eq!(wrong, [0; 4], "{url}");
}

#[test]
fn memcached_works() {
    let Some(backend) = memcached("tcp", free_port(), false) else { return };
    works(&backend.urls[0], 0xFFFF_FFFF);
}

#[test]
fn memcached_works_by_a_unix_socket() {
    let Some(backend) = memcached("unix", 0, true) else { return };
    works(&backend.urls[0], 42);
}

#[test]
fn a_value_that_memcached_does_not_take_is_refused_in_its_words() {
    let Some(backend) = memcached("large", free_port(), false) else { return };
    let agent = agent(&backend.urls[0]);
    let mut stream = Stream::connect(agent.local_addr());
    assert_eq!(
        stream.refusal(&set("key", &vec![b'x'; 1 << 20])),
        "the backend says SERVER_ERROR object too large for cache"
    );
    assert_eq!(stream.ask(&set("key", b"1")), done());
}

#[test]
fn memcached_may_start_again() {
    let port = free_port();
    let Some(backend) = memcached("again", port, false) else { return };
    let agent = start(options(&backend.urls[0]));
    let mut asker = Asker::new(agent.local_addr());
    assert_eq!(Stream::connect(agent.local_addr()).ask(&set("key", b"1")), done());
    assert_eq!(asker.get("key"), value(b"1", 0));
    drop(backend);
    assert_eq!(asker.ask(&get("key")), Back::Refused);
    wait_until("it is gone", || agent.report().backend_is_gone.is_some(), || format!("{:?}", agent.report()));
    let _backend = memcached("again", port, false).unwrap();
    wait_until("it is there", || agent.report().backend_is_gone.is_none(), || format!("{:?}", agent.report()));
    assert_eq!(asker.get("key"), missing(), "a cache forgets");
}

#[test]
fn redis_works() {
    let Some(backend) = redis("works") else { return };
    for url in &backend.urls {
        // The first and the third URL are the same database.
        works(url, 0);
        let agent = agent(url);
        let mut stream = Stream::connect(agent.local_addr());
        for key in ["long", "kéy", &"k".repeat(250), "expires-3456000", "expires-4294967295"] {
            assert_eq!(stream.ask(&BackendRequest::Delete { key: key.as_bytes() }), done(), "{key}");
        }
    }
}

#[test]
fn databases_of_redis_are_apart() {
    let Some(backend) = redis("databases") else { return };
    let (first, fourth) = (agent(&backend.urls[0]), agent(&backend.urls[1]));
    assert_eq!(Stream::connect(first.local_addr()).ask(&set("key", b"1")), done());
    assert_eq!(Asker::new(fourth.local_addr()).get("key"), missing());
    assert_eq!(Asker::new(first.local_addr()).get("key"), value(b"1", 0));
}

#[test]
fn a_key_of_redis_that_is_no_string_is_refused() {
    let Some(backend) = redis("list") else { return };
    let port = backend.urls[0].rsplit(':').next().unwrap();
    let mut redis = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    std::io::Write::write_all(&mut redis, b"*3\r\n$5\r\nLPUSH\r\n$4\r\nlist\r\n$1\r\n1\r\n").unwrap();
    std::io::Read::read_exact(&mut redis, &mut [0; 4]).unwrap();
    let agent = agent(&backend.urls[0]);
    assert_eq!(Asker::new(agent.local_addr()).ask(&get("list")), Back::Refused);
    let refusal = Stream::connect(agent.local_addr()).refusal(&get("list"));
    assert!(refusal.starts_with("the backend says WRONGTYPE"), "{refusal}");
    assert_eq!(agent.report().counters.backend_refused, 2);
}
