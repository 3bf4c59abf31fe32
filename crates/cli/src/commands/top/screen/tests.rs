//! The screen of 80 × 24, as text.

use super::*;
use crate::commands::top::as_text;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value, json};

/// The view of a switch whose executor has just died.
fn said() -> Value {
    let buckets = |bucket: usize, count: u64| {
        let mut all = vec![0; 40];
        all[bucket] = count;
        all
    };
    let executor = |address: &str, state: &str, busy: u32, had: u32| {
        json!({"id": "00000000000000aa", "address": address, "state": state, "heard_ms": 1234, "slots": 4, "busy": busy,
               "parked": 0, "longest_ms": 2500, "resources": ["gpu"], "had": had})
    };
    json!({
        "program": "tasks", "number": 7, "period_ms": 1000, "viewers": 1,
        "status": {
            "version": "1", "listen": "127.0.0.1:7700", "engine": {"kind": "user", "mode": null, "interfaces": []}, "epoch": 7,
            "uptime_ms": 61_000, "packets": {}, "drops": {"full": 3, "queue_share": 0}, "taken": 9,
            "tasks": {"submitted": 100, "assigned": 52, "completed": 40, "expired": 2, "returned": 0, "cancelled": 0,
                      "dropped": 0, "purged": 0, "stops": 0, "at_place": 0, "out_of_patience": 0},
            "gaps": 0, "wait_us": buckets(7, 50), "wait_sum_us": 5000, "run_us": buckets(11, 40), "run_sum_us": 60_000,
            "queued": [0, 0, 0, 50, 6], "parked": 0, "busy": 4, "slots": 8, "clients": 1, "for_place": 0, "places": 0,
            "shell": {},
        },
        "rates": {"tasks.completed": 99_123.4, "tasks.submitted": 12.34, "tasks.expired": 2.0, "drops.full": 3.0},
        "detail": {
            "lease_ms": 1000, "capacity": 131_072,
            "executors": {"shown": [executor("10.0.0.2:4000", "lost", 0, 2), executor("10.0.0.1:4000", "alive", 4, 0)], "more": 0},
            "states": {"alive": 1, "lost": 1},
            "clients": {"shown": [], "more": 0},
            "jobs": {"shown": [{"client": "bb", "address": "10.0.0.9:5", "jid": 3, "level": 4, "queued": 56, "running": 4,
                                "again": 2, "oldest_ms": 900}], "more": 5},
            "jobs_are_partial": false, "wait_us": buckets(3, 9), "run_us": buckets(0, 0),
        },
    })
}

fn view() -> View {
    View::parse(&said().to_string()).unwrap()
}

fn drawn(state: &State) -> Vec<String> {
    drawn_of(view(), state)
}

fn drawn_of(view: View, state: &State) -> Vec<String> {
    let mut screen = Screen::default();
    screen.take(view);
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    terminal.draw(|frame| screen.draw(frame, state)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let line = |y| (0..80).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..24).map(line).collect()
}

#[test]
fn all_that_matters_is_on_80_columns_and_24_lines() {
    let lines = drawn(&State::default());
    let has = |part: &str| assert!(lines.iter().any(|line| line.contains(part)), "no {part:?} in {lines:#?}");
    has("99.123 K a second completed, 12.3 submitted, 0 assigned");
    has("queue     56  level 4: 50  level 5: 6");
    has("4 busy, 0 parked, of 8");
    has("executors 1 alive  1 lost");
    has("wait      half < 8 µs, 99 % < 8 µs (all: half < 128 µs, 99 % < 128 µs)");
    has("run       no tasks (all: half < 2.048 ms, 99 % < 2.048 ms)");
    has("failures  2 expired  3 drops  a second");
    has("Executors 1-2 of 2");
    has("10.0.0.2:4000 lost");
    has("q end  Tab Executors, Jobs, Clients, Drops  s sort  r reverse  ? keys");
}

#[test]
fn the_lists_are_chosen_by_keys() {
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    let mut state = State::default();
    let mut press = |code| state.key(KeyEvent::new(code, KeyModifiers::NONE), 4, 7, 2);
    press(KeyCode::Tab);
    let lines = drawn(&state);
    assert!(lines.iter().any(|line| line.contains("Jobs 1-1 of 6")), "{lines:#?}");
    let mut press = |code| state.key(KeyEvent::new(code, KeyModifiers::NONE), 4, 7, 2);
    press(KeyCode::Char('?'));
    let lines = drawn(&state);
    assert!(lines.iter().any(|line| line.contains("Any key closes this.")), "{lines:#?}");
}

#[test]
fn a_view_on_one_page_has_the_lists_too() {
    let text = as_text(&view());
    for part in ["Executors", "10.0.0.2:4000  lost", "Jobs", "and 5 more", "Drops", "full"] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    assert!(!text.contains("Clients\n"), "an empty list\n{text}");
}

/// The view of a store's switch whose replica has just died.
fn said_by_a_store() -> Value {
    let replica = |slot: u8, state: &str, reads: f64| {
        json!({"slot": slot, "replica": slot + 1, "address": "10.0.0.1:7710", "state": state, "heard_ms": 1500, "weight": 1,
               "matched": 90, "lag": 3, "reads_per_s": reads, "replies_per_s": reads})
    };
    json!({
        "program": "store", "number": 7, "period_ms": 1000, "viewers": 1,
        "status": {
            "version": "1", "listen": "127.0.0.1:7700", "engine": {"kind": "user", "mode": null, "interfaces": []}, "epoch": 7,
            "uptime_ms": 61_000, "packets": {}, "drops": {"cookie": 3}, "taken": 9,
            "sets": [{"set": 1, "reads_to_followers": 50, "reads_to_leader": 0, "reads_leader_only": 5, "reads_direct": 0,
                      "reads_turned_back": 0, "replies_outdated": 0, "writes": 9, "closed": 9, "sessions": 2, "unstable": 4}],
            "shell": {},
        },
        "rates": {"sets.1.reads_to_followers": 50.0, "sets.1.reads_leader_only": 5.0, "sets.1.writes": 9.0},
        "detail": {"sets": {"more": 0, "shown": [{
            "set": 1, "session": {"term": 4, "number": 2, "ends_in_ms": 100}, "policy": "random", "reply_check": "strict",
            "any_replica": false, "writes_under_way": 5,
            "replicas": [replica(0, "leads", 5.0), replica(1, "silent", 0.0), replica(2, "serves", 50.0)]}]}},
    })
}

#[test]
fn a_store_with_a_dead_replica_is_on_80_columns_and_24_lines() {
    let lines = drawn_of(View::parse(&said_by_a_store().to_string()).unwrap(), &State::default());
    let has = |part: &str| assert!(lines.iter().any(|line| line.contains(part)), "no {part:?} in {lines:#?}");
    has("55 a second: 50 to followers, 0 to leaders, 5 leader-only");
    has("9 a second, 4 key groups unstable; 0 reads turned back");
    has("replicas  2 of 3 heard  1 silent");
    has("1 of 1 sets have one");
    has("Replicas 1-3 of 3");
    has("silent");
    has("q end  Tab Replicas, Sessions, Counters, Drops  s sort  r reverse  ? keys");
    assert!(as_text(&View::parse(&said_by_a_store().to_string()).unwrap()).contains("Sessions\n"));
}

#[test]
fn no_text_of_a_switch_moves_the_cursor() {
    const CODES: &str = "\u{1b}[2J\u{9b}2J\r\u{7}";
    let mut said = said();
    let texts = ["/status/version", "/status/engine/kind", "/detail/executors/shown/0/address"];
    for at in texts.into_iter().chain(["/detail/executors/shown/0/resources/0", "/detail/jobs/shown/0/address"]) {
        let text = said.pointer_mut(at).unwrap();
        *text = format!("{}{CODES}", text.as_str().unwrap()).into();
    }
    said["status"]["engine"]["mode"] = format!("native{CODES}").into();
    said["status"]["engine"]["interfaces"] = json!([format!("eth0{CODES}")]);
    said["status"]["drops"][format!("full{CODES}")] = 5.into();
    let view = View::parse(&said.to_string()).unwrap();
    let text = as_text(&view);
    assert!(text.contains("eth0 [2J 2J") && text.contains("5 full [2J 2J"), "{text}");
    let lines = drawn_of(view, &State::default());
    let moves = |text: &str| text.chars().any(|c| c.is_control() && c != '\n');
    assert!(!moves(&text) && !lines.iter().any(|line| moves(line)), "{text:?} {lines:?}");
    said["detail"]["executors"]["shown"][0]["state"] = CODES.into();
    let Err(error) = View::parse(&said.to_string()) else { panic!("there is no such state") };
    let line = midflight_terminal::usage::one_line(&error);
    assert!(line.contains("unknown variant") && !moves(&line), "{line:?}");
}

#[test]
fn what_is_of_another_version_is_named() {
    let error = View::parse("{\"program\": \"tasks\"}").err().unwrap();
    assert!(error.to_string().contains("version"), "{error}");
}
