"""Futures alone: without a condition until one is needed, and then like those of the standard library."""

from __future__ import annotations

import concurrent.futures
import gc
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import midflight
from conftest import PATIENCE

MANY = 2000


def futures(count: int) -> list[midflight.Future[Any]]:
    """Of calls that were never submitted."""
    native = SimpleNamespace(cancel=lambda token: None)
    client: Any = SimpleNamespace(_core=SimpleNamespace(native=native))
    function: Any = SimpleNamespace(may_join=True)
    return [midflight.Future(client, function, b"") for _ in range(count)]


def at_once(*acts: Callable[[], None]) -> None:
    """Runs each in its own thread, all from the same moment on."""
    begin = threading.Barrier(len(acts))

    def run(act: Callable[[], None]) -> None:
        begin.wait(PATIENCE)
        act()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # to interleave the threads at any point
    try:
        with concurrent.futures.ThreadPoolExecutor(len(acts)) as pool:
            for done in [pool.submit(run, act) for act in acts]:
                done.result(PATIENCE)
    finally:
        sys.setswitchinterval(before)


def test_a_future_that_is_only_read_has_one_object_for_the_garbage_collector() -> None:
    (future,) = futures(1)
    assert not future.done()
    future._settle((True, 1))
    assert future.done() and future.result() == 1 and future.exception() is None
    assert future._own_condition is None
    assert [held for held in gc.get_referents(future) if isinstance(held, list | dict | threading.Condition)] == []


def test_what_the_base_class_needs_is_there() -> None:
    (future,) = futures(1)
    with future._condition:
        assert all(hasattr(future, name) for name in vars(concurrent.futures.Future()))
    assert future._condition is future._condition


def test_who_comes_while_a_future_ends_is_told_once() -> None:
    many = futures(MANY)
    told: list[midflight.Future[Any]] = []

    def end() -> None:
        for number, future in enumerate(many):
            future._settle((True, number))

    def ask() -> None:
        for future in many:
            future.add_done_callback(told.append)

    def wait() -> None:
        done, not_done = concurrent.futures.wait(many, PATIENCE)
        assert len(done) == MANY and not not_done

    at_once(end, ask, wait)
    assert sorted(future.result() for future in told) == list(range(MANY))


def test_who_comes_in_the_middle_of_the_end_of_a_future_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Like a signal handler, or an object that the garbage collector calls: in the same thread."""
    told: list[midflight.Future[Any]] = []
    note = midflight.Future._note

    def interrupted(future: midflight.Future[Any], outcome: Any) -> bool:
        monkeypatch.setattr(midflight.Future, "_note", note)
        future.add_done_callback(told.append)
        other._settle((True, 2))
        return note(future, outcome)

    future, other = futures(2)
    monkeypatch.setattr(midflight.Future, "_note", interrupted)
    settling = threading.Thread(target=future._settle, args=((True, 1),), daemon=True)
    settling.start()
    settling.join(PATIENCE)
    assert not settling.is_alive(), "it waits for itself"
    assert told == [future] and (future.result(), other.result()) == (1, 2)


def test_a_future_is_cancelled_or_ends_and_not_both() -> None:
    many = futures(MANY)
    cancelled: list[bool] = []

    def end() -> None:
        for future in many:
            future._settle((True, 1))

    at_once(end, lambda: cancelled.extend(future.cancel() for future in many))
    assert [future.cancelled() for future in many] == cancelled
    assert [future._result for future in many] == [None if was else 1 for was in cancelled]


def test_an_exception_is_told_to_all() -> None:
    first, second = futures(2)
    heard: list[Any] = []
    second.add_done_callback(heard.append)
    for future in (first, second):
        future._settle((False, KeyError("gone")))
        future._settle((True, 1))  # settled before
        assert isinstance(future.exception(), KeyError)
        with pytest.raises(KeyError):
            future.result()
    assert heard == [second]
    done, _ = concurrent.futures.wait([first, second], 0, concurrent.futures.FIRST_EXCEPTION)
    assert done == {first, second}


def test_futures_of_the_standard_library_are_waited_for_together_with_these() -> None:
    (ours,) = futures(1)
    theirs: concurrent.futures.Future[int] = concurrent.futures.Future()
    order = []

    def read() -> None:
        order.extend(concurrent.futures.as_completed([ours, theirs], PATIENCE))

    at_once(read, lambda: theirs.set_result(1), lambda: ours._settle((True, 2)))
    assert {future.result() for future in order} == {1, 2}
