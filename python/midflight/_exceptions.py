"""Exceptions on their way from a worker to the client, with the text of their traceback."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Sequence
from typing import Any

import cloudpickle

from midflight.errors import CannotPickle, CannotUnpickle, MidflightError, MissingModule, RemoteError, ResultTooLarge


def _text(error: BaseException) -> str:
    """The text of an exception, even if its ``__str__`` raises another one."""
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


def dump_exception(error: BaseException, skip: int = 1) -> bytes:
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
    """An error of the worker: the exception to raise at the client, the text of its traceback, and the missing module."""
    return pickle.dumps((kind, message, text, module), 5)


def load_exception(data: Any, buffers: Sequence[Any]) -> BaseException:
    try:
        error, text = pickle.loads(data, buffers=buffers)
        if not isinstance(error, BaseException):
            raise TypeError(f"it is now a {type(error).__qualname__}")
        if not isinstance(error, Exception):
            # Otherwise SystemExit would end the caller's program, and asyncio's CancelledError the caller's task.
            error = RemoteError(f"the function raised {one_line(error)}", type(error).__qualname__)
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
