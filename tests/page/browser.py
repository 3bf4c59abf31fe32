"""Runs processes, and shows their pages in a real browser."""

import json
import re
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

from playwright.sync_api import Error

# Window size and theme of each page.
WINDOWS = {
    "desktop-light": ((1280, 900), "light"),
    "desktop-dark": ((1280, 900), "dark"),
    "phone-light": ((390, 844), "light"),
    "phone-dark": ((360, 740), "dark"),
}
PATIENCE_S = 60


def row(table, text):
    """JavaScript: whether a row of a table has this text."""
    return f"[...document.querySelectorAll('#{table}-table tbody tr')].some((row) => /{text}/.test(row.innerText))"


def number(selector):
    """JavaScript: the number in an element."""
    return f"Number(document.querySelector('{selector}').innerText.replace(/[^0-9.]/g, ''))"


def tile(name, text):
    """JavaScript: whether a tile has this text."""
    return f"/{text}/.test(document.querySelector('[data-tile={name}]').innerText)"


class Bench:
    """Processes of Midflight, which end with it, and a browser. `screenshots`: a folder, or None."""

    def __init__(self, midflight, browser, screenshots):
        self.midflight, self.browser, self.screenshots = midflight, browser, screenshots
        self.stack, self.errors = ExitStack(), []

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.stack.close()

    def start(self, *arguments, **options):
        """Starts a process of Midflight."""
        return self.process([self.midflight, *arguments], **options)

    def process(self, command, **options):
        process = subprocess.Popen([str(part) for part in command], text=True, **options)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def started(self, *arguments):
        """Starts a process and waits for its first line; returns both."""
        process = self.start(*arguments, stdout=subprocess.PIPE)
        return process, process.stdout.readline()

    def run(self, *arguments):
        """The output of a command."""
        return subprocess.run([self.midflight, *arguments], text=True, check=True, stdout=subprocess.PIPE).stdout

    def view(self, http):
        """A view with rates, from `midflight top --json`."""
        return json.loads(self.run("top", "--json", "--http", http.removeprefix("http://")))

    def pages(self, http, names):
        """Opens this address in each of these windows."""
        pages = {}
        for name in names:
            (width, height), scheme = WINDOWS[name]
            context = self.browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
            self.stack.callback(context.close)
            page = pages[name] = context.new_page()
            page.on("console", lambda m, name=name: self.errors.append(f"{name}: {m.text}") if m.type == "error" else None)
            page.on("pageerror", lambda error, name=name: self.errors.append(f"{name}: {error}"))
            page.goto(http)
            assert page.evaluate("document.documentElement.dataset.theme") == scheme
        return pages

    def shoot(self, pages, moment):
        if self.screenshots:
            self.screenshots.mkdir(parents=True, exist_ok=True)
            for name, page in pages.items():
                page.screenshot(path=self.screenshots / f"{moment}-{name}.png", full_page=True)

    def windows(self):
        """Two windows, for states tested elsewhere; all windows for screenshots."""
        return WINDOWS if self.screenshots else ["desktop-light", "phone-dark"]


def http_of(said):
    """The address in a process's first line."""
    return re.search(r"status (http://\S+)", said)[1]


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait()


def text_of(page, selector):
    return page.locator(selector).inner_text()


def holds(page, condition):
    """Whether a JavaScript expression is true on a page, and why not: it fails while the page lacks an element, before the first event."""
    try:
        return page.evaluate(f"Boolean({condition})"), ""
    except Error as error:
        return False, error.message


def wait_for(pages, what, condition):
    """Waits until a JavaScript expression is true on each page. (wait_for_function needs `eval`, which the page forbids.)"""
    left, end = dict(pages), time.monotonic() + PATIENCE_S
    while left:
        for name, page in list(left.items()):
            shown, why = holds(page, condition)
            if shown:
                print(f"{name}: {what}")
                del left[name]
            elif time.monotonic() > end:
                raise AssertionError(f"{name} does not show {what}: {why} {text_of(page, 'main')}")
            else:
                page.wait_for_timeout(50)


def wait_until(holds, what):
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, f"never so: {what}"
        time.sleep(0.05)


def fits(pages):
    for name, page in pages.items():
        wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wider <= 0, f"{name} is {wider} pixels wider than the screen"
