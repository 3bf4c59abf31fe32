use super::{Answer, Operation, Page, Step, StoreError, Updated, ValuePiece};
use midflight_wire::store::{Status, Stepped, Updated as Wire};
use zerocopy::FromBytes;

/// The outcome of an operation; `None` if the answer does not fit it.
pub(super) fn outcome(operation: &Operation, status: Status, value: &[u8]) -> Option<Result<Answer, StoreError>> {
    match status {
        Status::Done => done(operation, value).map(Ok),
        Status::NotFound => not_found(operation).map(Ok),
        Status::Piece => match operation {
            Operation::Get { key } => ValuePiece::parse(key, value).map(Answer::Piece).map(Ok),
            Operation::Piece { place } => ValuePiece::parse(place.key(), value).map(Answer::Piece).map(Ok),
            _ => None,
        },
        Status::Conflict if matches!(operation, Operation::Cas { .. } | Operation::Create { .. }) => {
            Some(Ok(Answer::Conflict { present: value.to_vec() }))
        }
        Status::Conflict if matches!(operation, Operation::Transact { .. }) => Some(Ok(Answer::Transacted(None))),
        Status::Conflict if let Operation::Update { update, .. } = operation => {
            updated(false, update.returns, value).map(Answer::Updated).map(Ok)
        }
        _ => failure(status).map(Err),
    }
}

fn updated(done: bool, returns: bool, value: &[u8]) -> Option<Updated> {
    let (wire, value) = Wire::ref_from_prefix(value).ok()?;
    let (left, existed) = (wire.left.get(), wire.existed != 0);
    let expires_in = (left != u64::MAX).then_some(left);
    let value = (returns && existed).then(|| value.to_vec());
    Some(Updated { done, existed, expires_in, number: wire.number.get(), value })
}

fn transacted(steps: &[Step], mut reply: &[u8]) -> Option<Vec<Result<Updated, StoreError>>> {
    let mut all = Vec::new();
    for step in steps {
        let (stepped, rest) = Stepped::ref_from_prefix(reply).ok()?;
        let (value, rest) = rest.split_at_checked(size_of::<Wire>() + usize::from(stepped.value_length.get()))?;
        all.push(match Status::from_number(stepped.status)? {
            Status::Done => Ok(updated(true, step.update.returns, value)?),
            Status::Conflict => Ok(updated(false, step.update.returns, value)?),
            status => Err(failure(status)?),
        });
        reply = rest;
    }
    reply.is_empty().then_some(all)
}

fn done(operation: &Operation, value: &[u8]) -> Option<Answer> {
    match operation {
        Operation::Get { .. } => Some(Answer::Value(value.to_vec())),
        Operation::Scan { .. } => Page::parse(value).map(Answer::Page),
        Operation::Exists { .. } | Operation::Delete { .. } => Some(Answer::Existed(true)),
        Operation::Piece { .. } => None,
        Operation::Put { .. } | Operation::Cas { .. } | Operation::Create { .. } | Operation::Stage { .. } => {
            Some(Answer::Done)
        }
        Operation::Incr { .. } => Some(Answer::Number(i64::from_be_bytes(value.try_into().ok()?))),
        Operation::Update { update, .. } => updated(true, update.returns, value).map(Answer::Updated),
        Operation::Transact { steps } => transacted(steps, value).map(Some).map(Answer::Transacted),
    }
}

fn not_found(operation: &Operation) -> Option<Answer> {
    match operation {
        Operation::Get { .. } | Operation::Piece { .. } | Operation::Cas { .. } => Some(Answer::NotFound),
        Operation::Exists { .. } | Operation::Delete { .. } => Some(Answer::Existed(false)),
        Operation::Put { .. }
        | Operation::Create { .. }
        | Operation::Incr { .. }
        | Operation::Update { .. }
        | Operation::Stage { .. }
        | Operation::Transact { .. }
        | Operation::Scan { .. } => None,
    }
}

/// The failure that a status means; `None` if it ends no operation.
pub(super) fn failure(status: Status) -> Option<StoreError> {
    match status {
        Status::NotANumber => Some(StoreError::NotANumber),
        Status::TooLarge => Some(StoreError::TooLarge),
        Status::TooLong => Some(StoreError::TooLong),
        Status::NotStaged => Some(StoreError::NotStaged),
        Status::Full => Some(StoreError::Full),
        Status::DiskFull => Some(StoreError::DiskFull),
        Status::ClientsFull => Some(StoreError::ClientsFull),
        Status::BadRequest => Some(StoreError::BadRequest),
        Status::BadHash => Some(StoreError::BadHash),
        Status::Stale => Some(StoreError::Stale),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_has_its_answers_and_takes_no_others() {
        let key = || b"k".to_vec();
        let get = Operation::Get { key: key() };
        let exists = Operation::Exists { key: key() };
        let put = Operation::Put { key: key(), value: key() };
        let delete = Operation::Delete { key: key() };
        let cas = Operation::Cas { key: key(), expected: key(), new: key() };
        let create = Operation::Create { key: key(), value: key() };
        let incr = Operation::Incr { key: key(), by: 1 };
        let value = Answer::Value(b"v".to_vec());
        let conflict = Answer::Conflict { present: b"v".to_vec() };
        for (operation, on_done, on_not_found, on_conflict) in [
            (&get, Some(value), Some(Answer::NotFound), None),
            (&exists, Some(Answer::Existed(true)), Some(Answer::Existed(false)), None),
            (&put, Some(Answer::Done), None, None),
            (&delete, Some(Answer::Existed(true)), Some(Answer::Existed(false)), None),
            (&cas, Some(Answer::Done), Some(Answer::NotFound), Some(conflict.clone())),
            (&create, Some(Answer::Done), None, Some(conflict)),
            (&incr, None, None, None),
        ] {
            let of = |status| outcome(operation, status, b"v").and_then(Result::ok);
            assert_eq!(of(Status::Done), on_done, "{operation:?}");
            assert_eq!(of(Status::NotFound), on_not_found, "{operation:?}");
            assert_eq!(of(Status::Conflict), on_conflict, "{operation:?}");
            assert_eq!(outcome(operation, Status::Behind, b""), None);
        }
        assert_eq!(outcome(&incr, Status::Done, &(-5_i64).to_be_bytes()), Some(Ok(Answer::Number(-5))));
        assert_eq!(outcome(&incr, Status::NotANumber, b""), Some(Err(StoreError::NotANumber)));
    }
}
