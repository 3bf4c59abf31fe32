"""Ray: tasks, and two ways around its scheduler that its documentation offers for small work.

`ray` is what Ray schedules: tasks, in batches of a thousand as in Ray's own `ray microbenchmark`. `ray-actors` are calls of
a method of one actor: the caller has chosen the executor. `ray-compiled` is a Compiled Graph of one node: a fixed
channel to one actor, which takes calls in order and is no queue.
"""

import os

# Before Ray is imported. Disables usage statistics and events of tasks.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_task_events_report_interval_ms"] = "0"
# Ray's switch for machines without a network: it then listens on loopback only.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"

import collections
import logging
import tempfile

import ray
from ray.dag import InputNode

from measure import Peer

CHUNK = 1_000
# Executions of a Compiled Graph that may be in flight: Ray refuses more.
IN_FLIGHT = 10


@ray.remote
def noop():
    pass


@ray.remote(num_cpus=0)
class Actor:
    def noop(self, _=None):
        pass


def in_chunks(call):
    """A batch of calls whose results are fetched by the thousand."""

    def batch(n):
        for first in range(0, n, CHUNK):
            ray.get([call.remote() for _ in range(min(CHUNK, n - first))])

    return batch


def in_flight(graph):
    """A batch of executions of a Compiled Graph."""

    def batch(n):
        running = collections.deque()
        for _ in range(n):
            if len(running) == IN_FLIGHT:
                ray.get(running.popleft())
            running.append(graph.execute(None))
        while running:
            ray.get(running.popleft())

    return batch


def measure(peer, name, interface, batch, one):
    rate = peer.throughput(name, batch)
    peer.row(name, ray.__version__, interface, rate, peer.latency(name, one))


def main():
    peer = Peer("ray")
    cores = os.cpu_count()
    ray.init(
        num_cpus=cores,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        _temp_dir=tempfile.gettempdir(),
    )
    try:
        tasks = f"ray.get([noop.remote() ...]), {CHUNK} at a time; {cores} worker processes"
        measure(peer, "ray", tasks, in_chunks(noop), lambda: ray.get(noop.remote()))
        actor = Actor.remote()
        calls = f"ray.get([actor.noop.remote() ...]), {CHUNK} at a time; one actor"
        measure(peer, "ray-actors", calls, in_chunks(actor.noop), lambda: ray.get(actor.noop.remote()))
        with InputNode() as node:
            graph = actor.noop.bind(node)
        graph = graph.experimental_compile()
        compiled = f"Compiled Graph of one node, {IN_FLIGHT} executions in flight; one actor"
        measure(peer, "ray-compiled", compiled, in_flight(graph), lambda: ray.get(graph.execute(None)))
        graph.teardown()
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
