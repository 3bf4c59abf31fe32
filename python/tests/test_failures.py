"""Failures, each of which ends as a precise exception, while the executor continues."""

from __future__ import annotations

import concurrent.futures
import os
import shlex
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import functions
import pytest
from conftest import PATIENCE, Cluster, command, eventually, free_port, is_alive

import midflight


def pid_in(path: Path) -> int:
    assert eventually(lambda: path.exists() and path.read_text())
    return int(path.read_text())


def test_an_exception_has_the_remote_traceback(client: midflight.Client) -> None:
    with pytest.raises(ValueError, match="no 5 today") as caught:
        client.submit(functions.fail, 5).result(PATIENCE)
    text = str(caught.value.__cause__)
    assert 'raise ValueError(f"no {number} today")' in text and "functions.py" in text
    assert "worker.py" not in text


def test_an_exception_that_cannot_be_pickled_is_told(client: midflight.Client) -> None:
    with pytest.raises(midflight.RemoteError, match="Local: both") as caught:
        client.submit(functions.raise_local).result(PATIENCE)
    assert caught.value.kind == "Local" and "raise Local(1, 2)" in str(caught.value.__cause__)


@pytest.mark.parametrize("code", [0, 3, "why", None])
def test_exit_is_an_error_of_the_call_and_does_not_end_the_caller(client: midflight.Client, code: object) -> None:
    said = "SystemExit" if code is None else f"SystemExit: {code}"
    with pytest.raises(midflight.RemoteError, match=f"raised {said}") as caught:
        client.submit(functions.exits, code).result(PATIENCE)
    assert caught.value.kind == "SystemExit" and "in exits" in str(caught.value.__cause__)
    results = list(client.map(functions.exits, [code] * 3, return_exceptions=True))
    assert [type(error) for error in results] == [midflight.RemoteError] * 3


def test_an_interrupt_of_a_task_is_not_the_callers(client: midflight.Client) -> None:
    for function, kind in ((functions.raise_interrupt, "KeyboardInterrupt"), (functions.cancel_itself, "CancelledError")):
        with pytest.raises(midflight.RemoteError) as caught:
            client.submit(function).result(PATIENCE)
        assert caught.value.kind == kind


def test_what_belongs_to_the_client_is_no_argument(client: midflight.Client, cluster: Cluster) -> None:
    future = client.submit(functions.double, 1)
    with pytest.raises(midflight.CannotPickle, match=r"argument 0 of double .*not supported as argument yet: pass future.result\(\)"):
        client.submit(functions.double, future)
    with pytest.raises(midflight.CannotPickle, match="argument 0 of len .*not supported as argument yet"):
        client.submit(len, [future])
    with pytest.raises(midflight.CannotPickle, match="not supported as argument yet.* it uses future"):
        client.submit(lambda: future.result())
    with pytest.raises(midflight.CannotPickle, match=r"pass list\(results\)"):
        client.submit(len, client.map(functions.double, [1]))
    for submitter in (client, client.options(priority=1), midflight.Executor(cluster.switch)):
        with pytest.raises(midflight.CannotPickle, match="connect in the function"):
            client.submit(len, submitter)
    with pytest.raises(midflight.CannotPickle, match="argument 0 of double .*pass future.result"):
        next(client.map(functions.double, [future]))


def test_a_function_that_cannot_be_pickled_is_named_with_its_place(client: midflight.Client) -> None:
    lock = threading.Lock()

    def locked() -> bool:
        return lock.locked()

    with pytest.raises(midflight.CannotPickle) as caught:
        client.submit(locked)
    text = str(caught.value)
    line = locked.__code__.co_firstlineno
    assert f"test_failures.py:{line})" in text and "it uses lock" in text and "submitted at" in text
    with pytest.raises(midflight.CannotPickle, match=r"argument 0 of double .*functions.py"):
        client.submit(functions.double, lock)
    with pytest.raises(midflight.CannotPickle, match="argument 'key' of"):
        client.submit(sorted, [1], key=lock)
    with pytest.raises(TypeError, match="cannot be called"):
        client.submit(5)  # type: ignore[arg-type]


def test_a_result_that_cannot_be_pickled_is_told(client: midflight.Client) -> None:
    with pytest.raises(midflight.CannotPickle, match="result of nothing_to_pickle .* a lock"):
        client.submit(functions.nothing_to_pickle).result(PATIENCE)


def test_an_argument_of_100_mb_is_refused_and_can_be_shared(client: midflight.Client) -> None:
    large = bytes(100 << 20)
    with pytest.raises(midflight.ArgumentTooLarge, match=r"len.* exceed 67108864 .*client.share"):
        client.submit(len, large)
    assert client.submit(len, client.share(large)).result(PATIENCE) == 100 << 20


def test_a_result_that_is_too_large_is_told(cluster: Cluster) -> None:
    with midflight.Client(cluster.switch, result_max=1 << 20) as client:
        with pytest.raises(midflight.ResultTooLarge, match="result_max"):
            client.submit(bytes, 2 << 20).result(PATIENCE)


def test_a_module_that_the_worker_lacks_is_named(client: midflight.Client, tmp_path: Path, monkeypatch: object) -> None:
    (tmp_path / "only_here.py").write_text("def one():\n    return 1\nclass Thing: pass\n")
    sys.path.insert(0, str(tmp_path))
    try:
        import only_here  # type: ignore[import-not-found]

        with pytest.raises(midflight.MissingModule, match="function needs the module only_here.*Python 3"):
            client.submit(only_here.one).result(PATIENCE)
        with pytest.raises(midflight.MissingModule, match="an argument of isinstance needs the module only_here"):
            client.submit(isinstance, only_here.Thing(), int).result(PATIENCE)
    finally:
        sys.path.remove(str(tmp_path))


def test_a_result_that_cannot_be_unpickled_here_is_told(client: midflight.Client, tmp_path: Path) -> None:
    def made_there(directory: str) -> object:
        import pathlib
        import sys

        (pathlib.Path(directory) / "only_there.py").write_text("class Thing: pass\n")
        sys.path.insert(0, directory)
        try:
            import only_there  # type: ignore[import-not-found]
        finally:
            sys.path.remove(directory)
        return only_there.Thing()

    with pytest.raises(midflight.MissingModule, match="result needs the module only_there"):
        client.submit(made_there, str(tmp_path)).result(PATIENCE)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
def test_a_worker_that_dies_in_each_attempt_fails_its_task(client: midflight.Client, number: int) -> None:
    with pytest.raises(midflight.WorkerDied, match=f"signal {int(number)}.*attempt 2") as caught:
        client.options(retries=1).submit(functions.die, number).result(PATIENCE)
    assert caught.value.signal == number
    if number == signal.SIGSEGV:
        assert "in die" in str(caught.value), "faulthandler says where"
    assert client.submit(functions.double, 4).result(PATIENCE) == 8


def test_a_worker_that_exits_is_told_from_one_that_is_killed(client: midflight.Client) -> None:
    with pytest.raises(midflight.WorkerDied, match="exit code 3") as caught:
        client.options(retries=0).submit(functions.die_if, 1, 1).result(PATIENCE)
    assert caught.value.signal is None


def test_only_the_call_that_kills_its_worker_fails_in_map(client: midflight.Client) -> None:
    results = client.map(functions.die_if, range(8), [5] * 8, chunksize=4, return_exceptions=True)
    results = list(results)
    assert isinstance(results.pop(5), midflight.WorkerDied)
    assert results == [0, 1, 2, 3, 4, 6, 7]


def test_retries_are_for_exceptions(client: midflight.Client, tmp_path: Path) -> None:
    assert client.options(retries=2).submit(functions.once, str(tmp_path / "a")).result(PATIENCE) == 2
    with pytest.raises(ValueError, match="the first time"):
        client.submit(functions.once, str(tmp_path / "b")).result(PATIENCE)


def test_a_task_that_hangs_is_stopped_at_its_timeout(client: midflight.Client, tmp_path: Path) -> None:
    with pytest.raises(midflight.TaskTimeout, match="its timeout of 300ms, attempt 1"):
        client.options(timeout=0.3, retries=0).submit(time.sleep, 600).result(PATIENCE)
    with pytest.raises(midflight.TaskTimeout, match="attempt 2"):
        client.options(timeout=0.1, retries=1).submit(functions.hang_deaf, str(tmp_path / "pid")).result(PATIENCE)
    assert client.submit(functions.double, 4).result(PATIENCE) == 8


def test_the_time_in_the_queue_does_not_count_for_the_timeout(client: midflight.Client, tmp_path: Path) -> None:
    busy = [client.submit(functions.hold, str(tmp_path / "go")) for _ in range(2)]
    # They wait in the queue for longer than each of them may run.
    late = [client.options(timeout=0.5, retries=0).submit(functions.double, number) for number in range(4)]
    several = client.options(timeout=0.5, retries=0).map(functions.double, range(100))
    time.sleep(1)
    (tmp_path / "go").touch()
    midflight.gather(busy, timeout=PATIENCE)
    assert midflight.gather(late, timeout=PATIENCE) == [0, 2, 4, 6]
    assert list(several) == [2 * number for number in range(100)]


def test_what_a_call_loads_does_not_count_for_its_timeout(cluster: Cluster, client: midflight.Client) -> None:
    options = client.options(timeout=0.3, retries=0)
    assert options.submit(len, functions.SlowToLoad(0.6)).result(PATIENCE) == 4
    assert list(options.map(len, [functions.SlowToLoad(0.6)])) == [4]
    with midflight.Client(cluster.switch, environment="same") as same:
        assert same.options(timeout=0.3, retries=0).submit(functions.double, 4).result(PATIENCE) == 8


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan"), 1e300])
def test_a_timeout_is_a_time(client: midflight.Client, timeout: float) -> None:
    with pytest.raises(ValueError, match="seconds above 0"):
        client.options(timeout=timeout)


def test_a_call_is_not_tried_more_often_because_of_its_neighbours(client: midflight.Client, tmp_path: Path) -> None:
    path = tmp_path / "notes"
    options = client.options(timeout=0.4, retries=2)
    results = options.map(functions.note_and_fail, [str(path)] * 3, range(3), chunksize=3, return_exceptions=True)
    raised, hung, fine = results
    assert isinstance(raised, ValueError) and isinstance(hung, midflight.TaskTimeout) and fine == 2
    # Together they ran three times, because the first one raised an exception; the third time the second one hung, so the third one did not
    # run.
    ran = functions.notes(path)
    assert [ran.count(number) for number in range(3)] == [4, 4, 3]


def test_results_that_are_too_large_together_give_no_further_retries(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "notes"
    with midflight.Client(cluster.switch, result_max=1 << 20) as client:
        options = client.options(retries=2)
        results = options.map(functions.note_and_grow, [str(path)] * 3, range(3), chunksize=3, return_exceptions=True)
        raised, *large = results
    assert isinstance(raised, ValueError) and [len(result) for result in large] == [700_000] * 2
    # Three times together, because of the exception; then each alone.
    ran = functions.notes(path)
    assert [ran.count(number) for number in range(3)] == [4, 4, 4]


def test_an_interrupt_that_came_too_late_is_not_the_next_calls(tmp_path: Path) -> None:
    with Cluster(slots=1) as cluster, midflight.Client(cluster.switch) as client:
        hidden = client.options(timeout=0.2, retries=0).submit(functions.hide_interrupts, 0.5)
        assert hidden.result(PATIENCE) == "hidden"
        assert client.submit(functions.show_interrupts).result(PATIENCE) == "shown"


def test_the_others_of_a_map_whose_call_hangs_have_their_results(client: midflight.Client) -> None:
    results = client.options(timeout=0.5, retries=1).map(
        functions.sleep_if, range(6), [3] * 6, chunksize=6, return_exceptions=True
    )
    ends = list(results)
    assert isinstance(ends.pop(3), midflight.TaskTimeout)
    assert ends == [0, 1, 2, 4, 5]


def test_a_task_that_is_cancelled_runs_its_finally(client: midflight.Client, tmp_path: Path) -> None:
    future = client.submit(functions.hang, str(tmp_path / "pid"), str(tmp_path / "end"))
    pid_in(tmp_path / "pid")
    assert future.cancel()
    assert eventually((tmp_path / "end").exists), "SIGINT raised Cancelled"
    assert client.submit(functions.double, 4).result(PATIENCE) == 8


def test_a_task_that_ignores_its_end_loses_its_worker(client: midflight.Client, tmp_path: Path) -> None:
    future = client.submit(functions.hang_deaf, str(tmp_path / "pid"))
    worker = pid_in(tmp_path / "pid")
    assert future.cancel() and future.cancelled()
    with pytest.raises(concurrent.futures.CancelledError):
        future.result()
    assert eventually(lambda: not is_alive(worker))
    assert client.submit(functions.double, 4).result(PATIENCE) == 8


def test_a_task_that_waits_is_taken_out(client: midflight.Client, tmp_path: Path) -> None:
    busy = [client.submit(functions.hold, str(tmp_path / "go")) for _ in range(2)]
    waiting = client.submit(functions.once, str(tmp_path / "called"))
    assert waiting.cancel() and eventually(lambda: client.open == 2)
    (tmp_path / "go").touch()
    midflight.gather(busy, timeout=PATIENCE)
    assert client.open == 0
    assert client.submit(functions.double, 4).result(PATIENCE) == 8
    assert not (tmp_path / "called").exists()


def test_a_child_that_holds_the_socket_does_not_hide_a_death(client: midflight.Client, tmp_path: Path) -> None:
    with pytest.raises(midflight.WorkerDied, match="exit code 4"):
        client.options(retries=0).submit(functions.fork_and_die, str(tmp_path / "pid")).result(PATIENCE)
    child = pid_in(tmp_path / "pid")
    assert eventually(lambda: not is_alive(child)), "it went with its worker"


def test_what_tasks_print_is_bounded_and_counted() -> None:
    with Cluster(slots=1) as cluster, midflight.Client(cluster.switch) as client:
        assert client.submit(functions.shout, 100 << 20).result(PATIENCE) == 100 << 20
        assert eventually(lambda: any("are dropped" in line for line in cluster.stderr))

        def is_heard() -> bool:
            client.submit(print, "heard again").result(PATIENCE)
            return any("heard again" in line for line in cluster.stderr)

        assert eventually(is_heard)
        assert sum(map(len, cluster.stderr)) < 8 << 20


def test_another_python_is_told(client: midflight.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    from midflight import _core

    monkeypatch.setattr(_core, "_PYTHON", (3, 99))
    with pytest.raises(midflight.Mismatch, match=r"client runs Python 3.99, the worker 3.\d+ \(Python 3"):
        client.submit(lambda: 1).result(PATIENCE)


def test_another_environment_is_told_if_it_must_be_the_same(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    from midflight import _environment

    with midflight.Client(cluster.switch, environment="same") as client:
        assert client.submit(functions.double, 1).result(PATIENCE) == 2
    monkeypatch.setattr(_environment, "digest", lambda: 5)
    with midflight.Client(cluster.switch, environment="same") as client:
        with pytest.raises(midflight.Mismatch, match="digest 0000000000000005"):
            client.submit(functions.double, 1).result(PATIENCE)


def test_a_client_without_a_switch_says_so() -> None:
    with pytest.raises(ConnectionError, match="no switch answers at 127.0.0.1"):
        midflight.Client(f"127.0.0.1:{free_port()}", connect_timeout=0.2)


def test_a_closed_client_says_so(cluster: Cluster) -> None:
    client = midflight.Client(cluster.switch)
    future = client.submit(time.sleep, 30)
    time.sleep(0.1)
    client.close()
    with pytest.raises((midflight.ClientClosed, concurrent.futures.CancelledError)):
        future.result(PATIENCE)
    with pytest.raises(midflight.ClientClosed):
        client.submit(functions.double, 1)


def test_ctrl_c_ends_a_wait(cluster: Cluster) -> None:
    program = textwrap.dedent(
        """
        import midflight, time
        client = midflight.Client()
        future = client.submit(time.sleep, 600)
        try:
            print("waiting", flush=True)
            future.result()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """
    )
    environment = {**os.environ, "MIDFLIGHT_SWITCH": cluster.switch}
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout and process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=PATIENCE)[0] == "interrupted\n"
        assert process.returncode == 0
    finally:
        process.kill()


def test_workers_are_replaced_after_so_many_tasks() -> None:
    with Cluster("--python-tasks", "3", slots=1) as cluster, midflight.Client(cluster.switch) as client:
        pids = [client.submit(functions.pid).result(PATIENCE) for _ in range(7)]
    assert [len(set(pids[:3])), len(set(pids[3:6])), len(set(pids))] == [1, 1, 3]


def test_workers_end_with_their_executor(tmp_path: Path) -> None:
    with Cluster(slots=1) as cluster, midflight.Client(cluster.switch) as client:
        client.submit(functions.hang_deaf, str(tmp_path / "pid"))
        worker = pid_in(tmp_path / "pid")
        cluster.kill()
        assert eventually(lambda: not is_alive(worker))


def test_a_worker_that_dies_while_idle_is_not_noticed() -> None:
    with Cluster(slots=1) as cluster, midflight.Client(cluster.switch) as client:
        worker = client.submit(functions.pid).result(PATIENCE)
        os.kill(worker, signal.SIGKILL)
        assert eventually(lambda: not is_alive(worker))
        assert client.submit(functions.pid).result(PATIENCE) != worker


def test_an_interpreter_without_the_package_is_told(tmp_path: Path) -> None:
    empty = tmp_path / "python"
    empty.write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -I -S \"$@\"\n")
    empty.chmod(0o755)
    starts = [command(), "up", "--listen", "127.0.0.1:0", "--http", "off", "--python"]
    for python, said in [(str(empty), "has no package midflight"), ("/no/python", "cannot start /no/python")]:
        process = subprocess.run([*starts, python], capture_output=True, text=True, timeout=PATIENCE)
        assert process.returncode == 1 and said in process.stderr, process.stderr


def test_an_executor_without_python_is_told() -> None:
    with Cluster(python=None) as cluster, midflight.Client(cluster.switch) as client:
        with pytest.raises(midflight.NoPython, match="--python"):
            client.submit(functions.double, 1).result(PATIENCE)
