#!/usr/bin/env python3
"""How fast Python calls are: functions with 200-byte pickled arguments and results, one client, to a running cluster.

    midflight up --python --slots 2           # in another terminal
    bench/python/measure.py [--switch HOST:PORT] [--tasks N] [--seconds S]

Prints medians of rounds. Names are those of docs/measuring.md.
"""

from __future__ import annotations

import argparse
import pickle
import statistics
import time

import midflight


def payload(number: int) -> bytes:
    """200 bytes when it is pickled as the arguments of a call."""
    return number.to_bytes(8, "little") * 23


def echo(value: bytes) -> bytes:
    return value


def by_submit(client: midflight.Client, tasks: int) -> float:
    started = time.perf_counter()
    futures = [client.submit(echo, payload(number)) for number in range(tasks)]
    for number, future in enumerate(futures):
        assert future.result()[:8] == number.to_bytes(8, "little")
    return tasks / (time.perf_counter() - started)


def by_map(client: midflight.Client, tasks: int) -> float:
    started = time.perf_counter()
    for number, result in enumerate(client.map(echo, map(payload, range(tasks)))):
        assert result[:8] == number.to_bytes(8, "little")
    return tasks / (time.perf_counter() - started)


def alone(client: midflight.Client, tasks: int) -> list[float]:
    """Microseconds of one task at a time."""
    times = []
    for number in range(tasks):
        started = time.perf_counter()
        client.submit(echo, payload(number)).result()
        times.append((time.perf_counter() - started) * 1e6)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--switch")
    parser.add_argument("--tasks", type=int, default=50_000, help="of a round (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="after one to warm up (%(default)s)")
    args = parser.parse_args()
    with midflight.Client(args.switch) as client:
        by_submit(client, 2000)
        by_map(client, 2000)
        submits = [by_submit(client, args.tasks) for _ in range(args.rounds)]
        maps = [by_map(client, args.tasks) for _ in range(args.rounds)]
        times = sorted(alone(client, 3000))
    print(f"python.bytes {len(pickle.dumps(((payload(1),), {}), 5))}")
    print(f"python.tasks_per_s {statistics.median(submits):.0f} ({min(submits):.0f} to {max(submits):.0f})")
    print(f"python.map_tasks_per_s {statistics.median(maps):.0f} ({min(maps):.0f} to {max(maps):.0f})")
    print(f"python.rtt_p50_us {times[len(times) // 2]:.0f} (p99 {times[len(times) * 99 // 100]:.0f})")


if __name__ == "__main__":
    main()
