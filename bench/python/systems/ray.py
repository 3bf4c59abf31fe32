"""Ray: tasks; and its pool of `multiprocessing`, whose `map` cuts a whole list into a few chunks for actors."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from typing import Any

# Before Ray is imported. Disables usage statistics and events of tasks.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_task_events_report_interval_ms"] = "0"
# The same priority as other systems' workers: by default Ray's have a lower one (niceness 15).
os.environ["RAY_worker_niceness"] = "0"
# Ray's switch for machines without a network: it then listens on loopback only.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"

import joblib
import ray
import ray.util.joblib
import ray.util.multiprocessing

from systems import WORKERS, System

#: Number of results fetched together, as in Ray's own `ray microbenchmark`.
CHUNK = 1_000


class Ray(System):
    cuts_lists = True
    version = ray.__version__
    interface = "ray.get([f.remote(x) ...]), 1,000 at a time; the map of ray.util.multiprocessing.Pool; joblib's backend ray"

    def __enter__(self) -> Ray:
        ray.init(
            num_cpus=WORKERS,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            _temp_dir=tempfile.gettempdir(),
        )
        ray.util.joblib.register_ray()
        self._remote = functools.cache(lambda function: ray.remote(function).remote)
        self._pool: Any = None
        return self

    def __exit__(self, *_: object) -> None:
        ray.shutdown()

    def one(self, function: Callable[[Any], Any], item: Any) -> Any:
        return ray.get(self._remote(function)(item))

    def submit(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        remote, open_, results = self._remote(function), [], []
        for item in items:
            open_.append(remote(item))
            if len(open_) == CHUNK:
                results += ray.get(open_)
                open_ = []
        return results + ray.get(open_)

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        if self._pool is None:
            # Its actors take no core from tasks.
            self._pool = ray.util.multiprocessing.Pool(WORKERS, ray_remote_args={"num_cpus": 0})
        return self._pool.map(function, items)

    def joblib(self) -> contextlib.AbstractContextManager[Any]:
        return joblib.parallel_config("ray", n_jobs=WORKERS)
