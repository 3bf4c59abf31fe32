"""The systems under measurement, each in its own file behind one interface."""

from __future__ import annotations

import abc
import contextlib
import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

#: Worker processes of each system.
WORKERS = 2

_CLASSES = {
    "midflight": "Midflight",
    "joblib": "Joblib",
    "dask": "Dask",
    "ray": "Ray",
    "serial": "Serial",
}

NAMES = list(_CLASSES)


class System(abc.ABC):
    """A system with `WORKERS` workers, for the duration of `with`; `one`, `submit` and `map` return results in order."""

    #: Version and interface, for the table.
    version: str
    interface: str
    #: Whether its map cuts a list into a few chunks. Programs with many short calls are then also measured with a task per call.
    cuts_lists = False
    #: Seconds of idle time before each single task, if the system delays tasks to send several at once.
    rest_s = 0.0
    _has_task_each = False

    @abc.abstractmethod
    def __enter__(self) -> System:
        """Starts it."""

    @abc.abstractmethod
    def __exit__(self, *_: object) -> None:
        """Ends all its processes."""

    @abc.abstractmethod
    def one(self, function: Callable[[Any], Any], item: Any) -> Any:
        """One call; waits for its result."""

    @abc.abstractmethod
    def submit(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Submits each call by itself, in a loop; then waits for all results."""

    @abc.abstractmethod
    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """The system's own way for many calls of one function."""

    def run(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """Runs a program with many calls in the way that is usual for this system."""
        return self.submit(function, items) if self._has_task_each else self.map(function, items)

    @contextlib.contextmanager
    def task_each(self) -> Iterator[None]:
        """A context in which each call of a program is a task."""
        self._has_task_each = True
        try:
            yield
        finally:
            self._has_task_each = False

    @abc.abstractmethod
    def joblib(self) -> contextlib.AbstractContextManager[Any]:
        """A context in which joblib's jobs run on this system."""


def load(name: str) -> System:
    """Loads a system; its modules are imported only now."""
    return getattr(importlib.import_module(f"systems.{name}"), _CLASSES[name])()
