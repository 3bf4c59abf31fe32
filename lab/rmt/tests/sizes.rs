//! Searches how many entries of the queues fit each target.

mod common;

use common::page_shows;
use midflight_rmt::tasks::{ENTRIES_MAX, published, safe};
use midflight_rmt::{Program, Refusal, Report, Target};
use published::{Empty, Published};
use safe::Safe;
use std::fmt::Write;

/// Builds a program of these levels, entries of each, and words of a task's description.
type Build = fn(u32, u32, u32, &Target) -> Result<Program, Refusal>;

/// Each program, with its builder and possible words.
const PROGRAMS: [(&str, Build, std::ops::RangeInclusive<u32>); 2] =
    [("published", build_published, 1..=8), ("safe", build_safe, 1..=4)];

fn build_published(levels: u32, size: u32, words: u32, target: &Target) -> Result<Program, Refusal> {
    let config = published::Config { levels, size, words, empty: Empty::NoOp };
    Published::build(config, target).map(|published| published.program().clone())
}

fn build_safe(levels: u32, size: u32, words: u32, target: &Target) -> Result<Program, Refusal> {
    Safe::build(safe::Config { levels, size, words }, target).map(|safe| safe.program().clone())
}

/// The most entries of a level, the resources of that program, and the refusal of twice as many.
fn largest(build: Build, levels: u32, words: u32, target: &Target) -> (u32, Report, String) {
    let mut refusal = String::new();
    for log in (1..=(ENTRIES_MAX / levels.next_power_of_two()).ilog2()).rev() {
        match build(levels, 1 << log, words, target) {
            Ok(program) => return (1 << log, program.report().clone(), refusal),
            Err(Refusal::OverBudget { what, resource, used, limit, .. }) => {
                refusal = format!("{what}: {used} {resource}, of {limit}");
            }
            Err(Refusal::Apart { what, parts, used, .. }) => {
                refusal = format!("{what}: {used} map RAMs in {parts} parts")
            }
            Err(other) => panic!("it breaks a law: {other}"),
        }
    }
    panic!("{refusal}: no size fits {}", target.name)
}

/// Bytes of an entry in registers.
fn bytes(report: &Report, entries: u32) -> u32 {
    let of_entries = report.registers.iter().filter(|register| register.cells > 4);
    let bits: u64 = of_entries.map(|register| u64::from(register.cell.word_bits()) * u64::from(register.cells)).sum();
    u32::try_from(bits / 8 / u64::from(entries)).expect("an entry's")
}

/// A million entries, the thesis on Bolt's hope (chapter 4), fit neither.
#[test]
fn the_page_shows_how_many_entries_fit() {
    let mut text = String::from("| | words of TDESC | bytes of an entry |");
    Target::ALL.iter().for_each(|target| write!(text, " {} | twice as many |", target.name).expect("a string"));
    text += "\n|---|---:|---:|---:|---|---:|---|\n";
    for (name, build, words) in PROGRAMS {
        for words in words {
            let fits = Target::ALL.map(|target| largest(build, 4, words, &target));
            // The safe program's word counts do not include the function id.
            let of_tdesc = if name == "safe" { words + 1 } else { words };
            write!(text, "| {name} | {of_tdesc} | {} |", bytes(&fits[0].1, 4 * fits[0].0)).expect("a string");
            for (size, report, refusal) in &fits {
                assert_eq!(bytes(report, 4 * size), bytes(&fits[0].1, 4 * fits[0].0), "an entry is the same");
                assert!(4 * size < ENTRIES_MAX, "a million fits after all");
                write!(text, " 4 × {size} | {refusal} |").expect("a string");
            }
            text.push('\n');
        }
    }
    page_shows("printed/asic.md", "sizes", &text);
}

#[test]
fn fewer_levels_have_as_many_entries_in_all() {
    for target in Target::ALL {
        for (name, build, words) in PROGRAMS {
            let all = |levels: u32| levels.next_power_of_two() * largest(build, levels, *words.end(), &target).0;
            assert!((1..4).all(|levels| all(levels) == all(4)), "{name} on {}", target.name);
        }
    }
}

#[test]
fn the_page_shows_the_largest_programs_on_tofino_2() {
    let target = &Target::TOFINO_2;
    let published = Published::build(published::Config::LARGEST_ON_TOFINO_2, target).expect("it fits");
    let safe = Safe::build(safe::Config::LARGEST_ON_TOFINO_2, target).expect("it fits");
    for (name, program) in [("published", published.program()), ("safe", safe.program())] {
        page_shows("printed/asic.md", &format!("{name}: on Tofino 2"), &program.report().to_string());
    }
}
