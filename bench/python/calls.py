"""Calls whose arguments and results are pickles of some 200 bytes: rate, latency of a single call, bytes on the wire."""

from __future__ import annotations

import math
import pathlib
import time
from collections.abc import Callable, Iterator

from systems import System

#: Tasks of the first measurement of a rate; doubled until a measurement is long enough.
FIRST = 200


def payload(number: int) -> bytes:
    """205 bytes when pickled as the arguments of a call, 199 as its result."""
    return number.to_bytes(8, "little") * 23


def echo(value: bytes) -> bytes:
    return value


class Effort:
    """Lengths of the measurement."""

    def __init__(self, quick: bool) -> None:
        self.run_s = 0.4 if quick else 1.2
        self.sample_s = 0.3 if quick else 1.0


def measure(system: System, effort: Effort) -> Iterator[tuple[str, float]]:
    """Names and values of results."""
    for name, batch in (("submit", system.submit), ("map", system.map)):
        rate, wire_bytes = throughput(lambda items, batch=batch: batch(echo, items), effort)
        yield f"{name}_per_s", rate
        yield f"{name}_wire_bytes", wire_bytes
    times, wire_bytes = alone(system, effort)
    yield "rtt_p50_us", quantile(times, 0.5)
    yield "rtt_p99_us", quantile(times, 0.99)
    yield "alone_wire_bytes", wire_bytes


def throughput(batch: Callable[[list[bytes]], list[bytes]], effort: Effort) -> tuple[float, float]:
    """Tasks a second of a batch that takes about `run_s`, and bytes on the wire for each task."""
    count, elapsed = FIRST, _timed(batch, FIRST)
    while elapsed < effort.run_s / 4:
        count *= 2
        elapsed = _timed(batch, count)
    count = max(FIRST, round(count / elapsed * effort.run_s))
    before = loopback_bytes()
    elapsed = _timed(batch, count)
    return count / elapsed, (loopback_bytes() - before) / count


def _timed(batch: Callable[[list[bytes]], list[bytes]], count: int) -> float:
    items = [payload(number) for number in range(count)]
    started = time.perf_counter()
    results = batch(items)
    elapsed = time.perf_counter() - started
    if results != items:
        raise RuntimeError(f"{count} calls did not return what they were given")
    return elapsed


def alone(system: System, effort: Effort) -> tuple[list[float], float]:
    """Microseconds of calls one at a time, in order of size; bytes on the wire for each."""
    for number in range(20):
        system.one(echo, payload(number))
    times: list[float] = []
    deadline, before = time.perf_counter() + effort.sample_s, loopback_bytes()
    while time.perf_counter() < deadline:
        if system.rest_s:
            time.sleep(system.rest_s)
        item = payload(len(times))
        started = time.perf_counter()
        result = system.one(echo, item)
        times.append((time.perf_counter() - started) * 1e6)
        if result != item:
            raise RuntimeError("a call did not return what it was given")
    return sorted(times), (loopback_bytes() - before) / len(times)


def quantile(ordered: list[float], share: float) -> float:
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def loopback_bytes() -> int:
    """Bytes that loopback has carried so far, of all programs and protocols, with headers from IP on."""
    for line in pathlib.Path("/proc/net/dev").read_text().splitlines():
        interface, _, counts = line.partition(":")
        if interface.strip() == "lo":
            return int(counts.split()[0])
    raise RuntimeError("/proc/net/dev names no loopback interface lo")
