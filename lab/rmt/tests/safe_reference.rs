//! Compares the safe queue with lists: the result of each packet, and its passes, without interleaving. (The checker covers that.)

use midflight_rmt::tasks::safe::{Answer, Config, Safe, Task};
use midflight_rmt::{Machine, Packet, Target};
use proptest::prelude::*;

/// A level: task and mask, the oldest first.
type Level = Vec<(u32, u8)>;

struct Reference {
    size: usize,
    levels: Vec<Level>,
}

impl Reference {
    /// Whether it was taken.
    fn submit(&mut self, tid: u32, level: u8, resources: u8) -> bool {
        let level = usize::from(level).checked_sub(1).and_then(|index| self.levels.get_mut(index));
        level.filter(|level| level.len() < self.size).map(|level| level.push((tid, resources))).is_some()
    }

    /// The first task of the highest level that the executor can run, and the passes for it.
    fn retrieve(&mut self, resources: u8, min_level: u8) -> (Option<u32>, usize) {
        let (last, mut passes) = (self.levels.len() - 1, 0);
        for (number, level) in self.levels.iter_mut().enumerate().skip(usize::from(min_level) - 1) {
            if level.is_empty() {
                continue;
            }
            if let Some(place) = level.iter().position(|(_, wants)| wants & !resources == 0) {
                return (Some(level.remove(place).0), passes + 1 + place);
            }
            // The head comes out, each other is exchanged, and the last is put back.
            passes += level.len() + 1;
            if number == last {
                return (None, passes);
            }
        }
        (None, passes + 1)
    }
}

#[derive(Clone, Debug)]
enum Deed {
    /// Levels and masks.
    Submit(Vec<(u8, u8)>),
    Retrieve {
        resources: u8,
        min_level: u8,
    },
}

fn deed(levels: u8) -> impl Strategy<Value = Deed> {
    let mask = || prop::sample::select(vec![0u8, 1, 2, 3, 0x80]);
    prop_oneof![
        prop::collection::vec((0..=levels + 1, mask()), 1..9).prop_map(Deed::Submit),
        (mask(), 1..=levels).prop_map(|(resources, min_level)| Deed::Retrieve { resources, min_level }),
        (mask(), 1..=levels).prop_map(|(resources, min_level)| Deed::Retrieve { resources, min_level }),
        (mask(), 1..=levels).prop_map(|(resources, min_level)| Deed::Retrieve { resources, min_level }),
    ]
}

/// TDESC of a task, in a program with this many words of argument.
fn tdesc(words: u32, tid: u32) -> [u32; 5] {
    std::array::from_fn(|word| if word <= words as usize { !tid ^ (0x1111 * word as u32) } else { 0 })
}

fn run(safe: &Safe, machine: &mut Machine, mut packet: Packet) -> (Answer, usize) {
    for passes in 1.. {
        let sent = machine.pass(packet).packet;
        if let Some(answer) = safe.answer(&sent) {
            return (answer, passes);
        }
        packet = sent.packet;
    }
    unreachable!("passes are not that many")
}

proptest! {
    /// For any levels, start of serial numbers, and words of an entry.
    #[test]
    fn t3_t4_t5_t7_it_is_a_list_for_each_level(
        (levels, deeds) in (1u8..=4).prop_flat_map(|levels| (Just(levels), prop::collection::vec(deed(levels), 1..60))),
        bits in 1u32..4,
        words in 1u32..=4,
        start in prop_oneof![Just(0), Just(u32::MAX - 6), (u32::MAX >> 2) - 9..=(u32::MAX >> 2), (1u32 << 31) - 9..=1 << 31,
            any::<u32>()],
    ) {
        let config = Config { levels: levels.into(), size: 1 << bits, words };
        let safe = Safe::build(config, &Target::TOFINO_1).expect("it fits");
        let mut machine = safe.machine_from(start);
        let mut reference = Reference { size: 1 << bits, levels: vec![Level::new(); levels.into()] };
        let (mut next, mut sent) = (0, Vec::new());
        for deed in deeds {
            match deed {
                Deed::Submit(wanted) => {
                    let tasks: Vec<Task> = (next..).zip(&wanted).map(|(tid, &(level, resources))| {
                        let [attempt, argument_length] = [tid as u8 ^ 0x55, tid as u8 & 3];
                        Task { tid, level, resources, attempt, argument_length, words: tdesc(words, tid) }
                    }).collect();
                    next += wanted.len() as u32;
                    sent.extend((0u8..).zip(tasks.iter().copied()));
                    let mut expected = 0;
                    for (bit, task) in tasks.iter().enumerate() {
                        expected |= u32::from(reference.submit(task.tid, task.level, task.resources)) << bit;
                    }
                    let packet = safe.submit((1, 2), (3, 4), next, &tasks);
                    let (answer, passes) = run(&safe, &mut machine, packet);
                    let Answer::Ack { client: 1, sequence, taken, refused, .. } = answer else { panic!("{answer:?}") };
                    prop_assert_eq!((sequence, taken, refused), (next, expected, !expected & ((1 << tasks.len()) - 1)));
                    prop_assert!(passes <= 2 * tasks.len());
                }
                Deed::Retrieve { resources, min_level } => {
                    let (answer, passes) = run(&safe, &mut machine, safe.retrieve(5, resources, min_level));
                    let given = match answer {
                        Answer::NoOp { executor: 5 } => None,
                        Answer::Assign { executor: 5, client: (1, 2), job: (3, 4), index, task } => {
                            prop_assert_eq!(Some(&(index, task)), sent.get(task.tid as usize));
                            Some(task.tid)
                        }
                        answer => panic!("{answer:?}"),
                    };
                    prop_assert_eq!((given, passes), reference.retrieve(resources, min_level));
                }
            }
            for (number, level) in (0..).zip(&reference.levels) {
                let tids: Vec<u32> = level.iter().map(|(tid, _)| *tid).collect();
                prop_assert_eq!(safe.queue(&machine, number), tids);
                let registers = safe.level(&machine, number);
                prop_assert_eq!(registers.queued as usize, level.len());
                let free = registers.credit.wrapping_sub(registers.accepted);
                prop_assert_eq!(free as usize, (1 << bits) - level.len());
            }
        }
    }
}
