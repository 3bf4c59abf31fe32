"""``concurrent.futures.Executor``, for programs that take one."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn, TypeVar

from midflight._client import Client, Submitter
from midflight._futures import Future
from midflight._map import Results
from midflight.errors import CannotPickle

T = TypeVar("T")


class Executor(concurrent.futures.Executor):
    """A :class:`concurrent.futures.Executor` whose workers are those of the cluster.

    The arguments are those of :class:`Client`.

    >>> with midflight.Executor() as pool:
    ...     list(pool.map(abs, [-1, 2]))
    [1, 2]
    """

    def __init__(self, switch: str | None = None, **options: Any) -> None:
        self._client: Client | None = Client(switch, **options)
        self._futures: set[Future[Any]] = set()
        #: Results whose calls have not all been submitted and ended.
        self._results: set[Results[Any]] = set()

    def __reduce__(self) -> NoReturn:
        raise CannotPickle("an executor is of its process: connect in the function, midflight.Client()")

    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Calls ``function(*args, **kwargs)`` on some worker."""
        future = self._open().submit(function, *args, **kwargs)
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        return future

    def map(
        self,
        function: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int | None = None,
    ) -> Iterator[T]:
        """As ``map``. Without `chunksize` the measured time of the calls decides it."""
        results = self._open().map(function, *iterables, timeout=timeout, chunksize=chunksize)
        self._results.add(results)
        results._at_end = self._results.discard
        return results

    def options(self, **options: Any) -> Submitter:
        """:meth:`Client.options`."""
        return self._open().options(**options)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends it. With `wait`, all its calls have then ended, including those of ``map``, and their results can still be read. Without,
        its calls continue, and reading a ``map`` submits the rest of it; the connection ends with the last future and iterator."""
        client, self._client = self._client, None
        if cancel_futures:
            for future in list(self._futures):
                future.cancel()
            for results in list(self._results):
                results.cancel()
        if wait:
            for results in list(self._results):
                results.finish()
            for future in list(self._futures):
                future._wait(None)
            if client is not None:
                client.close()

    def _open(self) -> Client:
        if self._client is None:
            raise RuntimeError("cannot schedule new futures after shutdown")
        return self._client
