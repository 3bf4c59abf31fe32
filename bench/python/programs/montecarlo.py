"""The price of an option by the Monte Carlo method, in NumPy: each task has a seed, and returns the mean of its paths."""

from __future__ import annotations

import math

import numpy

from systems import System

PATHS_LONG = 800_000
PATHS_SHORT = 4_000


def long(system: System, tasks: int) -> object:
    return round(math.fsum(system.run(price_of_many, range(tasks))) / tasks, 9)


def short(system: System, tasks: int) -> object:
    return round(math.fsum(system.run(price_of_few, range(tasks))) / tasks, 9)


def price_of_many(seed: int) -> float:
    return _price(seed, PATHS_LONG)


def price_of_few(seed: int) -> float:
    return _price(seed, PATHS_SHORT)


def _price(seed: int, paths: int) -> float:
    """A call at 100 of a share at 100, in a year, with a volatility of 20 % and interest of 3 %."""
    normal = numpy.random.default_rng(seed).standard_normal(paths)
    shares = 100.0 * numpy.exp(0.03 - 0.02 + 0.2 * normal)
    return float(math.exp(-0.03) * numpy.maximum(shares - 100.0, 0.0).mean())
