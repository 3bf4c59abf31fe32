//! Stages 3, 4 and 7: the monitor counts answers to clients of this rack, by traffic group and by the highest tier passed.

use super::fields::{Fields, at};
use super::{Config, Did, Rules, TIERS};
use crate::Pipeline::Ingress;
use crate::{Action, Alu, Builder, Cell, Match, Register, argument, low_bits};

pub(super) fn declare(b: &mut Builder, f: &Fields, config: &Config, rules: &Rules) -> Register {
    let i = &f.inside;
    let own = rules.own_rack.and_then(|rack| rules.racks.get(&rack));
    let compare = Action::new("compare").xor(i.differs, f.marker, argument(0)).set(i.has_marker, 1);
    let table = b.table(Ingress, 3, "own marker").exact(i.at);
    if let Some((_, marker)) = own {
        table.entry([Match::is(at::HERE)], &compare, &[*marker]);
    }
    table.entry([Match::is(u32::MAX)], &compare, &[0]).note("where the markers of answer and rack differ");

    let tier = Action::new("tier").add(i.cell, i.cell, argument(0));
    let table = b.table(Ingress, 4, "tiers").ternary(i.differs);
    for (number, mask) in
        (0..).zip(config.masks).skip(1).filter(|(_, mask)| *mask != 0).collect::<Vec<_>>().into_iter().rev()
    {
        table.entry([Match::Masked { mask, value: 0 }], &tier, &[number]);
    }
    table.entry([Match::ANY], &tier, &[0]).note("the highest tier between both racks; 0 is the topmost");

    let bits = config.cell_bits();
    let register = b.register(Ingress, 7, "monitor", Cell::W32, 1 << bits);
    let count = Action::new("count").access(register.at(low_bits(i.cell, bits)).always(Alu::add(1)));
    let table = b.table(Ingress, 7, "monitor").when(f.did.is(Did::Delivered as u32));
    table.when(i.counted.is(1)).when(i.has_marker.is(1)).run(&count).note("an answer leaves the network");
    debug_assert!(TIERS.is_power_of_two(), "a group's cells begin at a multiple");
    register
}
