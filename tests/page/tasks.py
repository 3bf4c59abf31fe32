"""The page of a task queue while a job runs, an executor fails and its tasks are requeued."""

import re
import subprocess

import made_up
from browser import WINDOWS, fits, http_of, kill, number, row, text_of, wait_for, wait_until

TASKS = 16
COMPLETED = "Number(/([0-9]+) completed/.exec(document.querySelector('#now').innerText)[1])"
TIMES = "document.querySelector('#times').innerText"


def pause_loses_nothing(bench, pages, address):
    """A page paused while a task runs: on resume its last-minute histograms equal the other pages'."""
    others = dict(pages)
    paused = others.pop("desktop-light")
    paused.keyboard.press("p")
    assert bench.start("map", "--switch", address, "--", "true", "{}", stdin=subprocess.PIPE).communicate("1\n") == (None, None)
    wait_for(others, "a task that ends while another page is paused", f"{COMPLETED} === 1")
    assert paused.evaluate(COMPLETED) == 0, "a paused page shows nothing new"
    paused.keyboard.press("p")
    wait_for(pages, "the same task", f"{COMPLETED} === 1")
    wait_until(lambda: len({page.evaluate(TIMES) for page in pages.values()}) == 1, "the histograms of all pages are the same")


def keys_work(page):
    """Everything a mouse can do."""
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


def watch(bench):
    switch, said = bench.started("switch", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
    address, http = re.search(r"switch on (\S+)", said)[1], http_of(said)
    executors = [bench.started("executor", "--switch", address, "--slots", "2")[0] for _ in range(2)]
    # Keep the pages open from beginning to end.
    pages = bench.pages(http, WINDOWS)
    wait_for(pages, "two executors", f"{row('executors', 'alive')} && document.querySelectorAll('#executors-table tbody tr').length === 2")
    pause_loses_nothing(bench, pages, address)

    commands = "".join(f"{n}\n" for n in range(TASKS))
    job = bench.start("map", "--switch", address, "--", "sleep 2; echo {}", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    job.stdin.write(commands)
    job.stdin.close()
    wait_for(pages, "tasks that run and wait", f"{number('[data-tile=slots]')} === 4 && {number('[data-tile=queued]')} > 0")
    wait_for(pages, "the job", row("jobs", "[0-9]"))
    bench.shoot(pages, "tasks-run")

    kill(executors[0])
    wait_for(pages, "the executor as lost, and its tasks in the queue again", row("executors", "lost, 2 tasks requeued"))
    wait_for(pages, "its tasks run again", "[...document.querySelectorAll('#jobs-table tbody tr')].some((row) => row.children[5].textContent === '2')")
    bench.shoot(pages, "tasks-lost")
    fits(pages)
    keys_work(pages["desktop-light"])
    made_up.hints_go(pages["desktop-light"])
    made_up.assert_text_only(bench, http, bench.view(http))

    output = job.stdout.read()
    assert job.wait() == 0 and sorted(map(int, output.split())) == list(range(TASKS)), output
    wait_for(pages, "that all is done", f"{number('[data-tile=slots]')} === 0 && {number('[data-tile=queued]')} === 0")
    # The default covers the last minute; on a slow machine the job took longer.
    for page in pages.values():
        page.select_option("#span", "start")
    wait_for(pages, "how long tasks ran", f"/tasks {TASKS + 1}/.test({TIMES})")
    bench.shoot(pages, "tasks-done")

    # A foreign name that resolves to this host, as in DNS rebinding.
    stranger = bench.browser.new_page()
    assert stranger.goto(http.replace("127.0.0.1", "stranger.example")).status == 421
    assert not bench.errors, bench.errors

    kill(switch)
    wait_for(pages, "that the switch has gone", "/no connection/.test(document.querySelector('#state').innerText)")
