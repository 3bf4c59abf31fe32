"""Guarantees of a client: no end of a call is lost, bounds are waited for, and a future or an iterator keeps the client."""

from __future__ import annotations

import concurrent.futures
import ctypes
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import functions
import numpy
import pytest
from conftest import PATIENCE, Cluster, eventually

import midflight
from midflight import _entries, _outcomes, _pickling


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Path]:
    """A file that `functions.wait_for` waits for."""
    path = tmp_path / "gate"
    yield path
    path.touch()


def run(program: str, cluster: Cluster) -> subprocess.CompletedProcess[str]:
    """A program with a client of the cluster."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "MIDFLIGHT_SWITCH": cluster.switch},
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


# Ends of calls.


def test_interrupts_lose_no_end_of_a_call(client: midflight.Client) -> None:
    futures = [client.submit(functions.double, number) for number in range(5_000)]
    interrupts = 0

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        while interrupts < 20:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.005)
                midflight.gather(futures)
                break
            except KeyboardInterrupt:
                interrupts += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupts > 0
    assert midflight.gather(futures, timeout=PATIENCE) == [2 * number for number in range(5_000)]
    assert client.open == 0


def test_a_result_that_ends_who_unpickles_it_is_an_error_of_its_call(client: midflight.Client) -> None:
    ended = threading.Event()
    future = client.submit(functions.Exits)
    future.add_done_callback(lambda _: ended.set())
    assert ended.wait(PATIENCE), "the client's thread settles it"
    assert isinstance(future.exception(), SystemExit)
    ended.clear()
    client.submit(functions.double, 2).add_done_callback(lambda _: ended.set())
    assert ended.wait(PATIENCE), "the client's thread is still there"


def test_an_exception_that_is_none_when_it_comes_is_told(client: midflight.Client) -> None:
    with pytest.raises(midflight.RemoteError, match="it is now a int"):
        client.submit(functions.raise_odd).result(PATIENCE)


@pytest.mark.parametrize("value", [b"", b"E", b"X", b"R", b"R" + bytes(12), b"R" + bytes(8) + b"\2" + bytes(19)])
def test_an_answer_that_cannot_be_read_is_an_error_of_its_calls(value: bytes) -> None:
    for calls in (1, 3):
        _, outcomes = _outcomes.read(_outcomes.VALUE, value, calls)
        assert isinstance(outcomes, list) and len(outcomes) == calls
        for has_value, error in outcomes:
            assert not has_value and isinstance(error, midflight.MidflightError), error


def test_calls_and_results_must_be_as_many() -> None:
    value = b"".join(_entries.result(5, [(_entries.VALUE, _pickling.dumps(1))] * 2))
    assert _outcomes.read(_outcomes.VALUE, value, 2) == (5, [(True, 1), (True, 1)])
    _, outcomes = _outcomes.read(_outcomes.VALUE, value, 3)
    assert isinstance(outcomes, list) and [has_value for has_value, _ in outcomes] == [False] * 3
    assert "2 results of 3 calls" in str(outcomes[0][1])


@pytest.mark.parametrize("count", [1, 2])
def test_results_that_exceed_what_can_be_transferred_are_told(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_entries, "RESULT_MAX", 100_000)
    value = b"".join(_entries.result(5, [(_entries.VALUE, _pickling.dumps(bytes(200_000 // count)))] * count))
    _, outcomes = _outcomes.read(_outcomes.VALUE, value, count)
    assert isinstance(outcomes, list) and len(outcomes) == count
    assert all(isinstance(error, midflight.ResultTooLarge) for _, error in outcomes)


@pytest.mark.parametrize("count", [1, 2])
def test_large_results_are_not_copied(count: int) -> None:
    large = _pickling.dumps(bytes(_entries.JOINED_MAX))
    pieces = _entries.result(5, [(_entries.VALUE, large)] * count)
    assert [piece is large for piece in pieces] == [False] + [True] * count
    _, outcomes = _outcomes.read(_outcomes.VALUE, b"".join(pieces), count)
    assert outcomes == [(True, bytes(_entries.JOINED_MAX))] * count


def test_results_that_are_too_large_only_together_are_fetched_one_by_one(cluster: Cluster) -> None:
    with midflight.Client(cluster.switch, result_max=1 << 20) as client:
        assert [len(result) for result in client.map(bytes, [100_000] * 40, chunksize=20)] == [100_000] * 40


# Cancelling.


def test_the_standard_library_hears_of_cancelled_futures(client: midflight.Client) -> None:
    midflight.gather([client.submit(functions.double, number) for number in range(500)], timeout=PATIENCE)
    futures = [client.submit(functions.double, number) for number in range(2000)]
    for future in futures[::3]:
        future.cancel()
        future.cancel()  # again
    done, left = concurrent.futures.wait(futures, timeout=PATIENCE)
    assert not left and len(done) == 2000


def test_a_call_that_is_cancelled_before_it_is_sent_never_runs(cluster: Cluster, gate: Path, tmp_path: Path) -> None:
    large = "x" * 400_000
    with midflight.Client(cluster.switch, memory_max=1 << 20) as client:
        busy = [client.submit(functions.wait_for, str(gate), large) for _ in range(2)]
        waiting = [client.submit(functions.note, str(tmp_path / "notes"), number, large) for number in range(5)]
        assert client.open == 7
        assert all(future.cancel() for future in waiting)
        assert eventually(lambda: client.open == 2, PATIENCE)
        gate.touch()
        midflight.gather(busy, timeout=PATIENCE)
        assert client.submit(functions.double, 1).result(PATIENCE) == 2
    assert functions.notes(tmp_path / "notes") == []


# Room.


def test_submit_waits_where_many_are_open(cluster: Cluster) -> None:
    with midflight.Client(cluster.switch, max_open=8) as client:
        futures = []
        for number in range(1000):
            futures.append(client.submit(functions.double, number))
            assert client.open <= 8
        assert midflight.gather(futures, timeout=PATIENCE) == [2 * number for number in range(1000)]


def test_arguments_wait_for_room_in_the_memory(cluster: Cluster) -> None:
    with midflight.Client(cluster.switch, memory_max=1 << 20) as client:
        futures = [client.submit(len, "x" * 100_000) for _ in range(100)]
        new = client.submit(lambda: 7)  # its function needs room, too
        assert midflight.gather(futures, timeout=PATIENCE) == [100_000] * 100
        assert new.result(PATIENCE) == 7
        with pytest.raises(midflight.ArgumentTooLarge, match="memory_max"):
            client.submit(len, "x" * (2 << 20)).result(PATIENCE)
        with pytest.raises(midflight.ArgumentTooLarge, match="memory_max"):
            client.share("x" * (2 << 20))
        assert client.submit(len, "four").result(PATIENCE) == 4


def in_thread(function: Callable[[], Any]) -> concurrent.futures.Future[Any]:
    future: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def test_close_ends_a_submit_that_waits(cluster: Cluster, gate: Path) -> None:
    client = midflight.Client(cluster.switch, max_open=4)
    busy = [client.submit(functions.wait_for, str(gate)) for _ in range(4)]
    waits = in_thread(lambda: client.submit(functions.double, 1))
    result = in_thread(lambda: busy[0].result())
    with pytest.raises(concurrent.futures.TimeoutError):
        waits.result(0.1)
    assert in_thread(client.close).result(PATIENCE) is None
    assert isinstance(waits.exception(PATIENCE), midflight.ClientClosed)
    for future in (result, *busy):
        with pytest.raises((midflight.ClientClosed, concurrent.futures.CancelledError)):
            future.result(PATIENCE)


def test_a_cancel_makes_room_for_a_submit_that_waits(cluster: Cluster, gate: Path) -> None:
    with midflight.Client(cluster.switch, max_open=4) as client:
        busy = [client.submit(functions.wait_for, str(gate)) for _ in range(4)]
        waits = in_thread(lambda: client.submit(functions.double, 1))
        for future in busy:
            future.cancel()
        assert waits.result(PATIENCE).result(PATIENCE) == 2


def test_ctrl_c_ends_a_submit_that_waits(cluster: Cluster) -> None:
    done = run(
        """
        import midflight, signal, time
        client = midflight.Client(max_open=2)
        futures = [client.submit(time.sleep, 600) for _ in range(2)]
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            client.submit(time.sleep, 600)
        except KeyboardInterrupt:
            print("interrupted", client.open)
        """,
        cluster,
    )
    assert done.stdout == "interrupted 2\n", done.stderr


# References to the client.


def test_results_and_futures_keep_their_client(cluster: Cluster) -> None:
    assert list(midflight.Client(cluster.switch).map(functions.double, range(500))) == list(range(0, 1000, 2))
    assert midflight.Client(cluster.switch).submit(functions.double, 3).result(PATIENCE) == 6
    assert midflight.Client(cluster.switch).options(priority=1).submit(functions.double, 3).result(PATIENCE) == 6


def test_a_client_that_nobody_has_is_closed(cluster: Cluster) -> None:
    client = midflight.Client(cluster.switch)
    core, future = client._core, client.submit(functions.double, 3)
    del client
    assert future.result(PATIENCE) == 6 and not core.is_closed
    del future
    gc.collect()
    assert eventually(lambda: core.is_closed, PATIENCE)


def test_the_results_of_an_executor_can_be_read_after_its_block(cluster: Cluster, tmp_path: Path) -> None:
    with midflight.Executor(cluster.switch) as pool:
        results = pool.map(functions.double, range(10_000))
        pool.map(functions.note, [str(tmp_path / "notes")] * 50, range(50))  # these results are never read
    assert list(results) == list(range(0, 20_000, 2))
    assert sorted(functions.notes(tmp_path / "notes")) == list(range(50))
    pool = midflight.Executor(cluster.switch)
    results, future = pool.map(functions.double, range(300)), pool.submit(functions.double, 2)
    pool.shutdown(wait=False)
    assert future.result(PATIENCE) == 4 and list(results) == list(range(0, 600, 2))
    pool = midflight.Executor(cluster.switch)
    hangs = pool.map(time.sleep, [600] * 5)
    pool.shutdown(cancel_futures=True)
    with pytest.raises(concurrent.futures.CancelledError):
        next(hangs)


@pytest.mark.parametrize("how", ["os.fork()", "multiprocessing"])
def test_a_client_does_not_survive_fork(cluster: Cluster, how: str) -> None:
    fork = {
        "os.fork()": """
            child = os.fork()
            if child == 0:
                look()
                sys.exit(7)  # with all that is done at the end of an interpreter
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        """,
        "multiprocessing": """
            process = multiprocessing.get_context("fork").Process(target=lambda: (look(), sys.exit(7)))
            process.start()
            process.join()
            status = process.exitcode
        """,
    }[how]
    program = f"""
        import gc, functions, midflight, multiprocessing, os, sys, tempfile, warnings
        warnings.simplefilter("ignore")
        client = midflight.Client()
        gate = os.path.join(tempfile.mkdtemp(), "gate")
        future = client.submit(functions.wait_for, gate)

        def look():
            global client
            for act in (lambda: client.submit(len, "a"), future.result, lambda: client.share(1), lambda: client.map(len, "a")):
                try:
                    print("no error:", act(), flush=True)
                except midflight.ClientClosed as error:
                    assert "fork" in str(error), error
            client.close()
            with midflight.Client() as own:
                assert own.submit(len, "four").result(60) == 4
            client = None
            gc.collect()

        {textwrap.dedent(fork).replace(chr(10), chr(10) + "        ")}
        open(gate, "w").close()
        print(status, future.result(60) == gate)
    """
    done = run(program, cluster)
    assert done.stdout == "7 True\n", done.stderr


# Python does not know of the last two forks, and the C library not of the last one. In one of some hundred such children Python itself
# hangs.
@pytest.mark.parametrize("fork", ["os.fork()", "ctypes.PyDLL(None).fork()", "ctypes.PyDLL(None)._Fork()"])
def test_children_of_a_fork_do_not_take_each_others_results_for_their_own(cluster: Cluster, fork: str) -> None:
    program = f"""
        import ctypes, midflight, os, signal, sys
        from midflight import _native

        def secret():
            \"""The id of what a new client serves: it is drawn at random, as the client's identity and secret are.\"""
            client = _native.Client([os.environ["MIDFLIGHT_SWITCH"]], bind=None, max_open=10, value_max=1 << 20, blob_max=1 << 20, timeout=10)
            calls = _native.Calls(client, [client.share([b"it"])], priority=1, resources=0, timeout=None,
                python=(3, 11), environment=0, attempts=3, retries=0)
            client.close(lambda *_: None)
            return bytes(calls.argument([b"it"], []))[24:32].hex()

        secrets = [secret()]
        for _ in range(10):
            out, into = os.pipe()
            if {fork} == 0:
                signal.alarm(20)  # which ends it
                os.write(into, secret().encode())
                os._exit(0)
            os.close(into)
            os.wait()
            if told := os.read(out, 16).decode():
                secrets.append(told)
            if len(secrets) == 3:
                break
        print(len(secrets), len(set(secrets)))
    """
    if "_Fork" in fork and not hasattr(ctypes.PyDLL(None), "_Fork"):
        pytest.skip("the C library has no _Fork")
    done = run(program, cluster)
    assert done.stdout == "3 3\n", done.stderr


# Number of runs.


def test_a_call_runs_at_most_so_often(client: midflight.Client, tmp_path: Path) -> None:
    for retries, attempts in ((0, 1), (1, 2), (None, 3)):
        path = tmp_path / str(attempts)
        submitter = client.options(retries=retries)
        results: list[Any] = []
        for numbers in (range(150), range(150, 300)):  # the first calls measure how long they take
            futures = [submitter.submit(functions.note, str(path), number, 200) for number in numbers]
            results += midflight.gather(futures, timeout=PATIENCE, return_exceptions=True)
        results += submitter.map(
            functions.note, [str(path)] * 10, range(300, 310), [305] * 10, chunksize=5, return_exceptions=True
        )
        for bad in (200, 305):
            assert isinstance(results[bad], midflight.WorkerDied)
            results[bad] = bad
        assert results == list(range(310))
        ran = functions.notes(path)
        assert set(ran) == set(range(310))
        assert max(map(ran.count, set(ran))) <= attempts
        assert ran.count(200) == ran.count(305) == attempts


# `map`.


def test_map_goes_on_after_what_cannot_be_pickled(client: midflight.Client) -> None:
    items: list[Any] = [1, 2, threading.Lock(), 4, 5]
    results = list(client.map(functions.double, items, chunksize=4, return_exceptions=True))
    assert isinstance(results.pop(2), midflight.CannotPickle)
    assert results == [2, 4, 8, 10]


def test_map_ends_with_the_exception_of_its_iterable(client: midflight.Client) -> None:
    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise ValueError("no more")

    results = client.map(functions.double, items(), chunksize=4)
    assert [next(results), next(results)] == [2, 4]
    with pytest.raises(ValueError, match="no more"):
        next(results)
    assert list(results) == []


def test_map_goes_on_after_an_interrupt(client: midflight.Client) -> None:
    class Interrupted:
        """An iterator in which Ctrl-C arrives."""

        def __init__(self) -> None:
            self.number = 0

        def __iter__(self) -> Interrupted:
            return self

        def __next__(self) -> int:
            self.number += 1
            if self.number == 50:
                self.number = 49
                self.__class__.__next__ = lambda self: next(rest)  # type: ignore[method-assign]
                raise KeyboardInterrupt
            return self.number

    rest = iter(range(50, 101))
    results = client.map(functions.double, Interrupted(), chunksize=7, window=21)
    found = []
    while len(found) < 100:
        try:
            found.append(next(results))
        except KeyboardInterrupt:
            continue
    assert found == list(range(2, 202, 2))


def test_a_map_whose_time_is_over_is_cancelled(client: midflight.Client, tmp_path: Path) -> None:
    begun = [str(tmp_path / name) for name in "ab"]
    results = client.map(functions.hang, begun, timeout=0.5)
    with pytest.raises(TimeoutError, match="2 calls of map .* cancelled"):
        next(results)
    assert client.submit(functions.double, 1).result(PATIENCE) == 2, "slots are free, though the calls would take minutes"
    assert eventually(lambda: client.open == 0)


def test_map_does_not_end_by_a_stop_iteration_of_the_function(client: midflight.Client) -> None:
    results = client.map(functions.raise_stop, range(6), [2] * 6, chunksize=3)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        next(results)
    assert list(results) == [3, 4, 5]


def test_a_task_that_interrupts_itself_has_a_result_of_each_call(client: midflight.Client) -> None:
    results = list(client.map(functions.interrupt, range(6), [3] * 6, chunksize=6, return_exceptions=True))
    assert results[:3] == [0, 1, 2] and len(results) == 6
    assert all(isinstance(error, RuntimeError) and "cancelled" in str(error) for error in results[3:])


def test_a_map_that_was_split_into_its_calls_can_be_cancelled(client: midflight.Client, tmp_path: Path) -> None:
    def die_or_hang(number: int, path: str) -> None:
        if number == 0:
            os._exit(3)
        functions.hang(path)

    paths = [str(tmp_path / str(number)) for number in range(3)]
    results = client.options(timeout=PATIENCE).map(die_or_hang, range(3), paths, chunksize=3, return_exceptions=True)
    assert eventually(lambda: Path(paths[1]).exists(), PATIENCE), "it is tried alone"
    results.cancel()
    first, *others = results
    assert isinstance(first, (midflight.WorkerDied, concurrent.futures.CancelledError))
    assert len(others) == 2 and all(isinstance(error, concurrent.futures.CancelledError) for error in others)


# Functions and arguments.


def test_functions_used_least_recently_are_forgotten(
    client: midflight.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    pickled: list[object] = []
    dump = _pickling.dump_function
    monkeypatch.setattr(_pickling, "dump_function", lambda function: pickled.append(function) or dump(function))
    hot, cold = functions.double, eval("lambda: 0")
    client._core.function(cold, client._settings)
    for number in range(300):
        client._core.function(hot, client._settings)
        client._core.function(eval(f"lambda: {number}"), client._settings)
        client._core.function(hot, client.options(timeout=5)._settings)
    client._core.function(cold, client._settings)
    assert pickled.count(hot) == 2, "once with each options"
    assert pickled.count(cold) == 2


def test_a_call_that_is_pickled_may_submit_another(client: midflight.Client) -> None:
    table = client.share([1, 2, 3])

    class Submits:
        """Submits a call while it is pickled."""

        def __reduce__(self) -> tuple[Any, ...]:
            return int, (client.submit(len, table).result(PATIENCE),)

    assert client.submit(lambda first, second: first + sum(second), Submits(), table).result(PATIENCE) == 9


@pytest.mark.parametrize("shared", [False, True])
def test_arrays_are_aligned(client: midflight.Client, shared: bool) -> None:
    arrays = [numpy.ones(5001 + 8 * number, numpy.uint8) for number in range(3)]
    arrays += [numpy.ones(length, numpy.longdouble) for length in (500, 700, 20_000)]

    def look(arrays: list[numpy.ndarray], *_: object) -> tuple[list[bool], list[int], list[numpy.ndarray]]:
        return (
            [array.flags.aligned for array in arrays],
            [array.ctypes.data % 64 for array in arrays],
            [array.copy() for array in arrays],
        )

    others = [client.share(number) for number in range(3)]  # their numbers come before the calls
    argument: Any = client.share(arrays) if shared else arrays
    aligned, places, copies = client.submit(look, argument, *others).result(PATIENCE)
    assert all(aligned) and {place % 16 for place in places} == {0}
    if shared:
        assert set(places) == {0}
    for copy, array in zip(copies, arrays):
        assert copy.flags.aligned and copy.ctypes.data % 16 == 0 and numpy.array_equal(copy, array)
        copy[0] = 2
    for _, places, _ in client.map(look, [[array] for array in arrays], chunksize=6):
        assert places[0] % 16 == 0


def test_bounds_of_a_client_are_told() -> None:
    with pytest.raises(ValueError, match="result_max"):
        midflight.Client("127.0.0.1:1", result_max=1 << 32)
    with pytest.raises(ValueError, match="at least 1"):
        midflight.Client("127.0.0.1:1", max_open=0)
