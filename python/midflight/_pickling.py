"""Pickles of functions, calls and values."""

from __future__ import annotations

import contextlib
import functools
import io
import pickle
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import cloudpickle

from midflight._entries import Pickled
from midflight._exceptions import one_line
from midflight.errors import CannotPickle, CannotUnpickle, MissingModule

#: Shorter buffers are part of the pickle.
BUFFER_MIN = 4096

#: Values of these types have no buffers and do not refer to ``__main__``: pickle is enough.
_PLAIN = frozenset((bool, bytes, float, int, str, type(None)))


def dumps(value: object) -> Pickled:
    """Pickles a value: fast if pickle can; by value if it is defined in ``__main__`` or registered by ``register_pickle_by_value``."""
    if type(value) in _PLAIN:
        return pickle.dumps(value, 5)
    buffers: list[memoryview] = []

    def keep(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < BUFFER_MIN:
            return True
        buffers.append(raw)
        return False

    # If pickle fails, cloudpickle may succeed; otherwise its error is raised.
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
    """A pickler that checks each object that is more than a number, a string or a container of Python."""

    def reducer_override(self, value: object) -> Any:
        if getattr(value, "__module__", None) == "__main__":
            raise _OfMain
        return NotImplemented


#: Whether the last pickles contained the name ``__main__``, as a module or as text: scikit-learn sends a filter of warnings with it with
#: each call.
_has_main = False


def _dumps_by_reference(value: object, buffers: list[memoryview], keep: Callable[[pickle.PickleBuffer], bool]) -> bytes:
    """Pickles a value that does not refer to ``__main__``; raises an exception if it does."""
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


def dump_function(function: object) -> Pickled:
    """By value if it is of ``__main__``, local or a lambda; by name if it is of a module."""
    try:
        return dumps(function)
    except Exception as error:
        raise CannotPickle(
            f"the function {place_of(function)} cannot be pickled: {one_line(error)}{_culprit(function)} "
            f"(submitted at {caller()})"
        ) from error


def dump_call(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], captured: bytes | None = None
) -> Pickled:
    """`captured`: the captured values of a template's function; the first argument of the pickle."""
    all_args = args if captured is None else (captured, *args)
    try:
        if not kwargs and _PLAIN.issuperset(map(type, args)):
            return pickle.dumps((all_args, kwargs), 5)
        return dumps((all_args, kwargs))
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
