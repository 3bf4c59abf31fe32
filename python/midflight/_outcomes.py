"""How a task has ended, from what the native module says of it."""

from __future__ import annotations

from typing import Any

from midflight import _pickling
from midflight.errors import (
    ClientClosed,
    MidflightError,
    Mismatch,
    NoPython,
    NoWorker,
    ResultTooLarge,
    TaskLost,
    TaskTimeout,
    WorkerDied,
)

#: Kinds of ends, of the native module.
VALUE, FAILED, UNKNOWN, TIMED_OUT, LOST, TOO_LARGE, CANCELLED, CLOSED, NOT_SUBMITTED = range(9)

#: Of a call that was one task with others: an entry of the task's result; or it is to be submitted again, alone.
ENTRY, ALONE = 9, 10

#: The first byte of a result of calls.
_RESULT = ord("R")

#: The codes of an executor's own results.
_MISMATCH, _DIED, _NO_WORKER, _NOT_FETCHED = 1, 2, 3, 4

#: Whether a call has returned, and its value or its exception.
Ended = tuple[bool, Any]


def failure(kind: int, value: Any) -> BaseException | None:
    """Why a whole task has no results; ``None`` if it has. Not for one that was cancelled."""
    if kind == VALUE:
        return None if value[0] == _RESULT else _of_executor(bytes(value))
    if kind == UNKNOWN:
        return NoPython(
            "the executor that got the task runs no Python functions: start executors with --python, or give those that have it "
            "a resource and ask for it"
        )
    if kind == TIMED_OUT:
        return TaskTimeout("no attempt has ended within the task's timeout")
    if kind == TOO_LARGE:
        return ResultTooLarge(f"{value.split(':')[0]}: return less, or connect with Client(result_max=...)")
    if kind == CLOSED:
        return ClientClosed("the client was closed before the task has ended")
    if kind == LOST:
        return TaskLost(value)
    return MidflightError(value)


def split(kind: int, value: Any, calls: int) -> tuple[int, list[tuple[int, Any]]]:
    """The ends of calls that were one task, and its nanoseconds."""
    why = None if kind == CANCELLED else failure(kind, value)
    if why is None and kind == VALUE:
        nanoseconds, entries = _pickling.parse_result(value)
        return nanoseconds, [(ENTRY, entry) for entry in entries]
    if isinstance(why, (WorkerDied, TaskTimeout)):
        return 0, [(ALONE, None)] * calls  # one of them has ended the worker
    return 0, [(kind, value)] * calls


def _of_executor(value: bytes) -> BaseException:
    code, signal, _attempt = value[1], value[2], value[3]
    text = value[4:].decode(errors="replace")
    if code == _MISMATCH:
        return Mismatch(text)
    if code == _DIED:
        return WorkerDied(text, signal or None)
    if code == _NO_WORKER:
        return NoWorker(text)
    return TaskLost(text)


def ended(entry: tuple[int, Any, Any]) -> Ended:
    """One call."""
    status, data, buffers = entry
    if status == _pickling.VALUE:
        try:
            return True, _pickling.load_value(data, buffers)
        except Exception as error:
            return False, error
    if status == _pickling.RAISED:
        return False, _pickling.load_exception(data, buffers)
    return False, _pickling.load_broken(data)
