"""Pickles of functions, calls and results, and the entries that hold them: docs/internals/python.md has the layout."""

from __future__ import annotations

import contextlib
import functools
import io
import pickle
import struct
import sys
import threading
import traceback
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import cloudpickle

from midflight.errors import CannotPickle, CannotUnpickle, MidflightError, MissingModule, RemoteError, ResultTooLarge

#: A pickle, or a pickle with its buffers.
Pickled = bytes | tuple[bytes, list[memoryview]]

#: Status, pickle and buffers of a call or a result.
Entry = tuple[int, Any, list[memoryview]]

#: Shorter buffers are part of the pickle.
BUFFER_MIN = 4096
#: Where a buffer begins: at a multiple of so many bytes.
ALIGNMENT = 64
#: Entries of up to so many bytes together are copied into one piece, which is quicker sent than several.
JOINED_MAX = 64 << 10
#: Bytes of the largest result that can be transferred.
RESULT_MAX = (1 << 32) - 1

VALUE, RAISED, BROKEN = 0, 1, 2

#: Values of these types have no buffers, and need nothing of ``__main__``: pickle does all.
_PLAIN = frozenset((bool, bytes, float, int, str, type(None)))

_COUNT = struct.Struct("<I")
_ENTRY = struct.Struct("<B3xIQ")
_LENGTH = struct.Struct("<Q")
#: The count, and the only entry.
_ONE = struct.Struct("<IB3xIQ")
#: What a result begins with, and a result with its only entry.
_RESULT = struct.Struct("<cQ")
_RESULT_OF_ONE = struct.Struct("<cQIB3xIQ")


def dumps(value: object) -> Pickled:
    """Pickles a value: fast where pickle can, and by value what is defined in ``__main__`` or by ``register_pickle_by_value``."""
    if type(value) in _PLAIN:
        return pickle.dumps(value, 5)
    buffers: list[memoryview] = []

    def keep(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < BUFFER_MIN:
            return True
        buffers.append(raw)
        return False

    # What pickle cannot do, cloudpickle may; its error is told.
    with contextlib.suppress(Exception):
        if not cloudpickle.list_registry_pickle_by_value():
            data = _dumps_by_reference(value, buffers, keep)
            return (data, buffers) if buffers else data
    buffers.clear()
    data = cloudpickle.dumps(value, 5, buffer_callback=keep)
    return (data, buffers) if buffers else data


class _OfMain(Exception):
    """Something is defined in ``__main__``, which is another module at the worker."""


class _ByReference(pickle.Pickler):
    """Pickle, which looks at each object that is more than a number, a string or a container of Python."""

    def reducer_override(self, value: object) -> Any:
        if getattr(value, "__module__", None) == "__main__":
            raise _OfMain
        return NotImplemented


#: Whether the last pickles had the name of ``__main__``, as a module or as a text: scikit-learn sends filters of warnings with each call,
#: and one of them has it.
_has_main = False


def _dumps_by_reference(value: object, buffers: list[memoryview], keep: Callable[[pickle.PickleBuffer], bool]) -> bytes:
    """Pickles a value in which nothing is of ``__main__``; raises if something is."""
    global _has_main
    if not _has_main:
        data = pickle.dumps(value, 5, buffer_callback=keep)
        if b"__main__" not in data:
            return data
        buffers.clear()
        _has_main = True
    out = io.BytesIO()
    _ByReference(out, 5, buffer_callback=keep).dump(value)
    data = out.getvalue()
    _has_main = b"__main__" in data
    return data


def join(entry: Pickled) -> list[bytes | memoryview]:
    """One entry, as the pieces of a shared argument."""
    return _joined(_COUNT.pack(1), [(VALUE, entry)])


def _joined(head: bytes, entries: Sequence[tuple[int, Pickled]]) -> list[bytes | memoryview]:
    """The entries after this head, in pieces; each buffer begins at a multiple of the alignment."""
    plain = [entry for _, entry in entries if isinstance(entry, bytes)]
    if len(plain) == len(entries) and sum(map(len, plain)) <= JOINED_MAX:
        return [b"".join((head, _heads(entries), *plain))]
    pieces: list[bytes | memoryview] = [head + _heads(entries)]
    at = len(pieces[0])
    for _, entry in entries:
        data, buffers = (entry, ()) if isinstance(entry, bytes) else entry
        pieces.append(data)
        at += len(data)
        for buffer in buffers:
            padding = -at % ALIGNMENT
            if padding:
                pieces.append(bytes(padding))
            pieces.append(buffer)
            at += padding + buffer.nbytes
    return pieces


def _heads(entries: Iterable[tuple[int, Pickled]]) -> bytes:
    heads = bytearray()
    for status, entry in entries:
        data, buffers = (entry, ()) if isinstance(entry, bytes) else entry
        heads += _ENTRY.pack(status, len(buffers), len(data))
        for buffer in buffers:
            heads += _LENGTH.pack(buffer.nbytes)
    return bytes(heads)


def result(nanoseconds: int, entries: Sequence[tuple[int, Pickled]]) -> list[bytes | memoryview]:
    """A result, in pieces."""
    status, data = entries[0]
    if len(entries) == 1 and isinstance(data, bytes) and len(data) <= JOINED_MAX:
        return [_RESULT_OF_ONE.pack(b"R", nanoseconds, 1, status, 0, len(data)) + data]
    pieces = _joined(_RESULT.pack(b"R", nanoseconds) + _COUNT.pack(len(entries)), entries)
    length = sum(memoryview(piece).nbytes for piece in pieces)
    if length > RESULT_MAX:
        of = f"the results of {len(entries)} calls have" if len(entries) > 1 else "the result has"
        why = dump_broken("large", f"{of} {length} bytes, which exceed {RESULT_MAX}: return less, or files", "")
        return _joined(pieces[0][:13], [(BROKEN, why)] * len(entries))  # type: ignore[arg-type]
    return pieces


def parse_result(value: Any) -> tuple[int, list[Entry]]:
    """Nanoseconds, and the entries."""
    if len(value) >= 29 and isinstance(value, bytes):
        _, nanoseconds, count, status, buffers, length = _RESULT_OF_ONE.unpack_from(value)
        if count == 1 and buffers == 0 and length <= JOINED_MAX:
            return nanoseconds, [(status, value[29 : 29 + length], [])]
    _, nanoseconds = _RESULT.unpack_from(value)
    return nanoseconds, parse_entries(memoryview(value), 9)


def parse_entries(view: memoryview, at: int = 0, *, is_shared: bool = False) -> list[Entry]:
    """The entries from `at` on; buffers are aligned to the beginning of `view`. What is made of a buffer may be changed, unless it is of
    a shared argument."""
    count, status, buffers, length = _ONE.unpack_from(view, at)
    if count == 1 and buffers == 0:
        return [(status, view[at + 20 : at + 20 + length], [])]
    at += 4
    plain = list(_ENTRY.iter_unpack(view[at : at + 16 * count]))
    if not any(buffers for _, buffers, _ in plain):
        return _parse_plain(view, at + 16 * count, plain)
    heads = []
    for _ in range(count):
        status, buffers, length = _ENTRY.unpack_from(view, at)
        at += 16
        lengths = struct.unpack_from(f"<{buffers}Q", view, at) if buffers else ()
        at += 8 * buffers
        heads.append((status, length, lengths))
    if view.readonly and not is_shared:
        view = memoryview(bytearray(view))
    found = []
    for status, length, lengths in heads:
        data = view[at : at + length]
        at += length
        parts = []
        for part in lengths:
            at += -at % ALIGNMENT
            parts.append(view[at : at + part])
            at += part
        found.append((status, data, parts))
    if at > len(view):
        raise ValueError(f"{len(view)} bytes, where {at} are announced")
    return found


def _parse_plain(view: memoryview, at: int, heads: list[tuple[int, int, int]]) -> list[Entry]:
    """Entries without buffers, the first of which begins at `at`."""
    found: list[Entry] = []
    for status, _, length in heads:
        found.append((status, view[at : at + length], []))
        at += length
    if at > len(view):
        raise ValueError(f"{len(view)} bytes, where {at} are announced")
    return found


def place_of(function: object) -> str:
    """Where a function is defined: ``name (file:line)``."""
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    inner = getattr(inner, "__func__", inner)
    inner = getattr(inner, "__wrapped__", inner)
    name = getattr(function, "__qualname__", None) or getattr(inner, "__qualname__", None) or repr(function)
    code = getattr(inner, "__code__", None)
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code else str(name)


def caller() -> str:
    """The line of the user's code that called into this package."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame and frame.f_globals.get("__name__", "").split(".")[0] in ("midflight", "concurrent", "joblib"):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "?"


def dump_function(function: Callable[..., Any]) -> Pickled:
    """By value where it is of ``__main__``, local or a lambda; by its name where it is of a module."""
    try:
        return dumps(function)
    except Exception as error:
        raise CannotPickle(
            f"the function {place_of(function)} cannot be pickled: {one_line(error)}{_culprit(function)} "
            f"(submitted at {caller()})"
        ) from error


def dump_call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pickled:
    try:
        if not kwargs and _PLAIN.issuperset(map(type, args)):
            return pickle.dumps((args, kwargs), 5)
        return dumps((args, kwargs))
    except Exception as error:
        named = [(f"argument {place}", value) for place, value in enumerate(args)]
        named += [(f"argument {name!r}", value) for name, value in kwargs.items()]
        which = next((name for name, value in named if not _can_pickle(value)), "an argument")
        raise CannotPickle(
            f"{which} of {place_of(function)} cannot be pickled: {one_line(error)} (submitted at {caller()})"
        ) from error


def _can_pickle(value: object) -> bool:
    try:
        cloudpickle.dumps(value, 5)
    except Exception:
        return False
    return True


def _culprit(function: Any) -> str:
    """Which of the variables that a function uses cannot be pickled."""
    inner = getattr(function, "__func__", function)
    code = getattr(inner, "__code__", None)
    if code is None:
        return ""
    used: dict[str, object] = {}
    for name, cell in zip(code.co_freevars, inner.__closure__ or ()):
        try:
            used[name] = cell.cell_contents
        except ValueError:
            continue  # not assigned yet
    for name in code.co_names:
        if name in inner.__globals__:
            used[name] = inner.__globals__[name]
    names = [name for name, value in used.items() if not _can_pickle(value)]
    if not names:
        return ""
    return f"; it uses {', '.join(names)}: make {'it' if len(names) == 1 else 'them'} in the function, or give as argument"


def _text(error: BaseException) -> str:
    """What an exception says, also where that raises another one."""
    try:
        return str(error)
    except Exception:
        return "<its text cannot be had>"


def one_line(error: BaseException) -> str:
    """Its type and text."""
    text = " ".join(_text(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class _RemoteTraceback(Exception):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return self.text


def dump_exception(error: BaseException, skip: int = 1) -> Pickled:
    """An exception with the text of its traceback, without the worker's own frames."""
    trace = error.__traceback__
    for _ in range(skip):
        if trace and trace.tb_next:
            trace = trace.tb_next
    text = "".join(traceback.format_exception(type(error), error, trace))
    plain = error.with_traceback(None)
    data: bytes
    cause, context = plain.__cause__, plain.__context__
    plain.__cause__ = plain.__context__ = None  # the text has them
    try:
        data = cloudpickle.dumps((plain, text), 5)
        pickle.loads(data)
    except Exception:
        kind = type(error).__qualname__
        said = _text(error)
        remote = RemoteError(f"{kind}: {said}" if said else kind, kind)
        data = pickle.dumps((remote, text), 5)
    finally:
        plain.__cause__, plain.__context__ = cause, context
    return data


def dump_broken(kind: str, message: str, text: str, module: str | None = None) -> bytes:
    """An error of the worker: which exception it is at the client, the text of its traceback, and the module that is missing."""
    return pickle.dumps((kind, message, text, module), 5)


def load_exception(data: Any, buffers: Sequence[Any]) -> BaseException:
    try:
        error, text = pickle.loads(data, buffers=buffers)
        if not isinstance(error, BaseException):
            raise TypeError(f"it is now a {type(error).__qualname__}")
    except Exception as failure:
        error = RemoteError(f"the function raised an exception that cannot be unpickled here: {one_line(failure)}")
        text = "the remote traceback is lost with it"
    error.__cause__ = _RemoteTraceback(f'\n"""\n{text}"""')
    return error  # type: ignore[no-any-return]


def load_broken(data: Any) -> BaseException:
    kind, message, text, module = pickle.loads(data)
    error: BaseException
    if kind == "module":
        error = MissingModule(message, name=module)
    else:
        error = {"pickle": CannotPickle, "unpickle": CannotUnpickle, "large": ResultTooLarge}.get(kind, MidflightError)(message)
    if text:
        error.__cause__ = _RemoteTraceback(f'\n"""\n{text}"""')
    return error


def load_value(data: Any, buffers: Sequence[Any]) -> Any:
    try:
        return pickle.loads(data, buffers=buffers)
    except ModuleNotFoundError as error:
        raise MissingModule(
            f"the result needs the module {error.name}, which is not here: install it at the client, or return other types",
            name=error.name,
        ) from error
    except Exception as error:
        raise CannotUnpickle(f"the result cannot be unpickled at the client: {one_line(error)}") from error


# Shared arguments: while a call is pickled they are collected, and stand in it by their place.

_collecting = threading.local()
_here: list[Any] = []


@contextlib.contextmanager
def collecting(into: list[Any]) -> Iterator[None]:
    """Shared arguments that this thread pickles in it are appended there."""
    before = getattr(_collecting, "blobs", None)  # a `__reduce__` may submit something itself
    _collecting.blobs = into
    try:
        yield
    finally:
        _collecting.blobs = before


def place_of_shared(blob: Any) -> int:
    blobs = getattr(_collecting, "blobs", None)
    if blobs is None:
        raise CannotPickle("a shared argument can only be pickled as argument of a call, or in the function that is called")
    for place, other in enumerate(blobs):
        if other is blob:
            return place
    blobs.append(blob)
    return len(blobs) - 1


def provide(shared: list[Any]) -> None:
    """At the worker: the shared arguments of the call that is unpickled next."""
    global _here
    _here = shared


def shared(place: int) -> Any:
    """What stands in a pickle for a shared argument."""
    return _here[place]()
