//! Proofs that no packet meets two conditions at once.
//!
//! They are sound, not complete. All conditions of a stage refer to the packet as it entered the stage, so two that contradict each other
//! in one field exclude each other. Without such a proof, both may hold.

use crate::field::{Field, Width};
use crate::table::{Match, Relation, Table};

/// A conjunction of literals. An empty one is always true.
pub(super) type Condition = Vec<Literal>;

/// A condition on one field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Literal {
    field: Field,
    relation: Relation,
}

/// The conditions under which a table runs its action number `action`, one per path.
pub(super) fn ways(table: &Table, action: usize) -> Vec<Condition> {
    let mut condition = gateways(table);
    let mut ways = Vec::new();
    for entry in &table.entries {
        let matches: Vec<Literal> =
            table.keys.iter().zip(&entry.matches).flat_map(|(key, &wanted)| literals(key.field, wanted)).collect();
        if entry.action == action {
            ways.push([condition.clone(), matches.clone()].concat());
        }
        // Later entries and the default run only if this entry does not match. Only a single literal can be negated: of several, any one
        // may be false.
        if let [only] = matches[..] {
            condition.extend(negated(only));
        }
    }
    if table.default == Some(action) {
        ways.push(condition);
    }
    ways
}

/// The condition under which a table runs at all.
pub(super) fn gateways(table: &Table) -> Condition {
    table.gateway.iter().map(|compare| Literal { field: compare.field, relation: compare.relation }).collect()
}

fn literals(field: Field, wanted: Match) -> Vec<Literal> {
    let literal = |relation| Literal { field, relation };
    match wanted {
        Match::Masked { mask, .. } if mask & field.width.mask() == 0 => Vec::new(),
        Match::Masked { mask, value } => {
            let mask = mask & field.width.mask();
            vec![literal(Relation::Masked { mask, value, equal: true })]
        }
        Match::Between(low, high) => {
            let above = high.checked_add(1).map(|end| literal(Relation::Below(end)));
            above.into_iter().chain([literal(Relation::AtLeast(low))]).collect()
        }
    }
}

fn negated(Literal { field, relation }: Literal) -> Option<Literal> {
    let relation = match relation {
        Relation::Masked { mask, value, equal } => Relation::Masked { mask, value, equal: !equal },
        Relation::Below(value) => Relation::AtLeast(value),
        Relation::AtLeast(value) => Relation::Below(value),
        Relation::Field { other, equal } => Relation::Field { other, equal: !equal },
    };
    Some(Literal { field, relation })
}

/// Whether no packet meets both.
pub(super) fn excluded(a: &Condition, b: &Condition) -> bool {
    let both: Condition = [&a[..], &b[..]].concat();
    both.iter().enumerate().any(|(i, one)| {
        let rest = &both[i + 1..];
        rest.iter().any(|other| contradict(one, other))
            || (one.field.width == Width::W8 && !satisfiable(one.field, &both))
    })
}

/// Tries all values of a field of 8 bits.
fn satisfiable(field: Field, condition: &Condition) -> bool {
    (0..=field.width.mask()).any(|value| {
        condition.iter().filter(|literal| literal.field == field).all(|literal| match literal.relation {
            Relation::Masked { mask, value: wanted, equal } => ((value ^ wanted) & mask == 0) == equal,
            Relation::Below(end) => value < end,
            Relation::AtLeast(start) => value >= start,
            Relation::Field { .. } => true,
        })
    })
}

fn contradict(a: &Literal, b: &Literal) -> bool {
    if let (Relation::Field { other: x, equal: e }, Relation::Field { other: y, equal: f }) = (a.relation, b.relation) {
        let same = (a.field, x) == (b.field, y) || (a.field, x) == (y, b.field);
        return same && e != f;
    }
    a.field == b.field && (excludes(a, b.relation) || excludes(b, a.relation))
}

/// Whether no value can fulfil both. Knows only some pairs, in this order: ask for both orders.
fn excludes(a: &Literal, b: Relation) -> bool {
    let full = a.field.width.mask();
    match (a.relation, b) {
        (Relation::Masked { mask: m, value: v, equal: true }, Relation::Masked { mask: n, value: w, equal: true }) => {
            (v ^ w) & m & n != 0
        }
        (Relation::Masked { mask: m, value: v, equal: true }, Relation::Masked { mask: n, value: w, equal: false }) => {
            n & !m == 0 && (v ^ w) & n == 0
        }
        (Relation::Masked { mask, value, equal: true }, Relation::Below(end)) => mask == full && value & full >= end,
        (Relation::Masked { mask, value, equal: true }, Relation::AtLeast(start)) => {
            mask == full && value & full < start
        }
        (Relation::Below(end), Relation::AtLeast(start)) => end <= start,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Space;
    use proptest::prelude::*;

    const fn field(index: u16, width: Width) -> Field {
        Field { space: Space::Header, index, width }
    }

    const NARROW: Field = field(0, Width::W8);
    const WIDE: [Field; 2] = [field(1, Width::W16), field(2, Width::W16)];

    fn literal() -> impl Strategy<Value = Literal> {
        let field = prop::sample::select(vec![NARROW, WIDE[0], WIDE[1]]);
        let masked = (0u32..16, 0u32..16, any::<bool>());
        let relation = prop_oneof![
            masked.prop_map(|(mask, value, equal)| Relation::Masked { mask, value, equal }),
            (0u32..16, any::<bool>()).prop_map(|(value, equal)| Relation::Masked { mask: 0xFFFF, value, equal }),
            (0u32..16).prop_map(Relation::Below),
            (0u32..16).prop_map(Relation::AtLeast),
            (prop::sample::select(WIDE.to_vec()), any::<bool>())
                .prop_map(|(other, equal)| Relation::Field { other, equal }),
        ];
        (field, relation).prop_map(|(field, relation)| Literal { field, relation })
    }

    fn holds(literal: &Literal, values: [u32; 3]) -> bool {
        let value = values[usize::from(literal.field.index)];
        match literal.relation {
            Relation::Masked { mask, value: wanted, equal } => {
                ((value ^ wanted) & mask & literal.field.width.mask() == 0) == equal
            }
            Relation::Below(end) => value < end,
            Relation::AtLeast(start) => value >= start,
            Relation::Field { other, equal } => (value == values[usize::from(other.index)]) == equal,
        }
    }

    proptest! {
        /// Conditions proved exclusive are exclusive for all small values.
        #[test]
        fn proofs_of_exclusion_are_sound(
            a in prop::collection::vec(literal(), 0..4),
            b in prop::collection::vec(literal(), 0..4),
        ) {
            if excluded(&a, &b) {
                for n in 0..17u32.pow(3) {
                    let values = [n % 17, n / 17 % 17, n / 289];
                    let both = a.iter().chain(&b).all(|literal| holds(literal, values));
                    prop_assert!(!both, "{values:?} meets {a:?} and {b:?}");
                }
            }
        }
    }
}
