"""What can go wrong with a call, as exceptions.

An exception that a function raises is raised by ``Future.result`` as it is, with the remote traceback as its cause. The
exceptions here are for everything else.
"""

from __future__ import annotations

__all__ = [
    "ArgumentTooLarge",
    "CannotPickle",
    "CannotUnpickle",
    "ClientClosed",
    "Mismatch",
    "MidflightError",
    "MissingModule",
    "NoPython",
    "NoWorker",
    "RemoteError",
    "ResultTooLarge",
    "TaskLost",
    "TaskTimeout",
    "WorkerDied",
]


class MidflightError(Exception):
    """The base of all these."""


class CannotPickle(MidflightError, TypeError):
    """A function, an argument or a result cannot be pickled. The message says which, and where in your code it is."""


class CannotUnpickle(MidflightError):
    """A call cannot be unpickled at the worker, or its result at the client."""


class MissingModule(CannotUnpickle, ModuleNotFoundError):
    """A function or an argument needs a module that the worker (or the client, for a result) does not have."""


class ArgumentTooLarge(MidflightError, ValueError):
    """The arguments of a call have more than 64 MiB. ``Client.share`` takes larger ones."""


class ResultTooLarge(MidflightError):
    """A result exceeds ``Client(result_max=...)``."""


class Mismatch(MidflightError):
    """The worker has another Python than the client, another environment, or another release of Midflight."""


class WorkerDied(MidflightError):
    """The worker died in the task, in each of its attempts. ``signal`` ended it; ``None`` if it has exited."""

    def __init__(self, message: str, signal: int | None = None) -> None:
        super().__init__(message)
        self.signal = signal

    def __reduce__(self) -> tuple[type[WorkerDied], tuple[str, int | None]]:
        return type(self), (str(self), self.signal)


class NoWorker(MidflightError):
    """The executor could not start a worker."""


class NoPython(MidflightError):
    """The executor runs no Python functions: start it with ``--python``."""


class TaskLost(MidflightError):
    """The function, arguments or result could not be transferred."""


class TaskTimeout(MidflightError, TimeoutError):
    """The call ran for longer than its timeout, in each of its attempts."""


class TooManyWaiting(MidflightError):
    """A call cannot wait for other calls, because its executor has as many waiting calls as it may."""


class ClientClosed(MidflightError):
    """The client was closed before the task had ended."""


class RemoteError(MidflightError):
    """A function has raised an exception that cannot be pickled or unpickled, or that would end the caller, such as ``SystemExit``.
    ``kind`` is its type's name."""

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind

    def __reduce__(self) -> tuple[type[RemoteError], tuple[str, str]]:
        return type(self), (str(self), self.kind)
