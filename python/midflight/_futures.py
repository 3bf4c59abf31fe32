"""Futures of single calls, and waiting for several."""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import CancelledError, InvalidStateError
from typing import TYPE_CHECKING, Any, TypeVar

from midflight import _native, _outcomes, _pickling

if TYPE_CHECKING:
    from midflight._core import Core, Function

T = TypeVar("T")

_ENDED = ("FINISHED", "CANCELLED", "CANCELLED_AND_NOTIFIED")


class Future(concurrent.futures.Future[T]):
    """The result of a call that is not there yet. Wait for it, or await it.

    It is a :class:`concurrent.futures.Future`, so what takes those takes these.

    >>> client = midflight.Client()
    >>> future = client.submit(divmod, 7, 2)
    >>> future.result(timeout=10)
    (3, 1)
    >>> client.close()
    """

    def __init__(
        self, core: Core, function: Function, call: _pickling.Pickled | None, shared: list[_native.Blob]
    ) -> None:
        super().__init__()
        self._core = core
        self._function = function
        self._call = call
        self._shared = shared
        self._token = -1

    def result(self, timeout: float | None = None) -> T:
        """The value, or the exception that the function has raised, with the remote traceback as its cause."""
        self._wait(timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The exception that the function has raised; ``None`` if it has returned."""
        self._wait(timeout)
        return super().exception(0)

    def cancel(self) -> bool:
        """Takes the task out of the queue, or has its executor stop it. ``False`` if it has ended."""
        if not super().cancel():
            return False
        self._core.native.cancel(self._token)
        return True

    def __await__(self) -> Generator[Any, None, T]:
        return asyncio.wrap_future(self).__await__()

    def _wait(self, timeout: float | None) -> None:
        if self._state not in _ENDED:
            self._core.wait_until(self._has_ended, timeout)

    def _has_ended(self) -> bool:
        return self._state in _ENDED

    def _end(self, kind: int, value: Any) -> None:
        if kind == _outcomes.CANCELLED:
            super().cancel()
            self.set_running_or_notify_cancel()
            return
        if self._state != "PENDING":
            return  # cancelled
        if kind == _outcomes.ALONE and self._call is not None:
            try:
                self._token = self._core.submit(self._function, [self._call], self._shared)
                self._core.expect(self._token, self)
                return
            except Exception as error:
                has_value, what = False, error  # type: bool, Any
        elif kind == _outcomes.ENTRY:
            has_value, what = _outcomes.ended(value)
        else:
            has_value, what = False, _outcomes.failure(kind, value)
            if what is None:
                nanoseconds, entries = _pickling.parse_result(value)
                self._function.note(1, nanoseconds)
                has_value, what = _outcomes.ended(entries[0])
        self._call = None
        try:
            if has_value:
                self.set_result(what)
            else:
                self.set_exception(what)
        except InvalidStateError:
            pass  # cancelled meanwhile


def gather(futures: Iterable[Future[T]], *, return_exceptions: bool = False, timeout: float | None = None) -> list[Any]:
    """The results of all, in order. The first exception is raised, unless `return_exceptions`: then it is in the list.

    >>> with midflight.Client() as client:
    ...     midflight.gather([client.submit(pow, 2, n) for n in range(4)])
    [1, 2, 4, 8]
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    results: list[Any] = []
    for future in futures:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        try:
            results.append(future.result(left))
        except (Exception, CancelledError) as error:
            if not return_exceptions or not future.done():
                raise
            results.append(error)
    return results


def as_completed(futures: Iterable[Future[T]], *, timeout: float | None = None) -> Iterator[Future[T]]:
    """The futures in the order in which they end.

    >>> with midflight.Client() as client:
    ...     futures = [client.submit(pow, 2, n) for n in range(4)]
    ...     sorted(future.result() for future in midflight.as_completed(futures))
    [1, 2, 4, 8]
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    waiting = set(futures)
    ended: deque[Future[T]] = deque()
    for future in waiting:
        future.add_done_callback(ended.append)  # type: ignore[arg-type]
    left_over = len(waiting)
    while left_over:
        if not ended:
            core = next(iter(waiting))._core
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not core.wait_until(lambda: ended, left):
                raise TimeoutError(f"{left_over} of {len(waiting)} futures have not ended")
        yield ended.popleft()
        left_over -= 1
