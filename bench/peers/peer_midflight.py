"""Midflight's Python package: `submit` in a loop, as a user of Ray's tasks or Dask's futures would, with a worker process for each core."""

import pathlib
import sys

from measure import Peer

sys.path.append(str(pathlib.Path(__file__).parents[1] / "python"))
from systems import WORKERS
from systems.midflight import Midflight


def noop(_=None):
    pass


def main():
    peer = Peer("midflight-python")
    with Midflight() as cluster:
        what = f"{WORKERS} workers"
        tasks_per_s = peer.throughput(what, lambda n: cluster.submit(noop, range(n)))
        latency = peer.latency(what, lambda: cluster.one(noop, None))
        interface = f"gather([submit(noop) ...]); latency: submit().result(); {what}, a process each"
        peer.row("midflight-python", cluster.version, interface, tasks_per_s, latency)


if __name__ == "__main__":
    main()
