"""A cluster for the tests: `midflight up --python`, real processes."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import midflight


def command() -> str:
    """The command to test: `$MIDFLIGHT`, or the newest that was built here."""
    if found := os.environ.get("MIDFLIGHT"):
        return found
    target = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parents[1] / "target"))
    built = [target / profile / "midflight" for profile in ("debug", "release")]
    built = [path for path in built if path.exists()]
    if not built:
        pytest.exit("no midflight to test: cargo build -p midflight-cli, or ./do python", returncode=2)
    return str(max(built, key=lambda path: path.stat().st_mtime))


class Cluster:
    """A switch and an executor with Python workers."""

    def __init__(self, *options: str, slots: int = 2, python: str = sys.executable) -> None:
        self.stderr: list[str] = []
        arguments = ["up", "--listen", "127.0.0.1:0", "--http", "off", "--slots", str(slots), "--python", python]
        self.process = subprocess.Popen(
            [command(), *arguments, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parent / "tests",
            env={**os.environ, "MIDFLIGHT_SWITCH": ""},
        )
        assert self.process.stdout and self.process.stderr
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.greeting = self.process.stdout.readline()
        found = re.search(r"switch on (\S+),", self.greeting)
        assert found, f"{self.greeting!r} {self.stderr}"
        self.switch = found[1]

    def _read(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.stderr.append(line)

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
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(20)
        finally:
            self.process.kill()
            self.process.wait()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
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


def eventually(condition: object, seconds: float = 10.0) -> bool:
    """Whether it holds within that time."""
    assert callable(condition)
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
