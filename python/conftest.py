"""A cluster for the tests: `midflight up --python`, real processes."""

from __future__ import annotations

import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

import midflight


#: Timeout of every wait in a test, in seconds: long enough for a loaded machine.
PATIENCE = 60.0


def command() -> str:
    """The command to test."""
    found = os.environ.get("MIDFLIGHT")
    if not found:
        pytest.exit("no midflight to test: MIDFLIGHT=target/debug/midflight python -m pytest, or ./do python", returncode=2)
    return found


class Cluster:
    """A switch and an executor; ended with their ``with`` block, however that ends."""

    def __init__(
        self, *options: str, slots: int = 2, python: str | None = sys.executable, cwd: Path = Path(__file__).parent / "tests"
    ) -> None:
        self.stderr: list[str] = []
        arguments = ["up", "--listen", "127.0.0.1:0", "--http", "off", "--slots", str(slots)]
        self.process = subprocess.Popen(
            [command(), *arguments, *(["--python", python] if python else []), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=cwd,
            env={**os.environ, "MIDFLIGHT_SWITCH": ""},
        )
        stdout, stderr = self.process.stdout, self.process.stderr
        assert stdout and stderr
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._copy, args=(stdout, self._lines.put), daemon=True).start()
        threading.Thread(target=self._copy, args=(stderr, self.stderr.append), daemon=True).start()
        try:
            self.greeting = self._lines.get(timeout=PATIENCE)
            found = re.search(r"switch on (\S+),", self.greeting)
            assert found, f"{self.greeting!r} {self.stderr}"
        except BaseException:
            self.kill()
            raise
        self.switch = found[1]

    @staticmethod
    def _copy(file: IO[str], take: Callable[[str], None]) -> None:
        for line in file:
            take(line)
        take("")  # the end

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def workers(self) -> list[int]:
        """The processes of the workers."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if b"midflight.worker" in (entry / "cmdline").read_bytes():
                    status = (entry / "status").read_text()
                    if f"PPid:\t{self.process.pid}\n" in status and "State:\tZ" not in status:
                        found.append(int(entry.name))
            except OSError:
                continue
        return found

    def stop(self) -> int:
        """Ends it as Ctrl-C does; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE)
        finally:
            self.kill()

    def kill(self) -> None:
        """Does nothing if it has ended."""
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        os.environ["MIDFLIGHT_SWITCH"] = cluster.switch  # for doctests, too
        yield cluster
        assert cluster.stop() == 0, "".join(cluster.stderr)


@pytest.fixture(autouse=True)
def _for_doctests(cluster: Cluster, doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["midflight"] = midflight


@pytest.fixture
def client(cluster: Cluster) -> Iterator[midflight.Client]:
    with midflight.Client(cluster.switch) as client:
        yield client


def eventually(condition: Callable[[], object], seconds: float = PATIENCE) -> bool:
    """Whether the condition becomes true within the time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return bool(condition())


def is_alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
