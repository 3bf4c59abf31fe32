//! Each law has a program that breaks it, and a similar one that does not.

use Pipeline::{Egress, Ingress};
use midflight_rmt::{
    Access, Action, Alu, Builder, Cell, Destination, Field, Index, Match, Operand, Output, Pipeline, Place, Program,
    Refusal, Register, Resource, Target, Test, Width, Word, low_bits,
};

const CELL_0: Index = Index::Const(0);

fn build(b: Builder) -> Result<Program, Refusal> {
    b.build(&Target::TOFINO_1)
}

fn refused(b: Builder) -> Refusal {
    build(b).map(|program| program.name().to_owned()).expect_err("breaks a law")
}

#[track_caller]
fn assert_over(b: Builder, resource: Resource, over: u32) {
    match refused(b) {
        Refusal::OverBudget { resource: found, used, limit, .. } => assert_eq!((found, used - limit), (resource, over)),
        other => panic!("not about {resource}: {other}"),
    }
}

/// A program with a kind, a word and a register in stage 1 of ingress.
fn start() -> (Builder, Field, Field, Register) {
    let mut b = Builder::new("law");
    let (kind, word) = (b.header("kind", Width::W8), b.header("word", Width::W32));
    let register = b.register(Ingress, 1, "counter", Cell::W32, 4);
    (b, kind, word, register)
}

fn touching(access: Access) -> Action {
    Action::new("touch").access(access)
}

#[test]
fn a_register_is_touched_once() {
    let (mut b, kind, _, counter) = start();
    b.table(Ingress, 1, "first").when(kind.is(1)).run(&touching(counter.at(CELL_0)));
    let (first, line) = (line!() - 1, line!() + 1);
    b.table(Ingress, 1, "second").when(kind.below(3)).run(&touching(counter.at(Index::Const(1))));
    let refusal = refused(b);
    let Refusal::TouchesTwice { register, place, first: a, second } = &refusal else { panic!("{refusal}") };
    assert_eq!((register.as_str(), *place), ("counter", Place { pipeline: Ingress, stage: 1 }));
    assert_eq!((a.file(), a.line(), second.line()), (file!(), first, line));
    let text = refusal.to_string();
    assert!(text.starts_with("touches register twice: counter, ingress stage 1, at lab/rmt/tests/laws.rs:"), "{text}");
}

/// Each pair of gateways here is exclusive.
#[test]
fn a_register_may_be_touched_by_tables_that_exclude_each_other() {
    type Pair = fn(Field, Field, Field) -> (midflight_rmt::Compare, midflight_rmt::Compare);
    let pairs: [Pair; 7] = [
        |kind, _, _| (kind.is(1), kind.is(2)),
        |kind, _, _| (kind.is(1), kind.is_not(1)),
        |kind, _, _| (kind.below(4), kind.at_least(4)),
        |kind, _, _| (kind.masked(0x80, 0x80), kind.below(5)),
        |_, word, _| (word.masked(0xF0, 0x10), word.masked(0x30, 0x20)),
        |_, word, other| (word.equals(other), word.differs(other)),
        |_, word, other| (word.equals(other), other.differs(word)),
    ];
    for (number, pair) in pairs.into_iter().enumerate() {
        let (mut b, kind, word, counter) = start();
        let other = b.header("other", Width::W32);
        let (one, two) = pair(kind, word, other);
        b.table(Ingress, 1, "first").when(one).run(&touching(counter.at(CELL_0)));
        b.table(Ingress, 1, "second").when(two).run(&touching(counter.at(CELL_0)));
        assert!(build(b).is_ok(), "pair {number}");
    }
}

/// Except for a register: below.
#[test]
fn keys_prove_exclusion_as_gateways_do() {
    let tables = |second: Match| {
        let (mut b, kind, word, counter) = start();
        let _ = counter;
        let sum = b.header("sum", Width::W32);
        let write = Action::new("write").set(sum, 1);
        let nothing = Action::new("nothing");
        // The default writes, for all but the entries.
        b.table(Ingress, 1, "first").exact(kind).entry([Match::is(1)], &nothing, &[]).run(&write);
        b.table(Ingress, 1, "second").ternary(kind).ternary(word).entry([second, Match::ANY], &write, &[]);
        build(b)
    };
    assert!(tables(Match::is(1)).is_ok());
    assert!(matches!(tables(Match::is(2)), Err(Refusal::WritesTwice { .. })));
    assert!(matches!(tables(Match::Masked { mask: 1, value: 1 }), Err(Refusal::WritesTwice { .. })));
}

/// Two tables share a stateful ALU only if control flow excludes one of them.
#[test]
fn tables_that_share_a_register_are_excluded_by_gateways() {
    let tables = |gateways: bool| {
        let (mut b, kind, _, counter) = start();
        let touch = touching(counter.at(CELL_0));
        let first = b.table(Ingress, 1, "first").exact(kind).entry([Match::is(1)], &touch, &[]);
        if gateways {
            first.when(kind.is_not(2));
        }
        let second = b.table(Ingress, 1, "second").exact(kind).entry([Match::is(2)], &touch, &[]);
        if gateways {
            second.when(kind.is(2));
        }
        build(b)
    };
    assert!(tables(true).is_ok());
    let Err(refusal) = tables(false) else { panic!("keys are not enough") };
    assert!(matches!(&refusal, Refusal::SharedByKeys { register, .. } if register == "counter"), "{refusal}");
}

/// An action's statements are sequential.
#[test]
fn an_action_reads_before_it_writes() {
    let program = |is_read_first: bool| {
        let (mut b, _, word, _) = start();
        let sum = b.header("sum", Width::W32);
        let action = Action::new("shift");
        let action = match is_read_first {
            true => action.or(sum, sum, word).shift_left(word, word, 1),
            false => action.shift_left(word, word, 1).or(sum, sum, word),
        };
        b.table(Ingress, 0, "shift").run(&action);
        build(b)
    };
    assert!(program(true).is_ok());
    let Err(refusal) = program(false) else { panic!("it reads the shifted word") };
    assert!(matches!(&refusal, Refusal::WrittenBefore { field, .. } if field == "word"), "{refusal}");

    let (mut b, _, word, _) = start();
    let other = b.header("other", Width::W32);
    b.table(Ingress, 0, "exchange").run(&Action::new("exchange").set(word, other).set(other, word));
    assert!(build(b).is_ok());
}

#[test]
fn a_later_stages_result_is_not_there_yet() {
    let program = |read_in: usize| {
        let (mut b, _, word, _) = start();
        let sum = b.metadata("sum", Width::W32);
        b.table(Ingress, 3, "add").run(&Action::new("add").add(sum, word, 1));
        let line = line!() + 1;
        b.table(Ingress, read_in, "use").run(&Action::new("use").set(word, sum));
        (build(b), line)
    };
    assert!(program(4).0.is_ok());
    for stage in [2, 3] {
        let (result, line) = program(stage);
        let refusal = result.map(|_| ()).expect_err("not there yet");
        let Refusal::ReadsLater { field, place, read, by, written } = &refusal else { panic!("{refusal}") };
        assert_eq!((field.as_str(), place.stage, by.stage), ("sum", stage, 3));
        assert_eq!((read.line(), written.line()), (line, line - 2));
    }
}

#[test]
fn gateways_keys_and_stateful_alus_wait_for_results_too() {
    let uses: [fn(&mut Builder, Field, Field, Register); 4] = [
        |b, sum, _, _| {
            b.table(Ingress, 1, "gateway").when(sum.is(1)).run(&Action::new("nothing"));
        },
        |b, sum, _, _| {
            b.table(Ingress, 1, "key").exact(sum).run(&Action::new("nothing"));
        },
        |b, sum, _, counter| {
            b.table(Ingress, 1, "index").run(&touching(counter.at(low_bits(sum, 2))));
        },
        |b, sum, _, counter| {
            b.table(Ingress, 1, "test").run(&touching(counter.at(CELL_0).test(Test::Less, sum)));
        },
    ];
    for (number, place) in uses.into_iter().enumerate() {
        let (mut b, _, word, counter) = start();
        let sum = b.metadata("sum", Width::W32);
        place(&mut b, sum, word, counter);
        b.table(Ingress, 2, "add").run(&Action::new("add").add(sum, word, 1));
        assert!(matches!(refused(b), Refusal::ReadsLater { .. }), "use {number}");
    }
}

#[test]
fn a_stateful_result_is_there_a_stage_later() {
    for (stage, lawful) in [(1, false), (2, true)] {
        let (mut b, _, word, counter) = start();
        let old = b.metadata("old", Width::W32);
        b.table(Ingress, 1, "read").run(&touching(counter.at(CELL_0).give_old(old)));
        b.table(Ingress, stage, "use").run(&Action::new("use").set(word, old));
        assert_eq!(build(b).is_ok(), lawful);
    }
}

#[test]
fn metadata_is_bridged_or_ends_with_ingress() {
    let program = |bridged: bool| {
        let (mut b, _, word, _) = start();
        let x = if bridged { b.bridged("x", Width::W32) } else { b.metadata("x", Width::W32) };
        b.table(Ingress, 0, "set").run(&Action::new("set").set(x, 1));
        b.table(Egress, 0, "use").run(&Action::new("use").set(word, x));
        build(b)
    };
    assert_eq!(program(true).expect("bridged").report().bridged_bytes, 4);
    assert!(matches!(program(false), Err(Refusal::NotBridged { field, .. }) if field == "x"));
    let (mut b, _, word, _) = start();
    let x = b.metadata("x", Width::W32);
    b.table(Ingress, 0, "use").run(&Action::new("use").set(word, x));
    assert!(matches!(refused(b), Refusal::NeverWritten { field, .. } if field == "x"));
}

#[test]
fn a_field_is_written_once_a_stage() {
    for (second, lawful) in [(1, false), (2, true)] {
        let (mut b, kind, word, _) = start();
        b.table(Ingress, 0, "one").when(kind.is(1)).run(&Action::new("one").set(word, 1));
        b.table(Ingress, 0, "two").when(kind.is(second)).run(&Action::new("two").set(word, 2));
        assert_eq!(build(b).is_ok(), lawful);
    }
    let (mut b, _, word, _) = start();
    b.table(Ingress, 0, "both").run(&Action::new("both").set(word, 1).set(word, 2));
    assert!(matches!(refused(b), Refusal::WritesTwice { what, .. } if what == "word"));
    let (mut b, kind, ..) = start();
    b.table(Ingress, 0, "drop").when(kind.is(1)).run(&Action::new("drop").drop("a name"));
    b.table(Ingress, 0, "send").run(&Action::new("send").forward(Destination::Requester));
    assert!(matches!(refused(b), Refusal::WritesTwice { what, .. } if what == "the packet's destination"));
}

#[test]
fn a_port_is_chosen_in_ingress() {
    for to in [Destination::Port(Operand::Const(1)), Destination::Requester, Destination::Recirculate] {
        let (mut b, ..) = start();
        b.table(Egress, 2, "send").run(&Action::new("send").forward(to));
        let text = refused(b).to_string();
        assert!(text.starts_with("output port chosen in egress: send, egress stage 2, at "), "{text}");
    }
    let (mut b, ..) = start();
    b.table(Egress, 2, "drop").run(&Action::new("drop").drop("a name"));
    assert!(build(b).is_ok(), "egress may drop");
}

#[test]
fn a_register_is_in_one_stage_and_a_table_reaches_one() {
    let (mut b, _, _, counter) = start();
    b.table(Ingress, 2, "elsewhere").run(&touching(counter.at(CELL_0)));
    assert!(matches!(refused(b), Refusal::Elsewhere { home, place, .. } if (home.stage, place.stage) == (1, 2)));
    let (mut b, _, _, counter) = start();
    b.table(Egress, 1, "elsewhere").run(&touching(counter.at(CELL_0)));
    assert!(matches!(refused(b), Refusal::Elsewhere { place: Place { pipeline: Egress, .. }, .. }));
    let (mut b, kind, _, counter) = start();
    let other = b.register(Ingress, 1, "other", Cell::W32, 4);
    let (one, two) = (touching(counter.at(CELL_0)), touching(other.at(CELL_0)));
    b.table(Ingress, 1, "both").exact(kind).entry([Match::is(1)], &one, &[]).run(&two);
    assert!(
        matches!(refused(b), Refusal::TwoRegisters { first, second, .. } if (&*first, &*second) == ("counter", "other"))
    );
}

#[test]
fn an_index_is_a_slice_within_the_array() {
    for (bits, lawful) in [(2, true), (3, false)] {
        let (mut b, _, word, counter) = start();
        b.table(Ingress, 1, "touch").run(&touching(counter.at(low_bits(word, bits))));
        match build(b) {
            Ok(_) => assert!(lawful),
            Err(refusal) => assert!(matches!(refusal, Refusal::IndexBeyond { last: 7, cells: 4, .. }) && !lawful),
        }
    }
}

#[test]
fn conditions_on_differences_are_tables() {
    let (mut b, _, word, _) = start();
    let difference = b.metadata("difference", Width::W32);
    b.table(Ingress, 0, "subtract").run(&Action::new("subtract").sub(difference, word, 4));
    let gateway = b.clone();
    b.table(Ingress, 1, "table").ternary(difference).entry([Match::is(0)], &Action::new("nothing"), &[]);
    assert!(build(b).is_ok());
    let mut b = gateway;
    b.table(Ingress, 1, "gateway").when(difference.is(0)).run(&Action::new("nothing"));
    assert!(matches!(refused(b), Refusal::SubtractedCondition { field, .. } if field == "difference"));
    // Nor by bridging it to egress.
    let (mut b, _, word, _) = start();
    b.table(Ingress, 5, "subtract").run(&Action::new("subtract").sub(word, word, 4));
    b.table(Egress, 1, "gateway").when(word.is(0)).run(&Action::new("nothing"));
    assert!(matches!(refused(b), Refusal::SubtractedCondition { field, .. } if field == "word"));
}

#[test]
fn gateways_are_small() {
    let (mut b, _, word, _) = start();
    b.table(Ingress, 0, "order").when(word.below(9)).run(&Action::new("nothing"));
    assert_over(b, Resource::GatewayOrderBits, 20);
    let (mut b, kind, word, _) = start();
    let other = b.header("other", Width::W32);
    b.table(Ingress, 0, "wide")
        .when(word.is(1))
        .when(kind.is(1))
        .when(other.masked(0xFF, 1))
        .run(&Action::new("nothing"));
    assert_over(b, Resource::GatewayBits, 4);
    let (mut b, _, word, _) = start();
    b.table(Ingress, 0, "range").range(word).run(&Action::new("nothing"));
    assert_over(b, Resource::RangeBits, 12);
}

#[test]
fn a_stage_has_four_stateful_alus_for_both_pipelines() {
    let registers = |egress: usize| {
        let mut b = Builder::new("law");
        for number in 0..4 {
            b.register(Ingress, 3, format!("r{number}"), Cell::W32, 4);
        }
        b.register(Egress, egress, "fifth", Cell::W32, 4);
        b
    };
    assert!(build(registers(4)).is_ok());
    let refusal = refused(registers(3));
    let Refusal::OverBudget { what, place, at, resource, used: 5, limit: 4 } = &refusal else { panic!("{refusal}") };
    assert_eq!((what.as_str(), place.stage, *resource), ("register fifth", 3, Resource::StatefulAlus));
    assert_eq!(at.file(), file!());
    assert!(refusal.to_string().ends_with("5 stateful ALUs in the stage, 4 exist: 1 over budget"), "{refusal}");
}

#[test]
fn a_register_lies_in_one_half_of_a_stage_of_tofino_2() {
    let of = |blocks: &[u32]| {
        let mut b = Builder::new("law");
        blocks.iter().for_each(|blocks| _ = b.register(Ingress, 0, "array", Cell::W32, (blocks - 1) * 4096));
        b.build(&Target::TOFINO_2).map(|_| ())
    };
    assert_eq!(of(&[24]), Ok(()));
    assert!(matches!(of(&[25]), Err(Refusal::OverBudget { resource: Resource::RegisterBlocks, limit: 24, .. })));
    assert_eq!(of(&[17, 17, 7, 7]), Ok(()), "in any order, one large and one small register a half");
    assert_eq!(of(&[7, 7, 17, 17]), Ok(()));
    for apart in [&[17, 17, 8][..], &[13, 13, 13]] {
        assert!(matches!(of(apart), Err(Refusal::Apart { parts: 2, .. })), "{apart:?}");
    }
    assert!(matches!(of(&[2, 2, 2, 2, 2]), Err(Refusal::OverBudget { resource: Resource::StatefulAlus, .. })));
}

#[test]
fn memory_is_counted_in_blocks_and_a_register_has_a_spare_one() {
    let one = |cells: u32| {
        let mut b = Builder::new("law");
        b.register(Ingress, 0, "array", Cell::W32, cells);
        b
    };
    let program = build(one(128 << 10)).expect("fits");
    assert_eq!(program.report().registers[0].blocks, 33);
    assert_over(one(144 << 10), Resource::RegisterBlocks, 1);
    let mut b = one(128 << 10);
    b.register(Egress, 0, "second", Cell::Pair, 32 << 10);
    assert_over(b, Resource::MapRams, 33 + 17 - 48);
    // Tables may use the blocks that registers cannot.
    let mut b = one(128 << 10);
    let key = b.header("key", Width::W32);
    let table = b.table(Ingress, 0, "exact").exact(key);
    (0..192 << 10).for_each(|n| {
        table.entry([Match::is(n)], &Action::new("nothing"), &[]);
    });
    assert_over(b, Resource::SramBlocks, 33 + 48 - 80);
}

#[test]
fn tables_instructions_and_tcam_are_counted() {
    let tables = |count: usize, actions: usize| {
        let (mut b, kind, word, _) = start();
        for number in 0..count {
            let pipeline = if number % 2 == 0 { Ingress } else { Egress };
            let table = b.table(pipeline, 5, format!("t{number}")).exact(kind);
            for action in 0..actions {
                table.entry([Match::is(action as u32)], &Action::new(format!("a{action}")), &[]);
            }
        }
        (b, word)
    };
    assert!(build(tables(16, 2).0).is_ok());
    assert_over(tables(17, 1).0, Resource::Tables, 1);
    assert_over(tables(11, 3).0, Resource::Instructions, 1);
    let (mut b, word) = tables(0, 0);
    let table = b.table(Ingress, 0, "ternary").ternary(word);
    (0..=24 * 512).for_each(|n| {
        table.entry([Match::is(n)], &Action::new("nothing"), &[]);
    });
    assert_over(b, Resource::TcamBlocks, 1);
}

#[test]
fn there_are_twelve_stages() {
    let (mut b, ..) = start();
    b.table(Egress, 12, "thirteenth").run(&Action::new("nothing"));
    assert_over(b, Resource::Stages, 1);
    let mut b = Builder::new("law");
    b.register(Ingress, 12, "thirteenth", Cell::W8, 1);
    assert_over(b, Resource::Stages, 1);
}

#[test]
fn containers_are_counted_by_width_and_pipeline() {
    for (width, resource, there_are) in [
        (Width::W8, Resource::Containers8, 64),
        (Width::W16, Resource::Containers16, 96),
        (Width::W32, Resource::Containers32, 64),
    ] {
        let fields = |count: u32, egress: bool| {
            let mut b = Builder::new("law");
            let fields: Vec<Field> = (0..count).map(|n| b.header(format!("f{n}"), width)).collect();
            for (n, &field) in fields.iter().enumerate() {
                b.table(Ingress, n / 16, format!("t{n}")).run(&Action::new("set").set(field, 1));
            }
            if egress {
                b.table(Egress, 11, "egress").run(&Action::new("set").set(fields[0], 1));
            }
            b
        };
        assert!(build(fields(there_are - 1, true)).is_ok());
        assert_over(fields(there_are, true), resource, 1);
        assert_over(fields(there_are + 1, false), resource, 1);
    }
}

#[test]
fn mirrored_copies_are_small() {
    let copies = |count: usize| {
        let (mut b, kind, ..) = start();
        let fields: Vec<Field> = (0..count).map(|n| b.header(format!("f{n}"), Width::W32)).collect();
        let carries: Vec<_> = fields.iter().map(|&field| (field, field)).collect();
        let mirror = b.mirror("copy", (kind, 1), &carries);
        b.table(Ingress, 0, "copy").run(&Action::new("copy").mirror(mirror));
        b
    };
    assert!(build(copies(7)).is_ok());
    assert_over(copies(8), Resource::MirrorBytes, 1);
}

#[test]
fn a_stateful_alu_takes_two_fields_and_has_words_of_its_own_width() {
    let access = |change: fn(Access, [Field; 3]) -> Access| {
        let (mut b, kind, word, _) = start();
        let (other, out) = (b.header("other", Width::W32), b.header("third", Width::W32));
        let register = b.register(Ingress, 2, "narrow", Cell::W8, 4);
        let wide = b.register(Ingress, 3, "wide", Cell::W32, 4);
        b.table(Ingress, 2, "narrow").run(&touching(register.at(CELL_0).always(Alu::or(kind))));
        b.table(Ingress, 3, "wide").run(&touching(change(wide.at(CELL_0), [word, other, out])));
        build(b)
    };
    let refused = |change| access(change).map(|_| ()).expect_err("breaks a law");
    assert!(access(|a, [x, y, z]| a.test(Test::Before, x).then(Alu::set(y)).give_old(z)).is_ok());
    let three = refused(|a, [x, y, z]| a.test(Test::Less, x).then(Alu::set(y)).otherwise(Alu::add(z)));
    assert!(matches!(three, Refusal::OverBudget { resource: Resource::StatefulInputs, used: 3, .. }), "{three}");
    let second = refused(|a, [x, ..]| a.otherwise_if(Word::Low, Test::Equal, x));
    assert!(matches!(&second, Refusal::Malformed { what, .. } if what.contains("without a first")), "{second}");
    let other = refused(|a, _| a.always(Alu::Word(Word::High)));
    assert!(matches!(&other, Refusal::Malformed { what, .. } if what.contains("the high word")), "{other}");
    let high = refused(|a, [x, ..]| a.always_high(Alu::set(x)));
    assert!(matches!(&high, Refusal::Malformed { what, .. } if what.contains("the high word")), "{high}");
    let argument = refused(|a, _| a.always(Alu::set(midflight_rmt::argument(0))));
    assert!(matches!(&argument, Refusal::Malformed { what, .. } if what.contains("arguments")), "{argument}");

    let (mut b, kind, word, _) = start();
    let narrow = b.register(Ingress, 2, "narrow", Cell::W8, 4);
    let change = [
        narrow.at(CELL_0).always(Alu::or(word)),
        narrow.at(CELL_0).always(Alu::or(256)),
        narrow.at(CELL_0).give(Output::New(Word::Low), word),
        narrow.at(CELL_0).test(Test::Before, kind),
    ];
    for access in change {
        let mut b = b.clone();
        b.table(Ingress, 2, "narrow").run(&touching(access));
        assert!(matches!(build(b), Err(Refusal::Malformed { .. })), "{access:?}");
    }
    b.table(Ingress, 2, "narrow").run(&touching(narrow.at(CELL_0).give_old(kind)));
    assert!(build(b).is_ok());
}

#[test]
fn alus_read_containers_of_their_own_width() {
    let (mut b, kind, word, _) = start();
    b.table(Ingress, 0, "widths").run(&Action::new("set").set(word, kind));
    assert!(matches!(refused(b), Refusal::Malformed { what, .. } if what.contains("another width")));
    let (mut b, kind, ..) = start();
    b.table(Ingress, 0, "widths").run(&Action::new("set").set(kind, 256));
    assert!(matches!(refused(b), Refusal::Malformed { what, .. } if what.contains("constant wider")));
    let (mut b, _, word, _) = start();
    b.table(Ingress, 0, "bits").run(&Action::new("deposit").deposit(word, 30, word, 0, 3));
    assert!(matches!(refused(b), Refusal::Malformed { what, .. } if what.contains("beyond the field")));
}

#[test]
fn entries_have_the_form_of_their_keys_and_actions() {
    let entry = |add: fn(&mut midflight_rmt::Table, Field, Field)| {
        let (mut b, kind, word, _) = start();
        add(b.table(Ingress, 0, "entries"), kind, word);
        build(b)
    };
    fn nothing() -> Action {
        Action::new("nothing")
    }
    fn taking(word: Field) -> Action {
        Action::new("take").set(word, midflight_rmt::argument(0))
    }
    let bad: [fn(&mut midflight_rmt::Table, Field, Field); 5] = [
        |t, kind, _| _ = t.exact(kind).entry([Match::is(1), Match::is(2)], &nothing(), &[]),
        |t, kind, _| _ = t.exact(kind).entry([Match::ANY], &nothing(), &[]),
        |t, kind, _| _ = t.ternary(kind).entry([Match::Between(1, 2)], &nothing(), &[]),
        |t, kind, word| _ = t.exact(kind).entry([Match::is(1)], &taking(word), &[]),
        |t, _, word| _ = t.run(&taking(word)),
    ];
    for (number, add) in bad.into_iter().enumerate() {
        assert!(matches!(entry(add), Err(Refusal::Malformed { .. })), "entry {number}");
    }
    assert!(entry(|t, kind, word| _ = t.exact(kind).entry([Match::is(1)], &taking(word), &[5])).is_ok());
}
