//! All keys of a store, page by page.

use super::{Answer, Operation, StoreClient, answers};
use crate::error::Error;
use crate::pending::Handle;
use midflight_store::client::{Cursor, Page};
use midflight_wire::store::scan_order;
use std::collections::VecDeque;

/// Pages that are asked for at a time, each of its own part of the order of keys.
const PARTS: u64 = 64;
const PART: u64 = u64::MAX / PARTS + 1;

/// The keys of a store, in no order; see [`StoreClient::scan`].
#[derive(Debug)]
pub struct Scan<'a> {
    client: &'a StoreClient,
    /// The next page of each part, and the last order of this part.
    asked: VecDeque<(Handle<Answer>, u64)>,
    keys: std::vec::IntoIter<Vec<u8>>,
    failed: Option<Error>,
}

impl<'a> Scan<'a> {
    pub(super) fn begin(client: &'a StoreClient) -> Self {
        let mut scan = Self { client, asked: VecDeque::new(), keys: Vec::new().into_iter(), failed: None };
        for part in 0..PARTS {
            scan.ask(Cursor::new(part * PART, 0), part * PART + (PART - 1));
        }
        scan
    }

    fn ask(&mut self, from: Cursor, last: u64) {
        match self.client.submit(Operation::Scan { from }) {
            Ok(handle) => self.asked.push_back((handle, last)),
            Err(error) => {
                self.failed.get_or_insert(error);
            }
        }
    }

    fn next_page(&mut self) -> Option<Result<(), Error>> {
        if let Some(error) = self.failed.take() {
            self.asked.clear();
            return Some(Err(error));
        }
        let (handle, last) = self.asked.pop_front()?;
        match handle.wait().map(answers::page) {
            Ok(page) => {
                let (keys, next) = of_part(page, last);
                self.keys = keys.into_iter();
                if let Some(next) = next {
                    self.ask(next, last);
                }
            }
            Err(error) => self.failed = Some(error),
        }
        Some(Ok(()))
    }
}

/// What belongs to a part that ends with this order: a page may reach beyond it.
pub(super) fn of_part(page: Page, last: u64) -> (Vec<Vec<u8>>, Option<Cursor>) {
    let Page { mut keys, next, .. } = page;
    keys.retain(|key| scan_order(key) <= last);
    (keys, next.filter(|next| next.order() <= last))
}

impl Iterator for Scan<'_> {
    type Item = Result<Vec<u8>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(key) = self.keys.next() {
                return Some(Ok(key));
            }
            if let Err(error) = self.next_page()? {
                return Some(Err(error));
            }
        }
    }
}
