"""``map``: many calls of one function; short ones share a task."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from midflight import _entries, _native, _outcomes
from midflight.errors import CannotPickle, ClientClosed

if TYPE_CHECKING:
    from midflight._client import Client
    from midflight._core import Core, Function

T = TypeVar("T")

#: Tasks that are open while their size still grows.
_FIRST_TASKS = 64
#: Calls that a task returns are submitted again in at most this many tasks.
_RETURNED_TASKS_MAX = 16
#: Bytes of pickles in one task.
_TASK_BYTES = 256 << 10


class _Ended:
    """Stands for a call that could not be submitted."""

    ended = True

    def __init__(self, error: Exception) -> None:
        self.outcomes: list[_outcomes.Outcome | None] = [(False, error)]

    def cancel(self) -> None:
        """Nothing is left to cancel."""


class _Chunk:
    """Calls that are one task until something separates them."""

    __slots__ = ("_calls", "_core", "_function", "_is_cancelled", "_open", "_shared", "_tasks", "ended", "outcomes")

    def __init__(
        self,
        core: Core,
        function: Function,
        calls: list[_entries.Pickled],
        shared: list[_native.Blob],
        *,
        gives_back: bool,
    ) -> None:
        self._core = core
        self._function = function
        self._calls = calls
        self._shared = shared
        self._open = len(calls)
        self._is_cancelled = False
        self.ended = False
        self.outcomes: list[_outcomes.Outcome | None] = [None] * len(calls)
        self._tasks: list[_Task] = []
        task = _Task(self, 0, len(calls))
        task.token = core.submit(task, function, calls, shared, gives_back=gives_back and len(calls) > 1)
        self._tasks.append(task)

    def cancel(self) -> None:
        """Cancels the calls that have not ended."""
        self._is_cancelled = True
        for task in reversed(self._tasks):  # the running ones last: their slots must not begin others of these
            self._core.native.cancel(task.token)

    def has_ended(self) -> bool:
        """Whether all calls have."""
        return self.ended

    def submit_again(self, start: int, stop: int, ran: int) -> None:
        """Submits these calls as a separate task, without waiting for room."""
        task = _Task(self, start, stop)
        try:
            if self._is_cancelled:
                raise CancelledError
            calls = self._calls[start:stop]
            task.token = self._core.submit(
                task, self._function, calls, self._shared, ran, gives_back=len(calls) > 1, again=True
            )
        except Exception as error:
            task._fail(error)
            return
        self._tasks.append(task)
        if self._is_cancelled:
            self._core.native.cancel(task.token)

    def note(self, calls: int, nanoseconds: int) -> None:
        """Records how long the calls of a task took."""
        self._function.note(calls, nanoseconds)

    @property
    def runs_max(self) -> int:
        """Maximum number of runs of a task with several calls."""
        return self._function.runs_max

    def end(self, start: int, outcomes: Sequence[_outcomes.Outcome | None]) -> None:
        """These calls have ended with these outcomes, except for those with ``None``. Earlier outcomes stay."""
        if self.ended:
            return
        if len(outcomes) == len(self.outcomes) == self._open and None not in outcomes:
            self.outcomes = list(outcomes)
            self._open = 0
        else:
            for place, outcome in enumerate(outcomes, start):
                if self.outcomes[place] is None and outcome is not None:
                    self.outcomes[place] = outcome
                    self._open -= 1
        if self._open == 0:
            self.ended = True
            self._calls = []
            self._tasks = []


class _Task:
    """Waits for the task of some calls of a chunk."""

    __slots__ = ("_chunk", "_first", "_function", "_is_apart", "_ran", "_rest", "_start", "_stop", "token")

    def __init__(self, chunk: _Chunk, start: int, stop: int) -> None:
        self._chunk = chunk
        self._function = chunk._function
        self._start = start
        self._stop = stop
        self.token = 0  # belongs to no task
        #: Ranges that are still to be submitted again, because the task did not begin them or should not run them together; ``None``: none
        #: was submitted yet.
        self._rest: deque[tuple[int, int]] | None = None
        #: The calls from here on were returned.
        self._first = stop
        self._ran = 0
        self._is_apart = False

    def _end(self, kind: int, value: Any) -> None:
        if self._is_apart:  # settled before
            self._send_rest()
            return
        count = self._stop - self._start
        nanoseconds, outcomes = _outcomes.read(kind, value, count)
        if isinstance(outcomes, _outcomes.Apart):
            self._is_apart = True
            self._ran = outcomes.ran or self._chunk.runs_max
            open_calls = [place for place in range(self._start, self._first) if self._chunk.outcomes[place] is None]
            self._rest = deque((place, place + 1) for place in open_calls)
            self._send_rest()
            return
        begun = count - outcomes.count(None)
        if nanoseconds and begun:
            self._chunk.note(begun, nanoseconds)
        self._chunk.end(self._start, outcomes)
        if begun < count:
            self._give_back(begun)

    def _fail(self, error: BaseException) -> None:
        self._chunk.end(self._start, [(False, error)] * (self._stop - self._start))

    def _give_back(self, first: int, outcomes: Sequence[_outcomes.Outcome | None] = ()) -> None:
        """The task returns its calls from this one on. The earlier ones have ended with these outcomes, as far as it reports them."""
        self._chunk.end(self._start, outcomes)
        first += self._start
        if self._rest is None:
            self._first = first
            self._ran = 0
            size = max(1, (self._stop - first) // _RETURNED_TASKS_MAX)
            self._rest = deque(
                (start, min(start + size, self._stop)) for start in range(first, self._stop, size)
            )
        self._send_rest()

    def _send_rest(self) -> None:
        while self._rest:
            self._chunk.submit_again(*self._rest[0], self._ran)
            self._rest.popleft()


class Results(Generic[T]):
    """The results of :meth:`Client.map`, in order. An exception is raised where its call's turn is; the next ones follow.

    >>> with midflight.Client() as client:
    ...     results = client.map(pow, [2, 3], [5, 2])
    ...     list(results)
    [32, 9]
    """

    def __init__(
        self,
        client: Client,
        function: Function,
        calls: Iterable[tuple[Any, ...]],
        *,
        chunksize: int | None,
        window: int,
        timeout: float | None,
        return_exceptions: bool,
        bar: Any,
    ) -> None:
        self._client = client  # without one it is closed
        self._core = client._core
        self._function = function
        self._source: Iterator[tuple[Any, ...]] = iter(calls)
        self._chunksize = chunksize
        self._window = window
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._return_exceptions = return_exceptions
        self._bar = bar
        self._chunks: deque[_Chunk | _Ended] = deque()
        self._open = 0
        self._ready: deque[_outcomes.Outcome | None] = deque()
        self._is_exhausted = False
        #: The arguments of the next call, taken from the source; then the calls of the next task, and their shared arguments.
        self._args: tuple[Any, ...] | None = None
        self._calls: list[_entries.Pickled] = []
        self._shared: list[_native.Blob] = []
        #: Held by the thread that takes results and submits further calls.
        self._lock = threading.RLock()
        self._at_end: Callable[[Results[T]], Any] | None = None
        self._fill()

    def __iter__(self) -> Results[T]:
        return self

    def __reduce__(self) -> NoReturn:
        raise CannotPickle("results of map are no argument: pass list(results)")

    def __next__(self) -> T:
        while not self._ready:
            if not self._take(self._deadline) and not self._ready:
                raise StopIteration
        outcome = self._ready.popleft()
        assert outcome is not None, "a chunk has ended when all its calls have"
        has_value, value = outcome
        if has_value or self._return_exceptions:
            return value  # type: ignore[no-any-return]
        if isinstance(value, StopIteration):
            raise RuntimeError("the function raised StopIteration") from value  # otherwise the loop would end
        raise value

    def cancel(self) -> None:
        """Cancels the calls that have not ended, and submits no more."""
        self._is_exhausted = True
        for chunk in reversed(list(self._chunks)):
            if not chunk.ended:
                chunk.cancel()

    def finish(self) -> None:
        """Submits all calls, and waits until they have ended."""
        while self._take(None):
            pass

    def _take(self, deadline: float | None) -> bool:
        """The results of the next task; ``False`` if there is none."""
        with self._lock:
            if not self._chunks:
                self._fill()
            if not self._chunks:
                self._end()
                return False
            chunk = self._chunks[0]
            if isinstance(chunk, _Chunk) and not chunk.ended:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                if not self._core.wait_until(chunk.has_ended, left):
                    left_over = self._open
                    self.cancel()  # otherwise the next calls would wait for these
                    raise TimeoutError(f"{left_over} calls of map had not ended in time, and are cancelled")
            self._chunks.popleft()
            self._open -= len(chunk.outcomes)
            self._ready.extend(chunk.outcomes)
            if self._bar is not None:
                self._bar.update(len(chunk.outcomes))
            self._fill()
            return True

    def _end(self) -> None:
        if self._bar is not None:
            self._bar.close()
        if self._at_end is not None:
            self._at_end(self)

    def _fill(self) -> None:
        """Submits calls up to the bound of open ones."""
        pace = self._function.pace
        while not self._is_exhausted:
            may_grow = pace.grows and not self._chunksize
            most = min(self._window, _FIRST_TASKS * pace.size) if may_grow else self._window
            # A task that only fills a small gap would be too small, and so would the following ones.
            size = min(self._chunksize, most) if self._chunksize else min(pace.size, -(-most // 4))
            if self._open + size > most:
                return
            self._submit(size)

    def _submit(self, size: int) -> None:
        """Collects calls, and submits them as one task. If an exception, such as that of Ctrl-C, interrupts this, the collected calls are
        kept."""
        failed: Exception | None = None
        length = 0
        while not failed and not self._shared and len(self._calls) < size and length < _TASK_BYTES:
            try:
                if self._args is None:
                    self._args = next(self._source, None)
            except Exception as error:
                self._is_exhausted = True  # it may be infinite
                failed = error
                break
            if self._args is None:
                self._is_exhausted = True
                break
            try:
                pickled, shared = self._core.dump(self._function, self._args, {})
            except Exception as error:
                failed = error
            else:
                self._calls.append(pickled)
                length += len(pickled) if isinstance(pickled, bytes) else sum(part.nbytes for part in pickled[1])
                self._shared = shared  # each task has its own list of shared arguments
            self._args = None
        if self._calls:
            try:
                may_wait = not self._chunksize
                self._add(_Chunk(self._core, self._function, self._calls, self._shared, gives_back=may_wait))
            except ClientClosed:
                raise
            except Exception as error:
                for _ in self._calls:
                    self._add(_Ended(error))
            self._calls, self._shared = [], []
        if failed:
            self._add(_Ended(failed))

    def _add(self, chunk: _Chunk | _Ended) -> None:
        self._chunks.append(chunk)
        self._open += len(chunk.outcomes)
