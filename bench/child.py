"""A Python program that `midflight-lab bench ...` starts: its stdout and its end."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TextIO


def take_stdout() -> TextIO:
    """Returns the original stdout, for the results. From now on, output of the systems to stdout goes to stderr."""
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return results


def end_on_signals(with_parent: bool) -> None:
    """Turns SIGTERM into an exception, so that systems are stopped; with `with_parent`, also the end of stdin."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if with_parent:
        threading.Thread(target=_end_with_stdin, daemon=True).start()


def _end_with_stdin() -> None:
    """The parent holds the other end of stdin, which closes when it ends, however that happens."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
