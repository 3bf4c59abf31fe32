#!/usr/bin/env python3
"""The cells of a figure or a sweep on Ray or Dask, instead of on one machine.

    midflight-lab sim figure --all --list | bench/sweep/fan_out.py ray  --cells figures/cells
    midflight-lab sim sweep s.toml --list | bench/sweep/fan_out.py dask --cells sweep/cells --address tcp://head:8786

Each line of stdin is a cell; each is run by `midflight-lab sim cell` on some worker, where --midflight must be found, and its result
is kept where the command itself would keep it. Afterwards the same `midflight-lab sim figure` or `sweep` finds all cells done and only
draws. Cells that are there already are not run again, if they are of the same simulator.

bench/sweep/setup installs Ray or Dask, in the versions of bench/peers/requirements.txt. Without --address it is started on this
machine.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

NO_TIME = json.dumps({
    "scheme": {"name": "spark"},
    "cluster": {"groups": [{"nodes": 1, "executors": 1}]},
    "load": {"name": "sw1", "utilisation": 1, "work": "sleep"},
    "seed": 1,
    "warmup_ms": 0,
    "duration_ms": 1,
})


def name_of(line):
    """The file of a cell: FNV-1a of its description (lab/cli/src/cells/store.rs)."""
    hashed = 0xCBF29CE484222325
    for byte in line.encode():
        hashed = (hashed ^ byte) * 0x100000001B3 % 2**64
    return f"{hashed:016x}.json"


def run_cell(midflight, line):
    """On a worker: the output of the cell's process, and its error, if it failed."""
    said = subprocess.run([midflight, "sim", "cell"], input=line, capture_output=True, text=True)
    return said.stdout, said.stderr.strip() if said.returncode else None


def version_of(text):
    try:
        return json.loads(text)["version"]
    except (ValueError, KeyError):
        return None


def on_ray(address, jobs):
    # Disables usage statistics.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    ray.init(address=address, log_to_driver=False, num_cpus=None if address else jobs)
    remote = ray.remote(run_cell)

    def results(midflight, lines):
        # In waves: millions of waiting tasks cost the head memory.
        lines, waiting = iter(lines), {}
        for line in lines:
            waiting[remote.remote(midflight, line)] = line
            if len(waiting) >= 1_000:
                yield from some(waiting)
        while waiting:
            yield from some(waiting)

    def some(waiting):
        for done in ray.wait(list(waiting))[0]:
            yield waiting.pop(done), ray.get(done)

    return results


def on_dask(address, jobs):
    from dask.distributed import Client, as_completed

    client = Client(address) if address else Client(n_workers=jobs, threads_per_worker=1, dashboard_address=None)

    def results(midflight, lines):
        # Spares Dask the search for equal cells.
        futures = {client.submit(run_cell, midflight, line, pure=False): line for line in lines}
        for done, result in as_completed(futures, with_results=True):
            yield futures[done], result

    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("on", choices=["ray", "dask"])
    parser.add_argument("--cells", required=True, type=pathlib.Path, help="where results are kept")
    parser.add_argument("--address", help="of a running cluster: auto for Ray's on this machine, tcp://HOST:PORT for Dask's")
    parser.add_argument("--midflight", default="midflight-lab", help="the command, on every worker")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes, without --address")
    options = parser.parse_args()

    lines = list(dict.fromkeys(line.strip() for line in sys.stdin if line.strip()))
    if not lines:
        sys.exit("error: no cells on stdin: pipe `midflight-lab sim figure NAME --list` into this")
    options.cells.mkdir(parents=True, exist_ok=True)
    # A cell of zero duration returns the version of this machine's simulator; stored results of other versions are not used.
    said, error = run_cell(options.midflight, NO_TIME)
    if error:
        sys.exit(error)
    version = version_of(said)
    paths = {line: options.cells / name_of(line) for line in lines}
    kept = {line for line, path in paths.items() if path.exists() and version_of(path.read_text()) == version}

    missing = [line for line in lines if line not in kept]
    print(f"{len(kept)} of {len(lines)} cells have been run before", file=sys.stderr)
    if not missing:
        return
    results = (on_ray if options.on == "ray" else on_dask)(options.address, options.jobs)
    failed = 0
    for done, (line, (said, error)) in enumerate(results(options.midflight, missing), start=1):
        if error is None and version_of(said) != version:
            error = f"a worker runs another version of midflight than this machine ({version})"
        if error is not None:
            failed += 1
            print(f"{error}: {line}", file=sys.stderr)
            continue
        part = paths[line].with_suffix(".part")
        part.write_text(said)
        part.replace(paths[line])
        print(f"{done}/{len(missing)} cells", file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
