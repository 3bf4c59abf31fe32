"""Forged views for the real page: HTML and escape codes in every text, or no details."""

import copy
import json

from browser import fits, wait_for

# Would have a visible effect if it became more than text: element, attribute, script, terminal codes.
HOSTILE = "\"'><img src=x onerror='window.hit=1'><script>window.hit=1</script><b>&lt;\u001b[2J\u202e"
# The part that each page shows.
SHOWN = "<img src=x"
# Fields that select the page.
KEPT = {"program"}


def hostile(value, key=None):
    """The view with this in every text and every counter's name."""
    if isinstance(value, dict):
        return {(name + HOSTILE if isinstance(inner, (int, float)) and key in ("drops", "shell", "counters", "rates") else name): hostile(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [hostile(inner, key) for inner in value]
    if isinstance(value, str) and key not in KEPT:
        return value + HOSTILE
    return value


def shows(bench, http, views):
    """Opens this address, but serves these views instead of its process's."""
    context = bench.browser.new_context(viewport={"width": 1280, "height": 900})
    bench.stack.callback(context.close)
    page, said = context.new_page(), []
    body = "retry: 100000\n" + "".join(f"data: {json.dumps(view)}\n\n" for view in views)
    page.route("**/events", lambda route: route.fulfill(status=200, content_type="text/event-stream", body=body))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(dialog.message) or dialog.dismiss())
    page.goto(http)
    return page, said


def assert_text_only(bench, http, view):
    """The page shows everything in a view as text."""
    page, said = shows(bench, http, [hostile(view), hostile(view | {"number": view["number"] + 1})])
    name = f"{view['program']}, hostile"
    wait_for({name: page}, "hostile texts as they are", f"document.querySelector('main').innerText.includes({json.dumps(SHOWN)})")
    told = page.evaluate("document.body.innerText")
    assert "\u001b" not in told and "\u202e" not in told, "codes reach the page"
    made = page.evaluate("[...document.querySelectorAll('main img, main script, main b, [onerror]')].filter((it) => !it.closest('.legend')).length")
    assert (made, page.evaluate("window.hit ?? 0"), said) == (0, 0, []), (made, said)
    bench.shoot({name.replace(", ", "-"): page}, "made-up")
    # Long words wrap, or scroll in their table.
    fits({name: page})


def assert_survives_without_details(bench, http, view, chart):
    """The page shows a view without details; the chart of this title has a gap there."""
    without = copy.deepcopy(view) | {"detail": None}
    page, said = shows(bench, http, [view, view, without])
    legend = f"[...document.querySelectorAll('figure')].find((one) => one.innerText.startsWith({json.dumps(chart)}))?.querySelector('.legend').innerText ?? ''"
    wait_for({f"{view['program']}, without details": page}, f"no value in “{chart}”", f"/–/.test({legend}) && !/[0-9]$/m.test({legend})")
    assert not said, said


def hints_go(page):
    """A cell whose hint is removed shows none."""
    titles = page.evaluate("""import("./web/dom.js").then(({ table }) => {
        const { element, show } = table("t", "t", [{ title: "a", text: () => "a", sort: () => 0, hint: (row) => row.hint }], "none");
        return ["first", null].map((hint) => {
            show({ rows: [{ key: 1, row: { hint } }], more: 0 });
            return element.querySelector("td").title;
        });
    })""")
    assert titles == ["first", ""], titles
