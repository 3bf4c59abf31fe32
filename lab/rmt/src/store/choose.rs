//! Chooses the replica for a READ of a stable key group: the papers' translation table, without a multiplication. A random number of 32
//! bits selects candidate ⌊random · n / 2^32⌋ of n. For n of 2, 4 and 8 these are its top bits; for other n tables find it, before the
//! candidates are known.

use super::fields::{Fields, REPLICAS, role};
use crate::Pipeline::Ingress;
use crate::{Action, Builder, Field, Match, argument};

const ANY: Match = Match::ANY;

pub(super) fn declare(b: &mut Builder, f: &Fields) {
    for (stage, (&n, &drawn)) in (1..).zip([3, 5, 6, 7].iter().zip(&f.inside.drawn)) {
        draw(b, f, stage, n, drawn);
    }
    wanted(b, f);
    caught(b, f);
    candidates(b, f);
    choose(b, f);
}

/// Stages 1 to 4: which of n the random number selects. The entries cover the values below each bound; the first match wins.
fn draw(b: &mut Builder, f: &Fields, stage: usize, n: u64, drawn: Field) {
    let table = b.table(Ingress, stage, format!("draw of {n}")).ternary(f.lot);
    let set = Action::new("draw").set(drawn, argument(0));
    for number in 0..n - 1 {
        let end = ((number + 1) << 32).div_ceil(n) as u32;
        for prefix in below(end) {
            table.entry([prefix], &set, &[number as u32]);
        }
    }
    table.entry([ANY], &set, &[(n - 1) as u32]);
}

/// The numbers below `end` as prefixes.
fn below(end: u32) -> impl Iterator<Item = Match> {
    let bits = (0..32).rev().map(|bit| 1u32 << bit);
    bits.filter(move |bit| end & bit != 0).map(move |bit| {
        let mask = !(bit - 1);
        Match::Masked { mask, value: end & mask & !bit }
    })
}

/// Stages 3 to 5: preferred replicas: not the leader while writes are in flight.
fn wanted(b: &mut Builder, f: &Fields) {
    let i = &f.inside;
    b.table(Ingress, 4, "wanted").run(&Action::new("wanted").set(i.wanted, i.eligible));
    let avoid = Action::new("avoid").and_not(i.wanted, i.eligible, i.leader);
    let busy = b.table(Ingress, 5, "busy").when(i.role.is(role::READ)).when(f.avoid.masked(1, 1));
    busy.when(i.answered.differs(i.last)).run(&avoid).note("writes are under way: not to the leader");
}

/// Stages 6 to 8: replicas whose matched index is not below the key group's, as compared in each stage.
fn caught(b: &mut Builder, f: &Fields) {
    let i = &f.inside;
    let slots: [(usize, &[usize]); 3] = [(6, &[0, 1]), (7, &[2, 3, 4, 5]), (8, &[6, 7])];
    for (stage, slots) in slots {
        let name = format!("caught up, {} to {}", slots[0], slots[slots.len() - 1]);
        let add = Action::new("add").or(i.consistent, i.consistent, argument(0));
        let table = b.table(Ingress, stage, name);
        slots.iter().for_each(|&slot| _ = table.exact(i.caught[slot]));
        for chosen in 1u32..1 << slots.len() {
            let bit = |n: usize| chosen >> n & 1;
            let bitmap = (0..slots.len()).map(|n| bit(n) << slots[n]).sum();
            let matches: Vec<Match> = (0..slots.len()).map(|n| Match::is(bit(n))).collect();
            table.entry_of(matches, &add, &[bitmap]);
        }
    }
}

/// Stage 9: possible and preferred candidates.
fn candidates(b: &mut Builder, f: &Fields) {
    let i = &f.inside;
    let candidates = Action::new("candidates").and(i.all, i.consistent, i.eligible).and(i.few, i.consistent, i.wanted);
    b.table(Ingress, 9, "candidates").run(&candidates).note("consistent, with an address and a weight");
}

/// Stage 10: selects one by the random number; the leader if no other is left.
fn choose(b: &mut Builder, f: &Fields) {
    let i = &f.inside;
    let chosen = Action::new("choose").set(f.to, argument(0));
    let table = b.table(Ingress, 10, "choose").when(i.role.is(role::READ)).when(i.stable.is(1)).when(i.few.is_not(0));
    table.ternary(i.few);
    i.drawn.iter().for_each(|&drawn| _ = table.ternary(drawn));
    table.ternary(f.lot);
    for few in 1u32..1 << REPLICAS {
        let n = few.count_ones();
        for (number, bit) in (0..).zip((0..REPLICAS).map(|slot| 1 << slot).filter(|bit| few & bit != 0)) {
            let [of_3, of_5, of_6, of_7, lot] = draws(n, number);
            table.entry([Match::is(few), of_3, of_5, of_6, of_7, lot], &chosen, &[bit]);
        }
    }
    table.note("the translation table: one of the candidates by lot");
    let left = b.table(Ingress, 10, "leader left").when(i.role.is(role::READ)).when(i.stable.is(1)).when(i.few.is(0));
    left.run(&Action::new("all").set(f.to, i.all)).note("only the leader is left, or nobody");
}

/// Matches random numbers that select this one of n: the four fields, and the number's top bits.
fn draws(n: u32, number: u32) -> [Match; 5] {
    let mut matches = [ANY; 5];
    match [3, 5, 6, 7].iter().position(|&tabled| tabled == n) {
        Some(field) => matches[field] = Match::is(number),
        None if n == 1 => {}
        None => {
            let bits = n.trailing_zeros();
            let mask = u32::MAX << (32 - bits);
            matches[4] = Match::Masked { mask, value: number << (32 - bits) };
        }
    }
    matches
}
