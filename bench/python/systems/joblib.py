"""joblib's loky: processes of this machine. joblib batches short calls by their measured time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import joblib
import loky

from systems import WORKERS, System


class Joblib(System):
    version = f"{joblib.__version__}, loky {loky.__version__}"
    interface = "submit of loky's executor in a loop; joblib.Parallel, which puts calls together"

    def __enter__(self) -> Joblib:
        self._executor = loky.get_reusable_executor(max_workers=WORKERS)
        return self

    def __exit__(self, *_: object) -> None:
        self._executor.shutdown(wait=True, kill_workers=True)
        # joblib keeps its own executor for its next user.
        joblib.externals.loky.get_reusable_executor().shutdown(wait=True, kill_workers=True)

    def one(self, function: Callable[[Any], Any], item: Any) -> Any:
        return self._executor.submit(function, item).result()

    def submit(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        futures = [self._executor.submit(function, item) for item in items]
        return [future.result() for future in futures]

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        parallel = joblib.Parallel(n_jobs=WORKERS, backend="loky")
        return parallel(map(joblib.delayed(function), items))

    def joblib(self) -> contextlib.AbstractContextManager[Any]:
        return joblib.parallel_config("loky", n_jobs=WORKERS)
