"""Entries, which hold the pickles of calls and results. Integers are little-endian.

First the number of entries (32 bits). Then for each entry a status (8 bits), 3 bytes of 0, the number of buffers (32 bits), the length of
the pickle (64 bits) and of each buffer (64 bits each). Then for each entry its pickle and its buffers. Pickles have protocol 5. Buffers of
4 KiB or more are out of band; each begins at a multiple of 64 bytes from the first byte of the calls or result, padded with 0. The receiver
puts that first byte at an aligned address: a page for a shared argument, otherwise 16 bytes.

The status of a call is 0, or 1 if it may be returned unrun; that of a result is below. A result begins with ``R`` and the nanoseconds that
the calls took (64 bits), an error of the executor with ``E`` (``crates/tasks/src/functions/python.rs``).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

from midflight._exceptions import dump_broken

#: A pickle, or a pickle with its buffers.
Pickled = bytes | tuple[bytes, list[memoryview]]

#: Status, pickle and buffers of a call or a result.
Entry = tuple[int, Any, list[memoryview]]

#: Buffers begin at multiples of this number of bytes.
ALIGNMENT = 64
#: Entries up to this total size are copied into one piece, which is faster to send than several.
JOINED_MAX = 64 << 10
#: Bytes of the largest result that can be transferred.
RESULT_MAX = (1 << 32) - 1

VALUE, RAISED, BROKEN, NOT_BEGUN = 0, 1, 2, 3
#: Status of a call that may be returned unrun, if its task takes long before the call begins.
GIVES_BACK = 1

_COUNT = struct.Struct("<I")
_ENTRY = struct.Struct("<B3xIQ")
_LENGTH = struct.Struct("<Q")
#: The count, and the only entry.
_ONE = struct.Struct("<IB3xIQ")
#: The head of a result, and a result with its only entry.
_RESULT = struct.Struct("<cQ")
_RESULT_OF_ONE = struct.Struct("<cQIB3xIQ")


def join(entry: Pickled) -> list[bytes | memoryview]:
    """One entry, in the pieces of a shared argument."""
    return _joined(_COUNT.pack(1), [(VALUE, entry)])


def _joined(head: bytes, entries: Sequence[tuple[int, Pickled]]) -> list[bytes | memoryview]:
    """The entries after this head, in pieces; each buffer begins at a multiple of the alignment."""
    plain = [entry for _, entry in entries if isinstance(entry, bytes)]
    if len(plain) == len(entries) and sum(map(len, plain)) <= JOINED_MAX:
        return [b"".join((head, _heads(entries), *plain))]
    pieces: list[bytes | memoryview] = [head + _heads(entries)]
    at = len(pieces[0])
    for _, entry in entries:
        data, buffers = (entry, ()) if isinstance(entry, bytes) else entry
        pieces.append(data)
        at += len(data)
        for buffer in buffers:
            padding = -at % ALIGNMENT
            if padding:
                pieces.append(bytes(padding))
            pieces.append(buffer)
            at += padding + buffer.nbytes
    return pieces


def _heads(entries: Iterable[tuple[int, Pickled]]) -> bytes:
    heads = bytearray()
    for status, entry in entries:
        data, buffers = (entry, ()) if isinstance(entry, bytes) else entry
        heads += _ENTRY.pack(status, len(buffers), len(data))
        for buffer in buffers:
            heads += _LENGTH.pack(buffer.nbytes)
    return bytes(heads)


def result(nanoseconds: int, entries: Sequence[tuple[int, Pickled]]) -> list[bytes | memoryview]:
    """A result, in pieces."""
    status, data = entries[0]
    if len(entries) == 1 and isinstance(data, bytes) and len(data) <= JOINED_MAX:
        return [_RESULT_OF_ONE.pack(b"R", nanoseconds, 1, status, 0, len(data)) + data]
    pieces = _joined(_RESULT.pack(b"R", nanoseconds) + _COUNT.pack(len(entries)), entries)
    length = sum(memoryview(piece).nbytes for piece in pieces)
    if length > RESULT_MAX:
        of = f"the results of {len(entries)} calls have" if len(entries) > 1 else "the result has"
        why = dump_broken("large", f"{of} {length} bytes, which exceed {RESULT_MAX}: return less, or files", "")
        return _joined(pieces[0][:13], [(BROKEN, why)] * len(entries))  # type: ignore[arg-type]
    return pieces


def parse_result(value: Any) -> tuple[int, list[Entry]]:
    """Nanoseconds, and the entries."""
    if len(value) >= 29 and isinstance(value, bytes):
        _, nanoseconds, count, status, buffers, length = _RESULT_OF_ONE.unpack_from(value)
        if count == 1 and buffers == 0 and length <= JOINED_MAX:
            return nanoseconds, [(status, value[29 : 29 + length], [])]
    _, nanoseconds = _RESULT.unpack_from(value)
    return nanoseconds, parse_entries(memoryview(value), 9)


def parse_entries(view: memoryview, at: int = 0, *, is_shared: bool = False) -> list[Entry]:
    """The entries from `at` on; buffers are aligned to the beginning of `view`. Objects in a buffer are writable, unless it belongs to a
    shared argument."""
    count, status, buffers, length = _ONE.unpack_from(view, at)
    if count == 1 and buffers == 0:
        return [(status, view[at + 20 : at + 20 + length], [])]
    at += 4
    plain = list(_ENTRY.iter_unpack(view[at : at + 16 * count]))
    if not any(buffers for _, buffers, _ in plain):
        return _parse_plain(view, at + 16 * count, plain)
    heads = []
    for _ in range(count):
        status, buffers, length = _ENTRY.unpack_from(view, at)
        at += 16
        lengths = struct.unpack_from(f"<{buffers}Q", view, at) if buffers else ()
        at += 8 * buffers
        heads.append((status, length, lengths))
    if view.readonly and not is_shared:
        view = memoryview(bytearray(view))
    found = []
    for status, length, lengths in heads:
        data = view[at : at + length]
        at += length
        parts = []
        for part in lengths:
            at += -at % ALIGNMENT
            parts.append(view[at : at + part])
            at += part
        found.append((status, data, parts))
    if at > len(view):
        raise ValueError(f"{len(view)} bytes, where {at} are announced")
    return found


def _parse_plain(view: memoryview, at: int, heads: list[tuple[int, int, int]]) -> list[Entry]:
    """Entries without buffers, the first of which begins at `at`."""
    found: list[Entry] = []
    for status, _, length in heads:
        found.append((status, view[at : at + length], []))
        at += length
    if at > len(view):
        raise ValueError(f"{len(view)} bytes, where {at} are announced")
    return found
