"""Views that no process of ours sends: with HTML and escape codes in every text, or without details. The page's own files are the real ones."""

import copy
import json

from browser import fits, wait_for

# What would be seen to run if it became more than text: an element, an attribute, a script, and codes that terminals take.
HOSTILE = "\"'><img src=x onerror='window.hit=1'><script>window.hit=1</script><b>&lt;\u001b[2J\u202e"
# What each page shows of it.
SHOWN = "<img src=x"
# Words by which the page knows what it is shown.
KEPT = {"program"}


def hostile(value, key=None):
    """The same view with this in every text, and in every name of a counter."""
    if isinstance(value, dict):
        return {(name + HOSTILE if isinstance(inner, (int, float)) and key in ("drops", "shell", "counters", "rates") else name): hostile(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [hostile(inner, key) for inner in value]
    if isinstance(value, str) and key not in KEPT:
        return value + HOSTILE
    return value


def shows(bench, http, views):
    """A page of this address that gets these views instead of those of its process."""
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
    """That what is in a view becomes text on the page, whatever it is."""
    page, said = shows(bench, http, [hostile(view), hostile(view | {"number": view["number"] + 1})])
    name = f"{view['program']}, hostile"
    wait_for({name: page}, "hostile texts as they are", f"document.querySelector('main').innerText.includes({json.dumps(SHOWN)})")
    told = page.evaluate("document.body.innerText")
    assert "\u001b" not in told and "\u202e" not in told, "codes reach the page"
    made = page.evaluate("[...document.querySelectorAll('main img, main script, main b, [onerror]')].filter((it) => !it.closest('.legend')).length")
    assert (made, page.evaluate("window.hit ?? 0"), said) == (0, 0, []), (made, said)
    bench.shoot({name.replace(", ", "-"): page}, "made-up")
    # Long words are broken, or scroll in their table.
    fits({name: page})


def assert_survives_without_details(bench, http, view, chart):
    """That a view without details is shown, and that the chart of this title has a gap where it came."""
    without = copy.deepcopy(view) | {"detail": None}
    page, said = shows(bench, http, [view, view, without])
    legend = f"[...document.querySelectorAll('figure')].find((one) => one.innerText.startsWith({json.dumps(chart)}))?.querySelector('.legend').innerText ?? ''"
    wait_for({f"{view['program']}, without details": page}, f"no value in “{chart}”", f"/–/.test({legend}) && !/[0-9]$/m.test({legend})")
    assert not said, said


def hints_go(page):
    """A cell that has no hint any more shows none."""
    titles = page.evaluate("""import("./web/dom.js").then(({ table }) => {
        const { element, show } = table("t", "t", [{ title: "a", text: () => "a", sort: () => 0, hint: (row) => row.hint }], "none");
        return ["first", null].map((hint) => {
            show({ rows: [{ key: 1, row: { hint } }], more: 0 });
            return element.querySelector("td").title;
        });
    })""")
    assert titles == ["first", ""], titles
