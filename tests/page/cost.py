"""Cost of an open page to a switch that schedules 100,000 tasks a second. `run --cost` starts this.

It prints CPU time of the switch's process as a share of a core, by turns without and with the page, and the difference.
"""

import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from browser import Bench, http_of, number, wait_for
from playwright.sync_api import sync_playwright

CHROMIUM, MIDFLIGHT = sys.argv[1:3]
# Enough slots, each sleeping this long, for 100,000 tasks a second.
SLOTS, SLEEP_MS = 1_000, 10
TURNS, TURN_S = 4, 10
# Make the switch's thread sleep between packets: a polling thread is always busy.
CONFIG = '[socket]\nbusy_poll = "0s"\n[tasks]\n'


def cpu_seconds(process):
    """CPU time of all threads, in seconds."""
    threads = Path(f"/proc/{process.pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def busy(process):
    """Cores that a process has used on average in one turn."""
    began, used = time.monotonic(), cpu_seconds(process)
    time.sleep(TURN_S)
    return (cpu_seconds(process) - used) / (time.monotonic() - began)


def main():
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as directory:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        with Bench(MIDFLIGHT, browser, None) as bench:
            config = Path(directory) / "switch.toml"
            config.write_text(CONFIG)
            switch, said = bench.started("switch", "--config", config, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
            address = re.search(r"switch on (\S+)", said)[1]
            bench.started("executor", "--switch", address, "--slots", str(SLOTS))
            submit = [MIDFLIGHT, "submit", "sleep", f"{SLEEP_MS}ms", "-n", "500000", "--switch", address]
            # Two, so that tasks wait while one restarts.
            for _ in range(2):
                again = ["sh", "-c", 'while "$@"; do :; done', "sh", *submit]
                loop = bench.process(again, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                bench.stack.callback(os.killpg, loop.pid, signal.SIGKILL)
            time.sleep(3)
            costs = []
            for _ in range(TURNS):
                alone = busy(switch)
                pages = bench.pages(http_of(said), ["desktop-light"])
                wait_for(pages, "tasks", f"{number('[data-tile=slots]')} > 0")
                watched = busy(switch)
                rate = pages["desktop-light"].locator("[data-tile=rate]").inner_text()
                pages["desktop-light"].context.close()
                costs.append(watched - alone)
                print(f"{rate} tasks a second: {alone:.1%} of a core without, {watched:.1%} with the page, {watched - alone:+.2%}")
            print(f"the page costs {statistics.median(costs):.2%} of a core (median of {TURNS})")
        browser.close()


main()
