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


def test_a_wait_that_found_no_room_lends_when_there_is_some(tmp_path: Path) -> None:
    config, end, pid = tmp_path / "midflight.toml", tmp_path / "end", tmp_path / "pid"
    config.write_text("[tasks.executors]\nwaiting = 1\n")
    with Cluster("--config", str(config), slots=1) as cluster, midflight.Client(cluster.switch) as client:
        first = client.submit(functions.lend_and_hold, str(end), str(pid))
        assert eventually(pid.exists)
        unseen = client.submit(functions.nested_unseen, cluster.switch, 1)
        assert eventually(lambda: "raise `waiting`" in "".join(cluster.stderr))
        end.touch()
        assert isinstance(first.result(PATIENCE), int)
        assert unseen.result(PATIENCE) == 1


def test_a_wait_beyond_the_bound_is_told_so_after_a_long_calculation(tmp_path: Path) -> None:
    config, end, pid = tmp_path / "midflight.toml", tmp_path / "end", tmp_path / "pid"
    config.write_text("[tasks.executors]\nwaiting = 1\n")
    with Cluster("--config", str(config), slots=1) as cluster, midflight.Client(cluster.switch) as client:
        first = client.submit(functions.lend_and_hold, str(end), str(pid))
        assert eventually(pid.exists)
        with pytest.raises(midflight.TooManyWaiting, match="raise `waiting`"):
            client.submit(functions.nested_late, cluster.switch, 1.5).result(PATIENCE)
        end.touch()
        assert isinstance(first.result(PATIENCE), int)


def test_outside_of_a_call_nothing_is_lent() -> None:
    with midflight.lend_slot():
        pass
