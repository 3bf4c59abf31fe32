"""The pages in a real browser, against real processes. `run` starts this."""

import sys
import time
from pathlib import Path

import cache
import store
import tasks
from browser import Bench
from playwright.sync_api import sync_playwright

CHROMIUM, MIDFLIGHT = sys.argv[1:3]
SCREENSHOTS = Path(sys.argv[3]) if len(sys.argv) > 3 else None
SCENARIOS = [tasks, store, cache]


def main():
    # A foreign name that resolves to this host, as in DNS rebinding.
    rebinding = "--host-resolver-rules=MAP stranger.example 127.0.0.1"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", rebinding])
        for scenario in SCENARIOS:
            began = time.monotonic()
            with Bench(MIDFLIGHT, browser, SCREENSHOTS) as bench:
                scenario.watch(bench)
            print(f"{scenario.__name__}: {time.monotonic() - began:.1f} s")
        browser.close()


main()
