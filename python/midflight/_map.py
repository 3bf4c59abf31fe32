"""``map``: many calls of one function, several in a task where they are short."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError
from typing import Any, Generic, TypeVar

from midflight import _native, _outcomes, _pickling
from midflight._core import Core, Function
from midflight.errors import TaskTimeout, WorkerDied

T = TypeVar("T")

#: Tasks that are open while their size still grows.
_FIRST_TASKS = 64
#: Bytes of pickles in one task.
_TASK_BYTES = 256 << 10


class _Chunk:
    """Calls that are one task."""

    __slots__ = ("_calls", "_core", "_function", "_open", "_shared", "ended", "results", "token")

    def __init__(
        self, core: Core, function: Function, calls: list[_pickling.Pickled], shared: list[_native.Blob]
    ) -> None:
        self._core = core
        self._function = function
        self._calls = calls
        self._shared = shared
        self._open = 0
        self.ended = False
        self.results: list[_outcomes.Ended] = []
        self.token = core.submit(function, calls, shared)
        core.expect(self.token, self)

    def _end(self, kind: int, value: Any) -> None:
        if kind == _outcomes.CANCELLED:
            self._all(CancelledError())
            return
        why = _outcomes.failure(kind, value)
        if why is None:
            nanoseconds, entries = _pickling.parse_result(value)
            self._function.note(len(entries), nanoseconds)
            self.results = [_outcomes.ended(entry) for entry in entries]
            self.ended = True
            self._calls = []
        elif len(self._calls) > 1 and isinstance(why, (WorkerDied, TaskTimeout)):
            self._one_by_one()
        else:
            self._all(why)

    def _all(self, why: BaseException) -> None:
        self.results = [(False, why)] * len(self._calls)
        self.ended = True

    def _one_by_one(self) -> None:
        """One of the calls has ended the worker: only that one is to fail."""
        self._open = len(self._calls)
        self.results = [(False, None)] * self._open
        for place, call in enumerate(self._calls):
            alone = _Alone(self, place)
            try:
                self._core.expect(self._core.submit(self._function, [call], self._shared), alone)
            except Exception as error:
                self._end_of_one(place, (False, error))

    def _end_of_one(self, place: int, ended: _outcomes.Ended) -> None:
        self.results[place] = ended
        self._open -= 1
        self.ended = self._open == 0

    def has_ended(self) -> bool:
        return self.ended


class _Alone:
    """One call of a chunk, for itself."""

    __slots__ = ("_chunk", "_function", "_place")

    def __init__(self, chunk: _Chunk, place: int) -> None:
        self._chunk = chunk
        self._function = chunk._function
        self._place = place

    def _end(self, kind: int, value: Any) -> None:
        if kind == _outcomes.CANCELLED:
            ended: _outcomes.Ended = (False, CancelledError())
        elif why := _outcomes.failure(kind, value):
            ended = (False, why)
        else:
            ended = _outcomes.ended(_pickling.parse_result(value)[1][0])
        self._chunk._end_of_one(self._place, ended)


class Results(Generic[T]):
    """The results of :meth:`Client.map`, in order. An exception is raised where its call's turn is; the next ones follow.

    >>> with midflight.Client() as client:
    ...     results = client.map(pow, [2, 3], [5, 2])
    ...     list(results)
    [32, 9]
    """

    def __init__(
        self,
        core: Core,
        function: Function,
        calls: Iterable[tuple[Any, ...]],
        *,
        chunksize: int | None,
        window: int,
        timeout: float | None,
        return_exceptions: bool,
        bar: Any,
    ) -> None:
        self._core = core
        self._function = function
        self._source: Iterator[tuple[Any, ...]] = iter(calls)
        self._chunksize = chunksize
        self._window = window
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._return_exceptions = return_exceptions
        self._bar = bar
        self._chunks: deque[_Chunk] = deque()
        self._open = 0
        self._ready: deque[_outcomes.Ended] = deque()
        self._is_exhausted = False
        self._fill()

    def __iter__(self) -> Results[T]:
        return self

    def __next__(self) -> T:
        if not self._ready:
            self._take()
        has_value, value = self._ready.popleft()
        if not has_value and not self._return_exceptions:
            raise value
        return value  # type: ignore[no-any-return]

    def cancel(self) -> None:
        """Cancels what has not ended, and submits nothing more."""
        self._is_exhausted = True
        for chunk in self._chunks:
            if not chunk.ended:
                self._core.native.cancel(chunk.token)

    def _take(self) -> None:
        """The results of the next task."""
        if not self._chunks:
            self._fill()
        if not self._chunks:
            if self._bar is not None:
                self._bar.close()
            raise StopIteration
        chunk = self._chunks[0]
        if not chunk.ended:
            left = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
            if not self._core.wait_until(chunk.has_ended, left):
                raise TimeoutError(f"{self._open} calls of map have not ended")
        self._chunks.popleft()
        self._open -= len(chunk.results)
        self._ready.extend(chunk.results)
        if self._bar is not None:
            self._bar.update(len(chunk.results))
        self._fill()

    def _fill(self) -> None:
        """Submits calls until as many are open as may be."""
        pace = self._function.pace
        while not self._is_exhausted:
            may_grow = pace.grows and not self._chunksize
            if self._open >= (min(self._window, _FIRST_TASKS * pace.size) if may_grow else self._window):
                return
            self._submit(self._chunksize or pace.size)

    def _submit(self, size: int) -> None:
        calls: list[_pickling.Pickled] = []
        shared: list[_native.Blob] = []
        length = 0
        while len(calls) < size and length < _TASK_BYTES:
            args = next(self._source, None)
            if args is None:
                self._is_exhausted = True
                break
            pickled, more = self._core.dump(self._function, args, {})
            calls.append(pickled)
            length += len(pickled) if isinstance(pickled, bytes) else sum(part.nbytes for part in pickled[1])
            if more:
                shared = more
                break  # each task has its own list of shared arguments
        if calls:
            self._chunks.append(_Chunk(self._core, self._function, calls, shared))
            self._open += len(calls)
