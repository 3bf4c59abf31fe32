"""What is installed here."""

from __future__ import annotations

import functools
import hashlib
import platform
import socket
import sys


@functools.cache
def digest() -> int:
    """64 bits of the names and versions of Python and all installed distributions; never 0."""
    from importlib import metadata

    found = {f"{found.metadata['Name']}=={found.version}".lower() for found in metadata.distributions()}
    text = "\n".join([platform.python_implementation(), platform.python_version(), *sorted(found)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") or 1


@functools.cache
def about() -> str:
    """One line for people: Python, its path, the host."""
    return f"Python {platform.python_version()}, {sys.executable}, on {socket.gethostname()}"
