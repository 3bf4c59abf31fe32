"""Dask: a scheduler and workers of distributed, each a process with one thread.

Dask keeps what it sends for up to 10 ms to send it with more: a task right after another waits for that, so one alone is taken at rest.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import dask
import distributed
import joblib

from systems import WORKERS, System

SETTINGS = {
    # Tasks go to the workers at once, even if none has a free thread.
    "distributed.scheduler.worker-saturation": float("inf"),
    # Short tasks are not worth stealing; the measurement needs no profiles.
    "distributed.scheduler.work-stealing": False,
    "distributed.worker.profile.enabled": False,
}


class Dask(System):
    version = distributed.__version__
    interface = "client.submit in a loop, and client.map, both with pure=False, then client.gather; joblib's backend dask"
    # Longer than the longest interval at which Dask sends.
    rest_s = 0.015

    def __enter__(self) -> Dask:
        dask.config.set(SETTINGS)
        self._cluster = distributed.LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address="127.0.0.1:0",
        )
        self._client = distributed.Client(self._cluster)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._client.close()
        finally:
            self._cluster.close()

    def one(self, function: Callable[[Any], Any], item: Any) -> Any:
        return self._client.submit(function, item, pure=False).result()

    def submit(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        return self._client.gather([self._client.submit(function, item, pure=False) for item in items])

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        return self._client.gather(self._client.map(function, items, pure=False))

    def joblib(self) -> contextlib.AbstractContextManager[Any]:
        return joblib.parallel_config("dask", n_jobs=WORKERS)
