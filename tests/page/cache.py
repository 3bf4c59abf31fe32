"""The pages of a cache: the operator's shows a server fail, the controllers' the operator."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import made_up
from browser import fits, http_of, kill, row, tile, wait_for

# Loopback addresses that only this process uses.
NET = f"127.{100 + os.getpid() % 100}.{os.getpid() // 100 % 200 + 20}"
SERVERS = [f"{NET}.{n}:7800" for n in (11, 12, 13)]
CONTROLLERS = [f"{NET}.1:7790", f"{NET}.2:7790"]
OPERATOR = f"{NET}.5:7700"

NETWORK = f"""
controllers = ["{CONTROLLERS[0]}", "{CONTROLLERS[1]}"]
secret = "controller.secret"

[topology]
racks = [{{ id = "rack", tor = "tor", hosts = ["here"] }}]

[[operator]]
switch = "tor"
address = "{OPERATOR}"
control = "{NET}.5:7702"
selector = "{NET}.5:7703"

[[host]]
host = "here"
ip = "127.0.0.1"

{"".join(f'[[server]]{chr(10)}at = "rack"{chr(10)}address = "{server}"{chr(10)}' for server in SERVERS)}
[keyspace]
replicas = 3

[plan]
start = "own-rack"

[times]
ask_every = "50ms"
dead_after = "1s"
"""


def watch(bench):
    if not shutil.which("memcached"):
        print("SKIPPED: the pages of a cache: memcached is missing (package memcached)")
        return
    directory = Path(bench.stack.enter_context(tempfile.TemporaryDirectory()))
    bench.run("controller", "--init", directory / "controller.secret")
    (directory / "controller.toml").write_text(NETWORK)
    (directory / "tor.toml").write_text(bench.run("controller", "operator", "tor", "--config", directory / "controller.toml"))
    backend = directory / "backend"
    # All three servers share a backend, which suffices for a page.
    bench.process(["memcached", "-u", "root", "-m", "16", "-s", backend], stderr=subprocess.DEVNULL)
    operator, said = bench.started("switch", "--config", directory / "tor.toml", "--http", "127.0.0.1:0")
    senders = f"{NET}.5"
    agents = [
        bench.started("agent", "--backend", f"memcached://{backend}", "--listen", server, "--operator", OPERATOR, "--senders", senders)[0]
        for server in SERVERS
    ]
    controllers = [bench.started("controller", "--config", directory / "controller.toml", "--place", place)[0] for place in "01"]
    pages = bench.pages(http_of(said), bench.windows())
    wait_for(pages, "that it is an RSNode, of a group of its rack", f"{tile('rsnode', 'yes')} && {row('groups', 'labelled')}")

    (directory / "cache.toml").write_text(f'operator = "{OPERATOR}"\nservers = {SERVERS}\nreplicas = 3\n'.replace("'", '"'))
    bench.start("load", "cache", "--cache", directory / "cache.toml", "--rate", "500", "--keys", "100", "--duration", "600s", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(pages, "three servers that answer", tile("servers", "3 of 3"))
    bench.shoot(pages, "cache-whole")

    active = bench.pages(f"http://{CONTROLLERS[0]}", bench.windows())
    standby = bench.pages(f"http://{CONTROLLERS[1]}", ["phone-dark"])
    both = list(active.values()) + list(standby.values())
    roles = [page.evaluate("new Promise((done) => { const look = () => { const tile = document.querySelector('[data-tile=role]'); tile && tile.innerText !== '–' ? done(tile.innerText) : setTimeout(look, 20); }; look(); })") for page in both]
    if roles[0] != "active":  # The controller that reaches the operator first is active.
        active, standby = bench.pages(f"http://{CONTROLLERS[1]}", bench.windows()), bench.pages(f"http://{CONTROLLERS[0]}", ["phone-dark"])
    wait_for(active, "the active controller, an operator, and what it plans", f"{tile('role', 'active')} && {tile('operators', '1 of 1')} && {row('groups', 'tor')}")
    wait_for(standby, "the standby", f"{tile('role', 'standby')} && /another is active/.test(document.querySelector('#now').innerText)")

    kill(agents[1])
    wait_for(pages, "the dead server", f"{row('servers', 'silent')} && {tile('servers', '2 of 3')}")
    bench.shoot(pages, "cache-dead")
    bench.shoot(active, "cache-controller")
    fits(pages | active)
    controller = next(iter(active.values())).url
    for http in (http_of(said), controller.rstrip("/")):
        made_up.assert_text_only(bench, http, bench.view(http))
    made_up.assert_survives_without_details(bench, http_of(said), bench.view(http_of(said)), "Requests a second, by server")
    assert not bench.errors, bench.errors

    kill(operator)
    wait_for(active, "the dead operator", f"{row('operators', 'not connected|dead')} && {tile('operators', '0 of 1')}")
    wait_for(pages, "that the operator has gone", "/no connection/.test(document.querySelector('#state').innerText)")
    bench.shoot(active, "cache-operator-dead")
    fits(active)
    assert all(process.poll() is None for process in controllers)
