"""The client."""

from __future__ import annotations

import os
import tomllib
import weakref
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Generic, NoReturn, TypeVar

from midflight import _entries, _native, _pickling, _shared
from midflight._core import Core, Function, Settings, environment_of
from midflight._futures import Future
from midflight._map import Results
from midflight.errors import CannotPickle, ClientClosed

T = TypeVar("T")


class Shared(Generic[T]):
    """A value that many calls have as an argument: executors fetch it once. From :meth:`Client.share`."""

    def __init__(self, blob: _native.Blob, kind: str) -> None:
        self._blob = blob
        self._kind = kind

    def __reduce__(self) -> tuple[Callable[[int], Any], tuple[int]]:
        return _shared.shared, (_shared.index_of(self._blob),)

    def __repr__(self) -> str:
        return f"<midflight.Shared {self._kind}>"


class Submitter:
    """Submits calls: a client, or a client with options."""

    def __init__(self, core: Core, settings: Settings) -> None:
        self._core = core
        self._settings = settings

    def __reduce__(self) -> NoReturn:
        raise CannotPickle("a client is of its process: connect in the function, midflight.Client()")

    def _owner(self) -> Client:
        """Futures and results refer to it: a client without references is closed."""
        raise NotImplementedError

    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Calls ``function(*args, **kwargs)`` on some worker.

        >>> with midflight.Client() as client:
        ...     client.submit(sorted, [3, 1, 2], reverse=True).result()
        [3, 2, 1]
        """
        core = self._core
        known = core.function(function, self._settings)
        call, shared = core.dump(known, args, kwargs)
        future: Future[T] = Future(self._owner(), known, call)
        future._token = core.submit_one(future, known, call, shared)
        return future

    def map(
        self,
        function: Callable[..., T],
        *iterables: Iterable[Any],
        chunksize: int | None = None,
        window: int = 8192,
        timeout: float | None = None,
        return_exceptions: bool = False,
        progress: bool = False,
    ) -> Results[T]:
        """Calls the function with each item; the results come in order.

        Short calls travel several in a task: as many as take four milliseconds, by their measured time, or `chunksize`. At most
        `window` calls are open at a time, so the iterables may be endless. `progress` shows a bar of tqdm.

        >>> with midflight.Client() as client:
        ...     list(client.map(str.upper, ["a", "b"]))
        ['A', 'B']
        """
        if not iterables:
            raise TypeError("map needs something to iterate over")
        if chunksize is not None and chunksize < 1 or window < 1:
            raise ValueError("chunksize and window: at least 1")
        retries = self._settings.retries
        if retries == 0 or (retries and chunksize is None):
            chunksize = 1  # several calls are retried together, or each alone
        return Results(
            self._owner(),
            self._core.function(function, self._settings),
            zip(*iterables),
            chunksize=chunksize,
            window=window,
            timeout=timeout,
            return_exceptions=return_exceptions,
            bar=_bar(iterables) if progress else None,
        )


class Client(Submitter):
    """A client of a switch.

    Args:
        switch: ``HOST:PORT``, several separated by commas; default: ``$MIDFLIGHT_SWITCH``, or 127.0.0.1:7700.
        config: the cluster's configuration, whose ``[tasks.resources]`` names resources.
        environment: ``"any"``, or ``"same"``: only workers with the same packages in the same versions may run the calls.
        result_max: bytes of the largest result.
        memory_max: bytes of arguments, functions and shared arguments that are kept for executors at a time.
        max_open: calls, and tasks of ``map``, that may be open at a time; then ``submit`` waits.
        bind: the local ``HOST:PORT``.
        connect_timeout: seconds to wait for the switch.

    >>> with midflight.Client() as client:
    ...     client.submit(len, "four").result()
    4
    """

    def __init__(
        self,
        switch: str | None = None,
        *,
        config: str | os.PathLike[str] | None = None,
        environment: str = "any",
        result_max: int = 64 << 20,
        memory_max: int = 1 << 30,
        max_open: int = 1 << 20,
        bind: str | None = None,
        connect_timeout: float = 3.0,
    ) -> None:
        if not 0 < result_max <= _entries.RESULT_MAX:
            raise ValueError(f"result_max {result_max}: 1 to {_entries.RESULT_MAX} bytes")
        if max_open < 1 or memory_max < 1:
            raise ValueError("max_open and memory_max: at least 1")
        self._resources = _resources_of(config) if config is not None else {}
        switch = switch or os.environ.get("MIDFLIGHT_SWITCH") or "127.0.0.1:7700"
        digest = environment_of(environment)
        native = _native.Client(
            switch.split(","),
            bind=bind,
            max_open=max_open,
            value_max=result_max,
            blob_max=memory_max,
            timeout=connect_timeout,
        )
        super().__init__(Core(native, digest), Settings())
        #: Also at the end of the interpreter.
        self._close = weakref.finalize(self, self._core.close)

    def _owner(self) -> Client:
        return self

    def options(
        self,
        *,
        priority: int = 4,
        resources: str = "",
        timeout: float | None = None,
        retries: int | None = None,
    ) -> Submitter:
        """Submits calls by this client with other options. It keeps the client open.

        Args:
            priority: 1 (the highest) to 8.
            resources: names such as ``"gpu,ssd"``, of `config` or ``r0`` to ``r7``: what the executor must have. Of a counted resource,
                the call gets one bundle.
            timeout: seconds that a call may run at its worker, for each attempt; then it is stopped. The time in the queue does not count.
            retries: how often a call runs again after an exception, a timeout or the death of its worker. Default: twice, but not after an
                exception. Any number also keeps calls from being sent together.

        >>> with midflight.Client() as client:
        ...     urgent = client.options(priority=1, timeout=10)
        ...     urgent.submit(abs, -1).result()
        1
        """
        mask = _native.Client.resources(resources, self._resources)
        return _WithOptions(self, Settings.of(priority, mask, timeout, retries))

    def share(self, value: T) -> Shared[T]:
        """Keeps a value that many calls have as an argument. Executors fetch it once, and their workers share its buffers: arrays in it are
        read-only.

        >>> with midflight.Client() as client:
        ...     table = client.share({"a": 1})
        ...     list(client.map(lambda key, table: table[key], ["a", "a"], [table, table]))
        [1, 1]
        """
        pickled = _pickling.dumps(value)
        self._core.has_shared = True
        return Shared(self._core.share(_entries.join(pickled)), type(value).__qualname__)

    @property
    def open(self) -> int:
        """Number of tasks that have not ended."""
        return self._core.native.open()

    def close(self) -> None:
        """Cancels open calls and closes the connection."""
        self._close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        try:
            local, switch = self._core.native.addresses()
        except ClientClosed:
            return "<midflight.Client, closed>"
        return f"<midflight.Client {local} of switch {switch}>"


class _WithOptions(Submitter):
    def __init__(self, client: Client, settings: Settings) -> None:
        super().__init__(client._core, settings)
        self._client = client

    def _owner(self) -> Client:
        return self._client


def _resources_of(config: str | os.PathLike[str]) -> dict[str, int]:
    """The table ``[tasks.resources]`` of a configuration."""
    with open(config, "rb") as file:
        table = tomllib.load(file).get("tasks", {}).get("resources", {})
    _native.Client.resources("", table)
    return dict(table)


def _bar(iterables: tuple[Iterable[Any], ...]) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError("progress=True needs tqdm: pip install tqdm", name="tqdm") from error
    lengths = [len(iterable) for iterable in iterables if hasattr(iterable, "__len__")]  # type: ignore[arg-type]
    return tqdm(total=min(lengths) if lengths else None)
