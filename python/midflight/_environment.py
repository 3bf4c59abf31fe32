"""The installed packages."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import socket
import sys


@functools.cache
def digest() -> int:
    """64 bits of the names and versions of Python and all installed distributions; never 0."""
    text = "\n".join([platform.python_implementation(), platform.python_version(), *sorted(_installed())])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") or 1


def _installed() -> set[str]:
    """Names and versions. Packages in the program's own directory are not installed; unreadable ones do not count."""
    from importlib import metadata

    here = _here()
    found = set()
    for distribution in metadata.distributions(path=[entry for entry in sys.path if _absolute(entry) not in here]):
        try:
            name, version = distribution.metadata["Name"], distribution.version
        except Exception:  # not UTF-8, no permission
            continue
        if not name or not version:
            continue
        # Normalises names: PEP 503.
        found.add(f"{re.sub(r'[-_.]+', '-', name).lower()}=={version}")
    return found


def _here() -> set[str]:
    """The working directory, and that of the program."""
    program = getattr(sys.modules.get("__main__"), "__file__", None)
    return {_absolute(""), _absolute(os.path.dirname(program))} if program else {_absolute("")}


def _absolute(path: str) -> str:
    try:
        return os.path.abspath(path)
    except OSError:  # the working directory was removed
        return path


@functools.cache
def about() -> str:
    """One line: Python, its path, the host."""
    return f"Python {platform.python_version()}, {sys.executable}, on {socket.gethostname()}"
