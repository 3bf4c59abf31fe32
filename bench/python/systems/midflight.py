"""Midflight: `midflight up --python`, as a user starts it: switch, executor and its workers."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import joblib
import midflight
import midflight.joblib

from systems import WORKERS, System

#: Timeout for its end, in seconds.
PATIENCE_S = 10


class Midflight(System):
    interface = "client.submit in a loop; client.map; midflight.joblib"

    def __init__(self) -> None:
        command = os.environ.get("MIDFLIGHT")
        if not command:
            raise RuntimeError("MIDFLIGHT is not set: it names the command to measure, such as target/release/midflight")
        self._command = command
        said = subprocess.run([command, "--version"], check=True, capture_output=True, text=True).stdout
        self.version = said.split()[1]

    def __enter__(self) -> Midflight:
        slots = ["--slots", str(WORKERS), "--python", sys.executable]
        self._cluster = subprocess.Popen(
            [self._command, "up", "--listen", "127.0.0.1:0", "--http", "off", *slots], stdout=subprocess.PIPE, text=True
        )
        try:
            assert self._cluster.stdout
            line = self._cluster.stdout.readline()
            found = re.search(r"switch on (\S+),", line)
            if not found:
                raise RuntimeError(f"midflight up said {line!r} instead of its address")
            self._switch = found[1]
            self._client = midflight.Client(self._switch)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._client.close()
        finally:
            self._end()

    def _end(self) -> None:
        self._cluster.terminate()
        try:
            self._cluster.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._cluster.kill()
            self._cluster.wait()

    def one(self, function: Callable[[Any], Any], item: Any) -> Any:
        return self._client.submit(function, item).result()

    def submit(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        return midflight.gather([self._client.submit(function, item) for item in items])

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        return list(self._client.map(function, items))

    def joblib(self) -> contextlib.AbstractContextManager[Any]:
        return joblib.parallel_config("midflight", switch=self._switch, workers=WORKERS)
