"""A Python program that `midflight-lab bench ...` starts: where its results go, and when it ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TextIO


def take_stdout() -> TextIO:
    """What was stdout, for the results: systems print there as they please, and from now on that is stderr."""
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return results


def end_on_signals(with_parent: bool) -> None:
    """SIGTERM ends this as an exception, so that systems are stopped; with `with_parent`, so does the end of stdin."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if with_parent:
        threading.Thread(target=_end_with_stdin, daemon=True).start()


def _end_with_stdin() -> None:
    """The parent holds the other end of stdin: when it is gone, however it ended, so are we."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
