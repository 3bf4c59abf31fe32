"""Typical programs, each with long tasks (10 ms or more) and with short ones (1 ms or less)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from systems import System


@dataclasses.dataclass(frozen=True)
class Program:
    """A program with tasks of one length."""

    #: Used in the names of its results.
    name: str
    #: Number of its tasks.
    tasks: int
    #: Runs it with this number of tasks on a system; returns a value that must be the same on all systems.
    run: Callable[[System, int], object]
    #: Whether it has many short calls, which the system maps. Others are long, or joblib's.
    maps_short: bool = False


def programs(quick: bool) -> list[Program]:
    """All programs; with `quick` they have a quarter of the tasks."""
    from programs import grid, images, montecarlo

    long, short = (16, 500) if quick else (64, 2_000)
    return [
        Program("grid_long", long, grid.long),
        Program("grid_short", short // 2, grid.short),
        Program("images_long", long, images.long),
        Program("images_short", short, images.short, maps_short=True),
        Program("montecarlo_long", long, montecarlo.long),
        Program("montecarlo_short", 2 * short, montecarlo.short, maps_short=True),
    ]
