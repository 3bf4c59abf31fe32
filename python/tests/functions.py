"""A module that workers find, because the executor of the tests runs in this directory."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any


def double(number: int) -> int:
    return 2 * number


def fail(number: int) -> int:
    raise ValueError(f"no {number} today")


def pid(*_: Any) -> int:
    return os.getpid()


class Local(Exception):
    """Its constructor has other arguments than it claims."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__("both")
        self.two = two


def raise_local() -> None:
    raise Local(1, 2)


def nothing_to_pickle() -> threading.Lock:
    return threading.Lock()


def die(signal: int) -> None:
    os.kill(os.getpid(), signal)
    time.sleep(5)


def die_if(number: int, bad: int) -> int:
    if number == bad:
        os._exit(3)
    return number


def once(path: str) -> int:
    """Fails the first time; returns the number of calls."""
    with Path(path).open("a") as file:
        file.write(".")
    calls = len(Path(path).read_text())
    if calls == 1:
        raise ValueError("the first time")
    return calls


def hang(path: str, end: str | None = None) -> None:
    """Notes at its end that it was told to end."""
    try:
        Path(path).write_text(str(os.getpid()))
        time.sleep(600)
    finally:
        if end:
            Path(end).touch()


def hold(path: str, pid: str | None = None) -> int:
    """Notes its process, and returns it when the file exists."""
    if pid:
        Path(pid).write_text(str(os.getpid()))
    while not Path(path).exists():
        time.sleep(0.005)
    return os.getpid()


def hang_deaf(path: str) -> None:
    Path(path).write_text(str(os.getpid()))
    while True:
        try:
            time.sleep(600)
        except BaseException:
            pass


def fork_and_die(path: str) -> None:
    """Leaves a child that holds all descriptors, and dies."""
    child = os.fork()
    if child == 0:
        time.sleep(600)
        os._exit(0)
    Path(path).write_text(str(child))
    os._exit(4)


def fork_and_return(path: str, go: str) -> str:
    """Leaves a child that also returns, later."""
    child = os.fork()
    if child == 0:
        hold(go)
        return "child"
    Path(path).write_text(str(child))
    return "parent"


class Unspeakable(Exception):
    """Neither its text nor its pickle can be made."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    def __reduce__(self) -> str:
        raise RuntimeError("no pickle")


class Unspeakable2:
    """Its pickle cannot be made, and the reason cannot either."""

    def __reduce__(self) -> str:
        raise Unspeakable


def raise_unspeakable() -> None:
    raise Unspeakable


def return_unspeakable() -> Unspeakable2:
    return Unspeakable2()


def blob_maps(*_: Any) -> list[str]:
    """The permissions of all memory that this worker shares with others."""
    return maps_of(os.getpid())


def maps_of(process: int) -> list[str]:
    lines = Path(f"/proc/{process}/maps").read_text().splitlines()
    return [line.split()[1] for line in lines if "midflight-blob" in line]


def shout(length: int) -> int:
    for _ in range(length >> 20):
        print("x" * (1 << 20))
    return length


def environment(name: str) -> str | None:
    return os.environ.get(name)


def note(path: str, number: int, bad: int = -1) -> int:
    """Notes the call; ends its worker if the number is bad."""
    with Path(path).open("a") as file:
        file.write(f"{number}\n")
    if number == bad:
        os._exit(3)
    return number


def notes(path: Path) -> list[int]:
    """What `note` has written."""
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


def wait_for(path: str, _: object = None) -> str:
    """Returns when the file exists."""
    while not Path(path).exists():
        time.sleep(0.01)
    return path


def interrupt(number: int, bad: int) -> int:
    if number == bad:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
    return number


class SlowToLoad:
    """Its copy at the worker is a text of four letters, which takes this long to make."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __reduce__(self) -> Any:
        return slow_text, (self._seconds,)


def slow_text(seconds: float) -> str:
    time.sleep(seconds)
    return "slow"


def note_and_fail(path: str, number: int) -> int:
    """Notes that it runs. 0 raises an exception, 1 hangs from its third time on."""
    note(path, number)
    if number == 0:
        raise ValueError("always")
    if number == 1 and notes(Path(path)).count(1) >= 3:
        time.sleep(600)
    return number


def note_and_grow(path: str, number: int) -> bytes:
    """Notes that it runs. 0 raises an exception, the others return large results."""
    note(path, number)
    if number == 0:
        raise ValueError("always")
    return bytes(700_000)


def hide_interrupts(seconds: float) -> str:
    """Blocks SIGINT, and leaves it blocked."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    time.sleep(seconds)
    return "hidden"


def show_interrupts() -> str:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    time.sleep(0.1)
    return "shown"


def sleep_if(number: int, bad: int) -> int:
    if number == bad:
        time.sleep(600)
    return number


class Exits:
    """Ends the program that unpickles it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return sys.exit, (3,)


class Odd(Exception):
    """Stops being one when it is pickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (5,)


def raise_odd() -> None:
    raise Odd


def raise_stop(number: int, bad: int) -> int:
    return next(iter([])) if number == bad else number


def exits(code: object) -> None:
    sys.exit(code)


def raise_interrupt() -> None:
    raise KeyboardInterrupt


async def double_soon(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


async def hang_soon(path: str, end: str) -> None:
    """Notes at its end that it was told to end."""
    try:
        Path(path).touch()
        await asyncio.sleep(600)
    finally:
        Path(end).touch()


async def cancel_itself() -> None:
    raise asyncio.CancelledError("enough")


def hold_if(number: int, path: str) -> int:
    """0 hangs."""
    if number == 0:
        hang(path)
    return number


def nested(switch: str, depth: int) -> int:
    """Calls itself, and waits."""
    import midflight

    if depth == 0:
        return 0
    with midflight.Client(switch) as client:
        return 1 + client.submit(nested, switch, depth - 1).result()


def nested_map(switch: str, number: int) -> int:
    import midflight

    with midflight.Client(switch) as client:
        return sum(client.map(double, range(number)))


def nested_unseen(switch: str, depth: int) -> int:
    """As `nested`, by a wait of the standard library."""
    import concurrent.futures

    import midflight

    if depth == 0:
        return 0
    with midflight.Client(switch) as client:
        future = client.submit(nested_unseen, switch, depth - 1)
        concurrent.futures.wait([future])
        return 1 + future.result()


def nested_late(switch: str, seconds: float) -> int:
    """As `nested`, but it does something else first."""
    import midflight

    with midflight.Client(switch) as client:
        future = client.submit(double, 1)
        time.sleep(seconds)
        return future.result()


def lend_and_hold(path: str, pid: str) -> int:
    import midflight

    with midflight.lend_slot():
        return hold(path, pid)


def nested_command(switch: str) -> str:
    """Waits for a task by a command."""
    import subprocess

    import midflight

    with midflight.lend_slot():
        command = [os.environ["MIDFLIGHT"], "submit", "exec", "echo nested", "--switch", switch]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def large_or_hold(size: int, hold_until: str | None = None) -> bytes:
    """Returns `size` zero bytes; waits first until the file exists, if one is given."""
    if hold_until:
        hold(hold_until)
    return bytes(size)


def note_or_hold(note: str | None, hold_until: str | None = None) -> str | None:
    """Notes the call; returns when the file exists."""
    if note:
        with Path(note).open("a") as file:
            file.write(".")
    if hold_until:
        hold(hold_until)
    return note
