"""``concurrent.futures.Executor``, for programs that take one."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from midflight._client import Client, Submits
from midflight._futures import Future

T = TypeVar("T")


class Executor(concurrent.futures.Executor):
    """A :class:`concurrent.futures.Executor` whose workers are those of the cluster.

    The arguments are those of :class:`Client`.

    >>> with midflight.Executor() as pool:
    ...     list(pool.map(abs, [-1, 2]))
    [1, 2]
    """

    def __init__(self, switch: str | None = None, **options: Any) -> None:
        self._client = Client(switch, **options)
        self._futures: set[Future[Any]] = set()
        self._is_shut_down = False

    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Calls ``function(*args, **kwargs)`` on some worker."""
        self._check()
        future = self._client.submit(function, *args, **kwargs)
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
        self._check()
        return self._client.map(function, *iterables, timeout=timeout, chunksize=chunksize)

    def options(self, **options: Any) -> Submits:
        """:meth:`Client.options`."""
        return self._client.options(**options)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends it, when its calls have ended (`wait`) or at once."""
        self._is_shut_down = True
        if cancel_futures:
            for future in list(self._futures):
                future.cancel()
        if wait:
            for future in list(self._futures):
                future._wait(None)
            self._client.close()
        elif not self._futures:
            self._client.close()

    def _check(self) -> None:
        if self._is_shut_down:
            raise RuntimeError("cannot schedule new futures after shutdown")
