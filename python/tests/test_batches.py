"""A batch that takes longer than its target returns the calls that it has not begun."""

from __future__ import annotations

from pathlib import Path

import functions
import pytest
from conftest import PATIENCE, Cluster, eventually

import midflight


def files(tmp_path: Path, count: int) -> list[str]:
    return [str(tmp_path / str(number)) for number in range(count)]


def are_noted(notes: list[str]) -> bool:
    return all(Path(note).exists() for note in notes)


def test_map_runs_elsewhere_what_is_behind_a_slow_call(cluster: Cluster, tmp_path: Path) -> None:
    go, notes = tmp_path / "go", files(tmp_path, 40)
    with midflight.Client(cluster.switch) as client:
        list(client.map(functions.note_or_hold, [None] * 2000))  # short calls: they are batched
        results = client.map(functions.note_or_hold, notes, [str(go)] + [None] * 39)
        assert eventually(lambda: are_noted(notes)), "some wait for the slow one"
        go.touch()
        assert list(results) == notes
    assert [Path(note).read_text() for note in notes] == ["."] * 40, "each ran once"


def test_submit_runs_elsewhere_what_is_behind_a_slow_call(cluster: Cluster, tmp_path: Path) -> None:
    go, notes = tmp_path / "go", files(tmp_path, 300)
    with midflight.Client(cluster.switch) as client:
        list(client.map(functions.note_or_hold, [None] * 2000))
        futures = [
            client.submit(functions.note_or_hold, note, str(go) if place == 150 else None)
            for place, note in enumerate(notes)
        ]
        others = [future for place, future in enumerate(futures) if place != 150]
        assert midflight.gather(others, timeout=PATIENCE) == notes[:150] + notes[151:]
        assert not futures[150].done()
        go.touch()
        assert futures[150].result(PATIENCE) == notes[150]
    assert [Path(note).read_text() for note in notes] == ["."] * 300, "each ran once"


@pytest.mark.parametrize("size", [100, 5000])
@pytest.mark.parametrize("slow", [150, 299])
def test_results_before_a_slow_call_do_not_wait_for_it(cluster: Cluster, tmp_path: Path, size: int, slow: int) -> None:
    go = tmp_path / "go"
    with midflight.Client(cluster.switch) as client:
        list(client.map(functions.large_or_hold, [0] * 2000))
        futures = [client.submit(functions.large_or_hold, size, str(go) if place == slow else None) for place in range(300)]
        others = futures[:slow] + futures[slow + 1 :]
        assert [len(value) for value in midflight.gather(others, timeout=PATIENCE)] == [size] * 299
        assert not futures[slow].done()
        go.touch()
        assert len(futures[slow].result(PATIENCE)) == size


def test_what_a_batch_gave_back_is_cancelled_with_it(cluster: Cluster, tmp_path: Path) -> None:
    go, notes = tmp_path / "go", files(tmp_path, 8)
    with midflight.Client(cluster.switch) as client:
        list(client.map(functions.note_or_hold, [None] * 2000))
        # Both slots are occupied, so the returned calls are queued.
        results = client.map(functions.note_or_hold, notes, [str(go)] * 8)
        assert eventually(lambda: sum(Path(note).exists() for note in notes) == 2)
        results.cancel()
        results.finish()
    assert eventually(lambda: sum(Path(note).exists() for note in notes) == 2)


def test_an_exception_in_what_was_given_back_is_its_calls(cluster: Cluster, tmp_path: Path) -> None:
    go = tmp_path / "go"
    with midflight.Client(cluster.switch) as client:
        list(client.map(functions.note_or_hold, [None] * 2000))
        nowhere = str(tmp_path / "nowhere" / "file")
        notes = [None, None, nowhere, None]
        results = client.map(functions.note_or_hold, notes, [None, str(go), None, None], return_exceptions=True)
        go.touch()
        found = list(results)
    assert [found[0], found[1], found[3]] == [None, None, None]
    assert isinstance(found[2], FileNotFoundError)
