use super::Operation;
use midflight_endpoint::Nanos;

#[derive(Default)]
pub(super) enum Kind {
    Operation(Operation),
    /// Opens a client id.
    #[default]
    Open,
}

/// The store's part of a request.
#[derive(Default)]
pub(super) struct Body {
    pub(super) kind: Kind,
    pub(super) hash: u32,
    /// Only writes and openings have one.
    pub(super) lane: Option<usize>,
    /// A write's number in its lane; random for an opening.
    pub(super) number: u64,
    /// Transmissions under an earlier client id.
    pub(super) sent_before: u32,
    /// Switch and cookie of the last transmission.
    pub(super) switch: usize,
    pub(super) cookie: u64,
    pub(super) asked_direct: Option<usize>,
    /// From this time on, a cookie may cause a transmission at once.
    pub(super) heeds_cookies_from: Nanos,
    /// Current timeout for an answer; 0: the measured one.
    pub(super) patience: Nanos,
}

impl Body {
    pub(super) fn is_write(&self) -> bool {
        match &self.kind {
            Kind::Operation(operation) => operation.is_write(),
            Kind::Open => true,
        }
    }
}
