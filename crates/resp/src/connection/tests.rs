use super::*;
use midflight_connections::{Connections, listen};
use std::io::{Read, Write};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// GET and SET of nothing. Each takes a permit, and notes when it begins.
struct Slow {
    permits: Semaphore,
    begun: Mutex<Vec<String>>,
    ended: AtomicUsize,
    password: Option<&'static [u8]>,
}

impl Service for Slow {
    type Plan = String;
    type Watched = Mutex<Vec<Bytes>>;

    fn plan(&self, call: &Call) -> Option<Result<String, Reply>> {
        (call.name() == "GET").then(|| call.exactly().map(|[key]| key.escape_ascii().to_string()))
    }

    fn transact(
        self: &Arc<Self>,
        plans: Vec<String>,
        keys: Vec<Bytes>,
        watched: Arc<Self::Watched>,
    ) -> Result<Task, Reply> {
        let watched = watched.lock().unwrap().len();
        let all = format!("{} watches {} of {}", plans.join(" "), watched, keys.len());
        Ok(Task::at_once(Reply::Array(vec![Reply::text(all)])))
    }

    fn watch(self: &Arc<Self>, keys: Vec<Bytes>, watched: Arc<Self::Watched>) -> Task {
        watched.lock().unwrap().extend(keys);
        Task::at_once(Reply::OK)
    }

    fn password(&self) -> Option<&[u8]> {
        self.password
    }

    fn call(self: &Arc<Self>, call: &Call) -> Option<Result<Task, Reply>> {
        let writes = match call.name() {
            "GET" => false,
            "SET" => true,
            "BIG" => false,
            _ => return None,
        };
        let reply = if call.name() == "BIG" { Reply::text("x".repeat(1 << 20)) } else { Reply::OK };
        let (service, name) = (Arc::clone(self), call.name().to_owned());
        Some(call.exactly().map(|[key]| {
            let said = format!("{name} {}", key.escape_ascii());
            Task::new([key], writes, async move {
                service.begun.lock().unwrap().push(said);
                if let Ok(permit) = service.permits.acquire().await {
                    permit.forget();
                }
                service.ended.fetch_add(1, Relaxed);
                reply
            })
        }))
    }
}

impl Slow {
    fn begun(&self) -> Vec<String> {
        std::mem::take(&mut self.begun.lock().unwrap())
    }
}

struct Served {
    _runtime: tokio::runtime::Runtime,
    service: Arc<Slow>,
    client: std::net::TcpStream,
}

impl Served {
    fn new(permits: usize, bounds: Bounds) -> Self {
        Self::with(permits, bounds, None, Memory::new(1 << 30))
    }

    fn with(permits: usize, bounds: Bounds, password: Option<&'static [u8]>, memory: Arc<Memory>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let service = Arc::new(Slow {
            permits: Semaphore::new(permits),
            begun: Mutex::default(),
            ended: AtomicUsize::new(0),
            password,
        });
        let listener = listen(([127, 0, 0, 1], 0).into()).unwrap();
        let address = listener.local_addr().unwrap();
        let served = Arc::clone(&service);
        runtime.spawn(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            let connections = Connections::new(10, Duration::from_secs(10));
            let one = |stream, place: ConnectionPlace| {
                let (service, memory) = (Arc::clone(&served), Arc::clone(&memory));
                async move { drop(serve(stream, &place, &service, bounds, &memory).await) }
            };
            connections.accept(&listener, b"", one).await
        });
        let client = std::net::TcpStream::connect(address).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Self { _runtime: runtime, service, client }
    }

    fn send(&mut self, text: &str) {
        self.client.write_all(text.as_bytes()).unwrap();
    }

    fn reads(&mut self, text: &str) {
        let mut bytes = vec![0; text.len()];
        self.client.read_exact(&mut bytes).unwrap();
        assert_eq!(String::from_utf8_lossy(&bytes), text);
    }

    fn waits_for(&self, begun: &[&str]) {
        let mut seen = Vec::new();
        for _ in 0..1_000 {
            seen.extend(self.service.begun());
            if seen == begun {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("{seen:?} have begun, not {begun:?}");
    }
}

#[test]
fn a_request_waits_for_earlier_ones_of_its_keys_only() {
    let mut served = Served::new(0, Bounds::default());
    served.send("GET a\r\nGET a\r\nSET b\r\nGET c\r\nGET b\r\nGET d\r\n");
    served.waits_for(&["GET a", "GET a", "SET b", "GET c"]);
    served.service.permits.add_permits(3);
    served.reads("+OK\r\n+OK\r\n+OK\r\n");
    served.waits_for(&["GET b", "GET d"]);
    served.send("PING\r\n");
    served.service.permits.add_permits(3);
    served.reads("+OK\r\n+OK\r\n+OK\r\n+PONG\r\n");
}

#[test]
fn no_more_than_the_bound_is_under_way() {
    let mut served = Served::new(0, Bounds { under_way: 2, ..Bounds::default() });
    served.send("GET a\r\nGET b\r\nGET c\r\n");
    served.waits_for(&["GET a", "GET b"]);
    served.service.permits.add_permits(1);
    served.waits_for(&["GET c"]);
}

#[test]
fn a_client_that_reads_nothing_is_read_no_further() {
    let mut served = Served::new(usize::MAX >> 4, Bounds::default());
    let echo = format!("*2\r\n$4\r\nECHO\r\n${}\r\n{}\r\n", 10_000, "x".repeat(10_000));
    served.client.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let sent = (0..10_000).take_while(|_| served.client.write_all(echo.as_bytes()).is_ok()).count();
    assert!(sent < 5_000, "{sent} requests of 10 KB are taken");
}

#[test]
fn whatever_comes_before_the_end_gets_its_reply() {
    let mut served = Served::new(usize::MAX >> 4, Bounds { under_way: 4, ..Bounds::default() });
    served.send(&"PING\r\n".repeat(3_000));
    served.client.shutdown(std::net::Shutdown::Write).unwrap();
    served.reads(&"+PONG\r\n".repeat(3_000));
    assert_eq!(served.client.read(&mut [0]).unwrap(), 0);
}

#[test]
fn the_cost_under_way_is_bounded() {
    let mut served = Served::new(0, Bounds { cost: 500, ..Bounds::default() });
    served.send("GET a\r\nGET b\r\nGET c\r\nGET d\r\nGET e\r\n");
    served.waits_for(&["GET a", "GET b", "GET c", "GET d"]);
    std::thread::sleep(Duration::from_millis(20));
    served.waits_for(&[]);
}

#[test]
fn r7_without_memory_a_long_request_is_refused_and_an_unread_reply_ends_the_connection() {
    let served = |memory| Served::with(usize::MAX >> 4, Bounds::default(), None, Memory::new(memory));
    let long = format!("GET {}\r\n", "x".repeat(60_000));
    let mut client = served(0);
    client.send(&long);
    client.reads("+OK\r\n");
    client.send(&format!("*2\r\n$3\r\nGET\r\n$200000\r\n{}", "x".repeat(150_000)));
    client.reads("-OOM no memory is left for so long a request: try again\r\n");
    let mut client = served(1 << 20);
    client.send(&"BIG a\r\n".repeat(200));
    let mut replies = Vec::new();
    let ends = client.client.read_to_end(&mut replies);
    assert!(ends.is_ok() || ends.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset));
    assert!(replies.len() < 200 << 20, "{}", replies.len());
}

#[test]
fn a_transaction_is_what_its_connection_queues() {
    let mut served = Served::new(usize::MAX >> 4, Bounds::default());
    let exec = |all: &str| format!("*1\r\n${}\r\n{all}\r\n", all.len());
    let aborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    for (sent, reply) in [
        ("EXEC", "-ERR EXEC without MULTI\r\n"),
        ("DISCARD", "-ERR DISCARD without MULTI\r\n"),
        ("WATCH a b", "+OK\r\n"),
        ("MULTI", "+OK\r\n"),
        ("MULTI", "-ERR MULTI calls can not be nested\r\n"),
        ("WATCH c", "-ERR WATCH inside MULTI is not allowed\r\n"),
        ("GET a", "+QUEUED\r\n"),
        ("GET b", "+QUEUED\r\n"),
        ("EXEC", &exec("a b watches 2 of 2")),
        ("MULTI", "+OK\r\n"),
        ("EXEC", &exec(" watches 0 of 0")),
        ("WATCH a", "+OK\r\n"),
        ("UNWATCH", "+OK\r\n"),
        ("MULTI", "+OK\r\n"),
        ("GET a", "+QUEUED\r\n"),
        ("PING", "-ERR PING is not possible in a transaction here\r\n"),
        ("EXEC", aborted),
        ("MULTI", "+OK\r\n"),
        ("NO", "-ERR unknown command 'no', with args beginning with: \r\n"),
        ("GET", "-ERR wrong number of arguments for 'get' command\r\n"),
        ("DISCARD", "+OK\r\n"),
        ("MULTI", "+OK\r\n"),
        ("RESET", "+RESET\r\n"),
        ("GET a", "+OK\r\n"),
    ] {
        served.send(&format!("{sent}\r\n"));
        served.reads(reply);
    }
    served.waits_for(&["GET a"]);
    let long = "x".repeat(40_000);
    served.send(&format!("MULTI\r\nGET {long}\r\nGET {long}\r\nEXEC\r\n"));
    served.reads(&format!("+OK\r\n+QUEUED\r\n-ERR the transaction is too long\r\n{aborted}"));
}

#[test]
fn a_client_without_the_password_gets_nothing() {
    let mut served = Served::with(usize::MAX >> 4, Bounds::default(), Some(b"secret"), Memory::new(0));
    const WRONG: &str = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    for (sent, reply) in [
        ("GET a", "-NOAUTH Authentication required.\r\n"),
        ("PING", "-NOAUTH Authentication required.\r\n"),
        ("AUTH secre", WRONG),
        ("AUTH secrets", WRONG),
        ("AUTH \"\"", WRONG),
        ("AUTH other secret", WRONG),
        ("AUTH default secret", "+OK\r\n"),
        ("GET a", "+OK\r\n"),
        ("RESET", "+RESET\r\n"),
        ("GET a", "-NOAUTH Authentication required.\r\n"),
        ("HELLO 3 AUTH default wrong", WRONG),
        ("AUTH secret", "+OK\r\n"),
        ("GET a", "+OK\r\n"),
    ] {
        served.send(&format!("{sent}\r\n"));
        served.reads(reply);
    }
    served.waits_for(&["GET a", "GET a"]);
}

/// They may hold what others wait for.
#[test]
fn what_has_begun_ends_though_the_client_reads_no_replies() {
    let served = Served::new(20, Bounds::default());
    let ended = |count| {
        for _ in 0..1_000 {
            if served.service.ended.load(Relaxed) == count {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("{} have ended, not {count}", served.service.ended.load(Relaxed));
    };
    (&served.client).write_all("BIG a\r\n".repeat(40).as_bytes()).unwrap();
    ended(20);
    std::thread::sleep(Duration::from_millis(50));
    served.service.permits.add_permits(20);
    ended(40);
}

#[test]
fn a_web_page_gives_no_commands() {
    let mut served = Served::new(1, Bounds::default());
    served.send("POST / HTTP/1.1\r\nContent-Length: 7\r\n\r\nSET a\r\n");
    served.reads("-ERR this is no HTTP server\r\n");
    assert_eq!(served.client.read(&mut [0]).unwrap(), 0);
    served.waits_for(&[]);
}

#[test]
fn what_is_no_request_is_told_behind_the_replies_to_others() {
    let mut served = Served::new(1, Bounds::default());
    served.send("GET a\r\nnothing 'a b'\r\n*x\r\nGET b\r\n");
    served.reads("+OK\r\n-ERR unknown command 'nothing', with args beginning with: 'a b' \r\n");
    served.reads("-ERR Protocol error: invalid multibulk length\r\n");
    assert_eq!(served.client.read(&mut [0]).unwrap(), 0, "it is closed");
}

#[test]
fn the_version_is_that_of_the_request() {
    let mut served = Served::new(0, Bounds::default());
    served.send("CLIENT GETNAME\r\nHELLO 3 SETNAME me\r\nCLIENT GETNAME\r\nHELLO 4\r\nGET\r\n");
    served.reads("$-1\r\n%7\r\n$6\r\nserver\r\n$9\r\nmidflight\r\n$7\r\nversion\r\n");
    let mut rest = Vec::new();
    served.client.shutdown(std::net::Shutdown::Write).unwrap();
    served.client.read_to_end(&mut rest).unwrap();
    let end =
        "$2\r\nme\r\n-NOPROTO unsupported protocol version\r\n-ERR wrong number of arguments for 'get' command\r\n";
    assert!(rest.ends_with(end.as_bytes()), "{}", rest.escape_ascii());
}
