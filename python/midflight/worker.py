"""A worker: calls functions for an executor, which has started it as ``python -m midflight.worker``.

The executor is at the other end of the standard input, a socket; ``crates/host/src/tasks/python/frames.rs`` has the frames. What tasks print goes
to the executor's stderr.
"""

from __future__ import annotations

import faulthandler
import functools
import mmap
import os
import pickle
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import CoroutineType
from typing import Any

from midflight import _core, _entries, _environment, _exceptions, _pickling, _shared
from midflight._entries import BROKEN, GIVES_BACK, NOT_BEGUN, RAISED, VALUE, Pickled
from midflight._modules import Modules
from midflight._templates import Template
from midflight.errors import TooManyWaiting

_HEADER = struct.Struct("<BBHIQ")
_HELLO, _READY, _DONE, _DIGEST, _BEGUN, _WAITS, _GOES_ON, _NOT_BEGUN, _STALE, _LOADED = range(1, 11)
_BLOB, _MEMORY, _DROP, _CALL, _ENVIRONMENT, _LENT = 1, 2, 3, 4, 5, 6
#: Flags of a call.
_SAYS_WHEN, _WAS_STOPPED = 1, 2
#: Flag of `_WAITS`: the executor sends no answer.
_SILENT = 1
_FRAMES = 4
#: Seconds that the calls of one task may take before those that have not begun are returned: five times the target, so that a worker that
#: lost its core for a time slice or two keeps them.
_GIVE_BACK_AFTER = 0.02
#: Maximum bytes of results sent with the returned calls.
_TOLD_BYTES = 1 << 20
#: A call that has had open calls for this many seconds lends its slot, even if Midflight cannot see it wait.
_LEND_UNSEEN_AFTER = 1.0
#: Interval of this check.
_LOOK_EVERY = 0.1
#: Bytes of one read: a short call comes in one piece.
_CHUNK = 64 << 10


class Cancelled(BaseException):
    """Raised in a task that is cancelled. A ``finally`` of the task is run; a task that catches it continues for a second at most."""


class _Connection:
    """Frames from and to the executor."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._left = b""
        #: Held while a frame is sent.
        self.lock = threading.Lock()

    def receive(self) -> tuple[int, int, int, int, memoryview] | None:
        """Kind, flag, count, number and body of a frame; ``None`` at the end."""
        data = self._left
        while len(data) < 16:
            more = self._socket.recv(_CHUNK)
            if not more:
                return None
            data = data + more if data else more
        kind, flag, count, number, length = _HEADER.unpack_from(data)
        end = 16 + length
        if len(data) >= end:
            self._left = data[end:]
            return kind, flag, count, number, memoryview(data)[16:end]
        self._left = b""
        # Calls come after the numbers of function and shared arguments; this aligns their buffers.
        lead = -4 * (1 + count) % _entries.ALIGNMENT if kind == _CALL else 0
        view = memoryview(bytearray(lead + length))[lead:]
        have = len(data) - 16
        view[:have] = data[16:]
        while have < length:
            got = self._socket.recv_into(view[have:])
            if not got:
                return None
            have += got
        return kind, flag, count, number, view

    def receive_memory(self) -> mmap.mmap:
        """A descriptor, mapped into memory."""
        self.send(_READY, 0, 0, [])
        _, descriptors, _, _ = socket.recv_fds(self._socket, 1, 1)
        try:
            # Linux before 6.7 maps sealed memory only privately; as there are no writes, all mappings still share its pages.
            return mmap.mmap(descriptors[0], 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
        finally:
            os.close(descriptors[0])

    def send(self, kind: int, flag: int, number: int, pieces: list[bytes | memoryview]) -> None:
        with self.lock:
            self.send_locked(kind, flag, number, pieces)

    def send_locked(self, kind: int, flag: int, number: int, pieces: list[bytes | memoryview]) -> None:
        """Sends a frame; the caller holds the lock."""
        length = sum(map(_length, pieces))
        header = _HEADER.pack(kind, flag, 0, number, length)
        if len(pieces) == 1 and length < _CHUNK:
            self._socket.sendall(header + pieces[0])
            return
        self._socket.sendall(header)
        for piece in pieces:
            self._socket.sendall(piece)


class _Blob:
    """A function or a shared argument; unpickled on first use."""

    def __init__(self, content: Any, tell: Callable[[int], None] | None = None) -> None:
        self._content = memoryview(content).toreadonly()
        #: Called after unpickling with the bytes of this process's own memory, which workers do not share.
        self._tell = tell
        self.is_loaded = False
        self._value: Any = None

    def __call__(self) -> Any:
        if not self.is_loaded:
            ((_, data, buffers),) = _entries.parse_entries(self._content, is_shared=True)
            before, modules = _own_memory() if self._tell else 0, len(sys.modules)
            self._value = pickle.loads(data, buffers=buffers)
            self.is_loaded = True
            if self._tell:
                # Modules may account for the growth, or there is none because freed memory is reused.
                grown = _own_memory() - before if len(sys.modules) == modules else 0
                self._tell(max(grown, len(data)))
        return self._value


class _Worker:
    def __init__(self, connection: _Connection) -> None:
        self._connection = connection
        self._blobs: dict[int, _Blob] = {}
        self._may_interrupt = False
        #: The number of the task that must report when its first call begins.
        self._says_when: int | None = None
        self._process = os.getpid()
        self._modules = Modules()
        self._thread = threading.get_ident()
        #: The task that runs.
        self._number: int | None = None
        #: How many of its calls have begun, and of how many; 0: it may not return any.
        self._begun = self._count = 0
        self._count_since = 0.0
        self._results: list[tuple[int, Pickled]] = []
        #: Whether calls that have not begun are to be returned.
        self._stops = False
        #: The task waits for others. `_lent_by_watch`: it has not said so itself, and the executor may have refused.
        self._is_lent = self._lent_by_watch = False
        self._asks_again = 0.0
        #: Since when this process has had open calls of its own.
        self._open_since: float | None = None
        self._watch: threading.Thread | None = None
        self._is_watched = False
        self._wakes_watch = threading.Event()
        _core.lender = self
        signal.signal(signal.SIGINT, self._interrupt)

    def _interrupt(self, _signal: int, _frame: object) -> None:
        if self._may_interrupt:
            self._may_interrupt = False
            raise Cancelled

    def _forget_interrupts(self) -> None:
        """The previous task was told to stop, and may have blocked SIGINT: it must not reach the next one."""
        signal.signal(signal.SIGINT, self._interrupt)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])

    # Messages of the running task.

    def may_lend(self) -> bool:
        """Whether this thread runs a call that has not lent its slot, as far as it knows."""
        is_here = self._number is not None and threading.get_ident() == self._thread
        has_lent = self._is_lent and not self._lent_by_watch
        return is_here and not has_lent and os.getpid() == self._process

    def lend(self) -> None:
        """Lends the slot while the call waits. Raises an exception if the executor's limit of waiting calls is reached."""
        number = self._number
        assert number is not None, "may_lend was asked"
        may_interrupt, self._may_interrupt = self._may_interrupt, False  # otherwise half a frame could be sent or taken
        try:
            with self._connection.lock:
                self._is_lent, self._lent_by_watch = True, False
                self._connection.send_locked(_WAITS, 0, number, [])
            frame = self._connection.receive()
            if frame is None or frame[0] != _LENT:
                raise ConnectionResetError("the executor has ended")
            if not frame[1]:
                self._is_lent = False
                raise TooManyWaiting(
                    "this call waits for other calls, as do as many calls of its executor as may: raise `waiting` in [tasks.executors] of "
                    "the executor's configuration, nest calls less deeply, or submit all of them where they are not nested"
                )
        finally:
            self._may_interrupt = may_interrupt

    def take_back(self) -> None:
        """The call continues."""
        may_interrupt, self._may_interrupt = self._may_interrupt, False
        with self._connection.lock:
            if self._is_lent and self._number is not None:
                self._is_lent = self._lent_by_watch = False
                self._connection.send_locked(_GOES_ON, 0, self._number, [])
        self._may_interrupt = may_interrupt

    def new_client(self) -> None:
        """This process has another client."""
        if self._number is not None and os.getpid() == self._process:
            self._start_watch()

    def _start_watch(self) -> None:
        """Makes the watching thread check this task. The thread sleeps through many short tasks."""
        if self._is_watched:
            return
        self._is_watched = True
        if self._watch is None:
            self._watch = threading.Thread(target=self._watch_tasks, name="midflight-watch", daemon=True)
            self._watch.start()
        self._wakes_watch.set()

    def _watch_tasks(self) -> None:
        while True:
            self._wakes_watch.wait()
            self._wakes_watch.clear()
            # Nothing is due earlier. Most tasks have ended by then: without this, each of them would wake the thread.
            delay: float | None = _GIVE_BACK_AFTER
            while delay is not None:
                time.sleep(max(delay, 0.001))
                try:
                    delay = self._look()
                    if delay is None:
                        self._is_watched = False
                        delay = self._look()  # the next task may have arrived at that moment
                        self._is_watched = self._is_watched or delay is not None
                except OSError:
                    return  # the executor has ended

    def _look(self) -> float | None:
        """Seconds until the next check; ``None``: the thread waits for an event."""
        number, now = self._number, time.monotonic()
        if number is None:
            return None
        delays = []
        if self._count and not self._stops:
            left = self._count_since + _GIVE_BACK_AFTER - now
            if left > 0:
                delays.append(left)
            else:
                self._give_back(number)
        if _core.has_clients():
            self._look_at_clients(number, now)
            delays.append(_LOOK_EVERY)
        return min(delays, default=None)

    def _give_back(self, number: int) -> None:
        """Returns the calls that have not begun, and the outcomes of those that have ended."""
        with self._connection.lock:
            if self._number != number:
                return
            self._stops = True  # first: a call that begins before this is seen is counted in the next line
            begun, told = self._begun, self._told()
            if begun < self._count or told:
                self._connection.send_locked(_NOT_BEGUN, 0, number, [begun.to_bytes(4, "little") + told])

    def _told(self) -> bytes:
        """The outcomes of the calls that have ended, unless they are too large."""
        ended = self._results[:]
        if not ended:
            return b""
        took = int(1e9 * (time.monotonic() - self._count_since))
        pieces = _entries.result(took, ended)
        return b"".join(pieces) if sum(map(_length, pieces)) <= _TOLD_BYTES else b""

    def _look_at_clients(self, number: int, now: float) -> None:
        if not _core.open_calls():
            self._open_since = None
        elif self._open_since is None:
            self._open_since = now
        has_waited = self._open_since is not None and now - self._open_since >= _LEND_UNSEEN_AFTER
        with self._connection.lock:
            if self._number != number:
                return
            if has_waited and (not self._is_lent or self._lent_by_watch and now >= self._asks_again):
                self._is_lent = self._lent_by_watch = True
                self._asks_again = now + _LEND_UNSEEN_AFTER
                self._connection.send_locked(_WAITS, _SILENT, number, [])
            elif self._lent_by_watch and self._open_since is None:
                self._is_lent = self._lent_by_watch = False
                self._connection.send_locked(_GOES_ON, 0, number, [])

    # Tasks.

    def serve(self) -> None:
        while self._take(self._connection.receive()):
            pass

    def _take(self, frame: tuple[int, int, int, int, memoryview] | None) -> bool:
        """Handles a frame. Keeps no reference to it: it may be large, and the next one late."""
        if frame is None:
            return False
        kind, flag, count, number, body = frame
        if kind == _CALL:
            if flag & _WAS_STOPPED:
                self._forget_interrupts()
            self._says_when = number if flag & _SAYS_WHEN else None
            self._run(count, number, body)
        elif kind == _BLOB:
            self._blobs[number] = _Blob(body)
        elif kind == _MEMORY:
            self._blobs[number] = _Blob(self._connection.receive_memory(), functools.partial(self._tell_loaded, number))
        elif kind == _DROP:
            self._blobs.pop(number, None)
        elif kind == _LENT:
            pass  # an answer that came too late
        elif kind == _ENVIRONMENT:
            self._connection.send(_DIGEST, 0, 0, [_environment.digest().to_bytes(8, "little")])
        else:
            raise RuntimeError(f"a frame of kind {kind}: use one release of Midflight for executor and worker")
        return True

    def _tell_loaded(self, blob: int, length: int) -> None:
        assert self._number is not None, "blobs are unpickled in calls"
        self._connection.send(_LOADED, 0, self._number, [struct.pack("<IQ", blob, length)])

    def _run(self, count: int, number: int, body: memoryview) -> None:
        self._number = number
        function, *shared = struct.unpack_from(f"<{1 + count}I", body)
        if not self._blobs[function].is_loaded and self._modules.have_changed():
            self._number = None
            self._connection.send(_STALE, 0, number, [])
            return
        calls = _entries.parse_entries(body[4 * (1 + count) :])
        began, started = time.time(), time.perf_counter_ns()
        results: list[tuple[int, Pickled]] = []
        if _core.has_clients():
            self._start_watch()
        try:
            self._call_all(self._blobs[function], [self._blobs[place] for place in shared], calls, results)
        except Cancelled:
            cancelled = RAISED, _exceptions.dump_exception(RuntimeError("cancelled"))
            results += [cancelled] * (len(calls) - len(results))
        except Exception as error:  # objects of the user may raise anything
            results += [_broken(error)] * (len(calls) - len(results))
        finally:
            _shared.provide([])
            self._modules.note(began)
        took = time.perf_counter_ns() - started
        has_raised = any(status in (RAISED, BROKEN) for status, _ in results)
        pieces = _entries.result(took, results)
        with self._connection.lock:
            self._number = None
            self._count = self._begun = 0
            self._results = []
            self._stops = self._is_lent = self._lent_by_watch = False
            self._open_since = None
            self._connection.send_locked(_DONE, has_raised, number, pieces)

    def _call_all(
        self, function: _Blob, shared: list[_Blob], calls: list[_entries.Entry], results: list[tuple[int, Pickled]]
    ) -> None:
        """Appends the result of each call."""
        _shared.provide(shared)
        try:
            called = function()
        except Exception as error:
            broken = (BROKEN, _cannot_load("the function", error))
            results += [broken] * len(calls)
            return
        if len(calls) > 1 and calls[0][0] == GIVES_BACK:
            self._results = results
            self._begun, self._count_since = 1, time.monotonic()  # the first call begins in any case
            self._count = len(calls)
            self._start_watch()
        for place, (_, data, buffers) in enumerate(calls, 1):
            self._begun = place  # before it checks whether it may begin: so the thread that stops it knows whether it does
            if self._stops and place > 1:
                results += [(NOT_BEGUN, b"")] * (len(calls) - len(results))
                return
            results.append(self._call(called, data, buffers))

    def _call(self, function: Callable[..., Any], data: Any, buffers: Any) -> tuple[int, Pickled]:
        try:
            args, kwargs = pickle.loads(data, buffers=buffers)
            if isinstance(function, Template):
                captured, *args = args
                function = function.bind(captured)
        except Exception as error:
            return BROKEN, _cannot_load(f"an argument of {_pickling.place_of(function)}", error)
        try:
            if self._says_when is not None:
                self._connection.send(_BEGUN, 0, self._says_when, [])
                self._says_when = None
            self._may_interrupt = True
            value = function(*args, **kwargs)
            if type(value) is CoroutineType:
                import asyncio  # slow to import, and most tasks do not need it

                value = asyncio.run(value)
            self._may_interrupt = False
        except Cancelled:
            raise
        except BaseException as error:  # SystemExit, too: a task must not end the worker
            self._may_interrupt = False
            return RAISED, _exceptions.dump_exception(error)
        finally:
            if os.getpid() != self._process:
                os._exit(0)  # a child that the task has forked and that has returned from it: the task is its parent's
        try:
            return VALUE, _pickling.dumps(value)
        except Exception as error:
            message = (
                f"the result of {_pickling.place_of(function)}, a {type(value).__qualname__}, cannot be pickled: "
                f"{_exceptions.one_line(error)}"
            )
            return BROKEN, _exceptions.dump_broken("pickle", message, "")


def _own_memory() -> int:
    """Bytes of private memory of this process."""
    with open("/proc/self/statm") as file:
        _, resident, shared, *_ = map(int, file.read().split())
    return (resident - shared) * mmap.PAGESIZE


def _length(piece: bytes | memoryview) -> int:
    return len(piece) if isinstance(piece, bytes) else piece.nbytes


def _broken(error: Exception) -> tuple[int, Pickled]:
    """An error of the worker itself, in a call."""
    message = f"the worker cannot answer ({_environment.about()}): {_exceptions.one_line(error)}"
    return BROKEN, _exceptions.dump_broken("worker", message, traceback.format_exc())


def _cannot_load(what: str, error: Exception) -> bytes:
    """Why an object of the client cannot be unpickled here."""
    text = traceback.format_exc()
    if isinstance(error, ModuleNotFoundError):
        message = (
            f"{what} needs the module {error.name}, which the worker does not have ({_environment.about()}): install it there, "
            f"start the executor in the directory that has it, or see cloudpickle.register_pickle_by_value"
        )
        return _exceptions.dump_broken("module", message, text, error.name)
    message = f"{what} cannot be unpickled at the worker ({_environment.about()}): {_exceptions.one_line(error)}"
    return _exceptions.dump_broken("unpickle", message, text)


def main() -> None:
    faulthandler.enable()
    # Tasks that read the standard input, and programs that they start, find it empty.
    sock = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    connection = _Connection(sock)
    hello = bytes(sys.version_info[:2]) + _environment.about().encode()
    try:
        worker = _Worker(connection)  # from now on SIGINT is for tasks
        connection.send(_HELLO, 0, _FRAMES, [hello])
        worker.serve()
    except (BrokenPipeError, ConnectionResetError):
        pass  # the executor has ended


if __name__ == "__main__":
    # Functions that refer to this module must find the named one, not ``__main__``.
    from midflight import worker

    worker.main()
