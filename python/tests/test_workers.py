"""Workers: their number, their caches, and that each answers for its own task only."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

import functions
import numpy
import pytest
from conftest import PATIENCE, Cluster, eventually, is_alive
from test_failures import pid_in

import midflight


def holding(tmp_path: Path) -> str:
    """An interpreter that does not start while the file `hold` exists, and makes the file `starts`."""
    python = tmp_path / "python"
    hold = shlex.quote(str(tmp_path / "hold"))
    starts = shlex.quote(str(tmp_path / "starts"))
    python.write_text(f"#!/bin/sh\n: > {starts}\nwhile [ -e {hold} ]; do sleep 0.01; done\nexec {shlex.quote(sys.executable)} \"$@\"\n")
    python.chmod(0o755)
    return str(python)


def test_a_task_that_is_cancelled_before_its_worker_has_started_does_not_hold_the_slot(tmp_path: Path) -> None:
    with Cluster(slots=1, python=holding(tmp_path)) as cluster, midflight.Client(cluster.switch) as client:
        worker = client.submit(functions.pid).result(PATIENCE)
        os.kill(worker, signal.SIGKILL)
        assert eventually(lambda: not is_alive(worker))
        (tmp_path / "hold").touch()
        (tmp_path / "starts").unlink()
        large = bytes(1 << 20)  # more than a socket takes at once
        future = client.submit(lambda path, _: functions.hang(path, path), str(tmp_path / "pid"), large)
        assert eventually((tmp_path / "starts").exists)
        assert future.cancel()
        (tmp_path / "hold").unlink()
        assert client.submit(functions.double, 4).result(PATIENCE) == 8


def test_a_worker_that_says_hello_does_not_die_of_an_interrupt() -> None:
    here, there = socket.socketpair()
    with subprocess.Popen([sys.executable, "-m", "midflight.worker"], stdin=there, stderr=subprocess.PIPE) as worker:
        there.close()
        assert here.recv(1) != b""
        worker.send_signal(signal.SIGINT)
        here.close()
        _, said = worker.communicate(timeout=PATIENCE)
        assert (worker.returncode, said) == (0, b"")


def test_shared_memory_is_mapped_privately(client: midflight.Client) -> None:
    shared = client.share(numpy.ones(100_000))
    # Linux before 6.7 refuses `r--s`.
    assert set(client.submit(functions.blob_maps, shared).result(PATIENCE)) == {"r--p"}


def test_a_child_that_returns_from_its_task_answers_nothing(tmp_path: Path) -> None:
    with Cluster(slots=1) as cluster, midflight.Client(cluster.switch) as client:
        forked = client.submit(functions.fork_and_return, str(tmp_path / "child"), str(tmp_path / "go"))
        assert forked.result(PATIENCE) == "parent"
        worker = client.submit(functions.hold, str(tmp_path / "end"), str(tmp_path / "pid"))
        pid = pid_in(tmp_path / "pid")
        (tmp_path / "go").touch()
        assert eventually(lambda: not is_alive(pid_in(tmp_path / "child")))
        (tmp_path / "end").touch()
        assert worker.result(PATIENCE) == pid


def test_an_exception_without_text_does_not_end_the_worker(tmp_path: Path) -> None:
    with Cluster(slots=1) as cluster, midflight.Client(cluster.switch) as client:
        worker = client.submit(functions.pid).result(PATIENCE)
        with pytest.raises(midflight.RemoteError, match="Unspeakable: <its text cannot be had>"):
            client.submit(functions.raise_unspeakable).result(PATIENCE)
        with pytest.raises(midflight.CannotPickle, match="Unspeakable: <its text cannot be had>"):
            client.submit(functions.return_unspeakable).result(PATIENCE)
        assert client.submit(functions.pid).result(PATIENCE) == worker


def test_a_task_that_interrupts_itself_answers_for_each_of_its_calls(client: midflight.Client) -> None:
    def interrupt(number: int) -> int:
        if number == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return number

    results = list(client.map(interrupt, range(3), chunksize=3, return_exceptions=True))
    assert [results[0], len(results)] == [0, 3]
    assert [str(error) for error in results[1:]] == ["cancelled", "cancelled"]


def test_there_are_never_more_workers_than_slots(tmp_path: Path) -> None:
    with Cluster("--count", "r0=2", slots=2) as cluster, midflight.Client(cluster.switch) as client:
        for round, options in enumerate([client, client.options(resources="r0"), client]):
            go, pids = tmp_path / f"go{round}", [tmp_path / f"pid{round}{slot}" for slot in range(2)]
            both = [options.submit(functions.hold, str(go), str(pid)) for pid in pids]
            started = {pid_in(pid) for pid in pids}
            assert set(cluster.workers()) == started and len(started) == 2
            go.touch()
            assert {future.result(PATIENCE) for future in both} == started


def test_workers_forget_what_the_cache_has_dropped(tmp_path: Path) -> None:
    with Cluster("--python-cache", "1", slots=2) as cluster, midflight.Client(cluster.switch) as client:
        first, second = client.share(numpy.ones(75_000)), client.share(numpy.ones(75_000))
        go, pids = str(tmp_path / "go"), [tmp_path / f"pid{slot}" for slot in range(2)]
        both = [client.submit(lambda pid, _: functions.hold(go, pid), str(pid), first) for pid in pids]
        workers = [pid_in(pid) for pid in pids]
        assert [len(functions.maps_of(worker)) for worker in workers] == [1, 1]
        Path(go).touch()
        midflight.gather(both, timeout=PATIENCE)
        # The second evicts the first from the cache: the worker that has it now drops the first, and so does the idle one.
        assert len(client.submit(functions.blob_maps, second).result(PATIENCE)) == 1
        assert eventually(lambda: sorted(len(functions.maps_of(worker)) for worker in workers) == [0, 1])


def own_memory(processes: list[int]) -> int:
    """Bytes that they do not share."""
    statm = [Path(f"/proc/{process}/statm").read_text().split() for process in processes]
    return sum(int(resident) - int(shared) for _, resident, shared, *_ in statm) * os.sysconf("SC_PAGE_SIZE")


def test_the_cache_bounds_what_all_workers_have_unpickled_together(tmp_path: Path) -> None:
    with Cluster("--python-cache", "48", slots=3) as cluster, midflight.Client(cluster.switch) as client:

        def use_everywhere(*value: object) -> list[int]:
            """Runs until all workers have it."""
            path = tmp_path / str(len(list(tmp_path.iterdir())))
            pids = [path.with_suffix(f".{slot}") for slot in range(3)]
            futures = [client.submit(lambda go, pid, *_: functions.hold(go, pid), str(path), str(pid), *value) for pid in pids]
            workers = [pid_in(pid) for pid in pids]
            path.touch()
            midflight.gather(futures, timeout=PATIENCE)
            return workers

        before = own_memory(use_everywhere())
        # 5 MB as a pickle, and some 38 MB as objects: together with the pickle, one worker's objects are within the bound.
        value = client.share(list(range(1_000_000, 2_000_000)))
        workers = use_everywhere(value)
        assert eventually(lambda: own_memory(workers) - before < 60 << 20), f"{own_memory(workers) - before} bytes"
        assert set(use_everywhere(value)) == set(workers), "they are the same, and get it again"


def test_modules_are_not_taken_from_a_directory_that_all_may_write_to(tmp_path: Path) -> None:
    (tmp_path / "planted_module.py").write_text("def planted(): return 1\n")
    (tmp_path / "struct.py").write_text("raise RuntimeError('planted')\n")
    sys.path.append(str(tmp_path))
    try:
        import planted_module  # type: ignore[import-not-found]

        tmp_path.chmod(0o1777)
        with Cluster(slots=1, cwd=tmp_path) as cluster, midflight.Client(cluster.switch) as client:
            assert eventually(lambda: any("all users may write there" in line for line in cluster.stderr))
            with pytest.raises(midflight.MissingModule, match="planted_module"):
                client.submit(planted_module.planted).result(PATIENCE)
        tmp_path.chmod(0o755)
        (tmp_path / "struct.py").unlink()
        with Cluster(slots=1, cwd=tmp_path) as cluster, midflight.Client(cluster.switch) as client:
            assert client.submit(planted_module.planted).result(PATIENCE) == 1
    finally:
        sys.path.remove(str(tmp_path))
