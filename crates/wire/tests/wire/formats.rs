//! The programs' formats in this crate, and where to find them in C and in the docs.

use crate::agreement::{C, compile};
use midflight_wire::{Field, Reject, cache, store};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{LazyLock, OnceLock};

/// Structure → its size and its fields' (name, offset, size), in order.
pub(crate) type Layouts = BTreeMap<String, (usize, Vec<(String, usize, usize)>)>;
pub(crate) type Numbers = BTreeMap<String, u64>;

pub(crate) struct Format {
    pub(crate) name: &'static str,
    /// The format's own headers below `dataplane/include/midflight`.
    pub(crate) headers: &'static [&'static str],
    pub(crate) verdict_header: &'static str,
    /// The lists of verdicts in C that the page documents.
    pub(crate) verdict_lists: &'static str,
    pub(crate) page: &'static str,
    /// The heading of its verdicts in `docs/troubleshooting.md`.
    pub(crate) troubleshooting: &'static str,
    pub(crate) layouts: Layouts,
    pub(crate) numbers: Numbers,
    /// Headings of the page's code tables, and the prefixes of their names in C.
    pub(crate) codes: &'static [(&'static str, &'static str)],
    pub(crate) operations: usize,
    /// Rejections of the parser that a switch shares.
    pub(crate) rejects: Vec<String>,
    /// `None` for NetRS, whose packets do not begin with the common header.
    pub(crate) has_bad_count: Option<fn(&[u8]) -> bool>,
    in_c: OnceLock<C>,
}

impl Format {
    /// Compiled once for all tests.
    pub(crate) fn c(&self) -> &C {
        self.in_c.get_or_init(|| compile(self, &[]))
    }
}

pub(crate) fn formats() -> &'static [Format; 3] {
    static FORMATS: LazyLock<[Format; 3]> = LazyLock::new(|| [of_tasks(), of_store(), of_cache()]);
    &FORMATS
}

pub(crate) fn with_header() -> impl Iterator<Item = (&'static Format, fn(&[u8]) -> bool)> {
    formats().iter().filter_map(|format| Some((format, format.has_bad_count?)))
}

fn names<T: ToString>(rejects: &[T]) -> Vec<String> {
    rejects.iter().map(ToString::to_string).collect()
}

/// `SubmitAck` → `submit_ack`.
pub(crate) fn snake(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}

fn layouts(structures: Vec<(&'static str, usize, Vec<Field>)>) -> Layouts {
    structures
        .into_iter()
        .map(|(name, size, fields)| {
            let fields = fields.into_iter().map(|f| (f.name.to_owned(), f.offset, f.size)).collect();
            (format!("mf_{}", snake(name)), (size, fields))
        })
        .collect()
}

fn constants<const N: usize>(constants: [(&str, u64); N]) -> Numbers {
    constants.map(|(name, value)| (name.to_owned(), value)).into()
}

fn codes<T: Debug + Copy + Into<u8>>(prefix: &str, all: &[T]) -> impl Iterator<Item = (String, u64)> {
    all.iter().map(move |&code| {
        (format!("MF_{prefix}_{}", snake(&format!("{code:?}")).to_uppercase()), u64::from(code.into()))
    })
}

fn of_tasks() -> Format {
    use midflight_wire::tasks::*;
    use midflight_wire::{MAGIC, PACKET_MAX, VERSION, VERSION_OPERATION};
    let mut numbers = constants([
        ("MF_MAGIC", u64::from(MAGIC)),
        ("MF_VERSION", u64::from(VERSION)),
        ("MF_PACKET_MAX", PACKET_MAX as u64),
        ("MF_SUBMIT_MAX", SUBMIT_MAX as u64),
        ("MF_SLOTS_MAX", SLOTS_MAX as u64),
        ("MF_REGISTER_MAX", REGISTER_MAX as u64),
        ("MF_CANCEL_MAX", CANCEL_MAX as u64),
        ("MF_PROBE_MAX", PROBE_MAX as u64),
        ("MF_COMPLETE_MAX", COMPLETE_MAX as u64),
        ("MF_ARGUMENT_MAX", ARGUMENT_MAX as u64),
        ("MF_RESULT_MAX", RESULT_MAX as u64),
        ("MF_WINDOW", u64::from(WINDOW)),
        ("MF_LEVELS", u64::from(LEVELS)),
        ("MF_SLOT_PLACES", SLOT_PLACES as u64),
        ("MF_PATIENCE_MAX", u64::from(PATIENCE_MAX)),
        ("MF_DURABLE", DURABLE),
        ("MF_BY_REFERENCE", u64::from(BY_REFERENCE)),
        ("MF_ARGUMENT_BLOB_MAX", u64::from(ARGUMENT_BLOB_MAX)),
        ("MF_APPENDED", APPENDED.into()),
        ("MF_APPENDED_MAX", APPENDED_MAX as u64),
        ("MF_APPENDED_UNIT", APPENDED_UNIT as u64),
        ("MF_RESULT_BLOB_MAX", u64::from(RESULT_BLOB_MAX)),
        ("MF_OP_VERSION", u64::from(VERSION_OPERATION)),
    ]);
    numbers.extend(codes("OP", Operation::ALL));
    numbers.extend(codes("REASON", Reason::ALL));
    numbers.extend(codes("STATUS", Status::ALL));
    numbers.extend(codes("ACK", AckState::ALL));
    numbers.extend(codes("KNOWN", Known::ALL));
    numbers.extend(codes("KIND", SlotKind::ALL));
    numbers.extend(codes("LEAVE", LeaveHow::ALL));
    Format {
        name: "tasks",
        headers: &["wire.h", "tasks_wire.h"],
        verdict_header: "tasks_verdict.h",
        verdict_lists: "MF_COMMON_VERDICTS(X) MF_TASKS_VERDICTS(X)",
        page: "docs/wire.md",
        troubleshooting: "## Verdicts",
        layouts: layouts([midflight_wire::structures(), structures()].concat()),
        numbers,
        codes: &[
            ("## Operations", "OP"),
            ("### Reasons", "REASON"),
            ("### Statuses", "STATUS"),
            ("### Acknowledgements", "ACK"),
            ("### Knowledge", "KNOWN"),
            ("### Kinds of slots", "KIND"),
            ("### Ways to leave", "LEAVE"),
        ],
        operations: Operation::ALL.len(),
        rejects: names(&[
            Reject::Truncated,
            Reject::Trailing,
            Reject::BadMagic,
            Reject::BadVersion(1),
            Reject::UnknownKey,
            Reject::UnknownOperation,
            Reject::BadCount,
            Reject::BadPriority,
            Reject::BadArgument,
        ]),
        has_bad_count: Some(|packet| parse(packet).err() == Some(Reject::BadCount)),
        in_c: OnceLock::new(),
    }
}

/// The page does not repeat what the programs share.
fn of_store() -> Format {
    let mut numbers = constants([
        ("MF_REPLICAS_MAX", store::REPLICAS_MAX as u64),
        ("MF_KGROUP_BITS_MAX", u64::from(store::KGROUP_BITS_MAX)),
        ("MF_KEY_MAX", store::KEY_MAX as u64),
        ("MF_NO_SLOT", u64::from(store::NO_SLOT)),
        ("MF_FLAG_LEADER_ONLY", u64::from(store::FLAG_LEADER_ONLY)),
        ("MF_FLAG_EXISTS", u64::from(store::FLAG_EXISTS)),
        ("MF_FLAG_ANY_REPLICA", u64::from(store::FLAG_ANY_REPLICA)),
        ("MF_FLAG_DIRECT", u64::from(store::FLAG_DIRECT)),
        ("MF_FLAG_OFFERS_DIRECT", u64::from(store::FLAG_OFFERS_DIRECT)),
        ("MF_FLAG_UNSERVED", u64::from(store::FLAG_UNSERVED)),
        ("MF_FLAG_SCAN", u64::from(store::FLAG_SCAN)),
        ("MF_FLAG_PIECE", u64::from(store::FLAG_PIECE)),
        ("MF_UPDATE_RETURNS_VALUE", u64::from(store::UPDATE_RETURNS_VALUE)),
        ("MF_STEP_REQUIRED", u64::from(store::STEP_REQUIRED)),
    ]);
    numbers.extend(codes("OP", store::Operation::ALL));
    numbers.extend(codes("STATUS", store::Status::ALL));
    numbers.extend(codes("COMMAND", store::Command::ALL));
    numbers.extend(codes("CONDITION", store::ConditionCode::ALL));
    numbers.extend(codes("CHANGE", store::ChangeCode::ALL));
    numbers.extend(codes("EXPIRY", store::ExpiryCode::ALL));
    Format {
        name: "store",
        headers: &["store_wire.h"],
        verdict_header: "store_verdict.h",
        verdict_lists: "MF_STORE_VERDICTS(X)",
        page: "docs/store-wire.md",
        troubleshooting: "## Verdicts of the store program",
        layouts: layouts(store::structures()),
        numbers,
        codes: &[
            ("## Operations", "OP"),
            ("### Statuses", "STATUS"),
            ("### Commands", "COMMAND"),
            ("### Conditions", "CONDITION"),
            ("### Changes", "CHANGE"),
            ("### Expiries", "EXPIRY"),
        ],
        operations: store::Operation::ALL.len(),
        rejects: names(&[Reject::BadKey, Reject::BadStatus]),
        has_bad_count: Some(|packet| store::parse(packet).err() == Some(Reject::BadCount)),
        in_c: OnceLock::new(),
    }
}

fn of_cache() -> Format {
    let mut numbers = constants([
        ("MF_NETRS_MAGIC", u64::from(cache::NETRS_MAGIC)),
        ("MF_NETRS_VERSION", u64::from(cache::NETRS_VERSION)),
        ("MF_NETRS_STATUS_MAX", cache::NETRS_STATUS_MAX as u64),
        ("MF_CANDIDATES_MAX", cache::CANDIDATES_MAX as u64),
        ("MF_NO_RSNODE", u64::from(cache::NO_RSNODE)),
        ("MF_ILLEGAL_RSNODE", u64::from(cache::ILLEGAL_RSNODE)),
        ("MF_NETRS_XOR", u64::from(cache::NETRS_XOR)),
    ]);
    numbers.extend(codes("KIND", cache::Kind::ALL));
    Format {
        name: "cache",
        headers: &["cache_wire.h"],
        verdict_header: "cache_verdict.h",
        verdict_lists: "MF_CACHE_VERDICTS(X)",
        page: "docs/cache-wire.md",
        troubleshooting: "## Verdicts of the cache program",
        layouts: layouts(cache::structures()),
        numbers,
        codes: &[("## Kinds", "KIND")],
        operations: cache::Kind::ALL.len(),
        rejects: names(&[cache::Reject::LongStatus]),
        has_bad_count: None,
        in_c: OnceLock::new(),
    }
}
