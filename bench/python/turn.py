"""One turn of a system in `midflight-lab bench python`: starts, measures and ends it. Prints one line of JSON.

    bench/python/run SYSTEM WORK_DIR [--quick] [--with-parent]

The object has `system`, `version` and `interface`; `values`, numbers by name; and `answers`, which are the same on all systems.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import time
import traceback

sys.path.append(str(pathlib.Path(__file__).parents[1]))  # the folder bench, which the scripts share
import calls
import child
import systems
from programs import Program, programs

#: One in this many of a program's tasks warms up: each worker imports its modules.
WARM_UP_SHARE = 4


def say(text: str) -> None:
    """Progress; lines with this prefix reach the user."""
    print(f"python: {text}", file=sys.stderr, flush=True)


def measure(name: str, quick: bool) -> dict[str, object]:
    """The content of the line."""
    system = systems.load(name)
    values: dict[str, float] = {}
    answers: dict[str, str] = {}
    with system:
        if name != "serial":
            values.update(calls.measure(system, calls.Effort(quick)))
            rates = f"submit {values['submit_per_s']:,.0f} tasks/s, map {values['map_per_s']:,.0f}"
            say(f"{name}: {rates}, one alone p50 {values['rtt_p50_us']:,.0f} us")
        for program in programs(quick):
            seconds, answers[program.name] = timed(system, program)
            values[f"{program.name}_s"] = seconds
            values[f"{program.name}_task_ms"] = seconds / program.tasks * 1e3
            say(f"{name}: {program.name} {seconds:.2f} s, {program.tasks} tasks")
            if system.cuts_lists and program.maps_short:
                with system.task_each():
                    seconds, answer = timed(system, program)
                if answer != answers[program.name]:
                    raise ValueError(f"{program.name} computed {answer}, and {answers[program.name]} before")
                values[f"{program.name}_task_each_s"] = seconds
                say(f"{name}: {program.name} {seconds:.2f} s with a task for each call")
    return {"system": name, "version": system.version, "interface": system.interface, "values": values, "answers": answers}


def timed(system: systems.System, program: Program) -> tuple[float, str]:
    """Seconds, and the answer."""
    program.run(system, program.tasks // WARM_UP_SHARE)
    started = time.perf_counter()
    answer = program.run(system, program.tasks)
    return time.perf_counter() - started, str(answer)


def main() -> None:
    parser = argparse.ArgumentParser(description="One turn of a system of `midflight-lab bench python`.")
    parser.add_argument("system", choices=systems.NAMES)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter measurements")
    parser.add_argument("--with-parent", action="store_true", help="end when stdin is closed")
    options = parser.parse_args()
    results = child.take_stdout()
    child.end_on_signals(options.with_parent)
    try:
        line = measure(options.system, options.quick)
    except Exception as error:  # of any system; the log has the traceback
        traceback.print_exc()
        sys.exit(f"error: {type(error).__name__}: {' '.join(str(error).split())}")
    results.write(json.dumps(line) + "\n")
    results.flush()


if __name__ == "__main__":
    main()
