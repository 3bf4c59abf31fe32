"""Shared arguments: collected while a call is pickled, and replaced by their index."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from midflight.errors import CannotPickle

_collecting = threading.local()
_here: list[Any] = []


@contextlib.contextmanager
def collecting(into: list[Any]) -> Iterator[None]:
    """Appends the shared arguments that this thread pickles in this context."""
    before = getattr(_collecting, "blobs", None)  # a `__reduce__` may submit something itself
    _collecting.blobs = into
    try:
        yield
    finally:
        _collecting.blobs = before


def index_of(blob: Any) -> int:
    blobs = getattr(_collecting, "blobs", None)
    if blobs is None:
        raise CannotPickle("a shared argument can only be pickled as argument of a call, or in the function that is called")
    for index, other in enumerate(blobs):
        if other is blob:
            return index
    blobs.append(blob)
    return len(blobs) - 1


def provide(shared: list[Any]) -> None:
    """At the worker: the shared arguments of the call that is unpickled next."""
    global _here
    _here = shared


def shared(index: int) -> Any:
    """Replaces a shared argument in a pickle."""
    return _here[index]()
