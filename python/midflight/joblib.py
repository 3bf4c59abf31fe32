"""A backend of joblib, so that scikit-learn and others use the cluster. Importing this module registers it.

>>> import joblib, midflight.joblib
>>> with joblib.parallel_config("midflight"):
...     joblib.Parallel(n_jobs=2)(joblib.delayed(pow)(2, n) for n in range(4))
[1, 2, 4, 8]

Options of ``parallel_config``: `switch` and the others of :class:`midflight.Client`, `workers` (what ``n_jobs=-1`` means; default: the
cores of this machine), and the options of :meth:`midflight.Client.options`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from joblib.parallel import AutoBatchingMixin, ParallelBackendBase, register_parallel_backend

from midflight._client import Client, Submitter
from midflight._futures import Future

__all__ = ["MidflightBackend"]

#: Arguments of `Client.options`; the others are for `Client`.
_OF_TASKS = ("priority", "resources", "timeout", "retries")


def _call(batch: Callable[[], Any]) -> Any:
    return batch()


class MidflightBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]
    """Runs the batches of joblib as tasks. The client lives as long as the backend."""

    supports_retrieve_callback = True
    default_n_jobs = -1

    def __init__(self, nesting_level: int | None = None, workers: int | None = None, **options: Any) -> None:
        super().__init__(nesting_level=nesting_level)
        self._workers = workers
        self._of_tasks = {name: options.pop(name) for name in _OF_TASKS if name in options}
        self._of_client = options
        self._client: Client | None = None
        self._submits: Submitter | None = None
        self._futures: set[Future[Any]] = set()

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """How many batches run at a time."""
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        if n_jobs is None:
            n_jobs = self.default_n_jobs
        workers = self._workers or os.cpu_count() or 1
        return n_jobs if n_jobs > 0 else max(workers + 1 + n_jobs, 1)

    def configure(self, n_jobs: int = 1, parallel: Any = None, **_options: Any) -> int:
        """Connects, the first time."""
        self.parallel = parallel
        if self._client is None:
            self._client = Client(**self._of_client)
            self._submits = self._client.options(**self._of_tasks)
        return self.effective_n_jobs(n_jobs)

    def submit(self, func: Callable[[], Any], callback: Callable[[Any], Any] | None = None) -> Future[Any]:
        """A batch."""
        assert self._submits is not None, "joblib configures a backend before it submits"
        future = self._submits.submit(_call, func)
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: Future[Any]) -> Any:
        """The result of a batch."""
        return out.result(0)

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Cancels open batches."""
        for future in list(self._futures):
            future.cancel()
        if not ensure_ready:
            self.terminate()

    def terminate(self) -> None:
        """The end of a call of Parallel."""
        self.reset_batch_stats()

    def __getstate__(self) -> dict[str, Any]:
        """A backend that is pickled with a batch connects again."""
        return {**self.__dict__, "_client": None, "_submits": None, "_futures": set(), "parallel": None}


register_parallel_backend("midflight", MidflightBackend)
