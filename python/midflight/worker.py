"""A worker: calls functions for an executor, which has started it as ``python -m midflight.worker``.

The executor is at the other end of the standard input, a socket; ``docs/internals/python.md`` has the frames. What tasks print goes
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
import time
import traceback
from collections.abc import Callable
from types import CoroutineType
from typing import Any

from midflight import _entries, _environment, _exceptions, _pickling, _shared
from midflight._entries import BROKEN, RAISED, VALUE, Pickled
from midflight._modules import Modules
from midflight._templates import Template

_HEADER = struct.Struct("<BBHIQ")
_HELLO, _READY, _DONE, _DIGEST, _BEGUN, _STALE, _LOADED = 1, 2, 3, 4, 5, 9, 10
_BLOB, _MEMORY, _DROP, _CALL, _ENVIRONMENT = 1, 2, 3, 4, 5
#: Flags of a call.
_SAYS_WHEN, _WAS_STOPPED = 1, 2
_FRAMES = 3
#: What is read at once: a short call comes in one piece.
_CHUNK = 64 << 10


class Cancelled(BaseException):
    """Raised in a task that is cancelled. A ``finally`` of the task is run; who catches it goes on for a second at most."""


class _Connection:
    """Frames from and to the executor."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._left = b""

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
        # Calls come after the numbers of function and shared arguments: their buffers are to be aligned.
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
        """A descriptor, mapped."""
        self.send(_READY, 0, 0, [])
        _, descriptors, _, _ = socket.recv_fds(self._socket, 1, 1)
        try:
            # Linux before 6.7 maps sealed memory only privately; nobody writes, so all share its pages even so.
            return mmap.mmap(descriptors[0], 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
        finally:
            os.close(descriptors[0])

    def send(self, kind: int, flag: int, number: int, pieces: list[bytes | memoryview]) -> None:
        length = sum(map(_length, pieces))
        header = _HEADER.pack(kind, flag, 0, number, length)
        if len(pieces) == 1 and length < _CHUNK:
            self._socket.sendall(header + pieces[0])
            return
        self._socket.sendall(header)
        for piece in pieces:
            self._socket.sendall(piece)


class _Blob:
    """A function or a shared argument; unpickled when it is needed first."""

    def __init__(self, content: Any, tell: Callable[[int], None] | None = None) -> None:
        self._content = memoryview(content).toreadonly()
        #: Gets the bytes that it takes here once it is unpickled, beside what all workers share.
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
                # The process may grow by modules instead, or not at all, as memory that others have left is used again.
                grown = _own_memory() - before if len(sys.modules) == modules else 0
                self._tell(max(grown, len(data)))
        return self._value


class _Worker:
    def __init__(self, connection: _Connection) -> None:
        self._connection = connection
        self._blobs: dict[int, _Blob] = {}
        self._may_interrupt = False
        #: Of the task that is to say when its first call begins.
        self._says_when: int | None = None
        self._process = os.getpid()
        self._modules = Modules()
        #: Of the call.
        self._number = 0
        signal.signal(signal.SIGINT, self._interrupt)

    def _interrupt(self, _signal: int, _frame: object) -> None:
        if self._may_interrupt:
            self._may_interrupt = False
            raise Cancelled

    def _forget_interrupts(self) -> None:
        """The task before was told to stop, and may have kept SIGINT from coming: it must not come to the next one."""
        signal.signal(signal.SIGINT, self._interrupt)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])

    def serve(self) -> None:
        while self._take(self._connection.receive()):
            pass

    def _take(self, frame: tuple[int, int, int, int, memoryview] | None) -> bool:
        """Does what a frame says. Nothing refers to it after that: it may be large, and the next one late."""
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
        elif kind == _ENVIRONMENT:
            self._connection.send(_DIGEST, 0, 0, [_environment.digest().to_bytes(8, "little")])
        else:
            raise RuntimeError(f"a frame of kind {kind}: use one release of Midflight for executor and worker")
        return True

    def _tell_loaded(self, blob: int, length: int) -> None:
        self._connection.send(_LOADED, 0, self._number, [struct.pack("<IQ", blob, length)])

    def _run(self, count: int, number: int, body: memoryview) -> None:
        self._number = number
        function, *shared = struct.unpack_from(f"<{1 + count}I", body)
        if not self._blobs[function].is_loaded and self._modules.have_changed():
            self._connection.send(_STALE, 0, number, [])
            return
        calls = _entries.parse_entries(body[4 * (1 + count) :])
        began, started = time.time(), time.perf_counter_ns()
        results: list[tuple[int, Pickled]] = []
        try:
            self._call_all(self._blobs[function], [self._blobs[place] for place in shared], calls, results)
        except Cancelled:
            cancelled = RAISED, _exceptions.dump_exception(RuntimeError("cancelled"))
            results += [cancelled] * (len(calls) - len(results))
        except Exception as error:  # whatever objects of the user do
            results += [_broken(error)] * (len(calls) - len(results))
        finally:
            _shared.provide([])
            self._modules.note(began)
        took = time.perf_counter_ns() - started
        has_raised = any(status != VALUE for status, _ in results)
        self._connection.send(_DONE, has_raised, number, _entries.result(took, results))

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
        for _, data, buffers in calls:
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
                import asyncio  # it takes a while, and most tasks need none

                value = asyncio.run(value)
            self._may_interrupt = False
        except Cancelled:
            raise
        except BaseException as error:  # SystemExit, too: a task does not end the worker like this
            self._may_interrupt = False
            return RAISED, _exceptions.dump_exception(error)
        finally:
            if os.getpid() != self._process:
                os._exit(0)  # a child that the task has forked, and that has returned from it: the task is its parent's
        try:
            return VALUE, _pickling.dumps(value)
        except Exception as error:
            message = (
                f"the result of {_pickling.place_of(function)}, a {type(value).__qualname__}, cannot be pickled: "
                f"{_exceptions.one_line(error)}"
            )
            return BROKEN, _exceptions.dump_broken("pickle", message, "")


def _own_memory() -> int:
    """Bytes that this process shares with no other."""
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
    """Why something of the client cannot be unpickled here."""
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
    # Tasks that read the standard input, and programs that they start, are to find nothing there.
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
    # Functions that refer to this module must find the one that has a name.
    from midflight import worker

    worker.main()
