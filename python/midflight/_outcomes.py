"""Outcomes of calls, from what the native module reports of their task."""

from __future__ import annotations

from concurrent.futures import CancelledError
from typing import Any, NamedTuple

from midflight import _entries, _exceptions, _pickling
from midflight.errors import (
    ArgumentTooLarge,
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

#: Kinds of ends, as in the native module.
VALUE, FAILED, UNKNOWN, LOST, TOO_LARGE, CANCELLED, CLOSED, NOT_SUBMITTED, NO_ROOM, PART = range(10)

#: The first byte of a result of calls, and of the executor's own result.
_RESULT, _REFUSAL = ord("R"), ord("E")

#: The codes of an executor's own results.
_MISMATCH, _DIED, _NO_WORKER, _NOT_FETCHED, _TIMED_OUT = 1, 2, 3, 4, 5

#: Ends of a task of several calls; a call that runs alone may end differently.
_PASSING = (WorkerDied, TaskTimeout, NoWorker, TaskLost, ResultTooLarge)

#: Whether a call has returned, and its value or its exception.
Outcome = tuple[bool, Any]


class Apart(NamedTuple):
    """Each call of the task must be retried alone."""

    #: How often the task has run; ``None``: as often as its options allow.
    ran: int | None


def read(kind: int, value: Any, calls: int) -> tuple[int, list[Outcome | None] | Apart]:
    """The nanoseconds that a task of this number of calls took, if it reports them, and the outcome of each; ``None``: it has not begun. A
    malformed result is an outcome, too."""
    if kind == VALUE:
        try:
            first = value[0]
            if first == _RESULT:
                nanoseconds, entries = _entries.parse_result(value)
                if len(entries) != calls:
                    raise ValueError(f"{len(entries)} results of {calls} calls")
                return nanoseconds, [outcome(entry) for entry in entries]
            if first != _REFUSAL:
                raise ValueError(f"its first byte is {first}")
            why = _of_executor(bytes(value))
        except Exception as error:
            why = MidflightError(
                f"the executor's answer cannot be read ({_exceptions.one_line(error)}): use one release of Midflight on all machines"
            )
            why.__cause__ = error
    else:
        why = _failure(kind, value)
    if calls > 1 and isinstance(why, _PASSING):
        return 0, Apart(max(value[3], 1) if kind == VALUE else None)
    return 0, [(False, why)] * calls


def read_part(value: bytes) -> tuple[int, int, list[Outcome | None]]:
    """The report of a running task: the first call that it has returned; the nanoseconds and the outcomes of those that have ended, if it
    reports them."""
    first = int.from_bytes(value[:4], "little")
    if len(value) == 4:
        return first, 0, []
    nanoseconds, entries = _entries.parse_result(value[4:])
    return first, nanoseconds, [outcome(entry) for entry in entries]


def _failure(kind: int, value: str) -> BaseException:
    """Why a task has no result."""
    if kind == UNKNOWN:
        return NoPython(
            "the executor that got the task runs no Python functions: start executors with --python, or give those that have it "
            "a resource and ask for it"
        )
    if kind == TOO_LARGE:
        return ResultTooLarge(f"{value.split(':')[0]}: return less, or connect with Client(result_max=...)")
    if kind == CANCELLED:
        return CancelledError()
    if kind == CLOSED:
        return ClientClosed("the client was closed before the task has ended")
    if kind == LOST:
        return TaskLost(value)
    if kind == NO_ROOM:
        return ArgumentTooLarge(f"{value}: connect with Client(memory_max=...), or pass a path")
    return MidflightError(value)


def _of_executor(value: bytes) -> BaseException:
    code, signal = value[1], value[2]
    text = value[4:].decode(errors="replace")
    if code == _MISMATCH:
        return Mismatch(text)
    if code == _DIED:
        return WorkerDied(text, signal or None)
    if code == _NO_WORKER:
        return NoWorker(text)
    if code == _NOT_FETCHED:
        return TaskLost(text)
    if code == _TIMED_OUT:
        return TaskTimeout(text)
    return MidflightError(f"an error of the executor that this release does not know ({code}): {text}")


def outcome(entry: _entries.Entry) -> Outcome | None:
    """The outcome of one call; ``None``: it has not begun."""
    status, data, buffers = entry
    if status == _entries.NOT_BEGUN:
        return None
    try:
        if status == _entries.VALUE:
            return True, _pickling.load_value(data, buffers)
        if status == _entries.RAISED:
            return False, _exceptions.load_exception(data, buffers)
        return False, _exceptions.load_broken(data)
    except Exception as error:
        return False, error
