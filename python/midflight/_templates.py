"""Templates: functions without captured values. If a loop makes functions of one ``lambda``, each call carries these values instead."""

from __future__ import annotations

import pickle
from types import CellType, FunctionType
from typing import Any

from midflight import _pickling, _shared

#: Bytes of captured values. With more, each function is sent once to each executor.
_CAPTURED_MAX = 2048


class Template:
    """The common part of all functions of one code."""

    def __init__(self, function: FunctionType) -> None:
        cells = tuple(CellType() for _ in function.__closure__ or ())
        self.__wrapped__ = _make(function, None, cells)

    def bind(self, captured: bytes) -> FunctionType:
        """The function, at a worker."""
        cells, defaults, by_name = pickle.loads(captured)
        made = _make(self.__wrapped__, defaults, tuple(map(CellType, cells)))
        made.__kwdefaults__ = by_name
        return made


def dump_captured(function: FunctionType) -> bytes | None:
    """The captured values, which differ between functions of the same code; ``None`` if they should be a part of the function's own
    pickle."""
    shared: list[Any] = []
    try:
        cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
        with _shared.collecting(shared):
            pickled = _pickling.dumps((cells, function.__defaults__, function.__kwdefaults__))
    except Exception:  # not assigned yet, or not picklable: the error of pickling the function is clearer
        return None
    return pickled if isinstance(pickled, bytes) and len(pickled) <= _CAPTURED_MAX and not shared else None


def _make(function: FunctionType, defaults: tuple[Any, ...] | None, cells: tuple[CellType, ...]) -> FunctionType:
    made = FunctionType(function.__code__, function.__globals__, function.__name__, defaults, cells)
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    return made
