"""The pages of a store: the switch's shows a replica fail and the others take over its reads; the leader's shows the lag."""

import socket
import subprocess
import tempfile
from pathlib import Path

import made_up
from browser import fits, http_of, kill, row, tile, wait_for

REPLICAS = 3


def free_port():
    """A base port such that all ports of a store are free now."""
    for port in range(21_000, 60_000, 100):
        try:
            for at in range(port, port + 10 * REPLICAS + 2):
                for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
                    with socket.socket(socket.AF_INET, kind) as one:
                        one.bind(("127.0.0.1", at))
            return port
        except OSError:
            continue
    raise AssertionError("no ports are free")


def cells(page):
    """The table of replicas: id to state and share."""
    rows = page.evaluate("[...document.querySelectorAll('#replicas-table tbody tr')].map((row) => [...row.children].map((cell) => cell.innerText))")
    return {int(name): (state, share) for name, state, _, share, *_ in rows}


def share(replica, condition):
    """JavaScript: whether a replica's share of reads fulfils this."""
    rows = "[...document.querySelectorAll('#replicas-table tbody tr')]"
    return f"{rows}.some((row) => row.children[0].innerText === '{replica}' && parseFloat(row.children[3].innerText) {condition})"


TIMING = (
    'timing = { heartbeat = "100ms", session_lease = "1200ms", leader_lease = "1s", promise = "1200ms", stagger = "125ms",'
    " drift_ppm = 50000 }"
)


def watch(bench):
    directory = Path(bench.stack.enter_context(tempfile.TemporaryDirectory()))
    config = directory / "store.toml"
    # Long leases: four browsers and other tests share the machine, and the leader shall stay the same.
    reads = 'reads = "flair"'
    text = bench.run("store", "init", "--port", str(free_port()))
    assert reads in text, text
    config.write_text(text.replace(reads, f"{reads}\n{TIMING}"))
    switch, said = bench.started("switch", "--config", config, "--http", "127.0.0.1:0")
    replicas, https = {}, {}
    for n in range(1, REPLICAS + 1):
        data = directory / str(n)
        replicas[n], line = bench.started(
            "replica", "--config", config, "--id", str(n), "--data", data, "--new", "--no-fsync", "--http", "127.0.0.1:0"
        )
        https[n] = http_of(line)
    pages = bench.pages(http_of(said), bench.windows())
    wait_for(pages, "three replicas and a session", f"{tile('replicas', '3 of 3')} && {tile('session', 'term')}")
    bench.start("load", "store", "--config", config, "--seconds", "600", "--clients", "3", "--keys", "300", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    one = next(iter(pages.values()))
    states = {n: state for n, (state, _) in cells(one).items()}
    leader = next(n for n, state in states.items() if state == "leads")
    followers = [n for n in states if n != leader]
    for n in followers:
        wait_for(pages, f"that replica {n} answers reads", share(n, "> 10"))
    wait_for(pages, "reads that only the leader may answer", row("became", "nobody else may answer"))
    bench.shoot(pages, "store-whole")

    own = bench.pages(https[leader], bench.windows())
    wait_for(own, "the leader and its members", f"{tile('role', 'leader')} && {row('members', 'this one')}")
    wait_for(own, "reads that it serves as the leader", row("did", "reads as leader"))
    wait_for(own, "how long its puts take", row("times", "^put\\s+[1-9]"))

    dead, left = followers
    kill(replicas[dead])
    silent = row("replicas", f"^{dead}\\s+silent")
    wait_for(pages, "the dead replica", f"{silent} && {tile('replicas', '2 of 3')}")
    wait_for(pages, "that it gets no reads", share(dead, "=== 0"))
    wait_for(pages, "that the other follower gets them", share(left, "> 30"))
    wait_for(own, "that it is behind", f"[...document.querySelectorAll('#members-table tbody tr')].some((row) => row.children[0].innerText === '{dead}' && row.children[3].innerText !== '0')")
    bench.shoot(pages, "store-dead")
    bench.shoot(own, "store-leader")
    fits(pages | own)
    for http in (http_of(said), https[leader]):
        made_up.assert_text_only(bench, http, bench.view(http))
    made_up.assert_survives_without_details(bench, http_of(said), bench.view(http_of(said)), "Reads a second, by replica")
    assert not bench.errors, bench.errors
