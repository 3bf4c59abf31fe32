//! What answers mean to callers. The protocol passes on only answers that match their operations.

use super::{Answer, Cas, Page, StoreError, Updated};

pub(super) fn value(answer: Answer) -> Option<Vec<u8>> {
    match answer {
        Answer::Value(value) => Some(value),
        Answer::NotFound => None,
        other => unlike("GET", &other),
    }
}

/// Of EXISTS and DELETE.
pub(super) fn existed(answer: Answer) -> bool {
    match answer {
        Answer::Existed(existed) => existed,
        other => unlike("EXISTS or DELETE", &other),
    }
}

pub(super) fn put(answer: Answer) {
    match answer {
        Answer::Done => {}
        other => unlike("PUT", &other),
    }
}

pub(super) fn cas(answer: Answer) -> Cas {
    match answer {
        Answer::Done => Cas::Done,
        Answer::NotFound => Cas::NotFound,
        Answer::Conflict { present } => Cas::Conflict { present },
        other => unlike("CAS", &other),
    }
}

/// The value that was there.
pub(super) fn create(answer: Answer) -> Option<Vec<u8>> {
    match answer {
        Answer::Done => None,
        Answer::Conflict { present } => Some(present),
        other => unlike("CREATE", &other),
    }
}

pub(super) fn sum(answer: Answer) -> i64 {
    match answer {
        Answer::Number(sum) => sum,
        other => unlike("INCR", &other),
    }
}

pub(super) fn updated(answer: Answer) -> Updated {
    match answer {
        Answer::Updated(updated) => updated,
        other => unlike("UPDATE", &other),
    }
}

pub(super) fn page(answer: Answer) -> Page {
    match answer {
        Answer::Page(page) => page,
        other => unlike("SCAN", &other),
    }
}

/// What has become of each step.
pub(super) fn transacted(answer: Answer) -> Option<Vec<Result<Updated, StoreError>>> {
    match answer {
        Answer::Transacted(steps) => steps,
        other => unlike("TRANSACT", &other),
    }
}

/// The revision; `None`: there is no such key.
pub(super) fn revision(answer: Answer) -> Option<u64> {
    match answer {
        Answer::Piece(piece) => Some(piece.revision),
        Answer::NotFound => None,
        other => unlike("a READ of a piece", &other),
    }
}

fn unlike(operation: &str, answer: &Answer) -> ! {
    unreachable!("{answer:?} is no answer to {operation}")
}
