"""What all parts of a client share: its native part, and who waits for which task."""

from __future__ import annotations

import hashlib
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, Protocol

from midflight import _environment, _native, _outcomes, _pickling
from midflight.errors import ArgumentTooLarge, ClientClosed

#: Functions that a client keeps for further calls.
_FUNCTIONS_MAX = 256
#: A thread that waits looks at the clock this often.
_LOOK_EVERY = 0.1
_PYTHON = (sys.version_info[0], sys.version_info[1])


class Task(Protocol):
    """Who waits for a task."""

    _function: Function

    def _end(self, kind: int, value: Any) -> None: ...


class Settings:
    """What tasks ask for."""

    __slots__ = ("attempts", "priority", "resources", "retries", "timeout")

    def __init__(
        self,
        priority: int = 4,
        resources: str | int = 0,
        timeout: float | None = None,
        retries: int = 0,
        attempts: int = 3,
    ) -> None:
        if not 1 <= priority <= 8:
            raise ValueError(f"priority {priority}: 1 (the highest) to 8")
        if not 0 <= retries <= 100 or not 1 <= attempts <= 100:
            raise ValueError("retries: 0 to 100; attempts: 1 to 100")
        if timeout is not None and timeout <= 0:
            raise ValueError(f"timeout {timeout}: seconds above 0, or None for ever")
        self.priority = priority
        self.resources = resources if isinstance(resources, int) else _native.Client.resources(resources)
        self.timeout = timeout
        self.retries = retries
        self.attempts = attempts


class Function:
    """A function of the user, as it is called with some settings."""

    __slots__ = ("_may_join", "calls", "function", "pace", "shared")

    def __init__(
        self, function: Callable[..., Any], calls: _native.Calls, shared: list[_native.Blob], may_join: bool
    ) -> None:
        self.function = function
        self.calls = calls
        #: What the function itself has of shared arguments.
        self.shared = shared
        self.pace = Pace()
        #: Whether calls that are submitted one by one may be sent as one task.
        self._may_join = may_join

    def note(self, calls: int, nanoseconds: int) -> None:
        """Learns from a task."""
        before = self.pace.size
        self.pace.measured(calls, nanoseconds)
        if self._may_join and self.pace.size != before:
            self.calls.set_size(self.pace.size)


class Pace:
    """How many calls of a function make a task: they should take half a millisecond."""

    __slots__ = ("_last", "grows", "size")

    TARGET_NS = 500_000
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
        self._pending: dict[int, Task] = {}
        self._early: dict[int, tuple[int, Any]] = {}
        #: Blobs by the digest of their content.
        self._blobs: OrderedDict[bytes, tuple[_native.Blob, list[_native.Blob]]] = OrderedDict()
        self._lock = threading.Lock()
        #: Whether calls may have shared arguments.
        self.has_shared = False
        self.is_closed = False
        self._thread = threading.Thread(target=self._run, name="midflight", daemon=True)
        self._thread.start()

    # Tasks.

    def expect(self, token: int, task: Task) -> None:
        """The task with this token is `task`."""
        self._pending[token] = task
        if self._early:
            early = self._early.pop(token, None)
            if early is not None and self._pending.pop(token, None) is not None:
                task._end(*early)

    def _settle(self, ended: list[tuple[int, int, Any, int]]) -> None:
        for token, kind, value, calls in ended:
            if calls == 1:
                self._settle_one(token, kind, value)
                continue
            nanoseconds, ends = _outcomes.split(kind, value, calls)
            first = self._pending.get(token)
            if nanoseconds and first is not None:
                first._function.note(calls, nanoseconds)
            for place, end in enumerate(ends):
                self._settle_one(token + place, *end)
        self.native.settle()

    def _settle_one(self, token: int, kind: int, value: Any) -> None:
        task = self._pending.pop(token, None)
        if task is None:
            # The thread that submits has not yet said whose it is. Either it finds this, or this finds what it says.
            self._early[token] = kind, value
            task = self._pending.pop(token, None)
            if task is None:
                return
            self._early.pop(token, None)
        task._end(kind, value)

    def _run(self) -> None:
        while (ended := self.native.wait_always()) is not None:
            self._settle(ended)
            del ended  # or the results would stay until the next ones come

    def wait_until(self, done: Callable[[], Any], timeout: float | None = None) -> bool:
        """Waits until `done`, and takes what ends meanwhile; ``False`` when the time is over."""
        deadline = None if timeout is None else time.monotonic() + timeout
        native = self.native
        while not done():
            settled = native.settled()
            if done():
                break
            left = _LOOK_EVERY if deadline is None else deadline - time.monotonic()
            if left <= 0:
                return False
            if ended := native.wait(settled, min(left, _LOOK_EVERY)):
                self._settle(ended)
            elif self.is_closed and not self._thread.is_alive() and not done():
                return False
        return True

    # Functions.

    def function(self, function: Callable[..., Any], settings: Settings) -> Function:
        """Pickles a function, unless its bytes are known."""
        if not callable(function):
            raise TypeError(f"{function!r} cannot be called: give a function, then its arguments")
        blobs: list[_native.Blob] = []
        _pickling.collect(blobs)
        try:
            pickled = _pickling.dump_function(function)
        finally:
            _pickling.collect(None)
        pieces = _pickling.join(pickled)
        digest = hashlib.blake2b(digest_size=16)
        for piece in pieces:
            digest.update(piece)
        for blob in blobs:
            digest.update(id(blob).to_bytes(8, "little"))
        known = self._known(digest.digest(), pieces, blobs)
        return Function(function, self._calls([known, *blobs], settings), blobs, may_join=not settings.retries)

    def _known(self, digest: bytes, pieces: list[bytes | memoryview], blobs: list[_native.Blob]) -> _native.Blob:
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
        if self.is_closed:
            raise ClientClosed("the client is closed: connect a new one")
        try:
            return self.native.share(pieces)
        except RuntimeError as error:
            raise ArgumentTooLarge(f"{error}: connect with Client(memory_max=...), or pass a path") from error

    def dump(
        self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[_pickling.Pickled, list[_native.Blob]]:
        """A call, and its shared arguments."""
        if not self.has_shared:
            return _pickling.dump_call(function.function, args, kwargs), []
        blobs = list(function.shared)
        _pickling.collect(blobs)
        try:
            pickled = _pickling.dump_call(function.function, args, kwargs)
        finally:
            _pickling.collect(None)
        return pickled, blobs[len(function.shared) :]

    def submit_one(self, function: Function, call: _pickling.Pickled, shared: list[_native.Blob]) -> int:
        """Submits a call, which may be a task with others."""
        if shared or not isinstance(call, bytes) or self.is_closed:
            return self.submit(function, [call], shared)
        try:
            return function.calls.submit(call)
        except (RuntimeError, ValueError):
            return self.submit(function, [call], shared)  # says what is wrong

    def submit(self, function: Function, calls: list[_pickling.Pickled], shared: list[_native.Blob]) -> int:
        """Submits a task of one or more calls."""
        try:
            return function.calls.submit_all(calls, shared)
        except ValueError as error:
            if "exceed" not in str(error):
                raise
            raise ArgumentTooLarge(
                f"the arguments of {_pickling.place_of(function.function)} are too large: {error} (submitted at "
                f"{_pickling.caller()}). Share what many calls need (client.share), or pass a path"
            ) from None
        except RuntimeError as error:
            if self.is_closed:
                raise ClientClosed("the client is closed: connect a new one") from error
            raise

    def close(self) -> None:
        """Cancels what is open and ends the connection."""
        if self.is_closed:
            return
        self.is_closed = True
        self.native.close()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=5)


def environment_of(name: str) -> int:
    """The digest that workers must have."""
    if name == "any":
        return 0
    if name == "same":
        return _environment.digest()
    raise ValueError(f'environment {name!r}: "any" or "same"')
