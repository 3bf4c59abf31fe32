"""Very many short tasks, on a cluster that schedules them in microseconds.

>>> import midflight
>>> with midflight.Client() as client:
...     client.submit(pow, 2, 10).result()
1024

The guide is ``docs/python.md``.
"""

from midflight._client import Client, Shared, Submitter
from midflight._core import lend_slot
from midflight._executor import Executor
from midflight._futures import Future, as_completed, gather
from midflight._map import Results
from midflight.errors import (
    ArgumentTooLarge,
    CannotPickle,
    CannotUnpickle,
    ClientClosed,
    MidflightError,
    Mismatch,
    MissingModule,
    NoPython,
    NoWorker,
    RemoteError,
    ResultTooLarge,
    TaskLost,
    TaskTimeout,
    TooManyWaiting,
    WorkerDied,
)

__all__ = [
    "ArgumentTooLarge",
    "CannotPickle",
    "CannotUnpickle",
    "Client",
    "ClientClosed",
    "Executor",
    "Future",
    "MidflightError",
    "Mismatch",
    "MissingModule",
    "NoPython",
    "NoWorker",
    "RemoteError",
    "ResultTooLarge",
    "Results",
    "Shared",
    "Submitter",
    "TaskLost",
    "TaskTimeout",
    "TooManyWaiting",
    "WorkerDied",
    "as_completed",
    "gather",
    "lend_slot",
]
