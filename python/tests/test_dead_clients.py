"""Running calls of a client that has died are stopped."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import functions
from conftest import PATIENCE, Cluster, eventually

import midflight

SCRIPT = """
import sys, functions, midflight
client = midflight.Client(sys.argv[1])
client.submit(functions.hang, sys.argv[2], sys.argv[3]).result()
"""


def test_the_slot_of_a_dead_client_is_free_after_client_idle(tmp_path: Path) -> None:
    config, begun, ended = tmp_path / "midflight.toml", tmp_path / "begun", tmp_path / "ended"
    config.write_text('[tasks]\nclient_idle = "1s"\ncookie = "500ms"\n')
    with Cluster("--config", str(config), slots=1) as cluster:
        arguments = [sys.executable, "-c", SCRIPT, cluster.switch, str(begun), str(ended)]
        dying = subprocess.Popen(arguments, cwd=Path(__file__).parent)
        try:
            assert eventually(begun.exists)
        finally:
            dying.kill()
            dying.wait()
        with midflight.Client(cluster.switch) as client:
            assert client.submit(functions.double, 2).result(PATIENCE) == 4
        assert ended.exists(), "it was interrupted"
