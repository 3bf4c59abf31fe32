"""A call runs its function in its current state, even if what the function uses has changed since the last call."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import functions
import pytest
from conftest import PATIENCE, Cluster

import midflight
from midflight import _pickling

Script = Callable[[str], dict[str, Any]]


@pytest.fixture
def script() -> Script:
    """Runs lines in a namespace as that of a script or a notebook; returns the namespace."""
    namespace: dict[str, Any] = {"__name__": "__main__"}

    def run(lines: str) -> dict[str, Any]:
        exec(lines, namespace)
        return namespace

    return run


@pytest.fixture
def pickled(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Functions, each time that they are pickled."""
    found: list[object] = []
    dump = _pickling.dump_function
    monkeypatch.setattr(_pickling, "dump_function", lambda function: found.append(function) or dump(function))
    return found


#: Code that makes `work` return 1, and a change that makes it return 2.
CHANGES = {
    "a function that it uses": ("def helper(): return 1\ndef work(*_): return helper()", "def helper(): return 2"),
    "what that one uses": ("def a(): return 1\ndef b(): return a()\ndef work(*_): return b()", "def a(): return 2"),
    "a variable": ("n = 1\ndef work(*_): return n", "n = 2"),
    "a variable in an inner function": ("n = 1\ndef work(*_): return [(lambda: n)() for _ in 'a'][0]", "n = 2"),
    "a builtin that it hides": ("def work(*_): return max(0, 1)", "def max(*_): return 2"),
    "a dict in place": ("d = {'n': 1}\ndef work(*_): return d['n']", "d['n'] = 2"),
    "a list in a tuple": ("l = [1]\nt = (l,)\ndef work(*_): return t[0][0]", "l[0] = 2"),
    "a class": ("class C: n = 1\ndef work(*_): return C.n", "class C: n = 2"),
    "an attribute of a class": ("class C: n = 1\ndef work(*_): return C.n", "C.n = 2"),
    "an attribute of an instance": ("class C: n = 1\nc = C()\ndef work(*_): return c.n", "c.n = 2"),
    "a default": ("def work(_=0, n=1): return n", "work.__defaults__ = (0, 2)"),
    "a default by name": ("def work(*_, n=1): return n", "work.__kwdefaults__['n'] = 2"),
    "an attribute of its own": ("def work(*_): return getattr(work, 'n', 1)", "work.n = 2"),
    "its code": ("def work(*_): return 1\ndef other(*_): return 2", "work.__code__ = other.__code__"),
    "a captured variable": ("def make():\n n = 1\n def put(m):\n  nonlocal n; n = m\n return put, lambda *_: n\nput, work = make()", "put(2)"),
    "a captured list": ("l = [1]\ndef make(l): return lambda *_: l[0]\nwork = make(l)", "l[0] = 2"),
    "itself": ("def work(*_): return 1", "def work(*_): return 2"),
    "the object of a method": ("class C:\n def get(self, *_): return self.n\nc = C()\nc.n = 1\nwork = c.get", "c.n = 2"),
    "what a partial has": ("import functools\nl = [1]\nwork = functools.partial(lambda l, *_: l[0], l)", "l[0] = 2"),
    "what a decorated one has": (
        "import functools\ndef twice(f): return functools.wraps(f)(lambda *_: f())\nn = 1\n@twice\ndef work(*_): return n",
        "n = 2",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("how", ["submit", "map"])
def test_a_change_is_seen(client: midflight.Client, script: Script, what: str, how: str) -> None:
    def result() -> object:
        work = script("")["work"]
        return client.submit(work).result(PATIENCE) if how == "submit" else next(client.map(work, [0]))

    first, then = CHANGES[what]
    script(first)
    assert result() == 1
    script(then)
    assert result() == 2


def test_what_is_submitted_keeps_what_it_had(client: midflight.Client, script: Script) -> None:
    defined = script("n = {'n': 0}\ndef work(): return n['n']")
    futures = []
    for number in range(200):
        defined["n"]["n"] = number
        futures.append(client.submit(defined["work"]))
    assert midflight.gather(futures, timeout=PATIENCE) == list(range(200))


def test_what_has_not_changed_is_pickled_once(client: midflight.Client, script: Script, pickled: list[object]) -> None:
    work = script("import math, os.path\nn = 1, 'a'\ndef half(x): return x / n[0]\ndef work(x): return math.sqrt(half(x))")["work"]
    for _ in range(3):
        for function in (work, functions.double, pow):
            midflight.gather([client.submit(function, 1, *([1] if function is pow else [])) for _ in range(3)], timeout=PATIENCE)
    assert pickled == [work, functions.double, pow]


def test_a_lambda_that_is_made_again_is_pickled_once_and_its_calls_travel_together(
    client: midflight.Client, pickled: list[object]
) -> None:
    known = set()
    for _ in range(3):
        midflight.gather([client.submit(lambda n: n + 1, n) for n in range(300)], timeout=PATIENCE)
        known |= {client._core.function(lambda n: n + 1, client._settings) for _ in range(3)}
    assert len(known) == 1 and len(pickled) == 2, "there are two lambdas above"


def test_lambdas_that_capture_other_values_travel_together(client: midflight.Client, pickled: list[object]) -> None:
    def submit(number: int) -> midflight.Future[Any]:
        return client.submit(lambda x, by_default=number, *, by_name=number: (x, number, by_default, by_name), 0)

    futures = [submit(number) for number in range(300)]
    assert midflight.gather(futures, timeout=PATIENCE) == [(0, number, number, number) for number in range(300)]
    assert len({future._function.calls for future in futures}) == len(pickled) == 2, "the first, and what all have in common"
    large = [client.submit(lambda data=bytes([number]) * 10_000: data[0]) for number in range(5)]
    shared = [client.submit(lambda shared=client.share(number): shared) for number in range(5)]  # type: ignore[misc]
    assert midflight.gather(large + shared, timeout=PATIENCE) == [*range(5), *range(5)]


def test_what_a_template_uses_may_change_too(client: midflight.Client, script: Script) -> None:
    defined = script("n = 1\ndef make(m): return lambda *_: (n, m)\n")
    for number in range(3):
        assert client.submit(defined["make"](number)).result(PATIENCE) == (1, number)
    script("n = 2")
    assert [client.submit(defined["make"](number)).result(PATIENCE) for number in range(3)] == [(2, 0), (2, 1), (2, 2)]
    assert list(client.map(defined["make"](5), range(2))) == [(2, 5), (2, 5)]
    script("n = [3]")
    assert client.submit(defined["make"](6)).result(PATIENCE) == ([3], 6)


def test_errors_of_a_lambda_that_is_made_again_are_its_own(client: midflight.Client) -> None:
    for number in range(3):
        with pytest.raises(ZeroDivisionError) as caught:
            client.submit(lambda: number / 0).result(PATIENCE)
        text = str(caught.value.__cause__)
        assert "in <lambda>" in text and "worker.py" not in text and "_templates.py" not in text
        with pytest.raises(midflight.CannotPickle, match="result of .*<lambda> "):
            client.submit(lambda: (number, sys._getframe())).result(PATIENCE)
        with pytest.raises(midflight.CannotPickle, match=r"argument 0 of .*<lambda> \(.*test_dependencies.py"):
            client.submit(lambda lock: number, threading.Lock())
        with pytest.raises(midflight.CannotPickle, match="it uses lock"):
            lock = threading.Lock()
            client.submit(lambda: (number, lock))


def test_functions_of_the_same_code_are_not_taken_for_each_other(client: midflight.Client) -> None:
    def make(n: object) -> Callable[[], object]:
        return lambda: n

    one, two, true = make(1), make(2), make(True)
    assert [client.submit(f).result(PATIENCE) for f in (one, two, true, one)] == [1, 2, True, 1]
    assert type(client.submit(true).result(PATIENCE)) is bool


def test_what_is_large_and_pickled_each_time_is_told(client: midflight.Client) -> None:
    data = [bytes(2 << 20)]
    assert client.submit(lambda: len(data[0])).result(PATIENCE) == 2 << 20
    work = lambda: len(data[0])  # noqa: E731
    client.submit(work).result(PATIENCE)
    with pytest.warns(UserWarning, match=r"<lambda> .* has 2 MiB, and is pickled each time"):
        client.submit(work).result(PATIENCE)


# Modules.


@pytest.fixture
def package(tmp_path: Path) -> Iterator[Path]:
    """A directory that client and workers import modules from."""
    sys.path.insert(0, str(tmp_path))
    yield tmp_path
    sys.path.remove(str(tmp_path))
    for name in ("fresh_outer", "fresh_inner"):
        sys.modules.pop(name, None)


def write(package: Path, inner: str) -> None:
    """Other contents have other lengths: Python's own cache of bytecode checks that, and the second."""
    (package / "fresh_inner.py").write_text(f"def value(): return {inner}\n")
    (package / "fresh_outer.py").write_text("import fresh_inner\ndef outer(_=None): return fresh_inner.value()\n")
    importlib.invalidate_caches()


@pytest.mark.parametrize("function", ["outer", "lambda"])
def test_a_reloaded_module_is_reloaded_at_workers(package: Path, function: str) -> None:
    write(package, "1")
    import fresh_outer  # type: ignore[import-not-found]

    def work(_: object = None) -> object:
        return fresh_outer.outer()

    def results() -> set[object]:
        called = fresh_outer.outer if function == "outer" else work
        return {*client.map(called, range(4), chunksize=1), client.submit(called).result(PATIENCE)}

    with Cluster(slots=2, cwd=package) as cluster, midflight.Client(cluster.switch) as client:
        assert results() == {1}
        for value in (22, 333):
            write(package, str(value))
            importlib.reload(sys.modules["fresh_inner"])
            assert results() == {value}
        workers = cluster.workers()
        importlib.reload(sys.modules["fresh_inner"])  # the same
        assert results() == {333} and cluster.workers() == workers


def test_another_client_gets_the_modules_as_they_are_now(package: Path) -> None:
    write(package, "1")
    import fresh_outer

    with Cluster(slots=1, cwd=package) as cluster:
        for value in (1, 22):
            write(package, str(value))
            with midflight.Client(cluster.switch) as client:
                assert client.submit(fresh_outer.outer).result(PATIENCE) == value
        worker = cluster.workers()
        with midflight.Client(cluster.switch) as client:
            assert client.submit(fresh_outer.outer).result(PATIENCE) == 22
        assert cluster.workers() == worker, "nothing has changed"


def test_a_module_that_is_imported_in_a_task_while_its_file_changes_is_stale(package: Path) -> None:
    write(package, "1")

    def late() -> object:
        import fresh_inner  # type: ignore[import-not-found]

        found = fresh_inner.value()
        (package / "fresh_inner.py").write_text("def value(): return 22\n")
        return found

    def value() -> object:
        import fresh_inner

        return fresh_inner.value()

    with Cluster(slots=1, cwd=package) as cluster, midflight.Client(cluster.switch) as client:
        assert client.submit(late).result(PATIENCE) == 1
        assert client.submit(value).result(PATIENCE) == 22


def test_a_module_that_is_registered_later_goes_by_value(package: Path) -> None:
    write(package, "1")
    import fresh_inner

    with Cluster(slots=1) as cluster, midflight.Client(cluster.switch) as client:
        with pytest.raises(midflight.MissingModule):
            client.submit(fresh_inner.value).result(PATIENCE)
        cloudpickle.register_pickle_by_value(fresh_inner)
        try:
            assert client.submit(fresh_inner.value).result(PATIENCE) == 1
        finally:
            cloudpickle.unregister_pickle_by_value(fresh_inner)
