"""Calls, their arguments and results."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import time
from collections.abc import Callable
from pathlib import Path

import functions
import numpy
import pytest
from conftest import PATIENCE, Cluster, eventually

import midflight


def pace_of(client: midflight.Client, function: Callable[..., object]) -> midflight._core.Pace:
    return client._core.function(function, client._settings).pace


def test_a_function_is_called_with_its_arguments(client: midflight.Client) -> None:
    assert client.submit(functions.double, 21).result(PATIENCE) == 42
    assert client.submit(sorted, [1, 3, 2], reverse=True).result(PATIENCE) == [3, 2, 1]
    assert client.submit(lambda: 7).result(PATIENCE) == 7


def test_what_a_function_refers_to_comes_with_it(client: midflight.Client) -> None:
    factor = 3

    def triple(number: int) -> int:
        return factor * functions.double(number) // 2

    assert client.submit(triple, 5).result(PATIENCE) == 15
    assert client.submit(functools.partial(triple), 6).result(PATIENCE) == 18
    assert client.submit("a-b".split, "-").result(PATIENCE) == ["a", "b"]


def test_many_calls_at_once(client: midflight.Client) -> None:
    futures = [client.submit(functions.double, number) for number in range(2000)]
    assert midflight.gather(futures, timeout=PATIENCE) == [2 * number for number in range(2000)]
    assert client.open == 0


def test_short_calls_that_are_submitted_fast_travel_together(client: midflight.Client) -> None:
    midflight.gather([client.submit(functions.double, number) for number in range(500)], timeout=PATIENCE)
    assert pace_of(client, functions.double).size > 1
    futures = [client.submit(functions.die_if, number, 1_234) for number in range(3000)]
    results = midflight.gather(futures, timeout=PATIENCE, return_exceptions=True)
    assert isinstance(results[1234], midflight.WorkerDied), "alone"
    results[1234] = 1234
    assert results == list(range(3000))
    futures = [client.submit(functions.double, number) for number in range(2000)]
    cancelled = [future for future in futures[::3] if future.cancel()]
    done = [future for future in futures if future not in set(cancelled)]
    assert midflight.gather(done, timeout=PATIENCE) == [2 * n for n, f in enumerate(futures) if f in set(done)]
    assert all(future.cancelled() for future in cancelled)


def test_futures_are_those_of_the_standard_library(client: midflight.Client) -> None:
    futures = [client.submit(functions.double, number) for number in range(50)]
    done, left = concurrent.futures.wait(futures, timeout=PATIENCE)
    assert len(done) == 50 and not left
    futures = [client.submit(functions.double, number) for number in range(50)]
    assert sum(future.result() for future in concurrent.futures.as_completed(futures, timeout=PATIENCE)) == 2450
    heard: list[int] = []
    future = client.submit(functions.double, 4)
    future.add_done_callback(lambda future: heard.append(future.result()))
    future.result(PATIENCE)
    assert heard == [8]


def test_as_completed_gives_what_ends_first(client: midflight.Client, tmp_path: Path) -> None:
    slow, fast = client.submit(functions.wait_for, str(tmp_path / "go")), client.submit(functions.double, 1)
    ended = midflight.as_completed([slow, fast], timeout=PATIENCE)
    assert next(ended) is fast
    (tmp_path / "go").touch()
    assert list(ended) == [slow]
    never = client.submit(time.sleep, 600)
    with pytest.raises(TimeoutError, match="1 of 1"):
        list(midflight.as_completed([never], timeout=0.05))
    never.cancel()


def test_as_completed_gives_each_future_once_however_it_ends(client: midflight.Client, tmp_path: Path) -> None:
    go = str(tmp_path / "go")
    busy = [client.submit(functions.wait_for, go) for _ in range(2)]
    cancelled, before = client.submit(functions.double, 1), client.submit(functions.double, 2)
    before.add_done_callback(lambda _: None)  # has a condition
    fails = client.submit(functions.fail, 3)
    both = [midflight.as_completed([*busy, cancelled, before, fails, before], timeout=PATIENCE) for _ in range(2)]
    assert cancelled.cancel()
    assert next(both[0]) is next(both[1]) is cancelled
    (tmp_path / "go").touch()
    for ended in both:
        assert {*ended} == {*busy, before, fails}
    assert {*midflight.as_completed([fails, before], timeout=0)} == {fails, before}, "they have ended before"


def test_as_completed_needs_no_conditions(client: midflight.Client) -> None:
    futures = [client.submit(functions.double, number) for number in range(500)]
    assert {*midflight.as_completed(futures, timeout=PATIENCE)} == {*futures}
    assert {future._own_condition for future in futures} == {None}, "they cost 20 us each"


def test_async_functions_are_run(client: midflight.Client, tmp_path: Path) -> None:
    assert client.submit(functions.double_soon, 21).result(PATIENCE) == 42
    assert list(client.map(functions.double_soon, range(20))) == list(range(0, 40, 2))
    hangs = client.submit(functions.hang_soon, str(tmp_path / "begun"), str(tmp_path / "ended"))
    assert eventually((tmp_path / "begun").exists)
    assert hangs.cancel() and eventually((tmp_path / "ended").exists)
    assert client.submit(functions.double_soon, 1).result(PATIENCE) == 2


def test_futures_can_be_awaited(client: midflight.Client) -> None:
    async def main() -> list[int]:
        futures = [client.submit(functions.double, number) for number in range(20)]
        first = await futures[0]
        return [first, *await asyncio.gather(*map(asyncio.wrap_future, futures))]

    assert asyncio.run(main()) == [0, *range(0, 40, 2)]


def test_an_executor_of_the_standard_library(cluster: Cluster) -> None:
    with midflight.Executor(cluster.switch) as pool:
        assert isinstance(pool, concurrent.futures.Executor)
        future = pool.submit(functions.double, 3)
        assert list(pool.map(functions.double, range(300))) == list(range(0, 600, 2))
    assert future.result() == 6
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(functions.double, 1)


def test_map_is_in_order_and_lazy(client: midflight.Client) -> None:
    assert list(client.map(functions.double, range(3000))) == list(range(0, 6000, 2))
    taken = 0

    def endless() -> object:
        nonlocal taken
        while True:
            taken += 1
            yield taken

    results = client.map(functions.double, endless(), window=100)
    assert [next(results) for _ in range(500)] == list(range(2, 1002, 2))
    assert taken <= 500 + 100
    results.cancel()


def test_map_goes_on_after_an_exception(client: midflight.Client) -> None:
    def inverse(number: int) -> float:
        return 1 / number

    results = client.map(inverse, [1, 0, 2], chunksize=3)
    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert list(results) == [0.5]
    mixed = list(client.map(inverse, [0, 4], return_exceptions=True))
    assert isinstance(mixed[0], ZeroDivisionError) and mixed[1] == 0.25


def test_map_puts_short_calls_together_and_long_ones_not(client: midflight.Client) -> None:
    list(client.map(functions.double, range(3000)))
    assert pace_of(client, functions.double).size > 8
    list(client.map(time.sleep, [0.002] * 20))
    assert pace_of(client, time.sleep).size == 1


def test_arrays_come_and_go_without_pickles(client: midflight.Client) -> None:
    array = numpy.arange(200_000, dtype=numpy.float64)
    result = client.submit(lambda array: array[::-1] * 2, array).result(PATIENCE)
    assert numpy.array_equal(result, array[::-1] * 2)
    result[0] = 1  # a result may be changed
    small = numpy.ones(3)
    assert numpy.array_equal(client.submit(numpy.cumsum, small).result(PATIENCE), [1, 2, 3])


def test_a_shared_argument_is_there_for_all(client: midflight.Client) -> None:
    table = client.share(numpy.arange(500_000))
    total = int(numpy.arange(500_000).sum())

    def add(table: numpy.ndarray, number: int) -> int:
        assert not table.flags.writeable
        return int(table.sum()) + number

    assert client.submit(add, table, 1).result(PATIENCE) == total + 1
    assert list(client.map(add, [table] * 20, range(20))) == [total + number for number in range(20)]
    bound = functools.partial(add, table)
    other = client.share({"key": 5})
    assert client.submit(bound, 2).result(PATIENCE) == total + 2
    assert client.submit(lambda a, b: a["key"] + len(b), other, table).result(PATIENCE) == 500_005
    with pytest.raises(midflight.CannotPickle, match="argument of a call"):
        midflight._pickling.dump_function(bound)


def test_a_task_gets_the_resource_that_it_asks_for() -> None:
    with Cluster("--count", "r0=1") as cluster, midflight.Client(cluster.switch) as client:
        required = client.options(resources="r0").submit(functions.environment, "MIDFLIGHT_R0")
        without = client.submit(functions.environment, "MIDFLIGHT_R0")
        assert (required.result(PATIENCE), without.result(PATIENCE)) == ("0", None)


def test_resources_have_the_names_of_the_configuration(tmp_path: Path) -> None:
    config = tmp_path / "midflight.toml"
    config.write_text("[tasks.resources]\ngpu = 3\n")
    with Cluster("--config", str(config), "--count", "gpu=1") as cluster:
        with midflight.Client(cluster.switch, config=config) as client:
            gpu = client.options(resources="gpu").submit(functions.environment, "MIDFLIGHT_GPU")
            same = client.options(resources="r3").submit(functions.environment, "MIDFLIGHT_GPU")
            assert (gpu.result(PATIENCE), same.result(PATIENCE)) == ("0", "0")
            with pytest.raises(ValueError, match="known are gpu, r0 to r7"):
                client.options(resources="ssd")
    config.write_text("[tasks.resources]\ngpu = 8\n")
    with pytest.raises(ValueError, match="must be 0 to 7"):
        midflight.Client(cluster.switch, config=config)


def test_options_are_of_tasks(client: midflight.Client) -> None:
    with pytest.raises(ValueError, match="priority 9"):
        client.options(priority=9)
    with pytest.raises(ValueError):
        client.options(resources="no-such")
    with pytest.raises(ValueError, match="retries 100: 0 to 99"):
        client.options(retries=100)


def test_joblib_runs_its_batches_here(cluster: Cluster) -> None:
    import joblib

    import midflight.joblib

    with joblib.parallel_config("midflight", switch=cluster.switch, workers=2):
        parallel = joblib.Parallel(n_jobs=-1)
        assert parallel(joblib.delayed(functions.double)(n) for n in range(200)) == list(range(0, 400, 2))
        pids = joblib.Parallel(n_jobs=2)(joblib.delayed(functions.pid)() for _ in range(20))
        assert set(pids) <= set(cluster.workers())
        with pytest.raises(ValueError, match="no 1 today"):
            joblib.Parallel(n_jobs=2)(joblib.delayed(functions.fail)(1) for _ in range(3))


def test_progress_is_a_bar_of_tqdm(client: midflight.Client, capsys: pytest.CaptureFixture[str]) -> None:
    assert list(client.map(functions.double, range(100), progress=True)) == list(range(0, 200, 2))
    assert "100/100" in capsys.readouterr().err


def test_a_function_that_has_everything_has_a_place() -> None:
    """``Mock().func.func…`` never ends."""
    from unittest.mock import Mock

    from midflight._pickling import place_of

    assert "Mock" in place_of(Mock())
