//! The size of a queue is nowhere in the safe program but in the number of entries and the bits that number them.

use midflight_rmt::Target;
use midflight_rmt::tasks::safe::{Config, Safe};

#[test]
fn the_size_is_nowhere_in_the_program_but_in_the_index() {
    let text = |size: u32| {
        let config = Config { levels: 4, size, words: 1 };
        let program = Safe::build(config, &Target::TOFINO_1).expect("it fits").program().clone();
        let registers = &program.report().registers;
        let mut entries = registers.iter().filter(|register| register.name.starts_with("entry_"));
        assert!(entries.all(|register| register.cells == 4 * size));
        let tables =
            ["kind", "accepted", "enter", "tail", "queued_1_2", "queued_3_4", "retrieve", "next", "route", "credit"];
        (program.stages(), tables.map(|table| program.entries(table).expect("a table")))
    };
    assert_eq!(text(2), text(32 << 10));
}
