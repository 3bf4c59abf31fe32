//! Redis' clients of a store, through `midflight store serve`.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{PATIENCE, Running, Store, assert_error, run, skip};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Instant;

fn gateway(store: &Store) -> Running {
    Running::start(&["store", "serve", "--config", &store.config, "--listen", "127.0.0.1:0"])
}

struct Client {
    stream: TcpStream,
    replies: BufReader<TcpStream>,
}

impl Client {
    fn of(gateway: &Running) -> Self {
        let stream = TcpStream::connect(gateway.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let replies = BufReader::new(stream.try_clone().unwrap());
        Self { stream, replies }
    }

    fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// A reply's lines, joined by spaces.
    fn reply(&mut self) -> String {
        let mut line = String::new();
        self.replies.read_line(&mut line).unwrap();
        let mut text = line.trim_end_matches(['\r', '\n']).to_owned();
        let count = text.get(1..).and_then(|digits| digits.parse::<usize>().ok()).unwrap_or(0);
        let parts = match text.as_bytes().first() {
            Some(b'$') if !text.starts_with("$-1") => {
                let mut value = vec![0; count + 2];
                self.replies.read_exact(&mut value).unwrap();
                return String::from_utf8_lossy(&value[..count]).into_owned();
            }
            Some(b'*') => count,
            Some(b'%') => 2 * count,
            _ => 0,
        };
        (0..parts).for_each(|_| text = format!("{text} {}", self.reply()));
        text
    }

    fn ask(&mut self, command: &str) -> String {
        self.send(format!("{command}\r\n"));
        self.reply()
    }

    #[track_caller]
    fn says(&mut self, command: &str, reply: &str) {
        assert_eq!(self.ask(command), reply, "to {command}");
    }

    /// Replicas may know of the last writes later.
    #[track_caller]
    fn comes_to_say(&mut self, command: &str, reply: &str) {
        let begun = Instant::now();
        while self.ask(command) != reply {
            assert!(begun.elapsed() < PATIENCE, "{command} never says {reply}");
        }
    }
}

#[test]
fn commands_reply_as_those_of_redis_do() {
    let store = Store::start("gateway-commands");
    let gateway = gateway(&store);
    let mut client = Client::of(&gateway);
    for (command, reply) in [
        ("PING", "+PONG"),
        ("get a", "$-1"),
        ("SET a 1", "+OK"),
        ("GET a", "1"),
        ("SET a 2 NX", "$-1"),
        ("SET b x NX", "+OK"),
        ("SET c x XX", "$-1"),
        ("SET a 2 XX GET", "1"),
        ("SET a 3 GET", "2"),
        ("SET d 4 GET", "$-1"),
        ("SET a 4 NX GET", "3"),
        ("SET a 4 KEEPTTL", "+OK"),
        ("SETNX a 5", ":0"),
        ("SETNX e 5", ":1"),
        ("GETSET e 6", "5"),
        ("INCR e", ":7"),
        ("INCRBY e -10", ":-3"),
        ("DECR e", ":-4"),
        ("DECRBY e 6", ":-10"),
        ("INCR b", "-ERR value is not an integer or out of range"),
        ("DECRBY e -9223372036854775808", "-ERR decrement would overflow"),
        ("INCRBY e 1.5", "-ERR value is not an integer or out of range"),
        ("APPEND b yz", ":3"),
        ("APPEND f \"a b\\n\"", ":4"),
        ("STRLEN f", ":4"),
        ("MSET g 1 h 2 g 3", "+OK"),
        ("MGET g h none f", "*4 3 2 $-1 a b\n"),
        ("EXISTS a a none", ":2"),
        ("TYPE a", "+string"),
        ("TYPE none", "+none"),
        ("TTL a", ":-1"),
        ("TTL none", ":-2"),
        ("PERSIST a", ":0"),
        ("DEL g h none", ":2"),
        ("UNLINK f", ":1"),
        ("SELECT 0", "+OK"),
        ("SELECT 1", "-ERR DB index is out of range"),
        ("SET a 1 NX XX", "-ERR syntax error"),
        ("SET a", "-ERR wrong number of arguments for 'set' command"),
        ("MSET a", "-ERR wrong number of arguments for 'mset' command"),
        ("LPUSH a 1", "-ERR unknown command 'lpush', with args beginning with: 'a' '1' "),
        ("SET '' 1", "-ERR the key is empty: give it 1 to 1024 bytes"),
        ("CONFIG GET save", "*0"),
        ("CLIENT SETINFO LIB-NAME test", "+OK"),
        ("AUTH default any", "+OK"),
        ("HELLO 3 AUTH a b", "-WRONGPASS invalid username-password pair or user is disabled."),
        ("QUIT", "+OK"),
    ] {
        client.says(command, reply);
    }
    assert_eq!(client.replies.read(&mut [0]).unwrap(), 0, "closed");
    assert_eq!(store.cli(&["get", "e"]), (Some(0), "-10\n".into()), "others see it");
}

#[test]
fn expiry_is_that_of_redis() {
    let store = Store::start("gateway-expiry");
    let gateway = gateway(&store);
    let mut client = Client::of(&gateway);
    for (command, reply) in [
        ("SET a 1 EX 100", "+OK"),
        ("TTL a", ":100"),
        ("SET a 2 KEEPTTL", "+OK"),
        ("TTL a", ":100"),
        ("APPEND a 5", ":2"),
        ("INCR a", ":26"),
        ("TTL a", ":100"),
        ("SET a 3", "+OK"),
        ("TTL a", ":-1"),
        ("SET a 4 PX 50000 GET", "3"),
        ("TTL a", ":50"),
        ("EXPIRE a 100 NX", ":0"),
        ("EXPIRE a 10 GT", ":0"),
        ("EXPIRE a 100 LT", ":0"),
        ("EXPIRE a 100 XX", ":1"),
        ("EXPIRE a 200 GT", ":1"),
        ("PERSIST a", ":1"),
        ("PERSIST a", ":0"),
        ("EXPIRE a 100 GT", ":0"),
        ("EXPIRE a 100 XX", ":0"),
        ("EXPIRE a 100 LT", ":1"),
        ("EXPIREAT a 99999999999", ":1"),
        ("EXPIRETIME a", ":99999999999"),
        ("GETEX a PERSIST", "4"),
        ("PTTL a", ":-1"),
        ("GETEX a EX 100", "4"),
        ("TTL a", ":100"),
        ("GETEX none EX 100", "$-1"),
        ("GETEX a", "4"),
        ("EXPIRE a 0", ":1"),
        ("EXISTS a", ":0"),
        ("EXPIRE a 10", ":0"),
        ("SETEX b 100 x", "+OK"),
        ("PSETEX b 70000 y", "+OK"),
        ("TTL b", ":70"),
        ("SETNX b z", ":0"),
        ("GETSET b z", "y"),
        ("TTL b", ":-1"),
        ("GETDEL b", "z"),
        ("GETDEL b", "$-1"),
        ("SET c 1 PXAT 1", "+OK"),
        ("SET d 1 EX 0", "-ERR invalid expire time in 'set' command"),
        ("SETEX d -1 x", "-ERR invalid expire time in 'setex' command"),
        ("SET d 1 EX 9223372036854775807", "-ERR invalid expire time in 'set' command"),
        ("SET d 1 EX", "-ERR syntax error"),
        ("SET d 1 EX 1 PX 1", "-ERR syntax error"),
        ("SET d 1 EX 1 KEEPTTL", "-ERR syntax error"),
        ("GETEX d EX", "-ERR syntax error"),
        ("EXPIRE d x", "-ERR value is not an integer or out of range"),
        ("EXPIRE d 1 GT LT", "-ERR GT and LT options at the same time are not compatible"),
        ("EXPIRE d 1 NX XX", "-ERR NX and XX, GT or LT options at the same time are not compatible"),
        ("EXPIRE d 1 SOON", "-ERR Unsupported option SOON"),
        ("SET soon 1 PX 30", "+OK"),
    ] {
        client.says(command, reply);
    }
    let begun = std::time::Instant::now();
    for key in ["c", "soon"] {
        while client.ask(&format!("EXISTS {key}")) != ":0" {
            assert!(begun.elapsed() < PATIENCE, "{key} does not expire");
        }
    }
    assert_eq!(store.cli(&["put", "--ttl", "1h", "lock", "me"]), (Some(0), String::new()));
    client.says("TTL lock", ":3600");
    assert_eq!(store.cli(&["expire", "lock", "never"]), (Some(0), String::new()));
    assert_eq!(store.cli(&["ttl", "lock"]), (Some(0), "never\n".into()));
    assert_eq!(store.cli(&["expire", "lock", "2h"]), (Some(0), String::new()));
    let (code, left) = store.cli(&["ttl", "lock", "--json"]);
    assert!(code == Some(0) && left.contains("\"expires_in_ms\":7"), "{left}");
    assert_eq!(store.cli(&["ttl", "none"]).0, Some(3));
}

#[test]
fn all_keys_are_listed() {
    let store = Store::start("gateway-scan");
    let gateway = gateway(&store);
    let mut client = Client::of(&gateway);
    assert_eq!(client.ask("SCAN 0"), "*2 0 *0", "of an empty store");
    let mut wanted: Vec<String> = (0..300).map(|n| format!("user:{n}")).collect();
    wanted.extend((0..300).map(|n| format!("{{tag}}{n}")));
    for key in &wanted {
        client.says(&format!("SET {key} x"), "+OK");
    }
    client.comes_to_say("DBSIZE", ":600");
    let mut scan = |options: &str| {
        let (mut cursor, mut keys, mut calls) = ("0".to_owned(), Vec::new(), 0);
        loop {
            let reply = client.ask(&format!("SCAN {cursor} {options}"));
            let mut words = reply.split(' ').map(str::to_owned);
            cursor = words.nth(1).unwrap();
            keys.extend(words.skip(1));
            calls += 1;
            if cursor == "0" {
                keys.sort();
                return (keys, calls);
            }
        }
    };
    wanted.sort();
    let (keys, calls) = scan("");
    assert_eq!((keys, calls > 20), (wanted.clone(), true));
    assert_eq!(scan("COUNT 10000 MATCH *").0, wanted);
    assert_eq!(scan("COUNT 100 MATCH user:?9").0, (1..10).map(|n| format!("user:{n}9")).collect::<Vec<_>>());
    assert_eq!(scan("TYPE hash").0, Vec::<String>::new());
    for (command, reply) in [
        ("KEYS {tag}7", "*1 {tag}7"),
        ("KEYS none*", "*0"),
        ("SCAN x", "-ERR invalid cursor"),
        ("SCAN 0 COUNT 0", "-ERR syntax error"),
        ("SCAN 0 MATCH", "-ERR syntax error"),
    ] {
        client.says(command, reply);
    }
    let lines = |arguments: &[&str]| {
        let (code, text) = store.cli(arguments);
        assert_eq!(code, Some(0));
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(&["scan"]), wanted);
    assert_eq!(lines(&["scan", "user:", "--count"]), ["300"]);
    assert_eq!(lines(&["scan", "user:299", "--json"]), ["\"user:299\""]);
    client.says("FLUSHDB", "+OK");
    client.comes_to_say("DBSIZE", ":0");
}

#[test]
fn r1_a_pipeline_is_in_order_for_each_key() {
    let store = Store::start("gateway-pipeline");
    let gateway = gateway(&store);
    let mut client = Client::of(&gateway);
    let all: String = (0..2_000).map(|n| format!("INCR count{}\r\nGET count{}\r\n", n % 3, n % 3)).collect();
    client.send(all);
    for n in 0..2_000 {
        let wanted = n / 3 + 1;
        assert_eq!((client.reply(), client.reply()), (format!(":{wanted}"), wanted.to_string()));
    }
}

#[test]
fn r1_transactions_are_those_of_redis() {
    let store = Store::start("gateway-transactions");
    let gateway = gateway(&store);
    let [mut client, mut other] = [(); 2].map(|()| Client::of(&gateway));
    let queue = |client: &mut Client, commands: &[&str]| {
        client.says("MULTI", "+OK");
        commands.iter().for_each(|command| client.says(command, "+QUEUED"));
    };
    let all = [
        "SET {a}1 x",
        "INCR {a}1",
        "INCR {a}2",
        "GET {a}2",
        "MGET {a}1 {a}3",
        "SET {a}1 y NX",
        "EXPIRE {a}1 100",
        "TTL {a}1",
        "GETSET {a}1 z",
        "TTL {a}1",
        "MSET {a}4 4 {a}5 5",
        "EXISTS {a}4 {a}5 {a}6",
        "DEL {a}4 {a}6",
        "TYPE {a}5",
        "STRLEN {a}1",
        "APPEND {a}1 zz",
        "GETDEL {a}1",
        "SETNX {a}1 1",
    ];
    queue(&mut client, &all);
    client.says(
        "EXEC",
        "*18 +OK -ERR value is not an integer or out of range :1 1 *2 x $-1 $-1 :1 :100 x :-1 +OK :2 :1 +string :1 :3 zzz :1",
    );
    // A watched key that has changed, even back; that was created; that has not changed.
    client.says("WATCH {a}1 {a}9", "+OK");
    client.says("GET {a}1", "1");
    other.says("SET {a}1 2", "+OK");
    other.says("SET {a}1 1", "+OK");
    queue(&mut client, &["INCR {a}1"]);
    client.says("EXEC", "*-1");
    client.says("WATCH {a}9", "+OK");
    other.says("SET {a}9 9", "+OK");
    queue(&mut client, &["INCR {a}1"]);
    client.says("EXEC", "*-1");
    client.says("GET {a}1", "1");
    client.says("WATCH {a}1 {a}10", "+OK");
    queue(&mut client, &["INCR {a}1", "SET {a}10 10"]);
    client.says("EXEC", "*2 :2 +OK");
    // No WATCH outlives its EXEC, and an empty one is none.
    queue(&mut client, &["INCR {a}1"]);
    other.says("SET {a}1 7", "+OK");
    client.says("EXEC", "*1 :8");
    queue(&mut client, &[]);
    client.says("EXEC", "*0");
    // What cannot be.
    queue(&mut client, &["SET a 1", "SET b 1"]);
    assert!(client.ask("EXEC").starts_with("-CROSSSLOT Keys in request don't hash to the same slot"));
    client.says("EXISTS a b", ":0");
    client.says("MULTI", "+OK");
    client.says("KEYS *", "-ERR KEYS is not possible in a transaction here");
    client.says("EXEC", "-EXECABORT Transaction discarded because of previous errors.");
    queue(&mut client, &[&format!("SET {{a}}1 {}", "x".repeat(1_000)), &format!("SET {{a}}2 {}", "x".repeat(1_000))]);
    assert!(client.ask("EXEC").starts_with("-ERR the transaction has 2"));
    // All at once, and in the order in which it was sent.
    client.send("SET {a}1 5\r\nWATCH {a}1\r\nMULTI\r\nGET {a}1\r\nINCR {a}1\r\nEXEC\r\nGET {a}1\r\n");
    let replies: Vec<String> = (0..7).map(|_| client.reply()).collect();
    assert_eq!(replies, ["+OK", "+OK", "+OK", "+QUEUED", "+QUEUED", "*2 5 :6", "6"]);
}

/// Each adds by WATCH, GET, MULTI, SET, EXEC, until it succeeds.
#[test]
fn r1_no_update_under_watch_is_lost() {
    let store = Store::start("gateway-watch");
    let gateway = gateway(&store);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = Client::of(&gateway);
                for _ in 0..25 {
                    loop {
                        client.says("WATCH n", "+OK");
                        let number: u32 = client.ask("GET n").parse().unwrap_or(0);
                        client.says("MULTI", "+OK");
                        client.says(&format!("SET n {}", number + 1), "+QUEUED");
                        match client.ask("EXEC").as_str() {
                            "*1 +OK" => break,
                            reply => assert_eq!(reply, "*-1"),
                        }
                    }
                }
            });
        }
    });
    Client::of(&gateway).says("GET n", "100");
}

fn set(key: &str, value: &str) -> String {
    format!("*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n${}\r\n{value}\r\n", key.len(), value.len())
}

#[test]
fn r1_values_that_fit_no_packet() {
    let store = Store::start("gateway-large");
    let gateway = gateway(&store);
    let mut client = Client::of(&gateway);
    let [large, other] = ["x", "y"].map(|letter| letter.repeat(100_000));
    client.send(set("a", &large));
    assert_eq!(client.reply(), "+OK");
    client.says("GET a", &large);
    client.says("STRLEN a", ":100000");
    client.says("SETNX a 1", ":0");
    client.says("SET a 1 NX GET", &large);
    client.says("INCR a", "-ERR value is not an integer or out of range");
    client.says("APPEND a z", ":100001");
    client.send(format!("*3\r\n$6\r\nAPPEND\r\n$1\r\na\r\n$100000\r\n{other}\r\n"));
    assert_eq!(client.reply(), ":200001");
    client.says("GETSET a 1", &format!("{large}z{other}"));
    client.says("GET a", "1");
    client.send(set("a", &large));
    assert_eq!(client.reply(), "+OK");
    client.says("GETEX a EX 100", &large);
    client.says("TTL a", ":100");
    client.says("MGET a b a", &format!("*3 {large} $-1 {large}"));
    client.says("GETDEL a", &large);
    client.says("EXISTS a", ":0");
    let largest = "z".repeat(8 << 20);
    client.send(set("a", &largest));
    assert_eq!(client.reply(), "+OK");
    assert!(client.ask("GET a") == largest);
    // In the order in which they were sent, though the first takes longer.
    client.send(format!("{}{}GET b\r\n", set("b", &large), set("b", "1")));
    assert_eq!((client.reply(), client.reply(), client.reply()), ("+OK".into(), "+OK".into(), "1".into()));
}

#[test]
fn r7_what_one_client_sends_disturbs_no_other() {
    let store = Store::start("gateway-garbage");
    let gateway = gateway(&store);
    let mut good = Client::of(&gateway);
    good.says("SET a 1", "+OK");
    for (sent, reply) in [
        (&b"*1\r\n$9223372036854775807\r\n"[..], "-ERR Protocol error: invalid bulk length"),
        (b"*1048577\r\n", "-ERR Protocol error: invalid multibulk length"),
        (b"*2\r\n:1\r\n", "-ERR Protocol error: expected '$', got ':'"),
        (b"SET a \"1\r\n", "-ERR Protocol error: unbalanced quotes in request"),
        (&[0xff; 70_000], "-ERR Protocol error: too big inline request"),
    ] {
        let mut bad = Client::of(&gateway);
        bad.send(sent);
        assert_eq!(bad.reply(), reply);
        good.says("GET a", "1");
    }
    good.send(set("a", &"x".repeat((8 << 20) + 1)));
    assert_eq!(good.reply(), "-ERR the value has 8388609 bytes: a value may have 8388608");
    good.send(set(&"k".repeat(1_009), &"x".repeat(1_000)));
    assert_eq!(good.reply(), "-ERR the key has 1009 bytes: with so long a value it may have 1008");
    Client::of(&gateway).send("*2\r\n$3\r\nGET\r\n$5\r\nab"); // and leaves
    good.says("GET a", "1");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let store = Store::new("gateway-port", 1);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = run(&["store", "serve", "--config", &store.config, "--listen", &address]);
    assert_error(&said, 1, &["cannot listen on", &address]);
}

#[test]
fn the_password_is_a_file_that_no_other_user_may_read() {
    let store = Store::start("gateway-password");
    let file = store.directory.write("password", "open sesame\n");
    let args = ["store", "serve", "--config", &store.config, "--listen", "127.0.0.1:0", "--password", &file];
    let mode = |mode| std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o644);
    assert_error(&run(&args), 2, &[&file, "other users may read", "chmod 600"]);
    mode(0o600);
    let gateway = Running::start(&args);
    let mut client = Client::of(&gateway);
    client.says("GET a", "-NOAUTH Authentication required.");
    client.says("AUTH \"open sesame\"", "+OK");
    client.says("GET a", "$-1");
    store.directory.write("password", "\n");
    assert_error(&run(&args), 2, &[&file, "is empty"]);
}

#[test]
fn redis_own_tools_work() {
    if Command::new("redis-cli").arg("--version").stdout(Stdio::null()).status().is_err() {
        skip("redis-cli and redis-benchmark are not installed");
        return;
    }
    let store = Store::start("gateway-tools");
    let gateway = gateway(&store);
    let port = gateway.address().port().to_string();
    let tool = |name: &str, args: &[&str]| {
        let said = Command::new(name).args(["-p", &port]).args(args).output().unwrap();
        (said.status.success(), String::from_utf8(said.stdout).unwrap())
    };
    assert_eq!(tool("redis-cli", &["set", "a", "1 2"]), (true, "OK\n".into()));
    assert_eq!(tool("redis-cli", &["-3", "get", "a"]), (true, "1 2\n".into()));
    let args = ["-t", "set,get,incr,mset", "-n", "2000", "-c", "20", "-P", "8", "-r", "100", "--csv"];
    let (worked, said) = tool("redis-benchmark", &args);
    let names = ["\"SET\"", "\"GET\"", "\"INCR\"", "\"MSET (10 keys)\""];
    assert!(worked && names.iter().all(|name| said.contains(name)), "{said}");
}
