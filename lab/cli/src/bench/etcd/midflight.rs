//! Clients of our store: one connection for each worker.

use super::load::{CLIENTS_OF_WORKER, Client, PATIENCE, VALUE, WORKERS};
use crate::store::cluster::Cluster;
use anyhow::{Result, ensure};
use midflight_host::store::{Answer, Operation, StoreClient};

pub(super) fn connect(cluster: &Cluster<'_>) -> Result<Vec<StoreClient>> {
    (0..WORKERS).map(|_| cluster.client(0, |builder| builder.lanes(CLIENTS_OF_WORKER).timeout(PATIENCE))).collect()
}

impl Client for &StoreClient {
    async fn get(&mut self, key: String) -> Result<()> {
        let answer = self.submit(Operation::Get { key: key.into() })?.await?;
        ensure!(matches!(&answer, Answer::Value(value) if value == VALUE), "GET gave {answer:?}");
        Ok(())
    }

    async fn set(&mut self, key: String) -> Result<()> {
        let answer = self.submit(Operation::Put { key: key.into(), value: VALUE.into() })?.await?;
        ensure!(matches!(answer, Answer::Done), "PUT gave {answer:?}");
        Ok(())
    }
}
