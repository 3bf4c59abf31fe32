"""The format of calls and results, checked against files that the executor's tests read too (`crates/tasks/tests/python_calls.rs`).

``UPDATE_GOLDEN=1 ./do python`` writes them; then raise the version of the format (docs/internals/python.md).
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import pytest
from conftest import Cluster

import midflight
from midflight import _entries, _native, _outcomes

GOLDEN = Path(__file__).parents[2] / "crates/tasks/tests/golden/python"

#: The files' references of blobs, whose ids are random: id, length, port.
FUNCTION = (0x0102_0304_0506_0708, 0x1122_3344, 0x5566)
SHARED = [(0x1112_1314_1516_1718, 0x2122_2324, 0x2526), (0x3132_3334_3536_3738, 0x4142_4344, 0x4546)]
#: Offset of the references, and the format of each.
HEAD, REFERENCE = 24, struct.Struct("<QIHxx")

Pickled = tuple[bytes, list[memoryview]]


def golden(name: str) -> bytes:
    lines = (GOLDEN / f"{name}.hex").read_text().splitlines()
    return bytes.fromhex("".join(line for line in lines if not line.startswith("#")))


def assert_golden(name: str, about: str, said: bytes) -> None:
    """Checks that a file has these bytes. ``UPDATE_GOLDEN`` writes it first."""
    rows = [said[at : at + 16].hex(" ") for at in range(0, len(said), 16)]
    text = "\n".join([f"# {about}", *rows, ""])
    path = GOLDEN / f"{name}.hex"
    if "UPDATE_GOLDEN" in os.environ:
        path.write_text(text)
    assert path.read_text() == text, f"{name}: the format has changed; if it was meant to, raise its version"


def with_buffers(pickle: bytes, *lengths: tuple[int, int]) -> Pickled:
    """A pickle, and buffers of such a byte, so many times."""
    return pickle, [memoryview(bytes([byte] * length)) for byte, length in lengths]


def plain(entries: list[_entries.Entry]) -> list[tuple[int, bytes, list[bytes]]]:
    return [(status, bytes(data), [bytes(buffer) for buffer in buffers]) for status, data, buffers in entries]


def argument(client: _native.Client, shared: int, calls: list[Any], **options: Any) -> bytes:
    """The bytes that the native module sends for these calls, with the references of the files in place of its own."""
    function = client.share([b"a function"])
    more = [client.share([b"a shared argument"]) for _ in range(shared)]
    shape = _native.Calls(client, [function], priority=1, resources=0, **options)
    said = bytearray(shape.argument(calls, more))
    for place, reference in enumerate([FUNCTION, *SHARED[:shared]]):
        at = HEAD + place * REFERENCE.size
        _, length, port = REFERENCE.unpack_from(said, at)
        assert (length, port > 0) == (10 if place == 0 else 17, True)
        REFERENCE.pack_into(said, at, *reference)
    return bytes(said)


@pytest.fixture
def native(cluster: Cluster) -> Any:
    made = _native.Client([cluster.switch], bind=None, max_open=10, value_max=1 << 20, blob_max=1 << 20, timeout=10)
    yield made
    made.close(lambda *_: None)


ALONE = b"alone"
SEVERAL = [with_buffers(b"one"), with_buffers(b"the second", (0xA1, 3), (0xA2, 65)), with_buffers(b"", (0xA3, 1))]


def test_an_argument_is_written_as_the_executor_reads_it(native: _native.Client) -> None:
    said = argument(native, 0, [ALONE], python=(3, 11), environment=0, timeout=None, attempts=3, retries=0)
    assert_golden("argument", "The argument of a call alone: of Python 3.11, with 3 attempts; its pickle is `alone`.", said)
    options = {"environment": 0xE0E1_E2E3_E4E5_E6E7, "timeout": 1.5, "attempts": 1, "retries": 2}
    said = argument(native, 2, SEVERAL, python=(3, 14), **options)
    about = "Three calls of Python 3.14, in one environment only, within 1.5 s, with 2 retries and two shared arguments. The second has two buffers, the third one."
    assert_golden("argument_of_several", about, said)


def test_calls_are_read_as_they_are_written() -> None:
    alone = golden("argument")[HEAD + REFERENCE.size :]
    assert plain(_entries.parse_entries(memoryview(alone))) == [(0, ALONE, [])]
    several = golden("argument_of_several")[HEAD + 3 * REFERENCE.size :]
    entries = [(0, pickle, [bytes(buffer) for buffer in buffers]) for pickle, buffers in SEVERAL]
    assert plain(_entries.parse_entries(memoryview(several))) == entries
    # A shared argument has the form of a call.
    assert b"".join(_entries.join(ALONE)) == alone


RESULTS: list[tuple[int, Any]] = [
    (_entries.VALUE, with_buffers(b"a value", (0xB1, 2))),
    (_entries.RAISED, b"an exception"),
    (_entries.BROKEN, b"an error of the worker"),
]


def test_results_are_written_and_read() -> None:
    said = b"".join(_entries.result(0x0102_0304_0506, [(_entries.VALUE, ALONE)]))
    assert_golden("result", "The result of a call alone, which took 1,108,152,157,446 ns; its pickle is `alone`.", said)
    for value in (said, memoryview(said)):
        nanoseconds, entries = _entries.parse_result(value)
        assert (nanoseconds, plain(entries)) == (0x0102_0304_0506, [(0, ALONE, [])])
    said = b"".join(_entries.result(7, RESULTS))
    about = "The result of three calls, which took 7 ns: a value with a buffer, an exception, an error of the worker."
    assert_golden("result_of_several", about, said)
    nanoseconds, entries = _entries.parse_result(said)
    expected = [(0, b"a value", [b"\xb1\xb1"]), (1, b"an exception", []), (2, b"an error of the worker", [])]
    assert (nanoseconds, plain(entries)) == (7, expected)


def test_the_executors_own_result_is_read() -> None:
    _, outcomes = _outcomes.read(_outcomes.VALUE, golden("refusal"), 1)
    assert outcomes is not None
    [(has_returned, error)] = outcomes
    assert not has_returned and isinstance(error, midflight.WorkerDied)
    assert (str(error).startswith("the worker died: é"), error.signal) == (True, 11)
