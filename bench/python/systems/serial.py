"""No system: calls run here, one after another, which gives the time of a task."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import joblib

from systems import System


class Serial(System):
    version = platform.python_version()
    interface = "a loop in one process"

    def __enter__(self) -> Serial:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def one(self, function: Callable[[Any], Any], item: Any) -> Any:
        return function(item)

    def submit(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        return [function(item) for item in items]

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        return self.submit(function, items)

    def joblib(self) -> contextlib.AbstractContextManager[Any]:
        return joblib.parallel_config("sequential", n_jobs=1)
