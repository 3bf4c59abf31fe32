"""HyperQueue: tasks that run the program `true`, submitted by its Python package.

A task of HyperQueue is a process; what it calls a Python function is a whole interpreter. So the smallest task is the smallest
program. `Client.wait_for_jobs` looks once a second; here the same call looks every few milliseconds, or without a pause for a
single task, which is in HyperQueue's favour. Its scheduler runs at most every 20 ms, so a task right after another waits: the
latency is taken at rest too, and the lower one counts.
"""

import shutil
import time

from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig
from hyperqueue.ffi import get_version

from measure import Peer

# CPUs that the worker reports: more than cores, because a task mostly waits.
SLOTS = 64
LOOK_EVERY_S = 0.005
REST_S = 0.05


class NotYet(Exception):
    """Raised by a callback to leave `wait_for_jobs` before it sleeps."""


def wait(client, job, pause_s):
    """`Client.wait_for_jobs` for one job, with another interval."""

    def look(states):
        if not all(state["completed"] for state in states.values()):
            raise NotYet

    while True:
        try:
            failed = client.connection.wait_for_jobs([job.id], look)
        except NotYet:
            time.sleep(pause_s)
            continue
        if failed:
            raise RuntimeError(f"tasks failed: {client.get_failed_tasks(job)}")
        return


def main():
    peer = Peer("hyperqueue")
    program = shutil.which("true")
    with LocalCluster() as cluster:
        cluster.start_worker(WorkerConfig(cores=SLOTS))
        client = cluster.client()

        def run(n, pause_s):
            job = Job()
            for _ in range(n):
                # Without files for their output.
                job.program([program], stdout=None, stderr=None)
            submitted = client.submit(job)
            wait(client, submitted, pause_s)
            client.forget(submitted)

        rate = peer.throughput("tasks", lambda n: run(n, LOOK_EVERY_S))

        def one():
            run(1, 0)

        latencies = {"": peer.latency("tasks", one), ", at rest": peer.latency("tasks", one, REST_S)}
        soonest = min(latencies, key=lambda how: latencies[how][0])
        interface = f"Job.program({program}), Client.submit; latency: one task{soonest}; 1 worker with {SLOTS} slots"
        peer.row("hyperqueue", get_version().removeprefix("v"), interface, rate, latencies[soonest])


if __name__ == "__main__":
    main()
