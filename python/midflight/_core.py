"""What all parts of a client share: its native part, its functions, and how ends of tasks come to who waits for them."""

from __future__ import annotations

import contextlib
import hashlib
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from midflight import _entries, _environment, _native, _outcomes, _pickling, _shared
from midflight.errors import ArgumentTooLarge, ClientClosed

#: Functions that a client keeps for further calls.
_FUNCTIONS_MAX = 256
#: A thread that waits looks at the clock this often.
_LOOK_EVERY = 0.1
#: Seconds: some hundred years.
_TIMEOUT_MAX = 4e9
_PYTHON = (sys.version_info[0], sys.version_info[1])


class Waiter(Protocol):
    """Who waits for a task. Each of these does nothing if it has had its end before."""

    _function: Function

    def _end(self, kind: int, value: Any) -> None:
        """The task has ended so."""

    def _fail(self, error: BaseException) -> None:
        """Its end cannot be told."""


class Joins(Waiter, Protocol):
    """Who waits for a call that may be a task with others."""

    def _settle(self, outcome: _outcomes.Outcome) -> None:
        """The call has ended so."""

    def _try_alone(self) -> None:
        """The call is to be submitted again."""


def settle(waiters: tuple[Any, ...], kind: int, value: Any) -> None:
    """A task has ended: tells who waits for its calls. The native module calls it. An exception that leaves it is that of a signal's
    handler: then the native module keeps the end, and calls again."""
    try:
        if len(waiters) == 1:
            waiters[0]._end(kind, value)
        else:
            _settle_joined(waiters, kind, value)
    except BaseException as error:
        if threading.current_thread() is threading.main_thread():
            raise  # handlers run in this thread only
        for waiter in waiters:
            with contextlib.suppress(Exception):
                waiter._fail(error)


def _settle_joined(waiters: tuple[Joins, ...], kind: int, value: Any) -> None:
    """Their calls were submitted one by one, and are one task."""
    if kind == _outcomes.CANCELLED:
        for waiter in waiters:
            waiter._end(kind, value)
        return
    nanoseconds, outcomes = _outcomes.read(kind, value, len(waiters))
    if nanoseconds:
        waiters[0]._function.note(len(waiters), nanoseconds)
    if isinstance(outcomes, _outcomes.Apart):
        for waiter in waiters:
            waiter._try_alone()
    else:
        for waiter, outcome in zip(waiters, outcomes):
            waiter._settle(outcome)


class Settings(NamedTuple):
    """What tasks ask for."""

    priority: int = 4
    resources: int = 0
    timeout: float | None = None
    retries: int = 0
    attempts: int = 3

    @classmethod
    def of(cls, priority: int, resources: str | int, timeout: float | None, retries: int, attempts: int) -> Settings:
        """Checked."""
        if not 1 <= priority <= 8:
            raise ValueError(f"priority {priority}: 1 (the highest) to 8")
        if not 0 <= retries <= 100 or not 1 <= attempts <= 100:
            raise ValueError("retries: 0 to 100; attempts: 1 to 100")
        if timeout is not None and not 0 < timeout <= _TIMEOUT_MAX:
            raise ValueError(f"timeout {timeout}: seconds above 0, at most {_TIMEOUT_MAX:g}, or None for ever")
        mask = resources if isinstance(resources, int) else _native.Client.resources(resources)
        return cls(priority, mask, timeout, retries, attempts)

    @property
    def may_join(self) -> bool:
        """Whether several calls may be one task: if that ends its worker, each is tried again, and with `retries` all of them are."""
        return not self.retries and self.attempts > 1


class Function:
    """A function of the user, as it is called with some settings."""

    __slots__ = ("calls", "function", "may_join", "pace", "runs_max", "shared")

    def __init__(
        self, function: Callable[..., Any], calls: _native.Calls, shared: list[_native.Blob], settings: Settings
    ) -> None:
        self.function = function
        self.calls = calls
        #: What the function itself has of shared arguments.
        self.shared = shared
        self.pace = Pace()
        #: Whether several calls may be one task.
        self.may_join = settings.may_join
        #: How often a task of several calls runs at most.
        self.runs_max = settings.retries + 1

    def note(self, calls: int, nanoseconds: int) -> None:
        """Learns from a task."""
        before = self.pace.size
        self.pace.measured(calls, nanoseconds)
        if self.may_join and self.pace.size != before:
            self.calls.set_size(self.pace.size)


class Pace:
    """How many calls of a function make a task: as many as take four milliseconds, a time slice of Linux."""

    __slots__ = ("_last", "grows", "size")

    TARGET_NS = 4_000_000
    SIZE_MAX = 1024

    def __init__(self) -> None:
        #: Nanoseconds of a call, by the last tasks.
        self._last: deque[float] = deque(maxlen=5)
        self.size = 1
        #: Whether tasks may soon be larger: then few should be submitted as they are.
        self.grows = True

    def measured(self, calls: int, nanoseconds: int) -> None:
        """Learns from a task. The median counts: one that lost its core for a while does not."""
        self._last.append(max(nanoseconds / calls, 1.0))
        of_one = sorted(self._last)[len(self._last) // 2]
        wanted = max(1, int(self.TARGET_NS / of_one))
        self.size = min(wanted, max(self.size, 2 * calls), self.SIZE_MAX)
        self.grows = self.size < min(wanted, self.SIZE_MAX)


class Core:
    """One connection."""

    def __init__(self, native: _native.Client, environment: int) -> None:
        self.native = native
        self._environment = environment
        self._functions: OrderedDict[tuple[int, Settings], Function] = OrderedDict()
        #: Blobs by the digest of their content.
        self._blobs: OrderedDict[bytes, tuple[_native.Blob, list[_native.Blob]]] = OrderedDict()
        self._lock = threading.Lock()
        #: Whether calls may have shared arguments.
        self.has_shared = False
        self.is_closed = False
        self._thread = threading.Thread(target=self._run, name="midflight", daemon=True)
        self._thread.start()

    # Waiting.

    def _run(self) -> None:
        goes_on = True
        while goes_on:
            try:
                goes_on = self.native.wait_always(settle)
            except MemoryError:
                time.sleep(_LOOK_EVERY)  # until others have let go of some

    def wait_until(self, done: Callable[[], Any], timeout: float | None = None) -> bool:
        """Waits until `done`, and settles what ends meanwhile; ``False`` when the time is over."""
        deadline = None if timeout is None else time.monotonic() + timeout
        native = self.native
        while not done():
            settled = native.settled()
            if done():
                break
            left = _LOOK_EVERY if deadline is None else deadline - time.monotonic()
            if left <= 0:
                return False
            if not native.wait(settle, settled, min(left, _LOOK_EVERY)) and not done():
                raise ClientClosed("the client is closed")
        return True

    # Functions.

    def function(self, function: Callable[..., Any], settings: Settings) -> Function:
        """A function that is called with these settings: pickled the first time. Those used least recently are forgotten."""
        key = (id(function), settings)
        try:
            known = self._functions[key]
            self._functions.move_to_end(key)
            return known
        except KeyError:
            pass
        known = self._new_function(function, settings)
        self._functions[key] = known  # it holds the function, so that the id stays its
        if len(self._functions) > _FUNCTIONS_MAX:
            with contextlib.suppress(KeyError):  # another thread was faster
                self._functions.popitem(last=False)
        return known

    def _new_function(self, function: Callable[..., Any], settings: Settings) -> Function:
        if not callable(function):
            raise TypeError(f"{function!r} cannot be called: give a function, then its arguments")
        self.native.check()
        blobs: list[_native.Blob] = []
        with _shared.collecting(blobs):
            pickled = _pickling.dump_function(function)
        pieces = _entries.join(pickled)
        digest = hashlib.blake2b(digest_size=16)
        for piece in pieces:
            digest.update(piece)
        for blob in blobs:
            digest.update(id(blob).to_bytes(8, "little"))
        known = self._blob(digest.digest(), pieces, blobs)
        return Function(function, self._calls([known, *blobs], settings), blobs, settings)

    def _blob(self, digest: bytes, pieces: list[bytes | memoryview], blobs: list[_native.Blob]) -> _native.Blob:
        with self._lock:
            if digest in self._blobs:
                self._blobs.move_to_end(digest)
                return self._blobs[digest][0]
            blob = self.share(pieces)
            self._blobs[digest] = blob, blobs  # ids of shared arguments are part of the digest: they must stay theirs
            if len(self._blobs) > _FUNCTIONS_MAX:
                self._blobs.popitem(last=False)
            return blob

    def _calls(self, blobs: list[_native.Blob], settings: Settings) -> _native.Calls:
        return _native.Calls(
            self.native,
            blobs,
            python=_PYTHON,
            environment=self._environment,
            priority=settings.priority,
            resources=settings.resources,
            timeout=settings.timeout,
            attempts=settings.attempts,
            retries=settings.retries,
        )

    def share(self, pieces: list[bytes | memoryview]) -> _native.Blob:
        """Keeps bytes for executors. Waits for room while tasks are open."""
        try:
            return self.native.share(pieces)
        except ArgumentTooLarge as error:
            raise ArgumentTooLarge(f"{error}: connect with Client(memory_max=...), or pass a path") from None

    # Calls.

    def dump(
        self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[_entries.Pickled, list[_native.Blob]]:
        """A call, and its shared arguments."""
        if not self.has_shared:
            return _pickling.dump_call(function.function, args, kwargs), []
        blobs = list(function.shared)
        with _shared.collecting(blobs):
            pickled = _pickling.dump_call(function.function, args, kwargs)
        return pickled, blobs[len(function.shared) :]

    def submit_one(
        self, waiter: Joins, function: Function, call: _entries.Pickled, shared: list[_native.Blob]
    ) -> int:
        """Submits a call, which may be a task with others if it has no buffers and no shared arguments. Waits for room."""
        if shared or not isinstance(call, bytes):
            return self.submit(waiter, function, [call], shared)
        try:
            return function.calls.submit(waiter, call)
        except ArgumentTooLarge as error:
            raise _too_large(function, error) from None

    def submit(
        self,
        waiter: Waiter,
        function: Function,
        calls: list[_entries.Pickled],
        shared: list[_native.Blob],
        ran: int = 0,
    ) -> int:
        """Submits a task of one or more calls. `ran`: of a call that was a task with others, how often that ran; it does not wait for room."""
        try:
            return function.calls.submit_all(waiter, calls, shared, ran)
        except ArgumentTooLarge as error:
            raise _too_large(function, error) from None

    def close(self) -> None:
        """Cancels what is open and ends the connection."""
        if self.is_closed:
            return
        self.is_closed = True
        if self.native.close(settle) and self._thread is not threading.current_thread():
            self._thread.join(timeout=5)


def _too_large(function: Function, error: ArgumentTooLarge) -> ArgumentTooLarge:
    return ArgumentTooLarge(
        f"the arguments of {_pickling.place_of(function.function)} are too large: {error} (submitted at {_pickling.caller()}). "
        f"Share what many calls need (client.share), or pass a path"
    )


def environment_of(name: str) -> int:
    """The digest that workers must have."""
    if name == "any":
        return 0
    if name == "same":
        return _environment.digest()
    raise ValueError(f'environment {name!r}: "any" or "same"')
