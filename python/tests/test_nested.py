"""Calls that wait for calls lend their slots."""

from __future__ import annotations

from pathlib import Path

import functions
import pytest
from conftest import PATIENCE, Cluster, eventually

import midflight


def test_as_many_calls_that_wait_as_slots_end(cluster: Cluster) -> None:
    with midflight.Client(cluster.switch) as client:
        results = client.map(functions.nested_map, [cluster.switch] * 2, [3, 4], chunksize=1, timeout=PATIENCE)
        assert list(results) == [6, 12]


def test_any_depth_ends_with_one_slot() -> None:
    with Cluster(slots=1) as cluster, midflight.Client(cluster.switch) as client:
        assert client.submit(functions.nested, cluster.switch, 5).result(PATIENCE) == 5
        # Idle workers of lent slots are ended, except for one.
        assert eventually(lambda: len(cluster.workers()) == 1), cluster.workers()


def test_a_wait_of_the_standard_library_is_noticed() -> None:
    with Cluster(slots=1) as cluster, midflight.Client(cluster.switch) as client:
        assert client.submit(functions.nested_unseen, cluster.switch, 2).result(PATIENCE) == 2


def test_a_command_is_waited_for_in_lend_slot() -> None:
    with Cluster(slots=1) as cluster, midflight.Client(cluster.switch) as client:
        assert "nested" in client.submit(functions.nested_command, cluster.switch).result(PATIENCE)


def test_beyond_the_bound_a_call_is_told_so(tmp_path: Path) -> None:
    config = tmp_path / "midflight.toml"
    config.write_text("[tasks.executors]\nwaiting = 2\n")
    with Cluster("--config", str(config), slots=1) as cluster, midflight.Client(cluster.switch) as client:
        assert client.submit(functions.nested, cluster.switch, 2).result(PATIENCE) == 2
        with pytest.raises(midflight.TooManyWaiting, match="raise `waiting`"):
            client.submit(functions.nested, cluster.switch, 3).result(PATIENCE)
        assert client.submit(functions.nested, cluster.switch, 2).result(PATIENCE) == 2


def test_outside_of_a_call_nothing_is_lent() -> None:
    with midflight.lend_slot():
        pass
