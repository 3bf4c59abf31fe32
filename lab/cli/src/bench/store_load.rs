//! Reads of a store as a load for benchmarks.

use super::load::Load;
use anyhow::{Context, Result, ensure};
use midflight_host::Handle;
use midflight_host::store::{Answer, Operation, StoreClient};
use std::collections::VecDeque;

/// Reads in flight in the throughput run.
const UNDER_WAY: usize = 64;
const KEY: &[u8] = b"key";
const VALUE: &[u8] = b"a small value";

/// A client that reads one key, which has no writers.
pub(super) struct Reads(StoreClient);

impl Reads {
    pub(super) fn new(client: StoreClient) -> Result<Self> {
        client.put(KEY, VALUE).context("the store does not take the value that is to be read")?;
        Ok(Self(client))
    }

    fn begin(&self) -> Result<Handle<Answer>> {
        Ok(self.0.submit(Operation::Get { key: KEY.into() })?)
    }
}

fn end(read: Handle<Answer>) -> Result<()> {
    let answer = read.wait()?;
    ensure!(matches!(&answer, Answer::Value(value) if value == VALUE), "a read gave {answer:?}");
    Ok(())
}

impl Load for Reads {
    const WHAT: &'static str = "reads";

    fn one(&self) -> Result<()> {
        end(self.begin()?)
    }

    fn many(&self, count: usize) -> Result<usize> {
        let mut reads = VecDeque::with_capacity(UNDER_WAY);
        for _ in 0..count {
            if reads.len() == UNDER_WAY {
                reads.pop_front().map_or(Ok(()), end)?;
            }
            reads.push_back(self.begin()?);
        }
        reads.into_iter().try_for_each(end)?;
        Ok(count)
    }
}
