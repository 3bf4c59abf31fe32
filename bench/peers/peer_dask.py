"""Dask: `Client.map` and `Client.submit` of distributed, with a worker in the client's process and with a process for each core.

Both clusters are measured, and each number is that of the faster. Dask keeps what it sends for up to 10 ms to send it with more: a
single task right after another waits for that, so the latency is taken at rest, and with the futures kept.
"""

import os

import dask
import distributed
from distributed import Client, LocalCluster

from measure import Peer

# Threads of a worker: more were no faster.
SLOTS = 16
# Longer than the longest interval at which Dask sends (10 ms).
REST_S = 0.015
SETTINGS = {
    # Tasks go to the worker at once, even if it has no free thread.
    "distributed.scheduler.worker-saturation": float("inf"),
    # No-op tasks are not worth stealing; the measurement needs no profiles.
    "distributed.scheduler.work-stealing": False,
    "distributed.worker.profile.enabled": False,
}


def noop(_=None):
    pass


def measure(peer, what, client):
    def batch(n):
        client.gather(client.map(noop, range(n), pure=False))

    kept = []

    def one():
        kept.append(client.submit(noop, pure=False))
        kept[-1].result()

    return peer.throughput(what, batch), peer.latency(what, one, REST_S)


def main():
    peer = Peer("dask")
    dask.config.set(SETTINGS)
    measured = {}
    for processes in (False, True):
        workers = os.cpu_count() if processes else 1
        what = f"processes={processes}, {workers} x {SLOTS} threads"
        cluster = LocalCluster(
            n_workers=workers,
            threads_per_worker=SLOTS,
            processes=processes,
            host="127.0.0.1" if processes else None,
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address="127.0.0.1:0",
        )
        with cluster, Client(cluster) as client:
            measured[what] = measure(peer, what, client)
    fastest = max(measured, key=lambda what: measured[what][0])
    soonest = min(measured, key=lambda what: measured[what][1][0])
    interface = f"gather(map(noop, pure=False)), {fastest}; latency: submit().result() at rest, {soonest}"
    peer.row("dask", distributed.__version__, interface, measured[fastest][0], measured[soonest][1])


if __name__ == "__main__":
    main()
