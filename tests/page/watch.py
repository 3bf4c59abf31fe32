"""The page in a real browser: it watches a job run, an executor die and its tasks come back. `run` starts this."""

import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from playwright.sync_api import sync_playwright

CHROMIUM, MIDFLIGHT = sys.argv[1:3]
SCREENSHOTS = Path(sys.argv[3]) if len(sys.argv) > 3 else None
# Each page is open from the beginning to the end.
PAGES = [
    ("desktop-light", (1280, 900), "light"),
    ("desktop-dark", (1280, 900), "dark"),
    ("phone-light", (390, 844), "light"),
    ("phone-dark", (360, 740), "dark"),
]
TASKS = 16
PATIENCE_S = 60


def start(processes, *arguments, **options):
    """A process that ends with the test."""
    process = subprocess.Popen([MIDFLIGHT, *arguments], text=True, **options)
    processes.callback(process.wait)
    processes.callback(process.kill)
    return process


def started(processes, *arguments):
    """The same, once it has printed its first line, which is returned too."""
    process = start(processes, *arguments, stdout=subprocess.PIPE)
    return process, process.stdout.readline()


def text_of(page, selector):
    return page.locator(selector).inner_text()


def wait_for(pages, what, condition):
    """Waits until a JavaScript expression is true on each page. (wait_for_function needs `eval`, which the page forbids.)"""
    left, end = dict(pages), time.monotonic() + PATIENCE_S
    while left:
        for name, page in list(left.items()):
            if page.evaluate(f"Boolean({condition})"):
                print(f"{name}: {what}")
                del left[name]
            elif time.monotonic() > end:
                raise AssertionError(f"{name} does not show {what}: {text_of(page, 'main')}")
            else:
                page.wait_for_timeout(50)


def shoot(pages, moment):
    if SCREENSHOTS:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        for name, page in pages.items():
            page.screenshot(path=SCREENSHOTS / f"{moment}-{name}.png", full_page=True)


def row(table, text):
    return f"[...document.querySelectorAll('#{table}-table tbody tr')].some((row) => /{text}/.test(row.innerText))"


def number(selector):
    return f"Number(document.querySelector('{selector}').innerText.replace(/[^0-9.]/g, ''))"


def keys_work(page):
    """All that a mouse can do."""
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip", "the first Tab finds the link to the content"
    page.keyboard.press("4")
    assert page.evaluate("document.activeElement.id") == "executors-title"
    page.keyboard.press("?")
    assert page.locator("dialog#keys").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("dialog#keys").is_visible()
    before = page.evaluate("document.documentElement.dataset.theme")
    seen = set()
    for _ in range(3):
        page.keyboard.press("t")
        seen.add(page.evaluate("document.documentElement.dataset.theme"))
    assert seen == {"light", "dark"}, seen
    assert page.evaluate("document.documentElement.dataset.theme") == before, "three times t is where it was"
    page.keyboard.press("p")
    assert text_of(page, "#state") == "paused"
    page.keyboard.press("p")
    header = page.locator("#executors-table th").first
    header.get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert header.get_attribute("aria-sort") == "ascending"


def fits(name, page):
    wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wider <= 0, f"{name} is {wider} pixels wider than the screen"


def main():
    with ExitStack() as processes, sync_playwright() as playwright:
        switch, said = started(processes, "switch", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
        address = re.search(r"switch on (\S+)", said)[1]
        http = re.search(r"status (http://\S+)", said)[1]
        executors = [
            started(processes, "executor", "--switch", address, "--slots", "2")[0] for _ in range(2)
        ]

        # A name of a stranger that leads here, as in DNS rebinding.
        rebinding = "--host-resolver-rules=MAP stranger.example 127.0.0.1"
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", rebinding])
        errors, pages = [], {}
        for name, (width, height), scheme in PAGES:
            context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
            page = pages[name] = context.new_page()
            page.on("console", lambda m, name=name: errors.append(f"{name}: {m.text}") if m.type == "error" else None)
            page.on("pageerror", lambda error, name=name: errors.append(f"{name}: {error}"))
            page.goto(http)
            assert page.evaluate("document.documentElement.dataset.theme") == scheme
        wait_for(pages, "two executors", f"{row('executors', 'alive')} && document.querySelectorAll('#executors-table tbody tr').length === 2")

        commands = "".join(f"{n}\n" for n in range(TASKS))
        job = start(processes, "map", "--switch", address, "--", "sleep 2; echo {}", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        job.stdin.write(commands)
        job.stdin.close()
        wait_for(pages, "tasks that run and wait", f"{number('[data-tile=slots]')} === 4 && {number('[data-tile=queued]')} > 0")
        wait_for(pages, "the job", row("jobs", "[0-9]"))
        shoot(pages, "runs")

        executors[0].send_signal(signal.SIGKILL)
        wait_for(pages, "the executor as lost, and its tasks with others", row("executors", "lost, 2 tasks to others"))
        wait_for(pages, "its tasks run again", "[...document.querySelectorAll('#jobs-table tbody tr')].some((row) => row.children[5].textContent === '2')")
        shoot(pages, "lost")
        for name, page in pages.items():
            fits(name, page)
        keys_work(pages["desktop-light"])

        output = job.stdout.read()
        assert job.wait() == 0 and sorted(map(int, output.split())) == list(range(TASKS)), output
        wait_for(pages, "that all is done", f"{number('[data-tile=slots]')} === 0 && {number('[data-tile=queued]')} === 0")
        wait_for(pages, "how long tasks ran", "/tasks 16/.test(document.querySelector('#times').innerText)")
        shoot(pages, "done")

        stranger = browser.new_page()
        assert stranger.goto(http.replace("127.0.0.1", "stranger.example")).status == 421
        assert not errors, errors

        switch.kill()
        wait_for(pages, "that the switch has gone", "/no connection/.test(document.querySelector('#state').innerText)")
        browser.close()


main()
