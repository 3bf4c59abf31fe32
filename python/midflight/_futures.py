"""Futures of single calls, and waiting for several."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from midflight import _entries, _outcomes
from midflight.errors import CannotPickle

if TYPE_CHECKING:
    from midflight._client import Client
    from midflight._core import Function

T = TypeVar("T")

_ENDED = ("FINISHED", "CANCELLED", "CANCELLED_AND_NOTIFIED")

#: Held while a future without a condition ends, or gets one. The garbage collector and signal handlers may end other futures or ask for a
#: condition at the same time, in the same thread.
_lock = threading.RLock()
os.register_at_fork(after_in_child=_lock._at_fork_reinit)  # type: ignore[attr-defined] # as the standard library does


class Future(concurrent.futures.Future[T]):
    """The result of a call that has not ended yet. Wait for it, or await it.

    It is a :class:`concurrent.futures.Future`, so what takes those takes these.

    >>> client = midflight.Client()
    >>> future = client.submit(divmod, 7, 2)
    >>> future.result(timeout=10)
    (3, 1)
    >>> client.close()
    """

    # The base class makes a condition, a lock and lists for each future, which the garbage collector visits repeatedly while many are open.
    # Most futures never need them. Slots also save the dict.
    __slots__ = (
        "_call",
        "_client",
        "_done_callbacks",
        "_exception",
        "_function",
        "_own_condition",
        "_result",
        "_state",
        "_token",
        "_token_again",
        "_waiters",
        "_watchers",
    )

    def __init__(self, client: Client, function: Function, call: _entries.Pickled) -> None:
        self._client = client  # without one it is closed
        self._function = function
        #: To submit it again.
        self._call: bytes | None = call if isinstance(call, bytes) and function.may_join else None
        #: The native module's token; 0 means none. `_token_again` is that of the call when it was submitted again.
        self._token = self._token_again = 0
        self._state = "PENDING"
        self._result: Any = None
        self._exception: BaseException | None = None
        self._own_condition: threading.Condition | None = None
        #: Queues of `as_completed` that get it when it has ended.
        self._watchers: tuple[deque[Future[Any]], ...] = ()

    def __reduce__(self) -> NoReturn:
        raise CannotPickle("a future is not supported as argument yet: pass future.result()")

    @property
    def _condition(self) -> threading.Condition:  # type: ignore[override]
        """The base class holds it to check a future or change its waiters. Made with what it protects, on the first use."""
        with _lock:
            if self._own_condition is None:
                self._waiters: list[Any] = []
                self._done_callbacks: list[Any] = []
                self._own_condition = threading.Condition()
        return self._own_condition

    def result(self, timeout: float | None = None) -> T:
        """The value, or the exception that the function has raised, with the remote traceback as its cause."""
        self._wait(timeout)
        if self._state == "FINISHED" and self._exception is None:
            return self._result  # type: ignore[no-any-return] # no lock, which Ctrl-C could leave locked
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The exception that the function has raised; ``None`` if it has returned."""
        self._wait(timeout)
        if self._state == "FINISHED":
            return self._exception
        return super().exception(0)

    def done(self) -> bool:
        """Whether it has ended."""
        return self._state in _ENDED

    def cancel(self) -> bool:
        """Takes the task out of the queue, or has its executor stop it. ``False`` if it has ended."""
        if not super().cancel():
            return False
        if self._tell_cancelled():
            self._client._core.native.cancel(self._token_again or self._token)
        return True

    def _tell_cancelled(self) -> bool:
        """Reports the cancellation to waiters of the standard library; ``False`` if they know it."""
        with self._condition:
            is_told = self._state == "CANCELLED" and not self.set_running_or_notify_cancel()
        self._tell_watchers()
        return is_told

    def _watch(self, ended: deque[Future[Any]]) -> None:
        """Appends itself to the queue when it has ended."""
        if self._state in _ENDED:
            ended.append(self)
            return
        with _lock:
            self._watchers += (ended,)
        self._tell_watchers()  # it may have ended since

    def _tell_watchers(self) -> None:
        """Notifies each watcher once. Does nothing before the future has ended."""
        if self._watchers and self._state in _ENDED:
            with _lock:
                watchers, self._watchers = self._watchers, ()
            for ended in watchers:
                ended.append(self)

    def __await__(self) -> Generator[Any, None, T]:
        return asyncio.wrap_future(self).__await__()

    def _wait(self, timeout: float | None) -> None:
        if self._state not in _ENDED:
            self._client._core.wait_until(self.done, timeout)

    def _end(self, kind: int, value: Any) -> None:
        if self._state != "PENDING":
            self._call = None
            self._tell_watchers()  # if a signal handler has prevented that
            return  # cancelled, or settled before
        if kind == _outcomes.CANCELLED:
            super().cancel()
            self._tell_cancelled()
            return
        nanoseconds, outcomes = _outcomes.read(kind, value, 1)
        if nanoseconds:
            self._function.note(1, nanoseconds)
        if isinstance(outcomes, list) and outcomes[0] is not None:  # as for one call
            self._settle(outcomes[0])

    def _settle(self, outcome: _outcomes.Outcome) -> None:
        with _lock:
            is_noted = self._own_condition is None and self._note(outcome)
            condition = self._own_condition
        self._tell_watchers()
        if condition is None:  # no thread waits on the condition; one may still poll the state
            return
        # As ``set_result`` and ``set_exception``, but Ctrl-C in ``Condition.__enter__`` cannot leave the lock locked.
        with condition._lock:  # type: ignore[attr-defined]
            if not is_noted and not self._note(outcome):
                return
            for waiter in self._waiters:
                (waiter.add_result if outcome[0] else waiter.add_exception)(self)
            condition.notify_all()
        self._tell_watchers()
        self._invoke_callbacks()  # type: ignore[attr-defined]

    def _note(self, outcome: _outcomes.Outcome) -> bool:
        """``False`` if it was cancelled or settled before."""
        if self._state != "PENDING":
            return False
        has_value, value = outcome
        if has_value:
            self._result = value
        else:
            self._exception = value
        self._state = "FINISHED"
        self._call = None
        return True

    def _fail(self, error: BaseException) -> None:
        self._settle((False, error))

    def _try_alone(self, ran: int) -> None:
        call = self._call
        if call is None or self._state != "PENDING":
            return
        try:
            self._token_again = self._client._core.submit(self, self._function, [call], [], ran, again=True)
        except Exception as error:
            self._fail(error)
            return
        self._call = None
        if self._state != "PENDING":
            self._client._core.native.cancel(self._token_again)  # cancelled in the meantime, by its old token


def gather(futures: Iterable[Future[T]], *, return_exceptions: bool = False, timeout: float | None = None) -> list[Any]:
    """The results of all, in order. Raises the first exception, unless `return_exceptions`: then it is in the list.

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
        future._watch(ended)
    left_over = len(waiting)
    while left_over:
        if not ended:
            core = next(iter(waiting))._client._core
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not core.wait_until(lambda: ended, left):
                raise TimeoutError(f"{left_over} of {len(waiting)} futures have not ended")
        yield ended.popleft()
        left_over -= 1
