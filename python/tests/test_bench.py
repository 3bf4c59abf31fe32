"""The benchmark of `midflight-lab bench python`, with Midflight alone: calls, and one program."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "python"


def test_calls_and_a_program_run_on_midflight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    monkeypatch.setenv("PYTHONPATH", str(BENCH))  # workers import the programs, too
    import calls
    import systems
    from programs import montecarlo

    effort = calls.Effort(quick=True)
    effort.run_s = effort.sample_s = 0.05
    with systems.load("midflight") as midflight:
        values = dict(calls.measure(midflight, effort))
        price = montecarlo.short(midflight, 20)
    assert price == montecarlo.short(systems.load("serial"), 20)
    assert sorted(values) == [
        "alone_wire_bytes",
        "map_per_s",
        "map_wire_bytes",
        "rtt_p50_us",
        "rtt_p99_us",
        "submit_per_s",
        "submit_wire_bytes",
    ]
    assert all(value > 0 for value in values.values()), values
    # A single call is a task: its arguments and its result pass loopback, 200 bytes each.
    assert values["alone_wire_bytes"] > 400, values


def test_payloads_have_some_200_bytes_and_quantiles_are_of_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    import pickle

    import calls

    assert len(pickle.dumps(((calls.payload(1),), {}), 5)) == 205
    assert len(pickle.dumps(calls.payload(1), 5)) == 199
    assert calls.quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.0
    assert calls.quantile([1.0], 0.99) == 1.0
