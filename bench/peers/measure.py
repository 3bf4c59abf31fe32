"""Measures a peer: the same procedure for every system that is driven from Python.

A peer gives two functions. `batch(n)` submits n no-op tasks as fast as the interface takes them and returns when all
results are in; `one()` does the same with a single task. What is measured goes to stdout as one line of JSON for each
row of the table; progress goes to stderr.
"""

import argparse
import json
import math
import pathlib
import statistics
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parents[1]))  # the folder bench, which the scripts share
import child


class Effort:
    """Lengths of the measurement."""

    def __init__(self, quick):
        self.runs = 1 if quick else 3
        self.run_s = 1.5 if quick else 6.0
        self.calibrate_s = 0.3 if quick else 1.0
        # The latency is sampled for this long and this often, but never longer than the limit.
        self.sample_s = 1.0 if quick else 5.0
        self.samples = 100 if quick else 1_000
        self.sample_limit_s = 3.0 if quick else 15.0


class Peer:
    """One system under measurement: its name, and where its results go."""

    def __init__(self, name):
        parser = argparse.ArgumentParser(description=f"Measures no-op tasks on {name}.")
        parser.add_argument("--quick", action="store_true", help="fewer and shorter runs")
        parser.add_argument("--with-parent", action="store_true", help="end when stdin is closed")
        options = parser.parse_args()
        self.name = name
        self.effort = Effort(options.quick)
        self.results = child.take_stdout()
        child.end_on_signals(options.with_parent)

    def throughput(self, what, batch):
        """The median of the runs, in tasks a second. A run has as many tasks as take `run_s`."""
        n, elapsed = 100, 0.0
        batch(n)
        while elapsed < self.effort.calibrate_s:
            n *= 2
            elapsed = _timed(batch, n)
        rate, rates = n / elapsed, []
        for run in range(1, self.effort.runs + 1):
            n = max(1, round(rate * self.effort.run_s))
            rate = n / _timed(batch, n)
            rates.append(rate)
            self.say(f"{what}, run {run} of {self.effort.runs}: {n} tasks, {rate:.0f} tasks/s")
        return statistics.median(rates)

    def latency(self, what, one, rest_s=0.0):
        """Median and 99th percentile of single tasks in microseconds; the system idles before each."""
        effort, warm_up = self.effort, 20 if rest_s else 200
        for _ in range(warm_up):
            one()
        samples, started = [], time.perf_counter()
        while (elapsed := time.perf_counter() - started) < effort.sample_limit_s:
            if elapsed >= effort.sample_s and len(samples) >= effort.samples:
                break
            if rest_s:
                time.sleep(rest_s)
            begun = time.perf_counter()
            one()
            samples.append((time.perf_counter() - begun) * 1e6)
        samples.sort()
        p50, p99 = _quantile(samples, 0.5), _quantile(samples, 0.99)
        pause = f", {rest_s * 1e3:.0f} ms apart" if rest_s else ""
        self.say(f"{what}, {len(samples)} single tasks{pause}: p50 {p50:.0f} us, p99 {p99:.0f} us")
        return p50, p99

    def row(self, name, version, interface, tasks_per_s, latency):
        """Prints a row of the table."""
        row = {
            "name": name,
            "version": version,
            "interface": interface,
            "tasks_per_s": tasks_per_s,
            "rtt_p50_us": latency[0],
            "rtt_p99_us": latency[1],
        }
        self.results.write(json.dumps(row) + "\n")
        self.results.flush()

    def say(self, text):
        """Progress; lines with this prefix reach the user."""
        print(f"peers: {self.name}: {text}", file=sys.stderr, flush=True)


def _timed(batch, n):
    started = time.perf_counter()
    batch(n)
    return time.perf_counter() - started


def _quantile(ordered, quantile):
    return ordered[max(0, math.ceil(quantile * len(ordered)) - 1)]
