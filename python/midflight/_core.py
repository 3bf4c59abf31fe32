"""The common part of a client: its native part, its functions, and the delivery of ends of tasks."""

from __future__ import annotations

import contextlib
import hashlib
import struct
import sys
import threading
import time
import warnings
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, Generic, NamedTuple, Protocol, TypeGuard, TypeVar

from midflight import _entries, _environment, _native, _outcomes, _pickling, _shared
from midflight._dependencies import Dependencies, reloads
from midflight._templates import Template, dump_captured
from midflight.errors import ArgumentTooLarge, CannotPickle, ClientClosed

K = TypeVar("K")
V = TypeVar("V")

#: Functions that a client keeps for further calls.
_FUNCTIONS_MAX = 256
#: From this pickled size on, a function should not be pickled at each call.
_WARN_ABOVE = 1 << 20
#: Bytes of a function that may be sent without its captured values.
_TEMPLATE_MAX = 64 << 10
#: Interval at which a waiting thread checks the clock.
_LOOK_EVERY = 0.1
#: A call that has waited this long for other calls lends its slot.
_LEND_AFTER = 0.005
#: Seconds: some hundred years.
_TIMEOUT_MAX = 4e9
#: Default retries after the death of a worker and after a timeout.
_RETRIES = 2
_RETRIES_MAX = 99
_PYTHON = (sys.version_info[0], sys.version_info[1])


class Waiter(Protocol):
    """Waits for a task. Each method does nothing if the task has ended before."""

    _function: Function

    def _end(self, kind: int, value: Any) -> None:
        """The task has ended with this outcome."""

    def _fail(self, error: BaseException) -> None:
        """Its end cannot be delivered."""


class CallWaiter(Waiter, Protocol):
    """Waits for a call that may be in a task with others."""

    def _settle(self, outcome: _outcomes.Outcome) -> None:
        """The call has ended with this outcome."""

    def _try_alone(self, ran: int) -> None:
        """The call must be submitted again, alone. It has run `ran` times together with others."""


class Lender(Protocol):
    """What a worker does for the call that it runs."""

    def may_lend(self) -> bool:
        """Whether this thread runs a call that has not lent its slot."""

    def lend(self) -> None:
        """The call waits for others: it lends its slot."""

    def take_back(self) -> None:
        """The call continues."""

    def new_client(self) -> None:
        """This process has another client."""


#: Set in a worker. Other processes have no slot to lend.
lender: Lender | None = None

#: The clients of this process.
_cores: weakref.WeakSet[Core] = weakref.WeakSet()
#: Whether there has ever been one: in a worker most often not, and it asks for each task.
_had_clients = False


def has_clients() -> bool:
    """Whether there are clients in this process."""
    return _had_clients and bool(_cores)


def open_calls() -> int:
    """Number of open calls of all clients of this process."""
    return sum(core.native.open() for core in list(_cores) if not core.is_closed)


@contextlib.contextmanager
def lend_slot() -> Iterator[None]:
    """In a call: lends its slot while it waits for other calls in a way that Midflight cannot see, such as a command that it has started.
    Otherwise those calls may wait for that slot for ever. Elsewhere it does nothing.

    >>> def nested(items):
    ...     with midflight.lend_slot():
    ...         subprocess.run(["midflight", "map", "gzip", *items])
    """
    here = lender
    if here is None or not here.may_lend():
        yield
        return
    here.lend()
    try:
        yield
    finally:
        here.take_back()


def settle(waiters: tuple[Any, ...], kind: int, value: Any) -> None:
    """Delivers the end of a task to the waiters of its calls. Called by the native module. If a signal handler raises an exception here,
    the native module keeps the end and calls again."""
    try:
        if kind == _outcomes.PART:
            _give_back(waiters, value)
        elif len(waiters) == 1:
            waiters[0]._end(kind, value)
        else:
            _settle_joined(waiters, kind, value)
    except BaseException as error:
        if threading.current_thread() is threading.main_thread():
            raise  # handlers run in this thread only
        for waiter in waiters:
            with contextlib.suppress(Exception):
                waiter._fail(error)


def _give_back(waiters: tuple[Any, ...], part: bytes) -> None:
    """Handles calls that a running task returned."""
    try:
        first, nanoseconds, outcomes = _outcomes.read_part(part)
    except (IndexError, ValueError, struct.error):
        return  # of no worker; the final result counts
    if outcomes:
        waiters[0]._function.note(len(outcomes), nanoseconds)
    if len(waiters) == 1:
        waiters[0]._give_back(first, outcomes)
        return
    for waiter in waiters[first:]:
        waiter._try_alone(0)
    for waiter, outcome in zip(waiters, outcomes):
        if outcome is not None:
            waiter._settle(outcome)


def _settle_joined(waiters: tuple[CallWaiter, ...], kind: int, value: Any) -> None:
    """Ends calls that were submitted one by one and joined to one task."""
    if kind == _outcomes.CANCELLED:
        for waiter in waiters:
            waiter._end(kind, value)
        return
    nanoseconds, outcomes = _outcomes.read(kind, value, len(waiters))
    if isinstance(outcomes, _outcomes.Apart):
        for waiter in waiters:
            waiter._try_alone(1)
        return
    if nanoseconds:
        waiters[0]._function.note(len(outcomes) - outcomes.count(None), nanoseconds)
    for waiter, outcome in zip(waiters, outcomes):
        if outcome is None:
            waiter._try_alone(0)
        else:
            waiter._settle(outcome)


class Settings(NamedTuple):
    """Options of tasks."""

    priority: int = 4
    resources: int = 0
    timeout: float | None = None
    #: ``None``: the default, which depends on what ended the attempt.
    retries: int | None = None

    @classmethod
    def of(cls, priority: int, resources: int, timeout: float | None, retries: int | None) -> Settings:
        """Checks the options."""
        if not 1 <= priority <= 8:
            raise ValueError(f"priority {priority}: 1 (the highest) to 8")
        if retries is not None and not 0 <= retries <= _RETRIES_MAX:
            raise ValueError(f"retries {retries}: 0 to {_RETRIES_MAX}")
        if timeout is not None and not 0 < timeout <= _TIMEOUT_MAX:
            raise ValueError(f"timeout {timeout}: seconds above 0, at most {_TIMEOUT_MAX:g}, or None for ever")
        return cls(priority, resources, timeout, retries)

    @property
    def after_exceptions(self) -> int:
        """How often a call runs again after an exception."""
        return self.retries or 0

    @property
    def attempts(self) -> int:
        """How often a call runs at most if its workers die or it exceeds its timeout."""
        return 1 + (_RETRIES if self.retries is None else self.retries)

    @property
    def may_join(self) -> bool:
        """Whether several calls may be one task. If that ends its worker, each is retried alone; `retries` would apply to all of them."""
        return self.retries is None


class Function:
    """A user's function with its settings."""

    __slots__ = ("calls", "captured", "function", "length", "may_join", "pace", "runs_max", "shared")

    def __init__(
        self,
        function: Callable[..., Any],
        calls: _native.Calls,
        shared: list[_native.Blob],
        settings: Settings,
        pace: Pace,
        length: int,
        captured: bytes | None = None,
    ) -> None:
        self.function = function
        #: Size of its pickle in bytes.
        self.length = length
        #: Captured values that its calls carry, if it is sent as a template.
        self.captured = captured
        self.calls = calls
        #: The function's own shared arguments.
        self.shared = shared
        self.pace = pace
        #: Whether several calls may be one task.
        self.may_join = settings.may_join
        #: Most runs of a task of several calls.
        self.runs_max = settings.after_exceptions + 1
        if self.may_join:
            calls.set_size(pace.size)

    def note(self, calls: int, nanoseconds: int) -> None:
        """Takes the times of a task."""
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
        #: Nanoseconds per call, of the last tasks.
        self._last: deque[float] = deque(maxlen=5)
        self.size = 1
        #: Whether tasks may soon be larger: then few should be submitted at the current size.
        self.grows = True

    def measured(self, calls: int, nanoseconds: int) -> None:
        """Takes the time of a task. The median counts, so that a task that lost its core for a while does not."""
        self._last.append(max(nanoseconds / calls, 1.0))
        of_one = sorted(self._last)[len(self._last) // 2]
        wanted = max(1, int(self.TARGET_NS / of_one))
        self.size = min(wanted, max(self.size, 2 * calls), self.SIZE_MAX)
        self.grows = self.size < min(wanted, self.SIZE_MAX)


class Pickled(NamedTuple):
    """A function as it was last pickled."""

    function: Callable[..., Any]
    #: ``None``: it must be pickled at each call.
    dependencies: Dependencies | None
    known: Function
    #: For other functions of the same code.
    template: Pickled | None = None

    def is_of(self, function: FunctionType) -> bool:
        """Whether this is the template of the function."""
        own = self.function
        is_of = isinstance(own, FunctionType) and own.__code__ is function.__code__ and own.__globals__ is function.__globals__
        return is_of and self.dependencies is not None and self.dependencies.are_unchanged(own)


class _Recent(OrderedDict[K, V], Generic[K, V]):
    """An LRU cache that threads use without a lock."""

    def find(self, key: K) -> V | None:
        try:
            value = self[key]
            self.move_to_end(key)
        except KeyError:
            return None
        return value

    def keep(self, key: K, value: V) -> None:
        self[key] = value
        if len(self) > _FUNCTIONS_MAX:
            with contextlib.suppress(KeyError):  # another thread was faster
                self.popitem(last=False)


class Core:
    """One connection."""

    def __init__(self, native: _native.Client, environment: int) -> None:
        self.native = native
        self._environment = environment
        #: By the identity of functions; see `_identity`.
        self._functions: _Recent[tuple[int, Settings], Pickled] = _Recent()
        #: By the digest of their pickles: a function that is pickled again mostly has the same one.
        self._by_digest: _Recent[tuple[bytes, Settings], Function] = _Recent()
        self._blobs: _Recent[bytes, tuple[_native.Blob, list[_native.Blob]]] = _Recent()
        self._lock = threading.Lock()
        #: Whether calls may have shared arguments.
        self.has_shared = False
        self.is_closed = False
        global _had_clients
        _had_clients = True
        _cores.add(self)
        if lender is not None:
            lender.new_client()
        self._thread = threading.Thread(target=self._run, name="midflight", daemon=True)
        self._thread.start()

    # Waiting.

    def _run(self) -> None:
        goes_on = True
        while goes_on:
            try:
                goes_on = self.native.wait_always(settle)
            except MemoryError:
                time.sleep(_LOOK_EVERY)  # until other threads have freed some

    def wait_until(self, done: Callable[[], Any], timeout: float | None = None) -> bool:
        """Waits until `done`, and settles the tasks that end; ``False`` after the timeout."""
        if lender is not None and lender.may_lend():
            first = _LEND_AFTER if timeout is None else min(timeout, _LEND_AFTER)
            if self._wait_until(done, first):
                return True
            with lend_slot():
                return self._wait_until(done, None if timeout is None else timeout - first)
        return self._wait_until(done, timeout)

    def _wait_until(self, done: Callable[[], Any], timeout: float | None) -> bool:
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
        """The function with these settings, in its current state: pickled again unless no part of its pickle can have changed."""
        key = (_identity(function), settings)
        before = self._functions.find(key)
        if before and before.dependencies and before.dependencies.are_unchanged(function):
            return before.known
        if before and _is_made_again(function) and (made := self._by_template(function, settings, key, before)):
            return made
        if not callable(function):
            raise TypeError(f"{function!r} cannot be called: give a function, then its arguments")
        self.native.check()
        dependencies = Dependencies.of(function)
        known = self._pickle(function, settings, before)
        if before and known.length > _WARN_ABOVE:
            warnings.warn(
                f"{_pickling.place_of(function)} has {known.length >> 20} MiB, and is pickled each time that it is submitted: "
                f"share what it has (client.share), and give it as argument",
                stacklevel=3,
            )
        self._functions.keep(key, Pickled(function, dependencies, known))  # it holds the function, so that its id stays unique
        return known

    def _by_template(
        self, function: FunctionType, settings: Settings, key: tuple[int, Settings], before: Pickled
    ) -> Function | None:
        """Uses the pickle of an earlier function of the same code, if the captured values differ little: the calls carry these."""
        has_captured = function.__closure__ or function.__defaults__ or function.__kwdefaults__
        if not has_captured or function.__dict__ or before.known.length > _TEMPLATE_MAX:
            return None
        captured = dump_captured(function)
        if captured is None:
            return None
        template = before.template
        if not template or not template.is_of(function):
            made = Template(function)
            dependencies = Dependencies.of(made.__wrapped__)
            if not dependencies:
                return None  # it would be pickled for each call
            try:
                template = Pickled(made.__wrapped__, dependencies, self._pickle(made, settings, before))
            except CannotPickle:
                return None  # the function's own error is better
            self._functions.keep(key, before._replace(template=template))
        known = template.known
        return Function(function, known.calls, known.shared, settings, known.pace, known.length, captured)

    def _pickle(self, function: Any, settings: Settings, before: Pickled | None) -> Function:
        blobs: list[_native.Blob] = []
        with _shared.collecting(blobs):
            pickled = _pickling.dump_function(function)
        pieces = _entries.join(pickled)
        hashed = hashlib.blake2b(digest_size=16)
        for piece in pieces:
            hashed.update(piece)
        for blob in blobs:
            hashed.update(id(blob).to_bytes(8, "little"))
        # Workers check for changed modules when they get a function that they do not have.
        hashed.update(reloads.count.to_bytes(8, "little"))
        digest = hashed.digest()
        known = self._by_digest.find((digest, settings))
        if known is None:
            blob = self._blob(digest, pieces, blobs)
            calls = self._calls([blob, *blobs], settings)
            length = sum(memoryview(piece).nbytes for piece in pieces)
            known = Function(function, calls, blobs, settings, before.known.pace if before else Pace(), length)
            self._by_digest.keep((digest, settings), known)
        return known

    def _blob(self, digest: bytes, pieces: list[bytes | memoryview], blobs: list[_native.Blob]) -> _native.Blob:
        with self._lock:
            found = self._blobs.find(digest)
            if found is None:
                # Ids of shared arguments are part of the digest: they must stay unique.
                found = self.share(pieces), blobs
                self._blobs.keep(digest, found)
            return found[0]

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
            retries=settings.after_exceptions,
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
        """Pickles a call; also returns its shared arguments."""
        if not self.has_shared:
            return _pickling.dump_call(function.function, args, kwargs, function.captured), []
        blobs = list(function.shared)
        with _shared.collecting(blobs):
            pickled = _pickling.dump_call(function.function, args, kwargs, function.captured)
        return pickled, blobs[len(function.shared) :]

    def submit_one(
        self, waiter: CallWaiter, function: Function, call: _entries.Pickled, shared: list[_native.Blob]
    ) -> int:
        """Submits a call, which may be joined with others if it has no buffers and no shared arguments. Waits for room."""
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
        *,
        gives_back: bool = False,
        again: bool = False,
    ) -> int:
        """Submits a task of one or more calls. `ran`: for a single call, how often it has run in a task with others. `gives_back`: the task
        returns the calls that it has not begun, if it takes long. `again`: does not wait for room."""
        try:
            return function.calls.submit_all(waiter, calls, shared, ran, gives_back, again)
        except ArgumentTooLarge as error:
            raise _too_large(function, error) from None

    def close(self) -> None:
        """Cancels open calls and closes the connection."""
        if self.is_closed:
            return
        self.is_closed = True
        if self.native.close(settle) and self._thread is not threading.current_thread():
            self._thread.join(timeout=5)


def _is_made_again(function: object) -> TypeGuard[FunctionType]:
    """Whether a ``lambda``, or a ``def`` within a function, has made it, and so may make others."""
    return type(function) is FunctionType and "<" in function.__qualname__


def _identity(function: Callable[..., Any]) -> int:
    """Equal for all functions of one ``lambda`` or inner ``def``."""
    return id(function.__code__ if _is_made_again(function) else function)


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
